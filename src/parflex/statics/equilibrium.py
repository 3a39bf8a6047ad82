"""Static equilibrium by Newton's method with load continuation, and preload of redundant motors.

If Newton's method fails, a path is followed by arc length while the loads grow. Weights, wrenches and efforts grow from
zero while the tension of springs at the pose is released: F_s(q) = F_0(q) + s F_loads(q) - (1 - s) F_0(q0). Where loads
alone hold a coordinate, as the weight holds a pendulum, all forces at the pose are released instead. Arc length passes
steep parts and limit points. At a limit point the load share s turns back; at a branching point s goes on through
unstable states.

Redundant motors preload a robot: internal efforts load the loops without moving them, and the rotation of these forces
adds to the stiffness, theory (50). The equilibrium is computed once and then held by servos, brakes or efforts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from parflex.closure.newton import CLOSED
from parflex.closure.partition import reduction
from parflex.errors import InputError, ParflexError, SingularError
from parflex.forces.forces import Values, element_values
from parflex.forces.shared_efforts import shared_efforts
from parflex.forces.spare_motors import Sharing, asked, read_sharing, spare_motors
from parflex.forces.taut_cables import TAUT, driven_cables, slack_warnings, tautened
from parflex.records import Answer, Record, brief, count_of
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.recursion.energy import distance
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.statics.linear_system import DRIVEN, StiffnessSolver, eigen, moving_names, rate_units
from parflex.statics.load_case import LoadCase, LoadKeywords, Lock, full_load_case
from parflex.statics.loads import (
    AppliedLoads,
    held_robot,
    least_multipliers,
    prepare_loads,
    tangent_stiffness,
)
from parflex.statics.small_deformation import element_advice

NOT_STABLE = "this equilibrium is not stable, as beyond a buckling load: the robot would leave it"

BEYOND = (
    "loads that grow do not lead from the pose to this equilibrium in stable states: the robot snaps through on the way"
)

LOST_WARNING = "loads that grow could not be followed from the pose to this equilibrium: they may lead to another one"

Array = np.ndarray

STEPS = 60

STRIDE = 0.3  # longest Newton step, as an angle or in typical lengths: longer ones leave the domain of the tangent

CLOSING = 12  # Newton steps that close the loops after a step: more are needed only where the step was far too long

HALVINGS = 8  # of a step that does not help: a tangent that helps over less of its way is no guide

UNSTABLE = -1e-9  # of the largest stiffness: below is more than rounding

FINE = 1e-12  # a step this short, in the same units, is the last: the next would be rounding

FEW_STEPS = 5  # Newton steps up to which the loads move the robot about as its first tangent says

TOLD = 0.5  # of a motion: by so much the tangent before it may miss where it ends, unless that is another branch

SAME = 1e-6  # of a coordinate in m or rad: nearer states are one

Growth = Callable[[float], AppliedLoads]

LONGEST = 2 * STRIDE  # arc: share and motion, the latter in radians and typical lengths

SHORTEST_ARC = 2e-4  # arc within which a limit point beside all of the loads is pinned

PINNED = 0.02  # arc within which one that is farther from them is

LOST_ARC = 1e-9  # arc below which a path is not followed any more

MOST_ARCS = 200  # steps of arc

FAR = 8.0  # rad or typical lengths: a robot that has gone so far is falling, or its bodies are not small in deformation

CORRECTIONS = 8  # Newton steps after a step of arc, which is too long where more are needed

NEAR = 1e-6  # of a step of arc: corrections below are the last

ALIGNED = 0.97  # cosine between neighbouring tangents: a quarter turn takes seven steps, and no fold is stepped over

FIRST = 0.02  # first step of arc: what buckles under less of the loads is seen

FEW = 3  # corrections

GROWTH = 2.5  # of a step of arc after one that few corrections ended

MOST_STEPS = 100  # steps

REACH = 0.3  # longest step, as an angle or in typical lengths

SHORTEST_STEP = 1e-9  # step that still gains nothing: there is no way down

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
    snaps : bool
        Whether loads that grow do not lead here from the pose in stable states: the robot snaps through on the way.
    lost : bool
        Whether the states through which loads that grow lead could not be followed to here.
    """

    given: Robot  # before it was held
    configuration: Configuration
    start: Configuration
    loading: AppliedLoads
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
        return BEYOND if self.snaps else LOST_WARNING if self.lost else ""

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
    begun = _on_flanks(start, loading)
    found = _at_rest(begun, loading)
    return Equilibrium(robot, found.configuration, start, loading, found.steps, snaps=found.snaps, lost=found.lost)


