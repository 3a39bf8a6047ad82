"""Recordings: CSV, npz and MATLAB files, column maps, clocks and outliers.

Time stamps vary about a regular clock for two reasons. Logging software stamps regular samples late; a loop that waits
samples at changing times, and its stamps are right. Samples that follow their stamps differ from regular ones by rate
times lateness. That difference is as rough as the stamps, and the motion is smooth: fifth differences of the positions
decide between the two.

A spike is a single sample far from the cubic through two neighbours on either side; the cubic replaces it before any
filter. Its pattern in the residuals of five samples differs from that of a step, such as friction at a reversal, and
from that of a longer pulse.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from parflex.checks import integer, number, one_of, short_text
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, did_you_mean
from parflex.io import read_bytes, read_errors
from parflex.records import Answer, Record
from parflex.robot.robot import Robot
from parflex.trajectories.files import read_table

Array = np.ndarray

CHANGES = 30  # of a column: fewer do not tell in which rows it changes

STOOD, AT_ONCE = 0.6, 0.9  # share of rows in which values change at most, and in which then all do, where they are held

AT_REST = 1e-6  # rad, or typical lengths: a motor that moves less rests

FEWEST = 100  # samples of a record

HELD = 0.002  # share of samples at the largest effort from which it is a limit

FLAT = 5.0  # times as many as have the next value: a smooth maximum has 1/(sqrt(2) - 1) = 2.4 times as many

JUMP = 20.0  # times what neighbouring steps differ by: of white noise the largest of thousands is 5 deviations

JUMP_NEIGHBOURS = 10  # samples before and behind a jump

PASSIVE = "passive"  # word of the columns of joints that are no motors

KEYS = ("time", "position", "effort", "reference", "controller", "payload")

LAWS = {"cascade": ("kp", "kv"), "pd": ("stiffness", "damping"), "ctc": ("Kp", "Kv")}

RATES = ("measured", "differences")

MOST_DELAY = 1000  # samples

ENTRY = ("column", "gain", "offset")

GAP = 1.5  # of the usual step: a longer one is a gap

EVEN = 1e-3  # of a step: stamps that are nearer to a regular clock are regular

FARTHEST = 0.5  # of a step, by which stamps may be off a regular clock: beyond, it is not known which sample is which

PARTS = 10  # of a record, in which the mean lateness is followed

DRIFT = 1e-3  # of the usual step, by which that of a part may differ: accelerations are then off by twice that

ROUGH = 5  # differences, of which a smooth motion leaves nothing

CLOCK_NEIGHBOURS = 4  # samples before and behind, of which a rate is taken

FOLLOW = 0.5  # of the lateness, from which samples follow their stamps rather than a regular clock

SEEN = 0.1  # deviation of that share, with which noise of positions hides it

SPIKE = 10.0  # times the 95 % quantile of residuals, at least: the largest of a million of white noise has 2.5

USUAL = 3.0  # times the median of residuals nearby: about the 95 % quantile of white noise

ALIKE = 0.25  # of a spike: by so much the residuals of five samples may miss its pattern; noise of 0.1 makes 0.15

SPIKE_NEIGHBOURS = 10  # samples before and behind

MANY = 0.01  # of the samples: what comes more often is no spike

PATTERN = {-2: 1 / 6, -1: -2 / 3, 1: -2 / 3, 2: 1 / 6}  # of a spike of one in the residuals of its neighbours


@dataclass(frozen=True, eq=False, repr=False)
class Recording(Answer):
    """A record: time (s), positions (m, rad) and efforts (N, N m) of the motors, the reference where it is known."""

    name: str
    t: Array
    position: Array
    effort: Array
    reference: Array | None = None
    payload: tuple[float, float, float, float] | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    offset: Array | float = 0.0  # of positions, behind the gains of their columns
    steps: list[str] = field(default_factory=list)  # what was done to it, in words
    passive: dict[str, Array] = field(default_factory=dict)  # positions of joints that are no motors

    def same_as(self, other: Recording) -> bool:
        """Whether all samples are those of another record."""
        return all(np.array_equal(getattr(self, word), getattr(other, word)) for word in ("t", "position", "effort"))

    @property
    def step(self) -> float:
        """Time between samples, s."""
        return float((self.t[-1] - self.t[0]) / (len(self.t) - 1))


def read_recording(
    source: str | Path | Mapping[str, Array], columns: ColumnMap, robot: Robot, keep_spikes: bool = False,
    called: str = "record",
) -> Recording:  # fmt: skip
    """A record from a file, or from columns by name, without spikes of single samples unless they are kept.

    `called`: the name of columns that are no file.
    """
    name = called if isinstance(source, Mapping) else str(source)
    try:
        table = dict(source) if isinstance(source, Mapping) else _table(str(source))
        return _measurement(name, table, columns, robot, keep_spikes)
    except InputError as error:
        error.file = error.file or (None if name == "record" else name)  # the only one needs no name
        raise


def _table(path: str) -> dict[str, Array]:
    """Columns by name."""
    if not path.endswith(".mat"):
        return read_table(path, "record")
    import scipy.io

    try:
        with read_errors(path, "record"):
            content = scipy.io.loadmat(path)
    except (ValueError, TypeError, NotImplementedError, scipy.io.matlab.MatReadError):
        raise InputError(
            "is not a MATLAB file that can be read", file=path, key="record", value=path,
            hint="save it with -v7, or as CSV",
        ) from None  # fmt: skip
    plain = {name: np.asarray(value) for name, value in content.items() if not name.startswith("__")}
    return {
        name: value.ravel() for name, value in plain.items()
        if value.dtype.kind in "fiu" and value.ndim == 2 and 1 in value.shape
    }  # fmt: skip


def _measurement(
    name: str, table: Mapping[str, Array], columns: ColumnMap, robot: Robot, keep_spikes: bool
) -> Recording:
    motors = list(robot.actuated_names)
    t = _read_column(table, columns.time, "time")
    clock = _clock(t)
    parts = {
        word: np.stack(
            [_read_column(table, getattr(columns, word)[motor], f"{word}.{motor}", t) for motor in motors], axis=1
        )
        for word in ("position", "effort", *(("reference",) if columns.reference else ()))
    }
    passive = {
        joint: _read_column(table, column, f"position.{joint}", t) for joint, column in columns.passive.items()
        if columns.named or _has_numbers(table, column.column, len(t))
    }  # fmt: skip
    every, slow = _every(motors, parts)
    parts |= {PASSIVE: np.stack(list(passive.values()), axis=1)} if passive else {}
    diagnostics: list[Diagnostic] = []
    if slow:  # what repeats is no measurement: differences of it are zero and then several times too large
        t, parts = t[every], {word: values[every] for word, values in parts.items()}
        clock = _clock(t)
        rate = 1 / float(np.median(np.diff(t)))
        text = (
            f"{slow} change in one of {every.step} rows, as those of a slow bus: only these rows are used, "
            f"{rate:.4g} per second"
        )
        diagnostics.append(Diagnostic("held-values", text, value=rate))
    for word in ("position", "effort") if not keep_spikes else ():
        parts[word], messages = without_spikes(f"{word}s", motors, t, parts[word])
        diagnostics += messages
    parts, uneven = resampled(clock, parts)
    t = clock.regular if uneven else t
    diagnostics += _beyond_limits(robot, motors, parts["position"])
    _refuse_rest(robot, parts["position"])
    _refuse_jumps(motors, t, parts["position"])
    diagnostics += _limited(motors, parts["effort"])
    payload = columns.payload.get(Path(name).name, columns.payload.get(name))
    offset = np.array([columns.position[motor].offset for motor in motors])
    return Recording(
        name,
        t,
        parts["position"],
        parts["effort"],
        parts.get("reference"),
        payload,
        tuple(diagnostics),
        offset,
        [uneven] if uneven else [],
        dict(zip(passive, parts[PASSIVE].T, strict=True)) if passive else {},
    )


def _has_numbers(table: Mapping[str, Array], column: str, rows: int) -> bool:
    """Whether a column that no map names is there, and has numbers alone."""
    values = np.asarray(table.get(column, ""))
    return values.dtype.kind in "fiu" and values.size == rows and bool(np.isfinite(values).all())


def _read_column(table: Mapping[str, Array], column: Column, key: str, t: Array | None = None) -> Array:
    if column.column not in table:
        raise InputError(
            f"there is no column '{column.column}'", key=key, value=column.column,
            hint=did_you_mean(column.column, list(table)),
        )  # fmt: skip
    raw = np.asarray(table[column.column])
    try:
        values = raw.astype(float).ravel()
    except (TypeError, ValueError):
        raise InputError(f"the column '{column.column}' has no numbers", key=key, value=column.column,
                         hint="give a column of numbers") from None  # fmt: skip
    if t is not None and len(values) != len(t):
        raise InputError(
            f"the column '{column.column}' has {len(values)} rows, and the time has {len(t)}", key=key,
            value=column.column, hint="give columns of one length",
        )  # fmt: skip
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        at = f" at t = {t[wrong[0]]:.6g} s" if t is not None else ""
        raise InputError(
            f"the column '{column.column}' has {len(wrong)} values that are no numbers, the first in row "
            f"{wrong[0] + 1}{at}", key=key, value=column.column,
            hint="cut the record there, or give the two parts as two records",
        )  # fmt: skip
    return values * column.gain + column.offset


def _clock(t: Array) -> RecordedClock:
    """The clock of the times of a record, which must grow."""
    if len(t) < FEWEST:
        raise InputError(f"the record has {len(t)} samples", key="time", value=len(t), hint=f"give at least {FEWEST}")
    steps = np.diff(t)
    usual = float(np.median(steps))
    back = np.flatnonzero(steps <= 0)
    if len(back) or usual <= 0:
        k = int(back[0]) if len(back) else 0
        raise InputError(
            f"time does not grow at row {k + 2} (t = {t[k + 1]:.6g} s)", key="time", value=float(t[k + 1]),
            hint="sort the rows, and leave out those that appear twice",
        )  # fmt: skip
    return recorded_clock(t)


def _every(motors: Sequence[str], parts: Mapping[str, Array]) -> tuple[slice, str]:
    """Rows that are samples: all of them, or one of several where values are held in between; and what is held."""
    held: dict[str, tuple[int, int]] = {}
    moved = []
    for word in ("position", "effort"):
        for motor, column in zip(motors, parts[word].T, strict=True):
            changed = np.diff(column) != 0
            rows = 1 + np.flatnonzero(changed)
            if len(rows) < CHANGES:
                continue
            moved.append(changed)
            stride = int(np.gcd.reduce(np.diff(rows)))
            if stride > 1:
                held[f"{word}s of '{motor}'"] = stride, int(rows[0]) % stride
    if held:
        (first, grid), *others = held.items()
        for other, other_grid in others:
            if other_grid != grid:
                raise InputError(
                    f"{first} change in one of {grid[0]} rows, {other} in one of {other_grid[0]} at other instants",
                    key="position", value=grid[0], hint="record all columns at one rate, and each sample once",
                )  # fmt: skip
        return slice(grid[1], None, grid[0]), first if len(held) < len(moved) else "all values"
    some, every = np.any(moved, axis=0), np.all(moved, axis=0)
    if moved and np.mean(some) < STOOD and np.sum(every) > AT_ONCE * np.sum(some) and np.sum(some) >= CHANGES:
        held_for = np.diff(np.flatnonzero(some))
        raise InputError(
            f"values are held for {held_for.min()} to {held_for.max()} rows and then change all at once, so that times "
            "are not those of the samples", key="time", value=int(held_for.max()),
            hint="give one row for each sample, at the time at which it was taken",
        )  # fmt: skip
    return slice(None), ""


def _beyond_limits(robot: Robot, motors: Sequence[str], position: Array) -> list[Diagnostic]:
    """Diagnostics of motors that stand beyond the limits of the robot file."""
    result = []
    for motor, column in zip(motors, position.T, strict=True):
        link = robot.tree.links[robot.tree.number(motor)]
        if link.limits is not None and (column.min() < link.limits[0] or column.max() > link.limits[1]):
            where = f"positions of '{motor}' are between {column.min():.4g} and {column.max():.4g} {link.joint.unit}"
            text = f"{where}, beyond its limits: check its unit, sign and zero"
            result.append(Diagnostic("far-positions", text, motor))
    return result


def _refuse_rest(robot: Robot, position: Array) -> None:
    units = robot.tree.rate_units[list(robot.actuated)]
    if (np.ptp(position, axis=0) / units < AT_REST).all():
        raise InputError(
            "no motor moves in the record", key="position", value=float(np.ptp(position, axis=0).max()),
            hint="give a record of a motion",
        )  # fmt: skip


def _refuse_jumps(motors: Sequence[str], t: Array, position: Array) -> None:
    """Refuse positions that jump between two samples: an encoder that wraps, a gap that times hide, a wrong value."""
    for motor, column in zip(motors, position.T, strict=True):
        steps = np.diff(column)
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(steps, JUMP_NEIGHBOURS, mode="reflect"), 2 * JUMP_NEIGHBOURS + 1
        )
        far = np.abs(steps - np.median(windows, axis=1))
        around = np.lib.stride_tricks.sliding_window_view(
            np.pad(far, JUMP_NEIGHBOURS, mode="reflect"), 2 * JUMP_NEIGHBOURS + 1
        )
        others = np.delete(around, [JUMP_NEIGHBOURS - 1, JUMP_NEIGHBOURS, JUMP_NEIGHBOURS + 1], axis=1).max(axis=1)
        line = np.abs(steps[steps != 0]).min(initial=np.inf)  # of an encoder: single ones come and go
        jumps = np.flatnonzero(far > JUMP * np.maximum(others, max(line, float(np.quantile(far, 0.95)))))
        if len(jumps):
            k = int(jumps[0])
            more = f" (and {len(jumps) - 1} times more)" if len(jumps) > 1 else ""
            raise InputError(
                f"positions of '{motor}' jump by {steps[k]:.4g} at t = {t[k + 1]:.6g} s{more}", key=f"position.{motor}",
                value=float(steps[k]), hint="unwrap or repair them, or give the parts before and behind as two records",
            )  # fmt: skip


def _limited(motors: Sequence[str], effort: Array) -> list[Diagnostic]:
    """Efforts that stand at their largest value: the drive was at its limit, and what it gave is not known.

    Coarsely measured efforts have one value about each maximum, too, but then nearly as often the next one.
    """
    messages = []
    for motor, column in zip(motors, effort.T, strict=True):
        top = float(np.abs(column).max())
        held = np.abs(column) >= top * (1 - 1e-9)
        runs = held[1:] & held[:-1]
        below = np.abs(column[~held])
        second_count = np.count_nonzero(below >= below.max(initial=0.0) * (1 - 1e-9))
        # one value all the time is no limit: nothing was recorded, which is told elsewhere
        if top > 0 and HELD < np.mean(held) < 1 and runs.any() and held.sum() > FLAT * second_count:
            text = (
                f"the effort of '{motor}' stands at its limit {top:.4g} in {int(held.sum())} samples: "
                "slow the motion down, or cut them"
            )
            messages.append(Diagnostic("saturated-effort", text, motor, top))
    return messages


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
    file, table = ("", source) if isinstance(source, Mapping) else (str(source), _read_file(source))
    try:
        return _map(table, motors, file, passive)
    except InputError as error:
        error.file = error.file or file or None
        raise


def _read_file(path: str | Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_bytes(path, "columns").decode())
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
    position_table = table.get("position", {})
    sensors = (
        {joint: entry for joint, entry in _flat(position_table).items() if joint in passive}
        if isinstance(position_table, Mapping)
        else {}
    )
    of_motors = (
        {joint: entry for joint, entry in _flat(position_table).items() if joint not in sensors}
        if sensors
        else position_table
    )
    position, effort = (
        _columns({**table, "position": of_motors}, key, motors, needed=True) for key in ("position", "effort")
    )
    others = {joint: _column(entry, f"position.{joint}") for joint, entry in sensors.items()}
    _refuse_shared({**position, **others}, effort)
    return ColumnMap(
        _column(table.get("time", "t"), "time"), position, effort, _columns(table, "reference", motors),
        _controller(table.get("controller"), motors), _payloads(table.get("payload", {})), file, others,
    )  # fmt: skip


def _columns(table: Mapping[str, Any], key: str, motors: list[str], needed: bool = False) -> dict[str, Column]:
    entries = table.get(key, {})
    if not isinstance(entries, Mapping):
        raise InputError(
            f"'{key}' is a table of joints", key=key, value=short_text(entries), hint=f'{key}.JOINT = "COLUMN"'
        )
    flat = _flat(entries)
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
    owners: dict[str, str] = {}
    for key, columns in (("position", position), ("effort", effort)):
        for motor, column in columns.items():
            if column.column in owners:
                raise InputError(
                    f"the column '{column.column}' is that of {owners[column.column]}, too", key=f"{key}.{motor}",
                    value=column.column, hint="give each its own column; copy it where two drives share a signal",
                )  # fmt: skip
            owners[column.column] = f"{key}.{motor}"


def _flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Names with dots that were written without quotes are tables in TOML."""
    result: dict[str, Any] = {}
    for name, entry in table.items():
        if isinstance(entry, Mapping) and not set(entry) & set(ENTRY):
            result |= _flat(entry, f"{before}{name}.")
        else:
            result[before + str(name)] = entry
    return result


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


