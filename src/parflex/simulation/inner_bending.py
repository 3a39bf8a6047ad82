"""Deflection of an element between its nodes by its weight, inertia and wrenches, beyond its shape functions.

Nodes of elements are exact under distributed loads. Between them the shape functions lack the deflection of a beam
clamped at both nodes, EI theta''' = q with w = theta = 0 at its ends; w' = theta, with shear theta - EI/(k G A)
theta''. The load q is mass times acceleration, less gravity, at four places of the element. It is exact for loads that
are cubics, as accelerations of the shape functions are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from parflex.bodies.reduced_beam import ReducedSections
from parflex.forces.section_forces import BeamChain, beam_chains
from parflex.integrators.tableaux import gauss_points
from parflex.robot.beam_nodes import is_between
from parflex.robot.robot import Robot
from parflex.spatial.rotations import hat

Array = np.ndarray
MISSING = 0.02  # of a deflection: less is not reported, as nodes may be off by as much because elements are too few
PLACES = gauss_points(4)[0]


class InnerLoads(NamedTuple):
    """Places along a beam whose accelerations deflect it at one of them, and by how much (s^2, section axes y and z).

    `turn` is from axes of the section to those of the element.
    """

    shares: tuple[float, ...]
    weights: Array
    turn: Array


def inner_loads_of(chain: BeamChain, s: float) -> InnerLoads | None:
    """Of a place along a beam; None at a node, and of a reduced beam: it has inner modes."""
    element, xi = chain.located(s)
    parts = chain.parts_of(element)
    if isinstance(parts, ReducedSections) or min(xi, 1 - xi) < 1e-9:
        return None
    each = parts.material.density * parts.section.A * parts.length**4 / parts.material.E
    both = each / np.array([float(parts.section.Iz), float(parts.section.Iy)])
    bent = np.stack([clamped(xi, float(Ps)) for Ps in parts.shear_ratios], axis=1)
    c, sn = np.cos(parts.roll), np.sin(parts.roll)
    return InnerLoads(
        tuple(float(chain.share(element, place)) for place in PLACES),
        -bent * both,
        np.array([[1, 0, 0], [0, c, -sn], [0, sn, c]]),
    )


def clamped(xi: float, Ps: float = 0.0) -> Array:
    """How far w'''' = 1 at one of the places, a cubic that is zero at the others, deflects a unit beam at xi.

    With shear, Ps = 12 EI/(k G A): w = p - Ps/12 p'' + c, where p' is the turn of the sections and p'''' the load.
    """
    found, soft = [], Ps / 12
    for k, place in enumerate(PLACES):
        others = np.delete(PLACES, k)
        load = np.polynomial.Polynomial.fromroots(others) / np.prod(place - others)
        p = load.integ(4)
        at_end = p(1.0) - soft * p.deriv(2)(1.0)
        # what is added to p: a xi^2 + b xi^3, which leaves w = -2 soft a at the root, and c takes that away
        a, b = np.linalg.solve([[1.0, 1 - 6 * soft], [2.0, 3.0]], [-at_end, -p.deriv()(1.0)])
        p = p + np.polynomial.Polynomial([0, 0, a, b])
        found.append(p(xi) - soft * (p.deriv(2)(xi) - 2 * a))
    return np.array(found)


def inner_bending(loads: InnerLoads, rotations: Array, felt: Array) -> Array:
    """The way of the place in rows, by accelerations less gravity (place, row, axis) and axes of each place."""
    own = np.einsum("prij,pri->prj", rotations @ loads.turn, felt)
    bent = np.zeros(own.shape[1:])
    bent[:, 1:] = np.einsum("prj,pj->rj", own[:, :, 1:], loads.weights)
    return bent @ loads.turn.T


def forced_place(robot: Robot, loaded: str, place: str) -> Array | None:
    """Displacement of the section of a place by a unit wrench on a frame, beyond shape functions: 3 x 6, section axes.

    Of a reduced beam less that of its modes. None where both are not between the same two nodes.
    """
    places = robot.tree.places
    if not (is_between(robot, loaded) and is_between(robot, place)) or places[place].link != places[loaded].link:
        return None
    j = places[loaded].link
    body = robot.tree.links[j].body
    inner = [places[frame].inner for frame in (loaded, place)]
    xi, at = (float(one.node.r0[0] / body.nodes["tip"].r0[0]) for one in inner if one is not None)
    chain = next(beam for beam in beam_chains(robot).values() if j in beam.links)
    parts = chain.parts_of(chain.links.index(j))
    if isinstance(parts, ReducedSections):
        modal = np.diag(body.material_stiffness(np.zeros(body.size)))[body.size - body.held :]
        compliance = parts.clamped_compliance(xi, at, modal)
    else:
        compliance = parts.clamped_compliance(xi, at)
    moved = np.eye(6)
    moved[:3, 3:] = -hat(places[loaded].position)
    return (compliance @ moved.T)[:3]
