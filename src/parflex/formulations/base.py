"""Define the interface of a formulation and the closures of programs.

A formulation is a robot with a choice of unknowns. It names the groups of numbers that its models take, makes a state
of them, and evaluates its models at a state over any scalar. `choice` alone decides which formulation a model takes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from parflex.closure import mobility
from parflex.closure.constraints import Closures, Loop
from parflex.closure.leg_geometry import Angle
from parflex.closure.partition import Partition, choose_partition
from parflex.closure.targets import Target
from parflex.errors import InputError, SingularError, did_you_mean
from parflex.forces.effort_allocation import EffortAllocation
from parflex.recursion.kinematics import jacobians, pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.linear import scalar_type, solve

Array = np.ndarray
Groups = dict[str, tuple[int, ...]]  # names of groups of numbers, in order, and their shapes
Given = Mapping[str, Array]  # numbers or symbols of groups
Answer = dict[str, Array]
System = tuple[Array, Array, Array]  # a matrix, and factors of its rows and of its columns

STEPS_FROM_GUESS = 2  # Newton steps from the guesses of an integrator, off by 1e-5 at most: each squares the error
FAR = 3  # Newton steps from the pose of the last sample, or from any guess nearby

MODELS = (
    *("inverse", "direct", "mass-matrix", "kinematics", "jacobian-of-inverse", "geometry", "geometry-direct", "step"),
    *("pd-law", "task-law", "state-rates", "state-rates-driven", "state-rates-following", "energy"),
    *("redundant", "extended-law", "classical-law", "extended-step", "classical-step"),
    *("geometry-redundant", "geometry-motors"),
)

COORDINATES = ("platform", "motors", "independent", "all")  # in which a motion may be asked for
COORDINATE_MODELS = ("inverse", "direct", "mass-matrix", "kinematics", "jacobian-of-inverse")  # that have the choice
NORM_FLOOR = 1e-30  # m2, far below rounding: derivatives of a norm stay finite at zero; single precision holds it
CHANGE = 1e-9  # lengths and directions that differ by less between two random poses are the same, but for rounding


def refuse_unknown_coordinates(word: str) -> None:
    """Raise if the coordinates are unknown."""
    if word not in COORDINATES:
        text, hint = f"there are no coordinates '{word}'", did_you_mean(str(word), COORDINATES)
        raise InputError(text, key="coordinates", value=str(word), hint=hint)


@dataclass(frozen=True)
class ModelRequest:
    """A requested model by its name, with everything on which its formulation may depend."""

    model: str
    wrenches: tuple[str, ...] = ()  # frames on which a wrench acts
    independent: tuple[str, ...] = ()  # rates that must be so; none: the form chooses
    rows: tuple[int, ...] = ()  # of the closures, that give the other rates; none: chosen at home
    symbolic: bool = False  # numbers of bodies are symbols
    family: bool = False  # lengths are symbols too: one program for robots that differ in numbers alone
    angle: Angle | None = field(default=None, repr=False)  # from cosine and sine, for symbols; None: of floats
    at: Configuration | None = field(default=None, repr=False)  # numbers at this pose alone, not at every pose
    coordinates: str | None = None  # in which motions are given; None: in those of the form
    allocation: EffortAllocation | None = field(default=None, repr=False)  # in symbols; None: least norm

    @property
    def positions_are_inputs(self) -> bool:
        """Whether all positions are inputs, with closed loops."""
        return self.coordinates in ("all", "independent")


@dataclass(frozen=True)
class JointTangent:
    """Derivatives of the force of a joint by its coordinate and its rate."""

    stiffness: Any
    damping: Any


@dataclass(frozen=True)
class Formulation(ABC):
    """A form of the models of a robot; `refused` lists the forms tried before, with reasons.

    `inverse` and `direct` use the groups that the form names; `accelerations_under` and `efforts_for`, at a state
    of all positions, use its independent rates.
    """

    name: ClassVar[str]
    equations: ClassVar[tuple[int, ...]]  # numbers of those in docs/theory.md
    coordinates: ClassVar[Mapping[str, Any]] = {}  # classes of `formulations.coordinates` by their words
    robot: Robot
    question: ModelRequest = field(kw_only=True)
    refused: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    @property
    @abstractmethod
    def because(self) -> list[str]:
        """Sentences on the form for this robot, and why it is chosen."""

    @property
    def dependence(self) -> str | None:
        """How the dependent rates follow, if not by a block of the closures."""
        return None

    @property
    @abstractmethod
    def independent(self) -> Array:
        """Numbers of the independent rates."""

    @property
    def independent_names(self) -> list[str]:
        """Names of the independent rates."""
        return [self.robot.tree.rate_names[k] for k in self.independent]

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of the form in addition to those of the robot."""
        return {}

    def ways(self) -> Sequence[Formulation]:
        """Return equivalent forms, this one first, which differ in the number of operators only."""
        return [self]

    @property
    def state_groups(self) -> Groups:
        """Groups of a state: all positions, with closed loops, and the independent rates."""
        return {"q": (self.robot.tree.nq,), "qd": (len(self.independent),)}

    @property
    def motion_groups(self) -> Groups:
        """Accelerations that the inverse model takes: all independent ones, or those of the motors."""
        if self.robot.driven_by_motors:
            return {"motor_acceleration": (len(self.robot.actuated),)}
        return {"qdd": (len(self.independent),)}

    @property
    @abstractmethod
    def labels(self) -> dict[str, list[str]]:
        """Names of the entries of groups."""

    def state(self, inputs: Given) -> Any:
        """Return the state of the groups `state_groups`."""
        return self.moving(inputs["q"], inputs["qd"])

    @abstractmethod
    def inverse(self, state: Any, motion: Given) -> Answer:
        """Return efforts for accelerations, and the resulting accelerations."""

    def direct(self, state: Any, tau: Array) -> Answer:
        """Return accelerations under efforts."""
        return {"qdd": self.accelerations_under(state, tau)}

    def motion_inputs(self, state: Any, qdd: Array) -> Given:
        """Return the groups of `inverse` from accelerations of all coordinates; only required ones are read."""
        if "motor_acceleration" in self.motion_groups:
            return {"motor_acceleration": qdd[list(self.robot.actuated)]}
        return {"qdd": qdd[self.independent]}

    def all_accelerations(self, state: Any, independent: Array) -> Array:
        """Return accelerations of all coordinates from the independent ones, at a state in motion."""
        return state.accelerations(independent)

    def systems(self, state: Any, motors: bool) -> list[System]:
        """Return regular matrices of dependent rates and, if `motors`, of efforts, with factors without units."""
        return []

    def inertia(self, state: Any) -> tuple[Array, Array, bool]:
        """Return the positive definite matrix of accelerations, the units of its rates, and whether it is sparse."""
        raise self._not_provided("the inertia that gives accelerations")

    def closed(self, q: Array) -> Array:
        """Return positions with the dependent ones corrected from a guess; a state closes remaining gaps."""
        return q

    def moving(self, q: Array, rates: Array, wrenches: Given | None = None) -> Any:
        """Return the state at all positions and independent rates under wrenches, with all rates as `qd`."""
        raise self._not_provided("a model of a state")

    def accelerations_under(self, state: Any, tau: Array) -> Array:
        """Return independent accelerations under efforts, at a state in motion."""
        try:
            return state.pushed(tau)[0]
        except np.linalg.LinAlgError:
            text = "the direct model is undefined: a joint moves nothing that has inertia"
            hint = "include the motor inertia (motor-inertia), or give an inertia to what the joint moves"
            raise SingularError(text, key="motor_inertia", hint=hint) from None

    def step_matrix(self, q: Array, c1: Any, c2: Any, joints: Mapping[int, JointTangent]) -> Any:
        """Return the sparse matrix of an implicit step, or None; `joints` are slopes of the joint forces."""
        return None

    @property
    def prescribed(self) -> tuple[str, int]:
        """Group of accelerations that `efforts_for` takes, and its size."""
        return "motor_acceleration", len(self.robot.actuated)

    def efforts_for(self, state: Any, accelerations: Array) -> tuple[Array, Array]:
        """Return efforts for prescribed motors or platform, and all independent accelerations."""
        return state.efforts_for(accelerations)

    def mass_matrix(self, state: Any) -> Array:
        """Return the inertia in the independent rates."""
        return state.mass_matrix

    @property
    def geometry_groups(self) -> Groups:
        """Input groups of the geometry."""
        return {"guess": (self.robot.tree.nq,)}

    def geometry(self, inputs: Given) -> tuple[Answer, dict[str, list[str]]]:
        """Return the computed positions and their names."""
        raise self._not_provided("geometry")

    @property
    def previous_pose_groups(self) -> Groups:
        """Groups of the previous pose that a controller stores."""
        groups: Groups = self.coordinates["motors"](self).position_groups
        return {name: shape for name, shape in groups.items() if name != "motor_position"}

    def step(self, sensed: Array, rates: Array, desired: Array, last: Given) -> Answer:
        """Return efforts from sensed and desired motor motion, the pose for the next call, and the Newton residual."""
        motors = self.coordinates["motors"](self)
        inputs = {"motor_position": sensed, "motor_rate": rates, "motor_acceleration": desired, **last}
        state = motors.state(inputs)
        return motors.inverse(state, inputs) | motors.missed(state, inputs)

    def _not_provided(self, what: str) -> InputError:
        message = f"the {self.name} does not provide {what}"
        return InputError(message, key="MODEL", value=self.question.model, hint="use another model")