def _controller(controller: Any, motors: list[str]) -> FeedbackLaw | None:
    if controller is None:
        return None
    if not isinstance(controller, Mapping):
        raise InputError("'controller' is a table", key="controller", value=short_text(controller),
                         hint='law = "cascade", kp = ..., kv = ...')  # fmt: skip
    law = controller.get("law", next((name for name, words in LAWS.items() if words[0] in controller), "cascade"))
    if law not in LAWS:
        raise InputError(f"there is no law '{law}'", key="controller.law", value=short_text(law),
                         hint=did_you_mean(str(law), LAWS))  # fmt: skip
    words = ("law", "limit", "sample_time", "rates", "delay", *LAWS[law])
    for word in controller:
        if word not in words:
            raise InputError(f"unknown key '{word}'", key=f"controller.{word}", value=short_text(controller[word]),
                             hint=did_you_mean(word, words))  # fmt: skip
    for word in LAWS[law]:
        if word not in controller:
            raise InputError(f"key '{word}' is missing", key=f"controller.{word}", hint=f"add {word} = ...")
    first, second = (_gains(controller[word], f"controller.{word}", motors) for word in LAWS[law])
    if law == "ctc" and len({*first}) + len({*second}) > 2:
        raise InputError("computed torque has one gain for all motors", key="controller.Kp",
                         value=short_text(controller["Kp"]), hint="give a number")  # fmt: skip
    limit = float(number(controller["limit"], "controller.limit", above=0.0)) if "limit" in controller else float("inf")
    sample = controller.get("sample_time")
    time = None if sample is None else float(number(sample, "controller.sample_time", above=0.0))
    rates = str(one_of(controller.get("rates", "measured"), RATES, "controller.rates"))
    delay = integer(controller.get("delay", 0), "controller.delay", 0, MOST_DELAY)
    return FeedbackLaw(law, (first, second), limit, time, rates, delay)


