"""Simulation: a robot, what drives it and for how long in, a run out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.forces.sections import expand_all_places, reduced_load_warning
from parflex.forces.spare_motors import EffortLimit, Preload, Weights
from parflex.robot.configuration import Pose
from parflex.robot.robot import Robot
from parflex.simulation.columns import columns_from, columns_of, position_columns, seen_in
from parflex.simulation.controller import Controller
from parflex.simulation.inputs.corners import jump_warnings
from parflex.simulation.outputs.limit_report import run_limit_warnings
from parflex.simulation.outputs.place_columns import (
    add_places,
    frames_of,
    frames_shown,
    pushed_between,
    read_place_words,
)
from parflex.simulation.outputs.reactions_in_time import add_reactions, reaction_warnings, read_outputs
from parflex.simulation.outputs.recorded_frames import recorded_frames
from parflex.simulation.outputs.rough_rows import Follows, rough_shares, rough_warnings
from parflex.simulation.outputs.run_record import run_settings, run_summary
from parflex.simulation.outputs.sections_in_time import read_section_words
from parflex.simulation.outputs.stick_report import alike_warnings, stick_entries
from parflex.simulation.outputs.stop_report import (
    contact_warnings,
    flank_entries,
    largest_stop_effort,
    stop_entries,
    stop_warnings_of,
)
from parflex.simulation.partitions import read_independent
from parflex.simulation.problem import usual_energy
from parflex.simulation.refining.inner_response import inner_warnings
from parflex.simulation.refining.strain_content import content_warnings
from parflex.simulation.run_case import Case, prepared, read_case, run_case
from parflex.simulation.run_checks import (
    balance_warnings,
    by_acceleration,
    by_deflection,
    cable_warnings,
    coupling_summary,
    jam_reason,
    left_choice,
    stop_warnings,
    width_effect,
)
from parflex.simulation.runs import Run
from parflex.simulation.step_lengths.halved_steps import (
    MORE_STEPS,
    checked_by_default,
    error_warnings,
    estimated_error,
    halved,
    halved_evenly,
)
from parflex.simulation.step_lengths.instants import input_warnings
from parflex.simulation.step_lengths.step_choice import (
    drift_warnings,
    floor_warnings,
    force_warnings,
    forces_beside,
    step_summary,
    step_warnings,
    unseen_warnings,
)
from parflex.statics.small_deformation import deflection_warnings
from parflex.trajectories.follow import redundant_case

Array = np.ndarray
DRIVES = ("motors", "platform")
FRICTION_WIDTH = 1e-3  # rad/s or m/s over which losses of couplings, and friction under a driven platform, turn


def simulate(
    robot: Robot,
    motion: Any = None,
    time: float = 1.0,
    *,
    effort: Any = None,
    wrench: Mapping[str, Any] | None = None,
    controller: Controller | None = None,
    drive: Literal["motors", "platform"] = "motors",
    start: Any = None,
    pose: Pose | None = None,
    step: float | None = None,
    out_step: float | None = None,
    method: Literal["gauss4", "gauss6", "rk4", "dopri5", "generalized-alpha"] = "gauss4",
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
    robot : Robot
        Robot, from `load`.
    motion : str, Path, Mapping or callable, default None
        Motion: name in the file, motion file, table, table of knots, or function of time; None prescribes no motion (m,
        rad).
    time : float, default 1.0
        Duration (s).
    effort : Effort, default None
        Efforts of the motors: numbers, tables or functions of time; a motor not named has none (N, N m).
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; numbers, tables or functions of time (N, N
        m).
    controller : Controller, default None
        Controller called at its sample time, e.g. `PD` (N, N m).
    drive : {'motors', 'platform'}, default "motors"
        What follows the motion.
    start : str or Mapping, default None
        State at the start: 'rest', 'relaxed' (bodies at rest, joints at the pose), 'equilibrium', 'held' or a table;
        None: relaxed if flexible (held if the platform is driven), else rest.
    pose : Pose, default None
        Pose in which a run without a motion starts; None is home (m, rad).
    step : float, default None
        Integration step. None: chosen by `tolerance`, else from frequencies and motion, at most 0.0005 (s).
    out_step : float, default None
        Time between rows of the result; None: 0.001 (s).
    method : str, default "gauss4"
        Integrator: gauss4, gauss6, rk4, dopri5 or generalized-alpha.
    tolerance : float, default None
        What positions may err by in a step, angles times the typical length. Without `step` it chooses the steps (m).
    radius : float, default 0.8
        Spectral radius of generalized-alpha: 1 damps nothing, 0 most (dimensionless).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.
    friction_width : float, default None
        Rate over which Coulomb friction changes its sign; None: joints stick (rad/s, m/s).
    check_width : bool, default True
        Run again with half the friction width, where there is one, and report the difference.
    check_steps : bool, default None
        Run again with half the steps and report the error that follows. None: where a tolerance chooses them, and where
        joints of a flexible robot stuck at a step that was not given.
    frames : Sequence[str], default None
        Frames to report; None: the end effector.
    independent : Sequence[str], default None
        Rates that are integrated at first, for checks; None leaves the choice.
    weights : Mapping[str, float], default None
        Weights of the squared efforts by motor, where motors are more than freedoms; those not named have 1.
    preload : Mapping[str, float], default None
        Internal efforts by motor, of one motor for each that is spare, at home; elsewhere the nearest internal efforts
        (N, N m).
    effort_limit : float or Mapping[str, float], default None
        Largest effort of all motors, or of each; a pair is a lowest and a highest effort. Of motors that are more than
        freedoms and follow a motion (N, N m).
    stops : bool, default False
        Let the limits of joints act, by the `stop` of the robot file.
    outputs : Sequence[str], default ()
        More columns: reaction.JOINT.fx (fy fz mx my mz), reaction.JOINT (all six); closures by name (N, N m).
        FRAME.sensor_ax, what an accelerometer shows (ay az; wx wy wz of a gyroscope), FRAME.vx and other motions
        (m/s^2, rad/s, m, m/s); BEAM.chord_y@0.5 and BEAM.tangent_y@0.5, deflections (also z; m). @0:1:21 is 21 places.
    reactions : bool, default False
        Columns of the reactions of all joints and closures, and their largest values in the summary.
    converge : float, default None
        Divide the elements of beams until the answer changes by no more than this share of it: recorded frames of the
        largest deflection of a beam, efforts and `outputs` of their largest value; None: as they are (dimensionless).
    ignore_limits : bool, default False
        Do not check the limits of the robot file.
    progress : callable, default None
        Called with the time in s at intervals.

    Returns
    -------
    Run
        Columns by name over time `t` (s): frames (m, rad), efforts (N, N m), energies (J); settings and a summary.

    Examples
    --------
    >>> run = parflex.simulate(parflex.load("dualemps"), "square", 2.0, without=["friction"])
    """
    outputs = outputs if isinstance(outputs, str) else expand_all_places(outputs, "outputs")
    frames = None if frames is None else expand_all_places(frames, "frames")
    if converge is not None:
        asked_for = {key: value for key, value in locals().items() if key not in ("robot", "converge")}
        from parflex.simulation.refining.converged_run import converged_run

        return converged_run(simulate, robot, converge, asked_for)
    if drive not in DRIVES:
        raise InputError(f"'{drive}' cannot be driven", key="drive", value=drive, hint=did_you_mean(drive, DRIVES))
    case = read_case(
        robot, motion, time, effort, wrench, controller, drive, start, pose, step, out_step, method, tolerance, radius,
        without,
    )  # fmt: skip
    case = redundant_case(case, {"weights": weights, "preload": preload, "effort_limit": effort_limit})
    given, robot = robot, case.robot
    chosen = read_independent(robot, independent, case.prescribed)
    case = replace(case, independent=chosen, stops=bool(stops), deflections=by_deflection(outputs))
    if friction_width is not None and not friction_width > 0:
        raise InputError(
            "the friction width must be positive",
            key="friction_width",
            value=friction_width,
            hint="give e.g. 1e-3, or leave it out: joints then stick",
        )
    looked_at, asked = recorded_frames(robot, frames), read_outputs(robot, outputs, reactions)
    places = read_place_words(robot, outputs, list(case.wrenches))
    words = read_section_words(robot, outputs)
    begin = perf_counter()
    sticking = friction_width is None
    problem = prepared(case, friction_width or FRICTION_WIDTH, sticking)
    case, segments, started = run_case(case, problem, progress, None)
    seen = seen_in(problem, segments, [*looked_at, *frames_of(places)], case.spare)
    columns, track = columns_from(problem, segments, seen, looked_at, case.spare), segments.track
    add_places(problem.robot.tree, places, seen, columns)
    jumps, carried = segments.jumps, add_reactions(problem, seen, columns, asked, words, case.spare)
    summary = run_summary(track, columns, perf_counter() - begin - track.seconds)
    summary |= step_summary(case.grid, case.steps, track) | started.told
    summary |= {"velocity_jumps": jumps, "changes": segments.changes} | coupling_summary(robot, columns)
    if "why" in summary:
        summary["why"] = jam_reason(problem.robot, columns) or summary["why"]
    if case.sampled:
        summary["samples_apart"] = dict(case.sampled)
    if case.stops:
        summary |= {"stops": stop_entries(problem, track.events), "largest_stop_effort": largest_stop_effort(columns)}
    if problem.sticking:
        summary["sticks"] = stick_entries(problem, track.events, columns)
    if any(spring.has_flanks for spring in problem.robot.tree.springs):
        summary["flanks"] = flank_entries(problem, track.events)
    summary |= carried | ({} if case.spare is None else {"internal": case.spare.told()})
    summary["not_followed"] = rough_shares(
        problem, seen, columns, asked, places, words, case.spare, case.grid.every
    )  # fmt: skip
    wanted = {*asked, *(word.column for word in places), *(word.word for word in words)}
    rough_asked, rough_beside = rough_warnings(
        problem, summary["not_followed"], wanted, Follows(method, case.grid, forces_beside(case.beside))
    )
    summary["warnings"] = [
        *stop_warnings(summary),
        *reaction_warnings(carried),
        *case.warnings,
        *(stop_warnings_of(problem) if case.stops else []),
        *started.warnings,
        *(
            []
            if ignore_limits
            else run_limit_warnings(problem.robot, columns, given.motors, effort_limit, _prescribed(case))
        ),
        *jump_warnings(jumps),
        *input_warnings(problem, case.given, case.method, case.grid),
        *balance_warnings(columns, method, usual_energy(problem.robot.tree, time)),
        *step_warnings(summary["step"], track.counts, method),
        *floor_warnings(case.steps),
        *unseen_warnings(case.steps),
        *drift_warnings(case.beside),
        *(rough_asked or (force_warnings(case.beside) if reactions or by_acceleration(outputs) else [])),
        *contact_warnings(problem, track.events, columns, method, 0.0 if case.grid.begin else case.grid.step),
        *alike_warnings(problem, track.counts),
        *cable_warnings(problem.robot, columns),
        *reduced_load_warning(robot.tree, list(case.wrenches)),
        *pushed_between(robot, seen, list(case.wrenches), [*looked_at, *frames_shown(places)]),
        *(left_choice(segments.changes) if case.independent else []),
        *deflection_warnings(problem.robot.tree, _positions(robot, columns)),  # as it acts, without what is left out
        *(
            content_warnings(problem.robot, columns)
            or inner_warnings(robot, case.prescribed, columns, seen["accelerations"], case.without)
        ),
        *rough_beside,
    ]
    if problem.width and check_width and track.status == "ok":
        half = prepared(case, problem.width / 2, sticking)
        other = columns_of(half, run_case(case, half, None, None)[1], looked_at[:1], case.spare)
        summary["friction"] = width_effect(columns, other, looked_at[0], problem.width)
    usual = checked_by_default(case, tolerance, robot.tree, summary.get("sticks"))
    if (usual if check_steps is None else check_steps) and track.status == "ok":
        second = run_case(halved(case, problem.robot.tree.length), problem, None, started)[1]
        by_error = case.grid.begin or (case.method.name == "dopri5" and case.controller is None)
        if by_error and second.track.counts["steps"] < MORE_STEPS * track.counts["steps"]:
            second = run_case(halved_evenly(case, float(track.t[-1]), track.counts["steps"]), problem, None, started)[1]
        other = position_columns(problem.robot, second, looked_at[:1])
        summary["estimated_error"] = estimated_error(columns, other, looked_at[0], case, second.track)
        summary["warnings"] += error_warnings(
            columns, summary["estimated_error"], robot.tree.length, tolerance is not None
        )
    settings = run_settings(given, case, problem, method)
    return Run(columns, settings, summary)


def _prescribed(case: Case) -> Any:
    """The motion that motors follow exactly."""
    return case.motion if case.prescribed == "motors" else None


def _positions(robot: Robot, columns: Mapping[str, Array]) -> Array:
    return np.stack([columns[f"q.{name}"] for name in robot.tree.position_names], axis=1)
