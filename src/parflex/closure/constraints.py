"""Define closure constraints at position, velocity and acceleration level: loops, couplings, rods and struts.

A loop ties two places; its vectors are in the axes of the first place. A translation row is `n . rho`, a rotation row
`n . (w2 - w1)`, with `n` fixed in the first place; the universal row has n = u2 x u1, fixed in neither.

A coupling ties joint coordinates to each other. Its rows follow the loops in `Closures`, so one elimination takes both.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from parflex.closure.rows import Rows, stack
from parflex.closure.targets import shortest_arc, small_rotation
from parflex.errors import RobotFileError
from parflex.records import Record, count_of, name_list
from parflex.recursion.energy import LinkWrenches, line_between, relative_velocity, wrenches_on_ends
from parflex.recursion.kinematics import Motion, Pose, place_jacobian
from parflex.robotfile import schema
from parflex.robotfile.schema import ElementTable
from parflex.spatial.batched import is_varied, nominal
from parflex.spatial.linear import scalar_type
from parflex.spatial.rotations import cross, hat, vector_from_rotation, vector_length
from parflex.tree.build_elements import start_distance
from parflex.tree.force_elements import CoupledJoints, CoupledSpring, coupled_spring
from parflex.tree.tree import Branch, Place, Tree

Array = np.ndarray
E3 = np.eye(3)
SAME = 1e-9  # of ratios and offsets: rows that differ by less say the same


class ClosureRows(Rows):
    """Rows that hold in every pose: those of a loop or another constraint."""

    @property
    @abstractmethod
    def row_names(self) -> list[str]:
        """Names of the constrained directions."""

    @abstractmethod
    def rate(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return J qd, the opening rate of the rows in a motion."""


