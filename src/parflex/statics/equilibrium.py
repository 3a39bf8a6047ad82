"""Static equilibrium of a robot at a pose, and preload of redundant motors.

Redundant motors preload a robot: internal efforts load the loops without moving them, and the rotation of these forces
adds to the stiffness, theory (50). The equilibrium is computed once and then held by servos, brakes or efforts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError, SingularError
from parflex.forces.effort_allocation import (
    TAUT,
    EffortAllocation,
    actuation_redundancy,
    driven_cables,
    is_specified,
    read_allocation,
    slack_warnings,
)
from parflex.forces.forces import Values, element_values
from parflex.records import Answer, brief, count_of
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.statics.equilibrium_at_pose import find_equilibrium, is_stable
from parflex.statics.linear_system import StiffnessSolver
from parflex.statics.load_case import LoadCase, LoadKeywords, Lock, full_load_case
from parflex.statics.loads import (
    AppliedLoads,
    held_robot,
    least_multipliers,
    prepare_loads,
)

NOT_STABLE = "this equilibrium is not stable, as beyond a buckling load: the robot would leave it"
UNSTABLE = Diagnostic("unstable-equilibrium", NOT_STABLE)

Array = np.ndarray

HELD = "motors hold the robot here, and internal efforts keep its cables taut: the answer is about this equilibrium"


@dataclass(frozen=True, eq=False, repr=False)
class Equilibrium(Answer):
    """A robot at rest under loads, how it is loaded, where it started from, and how many steps were taken.

    Attributes
    ----------
    given : Robot
        The robot before it was held.
    configuration : Configuration
        The robot at rest.
    start : Configuration
        The pose that Newton's method started from.
    loading : Loading
        What acts: wrenches, efforts, terms left out.
    steps : int
        Number of Newton steps.
    why : str
        A sentence where the equilibrium was not asked for, but is what an answer is about.
    held_at : Configuration | None
        Where servos rest and locked joints stand, if that is not the start.
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
        """Why it is the subject of the answer, and its stability."""
        return (*self.subject, *([] if self.stable else [UNSTABLE]))

    @property
    def subject(self) -> list[Diagnostic]:
        """Why it is the subject of the answer, if it was not requested."""
        return [Diagnostic("about-equilibrium", self.why)] if self.why else []

    @property
    def robot(self) -> Robot:
        """The robot as it is held."""
        return self.configuration.robot

    @property
    def elements(self) -> Values:
        """Length, rate and force of each element between two points (m, m/s, N)."""
        here = self.configuration
        return element_values(here, None, least_multipliers(here, self.loading.forces(here)))

    @property
    def stable(self) -> bool:
        """Whether no motion from here sets energy free, as it does beyond a buckling load."""
        return is_stable(self.configuration, self.loading)

    def _told(self) -> str:
        tip = self.robot.tree.place(self.robot.tree.end_effector)
        moved = float(np.linalg.norm(self.configuration.at.of(tip)[1] - self.start.at.of(tip)[1]))
        return f"{brief(self.robot.name)}: end effector moved by {moved:.4g} m, {count_of(self.steps, 'step')}"


def equilibrium(
    robot: Robot, pose: Pose | None = None, lock: Lock = "actuators", **load: Unpack[LoadKeywords]
) -> Equilibrium:
    """Static equilibrium under gravity, springs, wrenches and efforts, by Newton's method from a pose.

    Motors are locked at the pose, held by servos that pull towards it, or free under a given effort. With a preload
    redundant motors also work against each other.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, or a configuration; None is home (m, rad).
    lock : Lock, default "actuators"
        Locked joints: 'actuators', 'none' or names.
    **load : LoadKeywords
        Other values of the load case, or `load_case`: see `LoadCase`.

    Returns
    -------
    Equilibrium
        The configuration at rest, how the robot is held and loaded, and the number of Newton steps.

    Examples
    --------
    >>> rest = parflex.equilibrium(robot, "pose-3", wrench={"platform": [0, 0, -20]})
    """
    case = full_load_case(lock, None, load)
    if case.about == "undeformed":
        raise InputError(
            "an equilibrium is not about the undeformed pose",
            key="about",
            value=case.about,
            hint="leave it out of the load case",
        )
    return equilibrium_of(robot, pose, case)


def equilibrium_of(robot: Robot, pose: Pose | None, case: LoadCase) -> Equilibrium:
    """Static equilibrium of a load case."""
    robot = acting_robot(robot, case.without)
    if case.weights or case.preload:
        return preloaded_equilibrium(robot, pose, case)
    start, loading = prepare_loads(robot, pose, case)
    at, steps = find_equilibrium(start, loading)
    return Equilibrium(robot, at, start, loading, steps)


def equilibrium_near(robot: Robot, at: Configuration, why: str, case: LoadCase) -> Equilibrium:
    """The equilibrium near a pose at which springs are under tension; refused in a sentence where there is none.

    Answers about it say why in their warnings.
    """
    try:
        solution = equilibrium_of(robot, Configuration(robot, at.q), case)
    except SingularError as error:
        raise SingularError(
            f"{why}, and the robot has no equilibrium to be linearised about: {error.message}",
            key="about",
            value=error.value,
            hint="lock or servo-hold more joints, choose another pose, or ask about='undeformed', "
            "which leaves out what balances the tension",
        ) from None
    return replace(solution, why=f"{why}: the answer is about the equilibrium")


