"""Robots with other values in their files: in the same working mode, and as files that extend the first."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from parflex.closure.constraints import Coupling
from parflex.closure.targets import Target
from parflex.closure.unreachable import Refusal
from parflex.errors import ParflexError, SingularError, UnreachableError
from parflex.io import write_text
from parflex.parameters.design_numbers import number_at
from parflex.robot.load import load, with_settings
from parflex.robot.pose_input import read_pose
from parflex.robot.robot import Robot
from parflex.robotfile.checks import JOINT_RULES
from parflex.robotfile.read import NAMED_LISTS, apply_settings, catalogue_names, load_table

Array = np.ndarray
SAME_HOME = 1e-6  # of the length: a loaded file stands at home as its design


def redesigned(robot: Robot, settings: Mapping[str, Any]) -> Robot:
    """Return the robot with other values in its file, by dotted path, in the working mode in which `robot` stands.

    Its home is that of a file with these values and the start values of the working mode; where that is in another
    working mode, the one that closes from the home of `robot`. Raises the error of reading the file, and
    `UnreachableError` where home exists only in another working mode or not at all.
    """
    design = with_settings(robot, settings)
    moved = {link.name for link in design.tree.links if np.any((design.tree.start != robot.tree.start)[link.q])}
    starts = {name: value for name, value in mode_starts(robot).items() if name not in moved}
    mode = design.mode.model_copy(update={"start": {**design.mode.start, **starts}})
    begun = replace(design, mode=mode, known_mobility=robot.mobility)
    begin = np.where(design.start == robot.start, robot.home, design.start)
    given = design.description.poses.get("home", {})
    target = read_pose(design.tree, given, "poses.home", design.file, begin) if given else Target()
    with suppress(UnreachableError, SingularError):
        home = _in_mode(design, begun.home, target, robot)
        if not isinstance(home, Refusal):
            return replace(design, known_home=home)
    home = _in_mode(design, begin, target, robot)
    if isinstance(home, Refusal):
        raise home.error()
    return replace(design, known_home=design.tree.within_limits(home, set(target.values)))


def _in_mode(design: Robot, begin: Array, target: Target, robot: Robot) -> Array | Refusal:
    """The home of a design that closes from positions in the working mode of a robot, or why there is none."""
    finder = replace(design, known_home=begin, known_mobility=robot.mobility).pose_finder
    home = finder.solve(target, begin, robot.home, design.locked, home=True)
    if not isinstance(home, Refusal):
        return home
    closed = finder.solve(target, begin, None, frozenset(), home=True)  # not with its motors where they are
    return home if isinstance(closed, Refusal) else finder.solve(target, closed, robot.home, design.locked, home=True)


def mode_starts(robot: Robot) -> dict[str, float]:
    """Return the start values of the joints in loops at the home of a robot, by frame."""
    axes = {frame.name: JOINT_RULES[frame.joint].axes for frame in robot.description.frame}
    rows = [row for row in robot.closures.rows if not isinstance(row, Coupling)]
    links = [robot.tree.links[j] for j in sorted({j for row in rows for j in row.links(robot.tree)})]
    return {link.name: float(robot.home[link.q.start]) for link in links if axes.get(link.name) == 1}


def working_mode_starts(robot: Robot) -> dict[str, Any]:
    """Return the start values of the loops at the home of a robot, as a setting of its file that keeps its mode."""
    assert robot.written is not None
    starts = mode_starts(robot)
    if not starts:
        return {}
    modes = dict(robot.written.table.get("working_modes", {}))
    mode = dict(modes.get(robot.working_mode, {}))
    mode["start"] = {**mode.get("start", {}), **starts}
    return {"working_modes": {**modes, robot.working_mode: mode}}


def write_design(
    source: str, robot: Robot, design: Robot, settings: Mapping[str, float], target: Path, word: str,
    tables: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Write a file that extends that of `robot` by settings and the working mode of `design`, and load it again.

    `tables` are written beside the settings.

    Raises `ParflexError` where the loaded robot has other numbers or another home than `design`; the file stays.
    """
    changes = {**working_mode_starts(design), **settings, **(tables or {})}
    write_text(target, extending_file_text(source, robot, changes, target, word))
    said, rigid = robot.description, robot.written is not None and robot.written.rigid
    actuation = robot.actuation if robot.actuation in said.actuation else None
    mode = robot.working_mode if robot.working_mode in said.working_modes else None
    mesh, payload = robot.refine, robot.payload
    again = load(target, payload=payload, actuation=actuation, working_mode=mode, elements=mesh, rigid=rigid)
    at, there = (dict(zip(one.coordinates, one.home.tolist(), strict=True)) for one in (design, again))
    off = max((abs(value - there[name]) for name, value in at.items() if name in there), default=0.0)
    wrong = [key for key, value in settings.items() if number_at(again, key) != value]
    if wrong or off > SAME_HOME * design.tree.length:
        what = f"'{wrong[0]}' is {number_at(again, wrong[0]):g}" if wrong else f"its home is {off:.3g} elsewhere"
        raise ParflexError(
            f"the file of the design, loaded again, is another robot: {what}", file=str(target), key=word,
            hint="give starts of the joints in the first file",
        )  # fmt: skip


def extending_file_text(
    source: str, robot: Robot, settings: Mapping[str, Any], target: Path, word: str = "optimised"
) -> str:
    """The text of a robot file at `target` that extends the source by what it was loaded with and by settings."""
    assert robot.written is not None
    below = load_table(source)[0]
    above = apply_settings(copy.deepcopy(robot.written.table), settings, robot.file)
    parent = source if source in catalogue_names() else os.path.relpath(Path(source).resolve(), target.resolve().parent)
    name = f"{robot.name}-{word}"
    lines = [f"format = {below.get('format', 1)}", f'name = "{name}"', f'extends = "{Path(parent).as_posix()}"', ""]
    return "\n".join([*lines, *_tables(difference(below, above))]) + "\n"


def difference(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """What must be said so that a file that extends `below` is `above`: rows by name, other tables entry by entry."""
    changes: dict[str, Any] = {}
    for key, value in above.items():
        old = below.get(key)
        if value == old:
            continue
        changes[key] = value
        if key in NAMED_LISTS and isinstance(value, list) and isinstance(old, list):
            changes[key] = [
                {"name": row["name"]} | {word: row[word] for word in row if row[word] != before.get(word)}
                for row, before in zip(value, old, strict=True)
                if row != before and "name" in row
            ]
        elif isinstance(value, dict) and isinstance(old, dict):
            changed = {word: entry for word, entry in value.items() if entry != old.get(word)}
            changes[key] = difference(old, value) if key == "legs" else changed
    return changes


def _tables(table: dict[str, Any], prefix: str = "") -> list[str]:
    """Lines of TOML, plain values first."""
    lines, later = list[str](), list[str]()
    for key, value in table.items():
        path = f"{prefix}.{_word(key)}" if prefix else _word(key)
        if isinstance(value, dict):
            later += ["", f"[{path}]", *_tables(value, path)]
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            for row in value:
                later += ["", f"[[{path}]]", *(f"{word} = {_inline(entry)}" for word, entry in row.items())]
        else:
            lines.append(f"{_word(key)} = {_inline(value)}")
    return [*lines, *later]


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_word(key)} = {_inline(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(float(value)) if isinstance(value, float) else str(value)


def _word(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _inline(key)
