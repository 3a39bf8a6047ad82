"""Bodies that could be built and move alike: identified parameters are often those of none.

A joint does not feel some of the mass on its two sides: a turning one that on its axis, a sliding one how its own mass
is spread. That mass may belong to either side. So an open tree has many sets of bodies with the same dynamics, and
among them often one of real bodies, with positive second moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from parflex.bodies.rigid import RigidBody
from parflex.exchange.rigid_parts import RigidPart, refuse
from parflex.robot.robot import Robot
from parflex.spatial.rotations import compose
from parflex.tree.tree import GROUND

Array = np.ndarray
STEEP = (30.0, 300.0, 3000.0, 30000.0)  # of the smooth maximum over eigenvalues, one after the other
RIDGE = 1e-6  # of moved mass, beside a negative eigenvalue: little is moved


def pseudo_inertia(body: RigidBody) -> Array:
    """Second moments, first moments and mass in one matrix: positive for real bodies."""
    return np.block([[np.asarray(body.Sigma, float), np.asarray(body.S, float)[:, None]], [body.S, body.m]])


def body_of(P: Array) -> RigidBody:
    """The body of such a matrix."""
    return RigidBody(float(P[3, 3]), P[:3, 3].copy(), P[:3, :3].copy())


def is_real(body: RigidBody, slack: float = 1e-9) -> bool:
    """Whether a body could have this inertia."""
    P = _scaled(pseudo_inertia(body), _radius([body]))
    return bool(np.linalg.eigvalsh(P)[0] >= -slack * max(np.abs(P).max(), 1e-300))


def real_bodies(parts: Sequence[RigidPart]) -> list[RigidPart] | None:
    """Parts that move alike with bodies that are real; None where none were found."""
    moved = [j for j, part in enumerate(parts) if part.heavy and part.joint.one_axis]
    if not moved:
        return None
    radius = _radius([parts[j].body for j in moved])
    P0 = np.array([_scaled(pseudo_inertia(part.body), radius) for part in parts])
    size = np.trace(P0[moved], axis1=1, axis2=2).mean()
    P0, moves, back = P0 / size, _moves(parts, radius), np.diag([radius, radius, radius, 1.0])
    t = np.zeros(len(moves))
    for steep in STEEP:
        t = minimize(_open, t, (P0[moved], moves[:, moved], steep), jac=True, method="BFGS").x
        P = (P0 + np.einsum("k,kjab->jab", t, moves)) * size
        found = [
            replace(part, body=body_of(back @ P[j] @ back)) if j in moved else part for j, part in enumerate(parts)
        ]
        if all(is_real(part.body) for part in found if part.heavy):
            return found
    return None


def _open(t: Array, P0: Array, moves: Array, steep: float) -> tuple[float, Array]:
    """How negative eigenvalues are at most, smoothly, and its slope."""
    w, V = np.linalg.eigh(P0 + np.einsum("k,kjab->jab", t, moves))
    top = -w.min()
    weights = np.exp(steep * (-w - top))
    slope = -np.einsum("jae,je,jbe->jab", V, weights / weights.sum(), V)
    value = top + np.log(weights.sum()) / steep + RIDGE * t @ t
    return value, np.einsum("kjab,jab->k", moves, slope) + 2 * RIDGE * t


def parts_with_real_bodies(
    robot: Robot, format_name: str, parts: list[RigidPart], unreal: Sequence[str], notes: list[str]
) -> list[RigidPart]:
    """The same, with a note; refused where there are none."""
    real = real_bodies(parts)
    if real is None:
        raise refuse(
            robot, format_name, f"the inertia of '{unreal[0]}', which no body has", "give it the inertia of a real body"
        )
    notes.append(
        f"no real bodies have the inertia of {', '.join(unreal)}: mass that joints do not feel was moved between the "
        "bodies of the tree, which moves as before"
    )
    return real


def _radius(bodies: Sequence[RigidBody]) -> float:
    """A typical distance of mass from origins."""
    mass = sum(abs(float(body.m)) for body in bodies)
    spread = sum(float(np.trace(np.abs(body.Sigma))) for body in bodies)
    return float(np.sqrt(spread / mass)) if mass > 0 and spread > 0 else 1.0


def _scaled(P: Array, radius: float) -> Array:
    down = np.diag([1 / radius, 1 / radius, 1 / radius, 1.0])
    return down @ P @ down


def _moves(parts: Sequence[RigidPart], radius: float) -> Array:
    """What may be added to the bodies without a change of how they move, in scaled matrices: (move, part, 4, 4)."""
    found = []
    heavy = {j for j, part in enumerate(parts) if part.heavy}
    for j, part in enumerate(parts):
        if j not in heavy or not part.joint.one_axis or part.joint.pitch or part.parent not in heavy | {GROUND}:
            continue
        for entry in _unfelt(part):
            move = np.zeros((len(parts), 4, 4))
            move[j] = entry
            if part.parent != GROUND:
                R, p = compose(part.rotation, part.position, np.eye(3), np.zeros(3))
                T = np.block([[R, p[:, None] / radius], [np.zeros(3), 1.0]])
                move[part.parent] -= T @ entry @ T.T
            found.append(move)
    return np.array(found).reshape(len(found), len(parts), 4, 4)


def _unfelt(part: RigidPart) -> list[Array]:
    """Moments of a body that its joint does not feel beside those of the parent; on the ground there are more."""
    a = part.joint.axis
    b, c = (k for k in range(3) if k != a)
    second = [(k, m) for k in range(3) for m in range(k, 3)]
    if part.joint.unit == "m":
        entries = [[pair] for pair in second] + ([[(k, 3)] for k in range(3)] if part.parent == GROUND else [])
        return [_symmetric(dict.fromkeys(entry, 1.0)) for entry in entries]
    entries_on_axis = [{(a, a): 1.0}, {(a, 3): 1.0}, {(3, 3): 1.0}]
    if part.parent == GROUND:
        entries_on_axis += [{(b, b): 1.0, (c, c): -1.0}, {(b, c): 1.0}, {(a, b): 1.0}, {(a, c): 1.0}]
    return [_symmetric(entry) for entry in entries_on_axis]


def _symmetric(entries: dict[tuple[int, int], float]) -> Array:
    P = np.zeros((4, 4))
    for (k, m), value in entries.items():
        P[k, m] = P[m, k] = value
    return P
