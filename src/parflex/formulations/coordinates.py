"""Convert input and output coordinates of a model: joints, motors or platform.

The classes surround a formulation: they compute its state from the input coordinates, and the output coordinates from
its results, over any scalar. The frame of a motion is the platform, else the end effector. Its twist has as many
components as the robot has degrees of freedom: those that best determine its motion at home.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from parflex.closure.partition import reduction
from parflex.errors import InputError
from parflex.formulations.base import FAR, Answer, Given, Groups, newton_closed, pose_groups, residual_norm, vectors
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.recursion.kinematics import Pose, jacobians, motion, place_jacobian, pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.linear import least_squares, scalar_type
from parflex.tree.tree import Tree

Array = np.ndarray
PUSHED = "wrench_"  # before the name of a frame: what acts on it
TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")


class RequestedCoordinates(ABC):
    """A formulation in requested coordinates; models read the rates `read` and ignore other rates."""

    position_groups: Groups
    rate_groups: Groups
    motion_groups: Groups  # accelerations that the inverse model takes
    names: dict[str, list[str]]  # of the entries of groups, in place of those of the formulation
    read: list[str]

    def __init__(self, form: Any) -> None:
        self.form, self.robot, self.tree = form, form.robot, form.robot.tree
        self.motors = list(self.robot.actuated)

    @property
    def labels(self) -> dict[str, list[str]]:
        """Names of the entries of groups."""
        positions, rates = list(self.tree.position_names), list(self.tree.rate_names)
        return self.form.labels | {"q": positions, "last": positions, "rates": rates} | self.names

    @abstractmethod
    def state(self, inputs: Given) -> Any:
        """Return the state of the form."""

    @abstractmethod
    def motion(self, state: Any, inputs: Given) -> Given:
        """Return the accelerations that the inverse model of the form takes."""

    def accelerations(self, state: Any, independent: Array) -> Answer:
        """Return the accelerations of the direct model from the independent ones, unless `direct` returns them."""
        raise NotImplementedError

    @abstractmethod
    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """Return the inertia in the rates of these coordinates, and their names."""

    def found(self, state: Any) -> Answer:
        """Return computed positions, the start of the next call."""
        return {"q": state.q} if "last" in self.position_groups else {}

    def missed(self, state: Any, inputs: Given) -> Answer:
        """Return the `residual` of the Newton steps that found the positions; nothing where all positions are given."""
        return {}

    def inverse(self, state: Any, inputs: Given) -> Answer:
        """Return efforts, and the resulting accelerations."""
        return self.form.inverse(state, self.motion(state, inputs)) | self.found(state)

    def direct(self, state: Any, tau: Array) -> Answer:
        """Return accelerations under efforts."""
        answer = self.form.direct(state, tau)
        independent = answer["qdd"] if "qdd" in answer else self.form.accelerations_under(state, tau)
        return self.accelerations(state, independent) | self.found(state)

    def kinematics(self, state: Any) -> Answer:
        """Return pose and twist of the end effector in world axes, and all rates."""
        place = self.tree.places[self.tree.end_effector]
        R, p = state.at.of(place)
        J_v, J_w = place_jacobian(self.tree, state.at, jacobians(self.tree, state.at), place)
        twist = {"velocity": R @ (J_v @ state.qd), "angular_velocity": R @ (J_w @ state.qd)}
        return {"position": p, "rotation": R} | twist | {"rates": state.qd} | self.found(state)


class IndependentCoordinates(RequestedCoordinates):
    """Independent rates and accelerations, with all positions as inputs."""

    def __init__(self, form: Any, given: Array | None = None) -> None:
        super().__init__(form)
        self.given, self.read = form.independent if given is None else given, form.independent_names
        names, count = [self.tree.rate_names[k] for k in self.given], (len(self.given),)
        self.position_groups, self.names = {"q": (self.tree.nq,)}, {"qd": names, "qdd": names}
        self.rate_groups, self.motion_groups = {"qd": count}, {"qdd": count}

    def _of_tree(self, values: Array) -> Array:
        """Return values of all rates of the tree, with zeros for missing ones."""
        full: Array = np.zeros(self.tree.n, dtype=scalar_type(values))
        full[self.given] = values
        return full

    def state(self, inputs: Given) -> Any:
        """Return the state from the independent rates; wrenches act on frames."""
        wrenches = {name.removeprefix(PUSHED): value for name, value in inputs.items() if name.startswith(PUSHED)}
        return self.form.moving(inputs["q"], self._of_tree(inputs["qd"])[self.form.independent], wrenches)

    def motion(self, state: Any, inputs: Given) -> Given:
        """Return independent accelerations; for a flexible robot those of the motors, or of its platform."""
        return self.form.motion_inputs(state, self._of_tree(inputs["qdd"]))

    def accelerations(self, state: Any, independent: Array) -> Answer:
        """Return accelerations of the independent coordinates."""
        return {"qdd": independent}

    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """Return the inertia in the independent rates."""
        return self.form.mass_matrix(state), self.form.independent_names


class AllCoordinates(IndependentCoordinates):
    """All rates and accelerations; the independent ones are read, the others follow from the loops."""

    def __init__(self, form: Any) -> None:
        super().__init__(form, np.arange(form.robot.tree.n))

    def accelerations(self, state: Any, independent: Array) -> Answer:
        """Return accelerations of all coordinates."""
        return {"qdd": self.form.all_accelerations(state, independent)}

    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """Return the matrix of the open tree: qd^T M qd is twice the kinetic energy with closed loops."""
        return tree_mass_matrix(self.tree, state.at), list(self.tree.rate_names)


class DrivenCoordinates(RequestedCoordinates):
    """Coordinates of motors or of the platform, which determine the motion.

    Newton steps from the previous positions compute all positions, which are outputs for the next call. `units`
    scale rates of redundant motors for least squares.
    """

    units: Array

    @abstractmethod
    def rows(self, at: Pose, columns: Array) -> Array:
        """Return rates of the coordinates from rates of all joints in columns."""

    @abstractmethod
    def missing(self, at: Pose, inputs: Given) -> Array:
        """Return the remaining motion to the required positions, from positions nearby."""

    @abstractmethod
    def gaps(self, state: Any, inputs: Given) -> Array:
        """Return lengths in metres that vanish at the required positions."""

    @abstractmethod
    def follow(self, state: Any, accelerations: Array) -> Answer:
        """Return accelerations of the coordinates, by group, from those of all joints."""

    @abstractmethod
    def required(self, inputs: Given, groups: Groups) -> Array:
        """Return rates or accelerations of the coordinates from their groups."""

    def fitted(self, inputs: Given) -> Any:
        """Return all positions after Newton steps.

        The dependent rates close the loops, the independent ones move the coordinates to their positions: one
        Newton step in two parts. Loops are open in between and treated as open.
        """
        finder, q = self.form.finder or self.form, inputs["last"]
        for _ in range(FAR):
            at = pose(self.tree, q)
            closures = finder.robot.closures
            reduced = reduction(closures.jacobian(at, jacobians(self.tree, at)), finder.partition)
            closing = reduced.closing(closures.linear_residual(at))
            moved = self.rows(at, np.column_stack([reduced.matrix, closing]))
            step = least_squares(moved[:, :-1], self.missing(at, inputs) - moved[:, -1], self.units)
            q = self.tree.moved(q, reduced.matrix @ step + closing)
        return q

    def rates(self, state: Any) -> Array:
        """Return rates of the coordinates per independent rate."""
        return self.rows(state.at, state.reduction.matrix)

    def state(self, inputs: Given) -> Any:
        """Return the state with these positions and rates of the coordinates."""
        q = self.fitted(inputs)
        rates = self.rates(self.form.moving(q, np.zeros(len(self.form.independent))))
        return self.form.moving(q, least_squares(rates, self.required(inputs, self.rate_groups), self.units))

    def motion(self, state: Any, inputs: Given) -> Given:
        """Return independent accelerations for those of the coordinates."""
        desired, drift = (self.required(of, self.motion_groups) for of in (inputs, self.follow(state, state.bias)))
        return {"qdd": least_squares(self.rates(state), desired - drift, self.units)}

    def accelerations(self, state: Any, independent: Array) -> Answer:
        """Return accelerations of the coordinates."""
        return self.follow(state, self.form.all_accelerations(state, independent))

    def mass_matrix(self, state: Any) -> tuple[Array, list[str]]:
        """Return the inertia in the rates of the coordinates."""
        return inertia_along(self.form.mass_matrix(state), self.rates(state), self.units), self.read

    def missed(self, state: Any, inputs: Given) -> Answer:
        """Return how far the last step left loops and coordinates; nothing where no position is found."""
        if "last" not in self.position_groups:
            return {}
        gaps = (self.form.finder or self.form).robot.closures.gaps(state.at)  # the loops are seen as in the file
        return {"residual": residual_norm(np.concatenate([gaps, self.gaps(state, inputs)]))}


class MotorCoordinates(DrivenCoordinates):
    """Motor coordinates, which determine all other positions."""

    def __init__(self, form: Any) -> None:
        super().__init__(form)
        count, links = (len(self.motors),), self.tree.links
        last: Groups = {"last": (self.tree.nq,)} if form.robot.closures.size else {}
        self.position_groups = {"motor_position": count} | last
        self.rate_groups, self.motion_groups = {"motor_rate": count}, {"motor_acceleration": count}
        self.read = self.robot.actuated_names
        self.names = dict.fromkeys(("motor_position", "motor_rate", "motor_acceleration", "effort"), self.read)
        self.units = self.tree.rate_units[self.motors]
        self.places = [links[self.tree.link_of_rate[k]].q.start for k in self.motors]

    def rows(self, at: Pose, columns: Array) -> Array:
        """Return the rows of the motors."""
        return columns[self.motors]

    def missing(self, at: Pose, inputs: Given) -> Array:
        """Return the position errors of the motors."""
        return inputs["motor_position"] - at.q[self.places]

    def gaps(self, state: Any, inputs: Given) -> Array:
        """Return slopes of half the squared errors of redundant motors, else nothing."""
        independent = self.form.independent
        if len(self.motors) <= len(independent):
            return np.zeros(0)
        rates = state.J_a / self.units[:, None] * self.tree.rate_units[independent]
        return self.tree.length * (rates.T @ (self.missing(state.at, inputs) / self.units))

    def follow(self, state: Any, accelerations: Array) -> Answer:
        """Return accelerations of the motors."""
        return {"motor_acceleration": accelerations[self.motors]}

    def required(self, inputs: Given, groups: Groups) -> Array:
        """Return rates or accelerations of the motors."""
        (name,) = groups
        return inputs[name]

    def fitted(self, inputs: Given) -> Any:
        """Return positions after Newton steps for all joints, or for the passive joints without redundant motors."""
        if len(self.motors) > len(self.form.independent):
            return super().fitted(inputs)
        finder, sensed = self.form.finder or self.form, inputs["motor_position"]
        q = inputs["last"].copy() if "last" in inputs else self.robot.home.astype(scalar_type(sensed))
        q[self.places] = sensed
        return newton_closed(finder.robot, finder.partition, q, FAR)


class PlatformCoordinates(DrivenCoordinates):
    """Platform pose, which determines all positions."""

    def __init__(self, form: Any) -> None:
        super().__init__(form)
        planar, (name, words) = self.tree.planar, driving_frame(self.robot)
        self.position_groups = pose_groups(planar) | {"last": (self.tree.nq,)}
        self.rate_groups = vectors(planar, "velocity", "angular_velocity")
        self.motion_groups = vectors(planar, "acceleration", "angular_acceleration")
        self.place, self.components = self.tree.places[name], [TWIST.index(word) for word in words]
        self.read, self.names, self.units = [f"{name}.{word}" for word in words], {}, np.ones(len(words))

    def rows(self, at: Pose, columns: Array) -> Array:
        """Return components of the world twist of the platform."""
        R, _ = at.of(self.place)
        J_v, J_w = place_jacobian(self.tree, at, jacobians(self.tree, at), self.place)
        return self._read(R @ J_v, R @ J_w) @ columns

    def _read(self, linear: Array, angular: Array) -> Array:
        """Return the components of two world vectors that are read."""
        return np.concatenate([linear, angular])[self.components]

    def missing(self, at: Pose, inputs: Given) -> Array:
        """Return the translation error, and axis times sine of the rotation error, in world axes."""
        R_here, p_here = at.of(self.place)
        p, R = to_space(self.tree.planar, inputs["position"], inputs["rotation"])
        E = R @ R_here.T
        return self._read(p - p_here, np.array([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]]) / 2)

    def gaps(self, state: Any, inputs: Given) -> Array:
        """Return the translation error, and 2 tan(a / 2) of the rotation error a, increasing up to half a turn."""
        _, R = to_space(self.tree.planar, inputs["position"], inputs["rotation"])
        turn = self.tree.length * 4.0 / (1.0 + np.trace(R @ state.at.of(self.place)[0].T))
        return self.missing(state.at, inputs) * np.array([1.0, 1.0, 1.0, turn, turn, turn])[self.components]

    def follow(self, state: Any, accelerations: Array) -> Answer:
        """Return world acceleration and angular acceleration of the platform."""
        R, _ = state.at.of(self.place)
        _, _, a, al = motion(self.tree, state.at, state.qd, accelerations).of(self.place)
        return dict(zip(self.motion_groups, to_plane(self.tree.planar, R @ a, R @ al), strict=True))

    def required(self, inputs: Given, groups: Groups) -> Array:
        """Return the components that are read."""
        return self._read(*vectors_to_space(self.tree.planar, *(inputs[name] for name in groups)))

    def kinematics(self, state: Any) -> Answer:
        """Return all positions and rates."""
        return {"q": state.q, "rates": state.qd}


COORDINATES = {
    "all": AllCoordinates,
    "independent": IndependentCoordinates,
    "motors": MotorCoordinates,
    "platform": PlatformCoordinates,
}


def inertia_along(M: Array, rows: Array, units: Array) -> Array:
    """Return the mass matrix in rates that are `rows` of the rates of M, in least squares for more rows."""
    P = least_squares(rows, np.eye(len(rows), dtype=scalar_type(rows)), units)
    return P.T @ M @ P


def frame_of(tree: Tree) -> str:
    """Return the free body, else the end effector."""
    return next((link.name for link in tree.links if link.joint.moves_freely), tree.end_effector)


def driving_frame(robot: Robot) -> tuple[str, list[str]]:
    """Return the platform, or an end effector that determines the motion, and the components of its twist."""
    configuration = Configuration(robot, robot.home)
    freedoms, moving = configuration.J.shape[1], {}
    for name in (frame_of(robot.tree), robot.tree.end_effector):
        _, moving[name] = configuration.platform_freedom(name)
        if len(moving[name]) == freedoms:
            return name, moving[name]
    name = max(moving, key=lambda name: len(moving[name]))
    text = f"'{name}' moves in {len(moving[name])} of the {freedoms} degrees of freedom: its motion does not "
    hint = 'use coordinates "all" or "independent"'
    raise InputError(f"{text}determine that of all joints", key="coordinates", value="platform", hint=hint)


def input_frame(robot: Robot, coordinates: str | None) -> str:
    """Return the frame whose pose a model takes."""
    rigid = coordinates == "platform" and not robot.tree.elastic
    return driving_frame(robot)[0] if rigid else frame_of(robot.tree)


def to_space(planar: bool, p: Array, R: Array) -> tuple[Array, Array]:
    """Return spatial position and rotation from planar ones."""
    if not planar:
        return p, R
    rotation = [[R[0, 0], R[0, 1], 0.0], [R[1, 0], R[1, 1], 0.0], [0.0, 0.0, 1.0]]
    return np.array([*p, 0.0], dtype=p.dtype), np.array(rotation, dtype=R.dtype)


def vectors_to_space(planar: bool, linear: Array, angular: Array) -> tuple[Array, Array]:
    """Return two spatial vectors from planar ones."""
    if not planar:
        return linear, angular
    return np.array([*linear, 0.0], dtype=linear.dtype), np.array([0.0, 0.0, *angular], dtype=angular.dtype)


def to_plane(planar: bool, linear: Array, angular: Array) -> tuple[Array, Array]:
    """Return the in-plane components of two spatial vectors."""
    return (linear[:2], angular[2:]) if planar else (linear, angular)
