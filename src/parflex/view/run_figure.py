"""Figures of runs: time series, energies, spectra, comparisons with measurements, sections of beams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.simulation.quantities import SECTION, unit_of
from parflex.view.style import INK, LINES, REST, TEXT, drawing, legend_above, time_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
Columns = Mapping[str, Array]
Chosen = Sequence[str] | None
File = str | Path | None

ENERGIES = ("energy.kinetic", "energy.elastic", "energy.gravity", "energy.total")
MOST = 8  # panels of a figure, and lines of a panel by default: more cannot be distinguished
FEWEST = 16  # rows of a spectrum
DECADES = 5  # of amplitudes below the largest one that a spectrum shows


def draw_run(run: Columns, path: File = None, columns: Chosen = None, robot: Robot | None = None, title: str = "",
             width: str = TEXT) -> Figure:  # fmt: skip
    """Draw columns of a run over time, one panel for each unit.

    Parameters
    ----------
    run, path, columns, robot, title, width
        See `parflex.api.WORDS`.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    groups = grouped(chosen_columns(run, columns), robot)
    with drawing(path, 0.6 + 1.6 * len(groups), width, title) as figure:
        panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
        for panel, ((unit, kind), names) in zip(panels, groups.items(), strict=True):
            for name in names:
                panel.plot(run["t"], run[name], label=name)
            panel.set_ylabel(_axis_label(kind, unit))
            legend_above(panel, len(names))
        time_axis(panels[-1], run["t"])
    return figure


def draw_energies(run: Columns, path: File = None, title: str = "", width: str = TEXT) -> Figure:
    """Draw kinetic, elastic, gravitational and total energy over time, and the change of the total.

    Parameters
    ----------
    run, path, title, width
        See `parflex.api.WORDS`.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    names = energy_columns(run)
    with drawing(path, 4.0, width, title) as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
        for name, colour in zip(ENERGIES, LINES, strict=False):
            if name in names:
                line = "--" if name == ENERGIES[-1] else "-"  # the total often covers another
                above.plot(run["t"], run[name], line, label=name.partition(".")[2], color=colour)
        above.set_ylabel(_axis_label("energy", "J"))
        legend_above(above, len(names))
        below.plot(run["t"], run["energy.total"] - run["energy.total"][0], color=LINES[3])
        below.set_ylabel("change of total (J)")
        time_axis(below, run["t"])
    return figure


def draw_spectrum(run: Columns, path: File = None, columns: Chosen = None, robot: Robot | None = None,
                  natural: Array | None = None, highest: float | None = None, title: str = "",
                  width: str = TEXT) -> Figure:  # fmt: skip
    """Draw the amplitude spectrum of columns of a run, one panel for each unit, over five decades.

    Parameters
    ----------
    run, path, columns, robot, natural, highest, title, width
        See `parflex.api.WORDS`.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    groups = grouped(chosen_columns(run, columns), robot)
    spectra = {name: spectrum(run["t"], run[name]) for names in groups.values() for name in names}
    top = highest or max(float(f[-1]) for f, _ in spectra.values())
    lines = [] if natural is None else [value for value in natural if value <= top]
    with drawing(path, 0.6 + 2.0 * len(groups), width, title) as figure:
        panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
        for panel, ((unit, kind), names) in zip(panels, groups.items(), strict=True):
            largest = 0.0
            for name in names:
                f, amplitude = spectra[name]
                shown = (f > 0) & (f <= top)
                largest = max(largest, float(amplitude[shown].max(initial=0.0)))
                panel.semilogy(f[shown], amplitude[shown], label=name)
            if largest:  # lines leave the panel below: numbers that small are leakage and rounding
                panel.set_ylim(largest * 10.0**-DECADES, 3 * largest)
            for k, value in enumerate(lines):
                label = "" if k else "natural frequencies"
                panel.axvline(value, color=INK, linewidth=0.7, linestyle=":", zorder=0, label=label)
                panel.text(value, 0.02, f" {k + 1}", transform=panel.get_xaxis_transform(), fontsize=7.5)
            panel.set_ylabel(f"{kind} amplitude ({unit})" if unit else "amplitude")
            legend_above(panel, len(names) + bool(lines))
        panels[-1].set_xlabel("frequency (Hz)")
        panels[-1].set_xlim(0, top)
    return figure


