"""Core and legs: what keeps its shape at all poses, and substructures that hang on it.

The core is the hub with all that is welded to it, beams included. A leg meets the core at one joint, its port. Seen in
its own axes at the port, the matrices of a leg depend on its joint coordinates only; the joint of the port turns them,
and turning the leg about its base joint changes nothing. What remains, less what inner loops fix, are its shape
coordinates: few enough, as a rule, for tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from parflex.closure.loops import Loop
from parflex.closure.working_modes import following_rates
from parflex.maps.batches import Geometry, Places, Stepper, stepper
from parflex.maps.nodes import Assembly, NodeModel, NotCoveredError, node_model
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.recursion import pose
from parflex.tree.link_tree import GROUND

Array = np.ndarray
CLOSED = 1e-9  # opening, in typical lengths, from which a loop counts as open: Newton ends far below
ALIKE = 1e-10  # relative difference below which two legs are one: rounding is below, any real difference above
MOST = 2  # shape coordinates that a table may have


class NotTabulatedError(Exception):
    """The robot has no core with legs of few shape coordinates; it is solved pose by pose."""


@dataclass(frozen=True, eq=False, repr=False)
class Shape(Record):
    """Shape coordinates of a leg: joints, counted from the base joint where they turn about its axis."""

    base: int  # position of the base joint
    joints: Array  # positions of the joints that are shape coordinates
    others: Array  # positions of the joints that follow by inner loops
    on_base: frozenset[int]  # positions that are counted from the base joint

    def of(self, q: Array) -> Array:
        """Shape coordinates at positions of the rigid tree."""
        return self._read(q, self.joints)

    def rest(self, q: Array) -> Array:
        """The joints that follow."""
        return self._read(q, self.others)

    def _read(self, q: Array, positions: Array) -> Array:
        values = q[:, positions].copy()
        for k, position in enumerate(positions):
            if int(position) in self.on_base:
                values[:, k] -= q[:, self.base]
        return values

    def placed(self, home: Array, joints: Array, others: Array) -> Array:
        """Positions of the rigid tree for shape coordinates, the base joint at home."""
        q = np.repeat(home[None], len(joints), axis=0)
        for positions, values in ((self.joints, joints), (self.others, others)):
            for k, position in enumerate(positions):
                q[:, position] = values[:, k] + (home[self.base] if int(position) in self.on_base else 0.0)
        return q


@dataclass(frozen=True)
class Port:
    """Where a leg meets the core: a joint of one axis whose angle turns the leg against the core."""

    root: int  # link of the core
    position: int  # of the joint among the positions
    axis: int

    def turns(self, q: Array) -> Array:
        """From axes of the core to those of the leg at the port (poses x 3 x 3)."""
        angle = q[:, self.position]
        R = np.zeros((len(q), 3, 3))
        i, j = (self.axis + 1) % 3, (self.axis + 2) % 3
        R[:, self.axis, self.axis] = 1.0
        R[:, i, i] = R[:, j, j] = np.cos(angle)
        R[:, j, i] = np.sin(angle)
        R[:, i, j] = -R[:, j, i]
        return R


@dataclass(eq=False, repr=False)
class LegSubstructure(Record):
    """A substructure: its own unknowns, those of the core at its port, and its matrices at shapes."""

    name: str
    geometry: Geometry
    columns: Array
    port_columns: Array
    assembly: Assembly
    places: Places
    shape: Shape
    inner: Stepper | None
    port: Port
    known: list[Array] = field(default_factory=list)  # positions in the working mode: starts of Newton

    def positions(self, shapes: Array) -> Array:
        """Positions at shapes, the port straight, inner loops closed from the nearest known positions."""
        known = np.concatenate([self.geometry.home[None], *self.known])
        q = self.shape.placed(self.geometry.home, shapes, _guess(self.shape.of(known), self.shape.rest(known), shapes))
        q[:, self.port.position] = 0.0
        if self.inner is None:
            return q
        q, opening, side = self.inner.solve(q)
        if not (opening < CLOSED).all() or not (side > 0).all():
            raise NotTabulatedError(f"the loops of {self.name} do not close at every shape between the requested ones")
        return q

    def matrices(self, shapes: Array) -> tuple[Array, Array]:
        """K and M over the leg's unknowns and the twist at its port, in axes of the leg."""
        return self.assembly(*self.places(self.positions(shapes)))


