"""What an impulse of the motors does to a robot: rates jump, positions do not.

Motors that are given new rates at once push with impulses; joints and closures answer with impulses that do no work.
Momentum balance M (after - before) = J_tot^T r + E_a p makes the rates behind it those with the least change in the
kinetic metric, 1/2 (after - before)^T M (after - before), among all that closures and motors allow. Forces that stay
finite (gravity, springs, friction, damping) do nothing in no time.
"""

from __future__ import annotations

import numpy as np
import scipy

from parflex.recursion.dynamics import mass_matrix
from parflex.robot.configuration import Configuration

Array = np.ndarray


def impulse_of_motors(here: Configuration, before: Array, motor_rates: Array) -> tuple[Array, Array]:
    """All rates behind an impulse that gives the motors new rates, and the impulses of the motors.

    Their work is p . (before + after) / 2 over the motors: all that the kinetic energy changes by.
    """
    robot, N = here.robot, here.motions
    M = mass_matrix(robot.tree, here.at)
    motors = list(robot.actuated)
    driven = N[motors] / robot.tree.rate_units[motors][:, None]
    s = np.linalg.lstsq(driven, motor_rates / robot.tree.rate_units[motors], rcond=1e-9)[0]
    free = N @ scipy.linalg.null_space(driven, rcond=1e-9)
    after = N @ s
    after = after + free @ _positive(free.T @ M @ free, free.T @ (M @ (before - after)))
    push = N.T @ (M @ (after - before))
    return after, np.linalg.lstsq(N[motors].T, push, rcond=1e-9)[0]


def _positive(A: Array, b: Array) -> Array:
    """Solve A x = b; motions without mass stay as they are."""
    if not len(b):
        return b
    size = np.sqrt(np.maximum(np.diag(A), 0.0))
    size[size == 0.0] = 1.0
    return np.linalg.lstsq(A / np.outer(size, size), b / size, rcond=1e-13)[0] / size
