"""Responses of robots in a motion of their file: energy, and displacement of a frame by inertia forces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parflex.design.design_state import DesignState
from parflex.design.linear_model import HeldState
from parflex.design.motion_instants import MotionInstants
from parflex.design.motion_work import integral_of_sizes
from parflex.design.peaks import largest_on_the_way
from parflex.design.rigid_motion import RigidState
from parflex.design.rigid_responses import powers
from parflex.design.smooth_pieces import SmoothPieces
from parflex.errors import InputError
from parflex.forces.forces import tree_forces
from parflex.spatial.dual import Sensitive, slopes, with_slopes, without_slopes

Array = np.ndarray


def energy(state: DesignState, argument: str) -> Any:
    """Work of all motors in a motion of the file, whether they drive or brake: integral of the sum of powers in size.

    A path of the end effector stays, and motors follow; motors that are told what to do go on doing it.
    """
    response = f"energy:{argument}"
    return integral_of_sizes(SmoothPieces(MotionInstants(state, argument, response), response, powers))


def dynamic_error(state: DesignState, argument: str) -> Any:
    """How far a frame is from its place in the motion: bodies deform under gravity, inertia forces and the wrench."""
    frame = argument.rpartition("@")[0] if "@" in argument else argument
    frame = frame or state.robot.tree.end_effector
    state.robot.tree.place(frame)
    if "@" in argument:
        response = f"dynamic-error:{argument}"
        return largest_on_the_way(state, response, lambda rigid: _displacement(rigid, frame), norm=True)
    circumstances = state.case
    if not circumstances.velocity and not circumstances.acceleration:
        raise InputError(
            "no motion is given, so that there is no dynamic error",
            key="velocity",
            value=f"dynamic-error:{argument}",
            hint="give velocity and acceleration, or ask for 'error'",
        )
    displacement = _displacement(RigidState(state), frame)
    return np.sqrt(displacement @ displacement)


def _displacement(rigid: RigidState, frame: str) -> Array:
    """How far a frame is displaced, in world axes."""
    state = rigid.state
    circumstances = state.case
    plain = replace(circumstances, velocity=None, acceleration=None, about="undeformed")
    held = HeldState(DesignState(state.robot, state.pose, state.keys, plain, state.design))
    configuration, count = held.model.configuration, state.count
    qd, qdd = (without_slopes(part).astype(float) for part in (rigid.rates, rigid.accelerations))
    x = held.solver.solve(-configuration.reduction.forces(tree_forces(configuration, qd, qdd, circumstances.wrench)))
    if not count:
        return (configuration.frame_rows(frame) @ (configuration.J @ x))[:3]
    there = held.there
    forces = tree_forces(there, rigid.rates, rigid.accelerations, circumstances.wrench)
    left = there.pulled(forces + held.stiffness_times(there.along(x[:, None]))[:, 0])
    dx = held.solver.solve(-slopes(left, count, Sensitive), refuse=False)
    bent = there.along(with_slopes(x, dx, Sensitive)[:, None])[:, 0]
    return (there.frame_rows(frame) @ bent)[:3]