def vectors(planar: bool, linear: str, angular: str) -> Groups:
    """Return groups of a linear and an angular vector, in the plane their in-plane components."""
    return {linear: (2,), angular: (1,)} if planar else {linear: (3,), angular: (3,)}


def pose_groups(planar: bool) -> Groups:
    """Return groups of the pose of a platform."""
    return {"position": (2,), "rotation": (2, 2)} if planar else {"position": (3,), "rotation": (3, 3)}


def best_rows(closures: Closures, q: Array, dependent: Array) -> Array:
    """Return as many closure rows as dependent rates, the best-conditioned at a pose."""
    J = mobility.scaled_jacobian(closures, q)[:, dependent]
    return np.sort(mobility.pivoted_columns(J.T, len(dependent))[0])


def regular_leg_blocks(robot: Robot) -> list[tuple[Array, Array]]:
    """Return rows and joints of the largest regular block of each leg, or side of a loop."""
    assembler, blocks = robot.assembler, []
    bodies, slices = assembler.free_bodies, zip(robot.closures.rows, robot.closures.slices(), strict=True)
    numbers = {id(loop): np.arange(*span.indices(robot.closures.size)) for loop, span in slices}
    parts = assembler.parts(Target(fixed=bodies), robot.locked) if bodies else assembler.sides(robot.locked)
    for part in parts:
        if len(part.columns):
            rows = np.concatenate([numbers[id(loop)] for loop in part.rows])
            at_poses = (mobility.scaled_jacobian(robot.closures, q) for q in robot.reference_poses)
            best = max((J[np.ix_(rows, part.columns)] for J in at_poses), key=mobility.rank)
            picked = np.sort(mobility.pivoted_columns(best.T, mobility.rank(best))[0])
            columns = np.sort(mobility.pivoted_columns(best[picked], len(picked))[0])
            blocks.append((rows[picked], part.columns[columns]))
    return blocks


