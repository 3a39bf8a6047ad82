"""Define loads on a robot in static equilibrium: servos, spring tension, closure multipliers, tangent stiffness.

In static equilibrium the forces F(q) of the open tree give the reduced forces c = J^T F. The multipliers lam make the
dependent rows of F - J_tot^T lam vanish, so dc = J^T d(F - J_tot^T lam) for constant lam: the rotation of the closure
wrenches contains the derivative of J^T. One pass of the recursion over dual numbers computes dc to rounding.

The stiffness of an element between two points is the second derivative of its energy, tension included. About the
undeformed pose the linear model omits the forces that balance the tension, so its stiffness depends on the choice of
coordinates; about the equilibrium it does not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parflex.errors import InputError, SingularError, did_you_mean
from parflex.forces.forces import Wrench, checked_wrenches, tree_forces, tree_newton_euler
from parflex.forces.reactions import closure_loads, constraint_forces
from parflex.records import Record, name_list
from parflex.recursion.dynamics import NewtonEuler, carry_wrenches, joint_forces
from parflex.recursion.energy import distance, element_wrenches, line_between
from parflex.recursion.kinematics import place_jacobian, pose
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.load import acting_robot
from parflex.robot.motor_values import by_motor, read_efforts
from parflex.robot.robot import Robot
from parflex.spatial.dual import Dual, seed_slopes, slopes
from parflex.spatial.linear import scalar_type, solve
from parflex.statics.linear_system import rate_units
from parflex.statics.load_case import LoadCase, Lock, Servo
from parflex.tree.tree import Place, Tree

Array = np.ndarray

REST_LENGTH_TOLERANCE = 1e-9  # of the characteristic length or a radian: stretch that is rounding
STILL = 1e-12  # motion without units that is rounding


@dataclass(frozen=True, eq=False, repr=False)
class AppliedLoads(Record):
    """Static loads in addition to those of the robot file: wrenches on frames, constant efforts along rates."""

    wrench: Wrench = field(default_factory=dict)
    tau: Array = field(default_factory=lambda: np.zeros(0))
    internal: dict[str, Any] | None = None  # internal efforts in `tau`
    weight: float = 1.0  # share of gravity that acts

    def forces(self, configuration: Configuration) -> Array:
        """Return F, the static forces along the rates of the open tree, less the efforts."""
        zero_rates = np.zeros(configuration.robot.tree.n)
        return tree_forces(configuration, zero_rates, zero_rates, self.wrench, self.weight) - self.tau

    def wrenches(self, configuration: Configuration, lam: Array) -> NewtonEuler:
        """Return the wrenches in all joints of the tree in equilibrium, with the closures acting."""
        zero_rates = np.zeros(configuration.robot.tree.n)
        _, acting = closure_loads(configuration.robot, configuration.at, lam)
        return tree_newton_euler(configuration, zero_rates, zero_rates, self.wrench, acting, self.weight)

    def closed_forces(self, configuration: Configuration, lam: Array) -> Array:
        """Return F - J_tot^T lam."""
        tree = configuration.robot.tree
        joint_term = joint_forces(tree, configuration.q, np.zeros(tree.n), np.zeros(tree.n))
        return self.wrenches(configuration, lam).forces + joint_term - self.tau - constraint_forces(configuration, lam)

    def _told(self) -> str:
        parts = [f"wrenches on {name_list(list(self.wrench))}"] * bool(self.wrench)
        return ", ".join([*parts, *["efforts"] * bool(np.any(self.tau))]) or "gravity and springs alone"


def prepare_loads(robot: Robot, pose: Pose | None, case: LoadCase) -> tuple[Configuration, AppliedLoads]:
    """Return the robot at a pose, with the locks and loads of the load case; the preload is left to `preloaded`."""
    robot = acting_robot(robot, case.without)
    for term, servo, text in (
        ("springs", (case.servo, case.servo_damping), "servos are springs, which 'without' omits"),
        ("damping", (case.servo_damping,), "servo_damping is damping, which 'without' omits"),
    ):
        if term in case.without and any(value is not None for value in servo):
            raise InputError(text, key="without", value=term, hint="keep one of them")
    wrenches = checked_wrenches(robot.tree, case.wrench)
    q = configure(robot, pose).q
    held = held_robot(robot, q, case)
    tau = np.zeros(robot.tree.n)
    tau[list(robot.actuated)] = read_efforts(robot, case.effort)
    for k in robot.actuated:
        if tau[k] and k in held.locked:
            name = robot.tree.rate_names[k]
            text = f"'{name}' is locked, so no effort can be given to it"
            raise InputError(text, key="effort", value=name, hint="lock fewer joints")
    configuration = Configuration(held, q)
    if not len(configuration.reduction.partition.independent):
        text = "nothing can move: all joints are locked and no body is flexible"
        raise InputError(text, key="lock", hint="lock fewer joints, or hold the motors by servo stiffnesses (servo)")
    return configuration, AppliedLoads(wrenches, tau)


def multipliers(configuration: Configuration, F: Array) -> Array:
    """Return the multipliers of the chosen rows that make the dependent rows of F - J_tot^T lam vanish."""
    part = configuration.reduction.partition
    lam: Array = np.zeros(configuration.robot.closures.size, dtype=scalar_type(F))
    if len(part.dependent):
        lam[part.rows] = solve(configuration.reduction.block.T, F[part.dependent])
    return lam


def nearest_multipliers(configuration: Configuration, F: Array) -> Array:
    """Return the multipliers that minimise F - J_tot^T lam without units, for any dependent rates."""
    free, units = configuration.robot.free, configuration.robot.tree.rate_units
    rows = configuration.closure_jacobian[:, free] * units[free]
    return np.linalg.lstsq(rows.T, (F * units)[free], rcond=1e-9)[0] if len(rows) else np.zeros(0)


def tangent_stiffness(configuration: Configuration, loading: AppliedLoads, acting: Array | None = None) -> Array:
    """Return K = dc/dq of the reduced forces along the independent rates; `acting` forces F may be unbalanced."""
    return configuration.J.T @ forces_along(configuration, loading, configuration.J, acting)


def forces_along(
    configuration: Configuration, loading: AppliedLoads, motions: Array, acting: Array | None = None
) -> Array:
    """Return the change of F - J_tot^T lam along columns of closed motions, for constant lam."""
    tree = configuration.robot.tree
    if acting is None:
        lam = multipliers(configuration, loading.forces(configuration))
    else:
        lam = nearest_multipliers(configuration, acting)
    dual_configuration = Configuration(configuration.robot, tree.moved(configuration.q, seed_slopes(motions)))
    return slopes(loading.closed_forces(dual_configuration, lam), motions.shape[1])


def locked_robot(robot: Robot, lock: Lock = "actuators", but: Collection[int] = ()) -> Robot:
    """Return the robot with its motors, no or named joints locked, except rates in `but`."""
    if lock == "none":
        return robot
    if lock == "actuators":
        return robot.locking(set(robot.actuated) - set(but))
    locked_rates: set[int] = set()
    for name in [lock] if isinstance(lock, str) else lock:
        joints = [link for link in robot.tree.links if link.joint.rate_labels]
        links = [link for link in joints if link.name in (name, f"{name}.1", f"{name}.2")]
        if not links:
            hint = did_you_mean(name, [link.name for link in joints])
            raise InputError(f"there is no joint '{name}'", key="lock", value=name, hint=hint)
        joint_rates = {k for link in links for k in range(link.v.start, link.v.stop)}
        if joint_rates & set(but):
            text = f"'{name}' cannot be locked and held by a servo"
            raise InputError(text, key="lock", value=name, hint="keep one of them")
        locked_rates |= joint_rates
    return robot.locking(locked_rates)


def held_robot(robot: Robot, q: Array, case: LoadCase, like: Robot | None = None) -> Robot:
    """Return the robot with joints locked and motors held by servos about the positions `q`.

    A servo is a spring and a damper in the row of its motor. A number applies to all motors that are not locked by
    name; a motor with a servo is not locked by `lock="actuators"`. A robot over any scalar moves like `like`.
    """
    stiffness = _by_motor(like or robot, case.servo, "servo", case.lock)
    damping = _by_motor(like or robot, case.servo_damping, "servo-damping", case.lock)
    locked = locked_robot(robot, case.lock, stiffness.keys() | damping.keys())
    if like is None and not stiffness and not damping:
        return locked
    tree = _with_servos(robot, q, stiffness, damping)
    # springs change neither the home nor how the robot can move
    home, mobility = (robot.home, locked.mobility) if like is None else (like.home, None)
    closures = replace(robot.closures, tree=tree)
    return replace(locked, tree=tree, closures=closures, known_home=home, known_mobility=mobility)


def _with_servos(robot: Robot, q: Array, stiffness: Mapping[int, float], damping: Mapping[int, float]) -> Tree:
    """Return the tree with springs and dampers in the rows of motors."""
    links = list(robot.tree.links)
    for k in sorted(stiffness.keys() | damping.keys()):
        j = robot.tree.link_of_rate[k]
        terms, position = links[j].terms, q[links[j].q.start]
        total = terms.stiffness + stiffness.get(k, 0.0)
        # two parallel springs are one with the weighted mean rest position
        pull = terms.stiffness * terms.rest + stiffness.get(k, 0.0) * position
        rest, damper = pull / total if total else 0.0, terms.damper + damping.get(k, 0.0)
        links[j] = replace(links[j], terms=replace(terms, stiffness=total, rest=rest, damper=damper))
    return replace(robot.tree, links=tuple(links), known_length=robot.tree.length)


def _by_motor(robot: Robot, given: Servo | None, key: str, lock: Lock) -> dict[int, float]:
    """Return values by rate of the motor; a number applies to all motors."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        named = {lock} if isinstance(lock, str) else set(lock)
        given = {name: given for name in robot.actuated_names if name not in named}
        if not given:
            raise InputError("there is no motor to hold", key=key, hint="mark joints as actuated")
    result: dict[int, float] = {}
    for motor, value in by_motor(robot.actuated_names, given, key).items():
        k, word = robot.actuated[motor], robot.actuated_names[motor]
        if not robot.tree.links[robot.tree.link_of_rate[k]].joint.one_axis:
            text, hint = f"'{word}' has more than one axis", "servos need joints with one axis"
            raise InputError(text, key=key, value=word, hint=hint)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value) or value < 0:
            text, hint = f"the value of '{word}' is not a finite non-negative number", "give N/m or N m/rad, e.g. 1e6"
            raise InputError(text, key=key, value=value, hint=hint)
        result[k] = float(value)
    return result


