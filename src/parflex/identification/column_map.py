"""Which columns of a record are what: a small TOML file beside the measurements."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from parflex.checks import integer, number, one_of, short_text
from parflex.errors import InputError, did_you_mean
from parflex.records import Record

KEYS = ("time", "position", "effort", "reference", "controller", "payload")
LAWS = {"cascade": ("kp", "kv"), "pd": ("stiffness", "damping"), "ctc": ("Kp", "Kv")}
RATES = ("measured", "differences")
MOST_DELAY = 1000  # samples
ENTRY = ("column", "gain", "offset")


@dataclass(frozen=True, eq=False, repr=False)
class Column(Record):
    """A column of a file: the value is `gain` times its numbers, and `offset`."""

    column: str
    gain: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False, repr=False)
class FeedbackLaw(Record):
    """The controller of the measured robot, for simulations under it.

    "cascade": signal = kv (kp (reference - position) - rate); "pd": effort = stiffness (reference - position) + damping
    (its rate - rate). The signal is limited, then times the gain of the motor's effort column. "ctc": computed torque
    of the robot as its file says.
    """

    law: str
    gains: tuple[tuple[float, ...], tuple[float, ...]]  # of each motor
    limit: float = float("inf")
    sample_time: float | None = None
    rates: str = "measured"  # or "differences" of measured positions
    delay: int = 0  # samples from sensing to effort


@dataclass(frozen=True, eq=False, repr=False)
class ColumnMap(Record):
    """Columns by motor, the controller, and known payloads by record."""

    time: Column
    position: dict[str, Column]
    effort: dict[str, Column]
    reference: dict[str, Column] = field(default_factory=dict)
    controller: FeedbackLaw | None = None
    payload: dict[str, tuple[float, float, float, float]] = field(default_factory=dict)
    file: str = ""
    passive: dict[str, Column] = field(default_factory=dict)  # of joints that are no motors
    named: bool = True  # whether columns of passive joints must be there


def read_column_map(
    source: str | Path | Mapping[str, Any] | None, motors: list[str], passive: Sequence[str] = ()
) -> ColumnMap:
    """The map from a file or table; without one, columns as those of `simulate`: t, q.JOINT, effort.JOINT.

    `passive` are joints that may have a sensor beside the motors.
    """
    if source is None:
        plain = {"time": "t", "position": {m: f"q.{m}" for m in motors}, "effort": {m: f"effort.{m}" for m in motors}}
        return replace(
            read_column_map(plain, motors), passive={joint: Column(f"q.{joint}") for joint in passive}, named=False
        )
    file, table = ("", source) if isinstance(source, Mapping) else (str(source), _read(source))
    try:
        return _map(table, motors, file, passive)
    except InputError as error:
        error.file = error.file or file or None
        raise


def _read(path: str | Path) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror or error})", file=str(path), key="columns", value=str(path),
            hint="check the path",
        ) from None  # fmt: skip
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"is not TOML: {error}", file=str(path), key="columns", value=str(path), hint="correct that line"
        ) from None


def _map(table: Mapping[str, Any], motors: list[str], file: str, passive: Sequence[str]) -> ColumnMap:
    for key in table:
        if key not in KEYS:
            raise InputError(
                f"unknown key '{key}'", key=key, value=short_text(table[key]), hint=did_you_mean(key, KEYS)
            )
    given = table.get("position", {})
    sensors = (
        {joint: entry for joint, entry in _flat(given).items() if joint in passive}
        if isinstance(given, Mapping)
        else {}
    )
    own = {joint: entry for joint, entry in _flat(given).items() if joint not in sensors} if sensors else given
    position, effort = (
        _columns({**table, "position": own}, key, motors, needed=True) for key in ("position", "effort")
    )
    others = {joint: _column(entry, f"position.{joint}") for joint, entry in sensors.items()}
    _refuse_shared({**position, **others}, effort)
    return ColumnMap(
        _column(table.get("time", "t"), "time"), position, effort, _columns(table, "reference", motors),
        _controller(table.get("controller"), motors), _payloads(table.get("payload", {})), file, others,
    )  # fmt: skip


def _columns(table: Mapping[str, Any], key: str, motors: list[str], needed: bool = False) -> dict[str, Column]:
    given = table.get(key, {})
    if not isinstance(given, Mapping):
        raise InputError(
            f"'{key}' is a table of joints", key=key, value=short_text(given), hint=f'{key}.JOINT = "COLUMN"'
        )
    flat = _flat(given)
    for joint in flat:
        if joint not in motors:
            raise InputError(f"'{joint}' is not a motor", key=f"{key}.{joint}", value=joint,
                             hint=did_you_mean(joint, motors))  # fmt: skip
    missing = [motor for motor in motors if motor not in flat]
    if (needed or flat) and missing:
        raise InputError(
            f"the {key} of '{missing[0]}' is missing", key=key, value=missing[0],
            hint=f'add "{missing[0]}" = "COLUMN" to [{key}]',
        )  # fmt: skip
    return {motor: _column(flat[motor], f"{key}.{motor}") for motor in motors if motor in flat}


def _refuse_shared(position: Mapping[str, Column], effort: Mapping[str, Column]) -> None:
    """Refuse a column that is named twice: one signal is not two."""
    seen: dict[str, str] = {}
    for key, columns in (("position", position), ("effort", effort)):
        for motor, one in columns.items():
            if one.column in seen:
                raise InputError(
                    f"the column '{one.column}' is that of {seen[one.column]}, too", key=f"{key}.{motor}",
                    value=one.column, hint="give each its own column; copy it where two drives share a signal",
                )  # fmt: skip
            seen[one.column] = f"{key}.{motor}"


def _flat(given: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Names with dots that were written without quotes are tables in TOML."""
    found: dict[str, Any] = {}
    for name, entry in given.items():
        if isinstance(entry, Mapping) and not set(entry) & set(ENTRY):
            found |= _flat(entry, f"{before}{name}.")
        else:
            found[before + str(name)] = entry
    return found


