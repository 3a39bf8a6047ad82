"""Records that the file explains only with another unit, sign or zero: which one, or nothing.

Where efforts by the numbers of the file are far off, each of a few usual mistakes is tried by how much of the efforts
the file explains with it. It must explain most of them, and parameters of the robot must not explain the record better
without it: a file with rough numbers is not a mistake of the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from parflex.errors import ParflexError
from parflex.identification.base_columns import BaseColumns
from parflex.identification.doubts.hypotheses import (
    Hypothesis,
    as_given,
    exchanges,
    other_units,
    shifted,
    unit_cure,
    units_of_one,
    usual_mistakes,
    whole_turns,
)
from parflex.identification.filtering import STICKS, FilterChoice, smoothed
from parflex.identification.low_pass import butterworth
from parflex.identification.measured_files import Measurement
from parflex.identification.payloads import payload_parameters
from parflex.identification.prepared import rubbing_motors
from parflex.identification.regressors import Regressor

Array = np.ndarray
FAR = 0.5  # of the efforts, by which those of the file are off where something is wrong
NEAR = 0.1  # of the same: where they are no more, nothing is asked
NEARER = 0.5  # of that, where a mistake explains it
EXPLAINED = 0.3  # of the efforts, by which they may still be off then: nine tenths of their power are explained
NO_WORSE = 1.1  # times what parameters leave without it: units and signs do not make records worse
BETTER = 0.8  # times the same, where the file alone says little, or zeros of encoders are looked for
RIGHT = 1.2  # times the same: the file with these zeros is as good as any parameters, so it is right
LIKE = 1.5  # times the best: what people do more often is named before what is looked for
SAME = 1.02  # times the best: records do not tell these apart
FAINT = 0.05  # of the largest efforts: those of a motor count as so large at least
INSTANTS, FEWER = 300, 80  # of a record, and of it where a zero is looked for
STEPS, HALVINGS = 8, 5  # of Gauss's method
SETTLED, BESIDE = 1e-4, 1e-5  # rad, or typical lengths, of a last step, and of differences
FELT = 1e-3  # of the shift that efforts feel most: others that they feel less are not looked for
SELDOM = 0.1  # s between samples: no robot is recorded so seldom, and where efforts are mostly weights they hardly tell
PLAINLY = 0.9  # of what the file is off by, where another unit of time explains it then
AT_ZERO = 0.02  # of its way: a motor that begins so near to zero may have been set to zero there


class FileTrial:
    """A record, and how far the file is from it with any hypothesis."""

    def __init__(self, regressor: Regressor, base: BaseColumns, record: Measurement, choice: FilterChoice) -> None:
        self.regressor, self.base, self.record = regressor, base, record
        smooth = smoothed(record, choice)
        instants = _sliding(regressor, smooth.rate)
        chosen = instants[np.unique(np.linspace(0, len(instants) - 1, INSTANTS).astype(int))]
        effort = choice.inside(butterworth(record.effort, 2 * choice.cutoff * record.step))
        self.position, self.rate, self.acceleration, self.effort = (
            part[chosen] for part in (smooth.position, smooth.rate, smooth.acceleration, effort)
        )
        self.theta = np.array([one.value for one in regressor.unknowns])
        for column, more in (payload_parameters(regressor, record.payload) if record.payload else {}).items():
            self.theta[column] += more

    def rows(self, given: Hypothesis, every: int = 1) -> tuple[Array, Array, Array] | None:
        """Rows of the base parameters, what is measured and what the file says; None where loops do not close."""
        some = slice(None, None, every)
        own = slice(None) if given.positions_of is None else given.positions_of
        position, rate, acceleration = (
            values[some][:, own] for values in (self.position, self.rate, self.acceleration)
        )  # fmt: skip
        effort = self.effort[some][:, slice(None) if given.efforts_of is None else given.efforts_of]
        q = (position - self.record.offset) * given.position + self.record.offset + given.offset
        factor = given.position / given.time
        try:
            moving = self.regressor.moving(q, rate * factor, acceleration * factor / given.time)
        except ParflexError:
            return None
        W, known = self.regressor.of(moving)
        if not np.isfinite(W).all():
            return None
        return (
            W[:, :, self.base.kept],
            self.regressor.measured(moving, effort * given.effort) - known,
            W @ self.theta,
        )

    def left(self, given: Hypothesis, every: int = 1) -> Array | None:
        """Efforts that the file does not explain, each motor's over those measured, as one column."""
        found = self.rows(given, every)
        return None if found is None else ((found[1] - found[2]) / _sizes(found[1])).ravel()

    def off(self, given: Hypothesis) -> float:
        """Share of the efforts that the file does not explain, root mean square over motors."""
        left = self.left(given)
        return np.inf if left is None else float(np.linalg.norm(left))

    def unexplained(self, given: Hypothesis) -> float:
        """The same by any parameters."""
        found = self.rows(given)
        if found is None:
            return np.inf
        W, y, _ = found
        sizes = _sizes(y)
        flat, column = (W / sizes[:, None]).reshape(-1, W.shape[2]), (y / sizes).ravel()
        length = np.maximum(np.linalg.norm(flat, axis=0), 1e-300)
        found_values = np.linalg.lstsq(flat / length, column, rcond=1e-10)[0]
        return float(np.linalg.norm(column - flat / length @ found_values))