def equilibrium_near(robot: Robot, at: Configuration, why: str, case: LoadCase) -> Equilibrium:
    """The equilibrium near a pose at which springs are under tension; refused in a sentence where there is none.

    Answers about it say why in their warnings.
    """
    try:
        rest = equilibrium_of(robot, Configuration(robot, at.q), case)
    except SingularError as error:
        raise SingularError(
            f"{why}, and the robot has no equilibrium to be linearised about: {error.message}",
            key="about",
            value=error.value,
            hint="lock or servo-hold more joints, choose another pose, or ask about='undeformed', "
            "which leaves out what balances the tension",
        ) from None
    return replace(rest, why=f"{why}: the answer is about the equilibrium")


def stability_warnings(warnings: Sequence[str]) -> list[str]:
    """Sentences on an equilibrium at which a robot would not stay, or that growing loads may not reach."""
    return [word for word in warnings if word in (BEYOND, LOST_WARNING) or "equilibrium is not stable" in word]


@dataclass(frozen=True)
class _Rest:
    """An equilibrium, the steps to it, and whether loads that grow do not lead to it in stable states, or were lost."""

    configuration: Configuration
    steps: int
    snaps: bool = False
    lost: bool = False


def _at_rest(begun: Configuration, loading: AppliedLoads) -> _Rest:
    """Where a robot comes to rest from a pose.

    Newton's method is believed where its steps are few and all their states would be stable. It may end in another
    branch else, so then the states are followed while the loads grow. Beyond a limit point the robot falls to where it
    comes to rest again.
    """
    found, refused = None, None
    try:
        found = static_newton(begun, loading)
    except SingularError as error:
        refused = error
    if found is not None and (found.steady or _stayed(found, begun)):
        return _Rest(found.configuration, found.steps)
    taut = _taut(begun, loading) if found is None or found.stuck else None
    if taut is not None:
        return _Rest(taut.configuration, taut.steps)
    course, steps = follow_load_path(begun, loading), found.steps if found is not None else 0
    if course is not None and course.reached:  # stable or not, it is where the loads lead
        return _Rest(course.configuration, steps + course.steps)
    settled = found if found is not None and not found.stuck else None
    if settled and course is None and settled.steps <= FEW_STEPS and not is_stable(settled.configuration, loading):
        return _Rest(settled.configuration, steps)  # the pose is beside a balance that is not stable: it is meant
    from_here = begun if course is None or course.share <= 0.0 else course.configuration
    down, lost = downhill_equilibrium(from_here, loading), course is not None and course.ended == "lost"
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
    more = element_advice(begun.robot.tree, course.configuration.q, course.share) if course and course.share > 0 else ""
    raise SingularError(
        f"no equilibrium was found near this pose{where}; '{name}' is constrained least",
        key="wrench",
        value=name,
        hint=f"{more}reduce the loads, servo-hold more joints, or start from a pose nearer to the equilibrium",
    )


def _stayed(found: NewtonResult, begun: Configuration) -> bool:
    """Whether a robot is in balance where it begins, stable or not."""
    return not found.stuck and bool(np.abs(found.configuration.q - begun.q).max(initial=0.0) <= SAME)


def _taut(start: Configuration, loading: AppliedLoads) -> NewtonResult | None:
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
        found = static_newton(Configuration(robot, near.configuration.q), loading)
    except SingularError:  # also with these something is free: it is named for the robot as it is
        return None
    return None if found.stuck else replace(found, steps=near.steps + found.steps)


