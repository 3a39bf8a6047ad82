"""Measured modes and sensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, did_you_mean
from parflex.io import table_rows
from parflex.records import Record
from parflex.robot.configuration import Configuration

Array = np.ndarray
COLUMNS = ("pose", "mode", "frequency_hz", "deviation_hz", "damping", "damping_deviation")
USUAL = 0.01  # of a frequency, its deviation where none is given
USUAL_DAMPING = 0.1  # of a damping ratio
FORM = "columns are pose,mode,frequency_hz,deviation_hz,damping,damping_deviation, and FRAME.x, ... of shapes"
PARTS = {"x": 0, "y": 1, "z": 2, "rx": 3, "ry": 4, "rz": 5}
LOCAL = "local_"  # before a part: along the axes of the frame, as of a sensor that is glued on


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredMode(Record):
    """A measured frequency, with its damping ratio and shape where they were measured.

    Attributes
    ----------
    pose : str
        Name of the pose.
    mode : int | None
        Its number among the modes of the model there, from 1; None: found by its frequency and shape.
    frequency : float
        Measured (Hz).
    deviation : float
        Standard deviation (Hz).
    damping : float | None
        Damping ratio (dimensionless).
    damping_deviation : float
        Its standard deviation (dimensionless).
    shape : dict[str, complex]
        By sensor, such as 'tip.x', with any common factor (m, rad).
    """

    pose: str
    mode: int | None
    frequency: float
    deviation: float
    damping: float | None = None
    damping_deviation: float = 0.0
    shape: dict[str, complex] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """For messages."""
        return f"mode {self.mode} at '{self.pose}'" if self.mode else f"{self.frequency:.5g} Hz at '{self.pose}'"


def read_table(path: str | Path) -> list[Mapping[str, Any]]:
    """Rows of a CSV file; unknown columns, and rows with more or fewer fields than columns, are refused."""
    names, rows = table_rows(path, "measured", FORM)
    for name in names:
        if name not in COLUMNS and not is_sensor(name):
            raise InputError(f"unknown column '{name}'", file=str(path), key="measured", value=name,
                             hint=did_you_mean(name, COLUMNS) or FORM)  # fmt: skip
    for name in ("pose", "frequency_hz"):
        if name not in names:
            raise InputError(f"there is no column '{name}'", file=str(path), key="measured", value=", ".join(names),
                             hint=FORM)  # fmt: skip
    return [dict(zip(names, row, strict=True)) for row in rows]


def read_rows(rows: Sequence[Any]) -> tuple[list[MeasuredMode], list[Diagnostic]]:
    """Rows as modes; those without a frequency are gaps. With diagnostics."""
    modes: list[MeasuredMode] = []
    gaps = usual = 0
    for number, row in enumerate(rows, start=1):
        if isinstance(row, MeasuredMode):
            modes.append(row)
            continue
        if not isinstance(row, Mapping):
            raise InputError("a row is a table of pose, mode, frequency_hz", key="measured", value=short_text(row),
                             hint="give e.g. {'pose': 'home', 'mode': 1, 'frequency_hz': 14}")  # fmt: skip
        for name in row:
            if name not in COLUMNS and not is_sensor(name):
                raise InputError(f"unknown column '{name}' in row {number}", key="measured", value=short_text(name),
                                 hint=did_you_mean(str(name), COLUMNS) or FORM)  # fmt: skip
        frequency = _number(row.get("frequency_hz"), number, "frequency_hz")
        if frequency is None:
            gaps += 1
            continue
        deviation = _number(row.get("deviation_hz"), number, "deviation_hz")
        damping = _number(row.get("damping"), number, "damping", 1.0)
        spread = _number(row.get("damping_deviation"), number, "damping_deviation", 1.0)
        usual += deviation is None
        modes.append(
            MeasuredMode(
                str(row.get("pose") or "home").strip(), _mode(row.get("mode"), number), frequency,
                deviation or USUAL * frequency, damping, spread or USUAL_DAMPING * (damping or 0.0),
                _shape(row, number),
            )
        )  # fmt: skip
    if not modes:
        raise InputError("no frequency is measured", key="measured", value=len(rows), hint="give at least one row")
    _refuse_duplicates(modes)
    few = [mode.told for mode in modes if len(mode.shape) == 1]
    texts = (
        (f"{gaps} rows have no frequency and are left out", gaps),
        (f"{usual} frequencies have no deviation: {USUAL:.0%} of them is taken", usual),
        (f"a shape at one sensor is not compared ({', '.join(few[:3])})", len(few)),
    )
    return modes, [Diagnostic("incomplete-measurements", text, value=count) for text, count in texts if count]


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _number(value: Any, row: int, key: str, below: float = np.inf) -> float | None:
    if _empty(value):
        return None
    try:
        parsed = float(value)
    except (TypeError, ValueError):
        parsed = float("nan")
    if isinstance(value, bool) or not (np.isfinite(parsed) and 0 < parsed < below):
        what = "a positive number" if below == np.inf else f"a number between 0 and {below:g}"
        raise InputError(f"'{key}' of row {row} is not {what}", key=key, value=short_text(value),
                         hint="give Hz, or leave it empty" if below == np.inf else "give a ratio such as 0.01",
                         )  # fmt: skip
    return parsed


def _mode(value: Any, row: int) -> int | None:
    if _empty(value):
        return None
    try:
        mode = int(str(value))
    except ValueError:
        mode = 0
    if mode < 1:
        raise InputError(f"the mode of row {row} is not a whole number from 1", key="mode", value=short_text(value),
                         hint="number modes from the lowest, or leave it empty")  # fmt: skip
    return mode


def _shape(row: Mapping[str, Any], number: int) -> dict[str, complex]:
    """Entries of the shape that were measured; complex ones as 0.1+0.02j."""
    shape = {}
    for name, value in row.items():
        if name in COLUMNS or _empty(value):
            continue
        try:
            entry = complex(value.replace(" ", "").replace("i", "j") if isinstance(value, str) else value)
        except (TypeError, ValueError):
            entry = complex("nan")
        if not np.isfinite(entry):
            raise InputError(f"'{name}' of row {number} is not a number", key=name, value=short_text(value),
                             hint="give a real or a complex one such as 0.1+0.02j, or leave it empty")  # fmt: skip
        shape[name] = entry
    if shape and not any(shape.values()):
        raise InputError(f"the shape of row {number} is zero at all sensors", key="measured", value=number,
                         hint="leave it empty")  # fmt: skip
    return shape


def _refuse_duplicates(rows: Iterable[MeasuredMode]) -> None:
    measured: set[tuple[str, int]] = set()
    for row in rows:
        if row.mode is not None:
            if (row.pose, row.mode) in measured:
                raise InputError(f"mode {row.mode} at '{row.pose}' is measured twice", key="mode", value=row.mode,
                                 hint="give their mean")  # fmt: skip
            measured.add((row.pose, row.mode))


def read_held_out(held_out: Any, poses: Sequence[str], modes: Sequence[int | None]) -> list[bool]:
    """Which rows are kept apart, by "POSE", "POSE:MODE" or ":MODE"; modes are the numbers of their pairs."""
    words = [word.strip() for word in (held_out.split(",") if isinstance(held_out, str) else list(held_out or ()))]
    apart = [False] * len(poses)
    for word in filter(None, words):
        pose, _, mode = str(word).partition(":")
        hits = [k for k in range(len(poses)) if (not pose or poses[k] == pose) and (not mode or str(modes[k]) == mode)]
        if not hits:
            raise InputError(f"nothing measured is '{word}'", key="hold_out", value=str(word),
                             hint=did_you_mean(pose, sorted(set(poses))))  # fmt: skip
        for k in hits:
            apart[k] = True
    if apart and all(apart):
        raise InputError("everything measured is held out", key="hold_out", value=str(held_out), hint="hold out less")
    return apart


def is_sensor(name: Any) -> bool:
    """Whether a column is named as a sensor: FRAME.x, ..., FRAME.rz, FRAME.local_x, ..."""
    frame, dot, part = str(name).rpartition(".")
    return bool(frame and dot) and part.removeprefix(LOCAL) in PARTS


def sensor_rows(here: Configuration, sensors: Sequence[str]) -> Array:
    """What each sensor sees per unit of all rates, in world axes or in those of its frame."""
    tree, result = here.robot.tree, []
    for word in sensors:
        frame, _, part = word.rpartition(".")
        if not tree.has(frame, "measured"):
            raise InputError(f"'{word}' of a measured shape: the robot has no frame '{frame}'", key="measured",
                             value=word, hint=did_you_mean(frame, list(tree.places)))  # fmt: skip
        rows = here.frame_rows(frame)
        if part.startswith(LOCAL):
            R, _ = here.at.of(tree.place(frame))
            rows = np.concatenate([R.T @ rows[:3], R.T @ rows[3:]])
        result.append(rows[PARTS[part.removeprefix(LOCAL)]])
    return np.array(result, dtype=float).reshape(len(sensors), tree.n)


def mac_of_span(measured: Array, shapes: Array) -> float:
    """MAC of a measured shape with the nearest motion in the span of some: of equal modes any mixture is a mode."""
    size = float(np.vdot(measured, measured).real)
    if not size or not shapes.any():
        return 0.0
    basis, sizes, _ = np.linalg.svd(shapes, full_matrices=False)
    along = basis[:, sizes > 1e-9 * sizes[0]].T @ measured
    return float(np.vdot(along, along).real) / size
