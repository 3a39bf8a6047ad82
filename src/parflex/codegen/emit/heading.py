"""What stands at the head of every generated file: where it comes from, and what each number is."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Any

from parflex.codegen.emit.c_names import TAKEN
from parflex.codegen.emit.files import MARK
from parflex.codegen.model_options import Options
from parflex.codegen.ports import Signal
from parflex.codegen.program import Program
from parflex.codegen.traces.tracing import Trace
from parflex.robot.robot import Robot

FEW = 6  # names that a heading lists
ARRAYS = {"input": "x", "parameter": "p", "output": "y"}


def origin(robot: Robot, traced: Trace, options: Options) -> dict[str, Any]:
    """Where a program comes from: version, robot with its hash, and what was chosen."""
    return {
        "parflex": metadata.version("parflex"),
        "robot": robot.name,
        "robot_sha256": hashlib.sha256(robot.description.model_dump_json().encode()).hexdigest(),
        "model": traced.model,
        "form": traced.form,
        "coordinates": options.coordinates,
        "independent": traced.independent,
        "read": traced.read,
        "actuation": robot.actuation,
        "working_mode": robot.working_mode,
        "without": list(options.without),
        "parameters": options.parameters if isinstance(options.parameters, str) else list(options.parameters),
        "friction_width": options.friction_width,
        "wrenches": list(options.wrenches),
    }


def program_hash(program: Program) -> str:
    """A hash of the arithmetic itself."""
    parts = (program.inputs, program.instructions, program.setup, program.outputs)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def heading(program: Program, about: dict[str, Any]) -> list[str]:
    """The first lines; the very first says that the file was generated."""
    counts = ", ".join(f"{key} {value}" for key, value in program.counts().items())
    lines = [f"{program.name}: {MARK} {about.get('parflex', metadata.version('parflex'))}; do not edit."]
    if about:
        lines += [
            f"robot {about['robot']}, sha256 of its description {about['robot_sha256']}",
            f"model {about['model']}; coordinates {_coordinates(about)}; "
            f"actuation {about['actuation']}; working mode {about['working_mode']}",
            f"left out: {_listed(about['without'])}; parameters: {_listed(about['parameters'])}; "
            f"friction width: {about['friction_width']:g}; wrenches: {_listed(about['wrenches'])}",
        ]
    return [*lines, f"sha256 of the program {program_hash(program)}", f"operators of one call: {counts}"]


def _coordinates(about: dict[str, Any]) -> str:
    """The choice, and which rates are read; of many their number."""
    word, read = about.get("coordinates"), about.get("read") or []
    if word is None:
        return "of the model"
    return f"{word} (read are {_listed(read) if len(read) <= FEW else f'{len(read)} rates'})"


def _listed(words: str | Sequence[str]) -> str:
    return words if isinstance(words, str) else ", ".join(words) or "nothing"


def entries(program: Program, signals: Iterable[Signal], direction: str) -> list[str]:
    """A line for each entry of an array: index, place in its group, name in the robot file, unit."""
    known = [signal for signal in signals if signal["direction"] == direction]
    places = {
        "input": program.variables,
        "parameter": program.parameters,
        "output": [label for label, _ in program.outputs],
    }[direction]
    if not known:
        return [f"{k}: {place}" for k, place in enumerate(places)]
    rows = zip(known, places, strict=True)
    return [f"{signal['index']}: {place}  {signal['name']}  [{signal['unit']}]" for signal, place in rows]


def identifier(name: str) -> str:
    """A C name: letters, digits and underscores, none of the language, of its libraries or of the system."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"m_{word}" if not word or word[0].isdigit() or word in TAKEN else word


def index_names(prefix: str, signals: Iterable[Signal], shown: Iterable[str]) -> list[tuple[str, int]]:
    """C names of the indices of entries in the groups that are `shown`, each once."""
    kinds = {"input": "IN", "parameter": "P", "output": "OUT"}
    groups, taken = set(shown), set()
    found = []
    for signal in signals:
        if signal["group"] not in groups:
            continue
        parts = (prefix, kinds[signal["direction"]], signal["group"], signal["name"])
        word = identifier("_".join(parts)).upper().rstrip("_")
        while word in taken:  # names that differ only in signs that C does not have
            word = f"{word}_{signal['index']}"
        taken.add(word)
        found.append((word, signal["index"]))
    return found
