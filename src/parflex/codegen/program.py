"""Straight-line programs with named inputs and outputs, their operator counts, storage and inlining.

Instructions are stored as bytes and unpacked on demand. A cached run needs the machine code, the inputs and the outputs
of its programs but not their instructions, which may be a million.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.records import Record

# Values are numbered: first the inputs, then one for each instruction. An instruction is (operation, arguments...);
# arguments are numbers of values, but that of "const", which is the constant itself. `call N` calls the function with
# that number, `pick K` is the output with that number of a call.
Instruction = tuple
ARITHMETIC = {"add": "add", "sub": "add", "mul": "mul", "div": "div"}
APART = {"sqrt": "sqrt", "neg": "neg"} | dict.fromkeys(("sin", "cos", "atan2"), "trig")
APART |= dict.fromkeys(("abs", "greater", "select", "sign"), "compare")

COUNTED = ("add", "mul", "div", "sqrt", "trig", "neg", "compare", "variables", "setup", "total")
Array = np.ndarray
WORDS = (
    *("const", "add", "sub", "mul", "div", "neg", "sqrt", "sin", "cos", "abs", "sign", "greater", "select", "atan2"),
    *("call", "pick"),
)
PLACES = {word: place for place, word in enumerate(WORDS)}
WIDEST = 3  # arguments
NO_ARGUMENTS = (0,) * WIDEST
HEAD = 24  # bytes before the operations
CALLED, PICKED = -1, -2
_WIDTHS = dict.fromkeys(WORDS, 2) | dict.fromkeys(("neg", "sqrt", "sin", "cos", "abs", "sign"), 1)
WIDTHS = list((_WIDTHS | {"const": 0, "select": 3, "call": CALLED, "pick": PICKED}).values())
CALL, PICK = "call", "pick"  # operations `call N` of the function with this number, and `pick K` of its outputs


@dataclass(frozen=True, repr=False)  # no arrays in it, and millions of numbers: Python compares tuples faster
class Program(Record):
    """A function of `inputs` (variables first, then parameters) with scalar `outputs`.

    Instructions before `setup` depend on parameters alone: they are run once, and again only when a parameter changes.
    Long programs of alike things call `functions`, programs without parameters, once for each of them.
    """

    name: str
    variables: tuple[str, ...]
    parameters: tuple[str, ...]
    instructions: Sequence[Instruction]  # a tuple, or one that is read from the disk
    setup: int
    outputs: tuple[tuple[str, int], ...]  # name and number of a value
    functions: tuple[Program, ...] = ()
    found: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)  # counts, digest

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the first values."""
        if "inputs" not in self.found:  # there may be ten thousand, and each instruction may ask how many
            self.found["inputs"] = self.variables + self.parameters
        return tuple(self.found["inputs"])  # the same one

    @property
    def known_counts(self) -> dict[str, int] | None:
        """What was counted, here or before the program was kept; None: nothing yet."""
        return self.found.get("counts")

    @property
    def status(self) -> int | None:
        """Return which output is the status; None of a program without Newton steps and effort limits."""
        return next((k for k, (name, _) in enumerate(self.outputs) if name == "status[0]"), None)

    def counts(self) -> dict[str, int]:
        """Operators of one call; `total` is additions, subtractions, multiplications and divisions.

        `variables` are values with a name of their own, as C is written: terms of a sum are not. `setup` is the
        arithmetic on parameters alone.
        """
        cached_counts = self.known_counts
        if cached_counts is not None:
            return dict(cached_counts)
        within = self.within()
        counts = Counter(dict.fromkeys(COUNTED, 0))
        called = [function.counts() for function in self.functions]
        for index, (operation, *_) in enumerate(self.instructions):
            if operation == "const" or is_pick(operation):
                continue
            if is_call(operation):
                function_counts = called[function_number(operation)]
                counts.update({"setup": function_counts["total"]} if index < self.setup else function_counts)
                continue
            named = operation not in ("neg", "greater") and len(self.inputs) + index not in within
            if index < self.setup:
                counts["setup"] += operation in ARITHMETIC
                continue
            counts[ARITHMETIC.get(operation) or APART[operation]] += 1
            counts["variables"] += named
        counts["total"] = counts["add"] + counts["mul"] + counts["div"]
        return dict(self.with_counts(dict(counts)).found["counts"])

    def with_counts(self, counts: dict[str, int]) -> Program:
        """The same, which knows its counts: to count takes longer than to read a program from the disk."""
        self.found["counts"] = counts
        return self

    @property
    def length(self) -> int:
        """Instructions of one call, those of the functions that it calls with them."""
        if not self.functions:
            return len(self.instructions)
        if "length" not in self.found:
            lengths = [function.length for function in self.functions]
            picks, called = called_functions(self.instructions)
            inside = sum(lengths[number] for number in called)
            self.found["length"] = len(self.instructions) - picks - len(called) + inside
        return int(self.found["length"])

    def inlined(self) -> Program:
        """The same without calls."""
        if not self.functions:
            return self
        parts = (len(self.inputs), self.instructions, self.setup, self.outputs, self.functions)
        return Program(self.name, self.variables, self.parameters, *inlined_program(*parts))

    def pruned(self) -> Program:
        """The same with those functions alone that it calls."""
        used = used_functions(self.instructions) if self.functions else []
        if len(used) == len(self.functions):
            return self
        number = {k: place for place, k in enumerate(used)}
        words = {f"call {k}": f"call {place}" for k, place in number.items()}
        instructions = tuple((words.get(word, word), *arguments) for word, *arguments in self.instructions)
        return replace(self, instructions=instructions, functions=tuple(self.functions[k] for k in used))

    def within(self) -> set[int]:
        """Products and sums that are used once, as a term of a sum: they are written there and get no name."""
        base = len(self.inputs)
        uses: Counter = Counter(k for _, k in self.outputs)
        terms: set[int] = set()
        for index, (operation, *arguments) in enumerate(self.instructions):
            if operation == "const":
                continue
            uses.update(arguments)
            early = index < self.setup
            if operation in ("add", "sub"):
                terms |= {k for k in arguments if k >= base and (k - base < self.setup) == early}
        return {k for k in terms if uses[k] == 1 and self.instructions[k - base][0] in ("mul", "add", "sub")}

    def split(self) -> tuple[Program, Program]:
        """The setup, from parameters to what the main part uses of them, and the main part with that as parameters."""
        first, base = len(self.variables), len(self.inputs)
        early = set(range(first, base)) | {base + k for k in range(self.setup) if self.instructions[k][0] != "const"}
        used = {k for op, *arguments in self.instructions[self.setup :] if op != "const" for k in arguments}
        used |= {k for _, k in self.outputs}
        # a comparison is no number: the main part makes it again from what it compares
        compared = sorted(k for k in used & early if k >= base and self.instructions[k - base][0] == "greater")
        used |= {k for place in compared for k in self.instructions[place - base][1:]}
        handed = sorted(used & early - set(compared))
        names = tuple(f"s[{place}]" for place in range(len(handed)))
        shift = {k: k - first for k in range(first, base + self.setup)}
        before = tuple(_renumbered(instruction, shift) for instruction in self.instructions[: self.setup])
        outputs = tuple((name, shift[k]) for name, k in zip(names, handed, strict=True))
        setup = Program(f"{self.name}_setup", self.parameters, (), before, 0, outputs, self.functions).pruned()
        # constants of the setup that the main part needs stand in front of it again
        constants = [base + k for k in range(self.setup) if self.instructions[k][0] == "const" and base + k in used]
        number = {k: k for k in range(first)} | {k: first + place for place, k in enumerate(handed)}
        start = first + len(handed)
        number |= {k: start + place for place, k in enumerate([*constants, *compared])}
        main_range = range(self.setup, len(self.instructions))
        number |= {base + k: start + len(constants) + len(compared) + place for place, k in enumerate(main_range)}
        after = [_renumbered(self.instructions[k - base], number) for k in (*constants, *compared)]
        after += [_renumbered(self.instructions[k], number) for k in main_range]
        results = tuple((name, number[k]) for name, k in self.outputs)
        return setup, Program(self.name, self.variables, names, tuple(after), 0, results, self.functions).pruned()

    def depth(self) -> int:
        """Longest chain of operations from an input to an output."""
        depths = [0] * len(self.inputs)
        if self.functions:
            return self.inlined().depth()
        for operation, *arguments in self.instructions:
            depths.append(0 if operation == "const" else 1 + max(depths[k] for k in arguments))
        return max((depths[k] for _, k in self.outputs), default=0)

    def digest(self) -> str:
        """A hash of what the program does: equal programs have equal hashes, on any machine."""
        instruction_digest = self.found.get("digest") or digest_of_instructions(self.instructions)
        functions = [function.digest() for function in self.functions]
        text = repr((self.variables, self.parameters, instruction_digest, self.setup, self.outputs, *functions))
        return hashlib.sha256(text.encode()).hexdigest()

    def evaluate(self, given: dict[str, float]) -> dict[str, float]:
        """Run it in Python, value by value."""
        if self.functions:
            return self.inlined().evaluate(given)
        numbers = [float(given[name]) for name in self.inputs]
        for operation, *arguments in self.instructions:
            values = arguments if operation == "const" else [numbers[k] for k in arguments]
            numbers.append(float(OPERATIONS[operation](*values)))
        return {name: numbers[k] for name, k in self.outputs}

    def _told(self) -> str:
        sizes = f"{len(self.inputs)} inputs, {len(self.outputs)} outputs, {len(self.instructions)} instructions"
        return f"{self.name}: {sizes}"


