"""Input and output coordinates of a model: joints, motors or platform.

A formulation has coordinates of its own. The classes of this module surround it: they compute its state from the input
coordinates, and the output coordinates from its results, over any scalar. They contain no equation of motion.

The frame of a motion is the platform, else the end effector. Its twist has as many components as the robot has degrees
of freedom: those that best determine its motion at home.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from parflex.closure.partition import reduction
from parflex.errors import InputError
from parflex.formulations.base import FAR, Answer, Formulation, Given, Groups, newton_closed
from parflex.records import Record
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.recursion.kinematics import Pose, jacobians, motion, place_jacobian, pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.linear import least_squares, scalar_type, solve
from parflex.tree.tree import Place, Tree

Array = np.ndarray

PUSHED = "wrench_"  # before the name of a frame: what acts on it

TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")


@dataclass(frozen=True, eq=False, repr=False)
class RequestedCoordinates(Record, ABC):
    """A form seen through coordinates that were asked for."""

    word: ClassVar[str]
    form: Formulation

    @property
    @abstractmethod
    def position_groups(self) -> Groups:
        """What the positions are given by."""

    @property
    @abstractmethod
    def rate_groups(self) -> Groups:
        """What the rates are given by."""

    @property
    @abstractmethod
    def motion_groups(self) -> Groups:
        """The accelerations that the inverse model takes."""

    @property
    @abstractmethod
    def labels(self) -> dict[str, list[str]]:
        """What the entries of groups are called."""

    @abstractmethod
    def state(self, inputs: Given) -> Any:
        """The state of the form."""

    @abstractmethod
    def motion(self, state: Any, inputs: Given) -> Given:
        """The accelerations that the inverse model of the form takes."""

    @abstractmethod
    def accelerations(self, state: Any, independent: Array) -> Answer:
        """What the direct model gives, from the independent accelerations."""

    @property
    @abstractmethod
    def read(self) -> list[str]:
        """Names of the rates that are read; others that go in do not matter."""

    @abstractmethod
    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """Inertia in the rates of these coordinates, and their names."""

    def found(self, state: Any) -> Answer:
        """Positions that had to be found, which the next call starts from."""
        return {}

    def missed(self, state: Any, inputs: Given) -> Answer:
        """Return the `residual` of the Newton steps that found the positions; nothing where all positions are given."""
        return {}

    def inverse(self, state: Any, inputs: Given) -> Answer:
        """Efforts, and accelerations that follow from them."""
        return self.form.inverse(state, self.motion(state, inputs)) | self.found(state)

    def direct(self, state: Any, tau: Array) -> Answer:
        """Accelerations under efforts."""
        answer = self.form.direct(state, tau)
        independent = answer["qdd"] if "qdd" in answer else self.form.accelerations_under(state, tau)
        return self.accelerations(state, independent) | self.found(state)

    def kinematics(self, state: Any) -> Answer:
        """Pose and twist of the end effector in world axes, and all rates."""
        tree = self.form.robot.tree
        place = tree.places[tree.end_effector]
        R, p = state.at.of(place)
        J_v, J_w = place_jacobian(tree, state.at, jacobians(tree, state.at), place)
        twist = {"velocity": R @ (J_v @ state.qd), "angular_velocity": R @ (J_w @ state.qd)}
        return {"position": p, "rotation": R} | twist | {"rates": state.qd} | self.found(state)


@dataclass(frozen=True, eq=False, repr=False)
class AllCoordinates(RequestedCoordinates):
    """All rates and accelerations; the independent ones are read, the others follow from the loops."""

    word: ClassVar[str] = "all"

    @property
    def position_groups(self) -> Groups:
        """All positions, closed."""
        return {"q": (self.form.robot.tree.nq,)}

    @property
    def rate_groups(self) -> Groups:
        """All rates."""
        return {"qd": (self.form.robot.tree.n,)}

    @property
    def motion_groups(self) -> Groups:
        """All accelerations."""
        return {"qdd": (self.form.robot.tree.n,)}

    @property
    def labels(self) -> dict[str, list[str]]:
        """Names of the tree."""
        return _labels(self, list(self.form.robot.tree.rate_names))

    @property
    def read(self) -> list[str]:
        """The independent rates."""
        return self.form.independent_names

    def state(self, inputs: Given) -> Any:
        """The independent rates are read; wrenches act on frames."""
        wrenches = {name.removeprefix(PUSHED): value for name, value in inputs.items() if name.startswith(PUSHED)}
        return self.form.moving(inputs["q"], inputs["qd"][self.form.independent], wrenches)

    def motion(self, state: Any, inputs: Given) -> Given:
        """The independent accelerations are read; of a flexible robot those of the motors."""
        return self.form.motion_inputs(state, inputs["qdd"])

    def accelerations(self, state: Any, independent: Array) -> Answer:
        """Of all coordinates."""
        return {"qdd": self.form.all_accelerations(state, independent)}

    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """That of the open tree: twice the kinetic energy is qd^T M qd for all rates that keep the loops closed."""
        tree = self.form.robot.tree
        return tree_mass_matrix(tree, state.at), list(tree.rate_names)


@dataclass(frozen=True, eq=False, repr=False)
class IndependentCoordinates(RequestedCoordinates):
    """The independent rates and accelerations; positions of all, since no finite program closes them."""

    word: ClassVar[str] = "independent"

    @property
    def position_groups(self) -> Groups:
        """All positions, closed."""
        return {"q": (self.form.robot.tree.nq,)}

    @property
    def rate_groups(self) -> Groups:
        """The independent rates."""
        return {"qd": (len(self.form.independent),)}

    @property
    def motion_groups(self) -> Groups:
        """The independent accelerations."""
        return {"qdd": (len(self.form.independent),)}

    @property
    def labels(self) -> dict[str, list[str]]:
        """Names of the independent rates."""
        return _labels(self, self.form.independent_names)

    @property
    def read(self) -> list[str]:
        """The independent rates."""
        return self.form.independent_names

    def state(self, inputs: Given) -> Any:
        """As given."""
        return self.form.moving(inputs["q"], inputs["qd"])

    def motion(self, state: Any, inputs: Given) -> Given:
        """As given; of a flexible robot those of the motors, or of its platform, are read."""
        qdd: Array = np.zeros(self.form.robot.tree.n, dtype=scalar_type(inputs["qdd"]))
        qdd[self.form.independent] = inputs["qdd"]
        return self.form.motion_inputs(state, qdd)

    def accelerations(self, state: Any, independent: Array) -> Answer:
        """Of the independent coordinates."""
        return {"qdd": independent}

    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """In the independent rates."""
        return self.form.mass_matrix(state), self.form.independent_names


def _labels(coordinates: RequestedCoordinates, rates: list[str]) -> dict[str, list[str]]:
    positions = list(coordinates.form.robot.tree.position_names)
    named = {"q": positions, "qd": rates, "qdd": rates, "rates": list(coordinates.form.robot.tree.rate_names)}
    return coordinates.form.labels | named


@dataclass(frozen=True, eq=False, repr=False)
class MotorCoordinates(RequestedCoordinates):
    """All other positions are found by Newton steps from those before, which come out for the next call."""

    word: ClassVar[str] = "motors"

    @property
    def _count(self) -> tuple[int, ...]:
        return (len(self.form.robot.actuated),)

    @property
    def position_groups(self) -> Groups:
        """Positions of the motors; if loops must be closed, all previous positions."""
        tree, loops = self.form.robot.tree, self.form.robot.closures.size
        return {"motor_position": self._count} | ({"last": (tree.nq,)} if loops else {})

    @property
    def rate_groups(self) -> Groups:
        """Rates of the motors."""
        return {"motor_rate": self._count}

    @property
    def motion_groups(self) -> Groups:
        """Accelerations of the motors."""
        return {"motor_acceleration": self._count}

    @property
    def labels(self) -> dict[str, list[str]]:
        """Motors, and all positions."""
        tree, motors = self.form.robot.tree, self.form.robot.actuated_names
        motor_labels = dict.fromkeys(("motor_position", "motor_rate", "motor_acceleration", "effort"), motors)
        positions = list(tree.position_names)
        return motor_labels | {"q": positions, "last": positions, "rates": list(tree.rate_names)}

    @property
    def read(self) -> list[str]:
        """All of them."""
        return self.form.robot.actuated_names

    def state(self, inputs: Given) -> Any:
        """The state at which the motors stand and move so."""
        return self.form.by_motors(inputs["motor_position"], inputs["motor_rate"], inputs)

    def motion(self, state: Any, inputs: Given) -> Given:
        """From the accelerations of the motors."""
        return self.form.for_motors(state, inputs["motor_acceleration"])

    def accelerations(self, state: Any, independent: Array) -> Answer:
        """Of the motors."""
        accelerations = self.form.all_accelerations(state, independent)
        return {"motor_acceleration": accelerations[list(self.form.robot.actuated)]}

    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """In the rates of the motors."""
        return self.form.motor_inertia(state), self.form.robot.actuated_names

    def missed(self, state: Any, inputs: Given) -> Answer:
        """Return how far the last step left loops and motors."""
        return self.form.missed(state, inputs["motor_position"])

    def found(self, state: Any) -> Answer:
        """All positions, unless the motors say them."""
        return {"q": state.q} if self.form.robot.closures.size else {}


@dataclass(frozen=True, eq=False, repr=False)
class PlatformCoordinates(RequestedCoordinates):
    """Joints follow in closed form, or by Newton steps from the positions before, which come out for the next call."""

    word: ClassVar[str] = "platform"

    @property
    def position_groups(self) -> Groups:
        """The pose; where positions are found from it, those before."""
        return self.form.position_groups

    @property
    def rate_groups(self) -> Groups:
        """The twist."""
        return self.form.twist_groups

    @property
    def motion_groups(self) -> Groups:
        """The acceleration."""
        planar = self.form.robot.tree.planar
        return {"acceleration": (2 if planar else 3,), "angular_acceleration": (1 if planar else 3,)}

    @property
    def labels(self) -> dict[str, list[str]]:
        """Motors, modes of a flexible platform, all positions and rates."""
        tree = self.form.robot.tree
        form_labels = {
            name: names for name, names in self.form.labels.items() if name.startswith(("effort", "elastic"))
        }
        positions = list(tree.position_names)
        return form_labels | {"q": positions, "last": positions, "rates": list(tree.rate_names)}

    @property
    def read(self) -> list[str]:
        """As many components of the twist as freedoms, and those modes that are given."""
        return [*self.form.twist_components, *self.form.labels.get("elastic_rate", [])]

    def state(self, inputs: Given) -> Any:
        """The state in which the platform stands and moves so."""
        return self.form.by_platform(inputs)

    def motion(self, state: Any, inputs: Given) -> Given:
        """From the acceleration of the platform."""
        return self.form.for_platform(state, inputs)

    def accelerations(self, state: Any, independent: Array) -> Answer:
        """Of the platform."""
        return self.form.platform_accelerations(state, independent)

    def direct(self, state: Any, tau: Array) -> Answer:
        """Some forms answer so themselves."""
        answer = self.form.direct(state, tau)
        if "qdd" in answer:
            answer = self.accelerations(state, answer["qdd"])
        return answer | self.found(state)

    def kinematics(self, state: Any) -> Answer:
        """All positions and rates."""
        return {"q": state.q, "rates": state.qd}

    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """In components of the platform's twist, as many as freedoms."""
        return self.form.platform_inertia(state), self.form.twist_components

    def missed(self, state: Any, inputs: Given) -> Answer:
        """Return how far the last step left loops and the platform; nothing of joints in closed form."""
        return self.form.missed_platform(state, inputs)

    def found(self, state: Any) -> Answer:
        """All positions, where the next call needs them."""
        return {"q": state.q} if "last" in self.position_groups else {}


