"""What beams carry along their length: at one time, over time, and between which limits in a whole run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from parflex.errors import InputError
from parflex.view.figures.run_numbers import Columns, chosen_columns
from parflex.view.figures.style import LINES, REST, finished, legend_above, new_figure, styled, time_axis, titled
from parflex.view.figures.units import SECTION, unit_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
MOST = 8  # quantities in one figure


class AlongBeam(NamedTuple):
    """A quantity of a beam in all rows: places from 0 to 1, and values, rows x places."""

    name: str
    s: Array
    values: Array


def draw_sections(run: Columns, path: str | Path | None = None, columns: Sequence[str] | None = None,
                  instant: float | None = None, title: str = "") -> Figure:  # fmt: skip
    """Section forces and stresses along beams, and over time where they are largest.

    On the left at one time, with the limits of the whole run around it; on the right over time at the place of the
    largest value. The run needs columns at several places of a beam: `outputs=["BEAM.Mz@0:1:21"]`.

    Parameters
    ----------
    run : Run or Mapping[str, Array]
        Columns by name, with time 't' in s.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    columns : Sequence[str], default None
        Columns to show, e.g. 'BEAM.Mz@*'; None: all of beams.
    instant : float, default None
        Time at which the beam is drawn; None: that of the largest value (s).
    title : str, default ""
        Title of the figure.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    found, t = along_beams(run, columns), np.asarray(run["t"])
    if instant is not None and not t[0] <= instant <= t[-1]:
        raise InputError(
            f"the run has no time {instant:g} s", key="instant", value=instant, hint=f"give {t[0]:g} to {t[-1]:g} s"
        )
    with styled():
        figure = new_figure(0.6 + 2.1 * len(found))
        panels = figure.subplots(len(found), 2, squeeze=False, width_ratios=[1, 1.15])
        for (along, over), one in zip(panels, found, strict=True):
            unit, kind = unit_of(f"{one.name}@0")
            most, place = divmod(int(np.nanargmax(np.abs(one.values))), len(one.s))
            row = most if instant is None else int(np.abs(t - instant).argmin())
            along.fill_between(one.s, one.values.min(axis=0), one.values.max(axis=0), color=REST, alpha=0.45, lw=0)
            along.plot(one.s, one.values[row], color=LINES[0], label=f"t = {t[row]:.4g} s; grey: whole run")
            along.set_ylabel(f"{kind} ({unit})")
            along.set_title(one.name, fontsize=9, pad=14)
            over.plot(t, one.values[:, place], color=LINES[1], lw=1.0, label=f"s = {one.s[place]:.3g}")
            over.axvline(t[row], color=LINES[0], lw=0.7, linestyle=":")
            along.set_xlim(0, 1)
            for panel in (along, over):
                legend_above(panel, 1)
            time_axis(over, t)
            over.set_xlabel("")
        panels[-1, 0].set_xlabel("place s along the beam")
        time_axis(panels[-1, 1], t)
        titled(figure, title)
        return finished(figure, path)


def along_beams(run: Columns, columns: Sequence[str] | None = None) -> list[AlongBeam]:
    """Quantities of beams of which a run has several places, in the order of its columns."""
    places: dict[str, dict[float, str]] = {}
    for column in chosen_columns(run, [name for name in run if name != "t"] if columns is None else columns):
        match = SECTION.fullmatch(column)
        if match is not None:
            places.setdefault(match[1], {})[float(match[3])] = column
    found = {name: own for name, own in places.items() if len(own) > 1}
    if not found or len(found) > MOST:
        known = f"{len(found)} quantities of beams do not fit into one figure" if found else ""
        raise InputError(
            known or "the run has no beam with columns at several places", key="columns", value=len(found),
            hint="name fewer of them" if found else "simulate with outputs such as 'BEAM.Mz@0:1:21'",
        )  # fmt: skip
    result = []
    for name, own in found.items():
        s = np.array(sorted(own))
        result.append(AlongBeam(name, s, np.stack([np.asarray(run[own[where]]) for where in s], axis=1)))
    return result
