"""A run repeated with twice the elements in all beams until it changes by no more than a share of its deflections.

A small change may be chance: the frequencies in the strain of the beams must also be known to that share, as the
frequencies inside the elements say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from parflex.errors import InputError
from parflex.records import count_of
from parflex.robot.load import with_refined_beams
from parflex.robot.robot import Robot
from parflex.simulation.refining.run_changes import changes
from parflex.simulation.refining.strain_content import strain_content
from parflex.simulation.runs import Run
from parflex.statics.mesh_error import (
    at_same_pose,
    check_share,
    numbers_of_elements,
    refinable,
    same_positions,
)
from parflex.trajectories.frame_motion import PoseMotion
from parflex.trajectories.motor_motion import MotorMotion

LOG = logging.getLogger("parflex")
MOST_COORDINATES = 800  # of a robot in time: programs of more take minutes to make


def converged_run(simulate: Callable[..., Run], robot: Robot, converge: float, given: Mapping[str, Any]) -> Run:
    """The run with as many elements as it takes; `given` are the arguments of `simulate`.

    Interrupted, or where a finer robot cannot go on, the last complete run is the answer, and it says so.
    """
    share = check_share(converge)
    start, outputs = given.get("start"), list(given.get("outputs") or ())
    if isinstance(start, Mapping) and {"q", "qd"} & set(start):
        raise InputError(
            "a start by all coordinates belongs to its number of elements",
            key="start",
            hint="give a pose and velocities by name",
        )
    named = [*(given.get("frames") or ()), *(given.get("wrench") or ())]
    kept = refinable(robot, [*named, *(word.rpartition(".")[0] for word in outputs)])
    if given.get("reactions"):
        outputs.append("reaction")
    steps: list[dict[str, Any]] = []
    best: Run | None = None
    why = ""
    for times in numbers_of_elements(robot, MOST_COORDINATES):
        begin, finer = perf_counter(), robot if times == 1 else with_refined_beams(robot, times)
        elements = count_of(finer.refine, "element")
        try:
            run = simulate(finer, **{**given, **_moved(robot, finer, given)})
        except KeyboardInterrupt:
            if best is None:
                raise
            why = f"interrupted before the run with {elements} in each of the file was complete"
            break
        if run.status != "ok":
            if best is None:
                return _with(run, steps, False, share, kept)
            why = f"the run with {elements} in each of the file is {run.status} at t = {run.t[-1]:.4g} s"
            break
        apart = {} if best is None else changes(finer, run, best, outputs)
        change = max(apart.values()) if apart else None  # of the first run nothing is known
        error = strain_content(finer, run).error
        steps.append({"elements": finer.refine, "coordinates": finer.tree.n, "change": change, "changes": apart,
                      "frequency_error": error, "seconds": perf_counter() - begin,
                      "loop_seconds": run.seconds})  # fmt: skip
        LOG.info("run with %s in each of the file: change %s, %.1f s", elements, change, steps[-1]["seconds"])
        best = run
        if change is not None and max(change, error) <= share and _settles(steps):
            return _with(best, steps, True, share, kept)
    assert best is not None
    return _with(best, steps, False, share, [*kept, *([why] if why else [])], interrupted=why.startswith("interrupted"))


def _settles(steps: list[dict[str, Any]]) -> bool:
    """Whether the last change is no larger than the one before, where there is one."""
    changes = [step["change"] for step in steps if step["change"] is not None]
    return len(changes) < 2 or changes[-1] <= max(changes[-2], 1e-12)


def _moved(robot: Robot, finer: Robot, given: Mapping[str, Any]) -> dict[str, Any]:
    """What of the arguments belongs to a number of elements, for another."""
    found: dict[str, Any] = {}
    motion, start = given.get("motion"), given.get("start")
    if isinstance(motion, MotorMotion | PoseMotion):
        found["motion"] = replace(motion, start=same_positions(robot, finer, motion.start))
    if given.get("pose") is not None:
        found["pose"] = at_same_pose(robot, finer, given["pose"])
    if isinstance(start, Mapping) and "pose" in start:
        found["start"] = {**start, "pose": at_same_pose(robot, finer, start["pose"])}
    return found


def _with(
    run: Run, steps: list[dict[str, Any]], converged: bool, share: float, said: list[str], interrupted: bool = False
) -> Run:
    """The run with what its refinement took in its summary."""
    last = steps[-1] if steps else {"elements": None, "change": None, "changes": {}}
    # `changes` of the run itself, of its independent rates, stay
    told = {"elements": last["elements"], "change": last["change"], "change_by_kind": last["changes"]}
    told |= {"converged": converged, "refinement": steps}
    sentences = [*run.summary["warnings"], *said]
    if not converged and run.status == "ok":
        sentences.append(_not_converged(last, share))
    told["warnings"] = sentences
    if interrupted:
        told["status"] = "interrupted"
    return replace(run, summary=run.summary | told)


def _not_converged(last: Mapping[str, Any], share: float) -> str:
    """What is still off: the kind of answer that changed most, or the frequencies of the strain."""
    if last["change"] is None:
        return f"there is one run alone: nothing says whether it is converged within {share:g}"
    worst = max(last["changes"], key=lambda kind: last["changes"][kind])
    of = "deflection" if worst == "position" else worst
    changed = f"the run changed by {last['change']:.2g} of its largest {of} with the last elements"
    if last["change"] > share:
        return f"{changed}, not by the {share:g} asked for at most"
    if last["frequency_error"] > share:
        return (
            f"{changed}, but the frequencies of its strain may be off by {last['frequency_error']:.2g}, not {share:g}"
        )
    return f"{changed}, which is more than with those before: it may be chance that this is below {share:g}"
