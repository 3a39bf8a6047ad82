"""Report of stops, stiction and exceeded limits of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.dynamics.contact_state import limits_without_stop
from parflex.forces.effort_allocation import read_limits
from parflex.integrators.driver import rounded_down
from parflex.integrators.stiction import STUCK
from parflex.recursion.energy import contact_depths
from parflex.recursion.kinematics import pose
from parflex.robot.limits import check_limits, efforts_of_file
from parflex.robot.robot import Robot
from parflex.robot.states import quoted
from parflex.simulation.problem import Problem
from parflex.simulation.quantities import coordinate_rows
from parflex.trajectories.trajectory import Trajectory
from parflex.tree.force_elements import gated_contacts
from parflex.tree.tree import Tree

Array = np.ndarray
MOST_TOLD = 5  # names in a warning

# steps in a contact that give its rebound to a thousandth, generalized-alpha to five: of a mass against a damped stop
STEPS_IN_A_CONTACT = {"gauss4": 5, "gauss6": 3, "rk4": 8, "generalized-alpha": 12}
SLOW = 0.01  # of the largest speed in the run: what grazes or comes to rest, with 1e-4 of the energy
MOST_LOOKED_AT = 100  # rows, for that speed
TOLD = {"stop": "the contact of joint '{}' with its stop", "flank": "the contact of coupling '{}' with a flank",
        "cable": "the pull of cable '{}'"}  # fmt: skip

SAME = 1e-9  # rad, or typical lengths: a joint that is still there has not moved
NO_TIME = 1e-9  # of the time between rows: a joint that turns back rests no longer


def contact_summary(problem: Problem, events: Array, columns: Mapping[str, Array], stops: bool) -> dict[str, Any]:
    """Every time a joint met a stop, where these act, a joint stuck or a coupling met a flank, of events of gates."""
    summary: dict[str, Any] = {}
    if stops:
        summary = {"stops": _begun(problem, events, "stop", "joint"), "largest_stop_effort": _largest_effort(columns)}
    if problem.sticking:
        summary["sticks"] = _stiction(problem, events, columns)
    if any(spring.has_flanks for spring in problem.robot.tree.springs):
        summary["flanks"] = _begun(problem, events, "flank", "coupling")
    return summary


def _begun(problem: Problem, events: Array, kind: str, word: str) -> list[dict[str, Any]]:
    """Contacts of a kind: joint or coupling, side, time, and the speed with which it went in."""
    contacts = {on.contact.told: on for on in gated_contacts(problem.robot.tree) if on.kind == kind}
    return [
        {word: contacts[gate].name, "side": contacts[gate].side, "time": time, "speed": abs(rate)}
        for gate, became, time, rate in sorted(events.tolist(), key=lambda row: row[2])
        if gate in contacts and became
    ]


def _largest_effort(columns: Mapping[str, Array]) -> dict[str, Any] | None:
    """The row in which a stop pushes most; None where none does."""
    best: dict[str, Any] | None = None
    for name in columns:
        if name.startswith("stop.") and name.endswith(".effort") and len(columns["t"]):
            values = np.abs(columns[name])
            row = int(np.argmax(values))
            if values[row] > (0.0 if best is None else best["effort"]):
                joint = name.removeprefix("stop.").removesuffix(".effort")
                best = {"joint": joint, "effort": float(values[row]), "time": float(columns["t"][row])}
    return best


def stop_warnings_of(problem: Problem) -> list[Diagnostic]:
    """Limits that do not act, though stops do."""
    names = limits_without_stop(problem.robot)
    if not names:
        return []
    text = f"the limits of {quoted(names)} do not act: they have no stop"
    return [Diagnostic("limit-without-stop", text, names[0])]


def contact_warnings(
    problem: Problem, events: Array, columns: Mapping[str, Array], method: str, step: float
) -> list[Diagnostic]:
    """Contacts, of events of gates, that are over before fixed steps can follow them; their energy balance is right."""
    enough = STEPS_IN_A_CONTACT.get(method, 0) * step
    short = [contact for contact in _met(problem.robot.tree, events) if contact[2] < enough]
    if not short:
        return []
    fastest = _fastest(problem.robot, columns)
    for place, _, _, speed in short:
        fastest[place] = max(fastest[place], speed)
    of, shortest = list(gated_contacts(problem.robot.tree)), dict[tuple[str, str], tuple[float, float]]()
    for place, time, duration, speed in short:
        if speed >= SLOW * fastest[place]:
            first, least = shortest.get((of[place].kind, of[place].name), (time, duration))
            shortest[of[place].kind, of[place].name] = first, min(least, duration)
    return [
        Diagnostic(
            "short-contact",
            f"{TOLD[kind].format(name)} takes {least:.2g} s (first at t = {first:.4g} s), too short for steps of "
            f"{step:.2g} s: how it rebounds is not resolved; give steps of {rounded_down(least * step / enough)} s or "
            "less, or the method 'dopri5'",
            name,
            least,
        )
        for (kind, name), (first, least) in list(shortest.items())[:MOST_TOLD]
    ]


def _met(tree: Tree, events: Array) -> list[tuple[int, float, float, float]]:
    """Contacts that began and ended, by their places: when, how long they pushed, and the speed at first."""
    places = {
        gate: (k, on.contact)
        for k, on in enumerate(gated_contacts(tree))
        for gate in {on.contact.gate, on.contact.told}
    }
    begun: dict[int, tuple[float, float]] = {}
    contacts = []
    for gate, became, time, rate in sorted(events.tolist(), key=lambda row: row[2]):
        if int(gate) not in places:  # of a joint that sticks
            continue
        place, contact = places[int(gate)]
        if became and int(gate) == contact.told:
            begun[place] = time, abs(rate)
        elif not became and place in begun:  # it lets go, damped inside still
            start, speed = begun.pop(place)
            contacts.append((place, start, time - start, speed))
    return contacts


def _fastest(robot: Robot, columns: Mapping[str, Array]) -> Array:
    """The largest speed of each contact in some rows of a run."""
    tree, (q, qd) = robot.tree, (coordinate_rows(robot, columns, word) for word in ("q", "qd"))
    with np.errstate(over="ignore", invalid="ignore"):  # a run that diverged
        rows = [
            [abs(float(rate)) for _, _, rate in contact_depths(tree, pose(tree, q[k]), tree.rates(q[k], qd[k]))]
            for k in np.unique(np.linspace(0, len(q) - 1, MOST_LOOKED_AT).astype(int))
        ]
    return np.nan_to_num(np.array(rows), posinf=0.0).max(axis=0)


def gates_at(tree: Tree, q: Array, qd: Array) -> Array:
    """Gates as a state says, for rows that were not computed by the loop."""
    gates: list[float] = []
    for contact, depth, rate in contact_depths(tree, pose(tree, q), qd):
        inside = depth > 0
        pushes = inside and contact.stiffness * depth + contact.damping * rate > 0
        gates += [float(pushes), float(inside)][: contact.count] if contact.damping else [float(inside)]
    return np.array(gates)


def events_between(tree: Tree, times: Array, states: Sequence[tuple[Array, Array]]) -> Array:
    """Contacts that open between rows of a passage, at roots of the cubics through depths and rates."""
    from scipy.interpolate import CubicHermiteSpline  # slow to import, and seldom needed

    rows = [list(contact_depths(tree, pose(tree, q), qd)) for q, qd in states]
    opened: list[list[float]] = []
    for contacts in zip(*rows, strict=True):
        depth = CubicHermiteSpline(times, *np.array([each[1:] for each in contacts]).T)
        rates = [(time, depth(time, 1)) for time in depth.roots(extrapolate=False)]
        opened += [[contacts[0][0].told, 1.0, time, rate] for time, rate in rates if rate > 0]
    return np.array(opened, dtype=float).reshape(-1, 4)


def _stiction(problem: Problem, events: Array, columns: Mapping[str, Array]) -> list[dict[str, Any]]:
    """Every time a joint stuck: joint, time, and when it broke away; None: not until the end.

    Joints that others hold may bear all they can without moving: they stick on until they are elsewhere.
    """
    first, intervals = len(problem.slack) - 2 * len(problem.sticking), []
    least = NO_TIME * float(np.diff(columns["t"][:2]).sum())
    for number, link in enumerate(problem.sticking):
        joint_events = events[(events[:, 0] >= first) & ((events[:, 0] - first) // 2 == number)]
        joint_events = joint_events[np.argsort(joint_events[:, 2], kind="stable")]
        places = [*joint_events[1:, 3], columns[f"q.{link.name}"][-1]]  # where the joint is next, or at the end
        unit, begun = SAME * problem.robot.tree.rate_units[link.v.start], None
        for (_, does, time, place), after in zip(joint_events, places, strict=False):
            leaves = does != STUCK and not abs(after - place) <= unit  # it begins to slide, and does
            if does == STUCK and begun is None:
                begun = time
            elif leaves and begun is not None:
                if time - begun > least:
                    intervals.append({"joint": link.name, "time": float(begun), "until": float(time)})
                begun = None
        if begun is not None:
            intervals.append({"joint": link.name, "time": float(begun), "until": None})
    return sorted(intervals, key=lambda interval: interval["time"])


def identical_joint_warnings(problem: Problem, counts: Mapping[str, int]) -> list[Diagnostic]:
    """A diagnostic where rates of joints at rest were so alike that which of them slides is not told."""
    if not counts.get("alike_rests"):
        return []
    names = [link.name for link in problem.sticking]
    text = (
        f"rates of some of the joints that stick ({quoted(names)}) are nearly one, so that which of them slides is not "
        "sure: compare with friction_width=1e-3"
    )
    return [Diagnostic("identical-stiction", text, names[0])]


def run_limit_warnings(
    robot: Robot, columns: Mapping[str, Array], motors: Sequence[str], effort_limit: Any, motion: Any = None
) -> list[Diagnostic]:
    """Return a diagnostic for each limit that a run exceeds in its rows or, of motors that follow `motion`, in between.

    Limits of efforts that the call states (`effort_limit`) override those of the file.
    """
    if not len(columns["t"]):  # the run has not begun
        return []
    values = {word: _named(columns, word) for word in ("q", "qd", "effort")}
    lower, upper = read_limits(motors, effort_limit)
    efforts = efforts_of_file({name: values["effort"][name] for name in motors}, lower, upper)
    violations = {
        (violation.joint, violation.key): violation
        for violation in check_limits(robot, values["q"], values["qd"], efforts, columns["t"])
    }
    limited = any(link.limits is not None or link.velocity_limit is not None for link in robot.tree.links)
    if isinstance(motion, Trajectory) and limited:
        between = motion.violations(robot, float(columns["t"][-1]))
        violations |= {(violation.joint, violation.key): violation for violation in between}
    return [violation.diagnostic for violation in violations.values()]


def _named(columns: Mapping[str, Array], word: str) -> dict[str, Array]:
    return {name.removeprefix(f"{word}."): values for name, values in columns.items() if name.startswith(f"{word}.")}
