"""How long steps are: as given, chosen by their error, or, where nothing is said, from frequencies and the motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from parflex.errors import InputError
from parflex.integrators.driver import Grid, IntegratedRows, Method, grid_of
from parflex.trajectories.polynomials import Polynomials

STEP = 5e-4  # s: the longest that is taken where nothing is said, or a twentieth of the run
TOLERANCE = {"dopri5": 1e-8}  # of one step, in typical lengths and radians; implicit methods iterate to:
ITERATION_TOLERANCE = 1e-12
IMPLICIT = ("gauss4", "gauss6", "generalized-alpha")
LEAST = 1e-12  # typical lengths: errors of steps below it are rounding
SHARE_OF_ITERATION, MOST_OF_ITERATION = 1e-3, 1e-10  # of the tolerance of a step, and in typical lengths
SHARE_OF_TIME, SHARE_OF_PIECE = 1 / 20, 1 / 4  # of a run, of a piece of what is given: the longest step
MANY_REJECTED = 0.02  # of the steps
LABOUR = 40  # evaluations a step, from which on steps a quarter as long take fewer
FORCES_BESIDE = "; forces and accelerations also vibrate"  # in words for why steps are so long
DRIFTS = "; vibrations"  # that steps do not follow over the run, likewise
FLOORED = "; a run has no more than"  # so many steps, likewise
UNSEEN = "; not known are the frequencies of"  # so many coordinates, likewise
SHORT_PIECE = 0.2  # s: those of tables and sampled functions say nothing of how fast they change


@dataclass(frozen=True)
class AskedSteps:
    """Steps of a run, what an iteration converges to, and words for why the steps are as they are."""

    grid: Grid
    tolerance: float
    why: str


def asked_steps(
    time: float, step: float | None, rows: float, tolerance: float | None, method: Method, length: float
) -> AskedSteps:
    """Steps as a call asks for them, for a robot of a typical length; without a word those that are shortened later."""
    fixed = grid_of(time, min(STEP, SHARE_OF_TIME * time) if step is None else step, rows)
    why = "given" if step is not None else ""
    if method.name not in IMPLICIT:
        if tolerance is not None and step is None and method.name != "dopri5":
            raise InputError(
                f"the method '{method.name}' does not estimate errors", key="tolerance", value=tolerance,
                hint="give a step, or the method gauss4 or dopri5",
            )  # fmt: skip
        limit = TOLERANCE.get(method.name, ITERATION_TOLERANCE) if tolerance is None else tolerance / length
        return AskedSteps(fixed, limit, "chosen by their errors" if method.name == "dopri5" else why)
    if tolerance is None:
        return AskedSteps(fixed, ITERATION_TOLERANCE, why)
    least = LEAST * length
    if tolerance < least and step is not None:  # no step has such an error: it is that of the iteration
        return AskedSteps(fixed, tolerance, why)
    if tolerance < least:
        raise InputError(
            f"rounding forbids the tolerance {tolerance:g} m of a step of a robot of about {length:.2g} m",
            key="tolerance", value=tolerance, hint=f"give at least {least:.1g}",
        )  # fmt: skip
    iterated = max(min(SHARE_OF_ITERATION * tolerance / length, MOST_OF_ITERATION), 0.1 * LEAST)
    if step is not None:
        return AskedSteps(replace(fixed, aim=tolerance), iterated, why)
    chosen = Grid(fixed.out_step, 1, fixed.rows, tolerance, min(STEP, fixed.out_step))
    return AskedSteps(chosen, iterated, f"chosen by their errors, at most {tolerance:g} m each")


def with_longest(grid: Grid, given: Polynomials) -> Grid:
    """Steps that miss nothing of what is given: parts of the run and of the pieces of the inputs."""
    if not grid.begin:
        return grid
    time = grid.rows * grid.out_step
    lengths = given.breaks[1:] - given.breaks[:-1]
    piece = max(SHORT_PIECE, float(lengths.min())) if len(lengths) else time
    most = min(SHARE_OF_TIME * time, SHARE_OF_PIECE * piece)
    return replace(grid, begin=min(grid.begin, most), most=most)


def step_summary(grid: Grid, why: str, track: IntegratedRows) -> dict[str, Any]:
    """Lengths of steps, why they are so long, and what they err by where that was estimated."""
    found: dict[str, Any] = {"step": None if grid.begin else grid.step, "step_choice": why}
    if track.judged:
        error, shortest, longest = track.judged
        found["step_error"] = {"tolerance": grid.aim, "largest": error, "shortest": shortest, "longest": longest}
    return found


def forces_beside(why: str) -> str:
    """Which vibrations of forces and accelerations steps do not follow; empty where none are known."""
    return why.partition(FORCES_BESIDE)[2].removeprefix(" ")


def force_warnings(why: str) -> list[str]:
    """A sentence where forces or accelerations are asked for and steps do not follow them."""
    which = forces_beside(why)
    return [f"{FORCES_BESIDE[2:]} {which}"] if which else []


def drift_warnings(why: str) -> list[str]:
    """A sentence where the phase of vibrations drifts over a run, as steps that follow it would be too many."""
    _, found, which = why.partition(DRIFTS)
    return [f"{DRIFTS[2:]}{which.partition(';')[0]}"] if found else []


def floor_warnings(why: str) -> list[str]:
    """A sentence where a run would have to take more steps than it does."""
    before, found, which = why.partition(FLOORED)
    told = f"{FLOORED[2:]}{which.partition(';')[0]}"
    return [f"the steps of {before.partition(' s')[0]} s are too long: {told}"] if found else []


def unseen_warnings(why: str) -> list[str]:
    """A sentence where frequencies do not choose the steps: of large robots, and where modes are not told apart."""
    before, found, which = why.partition(UNSEEN)
    if not found:
        return []
    return [
        f"the steps of {before.partition(' s')[0]} s follow no vibration, as the frequencies of{which} are not "
        "known: give a step of a twentieth of the shortest period that matters, or a tolerance"
    ]


def step_warnings(step: float | None, counts: Mapping[str, int], method: str) -> list[str]:
    """A sentence where many steps had to be made again, or found their stages with labour."""
    again, steps, evaluations = (
        counts.get(word, 0) - counts.get(f"left_{word}", 0) for word in ("rejected", "steps", "evaluations")
    )
    if not steps or method not in IMPLICIT or step is None:
        return []
    each = evaluations / steps
    if not (again > max(10, MANY_REJECTED * steps) or each > LABOUR):
        return []
    return [
        f"steps of {step:.3g} s converge badly ({again} times they were made again, shorter; {each:.0f} "
        "evaluations a step): give a shorter step, or a tolerance"
    ]