def _sliding(regressor: Regressor, rate: Array) -> Array:
    """Instants at which no motor with Coulomb friction is slow, where it may stick; all, where these are too few."""
    rubbing, speed = rubbing_motors(regressor), np.abs(rate)
    fast = np.flatnonzero((speed >= STICKS * speed.max(axis=0))[:, rubbing].all(axis=1))
    return fast if len(fast) >= FEWER else np.arange(len(rate))


def _sizes(effort: Array) -> Array:
    """Norm of each motor's efforts, times the root of their number: shares of motors count alike."""
    sizes = np.linalg.norm(effort, axis=0)
    return np.maximum(sizes, max(FAINT * float(sizes.max()), 1e-300)) * np.sqrt(effort.shape[1])


def suspicions(
    regressor: Regressor, base: BaseColumns, used: Sequence[Measurement], choice: FilterChoice
) -> list[str | None]:
    """Of each record: what is wrong with it, if one mistake explains it."""
    return [_suspicion(FileTrial(regressor, base, record, choice)) for record in used]


def mistake_that_closes(
    regressor: Regressor, base: BaseColumns, record: Measurement, choice: FilterChoice
) -> str | None:
    """Of positions at which loops do not close: with which mistake they do."""
    trial = FileTrial(regressor, base, record, choice)
    found = _counted_turns(trial) or _suspicion(trial) or _exchanged(regressor, base, record, choice)
    if found is not None:
        return found
    words = [(name, factors, unit_cure(name, unit)) for name, unit, factors in other_units(regressor)]
    words += [(one.words.removeprefix("with positions "), one.position, one.cure) for one in units_of_one(regressor)]
    for name, factors, cure in words:
        try:
            regressor.closed(smoothed(record, choice, record.in_other_units(factors)).position)
        except ParflexError:
            continue
        where = (
            f"the positions {name.replace(' in ', ' are ')}" if name.startswith("of ") else f"the positions are {name}"
        )
        return f"loops close where {where}, which efforts do not confirm: {cure}"
    return None


def _counted_turns(trial: FileTrial) -> str | None:
    """Encoders that count whole turns, where loops close without them, and parameters explain efforts."""
    turns = whole_turns(trial.regressor, trial.record.position[0])
    left = np.inf if turns is None else trial.unexplained(turns)
    if turns is None or not left < NEAR:
        return None
    return f"loops close {turns.words}, and parameters leave {100 * left:.3g} % of the efforts then: {turns.cure}"


def _exchanged(regressor: Regressor, base: BaseColumns, record: Measurement, choice: FilterChoice) -> str | None:
    """Two motors whose positions, or all columns, close the loops where exchanged, and parameters explain efforts."""
    trial = FileTrial(regressor, base, record, choice)
    found = [(trial.unexplained(one), one) for one in exchanges(regressor) if one.positions_of is not None]
    left, best = min(found, key=lambda one: one[0], default=(np.inf, None))
    if best is None or not left < NEAR:
        return None
    return f"loops close {best.words}, and parameters leave {100 * left:.3g} % of the efforts then: {best.cure}"


def far_positions(regressor: Regressor, record: Measurement, suspected: str | None) -> list[str]:
    """Warnings about motors that stand where none can; a unit is named unless something else explains the record."""
    name = Path(record.name).name
    turns = whole_turns(regressor, record.position[0])
    others = f": efforts are those {turns.words}; {turns.cure} if encoders count turns" if turns is not None else ""
    return [
        f"{name}: {where}: {blame}" if suspected is None or blame in suspected else f"{name}: {where}{others}"
        for where, blame in record.far
    ]