def with_motors_at(robot: Robot, q: Any, values: Array) -> Any:
    """Positions, written into, in which the motors stand as given."""
    tree = robot.tree
    for value, k in zip(values, robot.actuated, strict=True):
        q[tree.links[tree.link_of_rate[k]].q.start] = value
    return q


def motor_state(form: Any, sensed: Array, rates: Array, last: Array) -> Any:
    """The state in which the motors stand and move so, near the last positions."""
    robot = form.robot
    if len(robot.actuated) > len(form.independent):
        q = fitted_positions(form, sensed, last.copy())
    else:
        q = with_motors_at(robot, last.copy(), sensed)
        q = newton_closed(form.finder.robot, form.finder.partition, q, FAR)
    J_a = form.moving(q, np.zeros(len(form.independent))).J_a
    return form.moving(q, fitted_rates(robot, J_a, rates))


def fitted_rates(robot: Robot, J_a: Array, values: Array) -> Array:
    """Independent rates for rates of the motors; of more motors than freedoms, those that fit all of them best."""
    return least_squares(J_a, values, robot.tree.rate_units[list(robot.actuated)])


def motor_misfit_slopes(robot: Robot, state: Any, sensed: Array, independent: Array) -> Array:
    """Return the slopes of half the squared errors of the motors, in metres: zero where positions fit them best."""
    tree, motors = robot.tree, list(robot.actuated)
    places = [tree.links[tree.link_of_rate[k]].q.start for k in motors]
    units = tree.rate_units[motors]
    errors = (sensed - state.q[places]) / units
    return tree.length * ((state.J_a / units[:, None] * tree.rate_units[independent]).T @ errors)


