"""Compute base inertial parameters and group bodies.

Base parameters are the combinations that determine the forces along the joints. The rules of Khalil and Kleinfinger
come first: YY, MZ and M of a link on a revolute joint, and the inertia of a link on a prismatic joint, act like
parameters of the previous link and are moved there. Then rank decides: dependent columns of the regressor are grouped
with others, and zero columns are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy

from parflex.bodies.rigid import RigidBody
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, SingularError, UnreachableError
from parflex.records import Answer, brief, count_of, name_list
from parflex.recursion.dynamics import body_regressor
from parflex.recursion.kinematics import motion, pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.tree.tree import Tree

Array = np.ndarray

PARAMETERS = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
REACH = 0.5  # rad or characteristic lengths of motor motion from home, enough for ranks of regular poses
NEARER = 0.9  # factor on REACH after a pose that does not assemble
ROUNDING = 1e-13  # of the inertia that a link carries: sums of a hundred bodies stay below


@dataclass(frozen=True, eq=False, repr=False)
class BaseParameters(Answer):
    """Base parameters: their `names`, such as "ZZ[2]", `values` (kg, kg m, kg m^2), and a `robot` with no others.

    `grouped` names the destination of each parameter grouped by rank; `after_rules` is the number left by the rules
    alone.
    """

    names: list[str]
    values: Array
    grouped: dict[str, str]
    after_rules: int
    robot: Robot

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """Diagnostics of the robot."""
        return self.robot.diagnostics

    def _told(self) -> str:
        return f"{brief(self.robot.name)}: {count_of(len(self.names), 'base parameter')}: {name_list(self.names)}"


def body_parameters(body: RigidBody) -> Array:
    """Return the ten parameters of a body, in the order of `PARAMETERS`."""
    i = body.I
    return np.array([i[0, 0], i[0, 1], i[0, 2], i[1, 1], i[1, 2], i[2, 2], *body.S, body.m], dtype=float)


def body_from_parameters(values: Array) -> RigidBody:
    """Return the body with these ten parameters."""
    XX, XY, XZ, YY, YZ, ZZ, MX, MY, MZ, M = values
    return RigidBody.from_khalil(M, (MX, MY, MZ), XX, XY, XZ, YY, YZ, ZZ)


def _regressor(tree: Tree, q: Array, qd: Array, qdd: Array) -> Array:
    """Return the forces along all rates per unit of each body parameter (n x 10 links)."""
    at = pose(tree, q)
    return body_regressor(tree, at, motion(tree, at, qd, qdd, -tree.gravity))


def regrouped_tree(tree: Tree, empty: Literal["inertia", "second moment"] = "inertia") -> Tree:
    """Return the tree with parameters moved to the previous link wherever they act in the same way.

    One inertia entry can vanish: Khalil's rules remove YY; removing Sigma_zz instead saves operators in `wrench`.
    """
    bodies = [link.body.as_rigid() for link in tree.links]
    for j in reversed(range(len(tree.links))):
        link, body = tree.links[j], bodies[j]
        if link.joint.kind == "revolute":
            common = _symmetric_part(body, link.joint.axis, empty)
        elif link.joint.kind == "prismatic":
            common = RigidBody(0.0, np.zeros(3), body.Sigma)
        else:
            continue
        bodies[j] = body - common
        if link.parent >= 0:
            bodies[link.parent] = bodies[link.parent] + common.in_parent(link.rotation, link.position)
    return replace(tree, links=tuple(replace(link, body=body) for link, body in zip(tree.links, bodies, strict=True)))


def _symmetric_part(body: RigidBody, axis: int, empty: str) -> RigidBody:
    """Return the part of a body that is invariant under rotation about the axis, with equal energy on both links."""
    after = (axis + 2) % 3
    along = np.outer(np.eye(3)[axis], np.eye(3)[axis])
    return RigidBody(
        body.m,
        np.eye(3)[axis] * body.S[axis],
        along * (body.I[after, after] if empty == "inertia" else body.Sigma[axis, axis]),
    )


def base_parameters(robot: Robot, samples: int = 40, *, closed: bool = False) -> BaseParameters:
    """Compute base inertial parameters of the open tree of legs and platform, or of the closed robot.

    Parameters of the tree also determine the forces of the closed robot, but loops leave fewer to identify from its
    motors.

    Parameters
    ----------
    robot, samples, closed
        See `parflex.api.WORDS`.

    Returns
    -------
    BaseParameters
        Names and values (kg, kg m, kg m^2) of the base parameters, and a robot that has only them.
    """
    bent = next((link.name for link in robot.tree.links if link.body.size), None)
    if bent is not None:
        text = f"'{bent}' is flexible, and base parameters are defined for rigid bodies only"
        raise InputError(text, key="base_parameters", value=bent, hint="load the robot with rigid=True")
    if isinstance(samples, bool) or not isinstance(samples, int) or not 1 <= samples <= 10_000:
        raise InputError("the number of samples must be positive", key="samples", value=samples, hint="give e.g. 40")
    tree = regrouped_tree(robot.tree)
    labels = [f"{parameter}[{link.name}]" for link in tree.links for parameter in PARAMETERS]
    values = np.concatenate([body_parameters(link.body.as_rigid()) for link in tree.links])
    matrix = _sampled_regressor(robot, tree, samples, closed)
    size = np.abs(matrix).max(axis=0)
    ruled_out = _regrouped_columns(tree)
    candidates = [k for k in range(len(labels)) if size[k] > 1e-10 * size.max() and k not in ruled_out]
    scaled = matrix[:, candidates] / size[candidates]
    _, R, order = scipy.linalg.qr(scaled, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    count = int(np.sum(diagonal > 1e-9 * diagonal[0]))
    kept = sorted(candidates[k] for k in order[:count])
    grouped: dict[str, str] = {}
    for k in (candidates[k] for k in order[count:]):
        weights = np.linalg.lstsq(matrix[:, kept], matrix[:, k], rcond=None)[0]
        terms = [(weight, kept[i]) for i, weight in enumerate(weights) if abs(weight) * size[kept[i]] > 1e-9 * size[k]]
        for weight, target in terms:
            values[target] += weight * values[k]
        grouped[labels[k]] = " ".join(f"{weight:+.6g} {labels[target]}" for weight, target in terms)
    used = np.zeros_like(values)
    used[kept] = values[kept]
    bodies = (body_from_parameters(part) for part in used.reshape(-1, 10))
    links = tuple(replace(link, body=body) for link, body in zip(tree.links, bodies, strict=True))
    tree = replace(tree, links=links)
    lean = replace(robot, tree=tree, closures=replace(robot.closures, tree=tree))
    return BaseParameters([labels[k] for k in kept], values[kept], grouped, len(candidates), lean)


def _regrouped_columns(tree: Tree) -> set[int]:
    """Return the columns of the parameters that the rules have set to zero."""
    columns: set[int] = set()
    for j, link in enumerate(tree.links):
        axis = link.joint.axis
        by_kind: dict[str, tuple[str, ...]] = {"prismatic": PARAMETERS[:6]}
        if link.joint.kind == "revolute":
            by_kind["revolute"] = (("XX", "YY", "ZZ")[(axis + 2) % 3], ("MX", "MY", "MZ")[axis], "M")
        columns |= {10 * j + PARAMETERS.index(name) for name in by_kind.get(link.joint.kind, ())}
    return columns


def _sampled_regressor(robot: Robot, tree: Tree, samples: int, closed: bool) -> Array:
    """Return scaled rows of forces at random states of the tree, or along independent rates at closed states."""
    rng, reach = np.random.default_rng(0), REACH
    rows: list[Array] = []
    while not closed and len(rows) < samples:
        q = tree.moved(tree.start, rng.uniform(-1, 1, tree.n) * 2)
        rows.append(_regressor(tree, q, rng.uniform(-2, 2, tree.n), rng.uniform(-4, 4, tree.n)))
    motors = [
        (robot.tree.rate_names[k], robot.tree.links[robot.tree.link_of_rate[k]].q.start, k) for k in robot.actuated
    ]
    while len(rows) < samples:
        drawn = rng.uniform(-1, 1, len(motors))
        pose = {
            name: float(robot.home[place] + reach * robot.gearing.units[k] * part)
            for (name, place, k), part in zip(motors, drawn, strict=True)
        }
        try:
            configuration = Configuration(robot, robot.assemble(pose))
            J = configuration.J
        except (UnreachableError, SingularError):
            reach *= NEARER
            continue
        qd = J @ rng.uniform(-2, 2, J.shape[1])
        qdd = J @ rng.uniform(-4, 4, J.shape[1]) + configuration.acceleration_bias(qd)
        W = J.T @ _regressor(tree, configuration.q, qd, qdd)
        rows.append(W / np.abs(W).max())
    return np.concatenate(rows)


def moments_scale(body: RigidBody, length: float) -> Array:
    """Return reference values for mass, first and second moments of a body from a distance `length`."""
    m, S, Sigma = (float(np.abs(values).max()) for values in (body.m, body.S, body.Sigma))
    return np.array([m, S + m * length, Sigma + S * length + m * length**2])


def cleaned_body(body: RigidBody, scale: Array) -> RigidBody:
    """Return the body without entries below rounding of the scales of mass, first and second moments."""
    parts = (body.m, body.S, body.Sigma)
    m, S, Sigma = (
        np.where(np.abs(values) < ROUNDING * size, 0.0, values) for values, size in zip(parts, scale, strict=True)
    )
    return RigidBody(float(m), S, Sigma)


def grouped_tree(tree: Tree) -> Tree:
    """Return the tree of rigid links with bodies grouped towards the ground, without rounding."""
    carried = np.array([moments_scale(link.body.as_rigid(), tree.length) for link in tree.links]).reshape(-1, 3)
    for j in reversed(range(len(tree.links))):
        if tree.links[j].parent >= 0:
            carried[tree.links[j].parent] += carried[j]
    bodies = [link.body.as_rigid() for link in regrouped_tree(tree, "second moment").links]
    links = [
        replace(link, body=cleaned_body(body, scale))
        for link, body, scale in zip(tree.links, bodies, carried, strict=True)
    ]
    return replace(tree, links=tuple(links))
