"""Filtering of records: zero-phase low-pass and derivatives, decimation of both sides alike, edges cut.

Positions are filtered by a Butterworth low-pass of order four, forwards and backwards, and differentiated by central
differences, as in print, or where they are filtered, frequency by frequency. Efforts and the columns of the regressor
then pass the same second filter, so that what it does to one side it does to the other, and every n-th sample is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.checks import integer, number
from parflex.errors import InputError
from parflex.identification.estimates.rounded_positions import staircase
from parflex.identification.low_pass import ORDER, butterworth, derivatives, mean_spectrum
from parflex.identification.low_pass import decimated as thinned
from parflex.identification.measured_files import Measurement
from parflex.records import Record

Array = np.ndarray
STICKS = 0.1  # of the largest rate: slower joints stick, or low-passes see them stick
NOISY = 4.0  # standard deviations of a rate, of which its sign is sure
SLOW = 0.01  # of the largest rate, as good as at rest
REST = 1e-9  # of a position: a motor that moves less rests
LINES = 3  # of an encoder, between which positions of a motor at rest flicker
HARDLY = 3.0  # standard deviations of noise behind the low-pass: of noise alone 40 independent values leave 1 +- 0.1
EDGE = 5.0  # periods of the cutoff frequency cut at both ends
SETTLING = 3  # instants kept behind decimation: nearer to an end its low-pass lets noise through, at the end all of it
FLOOR = 10.0  # times the noise: a frequency with less power is noise
OVER = 10.0  # the cutoff over the highest frequency with power: what is differentiated twice must not be damped
KEPT = 0.4  # of the cutoff: what is kept behind decimation, where the first filter takes nothing
FAINT = 1e-4  # of the power of accelerations: noise may have so much in what is kept, as inertias are too small by more
MOST = 0.999  # of the power of rates
SEGMENTS = 7  # of a record, overlapping by half, at least: the mean of their spectra
LONGEST = 4096  # samples of one of them
INSTANTS = 100  # of a record that are kept at least, where it has so many
HIGHEST = 0.2  # of the sample frequency, the cutoff at most


@dataclass(frozen=True, eq=False, repr=False)
class FilterChoice(Record):
    """What is done to records.

    Attributes
    ----------
    cutoff : float
        Of the Butterworth filter of positions (Hz).
    decimate : int
        Every so many samples one is kept.
    edge : int
        Samples at both ends in which the filter of positions settles.
    least_speed : float
        Samples in which a motor with Coulomb friction is slower are left out (m/s, rad/s).
    by_motor : tuple[float, ...]
        The same of each motor where they differ; `least_speed` is the largest.
    why : str
        Where cutoff and decimation come from.
    whole : bool
        Whether rates are differentiated frequency by frequency: differences of neighbours miss a part of them.
    """

    cutoff: float
    decimate: int
    edge: int
    least_speed: float = 0.0
    why: str = ""
    by_motor: tuple[float, ...] = ()
    whole: bool = True

    @property
    def settling(self) -> int:
        """Instants kept by decimation, but then cut at both ends."""
        return SETTLING if self.decimate > 1 else 0

    @property
    def cut(self) -> int:
        """Samples cut at both ends in all."""
        return self.edge + self.settling * self.decimate

    def inside(self, values: Array) -> Array:
        """What decimation is given of all samples of a record."""
        return values[self.edge : len(values) - self.edge]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "cutoff": self.cutoff, "decimate": self.decimate, "edge": self.cut, "order": ORDER,
            "least_speed": self.least_speed, "why": self.why,
        }  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Smooth(Record):
    """Filtered positions of the motors, their rates and accelerations, at all samples but the edges."""

    t: Array
    position: Array
    rate: Array
    acceleration: Array
    kept: slice


def choose_filter(
    records: list[Measurement], cutoff: float | None, decimate: int | None, least_speed: float | None,
    frequency: float | None,
) -> FilterChoice:  # fmt: skip
    """The filter that is asked for; what is not asked for follows from the robot's frequencies or the record."""
    rate = 1 / records[0].step
    for record in records[1:]:
        if abs(record.step * rate - 1) > 1e-3:
            raise InputError(
                f"records have different steps, {records[0].step:.4g} s and {record.step:.4g} s", key="record",
                value=record.name, hint="give records of one sample time, or identify from one of them",
            )  # fmt: skip
    said, bands = [], [band for record in records for band in _bands(record)]
    if cutoff is not None:
        cutoff = float(number(cutoff, "cutoff", above=0.0, example=100))
        said.append("cutoff as given")
    else:
        cutoff, told = _spectral_cutoff(records, bands)
        if frequency is not None and frequency < cutoff:
            cutoff, told = frequency, f"the lowest natural frequency {frequency:.4g} Hz of the robot"
        if cutoff > HIGHEST * rate:
            cutoff, told = HIGHEST * rate, f"{HIGHEST:g} of the sample frequency"
        said.append(f"cutoff from {told}")
    if not cutoff < rate / 2:
        raise InputError(
            f"a cutoff of {cutoff:.4g} Hz needs more than {2 * cutoff:.4g} samples per second, the record has "
            f"{rate:.4g}", key="cutoff", value=cutoff, hint=f"give less than {rate / 2:.4g}",
        )  # fmt: skip
    if decimate is None:
        fewest = min(len(record.t) for record in records) // INSTANTS
        decimate = max(1, min(int(rate / cutoff), fewest))
        said.append("as many samples kept as the cutoff needs")
    else:
        decimate = integer(decimate, "decimate", 1)
        said.append("decimation as given")
    edge = round(EDGE * rate / cutoff)
    least = 0.0 if least_speed is None else float(number(least_speed, "least_speed", least=0.0))
    shortest = min(len(record.t) for record in records)
    found = FilterChoice(float(cutoff), decimate, edge, least, "; ".join(said))
    if shortest < 2 * found.cut + 10 * decimate:
        raise InputError(
            f"a record of {shortest} samples is too short for {cutoff:.4g} Hz and one of {decimate} samples",
            key="cutoff", value=cutoff, hint="raise the cutoff, decimate less, or record longer",
        )  # fmt: skip
    return found


