"""Straight-line programs with named inputs and outputs, their operator counts, storage and inlining.

Instructions are pickled as bytes and unpacked on demand: a cached run needs the machine code, inputs and outputs of its
programs, but not their instructions, which may be a million.
"""

from __future__ import annotations

import hashlib
import marshal
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    def status(self) -> int | None:
        """Return which output is the status; None of a program without Newton steps and effort limits."""
        return next((k for k, (name, _) in enumerate(self.outputs) if name == "status[0]"), None)

    def counts(self) -> dict[str, int]:
        """Operators of one call; `total` is additions, subtractions, multiplications and divisions.

        `variables` are values with a name of their own, as C is written: terms of a sum are not. `setup` is the
        arithmetic on parameters alone.
        """
        if "counts" not in self.found:  # to count takes longer than to read a program from the disk
            self.found["counts"] = self._counted()
        return dict(self.found["counts"])

    def _counted(self) -> dict[str, int]:
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
        return dict(counts)

    @property
    def length(self) -> int:
        """Instructions of one call, those of the functions that it calls with them."""
        if not self.functions:
            return len(self.instructions)
        if "length" not in self.found:
            lengths = {f"{CALL} {k}": function.length for k, function in enumerate(self.functions)}
            uses = Counter(instruction[0] for instruction in self.instructions)  # few words of many instructions
            each = ((count, 0 if is_pick(word) else lengths.get(word, 1)) for word, count in uses.items())
            self.found["length"] = sum(count * length for count, length in each)
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
        if "digest" not in self.found:
            functions = [function.digest() for function in self.functions]
            text = repr((self.variables, self.parameters, self.setup, self.outputs, *functions))
            data = marshal.dumps(_with_plain_constants(self.instructions), 2)  # equal bytes for equal instructions
            self.found["digest"] = hashlib.sha256(text.encode() + data).hexdigest()
        return str(self.found["digest"])

    def __getstate__(self) -> dict[str, Any]:
        self.digest(), self.length  # which are asked of a program that was stored
        return super().__getstate__() | {"instructions": PackedInstructions.of(self.instructions)}

    def evaluate(self, given: dict[str, float]) -> dict[str, float]:
        """Run it in Python, value by value."""
        results = run(self, [float(given[name]) for name in self.inputs], OPERATIONS)
        return {name: float(value) for (name, _), value in zip(self.outputs, results, strict=True)}

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


OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "greater": operator.gt,
}
OPERATIONS = OPERATORS | {
    "div": _divided,
    "sqrt": _root,
    "sin": math.sin,
    "cos": math.cos,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "select": lambda condition, a, b: a if condition else b,
    "atan2": math.atan2,
}


def run(program: Program, inputs: Sequence[Any], functions: Mapping[str, Callable[..., Any]]) -> list[Any]:
    """Return the outputs for inputs of any scalar, whose operations are `functions`."""
    values: list[Any] = list(inputs)
    program = program.inlined()
    for operation, *arguments in program.instructions:
        constant = operation == "const"
        values.append(arguments[0] if constant else functions[operation](*[values[k] for k in arguments]))
    return [values[k] for _, k in program.outputs]


class PackedInstructions(Sequence):
    """The instructions of a program as bytes, unpacked when one of them is read."""

    def __init__(self, count: int, data: bytes) -> None:
        self._count, self._data = count, data

    @classmethod
    def of(cls, instructions: Sequence[Instruction]) -> PackedInstructions:
        """Pack instructions."""
        if isinstance(instructions, PackedInstructions):
            return instructions
        return cls(len(instructions), marshal.dumps(_with_plain_constants(instructions)))

    @cached_property
    def _all(self) -> tuple[Instruction, ...]:
        return tuple(marshal.loads(self._data))

    def __len__(self) -> int:
        return self._count

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
        return PackedInstructions, (self._count, self._data)


def _with_plain_constants(instructions: Sequence[Instruction]) -> list[Instruction]:
    """Instructions with floats of Python as constants: `marshal` writes floats of NumPy as bytes."""
    return [("const", float(i[1])) if i[0] == "const" else i for i in instructions]


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
