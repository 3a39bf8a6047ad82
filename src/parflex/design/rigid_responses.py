"""Responses of the robot with rigid bodies, at its pose or in a motion: mass, condition, transmission angle, workspace.

A specified motion stays fixed as numbers of the robot change, and coordinates at rest stay at rest; theory (60) for
velocities and accelerations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from parflex.closure import mobility
from parflex.closure.constraints import Coupling, Loop
from parflex.closure.newton import ClosurePart
from parflex.design.design_state import DesignState, FollowingConfiguration, MultipleValue, combined, inverse
from parflex.design.statics_responses import minimum_norm_solution
from parflex.errors import InputError, did_you_mean
from parflex.forces.forces import tree_forces
from parflex.forces.section_forces import beam_chains
from parflex.recursion.energy import kinetic_energy
from parflex.recursion.kinematics import jacobians, motion
from parflex.robot.configuration import SINGULAR, Configuration
from parflex.robot.coordinate_names import read_columns
from parflex.robot.gearing import find_gearing
from parflex.robot.limits import POSITION, check_limits, limit_margin
from parflex.robot.load import acting_robot
from parflex.robot.pose_input import read_motion
from parflex.robot.robot import Robot
from parflex.spatial.dual import Sensitive, slopes, slopes_last, with_slopes
from parflex.spatial.rotations import cross
from parflex.tree.tree import GROUND

Array = np.ndarray
EQUAL = 1e-7  # of a singular value: those nearer to each other are taken as equal
SHORT = 1e-9  # of the typical length: points that are nearer to each other have no direction
MOST_CELLS = 1_000_000
EXACT = 1e-9  # of the largest rate: rows that are missed by less are kept as the robot changes
FULL = 1e-10  # of the largest singular value of the kept rows


def mass(state: DesignState, argument: str) -> Any:
    """Mass of all moving bodies, or of one frame; of a beam that of all its elements."""
    tree = state.robot.tree
    numbers = list(range(len(tree.links)))
    if argument:
        carrier = tree.place(argument).link
        if carrier == GROUND or tree.links[carrier].name != argument:
            on = "the ground" if carrier == GROUND else f"'{tree.links[carrier].name}', whose mass has its own in it"
            raise InputError(
                f"'{argument}' is fixed on {on}", key="response", value=f"mass:{argument}", hint="name a moving frame"
            )
        chain = beam_chains(state.robot).get(argument)
        numbers = [carrier] if chain is None else list(chain.links)
    return sum((state.twin.tree.links[k].body.m for k in numbers), 0.0)


def motor_number(state: DesignState, argument: str, name: str) -> int:
    """The motor that is meant; the only one need not be named."""
    names = state.robot.actuated_names
    if not argument and len(names) == 1:
        return 0
    if argument not in names:
        raise InputError(
            f"there is no motor '{argument}'" if argument else "no motor is named",
            key="response",
            value=f"{name}:{argument}",
            hint=did_you_mean(argument, names),
        )
    return names.index(argument)


def inertia(state: DesignState, argument: str) -> Any:
    """Return the effective inertia of a motor with the others locked, bodies undeformed."""
    return RigidState(state).inertia(motor_number(state, argument, "inertia"))


def joint_margin(state: DesignState, argument: str) -> Any:
    """Distance of the joint nearest to its limits, as share of its range; negative outside."""
    return limit_margin(state.twin.tree.links, state.q, argument)


def reachable(state: DesignState, argument: str) -> Any:
    """1 where all joints are within their limits, else 0; without slopes."""
    if state.count:
        raise InputError(
            "'reachable' is 0 or 1, so that it has no slopes", key="response", value="reachable",
            hint="limit 'limit_margin' or 'singularity' in its place",
        )  # fmt: skip
    positions = dict(zip(state.robot.tree.position_names, state.here.q, strict=True))
    return float(not any(one.key == POSITION for one in check_limits(state.robot, positions)))


def conditioning(state: DesignState, argument: str) -> Any:
    """Condition number of the motors' rates per motion of the robot, bodies rigid: large near singular poses."""
    rigid = RigidState(state)
    value = rigid.here.condition.platform
    if not np.isfinite(value) or value > SINGULAR:
        raise InputError(
            "the motors do not hold the robot at this pose" if np.isfinite(value) else "it has too few motors",
            key="response",
            value="conditioning",
            hint="choose another pose or actuation",
        )
    if not state.count:
        return value
    driven, without_rotors = list(rigid.robot.actuated), ~rigid.robot.gearing.rotors
    B = rigid.here.J / rigid.robot.gearing.units[:, None]
    A = B[driven]
    squares, vectors = scipy.linalg.eigh(A.T @ A, B[without_rotors].T @ B[without_rotors])
    if np.sqrt(squares[-1]) <= mobility.SMALL:
        raise InputError(
            "the condition number is measured against other poses here, so that it has no slopes",
            key="response", value="conditioning", hint="choose another pose",
        )  # fmt: skip
    ends = []
    for end in (squares[-1], squares[0]):
        equal = np.flatnonzero(np.abs(np.sqrt(squares) - np.sqrt(end)) <= EQUAL * np.sqrt(end))
        rates = rigid.there.along(vectors[:, equal]) / units_with_slopes(rigid)[:, None]
        form = rates[driven].T @ rates[driven] - end * (rates[without_rotors].T @ rates[without_rotors])
        ends.append(slopes_last(form, Sensitive, state.count) / (2 * np.sqrt(end)))
    return ratio_of(ends[0], ends[1], float(np.sqrt(squares[-1])), float(np.sqrt(squares[0])))