def draw_comparison(run: Columns, measured: Columns, path: File = None, columns: Chosen = None,
                    robot: Robot | None = None, title: str = "", width: str = TEXT) -> Figure:  # fmt: skip
    """Draw computed and measured columns, and below each pair their difference.

    Parameters
    ----------
    run, measured, path, columns, robot, title, width
        See `parflex.api.WORDS`.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    differences = run_differences(run, measured, columns)
    with drawing(path, 0.6 + 2.5 * len(differences), width, title) as figure:
        for panels, (name, difference) in zip(compared_panels(figure, len(differences)), differences.items(),
                                              strict=True):  # fmt: skip
            unit, kind = unit_of(name, robot)
            curves = (measured["t"], measured[name]), (run["t"], run[name]), (difference.times, difference.values)
            draw_compared(*panels, *curves, labels=(f"{name}, measured", f"{name}, computed"))
            panels[0].set_ylabel(_axis_label(kind, unit))
            panels[1].set_ylabel(_axis_label("difference", unit))
            numbers = f"rms {difference.rms:.3g} {unit}, largest {difference.largest:.3g} {unit}"
            panels[1].set_title(numbers, fontsize=8, pad=2)
        time_axis(panels[1], run["t"])
    return figure


def compared_panels(figure: Any, count: int) -> list[tuple[Any, Any]]:
    """Return pairs of panels over one time axis, the lower one of each for the difference."""
    panels = figure.subplots(2 * count, 1, sharex=True, height_ratios=[2.4, 1] * count)
    return list(zip(panels[::2], panels[1::2], strict=True))


def draw_compared(above: Any, below: Any, measured: Any, computed: Any, difference: Any, labels: Sequence[str]) -> None:
    """Draw a measured and a computed curve, each as times and values, and below them their difference."""
    above.plot(*measured, color=REST, linewidth=2.2, label=labels[0])
    above.plot(*computed, color=LINES[0], linewidth=0.9, label=labels[1])
    legend_above(above, 2)
    below.plot(*difference, color=LINES[1], linewidth=0.7)
    below.axhline(0.0, color=REST, linewidth=0.8, zorder=0)


def draw_sections(run: Columns, path: File = None, columns: Chosen = None, instant: float | None = None,
                  title: str = "", width: str = TEXT) -> Figure:  # fmt: skip
    """Draw section forces and stresses along beams, and over time where they are largest.

    On the left at one time, with the limits of the whole run around it; on the right over time at the place of the
    largest value. The run needs columns at several places of a beam: `outputs=["BEAM.Mz@0:1:21"]`.

    Parameters
    ----------
    run, path, instant, title, width
        See `parflex.api.WORDS`.
    columns : Sequence[str], default None
        Columns to show, e.g. 'BEAM.Mz@*'; None: all of beams.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    beams, t = along_beams(run, columns), np.asarray(run["t"])
    if instant is not None and not t[0] <= instant <= t[-1]:
        message, hint = f"the run has no time {instant:g} s", f"give {t[0]:g} to {t[-1]:g} s"
        raise InputError(message, key="instant", value=instant, hint=hint)
    with drawing(path, 0.6 + 2.1 * len(beams), width, title) as figure:
        panels = figure.subplots(len(beams), 2, squeeze=False, width_ratios=[1, 1.15])
        for (along, over), beam in zip(panels, beams, strict=True):
            unit, kind = unit_of(f"{beam.name}@0")
            row, place = divmod(int(np.nanargmax(np.abs(beam.values))), len(beam.s))
            row = row if instant is None else int(np.abs(t - instant).argmin())
            low, high = beam.values.min(axis=0), beam.values.max(axis=0)
            along.fill_between(beam.s, low, high, color=REST, alpha=0.45, lw=0, label="whole run")
            along.plot(beam.s, beam.values[row], color=LINES[0], label=f"t = {t[row]:.4g} s")
            along.set_ylabel(_axis_label(kind, unit))
            along.set_title(beam.name)
            along.set_xlim(0, 1)
            over.plot(t, beam.values[:, place], color=LINES[1], lw=1.0, label=f"s = {beam.s[place]:.3g}")
            over.axvline(t[row], color=LINES[0], lw=0.7, linestyle=":")
            legend_above(along, 2)
            legend_above(over, 1)
            time_axis(over, t)
            over.set_xlabel("")
        panels[-1, 0].set_xlabel("place s along the beam")
        time_axis(panels[-1, 1], t)
    return figure