def has_springs(tree: Tree) -> bool:
    """Return whether springs other than bodies can be under tension."""
    return bool(tree.elements or tree.springs) or any(link.terms.stiffness for link in tree.links)


def prestressed_parts(configuration: Configuration) -> list[str]:
    """Return the names of springs under tension that affect a motion of the robot with its locks."""
    tree = configuration.robot.tree
    if not has_springs(tree):
        return []
    names = []
    for element in tree.elements:
        if element.acts and _apart(configuration, element.first, element.second):
            length = _length(configuration, element)
            size = max(map(abs, element.curve.y)) if element.curve else float(element.stiffness) * tree.length
            if abs(float(element.stored(length))) > REST_LENGTH_TOLERANCE * size:
                names.append(element.name)
    sprung = [link for link in tree.links if link.joint.one_axis and link.terms.stiffness]
    stretched: list[tuple[str, Any, list[int], Any]] = [
        (x.name, configuration.q[x.q.start] - x.terms.rest, [x.v.start], 1.0) for x in sprung
    ]
    stretched += [
        (x.name, x.pressed(configuration.q), list(x.rates), x.coefficients) for x in tree.springs if x.stiffness
    ]
    for name, stretch, rates, coefficients in stretched:
        row = np.zeros(tree.n)
        row[rates] = coefficients
        if abs(stretch) > REST_LENGTH_TOLERANCE * tree.rate_units[rates[0]] and _moves(configuration, row):
            names.append(name)
    return names


