"""One-line summaries of a robot, a pose and efforts, for printing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from parflex.errors import ParflexError
from parflex.records import brief, count_of, name_list

if TYPE_CHECKING:
    from parflex.models.configuration import Configuration
    from parflex.models.robot import Robot

FORCES = {"rad": "N m", "m": "N"}


def effort_units(robot: Robot) -> dict[str, str]:
    """Unit of the effort of each motor."""
    tree = robot.tree
    units = {tree.rate_names[k]: tree.links[tree.link_of_rate[k]].joint.unit for k in range(tree.n)}
    return {name: FORCES.get(unit, "N or N m") for name, unit in units.items()}


def efforts_line(robot: Robot, efforts: Mapping[str, float]) -> str:
    """Efforts with their units."""
    units = effort_units(robot)
    return "efforts " + name_list(
        [f"{name} {value:.5g} {units.get(name, '')}".strip() for name, value in efforts.items()]
    )


def accelerations_line(robot: Robot, found: Mapping[str, float]) -> str:
    """Accelerations with their units."""
    units = {name: "m/s2" if unit == "N" else "rad/s2" for name, unit in effort_units(robot).items()}
    return "accelerations " + name_list([f"{name} {value:.5g} {units[name]}" for name, value in found.items()])


def robot_line(robot: Robot) -> str:
    """Name, freedoms, motors, what is flexible, and what was chosen."""
    motors = robot.actuated_names
    parts = [freedoms_of(robot), f"motors {name_list(motors)}" if motors else "no motors"]
    elastic = len(robot.tree.elastic)
    parts.append(f"flexible ({count_of(elastic, 'elastic coordinate')})" if elastic else "rigid")
    chosen = (("actuation", robot.actuation), ("working mode", robot.working_mode))
    parts += [f"{word} {brief(name)}" for word, name in chosen if name != "default"]
    parts += [f"{count_of(len(robot.locked), 'locked rate')}"] * bool(robot.locked)
    parts += [f"sensors {name_list(robot.sensed_names)}"] * bool(robot.sensed)
    parts += [count_of(len(robot.warnings), "warning")] * bool(robot.warnings)
    return f"{brief(robot.name)}: {', '.join(parts)}"


def freedoms_of(robot: Robot) -> str:
    """The number of freedoms of the undeformed robot; a robot that cannot be assembled still prints."""
    try:
        rigid = robot.locking(robot.deformations) if robot.deformations else robot
        return count_of(rigid.mobility.freedoms(len(rigid.free)), "freedom")
    except (ParflexError, np.linalg.LinAlgError):
        return "freedoms not known"


def configuration_line(configuration: Configuration) -> str:
    """Where the end effector is, and whether the loops are closed."""
    robot = configuration.robot
    _, position = configuration.at.of(robot.tree.place(robot.tree.end_effector))
    parts = [
        f"'{robot.tree.end_effector}' at {brief(np.round(position, 9) + 0.0)} m",
        f"{len(configuration.q)} coordinates",
    ]
    if robot.closures.size:
        parts.append(f"loops closed to {configuration.closure_error:.1e} m")
    return f"{brief(robot.name)}: {', '.join(parts)}"


def hertz_line(frequencies: np.ndarray) -> str:
    """Frequencies, the first of them."""
    return f"{name_list([f'{value:.4g}' for value in frequencies])} Hz" if len(frequencies) else "no frequency"
