"""What ties bodies and joints of a model of MuJoCo beside the tree: equalities, tendons, actuators."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.exchange.importing.foreign_robot import E3, Array, numbers
from parflex.spatial.rotations import compose, exact_entries, quaternion_matrix

SAME = 1e-6  # of their distance: two pairs of points that make a pin are as far apart on both bodies
RIGID = "constraints of MuJoCo are soft; those here are rigid"


class MjcfTies:
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
            if min(lengths) > 1e-9 and abs(lengths[0] - lengths[1]) <= SAME * lengths[0]:
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
        return numbers(exact_entries(u))

    def _close(self, name: str, ends: list[str], joint: str, more: dict[str, Any]) -> None:
        given = self.robot.names.give(name)
        self.robot.closure.append({"name": given, "between": ends, "joint": joint} | more)

    def _weld(self, number: int, name: str, data: Array) -> None:
        """Two frames that coincide: of sites, or of bodies as they stand in the reference."""
        if self._by_sites(number):
            sites = [int(self.model.eq_obj1id[number]), int(self.model.eq_obj2id[number])]
            ends = [self.tables.site(site) for site in sites]
        else:
            (one, other), _ = self._ends(number, (data[:3], data[3:6]))
            turn = exact_entries(quaternion_matrix(data[6:10] / np.linalg.norm(data[6:10])))
            ends = [self._point(f"{name}.A", one, turn, data[3:6]), self._point(f"{name}.B", other, E3, data[:3])]
        turns = data[10] != 0
        self._close(name, ends, "welded" if turns else "spherical", {})

    def _reference(self, joint: int) -> float:
        return float(self.model.qpos0[self.model.jnt_qposadr[joint]])

    def _joints(self, number: int, name: str, data: Array) -> None:
        """One joint follows another by a straight line, or is locked."""
        one, other = int(self.model.eq_obj1id[number]), int(self.model.eq_obj2id[number])
        if one not in self.tables.joints or (other >= 0 and other not in self.tables.joints):
            self.robot.drop("equality", name, "one of its joints does not have one axis")
        elif other < 0:
            table = self.robot.of(self.tables.joints[one])
            table |= {"locked": True, "start": self._reference(one) + float(data[0])}
        elif data[2:5].any():
            self.robot.drop("equality", name, "a polynomial: couplings are straight lines")
            self.robot.warnings.append(f"the equality '{name}' is left out: the robot has a freedom more")
        else:
            offset = self._reference(one) + data[0] - data[1] * self._reference(other)
            self._couple(
                name, {self.tables.joints[one]: 1.0, self.tables.joints[other]: -float(data[1])}, float(offset)
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
        one, other = int(model.eq_obj1id[number]), int(model.eq_obj2id[number])
        total = float(model.tendon_length0[one]) + float(data[0])
        terms = self._sum(one)
        if other >= 0 and terms is not None and not data[2:5].any() and self._sum(other) is not None:
            total -= float(data[1]) * float(model.tendon_length0[other])
            for joint, value in (self._sum(other) or {}).items():
                terms[joint] = terms.get(joint, 0.0) - float(data[1]) * value
            self._couple(name, terms, total)
        elif other < 0 and terms:
            self._couple(name, terms, total)
        elif other < 0 and self._line(one) is not None:
            self._between(name, one, "rod", {"rest": total})
            self.rods.add(one)
        else:
            self.robot.drop("equality", name, "its tendons are neither sums of joints nor straight")

    def _between(self, name: str, tendon: int, kind: str, more: dict[str, Any]) -> None:
        given = self.robot.names.give(name)
        table = {"name": given, "kind": kind, "between": self._line(tendon)}
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
