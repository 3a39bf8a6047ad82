"""Responses of the rigid robot: mass, efforts, transmission angle, workspace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from parflex.closure import mobility
from parflex.closure.constraints import Coupling, Loop
from parflex.closure.newton import ClosurePart
from parflex.design.design_state import DesignState
from parflex.design.peaks import largest_on_the_way
from parflex.design.response_value import MultipleValue, combined, inverse
from parflex.design.rigid_motion import RigidState
from parflex.design.statics_responses import holding_effort
from parflex.errors import InputError, did_you_mean
from parflex.forces.section_forces import beam_chains
from parflex.recursion.kinematics import jacobians
from parflex.robot.configuration import SINGULAR
from parflex.robot.coordinate_names import read_columns
from parflex.robot.gearing import find_gearing
from parflex.robot.limits import POSITION, check_limits, limit_margin
from parflex.robot.robot import Robot
from parflex.spatial.dual import Sensitive, slopes_last
from parflex.spatial.rotations import cross
from parflex.tree.tree import GROUND

Array = np.ndarray

EQUAL = 1e-7  # of a singular value: those nearer to each other are taken as equal

SHORT = 1e-9  # of the typical length: points that are nearer to each other have no direction

MOST_CELLS = 1_000_000


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
    """Inertia that a motor feels while the others rest, bodies undeformed."""
    return RigidState(state).inertia(motor_number(state, argument, "inertia"))


def effort(state: DesignState, argument: str) -> Any:
    """Effort of a motor in the motion, bodies undeformed; of a flexible robot without a motion, the holding effort.

    JOINT@MOTION is the largest size of it on the way of a motion of the file.
    """
    if "@" in argument:
        motor = argument.rpartition("@")[0]
        number = motor_number(state, motor, "effort")
        return largest_on_the_way(state, f"effort:{argument}", lambda rigid: rigid.efforts[[number]])
    number = motor_number(state, argument, "effort")
    circumstances = state.case
    if state.robot.tree.elastic and not circumstances.velocity and not circumstances.acceleration:
        return holding_effort(state, number)
    return RigidState(state).efforts[number]


def speed(state: DesignState, argument: str) -> Any:
    """Rate of a motor in the motion, in size; JOINT@MOTION is the largest on the way."""
    if "@" in argument:
        motor = argument.rpartition("@")[0]
        rate = state.robot.actuated[motor_number(state, motor, "speed")]
        return largest_on_the_way(state, f"speed:{argument}", lambda rigid: rigid.rates[[rate]], rubs=False)
    number = motor_number(state, argument, "speed")
    return abs(RigidState(state).rates[state.robot.actuated[number]])


def power(state: DesignState, argument: str) -> Any:
    """Mechanical power of a motor in the motion, in size; of all together where none is named.

    JOINT@MOTION, or @MOTION for all motors, is the largest on the way.
    """
    if "@" in argument:
        motor = argument.rpartition("@")[0]
        chosen = [motor_number(state, motor, "power")] if motor else slice(None)
        return largest_on_the_way(state, f"power:{argument}", lambda rigid: powers(rigid)[chosen])
    rigid = RigidState(state)
    if not argument and len(state.robot.actuated) > 1:
        return sum((abs(value) for value in powers(rigid)), 0.0)
    return abs(powers(rigid)[motor_number(state, argument, "power")])


def powers(rigid: RigidState) -> Array:
    """Powers of all motors in a motion, with their signs."""
    return rigid.efforts * rigid.rates[list(rigid.state.robot.actuated)]


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
            hint="ask for conditioning",
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
    from parflex.maps.closed_rows import OK
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
            hint="ask for its value, or limit 'transmission' or 'singularity' over a region",
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