def fitted_positions(form: Any, sensed: Array, q: Any) -> Any:
    """All positions after Newton steps: loops closed, and more motors than freedoms where they fit best."""
    finder = form.finder or form
    robot, part = finder.robot, finder.partition
    tree, actuated = robot.tree, list(robot.actuated)
    places = [tree.links[tree.link_of_rate[k]].q.start for k in actuated]
    for _ in range(FAR):
        at = pose(tree, q)
        reduced = reduction(robot.closures.jacobian(at, jacobians(tree, at)), part)
        closing = reduced.closing(robot.closures.linear_residual(at))
        missing: Array = np.array([sensed[i] - q[p] for i, p in enumerate(places)], dtype=scalar_type(sensed, q))
        step = fitted_rates(robot, reduced.matrix[actuated], missing - closing[actuated])
        q = tree.moved(q, reduced.matrix @ step + closing)
    return q


def platform_state(form: Any, frame: PlatformFrame, inputs: Given) -> Any:
    """The state in which the platform stands and moves so, near the last positions."""
    planar = form.robot.tree.planar
    p, R = to_space(planar, inputs["position"], inputs["rotation"])
    q = _placed(form, frame, p, R, inputs["last"])
    rows = frame.rows(pose(form.robot.tree, q))
    stationary = form.moving(q, np.zeros(len(form.independent)))
    twist = frame.picked(*vectors_to_space(planar, inputs["velocity"], inputs["angular_velocity"]))
    return form.moving(q, solve(rows @ stationary.reduction.matrix, twist))


