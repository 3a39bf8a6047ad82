"""Initial state of a run: undeformed, in equilibrium, held by the motors, or specified.

Rates are those of the prescribed motion, of the closures and of specified coordinates without a motor; within these,
elastic rates have the least kinetic energy, and other rates are least (`Configuration.rates`).

Flexible bodies are in equilibrium under their loads with the joints at the pose. Rigid motions that no motor holds are
locked until the run begins, because their equilibrium may be far away; springs hold a motion unless a pose is
specified. Equilibria are cached on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy

from parflex.closure.mobility import RANK_TOLERANCE
from parflex.codegen import cache
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, SingularError, did_you_mean
from parflex.forces.forces import Wrench
from parflex.records import Record
from parflex.recursion.energy import energies
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.coordinate_names import WorldName
from parflex.robot.robot import Robot
from parflex.robot.states import close_positions, closed_positions
from parflex.simulation.problem import Problem
from parflex.statics.equilibrium import equilibrium, is_stable
from parflex.statics.linear_model import tree_stiffness
from parflex.statics.linear_system import rate_units
from parflex.statics.zero_dynamics import check_system, held_frame, zero_dynamics
from parflex.trajectories.frames import FrameTrajectory
from parflex.trajectories.trajectory import Trajectory

Array = np.ndarray
Prescribed = Trajectory | FrameTrajectory | None
STARTS = ("rest", "relaxed", "equilibrium", "held")
WORDS = ("pose", "velocity", "positions", "q", "qd")
TWIST = ("x", "y", "z", "rx", "ry", "rz")
SAME = 1e-6  # in units of the rates or of typical lengths: a specified state and the motion differ by rounding
AWAY = 1e-2  # in radians or typical lengths: more than bodies deflect
OPEN = 1e5  # times the usual tolerance of loops: specified positions are closed
NO_STIFFNESS = 1e-10  # of the stiffest motion: springs do not hold motions of less stiffness
BALANCED = 1e-7  # of the acting forces: Newton's method leaves less in brakes that carry nothing


@dataclass(frozen=True, eq=False, repr=False)
class StartState(Record):
    """Positions and rates at the start, the kind of start, and its diagnostics."""

    q: Array
    kind: str
    diagnostics: list[Diagnostic] = field(default_factory=list)
    held: tuple[str, ...] = ()  # rates that something held until the run began
    qd: Array = field(default_factory=lambda: np.zeros(0))
    energy: dict[str, float] = field(default_factory=dict)  # all kinetic energy, and that of elastic rates alone

    @property
    def told(self) -> dict[str, Any]:
        """Return the entries of the summary of a run."""
        return {"start": self.kind, "start_energy": self.energy} | ({"start_held": [*self.held]} if self.held else {})


def start_state(
    problem: Problem, robot: Robot, start: Any, pose: Any, motion: Prescribed, wrenches: Mapping[str, Trajectory]
) -> StartState:
    """Return the initial state; `pose` is the initial pose of a run without a motion.

    By default the joints of a flexible robot are at the pose and its bodies in equilibrium. Motors are locked if a
    motion or the pose determines them; else they hold the end effector, if there is one for each of its degrees of
    freedom. Joints without a motor are locked until the run begins: their equilibrium may be far away.
    """
    if motion is not None and pose is not None:
        raise InputError("the motion defines the initial pose", key="pose", hint="leave out the pose or the motion")
    if isinstance(start, Mapping):
        for word in ("pose", "q"):
            if word in start and pose is not None:
                raise InputError(
                    f"the start already has a '{word}'", key="pose", value=word, hint="give one of the two"
                )
        start = start if pose is None else {**start, "pose": pose}
        state = _given_positions(problem, robot, start, motion, wrenches)
        qd = _given_rates(Configuration(robot, state.q), start, motion)
    else:
        _check_start(start, "start")
        q = motion.start if motion is not None else configure(robot, pose).q
        state, driven = _positions(problem, start, q, wrenches, pose), _prescribed(robot, motion)
        qd = Configuration(robot, state.q).rates(driven) if any(driven.values()) else np.zeros(robot.tree.n)
    return replace(state, qd=qd, energy=start_energy(Configuration(problem.robot, state.q), qd))


def _check_start(start: Any, key: str) -> None:
    if start not in (None, *STARTS):
        hint = did_you_mean(str(start), STARTS)
        raise InputError(f"there is no start '{start}'", key=key, value=str(start), hint=hint)


def _positions(
    problem: Problem, start: str | None, q: Array, wrenches: Mapping[str, Trajectory], pose: Any
) -> StartState:
    """Return all positions of a kind of start; None is the default."""
    if start == "rest" or (start is None and not problem.robot.tree.elastic):
        return StartState(q, "rest")
    loads = {frame: pieces.value(0.0).tolist() for frame, pieces in wrenches.items()}
    here, robot, platform = Configuration(problem.robot, q), problem.robot, problem.prescribed == "platform"
    named, motors = named_rates(robot, pose), len(robot.actuated)
    enough = problem.prescribed == "efforts" and motors == (3 if robot.tree.planar else 6)
    kind = start or ("held" if platform or (enough and not named & {*robot.actuated}) else "relaxed")
    if kind != "held" and len(problem.independent) <= motors:
        return StartState(q, "rest")
    try:
        if start in ("equilibrium", "held"):
            return _left(robot, here, named, _static(problem, here, kind, loads))
        relaxed = lambda: relaxed_bodies(robot, here, loads, pose, kind == "held")  # noqa: E731
        bodies = cached_equilibrium(robot, (q, loads, pose is None, named, kind), relaxed)
    except SingularError as error:
        if start is not None:
            raise
        text = f"the run starts undeformed: {error.message}"
        return StartState(q, "rest", [Diagnostic("changed-start", text)])
    if platform and not bodies.held:
        return _static(problem, here, kind, loads)
    word = "relaxed" if bodies.held else "held" if kind == "held" else "equilibrium"
    text = "the run starts with bodies in an equilibrium that is not stable, as beyond a buckling load: they leave it"
    return StartState(bodies.q, word, [] if bodies.steady else [Diagnostic("unstable-equilibrium", text)], bodies.held)


def _static(problem: Problem, here: Configuration, kind: str, loads: Mapping[str, list[float]]) -> StartState:
    """Return the equilibrium of the whole robot, near the pose or not."""
    robot = problem.robot
    if kind == "equilibrium":
        rest = equilibrium(robot, here, wrench=loads)
        text = "the run starts in an equilibrium that is not stable: the robot will leave it"
        return StartState(rest.configuration.q, kind, [] if rest.stable else [Diagnostic("unstable-equilibrium", text)])
    if problem.prescribed != "platform":
        return StartState(held_frame(robot, here, wrench=loads).configuration.q, kind)
    driven = zero_dynamics(robot, here, wrench=loads)
    near = check_system(driven.held.configuration, driven.held.frame)
    return StartState(driven.held.configuration.q, kind, [*near, *driven.diagnostics])


def _left(robot: Robot, here: Configuration, named: set[int], placed: StartState) -> StartState:
    """Return a start with a diagnostic if its equilibrium is away from the specified pose."""
    away = {}
    for k in named - {*robot.actuated}:
        link = robot.tree.links[robot.tree.link_of_rate[k]]
        if link.joint.one_axis and k == link.v.start:
            away[link.name] = abs(float(placed.q[link.q.start] - here.q[link.q.start])) / robot.tree.rate_units[k]
    worst = max(away, key=away.__getitem__, default="")
    if not worst or away[worst] < AWAY:
        return placed
    gone = away[worst] * robot.tree.rate_units[robot.tree.rate_names.index(worst)]
    text = (
        f"the equilibrium is not at the specified pose: '{worst}' is off by {gone:.3g}; start='relaxed' keeps the pose"
    )
    return replace(placed, diagnostics=[Diagnostic("changed-start", text, worst, float(gone)), *placed.diagnostics])


def start_energy(here: Configuration, qd: Array) -> dict[str, float]:
    """Return the kinetic energy, and 1/2 ed^T M_ee ed of the elastic rates that the closures impose."""
    if not np.any(qd):
        return {"kinetic": 0.0, "elastic_rates": 0.0}
    elastic = here.resting[0] @ qd if len(here.resting) > 1 else np.zeros(0)
    kinetic = float(energies(here.robot.tree, here.at, qd).kinetic)
    return {"kinetic": kinetic, "elastic_rates": float(0.5 * elastic @ elastic)}


def _prescribed(robot: Robot, motion: Prescribed) -> dict[str, float]:
    """Return the velocities with which a motion begins, by name."""
    if motion is None:
        return {}
    if isinstance(motion, Trajectory):
        return dict(zip(robot.actuated_names, map(float, motion.value(0.0, 1)), strict=True))
    twist, words = motion.at(0.0).twist, dict(enumerate(TWIST))
    if robot.tree.planar:
        words = {0: "x", 1: "y", 5: "theta"}
    return {WorldName(f"{motion.frame}.{word}"): float(twist[k]) for k, word in words.items()} if twist.any() else {}


def _given_positions(
    problem: Problem, robot: Robot, start: Mapping[str, Any], motion: Prescribed, wrenches: Mapping[str, Trajectory]
) -> StartState:
    """Return specified positions `q` of the tree, or a pose, undeformed unless `positions` specifies its start."""
    for word in start:
        if word not in WORDS:
            raise InputError(f"unknown key '{word}'", key="start", value=str(word), hint=did_you_mean(str(word), WORDS))
    for word, size in (("q", robot.tree.nq), ("qd", robot.tree.n)):
        if word in start and np.shape(start[word]) != (size,):
            text = f"'{word}' does not have one number per coordinate of the robot"
            hint = f"give {size}, or a pose and velocities"
            raise InputError(text, key="start", value=str(np.shape(start[word])), hint=hint)
    _check_start(start.get("positions"), "start.positions")
    if "q" in start:
        if "positions" in start or "pose" in start:
            raise InputError("'q' already gives all positions", key="start", value="q", hint="omit the pose")
        q = _closed(robot, np.asarray(start["q"], dtype=float))
    elif start.get("pose") is None and motion is not None:
        q = motion.start
    else:
        q = configure(robot, start.get("pose")).q
    if isinstance(motion, Trajectory):
        _same_positions(robot, q, motion)
    if start.get("positions") is None:
        return StartState(q, "given")
    return _positions(problem, start["positions"], q, wrenches, start.get("pose") if "q" not in start else q)


def _given_rates(here: Configuration, start: Mapping[str, Any], motion: Prescribed) -> Array:
    """Return specified rates `qd` of the tree, or those of specified velocities and of the motion."""
    driven = _prescribed(here.robot, motion)
    if "qd" in start:
        if "velocity" in start:
            raise InputError("'qd' already gives all rates", key="start", value="qd", hint="omit the velocity")
        return _possible(here, np.asarray(start["qd"], dtype=float), driven)
    stated = dict(start.get("velocity") or {})
    for word in {*stated} & {*driven}:
        if abs(stated[word] - driven[word]) > SAME * max(1.0, abs(driven[word])):
            text = f"'{word}' starts with {stated[word]:g}, but the motion begins with {driven[word]:g}"
            hint = "give velocities of coordinates that the motion does not prescribe"
            raise InputError(text, key="start.velocity", value=stated[word], hint=hint)
    return here.rates(stated | driven)


def _closed(robot: Robot, q: Array) -> Array:
    """Return the positions nearest to specified ones at which the loops are closed to rounding."""
    try:
        closed_positions(robot, q, OPEN)
        return close_positions(robot, q) if Configuration(robot, q).closure_error else q
    except InputError as error:
        error.key = "start.q"
        raise


def _same_positions(robot: Robot, q: Array, motion: Trajectory) -> None:
    """Refuse a start away from the start of the prescribed motor motion."""
    for k, name, desired in zip(robot.actuated, robot.actuated_names, motion.value(0.0), strict=True):
        position = float(q[robot.tree.links[robot.tree.link_of_rate[k]].q.start])
        if abs(position - desired) > SAME * robot.tree.rate_units[k]:
            text = f"the run starts with '{name}' at {position:g}, but the motion begins at {desired:g}"
            hint = "omit the pose: the motion defines the initial pose"
            raise InputError(text, key="start", value=position, hint=hint)


def _possible(here: Configuration, qd: Array, driven: Mapping[str, float]) -> Array:
    """Return specified rates without rounding; raise if the closures or the motion do not allow them."""
    robot = here.robot
    units = robot.tree.rate_units
    rates = here.rates_near(driven, qd)
    away = (rates - qd) / units
    worst = int(np.argmax(np.abs(away))) if len(away) else 0
    if not np.isfinite(qd).all() or (len(away) and abs(away[worst]) > SAME * max(1.0, float(np.abs(qd / units).max()))):
        off = f"'{robot.tree.rate_names[worst]}' is off by {away[worst] * units[worst]:.3g}"
        text, hint = f"the closures or the motion do not allow these rates: {off}", "give velocities of some joints"
        raise InputError(text, key="start.qd", value=float(qd[worst]), hint=hint)
    return rates


def relaxed_bodies(
    robot: Robot,
    here: Configuration,
    wrench: Wrench,
    pose: Pose | None,
    frame_held: bool = False,
) -> RelaxedBodies:
    """Return bodies in equilibrium at the positions `here`, with motors and unactuated motions of joints locked.

    Without a `pose`, motions that springs keep in a stable equilibrium are free. With `frame_held` the motors hold the
    end effector.
    """
    motions = rigid_motions(here)
    if pose is None:
        soft = motions_without_springs(here, motions)
        if soft.shape[1] < motions.shape[1]:
            with suppress(SingularError):  # joints on springs in equilibrium too, if it is stable
                bodies = _at_rest(robot, here, _joints_of(robot, soft, ()), wrench, frame_held, sprung=True)
                if bodies.steady:
                    return bodies
    return _at_rest(robot, here, _joints_of(robot, motions, named_rates(robot, pose)), wrench, frame_held)


def _at_rest(
    robot: Robot,
    here: Configuration,
    rates: Sequence[int],
    wrench: Wrench,
    frame_held: bool,
    sprung: bool = False,
) -> RelaxedBodies:
    """Return the equilibrium with brakes at `rates`, which are named if they carry a load.

    If joints are `sprung`, the equilibrium must be stable at the positions `here` too: an arm that would fall over
    onto a weak spring starts upright.
    """
    braked = robot.locking(rates) if rates else robot
    rest = (held_frame if frame_held else equilibrium)(braked, Configuration(braked, here.q), wrench=wrench)
    at, loading = rest.configuration, rest.loading
    loose = Configuration(robot.locking(robot.actuated), at.q)
    carried = loose.reduction.forces(loading.forces(loose)) * rate_units(loose)
    acting = [loading.forces(Configuration(robot, q)) * robot.tree.rate_units for q in (here.q, at.q)]
    idle = np.abs(carried).max(initial=0.0) <= BALANCED * np.abs(acting).max(initial=0.0)
    names = () if idle else tuple(robot.tree.rate_names[k] for k in rates)
    all_held = robot.locking([*rates, *robot.actuated])
    steady = all(is_stable(Configuration(all_held, q), loading) for q in ((here.q, at.q) if sprung else (at.q,)))
    return RelaxedBodies(at.q, names, steady)


def rigid_motions(here: Configuration) -> Array:
    """Return all rates of each motion of joints that closures allow with motors and deformations locked."""
    robot, n = here.robot, here.robot.tree.n
    moving = sorted({*range(n)} - {*robot.deformations, *robot.actuated, *robot.locked})
    rows = here.scaled_closure_jacobian[:, moving]
    basis = scipy.linalg.null_space(rows, rcond=RANK_TOLERANCE) if rows.size else np.eye(len(moving))
    motions = np.zeros((n, basis.shape[1]))
    motions[moving] = basis
    return motions


def motions_without_springs(here: Configuration, motions: Array) -> Array:
    """Return the motions that no spring of a joint, coupling or element resists."""
    units = here.robot.tree.rate_units
    scaled = units[:, None] * motions
    K = scaled.T @ tree_stiffness(here)[0] @ scaled
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    return motions @ vectors[:, np.abs(values) <= NO_STIFFNESS * np.abs(values).max(initial=0.0)]


def _joints_of(robot: Robot, motions: Array, first: Collection[int]) -> list[int]:
    """Return one rate for each of the motions, chosen by pivots, from `first` if possible."""
    left, chosen = motions, list[int]()
    for rates in ([k for k in range(robot.tree.n) if k in first], list(range(robot.tree.n))):
        if not left.shape[1] or not rates:
            continue
        _, R, order = scipy.linalg.qr(left[rates].T, mode="economic", pivoting=True)
        sizes = np.abs(np.diag(R))
        chosen += [rates[k] for k in order[: int((sizes > RANK_TOLERANCE).sum())]]
        left = motions @ scipy.linalg.null_space(motions[chosen], rcond=RANK_TOLERANCE) if chosen else motions
    return sorted(chosen)


@dataclass(frozen=True, eq=False, repr=False)
class RelaxedBodies(Record):
    """An equilibrium of bodies, and the rates whose brakes carry a load in it."""

    q: Array
    held: tuple[str, ...] = ()
    steady: bool = True  # whether the equilibrium is stable


def cached_equilibrium(robot: Robot, choices: tuple[Any, ...], find: Callable[[], RelaxedBodies]) -> RelaxedBodies:
    """Return the equilibrium of a robot for all `choices` that it depends on, from the disk if it is stored."""
    key = cache.key_of(robot, "rest", *choices) if robot.deformations else None
    if key is not None:
        key = key.removesuffix(".program") + ".rest"
    return cache.stored(key, find)


def named_rates(robot: Robot, pose: Pose | None) -> set[int]:
    """Return the rates of the joints that a pose names; all for positions of the whole tree."""
    if isinstance(pose, str):
        pose = robot.description.poses.get(pose, {})
    if pose is None or not isinstance(pose, Mapping):
        return set(range(robot.tree.n)) if pose is not None else set()
    links = robot.tree.links
    named = [link for link in links if {link.name, link.name[:-2]} & set(pose)]
    return {k for link in named for k in range(link.v.start, link.v.stop)} | {
        k for k, name in enumerate(robot.tree.rate_names) if name in pose
    }
