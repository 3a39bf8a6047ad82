"""Poses of legs that move in a plane, in closed form: dyad by dyad, as circles meet.

Newton's method does not prove that a pose is out of reach, and its trials are in vain there. Two circles that do not
meet prove it; where all of them meet, their points on the side of home are positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.closure.leg_geometry import PARALLEL, Dyad, LegSign, Pivot, dyads
from parflex.closure.newton import ClosurePart
from parflex.closure.targets import Target
from parflex.closure.working_modes import working_mode_signs
from parflex.codegen.loop_functions import compiled
from parflex.codegen.optimise import make_program
from parflex.maps.batches import BatchProgram, CarriedLinks, Geometry, rigid_tree
from parflex.maps.engine.entry_loop import column_rows
from parflex.maps.placing.leg_bodies import LegBodies
from parflex.maps.placing.point_leg_places import PointLegPlaces
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.spatial.rotations import cross
from parflex.tree.tree import GROUND

Array = np.ndarray
Pair = tuple[Any, Any]  # a complex number over any scalar
Motion = tuple[Pair, Pair]  # of a group in the plane: turn and origin
SPARE = 1e-9  # of the typical length: how far apart circles must be to count as apart; rounding is far below
FLAT = 1e-5  # of the typical length: height of a triangle from which rounding of its tip is below SPARE
NAMES = {"x", "y", "z", "theta", "rx", "ry", "rz"}


@dataclass(frozen=True, eq=False, repr=False)
class DyadPlaces(Record):
    """Legs of a robot whose platform is given: by how much circles or spheres miss each other, and values of joints."""

    program: BatchProgram
    inputs: Array  # columns of rows that it takes
    moving: Array  # columns of the joints that follow
    turning: Array  # which of them turn
    home: Array  # their positions at home
    length: float
    legs: tuple[tuple[bool, ...], ...]  # of each circle, whether its side is judged: else what follows may be otherwise

    def __call__(self, start: Array) -> tuple[Array, Array]:
        """Rows with given coordinates that are proved to be out of reach; joints of all are put as circles meet."""
        kernel = self.program.kernel(len(start))
        if kernel is None:
            with np.errstate(all="ignore"):  # circles that do not meet
                found = self.program(start[:, self.inputs])
        else:
            found = np.empty((len(start), len(self.program.program.outputs)))
            column_rows(kernel, self.inputs, start, found)
        circles = np.array([len(own) for own in self.legs], dtype=np.int64)
        judged = np.array([int(one) for own in self.legs for one in own], dtype=np.int64)
        beyond, limits = np.zeros(len(start), dtype=np.int64), np.array([PARALLEL, SPARE, FLAT])
        limits *= [1.0, self.length**2, self.length]
        turning = self.turning.astype(np.int64)
        put_angles(found, circles, judged, limits, self.moving, turning, self.home, start, beyond)
        return beyond > 0, start


@compiled
def put_angles(
    found: Array,
    circles: Array,
    judged: Array,
    limits: Array,
    moving: Array,
    turning: Array,
    home: Array,
    q: Array,
    beyond: Array,
) -> None:
    """Joints into the columns `moving` of rows, angles by whole turns near home, and which rows are out of reach.

    `circles` are how many each leg has, `judged` of which the side is; limits: of the tilt, of how far circles are
    apart, squared, and of the height of a triangle.
    """
    count, legs = len(moving), len(circles)
    first = found.shape[1] - count
    for row in range(len(found)):
        k, number = 2 * legs, 0
        for n in range(legs):
            sure = abs(found[row, 2 * n]) < limits[0] and abs(found[row, 2 * n + 1]) < limits[0]
            for _ in range(circles[n]):
                if sure and (found[row, k] > limits[1] or found[row, k + 1] > limits[1]):
                    beyond[row] = 1
                sure = sure and found[row, k + 2] > limits[2] * limits[2] and judged[number] > 0
                k += 3
                number += 1
        for n in range(count):
            own, turns = found[row, first + n], 0.0
            if turning[n] > 0:
                turns = math.floor((home[n] - own) / (2.0 * math.pi) + 0.5)
            q[row, moving[n]] = own + 2.0 * math.pi * turns


def dyad_places(geometry: Geometry, names: Sequence[str], target: Target) -> DyadPlaces | None:
    """Where the legs of a robot are dyads or bring a point to the platform, given by its own coordinates alone."""
    robot, tree = geometry.robot, geometry.tree
    platform = tree.places[tree.end_effector].link
    if not set(names) <= NAMES or target.frames or platform == GROUND:
        return None
    if not tree.links[platform].joint.moves_freely or tree.links[platform].parent != GROUND:
        return None
    parts = [p for p in robot.assembler.parts(target, robot.locked | frozenset(robot.deformations)) if len(p.columns)]
    moving = sorted({robot.tree.link_of_rate[int(k)] for part in parts for k in part.columns})
    if not parts or platform in moving or not all(tree.links[j].joint.one_axis for j in moving):
        return None
    legs = _Legs(geometry, set(moving), [row for part in parts for row in part.rows], platform)
    if not all(legs.add(part) for part in parts):
        return None
    outputs = {"tilt": legs.tilt, "circle": legs.circles, "angle": [legs.angles[j] for j in moving]}
    made = {name: np.array(own, dtype=object) for name, own in outputs.items()}
    program = BatchProgram(make_program(legs.graph, "circles", made, quick=True), geometry.compiled)
    columns = np.array([tree.links[j].q.start for j in moving])
    turning = np.array([bool(tree.links[j].joint.periodic) for j in moving])
    return DyadPlaces(program, legs.inputs, columns, turning, geometry.home[columns], tree.length, tuple(legs.judged))


class _Legs:
    """Traces the legs one after the other."""

    def __init__(self, geometry: Geometry, moving: set[int], rows: Sequence[Any], platform: int) -> None:
        self.geometry, self.platform = geometry, platform
        self.graph, traced = geometry.traced()
        tree, plain = rigid_tree(traced.tree), geometry.robot.closures.loops
        loops = {id(own): loop for own, loop in zip(plain, traced.closures.loops, strict=True)}
        self.bodies = LegBodies(tree, geometry.home, moving | {platform}, rows, loops, platform)
        branch = CarriedLinks(tree, [platform])
        at = pose(branch.tree, branch.symbols(self.graph))
        self.placed = at.rotation[0], at.position[0]
        self.inputs = geometry.inputs(branch.positions)
        self.at = pose(geometry.tree, geometry.home)
        self.tilt: list[Any] = []
        self.circles: list[Any] = []
        self.angles: dict[int, Any] = {}
        self.judged: list[tuple[bool, ...]] = []

    def add(self, part: ClosurePart) -> bool:
        """A part of the robot by its dyads or as a leg in space; False where it is neither, or hangs on others."""
        robot, tree, at = self.geometry.robot, self.geometry.tree, self.at
        judged = working_mode_signs(robot.tree, part.rows, part.columns, part.held, robot.preference, robot.home)
        links = sorted({robot.tree.link_of_rate[int(k)] for k in part.columns})
        numbers = [one for one in judged.dyads if isinstance(one, LegSign)]
        if numbers:
            return not self.geometry.legs_differ and self._point_leg(numbers)
        if not all(tree.links[j].joint.periodic for j in links):
            return False
        found = [one for one in judged.dyads if isinstance(one, Dyad)]
        found = found or dyads(robot.tree, part.rows, part.columns, robot.home) or []
        if not found or self.bodies.tilts(found):
            return False
        normal = np.asarray(found[0].pivots[1].axis(tree, at), dtype=float)
        axes = [Pivot(j).axis(tree, at) for j in links] + [p.axis(tree, at) for one in found for p in one.pivots]
        if any(np.linalg.norm(cross(normal, axis)) > PARALLEL for axis in axes):
            return False
        aside = np.eye(3)[int(np.argmin(np.abs(normal)))]
        u = cross(aside, normal) / np.linalg.norm(cross(aside, normal))
        across = np.array([u, cross(normal, u), normal])
        motions = self._platform(across)
        if not all(self._dyad(one, across, motions) for one in found):
            return False
        self.judged.append((bool(judged.dyads),) * len(found))
        if not {self.bodies.root[k] for j in links for k in (j, tree.links[j].parent)} <= set(motions):
            return False
        self.angles |= {j: self._angle(j, normal, motions) for j in links}
        return True

    def _point_leg(self, numbers: list[LegSign]) -> bool:
        """A leg in space, from where the platform is; False where it is not between this and the ground."""
        bodies, plain = self.bodies, numbers[0].leg
        leg = bodies.with_loops(plain)
        R0, P0 = bodies.at.rotation[self.platform], bodies.at.position[self.platform]
        R, P = self.placed
        on_platform = self.platform in bodies.tree.path(leg.end.link)
        if bodies.root[leg.goal.link] != (GROUND if on_platform else self.platform):
            return False
        known = set(bodies.tree.path(leg.end.link)) - {self.platform, *leg.moving}
        if any(bodies.root[j] not in (GROUND, self.platform, *leg.moving) for j in known):
            return False
        goal = bodies.at.of(leg.goal)[1]
        turn = R0 @ R.T if on_platform else R @ R0.T
        goal = P0 + turn @ (goal - P) if on_platform else P + turn @ (goal - P0)
        found = PointLegPlaces(leg, bodies.tree, bodies.at, {one.which: one.side for one in numbers}, goal, turn)
        L2 = self.geometry.tree.length**2
        self.tilt += [0.0, 0.0]
        self.circles += [size * L2 for miss, height in found.meetings for size in (miss, miss, height)]
        self.judged.append((True,) * len(found.meetings))
        home = self.geometry.home
        self.angles |= {j: home[bodies.tree.links[j].q.start] + value for j, value in found.values.items()}
        return True

    def _platform(self, across: Array) -> dict[int, Motion]:
        """Ground and platform; how far this leaves the plane."""
        R, P = self.placed
        turned = across @ (R @ (self._base(self.platform).T @ across.T))
        self.tilt += [turned[2, 0], turned[2, 1]]
        o = across @ P
        ground: Motion = (1.0, 0.0), (0.0, 0.0)
        return {GROUND: ground, self.platform: ((turned[0, 0], turned[1, 0]), (o[0], o[1]))}

    def _base(self, group: int) -> Array:
        """How the frame of a group stands at the nominal home, from which turns count."""
        return np.eye(3) if group == GROUND else np.asarray(self.at.rotation[group], dtype=float)

    def _dyad(self, one: Dyad, across: Array, motions: dict[int, Motion]) -> bool:
        """Put both bodies where their circles meet; False where they hang on something else."""
        first, middle, last = (self.bodies.sides(pivot) for pivot in one.pivots)
        a, b = middle
        if a not in first:
            a, b = b, a
        bases = [next(iter(set(own) - {body}), a) for own, body in ((first, a), (last, b))]
        if a not in first or b not in last or {a, b} & set(motions) or not set(bases) <= set(motions):
            return False

        def on(group: int, side: dict[int, tuple[Array, Array]]) -> Pair:
            z = across @ (self._base(group) @ side[group][0])
            return z[0], z[1]

        P1, P3 = (_moved(motions[g], on(g, side)) for g, side in zip(bases, (first, last), strict=True))
        way, own, other = _less(P3, P1), _less(on(a, middle), on(a, first)), _less(on(b, last), on(b, middle))
        d2, a2, b2 = _square(way), _square(own), _square(other)
        ab = np.sqrt(a2 * b2)
        share = (d2 + a2 - b2) / (2.0 * d2)
        h2 = a2 - share * share * d2
        home = [across @ pivot.centre(self.at) for pivot in one.pivots]
        above = float(np.sign(cross(home[2] - home[0], home[1] - home[0])[2]))
        arm = _times(way, (share, above * np.sqrt(h2 / d2)))
        self.circles += [d2 - (a2 + b2 + 2.0 * ab), (a2 + b2 - 2.0 * ab) - d2, h2]
        for group, z, vector, p, side in ((a, own, arm, P1, first), (b, other, _less(way, arm), P3, last)):
            turn = _over(_times(vector, (z[0], -z[1])), a2 if group == a else b2)
            motions[group] = turn, _less(p, _times(turn, on(group, side)))
        return True

    def _angle(self, j: int, normal: Array, motions: dict[int, Motion]) -> Any:
        """Position of a joint that turns: from the turns of its two bodies, and how it is mounted on them."""
        bodies, link = self.bodies, self.geometry.tree.links[j]
        k, parent, group = link.joint.axis, bodies.root[link.parent], bodies.root[j]
        A = self._base(parent) @ bodies.local[link.parent][0] @ bodies.at.local_rotation[j]
        mounted = A.T @ (self._base(group) @ bodies.local[j][0])
        i, n = (k + 1) % 3, (k + 2) % 3
        sense = float(np.sign(normal @ Pivot(j).axis(self.geometry.tree, self.at)))
        (c0, s0), (c1, s1) = motions[parent][0], motions[group][0]
        c, s = _times((c1, s1), (c0, -s0))
        c, s = _times((c, sense * s), (mounted[i, i], mounted[n, i]))
        return self.geometry.home[link.q.start] + np.arctan2(s, c)


def _less(x: Pair, y: Pair) -> Pair:
    return x[0] - y[0], x[1] - y[1]


def _times(x: Pair, y: Pair) -> Pair:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _over(x: Pair, size: Any) -> Pair:
    return x[0] / size, x[1] / size


def _square(x: Pair) -> Any:
    return x[0] * x[0] + x[1] * x[1]


def _moved(motion: Motion, z: Pair) -> Pair:
    """A point of a group in the world."""
    turn, origin = motion
    x = _times(turn, z)
    return x[0] + origin[0], x[1] + origin[1]
