"""How an answer changes with the number of elements: what `converge` did, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.errors import InputError
from parflex.simulation.runs import Run
from parflex.statics.modes import Modes
from parflex.view.figures.style import LINES, REST, finished, legend_above, new_figure, styled, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
LEAST = 1e-16  # changes below are drawn as this: they are rounding


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
    with styled():
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


def refinement_steps(found: Modes | Run) -> Sequence[Mapping[str, Any]]:
    """What each number of elements gave; refused where `converge` was not asked for."""
    steps: Sequence[Mapping[str, Any]] = ()
    if isinstance(found, Modes):
        steps = () if found.refinement is None else found.refinement.steps
    elif isinstance(found, Run):
        steps = found.summary.get("refinement", ())
    if not steps:
        raise InputError(
            "the answer was not refined", key="refined", value=type(found).__name__,
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
    found = np.array([np.nan if value is None else float(value) for value in values])
    return np.where(np.isfinite(found), np.maximum(found, LEAST), np.nan)
