"""The interface of a formulation and the closures of programs.

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
    """Raise if there are no such coordinates."""
    if word not in COORDINATES:
        text, hint = f"there are no coordinates '{word}'", did_you_mean(str(word), COORDINATES)
        raise InputError(text, key="coordinates", value=str(word), hint=hint)


@dataclass(frozen=True)
class ModelRequest:
    """What is asked: a model by its name, and what of it a form may depend on."""

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
        """Whether all positions go in, closed: none has to be found."""
        return self.coordinates in ("all", "independent")


@dataclass(frozen=True)
class JointTangent:
    """How the force of a joint grows with its coordinate and with its rate."""

    stiffness: Any
    damping: Any


@dataclass(frozen=True)
class Formulation(ABC):
    """A way of writing the models of a robot; `refused` are the forms that were tried before it, and why they failed.

    `inverse` and `direct` speak of the groups that the form itself names; `accelerations_under` and `efforts_for`, of a
    state of all positions, speak of its independent rates.
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
        """Sentences: what the form does with this robot, and why it is taken."""

    @property
    def dependence(self) -> str | None:
        """How the dependent rates follow, where it is not by a block of the closures."""
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
        """Numbers that say how large the form is, beside those of the robot."""
        return {}

    def ways(self) -> Sequence[Formulation]:
        """Equivalent ways of writing the form, this one first: they differ in the number of operators alone."""
        return [self]

    @property
    def state_groups(self) -> Groups:
        """What a state is given by: all positions, closed, and the independent rates."""
        return {"q": (self.robot.tree.nq,), "qd": (len(self.independent),)}

    @property
    def motion_groups(self) -> Groups:
        """The accelerations that the inverse model takes: all independent ones, or those of the motors."""
        if self.robot.driven_by_motors:
            return {"motor_acceleration": (len(self.robot.actuated),)}
        return {"qdd": (len(self.independent),)}

    @property
    @abstractmethod
    def labels(self) -> dict[str, list[str]]:
        """What the entries of groups are called."""

    def state(self, inputs: Given) -> Any:
        """The state of the groups `state_groups`."""
        return self.moving(inputs["q"], inputs["qd"])

    @abstractmethod
    def inverse(self, state: Any, motion: Given) -> Answer:
        """Efforts for accelerations, and the accelerations that follow from them."""

    def direct(self, state: Any, tau: Array) -> Answer:
        """Accelerations under efforts."""
        return {"qdd": self.accelerations_under(state, tau)}

    def motion_inputs(self, state: Any, qdd: Array) -> Given:
        """The groups that `inverse` takes, from accelerations of all coordinates; only those that it needs are read."""
        if "motor_acceleration" in self.motion_groups:
            return {"motor_acceleration": qdd[list(self.robot.actuated)]}
        return {"qdd": qdd[self.independent]}

    def all_accelerations(self, state: Any, independent: Array) -> Array:
        """Accelerations of all coordinates from the independent ones, of a state in motion."""
        return state.accelerations(independent)

    def systems(self, state: Any, motors: bool) -> list[System]:
        """Regular matrices that give dependent rates and, if `motors`, efforts; factors that take their units away."""
        return []

    def inertia(self, state: Any) -> tuple[Array, Array, bool]:
        """The positive definite matrix that gives accelerations, the units of its rates, and whether it is sparse."""
        raise self._not_provided("the inertia that gives accelerations")

    def closed(self, q: Array) -> Array:
        """Positions of which the dependent ones were a guess; a state closes those that are still open."""
        return q

    def moving(self, q: Array, rates: Array, wrenches: Given | None = None) -> Any:
        """The state of all positions and the independent rates under wrenches on frames, with all rates as `qd`."""
        raise self._not_provided("a model of a state")

    def accelerations_under(self, state: Any, tau: Array) -> Array:
        """Independent accelerations under efforts, of a state in motion."""
        try:
            return state.pushed(tau)[0]
        except np.linalg.LinAlgError:
            text = "the direct model is undefined: a joint moves nothing that has inertia"
            hint = "include the motor inertia (motor-inertia), or give an inertia to what the joint moves"
            raise SingularError(text, key="motor_inertia", hint=hint) from None

    def step_matrix(self, q: Array, c1: Any, c2: Any, joints: Mapping[int, JointTangent]) -> Any:
        """The sparse matrix of an implicit step, where the form has one; `joints` are slopes of the joints' forces."""
        return None

    @property
    def prescribed(self) -> tuple[str, int]:
        """The group of accelerations that `efforts_for` takes, and its size."""
        return "motor_acceleration", len(self.robot.actuated)

    def efforts_for(self, state: Any, accelerations: Array) -> tuple[Array, Array]:
        """Efforts that drive motors (or a platform) as prescribed, and all independent accelerations."""
        return state.efforts_for(accelerations)

    def mass_matrix(self, state: Any) -> Array:
        """Inertia in the independent rates."""
        return state.mass_matrix

    @property
    def geometry_groups(self) -> Groups:
        """What the geometry is given by."""
        return {"guess": (self.robot.tree.nq,)}

    def geometry(self, inputs: Given) -> tuple[Answer, dict[str, list[str]]]:
        """The positions that follow, and what the entries are called."""
        raise self._not_provided("geometry")

    @property
    def previous_pose_groups(self) -> Groups:
        """What a controller remembers of the pose before."""
        groups: Groups = self.coordinates["motors"](self).position_groups
        return {name: shape for name, shape in groups.items() if name != "motor_position"}

    def step(self, sensed: Array, rates: Array, desired: Array, last: Given) -> Answer:
        """Efforts from sensed and desired motor motion, the pose to remember, and the residual of the Newton steps."""
        motors = self.coordinates["motors"](self)
        inputs = {"motor_position": sensed, "motor_rate": rates, "motor_acceleration": desired, **last}
        state = motors.state(inputs)
        return motors.inverse(state, inputs) | motors.missed(state, inputs)

    def _not_provided(self, what: str) -> InputError:
        message = f"the {self.name} does not provide {what}"
        return InputError(message, key="MODEL", value=self.question.model, hint="use another model")


