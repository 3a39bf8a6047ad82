"""What is refused and what is said of an FMU before it is made: choices, names, steps that are too long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from parflex.dynamics.dynamics import inverse_dynamics
from parflex.errors import InputError, ParflexError, did_you_mean
from parflex.exchange.fmu.description_xml import Variable
from parflex.exchange.fmu.fmu_plant import FmuPlant
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.simulation.default_step import MOST_COORDINATES, PER_PERIOD, STABLE, excited
from parflex.simulation.problem import metres_per_unit
from parflex.trajectories.polynomials import Polynomials
from parflex.tree.force_elements import has_contacts

DRIVES = ("efforts", "motions")
KINDS = ("cs", "me")
FALL = 9.81  # m/s^2, which motors are taken to cause at once: an effort that lifts the robot, or this acceleration
POWERS = 6  # of the polynomials of runs
SECOND = 1.0  # of a run in which vibrations are judged


def refuse_choice(fmi: int, kind: str, step: float, platforms: str) -> None:
    """Raise for what no FMU has."""
    if isinstance(step, bool) or not isinstance(step, (int, float)) or not 0 < step < np.inf:
        raise InputError("the step must be positive", key="step", value=step, hint="give e.g. 0.0005")
    if kind not in KINDS:
        raise InputError(f"there is no kind '{kind}'", key="kind", value=kind, hint=did_you_mean(str(kind), KINDS))
    if fmi not in (2, 3):
        raise InputError(f"there is no FMI {fmi}", key="fmi", value=fmi, hint="give 2 or 3")
    if platforms not in ("own", "all"):
        said = f"there are no platforms '{platforms}'"
        raise InputError(said, key="platforms", value=platforms, hint="give own or all")


def refuse_plant(robot: Robot, kind: str, drive: str) -> None:
    """Raise for robots that cannot be driven so, or whose contacts a solver outside does not know."""
    if drive not in DRIVES:
        raise InputError(f"there is no drive '{drive}'", key="drive", value=drive, hint=did_you_mean(drive, DRIVES))
    freedoms = robot.mobility.freedoms(len(robot.free))
    if drive == "motions" and len(robot.actuated) > freedoms:
        raise InputError(
            f"the robot has {len(robot.actuated)} motors for {freedoms} freedoms: their motions are not independent",
            key="drive",
            value=drive,
            hint="choose drive='efforts', or another actuation",
        )
    if kind == "me" and has_contacts(robot.tree):
        raise InputError(
            "model exchange of robots with stops, flanks or cables is not known",
            key="kind",
            value=kind,
            hint="choose kind='cs'",
        )


def refuse_names(variables: Sequence[Variable]) -> None:
    """Raise where FMI does not allow a name, or two variables would have the same one."""
    for variable in variables:
        if not variable.name.isprintable() or variable.name != " ".join(variable.name.split(" ")).strip():
            raise InputError(
                f"FMI allows no line breaks, tabs or outer spaces in names, as {variable.name!r} has",
                key="robot",
                value=repr(variable.name),
                hint="rename it in the robot file",
            )
    twice = [name for name, count in Counter(variable.name for variable in variables).items() if count > 1]
    if twice:
        raise InputError(
            f"two variables of the FMU would have the name '{twice[0]}'",
            key="robot",
            value=twice[0],
            hint="rename a joint or frame in the robot file, or leave the frame out of 'frames'",
        )


def step_notes(plant: FmuPlant) -> tuple[str, ...]:
    """A sentence where vibrations need shorter steps, under efforts that lift the robot, or such accelerations.

    A robot without anything elastic has no frequency of its own: what it does takes the time of a swing.
    """
    if plant.kind == "me" or plant.method.name not in PER_PERIOD:
        return ()
    problem, (q, qd, _) = plant.problem, plant.start
    tree, motors, count = problem.robot.tree, list(problem.robot.actuated), PER_PERIOD[plant.method.name]
    step = 2 * np.pi * np.sqrt(tree.length / FALL) / count
    why, known = f"{count} in a swing of a pendulum of {tree.length:.3g} m, the typical length", True
    if is_elastic(problem.robot):
        way = metres_per_unit(tree)[motors]
        coefficients = np.zeros((2, POWERS, plant.system.coefficients.shape[2]))
        if problem.driven:
            coefficients[:, 0, : len(motors)] = plant.start[2][: len(motors)]
            coefficients[1, 2, : len(motors)] = 0.5 * FALL / way
        else:
            mass = sum(float(link.body.m) for link in tree.links)
            coefficients[:, 0, : len(motors)] = _holding(problem.robot, q)
            coefficients[1, 0, : len(motors)] += mass * FALL * way
        given = Polynomials(np.array([0.0, SECOND / 2, np.inf]), coefficients)
        system = problem.system(given)
        known = len(system.free) <= MOST_COORDINATES
        if known and len(system.free):
            found = excited(problem, system, given, q, qd, SECOND)
            known = not found.unknown
            stable = STABLE.get(plant.method.name, np.inf) / max(found.highest, 1e-9)
            period = 2 * np.pi / max(found.vibration, 1e-9)
            ways = [(step, why), (period / count, f"{count} in a period of the excited {1 / period:.3g} Hz")]
            step, why = min([*ways, (stable, f"stable up to {found.highest / (2 * np.pi):.3g} Hz")])
    if not known:
        said = f"the frequencies of {len(plant.system.free)} coordinates are not known"
        return (f"{said}: give a step of a twentieth of the shortest period that matters, if that is less",)
    if step > plant.step * (1 - 1e-6):
        return ()
    return (f"the step {plant.step:g} s is too long for the robot: it needs {step:.3g} s, {why}",)


def is_elastic(robot: Robot) -> bool:
    """Whether a body, a joint, a coupling or an element between points has a stiffness."""
    tree = robot.tree
    joints = any(link.terms.stiffness for link in tree.links)
    return bool(tree.elastic or tree.springs or joints or robot.description.element)


def _holding(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Efforts that hold a robot of rigid bodies at rest, where its motors can: frequencies are those about a rest."""
    try:
        if robot.tree.elastic:
            return np.zeros(len(robot.actuated))
        return np.array(list(inverse_dynamics(robot, Configuration(robot, q), {}, {}).efforts.values()))
    except ParflexError:
        return np.zeros(len(robot.actuated))
