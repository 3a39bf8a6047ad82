"""Machine code for a program by LLVM, without a compiler on the machine."""

from __future__ import annotations

import ctypes
import hashlib
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from math import prod
from pathlib import Path
from struct import pack, unpack
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from parflex.codegen import cache
from parflex.codegen.program import Program

Array = np.ndarray
WRITERS = ("emit_llvm", "llvm_lines", "program", "simd_plan")  # modules that write machine code
ROWS = 16  # of all lanes, that are computed at a time: their inputs and outputs stay in the cache
NO_CONSTANTS = np.zeros(0)


@lru_cache(maxsize=1)
def host_target() -> tuple[str, str, str, int]:
    """Triple, processor and features of this machine, and the SIMD lanes of a double."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    lanes = 8 if features.get("avx512f") else 4 if features.get("avx") else 2
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten(), lanes


def target_machine(opt: int = 2) -> Any:
    """A target machine; each engine takes one of its own and ends it."""
    triple, cpu, features, _ = host_target()
    return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=opt)


@lru_cache(maxsize=1)
def _code() -> str:
    """A hash of the source that writes machine code, so that none that is kept outlives a change of it."""
    folder = Path(__file__).parent
    files = (Path(__file__), *(folder / f"{name}.py" for name in WRITERS))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def aligned_zeros(shape: tuple[int, ...]) -> Array:
    """Zeros whose first number is the first of a line of the cache: lanes that lie across two lines take longer."""
    size, line = prod(shape), 64
    wide = np.zeros(size + line // 8)
    first = -wide.ctypes.data % line // 8
    return wide[first : first + size].reshape(shape)


def compile_in_background(name: str, *jobs: Callable[[], Any]) -> None:
    """Have machine code made, one after the other: LLVM works while Python goes on elsewhere.

    Whoever asks for it waits; what fails is tried again there, and said.
    """

    def made() -> None:
        for job in jobs:
            with suppress(Exception):
                job()

    threading.Thread(target=made, name=name).start()


class Kernel:
    """A compiled program: `one` input, a `pair`, or `many` side by side. Each is compiled when it is first needed."""

    def __init__(self, program: Program, opt: int = 2) -> None:
        self.program, self.opt = program, opt  # 0: compiled five times as fast, for what is called seldom
        self.lanes = host_target()[-1]
        self._buffers: dict[int, list[tuple[Any, ...]]] = {}  # of so many rows, those that no call uses
        self._halves: dict[str, _KernelCode] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return Kernel, (self.program, self.opt)  # machine code stays on its machine: it is read from the cache

    def half(self, name: str) -> _KernelCode:
        """The machine code of `one`, of `pair` or of `many`."""
        code = self._halves.get(name)
        if code is None:
            with self._lock:  # threads that ask at once wait for one compilation
                code = self._halves.get(name) or _KernelCode(self.program, name, self.lanes, self.opt)
                self._halves[name] = code
        return code

    @property
    def kept(self) -> Path | None:
        """The file that keeps the machine code for one input, None where nothing is kept."""
        return self.half("one").kept

    def address(self, name: str) -> int:
        """Address of `one(x, y, 1)` or `many(x, y, count)` for other compiled code; `_in`: with a workspace.

        `lanes_in(x, y, count, work)` takes as many inputs as there are lanes. `pair(x, y, 1)` takes two inputs, one
        behind the other, and `single(x, y, 1)` is `one` by the code of a pair.
        """
        return self.half("pair" if name == "single" else name.removesuffix("_in")).address(name)

    def one(self, x: Array) -> Array:
        """Outputs for one vector of inputs."""
        return self.write(np.asarray(x, dtype=float), NO_CONSTANTS, np.empty(len(self.program.outputs)))

    def many(self, x: Array) -> Array:
        """Outputs (count x outputs) for rows of inputs (count x inputs), several lanes at a time."""
        return self.write(x, NO_CONSTANTS, np.empty((len(x), len(self.program.outputs))))

    def columns(self, columns: Array) -> Array:
        """Outputs (outputs x count) for columns of inputs (inputs x count), with full lanes."""
        assert columns.flags.c_contiguous and columns.shape[1] % self.lanes == 0
        result, code = np.empty((len(self.program.outputs), columns.shape[1])), self.half("many")
        # what a long program works in is not on the stack, which may be small, nor shared, since calls may overlap
        work = np.empty(max(1, code.work * self.lanes))
        code.call(columns.ctypes.data, result.ctypes.data, columns.shape[1], work.ctypes.data)
        return result

    def write(self, x: Array, constants: Array, out: Array) -> Array:
        """Outputs for a row of inputs, or for rows, written into `out`; `constants` stand behind each row.

        Rows go through buffers that are kept, several lanes at a time: once they are there nothing is allocated.
        """
        width, single = x.shape[-1], x.ndim == 1
        rows, results = (x[None], out[None]) if single else (x, out)
        for start in range(0, len(rows), ROWS * self.lanes):
            count = min(len(rows) - start, ROWS * self.lanes)
            size = 1 if single else -(-count // self.lanes) * self.lanes
            pool = self._buffers.setdefault(size, [])
            try:
                buffers = pool.pop()
            except IndexError:  # the first call, or other threads have them all
                buffers = self._new_buffers(size)
            inputs, outputs, pointers, run = buffers[:4]
            inputs[:width, :count] = rows[start : start + count].T
            inputs[:width, count:] = inputs[:width, count - 1 : count]
            inputs[width:] = constants[:, None]
            run(*pointers)
            results[start : start + count] = outputs[:, :count].T
            pool.append(buffers)
        return out

    def _new_buffers(self, lanes: int) -> tuple[Any, ...]:
        """Columns of inputs, columns of outputs, and what the function is called with."""
        inputs, outputs = np.zeros((len(self.program.inputs), lanes)), np.empty((len(self.program.outputs), lanes))
        code = self.half("many" if lanes > 1 else "one")
        work = np.empty(max(1, code.work * lanes))
        x, y, w = (ctypes.c_void_p(array.ctypes.data) for array in (inputs, outputs, work))
        return inputs, outputs, (x, y, ctypes.c_int64(lanes), w), code.call, work

    def workspace(self, name: str = "many") -> Array:
        """For other compiled code that calls `many_in`, or `lanes_in`."""
        return aligned_zeros((max(1, self.half(name).work), self.lanes))


class _KernelCode:
    """Machine code of a program for one input, or for lanes of them."""

    def __init__(self, program: Program, name: str, lanes: int, opt: int) -> None:
        *target, _ = host_target()
        key_text = f"{program.digest()} {name} {target} {opt} {llvmlite.__version__} {_code()}"
        key = hashlib.sha256(key_text.encode()).hexdigest()
        self.engine, self.work = _engine(key, program, name, lanes, opt)  # doubles of a lane
        self.kept = cache.cached_file(key)
        pointer = ctypes.c_void_p
        working = ctypes.CFUNCTYPE(None, pointer, pointer, ctypes.c_int64, pointer)
        self.call = working(self.engine.get_function_address(f"{name}_in"))
        self.addresses: dict[str, int] = {}  # asked for once: that takes longer than many a call

    def address(self, name: str) -> int:
        """Of one of its functions."""
        if name not in self.addresses:
            self.addresses[name] = self.engine.get_function_address(name)
        return self.addresses[name]


def _engine(key: str, program: Program, name: str, lanes: int, opt: int) -> tuple[Any, int]:
    """An execution engine with the object code of the program, from the cache if it is there, and its workspace."""
    data = cache.read_bytes(key)
    if data is None:
        from parflex.codegen.emit_llvm import build_module

        machine = target_machine(opt)
        text, work = build_module(program, (name, {"one": 1, "pair": 2}.get(name, lanes)))
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        data = pack("<q", work) + machine.emit_object(module)
        cache.write_bytes(key, data)
    return execution_engine(data[8:]), unpack("<q", data[:8])[0]


def execution_engine(data: bytes) -> Any:
    """An execution engine with object code."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    return engine