def _guess(at: Array, values: Array, requested: Array) -> Array:
    """Values at new points from known ones: a plane through the nearest, for Newton near a flat loop starts well."""
    count, width = min(len(at), 4 * (at.shape[1] + 1)), at.shape[1]
    if not width or not values.shape[1] or count <= width:
        return np.repeat(values[:1], len(requested), axis=0)
    nearest = cKDTree(at).query(requested, count)[1].reshape(len(requested), count)
    slopes = np.concatenate([np.ones((len(requested), count, 1)), at[nearest] - requested[:, None]], axis=2)
    return (np.linalg.pinv(slopes) @ values[nearest])[:, 0]


@dataclass(frozen=True, eq=False, repr=False)
class LegStructure(Record):
    """The core with its constant matrices over `columns`, and its legs."""

    model: NodeModel
    columns: Array
    K: Array
    M: Array
    legs: list[LegSubstructure]


def structure(robot: Robot, locked: Robot, geometry: Geometry) -> LegStructure:
    """Core and legs of a robot with its locked joints; an error if there are none."""
    tree = robot.tree
    hub = tree.places[tree.end_effector].link
    if hub == GROUND:
        raise NotTabulatedError("the end effector is fixed to the ground")
    try:
        core = _core(node_model(locked), hub)
        model = node_model(locked, core)
    except NotCoveredError as error:
        raise NotTabulatedError(str(error)) from None
    if model.modal:
        raise NotTabulatedError("the robot has a body whose own coordinates are unknowns")
    roots = {model.paths[j][0] for j in core}
    if GROUND in roots:
        raise NotTabulatedError("the core is attached to the ground")
    columns = np.sort(np.concatenate([np.arange(a, a + n) for a, n in (model.roots[j] for j in roots)]))
    felt = {j: model.felt(j) for j in range(len(tree.links))}
    within = [j for j in core if felt[j] <= set(columns.tolist())]
    legs = [_leg(robot, model, geometry, core, group, felt) for group in _groups(model.columns, columns, felt.values())]
    K, M = _at_home(model, within, columns)
    return LegStructure(model, columns, K, M, legs)


def _core(model: NodeModel, hub: int) -> list[int]:
    """Links that are fixed to the hub but for the bending of beams: the hub first."""
    tree = model.robot.tree
    neighbours: dict[int, set[int]] = {j: set() for j in (GROUND, *range(len(tree.links)))}
    edges = [(j, link.parent) for j, link in enumerate(tree.links) if link.joint.kind == "fixed"]
    edges += [(tie.first, tie.second) for tie in model.cut.ties if tie.closure is not None and not tie.size]
    for a, b in edges:
        neighbours[a].add(b)
        neighbours[b].add(a)
    found, waiting = [hub], [hub]
    while waiting:
        for other in sorted(neighbours[waiting.pop()]):
            if other not in found:
                found.append(other)
                waiting.append(other)
    if GROUND in found:
        raise NotTabulatedError("the core is fixed to the ground")
    return found


def _at_home(model: NodeModel, bodies: list[int], columns: Array) -> tuple[Array, Array]:
    """Matrices of the core: in axes that move with it they are constant."""
    own = Assembly(model, bodies, columns)
    at, count = pose(model.robot.tree, model.robot.home), len(own.links)
    rotation = np.array([at.rotation[j] for j in own.links]).reshape(1, count, 3, 3)
    K, M = own(rotation, np.array([at.position[j] for j in own.links]).reshape(1, count, 3))
    return K[0], M[0]


def _groups(count: int, core: Array, felt: Iterable[set[int]]) -> list[Array]:
    """Unknowns that hang together without those of the core."""
    inside = set(core.tolist())
    pattern = np.eye(count, dtype=bool)
    for columns in felt:
        own = sorted(columns - inside)
        pattern[np.ix_(own, own)] = True
    number, label = connected_components(csr_array(pattern))
    groups = [np.flatnonzero(label == k) for k in range(number)]
    return [group for group in groups if not set(group.tolist()) & inside]


