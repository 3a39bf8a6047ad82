"""Loops that are written in Python and run as machine code, with calls of programs through an address.

A model's machine code is called through its address, an ordinary integer argument, so that one compiled integrator
serves every model and is compiled once on a machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parflex.codegen.loop_code.function_text import abreast, unrolled
from parflex.codegen.loop_code.loop_functions import LoopFunction
from parflex.codegen.loop_code.loop_lines import Value

__all__ = ["abreast", "call_model", "compiled", "deciding", "inlined", "inner", "unrolled"]


def inlined(function: Callable[..., Any]) -> Any:
    """A short function that becomes part of those that call it."""
    return LoopFunction(function)


def inner(function: Callable[..., Any]) -> Any:
    """A function for other compiled ones: it is made machine code and kept as a part of these."""
    return LoopFunction(function)


def compiled(function: Callable[..., Any]) -> Any:
    """The function as machine code, from the cache if it is there."""
    return LoopFunction(function)


def deciding(function: Callable[..., Any]) -> Any:
    """The same for loops of decisions rather than numbers: short code, which shares the cache with what it calls."""
    return LoopFunction(function, wide=False)


class _ModelCall:
    """`call_model(address, x, y)` in a loop: call `one(x, y, 1)` of a compiled model; all arguments are addresses."""

    def __call__(self, address: int, x: int, y: int) -> None:
        raise TypeError("models are called by compiled loops alone")

    @staticmethod
    def called_in(lines: Any, values: list[Value]) -> Value:
        """The call."""
        place = lines.pointer("i8")
        kind = "ptr" if place == "ptr" else f"void ({place}, {place}, i64)*"
        function = lines.new(f"inttoptr i64 {values[0].parts[0]} to {kind}")
        x, y = (lines.new(f"inttoptr i64 {value.parts[0]} to {place}") for value in values[1:])
        lines.lines.append(f"  call void {function}({place} {x}, {place} {y}, i64 1)")
        return Value((), ())


call_model = _ModelCall()
