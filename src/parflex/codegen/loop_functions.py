"""Compiled Python loops as functions, cached on disk.

A loop is compiled to LLVM at its first call, stored on disk, and called by an address. All functions that it calls are
compiled with it as one module, so LLVM optimises across them, and a loop on disk is loaded as a whole.

The machine code of a model is called through its address, an integer argument. One compiled integrator therefore serves
every model and is compiled once on a machine.
"""

from __future__ import annotations

import ast
import ctypes
import hashlib
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from parflex.codegen import cache as disk_cache
from parflex.codegen.llvm_jit import execution_engine, host_target, target_machine
from parflex.codegen.llvm_lines import Lines
from parflex.codegen.loop_compiler import Native
from parflex.codegen.loop_llvm import LoopModule
from parflex.codegen.loop_types import FLAG, REAL, ArrayKind, CompiledRecord, Kind, kind_of, signature

Array = np.ndarray
SPEED = 2  # of LLVM's passes, where loops are not given another level


class LoopFunction:
    """A function of numbers, arrays and bundles; compiled for the kinds of its arguments when it is first called."""

    def __init__(self, function: Callable[..., Any], wide: bool = True, speed: int = SPEED) -> None:
        self.speed = speed  # level of LLVM's passes
        self.wide = wide  # whether unmarked loops inside are vectorised too, by far more code
        self.function, self.name, self.__doc__ = function, function.__name__, function.__doc__
        self.__name__, self.__module__ = function.__name__, function.__module__
        self.names = function.__globals__
        self.ready: dict[tuple[Kind, ...], _Compiled] = {}
        self.lock = threading.Lock()

    def __call__(self, *values: Any) -> Any:
        """Run it."""
        return self.compiled(tuple(kind_of(value) for value in values))(values)

    def compiled(self, kinds: tuple[Kind, ...]) -> _Compiled:
        """Its machine code for arguments of these kinds."""
        if kinds not in self.ready:
            compile_together((self, kinds))
        return self.ready[kinds]

    def is_compiled(self) -> bool:
        """Whether it was compiled before, now or by an earlier process."""
        return bool(self.ready) or disk_cache.read_bytes(key_of(self, ())) is not None


def key_of(function: LoopFunction, kinds: tuple[Kind, ...]) -> str:
    """The name under which the machine code of a loop is kept."""
    *target, _ = host_target()
    key_text = (
        f"{function.__module__} {function.name} {signature(kinds)} {target} {llvmlite.__version__} "
        f"{sources(str(Path(function.function.__code__.co_filename).parent))}"
    )
    return hashlib.sha256(key_text.encode()).hexdigest()


@cache
def sources(folder: str) -> str:
    """A hash of what machine code comes from: all files beside a loop, and those that compile it."""
    digest = hashlib.sha256()
    for place in (Path(folder), Path(__file__).parent):
        for file in sorted(place.glob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def compile_together(*loops: tuple[LoopFunction, tuple[Kind, ...]]) -> None:
    """Compile loops, unless they are, as one module: what several of them call is compiled once."""
    with loops[0][0].lock:  # threads that ask at once wait for one compilation
        loops = tuple(loop for loop in loops if loop[1] not in loop[0].ready)
        stored: list[Any] = [disk_cache.read_bytes(key_of(*loop)) for loop in loops]
        if None in stored:
            text, functions = LoopModule().text(loops)
            wide, speed = all(function.wide for function, _ in loops), min(function.speed for function, _ in loops)
            code = _machine_code(text, wide, speed)
            stored = [repr((typed.name, typed.returned)).encode() + b"\0" + code for typed in functions]
            for loop, data in zip(loops, stored, strict=True):
                disk_cache.write_bytes(key_of(*loop), data)
                disk_cache.write_bytes(key_of(loop[0], ()), b"compiled")
        for (function, kinds), data in zip(loops, stored, strict=True):
            function.ready[kinds] = _Compiled(kinds, data)


class _Compiled:
    """Machine code of a loop for some kinds of arguments."""

    def __init__(self, kinds: tuple[Kind, ...], data: bytes) -> None:
        header, code = data.split(b"\0", 1)
        name, returned = ast.literal_eval(header.decode())
        self.several = isinstance(returned, tuple)
        self.returned = returned if self.several else (returned,)
        self.engine = execution_engine(code)
        types: list[Any] = []
        for kind in kinds:
            types += [ctypes.c_void_p, *[ctypes.c_int64] * kind.indices] if isinstance(kind, ArrayKind) else [_c(kind)]
        self.call = ctypes.CFUNCTYPE(None, *types, ctypes.c_void_p)(self.engine.get_function_address(f"entry_{name}"))

    def __call__(self, values: tuple[Any, ...]) -> Any:
        arguments: list[Any] = []
        for value in values:
            if isinstance(value, np.ndarray):
                if not value.flags.c_contiguous:
                    raise TypeError("an array of a compiled loop is not contiguous")
                arguments += (value.ctypes.data, *value.shape)
            else:
                arguments.append(value._address if isinstance(value, CompiledRecord) else value)
        result = np.zeros(max(len(self.returned), 1), dtype=np.int64)
        self.call(*arguments, result.ctypes.data)
        returned_values = [_python(kind, result[k : k + 1]) for k, kind in enumerate(self.returned)]
        return (tuple(returned_values) if self.several else returned_values[0]) if returned_values else None


def _c(kind: Kind) -> Any:
    return ctypes.c_double if kind == REAL else ctypes.c_int64


def _python(kind: Kind, word: Array) -> Any:
    if kind == REAL:
        return float(word.view(float)[0])
    return bool(word[0]) if kind == FLAG else int(word[0])


def _machine_code(text: str, wide: bool = True, speed: int = SPEED) -> bytes:
    """Object code, after LLVM's own passes."""
    machine = target_machine(speed)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=speed)
    tuning.loop_vectorization = wide  # of whole inverses
    tuning.loop_unrolling = False  # no faster to run, and a fifth of the time of compilation
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


# decorators of a short function, of one that only other loops call, and of a loop that Python calls
inlined = inner = compiled = LoopFunction


def compiled_scalar(function: Callable[..., Any]) -> Any:
    """The same for loops of decisions rather than numbers: short code, which shares the cache with what it calls."""
    return LoopFunction(function, wide=False)


class ProgramCall(Native):
    """`call_model(address, x, y)` or `call_lanes(address, x, y, count, work)` in a loop: call a program by addresses.

    The program is `one(x, y, 1)` of a compiled model, or one with a place to work in.
    """

    @staticmethod
    def llvm(b: Lines, arguments: list[str]) -> None:
        """Lines of the call."""
        address, x, y, *others = arguments
        pointers = (b.new(f"inttoptr i64 {pointer} to ptr") for pointer in (address, x, y, *others[1:]))
        function, x, y, *work = pointers
        b.call(
            function, ", ".join([f"ptr {x}, ptr {y}, i64 {(others or '1')[0]}", *(f"ptr {place}" for place in work)])
        )

    @staticmethod
    def c(arguments: list[str]) -> str:
        """The call of a model in C."""
        address, x, y = arguments
        return f"((program_t)(intptr_t)({address}))((const double *)(intptr_t)({x}), (double *)(intptr_t)({y}), 1)"


call_model = ProgramCall()
