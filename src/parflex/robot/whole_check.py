"""Checks of a robot as a whole: poses that do not assemble, and warnings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from parflex.records import count_of
from parflex.robot.configuration import configure
from parflex.robot.frames import counts
from parflex.robot.limits import limit_warnings
from parflex.robot.robot import Robot
from parflex.robotfile.read import inherited


def unusual(robot: Robot) -> list[str]:
    """Sentences on what a user should check; raises where a pose of the file cannot be assembled."""
    notes = [*robot.warnings, *robot.start_warnings()]
    for name in ["home", *robot.description.poses]:
        configuration = configure(robot, name)
        notes += [
            f"pose {name}: {text}"
            for text in (*limit_warnings(robot, configuration.q), *configuration.condition.warnings())
        ]
    if robot.mobility.home_rank < robot.mobility.rank:
        notes.append(
            "home is a singular pose of the closures: the robot has more degrees of freedom there than elsewhere"
        )
    table = {} if robot.written is None else robot.written.table
    theirs = inherited(table, robot.file).get("constants", {})
    notes += [sentence for name, sentence in unused_constants(table).items() if name not in theirs]
    numbers = counts(robot)
    if numbers["redundant_closures"]:
        names = ", ".join(numbers["names"]["redundant_closures"])
        redundant = count_of(numbers["redundant_closures"], "closure row is", "closure rows are")
        notes.append(f"over-constrained: {redundant} redundant ({names})")
    return list(dict.fromkeys(notes))


def unused_constants(table: Mapping[str, Any]) -> dict[str, str]:
    """Return a sentence for each constant of a robot file whose name no other entry contains."""
    constants = table.get("constants", {})
    words = set(re.findall(r"[^\W\d]\w*", "\n".join(_texts(list(table.values())))))
    return {
        name: f"the constant '{name}' is not used: delete it, or refer to it"
        for name in constants
        if unicodedata.normalize("NFKC", name) not in words
    }


def _texts(value: Any) -> Iterator[str]:
    """Yield the strings inside lists and tables, as expressions read them."""
    if isinstance(value, str):
        yield unicodedata.normalize("NFKC", value)
    elif isinstance(value, Mapping | list | tuple):
        for entry in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(entry)
