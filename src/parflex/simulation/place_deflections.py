"""Deflections of places along beams, with those between nodes that shape functions lack.

Nodes of elements are exact under distributed loads. Between them the shape functions lack the deflection of a beam
clamped at both nodes under its inertia and weight, exact for loads that are cubics, as accelerations of the shape
functions are, and under wrenches between the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parflex.bodies.reduced_beam import ReducedLine
from parflex.diagnostics import Diagnostic
from parflex.forces.section_forces import BeamChain, beam_chains
from parflex.integrators.tableaux import gauss_points
from parflex.records import Record
from parflex.robot.beam_nodes import is_between
from parflex.robot.robot import Robot
from parflex.simulation.mesh_convergence import largest_beam_deflection
from parflex.spatial.rotations import hat
from parflex.tree.tree import Tree

Array = np.ndarray
BENT = ("chord_y", "chord_z", "tangent_y", "tangent_z")
MISSING = 0.02  # of a deflection: less is not reported, as nodes may be off by as much because elements are too few
PLACES, WEIGHTS = gauss_points(4)
OTHERS = [np.delete(PLACES, k) for k in range(len(PLACES))]


@dataclass(frozen=True, eq=False, repr=False)
class BeamPlace(Record):
    """A place along a beam: frames at root, tip and place, and where loads deflect it beyond its shape functions.

    `inner` are displacements by forces per mass at the frames whose accelerations act, in axes of the element (s^2).
    """

    frames: tuple[str, ...]  # root, tip, place, and frames whose accelerations act
    inner: Array | None
    forced: tuple[tuple[str, Array], ...]  # frames with wrenches that do so, too: displacement by each, 3 x 6


def read_place(robot: Robot, beam: str, s: str, wrenches: Sequence[str]) -> BeamPlace:
    """Return the place `s` along a beam, where wrenches act on frames."""
    frames = (beam, f"{beam}@1", f"{beam}@{s}")
    robot.tree.place(frames[2])
    chain = beam_chains(robot).get(beam)
    shares, inner = inner_loads(chain, float(s)) if chain is not None else ([], None)
    loads = tuple(f"{beam}@{at!r}" for at in shares)
    moved = ((frame, forced_place(robot, frame, frames[2])) for frame in wrenches)
    return BeamPlace((*frames, *loads), inner, tuple((name, moves) for name, moves in moved if moves is not None))


def place_deflection(tree: Tree, place: BeamPlace, word: str, signals: Mapping[str, Array]) -> Array:
    """Return the deflection of a place, from the x axis of the root (tangent), or from the line between both ends.

    It is along y or z of the root, turned to that line by the smallest turn.
    """
    root, tip, at = (signals[f"{frame}.position"] for frame in place.frames[:3])
    R = signals[f"{place.frames[2]}.rotation"]
    if place.inner is not None:
        specific_forces = np.stack([signals[f"{frame}.motion"][:, 6:9] for frame in place.frames[3:]]) - tree.gravity
        turns = np.stack([signals[f"{frame}.rotation"] for frame in place.frames[3:]])
        bent = np.einsum("pij,ptkj,ptk->ti", place.inner, turns, specific_forces)
        at = at + np.einsum("tij,tj->ti", R, bent)
    for frame, moved in place.forced:
        at = at + np.einsum("tij,tj->ti", R, _turned_wrenches(R, signals[f"{frame}.wrench"]) @ moved.T)
    into = signals[f"{place.frames[0]}.rotation"]
    axis = "xyz".index(word[-1])
    away = np.einsum("tji,tj->ti", into, at - root)
    if word.startswith("tangent"):
        return away[:, axis]
    chord = np.einsum("tji,tj->ti", into, tip - root)
    chord = chord / np.linalg.norm(chord, axis=1, keepdims=True)
    # the image of the axis e under the turn of x to the chord u is e - (u . e) (x + u) / (1 + u . x)
    share = chord[:, axis] / (1 + chord[:, 0])
    return away[:, axis] - share * (away[:, 0] + np.einsum("ti,ti->t", chord, away))


def _turned_wrenches(R: Array, wrenches: Array) -> Array:
    """Return wrenches in the axes of a frame from those in world axes."""
    return np.einsum("tji,tkj->tki", R, wrenches.reshape(-1, 2, 3)).reshape(-1, 6)


def inner_wrench_warning(
    robot: Robot, signals: Mapping[str, Array], wrenches: Sequence[str], frames: Sequence[str]
) -> list[Diagnostic]:
    """Return a diagnostic of frames without the deflection by wrenches between the nodes of their element.

    Nothing is said where that is little beside the largest deflection of the beam.
    """
    lacks: dict[str, float] = {}
    links = robot.tree.links
    for frame in dict.fromkeys(frames):
        link = robot.tree.places[frame].link
        if links[link].body.reduced is not None:  # has a warning of its own
            continue
        moved = ((loaded, forced_place(robot, loaded, frame)) for loaded in wrenches)
        for loaded, compliance in ((loaded, moves) for loaded, moves in moved if moves is not None):
            push = _turned_wrenches(signals[f"{loaded}.rotation"], signals[f"{loaded}.wrench"])
            away = float(np.linalg.norm(push @ compliance.T, axis=1).max(initial=0.0))
            if away > MISSING * largest_beam_deflection(robot, link, signals["q"]):
                lacks[frame] = max(lacks.get(frame, 0.0), away)
    worst = max(lacks, key=lambda name: lacks[name], default="")
    if not worst:
        return []
    text = (
        f"a load acts between two nodes of a beam: as a frame '{worst}' lacks up to {lacks[worst]:.3g} m of its "
        "deflection there, which BEAM.chord_y@s and BEAM.tangent_y@s have; use elements with a node at the load"
    )
    return [Diagnostic("load-inside-beam", text, worst, lacks[worst])]


def inner_loads(chain: BeamChain, s: float) -> tuple[list[float], Array | None]:
    """Return places along a beam whose accelerations deflect the place `s` between two nodes, and the deflections.

    The load is mass times acceleration, a cubic through these places, and compliances are cubics on both sides of `s`:
    the rule of four points on each side is exact. Reduced beams have inner modes instead.
    """
    element, xi = chain.located(s)
    parts = chain.each[element]
    if isinstance(parts, ReducedLine) or min(xi, 1 - xi) < 1e-9:
        return [], None
    mass, inner = parts.material.density * parts.section.A * parts.length, np.zeros((len(PLACES), 3, 3))
    for begin, end in ((0.0, xi), (xi, 1.0)):
        for at, weight in zip(begin + (end - begin) * PLACES, (end - begin) * WEIGHTS, strict=True):
            shares = [np.prod((at - others) / (place - others)) for place, others in zip(PLACES, OTHERS, strict=True)]
            compliance = parts.clamped_compliance(float(at), xi)[:3, :3]
            inner -= mass * weight * np.multiply.outer(shares, compliance)
    return [float(chain.share(element, place)) for place in PLACES], inner


def forced_place(robot: Robot, loaded: str, place: str) -> Array | None:
    """Return displacements of a section by a unit wrench on a frame beyond shape functions, 3 x 6, in section axes.

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
    parts = chain.each[chain.links.index(j)]
    if isinstance(parts, ReducedLine):
        modal = np.diag(body.material_stiffness(np.zeros(body.size)))[body.size - body.held :]
        compliance = parts.clamped_compliance(xi, at, modal)
    else:
        compliance = parts.clamped_compliance(xi, at)
    moved = np.eye(6)
    moved[:3, 3:] = -hat(places[loaded].position)
    return (compliance @ moved.T)[:3]
