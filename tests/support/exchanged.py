"""What MuJoCo and Pinocchio make of exported files at a state of ours: forces of the tree, rows of the loops."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

import parflex

Array = np.ndarray
LABELS = ("x", "y", "theta")


class Moving:
    """A state of a robot: positions, rates, accelerations and efforts of ours."""

    def __init__(self, robot, state) -> None:
        self.robot, self.tree = robot, robot.tree
        result = parflex.inverse_dynamics(robot, state.configuration, state.velocity, state.acceleration)
        self.q, self.qd, self.qdd = state.configuration.q, np.array(result.rates), np.array(result.accelerations)
        self.change = self.tree.rate_changes(self.qd, self.qdd)
        self.effort = result.efforts

    @classmethod
    def along_freedoms(cls, robot, rng):
        """Home, with rates that keep its loops closed, under no known efforts."""
        moving = cls.__new__(cls)
        at = parflex.configure(robot)
        moving.robot, moving.tree, moving.q, moving.effort = robot, robot.tree, at.q, {}
        moving.qd, moving.qdd = np.zeros(robot.tree.n), np.zeros(robot.tree.n)
        rates = at.null_space @ rng.standard_normal(at.null_space.shape[1])
        moving.qd[robot.free] = rates * robot.tree.rate_units[robot.free]
        moving.change = robot.tree.rate_changes(moving.qd, moving.qdd)
        return moving

    def joints(self):
        """Name, coordinates, rates and their derivatives; bodies in the plane by axes of the world."""
        for link in self.tree.links:
            q, v, a, c = self.q[link.q], self.qd[link.v], self.qdd[link.v], self.change[link.v]
            if link.joint.kind == "planar":
                turn = link.joint.transform(q)[0][:2, :2]
                values = zip(q, [*(turn @ v[:2]), v[2]], [*(turn @ a[:2]), a[2]], strict=True)
                for label, (one, rate, change) in zip(LABELS, values, strict=True):
                    yield f"{link.name}.{label}", [one], [rate], [change]
            elif link.joint.pitch:
                yield link.name, q, v, c
                yield f"{link.name}.lead", *(link.joint.pitch * value for value in (q, v, c))
            elif link.joint.position_labels:
                yield link.name, q, v, (a, c, link.joint.transform(q)[0]) if link.joint.kind == "free" else c


@dataclass
class Found:
    """Forces along all rates of an engine, where motors stand among them, rows of loops and how open these are."""

    force: Array
    motors: dict[str, int]
    rows: Array
    opening: float

    def misses(self, moving: Moving) -> float:
        """What the forces leave beside our efforts and some forces in the loops, relative."""
        left = self.force.copy()
        for name, effort in moving.effort.items():
            left[self.motors[name]] -= effort
        if len(self.rows):
            left = left - self.rows.T @ np.linalg.lstsq(self.rows.T, left, rcond=1e-10)[0]
        return float(np.abs(left).max() / np.abs(self.force).max())


def by_mujoco(mujoco, file: str, moving: Moving) -> Found:
    """MuJoCo's inverse dynamics of the tree and its equality constraints."""
    model = mujoco.MjModel.from_xml_path(file)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(model)
    wanted = np.zeros(model.nv)
    for name, q, v, change in moving.joints():
        if isinstance(change, tuple):  # a free body: it moves in axes of the world and turns in its own
            a, _, turn = change
            v, change = [*(turn @ v[:3]), *v[3:]], [*(turn @ a[:3]), *a[3:]]
        joint = model.joint(name)
        at, first = joint.qposadr[0], joint.dofadr[0]
        data.qpos[at : at + len(q)], data.qvel[first : first + len(v)] = q, v
        wanted[first : first + len(v)] = change
    mujoco.mj_forward(model, data)
    equal = data.efc_type[: data.nefc] == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    rows = data.efc_J.reshape(data.nefc, model.nv)[equal].copy()
    opening = np.abs(data.efc_pos[: data.nefc][equal]).max(initial=0)
    opening = max(opening, np.abs(rows @ data.qvel).max(initial=0) / np.abs(data.qvel).max())
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data.qacc[:] = wanted
    mujoco.mj_inverse(model, data)
    force = data.qfrc_inverse + model.dof_frictionloss * np.sign(data.qvel)
    return Found(force, {name: model.joint(name).dofadr[0] for name in moving.effort}, rows, float(opening))