def _placed(form: Any, frame: PlatformFrame, p: Array, R: Array, q: Any) -> Any:
    """All positions after Newton steps: loops closed, and the frame at its prescribed pose.

    The dependent rates close the loops, the independent ones bring the frame there: one step of Newton in two parts.
    Loops are open on the way, and seen so.
    """
    finder = form.finder or form
    robot, part = finder.robot, finder.partition
    for _ in range(FAR):
        at = pose(robot.tree, q)
        reduced = reduction(robot.closures.jacobian(at, jacobians(robot.tree, at)), part)
        closing = reduced.closing(robot.closures.linear_residual(at))
        rows = frame.rows(at)
        step = solve(rows @ reduced.matrix, frame.missing(at, p, R) - rows @ closing)
        q = robot.tree.moved(q, reduced.matrix @ step + closing)
    return q


def platform_driven(form: Any, frame: PlatformFrame, state: Any, inputs: Given) -> Array:
    """Independent accelerations for those of the platform."""
    desired = vectors_to_space(form.robot.tree.planar, inputs["acceleration"], inputs["angular_acceleration"])
    drift = frame.accelerations(state.at, state.qd, state.bias)
    rows = frame.rows(state.at) @ state.reduction.matrix
    return solve(rows, frame.picked(*desired) - frame.picked(*drift))


def inertia_along(M: Array, rows: Array, units: Array | None = None) -> Array:
    """The mass matrix in rates that are `rows` of the rates of M; of more rows than rates in their least squares."""
    identity: Array = np.eye(len(rows), dtype=scalar_type(rows))
    P = solve(rows, identity) if units is None else least_squares(rows, identity, units)
    return P.T @ M @ P