@dataclass(frozen=True, eq=False, repr=False)
class Loop(ClosureRows):
    """One closure: its two places, directions of its translation and rotation rows, and the kind of rotation rows."""

    place_fields: ClassVar = ("first", "second")
    kind: str
    first: Place
    second: Place
    translations: Array = field(repr=False)  # rows n
    rotations: Array = field(repr=False)  # rows n; the universal row is not in here
    turning: str = "free"  # free | about-axis | none | universal
    u1: Array = field(default_factory=lambda: E3[2], repr=False)
    u2: Array = field(default_factory=lambda: E3[2], repr=False)
    closed: bool = False  # known to be: what its rows hold fixed is not computed again

    @property
    def row_names(self) -> list[str]:
        """Names of the constrained directions."""
        names = [f"translation {_direction(n)}" for n in self.translations]
        names += [f"rotation {_direction(n)}" for n in self.rotations]
        return names + (["rotation normal to the cross"] if self.turning == "universal" else [])

    def scale(self, length: float) -> Array:
        """Return factors to metres: 1 for translations, then rotations."""
        count = len(self.translations)
        return np.array([1.0] * count + [length] * (len(self.rotations) + (self.turning == "universal")))

    def reversed(self, tree: Tree) -> Loop | None:
        """Return the closure seen from the second place, or None if only the first has its directions.

        At closed poses its rows are combinations of those of this loop.
        """
        if self.kind in ("point-on-plane", "point-on-line"):
            return None
        flipped = replace(self, first=self.second, second=self.first, u1=self.u2, u2=self.u1)
        if self.turning == "none":  # both places have the same axes
            return replace(flipped, u1=self.u1)
        if tree.planar:
            turn = neutral_rotation(tree, self.second).T @ neutral_rotation(tree, self.first)
            return replace(flipped, translations=self.translations @ turn.T)
        directions = {0: np.zeros((0, 3)), 1: self.u2[None, :], 2: _normals(self.u2), 3: E3}
        return replace(
            flipped, translations=directions[len(self.translations)], rotations=directions[len(self.rotations)]
        )

    def residual(self, at: Pose, length: float) -> Array:
        """Return the opening of the loop in metres; angles are multiplied by `length`."""
        opening, turn = self._opening(at)
        return np.concatenate([opening, length * self._angles(turn, shortest_arc, vector_from_rotation)])

    def linear_residual(self, at: Pose) -> Array:
        """Return the opening of a nearly closed loop over any scalar, with sines of angles."""
        opening, turn = self._opening(at)
        return np.concatenate([opening, self._angles(turn, cross, small_rotation)])

    def _angles(self, turn: Array, arc: Callable[[Array, Array], Array], vector: Callable[[Array], Array]) -> Array:
        """Return rotation rows, by the arc between axes or the rotation vector."""
        if self.turning == "universal":
            return np.array([self.u1 @ (turn @ self.u2)])
        if self.turning == "free":
            return np.zeros(0)
        return self.rotations @ (arc(self.u1, turn @ self.u2) if self.turning == "about-axis" else vector(turn))

    def gaps(self, at: Pose, length: float) -> Array:
        """Return lengths in metres that vanish at a closed loop alone, over any scalar; angles as chords."""
        opening, turn = self._opening(at)
        if self.turning == "about-axis":
            return np.concatenate([opening, length * (turn @ self.u2 - self.u1)])
        if self.turning == "none":  # of a turn by a: 2 sin(a / 2) in all
            return np.concatenate([opening, length / np.sqrt(2.0) * (turn - E3).ravel()])
        return (
            np.concatenate([opening, [length * self.u1 @ (turn @ self.u2)]]) if self.turning == "universal" else opening
        )

    def _opening(self, at: Pose) -> tuple[Array, Array]:
        """Return the opening along the translation rows, and the relative rotation."""
        (R1, P1), (R2, P2) = at.of(self.first), at.of(self.second)
        return self.translations @ (R1.T @ (P2 - P1)), R1.T @ R2

    def one_minus_cosine(self, at: Pose) -> Any:
        """Return 1 less the cosine of an angle that must vanish, because sines also vanish at half a turn."""
        (R1, _), (R2, _) = at.of(self.first), at.of(self.second)
        if self.turning == "about-axis":
            return 1.0 - self.u1 @ (R1.T @ R2 @ self.u2)
        return (3.0 - np.trace(R1.T @ R2)) / 2 if self.turning == "none" else 0.0

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Return rows J with J qd = 0, theory (9), (10)."""
        turn, rho = self._offset(tree, at)
        v1, w1 = place_jacobian(tree, at, links, self.first)
        v2, w2 = place_jacobian(tree, at, links, self.second)
        relative_w = turn @ w2 - w1
        rows = [self.translations @ (turn @ v2 - v1 + hat(rho) @ w1), self.rotations @ relative_w]
        if self.turning == "universal":
            rows.append((cross(turn @ self.u2, self.u1) @ relative_w)[None, :])
        return np.concatenate(rows)

    def _offset(self, tree: Tree, at: Pose) -> tuple[Array, Array]:
        """Return rotation and position of the second place in the first."""
        (R1, P1), (R2, P2) = at.of(self.first), at.of(self.second)
        fixed = self.closed and self.turning == "none"
        coincident = self.closed and len(self.translations) == (2 if tree.planar else 3)
        return E3 if fixed else R1.T @ R2, np.zeros(3) if coincident else R1.T @ (P2 - P1)

    def rate(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return J qd, the opening rate of the rows in a motion, theory (9), (10)."""
        turn, rho = self._offset(tree, at)
        v1, w1, _, _ = moving.of(self.first)
        v2, w2 = (turn @ part for part in moving.of(self.second)[:2])
        parts: list[Any] = [self.translations @ (v2 - v1 - cross(w1, rho)), self.rotations @ (w2 - w1)]
        if self.turning == "universal":
            parts.append(np.array([cross(turn @ self.u2, self.u1) @ (w2 - w1)]))
        return np.concatenate(parts)

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return the accelerations of the rows in a motion that J qdd must cancel, theory (9), (10)."""
        turn, rho = self._offset(tree, at)
        v1, w1, a1, al1 = moving.of(self.first)
        v2, w2, a2, al2 = (turn @ part for part in moving.of(self.second))
        rel = v2 - v1 - cross(w1, rho)
        point = a2 - a1 - cross(al1, rho) - cross(w1, cross(w1, rho)) - 2 * cross(w1, rel)
        parts: list[Any] = [self.translations @ point, self.rotations @ (al2 - al1 - cross(w1, w2 - w1))]
        if self.turning == "universal":
            u1, u2 = self.u1, turn @ self.u2
            slope = cross(cross(w2, u2), u1) + cross(u2, cross(w1, u1))
            parts.append(np.array([cross(u2, u1) @ (al2 - al1) + slope @ (w2 - w1)]))
        return np.concatenate(parts)

    def wrench(self, at: Pose, multipliers: Array) -> tuple[Array, Array]:
        """Return force and moment of the first place on the second, at its origin, in axes of the first."""
        count = len(self.translations)
        force = self.translations.T @ multipliers[:count]
        moment = self.rotations.T @ multipliers[count : count + len(self.rotations)]
        if self.turning == "universal":
            (R1, _), (R2, _) = at.of(self.first), at.of(self.second)
            moment = moment + cross(R1.T @ R2 @ self.u2, self.u1) * multipliers[-1]
        return force, moment


def _direction(n: Array) -> str:
    n = np.array(list(map(nominal, n)))
    for letter, unit in zip("xyz", E3, strict=True):
        if np.allclose(np.abs(n), unit, atol=1e-9):
            return letter
    return "(" + ", ".join(f"{value:.3g}" for value in n) + ")"


def _normals(u: Array) -> Array:
    """Return two unit vectors orthogonal to u and to each other, along axes of the frame if possible."""
    first = E3[int(np.argmin(np.abs(u)))]
    first = first - u * (u @ first)
    first = first / vector_length(first)
    return np.array([first, cross(u, first)])


def build_loop(closure: schema.Closure, tree: Tree) -> Loop:
    """Return the loop equations of one closure of the file."""
    first, second = (tree.places[name] for name in closure.between)
    u1 = np.array(closure.axis) / vector_length(closure.axis)
    u2 = np.array(closure.axis_2 or closure.axis)
    u2 = u2 / vector_length(u2)
    name = closure.name or "~".join(closure.between)
    none = np.zeros((0, 3))
    if tree.planar:
        translations, rotations, turning = _planar_rows(closure, tree, first, u1, name)
        return Loop(name, closure.joint, first, second, translations, rotations, turning, u1, u2)
    translations, rotations, turning = {
        "spherical": (E3, none, "free"),
        "revolute": (E3, _normals(u1), "about-axis"),
        "universal": (E3, none, "universal"),
        "cylindrical": (_normals(u1), _normals(u1), "about-axis"),
        "prismatic": (_normals(u1), E3, "none"),
        "planar": (u1[None, :], _normals(u1), "about-axis"),
        "point-on-plane": (u1[None, :], none, "free"),
        "point-on-line": (_normals(u1), none, "free"),
        "welded": (E3, E3, "none"),
    }[closure.joint]
    return Loop(name, closure.joint, first, second, translations, rotations, turning, u1, u2)


def _planar_rows(closure: schema.Closure, tree: Tree, first: Place, u1: Array, name: str) -> tuple[Array, Array, str]:
    """Return rows of a planar closure: two directions and the normal of the plane in the first place."""
    rotation = neutral_rotation(tree, first)
    normal = rotation.T @ E3[2]
    in_plane = np.array([rotation.T @ E3[0], rotation.T @ E3[1]])
    none = np.zeros((0, 3))
    if closure.joint == "revolute":
        return in_plane, none, "free"
    if closure.joint == "welded":
        return in_plane, normal[None, :], "none"
    if abs(normal @ u1) > 1e-9:
        text = "the axis leaves the plane"
        hint = 'give an axis that lies in the plane, like "x"'
        raise RobotFileError(text, key=f"closure '{name}': axis", value=list(closure.axis), hint=hint)
    across = cross(normal, u1)[None, :]
    if closure.joint == "prismatic":
        return across, normal[None, :], "none"
    return (u1[None, :] if closure.joint == "point-on-plane" else across), none, "free"


def neutral_rotation(tree: Tree, place: Place) -> Array:
    """Return the world rotation of a place with all joints at zero."""
    rotation = place.rotation
    for link in tree.path(place.link):
        rotation = tree.links[link].rotation @ rotation
    return rotation


@dataclass(frozen=True, eq=False, repr=False)
class Closures(Record):
    """All loops of a robot with their rows, followed by those of other constraints."""

    tree: Tree
    loops: tuple[Loop, ...]
    constraints: tuple[Constraint, ...] = ()

    @property
    def rows(self) -> tuple[Loop | Constraint, ...]:
        """Loops, then couplings."""
        return (*self.loops, *self.constraints)

    def _told(self) -> str:
        kinds = count_of(len(self.loops), "loop")
        rods = sum(row.kind != "coupling" for row in self.constraints)
        for count, label in ((len(self.constraints) - rods, "coupling"), (rods, "distance")):
            kinds += f", {count_of(count, label)}" if count else ""
        return f"{kinds}, {count_of(self.size, 'row')}: {name_list([row.name for row in self.rows])}"

    @property
    def size(self) -> int:
        """Number of rows."""
        return sum(row.size for row in self.rows)

    @property
    def row_names(self) -> list[str]:
        """Names of the rows: closure and direction."""
        return [f"{row.name}: {row_name}" for row in self.rows for row_name in row.row_names]

    def slices(self) -> list[slice]:
        """Return the rows of each loop and each constraint."""
        ends = np.cumsum([0, *(row.size for row in self.rows)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def residual(self, at: Pose) -> Array:
        """Return the openings of the loops in metres."""
        return stack(row.residual(at, self.tree.length) for row in self.rows)

    def linear_residual(self, at: Pose) -> Array:
        """Return the openings of nearly closed loops, over any scalar."""
        return stack(row.linear_residual(at) for row in self.rows)

    def gaps(self, at: Pose) -> Array:
        """Return lengths in metres that vanish at closed poses alone, over any scalar."""
        length = self.tree.length
        others = [row.scale(length) * row.linear_residual(at) for row in self.constraints]
        return stack([*(loop.gaps(at, length) for loop in self.loops), *others])

    def jacobian(self, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Return J_tot: all rows, theory (11)."""
        parts = [row.jacobian(self.tree, at, links) for row in self.rows]
        return np.concatenate(parts) if parts else np.zeros((0, self.tree.n))

    def row_units(self) -> Array:
        """Return 1 for translation rows, the characteristic length for rotation rows: factors to metres."""
        return stack(row.scale(self.tree.length) for row in self.rows)

    def rate(self, at: Pose, moving: Motion) -> Array:
        """Return J_tot qd, the opening rates of the loops."""
        return stack(row.rate(self.tree, at, moving) for row in self.rows)

    def bias(self, at: Pose, moving: Motion) -> Array:
        """Return b_star, which J_tot qdd must cancel, theory (11)."""
        return stack(row.bias(self.tree, at, moving) for row in self.rows)


