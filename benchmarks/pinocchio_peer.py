"""Pinocchio as a peer: its models of the same bodies. What a call of its Python binding costs is taken off.

The cost of a call is that of the same function on a model without joints: arguments are converted and checked in the
same way, and the little that Pinocchio itself does there is taken off with it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
from robots import PlatformState

from parflex.bodies.rigid import RigidBody
from parflex.robot.robot import Robot
from parflex.spatial.rotations import hat
from parflex.tree.tree import Tree

JOINTS = {
    "revolute": pin.JointModelRZ,
    "prismatic": pin.JointModelPZ,
    "free": pin.JointModelFreeFlyer,
    "planar": pin.JointModelPlanar,
}
Call = Callable[[], object]


def inertia(body: RigidBody) -> pin.Inertia:
    """The inertia of a body about its centre of mass."""
    if not body.m:
        return pin.Inertia(0.0, np.zeros(3), np.asarray(body.I, float))
    centre = np.asarray(body.S, float) / body.m
    return pin.Inertia(body.m, centre, np.asarray(body.I, float) - body.m * hat(centre).T @ hat(centre))


def model_of(tree: Tree) -> tuple[pin.Model, list[int]]:
    """The open tree, and the number of Pinocchio's joint for each link."""
    model = pin.Model()
    model.gravity.linear = tree.gravity
    numbers: list[int] = []
    for link in tree.links:
        parent = 0 if link.parent < 0 else numbers[link.parent]
        joint = model.addJoint(parent, JOINTS[link.joint.kind](), pin.SE3(link.rotation, link.position), link.name)
        model.appendBodyToJoint(joint, inertia(link.body), pin.SE3.Identity())
        numbers.append(joint)
    return model, numbers


def _empty() -> tuple[pin.Model, pin.Data, np.ndarray]:
    model = pin.Model()
    return model, model.createData(), np.zeros(0)


class Serial:
    """The inverse model of an open chain."""

    def __init__(self, robot: Robot) -> None:
        self.model, _ = model_of(robot.tree)
        self.data = self.model.createData()

    def inverse(self, state: np.ndarray) -> np.ndarray:
        """Efforts of one row q, qd, qdd."""
        return np.array(pin.rnea(self.model, self.data, *np.split(state, 3)))

    def calls(self, state: np.ndarray) -> tuple[Call, Call]:
        """The call, and the same call on nothing."""
        q, qd, qdd = (part.copy() for part in np.split(state, 3))
        model, data, none = _empty()
        rnea = pin.rnea
        return lambda: rnea(self.model, self.data, q, qd, qdd), lambda: rnea(model, data, none, none, none)

    def regressor(self, state: np.ndarray) -> np.ndarray:
        """Rows of efforts per unit of XX XY XZ YY YZ ZZ MX MY MZ M of each link."""
        found = pin.computeJointTorqueRegressor(self.model, self.data, *np.split(state, 3))
        order = [4, 5, 7, 6, 8, 9, 1, 2, 3, 0]  # theirs: m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz
        return np.array(found[:, [10 * j + k for j in range(self.model.nv) for k in order]])

    def regressor_calls(self, state: np.ndarray) -> tuple[Call, Call]:
        """The call, and the same call on nothing."""
        q, qd, qdd = (part.copy() for part in np.split(state, 3))
        model, data, none = _empty()
        rows = pin.computeJointTorqueRegressor
        return lambda: rows(self.model, self.data, q, qd, qdd), lambda: rows(model, data, none, none, none)