def units_with_slopes(rigid: RigidState) -> Array:
    """Units of all rates: the typical length of the robot, which measures sliding against turning, and gears."""
    tree, length = rigid.robot.tree, rigid.twin.tree.computed_length
    slides = tree.rate_units != 1.0
    plain = np.array([length if slides[k] else 1.0 for k in range(tree.n)], dtype=object)
    return find_gearing(rigid.twin.tree, rigid.twin.closures, plain).units if rigid.robot.gearing.any else plain


def ratio_of(top: Array, low: Array, largest: float, smallest: float) -> Any:
    """The ratio of two values that may be multiple: all ratios of their changes, of which the largest is meant."""
    value, m, n = largest / smallest, len(top), len(low)
    count = top.shape[2]
    matrices = np.zeros((count, m * n, m * n))
    for k in range(count):
        matrices[k] = (np.kron(top[:, :, k], np.eye(n)) - value * np.kron(np.eye(m), low[:, :, k])) / smallest
    if m * n == 1:
        return Sensitive(value, matrices[:, 0, 0])
    return MultipleValue(value, (matrices + matrices.transpose(0, 2, 1)) / 2, m * n - 1)


def transmission(state: DesignState, argument: str) -> Any:
    """Angle between the links that meet in a passive revolute joint, folded to at most a right angle; smallest of all.

    A link points from its joint to the next joint or closure on it. Near zero the two push along one line, and small
    errors of one become large motions of the other.
    """
    tree = state.robot.tree
    names = [link.name for j, link in enumerate(tree.links) if _passive(state, j)]
    if argument and argument not in names:
        raise InputError(
            f"'{argument}' is not a passive revolute joint between two links",
            key="response",
            value=f"transmission:{argument}",
            hint=did_you_mean(argument, names),
        )
    angles = [_angle(state, tree.number(name)) for name in ([argument] if argument else names)]
    if not angles:
        raise InputError(
            "no passive revolute joint joins two links",
            key="response",
            value="transmission",
            hint="request conditioning",
        )
    return min(angles, key=lambda x: getattr(x, "value", x))


def _passive(state: DesignState, j: int) -> bool:
    """Whether two links of some length meet in this joint, and no motor turns it."""
    tree = state.robot.tree
    link = tree.links[j]
    turning = link.joint.one_axis and link.joint.unit == "rad" and link.v.start not in state.robot.actuated
    if not turning or link.v.start in state.robot.locked or link.parent == GROUND:
        return False
    return _points(state, j, state.here.at) is not None


def _points(state: DesignState, j: int, at: Any) -> tuple[Array, Array, Array] | None:
    """Origin of the joint before, of this one, and the first other joint or closure on its link."""
    robot = state.robot
    tree, twin = robot.tree, state.twin
    before = tree.links[j].parent
    while before != GROUND and not tree.links[before].joint.one_axis:
        before = tree.links[before].parent  # nodes of beams and fixed frames
    if before == GROUND:
        return None
    plain, origin = state.here.at.position, at.position[j]
    shortest = SHORT * tree.length
    if np.linalg.norm(plain[j] - plain[before]) <= shortest:
        return None
    ahead: list[Any] = [
        (at.position[k], plain[k])
        for k in range(j + 1, len(tree.links))
        if tree.links[k].joint.one_axis and j in tree.path(tree.links[k].parent)
    ]
    for loop, twin_loop in zip(robot.closures.loops, twin.closures.loops, strict=True):
        for place, twin_place in ((loop.first, twin_loop.first), (loop.second, twin_loop.second)):
            if place.link != GROUND and j in tree.path(place.link):
                ahead.append((at.of(twin_place)[1], state.here.at.of(place)[1]))
    for point, plain_point in ahead:
        if np.linalg.norm(plain_point - plain[j]) > shortest:
            return at.position[before], origin, point
    return None


