"""Numbers of a robot that follow from changed values of its file, for many parameter sets at once.

The results of reading the file (positions, masses, stiffnesses) are inputs of programs in place of constants. Sets that
the reading would treat otherwise than the nominal one, and impossible sets, are marked and loaded one by one.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from parflex.cache import cached
from parflex.closure.constraints import Closures, build_closures
from parflex.errors import InputError, RobotFileError
from parflex.records import Record
from parflex.robot.load import with_payload
from parflex.robot.robot import Robot
from parflex.robotfile.read import apply_settings, value_at
from parflex.robotfile.values import evaluate
from parflex.tree.build import build_tree
from parflex.tree.rigid_version import read_version

Array = np.ndarray
Path = tuple[str | int, ...]


class LazyNumbers(Protocol):
    """Numbers of designs that are made when they are asked for: of most rows few are."""

    def columns(self, numbers: Sequence[int]) -> Array:
        """Some numbers in all designs."""

    def of_rows(self, rows: Array) -> LazyNumbers:
        """The same for some of the designs."""


@dataclass(frozen=True, eq=False, repr=False)
class DesignNumbers(Record):
    """Numbers of a robot in many designs.

    `places` says where in the robot each number stands, by fields and indices, as a rule at several places; `held`
    are designs x numbers, or what makes them when they are asked for; `slopes` are keys x numbers at the nominal
    design, where they are asked for; `alone` marks designs that must be loaded one by one. `name` tells the places and
    formulas from others. `samples` are numbers in designs around the nominal one: what is equal in them follows from
    the formulas.
    """

    robot: Robot
    keys: tuple[str, ...]
    places: tuple[tuple[Path, ...], ...]
    nominal: Array
    held: Array | LazyNumbers
    alone: Array
    slopes: Array | None = None
    name: str = ""
    samples: Array | None = None

    @cached_property
    def values(self) -> Array:
        """Designs x numbers."""
        return self.held if isinstance(self.held, np.ndarray) else self.held.columns(range(len(self.places)))

    def columns(self, numbers: Sequence[int]) -> Array:
        """Some of the numbers in all designs."""
        return self.held[:, numbers] if isinstance(self.held, np.ndarray) else self.held.columns(numbers)

    @property
    def _branches(self) -> dict[str | int, Any]:
        """Numbers of places by their steps, one dictionary in another."""
        places = self.places
        return cached("places by steps", "", lambda: _nested_by_place(places, range(len(places))), (places,))

    def values_at(self, part: Path, plain: Any) -> Array:
        """The array, or the number, that stands at a place of the tree: designs x its shape where designs differ."""
        plain, numbers = np.asarray(plain), cached("places", "", lambda: _numbers_by_place(self.places), (self.places,))
        entries = numbers.get(("tree", *part), [])
        if not entries:
            return plain
        wide = np.broadcast_to(plain.ravel(), (len(self.alone), plain.size)).astype(float)
        wide[:, [inner for _, inner in entries]] = self.columns([k for k, _ in entries])
        return wide.reshape(len(self.alone), *plain.shape)

    def of_rows(self, rows: Array) -> DesignNumbers:
        """The same for some of the designs."""
        held = self.held[rows] if isinstance(self.held, np.ndarray) else self.held.of_rows(rows)
        return replace(self, held=held, alone=self.alone[rows])

    def robot_of(self, row: int, home: Array) -> Robot:
        """The robot of one design, which stands at `home`; it is not read again, so that its file is that of all."""
        robot = self.with_numbers({k: float(x) for k, x in enumerate(self.values[row])})
        return replace(robot, known_home=home, known_mobility=self.robot.mobility)

    def with_numbers(self, numbers: Mapping[int, Any]) -> Robot:
        """The robot with other numbers (symbols, as a rule) in the place of some; it stands as the nominal one."""
        tree, closures = self.robot.tree, self.robot.closures
        branches = self._branches if len(numbers) == len(self.places) else _nested_by_place(self.places, numbers)
        parts = {"tree": tree, "loops": closures.loops, "constraints": closures.constraints}
        changed = {name: _substituted(part, branches.get(name, {}), numbers) for name, part in parts.items()}
        tree = replace(changed["tree"], known_length=tree.length)
        closures = Closures(tree, changed["loops"], changed["constraints"])
        return replace(self.robot, tree=tree, closures=closures, known_home=self.robot.home)


def _numbers_by_place(places: tuple[tuple[Path, ...], ...]) -> dict[Path, list[tuple[int, int]]]:
    """Numbers by where they stand, and by the array in which they do: which number, and its index there."""
    numbers: dict[Path, list[tuple[int, int]]] = {}
    for k, paths in enumerate(places):
        for place in paths:
            numbers.setdefault(place, []).append((k, 0))
            if isinstance(place[-1], int):
                numbers.setdefault(place[:-1], []).append((k, place[-1]))
    return numbers


def _nested_by_place(places: Sequence[Iterable[Path]], numbers: Iterable[int]) -> dict[str | int, Any]:
    """By the first step, then by the second, and so on; at the end of a place which of the numbers stands there."""
    branches: dict[str | int, Any] = {}
    for k in numbers:
        for place in places[k]:
            branch = branches
            for step in place[:-1]:
                branch = branch.setdefault(step, {})
            branch[place[-1]] = k
    return branches


def reread_file(robot: Robot, settings: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The file read again with other numbers at some keys: its description, the parts of the robot, and its home."""
    written = robot.written
    if written is None:
        raise InputError("the robot was not loaded from a file", key="designs", hint="use 'load'")
    table = apply_settings(copy.deepcopy(written.table), dict(settings), robot.file)
    description = read_version(table, robot.file, written.elements, written.rigid)
    tree = build_tree(description, written.elements, written.nodes)
    if written.payload is not None:
        tree = with_payload(tree, written.payload)
    closures = build_closures(description, tree)
    home = {"poses": description.poses.get("home", {})}
    if robot.working_mode in description.working_modes:
        home["mode"] = description.working_modes[robot.working_mode].start
    parts = {"tree": tree, "loops": closures.loops, "constraints": closures.constraints}
    return description, parts | {"home": home}


