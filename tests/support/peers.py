"""MuJoCo and Pinocchio with a file of a robot, at a state of the robot in parflex."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import yaml

import parflex
from parflex.recursion.dynamics import joint_forces, newton_euler
from parflex.recursion.kinematics import motion
from parflex.recursion.kinematics import pose as tree_pose
from support.states import Draws, random_states

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


AXES = {"X": pin.JointModelRX, "Y": pin.JointModelRY, "Z": pin.JointModelRZ}


def with_joints_of(urdf: str, loops: dict):
    """Return the model of Pinocchio with the kinds of joints that the file of loops names."""
    model = pin.buildModelFromUrdf(urdf)
    kinds = dict(zip(loops.get("joint_name", []), loops.get("joint_type", []), strict=True))
    if not kinds:
        return model
    new, held, numbers = pin.Model(), [], {0: 0}
    for k in range(1, model.njoints):
        name, place, parent = model.names[k], model.jointPlacements[k], numbers[model.parents[k]]
        kind, joint, own = kinds.get(name, ""), model.joints[k], model.names[k]
        if kind == "SPHERICAL":
            joint = pin.JointModelSpherical()
        elif kind.startswith("UJOINT"):
            parent = new.addJoint(parent, AXES[kind[-2]](), place, f"{name}_{kind[-2]}")
            joint, place, own = AXES[kind[-1]](), pin.SE3.Identity(), f"{name}_{kind[-1]}"
        numbers[k] = new.addJoint(parent, joint, place, own)
        new.appendBodyToJoint(numbers[k], model.inertias[k], pin.SE3.Identity())
        held += [numbers[k]] if kind == "FIXED" else []
    for frame in list(model.frames)[1:]:
        new.addFrame(pin.Frame(frame.name, numbers[frame.parentJoint], frame.placement, frame.type), False)
    return pin.buildReducedModel(new, held, pin.neutral(new)) if held else new


TOLERANCE = 1e-8  # of efforts: files have up to 17 digits, states conditions up to 1e4
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

    def __init__(self, urdf: str, loops: dict | str | Path = "", model=None) -> None:
        if not isinstance(loops, dict):
            loops = yaml.safe_load(Path(loops).read_text()) if loops else {}
        self.model = model or with_joints_of(str(urdf), loops)
        self.model.gravity.linear = np.array(loops.get("gravity", [0, 0, -9.81]))
        self.work, self.n, self.loops = self.model.createData(), self.model.nv, loops
        self.pairs = [[self.frame(name) for name in pair] for pair in loops.get("closed_loop", [])]
        self.kinds = [kind.lower() for kind in loops.get("type", ["6d"] * len(self.pairs))]
        self.damping, self.friction, self.rotor = np.zeros((3, self.n))
        self.mimics, self.loose = [], []
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
        q, v, a, known = pin.neutral(self.model), np.zeros(self.n), np.zeros(self.n), set()
        for name, own, rate, change in moving.joints():
            joint = self.model.joints[self.number(name)]
            if isinstance(change, tuple):
                own, change = own[[0, 1, 2, 4, 5, 6, 3]], change[1]
            elif joint.nq == 7:  # a ball: a loose body that is held at a point
                own, rate, change = [0, 0, 0, *own[1:], own[0]], [0, 0, 0, *rate], [0, 0, 0, *change]
            elif len(own) == 4:
                own = own[[1, 2, 3, 0]]
            elif joint.nq == 2:  # a turn without limits
                own = [np.cos(own[0]), np.sin(own[0])]
            q[joint.idx_q : joint.idx_q + joint.nq] = own
            v[joint.idx_v : joint.idx_v + joint.nv], a[joint.idx_v : joint.idx_v + joint.nv] = rate, change
            known |= set(range(joint.idx_v, joint.idx_v + joint.nv))
        self.loose = [k for k in range(self.n) if k not in known]  # joints without mass between the ends of loops
        for _ in range(4 if self.loose else 0):  # steps of Newton
            rows, gap = loop_rows(self.model, self.work, q, self.pairs, self.kinds)
            step = np.zeros(self.n)
            step[self.loose] = np.linalg.lstsq(rows[:, self.loose], -gap, rcond=None)[0]
            q = pin.integrate(self.model, q, step)
        if self.loose:
            rows = self.rows(q)
            v[self.loose] = np.linalg.lstsq(rows[:, self.loose], -rows @ v, rcond=None)[0]
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
    at = tree_pose(tree, moving.q)
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


def round_trip_misses(robot, again, state, by_motors: bool = False) -> float:
    """Return how far efforts of a robot that was written and read again are from those of the first, relative."""
    moving, tree = Moving(robot, state), robot.tree
    one_axis = {link.name: link for link in tree.links if link.joint.one_axis}
    known = {link.name for link in again.tree.links if link.joint.one_axis}
    motors = robot.actuated_names
    if not by_motors:
        motors = [name for name in motors if name in one_axis][: robot.mobility.freedoms(len(robot.free))]
    pose = [name for name in (motors if by_motors else one_axis) if by_motors or name in known]
    found = parflex.inverse_dynamics(
        again,
        {name: float(moving.q[one_axis[name].q.start]) for name in pose},
        *({name: float(rates[one_axis[name].v.start]) for name in motors} for rates in (moving.qd, moving.qdd)),
    )
    size = max(map(abs, moving.effort.values()))
    return max(abs(found.efforts[name] - effort) for name, effort in moving.effort.items()) / size


def total_mass(robot) -> float:
    return float(sum(link.body.inertia_matrix(np.zeros(link.body.size))[0, 0] for link in robot.tree.links))


def compare(robot, peer, count=3, seed=3, spread=None):
    """Largest errors of the inverse and of the direct model at random closed states."""
    rng, worst = np.random.default_rng(seed), [0.0, 0.0]
    for state in random_states(robot, count, seed, Draws(), spread):
        moving = Moving(robot, state)
        assert peer.opening(peer.state(moving)[0]) < TOLERANCE
        worst[0] = max(worst[0], peer.inverse_misses(moving))
        worst[1] = max(worst[1], peer.direct_misses(*driven(robot, state, rng)))
    return worst
