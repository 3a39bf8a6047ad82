"""CasADi as a peer: the same recursion over its SX scalars, `casadi.cse`, generated C."""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from parflex.codegen import tracer as tracing
from parflex.codegen.options import Options
from parflex.codegen.trace import MODELS
from parflex.codegen.tracer import grouped_robot
from parflex.formulations.choice import choose
from parflex.robot.load import JOINT_TERMS, acting_robot
from parflex.robot.robot import Robot

ARITHMETIC = {
    "add": (ca.OP_ADD, ca.OP_SUB),
    "mul": (ca.OP_MUL, ca.OP_SQ, ca.OP_TWICE),
    "div": (ca.OP_DIV, ca.OP_INV),
}
Solver = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Scalar:
    """An SX scalar that becomes a float when it is a constant, as parflex's own scalars do: zeros are seen as zeros."""

    __slots__ = ("solver", "value")

    def __init__(self, value: ca.SX, solver: Solver) -> None:
        self.value, self.solver = value, solver

    def _made(self, value: ca.SX) -> Any:
        return float(value) if value.is_constant() else Scalar(value, self.solver)

    def _with(self, other: Any, operation: Callable[[Any, Any], ca.SX]) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return self._made(operation(self.value, other.value if isinstance(other, Scalar) else float(other)))

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a * b)

    def __truediv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a / b)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: b / a)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self._made(-self.value)

    def cos(self) -> Any:
        return self._made(ca.cos(self.value))

    def sin(self) -> Any:
        return self._made(ca.sin(self.value))

    def sqrt(self) -> Any:
        return self._made(ca.sqrt(self.value))

    def solve_system(self, matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.solver(matrix, right)

    def hold(self) -> Scalar:
        """A value made from parameters alone counts as a parameter, as it does for parflex."""
        return Scalar(ca.SX.sym("held"), self.solver)


def _sx(array: np.ndarray) -> ca.SX:
    return ca.vertcat(
        *(ca.horzcat(*(entry.value if isinstance(entry, Scalar) else entry for entry in row)) for row in array)
    )


def own_solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """CasADi's own solve of SX systems (by a QR factorisation): safe at every regular pose."""
    columns = right.reshape(len(right), -1)
    solution = ca.solve(_sx(matrix), _sx(columns))
    entries = [[Scalar(solution[i, j], own_solve) for j in range(columns.shape[1])] for i in range(len(right))]
    return np.array(entries, dtype=object).reshape(right.shape)


def unpivoted_solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Gauss without pivots: fewest operators, but wrong at some regular poses, as where leg 1 has no x component."""
    rows = [[*row, *np.atleast_1d(b)] for row, b in zip(matrix, right, strict=True)]
    size = len(rows)
    for k in range(size):
        inverse = 1.0 / rows[k][k]
        rows[k] = rows[k][: k + 1] + [inverse * entry for entry in rows[k][k + 1 :]]
        for i in range(k + 1, size):
            rows[i] = rows[i][: k + 1] + [
                a - rows[i][k] * b for a, b in zip(rows[i][k + 1 :], rows[k][k + 1 :], strict=True)
            ]
    for k in reversed(range(size)):
        for i in range(k):
            rows[i][size:] = [a - rows[i][k] * b for a, b in zip(rows[i][size:], rows[k][size:], strict=True)]
    return np.array([row[size:] for row in rows], dtype=object).reshape(right.shape)


class Tracer:
    """Stands where parflex's own tracer and graph stand: symbols are SX."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.inputs: list[ca.SX] = []
        self.graph = self
        self._named: dict[str, Scalar] = {}

    def symbol(self, name: str) -> Scalar:
        return self._named.setdefault(name, Scalar(ca.SX.sym(name), self.solver))

    def group(self, name: str, *shape: int) -> np.ndarray:
        entries = np.empty(shape, dtype=object)
        for index in np.ndindex(*shape):
            entries[index] = Scalar(ca.SX.sym(f"{name}{index}"), self.solver)
            self.inputs.append(entries[index].value)
        return entries

    groups = tracing.Tracer.groups


def expressions(
    robot: Robot,
    model: str,
    *,
    parameters: str = "numbers",
    grouped: bool = True,
    solver: Solver = own_solve,
    way: int | None = None,
) -> tuple[list[ca.SX], ca.SX]:
    """Inputs and outputs of a model of parflex, traced with SX instead of its own scalars, after `casadi.cse`."""
    tracer = Tracer(solver)
    robot = acting_robot(robot, JOINT_TERMS)
    bodies = grouped_robot(robot, tracer, parameters)[0] if grouped else robot
    options = Options(parameters=parameters, without=JOINT_TERMS)
    form = choose(bodies, options.question(model))
    outputs, _ = MODELS[model](tracer, form.ways()[way] if way is not None else form, options)
    flat = [
        entry.value if isinstance(entry, Scalar) else ca.SX(entry) for group in outputs.values() for entry in group.flat
    ]
    return tracer.inputs, ca.cse(ca.vertcat(*flat))


def leanest(robot: Robot, model: str, solver: Solver) -> tuple[list[ca.SX], ca.SX]:
    """The way of writing a model, of those that parflex tries too, with the fewest operators."""
    ways = [expressions(robot, model, solver=solver, way=way) for way in range(ways_of(robot, model))]
    return min(ways, key=lambda way: counts(way[1])["total"])


def before_solve(robot: Robot) -> ca.SX:
    """Matrix and right-hand side of the 6 x 6 system of the inverse model: what is computed before it is solved."""
    systems = []

    def kept(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
        if len(matrix) < 6:
            return own_solve(matrix, right)
        systems.append(ca.cse(ca.vertcat(ca.vec(_sx(matrix)), ca.vec(_sx(right.reshape(len(right), -1))))))
        return np.array([Scalar(ca.SX.sym("x"), kept) for _ in right.flat], dtype=object).reshape(right.shape)

    for way in range(ways_of(robot, "inverse")):
        expressions(robot, "inverse", solver=kept, way=way)
    return min(systems, key=lambda system: counts(system)["total"])


def ways_of(robot: Robot, model: str) -> int:
    """In how many ways parflex writes a model."""
    return len(choose(acting_robot(robot, JOINT_TERMS), Options().question(model)).ways())


def counts(expression: ca.SX) -> dict[str, int]:
    """Operators by CasADi's own list of instructions."""
    function = ca.Function("counted", [ca.vertcat(*ca.symvar(expression))], [expression])
    codes = [function.instruction_id(k) for k in range(function.n_instructions())]
    result = {kind: sum(code in known for code in codes) for kind, known in ARITHMETIC.items()}
    return result | {"total": sum(result.values())}


class Compiled:
    """Generated C in a shared library: `address` of the function, inputs one vector, outputs one vector."""

    def __init__(self, inputs: list[ca.SX], outputs: ca.SX, flags: tuple[str, ...], folder: Path) -> None:
        compiler = shutil.which(os.environ.get("CC", "gcc"))
        if compiler is None:
            raise FileNotFoundError("no C compiler: CasADi's C cannot be compiled")
        function = ca.Function("peer", [ca.vertcat(*inputs)], [outputs])
        self.outputs, self.work = outputs.numel(), max(function.sz_w(), 1)
        source, library = folder / "peer.c", folder / "peer.so"
        generator = ca.CodeGenerator(source.name, {"casadi_int": "long long int"})
        generator.add(function)
        generator.generate(f"{folder}{os.sep}")
        subprocess.run([compiler, *flags, "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
        self._library = ctypes.CDLL(str(library))
        self.address = ctypes.cast(self._library.peer, ctypes.c_void_p).value or 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Outputs for one vector of inputs."""
        y, w = np.full(self.outputs, math.nan), np.zeros(self.work)
        row = np.ascontiguousarray(x, dtype=float)
        arguments, results = (ctypes.c_void_p * 1)(row.ctypes.data), (ctypes.c_void_p * 1)(y.ctypes.data)
        self._library.peer(arguments, results, None, w.ctypes.data_as(ctypes.c_void_p), 0)
        return y
