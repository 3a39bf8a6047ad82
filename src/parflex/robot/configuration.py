"""Represent a robot at a pose: Jacobians, independent rates, requested rates, and distance to singularities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import scipy

from parflex.closure import mobility
from parflex.closure.constraints import Closures, Coupling
from parflex.closure.mobility import condition
from parflex.closure.newton import ClosurePart
from parflex.closure.partition import Partition, Reduction, choose_partition, reduction
from parflex.closure.targets import Target
from parflex.diagnostics import Diagnostic
from parflex.errors import ActuationError, InputError, SingularError
from parflex.records import Answer, brief, count_of, degrees_of_freedom
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.recursion.kinematics import Motion, jacobians, motion, place_jacobian, pose
from parflex.recursion.kinematics import Pose as LinkPoses
from parflex.robot.limits import limit_warnings
from parflex.robot.rates import Bias, PriorityBlock, matrix_root, requested_rates
from parflex.robot.robot import Robot
from parflex.robot.states import as_numbers, refuse_infinite, tolerance_factor, wrong_length

Array = np.ndarray
SINGULAR = 1e7  # condition number above which a model is refused: seven of sixteen digits are lost
NEAR_SINGULAR = 1e4  # condition number above which a warning is given
SAME = 1e-6  # characteristic lengths within which ball joints coincide and lines pass through them
MISSED = 1e-7  # relative error of rates in the loops: ten times that of the positions on which rates depend


@dataclass(frozen=True, eq=False, repr=False)
class Configuration(Answer):
    """A `robot` with all positions `q` (m, rad); `partition` selects independent rates, if chosen.

    With `ignore_limits`, `diagnostics` leave out the limits of joints.
    """

    robot: Robot
    q: Array  # its own copy, read only: all else follows from it
    partition: Partition | None = field(default=None, compare=False, repr=False)
    ignore_limits: bool = False

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """Diagnostics of the robot, and of joint limits and singularities of this pose."""
        robot = self.robot
        limits = [] if self.ignore_limits else limit_warnings(robot, self.q)
        diagnostics = [*robot.diagnostics, *robot.start_warnings(), *limits, *self.condition.diagnostics]
        return tuple(dict.fromkeys(diagnostics))

    def __post_init__(self) -> None:
        q = np.array(self.q)
        q.setflags(write=False)
        object.__setattr__(self, "q", q)

    @cached_property
    def at(self) -> LinkPoses:
        """Frames of all links."""
        return pose(self.robot.tree, self.q)

    @cached_property
    def link_jacobians(self) -> Sequence[tuple[Array, Array]]:
        """J_v and J_w of all links."""
        return jacobians(self.robot.tree, self.at)

    @cached_property
    def closure_error(self) -> float:
        """Largest opening of a loop, in metres."""
        residual = self.robot.closures.residual(self.at)
        return float(np.abs(residual).max()) if len(residual) else 0.0

    @cached_property
    def closure_jacobian(self) -> Array:
        """J_tot, the Jacobian of all closures."""
        return self.robot.closures.jacobian(self.at, self.link_jacobians)

    @cached_property
    def scaled_closure_jacobian(self) -> Array:
        """J_tot without units."""
        return mobility.scale(self.robot.closures, self.closure_jacobian)

    @cached_property
    def reduction(self) -> Reduction:
        """J of qd_tot = J qd for a well-conditioned choice of independent rates."""
        robot = self.robot
        partition = self.partition or choose_partition(
            self.scaled_closure_jacobian, robot.free, robot.mobility.rank, robot.preference, robot.regular_closure_norm
        )
        return reduction(self.closure_jacobian, partition)

    @cached_property
    def J(self) -> Array:
        """All rates per independent rate."""
        return self.reduction.matrix

    @property
    def J_a(self) -> Array:
        """Actuated rates per independent rate."""
        return self.J[list(self.robot.actuated)]

    @property
    def independent_names(self) -> list[str]:
        """Names of the independent rates."""
        return [self.robot.tree.rate_names[k] for k in self.reduction.partition.independent]

    # -- motions ---------------------------------------------------------------------------------------

    def acceleration_bias(self, qd_tot: Array) -> Array:
        """Return the accelerations b (m/s^2, rad/s^2) of all coordinates due to rates `qd_tot` (m/s, rad/s) alone."""
        zero_accelerations = np.zeros(len(self.reduction.partition.independent))
        return self.reduction.accelerations(self.robot.closures, self.at, qd_tot, zero_accelerations)

    def frame_rows(self, frame: str) -> Array:
        """Return the world twist (m/s, rad/s) of `frame` per unit of all rates, 6 x n."""
        place = self.robot.tree.place(frame)
        R, _ = self.at.of(place)
        J_v, J_w = place_jacobian(self.robot.tree, self.at, self.link_jacobians, place)
        return np.concatenate([R @ J_v, R @ J_w])

    def frame_acceleration(self, frame: str, moving: Motion) -> Array:
        """Return the world acceleration (m/s^2, rad/s^2) of `frame` in the motion `moving` of all links."""
        place = self.robot.tree.place(frame)
        R, _ = self.at.of(place)
        _, _, a, al = moving.of(place)
        return np.concatenate([R @ a, R @ al])

    def rates(self, given: Mapping[str, float] | None) -> Array:
        """Return all rates from `given` rates of joints or frames (m/s, rad/s); the others are as small as possible."""
        if not given:
            return np.zeros(self.robot.tree.n)
        requested = requested_rates(self, given)
        requested.refuse_contradicted()
        return requested.solve(requested.resting)

    def accelerations(
        self, given: Mapping[str, float] | None, qd_tot: Array, like: Mapping[str, float] | None
    ) -> Array:
        """Return all accelerations (m/s^2, rad/s^2) from `given` ones at rates `qd_tot`, else nearest to `like`."""
        bias = Bias(qd_tot, self.acceleration_bias(qd_tot))
        requested = requested_rates(self, given or {}, bias)
        requested.refuse_contradicted()
        if given:
            return requested.solve(requested.resting) + bias.b
        at_rest = requested_rates(self, dict.fromkeys(like or {}, 0.0), bias)
        return requested.solve([at_rest.block, *at_rest.resting]) + bias.b

    def rates_near(self, given: Mapping[str, float], qd: Array) -> Array:
        """Return all rates from `given` ones (m/s, rad/s); the others are nearest to those of `qd`."""
        units = self.robot.tree.rate_units
        return requested_rates(self, given).solve([PriorityBlock(np.eye(len(qd)) / units, qd / units)])

    @cached_property
    def resting(self) -> list[Array]:
        """Rows to minimise: 1/2 ed^T M_ee ed of flexible bodies, then deformations without mass and of springs."""
        robot, units = self.robot, self.robot.tree.rate_units
        n, elastic = robot.tree.n, [k for k in robot.tree.elastic if k not in robot.locked]
        blocks = []
        if elastic:
            M_ee = tree_mass_matrix(robot.tree, self.at)[np.ix_(elastic, elastic)]
            blocks.append(matrix_root(M_ee) @ np.eye(n)[elastic])
        return [*blocks, (np.eye(n) / units)[list(robot.deformations)]]

    # -- singularities ---------------------------------------------------------------------------------

    @cached_property
    def condition(self) -> Condition:
        """Condition numbers of the pose by kind of singularity, with rigid bodies."""
        robot = self.robot
        if not set(robot.deformations) <= robot.locked:
            return Configuration(robot.undeformed, self.q).condition
        ranks: dict[str, int] = {}
        for q in robot.reference_poses:  # home alone may be singular
            for name, block in self._leg_blocks(q).items():
                ranks[name] = max(ranks.get(name, 0), mobility.rank(block))
        legs = {name: mobility.condition(block, ranks[name]) for name, block in self._leg_blocks(self.q).items()}
        J, rank, _, _ = self._judged
        closures = mobility.condition(J, rank, robot.regular_closure_norm) if rank else 1.0
        A, platform = self._actuation_map(), self._actuation_condition()
        without_platform = not robot.assembler.free_bodies
        enough_motors, undriven_message = A.shape[0] >= A.shape[1], ""
        if without_platform and enough_motors and platform > SINGULAR:
            motion_names, pose_words = self._name_motion(self._undriven_motions), "singular pose: "
            undriven_message = (
                f"{pose_words * bool(robot.closures.loops)}with the motors locked, {motion_names} can still move"
            )
        return Condition(legs, platform, closures, enough_motors, without_platform, undriven_message)

    @property
    def leg_parts(self) -> dict[str, ClosurePart]:
        """Closures of each leg: with the platform fixed, or without a platform the sides of loops."""
        robot = self.robot
        free_bodies = robot.assembler.free_bodies
        if free_bodies:
            parts = robot.assembler.parts(Target(fixed=free_bodies), robot.locked)
        else:
            parts = robot.assembler.sides(robot.locked)
        return {part.name: part for part in parts if len(part.columns)}

    def _leg_blocks(self, q: Array) -> dict[str, Array]:
        """Return the end twists of each leg per unit of its joint rates, without units."""
        robot, units = self.robot, self.robot.tree.rate_units
        return {
            name: robot.gearing.project_out_rotors(robot.assembler.block(q, part), part.columns, units)
            for name, part in self.leg_parts.items()
        }

    @cached_property
    def null_space(self) -> Array:
        """Orthonormal basis, in scaled free rates, of the motions that the closures allow."""
        if not self.robot.gearing.any:
            return self._judged[2]
        return mobility.null_space(self.scaled_closure_jacobian[:, self.robot.free], self.robot.mobility.rank)

    @cached_property
    def motions(self) -> Array:
        """All rates per allowed motion, independent of the choice of independent rates."""
        robot = self.robot
        _ = self.reduction  # refuses a singular pose, where the closures allow more than that
        basis = np.zeros((robot.tree.n, self.null_space.shape[1]))
        basis[robot.free] = robot.tree.rate_units[robot.free][:, None] * self.null_space
        return basis

    @cached_property
    def _judged(self) -> tuple[Array, int, Array, Array]:
        """Closures, their rank and motions for singularities, independent of gears."""
        robot = self.robot
        J = self.scaled_closure_jacobian[:, robot.free]
        return robot.gearing.judged(J, robot.free, robot.mobility.rank, robot.tree.rate_units)

    def _actuation_map(self) -> Array:
        """Return scaled actuated rates, of rotors behind their gears, per allowed motion."""
        position, motions = {int(k): i for i, k in enumerate(self.robot.free)}, self._judged[3]
        rows = [motions[position[k]] for k in self.robot.actuated if k in position]
        return np.array(rows).reshape(len(rows), motions.shape[1])

    @property
    def _undriven_motions(self) -> Array:
        """Allowed motions with motors locked, at least the motion with the smallest motor rates."""
        A = self._actuation_map()
        if not A.size:
            return self._judged[2]
        _, values, Vt = np.linalg.svd(A, full_matrices=True)
        rank = int(np.sum(values > mobility.largest(values, self.robot.regular_actuation_norm) / SINGULAR))
        return self._judged[2] @ Vt[min(rank, A.shape[1] - 1) :].T

    def _actuation_condition(self) -> float:
        A = self._actuation_map()
        freedoms = A.shape[1]
        if not freedoms:
            return 1.0
        enough = A.shape[0] >= freedoms
        return mobility.condition(A, freedoms, self.robot.regular_actuation_norm) if enough else float("inf")

    def refuse_singular_legs(self) -> None:
        """Raise if the motion of the platform does not determine the rates of a leg."""
        for name, value in self.condition.legs.items():
            if value > SINGULAR:
                text = f"'{name}' is at a singularity of the leg: it does not admit every motion of the platform"
                raise _singular(text, value, name)

    @property
    def is_underactuated_here(self) -> bool:
        """Whether motors are fewer than degrees of freedom, and each moves the robot here, without spinning rods."""
        A = self._actuation_map()
        if not 0 < A.shape[0] < A.shape[1] or mobility.rank(A) < A.shape[0]:
            return False
        rods, _ = self._remove_rod_spins(self._judged[2] @ _beside(A))
        return not rods

    def free_rates(self, given: Array) -> list[int]:
        """Return rates that describe motions with zero `given` rows of all rates, independent rates if possible."""
        robot = self.robot
        units = robot.tree.rate_units[robot.free]
        basis = self.null_space @ _beside(given[:, robot.free] * units @ self.null_space)
        independent = set(self.reduction.partition.independent.tolist())
        weights = np.array([10.0 if int(k) in independent else 1.0 for k in robot.free])
        order = scipy.linalg.qr((basis * weights[:, None]).T, mode="economic", pivoting=True)[2][: basis.shape[1]]
        return sorted(int(robot.free[i]) for i in order)

    def refuse_undefined_actuation(self) -> None:
        """Raise if the motors leave a motion free, here (singular) or anywhere (too few motors)."""
        A = self._actuation_map()
        freedoms = A.shape[1]
        if not freedoms or self._actuation_condition() <= SINGULAR:
            return
        undriven = self._undriven_motions
        rods, undriven = self._remove_rod_spins(undriven)
        freedoms -= len(rods)
        if not undriven.shape[1]:
            names, single = ", ".join(f"'{name}'" for name in rods), len(rods) == 1
            text = (
                f"{names} {'spins' if single else 'spin'} freely about {'its' if single else 'their'} own axis between "
                "two spherical joints: the motors do not determine that motion, which affects neither them nor the end "
                "effector"
            )
            hint = "replace one spherical joint of each rod by a universal joint"
            raise ActuationError(text, key="joint", value=rods[0], hint=hint)
        motion_names = self._name_motion(undriven)
        regular = (Configuration(self.robot, q) for q in self.robot.reference_poses)  # home alone may be singular
        maps = ((c._actuation_map(), c._remove_rod_spins(c._undriven_motions)[0]) for c in regular)
        if A.shape[0] < freedoms or all(mobility.rank(A) < A.shape[1] - len(rods) for A, rods in maps):
            name, motors = self.robot.actuation, count_of(A.shape[0], "motor")
            text = f"actuation '{name}' has {motors} for {degrees_of_freedom(freedoms)}"
            text += f"; the motion of {motion_names} is free"
            raise ActuationError(text, key="actuation", value=name, hint=self._actuation_hint())
        where = " of the platform" if self.robot.assembler.free_bodies else ""
        text = f"singular pose{where}: with the motors locked, {motion_names} can still move"
        raise _singular(text, self._actuation_condition(), motion_names)

    def _actuation_hint(self) -> str:
        """Return advice for more degrees of freedom than motors; deforming bodies and springs add some."""
        if self.robot.tree.elastic:
            return "bodies deform, which adds degrees of freedom: load the robot with rigid=True, or simulate"
        tree, usual = self.robot.tree, "mark another joint as actuated, or choose another actuation"
        springs = [spring.name for spring in tree.springs] + [link.name for link in tree.links if link.terms.stiffness]
        elastic, adds = ", ".join(f"'{name}'" for name in springs[:3]), "can deform, which adds degrees of freedom"
        return f"{usual}; {elastic} {adds}: remove the stiffness for a rigid drive, or simulate" if springs else usual

    def _remove_rod_spins(self, undriven: Array) -> tuple[list[str], Array]:
        """Return rods that spin between ball joints, and the other motions (scaled free rates)."""
        robot = self.robot
        units = robot.tree.rate_units[robot.free]
        rates = np.zeros((robot.tree.n, undriven.shape[1]))
        rates[robot.free] = units[:, None] * undriven
        end = self.frame_rows(robot.tree.end_effector) * np.r_[np.ones(3) / robot.tree.length, np.ones(3)][:, None]
        rods, remaining = spinning_rods(robot.closures, self.at, self.link_jacobians, rates, end)
        return rods, remaining[robot.free] / units[:, None]

    def _name_motion(self, directions: Array) -> str:
        """Return the rates with the largest share, those of free bodies first, for any basis of the motions."""
        tree, size = self.robot.tree, np.linalg.norm(directions, axis=1)
        bodies = [tree.links[tree.link_of_rate[k]].joint.moves_freely for k in self.robot.free]
        order = sorted(range(len(size)), key=lambda k: (not bodies[k], -size[k]))
        names = [tree.rate_names[self.robot.free[k]] for k in order if size[k] > 0.2 * size.max()]
        return ", ".join(f"'{name}'" for name in names[:4])

    def platform_freedom(self, frame: str | None = None) -> tuple[Array, list[str]]:
        """Return S with V = S V_r, V the twist of `frame` (None: end effector), [Khalil2007, eq. (9)]."""
        frame = frame or self.robot.tree.end_effector
        twist = self.frame_rows(frame)[:, self.robot.free] * self.robot.tree.rate_units[self.robot.free]
        motions = twist @ self.null_space
        motions[3:] *= self.robot.tree.length
        freedoms = mobility.rank(motions)
        _, _, order = scipy.linalg.qr(motions.T, mode="economic", pivoting=True)
        chosen = np.sort(order[:freedoms])
        basis = np.linalg.lstsq(motions[chosen].T, motions.T, rcond=None)[0].T
        scale = np.r_[np.ones(3), np.full(3, self.robot.tree.length)]
        S = basis * scale[chosen][None, :] / scale[:, None]
        return S, [("vx", "vy", "vz", "wx", "wy", "wz")[k] for k in chosen]

    def _told(self) -> str:
        robot = self.robot
        _, position = self.at.of(robot.tree.place(robot.tree.end_effector))
        parts = [f"'{robot.tree.end_effector}' at {brief(np.round(position, 9) + 0.0)} m", f"{len(self.q)} coordinates"]
        parts += [f"loops closed to {self.closure_error:.1e} m"] * bool(robot.closures.size)
        return f"{brief(robot.name)}: {', '.join(parts)}"


# a pose as people give it: a name of the file, coordinates by name or in their order, or a configuration
Pose = str | Mapping[str, float] | Sequence[float] | Array | Configuration


def configure(robot: Robot, pose: Pose | None = None, *, ignore_limits: bool = False) -> Configuration:
    """Compute all positions of a robot at a pose.

    A configuration of another robot with the same coordinates, such as the result of `equilibrium`, is accepted by
    its positions.

    Parameters
    ----------
    robot, pose, ignore_limits
        See `parflex.api.WORDS`.

    Returns
    -------
    Configuration
        Positions `q` (m, rad), Jacobians, condition numbers; accepted wherever a pose is.
    """
    if isinstance(pose, Configuration):
        if pose.robot is robot:
            return replace(pose, ignore_limits=ignore_limits) if pose.ignore_limits != ignore_limits else pose
        if pose.robot.tree.position_names != robot.tree.position_names:
            text = f"this configuration of '{pose.robot.name}' has other coordinates than '{robot.name}'"
            hint = "give one of the same robot with the same elements, or a pose"
            raise InputError(text, key="pose", value=pose.robot.name, hint=hint)
        return Configuration(robot, pose.q, ignore_limits=ignore_limits)
    return Configuration(robot, robot.assemble(pose), ignore_limits=ignore_limits)


def _singular(text: str, condition_number: float, value: str) -> SingularError:
    message = f"{text} (condition number {condition_number:.1e})"
    return SingularError(message, key="pose", value=value, hint="choose another pose")


def _beside(A: Array) -> Array:
    """Return a basis of the null space of A; all motions for an empty A."""
    return scipy.linalg.null_space(A, rcond=mobility.RANK_TOLERANCE) if len(A) else np.eye(A.shape[1])


@dataclass(frozen=True, eq=False, repr=False)
class Condition(Answer):
    """Condition numbers: of each leg, of the platform with motors locked, of the closures."""

    legs: dict[str, float]
    platform: float  # infinity with fewer motors than degrees of freedom, at any pose
    closures: float
    enough_motors: bool = True
    sides: bool = False  # legs are sides of loops without a platform
    loose: str = ""  # a sentence on motions with locked motors, without a platform

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers for JSON, with None for infinity."""
        finite = {name: value if np.isfinite(value) else None for name, value in self.legs.items()}
        numbers = (value if np.isfinite(value) else None for value in (self.platform, self.closures))
        return dict(zip(("legs", "platform", "closures"), (finite, *numbers), strict=True))

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """A diagnostic for each large number."""
        large = {name: value for name, value in self.legs.items() if value > NEAR_SINGULAR}
        body = "robot" if self.sides else "platform"
        locked = self.platform if self.enough_motors and not self.loose else 1.0
        named = {f"the {body} with locked motors": locked, "the set of closures": self.closures}
        harmless = self.sides and all(value <= NEAR_SINGULAR for value in named.values())
        if not harmless:
            named = {f"leg '{name}'": value for name, value in large.items()} | named
        does = "is stretched or folded: its end cannot move in every direction here, although the motors constrain"
        dead = [
            Diagnostic("stretched-leg", f"'{name}' {does} the robot", name, value)
            for name, value in large.items()
            if harmless and self.enough_motors
        ]
        loose = [Diagnostic("undriven-motion", self.loose)] if self.loose else []
        return dead + loose + [_near(name, value) for name, value in named.items() if value > NEAR_SINGULAR]


