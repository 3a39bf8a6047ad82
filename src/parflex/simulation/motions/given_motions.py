"""A motion as it is given: a name of the robot file, a motion file, a table of Python, or a table in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parflex.errors import InputError, RobotFileError, did_you_mean
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import LAW_KEYS, LAWS, MotionTable
from parflex.robotfile.read import parse_toml, read_bounded, read_tables

PAGE = "docs/robot-file.md"


def motion_table(robot: Robot, given: Any) -> tuple[str, MotionTable] | None:
    """The table of a motion with its name; None where nothing of the kind is given (knots, functions, made motions).

    A mapping with `t` is a table of knots. On the command line, `{ moves = [...], duration = 1 }` is a table too.
    """
    if isinstance(given, MotionTable):
        return "given", given
    if isinstance(given, Mapping):
        return None if "t" in given else ("given", _checked(robot, dict(given), "motion"))
    if not isinstance(given, str | Path):
        return None
    text = str(given)
    if text in robot.description.motions:
        return text, robot.description.motions[text]
    if text.lstrip().startswith("{"):
        raw = _parsed(f"motion = {text}".encode(), "motion")["motion"]
        return "given", _checked(robot, raw, "motion")
    if text.endswith(".toml"):
        return Path(text).stem, _checked(robot, _parsed(_read(text), text), text)
    return None


def faster(robot: Robot, given: Any) -> MotionTable:
    """The table of a motion with its law, and what belongs to it alone, replaced by the time-optimal one."""
    found = motion_table(robot, given)
    if found is None:
        raise InputError(
            "only a table of a motion has a time-optimal law", key="motion", value=str(given),
            hint="give a name of the robot file, a .toml file or { ... }",
        )  # fmt: skip
    kept = found[1].model_dump(exclude_unset=True)
    if "time-optimal" not in LAWS[found[1].kind]:
        raise InputError(
            f"a motion with '{found[1].kind}' has no path", key="motion", value=str(given), hint="give moves or points"
        )
    known = {found[1].kind, "frame", "start", *LAW_KEYS["time-optimal"]}  # once: a period would hide its time
    return _checked(robot, {key: kept[key] for key in kept if key in known} | {"law": "time-optimal"}, "motion")


def unknown_motion(robot: Robot, given: Any) -> InputError:
    """What is said where the robot has no such motion."""
    known = list(robot.description.motions)
    return InputError(
        f"the robot has no motion '{given}'",
        key="motion",
        value=str(given),
        hint=did_you_mean(str(given), known)
        if known
        else "add [motions.NAME] to its file, or name a .toml, .csv or .npz file",
    )


def _read(path: str) -> bytes:
    try:
        return read_bounded(Path(path))
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror})", file=path, key="motion", value=path, hint="check the path"
        ) from None


def _parsed(content: bytes, file: str) -> dict[str, Any]:
    try:
        return parse_toml(content, file)
    except RobotFileError as error:
        raise _ours(error, file) from None


def _checked(robot: Robot, raw: dict[str, Any], file: str) -> MotionTable:
    """The table, with a frame that is there."""
    try:
        table = read_tables(MotionTable, raw, file, PAGE)
    except RobotFileError as error:
        raise _ours(error, file) from None
    if table.frame is not None and table.frame not in robot.tree.places:
        raise InputError(
            f"there is no frame '{table.frame}'", file=file if file != "motion" else None, key="frame",
            value=table.frame, hint=did_you_mean(table.frame, list(robot.tree.places)),
        )  # fmt: skip
    return table


def _ours(error: RobotFileError, file: str) -> InputError:
    return InputError(
        error.message, file=None if file == "motion" else file, key=error.key or "motion", value=error.value,
        hint=error.hint,
    )  # fmt: skip
