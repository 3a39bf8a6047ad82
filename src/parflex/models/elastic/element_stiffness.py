"""Stiffness and damping of elements between two points: the second derivative of their energy, tension included."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parflex.models.configuration import Configuration
from parflex.recursion import pose
from parflex.recursion.kinematics import place_jacobian
from parflex.recursion.newton_euler import inwards
from parflex.recursion.point_forces import element_wrenches, line
from parflex.spatial.dual import Dual, slopes, small_steps
from parflex.tree import Tree

Array = np.ndarray
NEAR_REST = 1e-9  # of the typical length: a stretch that only rounding makes


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


def has_force_elements(tree: Tree) -> bool:
    """Whether a spring, damper, cable, force or a strut with a spring acts between two points."""
    return bool(tree.elements) or any(link.strut and link.terms.stiffness for link in tree.links)


def tension_warnings(configuration: Configuration, without: Sequence[str] = ()) -> list[str]:
    """What a linear model about the undeformed pose misses of elements that are under tension there.

    What balances the tension (gravity, motors, loops) is not in such a model, so that the stiffness depends on the
    coordinates in which it is taken; only about the equilibrium it does not. A cable at its rest length has none or
    all of its stiffness, and no derivative.
    """
    if "springs" in without:
        return []
    tree, at = configuration.robot.tree, configuration.at
    tense, just_taut = [], []
    for element in tree.elements:
        if not element.acts:
            continue
        length = float(line(at, (element.first, element.second), element.name)[1])
        stiffness = float(element.stiffness)
        if element.pulls_only and abs(length - element.rest) < NEAR_REST * tree.length:
            just_taut.append(element.name)
        elif abs(float(element.stored(length))) > NEAR_REST * stiffness * tree.length:
            tense.append(element.name)
    for link in tree.links:
        if link.strut and abs(configuration.q[link.q.start] - link.terms.rest) > NEAR_REST * tree.length:
            tense += [link.name] * bool(link.terms.stiffness)
    found = []
    if tense:
        found.append(
            f"{_named(tense)} under tension at this pose, and what balances it is not part of a model about the "
            "undeformed pose: ask about the equilibrium"
        )
    if just_taut:
        found.append(
            f"{_named(just_taut)} at the rest length, where a cable becomes slack: half of the stiffness is taken; "
            "choose a pose in which it is taut or slack"
        )
    return found


def _named(names: list[str]) -> str:
    listed = ", ".join(f"'{name}'" for name in names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{listed} {'is' if len(names) == 1 else 'are'}"


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
