"""Figures of studies, sensitivities, convergence and time-optimal motions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.control.study import Study
from parflex.design.sensitivity import Sensitivities
from parflex.errors import InputError
from parflex.simulation.runs import Run
from parflex.statics.modes import Modes
from parflex.trajectories.trajectory import Trajectory
from parflex.view.style import INK, LINES, REST, TEXT, drawing, legend_above, name_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray

INDICES = {"ise": "ISE (m\u00b2 s)", "iae": "IAE (m s)", "itae": "ITAE (m s\u00b2)"}
MOST = 30  # bars
LEAST = 1e-16  # changes below are drawn as this: they are rounding
HIGHEST = 2.0  # times the highest speed of the motion: the limit is drawn up to there


def draw_study(study: Study, path: str | Path | None = None, width: str = TEXT) -> Figure:
    """Draw the mean errors of each law over the parameter errors of a study.

    Percentages without a compared template are left out.

    Parameters
    ----------
    study : Study
        Finished study, from `run_study`.
    path, width
        See `parflex.api.WORDS`.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    shown = [row for row in study.summary() if row["compared"]]
    laws = list(shown[0]["errors"]) if shown else []
    with drawing(path, 2.6, width) as figure:
        for panel, (index, label) in zip(figure.subplots(1, 3), INDICES.items(), strict=True):
            for law, mark in zip(laws, "so^v", strict=False):
                values = [row["errors"][law][index] for row in shown]
                panel.plot([row["percentage"] for row in shown], values, marker=mark, ms=4, label=law)
            panel.set_xlabel("parameter error (%)")
            panel.set_ylabel(label)
            panel.set_ylim(bottom=0)
        if laws:
            figure.legend(*panel.get_legend_handles_labels(), loc="outside upper center", ncols=len(laws))
    return figure


def draw_sensitivities(found: Sensitivities, path: str | Path | None = None, width: str = TEXT) -> Figure:
    """Draw elasticities (percent per percent) as bars, sorted by size; derivatives where the response is zero.

    Parameters
    ----------
    found : Sensitivities
        Sensitivities, from `sensitivities`.
    path, width
        See `parflex.api.WORDS`.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    word = "elasticity" if found.value else "derivative"
    keys = found.sorted_keys[:MOST]
    values = [found.sensitivities[key][word] or 0.0 for key in keys]
    several = f", {found.multiplicity} equal values" if found.multiplicity > 1 else ""
    with drawing(path, 1.0 + 0.26 * len(keys), width) as figure:
        panel = figure.subplots()
        rows = name_rows(panel, keys)
        panel.barh(rows, values, color=[LINES[1] if value < 0 else LINES[0] for value in values], height=0.62)
        for row, key in zip(rows, keys, strict=True):
            if key in found.directional:
                entry = found.sensitivities[key]  # an elasticity is a derivative times a factor
                derivative, elasticity = entry["derivative"], entry["elasticity"]
                factor = elasticity / derivative if elasticity and derivative else 1.0
                ends = factor * np.array(found.directional[key])
                panel.plot([ends[0], ends[-1]], [row, row], color=INK, lw=1.2, marker="|", ms=8)
        panel.axvline(0.0, color=INK, lw=0.8)
        panel.set_xlabel("elasticity (% per %)" if found.value else f"derivative ({found.unit} per unit of the key)")
        panel.set_title(f"{found.response} = {found.value:.5g} {found.unit}{several}")
    return figure


def draw_convergence(
    refined: Modes | Run, path: str | Path | None = None, title: str = "", width: str = TEXT
) -> Figure:
    """Draw the change of an answer by each number of elements, and the estimated error that remains.

    Grey lines are single frequencies, or kinds of columns of a run.

    Parameters
    ----------
    refined, path, title, width
        See `parflex.api.WORDS`.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    steps = refinement_steps(refined)
    elements = [int(step["elements"]) for step in steps]
    remaining = [step.get("remaining", step.get("frequency_error")) for step in steps]
    word = "estimate of the error left" if "remaining" in steps[0] else "error of the mean frequency"
    with drawing(path, 3.2, width, title) as figure:
        panel = figure.subplots()
        for k, values in enumerate(_parts(steps)):
            panel.loglog(elements, _logarithmic(values), ".-", color=REST, lw=0.9, label="" if k else "each alone")
        changes = _logarithmic([step["change"] for step in steps])
        panel.loglog(elements, changes, "o-", color=LINES[0], label="largest change")
        panel.loglog(elements, _logarithmic(remaining), "s--", color=LINES[1], label=word)
        panel.set_xticks(elements, [str(number) for number in elements])
        panel.minorticks_off()
        panel.set_xlabel("elements in each of the file")
        panel.set_ylabel("relative to the answer")
        legend_above(panel, 3)
    return figure


