"""From a raw table to a checked description: constants, repeated legs, typed tables, names that exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from parflex.description import schema
from parflex.description.expressions import FUNCTIONS, NAMES
from parflex.description.references import check_references
from parflex.description.source import apply_settings, read_source
from parflex.errors import RobotFileError, did_you_mean

Model = TypeVar("Model", bound=BaseModel)
LEG_LISTS = {"frame": schema.Frame, "point": schema.Point, "closure": schema.Closure}


def load_description(robot: str | Path, settings: Mapping[str, Any] | None = None) -> tuple[schema.RobotFile, str]:
    """The checked description of a catalogue robot or file, and the file's name for messages."""
    raw, file = read_source(robot)
    return describe(apply_settings(raw, settings or {}, file), file), file


def describe(raw: dict[str, Any], file: str) -> schema.RobotFile:
    """A raw table as a checked description."""
    try:
        return _describe(raw)
    except RobotFileError as error:
        error.file = error.file or file
        raise


def _describe(raw: dict[str, Any]) -> schema.RobotFile:
    top = {key: value for key, value in raw.items() if key not in ("legs", *LEG_LISTS)}
    constants = _constants(raw.get("constants", {}))
    top["constants"] = constants
    if "format" in top and (isinstance(top["format"], bool) or top["format"] != 1):
        raise RobotFileError(
            f"format {top['format']!r} is not known", key="format", value=top["format"], hint="write format = 1"
        )
    if "leg_of" in raw:
        raise RobotFileError("unknown key 'leg_of'", key="leg_of", hint=did_you_mean("leg_of", _top_keys()))
    robot = _validate(schema.RobotFile, top, constants, "")
    lists: dict[str, list[Any]] = {kind: [] for kind in LEG_LISTS}
    for kind, model in LEG_LISTS.items():
        for index, table in enumerate(_list_of_tables(raw.get(kind, []), kind)):
            lists[kind].append(_validate(model, table, constants, _key(kind, index, table)))
    leg_of: dict[str, str] = {}
    legs = raw.get("legs", [])
    for family in legs if isinstance(legs, list) else [legs]:
        _expand_legs(family, constants, lists, leg_of)
    if robot.platform is not None:
        for name, position in robot.platform.points.items():
            point = schema.Point(name=f"{robot.platform.name}.{name}", frame=robot.platform.name, position=position)
            lists["point"].append(point)
    complete = robot.model_copy(update={**{kind: tuple(rows) for kind, rows in lists.items()}, "leg_of": leg_of})
    check_references(complete)
    return complete


def _top_keys() -> list[str]:
    return [key for key in schema.RobotFile.model_fields if key != "leg_of"]


def _key(kind: str, index: int, table: Any, leg: str = "") -> str:
    name = table.get("name") if isinstance(table, dict) else None
    label = f"{kind} '{name}'" if isinstance(name, str) else f"{kind} number {index + 1}"
    return f"{leg}: {label}" if leg else label


def _list_of_tables(value: Any, kind: str) -> list[Any]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise RobotFileError(
            f"'{kind}' is to be a list of tables", key=kind, value=value, hint=f"write [[{kind}]], with two brackets"
        )
    return value


def _constants(raw: Any) -> dict[str, float]:
    """Constants in the order of the file: each may use those before it."""
    if not isinstance(raw, dict):
        raise RobotFileError("'constants' is to be a table", key="constants", hint="write [constants]")
    constants: dict[str, float] = {}
    for name, value in raw.items():
        if name in FUNCTIONS or name in NAMES or not name.isidentifier():
            raise RobotFileError(
                f"'{name}' cannot name a constant",
                key=f"constants.{name}",
                value=name,
                hint="use letters, digits and '_', and no name that expressions already know",
            )
        constants[name] = _number(value, constants, f"constants.{name}")
    return constants


def _number(value: Any, constants: Mapping[str, float], key: str) -> float:
    try:
        return TypeAdapter(schema.Number).validate_python(value, context={"constants": constants})
    except ValidationError as error:
        raise _translate(error, key) from None


def _validate(model: type[Model], data: Any, constants: Mapping[str, float], key: str) -> Model:
    try:
        return model.model_validate(data, context={"constants": constants})
    except ValidationError as error:
        raise _translate(error, key) from None


