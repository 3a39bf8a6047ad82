"""Define the typed values of a robot file: base of all tables, numbers, expressions, names, limits.

An expression is parsed to a syntax tree, and only listed node kinds are evaluated, in floating point: nothing is
executed, and no expression takes long (`9**9**9**9` overflows at once).
"""

from __future__ import annotations

import ast
import math
import operator
import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from parflex.errors import RobotFileError, did_you_mean
from parflex.records import one_line
from parflex.spatial.batched import BatchedNumber, finite, function_of
from parflex.spatial.rotations import cosine, sine, tangent

LARGEST = 1e20  # far above any quantity in SI units; squares and products stay finite
MAX_VALUE_TEXT = 40
NUMBER_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "string", "description": "arithmetic expression"}]}
LIMIT_KEYS = ("limits", "velocity_limit", "effort_limit")
INSIDE = "@"  # between the name of a flexible body and a place inside it
MAX_LENGTH = 300
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": function_of("sqrt", math.sqrt),
    "sin": sine,  # exact at right angles
    "cos": cosine,
    "tan": tangent,
    "asin": function_of("arcsin", math.asin),
    "acos": function_of("arccos", math.acos),
    "atan": function_of("arctan", math.atan),
    "atan2": function_of("arctan2", math.atan2),
    "abs": abs,
}
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: lambda x, power: x**power if isinstance(x, BatchedNumber) else math.pow(x, power),
}
NAMES: dict[str, float] = {"pi": math.pi, "deg": math.pi / 180}


def value_error(message: str, hint: str, key: str = "", value: Any = None) -> PydanticCustomError:
    """Return the error for a value, or for the entry `key` of a table; the loader adds file and location."""
    context = {"message": message, "hint": hint, "key": key, "value": value}
    return PydanticCustomError("parflex", "{message}", context)


def refuse(wrong: Any, message: str, hint: str, key: str = "", value: Any = None) -> None:
    """Raise the error for a value, or for the entry `key` of a table, if a condition holds."""
    if wrong:
        raise value_error(message, hint, key, value)


def expected(what: str, value: Any, hint: str) -> PydanticCustomError:
    """Return the error for a value of another kind."""
    return value_error(f"{what} expected here, not {short_text(value)}", hint)


def short_text(value: Any) -> str:
    """Return a value as written in the file, shortened."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{value}'" if len(value) <= MAX_VALUE_TEXT else f"'{value[:MAX_VALUE_TEXT]}...'"
        case int() if abs(value) > LARGEST:
            return "a number with very many digits"
        case Mapping():
            return "a table"
        case list() | tuple():
            text = "[" + ", ".join(short_text(entry) for entry in value[:10]) + "]"
            return text if len(value) <= 10 and len(text) <= MAX_VALUE_TEXT else f"a list of {len(value)}"
        case _:
            return str(value)[:MAX_VALUE_TEXT]


def error_value(value: Any) -> str | float | bool:
    """Return a value for an error, plain and shortened."""
    if isinstance(value, bool) or (isinstance(value, int | float) and abs(value) <= LARGEST):
        return value
    return value if isinstance(value, str) and len(value) <= MAX_VALUE_TEXT else short_text(value)


def refusing(wrong: Callable[[Any], Any], what: str, hint: str) -> AfterValidator:
    """Make a check of values of one key, with the message and the remedy."""

    def check(value: Any, info: ValidationInfo) -> Any:
        if wrong(value):
            raise value_error(f"{info.field_name} = {short_text(value)} {what}", hint, value=value)
        return value

    return AfterValidator(check)


def read_number(value: Any, info: ValidationInfo) -> Any:
    """Return a finite number, or the finite value of an expression."""
    if isinstance(value, str):
        try:
            number = evaluate(value, (info.context or {}).get("constants", {}))
        except RobotFileError as error:
            raise value_error(error.message, error.hint or "", value=value) from None
    elif isinstance(value, BatchedNumber):
        number = value
    elif isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise expected("a number is", value, 'write a number or "an expression"')
    elif isinstance(value, float) and not math.isfinite(value):
        raise value_error(f"{value} is not a finite number", "write a finite number", value=str(value))
    else:
        number = float(value) if -LARGEST <= value <= LARGEST else math.inf
    if abs(number) > LARGEST:
        raise value_error(f"{short_text(value)} is too large", f"numbers up to {LARGEST:g} are read; check the unit")
    return number


def read_name(value: Any) -> str:
    """Return a valid name of a frame, point, closure, pose or mode."""
    of_kind(str, "a name is", "it in quotes")(value)
    wrong = not re.fullmatch(r"[\w+\-.~ ]{1,80}", value) or value != value.strip()
    hint = "use letters, digits, '_', '-' and '.', at most 80 of them"
    refuse(wrong, f"{short_text(value)} is not a valid name", hint)
    return value


def read_frame_name(value: Any) -> str:
    """Return a valid name of a frame, point, or place inside a flexible body such as `arm@0.5`."""
    for part in (split_place(value) if isinstance(value, str) else None) or (value,):
        read_name(part)
    return str(value)


def of_kind(kind: type, subject: str, form: str) -> Callable[[Any], Any]:
    """Make a reader that accepts values of one kind only, without conversion."""

    def read(value: Any) -> Any:
        if not isinstance(value, kind):
            raise expected(subject, value, f"write {form}")
        return value

    return read


read_flag = of_kind(bool, "true or false is", "true or false, without quotes")


def read_flags(value: Any) -> bool | tuple[bool, ...]:
    """Return one flag, or one per axis."""
    return tuple(map(read_flag, value)) if isinstance(value, list | tuple) and value else read_flag(value)


def plain_list(value: Any) -> Any:
    """Return arrays of Python callers as lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def list_of(subject: str, form: str, count: int | None = None) -> Callable[[Any], Any]:
    """Make a reader of lists, of length `count` if stated."""

    def read(value: Any) -> Any:
        entries = plain_list(value)
        if not isinstance(entries, list | tuple) or (count is not None and len(entries) != count):
            raise expected(subject, entries, f"write {form}")
        return entries

    return read


