"""MJCF import: bodies, joints, constraints and actuators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from parflex.exchange.imported_tables import (
    E3,
    NONE,
    NOTE,
    Array,
    ImportedTables,
    Mass,
    allowed,
    plain_numbers,
    rotation_to,
)
from parflex.exchange.mjcf_compiler import compile_model
from parflex.exchange.untrusted_files import MESH_FORMATS, NO_MESH, OTHER_MESH
from parflex.spatial.rotations import compose, exact_entries, exact_rotation, quaternion_matrix, unit_quaternion

FREE, BALL, SLIDE, HINGE = range(4)  # kinds of joints

MANY_SITES = 100  # above this, only those that something is tied to become points

SAME_DISTANCE = 1e-6  # of their distance: two pairs of points that make a pin are as far apart on both bodies

RIGID = "constraints of MuJoCo are soft; those here are rigid"

SWITCHED = {  # by flag what is left out, and its arrays in a compiled model
    "equality": ("equalities", ("eq_active0",)),
    "frictionloss": ("friction of joints and tendons", ("dof_frictionloss", "tendon_frictionloss")),
    "limit": ("limits of joints and tendons", ("jnt_limited", "tendon_limited")),
    "spring": ("springs", ("jnt_stiffness", "jnt_stiffnesspoly", "jnt_springyield", "tendon_stiffness")),
    "damper": ("dampers", ("dof_damping", "dof_dampingpoly", "tendon_damping")),
}  # fmt: skip

TOGETHER = {"constraint": ("equality", "frictionloss", "limit"), "passive": ("spring", "damper")}

SAME_GRAVITY = 1e-12  # of a share of gravity

SHAPES = "robot files have no shapes"


def mjcf_robot(file: str) -> ImportedTables:
    """The tables of a file of MuJoCo."""
    mujoco, model, moved = compile_model(file)
    return _MjcfTables(mujoco, model, file, moved).whole()


def turned(quaternion: Array) -> Array:
    """Rotation matrix of a quaternion of MuJoCo."""
    return exact_entries(quaternion_matrix(unit_quaternion(quaternion)))


class _MjcfTables:
    """Bodies from the world outwards; joints of one body follow each other, the last one carries it."""

    def __init__(self, mujoco: Any, model: Any, file: str, moved: bool) -> None:
        self.mujoco, self.model, self.moved = mujoco, model, moved
        title = self._word(mujoco.mjtObj.mjOBJ_MODEL, 0) or Path(file).stem
        self.robot = ImportedTables(allowed(title) or "robot", Path(file).name)
        self.at: dict[int, tuple[str, Array, Array]] = {0: ("base", E3, NONE)}
        self.moving: set[int] = set()
        self.joints: dict[int, str] = {}  # names of joints with one axis
        self.sites: dict[int, str] = {}
        self.start, self.key = self._start()

    def whole(self) -> ImportedTables:
        robot, model = self.robot, self.model
        switch_off(self.mujoco, model, robot)
        names = self._names()
        for body in range(1, model.nbody):
            self._body(body, names[body])
        for site in range(model.nsite if model.nsite <= MANY_SITES else 0):
            self.site(site)
        MjcfConstraints(self).all_of_them()
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
        result: dict[int, list[str]] = {}
        for named in (True, False):
            for body in range(1, model.nbody):
                owner = self.word("BODY", body, f"body{body}")
                first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
                joint_names = result.setdefault(body, [""] * max(count, 1))
                for k in range(count):
                    word = self._word(self.mujoco.mjtObj.mjOBJ_JOINT, first + k)
                    if bool(word) == named:
                        joint_names[k] = names.give(word, owner if count == 1 else f"{owner}.joint{k + 1}")
                if not count and not named:
                    joint_names[0] = names.give(owner)
        return result

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
            robot.add_frame(name, "base", E3, NONE, joint="free", start=plain_numbers(self.start[q : q + 7]))
            self._lost_terms(joint, name, 6)
            return name, E3, NONE
        if kind == BALL:
            start = self.start[q : q + 4]
            initial = None if np.array_equal(start, [1, 0, 0, 0]) else plain_numbers(start)
            robot.add_frame(name, above, *compose(R, p, E3, anchor), joint="spherical", start=initial)
            self._lost_terms(joint, name, 3)
            return name, E3, -anchor
        turn, ref = rotation_to(axis), float(model.qpos0[q])
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
        dofs = slice(dof, dof + count)
        for word, value in (
            ("spring", model.jnt_stiffness[joint]),
            ("damper", np.any(model.dof_damping[dofs])),
            ("friction", np.any(model.dof_frictionloss[dofs])),
            ("armature", np.any(model.dof_armature[dofs])),
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
            robot.report(f"start values are those of the key '{self.key}'")
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


class MjcfConstraints:
    """Writes closures, couplings, elements and motors into the tables."""

    def __init__(self, tables: Any) -> None:
        self.tables, self.mujoco, self.model, self.robot = tables, tables.mujoco, tables.model, tables.robot
        self.connects: dict[tuple[int, int], list[tuple[str, Array, Array]]] = {}
        self.rods: set[int] = set()  # tendons whose length an equality holds
        self.wound: set[int] = set()  # tendons that an actuator drives

    def all_of_them(self) -> None:
        """Equalities, then actuators, then what tendons do beside."""
        for number in range(self.model.neq):
            self._equality(number)
        for pair, points in self.connects.items():
            self._connected(pair, points)
        if np.any(self.model.eq_active0):
            self.robot.drop("softness", "equality", RIGID)
        groups = int(self.model.opt.disableactuator)
        for actuator in range(self.model.nu):
            if groups >> max(int(self.model.actuator_group[actuator]), 0) & 1:
                name = self.tables.word("ACTUATOR", actuator, f"actuator{actuator}")
                self.robot.drop("actuator", name, "its group is switched off in the source")
            else:
                self._actuator(actuator)
        for tendon in range(self.model.ntendon):
            self._tendon(tendon)

    def _equality(self, number: int) -> None:
        model, kinds = self.model, self.mujoco.mjtEq
        kind, data = int(model.eq_type[number]), np.array(model.eq_data[number])
        name = self.tables.word("EQUALITY", number, f"equality{number}")
        if not model.eq_active0[number]:
            self.robot.drop("equality", name, "it is not active at the start")
        elif kind == int(kinds.mjEQ_CONNECT):
            bodies, points = self._ends(number, (data[:3], data[3:6]))
            self.connects.setdefault(bodies, []).append((name, *points))
        elif kind == int(kinds.mjEQ_WELD):
            self._weld(number, name, data)
        elif kind == int(kinds.mjEQ_JOINT):
            self._joints(number, name, data)
        elif kind == int(kinds.mjEQ_TENDON):
            self._tendons(number, name, data)
        else:
            self.robot.drop("equality", name, "closures and couplings are of other kinds")

    def _by_sites(self, number: int) -> bool:
        kind = getattr(self.model, "eq_objtype", None)
        return kind is not None and int(kind[number]) == int(self.mujoco.mjtObj.mjOBJ_SITE)

    def _ends(self, number: int, points: tuple[Array, Array]) -> tuple[tuple[int, int], list[Array]]:
        """Two bodies and a point of each in its own axes."""
        model = self.model
        ends = [int(model.eq_obj1id[number]), int(model.eq_obj2id[number])]
        if self._by_sites(number):
            points = (np.array(model.site_pos[ends[0]]), np.array(model.site_pos[ends[1]]))
            ends = [int(model.site_bodyid[end]) for end in ends]
        ends = [max(end, 0) for end in ends]
        return (ends[0], ends[1]), list(points)

    def _point(self, name: str, body: int, R: Array, p: Array) -> str:
        frame, R0, p0 = self.tables.at[body]
        return str(self.robot.add_point(self.robot.names.give(name, say=False), frame, *compose(R0, p0, R, p)))

    def _connected(self, pair: tuple[int, int], ties: list[tuple[str, Array, Array]]) -> None:
        """One point of two bodies is a ball; two points of both, as far apart, are a pin."""
        if len(ties) == 2:
            (name, first, second), (_, far_first, far_second) = ties
            u, v = far_first - first, far_second - second
            lengths = np.linalg.norm(u), np.linalg.norm(v)
            if min(lengths) > 1e-9 and abs(lengths[0] - lengths[1]) <= SAME_DISTANCE * lengths[0]:
                ends = [
                    self._point(f"{name}.{k}", body, E3, p)
                    for k, body, p in zip("AB", pair, (first, second), strict=True)
                ]
                axes = {"axis": self._axis(u / lengths[0]), "axis_2": self._axis(v / lengths[1])}  # of the bodies
                self._close(name, ends, "revolute", axes)
                return
        for name, first, second in ties:
            ends = [
                self._point(f"{name}.{k}", body, E3, p) for k, body, p in zip("AB", pair, (first, second), strict=True)
            ]
            self._close(name, ends, "spherical", {})

    @staticmethod
    def _axis(u: Array) -> list[float]:
        return plain_numbers(exact_entries(u))

    def _close(self, name: str, ends: list[str], joint: str, more: dict[str, Any]) -> None:
        unique = self.robot.names.give(name)
        self.robot.closure.append({"name": unique, "between": ends, "joint": joint} | more)

    def _weld(self, number: int, name: str, data: Array) -> None:
        """Two frames that coincide: of sites, or of bodies as they stand in the reference."""
        if self._by_sites(number):
            sites = [int(self.model.eq_obj1id[number]), int(self.model.eq_obj2id[number])]
            ends = [self.tables.site(site) for site in sites]
        else:
            (first, second), _ = self._ends(number, (data[:3], data[3:6]))
            turn = exact_entries(quaternion_matrix(unit_quaternion(data[6:10])))
            ends = [self._point(f"{name}.A", first, turn, data[3:6]), self._point(f"{name}.B", second, E3, data[:3])]
        turns = data[10] != 0
        self._close(name, ends, "welded" if turns else "spherical", {})

    def _reference(self, joint: int) -> float:
        return float(self.model.qpos0[self.model.jnt_qposadr[joint]])

    def _joints(self, number: int, name: str, data: Array) -> None:
        """One joint follows another by a straight line, or is locked."""
        follower, leader = int(self.model.eq_obj1id[number]), int(self.model.eq_obj2id[number])
        if follower not in self.tables.joints or (leader >= 0 and leader not in self.tables.joints):
            self.robot.drop("equality", name, "one of its joints does not have one axis")
        elif leader < 0:
            table = self.robot.of(self.tables.joints[follower])
            table |= {"locked": True, "start": self._reference(follower) + float(data[0])}
        elif data[2:5].any():
            self.robot.drop("equality", name, "a polynomial: couplings are straight lines")
            self.robot.report(f"the equality '{name}' is left out: the robot has a freedom more", name)
        else:
            offset = self._reference(follower) + data[0] - data[1] * self._reference(leader)
            self._couple(
                name, {self.tables.joints[follower]: 1.0, self.tables.joints[leader]: -float(data[1])}, float(offset)
            )

    def _couple(self, name: str, coefficients: dict[str, float], total: float, **more: float) -> None:
        """The sum of coefficients times coordinates is a number."""
        joint, *others = coefficients
        scale = coefficients[joint]
        terms = {other: -coefficients[other] / scale for other in others if coefficients[other]}
        if not terms:
            self.robot.of(joint).update(locked=True, start=total / scale)
            return
        table: dict[str, Any] = {"name": self.robot.names.give(name), "joint": joint, "terms": terms}
        table |= {"offset": total / scale} if total else {}
        self.robot.coupling.append(table | {key: value for key, value in more.items() if value})

    def _wraps(self, tendon: int) -> list[tuple[int, int, float]]:
        """Kind, number and coefficient of what a tendon runs over."""
        first, count = int(self.model.tendon_adr[tendon]), int(self.model.tendon_num[tendon])
        return [
            (int(self.model.wrap_type[k]), int(self.model.wrap_objid[k]), float(self.model.wrap_prm[k]))
            for k in range(first, first + count)
        ]

    def _sum(self, tendon: int) -> dict[str, float] | None:
        """Coefficients of joints in the length of a tendon; None where it runs through space."""
        wraps = self._wraps(tendon)
        fixed = all(
            kind == int(self.mujoco.mjtWrap.mjWRAP_JOINT) and joint in self.tables.joints for kind, joint, _ in wraps
        )
        return {self.tables.joints[joint]: value for _, joint, value in wraps if value} if fixed and wraps else None

    def _line(self, tendon: int) -> list[str] | None:
        """The two points of a tendon that runs straight."""
        wraps = self._wraps(tendon)
        straight = len(wraps) == 2 and all(kind == int(self.mujoco.mjtWrap.mjWRAP_SITE) for kind, _, _ in wraps)
        return [self.tables.site(site) for _, site, _ in wraps] if straight else None

    def _tendons(self, number: int, name: str, data: Array) -> None:
        """A length that is held, or a sum of joints."""
        model = self.model
        first, second = int(model.eq_obj1id[number]), int(model.eq_obj2id[number])
        total = float(model.tendon_length0[first]) + float(data[0])
        terms = self._sum(first)
        if second >= 0 and terms is not None and not data[2:5].any() and self._sum(second) is not None:
            total -= float(data[1]) * float(model.tendon_length0[second])
            for joint, value in (self._sum(second) or {}).items():
                terms[joint] = terms.get(joint, 0.0) - float(data[1]) * value
            self._couple(name, terms, total)
        elif second < 0 and terms:
            self._couple(name, terms, total)
        elif second < 0 and self._line(first) is not None:
            self._between(name, first, "rod", {"rest": total})
            self.rods.add(first)
        else:
            self.robot.drop("equality", name, "its tendons are neither sums of joints nor straight")

    def _between(self, name: str, tendon: int, kind: str, more: dict[str, Any]) -> None:
        unique = self.robot.names.give(name)
        table = {"name": unique, "kind": kind, "between": self._line(tendon)}
        self.robot.element.append(table | more)

    def _tendon(self, tendon: int) -> None:
        """Springs and dampers of tendons; what else they have is left out."""
        model = self.model
        name = self.tables.word("TENDON", tendon, f"tendon{tendon}")
        k, c = float(model.tendon_stiffness[tendon]), float(model.tendon_damping[tendon])
        for word in ("limited", "frictionloss", "armature"):
            if np.any(getattr(model, f"tendon_{word}", np.zeros(tendon + 1))[tendon]):
                self.robot.drop("tendon", name, f"its {word.replace('limited', 'limits')}")
        if tendon in self.wound or not (k or c):
            return
        terms, line = self._sum(tendon), self._line(tendon)
        low, high = (float(value) for value in model.tendon_lengthspring[tendon])
        if terms and low == high:
            first = next(iter(terms.values()))
            total = high if k else sum(0.0 for _ in terms)
            if len(terms) == 1:
                self._joint_spring(next(iter(terms)), k * first**2, c * first**2, high / first, name)
            else:
                self._couple(name, terms, total, stiffness=k * first**2, damping=c * first**2)
        elif line is None or (low != high and low > 0):
            self.robot.drop("tendon", name, "its spring: it is neither straight nor a sum of joints")
        elif low != high:
            self._between(name, tendon, "cable", {"stiffness": k, "rest": high} | ({"damping": c} if c else {}))
        elif k:
            self._between(name, tendon, "spring", {"stiffness": k, "rest": high} | ({"damping": c} if c else {}))
        else:
            self._between(name, tendon, "damper", {"damping": c})

    def _joint_spring(self, joint: str, k: float, c: float, rest: float, name: str) -> None:
        table = self.robot.of(joint)
        if k and "spring" in table:
            self.robot.drop("tendon", name, "its spring: the joint has one of its own")
        elif k:
            table["spring"] = {"stiffness": k, "rest": rest}
        if c:
            table["damper"] = table.get("damper", 0.0) + c

    def _actuator(self, actuator: int) -> None:
        """Motors are where actuators act on a joint, or on a tendon that drives one."""
        model, kinds = self.model, self.mujoco.mjtTrn
        name = self.tables.word("ACTUATOR", actuator, f"actuator{actuator}")
        kind, target = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator][0])
        if kind in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT)) and target in self.tables.joints:
            self._motor(self.tables.joints[target], name, actuator)
        elif kind == int(kinds.mjTRN_TENDON):
            self._driven_tendon(target, name, actuator)
        else:
            self.robot.drop("actuator", name, "it acts on no joint with one axis")

    def _motor(self, joint: str, name: str, actuator: int) -> None:
        model, table = self.model, self.robot.of(joint)
        if table.get("actuated"):
            self.robot.drop("actuator", name, f"joint '{joint}' has a motor already")
            return
        if table.get("locked"):
            self.robot.drop("actuator", name, f"joint '{joint}' is locked")
            return
        head = {key: table[key] for key in ("name", "parent", "joint", "place") if key in table}
        rest = {key: value for key, value in table.items() if key not in head}
        table.clear()
        table |= head | {"actuated": True} | rest
        gear, bias = float(model.actuator_gear[actuator][0]), model.actuator_biastype[actuator]
        rotor = float(getattr(model, "actuator_armature", np.zeros(model.nu))[actuator])
        rubs = float(getattr(model, "actuator_damping", np.zeros(model.nu))[actuator])
        if rotor:
            table["motor_inertia"] = table.get("motor_inertia", 0.0) + rotor * gear**2
        if rubs:
            table["damper"] = table.get("damper", 0.0) + rubs * gear**2
        if gear != 1 or bias or model.actuator_dyntype[actuator] or float(model.actuator_gainprm[actuator][0]) != 1:
            self.robot.drop("actuator law", name, "gear, gain and feedback: efforts are at the joint here")
        if model.actuator_forcelimited[actuator] or model.actuator_ctrllimited[actuator]:
            self.robot.drop("actuator range", name, "give the joint an effort_limit")

    def _driven_tendon(self, tendon: int, name: str, actuator: int) -> None:
        terms = self._sum(tendon)
        if terms and (len(terms) == 1 or self._one_freedom(set(terms))):
            joint = next(iter(terms))
            self._motor(joint, name, actuator)
            self.robot.drop("actuator law", name, f"it pulls a tendon; here it is the motor of joint '{joint}'")
        elif terms is None and self._line(tendon) is not None and tendon not in self.rods and tendon not in self.wound:
            model = self.model
            more: dict[str, Any] = {"actuated": True}
            k, c = float(model.tendon_stiffness[tendon]), float(model.tendon_damping[tendon])
            more |= {"stiffness": k, "rest": float(model.tendon_lengthspring[tendon][1])} if k else {}
            self._between(name, tendon, "strut", more | ({"damping": c} if c else {}))
            self.wound.add(tendon)
        else:
            self.robot.drop("actuator", name, "its tendon is neither straight nor of one freedom")

    def _one_freedom(self, joints: set[str]) -> bool:
        """Whether couplings make these joints move as one."""
        first, *_ = joints
        reached, grew = {first}, True
        ties = [{table["joint"], *table["terms"]} for table in self.robot.coupling if "stiffness" not in table]
        while grew:
            more = [tie for tie in ties if len(tie) == 2 and len(tie & reached) == 1]
            grew = bool(more)
            reached.update(*more)
        return joints <= reached


def flags_off(mujoco: Any, model: Any) -> set[str]:
    """Words of `<flag>` that are disabled, with those that others take along."""
    bits = {name[7:].lower(): int(bit) for name, bit in vars(mujoco.mjtDisableBit).items() if name.startswith("mjDSBL")}
    off = {name for name, bit in bits.items() if int(model.opt.disableflags) & bit}
    return off.union(*(TOGETHER[name] for name in off if name in TOGETHER))


def switch_off(mujoco: Any, model: Any, robot: ImportedTables) -> None:
    """Set to zero what flags disable, and tell what that was."""
    off = flags_off(mujoco, model)
    for flag, (what, arrays) in SWITCHED.items():
        if flag not in off:
            continue
        switched = [array for name in arrays if (array := getattr(model, name, None)) is not None and np.any(array)]
        for array in switched:
            array[:] = 0
        if switched:
            robot.drop("flag", flag, f"the source switches its {what} off")
            robot.report(f"{what} are left out: the option {flag} is disabled in the source", flag)
    if "actuation" in off and model.nu:
        text = "actuators are motors here, although the option actuation is disabled in the source"
        robot.report(text)
    if {"spring", "damper"} <= off:  # then MuJoCo computes no passive forces
        model.body_gravcomp[:] = 0
    robot.gravity = [0.0, 0.0, 0.0] if "gravity" in off else plain_numbers(model.opt.gravity)
    if any(robot.gravity):
        _felt(mujoco, model, robot)


def _felt(mujoco: Any, model: Any, robot: ImportedTables) -> None:
    """Gravity less the share that all bodies are relieved of; where shares differ, they are not carried over."""
    moving = [body for body in range(1, model.nbody) if model.body_weldid[body] and model.body_subtreemass[body]]
    shares = {body: float(model.body_gravcomp[body]) for body in moving if model.body_mass[body]}
    if not any(shares.values()):
        return
    by_motors = np.any(getattr(model, "jnt_actgravcomp", 0))
    share = next(iter(shares.values()))
    if not by_motors and max(abs(other - share) for other in shares.values()) < SAME_GRAVITY:
        robot.gravity = [(1 - share) * value + 0.0 for value in robot.gravity]
        text = f"all bodies are relieved of {share:.4g} of gravity: it is left out of the gravity here"
        robot.report(text)
        return
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, body) or f"body{body}" for body in shares]
    relieved = [name for name, value in zip(names, shares.values(), strict=True) if value]
    for name in relieved:
        robot.drop("gravity compensation", name, "all bodies feel gravity here")
    robot.report(
        f"gravity compensation of {', '.join(relieved[:4])}{' and others' if len(relieved) > 4 else ''} is left out: "
        "efforts here hold the whole weight" + (" (in the source motors do)" if by_motors else ""),
    )


def carry_meshes(tables: Any, moved: bool) -> None:
    """Geoms with meshes as visuals; `moved`: some mesh has another origin in MuJoCo than in its file.

    Of a body with geoms that touch nothing these are shown, else all of them.
    """
    mujoco, model, robot = tables.mujoco, tables.model, tables.robot
    kind = int(mujoco.mjtGeom.mjGEOM_MESH)
    touching = (np.asarray(model.geom_contype) != 0) | (np.asarray(model.geom_conaffinity) != 0)
    geoms = [k for k in range(model.ngeom) if int(model.geom_type[k]) == kind and int(model.geom_dataid[k]) >= 0]
    shows = {int(model.geom_bodyid[k]) for k in geoms if not touching[k]}
    dropped: dict[int, str] = dict.fromkeys(range(model.nmesh), SHAPES)
    for geom in geoms:
        mesh, body = int(model.geom_dataid[geom]), int(model.geom_bodyid[geom])
        path = _path(model, mesh)
        if path is None or path.suffix.lower() not in MESH_FORMATS or moved:
            dropped[mesh] = NO_MESH if path is None else "its origin is moved in the source" if moved else OTHER_MESH
        elif not touching[geom] or body not in shows:
            mesh_pose = _in_geom(model, mesh)
            frame, R, p = tables.at[body]
            here = compose(R, p, _turned(model.geom_quat[geom]), np.array(model.geom_pos[geom]))
            robot.add_visual(frame, path, *compose(*here, *mesh_pose), np.array(model.mesh_scale[mesh]))
            dropped.pop(mesh, None)
    for mesh, why in dropped.items():
        robot.drop("mesh", tables.word("MESH", mesh, f"mesh{mesh}"), why)
    others = model.ngeom - len(geoms)
    if others:
        robot.drop("shape", f"{others} geoms", SHAPES)


def _path(model: Any, mesh: int) -> Path | None:
    """The file that a mesh was read from."""
    start = int(getattr(model, "mesh_pathadr", np.full(mesh + 1, -1))[mesh])
    if start < 0:
        return None
    path = Path(bytes(model.paths)[start:].split(b"\0")[0].decode(errors="replace"))
    return path if path.is_file() else None


def _in_geom(model: Any, mesh: int) -> tuple[Array, Array]:
    """Where the axes of the file stand in those of a geom, which are principal axes about the centre of the mesh."""
    R = _turned(model.mesh_quat[mesh]).T
    return R, -R @ np.array(model.mesh_pos[mesh])


def _turned(quaternion: Array) -> Array:
    return exact_entries(quaternion_matrix(unit_quaternion(np.array(quaternion))))
