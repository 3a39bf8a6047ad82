"""Stiffness and damping of elements between two points: the second derivative of their energy, tension included."""

from __future__ import annotations

import numpy as np

from parflex.models.configuration import Configuration
from parflex.recursion import pose
from parflex.recursion.kinematics import place_jacobian
from parflex.recursion.newton_euler import inwards
from parflex.recursion.point_forces import element_wrenches, line
from parflex.spatial.dual import Dual, slopes, small_steps

Array = np.ndarray


def element_stiffness(configuration: Configuration) -> tuple[Array, Array]:
    """Parts of K_tot and D_tot of the open tree, at rest, theory (44).

    One pass of the recursion over dual numbers. Where the elements alone are not in balance, turns of the axes in which
    rates are measured make the derivative unsymmetric; its symmetric part is the second derivative.
    """
    tree = configuration.robot.tree
    moved = pose(tree, tree.moved(configuration.q, small_steps(np.eye(tree.n))))
    acting, zero = element_wrenches(tree, moved, None), np.zeros(3)
    f = [-acting[j][0] if j in acting else zero for j in range(len(tree.links))]
    m = [-acting[j][1] if j in acting else zero for j in range(len(tree.links))]
    none = [np.zeros(link.body.size) for link in tree.links]
    K = slopes(inwards(tree, moved, f, m, none).forces, tree.n)
    return (K + K.T) / 2, _damping(configuration)


def _damping(configuration: Configuration) -> Array:
    """Slope of the tension over the rate of the length, along the line between the points."""
    tree, at = configuration.robot.tree, configuration.at
    D = np.zeros((tree.n, tree.n))
    for element in tree.elements:
        if not element.acts or (element.damping == 0 and element.speed_curve is None):
            continue
        ends = (element.first, element.second)
        across, length, _ = line(at, ends, element.name)
        J1, J2 = (at.of(end)[0] @ place_jacobian(tree, configuration.link_jacobians, end)[0] for end in ends)
        row = across @ (J2 - J1) / length
        tension = element.tension(length, Dual(0.0, np.ones(1)))
        D += (tension.slope[0] if isinstance(tension, Dual) else 0.0) * np.outer(row, row)
    return D
