"""Recordings: CSV, npz, MATLAB and Parquet files, column maps, clocks and outliers.

Time stamps vary about a regular clock for two reasons. Logging software stamps regular samples late; a loop that waits
samples at changing times, and its stamps are right. Samples that follow their stamps differ from regular ones by rate
times lateness. That difference is as rough as the stamps, and the motion is smooth: fifth differences of the positions
decide between the two.

A step between two samples that is far from those around it is a jump; two in a row that go back are a spike. Spikes are
replaced by the cubic through their neighbours before any filter; positions that jump are refused. A jump of an effort
may be friction at a reversal.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
FEWEST, CHANGES = 100, 30  # samples of a record, and changes of a column: fewer do not tell in which rows it changes
FLAT = 5.0  # times as many samples at the largest effort as at the next: a smooth maximum has 1/(sqrt(2) - 1) = 2.4
NEIGHBOURS, FAR = 5, 20.0  # steps on either side, and times theirs: the largest of a million of white noise has 5
GAP, EVEN = 1.5, 1e-3  # of the usual step: a longer one is a gap, and stamps that are nearer to a regular clock are so
FARTHEST = 0.5  # of a step, by which stamps may be off a regular clock: beyond, it is not known which sample is which
KEYS = ("time", "position", "effort", "reference", "controller", "payload")
LAWS = {"cascade": ("kp", "kv"), "pd": ("stiffness", "damping"), "ctc": ("Kp", "Kv")}
ROUNDING = 1e-9  # of a value: gains and files leave less of equal ones
RATES = ("measured", "differences")
ENTRY = ("column", "gain", "offset")


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
    if path.endswith(".parquet"):
        return _parquet(path)
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


def _parquet(path: str) -> dict[str, Array]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "Parquet needs PyArrow, which is not installed", file=path, key="record", value=path,
            hint="pip install 'parflex[parquet]', or save it as CSV",
        ) from None  # fmt: skip
    try:
        with read_errors(path, "record"):
            table = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException:
        raise InputError("is not a Parquet file that can be read", file=path, key="record", value=path,
                         hint="save it again, or as CSV") from None  # fmt: skip
    return {name: table[name].to_numpy() for name in table.column_names}


def _measurement(
    name: str, table: Mapping[str, Array], columns: ColumnMap, robot: Robot, keep_spikes: bool
) -> Recording:
    motors, steps = list(robot.actuated_names), list[str]()
    t = _read_column(table, columns.time, "time")
    clock = recorded_clock(t)
    words = ("position", "effort", *(("reference",) if columns.reference else ()))
    parts = {
        word: np.stack([_read_column(table, getattr(columns, word)[m], f"{word}.{m}", t) for m in motors], axis=1)
        for word in words
    }
    passive = {
        joint: _read_column(table, column, f"position.{joint}", t) for joint, column in columns.passive.items()
        if columns.named or _has_numbers(table, column.column, len(t))
    }  # fmt: skip
    every, held = _every(motors, parts)
    if passive:
        parts["passive"] = np.stack(list(passive.values()), axis=1)
    diagnostics: list[Diagnostic] = []
    if held:  # what repeats is no measurement: differences of it are zero and then several times too large
        t, parts = t[every], {word: values[every] for word, values in parts.items()}
        clock = recorded_clock(t)
        rate = 1 / float(np.median(np.diff(t)))
        text = (
            f"{held} change in one of {every.step} rows, as those of a slow bus: only these rows are used, "
            f"{rate:.4g} per second"
        )
        diagnostics.append(Diagnostic("held-values", text, value=rate))
    for word in ("position", "effort") if not keep_spikes else ():
        parts[word], messages = without_spikes(f"{word}s", motors, t, parts[word])
        diagnostics += messages
    parts, uneven = resampled(clock, parts)
    if uneven:
        t = clock.regular
        steps.append(f"clock: {uneven}")
    diagnostics += _beyond_limits(robot, motors, parts["position"])
    _refuse_jumps(motors, t, parts["position"])
    return Recording(
        name, t, parts["position"], parts["effort"], parts.get("reference"),
        columns.payload.get(Path(name).name, columns.payload.get(name)),
        (*diagnostics, *_limited(motors, parts["effort"])), np.array([columns.position[m].offset for m in motors]),
        steps, dict(zip(passive, parts["passive"].T, strict=True)) if passive else {},
    )  # fmt: skip


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


def _every(motors: Sequence[str], parts: Mapping[str, Array]) -> tuple[slice, str]:
    """Return the rows that are samples, one of several where values are held in between, and what is held."""
    held, moving = dict[str, tuple[int, int]](), 0
    for word in ("position", "effort"):
        for motor, column in zip(motors, parts[word].T, strict=True):
            rows = 1 + np.flatnonzero(np.diff(column))
            if len(rows) < CHANGES:
                continue
            moving += 1
            stride = int(np.gcd.reduce(np.diff(rows)))
            if stride > 1:
                held[f"{word}s of '{motor}'"] = stride, int(rows[0]) % stride
    if not held:
        return slice(None), ""
    (first, grid), *others = held.items()
    for other, other_grid in others:
        if other_grid != grid:
            raise InputError(
                f"{first} change in one of {grid[0]} rows, {other} in one of {other_grid[0]} at other instants",
                key="position", value=grid[0], hint="record all columns at one rate, and each sample once",
            )  # fmt: skip
    return slice(grid[1], None, grid[0]), first if len(held) < moving else "all values"


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


def _refuse_jumps(motors: Sequence[str], t: Array, position: Array) -> None:
    """Refuse positions that jump between two samples: an encoder that wraps, a gap that times hide, a wrong value."""
    for motor, column in zip(motors, position.T, strict=True):
        jumps = outstanding_steps(column)
        if len(jumps):
            k = int(jumps[0])
            size = float(column[k + 1] - column[k])
            more = f" (and {len(jumps) - 1} times more)" if len(jumps) > 1 else ""
            raise InputError(
                f"positions of '{motor}' jump by {size:.4g} at t = {t[k + 1]:.6g} s{more}", key=f"position.{motor}",
                value=size, hint="unwrap or repair them, or give the parts before and behind as two records",
            )  # fmt: skip


def outstanding_steps(column: Array) -> Array:
    """Return the steps between samples that are far from those around them, in noise and in lines of an encoder."""
    steps = np.diff(column)
    if not steps.any():
        return np.zeros(0, dtype=int)
    far = np.abs(steps - np.median(_windows(steps), axis=1))
    others = _windows(far)[:, np.abs(np.arange(-NEIGHBOURS, NEIGHBOURS + 1)) > 1].max(axis=1)
    usual = max(float(np.abs(steps[steps != 0]).min()), float(np.quantile(far, 0.95)))
    return np.flatnonzero(far > FAR * np.maximum(others, usual))


def _windows(values: Array) -> Array:
    """Return each value with its neighbours."""
    padded = np.pad(values, NEIGHBOURS, mode="reflect")
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1)


def spikes(column: Array) -> Array:
    """Return the samples to which an outstanding step leads, and from which another one leads back."""
    jumps = outstanding_steps(column)
    after = jumps[1:][np.diff(jumps) == 1]
    steps = np.diff(column)
    at = after[steps[after] * steps[after - 1] < 0]
    return at[(at >= 2) & (at < len(column) - 2)]


def without_spikes(word: str, motors: Sequence[str], t: Array, values: Array) -> tuple[Array, list[Diagnostic]]:
    """Return columns whose spikes are replaced by the cubic through their neighbours, and diagnostics of these."""
    cleaned, messages = values.copy(), []
    for k, (motor, column) in enumerate(zip(motors, values.T, strict=True)):
        at = spikes(column)
        if len(at):
            cleaned[at, k] = (4 * (column[at - 1] + column[at + 1]) - column[at - 2] - column[at + 2]) / 6
            several = f"{len(at)} single samples" if len(at) > 1 else "one sample"
            text = (
                f"{word} of '{motor}' leave the others in {several}, first at t = {t[at[0]]:.6g} s: replaced by what "
                "neighbours say"
            )
            messages.append(Diagnostic("replaced-spikes", text, motor, len(at)))
    return cleaned, messages


def _limited(motors: Sequence[str], effort: Array) -> list[Diagnostic]:
    """Return diagnostics of efforts that stand at their largest value: the drive was at its limit.

    Coarsely measured efforts have one value about each maximum, too, but then nearly as often the next one.
    """
    messages = []
    for motor, column in zip(motors, np.abs(effort).T, strict=True):
        top = float(column.max())
        at_top = column >= top * (1 - ROUNDING)
        below = column[~at_top]
        second_count = np.count_nonzero(below >= below.max(initial=0.0) * (1 - ROUNDING))
        if top > 0 and len(below) and at_top.sum() > FLAT * second_count:
            text = (
                f"the effort of '{motor}' stands at its limit {top:.4g} in {int(at_top.sum())} samples: "
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
    _refuse_unknown(table, KEYS)
    positions = table.get("position", {})
    sensors: dict[str, Any] = {}
    if isinstance(positions, Mapping):
        sensors = {joint: entry for joint, entry in _flat(positions).items() if joint in passive}
        positions = {joint: entry for joint, entry in _flat(positions).items() if joint not in sensors}
    position, effort = (
        _columns({**table, "position": positions}, key, motors, needed=True) for key in ("position", "effort")
    )
    others = {joint: _column(entry, f"position.{joint}") for joint, entry in sensors.items()}
    _refuse_shared({**position, **others}, effort)
    return ColumnMap(
        _column(table.get("time", "t"), "time"), position, effort, _columns(table, "reference", motors),
        _controller(table.get("controller"), motors), _payloads(table.get("payload", {})), file, others,
    )  # fmt: skip


def _columns(table: Mapping[str, Any], key: str, motors: list[str], needed: bool = False) -> dict[str, Column]:
    entries = table.get(key, {})
    if not entries and not needed:
        return {}
    of_motors = _of_motors(entries, key, motors, f'add it to [{key}] as JOINT = "COLUMN"')
    return {motor: _column(entry, f"{key}.{motor}") for motor, entry in of_motors.items()}


def _of_motors(entries: Any, key: str, motors: list[str], hint: str) -> dict[str, Any]:
    """Entries of all motors by name, in their order."""
    if not isinstance(entries, Mapping):
        raise InputError(f"'{key}' is a table of joints", key=key, value=short_text(entries), hint=hint)
    flat = _flat(entries)
    for joint in flat:
        if joint not in motors:
            raise InputError(f"'{joint}' is not a motor", key=f"{key}.{joint}", value=joint,
                             hint=did_you_mean(joint, motors))  # fmt: skip
    missing = next((motor for motor in motors if motor not in flat), None)
    if missing is not None:
        raise InputError(f"the {key} of '{missing}' is missing", key=key, value=missing, hint=hint)
    return {motor: flat[motor] for motor in motors}


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


def _refuse_unknown(table: Mapping[str, Any], words: Sequence[str], key: str = "") -> None:
    for word in table:
        if word not in words:
            raise InputError(f"unknown key '{word}'", key=f"{key}{word}", value=short_text(table[word]),
                             hint=did_you_mean(word, words))  # fmt: skip


def _column(entry: Any, key: str) -> Column:
    if isinstance(entry, str):
        return Column(entry)
    if not isinstance(entry, Mapping) or not isinstance(entry.get("column"), str):
        raise InputError(
            "the name of a column is expected here", key=key, value=short_text(entry),
            hint='write "COLUMN" or { column = "COLUMN", gain = 2.5 }',
        )  # fmt: skip
    _refuse_unknown(entry, ENTRY, f"{key}.")
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
    one_of(law, LAWS, "controller.law")
    words = ("law", "limit", "sample_time", "rates", "delay", *LAWS[law])
    _refuse_unknown(controller, words, "controller.")
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
    delay = integer(controller.get("delay", 0), "controller.delay", 0, 1000)
    return FeedbackLaw(law, (first, second), limit, time, rates, delay)


def _gains(gains: Any, key: str, motors: list[str]) -> tuple[float, ...]:
    """One gain for all motors, or one for each by name."""
    if not isinstance(gains, Mapping):
        gains = dict.fromkeys(motors, gains)
    entries = _of_motors(gains, key, motors, "name all motors, or give one number")
    return tuple(float(number(entry, f"{key}.{motor}")) for motor, entry in entries.items())


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
    """Return the clock of stamps; refuse few stamps, gaps, and stamps that may be those of other samples."""
    if len(t) < FEWEST:
        raise InputError(f"the record has {len(t)} samples", key="time", value=len(t), hint=f"give at least {FEWEST}")
    steps = np.diff(t)
    usual, k = float(np.median(steps)), int(np.argmin(steps))
    if steps[k] <= 0:
        raise InputError(
            f"time does not grow at row {k + 2} (t = {t[k + 1]:.6g} s)", key="time", value=float(t[k + 1]),
            hint="sort the rows, and leave out those that appear twice",
        )  # fmt: skip
    k = int(np.argmax(steps))
    if steps[k] > GAP * usual:
        raise InputError(
            f"samples are missing: a gap of {steps[k]:.4g} s at t = {t[k]:.6g} s, where steps are {usual:.4g} s",
            key="time", value=float(t[k]), hint="give the parts before and behind the gap as two records",
        )  # fmt: skip
    place = np.arange(len(t)) - (len(t) - 1) / 2
    regular = t.mean() + float(place @ t) / float(place @ place) * place
    clock = RecordedClock(regular, t - regular)
    if clock.jitter > FARTHEST:
        raise InputError(
            f"steps of time are between {steps.min():.4g} and {steps.max():.4g} s, and times up to {clock.jitter:.2g} "
            "steps off a regular clock", key="time", value=usual,
            hint="where times are right, interpolate the record to equal steps; else give those of a regular clock",
        )  # fmt: skip
    return clock


def followed_share(clock: RecordedClock, positions: Array) -> float:
    """Return the share of the lateness of stamps that samples have: 1 where they follow, 0 where they are regular."""
    near = 4  # samples before and behind, of which a rate is taken
    inside = slice(near, len(positions) - near)
    rate = (positions[2 * near :] - positions[: -2 * near]) / (clock.regular[2 * near] - clock.regular[0])
    along, rough = (np.diff(part, 5, axis=0) for part in (rate * clock.late[inside, None], positions[inside]))
    weights = 1 / np.maximum((rough**2).mean(axis=0), 1e-300)
    size = float((weights * along**2).sum())
    return float((weights * along * rough).sum()) / size if size else 0.0


def resampled(clock: RecordedClock, parts: dict[str, Array]) -> tuple[dict[str, Array], str]:
    """Return columns at equal steps of time, and what was done to stamps that are not, in words."""
    if not clock.jitter > EVEN:
        return parts, ""
    off = f"times are up to {100 * clock.jitter:.2g} % of a step off a regular clock"
    if followed_share(clock, parts["position"]) < 0.5:
        return parts, f"{off}, and samples are regular: equal steps are taken"
    from scipy.interpolate import CubicSpline

    even = {word: CubicSpline(clock.regular + clock.late, values)(clock.regular) for word, values in parts.items()}
    return even, f"{off}, and samples follow them: interpolated to equal steps"
