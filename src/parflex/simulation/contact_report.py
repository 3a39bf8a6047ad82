"""Summary of contacts in a run: stops, stiction, flanks of backlash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parflex.integrators.stiction import STUCK
from parflex.simulation.problem import Problem
from parflex.tree.force_elements import gated_contacts

Array = np.ndarray
SAME = 1e-9  # rad, or typical lengths: a joint that is still there has not moved
NO_TIME = 1e-9  # of the time between rows: a joint that reverses does not stick


def contact_summary(problem: Problem, events: Array, columns: Mapping[str, Array], stops: bool) -> dict[str, Any]:
    """Return each contact with a stop (if stops act) or a flank, and each interval of stiction, by events of gates."""
    summary: dict[str, Any] = {}
    if stops:
        summary = {"stops": _begun(problem, events, "stop", "joint"), "largest_stop_effort": _largest_effort(columns)}
    if problem.sticking:
        summary["sticks"] = _stiction(problem, events, columns)
    if any(spring.has_flanks for spring in problem.robot.tree.springs):
        summary["flanks"] = _begun(problem, events, "flank", "coupling")
    return summary


def _begun(problem: Problem, events: Array, kind: str, word: str) -> list[dict[str, Any]]:
    """Return contacts of a kind: joint or coupling, side, time, and the speed at the begin."""
    contacts = {on.contact.told: on for on in gated_contacts(problem.robot.tree) if on.kind == kind}
    return [
        {word: contacts[gate].name, "side": contacts[gate].side, "time": time, "speed": abs(rate)}
        for gate, became, time, rate in sorted(events.tolist(), key=lambda row: row[2])
        if gate in contacts and became
    ]


def _largest_effort(columns: Mapping[str, Array]) -> dict[str, Any] | None:
    """Return joint, effort and time of the largest effort of a stop in the rows; None if there is none."""
    best: dict[str, Any] | None = None
    for name in columns:
        if name.startswith("stop.") and name.endswith(".effort") and len(columns["t"]):
            values = np.abs(columns[name])
            row = int(np.argmax(values))
            if values[row] > (0.0 if best is None else best["effort"]):
                joint = name.removeprefix("stop.").removesuffix(".effort")
                best = {"joint": joint, "effort": float(values[row]), "time": float(columns["t"][row])}
    return best


def _stiction(problem: Problem, events: Array, columns: Mapping[str, Array]) -> list[dict[str, Any]]:
    """Return intervals of stiction: joint, begin, and end, which is None if it lasts until the end of the run.

    Joints that others hold may carry their largest friction without moving: they stick until they have moved.
    """
    first, intervals = len(problem.slack) - 2 * len(problem.sticking), []
    least = NO_TIME * float(np.diff(columns["t"][:2]).sum())
    for number, link in enumerate(problem.sticking):
        joint_events = events[(events[:, 0] >= first) & ((events[:, 0] - first) // 2 == number)]
        joint_events = joint_events[np.argsort(joint_events[:, 2], kind="stable")]
        places = [*joint_events[1:, 3], columns[f"q.{link.name}"][-1]]  # of the joint at the next event, or at the end
        unit, begun = SAME * problem.robot.tree.rate_units[link.v.start], None
        for (_, state, time, place), after in zip(joint_events, places, strict=False):
            if state == STUCK and begun is None:
                begun = time
            elif state != STUCK and begun is not None and not abs(after - place) <= unit:
                if time - begun > least:
                    intervals.append({"joint": link.name, "time": float(begun), "until": float(time)})
                begun = None
        if begun is not None:
            intervals.append({"joint": link.name, "time": float(begun), "until": None})
    return sorted(intervals, key=lambda interval: interval["time"])
