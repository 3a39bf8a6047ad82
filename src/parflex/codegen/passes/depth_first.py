"""The order of instructions: each value is made just before what uses it, so that few wait for their use at a time.

A long program is slow by the values that leave the registers: in this order a step of a map takes two thirds of the
time that it takes in the order in which it was traced.
"""

from __future__ import annotations

from dataclasses import replace

from parflex.codegen.program import Program


def depth_first(program: Program) -> Program:
    """The same program without setup, its instructions in the order in which outputs ask for them, one by one."""
    base, instructions = len(program.inputs), program.instructions
    waiting = _values_that_wait(program)
    number = {k: k for k in range(base)}
    order: list[int] = []
    for _, output in program.outputs:
        stack = [output]
        while stack:
            k = stack[-1]
            if k in number:
                stack.pop()
                continue
            operation, *arguments = instructions[k - base]
            missing = [] if operation == "const" else [a for a in arguments if a not in number]
            if missing:
                stack += sorted(missing, key=lambda a: waiting[a])  # what needs most memory goes first
                continue
            number[k] = base + len(order)
            order.append(k)
            stack.pop()
    made = []
    for k in order:
        operation, *arguments = instructions[k - base]
        made.append((operation, *(arguments if operation == "const" else (number[a] for a in arguments))))
    outputs = tuple((name, number[k]) for name, k in program.outputs)
    return replace(program, instructions=tuple(made), setup=0, outputs=outputs)


def _values_that_wait(program: Program) -> list[int]:
    """How many values wait at a time while each one is made, as if none were used twice."""
    found = [0] * len(program.inputs)
    for operation, *arguments in program.instructions:
        needed = [] if operation == "const" else sorted((found[a] for a in arguments), reverse=True)
        found.append(max([1, *(x + k for k, x in enumerate(needed))]))
    return found
