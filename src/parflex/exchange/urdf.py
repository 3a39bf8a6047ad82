"""Robots as URDF, with a file beside it for what URDF has not: loops, motors, gravity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from parflex.closure.constraints import Loop
from parflex.exchange.real_bodies import parts_with_real_bodies
from parflex.exchange.rigid_parts import (
    ExportedRobot,
    RigidPart,
    along,
    centred,
    couplings_of,
    loops_of,
    notes_of,
    parts_of,
    refuse,
    refuse_elements,
    shown_places,
    write_texts,
)
from parflex.robot.robot import Robot
from parflex.spatial.rotations import compose
from parflex.tree.tree import GROUND, Place

Array = np.ndarray
Element = ElementTree.Element
E3 = np.eye(3)
NAME = "URDF"
ROOT = "base"
LOOPS = ".loops.yaml"
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

    Examples
    --------
    >>> parflex.export_urdf(parflex.load("delta"), "delta.urdf").files
    """
    root, loops, notes = urdf_tree(robot)
    ElementTree.indent(root)
    remarks = "".join(f"<!-- {note.replace('--', '- -')} -->\n" for note in notes)
    text = f'<?xml version="1.0"?>\n{remarks}{ElementTree.tostring(root, encoding="unicode")}\n'
    lines = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in loops.items())
    path = Path(out)
    files = write_texts({path: text, path.with_suffix(LOOPS): "".join(f"# {note}\n" for note in notes) + lines})
    return ExportedRobot(files, tuple(notes))


def urdf_tree(robot: Robot) -> tuple[Element, dict[str, Any], list[str]]:
    """The document, the loops beside it, and what both say otherwise than the robot file."""
    refuse_elements(robot, NAME)
    parts, notes = parts_of(robot), notes_of(robot)
    weightless = [part.name for part in parts if part.heavy and not part.body.m > 0]
    if weightless:
        parts = parts_with_real_bodies(robot, NAME, parts, weightless, notes)
    springs = [part.name for part in parts if part.terms.stiffness]
    if springs:
        notes.append(f"URDF has no springs; left out of joints {', '.join(springs)}")
    root = Element("robot", name=robot.name)
    writer = _Writer(robot, root)
    writer.link(ROOT)
    for part in parts:
        writer.part(part, ROOT if part.parent == GROUND else _link(parts[part.parent].name))
    for name, place in shown_places(robot).items():
        writer.frame(name, place)
    for loop in loops_of(robot):
        writer.loop(loop)
    for row in couplings_of(robot):
        writer.mimic(row.name, row.joints, [float(c) for c in row.coefficients], float(row.offset))
    rotors = {part.name: float(part.terms.motor_inertia) for part in parts if part.terms.motor_inertia}
    loops = {"closed_loop": writer.closed, "type": writer.types, "name_mot": robot.actuated_names}
    loops |= {"rotor_inertia": rotors, "gravity": [float(value) for value in robot.tree.gravity]}
    return root, loops, notes


