"""Derivatives of an eigenvalue by all keys at once: phi^T (K - lambda M) phi, differentiated in reverse mode.

With the motion phi of all rates, multipliers nu of the closures that balance its dependent rates, and lambda fixed, the
form phi^T (K - lambda M) phi + 2 nu^T J phi is stationary in phi and nu. Its derivatives by keys and positions alone
are therefore those of the eigenvalue, theory (61): one reverse pass costs a few times the form itself, whatever the
number of keys. The program is traced once for all poses, modes and designs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.optimise import make_program
from parflex.codegen.program import Program
from parflex.parameters.design_numbers import DesignNumbers, number_at
from parflex.parameters.parameters import Parameters
from parflex.parameters.traced_numbers import same_reading, trace_file
from parflex.records import Record
from parflex.recursion.dynamics import mass_matrix
from parflex.recursion.energy import kinetic_energy
from parflex.recursion.kinematics import motion
from parflex.robot.configuration import Configuration
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.spatial.dual import seed_slopes, slopes
from parflex.statics.linear_model import LinearModel, tree_stiffness
from parflex.statics.load_case import LoadCase
from parflex.statics.loads import held_robot
from parflex.symbolic.derivative import gradient
from parflex.symbolic.expression import Expression

Array = np.ndarray
QUICKLY = 0  # machine code that is made in a quarter of a second: a call is microseconds either way
LARGEST = 400_000  # nodes of a graph beyond which numbers with slopes are quicker than tracing


@dataclass(frozen=True, eq=False, repr=False)
class ModeFormProgram(Record):
    """Derivatives of the form by keys and positions, and what the reading of the file decided by."""

    kernel: Kernel
    form: Program  # the form alone, whose operators are compared
    keys: tuple[str, ...]
    joints: Array  # positions that joints have: bodies are undeformed
    compared: tuple[tuple[str, bool], ...]

    def changes(self, robot: Robot, model: LinearModel, motions: Array, square: float, steps: Array) -> Array | None:
        """Derivatives by the keys of motions^T (K - square M) motions, keys x m x m; positions follow by `steps`.

        `motions` are columns of modes whose squared frequency is `square`, over all rates. None where the design is
        read otherwise than the one that was traced.
        """
        configuration, count = model.configuration, motions.shape[1]
        if np.any(np.delete(configuration.q, self.joints)):
            return None
        pairs = [(i, j, sign) for i in range(count) for j in range(i + 1) for sign in ((1,) if i == j else (1, -1))]
        columns = np.stack([motions[:, i] + (sign * motions[:, j] if i != j else 0.0) for i, j, sign in pairs])
        nu = _multipliers(model, columns.T, square).T
        key_values = np.array([number_at(robot, key) for key in self.keys])
        groups = {"key": key_values, "q": configuration.q, "phi": columns, "nu": nu, "square": np.array([square])}
        outputs = np.stack([self._run({**groups, "phi": columns[k], "nu": nu[k]}) for k in range(len(pairs))])
        ends = np.cumsum([len(self.keys), len(self.joints), len(self.compared)])
        if not np.isfinite(outputs).all() or not same_reading(self.compared, outputs[:1, ends[1] : ends[2]]):
            return None
        along = np.zeros((len(pairs), robot.tree.nq))
        along[:, self.joints] = outputs[:, ends[0] : ends[1]]
        rates = slopes(robot.tree.moved(configuration.q, seed_slopes(np.eye(robot.tree.n))), robot.tree.n)
        total = outputs[:, : ends[0]] + along @ rates @ steps
        matrices = np.zeros((len(self.keys), count, count))
        for (i, j, sign), row in zip(pairs, total, strict=True):
            if i == j:
                matrices[:, i, i] = row
            else:
                matrices[:, i, j] += sign * row / 4
                matrices[:, j, i] = matrices[:, i, j]
        return matrices

    def _run(self, groups: Mapping[str, Array]) -> Array:
        """The outputs for inputs by group."""
        program = self.kernel.program
        return self.kernel.one(np.array([groups[name][k] for name, k in map(_split, program.inputs)]))


def _split(name: str) -> tuple[str, int]:
    """Group and number of an input."""
    word, _, number = name.partition("[")
    return word, int(number[:-1]) if number else 0


def _multipliers(model: LinearModel, columns: Array, square: float) -> Array:
    """Multipliers of the closures that balance what dependent rates feel of K - lambda M, for columns of motions."""
    configuration = model.configuration
    part, robot = configuration.reduction.partition, configuration.robot
    nu = np.zeros((robot.closures.size, columns.shape[1]))
    if len(part.dependent):
        assert model.K_tot is not None
        M = mass_matrix(robot.tree, configuration.at)
        forces = model.K_tot @ columns - square * (M @ columns)
        nu[part.rows] = np.linalg.solve(configuration.reduction.block.T, -forces[part.dependent])
    return nu


def form_program(
    robot: Robot, keys: Sequence[str], lock: Any, servo: Any, without: tuple[str, ...]
) -> ModeFormProgram | None:
    """The program of a file and keys for a robot that is held so; None where it cannot be traced."""
    return Parameters(robot, keys).traced("mode forms", _traced, lock, servo, without)


def _traced(
    robot: Robot, keys: Sequence[str], lock: Any, servo: Any, without: tuple[str, ...]
) -> ModeFormProgram | None:
    """The form of the robot with expressions for its numbers, and its backward derivatives."""
    file = trace_file(robot, keys, parting=True)
    graph, tree = file.graph, robot.tree
    joints = np.array([i for link in tree.links for i in range(link.q.start, link.q.stop)], dtype=int)
    q: Array = np.zeros(tree.nq, dtype=object)
    q[joints] = [graph.symbol(f"q[{k}]") for k in joints]
    nominal = np.zeros(len(file.places))
    numbers = DesignNumbers(robot, tuple(keys), file.places, nominal, nominal[None], np.zeros(1, dtype=bool))
    twin = acting_robot(numbers.with_numbers(dict(enumerate(x.expression for x in file.numbers))), without)
    tree = replace(twin.tree, known_length=robot.tree.length)  # a scale of solvers, which no form has in it
    twin = replace(twin, tree=tree, closures=replace(twin.closures, tree=tree), known_home=robot.home)
    held = held_robot(twin, q, LoadCase(lock, servo=servo), robot)
    configuration = Configuration(held, q)
    phi: Array = np.zeros(tree.n, dtype=object)
    free = [k for k in range(tree.n) if k not in held.locked]
    phi[free] = [graph.symbol(f"phi[{k}]") for k in free]
    nu = np.array([graph.symbol(f"nu[{k}]") for k in range(held.closures.size)], dtype=object)
    square = graph.symbol("square")
    K = tree_stiffness(configuration)[0]
    form = phi @ (K @ phi) - 2 * square * kinetic_energy(held.tree, configuration.at, phi)
    if len(nu):
        opening = held.closures.bias(configuration.at, motion(held.tree, configuration.at, np.zeros(tree.n), phi))
        form = form + 2 * (nu @ opening)
    if len(graph) > LARGEST:
        return None
    derivatives = gradient([form], [1.0], [*file.symbols, *q[joints]])
    outputs = {"key": derivatives[: len(keys)], "q": derivatives[len(keys) :], **file.checks}
    arrays = {name: np.array(expressions, dtype=object) for name, expressions in outputs.items() if len(expressions)}
    program = make_program(graph, "slopes of a mode", arrays, quick=True)
    alone = make_program(graph, "a mode", {"form": form if isinstance(form, Expression) else 0.0}, quick=True)
    return ModeFormProgram(Kernel(program, QUICKLY), alone, tuple(keys), joints, file.compared)
