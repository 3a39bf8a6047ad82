"""Lagrange's equations of a robot, differentiated automatically from its energies and closures."""

from collections.abc import Callable, Mapping, Sequence
from math import factorial

import casadi as ca
import numpy as np

from . import chart, elements
from .closing import TERMS, ClosedModel, Numbers
from .reader import Closure, Frame, RobotData


class EnergyModel(ClosedModel):
    """Kinetic and potential energy of all bodies; loops are closed by multipliers.

    Coordinates are joint values and, for balls and free frames, the local chart about the current pose.
    `include` chooses the terms of the joints: `motor_inertia`, `friction` (viscous and Coulomb), `springs`
    (springs and dampers). A locked joint is one more motor with zero rate.
    """

    def __init__(self, data: RobotData) -> None:
        self.data = data
        self.coordinates = [rate for frame in data.frames for rate in frame.rates]
        count = len(self.coordinates)
        x, xd = ca.SX.sym("x", count), ca.SX.sym("xd", count)
        posed = [frame for frame in data.frames if frame.kind in chart.POSED]
        parameters = ca.SX.sym("pose", 12 * len(posed))
        poses = {frame.name: ca.reshape(parameters[12 * k : 12 * k + 12], 3, 4) for k, frame in enumerate(posed)}
        self._inputs = [x, xd, parameters]
        self._transforms = self._placed(x, poses)
        self._jacobians: dict[str, ca.Function] = {}
        self._derive()
        loops = (_closure(c, self._transforms, data.planar) for c in data.closures)
        coupled = (
            sum(weight * x[self.coordinates.index(name)] for name, weight in c.weights.items()) - c.offset
            for c in data.couplings
            if c.stiffness is None
        )
        distances = (
            elements.length(e, self._transforms) - (x[self.coordinates.index(e.name)] if e.kind == "strut" else e.rest)
            for e in data.elements
            if e.kind in ("rod", "strut")
        )
        residual = ca.vertcat(*loops, *coupled, *distances, ca.SX(0, 1))
        rate = ca.jtimes(residual, x, xd)
        self.closure_rows: int = residual.numel()
        self._rows = residual
        self._residual = ca.Function("residual", self._inputs, [residual])
        self._closing = ca.Function("closing", self._inputs, [ca.jacobian(residual, x), ca.jtimes(rate, x, xd)])

    def _placed(self, x: ca.SX, poses: Mapping[str, ca.SX]) -> dict[str, ca.SX]:
        """World transform of every frame."""
        return transforms(self.data, x, poses)

    def _derive(self) -> None:
        """The mass matrix and the other terms from the energies."""
        x, xd, _ = self._inputs
        kinetic, potential = _energies(self.data, self._transforms, x, xd)
        momentum = ca.gradient(kinetic, xd)
        bias = ca.jtimes(momentum, x, xd) - ca.gradient(kinetic, x) + ca.gradient(potential, x)
        pulled, stored = self._elements()
        self._dynamics = ca.Function("dynamics", self._inputs, [ca.jacobian(momentum, xd), bias + pulled])
        self._energy = ca.Function("energy", self._inputs, [kinetic, potential + stored])
        self._potential = potential + stored

    def _elements(self) -> tuple[ca.SX, ca.SX]:
        """Forces along all coordinates that hold against elements between two points, and their energy."""
        x, xd, _ = self._inputs
        forces, stored = ca.SX.zeros(len(self.coordinates)), ca.SX(0)
        for element in self.data.elements:
            if element.kind not in ("rod", "strut"):
                long = elements.length(element, self._transforms)
                forces += ca.gradient(long, x) * elements.tension(element, long, ca.jtimes(long, x, xd))
                stored += elements.energy(element, long)
        return forces, stored

    def tangent(
        self,
        q: Numbers,
        efforts: Numbers,
        pulls: Mapping[str, Sequence[float]],
        servos: Mapping[str, tuple[float, float]],
        locked: Sequence[str],
    ) -> tuple[np.ndarray, np.ndarray]:
        """What no multipliers balance at rest, and the second derivative of the potential with the multipliers.

        Efforts of joints and pulls (forces at frames, world axes) are constant; servos are springs (stiffness, rest).
        """
        force, x = self.mass_matrix_and_bias(q, np.zeros(len(self.coordinates)))[1], self._inputs[0]
        stiffness = np.diag([frame.stiffness for frame in self.data.frames for _ in frame.rates])
        for coupled in self.data.couplings:
            weights = np.array([coupled.weights.get(name, 0.0) for name in self.coordinates])
            stiffness = stiffness + (coupled.stiffness or 0.0) * np.outer(weights, weights)
        for name, (servo, rest) in servos.items():
            stiffness[self.coordinates.index(name), self.coordinates.index(name)] += servo
            force[self.coordinates.index(name)] += servo * (q[name] - rest)
        for name, effort in efforts.items():
            force[self.coordinates.index(name)] -= effort
        potential = self._potential
        for name, pull in pulls.items():
            force = force - self.frame_jacobian(q, name)[:3].T @ np.asarray(pull, float)
            potential = potential - ca.dot(ca.SX(ca.DM(pull)), self._transforms[name][:3, 3])
        units = np.eye(len(force))[[self.coordinates.index(name) for name in locked]].reshape(-1, len(force))
        rows = np.vstack([self.closure_jacobian(q)[0], units])
        multipliers = np.linalg.lstsq(rows.T, force, rcond=1e-12)[0]
        lagrangian = potential - ca.dot(ca.SX(ca.DM(multipliers[: self.closure_rows])), self._rows)
        second = self._evaluate(ca.Function("tangent", self._inputs, [ca.hessian(lagrangian, x)[0]]), q)[0]
        return force - rows.T @ multipliers, second + stiffness

    def closure_residual(self, q: Numbers) -> np.ndarray:
        """Gaps of all closures, in metres and radians (small angles)."""
        return self._evaluate(self._residual, q)[0].ravel()

    def closure_jacobian(self, q: Numbers, qd: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Derivative J of the residual in the chart, and J_dot qd."""
        jacobian, bias = self._evaluate(self._closing, q, qd)
        return jacobian, bias.ravel()

    def mass_matrix_and_bias(
        self, q: Numbers, qd: np.ndarray, include: Sequence[str] = TERMS
    ) -> tuple[np.ndarray, np.ndarray]:
        """M and c of M qdd + c = forces, for all coordinates of the tree and the platform."""
        mass, bias = self._inertial(q, qd)
        return add_joint_terms(self.data, q, qd, mass, bias.ravel(), include)

    def _inertial(self, q: Numbers, qd: np.ndarray) -> list[np.ndarray]:
        """Mass matrix and bias without the terms of the joints."""
        return self._evaluate(self._dynamics, q, qd)

    def energy(self, q: Numbers, qd: np.ndarray, include: Sequence[str] = TERMS) -> tuple[float, float]:
        """Kinetic energy with that of the rotors, potential energy with that of the springs."""
        kinetic, potential = (float(value.item()) for value in self._evaluate(self._energy, q, qd))
        for frame, rate in _axes(self.data, qd):
            if "motor_inertia" in include:
                kinetic += frame.motor_inertia * rate**2 / 2
            if "springs" in include:
                potential += frame.stiffness * (q[frame.coordinates[0]] - frame.rest) ** 2 / 2
        for coupled in self.data.couplings if "springs" in include else ():
            stretch = sum(weight * q[name] for name, weight in coupled.weights.items()) - coupled.offset
            potential += (coupled.stiffness or 0.0) * stretch**2 / 2
        return kinetic, potential

    def forces(
        self,
        q: Numbers,
        rates: Numbers,
        accelerations: Numbers,
        include: Sequence[str] = TERMS,
        wrenches: Mapping[str, Sequence[float]] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """What the open tree takes along all rates, and the rows of the closures."""
        qd, qdd = self.motion(q, rates, accelerations)
        mass, bias = self.mass_matrix_and_bias(q, qd, include)
        force = mass @ qdd + bias
        for name, wrench in (wrenches or {}).items():
            force = force - self.frame_jacobian(q, name).T @ np.asarray(wrench, float)
        return force, self.closure_jacobian(q)[0]

    def frame_pose(self, q: Numbers, name: str) -> np.ndarray:
        """Homogeneous transform of a frame or point in the world."""
        return self._evaluate(self._frame(name), q)[0]

    def frame_jacobian(self, q: Numbers, name: str) -> np.ndarray:
        """Velocity of the origin and angular velocity, world axes, per rate."""
        return self._evaluate(self._frame(name), q)[1]

    def _frame(self, name: str) -> ca.Function:
        if name not in self._jacobians:
            x, xd, _ = self._inputs
            transform = self._transforms[name]
            rotation, position = transform[:3, :3], transform[:3, 3]
            turning = ca.reshape(ca.jtimes(ca.vec(rotation), x, xd), 3, 3) @ rotation.T
            velocity = ca.vertcat(ca.jtimes(position, x, xd), turning[2, 1], turning[0, 2], turning[1, 0])
            self._jacobians[name] = ca.Function("frame", self._inputs, [transform, ca.jacobian(velocity, xd)])
        return self._jacobians[name]

    def _evaluate(self, function: ca.Function, q: Numbers, qd: np.ndarray | None = None) -> list[np.ndarray]:
        values: list[float] = []
        parameters: list[np.ndarray] = []
        for frame in self.data.frames:
            if frame.kind in chart.POSED:
                values += [0.0] * len(frame.rates)
                parameters.append(np.column_stack(chart.pose(frame, q)).ravel(order="F"))
            else:
                values += [q[name] for name in frame.coordinates]
        rates = np.zeros(len(values)) if qd is None else qd
        result = function.call([ca.DM(values), ca.DM(rates), ca.DM(np.concatenate(parameters or [[]]))])
        return [value.full() for value in result]


def add_joint_terms(
    data: RobotData, q: Numbers, qd: np.ndarray, mass: np.ndarray, bias: np.ndarray, include: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Mass matrix and bias with the rotors, friction, springs and dampers of the one-axis joints."""
    rows = [row for frame in data.frames for row in [frame] * len(frame.rates)]
    rotors, extra = np.zeros(len(rows)), np.zeros(len(rows))
    for index, frame in enumerate(rows):
        if frame.kind in chart.POSED:
            continue
        rate = qd[index]
        if "motor_inertia" in include:
            rotors[index] = frame.motor_inertia
        if "friction" in include:
            extra[index] += frame.viscous * rate + frame.coulomb * np.sign(rate)
        if "springs" in include:
            extra[index] += frame.stiffness * (q[frame.coordinates[0]] - frame.rest) + frame.damper * rate
    names = [rate for frame in data.frames for rate in frame.rates]
    for coupled in data.couplings if "springs" in include else ():
        if coupled.stiffness is not None:
            stretch = sum(weight * q[name] for name, weight in coupled.weights.items()) - coupled.offset
            rate = sum(weight * qd[names.index(name)] for name, weight in coupled.weights.items())
            for name, weight in coupled.weights.items():
                extra[names.index(name)] += weight * (coupled.stiffness * stretch + coupled.damping * rate)
    return mass + np.diag(rotors), bias + extra


def _axes(data: RobotData, qd: np.ndarray) -> list[tuple[Frame, float]]:
    """One-axis joints with their rates."""
    rows = [frame for frame in data.frames for _ in frame.rates]
    return [(frame, rate) for frame, rate in zip(rows, qd, strict=True) if frame.kind not in chart.POSED]


def transforms(
    data: RobotData, x: ca.SX, poses: Mapping[str, ca.SX], given: Mapping[str, Callable[[ca.SX], ca.SX]] | None = None
) -> dict[str, ca.SX]:
    """World transform of every frame; some sit in their parents as functions of all coordinates say."""
    result = {"base": ca.SX.eye(4)}
    first = 0
    for frame in data.frames:
        d = x[first : first + len(frame.rates)]
        first += len(frame.rates)
        place = given[frame.name](x) if given and frame.name in given else ca.SX(chart.placement(frame))
        placed = result[frame.parent] @ place
        if frame.kind == "hz":
            result[frame.name] = placed @ _rigid(_turn_z(d), ca.vertcat(0, 0, frame.pitch * d))
        else:
            result[frame.name] = placed @ MOTIONS[frame.kind](d, poses.get(frame.name))
    return result


def _rigid(rotation: ca.SX, position: ca.SX) -> ca.SX:
    return ca.vertcat(ca.horzcat(rotation, position), ca.SX([[0, 0, 0, 1]]))


def _turn_z(angle: ca.SX) -> ca.SX:
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))