def _renumbered(instruction: Instruction, number: dict[int, int]) -> Instruction:
    return instruction if instruction[0] == "const" else (instruction[0], *[number[k] for k in instruction[1:]])


def _divided(a: float, b: float) -> float:
    """As compiled code does it: infinite, or not a number, where b is zero."""
    with np.errstate(all="ignore"):
        return float(np.divide(a, b))


def _root(a: float) -> float:
    return math.sqrt(a) if a >= 0 else math.nan


OPERATIONS: dict[str, Callable[..., Any]] = {
    "const": lambda value: value,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _divided,
    "neg": operator.neg,
    "sqrt": _root,
    "sin": math.sin,
    "cos": math.cos,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "greater": operator.gt,
    "select": lambda condition, a, b: a if condition else b,
    "atan2": math.atan2,
}


class PackedInstructions(Sequence):
    """The instructions of a program as a sequence, of which only the number and a hash are known at first."""

    def __init__(self, count: int, digest: str, data: bytes) -> None:
        self._length, self.digest, self._data = count, digest, data

    @cached_property
    def _all(self) -> tuple[Any, ...]:
        return unpack(self._data)

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
        return self._all == (other._all if isinstance(other, PackedInstructions) else other)

    def __hash__(self) -> int:
        return hash(self._all)

    def __repr__(self) -> str:
        return repr(self._all)

    def __reduce__(self) -> Any:
        return PackedInstructions, (self._length, self.digest, self._data)


