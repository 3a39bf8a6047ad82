"""The fastest motion along a path: limits become rows, rows speeds, speeds a motion, which is checked between knots.

Rows hold at places; between them efforts may exceed their limits by what they change. There the rows are tightened by
what was found on the model itself, and speeds are computed again, until nothing is exceeded.
"""

from __future__ import annotations

import numpy as np

from parflex.errors import InputError, UnreachableError
from parflex.forces.gear_losses import refuse_losses
from parflex.forces.taut_cables import driven_cables
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import MotionTable
from parflex.simulation.inputs.polynomials import Polynomials, joined
from parflex.simulation.inputs.spare_motions import is_spare
from parflex.simulation.time_optimal.internal_efforts import efforts_within
from parflex.simulation.time_optimal.motor_limits import MotorLimits, limits_of
from parflex.simulation.time_optimal.path_geometry import PathPart, PathPlaces, parts_of, places_along, reversals
from parflex.simulation.time_optimal.phase_plane import ExcludedError, Profile, highest_speeds
from parflex.simulation.time_optimal.phase_rows import PhaseRows, model_forces, rows_along
from parflex.simulation.time_optimal.time_law import TimeLaw, law_of, motors_in_time
from parflex.simulation.time_optimal.timing import PartTiming, TimeOptimal, stretches

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


def fastest_motion(robot: Robot, motion: MotionTable, name: str) -> tuple[Polynomials, Array, TimeOptimal]:
    """Motors in time, all positions at the start, and how it was found."""
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
    begin, start = 0.0, None
    pieces: list[Polynomials] = []
    told: list[PartTiming] = []
    warnings = _loose(rigid, limits)
    for part in parts:
        places = places_along(rigid, part, _grid(rigid, part, near), near)
        start = places.robots[0].q if start is None else start
        near = places.robots[-1].q
        law, timing, said = _fastest(rigid, part, places, limits, motion, begin)
        warnings += said
        made = motors_in_time(law, places.motors)
        pieces.append(Polynomials(made.breaks + begin, made.coefficients))
        told.append(timing)
        begin += law.end + motion.rest
    assert start is not None
    all_of_it = told[-1].begin + told[-1].time
    names = tuple(robot.actuated_names)
    return joined(pieces), start, TimeOptimal(all_of_it, told, names, limits.low, limits.high, warnings)


def _grid(rigid: Robot, part: PathPart, near: Array) -> Array:
    """Knots at which the robot itself is asked, and their middles.

    Where a joint with Coulomb friction turns back, efforts jump: there are knots on both sides.
    """
    turns = reversals(rigid, part, near, np.linspace(0.0, part.length, SEARCHED + 1))
    beside = np.array([turn + side * APART * part.length for turn in turns for side in (-1, 1)])
    knots = _even_times(part.length, INTERVALS)
    far = [k for k in knots if not turns or np.abs(np.array(turns) - k).min() > 2 * APART * part.length]
    knots = np.unique(np.concatenate([far, beside[(beside > 0) & (beside < part.length)], knots[[0, -1]]]))
    return np.sort(np.concatenate([knots, (knots[1:] + knots[:-1]) / 2]))


def _even_times(length: float, count: int) -> Array:
    """Places that a motion of constant acceleration to the middle and back passes at even times."""
    x = np.linspace(0.0, 1.0, count + 1)
    return np.where(x < 0.5, 2 * x**2, 1 - 2 * (1 - x) ** 2) * length


