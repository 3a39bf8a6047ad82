"""Robots of the catalogue with beams, written again as finite-element frames with their motors locked."""

import numpy as np

from .beam_element import Bar
from .frame import FrameModel

UP = np.array([0.0, 0.0, 1.0])


def dualemps_model(values: dict[str, float]) -> FrameModel:
    """[Briot2014], both slides at zero: legs of 0.6 m, 0.4 m apart, MX, ZZ of rows 14, 17, 24 of Table 2."""
    blade = Bar(74e9, 74e9 / 2.6, 2800, 0.004 * 0.05, 1.0, 0.05 * 0.004**3 / 12, 1.0, 1.0)
    model = FrameModel(planar=True)
    apex = np.array([0.2, np.sqrt(0.6**2 - 0.2**2), 0])
    ends = []
    for leg, foot in enumerate(([0.0, 0, 0], [0.4, 0, 0]), start=1):
        way = (apex - foot) / 0.6

        def body(node: int, mass: float, first: float, second: float, way: np.ndarray = way) -> None:
            """From mass, first moment along the leg and inertia about the node."""
            model.mass(node, mass, np.diag([0, 0, second - first**2 / mass]), way * first / mass)

        hub = model.node(foot)
        model.tie(hub, None, "revolute")
        body(hub, 0.843, 0.004, 7.06e-4)
        root = model.rigid(hub, foot + 0.0675 * way)
        tip = model.node(foot + 0.518 * way)
        model.beam(root, tip, blade, np.cross(UP, way))
        if leg == 2:
            body(tip, 0.190, values["mx24"], 9.44e-4)
        else:
            body(tip, 0.396, 0.030, values["zz14"])
            last = model.rigid(tip, apex + 0.065 * way)
            end = model.node(apex + 0.205 * way)
            model.beam(last, end, blade, np.cross(UP, way))
            body(end, 0.177, values["mx17"], 2.56e-4)
        ends.append(model.rigid(tip, apex))
    model.tie(*ends, "revolute")
    return model


def tube(diameter: float, thickness: float, stiffer: float = 1.0) -> Bar:
    """Steel, with the inertia of its sections."""
    outer, inner = diameter / 2, diameter / 2 - thickness
    area, I = np.pi * (outer**2 - inner**2), np.pi * (outer**4 - inner**4) / 4
    return Bar(stiffer * 210e9, stiffer * 210e9 / 2.6, 7850, area, I, I, 2 * I, 2 * I, rotary=True)


TURNS = np.pi / 3 * np.arange(-2, 4)
HEXAGON = {f"vertex{k + 1}": 0.5 * np.array([np.cos(a), np.sin(a), 0]) for k, a in enumerate(TURNS)}


def gough_stewart_model(position: np.ndarray, rotation: np.ndarray) -> FrameModel:
    """Six legs of two tubes, from a universal joint on the ground to a ball on a rigid hexagonal plate."""
    model = FrameModel()
    plate = model.node(position)
    mass, side, thick = 73.069, 0.5, 0.015
    flat = mass * (5 * side**2 / 24 + thick**2 / 12)
    model.mass(plate, mass, rotation @ np.diag([flat, flat, mass * 5 * side**2 / 12]) @ rotation.T)
    add_legs(model, [model.rigid(plate, position + rotation @ vertex) for vertex in HEXAGON.values()])
    return model


def add_legs(model: FrameModel, heads: list[int], stiffer: float = 1.0) -> None:
    """The six legs of tubes under nodes of a platform, of a steel that much stiffer."""
    feet = [[0.1, -0.2], [0.3, -0.2], [1.3, 0.4], [1.0, 1.0], [-0.2, 0.9], [-0.7, 0.5]]
    for (x, y), top in zip(feet, heads, strict=True):
        foot, head = np.array([x, y, 0.0]), model.positions[top]
        way = (head - foot) / np.linalg.norm(head - foot)
        towards = np.arctan2(y + 0.2, x - 0.1)  # the first axis is normal to the line from the first foot
        axis = np.array([-np.sin(towards), np.cos(towards), 0])
        cross, motor = model.node(foot), model.node(foot)
        model.tie(cross, None, "revolute", axis)
        model.tie(motor, cross, "revolute", np.cross(axis, way))
        model.mass(cross, 3, 0.01 * np.eye(3))
        model.mass(motor, 15, 0.06 * np.eye(3))
        end = model.node(foot + 0.5 * way)
        model.beam(motor, end, tube(0.12, 0.01, stiffer))
        root, ball = model.rigid(end, head - 0.6 * way), model.node(head)
        model.beam(root, ball, tube(0.05, 0.008, stiffer))
        model.tie(ball, top, "spherical")
