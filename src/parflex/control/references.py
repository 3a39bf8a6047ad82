"""References: the end effector in time, at rest at both ends, by words, poses, functions and motions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from parflex import checks
from parflex.closure.targets import WORDS, shortest_rotation
from parflex.codegen.laws import driven_components
from parflex.errors import InputError, RobotFileError, did_you_mean
from parflex.recursion.kinematics import motion, pose
from parflex.robot.configuration import Configuration
from parflex.robot.coordinate_names import COMPONENTS, POSITION
from parflex.robot.pose_input import complete_axis, read_end_effector
from parflex.robot.robot import Robot
from parflex.robotfile.values import evaluate
from parflex.spatial.rotations import left_jacobian, left_jacobian_rate, vector_from_rotation
from parflex.trajectories.files import read_table
from parflex.trajectories.follow import as_words
from parflex.trajectories.frames import (
    FrameSegment,
    FrameTrajectory,
    PlacePath,
    circle_segment,
    line_segment,
)
from parflex.trajectories.laws import splined, unit_law
from parflex.trajectories.motions import from_table, motion_table
from parflex.trajectories.trajectory import Trajectory, hermite

Array = np.ndarray
KNOT_STEP = 2e-3  # s between knots of a motion: quintics between them err by 1e-13 of it
SAMPLE, FINE = 1e-3, 1e-6  # s between samples of a function; what a spline may be off between them, of the range
BESIDE = 1e-12  # s: a function is asked so far before and behind a break
MOST_KNOTS = 200_000
TIME = 2.0  # s, by default
KINDS = {  # the words of each kind beside those of a pose, and the one that it needs
    "circle": ("radius", "time", "turns", "axis"),
    "line": ("time",),
    "quintic": ("file", "time"),
    "spline": ("file", "time"),
    "motion": ("name", "time"),
}
EXAMPLE = "write e.g. circle:radius=0.1,time=2"
NEEDED = {
    "circle": "add radius=0.1", "line": "add x=0.1", "quintic": "write quintic:FILE.csv",
    "spline": "write spline:FILE.csv", "motion": "add name",
}  # fmt: skip
Reference = FrameTrajectory  # the public name
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def reference_from(
    robot: Robot, reference: Any, time: float | None = None, breaks: Sequence[float] = ()
) -> FrameTrajectory:
    """Return the reference of a robot: as it is, a function of time, a motion of the motors, or words.

    `time` is the default duration.
    """
    if isinstance(reference, FrameTrajectory):
        return reference
    if isinstance(reference, Trajectory):
        return from_motion(robot, reference, time or (reference.end if np.isfinite(reference.end) else TIME))
    time = TIME if time is None else time
    if callable(reference):
        return from_function(robot, reference, time, breaks)
    if not isinstance(reference, (str, Mapping)):
        raise InputError("this is not a reference", key="reference", value=str(reference)[:40], hint=EXAMPLE)
    if isinstance(reference, str) and reference.strip() in robot.description.motions:  # a motion may be called "circle"
        table: dict[str, Any] = {"kind": "motion", "name": reference.strip()}
    else:
        table = parse_reference(reference) if isinstance(reference, str) else dict(reference)
    kind = table.pop("kind", None)
    if kind not in tuple(KINDS):  # a list is no kind either
        raise InputError(
            f"there is no kind '{kind}' of references", key="reference", value=str(kind),
            hint=did_you_mean(str(kind), KINDS),
        )  # fmt: skip
    pose = {word: value for word, value in table.items() if word not in KINDS[kind]}
    known = [*KINDS[kind]]
    if kind in ("circle", "line"):
        known += ("x", "y", "theta") if robot.tree.planar else COMPONENTS
    for word in pose:
        component = word.removeprefix(f"{robot.tree.end_effector}.").removesuffix("_deg")
        if kind not in ("circle", "line") or component not in COMPONENTS:
            raise InputError(f"a {kind} has no '{word}'", key="reference", value=word, hint=did_you_mean(word, known))
    needed = "pose" if kind == "line" else KINDS[kind][0]
    if needed not in table | ({"pose": pose} if pose else {}):
        raise InputError(f"the {needed} of the {kind} is missing", key="reference", value=kind, hint=NEEDED[kind])
    given = {"time": time} | {word: value for word, value in table.items() if word in KINDS[kind]}
    if kind == "circle":
        return circle(robot, **given, pose=pose or None)
    if kind == "line":
        return line(robot, pose, given["time"])
    if kind == "motion":
        return from_motion(robot, str(given["name"]), given["time"])
    return _from_file(robot, kind, str(given["file"]), given["time"])


def parse_reference(text: str) -> dict[str, Any]:
    """Return `circle:radius=0.1,time=2`, `line:x=0.1`, `spline:FILE.csv` or the name of a motion as a table."""
    kind, colon, rest = text.partition(":")
    kind = kind.strip()
    if not colon and kind not in KINDS:
        return {"kind": "motion", "name": kind}
    table: dict[str, Any] = {"kind": kind}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        word, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals and kind in ("quintic", "spline"):
            table["file"] = word
        elif not equals or not word or not value:
            raise InputError(f"'{part}' is not KEY=VALUE", key="reference", value=text, hint=EXAMPLE)
        elif word in table:
            raise InputError(f"'{word}' is given twice", key="reference", value=text, hint="keep one of them")
        else:
            try:
                table[word] = value if word in ("axis", "name", "file") else evaluate(value, {})
            except RobotFileError as error:
                message = f"'{value}' in '{text}' is not a number"
                raise InputError(message, key="reference", value=text, hint=error.hint) from None
    return table


def _from_file(robot: Robot, kind: str, file: str, time: float) -> FrameTrajectory:
    """Return the reference through poses of a table, one in each row, with or without a column of times."""
    columns = read_table(file, "reference")
    names = [name for name in columns if name != "t"]
    if not names:
        raise InputError("has no pose columns", file=file, key="reference", value=file, hint="add columns x, y")
    rows = np.stack([columns[name] for name in names], axis=1)
    if not np.isfinite(rows).all():
        raise InputError("not all numbers are finite", file=file, key="reference", hint="correct the table")
    try:
        return through(robot, [as_words(names, row) for row in rows], columns.get("t", time), kind=kind)
    except InputError as error:
        error.file = error.file or file
        raise


def circle(
    robot: Robot,
    radius: float,
    time: float,
    *,
    pose: Any = None,
    axis: str | Sequence[float] = "z",
    turns: float = 1.0,
) -> FrameTrajectory:
    """Return a circle about the end effector's place in a pose (home), which also gives the constant orientation.

    It begins on the side of x (of y where the axis is x), and is quintic in time, from rest to rest.
    """
    checks.number(radius, "radius", above=0.0)
    checks.number(time, "time", above=0.0, example=2)
    centre, base = _place(robot, pose)
    vector = AXES.get(axis, ()) if isinstance(axis, str) else axis
    normal = checks.numbers(vector, (3,), "axis")
    if np.linalg.norm(normal) < 1e-9:
        raise InputError("the axis of the circle has no direction", key="axis", value=str(axis), hint="give e.g. 0,0,1")
    if not checks.number(turns, "turns", example=1):
        raise InputError("the number of turns is zero", key="turns", value=turns, hint="give e.g. 1")
    normal = normal / np.linalg.norm(normal)
    out = np.eye(3)[0] - normal[0] * normal
    out = out if np.linalg.norm(out) > 1e-6 else np.eye(3)[1] - normal[1] * normal
    path = circle_segment(centre, radius * out / np.linalg.norm(out), normal)
    path = path.turned(base, np.zeros(3), _turn([pose]))
    law = unit_law("quintic", time).scaled(0.0, np.zeros(1), np.array([turns * path.length]))
    return _reference(robot, f"circle of radius {radius:g} m", [FrameSegment(path, law.breaks, law)])


def line(robot: Robot, to: Any, time: float, *, start: Any = None) -> FrameTrajectory:
    """Return a straight line from one pose (home) to another, with one rotation about a fixed axis, quintic in time."""
    return through(robot, [start, to], time, name="line")


def through(robot: Robot, poses: Sequence[Any], time: Any, *, kind: str = "quintic", name: str = "") -> FrameTrajectory:
    """Return a reference through poses: "quintic" rests at each and is straight in between, "spline" does not stop.

    `time` is the whole duration, shared evenly, or the time of each pose, from zero on.
    """
    if kind not in ("quintic", "spline"):
        raise InputError(f"there is no kind '{kind}'", key="kind", value=kind, hint="'quintic' or 'spline'")
    if len(poses) < 2:
        raise InputError("a reference needs two poses or more", key="poses", hint="add poses")
    if np.ndim(time) == 0:
        checks.number(time, "time", above=0.0, example=2)
        time = np.linspace(0.0, time, len(poses))
    times = np.asarray(time, dtype=float)
    if len(times) != len(poses) or times[0] != 0 or not np.all(np.diff(times) > 0) or not np.isfinite(times).all():
        raise InputError(
            "the times must increase from zero, one per pose", key="time", value=str(time), hint="give e.g. 0, 1, 2"
        )
    places, turn = [_place(robot, requested_pose) for requested_pose in poses], _turn(poses)
    label = name or f"{kind} through {len(poses)} poses"
    if kind == "spline":
        base = places[0][1]
        values = np.array([[*p, *vector_from_rotation(R @ base.T)] for p, R in places])
        return _reference(robot, label, [FrameSegment(PlacePath(splined(times, values), base, turn), times[[0, -1]])])
    segments = []
    for ends, (begin, end) in zip(pairwise(places), pairwise(times), strict=True):
        law = unit_law("quintic", end - begin).scaled(begin, np.zeros(1), np.ones(1))
        segments.append(FrameSegment(line_segment(*ends, turn), np.array([begin, end]), law))
    return _reference(robot, label, segments)


def from_function(
    robot: Robot, function: Callable[[float], Any], time: float, breaks: Sequence[float] = ()
) -> FrameTrajectory:
    """Return a function of time that gives a pose in words, such as {"x": 0.1, "y": 0}; others stay as at home.

    Velocities and accelerations are those of a quintic spline through samples, a millisecond apart between `breaks`.
    """
    from scipy.interpolate import make_interp_spline

    checks.number(time, "time", above=0.0, example=2)
    centre, base = _place(robot, None)

    def row(moment: float) -> Array:
        coordinates = function(float(moment))
        if not isinstance(coordinates, Mapping):
            text, kind = "a reference must return a pose as a dictionary", type(coordinates).__name__
            raise InputError(text, key="reference", value=kind, hint='e.g. {"x": 0.1}')
        return _words(robot, coordinates, centre, base)

    turn, segments = _turn([function(0.0)]), []
    for begin, end in pairwise(sorted({0.0, *(float(t) for t in breaks if 0 < t < time), float(time)})):
        t = _knots(begin, end, SAMPLE)
        inside = np.clip(t, begin + BESIDE * (begin > 0), end - BESIDE * (end < time))
        both = np.sort(np.concatenate([inside, (t[1:] + t[:-1]) / 2]))
        values = _continuous(np.array([row(moment) for moment in both]))
        spline = make_interp_spline(t, values[::2], k=5)
        off = np.abs(spline(both[1::2]) - values[1::2]).max(axis=1)
        if off.max() > FINE * max(float(np.ptp(values, axis=0).max()), FINE):
            moment = float(both[1::2][off.argmax()])
            raise InputError(
                f"the reference jumps or changes too fast to be sampled about t = {moment:.6g} s", key="reference",
                value=moment, hint=f"give a smooth function, or name the times of its bends, breaks=[{moment:.6g}]",
            )  # fmt: skip
        pieces = hermite(t, *(spline(t, order) for order in range(3)))
        segments.append(FrameSegment(PlacePath(pieces, base, turn), np.array([begin, end])))
    return _reference(robot, "function", segments)


def from_motion(robot: Robot, motion: str | Trajectory, time: float) -> FrameTrajectory:
    """Return the motion of the end effector of the rigid robot under a motion of the motors, by name or a plan."""
    checks.number(time, "time", above=0.0, example=2)
    if isinstance(motion, Trajectory):
        planned = motion.until(time)
    else:
        named_table = motion_table(robot, motion)
        if named_table is None:
            known = list(robot.description.motions)
            hint = did_you_mean(motion, known) if known else f"the robot file defines no motions; {EXAMPLE}"
            raise InputError(f"there is no reference '{motion}'", key="reference", value=motion, hint=hint)
        planned = from_table(robot, *named_table, time)
    rigid, q, rows = robot.locking(robot.tree.elastic), planned.start, []
    t = _knots(0.0, time, KNOT_STEP)
    base = pose(robot.tree, q).of(robot.tree.places[robot.tree.end_effector])[0]
    for moment in t:
        position, velocity, acceleration = (as_words(robot.actuated_names, part) for part in planned.at(float(moment)))
        q = rigid.assemble(position, q)
        here = Configuration(rigid, q)
        qd = here.rates(velocity)
        rows.append(_channels(here, qd, here.accelerations(acceleration, qd, velocity), base))
    pieces = hermite(t, *np.array(rows).transpose(1, 0, 2))
    return _reference(robot, planned.name, [FrameSegment(PlacePath(pieces, base), t[[0, -1]])])


def _channels(here: Configuration, qd: Array, qdd: Array, base: Array) -> Array:
    """Return position and rotation vector of the end effector, with derivatives, for a motion of the whole robot."""
    name = here.robot.tree.end_effector
    R, p = here.at.of(here.robot.tree.places[name])
    twist = here.frame_rows(name) @ qd
    push = here.frame_acceleration(name, motion(here.robot.tree, here.at, qd, qdd))
    th = vector_from_rotation(R @ base.T)
    inverse = np.linalg.inv(left_jacobian(th))
    rate = inverse @ twist[3:]
    change = inverse @ (push[3:] - left_jacobian_rate(th, rate))
    return np.array([[*p, *th], [*twist[:3], *rate], [*push[:3], *change]])


def _reference(robot: Robot, name: str, segments: Sequence[FrameSegment]) -> FrameTrajectory:
    driven = driven_components(robot.locking(robot.tree.elastic))
    return FrameTrajectory(name, robot.tree.end_effector, robot.tree.planar, driven, tuple(segments), robot.home)


def _knots(begin: float, end: float, step: float) -> Array:
    if (end - begin) / step > MOST_KNOTS:
        raise InputError("the reference is too long", key="time", value=end, hint=f"at most {MOST_KNOTS * step:g} s")
    return np.linspace(begin, end, max(8, int(np.ceil((end - begin) / step))) + 1)


def _place(robot: Robot, requested_pose: Any) -> tuple[Array, Array]:
    """Return position and rotation of the end effector in a pose, all bodies rigid."""
    q = robot.locking(robot.tree.elastic).assemble(requested_pose)
    R, p = pose(robot.tree, q).of(robot.tree.places[robot.tree.end_effector])
    return p, R


def _turn(poses: Sequence[Any]) -> str:
    """Return whether poses give directions, which are kept then."""
    words = {word.rpartition(".")[2] for given in poses if isinstance(given, Mapping) for word in given}
    return "axis" if words & set(WORDS) else "kept"


def _words(robot: Robot, coordinates: Mapping[str, Any], centre: Array, base: Array) -> Array:
    """Return the channels of a pose of the end effector in words; no loop is closed, so that many are read at once."""
    position, rotation = read_end_effector(robot.tree, coordinates, "reference")
    direction = complete_axis(robot.tree, coordinates, "reference", robot.home)
    if direction is not None:
        rotation = shortest_rotation(base[:, 2], direction) @ base
    values = [position.get(axis, centre[axis]) for axis in range(len(POSITION))]
    return np.array([*values, *vector_from_rotation((base if rotation is None else rotation) @ base.T)])


def _continuous(values: Array) -> Array:
    """Return the same rotations without jumps: of the turns about an axis the one nearest to the row before."""
    for k in range(1, len(values)):
        th = values[k, 3:]
        angle = float(np.linalg.norm(th))
        if angle > 1e-9:
            whole = np.round((values[k - 1, 3:] @ th / angle - angle) / (2 * np.pi))
            values[k, 3:] = th * (1 + 2 * np.pi * whole / angle)
    return values
