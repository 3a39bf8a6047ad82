"""Time-optimal motion along a path, within limits of velocity, acceleration, effort and cable tension.

A limit is a row a u + b y^2 + d y + g <= 1 of path speed y and path acceleration u. Efforts of a rigid robot on a path
are A u + B y^2 + D y + G: inertia, velocity terms, viscous friction, and gravity with Coulomb friction, whose sign is
that of the path. The forces that redundant motors can apply are a zonotope, whose facets are rows. Driven cables only
pull: without redundancy their tension, theory (18), is a row; else the tension of a cable that one motor winds bounds
the effort of this motor from one side, by inertia and friction of the drum.

Between two places u is constant, so y^2 grows by 2 u ds, and rows bound u by parabolas of y. All conditions on y at a
place are quadratic, and the allowed speeds are intervals between roots. The speeds from which the end can be reached
come first, then the fastest among them. Rows hold at places; between them they are tightened by the excess of the
motion, and the speeds are computed again until no limit is exceeded. The path coordinate as a function of time is
averaged over a short window, so that accelerations are continuous.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from parflex.closure.constraints import Coupling
from parflex.diagnostics import Diagnostic
from parflex.dynamics.dynamics import state_at
from parflex.errors import InputError, UnreachableError
from parflex.forces.coupling_losses import refuse_losses
from parflex.forces.effort_allocation import (
    cable_rows,
    cable_tensions,
    driven_cables,
    internal_basis,
    nearest_outside,
    shortest_within,
)
from parflex.records import Answer, Record
from parflex.robot.configuration import Configuration
from parflex.robot.limits import check_limits
from parflex.robot.motor_values import by_motor
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import LIMIT_KEYS, MotionTable
from parflex.trajectories.follow import Moving, RobotPath, as_words, configuration_near, joint_values, moving_frame
from parflex.trajectories.frames import path_length, paths_of
from parflex.trajectories.motions import positions_of
from parflex.trajectories.redundant_drive import is_redundant
from parflex.trajectories.trajectory import Trajectory, hermite, joined, through_law

Array = np.ndarray
INTERVALS, FINER = 60, 8  # between knots of a part, at which the model is evaluated, and pieces of each interval
WINDOW = 5e-4  # of the time: width of the window over which accelerations change
TIGHTENED, KEPT = 16, 1e-6  # times that rows are tightened at most, until limits are exceeded by less than this share
REFITS, FITTED = 5, 1e-7  # times that terms of efforts are fitted at most, until they err by less than this share
SHARES = np.array([1e-9, 0.25, 0.5, 0.75, 1 - 1e-9])  # of a piece in time: where limits are checked
MORE, GENTLE = 1.02, 3  # the excess is tightened by this factor so many times, then twice
WARNED = 1e-3  # of a limit: a larger excess is reported
MOST_ROWS = 60  # for which rows at both ends of an interval are checked
SEARCHED, BISECTED = 40, 30  # intervals in which joints may reverse, and bisections
APART = 1e-7  # of the length: knots on both sides of a reversal
LEAST = 1e-9  # of the highest speed
FLAT = 1e-9  # of the largest: rows with a smaller factor of u do not bound u
SAME = 1e-9  # relative: speeds that differ by rounding
SPEED_SAMPLES = (0.5, 1.0, 1.5)  # of a speed: three give the terms in 1, y and y^2
SUDDEN = 1e-3  # of the largest rate: error of quintics between every other place, beyond which motors are too fast
STILL = 1e-10  # of the largest rate: less is rounding
NEIGHBOUR = 1e-4  # of the length: distance of differences for derivatives of rates that no rule gives
EXACT, ZERO_FACET = 1e-9, 1e-12  # of the largest: rounding of shares of cables, and of facets
Intervals = list[tuple[float, float]]  # of speeds
Winding = tuple[tuple[int, float], ...]  # of each cable its motor, and 1 where positive efforts wind it up, else -1


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
    text = "without effort_limit, redundant motors are not checked to keep the cables taut in this motion"
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

    There y^2 has grown by 2 u ds, and y as in the last motion. Without them accelerations oscillate where a row has no
    factor of u. Very many rows are not doubled.
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

    Checked are places in all pieces of the law, and the knots at which terms jump.
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


# -- highest speeds ----------------------------------------------------------------------------------------


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
    return any(low * (1 - SAME) <= y <= high * (1 + SAME) for low, high in sets)


def _highest(sets: Intervals, low: float, high: float) -> float:
    """Return the highest feasible speed whose square lies between two values; the nearest one within rounding."""
    for first, last in reversed(sets):
        if min(last**2, high) >= max(first**2, low) - SAME * max(last**2, 1e-300):
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


# -- limits and the path -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class MotorLimits(Record):
    """Limits in the order of the motors; infinite where there are none."""

    low: Array  # efforts
    high: Array
    velocity: Array
    acceleration: Array


def limits_of(robot: Robot, motion: MotionTable, name: str) -> MotorLimits:
    """Return the limits of a table; raise if it has none."""
    efforts, velocity, acceleration = (_read(robot, getattr(motion, key), key, name) for key in LIMIT_KEYS)
    limits = MotorLimits(efforts[0], efforts[1], velocity[1], acceleration[1])
    if not any(np.isfinite(values).any() for values in (efforts, velocity, acceleration)):
        raise InputError(
            "a time-optimal motion has no limits", key=f"motions.{name}.effort_limit",
            hint="add effort_limit, velocity_limit or acceleration_limit",
        )  # fmt: skip
    return limits


def _read(robot: Robot, limit: Any, key: str, name: str) -> Array:
    """Return lowest and highest values of all motors; infinite where there is no limit."""
    motors, where = robot.actuated_names, f"motions.{name}.{key}"
    table = limit if isinstance(limit, Mapping) else dict.fromkeys(motors, limit)
    bounds = np.full((2, len(motors)), np.inf) * np.array([[-1.0], [1.0]])
    for motor, value in by_motor(motors, table, where, "limit").items():
        if value is None:
            continue
        pair = isinstance(value, tuple)
        bounds[:, motor] = value if pair else (-value, value)
        if bounds[0, motor] >= bounds[1, motor] or (pair and key != "effort_limit"):
            raise InputError(
                f"the limit {list(value) if pair else value} of '{motors[motor]}' is neither positive nor a range",
                key=where, value=str(value), hint="give one positive number, or [lowest, highest] of efforts",
            )  # fmt: skip
    return bounds


@dataclass(frozen=True, eq=False, repr=False)
class PathPlaces(Record):
    """The robot at places along a part, and its motors as quintics of s."""

    s: Array
    robots: tuple[Configuration, ...]
    rates: Array  # (place, rate)
    bends: Array
    motors: Trajectory
    slopes: Array  # first and second derivatives of the motors, (2, place, motor)

    def forces(self, speeds: Array, pushes: Array) -> Array:
        """Return the forces of the model itself at all places, at these speeds and accelerations."""
        moving = zip(self.robots, self.rates, self.bends, speeds, pushes, strict=True)
        return np.array([_forces(*each) for each in moving])


def parts_of(robot: Robot, motion: MotionTable, name: str) -> tuple[list[RobotPath], Array]:
    """Return the paths of a motion, from rest to rest, and all positions at the start.

    The parameter s goes from 0 to the length, in m along a path of a frame, else as a share of a move.
    """
    rigid = robot.locking(robot.tree.elastic)
    if not (motion.along_path or motion.poses):
        rows, start = positions_of(robot, motion, name)
        return [_part(name, 1.0, _joint_line(rigid, a, b, name), "") for a, b in pairwise(rows)], start
    paths, driven, positions = paths_of(rigid, motion, name)
    frame, parts = motion.frame or rigid.tree.end_effector, []
    for path in paths:
        length = path_length(motion, path, name)
        parts.append(_part(name, length, moving_frame(rigid, frame, driven, path.at), path.unit))
    return parts, positions[0] if positions else rigid.home


def _part(name: str, length: float, moving: Callable[[float, Array], Moving], unit: str) -> RobotPath:
    """Return a path on which joints rest whose rates are rounding, without Coulomb friction of either sign."""

    def at(s: float, near: Array) -> Moving:
        here, q1, q2 = moving(s, near)
        here.refuse_undefined_actuation()
        shares = np.abs(q1 / here.robot.tree.rate_units)
        return here, np.where(shares > STILL * shares.max(initial=0.0), q1, 0.0), q2

    return RobotPath(0.0, length, at, lambda s: f"the path stops at s = {s:.4g} of {length:.4g}", f"motions.{name}",
                     unit=unit)  # fmt: skip


def _joint_line(rigid: Robot, first: Array, second: Array, name: str) -> Callable[[float, Array], Moving]:
    travel, names = second - first, rigid.actuated_names
    if not travel.any():
        raise InputError("a move goes nowhere", key=f"motions.{name}", hint="remove it, or use 'rest'")
    velocity = as_words(names, travel)

    def moving(s: float, near: Array) -> Moving:
        here = configuration_near(rigid, as_words(names, first + s * travel), near)
        qd = here.rates(velocity)
        return here, qd, here.accelerations(dict.fromkeys(names, 0.0), qd, velocity)

    return moving


def places_along(rigid: Robot, part: RobotPath, s: Array, near: Array) -> PathPlaces:
    """Return the robot at places in order; refused where the motors would move too suddenly between them."""
    rows: list[Moving] = []
    for place in s:
        here, q1, q2 = part.at(float(place), rows[-1][0].q if rows else near)
        if np.isnan(q2).any():
            h = NEIGHBOUR * part.end
            low, high = max(0.0, place - h), min(part.end, place + h)
            q2 = (part.at(high, here.q)[1] - part.at(low, here.q)[1]) / (high - low)
        rows.append((here, q1, q2))
    positions, *slopes = np.stack([joint_values(*row, rigid.actuated) for row in rows], axis=1)
    _refuse_sudden(part, s, positions, np.array(slopes), rigid.tree.rate_units[list(rigid.actuated)])
    robots, rates, bends = zip(*rows, strict=True)
    motors = hermite(s, positions, *slopes)
    return PathPlaces(s, robots, np.array(rates), np.array(bends), motors, np.array(slopes))


def refuse_beyond_limits(part: RobotPath, places: PathPlaces) -> None:
    """Raise where joints on the path leave their limits: no law of time changes that."""
    robot, q = places.robots[0].robot, np.array([here.q for here in places.robots])
    for violation in check_limits(robot, dict(zip(robot.tree.position_names, q.T, strict=True)), times=places.s):
        sentence = replace(violation, time=None).sentence
        raise UnreachableError(
            f"at s = {violation.time:.4g} of {part.end:.4g} {sentence}", key=part.key, value=violation.value,
            hint="change the path or the limit, or ignore the limits (ignore_limits)",
        )  # fmt: skip


def reversals(rigid: Robot, part: RobotPath, near: Array, s: Array) -> list[float]:
    """Return the places at which a joint with Coulomb friction reverses, by bisection between places `s`."""
    links = [link for link in rigid.tree.links if link.v.stop > link.v.start]
    rubbing = [link.v.start for link in links if link.terms.coulomb or link.terms.more_viscous]
    if not rubbing:
        return []
    rates, positions = [], []
    for place in s:
        here, q1, _ = part.at(float(place), near)
        rates.append(q1[rubbing])
        positions.append(near := here.q)
    places = []
    values = np.array(rates)
    for k, j in zip(*np.nonzero(values[:-1] * values[1:] < 0), strict=True):
        low, high, sign = float(s[k]), float(s[k + 1]), np.sign(values[k, j])
        for _ in range(BISECTED):
            middle = (low + high) / 2
            _, q1, _ = part.at(middle, positions[k])
            low, high = (middle, high) if q1[rubbing[j]] * sign > 0 else (low, middle)
        places.append((low + high) / 2)
    return sorted(places)


def _refuse_sudden(part: RobotPath, s: Array, positions: Array, slopes: Array, units: Array) -> None:
    coarse = hermite(s[::2], positions[::2], *(row[::2] for row in slopes))
    off = np.abs(coarse.value(s[1::2], 1) - slopes[0, 1::2]) / units
    largest = np.abs(slopes[0] / units).max()
    worst = int(np.argmax(off.max(axis=1)))
    if off[worst].max() > SUDDEN * largest:
        raise UnreachableError(
            f"at s = {s[2 * worst + 1]:.4g} of {part.end:.4g} the motors would have to move too suddenly",
            key=part.key, hint="keep away from singular poses",
        )  # fmt: skip


# -- rows --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class PhaseRows(Record):
    """At each place: rows (place, row, [a, b, d, g]) that are at most 1, and the largest speed; names of the rows."""

    rows: Array
    top: Array  # speeds that velocities of the motors allow
    fastest: tuple[int, ...]  # the motor that has the lowest such speed
    names: tuple[tuple[str, str], ...]  # limit and joint of each row
    efforts: Array  # (place, freedom or motor, [A, B, D, G]), then tensions or, with spare motors, efforts for none
    actuation: Array  # (place, freedom, motor): forces for efforts; the unit matrix where motors are not spare
    s: Array  # places: knots, and the middles between them
    winding: Winding = ()  # of cables, where motors are spare

    def at(self, s: Array) -> tuple[Array, Array]:
        """Return rows and inverse top speeds anywhere, by parabolas through knots and middle of an interval."""
        knots = self.s[::2]
        k = np.clip(np.searchsorted(knots, s, side="right") - 1, 0, len(knots) - 2)
        f = (s - knots[k]) / (knots[k + 1] - knots[k])
        weights = np.stack([(1 - f) * (1 - 2 * f), 4 * f * (1 - f), f * (2 * f - 1)])
        rows = np.einsum("np,nprk->prk", weights, np.stack([self.rows[2 * k + n] for n in range(3)]))
        return rows, np.einsum("np,np->p", weights, np.stack([1 / self.top[2 * k + n] for n in range(3)]))


def rows_along(robot: Robot, places: PathPlaces, limits: MotorLimits, speeds: Array, pushes: Array) -> PhaseRows:
    """Return rows at all places; terms of efforts are fitted about speeds and accelerations."""
    motors = robot.actuated_names
    moving = zip(places.robots, places.rates, places.bends, speeds, pushes, strict=True)
    terms = [_effort_terms(*each) for each in moving]
    efforts, actuation = (np.array([each[k] for each in terms]) for k in range(2))
    freedoms, spare = actuation.shape[1], actuation.shape[1] != actuation.shape[2]
    winding = winding_motors(places.robots[0]) if spare else ()
    rows: list[Array] = []
    names: list[tuple[str, str]] = []
    bounded = np.isfinite([limits.low, limits.high])
    if bounded.any():
        if spare and not bounded.all():
            free = motors[int(np.argmin(bounded.all(axis=0)))]
            raise InputError(
                f"'{free}' has no effort limit, and motors are redundant", key="effort_limit",
                value=free, hint="give every motor a lowest and a highest effort",
            )  # fmt: skip
        rows, names = _effort_rows(efforts, actuation, limits, motors, winding)
    if not spare:
        rows += _tension_rows(efforts[:, freedoms:], speeds)
        names += [("tension", cable) for cable in cable_names(robot)]
    for k, most in enumerate(limits.acceleration):
        if np.isfinite(most):
            row = np.zeros((len(places.s), 4))
            row[:, 0], row[:, 1] = places.slopes[0, :, k] / most, places.slopes[1, :, k] / most
            rows += [row, -row]
            names += [("acceleration", motors[k])] * 2
    with np.errstate(divide="ignore"):
        allowed = limits.velocity / np.abs(places.slopes[0])
    every = np.stack(rows, axis=1) if rows else np.zeros((len(places.s), 0, 4))
    return PhaseRows(
        every, allowed.min(axis=1), tuple(map(int, allowed.argmin(axis=1))), tuple(names), efforts, actuation,
        places.s, winding,
    )  # fmt: skip


def _effort_terms(here: Configuration, q1: Array, q2: Array, speed: float, push: float) -> tuple[Array, Array]:
    """Return A, B, D, G of efforts, or of generalised forces with spare motors, and these forces for unit efforts."""
    speeds, spare = speed * np.array(SPEED_SAMPLES), here.J_a.shape[0] > here.J_a.shape[1]
    forces = [_forces(here, q1, q2, y, push) for y in speeds]
    A = _forces(here, q1, q2, speed, push + 1.0) - forces[1]
    still = np.array(forces) - push * A
    terms = np.linalg.solve(np.stack([speeds**2, speeds, np.ones(len(speeds))], axis=1), still)
    return np.stack([A, *terms], axis=1), here.J_a.T if spare else np.eye(len(here.J_a))


def _forces(here: Configuration, q1: Array, q2: Array, y: float, push: float) -> Array:
    """Return efforts of the motors and tensions; with spare motors, generalised forces and efforts without tension."""
    state = state_at(here, q1 * y)
    f = state.forces(q2 * y**2 + push * q1)
    if here.J_a.shape[0] > here.J_a.shape[1]:
        return np.concatenate([here.J.T @ f, taut_bounds(here, f)])
    tau = state.efforts(f)
    return np.concatenate([tau, cable_tensions(here, f, tau)])


def _tension_rows(terms: Array, speeds: Array) -> list[Array]:
    """Return the rows of cables, whose tension is at least zero, in shares of the largest at these speeds."""
    state = np.stack([speeds**2, speeds**2, speeds, np.ones_like(speeds)])
    usual = np.einsum("pkc,cp->pk", np.abs(terms), state).max(axis=0, initial=1e-300)
    return list(np.moveaxis(np.array([0.0, 0.0, 0.0, 1.0]) - terms / usual[:, None], 1, 0))


def _effort_rows(
    efforts: Array, actuation: Array, limits: MotorLimits, motors: list[str], winding: Winding
) -> tuple[list[Array], list[tuple[str, str]]]:
    freedoms, count = actuation.shape[1:]
    rows, names = [], []
    if freedoms == count:
        for k in range(count):
            for bound, sign in ((limits.high[k], 1.0), (limits.low[k], -1.0)):
                if np.isfinite(bound):
                    rows.append(_bounded(efforts[:, k], sign, limits, k))
                    names.append(("effort", motors[k]))
        return rows, names
    for k, (motor, sign) in enumerate(winding):  # the other end of a range that tension bounds from one side
        rows.append(_bounded(efforts[:, freedoms + k], sign, limits, motor))
        names.append(("effort", motors[motor]))
    normals = None
    made = []
    for W, terms in zip(actuation, efforts, strict=True):
        normals = _normals(W, normals)
        made.append(_facets(W, terms, limits, winding, normals))
    facets = np.unique(np.array(made), axis=1)
    return [*rows, *facets.transpose(1, 0, 2)], [*names, *[("effort", "motors together")] * facets.shape[1]]


def _bounded(terms: Array, sign: float, limits: MotorLimits, motor: int) -> Array:
    """Return the row of sign (effort - bound) <= 0, in halves of the range, or in shares of the one bound there is."""
    low, high = limits.low[motor], limits.high[motor]
    bound = high if sign > 0 else low
    half = (high - low) / 2 if np.isfinite(high - low) else abs(bound) or 1.0
    row = sign * terms / half
    row[:, 3] += 1 - sign * bound / half
    return row


def _normals(W: Array, before: Array | None) -> Array:
    """Return normals of the facets of all forces W tau, with the signs of the place before."""
    freedoms, count = W.shape
    scale = np.abs(W).max()
    chosen = combinations(range(count), freedoms - 1)
    normals = np.array([np.linalg.svd(W[:, columns].T / scale)[2][-1] for columns in chosen])
    if before is not None:
        normals[np.einsum("nf,nf->n", normals, before) < 0] *= -1
    return normals


def _facets(W: Array, terms: Array, limits: MotorLimits, winding: Winding, normals: Array) -> Array:
    """Return facets of all forces W tau for efforts in their ranges, as rows of the terms of the required force.

    Where cables must be taut, a range ends at its limit or at the effort for no tension: the facets of either hold.
    """
    freedoms, count = W.shape
    half = (limits.high - limits.low) / 2
    rows = []
    for normal, chosen in zip(normals, combinations(range(count), freedoms - 1), strict=True):
        other = [k for k, (motor, _) in enumerate(winding) if motor not in chosen]
        for n in (normal, -normal):
            along = n @ W
            along[list(chosen)] = 0.0
            reach = float(np.abs(along) @ half)
            none = reach <= ZERO_FACET * np.abs(W).max() * np.linalg.norm(half)
            most = along * np.where(along > 0, limits.high, limits.low)
            for taut in product((False, True), repeat=len(other)):
                row = n @ terms[:freedoms]
                row[3] -= most.sum()
                for k in (k for k, is_taut in zip(other, taut, strict=True) if is_taut):
                    motor, sign = winding[k]
                    if along[motor] * sign < 0:
                        row = row - along[motor] * terms[freedoms + k]
                        row[3] += most[motor]
                rows.append(np.zeros(4) if none else row / reach + [0, 0, 0, 1])
    return np.array(rows)


def feasible_efforts(actuation: Array, forces: Array, limits: MotorLimits, winding: Winding, taut: Array) -> Array:
    """Return efforts (place, motor) for forces (place, freedom); of redundant motors the least within their limits.

    `taut` (place, cable) are efforts at which cables have no tension.
    """
    if actuation.shape[1] == actuation.shape[2]:
        return forces
    efforts = []
    for W, force, least in zip(actuation, forces, taut, strict=True):
        low, high = limits.low.copy(), limits.high.copy()
        for (motor, sign), effort in zip(winding, least, strict=True):
            bound, nearer = (low, max) if sign > 0 else (high, min)
            bound[motor] = nearer(bound[motor], effort)
        tau, N = np.linalg.lstsq(W, force, rcond=None)[0], internal_basis(W)
        z = shortest_within(N, tau, low, high)
        efforts.append(nearest_outside(N, tau, low, high)[0] if z is None else tau + N @ z)
    return np.array(efforts)


def taut_bounds(here: Configuration, f: Array) -> Array:
    """Return the effort of the motor of each driven cable at which its tension is zero, for forces of the open tree."""
    rows = cable_rows(here.robot)
    shares = _shares(here) if rows else np.zeros((0, len(f)))
    motors = shares[:, list(here.robot.actuated)]
    return shares @ f / motors.sum(axis=1)


def winding_motors(here: Configuration) -> Winding:
    """Return the motor of each cable; cables that share motors are refused."""
    robot = here.robot
    if not cable_rows(robot):
        return ()
    motors = _shares(here)[:, list(robot.actuated)]
    turning = np.abs(motors) > EXACT * np.abs(motors).max(axis=1, keepdims=True)
    bad = (turning.sum(axis=1) != 1) | (turning @ turning.sum(axis=0) != 1)
    if bad.any():
        name = cable_names(robot)[int(np.argmax(bad))]
        raise InputError(
            f"with redundant motors the cable '{name}' is not wound by a motor of its own, so that its tension is not "
            "known in time-optimal motions",
            key="element", value=name, hint="use another law",
        )  # fmt: skip
    return tuple((int(np.argmax(row)), float(np.sign(motors[k] @ row))) for k, row in enumerate(turning))


def cable_names(robot: Robot) -> list[str]:
    """Return driven cables in the order of their tensions."""
    wound = driven_cables(robot)
    return [row.name for row in robot.closures.rows if row.name in wound]


def _shares(here: Configuration) -> Array:
    """Return rows w (cable, rate) with tension = w . (tau - f), from the equations of drums, gears and lengths.

    Each is a virtual motion that breaks the condition of one cable only: its work is that of the tension.
    """
    robot, J = here.robot, here.closure_jacobian
    lengths = [link.v.start for link in robot.tree.links if link.pulls_only]
    couplings = [
        J[part.start] != 0
        for part, row in zip(robot.closures.slices(), robot.closures.rows, strict=True)
        if isinstance(row, Coupling)
    ]
    moving = np.zeros(J.shape[1], dtype=bool)
    moving[lengths] = True
    for _ in couplings:
        for touched in couplings:
            moving |= touched if (touched & moving).any() else False
    chosen = [k for k in robot.free if moving[k]]
    rows = cable_rows(robot)
    targets = np.eye(len(J))[:, rows]
    solution = np.linalg.lstsq(J[:, chosen], targets, rcond=EXACT)[0]
    shares = np.zeros((len(rows), J.shape[1]))
    shares[:, chosen] = solution.T
    off = np.abs(J[:, chosen] @ solution - targets).max(axis=0)
    shares[off > EXACT * max(1.0, float(np.abs(J).max()))] = np.nan
    return shares


# -- result ------------------------------------------------------------------------------------------------


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
