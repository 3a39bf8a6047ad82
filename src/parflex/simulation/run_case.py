"""What a simulation is asked for, as one case: read, prepared and run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from parflex.codegen.model import garbage_collection_paused
from parflex.dynamics.contact_state import refuse_start_outside
from parflex.errors import InputError
from parflex.integrators.driver import Grid, LaboriousError, method_named
from parflex.robot.robot import Robot
from parflex.simulation.controller import Controller, controlled
from parflex.simulation.first_compilation import say_first_compilation
from parflex.simulation.partitions import refuse_singular
from parflex.simulation.problem import Problem, prepare
from parflex.simulation.run_checks import length_warnings, refuse_longer
from parflex.simulation.segments import Runner, Segments
from parflex.simulation.starts.kept_home import with_kept_home
from parflex.simulation.starts.start import Started, start_state
from parflex.simulation.step_lengths.default_step import default_step, shorter_grid, told_of_given
from parflex.simulation.step_lengths.step_choice import STEP, asked_steps, with_longest
from parflex.trajectories.follow import RedundantDrive
from parflex.trajectories.frame_motion import PoseMotion
from parflex.trajectories.inputs import InputSpan, specified_efforts, specified_wrenches
from parflex.trajectories.motor_motion import MotorMotion, motion_of
from parflex.trajectories.polynomials import Polynomials

OUT_STEP = 1e-3  # s between rows, where steps are not longer
MOST_ROWS = 5_000_000
SHORTEST = 1e-100  # s, of a run: the squares of its steps and their inverses are numbers of double precision


@dataclass(frozen=True)
class Case:
    """Everything that a run needs but the width of the friction."""

    robot: Robot
    prescribed: str  # motors, platform or efforts: what is given in time
    motion: MotorMotion | PoseMotion | None
    given: Polynomials
    controller: Controller | None
    wrenches: Mapping[str, Polynomials]
    without: tuple[str, ...]
    start: Any
    pose: Any
    method: Any
    grid: Grid
    tolerance: float
    warnings: tuple[str, ...] = ()  # about what was given
    independent: tuple[str, ...] = ()  # rates that were chosen; none: the model chooses
    spare: RedundantDrive | None = None  # where motors that are more than freedoms follow a motion
    stops: bool = False  # whether limits act
    deflections: bool = False  # whether they are asked for
    steps: str = ""  # why they are so long; empty: nothing was said of them
    beside: str = ""  # which vibrations they do not follow
    sampled: Mapping[str, float] = field(default_factory=dict)  # s between the samples of functions of time


@garbage_collection_paused()
def read_case(
    robot: Robot, motion: Any, time: float, effort: Any, wrench: Any, controller: Any, drive: str, start: Any,
    pose: Any, step: float | None, out_step: float | None, method: str, tolerance: float | None, radius: float,
    without: Collection[str],
) -> Case:  # fmt: skip
    """What was asked for, checked and as polynomials in time."""
    for key, value in (("time", time), ("step", step), ("out_step", out_step), ("tolerance", tolerance)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0):
            raise InputError(f"'{key}' is not a positive number", key=key, value=value, hint="give e.g. 0.001")
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
        raise InputError(
            f"the run would have {time / rows:.3g} rows and {time / (step or STEP):.3g} steps",
            key="step",
            value=step,
            hint=f"at most {MOST_ROWS} rows: give a larger step or a shorter time",
        )
    chosen = method_named(method, radius)
    asked = asked_steps(time, step, rows, tolerance, chosen, robot.tree.length)
    grid = asked.grid
    span = InputSpan(grid.rows * grid.out_step, min(grid.step, STEP) if grid.begin else grid.step)
    robot = with_kept_home(robot)
    moved: Any = None if motion is None else motion_of(robot, motion, span, drive)
    wrenches = specified_wrenches(robot, wrench, span)
    prescribed = drive if moved is not None and controller is None else "efforts"
    if drive == "platform" and (prescribed == "efforts" or wrench):
        raise InputError(
            "a platform is driven by a motion alone, without wrenches or a controller",
            key="drive",
            value=drive,
            hint="give a motion through poses, or drive the motors",
        )
    given: Polynomials = moved.given if prescribed != "efforts" else specified_efforts(robot, effort, span)
    for pieces in wrenches.values():
        given = given.beside(pieces)
    return Case(
        robot, prescribed, moved, given, controller, wrenches, tuple(without), start, pose, chosen,
        with_longest(grid, given), asked.tolerance, (*span.warnings, *length_warnings(time, grid)), steps=asked.why,
        sampled=span.apart,
    )  # fmt: skip


@garbage_collection_paused()
def prepared(case: Case, width: float, sticking: bool) -> Problem:
    """Programs of a case: friction turns over `width`, or joints stick."""
    found = prepare(
        case.robot, case.prescribed, case.wrenches, case.without, width, case.independent, case.stops, sticking,
        case.method.numbers,
    )  # fmt: skip
    return replace(found, time=min(1.0, case.grid.rows * case.grid.out_step))


@garbage_collection_paused()
def run_case(
    case: Case, problem: Problem, shown: Callable[[float], None] | None, started: Started | None
) -> tuple[Case, Segments, Started]:
    """The case with its steps, the run, and how it started: as another one did, where that is given."""
    said = problem.is_long and say_first_compilation(case.method.steps)
    if first := started is None:
        problem.begin_compilation(case.given, case.method, case.grid.aim > 0)
        started = start_state(problem, case.robot, case.start, case.pose, case.motion, case.wrenches)
    q, qd, steered = started.q, started.qd[problem.places], case.controller is not None
    refuse_start_outside(problem.robot, q)
    if case.independent:
        refuse_singular(problem, q, "independent")
    if not said:
        say_first_compilation(case.method.steps)
    if not case.steps:
        grid, why = default_step(problem, case.given, case.method, case.grid, q, qd, steered, case.deflections)
        case = replace(case, grid=grid, steps=why, beside=why)
    elif first:
        told = told_of_given(problem, case.given, case.method, case.grid, q, qd, steered, case.deflections)
        case = replace(case, beside=told)
    while True:
        control, given = None, case.given
        if case.controller is not None:
            given = Polynomials(given.breaks, given.coefficients.copy())  # efforts are written into it
            assert not isinstance(case.motion, PoseMotion)
            control = controlled(case.robot, case.controller, case.motion, q, given)
        runner = Runner(problem, given, case.method, case.grid, case.tolerance, control, shown)
        try:
            return case, runner.run(q, qd), started
        except LaboriousError:
            grid, why = shorter_grid(case.grid, case.steps)
            case = replace(case, grid=grid, steps=why)
