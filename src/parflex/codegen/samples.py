"""Inputs of a model at home, for a first try and for examples."""

from __future__ import annotations

import numpy as np

from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot

Array = np.ndarray


def sample_inputs(robot: Robot, inputs: dict[str, Array], frame: str) -> dict[str, Array]:
    """Numbers for the inputs of a trace: home, with small rates and accelerations; `frame`: whose pose goes in."""
    home, tree = robot.home, robot.tree
    at = pose(tree, home)
    body = next((j for j, link in enumerate(tree.links) if link.joint.moves_freely), None)
    platform = tree.places[frame]
    positions = {"q": home, "guess": home, "last": home}
    sensors = np.array([home[tree.links[tree.link_of_rate[k]].q.start] for k in (*robot.actuated, *robot.sensed)])
    positions["motor_position"] = sensors[: len(robot.actuated)]
    sample = {}
    for name, symbols in inputs.items():
        if name in positions:
            value = positions[name]
        elif name in ("measured", "reference"):
            value = sensors[: len(symbols)]
        elif name in ("last_position", "last_turn") and body is not None:
            own = home[tree.links[body].q]
            split = 2 if tree.planar else 3
            value = own[:split] if name == "last_position" else own[split:]
        elif name == "position":
            value = at.of(platform)[1][: symbols.shape[0]]
        elif name == "rotation":
            value = at.of(platform)[0][: symbols.shape[0], : symbols.shape[1]]
        elif name in ("elastic", "elastic_rate"):
            value = 1e-3 * np.ones(symbols.shape)  # a flexible body deforms a little
        else:
            value = 0.1 * (1 + np.arange(symbols.size)).reshape(symbols.shape)
        sample[name] = np.asarray(value, dtype=float)
    return sample
