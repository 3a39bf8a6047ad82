"""Read a robot file: TOML, inheritance, settings and the commented template."""

from __future__ import annotations

import copy
import keyword
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from parflex.errors import InputError, RobotFileError, did_you_mean, nearest
from parflex.io import read_bytes, read_errors
from parflex.robotfile import schema
from parflex.robotfile.checks import check_references, refuse
from parflex.robotfile.values import FUNCTIONS, NAMES, Name, Number, error_value, read_name, short_text, split_place

Model = TypeVar("Model", bound=BaseModel)
LEG_LISTS: dict[str, type[Any]] = {
    "frame": schema.Frame,
    "point": schema.Point,
    "closure": schema.Closure,
    "coupling": schema.CouplingTable,
    "element": schema.ElementTable,
    "visual": schema.Visual,
}
NAMED_LISTS = ("frame", "point", "closure", "coupling", "element")
MAX_DEPTH = 8
MAX_KEY_PARTS = 50  # of a dotted key: the TOML reader takes quadratic time
NOT_INHERITED_KEYS = ("name", "extends")  # a file never takes these from the one it extends
MAX_GENERATIONS = 8


def load_table(robot: str | Path, settings: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], list[str]]:
    """Return the table of a catalogue robot or file with `settings` applied, and its files, its own first."""
    raw, files = read_with_inheritance(robot)
    complete = apply_settings(raw, settings or {}, files[0])
    refuse_deep_nesting(complete, files[0])
    return complete, files


def load_description(robot: str | Path, settings: Mapping[str, Any] | None = None) -> tuple[schema.RobotFile, str]:
    """Return the checked description of a catalogue robot or file, and its file name for messages."""
    complete, files = load_table(robot, settings)
    return describe(complete, files[0]), files[0]


def describe(raw: dict[str, Any], file: str) -> schema.RobotFile:
    """Return a raw table as a checked description."""
    try:
        return _describe(raw)
    except RobotFileError as error:
        error.file = error.file or file
        raise


def _describe(raw: dict[str, Any]) -> schema.RobotFile:
    top = {key: value for key, value in raw.items() if key not in ("legs", *LEG_LISTS)}
    constants = _constants(raw.get("constants", {}))
    top["constants"] = constants
    form = top.get("format", 1)
    unknown, message = isinstance(form, bool) or form != 1, f"format {short_text(form)} is not known"
    refuse(unknown, message, "format", error_value(form), "write format = 1")
    robot = _read(schema.RobotFile, top, constants, "")
    lists: dict[str, list[Any]] = {kind: [] for kind in LEG_LISTS}
    for kind, model in LEG_LISTS.items():
        for index, table in enumerate(_list_of_tables(raw.get(kind, []), kind)):
            lists[kind].append(_read(model, table, constants, _key(kind, index, table)))
    leg_of: dict[str, str] = {}
    leg_names: list[str] = []
    legs = raw.get("legs", [])
    common_frame_count = len(lists["frame"])
    for family in legs if isinstance(legs, list) else [legs]:
        _expand_legs(family, constants, lists, leg_of, leg_names)
    if "frame" in raw and list(raw).index("legs" if "legs" in raw else "frame") < list(raw).index("frame"):
        frames = lists["frame"]  # joints and motors in the order of the file
        lists["frame"] = [*frames[common_frame_count:], *frames[:common_frame_count]]
    if robot.platform is not None:
        for name, position in robot.platform.points.items():
            point = {"name": f"{robot.platform.name}.{name}", "frame": robot.platform.name, "position": position}
            lists["point"].append(_read(schema.Point, point, constants, "platform: points"))
    complete = robot.model_copy(update={**{kind: tuple(rows) for kind, rows in lists.items()}, "leg_of": leg_of})
    check_references(complete)
    return complete


def _key(kind: str, index: int, table: Any, leg: str = "") -> str:
    name = table.get("name") if isinstance(table, dict) else None
    label = f"{kind} '{name}'" if isinstance(name, str) else f"{kind} number {index + 1}"
    return f"{leg}: {label}" if leg else label


def _wrong_form(key: str, form: str, value: Any, hint: str) -> RobotFileError:
    """Return the error for a value of the wrong kind."""
    message = f"'{key.rpartition(': ')[2]}' must {form}, not {short_text(value)}"
    return RobotFileError(message, key=key, value=error_value(value), hint=hint)


