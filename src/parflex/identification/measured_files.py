"""Records of measurements: CSV, npz and MATLAB files, read with care; what cannot be trusted is refused or said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.identification.column_map import Column, ColumnMap
from parflex.identification.estimates.recorded_clocks import RecordedClock, evened, recorded_clock
from parflex.identification.spikes import without_spikes
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.trajectories.files import read_table

Array = np.ndarray
MANY_TURNS = 7.0  # rad: joints of robots seldom turn so far
BEYOND = ", beyond its limits"  # how places are told that a motor cannot reach
CHANGES = 30  # of a column: fewer do not tell in which rows it changes
STOOD, AT_ONCE = 0.6, 0.9  # share of rows in which values change at most, and in which then all do, where they are held
AT_REST = 1e-6  # rad, or typical lengths: a motor that moves less rests
FEWEST = 100  # samples of a record
HELD = 0.002  # share of samples at the largest effort from which it is a limit
FLAT = 5.0  # times as many as have the next value: a smooth maximum has 1/(sqrt(2) - 1) = 2.4 times as many
JUMP = 20.0  # times what neighbouring steps differ by: of white noise the largest of thousands is 5 deviations
BESIDE = 10  # samples before and behind a jump
PASSIVE = "passive"  # word of the columns of joints that are no motors


@dataclass(frozen=True, eq=False, repr=False)
class Measurement(Record):
    """A record: time (s), positions (m, rad) and efforts (N, N m) of the motors, the reference where it is known."""

    name: str
    t: Array
    position: Array
    effort: Array
    reference: Array | None = None
    payload: tuple[float, float, float, float] | None = None
    warnings: list[str] = field(default_factory=list)
    offset: Array | float = 0.0  # of positions, behind the gains of their columns
    far: list[tuple[str, str]] = field(default_factory=list)  # motors that stand where none can, and in which unit less
    steps: list[str] = field(default_factory=list)  # what was done to it, in words
    passive: dict[str, Array] = field(default_factory=dict)  # positions of joints that are no motors

    def same_as(self, other: Measurement) -> bool:
        """Whether all samples are those of another record."""
        return all(np.array_equal(getattr(self, word), getattr(other, word)) for word in ("t", "position", "effort"))

    def in_other_units(self, factors: Array) -> Array:
        """Positions where columns have other gains by these factors."""
        return (self.position - self.offset) * factors + self.offset

    @property
    def step(self) -> float:
        """Time between samples, s."""
        return float((self.t[-1] - self.t[0]) / (len(self.t) - 1))


def read_measurement(
    source: str | Path | Mapping[str, Array], columns: ColumnMap, robot: Robot, keep_spikes: bool = False,
    called: str = "record",
) -> Measurement:  # fmt: skip
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
        content = scipy.io.loadmat(path)
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror or error})", file=path, key="record", value=path, hint="check the path"
        ) from None
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
) -> Measurement:
    motors = list(robot.actuated_names)
    t = _read(table, columns.time, "time")
    clock = _clock(t)
    parts = {
        word: np.stack([_read(table, getattr(columns, word)[motor], f"{word}.{motor}", t) for motor in motors], axis=1)
        for word in ("position", "effort", *(("reference",) if columns.reference else ()))
    }
    passive = {
        joint: _read(table, one, f"position.{joint}", t) for joint, one in columns.passive.items()
        if columns.named or _has_numbers(table, one.column, len(t))
    }  # fmt: skip
    every, slow = _every(motors, parts)
    parts |= {PASSIVE: np.stack(list(passive.values()), axis=1)} if passive else {}
    warnings: list[str] = []
    if slow:  # what repeats is no measurement: differences of it are zero and then several times too large
        t, parts = t[every], {word: values[every] for word, values in parts.items()}
        clock = _clock(t)
        rate = 1 / float(np.median(np.diff(t)))
        warnings.append(
            f"{slow} change in one of {every.step} rows, as those of a slow bus: only these rows are used, "
            f"{rate:.4g} per second"
        )
    for word in ("position", "effort") if not keep_spikes else ():
        parts[word], told = without_spikes(f"{word}s", motors, t, parts[word])
        warnings += told
    parts, uneven = evened(clock, parts)
    t = clock.regular if uneven else t
    far = _far(robot, motors, parts["position"])
    _refuse_rest(robot, parts["position"])
    _refuse_jumps(motors, t, parts["position"])
    warnings += _limited(motors, parts["effort"])
    payload = columns.payload.get(Path(name).name, columns.payload.get(name))
    offset = np.array([columns.position[motor].offset for motor in motors])
    return Measurement(
        name,
        t,
        parts["position"],
        parts["effort"],
        parts.get("reference"),
        payload,
        warnings,
        offset,
        far,
        [uneven] if uneven else [],
        dict(zip(passive, parts[PASSIVE].T, strict=True)) if passive else {},
    )


def _has_numbers(table: Mapping[str, Array], column: str, rows: int) -> bool:
    """Whether a column that no map names is there, and has numbers alone."""
    values = np.asarray(table.get(column, ""))
    return values.dtype.kind in "fiu" and values.size == rows and bool(np.isfinite(values).all())


def _read(table: Mapping[str, Array], column: Column, key: str, t: Array | None = None) -> Array:
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
        (first, own), *others = held.items()
        for other, two in others:
            if two != own:
                raise InputError(
                    f"{first} change in one of {own[0]} rows, {other} in one of {two[0]} at other instants",
                    key="position", value=own[0], hint="record all columns at one rate, and each sample once",
                )  # fmt: skip
        return slice(own[1], None, own[0]), first if len(held) < len(moved) else "all values"
    some, every = np.any(moved, axis=0), np.all(moved, axis=0)
    if moved and np.mean(some) < STOOD and np.sum(every) > AT_ONCE * np.sum(some) and np.sum(some) >= CHANGES:
        held_for = np.diff(np.flatnonzero(some))
        raise InputError(
            f"values are held for {held_for.min()} to {held_for.max()} rows and then change all at once, so that times "
            "are not those of the samples", key="time", value=int(held_for.max()),
            hint="give one row for each sample, at the time at which it was taken",
        )  # fmt: skip
    return slice(None), ""


def _far(robot: Robot, motors: Sequence[str], position: Array) -> list[tuple[str, str]]:
    """Positions beyond limits or of many turns, as degrees or millimetres are."""
    found = []
    for motor, column in zip(motors, position.T, strict=True):
        link = robot.tree.links[robot.tree.number(motor)]
        far, limits = float(np.abs(column).max()), link.limits
        beyond = limits is not None and (column.min() < limits[0] or column.max() > limits[1])
        turns = link.joint.unit == "rad"
        most = (MANY_TURNS if link.periodic else np.inf) if turns else 100 * robot.tree.length
        if beyond or far > most:
            unit, other, gain = ("rad", "degrees", "0.0174532925") if turns else ("m", "millimetres", "0.001")
            where = f"positions of '{motor}' are between {column.min():.4g} and {column.max():.4g} {unit}"
            found.append((where + (BEYOND if beyond else ""), f"if they are {other}, give gain = {gain}"))
    return found


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
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(steps, BESIDE, mode="reflect"), 2 * BESIDE + 1)
        far = np.abs(steps - np.median(windows, axis=1))
        around = np.lib.stride_tricks.sliding_window_view(np.pad(far, BESIDE, mode="reflect"), 2 * BESIDE + 1)
        others = np.delete(around, [BESIDE - 1, BESIDE, BESIDE + 1], axis=1).max(axis=1)
        line = np.abs(steps[steps != 0]).min(initial=np.inf)  # of an encoder: single ones come and go
        jumps = np.flatnonzero(far > JUMP * np.maximum(others, max(line, float(np.quantile(far, 0.95)))))
        if len(jumps):
            k = int(jumps[0])
            more = f" (and {len(jumps) - 1} times more)" if len(jumps) > 1 else ""
            raise InputError(
                f"positions of '{motor}' jump by {steps[k]:.4g} at t = {t[k + 1]:.6g} s{more}", key=f"position.{motor}",
                value=float(steps[k]), hint="unwrap or repair them, or give the parts before and behind as two records",
            )  # fmt: skip


def _limited(motors: Sequence[str], effort: Array) -> list[str]:
    """Efforts that stand at their largest value: the drive was at its limit, and what it gave is not known.

    Coarsely measured efforts have one value about each maximum, too, but then nearly as often the next one.
    """
    found = []
    for motor, column in zip(motors, effort.T, strict=True):
        top = float(np.abs(column).max())
        held = np.abs(column) >= top * (1 - 1e-9)
        runs = held[1:] & held[:-1]
        below = np.abs(column[~held])
        beside = np.count_nonzero(below >= below.max(initial=0.0) * (1 - 1e-9))
        # one value all the time is no limit: nothing was recorded, which is told elsewhere
        if top > 0 and HELD < np.mean(held) < 1 and runs.any() and held.sum() > FLAT * beside:
            found.append(
                f"the effort of '{motor}' stands at its limit {top:.4g} in {int(held.sum())} samples: "
                "slow the motion down, or cut them"
            )
    return found
