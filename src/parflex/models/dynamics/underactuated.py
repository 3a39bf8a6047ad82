"""The inverse model of a robot with fewer motors than freedoms: what has no motor moves by itself.

M qdd + c = J_a^T tau and the accelerations that are given, as many as motors, are solved together, theory (17).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from parflex.errors import InputError
from parflex.forces.forces import Wrench, values_in_motion
from parflex.forces.reactions import reactions_of
from parflex.forces.spare_motors import Sharing
from parflex.models.dynamics.reduced import Result, state_at
from parflex.models.elastic.flexible_inverse import driven_by
from parflex.records import count_of
from parflex.robot.configuration import Configuration
from parflex.robot.rates import Bias, requested_rates

Array = np.ndarray
FEW_MOTORS = "fewer motors than degrees of freedom"


def underactuated_inverse(
    configuration: Configuration,
    velocity: Mapping[str, float] | None,
    acceleration: Mapping[str, float] | None,
    wrench: Wrench | None,
    reactions: bool,
    sharing: Sharing,
) -> Result:
    """Efforts for given accelerations of motors (others rest) or of as many frames and joints; the rest follows."""
    qd = configuration.rates(velocity)
    b = configuration.acceleration_bias(qd)
    rows, wanted = _given(configuration, acceleration, qd, b)
    return driven_with_free(configuration, qd, rows, wanted, wrench, reactions, sharing)


def driven_with_free(
    configuration: Configuration,
    qd: Array,
    rows: Array,
    wanted: Array,
    wrench: Wrench | None,
    reactions: bool,
    sharing: Sharing,
) -> Result:
    """Efforts at which `rows` of all accelerations are as `wanted`, and how the free coordinates move."""
    robot, state = configuration.robot, state_at(configuration, qd, wrench)
    shared, qdd, lost = driven_by(state, rows @ configuration.J, wanted, sharing)
    tau = shared.tau
    free = {robot.tree.rate_names[k]: float(qdd[k]) for k in configuration.free_rates(rows)}
    names = ", ".join(f"'{name}'" for name in free)
    warnings = [*robot.warnings, *configuration.condition.warnings()]
    count = f"{count_of(len(tau), 'motor')} for {count_of(len(state.mass_matrix), 'freedom')}"
    warnings.append(f"{FEW_MOTORS} ({count}): {names} {'moves' if len(free) == 1 else 'move'} freely")
    f = state.forces(qdd) - lost
    found = reactions_of(configuration, qd, qdd, f, tau, wrench, warnings) if reactions else None
    elements = values_in_motion(configuration, qd, lambda: f, tau)
    efforts = dict(zip(robot.actuated_names, (float(value) for value in tau), strict=True))
    return Result(robot, configuration, qd, qdd, efforts, False, found, warnings, elements=elements, free=free)


def _given(
    configuration: Configuration, acceleration: Mapping[str, float] | None, qd: Array, b: Array
) -> tuple[Array, Array]:
    """Rows of all rates that are given, and their accelerations less what the rates alone cause."""
    robot = configuration.robot
    requested = requested_rates(configuration, acceleration or {}, Bias(qd, b))
    motors = list(robot.actuated)
    if not requested.frames and set(requested.joints) <= set(motors):
        own = np.array([requested.joints.get(k, 0.0) for k in motors])
        return np.eye(robot.tree.n)[motors], own - b[motors]
    requested.refuse_contradicted()
    requested.refuse_impossible()
    count = len(requested.values)
    if not count == requested.rank == len(motors):
        raise InputError(
            f"{count_of(count, 'acceleration')} ({requested.rank} independent) for {count_of(len(motors), 'motor')}: the "
            "rest moves freely",
            key="acceleration",
            value=count,
            hint="give accelerations of motors, or as many of frames and joints as there are motors",
        )
    return requested.rows * requested.units[:, None], requested.values * requested.units
