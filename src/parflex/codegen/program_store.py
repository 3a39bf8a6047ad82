"""Programs on disk, so that a model that was made once is not traced again.

The key holds everything that a program comes from: the robot as it was loaded, not its file alone, with what was set,
mounted or locked since; the model and its options; and the code of this package, so that no program outlives a change
of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import BaseModel

from parflex.codegen import disk_cache
from parflex.codegen.kept_instructions import KeptInstructions, packed
from parflex.codegen.program import Program
from parflex.models.robot import Robot

Array = np.ndarray
_digests: WeakKeyDictionary[Robot, str] = WeakKeyDictionary()  # robots do not change
LEFT_OUT = ("file", "warnings")  # of a robot: where it came from changes no program
MANY = "instructions"
UNUSED = {"motions", "reference", "title"}  # of its description: neither does how it is to move, or what is said of it


def key_of(robot: Robot, *choices: Any) -> str | None:
    """The name under which a program is kept; None where nothing is kept."""
    if disk_cache.folder() is None:
        return None
    digest = hashlib.sha256(_code() + digest_of(robot).encode())
    _feed(digest, choices)
    return f"{digest.hexdigest()}.program"


def digest_of(robot: Robot) -> str:
    """A hash of the robot as it was loaded, with what was set, mounted or locked since."""
    found = _digests.get(robot)
    if found is None:
        digest = hashlib.sha256()
        for part in _parts(robot):
            _feed(digest, part)
        found = _digests[robot] = digest.hexdigest()
    return found


def _parts(robot: Robot) -> tuple[Any, Array]:
    own = {field.name: getattr(robot, field.name) for field in _own(robot) if field.name not in LEFT_OUT}
    own["description"] = robot.description.model_dump_json(exclude=UNUSED)
    return own, robot.home


@lru_cache(maxsize=1)
def _code() -> bytes:
    """A hash of the source of this package."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.digest()


def _own(value: Any) -> list[Field]:
    """The fields of a record that tell it from others: not those that keep what follows from them."""
    return [field for field in fields(value) if field.compare]


def _feed(digest: Any, value: Any) -> None:
    """Put a value into a hash: kind first, then what it holds."""
    digest.update(f"({type(value).__name__} ".encode())
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, BaseModel):
        digest.update(value.model_dump_json().encode())
    elif is_dataclass(value):
        for field in _own(value):
            _feed(digest, getattr(value, field.name))
    elif isinstance(value, Mapping):
        for name, entry in sorted(value.items()):
            _feed(digest, name)
            _feed(digest, entry)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for entry in sorted(value) if isinstance(value, (set, frozenset)) else value:
            _feed(digest, entry)
    elif value is None or isinstance(value, (bool, int, float, str, slice)):
        digest.update(repr(value).encode())
    else:
        raise TypeError(f"a {type(value).__name__} has no hash")
    digest.update(b")")


def write(key: str, made: Any) -> None:
    """Keep a model: its program, the shapes and names of its groups, and its numbers."""
    program: Program = made.program
    data = packed(program.instructions)
    content = {
        "program": {field.name: getattr(program, field.name) for field in fields(program) if field.name != MANY},
        MANY: {"count": len(program.instructions), "digest": hashlib.sha256(data).hexdigest()},
        "inputs": made.inputs,
        "outputs": made.outputs,
        "parameters": made.parameters,
        "labels": made.labels,
        "sample": {name: value.tolist() for name, value in made.sample.items()},
        "signals": made.signals,
        "about": made.about,
    }
    head = json.dumps(content, separators=(",", ":")).encode()  # without a line break
    disk_cache.write(key, head + b"\n" + data)


def read(key: str) -> dict[str, Any] | None:
    """What a model is made of, if it was kept."""
    data = disk_cache.read(key)
    if data is None:
        return None
    head, _, instructions = data.partition(b"\n")
    content = json.loads(head)
    program = {name: tuples(value) for name, value in content["program"].items()}
    program[MANY] = KeptInstructions(content[MANY]["count"], content[MANY]["digest"], instructions)
    return {
        "name": program["name"],
        "program": Program(**program),
        "inputs": {name: tuple(shape) for name, shape in content["inputs"].items()},
        "outputs": {name: tuple(shape) for name, shape in content["outputs"].items()},
        "parameters": content["parameters"],
        "labels": content["labels"],
        "sample": {name: np.array(value, dtype=float) for name, value in content["sample"].items()},
        "signals": content["signals"],
        "about": content["about"],
    }


def tuples(value: Any) -> Any:
    """Lists, as JSON has them, as tuples."""
    return tuple(tuples(entry) for entry in value) if isinstance(value, list) else value
