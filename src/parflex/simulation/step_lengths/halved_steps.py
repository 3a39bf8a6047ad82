"""The error of a whole run, by a second one with half the steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.simulation.integrators.integrate import IntegratedRows
from parflex.simulation.run_checks import apart_from
from parflex.simulation.step_lengths.step_choice import LEAST

Array = np.ndarray
MORE_STEPS = 1.5  # times the steps of a run: a second one with fewer is none with half the steps
ORDERS = {"gauss4": 4, "gauss6": 6, "rk4": 4, "dopri5": 5, "generalized-alpha": 2}


def halved(case: Any, length: float) -> Any:
    """The case with steps half as long: where errors choose them, with an error that such steps have."""
    grid, less = case.grid, 2.0 ** -(ORDERS[case.method.name] + 1)
    if case.method.name == "dopri5":
        return replace(case, tolerance=max(case.tolerance * less, 1e-14))
    if grid.begin:
        aim = max(grid.aim * less, LEAST * length)
        return replace(case, grid=replace(grid, aim=aim, begin=grid.begin / 2), tolerance=case.tolerance * 0.1)
    return replace(case, grid=replace(grid, step=grid.step / 2, every=grid.every * 2, aim=0.0))


def halved_evenly(case: Any, time: float, steps: int) -> Any:
    """The case with even steps of half the mean length: rows and events may end steps that errors would halve."""
    grid = case.grid
    every = max(2, math.ceil(2 * steps * grid.out_step / time))
    return replace(case, grid=replace(grid, step=grid.out_step / every, every=every, begin=0.0, aim=0.0))


def estimated_error(
    columns: Mapping[str, Array], other: Mapping[str, Array], frame: str, case: Any, second: IntegratedRows
) -> dict[str, Any]:
    """What a run errs by: its difference to one with half the steps, and what that one errs by still."""
    order = ORDERS[case.method.name]
    more = 1 / (1 - 0.5**order)
    metres, radians, shares = apart_from(columns, other, frame)
    most = max(shares, key=lambda name: shares[name], default="")
    return {
        "frame": frame,
        "metres": more * metres,
        "radians": more * radians,
        "coordinate": {"coordinate": most, "share_of_range": more * shares.get(most, 0.0)},
        "how": f"a second run with half the steps ({second.counts['steps']}), order {order}",
        "seconds": second.seconds,
    }
