"""A picture of a study: mean errors of each law over how wrong the parameters are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parflex.control.study import Study
from parflex.view.figures.style import drawing, finished, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {"ise": "ISE (m\u00b2 s)", "iae": "IAE (m s)", "itae": "ITAE (m s\u00b2)"}


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
    with drawing():
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