def _gains(gains: Any, key: str, motors: list[str]) -> tuple[float, ...]:
    """One gain for all motors, or one for each by name."""
    if not isinstance(gains, Mapping):
        return (float(number(gains, key)),) * len(motors)
    flat = _flat(gains)
    for joint in flat:
        if joint not in motors:
            raise InputError(f"'{joint}' is not a motor", key=f"{key}.{joint}", value=joint,
                             hint=did_you_mean(joint, motors))  # fmt: skip
    missing = [motor for motor in motors if motor not in flat]
    if missing:
        raise InputError(f"the gain of '{missing[0]}' is missing", key=key, value=missing[0],
                         hint="name all motors, or give one number")  # fmt: skip
    return tuple(float(number(flat[motor], f"{key}.{motor}")) for motor in motors)


def _payloads(table: Any) -> dict[str, tuple[float, float, float, float]]:
    if not isinstance(table, Mapping):
        raise InputError("'payload' is a table of records", key="payload", value=short_text(table),
                         hint='"loaded.csv" = [2.5, 0, 0, 0.1]')  # fmt: skip
    payloads: dict[str, tuple[float, float, float, float]] = {}
    for record, entry in table.items():
        row = list(entry) if isinstance(entry, (list, tuple)) else []
        if len(row) != 4:
            raise InputError(
                "a payload is mass, x, y, z in the axes of the end effector", key=f"payload.{record}",
                value=short_text(entry), hint="write [2.5, 0, 0, 0.1]",
            )  # fmt: skip
        if float(number(row[0], f"payload.{record}")) < 0:
            raise InputError("the mass of a payload is negative", key=f"payload.{record}", value=short_text(entry),
                             hint="give what the robot carries in this record")  # fmt: skip
        payloads[str(record)] = tuple(float(number(value, f"payload.{record}")) for value in row)  # type: ignore[assignment]
    return payloads


