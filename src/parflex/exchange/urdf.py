"""URDF export and import."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import SubElement

import numpy as np

from parflex.checks import short_text
from parflex.closure.constraints import Loop
from parflex.errors import did_you_mean
from parflex.exchange.imported_tables import (
    E3,
    NONE,
    NOTE,
    ON_GROUND,
    ONE_AXIS,
    SHAPES,
    Array,
    ImportedTables,
    Mass,
    allowed,
    plain_numbers,
    roll_pitch_yaw_matrix,
    rotation_to,
)
from parflex.exchange.loops_yaml import LoopsFile
from parflex.exchange.rigid_model import ExportedRobot, RigidModel, RigidPart, centred, xml_row, xml_text
from parflex.exchange.untrusted_files import (
    MESH_FORMATS,
    NO_MESH,
    OTHER_MESH,
    Element,
    file_error,
    line_of,
    mesh_path,
    read_xml,
)
from parflex.io import write_texts
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.spatial.rotations import compose
from parflex.tree.tree import GROUND, Place

NAME = "URDF"
ROOT = "base"
LOOPS = ".loops.yaml"
AXES = dict(zip("XYZ", E3, strict=True))
X, Y, Z = (("prismatic", E3[k]) for k in range(3))
TURN_X, TURN_Z = ("revolute", E3[0]), ("revolute", E3[2])
# joints without mass between the first place, whose z axis is that of the closure, and what is welded to the second
CARRIERS: dict[str, tuple[tuple[tuple[str, Array], ...], str]] = {
    "spherical": ((), "3d"),
    "welded": ((), "6d"),
    "revolute": ((TURN_Z,), "6d"),
    "universal": ((TURN_Z, TURN_X), "6d"),
    "cylindrical": ((Z, TURN_Z), "6d"),
    "prismatic": ((Z,), "6d"),
    "planar": ((X, Y, TURN_Z), "6d"),
    "point-on-plane": ((X, Y), "3d"),
    "point-on-line": ((Z,), "3d"),
}
FREE_RANGE = 1e9  # rad or m: limits of joints that have none; URDF asks for some where a joint is not continuous
UNBOUNDED = 1e8  # rad, m, N, N m and their rates: larger limits are those of files whose joints have none
KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
ENTRIES = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}


def export_urdf(robot: Robot, out: str | Path) -> ExportedRobot:
    """Write a robot as URDF: its tree; its loops, motors and gravity stand in a YAML file beside it.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    out : str or Path
        File to write; `robot.urdf` has `robot.loops.yaml` beside it.

    Returns
    -------
    ExportedRobot
        Both files, and notes on what they say otherwise than the robot file.
    """
    model = RigidModel(robot, NAME)
    root, loops = urdf_tree(model)
    lines = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in loops.items())
    path = Path(out)
    files = {path: f'<?xml version="1.0"?>\n{xml_text(root, model.notes)}'}
    files[path.with_suffix(LOOPS)] = "".join(f"# {note}\n" for note in model.notes) + lines
    write_texts(files)
    return ExportedRobot(tuple(map(str, files)), tuple(model.notes))


def urdf_tree(model: RigidModel) -> tuple[Element, dict[str, Any]]:
    """The document, and the loops beside it."""
    robot = model.robot
    model.use_consistent_bodies([part.name for part in model.parts if part.heavy and not part.body.m > 0])
    springs = [part.name for part in model.parts if part.terms.stiffness]
    if springs:
        model.notes.append(f"URDF has no springs; left out of joints {', '.join(springs)}")
    root = Element("robot", name=robot.name)
    writer = _Writer(model, root)
    writer.link(ROOT)
    for part in model.parts:
        writer.part(part, ROOT if part.parent == GROUND else _link(model.parts[part.parent].name))
    for name, place in model.places.items():
        writer.frame(name, place)
    for loop in model.loops:
        writer.loop(loop)
    for row in model.couplings:
        writer.mimic(row.name, row.joints, [float(c) for c in row.coefficients], float(row.offset))
    rotors = {part.name: float(part.terms.motor_inertia) for part in model.parts if part.terms.motor_inertia}
    loops = {"closed_loop": writer.closed, "type": writer.types, "name_mot": robot.actuated_names}
    loops |= {"start": {name: value for name, value in writer.starts.items() if np.any(value)}}
    return root, loops | {"rotor_inertia": rotors, "gravity": [float(value) for value in robot.tree.gravity]}


class _Writer:
    """Writes links and joints of one document, and notes its loops."""

    def __init__(self, model: RigidModel, root: Element) -> None:
        self.model, self.robot, self.root = model, model.robot, root
        self.closed: list[list[str]] = []
        self.types: list[str] = []
        self.joints: dict[str, Element] = {}
        self.starts: dict[str, Any] = {}  # coordinates of joints at home
        self.home = pose(model.robot.tree, model.robot.home)

    def link(self, name: str, part: RigidPart | None = None) -> None:
        """A link, with its inertia."""
        link = SubElement(self.root, "link", name=name)
        if part is None or not part.heavy:
            return
        centre, I = centred(part.body)
        inertial = SubElement(link, "inertial")
        SubElement(inertial, "origin", xyz=xml_row(centre), rpy="0 0 0")
        SubElement(inertial, "mass", value=repr(float(part.body.m)))
        SubElement(inertial, "inertia", {word: repr(float(I[place])) for word, place in ENTRIES.items()})
        self._drawn(link, part)

    def _drawn(self, link: Element, part: RigidPart) -> None:
        """A box about the centre of mass, of the size that its inertia has."""
        centre, I = centred(part.body)
        sizes = np.sqrt(
            np.maximum(6 * (np.trace(I) - 2 * np.diag(I)) / part.body.m, (0.01 * self.robot.tree.length) ** 2)
        )
        visual = SubElement(link, "visual")
        SubElement(visual, "origin", xyz=xml_row(centre), rpy="0 0 0")
        SubElement(SubElement(visual, "geometry"), "box", size=xml_row(sizes))

    def joint(
        self, name: str, kind: str, parent: str, child: str, rotation: Array, position: Array, axis: Array = E3[2]
    ) -> Element:
        """A joint between two links."""
        joint = SubElement(self.root, "joint", name=name, type=kind)
        SubElement(joint, "parent", link=parent)
        SubElement(joint, "child", link=child)
        SubElement(joint, "origin", xyz=xml_row(position), rpy=xml_row(roll_pitch_yaw(rotation)))
        if kind not in ("fixed", "floating"):
            SubElement(joint, "axis", xyz=xml_row(axis))
        self.joints[name] = joint
        return joint

    def part(self, part: RigidPart, parent: str) -> None:
        """A link of the tree on its joint."""
        joint, link_name, here = part.joint, _link(part.name), (part.rotation, part.position)
        if joint.pitch:
            raise self.model.refuse(f"the screw '{part.name}'", "export it as mjcf")
        if joint.one_axis:
            kind = "prismatic" if joint.unit == "m" else "revolute" if part.limits else "continuous"
            added = self.joint(part.name, kind, parent, link_name, *here, E3[joint.axis])
            self._terms(added, part, kind)
            self.starts[part.name] = float(part.home[0])
        elif joint.kind == "planar":
            for label, kind, axis in (("x", "prismatic", E3[0]), ("y", "prismatic", E3[1])):
                slide_name = f"{part.name}.{label}"
                self._limit(self.joint(slide_name, kind, parent, _link(slide_name), *here, axis))
                self.link(_link(slide_name))
                parent, here = _link(slide_name), (E3, np.zeros(3))
            self.joint(f"{part.name}.theta", "continuous", parent, link_name, *here)
            self.starts |= {f"{part.name}.{k}": float(x) for k, x in zip(("x", "y", "theta"), part.home, strict=True)}
        elif joint.position_labels:  # a loose body, at a point and with a quaternion
            self.joint(part.name, "floating", parent, link_name, *here)
            self.starts[part.name] = [0.0] * (7 - len(part.home)) + part.home.tolist()
        else:
            self.joint(part.name, "fixed", parent, link_name, *here)
        self.link(link_name, part)
        if joint.kind == "spherical":  # URDF has no balls: a loose body, held at a point
            ends = [f"{part.name}.A", f"{part.name}.B"]
            for end, base, where in zip(ends, (parent, link_name), (here, (E3, np.zeros(3))), strict=True):
                self.joint(f"{end}.joint", "fixed", base, end, *where)
                self.link(end)
            self.closed.append(ends)
            self.types.append("3d")

    def _terms(self, joint: Element, part: RigidPart, kind: str) -> None:
        if part.limits or part.velocity_limit or part.effort_limit or kind == "prismatic":
            self._limit(joint, part.limits, part.velocity_limit, part.effort_limit)
        damping, friction = part.terms.viscous + part.terms.damper, part.terms.coulomb
        if damping or friction:
            SubElement(joint, "dynamics", damping=repr(float(damping)), friction=repr(float(friction)))

    @staticmethod
    def _limit(
        joint: Element, limits: tuple[float, float] | None = None, velocity: float | None = None,
        effort: float | None = None,
    ) -> None:  # fmt: skip
        low, high = limits or (-FREE_RANGE, FREE_RANGE)
        words = {"lower": low, "upper": high, "effort": effort or FREE_RANGE, "velocity": velocity or FREE_RANGE}
        SubElement(joint, "limit", {word: repr(float(value)) for word, value in words.items()})

    def frame(self, name: str, place: Place) -> None:
        """A frame fixed to a link."""
        parent = ROOT if place.link == GROUND else _link(self.robot.tree.links[place.link].name)
        self.joint(f"{name}.joint", "fixed", parent, name, place.rotation, place.position)
        self.link(name)

    def loop(self, loop: Loop) -> None:
        """Two frames that coincide; what the closure leaves free moves the first by joints without mass."""
        carriers, kind = CARRIERS[loop.kind]
        if self.robot.tree.planar and loop.kind == "revolute":
            carriers, kind = (), "3d"
        turned = bool(carriers)
        ends = [(loop.first, rotation_to(loop.u1) if turned else E3), (loop.second, self._behind(loop, turned))]
        first, second = (Place(end.link, *compose(end.rotation, end.position, R, NONE)) for end, R in ends)
        (R1, p1), (R2, p2) = self.home.of(first), self.home.of(second)
        R, p = R1.T @ R2, R1.T @ (p2 - p1)
        self.frame(f"{loop.name}.A0" if carriers else f"{loop.name}.A", first)
        before = f"{loop.name}.A0"
        for number, (word, axis) in enumerate(carriers, 1):
            name = f"{loop.name}.A" if number == len(carriers) else f"{loop.name}.A{number}"
            kind_of_joint = "continuous" if word == "revolute" else word
            joint = self.joint(f"{name}.joint", kind_of_joint, before, name, E3, np.zeros(3), axis)
            if word == "prismatic":
                self._limit(joint)
                self.starts[f"{name}.joint"] = float(p @ axis)
            else:  # about z, and of a universal joint then about x
                entries = (R[1, 0], R[0, 0]) if axis[2] else (R[2, 1], R[2, 2])
                self.starts[f"{name}.joint"] = float(np.arctan2(*entries))
            self.link(name)
            before = name
        self.frame(f"{loop.name}.B", second)
        self.closed.append([f"{loop.name}.A", f"{loop.name}.B"])
        self.types.append(kind)

    @staticmethod
    def _behind(loop: Loop, turned: bool) -> Array:
        """Axes of the second frame in its place."""
        if not turned or loop.kind in ("point-on-plane", "point-on-line"):
            return E3
        if loop.kind == "prismatic":  # both places have the same axes
            return rotation_to(loop.u1)
        return rotation_to(loop.u2) if loop.kind != "universal" else rotation_to(loop.u2)[:, [2, 0, 1]]

    def mimic(self, name: str, joints: tuple[str, ...], ratios: list[float], offset: float) -> None:
        """A joint that follows another."""
        if len(joints) != 2:
            raise self.model.refuse(f"the coupling '{name}' of {len(joints)} joints", "export it as mjcf")
        words = {"joint": joints[1], "multiplier": repr(-ratios[1]), "offset": repr(offset)}
        SubElement(self.joints[joints[0]], "mimic", words)


def roll_pitch_yaw(R: Array) -> Array:
    """Angles of R = Rz(yaw) Ry(pitch) Rx(roll)."""
    cosine = np.hypot(R[0, 0], R[1, 0])
    pitch = np.arctan2(-R[2, 0], cosine)
    if cosine < 1e-9:  # roll and yaw turn about the same axis
        return np.array([np.arctan2(-R[1, 2], R[1, 1]), pitch, 0.0])
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])


def _link(name: str) -> str:
    """Links have other names than joints: where frames are looked for by name, both are found."""
    return f"{name}.link"


def urdf_robot(file: str, loops: LoopsFile | None, floating: bool, end_effector: str | None = None) -> ImportedTables:
    """The tables of a URDF."""
    urdf = _Reader(file, loops or LoopsFile(), floating)
    urdf.robot.end_effector = urdf.end_effector(end_effector)
    return urdf.robot


@dataclass(frozen=True, eq=False, repr=False)
class UrdfJoint(Record):
    """A joint between two links; its kind is that of the file of loops, if that changes it."""

    name: str
    kind: str
    parent: str
    child: str
    rotation: Array
    position: Array
    axis: Array
    limits: tuple[float, float] | None
    largest: dict[str, float]  # velocity and effort
    damping: float
    friction: float
    mimic: tuple[str, float, float] | None
    others: tuple[str, ...]


class _Reader:
    """Makes a frame of each joint: its z axis is the axis of the joint, so the link on it may be turned in it."""

    def __init__(self, file: str, loops: LoopsFile, floating: bool) -> None:
        self.file, self.loops, self.floating = file, loops, floating
        root = read_xml(file)
        if root.tag != "robot":
            message = f"begins with <{short_text(root.tag)}>, not with <robot>"
            raise file_error(message, file, "robot", root.tag, "give a URDF file")
        for element in root.iter():
            if "xacro" in element.tag or any("${" in value or "$(" in value for value in element.attrib.values()):
                hint = "expand it first: xacro FILE > robot.urdf"
                raise self.error("is a xacro file, not a URDF", element.tag, element, element.tag, hint)
        name = root.get("name") or "robot"
        self.robot = ImportedTables(allowed(name) or "robot", Path(file).name)
        if name != self.robot.name:
            self.robot.names.renamed[short_text(name)] = self.robot.name
        self.links: dict[str, Element] = {}
        self.masses: dict[str, Mass | None] = {}
        self.others: list[tuple[str, str]] = []  # elements that robot files do not have
        self.driven: list[str] = []  # joints of transmissions
        self.root, self.joints = self._tree(self._elements(root))
        self.named: dict[str, str] = {}  # frames of joints, and of links that hang on fixed ones
        self.at: dict[str, tuple[str, Array, Array]] = {}  # where links stand in them
        self.points: dict[str, str] = {}
        if self.loops.gravity is not None:
            self.robot.gravity = list(self.loops.gravity)
        self._check_words()
        self._give_names()
        self._root()
        for joint in self.joints:
            self._joint(joint)
        self._motors()
        for joint in self.joints:
            self._mimic(joint)
        for first, second, kind in self.loops.pairs:
            self._loop(first, second, kind)
        self._left_out()

    # -- elements of the file

    def error(self, message: str, key: str, element: Element, value: object = None, hint: str = "") -> Exception:
        """What is wrong with an element."""
        return file_error(f"{message} (line {line_of(element)})", self.file, key, value, hint)

    def _elements(self, root: Element) -> dict[str, UrdfJoint]:
        """Links, joints and transmissions; returns the joints."""
        joints: dict[str, UrdfJoint] = {}
        for element in root:
            if element.tag in ("link", "joint"):
                name = self._name(element, element.tag)
                if name in (self.links if element.tag == "link" else joints):
                    message = f"there are two {element.tag}s '{short_text(name)}'"
                    raise self.error(message, element.tag, element, name, "rename one of them")
                if element.tag == "link":
                    self.links[name], self.masses[name] = element, self._mass(element, name)
                else:
                    joints[name] = self._read_joint(element, name)
            elif element.tag == "transmission":
                self.driven += [self._name(child, "transmission") for child in element.iter("joint")]
            elif element.tag != "material":
                self.others.append((element.tag, element.get("name") or element.get("reference") or ""))
        if not self.links:
            raise file_error("has no link", self.file, "link", None, "give a URDF file with links and joints")
        return joints

    def _name(self, element: Element, what: str, key: str = "name") -> str:
        name = (element.get(key) or "").strip()
        if not name:
            raise self.error(f"a {what} has no {key}", what, element, None, f"give it a {key}")
        return name

    def _numbers(self, element: Element | None, key: str, count: int, default: Any, where: str) -> Array:
        """Numbers of an attribute."""
        text = None if element is None else element.get(key)
        if element is None or text is None:
            return np.array(default, dtype=float)
        words = text.split()
        if len(words) != count or not all(NUMBER.fullmatch(word) for word in words):
            what = "a number" if count == 1 else f"{count} numbers"
            raise self.error(f"'{key}' is not {what}", where, element, text, f"write {what}")
        values = np.array([float(word) for word in words])
        if not (np.abs(values) < 1e20).all():
            raise self.error(f"'{key}' is too large", where, element, text, "check the unit")
        return values

    def _number(self, element: Element | None, key: str, default: float, where: str) -> float:
        return float(self._numbers(element, key, 1, [default], where)[0])

    def _origin(self, element: Element, where: str) -> tuple[Array, Array]:
        """Rotation and position."""
        origin = element.find("origin")
        angles = self._numbers(origin, "rpy", 3, NONE, where)
        return roll_pitch_yaw_matrix(angles), self._numbers(origin, "xyz", 3, NONE, where)

    def _mass(self, link: Element, name: str) -> Mass | None:
        """The mass of a link in its own axes."""
        inertial = link.find("inertial")
        if inertial is None:
            return None
        key = f"link '{short_text(name)}': inertial"
        R, p = self._origin(inertial, key)
        m = self._number(inertial.find("mass"), "value", 0.0, key)
        tensor, entries = np.zeros((3, 3)), inertial.find("inertia")
        for word, (i, j) in ENTRIES.items():
            tensor[i, j] = tensor[j, i] = self._number(entries, word, 0.0, key)
        if m < 0:
            message = f"the mass of link '{short_text(name)}' is negative"
            raise self.error(message, key, inertial, m, "give zero or more")
        return Mass(m, NONE, tensor).seen_from(R, p) if m or tensor.any() else None

    def _read_joint(self, element: Element, name: str) -> UrdfJoint:
        kind, key = element.get("type") or "", f"joint '{short_text(name)}'"
        if kind not in KINDS:
            hint = did_you_mean(kind, KINDS)
            raise self.error(f"a joint of type '{short_text(kind)}' is not known", f"{key}: type", element, kind, hint)
        ends: list[str] = []
        for word in ("parent", "child"):
            end = element.find(word)
            if end is None:
                raise self.error(f"the joint has no {word}", key, element, None, f'write <{word} link="NAME"/>')
            ends.append(self._name(end, word, "link"))
        axis = self._numbers(element.find("axis"), "xyz", 3, E3[0], key)
        if kind not in ("fixed", "floating") and not np.linalg.norm(axis) > 1e-9:
            hint = 'write e.g. <axis xyz="0 0 1"/>'
            raise self.error("the axis has no length", f"{key}: axis", element, None, hint)
        origin = self._origin(element, key)
        limit, dynamics, mimic = (element.find(word) for word in ("limit", "dynamics", "mimic"))
        largest = {f"{word}_limit": self._number(limit, word, UNBOUNDED, key) for word in ("velocity", "effort")}
        limited = limit is not None and kind in ("revolute", "prismatic")
        low, high = (self._number(limit if limited else None, word, 0.0, key) for word in ("lower", "upper"))
        word = self.loops.changed.get(name, "")
        return UrdfJoint(
            name, {"SPHERICAL": "spherical", "FIXED": "fixed"}.get(word, word) or kind, ends[0], ends[1], *origin, axis,
            (low, high) if limited and max(abs(low), abs(high)) < UNBOUNDED else None,
            {word: value for word, value in largest.items() if value < UNBOUNDED},
            abs(self._number(dynamics, "damping", 0.0, key)),
            abs(self._number(dynamics, "friction", 0.0, key)),
            None if mimic is None else (self._name(mimic, "mimic", "joint"),
                                        self._number(mimic, "multiplier", 1.0, key),
                                        self._number(mimic, "offset", 0.0, key)),
            tuple(child.tag for child in element if child.tag in ("calibration", "safety_controller")),
        )  # fmt: skip

    def _tree(self, joints: dict[str, UrdfJoint]) -> tuple[str, list[UrdfJoint]]:
        """The root and the joints from there outwards."""
        above: dict[str, str] = {}
        children: dict[str, list[UrdfJoint]] = {}
        for name, joint in joints.items():
            key = f"joint '{short_text(name)}'"
            for link in (joint.parent, joint.child):
                if link not in self.links:
                    hint = did_you_mean(link, self.links)
                    raise file_error(f"there is no link '{short_text(link)}'", self.file, key, link, hint)
            if joint.child in above:
                message = (
                    f"link '{short_text(joint.child)}' hangs on two joints, '{short_text(above[joint.child])}' and "
                    f"'{short_text(name)}'"
                )
                hint = "URDF is a tree: cut the loop there and name both frames in the file of loops"
                raise file_error(message, self.file, key, joint.child, hint)
            above[joint.child] = name
            children.setdefault(joint.parent, []).append(joint)
            if joint.mimic is not None and joint.mimic[0] not in joints:
                message = f"there is no joint '{short_text(joint.mimic[0])}' to follow"
                hint = did_you_mean(joint.mimic[0], joints)
                raise file_error(message, self.file, f"{key}: mimic", joint.mimic[0], hint)
        roots = [name for name in self.links if name not in above]
        if len(roots) != 1:
            hanging = f"{len(roots)} links hang on nothing: {', '.join(map(short_text, roots[:4]))}"
            message = f"is not one tree ({hanging if roots else 'no root'})"
            raise file_error(message, self.file, "link", None, "join them to one root by fixed or floating joints")
        order: list[UrdfJoint] = []
        waiting = children.get(roots[0], [])[::-1]
        while waiting:
            order.append(waiting.pop())
            waiting += reversed(children.get(order[-1].child, []))
        lost = {*above} - {joint.child for joint in order}
        if lost:
            names = [name for name in self.links if name in lost]
            message = f"links hang on each other in a circle: {', '.join(map(short_text, names[:4]))}"
            raise file_error(message, self.file, "joint", names[0], "hang one of them on the root")
        return roots[0], order

    # -- frames

    def _check_words(self) -> None:
        """Refuse joints of the file of loops that the URDF lacks; a cross has a joint for each of its axes."""
        known = {joint.name: joint.kind for joint in self.joints}
        loops = self.loops
        words: dict[str, Any] = {"joint_name": loops.changed, "name_mot": loops.motors}
        for key, names in (words | {"rotor_inertia": loops.rotors, "start": loops.starts}).items():
            for name in names or ():
                axis = name[:-2] if name[-2:] in ("_X", "_Y", "_Z") else name
                if name not in known and not known.get(axis, "").startswith("UJOINT"):
                    message = f"there is no joint '{short_text(name)}' in {Path(self.file).name}"
                    raise file_error(message, self.loops.file, key, name, did_you_mean(name, known))

    def _give_names(self) -> None:
        """Joints that move keep their names; a link on a fixed joint has its own where no joint has it."""
        names = self.robot.names
        self.named = {joint.name: names.give(joint.name) for joint in self.joints if joint.kind != "fixed"}
        if self.floating:
            self.named[""] = names.give(self.root)
        fixed = [joint for joint in self.joints if joint.kind == "fixed"]
        self.named |= {joint.name: names.give(joint.child, joint.name) for joint in fixed}

    def _root(self) -> None:
        mass = self.masses[self.root]
        if self.floating:
            self.robot.add_frame(self.named[""], "base", E3, NONE, joint="free", inertia=mass and mass.table())
        elif mass is not None:
            self.robot.drop("inertia", self.root, ON_GROUND)
        self.at[self.root] = (self.named.get("", "base"), E3, NONE)

    def _joint(self, joint: UrdfJoint) -> None:
        kind, name, mass = joint.kind, self.named[joint.name], self.masses[joint.child]
        above, R0, p0 = self.at[joint.parent]
        R, p = compose(R0, p0, joint.rotation, joint.position)
        self.at[joint.child] = (name, E3, NONE)
        if kind == "fixed":
            self.robot.add_fixed(name, above, R, p, mass, joint.child)
            return
        if kind in ("floating", "spherical"):
            word = "free" if kind == "floating" else kind
            self.robot.add_frame(name, above, R, p, joint=word, inertia=mass and mass.table())
        elif kind == "planar":
            x, y = rotation_to(joint.axis).T[:2]
            axes = [(f"{name}.x", "prismatic", x), (f"{name}.y", "prismatic", y), (name, "revolute", joint.axis)]
            self._chain(joint, above, R, p, axes)
        elif kind.startswith("UJOINT"):
            self._chain(joint, above, R, p, [(f"{name}_{a}", "revolute", AXES[a]) for a in kind[-2:]])
        else:
            self._chain(joint, above, R, p, [(name, "prismatic" if kind == "prismatic" else "revolute", joint.axis)])
            self._terms(joint, self.robot.of(name))
        if joint.child != joint.name:
            self.robot.frame[-1][NOTE] = f"link {joint.child}"
        self._start(joint)

    def _chain(self, joint: UrdfJoint, above: str, R: Array, p: Array, axes: list[tuple[str, str, Any]]) -> None:
        """Joints one after the other, each about or along an axis in the axes of the link; the last one carries it."""
        for name, word, axis in axes:
            if name != self.named[joint.name]:
                name = self.robot.names.give(name, say=False)
            turn = rotation_to(axis)
            self.robot.add_frame(name, above, *compose(R, p, turn, NONE), joint=word)
            above, R, p = name, turn.T, NONE
        mass = self.masses[joint.child]
        if mass is not None:
            self.robot.of(above)["inertia"] = mass.seen_from(R, NONE).table()
        self.at[joint.child] = (above, R, NONE)

    def _terms(self, joint: UrdfJoint, table: dict[str, Any]) -> None:
        """What acts in a joint with one axis."""
        inertia = table.pop("inertia", None)
        if joint.limits is not None and joint.limits[0] < joint.limits[1]:
            table["limits"] = plain_numbers(joint.limits)
        elif joint.limits is not None:
            self.robot.drop("limits", joint.name, "from {:g} to {:g}: no range".format(*joint.limits))
        terms: dict[str, Any] = {key: max(value, 0.0) for key, value in joint.largest.items()}
        terms |= {"motor_inertia": self.loops.rotors.get(joint.name, 0.0)}
        terms |= {"friction": {"coulomb": joint.friction} if joint.friction else None, "damper": joint.damping}
        table |= {key: value for key, value in (terms | {"inertia": inertia}).items() if value}

    def _start(self, joint: UrdfJoint) -> None:
        """The coordinates of a joint from which poses are searched."""
        start = self.loops.starts.get(joint.name)
        if start is None:
            return
        counts = {"revolute": 1, "continuous": 1, "prismatic": 1, "floating": 7, "spherical": 4}
        if len(start) != counts.get(joint.kind, 0):
            message = f"the {joint.kind} joint '{short_text(joint.name)}' has {len(start)} start values"
            hint = "give a number to a joint with one axis, x y z qw qx qy qz to a floating one"
            raise file_error(message, self.loops.file, "start", joint.name, hint)
        self.robot.of(self.named[joint.name])["start"] = start[0] if len(start) == 1 else plain_numbers(start)

    def _one_axis(self) -> set[str]:
        return {table["name"] for table in self.robot.frame if table.get("joint") in ONE_AXIS}

    def _motors(self) -> None:
        """Motors of the file of loops, else those of transmissions; a chain without loops has them everywhere."""
        single, motors = self._one_axis(), list(self.loops.motors or ())
        leading = [joint.name for joint in self.joints if joint.mimic is None]
        if self.loops.motors is None and self.driven:
            motors = [name for name in dict.fromkeys(self.driven) if name in leading]
        elif self.loops.motors is None and self.loops.pairs:
            self.robot.report("no motors are named: give name_mot beside the loops, or mark joints actuated = true")
        elif self.loops.motors is None:
            motors = [name for name in leading if self.named[name] in single]
            self.robot.report("no motors are named: each joint with one axis that mimics no other is a motor")
        for name in motors:
            frame = self.named.get(name, allowed(name))
            if frame in single:
                self.robot.make_motor(frame)
            else:
                self.robot.drop("motor", name, "it is not on a joint with one axis")

    def _mimic(self, joint: UrdfJoint) -> None:
        if joint.mimic is None:
            return
        other, ratio, offset = joint.mimic
        frame, leader = self.named[joint.name], self.named[other]
        if not {frame, leader} <= self._one_axis():
            self.robot.drop("mimic", joint.name, "one of the two joints does not have one axis")
        elif ratio == 0:
            self.robot.of(frame).update(locked=True, start=offset)
        else:
            name = self.robot.names.give(f"{frame}.mimic", say=False)
            table: dict[str, Any] = {"name": name, "joint": frame, "terms": {leader: ratio}}
            self.robot.coupling.append(table | ({"offset": offset} if offset else {}))

    def _loop(self, first: str, second: str, kind: str) -> None:
        ends = [self._place(name, self.loops.file, "closed_loop") for name in (first, second)]
        if ends[0] == ends[1]:
            message = f"'{short_text(first)}' and '{short_text(second)}' are the same frame"
            raise file_error(message, self.loops.file, "closed_loop", first, "name two frames")
        self.robot.closure.append({"between": ends, "joint": kind})

    def end_effector(self, name: str | None) -> str | None:
        """Return the frame of the link or joint `name`, by default of the only leaf: a moving link that carries none.

        The ends of loops are no leaves.
        """
        if name is None:
            inner = {joint.parent for joint in self.joints} | {end for *ends, _ in self.loops.pairs for end in ends}
            inner |= {joint.child for joint in self.joints if joint.name in inner}
            moving = [link for link in self.links if self.at[link][0] in self.robot.moving]
            leaves = [link for link in moving if link not in inner]
            if not moving:
                return None
            if len(leaves) != 1:
                message = f"has {len(leaves)} leaf links, so its end effector must be named"
                hint = f"give end_effector, one of {', '.join(map(short_text, leaves or moving))}"
                raise file_error(message, self.file, "end_effector", None, hint)
            name = leaves[0]
        return self._place(name, self.file, "end_effector")

    def _place(self, name: str, file: str, key: str) -> str:
        """The frame or point at a link, or at the link that a joint carries."""
        carried = {joint.name: joint.child for joint in self.joints}
        link = name if name in self.at else carried.get(name)
        if link is None:
            message = f"there is no frame '{short_text(name)}' in {Path(self.file).name}"
            raise file_error(message, file, key, name, did_you_mean(name, [*self.at, *carried]))
        frame, R, p = self.at[link]
        if np.array_equal(R, E3) and not p.any():
            return frame
        if link not in self.points:
            self.points[link] = self.robot.add_point(self.robot.names.give(link), frame, R, p)
        return self.points[link]

    def _left_out(self) -> None:
        robot, lacking = self.robot, "robot files do not have it"
        tables = {table["name"]: table for table in robot.frame}
        for joint in self.joints:
            for key, value in joint.largest.items():
                if joint.kind != "fixed" and key not in tables.get(self.named[joint.name], {}):
                    why = "only joints with one axis have it here" if value > 0 else "it is not positive"
                    robot.drop(key, joint.name, why)
            for tag in joint.others:
                robot.drop(tag, joint.name, lacking)
            if self.loops.changed.get(joint.name, "FIXED") != "FIXED" and (joint.damping or joint.friction):
                robot.drop("friction", joint.name, "the joint has more than one axis here")
        for name, link in self.links.items():
            self._shapes(name, link)
        for tag, name in self.others:
            robot.drop(tag, name or tag, lacking)
        for key in self.loops.unknown:
            robot.drop("key", key, f"it is not known in {Path(self.loops.file).name}")

    def _shapes(self, name: str, link: Element) -> None:
        """Meshes that are there and of a known format are shown from where they are; other shapes are left out."""
        key, frame = f"link '{short_text(name)}': visual", self.at[name]
        meshes = [(visual, mesh) for visual in link.findall("visual") for mesh in visual.findall("geometry/mesh")]
        for visual, mesh in meshes:
            origin, scale = self._origin(visual, key), self._numbers(mesh, "scale", 3, [1, 1, 1], key)
            file = mesh.get("filename") or ""
            path = mesh_path(Path(self.file), file)
            if path is None or path.suffix.lower() not in MESH_FORMATS:
                self.robot.drop("mesh", file or name, NO_MESH if path is None else OTHER_MESH)
            else:
                self.robot.add_visual(frame[0], path, *compose(*frame[1:], *origin), scale)
        hidden = len(link.findall("collision/geometry/mesh"))
        shapes = sum(len(link.findall(f"{tag}/geometry")) for tag in ("visual", "collision"))
        if hidden:
            self.robot.drop("collision mesh", name, SHAPES)
        if shapes > len(meshes) + hidden:
            self.robot.drop("shape", name, SHAPES)
