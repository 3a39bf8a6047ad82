"""What takes part in a mode: shares of its energies in bodies, joints and legs, and whether it stays in the plane."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from parflex.bodies.reduced_beam import mirror_symmetric_part
from parflex.models.vibration.natural_modes import Modes
from parflex.recursion.energy import line_between
from parflex.recursion.kinematics import place_jacobian
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot, file_frame
from parflex.spatial.dual import Dual
from parflex.tree.tree import Link

Array = np.ndarray
SMALL = 1e-4  # shares below are left out
CLEAR = 0.99  # a mode is in one kind if so much of its energy is: modes of symmetric robots are in one to rounding


def participation(here: Configuration, shapes: Array) -> list[dict[str, float]]:
    """Of each mode, the share of its strain energy in each frame with a beam or a spring; small ones are left out."""
    result, robot = [], here.robot
    for shape in shapes.T:
        bending, springs = _strain(here, shape)
        parts = [(file_frame(robot, link.name), bending[j] + springs[j]) for j, link in _links(robot)]
        result.append(_shares([*parts, *_stretched(here, shape)]))
    return result


def strain_shares(here: Configuration, shape: Array) -> dict[str, float]:
    """The share of the strain energy of a motion in each frame with a beam or a spring, and in each element."""
    bending, springs = _strain(here, shape)
    table: dict[str, float] = {}
    own = [(file_frame(here.robot, link.name), bending[j] + springs[j]) for j, link in _links(here.robot)]
    for name, energy in [*own, *_stretched(here, shape)]:
        table[name] = table.get(name, 0.0) + energy
    total = sum(table.values())
    return {name: energy / total for name, energy in table.items()} if total else table


def energy_shares(modes: Modes) -> list[dict[str, Any]]:
    """Of each mode: strain energy in bodies, joints and legs, kinetic energy in bodies and legs, and its kind.

    `kind` is "in-plane", "out-of-plane" or "mixed" for a robot whose joints all move it in one plane, else None.
    """
    robot, here = modes.model.robot, modes.model.configuration
    normal = plane_normal(here)
    bent = [
        mirror_symmetric_part(link.body, R.T @ normal) if normal is not None and link.body.size else np.zeros((0, 0))
        for link, R in zip(robot.tree.links, here.at.rotation, strict=True)
    ]
    result = []
    for shape in modes.shapes.T:
        bending, springs = _strain(here, shape)
        kinetic, share = _kinetic(here, shape, normal, bent)
        total = [a + b for a, b in zip(bending, springs, strict=True)]
        between = _stretched(here, shape)
        whole = sum(total) + sum(energy for _, energy in between)
        result.append(
            {
                "strain": {
                    "bodies": _by(robot, bending, _body, whole),
                    "joints": _by(robot, springs, _body, whole),
                    "legs": _by(robot, total, _leg, whole),
                    **({"elements": _shares(between, whole)} if between else {}),
                },
                "kinetic": {"bodies": _by(robot, kinetic, _body), "legs": _by(robot, kinetic, _leg)},
                "in_plane": share,
                "kind": _kind(share),
            }
        )
    return result


def _kind(share: float | None) -> str | None:
    if share is None:
        return None
    return "in-plane" if share > CLEAR else "out-of-plane" if share < 1 - CLEAR else "mixed"


def _links(robot: Robot) -> Iterable[tuple[int, Link]]:
    return enumerate(robot.tree.links)


def _strain(here: Configuration, shape: Array) -> tuple[list[float], list[float]]:
    """Twice the energy that a motion strains the body and the joint of each link with; what a preload adds is not."""
    bending, springs = [], []
    for link in here.robot.tree.links:
        e = shape[link.e_v]
        bending.append(float(e @ link.body.material_stiffness(here.q[link.e]) @ e))
        turns = link.joint.one_axis
        springs.append(link.terms.stiffness * float(shape[link.v.start]) ** 2 if turns else 0.0)
    for spring in here.robot.tree.springs:
        if not spring.slack(here.q):
            springs[spring.numbers[0]] += spring.stiffness * float(spring.rate(shape)) ** 2  # counted with its joint
    return bending, springs


def _stretched(here: Configuration, shape: Array) -> list[tuple[str, float]]:
    """Twice the energy that a motion stretches each element between two points with, but for what its tension adds."""
    tree, found = here.robot.tree, []
    for element in tree.elements:
        if not element.acts:
            continue
        ends = (element.first, element.second)
        across, length, _ = line_between(here.at, ends, element.name)
        J1, J2 = (here.at.of(end)[0] @ place_jacobian(tree, here.at, here.link_jacobians, end)[0] for end in ends)
        tension = element.tension(Dual(float(length), np.ones(1)), 0.0)
        slope = float(tension.slope[0]) if isinstance(tension, Dual) else 0.0
        found.append((element.name, slope * float(across @ (J2 - J1) @ shape / length) ** 2))
    return found


def _kinetic(
    here: Configuration, shape: Array, normal: Array | None, bent: list[Array]
) -> tuple[list[float], float | None]:
    """Twice the kinetic energy of each link, and the share of what moves as a mirror in the plane would show it.

    `bent` has the part in the plane of the elastic coordinates of each link.
    """
    energies, inside, outside = [], 0.0, 0.0
    links = zip(here.robot.tree.links, here.link_jacobians, here.at.rotation, bent, strict=True)
    for link, (J_v, J_w), R, own in links:
        M = link.body.inertia_matrix(here.q[link.e])
        motor = link.terms.motor_inertia * float(shape[link.v.start]) ** 2 if link.terms.motor_inertia else 0.0
        twist = np.concatenate([J_v @ shape, J_w @ shape, shape[link.e_v]])
        energies.append(float(twist @ M @ twist) + motor)
        if normal is not None:
            n = R.T @ normal
            planar = np.concatenate([_across(n, twist[:3]), _along(n, twist[3:6]), own @ twist[6:]])
            inside += float(planar @ M @ planar) + motor
            outside += float((twist - planar) @ M @ (twist - planar))
    return energies, inside / (inside + outside) if normal is not None else None


def _along(n: Array, vector: Array) -> Array:
    return n * (n @ vector)


def _across(n: Array, vector: Array) -> Array:
    return vector - n * (n @ vector)


def plane_normal(here: Configuration) -> Array | None:
    """Normal of the plane in which the joints move the robot: z of a planar robot, else the axis of all hinges.

    None where hinges are not parallel, slides or screws leave the plane, or no hinge says what the plane is.
    """
    tree = here.robot.tree
    if tree.planar:
        return np.array([0.0, 0.0, 1.0])
    hinges, slides = [], []
    for link, R in zip(tree.links, here.at.rotation, strict=True):
        if link.joint.moves_freely:
            continue
        if len(link.joint.rate_labels) > 1:
            return None
        hinges += list((R @ link.joint.S_w).T[link.joint.S_w.any(axis=0)])
        slides += [axis / np.linalg.norm(axis) for axis in (R @ link.joint.S_v).T[link.joint.S_v.any(axis=0)]]
    hinges += [
        here.at.of(loop.first)[0] @ loop.u1 for loop in here.robot.closures.loops if loop.turning == "about-axis"
    ]
    if not hinges:
        return None
    normal = hinges[0]
    parallel = all(
        np.linalg.norm(np.cross(normal, axis)) < 1e-2 for axis in hinges
    )  # a deflected robot is a little off
    return normal if parallel and all(abs(normal @ axis) < 1e-2 for axis in slides) else None


def _by(robot: Robot, energies: list[float], name: Callable[[Robot, Link], str | None], of: float = 0.0) -> dict:
    named = ((name(robot, link), energies[j]) for j, link in _links(robot))
    return _shares(((label, energy) for label, energy in named if label is not None), of or sum(energies))


def _shares(parts: Iterable[tuple[str, float]], of: float = 0.0) -> dict[str, float]:
    table: dict[str, float] = {}
    for name, energy in parts:
        table[name] = table.get(name, 0.0) + energy
    total = of or sum(table.values())
    return {name: energy / total for name, energy in table.items() if energy > SMALL * total}


def _body(robot: Robot, link: Link) -> str:
    return file_frame(robot, link.name)


def _leg(robot: Robot, link: Link) -> str | None:
    return link.leg
