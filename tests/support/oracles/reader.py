"""Reader of robot files for the oracles: valid files only, no messages."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .beam_element import Bar
from .beam_tables import bar, complete
from .elements import PointToPoint, read_element
from .expressions import number, numbers
from .tables import Table, body, joint_terms, placement, quaternion

AXES = {"x": [1.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0], "z": [0.0, 0.0, 1.0]}
KINDS = {
    "revolute": ("rz",),
    "prismatic": ("pz",),
    "helical": ("hz",),
    "cylindrical": ("rz", "pz"),
    "universal": ("rz", "rx"),
}
POSE_KEYS = {"x", "y", "z", "qw", "qx", "qy", "qz", "rx", "ry", "rz", "theta"}
QUATERNION = ("qw", "qx", "qy", "qz")


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame moved by one axis, a ball, `free` or `planar`; a beam end (`node`) by its elastic coordinates."""

    name: str
    parent: str
    position: np.ndarray
    rotation: np.ndarray
    kind: str = "fixed"
    coordinates: tuple[str, ...] = ()
    rates: tuple[str, ...] = ()
    start: tuple[float, ...] = ()
    mass: float = 0.0
    first_moment: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    motor_inertia: float = 0.0
    viscous: float = 0.0
    coulomb: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    damper: float = 0.0
    pitch: float = 0.0  # of a screw (`hz`), m per rad
    bar: Bar | None = None  # the element between the parent and this node


@dataclass(frozen=True, eq=False)
class Closure:
    """Two frames and the joint between them; axes are unit vectors."""

    name: str
    first: str
    second: str
    joint: str
    axis: np.ndarray
    axis_2: np.ndarray


@dataclass(frozen=True, eq=False)
class Coupled:
    """sum of weight times coordinate = offset; with a stiffness a spring holds it so."""

    name: str
    weights: dict[str, float]
    offset: float
    stiffness: float | None = None
    damping: float = 0.0


@dataclass(frozen=True, eq=False)
class RobotData:
    """A robot as numbers; points are fixed frames, parents come first, `actuated` and `locked` are names of rates."""

    name: str
    planar: bool
    gravity: np.ndarray
    end_effector: str
    frames: list[Frame]
    closures: list[Closure]
    actuated: list[str]
    locked: list[str]
    poses: dict[str, dict[str, float]]
    couplings: list[Coupled] = field(default_factory=list)
    elements: list[PointToPoint] = field(default_factory=list)


def read_robot(path: str | Path) -> RobotData:
    """Numbers of the robot in a TOML file."""
    table = complete(Path(path))
    constants: dict[str, float] = {}
    for key, value in table.get("constants", {}).items():
        constants[key] = number(value, constants)
    planar = table.get("motion") == "planar"
    frames: list[Frame] = []
    others: dict[str, list[tuple[Table, dict[str, float]]]] = {"closure": [], "coupling": [], "element": []}
    actuated: list[str] = []
    locked: list[str] = []
    last = "base"
    for kind, entry, names in _entries(table, constants):
        if kind in others:
            others[kind].append((entry, names))
            continue
        new = _frames(entry, names, planar) if kind == "frame" else [_point(entry, names)]
        frames += new
        if kind == "frame":
            last = entry["name"]
            rates = [rate for frame in new for rate in frame.rates]
            marks = entry.get("actuated", False)
            marks = marks if isinstance(marks, list) else [marks] * len(rates)
            actuated += [rate for rate, mark in zip(rates, marks, strict=True) if mark]
            locked += rates if entry.get("locked", False) else []
            frames += _nodes(entry, names, table, planar)
    own_name = table.get("platform", {}).get("name", "platform")
    frames = _sorted([replace(f, parent=own_name if f.parent == "platform" else f.parent) for f in frames])
    end_effector = table.get("end_effector", "platform" if "platform" in table else last)
    end_effector = own_name if end_effector == "platform" else end_effector
    known = {coordinate for frame in frames for coordinate in frame.coordinates}
    poses = {
        name: dict(_pose_item(key, number(value, constants), end_effector, known) for key, value in pose.items())
        for name, pose in table.get("poses", {}).items()
    }
    between = [read_element(entry, names, own_name) for entry, names in others["element"]]
    for (entry, _), strut in zip(others["element"], between, strict=True):
        if strut.kind == "strut":  # a massless slide of which the length is the coordinate
            own = {"stiffness": strut.stiffness, "rest": strut.rest or 0.0, "damper": strut.damping}
            line = ((strut.name,), (strut.name,), (0.0,))
            frames.append(Frame(strut.name, "base", np.zeros(3), np.eye(3), "pz", *line, **own))
            actuated += [strut.name] if entry.get("actuated", False) else []
    gravity = np.array(numbers(table.get("gravity", [0, 0, -9.81]), constants))
    built = [_closure(entry, names, own_name) for entry, names in others["closure"]]
    slides = {frame.coordinates[0] for frame in frames if frame.kind == "pz"}
    coupled = [_coupled(entry, names, slides) for entry, names in others["coupling"]]
    lists = (frames, built, actuated, locked, poses, coupled, between)
    return RobotData(table["name"], planar, gravity, end_effector, *lists)


