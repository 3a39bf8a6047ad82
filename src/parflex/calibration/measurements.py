"""Measurements of poses: tables, the map of their columns, and what the robot should have measured.

A row of a table is one pose. The map names the columns of readings of joints and of measurements: poses of frames,
distances between points, and contacts. Numbers of the map that are not of the robot file (offsets and gains of joints,
poses of measuring frames, planes, points) can be fitted beside those of the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from parflex.calibration.batch import Scene, small_turn
from parflex.checks import short_text
from parflex.errors import InputError, did_you_mean
from parflex.io import read_bytes, table_rows
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.spatial.rotations import quaternion_matrix, rotation_about, rotation_from_vector, unit_quaternion

Array = np.ndarray
POSITION, TURN, QUATERNION = ("x", "y", "z"), ("rx", "ry", "rz"), ("qw", "qx", "qy", "qz")
MAP = ("row", "motors", "joints", "pose", "distance", "contact", "bases", "planes", "points")
TABLES = {
    "pose": {"frame", "base", *POSITION, *TURN, *QUATERNION, "theta", "deviation", "rotation_deviation"},
    "distance": {"between", "length", "deviation"},
    "contact": {"frame", "plane", "point", "height", "deviation"},
}
READING = {"column", "gain", "offset", "deviation"}
AXES = "xyz"


@dataclass(frozen=True, eq=False, repr=False)
class Column(Record):
    """Values of a column in SI units, NaN where a row has none, and their standard deviations, NaN if unknown."""

    name: str
    values: Array
    deviations: Array


@dataclass(frozen=True, eq=False, repr=False)
class Reading(Record):
    """Readings of a joint; with `exact` they fix its coordinate, else they are measurements with a deviation."""

    joint: str
    column: Column
    unit: str
    exact: bool


@dataclass(frozen=True, eq=False, repr=False)
class Gauge(Record):
    """One measured quantity of a frame, a pair of points or a contact; a pose has up to six.

    `of` gives what is left between robot and measurement in all poses, from the numbers of the map by name.
    """

    name: str
    kind: str
    unit: str
    columns: tuple[Column, ...]
    deviations: Array
    frames: tuple[str, ...]
    base: str = ""
    part: int = 0  # coordinate, or axis of a plane
    rotation: Array | None = None  # measured rotation matrices

    @property
    def present(self) -> Array:
        """Poses that have a value."""
        return np.all([np.isfinite(column.values) for column in self.columns], axis=0)


@dataclass(frozen=True, eq=False, repr=False)
class Extra(Record):
    """A number of the map that can be fitted: its value, its unit, and whether the map asks to fit it."""

    value: float
    unit: str
    fitted: bool


@dataclass(frozen=True, eq=False, repr=False)
class Measurements(Record):
    """All that was measured: names of the rows, readings of joints, gauges, and numbers of the map."""

    rows: list[str]
    readings: list[Reading]
    gauges: list[Gauge]
    extras: dict[str, Extra]
    points: tuple[str, ...] = ()
    file: str = field(default="", compare=False)

    @property
    def exact(self) -> list[Reading]:
        """Readings that fix coordinates."""
        return [reading for reading in self.readings if reading.exact]

    @property
    def noisy(self) -> list[Reading]:
        """Readings that are measurements."""
        return [reading for reading in self.readings if not reading.exact]


# -- tables ----------------------------------------------------------------------------------------------------------


def read_tables(data: Any) -> tuple[dict[str, Array], list[str], str]:
    """Columns of one table or several, one below the other, as texts or numbers, with a name for each row."""
    sources = list(data) if isinstance(data, list | tuple) else [data]
    columns: dict[str, list[Any]] = {}
    rows: list[str] = []
    for source in sources:
        table = source if isinstance(source, Mapping) else _read_csv(source)
        count = len(next(iter(table.values()), ()))
        if any(len(values) != count for values in table.values()):
            raise InputError(
                "the columns of the data have different lengths", key="data", hint="give one value per row"
            )
        for name in dict.fromkeys((*columns, *table)):
            columns.setdefault(name, [""] * len(rows)).extend(table.get(name, [""] * count))
        stem = "" if isinstance(source, Mapping) or len(sources) == 1 else f"{Path(source).stem}:"
        rows += [f"{stem}{number}" for number in range(1, count + 1)]
    if not rows:
        raise InputError("the data have no rows", key="data", hint="give CSV files, or a dictionary of columns")
    file = "" if isinstance(sources[0], Mapping) else str(sources[0])
    return {name: np.array(values, dtype=object) for name, values in columns.items()}, rows, file


def _read_csv(path: Any) -> dict[str, list[str]]:
    if not isinstance(path, str | Path):
        hint = "give a CSV file, or a dictionary of columns"
        raise InputError("'data' is not a table", key="data", value=short_text(path), hint=hint)
    names, rows = table_rows(path, "data", "give a row of names, then a row for each pose")
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


def read_map(columns: Any, file: str = "") -> dict[str, Any]:
    """The map of the columns, from a file or a dictionary."""
    if columns is None:
        return {}
    if isinstance(columns, Mapping):
        table = dict(columns)
    else:
        file = str(columns)
        try:
            table = tomllib.loads(read_bytes(columns, "columns").decode("utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"is not TOML ({error})", file=file, key="columns", hint="see the how-to page") from None
    for key in table:
        if key not in MAP:
            raise InputError(f"unknown key '{key}'", file=file, key="columns", value=key, hint=did_you_mean(key, MAP))
    return table


# -- the map ---------------------------------------------------------------------------------------------------------


class MapReader:
    """Reads the map of columns of a robot's measurements; without data all values of the planned rows are zero."""

    def __init__(self, robot: Robot, data: Any, columns: Any, planned: int = 0) -> None:
        self.robot = robot
        names = robot.tree.position_names
        self.joints = {names[link.q.start]: link for link in robot.tree.links if link.joint.one_axis}
        self.planned = bool(planned)
        self.table, self.rows, self.file = ({}, [""] * planned, "") if planned else read_tables(data)
        self.where = self.file if columns is None or isinstance(columns, Mapping) else str(columns)
        self.map = read_map(columns) if columns is not None else self._default_map()
        self.extras: dict[str, Extra] = {}

    def _default_map(self) -> dict[str, Any]:
        """Columns that are named as joints are their readings, those named FRAME.x are poses."""
        tree, table = self.robot.tree, dict[str, Any]()
        for name in self.table:
            frame, _, part = name.rpartition(".")
            if name in self.joints:
                kind = "motors" if name in self.robot.motors else "joints"
                table.setdefault(kind, {})[name] = name
            elif part in (*POSITION, *TURN, *QUATERNION, "theta") and tree.has(frame, "columns"):
                poses = table.setdefault("pose", [])
                entry = next((item for item in poses if item["frame"] == frame), None) or {"frame": frame}
                poses += [] if entry in poses else [entry]
                entry[part] = name
        return table

    def refuse(self, text: str, value: Any, hint: str) -> InputError:
        """Return the error of an entry of the map."""
        return InputError(text, file=self.where or None, key="columns", value=short_text(value), hint=hint)

    def measurements(self) -> Measurements:
        """All that the map names."""
        rows = self.rows
        if "row" in self.map and not self.planned:
            rows = [str(value) for value in self._raw(self.map["row"])]
        for kind, words, unit in (
            ("bases", (*POSITION, *TURN), "m"), ("points", POSITION, "m"),
            ("planes", ("height", "slope_x", "slope_y", "slope_z"), "m"),
        ):  # fmt: skip
            for name, entry in self.map.get(kind, {}).items():
                self._known_keys(entry, {*words, "fit", "axis"}, f"{kind}.{name}")
                free = [word for word in words if word != f"slope_{entry.get('axis', 'z')}"]
                for word in free:
                    angle = "rad" if word in TURN else "" if word.startswith("slope") else unit
                    value = self._number(entry.get(word, 0.0), f"{name}.{word}")
                    self.extras[f"{name}.{word}"] = Extra(value, angle, bool(entry.get("fit", False)))
        readings = [self._reading(name, entry, "motors") for name, entry in self.map.get("motors", {}).items()]
        readings += [self._reading(name, entry, "joints") for name, entry in self.map.get("joints", {}).items()]
        gauges = [gauge for kind in TABLES for entry in self.map.get(kind, ()) for gauge in self._gauges(kind, entry)]
        if not gauges and not any(not reading.exact for reading in readings):
            raise self.refuse(
                "nothing but motors is measured", "", "add [[pose]], [[distance]], [[contact]] or [joints]"
            )
        return Measurements(rows, readings, gauges, self.extras, tuple(self.map.get("points", {})), self.file)

    def _known_keys(self, entry: Any, known: set[str], where: str) -> None:
        if not isinstance(entry, Mapping):
            raise self.refuse(f"'{where}' is not a table", entry, "write { column = ... }")
        for key in entry:
            if key not in known:
                raise self.refuse(f"unknown key '{key}' in '{where}'", key, did_you_mean(key, known))

    def _raw(self, name: Any) -> Array:
        if self.planned and isinstance(name, str):
            return np.zeros(len(self.rows))
        if not isinstance(name, str) or name not in self.table:
            known = ", ".join(self.table)
            hint = f"{did_you_mean(str(name), self.table)}; the columns are {known}"
            raise self.refuse(f"there is no column '{name}'", name, hint)
        return self.table[name]

    def _column(self, entry: Any, where: str, deviation: Any = None) -> Column:
        """A column by name, by { column, gain, offset, deviation }, or one number for all rows."""
        if isinstance(entry, int | float) and not isinstance(entry, bool):
            values = np.full(len(self.rows), float(entry))
            return Column(where, values, self._deviation(deviation, where))
        spec = {"column": entry} if isinstance(entry, str) else entry
        self._known_keys(spec, READING, where)
        name = spec.get("column")
        gain = self._number(spec.get("gain", 1.0), f"{where}.gain")
        offset = self._number(spec.get("offset", 0.0), f"{where}.offset")
        values = self._numbers(self._raw(name), name) * gain + offset
        return Column(str(name), values, self._deviation(spec.get("deviation", deviation), where))

    def _number(self, value: Any, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise self.refuse(f"'{where}' is not a finite number", value, "write e.g. 0.001")
        return float(value)

    def _deviation(self, entry: Any, where: str) -> Array:
        if entry is None:
            return np.full(len(self.rows), np.nan)
        if isinstance(entry, str):
            values = self._numbers(self._raw(entry), entry)
        else:
            values = np.full(len(self.rows), self._number(entry, f"{where}.deviation"))
        if not (values[np.isfinite(values)] > 0).all():
            raise self.refuse(f"a deviation of '{where}' is not positive", entry, "give standard deviations above zero")
        return np.asarray(values, dtype=float)

    def _numbers(self, values: Array, name: Any) -> Array:
        result = np.full(len(values), np.nan)
        for k, value in enumerate(values):
            try:
                result[k] = np.nan if value == "" else float(value)
            except (TypeError, ValueError):
                text = f"row {self.rows[k]} has '{short_text(value)}' in the column '{name}', which is not a number"
                hint = "numbers have a decimal point; leave fields without a value empty"
                raise InputError(text, file=self.file or None, key="data", value=short_text(value), hint=hint) from None
        return result

    def _reading(self, joint: str, entry: Any, kind: str) -> Reading:
        if joint not in self.joints:
            hint = did_you_mean(joint, self.joints)
            raise self.refuse(f"the robot has no joint '{joint}' with one axis", joint, hint)
        column = self._column(entry, joint)
        unit = self.joints[joint].joint.unit
        exact = kind == "motors" and not np.isfinite(column.deviations).any()
        if exact and not np.isfinite(column.values).all():
            row = self.rows[int(np.flatnonzero(~np.isfinite(column.values))[0])]
            hint = "fill it in, or give the motor a deviation: its missing values are then unknown"
            raise self.refuse(f"row {row} has no value of the motor '{joint}'", joint, hint)
        written = self.robot.description.readings.get(joint)
        start = (0.0, 1.0) if written is None else (written.offset, written.gain)
        self.extras[f"{joint}.offset"], self.extras[f"{joint}.gain"] = (
            Extra(value, word, False) for value, word in zip(start, (unit, ""), strict=True)
        )
        return Reading(joint, column, unit, exact)

    def _frame(self, name: Any, where: str) -> str:
        if not isinstance(name, str) or not self.robot.tree.has(name, "columns"):
            hint = did_you_mean(str(name), list(self.robot.tree.places))
            raise self.refuse(f"'{where}' needs a frame of the robot, not '{name}'", name, hint)
        return name

    def _owner(self, name: Any, kind: str) -> str:
        known = self.map.get(kind, {})
        if name not in known:
            raise self.refuse(f"'{name}' is not in [{kind}]", name, f"add [{kind}.{name}] to the map")
        return str(name)

    def _gauges(self, kind: str, entry: Any) -> list[Gauge]:
        self._known_keys(entry, TABLES[kind], kind)
        if kind == "pose":
            return self._pose_gauges(entry)
        deviation = entry.get("deviation")
        if kind == "distance":
            ends = tuple(entry.get("between", ()))
            if len(ends) != 2:
                raise self.refuse("a distance is between two points", ends, 'write between = ["platform", "anchor"]')
            ends = tuple(end if end in self.map.get("points", {}) else self._frame(end, "between") for end in ends)
            column = self._column(entry.get("length"), "length", deviation)
            return [Gauge(f"{ends[0]}~{ends[1]}", kind, "m", (column,), column.deviations, ends)]
        frame = (self._frame(entry.get("frame", self.robot.tree.end_effector), "frame"),)
        if "point" in entry:
            owner = self._owner(entry["point"], "points")
            column = self._column(0.0, owner, deviation)
            return [
                Gauge(f"{frame[0]}~{owner}.{axis}", "point", "m", (column,), column.deviations, frame, owner, k)
                for k, axis in enumerate(AXES)
            ]
        plane = "" if "plane" not in entry else self._owner(entry["plane"], "planes")
        axis = self.map["planes"][plane].get("axis", "z") if plane else "z"
        if axis not in AXES:
            raise self.refuse(f"the axis of plane '{plane}' is '{axis}'", axis, "write x, y or z")
        column = self._column(entry.get("height", 0.0), "height", deviation)
        name = f"{frame[0]}~{plane or 'z'}"
        return [Gauge(name, "plane", "m", (column,), column.deviations, frame, plane, AXES.index(axis))]

    def _pose_gauges(self, entry: Any) -> list[Gauge]:
        frame = self._frame(entry.get("frame", self.robot.tree.end_effector), "frame")
        base = "" if "base" not in entry else self._owner(entry["base"], "bases")
        gauges = []
        parts = {axis: self._column(entry[axis], f"{frame}.{axis}", entry.get("deviation")) for axis in POSITION
                 if axis in entry}  # fmt: skip
        if base and 0 < len(parts) < 3:
            raise self.refuse(f"the position of '{frame}' in '{base}' needs x, y and z", entry, "name three columns")
        for axis, column in parts.items():
            gauges.append(Gauge(f"{frame}.{axis}", "position", "m", (column,), column.deviations, (frame,), base,
                                AXES.index(axis)))  # fmt: skip
        words = next((group for group in (TURN, QUATERNION, ("theta",)) if any(word in entry for word in group)), ())
        if not words:
            return gauges
        for word in words:
            if word not in entry:
                raise self.refuse(f"the rotation of '{frame}' has no '{word}'", entry, f"name {', '.join(words)}")
        columns = tuple(self._column(entry[word], f"{frame}.{word}", entry.get("rotation_deviation")) for word in words)
        values = np.array([column.values for column in columns]).T
        known = np.isfinite(values).all(axis=1) & (not self.planned)
        rotation = np.full((len(values), 3, 3), np.nan)
        turned: Any = {
            TURN: rotation_from_vector, QUATERNION: lambda q: quaternion_matrix(unit_quaternion(q)),
            ("theta",): lambda angle: rotation_about(2, angle[0]),
        }[words]  # fmt: skip
        rotation[known] = [turned(row) for row in values[known]]
        for k in (2,) if words == ("theta",) else range(3):
            word = "theta" if words == ("theta",) else TURN[k]
            deviations = columns[0 if len(words) != 3 else k].deviations
            gauges.append(Gauge(f"{frame}.{word}", "rotation", "rad", columns, deviations, (frame,), base, k, rotation))
        return gauges


# -- what the robot should have measured -----------------------------------------------------------------------------


def base_pose(base: str, numbers: Mapping[str, Any]) -> tuple[Array, Array]:
    """Rotation Rz Ry Rx and position of a measuring frame in the base of the robot."""
    R = rotation_about(2, numbers[f"{base}.rz"]) @ rotation_about(1, numbers[f"{base}.ry"])
    position = np.array([numbers[f"{base}.{axis}"] for axis in POSITION], dtype=object)
    return R @ rotation_about(0, numbers[f"{base}.rx"]), position


def residuals(
    measurements: Measurements, scene: Scene, numbers: Mapping[str, Any], columns: Sequence[Any]
) -> list[Any]:
    """Robot less measurement of all gauges and of readings that are no motors, over any scalar.

    `columns` are the values of all columns of these, as numbers of the rows.
    """
    result: list[Any] = []
    places = scene.robot.tree.places
    values = iter(columns)
    for gauge in measurements.gauges:
        own = [next(values) for _ in gauge.columns] if gauge.kind != "rotation" else []
        if gauge.kind == "distance":
            ends = [_end(measurements, end, scene, numbers) for end in gauge.frames]
            apart = ends[1] - ends[0]
            result.append(np.sqrt(apart @ apart) - own[0])
            continue
        R, P = scene.at.of(places[gauge.frames[0]])
        if gauge.kind == "point":
            result.append(P[gauge.part] - numbers[f"{gauge.base}.{AXES[gauge.part]}"])
        elif gauge.kind == "plane":
            result.append(_height(gauge, P, numbers) - own[0])
        else:
            if gauge.base:
                turn, origin = base_pose(gauge.base, numbers)
                R, P = turn.T @ R, turn.T @ (P - origin)
            if gauge.kind == "position":
                result.append(P[gauge.part] - own[0])
            else:
                measured = next(values)
                result.append(small_turn(measured.T @ R)[gauge.part])
    names = scene.robot.tree.position_names
    for reading in measurements.noisy:
        gain, offset = numbers[f"{reading.joint}.gain"], numbers[f"{reading.joint}.offset"]
        result.append(scene.at.q[names.index(reading.joint)] - gain * next(values) - offset)
    return result


def _end(measurements: Measurements, name: str, scene: Scene, numbers: Mapping[str, Any]) -> Array:
    if name in measurements.points:
        return np.array([numbers[f"{name}.{axis}"] for axis in POSITION], dtype=object)
    return scene.at.of(scene.robot.tree.places[name])[1]


def _height(gauge: Gauge, P: Array, numbers: Mapping[str, Any]) -> Any:
    """Distance of a point from a plane along its normal."""
    if not gauge.base:
        return P[gauge.part]
    height, square = P[gauge.part] - numbers[f"{gauge.base}.height"], 1.0
    for axis in (k for k in range(3) if k != gauge.part):
        slope = numbers[f"{gauge.base}.slope_{AXES[axis]}"]
        height, square = height - slope * P[axis], square + slope * slope
    return height / np.sqrt(square)