class GoughStewart:
    """The tree of legs and platform with six balls between them as contacts in space."""

    def __init__(self, robot: Robot) -> None:
        tree = robot.tree
        self.robot = robot
        self.model, numbers = model_of(tree)
        self.data = self.model.createData()
        self.contacts = pin.StdVec_RigidConstraintModel()
        self.contact_data = pin.StdVec_RigidConstraintData()
        for loop in robot.closures.loops:
            placed = [
                (numbers[place.link], pin.SE3(place.rotation, place.position)) for place in (loop.first, loop.second)
            ]
            contact = pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D, self.model, *placed[0], *placed[1], pin.LOCAL
            )
            self.contacts.append(contact)
            self.contact_data.append(contact.createData())
        pin.initConstraintDynamics(self.model, self.data, self.contacts, self.contact_data)
        self.placed = list(zip(self.contacts, self.contact_data, strict=True))  # references into both
        self.settings = pin.ProximalSettings(1e-12, 0.0, 1)
        self.platform = next(j for j, link in enumerate(tree.links) if link.joint.kind == "free")
        self.motors = list(robot.actuated)  # both number rates in the order of the tree

    def arrays(self, state: PlatformState) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Positions, rates, their derivatives and forces of the tree in Pinocchio's coordinates."""
        free = self.robot.tree.links[self.platform].v
        w, v = state.R.T @ state.w, state.R.T @ state.v
        # derivatives of components in moving axes: acceleration less w x v
        twist, change = (
            np.concatenate([v, w]),
            np.concatenate([state.R.T @ state.a - np.cross(w, v), state.R.T @ state.al]),
        )
        turn = np.roll(state.quaternion, -1)
        at = self.robot.tree.links[self.platform].q.start
        q = np.insert(state.q, [at] * 7, [*state.p, *turn])
        qd, qdd = (
            np.insert(joints, [free.start] * 6, body) for joints, body in ((state.qd, twist), (state.qdd, change))
        )
        tau = np.zeros(self.model.nv)
        tau[self.motors] = state.effort
        return q, qd, qdd, tau

    def direct(self, state: PlatformState) -> np.ndarray:
        """Acceleration and angular acceleration of the platform in world axes."""
        q, qd, _, tau = self.arrays(state)
        qdd = pin.constraintDynamics(self.model, self.data, q, qd, tau, self.contacts, self.contact_data, self.settings)
        body = qdd[self.robot.tree.links[self.platform].v]
        w, v = state.R.T @ state.w, state.R.T @ state.v
        return np.concatenate([state.R @ (body[:3] + np.cross(w, v)), state.R @ body[3:]])

    def direct_calls(self, state: PlatformState) -> tuple[Call, Call]:
        """The call, and the same call on nothing."""
        q, qd, _, tau = self.arrays(state)
        model, data, none = _empty()
        contacts, contact_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        pin.initConstraintDynamics(model, data, contacts, contact_data)
        dynamics = pin.constraintDynamics
        return (
            lambda: dynamics(self.model, self.data, q, qd, tau, self.contacts, self.contact_data, self.settings),
            lambda: dynamics(model, data, none, none, none, contacts, contact_data, self.settings),
        )

    def inverse(self, state: PlatformState) -> np.ndarray:
        """Efforts: forces of the tree, and the contacts and motors that carry them."""
        q, qd, qdd, _ = self.arrays(state)
        forces = pin.rnea(self.model, self.data, q, qd, qdd)
        pin.computeJointJacobians(self.model, self.data, q)
        self._place_contacts()
        J = pin.getConstraintsJacobian(self.model, self.data, self.contacts, self.contact_data)
        return np.linalg.solve(self._carriers(J), forces)[: len(self.motors)]

    def _place_contacts(self) -> None:
        for contact, data in self.placed:
            contact.calc(self.model, self.data, data)

    def _carriers(self, J: np.ndarray) -> np.ndarray:
        motors = np.zeros((self.model.nv, len(self.motors)))
        motors[self.motors, range(len(self.motors))] = 1.0
        return np.hstack([motors, J.T])

    def inverse_parts(self, state: PlatformState) -> dict[str, tuple[Call, Call]]:
        """The calls that an inverse model is made of, each with the same call on nothing."""
        q, qd, qdd, _ = self.arrays(state)
        model, data, none = _empty()
        contacts, contact_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        forces = np.array(pin.rnea(self.model, self.data, q, qd, qdd))
        pin.computeJointJacobians(self.model, self.data, q)
        rows = pin.getConstraintsJacobian
        carriers = self._carriers(rows(self.model, self.data, self.contacts, self.contact_data))
        one, unit = np.eye(1), np.ones(1)
        nowhere = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, 0, pin.SE3.Identity(), pin.LOCAL)
        unplaced = [(nowhere, nowhere.createData()) for _ in self.contacts]

        def place_nothing() -> None:
            for contact, placed in unplaced:
                contact.calc(model, data, placed)

        return {
            "rnea": (
                lambda: pin.rnea(self.model, self.data, q, qd, qdd),
                lambda: pin.rnea(model, data, none, none, none),
            ),
            "joint Jacobians": (
                lambda: pin.computeJointJacobians(self.model, self.data, q),
                lambda: pin.computeJointJacobians(model, data, none),
            ),
            "places of six contacts": (self._place_contacts, place_nothing),
            "contact Jacobian": (
                lambda: rows(self.model, self.data, self.contacts, self.contact_data),
                lambda: rows(model, data, contacts, contact_data),
            ),
            "solve 24 x 24": (lambda: np.linalg.solve(carriers, forces), lambda: np.linalg.solve(one, unit)),
        }


class ClosedRobot:
    """A closed robot with Pinocchio from Python: rnea, constraint Jacobians and one solve.

    Closures are contacts of points; arrays are in Pinocchio's own coordinates.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.model, numbers = model_of(robot.tree)
        for link in robot.tree.links:
            if link.joint.one_axis:
                self.model.armature[link.v.start] = link.terms.motor_inertia
        self.data = self.model.createData()
        contacts, contact_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for loop in robot.closures.loops:
            ends = [
                (numbers[place.link], pin.SE3(place.rotation, place.position)) for place in (loop.first, loop.second)
            ]
            contacts.append(
                pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, self.model, *ends[0], *ends[1], pin.LOCAL)
            )
            contact_data.append(contacts[len(contacts) - 1].createData())
        pin.initConstraintDynamics(self.model, self.data, contacts, contact_data)
        self.contacts, self.contact_data = contacts, contact_data
        self.placed = list(zip(contacts, contact_data, strict=True))
        rows = [3 * k + axis for k in range(len(contacts)) for axis in range(2 if robot.tree.planar else 3)]
        self.rows = np.array(rows) if robot.tree.planar else slice(None)
        self.motors = list(robot.actuated)
        self.carriers = np.zeros((self.model.nv, self.model.nv))
        self.carriers[self.motors, range(len(self.motors))] = 1.0

    def arrays(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same state in Pinocchio's coordinates: its accelerations are derivatives of components."""
        positions: list[float] = []
        for link in self.robot.tree.links:
            own = q[link.q]
            if link.joint.kind == "free":
                own = np.concatenate([own[:3], np.roll(own[3:], -1)])
            elif link.joint.kind == "planar":
                own = np.array([own[0], own[1], np.cos(own[2]), np.sin(own[2])])
            positions += list(own)
        return np.array(positions), qd.copy(), self.robot.tree.rate_changes(qd, qdd)

    def inverse(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Efforts: forces of the tree, and the contacts and motors that carry them."""
        model, data = self.model, self.data
        forces = pin.rnea(model, data, q, qd, qdd)
        pin.computeJointJacobians(model, data, q)
        for contact, placed in self.placed:
            contact.calc(model, data, placed)
        J = pin.getConstraintsJacobian(model, data, self.contacts, self.contact_data)
        self.carriers[:, len(self.motors) :] = J[self.rows].T
        return np.linalg.solve(self.carriers, forces)[: len(self.motors)]
