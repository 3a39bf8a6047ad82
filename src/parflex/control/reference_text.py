"""References as text: the option of the command line and the entry of a study file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parflex.control import references
from parflex.control.references import Reference
from parflex.errors import InputError, did_you_mean
from parflex.robot.coordinate_names import COMPONENTS
from parflex.robot.robot import Robot

KINDS = ("circle", "line", "quintic", "spline", "motion")
TIME = 2.0  # s, by default
OWN = {
    "circle": ("radius", "time", "turns", "axis"),
    "line": ("time",),
    "quintic": ("file", "time"),
    "spline": ("file", "time"),
    "motion": ("name", "time"),
}
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def parse_reference(text: str) -> dict[str, Any]:
    """`circle:radius=0.1,time=2`, `line:x=0.1`, `spline:FILE.csv` or the name of a motion, as a table."""
    kind, colon, rest = text.partition(":")
    kind = kind.strip()
    if not colon and kind not in KINDS:
        return {"kind": "motion", "name": kind}
    table: dict[str, Any] = {"kind": kind}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        word, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals and kind in ("quintic", "spline"):
            table["file"] = word
        elif not equals or not word or not value:
            raise InputError(
                f"'{part}' is not KEY=VALUE", key="reference", value=text, hint="write e.g. circle:radius=0.1,time=2"
            )
        elif word in table:
            raise InputError(f"'{word}' is given twice", key="reference", value=text, hint="keep one of them")
        else:
            table[word] = value if word in ("axis", "name", "file") else _number(value, text)
    return table


def _number(value: str, text: str) -> float:
    from parflex.errors import RobotFileError
    from parflex.robotfile.values import evaluate

    try:
        return evaluate(value, {})
    except RobotFileError as error:
        raise InputError(
            f"'{value}' in '{text}' is not a number", key="reference", value=text, hint=error.hint
        ) from None


def reference_from(robot: Robot, reference: Any, time: float | None = None) -> Reference:
    """The reference of a robot: as it is, a function of time, or words; `time` is how long where they do not say."""
    time = TIME if time is None else time
    if isinstance(reference, Reference):
        return reference
    if callable(reference):
        return references.from_function(robot, reference, time)
    if not isinstance(reference, (str, Mapping)):
        hint = "write e.g. circle:radius=0.1,time=2"
        raise InputError("this is not a reference", key="reference", value=str(reference)[:40], hint=hint)
    if isinstance(reference, str) and reference.strip() in robot.description.motions:  # a motion may be called "circle"
        table: dict[str, Any] = {"kind": "motion", "name": reference.strip()}
    else:
        table = parse_reference(reference) if isinstance(reference, str) else dict(reference)
    kind = table.pop("kind", None)
    if kind not in KINDS:
        raise InputError(
            f"there is no kind '{kind}' of references", key="reference", value=str(kind),
            hint=did_you_mean(str(kind), KINDS),
        )  # fmt: skip
    words = {word: value for word, value in table.items() if word not in OWN[kind]}
    pose_words = kind in ("circle", "line")
    for word in words:
        known = [*OWN[kind], *(("x", "y", "theta") if robot.tree.planar else COMPONENTS)] if pose_words else OWN[kind]
        component = word.removeprefix(f"{robot.tree.end_effector}.").removesuffix("_deg")
        if not pose_words or component not in COMPONENTS:
            raise InputError(
                f"a {kind} has no '{word}'", key="reference", value=word, hint=did_you_mean(word, list(known))
            )
    return _made(robot, kind, {"time": time, **table}, words)


def _made(robot: Robot, kind: str, table: Mapping[str, Any], words: dict[str, Any]) -> Reference:
    time = table["time"]
    if kind == "circle":
        if "radius" not in table:
            raise InputError("the radius is missing", key="reference", value=kind, hint="add radius=0.1")
        axis = table.get("axis", "z")
        if isinstance(axis, str) and axis not in AXES:
            raise InputError(f"there is no axis '{axis}'", key="reference", value=axis, hint="x, y or z")
        normal = AXES[axis] if isinstance(axis, str) else axis
        turns = table.get("turns", 1.0)
        return references.circle(robot, table["radius"], time, pose=words or None, axis=normal, turns=turns)
    if kind == "line":
        if not words:
            raise InputError("the end of the line is missing", key="reference", value=kind, hint="add x=0.1")
        return references.line(robot, words, time)
    if kind == "motion":
        if "name" not in table:
            raise InputError("the motion name is missing", key="reference", value=kind, hint="add name")
        return references.from_motion(robot, str(table["name"]), time)
    return _from_file(robot, kind, table)


def _from_file(robot: Robot, kind: str, table: Mapping[str, Any]) -> Reference:
    """Poses in a table of columns, one row each, with or without a column of times."""
    from parflex.trajectories.files import read_table

    if "file" not in table:
        raise InputError("the pose file is missing", key="reference", value=kind, hint="write spline:FILE.csv")
    file = str(table["file"])
    columns = read_table(file, "reference")
    names = [name for name in columns if name != "t"]
    if not names:
        raise InputError("has no pose columns", file=file, key="reference", value=file, hint="add columns x, y")
    rows = np.stack([columns[name] for name in names], axis=1)
    if not np.isfinite(rows).all():
        raise InputError("not all numbers are finite", file=file, key="reference", hint="correct the table")
    poses = [dict(zip(names, map(float, row), strict=True)) for row in rows]
    time = columns["t"] if "t" in columns else table["time"]
    try:
        return references.through(robot, poses, time, kind=kind)
    except InputError as error:
        error.file = error.file or file
        raise
