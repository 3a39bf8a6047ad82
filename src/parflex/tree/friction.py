"""Friction of joints: smooth Coulomb friction, stiction, and losses of gears."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from parflex.tree.force_elements import Gates


@dataclass(frozen=True)
class StictionJoint:
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


def smooth_sign(speed: Any, width: Any) -> Any:
    """Sign of a speed, or a smooth curve through zero of a given width."""
    return speed / np.sqrt(speed * speed + width * width) if width else np.sign(speed)


def gear_loss(direction: Any, side: Any, efficiency: float, back: float) -> Any:
    """What the others give more than without losses, per effort on the joint, theory (49).

    `direction` is that of the motion of the joint and `side` that of the effort on it. Where they agree the others
    drive the joint, and give 1/efficiency times as much; else they receive `back` times as much; at rest nothing is
    lost.
    """
    driving_loss, backdriving_loss = 1 / efficiency - 1, 1 - back
    return direction * (direction * (driving_loss - backdriving_loss) + side * (driving_loss + backdriving_loss)) / 2