def _fastest(
    rigid: Robot, part: PathPart, places: PathPlaces, limits: MotorLimits, motion: MotionTable, begin: float
) -> tuple[TimeLaw, PartTiming, list[str]]:
    """Terms of efforts are exact for viscous and Coulomb friction; others are fitted again about the motion found."""
    typical = np.abs(places.slopes[0] / rigid.tree.rate_units[list(rigid.actuated)]).max()
    speeds, pushes = np.full(len(places.s), 1 / typical), np.zeros(len(places.s))
    for _ in range(REFITS):
        rows = rows_along(rigid, places, limits, speeds, pushes)
        _refuse_free(rows, part)
        profile, law, violation = _kept_within(part, rows, places, motion.end_speeds, motion.smoothing or None)
        _, speeds, pushes = law.at(law.when(places.s))
        speeds = np.maximum(speeds, LEAST * speeds.max())  # friction at rest is that of a motion that begins
        forces = model_forces(rows, places, speeds, pushes)
        fitted = np.einsum("pfk,kp->pf", rows.efforts, _state(pushes, speeds))
        off = float(np.abs(forces - fitted).max() / max(np.abs(forces).max(), 1e-300))
        if off < FITTED:
            break
    told = _told(part, places, rows, profile, law, violation + off * (off >= FITTED), forces, limits, rigid, begin)
    warnings = [] if told.largest_violation <= WARNED else [
        f"limits are exceeded by {100 * told.largest_violation:.2g} % of them on the path: the motion needs a check"
    ]  # fmt: skip
    return law, told, warnings


def _loose(rigid: Robot, limits: MotorLimits) -> list[str]:
    """Without limits of efforts there are no facets that would know of cables."""
    if not (is_spare(rigid) and driven_cables(rigid)) or np.isfinite(limits.high).any():
        return []
    return ["without effort_limit, spare motors are not asked whether they can keep the cables taut on this motion"]


def _state(pushes: Array, speeds: Array) -> Array:
    """What rows are multiplied with."""
    return np.stack([pushes, speeds**2, speeds, np.ones_like(speeds)])


