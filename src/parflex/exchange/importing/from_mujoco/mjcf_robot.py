"""A compiled model of MuJoCo as tables of a robot file: bodies and joints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from parflex.exchange.importing.foreign_names import allowed
from parflex.exchange.importing.foreign_robot import E3, NONE, NOTE, Array, ForeignRobot, Mass, numbers, turn_to
from parflex.exchange.importing.from_mujoco.mjcf_files import compiled
from parflex.exchange.importing.from_mujoco.mjcf_flags import switch_off
from parflex.exchange.importing.from_mujoco.mjcf_meshes import carry_meshes
from parflex.exchange.importing.from_mujoco.mjcf_ties import MjcfTies
from parflex.spatial.rotations import compose, exact_entries, exact_rotation, quaternion_matrix

FREE, BALL, SLIDE, HINGE = range(4)  # kinds of joints
MANY_SITES = 100  # above this, only those that something is tied to become points


def mjcf_robot(file: str) -> ForeignRobot:
    """The tables of a file of MuJoCo."""
    mujoco, model, moved = compiled(file)
    return _MjcfTables(mujoco, model, file, moved).whole()


def turned(quaternion: Array) -> Array:
    """Rotation matrix of a quaternion of MuJoCo."""
    return exact_entries(quaternion_matrix(quaternion / np.linalg.norm(quaternion)))


class _MjcfTables:
    """Bodies from the world outwards; joints of one body follow each other, the last one carries it."""

    def __init__(self, mujoco: Any, model: Any, file: str, moved: bool) -> None:
        self.mujoco, self.model, self.moved = mujoco, model, moved
        title = self._word(mujoco.mjtObj.mjOBJ_MODEL, 0) or Path(file).stem
        self.robot = ForeignRobot(allowed(title) or "robot", Path(file).name)
        self.at: dict[int, tuple[str, Array, Array]] = {0: ("base", E3, NONE)}
        self.moving: set[int] = set()
        self.joints: dict[int, str] = {}  # names of joints with one axis
        self.sites: dict[int, str] = {}
        self.start, self.key = self._start()

    def whole(self) -> ForeignRobot:
        robot, model = self.robot, self.model
        switch_off(self.mujoco, model, robot)
        names = self._names()
        for body in range(1, model.nbody):
            self._body(body, names[body])
        for site in range(model.nsite if model.nsite <= MANY_SITES else 0):
            self.site(site)
        MjcfTies(self).all_of_them()
        self._left_out()
        return robot

    def word(self, kind: str, number: int, otherwise: str) -> str:
        """The name of something, or one for what has none."""
        return self._word(getattr(self.mujoco.mjtObj, f"mjOBJ_{kind}"), number) or otherwise

    def _word(self, kind: Any, number: int) -> str:
        return self.mujoco.mj_id2name(self.model, kind, number) or ""

    def _start(self) -> tuple[Array, str]:
        """Coordinates of the key `home`, else of the first, else the reference."""
        model = self.model
        keys = [self._word(self.mujoco.mjtObj.mjOBJ_KEY, k) for k in range(model.nkey)]
        if not keys:
            return np.array(model.qpos0), ""
        chosen = keys.index("home") if "home" in keys else 0
        return np.array(model.key_qpos[chosen]), keys[chosen] or "the first"

    def _names(self) -> dict[int, list[str]]:
        """A name for each joint of each body, or for the body where it has none; joints keep theirs first."""
        model, names = self.model, self.robot.names
        found: dict[int, list[str]] = {}
        for named in (True, False):
            for body in range(1, model.nbody):
                owner = self.word("BODY", body, f"body{body}")
                first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
                own = found.setdefault(body, [""] * max(count, 1))
                for k in range(count):
                    word = self._word(self.mujoco.mjtObj.mjOBJ_JOINT, first + k)
                    if bool(word) == named:
                        own[k] = names.give(word, owner if count == 1 else f"{owner}.joint{k + 1}")
                if not count and not named:
                    own[0] = names.give(owner)
        return found

    def mass(self, body: int) -> Mass | None:
        """Mass of a body in its own axes."""
        model = self.model
        m, I = float(model.body_mass[body]), np.diag(model.body_inertia[body])
        if not m and not I.any():
            return None
        return Mass(m, NONE, I).seen_from(turned(model.body_iquat[body]), np.array(model.body_ipos[body]))

    def _body(self, body: int, names: list[str]) -> None:
        model, robot = self.model, self.robot
        parent = int(model.body_parentid[body])
        above, R0, p0 = self.at[parent]
        R, p = compose(R0, p0, turned(model.body_quat[body]), np.array(model.body_pos[body]))
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        owner = self.word("BODY", body, f"body{body}")
        if parent in self.moving or count:
            self.moving.add(body)
        mass = self.mass(body)
        if count == 0:
            self._fixed(body, owner, names[0], above, R, p, mass)
            return
        for k in range(count):
            above, R, p = self._joint(first + k, names[k], above, R, p)
        self.at[body] = (above, R, p)
        table = robot.of(above)
        if mass is not None:
            table["inertia"] = mass.seen_from(R, p).table()
        if owner != above:
            table[NOTE] = f"body {owner}"

    def _fixed(self, body: int, owner: str, name: str, above: str, R: Array, p: Array, mass: Mass | None) -> None:
        if mass is not None and body in self.moving:
            self.robot.add_frame(name, above, R, p, inertia=mass.table())
        else:
            self.robot.add_point(name, above, R, p)
            if mass is not None:
                self.robot.drop("inertia", owner, "it is fixed to the ground")
        self.at[body] = (name, E3, NONE)
        if int(self.model.body_mocapid[body]) >= 0:
            self.robot.drop("mocap", owner, "it is fixed here")

    def _joint(self, joint: int, name: str, above: str, R: Array, p: Array) -> tuple[str, Array, Array]:
        """One joint; gives the frame on it and where the body stands in that."""
        model, robot = self.model, self.robot
        kind, q = int(model.jnt_type[joint]), int(model.jnt_qposadr[joint])
        anchor, axis = np.array(model.jnt_pos[joint]), np.array(model.jnt_axis[joint])
        if kind == FREE:
            robot.add_frame(name, "base", E3, NONE, joint="free", start=numbers(self.start[q : q + 7]))
            self._lost_terms(joint, name, 6)
            return name, E3, NONE
        if kind == BALL:
            start = self.start[q : q + 4]
            given = None if np.array_equal(start, [1, 0, 0, 0]) else numbers(start)
            robot.add_frame(name, above, *compose(R, p, E3, anchor), joint="spherical", start=given)
            self._lost_terms(joint, name, 3)
            return name, E3, -anchor
        turn, ref = turn_to(axis), float(model.qpos0[q])
        if kind == SLIDE:
            place, word, back = compose(R, p, turn, -ref * axis), "prismatic", NONE
        else:
            place, word = compose(R, p, exact_entries(turn @ exact_rotation(2, -ref)), anchor), "revolute"
            back = -turn.T @ anchor
        robot.add_frame(name, above, *place, joint=word, start=float(self.start[q]), **self._terms(joint))
        self.joints[joint] = name
        return name, turn.T, back

    def _terms(self, joint: int) -> dict[str, Any]:
        """What acts in a joint with one axis."""
        model = self.model
        dof, q = int(model.jnt_dofadr[joint]), int(model.jnt_qposadr[joint])
        low, high = (float(value) for value in model.jnt_range[joint])
        stiffness, rub = float(model.jnt_stiffness[joint]), float(model.dof_frictionloss[dof])
        self._odd_laws(joint, dof)
        rest = float(model.qpos_spring[q])
        return {
            "limits": [low, high] if model.jnt_limited[joint] and low < high else None,
            "effort_limit": self._effort_limit(joint),
            "motor_inertia": float(model.dof_armature[dof]),
            "friction": {"coulomb": rub} if rub else None,
            "spring": ({"stiffness": stiffness} | ({"rest": rest} if rest else {})) if stiffness else None,
            "damper": float(model.dof_damping[dof]),
        }

    def _effort_limit(self, joint: int) -> float | None:
        """The largest effort of actuators at a joint; a range that is not symmetric is left out."""
        if not self.model.jnt_actfrclimited[joint]:
            return None
        low, high = (float(value) for value in self.model.jnt_actfrcrange[joint])
        if low == -high < 0:
            return high
        name = self.word("JOINT", joint, f"joint {joint}")
        self.robot.drop("effort range", name, f"from {low:g} to {high:g}: an effort_limit is a magnitude")
        return None

    def _odd_laws(self, joint: int, dof: int) -> None:
        """Springs and dampers that are not linear, in versions of MuJoCo that have them."""
        name = self.word("JOINT", joint, f"joint {joint}")
        laws = (("jnt_stiffnesspoly", joint, "spring"), ("jnt_springyield", joint, "spring"))
        for word, number, what in (*laws, ("dof_dampingpoly", dof, "damper")):
            if np.any(getattr(self.model, word, np.zeros(max(joint, dof) + 1))[number]):
                self.robot.drop(what, name, "the part of its law that is not linear")

    def _lost_terms(self, joint: int, name: str, count: int) -> None:
        """Springs, dampers, friction and armature of balls and loose bodies: they need one axis here."""
        model, dof = self.model, int(self.model.jnt_dofadr[joint])
        own = slice(dof, dof + count)
        for word, value in (
            ("spring", model.jnt_stiffness[joint]),
            ("damper", np.any(model.dof_damping[own])),
            ("friction", np.any(model.dof_frictionloss[own])),
            ("armature", np.any(model.dof_armature[own])),
            ("limits", model.jnt_limited[joint]),
        ):
            if value:
                self.robot.drop(word, name, "only joints with one axis have it here")

    def site(self, site: int) -> str:
        """The point at a site."""
        if site not in self.sites:
            model = self.model
            frame, R, p = self.at[int(model.site_bodyid[site])]
            place = compose(R, p, turned(model.site_quat[site]), np.array(model.site_pos[site]))
            name = self.robot.names.give(self._word(self.mujoco.mjtObj.mjOBJ_SITE, site), f"site{site}")
            self.sites[site] = self.robot.add_point(name, frame, *place)
        return self.sites[site]

    def _left_out(self) -> None:
        model, robot = self.model, self.robot
        if self.key:
            robot.warnings.append(f"start values are those of the key '{self.key}'")
        if np.any(model.geom_contype) or np.any(model.geom_conaffinity):
            robot.drop("contact", "all", "parflex has no contacts")
        carry_meshes(self, self.moved)
        for sensor in range(model.nsensor):
            robot.drop("sensor", self.word("SENSOR", sensor, f"sensor{sensor}"), "ask for outputs of runs instead")
        for word, number in (("flex", getattr(model, "nflex", 0)), ("plugin", getattr(model, "nplugin", 0))):
            if number:
                robot.drop(word, f"{number} of them", "a robot file has none")
        if model.opt.density or model.opt.viscosity or np.any(model.opt.wind):
            robot.drop("fluid", "option", "parflex has no drag of air or water")
