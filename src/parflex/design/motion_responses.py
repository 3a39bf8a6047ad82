"""Responses of robots in a motion of their file: energy, and how far inertia forces displace a frame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parflex.design.design_state import DesignState
from parflex.design.on_the_way.motion_instants import MotionInstants
from parflex.design.on_the_way.peaks import largest_on_the_way
from parflex.design.rigid_motion import RigidState
from parflex.design.vibrating import HeldState
from parflex.errors import InputError
from parflex.models.dynamics.forces import tree_forces
from parflex.spatial.dual import Sensitive, plain_values, slopes, with_slopes

Array = np.ndarray
# of Simpson's rule along a motion, one after the other until it converges; no multiples, so that no vibration is met
# at the same phases again
STEPS = (24, 42, 70, 118, 200, 336, 570)
STILL = 5e-3  # relative change: powers have kinks where motors begin to brake, and each instant costs milliseconds


def energy(state: DesignState, argument: str) -> Any:
    """Work of all motors in a motion of the file, whether they drive or brake: integral of the sum of powers in size.

    A path of the end effector stays, and motors follow; motors that are told what to do go on doing it.
    """
    instants = MotionInstants(state, argument, f"energy:{argument}")
    before = _energy(instants, STEPS[0], True)
    for steps in STEPS[1:]:
        found = _energy(instants, steps, True)
        if abs(found - before) <= STILL * abs(found):
            return _energy(instants, steps, False) if state.keys else found
        before = found
    raise InputError(
        f"the energy of '{argument}' does not converge with {STEPS[-1]} steps",
        key="response",
        value=f"energy:{argument}",
        hint="name a shorter motion, or one with fewer periods",
    )


def _energy(instants: MotionInstants, steps: int, plain: bool) -> Any:
    """The integral by Simpson's rule, part by part between jumps."""
    total: Any = 0.0
    for times in instants.smooth_parts(steps, even=True):
        weights = np.ones(len(times))
        weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
        weights *= (times[-1] - times[0]) / (len(times) - 1) / 3
        for k, (t, weight) in enumerate(zip(times.tolist(), weights, strict=True)):
            rigid = RigidState(instants.state_at(t, k == 0, plain))
            rates = rigid.rates[list(instants.robot.actuated)]
            powers = [abs(effort * rate) for effort, rate in zip(rigid.efforts, rates, strict=True)]
            total = total + weight * sum(powers, 0.0)
    return total


def dynamic_error(state: DesignState, argument: str) -> Any:
    """How far a frame is from its place in the motion: bodies deform under gravity, inertia forces and the wrench."""
    frame = argument.rpartition("@")[0] if "@" in argument else argument
    frame = frame or state.robot.tree.end_effector
    state.robot.tree.place(frame)
    if "@" in argument:
        return largest_on_the_way(state, f"dynamic-error:{argument}", lambda there: dynamic_error(there, frame))
    given = state.circumstances
    if not given.velocity and not given.acceleration:
        raise InputError(
            "no motion is given, so that there is no dynamic error",
            key="velocity",
            value=f"dynamic-error:{argument}",
            hint="give velocity and acceleration, or ask for 'error'",
        )
    plain = replace(given, velocity=None, acceleration=None, about="undeformed")
    held = HeldState(DesignState(state.robot, state.pose, state.keys, plain, state.design))
    rigid = RigidState(state)
    here, count = held.model.configuration, state.count
    qd, qdd = (plain_values(part).astype(float) for part in (rigid.rates, rigid.accelerations))
    x = held.solver.solve(-here.reduction.forces(tree_forces(here, qd, qdd, given.wrench, given.without)))
    if not count:
        moved = (here.frame_rows(frame) @ (here.J @ x))[:3]
        return np.sqrt(moved @ moved)
    there = held.there
    forces = tree_forces(there, rigid.rates, rigid.accelerations, given.wrench, given.without)
    left = there.pulled(forces + held.pushed_back(there.along(x[:, None]))[:, 0])
    dx = held.solver.solve(-slopes(left, count, Sensitive), refuse=False)
    bent = there.along(with_slopes(x, dx, Sensitive)[:, None])[:, 0]
    moved = (there.frame_rows(frame) @ bent)[:3]
    return np.sqrt(moved @ moved)