def _near(name: str, value: float) -> Diagnostic:
    if value > SINGULAR:
        return Diagnostic("singular", f"{name} is at a singularity", name, value)
    return Diagnostic("near-singular", f"{name} is near a singularity (condition number {value:.1e})", name, value)


def spinning_rods(
    closures: Closures, at: LinkPoses, links: Sequence[tuple[Array, Array]], motions: Array, end: Array
) -> tuple[list[str], Array]:
    """Return the names of the rods that spin in these motions, and a basis of the other motions.

    `motions` are columns of all rates with motors locked, `end` the rows of the end effector. A rod (all bodies of
    an SPS leg count as one) spins if all bodies that move with a fixed end effector only rotate about one line
    each, through two ball joints.
    """
    internal_motions = _kernel(end @ motions)
    spins = motions @ internal_motions
    length = closures.tree.length
    balls = [at.position[j] for j, link in enumerate(closures.tree.links) if link.joint.kind == "spherical"]
    ties = [loop for loop in closures.loops if loop.kind == "spherical" and len(loop.translations) == 3]
    balls = [np.asarray(p, dtype=float) for p in [*balls, *(at.of(loop.first)[1] for loop in ties)]]

    def passes_two_balls(line: tuple[Array, Array] | None) -> bool:
        """Return whether a line passes through two different ball joints."""
        on_line = [p for p in balls if line and np.linalg.norm(np.cross(p - line[0], line[1])) < SAME * length]
        return any(np.linalg.norm(a - b) > SAME * length for a, b in combinations(on_line, 2))

    rotation_lines = _turning(at, links, spins, length)
    if not rotation_lines or not all(map(passes_two_balls, rotation_lines.values())):
        return [], motions
    names = {j: closures.tree.links[j].name for j in rotation_lines}
    first = [name for j, name in names.items() if not set(closures.tree.path(j)[1:]) & set(rotation_lines)]
    return first, motions @ _kernel(internal_motions.T)


