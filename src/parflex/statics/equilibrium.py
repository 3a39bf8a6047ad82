"""Compute the static equilibrium of a robot at a pose, with preload of redundant motors.

Redundant motors preload a robot: internal efforts load the loops without moving them, and the rotation of these forces
adds to the stiffness, theory (50). Servos, brakes or efforts then hold the equilibrium.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from parflex.closure.newton import CLOSED
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError, SingularError
from parflex.forces.effort_allocation import (
    TAUT,
    EffortAllocation,
    actuation_redundancy,
    driven_cables,
    is_specified,
    read_allocation,
)
from parflex.forces.forces import Values, element_values, multipliers_of
from parflex.records import Answer, brief, count_of
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.statics.equilibrium_solver import Equilibria, States, find_equilibria, find_on_flanks, is_positive
from parflex.statics.linear_system import StiffnessSolver, moving_names, rate_units, slack_cables
from parflex.statics.load_case import LoadCase, LoadKeywords, Lock, full_load_case
from parflex.statics.loads import AppliedLoads, prepare_loads, tangent_stiffness
from parflex.statics.small_deformation import element_advice

Array = np.ndarray

CLOSING = 12  # Newton steps that close the loops: only far too long steps need more
NOT_STABLE = "this equilibrium is unstable, as beyond a buckling load"
UNSTABLE = Diagnostic("unstable-equilibrium", NOT_STABLE)
HELD = "internal efforts of the motors keep the cables taut: the answer is about this equilibrium"


@dataclass(frozen=True, eq=False, repr=False)
class Equilibrium(Answer):
    """A robot in static equilibrium under loads, at `configuration`.

    `given` is the robot before locks and servos, and `start` the initial pose of Newton's method. `held_at` are the
    positions of servos and locked joints if they differ from `start`. `loading` are the loads, and `steps` is the
    number of Newton steps. `why` explains an answer about an equilibrium that was not requested.
    """

    given: Robot  # before it was held
    configuration: Configuration
    start: Configuration
    loading: AppliedLoads
    steps: int
    why: str = ""
    held_at: Configuration | None = None

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """The reason for the equilibrium, and its stability."""
        return (*self.subject, *([] if self.stable else [UNSTABLE]))

    @property
    def subject(self) -> list[Diagnostic]:
        """Why the answer is about the equilibrium, if it was not requested."""
        return [Diagnostic("about-equilibrium", self.why)] if self.why else []

    @property
    def robot(self) -> Robot:
        """The robot with its locks and servos."""
        return self.configuration.robot

    @property
    def elements(self) -> Values:
        """Length, rate and force of each element between two points (m, m/s, N)."""
        here = self.configuration
        return element_values(here, None, multipliers_of(here, self.loading.forces(here)))

    @property
    def stable(self) -> bool:
        """Whether the potential energy has a minimum here, unlike beyond a buckling load."""
        return is_stable(self.configuration, self.loading)

    def _told(self) -> str:
        tip = self.robot.tree.place(self.robot.tree.end_effector)
        moved = float(np.linalg.norm(self.configuration.at.of(tip)[1] - self.start.at.of(tip)[1]))
        return f"{brief(self.robot.name)}: end effector moved by {moved:.4g} m, {count_of(self.steps, 'step')}"


def equilibrium(
    robot: Robot, pose: Pose | None = None, lock: Lock = "actuators", **load: Unpack[LoadKeywords]
) -> Equilibrium:
    """Compute the static equilibrium under gravity, springs, wrenches and efforts by Newton's method from a pose.

    Motors are locked at the pose, held by servos that pull towards the pose, or free under the specified efforts.
    With a preload, redundant motors also apply internal efforts.

    Parameters
    ----------
    robot, pose, lock, **load
        See `parflex.api.WORDS`.

    Returns
    -------
    Equilibrium
        The configuration in equilibrium, its locks and loads, and the number of Newton steps.
    """
    case = full_load_case(lock, None, load)
    if case.about == "undeformed":
        text, hint = "about='undeformed' does not apply to an equilibrium", "leave it out of the load case"
        raise InputError(text, key="about", value=case.about, hint=hint)
    return equilibrium_of(robot, pose, case)


equilibrium.doubts = lambda found: [] if found.stable else [UNSTABLE]  # type: ignore[attr-defined]


def equilibrium_of(robot: Robot, pose: Pose | None, case: LoadCase) -> Equilibrium:
    """Return the static equilibrium of a load case."""
    robot = acting_robot(robot, case.without)
    if case.weights or case.preload:
        return preloaded_equilibrium(robot, pose, case)
    start, loading = prepare_loads(robot, pose, case)
    at, steps = find_equilibrium(start, loading)
    return Equilibrium(robot, at, start, loading, steps)


def equilibrium_near(robot: Robot, at: Configuration, why: str, case: LoadCase) -> Equilibrium:
    """Return the equilibrium near a pose with springs under tension, with the reason `why`."""
    try:
        solution = equilibrium_of(robot, Configuration(robot, at.q), case)
    except SingularError as error:
        text = f"{why}, and the robot has no equilibrium to be linearised about: {error.message}"
        hint = "lock or servo-hold more joints, choose another pose, or use about='undeformed', "
        hint += "which omits the forces that balance the tension"
        raise SingularError(text, key="about", value=error.value, hint=hint) from None
    return replace(solution, why=f"{why}: the answer is about the equilibrium")


def preloaded_equilibrium(robot: Robot, pose: Pose | None, case: LoadCase) -> Equilibrium:
    """Return the equilibrium under holding efforts and preload, with the motors then held as requested."""
    if is_specified(case.effort):
        text = "'effort' and 'preload' both determine the motor efforts"
        raise InputError(text, key="effort", hint="keep one of them")
    allocation = read_allocation(robot, case.weights, case.preload)
    start = configure(robot, pose)
    (tau, internal), here = _holding(start, allocation, case), start
    if robot.deformations:
        here, tau = _deformed_equilibrium(start, tau, allocation, case)
    held, loading = prepare_loads(robot, here, replace(case, effort=None, weights=None, preload=None))
    efforts = np.zeros(robot.tree.n)
    efforts[list(robot.actuated)] = tau
    efforts[list(held.robot.locked)] = 0.0
    loading = replace(loading, tau=efforts, internal=internal)
    return Equilibrium(robot, held, Configuration(held.robot, start.q), loading, 0, held_at=held)


def _holding(start: Configuration, allocation: EffortAllocation, case: LoadCase) -> tuple[Array, dict[str, Any] | None]:
    """Return the efforts that hold the rigid robot at its pose, as in the inverse model, theory (46) to (48)."""
    robot = start.robot
    rigid = Configuration(robot.undeformed, start.q)
    rigid.refuse_undefined_actuation()
    _, loading = prepare_loads(robot, start, LoadCase("none", wrench=case.wrench, without=case.without))
    A, F = rigid.J_a.T, loading.forces(rigid)
    shared = allocation.solve(A, rigid.reduction.forces(F), rigid, F)
    return shared.tau, shared.internal


def _deformed_equilibrium(
    start: Configuration, tau: Array, allocation: EffortAllocation, case: LoadCase
) -> tuple[Configuration, Array]:
    """Return the equilibrium with preloaded motors free and the others locked, and the efforts of all motors."""
    robot, motors, spare = start.robot, start.robot.actuated_names, actuation_redundancy(start.robot)
    if len(allocation.preloaded) != spare:
        text, stated = (
            "the robot is flexible, so the preload must name as many motors as are redundant",
            allocation.preloaded,
        )
        named, hint = ", ".join(motors[k] for k in stated), f"name {spare} of {', '.join(motors)}"
        raise InputError(text, key="preload", value=named, hint=hint)
    locked_motors = [name for k, name in enumerate(motors) if k not in allocation.preloaded]
    efforts = {motors[k]: tau[k] for k in allocation.preloaded}
    held_case = LoadCase(locked_motors, wrench=case.wrench, effort=efforts, without=case.without)
    solution = equilibrium_of(robot, start, held_case)
    here, loading = solution.configuration, solution.loading
    held = loading.forces(here)  # by the standing motors
    held -= here.closure_jacobian.T @ multipliers_of(here, held)
    held[here.robot.free] = 0.0
    return here, (loading.tau + held)[list(robot.actuated)]


def equilibrium_with_taut_cables(robot: Robot, held: Configuration, case: LoadCase) -> Equilibrium | None:
    """Return the equilibrium whose motors keep cables taut by internal efforts, as in the inverse model.

    Return None if efforts of least norm keep the cables taut, if no internal efforts do, or if a motor is free.
    """
    robot = acting_robot(robot, case.without)
    if is_specified(case.effort) or not driven_cables(robot) or robot.deformations or actuation_redundancy(robot) <= 0:
        return None
    free = {robot.tree.link_of_rate[k] for k in set(robot.actuated) - set(held.robot.locked)}
    if any(held.robot.tree.links[j].terms.stiffness == robot.tree.links[j].terms.stiffness for j in free):
        return None  # no servo holds it
    try:
        solution = preloaded_equilibrium(robot, Configuration(robot, held.q), case)
    except ParflexError:  # the motors do not hold this pose, which the request may not require
        return None
    internal = solution.loading.internal
    return replace(solution, why=HELD) if internal is not None and internal["chosen_by"].endswith(TAUT) else None


# -- the equilibrium that loads reach from a pose ------------------------------------------------------------------
# Slack cables and couplings inside their backlash have no stiffness. The equilibrium is then found with springs in
# their place, which push and pull, and accepted if it is one of the robot itself.


class PoseStatics:
    """A robot at one pose under its loads, for the solver of static equilibria."""

    def __init__(self, robot: Robot, loading: AppliedLoads, bare: AppliedLoads | None = None, held: Any = 0.0) -> None:
        self.robot, self.loading, self.bare, self.held = robot, loading, bare, held
        self.rate_units = robot.tree.rate_units

    def states(self, q: Array, share: Array, rows: Array) -> States:
        """Return the state at a position under a share of the loads; the independent rates are chosen there."""
        here, part = Configuration(self.robot, q[0]), float(share[0])
        units, loading, load = rate_units(here), self.loading, np.zeros(self.robot.tree.n)
        acting = loading.forces(here)
        if self.bare is not None:
            least = self.bare.forces(here) - self.held
            acting, load = part * acting + (1 - part) * least, acting - least
            if self.bare is not loading:
                wrench = {frame: part * np.asarray(values) for frame, values in loading.wrench.items()}
                loading = replace(loading, wrench=wrench, weight=part)
        K = tangent_stiffness(here, loading, acting=acting) * np.outer(units, units)
        force, load = (here.reduction.forces(forces) * units for forces in (acting, load))
        good = np.array([np.isfinite(K).all() and np.isfinite(force).all()])
        motions = here.J * units
        return States(here.reduction.partition, q, motions[None], K[None], force[None], load[None], good)

    def mass(self, states: States, row: int) -> Array:
        """Return the mass matrix in independent rates without units."""
        tree, motions = self.robot.tree, states.motions[row]
        return motions.T @ tree_mass_matrix(tree, Configuration(self.robot, states.q[row]).at) @ motions

    def moved(self, states: States, x: Array) -> tuple[Array, Array]:
        """Return the position after a motion, and whether its loops close."""
        q, closed = closed_motion(self.robot, states.q[0], states.motions[0] @ x[0], states.partition.dependent)
        return q[None], np.array([closed])

    def released(self, q: Array, loads_hold: bool) -> PoseStatics:
        """Return the model whose tension at the pose is released while the loads grow."""
        loading = self.loading
        bare = loading if loads_hold else replace(loading, wrench={}, tau=np.zeros_like(loading.tau), weight=0.0)
        return PoseStatics(self.robot, loading, bare, bare.forces(Configuration(self.robot, q[0])))

    def stretch(self, q: Array) -> tuple[Array, Array]:
        """Return the stretch of the couplings from the middle of their backlash, and half of the backlash."""
        springs = [spring for spring in self.robot.tree.springs if spring.play]
        return np.array([[float(s.stretch(q[0])) for s in springs]]), np.array([[s.play / 2 for s in springs]])

    def on_flanks(self, q: Array, flanks: Array) -> tuple[PoseStatics, Array]:
        """Return the model whose couplings push and pull on these flanks, and its positions."""
        springs, side = list(self.robot.tree.springs), iter(flanks[0].tolist())
        for k, spring in enumerate(springs):
            if spring.play:
                springs[k] = replace(spring, offset=spring.offset + next(side), play=0.0)
        return PoseStatics(self.robot.on_tree(replace(self.robot.tree, springs=tuple(springs))), self.loading), q


def closed_motion(robot: Robot, q: Array, motion: Array, dependent: Array) -> tuple[Array, bool]:
    """Return positions after a motion of all rates, with the dependent rates closing the loops, and if these close."""
    q = robot.tree.moved(q, motion)
    if not robot.closures.size:
        return q, True
    q, error = robot.assembler.newton(q, dependent, list(robot.closures.rows), CLOSING)
    return q, bool(error <= CLOSED)


def is_stable(at: Configuration, loading: AppliedLoads) -> bool:
    """Return whether the tangent stiffness of an equilibrium is positive definite."""
    return is_positive(tangent_stiffness(at, loading) * np.outer(rate_units(at), rate_units(at)))


def find_equilibrium(start: Configuration, loading: AppliedLoads) -> tuple[Configuration, int]:
    """Return the equilibrium that loads reach from a pose, and the number of linearised states."""
    model, q = PoseStatics(start.robot, loading), start.q[None]
    stretch, half = model.stretch(q)
    if (np.abs(stretch) <= half).any():
        equilibria = find_on_flanks(model, q)
        if equilibria.ok[0]:
            return Configuration(start.robot, equilibria.q[0]), int(equilibria.steps[0])
    equilibria = find_equilibria(model, q)
    if not equilibria.ok[0]:
        equilibria = _taut(start, loading) or equilibria
    if not equilibria.ok[0]:
        raise _refusal(start, loading, equilibria)
    return Configuration(start.robot, equilibria.q[0]), int(equilibria.steps[0])


def _taut(start: Configuration, loading: AppliedLoads) -> Equilibria | None:
    """Return the equilibrium at which loads pull slack cables taut, near that of springs in their place."""
    robot, slack = start.robot, slack_cables(start)
    if not slack:
        return None
    springs = tuple(replace(e, kind="spring") if e.name in slack else e for e in robot.tree.elements)
    near = find_equilibria(PoseStatics(robot.on_tree(replace(robot.tree, elements=springs)), loading), start.q[None])
    return find_equilibria(PoseStatics(robot, loading), near.q) if near.ok[0] else None


def _refusal(start: Configuration, loading: AppliedLoads, found: Equilibria) -> SingularError:
    """Return the error for loads that reach no equilibrium in stable states."""
    if 0 not in found.last:
        K = tangent_stiffness(start, loading)
        try:
            StiffnessSolver(start, K).solve(-start.reduction.forces(loading.forces(start)))
        except SingularError as error:
            error.hint = f"{error.hint}, or start from a pose near the equilibrium"
            return error
        name = _softest(start, K * np.outer(rate_units(start), rate_units(start)))
        text = f"'{name}' is unstable at this pose, so no stable equilibrium can be followed from it"
        hint = "start from a stable pose near the equilibrium, or lock or servo-hold more joints"
        return SingularError(text, key="pose", value=name, hint=hint)
    share, here = float(found.share[0]), Configuration(start.robot, found.q[0], found.last[0].partition)
    name = _softest(here, found.last[0].K[0])
    text = f"growing loads could not be followed beyond {100 * share:.3g} % of them, where '{name}' has least stiffness"
    if 0 in found.critical:
        text = f"at {100 * share:.3g} % of them '{name}' becomes unstable"
    hint = element_advice(start.robot.tree, here.q, share) if share > 0 else ""
    hint += "reduce the loads, servo-hold more joints, or start from a pose nearer to the equilibrium"
    return SingularError(f"no equilibrium under these loads: {text}", key="wrench", value=name, hint=hint)


def _softest(here: Configuration, K: Array) -> str:
    """Return the coordinate that moves most in the motion of least stiffness, for a stiffness without units."""
    _, vectors = np.linalg.eigh((K + K.T) / 2)
    return moving_names(here, here.J * rate_units(here) @ vectors[:, :1])[0]
