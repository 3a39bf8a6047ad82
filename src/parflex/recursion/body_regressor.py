"""Forces per unit of each inertial parameter of the bodies, over any scalar: they are linear in them."""

from __future__ import annotations

import numpy as np

from parflex.recursion.kinematics import Motion, Pose, jacobians
from parflex.spatial.rotations import cross
from parflex.tree.tree import Tree

Array = np.ndarray


def body_regressor(tree: Tree, at: Pose, moving: Motion, J: Array | None = None) -> Array:
    """Forces along rates per unit of XX XY XZ YY YZ ZZ MX MY MZ M of each link, theory (65).

    Rows are those of all rates, or of the independent ones of which J (n x m) gives all rates. `moving` stands on
    ground that accelerates against gravity.
    """
    columns = []
    for j, (J_v, J_w) in enumerate(jacobians(tree, at)):
        if J is not None:
            J_v, J_w = J_v @ J, J_w @ J
        a, U = moving.a[j], moving.U[j]
        columns += [J_w.T @ moment for moment in _second_moments(U)]
        columns += [J_v.T @ U[:, i] + J_w.T @ cross(unit, a) for i, unit in enumerate(np.eye(3))]
        columns.append(J_v.T @ a)
        if tree.links[j].strut:  # the slide of a strut is no body
            columns[-10:] = [0 * column for column in columns[-10:]]
    return np.stack(columns, axis=1)


def _second_moments(U: Array) -> list[Array]:
    """The axial part of U Sigma for units of XX, XY, XZ, YY, YZ, ZZ, theory (3)."""
    turn = [(U[2, 1] - U[1, 2]) / 2, (U[0, 2] - U[2, 0]) / 2, (U[1, 0] - U[0, 1]) / 2]  # angular acceleration
    mixed = [(U[2, 1] + U[1, 2]) / 2, (U[0, 2] + U[2, 0]) / 2, (U[1, 0] + U[0, 1]) / 2]  # products of rates
    return [
        np.array([turn[0], mixed[1], -mixed[2]]),
        np.array([-U[2, 0], U[2, 1], U[0, 0] - U[1, 1]]),
        np.array([U[1, 0], U[2, 2] - U[0, 0], -U[1, 2]]),
        np.array([-mixed[0], turn[1], mixed[2]]),
        np.array([U[1, 1] - U[2, 2], -U[0, 1], U[0, 2]]),
        np.array([mixed[0], -mixed[1], turn[2]]),
    ]
