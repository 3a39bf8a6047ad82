"""Output columns of a run: frames, sensors and places inside beams.

Columns of a frame are its motion, `FRAME.vx` and the other words, and accelerometer signals, `FRAME.sensor_ax`. Columns
of a place inside a beam are its deflections, `BEAM.chord_y@0.5` and `BEAM.tangent_y@0.5`.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.codegen.outputs import MANY_RATES, batched_signals, signals
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, did_you_mean
from parflex.forces.effort_allocation import driven_cables
from parflex.forces.section_forces import beam_chains
from parflex.integrators.driver import CITATIONS, IntegratedRows
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.simulation.diagnostics import balance_error
from parflex.simulation.inner_bending import MISSING, InnerLoads, forced_place, inner_bending, inner_loads_of
from parflex.simulation.mesh_convergence import largest_beam_deflection
from parflex.simulation.problem import Problem
from parflex.simulation.segments import Segment, Segments
from parflex.spatial.batched import evaluate_rows
from parflex.spatial.rotations import ORIENTATION, quaternions
from parflex.trajectories.follow import RedundantDrive
from parflex.tree.tree import Tree

if TYPE_CHECKING:
    from parflex.simulation.simulate import RunCase

Array = np.ndarray

AXES = "xyz"

OF_JOINTS = ("q", "qd", "qdd", "effort")  # how their columns begin

OF_FRAMES = re.compile("[xyz]|theta|orientation_[wxyz]|(local_)?(v|w|a|al)[xyz]")  # how theirs end

NORMAL = 1e-6  # of an axis: what lies in the plane is rounding

FEW = 20_000  # rows up to which NumPy is done before a program would be compiled

SENSOR = tuple(f"sensor_{kind}{axis}" for kind in "aw" for axis in AXES)

OF_FRAME = (
    *("x", "y", "z", "theta", *ORIENTATION),
    *(f"{local}{kind}{axis}" for kind in ("v", "w", "a", "al") for local in ("", "local_") for axis in AXES),
)

BENT = ("chord_y", "chord_z", "tangent_y", "tangent_z")

BENT_WORD = re.compile(rf"(.+)\.({'|'.join(BENT)}|deflection)@([^@]+)")

HINT = "write e.g. FRAME.sensor_ax, FRAME.vx, BEAM.chord_y@0.5 or BEAM.tangent_y@0.5"

EFFORT = ("evaluations", "steps", "iterations", "jacobians", "rejected")  # what a run took, in its summary


def run_columns(
    problem: Problem, run: Segments, frames: Sequence[str], spare: RedundantDrive | None = None
) -> dict[str, Array]:
    """All columns of a run, by one program in one go; accelerations are those of the rates of the problem.

    More motors than freedoms share the efforts of those that drive.
    """
    return signal_columns(problem, run, signals_in_run(problem, run, frames, spare), frames, spare)


def signals_in_run(
    problem: Problem, run: Segments, frames: Sequence[str], spare: RedundantDrive | None = None
) -> dict[str, Array]:
    """Signals in all rows of a run: positions, rates, accelerations, what is given, gates, frames, energies."""
    looked_at = list(dict.fromkeys([*frames, *problem.wrenches]))
    parts = [_seen(part, keep, looked_at, spare) for part, keep in zip(run.parts, run.kept(), strict=True)]
    gathered = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    first = len(problem.robot.actuated)
    wrenches = {f"{name}.wrench": first + 6 * k for k, name in enumerate(problem.wrenches)}
    return gathered | {name: gathered["given"][:, k : k + 6] for name, k in wrenches.items()}


def with_all_motors(problem: Problem, spare: RedundantDrive | None) -> Robot:
    """The robot of a run as it acts, with spare motors where there are any."""
    robot = problem.robot
    return robot if spare is None else replace(robot, actuated=spare.robot.actuated, known_home=robot.home)


def signal_columns(
    problem: Problem,
    run: Segments,
    run_signals: dict[str, Array],
    frames: Sequence[str],
    spare: RedundantDrive | None = None,
) -> dict[str, Array]:
    """Columns of these signals."""
    robot = problem.robot if spare is None else spare.robot
    tree, motors = robot.tree, robot.actuated_names
    q, change, inputs, effort = (run_signals[name] for name in ("q", "change", "given", "effort"))
    columns = {"t": run.t}
    for name in frames:
        columns |= frame_columns(
            name,
            run_signals[f"{name}.position"],
            run_signals[f"{name}.rotation"],
            run_signals[f"{name}.motion"],
            tree.planar,
        )
    columns |= {f"effort.{name}": effort[:, k] for k, name in enumerate(motors)}
    columns |= {f"q.{name}": q[:, k] for k, name in enumerate(tree.position_names)}
    columns |= {f"qd.{name}": change[:, k] for k, name in enumerate(tree.position_names)}
    number = {name: k for k, name in enumerate(tree.rate_names)}
    for name in problem.independent:
        columns[f"qdd.{name}"] = run_signals["accelerations"][:, number[name]]
    for k, kind in enumerate(("kinetic", "elastic", "gravity")):
        columns[f"energy.{kind}"] = run_signals["energy"][:, k]
    for element in problem.robot.description.element:
        for word in ("length", "force"):
            if f"element.{element.name}.{word}" in run_signals:
                columns[f"element.{element.name}.{word}"] = run_signals[f"element.{element.name}.{word}"][:, 0]
    for name in (f"coupling.{coupling.name}.effort" for coupling in problem.robot.description.coupling):
        if name in run_signals:
            columns[name] = run_signals[name][:, 0]
    columns |= {name: values[:, 0] for name, values in run_signals.items() if name.startswith(("stop.", "friction."))}
    columns["energy.total"] = run_signals["energy"].sum(axis=1)
    places = [tree.links[tree.link_of_rate[k]].q.start for k in robot.actuated]
    power = (effort * change[:, places]).sum(axis=1)
    for k, name in enumerate(problem.wrenches):
        first = len(problem.robot.actuated) + 6 * k
        wrench = inputs[:, first : first + 6]
        power = power + (wrench * run_signals[f"{name}.motion"][:, :6]).sum(axis=1)
    columns |= {"power.input": power, "power.loss": run_signals["loss"][:, 0]}
    columns |= {"work.input": run_signals["work"][:, 0], "work.loss": run_signals["work"][:, 1]}
    opening = np.abs(run_signals["opening"]).max(axis=1) if "opening" in run_signals else np.zeros(len(q))
    columns["closure_error"] = opening
    return columns


def position_columns(robot: Robot, run: Segments, frames: Sequence[str]) -> dict[str, Array]:
    """Times, positions, and poses of frames of a run: what two runs are compared by."""
    tree = robot.tree
    segments = zip(run.parts, run.kept(), strict=True)
    q = np.concatenate([part.track.y[keep, : tree.nq] for part, keep in segments])

    def placed(rows: dict[str, Array]) -> dict[str, Array]:
        at = pose(tree, rows["q"])
        poses = {name: at.of(tree.places[name]) for name in frames}
        words = ("rotation", "position")
        return {f"{name}.{word}": part for name, both in poses.items() for word, part in zip(words, both, strict=True)}

    pose_rows = evaluate_rows(placed, {"q": q}, 30 * len(tree.links))
    columns = {"t": run.t} | {f"q.{name}": q[:, k] for k, name in enumerate(tree.position_names)}
    for name in frames:
        columns |= pose_columns(name, pose_rows[f"{name}.position"], pose_rows[f"{name}.rotation"], tree.planar)
    return columns


def _seen(part: Segment, keep: Array, frames: Sequence[str], spare: RedundantDrive | None = None) -> dict[str, Array]:
    """Positions, their rates of change, what is given, efforts, and what the signals are, of rows of one segment."""
    problem, x, y = part.problem, part.track.x[keep], part.track.y[keep]
    n, nq, motors = len(problem.independent), problem.robot.tree.nq, len(problem.robot.actuated)
    few = len(x) <= FEW
    description = problem.robot.description
    wrenches = problem.wrenches if description.element or description.coupling else ()
    robot = with_all_motors(problem, spare)
    choice = (robot, frames, problem.independent, problem.width, problem.rows)
    program = None if len(robot.free) > MANY_RATES else signals(*choice, quick=few, wrenches=wrenches)
    gates = x[:, x.shape[1] - problem.gate_inputs :].copy()
    change, inputs = y[:, nq : 2 * nq], x[:, nq + n : x.shape[1] - problem.gate_inputs]
    gates[:, problem.holding] = 0.0  # efforts say all
    effort = inputs[:, :motors] if problem.prescribed == "efforts" else y[:, 2 * nq + 2 * n : 2 * nq + 2 * n + motors]
    if spare is not None:
        effort = spare.efforts(part.track.t[keep], y[:, :nq], effort)
    state = {"q": y[:, :nq], "position_rates": change, "acceleration": y[:, 2 * nq + n : 2 * nq + 2 * n]}
    state |= {"effort": effort} if program is None or "effort" in program.inputs else {}
    state |= {"gates": gates} if problem.gate_inputs else {}
    pushed = {f"wrench_{name}": inputs[:, motors + 6 * k : motors + 6 * k + 6] for k, name in enumerate(wrenches)}
    state |= {word: values for word, values in pushed.items() if program is None or word in program.inputs}

    def signalled() -> dict[str, Array]:
        if program is None:
            return batched_signals(*choice, wrenches, state)
        return program.evaluate("numpy", **state) if few else program(**state)

    with np.errstate(all="ignore"):  # a row that is not finite stays so, as in compiled code
        gathered = signalled()
        cables = driven_cables(robot) if spare is not None else []
        if spare is not None and cables:
            tension = np.concatenate([gathered[f"element.{name}.force"].reshape(-1, 1) for name in cables], axis=1)
            effort = state["effort"] = spare.taut(y[:, :nq], effort, tension)
            gathered = signalled()
    state_rows = {"gates": gates}
    state_rows |= {"q": y[:, :nq], "change": change, "given": inputs, "effort": effort, "work": part.track.work[keep]}
    return gathered | state_rows


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
        signal_values = program.evaluate(
            "numpy", **{word: state[word] for word in state if word in program.inputs}, **gates
        )
    return {
        name: values[:, 0] for name, values in signal_values.items() if name.startswith("coupling.") or name in cables
    }


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
        local = np.einsum("tji,tj->ti", rotation, world)
        for k in range(3):
            if k in range(3)[axes]:
                columns[f"{name}.{word}{AXES[k]}"] = world[:, k]
            if tilted or k in range(3)[axes]:
                columns[f"{name}.local_{word}{AXES[k]}"] = local[:, k]
    return columns


def _turns(rotation: Array) -> Array:
    """Unit quaternions of rotation matrices, scalar first, without jumps of sign."""
    turns = quaternions(rotation)
    if len(turns):
        turns[0] *= np.sign(turns[0, np.argmax(np.abs(turns[0]))])
    flips = np.cumprod(np.where(np.einsum("ti,ti->t", turns[1:], turns[:-1]) < 0, -1.0, 1.0))
    turns[1:] *= flips[:, None]
    return turns


@dataclass(frozen=True, eq=False, repr=False)
class PlaceOutput(Record):
    """A column that is asked for: of a frame, or how far a beam is bent at a place, from its chord or its tangent."""

    column: str
    quantity: str
    frames: tuple[str, ...]  # the frame; or root, tip and place of the beam, and where its loads are
    inner: InnerLoads | None = None  # what deflects the element there beside its shapes
    forced: tuple[tuple[str, Array], ...] = ()  # frames with wrenches that do so, too: displacement by each, 3 x 6


def is_place_output(word: str) -> bool:
    """Whether an output is one of a frame or of a place along a beam."""
    last = word.rpartition(".")[2]
    return last in (*OF_FRAME, *SENSOR, "sensor") or BENT_WORD.fullmatch(word) is not None


def read_place_outputs(robot: Robot, outputs: Sequence[str], wrenches: Sequence[str] = ()) -> list[PlaceOutput]:
    """The columns that outputs name, where wrenches act on frames.

    `FRAME.sensor` and `BEAM.deflection@s` stand for all of their kind.
    """
    places: list[PlaceOutput] = []
    for word in dict.fromkeys(outputs):
        if is_place_output(word):
            try:
                places += _bent(robot, word, wrenches) if BENT_WORD.fullmatch(word) else _of_frame(robot, word)
            except InputError as error:
                error.key = "outputs"
                raise
    return places


def place_examples(robot: Robot) -> list[str]:
    """Outputs as a robot may have them, for hints."""
    end = robot.tree.end_effector
    beams = [frame.name for frame in robot.description.frame if frame.beam is not None]
    frame_outputs = [f"{end}.{word}" for word in (*SENSOR, "sensor", *OF_FRAME)]
    return frame_outputs + [f"{beam}.{word}@0.5" for beam in beams for word in (*BENT, "deflection")]


def _of_frame(robot: Robot, word: str) -> list[PlaceOutput]:
    frame, _, quantity = word.rpartition(".")
    frame = frame or robot.tree.end_effector
    planar, turned = robot.tree.planar, pose(robot.tree, robot.home).of(robot.tree.place(frame))[0]
    measured = SENSOR if is_tilted(turned) else _felt_in_plane(robot)
    if quantity == "sensor":
        flat = ("sensor_ax", "sensor_ay", "sensor_wz")
        used = SENSOR if not planar or measured == SENSOR else flat
        return [PlaceOutput(f"{frame}.{name}", name, (frame,)) for name in used]
    if planar and quantity in SENSOR and quantity not in measured:
        raise InputError(
            f"'{quantity}' of a planar robot is zero", value=word,
            hint="sensors show sensor_ax, sensor_ay and sensor_wz; sensor_az where gravity acts across the plane",
        )  # fmt: skip
    still = np.zeros((1, 12))
    known = [*frame_columns("", np.zeros((1, 3)), turned[None], still, planar), *(f".{name}" for name in SENSOR)]
    if f".{quantity}" not in known:
        raise InputError(
            f"a frame of a {'planar' if planar else 'spatial'} robot has no '{quantity}'",
            value=word,
            hint=did_you_mean(quantity, [name[1:] for name in known]),
        )
    return [PlaceOutput(word, quantity, (frame,))]


def _felt_in_plane(robot: Robot) -> tuple[str, ...]:
    """What sensors on a planar robot show."""
    return ("sensor_ax", "sensor_ay", "sensor_wz", *(["sensor_az"] if robot.tree.gravity[2] else []))


def _bent(robot: Robot, word: str, wrenches: Sequence[str]) -> list[PlaceOutput]:
    match = BENT_WORD.fullmatch(word)
    assert match is not None
    beam, quantity, s = match.groups()
    beams = [frame.name for frame in robot.description.frame if frame.beam is not None]
    if beam not in beams:
        raise InputError(f"there is no beam '{beam}'", value=word, hint=did_you_mean(beam, beams))
    if robot.tree.planar and quantity.endswith("_z"):
        raise InputError("a planar robot deflects in its plane alone", value=word, hint=f"use {quantity[:-1]}y")
    frames = (beam, f"{beam}@1", f"{beam}@{s}")
    robot.tree.place(frames[2])
    quantities = (
        (quantity,) if quantity in BENT else tuple(name for name in BENT if not (robot.tree.planar and name[-1] == "z"))
    )
    chain = beam_chains(robot).get(beam)
    inner = inner_loads_of(chain, float(s)) if chain is not None else None
    loads = tuple(f"{beam}@{at!r}" for at in inner.shares) if inner else ()
    moved = {frame: forced_place(robot, frame, frames[2]) for frame in wrenches}
    forced = tuple((frame, compliance) for frame, compliance in moved.items() if compliance is not None)
    return [PlaceOutput(f"{beam}.{name}@{s}", name, (*frames, *loads), inner, forced) for name in quantities]


def frames_of(words: Sequence[PlaceOutput]) -> list[str]:
    """Frames whose signals the columns need."""
    return list(dict.fromkeys(frame for word in words for frame in word.frames))


def output_frames(words: Sequence[PlaceOutput]) -> list[str]:
    """Frames of which columns are asked for, not those of deflections."""
    return [word.frames[0] for word in words if word.quantity not in BENT]


def add_places(
    tree: Tree, words: Sequence[PlaceOutput], run_signals: Mapping[str, Array], columns: dict[str, Array]
) -> None:
    """Put the columns into those of a run; gravity is that of the tree."""
    for word in words:
        columns[word.column] = (
            _bending(tree, word, run_signals) if word.quantity in BENT else _frame_column(tree, word, run_signals)
        )


def _frame_column(tree: Tree, word: PlaceOutput, run_signals: Mapping[str, Array]) -> Array:
    frame = word.frames[0]
    position, rotation, motion = (run_signals[f"{frame}.{part}"] for part in ("position", "rotation", "motion"))
    if word.quantity not in SENSOR:
        return frame_columns("", position, rotation, motion, tree.planar)[f".{word.quantity}"]
    turning = word.quantity[-2] == "w"
    measured = motion[:, 3:6] if turning else motion[:, 6:9] - tree.gravity  # an accelerometer at rest shows -g
    return np.einsum("tj,tj->t", rotation[:, :, AXES.index(word.quantity[-1])], measured)


def _bending(tree: Tree, word: PlaceOutput, run_signals: Mapping[str, Array]) -> Array:
    """From the x axis of the root, or from the line between both ends: along y and z of the root, turned to that line.

    The axes turn with that line by the smallest turn.
    """
    root, tip, place = (run_signals[f"{frame}.position"] for frame in word.frames[:3])
    if word.inner is not None:
        specific_forces = np.stack([run_signals[f"{frame}.motion"][:, 6:9] for frame in word.frames[3:]]) - tree.gravity
        turns = np.stack([run_signals[f"{frame}.rotation"] for frame in word.frames[3:]])
        place = place + np.einsum(
            "tij,tj->ti", run_signals[f"{word.frames[2]}.rotation"], inner_bending(word.inner, turns, specific_forces)
        )
    for frame, moved in word.forced:
        R = run_signals[f"{word.frames[2]}.rotation"]
        push = np.concatenate(
            [np.einsum("tji,tj->ti", R, run_signals[f"{frame}.wrench"][:, k : k + 3]) for k in (0, 3)], 1
        )
        place = place + np.einsum("tij,tj->ti", R, push @ moved.T)
    into = run_signals[f"{word.frames[0]}.rotation"]
    axis = AXES.index(word.quantity[-1])
    away = np.einsum("tji,tj->ti", into, place - root)
    if word.quantity.startswith("tangent"):
        return away[:, axis]
    chord = np.einsum("tji,tj->ti", into, tip - root)
    chord = chord / np.linalg.norm(chord, axis=1, keepdims=True)
    # the image of the axis e under the turn of x to the chord u is e - (u . e) (x + u) / (1 + u . x)
    share = chord[:, axis] / (1 + chord[:, 0])
    return away[:, axis] - share * (away[:, 0] + np.einsum("ti,ti->t", chord, away))


def inner_wrench_warning(
    robot: Robot, run_signals: Mapping[str, Array], wrenches: Sequence[str], frames: Sequence[str]
) -> list[Diagnostic]:
    """A diagnostic where frames that a run shows lack what wrenches between two nodes deflect their element by.

    Nothing is said where that is little beside the largest deflection of the beam.
    """
    lacks: dict[str, float] = {}
    reduced = {j for j, link in enumerate(robot.tree.links) if link.body.reduced is not None}  # told of by itself
    for frame in dict.fromkeys(frames):
        moved = [(loaded, forced_place(robot, loaded, frame)) for loaded in wrenches]
        for loaded, compliance in moved if robot.tree.places[frame].link not in reduced else ():
            R = run_signals[f"{loaded}.rotation"] if compliance is not None else np.zeros(0)
            if compliance is not None and len(R):
                pushed = run_signals[f"{loaded}.wrench"].reshape(-1, 2, 3)
                away = np.linalg.norm(np.einsum("tji,tkj->tki", R, pushed).reshape(-1, 6) @ compliance.T, axis=1)
                lacks[frame] = max(lacks.get(frame, 0.0), float(away.max()))
    for frame in list(lacks):
        if not lacks[frame] > MISSING * largest_beam_deflection(robot, robot.tree.places[frame].link, run_signals["q"]):
            del lacks[frame]
    worst = max(lacks, key=lambda name: lacks[name], default="")
    if not worst or not lacks[worst] > 0:
        return []
    text = (
        f"a load acts between two nodes of a beam: as a frame '{worst}' lacks up to {lacks[worst]:.3g} m of its "
        "deflection there, which BEAM.chord_y@s and BEAM.tangent_y@s have; use elements with a node at the load"
    )
    return [Diagnostic("load-inside-beam", text, worst, lacks[worst])]


def recorded_frames(robot: Robot, frames: Sequence[str] | None) -> list[str]:
    """Frames that are recorded: the end effector under all its names, or those that are named."""
    places = robot.tree.places
    if frames is None:
        end = robot.tree.end_effector
        same = [
            point.name for point in robot.description.point if point.frame == end and _same(places, point.name, end)
        ]
        return refuse_shared_names(robot, [*same, end])
    for name in frames:
        if not robot.tree.has(name, "frames"):
            raise InputError(f"there is no frame '{name}'", key="frames", value=name, hint=did_you_mean(name, places))
    return refuse_shared_names(robot, list(dict.fromkeys(frames)) or [robot.tree.end_effector])


def _same(places: Mapping[str, Any], name: str, other: str) -> bool:
    """Whether two frames coincide."""
    first, second = places[name], places[other]
    return np.array_equal(first.position, second.position) and np.array_equal(first.rotation, second.rotation)


def run_summary(track: IntegratedRows, columns: dict[str, Array], making: float) -> dict[str, Any]:
    """How a run went, and what it conserved."""
    total = columns["energy.total"]
    summary: dict[str, Any] = {
        "status": track.status,
        "time": float(track.t[-1]),
        "rows": len(track.t),
        "seconds": track.seconds,
        "preparation_seconds": making,
        "real_time_factor": float(track.t[-1]) / track.seconds if track.seconds else None,
        **{word: track.counts[word] for word in EFFORT if word in track.counts},
        "closure_error": float(columns["closure_error"].max()),
        "energy": {"first": float(total[0]), "last": float(total[-1])},
        "energy_balance_error": balance_error(columns),
    }
    if track.status == "diverged":
        summary |= {"stopped_at": track.stopped, "coordinate": track.coordinate, "why": track.why}
    return summary


def run_settings(robot: Robot, case: RunCase, problem: Problem, method: str) -> dict[str, Any]:
    """All that a run depends on, with the versions that computed it."""
    return {
        "robot": robot.name,
        "file": robot.file,
        "file_sha256": file_hash(robot),
        "description_sha256": hashlib.sha256(robot.description.model_dump_json().encode()).hexdigest(),
        "actuation": robot.actuation,
        "working_mode": robot.working_mode,
        "rigid": robot.written is not None and robot.written.rigid,
        "motion": None if case.motion is None else case.motion.name,
        "controller": None if case.controller is None else repr(case.controller),
        "drive": case.prescribed,
        "start": case.start if isinstance(case.start, str | None) else "given",
        "without": list(case.without),
        "stops": case.stops,
        "friction_width": problem.width or None,
        "sticking": [link.name for link in problem.sticking],
        "method": method,
        "citation": CITATIONS[method],
        "step": None if case.grid.begin else case.grid.step,
        "out_step": case.grid.out_step,
        "tolerance": case.grid.aim or case.tolerance,
        "operators": problem.model.counts["total"],
        "versions": versions(),
    }


def file_hash(robot: Robot) -> str | None:
    """SHA-256 of the robot file as it is now; None if it is gone."""
    inside = resources.files("parflex.robotfile").joinpath("catalogue", robot.file)
    try:
        data = Path(robot.file).read_bytes() if Path(robot.file).is_file() else inside.read_bytes()
    except OSError:
        return None
    return hashlib.sha256(data).hexdigest()


def versions() -> dict[str, str]:
    """Versions of what computed."""
    packages = ("parflex", "numpy", "scipy", "llvmlite")
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}