@dataclass(frozen=True, eq=False, repr=False)
class RecordedClock(Record):
    """The regular clock of a record, and what its stamps are late by.

    Attributes
    ----------
    regular : Array
        Times with equal steps (s).
    late : Array
        Stamps beside them (s).
    """

    regular: Array
    late: Array

    @property
    def jitter(self) -> float:
        """How far stamps are off at most, in steps."""
        return float(np.abs(self.late).max() / (self.regular[1] - self.regular[0]))


def recorded_clock(t: Array) -> RecordedClock:
    """The clock of stamps that grow; refuses gaps, drifts and stamps that may be those of other samples."""
    steps = np.diff(t)
    usual = float(np.median(steps))
    k = int(np.argmax(steps))
    if steps[k] > GAP * usual:
        raise InputError(
            f"samples are missing: a gap of {steps[k]:.4g} s at t = {t[k]:.6g} s, where steps are {usual:.4g} s",
            key="time", value=float(t[k]), hint="give the parts before and behind the gap as two records",
        )  # fmt: skip
    place = np.arange(len(t)) - (len(t) - 1) / 2
    step = float(place @ t) / float(place @ place)
    regular = t.mean() + step * place
    edges = np.linspace(0, len(t), PARTS + 1).astype(int)
    slices = [slice(a, b) for a, b in pairwise(edges)]
    mean = np.array([(t - regular)[part].mean() for part in slices])
    at = np.array([place[part].mean() for part in slices])
    rates = 1 + np.diff(mean) / np.diff(at) / step
    if np.ptp(mean) > FARTHEST * step and np.abs(rates - 1).max() > DRIFT:
        raise InputError(
            f"the clock drifts: steps of time are {step * rates.min():.6g} s in one part of the record and "
            f"{step * rates.max():.6g} s in another", key="time", value=usual,
            hint="where times are right, interpolate the record to equal steps; else repair its clock",
        )  # fmt: skip
    clock = RecordedClock(regular, t - regular - np.interp(place, at, mean) * (np.ptp(mean) > FARTHEST * step))
    if clock.jitter > FARTHEST:
        raise InputError(
            f"steps of time differ between {steps.min():.4g} and {steps.max():.4g} s, and times are up to "
            f"{clock.jitter:.2g} steps off a regular clock", key="time", value=usual,
            hint="where times are right, interpolate the record to equal steps; else give those of a regular clock",
        )  # fmt: skip
    return clock