def equilibrium_reason(configuration: Configuration) -> str:
    """Return why a linear model at a pose requires the equilibrium (the start of a sentence), or an empty text."""
    tense, taut = prestressed_parts(configuration), cables_at_rest_length(configuration)
    parts = [f"{are(names)} {word}" for names, word in ((tense, "under tension"), (taut, "just taut")) if names]
    return f"{' and '.join(parts)} at this pose" if parts else ""


def cables_at_rest_length(configuration: Configuration) -> list[str]:
    """Return the names of cables at their rest length, where the stiffness is discontinuous."""
    tree, here = configuration.robot.tree, configuration
    cables = [e for e in tree.elements if e.pulls_only and e.acts and _apart(here, e.first, e.second)]
    stretched = [(cable.name, _length(here, cable) - float(cable.rest)) for cable in cables]
    belts = [spring for spring in tree.springs if spring.pulls_only and spring.stiffness]
    stretched += [(belt.joints[0], float(belt.stretch(here.q))) for belt in belts]
    return [name for name, stretch in stretched if abs(stretch) < REST_LENGTH_TOLERANCE * tree.length]


def refuse_cables_at_rest_length(configuration: Configuration) -> None:
    """Raise if a cable is at its rest length."""
    for name in cables_at_rest_length(configuration):
        text = f"the cable '{name}' is at its rest length, where it becomes slack: "
        text += "it has stiffness on one side only, so the robot has no linear model"
        hint = "choose a pose or a load at which it is taut or slack"
        raise SingularError(text, key=f"element '{name}'", value=name, hint=hint)


