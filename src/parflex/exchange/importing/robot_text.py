"""The robot file of what was read, as a person would write it: words of the source, and remarks on what is left out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from parflex.exchange.importing.foreign_robot import NOTE, ForeignRobot

TABLES = ("frame", "point", "closure", "coupling", "element", "visual")
ANGLES = {
    sign * k * math.pi / 12: f"{'-' if sign < 0 else ''}{word}"
    for k, word in ((1, "pi/12"), (2, "pi/6"), (3, "pi/4"), (4, "pi/3"), (6, "pi/2"), (8, "2*pi/3"), (9, "3*pi/4"),
                    (10, "5*pi/6"), (12, "pi"))
    for sign in (1, -1)
}  # fmt: skip
WIDE = 110  # letters of a remark
MANY = 12  # names in a remark


def robot_text(robot: ForeignRobot) -> str:
    """The whole file."""
    lines = ["format = 1", f"name = {quoted(robot.name)}", f"gravity = {written(robot.gravity)}"]
    if robot.end_effector is not None:
        lines.append(f"end_effector = {quoted(robot.end_effector)}")
    lines += remarks(robot)
    lines += ["", "[reference]", f"source = {quoted(f'imported from {robot.source}')}"]
    if robot.constants:
        lines += ["", "[constants]", *(f"{name} = {written(value)}" for name, value in robot.constants.items())]
    for kind in TABLES:
        for table in getattr(robot, kind):
            lines += ["", f"[[{kind}]]" + (f"  # {plain(table[NOTE])}" if NOTE in table else "")]
            lines += [f"{key} = {entry(key, value)}" for key, value in table.items() if key != NOTE]
    return "\n".join(lines) + "\n"


def remarks(robot: ForeignRobot) -> list[str]:
    """Comments on what the source has and this file has not, and on what is called otherwise."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in robot.dropped:
        groups.setdefault((one.kind, one.why), []).append(one.name)
    lines = ["", "# Not carried over:"] if groups else []
    for (kind, why), names in groups.items():
        shown = ", ".join(names[:MANY]) + (f" and {len(names) - MANY} more" if len(names) > MANY else "")
        lines += folded(f"{kind} {shown}: {why}")
    if robot.names.renamed:
        lines += ["", "# Called otherwise than in the source:"]
        lines += [line for text in robot.names.sentences() for line in folded(text)]
    return lines


def folded(text: str) -> list[str]:
    """A remark over several lines."""
    lines, line = [], "# -"
    for word in plain(text).split():
        if len(line) + 1 + len(word) > WIDE and line not in ("# -", "#  "):
            lines.append(line)
            line = "#  "
        line += f" {word}"
    return [*lines, line]


def plain(text: str) -> str:
    """Text that cannot end a comment."""
    return re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]", " ", text)


def entry(key: str, value: Any) -> str:
    """The value of a key; turns by common angles are written as such."""
    if key == "rotation":
        return "[" + ", ".join(_angle(one) for one in value) + "]"
    return written(value)


def _angle(value: Any) -> str:
    if isinstance(value, float):
        for angle, word in ANGLES.items():
            if abs(value - angle) <= 4e-16 * abs(angle):
                return f'"{word}"'
    return written(value)


def written(value: Any) -> str:
    """A value of TOML; a string among numbers is an expression."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {entry(key, one)}" for key, one in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(written(one) for one in value) + "]"
    number = float(value) + 0.0
    return str(int(number)) if number.is_integer() and abs(number) < 1e6 else repr(number)


def quoted(text: str) -> str:
    """A string of TOML."""
    safe = plain(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{safe}"'


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else quoted(key)
