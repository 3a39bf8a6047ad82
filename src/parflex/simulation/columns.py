"""From rows of states to named columns: frames in motion, efforts, energies, powers, opening of the loops."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from parflex.codegen.outputs import MANY_RATES, batched_signals, signals
from parflex.errors import InputError
from parflex.forces.taut_cables import driven_cables
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.simulation.problem import Problem
from parflex.simulation.segments import Segment, Segments
from parflex.spatial.batched import over_rows
from parflex.spatial.rotations import ORIENTATION, quaternions
from parflex.trajectories.follow import RedundantDrive

Array = np.ndarray
AXES = "xyz"
OF_JOINTS = ("q", "qd", "qdd", "effort")  # how their columns begin
OF_FRAMES = re.compile("[xyz]|theta|orientation_[wxyz]|(local_)?(v|w|a|al)[xyz]")  # how theirs end
NORMAL = 1e-6  # of an axis: what lies in the plane is rounding
FEW = 20_000  # rows up to which NumPy is done before a program would be compiled


def columns_of(
    problem: Problem, run: Segments, frames: Sequence[str], spare: RedundantDrive | None = None
) -> dict[str, Array]:
    """All columns of a run, by one program in one go; accelerations are those of the rates of the problem.

    More motors than freedoms share the efforts of those that drive.
    """
    return columns_from(problem, run, seen_in(problem, run, frames, spare), frames, spare)


def seen_in(
    problem: Problem, run: Segments, frames: Sequence[str], spare: RedundantDrive | None = None
) -> dict[str, Array]:
    """Signals in all rows of a run: positions, rates, accelerations, what is given, gates, frames, energies."""
    looked_at = list(dict.fromkeys([*frames, *problem.wrenches]))
    seen = [_seen(part, keep, looked_at, spare) for part, keep in zip(run.parts, run.kept(), strict=True)]
    found = {name: np.concatenate([part[name] for part in seen]) for name in seen[0]}
    first = len(problem.robot.actuated)
    wrenches = {f"{name}.wrench": first + 6 * k for k, name in enumerate(problem.wrenches)}
    return found | {name: found["given"][:, k : k + 6] for name, k in wrenches.items()}


def with_all_motors(problem: Problem, spare: RedundantDrive | None) -> Robot:
    """The robot of a run as it acts, with spare motors where there are any."""
    robot = problem.robot
    return robot if spare is None else replace(robot, actuated=spare.robot.actuated, known_home=robot.home)


def columns_from(
    problem: Problem, run: Segments, found: dict[str, Array], frames: Sequence[str], spare: RedundantDrive | None = None
) -> dict[str, Array]:
    """Columns of these signals."""
    robot = problem.robot if spare is None else spare.robot
    tree, motors = robot.tree, robot.actuated_names
    q, change, given, effort = (found[name] for name in ("q", "change", "given", "effort"))
    columns = {"t": run.t}
    for name in frames:
        columns |= frame_columns(
            name, found[f"{name}.position"], found[f"{name}.rotation"], found[f"{name}.motion"], tree.planar
        )
    columns |= {f"effort.{name}": effort[:, k] for k, name in enumerate(motors)}
    columns |= {f"q.{name}": q[:, k] for k, name in enumerate(tree.position_names)}
    columns |= {f"qd.{name}": change[:, k] for k, name in enumerate(tree.position_names)}
    number = {name: k for k, name in enumerate(tree.rate_names)}
    for name in problem.independent:
        columns[f"qdd.{name}"] = found["accelerations"][:, number[name]]
    for k, kind in enumerate(("kinetic", "elastic", "gravity")):
        columns[f"energy.{kind}"] = found["energy"][:, k]
    for element in problem.robot.description.element:
        for word in ("length", "force"):
            if f"element.{element.name}.{word}" in found:
                columns[f"element.{element.name}.{word}"] = found[f"element.{element.name}.{word}"][:, 0]
    for name in (f"coupling.{coupling.name}.effort" for coupling in problem.robot.description.coupling):
        if name in found:
            columns[name] = found[name][:, 0]
    columns |= {name: values[:, 0] for name, values in found.items() if name.startswith(("stop.", "friction."))}
    columns["energy.total"] = found["energy"].sum(axis=1)
    places = [tree.links[tree.link_of_rate[k]].q.start for k in robot.actuated]
    power = (effort * change[:, places]).sum(axis=1)
    for k, name in enumerate(problem.wrenches):
        first = len(problem.robot.actuated) + 6 * k
        wrench = given[:, first : first + 6]
        power = power + (wrench * found[f"{name}.motion"][:, :6]).sum(axis=1)
    columns |= {"power.input": power, "power.loss": found["loss"][:, 0]}
    columns |= {"work.input": found["work"][:, 0], "work.loss": found["work"][:, 1]}
    opening = np.abs(found["opening"]).max(axis=1) if "opening" in found else np.zeros(len(q))
    columns["closure_error"] = opening
    return columns


def position_columns(robot: Robot, run: Segments, frames: Sequence[str]) -> dict[str, Array]:
    """Times, positions, and poses of frames of a run: what two runs are compared by."""
    tree = robot.tree
    kept = zip(run.parts, run.kept(), strict=True)
    q = np.concatenate([part.track.y[keep, : tree.nq] for part, keep in kept])

    def placed(given: dict[str, Array]) -> dict[str, Array]:
        at = pose(tree, given["q"])
        found = {name: at.of(tree.places[name]) for name in frames}
        words = ("rotation", "position")
        return {f"{name}.{word}": part for name, both in found.items() for word, part in zip(words, both, strict=True)}

    found = over_rows(placed, {"q": q}, 30 * len(tree.links))
    columns = {"t": run.t} | {f"q.{name}": q[:, k] for k, name in enumerate(tree.position_names)}
    for name in frames:
        columns |= pose_columns(name, found[f"{name}.position"], found[f"{name}.rotation"], tree.planar)
    return columns


def _seen(part: Segment, keep: Array, frames: Sequence[str], spare: RedundantDrive | None = None) -> dict[str, Array]:
    """Positions, their rates of change, what is given, efforts, and what the signals are, of rows of one segment."""
    problem, x, y = part.problem, part.track.x[keep], part.track.y[keep]
    n, nq, motors = len(problem.independent), problem.robot.tree.nq, len(problem.robot.actuated)
    few = len(x) <= FEW
    said = problem.robot.description
    wrenches = problem.wrenches if said.element or said.coupling else ()
    robot = with_all_motors(problem, spare)
    choice = (robot, frames, problem.independent, problem.width, problem.rows)
    program = None if len(robot.free) > MANY_RATES else signals(*choice, quick=few, wrenches=wrenches)
    gates = x[:, x.shape[1] - problem.gate_inputs :].copy()
    change, given = y[:, nq : 2 * nq], x[:, nq + n : x.shape[1] - problem.gate_inputs]
    gates[:, problem.holding] = 0.0  # efforts say all
    effort = given[:, :motors] if problem.prescribed == "efforts" else y[:, 2 * nq + 2 * n : 2 * nq + 2 * n + motors]
    if spare is not None:
        effort = spare.efforts(part.track.t[keep], y[:, :nq], effort)
    state = {"q": y[:, :nq], "position_rates": change, "acceleration": y[:, 2 * nq + n : 2 * nq + 2 * n]}
    state |= {"effort": effort} if program is None or "effort" in program.inputs else {}
    state |= {"gates": gates} if problem.gate_inputs else {}
    pushed = {f"wrench_{name}": given[:, motors + 6 * k : motors + 6 * k + 6] for k, name in enumerate(wrenches)}
    state |= {word: values for word, values in pushed.items() if program is None or word in program.inputs}

    def signalled() -> dict[str, Array]:
        if program is None:
            return batched_signals(*choice, wrenches, state)
        return program.evaluate("numpy", **state) if few else program(**state)

    with np.errstate(all="ignore"):  # a row that is not finite stays so, as in compiled code
        found = signalled()
        cables = driven_cables(robot) if spare is not None else []
        if spare is not None and cables:
            tension = np.concatenate([found[f"element.{name}.force"].reshape(-1, 1) for name in cables], axis=1)
            effort = state["effort"] = spare.taut(y[:, :nq], effort, tension)
            found = signalled()
    own = {"gates": gates}
    own |= {"q": y[:, :nq], "change": change, "given": given, "effort": effort, "work": part.track.work[keep]}
    return found | own


def coupling_columns(problem: Problem, x: Array, y: Array, effort: Array) -> dict[str, Array]:
    """Efforts in couplings, forces of driven cables in rows of a run under efforts, which hold from each row on."""
    robot, n, nq = problem.robot, len(problem.independent), problem.robot.tree.nq
    cables = {f"element.{name}.force" for name in driven_cables(robot)}
    if not (robot.description.coupling or cables) or not len(x):
        return {}
    q, qd, change = y[:, :nq], x[:, nq : nq + n], y[:, nq : 2 * nq]
    gates = {"gates": x[:, x.shape[1] - problem.gate_inputs :]} if problem.gate_inputs else {}
    program = signals(robot, [], problem.independent, problem.width, problem.rows, quick=True)
    with np.errstate(all="ignore"):
        moved = problem.model(q=q, qd=qd, effort=effort, **gates)["acceleration"]
        state = {"q": q, "position_rates": change, "acceleration": moved, "effort": effort}
        found = program.evaluate("numpy", **{word: state[word] for word in state if word in program.inputs}, **gates)
    return {name: values[:, 0] for name, values in found.items() if name.startswith("coupling.") or name in cables}


def refuse_shared_names(robot: Robot, frames: Sequence[str]) -> list[str]:
    """The frames; raise where a column of one would have the name of a column of a joint."""
    tree = robot.tree
    joints = [
        f"{word}.{name}" for word in OF_JOINTS for name in dict.fromkeys([*tree.position_names, *tree.rate_names])
    ]
    for frame in frames:
        for column in joints:
            if column.startswith(f"{frame}.") and OF_FRAMES.fullmatch(column.removeprefix(f"{frame}.")):
                raise InputError(
                    f"the frame '{frame}' and a joint would both have the column '{column}'",
                    key="frames",
                    value=frame,
                    hint="rename one of them in the robot file, or report other frames",
                )
    return list(frames)


def frame_columns(name: str, position: Array, rotation: Array, motion: Array, planar: bool) -> dict[str, Array]:
    """Pose, twist and acceleration of a frame, in world axes and in its own (`local_`)."""
    return pose_columns(name, position, rotation, planar) | motion_columns(name, rotation, motion, planar)


def pose_columns(name: str, position: Array, rotation: Array, planar: bool) -> dict[str, Array]:
    """Position of a frame, and how it is turned."""
    columns = {f"{name}.{axis}": position[:, k] for k, axis in enumerate(AXES[: 2 if planar else 3])}
    if planar:
        axis = axis_in_plane(rotation[0]) if len(rotation) else 0
        columns[f"{name}.theta"] = np.unwrap(np.arctan2(rotation[:, 1, axis], rotation[:, 0, axis]))
    else:
        columns |= {f"{name}.{word}": part for word, part in zip(ORIENTATION, _turns(rotation).T, strict=True)}
    return columns


def axis_in_plane(rotation: Array) -> int:
    """The axis of a frame whose angle in the plane is its theta: x, or y where that is normal to the plane."""
    return 0 if np.hypot(rotation[0, 0], rotation[1, 0]) > NORMAL else 1


def is_tilted(rotation: Array) -> bool:
    """Whether the z axis of a frame is not normal to the plane, so that all its axes see the motion."""
    return bool(np.hypot(rotation[0, 2], rotation[1, 2]) > NORMAL)


def motion_columns(
    name: str, rotation: Array, motion: Array, planar: bool, tilted: bool | None = None
) -> dict[str, Array]:
    """Twist and acceleration of a frame, over any scalar; whether it is `tilted` is seen where there are numbers."""
    columns = {}
    tilted = planar and (len(rotation) > 0 and is_tilted(rotation[0]) if tilted is None else tilted)
    straight = slice(0, 2) if planar else slice(0, 3)
    turning = slice(2, 3) if planar else slice(0, 3)
    for word, start, axes in (("v", 0, straight), ("w", 3, turning), ("a", 6, straight), ("al", 9, turning)):
        world = motion[:, start : start + 3]
        own = np.einsum("tji,tj->ti", rotation, world)
        for k in range(3):
            if k in range(3)[axes]:
                columns[f"{name}.{word}{AXES[k]}"] = world[:, k]
            if tilted or k in range(3)[axes]:
                columns[f"{name}.local_{word}{AXES[k]}"] = own[:, k]
    return columns


def _turns(rotation: Array) -> Array:
    """Unit quaternions of rotation matrices, scalar first, without jumps of sign."""
    turns = quaternions(rotation)
    if len(turns):
        turns[0] *= np.sign(turns[0, np.argmax(np.abs(turns[0]))])
    flips = np.cumprod(np.where(np.einsum("ti,ti->t", turns[1:], turns[:-1]) < 0, -1.0, 1.0))
    turns[1:] *= flips[:, None]
    return turns
