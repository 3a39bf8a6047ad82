"""Bodies at rest by the programs of a run: Newton's method with the matrix of a step that is very long.

With c2 without end the matrix A + c2 K of an implicit step is the stiffness, and what it makes of accelerations is the
way to rest, theory (59). Both programs are compiled for the run itself, and grow linearly with the robot; tangents of
the whole robot, which are dense, have only to confirm what was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from parflex.integrators.driver import System, Work, new_work
from parflex.simulation.problem import Problem
from parflex.trajectories.polynomials import constant

Array = np.ndarray
LONG = 100.0  # s^2, of stiffness in the matrix: vibrations above 1 Hz come to rest to some thousandths in one step
STEPS = 40
FAR = 0.3  # in units of the rates: longer steps leave the domain of the tangent
SLOW = 0.7  # of the step before: longer ones come to no end
ROUNDING = 1e-13  # steps in the same units that are no more than that
SMALL = 1e-9  # steps that do not become shorter any more, but are as short as this, are rounding too


def settled(problem: Problem, q: Array, loads: Mapping[str, Sequence[float]]) -> Array | None:
    """Positions near `q` at which bodies are at rest with motors held; None where programs do not find them."""
    programs = problem.stepping.get("pairs") or problem.stepping.get("real")
    if programs is None or not problem.driven or problem.gaps is not None:
        return None
    motors = [q[problem.robot.tree.links[problem.robot.tree.link_of_rate[k]].q.start] for k in problem.robot.actuated]
    system = problem.system(constant(np.concatenate([motors, *(loads[frame] for frame in problem.wrenches)])))
    work = new_work(system, 1, 1)
    paired, count = "pairs" in problem.stepping, len(system.free)
    gates = np.zeros(len(system.slack))
    factor, solve = programs.kernels
    still, before = np.concatenate([np.zeros(system.rates), gates, [0.0, 0.0, LONG, 0.0]]), np.inf
    for _ in range(STEPS):
        (q, _), pushed = _evaluated(system, work, q, np.zeros(count))
        miss, factors = np.concatenate([pushed, np.zeros(count if paired else 0)]), factor.one(np.append(q, still))
        step = LONG * solve.one(np.concatenate([miss, factors]))[:count]
        size = float(np.abs(step / system.units).max(initial=0.0))
        if not size <= FAR or (size > SLOW * before and size > SMALL):
            return None
        if size <= ROUNDING or size > SLOW * before:
            return q
        q, before = q + _evaluated(system, work, q, step)[0][1], size
        for k in system.quaternions:
            q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
    return None


def _evaluated(system: System, work: Work, q: Array, rates: Array) -> tuple[Array, Array]:
    """Closed positions and their rates of change, then accelerations of the free rates, at given free rates."""
    from parflex.integrators.common import record

    qd = np.zeros(system.rates)
    qd[system.free] = rates
    x, y = np.empty(work.x.shape[1] - len(system.constants)), np.empty(system.outputs + 2)
    record(system, work, 0.0, q.copy(), qd, x, y)
    return y[: 2 * system.positions].reshape(2, -1), y[2 * system.positions + system.free]
