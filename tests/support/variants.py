"""The same robot written anew: base moved, names and order changed, numbers changed."""

import copy
import random
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from support.oracles.expressions import number, numbers

Table = dict[str, Any]
QUATERNION = ("qw", "qx", "qy", "qz")


def read_table(path: Path) -> Table:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def toml_text(table: Table) -> str:
    """A table as TOML, one line for each key, everything below it inline."""
    return "".join(f"{_value(key)} = {_value(value)}\n" for key, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_value(key)} = {_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(entry) for entry in value) + "]"
    return repr(value)


def leg_families(table: Table) -> list[Table]:
    legs = table.get("legs", [])
    return legs if isinstance(legs, list) else [legs]


def _entries(table: Table, kind: str) -> list[Table]:
    """All frames, points or closures of the file, those of legs too."""
    return [entry for part in (table, *leg_families(table)) for entry in part.get(kind, [])]


def base_moved(table: Table, turn: tuple[float, float, float], shift: tuple[float, float, float]) -> Table:
    """All that stood on the base on a frame that is turned and shifted; gravity, platform and poses go with it."""
    table = copy.deepcopy(table)
    rotation, shift = Rotation.from_rotvec(turn), np.array(shift)
    for frame in _entries(table, "frame"):
        if frame.get("parent", "base") == "base":
            frame["parent"] = "ground"
    for point in _entries(table, "point"):
        point["frame"] = "ground" if point["frame"] == "base" else point["frame"]
    for closure in [*_entries(table, "closure"), *_entries(table, "element")]:
        closure["between"] = ["ground" if name == "base" else name for name in closure["between"]]
    ground = {"name": "ground", "place": {"position": shift.tolist(), "rotation": list(turn)}}
    table["frame"] = [ground, *table.get("frame", [])]
    constants: dict[str, float] = {}
    for key, value in table.get("constants", {}).items():
        constants[key] = number(value, constants)
    gravity = numbers(table.get("gravity", [0, 0, -9.81]), constants)
    table["gravity"] = rotation.apply(gravity).tolist()
    planar = table.get("motion") == "planar"
    if "platform" in table:
        start = numbers(table["platform"].get("start", [0, 0, 0]), constants)
        table["platform"]["start"] = _moved_start(start, rotation, shift, planar)
    for pose in table.get("poses", {}).values():
        for key, value in pose.items():
            pose[key] = number(value, constants)
        for prefix in {
            match[1] for key in pose if (match := re.fullmatch(r"(.*?)[xyz]", key)) and match[1][-1:] != "r"
        }:
            _move_pose(pose, prefix, rotation, shift, planar)
    return table


def _moved_start(start: list[float], rotation: Rotation, shift: np.ndarray, planar: bool) -> list[float]:
    if planar:
        place = rotation.apply([*start[:2], 0.0]) + shift
        return [*place[:2].tolist(), start[2] + float(rotation.as_rotvec()[2])]
    turn = rotation * Rotation.from_rotvec(start[3:] or [0.0] * 3)
    return [*(rotation.apply(start[:3]) + shift).tolist(), *turn.as_rotvec().tolist()]


def _move_pose(pose: Table, prefix: str, rotation: Rotation, shift: np.ndarray, planar: bool) -> None:
    """Position and, if given, rotation of a frame of a pose, turned and shifted."""
    if f"{prefix}x" not in pose or f"{prefix}y" not in pose:
        return
    place = rotation.apply([pose[f"{prefix}x"], pose[f"{prefix}y"], pose.get(f"{prefix}z", 0.0)]) + shift
    pose |= dict(zip([f"{prefix}{axis}" for axis in ("xy" if planar else "xyz")], place.tolist(), strict=False))
    if f"{prefix}theta" in pose:
        pose[f"{prefix}theta"] += float(rotation.as_rotvec()[2])
    vector = [f"{prefix}r{axis}" for axis in "xyz"]
    if any(key in pose for key in vector):
        turned = rotation * Rotation.from_rotvec([pose.get(key, 0.0) for key in vector])
        pose |= dict(zip(vector, turned.as_rotvec().tolist(), strict=True))


def renamed(table: Table) -> Table:
    """Return the table with other names of legs, frames, points and platform, written in another order."""
    table = copy.deepcopy(table)
    families = leg_families(table)
    limbs = {leg: f"limb_{k}" for family in families for k, leg in enumerate(reversed(family["names"]))}
    own, inner = ({e["name"] for kind in ("frame", "point") for part in parts for e in part.get(kind, [])}
                  for parts in ([table], families))  # fmt: skip
    hand = {"platform", table["platform"].get("name", "platform")} if "platform" in table else set()

    def new(word: str, in_leg: bool = False) -> str:
        """Return the new name of what a word refers to."""
        leg = next((leg for leg in limbs if word.endswith(leg)), "")
        head, _, tail = word.partition(".")
        if word == "base" or word in hand:
            return "hand" if word in hand else word
        if in_leg and word in inner:
            return f"in-{word}"
        if word in own or word.endswith("{leg}"):
            return f"of-{word.removesuffix(leg)}{limbs.get(leg, '')}"
        return f"{limbs[head]}.in-{tail}" if head in limbs and tail in inner else word

    def key(word: str) -> str:
        """Return a key of a pose: a joint, a coordinate of the end effector, or of a frame."""
        frame, dot, part = word.rpartition(".")
        return new(word) if new(word) != word or not dot else f"{new(frame)}.{part}"

    for part in (table, *families):
        in_leg = part is not table
        for entry in part.get("coupling", []):
            entry["joint"] = new(entry["joint"], in_leg)
            entry["terms"] = {new(name, in_leg): ratio for name, ratio in entry["terms"].items()}
        for kind in {"frame", "point", "closure", "element"} & part.keys():
            part[kind] = part[kind][::-1]
            for entry in part[kind]:
                for word in ("between",) if "between" in entry else {"name", "parent", "frame"} & entry.keys():
                    names = entry[word]
                    entry[word] = new(names, in_leg) if isinstance(names, str) else [new(n, in_leg) for n in names]
    for family in families:
        lists = family.keys() - {"names", "frame", "point", "closure", "element", "coupling"}
        family |= {word: family[word][::-1] for word in lists}
        family["names"] = [limbs[leg] for leg in reversed(family["names"])]
    if hand:
        table["platform"]["name"] = "hand"
    if "end_effector" in table:
        table["end_effector"] = new(table["end_effector"])
    table["poses"] = {pose: {key(word): value for word, value in v.items()} for pose, v in table["poses"].items()}
    for mode in table.get("working_modes", {}).values():
        for part in mode.values():
            part |= {new(word): part.pop(word) for word in list(part)}
    return table


def changed(value: Any, percent: float, seed: int) -> Any:
    """Every float changed by some percent, equal ones alike; integers and expressions hold the structure and stay."""
    if isinstance(value, dict):
        return {key: changed(entry, percent, seed) for key, entry in value.items()}
    if isinstance(value, list):
        return [changed(entry, percent, seed) for entry in value]
    if isinstance(value, float):
        return value * (1 + percent / 100 * random.Random(f"{seed} {abs(value)!r}").uniform(-1, 1))
    return value