def _kernel(J: Array) -> Array:
    _, values, Vt = np.linalg.svd(J, full_matrices=True)
    return Vt[int(np.sum(values > mobility.RANK_TOLERANCE)) :].T


def _turning(
    at: LinkPoses, links: Sequence[tuple[Array, Array]], motions: Array, length: float
) -> dict[int, tuple[Array, Array] | None]:
    """Return point and direction of the rotation axis of each moving link; None if a link also translates."""
    lines: dict[int, tuple[Array, Array] | None] = {}
    for j, (J_v, J_w) in enumerate(links):
        twist = np.concatenate([at.rotation[j] @ J_v / length, at.rotation[j] @ J_w]) @ motions
        if not twist.size or np.linalg.norm(twist) < SAME:
            continue
        U, values, _ = np.linalg.svd(twist)
        v, w = U[:3, 0] * length, U[3:, 0]
        square, lines[j] = float(w @ w), None
        if square > SAME and values[1:].sum() < SAME * values[0] and abs(v @ w) < SAME * length * square:
            lines[j] = (at.position[j] + np.cross(w, v) / square, w / np.sqrt(square))
    return lines


configure.doubts = lambda found: limit_warnings(found.robot, found.q)  # type: ignore[attr-defined]


def all_rates(configuration: Configuration, rates: Any, factor: float | None = None) -> Array:
    """Return all rates: zero by default; specified rates must fit the loops or be the independent ones."""
    robot = configuration.robot
    if rates is None:
        return np.zeros(robot.nv)
    factor, units = tolerance_factor(rates) if factor is None else factor, robot.tree.rate_units
    qd, independent = _read_rates(robot, rates, "qd")
    if independent:
        return _following(configuration, qd, np.zeros(robot.nv), "rates")
    limit = MISSED * factor * (1 + float(np.linalg.norm(qd / units)))
    _refuse_misfits(robot, qd, configuration.closure_jacobian @ qd, "qd", "rates", limit)
    return qd


