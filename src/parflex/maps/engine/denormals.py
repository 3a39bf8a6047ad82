"""Numbers near the smallest ones count as zero while a loop runs: arithmetic on them is a hundred times slower."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

USUAL, FLUSHED = 0x1F80, 0x9FC0  # control words of x86: as every process starts, and with both kinds of flushing
KNOWN = llvm.get_process_triple().startswith("x86_64")


@intrinsic
def control_word(typing: Any, word: Any) -> Any:
    """Set the control word of floating-point arithmetic of this thread; nothing happens on other processors."""
    signature = types.void(types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if KNOWN:
            pointer = ir.IntType(8).as_pointer()
            place = builder.alloca(ir.IntType(32))
            builder.store(builder.trunc(arguments[0], ir.IntType(32)), place)
            kind = ir.FunctionType(ir.VoidType(), [pointer])
            function = builder.module.declare_intrinsic("llvm.x86.sse.ldmxcsr", (), kind)
            builder.call(function, [builder.bitcast(place, pointer)])
        return context.get_dummy_value()

    return signature, generate
