"""Contestants made from one traced model: parflex's kernels by LLVM, its C, and CasADi's C."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from report import Report
from timing import Harness, Loop, measure

from parflex.codegen.emit_c import emit_c
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.optimise import make_program
from parflex.codegen.options import Options, prepared_robot
from parflex.codegen.program import Program
from parflex.codegen.source_files import identifier
from parflex.codegen.trace import MODELS
from parflex.codegen.tracer import Tracer
from parflex.formulations.choice import choose
from parflex.robot.load import JOINT_TERMS
from parflex.robot.robot import Robot
from parflex.symbolic.expression import Graph

# parflex's kernels use all that the processor has, so C may too; plain `-O3` is sometimes faster: the faster counts
FLAGS = (("-O3",), ("-O3", "-march=native"))
WHOLE, CALL = ": work and call", ": call alone"  # behind the names of loops over bindings
BATCH = 512  # states of one call of the batched kernel


class GraphTracer:
    """Symbols of parflex's own graph, for models with bodies as they are in the file."""

    def __init__(self) -> None:
        self.graph = Graph()

    def group(self, name: str, *shape: int) -> np.ndarray:
        entries = np.empty(shape, dtype=object)
        for index in np.ndindex(*shape):
            entries[index] = self.graph.symbol(f"{name}{index}")
        return entries

    groups = Tracer.groups


def ungrouped_program(robot: Robot, model: str) -> Program:
    """The program of a model with bodies as they are in the file; parflex itself always groups them first."""
    tracer = GraphTracer()
    options = Options(without=JOINT_TERMS)
    form = choose(prepared_robot(robot, model, options), options.question(model))
    outputs, _ = MODELS[model](tracer, form, options)
    return make_program(tracer.graph, f"{robot.name}_{model}", outputs)


@dataclass
class Contest:
    """One model with inputs (rows) and right outputs (rows), its contestants, and their errors."""

    report: Report
    harness: Harness
    benchmark: str
    x: np.ndarray
    known: np.ndarray
    folder: Path

    def __post_init__(self) -> None:
        self.loops: dict[str, Loop] = {}
        self.errors: dict[str, float] = {}
        self.notes: dict[str, str] = {}
        self.kept: list[Kernel] = []  # their code lives as long as they do
        self.groups: dict[str, list[str]] = {}  # one contestant compiled in several ways: the fastest counts

    def error(self, found: np.ndarray) -> float:
        """Largest difference relative to the largest value."""
        return float(np.abs(found - self.known).max() / np.abs(self.known).max())

    def add_ours(self, name: str, program: Program) -> None:
        """The scalar and the batched kernel of a program without parameters, and its C."""
        kernel = Kernel(program)
        self.kept.append(kernel)
        outputs = len(program.outputs)
        note = f"{program.counts()['total']} operators, depth {program.depth()}"
        scalar, batched = f"{name}, scalar", f"{name}, batched"
        self.loops[scalar] = self.harness.one(kernel.address("one"), self.x, outputs)
        self.errors[scalar], self.notes[scalar] = self.error(np.array([kernel.one(row) for row in self.x])), note
        many = np.tile(self.x, (-(-BATCH // len(self.x)), 1))[:BATCH]
        self.loops[batched] = self.harness.many(kernel.address("many"), many, outputs, kernel.lanes)
        self.errors[batched], self.notes[batched] = self.error(kernel.many(self.x)), f"{kernel.lanes} lanes"
        self._add_own_c(f"{name}, C by gcc", program)

    def _add_own_c(self, name: str, program: Program) -> None:
        compiler = shutil.which(os.environ.get("CC", "gcc"))
        if compiler is None:
            self.report.skip(name, "no C compiler")
            return
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        function = identifier(program.name)
        for file, text in emit_c(program).items():
            (folder / file).write_text(text)
        for flags in FLAGS:
            library = folder / f"own{len(flags)}.so"
            subprocess.run(
                [compiler, *flags, "-shared", "-fPIC", str(folder / f"{function}.c"), "-o", str(library), "-lm"],
                check=True,
            )
            called = getattr(ctypes.CDLL(str(library)), function)
            self.errors[name] = self.error(np.array([_outputs(called, row, len(program.outputs)) for row in self.x]))
            # it takes x and y; the third argument of the loop's call is not used
            address = ctypes.cast(called, ctypes.c_void_p).value or 0
            self._add_way(name, flags, self.harness.one(address, self.x, len(program.outputs)))

    def _add_way(self, name: str, flags: tuple[str, ...], loop: Loop) -> None:
        way = f"{name} {' '.join(flags)}"
        self.loops[way] = loop
        self.groups.setdefault(name, []).append(way)

    def add_casadi(self, name: str, peer: ModuleType | None, expressions: tuple[Any, Any]) -> None:
        """CasADi's C of its expressions."""
        if peer is None:
            return
        inputs, outputs = expressions
        for flags in FLAGS:
            try:
                compiled = peer.Compiled(inputs, outputs, flags, Path(tempfile.mkdtemp(dir=self.folder)))
            except FileNotFoundError as error:
                self.report.skip(name, str(error))
                return
            self.errors[name] = self.error(np.array([compiled(row) for row in self.x]))
            self._add_way(name, flags, self.harness.casadi(compiled.address, self.x, compiled.outputs, compiled.work))
        self.notes[name] = f"{peer.counts(outputs)['total']} operators"

    def add_binding(self, name: str, call: Loop, nothing: Loop, error: float, note: str = "") -> None:
        """A call of a binding; the same call on nothing is taken off."""
        self.loops[name + WHOLE], self.loops[name + CALL] = call, nothing
        self.errors[name], self.notes[name] = error, note

    def run(self) -> dict[str, np.ndarray]:
        """Measure all, and keep the figures; rounds of each contestant by name."""
        self.report.progress(f"{self.benchmark}: measuring {len(self.loops)} loops")
        rounds = measure(self.loops)
        result: dict[str, np.ndarray] = {}
        ways = {way for group in self.groups.values() for way in group}
        for name in [name for name in rounds if name not in ways]:
            if name.endswith(CALL):
                whole = name.removesuffix(CALL)
                result[whole] = rounds[name.removesuffix(CALL) + WHOLE] - rounds[name].min()
                self.notes[whole] = (
                    f"{self.notes.get(whole, '')} (call of {rounds[name].min():.0f} ns taken off)".strip()
                )
            elif not name.endswith(WHOLE):
                result[name] = rounds[name]
        for name, group in self.groups.items():
            best = min(group, key=lambda way: rounds[way].min())
            result[name] = rounds[best]
            others = [f"{way.removeprefix(name).strip()}: {rounds[way].min():.0f}" for way in group if way != best]
            self.notes[name] = "; ".join(
                filter(None, [self.notes.get(name, ""), best.removeprefix(name).strip(), *others])
            )
        for name, values in result.items():
            error, note = self.errors.get(name), self.notes.get(name, "")
            self.report.timing(self.benchmark, name, values, error=error, note=note)
        return result


def _outputs(function: Any, x: np.ndarray, count: int) -> np.ndarray:
    """Outputs of a C function of x and y."""
    y, x = np.full(count, np.nan), np.ascontiguousarray(x)
    function(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
    return y
