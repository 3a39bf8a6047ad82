"""Numbers of a robot file: constants, and expressions evaluated from their syntax tree."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

BINARY: dict[type, Callable[[float, float], float]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul},
    **{ast.Div: operator.truediv, ast.Pow: operator.pow},
}
CALLS: dict[str, Callable[..., float]] = {
    name: getattr(math, name) for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2")
} | {"abs": abs}
BUILT_IN = {"pi": math.pi, "deg": math.pi / 180}


def number(value: Any, names: Mapping[str, float]) -> float:
    """Value of a number or of an expression in the given names."""
    if not isinstance(value, str):
        return float(value)
    return float(_node(ast.parse(value.strip(), mode="eval").body, BUILT_IN | dict(names)))


def numbers(values: Any, names: Mapping[str, float]) -> list[float]:
    """Values of a list; a single value counts as a list of one."""
    if not isinstance(values, list):
        values = [values]
    return [number(value, names) for value in values]


def _node(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float()):
            return node.value
        case ast.Name():
            return names[node.id]
        case ast.UnaryOp(op=ast.USub()):
            return -_node(node.operand, names)
        case ast.UnaryOp(op=ast.UAdd()):
            return _node(node.operand, names)
        case ast.BinOp():
            return BINARY[type(node.op)](_node(node.left, names), _node(node.right, names))
        case ast.Call(func=ast.Name(), keywords=[]):
            return CALLS[node.func.id](*(_node(argument, names) for argument in node.args))
    raise ValueError(ast.dump(node))