def _entries(table: Table, constants: dict[str, float]) -> Iterator[tuple[str, Table, dict[str, float]]]:
    """Frames, points and closures of the whole robot with full names, legs written out."""
    for kind in ("frame", "point", "closure", "coupling", "element"):
        for entry in table.get(kind, []):
            yield kind, entry, constants
    legs = table.get("legs", [])
    for group in legs if isinstance(legs, list) else [legs]:
        for index, leg in enumerate(group["names"]):
            yield from _leg(group, index, leg, constants)
    if "platform" in table:
        entry = {"name": "platform"} | table["platform"]
        points = entry.pop("points", {})
        yield "frame", entry | {"joint": "free"}, constants
        for name, position in points.items():
            point = {"name": f"{entry['name']}.{name}", "frame": entry["name"], "position": position}
            yield "point", point, constants


def _leg(
    group: Table, index: int, leg: str, constants: dict[str, float]
) -> Iterator[tuple[str, Table, dict[str, float]]]:
    """Entries of one leg, its own names put in front."""
    names = dict(constants)
    for key, values in group.items():
        if key not in ("names", "frame", "point", "closure", "coupling", "element"):
            names[key] = number(values[index], names)
    own = {entry["name"] for kind in ("frame", "point", "element") for entry in group.get(kind, [])}
    own = {_with_leg(name, leg) for name in own}

    def full(name: str) -> str:
        """The leg's own frame or point, or a node of one of its beams."""
        return f"{leg}.{name}" if name in own or name.rpartition(".")[0] in own else name

    for kind in ("frame", "point", "closure", "coupling", "element"):
        for template in group.get(kind, []):
            entry = _with_leg(template, leg)
            if "name" in entry:
                entry["name"] = f"{leg}.{entry['name']}"
            for key in ("parent", "frame"):
                if key in entry:
                    entry[key] = full(entry[key])
            if kind in ("closure", "element"):
                entry["between"] = [full(name) for name in entry["between"]]
            if kind == "coupling":
                entry |= {key: full(entry[key]) for key in ("joint", "other") if key in entry}
                entry["terms"] = {full(_with_leg(name, leg)): ratio for name, ratio in entry.get("terms", {}).items()}
            yield kind, entry, names


def _with_leg(value: Any, leg: str) -> Any:
    """A copy with `{leg}` replaced in every string."""
    if isinstance(value, str):
        return value.replace("{leg}", leg)
    if isinstance(value, list):
        return [_with_leg(item, leg) for item in value]
    if isinstance(value, dict):
        return {key: _with_leg(item, leg) for key, item in value.items()}
    return value


def _frames(entry: Table, names: Mapping[str, float], planar: bool) -> list[Frame]:
    """The frame of an entry; a joint with two axes gives two, the second bears the name and the body."""
    name, joint = entry["name"], entry.get("joint", "fixed")
    position, rotation = placement(entry, names)
    inertial = body(entry, names)
    placed = Frame(name, entry.get("parent", "base"), position, rotation, **inertial)
    start = numbers(entry["start"], names) if "start" in entry else []

    def posed(kind: str, coordinates: tuple[str, ...], rates: tuple[str, ...], values: Iterable[float]) -> list[Frame]:
        parts = {"coordinates": _names(name, coordinates), "rates": _names(name, rates)}
        return [replace(placed, kind=kind, start=tuple(values), **parts)]

    if joint == "fixed":
        return [placed]
    if joint == "spherical":
        return posed("spherical", QUATERNION, ("wx", "wy", "wz"), quaternion(start or [0.0] * 3))
    if joint == "free" and planar:
        return posed("planar", ("x", "y", "theta"), ("vx", "vy", "wz"), start or [0.0] * 3)
    if joint == "free":
        start = (start or [0.0] * 3) + ([0.0] * 3 if len(start) < 6 else [])
        values = (*start[:3], *quaternion(start[3:]))
        return posed("free", ("x", "y", "z", *QUATERNION), ("vx", "vy", "vz", "wx", "wy", "wz"), values)
    axes = KINDS[joint]
    terms = [joint_terms(entry, names, k) for k in range(len(axes))]
    pitch = number(entry.get("pitch", 0), names)
    if len(axes) == 1:
        own = ((name,), (name,), tuple(start or [0.0]))
        return [Frame(name, placed.parent, position, rotation, axes[0], *own, **inertial, **terms[0], pitch=pitch)]
    one, two = f"{name}.1", f"{name}.2"
    first, second = start * 2 if len(start) == 1 else start or [0.0, 0.0]
    return [
        Frame(one, placed.parent, position, rotation, axes[0], (one,), (one,), (first,), **terms[0]),
        Frame(name, one, np.zeros(3), np.eye(3), axes[1], (two,), (two,), (second,), **inertial, **terms[1]),
    ]