def refinement_steps(refined: Modes | Run) -> Sequence[Mapping[str, Any]]:
    """Return what each number of elements gave; an answer without `converge` is refused."""
    steps: Sequence[Mapping[str, Any]] = ()
    if isinstance(refined, Modes):
        steps = () if refined.refinement is None else refined.refinement.steps
    elif isinstance(refined, Run):
        steps = refined.summary.get("refinement", ())
    if not steps:
        hint = "call natural_frequencies or simulate with converge=1e-3"
        raise InputError("the answer was not refined", key="refined", value=type(refined).__name__, hint=hint)
    return steps


def _parts(steps: Sequence[Mapping[str, Any]]) -> list[list[float | None]]:
    """Return the changes of single frequencies, or of kinds of columns."""
    if "frequencies" in steps[0]:
        count = min(len(step["frequencies"]) for step in steps)
        return [
            [None, *(abs(after["frequencies"][k] / before["frequencies"][k] - 1) for before, after in pairwise(steps))]
            for k in range(count)
        ]
    kinds = {kind for step in steps for kind in step["changes"]}
    return [[step["changes"].get(kind) for step in steps] for kind in sorted(kinds)]


def _logarithmic(values: Sequence[float | None]) -> Array:
    """Return numbers for a logarithmic axis; what is unknown or infinite is left out."""
    numbers = np.array([np.nan if value is None else float(value) for value in values])
    return np.where(np.isfinite(numbers), np.maximum(numbers, LEAST), np.nan)


def draw_timing(plan: Trajectory, path: str | Path | None = None, width: str = TEXT) -> Figure:
    """Draw the phase plane (path speed with its limit) and the efforts over time of a time-optimal motion.

    Parameters
    ----------
    plan : Trajectory
        Time-optimal motion, from `plan_motion`.
    path, width
        See `parflex.api.WORDS`.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    timing: Any = plan.timing
    if timing is None:
        hint = 'plan "time-optimal" first'
        raise InputError("this motion is not time-optimal", key="plan", value=plan.name, hint=hint)
    with drawing(path, 5.2, width) as figure:
        phases, efforts = figure.subplots(2, 1)
        _phase_plane(phases, timing)
        _efforts(efforts, timing)
    return figure


def _phase_plane(panel: Any, timing: Any) -> None:
    """Draw all path segments side by side, with their switching points."""
    begin, top = 0.0, max(part.speed.max() for part in timing.parts)
    unit = timing.parts[0].unit
    for index, part in enumerate(timing.parts):
        names = ("limit", "motion", "switch") if index == 0 else (None, None, None)
        panel.plot(begin + part.s, np.minimum(part.most, HIGHEST * top), color=REST, lw=2, label=names[0])
        panel.plot(begin + part.s, part.speed, color=LINES[0], label=names[1])
        places = [row["s"] + begin for row in part.switching]
        panel.plot(places, [row["speed"] for row in part.switching], "o", color=LINES[1], ms=4, label=names[2])
        begin += part.s[-1]
    panel.set_ylim(0, 1.25 * top)
    panel.set_xlim(0, begin)
    panel.set_xlabel(f"path coordinate s ({unit})" if unit else "path coordinate s (share of the move)")
    panel.set_ylabel(f"path speed ({unit}/s)" if unit else "path speed (1/s)")
    legend_above(panel, 3)


def _efforts(panel: Any, timing: Any) -> None:
    """Draw efforts relative to their limits, so that motors of all sizes are comparable; without limits as they are."""
    low, high = timing.effort_low, timing.effort_high
    bounded = np.isfinite([low, high]).all()
    centre, half = ((high + low) / 2, (high - low) / 2) if bounded else (0.0, 1.0)
    for k, motor in enumerate(timing.motors):
        for index, part in enumerate(timing.parts):
            shares = (part.efforts - centre) / half
            panel.plot(part.t, shares[:, k], color=LINES[k % len(LINES)], label=motor if index == 0 else None)
    for bound in (-1, 1) if bounded else ():
        panel.axhline(bound, color=REST, lw=2, zorder=0)
    panel.set_xlim(0, timing.time)
    panel.set_xlabel("time (s)")
    panel.set_ylabel("effort / limit" if bounded else "effort (N, N m)")
    legend_above(panel, len(timing.motors))
