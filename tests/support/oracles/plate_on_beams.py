"""Direct stiffness with bodies given by modes: their shapes are generalized coordinates beside the nodes.

Such a body has a node for its frame and one unknown for each mode. The displacement of any of its nodes, in world axes,
is that of the frame as a rigid body and that of the modes, turned into place; its kinetic energy is a sum over nodes.
"""

import numpy as np

from .beam_robots import HEXAGON, add_legs
from .frame import FrameModel
from .modal_data import Modes


def modal_body(model: FrameModel, modes: Modes, position: np.ndarray, rotation: np.ndarray) -> tuple[int, list[int]]:
    """A body in place; its own node, and a node for each name of the modes come back."""
    origin = model.node(position)
    holders = [model.node(position) for _ in range(-(-modes.size // 6))]  # six unknowns each, without a place
    unknowns = [*model.unknowns(origin), *model.unknowns(*holders)[: modes.size]]
    turned = np.kron(np.eye(2), rotation)
    own = np.eye(6 + modes.size)
    own[:6, :6] = turned.T  # the motion of the frame in its own axes
    M = own.T @ modes.mass_matrix() @ own
    K = np.diag([*np.zeros(6), *modes.stiffnesses])
    model.parts.append((unknowns, K, M))
    ends = [model.node(position + rotation @ r) for r in modes.nodes[: len(modes.names)]]
    count = 6 * len(model.positions)
    for k in model.unknowns(*holders)[modes.size :]:
        model.equations.append(np.eye(count)[k])
    for end, motion in zip(ends, modes.motions(), strict=False):
        rows = np.zeros((6, count))
        rows[:, unknowns] = turned @ motion @ own
        rows[:, model.unknowns(end)] = -np.eye(6)
        model.equations.extend(rows)
    return origin, ends


def gough_stewart_on_beams(
    modes: Modes, position: np.ndarray, rotation: np.ndarray, stiffer_legs: float = 1.0
) -> FrameModel:
    """Six legs of tubes below a platform with modes, whose first nodes are the vertices of the hexagon."""
    assert np.allclose(modes.nodes[:6], list(HEXAGON.values()), atol=1e-12)
    model = FrameModel()
    _, ends = modal_body(model, modes, position, rotation)
    add_legs(model, ends[:6], stiffer_legs)
    return model