def all_accelerations(configuration: Configuration, qd: Array, accelerations: Any, factor: float = 1.0) -> Array:
    """Return all accelerations at rates `qd`; by default the independent accelerations are zero."""
    robot, units = configuration.robot, configuration.robot.tree.rate_units
    given = np.zeros(len(robot.independent_rates)) if accelerations is None else accelerations
    qdd, independent = _read_rates(robot, given, "qdd")
    if independent:
        return _following(configuration, qdd, configuration.acceleration_bias(qd), "accelerations")
    size = float(np.linalg.norm(qdd / units) + np.linalg.norm(qd / units) ** 2)
    rows = robot.closures.bias(configuration.at, motion(robot.tree, configuration.at, qd, qdd))
    _refuse_misfits(robot, qdd, rows, "qdd", "accelerations", factor * MISSED * (1 + size))
    return qdd


def _read_rates(robot: Robot, values: Any, key: str) -> tuple[Array, bool]:
    """Return finite rates or accelerations, and whether they are the independent ones alone."""
    array, few = as_numbers(values, key), (len(robot.independent_rates),)
    if array.shape not in ((robot.nv,), few):
        raise wrong_length(robot, array, key, robot.nv, "robot.rates")
    refuse_infinite(array, key)
    return array, array.shape != (robot.nv,)