def _kept_within(
    part: PathPart, rows: PhaseRows, places: PathPlaces, ends: tuple[float, float], width: float | None
) -> tuple[Profile, TimeLaw, float]:
    """Speeds whose motion keeps the limits at all places, those between the knots too."""
    s = np.unique(np.concatenate([_even_times(part.length, INTERVALS * FINER), places.s[::2]]))
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
        law = law_of(profile, WINDOW, width)
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
    """Rows at the begin of each interval, and at its end as rows of the speed at its begin.

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


def _exceeded(rows: PhaseRows, law: TimeLaw, knots: Array) -> tuple[Array, Array]:
    """By how much rows (interval, row) and speeds (interval) are above what they may be, at most.

    Checked are the ends of all pieces of the law, where accelerations turn, places between them, and the knots at
    which terms jump.
    """
    ends = law.knots()
    t = np.concatenate([(ends[:-1, None] + np.diff(ends)[:, None] * SHARES).ravel(), law.when(rows.s[::2])])
    s, y, u = law.at(t)
    limits, slowness = rows.at(s)
    values = np.einsum("prk,kp->pr", limits, _state(u, y)) - 1
    k = np.clip(np.searchsorted(knots, s, side="right") - 1, 0, len(knots) - 2)
    over, fast = np.zeros((len(knots) - 1, values.shape[1])), np.zeros(len(knots) - 1)
    np.maximum.at(over, k, values)
    np.maximum.at(fast, k, y * slowness - 1)
    return over, fast


def _refuse_free(rows: PhaseRows, part: PathPart) -> None:
    if all(limit == "tension" for limit, _ in rows.names):
        raise InputError(
            "velocity limits alone leave accelerations without bounds", key=f"motions.{part.name}.acceleration_limit",
            hint="add acceleration_limit or effort_limit",
        )  # fmt: skip


def _excluded(
    error: ExcludedError, part: PathPart, rows: Array, named: tuple[tuple[str, str], ...], s: Array
) -> UnreachableError:
    """Where on the path and by which limits no motion is left."""
    place = float(s[error.place])
    where, key = f"at s = {place:.4g} of {part.length:.4g}", f"motions.{part.name}"
    names = _against(rows, named)
    if error.why in ("start", "end"):
        least, most = error.allowed[0][0], error.allowed[-1][1]
        if least > 0:
            return UnreachableError(
                f"the limits exclude rest {where}: {names}; the speed there is at least {least:.4g}",
                key=key, value=place, hint="raise these limits, or take another path",
            )  # fmt: skip
        return UnreachableError(
            f"the speed at the {error.why} of the path is not reachable: it is at most {most:.4g}",
            key=f"{key}.end_speeds", value=most, hint="give less",
        )  # fmt: skip
    if error.why == "limits":
        return UnreachableError(
            f"the limits exclude the path {where}: {names}",
            key=key, value=place, hint="raise these limits, or keep away from there",
        )  # fmt: skip
    return UnreachableError(
        f"the limits exclude the path behind s = {place:.4g} of {part.length:.4g}: no speed there reaches its end",
        key=key, value=place, hint="raise the limits, or give another speed at the end",
    )  # fmt: skip


def _against(rows: Array, names: tuple[tuple[str, str], ...]) -> str:
    """The two rows that leave the least acceleration at rest, in words."""
    a, g = rows[:, 0], rows[:, 3] - 1
    alone = int(np.argmax(np.where(np.abs(a) <= 1e-9 * np.abs(a).max(initial=0.0), g, -np.inf)))
    pair: tuple[int, ...]
    best, pair = (g[alone], (alone,)) if np.isclose(a[alone], 0) and g[alone] > 0 else (-np.inf, (0,))
    for low in np.flatnonzero(a < 0):
        for high in np.flatnonzero(a > 0):
            gap = g[low] / -a[low] + g[high] / a[high]
            if gap > best:
                best, pair = gap, (int(low), int(high))
    words = list(dict.fromkeys(f"the {names[k][0]} of '{names[k][1]}'" for k in pair))
    return " and ".join(words) + " cannot be kept" + ("" if len(words) == 1 else " together")


def _told(
    part: PathPart, places: PathPlaces, rows: PhaseRows, profile: Profile, law: TimeLaw, violation: float,
    forces: Array, limits: MotorLimits, rigid: Robot, begin: float,
) -> PartTiming:  # fmt: skip
    t = law.when(places.s)
    names = [*rows.names, *(("velocity", motor) for motor in rigid.actuated_names)]
    acting = _acting(rows, profile)
    push = np.where(np.abs(profile.u) > 1e-6 * np.abs(profile.u).max(initial=0.0), np.sign(profile.u), 0)
    turns = [k + 1 for k in range(len(push) - 1) if push[k] != push[k + 1]]
    switching = [
        {
            "s": float(profile.s[k]),
            "time": begin + float(law.when(profile.s[k : k + 1])[0]),
            "speed": float(profile.y[k]),
        }
        for k in turns
    ]
    freedoms = rows.actuation.shape[1]
    efforts = efforts_within(rows.actuation, forces[:, :freedoms], limits, rows.winding, forces[:, freedoms:])
    most = np.interp(places.s, profile.s, profile.most)
    return PartTiming(
        begin, law.end, part.unit, places.s, begin + t, law.at(t)[1], most, efforts,
        stretches(profile.s, acting, names), switching, violation,
    )  # fmt: skip


def _acting(rows: PhaseRows, profile: Profile) -> Array:
    """Of each interval the row that is nearest to its bound, or the velocity of a motor."""
    middle = (profile.s[1:] + profile.s[:-1]) / 2
    limits, slowness = rows.at(middle)
    speed = (profile.y[1:] + profile.y[:-1]) / 2
    values = np.einsum("prk,kp->pr", limits, _state(profile.u, speed))
    motors = np.array(rows.fastest)[np.clip(np.searchsorted(rows.s, middle), 0, len(rows.s) - 1)]
    return np.where(speed * slowness > values.max(axis=1), len(rows.names) + motors, values.argmax(axis=1))
