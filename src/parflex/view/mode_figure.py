"""Figure of mode shapes: the robot at rest in grey, and deformed, with its frequency."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.errors import InputError
from parflex.statics.modes import Modes
from parflex.view.skeleton import ModeShape, mode_shape_points
from parflex.view.style import LINES, REST, figure_style, finished, new_figure, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
AMPLITUDE = 0.08  # of the size of the robot
COLUMNS = 3
COLOURS = {"beam": LINES[2], "plate": LINES[0], "platform": LINES[0], "link": "#5a6270", "slide": "#949eae"}


def draw_modes(modes: Modes, path: str | Path | None = None, amplitude: float = AMPLITUDE, title: str = "") -> Figure:
    """Mode shapes side by side; one that stays in the x-y plane is seen from above.

    Parameters
    ----------
    modes : Modes
        Modes, from `natural_frequencies`.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    amplitude : float, default 0.08
        Largest displacement as a share of the robot's size (dimensionless).
    title : str, default ""
        Title of the figure.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    here, robot = modes.model.configuration, modes.model.robot
    shapes = [mode_shape_points(robot, here, shape) for shape in modes.shapes.T]
    if any(not len(shape.edges) or not shape.size > 0 for shape in shapes):
        raise InputError(
            f"the robot '{robot.name}' has no lines that show a mode: its joints and points are all at one place",
            key="modes",
            hint="add a [[point]] away from the joints",
        )
    count = len(shapes)
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    with figure_style():
        figure = new_figure(0.5 + 2.7 * rows, 2.45 * columns + 0.2)
        figure.get_layout_engine().set(wspace=0.08)
        for k, shape in enumerate(shapes):
            flat = _lies_flat(shape)
            axes = figure.add_subplot(rows, columns, k + 1, projection=None if flat else "3d")
            bent = shape.points + amplitude * shape.size * shape.shape
            colours = [COLOURS.get(kind, LINES[0]) for kind in shape.kinds]
            for points, colour, width in ((shape.points, REST, 1.0), (bent, colours, 1.7)):
                lines = points[shape.edges]
                if flat:
                    _lines_2d(axes, lines[:, :, :2], colour, width)
                else:
                    axes.add_collection3d(Line3DCollection(lines, colors=colour, linewidths=width))
            _dress(axes, shape, bent, flat)
            axes.set_title(f"{k + 1}: {modes.frequencies[k]:.2f} Hz", fontsize=9.5)
        titled(figure, title)
        return finished(figure, path)


def _lies_flat(shape: ModeShape) -> bool:
    """Whether all points lie in the x-y plane and stay there."""
    return np.ptp(shape.points[:, 2]) < 1e-6 * shape.size and float(np.abs(shape.shape[:, 2]).max()) < 1e-3


def _lines_2d(axes: Any, lines: Array, colour: Any, width: float) -> None:
    from matplotlib.collections import LineCollection

    axes.add_collection(LineCollection(list(lines), colors=colour, linewidths=width))


def _dress(axes: Any, shape: ModeShape, bent: Array, flat: bool) -> None:
    """Equal scales and few, small ticks; units stand on every axis."""
    points = np.concatenate([shape.points, bent])
    middle, reach = (points.min(axis=0) + points.max(axis=0)) / 2, 0.55 * float(np.ptp(points, axis=0).max())
    axes.set_xlim(middle[0] - reach, middle[0] + reach)
    axes.set_ylim(middle[1] - reach, middle[1] + reach)
    axes.set_xlabel("x (m)", fontsize=7.5, labelpad=1 if flat else -4)
    axes.set_ylabel("y (m)", fontsize=7.5, labelpad=1 if flat else -4)
    axes.tick_params(labelsize=6.5, pad=1 if flat else -2)
    axes.locator_params(nbins=4)
    if flat:
        axes.set_aspect("equal")
        return
    tall = max(0.55 * float(np.ptp(points[:, 2])), 0.3 * reach)
    axes.set_zlim(middle[2] - tall, middle[2] + tall)
    axes.set_zlabel("z (m)", fontsize=7.5, labelpad=-4)
    axes.set_box_aspect((1, 1, tall / reach), zoom=0.88)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((0.98, 0.98, 0.99))
    axes.view_init(elev=22, azim=-58)