def _turn_x(angle: ca.SX) -> ca.SX:
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(1, 0, 0), ca.horzcat(0, c, -s), ca.horzcat(0, s, c))


def displaced(shift: ca.SX, turn: ca.SX) -> ca.SX:
    """A place displaced, then turned by a rotation vector; the power series is exact up to a turn of one radian."""
    h, square = ca.skew(turn), ca.sumsqr(turn)
    first = second = ca.SX(0)
    for k in reversed(range(10)):
        first = 1 / factorial(2 * k + 1) - square * first
        second = 1 / factorial(2 * k + 2) - square * second
    return _rigid(ca.SX.eye(3) + first * h + second * h @ h, shift)


def _about(pose: ca.SX, shift: ca.SX, turn: ca.SX) -> ca.SX:
    """Chart about a pose; the exponential to second order, all that is differentiated at zero."""
    rotation, h = pose[:, :3], ca.skew(turn)
    return _rigid(rotation @ (ca.SX.eye(3) + h + h @ h / 2), pose[:, 3] + rotation @ shift)


MOTIONS: dict[str, Callable[[ca.SX, ca.SX | None], ca.SX]] = {
    "fixed": lambda d, pose: ca.SX.eye(4),
    "modes": lambda d, pose: ca.SX.eye(4),
    "rz": lambda d, pose: _rigid(_turn_z(d), ca.SX.zeros(3)),
    "rx": lambda d, pose: _rigid(_turn_x(d), ca.SX.zeros(3)),
    "pz": lambda d, pose: _rigid(ca.SX.eye(3), ca.vertcat(0, 0, d)),
    "spherical": lambda d, pose: _about(pose, ca.SX.zeros(3), d),
    "free": lambda d, pose: _about(pose, d[:3], d[3:]),
    "node": lambda d, pose: displaced(d[:3], d[3:]),
    "planar-node": lambda d, pose: displaced(ca.vertcat(d[:2], 0), ca.vertcat(0, 0, d[2])),
    "planar": lambda d, pose: _about(pose, ca.vertcat(d[:2], 0), ca.vertcat(0, 0, d[2])),
}


