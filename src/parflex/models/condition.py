"""How near a pose is to a singularity: condition numbers, and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.records import Record

SINGULAR = 1e7  # condition number above which a model is refused: seven of sixteen digits are gone
NEAR_SINGULAR = 1e4  # above which a warning is given


@dataclass(frozen=True, eq=False, repr=False)
class Condition(Record):
    """Condition numbers: of each leg, of the platform with motors locked, of the closures."""

    legs: dict[str, float]
    platform: float  # infinity where there are fewer motors than freedoms: at any pose, which is no singularity
    closures: float
    enough_motors: bool = True
    sides: bool = False  # legs are sides of loops without a platform
    loose: str = ""  # a sentence on what locked motors leave free, where there is no platform

    def as_dict(self) -> dict[str, Any]:
        """For JSON; infinity becomes None."""
        finite = {name: value if np.isfinite(value) else None for name, value in self.legs.items()}
        numbers = (value if np.isfinite(value) else None for value in (self.platform, self.closures))
        return dict(zip(("legs", "platform", "closures"), (finite, *numbers), strict=True))

    def warnings(self) -> list[str]:
        """A sentence for each number that is large."""
        large = {name: value for name, value in self.legs.items() if value > NEAR_SINGULAR}
        body = "robot" if self.sides else "platform"
        locked = self.platform if self.enough_motors and not self.loose else 1.0
        named = {f"the {body} with locked motors": locked}
        named |= {"the set of closures": self.closures}
        harmless = self.sides and all(value <= NEAR_SINGULAR for value in named.values())
        if not harmless:
            named = {f"leg '{name}'": value for name, value in large.items()} | named
        dead = [
            f"'{name}' is stretched or folded: its end cannot move in every direction here, "
            "although the motors constrain the robot"
            for name in large
            if harmless and self.enough_motors
        ]
        return (
            dead
            + [self.loose] * bool(self.loose)
            + [_near(name, value) for name, value in named.items() if value > NEAR_SINGULAR]
        )


def _near(name: str, value: float) -> str:
    if value > SINGULAR:
        return f"{name} is at a singularity"
    return f"{name} is near a singularity (condition number {value:.1e})"
