"""Common errors in records: units of time, positions and efforts, signs, whole turns and columns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from parflex.identification.regressor import Regressor
from parflex.records import Record

Array = np.ndarray
TURN = 2 * np.pi  # rad
DEGREE, MILLIMETRE = np.pi / 180, 1e-3
TIMES = {1e-3: "milliseconds", 1e-6: "microseconds"}
EFFORTS = {1e-3: ("mN m", "mN"), 1e3: ("kN m", "kN")}  # of motors that turn, and of those that slide


@dataclass(frozen=True, eq=False, repr=False)
class Hypothesis(Record):
    """Factors that a record lacks, in words: of time, of the positions and efforts of each motor, and offsets."""

    words: str
    cure: str
    position: Array
    effort: Array
    offset: Array
    time: float = 1.0
    positions_of: list[int] | None = None  # whose column each motor has; None: its own
    efforts_of: list[int] | None = None


def turning(regressor: Regressor) -> Array:
    """Which of the motors turn."""
    tree = regressor.robot.tree
    return np.array([tree.links[tree.link_of_rate[k]].joint.unit == "rad" for k in regressor.robot.actuated])


def other_units(regressor: Regressor) -> list[tuple[str, float, Array]]:
    """Units of positions by name, what each is, and factors of all motors: of those that turn, or that slide."""
    turns = turning(regressor)
    both = (("degrees", DEGREE, turns), ("millimetres", MILLIMETRE, ~turns))
    return [(name, unit, np.where(those, unit, 1.0)) for name, unit, those in both if those.any()]


def units_of_one(regressor: Regressor) -> list[Hypothesis]:
    """One motor of several whose positions have another unit than its own."""
    motors, turns = list(regressor.robot.actuated_names), turning(regressor)
    ones, found = np.ones(len(motors)), []
    for k, motor in enumerate(motors if len(motors) > 1 else ()):
        name, unit = ("degrees", DEGREE) if turns[k] else ("millimetres", MILLIMETRE)
        factors = np.where(np.arange(len(motors)) == k, unit, 1.0)
        cure = f"if they are {name}, give its gain = {unit:.9g}"
        found.append(Hypothesis(f"with positions of '{motor}' in {name}", cure, factors, ones, 0 * ones))
    return found


def as_given(regressor: Regressor) -> Hypothesis:
    """Nothing is wrong."""
    ones = np.ones(len(regressor.motor_q))
    return Hypothesis("as they are", "", ones, ones, 0 * ones)


def unit_cure(name: str, unit: float) -> str:
    """What to do about positions in another unit."""
    return f"if they are {name}, give gain = {unit:.9g}"


def usual_mistakes(regressor: Regressor) -> list[Hypothesis]:
    """Units, and signs of all motors and of each one."""
    motors = list(regressor.robot.actuated_names)
    ones, none = np.ones(len(motors)), np.zeros(len(motors))
    turns = turning(regressor)
    found = [
        Hypothesis(f"with positions in {name}", unit_cure(name, unit), factors, ones, none)
        for name, unit, factors in other_units(regressor)
    ]
    # of one motor, where that is not all of its kind
    found += [one for one in units_of_one(regressor) if not any((one.position == two.position).all() for two in found)]
    found += [
        Hypothesis(f"with time in {name}", f"if it is, give time gain = {unit:g}", ones, ones, none, unit)
        for unit, name in TIMES.items()
    ]
    for unit, names in EFFORTS.items():
        said = names[0] if turns.all() else names[1] if not turns.any() else " and ".join(names)
        cure = f"if they are, give each effort gain = {unit:g}"
        found.append(Hypothesis(f"with efforts in {said}", cure, ones, unit * ones, none))
    groups = [(f"of '{motor}'", np.where(np.arange(len(motors)) == k, -1.0, 1.0)) for k, motor in enumerate(motors)]
    groups += [("of all motors", -ones)] if len(motors) > 1 else []
    for whose, sign in groups:
        cure = "check its sign, or give -1 times the gain" if "all" not in whose else "give -1 times the gains"
        found.append(Hypothesis(f"with the sign of efforts {whose} changed", cure, ones, sign, none))
        found.append(Hypothesis(f"with the sign of positions {whose} changed", cure, sign, ones, none))
        found.append(Hypothesis(f"with the signs of positions and efforts {whose} changed", cure, sign, sign, none))
    return found


def exchanges(regressor: Regressor) -> list[Hypothesis]:
    """Two motors that have the columns of each other: all of them, positions or efforts."""
    motors = list(regressor.robot.actuated_names)
    ones, found = np.ones(len(motors)), []
    for i, j in combinations(range(len(motors)), 2):
        other = list(range(len(motors)))
        other[i], other[j] = j, i
        for what, positions, efforts in (
            ("all columns", other, other), ("positions", other, None), ("efforts", None, other),
        ):  # fmt: skip
            words = f"with {what} of '{motors[i]}' and '{motors[j]}' exchanged"
            found.append(Hypothesis(words, "check their columns", ones, ones, 0 * ones, 1.0, positions, efforts))
    return found


def shifted(regressor: Regressor, offset: Array, words: str) -> Hypothesis:
    """Encoders whose zero is elsewhere."""
    ones = np.ones(len(offset))
    units = np.where(turning(regressor), "rad", "m")
    motors = regressor.robot.actuated_names
    more = ", ".join(
        f"{value:.4g} {unit} of '{motor}'" for value, unit, motor in zip(offset, units, motors, strict=True) if value
    )
    return Hypothesis(words, f"add an offset of {more}", ones, ones, offset)


def whole_turns(regressor: Regressor, position: Array) -> Hypothesis | None:
    """Encoders that count whole turns from where the robot file has none, by where motors stand; None: none does."""
    away = np.where(turning(regressor), (position - regressor.robot.home[regressor.motor_q]) / TURN, 0.0)
    turns = np.round(away)
    if not turns.any():
        return None
    motors = regressor.robot.actuated_names
    said = [
        f"'{motor}' {abs(count):.0f} whole turn{'s' if abs(count) > 1 else ''} {'back' if count > 0 else 'on'}"
        for count, motor in zip(turns, motors, strict=True) if count
    ]  # fmt: skip
    return shifted(regressor, -TURN * turns, f"with {' and '.join(said)}")