def _list_of_tables(value: Any, kind: str) -> list[Any]:
    if not _is_rows(value):
        raise _wrong_form(kind, "be a list of tables", value, f"write [[{kind}]], with two brackets")
    return value


def _constants(raw: Any) -> dict[str, float]:
    """Return the constants in file order; each may use earlier constants."""
    if not isinstance(raw, dict):
        raise _wrong_form("constants", "be a table", raw, "write [constants]")
    constants: dict[str, float] = {}
    for name, value in raw.items():
        _check_value_name(name, "constants")
        constants[name] = _read(Number, value, constants, f"constants.{name}")
    return constants


def _check_value_name(name: str, table: str) -> None:
    """Raise if an expression cannot use the name of a constant or of a value per leg."""
    wrong = name in FUNCTIONS or name in NAMES or keyword.iskeyword(name) or not name.isidentifier()
    key, hint = f"{table}.{name[:80]}", "use letters, digits and '_', and no name that expressions already define"
    refuse(wrong, f"{short_text(name)} is not a valid constant name", key, error_value(name), hint)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the cached validator of a type, which is slow to build."""
    return TypeAdapter(kind)


def _read(kind: Any, value: Any, constants: Mapping[str, float], key: str) -> Any:
    """Validate a table, a number or a name."""
    try:
        return _adapter(kind).validate_python(value, context={"constants": constants})
    except ValidationError as error:
        raise _translate(error, key) from None


def read_tables(kind: type[Model], raw: dict[str, Any], file: str, page: str) -> Model:
    """Validate the tables of another kind of file; errors refer to the documentation `page`."""
    refuse_deep_nesting(raw, file)
    try:
        return _read(kind, raw, {}, "")
    except RobotFileError as error:
        error.file = file
        error.hint = (error.hint or "").replace("docs/robot-file.md", page)
        raise


def describe_sections(raw: dict[str, Any]) -> dict[str, schema.SectionTable]:
    """Return only the checked sections of a raw table."""
    constants = _constants(raw.get("constants", {}))
    sections = raw.get("sections", {})
    return {name: _read(schema.SectionTable, sections[name], constants, f"sections.{name}") for name in sections}


def _translate(error: ValidationError, key: str) -> RobotFileError:
    """Return the first validation error as a RobotFileError."""
    first = min(error.errors(), key=lambda entry: entry["type"] != "parflex")
    value, context = first["input"], first.get("ctx", {})
    path = (*first["loc"], context.get("key", ""))
    keys = (part for part in path if not (isinstance(part, str) and set(part) & set("[(")))  # else branches of a union
    parts = [str(part)[:80] for part in keys if part != ""]
    location = ": ".join(part for part in (key, ".".join(parts)) if part) or None
    match first["type"]:
        case "parflex":
            message, hint = context["message"], context["hint"]
            value = context["value"] if context["key"] or context["value"] is not None else value
        case "missing":
            return RobotFileError(f"key '{parts[-1]}' is missing", key=location, hint=f"add {parts[-1]} = ...")
        case "literal_error":
            allowed = context["expected"].replace(" or ", ", ").replace("'", "").split(", ")
            message, hint = f"{short_text(value)} is not known here", did_you_mean(str(value)[:80], allowed)
        case "dict_type":
            message, hint = f"a table is expected here, not {short_text(value)}", "write { key = value, ... }"
        case _:
            message = f"{first['msg'][0].lower()}{first['msg'][1:]}, not {short_text(value)}"
            hint = "see docs/robot-file.md for what is expected here"
    return RobotFileError(message, key=location, value=None if value is None else error_value(value), hint=hint)


def _leg_names(family: Any, taken: Iterable[str]) -> list[str]:
    """Return the names of the legs of one family; raise for invalid or repeated names."""
    if not isinstance(family, dict):
        raise _wrong_form("legs", "be a table", family, "write [legs] with names = [...]")
    names, example, key = family.get("names"), 'write names = ["leg1", "leg2"]', "legs: names"
    suggestion = nearest("names", [key for key in family if key not in LEG_LISTS])
    hint = f"did you mean 'names' by '{suggestion}'?" if suggestion else example
    refuse("names" not in family, "key 'names' is missing", key, None, hint)
    if not isinstance(names, list) or not names:
        raise _wrong_form(key, "list the legs", names, example)
    used_names = set(taken)
    for name in names:
        _read(Name, name, {}, key)
        refuse(name in used_names, f"the leg '{name}' appears twice", key, name, "rename one of them")
        used_names.add(name)
    return names


def _leg_values(family: dict[str, Any], names: list[str], constants: Mapping[str, float]) -> dict[str, list[Any]]:
    """Return the lists of values per leg, by key."""
    values: dict[str, list[Any]] = {}
    for key, column in family.items():
        if key in LEG_LISTS or key == "names":
            continue
        location, value = f"legs: {key[:80]}", error_value(column)
        wrong = not isinstance(column, list) or any(isinstance(entry, dict) for entry in column)
        message = f"'{key[:80]}' is neither a table of the legs nor a list of values per leg"
        refuse(wrong, message, location, value, did_you_mean(key[:80], ["names", *LEG_LISTS]))
        _check_value_name(key, "legs")
        message = f"'{key}' has {len(column)} values for {len(names)} legs"
        refuse(len(column) != len(names), message, location, value, "give one value for each name in names")
        refuse(key in constants, f"'{key}' is already a constant", location, key, "rename one of them")
        values[key] = column
    return values


def _expand_legs(
    family: Any, constants: Mapping[str, float], lists: dict[str, list[Any]], leg_of: dict[str, str], taken: list[str]
) -> None:
    """Instantiate each frame, point, closure, ... of a family of legs once per leg, with the values of that leg."""
    names = _leg_names(family, taken)
    taken += names
    values = _leg_values(family, names, constants)
    templates = {kind: _list_of_tables(family.get(kind, []), f"legs.{kind}") for kind in LEG_LISTS}
    template_names = {str(table.get("name")) for kind in ("frame", "point", "element") for table in templates[kind]}
    for index, leg in enumerate(names):
        leg_constants = dict(constants)
        for key, column in values.items():
            leg_constants[key] = _read(Number, column[index], leg_constants, f"legs: {key}: {leg}")
        for kind, model in LEG_LISTS.items():
            for number, table in enumerate(templates[kind]):
                leg_table = _instantiate_in_leg(table, leg, template_names, kind == "coupling")
                entry = _read(model, leg_table, leg_constants, _key(kind, number, table, f"legs: {leg}"))
                lists[kind].append(entry)
                if kind in ("frame", "point", "element"):  # the length of a strut is a coordinate of its leg
                    leg_of[entry.name] = leg


def _instantiate_in_leg(table: dict[str, Any], leg: str, template_names: set[str], coupling: bool) -> dict[str, Any]:
    """Return the template with the names of the leg."""

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{leg}", leg)
        if isinstance(value, list):
            return [fill(entry) for entry in value]
        if isinstance(value, dict):
            return {key: fill(entry) for key, entry in value.items()}
        return value

    def resolve(name: Any) -> Any:
        """Prefix the leg to a frame or point of the leg, or to a node on a beam of the leg."""
        if not isinstance(name, str):
            return name
        owners = {name, name.rpartition(".")[0], *(split_place(name) or ())[:1]}
        return f"{leg}.{name}" if owners & template_names else name

    leg_table = fill(table)
    if isinstance(leg_table.get("name"), str) and leg_table["name"]:
        leg_table["name"] = f"{leg}.{leg_table['name']}"
    for key in ("parent", "frame", *(("joint", "other") if coupling else ())):
        if key in leg_table:
            leg_table[key] = resolve(leg_table[key])
    if isinstance(leg_table.get("between"), list):
        leg_table["between"] = [resolve(name) for name in leg_table["between"]]
    if coupling and isinstance(leg_table.get("terms"), dict):
        leg_table["terms"] = {resolve(fill(name)): ratio for name, ratio in leg_table["terms"].items()}
    return leg_table


def catalogue_names() -> list[str]:
    """Return the names of the robots of the catalogue.

    Returns
    -------
    list[str]
        Names that `load` accepts.
    """
    folder = resources.files("parflex.robotfile").joinpath("catalogue")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def read_source(robot: str | Path) -> tuple[dict[str, Any], str]:
    """Return the raw table of a catalogue robot or of a file, and its file name for messages."""
    if isinstance(robot, str) and robot in catalogue_names():
        folder = resources.files("parflex.robotfile").joinpath("catalogue")
        raw = parse_toml(folder.joinpath(robot + ".toml").read_bytes(), robot + ".toml")
        return with_resolved_files(raw, Path(str(folder)) / f"{robot}.toml"), robot + ".toml"
    path = Path(robot)
    with read_errors(robot, kind=RobotFileError):
        if path.is_dir():
            message, hint = "is a folder, not a robot file", "give the file inside it"
            raise RobotFileError(message, file=str(path), value=str(path), hint=hint)
        if not path.exists():
            hint = f"{did_you_mean(str(robot), catalogue_names())} ('parflex list' shows the catalogue)"
            raise RobotFileError("there is no such robot or file", file=str(robot), value=str(robot), hint=hint)
        return with_resolved_files(parse_toml(read_bytes(path, kind=RobotFileError), str(path)), path), str(path)


def with_resolved_files(raw: dict[str, Any], file: Path) -> dict[str, Any]:
    """Return the table with the paths of modal data, super-elements and meshes resolved."""
    legs = raw.get("legs", [])
    tables = [raw, *(family for family in (legs if isinstance(legs, list) else [legs]) if isinstance(family, dict))]
    rows = {kind: [row for table in tables for row in _rows(table.get(kind))] for kind in ("frame", "visual")}
    holders = [(row, "visual") for row in rows["visual"]]
    for body in _rows([raw.get("platform"), *rows["frame"]]):
        holders += [(entry, key) for key in ("modal", "superelement") if isinstance(entry := body.get(key), dict)]
    for holder, key in holders:
        files, location = holder.get("file"), f"{key}.file"
        if isinstance(files, str):
            holder["file"] = resolve_file(files, file, location)
        elif isinstance(files, dict):
            paths = {k: resolve_file(v, file, location) for k, v in files.items() if isinstance(v, str)}
            holder["file"] = files | paths
    return raw


def _rows(value: Any) -> list[dict[str, Any]]:
    """Return the tables in a list, or nothing for any other value."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def resolve_file(name: str, file: str | Path, key: str) -> str:
    """Return the path that `file` names: absolute, or from the folder of `file`, with symbolic links resolved.

    Any regular file may be named, because reading changes nothing; devices and pipes are refused because reading
    them may never end.
    """
    path = os.path.join(Path(file).resolve().parent, name)  # noqa: PTH118 - an absolute name stays as it is
    reason = "is no path" if not name or "\0" in name else "is a folder or a device, not a file"
    if reason == "is no path" or (os.path.exists(path) and not os.path.isfile(path)):  # noqa: PTH110, PTH113
        message, hint = f"{short_text(name)} {reason}", "name a file, by its path from the folder of this one"
        raise RobotFileError(message, file=str(file), key=key, value=error_value(name), hint=hint)
    return path


