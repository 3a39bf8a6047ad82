"""Static equilibrium of a robot under gravity, springs, efforts and loads, by Newton's method from a pose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from parflex.errors import SingularError
from parflex.forces.forces import Values, Without, Wrench, element_values
from parflex.forces.spare_motors import Preload, Weights
from parflex.models.elastic.deflection import more_elements
from parflex.models.elastic.holding import Lock, Servo
from parflex.models.elastic.loads_at_rest import Conditions, Loading, least_multipliers, prepare, tangent_stiffness
from parflex.models.elastic.resting.falling import fallen
from parflex.models.elastic.resting.growing_loads import grown
from parflex.models.elastic.resting.static_newton import FEW_STEPS, FINE, SAME, Found, is_stable, newton
from parflex.models.elastic.stiff_system import eigen, moving_names, rate_units
from parflex.records import Answer, brief, count_of
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.recursion.energy import distance
from parflex.robot.configuration import Configuration, Pose
from parflex.robot.load import acting_robot
from parflex.robot.motor_values import Effort
from parflex.robot.robot import Robot

NOT_STABLE = "this equilibrium is not stable, as beyond a buckling load: the robot would leave it"
BEYOND = (
    "loads that grow do not lead from the pose to this equilibrium in stable states: the robot snaps through on the way"
)
LOST = "loads that grow could not be followed from the pose to this equilibrium: they may lead to another one"


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
    snaps : bool
        Whether loads that grow do not lead here from the pose in stable states: the robot snaps through on the way.
    lost : bool
        Whether the states through which loads that grow lead could not be followed to here.
    """

    given: Robot  # before it was held
    configuration: Configuration
    start: Configuration
    loading: Loading
    steps: int
    why: str = ""
    held_at: Configuration | None = None
    snaps: bool = False
    lost: bool = False

    @property
    def warnings(self) -> Sequence[str]:
        """Sentences on its stability, and on how loads that grow lead to it."""
        return tuple(word for word in (self.why, self.way if self.stable else NOT_STABLE) if word)

    @property
    def way(self) -> str:
        """A sentence where loads that grow do not lead here in stable states, or are not known to; else empty."""
        return BEYOND if self.snaps else LOST if self.lost else ""

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
) -> Equilibrium:
    """Static equilibrium under gravity, springs, wrenches and efforts, by Newton's method from a pose.

    Motors are locked at the pose, held by servos that pull towards it, or free under a given effort. With a preload
    spare motors also work against each other.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, or a configuration; None is home (m, rad).
    lock : Lock, default "actuators"
        Locked joints: 'actuators', 'none' or names.
    servo : float or Mapping[str, float], default None
        Stiffness of motors held by springs (N/m, N m/rad).
    servo_damping : float or Mapping[str, float], default None
        Damping of the servos (N s/m, N m s/rad).
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz] (N, N m).
    effort : Effort, default None
        Efforts of the motors, by name or in their order; a motor not named has none (N, N m).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.
    weights : Mapping[str, float], default None
        Weights of the squared efforts by motor, where motors are more than freedoms; those not named have 1.
    preload : Mapping[str, float], default None
        Internal efforts by motor, of one motor for each that is spare (N, N m).

    Returns
    -------
    Equilibrium
        The configuration at rest, how the robot is held and loaded, and the number of Newton steps.

    Examples
    --------
    >>> rest = parflex.equilibrium(robot, "pose-3", wrench={"platform": [0, 0, -20]})
    """
    robot = acting_robot(robot, without)
    if weights or preload:
        from parflex.models.elastic.preloaded import preloaded  # which stands on this module

        conditions = Conditions(servo, servo_damping, wrench, effort, without, weights, preload)
        return preloaded(robot, pose, lock, conditions)
    start, loading = prepare(robot, pose, lock, servo, servo_damping, wrench, effort, without)
    begun = _on_flanks(start, loading)
    found = _at_rest(begun, loading)
    return Equilibrium(robot, found.configuration, start, loading, found.steps, snaps=found.snaps, lost=found.lost)


def balanced(robot: Robot, at: Configuration, why: str, lock: Lock, conditions: Conditions) -> Equilibrium:
    """The equilibrium near a pose at which springs are under tension; refused in a sentence where there is none.

    Answers about it say why in their warnings.
    """
    try:
        rest = equilibrium(robot, Configuration(robot, at.q), lock, *conditions)
    except SingularError as error:
        raise SingularError(
            f"{why}, and the robot has no equilibrium to be linearised about: {error.message}",
            key="about",
            value=error.value,
            hint="lock or servo-hold more joints, choose another pose, or ask about='undeformed', "
            "which leaves out what balances the tension",
        ) from None
    return replace(rest, why=f"{why}: the answer is about the equilibrium")


def doubtful(warnings: Sequence[str]) -> list[str]:
    """Sentences on an equilibrium at which a robot would not stay, or that growing loads may not reach."""
    return [word for word in warnings if word in (BEYOND, LOST) or "equilibrium is not stable" in word]


equilibrium.doubts = lambda found: doubtful([found.way if found.stable else NOT_STABLE])  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _Rest:
    """An equilibrium, the steps to it, and whether loads that grow do not lead to it in stable states, or were lost."""

    configuration: Configuration
    steps: int
    snaps: bool = False
    lost: bool = False


