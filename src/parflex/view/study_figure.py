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
from parflex.view.style import (
    LINES,
    MEASURED,
    REST,
    drawing_lock,
    figure_style,
    finished,
    legend_above,
    new_figure,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {"ise": "ISE (m\u00b2 s)", "iae": "IAE (m s)", "itae": "ITAE (m s\u00b2)"}

MOST = 30  # bars

Array = np.ndarray

LEAST = 1e-16  # changes below are drawn as this: they are rounding

HIGHEST = 2.0  # times the highest speed: the limit is drawn so far up


def draw_study(study: Study, path: str | Path | None = None) -> Figure:
    """Mean errors of each law over the percentages of a study.

    Percentages without a compared template are left out.

    Parameters
    ----------
    study : Study
        Finished study, from `run_study`.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    shown = [row for row in study.summary() if row["compared"]]
    with drawing_lock():
        figure = new_figure(3.6, 10)
        _panels(figure, shown)
        return finished(figure, path)


def _panels(figure: Any, shown: Sequence[Mapping[str, Any]]) -> None:
    for plot, (index, label) in zip(figure.subplots(1, 3), NAMES.items(), strict=True):
        laws = list(shown[0]["errors"]) if shown else []
        for law, mark in zip(laws, "so^v", strict=False):
            values = [row["errors"][law][index] for row in shown]
            plot.plot([row["percentage"] for row in shown], values, marker=mark, label=law)
        plot.set_xlabel("parameters off by (%)")
        plot.set_ylabel(label)
        plot.set_ylim(bottom=0)
        if laws:
            plot.legend()


def draw_sensitivities(found: Sensitivities, path: str | Path | None = None) -> Figure:
    """Elasticities (percent per percent) as bars, sorted by size; derivatives where the response is zero.

    Parameters
    ----------
    found : Sensitivities
        Sensitivities, from `sensitivities`.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    word = "elasticity" if found.value else "derivative"
    keys = found.sorted_keys[:MOST]
    values = np.array([found.sensitivities[key][word] or 0.0 for key in keys])
    with drawing_lock(), figure_style():
        figure = new_figure(1.2 + 0.28 * len(keys))
        plot = figure.subplots()
        places = np.arange(len(keys))[::-1]
        plot.barh(places, values, color=[LINES[1] if value < 0 else LINES[0] for value in values], height=0.62)
        scale = _scale(found, keys)
        for place, key in zip(places, keys, strict=True):
            if key in found.directional:
                ends = np.array(found.directional[key]) * scale[key]
                plot.plot([ends[0], ends[-1]], [place, place], color=MEASURED, lw=1.2, marker="|", ms=8)
        plot.axvline(0.0, color=MEASURED, lw=0.8)
        plot.set_yticks(places, keys)
        plot.grid(axis="y", visible=False)
        several = f", {found.multiplicity} equal values" if found.multiplicity > 1 else ""
        plot.set_xlabel("elasticity (percent per percent)" if found.value else f"derivative ({found.unit} per unit)")
        plot.set_title(f"{found.response} = {found.value:.5g} {found.unit}{several}")
        return finished(figure, path)


def _scale(sensitivities: Sensitivities, keys: list[str]) -> dict[str, float]:
    """What makes derivatives elasticities."""
    scale = {}
    for key in keys:
        entry = sensitivities.sensitivities[key]
        derivative, elasticity = entry["derivative"] or 0.0, entry["elasticity"]
        scale[key] = elasticity / derivative if elasticity and derivative else 1.0
    return scale


def draw_convergence(refined: Modes | Run, path: str | Path | None = None, title: str = "") -> Figure:
    """Change of an answer by each number of elements, and the estimate of what is left.

    Grey lines are single frequencies, or kinds of columns of a run.

    Parameters
    ----------
    refined : Modes or Run
        Answer of `natural_frequencies` or `simulate` with `converge`.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    title : str, default ""
        Title of the figure.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    steps = refinement_steps(refined)
    elements = [int(step["elements"]) for step in steps]
    with figure_style():
        figure = new_figure(3.4)
        panel = figure.subplots()
        for k, values in enumerate(_parts(steps)):
            panel.loglog(elements, _shown(values), ".-", color=REST, lw=0.9, label="each alone" if k == 0 else None)
        panel.loglog(elements, _shown([step["change"] for step in steps]), "o-", color=LINES[0], label="largest change")
        left = [step.get("remaining", step.get("frequency_error")) for step in steps]
        word = "estimate of the error left" if "remaining" in steps[0] else "error of the mean frequency"
        panel.loglog(elements, _shown(left), "s--", color=LINES[1], label=word)
        panel.set_xticks(elements, [str(number) for number in elements])
        panel.minorticks_off()
        panel.set_xlabel("elements in each of the file")
        panel.set_ylabel("relative to the answer")
        legend_above(panel, 3)
        titled(figure, title)
        return finished(figure, path)


def refinement_steps(refined: Modes | Run) -> Sequence[Mapping[str, Any]]:
    """What each number of elements gave; refused where `converge` was not asked for."""
    steps: Sequence[Mapping[str, Any]] = ()
    if isinstance(refined, Modes):
        steps = () if refined.refinement is None else refined.refinement.steps
    elif isinstance(refined, Run):
        steps = refined.summary.get("refinement", ())
    if not steps:
        raise InputError(
            "the answer was not refined", key="refined", value=type(refined).__name__,
            hint="ask natural_frequencies or simulate with converge=1e-3",
        )  # fmt: skip
    return steps


def _parts(steps: Sequence[Mapping[str, Any]]) -> list[list[float | None]]:
    """Changes of single frequencies, or of kinds of columns."""
    if "frequencies" in steps[0]:
        count = min(len(step["frequencies"]) for step in steps)
        return [
            [None, *(abs(after["frequencies"][k] / before["frequencies"][k] - 1) for before, after in pairwise(steps))]
            for k in range(count)
        ]
    kinds = {kind for step in steps for kind in step["changes"]}
    return [[step["changes"].get(kind) for step in steps] for kind in sorted(kinds)]


def _shown(values: Sequence[float | None]) -> Array:
    """Numbers of a logarithmic axis; what is not known or infinite is left out."""
    numbers = np.array([np.nan if value is None else float(value) for value in values])
    return np.where(np.isfinite(numbers), np.maximum(numbers, LEAST), np.nan)


def draw_timing(plan: Trajectory, path: str | Path | None = None) -> Figure:
    """Phase plane (path speed over place, with the highest speed that limits allow) and efforts over time.

    Parameters
    ----------
    plan : Trajectory
        Time-optimal motion, from `plan_motion`.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    if plan.timing is None:
        raise InputError(
            "this motion is not time-optimal", key="plan", value=plan.name, hint='plan "time-optimal" first'
        )
    with drawing_lock(), figure_style():
        figure = new_figure(6.2)
        phases, efforts = figure.subplots(2, 1)
        _phase_plane(phases, plan.timing)
        _efforts(efforts, plan.timing)
        return finished(figure, path)


def _phase_plane(plot: Any, timing: Any) -> None:
    """All parts side by side, with their switching points."""
    begin, top = 0.0, max(part.speed.max() for part in timing.parts)
    unit = timing.parts[0].unit
    for index, part in enumerate(timing.parts):
        names = ("limit", "motion", "switch") if index == 0 else (None, None, None)
        plot.plot(begin + part.s, np.minimum(part.most, HIGHEST * top), color=REST, lw=2, label=names[0])
        plot.plot(begin + part.s, part.speed, color=LINES[0], label=names[1])
        places = [row["s"] + begin for row in part.switching]
        plot.plot(places, [row["speed"] for row in part.switching], "o", color=LINES[1], ms=4, label=names[2])
        begin += part.s[-1]
    plot.set_ylim(0, 1.25 * top)
    plot.set_xlim(0, begin)
    plot.set_xlabel(f"s ({unit})" if unit else "s (share of the move)")
    plot.set_ylabel(f"path speed ({unit}/s)" if unit else "path speed (1/s)")
    plot.set_title("Phase plane")
    plot.legend()


def _efforts(plot: Any, timing: Any) -> None:
    """Efforts as shares of their limits, so that motors of all sizes are seen; without limits as they are."""
    low, high = timing.effort_low, timing.effort_high
    bounded = np.isfinite([low, high]).all()
    centre, half = ((high + low) / 2, (high - low) / 2) if bounded else (0.0, 1.0)
    for k, motor in enumerate(timing.motors):
        for index, part in enumerate(timing.parts):
            shares = (part.efforts - centre) / half
            plot.plot(part.t, shares[:, k], color=LINES[k % len(LINES)], label=motor if index == 0 else None)
    if bounded:
        for bound in (-1, 1):
            plot.axhline(bound, color=REST, lw=2, zorder=0)
    plot.set_xlim(0, timing.time)
    plot.set_xlabel("time (s)")
    plot.set_ylabel("effort / limit" if bounded else "effort (N, N m)")
    plot.set_title("Efforts")
    plot.legend(ncols=2 if len(timing.motors) > 3 else 1, loc="center left", bbox_to_anchor=(1.0, 0.5))