def _axis_label(kind: str, unit: str) -> str:
    return f"{kind} ({unit})" if unit else kind


def chosen_columns(run: Columns, columns: Chosen) -> list[str]:
    """Return the requested columns, patterns such as `P.*` written out; by default poses, efforts and energies."""
    if "t" not in run:
        raise InputError("the column 't' is missing", key="t", hint="this is not a run")
    names = [name for name in run if name != "t"]
    if columns is None:
        poses = [name for name in names if _is_pose(name)]
        usual = [*poses, *(name for name in names if name.startswith(("effort.", "energy.")))]
        return _distinct(run, usual) or names[:MOST]
    result: list[str] = []
    for pattern in columns:
        matching = [name for name in names if name == pattern or fnmatchcase(name, pattern)]
        if not matching:
            hint = did_you_mean(pattern, names)
            raise InputError(f"there is no column '{pattern}'", key="columns", value=pattern, hint=hint)
        result += matching
    return list(dict.fromkeys(result))


def _is_pose(name: str) -> bool:
    frame, _, last = name.rpartition(".")
    return last in ("x", "y", "z", "theta") and frame.partition(".")[0] not in ("q", "qd", "qdd", "effort")


def _distinct(run: Columns, names: list[str]) -> list[str]:
    """Return columns that are not zero throughout and do not repeat an earlier one, as at points that coincide."""
    distinct: dict[tuple[tuple[str, str], bytes], str] = {}
    for name in names:
        if np.any(run[name]):
            distinct.setdefault((unit_of(name), np.asarray(run[name]).tobytes()), name)
    return list(distinct.values())


def grouped(columns: Sequence[str], robot: Robot | None) -> dict[tuple[str, str], list[str]]:
    """Return columns by unit and kind."""
    groups: dict[tuple[str, str], list[str]] = {}
    if not columns:
        raise InputError("there is nothing to draw", key="columns", hint="name columns of the run")
    for name in columns:
        groups.setdefault(unit_of(name, robot), []).append(name)
    if len(groups) > MOST:
        message = f"{len(columns)} columns of {len(groups)} kinds do not fit into one figure"
        raise InputError(message, key="columns", value=len(groups), hint="name fewer columns, e.g. 'effort.*'")
    return groups


def energy_columns(run: Columns) -> list[str]:
    """Return the energies of a run that are not zero throughout."""
    if "energy.total" not in run:
        hint = "use one of 'simulate'"
        raise InputError("the run has no energy columns", key="column", value="energy.total", hint=hint)
    return [name for name in ENERGIES if name in run and np.any(run[name])]


class AlongBeam(NamedTuple):
    """A quantity of a beam in all rows: places from 0 to 1, and values, rows x places."""

    name: str
    s: Array
    values: Array


def along_beams(run: Columns, columns: Chosen = None) -> list[AlongBeam]:
    """Return quantities of beams of which a run has several places, in the order of its columns."""
    places: dict[str, dict[float, str]] = {}
    for column in chosen_columns(run, ["*"] if columns is None else columns):
        match = SECTION.fullmatch(column)
        if match is not None:
            places.setdefault(match[1], {})[float(match[2])] = column
    profiles = {name: dict(sorted(by_place.items())) for name, by_place in places.items() if len(by_place) > 1}
    if not profiles:
        hint = "simulate with outputs such as 'BEAM.Mz@0:1:21'"
        raise InputError("the run has no beam with columns at several places", key="columns", value=0, hint=hint)
    if len(profiles) > MOST:
        message = f"{len(profiles)} quantities of beams do not fit into one figure"
        raise InputError(message, key="columns", value=len(profiles), hint="name fewer of them")
    return [
        AlongBeam(name, np.array(list(by_place)), np.stack([np.asarray(run[c]) for c in by_place.values()], axis=1))
        for name, by_place in profiles.items()
    ]


