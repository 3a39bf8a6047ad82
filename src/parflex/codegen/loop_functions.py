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
import inspect
import textwrap
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
from parflex.codegen.loop_compiler import FunctionText, Value, WidenError, width_of
from parflex.codegen.loop_types import (
    FLAG,
    REAL,
    WHOLE,
    ArrayKind,
    CompiledRecord,
    Kind,
    UnsupportedError,
    kind_of,
    signature,
)

Array = np.ndarray

SPEED = 2  # of LLVM's passes


class LoopFunction:
    """A function of numbers, arrays and bundles; compiled for the kinds of its arguments when it is first called."""

    def __init__(self, function: Callable[..., Any], wide: bool = True) -> None:
        self.wide = wide  # whether loops inside are made to work on several numbers at once, by far more code
        self.function, self.name, self.__doc__ = function, function.__name__, function.__doc__
        self.__name__, self.__module__ = function.__name__, function.__module__
        self.names = function.__globals__
        self.ready: dict[tuple[Kind, ...], _Compiled] = {}
        self._lock = threading.Lock()

    @property
    def tree(self) -> ast.FunctionDef:
        """Its Python."""
        return _tree(self.function)

    def __call__(self, *values: Any) -> Any:
        """Run it."""
        return self.compiled(tuple(kind_of(value) for value in values))(values)

    def compiled(self, kinds: tuple[Kind, ...]) -> _Compiled:
        """Its machine code for arguments of these kinds."""
        code = self.ready.get(kinds)
        if code is None:
            with self._lock:  # threads that ask at once wait for one compilation
                code = self.ready.get(kinds) or _Compiled(self, kinds)
                self.ready[kinds] = code
        return code

    def is_compiled(self) -> bool:
        """Whether it was compiled before, now or by an earlier process."""
        return bool(self.ready) or disk_cache.read_bytes(key_of(self, ())) is not None

    def called_in(self, lines: Any, values: list[Value]) -> Value:
        """A call from another function."""
        kinds = tuple(value.kind for value in values)
        name, returned = lines.unit.function(self, kinds, lines.inside or bool(lines.group))
        arguments = [
            f"{text} {part}"
            for value in values
            for text, part in zip(lines.types(value.kind), value.parts, strict=True)
        ]
        call = f"call {lines.result_type(returned)} @{name}({', '.join(arguments)}){lines.group}"
        if returned == ():
            lines.lines.append(f"  {call}")
            return Value((), ())
        result = lines.new(call)
        if not isinstance(returned, tuple):
            return Value(returned, (result,))
        kind = lines.result_type(returned)
        parts = [lines.new(f"extractvalue {kind} {result}, {k}") for k in range(width_of(returned))]
        return Value(returned, tuple(parts))


@cache
def _tree(function: Callable[..., Any]) -> ast.FunctionDef:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    if not isinstance(definition, ast.FunctionDef):
        raise UnsupportedError("a loop is a function with a name", definition)
    return definition


