"""A picture of sensitivities: bars of elasticities, the largest on top; ranges where equal values part."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from parflex.design.sensitivity import Sensitivities
from parflex.view.figures.style import LINES, MEASURED, drawing, finished, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 30  # bars


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
    with drawing(), styled():
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


def _scale(found: Sensitivities, keys: list[str]) -> dict[str, float]:
    """What makes derivatives elasticities."""
    scale = {}
    for key in keys:
        one = found.sensitivities[key]
        derivative, elasticity = one["derivative"] or 0.0, one["elasticity"]
        scale[key] = elasticity / derivative if elasticity and derivative else 1.0
    return scale
