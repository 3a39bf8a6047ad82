"""Contacts in a run: stops, cables, flanks of backlash and stiction, by the events of their gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.dynamics.contact_state import limits_without_stop
from parflex.integrators.driver import rounded_down
from parflex.integrators.stiction import STUCK
from parflex.recursion.energy import contact_depths
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.robot.states import quoted
from parflex.simulation.problem import Problem
from parflex.simulation.quantities import coordinate_rows
from parflex.tree.force_elements import GatedContact, gated_contacts
from parflex.tree.tree import Tree

Array = np.ndarray
SAME = 1e-9  # rad, or typical lengths: a joint that is still there has not moved
NO_TIME = 1e-9  # of the time between rows: a joint that reverses does not stick
MOST_NAMED = 3  # contacts in the diagnostics of a run
# steps in a contact that give its rebound to a thousandth, generalized-alpha to five: of a mass against a damped stop
STEPS_IN_A_CONTACT = {"gauss4": 5, "gauss6": 3, "rk4": 8, "generalized-alpha": 12}
SLOW = 0.01  # of the largest speed in the run: a slower contact grazes or comes to rest, with 1e-4 of the energy
MOST_LOOKED_AT = 100  # rows, for that speed
CONTACTS = {
    "stop": "the contact of joint '{}' with its stop",
    "flank": "the contact of coupling '{}' with a flank",
    "cable": "the pull of cable '{}'",
}


class ContactInterval(NamedTuple):
    """A contact from its begin (s), with the speed there, for a duration (s), which is infinite to the end."""

    on: GatedContact
    begin: float
    speed: float
    duration: float


def contact_summary(problem: Problem, events: Array, columns: Mapping[str, Array], stops: bool) -> dict[str, Any]:
    """Return each contact with a stop (if stops act) or a flank, and each interval of stiction, by events of gates."""
    contacts = _contacts(problem.robot.tree, events)

    def begun(kind: str, word: str) -> list[dict[str, Any]]:
        """Return joint or coupling, side, begin and speed of the contacts of a kind."""
        chosen = [each for each in contacts if each.on.kind == kind]
        return [{word: on.name, "side": on.side, "time": begin, "speed": speed} for on, begin, speed, _ in chosen]

    summary: dict[str, Any] = {}
    if stops:
        summary = {"stops": begun("stop", "joint"), "largest_stop_effort": _largest_effort(columns)}
    if problem.sticking:
        summary["sticks"] = _stiction(problem, events, columns)
    if any(spring.has_flanks for spring in problem.robot.tree.springs):
        summary["flanks"] = begun("flank", "coupling")
    return summary


def _contacts(tree: Tree, events: Array) -> list[ContactInterval]:
    """Return all contacts in the order in which they begin."""
    gates = {gate: on for on in gated_contacts(tree) for gate in {on.contact.gate, on.contact.told}}
    contacts: list[ContactInterval] = []
    current: dict[int, int] = {}
    for gate, became, time, rate in sorted(events.tolist(), key=lambda row: row[2]):
        if (on := gates.get(int(gate))) is None:  # of a joint that sticks
            continue
        if became and int(gate) == on.contact.told:
            current[on.contact.told] = len(contacts)
            contacts.append(ContactInterval(on, time, abs(rate), np.inf))
        elif not became and on.contact.told in current:  # a damped contact releases before the depth is zero
            k = current.pop(on.contact.told)
            contacts[k] = contacts[k]._replace(duration=time - contacts[k].begin)
    return contacts


def _largest_effort(columns: Mapping[str, Array]) -> dict[str, Any] | None:
    """Return joint, effort and time of the largest effort of a stop in the rows; None if there is none."""
    efforts = {name: np.abs(columns[name]) for name in columns if name.startswith("stop.") and name.endswith(".effort")}
    largest = max(efforts, key=lambda name: float(efforts[name].max(initial=0.0)), default="")
    if not largest or not efforts[largest].any():
        return None
    row, joint = int(np.argmax(efforts[largest])), largest.removeprefix("stop.").removesuffix(".effort")
    return {"joint": joint, "effort": float(efforts[largest][row]), "time": float(columns["t"][row])}


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


def contact_warnings(
    robot: Robot, events: Array, columns: Mapping[str, Array], method: str, step: float
) -> list[Diagnostic]:
    """Return diagnostics of contacts that end before fixed steps resolve them; their energy balance is right."""
    enough, shortest = STEPS_IN_A_CONTACT.get(method, 0) * step, dict[tuple[str, str], tuple[float, float]]()
    short = [each for each in _contacts(robot.tree, events) if each.duration < enough]
    fastest = _fastest(robot, columns) if short else {}
    for on, begin, speed, duration in short:
        if speed >= SLOW * fastest[on.contact.told]:
            first, least = shortest.get((on.kind, on.name), (begin, duration))
            shortest[on.kind, on.name] = first, min(least, duration)
    return [
        Diagnostic(
            "short-contact",
            f"{CONTACTS[kind].format(name)} takes {least:.2g} s (first at t = {first:.4g} s), too short for steps of "
            f"{step:.2g} s: its rebound is not resolved; give steps of {rounded_down(least * step / enough)} s or "
            "less, or the method 'dopri5'",
            name,
            least,
        )
        for (kind, name), (first, least) in list(shortest.items())[:MOST_NAMED]
    ]


def _fastest(robot: Robot, columns: Mapping[str, Array]) -> dict[int, float]:
    """Return the largest rate of the depth of each contact in some rows of a run."""
    tree, fastest = robot.tree, dict[int, float]()
    q, qd = (coordinate_rows(robot, columns, word) for word in ("q", "qd"))
    for k in np.linspace(0, len(q) - 1, MOST_LOOKED_AT).astype(int):
        for contact, _, rate in contact_depths(tree, pose(tree, q[k]), tree.rates(q[k], qd[k])):
            fastest[contact.told] = max(fastest.get(contact.told, 0.0), abs(float(rate)))
    return fastest


def stop_limit_warnings(robot: Robot) -> list[Diagnostic]:
    """Return a diagnostic of limits that do not act, although stops do."""
    names = limits_without_stop(robot)
    if not names:
        return []
    text = f"the limits of {quoted(names)} do not act: they have no stop"
    return [Diagnostic("limit-without-stop", text, names[0])]


def identical_joint_warnings(problem: Problem, counts: Mapping[str, int]) -> list[Diagnostic]:
    """Return a diagnostic if rates of joints in stiction were too similar to determine which of them slides."""
    if not counts.get("alike_rests"):
        return []
    names = [link.name for link in problem.sticking]
    text = f"rates of some of the joints in stiction ({quoted(names)}) are nearly identical, so that either may slide: "
    return [Diagnostic("identical-stiction", f"{text}compare with friction_width=1e-3", names[0])]
