"""Programs that close loops, in memory and on disk: a robot that was traced once is not traced again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.closure.leg_geometry import EXACT
from parflex.codegen import cache
from parflex.codegen.program import Program
from parflex.maps.batches import BatchProgram, Geometry
from parflex.maps.placing.closing_loop import JoinedSteps, joined
from parflex.maps.placing.dyad_places import DyadPlaces
from parflex.maps.placing.steppers import Stepper

RECENT = 16  # robots whose programs stay in memory
Both = tuple[list[Stepper], list[Stepper]]
Kept = tuple[list[Stepper], list[Stepper], JoinedSteps | None]
_recent: dict[str, Kept] = {}
_structures: dict[str, BatchProgram | None] = {}
_circles: dict[str, DyadPlaces | None] = {}
_homes: dict[str, Stepper | None] = {}


def _key(geometry: Geometry, names: Sequence[str], word: str) -> str | None:
    designs = geometry.designs
    choices = (list(names), "" if designs is None else designs.name or repr(designs.places), geometry.legs_differ)
    return cache.key_of(geometry.robot, word, *choices)


def legs_differ(geometry: Geometry, names: Sequence[str], made: Callable[[], Program | None]) -> bool:
    """Whether a design moves joints of legs in space apart that cross or are parallel; `made` traces what tells."""
    if geometry.designs is None or not geometry.varied:
        return False
    key = _key(geometry, names, "structure of legs")
    if key is None or key not in _structures:
        data = None if key is None else cache.read_bytes(key)
        if data is not None:
            content = json.loads(data)
            program = None if content is None else cache.program_from_plain(content)
        else:
            program = made()
            if key is not None:
                cache.write_bytes(
                    key, json.dumps(None if program is None else cache.program_to_plain(program)).encode()
                )
        found = None if program is None else BatchProgram(program, False)
        if key is not None:
            while len(_structures) >= RECENT:
                _structures.pop(next(iter(_structures)))
            _structures[key] = found
    else:
        found = _structures[key]
    if found is None:
        return False
    off = found(geometry.designs.columns(geometry.varied))
    return not bool(np.abs(off).max(initial=0.0) < EXACT)  # what is not a number differs too


def kept_places(geometry: Geometry, names: Sequence[str], made: Callable[[], DyadPlaces | None]) -> DyadPlaces | None:
    """Positions in closed form by these coordinates, None where there are none; `made` traces what is not there."""
    key = _key(geometry, names, "circles")
    if key is None or key not in _circles:
        data = None if key is None else cache.read_bytes(key)
        if data is not None:
            content = json.loads(data)
            found = None if content is None else _places(content)
        else:
            found = made()
            if key is not None:
                cache.write_bytes(key, json.dumps(None if found is None else _places_content(found)).encode())
        if key is None:
            return found
        while len(_circles) >= RECENT:
            _circles.pop(next(iter(_circles)))
        _circles[key] = found
    found = _circles[key]
    return None if found is None else replace(found, program=found.program.with_choice(geometry.compiled))


def _places_content(one: DyadPlaces) -> dict[str, Any]:
    return {
        "program": cache.program_to_plain(one.program.program),
        **{name: getattr(one, name).tolist() for name in ("inputs", "moving", "turning", "home")},
        "length": one.length,
        "legs": one.legs,
    }


def _places(content: dict[str, Any]) -> DyadPlaces:
    program = cache.program_from_plain(content["program"])
    assert program is not None
    inputs, moving = (np.array(content[word], dtype=int) for word in ("inputs", "moving"))
    legs = tuple(tuple(own) for own in content["legs"])
    turning, home = np.array(content["turning"], dtype=bool), np.array(content["home"])
    return DyadPlaces(BatchProgram(program), inputs, moving, turning, home, content["length"], legs)


def kept_steppers(geometry: Geometry, names: Sequence[str], made: Callable[[], Both]) -> Kept:
    """Steps and judges of poses by these coordinates, and all as one; `made` traces them where they are not there."""
    key = _key(geometry, names, "closing")
    found = None if key is None else _recent.get(key)
    if found is None:
        both = None if key is None else _read(key)
        if both is None:
            both = made()
            if key is not None:
                cache.write_bytes(key, json.dumps([[_content(one) for one in own] for own in both]).encode())
        found = *both, joined(*([one.part for one in own] for own in both))
        if key is not None:
            while len(_recent) >= RECENT:
                _recent.pop(next(iter(_recent)))
            _recent[key] = found
    steppers, judges = (
        [replace(one, program=one.program.with_choice(geometry.compiled)) for one in own] for own in found[:2]
    )
    return steppers, judges, found[2]


def kept_home_steps(geometry: Geometry, made: Callable[[], Stepper | None]) -> Stepper | None:
    """Steps that close homes of designs, None where there are none; `made` traces what is not there."""
    key = _key(geometry, [], "homes")
    if key is None or key not in _homes:
        data = None if key is None else cache.read_bytes(key)
        if data is not None:
            content = json.loads(data)
            found = None if content is None else _stepper(content)
        else:
            found = made()
            if key is not None:
                cache.write_bytes(key, json.dumps(None if found is None else _content(found)).encode())
        if key is not None:
            while len(_homes) >= RECENT:
                _homes.pop(next(iter(_homes)))
            _homes[key] = found
    else:
        found = _homes[key]
    return None if found is None else replace(found, program=found.program.with_choice(geometry.compiled))


def _read(key: str) -> Both | None:
    data = cache.read_bytes(key)
    if data is None:
        return None
    steppers, judges = ([_stepper(content) for content in own] for own in json.loads(data))
    return steppers, judges


def _content(one: Stepper) -> dict[str, Any]:
    return {
        "inputs": one.inputs.tolist(),
        "moving": one.moving.tolist(),
        "program": cache.program_to_plain(one.program.program),
        "side": one.side,
        "size": one.size,
        "rows": one.rows,
        "settled": one.settled,
        "folds": one.folds,
    }


def _stepper(content: dict[str, Any]) -> Stepper:
    program = cache.program_from_plain(content["program"])
    assert program is not None
    inputs, moving = np.array(content["inputs"], dtype=int), np.array(content["moving"], dtype=int)
    numbers = (content[word] for word in ("side", "size", "rows", "settled", "folds"))
    return Stepper(inputs, moving, BatchProgram(program), *numbers)
