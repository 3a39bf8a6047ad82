"""Trajectories: piecewise polynomials in time with named channels, their values and derivatives, breaks and period."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import polynomial

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.records import Answer
from parflex.robot.limits import Violation, check_limits
from parflex.robot.robot import Robot

Array = np.ndarray
NEAR = 1e-12  # of the time: times that are nearer to a break are at the break, whatever the rounding
ROUNDING = 1e-11  # of a value over the length of a piece: jumps that are not larger are rounding
POWERS = 6  # of quintics, by position, velocity and acceleration at both ends of a piece; laws may have more
SAMPLES = (1 - np.cos(np.linspace(0.0, np.pi, 17))) / 2  # of a piece, denser at its ends
NEAREST = 4  # pieces with the largest samples, of which extremes are computed
TINY = 1e-9  # of the time: breaks of an averaged law that are nearer to each other are one
KNOT_STEP, LEAST_KNOTS = 2e-3, 40  # s between knots of a composition at most, and knots in a piece of a law at least
MOST_KNOTS = 20_000  # of a piece of a law on a path, or on each lap: the law is smooth however long it takes
MOST_ROWS = 5_000_000  # of a table


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(Answer):
    """Functions of time: motions of the motors from `plan_motion`, laws, efforts, wrenches.

    Attributes
    ----------
    breaks : Array
        Times at which pieces begin (s); the last piece goes on.
    coefficients : Array
        (piece, power, channel) of polynomials in the time since the break (m, rad, N, N m).
    names : tuple[str, ...]
        Names of the channels: of a motion those of the motors, in order.
    name : str
        Name of the motion.
    start : Array
        All positions of the robot with rigid bodies at t = 0 (m, rad); empty without a robot.
    period : float | None
        Period after which the motion repeats (s).
    waves : Waves | None
        Sines or a chirp, through which the pieces go.
    timing : TimeOptimal | None
        How a time-optimal motion was found.
    planned : float | None
        Until when a motion without an end, or a function, is known (s).
    """

    breaks: Array
    coefficients: Array
    names: tuple[str, ...] = ()
    name: str = ""
    start: Array = field(default_factory=lambda: np.zeros(0))
    period: float | None = None
    waves: Any = None
    timing: Any = None
    planned: float | None = None

    @property
    def channels(self) -> int:
        """Return the number of functions."""
        return self.coefficients.shape[2]

    @property
    def powers(self) -> int:
        """Return the number of coefficients of one polynomial."""
        return self.coefficients.shape[1]

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """Return the diagnostics of a time-optimal law."""
        return () if self.timing is None else self.timing.diagnostics

    @property
    def end(self) -> float:
        """Return when the last values are reached (s); infinite for periodic motions and waves without an end."""
        if self.period is not None:
            return np.inf
        return self.waves.duration if self.waves is not None else float(self.breaks[-1])

    def at(self, t: Array | float) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration at `t` in s, or rows of them; at rest before zero."""
        if self.waves is not None:
            return self.waves.at(t)
        times = np.maximum(t, 0.0)
        self._refuse_unplanned(float(np.max(times)))
        times = times if self.period is None else np.fmod(times, self.period)
        moving = np.greater_equal(t, 0.0)[..., None]
        return self.value(times), moving * self.value(times, 1), moving * self.value(times, 2)

    def value(self, t: Array | float, order: int = 0, behind: bool = False) -> Array:
        """Return values, or derivatives of an `order`, of the pieces at `t` in s, or rows; the outer pieces go on.

        At a break it is the end of the piece before it, with `behind` the begin of the next one.
        """
        near = self._near(t)
        piece = self.breaks.searchsorted(t + near if behind else t - near, side="right") - 1
        piece = np.minimum(np.maximum(piece, 0), len(self.coefficients) - 1)
        return _horner(self.coefficients[piece], np.subtract(t, self.breaks[piece])[..., None], order)

    def _near(self, times: Any) -> Any:
        """Return distances within which a break is at these times."""
        return NEAR * np.maximum(min(1.0, abs(float(self.breaks[-1]))), np.abs(times))

    def _refuse_unplanned(self, t: float) -> None:
        """Refuse times behind what was planned of a motion that goes on."""
        if self.planned is not None and t > self.planned * (1 + 1e-9):
            raise InputError(
                f"the motion is planned until t = {self.planned:g} s only", key="time", value=t,
                hint=f"give plan_motion time={t:g} or more",
            )  # fmt: skip

    def until(self, time: float) -> Trajectory:
        """Return the same with pieces until `time` in s, for a run: repeated, or more of the waves."""
        self._refuse_unplanned(time)
        if self.period is not None:
            once, count = self.breaks < self.period * (1 - 1e-12), max(1, int(np.ceil(time / self.period)))
            held = np.zeros_like(self.coefficients[:1])
            held[0, 0] = self.coefficients[-1, 0]
            laps = [self.breaks[once] + lap * self.period for lap in range(count)]
            rows = np.concatenate([np.tile(self.coefficients[once], (count, 1, 1)), held])
            pieces = Trajectory(np.append(np.concatenate(laps), count * self.period), rows)
        elif self.waves is not None and self.breaks[-1] < min(time, self.waves.duration):
            pieces = self.waves.quintics(time)
        else:
            return self
        return replace(self, breaks=pieces.breaks, coefficients=pieces.coefficients)

    def table(self, step: float = 1e-3, time: float | None = None) -> dict[str, Array]:
        """Return columns `t` (s), JOINT, JOINT.velocity, JOINT.acceleration (SI) every `step` s to its end or `time`.

        A periodic motion ends after a period; other motions without an end need `time`.
        """
        end = (self.period or self.end) if time is None else time
        if not np.isfinite(end):
            raise InputError("the motion has no end", key="time", hint="say until when the table goes")
        if not end / step <= MOST_ROWS:
            raise InputError(
                f"the table would have {end / step:.3g} rows", key="step", value=step, hint=f"at most {MOST_ROWS}"
            )
        columns = {"t": np.append(np.arange(0.0, end * (1 - 1e-9), step), end)}
        for word, rows in zip(("", ".velocity", ".acceleration"), self.at(columns["t"]), strict=True):
            columns |= {f"{name}{word}": rows[:, k] for k, name in enumerate(self.names)}
        return columns

    def jumps(self, order: int) -> tuple[Array, Array]:
        """Return when the derivative of an `order` jumps, and by how much each channel (rows), without rounding."""
        lengths = np.diff(self.breaks)
        long = lengths > self._near(self.breaks[1:])
        times = self.breaks[1:][long]
        if not len(times) or order >= self.powers:
            return times[:0], np.zeros((0, self.channels))
        sizes = self.value(times, order, behind=True) - self.value(times, order)
        before = lengths[long]
        shorter = np.minimum(before, np.append(before[1:], np.inf))[:, None]  # of the two pieces that meet
        values = np.abs(self.coefficients[:, 0]).max(axis=0)
        slopes = np.abs(math.factorial(order) * self.coefficients[:, order]).max(axis=0)
        sizes[np.abs(sizes) <= ROUNDING * values / shorter**order + 1e-9 * slopes] = 0.0
        significant = sizes.any(axis=1)
        return times[significant], sizes[significant]

    def between(self, begin: float, end: float) -> Trajectory:
        """Return the pieces from the time `begin` to `end`; the outer ones go on."""
        after, before = begin + float(self._near(begin)), end - float(self._near(end))
        first = max(int(np.searchsorted(self.breaks, after, side="right")) - 1, 0)
        selected = slice(first, max(int(np.searchsorted(self.breaks, before)), first + 1))
        return Trajectory(self.breaks[selected], self.coefficients[selected])

    def cut(self, breaks: Array) -> Trajectory:
        """Return the same functions with pieces that begin at `breaks`."""
        orders = [self.value(breaks, order, behind=True) / math.factorial(order) for order in range(self.powers)]
        return Trajectory(np.asarray(breaks, dtype=float), np.stack(orders, axis=1))

    def selected(self, channels: Sequence[int]) -> Trajectory:
        """Return the `channels` of these numbers."""
        names = tuple(self.names[k] for k in channels) if self.names else ()
        coefficients = np.ascontiguousarray(self.coefficients[:, :, list(channels)])
        return replace(self, coefficients=coefficients, names=names, waves=None)

    def beside(self, other: Trajectory) -> Trajectory:
        """Return the channels of this trajectory and of the `other` one."""
        breaks, powers = np.union1d(self.breaks, other.breaks), max(self.powers, other.powers)
        both = [part.cut(breaks).with_powers(powers).coefficients for part in (self, other)]
        return Trajectory(breaks, np.concatenate(both, axis=2), self.names + other.names)

    def with_powers(self, count: int) -> Trajectory:
        """Return the same with `count` coefficients in each piece, of which the highest may be zero."""
        more = np.zeros((len(self.coefficients), count - self.powers, self.channels))
        return Trajectory(self.breaks, np.concatenate([self.coefficients, more], axis=1))

    def scaled(self, begin: float, first: Array, displacement: Array) -> Trajectory:
        """Return channels that go from `first` at `begin` by a `displacement`, by this law of one channel."""
        coefficients = self.coefficients * np.asarray(displacement)[None, None, :]
        coefficients[:, 0] += first
        return Trajectory(self.breaks + begin, coefficients)

    def averaged(self, width: float) -> Trajectory:
        """Return the means over a window of `width` s before each time, of a law at rest before its first break."""
        breaks = np.concatenate([[self.breaks[0] - width], self.breaks])
        rows = np.concatenate([np.zeros_like(self.coefficients[:1]), self.coefficients])
        rows[0, 0] = self.coefficients[0, 0]
        area = np.concatenate([np.zeros_like(rows[:, :1]), rows / np.arange(1, self.powers + 1)[:, None]], axis=1)
        area[1:, 0] = np.cumsum(_horner(area[:-1], np.diff(breaks)[:, None], 0), axis=0)
        knots = np.sort(np.concatenate([self.breaks, self.breaks + width]))
        knots = knots[np.concatenate([[True], np.diff(knots) > TINY * knots[-1]])]
        now, before = (Trajectory(breaks + shift, area).cut(knots) for shift in (0.0, width))
        return Trajectory(knots, (now.coefficients - before.coefficients) / width)

    def violations(self, robot: Robot, end: float) -> list[Violation]:
        """Return the limits of joints of the `robot`, by the names of channels, that are exceeded until `end`.

        Positions and velocities are checked at their extremes; where velocities jump, on both sides.
        """
        extremes = [self.extremes(end, order)[1].ravel() for order in range(2)] if end > 0 else []
        t = np.unique(np.concatenate([[0.0], *extremes]))
        position, velocity = (
            dict(zip(self.names, np.concatenate([self.value(t, order), self.value(t, order, True)]).T, strict=True))
            for order in range(2)
        )
        return check_limits(robot, position, velocity, times=np.tile(t, 2))

    def largest_values(self, end: float) -> tuple[Array, Array, Array]:
        """Return way, largest velocity and largest acceleration of every channel from t = 0 until `end`."""
        way, *rates = (self.extremes(end, order)[0] for order in range(3))
        return way[1] - way[0], *(np.abs(values).max(axis=0) for values in rates)

    def extremes(self, end: float, order: int) -> tuple[Array, Array]:
        """Return lowest and highest values of the derivative of an `order` until `end`, and when: (2, channel) both."""
        begins = np.maximum(-self.breaks, 0.0)  # since the break of a piece
        lengths = np.minimum(np.append(self.breaks[1:], np.inf), end) - self.breaks - begins
        inside = lengths > 0
        breaks, begins, lengths = self.breaks[inside], begins[inside, None], lengths[inside, None]
        factors = np.array([math.perm(power, order) for power in range(order, self.powers)])
        rows = self.coefficients[inside, order:] * factors[:, None]
        samples = np.array([_horner(rows, begins + part * lengths, 0) for part in SAMPLES])  # (sample, piece, channel)
        values, times = np.empty((2, self.channels)), np.empty((2, self.channels))
        for channel, side in np.ndindex(self.channels, 2):
            sign = (-1.0, 1.0)[side]
            signed = sign * samples[:, :, channel]
            sample, piece = np.unravel_index(signed.argmax(), signed.shape)
            best, when = signed[sample, piece], breaks[piece] + begins[piece, 0] + SAMPLES[sample] * lengths[piece, 0]
            for k in np.argsort(signed.max(axis=0))[-NEAREST:]:
                places = _extremes(rows[k, :, channel], float(begins[k, 0]), float(lengths[k, 0]))
                candidates = sign * polynomial.polyval(places, rows[k, :, channel])
                if candidates.max() > best:
                    best, when = candidates.max(), breaks[k] + places[candidates.argmax()]
            values[side, channel], times[side, channel] = sign * best, when
        return values, times