def read_axis(value: Any) -> Any:
    """Return `"x"`, `"y"`, `"z"` as a vector."""
    letters = {"x": [1.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0], "z": [0.0, 0.0, 1.0]}
    unknown = isinstance(value, str) and value not in letters
    refuse(unknown, f"{short_text(value)} is not an axis", 'write "x", "y", "z" or a vector [1, 0, 0]')
    return letters[value] if isinstance(value, str) else value


def read_coordinates(value: Any) -> Any:
    """Return a table of coordinates; join dotted names without quotes, which TOML reads as tables."""
    for key, entry in value.items() if isinstance(value, Mapping) else ():
        if isinstance(entry, Mapping):
            hint = f'write the whole name in quotes: "{key}.{next(iter(entry), "x")}" = ...'
            raise value_error(f"'{key}' is a table here, not a coordinate", hint, str(key), "a table")
    return value


def evaluate(text: str, constants: Mapping[str, Any]) -> Any:
    """Return the value of an arithmetic expression; raise an error that names any other content."""
    if len(text) > MAX_LENGTH:
        message = f"the expression has {len(text)} characters, at most {MAX_LENGTH} are read"
        raise RobotFileError(message, value=text[:40] + "...", hint="split it with [constants]")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python thinks of its style is no matter for a robot file
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        message = f"'{text}' is not an arithmetic expression"
        hint = "write numbers, names of constants, + - * / ** and functions like sqrt(2)"
        raise RobotFileError(message, value=text, hint=hint) from None
    try:
        value = _evaluate_node(tree.body, text, constants)
    except (ZeroDivisionError, OverflowError, ValueError):
        value = math.nan
    if not finite(value):
        hint = "check for a division by zero or an overflow"
        raise RobotFileError(f"'{text}' has no finite real value", value=text, hint=hint)
    return value if isinstance(value, BatchedNumber) else float(value)


