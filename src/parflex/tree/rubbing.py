"""Joints that may stick in a run in time: the run says what their friction is.

A joint that slides has a friction effort of one sign; one that sticks has the effort that keeps it at rest, which is
found beside the model: it is an input of it, and so is an inertia that holds the joint nearly, theory (57). Forces stay
smooth in every step; a step ends where a joint comes to rest or breaks away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from parflex.tree.contacts import Gates


@dataclass(frozen=True)
class Rubbing:
    """A joint that may stick, and where its two inputs stand among the gates of a run."""

    count: ClassVar[int] = 2  # inputs: its friction effort, and the inertia that holds it
    gate: int = -1
    gates: Gates | None = field(default=None, compare=False)

    @property
    def known(self) -> bool:
        """Whether inputs, and not the rate, say what its friction is."""
        return self.gates is not None and self.gates.values is not None

    @property
    def effort(self) -> Any:
        """What friction takes, along the rate."""
        assert self.gates is not None
        return self.gates.values[self.gate]

    @property
    def holding(self) -> Any:
        """The inertia that holds the joint while it sticks."""
        assert self.gates is not None
        return self.gates.values[self.gate + 1]