def _horner(rows: Array, s: Any, order: int) -> Array:
    """Return values or derivatives of polynomials, whose powers are the last axis but one, at the time of each."""
    total = np.zeros_like(rows[..., 0, :])
    for power in range(rows.shape[-2] - 1, order - 1, -1):
        total = total * s + math.perm(power, order) * rows[..., power, :]
    return total


def _extremes(row: Array, begin: float, length: float) -> Array:
    """Return places of zero slope; those that rounding moves are harmless, since they lie on the piece as well."""
    slope = polynomial.polyder(row) * (begin + length) ** np.arange(max(len(row) - 1, 1))  # of shares of the piece
    slope = polynomial.polytrim(slope, 1e-14 * np.abs(slope).max())
    places = np.real(polynomial.polyroots(slope)) * (begin + length) if len(slope) > 1 else np.zeros(0)
    return np.clip(np.append(places, begin), begin, begin + length)


def constant(values: Array) -> Trajectory:
    """Return the same values at all times."""
    coefficients = np.zeros((1, POWERS, len(values)))
    coefficients[0, 0] = values
    return Trajectory(np.zeros(1), coefficients)


def linear(t: Array, values: Array) -> Trajectory:
    """Return straight lines between rows of values, constant before the first and behind the last.

    Two rows at one time are a jump.
    """
    t, values = np.asarray(t, dtype=float), np.asarray(values, dtype=float)
    begins = np.append(np.diff(t) > 0, True)  # rows from which a line goes on
    lines = np.flatnonzero(begins[:-1])
    coefficients = np.zeros((len(t) + 1, POWERS, values.shape[1]))
    coefficients[0, 0] = values[0]
    coefficients[1:, 0] = values
    coefficients[1 + lines, 1] = (values[lines + 1] - values[lines]) / (t[lines + 1] - t[lines])[:, None]
    selected = np.append(True, begins)
    return Trajectory(np.concatenate([[t[0] - 1.0], t])[selected], coefficients[selected])


