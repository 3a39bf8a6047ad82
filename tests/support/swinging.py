"""A pendulum that swings, and its whole periods."""

from __future__ import annotations

import numpy as np

from parflex.codegen.compile import Kernel
from parflex.codegen.passes.optimise import make_program
from parflex.graph import Graph
from parflex.simulation.inputs import polynomials
from parflex.simulation.integrators.system import System


def whole(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def swinging(given: polynomials.Polynomials) -> tuple[System, Kernel]:
    """Two swings coupled by a spring, pushed by a given effort; the kernel must outlive the system."""
    graph = Graph()
    q, qd = (np.array([graph.symbol(f"{name}[{k}]") for k in range(2)], dtype=object) for name in ("q", "qd"))
    push = graph.symbol("effort[0]")
    pull = 0.5 * (q[0] - q[1])
    changes = np.array([-np.sin(q[0]) - pull + push, -4 * q[1] + pull - 0.1 * qd[1]], dtype=object)
    kernel = Kernel(make_program(graph, "swing", {"q": q, "position_rates": qd, "rate_changes": changes}))
    none, both = whole(), whole(0, 1)
    simple = np.array([[0, 0], [1, 1]], dtype=np.int64)
    positions = (kernel.address("one"), 2, 2, both, simple)
    fixed = (*positions, *(none,) * 6, np.ones(2), np.zeros(0), 6, 20)
    return System(*fixed, given.breaks, given.coefficients), kernel