def preloaded_equilibrium(robot: Robot, pose: Pose | None, case: LoadCase) -> Equilibrium:
    """The robot at rest under the efforts that hold it and those of the preload; motors are then held as asked."""
    if is_specified(case.effort):
        raise InputError(
            "efforts of the motors are given, and a preload, which chooses them", key="effort", hint="keep one of them"
        )
    allocation = read_allocation(robot, case.weights, case.preload)
    start = configure(robot, pose)
    tau, internal = _holding(start, allocation, case)
    here = start
    if robot.deformations:
        here, tau = _deformed_equilibrium(start, tau, allocation, case)
    held_configuration, loading = prepare_loads(robot, here, replace(case, effort=None, weights=None, preload=None))
    efforts = np.zeros(robot.tree.n)
    for k, effort in zip(robot.actuated, tau, strict=True):
        efforts[k] = 0.0 if k in held_configuration.robot.locked else effort
    loading = replace(loading, tau=efforts, internal=internal)
    return Equilibrium(
        robot,
        held_configuration,
        Configuration(held_configuration.robot, start.q),
        loading,
        0,
        held_at=held_configuration,
    )


def _holding(start: Configuration, allocation: EffortAllocation, case: LoadCase) -> tuple[Array, dict[str, Any] | None]:
    """Efforts that hold the robot with rigid bodies at its pose, as the inverse model has them, theory (46) to (48)."""
    robot = start.robot
    rigid = Configuration(robot.locking(robot.deformations), start.q) if robot.deformations else start
    rigid.refuse_undefined_actuation()
    _, loading = prepare_loads(robot, start, LoadCase("none", wrench=case.wrench, without=case.without))
    A, F = rigid.J_a.T, loading.forces(rigid)
    shared = allocation.solve(A, rigid.reduction.forces(F), rigid, F)
    return shared.tau, shared.internal


def _deformed_equilibrium(
    start: Configuration, tau: Array, allocation: EffortAllocation, case: LoadCase
) -> tuple[Configuration, Array]:
    """Where bodies deform: the preloaded motors push with their efforts, the others stand, and efforts of all."""
    robot, motors, spare = start.robot, start.robot.actuated_names, actuation_redundancy(start.robot)
    if len(allocation.preloaded) != spare:
        raise InputError(
            "bodies deform, so each spare motor needs a stated effort",
            key="preload",
            value=", ".join(motors[k] for k in allocation.preloaded),
            hint=f"name {spare} of {', '.join(motors)}",
        )
    locked_motors = [name for k, name in enumerate(motors) if k not in allocation.preloaded]
    efforts = {motors[k]: tau[k] for k in allocation.preloaded}
    solution = equilibrium_of(
        robot, start, LoadCase(locked_motors, wrench=case.wrench, effort=efforts, without=case.without)
    )
    return solution.configuration, _efforts_at(solution.configuration, solution.loading)[list(robot.actuated)]


def _efforts_at(here: Configuration, loading: AppliedLoads) -> Array:
    """What motors give along all rates at rest: as stated, or what the standing ones have to hold."""
    F, free = loading.forces(here), here.robot.free
    rows = here.closure_jacobian
    lam = np.linalg.lstsq(rows[:, free].T, F[free], rcond=1e-12)[0] if len(rows) else np.zeros(0)
    needed = F - rows.T @ lam
    needed[free] = 0.0
    return loading.tau + needed


equilibrium.doubts = lambda found: [] if found.stable else [UNSTABLE]  # type: ignore[attr-defined]


def equilibrium_with_taut_cables(robot: Robot, pose: Pose | None, case: LoadCase) -> Equilibrium | None:
    """The robot at rest where motors that hold it keep its cables taut by internal efforts, as in the inverse model.

    None where cables are taut under efforts of least norm, where nothing keeps them so, or where a motor is free.
    """
    robot = acting_robot(robot, case.without)
    if is_specified(case.effort) or not driven_cables(robot) or robot.deformations or actuation_redundancy(robot) <= 0:
        return None
    start = configure(robot, pose)
    held = held_robot(robot, start.q, case)
    stiffnesses, held_stiffnesses = ([tree.links[tree.link_of_rate[k]].terms.stiffness for k in robot.actuated]
                for tree in (robot.tree, held.tree))  # fmt: skip
    if any(
        k not in held.locked and stiffness == held_stiffness
        for k, stiffness, held_stiffness in zip(robot.actuated, stiffnesses, held_stiffnesses, strict=True)
    ):
        return None
    try:
        solution = preloaded_equilibrium(robot, start, case)
    except ParflexError:  # the motors do not hold this pose, and what is asked may not need them to
        return None
    internal = solution.loading.internal
    return replace(solution, why=HELD) if internal is not None and internal["chosen_by"].endswith(TAUT) else None


def pushing_cable_warnings(
    here: Configuration, loading: AppliedLoads, K: Array | None = None, K_tot: Array | None = None
) -> list[Diagnostic]:
    """Diagnostics where driven cables push at rest; with stiffnesses, under what they give to hold the loads."""
    if not driven_cables(here.robot):
        return []
    F = loading.forces(here)
    if K is not None and K_tot is not None:
        try:
            F = F + K_tot @ here.J @ StiffnessSolver(here, K).solve(-here.reduction.forces(F))
        except SingularError:  # nothing holds the loads, so there is no tension to tell
            return []
    return slack_warnings(here.robot, element_values(here, None, least_multipliers(here, F)))