def _following(configuration: Configuration, independent: Array, bias: Array, what: str) -> Array:
    """Return all rates, or accelerations with their bias, from the independent ones of home."""
    chosen, motions = list(configuration.robot.independent_rates), configuration.motions
    refuse_dependent(configuration, what)
    return bias + motions @ np.linalg.solve(motions[chosen], independent - bias[chosen])


def refuse_dependent(configuration: Configuration, what: str) -> None:
    """Raise if the rates that are independent at home do not determine the others at a pose."""
    robot, chosen = configuration.robot, list(configuration.robot.independent_rates)
    # these motions have the size 1
    worst = condition((configuration.motions / robot.tree.rate_units[:, None])[chosen], usual=lambda: 1.0)
    if worst > SINGULAR:
        text = f"the independent {what} do not determine the others at this pose (condition number {worst:.1e})"
        hint = f"give all {what}, in the order of robot.rates, or move away from this pose"
        raise SingularError(text, key="pose", hint=hint)


def _refuse_misfits(robot: Robot, values: Array, rows: Array, key: str, what: str, limit: float) -> None:
    """Raise if values move a locked joint or open `rows` of closures by `limit` characteristic lengths."""
    for k in sorted(robot.locked):
        if abs(values[k]) > limit * robot.tree.rate_units[k]:
            name = robot.tree.rate_names[k]
            text = f"'{name}' is locked and cannot move, but '{key}' has {values[k]:.4g} for it"
            raise InputError(text, key=key, value=name, hint="give zero")
    scaled = robot.closures.row_units() * rows
    if not len(scaled) or float(np.linalg.norm(scaled)) <= limit * robot.tree.length:
        return
    openings = [float(np.linalg.norm(scaled[span])) for span in robot.closures.slices()]
    widest = int(np.argmax(openings))
    per, row = ("/s" if key == "qd" else "/s2"), robot.closures.rows[widest]
    few = f"the {len(robot.independent_rates)} of robot.independent alone"
    text = f"the {what} do not keep the loop '{row.name}' closed: it opens by {openings[widest]:.3g} m{per}"
    hint = f"give consistent {what}, or {few}"
    if isinstance(row, Coupling):
        off = abs(float(rows[robot.closures.slices()[widest]][0]))
        text = f"the {what} contradict the coupling '{row.name}': '{row.joints[0]}' is off by {off:.3g} {row.unit}{per}"
        hint = f"it requires {row.relation}; give consistent {what}, or {few}"
    raise InputError(text, key=key, value=row.name, hint=hint)