def _on_flanks(start: Configuration, loading: AppliedLoads) -> Configuration:
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
            found = static_newton(Configuration(held, here.q), loading)
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


def _softest(here: Configuration, loading: AppliedLoads) -> str:
    """The coordinate that moves most in the motion of least stiffness for its inertia."""
    units = rate_units(here)
    K, J = tangent_stiffness(here, loading) * np.outer(units, units), here.J * units
    _, vectors = eigen(here, (K + K.T) / 2, J.T @ tree_mass_matrix(here.robot.tree, here.at) @ J)
    return moving_names(here, J @ vectors[:, :1])[0]


@dataclass(frozen=True)
class NewtonResult:
    """Where Newton ended, after how many steps, and whether it is stuck there.

    It is `steady` if there were few steps, through states that would all be stable under the loads, and it is about
    where the first tangent said.
    """

    configuration: Configuration
    steps: int
    stuck: bool = False
    steady: bool = False


def is_stable(at: Configuration, loading: AppliedLoads) -> bool:
    """Whether no motion from an equilibrium sets energy free."""
    return is_positive(tangent_stiffness(at, loading) * np.outer(rate_units(at), rate_units(at)))


def is_positive(K: Array) -> bool:
    """Whether no eigenvalue of a stiffness without units is negative; most are told by their factors alone."""
    K = (K + K.T) / 2
    if not np.isfinite(K).all():
        return False
    try:
        np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        values = np.linalg.eigvalsh(K)
        return bool(values.min(initial=0.0) >= UNSTABLE * np.abs(values).max(initial=0.0))
    return True


def static_newton(here: Configuration, loading: AppliedLoads, most: int = STEPS) -> NewtonResult:
    """Where damped steps from a pose end."""
    travel, steady, begun = 0.0, True, here.q
    told = begun
    for step in range(1, most + 1):
        units = rate_units(here)
        F = loading.forces(here)
        c, K = here.reduction.forces(F), tangent_stiffness(here, loading, acting=F)
        steady = steady and step <= FEW_STEPS and is_positive(K * np.outer(units, units))
        solver = StiffnessSolver(here, K)
        x = solver.solve(-c)
        size = float(np.linalg.norm(x / units))
        if step == 1:
            told = here.robot.tree.moved(here.q, here.J @ x)
        if size <= max(1e-7 * travel, FINE):  # convergence is quadratic: after this step only rounding is left
            there = closed_step(here, x) or here
            return NewtonResult(
                there, step, steady=steady and bool(agrees_with_tangent(begun[None], told[None], there.q[None])[0])
            )
        share = min(1.0, STRIDE / float(np.abs(x / units).max()))
        found = _damped_step(here, loading, solver, x, share)
        if found is None:
            if size < 1e-9:  # rounding: steps do not become shorter any more
                return NewtonResult(here, step)
            break
        here, share = found
        travel += share * size
    return NewtonResult(here, step, stuck=True)


def agrees_with_tangent(before: Array, told: Array, after: Array) -> Array:
    """Rows of positions that went about where the tangent said: what jumps to another branch does not."""
    missed, moved = np.linalg.norm(after - told, axis=1), np.linalg.norm(after - before, axis=1)
    return missed <= TOLD * moved + SAME


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
    here: Configuration, loading: AppliedLoads, solver: StiffnessSolver, x: Array, share: float
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


@dataclass(frozen=True)
class LoadPath:
    """Where loads that grow lead: the last state, the share of the loads there, and whether it is stable up to it.

    `ended` tells a limit point (the share turns back) from a path that was lost.
    """

    configuration: Configuration
    share: float
    stable: bool
    steps: int
    ended: str = ""  # "", "limit" or "lost"

    @property
    def reached(self) -> bool:
        """Whether all of the loads are there."""
        return not self.ended


def follow_load_path(begun: Configuration, loading: AppliedLoads) -> LoadPath | None:
    """The course of the loads from a pose; None where the pose is not stable without them."""
    for growth in (scaled_loads(begun, loading), release_slowly(begun, loading)):
        first = _Point.at(begun, growth, 0.0)
        if first is None or not first.stable:
            continue
        along = first.first_tangent()
        if along is not None:
            return _followed(first, along, loading)
    return None


