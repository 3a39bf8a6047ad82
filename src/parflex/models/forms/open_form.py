"""Models of rigid robots without loops: the recursion itself, and articulated bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from parflex.closure.mobility import Partition
from parflex.models.forms.driving import with_motors_at
from parflex.models.forms.form import Answer, Given, Groups, Question
from parflex.models.forms.general_form import GeneralForm, GeneralState
from parflex.recursion.dynamics import articulated_accelerations, mass_matrix
from parflex.robot.robot import Robot
from parflex.spatial.linear import scalar_type

Array = np.ndarray


@dataclass(frozen=True)
class OpenForm(GeneralForm):
    """A tree of which no rate depends on another."""

    name: ClassVar[str] = "open tree"
    equations: ClassVar[tuple[int, ...]] = (23,)

    @property
    def because(self) -> list[str]:
        """What the two models are."""
        if self.robot.locked:
            return ["The inverse model is the recursion; the direct one solves the mass matrix of what is not locked."]
        return ["The inverse model is the recursion, the direct one goes by articulated bodies."]

    def direct(self, state: GeneralState, tau: Array) -> Answer:
        """Accelerations by articulated bodies; these know no locked joints."""
        if self.robot.locked:
            return super().direct(state, tau)
        push: Array = np.zeros(self.robot.tree.n, dtype=scalar_type(tau))
        push[list(self.robot.actuated)] = tau
        return {"qdd": articulated_accelerations(self.robot.tree, state.at, state.q, state.qd, push)}

    def mass_matrix(self, state: GeneralState) -> Array:
        """The matrix of the tree."""
        return super().mass_matrix(state) if self.robot.locked else mass_matrix(self.robot.tree, state.at)

    @property
    def last_groups(self) -> Groups:
        """Nothing: the motors say all positions."""
        return {}

    def by_motors(self, sensed: Array, rates: Array, last: Given) -> GeneralState:
        """The motors say all positions and rates."""
        q = with_motors_at(self.robot, self.robot.home.astype(scalar_type(sensed)), sensed)
        return self.moving(q, rates[np.argsort(self.robot.actuated)])

    def for_motors(self, state: GeneralState, desired: Array) -> Given:
        """The same in the order of the rates."""
        return {"qdd": desired[np.argsort(self.robot.actuated)]}

    def motor_inertia(self, state: GeneralState) -> Array:
        """The same in the order of the motors."""
        order = np.argsort(np.argsort(self.robot.actuated))
        return self.mass_matrix(state)[np.ix_(order, order)]

    def remembered(self, state: GeneralState) -> Answer:
        """Nothing."""
        return {}


def open_form(robot: Robot, question: Question) -> OpenForm | str:
    """The form of a rigid robot without loops, or why it is none; energies are those of the tree of any robot."""
    if question.model == "state-rates-following":
        return "no legs carry what is driven"
    if robot.closures.size and question.model != "energy":
        return "it has loops" if robot.closures.loops else "its joints are coupled"
    if robot.tree.elastic and question.model != "energy":
        return "its bodies are flexible"
    none: Array = np.zeros(0, dtype=int)
    return OpenForm(robot, Partition(none, none, robot.free), question=question)
