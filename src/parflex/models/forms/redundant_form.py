"""The redundant form: sensors of passive joints are data beside those of the motors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from parflex.errors import InputError
from parflex.models.forms.by_sensors.redundant_equations import extended_effort, redundant_effort
from parflex.models.forms.by_sensors.redundant_sets import RedundantSets, redundant_sets
from parflex.models.forms.by_sensors.sensor_geometry import geometry_gaps, geometry_step, with_measured
from parflex.models.forms.closing import residual_of
from parflex.models.forms.form import FAR, Answer, Form, Given, Groups, Question
from parflex.robot.robot import Robot

Array = np.ndarray
MODELS = ("redundant", "extended-law", "extended-step", "geometry-redundant")
OF_MOTORS = ("classical-law", "classical-step", "geometry-motors")  # the same with the motors' sensors alone


@dataclass(frozen=True)
class RedundantForm(Form):
    """A robot with the rates q = [q_a, q_s] of its motors and sensed joints."""

    name: ClassVar[str] = "redundant form"
    equations: ClassVar[tuple[int, ...]] = ()
    sets: RedundantSets

    @property
    def because(self) -> list[str]:
        """What goes in."""
        return [f"Motors and {len(self.robot.sensed)} sensed joints move as given, the platform as fits them best."]

    @property
    def independent(self) -> Array:
        """Numbers of the rates of motors and sensed joints; the loops tie them to each other."""
        return self.sets.control

    @property
    def state_groups(self) -> Groups:
        """All positions, and rates of motors and sensed joints."""
        return {"q": (self.robot.tree.nq,), "qd": (len(self.independent),)}

    @property
    def motion_groups(self) -> Groups:
        """Accelerations of motors and sensed joints."""
        return {"qdd": (len(self.independent),)}

    @property
    def labels(self) -> dict[str, list[str]]:
        """Motors and sensed joints by their names."""
        names, positions = self.independent_names, list(self.robot.tree.position_names)
        own = ("qd", "qdd", "measured", "measured_rate", "reference", "reference_rate", "reference_acceleration")
        motors = names[: len(self.sets.motors)]
        return dict.fromkeys(own, names) | dict.fromkeys(("q", "guess", "last"), positions) | {"effort": motors}

    def state(self, given: Given) -> tuple[Array, Array]:
        """Positions and rates as given: they need not fit the loops."""
        return given["q"], given["qd"]

    def inverse(self, state: tuple[Array, Array], motion: Given) -> Answer:
        """Efforts of the motors for accelerations of motors and sensed joints."""
        return {"effort": redundant_effort(self.sets, *state, motion["qdd"], sharing=self.question.sharing)}

    def direct(self, state: Any, tau: Array) -> Answer:
        """D has more columns than rows: efforts do not say accelerations."""
        raise not_invertible()

    def law(self, state: tuple[Array, Array], reference: tuple[Array, Array, Array], Kp: Any, Kv: Any) -> Array:
        """Efforts of the extended computed torque for a reference with its rates and accelerations."""
        return extended_effort(self.sets, *state, *reference, Kp, Kv, sharing=self.question.sharing)

    @property
    def geometry_groups(self) -> Groups:
        """A guess of all positions, and what the sensors give."""
        return {"guess": (self.robot.tree.nq,), "measured": (len(self.independent),)}

    def geometry(self, given: Given) -> tuple[Answer, dict[str, list[str]]]:
        """All positions that fit the sensors best, by Newton from the guess."""
        q = with_measured(self.sets, given["guess"], given["measured"])
        for _ in range(FAR):
            q = self.robot.tree.moved(q, geometry_step(self.sets, q)[0])
        return {"q": q, "residual": residual_of(geometry_gaps(self.sets, q))}, self.labels


def not_invertible() -> InputError:
    """What is said where a direct model of sensed joints is asked for."""
    return InputError(
        "the redundant model cannot be inverted: efforts do not determine the accelerations of more joints than motors",
        key="MODEL",
        value="redundant-direct",
        hint="use 'direct', the model in independent coordinates",
    )


def redundant_form(robot: Robot, question: Question) -> RedundantForm | str:
    """The form of a question about sensors, or why it is none."""
    if question.model not in (*MODELS, *OF_MOTORS):
        return f"'{question.model}' takes no sensors"
    sets = redundant_sets(robot.sensing([]) if question.model in OF_MOTORS else robot)
    return RedundantForm(sets.robot, sets, question=question)