def scaled_loads(begun: Configuration, loading: AppliedLoads) -> Growth:
    """Loads by their share, tension at the pose let go as they grow."""
    bare = replace(loading, wrench={}, tau=np.zeros_like(loading.tau), weight=0.0)
    held = bare.forces(begun)

    def at(share: float) -> AppliedLoads:
        part = {frame: share * np.asarray(values) for frame, values in loading.wrench.items()}
        return replace(loading, wrench=part, tau=share * loading.tau + (1 - share) * held, weight=share)

    return at


def release_slowly(begun: Configuration, loading: AppliedLoads) -> Growth:
    """All that acts at the pose, let go: efforts along all rates hold back the rest of it."""
    held = loading.forces(begun)
    return lambda share: replace(loading, tau=loading.tau + (1 - share) * held)


@dataclass(frozen=True, eq=False, repr=False)
class _Point(Record):
    """A state with a share of the loads: stiffness, what is out of balance there, and what more load adds to it."""

    here: Configuration
    growth: Growth
    share: float
    K: Array  # without units, as what follows
    left: Array
    load: Array

    @classmethod
    def at(cls, here: Configuration, growth: Growth, share: float) -> _Point | None:
        """The point; None where something is not defined there."""
        units = rate_units(here)
        try:
            least, most = (growth(end).forces(here) for end in (0.0, 1.0))  # linear in the share
            acting = (1 - share) * least + share * most
            K = tangent_stiffness(here, growth(share), acting=acting) * np.outer(units, units)
        except SingularError:
            return None
        left, load = (here.reduction.forces(forces) * units for forces in (acting, most - least))
        return cls(here, growth, share, K, left, load) if np.isfinite(K).all() and np.isfinite(left).all() else None

    @property
    def independent(self) -> Array:
        """Rates by which its motions are given."""
        return self.here.reduction.partition.independent

    @property
    def stable(self) -> bool:
        return is_positive(self.K)

    def first_tangent(self) -> Array | None:
        """All rates per share where nothing has moved yet; None where a load drives what nothing holds."""
        x = np.linalg.lstsq(self.K, -self.load, rcond=1e-13)[0]
        if np.linalg.norm(self.K @ x + self.load) > DRIVEN * np.linalg.norm(self.load):
            return None
        return self._whole(x, 1.0)

    def tangent(self, before: Array) -> Array:
        """The direction in which the states go on, of unit length: motion of all rates, without units, and share."""
        found = self._solved(before, np.append(np.zeros(len(self.load)), 1.0))
        return self._whole(found[:-1], found[-1])

    def correction(self, before: Array) -> Array:
        """Step across the direction back into balance: independent rates, without units, and share."""
        return self._solved(before, np.append(-self.left, 0.0))

    def _solved(self, before: Array, right: Array) -> Array:
        scale = max(float(np.abs(self.K).max(initial=0.0)), 1e-300)
        matrix = np.block([[self.K / scale, self.load[:, None] / scale], [self._own(before)[None]]])
        right = np.append(right[:-1] / scale, right[-1])
        try:
            found = np.linalg.solve(matrix, right)
            good = np.isfinite(found).all() and np.abs(found).max() < 1e9
        except np.linalg.LinAlgError:
            good = False
        # what nothing holds and nothing drives stays where it is
        return found if good else np.linalg.lstsq(matrix, right, rcond=1e-13)[0]

    def _whole(self, x: Array, share: float) -> Array:
        tree = self.here.robot.tree
        motion = self.here.J @ (rate_units(self.here) * x) / tree.rate_units
        found = np.append(motion, share)
        return found / np.linalg.norm(np.append(x, share))

    def _own(self, whole: Array) -> Array:
        """A direction by the independent rates of this state, of unit length."""
        found = np.append(whole[:-1][self.independent], whole[-1])
        return found / np.linalg.norm(found)

    def ahead(self, whole: Array, arc: float) -> Configuration | None:
        """The state after a step of arc, loops closed."""
        own = self._own(whole)[:-1] * arc
        return closed_step(self.here, rate_units(self.here) * own)


