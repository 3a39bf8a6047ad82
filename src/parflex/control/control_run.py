"""The call behind `parflex control`: a robot, a law, a reference, and the plant that really moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from parflex.control.control_result import Controlled
from parflex.control.following import track
from parflex.control.gains import checked_gains, gains_from
from parflex.control.laws import COMPENSATED, make_law
from parflex.control.plant import check_plant, make_plant
from parflex.control.reference_text import reference_from
from parflex.control.run import LoopSettings, run_law
from parflex.errors import InputError
from parflex.forces.spare_motors import EffortLimit, Preload, Weights
from parflex.robot.load import acting_robot, checked_terms
from parflex.robot.robot import Robot
from parflex.simulation.contact_report import run_limit_warnings

LOOP = LoopSettings()


def run_control(
    robot: Robot,
    reference: Any,
    law: Literal["pd", "ctc", "ctc-task", "extended"] = "ctc",
    *,
    plant: Robot | None = None,
    time: float | None = None,
    overshoot: float = 0.1,
    peak_time: float = 0.1,
    Kp: float | None = None,
    Kv: float | None = None,
    compensate: Sequence[str] = COMPENSATED,
    without: Sequence[str] = (),
    sample_time: float = LOOP.sample_time,
    delay: int = LOOP.delay,
    noise: float = LOOP.noise,
    rate_noise: float = LOOP.rate_noise,
    resolution: float = LOOP.resolution,
    rates: Literal["measured", "differences"] = "measured",
    effort_limit: EffortLimit | None = None,
    weights: Weights | None = None,
    preload: Preload | None = None,
    seed: int = LOOP.seed,
    start: Literal["motors", "platform"] = "motors",
    step: float | None = None,
    stops: bool = False,
    reactions: bool = False,
    ignore_limits: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Controlled:
    """Track a reference with a plant under a control law that knows the nominal robot.

    What is in the robot file acts, except what `without` names. A reference beyond limits of the robot file is refused;
    limits that the plant exceeds are warned of. The plant may have other numbers or flexible bodies;
    without `plant` it is as the law assumes. Gains follow from `overshoot` and `peak_time`, or are `Kp` and `Kv`.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    reference : str, Mapping, Reference or callable
        Reference of the end effector: words as in "circle:radius=0.1,time=2", a table of them, or a function of time
        (m, rad).
    law : {'pd', 'ctc', 'ctc-task', 'extended'}, default "ctc"
        Control law.
    plant : Robot, default None
        Robot that moves; None: the robot itself.
    time : float, default None
        Duration; None: that of the reference (s).
    overshoot : float, default 0.1
        Overshoot of a step of the error; 0.1 is 10 % (dimensionless).
    peak_time : float, default 0.1
        Time of the peak of such a step (s).
    Kp : float, default None
        Gain on errors, in place of overshoot and peak time (1/s^2).
    Kv : float, default None
        Gain on error rates; goes with `Kp` (1/s).
    compensate : Sequence[str], default ("motor-inertia", "springs")
        Joint terms the law knows: motor-inertia, springs, friction.
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.
    sample_time : float, default 0.001
        Sample time of the control law (s).
    delay : int, default 0
        Samples from sensing to effort.
    noise : float, default 0.0
        Standard deviation of measured positions (m, rad).
    rate_noise : float, default 0.0
        Standard deviation of measured rates (m/s, rad/s).
    resolution : float, default 0.0
        Resolution of position sensors (m, rad).
    rates : {'measured', 'differences'}, default "measured"
        Source of the rates: sensors, or differences of positions.
    effort_limit : float or Mapping[str, float], default None
        Largest effort of all motors, or of each; a pair is a lowest and a highest effort; None: no limit (N, N m).
    weights : Mapping[str, float], default None
        Weights of the squared efforts by motor, where motors are more than freedoms; those not named have 1.
    preload : Mapping[str, float], default None
        Internal efforts by motor, of one motor for each that is spare, at home; elsewhere the nearest internal efforts
        (N, N m).
    seed : int, default 0
        Seed of the noise.
    start : {'motors', 'platform'}, default "motors"
        What is at the reference at the start.
    step : float, default None
        Integration step of the plant; None: 0.001, at most the sample time (s).
    stops : bool, default False
        Let the limits of joints act, by the `stop` of the plant's file.
    reactions : bool, default False
        Columns of the reactions of all joints and closures, and their largest values in the summary.
    ignore_limits : bool, default False
        Do not check the limits of the robot file.
    progress : callable, default None
        Called with the time in s at intervals.

    Returns
    -------
    Controlled
        Columns in time, tracking errors (m, s) `ise iae itae max`, and why a run failed.

    Examples
    --------
    >>> run = parflex.run_control(parflex.load("3rrr"), "circle:radius=0.1,time=2", "ctc")
    """
    robot, real = acting_robot(robot, without), acting_robot(plant or robot, without)
    if (Kp is None) != (Kv is None):
        raise InputError("Kp and Kv must be given together", key="Kv" if Kv is None else "Kp", hint="give both")
    gains = gains_from(overshoot, peak_time) if Kp is None else checked_gains(Kp, Kv)
    meeting = LoopSettings(sample_time, delay, noise, rate_noise, resolution, rates, effort_limit, seed, start, step)
    meeting.limits(robot.actuated_names)
    desired = reference_from(robot, reference, time)  # words are read before anything is compiled
    joints = [*robot.actuated_names, *robot.sensed_names]
    path = track(robot, desired, [name for name in joints if name in real.tree.rate_names])
    if not ignore_limits:
        stopped = {frame.name for frame in real.description.frame if stops and frame.stop is not None}
        path.refuse_violations(robot, path.reference.time if time is None else min(time, path.reference.time), stopped)
    shared: dict[str, Any] = {"weights": weights, "preload": preload, "effort_limit": effort_limit}
    made = make_law(robot, law, gains, compensate=compensate, **shared)
    check_plant(robot, real, made.sensed)
    moved = make_plant(real, stops, reactions)
    run = run_law(made, moved, path, meeting, time, progress)
    if not ignore_limits:
        found = run_limit_warnings(moved.problem.robot, run.columns, robot.motors, effort_limit)
        run.summary["warnings"] = [*run.summary.get("warnings", ()), *found]
    run.settings["without"] = list(checked_terms(without))
    return run
