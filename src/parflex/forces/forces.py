"""Compute generalised forces of a motion, element forces and impulses.

Motors whose rates jump apply impulses; joints and closures respond with impulses that do no work. By the momentum
balance M (after - before) = J_tot^T r + E_a p, the rates afterwards have the least change in the kinetic metric, 1/2
(after - before)^T M (after - before), among all that closures and motors allow. Finite forces (gravity, springs,
friction, damping) apply no impulse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from parflex.checks import short_text, table
from parflex.closure.constraints import Distance
from parflex.errors import InputError, did_you_mean
from parflex.recursion.dynamics import NewtonEuler, joint_forces, mass_matrix, newton_euler
from parflex.recursion.energy import LinkWrenches, add_wrenches, line_between, wrench_on_link
from parflex.recursion.kinematics import Pose, motion
from parflex.robot.configuration import Configuration
from parflex.tree.tree import Place, Tree

Array = np.ndarray
Wrench = Mapping[str, Sequence[float] | np.ndarray]
Without = Sequence[str]
Values = dict[str, dict[str, Any]]


def tree_forces(
    configuration: Configuration, qd: Array, qdd: Array, wrenches: Wrench | None = None, weight: float = 1.0
) -> Array:
    """Return F = M_tot qdd + c_tot along all rates, with joint terms and wrenches; `weight` is the share of gravity."""
    recursion = tree_newton_euler(configuration, qd, qdd, wrenches, weight=weight)
    return recursion.forces + joint_forces(configuration.robot.tree, configuration.q, qd, qdd)


def forces_along_rates(tree: Tree, at: Pose, qd: Array, qdd: Array, external: LinkWrenches) -> Array:
    """Return forces along all rates over any scalar, with wrenches on links."""
    moving = motion(tree, at, qd, qdd, -tree.gravity)
    return newton_euler(tree, at, moving, external).forces + joint_forces(tree, at.q, qd, qdd)


def tree_newton_euler(
    configuration: Configuration,
    qd: Array,
    qdd: Array,
    wrenches: Wrench | None = None,
    more: LinkWrenches | None = None,
    weight: float = 1.0,
) -> NewtonEuler:
    """Return wrenches in all joints of the tree; `more` are wrenches on links, at their origins and in their axes."""
    tree, at = configuration.robot.tree, configuration.at
    external = on_links(tree, at, checked_wrenches(tree, wrenches))
    add_wrenches(external, more or {})
    return newton_euler(tree, at, motion(tree, at, qd, qdd, -weight * tree.gravity), external)


def on_links(tree: Tree, at: Pose, wrenches: Mapping[str, Array]) -> LinkWrenches:
    """Return world wrenches at frames as wrenches on links, at their origins and in their axes, over any scalar."""
    result: LinkWrenches = {}
    for frame, wrench in wrenches.items():
        place = tree.places[frame]
        if place.link >= 0:
            add_wrenches(result, {place.link: wrench_on_link(at, place, wrench[:3], wrench[3:])})
    return result


def checked_wrench(tree: Tree, frame: str, values: Any, key: str = "wrench") -> Array:
    """Return force and moment on an existing frame; three numbers are a force, for planar robots fx, fy and mz."""
    if not tree.has(frame, key):
        hint = did_you_mean(str(frame), tree.places)
        raise InputError(f"there is no frame '{frame}'", key=key, value=str(frame), hint=hint)
    try:
        wrench = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        wrench = np.zeros(0)
    refused, hint = "", ""
    if not np.isfinite(wrench).all():
        refused, hint = f"the {key} on '{frame}' has numbers that are not finite", "give finite numbers"
    elif len(wrench) not in (3, 6):
        refused = f"the {key} on '{frame}' is not a force and a moment"
        hint = "give fx,fy,mz for a planar robot" if tree.planar else "give fx,fy,fz or fx,fy,fz,mx,my,mz"
    elif tree.planar and len(wrench) == 6 and wrench[2:5].any():
        refused = f"fz, mx and my of the {key} on '{frame}' do not act on a planar robot"
        hint = "give fx,fy,mz, or zero for fz, mx and my"
    elif len(wrench) == 3:
        wrench = np.array([*wrench[:2], 0.0, 0.0, 0.0, wrench[2]] if tree.planar else [*wrench, 0.0, 0.0, 0.0])
    if not refused and wrench[3:].any() and not _turns(tree, tree.places[frame]):
        refused = f"the modal data have no rotations of the node at '{frame}', so no moment can act there"
        hint = "give a force alone, or add the rotations"
    if refused:
        raise InputError(refused, key=key, value=short_text(values), hint=hint)
    return wrench


def _turns(tree: Tree, place: Place) -> bool:
    """Return whether the rotation of a place is known wherever its body deforms."""
    node = place.inner.node if place.inner is not None else tree.links[place.link].node if place.link >= 0 else None
    return node is None or node.turns


def checked_wrenches(tree: Tree, wrenches: Any, batch: bool = False) -> dict[str, Array]:
    """Return wrenches by frame; in a `batch`, also one per state."""
    listed = dict(table(wrenches, "wrench", "{'platform': [0, 0, -100]}"))
    rows = {frame: values for frame, values in listed.items() if batch and np.ndim(values) == 2}
    for frame, values in listed.items():
        checked = [checked_wrench(tree, frame, row) for row in (values if frame in rows else [values])]
        listed[frame] = np.array(checked).reshape(-1, 6) if frame in rows else checked[0]
    return listed


def impulse_of_motors(here: Configuration, before: Array, motor_rates: Array) -> tuple[Array, Array]:
    """Return all rates after an impulse to new motor rates, and impulses p: work p . (before + after) / 2."""
    robot, N = here.robot, here.motions
    M = mass_matrix(robot.tree, here.at)
    motors = list(robot.actuated)
    driven = N[motors] / robot.tree.rate_units[motors][:, None]
    s = np.linalg.lstsq(driven, motor_rates / robot.tree.rate_units[motors], rcond=1e-9)[0]
    free = N @ scipy.linalg.null_space(driven, rcond=1e-9)
    after = N @ s
    after = after + free @ _positive(free.T @ M @ free, free.T @ (M @ (before - after)))
    momentum_change = N.T @ (M @ (after - before))
    return after, np.linalg.lstsq(N[motors].T, momentum_change, rcond=1e-9)[0]


def _positive(A: Array, b: Array) -> Array:
    """Solve A x = b; motions without mass are unchanged."""
    if not len(b):
        return b
    size = np.sqrt(np.maximum(np.diag(A), 0.0))
    size[size == 0.0] = 1.0
    return np.linalg.lstsq(A / np.outer(size, size), b / size, rcond=1e-13)[0] / size


def multipliers_of(configuration: Configuration, f: Array, tau: Array | float = 0.0) -> Array:
    """Return least-norm multipliers of all rows, theory (18), from forces of the open tree and motor efforts."""
    robot = configuration.robot
    missing = f.copy()
    missing[list(robot.actuated)] -= tau
    rows = configuration.closure_jacobian[:, robot.free]
    return np.linalg.lstsq(rows.T, missing[robot.free], rcond=1e-9)[0] if len(rows) else np.zeros(0)


def element_values(configuration: Configuration, qd: Array | None = None, lam: Array | None = None) -> Values:
    """Return values of each element in file order; rods and struts have a force if multipliers are known."""
    robot, at = configuration.robot, configuration.at
    if not robot.description.element:
        return {}
    tree = robot.tree
    zero_rates = np.zeros(tree.n)
    moving = motion(tree, at, zero_rates if qd is None else qd, zero_rates)
    rows = {row.name: (part, row) for part, row in zip(robot.closures.slices(), robot.closures.rows, strict=True)}
    forces = {element.name: element for element in tree.elements}
    values: Values = {}
    for entry in robot.description.element:
        if entry.name in forces:
            element = forces[entry.name]
            ends = (element.first, element.second)
            if element.smooth_at_zero and not np.any(at.of(ends[1])[1] - at.of(ends[0])[1]):
                values[entry.name] = {"length": 0.0, "rate": 0.0, "force": 0.0}
                continue
            _, length, rate = line_between(at, ends, entry.name, moving)
            values[entry.name] = _shown(length, rate, element.tension(length, rate))
            continue
        part, row = rows[entry.name]
        assert isinstance(row, Distance)
        _, length, rate = line_between(at, row.places, entry.name, moving)
        values[entry.name] = _shown(length, rate, None if lam is None else -lam[part][0])
    return values


def _shown(length: Any, rate: Any, force: Any) -> dict[str, Any]:
    values = {"length": float(length), "rate": float(rate)}
    return values if force is None else {**values, "force": float(force) + 0.0}