def _followed(point: _Point, along: Array, loading: AppliedLoads) -> LoadPath:
    """States from a first one on, until all loads are there, their share turns back, or the path is lost."""
    stable, steps = True, 0
    arc = FIRST
    begun, limit = point.here.q, FAR * max(1.0, point.here.robot.tree.length)
    while steps < MOST_ARCS and arc > LOST_ARC and np.abs(point.here.q - begun).max(initial=0.0) < limit:
        steps += 1
        own = point._own(along)
        rise = own[-1]
        step = min(arc, (1.0 - point.share) / rise) if rise > 0 else arc
        ahead = point.ahead(along, step)
        last = (rise > 0 and step < arc) or point.share + step * rise >= 1.0 - 1e-12
        if last and ahead is not None:
            end = _at_full_load(point, ahead, loading, step)
            if end is not None and (end[1] or not stable):
                return LoadPath(end[0], 1.0, stable and end[1], steps + end[2])
        made = None if ahead is None else _corrected(ahead, point.share + step * rise, along, point.growth, step)
        if made is None:
            arc = step / 2
            continue
        there, corrections = made
        onward = there.tangent(along)
        turned = float(there._own(onward) @ there._own(along))
        stays, climbs = there.stable, there._own(onward)[-1]
        if climbs <= 0.0 and step <= PINNED and max(point.share, there.share) + step < 1.0:
            return LoadPath(point.here, max(point.share, there.share), stable, steps, "limit")
        lost = stable and not stays  # at a branching, or over the turn of a path that passes beside one
        if (turned < ALIGNED or there.share >= 1.0 or lost or climbs <= 0.0) and step > SHORTEST_ARC:
            arc = step / 2
            continue
        if turned < 0.0 and step > LOST_ARC:
            arc = step / 2
            continue
        if climbs <= 0.0:
            return LoadPath(point.here, max(point.share, there.share), stable, steps, "limit")
        if there.share >= 1.0:
            end = _at_full_load(point, there.here, loading, step)
            if end is not None:
                return LoadPath(end[0], 1.0, stable and end[1], steps + end[2])
            return LoadPath(point.here, point.share, stable, steps, "lost")
        stable = stable and stays
        point, along = there, onward
        arc = min(LONGEST, (GROWTH if corrections <= FEW else 1.0) * step if step == arc else arc)
    return LoadPath(point.here, point.share, stable, steps, "lost")


def _corrected(
    here: Configuration, share: float, along: Array, growth: Growth, step: float
) -> tuple[_Point, int] | None:
    """The state of balance across the direction, and the number of corrections; None where it is another's."""
    moved, before = 0.0, np.inf
    for number in range(1, CORRECTIONS + 1):
        point = _Point.at(here, growth, share)
        if point is None:
            return None
        x = point.correction(along)
        size = float(np.linalg.norm(x))
        moved += size
        if not moved <= TOLD * step + SAME or (number > FEW and not size < max(before, NEAR * step)):
            return None
        there = closed_step(here, rate_units(here) * x[:-1])
        if there is None:
            return None
        here, share, before = there, share + float(x[-1]), size
        if size <= NEAR * step + 1e-12:  # the stiffness is that before a correction which changes it no more
            alike = np.array_equal(point.independent, here.reduction.partition.independent)
            return replace(point, here=here, share=share) if alike else point, number
    return None


def _at_full_load(
    point: _Point, ahead: Configuration, loading: AppliedLoads, step: float
) -> tuple[Configuration, bool, int] | None:
    """The state under all loads from one that is near: it, whether it is stable, and Newton steps to it."""
    try:
        found = static_newton(ahead, loading, 2 * CORRECTIONS)
    except SingularError:
        return None
    units = ahead.robot.tree
    missed = np.abs(found.configuration.q - ahead.q).max(initial=0.0)
    if found.stuck or missed > TOLD * step * max(1.0, units.length) + SAME:
        return None
    end = _Point.at(found.configuration, lambda _: loading, 1.0)
    return None if end is None else (found.configuration, end.stable, found.steps)


