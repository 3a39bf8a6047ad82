"""The call behind `parflex control`: a robot, a law, a reference, and the plant that really moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from parflex.control.control_result import Controlled
from parflex.control.following import track
from parflex.control.gains import checked_gains, gains_from
from parflex.control.laws import COMPENSATED, make_law
from parflex.control.plant import check_plant, make_plant
from parflex.control.reference_text import reference_from
from parflex.control.run import LoopSettings, run_law
from parflex.errors import InputError
from parflex.models.robot import Robot
from parflex.models.terms import acting, checked_terms

LOOP = LoopSettings()


def run_control(
    robot: Robot,
    reference: Any,
    law: str = "ctc",
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
    effort_limit: float | Mapping[str, float] | None = None,
    seed: int = LOOP.seed,
    start: Literal["motors", "platform"] = "motors",
    step: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Controlled:
    """Simulate a plant that tracks a reference of its end effector under a law built on the nominal robot.

    `law` is "pd", "ctc", "ctc-task" or "extended". `reference` is words such as "circle:radius=0.1,time=2", a table of
    them, a `Reference`, or a function of time that gives a pose. `plant` is another robot with the same motors, with
    other numbers or with flexible bodies; left out, the plant is as the law thinks. What is in their files acts, but
    for what `without` names; of friction, springs and motor inertia the law knows those in `compensate`, by default all
    but friction. Gains come from `overshoot` and `peak_time`, or are `Kp` and `Kv`.
    """
    robot, real = acting(robot, without), acting(plant or robot, without)
    if (Kp is None) != (Kv is None):
        raise InputError("Kp and Kv must be given together", key="Kv" if Kv is None else "Kp", hint="give both")
    gains = gains_from(overshoot, peak_time) if Kp is None else checked_gains(Kp, Kv)
    meeting = LoopSettings(sample_time, delay, noise, rate_noise, resolution, rates, effort_limit, seed, start, step)
    meeting.limits(robot.actuated_names)
    wanted = reference_from(robot, reference, time)  # words are read before anything is compiled
    made = make_law(robot, law, gains, compensate=compensate)
    check_plant(robot, real, made.sensed)
    joints = [*robot.actuated_names, *robot.sensed_names]
    measured = [name for name in joints if name in real.tree.rate_names]
    path = track(robot, wanted, measured)
    run = run_law(made, make_plant(real), path, meeting, time, progress)
    run.settings["without"] = list(checked_terms(without))
    return run
