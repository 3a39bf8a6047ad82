"""A picture of a map: one frequency over one or two coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from parflex.view.figures.style import new_figure, picture_path, styled, write_picture

Array = np.ndarray
LENGTHS = ("x", "y", "z")


def draw_map(axes: Mapping[str, Array], values: Array, path: str | Path, title: str) -> None:
    """Frequencies in Hz over the first two axes; of further axes the middle value is shown and named."""
    path = picture_path(path)
    names = list(axes)
    for name in names[2:]:
        middle = len(axes[name]) // 2
        values = values[:, :, middle]
        title += f", {name} = {axes[name][middle]:.4g}"
    with styled():
        figure = new_figure(5.5, 7)
        plot = figure.add_subplot()
    plot.set_title(title)
    plot.set_xlabel(_label(names[0]))
    if values.ndim == 1:
        plot.plot(axes[names[0]], values, marker="." if len(values) < 60 else "")
        plot.set_ylabel("frequency (Hz)")
    else:
        plot.grid(visible=False)
        plot.set_facecolor("0.85")  # where there is no pose
        mesh = plot.pcolormesh(
            axes[names[0]], axes[names[1]], np.ma.masked_invalid(values.T), shading="nearest", rasterized=True
        )
        figure.colorbar(mesh, label="frequency (Hz)")
        plot.set_ylabel(_label(names[1]))
        if names[0] in LENGTHS and names[1] in LENGTHS:
            plot.set_aspect("equal")
    write_picture(figure, path)


def _label(name: str) -> str:
    last = name.rpartition(".")[2]
    if last in LENGTHS:
        return f"{name} (m)"
    return (
        f"{name} (degrees)"
        if name.endswith("_deg")
        else f"{name} (rad or m)"
        if last == name
        and last
        not in (
            "theta",
            "rx",
            "ry",
            "rz",
        )
        else f"{name} (rad)"
    )
