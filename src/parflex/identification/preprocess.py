"""Filtering, differentiation and decimation of recordings.

Positions pass a Butterworth low-pass of order four, forwards and backwards, and are differentiated frequency by
frequency: differences of neighbours would miss a share (2 pi f h)^2/3 of an acceleration. Efforts and the columns of
the regressor pass the same second filter, and every n-th sample is kept; edges are cut.

A filter that runs forwards and backwards multiplies each frequency by the square of its gain, which has a closed form
behind the bilinear transformation. Records continue at both ends by reflection about their first and last samples.
Results equal those of `scipy.signal`, whose import is slow.

Dry friction makes accelerations jump where a joint reverses. The low-pass rounds that corner of its rate, and the
filtered rate changes its sign later than the joint does, by up to a tenth of the period of the cutoff. Rows are
compared behind a low-pass at twice the cutoff, where signs are nearer to the truth. If the difference would move a
parameter by a share of its deviation, rows where it is above the noise are left out.

An encoder rounds positions; a motor that passes a line at most every second sample leaves a staircase. Its error of up
to half a line lies below the rate of lines, so the highest frequencies, which show white noise, miss it. It is found
from the values themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.errors import InputError, ParflexError
from parflex.forces.base_parameters import PARAMETERS, body_parameters
from parflex.identification.estimators import MEDIAN, EffortRows, LeastSquaresFit, fit_rows
from parflex.identification.recordings import ROUNDING, Recording
from parflex.identification.regressor import ClosedMotion, Regressor
from parflex.identification.regressor_columns import BaseColumns
from parflex.records import Record

Array = np.ndarray

VISITED = 40  # states of a record that determine base parameters, and at which loops are closed
HARDLY = 3.0  # standard deviations of noise behind the low-pass: of noise alone 40 independent values leave 1 +- 0.1
NOISY = 4.0  # standard deviations of a rate, of which its sign is sure
STICKS = 0.1  # of the largest rate: slower joints stick, or low-passes see them stick
EDGE, SETTLING = 5.0, 3  # periods of the cutoff cut at both ends, and instants behind decimation
FLOOR = 10.0  # times the noise: a frequency with less power is noise
OVER = 10.0  # the cutoff over the highest frequency with power: what is differentiated twice must not be damped
KEPT = 0.4  # of the cutoff: what is kept behind decimation, where the first filter takes nothing
FAINT = 1e-4  # of the power of accelerations: noise may have so much in what is kept, as inertias are too small by more
MOST = 0.999  # of the power of rates
SEGMENTS, LONGEST = 7, 4096  # of a record, overlapping by half, at least, and samples of one at most (Welch)
UPPER = 0.6  # of the highest frequency: above, positions and efforts have noise alone
INSTANTS = 100  # of a record that are kept at least, where it has so many
HIGHEST_CUTOFF = 0.2  # of the sample frequency
ORDER = 4  # of the Butterworth filter
RIPPLE, POLES, BAND = 0.05, 8, 0.8  # dB, order and share of the new Nyquist frequency: MATLAB's and SciPy's `decimate`
# periods of the cutoff in which the slowest poles, by their real parts over the cutoff, decay to 1e-12 and to 1e-8
REMEMBERED = np.log(1e12) / (2 * np.pi * np.sin(np.pi / (2 * ORDER)))
LONGER = np.log(1e8) / (
    2 * np.pi * np.sin(np.pi / (2 * POLES)) * np.sinh(np.arcsinh(1 / np.sqrt(10 ** (RIPPLE / 10) - 1)) / POLES)
)
BLOCK = 64  # columns decimated at once: a million numbers of a long record
SHARPER = 2.0  # times the cutoff: kernels are half as long; noise of rates is three times as large
REVERSALS_HOLD = 0.3  # deviations by which what is at stake may move a parameter: an interval of 95 % then holds 94 %
FEWEST = 3  # rows of a motor per parameter: with fewer left, friction is as good as not recorded
LOW = 0.05  # of the gaps between values, below which they may be those of spikes that were replaced


def motion_of(
    regressor: Regressor, record: Recording, choice: FilterChoice, position: Array | None = None
) -> tuple[Array, ClosedMotion]:
    """Instants and the motion of all joints in a record, or in other positions at its instants."""
    smooth = filtered_motion(record, choice, position)
    try:
        return smooth.t, regressor.moving(smooth.position, smooth.rate, smooth.acceleration)
    except ParflexError as error:
        error.file = error.file or record.name
        raise


def visited_states(regressor: Regressor, records: Sequence[Recording], choice: FilterChoice) -> list[ClosedMotion]:
    """Some states of each record, as far as loops close on straight ways between them."""
    states = []
    for record in records:
        smooth = filtered_motion(record, choice)
        some = spread_instants(len(smooth.t), VISITED)
        try:
            states.append(regressor.moving(smooth.position[some], smooth.rate[some], smooth.acceleration[some]))
        except (ParflexError, np.linalg.LinAlgError):
            continue  # what is wrong with it is said where all of it is closed
    return states


def spread_instants(count: int, most: int) -> Array:
    """Return numbers of instants that are spread over a record."""
    return np.unique(np.linspace(0, count - 1, most).astype(int))


def rows_of_record(
    regressor: Regressor, base: BaseColumns, record: Recording, choice: FilterChoice, by_reference: bool = False
) -> EffortRows:
    """Return rows of the base parameters.

    `by_reference`: with the regressor of the reference as instruments, which knows nothing of the noise.
    """
    t, moving = motion_of(regressor, record, choice)
    W, known = regressor.of(moving, base.kept)
    if record.payload:
        carried = payload_parameters(regressor, record.payload)
        known = known + regressor.of(moving, list(carried))[0] @ np.array(list(carried.values()))
    y = regressor.measured(moving, choice.inside(record.effort)) - known
    by_file = W @ (base.groups @ np.array([unknown.value for unknown in regressor.unknowns]))
    parts = [W, y, by_file, moving.qd[:, list(regressor.robot.actuated)], known]
    if by_reference:
        if record.reference is None:
            raise InputError(
                "instrumental variables need the reference of the motors", file=record.name, key="reference",
                hint="name its columns in [reference] of the map",
            )  # fmt: skip
        parts.append(regressor.of(motion_of(regressor, record, choice, record.reference)[1], base.kept)[0])
    W, y, by_file, rate, known, *others = (decimate_rows(values, choice) for values in parts)
    used = fast_enough(regressor, rate, choice, record.effort)
    if not used.any():
        raise InputError(
            "no sample is left: the motors are slower than the least speed everywhere", file=record.name,
            key="least_speed", value=choice.least_speed, hint="give a smaller one",
        )  # fmt: skip
    late = late_signs(regressor, base.kept, record, moving, choice)
    instruments = others[0] if others else None
    return EffortRows(
        W, y, instruments=instruments, rate=rate, known=known, used=used, t=kept_instants(t, choice), by_file=by_file,
        late=late,
    )  # fmt: skip


def payload_parameters(regressor: Regressor, payload: Sequence[float]) -> dict[int, float]:
    """Columns of the body that carries the end effector, and what a point mass there adds to each."""
    tree, (mass, *at) = regressor.robot.tree, payload
    place = tree.places[tree.end_effector]
    body = RigidBody.from_centre(mass, at, np.zeros((3, 3))).in_parent(place.rotation, place.position)
    numbers = dict(zip(PARAMETERS, body_parameters(body), strict=True))
    return {
        k: numbers[unknown.symbol]
        for k, unknown in enumerate(regressor.unknowns)
        if unknown.of_body and unknown.link == place.link and numbers[unknown.symbol]
    }


def fast_enough(regressor: Regressor, rate: Array, choice: FilterChoice, effort: Array) -> Array:
    """Rows (instants x rows) of motors that are not slower than the least speed, or have no Coulomb friction.

    A row of a robot with spare motors has friction of all of them. Motors without a measured effort have no rows: they
    could be fitted without any error, and others would not count beside them.
    """
    rubbing = motors_with_friction(regressor)
    used = np.ones((len(rate), len(regressor.rows)), dtype=bool)
    dead = dead_efforts(effort, rate)
    if dead.any() and not dead.all() and not regressor.spare:
        used[:, dead] = False
    if choice.least_speeds and rubbing:
        fast = np.abs(rate[:, rubbing]) >= np.array(choice.least_speeds)[rubbing]
        if regressor.spare:
            return used & fast.all(axis=1, keepdims=True)
        used[:, rubbing] &= fast
    return used


def dead_efforts(effort: Array, rate: Array) -> Array:
    """Which motors have one effort all the time though their speed changes: nothing was recorded of them."""
    speed = np.abs(rate).max(axis=0)
    changes = (speed > 0) & (np.ptp(rate, axis=0) > 0.01 * speed)  # at a steady speed an effort may be constant
    return np.asarray(changes & (np.ptp(effort, axis=0) <= ROUNDING * np.abs(effort).max(axis=0)))


def motors_with_friction(regressor: Regressor) -> list[int]:
    """Places of the motors whose Coulomb friction is looked for."""
    links = {unknown.link for unknown in regressor.unknowns if unknown.symbol == "FS"}
    tree = regressor.robot.tree
    return [i for i, k in enumerate(regressor.robot.actuated) if tree.link_of_rate[k] in links]


def join_rows(parts: Sequence[EffortRows]) -> EffortRows:
    """Rows of several records."""
    starts = np.cumsum([0, *(len(part.y) for part in parts[:-1])])
    instruments = [part.instruments for part in parts]
    return EffortRows(
        np.concatenate([part.W for part in parts]), np.concatenate([part.y for part in parts]),
        tuple(int(start) for start in starts),
        None if instruments[0] is None else np.concatenate([rows for rows in instruments if rows is not None]),
        np.concatenate([part.rate for part in parts if part.rate is not None]),
        np.concatenate([part.known for part in parts if part.known is not None]),
        np.concatenate([part.mask > 0 for part in parts]),
    )  # fmt: skip


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
    why : str
        Where cutoff and decimation come from.
    least_speeds : tuple[float, ...]
        Samples in which a motor with Coulomb friction is slower are left out (m/s, rad/s); none: all are used.
    """

    cutoff: float
    decimate: int
    edge: int
    why: str = ""
    least_speeds: tuple[float, ...] = ()

    @property
    def least_speed(self) -> float:
        """The largest least speed of a motor."""
        return max(self.least_speeds, default=0.0)

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
class FilteredMotion(Record):
    """Filtered positions of the motors, their rates and accelerations, at all samples but the edges."""

    t: Array
    position: Array
    rate: Array
    acceleration: Array
    kept: slice


