"""MJCF export for MuJoCo: bodies, joints, motors, and loops as equality constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.closure.constraints import Distance, Loop, neutral_rotation
from parflex.exchange.rigid_model import (
    ExportedRobot,
    RigidPart,
    centred,
    children_of,
    couplings_of,
    export_notes,
    is_consistent,
    loops_of,
    parts_with_consistent_bodies,
    refuse,
    refuse_elements,
    rigid_parts,
    shown_places,
)
from parflex.io import write_text
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.spatial.rotations import compose, matrix_quaternion
from parflex.tree.tree import GROUND, Place

Array = np.ndarray
Element = ElementTree.Element
E3 = np.eye(3)
NAME = "MJCF"
LEAST = 1e-12  # kg m2, or of the largest moment: second moments about the centre that MuJoCo takes for positive
THICK = 0.015  # of a typical length: radius of what is drawn


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

    Examples
    --------
    >>> parflex.export_mjcf(parflex.load("delta"), "delta.xml").file
    """
    root, notes = mjcf_tree(robot)
    ElementTree.indent(root)
    text = "".join(f"<!-- {note.replace('--', '- -')} -->\n" for note in notes)
    whole = f"{text}{ElementTree.tostring(root, encoding='unicode')}\n"
    write_text(out, whole)
    return ExportedRobot((str(out),), tuple(notes))


def mjcf_tree(robot: Robot) -> tuple[Element, list[str]]:
    """The document, and what it says otherwise than the robot file."""
    refuse_elements(robot, NAME, ("spring", "damper", "rod"))
    notes = export_notes(robot)
    parts = _with_real_bodies(robot, rigid_parts(robot), notes)
    root = Element("mujoco", model=robot.name)
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    option = ElementTree.SubElement(root, "option", gravity=_row(robot.tree.gravity), timestep="0.001")
    ElementTree.SubElement(option, "flag", contact="disable")
    writer = _Writer(robot, parts, root)
    writer.bodies()
    writer.constraints()
    writer.actuators()
    return root, notes


def _with_real_bodies(robot: Robot, parts: list[RigidPart], notes: list[str]) -> list[RigidPart]:
    """Parts with bodies that MuJoCo takes."""
    if robot.tree.planar:  # only turns about the normal are felt
        return [replace(part, body=_flat(robot, j, part)) if part.heavy else part for j, part in enumerate(parts)]
    unreal = [part.name for part in parts if part.heavy and not is_consistent(part.body)]
    return parts_with_consistent_bodies(robot, NAME, parts, unreal, notes) if unreal else parts


def _flat(robot: Robot, number: int, part: RigidPart) -> RigidBody:
    """A ball with the same mass, centre and inertia about the normal of the plane."""
    normal = neutral_rotation(robot.tree, Place(number, E3, np.zeros(3))).T @ E3[2]
    if not part.body.m > 0:
        return part.body
    centre, I = centred(part.body)
    return RigidBody.from_centre(float(part.body.m), centre, float(normal @ I @ normal) * E3)