def hermite(t: Array, position: Array, velocity: Array, acceleration: Array) -> Trajectory:
    """Return quintics through knots with position, velocity and acceleration; the last position is held.

    Exact for piecewise polynomials up to degree five whose breaks are knots and whose acceleration is continuous.
    """
    rows = position, velocity, acceleration
    return quintics(t, [part[:-1] for part in rows], [part[1:] for part in rows])


def quintics(t: Array, begins: Sequence[Array], ends: Sequence[Array]) -> Trajectory:
    """Return quintics between knots from position and two derivatives at both ends of each; the last value is held."""
    h = np.diff(t)[:, None]
    pairs = [(first * h**order, last * h**order) for order, (first, last) in enumerate(zip(begins, ends, strict=True))]
    coefficients = np.zeros((len(t), POWERS, begins[0].shape[1]))
    for power, values in enumerate(quintic_powers(*pairs)):
        coefficients[:-1, power] = values / h**power
    coefficients[-1, 0] = ends[0][-1]
    return Trajectory(np.array(t, dtype=float), coefficients)


def quintic_powers(position: Any, velocity: Any, acceleration: Any) -> tuple[Any, ...]:
    """Return coefficients of u^0 .. u^5 for values, and derivatives by u, at u = 0 and at u = 1; each is a pair."""
    (p0, p1), (v0, v1), (a0, a1) = position, velocity, acceleration
    displacement, turn, bend = p1 - p0 - v0 - a0 / 2, v1 - v0 - a0, a1 - a0
    high = (
        10 * displacement - 4 * turn + bend / 2,
        -15 * displacement + 7 * turn - bend,
        6 * displacement - 3 * turn + bend / 2,
    )
    return p0, v0, a0 / 2, *high


