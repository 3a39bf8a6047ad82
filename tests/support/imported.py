"""What MuJoCo and Pinocchio find in a file at a state of the robot that was imported from it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

import parflex
from parflex.recursion import motion, newton_euler, pose
from parflex.recursion.newton_euler import joint_forces
from support.exchanged import Moving, loop_rows
from support.states import Draws, random_states

Array = np.ndarray
STEP = 1e-3  # of time, in a difference of fourth order: 1e-12 and rounding of 1e-13


def import_some(file, out, **words) -> parflex.ImportedRobot:
    """Import a file; where its end effector must be named, name the first candidate."""
    try:
        return parflex.import_robot(file, out, **words)
    except parflex.InputError as error:
        if error.key != "end_effector":
            raise
        name = error.hint.partition("one of ")[2].split(", ")[0]
        return parflex.import_robot(file, out, **words, end_effector=name)


class Peer:
    """An engine with a file: inverse dynamics of the tree, rows of its constraints, all in its own coordinates."""

    def rows_rate(self, q: Array, v: Array) -> Array:
        """What the rows of the constraints change by in time, times the rates."""
        at = [self.rows(self.moved(q, k * STEP * v)) @ v for k in (-2, -1, 1, 2)]
        return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * STEP)

    def direct(self, q: Array, v: Array, effort: Array) -> Array:
        """Accelerations under efforts along its rates: Newton's law in what the constraints leave free."""
        n = len(v)
        bias = self.inverse(q, v, np.zeros(n))
        M = np.stack([self.inverse(q, v, e) - bias for e in np.eye(n)], axis=1)
        J = self.rows(q)
        if not len(J):
            return np.linalg.solve(M, effort - bias)
        first = np.linalg.lstsq(J, -self.rows_rate(q, v), rcond=1e-10)[0]
        _, s, Vt = np.linalg.svd(J)
        N = Vt[int((s > 1e-9 * s[0]).sum()) :].T
        return first + N @ np.linalg.solve(N.T @ M @ N, N.T @ (effort - bias - M @ first))

    def inverse_misses(self, moving: Moving) -> float:
        """What its forces leave beside our efforts and some forces in the loops, relative."""
        q, v, a = self.state(moving)
        left = force = self.inverse(q, v, a)
        left = left - self.efforts(moving.effort)
        J = self.rows(q)
        if len(J):
            left = left - J.T @ np.linalg.lstsq(J.T, left, rcond=1e-10)[0]
            assert np.abs(J @ v).max() < 1e-8 * np.abs(v).max() * np.abs(J).max()
        return float(np.abs(left).max() / max(np.abs(force).max(), 1e-3))

    def direct_misses(self, moving: Moving, efforts: dict[str, float]) -> float:
        """How far our accelerations under efforts are from its own, relative."""
        q, v, a = self.state(moving)
        return float(np.abs(self.direct(q, v, self.efforts(efforts)) - a).max() / np.abs(a).max())

    def efforts(self, by_motor: dict[str, float]) -> Array:
        whole = np.zeros(self.n)
        for name, effort in by_motor.items():
            whole[self.place(name)] += effort
        return whole


