"""Figures of maps: a frequency or a response over one or two coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.design.grid import FrequencyMap
from parflex.errors import InputError
from parflex.maps.continuation import OUTSIDE, SINGULAR, UNREACHABLE
from parflex.view.style import COLUMN, TEXT, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
LENGTHS = ("x", "y", "z")
GREY = "#d4d7dc"
EMPTY = {UNREACHABLE: "unreachable", SINGULAR: "singular", OUTSIDE: "outside joint limits"}
# Near a singularity values grow without bound: beyond this many interquartile ranges they share the end of the colours,
# the usual rule of box plots for outliers taken twice as wide
RANGES = 3.0


def draw_map(frequency_map: FrequencyMap, path: str | Path | None = None, mode: int = 1, title: str = "",
             response: str | None = None, width: str = TEXT) -> Figure:  # fmt: skip
    """Draw a natural frequency, or a response, of a map over its first two axes; of others the middle value is shown.

    Parameters
    ----------
    frequency_map : FrequencyMap
        Map, from `frequency_map`.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    mode, title, width
        See `parflex.api.WORDS`.
    response : str, default None
        Response of the map to draw, of those with one number at each pose; None: the frequency.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    with drawing(path, 3.2 if width == COLUMN else 5.0, width) as figure:
        map_panel(figure.add_subplot(), frequency_map, title, mode, response)
    return figure


def draw_panels(frequency_map: FrequencyMap, path: str | Path, title: str) -> Figure:
    """Draw the lowest frequency of a map, and each of its responses with one number at each pose, in one file."""
    responses = [*[None] * bool(frequency_map.frequencies.shape[-1]), *scalars(frequency_map)]
    rows = (len(responses) + 1) // 2
    with drawing(path, 0.3 + 3.3 * rows, title=title) as figure:
        for k, response in enumerate(responses):
            map_panel(figure.add_subplot(rows, min(2, len(responses)), k + 1), frequency_map, "", 1, response)
    return figure


def scalars(frequency_map: FrequencyMap) -> list[str]:
    """Return the responses of a map with one number at each pose."""
    return [name for name, values in frequency_map.responses.items() if values.ndim == frequency_map.status.ndim]


def map_panel(
    panel: Any, frequency_map: FrequencyMap, title: str = "", mode: int = 1, response: str | None = None
) -> None:
    """Draw a map in one panel of a figure."""
    names, status, axes = list(frequency_map.axes), frequency_map.status, frequency_map.axes
    values, label = _values(frequency_map, mode, response)
    held = [_held(name, value) for name, value in frequency_map.fixed.items()]
    for name in names[2:]:
        middle = len(axes[name]) // 2
        values, status = values[:, :, middle], status[:, :, middle]
        held.append(_held(name, axes[name][middle]))
    held += [f"least over {name}" for name in frequency_map.at]
    panel.set_title("\n".join(line for line in (title, ", ".join(held)) if line))
    panel.set_xlabel(coordinate_label(names[0]))
    if values.ndim == 1:
        panel.plot(axes[names[0]], values, marker="." if len(values) < 60 else "")
        panel.set_ylabel(label)
        return
    panel.set_ylabel(coordinate_label(names[1]))
    if names[0] in LENGTHS and names[1] in LENGTHS:
        panel.set_aspect("equal")
    _field(panel, axes[names[0]], axes[names[1]], values, label)
    panel.locator_params(nbins=5)
    empty = [text for state, text in EMPTY.items() if ((status == state) & ~np.isfinite(values)).any()]
    if empty:
        from matplotlib.patches import Patch

        panel.legend(handles=[Patch(facecolor=GREY, edgecolor="#5a6270", linewidth=0.6, label=" or ".join(empty))],
                     loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)  # fmt: skip


def _field(panel: Any, x: Array, y: Array, values: Array, label: str) -> None:
    """Draw colours over two axes, with a bar of the height of the plot."""
    panel.grid(visible=False)
    panel.set_facecolor(GREY)
    known = values[np.isfinite(values)]
    known = known if known.size else np.zeros(1)
    low, high = float(known.min()), float(known.max())
    first, third = np.percentile(known, [25, 75])
    reach = RANGES * (third - first)
    below, above = bool(reach and low < first - reach), bool(reach and high > third + reach)
    low, high = first - reach if below else low, third + reach if above else high
    extend = "both" if below and above else "min" if below else "max" if above else "neither"
    mesh = panel.pcolormesh(x, y, np.ma.masked_invalid(values.T), shading="nearest", rasterized=True, vmin=low,
                            vmax=high, cmap="viridis")  # fmt: skip
    bar = panel.inset_axes([1.03, 0.0, 0.045, 1.0])
    panel.figure.colorbar(mesh, cax=bar, label=label, extend=extend, extendfrac=0.03)


def _values(frequency_map: FrequencyMap, mode: int, response: str | None) -> tuple[Array, str]:
    """Return the numbers of a mode or response over the grid, and the label of their scale."""
    if response is None:
        count = frequency_map.frequencies.shape[-1]
        if not 1 <= mode <= count:
            raise InputError(f"the map has no mode {mode}", key="mode", value=mode, hint=f"give 1 to {count}")
        which = "lowest natural frequency" if mode == 1 else f"natural frequency {mode}"
        return frequency_map.frequencies[..., mode - 1], f"{which} (Hz)"
    known = scalars(frequency_map)
    if response not in known:
        raise InputError(
            f"the map has no response '{response}' of one number",
            key="response",
            value=response,
            hint=f"give {' or '.join(known)}" if known else "request one in the map",
        )
    return frequency_map.responses[response], f"{response} ({frequency_map.units[response]})"


def _held(name: str, value: float) -> str:
    return f"{name.removesuffix('_deg')} = {value:.4g} {_unit(name)}"


def coordinate_label(name: str) -> str:
    """Return the name and unit of a coordinate."""
    return f"{name.removesuffix('_deg')} ({_unit(name)})"


def _unit(name: str) -> str:
    last = name.rpartition(".")[2]
    if last in LENGTHS or name.endswith("_deg"):
        return "m" if last in LENGTHS else "degrees"
    return "rad" if last != name or last in ("theta", "rx", "ry", "rz") else "rad or m"
