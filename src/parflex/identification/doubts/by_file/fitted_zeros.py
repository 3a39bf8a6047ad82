"""Zeros of encoders with which efforts are explained best, and how well they are told, by Gauss's method.

Efforts of the file tell them as well as its numbers are: what is still off may lean on any direction. With parameters
free, noise alone is left, and zeros that parameters do not follow are told to it. The better of the two is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from parflex.identification.doubts.by_file.file_trial import FileTrial
from parflex.identification.doubts.by_file.hypotheses import TURN, Hypothesis, shifted, turning
from parflex.records import Record

Array = np.ndarray
FEWER = 80  # instants of a record, in which zeros are looked for by the file
STEPS, HALVINGS = 25, 6  # of Gauss's method
SETTLED, BESIDE = 1e-4, 1e-5  # rad, or typical lengths, of a last step, and of differences
FELT = 1e-3  # of the shift that efforts feel most: others that they feel less are not looked for at first
TOLD = 0.2  # rad, or typical lengths: what may be off by more is not told
FARTHEST = 2.0  # typical lengths from home, where slides begin at most
CORRELATED = 3.0  # times the deviation of independent residuals: filtered ones of neighbours are alike
AT_ZERO = 0.02  # of its way: a motor that begins so near to zero may have been set to zero there
NO_ZERO = 1e-3  # rad, or typical lengths: a smaller offset is none


@dataclass(frozen=True, eq=False, repr=False)
class FittedZeros(Record):
    """Offsets of positions, their deviations, and motors along which a shift is not told (it stays as it was)."""

    offset: Array
    deviation: Array
    free: Array


def set_to_zero(trial: FileTrial) -> list[Hypothesis]:
    """Encoders set to zero at the start, with the zeros that fit best, where all begin at zero."""
    regressor, position = trial.regressor, trial.record.position
    way = np.maximum(np.ptp(position, axis=0), 1e-12)
    if not (np.abs(position[0] - trial.record.offset) <= AT_ZERO * way).all():
        return []
    home = regressor.robot.home[regressor.motor_q]
    found = fitted_zeros(trial, list(range(len(home))), [home - position[0]])
    return [] if found is None else [_named(trial, found, "where encoders were set to zero at the start")]


def other_zeros(trial: FileTrial) -> list[Hypothesis]:
    """Each encoder alone with another zero: the one that fits best."""
    regressor, position = trial.regressor, trial.record.position
    home, found = regressor.robot.home[regressor.motor_q], []
    for k, motor in enumerate(regressor.robot.actuated_names if len(home) > 1 else ()):
        alone = np.where(np.arange(len(home)) == k, home - position[0], 0.0)
        zeros = fitted_zeros(trial, [k], [np.zeros(len(home)), alone])
        if zeros is not None and abs(zeros.offset[k]) > NO_ZERO * _units(trial)[k] and not zeros.free[k]:
            found.append(_named(trial, zeros, f"with another zero of '{motor}'"))
    return found


def fitted_zeros(trial: FileTrial, varied: list[int], starts: Sequence[Array]) -> FittedZeros | None:
    """Zeros of some motors that explain efforts best: by the file, or by any parameters, whichever tells them better.

    None where no search ends, or only where the robot cannot be.
    """
    every = max(1, len(trial.position) // FEWER)

    def by_file(offset: Array) -> Array | None:
        return trial.left(shifted(trial.regressor, offset, ""), every)

    def by_any(offset: Array) -> Array | None:
        return trial.left_by_any(shifted(trial.regressor, offset, ""))

    rough = _least(trial, by_file, varied, starts, lambda left: float(np.linalg.norm(left)))
    first = list(starts) if rough is None else [rough.offset]
    # parameters take columns of their own from the rows
    parameters = len(trial.base.kept) + len(varied)

    def spread(left: Array) -> float:
        return CORRELATED * float(np.linalg.norm(left)) / np.sqrt(max(len(left) - parameters, 1))

    fine = _least(trial, by_any, varied, first, spread)
    found = [one for one in (rough, fine) if one is not None]
    best = min(found, key=lambda one: (one.free.sum(), one.deviation.max()), default=None)
    if best is None:
        return None
    turns = np.where(turning(trial.regressor), TURN * np.round(best.offset / TURN), 0.0)
    whole = best.offset - turns  # whole turns are no offset
    return FittedZeros(whole if by_any(whole) is not None else best.offset, best.deviation, best.free)


def _least(
    trial: FileTrial, left: Callable[[Array], Array | None], varied: list[int], starts: Sequence[Array],
    spread: Callable[[Array], float],
) -> FittedZeros | None:  # fmt: skip
    """Where least is left, of the places at which searches from some starts end."""
    found = [one for start in starts if (one := _followed(trial, left, varied, start, spread)) is not None]
    return min(found, key=lambda one: one[0])[1] if found else None


def _followed(
    trial: FileTrial, left: Callable[[Array], Array | None], varied: list[int], start: Array,
    spread: Callable[[Array], float],
) -> tuple[float, FittedZeros] | None:  # fmt: skip
    """What is left where the search from a start ends, and its zeros; None where it does not end.

    Shifts that turn out not to be told stay as they were: the search is repeated without them.
    """
    units, kept = _units(trial), np.zeros((0, len(varied)))
    for _ in range(len(varied)):
        ended = _ending(left, varied, start, units, spread, kept)
        if ended is None:
            return None
        offset, now, S, V = ended
        by_direction = spread(now) / np.maximum(S, 1e-300)
        told = by_direction < TOLD
        if len(kept) == np.count_nonzero(~told):
            break
        kept = V[~told]
    if not told.any() or not _reached(trial, offset):
        return None
    deviation, free = np.zeros(len(offset)), np.zeros(len(offset), dtype=bool)
    deviation[varied] = np.sqrt(((V[told] * by_direction[told, None]) ** 2).sum(axis=0)) * units[varied]
    free[varied] = (np.abs(kept) > TOLD).any(axis=0)
    return float(np.linalg.norm(now)), FittedZeros(offset, deviation, free)


def _ending(
    left: Callable[[Array], Array | None], varied: list[int], start: Array, units: Array,
    spread: Callable[[Array], float], kept: Array,
) -> tuple[Array, Array, Array, Array] | None:  # fmt: skip
    """Where Gauss's method ends without shifts that are kept, what is left there, and by singular values how felt."""
    offset, now = start, left(start)
    if now is None:
        return None
    for _ in range(STEPS):
        slopes = _slopes(left, offset, now, varied, units)
        if slopes is None:
            return None
        S, V = np.linalg.svd(slopes, full_matrices=False)[1:]
        along = slopes - slopes @ kept.T @ kept
        u, s, v = np.linalg.svd(along, full_matrices=False)
        felt = s > FELT * max(float(s[0]), 1e-300)
        # a shift that no effort feels, such as that of all slides along one rail, stays as it is
        step = np.zeros(len(offset))
        step[varied] = -(v.T[:, felt] @ ((u.T[felt] @ now) / s[felt])) * units[varied]
        step = step * min(1.0, 0.5 / max(float(np.abs(step / units).max()), 1e-300))
        size, before = float(np.linalg.norm(now)), offset
        for k in range(HALVINGS):
            there = left(before + step / 2**k)
            if there is not None and np.linalg.norm(there) < size:
                offset, now = before + step / 2**k, there
                break
        if (np.abs(offset - before) < SETTLED * units).all():
            return offset, now, S, V
    return None