def followed_share(clock: RecordedClock, positions: Array) -> tuple[float, float]:
    """Which share of the lateness of stamps samples have, and its deviation: 1 where they follow, 0 where regular."""
    step = float(clock.regular[1] - clock.regular[0])
    rate = np.zeros_like(positions)
    rate[CLOCK_NEIGHBOURS:-CLOCK_NEIGHBOURS] = (
        positions[2 * CLOCK_NEIGHBOURS :] - positions[: -2 * CLOCK_NEIGHBOURS]
    ) / (2 * CLOCK_NEIGHBOURS * step)
    inside = slice(CLOCK_NEIGHBOURS, len(positions) - CLOCK_NEIGHBOURS)
    along = np.diff(rate[inside] * clock.late[inside, None], ROUGH, axis=0)
    rough = np.diff(positions[inside], ROUGH, axis=0)
    share, spread = 0.0, np.inf
    for _ in range(3):  # motors count by what is left of them
        power = np.maximum(((rough - share * along) ** 2).mean(axis=0), 1e-300)
        size = float((along**2 / power).sum())
        if not size:
            return 0.0, np.inf
        share, spread = float((along * rough / power).sum()) / size, 1 / np.sqrt(size)
    return share, spread


def resampled(clock: RecordedClock, parts: dict[str, Array]) -> tuple[dict[str, Array], str]:
    """Columns at equal steps of time, and what was done to stamps that are not, in words."""
    if not clock.jitter > EVEN:
        return parts, ""
    share, spread = followed_share(clock, parts["position"])
    off = f"times are up to {100 * clock.jitter:.2g} % of a step off a regular clock"
    if spread > SEEN:
        return parts, f"{off}, which noise of positions hides: equal steps are taken"
    if share < FOLLOW:
        return parts, f"{off}, and samples are regular (they have {100 * share:.2g} % of it): equal steps are taken"
    from scipy.interpolate import CubicSpline

    even = {word: CubicSpline(clock.regular + clock.late, values)(clock.regular) for word, values in parts.items()}
    message = f"{off}, and samples follow them (they have {100 * share:.2g} % of it): interpolated to equal steps"
    return even, message