def build_closures(robot: schema.RobotFile, tree: Tree) -> Closures:
    """Return the loop equations of a robot, and the rows of its couplings."""
    loops = tuple(build_loop(closure, tree) for closure in robot.closure)
    return Closures(tree, loops, build_constraints(robot, tree))


@dataclass(frozen=True, eq=False, repr=False)
class Constraint(ClosureRows):
    """Constraint rows other than loops; `kind` is the word of the file: coupling, rod, strut."""

    kind: str

    @abstractmethod
    def forces(self, tree: Tree, at: Pose, multipliers: Array) -> Array:
        """Return forces of the rows on coordinates; with those on links, they are J^T multipliers."""

    def on_links(self, at: Pose, multipliers: Array) -> Mapping[int, tuple[Array, ...]]:
        """Return wrenches of the rows on links, at their origins and axes."""
        return {}

    @abstractmethod
    def numbers_in(self) -> dict[str, float]:
        """Return the numbers in which robots of a family may differ."""

    @abstractmethod
    def with_numbers(self, symbols: Mapping[str, Any], end: Callable[[Place], Place]) -> Self:
        """Return the rows with symbols in place of some numbers; `end` returns the new places."""


@dataclass(frozen=True, eq=False, repr=False)
class Coupling(CoupledJoints, Constraint):
    """One row: the coordinate of a joint less ratios times others is an offset, theory (42).

    Its multiplier is the effort of the coupling on the joint; the others receive minus the ratio times this effort.
    """

    sliding: tuple[bool, ...] = ()
    kind: str = field(default="coupling", init=False)

    @property
    def row_names(self) -> list[str]:
        """Name of the row."""
        return ["coupling"]

    @property
    def unit(self) -> str:
        """Unit of the following joint, and of the residual."""
        return "m" if self.sliding[0] else "rad"

    @property
    def equation(self) -> str:
        """Equation with name: `gear: wheel = -2 pinion + 0.1`."""
        return f"{self.name}: {self.relation}"

    @property
    def relation(self) -> str:
        """Equation without the name of the coupling."""
        terms = zip(self.coefficients[1:], self.joints[1:], strict=True)
        parts = [f"{-c:.6g} {joint}" for c, joint in terms] + ([f"{self.offset:.6g}"] if self.offset else [])
        return f"{self.joints[0]} = {' + '.join(parts)}".replace("+ -", "- ")

    @property
    def ends(self) -> tuple[int, ...]:
        """Links of the coupled joints."""
        return self.numbers

    def on(self, small: Branch) -> Self:
        """Return the row on a part of the tree."""
        numbers = tuple(small.number[j] for j in self.numbers)
        links = [small.tree.links[j] for j in numbers]
        positions, rates = tuple(link.q.start for link in links), tuple(link.v.start for link in links)
        return replace(self, numbers=numbers, positions=positions, rates=rates)

    def links(self, tree: Tree) -> list[int]:
        """Return the links of the coupled joints."""
        return sorted(self.numbers)

    def scale(self, length: float) -> Array:
        """Return the factor that makes the largest entry of the row 1 without units, for gears of any ratio."""
        sizes = [
            abs(nominal(c)) * (length if is_sliding else 1.0)
            for c, is_sliding in zip(self.coefficients, self.sliding, strict=True)
        ]
        return np.array([length / max(sizes)])

    def linear_residual(self, at: Pose) -> Array:
        """Return the deviation of the joint from its coupled position, in its unit."""
        return np.array([self.stretch(at.q)])

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Return the row of coefficients."""
        row: Array = np.zeros((1, tree.n), dtype=scalar_type(np.array(self.coefficients)))
        row[0, list(self.rates)] = self.coefficients
        return row

    def rate(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return coefficients times rates."""
        return np.array([self.along(moving.qd)])

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return coefficients times accelerations, without bias."""
        return np.array([self.along(moving.qdd)])

    def forces(self, tree: Tree, at: Pose, multipliers: Array) -> Array:
        """Return the effort on the joint, and minus the ratios times it on the others."""
        return self.jacobian(tree, at, [])[0] * multipliers[0]

    def numbers_in(self) -> dict[str, float]:
        """Return the numbers in which robots of a family may differ."""
        coefficients = dict(zip(self._words, self.coefficients, strict=True))
        return {**coefficients, f"offset[{self.name}]": float(self.offset)}

    @property
    def _words(self) -> list[str]:
        """Names of its coefficients; losses shape a program and are no numbers of a family."""
        law = f",{float(self.efficiency)},{float(self.back)}" if self.lossy else ""
        return [f"coupling[{self.name}{law},{joint}]" for joint in self.joints]

    def with_numbers(self, symbols: Mapping[str, Any], end: Callable[[Place], Place]) -> Self:
        """Return the row with symbols in place of some numbers."""
        coefficients = tuple(symbols.get(name, c) for name, c in zip(self._words, self.coefficients, strict=True))
        return replace(self, coefficients=coefficients, offset=symbols.get(f"offset[{self.name}]", self.offset))

    def lead_of(self, k: int) -> float:
        """Return the travel per radian of a rotation with the coupled translation, or zero."""
        pairs = list(zip(self.coefficients, self.sliding, self.rates, strict=True))
        sliding = [abs(c) for c, is_sliding, _ in pairs if is_sliding]
        turning = [abs(c) for c, _, rate in pairs if rate == k]
        return turning[0] / max(sliding) if sliding and turning else 0.0


def coupling_row(spring: CoupledSpring, tree: Tree, lossy: bool = False) -> Coupling:
    """Return the row of a coupling as rigid; `lossy` includes its losses."""
    sliding = tuple(tree.links[j].joint.unit == "m" for j in spring.numbers)
    parts = (spring.numbers, spring.positions, spring.rates, spring.coefficients, spring.offset)
    efficiency, back = (spring.efficiency, spring.back) if lossy else (1.0, 1.0)
    return Coupling(spring.name, spring.joints, *parts, efficiency, back, sliding=sliding)


def unstretched_rows(tree: Tree) -> tuple[Coupling, ...]:
    """Return rows that hold elastic couplings unstretched."""
    return tuple(coupling_row(spring, tree) for spring in tree.springs)


def build_constraints(robot: schema.RobotFile, tree: Tree) -> tuple[Constraint, ...]:
    """Return all rows of a file except loops; raise for contradicting couplings."""
    rigid = [coupling for coupling in robot.coupling if coupling.stiffness is None]
    couplings = [coupling_row(coupled_spring(coupling, tree.links), tree, lossy=True) for coupling in rigid]
    refuse_contradiction(tree, couplings)
    distances = [
        build_distance(element, tree) for element in robot.element if element.kind == "rod" or element.measured
    ]
    return (*couplings, *distances)


def with_starts(couplings: Sequence[Coupling], q: Array, stated: Collection[str]) -> Array:
    """Return start positions in which joints without a stated start follow their couplings."""
    result, known_joints = q.copy(), set(stated)
    for _ in couplings:  # one may wait for another
        for row in couplings:
            unknown = [n for n, joint in enumerate(row.joints) if joint not in known_joints]
            if len(unknown) == len(row.joints):  # no start is stated: the first joint follows the offset
                unknown = unknown[:1] if row.offset else []
            if len(unknown) == 1:
                n = unknown[0]
                others = sum(row.coefficients[m] * result[row.positions[m]] for m in range(len(row.joints)) if m != n)
                result[row.positions[n]] = (row.offset - others) / row.coefficients[n]
                known_joints.add(row.joints[n])
    return result


def coupling_matrix(couplings: Sequence[Coupling], tree: Tree, number: Callable[[Any], float] = float) -> Array:
    """Return coefficients of couplings over all rates, without units, with largest entry 1 in each row."""
    C = np.zeros((len(couplings), tree.n))
    for i, row in enumerate(couplings):
        unit, rates = row.scale(tree.length)[0] / tree.length, list(row.rates)
        C[i, rates] = unit * np.array(list(map(number, row.coefficients))) * tree.rate_units[rates]
    return C


def refuse_contradiction(tree: Tree, couplings: Sequence[Coupling]) -> None:
    """Raise if earlier couplings determine another position of a joint."""
    rows = coupling_matrix(couplings, tree, nominal)
    offsets = np.zeros(len(couplings))
    for i, coupling in enumerate(couplings):
        offsets[i] = coupling.scale(tree.length)[0] / tree.length * nominal(coupling.offset)
        shares = np.linalg.lstsq(rows[:i].T, rows[i], rcond=None)[0] if i else np.zeros(0)
        if np.abs(rows[i] - shares @ rows[:i]).max() > SAME:
            continue
        for x in (x for row in couplings for x in (*row.coefficients, row.offset) if is_varied(x)):
            float(x)  # refused: whether they agree differs from design to design
        if abs(offsets[i] - shares @ offsets[:i]) > SAME * max(1.0, float(np.abs(offsets).max())):
            names = [f"'{couplings[k].name}'" for k in range(i) if abs(shares[k]) > SAME] + [f"'{coupling.name}'"]
            text = f"the couplings {', '.join(names)} contradict each other"
            hint = "correct an offset or a ratio, or remove one of them"
            raise RobotFileError(text, key=f"coupling '{coupling.name}'", value=coupling.name, hint=hint)


@dataclass(frozen=True, eq=False, repr=False)
class Distance(Constraint):
    """One row: the distance of two places less a length, or less the coordinate of a strut, theory (45).

    Its multiplier pushes the places apart; the tension is its negative.
    """

    place_fields: ClassVar = ("first", "second")
    kind: str  # "rod", or "strut" or "cable" of which the length is a coordinate
    first: Place = field(repr=False)
    second: Place = field(repr=False)
    rest: Any = 0.0
    number: int | None = None  # the link of a strut
    position: int = -1  # its coordinate and its rate
    rate_number: int = -1

    @property
    def places(self) -> tuple[Place, Place]:
        """First and second place."""
        return (self.first, self.second)

    @property
    def row_names(self) -> list[str]:
        """Name of the row."""
        return ["length"]

    @property
    def equation(self) -> str:
        """Equation with name."""
        return f"{self.name}: length = " + (f"{self.rest:.6g} m" if self.number is None else "its coordinate")

    @property
    def ends(self) -> tuple[int, ...]:
        """Links of the two places, and of a strut."""
        return (*super().ends, *self._strut)

    @property
    def _strut(self) -> tuple[int, ...]:
        return () if self.number is None else (self.number,)

    def on(self, small: Branch) -> Self:
        """Return the row on a part of the tree."""
        distance = super().on(small)
        return distance if self.number is None else distance._of(small.tree, small.number[self.number])

    def _of(self, tree: Tree, number: int) -> Self:
        link = tree.links[number]
        return replace(self, number=number, position=link.q.start, rate_number=link.v.start)

    def links(self, tree: Tree) -> list[int]:
        """Return links whose joints change the distance, and that of a strut."""
        return sorted({*super().links(tree), *self._strut})

    def scale(self, length: float) -> Array:
        """Return 1, because the row is in metres."""
        return np.ones(1)

    def linear_residual(self, at: Pose) -> Array:
        """Return the excess length, over any scalar."""
        length = line_between(at, self.places, self.name).length
        target_length = self.rest if self.number is None else at.q[self.position]
        return np.array([length - target_length])

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Return the unit vector of the line times the difference of the point Jacobians."""
        across, length, _ = line_between(at, self.places, self.name)
        local_directions = [at.of(end)[0].T @ (across / length) for end in self.places]
        J1, J2 = (place_jacobian(tree, at, links, end)[0] for end in self.places)
        row = local_directions[1] @ J2 - local_directions[0] @ J1
        if self.number is not None:
            row[self.rate_number] = row[self.rate_number] - 1.0
        return row[None, :]

    def rate(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return the rate of the distance, less that of a strut."""
        rate = line_between(at, self.places, self.name, moving).rate
        return np.array([rate - self._own(moving.qd)])

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return the acceleration of the distance, less that of a strut."""
        across, length, rate = line_between(at, self.places, self.name, moving)
        v = relative_velocity(at, self.places, moving)
        a1, a2 = (at.of(end)[0] @ moving.of(end)[2] for end in self.places)
        return np.array([(across @ (a2 - a1) + v @ v - rate * rate) / length - self._own(moving.qdd)])

    def _own(self, rates: Any) -> Any:
        return 0.0 if self.number is None else rates[self.rate_number]

    def forces(self, tree: Tree, at: Pose, multipliers: Array) -> Array:
        """Return the force on the coordinate of a strut; forces on the places act on links."""
        forces = np.zeros(tree.n)
        if self.number is not None:
            forces[self.rate_number] = -multipliers[0]
        return forces

    def on_links(self, at: Pose, multipliers: Array) -> LinkWrenches:
        """Return wrenches of the row on links."""
        across, length, _ = line_between(at, self.places, self.name)
        return wrenches_on_ends(at, self.places, -multipliers[0] / length * across)

    def numbers_in(self) -> dict[str, float]:
        """Return the numbers in which robots of a family may differ."""
        return {f"rest[{self.name}]": float(self.rest)}

    def with_numbers(self, symbols: Mapping[str, Any], end: Callable[[Place], Place]) -> Self:
        """Return the row with symbols in place of some numbers, between other places."""
        rest = symbols.get(f"rest[{self.name}]", self.rest)
        return replace(self, rest=rest, first=end(self.first), second=end(self.second))


def build_distance(element: ElementTable, tree: Tree) -> Distance:
    """Return the row of a rod or strut of the file; the default length of a rod is its start length."""
    first, second = (tree.places[end] for end in element.between)
    if element.measured:
        return Distance(element.name, element.kind, first, second)._of(tree, tree.number(element.name))
    rest = element.rest if element.rest is not None else start_distance(tree, element)
    return Distance(element.name, "rod", first, second, rest)
