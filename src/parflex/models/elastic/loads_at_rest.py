"""What acts on a robot at rest, the multipliers of its closures there, and its exact tangent stiffness.

At rest the forces F(q) of the open tree give the reduced forces c = J^T F. With the multipliers lam that make the
dependent rows of F - J_tot^T lam vanish, dc = J^T d(F - J_tot^T lam) for constant lam: the derivative of J^T is in the
turning of the closure wrenches. One pass of the recursion over dual numbers gives it to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from parflex.errors import InputError
from parflex.forces.forces import Without, Wrench, checked_wrenches, tree_forces, tree_newton_euler
from parflex.forces.reactions import closure_wrenches, constraint_forces
from parflex.forces.spare_motors import Preload, Weights
from parflex.models.elastic.holding import Lock, Servo, held_robot
from parflex.records import Record, name_list
from parflex.recursion.dynamics import NewtonEuler, joint_forces
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.load import acting_robot
from parflex.robot.motor_values import Effort, read_efforts
from parflex.robot.robot import Robot
from parflex.spatial.dual import seed_slopes, slopes
from parflex.spatial.linear import scalar_type, solve
from parflex.tree.tree import Tree

Array = np.ndarray


class Conditions(NamedTuple):
    """How a robot is held and loaded, in the order in which `equilibrium` takes it."""

    servo: Servo | None = None
    servo_damping: Servo | None = None
    wrench: Wrench | None = None  # wrenches on frames, in world axes that do not turn with them
    effort: Effort | None = None  # of motors that are neither locked nor held
    without: Without = ()
    weights: Weights | None = None  # of spare motors, which hold the robot and work against each other
    preload: Preload | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Loading(Record):
    """What acts on a robot at rest: loads on frames, constant efforts along rates, and terms that are left out."""

    wrench: Wrench = field(default_factory=dict)
    tau: Array = field(default_factory=lambda: np.zeros(0))
    without: Without = ()
    internal: dict[str, Any] | None = None  # efforts of spare motors among `tau`
    weight: float = 1.0  # share of gravity that acts

    def gravity(self, tree: Tree) -> Array:
        """Gravity as far as it acts, m/s^2 in world axes."""
        return np.zeros(3) if "gravity" in self.without else self.weight * tree.gravity

    def forces(self, configuration: Configuration) -> Array:
        """F: what the rates of the open tree would need to stay at rest, less the efforts."""
        still = np.zeros(configuration.robot.tree.n)
        return tree_forces(configuration, still, still, self.wrench, self.without, self.weight) - self.tau

    def wrenches(self, configuration: Configuration, lam: Array) -> NewtonEuler:
        """Wrenches in all joints of the tree at rest, with the closures acting."""
        still = np.zeros(configuration.robot.tree.n)
        _, acting = closure_wrenches(configuration, lam)
        return tree_newton_euler(configuration, still, still, self.wrench, self.without, acting, self.weight)

    def closed_forces(self, configuration: Configuration, lam: Array) -> Array:
        """F - J_tot^T lam."""
        still = np.zeros(configuration.robot.tree.n)
        own = joint_forces(configuration.robot.tree, configuration.q, still, still, tuple(self.without))
        held = constraint_forces(configuration, lam)
        return self.wrenches(configuration, lam).forces + own - self.tau - held

    def _told(self) -> str:
        words = (("wrenches on", list(self.wrench)), ("without", list(self.without)))
        parts = [f"{word} {name_list(names)}" for word, names in words if names]
        return ", ".join([*parts, *["efforts"] * bool(np.any(self.tau))]) or "gravity and springs alone"


def prepare(
    robot: Robot,
    pose: Pose | None = None,
    lock: Lock = "actuators",
    servo: Servo | None = None,
    servo_damping: Servo | None = None,
    wrench: Wrench | None = None,
    effort: Effort | None = None,
    without: Without = (),
    weights: Weights | None = None,
    preload: Preload | None = None,
) -> tuple[Configuration, Loading]:
    """The robot at a pose, held as asked, and what acts on it; what is asked of spare motors is left to `preloaded`."""
    robot = acting_robot(robot, without)
    if "springs" in without and (servo is not None or servo_damping is not None):
        raise InputError(
            "a servo is a spring, and springs are left out", key="without", value="springs", hint="keep one of them"
        )
    if "damping" in without and servo_damping is not None:
        raise InputError(
            "a servo damps, and damping is left out", key="without", value="damping", hint="keep one of them"
        )
    wrenches = checked_wrenches(robot.tree, wrench)
    q = configure(robot, pose).q
    held = held_robot(robot, q, lock, servo, servo_damping)
    tau = np.zeros(robot.tree.n)
    tau[list(robot.actuated)] = read_efforts(robot, effort)
    for k in robot.actuated:
        if tau[k] and k in held.locked:
            name = robot.tree.rate_names[k]
            raise InputError(
                f"'{name}' is locked, so no effort can be given to it",
                key="effort",
                value=name,
                hint="lock fewer joints",
            )
    configuration = Configuration(held, q)
    if not len(configuration.reduction.partition.independent):
        raise InputError(
            "nothing can move: all joints are locked and no body is flexible",
            key="lock",
            hint="lock fewer joints, or hold the motors by servo stiffnesses (servo)",
        )
    return configuration, Loading(wrenches, tau, tuple(without))


def multipliers(configuration: Configuration, F: Array) -> Array:
    """Lam of the chosen rows that makes the dependent rows of F - J_tot^T lam vanish."""
    part = configuration.reduction.partition
    lam: Array = np.zeros(configuration.robot.closures.size, dtype=scalar_type(F))
    if len(part.dependent):
        lam[part.rows] = solve(configuration.reduction.block.T, F[part.dependent])
    return lam


def least_multipliers(configuration: Configuration, F: Array) -> Array:
    """Lam of all rows with F = J_tot^T lam along the free rates; of least norm where the robot is over-constrained."""
    free = configuration.robot.free
    rows = configuration.closure_jacobian[:, free]
    return np.linalg.lstsq(rows.T, F[free], rcond=1e-12)[0] if len(rows) else np.zeros(0)


def tangent_stiffness(
    configuration: Configuration, loading: Loading, along: Array | None = None, acting: Array | None = None
) -> Array:
    """K = dc/dq of the reduced forces along the independent rates, or along motions that the closures allow.

    `acting` are the forces F where they are known.
    """
    J = configuration.J if along is None else along
    return J.T @ forces_along(configuration, loading, J, acting)


def forces_along(configuration: Configuration, loading: Loading, motions: Array, acting: Array | None = None) -> Array:
    """How F - J_tot^T lam changes along columns of motions that the closures allow, for constant lam."""
    tree = configuration.robot.tree
    lam = multipliers(configuration, loading.forces(configuration) if acting is None else acting)
    moved = Configuration(configuration.robot, tree.moved(configuration.q, seed_slopes(motions)))
    return slopes(loading.closed_forces(moved, lam), motions.shape[1])
