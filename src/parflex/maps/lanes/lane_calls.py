"""What compiled loops over lanes call: programs for several poses at once, and the control word of arithmetic.

Numbers near the smallest ones count as zero while such a loop runs: arithmetic on them is a hundred times slower.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm

from parflex.codegen.loop_compiler import Value

USUAL, FLUSHED = 0x1F80, 0x9FC0  # control words of x86: as every process starts, and with both kinds of flushing
KNOWN = llvm.get_process_triple().startswith("x86_64")


class _LanesCall:
    """`call_lanes(address, x, y, count, work)` in a loop: call `lanes_in` of a program through addresses."""

    def __call__(self, address: int, x: int, y: int, count: int, work: int) -> None:
        raise TypeError("programs are called by compiled loops alone")

    @staticmethod
    def called_in(lines: Any, values: list[Value]) -> Value:
        """The call."""
        place = lines.pointer("i8")
        kind = "ptr" if place == "ptr" else f"void ({place}, {place}, i64, {place})*"
        function = lines.new(f"inttoptr i64 {values[0].parts[0]} to {kind}")
        x, y, work = (lines.new(f"inttoptr i64 {values[k].parts[0]} to {place}") for k in (1, 2, 4))
        given = f"{place} {x}, {place} {y}, i64 {values[3].parts[0]}, {place} {work}"
        lines.lines.append(f"  call void {function}({given})")
        return Value((), ())


class _ControlWord:
    """`control_word(word)` in a loop: set the control word of this thread; nothing happens on other processors."""

    def __call__(self, word: int) -> None:
        raise TypeError("the control word is set by compiled loops alone")

    @staticmethod
    def called_in(lines: Any, values: list[Value]) -> Value:
        """The setting."""
        if KNOWN:
            place, word = lines.pointer("i8"), lines.pointer("i32")
            lines.unit.declare(f"declare void @llvm.x86.sse.ldmxcsr({place})")
            slot = lines.new("alloca i32")
            short = lines.new(f"trunc i64 {values[0].parts[0]} to i32")
            lines.lines.append(f"  store i32 {short}, {word} {slot}")
            given = slot if place == "ptr" else lines.new(f"bitcast {word} {slot} to {place}")
            lines.lines.append(f"  call void @llvm.x86.sse.ldmxcsr({place} {given})")
        return Value((), ())


call_lanes, control_word = _LanesCall(), _ControlWord()