def cutoff_of(records: list[Measurement]) -> float:
    """The cutoff that spectra of the positions ask for (Hz), whatever is given."""
    return _spectral_cutoff(records, [band for record in records for band in _bands(record)])[0]


def _spectral_cutoff(records: list[Measurement], found: list[_Band]) -> tuple[float, str]:
    """A cutoff from the spectra of the positions, and why."""
    lowest = max(2 / (record.t[-1] - record.t[0]) for record in records)
    highest = max([band.highest for band in found], default=0.0)
    highest = max(highest, lowest)
    clean = float(np.exp(np.mean([np.log(band.clean) for band in found]))) if found else np.inf
    cutoff, least = OVER * highest, highest / KEPT
    told = f"{OVER:g} times the highest frequency {highest:.3g} Hz of the positions that is above their noise"
    if clean / KEPT < cutoff:
        cutoff = max(clean / KEPT, least)
        told = f"the noise of accelerations, and the highest frequency {highest:.3g} Hz of the positions above noise"
    shortest = min(record.t[-1] - record.t[0] for record in records)
    if cutoff < 4 * EDGE / shortest:
        cutoff, told = 4 * EDGE / shortest, "the length of the record, of which edges are cut"
    return cutoff, told


@dataclass(frozen=True, eq=False, repr=False)
class _Band(Record):
    """Of a motor: the frequency at which its motion sinks into noise, and that up to which accelerations are clean."""

    highest: float
    clean: float


