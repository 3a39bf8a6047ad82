"""Khalil's form of a robot whose legs end in a ball (in the plane: a hinge) on one platform, over any scalar.

Each leg is reduced to what the platform feels at its end; the platform is written in world axes. [Khalil2007, eqs.
(20)-(22)] and (28)-(30). The general reduction of `configuration` gives the same numbers; this one needs far fewer
operators.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.bodies import RigidBody
from parflex.closure.closed_form import Angle, CrossedSlide, TwoBars, recognise
from parflex.models.robot import Robot
from parflex.recursion import joint_forces, mass_matrix, motion, newton_euler, pose
from parflex.recursion.kinematics import Motion, Pose, jacobians, place_jacobian, turning
from parflex.spatial import cross
from parflex.spatial.linear import solve
from parflex.tree import Place, Tree

Array = np.ndarray


@dataclass(frozen=True)
class Leg:
    """One leg as a tree of its own, its end, where it holds the platform, and its closed form if it has one."""

    name: str
    tree: Tree
    end: Place
    attachment: Array  # in axes of the platform
    rows: Array  # directions at the end, in its axes: three in space, two in the plane
    actuated: tuple[int, ...]  # of the leg's own rates
    motors: tuple[int, ...]  # their numbers among the robot's motors
    links: tuple[int, ...]  # numbers in the whole tree
    geometry: CrossedSlide | TwoBars | None


@dataclass(frozen=True)
class LegForm:
    """The platform's body and the legs.

    `by_columns`: motion and moments of the attachments are computed along the columns of the platform's rotation,
    which costs less where attachments share coordinates, as those of regular polygons do.
    """

    robot: Robot
    platform: int
    body: RigidBody
    legs: tuple[Leg, ...]
    planar: bool
    by_columns: bool = False

    @property
    def closed_form(self) -> bool:
        """Whether all legs follow from the platform without iteration."""
        return all(leg.geometry is not None for leg in self.legs)


@dataclass(frozen=True)
class PlatformMotion:
    """World rotation and position, velocity, angular velocity, acceleration less gravity, angular acceleration."""

    R: Array
    p: Array
    v: Array
    w: Array
    a: Array
    al: Array


@dataclass(frozen=True)
class LegMotion:
    """A leg at a pose in a motion, with the arm from the platform's origin to its end in world axes."""

    leg: Leg
    at: Pose
    arm: Array
    J: Array
    qd: Array
    qdd: Array
    moving: Motion


def leg_form(robot: Robot) -> LegForm | None:
    """The leg form of a robot, or None if it is not of this kind."""
    found = find_leg_form(robot)
    return found if isinstance(found, LegForm) else None


def find_leg_form(robot: Robot) -> LegForm | str:
    """The leg form of a robot, or why it has none."""
    tree = robot.tree
    free = [j for j, link in enumerate(tree.links) if link.joint.kind in ("free", "planar")]
    if tree.elastic:
        return "bodies bend"
    if len(free) != 1:
        return "it has no platform" if not free else "it has several free bodies"
    platform = tree.links[free[0]]
    turned = not np.array_equal(platform.rotation, np.eye(3)) or platform.position.any()
    if robot.locked or platform.parent >= 0 or turned:
        return "joints are locked" if robot.locked else "its platform is not placed in the axes of the world"
    end, joints = ("a hinge", 2) if tree.planar else ("a ball", 3)
    legs: list[Leg] = []
    for loop in robot.closures.loops:
        ends = [place for place in (loop.first, loop.second) if place.link == free[0]]
        others = [place for place in (loop.first, loop.second) if place.link != free[0]]
        if len(ends) != 1:
            return f"closure '{loop.name}' does not end on the platform"
        if len(loop.rotations) or loop.turning == "universal" or len(loop.translations) != (2 if tree.planar else 3):
            return f"closure '{loop.name}' is not {end}"
        leg = _leg(robot, ends[0], others[0], loop.name)
        if leg is None:
            return f"the leg of closure '{loop.name}' has not {joints} joints with one axis each"
        if any(set(leg.links) & set(other.links) for other in legs):
            return "legs share links"
        legs.append(leg)
    used = {j for leg in legs for j in leg.links} | set(free)
    if not legs or len(used) != len(tree.links):
        return "some link belongs to no leg"
    if len(robot.actuated) != robot.mobility.freedoms(tree.n):
        return "it has not as many motors as freedoms"
    return LegForm(robot, free[0], platform.body, tuple(legs), tree.planar)


