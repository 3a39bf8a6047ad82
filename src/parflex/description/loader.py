"""From a raw table to a checked description: constants, repeated legs, typed tables, names that exist."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from parflex.description import schema
from parflex.description.expressions import FUNCTIONS, NAMES
from parflex.description.inheritance import read_family
from parflex.description.name_checks import check_references
from parflex.description.names import split_place
from parflex.description.source import apply_settings, refuse_deep
from parflex.description.values import Name, Number, as_value, shown
from parflex.errors import RobotFileError, did_you_mean, nearest

Model = TypeVar("Model", bound=BaseModel)
LEG_LISTS: dict[str, type[Any]] = {
    **{"frame": schema.Frame, "point": schema.Point},
    **{
        "closure": schema.Closure,
        "coupling": schema.CouplingTable,
        "element": schema.ElementTable,
        "visual": schema.Visual,
    },
}


def load_table(robot: str | Path, settings: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], list[str]]:
    """Return the table of a catalogue robot or file with `settings` applied, and its files: its own first."""
    raw, files = read_family(robot)
    complete = apply_settings(raw, settings or {}, files[0])
    refuse_deep(complete, files[0])
    return complete, files


def load_description(robot: str | Path, settings: Mapping[str, Any] | None = None) -> tuple[schema.RobotFile, str]:
    """The checked description of a catalogue robot or file, and the file's name for messages."""
    complete, files = load_table(robot, settings)
    return describe(complete, files[0]), files[0]


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
        form = top["format"]
        raise RobotFileError(
            f"format {shown(form)} is not known", key="format", value=as_value(form), hint="write format = 1"
        )
    robot = _validate(schema.RobotFile, top, constants, "")
    lists: dict[str, list[Any]] = {kind: [] for kind in LEG_LISTS}
    for kind, model in LEG_LISTS.items():
        for index, table in enumerate(_list_of_tables(raw.get(kind, []), kind)):
            lists[kind].append(_validate(model, table, constants, _key(kind, index, table)))
    leg_of: dict[str, str] = {}
    leg_names: list[str] = []
    legs = raw.get("legs", [])
    own = len(lists["frame"])
    for family in legs if isinstance(legs, list) else [legs]:
        _expand_legs(family, constants, lists, leg_of, leg_names)
    if "frame" in raw and list(raw).index("legs" if "legs" in raw else "frame") < list(raw).index("frame"):
        lists["frame"] = [*lists["frame"][own:], *lists["frame"][:own]]  # joints and motors in the order of the file
    if robot.platform is not None:
        for name, position in robot.platform.points.items():
            point = {"name": f"{robot.platform.name}.{name}", "frame": robot.platform.name, "position": position}
            lists["point"].append(_validate(schema.Point, point, constants, "platform: points"))
    complete = robot.model_copy(update={**{kind: tuple(rows) for kind, rows in lists.items()}, "leg_of": leg_of})
    check_references(complete)
    return complete


def _key(kind: str, index: int, table: Any, leg: str = "") -> str:
    name = table.get("name") if isinstance(table, dict) else None
    label = f"{kind} '{name}'" if isinstance(name, str) else f"{kind} number {index + 1}"
    return f"{leg}: {label}" if leg else label


def _list_of_tables(value: Any, kind: str) -> list[Any]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise RobotFileError(
            f"'{kind}' must be a list of tables, not {shown(value)}",
            key=kind,
            value=as_value(value),
            hint=f"write [[{kind}]], with two brackets",
        )
    return value


def _constants(raw: Any) -> dict[str, float]:
    """Constants in the order of the file: each may use those before it."""
    if not isinstance(raw, dict):
        raise RobotFileError(
            f"'constants' must be a table, not {shown(raw)}",
            key="constants",
            value=as_value(raw),
            hint="write [constants]",
        )
    constants: dict[str, float] = {}
    for name, value in raw.items():
        _check_value_name(name, "constants")
        constants[name] = _read(Number, value, constants, f"constants.{name}")
    return constants