def _bands(record: Measurement) -> list[_Band]:
    """Of each motor that moves, from the spectrum of its rates.

    Positions are quantised or noisy: the power of their differences grows as sin(pi f/fs)^2, and its level follows from
    the highest frequencies, or from the lines of an encoder that are passed so seldom that these have little of it. An
    average of several spectra has no lines by chance that stand out of the noise.
    """
    found = []
    size = max(min(len(record.t), LONGEST, 2 * len(record.t) // (SEGMENTS + 1)), 16)
    for position in record.position.T:
        f, power = mean_spectrum(np.diff(position) / record.step, record.step, size)
        if not power.sum() > 1e-300:
            continue  # it is at rest
        shape = np.sin(np.pi * f * record.step) ** 2
        upper = f > 0.6 * f[-1]
        level = float(np.median(power[upper] / shape[upper]))
        above = power[1:] / shape[1:]  # of positions, times 4 fs^2
        stands_out = np.ones(len(above), dtype=bool)
        steps = staircase(position)
        if steps is not None:
            level = max(level, 8 * steps.as_white**2 / record.step)
            # at a steady speed its error is one line of the spectrum: what is above a frequency must be more than that
            stands_out = np.cumsum(above[::-1])[::-1] * f[1] * record.step**2 / 4 > steps.power
        sunk = 1 + int(max(np.flatnonzero((above > FLOOR * level) & stands_out), default=np.argmax(above)))
        share = np.cumsum(np.maximum(power - level * shape, 0.0)[: sunk + 1])
        most = int(np.flatnonzero(share >= MOST * share[-1])[0])
        # of a rate: noise of the acceleration is level (2 pi f)^2 sin^2, nearly level pi^2 (2 pi)^2 f^4/fs^2
        signal = float(((2 * np.pi * f[: sunk + 1]) ** 2 * power[: sunk + 1]).sum() * f[1])
        noise = max(level, 1e-300) * 4 * np.pi**4 * record.step**2 / 5
        found.append(_Band(float(f[most]), float((FAINT * signal / noise) ** 0.2)))
    return found


def smoothed(record: Measurement, choice: FilterChoice, position: Array | None = None) -> Smooth:
    """Positions filtered forwards and backwards, their rates and accelerations."""
    values = record.position if position is None else position
    q, *rates = derivatives(values, 2 * choice.cutoff * record.step, record.step, 2 if choice.whole else 0)
    way = np.gradient(q, record.step, axis=0)
    if choice.whole:
        qd, qdd = rates
        # beside a reversal dry friction acts along the way from neighbour to neighbour, not by the rate of an instant
        qd = np.where(np.sign(qd) == np.sign(way), qd, way)
    else:
        qd, qdd = way, np.gradient(way, record.step, axis=0)
    still = at_rest(values, q, 2 * choice.cutoff * record.step)
    # rounding of the filter and an encoder that flickers have signs, too, and positions about which weights vary
    q[:, still], qd[:, still], qdd[:, still] = np.median(values[:, still], axis=0), 0.0, 0.0
    t, q, qd, qdd = (choice.inside(part) for part in (record.t, q, qd, qdd))
    return Smooth(t, q, qd, qdd, slice(choice.edge, len(values) - choice.edge))


def at_rest(values: Array, smooth: Array, band: float) -> Array:
    """Which motors rest: positions between a few lines of the encoder, or noise alone.

    `band` is the share of the spectrum that the low-pass keeps, and so of the power of white noise.
    """
    constant = np.ptp(values, axis=0) <= REST * np.maximum(np.abs(values).max(axis=0), 1e-6)
    flickers = np.array([len(np.unique(column)) <= LINES for column in values.T])
    return np.asarray(constant | flickers | only_noise(values, smooth, band))


def only_noise(values: Array, smooth: Array, band: float) -> Array:
    """Which columns have no more behind the low-pass than white noise has."""
    noise = (values - smooth).std(axis=0) / np.sqrt(1 - band)
    return np.asarray(smooth.std(axis=0) <= HARDLY * noise * np.sqrt(band))


def refuse_rest(records: list[Measurement], choice: FilterChoice) -> None:
    """Refuse records in which all motors rest: what is left of flickering encoders tells any parameters."""
    for record in records:
        band = 2 * choice.cutoff * record.step
        if at_rest(record.position, butterworth(record.position, band), band).all():
            raise InputError(
                f"no motor moves in the record: behind a low-pass at {choice.cutoff:.4g} Hz positions have what noise "
                "of encoders leaves there", file=record.name, key="position",
                value=float(np.ptp(record.position, axis=0).max()),
                hint="give a record of a motion, or a higher cutoff",
            )  # fmt: skip


def rests(record: Measurement, choice: FilterChoice) -> tuple[Array, Array]:
    """Of each motor: a speed above the noise of its rate, and the share of samples in which it is slower."""
    smooth = smoothed(record, choice)
    band = 2 * choice.cutoff * record.step
    # white noise of positions, from what the low-pass takes away, and what of it passes to the rate
    noise = (record.position[smooth.kept] - smooth.position).std(axis=0) / np.sqrt(1 - band)
    noise = noise * 2 * np.pi * choice.cutoff * np.sqrt(band / 3)
    speed = np.abs(smooth.rate)
    least = np.maximum(NOISY * noise, SLOW * speed.max(axis=0))
    return least, (speed < least).mean(axis=0)


def without_sticking(records: list[Measurement], choice: FilterChoice) -> FilterChoice:
    """The same, without samples in which motors stick or may stick.

    There friction has any size, and instruments have its sign at another time.
    """
    speeds = []
    for record in records:
        fastest = np.abs(smoothed(record, choice).rate).max(axis=0)
        speeds.append(np.maximum(rests(record, choice)[0], STICKS * fastest))
    least = tuple(float(speed) for speed in np.min(speeds, axis=0))
    why = f"{choice.why}; slow samples left out, where motors may stick"
    return replace(choice, least_speed=max(least), by_motor=least, why=why)


def decimated(values: Array, choice: FilterChoice) -> Array:
    """Every n-th sample behind a low-pass without phase, along the first axis, without the ends where it settles."""
    if choice.decimate == 1:
        return values
    return _settled(thinned(values, choice.decimate), choice)


def kept_instants(values: Array, choice: FilterChoice) -> Array:
    """Those of the samples `inside` that decimation keeps."""
    return _settled(values[:: choice.decimate], choice)


def _settled(thin: Array, choice: FilterChoice) -> Array:
    return thin[choice.settling : len(thin) - choice.settling]
