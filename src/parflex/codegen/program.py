"""Straight-line programs: named inputs, instructions on numbered values, named outputs, and what they cost."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parflex.codegen.kept_instructions import called_functions, digest_of_instructions
from parflex.codegen.passes.inlining import is_call, is_pick, used_functions, which, written_out
from parflex.records import Record

# Values are numbered: first the inputs, then one for each instruction. An instruction is (operation, arguments...);
# arguments are numbers of values, but that of "const", which is the constant itself. `call N` calls the function with
# that number, `pick K` is the output with that number of a call.
Instruction = tuple
ARITHMETIC = {"add": "add", "sub": "add", "mul": "mul", "div": "div"}
APART = {
    "sqrt": "sqrt",
    "sin": "trig",
    "cos": "trig",
    "atan2": "trig",
    "neg": "neg",
    "abs": "compare",
    "greater": "compare",
    "select": "compare",
    "sign": "compare",
}
COUNTED = ("add", "mul", "div", "sqrt", "trig", "neg", "compare", "variables", "setup", "total")


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
        """Return which output is the status of Newton steps; None of a program that does none."""
        return next((k for k, (name, _) in enumerate(self.outputs) if name == "status[0]"), None)

    def counts(self) -> dict[str, int]:
        """Operators of one call; `total` is additions, subtractions, multiplications and divisions.

        `variables` are values with a name of their own, as C is written: terms of a sum are not. `setup` is the
        arithmetic on parameters alone.
        """
        known = self.known_counts
        if known is not None:
            return dict(known)
        within = self.within()
        counts = Counter(dict.fromkeys(COUNTED, 0))
        called = [function.counts() for function in self.functions]
        for index, (operation, *_) in enumerate(self.instructions):
            if operation == "const" or is_pick(operation):
                continue
            if is_call(operation):
                own = called[which(operation)]
                counts.update({"setup": own["total"]} if index < self.setup else own)
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
        return Program(self.name, self.variables, self.parameters, *written_out(*parts))

    def pruned(self) -> Program:
        """The same with those functions alone that it calls."""
        used = used_functions(self.instructions) if self.functions else []
        if len(used) == len(self.functions):
            return self
        number = {k: place for place, k in enumerate(used)}
        words = {f"call {k}": f"call {place}" for k, place in number.items()}
        instructions = tuple(
            (words[instruction[0]], *instruction[1:]) if instruction[0] in words else instruction
            for instruction in self.instructions
        )
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
            terms |= {
                k for k in arguments if operation in ("add", "sub") and k >= base and (k - base < self.setup) == early
            }
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
        rest = range(self.setup, len(self.instructions))
        number |= {base + k: start + len(constants) + len(compared) + place for place, k in enumerate(rest)}
        after = [_renumbered(self.instructions[k - base], number) for k in (*constants, *compared)]
        after += [_renumbered(self.instructions[k], number) for k in rest]
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
        own = self.found.get("digest") or digest_of_instructions(self.instructions)
        functions = [function.digest() for function in self.functions]
        text = repr((self.variables, self.parameters, own, self.setup, self.outputs, *functions))
        return hashlib.sha256(text.encode()).hexdigest()

    def evaluate(self, values: dict[str, float]) -> dict[str, float]:
        """Run it in Python, value by value."""
        if self.functions:
            return self.inlined().evaluate(values)
        numbers = [float(values[name]) for name in self.inputs]
        for operation, *arguments in self.instructions:
            numbers.append(
                float(OPERATIONS[operation](*(arguments if operation == "const" else (numbers[k] for k in arguments))))
            )
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


def _operations() -> dict:
    return {
        "const": lambda value: value,
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": _divided,
        "neg": lambda a: -a,
        "sqrt": _root,
        "sin": math.sin,
        "cos": math.cos,
        "abs": abs,
        "sign": lambda a: (a > 0) - (a < 0),
        "greater": lambda a, b: a > b,
        "select": lambda condition, a, b: a if condition else b,
        "atan2": math.atan2,
    }


OPERATIONS = _operations()