def pack(instructions: Sequence[Any]) -> bytes:
    """Instructions as bytes: operations, arguments filled up with zeros, constants in order, arguments of calls.

    Of a call and a pick the first number is that in its name; a call has the number of its arguments as its second.
    """
    places = {word: PLACES[word.split()[0]] for word in {instruction[0] for instruction in instructions}}
    numbers = {word: function_number(word) for word in places if is_call(word) or is_pick(word)}
    words = np.array([places[instruction[0]] for instruction in instructions], dtype=np.uint8)
    constants = np.array([instruction[1] for instruction in instructions if instruction[0] == "const"], dtype=float)
    call_arguments: list[int] = []
    filled: list[tuple[int, ...]] = []
    for instruction in instructions:
        word = instruction[0]
        if word in numbers:
            if is_pick(word):
                filled.append((numbers[word], instruction[1], 0))
            else:
                call_arguments += instruction[1:]
                filled.append((numbers[word], len(instruction) - 1, 0))
        else:
            filled.append(NO_ARGUMENTS if word == "const" else (*instruction[1:], *NO_ARGUMENTS)[:WIDEST])
    arguments = np.array(filled, dtype=np.int32).reshape(len(words), WIDEST).T
    counts = np.array([len(words), len(constants), len(call_arguments)], dtype=np.int64)
    parts = (counts, words, arguments, constants, np.array(call_arguments, dtype=np.int32))
    return b"".join(part.tobytes() for part in parts)


def unpack(data: bytes) -> tuple[Any, ...]:
    """The instructions again."""
    count, numbers, places = np.frombuffer(data, dtype=np.int64, count=3)
    start = HEAD
    words = np.frombuffer(data, dtype=np.uint8, count=count, offset=start).tolist()
    start += count
    arguments = np.frombuffer(data, dtype=np.int32, count=WIDEST * count, offset=start).reshape(WIDEST, count).tolist()
    start += 4 * WIDEST * count
    constants = iter(np.frombuffer(data, dtype=float, count=numbers, offset=start).tolist())
    call_arguments = np.frombuffer(data, dtype=np.int32, count=places, offset=start + 8 * numbers).tolist()
    width = [WIDTHS[word] for word in words]
    instructions: list[Any] = []
    used = 0
    for word, size, a, b, c in zip(words, width, *arguments, strict=True):
        if size == 0:
            instructions.append(("const", next(constants)))
        elif size == 1:
            instructions.append((WORDS[word], a))
        elif size == CALLED:
            instructions.append((f"call {a}", *call_arguments[used : used + b]))
            used += b
        elif size == PICKED:
            instructions.append((f"pick {a}", b))
        else:
            instructions.append((WORDS[word], a, b) if size == 2 else (WORDS[word], a, b, c))
    return tuple(instructions)


