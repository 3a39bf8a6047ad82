"""Inputs and outputs of a program, entry by entry: name in the robot file, and unit.

Motors and joints have the order of the file, so every number belongs to the motor with its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from parflex.codegen.input_checks import CHECKS
from parflex.formulations.coordinates import input_frame
from parflex.robot.robot import Robot
from parflex.spatial.rotations import ORIENTATION

Array = np.ndarray
Signal = dict[str, Any]  # index, direction, group, name, unit
Named = tuple[str, str]  # name and unit
POSITIONS = ("q", "guess", "last", "motor_position", "measured", "reference", "joints", "elastic")
RATES = ("qd", "rates", "motor_rate", "measured_rate", "reference_rate", "elastic_rate", "position_rates")
ENERGIES = ("kinetic", "elastic", "gravity")
END_EFFECTOR_MODELS = ("kinematics", "task-law")  # models that speak of it and not of the platform
UNITS_OF_PARAMETERS = {"weight": "1", "M": "kg", "MX": "kg m", "MY": "kg m", "MZ": "kg m", "Kp": "1/s2", "Kv": "1/s"}


def program_signals(
    robot: Robot,
    model: str,
    inputs: Mapping[str, tuple[int, ...]],
    outputs: Mapping[str, tuple[int, ...]],
    parameters: Sequence[str],
    labels: Mapping[str, list[str]],
    coordinates: str | None = None,
) -> list[Signal]:
    """All entries of the inputs x, the parameters p and the outputs y of a program, in their order."""
    names = _Names(robot, model, inputs, labels, coordinates)
    signals: list[Signal] = []
    for direction, groups in (("input", inputs), ("output", outputs)):
        number = 0
        for group, shape in groups.items():
            for index in np.ndindex(*shape):
                name, unit = names.entry(direction, group, shape, index)
                signals.append(_signal(number, direction, group, name, unit))
                number += 1
    for number, parameter in enumerate(parameters):
        word, _, owner = parameter.partition("[")
        signals.append(_signal(number, "parameter", word, owner.rstrip("]") or word, names.parameter(word, owner[:-1])))
    return signals


def _signal(index: int, direction: str, group: str, name: str, unit: str) -> Signal:
    return {"index": index, "direction": direction, "group": group, "name": name, "unit": unit}


class _Names:
    """Names and units of the entries of a model's groups."""

    def __init__(
        self,
        robot: Robot,
        model: str,
        inputs: Mapping[str, tuple[int, ...]],
        labels: Mapping[str, list[str]],
        coordinates: str | None = None,
    ) -> None:
        tree = robot.tree
        self.model, self.inputs, self.planar = model, inputs, tree.planar
        of_end_effector = model in END_EFFECTOR_MODELS and coordinates != "platform"
        self.frame = tree.end_effector if of_end_effector else input_frame(robot, coordinates)
        motors, positions = robot.actuated_names, list(tree.position_names)
        usual = dict.fromkeys(("q", "guess", "last", "position_rates"), positions) | {"rates": list(tree.rate_names)}
        usual |= dict.fromkeys(("motor_position", "motor_rate", "motor_acceleration", "effort"), motors)
        desired = labels.get("reference", motors)
        usual |= dict.fromkeys(("reference", "reference_rate", "reference_acceleration"), desired)
        self.labels = usual | dict(labels)
        self.units = _units(robot)
        twist = {f"{self.frame}.{letter}{axis}": unit for letter, unit in (("v", "m"), ("w", "rad")) for axis in "xyz"}
        self.units = twist | self.units  # of the platform in world axes, of a free body in its own

    def entry(self, direction: str, group: str, shape: tuple[int, ...], index: tuple[int, ...]) -> Named:
        """Name and unit of one entry."""
        if direction == "output" and self.model == "energy" and group in ENERGIES:
            return group, "J"
        if direction == "output" and group in (*CHECKS, "status"):
            return group, "1"
        if direction == "output" and group == "residual":
            return group, "m"
        if group == "gates":
            return f"gate {index[0]}", "1"
        if group == "mass_matrix":
            (a, unit_a), (b, unit_b) = (self._of(self.labels[group][k], "") for k in index)
            return f"{a}, {b}", {"m m": "kg", "rad rad": "kg m2"}.get(f"{unit_a} {unit_b}", "kg m")
        if direction == "output" and group.startswith("by_"):
            of, by = self._labelled("effort", index[0]), group.removeprefix("by_")
            per = self.entry("input", by, self.inputs[by], index[1:])
            return f"{of[0]} by {per[0]}", f"({of[1]})/({per[1]})"
        if group.startswith("wrench_"):
            return f"{group.removeprefix('wrench_')}.{'fm'[index[0] // 3]}{'xyz'[index[0] % 3]}", (
                "N" if index[0] < 3 else "N m"
            )
        if len(index) == 1 and len(self.labels.get(group, ())) == shape[0]:
            return self._labelled(group, index[0])
        return self._of_frame(group, shape, index)

    def _labelled(self, group: str, number: int) -> Named:
        name = self.labels[group][number]
        if group == "effort":
            return name, "N" if self._of(name, "")[1] == "m" else "N m"
        suffix = "" if group in POSITIONS else "/s" if group in RATES else "/s2"
        return self._of(name, suffix)

    def _of(self, name: str, suffix: str) -> Named:
        """A coordinate with its unit, or that of its rate."""
        unit = self.units[name]
        return name, (f"1{suffix}" if unit == "1" and suffix else f"{unit}{suffix}")

    def _of_frame(self, group: str, shape: tuple[int, ...], index: tuple[int, ...]) -> Named:
        """Entries of the pose and motion of the platform, or of the end effector."""
        frame, word, axes = self.frame, group.removeprefix("last_"), "xyz"
        first = index[0]
        if word == "position":
            return f"{frame}.{axes[first]}", "m"
        if word == "rotation":
            return f"{frame}.R[{index[0]},{index[1]}]", "1"
        if word == "turn":
            return (f"{frame}.theta", "rad") if self.planar else (f"{frame}.{ORIENTATION[first]}", "1")
        if word == "platform_acceleration":
            translation_count = 2 if self.planar else 3
            if first < translation_count:
                return f"{frame}.a{axes[first]}", "m/s2"
            return f"{frame}.al{'z' if self.planar else axes[first - 3]}", "rad/s2"
        letters = {"velocity": ("v", "m/s"), "acceleration": ("a", "m/s2")}
        letters |= {"angular_velocity": ("w", "rad/s"), "angular_acceleration": ("al", "rad/s2")}
        letter, unit = letters[word]
        return f"{frame}.{letter}{'z' if shape == (1,) else axes[first]}", unit

    def parameter(self, word: str, owner: str) -> str:
        """Unit of a parameter."""
        if word in ("stiffness", "damping"):
            per = "m" if self.units.get(owner) == "m" else "rad"
            return (
                ("N" if per == "m" else "N m") + f"/{per}"
                if word == "stiffness"
                else f"N {'s/m' if per == 'm' else 'm s/rad'}"
            )
        if word in ("preload", "lowest", "highest"):
            return "N" if self.units.get(owner) == "m" else "N m"
        return UNITS_OF_PARAMETERS.get(word, "kg m2")


def _units(robot: Robot) -> dict[str, str]:
    """Units of all positions and rates by name."""
    units: dict[str, str] = {}
    tree = robot.tree
    units_by_label = {"x": "m", "y": "m", "z": "m", "theta": "rad"} | dict.fromkeys(("qw", "qx", "qy", "qz"), "1")
    names: list[tuple[Sequence[str], Callable[[Any, int], str]]] = [
        (tree.position_names, lambda link, k: units_by_label.get(link.joint.position_labels[k], _kind(link, 0))),
        (tree.rate_names, _kind),
    ]
    for listed, unit in names:
        remaining = iter(listed)
        for link in tree.links:
            labels = link.joint.position_labels if listed is tree.position_names else link.joint.rate_labels
            units |= {next(remaining): unit(link, k) for k in range(len(labels))}
            units |= {next(remaining): unit for unit in link.body.units}
    return units


def _kind(link: Any, k: int) -> str:
    return link.joint.rate_units[k]
