"""Tables of a robot file from an imported file, what is dropped, and the text of the file."""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.diagnostics import Diagnostic
from parflex.records import Record, name_list
from parflex.spatial.rotations import exact_entries, hat, rotation_about, vector_from_rotation

Array = np.ndarray
E3 = np.eye(3)
NONE = np.zeros(3)
LONGEST = 80  # letters of a name, as in robot files
NOTE = "#"  # key of a remark in a table: it is written as a comment
ONE_AXIS = ("revolute", "prismatic")
HEAD = ("name", "parent", "joint", "place")  # keys of a frame that stand before the others
ON_GROUND = "it is fixed to the ground"
SHAPES = "robot files have no shapes"
ANGLES = {k * math.pi / 12: word for k, word in ((1, "pi/12"), (2, "pi/6"), (3, "pi/4"), (4, "pi/3"), (6, "pi/2"))}
ANGLES |= {k * math.pi / 12: word for k, word in ((8, "2*pi/3"), (9, "3*pi/4"), (10, "5*pi/6"), (12, "pi"))}
TABLES = ("frame", "point", "closure", "coupling", "element", "visual")
COMMENT_WIDTH = 110  # letters of a comment
MANY = 12  # names in a comment


class ImportedNames:
    """Names that are taken, and what was called otherwise in the source.

    Two things of different kinds may share a name in the source, as a link and its joint do; here they may not.
    """

    def __init__(self) -> None:
        self.taken: set[str] = {"base"}
        self.renamed: dict[str, str] = {}

    def give(self, name: str, otherwise: str = "part", say: bool = True) -> str:
        """A name of a robot file for one of the source; `otherwise` for one that has none."""
        plain = allowed(name) or allowed(otherwise) or "part"
        unique, number = plain, 2
        while unique in self.taken or f"{unique}.1" in self.taken:
            unique = f"{plain[: LONGEST - 5]}_{number}"
            number += 1
        self.taken.add(unique)
        if name and say and unique != name:
            self.renamed[short_text(name)] = unique
        return unique

    def sentences(self) -> list[str]:
        """What is called otherwise here."""
        return [f"'{name}' is called '{new_name}' here" for name, new_name in self.renamed.items()]


def allowed(name: str) -> str:
    """The name with every letter that a robot file does not allow made an underscore."""
    plain = unicodedata.normalize("NFKC", name).strip()
    return re.sub(r"[^\w+\-.~ ]", "_", plain)[:LONGEST].strip()


@dataclass(frozen=True, eq=False, repr=False)
class Dropped(Record):
    """Something of the source that the robot file does not have: its `kind` and `name`, and `why`."""

    kind: str
    name: str
    why: str


@dataclass(frozen=True, eq=False, repr=False)
class Mass(Record):
    """A rigid body: mass, centre, and inertia about the centre, in one frame."""

    mass: float
    centre: Array
    inertia: Array

    def seen_from(self, R: Array, p: Array) -> Mass:
        """The same body in a frame in which its own stands at (R, p)."""
        return Mass(self.mass, p + R @ self.centre, R @ self.inertia @ R.T)

    def table(self) -> dict[str, Any]:
        """The entry of a robot file."""
        I = (self.inertia + self.inertia.T) / 2
        mixed = I - np.diag(np.diag(I))
        small = 1e-15 * max(float(np.abs(I).max()), 1e-300)
        entries = plain_numbers(np.diag(I)) if np.abs(mixed).max() <= small else [plain_numbers(row) for row in I]
        table: dict[str, Any] = {"mass": float(self.mass)}
        if self.centre.any():
            table["centre"] = plain_numbers(self.centre)
        return table | ({"about_centre": entries} if I.any() else {})


