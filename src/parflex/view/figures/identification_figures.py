"""Figures of identification: efforts measured and predicted, spectra before and after filtering."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from parflex.identification.preprocess import filtered_motion, mean_spectrum
from parflex.identification.recordings import Recording
from parflex.identification.result import Identified, Prediction
from parflex.view.figures.style import LINES, MEASURED, REST, finished, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 6  # panels of a figure


def draw_identified(found: Identified, path: str | Path | None = None, record: int = 0) -> Figure:
    """Efforts of a record, measured and predicted, with what is left between them.

    Parameters
    ----------
    found : Identified
        Answer of `identify`.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    record : int, default 0
        Which of its records, those of the validation behind the others.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    one = found.predictions[record]
    rows = found.rows[:MOST_ROWS]
    with styled():
        figure = new_figure(0.8 + 1.7 * len(rows))
        panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        for j, (panel, name) in enumerate(zip(panels, rows, strict=True)):
            panel.plot(one.t, one.measured[:, j], color=REST, linewidth=2.2, label="measured")
            panel.plot(one.t, one.predicted[:, j], color=LINES[0], linewidth=0.8, label="predicted")
            panel.plot(one.t, one.measured[:, j] - one.predicted[:, j], color=LINES[1], linewidth=0.7, label="residual")
            panel.set_ylabel(f"{name} (N, N m)")
        panels[0].legend(ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0))
        panels[0].set_title(f"{Path(one.record).name}: relative error {_percent(one)}")
        panels[-1].set_xlabel("time (s)")
        return finished(figure, path)


def _percent(one: Prediction) -> str:
    return f"{100 * one.relative_error:.3g} %"


def draw_filtering(found: Identified, path: str | Path | None = None, record: int = 0) -> Figure:
    """Spectra of rates and efforts of a record, as measured and filtered.

    Parameters
    ----------
    found : Identified
        Answer of `identify`.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    record : int, default 0
        Which of its records.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    one = found.measurements[record]
    with styled():
        figure = new_figure(4.6)
        rate, effort = figure.subplots(2, 1, sharex=True)
        raw = np.gradient(one.position, one.step, axis=0)
        _spectrum(rate, one, raw, REST, "measured")
        _spectrum(rate, one, filtered_motion(one, found.filter).rate, LINES[0], "filtered")
        rate.set_ylabel("rates (m/s, rad/s per Hz$^{1/2}$)")
        _spectrum(effort, one, one.effort, MEASURED, "measured")
        effort.set_ylabel("efforts (N, N m per Hz$^{1/2}$)")
        for panel in (rate, effort):
            panel.axvline(found.filter.cutoff, color=LINES[1], linewidth=0.9, label="cutoff")
            kept = 0.4 / one.step / found.filter.decimate
            panel.axvline(kept, color=LINES[1], linewidth=0.9, linestyle=":", label="kept below")
            panel.legend(ncols=2, loc="lower left")
        rate.set_title(f"{Path(one.name).name}: spectra, largest of all motors")
        effort.set_xlabel("frequency (Hz)")
        return finished(figure, path)


def _spectrum(panel: object, one: Recording, values: np.ndarray, colour: str, label: str) -> None:
    f, power = mean_spectrum(values, one.step, 4096)
    level = np.sqrt(power.max(axis=1))
    panel.loglog(f[1:], np.maximum(level[1:], 1e-300), color=colour, linewidth=1.0, label=label)  # type: ignore[attr-defined]
    low = max(level[1:].max() * 1e-8, level[1:].min())
    panel.set_ylim(bottom=min(low, panel.get_ylim()[0]) if panel.lines[1:] else low)  # type: ignore[attr-defined]
