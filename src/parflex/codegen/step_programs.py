"""Programs of an implicit step: one factors the matrix of the step at a state, the other solves with its factors.

They are one trace, cut where the residual of the accelerations enters. The first program holds all that depends on the
state alone and is called when the matrix is updated; the second is called in each Newton iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.codegen import cache
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.model import Model
from parflex.codegen.options import Options
from parflex.recursion.dynamics import joint_forces
from parflex.robot.robot import Robot
from parflex.spatial.dual import ComplexPair, complex_pair
from parflex.symbolic.expression import Expression
from parflex.tree.tree import Tree

if TYPE_CHECKING:
    from parflex.formulations.base import JointTangent

Array = np.ndarray
NO_LIMIT = 1 << 62  # the direct model was not refused, and these grow with it
SPARSE_FORM = "two-node form"


@dataclass(frozen=True)
class StepPrograms:
    """`factor`: positions, rates, gates, c1 and c2 in, factors out; `solve`: miss, factors in, change and turns out.

    Of complex numbers all real parts come before all imaginary ones.
    """

    factor: Model
    solve: Model

    @cached_property
    def kernels(self) -> tuple[Kernel, Kernel]:
        """Both compiled; the first, which is called seldom, in little time."""
        return Kernel(self.factor.program, opt=0), Kernel(self.solve.program)


def step_programs(
    robot: Robot, model: str, friction_width: float, by_pairs: bool, calls: bool = False
) -> StepPrograms | None:
    """The two programs for a model of a state, for real coefficients or for pairs; None where its form has none.

    They are kept on disk.
    """
    options = Options(friction_width=friction_width, calls=calls)
    key = cache.key_of(robot, "step", model, options, by_pairs)
    return cache.stored(key, lambda: _traced(robot, model, options, by_pairs))


def _traced(robot: Robot, model: str, options: Options, by_pairs: bool) -> StepPrograms | None:
    """Both programs made; None where the form of the model has none."""
    from parflex.codegen.optimise import make_program  # and what traces: programs that are kept need neither
    from parflex.codegen.simd_plan import arrange_parts, simd_pays
    from parflex.codegen.trace import formulation_of
    from parflex.codegen.tracer import Tracer, add_gates

    form, graph, _ = formulation_of(robot, model, options)
    tracer, tree = Tracer(graph), form.robot.tree
    q, qd = tracer.group("q", tree.nq), tracer.group("qd", len(form.independent))
    add_gates(tracer, tree)
    c = tracer.group("c", 4)
    c1, c2 = (ComplexPair(c[0], c[1]), ComplexPair(c[2], c[3])) if by_pairs else (c[0], c[2])
    rates = np.zeros(tree.n, dtype=object)
    rates[form.independent] = qd
    matrix = form.step_matrix(q, c1, c2, joint_tangents(tree, q, rates))
    if matrix is None:
        return None
    state = {name: symbols.shape for name, symbols in tracer.inputs.items()}
    state_names = [f"{name}[{k}]" for name, (size,) in state.items() for k in range(size)]
    count = len(matrix.free)
    parts = [tracer.group(name, count) for name in (("miss", "imaginary_miss") if by_pairs else ("miss",))]
    miss = np.array([ComplexPair(*both) for both in zip(*parts, strict=True)] if by_pairs else parts[0], dtype=object)
    # factors are values of their own, which passes do not mix into what is solved with them
    change, turned = matrix.correction([step.mapped(_hold) for step in matrix.factors()], miss)
    values = np.concatenate([change, turned])
    if by_pairs:
        values = np.array(
            [getattr(complex_pair(value), part) for part in ("re", "im") for value in values], dtype=object
        )
    program = make_program(graph, f"{robot.name}_step", {"change": values}, state_names, NO_LIMIT, quick=True)
    setup, main = program.split()
    if simd_pays(main):
        setup, main = arrange_parts(setup, main)
    main = replace(main, name=f"{robot.name}_solve", variables=main.inputs, parameters=())
    setup = replace(setup, name=f"{robot.name}_factor")
    factors: dict[str, tuple[int, ...]] = {"factors": (len(setup.outputs),)}
    return StepPrograms(
        Model(setup.name, setup, state, factors),
        Model(main.name, main, {"miss": (len(parts) * count,)} | factors, {"change": (len(values),)}),
    )


def joint_tangents(tree: Tree, q: Array, rates: Array) -> dict[int, JointTangent]:
    """How forces of joints grow with their own coordinates and rates, by the rates that are symbols."""
    from parflex.formulations.base import JointTangent
    from parflex.symbolic.derivative import jacobian

    forces = joint_forces(tree, q, rates, np.zeros(tree.n))
    tangents = {}
    for link in tree.links:
        if link.joint.one_axis and isinstance(rates[link.v.start], Expression):
            k = link.v.start
            ((stiffness, damping),) = jacobian([forces[k]], [q[link.q.start], rates[k]])
            tangents[k] = JointTangent(stiffness, damping)
    return tangents


def _hold(value: Any) -> Any:
    if isinstance(value, ComplexPair):
        return ComplexPair(_hold(value.re), _hold(value.im))
    return value.hold() if isinstance(value, Expression) else value