def choose_filter(
    records: list[Recording], cutoff: float | None, decimate: int | None, least_speed: float | None
) -> FilterChoice:
    """The filter that is asked for; what is not asked for follows from the record."""
    rate = 1 / records[0].step
    for record in records[1:]:
        if abs(record.step * rate - 1) > 1e-3:
            raise InputError(
                f"records have different steps, {records[0].step:.4g} s and {record.step:.4g} s", key="record",
                value=record.name, hint="give records of one sample time, or identify from one of them",
            )  # fmt: skip
    why = "cutoff as given"
    if cutoff is None:
        cutoff, reason = _spectral_cutoff(records)
        if cutoff > HIGHEST_CUTOFF * rate:
            cutoff, reason = HIGHEST_CUTOFF * rate, f"{HIGHEST_CUTOFF:g} of the sample frequency"
        why = f"cutoff from {reason}"
    if not cutoff < rate / 2:
        raise InputError(
            f"a cutoff of {cutoff:.4g} Hz needs more than {2 * cutoff:.4g} samples per second, the record has "
            f"{rate:.4g}", key="cutoff", value=cutoff, hint=f"give less than {rate / 2:.4g}",
        )  # fmt: skip
    shortest = min(len(record.t) for record in records)
    why += "; as many samples kept as the cutoff needs" if decimate is None else "; decimation as given"
    decimate = decimate or max(1, min(int(rate / cutoff), shortest // INSTANTS))
    slow = (float(least_speed),) * records[0].position.shape[1] if least_speed else ()
    choice = FilterChoice(float(cutoff), decimate, round(EDGE * rate / cutoff), why, slow)
    if shortest < 2 * choice.cut + 10 * decimate:
        raise InputError(
            f"a record of {shortest} samples is too short for {cutoff:.4g} Hz and one of {decimate} samples",
            key="cutoff", value=cutoff, hint="raise the cutoff, decimate less, or record longer",
        )  # fmt: skip
    return choice


def _spectral_cutoff(records: list[Recording]) -> tuple[float, str]:
    """A cutoff from the spectra of the positions, and why."""
    bands = [band for record in records for band in _bands(record)]
    shortest = min(record.t[-1] - record.t[0] for record in records)
    highest = max([2 / shortest, *(band[0] for band in bands)])
    clean = float(np.exp(np.mean([np.log(band[1]) for band in bands]))) / KEPT if bands else np.inf
    cutoff = OVER * highest
    reason = f"{OVER:g} times the highest frequency {highest:.3g} Hz of the positions that is above their noise"
    if clean < cutoff:
        cutoff = max(clean, highest / KEPT)
        reason = f"the noise of accelerations, and the highest frequency {highest:.3g} Hz of the positions above noise"
    if cutoff < 4 * EDGE / shortest:
        cutoff, reason = 4 * EDGE / shortest, "the length of the record, of which edges are cut"
    return cutoff, reason


def _bands(record: Recording) -> list[tuple[float, float]]:
    """Of each motor the frequency at which its motion sinks into noise, and up to which its acceleration is clean.

    Positions are quantised or noisy: the power of their differences grows as sin(pi f/fs)^2, and its level follows from
    the highest frequencies, or from the lines of an encoder that are passed so seldom that these have little of it. An
    average of several spectra has no lines by chance that stand out of the noise.
    """
    bands = []
    size = segment_size(len(record.t))
    for position in record.position.T:
        f, power = mean_spectrum(np.diff(position) / record.step, record.step, size)
        if not power.sum() > 1e-300:
            continue  # it is at rest
        shape = np.sin(np.pi * f * record.step) ** 2
        upper = f > UPPER * f[-1]
        level = float(np.median(power[upper] / shape[upper]))
        above = power[1:] / shape[1:]  # of positions, times 4 fs^2
        stands_out = np.ones(len(above), dtype=bool)
        steps = quantised_positions(position)
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
        bands.append((float(f[most]), float((FAINT * signal / noise) ** 0.2)))
    return bands


def filtered_motion(record: Recording, choice: FilterChoice, position: Array | None = None) -> FilteredMotion:
    """Positions filtered forwards and backwards, their rates and accelerations."""
    values, band = record.position if position is None else position, 2 * choice.cutoff * record.step
    q, qd, qdd = derivatives(values, band, record.step)
    # beside a reversal dry friction acts along the way from neighbour to neighbour, not by the rate of an instant
    by_neighbours = np.gradient(q, record.step, axis=0)
    qd = np.where(np.sign(qd) == np.sign(by_neighbours), qd, by_neighbours)
    still = motors_at_rest(values, q, band)
    # rounding of the filter and an encoder that flickers have signs, too, and positions about which weights vary
    q[:, still], qd[:, still], qdd[:, still] = np.median(values[:, still], axis=0), 0.0, 0.0
    t, q, qd, qdd = (choice.inside(part) for part in (record.t, q, qd, qdd))
    return FilteredMotion(t, q, qd, qdd, slice(choice.edge, len(values) - choice.edge))


def motors_at_rest(values: Array, smooth: Array, band: float) -> Array:
    """Which motors rest: positions between three lines of the encoder, or noise alone.

    `band` is the share of the spectrum that the low-pass keeps, and so of the power of white noise.
    """
    flickers = np.array([len(np.unique(column)) <= 3 for column in values.T])
    return np.asarray(flickers | (np.ptp(values, axis=0) <= ROUNDING) | only_noise(values, smooth, band))


def only_noise(values: Array, smooth: Array, band: float) -> Array:
    """Which columns have no more behind the low-pass than white noise has."""
    noise = (values - smooth).std(axis=0) / np.sqrt(1 - band)
    return np.asarray(smooth.std(axis=0) <= HARDLY * noise * np.sqrt(band))


def refuse_rest(records: list[Recording], choice: FilterChoice) -> None:
    """Refuse records in which all motors rest: what is left of flickering encoders tells any parameters."""
    for record in records:
        band = 2 * choice.cutoff * record.step
        if motors_at_rest(record.position, butterworth(record.position, band), band).all():
            raise InputError(
                f"no motor moves in the record: behind a low-pass at {choice.cutoff:.4g} Hz positions have what noise "
                "of encoders leaves there", file=record.name, key="position",
                value=float(np.ptp(record.position, axis=0).max()),
                hint="give a record of a motion, or a higher cutoff",
            )  # fmt: skip


def without_sticking(records: list[Recording], choice: FilterChoice) -> FilterChoice:
    """The same, without samples in which motors stick or may stick: slower than noise of rates, or than most are.

    There friction has any size, and instruments have its sign at another time.
    """
    speeds, band = [], 2 * choice.cutoff * records[0].step
    for record in records:
        smooth = filtered_motion(record, choice)
        # white noise of positions, from what the low-pass takes away, and what of it passes to the rate
        noise = (record.position[smooth.kept] - smooth.position).std(axis=0) / np.sqrt(1 - band)
        noise = noise * 2 * np.pi * choice.cutoff * np.sqrt(band / 3)
        speeds.append(np.maximum(NOISY * noise, STICKS * np.abs(smooth.rate).max(axis=0)))
    least = tuple(float(speed) for speed in np.min(speeds, axis=0))
    why = f"{choice.why}; slow samples left out, where motors may stick"
    return replace(choice, least_speeds=least, why=why)


def decimate_rows(values: Array, choice: FilterChoice) -> Array:
    """Every n-th sample behind a low-pass without phase, along the first axis, without the ends where it settles."""
    if choice.decimate == 1:
        return values
    return _settled(decimated(values, choice.decimate), choice)


def kept_instants(values: Array, choice: FilterChoice) -> Array:
    """Those of the samples `inside` that decimation keeps."""
    return _settled(values[:: choice.decimate], choice)


def _settled(thin: Array, choice: FilterChoice) -> Array:
    return thin[choice.settling : len(thin) - choice.settling]


def butterworth(values: Array, band: float) -> Array:
    """Behind a Butterworth low-pass of order four, forwards and backwards, along the first axis.

    `band` is the cutoff over the Nyquist frequency; the gain of both passes is one half there.
    """
    return derivatives(values, band, 1.0, 0)[0]


def derivatives(values: Array, band: float, step: float, highest: int = 2) -> list[Array]:
    """The same, its rates, and so on up to the highest derivative by time: frequencies times powers of 2 pi i f."""

    def gain(over: Array) -> Array:
        return 1 / (1 + over ** (2 * ORDER))

    return _low_passed(values, band, gain, int(np.ceil(2 * REMEMBERED / band)), step, highest)


def decimated(values: Array, every: int) -> Array:
    """Every n-th sample behind the Chebyshev low-pass of `decimate`, forwards and backwards, along the first axis."""
    flat = values.reshape(len(values), -1)
    ripple = 10 ** (RIPPLE / 10) - 1

    def gain(over: Array) -> Array:
        inner = np.cos(POLES * np.arccos(np.minimum(over, 1.0)))
        return 1 / (1 + ripple * np.where(over > 1, np.cosh(POLES * np.arccosh(np.maximum(over, 1.0))), inner) ** 2)

    more = int(np.ceil(2 * LONGER / BAND)) * every
    parts = [
        _low_passed(flat[:, start : start + BLOCK], BAND / every, gain, more, 1.0, 0)[0][::every]
        for start in range(0, flat.shape[1], BLOCK)
    ]
    return np.concatenate(parts, axis=1).reshape(-1, *values.shape[1:])


def _low_passed(
    values: Array, band: float, gain: Callable[[Array], Array], more: int, step: float, highest: int
) -> list[Array]:
    """Columns times a gain by frequency over cutoff, of both passes, and their derivatives; `more` samples reflected.

    Frequencies are compared as tan(pi f/fs), by the bilinear transformation.
    """
    import scipy.fft

    flat, count = values.reshape(len(values), -1).T, len(values)
    part = np.pad(flat, ((0, 0), (more, more)), mode="reflect", reflect_type="odd")
    # without the line from end to end the series has no jump; the filter changes lines by its gain at rest alone
    slope = (part[:, -1:] - part[:, :1]) / (part.shape[1] - 1)
    line = part[:, :1] + slope * np.arange(part.shape[1])
    size = scipy.fft.next_fast_len(part.shape[1], real=True)
    f = np.fft.rfftfreq(size)
    over = np.minimum(np.tan(np.pi / 2 * np.minimum(2 * f, 1.0)) / np.tan(np.pi / 2 * band), 1e12)  # finite powers
    gains = gain(over)
    spectrum = np.fft.rfft(part - line, size) * gains
    result = []
    for order in range(highest + 1):
        smooth = np.fft.irfft(spectrum, size)[:, more : more + count]
        smooth += gains[0] * (line[:, more : more + count], slope / step, 0.0)[min(order, 2)]
        result.append(np.ascontiguousarray(smooth.T).reshape(values.shape))
        spectrum = spectrum * (2j * np.pi * f / step)
    return result


def segment_size(count: int) -> int:
    """Return the samples of a segment of a record of so many."""
    return max(min(count, LONGEST, 2 * count // (SEGMENTS + 1)), 16)


def mean_spectrum(values: Array, step: float, size: int) -> tuple[Array, Array]:
    """Frequencies and the power per frequency of all columns: mean of Hann windows that overlap by half (Welch)."""
    size = min(size, len(values))
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    window = window.reshape(-1, *(1 for _ in values.shape[1:]))
    starts = range(0, len(values) - size + 1, size - size // 2)
    parts = np.stack([values[start : start + size] for start in starts])
    power = np.abs(np.fft.rfft((parts - parts.mean(axis=1, keepdims=True)) * window, axis=1)) ** 2
    power = power.mean(axis=0) * step / (window**2).sum()
    power[1 : (size + 1) // 2] *= 2  # of negative frequencies, too
    return np.fft.rfftfreq(size, step), power


def rows_in_use(rows: EffortRows, parts: Sequence[EffortRows], choice: FilterChoice) -> Array:
    """Which rows (instants x rows, of all records) are used: all, or without those beside reversals.

    Rows are left out if what is at stake there moves a parameter, and if enough are left.
    """
    mask = rows.mask > 0
    if all(part.late is None for part in parts):
        return mask
    plain = replace(rows, instruments=None)
    judged = fit_rows(plain, "wls")
    stake = np.concatenate([reversal_efforts(part, judged.values, choice) for part in parts]) * mask
    if deviations_moved(judged, plain, stake) < REVERSALS_HOLD:
        return mask
    noise = [
        np.median(np.abs(left[here])) if here.any() else 0.0
        for left, here in zip(judged.residuals.T, mask.T, strict=True)
    ]
    some = mask & (np.abs(stake) <= MEDIAN * np.array(noise))  # reversals are outliers
    enough = some.sum(axis=0) >= FEWEST * rows.W.shape[2] / rows.y.shape[1]
    return some if enough[mask.any(axis=0)].all() else mask


def reversal_efforts(rows: EffortRows, values: Array, choice: FilterChoice) -> Array:
    """Efforts (instants x rows) by which signs that may change earlier change rows of a record."""
    if rows.late is None:
        return np.zeros_like(rows.y)
    samples, change, count = rows.late
    efforts = np.zeros((count, rows.y.shape[1]))
    np.add.at(efforts, samples, change @ values)
    return decimate_rows(efforts, choice)


def deviations_moved(judged: LeastSquaresFit, rows: EffortRows, stake: Array) -> float:
    """Deviations by which efforts move the parameter that they move most."""
    W = (rows.W * judged.weights[:, :, None]).reshape(-1, rows.W.shape[2])
    change = np.linalg.lstsq(W, (stake * judged.weights).ravel(), rcond=None)[0]
    deviation = np.sqrt(np.maximum(np.diag(judged.robust), 0.0))
    return float((np.abs(change) / np.maximum(deviation, 1e-300)).max(initial=0.0))


def late_signs(
    regressor: Regressor, columns: Sequence[int], record: Recording, moving: ClosedMotion, choice: FilterChoice
) -> tuple[Array, Array, int] | None:
    """Samples at which a joint with dry friction turns at another instant behind twice the cutoff.

    Beside them what rows change there, per parameter, and the number of all samples; None where no joint rubs.
    """
    tree = regressor.robot.tree
    rubbing = sorted({tree.links[unknown.link].v.start for unknown in regressor.unknowns if unknown.symbol == "FS"})
    if not rubbing:
        return None
    sharper = replace(choice, cutoff=min(SHARPER * choice.cutoff, 0.45 / record.step))
    motor_rates = filtered_motion(record, sharper).rate
    if regressor.spare:
        motor_rates = np.einsum("nij,nj->ni", np.linalg.pinv(moving.J[:, list(regressor.robot.actuated)]), motor_rates)
    rate = np.einsum("nij,nj->ni", moving.J, motor_rates)[:, rubbing]
    # the mean of a sign over the step about its sample: one that changes between two samples acts from there on
    half = np.maximum(np.abs(np.gradient(rate, axis=0)) / 2, 1e-300)
    side = np.sign(moving.qd[:, rubbing])
    other = (1 - side * np.clip(rate / half, -1.0, 1.0)) / 2 * np.abs(side)  # part of the step with the other sign
    samples, change = [], []
    for k, part in zip(rubbing, other.T, strict=True):
        turned = np.flatnonzero(part)
        now = ClosedMotion(moving.q[turned], moving.qd[turned], moving.qdd[turned], moving.J[turned])
        forth, back = now.qd.copy(), now.qd.copy()
        forth[:, k] *= 1e-9  # as good as zero, with its sign
        back[:, k] *= -1e-9
        rows, others = (regressor.of(replace(now, qd=qd), columns)[0] for qd in (forth, back))
        samples.append(turned)
        change.append(part[turned, None, None] * (rows - others))
    return np.concatenate(samples), np.concatenate(change), len(rate)


@dataclass(frozen=True, eq=False, repr=False)
class QuantisedPositions(Record):
    """Of a motor: the line of its encoder, and the samples from line to line where it moves."""

    line: float
    samples: float

    @property
    def power(self) -> float:
        """Of the error at most: it is never larger than half a line."""
        return self.line**2 / 4

    @property
    def as_white(self) -> float:
        """Deviation of white noise with as much power at each frequency below the rate of lines."""
        return float(self.line / np.sqrt(12) * np.sqrt(self.samples / 2))


def quantised_positions(position: Array) -> QuantisedPositions | None:
    """Of one motor's positions; None where they have no lines, or pass one at nearly every sample.

    Rests do not count, as they have one long interval, nor do encoders that flicker, which hides lines.
    """
    near = ROUNDING * max(float(np.abs(position).max()), 1e-12)
    jumps = np.abs(np.diff(position))
    passed = np.flatnonzero(jumps > near)
    if len(passed) < 2:
        return None
    samples = float(np.median(np.diff(passed)))
    gaps = np.diff(np.unique(position))
    gaps = gaps[gaps > near]
    line = float(np.quantile(gaps, LOW, method="higher")) if len(gaps) else 0.0
    several = float(np.median(jumps[passed])) > 1.5 * line  # lines at once: no staircase, but values held for a while
    return None if samples < 2 or several else QuantisedPositions(line, samples)


def quantisation_noise(position: Array) -> Array:
    """Deviations of white noise that is as strong as what encoders round away, of each motor; zero where none shows.

    At the frequencies of a motion the error of a staircase has less, so that this is the most that it can do.
    """
    quantisations = [quantised_positions(column) for column in position.T]
    return np.array([0.0 if quantisation is None else quantisation.as_white for quantisation in quantisations])