def spectrum(t: Array, values: Array) -> tuple[Array, Array]:
    """Return frequencies (Hz) and amplitudes of a column without its mean, by a Hann window.

    A sine of amplitude 1 has a peak of 1. Uneven rows are interpolated.
    """
    if len(t) < FEWEST:
        message = f"a spectrum needs at least {FEWEST} rows, there are {len(t)}"
        raise InputError(message, key="spectrum", value=len(t), hint="simulate longer, or with a smaller out_step")
    steps = np.diff(t)
    if np.ptp(steps) > 1e-6 * steps.mean():
        even = np.linspace(t[0], t[-1], len(t))
        values, t = np.interp(even, t, values), even
    window = np.hanning(len(values) + 1)[:-1]  # as long as its period
    amplitudes = np.abs(np.fft.rfft((values - values.mean()) * window))
    return np.fft.rfftfreq(len(values), (t[-1] - t[0]) / (len(t) - 1)), 2 * amplitudes / window.sum()


def peaks_of(frequencies: Array, amplitudes: Array, most: int = 5) -> list[float]:
    """Return frequencies of the largest peaks, each by the parabola through the logarithms around it."""
    inner = np.flatnonzero((amplitudes[1:-1] > amplitudes[:-2]) & (amplitudes[1:-1] >= amplitudes[2:])) + 1
    step, peaks = frequencies[1] - frequencies[0], []
    for k in sorted(inner, key=lambda k: -amplitudes[k])[:most]:
        if amplitudes[k] > 1e-3 * amplitudes.max():
            a, b, c = np.log(np.maximum(amplitudes[k - 1 : k + 2], 1e-300))
            peaks.append(float(frequencies[k] + step * 0.5 * (a - c) / (a - 2 * b + c)))
    return peaks


def spectrum_peaks(run: Columns, columns: Sequence[str] | None = None) -> dict[str, list[float]]:
    """Return the frequencies of the largest peaks of columns of a run.

    Parameters
    ----------
    run, columns
        See `parflex.api.WORDS`.

    Returns
    -------
    dict[str, list[float]]
        Frequencies in Hz, by column, the largest peak first.
    """
    return {name: peaks_of(*spectrum(run["t"], run[name])) for name in chosen_columns(run, columns)}


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Record):
    """Difference of a computed and a measured column, over the times that both have.

    Attributes
    ----------
    rms : float
        Root mean square, in the unit of the column.
    largest : float
        Largest difference, in the unit of the column.
    relative : float
        RMS relative to that of the measured column about its mean (dimensionless).
    times : Array
        Times of the differences (s).
    values : Array
        Computed minus measured.
    """

    rms: float
    largest: float
    relative: float
    times: Array
    values: Array

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        return {"rms": self.rms, "max": self.largest, "relative": self.relative}


def run_differences(run: Columns, measured: Columns, columns: Sequence[str] | None = None) -> dict[str, Difference]:
    """Return the RMS and the largest difference between a run and measurements, by column.

    Parameters
    ----------
    run, measured
        See `parflex.api.WORDS`.
    columns : Sequence[str], default None
        Columns to compare; None: those that both have.

    Returns
    -------
    dict[str, Difference]
        Differences in the units of the columns, by column.
    """
    common = [name for name in measured if name != "t" and name in run]
    if not common or "t" not in measured:
        what = "column of the run" if "t" in measured else "column 't'"
        hint, names = "name its columns like those of the run, and the time 't'", ", ".join(list(measured)[:5])
        raise InputError(f"the measured file has no {what}", key="measured", value=names, hint=hint)
    chosen = chosen_columns({name: run[name] for name in ["t", *common]}, columns or common)
    return {name: difference(run, measured, name) for name in chosen}


def difference(run: Columns, measured: Columns, column: str) -> Difference:
    """Return computed minus measured at the measured times; a run is interpolated linearly between its rows."""
    t = measured["t"]
    both = (t >= run["t"][0]) & (t <= run["t"][-1]) & np.isfinite(measured[column])
    if not both.any():
        spans = f"{t[0]:g} to {t[-1]:g} s and {run['t'][0]:g} to {run['t'][-1]:g} s"
        hint = "shift the times of one of them"
        raise InputError(f"the two do not overlap in time: {spans}", key="measured", value=column, hint=hint)
    observed = measured[column][both]
    values = np.interp(t[both], run["t"], run[column]) - observed
    rms, swing = float(np.sqrt(np.mean(values**2))), float(np.std(observed))
    return Difference(rms, float(np.abs(values).max()), rms / swing if swing else float("inf"), t[both], values)
