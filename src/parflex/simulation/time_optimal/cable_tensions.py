"""Driven cables pull only: tension as one more condition on time-optimal motions.

Where motors are not spare, tension follows from the motion, theory (18). Spare motors choose it: there the tension of a
cable that one motor winds bounds the effort of this motor from one side, by inertia and friction of the drum.
"""

from __future__ import annotations

import numpy as np

from parflex.closure.constraints import Coupling
from parflex.errors import InputError
from parflex.forces.forces import multipliers_of
from parflex.forces.taut_cables import cable_rows, driven_cables
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot

Array = np.ndarray
Winding = tuple[tuple[int, float], ...]  # of each cable its motor, and 1 where positive efforts wind it up, else -1
EXACT = 1e-9


def tensions(here: Configuration, f: Array, tau: Array) -> Array:
    """Of driven cables, for forces of the open tree and the efforts that balance them."""
    own = cable_rows(here.robot)
    return -multipliers_of(here, f, tau)[own] if own else np.zeros(0)


def taut_bounds(here: Configuration, f: Array) -> Array:
    """Of each driven cable the effort of its motor at which it is just taut, for forces of the open tree."""
    own = cable_rows(here.robot)
    shares = _shares(here) if own else np.zeros((0, len(f)))
    motors = shares[:, list(here.robot.actuated)]
    return shares @ f / motors.sum(axis=1)


def winding_of(here: Configuration) -> Winding:
    """The motor of each cable; cables that share motors are refused."""
    robot = here.robot
    if not cable_rows(robot):
        return ()
    motors = _shares(here)[:, list(robot.actuated)]
    turning = np.abs(motors) > EXACT * np.abs(motors).max(axis=1, keepdims=True)
    bad = (turning.sum(axis=1) != 1) | (turning @ turning.sum(axis=0) != 1)
    if bad.any():
        name = cable_names(robot)[int(np.argmax(bad))]
        raise InputError(
            f"with spare motors the cable '{name}' is not wound by a motor of its own, so that its tension is not "
            "known in time-optimal motions",
            key="element", value=name, hint="use another law",
        )  # fmt: skip
    return tuple((int(np.argmax(row)), float(np.sign(motors[k] @ row))) for k, row in enumerate(turning))


def cable_names(robot: Robot) -> list[str]:
    """Driven cables in the order of their tensions."""
    wound = driven_cables(robot)
    return [row.name for row in robot.closures.rows if row.name in wound]


def _shares(here: Configuration) -> Array:
    """Rows w (cable, rate) with tension = w . (tau - f): equations of drums, gears and lengths alone, summed up.

    A virtual motion of these that breaks the condition of one cable and no other condition: its work is that of the
    tension.
    """
    robot, J = here.robot, here.closure_jacobian
    lengths = [link.v.start for link in robot.tree.links if link.pulls_only]
    couplings = [
        J[part.start] != 0
        for part, row in zip(robot.closures.slices(), robot.closures.rows, strict=True)
        if isinstance(row, Coupling)
    ]
    moving = np.zeros(J.shape[1], dtype=bool)
    moving[lengths] = True
    for _ in couplings:
        for touched in couplings:
            moving |= touched if (touched & moving).any() else False
    chosen = [k for k in robot.free if moving[k]]
    own = cable_rows(robot)
    one = np.eye(len(J))[:, own]
    found = np.linalg.lstsq(J[:, chosen], one, rcond=EXACT)[0]
    shares = np.zeros((len(own), J.shape[1]))
    shares[:, chosen] = found.T
    off = np.abs(J[:, chosen] @ found - one).max(axis=0)
    shares[off > EXACT * max(1.0, float(np.abs(J).max()))] = np.nan
    return shares