def vectors(planar: bool, linear: str, angular: str) -> Groups:
    """Groups of a vector and an angular one, in the plane of what moves there."""
    return {linear: (2,), angular: (1,)} if planar else {linear: (3,), angular: (3,)}


def pose_groups(planar: bool) -> Groups:
    """Groups of the pose of a platform."""
    return {"position": (2,), "rotation": (2, 2)} if planar else {"position": (3,), "rotation": (3, 3)}


def best_rows(closures: Closures, q: Array, dependent: Array) -> Array:
    """As many rows of the closures as there are dependent rates, those that determine them best at a pose."""
    J = mobility.scaled_jacobian(closures, q)[:, dependent]
    return np.sort(mobility.pivoted_columns(J.T, len(dependent))[0])


def regular_leg_blocks(robot: Robot) -> list[tuple[Array, Array]]:
    """Of each leg, or side of a loop, the rows and joints of the largest block that is regular at a reference pose."""
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
    """The closures, each seen from the end from which fewer entries of the columns of joints change with the pose."""
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
    """The partition in which `held_rates` do not move; if others then still can, motors and passive joints follow."""
    free = np.array([k for k in robot.free if k not in set(held_rates)], dtype=int)
    J = mobility.scaled_jacobian(robot.closures, robot.home)
    rank = mobility.rank(J[:, free])
    return choose_partition(J, free, rank, robot.preference if rank < len(free) else np.ones(robot.tree.n))


def newton_closed(robot: Robot, part: Partition, q: Any, steps: int) -> Any:
    """Positions after Newton steps of the dependent coordinates of a partition, over any scalar."""
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
    """A block of the closures, with the factors of `mobility.scale`."""
    return block, robot.closures.row_units()[rows], (robot.tree.rate_units / robot.tree.length)[columns]