def by_pinocchio(files, moving: Moving) -> Found:
    """Pinocchio's inverse dynamics of the tree and rows of the frames that the file beside it ties."""
    model = pin.buildModelFromUrdf(files[0])
    beside = dict(line.split(": ", 1) for line in Path(files[1]).read_text().splitlines() if not line.startswith("#"))
    beside = {key: json.loads(value) for key, value in beside.items()}
    model.gravity.linear = np.array(beside["gravity"])
    work, q = model.createData(), pin.neutral(model)
    v, a, known = np.zeros(model.nv), np.zeros(model.nv), set()
    for name, own, rate, change in moving.joints():
        joint = model.joints[model.getJointId(name)]
        if isinstance(change, tuple):
            own, change = own[[0, 1, 2, 4, 5, 6, 3]], change[1]
        elif joint.nq == 7:  # a ball: a loose body that is held at a point
            own, rate, change = [0, 0, 0, *own[1:], own[0]], [0, 0, 0, *rate], [0, 0, 0, *change]
        elif joint.nq == 2:  # a turn without limits
            own = [np.cos(own[0]), np.sin(own[0])]
        q[joint.idx_q : joint.idx_q + joint.nq] = own
        v[joint.idx_v : joint.idx_v + joint.nv], a[joint.idx_v : joint.idx_v + joint.nv] = rate, change
        known |= set(range(joint.idx_v, joint.idx_v + joint.nv))
    loose = [k for k in range(model.nv) if k not in known]  # joints between the ends of loops
    pairs = [[model.getFrameId(name) for name in pair] for pair in beside["closed_loop"]]
    for _ in range(4):  # of Newton: joints of loops stand anywhere
        rows, gap = loop_rows(model, work, q, pairs, beside["type"])
        step = np.zeros(model.nv)
        if loose:
            step[loose] = np.linalg.lstsq(rows[:, loose], -gap, rcond=None)[0]
        q = pin.integrate(model, q, step)
    rows, gap = loop_rows(model, work, q, pairs, beside["type"])
    force, followed = pin.rnea(model, work, q, v, a), []
    for joint in ElementTree.parse(files[0]).getroot().iter("joint"):
        dynamics, mimic = joint.find("dynamics"), joint.find("mimic")
        k = model.joints[model.getJointId(joint.get("name"))].idx_v if model.existJointName(joint.get("name")) else -1
        if dynamics is not None:
            force[k] += float(dynamics.get("damping")) * v[k] + float(dynamics.get("friction")) * np.sign(v[k])
        if mimic is not None:
            row = np.zeros(model.nv)
            row[k], row[model.joints[model.getJointId(mimic.get("joint"))].idx_v] = 1, -float(mimic.get("multiplier"))
            followed.append(row)
    for name, inertia in beside["rotor_inertia"].items():
        k = model.joints[model.getJointId(name)].idx_v
        force[k] += inertia * a[k]
    for link in moving.tree.links:  # URDF has no springs, and a note says so
        if link.terms.stiffness:
            k = model.joints[model.getJointId(link.name)].idx_v
            force[k] += link.terms.stiffness * (moving.q[link.q.start] - link.terms.rest)
    rows = np.vstack([rows, *followed])
    if loose:
        v[loose] = np.linalg.lstsq(rows[:, loose], -rows @ v, rcond=None)[0]
    opening = max(np.abs(gap).max(initial=0), np.abs(rows @ v).max(initial=0) / np.abs(v).max())
    motors = {name: model.joints[model.getJointId(name)].idx_v for name in beside["name_mot"]}
    return Found(force, motors, rows, float(opening))


def loop_rows(model, work, q: Array, pairs, kinds) -> tuple[Array, Array]:
    """Rows of all tied frames, and how far these are apart."""
    pin.computeJointJacobians(model, work, q)
    pin.updateFramePlacements(model, work)
    rows, gaps = [np.zeros((0, model.nv))], [np.zeros(0)]
    for (one, other), kind in zip(pairs, kinds, strict=True):
        first, second = work.oMf[one], work.oMf[other]
        J = [pin.getFrameJacobian(model, work, frame, pin.LOCAL_WORLD_ALIGNED) for frame in (one, other)]
        difference = J[1] - J[0]
        gap = second.translation - first.translation
        turn = first.rotation @ pin.log3(first.rotation.T @ second.rotation)
        rows.append(difference[:3] if kind == "3d" else difference)
        gaps.append(gap if kind == "3d" else np.r_[gap, turn])
    return np.vstack(rows), np.concatenate(gaps)
