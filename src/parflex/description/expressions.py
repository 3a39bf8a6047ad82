"""Arithmetic in robot files: a small reader over Python's grammar that knows numbers, names and a few functions.

Nothing is ever executed: the text is parsed to a syntax tree, and only the node kinds listed here are walked, in
floating point, so that no expression can take long (`9**9**9**9` overflows at once).
"""

from __future__ import annotations

import ast
import math
import unicodedata
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from parflex.errors import RobotFileError, did_you_mean
from parflex.spatial.batched import Varied, finite, function_of
from parflex.spatial.rotations import cosine, sine, tangent

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
NAMES: dict[str, float] = {"pi": math.pi, "deg": math.pi / 180}


def evaluate(text: str, constants: Mapping[str, Any]) -> Any:
    """The value of an arithmetic expression; anything else is an error that says what was found."""
    if len(text) > MAX_LENGTH:
        raise RobotFileError(
            f"the expression has {len(text)} characters, at most {MAX_LENGTH} are read",
            value=text[:40] + "...",
            hint="split it with [constants]",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python thinks of its style is no matter for a robot file
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise RobotFileError(
            f"'{text}' is not an arithmetic expression",
            value=text,
            hint="write numbers, names of constants, + - * / ** and functions like sqrt(2)",
        ) from None
    try:
        value = _walk(tree.body, text, constants)
    except (ZeroDivisionError, OverflowError, ValueError):
        value = math.nan
    if not finite(value):
        raise RobotFileError(
            f"'{text}' has no finite real value", value=text, hint="check for a division by zero or an overflow"
        )
    return value if isinstance(value, Varied) else float(value)


def _walk(node: ast.expr, text: str, constants: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            value = _walk(operand, text, constants)
            return -value if isinstance(sign, ast.USub) else value
        case ast.BinOp(left=left, op=operator, right=right):
            return _binary(operator, _walk(left, text, constants), _walk(right, text, constants), text)
        case ast.Name(id=name):
            known = NAMES | {unicodedata.normalize("NFKC", key): value for key, value in constants.items()}
            if name not in known:
                raise RobotFileError(
                    f"'{name}' in '{text}' is not a known name", value=text, hint=did_you_mean(name, known)
                )
            return known[name]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            values = [_walk(argument, text, constants) for argument in arguments]
            try:
                return FUNCTIONS[name](*values)
            except TypeError:
                raise RobotFileError(
                    f"'{name}' in '{text}' has the wrong number of arguments", value=text, hint="check the brackets"
                ) from None
    raise RobotFileError(
        f"'{text}' is not plain arithmetic ({type(node).__name__})",
        value=text,
        hint="use numbers, constants, + - * / ** and " + ", ".join(FUNCTIONS),
    )


def _binary(operator: ast.operator, left: Any, right: Any, text: str) -> Any:
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right
        case ast.Pow():
            return left**right if isinstance(left, Varied) else math.pow(left, right)
    raise RobotFileError(f"'{text}' uses an operator that is not allowed", value=text, hint="use + - * / **")