def _translate(error: ValidationError, key: str) -> RobotFileError:
    """The first complaint of the validation library as one of ours."""
    first = min(error.errors(), key=lambda entry: entry["type"] != "parflex")
    inner = ".".join(str(part) for part in first["loc"] if not _is_type_name(part))
    where = ": ".join(part for part in (key, inner) if part) or None
    hint = first.get("ctx", {}).get("hint")
    message = first["msg"]
    if first["type"] == "missing":
        return RobotFileError(f"key '{first['loc'][-1]}' is missing", key=where, hint=f"add {first['loc'][-1]} = ...")
    if first["type"] == "literal_error":
        allowed = first["ctx"]["expected"].replace(" or ", ", ").replace("'", "").split(", ")
        message = f"'{first['input']}' is not known here"
        hint = did_you_mean(str(first["input"]), allowed)
    elif first["type"] != "parflex":
        message = f"{message[0].lower()}{message[1:]}"
        hint = "see docs/robot-file.md for what is expected here"
    return RobotFileError(message, key=where, value=first["input"], hint=hint)


def _is_type_name(part: Any) -> bool:
    """Parts of a location that name a branch of a union, not a key."""
    return isinstance(part, str) and any(mark in part for mark in "[(")


def _expand_legs(
    family: Any, constants: Mapping[str, float], lists: dict[str, list[Any]], leg_of: dict[str, str]
) -> None:
    """Instantiate one family of legs: each frame, point and closure once per leg, with that leg's values."""
    if not isinstance(family, dict):
        raise RobotFileError("'legs' is to be a table", key="legs", hint="write [legs] with names = [...]")
    names = family.get("names")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise RobotFileError(
            "'names' is to list the legs", key="legs: names", value=names, hint='write names = ["leg1", "leg2"]'
        )
    values: dict[str, list[Any]] = {}
    for key, column in family.items():
        if key in LEG_LISTS or key == "names":
            continue
        if not isinstance(column, list) or isinstance(column, str) or not key.isidentifier():
            hint = did_you_mean(key, ["names", *LEG_LISTS])
            raise RobotFileError(
                f"'{key}' is neither a part of the legs nor a list of values per leg", key=f"legs: {key}", hint=hint
            )
        if len(column) != len(names):
            raise RobotFileError(
                f"'{key}' has {len(column)} values for {len(names)} legs",
                key=f"legs: {key}",
                value=len(column),
                hint="give one value for each name in names",
            )
        if key in NAMES or key in FUNCTIONS or key in constants:
            raise RobotFileError(f"'{key}' already means something else", key=f"legs: {key}", hint="rename it")
        values[key] = column
    templates = {kind: _list_of_tables(family.get(kind, []), f"legs.{kind}") for kind in LEG_LISTS}
    own = {str(table.get("name")) for kind in ("frame", "point") for table in templates[kind]}
    for index, leg in enumerate(names):
        local = dict(constants)
        for key, column in values.items():
            local[key] = _number(column[index], local, f"legs: {key}: {leg}")
        for kind, model in LEG_LISTS.items():
            for number, table in enumerate(templates[kind]):
                placed = _in_leg(table, leg, own)
                entry = _validate(model, placed, local, _key(kind, number, table, f"legs: {leg}"))
                lists[kind].append(entry)
                if kind != "closure":
                    leg_of[entry.name] = leg  # type: ignore[attr-defined]


def _in_leg(table: dict[str, Any], leg: str, own: Iterable[str]) -> dict[str, Any]:
    """The template with names made those of the leg."""

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{leg}", leg)
        if isinstance(value, list):
            return [fill(entry) for entry in value]
        if isinstance(value, dict):
            return {key: fill(entry) for key, entry in value.items()}
        return value

    def resolve(name: Any) -> Any:
        return f"{leg}.{name}" if isinstance(name, str) and name in own else name

    placed = fill(table)
    if isinstance(placed.get("name"), str):
        placed["name"] = f"{leg}.{placed['name']}"
    for key in ("parent", "frame"):
        if key in placed:
            placed[key] = resolve(placed[key])
    if isinstance(placed.get("between"), list):
        placed["between"] = [resolve(name) for name in placed["between"]]
    return placed
