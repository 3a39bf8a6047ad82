"""Where a robot comes to rest that is let go: downhill from a state, in steps within which its tangent is a guide."""

from __future__ import annotations

import numpy as np

from parflex.closure.mobility import reduction
from parflex.errors import SingularError
from parflex.models.elastic.loads_at_rest import Loading, tangent_stiffness
from parflex.models.elastic.resting.static_newton import Found, closed_step, newton, no_motion_gains
from parflex.models.elastic.stiff_system import rate_units
from parflex.robot.configuration import Configuration

Array = np.ndarray
MOST = 100  # steps
REACH = 0.3  # longest step, as an angle or in typical lengths
SHORTEST = 1e-9  # step that still gains nothing: there is no way down
FAR = 8.0  # way in the same units: what has not come to rest until then falls on


def fallen(here: Configuration, loading: Loading) -> Found | None:
    """The stable equilibrium that lies downhill from a state; None where the way down does not end."""
    reach, travel, steps = REACH, 0.0, 0
    try:
        while steps < MOST and reach > SHORTEST and travel < FAR:
            steps += 1
            units = rate_units(here)
            K = tangent_stiffness(here, loading) * np.outer(units, units)
            c = here.reduction.forces(loading.forces(here)) * units
            x, inside = _downhill((K + K.T) / 2, c, reach)
            if inside and no_motion_gains(K):
                found = newton(here, loading)
                if not found.stuck and _near(here, found.configuration, 2 * REACH) and _stable(found, loading):
                    return Found(found.configuration, steps + found.steps)
            there = closed_step(here, units * x)
            gain = 0.0
            if there is not None:
                onward = reduction(there.closure_jacobian, here.reduction.partition)
                gain = -float((c + onward.forces(loading.forces(there)) * units) @ x) / 2
            if there is None or not gain > 0.0:
                reach = min(reach, float(np.linalg.norm(x))) / 3
                continue
            here, travel = there, travel + float(np.linalg.norm(x))
            reach = min(REACH, 2 * reach)
    except (SingularError, np.linalg.LinAlgError):
        return None
    return None


def _stable(found: Found, loading: Loading) -> bool:
    at = found.configuration
    units = rate_units(at)
    return no_motion_gains(tangent_stiffness(at, loading) * np.outer(units, units))


def _near(one: Configuration, other: Configuration, reach: float) -> bool:
    tree = one.robot.tree
    return bool(np.abs(one.q - other.q).max(initial=0.0) <= reach * max(1.0, tree.length))


def _downhill(K: Array, c: Array, reach: float) -> tuple[Array, bool]:
    """The step of least energy no longer than `reach`, and whether it is that of Newton's method."""
    values, vectors = np.linalg.eigh(K)
    along = vectors.T @ c
    top = max(float(np.abs(values).max(initial=0.0)), 1e-300)

    def step(shift: float) -> Array:
        with np.errstate(over="ignore"):
            return np.clip(-along / (values + shift), -1e9, 1e9)

    if values[0] > 1e-12 * top and np.linalg.norm(step(0.0)) <= reach:
        return vectors @ step(0.0), True
    low = max(0.0, -float(values[0])) + 1e-12 * top
    if np.linalg.norm(step(low)) <= reach:  # in balance along what would grow: nothing chooses a side
        return vectors @ step(low), False
    high = low + float(np.linalg.norm(along)) / reach + top
    for _ in range(100):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if np.linalg.norm(step(middle)) > reach else (low, middle)
        if high < 1.01 * low:
            break
    return vectors @ step(high), False