def without_spikes(word: str, motors: Sequence[str], t: Array, values: Array) -> tuple[Array, list[Diagnostic]]:
    """Columns without their spikes, and diagnostics of these."""
    cleaned, messages = values, []
    for k, motor in enumerate(motors):
        at = spikes(values[:, k])
        if not len(at) or len(at) > MANY * len(t):
            continue
        cleaned = values.copy() if cleaned is values else cleaned
        cleaned[at, k] = values[at, k] - _residuals(values[:, k])[at]
        several = f"{len(at)} single samples" if len(at) > 1 else "one sample"
        text = (
            f"{word} of '{motor}' leave the others in {several}, first at t = {t[at[0]]:.6g} s: replaced by what "
            "neighbours say"
        )
        messages.append(Diagnostic("replaced-spikes", text, motor, len(at)))
    return cleaned, messages


def spikes(column: Array) -> Array:
    """Which samples are spikes."""
    left = _residuals(column)
    steps = np.abs(np.diff(column))
    line = steps[steps > 0].min(initial=np.inf)  # of an encoder: single ones come and go
    if not np.isfinite(line):
        return np.zeros(0, dtype=int)
    least = SPIKE * max(line, float(np.quantile(np.abs(left), 0.95)))
    far = np.flatnonzero(np.abs(left) > least)
    return np.array([k for k in far if _alone(left, int(k))], dtype=int)


def _alone(left: Array, k: int) -> bool:
    """Whether a large residual is that of one sample."""
    if not 4 <= k < len(left) - 4:
        return False
    near = np.abs(left[max(k - SPIKE_NEIGHBOURS, 0) : k + SPIKE_NEIGHBOURS + 1])
    if abs(left[k]) <= SPIKE * USUAL * float(np.median(near)):
        return False
    return all(abs(left[k + j] - share * left[k]) <= ALIKE * abs(left[k]) for j, share in PATTERN.items())


def _residuals(column: Array) -> Array:
    """What samples differ by from the cubic of two neighbours on either side."""
    residuals = np.zeros(len(column))
    residuals[2:-2] = column[2:-2] - (4 * (column[1:-3] + column[3:-1]) - column[:-4] - column[4:]) / 6
    return residuals
