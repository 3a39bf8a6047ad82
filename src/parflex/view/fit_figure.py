"""Figures of identification, updating and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.calibration.calibrate import Calibrated
from parflex.calibration.tolerance import STATIC, Tolerance
from parflex.fit import Fit
from parflex.identification.preprocess import filtered_motion, mean_spectrum
from parflex.identification.recordings import Recording
from parflex.identification.result import Identified
from parflex.updating.result import Updated
from parflex.view.map_figure import coordinate_label
from parflex.view.run_figure import compared_panels, draw_compared
from parflex.view.style import INK, LINES, REST, drawing, name_rows, time_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
File = str | Path | None
MOST_ROWS = 6  # panels of a figure
BINS, IN_BIN = 30, 8  # most bins of positions and velocities, fewest residuals in one
MOST_NUMBERED = 12  # rows and columns of a matrix with numbers in it
MILLI = {"m": "mm", "rad": "mrad"}


def draw_identified(found: Identified, path: File = None, record: int = 0) -> Figure:
    """Draw efforts of a recording, measured and predicted, and their difference."""
    prediction, rows = found.predictions[record], found.rows[:MOST_ROWS]
    with drawing(path, 0.8 + 2.2 * len(rows)) as figure:
        panels = compared_panels(figure, len(rows))
        for j, ((above, below), name) in enumerate(zip(panels, rows, strict=True)):
            measured, predicted, t = prediction.measured[:, j], prediction.predicted[:, j], prediction.t
            curves = (t, measured), (t, predicted), (t, measured - predicted)
            draw_compared(above, below, *curves, labels=("measured", "predicted"))
            above.set_ylabel(f"{name} (N, N m)")
            below.set_ylabel("residual")
            if j:
                above.get_legend().remove()
        figure.align_ylabels()
        panels[0][0].set_title(f"{_file(prediction.record)}: relative error {100 * prediction.relative_error:.3g} %")
        time_axis(panels[-1][1], prediction.t)
    return figure


def draw_residuals(found: Identified, path: File = None, record: int = 0) -> Figure:
    """Draw residuals of a recording over position and over velocity, where friction and springs show."""
    prediction, recording = found.predictions[record], found.measurements[record]
    smooth, rows = filtered_motion(recording, found.filter), found.rows[:MOST_ROWS]
    with drawing(path, 0.8 + 1.7 * len(rows)) as figure:
        panels = figure.subplots(len(rows), 2, sharey="row", squeeze=False)
        for j, (pair, name) in enumerate(zip(panels, rows, strict=True)):
            residuals = prediction.measured[:, j] - prediction.predicted[:, j]
            motor = min(j, recording.position.shape[1] - 1)  # rows of redundant robots are independent rates
            for panel, values in zip(pair, (smooth.position, smooth.rate), strict=True):
                x = np.interp(prediction.t, smooth.t, values[:, motor])
                panel.plot(x, residuals, ".", color=LINES[1], markersize=2, alpha=0.5, rasterized=True)
                panel.plot(*_binned(x, residuals), color=INK, linewidth=1.2, label="mean")
            pair[0].set_ylabel(f"{name} (N, N m)")
        panels[0, 0].set_title(f"{_file(prediction.record)}: residuals")
        panels[0, 1].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0))
        panels[-1, 0].set_xlabel("position (m, rad)")
        panels[-1, 1].set_xlabel("velocity (m/s, rad/s)")
    return figure


def _binned(x: Array, values: Array) -> tuple[Array, Array]:
    """Return means of x and of the values in bins with equally many samples."""
    known = np.isfinite(values)
    order = np.flatnonzero(known)[np.argsort(x[known])]
    bins = np.array_split(order, max(1, min(BINS, len(order) // IN_BIN)))
    return np.array([x[part].mean() for part in bins]), np.array([values[part].mean() for part in bins])


def draw_filtering(found: Identified, path: File = None, record: int = 0) -> Figure:
    """Draw spectra of rates and efforts of a recording, as measured and filtered."""
    recording = found.measurements[record]
    with drawing(path, 4.6) as figure:
        rate, effort = figure.subplots(2, 1, sharex=True)
        raw = np.gradient(recording.position, recording.step, axis=0)
        filtered = filtered_motion(recording, found.filter).rate
        rate.set_ylabel("rates (m/s, rad/s per Hz$^{1/2}$)")
        effort.set_ylabel("efforts (N, N m per Hz$^{1/2}$)")
        _spectra(rate, recording, {"measured": (raw, REST), "filtered": (filtered, LINES[0])})
        _spectra(effort, recording, {"measured": (recording.effort, INK)})
        for panel in (rate, effort):
            panel.axvline(found.filter.cutoff, color=LINES[1], linewidth=0.9, label="cutoff")
            passband = 0.4 / recording.step / found.filter.decimate
            panel.axvline(passband, color=LINES[1], linewidth=0.9, linestyle=":", label="passband")
            panel.legend(ncols=2, loc="lower left")
        rate.set_title(f"{_file(recording.name)}: spectra, largest of all motors")
        effort.set_xlabel("frequency (Hz)")
    return figure


def _spectra(panel: Any, recording: Recording, curves: dict[str, tuple[Array, str]]) -> None:
    """Draw the largest spectrum over all motors, eight decades at most."""
    lowest = []
    for label, (values, colour) in curves.items():
        f, power = mean_spectrum(values, recording.step, 4096)
        level = np.sqrt(power.max(axis=1))[1:]
        panel.loglog(f[1:], np.maximum(level, 1e-300), color=colour, linewidth=1.0, label=label)
        lowest.append(max(level.max() * 1e-8, level.min()))
    panel.set_ylim(bottom=min(lowest))


def draw_parameters(found: Identified, path: File = None) -> Figure:
    """Draw base parameters with 95 % intervals and those of the robot file, each over the larger of the two."""
    items = list(found.parameters.values())
    sizes = [max(abs(item.value), abs(item.file_value), 1e-300) for item in items]
    with drawing(path, 1.4 + 0.2 * len(items)) as figure:
        panel = figure.subplots()
        rows = name_rows(panel, list(found.parameters))
        for row, item, size in zip(rows, items, sizes, strict=True):
            colour = LINES[0] if item.essential else REST
            panel.plot(np.array(item.interval) / size, [row, row], color=colour, lw=4, alpha=0.4)
            panel.plot([item.value / size], [row], "o", color=colour, ms=4)
        file_values = [item.file_value / size for item, size in zip(items, sizes, strict=True)]
        panel.plot(file_values, rows, "o", mfc="none", mec=LINES[5], ms=5.5, zorder=1)
        panel.axvline(0.0, color=INK, lw=0.9)
        panel.set_xlim(-1.6, 1.6)
        panel.set_xlabel("over the larger of value and file; bar: 95 % interval; ring: file; grey: not significant")
        panel.set_title(f"{found.robot}: base parameters by {found.estimator}")
    return figure


def draw_correlations(found: Fit, path: File = None) -> Figure:
    """Draw correlations of the estimates: near 1 or -1 only a combination of two parameters is determined."""
    deviation = np.sqrt(np.maximum(np.diag(found.covariance), 1e-300))
    names = list(found.parameters)
    return _square(found.covariance / np.outer(deviation, deviation), names, "correlation of the parameters", path)


def draw_cosines(found: Updated, path: File = None) -> Figure:
    """Draw cosines between columns of the sensitivities: near 1 or -1 two numbers cannot be distinguished."""
    return _square(found.cosines, found.keys, "cosines between the numbers", path)


def _square(values: Array, names: Sequence[str], title: str, path: File) -> Figure:
    with drawing(path, 1.4 + (0.36 if len(names) <= MOST_NUMBERED else 0.18) * len(names)) as figure:
        panel = figure.subplots()
        _matrix(panel, values, names, (-1.0, 1.0), "RdBu")
        figure.colorbar(panel.images[0], ax=panel, fraction=0.04, pad=0.02)
        panel.set_title(f"{title}, in their order")
    return figure


def draw_macs(found: Updated, path: File = None) -> Figure:
    """Draw the MAC of measured shapes with those of the updated model, pose by pose."""
    with drawing(path, 0.6 + sum(0.7 + 0.3 * len(item) for item in found.macs.values())) as figure:
        panels = figure.subplots(len(found.macs), 1, squeeze=False)[:, 0]
        for panel, (pose, values) in zip(panels, found.macs.items(), strict=True):
            names = [f"{item['measured']:.4g} Hz" for item in found.pairs if item["pose"] == pose]
            _matrix(panel, values, names, (0.0, 1.0), "Blues")
            panel.set_title(f"MAC at {pose}: measured, and modes of the updated model")
    return figure


def _matrix(panel: Any, values: Array, rows: Sequence[str], limits: tuple[float, float], colours: str) -> None:
    """Draw a matrix in colours; its columns are numbered, and a small one shows its numbers."""
    panel.imshow(values, vmin=limits[0], vmax=limits[1], cmap=colours, aspect="auto")
    panel.set_yticks(range(len(rows)), rows)
    panel.set_xticks(range(values.shape[1]), [str(k + 1) for k in range(values.shape[1])])
    panel.grid(visible=False)
    for (i, j), value in np.ndenumerate(values) if max(values.shape) <= MOST_NUMBERED else ():
        if np.isfinite(value):
            colour = "w" if abs(value) > 0.6 * limits[1] else INK
            panel.text(j, i, f"{round(value, 2) + 0.0:.2f}", ha="center", va="center", fontsize=8, color=colour)


def draw_updated(found: Updated, path: File = None) -> Figure:
    """Draw relative errors of all measured frequencies, before and after, with 95 % prediction intervals."""
    pairs = found.pairs
    errors = {word: [_percent(pair, pair[word]) for pair in pairs] for word in ("before", "after")}
    intervals = [[_percent(pair, end) for end in pair["interval"]] for pair in pairs]
    known = [end for interval in intervals for end in interval if end is not None]
    known += [after for after, interval in zip(errors["after"], intervals, strict=True) if None not in interval]
    low, high = (min(known), max(known)) if known else (-1.0, 1.0)
    margin = 0.12 * max(high - low, 1e-6)
    low, high = low - margin, high + margin
    names = [f"{pair['pose']}, mode {pair['mode']}: {pair['measured']:.4g} Hz" for pair in pairs]
    with drawing(path, 1.1 + 0.18 * len(pairs)) as figure:
        panel = figure.subplots()
        rows = name_rows(panel, names)
        for row, pair, interval in zip(rows, pairs, intervals, strict=True):
            if pair["held_out"]:
                panel.axhspan(row - 0.5, row + 0.5, color="#f1f3f6", lw=0)
            if None not in interval:
                panel.plot(interval, [row, row], color=LINES[0], lw=5, alpha=0.35, solid_capstyle="butt")
        panel.axvline(0.0, color=INK, lw=0.9)
        if any(error is not None and low <= error <= high for error in errors["before"]):
            panel.plot(errors["before"], rows, "o", mfc="white", mec=LINES[5], ms=5, label="before")
        panel.plot(errors["after"], rows, "o", color=LINES[0], ms=5, label="after, 95 %")
        panel.set_xlim(low, high)
        for k, row in enumerate(rows):  # what does not fit stands to the right
            outside = {word: values[k] for word, values in errors.items() if values[k] is not None}
            texts = [f"{word} {pairs[k][word]:.4g} Hz ({error:+.3g} %)" for word, error in outside.items()
                     if not low <= error <= high]  # fmt: skip
            panel.annotate(", ".join(texts), (1.0, row), (6, 0), xycoords=("axes fraction", "data"),
                           textcoords="offset points", va="center", fontsize=7.5, color=LINES[5])  # fmt: skip
        panel.set_xlabel("model over measured, less 1 (%)")
        panel.set_title(f"{found.robot}{' (grey: held out)' if any(pair['held_out'] for pair in pairs) else ''}")
        panel.legend(ncols=2, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    return figure


def _percent(pair: dict[str, Any], value: float | None) -> Any:
    return None if value is None else 100 * (value / pair["measured"] - 1)


def draw_calibration(found: Calibrated, path: File = None) -> Figure:
    """Draw residuals before and after the fit, over the places where they were measured."""
    first, second = sorted(np.argsort(np.nan_to_num(np.ptp(found.places, axis=0)))[-2:].tolist())
    fitted = np.array([name not in found.held_out for name in found.rows])
    shown = {"before": (found.residuals_before, found.rms_before), "after": (found.residuals, found.rms_after)}
    with drawing(path, 3.4) as figure:
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for panel, (word, (residuals, rms)) in zip(panels, shown.items(), strict=True):
            values, unit = residual_sizes(found, residuals)
            most = float(np.nanmax(np.abs(values), initial=1e-300))
            signed = bool((values[np.isfinite(values)] < 0).any())
            style = {"cmap": "RdBu_r" if signed else "viridis", "vmin": -most if signed else 0.0, "vmax": most}
            for some, marker in ((fitted, "o"), (~fitted, "s")):
                x, y = (1e3 * found.places[some, axis] for axis in (first, second))
                points = panel.scatter(x, y, 42, values[some], marker, edgecolors=INK, linewidths=0.4, **style)
            panel.set_title(f"{word}: rms {rms * 1e3:.3g} {unit}")
            panel.set_xlabel(f"{'xyz'[first]} (mm)")
            panel.set_aspect("equal")
            figure.colorbar(points, ax=panel, shrink=0.7, label=f"residual ({unit})")
        panels[0].set_ylabel(f"{'xyz'[second]} (mm)")
    return figure


def residual_sizes(found: Calibrated, residuals: dict[str, Array]) -> tuple[Array, str]:
    """Return the residual of each row, of several gauges the norm, and its unit; of lengths if there are any."""
    unit = "m" if any(gauge["unit"] == "m" for gauge in found.gauges.values()) else "rad"
    rows = np.array([residuals[name] for name, gauge in found.gauges.items() if gauge["unit"] == unit])
    values = rows[0] if len(rows) == 1 else np.sqrt(np.nansum(rows**2, axis=0))
    return values * 1e3, MILLI[unit]


def draw_calibrated(found: Calibrated, path: File = None) -> Figure:
    """Draw changes of the numbers over their standard deviations, with 95 % intervals."""
    with drawing(path, 1.3 + 0.24 * len(found.parameters)) as figure:
        panel = figure.subplots()
        rows = name_rows(panel, list(found.parameters))
        for row, item in zip(rows, found.parameters.values(), strict=True):
            if item.deviation:
                change = (item.value - item.before) / item.deviation
                panel.plot([change - 1.96, change + 1.96], [row, row], color=LINES[0], lw=4, alpha=0.4)
                panel.plot([change], [row], "o", color=LINES[0], ms=4)
            else:
                panel.annotate("not determined", (0.0, row), (4, -3), textcoords="offset points", color=LINES[1])
        panel.axvline(0.0, color=INK, lw=0.9)
        panel.set_xlabel("change over its standard deviation, with 95 % intervals")
    return figure


def draw_tolerance(found: Tolerance, path: File = None) -> Figure:
    """Draw the error of a frame by number of the robot file; of a map also over the poses."""
    rotates = found.total["position"] < STATIC
    word, scale, unit = ("rotation", 1e3, "mrad") if rotates else ("position", 1e6, "µm")
    names = sorted(found.contributions, key=lambda name: -found.contributions[name][word])
    axes = [name for name in (found.poses[0] if found.poses else {}) if name not in ("position", "rotation")]
    varied = [name for name in axes if len({pose[name] for pose in found.poses}) > 1][:2]
    with drawing(path, max(2.4, 1.2 + 0.22 * len(names))) as figure:
        panels = figure.subplots(1, max(1, len(varied)), squeeze=False)[0]
        rows = name_rows(panels[0], names)
        panels[0].barh(rows, [found.contributions[name][word] * scale for name in names], color=LINES[0], height=0.62)
        panels[0].axvline(found.total[word] * scale, color=LINES[1], lw=1.2)
        panels[0].set_title(f"total {found.total[word] * scale:.3g} {unit} (line)")
        panels[0].set_xlabel(f"{word} error ({unit})")
        if len(varied) == 2:
            x, y, values = (np.array([pose[name] for pose in found.poses]) for name in (*varied, word))
            points = panels[1].scatter(x, y, c=values * scale, s=30, cmap="viridis")
            panels[1].set_xlabel(coordinate_label(varied[0]))
            panels[1].set_ylabel(coordinate_label(varied[1]))
            figure.colorbar(points, ax=panels[1], label=f"{word} error ({unit})")
    return figure


def _file(record: str) -> str:
    return Path(record).name
