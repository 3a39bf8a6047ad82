"""Programs that close loops, in memory and on disk: a robot that was traced once is not traced again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.codegen import disk_cache, program_store
from parflex.maps.batches import BatchProgram, Geometry
from parflex.maps.placing.closing_loop import JoinedSteps, joined
from parflex.maps.placing.steppers import Stepper

RECENT = 16  # robots whose programs stay in memory
Both = tuple[list[Stepper], list[Stepper]]
Kept = tuple[list[Stepper], list[Stepper], JoinedSteps | None]
_recent: dict[str, Kept] = {}


def kept_steppers(geometry: Geometry, names: Sequence[str], made: Callable[[], Both]) -> Kept:
    """Steps and judges of poses by these coordinates, and all as one; `made` traces them where they are not there."""
    designs = geometry.designs
    choices = (list(names), "" if designs is None else designs.name or repr(designs.places))
    key = program_store.key_of(geometry.robot, "closing", *choices)
    found = None if key is None else _recent.get(key)
    if found is None:
        both = None if key is None else _read(key)
        if both is None:
            both = made()
            if key is not None:
                disk_cache.write(key, json.dumps([[_content(one) for one in own] for own in both]).encode())
        found = *both, joined(*([one.part for one in own] for own in both))
        if key is not None:
            while len(_recent) >= RECENT:
                _recent.pop(next(iter(_recent)))
            _recent[key] = found
    steppers, judges = (
        [replace(one, program=one.program.with_choice(geometry.compiled)) for one in own] for own in found[:2]
    )
    return steppers, judges, found[2]


def _read(key: str) -> Both | None:
    data = disk_cache.read(key)
    if data is None:
        return None
    steppers, judges = ([_stepper(content) for content in own] for own in json.loads(data))
    return steppers, judges


def _content(one: Stepper) -> dict[str, Any]:
    return {
        "inputs": one.inputs.tolist(),
        "moving": one.moving.tolist(),
        "program": program_store.written(one.program.program),
        "side": one.side,
        "size": one.size,
        "rows": one.rows,
        "settled": one.settled,
    }


def _stepper(content: dict[str, Any]) -> Stepper:
    program = program_store.read_back(content["program"])
    assert program is not None
    inputs, moving = np.array(content["inputs"], dtype=int), np.array(content["moving"], dtype=int)
    numbers = (content[word] for word in ("side", "size", "rows", "settled"))
    return Stepper(inputs, moving, BatchProgram(program), *numbers)