def _leg(
    robot: Robot, model: NodeModel, geometry: Geometry, core: list[int], columns: Array, felt: dict[int, set[int]]
) -> LegSubstructure:
    tree, own = robot.tree, set(columns.tolist())
    bodies = [j for j, unknowns in felt.items() if unknowns & own]
    links = sorted({k for j in bodies for k in model.ends(j)})
    name = tree.links[links[0]].leg or tree.links[links[0]].name
    ends = {c: model.roots[c] for c in {model.paths[j][0] for j in links} if c in core}
    if len(ends) != 1 or set(links) & set(core):
        raise NotTabulatedError(f"{name} does not meet the core at one joint")
    root, (first, width) = next(iter(ends.items()))
    if not set().union(*(felt[j] for j in bodies)) <= own | set(range(first, first + width)):
        raise NotTabulatedError(f"{name} meets the core more than once")
    port = _port(robot, geometry, model, root, links)
    carrying = sorted({i for j in links for i in tree.path(j)})
    rates = [k for i in carrying for k in range(tree.links[i].v.start, tree.links[i].v.stop)]
    rates = [k for k in rates if k not in robot.deformations]  # springs of drives are at rest in every pose
    inner = [loop for loop in robot.closures.loops if set(loop.links(tree)) <= set(carrying)]
    shape, following = _shape(robot, geometry, name, rates, inner)
    assembly = Assembly(model, bodies, np.concatenate([columns, np.arange(first, first + width)]))
    closing = stepper(geometry, inner, following) if following else None
    places = geometry.places(assembly.links)
    return LegSubstructure(
        name, geometry, columns, np.arange(first, first + width), assembly, places, shape, closing, port
    )


def _port(robot: Robot, geometry: Geometry, model: NodeModel, root: int, links: list[int]) -> Port:
    """The joint between core and leg: one of the tree with one axis, carried by the leg, that turns."""
    tree = robot.tree
    link = tree.links[root]
    ties = [(tie, {tie.first, tie.second}) for tie in model.cut.ties]
    crossing = [tie for tie, ends in ties if root in ends and ends & set(links)]
    if len(crossing) != 1 or crossing[0].second != root or link.joint.kind != "revolute" or link.parent not in links:
        raise NotTabulatedError(f"'{link.name}' is not carried by a leg on a joint that turns")
    return Port(root, int(np.searchsorted(geometry.kept, link.q.start)), link.joint.axis)


def _shape(robot: Robot, geometry: Geometry, name: str, rates: list[int], inner: list[Loop]) -> tuple[Shape, list[int]]:
    """Shape coordinates of a leg, and the rates that follow by its inner loops."""
    tree = robot.tree
    links = {k: tree.links[tree.link_of_rate[k]] for k in rates}
    if any(link.joint.kind not in ("revolute", "prismatic") for link in links.values()):
        raise NotTabulatedError(f"{name} has a joint that neither turns nor slides alone")
    position = {k: int(np.searchsorted(geometry.kept, link.q.start)) for k, link in links.items()}
    ground = [k for k, link in links.items() if link.parent == GROUND]
    if not ground or not _one_axis(robot, ground):
        raise NotTabulatedError(f"{name} does not turn as a whole about its base")
    rest = [k for k in rates if k != ground[0]]
    following = following_rates(tree, rest, inner, robot.home, robot.preference)
    free = [k for k in rest if k not in following]
    if len(free) > MOST:
        raise NotTabulatedError(f"the shape of {name} has {len(free)} coordinates")
    shape = Shape(
        position[ground[0]],
        np.array([position[k] for k in free], dtype=int),
        np.array([position[k] for k in following], dtype=int),
        frozenset(position[k] for k in ground[1:]),
    )
    return shape, following


def _one_axis(robot: Robot, ground: list[int]) -> bool:
    """Whether the joints on the ground are one, or all turn about one line."""
    if len(ground) == 1:
        return True
    tree, at = robot.tree, pose(robot.tree, robot.home)
    links = [tree.link_of_rate[k] for k in ground]
    if any(tree.links[j].joint.kind != "revolute" for j in links):
        return False
    axes = [at.rotation[j][:, tree.links[j].joint.axis] for j in links]
    offsets = [at.position[j] - at.position[links[0]] for j in links]
    return all(
        np.abs(axis - axes[0]).max() < 1e-12 and np.abs(np.cross(offset, axes[0])).max() < 1e-12 * tree.length
        for axis, offset in zip(axes, offsets, strict=True)
    )


def alike(first: LegSubstructure, second: LegSubstructure, shapes: Array) -> bool:
    """Whether two legs have the same matrices at some shapes."""
    if len(first.columns) != len(second.columns) or len(first.shape.joints) != len(second.shape.joints):
        return False
    try:
        pairs = list(zip(first.matrices(shapes), second.matrices(shapes), strict=True))
    except NotTabulatedError:
        return False
    return all(np.abs(one - other).max() <= ALIKE * np.abs(one).max() for one, other in pairs)
