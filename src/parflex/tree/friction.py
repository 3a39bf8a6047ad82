"""Friction and other forces along one joint: Coulomb and viscous friction, stiction, springs, losses of gears."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from parflex.tree.force_elements import JointStop


class Gates:
    """Numbers or symbols of all gates of a robot while a program is traced; None: states say which contacts push."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.values: Any = None


@dataclass(frozen=True, kw_only=True)
class Gated:
    """A force whose case is told by gates of a run: the first of its own, and all of them."""

    gate: int = -1
    gates: Gates | None = field(default=None, compare=False)

    @property
    def is_gated(self) -> bool:
        """Whether gates, and not the state, tell its case."""
        return self.gates is not None and self.gates.values is not None

    def input(self, number: int = 0) -> Any:
        """The value of one of its gates."""
        assert self.gates is not None
        return self.gates.values[self.gate + number]


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
        if self.rubbing is not None and self.rubbing.is_gated:
            effort = self.rubbing.input()
            return effort + self.more_coulomb if self.more_coulomb else effort
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
        gated = self.rubbing is not None and self.rubbing.is_gated
        return self.motor_inertia + self.rubbing.input(1) if gated else self.motor_inertia  # type: ignore[union-attr]

    @property
    def inert(self) -> bool:
        """Whether it has such an inertia."""
        return bool(self.motor_inertia) or (self.rubbing is not None and self.rubbing.is_gated)


@dataclass(frozen=True)
class StictionJoint(Gated):
    """A joint that may stick."""

    count: ClassVar[int] = 2  # inputs: what friction takes along the rate, and the inertia that holds the joint


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