@dataclass(eq=False)
class ImportedTables:
    """Tables of a robot file, in the order in which they are written."""

    name: str
    source: str
    gravity: Any = (0.0, 0.0, -9.81)
    end_effector: str | None = None
    constants: dict[str, float] = field(default_factory=dict)
    frame: list[dict[str, Any]] = field(default_factory=list)
    point: list[dict[str, Any]] = field(default_factory=list)
    closure: list[dict[str, Any]] = field(default_factory=list)
    coupling: list[dict[str, Any]] = field(default_factory=list)
    element: list[dict[str, Any]] = field(default_factory=list)
    visual: list[dict[str, Any]] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    names: ImportedNames = field(default_factory=ImportedNames)
    moving: set[str] = field(default_factory=set)  # frames and points that a joint moves

    @property
    def joints(self) -> list[str]:
        """Frames that move."""
        return [table["name"] for table in self.frame if table.get("joint", "fixed") != "fixed"]

    @property
    def closures(self) -> list[str]:
        """Loops that are closed."""
        return [closure_name(table) for table in self.closure]

    def of(self, name: str) -> dict[str, Any]:
        """The table of a frame."""
        return next(table for table in self.frame if table["name"] == name)

    def report(self, text: str, quantity: str = "") -> None:
        """Add a diagnostic about a difference from the source."""
        self.diagnostics.append(Diagnostic("changed-by-import", text, quantity))

    def drop(self, kind: str, name: str, why: str) -> None:
        """Note what is left out."""
        self.dropped.append(Dropped(kind, name, why))

    def carriers(self) -> dict[str, str]:
        """The frame with a joint that carries each frame and point, or the ground."""
        carriers = {"base": "base"}
        for table in (*self.frame, *self.point):
            moves = table.get("joint", "fixed") != "fixed"
            above = table.get("parent", table.get("frame", "base"))
            carriers[table["name"]] = table["name"] if moves else above
        for name, above in carriers.items():
            while carriers.get(above, above) != above:
                above = carriers[above]
            carriers[name] = above
        return carriers

    def drop_idle_closures(self) -> None:
        """Leave out closures of two places on one body: they hold or not, whatever moves."""
        carriers = self.carriers()
        for closure in [each for each in self.closure if len({carriers[end] for end in each["between"]}) == 1]:
            self.closure.remove(closure)
            self.drop("closure", closure_name(closure), "both its ends are on one body")

    def add_point(self, name: str, frame: str, R: Array, p: Array) -> str:
        """A named place on a frame."""
        self.point.append({"name": name, "frame": frame} | placement_entries(R, p))
        self.moving |= {name} if frame in self.moving else set()
        return name

    def add_visual(self, frame: str, file: Path, R: Array, p: Array, scale: Array) -> None:
        """A mesh that is shown where it stands."""
        table: dict[str, Any] = {"frame": frame, "file": str(file)}
        if np.any(scale != 1):
            table["scale"] = float(scale[0]) if np.ptp(scale) == 0 else plain_numbers(scale)
        self.visual.append(table | placement_entries(R, p))

    def name_meshes_from(self, folder: Path) -> None:
        """Name meshes from the folder of the robot file."""
        for table in self.visual:
            table["file"] = Path(os.path.relpath(Path(table["file"]).resolve(), folder)).as_posix()

    def add_frame(self, name: str, parent: str, R: Array, p: Array, **entries: Any) -> str:
        """A frame on its joint; entries that say nothing are left out."""
        place = placement_entries(R, p)
        self.moving |= {name} if "joint" in entries or parent in self.moving else set()
        table: dict[str, Any] = {"name": name}
        table |= {"parent": parent} if parent != "base" else {}
        table |= {"joint": entries.pop("joint")} if "joint" in entries else {}
        table |= {"place": place} if place else {}
        self.frame.append(table | {key: value for key, value in entries.items() if is_stated(value)})
        return name

    def add_fixed(self, name: str, parent: str, R: Array, p: Array, mass: Mass | None, owner: str) -> None:
        """A body that is fixed to another one: a frame if it has a mass that moves, else a point."""
        if mass is not None and parent in self.moving:
            self.add_frame(name, parent, R, p, inertia=mass.table())
            return
        self.add_point(name, parent, R, p)
        if mass is not None:
            self.drop("inertia", owner, ON_GROUND)

    def make_motor(self, name: str) -> dict[str, Any]:
        """Mark a joint as actuated; returns its table."""
        table = self.of(name)
        rest = {key: table.pop(key) for key in list(table) if key not in HEAD}
        table |= {"actuated": True} | rest
        return table


def closure_name(table: Mapping[str, Any]) -> str:
    """The name of a closure, or those of its ends."""
    return str(table.get("name") or "~".join(table["between"]))


def is_stated(value: Any) -> bool:
    """Whether an entry says more than its default."""
    return not (value is None or value is False or value == 0 or value in ({}, [], ""))


def placement_entries(R: Array, p: Array) -> dict[str, Any]:
    """Position and rotation vector as entries of a table."""
    table: dict[str, Any] = {}
    if np.any(p):
        table["position"] = plain_numbers(p)
    vector = rotation_vector(R)
    return table | ({"rotation": vector} if any(vector) else {})