def downhill_equilibrium(here: Configuration, loading: AppliedLoads) -> NewtonResult | None:
    """The stable equilibrium that lies downhill from a state; None where the way down does not end."""
    reach, travel, steps = REACH, 0.0, 0
    try:
        while steps < MOST_STEPS and reach > SHORTEST_STEP and travel < FAR:
            steps += 1
            units = rate_units(here)
            K = tangent_stiffness(here, loading) * np.outer(units, units)
            c = here.reduction.forces(loading.forces(here)) * units
            x, inside = _downhill((K + K.T) / 2, c, reach)
            if inside and is_positive(K):
                found = static_newton(here, loading)
                if not found.stuck and _near(here, found.configuration, 2 * REACH) and _stable(found, loading):
                    return NewtonResult(found.configuration, steps + found.steps)
            there = closed_step(here, units * x)
            gain = 0.0
            if there is not None:
                onward = reduction(there.closure_jacobian, here.reduction.partition)
                gain = -float((c + onward.forces(loading.forces(there)) * units) @ x) / 2
            if there is None or not gain > 0.0:
                reach = min(reach, float(np.linalg.norm(x))) / 3
                continue
            here, travel = there, travel + float(np.linalg.norm(x))
            reach = min(REACH, 2 * reach)
    except (SingularError, np.linalg.LinAlgError):
        return None
    return None


def _stable(found: NewtonResult, loading: AppliedLoads) -> bool:
    at = found.configuration
    units = rate_units(at)
    return is_positive(tangent_stiffness(at, loading) * np.outer(units, units))


def _near(one: Configuration, other: Configuration, reach: float) -> bool:
    tree = one.robot.tree
    return bool(np.abs(one.q - other.q).max(initial=0.0) <= reach * max(1.0, tree.length))


def _downhill(K: Array, c: Array, reach: float) -> tuple[Array, bool]:
    """The step of least energy no longer than `reach`, and whether it is that of Newton's method."""
    values, vectors = np.linalg.eigh(K)
    along = vectors.T @ c
    top = max(float(np.abs(values).max(initial=0.0)), 1e-300)

    def step(shift: float) -> Array:
        with np.errstate(over="ignore"):
            return np.clip(-along / (values + shift), -1e9, 1e9)

    if values[0] > 1e-12 * top and np.linalg.norm(step(0.0)) <= reach:
        return vectors @ step(0.0), True
    low = max(0.0, -float(values[0])) + 1e-12 * top
    if np.linalg.norm(step(low)) <= reach:  # in balance along what would grow: nothing chooses a side
        return vectors @ step(low), False
    high = low + float(np.linalg.norm(along)) / reach + top
    for _ in range(100):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if np.linalg.norm(step(middle)) > reach else (low, middle)
        if high < 1.01 * low:
            break
    return vectors @ step(high), False


def preloaded_equilibrium(robot: Robot, pose: Pose | None, case: LoadCase) -> Equilibrium:
    """The robot at rest under the efforts that hold it and those of the preload; motors are then held as asked."""
    if asked(case.effort):
        raise InputError(
            "efforts of the motors are given, and a preload, which chooses them", key="effort", hint="keep one of them"
        )
    sharing = read_sharing(robot, case.weights, case.preload)
    start = configure(robot, pose)
    tau, internal = _holding(start, sharing, case)
    here = start
    if robot.deformations:
        here, tau = _deformed(start, tau, sharing, case)
    held, loading = prepare_loads(robot, here, replace(case, effort=None, weights=None, preload=None))
    efforts = np.zeros(robot.tree.n)
    for k, effort in zip(robot.actuated, tau, strict=True):
        efforts[k] = 0.0 if k in held.robot.locked else effort
    loading = replace(loading, tau=efforts, internal=internal)
    return Equilibrium(robot, held, Configuration(held.robot, start.q), loading, 0, held_at=held)


