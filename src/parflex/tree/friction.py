"""Friction and other forces along one joint: Coulomb and viscous friction, stiction, springs, losses of gears."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from parflex.tree.force_elements import Gates, JointStop


@dataclass(frozen=True)
class JointTerms:
    """What acts in the row of a joint with one axis."""

    motor_inertia: float = 0.0
    viscous: float = 0.0
    coulomb: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    damper: float = 0.0
    idle: bool = False  # a spring is there, but left out
    width: float = 0.0  # rate at which Coulomb friction has 0.7 of its value; 0: it is a sign
    stop: JointStop | None = None  # at its limits, in runs where stops act
    static: float = 0.0  # what Coulomb friction bears at rest, in runs where joints stick
    rubbing: StictionJoint | None = None  # in runs where the joint may stick
    more_viscous: float = 0.0  # by which viscous friction is larger for positive rates, and smaller for negative ones
    more_coulomb: float = 0.0  # the same of Coulomb friction
    offset: float = 0.0  # what the motor gives at any rate, e.g. the offset of its amplifier

    @property
    def rubs(self) -> bool:
        """Whether it has Coulomb friction."""
        return bool(self.coulomb or self.static)

    @property
    def bears(self) -> float:
        """What Coulomb friction bears at rest."""
        return max(self.static, self.coulomb)

    def friction(self, rate: Any) -> Any:
        """What Coulomb friction takes, along the rate; at rest nothing, or between both directions in runs."""
        if self.rubbing is not None and self.rubbing.known:
            return self.rubbing.effort + self.more_coulomb if self.more_coulomb else self.rubbing.effort
        side = smooth_sign(rate, self.width)
        effort = self.coulomb * side
        return effort + self.more_coulomb * (side * side) if self.more_coulomb else effort

    def viscous_friction(self, rate: Any) -> Any:
        """What viscous friction takes, along the rate."""
        effort = self.viscous * rate
        return effort + self.more_viscous * (rate * smooth_sign(rate, self.width)) if self.more_viscous else effort

    @property
    def inertia(self) -> Any:
        """Of the rotor, with what holds the joint while it sticks."""
        rubbing = self.rubbing
        return self.motor_inertia if rubbing is None or not rubbing.known else self.motor_inertia + rubbing.holding

    @property
    def inert(self) -> bool:
        """Whether it has such an inertia."""
        return bool(self.motor_inertia) or (self.rubbing is not None and self.rubbing.known)


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