class _Unit:
    """The module of a loop: each function that is called once for each kinds of its arguments."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.declared: set[str] = set()
        self.known: dict[tuple[int, tuple[Kind, ...], bool], tuple[str, Kind]] = {}
        self.notes = ["!{}"]  # what is said to LLVM of loads, stores and loops

    def note(self, text: str) -> str:
        """The name of something that is said."""
        self.notes.append(text)
        return f"!{len(self.notes) - 1}"

    def loop(self, *properties: str) -> str:
        """Words behind the way back of a loop."""
        names = [self.note(f"!{{{text}}}") for text in properties]
        operands = ", ".join([f"!{len(self.notes)}", *names])  # a loop names itself first
        return f", !llvm.loop {self.note(f'distinct !{{{operands}}}')}"

    def side_by_side(self, count: str) -> tuple[str, str]:
        """Words behind loads and stores of a loop whose turns are apart from each other, and behind its way back.

        As many turns are done at once as the processor has lanes, or as there are.
        """
        lanes = host_target()[-1]
        group, width = self.note("distinct !{}"), min(int(count), lanes) if count.isdigit() else lanes
        properties = '!"llvm.loop.vectorize.enable", i1 true', f'!"llvm.loop.vectorize.width", i32 {width}'
        return f", !llvm.access.group {group}", self.loop(f'!"llvm.loop.parallel_accesses", {group}', *properties)

    def declare(self, line: str) -> None:
        """A function that LLVM knows."""
        self.declared.add(line)

    def function(self, function: LoopFunction, kinds: tuple[Kind, ...], inside: bool = False) -> tuple[str, Kind]:
        """Name and result of a function; it is written when it is first called.

        One that is called `inside` a loop becomes part of it: only what stands there is done side by side.
        """
        key = (id(function), kinds, inside)
        if key not in self.known:
            wide: dict[str, Kind] = {}
            while True:
                writer = FunctionText(self, function, kinds, wide, inside)
                try:
                    text = writer.write()
                    break
                except WidenError as error:
                    wide[error.name] = error.kind
            name = f"f{len(self.known)}_{function.name}"
            self.texts.append(text.replace("@{name}", f"@{name}", 1))
            self.known[key] = (name, writer.returned)
        return self.known[key]

    def text(self, function: LoopFunction, kinds: tuple[Kind, ...]) -> str:
        """The whole, with `entry`: parts of its arguments, then where the result goes."""
        _, returned = self.function(function, kinds)
        lines = FunctionText.__new__(FunctionText)
        super(FunctionText, lines).__init__(self, function)
        lines.parameters, values = [], []
        for k, kind in enumerate(kinds):
            if not isinstance(kind, ArrayKind):
                text = WHOLE if kind == FLAG else lines.types(kind)[0]
                lines.parameters.append(f"{text} %a{k}")
                values.append(Value(kind, (lines.new(f"icmp ne i64 %a{k}, 0") if kind == FLAG else f"%a{k}",)))
                continue
            shape = [f"%a{k}.{i}" for i in range(kind.indices)]
            lines.parameters += [f"{lines.pointer(kind.element)} %a{k}", *(f"i64 {extent}" for extent in shape)]
            values.append(lines.contiguous(kind, f"%a{k}", shape))
        result = function.called_in(lines, values)
        for k, value in enumerate(result.members if isinstance(result.kind, tuple) else [result]):
            kind = value.kind
            text, part = kind, value.parts[0]
            if kind == FLAG:
                text, part = WHOLE, lines.new(f"zext i1 {part} to i64")
            place = lines.new(f"getelementptr i64, {lines.pointer(WHOLE)} %result, i64 {k}")
            if text == REAL:
                text, part = WHOLE, lines.new(f"bitcast double {part} to i64")
            lines.lines.append(f"  store {text} {part}, {lines.pointer(WHOLE)} {place}")
        parameter_list = ", ".join([*lines.parameters, f"{lines.pointer(WHOLE)} %result"])
        entry = "\n".join([f"define void @entry({parameter_list}) {{", *lines.lines, "  ret void", "}", ""])
        self.returned = returned
        notes = [f"!{k} = {note}" for k, note in enumerate(self.notes)]
        return "\n".join([*self.texts, entry, *sorted(self.declared), *notes, ""])


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


class _Compiled:
    """Machine code of a loop for some kinds of arguments."""

    def __init__(self, function: LoopFunction, kinds: tuple[Kind, ...]) -> None:
        key = key_of(function, kinds)
        data = disk_cache.read_bytes(key)
        if data is None:
            unit = _Unit()
            text = unit.text(function, kinds)
            data = repr(unit.returned).encode() + b"\0" + _machine_code(text, function.wide)
            disk_cache.write_bytes(key, data)
            disk_cache.write_bytes(key_of(function, ()), b"compiled")
        header, code = data.split(b"\0", 1)
        returned = ast.literal_eval(header.decode())
        self.several = isinstance(returned, tuple)
        self.returned = returned if self.several else (returned,)
        self.engine = execution_engine(code)
        types: list[Any] = []
        for kind in kinds:
            types += [ctypes.c_void_p, *[ctypes.c_int64] * kind.indices] if isinstance(kind, ArrayKind) else [_c(kind)]
        self.call = ctypes.CFUNCTYPE(None, *types, ctypes.c_void_p)(self.engine.get_function_address("entry"))

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


def _machine_code(text: str, wide: bool = True) -> bytes:
    """Object code, after LLVM's own passes."""
    machine = target_machine(SPEED)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    if hasattr(llvm, "create_pass_builder"):
        tuning = llvm.create_pipeline_tuning_options(speed_level=SPEED)
        tuning.loop_vectorization = wide  # of whole inverses
        tuning.loop_unrolling = False  # no faster to run, and a fifth of the time of compilation
        builder = llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(module, builder)
    else:
        manager, builder = llvm.create_module_pass_manager(), llvm.create_pass_manager_builder()
        builder.opt_level = SPEED
        builder.inlining_threshold = 225
        builder.populate(manager)
        manager.run(module)
    return machine.emit_object(module)


def inlined(function: Callable[..., Any]) -> Any:
    """A short function that becomes part of those that call it."""
    return LoopFunction(function)


def inner(function: Callable[..., Any]) -> Any:
    """A function for other compiled ones: it is made machine code and kept as a part of these."""
    return LoopFunction(function)


def compiled(function: Callable[..., Any]) -> Any:
    """The function as machine code, from the cache if it is there."""
    return LoopFunction(function)


def compiled_scalar(function: Callable[..., Any]) -> Any:
    """The same for loops of decisions rather than numbers: short code, which shares the cache with what it calls."""
    return LoopFunction(function, wide=False)


class _ModelCall:
    """`call_model(address, x, y)` in a loop: call `one(x, y, 1)` of a compiled model; all arguments are addresses."""

    def __call__(self, address: int, x: int, y: int) -> None:
        raise TypeError("models are called by compiled loops alone")

    @staticmethod
    def called_in(lines: Any, values: list[Value]) -> Value:
        """The call."""
        place = lines.pointer("i8")
        kind = "ptr" if place == "ptr" else f"void ({place}, {place}, i64)*"
        function = lines.new(f"inttoptr i64 {values[0].parts[0]} to {kind}")
        x, y = (lines.new(f"inttoptr i64 {value.parts[0]} to {place}") for value in values[1:])
        lines.lines.append(f"  call void {function}({place} {x}, {place} {y}, i64 1)")
        return Value((), ())


call_model = _ModelCall()
