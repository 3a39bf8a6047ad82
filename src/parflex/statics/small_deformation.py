"""Check the limits of small deformations: warnings about deflections and in-plane loads."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from parflex.diagnostics import Diagnostic
from parflex.recursion.dynamics import NewtonEuler
from parflex.robot.configuration import Configuration
from parflex.spatial.linear import eigen_pairs
from parflex.tree.tree import Tree, beam_elements, beam_root

Array = np.ndarray

# of the bending stiffness of an element: beyond, what a normal force N adds needs more elements. It is N L^2 = EI of
# one clamped at its root, which is then up to 5 % off where N varies along it, and 1 % under loads at its ends
AXIAL_STIFFNESS_LIMIT = 0.4
# rad: what first order leaves out is of the square of turns, so that lengths across are off by half of this, 5 %
FIRST_ORDER_ROTATION = 0.1
NEGLECTED_STIFFNESS = 0.1  # of the stiffness of a mode (a twentieth of its frequency) above which a warning is given


def axial_loads(tree: Tree, q: Array) -> dict[str, tuple[float, float]]:
    """Return the largest normal force (N) of each element over rows `q`, and its share of the bending stiffness."""
    rows = np.atleast_2d(q)
    loads: dict[str, tuple[float, float]] = {}
    softenings: dict[int, list[float]] = {}  # elements of a beam share their body
    for link in (link for link in tree.links if link.body.by_tip):
        e = rows[:, link.e]
        if id(link.body) not in softenings:
            softenings[id(link.body)] = [_softening(link.body, strain) for strain in link.body.strains]
        for strain, softest in zip(link.body.strains, softenings[id(link.body)], strict=True):
            bent = 0.5 * np.einsum("ni,ij,nj->n", e, strain.H, e) if strain.acts else 0.0
            forces = strain.k * (e @ strain.row + bent)
            force = float(forces[np.abs(forces).argmax()])
            if link.name not in loads or abs(force) * softest > loads[link.name][1]:
                loads[link.name] = force, abs(force) * softest
    return loads


def _softening(body: Any, strain: Any) -> float:
    """Return the largest share of the bending stiffness that a unit of axial force removes or adds."""
    return float(eigen_pairs(strain.H, body.material_stiffness(np.zeros(body.size)))[0][-1])


def squared_shares(tree: Tree, q: Any) -> list[Any]:
    """Return squared deflections and axial loads relative to their limits, over any scalar; above 1 is a warning."""
    squares = []
    for link in tree.links:
        e, body = q[link.e], link.body
        for node in body.nodes.values() if body.small else ():
            displacement = node.Phi_d @ e / body.small
            squares.append(displacement @ displacement)
        for strain in body.strains if body.by_tip else ():
            bent = 0.5 * e @ (strain.H @ e) if strain.acts else 0.0
            squares.append((_softening(body, strain) / AXIAL_STIFFNESS_LIMIT * strain.k * (strain.row @ e + bent)) ** 2)
    return squares


def _elements(tree: Tree, name: str) -> tuple[str, int]:
    """Return the frame of the beam of an element, and its number of elements."""
    root = beam_root(tree.links, tree.number(name))
    return tree.links[root].name, len(beam_elements(tree.links, root))


def axial_warnings(tree: Tree, q: Array) -> list[Diagnostic]:
    """Return a diagnostic about the beam whose elements are longest relative to their axial load."""
    loads = axial_loads(tree, q)
    worst = max(loads, key=lambda name: loads[name][1], default=None)
    if worst is None or loads[worst][1] <= AXIAL_STIFFNESS_LIMIT:
        return []
    (force, share), body = loads[worst], tree.links[tree.number(worst)].body
    does = f"{'in tension' if force > 0 else 'in compression'} under {abs(force):.3g} N"
    if not body.acting:
        text = (
            f"'{worst}' is {does}, which would change its bending stiffness by {share:.0%}, but its axial strain "
            'is linear: the model neglects this effect (axial = "mean" includes it)'
        )
    elif body.reduced is not None:
        text = (
            f"'{worst}' is {does}, which changes its bending stiffness by {share:.0%}: a reduced beam takes its "
            "normal force as constant, and the bound of its reduction is for a beam without load (remove 'reduce')"
        )
    else:
        name, count = _elements(tree, worst)
        text = (
            f"'{name}' is {does}, which changes the bending stiffness of its element by {share:.0%}: its "
            f"{'element is' if count == 1 else f'{count} elements are'} too long for this load; use "
            f"{_enough(count, share)} elements"
        )
    return [Diagnostic("axial-load", text, worst, force)]


def _enough(count: int, share: float) -> int:
    """Return the number of elements for which axial load changes little of the bending stiffness of each."""
    return int(np.ceil(count * np.sqrt(share / AXIAL_STIFFNESS_LIMIT)))


def element_advice(tree: Tree, q: Array, reached: float) -> str:
    """Return advice if a beam is loaded beyond its elements, in a state under a share of the loads."""
    reduced = {link.name for link in tree.links if link.body.reduced is not None}
    pressed = {name: load for name, load in axial_loads(tree, q).items() if load[0] < 0 and name not in reduced}
    worst = max(pressed, key=lambda name: pressed[name][1], default=None)
    if worst is None or pressed[worst][1] <= AXIAL_STIFFNESS_LIMIT * reached:
        return ""
    name, count = _elements(tree, worst)
    carries = f"{'one carries' if count == 1 else f'{count} carry'} no more than about {-pressed[worst][0]:.3g} N"
    return f"use {_enough(count, pressed[worst][1] / reached)} elements for '{name}', of which {carries}; or "


def deflection_warnings(tree: Tree, q: Array) -> list[Diagnostic]:
    """Return diagnostics of bodies whose deflection or axial load exceeds the limits of their theory."""
    return [*_bending_warnings(tree, q), *axial_warnings(tree, q)]


def _bending_warnings(tree: Tree, q: Array) -> list[Diagnostic]:
    """Return a diagnostic about the body whose deflection exceeds the limit of its theory most."""
    rows, shares = np.atleast_2d(q), dict[str, float]()
    for link in (link for link in tree.links if link.body.small):
        sizes = [np.linalg.norm(rows[:, link.e] @ node.Phi_d.T, axis=1).max() for node in link.body.nodes.values()]
        shares[link.name] = float(max(sizes, default=0.0)) / link.body.small
    worst = max(shares, key=lambda name: shares[name], default=None)
    if worst is None or shares[worst] <= 1.0:
        return []
    link = tree.links[tree.number(worst)]
    deflection = shares[worst] * link.body.small
    size = "half its thickness" if not link.body.by_tip else "a tenth of its length"
    other_count = sum(share > 1.0 for share in shares.values()) - 1
    more = f" (and {other_count} more)" if other_count else ""
    if not link.body.acting:
        beyond = "small deformations, and the model has no stiffening"
    elif link.body.reduced is None:
        beyond = "the small deformations of an element: use more elements"
    else:
        beyond = "the small deformations of a reduced beam (remove 'reduce' and use more elements)"
    text = f"'{worst}'{more} deflects by {deflection:.3g} m, {shares[worst]:.2g} times {size}: that is beyond {beyond}"
    return [Diagnostic("large-deflection", text, worst, float(deflection))]


def stress_warnings(here: Configuration, wrenches: NewtonEuler) -> list[Diagnostic]:
    """Return diagnostics of modal bodies whose stress would change the stiffness, but is not in the data.

    The integral of the stress over a body is that of load times position. If the stress is uniform, it changes the
    stiffness by its product with the slopes of the modes: an estimate for a warning.
    """
    tree, messages = here.robot.tree, []
    for j, link in enumerate(tree.links):
        body = link.body
        if body.acting or body.slopes is None:
            continue
        weight = here.at.rotation[j].T @ tree.gravity
        undeformed = np.zeros(body.size)
        stress = np.outer(weight, body.deformed(undeformed)[0])
        for k, child in enumerate(tree.links):
            if child.parent == j and child.node is not None:
                stress = stress - np.outer(here.at.to_parent(tree, k, wrenches.f[k]), here.at.local_position[k])
        added = np.einsum("ij,abij->ab", (stress + stress.T) / 2, body.slopes)
        shares = scipy.linalg.eigh(added, body.material_stiffness(undeformed), eigvals_only=True)
        worst = float(shares[np.abs(shares).argmax()])
        if abs(worst) > NEGLECTED_STIFFNESS:
            has = "linear strain neglects that" if body.strains else "its data have no 'geometric' stiffness"
            text = (
                f"loads in the plane of '{link.name}' would make it about {abs(worst):.0%} "
                f"{'stiffer' if worst > 0 else 'softer'} in some mode: {has}"
            )
            messages.append(Diagnostic("neglected-stiffness", text, link.name, worst))
    return messages
