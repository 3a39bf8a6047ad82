"""Positions, rates and accelerations of the motors, and the positions before: what a controller has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from parflex.models.forms.form import Answer, Given, Groups
from parflex.models.forms.in_coordinates.coordinates import Coordinates

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class MotorCoordinates(Coordinates):
    """All other positions are found by Newton steps from those before, which come out for the next call."""

    word: ClassVar[str] = "motors"

    @property
    def _count(self) -> tuple[int, ...]:
        return (len(self.form.robot.actuated),)

    @property
    def place_groups(self) -> Groups:
        """Positions of the motors; if loops must be closed, all previous positions."""
        tree, loops = self.form.robot.tree, self.form.robot.closures.size
        return {"motor_position": self._count} | ({"last": (tree.nq,)} if loops else {})

    @property
    def rate_groups(self) -> Groups:
        """Rates of the motors."""
        return {"motor_rate": self._count}

    @property
    def motion_groups(self) -> Groups:
        """Accelerations of the motors."""
        return {"motor_acceleration": self._count}

    @property
    def labels(self) -> dict[str, list[str]]:
        """Motors, and all positions."""
        tree, motors = self.form.robot.tree, self.form.robot.actuated_names
        found = dict.fromkeys(("motor_position", "motor_rate", "motor_acceleration", "effort"), motors)
        positions = list(tree.position_names)
        return found | {"q": positions, "last": positions, "rates": list(tree.rate_names)}

    @property
    def read(self) -> list[str]:
        """All of them."""
        return self.form.robot.actuated_names

    def state(self, given: Given) -> Any:
        """The state at which the motors stand and move so."""
        return self.form.by_motors(given["motor_position"], given["motor_rate"], given)

    def motion(self, state: Any, given: Given) -> Given:
        """From the accelerations of the motors."""
        return self.form.for_motors(state, given["motor_acceleration"])

    def accelerations(self, state: Any, independent: Array) -> Answer:
        """Of the motors."""
        every = self.form.all_accelerations(state, independent)
        return {"motor_acceleration": every[list(self.form.robot.actuated)]}

    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """In the rates of the motors."""
        return self.form.motor_inertia(state), self.form.robot.actuated_names

    def missed(self, state: Any, given: Given) -> Answer:
        """Return how far the last step left loops and motors."""
        return self.form.missed(state, given["motor_position"])

    def found(self, state: Any) -> Answer:
        """All positions, unless the motors say them."""
        return {"q": state.q} if self.form.robot.closures.size else {}