def cheapest_closures(robot: Robot) -> Closures:
    """Return the closures, each seen from the end with fewer pose-dependent entries in joint columns."""
    tree, loops = robot.tree, []
    joints = [k for k in range(tree.n) if not tree.links[tree.link_of_rate[k]].joint.moves_freely]
    draws = (np.random.default_rng(seed).uniform(-1, 1, len(robot.home)) for seed in range(2))  # any poses serve
    poses = [pose(tree, robot.home + draw) for draw in draws]

    def entries_that_change(end: Loop) -> int:
        first, second = (end.jacobian(tree, at, jacobians(tree, at))[:, joints] for at in poses)
        return int(np.sum(np.abs(first - second) > CHANGE))

    for loop in robot.closures.loops:
        ends = [replace(end, closed=True) for end in (loop, loop.reversed(tree)) if end is not None]
        loops.append(min(ends, key=entries_that_change))
    return replace(robot.closures, loops=tuple(loops))


def partition_holding(robot: Robot, held_rates: Sequence[int]) -> Partition:
    """Return the partition with `held_rates` fixed; remaining free motions depend on motors and passive joints."""
    free = np.array([k for k in robot.free if k not in set(held_rates)], dtype=int)
    J = mobility.scaled_jacobian(robot.closures, robot.home)
    rank = mobility.rank(J[:, free])
    return choose_partition(J, free, rank, robot.preference if rank < len(free) else np.ones(robot.tree.n))


def newton_closed(robot: Robot, part: Partition, q: Any, steps: int) -> Any:
    """Return positions after Newton steps of the dependent coordinates of a partition, over any scalar."""
    tree = robot.tree
    for _ in range(steps if len(part.dependent) else 0):
        at = pose(tree, q)
        links = jacobians(tree, at, part.dependent)
        block = robot.closures.jacobian(at, links)[np.ix_(part.rows, part.dependent)]
        step: Array = np.zeros(tree.n, dtype=scalar_type(q))
        step[part.dependent] = solve(block, -robot.closures.linear_residual(at)[part.rows])
        q = tree.moved(q, step)
    return q


def residual_norm(gaps: Array) -> Array:
    """Return the norm of lengths in metres as the only entry of an array, over any scalar."""
    return np.array([np.sqrt(gaps @ gaps + NORM_FLOOR)], dtype=scalar_type(gaps))


def closure_system(robot: Robot, rows: Array, columns: Array, block: Array) -> System:
    """Return a block of the closures, with the factors of `mobility.scale`."""
    return block, robot.closures.row_units()[rows], (robot.tree.rate_units / robot.tree.length)[columns]