class _Writer:
    """Writes the sections of one document."""

    def __init__(self, robot: Robot, parts: list[RigidPart], root: Element) -> None:
        self.robot, self.parts, self.root = robot, parts, root
        self.length = robot.tree.length
        self.home: list[float] = []
        self.at: dict[int, Element] = {}
        self.sites: set[str] = set()
        self.elastic: Element | None = None
        held = {place.link for loop in loops_of(robot) for place in (loop.first, loop.second)}
        held |= {robot.tree.place(end).link for element in robot.description.element for end in element.between}
        self.held = held | {robot.tree.place(robot.tree.end_effector).link}

    def bodies(self) -> None:
        """Bodies within bodies; one without mass lends its joint to the one that it carries."""
        world = ElementTree.SubElement(self.root, "worldbody")
        ElementTree.SubElement(world, "light", pos=_row([0, 0, 4 * self.length]), dir="0 0 -1")
        self.at[GROUND] = world
        for child in children_of(self.parts, GROUND):
            self._body(world, child, E3, np.zeros(3), [])
        for name, place in shown_places(self.robot).items():
            if place.link in self.at:
                self._site(name, place)
        self._key()

    def _body(self, above: Element, number: int, rotation: Array, position: Array, axes: Sequence[BodyJoint]) -> None:
        part = self.parts[number]
        rotation, position = compose(rotation, position, part.rotation, part.position)
        moved = [_seen_from(axis, part) for axis in axes] + self._axes(part)
        inside = children_of(self.parts, number)
        if not part.heavy and moved:
            if len(inside) == 1 and number not in self.held and part.joint.one_axis:
                self._body(above, inside[0], rotation, position, moved)
                return
            if part.joint.position_labels or axes:
                raise refuse(
                    self.robot, NAME, f"'{part.name}', which moves and has no mass", "give it a mass and an inertia"
                )
        body = ElementTree.SubElement(above, "body", name=part.name, pos=_row(position), **_turn(rotation))
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
        slides = [
            ("slide", f"{part.name}.{label}", axis, float(q[k]))
            for k, (label, axis) in enumerate(zip("xyz", E3, strict=True))
        ]
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
            ElementTree.SubElement(body, "freejoint", name=axis.name)
            self.home += [float(value) for value in part.home]
            return
        words = {"name": axis.name, "type": axis.kind, "pos": _row(axis.position)}
        if axis.kind == "ball":
            ElementTree.SubElement(body, "joint", words)
            self.home += [float(value) for value in part.home[-4:]]
            return
        words["axis"] = _row(axis.axis)
        if axis.name == part.name:
            numbers = {"damping": terms.viscous + terms.damper, "frictionloss": terms.coulomb}
            numbers |= {"armature": terms.motor_inertia, "stiffness": terms.stiffness}
            words |= {word: repr(float(value)) for word, value in numbers.items() if value}
            words |= {"springref": repr(float(terms.rest))} if terms.stiffness else {}
            words |= {"range": _row(part.limits)} if part.limits else {}
            most = part.effort_limit
            words |= {"actuatorfrcrange": _row((-most, most))} if most else {}
        ElementTree.SubElement(body, "joint", words)
        self.home.append(axis.home)

    def _inertia(self, body: Element, part: RigidPart) -> None:
        if not part.body.m > 0:
            raise refuse(self.robot, NAME, f"the inertia of '{part.name}' without a mass", "give it a mass")
        centre, I = centred(part.body)
        Sigma = np.trace(I) / 2 * E3 - I
        values, axes = np.linalg.eigh(Sigma)
        least = LEAST * max(1.0, float(np.abs(I).max()))
        if values[0] < least:  # a thin rod, a point, or rounding of these
            Sigma = axes @ np.diag(np.maximum(values, least)) @ axes.T
            I = np.trace(Sigma) * E3 - Sigma
        entries = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
        words = {"pos": _row(centre), "mass": repr(float(part.body.m)), "fullinertia": _row(entries)}
        ElementTree.SubElement(body, "inertial", words)

    def _drawn(self, body: Element, number: int) -> None:
        """Bars from the joint to what the body carries; they touch nothing and weigh nothing."""
        ends = [part.position for part in self.parts if part.parent == number]
        ends += [
            place.position
            for loop in loops_of(self.robot)
            for place in (loop.first, loop.second)
            if place.link == number
        ]
        radius = repr(THICK * self.length)
        looks: dict[str, Any] = {"contype": "0", "conaffinity": "0", "mass": "0"}
        long = [end for end in ends if np.linalg.norm(end) > 2 * THICK * self.length]
        for end in long:
            ElementTree.SubElement(
                body, "geom", type="capsule", fromto=_row([0, 0, 0, *end]), size=radius, rgba="0.4 0.5 0.65 1", **looks
            )
        if not long:
            ElementTree.SubElement(body, "geom", type="sphere", size=radius, rgba="0.75 0.45 0.3 1", **looks)

    def _site(self, name: str, place: Place) -> str:
        while name in self.sites:
            name += "_end"
        self.sites.add(name)
        ElementTree.SubElement(
            self.at[place.link], "site", name=name, pos=_row(place.position), **_turn(place.rotation)
        )
        return name

    def _key(self) -> None:
        frames = ElementTree.SubElement(self.root, "keyframe")
        ElementTree.SubElement(frames, "key", name="home", qpos=_row(self.home))

    def constraints(self) -> None:
        """Loops, couplings, screws and rods."""
        section = Element("equality")
        for loop in loops_of(self.robot):
            self._loop(section, loop)
        for row in couplings_of(self.robot):
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
            raise refuse(
                self.robot, NAME, f"the {loop.kind} closure '{loop.name}': MuJoCo ties points and frames",
                "close the loop at a revolute, spherical or welded joint",
            )  # fmt: skip
        reaches = (0.0, self.length) if pin and not self.robot.tree.planar else (0.0,)
        for reach, mark in zip(reaches, ("", ".axis"), strict=False):
            sites = []
            for place, u, end in ((loop.first, loop.u1, "A"), (loop.second, loop.u2, "B")):
                here = Place(place.link, place.rotation, place.position + place.rotation @ (reach * u))
                sites.append(self._site(f"{loop.name}{mark}.{end}", here))
            words = {"name": f"{loop.name}{mark}", "site1": sites[0], "site2": sites[1]}
            ElementTree.SubElement(section, "weld" if loop.kind == "welded" else "connect", words)

    def _coupled(self, section: Element, name: str, joints: Sequence[str], ratios: list[float], offset: float) -> None:
        """One coordinate follows another, or a sum of them."""
        if len(joints) == 2:
            poly = [offset, -ratios[1], 0, 0, 0]
            words = {"name": name, "joint1": joints[0], "joint2": joints[1], "polycoef": _row(poly)}
            ElementTree.SubElement(section, "joint", words)
            return
        fixed = ElementTree.SubElement(self._tendons(), "fixed", name=name)
        for joint, ratio in zip(joints, ratios, strict=True):
            ElementTree.SubElement(fixed, "joint", joint=joint, coef=repr(ratio))
        ElementTree.SubElement(section, "tendon", name=name, tendon1=name, polycoef=_row([offset, 0, 0, 0, 0]))

    def _tendons(self) -> Element:
        if self.elastic is None:
            self.elastic = ElementTree.SubElement(self.root, "tendon")
        return self.elastic

    def _elements(self, section: Element) -> None:
        """Springs, dampers and rods as tendons between two sites."""
        for element in self.robot.description.element:
            sites = []
            for end, letter in zip(element.between, "AB", strict=True):
                sites.append(self._site(f"{element.name}.{letter}", self.robot.tree.place(end)))
            words = {"name": element.name}
            if element.kind == "rod":
                poly = _row([self._stretch(element.name), 0, 0, 0, 0])
                ElementTree.SubElement(section, "tendon", name=element.name, tendon1=element.name, polycoef=poly)
            else:
                numbers = {"stiffness": element.stiffness, "damping": element.damping, "springlength": element.rest}
                words |= {word: repr(float(value)) for word, value in numbers.items() if value}
            tendon = ElementTree.SubElement(self._tendons(), "spatial", words)
            for site in sites:
                ElementTree.SubElement(tendon, "site", site=site)

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
            ElementTree.SubElement(section, "motor", name=name, joint=name)
        if len(section):
            self.root.append(section)


def _seen_from(axis: BodyJoint, part: RigidPart) -> BodyJoint:
    """The joint of a body without mass in the axes of the part that it carries."""
    turn = part.rotation.T
    return replace(axis, axis=turn @ axis.axis, position=turn @ (axis.position - part.position))


def _row(values: object) -> str:
    return " ".join(repr(float(value)) for value in np.asarray(values, dtype=float).ravel())


def _turn(rotation: Array) -> dict[str, Any]:
    return {} if np.array_equal(rotation, E3) else {"quat": _row(matrix_quaternion(rotation))}