def _column(entry: Any, key: str) -> Column:
    if isinstance(entry, str):
        return Column(entry)
    if not isinstance(entry, Mapping) or not isinstance(entry.get("column"), str):
        raise InputError(
            "the name of a column is expected here", key=key, value=short_text(entry),
            hint='write "COLUMN" or { column = "COLUMN", gain = 2.5 }',
        )  # fmt: skip
    for word in entry:
        if word not in ENTRY:
            raise InputError(f"unknown key '{word}'", key=f"{key}.{word}", value=short_text(entry[word]),
                             hint=did_you_mean(word, ENTRY))  # fmt: skip
    gain = float(number(entry.get("gain", 1.0), f"{key}.gain"))
    if gain == 0:
        raise InputError("a gain of zero leaves nothing of the column", key=f"{key}.gain", value=0.0,
                         hint="give the gain of the drive")  # fmt: skip
    return Column(entry["column"], gain, float(number(entry.get("offset", 0.0), f"{key}.offset")))


def _controller(given: Any, motors: list[str]) -> FeedbackLaw | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InputError("'controller' is a table", key="controller", value=short_text(given),
                         hint='law = "cascade", kp = ..., kv = ...')  # fmt: skip
    law = given.get("law", next((name for name, words in LAWS.items() if words[0] in given), "cascade"))
    if law not in LAWS:
        raise InputError(f"there is no law '{law}'", key="controller.law", value=short_text(law),
                         hint=did_you_mean(str(law), LAWS))  # fmt: skip
    words = ("law", "limit", "sample_time", "rates", "delay", *LAWS[law])
    for word in given:
        if word not in words:
            raise InputError(f"unknown key '{word}'", key=f"controller.{word}", value=short_text(given[word]),
                             hint=did_you_mean(word, words))  # fmt: skip
    for word in LAWS[law]:
        if word not in given:
            raise InputError(f"key '{word}' is missing", key=f"controller.{word}", hint=f"add {word} = ...")
    first, second = (_gains(given[word], f"controller.{word}", motors) for word in LAWS[law])
    if law == "ctc" and len({*first}) + len({*second}) > 2:
        raise InputError("computed torque has one gain for all motors", key="controller.Kp", value=short_text(given["Kp"]),
                         hint="give a number")  # fmt: skip
    limit = float(number(given["limit"], "controller.limit", above=0.0)) if "limit" in given else float("inf")
    sample = given.get("sample_time")
    time = None if sample is None else float(number(sample, "controller.sample_time", above=0.0))
    rates = str(one_of(given.get("rates", "measured"), RATES, "controller.rates"))
    delay = integer(given.get("delay", 0), "controller.delay", 0, MOST_DELAY)
    return FeedbackLaw(law, (first, second), limit, time, rates, delay)


def _gains(given: Any, key: str, motors: list[str]) -> tuple[float, ...]:
    """One gain for all motors, or one for each by name."""
    if not isinstance(given, Mapping):
        return (float(number(given, key)),) * len(motors)
    flat = _flat(given)
    for joint in flat:
        if joint not in motors:
            raise InputError(f"'{joint}' is not a motor", key=f"{key}.{joint}", value=joint,
                             hint=did_you_mean(joint, motors))  # fmt: skip
    missing = [motor for motor in motors if motor not in flat]
    if missing:
        raise InputError(f"the gain of '{missing[0]}' is missing", key=key, value=missing[0],
                         hint="name all motors, or give one number")  # fmt: skip
    return tuple(float(number(flat[motor], f"{key}.{motor}")) for motor in motors)


def _payloads(given: Any) -> dict[str, tuple[float, float, float, float]]:
    if not isinstance(given, Mapping):
        raise InputError("'payload' is a table of records", key="payload", value=short_text(given),
                         hint='"loaded.csv" = [2.5, 0, 0, 0.1]')  # fmt: skip
    found: dict[str, tuple[float, float, float, float]] = {}
    for record, entry in given.items():
        row = list(entry) if isinstance(entry, (list, tuple)) else []
        if len(row) != 4:
            raise InputError(
                "a payload is mass, x, y, z in the axes of the end effector", key=f"payload.{record}",
                value=short_text(entry), hint="write [2.5, 0, 0, 0.1]",
            )  # fmt: skip
        if float(number(row[0], f"payload.{record}")) < 0:
            raise InputError("the mass of a payload is negative", key=f"payload.{record}", value=short_text(entry),
                             hint="give what the robot carries in this record")  # fmt: skip
        found[str(record)] = tuple(float(number(value, f"payload.{record}")) for value in row)  # type: ignore[assignment]
    return found