def plain_numbers(values: Any) -> list[float]:
    """Plain numbers, without minus zeros."""
    return [float(value) + 0.0 for value in np.asarray(values, dtype=float).ravel()]


def rotation_vector(R: Array) -> list[float]:
    """Axis times angle; exact about one axis of the frame."""
    R = exact_entries(np.asarray(R, dtype=float))
    for k in range(3):  # by its two numbers, so that right angles stay right
        i, j = (k + 1) % 3, (k + 2) % 3
        if R[k, k] == 1.0 and not (R[k, i] or R[k, j] or R[i, k] or R[j, k]):
            return plain_numbers(np.arctan2(R[j, i], R[i, i]) * E3[k])
    return plain_numbers(vector_from_rotation(R))


def rotation_to(axis: Array) -> Array:
    """The shortest turn that brings z to an axis."""
    u = exact_entries(np.asarray(axis, dtype=float) / np.linalg.norm(axis))
    if u[2] < -0.5:  # half a turn about x, and what is left from there
        half = np.diag([1.0, -1.0, -1.0])
        return half @ rotation_to(half @ u)
    turn = hat(np.array([-u[1], u[0], 0.0]))
    return exact_entries(E3 + turn + turn @ turn / (1 + u[2]))


def roll_pitch_yaw_matrix(angles: Array) -> Array:
    """R = Rz(yaw) Ry(pitch) Rx(roll)."""
    roll, pitch, yaw = angles
    return exact_entries(rotation_about(2, yaw) @ rotation_about(1, pitch) @ rotation_about(0, roll))


# -- the text of the robot file ------------------------------------------------------------------------------------


def robot_text(robot: ImportedTables) -> str:
    """The whole file."""
    lines = ["format = 1", f"name = {quoted(robot.name)}", f"gravity = {toml_value(robot.gravity)}"]
    if robot.end_effector is not None:
        lines.append(f"end_effector = {quoted(robot.end_effector)}")
    lines += _remarks(robot)
    lines += ["", "[reference]", f"source = {quoted(f'imported from {robot.source}')}"]
    if robot.constants:
        lines += ["", "[constants]", *(f"{name} = {toml_value(value)}" for name, value in robot.constants.items())]
    for kind in TABLES:
        for table in getattr(robot, kind):
            lines += ["", f"[[{kind}]]" + (f"  # {_printable(table[NOTE])}" if NOTE in table else "")]
            lines += [f"{key} = {_entry(key, value)}" for key, value in table.items() if key != NOTE]
    return "\n".join(lines) + "\n"


def _remarks(robot: ImportedTables) -> list[str]:
    """Comments on what the source has and this file has not, and on what is called otherwise."""
    groups: dict[tuple[str, str], list[str]] = {}
    for dropped in robot.dropped:
        groups.setdefault((dropped.kind, dropped.why), []).append(dropped.name)
    lines = ["", "# Not carried over:"] if groups else []
    for (kind, why), names in groups.items():
        lines += _comment(f"{kind} {name_list(names, MANY)}: {why}")
    if robot.names.renamed:
        lines += ["", "# Called otherwise than in the source:"]
        lines += [line for text in robot.names.sentences() for line in _comment(text)]
    return lines


def _comment(text: str) -> list[str]:
    lines, line = [], "# -"
    for word in _printable(text).split():
        if len(line) + 1 + len(word) > COMMENT_WIDTH and line not in ("# -", "#  "):
            lines.append(line)
            line = "#  "
        line += f" {word}"
    return [*lines, line]


def _printable(text: str) -> str:
    """Text that cannot end a comment."""
    return re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]", " ", text)


def _entry(key: str, value: Any) -> str:
    """The value of a key; turns by common angles are written as such."""
    return f"[{', '.join(map(_angle, value))}]" if key == "rotation" else toml_value(value)


def _angle(value: Any) -> str:
    for angle, word in ANGLES.items() if isinstance(value, float) else ():
        if abs(abs(value) - angle) <= 4e-16 * angle:
            return quoted(f"{'-' if value < 0 else ''}{word}")
    return toml_value(value)


def toml_value(value: Any) -> str:
    """A value of TOML; a string among numbers is an expression."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {_entry(key, item)}" for key, item in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    number = float(value) + 0.0
    return str(int(number)) if number.is_integer() and abs(number) < 1e6 else repr(number)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else quoted(key)


def quoted(text: str) -> str:
    """A string of TOML."""
    safe = _printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{safe}"'