def _nodes(entry: Table, names: Mapping[str, float], table: Table, planar: bool) -> list[Frame]:
    """The ends of the elements of the beam of a frame, each named by the root of its element."""
    if "beam" not in entry:
        return []
    beam = entry["beam"]
    count, section = beam.get("elements", 1), bar(beam, names, table)
    flat = beam.get("model", "planar" if planar else "spatial") == "planar"
    parts = ("ux", "uy", "rz") if flat else ("ux", "uy", "uz", "rx", "ry", "rz")
    step = np.array([number(beam["length"], names) / count, 0, 0])
    roots = [entry["name"], *(f"{entry['name']}.{k}" for k in range(1, count))]
    ends = [*roots[1:], f"{entry['name']}.tip"]
    kind, zero = "planar-node" if flat else "node", (0.0,) * len(parts)
    return [
        Frame(end, root, step, np.eye(3), kind, _names(root, parts), _names(root, parts), zero, bar=section)
        for root, end in zip(roots, ends, strict=True)
    ]


def _point(entry: Table, names: Mapping[str, float]) -> Frame:
    position, rotation = placement({"place": entry}, names)
    return Frame(entry["name"], entry["frame"], position, rotation)


def _closure(entry: Table, names: Mapping[str, float], platform: str) -> Closure:
    first, second = (platform if name == "platform" else name for name in entry["between"])
    axis = entry.get("axis", "z")
    vectors = [
        np.array(numbers(AXES.get(value, value) if isinstance(value, str) else value, names))
        for value in (axis, entry.get("axis_2", axis))
    ]
    unit = [vector / np.linalg.norm(vector) for vector in vectors]
    return Closure(entry.get("name", f"{first}~{second}"), first, second, entry["joint"], *unit)


def _coupled(entry: Table, names: Mapping[str, float], slides: set[str]) -> Coupled:
    """Weights of a coupling: a screw moves by its lead for every turn."""
    joint = entry["joint"]
    ratios = {name: number(ratio, names) for name, ratio in entry.get("terms", {}).items()}
    if "lead" in entry:
        lead = number(entry["lead"], names)
        ratios = {entry["other"]: lead / (2 * np.pi) if joint in slides else 2 * np.pi / lead}
    stiffness = number(entry["stiffness"], names) if "stiffness" in entry else None
    weights = {joint: 1.0} | {name: -ratio for name, ratio in ratios.items()}
    offset, damping = (number(entry.get(key, 0), names) for key in ("offset", "damping"))
    return Coupled(entry["name"], weights, offset, stiffness, damping)


def _pose_item(key: str, value: float, end_effector: str, known: set[str]) -> tuple[str, float]:
    """Key with the name of its frame in front, angle in radians."""
    if key.endswith("_deg"):
        key, value = key.removesuffix("_deg"), np.deg2rad(value)
    if key in POSE_KEYS and key not in known:
        return f"{end_effector}.{key}", value
    return (key[1:] if key not in known and key[:1] == "q" and key[1:] in known else key), value


def _names(name: str, parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}.{part}" for part in parts)


def _sorted(frames: list[Frame]) -> list[Frame]:
    """Parents before children, otherwise as written."""
    done, result, waiting = {"base"}, [], list(frames)
    while waiting:
        ready = next(frame for frame in waiting if frame.parent in done)
        waiting.remove(ready)
        done.add(ready.name)
        result.append(ready)
    return result
