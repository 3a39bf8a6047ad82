"""Laws of motion: from rest to rest, through points, at constant speed, sums of sines and chirps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from parflex.errors import InputError
from parflex.records import Record
from parflex.robotfile.motion_schema import MotionTable
from parflex.trajectories.trajectory import Trajectory, hermite, quintic_powers

Array = np.ndarray
STEP = quintic_powers((0.0, 1.0), (0.0, 0.0), (0.0, 0.0))  # from 0 to 1, at rest at both ends
SMOOTH = {"quintic": STEP, "septic": (0.0, 0.0, 0.0, 0.0, 35.0, -84.0, 70.0, -20.0)}  # septic: without jerk at the ends
RISES = {"trapezoid": (0.0, 1.0), "constant-speed": STEP}  # of the speed from 0 to 1 on a ramp, before it is constant
ANGLE = 0.1  # rad of the fastest wave between knots: quintics err by 2e-7 of its acceleration, 1e-11 of its way
MOST = 2_000_000  # knots


def unit_law(word: str, duration: float, ramp: float = 0.0) -> Trajectory:
    """Return the share of the way from 0 to 1 in a time that begins at zero; 1 is held behind it."""
    held = Polynomial([1.0])
    if word in SMOOTH:
        return _pieces([0.0, duration], [Polynomial(SMOOTH[word])(Polynomial([0.0, 1 / duration])), held])
    top = 1 / (duration - ramp)
    if ramp == 0:
        return _pieces([0.0, duration], [Polynomial([0.0, top]), held])
    distance = top * ramp * Polynomial(RISES[word]).integ()  # by shares of the ramp
    up, down = distance(Polynomial([0.0, 1 / ramp])), 1 - distance(Polynomial([1.0, -1 / ramp]))
    middle = duration - 2 * ramp
    if middle <= 1e-12 * duration:
        return _pieces([0.0, ramp, duration], [up, down, held])
    between = Polynomial([distance(1.0), top])
    return _pieces([0.0, ramp, ramp + middle, duration], [up, between, down, held])


def cruise(speed: float, ramp: float) -> Trajectory:
    """Return the way from rest, by a smooth step of the speed over a ramp, to a speed that has no end."""
    way = speed * ramp * Polynomial(STEP).integ()
    return _pieces([0.0, ramp], [way(Polynomial([0.0, 1 / ramp])), Polynomial([float(way(1.0)), speed])])


def laws_of_moves(motion: MotionTable, lengths: Sequence[float]) -> Iterator[Trajectory]:
    """Yield for moves of a table, one after the other, the law from 0 to the length of each."""
    begin = motion.times[0] if motion.times else motion.rest if motion.poses else 0.0
    for index, length in enumerate(lengths):
        if motion.speed is not None:  # less than requested where the path is shorter than both ramps
            duration = length / min(motion.speed, length / motion.ramp) + motion.ramp
        else:
            duration = motion.duration if motion.duration is not None else motion.times[index + 1] - motion.times[index]
        law = unit_law(motion.law_name, duration, motion.ramp)
        law = law.averaged(motion.smoothing) if motion.smoothing else law
        yield law.scaled(begin, np.zeros(1), np.array([length]))
        begin = motion.times[index + 1] if motion.times else begin + duration + motion.smoothing + motion.rest


def law_through(motion: MotionTable, rows: Array, name: str) -> Trajectory:
    """Return the law of a table that goes through rows at its times: a spline, or lines with blended corners."""
    if motion.law_name == "spline":
        return splined(motion.times, rows)
    return blended(motion.times, rows, motion.blend, f"motions.{name}.blend")


def _pieces(breaks: Sequence[float], parts: Sequence[Polynomial]) -> Trajectory:
    """Return polynomials of the time since each break, in one channel."""
    coefficients = np.zeros((len(breaks), max(len(part.coef) for part in parts), 1))
    for k, part in enumerate(parts):
        coefficients[k, : len(part.coef), 0] = part.coef
    return Trajectory(np.array(breaks, dtype=float), coefficients)


def splined(times: Sequence[float] | Array, values: Array) -> Trajectory:
    """Return a quintic spline through rows, at rest at both ends: its first four derivatives are continuous."""
    from scipy.interpolate import make_interp_spline

    rest = [(1, np.zeros(values.shape[1])), (2, np.zeros(values.shape[1]))]
    spline = make_interp_spline(times, values, k=5, bc_type=(rest, rest))
    return hermite(np.asarray(times, dtype=float), *(spline(times, order) for order in range(3)))


def blended(times: Sequence[float] | Array, values: Array, blend: float, key: str) -> Trajectory:
    """Return constant speeds between rows, and quintics from `blend` before to `blend` behind each corner.

    The motion rests at both ends: their corners lie `blend` inside, so that quintics begin and end there.
    """
    t = np.array(times, dtype=float)
    t[0] += blend
    t[-1] -= blend
    gaps = np.diff(t)
    if gaps.min() < 2 * blend:
        k = int(np.argmin(gaps))
        raise InputError(
            f"the blends of {blend:g} s overlap between the times {times[k]:g} and {times[k + 1]:g} s",
            key=key, value=blend, hint="make 'blend' shorter, or the times longer",
        )  # fmt: skip
    slopes = np.diff(values, axis=0) / gaps[:, None]
    still = np.zeros((1, values.shape[1]))
    before, behind = np.concatenate([still, slopes]), np.concatenate([slopes, still])
    knots = np.stack([t - blend, t + blend], axis=1).ravel()
    positions = np.stack([values - blend * before, values + blend * behind], axis=1).reshape(len(knots), -1)
    rates = np.stack([before, behind], axis=1).reshape(len(knots), -1)
    return hermite(knots, positions, rates, np.zeros_like(rates))


@dataclass(frozen=True, eq=False, repr=False)
class Waves(Record):
    """Values that begin at `start`: a sum of sines, or a chirp (its two frequencies and how it sweeps).

    Sines: start + sum of sine sin(2 pi f t) + cosine (cos(2 pi f t) - 1). Chirp: start + sine sin(phase(t)). Behind
    `duration` the last values are held; with a `ramp` displacements are faded in and out by smooth steps.
    """

    start: Array
    frequencies: Array  # Hz; of a chirp two
    sine: Array  # (frequency, channel); of a chirp one row
    cosine: Array
    duration: float
    ramp: float
    sweep: str  # "": sines

    def at(self, t: Any) -> tuple[Array, Array, Array]:
        """Return values and two derivatives at a time, or rows of them."""
        times = np.atleast_1d(np.asarray(t, dtype=float))
        inside = np.clip(times, 0.0, self.duration)
        value, rate, change = self._chirped(inside) if self.sweep else self._summed(inside)
        if self.ramp:
            value, rate, change = self._faded(inside, value, rate, change)
        moving = ((times >= 0) & (times <= self.duration))[:, None]
        answer = self.start + value, rate * moving, change * moving
        return answer if np.ndim(t) else (answer[0][0], answer[1][0], answer[2][0])

    def _summed(self, t: Array) -> tuple[Array, Array, Array]:
        w = 2 * np.pi * self.frequencies
        s, c = np.sin(t[:, None] * w), np.cos(t[:, None] * w)
        value = s @ self.sine + (c - 1) @ self.cosine
        rate = (c * w) @ self.sine - (s * w) @ self.cosine
        return value, rate, -(s * w**2) @ self.sine - (c * w**2) @ self.cosine

    def _chirped(self, t: Array) -> tuple[Array, Array, Array]:
        phase, speed, push = (part[:, None] for part in self._phase(t))
        s, c = np.sin(phase), np.cos(phase)
        return s * self.sine, c * speed * self.sine, (c * push - s * speed**2) * self.sine

    def _phase(self, t: Array) -> tuple[Array, Array, Array]:
        """Return the phase of a chirp (rad) with its two derivatives."""
        first, last = 2 * np.pi * self.frequencies
        if self.sweep == "linear":
            push = (last - first) / self.duration
            return first * t + push * t**2 / 2, first + push * t, np.full_like(t, push)
        growth = np.log(last / first) / self.duration
        if growth == 0:
            return first * t, np.full_like(t, first), np.zeros_like(t)
        speed = first * np.exp(growth * t)
        return first * np.expm1(growth * t) / growth, speed, growth * speed

    def _faded(self, t: Array, value: Array, rate: Array, change: Array) -> tuple[Array, Array, Array]:
        step = unit_law("quintic", self.ramp)
        window, w1, w2 = (step.value(t, order) for order in range(3))
        if np.isfinite(self.duration):
            back, b1, b2 = (step.value(self.duration - t, order) for order in range(3))
            window, w1, w2 = window * back, w1 * back - window * b1, w2 * back + window * b2 - 2 * w1 * b1
        return window * value, window * rate + w1 * value, window * change + 2 * w1 * rate + w2 * value

    def smooth_until(self, end: float) -> Array:
        """Return the times before an end at which smooth parts begin, and the end."""
        ramps = (self.ramp, self.duration - self.ramp) if self.ramp else ()
        return np.array(sorted({0.0, *(t for t in ramps if t < end), end}))

    def quintics(self, time: float) -> Trajectory:
        """Return quintics through exact positions, velocities and accelerations, until the end or a time."""
        end = min(self.duration, time)
        count = max(8, int(np.ceil(2 * np.pi * self.frequencies.max() * end / ANGLE)))
        count = max(count, int(np.ceil(40 * end / self.ramp)) if self.ramp else 0)
        if count > MOST:
            raise InputError(
                f"the waves would have {count:.3g} knots", key="frequencies", value=float(self.frequencies.max()),
                hint="give a shorter time or lower frequencies",
            )  # fmt: skip
        t = np.linspace(0.0, end, count + 1)
        return hermite(t, *self.at(t))


def waves_of(motion: MotionTable, channels: Sequence[str], start: Array) -> Waves:
    """Return the waves of a table, with channels by name."""
    duration = np.inf if motion.duration is None else motion.duration
    if motion.chirp:
        rows = np.array([[motion.chirp.get(name, 0.0) for name in channels]])
        ends = np.array(motion.frequencies, dtype=float)
        return Waves(start, ends, rows, np.zeros_like(rows), duration, motion.ramp, motion.sweep)
    count = max(len(values) for values in (*motion.sines.values(), *motion.cosines.values()))
    frequencies = np.array(motion.frequencies, dtype=float)
    if motion.frequency is not None:
        frequencies = motion.frequency * np.arange(1, count + 1)
    sine, cosine = np.zeros((2, count, len(channels)))
    for rows, table in ((sine, motion.sines), (cosine, motion.cosines)):
        for k, name in enumerate(channels):
            rows[: len(table.get(name, ())), k] = table.get(name, ())
    return Waves(start, frequencies, sine, cosine, duration, motion.ramp, "")