class _Writer:
    """Writes links and joints of one document, and notes its loops."""

    def __init__(self, robot: Robot, root: Element) -> None:
        self.robot, self.root = robot, root
        self.closed: list[list[str]] = []
        self.types: list[str] = []
        self.joints: dict[str, Element] = {}

    def link(self, name: str, part: RigidPart | None = None) -> None:
        """A link, with its inertia."""
        link = ElementTree.SubElement(self.root, "link", name=name)
        if part is None or not part.heavy:
            return
        centre, I = centred(part.body)
        inertial = ElementTree.SubElement(link, "inertial")
        ElementTree.SubElement(inertial, "origin", xyz=_row(centre), rpy="0 0 0")
        ElementTree.SubElement(inertial, "mass", value=repr(float(part.body.m)))
        entries = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
        ElementTree.SubElement(inertial, "inertia", {word: repr(float(I[place])) for word, place in entries.items()})
        self._drawn(link, part)

    def _drawn(self, link: Element, part: RigidPart) -> None:
        """A box about the centre of mass, of the size that its inertia has."""
        centre, I = centred(part.body)
        sizes = np.sqrt(
            np.maximum(6 * (np.trace(I) - 2 * np.diag(I)) / part.body.m, (0.01 * self.robot.tree.length) ** 2)
        )
        visual = ElementTree.SubElement(link, "visual")
        ElementTree.SubElement(visual, "origin", xyz=_row(centre), rpy="0 0 0")
        ElementTree.SubElement(ElementTree.SubElement(visual, "geometry"), "box", size=_row(sizes))

    def joint(
        self, name: str, kind: str, parent: str, child: str, rotation: Array, position: Array, axis: Array = E3[2]
    ) -> Element:
        """A joint between two links."""
        joint = ElementTree.SubElement(self.root, "joint", name=name, type=kind)
        ElementTree.SubElement(joint, "parent", link=parent)
        ElementTree.SubElement(joint, "child", link=child)
        ElementTree.SubElement(joint, "origin", xyz=_row(position), rpy=_row(roll_pitch_yaw(rotation)))
        if kind not in ("fixed", "floating"):
            ElementTree.SubElement(joint, "axis", xyz=_row(axis))
        self.joints[name] = joint
        return joint

    def part(self, part: RigidPart, parent: str) -> None:
        """A link of the tree on its joint."""
        joint, own, here = part.joint, _link(part.name), (part.rotation, part.position)
        if joint.pitch:
            raise refuse(self.robot, NAME, f"the screw '{part.name}'", "export it as mjcf")
        if joint.one_axis:
            kind = "prismatic" if joint.unit == "m" else "revolute" if part.limits else "continuous"
            added = self.joint(part.name, kind, parent, own, *here, E3[joint.axis])
            self._terms(added, part, kind)
        elif joint.kind == "planar":
            for label, kind, axis in (("x", "prismatic", E3[0]), ("y", "prismatic", E3[1])):
                way = f"{part.name}.{label}"
                self._limit(self.joint(way, kind, parent, _link(way), *here, axis))
                self.link(_link(way))
                parent, here = _link(way), (E3, np.zeros(3))
            self.joint(f"{part.name}.theta", "continuous", parent, own, *here)
        else:
            self.joint(part.name, "floating" if joint.position_labels else "fixed", parent, own, *here)
        self.link(own, part)
        if joint.kind == "spherical":  # URDF has no balls: a loose body, held at a point
            ends = [f"{part.name}.A", f"{part.name}.B"]
            for end, base, where in zip(ends, (parent, own), (here, (E3, np.zeros(3))), strict=True):
                self.joint(f"{end}.joint", "fixed", base, end, *where)
                self.link(end)
            self.closed.append(ends)
            self.types.append("3d")

    def _terms(self, joint: Element, part: RigidPart, kind: str) -> None:
        if part.limits or part.velocity_limit or part.effort_limit or kind == "prismatic":
            self._limit(joint, part.limits, part.velocity_limit, part.effort_limit)
        damping, friction = part.terms.viscous + part.terms.damper, part.terms.coulomb
        if damping or friction:
            ElementTree.SubElement(joint, "dynamics", damping=repr(float(damping)), friction=repr(float(friction)))

    @staticmethod
    def _limit(
        joint: Element, limits: tuple[float, float] | None = None, velocity: float | None = None,
        effort: float | None = None,
    ) -> None:  # fmt: skip
        low, high = limits or (-FREE_RANGE, FREE_RANGE)
        words = {"lower": low, "upper": high, "effort": effort or FREE_RANGE, "velocity": velocity or FREE_RANGE}
        ElementTree.SubElement(joint, "limit", {word: repr(float(value)) for word, value in words.items()})

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
        first = compose(loop.first.rotation, loop.first.position, along(loop.u1) if turned else E3, np.zeros(3))
        self.frame(f"{loop.name}.A0" if carriers else f"{loop.name}.A", Place(loop.first.link, *first))
        before = f"{loop.name}.A0"
        for number, (word, axis) in enumerate(carriers, 1):
            name = f"{loop.name}.A" if number == len(carriers) else f"{loop.name}.A{number}"
            kind_of_joint = "continuous" if word == "revolute" else word
            joint = self.joint(f"{name}.joint", kind_of_joint, before, name, E3, np.zeros(3), axis)
            if word == "prismatic":
                self._limit(joint)
            self.link(name)
            before = name
        second = compose(loop.second.rotation, loop.second.position, self._behind(loop, turned), np.zeros(3))
        self.frame(f"{loop.name}.B", Place(loop.second.link, *second))
        self.closed.append([f"{loop.name}.A", f"{loop.name}.B"])
        self.types.append(kind)

    @staticmethod
    def _behind(loop: Loop, turned: bool) -> Array:
        """Axes of the second frame in its place."""
        if not turned or loop.kind in ("point-on-plane", "point-on-line"):
            return E3
        if loop.kind == "prismatic":  # both places have the same axes
            return along(loop.u1)
        return along(loop.u2) if loop.kind != "universal" else along(loop.u2)[:, [2, 0, 1]]

    def mimic(self, name: str, joints: tuple[str, ...], ratios: list[float], offset: float) -> None:
        """A joint that follows another."""
        if len(joints) != 2:
            raise refuse(self.robot, NAME, f"the coupling '{name}' of {len(joints)} joints", "export it as mjcf")
        words = {"joint": joints[1], "multiplier": repr(-ratios[1]), "offset": repr(offset)}
        ElementTree.SubElement(self.joints[joints[0]], "mimic", words)


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


def _row(values: object) -> str:
    return " ".join(repr(float(value)) for value in np.asarray(values, dtype=float).ravel())
