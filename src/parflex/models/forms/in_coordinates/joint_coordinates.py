"""Closed positions of all coordinates, with the rates of all or of the independent ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from parflex.models.forms.form import Answer, Given, Groups
from parflex.models.forms.in_coordinates.coordinates import Coordinates
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.spatial.linear import scalar_type

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class AllCoordinates(Coordinates):
    """All rates and accelerations; the independent ones are read, the others follow from the loops."""

    word: ClassVar[str] = "all"

    @property
    def place_groups(self) -> Groups:
        """All positions, closed."""
        return {"q": (self.form.robot.tree.nq,)}

    @property
    def rate_groups(self) -> Groups:
        """All rates."""
        return {"qd": (self.form.robot.tree.n,)}

    @property
    def motion_groups(self) -> Groups:
        """All accelerations."""
        return {"qdd": (self.form.robot.tree.n,)}

    @property
    def labels(self) -> dict[str, list[str]]:
        """Names of the tree."""
        return _labels(self, list(self.form.robot.tree.rate_names))

    @property
    def read(self) -> list[str]:
        """The independent rates."""
        return self.form.independent_names

    def state(self, given: Given) -> Any:
        """The independent rates are read."""
        return self.form.moving(given["q"], given["qd"][self.form.independent])

    def motion(self, state: Any, given: Given) -> Given:
        """The independent accelerations are read; of a flexible robot those of the motors."""
        return self.form.given_motion(state, given["qdd"])

    def accelerations(self, state: Any, independent: Array) -> Answer:
        """Of all coordinates."""
        return {"qdd": self.form.all_accelerations(state, independent)}

    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """That of the open tree: twice the kinetic energy is qd^T M qd for all rates that keep the loops closed."""
        tree = self.form.robot.tree
        return tree_mass_matrix(tree, state.at), list(tree.rate_names)


@dataclass(frozen=True, eq=False, repr=False)
class IndependentCoordinates(Coordinates):
    """The independent rates and accelerations; positions of all, since no finite program closes them."""

    word: ClassVar[str] = "independent"

    @property
    def place_groups(self) -> Groups:
        """All positions, closed."""
        return {"q": (self.form.robot.tree.nq,)}

    @property
    def rate_groups(self) -> Groups:
        """The independent rates."""
        return {"qd": (len(self.form.independent),)}

    @property
    def motion_groups(self) -> Groups:
        """The independent accelerations."""
        return {"qdd": (len(self.form.independent),)}

    @property
    def labels(self) -> dict[str, list[str]]:
        """Names of the independent rates."""
        return _labels(self, self.form.independent_names)

    @property
    def read(self) -> list[str]:
        """The independent rates."""
        return self.form.independent_names

    def state(self, given: Given) -> Any:
        """As given."""
        return self.form.moving(given["q"], given["qd"])

    def motion(self, state: Any, given: Given) -> Given:
        """As given; of a flexible robot those of the motors, or of its platform, are read."""
        qdd: Array = np.zeros(self.form.robot.tree.n, dtype=scalar_type(given["qdd"]))
        qdd[self.form.independent] = given["qdd"]
        return self.form.given_motion(state, qdd)

    def accelerations(self, state: Any, independent: Array) -> Answer:
        """Of the independent coordinates."""
        return {"qdd": independent}

    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """In the independent rates."""
        return self.form.mass_matrix(state), self.form.independent_names


def _labels(asked: Coordinates, rates: list[str]) -> dict[str, list[str]]:
    positions = list(asked.form.robot.tree.position_names)
    named = {"q": positions, "qd": rates, "qdd": rates, "rates": list(asked.form.robot.tree.rate_names)}
    return asked.form.labels | named
