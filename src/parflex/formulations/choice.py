"""Choose the formulation of a model from the robot and the requested model.

The formulations are tried in turn, from the one with the fewest operators to the general one; each gives the reason of
its refusal. Programs, simulation, control and `explain` all use this choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from parflex.closure.partition import Partition
from parflex.errors import InputError
from parflex.forces.coupling_losses import refuse_undetermined_losses
from parflex.formulations.base import Formulation, ModelRequest, best_rows, partition_holding
from parflex.formulations.general import GeneralFormulation, general_formulation, open_tree_formulation
from parflex.formulations.legs import leg_formulation
from parflex.formulations.redundant_sensors import redundant_sensor_formulation
from parflex.formulations.substructures import substructure_formulation
from parflex.robot.configuration import Configuration
from parflex.robot.program_rates import has_motors, home_partition, motor_partition, named_partition
from parflex.robot.robot import Robot

OF_MOTORS = ("inverse", "jacobian-of-inverse", "step", "pd-law", "task-law")  # the motors are to define the motion
SENSED = ("step", "pd-law", "task-law")  # the motor sensors must give the whole state
CLOSING = ("geometry", "geometry-direct")


def choose(robot: Robot, question: ModelRequest) -> Formulation:
    """Return the formulation of a model of a robot; `refused` lists the reasons against others."""
    refuse_impossible(robot, question)
    refused: dict[str, str] = {}
    underactuated = _inverse_leaves_motion_free(robot, question)
    for name, find in (
        ("redundant form", redundant_sensor_formulation),
        ("leg form", leg_formulation),
        ("open tree", open_tree_formulation),
        ("two-node form", substructure_formulation),
    ):
        form: Formulation | str = "motors are fewer than degrees of freedom"
        if not underactuated or find is open_tree_formulation:
            form = find(robot, question) if question.at is None else "numbers at one pose need no program"
        if isinstance(form, Formulation):
            return replace(form, refused=refused)
        refused[name] = form
    if question.model == "state-rates-following":
        text = "only a platform whose legs have a closed form can be driven in time"
        raise InputError(text, key="drive", value="platform", hint="drive the motors")
    return replace(_general(robot, question), refused=refused)


def refuse_impossible(robot: Robot, question: ModelRequest) -> None:
    """Raise if no formulation has the model, because motors, sensors or loops are missing."""
    model, by_motors, key, value, text = question.model, question.coordinates == "motors", "MODEL", question.model, ""
    if model == "redundant-direct":
        text = "the redundant model cannot be inverted: efforts do not determine the accelerations of more joints than "
        text, hint = f"{text}motors", "use 'direct', the model in independent coordinates"
    elif model in CLOSING and not robot.closures.size:
        text = "an open robot has no closures to solve"
        hint = "use 'kinematics'" if model == "geometry-direct" else "'kinematics' gives the pose from the joints"
    elif robot.tree.elastic and (
        by_motors or (question.coordinates == "platform" and isinstance(leg_formulation(robot, question), str))
    ):
        key, value = "coordinates", question.coordinates or ""
        text = f"the motion of the {value} does not determine the deformation of a flexible robot"
        hint = 'use coordinates "all" or "independent", or load the robot with rigid=True'
    elif robot.tree.elastic and model in SENSED:
        value, text = "step", "the motor sensors do not give the state of a flexible body"
        hint = "use 'inverse' with an estimate of the elastic state, or use rigid=True"
    if text:
        raise InputError(text, key=key, value=value, hint=hint)
    if robot.tree.elastic:
        return
    if (model in OF_MOTORS or by_motors) and not _inverse_leaves_motion_free(robot, question):
        Configuration(robot, robot.home).refuse_undefined_actuation()


def _inverse_leaves_motion_free(robot: Robot, question: ModelRequest) -> bool:
    """Return whether an inverse model takes fewer motor accelerations than degrees of freedom."""
    joint_coordinates = question.coordinates in (None, "all", "independent")
    return question.model == "inverse" and joint_coordinates and not robot.tree.elastic and robot.is_underactuated


def _general(robot: Robot, question: ModelRequest) -> GeneralFormulation:
    """Return the general form, with the independent rates that the request needs."""
    model = question.model
    if robot.mobility.redundant and model not in CLOSING:
        refuse_undetermined_losses(robot.closures, robot.home, robot.free)
    if question.at is not None:
        return GeneralFormulation(robot, question.at.reduction.partition, question=question)
    if model in CLOSING:
        return GeneralFormulation(robot, partition_holding(robot, _held(robot, model)), question=question)
    if model == "losses":  # rows of the closures as they stand
        partition = named_partition(robot, question.independent)
        rows = question.rows or best_rows(robot.closures, robot.home, partition.dependent)
        return GeneralFormulation(robot, replace(partition, rows=np.array(rows, dtype=int)), question=question)
    if question.independent:
        return general_formulation(robot, named_partition(robot, question.independent), question, question.rows)
    if model == "state-rates-driven":
        return general_formulation(robot, motor_partition(robot), question)
    partition = home_partition(robot)
    if (robot.tree.elastic or _inverse_leaves_motion_free(robot, question)) and not has_motors(robot, partition):
        partition = _driven_partition(robot, question, partition)
    form = general_formulation(robot, partition, question)
    if model != "step" and question.coordinates not in ("motors", "platform"):
        return form
    # loops are open on the way; as many motors as freedoms are held, and more of them are all fitted
    held = question.coordinates != "platform" and len(robot.actuated) <= len(partition.independent)
    finding = partition_holding(robot, robot.actuated) if held else partition
    return replace(form, finder=GeneralFormulation(robot, finding, question=question))


def _driven_partition(robot: Robot, question: ModelRequest, partition: Partition) -> Partition:
    """Return a partition with independent motors for a flexible robot whose inverse model needs it."""
    if question.model in OF_MOTORS:
        return motor_partition(robot)
    legs = leg_formulation(robot, replace(question, model="inverse"))
    if isinstance(legs, Formulation) or not question.positions_are_inputs:  # the leg form has no need of them
        return partition
    try:
        return motor_partition(robot)
    except InputError:  # there is no inverse of this robot
        return partition


def _held(robot: Robot, model: str) -> Sequence[int]:
    """Return rates that are fixed while others close the loops; for flexible robots all independent rates."""
    if robot.tree.elastic:
        return [int(k) for k in home_partition(robot).independent]
    bodies = [link.v for link in robot.tree.links if link.joint.moves_freely]
    if model == "geometry-direct" or not bodies:
        return robot.actuated
    return [k for rates in bodies for k in range(rates.start, rates.stop)]