def _leg(robot: Robot, attachment: Place, end: Place, name: str) -> Leg | None:
    tree = robot.tree
    links = tuple(reversed(tree.path(end.link)))
    if not links or any(tree.links[j].joint.kind not in ("revolute", "prismatic") for j in links):
        return None
    if len(links) != (2 if tree.planar else 3):
        return None
    own = []
    for k, j in enumerate(links):
        link = tree.links[j]
        one, none = slice(k, k + 1), slice(k + 1, k + 1)
        own.append(replace(link, parent=k - 1, q=one, v=one, e=none, e_v=none))
    leg_tree = replace(tree, links=tuple(own), places={})
    numbers = [tree.links[j].v.start for j in links]
    actuated = tuple(k for k, number in enumerate(numbers) if number in robot.actuated)
    motors = tuple(robot.actuated.index(numbers[k]) for k in actuated)
    place = Place(len(links) - 1, end.rotation, end.position)
    q = np.array([robot.home[tree.links[j].q.start] for j in links])
    rows = np.eye(3)
    if tree.planar:
        neutral = end.rotation
        for link in reversed(own):
            neutral = link.rotation @ neutral
        rows = neutral.T[:, :2].T
    geometry = recognise(leg_tree, list(range(len(own))), place, q)
    return Leg(name, leg_tree, place, attachment.position, rows, actuated, motors, links, geometry)


def end_masses_on_platform(form: LegForm) -> LegForm:
    """The same robot with the mass of each last link moved to the platform.

    A point mass in the centre of a ball or on the axis of a hinge belongs to either side, so the forces do not change.
    """
    body, legs = form.body, []
    for leg in form.legs:
        last = leg.tree.links[-1]
        point = RigidBody.from_centre(last.body.m, leg.end.position, np.zeros((3, 3)))
        links = (*leg.tree.links[:-1], replace(last, body=last.body - point))
        legs.append(replace(leg, tree=replace(leg.tree, links=links)))
        body = body + RigidBody.from_centre(last.body.m, leg.attachment, np.zeros((3, 3)))
    return replace(form, body=body, legs=tuple(legs))


# -- kinematics of one leg -----------------------------------------------------------------------------


def leg_values(leg: Leg, platform_R: Array, platform_p: Array, angle: Angle) -> list[Any]:
    """Joint values of a leg with a closed form."""
    assert leg.geometry is not None
    return leg.geometry.values(platform_p + platform_R @ leg.attachment, angle)


def _down(leg: Leg, at: Pose, vector: Array) -> Array:
    """A world vector in the rows of the leg's end."""
    for k in range(len(leg.tree.links)):
        vector = at.from_parent(leg.tree, k, vector)
    return leg.rows @ (leg.end.rotation.T @ vector)


def _up(leg: Leg, at: Pose, rows: Array) -> Array:
    """Components along the rows of the leg's end as a world vector."""
    vector = leg.end.rotation @ (leg.rows.T @ rows)
    for k in reversed(range(len(leg.tree.links))):
        vector = at.to_parent(leg.tree, k, vector)
    return vector


def leg_motion(form: LegForm, leg: Leg, q: Any, platform: PlatformMotion) -> LegMotion:
    """Rates and accelerations of a leg that follows the platform, theory (19)."""
    tree, gravity = leg.tree, form.robot.tree.gravity
    at = pose(tree, q)
    J_v, _ = place_jacobian(tree, jacobians(tree, at), leg.end)
    J = leg.rows @ J_v
    arm = platform.R @ leg.attachment
    U = turning(platform.w, platform.al)
    if form.by_columns:
        velocity, acceleration = cross(platform.w, platform.R) @ leg.attachment, (U @ platform.R) @ leg.attachment
    else:
        velocity, acceleration = cross(platform.w, arm), U @ arm
    qd = solve(J, _down(leg, at, platform.v + velocity))
    end_acceleration = _down(leg, at, platform.a + acceleration)
    still = np.zeros(tree.n)
    _, _, bias, _ = motion(tree, at, qd, still, -gravity).of(leg.end)
    qdd = solve(J, end_acceleration - leg.rows @ bias)
    moving = motion(tree, at, qd, qdd, -gravity)
    if len(leg.rows) == 3 and not leg.end.position.any():
        # the end is the origin of the last link: its acceleration is known, no need to come by it again
        moving.a[-1] = leg.end.rotation @ (leg.rows.T @ end_acceleration)
    return LegMotion(leg, at, arm, J, qd, qdd, moving)


def platform_wrench(body: RigidBody, platform: PlatformMotion) -> tuple[Array, Array]:
    """Force and moment that move the platform, in world axes at its origin."""
    R = platform.R
    w, al = R.T @ platform.w, R.T @ platform.al
    force, moment = body.wrench(turning(w, al), np.zeros(3))
    return body.m * platform.a + R @ force, R @ moment + cross(R @ body.S, platform.a)


