"""Time-optimal motion along a path.

Limits become rows, rows the highest speeds, speeds a time law. Rows hold at places; between them efforts may exceed
their limits. There the rows are tightened by the excess of the model itself, and the speeds are computed again until no
limit is exceeded.

The speeds from which the end can be reached come first, then the fastest among them. Between two places the path
acceleration u is constant, so y^2 grows by 2 u ds. Rows bound u at a place by parabolas of y. All conditions on y at a
place are quadratic, whatever the friction, and the allowed speeds are intervals between roots: no linear program, no
step size, and islands in the phase plane are kept.

The path coordinate s as a function of time is a mean over a short window: it stays on the path, its acceleration is
continuous, and the motion takes the width of the window longer. Efforts become means too, up to the square of the
width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, UnreachableError
from parflex.forces.coupling_losses import refuse_losses
from parflex.forces.effort_allocation import driven_cables
from parflex.records import Answer, Record
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import MotionTable
from parflex.trajectories.follow import RobotPath
from parflex.trajectories.redundant_drive import is_redundant
from parflex.trajectories.time_optimal_limits import (
    MotorLimits,
    PathPlaces,
    PhaseRows,
    feasible_efforts,
    limits_of,
    parts_of,
    places_along,
    refuse_beyond_limits,
    reversals,
    rows_along,
)
from parflex.trajectories.trajectory import Trajectory, joined, through_law

Array = np.ndarray
INTERVALS = 60  # of a part: the robot itself is asked at their ends and in their middles
FINER = 8  # intervals of constant acceleration in each of them
WINDOW = 5e-4  # of the time: width of the window over which accelerations change
TIGHTENED = 16  # times at most
KEPT = 1e-6  # of a limit: what may be exceeded
FITTED = 1e-7  # of the largest force: what the terms in y and y^2 may leave out before they are fitted again
REFITS = 5
SHARES = np.array([1e-9, 0.25, 0.5, 0.75, 1 - 1e-9])  # of a piece in time: where limits are checked
MORE, GENTLE = 1.02, 3  # of what was exceeded is taken off, so many times
WARNED = 1e-3  # of a limit
MOST_ROWS = 60
SEARCHED = 40  # stretches in which joints may turn back
APART = 1e-7  # of the length: knots beside such a place
LEAST = 1e-9  # of the highest speed
Intervals = list[tuple[float, float]]  # of speeds
FLAT = 1e-9  # of the largest: rows with a smaller factor of u say nothing of it
NEAR = 1e-9  # relative: speeds that differ by rounding


def fastest_motion(robot: Robot, motion: MotionTable, name: str, ignore_limits: bool) -> Trajectory:
    """Return motors in time, with how the motion was found."""
    limits = limits_of(robot, motion, name)
    if np.isfinite([limits.low, limits.high]).any():  # losses depend on the acceleration in another way than terms do
        refuse_losses(robot.closures, "time-optimal motions do not know", f"motions.{name}.effort_limit")
    rigid = robot.locking(robot.tree.elastic)
    parts, near = parts_of(robot, motion, name)
    if any(motion.end_speeds) and len(parts) > 1:
        raise InputError(
            "speeds at the ends belong to a path of one part", key=f"motions.{name}.end_speeds",
            value=str(list(motion.end_speeds)), hint="remove them, or give two points",
        )  # fmt: skip
    begin, starts, pieces, timings = 0.0, [], list[Trajectory](), list[PartTiming]()
    diagnostics = _loose(rigid, limits)
    for part in parts:
        places = places_along(rigid, part, _grid(rigid, part, near), near)
        if not ignore_limits:
            refuse_beyond_limits(part, places)
        starts.append(places.robots[0].q)
        near = places.robots[-1].q
        law, timing = _fastest(rigid, part, places, limits, motion, begin)
        made = through_law(places.motors, law, law.breaks)
        pieces.append(Trajectory(made.breaks + begin, made.coefficients))
        timings.append(timing)
        share = timing.largest_violation
        if share > WARNED:
            text = f"limits are exceeded by {100 * share:.2g} % of them on the path: the motion needs a check"
            diagnostics.append(Diagnostic("exceeded-on-path", text, value=share))
        begin += timing.time + motion.rest
    end, motors = timings[-1].begin + timings[-1].time, tuple(robot.actuated_names)
    how = TimeOptimal(end, timings, motors, limits.low, limits.high, tuple(diagnostics))
    return replace(joined(pieces), start=starts[0], timing=how)


def _grid(rigid: Robot, part: RobotPath, near: Array) -> Array:
    """Return knots at which the robot itself is asked, and their middles.

    Where a joint with Coulomb friction turns back, efforts jump: there are knots on both sides.
    """
    apart, knots = APART * part.end, _even_times(part.end, INTERVALS)
    for turn in reversals(rigid, part, near, np.linspace(0.0, part.end, SEARCHED + 1)):
        near_turn = (np.abs(knots - turn) <= 2 * apart) & (knots > 0) & (knots < part.end)
        sides = [place for place in (turn - apart, turn + apart) if 0 < place < part.end]
        knots = np.unique(np.concatenate([knots[~near_turn], sides]))
    return np.sort(np.concatenate([knots, (knots[1:] + knots[:-1]) / 2]))


def _even_times(length: float, count: int) -> Array:
    """Return places that a motion of constant acceleration to the middle and back passes at even times."""
    x = np.linspace(0.0, 1.0, count + 1)
    return np.where(x < 0.5, 2 * x**2, 1 - 2 * (1 - x) ** 2) * length


def _fastest(
    rigid: Robot, part: RobotPath, places: PathPlaces, limits: MotorLimits, motion: MotionTable, begin: float
) -> tuple[Trajectory, PartTiming]:
    """Return the law of a part, with its timing.

    Terms of efforts are exact for viscous and Coulomb friction; others are fitted again about the motion found.
    """
    typical = np.abs(places.slopes[0] / rigid.tree.rate_units[list(rigid.actuated)]).max()
    speeds, pushes = np.full(len(places.s), 1 / typical), np.zeros(len(places.s))
    for _ in range(REFITS):
        rows = rows_along(rigid, places, limits, speeds, pushes)
        if all(limit == "tension" for limit, _ in rows.names):
            raise InputError(
                "velocity limits alone leave accelerations without bounds", key=f"{part.key}.acceleration_limit",
                hint="add acceleration_limit or effort_limit",
            )  # fmt: skip
        profile, law, violation = _kept_within(part, rows, places, motion.end_speeds, motion.smoothing or None)
        t = times_at(law, places.s)
        _, speeds, pushes = _moving(law, t)
        speeds = np.maximum(speeds, LEAST * speeds.max())  # friction at rest is that of a motion that begins
        forces = places.forces(speeds, pushes)
        fitted = np.einsum("pfk,kp->pf", rows.efforts, _state(pushes, speeds))
        off = float(np.abs(forces - fitted).max() / max(np.abs(forces).max(), 1e-300))
        if off < FITTED:
            break
    push = np.where(np.abs(profile.u) > 1e-6 * np.abs(profile.u).max(initial=0.0), np.sign(profile.u), 0)
    turns = np.flatnonzero(np.diff(push)) + 1
    switching = [
        {"s": float(profile.s[k]), "time": begin + float(time), "speed": float(profile.y[k])}
        for k, time in zip(turns, times_at(law, profile.s[turns]), strict=True)
    ]
    freedoms = rows.actuation.shape[1]
    efforts = feasible_efforts(rows.actuation, forces[:, :freedoms], limits, rows.winding, forces[:, freedoms:])
    return law, PartTiming(
        begin, float(law.breaks[-1]), part.unit, places.s, begin + t, _moving(law, t)[1],
        np.interp(places.s, profile.s, profile.most), efforts, _active_limits(rows, profile, rigid.actuated_names),
        switching, violation + off * (off >= FITTED),
    )  # fmt: skip


def _loose(rigid: Robot, limits: MotorLimits) -> list[Diagnostic]:
    """Return a diagnostic for cables of redundant robots, whose tension is checked with limits of efforts only."""
    if not (is_redundant(rigid) and driven_cables(rigid)) or np.isfinite(limits.high).any():
        return []
    text = "without effort_limit, spare motors are not asked whether they can keep the cables taut on this motion"
    return [Diagnostic("unchecked-cables", text)]


def _state(pushes: Array, speeds: Array) -> Array:
    """Return the factors of rows: acceleration, squared speed, speed and one."""
    return np.stack([pushes, speeds**2, speeds, np.ones_like(speeds)])


def _kept_within(
    part: RobotPath, rows: PhaseRows, places: PathPlaces, ends: tuple[float, float], width: float | None
) -> tuple[PhaseProfile, Trajectory, float]:
    """Return the speeds, their time law, and by how much limits are exceeded at any place, between knots too."""
    s = np.unique(np.concatenate([_even_times(part.end, INTERVALS * FINER), places.s[::2]]))
    limits, slowness = rows.at(s)
    with np.errstate(divide="ignore"):
        top = 1 / slowness
    slack, faster = np.ones(limits.shape[:2]), np.zeros(len(s) - 1)
    best = None
    for turn in range(TIGHTENED):
        both = _at_both_ends(s, limits, faster)
        try:
            profile = highest_speeds(s, both, np.tile(slack, (1, both.shape[1] // limits.shape[1])), top, ends)
        except ExcludedError as error:
            if best is not None:
                break  # tightened too far: what was found before is the best there is
            raise _excluded(error, part, limits[error.place], rows.names, s) from None
        law = time_law(profile, width)
        over, fast = _exceeded(rows, law, s)
        violation = float(max(over.max(initial=0.0), fast.max(initial=0.0)))
        if best is None or violation < best[2]:
            best = profile, law, violation
        if violation <= KEPT:
            break
        more = MORE if turn < GENTLE else 2.0  # where terms jump, the window shows half of what is taken off
        faster = np.diff(profile.y)
        slack[:-1] -= over * more
        top[:-1] /= 1 + fast * more
        top[1:] /= 1 + fast * more
    assert best is not None
    return best


def _at_both_ends(s: Array, limits: Array, faster: Array) -> Array:
    """Return rows at the begin of each interval, and at its end as rows of the speed at its begin.

    There y^2 has grown by 2 u ds, and y by what it grew in the motion found before. Without them accelerations go to
    and fro where a row has no factor of u. Very many rows stay alone: their pairs would be too many.
    """
    if limits.shape[1] > MOST_ROWS:
        return limits
    later = np.zeros_like(limits)
    later[:-1] = limits[1:]
    later[:-1, :, 0] += 2 * np.diff(s)[:, None] * limits[1:, :, 1]
    later[:-1, :, 3] += limits[1:, :, 2] * faster[:, None]
    return np.concatenate([limits, later], axis=1)


def _exceeded(rows: PhaseRows, law: Trajectory, knots: Array) -> tuple[Array, Array]:
    """Return by how much rows (interval, row) and speeds (interval) exceed their limits at most.

    Checked are the ends of all pieces of the law, where accelerations turn, places between them, and the knots at
    which terms jump.
    """
    ends = law.breaks
    t = np.concatenate([(ends[:-1, None] + np.diff(ends)[:, None] * SHARES).ravel(), times_at(law, rows.s[::2])])
    s, y, u = _moving(law, t)
    limits, slowness = rows.at(s)
    values = np.einsum("prk,kp->pr", limits, _state(u, y)) - 1
    k = np.clip(np.searchsorted(knots, s, side="right") - 1, 0, len(knots) - 2)
    over, fast = np.zeros((len(knots) - 1, values.shape[1])), np.zeros(len(knots) - 1)
    np.maximum.at(over, k, values)
    np.maximum.at(fast, k, y * slowness - 1)
    return over, fast


def _excluded(
    error: ExcludedError, part: RobotPath, rows: Array, named: tuple[tuple[str, str], ...], s: Array
) -> UnreachableError:
    """Return where on the path and by which limits no motion is left."""
    value, key = float(s[error.place]), part.key
    where, hint = f"at s = {value:.4g} of {part.end:.4g}", "raise these limits, or take another path"
    if error.why in ("start", "end"):
        least, value_at_most = error.allowed[0][0], error.allowed[-1][1]
        if least > 0:
            text = f"the limits exclude rest {where}: {_against(rows, named)}; the speed there is at least {least:.4g}"
        else:
            text = f"the speed at the {error.why} of the path is not reachable: it is at most {value_at_most:.4g}"
            key, value, hint = f"{key}.end_speeds", value_at_most, "give less"
    elif error.why == "limits":
        text = f"the limits exclude the path {where}: {_against(rows, named)}"
    else:
        text = f"the limits exclude the path behind s = {value:.4g} of {part.end:.4g}: no speed there reaches its end"
        hint = "raise the limits, or give another speed at the end"
    return UnreachableError(text, key=key, value=value, hint=hint)


def _against(rows: Array, names: tuple[tuple[str, str], ...]) -> str:
    """Return the names of the two rows that leave the least acceleration at zero speed."""
    a, g = rows[:, 0], rows[:, 3] - 1
    flat, low, high = (np.flatnonzero(part) for part in (np.abs(a) <= FLAT * np.abs(a).max(initial=0.0), a < 0, a > 0))
    pairs = [(g[k] / -a[k] + g[n] / a[n], (k, n)) for k in low for n in high]
    alone = [(g[k], (k, k)) for k in flat if g[k] > 0]
    _, pair = max(alone + pairs, key=lambda gap: gap[0], default=(0.0, (0, 0)))
    words = list(dict.fromkeys(f"the {names[k][0]} of '{names[k][1]}'" for k in pair))
    return " and ".join(words) + " cannot be kept" + ("" if len(words) == 1 else " together")


def _active_limits(rows: PhaseRows, profile: PhaseProfile, motors: Sequence[str]) -> list[dict[str, Any]]:
    """Return stretches on which one row is nearest to its bound, or the velocity of one motor."""
    middle = (profile.s[1:] + profile.s[:-1]) / 2
    limits, slowness = rows.at(middle)
    speed = (profile.y[1:] + profile.y[:-1]) / 2
    values = np.einsum("prk,kp->pr", limits, _state(profile.u, speed))
    fastest = np.array(rows.fastest)[np.clip(np.searchsorted(rows.s, middle), 0, len(rows.s) - 1)]
    acting = np.where(speed * slowness > values.max(axis=1), len(rows.names) + fastest, values.argmax(axis=1))
    names = [*rows.names, *(("velocity", motor) for motor in motors)]
    ends = np.flatnonzero([*(names[k] != names[n] for k, n in pairwise(acting)), True])
    begins = [0, *(ends[:-1] + 1)]
    return [
        {"s": float(profile.s[first]), "to": float(profile.s[last + 1]), "limit": limit, "joint": joint}
        for first, last in zip(begins, ends, strict=True)
        for limit, joint in [names[acting[first]]]
    ]


class ExcludedError(Exception):
    """No speed is left at a place: `why` is "limits" there, "later" for what follows, "start" or "end"."""

    def __init__(self, place: int, why: str, allowed: Intervals) -> None:
        super().__init__(why)
        self.place, self.why, self.allowed = place, why, allowed


@dataclass(frozen=True, eq=False, repr=False)
class PhaseProfile(Record):
    """Speeds at places and constant accelerations between them, and the highest speed that limits allow anywhere."""

    s: Array
    y: Array
    u: Array
    most: Array


class _Place:
    """Rows at one place, in the form lower <= u <= upper, each a parabola of y."""

    def __init__(self, rows: Array, slack: Array, top: float) -> None:
        a = rows[:, 0]
        size = np.abs(a).max(initial=0.0)
        flat = np.abs(a) <= FLAT * size
        curve = rows[:, [1, 2, 3]].copy()  # of y^2, y and 1
        curve[:, 2] -= slack
        self.lower = curve[~flat & (a < 0)] / -a[~flat & (a < 0)][:, None]
        self.upper = -curve[~flat & (a > 0)] / a[~flat & (a > 0)][:, None]
        self.pure = curve[flat]
        self.top = top
        pairs = (self.lower[:, None] - self.upper[None]).reshape(-1, 3)
        self.roots = _roots(np.concatenate([pairs, self.pure]))
        self.allowed = self._where(self.roots, None, 0.0)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        """Return lowest and highest acceleration at speeds."""
        powers = np.stack([y**2, y, np.ones_like(y)])
        low = (self.lower @ powers).max(axis=0, initial=-np.inf)
        high = (self.upper @ powers).min(axis=0, initial=np.inf)
        return low, high

    def _where(self, roots: Array, ahead: Intervals | None, ds: float) -> Intervals:
        """Return the intervals of speeds between roots on which every condition holds."""
        top = min(self.top, 4 * float(roots.max(initial=0.0)) + 1.0) if not np.isfinite(self.top) else self.top
        edges = np.unique(np.concatenate([[0.0], roots[(roots > 0) & (roots < top)], [top]]))
        middle = (edges[1:] + edges[:-1]) / 2
        good = self._holds(middle, ahead, ds)
        intervals: Intervals = []
        for low, high, fine in zip(edges[:-1], edges[1:], good, strict=True):
            if fine and intervals and intervals[-1][1] == low:
                intervals[-1] = (intervals[-1][0], float(high))
            elif fine:
                intervals.append((float(low), float(high)))
        return intervals

    def _holds(self, y: Array, ahead: Intervals | None, ds: float) -> Array:
        low, high = self.bounds(y)
        pure = self.pure @ np.stack([y**2, y, np.ones_like(y)])
        good = (low <= high) & (pure <= 0).all(axis=0)
        if ahead is None:
            return good
        reached = [(y**2 + 2 * ds * low <= h**2) & (y**2 + 2 * ds * high >= l**2) for l, h in ahead]
        return good & np.any(reached, axis=0)

    def before(self, ahead: Intervals, ds: float) -> Intervals:
        """Return the speeds from which one of those ahead can be reached."""
        square = np.array([1.0, 0.0, 0.0])
        edges = []
        for low, high in ahead:
            edges += [square + 2 * ds * self.lower - [0, 0, high**2], square + 2 * ds * self.upper - [0, 0, low**2]]
        ends = np.array([end for interval in self.allowed for end in interval])
        return self._where(np.concatenate([_roots(np.concatenate(edges)), ends]), ahead, ds)


def _roots(parabolas: Array) -> Array:
    """Return all real roots of rows c2 y^2 + c1 y + c0."""
    c2, c1, c0 = parabolas.T
    disc = c1**2 - 4 * c2 * c0
    real = disc >= 0
    c2, c1, c0, root = c2[real], c1[real], c0[real], np.sqrt(disc[real])
    q = -(c1 + np.where(c1 >= 0, root, -root)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = np.concatenate([q / c2, c0 / q])
    return roots[np.isfinite(roots)]


def highest_speeds(s: Array, rows: Array, slack: Array, top: Array, ends: tuple[float, float]) -> PhaseProfile:
    """Return the fastest profile for rows (place, row, [a b d g]) of at most `slack` (place, row), and top speeds.

    `ends` are the speeds at both ends.
    """
    steps = np.diff(s)
    places = [_Place(*each) for each in zip(rows, slack, top, strict=True)]
    for k, place in enumerate(places):
        if not place.allowed:
            raise ExcludedError(k, "limits", [])
    for k, why in ((0, "start"), (len(s) - 1, "end")):
        if not _within(places[k].allowed, ends[k > 0]):
            raise ExcludedError(k, why, places[k].allowed)
    sets: list[Intervals] = [[]] * len(s)
    sets[-1] = [(ends[1], ends[1])]
    for k in range(len(s) - 2, -1, -1):
        sets[k] = places[k].before(sets[k + 1], float(steps[k]))
        if not sets[k]:
            raise ExcludedError(k, "later", places[k].allowed)
    if not _within(sets[0], ends[0]):
        raise ExcludedError(0, "start", sets[0])
    y, u = np.zeros(len(s)), np.zeros(len(s) - 1)
    y[0] = ends[0]
    for k, ds in enumerate(steps):
        low, high = (float(bound[0]) for bound in places[k].bounds(y[k : k + 1]))
        y[k + 1] = _highest(sets[k + 1], y[k] ** 2 + 2 * ds * low, y[k] ** 2 + 2 * ds * high)
        u[k] = (y[k + 1] ** 2 - y[k] ** 2) / (2 * ds)
    most = np.array([place.allowed[-1][1] if place.allowed else 0.0 for place in places])
    return PhaseProfile(s, y, u, most)


def _within(sets: Intervals, y: float) -> bool:
    return any(low * (1 - NEAR) <= y <= high * (1 + NEAR) for low, high in sets)


def _highest(sets: Intervals, low: float, high: float) -> float:
    """Return the highest feasible speed whose square lies between two values; the nearest one within rounding."""
    for first, last in reversed(sets):
        if min(last**2, high) >= max(first**2, low) - NEAR * max(last**2, 1e-300):
            return float(np.sqrt(max(min(last**2, high), first**2)))
    edges = [edge for interval in sets for edge in interval]
    return min(edges, key=lambda edge: max(low - edge**2, edge**2 - high))


def time_law(profile: PhaseProfile, width: float | None) -> Trajectory:
    """Return s in time for a profile, from rest to rest averaged over a window of a width in s, or a share of the time.

    With speeds at the ends there is no window, and the last piece goes on.
    """
    s, y, u = profile.s, profile.y, profile.u
    t = np.concatenate([[0.0], np.cumsum(2 * np.diff(s) / (y[1:] + y[:-1]))])
    rolling = y[0] != 0 or y[-1] != 0
    law = Trajectory(t, np.stack([s, y, np.append(u, rolling * u[-1]) / 2], axis=1)[:, :, None])
    return law if rolling else law.averaged(WINDOW * float(t[-1]) if width is None else width)


def _moving(law: Trajectory, t: Array) -> tuple[Array, Array, Array]:
    """Return place, speed and acceleration of a law; without a window the acceleration is that behind a knot."""
    s, y, u = (law.value(t, order, behind=True)[:, 0] for order in range(3))
    return s, y, u


def times_at(law: Trajectory, s: Array) -> Array:
    """Return the times at which places are passed."""
    t = np.interp(s, law.value(law.breaks)[:, 0], law.breaks)
    low, high = np.zeros_like(t), np.full_like(t, law.breaks[-1])
    for _ in range(60):  # bisection with Newton steps inside: near the ends the speed vanishes
        place, speed, _ = _moving(law, t)
        low, high = np.where(place <= s, t, low), np.where(place <= s, high, t)
        step = t + np.divide(s - place, speed, out=np.zeros_like(t), where=speed > 0)
        t = np.where((step > low) & (step < high), step, (low + high) / 2)
    return t


@dataclass(frozen=True, eq=False, repr=False)
class PartTiming(Record):
    """One part of the path, from rest to rest."""

    begin: float  # s
    time: float  # its duration, s
    unit: str  # of the path parameter: "m" along a path of a frame; else it is a share
    s: Array  # places along it
    t: Array  # times at which they are passed, from `begin` on, s
    speed: Array  # path speed at the places
    most: Array  # highest path speed that the limits allow there
    efforts: Array  # of the motors (N, N m), a row for each place
    active: list[dict[str, Any]]  # stretches `s`, `to` on which a limit acts, `limit` and `joint`
    switching: list[dict[str, Any]]  # places `s` and times `time` at which the path acceleration changes its sign
    largest_violation: float  # by how much a limit is exceeded at most, between the knots too, as a share of it


@dataclass(frozen=True, eq=False, repr=False)
class TimeOptimal(Answer):
    """How a time-optimal motion was found: parts of the path, limits, and diagnostics."""

    time: float  # duration with rests, s
    parts: list[PartTiming]
    motors: tuple[str, ...]
    effort_low: Array  # N, N m
    effort_high: Array
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def largest_violation(self) -> float:
        """Return by how much a limit is exceeded at most, as a share of it."""
        return max(part.largest_violation for part in self.parts)

    def answer(self) -> dict[str, Any]:
        """Return the entries of a JSON answer."""
        words = ("begin", "time", "unit", "active", "switching", "largest_violation")
        parts = [{word: getattr(part, word) for word in words} | {"length": float(part.s[-1])} for part in self.parts]
        return {"time": self.time, "parts": parts, "largest_violation": self.largest_violation}

    def tables(self) -> list[Any]:
        """Return the tables of the command line."""
        rows = [
            (index, row["s"], row["to"], row["limit"], row["joint"])
            for index, part in enumerate(self.parts, start=1)
            for row in part.active
        ]
        violation = f"{self.largest_violation:.2g} of the limit"
        return [
            ("limits that act", ["part", "from s", "to s", "limit", "motor"], rows),
            ("", ["", "value"], [("largest violation between knots", violation)]),
        ]
