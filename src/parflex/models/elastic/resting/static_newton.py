"""Newton's method for a robot at rest: damped steps along the motions that its loops allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.closure.mobility import reduction
from parflex.closure.newton import CLOSED
from parflex.models.elastic.loads_at_rest import Loading, tangent_stiffness
from parflex.models.elastic.stiff_system import StiffnessSolver, rate_units
from parflex.robot.configuration import Configuration

Array = np.ndarray
STEPS = 60
STRIDE = 0.3  # longest Newton step, as an angle or in typical lengths: longer ones leave the domain of the tangent
CLOSING = 12  # Newton steps that close the loops after a step: more are needed only where the step was far too long
HALVINGS = 8  # of a step that does not help: a tangent that helps over less of its way is no guide
UNSTABLE = -1e-9  # of the largest stiffness: below is more than rounding
FINE = 1e-12  # a step this short, in the same units, is the last: the next would be rounding
FEW_STEPS = 5  # Newton steps up to which the loads move the robot about as its first tangent says
TOLD = 0.5  # of a motion: by so much the tangent before it may miss where it ends, unless that is another branch
SAME = 1e-6  # of a coordinate in m or rad: nearer states are one


@dataclass(frozen=True)
class Found:
    """Where Newton ended, after how many steps, and whether it is stuck there.

    It is `steady` if there were few steps, through states that would all be stable under the loads, and it is about
    where the first tangent said.
    """

    configuration: Configuration
    steps: int
    stuck: bool = False
    steady: bool = False


def is_stable(at: Configuration, loading: Loading) -> bool:
    """Whether no motion from an equilibrium sets energy free."""
    return no_motion_gains(tangent_stiffness(at, loading) * np.outer(rate_units(at), rate_units(at)))


def no_motion_gains(K: Array) -> bool:
    """Whether no eigenvalue of a stiffness without units is negative; most are told by their factors alone."""
    K = (K + K.T) / 2
    if not np.isfinite(K).all():
        return False
    try:
        np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        values = np.linalg.eigvalsh(K)
        return bool(values.min(initial=0.0) >= UNSTABLE * np.abs(values).max(initial=0.0))
    return True


def newton(here: Configuration, loading: Loading, most: int = STEPS) -> Found:
    """Where damped steps from a pose end."""
    travel, steady, begun = 0.0, True, here.q
    told = begun
    for step in range(1, most + 1):
        units = rate_units(here)
        F = loading.forces(here)
        c, K = here.reduction.forces(F), tangent_stiffness(here, loading, acting=F)
        steady = steady and step <= FEW_STEPS and no_motion_gains(K * np.outer(units, units))
        solver = StiffnessSolver(here, K)
        x = solver.solve(-c)
        size = float(np.linalg.norm(x / units))
        if step == 1:
            told = here.robot.tree.moved(here.q, here.J @ x)
        if size <= max(1e-7 * travel, FINE):  # convergence is quadratic: after this step only rounding is left
            there = closed_step(here, x) or here
            return Found(there, step, steady=steady and bool(as_told(begun[None], told[None], there.q[None])[0]))
        share = min(1.0, STRIDE / float(np.abs(x / units).max()))
        found = _damped_step(here, loading, solver, x, share)
        if found is None:
            if size < 1e-9:  # rounding: steps do not become shorter any more
                return Found(here, step)
            break
        here, share = found
        travel += share * size
    return Found(here, step, stuck=True)


def as_told(before: Array, told: Array, after: Array) -> Array:
    """Rows of positions that went about where the tangent said: what jumps to another branch does not."""
    missed, moved = np.linalg.norm(after - told, axis=1), np.linalg.norm(after - before, axis=1)
    return missed <= TOLD * moved + SAME


def closed_step(here: Configuration, x: Array) -> Configuration | None:
    """The pose after a step of the independent coordinates, loops closed by the dependent ones."""
    robot = here.robot
    q = robot.tree.moved(here.q, here.J @ x)
    if robot.closures.size:
        dependent = here.reduction.partition.dependent
        q, error = robot.assembler.newton(q, dependent, list(robot.closures.rows), CLOSING)
        if not error <= CLOSED:
            return None
    return Configuration(robot, q)


def _damped_step(
    here: Configuration, loading: Loading, solver: StiffnessSolver, x: Array, share: float
) -> tuple[Configuration, float] | None:
    """The longest of ever shorter steps after which the same tangent asks for a shorter step than now."""
    units, size = rate_units(here), float(np.linalg.norm(x / rate_units(here)))
    for _ in range(HALVINGS):
        there = closed_step(here, share * x)
        if there is not None:
            reduced = reduction(there.closure_jacobian, here.reduction.partition)
            ahead = solver.solve(-reduced.forces(loading.forces(there)), refuse=False)
            if np.linalg.norm(ahead / units) < size:  # NaN is refused too
                return there, share
        share /= 2
    return None