def _at_rest(begun: Configuration, loading: Loading) -> _Rest:
    """Where a robot comes to rest from a pose.

    Newton's method is believed where its steps are few and all their states would be stable. It may end in another
    branch else, so then the states are followed while the loads grow. Beyond a limit point the robot falls to where it
    comes to rest again.
    """
    found, refused = None, None
    try:
        found = newton(begun, loading)
    except SingularError as error:
        refused = error
    if found is not None and (found.steady or _stayed(found, begun)):
        return _Rest(found.configuration, found.steps)
    taut = _taut(begun, loading) if found is None or found.stuck else None
    if taut is not None:
        return _Rest(taut.configuration, taut.steps)
    course, steps = grown(begun, loading), found.steps if found is not None else 0
    if course is not None and course.reached:  # stable or not, it is where the loads lead
        return _Rest(course.configuration, steps + course.steps)
    settled = found if found is not None and not found.stuck else None
    if settled and course is None and settled.steps <= FEW_STEPS and not is_stable(settled.configuration, loading):
        return _Rest(settled.configuration, steps)  # the pose is beside a balance that is not stable: it is meant
    from_here = begun if course is None or course.share <= 0.0 else course.configuration
    down, lost = fallen(from_here, loading), course is not None and course.ended == "lost"
    if down is not None:
        snaps = not lost and (course is not None or not is_stable(begun, loading))
        return _Rest(down.configuration, steps + down.steps, snaps, lost)
    if settled:
        return _Rest(settled.configuration, steps, not lost, lost)
    if refused is not None:
        raise refused
    name = _softest(begun, loading)
    limit = course is not None and course.ended == "limit"
    where = f": loads that grow come to a limit point at {100 * course.share:.3g} % of them" if course and limit else ""
    more = more_elements(begun.robot.tree, course.configuration.q, course.share) if course and course.share > 0 else ""
    raise SingularError(
        f"no equilibrium was found near this pose{where}; '{name}' is constrained least",
        key="wrench",
        value=name,
        hint=f"{more}reduce the loads, servo-hold more joints, or start from a pose nearer to the equilibrium",
    )


def _stayed(found: Found, begun: Configuration) -> bool:
    """Whether a robot is in balance where it begins, stable or not."""
    return not found.stuck and bool(np.abs(found.configuration.q - begun.q).max(initial=0.0) <= SAME)


def _taut(start: Configuration, loading: Loading) -> Found | None:
    """The equilibrium that loads reach by pulling slack cables taut; None where no cable is slack, or it is not found.

    A slack cable holds nothing, and Newton has no tangent to follow. Springs in their place, which push too, bring the
    robot near to where the cables are taut.
    """
    robot, elements = start.robot, start.robot.tree.elements
    slack = {e.name for e in elements if e.slack(float(distance(start.at, (e.first, e.second))))}
    if not slack:
        return None
    tree = replace(robot.tree, elements=tuple(e.as_spring() if e.name in slack else e for e in elements))
    held = replace(robot, tree=tree, closures=replace(robot.closures, tree=tree), known_home=robot.home)
    try:
        near = _at_rest(Configuration(held, start.q), loading)
        found = newton(Configuration(robot, near.configuration.q), loading)
    except SingularError:  # also with these something is free: it is named for the robot as it is
        return None
    return None if found.stuck else replace(found, steps=near.steps + found.steps)


def _on_flanks(start: Configuration, loading: Loading) -> Configuration:
    """The start, or where it is inside a backlash, the pose on the flanks that the loads press.

    Inside its play a gear holds nothing, and Newton has no tangent to follow. Without play the loads say which way
    each gear is stretched; with that flank alone, which pushes and pulls, they rest on it.
    """
    robot, springs = start.robot, start.robot.tree.springs
    inside = [spring.play > 0 and abs(float(spring.stretch(start.q))) <= spring.play / 2 for spring in springs]
    if not any(inside):
        return start
    flanks, here = [0.0] * len(springs), start
    for _ in range(2):  # which flanks are pressed, then where they come to rest
        tight = [
            replace(spring, offset=spring.offset + flank, play=0.0) if within else spring
            for spring, flank, within in zip(springs, flanks, inside, strict=True)
        ]
        tree = replace(robot.tree, springs=tuple(tight))
        held = replace(robot, tree=tree, closures=replace(robot.closures, tree=tree), known_home=robot.home)
        try:
            found = newton(Configuration(held, here.q), loading)
        except SingularError:  # also without play something is free: it is named for the robot as it is
            return start
        if found.stuck:
            return start
        here = found.configuration
        stretches = [float(spring.stretch(here.q)) for spring in springs]
        if not any(abs(stretch) > FINE for stretch in stretches):  # nothing presses: the gears may rest in their play
            return start
        flanks = [float(np.sign(stretch)) * spring.play / 2 for stretch, spring in zip(stretches, springs, strict=True)]
    return Configuration(robot, here.q)


def _softest(here: Configuration, loading: Loading) -> str:
    """The coordinate that moves most in the motion of least stiffness for its inertia."""
    units = rate_units(here)
    K, J = tangent_stiffness(here, loading) * np.outer(units, units), here.J * units
    _, vectors = eigen(here, (K + K.T) / 2, J.T @ tree_mass_matrix(here.robot.tree, here.at) @ J)
    return moving_names(here, J @ vectors[:, :1])[0]