def parse_toml(content: bytes, file: str) -> dict[str, Any]:
    """Parse TOML text into a dictionary; report every failure in one sentence."""
    if b"\0" in content:
        raise RobotFileError("is binary, not a text file", file=file, hint="a robot file is TOML text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message, hint = f"is not UTF-8 text (byte {error.start})", "save it with the encoding UTF-8"
        raise RobotFileError(message, file=file, hint=hint) from None
    if not text.strip():
        raise RobotFileError("is empty", file=file, hint="'parflex new NAME' prints a robot file to start from")
    if any(piece.count(".") > MAX_KEY_PARTS for piece in re.split(r"[,=#\[\]{}\n]", text)):
        raise _nested_error(file)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _nested_error(file) from None
    except ValueError as error:
        reason = "a number has too many digits" if "digits" in str(error) else str(error)
        hint = "correct that line ('parflex new NAME' prints a template)"
        raise RobotFileError(f"is not valid TOML: {reason}", file=file, hint=hint) from None


def _nested_error(file: str) -> RobotFileError:
    return RobotFileError("is nested too deeply", file=file, hint=f"a robot file needs {MAX_DEPTH} levels at most")


def refuse_deep_nesting(table: Any, file: str) -> None:
    """Raise if a table is nested too deeply for the readers."""
    level = [table]
    for _ in range(MAX_DEPTH):
        inner = [entry for value in level for entry in (value.values() if isinstance(value, dict) else value)]
        level = [entry for entry in inner if isinstance(entry, dict | list)]
    if level:
        raise _nested_error(file)


def apply_settings(raw: dict[str, Any], settings: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return the table with each `key.path = value` set; list entries are addressed by `name` or number."""
    for path, value in settings.items():
        holder, step = _find(raw, path, value, file)
        holder[step] = value
    return raw


def value_at(raw: dict[str, Any], path: str, file: str) -> Any:
    """Return the value at `key.path` of a table, without changing the table."""
    holder, step = _find(raw, path, None, file, keep_input=True)
    if isinstance(holder, dict) and step not in holder:
        raise RobotFileError(f"there is no value at '{path}'", file=file, key=path, hint="give it one in the file")
    return holder[step]


def _find(table: Any, path: str, value: Any, file: str, keep_input: bool = False) -> tuple[Any, Any]:
    """Return the table or list that contains the value at a path, and its key; with `keep_input`, of copies."""
    remaining, parent = path, ""
    while True:
        table = copy.copy(table) if keep_input else table
        children, head = _children(table), remaining.split(".")[0]
        step, remaining = _step(table, children, remaining, parent)
        if step is None:
            if children and head in NAMED_LISTS:  # of the schema, but this file has none
                hint = f"the file has no [[{head}]]; it has {', '.join(children)}"
            else:
                whole = path.removesuffix(remaining).rstrip(".")
                hint = did_you_mean(head, children) if children else f"set '{whole}' as a whole"
            message = f"there is no value at '{path}'"
            raise RobotFileError(message, file=file, key=path, value=error_value(value), hint=hint)
        if not remaining:
            return table, step
        table, parent = table[step], str(step)


def _children(table: Any) -> dict[str, Any]:
    """Return the keys of a table or list by name; an entry without a name has its number as name."""
    if isinstance(table, dict):
        return {key: key for key in table}
    entries = enumerate(table) if isinstance(table, list) else ()
    names = {k: entry.get("name") if isinstance(entry, dict) else None for k, entry in entries}
    return {name if isinstance(name, str) else str(k): k for k, name in names.items()}


def _step(table: Any, children: dict[str, Any], remaining: str, parent: str) -> tuple[Any, str]:
    """Return the longest name at the start of a path, else the number of an entry, or a new key with its table.

    A new constant is refused because it would have no effect.
    """
    for name in sorted(children, key=len, reverse=True):
        if f"{remaining}.".startswith(f"{name}."):
            return children[name], remaining[len(name) + 1 :]
    head, _, tail = remaining.partition(".")
    if isinstance(table, list) and head.isdecimal() and len(head) < 10 and int(head) < len(table):
        return int(head), tail
    if not isinstance(table, dict) or parent == "constants" or not head or (tail and head in NAMED_LISTS):
        return None, remaining
    if tail:
        table[head] = {}
    return head, tail


def parse_setting(text: str) -> tuple[str, Any]:
    """Split `KEY=VALUE` of the command line; VALUE is TOML or else an expression."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise RobotFileError(f"'{text}' is not KEY=VALUE", key="set", value=text, hint="write e.g. constants.arm=0.3")
    try:
        table = tomllib.loads("value = " + value)
    except (ValueError, RecursionError):
        table = {}
    return key.strip(), table["value"] if list(table) == ["value"] else value.strip()


def read_with_inheritance(robot: str | Path) -> tuple[dict[str, Any], list[str]]:
    """Return the raw table of a robot merged with all tables it extends, and the files, its own first."""
    raw, file = read_source(robot)
    files = [file]
    return _complete(raw, files), files


def files_of(robot: str | Path) -> list[str]:
    """Return the files of a robot: extended files, modal data, super-elements, meshes; none for an invalid file."""
    try:
        table, files = read_with_inheritance(robot)
    except RobotFileError:
        return []
    return [file for file in (*files, *data_files(table)) if Path(file).is_absolute()]  # else of the catalogue


def data_files(table: Any) -> Iterator[str]:
    """Yield the files that a table names: modal data, super-elements and meshes."""
    if isinstance(table, dict):
        files = table.get("file")
        yield from [files] if isinstance(files, str) else []
        yield from (name for name in (files.values() if isinstance(files, dict) else ()) if isinstance(name, str))
    for value in table.values() if isinstance(table, dict) else table if isinstance(table, list) else ():
        yield from data_files(value)


def inherited(table: dict[str, Any], file: str) -> dict[str, Any]:
    """Return the table that a `table` of `file` extends; empty if it extends none."""
    if "extends" not in table:
        return {}
    base, base_file = _read_parent(table["extends"], file)
    return _complete(base, [file, base_file])


def _complete(raw: dict[str, Any], files: list[str]) -> dict[str, Any]:
    """Merge a table into the table that it extends, recursively; append the files to `files`."""
    file = files[-1]
    if "extends" not in raw:
        return raw
    parent = raw["extends"]
    if not isinstance(parent, str) or not parent:
        error = _wrong_form("extends", "name a robot or a file", parent, 'write extends = "NAME", or leave it out')
        error.file = file
        raise error
    base, base_file = _read_parent(parent, file)
    if base_file in files or len(files) >= MAX_GENERATIONS:
        cycle = f"the files extend each other in a cycle: {' -> '.join([*files, base_file])}"
        message = cycle if base_file in files else f"more than {MAX_GENERATIONS} files extend each other"
        raise RobotFileError(message, file=file, key="extends", value=parent, hint="remove 'extends' from one of them")
    files.append(base_file)
    parent_table = _complete(base, files)
    return merge_tables({key: value for key, value in parent_table.items() if key not in NOT_INHERITED_KEYS}, raw)


def _read_parent(parent: str, file: str) -> tuple[dict[str, Any], str]:
    """Return the table that a file extends: a robot of the catalogue, or a file."""
    if parent in catalogue_names():
        return read_source(parent)
    path = Path(resolve_file(parent, file, "extends"))
    if not os.path.exists(path):  # noqa: PTH110 - pathlib raises for names that are too long
        message, names = f"there is no robot or file {short_text(parent)} to extend", catalogue_names()
        hint = did_you_mean(parent, names)
        raise RobotFileError(message, file=file, key="extends", value=parent, hint=hint)
    return read_source(path.resolve())


def merge_tables(base: dict[str, Any], override: dict[str, Any]) -> dict[str, Any]:
    """Merge two tables; frames, points, closures, ... with the same name combine their keys."""
    result = dict(base)
    for key, value in override.items():
        inherited_value = base.get(key)
        if key in NAMED_LISTS and inherited_value is not None and _is_rows(inherited_value) and _is_rows(value):
            result[key] = _merged_rows(inherited_value, value)
        elif key == "legs" and isinstance(inherited_value, dict) and isinstance(value, dict):
            result[key] = merge_tables(inherited_value, value)
        elif isinstance(inherited_value, dict) and isinstance(value, dict):
            result[key] = {**inherited_value, **value}
        else:
            result[key] = value
    return result


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _merged_rows(base: list[dict[str, Any]], override: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge two lists; a row with the name of an earlier row changes that row."""
    rows = [dict(row) for row in base]
    named = {name: row for row in rows if (name := _name_of(row))}
    for row in override:
        if (_name_of(row) or "") in named:
            named[str(_name_of(row))] |= row
        else:
            rows.append(row)
    return rows


def _name_of(row: dict[str, Any]) -> str | None:
    """Return the name of a row; an unnamed closure has the names of its ends."""
    name, ends = row.get("name"), row.get("between")
    if name is None and isinstance(ends, list) and all(isinstance(end, str) for end in ends):
        return "~".join(ends)
    return name if isinstance(name, str) else None


def template_text(name: str) -> str:
    """Return a working robot file with the robot's name."""
    try:
        read_name(name)
    except PydanticCustomError as error:
        context = error.context or {}
        raise InputError(context["message"], key="NAME", value=error_value(name), hint=context["hint"]) from None
    text = resources.files("parflex.robotfile").joinpath("template.toml").read_text(encoding="utf-8")
    return text.replace("NAME", name, 1)