def _check_value_name(name: str, table: str) -> None:
    """Names of constants and of values per leg must be such that an expression can use them."""
    if name in FUNCTIONS or name in NAMES or keyword.iskeyword(name) or not name.isidentifier():
        raise RobotFileError(
            f"{shown(name)} is not a valid constant name",
            key=f"{table}.{name[:80]}",
            value=as_value(name),
            hint="use letters, digits and '_', and no name that expressions already define",
        )


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """What checks one kind of value: to make it takes longer than all that it checks in a file."""
    return TypeAdapter(kind)


def _read(kind: Any, value: Any, constants: Mapping[str, float], key: str) -> Any:
    """One number or name."""
    try:
        return _adapter(kind).validate_python(value, context={"constants": constants})
    except ValidationError as error:
        raise _translate(error, key) from None


def read_tables(kind: type[Model], raw: dict[str, Any], file: str, page: str) -> Model:
    """The tables of a file that is not a robot's, checked in the same way; the page says what may stand there."""
    refuse_deep(raw, file)
    try:
        return _validate(kind, raw, {}, "")
    except RobotFileError as error:
        error.file = file
        error.hint = (error.hint or "").replace("docs/robot-file.md", page)
        raise


def describe_sections(raw: dict[str, Any]) -> dict[str, schema.SectionTable]:
    """The sections of a raw table alone."""
    constants = _constants(raw.get("constants", {}))
    own = raw.get("sections", {})
    return {name: _validate(schema.SectionTable, own[name], constants, f"sections.{name}") for name in own}


def _validate(model: type[Model], data: Any, constants: Mapping[str, float], key: str) -> Model:
    try:
        return model.model_validate(data, context={"constants": constants})
    except ValidationError as error:
        raise _translate(error, key) from None


def _translate(error: ValidationError, key: str) -> RobotFileError:
    """The first complaint of the validation library as one of ours."""
    first = min(error.errors(), key=lambda entry: entry["type"] != "parflex")
    given, context = first["input"], first.get("ctx", {})
    parts = [
        str(part)[:80] for part in (*first["loc"], context.get("key", "")) if part != "" and not _is_type_name(part)
    ]
    where = ": ".join(part for part in (key, ".".join(parts)) if part) or None
    match first["type"]:
        case "parflex":
            message, hint = context["message"], context["hint"]
            given = context["value"] if context["key"] or context["value"] is not None else given
        case "missing":
            return RobotFileError(f"key '{parts[-1]}' is missing", key=where, hint=f"add {parts[-1]} = ...")
        case "literal_error":
            allowed = context["expected"].replace(" or ", ", ").replace("'", "").split(", ")
            message, hint = f"{shown(given)} is not known here", did_you_mean(str(given)[:80], allowed)
        case "dict_type":
            message, hint = f"a table is expected here, not {shown(given)}", "write { key = value, ... }"
        case _:
            message = f"{first['msg'][0].lower()}{first['msg'][1:]}, not {shown(given)}"
            hint = "see docs/robot-file.md for what is expected here"
    return RobotFileError(message, key=where, value=None if given is None else as_value(given), hint=hint)


def _is_type_name(part: Any) -> bool:
    """Parts of a location that name a branch of a union, not a key."""
    return isinstance(part, str) and any(mark in part for mark in "[(")


