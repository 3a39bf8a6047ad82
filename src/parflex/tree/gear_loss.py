"""What a gear, belt or thread loses of the power that passes, over any scalar: for rigid and elastic couplings."""

from __future__ import annotations

from typing import Any

import numpy as np


def direction(speed: Any, width: Any) -> Any:
    """Sign of a speed, or a smooth curve through zero of a given width."""
    return speed / np.sqrt(speed * speed + width * width) if width else np.sign(speed)


def lost_share(turns: Any, side: Any, efficiency: float, back: float) -> Any:
    """What the others give more than without losses, per effort on the joint, theory (49).

    `turns` is the direction in which the joint moves and `side` that of the effort on it. Where they agree the others
    drive the joint, and give 1/efficiency times as much; else they receive `back` times as much; at rest nothing is
    lost.
    """
    up, down = 1 / efficiency - 1, 1 - back
    return turns * (turns * (up - down) + side * (up + down)) / 2
