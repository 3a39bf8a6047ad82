"""What a run tells of joints that stick: which, when, until when."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.simulation.integrators.sticking import STUCK
from parflex.simulation.problem import Problem

Array = np.ndarray
SAME = 1e-9  # rad, or typical lengths: a joint that is still there has not moved


def stick_entries(problem: Problem, events: Array) -> list[dict[str, Any]]:
    """Every time a joint stuck, of events of gates: joint, time, and when it broke away; None: not until the end.

    Joints that others hold may bear all they can without moving: they stick on.
    """
    first, units, found = len(problem.slack) - 2 * len(problem.sticking), problem.robot.tree.rate_units, []
    last: dict[str, tuple[dict[str, Any], float]] = {}  # entry, and where the joint was
    for gate, became, time, place in sorted(events.tolist(), key=lambda row: row[2]):
        if int(gate) < first:
            continue
        link = problem.sticking[(int(gate) - first) // 2]
        entry, there = last.get(link.name, ({}, np.inf))
        stays = abs(place - there) <= SAME * units[link.v.start]
        if stays:
            entry["until"] = None if became == STUCK else time
        elif became == STUCK:
            last[link.name] = {"joint": link.name, "time": time, "until": None}, place
            found.append(last[link.name][0])
        else:
            last.pop(link.name, None)
    return found
