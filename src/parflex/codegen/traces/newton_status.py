"""Status of programs that do a fixed number of Newton steps: whether the last one met its equations."""

from __future__ import annotations

from functools import reduce

import numpy as np

from parflex.robot.states import OPEN
from parflex.symbolic.expression import Expression

Array = np.ndarray
LARGEST = 1e30  # no effort or acceleration (SI) is as large; single precision holds it
POSITIONS = ("q", "position", "turn")  # finite where the residual is


def with_status(outputs: dict[str, Array], length: float) -> dict[str, Array]:
    """Return outputs with the status of their `residual` (m) at the end; outputs without a residual as they are.

    The status is 0 if the residual is below the tolerance and efforts are finite, else 1. The tolerance is that of
    closed positions given as arrays, so that functions take the positions of status 0.
    """
    if "residual" not in outputs:
        return outputs
    residual = outputs["residual"]
    others = {name: values for name, values in outputs.items() if name != "residual"}
    checked = [(residual[0], OPEN * length)]
    checked += [(v, LARGEST) for name, values in others.items() if name not in POSITIONS for v in values.flat]
    flags = [value.not_within(limit) for value, limit in checked if isinstance(value, Expression)]
    status = reduce(Expression.either, flags) if flags else 0.0  # numbers, where nothing is unknown
    return others | {"residual": residual, "status": np.array([status], dtype=object)}