def _holding(start: Configuration, sharing: Sharing, case: LoadCase) -> tuple[Array, dict[str, Any] | None]:
    """Efforts that hold the robot with rigid bodies at its pose, as the inverse model has them, theory (46) to (48)."""
    robot = start.robot
    rigid = Configuration(robot.locking(robot.deformations), start.q) if robot.deformations else start
    rigid.refuse_undefined_actuation()
    _, loading = prepare_loads(robot, start, LoadCase("none", wrench=case.wrench, without=case.without))
    A, F = rigid.J_a.T, loading.forces(rigid)
    shared = tautened(shared_efforts(A, rigid.reduction.forces(F), sharing), rigid, A, F, sharing)
    return shared.tau, shared.internal


def _deformed(start: Configuration, tau: Array, sharing: Sharing, case: LoadCase) -> tuple[Configuration, Array]:
    """Where bodies deform: the preloaded motors push with their efforts, the others stand, and efforts of all."""
    robot, motors, spare = start.robot, start.robot.actuated_names, spare_motors(start.robot)
    if len(sharing.preloaded) != spare:
        raise InputError(
            "bodies deform, so each spare motor needs a stated effort",
            key="preload",
            value=", ".join(motors[k] for k in sharing.preloaded),
            hint=f"name {spare} of {', '.join(motors)}",
        )
    stand = [name for k, name in enumerate(motors) if k not in sharing.preloaded]
    efforts = {motors[k]: tau[k] for k in sharing.preloaded}
    rest = equilibrium_of(robot, start, LoadCase(stand, wrench=case.wrench, effort=efforts, without=case.without))
    return rest.configuration, _efforts_at(rest.configuration, rest.loading)[list(robot.actuated)]


def _efforts_at(here: Configuration, loading: AppliedLoads) -> Array:
    """What motors give along all rates at rest: as stated, or what the standing ones have to hold."""
    F, free = loading.forces(here), here.robot.free
    rows = here.closure_jacobian
    lam = np.linalg.lstsq(rows[:, free].T, F[free], rcond=1e-12)[0] if len(rows) else np.zeros(0)
    needed = F - rows.T @ lam
    needed[free] = 0.0
    return loading.tau + needed


equilibrium.doubts = lambda found: stability_warnings([found.way if found.stable else NOT_STABLE])  # type: ignore[attr-defined]


def equilibrium_with_taut_cables(robot: Robot, pose: Pose | None, case: LoadCase) -> Equilibrium | None:
    """The robot at rest where motors that hold it keep its cables taut by internal efforts, as in the inverse model.

    None where cables are taut under efforts of least norm, where nothing keeps them so, or where a motor is free.
    """
    robot = acting_robot(robot, case.without)
    if asked(case.effort) or not driven_cables(robot) or robot.deformations or spare_motors(robot) <= 0:
        return None
    start = configure(robot, pose)
    held = held_robot(robot, start.q, case)
    own, now = ([tree.links[tree.link_of_rate[k]].terms.stiffness for k in robot.actuated]
                for tree in (robot.tree, held.tree))  # fmt: skip
    if any(k not in held.locked and one == other for k, one, other in zip(robot.actuated, own, now, strict=True)):
        return None
    try:
        rest = preloaded_equilibrium(robot, start, case)
    except ParflexError:  # the motors do not hold this pose, and what is asked may not need them to
        return None
    internal = rest.loading.internal
    return replace(rest, why=HELD) if internal is not None and internal["chosen_by"].endswith(TAUT) else None


def pushing_cable_warnings(
    here: Configuration, loading: AppliedLoads, K: Array | None = None, K_tot: Array | None = None
) -> list[str]:
    """Warnings where driven cables push at rest; with stiffnesses, under what they give to hold the loads."""
    if not driven_cables(here.robot):
        return []
    F = loading.forces(here)
    if K is not None and K_tot is not None:
        try:
            F = F + K_tot @ here.J @ StiffnessSolver(here, K).solve(-here.reduction.forces(F))
        except SingularError:  # nothing holds the loads, so there is no tension to tell
            return []
    return slack_warnings(here.robot, element_values(here, None, least_multipliers(here, F)))
