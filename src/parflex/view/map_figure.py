"""Figure of a map: one frequency or response over one or two coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.design.grid import FrequencyMap
from parflex.errors import InputError
from parflex.view.style import drawing_lock, figure_style, finished, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
LENGTHS = ("x", "y", "z")


def draw_map(
    frequency_map: FrequencyMap,
    path: str | Path | None = None,
    mode: int = 1,
    title: str = "",
    response: str | None = None,
) -> Figure:
    """Natural frequency, or a response, of a map over its first two axes; of others the middle value is shown.

    Poses without frequencies are grey.

    Parameters
    ----------
    frequency_map : FrequencyMap
        Map, from `frequency_map`.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    mode : int, default 1
        Mode, counted from 1, the lowest.
    title : str, default ""
        Title of the figure.
    response : str, default None
        Response of the map to draw, of those with one number at each pose; None: the frequency.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    title = title or response or ("lowest natural frequency" if mode == 1 else f"natural frequency {mode}")
    with drawing_lock():
        with figure_style():
            figure = new_figure(5.5, 7)
            plot = figure.add_subplot()
        _panel(plot, frequency_map, title, mode, response)
        return finished(figure, path)


def draw_panels(frequency_map: FrequencyMap, path: str | Path, title: str) -> Figure:
    """The lowest frequency of a map, and each of its responses with one number at each pose, in panels of one file."""
    responses = [*[None] * bool(frequency_map.frequencies.shape[-1]), *scalars(frequency_map)]
    with drawing_lock():
        with figure_style():
            figure = new_figure(4.6 * ((len(responses) + 1) // 2), 12)
            plots = figure.subplots((len(responses) + 1) // 2, 2, squeeze=False).ravel()
        for plot, response in zip(plots, responses, strict=False):
            _panel(plot, frequency_map, response or "lowest natural frequency", 1, response)
        for plot in plots[len(responses) :]:
            plot.remove()
        figure.suptitle(title)
        return finished(figure, path)


def scalars(frequency_map: FrequencyMap) -> list[str]:
    """Responses of a map with one number at each pose."""
    return [name for name, values in frequency_map.responses.items() if values.ndim == frequency_map.status.ndim]


def _panel(plot: Any, frequency_map: FrequencyMap, title: str, mode: int, response: str | None) -> None:
    names = list(frequency_map.axes)
    values, label = (
        (_frequencies(frequency_map, mode), "frequency (Hz)")
        if response is None
        else _response(frequency_map, response)
    )
    title += f" over {', '.join(frequency_map.at)}" if frequency_map.at else ""
    for name in names[2:]:
        middle = len(frequency_map.axes[name]) // 2
        values = values[:, :, middle]
        title += f", {name} = {frequency_map.axes[name][middle]:.4g}"
    plot.set_title(title)
    plot.set_xlabel(_label(names[0]))
    if values.ndim == 1:
        _curve(plot, frequency_map.axes[names[0]], values, label)
        return
    _field(plot, frequency_map.axes[names[0]], frequency_map.axes[names[1]], values, label)
    plot.set_ylabel(_label(names[1]))
    if names[0] in LENGTHS and names[1] in LENGTHS:
        plot.set_aspect("equal")


def _frequencies(frequency_map: FrequencyMap, mode: int) -> Array:
    count = frequency_map.frequencies.shape[-1]
    if not 1 <= mode <= count:
        raise InputError(f"the map has no mode {mode}", key="mode", value=mode, hint=f"give 1 to {count}")
    return frequency_map.frequencies[..., mode - 1]


def _response(frequency_map: FrequencyMap, name: str) -> tuple[Array, str]:
    values = frequency_map.responses.get(name)
    known = scalars(frequency_map)
    if values is None or values.ndim != frequency_map.status.ndim:
        raise InputError(
            f"the map has no response '{name}' of one number",
            key="response",
            value=name,
            hint=f"give {' or '.join(known)}" if known else "ask for one in the map",
        )
    return values, f"{name} ({frequency_map.units[name]})"


def _curve(plot: Any, x: Array, values: Array, label: str) -> None:
    plot.plot(x, values, marker="." if len(values) < 60 else "")
    plot.set_ylabel(label)


def _field(plot: Any, x: Array, y: Array, values: Array, label: str) -> None:
    plot.grid(visible=False)
    plot.set_facecolor("0.85")  # where there is no pose
    mesh = plot.pcolormesh(x, y, np.ma.masked_invalid(values.T), shading="nearest", rasterized=True)
    plot.figure.colorbar(mesh, label=label)


def _label(name: str) -> str:
    last = name.rpartition(".")[2]
    if last in LENGTHS:
        return f"{name} (m)"
    if name.endswith("_deg"):
        return f"{name} (degrees)"
    turn = last != name or last in ("theta", "rx", "ry", "rz")
    return f"{name} (rad)" if turn else f"{name} (rad or m)"
