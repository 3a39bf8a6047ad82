"""References: the desired pose of the end effector in time, with velocity and acceleration, at rest at both ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.closure.targets import WORDS, shortest_rotation
from parflex.errors import InputError
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.rotations import (
    left_jacobian,
    left_jacobian_rate,
    rotation_from_vector,
    vector_from_rotation,
)
from parflex.trajectories.paths import FrameMotion
from parflex.trajectories.polynomials import Polynomials, hermite, smooth_step, splined

Array = np.ndarray
KNOT_STEP = 2e-3  # s between knots of a curved path: quintics between them err by 1e-13 of it
SAMPLE = 1e-3  # s between samples of a function
MOST_KNOTS = 200_000
LARGEST = 1e9  # m, s or turns


@dataclass(frozen=True, eq=False, repr=False)
class Path(Record):
    """Place and motion of the end effector at times, world axes, a row for each."""

    position: Array
    rotation: Array
    velocity: Array
    angular_velocity: Array
    acceleration: Array
    angular_acceleration: Array
    turn: str = "kept"  # what is asked of a rotation that cannot be whole

    def row(self, k: int) -> FrameMotion:
        """One of them."""
        twist = np.concatenate([self.velocity[k], self.angular_velocity[k]])
        push = np.concatenate([self.acceleration[k], self.angular_acceleration[k]])
        return FrameMotion(self.position[k], self.rotation[k], twist, push, self.turn)


@dataclass(frozen=True, eq=False, repr=False)
class Reference(Record):
    """The reference `name` of the end effector: `pieces`, piecewise polynomials of position (m) and rotation vector.

    The rotation vector (rad) counts from `base`; `time` is the duration (s), `corners` are times of jumps (s), `turn`
    says what is asked of an end effector that cannot have every rotation: "kept" or "axis".
    """

    name: str
    time: float
    pieces: Polynomials  # six channels: position, rotation vector in world axes
    base: Array  # rotation matrix that the rotation vector starts from
    corners: tuple[float, ...] = ()  # times on the way at which a higher derivative jumps
    turn: str = "kept"  # "axis": of an end effector that cannot have every rotation, the z axis has its direction

    def at(self, t: Any) -> Path:
        """Place and motion at the times `t` in s."""
        times = np.clip(np.atleast_1d(np.asarray(t, dtype=float)), 0.0, self.time)
        value, rate, change = (self.pieces.at(times, order) for order in range(3))
        if not value[:, 3:].any() and not rate[:, 3:].any():
            still = np.zeros_like(value[:, :3])
            rotation = np.broadcast_to(self.base, (len(times), 3, 3))
            return Path(value[:, :3], rotation, rate[:, :3], still, change[:, :3], still, self.turn)
        rows = list(zip(value[:, 3:], rate[:, 3:], change[:, 3:], strict=True))
        rotation = np.array([rotation_from_vector(th) @ self.base for th, _, _ in rows])
        spin = np.array([left_jacobian(th) @ th_dot for th, th_dot, _ in rows])
        push = np.array([left_jacobian(th) @ th_ddot + left_jacobian_rate(th, th_dot) for th, th_dot, th_ddot in rows])
        return Path(value[:, :3], rotation, rate[:, :3], spin, change[:, :3], push, self.turn)


def circle(
    robot: Robot,
    radius: float,
    time: float,
    *,
    pose: Any = None,
    axis: Sequence[float] = (0.0, 0.0, 1.0),
    turns: float = 1.0,
) -> Reference:
    """A circle about the end effector's place in a pose (home), which also gives the orientation, that is kept.

    It begins on the side of x (of y where the axis is x), and goes round in a quintic of time, from rest to rest.
    """
    _positive("radius", radius)
    _positive("time", time)
    centre, base = _place(robot, pose)
    numbers = isinstance(axis, (list, tuple, np.ndarray)) and all(_is_number(part) for part in axis)
    normal = np.array(axis, dtype=float) if numbers else np.zeros(0)
    if normal.shape != (3,) or np.linalg.norm(normal) < 1e-9:
        raise InputError("the axis of the circle has no direction", key="axis", value=str(axis), hint="give e.g. 0,0,1")
    if not _is_number(turns) or turns == 0:
        raise InputError("the number of turns is zero", key="turns", value=turns, hint="give e.g. 1")
    normal = normal / np.linalg.norm(normal)
    out = np.eye(3)[0] - normal[0] * normal
    out = out if np.linalg.norm(out) > 1e-6 else np.eye(3)[1] - normal[1] * normal
    out = radius * out / np.linalg.norm(out)
    side = np.cross(normal, out)
    t = _knots(time)
    angle, rate, change = (2 * np.pi * turns * part[:, None] for part in smooth_step(t / time, time))
    c, s = np.cos(angle), np.sin(angle)
    along, across = c * out + s * side, c * side - s * out
    values = (centre + along, across * rate, across * change - along * rate**2)
    return Reference(f"circle of radius {radius:g} m", time, _pieces(t, *values), base, turn=_turn([pose]))


def line(robot: Robot, to: Any, time: float, *, start: Any = None) -> Reference:
    """A straight line from one pose (home) to another, with one turn about a fixed axis, quintic in time."""
    return through(robot, [start, to], time, name="line")


def through(robot: Robot, poses: Sequence[Any], time: Any, *, kind: str = "quintic", name: str = "") -> Reference:
    """Through poses: "quintic" rests at each and goes straight in between, "spline" goes through without a stop.

    `time` is the whole duration, shared evenly, or the time of each pose, from zero on.
    """
    if kind not in ("quintic", "spline"):
        raise InputError(f"there is no kind '{kind}'", key="kind", value=kind, hint="'quintic' or 'spline'")
    if len(poses) < 2:
        raise InputError("a reference needs two poses or more", key="poses", hint="add poses")
    if np.ndim(time) == 0:
        _positive("time", time)
        time = np.linspace(0.0, time, len(poses))
    times = np.asarray(time, dtype=float)
    if len(times) != len(poses) or times[0] != 0 or not np.all(np.diff(times) > 0) or not np.isfinite(times).all():
        raise InputError(
            "the times must increase from zero, one per pose", key="time", value=str(time), hint="give e.g. 0, 1, 2"
        )
    places = [_place(robot, requested_pose) for requested_pose in poses]
    base = places[0][1]
    values = np.array([[*p, *vector_from_rotation(R @ base.T)] for p, R in places])
    label = name or f"{kind} through {len(poses)} poses"
    still = np.zeros_like(values)
    if kind == "quintic":
        corners = tuple(map(float, times[1:-1]))
        return Reference(label, float(times[-1]), hermite(times, values, still, still), base, corners, _turn(poses))
    return Reference(label, float(times[-1]), splined(times, values), base, turn=_turn(poses))


def from_function(robot: Robot, function: Callable[[float], Any], time: float) -> Reference:
    """A function of time that gives a pose in words, such as {"x": 0.1, "y": 0}; what it leaves out stays as at home.

    It is sampled every millisecond; velocities and accelerations are those of a quintic spline through the samples.
    """
    from scipy.interpolate import make_interp_spline

    _positive("time", time)
    t = np.linspace(0.0, time, max(8, int(np.ceil(time / SAMPLE)) + 1))
    if len(t) > MOST_KNOTS:
        raise InputError("the reference is too long", key="time", value=time, hint=f"at most {MOST_KNOTS * SAMPLE:g} s")
    centre, base = _place(robot, None)
    rows = []
    for moment in t:
        coordinates = function(float(moment))
        if not isinstance(coordinates, Mapping):
            raise InputError(
                "a reference must return a pose as a dictionary",
                key="reference",
                value=type(coordinates).__name__,
                hint='e.g. {"x": 0.1}',
            )
        rows.append(_words(robot, coordinates, centre, base))
    spline = make_interp_spline(t, _continuous(np.array(rows)), k=5)
    pieces = hermite(t, *(spline(t, order) for order in range(3)))
    return Reference("function", time, pieces, base, turn=_turn([function(0.0)]))


def from_motion(robot: Robot, name: str, time: float) -> Reference:
    """The end-effector motion that a motion of the robot file, or of a motion file, gives the rigid robot."""
    from parflex.trajectories.motor_motion import from_table, motion_table

    named_table = motion_table(robot, name)
    if named_table is None:
        from parflex.errors import did_you_mean

        known = list(robot.description.motions)
        hint = (
            did_you_mean(name, known) if known else "the robot file defines no motions; use 'circle:radius=0.1,time=2'"
        )
        raise InputError(f"there is no reference '{name}'", key="reference", value=name, hint=hint)
    _positive("time", time)
    motion = from_table(robot, *named_table, time)
    rigid = robot.locking(robot.tree.elastic)
    t, q = _knots(time), motion.start
    rows: list[Array] = []
    place = robot.tree.places[robot.tree.end_effector]
    base = pose(robot.tree, q).of(place)[0]
    for moment in t:
        motors = [dict(zip(robot.actuated_names, map(float, part), strict=True)) for part in motion.at(float(moment))]
        q = rigid.assemble(motors[0], q)
        here = Configuration(rigid, q)
        qd = here.rates(motors[1])
        qdd = here.accelerations(motors[2], qd, motors[1])
        rows.append(_channels(here, qd, qdd, base))
    return Reference(name, time, hermite(t, *np.array(rows).transpose(1, 0, 2)), base)


def _channels(here: Configuration, qd: Array, qdd: Array, base: Array) -> Array:
    """Channels of a reference and their derivatives for a motion of the whole robot."""
    from parflex.recursion.kinematics import motion

    name = here.robot.tree.end_effector
    R, p = here.at.of(here.robot.tree.places[name])
    twist = here.frame_rows(name) @ qd
    push = here.frame_acceleration(name, motion(here.robot.tree, here.at, qd, qdd))
    th = vector_from_rotation(R @ base.T)
    inverse = np.linalg.inv(left_jacobian(th))
    rate = inverse @ twist[3:]
    change = inverse @ (push[3:] - left_jacobian_rate(th, rate))
    return np.array([[*p, *th], [*twist[:3], *rate], [*push[:3], *change]])


def _knots(time: float) -> Array:
    count = int(np.ceil(time / KNOT_STEP))
    if count > MOST_KNOTS:
        raise InputError(
            "the reference is too long", key="time", value=time, hint=f"at most {MOST_KNOTS * KNOT_STEP:g} s"
        )
    return np.linspace(0.0, time, max(8, count) + 1)


def _pieces(t: Array, position: Array, velocity: Array, acceleration: Array) -> Polynomials:
    """Knots of a path that does not turn."""
    still = np.zeros((len(t), 3))
    return hermite(t, *(np.concatenate([part, still], axis=1) for part in (position, velocity, acceleration)))


def _place(robot: Robot, requested_pose: Any) -> tuple[Array, Array]:
    """Position and rotation of the end effector in a pose, all bodies rigid."""
    q = robot.locking(robot.tree.elastic).assemble(requested_pose)
    R, p = pose(robot.tree, q).of(robot.tree.places[robot.tree.end_effector])
    return p, R


def _turn(poses: Sequence[Any]) -> str:
    """Whether poses give directions, which are kept then."""
    words = [
        word.rpartition(".")[2]
        for requested_pose in poses
        if isinstance(requested_pose, Mapping)
        for word in requested_pose
    ]
    return "axis" if set(words) & set(WORDS) else "kept"


def _words(robot: Robot, coordinates: Mapping[str, Any], centre: Array, base: Array) -> Array:
    """Channels of a pose of the end effector in words; no loop is closed, so that many are read at once."""
    from parflex.robot.coordinate_names import POSITION
    from parflex.robot.pose_input import complete_axis, read_end_effector

    position, rotation = read_end_effector(robot.tree, coordinates, "reference")
    direction = complete_axis(robot.tree, coordinates, "reference", robot.home)
    if direction is not None:
        rotation = shortest_rotation(base[:, 2], direction) @ base
    values = [position.get(axis, centre[axis]) for axis in range(len(POSITION))]
    return np.array([*values, *vector_from_rotation((base if rotation is None else rotation) @ base.T)])


def _continuous(values: Array) -> Array:
    """The same rotations without jumps: of the turns about an axis the one nearest to the row before."""
    for k in range(1, len(values)):
        th = values[k, 3:]
        angle = float(np.linalg.norm(th))
        if angle > 1e-9:
            whole = np.round((values[k - 1, 3:] @ th / angle - angle) / (2 * np.pi))
            values[k, 3:] = th * (1 + 2 * np.pi * whole / angle)
    return values


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return number and abs(value) < LARGEST


def _positive(key: str, value: Any) -> None:
    if not _is_number(value) or not value > 0:
        raise InputError(f"'{key}' is not a positive number", key=key, value=value, hint="give e.g. 0.1")