# -- models --------------------------------------------------------------------------------------------


def _freedoms(form: LegForm, force: Array, moment: Array) -> Array:
    """A world wrench along the platform's freedoms."""
    return np.array([force[0], force[1], moment[2]]) if form.planar else np.concatenate([force, moment])


def motor_columns(form: LegForm, states: list[LegMotion]) -> Array:
    """Columns: wrench on the platform per unit effort of each motor, J_r^-T of [Khalil2007, eq. (80)]."""
    columns: list[Any] = [None] * len(form.robot.actuated)
    for state in states:
        for own, motor in zip(state.leg.actuated, state.leg.motors, strict=True):
            unit = np.eye(state.leg.tree.n)[own]
            push = _up(state.leg, state.at, solve(state.J.T, unit))
            columns[motor] = _freedoms(form, push, cross(state.arm, push))
    return np.array(columns).T


def inverse(form: LegForm, values: list[Any], platform: PlatformMotion, without: tuple[str, ...] = ()) -> Array:
    """Efforts of the motors, theory (20), (21); `values` are the joint values of each leg."""
    force, moment = platform_wrench(form.body, platform)
    direct = np.zeros(len(form.robot.actuated), dtype=object)
    states, pushes = [], []
    for leg, q in zip(form.legs, values, strict=True):
        state = leg_motion(form, leg, q, platform)
        states.append(state)
        H = newton_euler(leg.tree, state.at, state.moving).forces + joint_forces(
            leg.tree, q, state.qd, state.qdd, without
        )
        passive = np.array([0.0 if k in leg.actuated else H[k] for k in range(leg.tree.n)], dtype=H.dtype)
        pushes.append(_up(leg, state.at, solve(state.J.T, passive)))
        direct[list(leg.motors)] = H[list(leg.actuated)]
    legs_force, legs_moment = _summed(form, platform.R, states, pushes)
    force, moment = force + legs_force, moment + legs_moment
    shared = solve(motor_columns(form, states), _freedoms(form, force, moment))
    return shared + direct


def equations(
    form: LegForm, values: list[Any], platform: PlatformMotion, without: tuple[str, ...] = ()
) -> tuple[Array, Array, Array]:
    """A and h of A Vd + h = B tau in the platform's freedoms (world axes), and B; [Khalil2007, eqs. (28)-(30)].

    Theory (20) to (22). The platform's acceleration in `platform` is zero but for gravity.
    """
    force, moment = platform_wrench(form.body, platform)
    R = platform.R
    world = RigidBody(form.body.m, R @ form.body.S, R @ form.body.Sigma @ R.T).inertia_matrix()
    picked = [0, 1, 5] if form.planar else list(range(6))
    A = world[np.ix_(picked, picked)]
    states, pushes = [], []
    for leg, q in zip(form.legs, values, strict=True):
        state = leg_motion(form, leg, q, platform)
        states.append(state)
        H = newton_euler(leg.tree, state.at, state.moving).forces + joint_forces(
            leg.tree, q, state.qd, state.qdd, without
        )
        pushes.append(_up(leg, state.at, solve(state.J.T, H)))
        follow = solve(state.J, _follow(form, leg, state))
        A = A + follow.T @ mass_matrix(leg.tree, state.at, without) @ follow
    legs_force, legs_moment = _summed(form, R, states, pushes)
    return A, _freedoms(form, force + legs_force, moment + legs_moment), motor_columns(form, states)


def _summed(form: LegForm, R: Array, states: list[LegMotion], pushes: list[Array]) -> tuple[Array, Array]:
    """Force and moment of all legs on the platform."""
    force = sum(pushes[1:], pushes[0])
    if not form.by_columns:
        moments = [cross(state.arm, push) for state, push in zip(states, pushes, strict=True)]
        return force, sum(moments[1:], moments[0])
    moment = np.zeros(3)
    for axis in range(3):
        weighted = sum(
            (state.leg.attachment[axis] * push for state, push in zip(states, pushes, strict=True)), np.zeros(3)
        )
        moment = moment + cross(R[:, axis], weighted)
    return force, moment


def _follow(form: LegForm, leg: Leg, state: LegMotion) -> Array:
    """Velocity of the leg's end, in its rows, per unit of each freedom of the platform."""
    units = np.eye(3)
    slides, turns = ((0, 1), (2,)) if form.planar else ((0, 1, 2), (0, 1, 2))
    columns = [_down(leg, state.at, units[axis]) for axis in slides]
    columns += [_down(leg, state.at, cross(units[axis], state.arm)) for axis in turns]
    return np.array(columns).T
