"""Calls of a program written out: the instructions of a function stand where it is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

CALL, PICK = "call", "pick"  # operations `call N` of the function with this number, and `pick K` of its outputs


def is_call(operation: str) -> bool:
    """Whether an instruction calls a function: its value is no number, and is read by picks alone."""
    return operation.startswith(CALL)


def is_pick(operation: str) -> bool:
    """Whether an instruction is an output of a call."""
    return operation.startswith(PICK)


def which(operation: str) -> int:
    """The number in the name of a call or a pick."""
    return int(operation.split()[1])


def used_functions(instructions: Sequence[Any]) -> list[int]:
    """Numbers of the functions that instructions call."""
    words = {instruction[0] for instruction in instructions}  # few, where instructions may be a million
    return sorted(which(word) for word in words if is_call(word))


def written_out(
    inputs: int, instructions: Sequence[Any], setup: int, outputs: Sequence[tuple[str, int]], functions: Sequence[Any]
) -> tuple[tuple[Any, ...], int, tuple[tuple[str, int], ...]]:
    """Instructions, setup and outputs without calls."""
    number: dict[int, int] = {k: k for k in range(inputs)}  # of values, as they were and as they are
    made: list[Any] = []
    picks: dict[int, list[int]] = {}  # values of the outputs of each call
    before = setup
    for index, (operation, *arguments) in enumerate(instructions):
        if index == before:
            setup = len(made)
        here = inputs + index
        if operation == "const":
            made.append((operation, *arguments))
        elif is_call(operation):
            given = [number[k] for k in arguments]
            picks[here] = _body(functions[which(operation)], given, inputs, made)
            continue
        elif is_pick(operation):
            number[here] = picks[arguments[0]][which(operation)]
            continue
        else:
            made.append((operation, *(number[k] for k in arguments)))
        number[here] = inputs + len(made) - 1
    setup = len(made) if before >= len(instructions) else setup
    return tuple(made), setup, tuple((name, number[k]) for name, k in outputs)


def _body(function: Any, given: list[int], inputs: int, made: list[Any]) -> list[int]:
    """Put the instructions of a function behind the others; the values of its outputs."""
    own = list(given)
    for operation, *arguments in function.instructions:
        made.append((operation, *(arguments if operation == "const" else (own[k] for k in arguments))))
        own.append(inputs + len(made) - 1)
    return [own[k] for _, k in function.outputs]
