"""Long programs in pieces: which values a piece hands on, and where they lie until the last piece that needs them."""

from __future__ import annotations

from collections import defaultdict

from parflex.codegen.passes.inlining import is_call, is_pick
from parflex.codegen.program import Program


def workspace(program: Program, piece: int) -> tuple[dict[int, int], int]:
    """Places of the values that are used in another piece than their own, and the number of places.

    Pieces are `piece` instructions long. A place is free again in the pieces after the last one that reads it.
    """
    base, count = len(program.inputs), len(program.instructions)
    last = max(count - 1, 0) // piece
    lies = [_lies(instruction[0]) for instruction in program.instructions]
    users = [(k // piece, arguments) for k, (op, *arguments) in enumerate(program.instructions) if op != "const"]
    read_last: dict[int, int] = {}
    for number, arguments in [*users, (last, [k for _, k in program.outputs])]:
        for k in arguments:
            if k >= base and lies[k - base] and (k - base) // piece != number:
                read_last[k] = number
    ending: dict[int, list[int]] = defaultdict(list)  # piece -> values that are read there for the last time
    for k, number in read_last.items():
        ending[number].append(k)
    made: dict[int, list[int]] = defaultdict(list)
    for k in sorted(read_last):
        made[(k - base) // piece].append(k)
    places: dict[int, int] = {}
    free: list[int] = []
    size = 0
    for number in range(last + 1):
        free += [places[k] for k in ending[number - 1]]
        for k in made[number]:
            if not free:
                free.append(size)
                size += 1
            places[k] = free.pop()
    return places, size


def _lies(operation: str) -> bool:
    """Whether a value needs a place: constants need none, and outputs of calls lie where the function writes them."""
    return operation != "const" and not is_call(operation) and not is_pick(operation)
