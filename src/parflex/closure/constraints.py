"""Constraint rows beside those of loops: couplings, which tie joint coordinates to each other.

A loop ties two places; these rows tie coordinates. They answer the same questions, so that one elimination takes both,
and stand behind the loops in `Closures`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from parflex.closure.distances import build_distance
from parflex.errors import RobotFileError
from parflex.recursion.kinematics import Motion, Pose
from parflex.robotfile import schema
from parflex.spatial.batched import is_varied, nominal
from parflex.spatial.linear import scalar_type
from parflex.tree.force_elements import CoupledSpring, coupled_spring, smooth_sign
from parflex.tree.tree import Branch, Place, Tree

Array = np.ndarray
SAME = 1e-9  # of ratios and offsets: rows that differ by less say the same


class Constraint(Protocol):
    """Rows that hold a robot together and are no loop."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def kind(self) -> str:
        """What it is in the file: a coupling, a rod or a strut."""
        ...

    @property
    def size(self) -> int:
        """Number of rows."""
        ...

    @property
    def row_names(self) -> list[str]:
        """What each row constrains, in readable form."""
        ...

    @property
    def ends(self) -> tuple[int, ...]:
        """Links on which the rows lie."""
        ...

    def on(self, small: Branch) -> Constraint:
        """The same rows on a part of the tree."""
        ...

    def links(self, tree: Tree) -> list[int]:
        """Links whose joints change the rows."""
        ...

    def scale(self, length: float) -> Array:
        """Makes rows of the Jacobian those of the residual, in metres."""
        ...

    def residual(self, at: Pose, length: float) -> Array:
        """How far the rows are from zero, in metres."""
        ...

    def linear_residual(self, at: Pose) -> Array:
        """The same over any scalar, in the units of the rows."""
        ...

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Rows J with J qd = 0."""
        ...

    def rate(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """J qd in a motion."""
        ...

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Accelerations of the rows in a motion."""
        ...

    def forces(self, tree: Tree, at: Pose, multipliers: Array) -> Array:
        """What the rows put on coordinates; with what they put on links, J^T multipliers."""
        ...

    def on_links(self, at: Pose, multipliers: Array) -> Mapping[int, tuple[Array, ...]]:
        """What the rows put on links, at their origins and axes."""
        ...

    def numbers_in(self) -> dict[str, float]:
        """Numbers in which robots of a family may differ."""
        ...

    def with_numbers(self, symbols: Mapping[str, Any], end: Callable[[Place], Place]) -> Constraint:
        """The same rows with symbols in the place of some of these numbers; `end` gives the new places."""
        ...


