"""Sums in which the same number is added again and again, as along equal elements of a link: a product instead.

((x + d) + d) + d  becomes  x + 3 d.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from parflex.codegen.program import Instruction, Program

LEAST = 3  # times that a number is added: a product and a sum take the time of two


def with_products(program: Program) -> Program:
    """The same program without setup or calls, with products in the place of such sums."""
    base, own = len(program.inputs), program.instructions
    uses = Counter(a for word, *arguments in own if word != "const" for a in arguments)
    uses.update(k for _, k in program.outputs)
    sums: dict[int, dict[int, tuple[int, int]]] = {}  # of a value, by what is added: what to, and how often
    for index, (word, *arguments) in enumerate(own):
        if word != "add":
            continue
        a, b = arguments
        found = sums[base + index] = {b: (a, 1), a: (b, 1)}
        for before, more in ((a, b), (b, a)):
            if more in sums.get(before, ()) and uses[before] == 1:
                start, count = sums[before][more]
                found[more] = (start, count + 1)
    needed = {k for _, k in program.outputs}
    products: dict[int, tuple[int, int, int]] = {}
    for index in range(len(own) - 1, -1, -1):
        k, (word, *arguments) = base + index, own[index]
        if k not in needed or word == "const":
            continue
        more, (start, count) = max(sums.get(k, {-1: (-1, 0)}).items(), key=lambda item: item[1][1])
        if count >= LEAST:
            products[k], arguments = (start, more, count), [start, more]
        needed.update(arguments)
    number = {k: k for k in range(base)}
    made: list[Instruction] = []

    def add(*instruction: object) -> int:
        made.append(instruction)
        return base + len(made) - 1

    for index, (word, *arguments) in enumerate(own):
        k = base + index
        if k not in needed:
            continue
        if k in products:
            start, more, count = products[k]
            product = add("mul", add("const", float(count)), number[more])
            number[k] = add("add", number[start], product)
        else:
            number[k] = add(word, *(arguments if word == "const" else [number[a] for a in arguments]))
    outputs = tuple((name, number[k]) for name, k in program.outputs)
    return replace(program, instructions=tuple(made), outputs=outputs)
