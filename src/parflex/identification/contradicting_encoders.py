"""Encoders of redundant motors that contradict each other through the loops.

Each motor is left out in turn: the others determine its position through the loops. Its recorded positions then differ
by a zero, a sign or a gain, or are constant. The motor whose one error removes the contradiction is named, or several
if they remove it equally.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import ParflexError
from parflex.identification.lack_of_fit import position_noise
from parflex.identification.preprocess import FilterChoice, filtered_motion, kept_instants
from parflex.identification.recordings import Recording
from parflex.identification.regressor import Regressor
from parflex.records import Record
from parflex.recursion.kinematics import pose

Array = np.ndarray
NEAREST = 2e-3  # rad, or typical lengths: less is calibration
INSTANTS = 20  # of a record, at which loops are asked whether they close
SURE = 6.0  # deviations of the noise of positions, by which a single one is off
MOST = 0.95  # of the instants
REMOVED = 0.02  # of the contradiction, what a mistake may leave that is named
FLOOR = 0.1  # of the least: mistakes that leave less are alike
ALIKE = 2.0  # times what the best leaves: records do not tell which of two motors it is
STILL = 0.02  # of the way that loops give: a motor that moves less rests
PLAIN = 0.02  # of a gain: nearer ones are that gain
TURN = 2 * np.pi  # rad
SEVERAL = "no zero, sign or gain of one encoder explains it; check those of several, and lengths of the file"


@dataclass(frozen=True, eq=False, repr=False)
class _Mistake(Record):
    """What is wrong with an encoder, and how far positions are from those of the loops without it."""

    left: float
    words: str


def contradictions(regressor: Regressor, records: Sequence[Recording], choice: FilterChoice) -> list[Diagnostic]:
    """Diagnostics of records in which motors stand where loops do not let them, and with which mistake they would."""
    if not regressor.spare or not regressor.robot.closures.size:
        return []
    found, length = [], regressor.robot.tree.length
    for record in records:
        position = kept_instants(filtered_motion(record, choice).position, choice)
        open_by = _open(regressor, position)
        units = regressor.robot.tree.rate_units[list(regressor.robot.actuated)]
        by_noise = float((position_noise(record) / units).max()) * length
        if open_by > max(NEAREST * length, SURE * by_noise):
            beside = f", {open_by / by_noise:.2g} times what their noise does" if by_noise else ""
            wrong = encoder_that_is_wrong(regressor, record, choice) or SEVERAL
            text = (
                f"{Path(record.name).name}: positions of the motors contradict each other, as loops stay open by up to "
                f"{1e3 * open_by:.2g} mm{beside}: {wrong}"
            )
            found.append(Diagnostic("contradicting-encoders", text, record.name, open_by))
    return found


def _open(regressor: Regressor, position: Array) -> float:
    """How far loops stay open at some instants, where motors stand so (m)."""
    some = position[np.unique(np.linspace(0, len(position) - 1, INSTANTS).astype(int))]
    tree, closures = regressor.robot.tree, regressor.robot.closures
    return max(float(np.abs(closures.residual(pose(tree, q))).max()) for q in regressor.closed(some))


def encoder_that_is_wrong(regressor: Regressor, record: Recording, choice: FilterChoice) -> str | None:
    """The mistake of one encoder with which loops close, in words; None where there is none."""
    position, tried = kept_instants(filtered_motion(record, choice).position, choice), []
    for k in range(len(regressor.motor_q)):
        by_others = _by_others(regressor, position, k)
        if by_others is not None:
            tried += _mistakes(regressor, record, k, position[:, k], by_others)
    best = min((one.left for one in tried), default=np.inf)
    alike = [one.words for one in tried if one.left <= ALIKE * best]
    return f"they agree {', or '.join(alike)}" if alike else None


def _by_others(regressor: Regressor, position: Array, motor: int) -> Array | None:
    """Where a motor stands by the positions of the others; None where these do not tell it."""
    robot = regressor.robot
    others = [k for k in range(len(robot.actuated)) if k != motor]
    fewer = replace(robot, actuated=tuple(robot.actuated[k] for k in others), known_home=robot.home)
    try:
        return Regressor(fewer, regressor.unknowns).closed(position[:, others])[:, regressor.motor_q[motor]]
    except ParflexError:
        return None


def _mistakes(regressor: Regressor, record: Recording, motor: int, recorded: Array, by_others: Array) -> list[_Mistake]:
    """A mistake of an encoder that explains where others see its motor, if there is one; in units of its least."""
    name, unit = regressor.robot.actuated_names[motor], _units(regressor)[motor]
    least, way = float(_least(regressor, record)[motor]), float(np.ptp(by_others))
    shift = float(np.median(recorded - by_others))
    whole = TURN * round(shift / TURN) if unit == "rad" else 0.0
    contradiction = float(np.quantile(np.abs(recorded - by_others - whole), MOST))

    def named(left: Array, words: str) -> list[_Mistake]:
        size = float(np.quantile(np.abs(left), MOST))
        return [_Mistake(max(size / least, FLOOR), words)] if size < max(REMOVED * contradiction, least) else []

    if np.ptp(recorded) < STILL * way:
        moves = f"without '{name}', which does not move though loops move it by {way:.3g} {unit}: check its encoder"
        return [_Mistake(FLOOR, moves)]
    off = shift - whole
    if abs(off) > least:
        words = f"with the zero of '{name}' off by {off:.3g} {unit}: add {-shift:.4g} {unit} to its offset"
    else:
        words = f"with '{name}' whole turns off: add {-whole:.4g} {unit} to its offset"
    found = named(recorded - by_others - shift, words) if abs(off) > least or whole else []
    if found:
        return found
    gain, _ = np.polyfit(by_others, recorded, 1)
    for plain in (-1.0, float(gain)):
        if abs(gain - plain) <= PLAIN * abs(plain) and gain:
            left = recorded - plain * by_others
            left = (left - np.median(left)) / plain
            times = "-1" if plain == -1 else f"{1 / plain:.4g}"
            what = "the other sign" if plain == -1 else "another gain"
            words = (
                f"with {what} of positions of '{name}': give {times} times its gain, and an offset with which it is "
                f"{by_others[0]:.4g} {unit} where it is {recorded[0]:.4g} now"
            )
            if found := named(left, words):
                break
    return found


def _least(regressor: Regressor, record: Recording) -> Array:
    """By how much positions of each motor must be off to be told."""
    units = regressor.robot.tree.rate_units[list(regressor.robot.actuated)]
    return np.asarray(np.maximum(NEAREST * units, SURE * position_noise(record)))


def _units(regressor: Regressor) -> list[str]:
    tree = regressor.robot.tree
    return [tree.links[tree.link_of_rate[k]].joint.unit for k in regressor.robot.actuated]
