"""Handle gears and elastic couplings in poses: rotors, and joints that follow an unstretched coupling.

A rotor drives links through a gear. Behind a gear of 100 : 1 it makes sixteen turns while its arm moves by a radian.
Distances between poses, distances to singular poses and random states therefore measure a rotor on the driven side of
its gear.

An elastic coupling is unstretched unless the pose specifies all its joints. The same rule serves one pose and many:
joints named by the pose are known; others follow from the couplings, in file order. Joints that keep their home
position come next, motors first, and joints that follow from these. Then the loops close, and joints coupled to the
loops follow. If joints at home positions contradict a coupling, the pose does not determine which of them moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.closure.constraints import Closures, Coupling, coupling_row, unstretched_rows
from parflex.closure.rows import connected
from parflex.closure.targets import Target
from parflex.closure.working_modes import determined_rates
from parflex.records import Record
from parflex.spatial.batched import nominal
from parflex.tree.force_elements import CoupledSpring
from parflex.tree.tree import Tree

if TYPE_CHECKING:
    from parflex.robot.robot import Robot

Array = np.ndarray
TOLD = 1e-9  # relative singular value of couplings below which a rotor is free
Place = tuple[str | int, ...]  # of a number in a robot, by fields and indices


@dataclass(frozen=True, eq=False, repr=False)
class Gearing(Record):
    """Units of all rates, those of rotors behind their gears, and the rates of rotors."""

    units: Array  # of all rates: without gears those of the tree
    rotors: Array  # whether a rate follows, as that of a rotor, from those of the mechanism

    @property
    def any(self) -> bool:
        """Whether there are rotors."""
        return bool(self.rotors.any())

    def judged(self, J: Array, free: Array, rank: int, plain: Array) -> tuple[Array, int, Array, Array]:
        """Return closures, their rank and allowed motions for singularities, and the motions behind gears.

        `J` are closures of this rank without units per free rate, at a pose or at many, and `plain` their
        units. Without rotors they are unchanged. With rotors, rows exclude the rotors, and motions of all free
        rates have the size of their part without rotors.
        """
        is_rotor = self.rotors[free]
        rows = self.project_out_rotors(J, free, plain)
        if not is_rotor.any():
            motions = _allowed_motions(J, rank)
            return J, rank, motions, motions
        rank -= J.shape[-2] - rows.shape[-2]
        mechanism_motions, ratio = _allowed_motions(rows, rank), (self.units / plain)[free]
        scaled = J * ratio
        motions = np.zeros((*J.shape[:-2], len(free), mechanism_motions.shape[-1]))
        motions[..., ~is_rotor, :] = mechanism_motions
        driven = np.linalg.pinv(_first(scaled)[:, is_rotor]) @ scaled[..., ~is_rotor]
        motions[..., is_rotor, :] = -driven @ mechanism_motions
        return rows, rank, motions * ratio[:, None], motions

    def project_out_rotors(self, J: Array, columns: Array, plain: Array) -> Array:
        """Return rows of closures, at a pose or at many, without rotors."""
        is_rotor = self.rotors[columns]
        if not is_rotor.any():
            return J
        U, sizes, _ = np.linalg.svd(_first(J)[:, is_rotor] * (self.units / plain)[columns][is_rotor])
        return np.asarray(U[:, int(np.sum(sizes > TOLD)) :].T @ J[..., ~is_rotor])


def _first(J: Array) -> Array:
    """Return the matrix at the first of many poses; couplings are equal at all."""
    return J.reshape(-1, *J.shape[-2:])[0]


def _allowed_motions(J: Array, rank: int) -> Array:
    """Return orthonormal columns of motions that rows allow, at a pose or at many."""
    if 0 in J.shape[-2:]:
        return np.broadcast_to(np.eye(J.shape[-1]), (*J.shape[:-2], J.shape[-1], J.shape[-1]))
    return np.asarray(np.swapaxes(np.linalg.svd(J, full_matrices=True)[2][..., rank:, :], -1, -2))


def find_gearing(tree: Tree, closures: Closures, plain: Array | None = None) -> Gearing:
    """Find rotors: coupled joints without loads, loops or end; `plain` are the units of the tree."""
    couplings = [row for row in closures.constraints if isinstance(row, Coupling)]
    units, rotors = np.array(tree.rate_units if plain is None else plain), np.zeros(tree.n, dtype=bool)
    if not couplings:
        return Gearing(units, rotors)
    busy = _structural_links(tree, closures)
    for numbers, _ in connected(row.rates for row in couplings):
        part = [couplings[i] for i in numbers]
        joints = {k: number for row in part for k, number in zip(row.rates, row.numbers, strict=True)}
        arms = {k for k, number in joints.items() if number in busy}
        if not arms:  # the link with mass, or of several the slowest
            heavy = {k for k, number in joints.items() if tree.links[number].heavy} or set(joints)
            first = next(iter(heavy))
            speeds = _followed(part, {first: units[first]})
            arms = {min(heavy, key=lambda k: nominal(speeds[k] / units[k]) if k in speeds else np.inf)}
        coupled_units = _followed(part, {k: units[k] for k in arms})
        for k in coupled_units.keys() - arms:
            units[k] = coupled_units[k]
        rotor_rates = sorted(coupled_units.keys() - arms)
        rows = np.zeros((len(part), tree.n))
        for i, row in enumerate(part):
            rows[i, list(row.rates)] = [nominal(c * units[k]) for c, k in zip(row.coefficients, row.rates, strict=True)]
            rows[i] /= np.abs(rows[i]).max()
        sizes = np.linalg.svd(rows[:, rotor_rates], compute_uv=False) if rotor_rates else np.zeros(0)
        if len(sizes) == len(rotor_rates) and (sizes > TOLD).all():  # otherwise rotors move without the arms
            rotors[rotor_rates] = True
    return Gearing(units, rotors)


def _structural_links(tree: Tree, closures: Closures) -> set[int]:
    """Return links with children, loops, rods, springs or flexible bodies, and the end."""
    busy = {link.parent for link in tree.links} | {tree.place(tree.end_effector).link}
    busy |= {j for j, link in enumerate(tree.links) if link.body.size or not link.joint.one_axis}
    for row in closures.rows:
        busy |= set() if isinstance(row, Coupling) else set(row.ends)
    for element in tree.elements:
        busy |= {element.first.link, element.second.link}
    return busy | {number for spring in tree.springs for number in spring.numbers}


def _followed(part: Sequence[Coupling], known: dict[int, Any]) -> dict[int, Any]:
    """Return how far joints move per known joint, by the tightest row."""
    motions = dict(known)
    while True:
        reached: dict[int, list[Any]] = {}
        for row in part:
            sizes = {k: c if nominal(c) > 0 else -c for c, k in zip(row.coefficients, row.rates, strict=True)}
            candidates = [sizes[k] * motions[k] for k in sizes if k in motions and nominal(sizes[k])]
            for k in sizes.keys() - motions.keys() if candidates else ():
                reached[k] = reached.get(k, []) + (
                    [max(candidates, key=nominal) / sizes[k]] if nominal(sizes[k]) else []
                )
        reached = {k: candidates for k, candidates in reached.items() if candidates}
        if not reached:
            return motions
        motions |= {k: min(candidates, key=nominal) for k, candidates in reached.items()}


@dataclass(frozen=True, eq=False, repr=False)
class FollowingJoint(Record):
    """A joint whose position follows from a coupling; `spring` is the number of the coupling in the tree."""

    row: Coupling
    spring: int
    own: int

    @property
    def rate(self) -> int:
        """Rate of the joint."""
        return self.row.rates[self.own]

    @property
    def position(self) -> int:
        """Position of the joint."""
        return self.row.positions[self.own]

    def put(self, q: Array, place: Mapping[int, int], designed: Mapping[Place, int]) -> None:
        """Set the joint in rows of positions with these columns, and numbers over designs of `designed`."""

        def number(plain: float, *word: str | int) -> Any:
            column = designed.get(("tree", "springs", self.spring, *word))
            return plain if column is None else q[:, column]

        row = self.row
        shares = [number(c, "coefficients", n) for n, c in enumerate(row.coefficients)]
        other_terms = sum(shares[n] * q[:, place[k]] for n, k in enumerate(row.positions) if n != self.own)
        with np.errstate(all="ignore"):  # what couples nothing is no position, and is refused where it is loaded
            q[:, place[self.position]] = (number(row.offset, "offset") - other_terms) / shares[self.own]


@dataclass(frozen=True, eq=False, repr=False)
class CouplingOrder(Record):
    """Joints that follow before and after loops close, and couplings that a pose stretches or leaves undetermined."""

    target: Target  # with all that is known before loops close
    before: tuple[FollowingJoint, ...] = ()
    after: tuple[FollowingJoint, ...] = ()
    stretched: frozenset[str] = frozenset()
    undetermined_couplings: frozenset[str] = frozenset()


def coupling_order(robot: Robot, named: Target, completed: Target) -> CouplingOrder:
    """Return the joints that follow at a pose; `completed` adds joints that keep their home position to `named`."""
    rows = dict(enumerate(unstretched_rows(robot.tree)))
    if not rows:
        return CouplingOrder(completed)
    known = set(named.fixed) | set(robot.locked)
    before = _following(rows, known)
    stretched = {row.name for row in rows.values() if known.issuperset(row.rates)}
    home_rates = set(completed.fixed) - known
    known |= home_rates
    before += _following(rows, known)
    locked = robot.locked | frozenset(robot.deformations)
    target = replace(completed, fixed=completed.fixed | {joint.rate for joint in before})
    for part in robot.assembler.parts(target, locked):
        rates = [int(k) for k in part.columns]
        if rates and len(determined_rates(robot.tree, rates, part.rows, robot.home, robot.preference)) == len(rates):
            known |= set(rates)
    after = _following(rows, known)
    remaining = {row.name for row in rows.values()}
    if not home_rates:  # loops close by the pose
        stretched |= {row.name for row in rows.values() if known.issuperset(row.rates)}
    return CouplingOrder(target, tuple(before), tuple(after), frozenset(stretched), frozenset(remaining - stretched))


def _following(rows: dict[int, Coupling], known: set[int]) -> list[FollowingJoint]:
    """Return joints determined by rows one after the other; remove these rows and mark the joints as known."""
    joints: list[FollowingJoint] = []
    waiting = True
    while waiting:
        waiting = False
        for spring, row in list(rows.items()):
            unknown = [n for n, rate in enumerate(row.rates) if rate not in known]
            if len(unknown) == 1:
                joints.append(FollowingJoint(row, spring, unknown[0]))
                known.add(row.rates[unknown[0]])
                del rows[spring]
                waiting = True
    return joints


def place_following_joints(
    joints: Sequence[FollowingJoint], q: Array, position_numbers: Array, designed: Mapping[Place, int] | None = None
) -> None:
    """Set following joints in rows of positions, with numbers over designs in the columns `designed`."""
    place = {int(k): column for column, k in enumerate(position_numbers)}
    for joint in joints:
        joint.put(q, place, designed or {})


def loss_text(coupling: Coupling | CoupledSpring) -> str:
    """Return the efficiencies of a coupling with losses."""
    if not coupling.lossy:
        return ""
    locked = " (self-locking)" if coupling.back <= 0 else ""
    return f"; efficiency {coupling.efficiency:.4g}, driven back {coupling.back:.4g}{locked}"


def spring_text(spring: CoupledSpring, tree: Tree) -> str:
    """Return the equation and the parameters of an elastic coupling."""
    unit = "N/m" if tree.links[spring.numbers[0]].joint.unit == "m" else "N m/rad"
    parts = [f"stiffness {spring.stiffness:.4g} {unit}"]
    parts += [f"damping {spring.damping:.4g} {unit.replace('/', ' s/')}"] if spring.damping else []
    parts += [f"backlash {spring.play:.4g} {unit[-1:] if unit == 'N/m' else 'rad'}"] if spring.play else []
    parts += ["pulls only"] if spring.pulls_only else []
    return f"{coupling_row(spring, tree).equation}: {', '.join(parts)}{loss_text(spring)}"


def coupling_texts(robot: Robot) -> dict[str, str]:
    """Return the equation and the parameters of each coupling, by name."""
    rows = [row for row in robot.closures.constraints if isinstance(row, Coupling)]
    texts = {row.name: f"{row.equation}{loss_text(row)}" for row in rows}
    texts |= {spring.name: spring_text(spring, robot.tree) for spring in robot.tree.springs}
    return {entry.name: texts[entry.name].removeprefix(f"{entry.name}: ") for entry in robot.description.coupling}
