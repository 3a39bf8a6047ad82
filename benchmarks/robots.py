"""Robots and states of the benchmarks, the same for all contestants."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import parflex
from parflex.bodies.rigid import RigidBody
from parflex.formulations.legs import PlatformEquations
from parflex.recursion.kinematics import pose
from parflex.robot import legs as platform_legs
from parflex.robot.load import JOINT_TERMS, acting_robot
from parflex.robot.robot import Robot
from parflex.spatial.rotations import quaternion_matrix, rotation_from_vector, vector_quaternion


def with_bodies(robot: Robot, bodies: list[RigidBody]) -> Robot:
    """The robot with other bodies."""
    tree = replace(
        robot.tree, links=tuple(replace(link, body=body) for link, body in zip(robot.tree.links, bodies, strict=True))
    )
    return replace(robot, tree=tree, closures=replace(robot.closures, tree=tree))


def dense_puma() -> Robot:
    """The geometry of the Puma 560 with links of which all ten parameters differ from zero."""
    rng = np.random.default_rng(1)
    robot = parflex.load("puma560")
    bodies = []
    for _ in robot.tree.links:
        arms = rng.uniform(-0.3, 0.3, (4, 3))
        second = arms.T @ arms  # of four unit masses: a real body
        bodies.append(RigidBody(6.0, 1.5 * arms.sum(axis=0), 1.5 * second))
    return with_bodies(robot, bodies)


def physical_gough_stewart() -> Robot:
    """The Gough-Stewart robot with real bodies that need the same forces, for peers that refuse others.

    Long2014 lists base parameters. Mass in the crossing of the universal joint is at rest, so link 2 may have more
    of it; second moments of link 3 may go to link 2 or back, because a slide does not turn; of link 1 only ZZ matters.
    """
    robot = parflex.load("gough-stewart")
    along = np.outer([0.0, 0.0, 1.0], [0.0, 0.0, 1.0])
    bodies = []
    for link in robot.tree.links:
        body, number = link.body, link.name.rpartition(".")[2]
        if number == "1":
            body = replace(body, Sigma=body.I[2, 2] / 2 * np.eye(3))
        elif number == "2":
            slide = next(other for other in robot.tree.links if other.name == link.name[:-1] + "3")
            body = replace(body, m=body.m + 300.0, Sigma=body.Sigma - 1.5 * slide.rotation @ along @ slide.rotation.T)
        elif number == "3":
            body = replace(body, Sigma=body.Sigma + 1.5 * along)
        bodies.append(body)
    changed = with_bodies(robot, bodies)
    for link in changed.tree.links:
        reason = link.body.impossible()
        if reason:
            raise ValueError(f"the body of '{link.name}' is not physical: {reason}")
    return changed


def physical_3rrr() -> Robot:
    """The 3RRR robot with real bodies that move alike in the plane: half of the inertia along x, half along y."""
    robot = parflex.load("3rrr")
    bodies = []
    for link in robot.tree.links:
        body = link.body
        about_origin = np.outer(body.S, body.S) / body.m
        left = (body.I[2, 2] - np.trace(about_origin[:2, :2])) / 2
        bodies.append(replace(body, Sigma=about_origin + np.diag([left, left, 0.0])))
    return with_bodies(robot, bodies)


@dataclass(frozen=True)
class PlatformState:
    """Platform and all joints of the Gough-Stewart robot in one motion; twists in world axes."""

    p: np.ndarray
    R: np.ndarray
    v: np.ndarray
    w: np.ndarray
    a: np.ndarray
    al: np.ndarray
    quaternion: np.ndarray  # scalar first
    q: np.ndarray  # of each leg's joints, leg after leg
    qd: np.ndarray
    qdd: np.ndarray
    effort: np.ndarray

    @property
    def inverse_input(self) -> np.ndarray:
        """What parflex's inverse model takes."""
        return np.concatenate([self.p, self.R.ravel(), self.v, self.w, self.a, self.al])

    @property
    def direct_input(self) -> np.ndarray:
        """What parflex's direct model takes."""
        return np.concatenate([self.p, self.R.ravel(), self.v, self.w, self.effort])


def platform_states(robot: Robot, count: int) -> list[PlatformState]:
    """Random motions about home; joints and efforts by the NumPy models of the same recursion."""
    rng = np.random.default_rng(2)
    form = platform_legs.find_legs(acting_robot(robot, JOINT_TERMS))
    if form is None or not form.closed_form:
        raise ValueError("the robot has no legs with a closed form")
    start = pose(robot.tree, robot.home)
    states = []
    for _ in range(count):
        turn = rng.uniform(-0.2, 0.2, 3)
        R = rotation_from_vector(turn)
        p = start.position[form.platform] + rng.uniform(-0.1, 0.1, 3)
        v, w, a, al = (rng.uniform(-1, 1, 3) for _ in range(4))
        motion = platform_legs.PlatformMotion(R, p, v, w, a - robot.tree.gravity, al)
        q = [np.array(platform_legs.leg_values(form, leg, motion, lambda c, s: np.arctan2(s, c))) for leg in form.legs]
        legs = [platform_legs.leg_motion(form, leg, values, motion) for leg, values in zip(form.legs, q, strict=True)]
        effort = PlatformEquations(form, q, motion).efforts()[0].astype(float)
        joined = (np.concatenate(parts) for parts in (q, [leg.qd for leg in legs], [leg.qdd for leg in legs]))
        states.append(PlatformState(p, R, v, w, a, al, vector_quaternion(turn), *joined, effort))
        assert np.allclose(quaternion_matrix(states[-1].quaternion), R)
    return states


def serial_states(robot: Robot, count: int) -> np.ndarray:
    """Rows q, qd, qdd."""
    rng = np.random.default_rng(3)
    n = robot.tree.n
    return np.hstack([rng.uniform(-3, 3, (count, n)), rng.uniform(-2, 2, (count, n)), rng.uniform(-4, 4, (count, n))])