def _angle(state: DesignState, j: int) -> Any:
    at = state.there.at if state.count else state.here.at
    points = _points(state, j, at)
    assert points is not None
    first, second = points[1] - points[0], points[2] - points[1]
    normal = cross(first, second)
    return np.arctan2(np.sqrt(normal @ normal), abs(first @ second))


def singularity(state: DesignState, argument: str) -> Any:
    """Distance to singularities: 1 over the largest condition number of legs, platform and closures, as in maps."""
    condition = state.here.condition
    numbers = {"platform": condition.platform if condition.enough_motors else 1.0, "closures": condition.closures}
    numbers |= {f"leg {name}": value for name, value in condition.legs.items()}
    largest = max(1.0, *numbers.values())
    if not state.count:
        return 1.0 / largest
    if not np.isfinite(largest):
        raise InputError(
            "the pose is singular, where the distance has no slopes", key="response", value="singularity",
            hint="choose another pose",
        )  # fmt: skip
    active = [name for name, value in numbers.items() if value >= (1 - EQUAL) * largest]
    rigid = RigidState(state)
    answers = [_condition_of(state, rigid, name, numbers[name]) for name in active]
    return inverse(combined(answers, state.count, smallest=False))


def _condition_of(state: DesignState, rigid: RigidState, name: str, value: float) -> Any:
    """The condition number of the platform, of the closures or of a leg, with slopes."""
    if name == "platform":
        return conditioning(state, "") if rigid.here.condition.enough_motors else value
    robot = rigid.robot
    if name == "closures":
        part = ClosurePart(name, tuple(robot.closures.rows), np.asarray(robot.free))
    else:
        part = rigid.here.leg_parts[name.removeprefix("leg ")]
    part = _without_rotors(robot, part)
    plain = robot.assembler.block(rigid.here.q, part)
    if 0 in plain.shape or (value == 1.0 and min(plain.shape) == 1):
        return value
    U, sizes, Vt = np.linalg.svd(plain)
    last = int(np.argmin(np.abs(sizes[0] / np.maximum(sizes, 1e-300) - value)))
    if abs(sizes[0] / sizes[last] / value - 1) > EQUAL:
        raise InputError(
            "the condition number is measured against other poses here, so that it has no slopes",
            key="response", value="singularity", hint="choose another pose",
        )  # fmt: skip
    change = slopes_last(_with_slopes(rigid, part), Sensitive, state.count)
    ends = []
    for end in (sizes[0], sizes[last]):  # d sigma = u^T dB v, of equal ones the symmetric part on their directions
        equal = np.flatnonzero(np.abs(sizes - end) <= EQUAL * end)
        form = np.einsum("ia,ijk,bj->abk", U[:, equal], change, Vt[equal])
        ends.append((form + form.transpose(1, 0, 2)) / 2)
    return ratio_of(ends[0], ends[1], float(sizes[0]), float(sizes[last]))


def _without_rotors(robot: Robot, part: ClosurePart) -> ClosurePart:
    """A part without rotors of gears and the couplings that turn them, where these do nothing else."""
    rotors = {int(k) for k in part.columns if robot.gearing.rotors[k]}
    rows = tuple(row for row in part.rows if not (isinstance(row, Coupling) and rotors & set(row.rates)))
    if len(part.rows) - len(rows) != len(rotors):
        return part
    return replace(part, rows=rows, columns=np.array([k for k in part.columns if int(k) not in rotors], dtype=int))


def _with_slopes(rigid: RigidState, part: ClosurePart) -> Array:
    """Rows of a part without units for its own rates, with slopes; the length that measures them has its own."""
    tree, length, at = rigid.twin.tree, rigid.twin.tree.computed_length, rigid.there.at
    links = jacobians(tree, at)
    units = units_with_slopes(rigid)[part.columns]
    number = {id(row): k for k, row in enumerate(rigid.robot.closures.rows)}
    blocks: list[Array] = []
    for row in part.rows:
        row_block = rigid.twin.closures.rows[number[id(row)]].jacobian(tree, at, links)[:, part.columns] * units
        if isinstance(row, Loop):
            straight = len(row.translations)
            blocks += [row_block[:straight] / length, row_block[straight:]]
        else:  # a coupling: its largest entry is 1
            blocks.append(row_block / max(row_block.ravel(), key=_magnitude))
    return np.concatenate(blocks)


