"""Figures of identification and updating."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.fit import Fit
from parflex.identification.preprocess import filtered_motion, mean_spectrum
from parflex.identification.recordings import Recording
from parflex.identification.result import Identified, Prediction
from parflex.updating.result import Updated
from parflex.view.style import LINES, MEASURED, REST, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 6  # panels of a figure

BINS, IN_BIN = 30, 8  # bins of positions and velocities at most, and residuals averaged in one at least

MOST_NUMBERED = 12  # rows and columns of a matrix with numbers in it


def draw_identified(found: Identified, path: str | Path | None = None, record: int = 0) -> Figure:
    """Efforts of a record, measured and predicted, with what is left between them."""
    prediction = found.predictions[record]
    rows = found.rows[:MOST_ROWS]
    with drawing(path, 0.8 + 2.2 * len(rows)) as figure:
        panels = figure.subplots(2 * len(rows), 1, sharex=True, height_ratios=[3, 1] * len(rows))
        for j, (panel, under, name) in enumerate(zip(panels[::2], panels[1::2], rows, strict=True)):
            measured, predicted = prediction.measured[:, j], prediction.predicted[:, j]
            panel.plot(prediction.t, measured, color=REST, linewidth=2.2, label="measured")
            panel.plot(prediction.t, predicted, color=LINES[0], linewidth=0.8, label="predicted")
            under.plot(prediction.t, measured - predicted, color=LINES[1], linewidth=0.7)
            panel.set_ylabel(f"{name} (N, N m)")
            under.set_ylabel("residual")
        figure.align_ylabels()
        panels[0].legend(ncols=2, loc="lower right", bbox_to_anchor=(1.0, 1.0))
        panels[0].set_title(f"{Path(prediction.record).name}: relative error {_percent(prediction)}", loc="left")
        panels[-1].set_xlabel("time (s)")
    return figure


def draw_residuals(found: Identified, path: str | Path | None = None, record: int = 0) -> Figure:
    """Residuals of a recording over position and over velocity: friction and springs show there."""
    prediction, recording = found.predictions[record], found.measurements[record]
    smooth, rows = filtered_motion(recording, found.filter), found.rows[:MOST_ROWS]
    with drawing(path, 0.8 + 1.7 * len(rows)) as figure:
        panels = figure.subplots(len(rows), 2, sharey="row", squeeze=False)
        for j, (pair, name) in enumerate(zip(panels, rows, strict=True)):
            left = prediction.measured[:, j] - prediction.predicted[:, j]
            motor = min(j, recording.position.shape[1] - 1)  # rows of redundant robots are independent rates
            for panel, values in zip(pair, (smooth.position, smooth.rate), strict=True):
                x = np.interp(prediction.t, smooth.t, values[:, motor])
                panel.plot(x, left, ".", color=LINES[1], markersize=2, alpha=0.5, rasterized=True)
                panel.plot(*_binned(x, left), color=MEASURED, linewidth=1.2, label="mean")
            pair[0].set_ylabel(f"{name} (N, N m)")
        panels[0, 0].set_title(f"{Path(prediction.record).name}: residuals")
        panels[0, 1].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0))
        panels[-1, 0].set_xlabel("position (m, rad)")
        panels[-1, 1].set_xlabel("velocity (m/s, rad/s)")
    return figure


def _binned(x: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of x and of the values in bins with equally many samples."""
    order = np.argsort(x[np.isfinite(values)])
    x, values = x[np.isfinite(values)][order], values[np.isfinite(values)][order]
    bins = [part for part in np.array_split(np.arange(len(x)), max(1, min(BINS, len(x) // IN_BIN))) if len(part)]
    return np.array([x[part].mean() for part in bins]), np.array([values[part].mean() for part in bins])


def draw_parameters(found: Identified, path: str | Path | None = None) -> Figure:
    """Base parameters with 95 % intervals beside those of the robot file, each over the larger of the two."""
    places = np.arange(len(found.parameters))[::-1]
    with drawing(path, 1.4 + 0.2 * len(places)) as figure:
        plot = figure.subplots()
        for place, item in zip(places, found.parameters.values(), strict=True):
            size = max(abs(item.value), abs(item.file_value), 1e-300)
            value, ends = item.value / size, np.array(item.interval) / size
            colour = LINES[0] if item.essential else REST
            plot.plot(ends, [place, place], color=colour, lw=4, alpha=0.4)
            plot.plot([item.file_value / size], [place], "o", mfc="white", mec=LINES[5], ms=4.5)
            plot.plot([value], [place], "o", color=colour, ms=4)
        plot.axvline(0.0, color=MEASURED, lw=0.9)
        plot.set_xlim(-1.6, 1.6)
        plot.set_ylim(-0.8, len(places) - 0.2)
        plot.set_yticks(places, list(found.parameters))
        plot.grid(axis="y", visible=False)
        plot.set_xlabel("over the larger of value and file; bar: 95 % interval; ring: file; grey: not significant")
        plot.set_title(f"{found.robot}: base parameters by {found.estimator}")
    return figure


def draw_correlations(found: Fit, path: str | Path | None = None) -> Figure:
    """Correlation of the estimates: near 1 or -1 the measurements determine only a combination of two parameters."""
    deviation = np.sqrt(np.maximum(np.diag(found.covariance), 1e-300))
    names = list(found.parameters)
    with drawing(path, 1.4 + (0.36 if len(names) <= MOST_NUMBERED else 0.18) * len(names)) as figure:
        plot = figure.subplots()
        places = [str(k + 1) for k in range(len(names))]
        _matrix(plot, found.covariance / np.outer(deviation, deviation), names, places, (-1.0, 1.0), "RdBu")
        figure.colorbar(plot.images[0], ax=plot, fraction=0.04, pad=0.02)
        plot.set_title("correlation of the parameters, in their order")
    return figure


def _percent(prediction: Prediction) -> str:
    return f"{100 * prediction.relative_error:.3g} %"


def draw_filtering(found: Identified, path: str | Path | None = None, record: int = 0) -> Figure:
    """Spectra of rates and efforts of a record, as measured and filtered."""
    recording = found.measurements[record]
    with drawing(path, 4.6) as figure:
        rate, effort = figure.subplots(2, 1, sharex=True)
        raw = np.gradient(recording.position, recording.step, axis=0)
        _spectrum(rate, recording, raw, REST, "measured")
        _spectrum(rate, recording, filtered_motion(recording, found.filter).rate, LINES[0], "filtered")
        rate.set_ylabel("rates (m/s, rad/s per Hz$^{1/2}$)")
        _spectrum(effort, recording, recording.effort, MEASURED, "measured")
        effort.set_ylabel("efforts (N, N m per Hz$^{1/2}$)")
        for panel in (rate, effort):
            panel.axvline(found.filter.cutoff, color=LINES[1], linewidth=0.9, label="cutoff")
            passband = 0.4 / recording.step / found.filter.decimate
            panel.axvline(passband, color=LINES[1], linewidth=0.9, linestyle=":", label="kept below")
            panel.legend(ncols=2, loc="lower left")
        rate.set_title(f"{Path(recording.name).name}: spectra, largest of all motors")
        effort.set_xlabel("frequency (Hz)")
    return figure


def _spectrum(panel: object, recording: Recording, values: np.ndarray, colour: str, label: str) -> None:
    f, power = mean_spectrum(values, recording.step, 4096)
    level = np.sqrt(power.max(axis=1))
    panel.loglog(f[1:], np.maximum(level[1:], 1e-300), color=colour, linewidth=1.0, label=label)  # type: ignore[attr-defined]
    low = max(level[1:].max() * 1e-8, level[1:].min())
    panel.set_ylim(bottom=min(low, panel.get_ylim()[0]) if panel.lines[1:] else low)  # type: ignore[attr-defined]


def draw_updated(found: Updated, path: str | Path | None = None) -> Figure:
    """Relative errors of all measured frequencies, before and after, with 95 % intervals of what will be measured."""
    pairs = found.pairs
    places = np.arange(len(pairs))[::-1]
    with drawing(path, 1.4 + 0.24 * len(pairs)) as figure:
        plot = figure.subplots()
        ends = [_share(pair, end) for pair in pairs for end in pair["interval"] if end is not None]
        ends += [_share(pair, pair["after"]) for pair in pairs if None not in pair["interval"]] or [-1.0, 1.0]
        low_end, high_end = min(ends), max(ends)
        margin = 0.12 * max(high_end - low_end, 1e-6)
        for place, pair in zip(places, pairs, strict=True):
            if pair["held_out"]:
                plot.axhspan(place - 0.5, place + 0.5, color="#f1f3f6", lw=0)
            low, high = (_share(pair, end) for end in pair["interval"])
            if low is not None:
                plot.plot([low, high], [place, place], color=LINES[0], lw=5, alpha=0.35, solid_capstyle="butt")
        before, after = ([_share(pair, pair[word]) for pair in pairs] for word in ("before", "after"))
        plot.axvline(0.0, color=MEASURED, lw=0.9)
        inside = [share is not None and low_end - margin <= share <= high_end + margin for share in before]
        if any(inside):
            plot.plot(before, places, "o", mfc="white", color=REST, mec=LINES[5], ms=5, label="before")
        plot.plot(after, places, "o", color=LINES[0], ms=5, label="after, 95 %")
        plot.set_xlim(low_end - margin, high_end + margin)
        _write_beside(plot, places, pairs, (low_end - margin, high_end + margin))
        plot.set_ylim(-0.6, len(pairs) - 0.4)
        plot.set_yticks(places, [f"{pair['pose']}, mode {pair['mode']}: {pair['measured']:.4g} Hz" for pair in pairs])
        plot.grid(axis="y", visible=False)
        plot.set_xlabel("model over measured, less 1 (%)")
        some = " (grey: held out)" if any(pair["held_out"] for pair in pairs) else ""
        plot.set_title(f"{found.robot}{some}")
        plot.legend(ncols=2, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    return figure


def _write_beside(plot: Any, places: np.ndarray, pairs: Sequence[dict[str, Any]], ends: tuple[float, float]) -> None:
    """Frequencies that are out of the picture, to the right of it: no bar is there."""
    for place, pair in zip(places, pairs, strict=True):
        shares = {word: _share(pair, pair[word]) for word in ("before", "after")}
        out = [word for word, share in shares.items() if share is not None and not ends[0] <= share <= ends[1]]
        if out:
            text = ", ".join(f"{word} {pair[word]:.4g} Hz ({shares[word]:+.3g} %)" for word in out)
            plot.annotate(text, (1.0, place), (6, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                          va="center", fontsize=7.5, color=LINES[5])  # fmt: skip


def _share(pair: dict[str, Any], value: float | None) -> Any:
    return None if value is None else 100 * (value / pair["measured"] - 1)


def draw_macs(found: Updated, path: str | Path | None = None) -> Figure:
    """MAC of measured shapes with those of the updated model, pose by pose."""
    tall = sum(0.7 + 0.3 * len(item) for item in found.macs.values())
    with drawing(path, 0.6 + tall) as figure:
        panels = figure.subplots(len(found.macs), 1, squeeze=False)[:, 0]
        for panel, (pose, values) in zip(panels, found.macs.items(), strict=True):
            names = [f"{item['measured']:.4g} Hz" for item in found.pairs if item["pose"] == pose]
            _matrix(panel, values, names, [str(k + 1) for k in range(values.shape[1])], (0.0, 1.0), "Blues")
            panel.set_title(f"MAC at {pose}: measured, and modes of the updated model")
    return figure


def draw_cosines(found: Updated, path: str | Path | None = None) -> Figure:
    """Cosines between the columns of the sensitivities: near 1 or -1 two numbers are not told apart."""
    with drawing(path, 1.4 + 0.36 * len(found.keys)) as figure:
        plot = figure.subplots()
        _matrix(plot, found.cosines, found.keys, [str(k + 1) for k in range(len(found.keys))], (-1.0, 1.0), "RdBu")
        plot.set_title("cosines between the numbers, in their order")
    return figure


def _matrix(
    panel: Any, values: np.ndarray, rows: Sequence[str], columns: Sequence[str], limits: tuple[float, float],
    colours: str,
) -> None:  # fmt: skip
    panel.imshow(values, vmin=limits[0], vmax=limits[1], cmap=colours, aspect="auto")
    panel.set_yticks(range(len(rows)), rows)
    panel.set_xticks(range(len(columns)), columns)
    panel.grid(visible=False)
    if max(values.shape) > MOST_NUMBERED:
        return
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            if np.isfinite(value):
                dark = abs(value) > 0.6 * limits[1]
                panel.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color="w" if dark else MEASURED)