class MujocoPeer(Peer):
    """MuJoCo: `mj_inverse` of the tree, and rows of its equalities."""

    def __init__(self, mujoco, file: str) -> None:
        self.mujoco = mujoco
        self.model = mujoco.MjModel.from_xml_path(str(file))
        self.model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        self.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        self.data, self.n = mujoco.MjData(self.model), self.model.nv
        self.renamed: dict[str, str] = {}
        for joint in range(self.model.njnt):  # balls and loose bodies have no springs and dampers here
            if self.model.jnt_type[joint] < 2:
                first = self.model.jnt_dofadr[joint]
                own = slice(first, first + (6, 3)[self.model.jnt_type[joint]])
                self.model.jnt_stiffness[joint] = 0
                for word in ("armature", "damping", "frictionloss"):
                    getattr(self.model, f"dof_{word}")[own] = 0

    def joint(self, name: str):
        """The joint of this name; one without a name is called after its body, which may have none either."""
        name = self.renamed.get(name, name)
        nameless = re.fullmatch(r"body(\d+)(?:\.joint(\d+))?", name)
        if nameless:
            return self.model.joint(int(self.model.body_jntadr[int(nameless[1])]) + int(nameless[2] or 1) - 1)
        try:
            return self.model.joint(name)
        except KeyError:
            return self.model.joint(int(self.model.body(name).jntadr[0]))

    def place(self, name: str) -> int:
        return int(self.joint(name).dofadr[0])

    def state(self, moving: Moving) -> tuple[Array, Array, Array]:
        q, v, a = self.model.qpos0.copy(), np.zeros(self.n), np.zeros(self.n)
        for name, own, rate, change in moving.joints():
            if isinstance(change, tuple):  # a free body: it moves in axes of the world and turns in its own
                acceleration, _, turn = change
                rate = [*(turn @ rate[:3]), *rate[3:]]
                change = [*(turn @ acceleration[:3]), *acceleration[3:]]
            joint = self.joint(name)
            at, first = joint.qposadr[0], joint.dofadr[0]
            q[at : at + len(own)] = own
            v[first : first + len(rate)], a[first : first + len(rate)] = rate, change
        return q, v, a

    def inverse(self, q: Array, v: Array, a: Array) -> Array:
        model, flag = self.model, int(self.mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        model.opt.disableflags |= flag
        self.data.qpos[:], self.data.qvel[:], self.data.qacc[:] = q, v, a
        self.mujoco.mj_inverse(model, self.data)
        model.opt.disableflags &= ~flag
        return self.data.qfrc_inverse + model.dof_frictionloss * np.sign(v)

    def rows(self, q: Array) -> Array:
        self.data.qpos[:], self.data.qvel[:] = q, 0
        self.mujoco.mj_forward(self.model, self.data)
        equal = self.data.efc_type[: self.data.nefc] == self.mujoco.mjtConstraint.mjCNSTR_EQUALITY
        J = np.ravel(self.data.efc_J)[: self.data.nefc * self.n].reshape(self.data.nefc, self.n)
        return J[equal].copy()

    def opening(self, q: Array) -> float:
        self.rows(q)
        equal = self.data.efc_type[: self.data.nefc] == self.mujoco.mjtConstraint.mjCNSTR_EQUALITY
        return float(np.abs(self.data.efc_pos[: self.data.nefc][equal]).max(initial=0))

    def moved(self, q: Array, step: Array) -> Array:
        there = q.copy()
        self.mujoco.mj_integratePos(self.model, there, step, 1.0)
        return there


class PinocchioPeer(Peer):
    """Pinocchio: `rnea` of the tree with what URDF says of joints, and rows of tied frames and of mimics."""

    def __init__(self, urdf: str, loops: dict, model=None) -> None:
        self.model = model or pin.buildModelFromUrdf(str(urdf))
        self.model.gravity.linear = np.array(loops.get("gravity", [0, 0, -9.81]))
        self.work, self.n, self.loops = self.model.createData(), self.model.nv, loops
        self.pairs = [[self.frame(name) for name in pair] for pair in loops.get("closed_loop", [])]
        self.kinds = [kind.lower() for kind in loops.get("type", ["6d"] * len(self.pairs))]
        self.damping, self.friction, self.rotor = np.zeros((3, self.n))
        self.mimics = []
        for name, inertia in loops.get("rotor_inertia", {}).items():
            self.rotor[self.place(name)] = inertia
        for joint in ElementTree.parse(urdf).getroot().findall("joint"):
            name, dynamics, mimic = joint.get("name"), joint.find("dynamics"), joint.find("mimic")
            if not self.model.existJointName(name) or self.model.joints[self.model.getJointId(name)].nv != 1:
                continue
            if dynamics is not None:
                self.damping[self.place(name)] = float(dynamics.get("damping", 0))
                self.friction[self.place(name)] = float(dynamics.get("friction", 0))
            if mimic is not None:
                row = np.zeros(self.n)
                row[self.place(name)], row[self.place(mimic.get("joint"))] = 1, -float(mimic.get("multiplier", 1))
                self.mimics.append(row)

    def frame(self, name: str) -> int:
        kinds = (pin.FrameType.BODY, pin.FrameType.JOINT, pin.FrameType.FIXED_JOINT)
        return next(self.model.getFrameId(name, kind) for kind in kinds if self.model.existFrame(name, kind))

    def number(self, name: str) -> int:
        return self.model.getJointId(name)

    def place(self, name: str) -> int:
        return self.model.joints[self.number(name)].idx_v

    def state(self, moving: Moving) -> tuple[Array, Array, Array]:
        q, v, a = pin.neutral(self.model), np.zeros(self.n), np.zeros(self.n)
        for name, own, rate, change in moving.joints():
            joint = self.model.joints[self.number(name)]
            if isinstance(change, tuple):
                own, change = own[[0, 1, 2, 4, 5, 6, 3]], change[1]
            elif len(own) == 4:
                own = own[[1, 2, 3, 0]]
            elif joint.nq == 2:  # a turn without limits
                own = [np.cos(own[0]), np.sin(own[0])]
            q[joint.idx_q : joint.idx_q + joint.nq] = own
            v[joint.idx_v : joint.idx_v + joint.nv], a[joint.idx_v : joint.idx_v + joint.nv] = rate, change
        return q, v, a

    def inverse(self, q: Array, v: Array, a: Array) -> Array:
        tree = pin.rnea(self.model, self.work, q, v, a)
        return tree + self.damping * v + self.friction * np.sign(v) + self.rotor * a

    def rows(self, q: Array) -> Array:
        return np.vstack([loop_rows(self.model, self.work, q, self.pairs, self.kinds)[0], *self.mimics])

    def opening(self, q: Array) -> float:
        return float(np.abs(loop_rows(self.model, self.work, q, self.pairs, self.kinds)[1]).max(initial=0))

    def moved(self, q: Array, step: Array) -> Array:
        return pin.integrate(self.model, q, step)


def driven(robot, state, rng: np.random.Generator) -> tuple[Moving, dict[str, float]]:
    """The state with the accelerations that our direct model finds under random efforts."""
    moving = Moving(robot, state)
    size = max(map(abs, moving.effort.values()))
    efforts = {name: float(rng.normal(0, size)) for name in moving.effort}
    found = parflex.forward_dynamics(robot, state.configuration, state.velocity, efforts)
    moving.qdd = np.array(found.accelerations)
    moving.change = robot.tree.rate_changes(moving.qd, moving.qdd)
    return moving, efforts


def anywhere(robot, rng: np.random.Generator, q: Array | None = None) -> Moving:
    """A state of the tree, without regard to loops, or of the positions that are given."""
    moving, tree = Moving.__new__(Moving), robot.tree
    moving.robot, moving.tree, moving.effort = robot, tree, {}
    moving.q = robot.home.copy() if q is None else q
    for link in tree.links if q is None else ():
        size = link.q.stop - link.q.start
        value = rng.uniform(-2, 2, size)
        if size >= 4:
            value[-4:] = rng.normal(size=4)
            value[-4:] /= np.linalg.norm(value[-4:])
        moving.q[link.q] = value
    moving.qd, moving.qdd = rng.uniform(-3, 3, (2, tree.n))
    moving.change = tree.rate_changes(moving.qd, moving.qdd)
    return moving


def tree_forces(moving: Moving) -> Array:
    """Our forces along all rates of the tree, with what acts in its joints."""
    tree = moving.tree
    at = pose(tree, moving.q)
    moving_on = motion(tree, at, moving.qd, moving.qdd, -tree.gravity)
    return newton_euler(tree, at, moving_on).forces + joint_forces(tree, moving.q, moving.qd, moving.qdd)


def tree_misses(peer: Peer, moving: Moving) -> float:
    """Largest difference of forces along the rates of the tree, relative."""
    q, v, a = peer.state(moving)
    theirs, ours = peer.inverse(q, v, a), np.zeros(peer.n)
    forces = tree_forces(moving)
    for link in moving.tree.links:
        if not link.joint.position_labels:
            continue
        own = forces[link.v]
        if link.joint.kind == "free" and isinstance(peer, MujocoPeer):  # forces there are in axes of the world
            own = [*(link.joint.transform(moving.q[link.q])[0] @ own[:3]), *own[3:]]
        first = peer.place(link.name)
        ours[first : first + len(own)] = own
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def loops_of(file: str | Path) -> dict:
    """A file of loops whose values are JSON, one key in each line."""
    lines = [line.split(": ", 1) for line in Path(file).read_text().splitlines() if line and not line.startswith("#")]
    return {key: json.loads(value) for key, value in lines}


def round_trip_misses(robot, again, state) -> float:
    """How far efforts of a robot that was written and read again are from those of the first, relative."""
    moving = Moving(robot, state)
    one_axis = [link for link in robot.tree.links if link.joint.one_axis]
    known = {link.name for link in again.tree.links if link.joint.one_axis}
    pose_words = {link.name: float(moving.q[link.q.start]) for link in one_axis if link.name in known}
    rates = {link.name: link.v.start for link in one_axis}
    freedoms = robot.mobility.freedoms(len(robot.free))
    motors = [name for name in robot.actuated_names if name in rates][:freedoms]
    found = parflex.inverse_dynamics(
        again,
        pose_words,
        {name: float(moving.qd[rates[name]]) for name in motors},
        {name: float(moving.qdd[rates[name]]) for name in motors},
    )
    size = max(map(abs, moving.effort.values()))
    return max(abs(found.efforts[name] - effort) for name, effort in moving.effort.items()) / size


def total_mass(robot) -> float:
    """Mass of all bodies that move."""
    return float(sum(link.body.inertia_matrix(np.zeros(link.body.size))[0, 0] for link in robot.tree.links))


# files have up to 17 digits, states conditions up to 1e4
TOLERANCE = 1e-8


COUNT = 3


def compare(robot, peer, count=COUNT, seed=3, spread=None):
    """Largest errors of the inverse and of the direct model at random closed states."""
    rng, worst = np.random.default_rng(seed), [0.0, 0.0]
    for state in random_states(robot, count, seed, Draws(), spread):
        moving = Moving(robot, state)
        assert peer.opening(peer.state(moving)[0]) < TOLERANCE
        worst[0] = max(worst[0], peer.inverse_misses(moving))
        worst[1] = max(worst[1], peer.direct_misses(*driven(robot, state, rng)))
    return worst
