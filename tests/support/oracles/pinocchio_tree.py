"""The same robots with Pinocchio: its kinematics for the closures, its torque regressor for the forces."""

from collections.abc import Mapping, Sequence

import numpy as np
import pinocchio as pin

from . import chart
from .closing import TERMS, ClosedModel, Numbers
from .energy import add_joint_terms
from .reader import Closure, RobotData

JOINTS = {
    "rz": pin.JointModelRZ,
    "rx": pin.JointModelRX,
    "pz": pin.JointModelPZ,
    "spherical": pin.JointModelSpherical,
    "free": pin.JointModelFreeFlyer,
    "planar": pin.JointModelPlanar,
}
WORLD_AXES = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
Row = tuple[np.ndarray, float]


class PinocchioTree(ClosedModel):
    """Tree of Pinocchio joints. Its bodies are massless: the regressor takes any parameters, even unreal."""

    def __init__(self, data: RobotData) -> None:
        self.data = data
        self.coordinates = [rate for frame in data.frames for rate in frame.rates]
        self.model = pin.Model()
        self.model.gravity.linear = data.gravity
        self._frame_ids: dict[str, int] = {}
        carriers = {"base": (0, pin.SE3.Identity())}
        moments = [np.zeros((4, 4))]
        for frame in data.frames:
            joint, offset = carriers[frame.parent]
            placement = offset * pin.SE3(chart.placement(frame))
            if frame.kind != "fixed":
                kind = pin.JointModelHZ(frame.pitch) if frame.kind == "hz" else JOINTS[frame.kind]()
                joint = self.model.addJoint(joint, kind, placement, frame.name)
                moments.append(np.zeros((4, 4)))
                placement = pin.SE3.Identity()
            carriers[frame.name] = (joint, placement)
            shift = placement.homogeneous
            moments[joint] += shift @ chart.pseudo_inertia(frame) @ shift.T
        for name, (joint, placement) in carriers.items():
            added = pin.Frame(name, joint, 0, placement, pin.FrameType.OP_FRAME)
            self._frame_ids[name] = self.model.addFrame(added)
        assert self.model.nv == len(self.coordinates)
        self._parameters = np.concatenate([_parameters(moment) for moment in moments[1:]])
        self._work = self.model.createData()
        self.closure_rows = sum(len(_directions(closure, data.planar, np.eye(3))) for closure in data.closures)
        self._coupled = [c for c in data.couplings if c.stiffness is None]
        self.closure_rows += len(self._coupled)

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
        motion = self._position(q), qd, self._components(qd, qdd)
        regressor = pin.computeJointTorqueRegressor(self.model, self._work, *motion)
        force = regressor @ self._parameters
        count = len(qd)
        rotors, extra = add_joint_terms(self.data, q, qd, np.zeros((count, count)), np.zeros(count), include)
        force = force + rotors @ qdd + extra
        jacobian, _ = self.closure_jacobian(q)
        for name, wrench in (wrenches or {}).items():
            force = force - self._frame(name, qd)[1].T @ np.asarray(wrench, float)
        return force, jacobian

    def closure_jacobian(self, q: Numbers, qd: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the closures in the rates, and what they leave at zero resolved acceleration."""
        rates = np.zeros(self.model.nv) if qd is None else qd
        position = self._position(q)
        pin.computeJointJacobiansTimeVariation(self.model, self._work, position, rates)
        pin.updateFramePlacements(self.model, self._work)
        rows = [row for closure in self.data.closures for row in self._rows(closure, rates)]
        rows += [(np.array([c.weights.get(name, 0.0) for name in self.coordinates]), 0.0) for c in self._coupled]
        if not rows:
            return np.zeros((0, self.model.nv)), np.zeros(0)
        return np.array([row for row, _ in rows]), np.array([bias for _, bias in rows])

    def _rows(self, closure: Closure, qd: np.ndarray) -> list[Row]:
        """Velocity rows and biases: a direction of the first frame normal to the gap, or to one of the second."""
        pose_1, jacobian_1, bias_1 = self._frame(closure.first, qd)
        pose_2, jacobian_2, bias_2 = self._frame(closure.second, qd)
        omega_1, omega_2 = jacobian_1[3:] @ qd, jacobian_2[3:] @ qd
        gap = pose_2.translation - pose_1.translation
        gap_jacobian = jacobian_2[:3] - jacobian_1[:3]
        rows = []
        for n, m in _directions(closure, self.data.planar, pose_1.rotation):
            n_jacobian, n_rate, n_bias = _direction(n, jacobian_1[3:], omega_1, bias_1[3:])
            if m is None:
                other, m_jacobian, m_rate = gap, gap_jacobian, gap_jacobian @ qd
                m_bias = bias_2[:3] - bias_1[:3]
            else:
                other = pose_2.rotation @ m
                m_jacobian, m_rate, m_bias = _direction(other, jacobian_2[3:], omega_2, bias_2[3:])
            rows.append((other @ n_jacobian + n @ m_jacobian, other @ n_bias + 2 * n_rate @ m_rate + n @ m_bias))
        return rows

    def frame_placement(self, q: Numbers, name: str) -> np.ndarray:
        """Pose of a frame in the world, 4 x 4."""
        pin.framesForwardKinematics(self.model, self._work, self._position(q))
        return np.array(self._work.oMf[self._frame_ids[name]].homogeneous)

    def _frame(self, name: str, qd: np.ndarray) -> tuple[pin.SE3, np.ndarray, np.ndarray]:
        """Pose, Jacobian in world axes at the origin, and acceleration at zero resolved accelerations."""
        index = self._frame_ids[name]
        jacobian = pin.getFrameJacobian(self.model, self._work, index, WORLD_AXES)
        variation = pin.getFrameJacobianTimeVariation(self.model, self._work, index, WORLD_AXES)
        still = self._components(qd, np.zeros_like(qd))
        return self._work.oMf[index], jacobian, variation @ qd + jacobian @ still

    def _position(self, q: Numbers) -> np.ndarray:
        """Pinocchio's positions: quaternions scalar last, the angle in the plane by cosine and sine."""
        values: list[float] = []
        for frame in self.data.frames:
            if frame.kind not in chart.POSED:
                values += [q[name] for name in frame.coordinates]
                continue
            rotation, position = chart.pose(frame, q)
            if frame.kind == "planar":
                values += [position[0], position[1], rotation[0, 0], rotation[1, 0]]
            else:
                values += list(position) if frame.kind == "free" else []
                values += list(pin.Quaternion(rotation).coeffs())
        return np.array(values)

    def _components(self, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Derivatives of the components of the rates: v_dot = a - w x v where a frame is free."""
        result = qdd.copy()
        first = 0
        for frame in self.data.frames:
            if frame.kind == "free":
                v, w = qd[first : first + 3], qd[first + 3 : first + 6]
                result[first : first + 3] -= np.cross(w, v)
            elif frame.kind == "planar":
                vx, vy, wz = qd[first : first + 3]
                result[first : first + 2] -= [-wz * vy, wz * vx]
            first += len(frame.rates)
        return result


def _parameters(moments: np.ndarray) -> np.ndarray:
    """Mass, first moments and Ixx Ixy Iyy Ixz Iyz Izz about the origin, the order of Pinocchio."""
    second = moments[:3, :3]
    inertia = np.trace(second) * np.eye(3) - second
    return np.array([moments[3, 3], *moments[:3, 3], *(inertia[i, j] for j in range(3) for i in range(j + 1))])


def _direction(
    n: np.ndarray, turning: np.ndarray, omega: np.ndarray, alpha: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Jacobian, rate and second derivative (at zero joint acceleration) of a direction fixed in a frame."""
    rate = np.cross(omega, n)
    return -pin.skew(n) @ turning, rate, np.cross(alpha, n) + np.cross(omega, rate)


def _directions(closure: Closure, planar: bool, rotation: np.ndarray) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Pairs: a direction on the first frame in world axes, one on the second in its own (none: the gap)."""
    axis = rotation @ closure.axis
    across = [rotation @ normal for normal in chart.normals(closure.axis)]
    own = rotation.T
    joint = closure.joint
    if planar:
        x, y, z = np.eye(3)
        aside = np.cross(z, axis)
        same = [(x, own @ y)]
        gaps = {
            "revolute": [x, y],
            "prismatic": [aside],
            "point-on-plane": [axis],
            "point-on-line": [aside],
            "welded": [x, y],
        }
    else:
        x, y, z = rotation.T
        e = np.eye(3)
        same = [(x, e[1]), (y, e[2]), (z, e[0])]
        gaps = {
            "spherical": [x, y, z],
            "revolute": [x, y, z],
            "universal": [x, y, z],
            "cylindrical": across,
            "prismatic": across,
            "planar": [axis],
            "point-on-plane": [axis],
            "point-on-line": across,
            "welded": [x, y, z],
        }
    pairs: list[tuple[np.ndarray, np.ndarray | None]] = [(n, None) for n in gaps[joint]]
    if joint in ("prismatic", "welded"):
        pairs += same
    elif joint == "universal":
        pairs += [(axis, closure.axis_2)]
    elif joint in ("revolute", "cylindrical", "planar") and not planar:
        pairs += [(n, closure.axis_2) for n in across]
    return pairs