def _energies(data: RobotData, transforms: Mapping[str, ca.SX], x: ca.SX, xd: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Kinetic energy trace(T_dot P T_dot^T)/2 with the second moments P, potential energy of weight."""
    kinetic, potential = ca.SX(0), ca.SX(0)
    for frame in data.frames:
        moments = chart.pseudo_inertia(frame)
        if not moments.any():
            continue
        transform = transforms[frame.name][:3, :]
        velocity = ca.reshape(ca.jtimes(ca.vec(transform), x, xd), 3, 4)
        kinetic += ca.trace(velocity @ ca.SX(moments) @ velocity.T) / 2
        potential -= ca.dot(ca.SX(data.gravity), transform @ ca.SX(moments[:, 3]))
    return kinetic, potential


def _closure(closure: Closure, transforms: Mapping[str, ca.SX], planar: bool) -> ca.SX:
    """Rows that vanish on closed loops. Angles count as 2 tan(angle/2), so opposite axes do not close."""
    first, second = transforms[closure.first], transforms[closure.second]
    turned = first[:3, :3]
    gap = second[:3, 3] - first[:3, 3]
    relative = turned.T @ second[:3, :3]
    axis = turned @ closure.axis
    away = ca.vertcat(*(ca.dot(turned @ normal, gap) for normal in chart.normals(closure.axis)))
    along = ca.dot(axis, gap)
    curl = ca.vertcat(*(relative[k, j] - relative[j, k] for j, k in ((1, 2), (2, 0), (0, 1))))
    turn = turned @ (2 * curl / (1 + ca.trace(relative)))
    other = second[:3, :3] @ closure.axis_2
    leaning = ca.vertcat(*(ca.dot(turned @ normal, other) for normal in chart.normals(closure.axis)))
    tilt = 2 * leaning / (1 + ca.dot(axis, other))
    if planar:
        aside = axis[0] * gap[1] - axis[1] * gap[0]
        rows = {
            "revolute": [gap[:2]],
            "prismatic": [aside, turn[2]],
            "point-on-plane": [along],
            "point-on-line": [aside],
            "welded": [gap[:2], turn[2]],
        }
    else:
        rows = {
            "spherical": [gap],
            "revolute": [gap, tilt],
            "universal": [gap, ca.dot(axis, other)],
            "cylindrical": [away, tilt],
            "prismatic": [away, turn],
            "planar": [along, tilt],
            "point-on-plane": [along],
            "point-on-line": [away],
            "welded": [gap, turn],
        }
    return ca.vertcat(*rows[closure.joint])
