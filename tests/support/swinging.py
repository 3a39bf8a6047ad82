"""A pendulum that swings, and its whole periods."""

import numpy as np
from scipy.integrate import solve_ivp

from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.optimise import make_program
from parflex.integrators.driver import System
from parflex.symbolic.expression import Graph
from parflex.trajectories.trajectory import Trajectory


def whole(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def swinging(given: Trajectory) -> tuple[System, Kernel]:
    """Two swings coupled by a spring, pushed by a given effort; the kernel must outlive the system."""
    graph = Graph()
    q, qd = (np.array([graph.symbol(f"{name}[{k}]") for k in range(2)], dtype=object) for name in ("q", "qd"))
    push = graph.symbol("effort[0]")
    pull = 0.5 * (q[0] - q[1])
    changes = np.array([-np.sin(q[0]) - pull + push, -4 * q[1] + pull - 0.1 * qd[1]], dtype=object)
    kernel = Kernel(make_program(graph, "swing", {"q": q, "position_rates": qd, "rate_changes": changes}))
    return system_of(kernel, given, 2, 6), kernel


def system_of(kernel: Kernel, given: Trajectory, size: int, outputs: int) -> System:
    """Return the system of a kernel without closures, whose rates are the derivatives of its positions."""
    rates = np.arange(size, dtype=np.int64)
    simple, none = np.stack([rates, rates], axis=1), whole()
    ones = np.ones(size)
    fixed = (kernel.address("one"), size, size, rates, simple, *[none] * 6, np.ones(size), np.zeros(0))
    return System(*fixed, 3 * size, outputs, given.breaks, given.coefficients, metres=ones, extents=ones)


def swings(t, s):
    """Slope of the state of the two swings under an effort of 0.3 t, written out."""
    pull = 0.5 * (s[0] - s[1])
    return [s[2], s[3], -np.sin(s[0]) - pull + 0.3 * t, -4 * s[1] + pull - 0.1 * s[3]]


def exact(span, state, **more):
    return solve_ivp(swings, span, state, method="DOP853", rtol=1e-13, atol=1e-15, **more)
