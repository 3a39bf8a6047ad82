"""Motors along a path, kept on disk: to close the loops at some hundred poses takes longer than a whole run.

The key holds the robot as it is, the path and where it is begun near, and the code of this package, as that of programs
does.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np

from parflex.codegen import cache
from parflex.robot.robot import Robot
from parflex.simulation.inputs.polynomials import Polynomials

Array = np.ndarray
Found = tuple[Polynomials, Array, Array]


def kept_road(robot: Robot, choices: tuple[Any, ...], find: Callable[[], Found]) -> Found:
    """What `find` finds for a robot and all that it depends on beside it, from the disk if it was found before."""
    key = cache.key_of(robot, "road", *choices)
    if key is None:
        return find()
    key = key.removesuffix(".program") + ".road"
    data = cache.read_bytes(key)
    if data is not None:
        with np.load(BytesIO(data), allow_pickle=False) as kept:
            return Polynomials(kept["breaks"], kept["coefficients"]), kept["first"], kept["last"]
    pieces, first, last = find()
    file = BytesIO()
    np.savez(file, breaks=pieces.breaks, coefficients=pieces.coefficients, first=first, last=last)
    cache.write_bytes(key, file.getvalue())
    return pieces, first, last
