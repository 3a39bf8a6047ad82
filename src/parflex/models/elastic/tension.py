"""Stiffness and damping of elements between two points, and springs of any kind that are under tension at a pose.

The stiffness of an element is the second derivative of its energy, tension included.

What balances the tension (gravity, motors, loops) is not part of a linear model about the undeformed pose. Its
stiffness then depends on the coordinates in which it is taken; only about the equilibrium it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.errors import SingularError
from parflex.recursion.dynamics import propagate_inwards
from parflex.recursion.energy import distance, element_wrenches, line_between
from parflex.recursion.kinematics import place_jacobian, pose
from parflex.robot.configuration import Configuration
from parflex.spatial.dual import Dual, seed_slopes, slopes
from parflex.tree.tree import Place, Tree

Array = np.ndarray
NEAR_REST = 1e-9  # of the typical length or of a radian: a stretch that only rounding makes
STILL = 1e-12  # of a motion without units: what moves less does not


def has_springs(tree: Tree) -> bool:
    """Whether something can be under tension that is no body."""
    return bool(tree.elements or tree.springs) or any(link.terms.stiffness for link in tree.links)


def tense_parts(configuration: Configuration, without: Sequence[str] = ()) -> list[str]:
    """Names of springs under tension that some motion of the robot, as it is held, feels."""
    tree = configuration.robot.tree
    if "springs" in without or not has_springs(tree):
        return []
    found = []
    for element in tree.elements:
        if element.acts and _apart(configuration, element.first, element.second):
            length = _length(configuration, element)
            size = max(map(abs, element.curve.y)) if element.curve else float(element.stiffness) * tree.length
            if abs(float(element.stored(length))) > NEAR_REST * size:
                found.append(element.name)
    for link in tree.links:
        k = link.v.start
        if not (link.joint.one_axis and link.terms.stiffness):
            continue
        stretch = abs(configuration.q[link.q.start] - link.terms.rest)
        if stretch > NEAR_REST * tree.rate_units[k] and _moves(configuration, np.eye(tree.n)[k]):
            found.append(link.name)
    for spring in tree.springs:
        row = np.zeros(tree.n)
        row[list(spring.rates)] = spring.coefficients
        stretch = abs(float(spring.pressed(configuration.q)))
        if stretch > NEAR_REST * tree.rate_units[spring.rates[0]] and _moves(configuration, row):
            found.append(spring.name)
    return found


def why_balanced(configuration: Configuration, without: Sequence[str] = ()) -> str:
    """Why a linear model at a pose must be about the equilibrium: the start of a sentence, empty where it need not."""
    tense, taut = tense_parts(configuration, without), just_taut(configuration, without)
    words = [(tense, "under tension"), (taut, "just taut")]
    return " and ".join(f"{_told(names)} {word}" for names, word in words if names) + " at this pose" * bool(
        tense or taut
    )


def undeformed_warnings(names: Sequence[str]) -> list[str]:
    """What a linear model about the undeformed pose misses of springs under tension."""
    return [
        f"{_told(names)} under tension at this pose, and what balances it is not part of a model about the undeformed "
        "pose: ask about the equilibrium"
    ] * bool(names)


def just_taut(configuration: Configuration, without: Sequence[str] = ()) -> list[str]:
    """Names of cables at their rest length: longer they have their stiffness, shorter they have none."""
    tree, found = configuration.robot.tree, []
    for element in tree.elements if "springs" not in without else ():
        if element.pulls_only and element.acts:
            off = abs(_length(configuration, element) - float(element.rest))
            if off < NEAR_REST * tree.length and _apart(configuration, element.first, element.second):
                found.append(element.name)
    cables = [spring for spring in tree.springs if spring.pulls_only and "springs" not in without]
    near = NEAR_REST * tree.length
    return found + [cable.joints[0] for cable in cables if abs(float(cable.stretch(configuration.q))) < near]


def refuse_just_taut(configuration: Configuration, without: Sequence[str] = ()) -> None:
    """Raise where a cable is at its rest length."""
    for name in just_taut(configuration, without):
        raise SingularError(
            f"the cable '{name}' is at its rest length, where it becomes slack: "
            "it has stiffness on one side only, and the robot no linear model",
            key=f"element '{name}'",
            value=name,
            hint="choose a pose or a load at which it is taut or slack",
        )


def _told(names: Sequence[str]) -> str:
    listed = ", ".join(f"'{name}'" for name in names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{listed} {'is' if len(names) == 1 else 'are'}"


def _length(configuration: Configuration, element: Any) -> float:
    ends = (element.first, element.second)
    if element.smooth_at_zero:
        return float(distance(configuration.at, ends))
    return float(line_between(configuration.at, ends, element.name).length)


def _apart(configuration: Configuration, first: Place, second: Place) -> bool:
    """Whether two places move against each other."""
    here = configuration
    rows = [
        here.at.of(end)[0] @ place_jacobian(here.robot.tree, here.at, here.link_jacobians, end)[0]
        for end in (first, second)
    ]
    return _moves(configuration, (rows[1] - rows[0]) / configuration.robot.tree.length)


def _moves(configuration: Configuration, rows: Array) -> bool:
    units = configuration.robot.tree.rate_units[configuration.reduction.partition.independent]
    return bool(np.abs(rows @ configuration.J * units).max(initial=0.0) > STILL)


def element_stiffness(configuration: Configuration) -> tuple[Array, Array]:
    """Parts of K_tot and D_tot of the open tree, at rest, theory (44).

    One pass of the recursion over dual numbers. Where the elements alone are not in balance, turns of the axes in which
    rates are measured make the derivative unsymmetric; its symmetric part is the second derivative.
    """
    tree = configuration.robot.tree
    moved = pose(tree, tree.moved(configuration.q, seed_slopes(np.eye(tree.n))))
    acting, zero = element_wrenches(tree, moved, None), np.zeros(3)
    f = [-acting[j][0] if j in acting else zero for j in range(len(tree.links))]
    m = [-acting[j][1] if j in acting else zero for j in range(len(tree.links))]
    bend = [
        -acting[j][2] if j in acting and len(acting[j]) > 2 else np.zeros(link.body.size)
        for j, link in enumerate(tree.links)
    ]
    K = slopes(propagate_inwards(tree, moved, f, m, bend).forces, tree.n)
    return (K + K.T) / 2, _damping(configuration)


def has_force_elements(tree: Tree) -> bool:
    """Whether a spring, damper, cable, force or a strut with a spring acts between two points."""
    return bool(tree.elements) or any(link.strut and link.terms.stiffness for link in tree.links)


def _damping(configuration: Configuration) -> Array:
    """Slope of the tension over the rate of the length, along the line between the points."""
    tree, at = configuration.robot.tree, configuration.at
    D = np.zeros((tree.n, tree.n))
    for element in tree.elements:
        if not element.acts or (element.damping == 0 and element.speed_curve is None):
            continue
        ends = (element.first, element.second)
        across, length, _ = line_between(at, ends, element.name)
        J1, J2 = (at.of(end)[0] @ place_jacobian(tree, at, configuration.link_jacobians, end)[0] for end in ends)
        row = across @ (J2 - J1) / length
        tension = element.tension(length, Dual(0.0, np.ones(1)))
        D = D + (tension.slope[0] if isinstance(tension, Dual) else 0.0) * np.outer(row, row)  # of any scalar
    return D
