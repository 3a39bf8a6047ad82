"""Responses of robots in a motion of their file: energy, and how far inertia forces displace a frame."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.design.answers import value_of
from parflex.design.design_state import DesignState
from parflex.design.rigid_motion import RigidState
from parflex.design.vibrating import HeldState
from parflex.errors import InputError, did_you_mean
from parflex.models.configuration import Configuration
from parflex.models.dynamics.forces import tree_forces
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.recursion import motion
from parflex.spatial.dual import Sensitive, plain_values, slopes, with_slopes

Array = np.ndarray
# of Simpson's rule along a motion, one after the other until it converges; no multiples, so that no vibration is met
# at the same phases again
STEPS = (24, 42, 70, 118, 200, 336, 570)
STILL = 5e-3  # relative change: powers have kinks where motors begin to brake, and each instant costs milliseconds
INDEPENDENT = 1e-8  # of the largest singular value
WORDS = ("x", "y", "z", "wx", "wy", "wz")


@dataclass(frozen=True, eq=False, repr=False)
class MotionSample(Record):
    """An instant of a motion: where the robot is, and what its end effector does there."""

    q: Array
    velocity: dict[str, float]
    acceleration: dict[str, float]


def energy(state: DesignState, argument: str) -> Any:
    """Work of all motors in a motion of the file, whether they drive or brake: integral of the sum of powers in size.

    The motion of the end effector stays, and motors follow.
    """
    found = _energy(state, argument, STEPS[0])
    for steps in STEPS[1:]:
        before, found = found, _energy(state, argument, steps)
        if abs(value_of(found) - value_of(before)) <= STILL * abs(value_of(found)):
            return found
    raise InputError(
        f"the energy of '{argument}' does not converge with {STEPS[-1]} steps",
        key="response",
        value=f"energy:{argument}",
        hint="name a shorter motion, or one with fewer periods",
    )


def _energy(state: DesignState, argument: str, steps: int) -> Any:
    """The integral by Simpson's rule."""
    length, samples = motion_samples(state.robot, argument, steps)
    weights = np.ones(steps + 1)
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
    total: Any = 0.0
    for sample, weight in zip(samples, weights * length / steps / 3, strict=True):
        given = replace(state.circumstances, velocity=sample.velocity, acceleration=sample.acceleration)
        pose = Configuration(state.robot, sample.q)
        rigid = RigidState(DesignState(state.robot, pose, state.keys, given, state.design))
        rates = rigid.rates[list(state.robot.actuated)]
        powers = [abs(effort * rate) for effort, rate in zip(rigid.efforts, rates, strict=True)]
        total = total + weight * sum(powers, 0.0)
    return total


def motion_samples(robot: Robot, name: str, steps: int) -> tuple[float, list[MotionSample]]:
    """How long a motion of the file takes, and the robot at equal intervals of it, bodies undeformed."""
    from parflex.simulation.inputs.motor_motions import from_description  # which plans, and is not needed elsewhere

    motions = robot.description.motions
    if name not in motions:
        raise InputError(
            f"the robot has no motion '{name}'" if name else "no motion is named",
            key="response",
            value=f"energy:{name}",
            hint=did_you_mean(name, motions) if motions else "add [motions.NAME] to its file",
        )
    planned = from_description(robot, name, 0.0)
    length = planned.period or planned.end
    if not np.isfinite(length) or length <= 0:
        raise InputError(f"the motion '{name}' has no end", key="response", value=name, hint="name one that ends")
    rigid, near, samples = robot.locking(robot.deformations), planned.start, []
    for t in np.linspace(0.0, length, steps + 1):
        values, rates, accelerations = (dict(zip(planned.motors, row.tolist(), strict=True)) for row in planned.at(t))
        near = robot.assemble(values, near=near)
        samples.append(_sample(Configuration(rigid, near), rates, accelerations))
    return float(length), samples


def _sample(here: Configuration, rates: dict[str, float], accelerations: dict[str, float]) -> MotionSample:
    """What the end effector does, by as many components as the robot has freedoms."""
    tree = here.robot.tree
    qd = here.rates(rates)
    qdd = here.accelerations(accelerations, qd, rates)
    rows, frame = here.frame_rows(tree.end_effector), tree.end_effector
    chosen: list[int] = []
    size = np.linalg.norm(rows @ here.J) or 1.0
    for k in (0, 1, 5) if tree.planar else range(6):
        block = rows[[*chosen, k]] @ here.J
        if np.linalg.svd(block, compute_uv=False)[-1] > INDEPENDENT * size and len(block) <= here.J.shape[1]:
            chosen.append(k)
    if len(chosen) < here.J.shape[1]:  # the end effector leaves something to the motors
        return MotionSample(here.q, rates, accelerations)
    twist, pushed = rows @ qd, here.frame_acceleration(frame, motion(tree, here.at, qd, qdd))
    velocity, acceleration = ({WORDS[k]: float(part[k]) for k in chosen} for part in (twist, pushed))
    return MotionSample(here.q, velocity, acceleration)


def dynamic_error(state: DesignState, argument: str) -> Any:
    """How far a frame is from its place in the motion: bodies deform under gravity, inertia forces and the wrench."""
    frame = argument or state.robot.tree.end_effector
    state.robot.tree.place(frame)
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
