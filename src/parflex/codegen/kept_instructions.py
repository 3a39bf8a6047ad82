"""Instructions of a program as bytes, made tuples when one of them is asked for.

A run that starts again needs the machine code of its programs and what they take and give, but none of their
instructions, which may be a million.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray
WORDS = ("const", "add", "sub", "mul", "div", "neg", "sqrt", "sin", "cos", "abs", "sign", "greater", "select", "atan2")
PLACES = {word: place for place, word in enumerate(WORDS)}
WIDEST = 3  # arguments


class KeptInstructions(Sequence):
    """The instructions of a program as a sequence, of which only the number and a hash are known at first."""

    def __init__(self, count: int, digest: str, data: bytes) -> None:
        self._length, self.digest, self._data = count, digest, data

    @cached_property
    def _all(self) -> tuple[Any, ...]:
        return unpacked(self._data)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        return self._all[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        return self._all == (other._all if isinstance(other, KeptInstructions) else other)

    def __hash__(self) -> int:
        return hash(self._all)

    def __repr__(self) -> str:
        return repr(self._all)

    def __reduce__(self) -> Any:
        return KeptInstructions, (self._length, self.digest, self._data)


def packed(instructions: Sequence[Any]) -> bytes:
    """Instructions as bytes: operations, arguments filled up with zeros, then constants as they stand in order."""
    words = np.array([PLACES[instruction[0]] for instruction in instructions], dtype=np.uint8)
    arguments = np.zeros((WIDEST, len(words)), dtype=np.int32)
    constants = np.array([instruction[1] for instruction in instructions if instruction[0] == "const"], dtype=float)
    for k, instruction in enumerate(instructions):
        if instruction[0] != "const":
            for place, argument in enumerate(instruction[1:]):
                arguments[place, k] = argument
    counts = np.array([len(words), len(constants)], dtype=np.int64)
    return b"".join(part.tobytes() for part in (counts, words, arguments, constants))


def unpacked(data: bytes) -> tuple[Any, ...]:
    """The instructions again."""
    count, numbers = np.frombuffer(data, dtype=np.int64, count=2)
    start = 16
    words = np.frombuffer(data, dtype=np.uint8, count=count, offset=start).tolist()
    start += count
    first, second, third = np.frombuffer(data, dtype=np.int32, count=WIDEST * count, offset=start).reshape(
        WIDEST, count
    )
    constants = iter(np.frombuffer(data, dtype=float, count=numbers, offset=start + 4 * WIDEST * count).tolist())
    width = [WIDTHS[word] for word in words]
    found: list[Any] = []
    for word, size, a, b, c in zip(words, width, first.tolist(), second.tolist(), third.tolist(), strict=True):
        if size == 0:
            found.append(("const", next(constants)))
        elif size == 1:
            found.append((WORDS[word], a))
        else:
            found.append((WORDS[word], a, b) if size == 2 else (WORDS[word], a, b, c))
    return tuple(found)


WIDTHS = [
    {"const": 0, "select": 3}.get(w, 1 if w in ("neg", "sqrt", "sin", "cos", "abs", "sign") else 2) for w in WORDS
]


def digest_of_instructions(instructions: Sequence[Any]) -> str:
    """A hash of instructions, equal on every machine of one byte order."""
    if isinstance(instructions, KeptInstructions):
        return instructions.digest
    return hashlib.sha256(packed(instructions)).hexdigest()
