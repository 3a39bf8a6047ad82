"""Outputs of a run: one table from the names of columns to functions of the state in all rows.

`base_columns` are those of every run. `OUTPUTS` reads the argument `outputs`; signals are computed on request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from parflex.codegen.outputs import MANY_RATES, batched_signals, joint_wrenches, signals
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, did_you_mean
from parflex.forces.effort_allocation import driven_cables
from parflex.forces.reactions import has_reaction, undetermined_reactions
from parflex.forces.section_forces import (
    FORCES,
    IN_PLANE,
    STRESS,
    BeamLoads,
    beam_chains,
    beam_loads,
    largest_stress_of,
    missing_stress_warning,
    read_beam,
    read_beam_position,
)
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.robot.states import quoted
from parflex.simulation.place_deflections import BENT, place_deflection, read_place
from parflex.simulation.problem import Problem
from parflex.simulation.runs import Deferred
from parflex.simulation.segments import Segment, Segments
from parflex.spatial.rotations import ORIENTATION, quaternions
from parflex.trajectories.redundant_drive import RedundantDrive

Array = np.ndarray
AXES = "xyz"
COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")
OF_JOINTS = ("q", "qd", "qdd", "effort")  # the first words of their columns
NORMAL = 1e-6  # of an axis: what lies in the plane is rounding
FEW = 20_000  # rows up to which NumPy is done before a program would be compiled
RANK = 1e-9  # of the largest singular value, as in reactions of one state
SENSOR = tuple(f"sensor_{kind}{axis}" for kind in "aw" for axis in AXES)
OF_FRAME = (
    *("x", "y", "z", "theta", *ORIENTATION),
    *(f"{local}{kind}{axis}" for kind in ("v", "w", "a", "al") for local in ("", "local_") for axis in AXES),
)

MOST_PLACES = 1001  # of a range
RANGE = re.compile(r"([^@]+)@([^@]*:[^@]*?)((?:\.[A-Za-z_]\w*)?)")


# -- the state in the rows of a run ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class RunState(Record):
    """The state in all rows of a run; wrenches in joints and loads of beams are computed on first use.

    `by_loose`: multipliers follow from freely moving joints alone.
    """

    problem: Problem
    robot: Robot  # with all its motors
    t: Array
    signals: Mapping[str, Array]
    by_loose: bool = False

    def __getitem__(self, name: str) -> Array:
        """Return a signal in all rows."""
        return self.signals[name]

    def frame(self, name: str) -> tuple[Array, Array, Array]:
        """Return position, rotation and motion of a frame."""
        return self[f"{name}.position"], self[f"{name}.rotation"], self[f"{name}.motion"]

    @cached_property
    def _loads(self) -> tuple[dict[str, Array], dict[int, Array]]:
        """Return force and moment of each joint and closure (rows x 6), and signals of the elements of all beams."""
        gates, names = self["gates"], {"position_rates": "change"}
        words = ("q", "position_rates", "accelerations", "effort", *(["gates"] if gates.shape[1] else []))
        state = {word: self[names.get(word, word)] for word in words}
        state |= {f"wrench_{frame}": self[f"{frame}.wrench"] for frame in self.problem.wrenches}
        redundant = self.by_loose or bool(self.robot.closures.size and self.robot.mobility.redundant)
        with np.errstate(all="ignore"):  # a row that is not finite stays so
            return joint_wrenches(
                self.robot, self.problem.independent, self.problem.width, state,
                lambda rows, missing: _multipliers(rows, missing, redundant), list(self.chains.values()),
                self.by_loose,
            )  # fmt: skip

    @property
    def wrenches(self) -> dict[str, Array]:
        """Return force and moment in each joint and closure, rows x 6."""
        return self._loads[0]

    @cached_property
    def chains(self) -> dict[str, Any]:
        """Return beams with sections, by name."""
        return beam_chains(self.robot)

    @cached_property
    def beams(self) -> dict[str, BeamLoads]:
        """Return loads of all beams."""
        rows = (self["q"], self["change"], self["accelerations"])
        return beam_loads(self.robot.tree, self.chains, *rows, self._loads[1], self.problem.wrenches)

    @cached_property
    def undetermined(self) -> set[str]:
        """Return joints and closures whose reactions are not unique, if the robot is over-constrained."""
        if not self.problem.robot.mobility.redundant:
            return set()
        return undetermined_reactions(Configuration(self.problem.robot, self["q"][0]))


def run_state(
    problem: Problem, run: Segments, frames: Sequence[str], spare: RedundantDrive | None = None,
    outputs: Sequence[Output] = (),
) -> RunState:  # fmt: skip
    """Return the state in all rows of a run; redundant motors share the efforts of those that drive."""
    looked_at = [*frames, *(frame for output in outputs for frame in output.frames), *problem.wrenches]
    names = list(dict.fromkeys(looked_at))
    parts = [_signals(part, keep, names, spare) for part, keep in zip(run.parts, run.kept(), strict=True)]
    gathered = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return RunState(problem, _with_all_motors(problem, spare), run.t, gathered)


def _with_all_motors(problem: Problem, spare: RedundantDrive | None) -> Robot:
    """Return the robot of a run as it acts, with redundant motors."""
    robot = problem.robot
    return robot if spare is None else replace(robot, actuated=spare.robot.actuated, known_home=robot.home)


def _signals(part: Segment, keep: Array, frames: Sequence[str], spare: RedundantDrive | None) -> dict[str, Array]:
    """Return positions, rates of change, inputs, efforts, and the signals of a program, of rows of one segment."""
    problem, x, y = part.problem, part.track.x[keep], part.track.y[keep]
    n, nq, motors = len(problem.independent), problem.robot.tree.nq, len(problem.robot.actuated)
    few, description = len(x) <= FEW, problem.robot.description
    loaded = problem.wrenches if description.element or description.coupling else ()
    robot = _with_all_motors(problem, spare)
    choice = (robot, frames, problem.independent, problem.width, problem.rows)
    program = None if len(robot.free) > MANY_RATES else signals(*choice, quick=few, wrenches=loaded)
    gates = x[:, x.shape[1] - problem.gate_inputs :].copy()
    gates[:, problem.holding] = 0.0  # efforts say all
    effort, *wrenches = np.split(
        x[:, nq + n : x.shape[1] - problem.gate_inputs], motors + 6 * np.arange(len(problem.wrenches)), axis=1
    )
    if problem.prescribed != "efforts":
        effort = y[:, 2 * nq + 2 * n : 2 * nq + 2 * n + motors]
    rows = {"q": y[:, :nq], "change": y[:, nq : 2 * nq], "gates": gates, "work": part.track.work[keep]}
    rows |= {f"{name}.wrench": wrench for name, wrench in zip(problem.wrenches, wrenches, strict=True)}
    state = {"q": rows["q"], "position_rates": rows["change"], "acceleration": y[:, 2 * nq + n : 2 * nq + 2 * n]}
    state |= {"gates": gates} if problem.gate_inputs else {}

    def evaluated(effort: Array) -> dict[str, Array]:
        loads = {"effort": effort} | {f"wrench_{name}": rows[f"{name}.wrench"] for name in loaded}
        acting = state | {word: values for word, values in loads.items() if program is None or word in program.inputs}
        with np.errstate(all="ignore"):  # a row that is not finite stays so, as in compiled code
            if program is None:
                return batched_signals(*choice, loaded, acting)
            return program.evaluate("numpy", **acting) if few else program(**acting)

    if spare is not None:
        effort = spare.efforts(part.track.t[keep], rows["q"], effort)
    gathered = evaluated(effort)
    if spare is not None and (cables := driven_cables(robot)):
        tension = np.concatenate([gathered[f"element.{name}.force"].reshape(-1, 1) for name in cables], axis=1)
        effort = spare.taut(rows["q"], effort, tension)
        gathered = evaluated(effort)
    return gathered | rows | {"effort": effort}


def _multipliers(rows: Array, missing: Array, redundant: bool) -> Array:
    """Return multipliers of least norm in all rows of a run, theory (18)."""
    good = np.isfinite(rows).all(axis=(1, 2)) & np.isfinite(missing).all(axis=1)
    multipliers = np.full(rows.shape[:2], np.nan)
    J_t = rows[good].transpose(0, 2, 1)
    if not redundant:
        Q, R = np.linalg.qr(J_t)
        try:
            multipliers[good] = np.linalg.solve(R, np.einsum("tij,ti->tj", Q, missing[good])[..., None])[..., 0]
            return multipliers
        except np.linalg.LinAlgError:  # a row at a singular pose
            pass
    multipliers[good] = np.einsum("tij,tj->ti", np.linalg.pinv(J_t, rcond=RANK), missing[good])
    return multipliers


# -- columns of every run ----------------------------------------------------------------------------------


def base_columns(state: RunState, frames: Sequence[str]) -> dict[str, Array]:
    """Return the columns of every run, over any scalar; accelerations are those of the rates of the problem."""
    robot, problem, tree, description = state.robot, state.problem, state.robot.tree, state.problem.robot.description
    columns: dict[str, Array] = {"t": state.t}
    for name in frames:
        columns |= frame_columns(name, *state.frame(name), tree.planar)
    columns |= {f"effort.{name}": state["effort"][:, k] for k, name in enumerate(robot.actuated_names)}
    for word, rows in (("q", state["q"]), ("qd", state["change"])):
        columns |= {f"{word}.{name}": rows[:, k] for k, name in enumerate(tree.position_names)}
    columns |= acceleration_columns(state)
    columns |= {f"energy.{kind}": state["energy"][:, k] for k, kind in enumerate(("kinetic", "elastic", "gravity"))}
    names = [f"element.{element.name}.{word}" for element in description.element for word in ("length", "force")]
    names += [f"coupling.{coupling.name}.effort" for coupling in description.coupling]
    names += [name for name in state.signals if name.startswith(("stop.", "friction."))]
    columns |= {name: state[name][:, 0] for name in names if name in state.signals}
    places = [tree.links[tree.link_of_rate[k]].q.start for k in robot.actuated]
    power = (state["effort"] * state["change"][:, places]).sum(axis=1)
    for name in problem.wrenches:
        power = power + (state[f"{name}.wrench"] * state[f"{name}.motion"][:, :6]).sum(axis=1)
    opening = np.abs(state["opening"]).max(axis=1) if "opening" in state.signals else np.zeros(len(state["q"]))
    return columns | {
        "energy.total": state["energy"].sum(axis=1),
        "power.input": power,
        "power.loss": state["loss"][:, 0],
        "work.input": state["work"][:, 0],
        "work.loss": state["work"][:, 1],
        "closure_error": opening,
    }


def acceleration_columns(state: RunState) -> dict[str, Array]:
    """Return accelerations of the independent rates."""
    number = {name: k for k, name in enumerate(state.robot.tree.rate_names)}
    return {f"qdd.{name}": state["accelerations"][:, number[name]] for name in state.problem.independent}


# -- frames ------------------------------------------------------------------------------------------------


def frame_columns(name: str, position: Array, rotation: Array, motion: Array, planar: bool) -> dict[str, Array]:
    """Return pose, twist and acceleration of a frame, in world axes and in its own (`local_`)."""
    columns = {f"{name}.{axis}": position[:, k] for k, axis in enumerate(AXES[: 2 if planar else 3])}
    moving = motion_columns(name, rotation, motion, planar)
    if planar:
        axis = axis_in_plane(rotation[0]) if len(rotation) else 0
        return columns | {f"{name}.theta": np.unwrap(np.arctan2(rotation[:, 1, axis], rotation[:, 0, axis]))} | moving
    turns = quaternions(rotation)
    if len(turns):
        turns[0] *= np.sign(turns[0, np.argmax(np.abs(turns[0]))])
    # without jumps of sign
    turns[1:] *= np.cumprod(np.where(np.einsum("ti,ti->t", turns[1:], turns[:-1]) < 0, -1.0, 1.0))[:, None]
    return columns | {f"{name}.{word}": part for word, part in zip(ORIENTATION, turns.T, strict=True)} | moving


def axis_in_plane(rotation: Array) -> int:
    """Return the axis of a frame whose angle in the plane is its theta: x, or y if x is normal to the plane."""
    return 0 if np.hypot(rotation[0, 0], rotation[1, 0]) > NORMAL else 1


def is_tilted(rotation: Array) -> bool:
    """Return whether the z axis of a frame is not normal to the plane, so that all its axes measure the motion."""
    return bool(np.hypot(rotation[0, 2], rotation[1, 2]) > NORMAL)


def motion_columns(
    name: str, rotation: Array, motion: Array, planar: bool, tilted: bool | None = None
) -> dict[str, Array]:
    """Return twist and acceleration of a frame, over any scalar; `tilted` follows from rotations that are numbers."""
    columns = {}
    tilted = planar and (len(rotation) > 0 and is_tilted(rotation[0]) if tilted is None else tilted)
    straight, turning = ((0, 1), (2,)) if planar else ((0, 1, 2), (0, 1, 2))
    for word, start, axes in (("v", 0, straight), ("w", 3, turning), ("a", 6, straight), ("al", 9, turning)):
        world = motion[:, start : start + 3]
        local = np.einsum("tji,tj->ti", rotation, world)
        for k, axis in enumerate(AXES):
            if k in axes:
                columns[f"{name}.{word}{axis}"] = world[:, k]
            if tilted or k in axes:
                columns[f"{name}.local_{word}{axis}"] = local[:, k]
    return columns


def recorded_frames(robot: Robot, frames: Sequence[str] | None) -> list[str]:
    """Return the recorded frames: the end effector under all its names, or the named frames."""
    places, end = robot.tree.places, robot.tree.end_effector
    if frames is None:
        same = [point.name for point in robot.description.point if point.frame == end]
        parts = [(places[name].position, places[name].rotation) for name in (end, *same)]
        names = [name for name, part in zip(same, parts[1:], strict=True) if all(map(np.array_equal, part, parts[0]))]
        names.append(end)
    else:
        names = list(dict.fromkeys(frames)) or [end]
    for name in names:
        if not robot.tree.has(name, "frames"):
            raise InputError(f"there is no frame '{name}'", key="frames", value=name, hint=did_you_mean(name, places))
    joints = dict.fromkeys([*robot.tree.position_names, *robot.tree.rate_names])
    columns = {f"{word}.{name}" for word in OF_JOINTS for name in joints}
    for name in names:
        for column in (f"{name}.{word}" for word in OF_FRAME):
            if column in columns:
                text = f"the frame '{name}' and a joint would both have the column '{column}'"
                hint = "rename one of them in the robot file, or report other frames"
                raise InputError(text, key="frames", value=name, hint=hint)
    return names


# -- outputs on request ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Output(Record):
    """A column on request: its function of the state, and the frames whose signals it needs."""

    column: str
    value: Callable[[RunState], Array]
    frames: tuple[str, ...] = ()
    load: str = ""  # joint or closure whose loads it shows
    beam: str = ""
    inner: bool = False  # whether accelerations deflect the place


class OutputKind(NamedTuple):
    """Words of one pattern, the function that reads them (robot, match, frames with wrenches), and examples."""

    pattern: re.Pattern[str]
    read: Callable[[Robot, re.Match[str], Sequence[str]], list[Output]]
    examples: Callable[[Robot], list[str]]


def read_outputs(
    robot: Robot, words: Sequence[str], wrenches: Sequence[str] = (), all_reactions: bool = False
) -> list[Output]:
    """Return the columns that words name, where wrenches act on frames; raise where there is no such output."""
    if isinstance(words, str):
        raise InputError("the outputs are a list of names", key="outputs", value=words, hint=f"write ['{words}']")
    words = [*words, *(f"reaction.{name}" for name in reaction_names(robot) if all_reactions)]
    outputs: dict[str, Output] = {}
    for word in dict.fromkeys(words):
        matches = ((kind, kind.pattern.fullmatch(str(word))) for kind in OUTPUTS)
        kind, match = next(((kind, match) for kind, match in matches if match is not None), (None, None))
        if kind is None or match is None:
            known = [example for kind in OUTPUTS for example in kind.examples(robot)]
            raise _no_output(word, known)
        try:
            outputs |= {output.column: output for output in kind.read(robot, match, wrenches)}
        except InputError as error:
            error.key = "outputs"
            raise
    return list(outputs.values())


def add_outputs(state: RunState, outputs: Sequence[Output], columns: dict[str, Array]) -> None:
    """Put the columns of outputs into those of a run."""
    for output in outputs:
        columns[output.column] = output.value(state)


def load_summary(state: RunState, outputs: Sequence[Output]) -> dict[str, Any]:
    """Return the largest stress, computed when it is read, the largest reactions of outputs, and those not unique."""
    summary: dict[str, Any] = {}
    stressed = [name for name, chain in state.chains.items() if chain.parts.fibres is not None]
    left_out = [each.text for each in missing_stress_warning(state.robot, state.chains)]
    if stressed:
        summary = {"largest_stress": Deferred(lambda: largest_stress_of(state.beams, state.t))}
        summary |= {"stress_left_out": left_out} if left_out else {}
    beams = dict.fromkeys([*(output.beam for output in outputs if output.beam), *stressed])
    tips = {state.robot.tree.links[state.chains[beam].tip].name: beam for beam in beams}
    loose = sorted(beam for tip, beam in tips.items() if tip in state.undetermined)
    summary |= {"undetermined_sections": loose} if loose else {}
    joints = dict.fromkeys(output.load for output in outputs if output.load)
    if joints:
        names = [name for name in state.wrenches if name in joints]
        summary["largest_reactions"] = {name: _largest(state.wrenches[name], state.t) for name in names}
        summary["undetermined_reactions"] = [name for name in names if name in state.undetermined]
    return summary


def coupling_summary(robot: Robot, columns: Mapping[str, Array]) -> dict[str, Any]:
    """Return the largest effort in each coupling (N, N m) with its time; none where no effort is known."""
    largest: dict[str, Any] = {}
    for coupling in robot.description.coupling:
        values = columns.get(f"coupling.{coupling.name}.effort", np.zeros(0))
        if np.isfinite(values).any():
            k = int(np.argmax(np.where(np.isfinite(values), np.abs(values), -1.0)))
            largest[coupling.name] = {"effort": float(values[k]), "time": float(columns["t"][k])}
    return {"couplings": largest} if largest else {}


def _largest(wrenches: Array, t: Array) -> dict[str, float]:
    """Return the largest force and moment of a joint or closure, with their times."""
    entry: dict[str, float] = {}
    for word, part in (("force", slice(0, 3)), ("moment", slice(3, 6))):
        size = np.linalg.norm(wrenches[:, part], axis=1)
        row = int(np.nanargmax(size)) if np.isfinite(size).any() else 0
        entry |= {word: float(size[row]), f"{word}_time": float(t[row])}
    return entry


def load_warnings(summary: Mapping[str, Any]) -> list[Diagnostic]:
    """Return diagnostics of unknown stresses, and of reactions or section forces that are not unique."""
    diagnostics = [Diagnostic("unknown-stress", text) for text in summary.get("stress_left_out", [])]
    for key, what in (
        ("undetermined_reactions", "reactions"),
        ("undetermined_sections", "section forces and stresses"),
    ):
        if names := summary.get(key, []):
            text = f"the robot is over-constrained: the {what} of {quoted(names)} are those of least norm"
            diagnostics.append(Diagnostic("undetermined-forces", text, names[0]))
    return diagnostics


def expand_places(words: Sequence[str], key: str) -> list[str]:
    """Return all words of a list, a range of places, BEAM.Mz@0:1:5 or BEAM@0:1:5.vx, as those of each place."""
    return [place for word in words for place in (_expanded(word, key) if isinstance(word, str) else [word])]


def _expanded(word: str, key: str) -> list[str]:
    match = RANGE.fullmatch(word)
    if match is None:
        return [word]
    beam, text, name = match.groups()
    try:
        low, high, number = text.split(":")
        first, last, count = float(low), float(high), int(number)
    except ValueError:
        first, last, count = 0.0, 0.0, 0
    if not 2 <= count <= MOST_PLACES or not 0 <= first < last <= 1:
        raise InputError(
            f"'{text}' is not a range of places", key=key, value=word,
            hint=f"give first:last:count from 0 to 1, with at most {MOST_PLACES} places, such as 0:1:21",
        )  # fmt: skip
    return [f"{beam}@{s:.6g}{name}" for s in np.linspace(first, last, count)]


def _no_output(word: object, known: Sequence[str]) -> InputError:
    hint = did_you_mean(str(word), known)
    return InputError(f"there is no output '{word}'", key="outputs", value=str(word), hint=hint)


def reaction_names(robot: Robot) -> list[str]:
    """Return joints, then closures."""
    joints = [link.name for link in robot.tree.links if has_reaction(link)]
    return [*joints, *(loop.name for loop in robot.closures.loops)]


def _read_reaction(robot: Robot, match: re.Match[str], _: Sequence[str]) -> list[Output]:
    names, name, words = reaction_names(robot), match[1], list(COMPONENTS)
    if name not in names and name[-3:-2] == "." and name[-2:] in COMPONENTS:
        name, words = name[:-3], [name[-2:]]
    if name not in names:
        raise _no_output(match[0], _reaction_examples(robot))

    def component(word: str, state: RunState) -> Array:
        return state.wrenches[name][:, COMPONENTS.index(word)]

    return [Output(f"reaction.{name}.{word}", partial(component, word), load=name) for word in words]


def _reaction_examples(robot: Robot) -> list[str]:
    names = [f"reaction.{name}" for name in reaction_names(robot)]
    return names + sorted(f"{name}.{word}" for name in names for word in COMPONENTS)


def _read_base(robot: Robot, match: re.Match[str], _: Sequence[str]) -> list[Output]:
    """Check a column that every run has: nothing is added."""
    if match[0] not in _base_examples(robot):
        raise _no_output(match[0], _base_examples(robot))
    return []


def _base_examples(robot: Robot) -> list[str]:
    names = [f"coupling.{coupling.name}.effort" for coupling in robot.description.coupling]
    return names + [
        f"element.{element.name}.{word}" for element in robot.description.element for word in ("force", "length")
    ]


def _read_section(robot: Robot, match: re.Match[str], _: Sequence[str]) -> list[Output]:
    beam, word, where = match.groups()
    read_beam(robot, beam, word, match[0])
    s = read_beam_position(where, beam, "outputs", match[0])

    def value(state: RunState) -> Array:
        return state.beams[beam].quantity(word, state.beams[beam].forces([s])[:, 0])

    return [Output(match[0], value, beam=beam)]


def _beams(robot: Robot, words: Sequence[str]) -> list[str]:
    """Return examples of words in the middle of all beams."""
    return [f"{frame.name}.{word}@0.5" for frame in robot.description.frame if frame.beam for word in words]


def _read_deflection(robot: Robot, match: re.Match[str], wrenches: Sequence[str]) -> list[Output]:
    beam, word, s = match.groups()
    beams = [frame.name for frame in robot.description.frame if frame.beam]
    if beam not in beams:
        raise InputError(f"there is no beam '{beam}'", value=match[0], hint=did_you_mean(beam, beams))
    if robot.tree.planar and word.endswith("_z"):
        raise InputError("a planar robot deflects in its plane alone", value=match[0], hint=f"use {word[:-1]}y")
    place, names = read_place(robot, beam, s, wrenches), [word]
    if word not in BENT:
        names = [name for name in BENT if not (robot.tree.planar and name[-1] == "z")]

    def deflection(name: str, state: RunState) -> Array:
        return place_deflection(robot.tree, place, name, state.signals)

    return [
        Output(f"{beam}.{name}@{s}", partial(deflection, name), place.frames, inner=place.inner is not None)
        for name in names
    ]


def _read_frame(robot: Robot, match: re.Match[str], _: Sequence[str]) -> list[Output]:
    frame, word = match[1] or robot.tree.end_effector, match[2]
    tree, planar = robot.tree, robot.tree.planar
    rotation = pose(tree, robot.home).of(tree.place(frame))[0]
    # sensors on a planar robot show what lies in its plane, and gravity across it
    flat = ("sensor_ax", "sensor_ay", "sensor_wz", *(["sensor_az"] if tree.gravity[2] else []))
    measured = flat if planar and not is_tilted(rotation) else SENSOR
    if planar and word in SENSOR and word not in measured:
        raise InputError(
            f"'{word}' of a planar robot is zero", value=match[0],
            hint="sensors show sensor_ax, sensor_ay and sensor_wz; sensor_az where gravity acts across the plane",
        )  # fmt: skip
    known = [*frame_columns("", np.zeros((1, 3)), rotation[None], np.zeros((1, 12)), planar)]
    known = [name.removeprefix(".") for name in known] + list(SENSOR)
    if word != "sensor" and word not in known:
        text = f"a frame of a {'planar' if planar else 'spatial'} robot has no '{word}'"
        raise InputError(text, value=match[0], hint=did_you_mean(word, known))

    if word != "sensor":
        return [Output(match[0], partial(_frame_column, frame, word), (frame,))]
    names = SENSOR if measured is SENSOR else flat[:3]
    return [Output(f"{frame}.{name}", partial(_frame_column, frame, name), (frame,)) for name in names]


def _frame_column(frame: str, word: str, state: RunState) -> Array:
    position, rotation, motion = state.frame(frame)
    if word not in SENSOR:
        return frame_columns("", position, rotation, motion, state.robot.tree.planar)[f".{word}"]
    # an accelerometer at rest shows -g
    measured = motion[:, 3:6] if word[-2] == "w" else motion[:, 6:9] - state.robot.tree.gravity
    return np.einsum("tj,tj->t", rotation[:, :, AXES.index(word[-1])], measured)


OUTPUTS = (
    OutputKind(re.compile(r"(?:element|coupling)\..+\.(?:length|force|effort)"), _read_base, _base_examples),
    OutputKind(re.compile(r"reaction\.(.+)"), _read_reaction, _reaction_examples),
    OutputKind(
        re.compile(rf"(.+)\.({'|'.join(BENT)}|deflection)@([^@]+)"),
        _read_deflection,
        lambda robot: _beams(robot, (*BENT, "deflection")),
    ),
    OutputKind(
        re.compile(rf"(.*)\.({'|'.join((*FORCES, STRESS))})@(.+)"),
        _read_section,
        lambda robot: _beams(robot, (*(FORCES[k] for k in (IN_PLANE if robot.tree.planar else range(6))), STRESS)),
    ),
    OutputKind(
        re.compile(rf"(?:(.*)\.)?(sensor|{'|'.join((*SENSOR, *OF_FRAME))})"),
        _read_frame,
        lambda robot: [f"{robot.tree.end_effector}.{word}" for word in (*SENSOR, "sensor", *OF_FRAME)],
    ),
)
