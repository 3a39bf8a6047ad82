"""What follows from a platform on legs: accelerations and positions of all joints, and what is solved for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parflex.models.forms.on_legs.leg_equations import motor_columns
from parflex.models.forms.on_legs.leg_state import LegState
from parflex.robot.legs import Legs, PlatformMotion, leg_motion, to_leg_axes
from parflex.spatial.linear import scalar_type, solve
from parflex.spatial.rotations import quaternion_near

Array = np.ndarray


def all_accelerations(form: Any, state: LegState, independent: Array) -> Array:
    """Accelerations of all coordinates for those of the platform and its modes, in its own axes."""
    legs, tree = form.legs, form.robot.tree
    found: Array = np.zeros(tree.n, dtype=scalar_type(independent, state.platform.R))
    found[form.independent] = independent
    joint, own = tree.links[legs.platform].joint, found[tree.links[legs.platform].v]
    a, al = (state.platform.R @ (S @ own) for S in (joint.S_v, joint.S_w))
    driven = replace(state.platform, a=a - tree.gravity, al=al)
    for leg, joints in zip(legs.legs, state.values, strict=True):
        moving = leg_motion(legs, leg, joints, driven)
        qdd = moving.qdd
        if legs.elastic is not None:
            modes = independent[len(own) :]
            bending = driven.R @ legs.elastic.rate(leg.number, modes)
            qdd = qdd + solve(moving.J, to_leg_axes(leg, moving.at, bending))
        found[[tree.links[j].v.start for j in leg.links]] = qdd
    return found


def systems(legs: Legs, state: LegState, motors: bool) -> list[Array]:
    """Without units: what each leg's joints do at its end; and the rates of the motors in those of the platform."""
    tree = legs.robot.tree
    units, length = tree.rate_units, tree.length
    states = [leg_motion(legs, leg, own, state.platform) for leg, own in zip(legs.legs, state.values, strict=True)]
    found = [one.J * units[[tree.links[j].v.start for j in one.leg.links]] / length for one in states]
    if motors and legs.elastic is None:
        slides = 2 if legs.planar else 3
        rates = motor_columns(legs, states, state.platform.R).T
        freedoms = np.r_[np.full(slides, length), np.ones(rates.shape[1] - slides)]
        found.append(rates * freedoms / units[list(legs.robot.actuated)][:, None])
    return found


def with_pose(legs: Legs, q: Any, own: Array) -> Any:
    """All positions with other ones of the platform."""
    placed = q.copy()
    placed[legs.robot.tree.links[legs.platform].q] = own
    return placed


def platform_position(legs: Legs, platform: PlatformMotion, q: Any) -> Array:
    """Coordinates of the platform at its pose, in the turn, or with the sign of the quaternion, of those in `q`."""
    before, R = q[legs.robot.tree.links[legs.platform].q], platform.R
    if not legs.planar:
        return np.concatenate([platform.p, quaternion_near(R, before[3:])])
    c, s = np.cos(before[2]), np.sin(before[2])
    return np.array([*platform.p[:2], before[2] + np.arctan2(R[1, 0] * c - R[0, 0] * s, R[0, 0] * c + R[1, 0] * s)])


def twist_names(legs: Legs) -> list[str]:
    """Components of the platform's twist, in the order of its freedoms."""
    words = ("vx", "vy", "wz") if legs.planar else ("vx", "vy", "vz", "wx", "wy", "wz")
    return [f"{legs.robot.tree.links[legs.platform].name}.{word}" for word in words]