def _slopes(
    left: Callable[[Array], Array | None], offset: Array, now: Array, varied: list[int], units: Array
) -> Array | None:
    """What is left per radian or typical length of some zeros; None where loops do not close beside it."""
    slopes = []
    for k in varied:
        end = left(offset + BESIDE * units * (np.arange(len(units)) == k))
        if end is None:
            return None
        slopes.append((end - now) / BESIDE)
    return np.stack(slopes, axis=1)


def _reached(trial: FileTrial, offset: Array) -> bool:
    """Whether a robot with such zeros can be where it begins: slides not far from home, motors within their limits."""
    robot, turns = trial.regressor.robot, turning(trial.regressor)
    position = trial.record.position + offset
    far = np.abs(position[0] - robot.home[trial.regressor.motor_q]) > FARTHEST * _units(trial)
    links = [robot.tree.links[robot.tree.link_of_rate[k]] for k in robot.actuated]
    beyond = [
        link.limits is not None and (column.min() < link.limits[0] or column.max() > link.limits[1])
        for link, column in zip(links, position.T, strict=True)
    ]
    return not ((far | np.array(beyond)) & ~turns).any()


def _units(trial: FileTrial) -> Array:
    """Radians and typical lengths of the motors."""
    return np.asarray(trial.regressor.robot.tree.rate_units[list(trial.regressor.robot.actuated)])


def _named(trial: FileTrial, zeros: FittedZeros, words: str) -> Hypothesis:
    """A hypothesis that says how well its offsets are told."""
    units = np.where(turning(trial.regressor), "rad", "m")
    motors = trial.regressor.robot.actuated_names
    said = [
        f"{value:.4g} +- {deviation:.1g} {unit} of '{motor}'"
        for value, deviation, unit, motor in zip(zeros.offset, zeros.deviation, units, motors, strict=True)
        if value
    ]
    free = [f"'{motor}'" for motor, shift in zip(motors, zeros.free, strict=True) if shift]
    together = " together" if len(free) > 1 else ""
    more = f"; a shift of {' and '.join(free)}{together} is not told, and is that of home" if free else ""
    ones = np.ones(len(motors))
    return Hypothesis(words, f"add an offset of {', '.join(said)}{more}", ones, ones, zeros.offset)