def with_leaves(part: Any, places: Sequence[Path], numbers: Sequence[Any]) -> Any:
    """Return the same part with other numbers at some places."""
    return _substituted(part, _nested_by_place([(place,) for place in places], range(len(places))), numbers)


def number_at(robot: Robot, key: Any, word: str = "") -> float:
    """Return the number at a key of the robot's file, by dotted path; the error of what is none is about `word`."""
    if robot.written is None:
        raise InputError("the robot was not loaded from a file", key=word or "designs", hint="use 'load'")
    try:
        value = value_at(robot.written.table, key, robot.file)
    except (InputError, RobotFileError) as error:
        error.key = word or error.key
        raise
    try:
        return float(evaluate(value, robot.description.constants) if isinstance(value, str) else value)
    except (RobotFileError, TypeError, ValueError):
        text, hint = f"'{key}' is not a number of the robot file", "name a key with one number"
        raise InputError(text, key=word or "designs", value=key, hint=hint) from None


def constants_of(robot: Robot, value: Any) -> set[str]:
    """Return the constants of the robot's file from which a value follows: those that its texts name, and theirs."""
    assert robot.written is not None
    constants: dict[str, Any] = robot.written.table.get("constants", {})
    open_parts, named = [value], set[str]()
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, dict | list):
            open_parts += part.values() if isinstance(part, dict) else part
        elif isinstance(part, str):
            new = set(re.findall(r"[A-Za-z_]\w*", part)) & set(constants) - named
            named |= new
            open_parts += [constants[name] for name in new]
    return named


def leaves(part: Any, place: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Everything that stands in records, containers and arrays of symbols, with where it stands."""
    parts = _parts(part)
    if parts is None:
        yield place, part
    for step, inner in parts or ():
        yield from leaves(inner, (*place, step))


def _parts(part: Any) -> list[tuple[str | int, Any]] | None:
    """Steps to the parts of a record, a container or an array of symbols, with these parts; None of anything else."""
    if isinstance(part, np.ndarray):
        return list(enumerate(part.ravel())) if part.dtype == object else None
    if isinstance(part, dict):
        return list(part.items())
    if isinstance(part, tuple | list):
        return list(enumerate(part))
    if is_dataclass(part) and not isinstance(part, type):
        return [(field.name, getattr(part, field.name)) for field in fields(part) if field.init]
    return None


def _substituted(part: Any, branch: Any, numbers: Any) -> Any:
    """The same part with other values at some places: `numbers` holds them by what stands at the ends of branches."""
    if not isinstance(branch, dict):
        return numbers[branch]
    if not branch:
        return part
    if isinstance(part, np.ndarray):
        plain = part.dtype == float and all(isinstance(numbers[k], float) for k in branch.values())
        flat = part.astype(float if plain else object).ravel()
        for step, k in branch.items():
            flat[step] = numbers[k]
        return flat.reshape(part.shape)
    if isinstance(part, dict):
        return part | {step: _substituted(part[step], inner, numbers) for step, inner in branch.items()}
    if isinstance(part, tuple | list):
        items = list(part)
        for step, inner in branch.items():
            items[step] = _substituted(items[step], inner, numbers)
        return type(part)(items)
    return replace(
        part, **{str(step): _substituted(getattr(part, str(step)), x, numbers) for step, x in branch.items()}
    )
