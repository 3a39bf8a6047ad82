"""Numbers of runs that figures show: spectra and their peaks, and how far a run is from a measured one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.records import Record
from parflex.view.figures.units import unit_of

Array = np.ndarray
Columns = Mapping[str, Array]
MOST_LINES = 8  # in one panel: more cannot be told apart
FEWEST = 16  # rows of a spectrum


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Record):
    """How far a computed column is from a measured one, over the times that both have.

    Attributes
    ----------
    rms : float
        Root mean square, in the unit of the column.
    largest : float
        Largest difference, in the unit of the column.
    relative : float
        RMS relative to that of the measured column (dimensionless).
    times : Array
        Times of the differences (s).
    values : Array
        Computed minus measured.
    """

    rms: float
    largest: float
    relative: float  # of the root mean square of the measured one, about its mean
    times: Array
    values: Array

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        return {"rms": self.rms, "max": self.largest, "relative": self.relative}


def spectrum(t: Array, values: Array) -> tuple[Array, Array]:
    """Frequencies (Hz) and amplitudes of a column: mean taken off, Hann window, a sine of amplitude 1 shows as 1."""
    if len(t) < FEWEST:
        raise InputError(
            f"a spectrum needs at least {FEWEST} rows, there are {len(t)}",
            key="spectrum",
            value=len(t),
            hint="simulate longer, or with a smaller out_step",
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


def difference(run: Columns, measured: Columns, column: str) -> Difference:
    """Computed less measured at the measured times; between rows the computed one is a straight line."""
    t = measured["t"]
    both = (t >= run["t"][0]) & (t <= run["t"][-1]) & np.isfinite(measured[column])
    if not both.any():
        raise InputError(
            f"the two do not overlap in time: {t[0]:g} to {t[-1]:g} s and {run['t'][0]:g} to {run['t'][-1]:g} s",
            key="measured",
            value=column,
            hint="shift the times of one of them",
        )
    seen = measured[column][both]
    values = np.interp(t[both], run["t"], run[column]) - seen
    rms = float(np.sqrt(np.mean(values**2)))
    swing = float(np.sqrt(np.mean((seen - seen.mean()) ** 2)))
    return Difference(rms, float(np.abs(values).max()), rms / swing if swing else float("inf"), t[both], values)


def chosen_columns(run: Columns, columns: Sequence[str] | None) -> list[str]:
    """The asked columns, patterns like `P.*` written out; by default poses, efforts and energies."""
    from fnmatch import fnmatchcase

    if "t" not in run:
        raise InputError("the column 't' is missing", key="t", hint="this is not a run")
    names = [name for name in run if name != "t"]
    if columns is None:
        places = [name for name in names if _is_pose(name)]
        requested = [*places, *(name for name in names if name.startswith(("effort.", "energy.")))]
        return _told_apart(run, requested) or names[:MOST_LINES]
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


def spectrum_peaks(run: Columns, columns: Sequence[str] | None = None) -> dict[str, list[float]]:
    """Frequencies of the largest peaks of columns of a run.

    Parameters
    ----------
    run : Run or Mapping[str, Array]
        Columns by name, with time 't' in s.
    columns : Sequence[str], default None
        Columns to show; None: end effector, efforts and energies.

    Returns
    -------
    dict[str, list[float]]
        Frequencies in Hz, by column, the largest peak first.
    """
    return {name: peaks_of(*spectrum(run["t"], run[name])) for name in chosen_columns(run, columns)}


def run_differences(run: Columns, measured: Columns, columns: Sequence[str] | None = None) -> dict[str, Difference]:
    """RMS and largest difference between a run and measurements, by column.

    Parameters
    ----------
    run : Run or Mapping[str, Array]
        Columns by name, with time 't' in s.
    measured : Run or Mapping[str, Array]
        Measured columns by name, with time 't' in s.
    columns : Sequence[str], default None
        Columns to compare; None: those that both have.

    Returns
    -------
    dict[str, Difference]
        Differences in the units of the columns, by column.
    """
    common = [name for name in measured if name != "t" and name in run]
    if not common or "t" not in measured:
        raise InputError(
            "the measured file has no column of the run" if "t" in measured else "the measured file has no column 't'",
            key="measured",
            value=", ".join(list(measured)[:5]),
            hint="name its columns like those of the run, and the time 't'",
        )
    chosen = chosen_columns({name: run[name] for name in ["t", *common]}, columns or common)
    return {name: difference(run, measured, name) for name in chosen}