def _leg_names(family: Any, taken: Iterable[str]) -> list[str]:
    """Names of the legs of one family, valid and not used before."""
    if not isinstance(family, dict):
        raise RobotFileError(
            f"'legs' must be a table, not {shown(family)}",
            key="legs",
            value=as_value(family),
            hint="write [legs] with names = [...]",
        )
    names = family.get("names")
    if "names" not in family:
        meant = nearest("names", [key for key in family if key not in LEG_LISTS])
        hint = f"did you mean 'names' by '{meant}'?" if meant else 'write names = ["leg1", "leg2"]'
        raise RobotFileError("key 'names' is missing", key="legs: names", hint=hint)
    if not isinstance(names, list) or not names:
        raise RobotFileError(
            f"'names' must list the legs, not {shown(names)}",
            key="legs: names",
            value=as_value(names),
            hint='write names = ["leg1", "leg2"]',
        )
    seen = set(taken)
    for name in names:
        _read(Name, name, {}, "legs: names")
        if name in seen:
            raise RobotFileError(
                f"the leg '{name}' appears twice", key="legs: names", value=name, hint="rename one of them"
            )
        seen.add(name)
    return names


def _leg_values(family: dict[str, Any], names: list[str], constants: Mapping[str, float]) -> dict[str, list[Any]]:
    """Lists beside `names`: one value for each leg."""
    values: dict[str, list[Any]] = {}
    for key, column in family.items():
        if key in LEG_LISTS or key == "names":
            continue
        where = f"legs: {key[:80]}"
        if not isinstance(column, list) or any(isinstance(entry, dict) for entry in column):
            raise RobotFileError(
                f"'{key[:80]}' is neither a table of the legs nor a list of values per leg",
                key=where,
                value=as_value(column),
                hint=did_you_mean(key[:80], ["names", *LEG_LISTS]),
            )
        _check_value_name(key, "legs")
        if len(column) != len(names):
            raise RobotFileError(
                f"'{key}' has {len(column)} values for {len(names)} legs",
                key=where,
                value=as_value(column),
                hint="give one value for each name in names",
            )
        if key in constants:
            raise RobotFileError(f"'{key}' is already a constant", key=where, value=key, hint="rename one of them")
        values[key] = column
    return values


def _expand_legs(
    family: Any, constants: Mapping[str, float], lists: dict[str, list[Any]], leg_of: dict[str, str], taken: list[str]
) -> None:
    """Instantiate one family of legs: each frame, point, closure, ... once per leg, with that leg's values."""
    names = _leg_names(family, taken)
    taken += names
    values = _leg_values(family, names, constants)
    templates = {kind: _list_of_tables(family.get(kind, []), f"legs.{kind}") for kind in LEG_LISTS}
    own = {str(table.get("name")) for kind in ("frame", "point", "element") for table in templates[kind]}
    for index, leg in enumerate(names):
        local = dict(constants)
        for key, column in values.items():
            local[key] = _read(Number, column[index], local, f"legs: {key}: {leg}")
        for kind, model in LEG_LISTS.items():
            for number, table in enumerate(templates[kind]):
                placed = _in_leg(table, leg, own, kind == "coupling")
                entry = _validate(model, placed, local, _key(kind, number, table, f"legs: {leg}"))
                lists[kind].append(entry)
                if kind in ("frame", "point", "element"):  # the length of a strut is a coordinate of its leg
                    leg_of[entry.name] = leg


def _in_leg(table: dict[str, Any], leg: str, own: Iterable[str], coupling: bool) -> dict[str, Any]:
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
        """A frame or point of the leg, or a node on the beam of one of its frames."""
        if not isinstance(name, str):
            return name
        mine = name in own or name.rpartition(".")[0] in own or (split_place(name) or ("",))[0] in own
        return f"{leg}.{name}" if mine else name

    placed = fill(table)
    if isinstance(placed.get("name"), str) and placed["name"]:
        placed["name"] = f"{leg}.{placed['name']}"
    for key in ("parent", "frame", *(("joint", "other") if coupling else ())):
        if key in placed:
            placed[key] = resolve(placed[key])
    if isinstance(placed.get("between"), list):
        placed["between"] = [resolve(name) for name in placed["between"]]
    if coupling and isinstance(placed.get("terms"), dict):
        placed["terms"] = {resolve(fill(name)): ratio for name, ratio in placed["terms"].items()}
    return placed