def _suspicion(trial: FileTrial) -> str | None:
    now, every = as_given(trial.regressor), usual_mistakes(trial.regressor)
    off = trial.off(now)
    seldom = trial.record.step >= SELDOM
    if not off > NEAR:
        every = [one for one in every if seldom and one.time != 1]
    if not every:
        return None
    fitted = trial.unexplained(now)

    def explaining(several: Sequence[Hypothesis], limit: float, right: float = 0.0) -> list[tuple[float, Hypothesis]]:
        found = []
        for one in several:
            late = seldom and one.time != 1
            wanted, better = (PLAINLY, NO_WORSE) if late else (NEARER, limit if off > FAR else BETTER)
            there = trial.off(one)
            if not there < min(wanted * off, EXPLAINED):
                continue
            if there <= right * fitted or trial.unexplained(one) <= better * fitted:
                found.append((there, one))
        return found

    known = explaining(every, NO_WORSE)
    if off > NEAR and not trial.regressor.spare:
        known += explaining(exchanges(trial.regressor), BETTER, RIGHT)
    zeros = explaining(_set_to_zero(trial), BETTER, RIGHT) if off > NEAR else []
    if not zeros and off > FAR:
        zeros = explaining(_other_zeros(trial), BETTER)
    best, least = (min((there for there, _ in some), default=np.inf) for some in (known, zeros))
    if least * LIKE < best:
        known, best = zeros, least
    if not known:
        return None
    alike = [one for there, one in known if there <= SAME * best]
    words = ", or ".join(one.words for one in alike)
    name = Path(trial.record.name).name
    if off == np.inf:
        return f"{name}: loops do not close, but {words}, and efforts are off by {100 * best:.3g} %: {alike[0].cure}"
    return (
        f"{name}: efforts by the numbers of the file are off by {100 * off:.3g} %, and by {100 * best:.3g} % {words}: "
        f"{alike[0].cure}"
    )


def _set_to_zero(trial: FileTrial) -> list[Hypothesis]:
    """Encoders set to zero at the start, with the zeros that fit best, where all begin at zero."""
    regressor, position = trial.regressor, trial.record.position
    way = np.maximum(np.ptp(position, axis=0), 1e-12)
    if not (np.abs(position[0] - trial.record.offset) <= AT_ZERO * way).all():
        return []
    home = regressor.robot.home[regressor.motor_q]
    offset = _fitted(trial, list(range(len(home))), [home - position[0]])
    return [] if offset is None else [shifted(regressor, offset, "where encoders were set to zero at the start")]


def _other_zeros(trial: FileTrial) -> list[Hypothesis]:
    """Each encoder alone with another zero: the one that fits best."""
    regressor, position = trial.regressor, trial.record.position
    home, found = regressor.robot.home[regressor.motor_q], []
    for k, motor in enumerate(regressor.robot.actuated_names if len(home) > 1 else ()):
        alone = np.where(np.arange(len(home)) == k, home - position[0], 0.0)
        offset = _fitted(trial, [k], [np.zeros(len(home)), alone])
        if offset is not None:
            given = shifted(regressor, offset, f"with another zero of '{motor}'")
            found.append(replace(given, cure=given.cure.replace("offset of", "offset of about")))  # as the file is
    return found


def _fitted(trial: FileTrial, varied: list[int], starts: Sequence[Array]) -> Array | None:
    """Offsets of some motors with which the file explains most, by Gauss's method from some starts."""
    every = max(1, len(trial.position) // FEWER)
    units = trial.regressor.robot.tree.rate_units[list(trial.regressor.robot.actuated)]
    best: Array | None = None
    least = np.inf

    def left(offset: Array) -> Array | None:
        return trial.left(shifted(trial.regressor, offset, ""), every)

    for start in starts:
        offset, now = start, left(start)
        if now is None:
            continue
        for _ in range(STEPS):
            step = _step(left, offset, now, varied, units)
            if step is None:
                break
            size, before = float(np.linalg.norm(now)), offset
            for k in range(HALVINGS):
                trial_now = left(before + step / 2**k)
                if trial_now is not None and np.linalg.norm(trial_now) < size:
                    offset, now = before + step / 2**k, trial_now
                    break
            if (np.abs(offset - before) < SETTLED * units).all():
                break
        if np.linalg.norm(now) < least:
            best, least = offset, float(np.linalg.norm(now))
    return best


def _step(
    left: Callable[[Array], Array | None], offset: Array, now: Array, varied: list[int], units: Array
) -> Array | None:
    """A step of Gauss's method, half a radian or typical length at most; None where loops do not close beside it."""
    slopes, width = [], BESIDE * units
    for k in varied:
        end = left(offset + width * (np.arange(len(width)) == k))
        if end is None:
            return None
        slopes.append((end - now) / BESIDE)
    step = np.zeros(len(offset))
    # a shift that no effort feels, such as that of all slides along one rail, stays as it is
    step[varied] = -np.linalg.lstsq(np.stack(slopes, axis=1), now, rcond=FELT)[0] * units[varied]
    return step * min(1.0, 0.5 / max(float(np.abs(step / units).max()), 1e-300))
