"""Figures of runs: time series, energies, spectra, and computed beside measured. Units stand on every axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.view.figures.style import LINES, MEASURED, new_figure, picture_path, styled, write_picture
from parflex.view.figures.units import unit_of

Array = np.ndarray
Columns = Mapping[str, Array]
MOST_LINES = 8  # in one panel: more cannot be told apart
MOST_PANELS = 8
ENERGIES = ("energy.kinetic", "energy.elastic", "energy.gravity", "energy.total")
FEWEST = 16  # rows of a spectrum


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Record):
    """How far a computed column is from a measured one, over the times that both have."""

    rms: float
    largest: float
    relative: float  # of the root mean square of the measured one, about its mean
    times: Array
    values: Array

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        return {"rms": self.rms, "max": self.largest, "relative": self.relative}


def draw_run(run: Columns, path: str | Path, columns: Sequence[str] | None = None, robot: Robot | None = None,
             title: str = "") -> list[str]:  # fmt: skip
    """Columns of a run over time, one panel for each unit; by default the end effector, efforts and energies."""
    chosen = chosen_columns(run, columns)
    groups = grouped(chosen, robot)
    with styled():
        figure = new_figure(0.6 + 1.75 * len(groups))
        panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
        for panel, ((unit, kind), names) in zip(panels, groups.items(), strict=True):
            for name in names:
                panel.plot(run["t"], run[name], label=name)
            panel.set_ylabel(axis_label(kind, unit))
            _legend(panel, len(names))
        _time_axis(panels[-1], figure, title, run["t"])
    write_picture(figure, picture_path(path))
    return chosen


def draw_energies(run: Columns, path: str | Path, title: str = "") -> list[str]:
    """Kinetic, elastic, gravitational and total energy over time, and below how the total one changes."""
    names = [name for name in ENERGIES if name in run and np.ptp(run[name]) + np.abs(run[name]).max(initial=0.0) > 0]
    if "energy.total" not in run:
        raise InputError("the run has no energies", key="column", value="energy.total", hint="use one of 'simulate'")
    with styled():
        figure = new_figure(4.4)
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
        for name, colour in zip(ENERGIES, LINES, strict=False):
            if name in names:
                line = "--" if name.endswith("total") else "-"  # it often lies upon another
                above.plot(run["t"], run[name], line, label=name.partition(".")[2], color=colour)
        above.set_ylabel(axis_label("energy", "J"))
        _legend(above, len(names))
        below.plot(run["t"], run["energy.total"] - run["energy.total"][0], color=LINES[3])
        below.set_ylabel("change of total (J)")
        _time_axis(below, figure, title, run["t"])
    write_picture(figure, picture_path(path))
    return names


def spectrum(t: Array, values: Array) -> tuple[Array, Array]:
    """Frequencies (Hz) and amplitudes of a column: mean taken off, Hann window, a sine of amplitude 1 shows as 1."""
    if len(t) < FEWEST:
        raise InputError(
            f"a spectrum needs at least {FEWEST} rows, there are {len(t)}",
            key="spectrum",
            value=len(t),
            hint="simulate longer, or with a smaller --out-step",
        )
    steps = np.diff(t)
    if np.ptp(steps) > 1e-6 * steps.mean():
        even = np.linspace(t[0], t[-1], len(t))
        values, t = np.interp(even, t, values), even
    window = np.hanning(len(values) + 1)[:-1]  # as long as its period
    found = np.abs(np.fft.rfft((values - values.mean()) * window))
    return np.fft.rfftfreq(len(values), (t[-1] - t[0]) / (len(t) - 1)), 2 * found / window.sum()


def peaks_of(frequencies: Array, amplitudes: Array, most: int = 5) -> list[float]:
    """Frequencies of the largest peaks, each from the parabola through the logarithms around it, in their order."""
    inner = np.flatnonzero((amplitudes[1:-1] > amplitudes[:-2]) & (amplitudes[1:-1] >= amplitudes[2:])) + 1
    largest = sorted(inner, key=lambda k: -amplitudes[k])[:most]
    step, found = frequencies[1] - frequencies[0], []
    for k in largest:
        if amplitudes[k] > 1e-3 * amplitudes.max():
            a, b, c = np.log(np.maximum(amplitudes[k - 1 : k + 2], 1e-300))
            found.append(float(frequencies[k] + step * 0.5 * (a - c) / (a - 2 * b + c)))
    return found


def draw_spectrum(run: Columns, path: str | Path, columns: Sequence[str] | None = None, robot: Robot | None = None,
                  natural: Array | None = None, highest: float | None = None, title: str = "",
                  ) -> dict[str, list[float]]:  # fmt: skip
    """Amplitudes over frequency, one panel for each unit; natural frequencies, if given, as thin lines."""
    chosen = chosen_columns(run, columns)
    groups, peaks = grouped(chosen, robot), {}
    top = 0.0
    with styled():
        figure = new_figure(0.6 + 2.0 * len(groups))
        panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
        for panel, ((unit, kind), names) in zip(panels, groups.items(), strict=True):
            for name in names:
                f, amplitude = spectrum(run["t"], run[name])
                top = float(f[-1])
                floor = max(float(amplitude[1:].max(initial=0.0)) * 1e-6, 1e-300)
                panel.semilogy(f[1:], np.maximum(amplitude[1:], floor), label=name)
                peaks[name] = peaks_of(f, amplitude)
            for k, value in enumerate([] if natural is None else natural):
                panel.axvline(value, color=MEASURED, linewidth=0.7, linestyle=":", zorder=0)
                if panel is panels[0] and value <= (highest or top):
                    panel.annotate(
                        f"{k + 1}", (value, 1.0), xycoords=("data", "axes fraction"), xytext=(2, -8),
                        textcoords="offset points", fontsize=7.5, color=MEASURED,
                    )  # fmt: skip
            panel.set_ylabel(f"amplitude ({unit})" if unit else "amplitude")
            panel.set_title(kind, fontsize=9, fontweight="normal", pad=4)
            _legend(panel, len(names))
        panels[-1].set_xlabel("frequency (Hz)")
        panels[-1].set_xlim(0, highest or top)
        if title:
            figure.suptitle(title, fontsize=10.5, fontweight="bold")
    write_picture(figure, picture_path(path))
    return peaks


def difference(run: Columns, measured: Columns, column: str) -> Difference:
    """Computed less measured at the measured times; between rows the computed one is a straight line."""
    t = measured["t"]
    both = (t >= run["t"][0]) & (t <= run["t"][-1]) & np.isfinite(measured[column])
    if not both.any():
        raise InputError(
            f"the two have no time in common: {t[0]:g} to {t[-1]:g} s and {run['t'][0]:g} to {run['t'][-1]:g} s",
            key="measured",
            value=column,
            hint="shift the times of one of them",
        )
    seen = measured[column][both]
    values = np.interp(t[both], run["t"], run[column]) - seen
    rms = float(np.sqrt(np.mean(values**2)))
    swing = float(np.sqrt(np.mean((seen - seen.mean()) ** 2)))
    return Difference(rms, float(np.abs(values).max()), rms / swing if swing else float("inf"), t[both], values)


def draw_comparison(run: Columns, measured: Columns, path: str | Path, columns: Sequence[str] | None = None,
                    robot: Robot | None = None, title: str = "") -> dict[str, Difference]:  # fmt: skip
    """Computed beside measured, column by column, and below each pair their difference."""
    common = [name for name in measured if name != "t" and name in run]
    if not common or "t" not in measured:
        raise InputError(
            "the measured file has no column of the run" if "t" in measured else "the measured file has no column 't'",
            key="measured",
            value=", ".join(list(measured)[:5]),
            hint="name its columns like those of the run, and the time 't'",
        )
    chosen = chosen_columns({name: run[name] for name in ["t", *common]}, columns or common)
    found = {name: difference(run, measured, name) for name in chosen}
    with styled():
        figure = new_figure(0.6 + 2.5 * len(chosen))
        panels = figure.subplots(2 * len(chosen), 1, sharex=True, height_ratios=[2.4, 1] * len(chosen))
        for k, name in enumerate(chosen):
            unit, kind = unit_of(name, robot)
            above, below = panels[2 * k], panels[2 * k + 1]
            above.plot(measured["t"], measured[name], color=MEASURED, linewidth=0.9, label=f"{name}, measured")
            above.plot(run["t"], run[name], color=LINES[0], label=f"{name}, computed")
            above.set_ylabel(axis_label(kind, unit))
            _legend(above, 2)
            below.plot(found[name].times, found[name].values, color=LINES[1], linewidth=0.9)
            below.set_ylabel(f"difference ({unit})" if unit else "difference")
            note = f"rms {found[name].rms:.3g} {unit}, largest {found[name].largest:.3g} {unit}"
            below.set_title(note, fontsize=8, fontweight="normal", pad=2)
        _time_axis(panels[-1], figure, title, run["t"])
    write_picture(figure, picture_path(path))
    return found


def chosen_columns(run: Columns, columns: Sequence[str] | None) -> list[str]:
    """The asked columns, patterns like `P.*` written out; by default poses, efforts and energies."""
    from fnmatch import fnmatchcase

    if "t" not in run:
        raise InputError("the column 't' is missing", key="t", hint="this is not a run")
    names = [name for name in run if name != "t"]
    if columns is None:
        places = [name for name in names if _is_pose(name)]
        wanted = [*places, *(name for name in names if name.startswith(("effort.", "energy.")))]
        return _told_apart(run, wanted) or names[:MOST_LINES]
    found: list[str] = []
    for pattern in columns:
        matching = [name for name in names if name == pattern or fnmatchcase(name, pattern)]
        if not matching:
            raise InputError(
                f"there is no column '{pattern}'", key="columns", value=pattern, hint=did_you_mean(pattern, names)
            )
        found += matching
    return list(dict.fromkeys(found))


def _told_apart(run: Columns, names: list[str]) -> list[str]:
    """Without columns that are zero throughout or repeat an earlier one, as those of points that coincide do."""
    kept: list[str] = []
    for name in names:
        alike = [other for other in kept if unit_of(other) == unit_of(name)]
        if np.any(run[name]) and not any(np.array_equal(run[name], run[other]) for other in alike):
            kept.append(name)
    return kept


def _is_pose(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last in ("x", "y", "z", "theta") and not name.startswith(("q.", "qd.", "qdd.", "effort."))


def grouped(columns: Sequence[str], robot: Robot | None) -> dict[tuple[str, str], list[str]]:
    """Columns by unit and kind; a group with too many lines is told to be one."""
    groups: dict[tuple[str, str], list[str]] = {}
    if not columns:
        raise InputError("there is nothing to draw", key="columns", hint="name columns of the run")
    for name in columns:
        groups.setdefault(unit_of(name, robot), []).append(name)
    if len(groups) > MOST_PANELS:
        raise InputError(
            f"{len(columns)} columns of {len(groups)} kinds do not fit into one figure",
            key="columns",
            value=len(groups),
            hint="name fewer, e.g. --columns 'effort.*'",
        )
    return groups


def axis_label(kind: str, unit: str) -> str:
    """What an axis shows, and its unit."""
    return f"{kind} ({unit})" if unit else kind


def _legend(panel: Any, count: int) -> None:
    """Above the panel where it fits, else beside it: nothing hides a line."""
    if count <= 4:
        panel.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=count, borderaxespad=0.0, handlelength=1.4)
    else:
        panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7.5)


def _time_axis(panel: Any, figure: Any, title: str, t: Array) -> None:
    panel.set_xlabel("time (s)")
    if t[-1] > t[0]:
        panel.set_xlim(t[0], t[-1])
    if title:
        figure.suptitle(title, fontsize=10.5, fontweight="bold")
