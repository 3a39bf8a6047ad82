"""Pose, twist and acceleration of the platform, or of the end effector of a robot without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from parflex.models.forms.form import Answer, Given, Groups
from parflex.models.forms.in_coordinates.coordinates import Coordinates

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class PlatformCoordinates(Coordinates):
    """Joints follow in closed form, or by Newton steps from the positions before, which come out for the next call."""

    word: ClassVar[str] = "platform"

    @property
    def place_groups(self) -> Groups:
        """The pose; where positions are found from it, those before."""
        return self.form.place_groups

    @property
    def rate_groups(self) -> Groups:
        """The twist."""
        return self.form.twist_groups

    @property
    def motion_groups(self) -> Groups:
        """The acceleration."""
        planar = self.form.robot.tree.planar
        return {"acceleration": (2 if planar else 3,), "angular_acceleration": (1 if planar else 3,)}

    @property
    def labels(self) -> dict[str, list[str]]:
        """Motors, modes of a flexible platform, all positions and rates."""
        tree = self.form.robot.tree
        own = {name: words for name, words in self.form.labels.items() if name.startswith(("effort", "elastic"))}
        positions = list(tree.position_names)
        return own | {"q": positions, "last": positions, "rates": list(tree.rate_names)}

    @property
    def read(self) -> list[str]:
        """As many components of the twist as freedoms, and those modes that are given."""
        return [*self.form.twist_read, *self.form.labels.get("elastic_rate", [])]

    def state(self, given: Given) -> Any:
        """The state in which the platform stands and moves so."""
        return self.form.by_platform(given)

    def motion(self, state: Any, given: Given) -> Given:
        """From the acceleration of the platform."""
        return self.form.for_platform(state, given)

    def accelerations(self, state: Any, independent: Array) -> Answer:
        """Of the platform."""
        return self.form.platform_accelerations(state, independent)

    def direct(self, state: Any, tau: Array) -> Answer:
        """Some forms answer so themselves."""
        answer = self.form.direct(state, tau)
        if "qdd" in answer:
            answer = self.accelerations(state, answer["qdd"])
        return answer | self.found(state)

    def kinematics(self, state: Any) -> Answer:
        """All positions and rates."""
        return {"q": state.q, "rates": state.qd}

    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """In components of the platform's twist, as many as freedoms."""
        return self.form.platform_inertia(state), self.form.twist_read

    def missed(self, state: Any, given: Given) -> Answer:
        """Return how far the last step left loops and the platform; nothing of joints in closed form."""
        return self.form.missed_platform(state, given)

    def found(self, state: Any) -> Answer:
        """All positions, where the next call needs them."""
        return {"q": state.q} if "last" in self.place_groups else {}