@dataclass(frozen=True, eq=False, repr=False)
class PlatformFrame(Record):
    """A frame by its name and place, and the components of its world twist that are read."""

    tree: Tree
    name: str
    place: Place
    read: tuple[int, ...]

    @property
    def labels(self) -> list[str]:
        """Names of the components that are read."""
        return [f"{self.name}.{TWIST[k]}" for k in self.read]

    def rows(self, at: Pose) -> Array:
        """World twist per unit of all rates."""
        R, _ = at.of(self.place)
        J_v, J_w = place_jacobian(self.tree, at, jacobians(self.tree, at), self.place)
        return np.concatenate([R @ J_v, R @ J_w])[list(self.read)]

    def accelerations(self, at: Pose, qd: Array, qdd: Array) -> tuple[Array, Array]:
        """World acceleration and angular acceleration in a motion."""
        R, _ = at.of(self.place)
        _, _, a, al = motion(self.tree, at, qd, qdd).of(self.place)
        return R @ a, R @ al

    def missing(self, at: Pose, p: Array, R: Array) -> Array:
        """What is left to move to a pose nearby: the way, and axis times sine of the turn, in world axes."""
        R_here, p_here = at.of(self.place)
        E = R @ R_here.T
        turn = np.array([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]]) / 2
        return np.concatenate([p - p_here, turn])[list(self.read)]

    def gaps(self, at: Pose, p: Array, R: Array) -> Array:
        """Return lengths in metres that vanish at the pose; 2 tan(a / 2) of an angle a grows up to half a turn."""
        R_here, _ = at.of(self.place)
        sizes = np.array([1.0, 1.0, 1.0, *3 * [self.tree.length * 4.0 / (1.0 + np.trace(R @ R_here.T))]])
        return self.missing(at, p, R) * sizes[list(self.read)]

    def picked(self, linear: Any, angular: Any) -> Array:
        """Of two world vectors the components that are read."""
        return np.concatenate([linear, angular])[list(self.read)]


def frame_of(tree: Tree) -> tuple[str, Place]:
    """The body that no joint holds; else the end effector."""
    for number, link in enumerate(tree.links):
        if link.joint.moves_freely:
            return link.name, Place(number, np.eye(3), np.zeros(3))
    return tree.end_effector, tree.places[tree.end_effector]


def platform_frame(robot: Robot) -> PlatformFrame:
    """The platform, or the end effector where that one says how the robot moves and the platform does not."""
    configuration = Configuration(robot, robot.home)
    freedoms, moving = configuration.J.shape[1], {}
    for name in (frame_of(robot.tree)[0], robot.tree.end_effector):
        _, moving[name] = configuration.platform_freedom(name)
        if len(moving[name]) == freedoms:
            read = tuple(TWIST.index(word) for word in moving[name])
            return PlatformFrame(robot.tree, name, robot.tree.places[name], read)
    name = max(moving, key=lambda name: len(moving[name]))
    raise InputError(
        f"'{name}' moves in {len(moving[name])} of the {freedoms} freedoms of the robot: its motion does not "
        "determine that of all joints",
        key="coordinates",
        value="platform",
        hint='use coordinates "all" or "independent"',
    )


def input_frame(robot: Robot, coordinates: str | None) -> str:
    """The frame whose pose a model takes."""
    rigid = coordinates == "platform" and not robot.tree.elastic
    return platform_frame(robot).name if rigid else frame_of(robot.tree)[0]


def to_space(planar: bool, p: Array, R: Array) -> tuple[Array, Array]:
    """Position and rotation in space of those in the plane."""
    if not planar:
        return p, R
    rotation = [[R[0, 0], R[0, 1], 0.0], [R[1, 0], R[1, 1], 0.0], [0.0, 0.0, 1.0]]
    return np.array([*p, 0.0], dtype=p.dtype), np.array(rotation, dtype=R.dtype)


def vectors_to_space(planar: bool, linear: Array, angular: Array) -> tuple[Array, Array]:
    """Two vectors in space of those in the plane."""
    if not planar:
        return linear, angular
    return np.array([*linear, 0.0], dtype=linear.dtype), np.array([0.0, 0.0, *angular], dtype=angular.dtype)


def to_plane(planar: bool, linear: Array, angular: Array) -> tuple[Array, Array]:
    """Of two vectors in space what the plane has of them."""
    return (linear[:2], angular[2:]) if planar else (linear, angular)
