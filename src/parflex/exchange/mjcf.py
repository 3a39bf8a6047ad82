"""MJCF, the format of MuJoCo: export, and import through MuJoCo's own compiler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import SubElement

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.closure.constraints import Distance, Loop, neutral_rotation
from parflex.exchange.imported_tables import (
    E3,
    NONE,
    NOTE,
    SHAPES,
    Array,
    ImportedTables,
    Mass,
    allowed,
    plain_numbers,
    rotation_to,
)
from parflex.exchange.mjcf_compiler import compile_model
from parflex.exchange.rigid_model import ExportedRobot, RigidModel, RigidPart, centred, is_consistent, xml_row, xml_text
from parflex.exchange.untrusted_files import MESH_FORMATS, NO_MESH, OTHER_MESH, Element
from parflex.io import write_text
from parflex.records import Record, name_list
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.spatial.rotations import (
    compose,
    exact_entries,
    exact_rotation,
    matrix_quaternion,
    quaternion_matrix,
    unit_quaternion,
)
from parflex.tree.tree import GROUND, Place

NAME = "MJCF"
LEAST = 1e-12  # kg m2, or of the largest moment: second moments about the centre that MuJoCo takes for positive
THICK = 0.015  # of a typical length: radius of what is drawn
FREE, BALL, SLIDE, HINGE = range(4)  # kinds of joints
MANY_SITES = 100  # above this, only those that something is tied to become points
SAME_DISTANCE = 1e-6  # of their distance: two pairs of points that make a pin are as far apart on both bodies
SAME_GRAVITY = 1e-12  # of a share of gravity
RIGID = "constraints of MuJoCo are soft; those here are rigid"
SWITCHED = {  # by flag what is left out, and its arrays in a compiled model
    "equality": ("equalities", ("eq_active0",)),
    "frictionloss": ("friction of joints and tendons", ("dof_frictionloss", "tendon_frictionloss")),
    "limit": ("limits of joints and tendons", ("jnt_limited", "tendon_limited")),
    "spring": ("springs", ("jnt_stiffness", "jnt_stiffnesspoly", "jnt_springyield", "tendon_stiffness")),
    "damper": ("dampers", ("dof_damping", "dof_dampingpoly", "tendon_damping")),
}
TOGETHER = {"constraint": ("equality", "frictionloss", "limit"), "passive": ("spring", "damper")}


@dataclass(frozen=True, eq=False, repr=False)
class BodyJoint(Record):
    """One joint of a body of MuJoCo: on its kind, axis and place in the axes of the body."""

    kind: str
    name: str
    axis: Array
    position: Array
    part: RigidPart
    home: float = 0.0


def export_mjcf(robot: Robot, out: str | Path) -> ExportedRobot:
    """Write a robot as MJCF, the file of MuJoCo.

    Loops become equality constraints between sites: `connect` for balls and pins, `weld`. Flexible bodies are rigid.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    out : str or Path
        File to write.

    Returns
    -------
    ExportedRobot
        The file, and notes on what it says otherwise than the robot file.
    """
    model = RigidModel(robot, NAME, ("spring", "damper", "rod"))
    write_text(out, xml_text(mjcf_tree(model), model.notes))
    return ExportedRobot((str(out),), tuple(model.notes))


def mjcf_tree(model: RigidModel) -> Element:
    """The document."""
    robot = model.robot
    if robot.tree.planar:  # only turns about the normal are felt
        parts = enumerate(model.parts)
        model.parts = [replace(part, body=_flat(robot, j, part)) if part.heavy else part for j, part in parts]
    else:
        model.use_consistent_bodies([part.name for part in model.parts if part.heavy and not is_consistent(part.body)])
    root = Element("mujoco", model=robot.name)
    SubElement(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    option = SubElement(root, "option", gravity=xml_row(robot.tree.gravity), timestep="0.001")
    SubElement(option, "flag", contact="disable")
    writer = _Writer(model, root)
    writer.bodies()
    writer.constraints()
    writer.actuators()
    return root


def _flat(robot: Robot, number: int, part: RigidPart) -> RigidBody:
    """A ball with the same mass, centre and inertia about the normal of the plane."""
    normal = neutral_rotation(robot.tree, Place(number, E3, np.zeros(3))).T @ E3[2]
    if not part.body.m > 0:
        return part.body
    centre, I = centred(part.body)
    return RigidBody.from_centre(float(part.body.m), centre, float(normal @ I @ normal) * E3)


class _Writer:
    """Writes the sections of one document."""

    def __init__(self, model: RigidModel, root: Element) -> None:
        self.model, self.robot, self.parts, self.root = model, model.robot, model.parts, root
        robot, self.length = model.robot, model.robot.tree.length
        self.home: list[float] = []
        self.at: dict[int, Element] = {}
        self.sites: set[str] = set()
        self.elastic: Element | None = None
        held = {place.link for loop in model.loops for place in (loop.first, loop.second)}
        held |= {robot.tree.place(end).link for element in robot.description.element for end in element.between}
        self.held = held | {robot.tree.place(robot.tree.end_effector).link}

    def bodies(self) -> None:
        """Bodies within bodies; one without mass lends its joint to the one that it carries."""
        world = SubElement(self.root, "worldbody")
        SubElement(world, "light", pos=xml_row([0, 0, 4 * self.length]), dir="0 0 -1")
        self.at[GROUND] = world
        for child in self.model.children(GROUND):
            self._body(world, child, E3, np.zeros(3), [])
        for name, place in self.model.places.items():
            if place.link in self.at:
                self._site(name, place)
        self._key()

    def _body(self, above: Element, number: int, rotation: Array, position: Array, axes: Sequence[BodyJoint]) -> None:
        part = self.parts[number]
        rotation, position = compose(rotation, position, part.rotation, part.position)
        moved = [_seen_from(axis, part) for axis in axes] + self._axes(part)
        inside = self.model.children(number)
        if not part.heavy and moved:
            if len(inside) == 1 and number not in self.held and part.joint.one_axis:
                self._body(above, inside[0], rotation, position, moved)
                return
            if part.joint.position_labels or axes:
                raise self.model.refuse(f"'{part.name}', which moves and has no mass", "give it a mass and an inertia")
        body = SubElement(above, "body", name=part.name, pos=xml_row(position), **_turn(rotation))
        for axis in moved:
            self._joint(body, axis)
        if part.heavy:
            self._inertia(body, part)
        self.at[number] = body
        self._drawn(body, number)
        for child in inside:
            self._body(body, child, E3, np.zeros(3), [])

    def _axes(self, part: RigidPart) -> list[BodyJoint]:
        """Joints of MuJoCo that make up one of ours."""
        joint, none, q = part.joint, np.zeros(3), part.home
        if joint.one_axis:
            axis = E3[joint.axis]
            kinds = [("slide" if joint.unit == "m" else "hinge", part.name, float(q[0]))]
            if joint.pitch:
                kinds.append(("slide", f"{part.name}.lead", float(joint.pitch * q[0])))
            return [BodyJoint(kind, name, axis, none, part, value) for kind, name, value in kinds]
        if joint.kind == "spherical":
            return [BodyJoint("ball", part.name, E3[2], none, part)]
        if not joint.moves_freely:
            return []
        slides = [("slide", f"{part.name}.{label}", E3[k], float(q[k])) for k, label in enumerate("xyz"[: len(q)])]
        if joint.kind == "planar":
            turn = ("hinge", f"{part.name}.theta", E3[2], float(q[2]))
            return [BodyJoint(kind, name, axis, none, part, value) for kind, name, axis, value in (*slides[:2], turn)]
        if part.parent == GROUND and np.array_equal(part.rotation, E3) and not part.position.any():
            return [BodyJoint("free", part.name, E3[2], none, part)]
        return [
            *(BodyJoint(kind, name, axis, none, part, value) for kind, name, axis, value in slides),
            BodyJoint("ball", part.name, E3[2], none, part),
        ]

    def _joint(self, body: Element, axis: BodyJoint) -> None:
        part, terms = axis.part, axis.part.terms
        if axis.kind == "free":
            SubElement(body, "freejoint", name=axis.name)
            self.home += [float(value) for value in part.home]
            return
        words = {"name": axis.name, "type": axis.kind, "pos": xml_row(axis.position)}
        if axis.kind == "ball":
            SubElement(body, "joint", words)
            self.home += [float(value) for value in part.home[-4:]]
            return
        words["axis"] = xml_row(axis.axis)
        if axis.name == part.name:
            numbers = {"damping": terms.viscous + terms.damper, "frictionloss": terms.coulomb}
            numbers |= {"armature": terms.motor_inertia, "stiffness": terms.stiffness}
            words |= {word: repr(float(value)) for word, value in numbers.items() if value}
            words |= {"springref": repr(float(terms.rest))} if terms.stiffness else {}
            words |= {"range": xml_row(part.limits)} if part.limits else {}
            most = part.effort_limit
            words |= {"actuatorfrcrange": xml_row((-most, most))} if most else {}
        SubElement(body, "joint", words)
        self.home.append(axis.home)

    def _inertia(self, body: Element, part: RigidPart) -> None:
        if not part.body.m > 0:
            raise self.model.refuse(f"the inertia of '{part.name}' without a mass", "give it a mass")
        centre, I = centred(part.body)
        Sigma = np.trace(I) / 2 * E3 - I
        values, axes = np.linalg.eigh(Sigma)
        least = LEAST * max(1.0, float(np.abs(I).max()))
        if values[0] < least:  # a thin rod, a point, or rounding of these
            Sigma = axes @ np.diag(np.maximum(values, least)) @ axes.T
            I = np.trace(Sigma) * E3 - Sigma
        entries = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
        words = {"pos": xml_row(centre), "mass": repr(float(part.body.m)), "fullinertia": xml_row(entries)}
        SubElement(body, "inertial", words)

    def _drawn(self, body: Element, number: int) -> None:
        """Bars from the joint to what the body carries; they touch nothing and weigh nothing."""
        ends = [part.position for part in self.parts if part.parent == number]
        ends += [
            place.position for loop in self.model.loops for place in (loop.first, loop.second) if place.link == number
        ]
        looks = {"contype": "0", "conaffinity": "0", "mass": "0", "size": repr(THICK * self.length)}
        long = [end for end in ends if np.linalg.norm(end) > 2 * THICK * self.length]
        for end in long:
            bar = {"type": "capsule", "fromto": xml_row([0, 0, 0, *end]), "rgba": "0.4 0.5 0.65 1"}
            SubElement(body, "geom", bar | looks)
        if not long:
            SubElement(body, "geom", {"type": "sphere", "rgba": "0.75 0.45 0.3 1"} | looks)

    def _site(self, name: str, place: Place) -> str:
        while name in self.sites:
            name += "_end"
        self.sites.add(name)
        SubElement(self.at[place.link], "site", name=name, pos=xml_row(place.position), **_turn(place.rotation))
        return name

    def _key(self) -> None:
        frames = SubElement(self.root, "keyframe")
        SubElement(frames, "key", name="home", qpos=xml_row(self.home))

    def constraints(self) -> None:
        """Loops, couplings, screws and rods."""
        section = Element("equality")
        for loop in self.model.loops:
            self._loop(section, loop)
        for row in self.model.couplings:
            self._coupled(section, row.name, row.joints, [float(c) for c in row.coefficients], float(row.offset))
        for part in self.parts:
            if part.joint.pitch:
                joints = (f"{part.name}.lead", part.name)
                self._coupled(section, f"{part.name}.screw", joints, [1.0, -float(part.joint.pitch)], 0.0)
        self._elements(section)
        if len(section):
            self.root.append(section)

    def _loop(self, section: Element, loop: Loop) -> None:
        """Two sites that coincide; a pin in space is held at two points of its axis."""
        pin = loop.kind == "revolute"
        if loop.kind not in ("spherical", "revolute", "welded"):
            what = f"the {loop.kind} closure '{loop.name}': MuJoCo ties points and frames"
            raise self.model.refuse(what, "close the loop at a revolute, spherical or welded joint")
        reaches = (0.0, self.length) if pin and not self.robot.tree.planar else (0.0,)
        for reach, mark in zip(reaches, ("", ".axis"), strict=False):
            sites = []
            for place, u, end in ((loop.first, loop.u1, "A"), (loop.second, loop.u2, "B")):
                here = Place(place.link, place.rotation, place.position + place.rotation @ (reach * u))
                sites.append(self._site(f"{loop.name}{mark}.{end}", here))
            words = {"name": f"{loop.name}{mark}", "site1": sites[0], "site2": sites[1]}
            SubElement(section, "weld" if loop.kind == "welded" else "connect", words)

    def _coupled(self, section: Element, name: str, joints: Sequence[str], ratios: list[float], offset: float) -> None:
        """One coordinate follows another, or a sum of them."""
        if len(joints) == 2:
            poly = [offset, -ratios[1], 0, 0, 0]
            words = {"name": name, "joint1": joints[0], "joint2": joints[1], "polycoef": xml_row(poly)}
            SubElement(section, "joint", words)
            return
        fixed = SubElement(self._tendons(), "fixed", name=name)
        for joint, ratio in zip(joints, ratios, strict=True):
            SubElement(fixed, "joint", joint=joint, coef=repr(ratio))
        SubElement(section, "tendon", name=name, tendon1=name, polycoef=xml_row([offset, 0, 0, 0, 0]))

    def _tendons(self) -> Element:
        if self.elastic is None:
            self.elastic = SubElement(self.root, "tendon")
        return self.elastic

    def _elements(self, section: Element) -> None:
        """Springs, dampers and rods as tendons between two sites."""
        for element in self.robot.description.element:
            sites = []
            for end, letter in zip(element.between, "AB", strict=True):
                sites.append(self._site(f"{element.name}.{letter}", self.robot.tree.place(end)))
            words = {"name": element.name}
            if element.kind == "rod":
                poly = xml_row([self._stretch(element.name), 0, 0, 0, 0])
                SubElement(section, "tendon", name=element.name, tendon1=element.name, polycoef=poly)
            else:
                numbers = {"stiffness": element.stiffness, "damping": element.damping, "springlength": element.rest}
                words |= {word: repr(float(value)) for word, value in numbers.items() if value}
            tendon = SubElement(self._tendons(), "spatial", words)
            for site in sites:
                SubElement(tendon, "site", site=site)

    def _stretch(self, name: str) -> float:
        """What a rod is longer than its ends are apart with all coordinates at zero: that is what MuJoCo asks for."""
        row = next(row for row in self.robot.closures.constraints if row.name == name)
        assert isinstance(row, Distance)
        links = self.robot.tree.links
        neutral = [np.concatenate([link.joint.neutral(), np.zeros(len(link.elastic_labels))]) for link in links]
        at = pose(self.robot.tree, np.concatenate(neutral))
        return float(row.rest - np.linalg.norm(at.of(row.second)[1] - at.of(row.first)[1]))

    def actuators(self) -> None:
        """A motor for each motor."""
        section = Element("actuator")
        for name in self.robot.actuated_names:
            SubElement(section, "motor", name=name, joint=name)
        if len(section):
            self.root.append(section)


def _seen_from(axis: BodyJoint, part: RigidPart) -> BodyJoint:
    """The joint of a body without mass in the axes of the part that it carries."""
    turn = part.rotation.T
    return replace(axis, axis=turn @ axis.axis, position=turn @ (axis.position - part.position))


def _turn(rotation: Array) -> dict[str, Any]:
    return {} if np.array_equal(rotation, E3) else {"quat": xml_row(matrix_quaternion(rotation))}


def mjcf_robot(file: str) -> ImportedTables:
    """The tables of a file of MuJoCo."""
    return _Reader(file).robot


def turned(quaternion: Array) -> Array:
    """Rotation matrix of a quaternion of MuJoCo."""
    return exact_entries(quaternion_matrix(unit_quaternion(np.array(quaternion))))


class _Reader:
    """Bodies from the world outwards; joints of one body follow each other, the last one carries it."""

    def __init__(self, file: str) -> None:
        self.mujoco, self.model, moved = compile_model(file)
        model = self.model
        title = self._given("MODEL", 0) or Path(file).stem
        self.robot = ImportedTables(allowed(title) or "robot", Path(file).name)
        self.at: dict[int, tuple[str, Array, Array]] = {0: ("base", E3, NONE)}  # of bodies: frame, and place in it
        self.joints: dict[int, str] = {}  # names of joints with one axis
        self.sites: dict[int, str] = {}
        self.connects: dict[tuple[int, int], list[tuple[str, Array, Array]]] = {}
        self.rods: set[int] = set()  # tendons whose length an equality holds
        self.wound: set[int] = set()  # tendons that an actuator drives
        self._switch_off()
        self.start = self._start()
        names = self._names()
        for body in range(1, model.nbody):
            self._body(body, names[body])
        for site in range(model.nsite if model.nsite <= MANY_SITES else 0):
            self.site(site)
        for number in range(model.neq):
            self._equality(number)
        for pair, points in self.connects.items():
            self._connected(pair, points)
        if np.any(model.eq_active0):
            self.robot.drop("softness", "equality", RIGID)
        for actuator in range(model.nu):
            self._actuator(actuator)
        for tendon in range(model.ntendon):
            self._tendon(tendon)
        self._left_out()
        self._meshes(moved)

    def word(self, kind: str, number: int) -> str:
        """The name of something, or one for what has none."""
        return self._given(kind, number) or f"{kind.lower()}{number}"

    def _given(self, kind: str, number: int) -> str:
        return self.mujoco.mj_id2name(self.model, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind}"), number) or ""

    def _any(self, name: str, number: int) -> bool:
        """Whether an array that only some versions of MuJoCo have is not zero at a place."""
        array = getattr(self.model, name, None)
        return array is not None and bool(np.any(array[number]))

    # -- options

    def _switch_off(self) -> None:
        """Set to zero what flags disable, and report what that was."""
        model, robot = self.model, self.robot
        bits = {word[7:].lower(): int(bit) for word, bit in vars(self.mujoco.mjtDisableBit).items() if "DSBL_" in word}
        off = {word for word, bit in bits.items() if int(model.opt.disableflags) & bit}
        off = off.union(*(TOGETHER[word] for word in off if word in TOGETHER))
        for flag, (what, names) in SWITCHED.items():
            arrays = [getattr(model, name) for name in names if hasattr(model, name)]
            if flag in off and any(np.any(array) for array in arrays):
                for array in arrays:
                    array[:] = 0
                robot.drop("flag", flag, f"the source switches its {what} off")
                robot.report(f"{what} are left out: the option {flag} is disabled in the source", flag)
        if "actuation" in off and model.nu:
            robot.report("actuators are motors here, although the option actuation is disabled in the source")
        if {"spring", "damper"} <= off:  # then MuJoCo computes no passive forces
            model.body_gravcomp[:] = 0
        robot.gravity = [0.0, 0.0, 0.0] if "gravity" in off else plain_numbers(model.opt.gravity)
        if any(robot.gravity):
            self._gravity_compensation()

    def _gravity_compensation(self) -> None:
        """Gravity less the share that all bodies are relieved of; where shares differ, they are not carried over."""
        model, robot = self.model, self.robot
        bodies = np.flatnonzero((model.body_weldid > 0) & (model.body_subtreemass > 0) & (model.body_mass > 0))
        shares = {int(body): float(model.body_gravcomp[body]) for body in bodies}
        if not any(shares.values()):
            return
        by_motors, share = np.any(getattr(model, "jnt_actgravcomp", 0)), next(iter(shares.values()))
        if not by_motors and max(abs(other - share) for other in shares.values()) < SAME_GRAVITY:
            robot.gravity = [(1 - share) * value + 0.0 for value in robot.gravity]
            robot.report(f"all bodies are relieved of {share:.4g} of gravity: it is left out of the gravity here")
            return
        relieved = [self.word("BODY", body) for body, value in shares.items() if value]
        for name in relieved:
            robot.drop("gravity compensation", name, "all bodies feel gravity here")
        text = f"gravity compensation of {name_list(relieved)} is left out: efforts here hold the whole weight"
        robot.report(f"{text} (in the source motors do)" if by_motors else text)

    def _start(self) -> Array:
        """Coordinates of the key `home`, else of the first, else the reference."""
        keys = [self._given("KEY", number) for number in range(self.model.nkey)]
        if not keys:
            return np.array(self.model.qpos0)
        chosen = keys.index("home") if "home" in keys else 0
        self.robot.report(f"start values are those of the key '{keys[chosen] or 'the first'}'")
        return np.array(self.model.key_qpos[chosen])

    # -- bodies and joints

    def _names(self) -> dict[int, list[str]]:
        """A name for each joint of each body, or for the body where it has none; joints keep theirs first."""
        model, give = self.model, self.robot.names.give
        counts = np.asarray(model.body_jntnum).tolist()
        result = {body: [""] * max(count, 1) for body, count in enumerate(counts)}
        for named in (True, False):
            for body, count in list(enumerate(counts))[1:]:
                owner, first = self.word("BODY", body), int(model.body_jntadr[body])
                for k in range(count):
                    word = self._given("JOINT", first + k)
                    if bool(word) == named:
                        result[body][k] = give(word, owner if count == 1 else f"{owner}.joint{k + 1}")
                if not count and not named:
                    result[body][0] = give(owner)
        return result

    def _body(self, body: int, names: list[str]) -> None:
        model, robot = self.model, self.robot
        above, R0, p0 = self.at[int(model.body_parentid[body])]
        R, p = compose(R0, p0, turned(model.body_quat[body]), np.array(model.body_pos[body]))
        first, count, owner = int(model.body_jntadr[body]), int(model.body_jntnum[body]), self.word("BODY", body)
        m, I = float(model.body_mass[body]), np.diag(model.body_inertia[body])
        mass = None
        if m or I.any():
            mass = Mass(m, NONE, I).seen_from(turned(model.body_iquat[body]), np.array(model.body_ipos[body]))
        if count == 0:
            robot.add_fixed(names[0], above, R, p, mass, owner)
            self.at[body] = (names[0], E3, NONE)
            if int(model.body_mocapid[body]) >= 0:
                robot.drop("mocap", owner, "it is fixed here")
            return
        for k in range(count):
            above, R, p = self._joint(first + k, names[k], above, R, p)
        self.at[body] = (above, R, p)
        table = robot.of(above)
        if mass is not None:
            table["inertia"] = mass.seen_from(R, p).table()
        if owner != above:
            table[NOTE] = f"body {owner}"

    def _joint(self, joint: int, name: str, above: str, R: Array, p: Array) -> tuple[str, Array, Array]:
        """One joint; returns the frame on it and where the body stands in that."""
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
        turn, reference = rotation_to(axis), self._reference(joint)
        if kind == SLIDE:
            place, word, back = compose(R, p, turn, -reference * axis), "prismatic", NONE
        else:
            place, word = compose(R, p, exact_entries(turn @ exact_rotation(2, -reference)), anchor), "revolute"
            back = -turn.T @ anchor
        robot.add_frame(name, above, *place, joint=word, start=float(self.start[q]), **self._terms(joint, name))
        self.joints[joint] = name
        return name, turn.T, back

    def _reference(self, joint: int) -> float:
        return float(self.model.qpos0[self.model.jnt_qposadr[joint]])

    def _terms(self, joint: int, name: str) -> dict[str, Any]:
        """What acts in a joint with one axis."""
        model, dof = self.model, int(self.model.jnt_dofadr[joint])
        rest = float(model.qpos_spring[model.jnt_qposadr[joint]])
        stiffness, friction = float(model.jnt_stiffness[joint]), float(model.dof_frictionloss[dof])
        (low, high), (least, most) = (map(float, row[joint]) for row in (model.jnt_range, model.jnt_actfrcrange))
        bounded = bool(model.jnt_actfrclimited[joint])
        laws = (("jnt_stiffnesspoly", joint, "spring"), ("jnt_springyield", joint, "spring"))
        for word, number, what in (*laws, ("dof_dampingpoly", dof, "damper")):
            if self._any(word, number):
                self.robot.drop(what, name, "the part of its law that is not linear")
        if bounded and not least == -most < 0:
            self.robot.drop("effort range", name, f"from {least:g} to {most:g}: an effort_limit is a magnitude")
        return {
            "limits": [low, high] if model.jnt_limited[joint] and low < high else None,
            "effort_limit": most if bounded and least == -most < 0 else None,
            "motor_inertia": float(model.dof_armature[dof]),
            "friction": {"coulomb": friction} if friction else None,
            "spring": ({"stiffness": stiffness} | ({"rest": rest} if rest else {})) if stiffness else None,
            "damper": float(model.dof_damping[dof]),
        }

    def _lost_terms(self, joint: int, name: str, count: int) -> None:
        """Springs, dampers, friction and armature of balls and loose bodies: they need one axis here."""
        model, first = self.model, int(self.model.jnt_dofadr[joint])
        rates = slice(first, first + count)
        lost = {"spring": model.jnt_stiffness[joint], "damper": model.dof_damping[rates]}
        lost |= {"friction": model.dof_frictionloss[rates], "armature": model.dof_armature[rates]}
        for word, value in (lost | {"limits": model.jnt_limited[joint]}).items():
            if np.any(value):
                self.robot.drop(word, name, "only joints with one axis have it here")

    def site(self, site: int) -> str:
        """The point at a site."""
        if site not in self.sites:
            model = self.model
            frame, R, p = self.at[int(model.site_bodyid[site])]
            place = compose(R, p, turned(model.site_quat[site]), np.array(model.site_pos[site]))
            name = self.robot.names.give(self._given("SITE", site), f"site{site}")
            self.sites[site] = self.robot.add_point(name, frame, *place)
        return self.sites[site]

    # -- closures and couplings

    def _equality(self, number: int) -> None:
        model, kinds, name = self.model, self.mujoco.mjtEq, self.word("EQUALITY", number)
        kind, data = int(model.eq_type[number]), np.array(model.eq_data[number])
        first, second = int(model.eq_obj1id[number]), int(model.eq_obj2id[number])
        if not model.eq_active0[number]:
            self.robot.drop("equality", name, "it is not active at the start")
        elif kind in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
            self._tie(number, name, data, first, second, kind == int(kinds.mjEQ_WELD))
        elif kind == int(kinds.mjEQ_JOINT):
            self._joints(name, data, first, second)
        elif kind == int(kinds.mjEQ_TENDON):
            self._tendons(name, data, first, second)
        else:
            self.robot.drop("equality", name, "closures and couplings are of other kinds")

    def _tie(self, number: int, name: str, data: Array, first: int, second: int, welded: bool) -> None:
        """Points or frames that coincide: of two sites, or of two bodies as they stand in the reference."""
        model, kinds = self.model, getattr(self.model, "eq_objtype", None)
        sites = kinds is not None and int(kinds[number]) == int(self.mujoco.mjtObj.mjOBJ_SITE)
        if welded and sites:
            ends = [self.site(first), self.site(second)]
        elif welded:
            ends = [self._point(f"{name}.A", max(first, 0), turned(data[6:10]), data[3:6])]
            ends.append(self._point(f"{name}.B", max(second, 0), E3, data[:3]))
        if welded:
            self._close(name, ends, "welded" if data[10] != 0 else "spherical", {})
            return
        points = (model.site_pos[first], model.site_pos[second]) if sites else (data[:3], data[3:6])
        bodies = (model.site_bodyid[first], model.site_bodyid[second]) if sites else (max(first, 0), max(second, 0))
        pair = (int(bodies[0]), int(bodies[1]))
        self.connects.setdefault(pair, []).append((name, np.array(points[0]), np.array(points[1])))

    def _connected(self, pair: tuple[int, int], ties: list[tuple[str, Array, Array]]) -> None:
        """One point of two bodies is a ball; two points of both, as far apart, are a pin."""
        kind, axes = "spherical", {}
        if len(ties) == 2:
            u, v = ties[1][1] - ties[0][1], ties[1][2] - ties[0][2]
            far, other = float(np.linalg.norm(u)), float(np.linalg.norm(v))
            if min(far, other) > 1e-9 and abs(far - other) <= SAME_DISTANCE * far:
                kind = "revolute"  # its axes are those of the bodies
                axes = {key: plain_numbers(exact_entries(w)) for key, w in (("axis", u / far), ("axis_2", v / other))}
        for name, *points in ties[:1] if kind == "revolute" else ties:
            ends = [self._point(f"{name}.{k}", body, E3, p) for k, body, p in zip("AB", pair, points, strict=True)]
            self._close(name, ends, kind, axes)

    def _point(self, name: str, body: int, R: Array, p: Array) -> str:
        frame, R0, p0 = self.at[body]
        return self.robot.add_point(self.robot.names.give(name, say=False), frame, *compose(R0, p0, R, p))

    def _close(self, name: str, ends: list[str], joint: str, axes: dict[str, Any]) -> None:
        self.robot.closure.append({"name": self.robot.names.give(name), "between": ends, "joint": joint} | axes)

    def _joints(self, name: str, data: Array, follower: int, leader: int) -> None:
        """One joint follows another by a straight line, or is locked."""
        if follower not in self.joints or (leader >= 0 and leader not in self.joints):
            self.robot.drop("equality", name, "one of its joints does not have one axis")
        elif leader < 0:
            start = self._reference(follower) + float(data[0])
            self.robot.of(self.joints[follower]).update(locked=True, start=start)
        elif data[2:5].any():
            self.robot.drop("equality", name, "a polynomial: couplings are straight lines")
            self.robot.report(f"the equality '{name}' is left out: the robot has a freedom more", name)
        else:
            offset = self._reference(follower) + data[0] - data[1] * self._reference(leader)
            self._couple(name, {self.joints[follower]: 1.0, self.joints[leader]: -float(data[1])}, float(offset))

    def _couple(self, name: str, coefficients: dict[str, float], total: float, **more: float) -> None:
        """The sum of coefficients times coordinates is a number."""
        (joint, scale), *others = coefficients.items()
        terms = {other: -value / scale for other, value in others if value}
        if not terms:
            self.robot.of(joint).update(locked=True, start=total / scale)
            return
        table: dict[str, Any] = {"name": self.robot.names.give(name), "joint": joint, "terms": terms}
        more = {"offset": total / scale, **more}
        self.robot.coupling.append(table | {key: value for key, value in more.items() if value})

    def _tendons(self, name: str, data: Array, first: int, second: int) -> None:
        """A length that is held, or a sum of joints."""
        total = float(self.model.tendon_length0[first]) + float(data[0])
        terms, others = self._sum(first), self._sum(second) if second >= 0 else {}
        if terms and others is not None and (second < 0 or not data[2:5].any()):
            total -= float(data[1]) * float(self.model.tendon_length0[second]) if second >= 0 else 0.0
            for joint, value in others.items():
                terms[joint] = terms.get(joint, 0.0) - float(data[1]) * value
            self._couple(name, terms, total)
        elif second < 0 and self._line(first) is not None:
            self._between(name, first, "rod", rest=total)
            self.rods.add(first)
        else:
            self.robot.drop("equality", name, "its tendons are neither sums of joints nor straight")

    # -- tendons and actuators

    def _wraps(self, tendon: int, kind: str) -> list[tuple[int, float]] | None:
        """Number and coefficient of what a tendon runs over; None if that is not all of one kind."""
        model, first = self.model, int(self.model.tendon_adr[tendon])
        places = range(first, first + int(model.tendon_num[tendon]))
        wanted = int(getattr(self.mujoco.mjtWrap, f"mjWRAP_{kind}"))
        if any(int(model.wrap_type[k]) != wanted for k in places):
            return None
        return [(int(model.wrap_objid[k]), float(model.wrap_prm[k])) for k in places]

    def _sum(self, tendon: int) -> dict[str, float] | None:
        """Coefficients of joints in the length of a tendon; None where it runs through space."""
        wraps = self._wraps(tendon, "JOINT")
        if not wraps or not all(joint in self.joints for joint, _ in wraps):
            return None
        return {self.joints[joint]: value for joint, value in wraps if value}

    def _line(self, tendon: int) -> list[str] | None:
        """The two points of a tendon that runs straight."""
        wraps = self._wraps(tendon, "SITE")
        return [self.site(site) for site, _ in wraps] if wraps and len(wraps) == 2 else None

    def _between(self, name: str, tendon: int, kind: str, **more: Any) -> None:
        table = {"name": self.robot.names.give(name), "kind": kind, "between": self._line(tendon)}
        self.robot.element.append(table | {key: value for key, value in more.items() if value or key != "damping"})

    def _tendon(self, tendon: int) -> None:
        """Springs and dampers of tendons; what else they have is left out."""
        model, name = self.model, self.word("TENDON", tendon)
        k, c = float(model.tendon_stiffness[tendon]), float(model.tendon_damping[tendon])
        for word in ("limited", "frictionloss", "armature"):
            if self._any(f"tendon_{word}", tendon):
                self.robot.drop("tendon", name, f"its {word.replace('limited', 'limits')}")
        if tendon in self.wound or not (k or c):
            return
        terms, line = self._sum(tendon), self._line(tendon)
        low, high = map(float, model.tendon_lengthspring[tendon])
        if terms and low == high:
            first = next(iter(terms.values()))
            if len(terms) == 1:
                self._joint_spring(next(iter(terms)), k * first**2, c * first**2, high / first, name)
            else:
                self._couple(name, terms, high if k else 0.0, stiffness=k * first**2, damping=c * first**2)
        elif line is None or (low != high and low > 0):
            self.robot.drop("tendon", name, "its spring: it is neither straight nor a sum of joints")
        elif k or low != high:
            kind = "spring" if low == high else "cable"
            self._between(name, tendon, kind, stiffness=k, rest=high, damping=c)
        else:
            self._between(name, tendon, "damper", damping=c)

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
        model, kinds, name = self.model, self.mujoco.mjtTrn, self.word("ACTUATOR", actuator)
        kind, target = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator][0])
        if int(model.opt.disableactuator) >> max(int(model.actuator_group[actuator]), 0) & 1:
            self.robot.drop("actuator", name, "its group is switched off in the source")
        elif kind in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT)) and target in self.joints:
            self._motor(self.joints[target], name, actuator)
        elif kind == int(kinds.mjTRN_TENDON):
            self._driven_tendon(target, name, actuator)
        else:
            self.robot.drop("actuator", name, "it acts on no joint with one axis")

    def _motor(self, joint: str, name: str, actuator: int) -> None:
        model, table = self.model, self.robot.of(joint)
        if table.get("actuated") or table.get("locked"):
            state = "has a motor already" if table.get("actuated") else "is locked"
            self.robot.drop("actuator", name, f"joint '{joint}' {state}")
            return
        self.robot.make_motor(joint)
        gear, bias = float(model.actuator_gear[actuator][0]), model.actuator_biastype[actuator]
        for key, word in (("motor_inertia", "actuator_armature"), ("damper", "actuator_damping")):
            if self._any(word, actuator):
                table[key] = table.get(key, 0.0) + float(getattr(model, word)[actuator]) * gear**2
        if gear != 1 or bias or model.actuator_dyntype[actuator] or float(model.actuator_gainprm[actuator][0]) != 1:
            self.robot.drop("actuator law", name, "gear, gain and feedback: efforts are at the joint here")
        if model.actuator_forcelimited[actuator] or model.actuator_ctrllimited[actuator]:
            self.robot.drop("actuator range", name, "give the joint an effort_limit")

    def _driven_tendon(self, tendon: int, name: str, actuator: int) -> None:
        terms, model = self._sum(tendon), self.model
        if terms and (len(terms) == 1 or self._one_freedom(set(terms))):
            joint = next(iter(terms))
            self._motor(joint, name, actuator)
            self.robot.drop("actuator law", name, f"it pulls a tendon; here it is the motor of joint '{joint}'")
        elif terms is None and self._line(tendon) is not None and tendon not in self.rods | self.wound:
            k, c = float(model.tendon_stiffness[tendon]), float(model.tendon_damping[tendon])
            spring = {"stiffness": k, "rest": float(model.tendon_lengthspring[tendon][1])} if k else {}
            self._between(name, tendon, "strut", actuated=True, **spring, damping=c)
            self.wound.add(tendon)
        else:
            self.robot.drop("actuator", name, "its tendon is neither straight nor of one freedom")

    def _one_freedom(self, joints: set[str]) -> bool:
        """Whether couplings make these joints move as one."""
        ties = [{table["joint"], *table["terms"]} for table in self.robot.coupling if "stiffness" not in table]
        reached, more = {next(iter(joints))}, ties
        while more:
            more = [tie for tie in ties if len(tie) == 2 and len(tie & reached) == 1]
            reached.update(*more)
        return joints <= reached

    # -- what is left out

    def _left_out(self) -> None:
        model, robot = self.model, self.robot
        if np.any(model.geom_contype) or np.any(model.geom_conaffinity):
            robot.drop("contact", "all", "parflex has no contacts")
        for sensor in range(model.nsensor):
            robot.drop("sensor", self.word("SENSOR", sensor), "ask for outputs of runs instead")
        for word, number in (("flex", getattr(model, "nflex", 0)), ("plugin", getattr(model, "nplugin", 0))):
            if number:
                robot.drop(word, f"{number} of them", "a robot file has none")
        if model.opt.density or model.opt.viscosity or np.any(model.opt.wind):
            robot.drop("fluid", "option", "parflex has no drag of air or water")

    def _meshes(self, moved: bool) -> None:
        """Geoms with meshes are shown; `moved`: some mesh has another origin in MuJoCo than in its file.

        Of a body with geoms that touch nothing these are shown, else all of them.
        """
        model = self.model
        kind = int(self.mujoco.mjtGeom.mjGEOM_MESH)
        touching = (np.asarray(model.geom_contype) != 0) | (np.asarray(model.geom_conaffinity) != 0)
        geoms = [k for k in range(model.ngeom) if int(model.geom_type[k]) == kind and int(model.geom_dataid[k]) >= 0]
        shows = {int(model.geom_bodyid[k]) for k in geoms if not touching[k]}
        dropped: dict[int, str] = dict.fromkeys(range(model.nmesh), SHAPES)
        for geom in geoms:
            mesh, body = int(model.geom_dataid[geom]), int(model.geom_bodyid[geom])
            path = self._mesh_file(mesh)
            if path is None or path.suffix.lower() not in MESH_FORMATS or moved:
                dropped[mesh] = (
                    NO_MESH if path is None else "its origin is moved in the source" if moved else OTHER_MESH
                )
            elif not touching[geom] or body not in shows:
                frame, R, p = self.at[body]
                here = compose(R, p, turned(model.geom_quat[geom]), np.array(model.geom_pos[geom]))
                back = turned(model.mesh_quat[mesh]).T  # axes of a geom are principal axes about the centre of the mesh
                place = compose(*here, back, -back @ np.array(model.mesh_pos[mesh]))
                self.robot.add_visual(frame, path, *place, np.array(model.mesh_scale[mesh]))
                dropped.pop(mesh, None)
        for mesh, why in dropped.items():
            self.robot.drop("mesh", self.word("MESH", mesh), why)
        if model.ngeom > len(geoms):
            self.robot.drop("shape", f"{model.ngeom - len(geoms)} geoms", SHAPES)

    def _mesh_file(self, mesh: int) -> Path | None:
        """The file that a mesh was read from."""
        starts = getattr(self.model, "mesh_pathadr", None)
        if starts is None or starts[mesh] < 0:
            return None
        path = Path(bytes(self.model.paths)[int(starts[mesh]) :].split(b"\0")[0].decode(errors="replace"))
        return path if path.is_file() else None