def _evaluate_node(node: ast.expr, text: str, constants: Mapping[str, Any]) -> Any:
    def value_of(part: ast.expr) -> Any:
        return _evaluate_node(part, text, constants)

    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value_of(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return value_of(operand)
        case ast.BinOp(op=sign) if type(sign) in OPERATORS:
            return OPERATORS[type(sign)](value_of(node.left), value_of(node.right))
        case ast.BinOp():
            message, hint = f"'{text}' uses an operator that is not allowed", "use + - * / **"
        case ast.Name(id=name):
            names = NAMES | {unicodedata.normalize("NFKC", key): value for key, value in constants.items()}
            if name in names:
                return names[name]
            message, hint = f"'{name}' in '{text}' is not a known name", did_you_mean(name, names)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            values = list(map(value_of, arguments))
            try:
                return FUNCTIONS[name](*values)
            except TypeError:
                message, hint = f"'{name}' in '{text}' has the wrong number of arguments", "check the brackets"
        case _:
            message = f"'{text}' is not plain arithmetic ({type(node).__name__})"
            hint = "use numbers, constants, + - * / ** and " + ", ".join(FUNCTIONS)
    raise RobotFileError(message, value=text, hint=hint)


Number = Annotated[float, PlainValidator(read_number), WithJsonSchema(NUMBER_SCHEMA)]
Positive = Annotated[Number, refusing(lambda x: not x > 0, "is not positive", "give a positive number")]
NotNegative = Annotated[Number, refusing(lambda x: x < 0, "is negative", "give zero or more")]
Name = Annotated[str, BeforeValidator(read_name)]


def split_place(name: str) -> tuple[str, str] | None:
    """Return body and place of `BEAM@0.5`, or None for other text."""
    owner, mark, where = name.rpartition(INSIDE)
    return (owner, where) if mark and owner and where else None


FrameName = Annotated[str, BeforeValidator(read_frame_name)]
Text = Annotated[str, BeforeValidator(of_kind(str, "text is", "it in quotes"))]
Flag = Annotated[bool, BeforeValidator(read_flag)]
Flags = Annotated[bool | tuple[bool, ...], BeforeValidator(read_flags)]
Start = Annotated[
    tuple[Number, ...], BeforeValidator(lambda value: value if isinstance(value, list | tuple) else [value])
]
Vector = Annotated[tuple[Number, Number, Number], BeforeValidator(list_of("three numbers are", "[x, y, z]", 3))]
Numbers = Annotated[tuple[Number, ...], BeforeValidator(list_of("a list of numbers is", "[1.0, 2.0]"))]
Pair = Annotated[tuple[Number, Number], BeforeValidator(list_of("two numbers are", "[low, high]", 2))]
Limits = Annotated[Pair, refusing(lambda pair: pair[0] >= pair[1], "is in the wrong order", "write [low, high]")]
Ends = Annotated[tuple[FrameName, FrameName], BeforeValidator(list_of("two names are", '["first", "second"]', 2))]
Names = Annotated[tuple[Name, ...], BeforeValidator(list_of("a list of names is", '["first", "second"]'))]
Texts = Annotated[tuple[Text, ...], BeforeValidator(list_of("a list of texts is", '["one", "two"]'))]
AXIS_HINT = 'write "x", "y", "z" or a vector that is not zero'
Axis = Annotated[
    Vector, BeforeValidator(read_axis), refusing(lambda v: sum(x * x for x in v) < 1e-18, "has no length", AXIS_HINT)
]
Coordinates = Annotated[dict[str, Number], BeforeValidator(read_coordinates)]


class Table(BaseModel):
    """A table of the file, frozen; the error for an unknown key names the nearest key.

    `check_values` of each type of table refuses inconsistent values.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    def __repr__(self) -> str:
        return one_line(super().__repr__())  # a robot file would fill pages

    __str__ = __repr__

    @classmethod
    def keys(cls) -> list[str]:
        """Return the keys that the file may use."""
        return [key for key, field in cls.model_fields.items() if not field.exclude]

    @model_validator(mode="before")
    @classmethod
    def _check_known_keys(cls, data: Any) -> Any:
        if isinstance(data, Table):
            return data
        if not isinstance(data, dict):
            raise expected("a table is", data, "write { key = value, ... }")
        allowed = cls.keys()
        for key, value in data.items():
            if key not in allowed:
                name = str(key)[:80]
                raise value_error(f"unknown key '{name}'", did_you_mean(name, allowed), name, value)
        return data

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        self.check_values()
        return self

    def check_values(self) -> None:
        """Raise if values are inconsistent."""


def position_along_beam(where: str) -> float | None:
    """Return a place along a beam as a share of its length from 0 to 1, or None for other text."""
    try:
        s = float(where)
    except ValueError:
        return None
    return s if 0 <= s <= 1 else None
