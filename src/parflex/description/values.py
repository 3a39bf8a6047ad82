"""Readers of the single values of a robot file: numbers, names, lists, marks. Each complaint says what stands there."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, PlainValidator, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from parflex.description.expressions import evaluate
from parflex.description.names import split_place
from parflex.errors import RobotFileError
from parflex.spatial.batched import Varied

LARGEST = 1e20  # no quantity in SI units comes near; squares and products of such numbers still fit
MAX_SHOWN = 40


def complain(message: str, hint: str, key: str = "", value: Any = None) -> PydanticCustomError:
    """An error of one value, or of the entry `key` of a table; the loader adds the file and where it stands."""
    context = {"message": message, "hint": hint, "key": key, "value": value}
    return PydanticCustomError("parflex", "{message}", context)


def shown(value: Any) -> str:
    """The value as it is written in the file, short."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{value}'" if len(value) <= MAX_SHOWN else f"'{value[:MAX_SHOWN]}...'"
        case int() if abs(value) > LARGEST:
            return "a number with very many digits"
        case Mapping():
            return "a table"
        case list() | tuple():
            text = "[" + ", ".join(shown(entry) for entry in value[:10]) + "]"
            return text if len(value) <= 10 and len(text) <= MAX_SHOWN else f"a list of {len(value)}"
        case _:
            return str(value)[:MAX_SHOWN]


def as_value(value: Any) -> str | float | bool:
    """What an error carries as its value: plain, short."""
    if isinstance(value, bool) or (isinstance(value, int | float) and abs(value) <= LARGEST):
        return value
    return value if isinstance(value, str) and len(value) <= MAX_SHOWN else shown(value)


def read_number(value: Any, info: ValidationInfo) -> Any:
    """A finite number, or an expression that has one as its value."""
    if isinstance(value, str):
        try:
            number = evaluate(value, (info.context or {}).get("constants", {}))
        except RobotFileError as error:
            raise complain(error.message, error.hint or "", value=value) from None
    elif isinstance(value, Varied):
        number = value
    elif isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise complain(f"a number is expected here, not {shown(value)}", 'write a number or "an expression"')
    elif isinstance(value, float) and not math.isfinite(value):
        raise complain(f"{value} is not a finite number", "write a finite number", value=str(value))
    else:
        number = float(value) if -LARGEST <= value <= LARGEST else math.inf
    if abs(number) > LARGEST:
        raise complain(f"{shown(value)} is too large", f"numbers up to {LARGEST:g} are read; check the unit")
    return number


def read_name(value: Any) -> str:
    """A name of a frame, point, closure, pose or mode."""
    if not isinstance(value, str):
        raise complain(f"a name is expected here, not {shown(value)}", "write it in quotes")
    if not re.fullmatch(r"[\w+\-.~ ]{1,80}", value) or value != value.strip():
        raise complain(
            f"{shown(value)} is not a valid name", "use letters, digits, '_', '-' and '.', at most 80 of them"
        )
    return value


def read_frame_name(value: Any) -> str:
    """The name of a frame or point, or of a place inside a flexible body, as `arm@0.5`."""
    parts = split_place(value) if isinstance(value, str) else None
    if parts is None:
        return read_name(value)
    read_name(parts[0])
    read_name(parts[1])
    return str(value)


def read_text(value: Any) -> str:
    """A sentence."""
    if not isinstance(value, str):
        raise complain(f"text is expected here, not {shown(value)}", "write it in quotes")
    return value


def read_flag(value: Any) -> bool:
    """`true` or `false`, and nothing that merely looks like it."""
    if not isinstance(value, bool):
        raise complain(f"true or false is expected here, not {shown(value)}", "write true or false, without quotes")
    return value


def read_flags(value: Any) -> bool | tuple[bool, ...]:
    """One mark, or one for each axis."""
    if isinstance(value, list | tuple) and value:
        return tuple(read_flag(flag) for flag in value)
    return read_flag(value)


def read_start(value: Any) -> Any:
    """One start value as a list of one."""
    return value if isinstance(value, list | tuple) else [value]


def plain_list(value: Any) -> Any:
    """Arrays of Python callers as lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def list_of(what: str, form: str, count: int | None = None) -> Callable[[Any], Any]:
    """A reader that expects a list, of a certain length if `count` says so."""

    def read(value: Any) -> Any:
        entries = plain_list(value)
        if not isinstance(entries, list | tuple) or (count is not None and len(entries) != count):
            raise complain(f"{what} expected here, not {shown(entries)}", f"write {form}")
        return entries

    return read


def read_axis(value: Any) -> Any:
    """`"x"`, `"y"`, `"z"` as a vector."""
    letters = {"x": [1.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0], "z": [0.0, 0.0, 1.0]}
    if isinstance(value, str):
        if value not in letters:
            raise complain(f"{shown(value)} is not an axis", 'write "x", "y", "z" or a vector [1, 0, 0]')
        return letters[value]
    return value


def read_coordinates(value: Any) -> Any:
    """A table of coordinates; a name with a dot that was not put in quotes is a table in TOML."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if isinstance(entry, Mapping):
                inner = next(iter(entry), "x")
                hint = f'write the whole name in quotes: "{key}.{inner}" = ...'
                raise complain(f"'{key}' is a table here, not a coordinate", hint, str(key), "a table")
    return value


NUMBER_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "string", "description": "arithmetic expression"}]}
Number = Annotated[float, PlainValidator(read_number), WithJsonSchema(NUMBER_SCHEMA)]
Name = Annotated[str, BeforeValidator(read_name)]
FrameName = Annotated[str, BeforeValidator(read_frame_name)]
Text = Annotated[str, BeforeValidator(read_text)]
Flag = Annotated[bool, BeforeValidator(read_flag)]
Flags = Annotated[bool | tuple[bool, ...], BeforeValidator(read_flags)]
Start = Annotated[tuple[Number, ...], BeforeValidator(read_start)]
Vector = Annotated[tuple[Number, Number, Number], BeforeValidator(list_of("three numbers are", "[x, y, z]", 3))]
Numbers = Annotated[tuple[Number, ...], BeforeValidator(list_of("a list of numbers is", "[1.0, 2.0]"))]
Pair = Annotated[tuple[Number, Number], BeforeValidator(list_of("two numbers are", "[low, high]", 2))]
Ends = Annotated[tuple[FrameName, FrameName], BeforeValidator(list_of("two names are", '["first", "second"]', 2))]
Names = Annotated[tuple[Name, ...], BeforeValidator(list_of("a list of names is", '["first", "second"]'))]
Texts = Annotated[tuple[Text, ...], BeforeValidator(list_of("a list of texts is", '["one", "two"]'))]
Axis = Annotated[Vector, BeforeValidator(read_axis)]
Coordinates = Annotated[dict[str, Number], BeforeValidator(read_coordinates)]