def are(names: Sequence[str]) -> str:
    """Return names and their verb, for a sentence."""
    listed = ", ".join(f"'{name}'" for name in names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{listed} {'is' if len(names) == 1 else 'are'}"


def _length(configuration: Configuration, element: Any) -> float:
    ends = (element.first, element.second)
    if element.smooth_at_zero:
        return float(distance(configuration.at, ends))
    return float(line_between(configuration.at, ends, element.name).length)


def _apart(configuration: Configuration, first: Place, second: Place) -> bool:
    """Return whether two places move relative to each other."""
    here = configuration
    rows = [_velocity_rows(here, end) for end in (first, second)]
    return _moves(configuration, (rows[1] - rows[0]) / configuration.robot.tree.length)


def _velocity_rows(here: Configuration, place: Place) -> Array:
    """Return the velocity of a place in world axes per rate of the open tree."""
    return here.at.of(place)[0] @ place_jacobian(here.robot.tree, here.at, here.link_jacobians, place)[0]


def _moves(configuration: Configuration, rows: Array) -> bool:
    return bool(np.abs(rows @ configuration.J * rate_units(configuration)).max(initial=0.0) > STILL)


def element_stiffness(configuration: Configuration) -> tuple[Array, Array]:
    """Return the part of elements in K_tot and D_tot of the open tree at zero velocity, theory (44).

    One pass of the recursion over dual numbers. If the elements alone are not in equilibrium, rotations of the axes
    of rates make the derivative unsymmetric; its symmetric part is the second derivative.
    """
    tree, here = configuration.robot.tree, configuration
    dual_pose = pose(tree, tree.moved(here.q, seed_slopes(np.eye(tree.n))))
    K = slopes(carry_wrenches(tree, dual_pose, element_wrenches(tree, dual_pose, None)).forces, tree.n)
    D = np.zeros((tree.n, tree.n))
    for element in tree.elements:
        if element.acts and not (element.damping == 0 and element.speed_curve is None):
            length, row = length_row(here, element)
            tension = element.tension(length, Dual(0.0, np.ones(1)))  # slope over the rate of the length
            D = D + (tension.slope[0] if isinstance(tension, Dual) else 0.0) * np.outer(row, row)  # of any scalar
    return (K + K.T) / 2, D


def has_force_elements(tree: Tree) -> bool:
    """Return whether a spring, damper, cable, force or a strut with a spring acts between two points."""
    return bool(tree.elements) or any(link.strut and link.terms.stiffness for link in tree.links)


def length_row(here: Configuration, element: Any) -> tuple[Any, Array]:
    """Return the length of an element between two points, and its derivative per rate of the open tree."""
    across, length, _ = line_between(here.at, (element.first, element.second), element.name)
    return length, across @ (_velocity_rows(here, element.second) - _velocity_rows(here, element.first)) / length
