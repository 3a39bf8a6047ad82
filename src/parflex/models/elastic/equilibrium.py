"""Static equilibrium of a robot under gravity, springs, efforts and loads, by Newton's method from a pose."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from parflex.closure.assembly.newton import CLOSED
from parflex.closure.reduction import reduction
from parflex.errors import SingularError
from parflex.models.configuration import Configuration, Pose
from parflex.models.dynamics.element_values import Values, element_values
from parflex.models.dynamics.forces import Without, Wrench
from parflex.models.dynamics.spare_motors import Preload, Weights
from parflex.models.elastic.holding import Lock, Servo
from parflex.models.elastic.loads_at_rest import Conditions, Loading, least_multipliers, prepare, tangent_stiffness
from parflex.models.elastic.stiff_system import StiffnessSolver, eigen, moving_names, rate_units
from parflex.models.motor_values import Effort
from parflex.models.robot import Robot
from parflex.models.terms import acting
from parflex.records import Record, brief, counted
from parflex.recursion import mass_matrix as tree_mass_matrix
from parflex.recursion.point_forces import distance

Array = np.ndarray
STEPS = 60
STRIDE = 0.3  # longest Newton step, as an angle or in typical lengths: longer ones leave the domain of the tangent
SMALLEST_PART = 1 / 64  # of the loads, where they are put on bit by bit
CLOSING = 12  # Newton steps that close the loops after a step: more are needed only where the step was far too long
HALVINGS = 8  # of a step that does not help: a tangent that helps over less of its way is no guide
UNSTABLE = -1e-9  # of the largest stiffness: below is more than rounding
FINE = 1e-12  # a step this short, in the same units, is the last: the next would be rounding
NOT_STABLE = "this equilibrium is not stable, as beyond a buckling load: the robot would leave it"
BEYOND = (
    "loads that grow do not lead from the pose to this equilibrium in stable states: the robot snaps through on the way"
)
FEW_STEPS = 5  # Newton steps up to which the loads move the robot about as its first tangent says
PART, FINEST = 1 / 8, 1 / 256  # of the loads: the longest step, and the shortest that is tried
TOLD = 0.5  # of a motion: by so much the tangent before a part of the loads may miss where it ends
SAME = 1e-6  # of a coordinate in m or rad: nearer states are one


@dataclass(frozen=True, eq=False, repr=False)
class Equilibrium(Record):
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
    loading: Loading
    steps: int
    why: str = ""
    held_at: Configuration | None = None

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
        return f"{brief(self.robot.name)}: end effector moved by {moved:.4g} m, {counted(self.steps, 'step')}"


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
    robot = acting(robot, without)
    if weights or preload:
        from parflex.models.elastic.preloaded import preloaded  # which stands on this module

        conditions = Conditions(servo, servo_damping, wrench, effort, without, weights, preload)
        return preloaded(robot, pose, lock, conditions)
    start, loading = prepare(robot, pose, lock, servo, servo_damping, wrench, effort, without)
    begun = _on_flanks(start, loading)
    try:
        found = _settled(begun, loading)
    except SingularError:
        taut = _taut(begun, loading)
        if taut is None:
            raise
        found = taut
    if found.stuck:
        found = _taut(begun, loading) or found
    if found.stuck:
        name = _softest(start, loading)
        raise SingularError(
            f"no equilibrium was found near this pose; '{name}' is constrained least",
            key="wrench",
            value=name,
            hint="reduce the loads, servo-hold more joints, or start from a pose nearer to the equilibrium",
        )
    return Equilibrium(robot, found.configuration, start, loading, found.steps)


def is_stable(at: Configuration, loading: Loading) -> bool:
    """Whether no motion from an equilibrium sets energy free."""
    units = rate_units(at)
    K = tangent_stiffness(at, loading) * np.outer(units, units)
    values = np.linalg.eigvalsh((K + K.T) / 2)
    return bool(values.min(initial=0.0) >= UNSTABLE * np.abs(values).max(initial=0.0))


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


@dataclass(frozen=True)
class _Found:
    """Where Newton ended, after how many steps, and whether it is stuck there."""

    configuration: Configuration
    steps: int
    stuck: bool = False


def _settled(begun: Configuration, loading: Loading) -> _Found:
    """Where Newton ends, if need be with loads that grow."""
    found = newton(begun, loading)
    return _gradually(begun, loading, found) if found.stuck else found


def _taut(start: Configuration, loading: Loading) -> _Found | None:
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
        near = _settled(Configuration(held, start.q), loading)
        found = near if near.stuck else newton(Configuration(robot, near.configuration.q), loading)
    except SingularError:  # also with these something is free: it is named for the robot as it is
        return None
    return None if found.stuck else replace(found, steps=near.steps + found.steps)


def newton(here: Configuration, loading: Loading) -> _Found:
    """Where damped steps from a pose end."""
    travel = 0.0
    for step in range(1, STEPS + 1):
        units = rate_units(here)
        c = here.reduction.forces(loading.forces(here))
        solver = StiffnessSolver(here, tangent_stiffness(here, loading))
        x = solver.solve(-c)
        size = float(np.linalg.norm(x / units))
        if size <= max(1e-7 * travel, FINE):  # convergence is quadratic: after this step only rounding is left
            return _Found(closed_step(here, x) or here, step)
        share = min(1.0, STRIDE / float(np.abs(x / units).max()))
        found = _damped_step(here, loading, solver, x, share)
        if found is None:
            if size < 1e-9:  # rounding: steps do not become shorter any more
                return _Found(here, step)
            break
        here, share = found
        travel += share * size
    return _Found(here, step, stuck=True)


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
        held = replace(robot, tree=tree, closures=replace(robot.closures, tree=tree))
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


def _gradually(start: Configuration, loading: Loading, found: _Found) -> _Found:
    """The same with what acts at the start put on bit by bit: efforts along all rates hold back the rest of it."""
    first = loading.forces(start)
    here, done, part, steps = start, 0.0, 0.25, found.steps
    while done < 1.0:
        held_back = replace(loading, tau=loading.tau + (1 - min(1.0, done + part)) * first)
        found = newton(here, held_back)
        steps += found.steps
        if found.stuck:
            part /= 2
            if part < SMALLEST_PART:
                break
            continue
        here, done, part = found.configuration, min(1.0, done + part), 1.5 * part
    return replace(found, steps=steps)


def _softest(here: Configuration, loading: Loading) -> str:
    """The coordinate that moves most in the motion of least stiffness for its inertia."""
    units = rate_units(here)
    K, J = tangent_stiffness(here, loading) * np.outer(units, units), here.J * units
    _, vectors = eigen(here, (K + K.T) / 2, J.T @ tree_mass_matrix(here.robot.tree, here.at) @ J)
    return moving_names(here, J @ vectors[:, :1])[0]


def closed_step(here: Configuration, x: Array) -> Configuration | None:
    """The pose after a step of the independent coordinates, loops closed by the dependent ones."""
    robot = here.robot
    q = robot.tree.moved(here.q, here.J @ x)
    if robot.closures.size:
        dependent = here.reduction.partition.dependent
        q, error = robot.assembler.newton(q, dependent, list(robot.closures.rows), CLOSING)
        if not error <= CLOSED:
            return None
    return Configuration(robot, q)


def _damped_step(
    here: Configuration, loading: Loading, solver: StiffnessSolver, x: Array, share: float
) -> tuple[Configuration, float] | None:
    """The longest of ever shorter steps after which the same tangent asks for a shorter step than now."""
    units, size = rate_units(here), float(np.linalg.norm(x / rate_units(here)))
    for _ in range(HALVINGS):
        there = closed_step(here, share * x)
        if there is not None:
            reduced = reduction(there.closure_jacobian, here.reduction.partition)
            ahead = solver.solve(-reduced.forces(loading.forces(there)), refuse=False)
            if np.linalg.norm(ahead / units) < size:  # NaN is refused too
                return there, share
        share /= 2
    return None


def snaps_on_the_way(rest: Equilibrium) -> bool:
    """Whether what acts at the start, put on bit by bit, loses a stable state before it is all there.

    Newton's method goes its own way: it may end beyond a limit point, in a state that is stable again.
    """
    if rest.steps <= FEW_STEPS:
        return False
    here, loading = rest.start, rest.loading
    first, done, part = loading.forces(here), 0.0, PART
    while done < 1.0:
        held_back = replace(loading, tau=loading.tau + (1 - min(1.0, done + part)) * first)
        try:
            solver = StiffnessSolver(here, tangent_stiffness(here, held_back))
            along = here.J @ solver.solve(-here.reduction.forces(held_back.forces(here)))
            found = newton(here, held_back)
            told = here.robot.tree.moved(here.q, along)
            good = not found.stuck and is_stable(found.configuration, held_back)
            good = good and bool(as_told(here.q[None], told[None], found.configuration.q[None])[0])
        except SingularError:
            good = False
        if good:
            here, done, part = found.configuration, min(1.0, done + part), min(PART, 2 * part)
            continue
        part /= 2
        if part < FINEST:
            return True
    return bool(np.abs(here.q - rest.configuration.q).max(initial=0.0) > SAME)


def as_told(before: Array, told: Array, after: Array) -> Array:
    """Rows of positions that went about where the tangent said: what jumps to another branch does not."""
    missed, moved = np.linalg.norm(after - told, axis=1), np.linalg.norm(after - before, axis=1)
    return missed <= TOLD * moved + SAME
