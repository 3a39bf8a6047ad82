"""Tables of a robot file from an imported file, and what is dropped."""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.diagnostics import Diagnostic
from parflex.records import Record
from parflex.spatial.rotations import cross, exact_entries, matrix_quaternion

LONGEST = 80

FEW = 4  # sentences on names

KEPT = "base"  # the ground

Array = np.ndarray

E3 = np.eye(3)

NONE = np.zeros(3)

NOTE = "#"  # key of a remark in a table: it is written as a comment

ONE_AXIS = ("revolute", "prismatic")


class ImportedNames:
    """Names that are taken, and what was called otherwise in the source.

    Two things of different kinds may share a name in the source, as a link and its joint do; here they may not.
    """

    def __init__(self) -> None:
        self.taken: set[str] = {KEPT}
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

    def brief(self) -> list[str]:
        """The same, without going on for long."""
        all_of_them = self.sentences()
        if len(all_of_them) <= FEW:
            return all_of_them
        return [
            *all_of_them[: FEW - 1],
            f"{len(all_of_them) - FEW + 1} more names are others here; the file lists them",
        ]


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

    @property
    def joints(self) -> list[str]:
        """Frames that move."""
        return [table["name"] for table in self.frame if table.get("joint", "fixed") != "fixed"]

    @property
    def closures(self) -> list[str]:
        """Loops that are closed."""
        return [table.get("name") or "~".join(table["between"]) for table in self.closure]

    def of(self, name: str) -> dict[str, Any]:
        """The table of a frame."""
        return next(table for table in self.frame if table["name"] == name)

    def report(self, text: str, quantity: str = "") -> None:
        """Add a diagnostic about a difference from the source."""
        self.diagnostics.append(Diagnostic("changed-by-import", text, quantity))

    def drop(self, kind: str, name: str, why: str) -> None:
        """Note what is left out."""
        self.dropped.append(Dropped(kind, name, why))

    def carrier(self, name: str) -> str:
        """The frame with a joint that carries a frame or point, or the ground."""
        tables = {table["name"]: table for table in [*self.frame, *self.point]}
        while name in tables and tables[name].get("joint", "fixed") == "fixed":
            name = tables[name].get("parent", tables[name].get("frame", "base"))
        return name

    def drop_idle_closures(self) -> None:
        """Leave out closures of two places on one body: they hold or not, whatever moves."""
        idle = [closure for closure in self.closure if len({self.carrier(end) for end in closure["between"]}) == 1]
        for closure in idle:
            self.closure.remove(closure)
            self.drop("closure", closure.get("name") or "~".join(closure["between"]), "both its ends are on one body")

    def add_point(self, name: str, frame: str, R: Array, p: Array, note: str = "") -> str:
        """A named place on a frame."""
        table: dict[str, Any] = {"name": name, "frame": frame} | placement_entries(R, p)
        self.point.append(table | ({NOTE: note} if note else {}))
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
        table: dict[str, Any] = {"name": name}
        table |= {"parent": parent} if parent != "base" else {}
        table |= {"joint": entries.pop("joint")} if "joint" in entries else {}
        table |= {"place": place} if place else {}
        self.frame.append(table | {key: value for key, value in entries.items() if is_stated(value)})
        return name


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
            vector = np.zeros(3)
            vector[k] = np.arctan2(R[j, i], R[i, i])
            return plain_numbers(vector)
    Q = matrix_quaternion(R)
    Q = Q if Q[0] >= 0 else -Q
    size = float(np.linalg.norm(Q[1:]))
    return plain_numbers(2 * np.arctan2(size, Q[0]) / size * Q[1:])


def rotation_to(axis: Array) -> Array:
    """The shortest turn that brings z to an axis."""
    u = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    u = exact_entries(u)
    if u[2] < -0.5:  # half a turn about x, and what is left from there
        half = np.diag([1.0, -1.0, -1.0])
        return half @ rotation_to(half @ u)
    v = cross(E3[2], u)
    hat = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return exact_entries(E3 + hat + hat @ hat / (1 + u[2]))


def roll_pitch_yaw_matrix(angles: Array) -> Array:
    """R = Rz(yaw) Ry(pitch) Rx(roll)."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(angles), np.sin(angles)
    return exact_entries(
        np.array(
            [
                [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                [-sp, cp * sr, cp * cr],
            ]
        )
    )
