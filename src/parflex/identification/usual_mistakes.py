"""Search for another unit, sign or column with which the robot file explains a record.

Where efforts by the numbers of the file differ much from the recorded ones, each common error is judged by the share of
the efforts that the file then explains. It must explain most of them, and no parameters of the robot may explain the
record better without it: a file with rough numbers is not an error of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import ParflexError
from parflex.identification.file_trial import FileTrial
from parflex.identification.hypotheses import (
    DEGREE,
    TURN,
    Hypothesis,
    as_given,
    exchanges,
    other_units,
    turning,
    unit_cure,
    units_of_one,
    usual_mistakes,
    whole_turns,
)
from parflex.identification.preprocess import FilterChoice, filtered_motion
from parflex.identification.recordings import BEYOND, Recording
from parflex.identification.regressor import Regressor
from parflex.identification.regressor_columns import BaseColumns

Array = np.ndarray
FAR = 0.5  # of the efforts, by which those of the file are off where something is wrong
NEAR = 0.1  # of the same: where they are no more, nothing is asked
NEARER = 0.5  # of that, where a mistake explains it
EXPLAINED = 0.3  # of the efforts, by which they may still be off then: nine tenths of their power are explained
NO_WORSE = 1.1  # times what parameters leave without it: units and signs do not make records worse
BETTER = 0.8  # times the same, where the file alone determines little, or columns are exchanged
RIGHT = 1.2  # times the same: the file with it is as good as any parameters, so it is right
SAME = 1.02  # times the best: records do not tell these apart
SELDOM = 0.1  # s between samples: no robot is recorded so seldom, and where efforts are mostly weights they hardly tell
PLAINLY = 0.9  # of what the file is off by, where another unit of time explains it then


def suspicions(
    regressor: Regressor, base: BaseColumns, used: Sequence[Recording], choice: FilterChoice
) -> list[str | None]:
    """Of each record: what is wrong with it, if one mistake explains it."""
    return [_suspicion(FileTrial(regressor, base, record, choice)) for record in used]


def mistake_that_closes(regressor: Regressor, base: BaseColumns, record: Recording, choice: FilterChoice) -> str | None:
    """Of positions at which loops do not close: with which mistake they do."""
    trial = FileTrial(regressor, base, record, choice)
    found = _counted_turns(trial) or _suspicion(trial) or _exchanged(regressor, base, record, choice)
    if found is not None:
        return found
    words = [(name, factors, unit_cure(name, unit)) for name, unit, factors in other_units(regressor)]
    words += [(one.words.removeprefix("with positions "), one.position, one.cure) for one in units_of_one(regressor)]
    for name, factors, cure in words:
        try:
            regressor.closed(filtered_motion(record, choice, record.in_other_units(factors)).position)
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


def _exchanged(regressor: Regressor, base: BaseColumns, record: Recording, choice: FilterChoice) -> str | None:
    """Two motors whose positions, or all columns, close the loops where exchanged, and parameters explain efforts."""
    trial = FileTrial(regressor, base, record, choice)
    found = [(trial.unexplained(one), one) for one in exchanges(regressor) if one.positions_of is not None]
    left, best = min(found, key=lambda one: one[0], default=(np.inf, None))
    if best is None or not left < NEAR:
        return None
    return f"loops close {best.words}, and parameters leave {100 * left:.3g} % of the efforts then: {best.cure}"


def far_positions(trial: FileTrial, suspected: str | None) -> list[Diagnostic]:
    """Diagnostics of motors that stand where none can; a unit is named unless something else explains the record.

    Nothing is said of cranks that turn on and on, where efforts are those of radians.
    """
    regressor, record = trial.regressor, trial.record
    name = Path(record.name).name
    if all(BEYOND not in where for where, _ in record.far) and _turns_on(trial):
        return []
    turns = whole_turns(regressor, record.position[0])
    others = f": efforts are those {turns.words}; {turns.cure} if encoders count turns" if turns is not None else ""
    texts = [
        f"{name}: {where}: {blame}" if suspected is None or blame in suspected else f"{name}: {where}{others}"
        for where, blame in record.far
    ]
    return [Diagnostic("far-positions", text, record.name) for text in texts]


def _turns_on(trial: FileTrial) -> bool:
    """Whether motors turn by more than a turn, and any parameters explain efforts, but not where these are degrees."""
    turns = (np.ptp(trial.record.position, axis=0) > TURN) & turning(trial.regressor)
    if not turns.any():
        return False
    now = as_given(trial.regressor)
    left = trial.unexplained(now)
    return left < NEAR and left < NEARER * trial.unexplained(replace(now, position=np.where(turns, DEGREE, 1.0)))


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
    if not known:
        return None
    best = min(there for there, _ in known)
    alike = [one for there, one in known if there <= SAME * best]
    words, cure = (
        ", or ".join(dict.fromkeys(several)) for several in ([one.words for one in alike], [one.cure for one in alike])
    )
    name = Path(trial.record.name).name
    if off == np.inf:
        return f"{name}: loops do not close, but {words}, and efforts are off by {100 * best:.3g} %: {cure}"
    return (
        f"{name}: efforts by the numbers of the file are off by {100 * off:.3g} %, and by {100 * best:.3g} % {words}: "
        f"{cure}"
    )
