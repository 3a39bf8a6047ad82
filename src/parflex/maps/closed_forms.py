"""Closed-form poses of planar and spatial legs for many poses.

Legs in a plane are solved dyad by dyad, as intersections of circles. Newton's method cannot prove that a pose is out of
reach; two circles without an intersection prove it. Otherwise the points on the side of home are the positions.

Joints of legs in space follow from the place of their platform over any scalar. In the reference configuration, home,
axes are lines; joints move a leg by rotations about and translations along these, the last joint first.
`parflex.closure.leg_geometry` describes how the joints follow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.closure.constraints import Loop
from parflex.closure.leg_geometry import (
    CROSSED_AXES,
    PARALLEL,
    Dyad,
    JointAxis,
    LegSign,
    Parallelogram,
    Pivot,
    PointLeg,
    dyads,
    in_plane,
    joint_axis,
    nearest_point,
    plane_normal,
    vanishing_terms,
)
from parflex.closure.newton import ClosurePart
from parflex.closure.targets import Target
from parflex.closure.working_modes import working_mode_signs
from parflex.codegen.loop_functions import compiled
from parflex.codegen.optimise import make_program
from parflex.codegen.program import Program
from parflex.maps.kinematics import BatchProgram, Geometry, Subtree, rigid_tree
from parflex.maps.simd import column_rows
from parflex.records import Record
from parflex.recursion.kinematics import Pose, pose
from parflex.robot.robot import Robot
from parflex.spatial.rotations import cross
from parflex.symbolic.expression import Expression
from parflex.tree.tree import GROUND, Place, Tree

Array = np.ndarray

Pair = tuple[Any, Any]  # a complex number over any scalar

Motion = tuple[Pair, Pair]  # of a group in the plane: turn and origin

SPARE = 1e-9  # of the typical length: how far apart circles must be to count as apart; rounding is far below

FLAT = 1e-5  # of the typical length: height of a triangle from which rounding of its tip is below SPARE

NAMES = {"x", "y", "z", "theta", "rx", "ry", "rz"}

Move = tuple[Any, Any]  # cosine and sine of a turn; a way, and nothing

Meeting = tuple[Any, Any]  # by how much the parts of an equation miss each other; how far they are from touching

ROUNDING = 1e-10  # beside squares of what they are differences of: below, squares tell nothing

Frame = tuple[Array, Array]  # rotation and position


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
                outputs = self.program(start[:, self.inputs])
        else:
            outputs = np.empty((len(start), len(self.program.program.outputs)))
            column_rows(kernel, self.inputs, start, outputs)
        circles = np.array([len(leg) for leg in self.legs], dtype=np.int64)
        judged = np.array([int(flag) for leg in self.legs for flag in leg], dtype=np.int64)
        beyond, limits = np.zeros(len(start), dtype=np.int64), np.array([PARALLEL, SPARE, FLAT])
        limits *= [1.0, self.length**2, self.length]
        turning = self.turning.astype(np.int64)
        put_angles(outputs, circles, judged, limits, self.moving, turning, self.home, start, beyond)
        return beyond > 0, start


@compiled
def put_angles(
    outputs: Array,
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
    first = outputs.shape[1] - count
    for row in range(len(outputs)):
        k, number = 2 * legs, 0
        for n in range(legs):
            sure = abs(outputs[row, 2 * n]) < limits[0] and abs(outputs[row, 2 * n + 1]) < limits[0]
            for _ in range(circles[n]):
                if sure and (outputs[row, k] > limits[1] or outputs[row, k + 1] > limits[1]):
                    beyond[row] = 1
                sure = sure and outputs[row, k + 2] > limits[2] * limits[2] and judged[number] > 0
                k += 3
                number += 1
        for n in range(count):
            angle, turns = outputs[row, first + n], 0.0
            if turning[n] > 0:
                turns = math.floor((home[n] - angle) / (2.0 * math.pi) + 0.5)
            q[row, moving[n]] = angle + 2.0 * math.pi * turns


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
    arrays = {name: np.array(values, dtype=object) for name, values in outputs.items()}
    program = BatchProgram(make_program(legs.graph, "circles", arrays, quick=True), geometry.compiled)
    columns = np.array([tree.links[j].q.start for j in moving])
    turning = np.array([bool(tree.links[j].joint.periodic) for j in moving])
    return DyadPlaces(program, legs.inputs, columns, turning, geometry.home[columns], tree.length, tuple(legs.judged))


class _Legs:
    """Traces the legs one after the other."""

    def __init__(self, geometry: Geometry, moving: set[int], rows: Sequence[Any], platform: int) -> None:
        self.geometry, self.platform = geometry, platform
        self.graph, traced = geometry.traced()
        tree, plain = rigid_tree(traced.tree), geometry.robot.closures.loops
        loops = {id(nominal): loop for nominal, loop in zip(plain, traced.closures.loops, strict=True)}
        self.bodies = LegBodies(tree, geometry.home, moving | {platform}, rows, loops, platform)
        branch = Subtree(tree, [platform])
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
        judged = working_mode_signs(robot.tree, part, robot.preference, robot.home)
        links = sorted({robot.tree.link_of_rate[int(k)] for k in part.columns})
        numbers = [dyad for dyad in judged.dyads if isinstance(dyad, LegSign)]
        if numbers:
            return not self.geometry.legs_differ and self._point_leg(numbers)
        if not all(tree.links[j].joint.periodic for j in links):
            return False
        leg_dyads = [dyad for dyad in judged.dyads if isinstance(dyad, Dyad)]
        leg_dyads = leg_dyads or dyads(robot.tree, part.rows, part.columns, robot.home) or []
        if not leg_dyads or self.bodies.tilts(leg_dyads):
            return False
        normal = np.asarray(leg_dyads[0].pivots[1].axis(tree, at), dtype=float)
        axes = [Pivot(j).axis(tree, at) for j in links] + [p.axis(tree, at) for dyad in leg_dyads for p in dyad.pivots]
        if any(np.linalg.norm(cross(normal, axis)) > PARALLEL for axis in axes):
            return False
        aside = np.eye(3)[int(np.argmin(np.abs(normal)))]
        u = cross(aside, normal) / np.linalg.norm(cross(aside, normal))
        across = np.array([u, cross(normal, u), normal])
        motions = self._platform(across)
        if not all(self._dyad(dyad, across, motions) for dyad in leg_dyads):
            return False
        self.judged.append((bool(judged.dyads),) * len(leg_dyads))
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
        places = PointLegPlaces(leg, bodies.tree, bodies.at, {sign.which: sign.side for sign in numbers}, goal, turn)
        L2 = self.geometry.tree.length**2
        self.tilt += [0.0, 0.0]
        self.circles += [size * L2 for miss, height in places.meetings for size in (miss, miss, height)]
        self.judged.append((True,) * len(places.meetings))
        home = self.geometry.home
        self.angles |= {j: home[bodies.tree.links[j].q.start] + value for j, value in places.values.items()}
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

    def _dyad(self, dyad: Dyad, across: Array, motions: dict[int, Motion]) -> bool:
        """Put both bodies where their circles meet; False where they hang on something else."""
        first, middle, last = (self.bodies.sides(pivot) for pivot in dyad.pivots)
        a, b = middle
        if a not in first:
            a, b = b, a
        bases = [next(iter(set(member) - {body}), a) for member, body in ((first, a), (last, b))]
        if a not in first or b not in last or {a, b} & set(motions) or not set(bases) <= set(motions):
            return False

        def on(group: int, side: dict[int, tuple[Array, Array]]) -> Pair:
            z = across @ (self._base(group) @ side[group][0])
            return z[0], z[1]

        P1, P3 = (_moved_pair(motions[g], on(g, side)) for g, side in zip(bases, (first, last), strict=True))
        span, member, other = _less(P3, P1), _less(on(a, middle), on(a, first)), _less(on(b, last), on(b, middle))
        d2, a2, b2 = _square_of_pair(span), _square_of_pair(member), _square_of_pair(other)
        ab = np.sqrt(a2 * b2)
        share = (d2 + a2 - b2) / (2.0 * d2)
        h2 = a2 - share * share * d2
        home = [across @ pivot.centre(self.at) for pivot in dyad.pivots]
        above = float(np.sign(cross(home[2] - home[0], home[1] - home[0])[2]))
        arm = _times(span, (share, above * np.sqrt(h2 / d2)))
        self.circles += [d2 - (a2 + b2 + 2.0 * ab), (a2 + b2 - 2.0 * ab) - d2, h2]
        for group, z, vector, p, side in ((a, member, arm, P1, first), (b, other, _less(span, arm), P3, last)):
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


def _square_of_pair(x: Pair) -> Any:
    return x[0] * x[0] + x[1] * x[1]


def _moved_pair(motion: Motion, z: Pair) -> Pair:
    """A point of a group in the world."""
    turn, origin = motion
    x = _times(turn, z)
    return x[0] + origin[0], x[1] + origin[1]


class PointLegPlaces:
    """The joints of one leg: `goal` is where the centre of its closure has to be, `turn` how the other body stands.

    Both are seen from the body that carries the leg as it stands in the reference, `turn` from the reference on.
    """

    def __init__(self, leg: PointLeg, tree: Tree, at: Pose, sides: dict[int, float], goal: Array, turn: Array) -> None:
        self.leg, self.sides = leg, sides
        self.lines = leg.lines(tree, at)
        rotation, self.end = at.of(leg.end)
        self.goal, self.meetings = goal, list[Meeting]()
        moves = self._crossed() if leg.kind == CROSSED_AXES else self._parallel()
        self.values = {
            j: np.arctan2(move[1], move[0]) if line.turns else move[0]
            for j, line, move in zip(leg.arm, self.lines, moves, strict=True)
        }
        if leg.linkage is not None:
            self._parallelogram(leg.linkage, at, moves[2])
        if leg.wrist:
            u1, u2 = leg.loop.u1, leg.loop.u2
            end_axis, goal_axis = (u1, u2) if leg.carries_first else (u2, u1)
            goal_direction = turn @ (at.of(leg.goal)[0] @ goal_axis)
            for line, move, revolute in zip(self.lines, moves, leg.turning(self.lines), strict=True):
                goal_direction = _turned_vector(goal_direction, line, move, back=True) if revolute else goal_direction
            last = joint_axis(tree, at, leg.wrist[0])
            c, s = _angle(last.along, rotation @ end_axis, goal_direction)
            self.values[leg.wrist[0]] = np.arctan2(s, c)

    def _parallelogram(self, linkage: Parallelogram, at: Pose, move: Move) -> None:
        """Joints that move with a bar, and whether it is on its side: past the flat pose it is in another mode."""
        for j, sense in zip(linkage.links[1:], linkage.senses, strict=True):
            self.values[j] = sense * self.values[linkage.bar]
        B, C, B2, _ = linkage.corners(at)
        axis, base, bar = self.lines[2].along, B2 - B, C - B
        area = self.sides[2] * (axis @ cross(base, _turned_vector(bar, self.lines[2], move)))
        size = np.sqrt(_square_of_vector(base) * _square_of_vector(bar))
        self.meetings.append((-area / size, area / size))

    # -- neighbours that cross ----------------------------------------------------------------------------

    def _crossed(self) -> list[Move]:
        """Two neighbours keep the distance of their crossing from the end, or from its goal."""
        first, second, third = self.lines
        if self.leg.alone == 0:
            C = nearest_point(second, third)
            move = self._meets(first, C, self.goal, _square_of_vector(self.end - C), 0)
            moved_point = _moved_place(self.goal, first, move, back=True)
            return [move, *self._turns(second, third, self.end - C, moved_point - C)]
        C = nearest_point(first, second)
        move = self._meets(third, self.end, C, _square_of_vector(self.goal - C), 0)
        moved_point = _moved_place(self.end, third, move)
        return [*self._turns(first, second, moved_point - C, self.goal - C), move]

    def _turns(self, first: JointAxis, second: JointAxis, begin: Array, end: Array) -> tuple[Move, Move]:
        """Turns about two axes that bring a vector to another of its length: the second turn first."""
        a, b = first.along, second.along
        n, c = cross(a, b), a @ b
        size, height, depth = n @ n, a @ end, b @ begin
        alpha, beta = (height - c * depth) / size, (depth - c * height) / size
        length = _square_of_vector(begin)
        left = length - (alpha * alpha + beta * beta + 2.0 * (alpha * beta) * c)  # what is along n, times its square
        self.meetings.append((-left / length, left / length))
        between = alpha * a + beta * b + self.sides[1] * np.sqrt(left / size) * n
        return _angle(a, between, end), _angle(b, begin, between)

    # -- neighbours that are parallel ------------------------------------------------------------------------

    def _parallel(self) -> list[Move]:
        """Two neighbours keep the height above their plane."""
        line, (i, j) = self.lines[self.leg.alone], self.leg.pair
        first, second = self.lines[i], self.lines[j]
        n = plane_normal(first, second)
        if self.leg.alone == 0:  # seen from the plane, which the first joint carries, the goal goes back
            moving, target_height, back = self.goal, n @ self.end, True
        else:
            moving, target_height, back = self.end, n @ self.goal, False
        if line.turns:
            v = moving - line.point
            A, B = n @ in_plane(v, line.along), n @ cross(line.along, v)
            D = target_height - n @ line.point - (n @ line.along) * (line.along @ v)
            move = self._root(A, -B if back else B, D, _square_of_vector(v) + D * D, 0)
        else:
            travel = (target_height - n @ moving) / (n @ line.along)
            move = (-travel if back else travel), 0.0
        moved_point = _moved_place(moving, line, move, back)
        goal, end = (moved_point, self.end) if self.leg.alone == 0 else (self.goal, moved_point)
        two = self._in_plane(first, second, n, goal, end)
        return [move, *two] if self.leg.alone == 0 else [*two, move]

    def _in_plane(self, first: JointAxis, second: JointAxis, n: Array, goal: Array, end: Array) -> tuple[Move, Move]:
        """Two joints that move the end to its goal, at the same height: the second joint first."""
        if not first.turns:  # the pivot of the second is carried along, and the goal is on a circle about it
            move = self._meets(first, second.point, goal, _square_of_vector(in_plane(end - second.point, n)), 1, n)
            moved_point = _moved_place(goal, first, move, back=True)
            return move, _angle(second.along, end - second.point, moved_point - second.point)
        move = self._meets(second, end, first.point, _square_of_vector(in_plane(goal - first.point, n)), 1, n)
        moved_point = _moved_place(end, second, move)
        return _angle(first.along, moved_point - first.point, goal - first.point), move

    # -- one equation -----------------------------------------------------------------------------------------

    def _meets(
        self, line: JointAxis, point: Array, centre: Array, radius2: Any, which: int, normal: Array | None = None
    ) -> Move:
        """The move of a joint that brings a point to a distance from a centre; with a normal, within its plane."""
        if line.turns:
            v, w = point - line.point, centre - line.point
            if normal is not None:
                v, w = in_plane(v, normal), in_plane(w, normal)
            h, k = line.along @ v, line.along @ w
            A, B = w @ v - h * k, w @ cross(line.along, v)
            D = (_square_of_vector(w) + _square_of_vector(v) - radius2) / 2.0 - h * k
            return self._root(A, B, D, _square_of_vector(w) + _square_of_vector(v) + radius2, which)
        w = centre - point if normal is None else in_plane(centre - point, normal)
        m, square = w @ line.along, _square_of_vector(w)
        left = m * m - square + radius2
        size = square + radius2
        self.meetings.append((-left / size, left / size))
        return m + self.sides[which] * np.sqrt(left), 0.0

    def _root(self, A: Any, B: Any, D: Any, size: Any, which: int) -> Move:
        """Cosine and sine of x with A cos x + B sin x = D, on its side."""
        square = A * A + B * B
        left = square - D * D
        self.meetings.append((-left / (square + D * D + ROUNDING * (size * size)), left / square))
        root = self.sides[which] * np.sqrt(left)
        return (A * D - B * root) / square, (B * D + A * root) / square


def _angle(along: Array, begin: Array, end: Array) -> Move:
    """Cosine and sine, up to a common factor, of the turn that brings a vector to another about an axis."""
    return begin @ end - (along @ begin) * (along @ end), along @ cross(begin, end)


def _moved_place(place: Array, line: JointAxis, move: Move, back: bool = False) -> Any:
    """A place that a joint moves."""
    if not line.turns:
        return place - move[0] * line.along if back else place + move[0] * line.along
    return line.point + _turned_vector(place - line.point, line, move, back)


def _turned_vector(vector: Array, line: JointAxis, move: Move, back: bool = False) -> Any:
    """A vector that a joint turns."""
    c, s = move
    size = np.sqrt(c * c + s * s)
    c, s = c / size, (-s if back else s) / size
    h = line.along @ vector
    return c * vector + ((1.0 - c) * h) * line.along + s * cross(line.along, vector)


def _square_of_vector(vector: Array) -> Any:
    return vector @ vector


class LegBodies:
    """Groups of links with frames of their own: that of the platform, of the ground, or of their first link.

    `loops` are closures by the identity of those that rows name, with symbols where designs differ.
    """

    def __init__(
        self, tree: Tree, home: Array, moving: set[int], rows: Sequence[Any], loops: dict[int, Loop], platform: int
    ) -> None:
        self.tree, self.loops = tree, loops
        self.at = pose(tree, home)
        across = 2 if tree.planar else 3
        tied: list[tuple[int, int, Frame]] = [
            (link.parent, j, (self.at.local_rotation[j], self.at.local_position[j]))
            for j, link in enumerate(tree.links)
            if j not in moving
        ]
        for row in rows:
            if isinstance(row, Loop) and row.turning == "none" and len(row.translations) == across:
                loop = loops.get(id(row), row)
                tied.append(
                    (loop.first.link, loop.second.link, _joined(_frame(loop.first), _turned_frame(_frame(loop.second))))
                )
        self.root: dict[int, int] = {}  # of each link, that whose frame its group has
        self.local: dict[int, Frame] = {}
        for first in (GROUND, platform, *range(len(tree.links))):
            if first not in self.root:
                self._reach(first, tied)

    def _reach(self, first: int, tied: list[tuple[int, int, Frame]]) -> None:
        self.root[first], self.local[first] = first, (np.eye(3), np.zeros(3))
        waiting = [first]
        while waiting:
            here = waiting.pop()
            for a, b, frame in tied:
                for known, new, step in ((a, b, frame), (b, a, _turned_frame(frame))):
                    if known == here and new not in self.root:
                        self.root[new], self.local[new] = first, _joined(self.local[here], step)
                        waiting.append(new)

    def sides(self, pivot: Pivot) -> dict[int, tuple[Array, Array]]:
        """Of each of the two groups that a pivot joins: its place and its axis in the frame of the group."""
        if pivot.loop is None:
            parent, axis = self.tree.links[pivot.link].parent, np.eye(3)[self.tree.links[pivot.link].joint.axis]
            frame = self.local[pivot.link]
            on = _joined(self.local[parent], (self.at.local_rotation[pivot.link], self.at.local_position[pivot.link]))
            return {self.root[pivot.link]: (frame[1], frame[0] @ axis), self.root[parent]: (on[1], on[0] @ axis)}
        loop = self.loops.get(id(pivot.loop), pivot.loop)
        sides = {}
        for place, axis in ((loop.first, loop.u1), (loop.second, loop.u2)):
            R, p = _joined(self.local[place.link], _frame(place))
            sides[self.root[place.link]] = p, R @ (np.eye(3)[2] if self.tree.planar else axis)
        return sides

    def with_loops(self, leg: PointLeg) -> PointLeg:
        """The leg with symbols in its closures where designs differ."""
        inner, loop = leg.linkage, self.loops.get(id(leg.loop), leg.loop)
        if inner is not None:
            inner = replace(inner, loop=self.loops.get(id(inner.loop), inner.loop))
        return replace(leg, loop=loop, linkage=inner)

    def tilts(self, dyads: Sequence[Dyad | LegSign]) -> bool:
        """Whether designs turn an axis of a dyad on its body: then axes that are parallel at home need not stay so."""
        pivots = [pivot for dyad in dyads if isinstance(dyad, Dyad) for pivot in dyad.pivots]
        axes = [axis for pivot in pivots for _, axis in self.sides(pivot).values()]
        return any(isinstance(x, Expression) for axis in axes for x in np.ravel(axis))


def _bodies(geometry: Geometry, robot: Robot, rows: Sequence[Any], rates: Sequence[int]) -> LegBodies:
    """Bodies of a part, over symbols where designs differ."""
    loops = {
        id(nominal): loop for nominal, loop in zip(geometry.robot.closures.loops, robot.closures.loops, strict=True)
    }
    moving = {geometry.robot.tree.link_of_rate[int(k)] for k in rates}
    return LegBodies(rigid_tree(robot.tree), geometry.home, moving, rows, loops, GROUND)


def tilted(geometry: Geometry, rows: Sequence[Any], rates: Sequence[int], dyads: Sequence[Dyad | LegSign]) -> bool:
    """Whether designs turn axes of the dyads of a part, whose joints have these rates, or take a leg in space apart."""
    if geometry.designs is None or not dyads:
        return False
    if any(isinstance(dyad, LegSign) for dyad in dyads) and geometry.legs_differ:
        return True
    return _bodies(geometry, geometry.traced()[1], rows, rates).tilts(dyads)


def leg_structure(geometry: Geometry, target: Target) -> Program | None:
    """From numbers of a design to what vanishes where joints of its legs in space lie as those of the nominal robot.

    None where no number of designs says where they lie.
    """
    robot = geometry.robot
    graph, traced = geometry.traced()
    terms: list[Any] = []
    for part in robot.assembler.parts(target, robot.locked | frozenset(robot.deformations)):
        signs = working_mode_signs(robot.tree, part, robot.preference, robot.home).dyads
        legs = [sign.leg for sign in signs if isinstance(sign, LegSign)][:1]
        for leg in legs:
            bodies = _bodies(geometry, traced, part.rows, part.columns.tolist())
            terms += vanishing_terms(bodies.with_loops(leg), bodies.tree, bodies.at, robot.tree.length)
    varied = [x for part in terms for x in np.ravel(part) if isinstance(x, Expression)]
    outputs = {"structure": np.array(varied, dtype=object)}
    return make_program(graph, "structure", outputs, quick=True) if varied else None


def _frame(place: Place) -> Frame:
    return place.rotation, place.position


def _joined(first: Frame, second: Frame) -> Frame:
    return first[0] @ second[0], first[1] + first[0] @ second[1]


def _turned_frame(frame: Frame) -> Frame:
    R, p = frame
    return R.T, -(R.T @ p)
