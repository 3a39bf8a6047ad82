"""What a run tells of joints that stick: which, when, until when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parflex.integrators.stiction import STUCK
from parflex.simulation.problem import Problem

Array = np.ndarray
SAME = 1e-9  # rad, or typical lengths: a joint that is still there has not moved
NO_TIME = 1e-9  # of the time between rows: a joint that turns back rests no longer


def stick_entries(problem: Problem, events: Array, columns: Mapping[str, Array]) -> list[dict[str, Any]]:
    """Every time a joint stuck, of events of gates: joint, time, and when it broke away; None: not until the end.

    Joints that others hold may bear all they can without moving: they stick on until they are elsewhere.
    """
    first, found = len(problem.slack) - 2 * len(problem.sticking), []
    least = NO_TIME * float(np.diff(columns["t"][:2]).sum())
    for number, link in enumerate(problem.sticking):
        own = events[(events[:, 0] >= first) & ((events[:, 0] - first) // 2 == number)]
        own = own[np.argsort(own[:, 2], kind="stable")]
        last = np.array([[0.0, 0.0, np.inf, columns[f"q.{link.name}"][-1]]])  # where the joint is at the end
        unit, begun = SAME * problem.robot.tree.rate_units[link.v.start], None
        for (_, does, time, place), (*_, after) in zip(own, np.concatenate([own, last])[1:], strict=True):
            leaves = does != STUCK and not abs(after - place) <= unit  # it begins to slide, and does
            if does == STUCK and begun is None:
                begun = time
            elif leaves and begun is not None:
                if time - begun > least:
                    found.append({"joint": link.name, "time": float(begun), "until": float(time)})
                begun = None
        if begun is not None:
            found.append({"joint": link.name, "time": float(begun), "until": None})
    return sorted(found, key=lambda one: one["time"])


def alike_warnings(problem: Problem, counts: Mapping[str, int]) -> list[str]:
    """A sentence where rates of joints at rest were so alike that which of them slides is not told."""
    if not counts.get("alike_rests"):
        return []
    names = ", ".join(f"'{link.name}'" for link in problem.sticking[:4]) + (", ..." if problem.sticking[4:] else "")
    return [
        f"rates of some of the joints that stick ({names}) are nearly one, so that which of them slides is not sure: "
        "compare with friction_width=1e-3"
    ]
