"""Describe the platform of a robot and its legs for the leg formulation of Khalil, over any scalar.

Each leg ends in a ball on the platform (in the plane: a hinge). A leg is reduced to the wrench at its end; the platform
is written in world axes, [Khalil2007, eqs. (20)-(22)] and (28)-(30).

A modal platform is reduced to its motion along the attachments of the legs. With the leg forces f along the directions
in which modes move the attachments, the elastic rows of the platform are M_ee edd + A_re^T Vd + s = P f. The unknowns
are the elastic accelerations y = P^T edd of the attachments. With the constants M_y = (P^T M_ee^-1 P)^-1, L = M_ee^-1 P
M_y and Pi = M_ee^-1 - L P^T M_ee^-1,

    M_y y + L^T (A_re^T Vd + s) = f        edd = L y - Pi (A_re^T Vd + s)

This is [Long2014, eqs. (44)-(49)] with one unknown per direction at the attachments, however many modes describe the
platform. If there are fewer modes than directions, y are the modes themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.bodies.elastic import Body, Node
from parflex.bodies.modal import without_rounding_differences
from parflex.bodies.rigid import RigidBody
from parflex.closure.leg_geometry import Angle, TwoRevoluteLeg, UniversalPrismaticLeg, recognise_leg
from parflex.records import Record
from parflex.recursion.kinematics import Motion, Pose, acceleration_matrix, jacobians, motion, place_jacobian, pose
from parflex.robot.robot import Robot
from parflex.spatial.linear import solve
from parflex.spatial.rotations import cross
from parflex.tree.joints import AROUND_AXIS
from parflex.tree.tree import Link, Place, Tree

Array = np.ndarray
INDEPENDENT = 1e-6  # relative singular value of P below which directions depend on each other
ROUND_OFF = 1e-14  # of the largest entry: rounding of products of constants


@dataclass(frozen=True, eq=False, repr=False)
class Leg(Record):
    """One leg as a tree, its end, its attachment to the platform, and its closed form if it has one."""

    number: int
    name: str
    tree: Tree
    end: Place
    attachment: Array  # in axes of the platform
    rows: Array  # directions at the end, in its axes: three in space, two in the plane
    actuated: tuple[int, ...]  # of the leg's own rates
    motors: tuple[int, ...]  # their numbers among the robot's motors
    links: tuple[int, ...]  # numbers in the whole tree
    geometry: UniversalPrismaticLeg | TwoRevoluteLeg | None


@dataclass(frozen=True)
class Legs:
    """The body of the platform and the legs, the input of a leg formulation."""

    robot: Robot
    platform: int
    body: RigidBody  # of a rigid platform
    legs: tuple[Leg, ...]
    planar: bool
    elastic: ElasticPlatform | None = None  # a platform that does

    @cached_property
    def symmetry(self) -> tuple[float, float, Array] | None:
        """The second moments of a rigid spatial platform across and along an axis, and the axis; None without one."""
        Sigma = self.body.Sigma
        if self.planar or self.elastic is not None or Sigma.dtype == object:
            return None
        values, vectors = np.linalg.eigh(Sigma)
        for k, (i, j) in enumerate(((1, 2), (0, 2), (0, 1))):
            if abs(values[i] - values[j]) <= ROUND_OFF * np.abs(values).max() * len(values):
                return float(values[i]), float(values[k]), vectors[:, k].round(15)
        return None

    @property
    def closed_form(self) -> bool:
        """Whether the platform determines all legs without iteration."""
        return all(leg.geometry is not None for leg in self.legs)


@dataclass(frozen=True, eq=False, repr=False)
class PlatformMotion(Record):
    """World R, p, velocities, acceleration less gravity, angular acceleration; coordinates and rates of its modes."""

    R: Array
    p: Array
    v: Array
    w: Array
    a: Array
    al: Array
    e: Array = field(default_factory=lambda: np.zeros(0))
    ed: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False, repr=False)
class LegMotion(Record):
    """A leg in a motion, with the arm from the platform origin to its end in world axes."""

    leg: Leg
    at: Pose
    arm: Array
    J: Array
    qd: Array
    qdd: Array
    moving: Motion


def find_legs(robot: Robot) -> Legs | str:
    """Return the platform of a robot and its legs, or the reason why a robot has none."""
    tree = robot.tree
    free = [j for j, link in enumerate(tree.links) if link.joint.moves_freely]
    if len(free) != 1:
        return "it has no platform" if not free else "it has several free bodies"
    platform = tree.links[free[0]]
    nodes = {j: link.node for j, link in enumerate(tree.links) if link.parent == free[0] and link.node is not None}
    if set(tree.elastic) != set(range(platform.e_v.start, platform.e_v.stop)):
        return "bodies of its legs are flexible"
    if any(tree.links[j].body.m for j in nodes):
        return "a node of its platform carries a body"
    is_offset = not np.array_equal(platform.rotation, np.eye(3)) or platform.position.any()
    if robot.locked or platform.parent >= 0 or is_offset:
        return "joints are locked" if robot.locked else "its platform is not placed in the axes of the world"
    if robot.closures.constraints or tree.springs:
        return "its joints are coupled"
    if tree.elements:
        return "an element acts between two of its points"
    end, joints = ("a hinge", 2) if tree.planar else ("a ball joint", 3)
    legs: list[Leg] = []
    attachment_nodes: list[Node] = []
    for loop in robot.closures.loops:
        places = (loop.first, loop.second)
        ends = [place for place in places if place.link == free[0] or place.link in nodes]
        leg_ends = [place for place in places if place.link != free[0] and place.link not in nodes]
        node = nodes.get(ends[0].link) if ends else None
        if len(ends) != 1 or (node is not None and ends[0].position.any()):
            return f"closure '{loop.name}' does not end on the platform"
        if len(loop.rotations) or loop.turning == "universal" or len(loop.translations) != (2 if tree.planar else 3):
            return f"closure '{loop.name}' is not {end}"
        attachment_nodes += [node] if node is not None else []
        leg = _leg(robot, len(legs), ends[0].position if node is None else node.r0, leg_ends[0], loop.name)
        if leg is None:
            return f"the leg of closure '{loop.name}' has not {joints} joints with one axis each"
        if any(set(leg.links) & set(other.links) for other in legs):
            return "legs share links"
        legs.append(leg)
    used = {j for leg in legs for j in leg.links} | set(free) | set(nodes)
    if not legs or len(used) != len(tree.links):
        return "some link belongs to no leg"
    if len(robot.actuated) != robot.mobility.freedoms(tree.n) - len(tree.elastic):
        return "its numbers of motors and degrees of freedom differ"
    if not platform.body.size:
        return Legs(robot, free[0], platform.body.as_rigid(), tuple(legs), tree.planar)
    elastic = elastic_platform(platform.body, tuple(attachment_nodes))
    return Legs(robot, free[0], RigidBody(), tuple(legs), tree.planar, elastic=elastic)


def _leg(robot: Robot, number: int, attachment: Array, end: Place, name: str) -> Leg | None:
    tree = robot.tree
    links = tuple(reversed(tree.path(end.link)))
    if not links or any(not tree.links[j].joint.one_axis for j in links):
        return None
    if len(links) != (2 if tree.planar else 3):
        return None
    leg_links = []
    for k, j in enumerate(links):
        link = tree.links[j]
        joint_slice, empty_slice = slice(k, k + 1), slice(k + 1, k + 1)
        leg_links.append(replace(link, parent=k - 1, q=joint_slice, v=joint_slice, e=empty_slice, e_v=empty_slice))
    leg_links, end = _along_z(leg_links, end)
    leg_tree = replace(tree, links=tuple(leg_links), places={})
    numbers = [tree.links[j].v.start for j in links]
    actuated = tuple(k for k, number in enumerate(numbers) if number in robot.actuated)
    motors = tuple(robot.actuated.index(numbers[k]) for k in actuated)
    place = Place(len(links) - 1, end.rotation, end.position)
    q = np.array([robot.home[tree.links[j].q.start] for j in links])
    rows = np.eye(3)
    if tree.planar:
        neutral = end.rotation
        for link in reversed(leg_links):
            neutral = link.rotation @ neutral
        rows = neutral.T[:, :2].T
    geometry = recognise_leg(leg_tree, list(range(len(leg_links))), place, q)
    return Leg(number, name, leg_tree, place, attachment, rows, actuated, motors, links, geometry)


def _along_z(links: list[Link], end: Place) -> tuple[list[Link], Place]:
    """Return a chain whose joints are along or about the z axis of their link, renaming axes of other links."""
    aligned, named = [], np.eye(3)  # `named`: axes of the link before in those of the file
    for link in links:
        rotation, position = named.T @ link.rotation, named.T @ link.position
        named = np.roll(np.eye(3), 2 - link.joint.axis, axis=1)  # its last column is the joint's axis
        joint = link.joint if link.joint.axis == 2 else AROUND_AXIS[link.joint.kind](2)
        body = link.body.as_rigid().in_parent(named.T, np.zeros(3))
        aligned.append(replace(link, rotation=rotation @ named, position=position, joint=joint, body=body))
    return aligned, replace(end, rotation=named.T @ end.rotation, position=named.T @ end.position)


def end_masses_on_platform(form: Legs) -> Legs:
    """Return the robot with masses at the ends of legs moved to the platform."""
    body, legs, masses = form.body, [], []
    for leg in form.legs:
        last, m = leg.tree.links[-1], leg.tree.links[-1].body.m
        point = RigidBody.from_centre(m, leg.end.position, np.zeros((3, 3)))
        links = (*leg.tree.links[:-1], replace(last, body=last.body.as_rigid() - point))
        legs.append(replace(leg, tree=replace(leg.tree, links=links)))
        masses.append(float(m))
        body = body + RigidBody.from_centre(m, leg.attachment, np.zeros((3, 3)))
    if form.elastic is not None:
        platform = form.elastic.body
        for node, mass in zip(form.elastic.nodes, masses, strict=True):
            platform = platform.with_point_mass(node, mass)
        return replace(form, legs=tuple(legs), elastic=elastic_platform(platform, form.elastic.nodes))
    return replace(form, body=body, legs=tuple(legs))


# -- kinematics of one leg -----------------------------------------------------------------------------
def attachment(form: Legs, leg: Leg, e: Array) -> Array:
    """Return the attachment of a leg in platform axes."""
    return leg.attachment if form.elastic is None else form.elastic.place(leg.number, e)


def leg_values(form: Legs, leg: Leg, platform: PlatformMotion, angle: Angle) -> list[Any]:
    """Return the joint values of a leg with a closed form."""
    assert leg.geometry is not None
    return leg.geometry.values(platform.p + platform.R @ attachment(form, leg, platform.e), angle)


def to_leg_axes(leg: Leg, at: Pose, vector: Array) -> Array:
    """Return a world vector in the rows of the leg end."""
    for k in range(len(leg.tree.links)):
        vector = at.from_parent(leg.tree, k, vector)
    return leg.rows @ (leg.end.rotation.T @ vector)


def from_leg_axes(leg: Leg, at: Pose, rows: Array) -> Array:
    """Return components along the rows of the leg end as a world vector."""
    vector = leg.end.rotation @ (leg.rows.T @ rows)
    for k in reversed(range(len(leg.tree.links))):
        vector = at.to_parent(leg.tree, k, vector)
    return vector


def leg_motion(form: Legs, leg: Leg, q: Any, platform: PlatformMotion) -> LegMotion:
    """Return rates and accelerations of a leg that follows the platform, theory (19)."""
    tree, gravity = leg.tree, form.robot.tree.gravity
    at = pose(tree, q)
    J_v, _ = place_jacobian(tree, at, jacobians(tree, at), leg.end)
    J = leg.rows @ J_v
    arm = platform.R @ attachment(form, leg, platform.e)
    U = acceleration_matrix(platform.w, platform.al)
    velocity, acceleration = cross(platform.w, arm), U @ arm
    if form.elastic is not None:
        bending = platform.R @ form.elastic.rate(leg.number, platform.ed)
        velocity, acceleration = velocity + bending, acceleration + 2 * cross(platform.w, bending)
    qd = solve(J, to_leg_axes(leg, at, platform.v + velocity))
    end_acceleration = to_leg_axes(leg, at, platform.a + acceleration)
    zero_accelerations = np.zeros(tree.n)
    _, _, bias, _ = motion(tree, at, qd, zero_accelerations, -gravity).of(leg.end)
    qdd = solve(J, end_acceleration - leg.rows @ bias)
    moving = motion(tree, at, qd, qdd, -gravity)
    if len(leg.rows) == 3 and not leg.end.position.any():
        # the end is the origin of the last link: its acceleration is known, no need to come by it again
        moving.a[-1] = leg.end.rotation @ (leg.rows.T @ end_acceleration)
    return LegMotion(leg, at, arm, J, qd, qdd, moving)


def platform_wrench(form: Legs, platform: PlatformMotion) -> tuple[Array, Array, Array]:
    """Return inertial force and moment of the platform at its origin in world axes, and its elastic rows at edd = 0."""
    R = platform.R
    if form.symmetry is not None:
        (across, along, axis), U = form.symmetry, acceleration_matrix(platform.w, platform.al)
        S, n = R @ form.body.S, R @ axis
        moment = 2 * across * platform.al + (along - across) * cross(n, U @ n)  # the axial part of U Sigma
        return form.body.m * platform.a + U @ S, moment + cross(S, platform.a), np.zeros(0)
    w, al = R.T @ platform.w, R.T @ platform.al
    if form.elastic is not None:
        zero_edd = np.zeros(form.elastic.body.size)
        f, m, s = form.elastic.body.forces(
            acceleration_matrix(w, al), R.T @ platform.a, w, platform.e, platform.ed, zero_edd
        )
        return R @ f, R @ m, s
    force, moment = form.body.wrench(acceleration_matrix(w, al), np.zeros(3))
    return form.body.m * platform.a + R @ force, R @ moment + cross(R @ form.body.S, platform.a), np.zeros(0)


def world_second_moments(form: Legs, R: Array, Sigma: Array) -> Array:
    """Second moments of the platform in world axes."""
    if form.symmetry is None:
        return R @ Sigma @ R.T
    across, along, axis = form.symmetry
    return across * np.eye(3) + (along - across) * np.outer(R @ axis, R @ axis)


@dataclass(frozen=True, eq=False, repr=False)
class ElasticPlatform(Record):
    """A modal platform, and constants that reduce its modes to the motion of the attachments."""

    body: Body
    nodes: tuple[Node, ...]  # of the legs
    slots: tuple[Array, ...]  # of each leg 3 x d: acceleration of its attachment per unit of y, in platform axes
    M_y: Array  # d x d
    lift: Array  # N x d
    rest: Array  # Pi, N x N

    def place(self, leg: int, e: Array) -> Array:
        """Return an attachment in platform axes."""
        return self.nodes[leg].r0 + self.nodes[leg].Phi_d @ e

    def rate(self, leg: int, ed: Array) -> Array:
        """Return the velocity of an attachment relative to the platform frame, in its axes."""
        return self.nodes[leg].Phi_d @ ed

    def accelerations(self, y: Array, s: Array) -> Array:
        """Return accelerations of all modes, theory (34); `s` are the elastic rows at edd = 0 in this motion."""
        return self.lift @ y - self.rest @ s


def elastic_platform(body: Body, nodes: tuple[Node, ...]) -> ElasticPlatform:
    """Return the constants of a platform whose legs hold these nodes, theory (33)."""
    N = body.size
    M_ee = body.inertia_matrix(np.zeros(N))[6:, 6:]
    moves = [(leg, axis) for leg, node in enumerate(nodes) for axis in range(3) if node.Phi_d[axis].any()]
    P = np.array([nodes[leg].Phi_d[axis] for leg, axis in moves]).reshape(-1, N).T
    singular = np.linalg.svd(P, compute_uv=False) if P.size else np.zeros(0)
    if len(moves) >= N or not len(moves) or singular[-1] < INDEPENDENT * singular[0]:
        slots = tuple(node.Phi_d for node in nodes)
        return ElasticPlatform(body, nodes, slots, M_ee, np.eye(N), np.zeros((N, N)))
    free = np.linalg.inv(M_ee)
    M_y = np.linalg.inv(P.T @ free @ P)
    lift = free @ P @ M_y
    slots = tuple(np.zeros((3, len(moves))) for _ in nodes)
    for k, (leg, axis) in enumerate(moves):
        slots[leg][axis, k] = 1.0
    parts = M_y, lift, free - lift @ P.T @ free  # without rounding of zeros and of equal numbers
    exact = (np.where(np.abs(part) > ROUND_OFF * np.abs(part).max() * len(part), part, 0.0) for part in parts)
    return ElasticPlatform(body, nodes, slots, *map(without_rounding_differences, exact))