def composed(along: Trajectory, law: Trajectory, end: float = np.inf, lap: float | None = None) -> Trajectory:
    """Return functions of the path coordinate as functions of time, by a law (one channel).

    Quintics between knots have exact values and derivatives at both ends. `lap` is the length of a closed path: a joint
    that rotates on gains the same angle in each lap. A law without an end is followed until `end`.
    """
    breaks = law.breaks
    if law.coefficients[-1, 1:].any() and np.isfinite(end):  # the last piece goes on
        breaks = np.append(breaks, max(end, breaks[-1]) + KNOT_STEP)
    knots = [breaks[-1:]]
    for a, b in pairwise(breaks):
        laps = 1.0 if lap is None else max(1.0, float(law.value(b)[0] - law.value(a)[0]) / lap)
        count = int(np.ceil(np.clip((b - a) / KNOT_STEP, LEAST_KNOTS, MOST_KNOTS * laps)))
        knots.append(np.linspace(a, b, count, endpoint=False))
    return through_law(along, law, np.sort(np.concatenate(knots)), lap)


def through_law(along: Trajectory, law: Trajectory, knots: Array, lap: float | None = None) -> Trajectory:
    """Return functions of the way as quintics of time between these knots."""
    gain = along.coefficients[-1, 0] - along.coefficients[0, 0]
    sides = []
    for times, behind in ((knots[:-1], True), (knots[1:], False)):
        s, y, u = (law.value(times, order, behind) for order in range(3))
        place = s[:, 0] % lap if lap is not None else s[:, 0]
        Q, Q1, Q2 = (along.value(place, order) for order in range(3))
        laps = 0.0 if lap is None else np.floor(s / lap)
        sides.append((Q + laps * gain, Q1 * y, Q2 * y**2 + Q1 * u))
    return quintics(knots, *sides)


def joined(parts: list[Trajectory]) -> Trajectory:
    """Return one after the other; each holds its last value until the next begins, the first its first one from 0."""
    if parts[0].breaks[0] > 0:
        parts = [constant(parts[0].coefficients[0, 0]), *parts]
    ends = [*(part.breaks[0] for part in parts[1:]), np.inf]
    masks = [part.breaks < end for part, end in zip(parts, ends, strict=True)]
    powers = max(part.powers for part in parts)
    breaks = [part.breaks[keep] for part, keep in zip(parts, masks, strict=True)]
    coefficients = [part.with_powers(powers).coefficients[keep] for part, keep in zip(parts, masks, strict=True)]
    return Trajectory(np.concatenate(breaks), np.concatenate(coefficients))
