"""Simulate a robot over time: `simulate(...)`."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Literal

import numpy as np

from parflex.codegen.model import garbage_collection_paused
from parflex.diagnostics import Diagnostic, reported
from parflex.dynamics.contact_state import refuse_start_outside
from parflex.errors import InputError, did_you_mean
from parflex.forces.effort_allocation import EffortLimit, Preload, Weights
from parflex.forces.section_forces import reduced_load_warning
from parflex.integrators.driver import CITATIONS, Grid, IntegratedRows, method_named
from parflex.robot.configuration import Pose
from parflex.robot.robot import Robot
from parflex.simulation.contacts import contact_summary, contact_warnings, identical_joint_warnings, stop_limit_warnings
from parflex.simulation.controller import Controller, controlled
from parflex.simulation.diagnostics import (
    balance_error,
    balance_warnings,
    cable_warnings,
    friction_width_effect,
    inconsistency_warnings,
    inconsistent_shares,
    jam_reason,
    jump_warnings,
    length_warnings,
    limit_warnings,
    partition_changed,
    refuse_longer,
    stop_warnings,
)
from parflex.simulation.mesh_convergence import content_warnings, inner_warnings
from parflex.simulation.outputs import (
    add_outputs,
    base_columns,
    coupling_summary,
    expand_places,
    load_summary,
    load_warnings,
    read_outputs,
    recorded_frames,
    run_state,
)
from parflex.simulation.place_deflections import inner_wrench_warning
from parflex.simulation.problem import (
    Problem,
    characteristic_energy,
    prepare_problem,
    read_independent,
    refuse_undetermined,
)
from parflex.simulation.quantities import coordinate_rows
from parflex.simulation.runs import Run, Summary, file_hash, versions
from parflex.simulation.segments import Runner, Segments
from parflex.simulation.start import StartState, start_state
from parflex.simulation.step_control import (
    STEP,
    VISIBLE_MOTION,
    StepReport,
    Steps,
    error_warnings,
    estimated_error,
    extent,
    requested_steps,
    with_longest,
)
from parflex.statics.small_deformation import deflection_warnings
from parflex.trajectories.frames import FrameTrajectory
from parflex.trajectories.inputs import InputSpan, specified_efforts, specified_wrenches
from parflex.trajectories.motions import motion_of
from parflex.trajectories.redundant_drive import RedundantDrive, redundant_case
from parflex.trajectories.trajectory import Trajectory

Array = np.ndarray
DRIVES = ("motors", "platform")
FRICTION_WIDTH = 1e-3  # rad/s or m/s over which losses of couplings, and friction under a driven platform, turn
EFFORT = ("evaluations", "steps", "iterations", "jacobians", "rejected")  # what a run took, in its summary
OUT_STEP = 1e-3  # s between rows, where steps are not longer
MOST_ROWS = 5_000_000
SHORTEST = 1e-100  # s, of a run: the squares of its steps and their inverses are numbers of double precision
LOG = logging.getLogger("parflex")


def simulate(
    robot: Robot,
    motion: Any = None,
    time: float = 1.0,
    *,
    effort: Any = None,
    wrench: Mapping[str, Any] | None = None,
    breaks: Sequence[float] = (),
    controller: Controller | None = None,
    drive: Literal["motors", "platform"] = "motors",
    start: Any = None,
    pose: Pose | None = None,
    step: float | None = None,
    out_step: float | None = None,
    method: Literal["gauss4", "gauss6", "rk4", "dopri5", "generalized-alpha"] | None = None,
    tolerance: float | None = None,
    radius: float = 0.8,
    without: Collection[str] = (),
    friction_width: float | None = None,
    check_width: bool = True,
    check_steps: bool | None = None,
    frames: Sequence[str] | None = None,
    independent: Sequence[str] | None = None,
    weights: Weights | None = None,
    preload: Preload | None = None,
    effort_limit: EffortLimit | None = None,
    stops: bool = False,
    outputs: Sequence[str] = (),
    reactions: bool = False,
    converge: float | None = None,
    ignore_limits: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Run:
    """Simulate a robot in time.

    Motors follow `motion`, or have an `effort` in time, or obey a `controller`, whose reference is the motion. With
    `drive="platform"` the platform follows a motion through poses, by the efforts of the inverse model. What is in the
    robot file acts, except what `without` names.

    Parameters
    ----------
    robot, motion, time, breaks, controller, drive, radius, without, check_width, frames
        See `parflex.api.WORDS`.
    weights, preload, effort_limit, stops, ignore_limits
        See `parflex.api.WORDS`.
    effort : Effort, default None
        Efforts of the motors: numbers, tables or functions of time; a motor not named has none (N, N m).
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; numbers, tables or functions of time (N, N
        m).
    start : str or Mapping, default None
        State at the start: 'rest', 'relaxed' (bodies at rest, joints at the pose), 'equilibrium', 'held' or a table;
        None: relaxed if flexible (held if the platform is driven), else rest.
    pose : Pose, default None
        Pose in which a run without a motion starts; None is home (m, rad).
    step : float, default None
        Integration step. None: chosen by errors; `rk4` needs it (s).
    out_step : float, default None
        Time between rows of the result; None: 0.001 (s).
    method : str, default None
        Integrator: gauss4, gauss6, rk4, dopri5 or generalized-alpha. None: gauss6, with a `step` gauss4.
    tolerance : float, default None
        What positions may err by in a step, angles times the typical length. Without `step` it chooses the steps;
        None: 1e-8 of how far the robot has moved (m).
    friction_width : float, default None
        Rate over which Coulomb friction changes its sign; None: joints stick (rad/s, m/s).
    check_steps : bool, default None
        Run again with half the steps and report the error that follows. None: where a `tolerance` chooses them.
    independent : Sequence[str], default None
        Rates that are integrated at first, for checks; None leaves the choice.
    outputs : Sequence[str], default ()
        More columns: reaction.JOINT.fx (fy fz mx my mz), reaction.JOINT (all six); closures by name (N, N m).
        FRAME.sensor_ax, what an accelerometer shows (ay az; wx wy wz of a gyroscope), FRAME.vx and other motions
        (m/s^2, rad/s, m, m/s); BEAM.chord_y@0.5 and BEAM.tangent_y@0.5, deflections (also z; m). @0:1:21 is 21 places.
    reactions : bool, default False
        Columns of the reactions of all joints and closures, and their largest values in the summary.
    converge : float, default None
        Divide the elements of beams until the answer changes by no more than this share of it: recorded frames of the
        largest deflection of a beam, efforts and `outputs` of their largest value; None: as they are (dimensionless).
    progress : callable, default None
        Called with the time in s at intervals.

    Returns
    -------
    Run
        Columns by name over time `t` (s): frames (m, rad), efforts (N, N m), energies (J); settings and a summary.
    """
    outputs = outputs if isinstance(outputs, str) else expand_places(outputs, "outputs")
    frames = None if frames is None else expand_places(frames, "frames")
    if converge is not None:
        asked_for = {key: value for key, value in locals().items() if key not in ("robot", "converge")}
        from parflex.simulation.mesh_convergence import converged_run

        return converged_run(simulate, robot, converge, asked_for)
    if drive not in DRIVES:
        raise InputError(f"'{drive}' cannot be driven", key="drive", value=drive, hint=did_you_mean(drive, DRIVES))
    method = ("gauss6" if step is None else "gauss4") if method is None else method
    if friction_width == 0:
        text, hint = "the friction width must be positive", "give e.g. 1e-3, or leave it out: joints then stick"
        raise InputError(text, key="friction_width", value=friction_width, hint=hint)
    case = read_case(
        robot, motion, time, effort, wrench, controller, drive, start, pose, step, out_step, method, tolerance, radius,
        without, breaks,
    )  # fmt: skip
    case = redundant_case(case, {"weights": weights, "preload": preload, "effort_limit": effort_limit})
    original_robot, robot, motors, grid = robot, case.robot, robot.motors, case.grid
    looked_at = recorded_frames(robot, frames)
    requested = read_outputs(robot, outputs, list(case.wrenches), reactions)
    case = replace(case, independent=read_independent(robot, independent, case.prescribed), stops=bool(stops))
    begin = perf_counter()
    sticking = friction_width is None
    problem = prepared_case(case, friction_width or FRICTION_WIDTH, sticking)
    segments, started = run_case(case, problem, progress, None)
    state = run_state(problem, segments, looked_at, case.spare, requested)
    columns, track = base_columns(state, looked_at), segments.track
    add_outputs(state, requested, columns)
    summary = run_summary(track, columns, perf_counter() - begin - track.seconds)
    made = case.steps.report(track)
    summary |= made.told | started.told
    summary |= {"velocity_jumps": segments.jumps, "changes": segments.changes} | coupling_summary(robot, columns)
    if "why" in summary:
        summary["why"] = jam_reason(problem.robot, columns) or summary["why"]
    summary |= contact_summary(problem, track.events, columns, case.stops)
    summary |= load_summary(state, requested) | ({} if case.spare is None else {"internal": case.spare.told()})
    every = track.counts["steps"] / max(1, len(track.t) - 1) if grid.begin else grid.every
    summary["not_followed"] = inconsistent_shares(state, columns, requested, every)
    shown = [frame for output in requested for frame in output.frames[:1]]
    tree, q = problem.robot.tree, coordinate_rows(robot, columns)  # as it acts, without what is left out
    moved, followed = max(extent(tree, q), VISIBLE_MOTION * tree.length), problem.driven and case.motion
    diagnostics = [
        *stop_warnings(summary),
        *load_warnings(summary),
        *case.diagnostics,
        *(stop_limit_warnings(problem.robot) if case.stops else []),
        *started.diagnostics,
        *([] if ignore_limits else limit_warnings(problem.robot, columns, motors, effort_limit, followed)),
        *jump_warnings(segments.jumps),
        *balance_warnings(columns, method, characteristic_energy(tree, time)),
        *made.warnings(moved),
        *contact_warnings(problem.robot, track.events, columns, method, 0.0 if grid.begin else grid.step),
        *identical_joint_warnings(problem, track.counts),
        *cable_warnings(problem.robot, columns),
        *reduced_load_warning(robot.tree, list(case.wrenches)),
        *inner_wrench_warning(robot, state.signals, list(case.wrenches), [*looked_at, *shown]),
        *(partition_changed(segments.changes) if case.independent else []),
        *deflection_warnings(tree, q),
        *(
            content_warnings(robot, columns)
            or inner_warnings(robot, case.prescribed, columns, state["accelerations"], case.without)
        ),
        *inconsistency_warnings(
            problem,
            summary["not_followed"],
            [output.column for output in requested],
            method,
            grid.out_step / max(every, 1e-9),
            every,
        ),
    ]
    if problem.width and check_width and track.status == "ok":
        other, _ = second_run(case, prepared_case(case, problem.width / 2, sticking), looked_at, None)
        summary["friction"] = friction_width_effect(columns, other, looked_at[0], problem.width)
    usual = tolerance is not None and grid.begin > 0
    if (usual if check_steps is None else check_steps) and track.status == "ok":
        half = case.steps.halved(tree.length, track.judged[2] if track.judged else time)
        other, second = second_run(replace(case, steps=half), problem, looked_at, started)
        error = summary["estimated_error"] = estimated_error(columns, other, looked_at[0], case.steps.method, second)
        diagnostics += error_warnings(columns, error, tree.length, tolerance is not None)
    summary |= reported(diagnostics)
    return Run(columns, run_settings(original_robot, case, problem, made), summary)


def second_run(
    case: RunCase, problem: Problem, frames: Sequence[str], started: StartState | None
) -> tuple[dict[str, Array], IntegratedRows]:
    """Return columns of a run for comparison, and how it went."""
    segments, _ = run_case(case, problem, None, started)
    return base_columns(run_state(problem, segments, frames, case.spare), frames), segments.track


def run_summary(track: IntegratedRows, columns: Mapping[str, Array], preparation: float) -> Summary:
    """Return how a run went, and its energy balance."""
    total = columns["energy.total"]
    summary = Summary(
        status=track.status,
        time=float(track.t[-1]),
        rows=len(track.t),
        seconds=track.seconds,
        preparation_seconds=preparation,
        real_time_factor=float(track.t[-1]) / track.seconds if track.seconds else None,
        **{word: track.counts[word] for word in EFFORT if word in track.counts},
        closure_error=float(columns["closure_error"].max()),
        energy={"first": float(total[0]), "last": float(total[-1])},
        energy_balance_error=balance_error(columns),
    )
    if track.status == "diverged":
        summary |= {"stopped_at": track.stopped, "coordinate": track.coordinate, "why": track.why}
    return summary


def run_settings(robot: Robot, case: RunCase, problem: Problem, made: StepReport) -> dict[str, Any]:
    """Return everything that a run depends on, with versions."""
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
        "method": case.steps.method.name,
        "citation": CITATIONS[case.steps.method.name],
        "step": made.step,
        "out_step": case.grid.out_step,
        "tolerance": made.tolerance or case.steps.tolerance,
        "operators": problem.model.counts["total"],
        "versions": dict(versions()),
    }


@dataclass(frozen=True)
class RunCase:
    """Everything that a run needs but the width of the friction."""

    robot: Robot
    prescribed: str  # motors, platform or efforts: what is given in time
    motion: Trajectory | FrameTrajectory | None
    given: Trajectory
    controller: Controller | None
    wrenches: Mapping[str, Trajectory]
    without: tuple[str, ...]
    start: Any
    pose: Any
    steps: Steps
    diagnostics: tuple[Diagnostic, ...] = ()  # about what was given
    independent: tuple[str, ...] = ()  # rates that were chosen; none: the model chooses
    spare: RedundantDrive | None = None  # where motors that are more than freedoms follow a motion
    stops: bool = False  # whether limits act

    @property
    def grid(self) -> Grid:
        """Return steps and rows."""
        return self.steps.grid


@garbage_collection_paused()
def read_case(
    robot: Robot, motion: Any, time: float, effort: Any, wrench: Any, controller: Any, drive: str, start: Any,
    pose: Any, step: float | None, out_step: float | None, method: str, tolerance: float | None, radius: float,
    without: Collection[str], breaks: Sequence[float],
) -> RunCase:  # fmt: skip
    """Return the checked arguments of a run, with inputs as polynomials in time."""
    if time < SHORTEST:
        raise InputError(
            f"'time' ({time:g} s) is shorter than {SHORTEST:g} s", key="time", value=time, hint="give a longer time"
        )
    if motion is not None and effort is not None:
        raise InputError("the motors have a motion and efforts", key="effort", hint="give one of them")
    if controller is not None and effort is not None:
        raise InputError("the motors have a controller and efforts", key="effort", hint="give one of them")
    if controller is not None and not getattr(controller, "sample_time", 0) > 0:
        raise InputError("the controller has no sample time", key="controller", hint="give it a positive sample_time")
    refuse_longer(time, step, out_step, None if controller is None else controller.sample_time)
    rows = controller.sample_time if controller is not None else out_step or min(max(step or STEP, OUT_STEP), time)
    if time / rows > MOST_ROWS or time / (step or STEP) > 1e10:
        text = f"the run would have {time / rows:.3g} rows and {time / (step or STEP):.3g} steps"
        hint = f"at most {MOST_ROWS} rows: give a larger step or a shorter time"
        raise InputError(text, key="step", value=step, hint=hint)
    steps = requested_steps(time, step, rows, tolerance, method_named(method, radius), robot.tree)
    span = InputSpan(steps.grid.rows * steps.grid.out_step, breaks)
    moved: Any = None if motion is None else motion_of(robot, motion, span, drive)
    wrenches = specified_wrenches(robot, wrench, span)
    prescribed = drive if moved is not None and controller is None else "efforts"
    if drive == "platform" and (prescribed == "efforts" or wrench):
        text = "a platform is driven by a motion alone, without wrenches or a controller"
        raise InputError(text, key="drive", value=drive, hint="give a motion through poses, or drive the motors")
    inputs: Trajectory
    if prescribed == "efforts":
        inputs = specified_efforts(robot, effort, span)
    else:
        inputs = moved if isinstance(moved, Trajectory) else moved.accelerations
    for pieces in wrenches.values():
        inputs = inputs.beside(pieces)
    steps, diagnostics = replace(steps, grid=with_longest(steps.grid, inputs)), tuple(length_warnings(time, steps.grid))
    return RunCase(
        robot, prescribed, moved, inputs, controller, wrenches, tuple(without), start, pose, steps, diagnostics
    )


@garbage_collection_paused()
def prepared_case(case: RunCase, width: float, sticking: bool) -> Problem:
    """Return the programs of a case: friction is smooth over `width`, or joints stick."""
    problem = prepare_problem(
        case.robot, case.prescribed, case.wrenches, case.without, width, case.independent, case.stops, sticking,
        case.steps.method.numbers,
    )  # fmt: skip
    return replace(problem, time=min(1.0, case.grid.rows * case.grid.out_step))


@garbage_collection_paused()
def run_case(
    case: RunCase, problem: Problem, shown: Callable[[float], None] | None, started: StartState | None
) -> tuple[Segments, StartState]:
    """Return the run and its initial state, which may be that of another run."""
    steps, control, inputs = case.steps, None, case.given
    announced = problem.is_long and say_first_compilation(steps.method.steps)
    if started is None:
        problem.begin_compilation(inputs, steps.method, steps.grid.aim > 0)
        started = start_state(problem, case.robot, case.start, case.pose, case.motion, case.wrenches)
    q, qd = started.q, started.qd[problem.places]
    refuse_start_outside(problem.robot, q)
    if case.independent:
        refuse_undetermined(problem.robot, problem.independent, [q], " at the start")
    if not announced:
        say_first_compilation(steps.method.steps)
    if case.controller is not None:
        inputs = Trajectory(inputs.breaks, inputs.coefficients.copy())  # efforts are written into it
        assert not isinstance(case.motion, FrameTrajectory)
        control = controlled(case.robot, case.controller, case.motion, q, inputs)
    return Runner(problem, inputs, steps, control, shown).run(q, qd), started


def say_first_compilation(loop: Any) -> bool:
    """Say in the log `parflex` that a loop is compiled; nothing where it is compiled, or kept on disk."""
    if loop.is_compiled():
        return False
    LOG.warning("parflex compiles the time loop '%s': some seconds, once on a machine", loop.__name__)
    return True
