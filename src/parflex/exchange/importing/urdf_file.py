"""URDF as it stands in the file: links with their masses, joints between them, checked to be one tree."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.errors import did_you_mean
from parflex.exchange.importing.foreign_files import Element, foreign_error, line_of, read_xml
from parflex.exchange.importing.foreign_robot import E3, NONE, Array, Mass, roll_pitch_yaw_matrix
from parflex.records import Record

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
UNBOUNDED = 1e8  # rad, m, N, N m and their rates: larger limits are those of files whose joints have none
ENTRIES = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}


@dataclass(frozen=True, eq=False, repr=False)
class UrdfMesh(Record):
    """A mesh that shows a link: name of its file, place on the link, scale along its axes."""

    name: str
    rotation: Array
    position: Array
    scale: Array


@dataclass(frozen=True)
class UrdfLink:
    """A link: its mass, if any, and names of what shows it."""

    name: str
    mass: Mass | None = None
    meshes: tuple[UrdfMesh, ...] = ()
    shapes: int = 0
    collisions: int = 0  # meshes that nothing shows


@dataclass(frozen=True, eq=False, repr=False)
class UrdfJoint(Record):
    """A joint between two links, as the file has it."""

    name: str
    type_name: str
    parent: str
    child: str
    rotation: Array
    position: Array
    axis: Array
    limits: tuple[float, float] | None = None
    damping: float = 0.0
    friction: float = 0.0
    mimic: tuple[str, float, float] | None = None
    velocity: float | None = None  # largest ones; None: none is given
    effort: float | None = None
    other: tuple[str, ...] = ()


@dataclass(frozen=True)
class UrdfFile:
    """The links, the joints from the root outwards, joints that transmissions drive, and what else stands there."""

    file: str
    name: str
    root: str
    links: dict[str, UrdfLink]
    joints: list[UrdfJoint]
    driven: list[str]
    other: list[tuple[str, str]] = field(default_factory=list)


def read_urdf(file: str) -> UrdfFile:
    """Read a file."""
    root = read_xml(file)
    if root.tag != "robot":
        raise foreign_error(
            f"begins with <{short_text(root.tag)}>, not with <robot>", file, "robot", root.tag, "give a URDF file"
        )
    reader = _UrdfReader(file)
    return reader.whole(root)


class _UrdfReader:
    """Reads elements; everything wrong is said with the line."""

    def __init__(self, file: str) -> None:
        self.file = file

    def bad(self, message: str, key: str, element: Element, value: object = None, hint: str = "") -> Exception:
        """What is wrong with an element."""
        return foreign_error(f"{message} (line {line_of(element)})", self.file, key, value, hint)

    def whole(self, root: Element) -> UrdfFile:
        for element in root.iter():
            if "xacro" in element.tag or any("${" in value or "$(" in value for value in element.attrib.values()):
                hint = "expand it first: xacro FILE > robot.urdf"
                raise self.bad("is a xacro file, not a URDF", element.tag, element, element.tag, hint)
        links: dict[str, UrdfLink] = {}
        joints: dict[str, UrdfJoint] = {}
        other: list[tuple[str, str]] = []
        driven: list[str] = []
        for element in root:
            if element.tag == "link":
                link = self.link(element)
                self._new(link.name, links, "link", element)
                links[link.name] = link
            elif element.tag == "joint":
                joint = self.joint(element)
                self._new(joint.name, joints, "joint", element)
                joints[joint.name] = joint
            elif element.tag == "transmission":
                driven += [self.name(one, "transmission") for one in element.iter("joint")]
            elif element.tag != "material":
                other.append((element.tag, element.get("name") or element.get("reference") or ""))
        if not links:
            raise foreign_error("has no link", self.file, "link", None, "give a URDF file with links and joints")
        top, order = self._tree(links, joints)
        return UrdfFile(self.file, root.get("name") or "robot", top, links, order, driven, other)

    def _new(self, name: str, known: Any, what: str, element: Element) -> None:
        if name in known:
            raise self.bad(f"there are two {what}s '{short_text(name)}'", what, element, name, "rename one of them")

    def name(self, element: Element, what: str, key: str = "name") -> str:
        """A name that must be there."""
        name = (element.get(key) or "").strip()
        if not name:
            raise self.bad(f"a {what} has no {key}", what, element, None, f"give it a {key}")
        return name

    def numbers(self, element: Element | None, key: str, count: int, default: Any, where: str) -> Array:
        """Numbers of an attribute."""
        text = None if element is None else element.get(key)
        if element is None or text is None:
            return np.array(default, dtype=float)
        words = text.split()
        if len(words) != count or not all(NUMBER.fullmatch(word) for word in words):
            what = "a number" if count == 1 else f"{count} numbers"
            raise self.bad(f"'{key}' is not {what}", where, element, text, f"write {what}")
        values = np.array([float(word) for word in words])
        if not (np.abs(values) < 1e20).all():
            raise self.bad(f"'{key}' is too large", where, element, text, "check the unit")
        return values

    def number(self, element: Element | None, key: str, default: float, where: str) -> float:
        """One number."""
        return float(self.numbers(element, key, 1, [default], where)[0])

    def origin(self, element: Element | None, where: str) -> tuple[Array, Array]:
        """Rotation and position."""
        origin = None if element is None else element.find("origin")
        angles = self.numbers(origin, "rpy", 3, NONE, where)
        return roll_pitch_yaw_matrix(angles), self.numbers(origin, "xyz", 3, NONE, where)

    def link(self, element: Element) -> UrdfLink:
        """A link."""
        name = self.name(element, "link")
        key = f"link '{short_text(name)}': visual"
        meshes = []
        for visual in element.findall("visual"):
            for mesh in visual.findall("geometry/mesh"):
                scale = self.numbers(mesh, "scale", 3, [1, 1, 1], key)
                meshes.append(UrdfMesh(mesh.get("filename") or "", *self.origin(visual, key), scale))
        shapes = sum(len(element.findall(f"{tag}/geometry")) for tag in ("visual", "collision"))
        hidden = len(element.findall("collision/geometry/mesh"))
        return UrdfLink(name, self.mass(element, name), tuple(meshes), shapes - len(meshes) - hidden, hidden)

    def mass(self, element: Element, name: str) -> Mass | None:
        """The mass of a link in its own axes."""
        inertial = element.find("inertial")
        if inertial is None:
            return None
        key = f"link '{short_text(name)}': inertial"
        R, p = self.origin(inertial, key)
        m = self.number(inertial.find("mass"), "value", 0.0, key)
        tensor, entries = np.zeros((3, 3)), inertial.find("inertia")
        for word, (i, j) in ENTRIES.items():
            tensor[i, j] = tensor[j, i] = self.number(entries, word, 0.0, key)
        if m < 0:
            raise self.bad(f"the mass of link '{short_text(name)}' is negative", key, inertial, m, "give zero or more")
        return Mass(m, NONE, tensor).seen_from(R, p) if m or tensor.any() else None

    def joint(self, element: Element) -> UrdfJoint:
        """A joint."""
        name, kind = self.name(element, "joint"), element.get("type") or ""
        key = f"joint '{short_text(name)}'"
        if kind not in KINDS:
            hint = did_you_mean(kind, KINDS)
            raise self.bad(f"a joint of type '{short_text(kind)}' is not known", f"{key}: type", element, kind, hint)
        ends: list[str] = []
        for word in ("parent", "child"):
            end = element.find(word)
            if end is None:
                raise self.bad(f"the joint has no {word}", key, element, None, f'write <{word} link="NAME"/>')
            ends.append(self.name(end, word, "link"))
        axis = self.numbers(element.find("axis"), "xyz", 3, E3[0], key)
        if kind not in ("fixed", "floating") and not np.linalg.norm(axis) > 1e-9:
            raise self.bad("the axis has no length", f"{key}: axis", element, None, 'write e.g. <axis xyz="0 0 1"/>')
        R, p = self.origin(element, key)
        limit, dynamics = element.find("limit"), element.find("dynamics")
        velocity, effort = (self.number(limit, word, UNBOUNDED, key) for word in ("velocity", "effort"))
        return UrdfJoint(
            name, kind, ends[0], ends[1], R, p, axis,
            self._limits(limit, kind, key),
            abs(self.number(dynamics, "damping", 0.0, key)),
            abs(self.number(dynamics, "friction", 0.0, key)),
            self._mimic(element.find("mimic"), key),
            velocity if velocity < UNBOUNDED else None,
            effort if effort < UNBOUNDED else None,
            tuple(one.tag for one in element if one.tag in ("calibration", "safety_controller")),
        )  # fmt: skip

    def _limits(self, limit: Element | None, kind: str, key: str) -> tuple[float, float] | None:
        if limit is None or kind not in ("revolute", "prismatic"):
            return None
        low, high = self.number(limit, "lower", 0.0, key), self.number(limit, "upper", 0.0, key)
        return (low, high) if max(abs(low), abs(high)) < UNBOUNDED else None

    def _mimic(self, mimic: Element | None, key: str) -> tuple[str, float, float] | None:
        if mimic is None:
            return None
        ratio, offset = self.number(mimic, "multiplier", 1.0, key), self.number(mimic, "offset", 0.0, key)
        return self.name(mimic, "mimic", "joint"), ratio, offset

    def _tree(self, links: dict[str, UrdfLink], joints: dict[str, UrdfJoint]) -> tuple[str, list[UrdfJoint]]:
        """The root and the joints from there outwards."""
        above: dict[str, str] = {}
        for joint in joints.values():
            key = f"joint '{short_text(joint.name)}'"
            for link in (joint.parent, joint.child):
                if link not in links:
                    hint = did_you_mean(link, links)
                    raise foreign_error(f"there is no link '{short_text(link)}'", self.file, key, link, hint)
            if joint.child in above:
                raise foreign_error(
                    f"link '{short_text(joint.child)}' hangs on two joints, '{short_text(above[joint.child])}' and "
                    f"'{short_text(joint.name)}'", self.file, key, joint.child,
                    "URDF is a tree: cut the loop there and name both frames in the file of loops",
                )  # fmt: skip
            above[joint.child] = joint.name
            if joint.mimic is not None and joint.mimic[0] not in joints:
                hint = did_you_mean(joint.mimic[0], joints)
                message = f"there is no joint '{short_text(joint.mimic[0])}' to follow"
                raise foreign_error(message, self.file, f"{key}: mimic", joint.mimic[0], hint)
        roots = [name for name in links if name not in above]
        if len(roots) != 1:
            what = (
                f"{len(roots)} links hang on nothing: {', '.join(map(short_text, roots[:4]))}" if roots else "no root"
            )
            hint = "join them to one root by fixed or floating joints"
            raise foreign_error(f"is not one tree ({what})", self.file, "link", None, hint)
        order, reached = [], {roots[0]}
        children: dict[str, list[UrdfJoint]] = {}
        for joint in joints.values():
            children.setdefault(joint.parent, []).append(joint)
        waiting = list(reversed(children.get(roots[0], [])))
        while waiting:
            joint = waiting.pop()
            order.append(joint)
            reached.add(joint.child)
            waiting += reversed(children.get(joint.child, []))
        lost = [name for name in links if name not in reached]
        if lost:
            message = f"links hang on each other in a circle: {', '.join(map(short_text, lost[:4]))}"
            raise foreign_error(message, self.file, "joint", lost[0], "hang one of them on the root")
        return roots[0], order