@dataclass(frozen=True)
class Coupling:
    """One row: the coordinate of a joint less ratios times others is an offset, theory (42).

    Its multiplier is the effort that the coupling puts on the joint; it puts minus the ratio times that on the others.
    """

    name: str
    joints: tuple[str, ...]  # the one that follows first
    numbers: tuple[int, ...]  # of their links
    positions: tuple[int, ...]
    rates: tuple[int, ...]
    sliding: tuple[bool, ...]
    coefficients: tuple[Any, ...]  # 1, and minus the ratios
    offset: Any
    efficiency: float = 1.0  # of what passes from the others to the joint
    back: float = 1.0  # of what passes from the joint to the others
    width: float = 0.0  # rate of the others at which a loss has 0.7 of its value; 0: it changes at once
    size: int = field(default=1, init=False)
    kind: str = field(default="coupling", init=False)

    @property
    def row_names(self) -> list[str]:
        """What the row holds."""
        return ["coupling"]

    @property
    def unit(self) -> str:
        """Of the joint that follows, and so of what the row misses."""
        return "m" if self.sliding[0] else "rad"

    @property
    def equation(self) -> str:
        """The row for people: `gear: wheel = -2 pinion + 0.1`."""
        return f"{self.name}: {self.relation}"

    @property
    def relation(self) -> str:
        """The same without the name of the coupling."""
        others = zip(self.coefficients[1:], self.joints[1:], strict=True)
        parts = [f"{-c:.6g} {joint}" for c, joint in others] + ([f"{self.offset:.6g}"] if self.offset else [])
        return f"{self.joints[0]} = {' + '.join(parts)}".replace("+ -", "- ")

    @property
    def lossy(self) -> bool:
        """Whether power is lost on its way."""
        return self.efficiency < 1 or self.back < 1

    @property
    def others(self) -> list[tuple[Any, int]]:
        """Coefficients and rates of the joints that the first one follows."""
        return list(zip(self.coefficients, self.rates, strict=True))[1:]

    def turning(self, qd: Any) -> Any:
        """The direction in which the others move the joint, in a motion with all rates `qd`."""
        speed = -sum(c * qd[k] for c, k in self.others)
        return smooth_sign(speed, self.width * max(abs(c) for c, _ in self.others) if self.width else 0.0)

    @property
    def ends(self) -> tuple[int, ...]:
        """The links on the coupled joints."""
        return self.numbers

    def on(self, small: Branch) -> Coupling:
        """The same row on a part of the tree."""
        numbers = tuple(small.number[j] for j in self.numbers)
        own = [small.tree.links[j] for j in numbers]
        positions, rates = tuple(link.q.start for link in own), tuple(link.v.start for link in own)
        return replace(self, numbers=numbers, positions=positions, rates=rates)

    def links(self, tree: Tree) -> list[int]:
        """The links on the coupled joints."""
        return sorted(self.numbers)

    def scale(self, length: float) -> Array:
        """Makes the largest entry of the row, without units, 1: gears of any ratio compare with loops."""
        sizes = [
            abs(nominal(c)) * (length if slides else 1.0)
            for c, slides in zip(self.coefficients, self.sliding, strict=True)
        ]
        return np.array([length / max(sizes)])

    def residual(self, at: Pose, length: float) -> Array:
        """How far the joint is from where the others put it."""
        return self.scale(length) * self.linear_residual(at)

    def linear_residual(self, at: Pose) -> Array:
        """The same in the unit of the joint."""
        return np.array(
            [sum(c * at.q[k] for c, k in zip(self.coefficients, self.positions, strict=True)) - self.offset]
        )

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """The row of coefficients."""
        row: Array = np.zeros((1, tree.n), dtype=scalar_type(np.array(self.coefficients)))
        row[0, list(self.rates)] = self.coefficients
        return row

    def rate(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Coefficients times rates."""
        return np.array([sum(c * moving.qd[k] for c, k in zip(self.coefficients, self.rates, strict=True))])

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Coefficients times accelerations: the motion itself causes none."""
        return np.array([sum(c * moving.qdd[k] for c, k in zip(self.coefficients, self.rates, strict=True))])

    def forces(self, tree: Tree, at: Pose, multipliers: Array) -> Array:
        """The effort on the joint, minus the ratios times it on the others."""
        return self.jacobian(tree, at, [])[0] * multipliers[0]

    def numbers_in(self) -> dict[str, float]:
        """Numbers in which robots of a family may differ."""
        own = dict(zip(self._words, self.coefficients, strict=True))
        return {**own, f"offset[{self.name}]": float(self.offset)}

    @property
    def _words(self) -> list[str]:
        """Of its coefficients; losses shape a program, and are no numbers of a family."""
        law = f",{float(self.efficiency)},{float(self.back)}" if self.lossy else ""
        return [f"coupling[{self.name}{law},{joint}]" for joint in self.joints]

    def on_links(self, at: Pose, multipliers: Array) -> Mapping[int, tuple[Array, ...]]:
        """Nothing: it acts along coordinates."""
        return {}

    def with_numbers(self, symbols: Mapping[str, Any], end: Callable[[Place], Place]) -> Coupling:
        """The same row with symbols in the place of some of these numbers."""
        coefficients = tuple(symbols.get(word, c) for word, c in zip(self._words, self.coefficients, strict=True))
        return replace(self, coefficients=coefficients, offset=symbols.get(f"offset[{self.name}]", self.offset))

    def lead_of(self, k: int) -> float:
        """Of a turning rate, the way per radian of what slides with it; zero where nothing does."""
        ways = [abs(c) for c, slides in zip(self.coefficients, self.sliding, strict=True) if slides]
        turns = [abs(c) for c, rate in zip(self.coefficients, self.rates, strict=True) if rate == k]
        return turns[0] / max(ways) if ways and turns else 0.0


def coupling_row(spring: CoupledSpring, tree: Tree, lossy: bool = False) -> Coupling:
    """The row that holds what a spring would; `lossy` keeps what is lost on the way."""
    sliding = tuple(tree.links[j].joint.unit == "m" for j in spring.numbers)
    parts = (spring.positions, spring.rates, sliding, spring.coefficients, spring.offset)
    losses = (spring.efficiency, spring.back) if lossy else ()
    return Coupling(spring.name, spring.joints, spring.numbers, *parts, *losses)


def resting_rows(tree: Tree) -> tuple[Coupling, ...]:
    """Rows that hold elastic couplings where they do not stretch."""
    return tuple(coupling_row(spring, tree) for spring in tree.springs)


def build_constraints(robot: schema.RobotFile, tree: Tree) -> tuple[Constraint, ...]:
    """All rows of a file that are no loops; couplings that contradict each other are refused."""
    rigid = [coupling for coupling in robot.coupling if coupling.stiffness is None]
    found = [coupling_row(coupled_spring(coupling, tree.links), tree, lossy=True) for coupling in rigid]
    refuse_contradiction(tree, found)
    distances = [
        build_distance(element, tree) for element in robot.element if element.kind == "rod" or element.measured
    ]
    return (*found, *distances)


def with_starts(couplings: Sequence[Coupling], q: Array, stated: Collection[str]) -> Array:
    """Start positions in which a joint without a stated start stands where its coupling puts it."""
    result, known = q.copy(), set(stated)
    for _ in couplings:  # one may wait for another
        for row in couplings:
            unknown = [n for n, joint in enumerate(row.joints) if joint not in known]
            if len(unknown) == len(row.joints):  # no start is stated: the first joint follows the offset
                unknown = unknown[:1] if row.offset else []
            if len(unknown) == 1:
                n = unknown[0]
                rest = sum(row.coefficients[m] * result[row.positions[m]] for m in range(len(row.joints)) if m != n)
                result[row.positions[n]] = (row.offset - rest) / row.coefficients[n]
                known.add(row.joints[n])
    return result


def refuse_contradiction(tree: Tree, couplings: Sequence[Coupling]) -> None:
    """Raise where couplings before one already say where its joint is, and say something else."""
    rows = np.zeros((len(couplings), tree.n))
    offsets = np.zeros(len(couplings))
    for i, one in enumerate(couplings):
        unit = one.scale(tree.length)[0] / tree.length
        rows[i, list(one.rates)] = unit * np.array(list(map(nominal, one.coefficients))) * tree.rate_units[[*one.rates]]
        offsets[i] = unit * nominal(one.offset)
        shares = np.linalg.lstsq(rows[:i].T, rows[i], rcond=None)[0] if i else np.zeros(0)
        if np.abs(rows[i] - shares @ rows[:i]).max() > SAME:
            continue
        for x in (x for row in couplings for x in (*row.coefficients, row.offset) if is_varied(x)):
            float(x)  # refused: whether they agree differs from design to design
        if abs(offsets[i] - shares @ offsets[:i]) > SAME * max(1.0, float(np.abs(offsets).max())):
            names = [f"'{couplings[k].name}'" for k in range(i) if abs(shares[k]) > SAME] + [f"'{one.name}'"]
            raise RobotFileError(
                f"the couplings {', '.join(names)} contradict each other",
                key=f"coupling '{one.name}'",
                value=one.name,
                hint="correct an offset or a ratio, or remove one of them",
            )