def _magnitude(x: Any) -> float:
    """Of a number, or of the value of one with slopes."""
    return float(abs(getattr(x, "value", x)))


def area(state: DesignState, argument: str) -> Any:
    """Area, or length or volume, that the end effector reaches within ranges: x,FROM,TO,COUNT;y,FROM,TO,COUNT;rz,VALUE.

    It counts cells in which all joints are within their limits, so that it has no slopes.
    """
    from parflex.maps.continuation import OK
    from parflex.maps.kinematics import Geometry  # which brings the compiler, and is not needed elsewhere
    from parflex.maps.positions import PositionSolver

    axes = [_axis(part, argument) for part in argument.split(";")]
    names, units = read_columns(state.robot.tree, [name for name, _, _ in axes], f"area:{argument}")
    axes = [
        (name, values * unit, step * unit if len(values) > 1 else step)
        for name, unit, (_, values, step) in zip(names, units, axes, strict=True)
    ]
    if state.count:
        raise InputError(
            "the area that is reached counts cells, so that it has no slopes",
            key="response",
            value=f"area:{argument}",
            hint="request its value, or limit 'transmission' or 'singularity' over a region",
        )
    cells = int(np.prod([len(values) for _, values, _ in axes]))
    if cells > MOST_CELLS:
        raise InputError(f"the area has {cells} cells", key="response", value=argument, hint=f"up to {MOST_CELLS}")
    grid = np.stack([x.ravel() for x in np.meshgrid(*(values for _, values, _ in axes), indexing="ij")], axis=1)
    geometry = Geometry(state.robot)
    geometry.settle(len(grid))
    solver = PositionSolver(geometry, names, grid[len(grid) // 2].tolist())
    return float((solver(grid).status == OK).sum() * np.prod([step for _, _, step in axes]))


def _axis(text: str, argument: str) -> tuple[str, Array, float]:
    """A coordinate, the middles of its cells, and their width."""
    name, *numbers = [word.strip() for word in text.split(",")]
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        values = []
    if len(values) == 1:
        return name, np.array(values), 1.0
    if len(values) != 3 or values[2] != int(values[2]) or not 1 <= values[2] <= MOST_CELLS or values[0] >= values[1]:
        raise InputError(
            f"'{text}' is not a range", key="response", value=f"area:{argument}", hint="write area:x,-0.1,0.1,20;y,..."
        )
    count, width = int(values[2]), (values[1] - values[0]) / values[2]
    return name, values[0] + width * (np.arange(count) + 0.5), width


class RigidState:
    """The robot at its pose with undeformed bodies, in the motion of the load case."""

    def __init__(self, state: DesignState) -> None:
        self.state = state
        robot, twin = (acting_robot(original, state.case.without) for original in (state.robot, state.twin))
        lossy = [row.name for row in robot.closures.constraints if getattr(row, "lossy", False)]
        if lossy:
            raise InputError(
                f"the coupling '{lossy[0]}' loses power by a share that jumps where its direction changes",
                key="response",
                value=lossy[0],
                hint="leave friction out (without)",
            )
        self.robot = robot.locking(robot.deformations)
        self.here = Configuration(self.robot, state.here.q)
        self.twin = twin.locking(robot.deformations)

    @cached_property
    def there(self) -> FollowingConfiguration:
        """The robot with slopes; without keys the robot itself."""
        return FollowingConfiguration(self.twin, self.state.q, self.here.reduction.partition)

    @cached_property
    def rates(self) -> Array:
        """All rates in the motion."""
        velocity, known = self.state.case.velocity, self.state.moving
        rates = self.here.rates(velocity) if known is None else known[0]
        if not velocity or not self.state.count:
            return rates
        return self._followed(rates, velocity, lambda here: _rates(here, rates))

    @cached_property
    def accelerations(self) -> Array:
        """All accelerations in the motion."""
        acceleration, velocity = self.state.case.acceleration, self.state.case.velocity
        plain, accelerations = self.state.moving or (None, None)
        if plain is None or accelerations is None:
            plain = self.here.rates(velocity)
            accelerations = self.here.accelerations(acceleration, plain, velocity)
        if not (acceleration or velocity) or not self.state.count:
            return accelerations
        requested = dict(acceleration) if acceleration else dict.fromkeys(velocity or {}, 0.0)

        def does(here: Configuration) -> Does:
            return _accelerations(here, self.rates if here is self.there else plain, accelerations)

        return self._followed(accelerations, requested, does)

    def _followed(self, nominal: Array, requested: Mapping[str, float], does: Callable[[Configuration], Does]) -> Array:
        """Rates or accelerations with slopes: rows that are met exactly stay so, and determine them together."""
        targets, count = read_motion(self.robot.tree, requested, "velocity"), self.state.count
        size = max(1.0, float(np.abs(nominal).max(initial=0.0)))
        free, units = self.robot.free, self.robot.tree.rate_units[self.robot.free]
        used_rows, used_drift = [], []
        here, there = (_rows(at, does(at), *targets) for at in (self.here, self.there))
        for (A, values, desired), (_, moved, _) in zip(here, there, strict=True):
            if np.abs(values - desired).max(initial=0.0) > EXACT * size:
                break
            used_rows.append(A[:, free] * units)
            used_drift.append(slopes(moved, count, Sensitive))
        J, drift = np.concatenate(used_rows), np.concatenate(used_drift)
        sizes = np.linalg.svd(J, compute_uv=False) if J.size else np.zeros(0)
        if len(sizes) < len(free) or sizes[len(free) - 1] < FULL * sizes[0]:
            raise InputError(
                "the motion that is given does not determine how all joints move",
                key="velocity",
                value=", ".join(requested),
                hint="give all components of the end effector, or of all motors",
            )
        changes = np.zeros((len(nominal), count))
        changes[free] = -units[:, None] * np.linalg.lstsq(J, drift, rcond=None)[0]
        return with_slopes(nominal, changes, Sensitive)

    @cached_property
    def forces(self) -> Array:
        """Forces along all rates that the motion needs."""
        here = self.there if self.state.count else self.here
        return tree_forces(here, self.rates, self.accelerations, self.state.case.wrench)

    @cached_property
    def efforts(self) -> Array:
        """Efforts of all motors; of least norm where they are more than the freedoms."""
        self.here.refuse_undefined_actuation()
        J_a = self._motions[list(self.state.robot.actuated)]
        return minimum_norm_solution(J_a.T, self.there.pulled(self.forces))

    @cached_property
    def _motions(self) -> Array:
        """Columns of motions of all independent rates."""
        if not self.state.count:
            return self.here.J
        return self.there.along(np.eye(len(self.here.reduction.partition.independent)))

    def inertia(self, number: int) -> Any:
        """Twice the kinetic energy as one motor turns at unit rate and the others rest."""
        self.here.refuse_undefined_actuation()
        J_a = self._motions[list(self.state.robot.actuated)]
        unit = np.zeros(len(J_a))
        unit[number] = 1.0
        right = J_a.T @ unit
        gram = J_a.T @ J_a
        turned = self._motions @ minimum_norm_solution(gram, right)
        here = self.there if self.state.count else self.here
        return 2 * kinetic_energy(here.robot.tree, here.at, turned)


Does = tuple[Array, Array, Callable[[str], Array]]  # what the closures do, all coordinates, and a frame in world axes


def _rates(here: Configuration, qd: Array) -> Does:
    return here.closure_jacobian @ qd, qd, lambda name: here.frame_rows(name) @ qd


def _accelerations(here: Configuration, qd: Array, qdd: Array) -> Does:
    moving = motion(here.robot.tree, here.at, qd, qdd)
    return here.robot.closures.bias(here.at, moving), qdd, lambda name: here.frame_acceleration(name, moving)


def _rows(
    here: Configuration, does: Does, joints: dict[int, float], frames: dict[str, dict[int, float]]
) -> list[tuple[Array, Array, Array]]:
    """Rows of a motion in falling priority: their Jacobian, what they are and what they should be.

    Closures come first, then what is specified, the end effector, motors, and all coordinates.
    """
    closed, along, frame = does
    every, motors = np.eye(len(along)), [k for k in here.robot.actuated if k not in here.robot.locked]
    blocks = [(here.closure_jacobian, closed, np.zeros(here.robot.closures.size))]
    blocks.append((every[list(joints)], along[list(joints)], np.array(list(joints.values()))))
    for name, parts in frames.items():
        blocks.append((here.frame_rows(name)[list(parts)], frame(name)[list(parts)], np.array([*parts.values()])))
    if frames or not joints:
        name = next(iter(frames), here.robot.tree.end_effector)
        others = [k for k in range(6) if k not in frames.get(name, {})]
        blocks += [(here.frame_rows(name)[[k]], frame(name)[[k]], np.zeros(1)) for k in others]
    blocks += [(every[motors], along[motors], np.zeros(len(motors))), (every, along, np.zeros(len(along)))]
    return [block for block in blocks if len(block[1])]
