"""What a choice of coordinates is: groups of numbers that a state and a motion are given by, over any scalar.

A form answers in coordinates of its own. These classes stand around it: they make its states of what is given, and of
its answers what was asked for. No equation of motion is written here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from parflex.models.forms.form import Answer, Form, Given, Groups
from parflex.records import Record
from parflex.recursion.kinematics import jacobians, place_jacobian

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Coordinates(Record, ABC):
    """A form seen through coordinates that were asked for."""

    word: ClassVar[str]
    form: Form

    @property
    @abstractmethod
    def place_groups(self) -> Groups:
        """What the positions are given by."""

    @property
    @abstractmethod
    def rate_groups(self) -> Groups:
        """What the rates are given by."""

    @property
    @abstractmethod
    def motion_groups(self) -> Groups:
        """The accelerations that the inverse model takes."""

    @property
    @abstractmethod
    def labels(self) -> dict[str, list[str]]:
        """What the entries of groups are called."""

    @abstractmethod
    def state(self, given: Given) -> Any:
        """The state of the form."""

    @abstractmethod
    def motion(self, state: Any, given: Given) -> Given:
        """The accelerations that the inverse model of the form takes."""

    @abstractmethod
    def accelerations(self, state: Any, independent: Array) -> Answer:
        """What the direct model gives, from the independent accelerations."""

    @property
    @abstractmethod
    def read(self) -> list[str]:
        """Names of the rates that are read; others that go in do not matter."""

    @abstractmethod
    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """Inertia in the rates of these coordinates, and their names."""

    def found(self, state: Any) -> Answer:
        """Positions that had to be found, which the next call starts from."""
        return {}

    def missed(self, state: Any, given: Given) -> Answer:
        """Return the `residual` of the Newton steps that found the positions; nothing where all positions are given."""
        return {}

    def inverse(self, state: Any, given: Given) -> Answer:
        """Efforts, and accelerations that follow from them."""
        return self.form.inverse(state, self.motion(state, given)) | self.found(state)

    def direct(self, state: Any, tau: Array) -> Answer:
        """Accelerations under efforts."""
        answer = self.form.direct(state, tau)
        own = answer["qdd"] if "qdd" in answer else self.form.accelerations_under(state, tau)
        return self.accelerations(state, own) | self.found(state)

    def kinematics(self, state: Any) -> Answer:
        """Pose and twist of the end effector in world axes, and all rates."""
        tree = self.form.robot.tree
        place = tree.places[tree.end_effector]
        R, p = state.at.of(place)
        J_v, J_w = place_jacobian(tree, state.at, jacobians(tree, state.at), place)
        twist = {"velocity": R @ (J_v @ state.qd), "angular_velocity": R @ (J_w @ state.qd)}
        return {"position": p, "rotation": R} | twist | {"rates": state.qd} | self.found(state)
