"""Couplings as solids: toothed wheels on turning joints, threads on slides, and a line from joint to joint."""

from __future__ import annotations

import numpy as np

from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.tree.tree import Place
from parflex.view.scene.element_parts import Tie
from parflex.view.scene.solids import Solid, along, cylinder, merged, polygon_prism

Array = np.ndarray
WHEEL, TOOTH, WIDTH = 0.034, 0.007, 0.012  # radius, height of teeth and width, of the size of the robot
THREAD, LINE = 0.017, 0.0025  # radii
TEETH, RIDGES = 14, 6
X = np.array([1.0, 0.0, 0.0])


def coupled_links(robot: Robot) -> list[int]:
    """Links on coupled joints, each once; struts and cables are lines, and need no mark."""
    tree = robot.tree
    names = dict.fromkeys(name for one in robot.description.coupling for name in (one.joint, *one.others))
    return [number for name in names if not tree.links[number := tree.number(name)].strut]


def coupled_place(robot: Robot, name: str) -> Place:
    """Where a coupled joint is: its link; of a strut or a cable, its first end."""
    number = robot.tree.number(name)
    if not robot.tree.links[number].strut:
        return Place(number, np.eye(3), np.zeros(3))
    element = next(entry for entry in robot.description.element if entry.name == name)
    return robot.tree.places[element.between[0]]


def mark(robot: Robot, j: int, size: float) -> Solid:
    """The mark on a coupled joint, in the axes of its link: a toothed wheel that turns with it, or a thread."""
    joint = robot.tree.links[j].joint
    axis = np.eye(3)[joint.axis]
    if joint.unit == "m":
        steps = np.linspace(-2.5, 2.5, RIDGES) * WIDTH * size
        half = 0.35 * WIDTH * size * axis
        return merged(cylinder(step * axis - half, step * axis + half, THREAD * size) for step in steps)
    angles = np.arange(4 * TEETH) * np.pi / (2 * TEETH)
    radii = (WHEEL + TOOTH * np.tile([0.0, 1.0, 1.0, 0.0], TEETH)) * size
    outline = np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1)
    vertices, faces = polygon_prism(outline, -WIDTH * size / 2, WIDTH * size / 2)
    return vertices @ along(axis).T, faces


def lines_between(robot: Robot, size: float) -> list[Tie]:
    """A thin bar from the joint of each coupling to each of the others."""
    found = []
    for coupling in robot.description.coupling:
        for other in coupling.others:
            first, second = (coupled_place(robot, name) for name in (coupling.joint, other))
            unit, faces = cylinder(np.zeros(3), X, LINE * size)
            found.append(Tie("couplings", robot, first, second, unit, faces))
    return found


def coupling_labels(robot: Robot, q: Array) -> dict[str, Array]:
    """Where the name of each coupling stands: half way between its joint and the first of the others."""
    at = pose(robot.tree, q)
    return {
        one.name: sum((at.of(coupled_place(robot, name))[1] for name in (one.joint, one.others[0])), np.zeros(3)) / 2
        for one in robot.description.coupling
    }
