"""Traces of robots that bend: closed positions and independent rates in, efforts or accelerations out."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.closure import mobility
from parflex.errors import InputError
from parflex.models import general_form, node_form
from parflex.models.configuration import Configuration
from parflex.models.pieces import LEADS, Pieces, pieces
from parflex.models.robot import Robot

Array = np.ndarray
FEW_RATES = 40  # robots with more are written one way only: each way to write one takes a second or more


def leads(robot: Robot) -> tuple[str, ...]:
    """Equivalent ways to write a robot in pieces."""
    return LEADS[:1] if len(robot.free) > FEW_RATES or pieces(robot) is None else LEADS


def form_of(robot: Robot, lead: str = LEADS[0]) -> Pieces | general_form.GeneralForm:
    """The robot in pieces if no loop stands in the way, else the general form."""
    form = pieces(robot, lead)
    if form is not None:
        return form
    return general_form.general_form(robot, Configuration(robot, robot.home).reduction.partition)


def with_motors(robot: Robot) -> general_form.GeneralForm:
    """The general form with the motors among the independent rates, however large their condition number is."""
    J = mobility.scaled_jacobian(robot.closures, robot.home)
    passive = np.array([k for k in robot.free if k not in set(robot.actuated)], dtype=int)
    if mobility.rank(J[:, passive]) < robot.mobility.rank:
        _refuse_dependent_motors(robot, [int(k) for k in passive])
    partition = mobility.choose_partition(J, passive, robot.mobility.rank, robot.preference)
    dependent = set(partition.dependent.tolist())
    independent = np.array([k for k in robot.free if int(k) not in dependent], dtype=int)
    return general_form.general_form(robot, mobility.Partition(partition.rows, partition.dependent, independent))


def _refuse_dependent_motors(robot: Robot, independent: list[int]) -> None:
    if not set(robot.actuated) <= set(independent):
        raise InputError(
            "the motors of this robot cannot all move independently, so their motion does not define that of the robot",
            key="actuation",
            value=robot.actuation,
            hint="choose an --actuation with fewer motors, or give efforts",
        )


def inverse(tracer: Any, robot: Robot, lead: str, without: tuple[str, ...]) -> Any:
    """Accelerations of the motors in; efforts and the accelerations of all other independent coordinates out."""
    form = form_of(robot, lead)
    if not isinstance(form, Pieces) and not set(robot.actuated) <= {int(k) for k in form.partition.independent}:
        form = with_motors(robot)
    q, qd, labels = _state(tracer, robot, form)
    wanted = tracer.group("motor_acceleration", len(robot.actuated))
    independent = [int(k) for k in form.partition.independent]
    _refuse_dependent_motors(robot, independent)
    if isinstance(form, Pieces):
        effort, qdd = node_form.inverse(form, q, qd, wanted, without)
    else:
        effort, qdd = general_form.driven(form, q, qd, wanted, without)
    rest = [i for i, k in enumerate(independent) if k not in set(robot.actuated)]
    labels |= {"motor_acceleration": robot.actuated_names, "effort": robot.actuated_names}
    labels["free_acceleration"] = [form.independent_names[i] for i in rest]
    return {"effort": effort, "free_acceleration": qdd[rest]}, labels


def direct(tracer: Any, robot: Robot, lead: str, without: tuple[str, ...]) -> Any:
    """Efforts in, accelerations of the independent coordinates out."""
    form = form_of(robot, lead)
    q, qd, labels = _state(tracer, robot, form)
    tau = tracer.group("effort", len(robot.actuated))
    labels |= {"effort": robot.actuated_names, "qdd": form.independent_names}
    if isinstance(form, Pieces):
        return {"qdd": node_form.direct(form, q, qd, tau, without)}, labels
    return {"qdd": general_form.direct(form, q, qd, tau, without)}, labels


def refuse_step(robot: Robot) -> None:
    """A controller's step needs a state that the motors' sensors give; that of a bending body is not among it."""
    raise InputError(
        "the sensors of the motors do not give the state of a body that bends",
        key="MODEL",
        value="step",
        hint="use 'inverse' with an estimate of the elastic state, or make the step for the rigid robot",
    )


def _state(tracer: Any, robot: Robot, form: Any) -> tuple[Array, Array, dict[str, list[str]]]:
    q, qd = tracer.group("q", robot.tree.nq), tracer.group("qd", len(form.partition.independent))
    return q, qd, {"q": list(robot.tree.position_names), "qd": form.independent_names}
