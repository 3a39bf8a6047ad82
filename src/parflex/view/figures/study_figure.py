"""A picture of a study: mean errors of each law over how wrong the parameters are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parflex.view.figures.robot_figure import picture_path, write_picture

NAMES = {"ise": "ISE (m\u00b2 s)", "iae": "IAE (m s)", "itae": "ITAE (m s\u00b2)"}


def draw_study(rows: Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Rows as `Study.summary` gives them; percentages without a compared template are left out."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = picture_path(path)
    shown = [row for row in rows if row["compared"]]
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
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
    write_picture(figure, path)
