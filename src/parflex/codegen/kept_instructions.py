"""Instructions of a program as bytes, made tuples when one of them is asked for.

A run that starts again needs the machine code of its programs and what they take and give, but none of their
instructions, which may be a million.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from parflex.codegen.passes.inlining import is_call, is_pick, which

Array = np.ndarray
WORDS = (
    *("const", "add", "sub", "mul", "div", "neg", "sqrt", "sin", "cos", "abs", "sign", "greater", "select", "atan2"),
    *("call", "pick"),
)
PLACES = {word: place for place, word in enumerate(WORDS)}
WIDEST = 3  # arguments
NO_ARGUMENTS = (0,) * WIDEST
HEAD = 24  # bytes before the operations


class KeptInstructions(Sequence):
    """The instructions of a program as a sequence, of which only the number and a hash are known at first."""

    def __init__(self, count: int, digest: str, data: bytes) -> None:
        self._length, self.digest, self._data = count, digest, data

    @cached_property
    def _all(self) -> tuple[Any, ...]:
        return unpacked(self._data)

    def __len__(self) -> int:
        return self._length

    def called(self) -> tuple[int, Array]:
        """Picks, and the numbers of the functions that are called, without making tuples."""
        words = np.frombuffer(self._data, dtype=np.uint8, count=self._length, offset=HEAD)
        first = np.frombuffer(self._data, dtype=np.int32, count=self._length, offset=HEAD + self._length)
        return int((words == PLACES["pick"]).sum()), first[words == PLACES["call"]]

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
    """Instructions as bytes: operations, arguments filled up with zeros, constants in order, arguments of calls.

    Of a call and a pick the first number is that in its name; a call has the number of its arguments as its second.
    """
    places = {word: PLACES[word.split()[0]] for word in {instruction[0] for instruction in instructions}}
    numbers = {word: which(word) for word in places if is_call(word) or is_pick(word)}
    words = np.array([places[instruction[0]] for instruction in instructions], dtype=np.uint8)
    constants = np.array([instruction[1] for instruction in instructions if instruction[0] == "const"], dtype=float)
    given: list[int] = []
    filled: list[tuple[int, ...]] = []
    for instruction in instructions:
        word = instruction[0]
        if word in numbers:
            if is_pick(word):
                filled.append((numbers[word], instruction[1], 0))
            else:
                given += instruction[1:]
                filled.append((numbers[word], len(instruction) - 1, 0))
        else:
            filled.append(NO_ARGUMENTS if word == "const" else (*instruction[1:], *NO_ARGUMENTS)[:WIDEST])
    arguments = np.array(filled, dtype=np.int32).reshape(len(words), WIDEST).T
    counts = np.array([len(words), len(constants), len(given)], dtype=np.int64)
    parts = (counts, words, arguments, constants, np.array(given, dtype=np.int32))
    return b"".join(part.tobytes() for part in parts)


def unpacked(data: bytes) -> tuple[Any, ...]:
    """The instructions again."""
    count, numbers, places = np.frombuffer(data, dtype=np.int64, count=3)
    start = HEAD
    words = np.frombuffer(data, dtype=np.uint8, count=count, offset=start).tolist()
    start += count
    first, second, third = np.frombuffer(data, dtype=np.int32, count=WIDEST * count, offset=start).reshape(
        WIDEST, count
    )
    start += 4 * WIDEST * count
    constants = iter(np.frombuffer(data, dtype=float, count=numbers, offset=start).tolist())
    given = np.frombuffer(data, dtype=np.int32, count=places, offset=start + 8 * numbers).tolist()
    width = [WIDTHS[word] for word in words]
    found: list[Any] = []
    used = 0
    for word, size, a, b, c in zip(words, width, first.tolist(), second.tolist(), third.tolist(), strict=True):
        if size == 0:
            found.append(("const", next(constants)))
        elif size == 1:
            found.append((WORDS[word], a))
        elif size == CALLED:
            found.append((f"call {a}", *given[used : used + b]))
            used += b
        elif size == PICKED:
            found.append((f"pick {a}", b))
        else:
            found.append((WORDS[word], a, b) if size == 2 else (WORDS[word], a, b, c))
    return tuple(found)


CALLED, PICKED = -1, -2
WIDTHS = [
    {"const": 0, "select": 3, "call": CALLED, "pick": PICKED}.get(
        w, 1 if w in ("neg", "sqrt", "sin", "cos", "abs", "sign") else 2
    )
    for w in WORDS
]


def digest_of_instructions(instructions: Sequence[Any]) -> str:
    """A hash of instructions, equal on every machine of one byte order."""
    if isinstance(instructions, KeptInstructions):
        return instructions.digest
    return hashlib.sha256(packed(instructions)).hexdigest()


def called_functions(instructions: Sequence[Any]) -> tuple[int, list[int]]:
    """How many instructions are picks, and the numbers of the functions that others call."""
    if isinstance(instructions, KeptInstructions):
        picks, numbers = instructions.called()
        return picks, numbers.tolist()
    uses = Counter(instruction[0] for instruction in instructions)  # words are few, instructions may be a million
    called = [int(word.split()[1]) for word, count in uses.items() if is_call(word) for _ in range(count)]
    return sum(count for word, count in uses.items() if is_pick(word)), called
