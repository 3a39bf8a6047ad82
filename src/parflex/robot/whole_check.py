"""Check a whole robot: poses that do not assemble, and warnings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from parflex.diagnostics import Diagnostic
from parflex.errors import ActuationError, SingularError
from parflex.records import count_of
from parflex.robot.configuration import Configuration, configure
from parflex.robot.frames import counts
from parflex.robot.limits import limit_warnings
from parflex.robot.robot import Robot
from parflex.robotfile.read import inherited


def unusual(robot: Robot) -> list[Diagnostic]:
    """Return diagnostics of a robot; raise if a pose of the file cannot be assembled."""
    notes = [*robot.diagnostics, *robot.start_warnings()]
    for name in ["home", *robot.description.poses]:
        configuration = configure(robot, name)
        notes += [
            diagnostic.prefixed(f"pose {name}: ")
            for diagnostic in (*limit_warnings(robot, configuration.q), *configuration.condition.diagnostics)
        ]
    if robot.mobility.home_rank < robot.mobility.rank:
        text = "home is a singular pose of the closures: the robot has more degrees of freedom there than elsewhere"
        notes.append(Diagnostic("singular", text))
    table = {} if robot.written is None else robot.written.table
    theirs = inherited(table, robot.file).get("constants", {})
    unused = {name: text for name, text in unused_constants(table).items() if name not in theirs}
    notes += [Diagnostic("unused-constant", text, name) for name, text in unused.items()]
    try:
        Configuration(robot.undeformed, robot.home).refuse_undefined_actuation()
    except ActuationError as error:
        notes.append(Diagnostic("underactuated", error.message))
    except SingularError:
        pass  # the condition of home reports it
    numbers = counts(robot)
    if numbers["redundant_closures"]:
        names = ", ".join(numbers["names"]["redundant_closures"])
        redundant = count_of(numbers["redundant_closures"], "closure row is", "closure rows are")
        text = f"over-constrained: {redundant} redundant ({names})"
        notes.append(Diagnostic("redundant-closures", text, value=numbers["redundant_closures"]))
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
