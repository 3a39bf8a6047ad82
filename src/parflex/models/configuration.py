"""A robot at a pose: Jacobians, the reduction to independent rates, motions, and how near it is to a singularity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy

from parflex.closure import mobility
from parflex.closure.mobility import Reduction, reduction
from parflex.closure.newton import ClosurePart
from parflex.closure.targets import Target
from parflex.errors import ActuationError, InputError, SingularError
from parflex.models.brief_lines import configuration_line
from parflex.models.condition import SINGULAR, Condition
from parflex.models.given_states.asked_motion import AskedMotion
from parflex.models.limits import limit_warnings
from parflex.models.priorities import root_of
from parflex.models.robot import Robot
from parflex.models.spins import spin_error, spinning
from parflex.records import Answer, count_of
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.recursion.kinematics import Motion, jacobians, place_jacobian, pose
from parflex.recursion.kinematics import Pose as LinkPoses

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Configuration(Answer):
    """A `robot` with all its positions `q` (m, rad) known; `partition` are independent rates where these are chosen.

    With `ignore_limits`, `warnings` leave out the limits of joints.
    """

    robot: Robot
    q: Array  # its own copy, read only: all else follows from it
    partition: mobility.Partition | None = field(default=None, compare=False, repr=False)
    ignore_limits: bool = False

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings of the robot, and on joint limits and singularities of this pose."""
        robot = self.robot
        limits = [] if self.ignore_limits else limit_warnings(robot, self.q)
        said = [*robot.warnings, *robot.start_warnings(), *limits, *self.condition.warnings()]
        return tuple(dict.fromkeys(said))

    def __post_init__(self) -> None:
        q = np.array(self.q)
        q.setflags(write=False)
        object.__setattr__(self, "q", q)

    @cached_property
    def at(self) -> LinkPoses:
        """Poses of all links."""
        return pose(self.robot.tree, self.q)

    @cached_property
    def link_jacobians(self) -> Sequence[tuple[Array, Array]]:
        """J_v, J_w of all links."""
        return jacobians(self.robot.tree, self.at)

    @cached_property
    def closure_error(self) -> float:
        """Largest opening of a loop, in metres."""
        residual = self.robot.closures.residual(self.at)
        return float(np.abs(residual).max()) if len(residual) else 0.0

    @cached_property
    def closure_jacobian(self) -> Array:
        """J_tot."""
        return self.robot.closures.jacobian(self.at, self.link_jacobians)

    @cached_property
    def scaled_closure_jacobian(self) -> Array:
        """J_tot without units."""
        return mobility.scale(self.robot.closures, self.closure_jacobian)

    @cached_property
    def reduction(self) -> Reduction:
        """qd_tot = J qd for a well-conditioned choice of independent rates."""
        robot = self.robot
        partition = self.partition or mobility.choose_partition(
            self.scaled_closure_jacobian, robot.free, robot.mobility.rank, robot.preference, robot.usual_closures
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
        """Bias b (m/s^2, rad/s^2): accelerations of all coordinates due to their rates `qd_tot` (m/s, rad/s) alone."""
        still = np.zeros(len(self.reduction.partition.independent))
        return self.reduction.accelerations(self.robot.closures, self.at, qd_tot, still)

    def frame_rows(self, frame: str) -> Array:
        """World twist (m/s, rad/s) of the frame `frame` per unit of all rates, 6 x n."""
        place = self.robot.tree.place(frame)
        R, _ = self.at.of(place)
        J_v, J_w = place_jacobian(self.robot.tree, self.at, self.link_jacobians, place)
        return np.concatenate([R @ J_v, R @ J_w])

    def frame_acceleration(self, frame: str, moving: Motion) -> Array:
        """World acceleration (m/s^2, rad/s^2) of the frame `frame` in the motion `moving` of all links."""
        place = self.robot.tree.place(frame)
        R, _ = self.at.of(place)
        _, _, a, al = moving.of(place)
        return np.concatenate([R @ a, R @ al])

    def rates(self, given: Mapping[str, float] | None) -> Array:
        """All rates from `given` ones of joints or frames (m/s, rad/s); the others rest as far as the loops allow."""
        return AskedMotion(self).rates(given)

    def accelerations(
        self, given: Mapping[str, float] | None, qd_tot: Array, like: Mapping[str, float] | None
    ) -> Array:
        """All accelerations (m/s^2, rad/s^2) from `given` ones, at all rates `qd_tot` (m/s, rad/s).

        Where none is given, what `like` names does not accelerate.
        """
        return AskedMotion(self).accelerations(given, qd_tot, like)

    def rates_near(self, given: Mapping[str, float], qd: Array) -> Array:
        """All rates from `given` ones (m/s, rad/s); the others as near to those of `qd` as the loops allow."""
        return AskedMotion(self).rates_near(given, qd)

    @cached_property
    def resting(self) -> list[Array]:
        """Rows whose deformation is penalised: 1/2 ed^T M_ee ed of flexible bodies, then all of it, springs too.

        The energy of the elastic rates weighs them, so that neither units nor coordinates matter; rates without mass
        are left to the second block.
        """
        robot, units = self.robot, self.robot.tree.rate_units
        n, elastic = robot.tree.n, [k for k in robot.tree.elastic if k not in robot.locked]
        blocks = []
        if elastic:
            M_ee = tree_mass_matrix(robot.tree, self.at)[np.ix_(elastic, elastic)]
            blocks.append(root_of(M_ee) @ np.eye(n)[elastic])
        return [*blocks, (np.eye(n) / units)[list(robot.deformations)]]

    # -- singularities ---------------------------------------------------------------------------------

    @cached_property
    def condition(self) -> Condition:
        """How near the pose is to a singularity, by kind; bodies are taken as rigid for it."""
        robot = self.robot
        if not set(robot.deformations) <= robot.locked:
            return Configuration(robot.locking(robot.deformations), self.q).condition
        ranks: dict[str, int] = {}
        for q in robot.reference_poses:  # home alone may be singular
            for name, block in self._leg_blocks(q).items():
                ranks[name] = max(ranks.get(name, 0), mobility.rank(block))
        legs = {name: mobility.condition(block, ranks[name]) for name, block in self._leg_blocks(self.q).items()}
        J, rank, _, _ = self._judged
        closures = mobility.condition(J, rank, robot.usual_closures) if rank else 1.0
        A, sides, platform = self._actuation_map(), not robot.assembler.free_bodies, self._actuation_condition()
        enough, loose = A.shape[0] >= A.shape[1], ""
        if sides and enough and platform > SINGULAR:
            moving = self._name_motion(self._undriven)
            loose = f"{'singular pose: ' * bool(robot.closures.loops)}with the motors locked, {moving} can still move"
        return Condition(legs, platform, closures, enough, sides, loose)

    @property
    def leg_parts(self) -> dict[str, ClosurePart]:
        """Legs: with a platform, what closes when the platform is fixed; without, the sides of loops."""
        robot = self.robot
        free_bodies = robot.assembler.free_bodies
        if free_bodies:
            parts = robot.assembler.parts(Target(fixed=free_bodies), robot.locked)
        else:
            parts = robot.assembler.sides(robot.locked)
        return {part.name: part for part in parts if len(part.columns)}

    def _leg_blocks(self, q: Array) -> dict[str, Array]:
        """What each leg's own joints do at its end, without units."""
        robot, units = self.robot, self.robot.tree.rate_units
        return {
            name: robot.gearing.beside_rotors(robot.assembler.block(q, part), part.columns, units)
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
        """All rates per motion that the closures allow; no choice of independent rates enters."""
        robot = self.robot
        _ = self.reduction  # refuses a singular pose, where the closures allow more than that
        basis = np.zeros((robot.tree.n, self.null_space.shape[1]))
        basis[robot.free] = robot.tree.rate_units[robot.free][:, None] * self.null_space
        return basis

    @cached_property
    def _judged(self) -> tuple[Array, int, Array, Array]:
        """Closures, their rank and motions by which singularities are judged: gears do not change them."""
        robot = self.robot
        J = self.scaled_closure_jacobian[:, robot.free]
        return robot.gearing.judged(J, robot.free, robot.mobility.rank, robot.tree.rate_units)

    def _actuation_map(self) -> Array:
        """Scaled actuated rates, those of rotors behind their gears, per allowed motion."""
        position, motions = {int(k): i for i, k in enumerate(self.robot.free)}, self._judged[3]
        rows = [motions[position[k]] for k in self.robot.actuated if k in position]
        return np.array(rows).reshape(len(rows), motions.shape[1])

    @property
    def _undriven(self) -> Array:
        """Motions that the closures allow while the motors rest."""
        A = self._actuation_map()
        return self._judged[2] @ _undriven(A, A.shape[1], self.robot.usual_actuation)

    def _actuation_condition(self) -> float:
        A = self._actuation_map()
        freedoms = A.shape[1]
        if not freedoms:
            return 1.0
        return mobility.condition(A, freedoms, self.robot.usual_actuation) if A.shape[0] >= freedoms else float("inf")

    def refuse_singular_legs(self) -> None:
        """Raise if the motion of the platform does not determine the rates of a leg."""
        for name, value in self.condition.legs.items():
            if value > SINGULAR:
                raise SingularError(
                    f"'{name}' is at a singularity of the leg: it does not admit every motion of the platform "
                    f"(condition number {value:.1e})",
                    key="pose",
                    value=name,
                    hint="choose another pose",
                )

    @property
    def lacks_motors(self) -> bool:
        """Whether there are motors, fewer than freedoms, and each moves the robot here; rods that spin need none."""
        A = self._actuation_map()
        if not 0 < A.shape[0] < A.shape[1] or mobility.rank(A) < A.shape[0]:
            return False
        rods, _ = self._without_spins(self._judged[2] @ _beside(A))
        return not rods

    def free_rates(self, given: Array) -> list[int]:
        """Rates that tell apart the motions in which `given` rows of all rates rest; independent ones where they do."""
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
        undriven = self._undriven
        rods, undriven = self._without_spins(undriven)
        freedoms -= len(rods)
        if not undriven.shape[1]:
            raise spin_error(rods)
        moving = self._name_motion(undriven)
        regular = [Configuration(self.robot, q) for q in self.robot.reference_poses]  # home alone may be singular
        if A.shape[0] < freedoms or all(one.robot_is_underactuated() for one in regular):
            raise ActuationError(
                f"actuation '{self.robot.actuation}' has {count_of(A.shape[0], 'motor')} for "
                f"{count_of(freedoms, 'freedom')}; "
                f"the motion of {moving} is free",
                key="actuation",
                value=self.robot.actuation,
                hint=self._actuation_hint(),
            )
        where = " of the platform" if self.robot.assembler.free_bodies else ""
        raise SingularError(
            f"singular pose{where}: with the motors locked, {moving} can still move "
            f"(condition number {self._actuation_condition():.1e})",
            key="pose",
            value=moving,
            hint="choose another pose",
        )

    def _actuation_hint(self) -> str:
        """Return what to do where freedoms are more than motors; bodies and springs that deform add some."""
        if self.robot.tree.elastic:
            return "bodies deform, which adds freedoms: load the robot with rigid=True, or simulate"
        usual = "mark another joint as actuated, or choose another actuation"
        names = [spring.name for spring in self.robot.tree.springs]
        names += [link.name for link in self.robot.tree.links if link.terms.stiffness]
        if not names:
            return usual
        elastic = ", ".join(f"'{name}'" for name in names[:3])
        return (
            f"{usual}; {elastic} can deform, which adds freedoms: remove the stiffness for a rigid drive, or simulate"
        )

    def _without_spins(self, undriven: Array) -> tuple[list[str], Array]:
        """Rods that spin between balls, and the motions (scaled free rates) without those."""
        robot = self.robot
        units = robot.tree.rate_units[robot.free]
        rates = np.zeros((robot.tree.n, undriven.shape[1]))
        rates[robot.free] = units[:, None] * undriven
        end = self.frame_rows(robot.tree.end_effector) * np.r_[np.ones(3) / robot.tree.length, np.ones(3)][:, None]
        rods, rest = spinning(robot.closures, self.at, self.link_jacobians, rates, end)
        return rods, rest[robot.free] / units[:, None]

    def robot_is_underactuated(self) -> bool:
        """Whether the motors cannot hold the robot even at this (regular) pose."""
        A = self._actuation_map()
        rods, _ = self._without_spins(self._undriven)
        return mobility.rank(A) < A.shape[1] - len(rods)

    def _name_motion(self, directions: Array) -> str:
        """The rates that take part most, those of free bodies first; the same for any basis of the motions."""
        tree, size = self.robot.tree, np.linalg.norm(directions, axis=1)
        bodies = [tree.links[tree.link_of_rate[k]].joint.moves_freely for k in self.robot.free]
        order = sorted(range(len(size)), key=lambda k: (not bodies[k], -size[k]))
        names = [tree.rate_names[self.robot.free[k]] for k in order if size[k] > 0.2 * size.max()]
        return ", ".join(f"'{name}'" for name in names[:4])

    def platform_freedom(self, frame: str | None = None) -> tuple[Array, list[str]]:
        """S with V = S V_r: the world twist of a frame from as many of its components as it has freedoms.

        `frame`: None is the end effector. [Khalil2007, eq. (9)]; found by rank, never written by hand.
        """
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
        return configuration_line(self)


# a pose as people give it: a name of the file, coordinates by name or in their order, or a configuration
Pose = str | Mapping[str, float] | Sequence[float] | Array | Configuration


def configure(robot: Robot, pose: Pose | None = None, *, ignore_limits: bool = False) -> Configuration:
    """The robot at a pose, with all its positions known.

    A configuration of another robot with the same coordinates, such as the one that `equilibrium` gives, is taken by
    its positions.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, or a configuration; None is home (m, rad).
    ignore_limits : bool, default False
        Do not check the limits of the robot file.

    Returns
    -------
    Configuration
        Positions `q` (m, rad), Jacobians, condition numbers; accepted wherever a pose is.
    """
    if isinstance(pose, Configuration):
        if pose.robot is robot:
            return replace(pose, ignore_limits=ignore_limits) if pose.ignore_limits != ignore_limits else pose
        if pose.robot.tree.position_names != robot.tree.position_names:
            raise InputError(
                f"this configuration of '{pose.robot.name}' has other coordinates than '{robot.name}'",
                key="pose",
                value=pose.robot.name,
                hint="give one of the same robot with the same elements, or a pose",
            )
        return Configuration(robot, pose.q, ignore_limits=ignore_limits)
    return Configuration(robot, robot.assemble(pose), ignore_limits=ignore_limits)


configure.doubts = lambda found: limit_warnings(found.robot, found.q)  # type: ignore[attr-defined]


def _beside(A: Array) -> Array:
    """A basis of the motions that leave fewer motors than freedoms at rest, where these are independent."""
    return scipy.linalg.null_space(A, rcond=mobility.RANK_TOLERANCE) if len(A) else np.eye(A.shape[1])


def _undriven(A: Array, freedoms: int, usual: mobility.Usual) -> Array:
    """A basis of all motions that leave the motors at rest, one column each; at least the one that moves them least."""
    if not A.size:
        return np.eye(freedoms)
    _, values, Vt = np.linalg.svd(A, full_matrices=True)
    held = int(np.sum(values > mobility.largest(values, usual) / SINGULAR))
    return Vt[min(held, freedoms - 1) :].T
