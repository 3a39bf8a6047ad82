"""The five-bar robot of docs/coming-from.md in Pinocchio: a tree of four links, and what closes its loop."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

BASE, CRANK, ROD, LINE_MASS = 0.12, 0.3, 0.4, 1.08
MOTORS, PASSIVE = [0, 2], [1, 3]


def _bar(length: float) -> pin.Inertia:
    mass = LINE_MASS * length
    across = mass * length**2 / 12
    return pin.Inertia(mass, np.array([length / 2, 0, 0]), np.diag([1e-6, across, across]))


def _at(x: float) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array([x, 0, 0]))


model = pin.Model()
model.gravity.linear = np.array([0, -9.81, 0])
for side, x in (("left", -BASE), ("right", BASE)):
    crank = model.addJoint(0, pin.JointModelRZ(), _at(x), side)
    model.appendBodyToJoint(crank, _bar(CRANK), pin.SE3.Identity())
    rod = model.addJoint(crank, pin.JointModelRZ(), _at(CRANK), f"{side}-rod")
    model.appendBodyToJoint(rod, _bar(ROD), pin.SE3.Identity())
    model.addFrame(pin.Frame("tip" if side == "left" else "eye", rod, 0, _at(ROD), pin.FrameType.OP_FRAME))
model.armature = np.array([0.01, 0, 0.01, 0])
tip, eye = model.getFrameId("tip"), model.getFrameId("eye")
data = model.createData()


def pin_jacobian(q: np.ndarray) -> np.ndarray:
    """Velocity of the tip relative to the eye per rate, world axes."""
    rows = [pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)[:2] for frame in (tip, eye)]
    return rows[0] - rows[1]


def closed(left: float, right: float) -> np.ndarray:
    """All joint angles at two motor angles, by Newton's method."""
    q = np.array([left, -1.3, right, 1.3])
    for _ in range(8):
        pin.framesForwardKinematics(model, data, q)
        gap = (data.oMf[tip].translation - data.oMf[eye].translation)[:2]
        q[PASSIVE] -= np.linalg.solve(pin_jacobian(q)[:, PASSIVE], gap)
    return q


def reduction(q: np.ndarray) -> np.ndarray:
    """All joint rates per motor rate."""
    J = pin_jacobian(q)
    N = np.zeros((4, 2))
    N[MOTORS] = np.eye(2)
    N[PASSIVE] = -np.linalg.solve(J[:, PASSIVE], J[:, MOTORS])
    return N


def closed_accelerations(q: np.ndarray, v: np.ndarray, motors: np.ndarray) -> np.ndarray:
    """All joint accelerations at those of the motors."""
    pin.forwardKinematics(model, data, q, v, np.zeros(4))
    drift = [
        pin.getFrameClassicalAcceleration(model, data, frame, pin.LOCAL_WORLD_ALIGNED).linear[:2]
        for frame in (tip, eye)
    ]
    a = reduction(q) @ motors
    a[PASSIVE] -= np.linalg.solve(pin_jacobian(q)[:, PASSIVE], drift[0] - drift[1])
    return a
