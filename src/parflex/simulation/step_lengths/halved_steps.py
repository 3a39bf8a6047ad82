"""The error of a whole run, by a second one with half the steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.integrators.driver import IntegratedRows
from parflex.simulation.run_checks import apart_from
from parflex.simulation.step_lengths.step_choice import LEAST
from parflex.tree.tree import Tree

Array = np.ndarray
MORE_STEPS = 1.5  # times the steps of a run: a second one with fewer is none with half the steps
LARGE = 2e-3  # of the range of the end effector: errors of a run that it tells of
AT_REST = 1e-9  # of the typical length, rad: errors of a frame that are no larger are those of a frame at rest
ORDERS = {"gauss4": 4, "gauss6": 6, "rk4": 4, "dopri5": 5, "generalized-alpha": 2}


def checked_by_default(case: Any, tolerance: float | None, tree: Tree, sticks: Sequence[Any] | None) -> bool:
    """Whether nothing must be said for a second run: with a tolerance, and with friction in flexible robots.

    Each time a joint sticks or slides bodies begin to vibrate, and later events come at other times.
    """
    chosen = tolerance is not None and (bool(case.grid.begin) or case.method.name == "dopri5")
    return chosen or (case.steps not in ("", "given") and bool(tree.elastic) and bool(sticks))


def error_warnings(columns: Mapping[str, Array], error: Mapping[str, Any], length: float, tolerance: bool) -> list[str]:
    """A sentence where the error of a run is a visible part of what the end effector of a robot of a length does.

    One that does not move by what the run says, and might, is named too.
    """
    frame, kinds = error["frame"], (("metres", ("x", "y", "z"), "m", length), ("radians", ("theta",), "rad", 1.0))
    for kind, words, unit, typical in kinds:
        own = [columns[f"{frame}.{word}"] for word in words if f"{frame}.{word}" in columns]
        way = float(np.linalg.norm([np.ptp(column) for column in own])) if own else 0.0
        if own and error[kind] > max(LARGE * way, AT_REST * typical):
            share = f"{error[kind] / way:.1%} of its way" if error[kind] < way else f"its way is {way:.2g} {unit}"
            cure = "a smaller tolerance" if tolerance else "a tolerance"
            return [
                f"'{frame}' may err by {error[kind]:.2g} {unit} ({share}) by the length of the steps: give {cure}, or "
                "a shorter step"
            ]
    return []


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
    if case.method.name == "dopri5":  # whose steps end at rows: at more of them
        return replace(case, grid=replace(grid, step=grid.out_step / 2, every=1, rows=2 * grid.rows))
    every = max(2, math.ceil(2 * steps * grid.out_step / time))
    return replace(case, grid=replace(grid, step=grid.out_step / every, every=every, begin=0.0, aim=0.0))


def estimated_error(
    columns: Mapping[str, Array], other: Mapping[str, Array], frame: str, case: Any, second: IntegratedRows
) -> dict[str, Any]:
    """What a run errs by: its difference to one with half the steps, and what that one errs by still."""
    between = (len(other["t"]) - 1) // max(1, len(columns["t"]) - 1)
    other = {name: column[::between] for name, column in other.items()} if between > 1 else other
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