def digest_of_instructions(instructions: Sequence[Any]) -> str:
    """A hash of instructions, equal on every machine of one byte order."""
    if isinstance(instructions, PackedInstructions):
        return instructions.digest
    return hashlib.sha256(pack(instructions)).hexdigest()


def called_functions(instructions: Sequence[Any]) -> tuple[int, list[int]]:
    """How many instructions are picks, and the numbers of the functions that others call."""
    if isinstance(instructions, PackedInstructions):
        picks, numbers = instructions.called()
        return picks, numbers.tolist()
    uses = Counter(instruction[0] for instruction in instructions)  # words are few, instructions may be a million
    called = [int(word.split()[1]) for word, count in uses.items() if is_call(word) for _ in range(count)]
    return sum(count for word, count in uses.items() if is_pick(word)), called


def is_call(operation: str) -> bool:
    """Whether an instruction calls a function: its value is no number, and is read by picks alone."""
    return operation.startswith(CALL)


def is_pick(operation: str) -> bool:
    """Whether an instruction is an output of a call."""
    return operation.startswith(PICK)


def function_number(operation: str) -> int:
    """The number in the name of a call or a pick."""
    return int(operation.split()[1])


def used_functions(instructions: Sequence[Any]) -> list[int]:
    """Numbers of the functions that instructions call."""
    words = {instruction[0] for instruction in instructions}  # few, where instructions may be a million
    return sorted(function_number(word) for word in words if is_call(word))


def inlined_program(
    inputs: int, instructions: Sequence[Any], setup: int, outputs: Sequence[tuple[str, int]], functions: Sequence[Any]
) -> tuple[tuple[Any, ...], int, tuple[tuple[str, int], ...]]:
    """Instructions, setup and outputs without calls."""
    number: dict[int, int] = {k: k for k in range(inputs)}  # of values, as they were and as they are
    inlined: list[Any] = []
    picks: dict[int, list[int]] = {}  # values of the outputs of each call
    setup_end = setup
    for index, (operation, *arguments) in enumerate(instructions):
        if index == setup_end:
            setup = len(inlined)
        value = inputs + index
        if operation == "const":
            inlined.append((operation, *arguments))
        elif is_call(operation):
            argument_values = [number[k] for k in arguments]
            picks[value] = _body(functions[function_number(operation)], argument_values, inputs, inlined)
            continue
        elif is_pick(operation):
            number[value] = picks[arguments[0]][function_number(operation)]
            continue
        else:
            inlined.append((operation, *(number[k] for k in arguments)))
        number[value] = inputs + len(inlined) - 1
    setup = len(inlined) if setup_end >= len(instructions) else setup
    return tuple(inlined), setup, tuple((name, number[k]) for name, k in outputs)


def _body(function: Any, argument_values: list[int], inputs: int, inlined: list[Any]) -> list[int]:
    """Put the instructions of a function behind the others; the values of its outputs."""
    values = list(argument_values)
    for operation, *arguments in function.instructions:
        inlined.append((operation, *(arguments if operation == "const" else (values[k] for k in arguments))))
        values.append(inputs + len(inlined) - 1)
    return [values[k] for _, k in function.outputs]


def workspace_places(program: Program, piece: int) -> tuple[dict[int, int], int]:
    """Places of the values that are used in another piece than their own, and the number of places.

    Pieces are `piece` instructions long. A place is free again in the pieces after the last one that reads it.
    """
    base, count = len(program.inputs), len(program.instructions)
    last = max(count - 1, 0) // piece
    needs_place = [_needs_workspace(instruction[0]) for instruction in program.instructions]
    users = [(k // piece, arguments) for k, (op, *arguments) in enumerate(program.instructions) if op != "const"]
    read_last: dict[int, int] = {}
    for number, arguments in [*users, (last, [k for _, k in program.outputs])]:
        for k in arguments:
            if k >= base and needs_place[k - base] and (k - base) // piece != number:
                read_last[k] = number
    ending: dict[int, list[int]] = defaultdict(list)  # piece -> values that are read there for the last time
    for k, number in read_last.items():
        ending[number].append(k)
    produced: dict[int, list[int]] = defaultdict(list)
    for k in sorted(read_last):
        produced[(k - base) // piece].append(k)
    places: dict[int, int] = {}
    free: list[int] = []
    size = 0
    for number in range(last + 1):
        free += [places[k] for k in ending[number - 1]]
        for k in produced[number]:
            if not free:
                free.append(size)
                size += 1
            places[k] = free.pop()
    return places, size


def _needs_workspace(operation: str) -> bool:
    """Whether a value needs a place: constants need none, and outputs of calls lie where the function writes them."""
    return operation != "const" and not is_call(operation) and not is_pick(operation)
