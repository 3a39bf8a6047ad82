"""URDF export and import."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from parflex.checks import short_text
from parflex.closure.constraints import Loop
from parflex.errors import did_you_mean
from parflex.exchange.imported_tables import (
    E3,
    NONE,
    NOTE,
    Array,
    ImportedTables,
    Mass,
    allowed,
    plain_numbers,
    roll_pitch_yaw_matrix,
    rotation_to,
)
from parflex.exchange.loops_yaml import LoopsFile
from parflex.exchange.rigid_model import (
    ExportedRobot,
    RigidPart,
    centred,
    couplings_of,
    export_notes,
    loops_of,
    parts_with_consistent_bodies,
    refuse,
    refuse_elements,
    rigid_parts,
    rotation_along,
    shown_places,
)
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
from parflex.robot.robot import Robot
from parflex.spatial.rotations import compose
from parflex.tree.tree import GROUND, Place

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

AXES = {"X": E3[0], "Y": E3[1], "Z": E3[2]}

SHAPES = "robot files have no shapes"

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")

NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")

UNBOUNDED = 1e8  # rad, m, N, N m and their rates: larger limits are those of files whose joints have none

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
    files = {path: text, path.with_suffix(LOOPS): "".join(f"# {note}\n" for note in notes) + lines}
    write_texts(files)
    return ExportedRobot(tuple(map(str, files)), tuple(notes))


def urdf_tree(robot: Robot) -> tuple[Element, dict[str, Any], list[str]]:
    """The document, the loops beside it, and what both say otherwise than the robot file."""
    refuse_elements(robot, NAME)
    parts, notes = rigid_parts(robot), export_notes(robot)
    weightless = [part.name for part in parts if part.heavy and not part.body.m > 0]
    if weightless:
        parts = parts_with_consistent_bodies(robot, NAME, parts, weightless, notes)
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
        joint, link_name, here = part.joint, _link(part.name), (part.rotation, part.position)
        if joint.pitch:
            raise refuse(self.robot, NAME, f"the screw '{part.name}'", "export it as mjcf")
        if joint.one_axis:
            kind = "prismatic" if joint.unit == "m" else "revolute" if part.limits else "continuous"
            added = self.joint(part.name, kind, parent, link_name, *here, E3[joint.axis])
            self._terms(added, part, kind)
        elif joint.kind == "planar":
            for label, kind, axis in (("x", "prismatic", E3[0]), ("y", "prismatic", E3[1])):
                slide_name = f"{part.name}.{label}"
                self._limit(self.joint(slide_name, kind, parent, _link(slide_name), *here, axis))
                self.link(_link(slide_name))
                parent, here = _link(slide_name), (E3, np.zeros(3))
            self.joint(f"{part.name}.theta", "continuous", parent, link_name, *here)
        else:
            self.joint(part.name, "floating" if joint.position_labels else "fixed", parent, link_name, *here)
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
        first = compose(
            loop.first.rotation, loop.first.position, rotation_along(loop.u1) if turned else E3, np.zeros(3)
        )
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
            return rotation_along(loop.u1)
        return rotation_along(loop.u2) if loop.kind != "universal" else rotation_along(loop.u2)[:, [2, 0, 1]]

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


def urdf_robot(file: str, loops: LoopsFile | None, floating: bool, end_effector: str | None = None) -> ImportedTables:
    """The tables of a URDF."""
    tables = _UrdfTables(read_urdf(file), loops or LoopsFile(), loops is not None, floating)
    robot = tables.whole()
    robot.end_effector = tables.end_effector(end_effector)
    return robot


class _UrdfTables:
    """Makes a frame of each joint: its z axis is the axis of the joint, so the link on it may be turned in it."""

    def __init__(self, urdf: UrdfFile, loops: LoopsFile, has_loops_file: bool, floating: bool) -> None:
        self.urdf, self.loops, self.given, self.floating = urdf, loops, has_loops_file, floating
        self.robot = ImportedTables(allowed(urdf.name) or "robot", Path(urdf.file).name)
        if urdf.name != self.robot.name:
            self.robot.names.renamed[short_text(urdf.name)] = self.robot.name
        self.kinds = {joint.name: self._kind(joint) for joint in urdf.joints}
        self.named: dict[str, str] = {}  # frames of joints, and of links that hang on fixed ones
        self.at: dict[str, tuple[str, Array, Array]] = {}  # where links stand in them
        self.points: dict[str, str] = {}

    def whole(self) -> ImportedTables:
        robot, urdf = self.robot, self.urdf
        if self.loops.gravity is not None:
            robot.gravity = list(self.loops.gravity)
        self._check_words()
        self._give_names()
        self._root()
        for joint in urdf.joints:
            self._joint(joint)
        self._motors()
        for joint in urdf.joints:
            self._mimic(joint)
        for first, second, kind in self.loops.pairs:
            self._loop(first, second, kind)
        self._left_out()
        return robot

    def _kind(self, joint: UrdfJoint) -> str:
        word = self.loops.changed.get(joint.name, "")
        return {"SPHERICAL": "spherical", "FIXED": "fixed"}.get(word, word) or joint.type_name

    def _check_words(self) -> None:
        known = {joint.name for joint in self.urdf.joints}
        for key, names in (
            ("joint_name", self.loops.changed),
            ("name_mot", self.loops.motors or ()),
            ("rotor_inertia", self.loops.rotors),
        ):
            for name in names:
                axis = name[:-2] if name[-2:] in ("_X", "_Y", "_Z") else name  # one axis of a cross
                if name not in known and not self.kinds.get(axis, "").startswith("UJOINT"):
                    raise file_error(
                        f"there is no joint '{short_text(name)}' in {Path(self.urdf.file).name}", self.loops.file, key,
                        name, did_you_mean(name, known),
                    )  # fmt: skip

    def _give_names(self) -> None:
        """Joints that move keep their names; a link on a fixed joint has its own where no joint has it."""
        names = self.robot.names
        for joint in self.urdf.joints:
            if self.kinds[joint.name] != "fixed":
                self.named[joint.name] = names.give(joint.name)
        if self.floating:
            self.named[""] = names.give(self.urdf.root)
        for joint in self.urdf.joints:
            if self.kinds[joint.name] == "fixed":
                self.named[joint.name] = names.give(joint.child, joint.name)

    def _root(self) -> None:
        root, mass = self.urdf.root, self.urdf.links[self.urdf.root].mass
        if self.floating:
            self.robot.add_frame(self.named[""], "base", E3, NONE, joint="free", inertia=mass and mass.table())
            self.at[root] = (self.named[""], E3, NONE)
            return
        self.at[root] = ("base", E3, NONE)
        if mass is not None:
            self.robot.drop("inertia", root, "it is fixed to the ground")

    def _joint(self, joint: UrdfJoint) -> None:
        kind, name, mass = self.kinds[joint.name], self.named[joint.name], self.urdf.links[joint.child].mass
        above, R0, p0 = self.at[joint.parent]
        R, p = compose(R0, p0, joint.rotation, joint.position)
        if kind == "fixed":
            self._fixed(joint, name, above, R, p, mass)
        elif kind in ("floating", "spherical"):
            word = "free" if kind == "floating" else kind
            inertia = mass and mass.table()
            self.robot.add_frame(name, above, R, p, joint=word, inertia=inertia)
            self.at[joint.child] = (name, E3, NONE)
        elif kind == "planar":
            x, y = rotation_to(joint.axis).T[:2]
            self._chain(
                joint, above, R, p, mass,
                [(f"{name}.x", "prismatic", x), (f"{name}.y", "prismatic", y), (name, "revolute", joint.axis)],
            )  # fmt: skip
        elif kind.startswith("UJOINT"):
            turns = [(f"{name}_{letter}", "revolute", AXES[letter]) for letter in kind[-2:]]
            self._chain(joint, above, R, p, mass, turns)
        else:
            word = "prismatic" if kind == "prismatic" else "revolute"
            self._chain(joint, above, R, p, mass, [(name, word, joint.axis)])
            self._terms(joint, self.robot.of(name))
        self._remark(joint)

    def _fixed(self, joint: UrdfJoint, name: str, above: str, R: Array, p: Array, mass: Mass | None) -> None:
        if mass is not None and self._moves(joint.parent):
            self.robot.add_frame(name, above, R, p, inertia=mass.table())
        else:
            self.robot.add_point(name, above, R, p)
            if mass is not None:
                self.robot.drop("inertia", joint.child, "it is fixed to the ground")
        self.at[joint.child] = (name, E3, NONE)

    def _moves(self, link: str) -> bool:
        """Whether any joint between the ground and a link moves."""
        above = {joint.child: joint for joint in self.urdf.joints}
        while link in above:
            if self.kinds[above[link].name] != "fixed":
                return True
            link = above[link].parent
        return self.floating

    def _chain(
        self, joint: UrdfJoint, above: str, R: Array, p: Array, mass: Mass | None, axes: Iterable[tuple[str, str, Any]]
    ) -> None:
        """Joints one after the other, each about or along an axis in the axes of the link; the last one carries it."""
        made = list(axes)
        for number, (requested_name, word, axis) in enumerate(made):
            name, turn = requested_name, rotation_to(axis)
            last = number == len(made) - 1
            inertia = mass.seen_from(turn.T, NONE).table() if last and mass is not None else None
            if name != self.named[joint.name]:
                name = self.robot.names.give(name, say=False)
            place = compose(R, p, turn, NONE)
            self.robot.add_frame(name, above, *place, joint=word, inertia=inertia)
            above, R, p = name, turn.T, NONE
        self.at[joint.child] = (above, R, NONE)

    def _remark(self, joint: UrdfJoint) -> None:
        if self.kinds[joint.name] != "fixed" and joint.child != joint.name:
            self.robot.frame[-1][NOTE] = f"link {joint.child}"

    def _terms(self, joint: UrdfJoint, table: dict[str, Any]) -> None:
        """What acts in a joint with one axis."""
        if joint.limits is not None and joint.limits[0] < joint.limits[1]:
            table["limits"] = plain_numbers(joint.limits)
        elif joint.limits is not None:
            self.robot.drop("limits", joint.name, f"from {joint.limits[0]:g} to {joint.limits[1]:g}: no range")
        table |= {key: value for key, value in self._largest(joint).items() if value > 0}
        inertia = table.pop("inertia", None)
        rotor = self.loops.rotors.get(joint.name, 0.0)
        table |= {"motor_inertia": rotor} if rotor else {}
        table |= {"friction": {"coulomb": joint.friction}} if joint.friction else {}
        table |= {"damper": joint.damping} if joint.damping else {}
        table |= {"inertia": inertia} if inertia else {}

    @staticmethod
    def _largest(joint: UrdfJoint) -> dict[str, float]:
        """Limits of velocity and effort, as far as the file has them."""
        both = {"velocity_limit": joint.velocity, "effort_limit": joint.effort}
        return {key: value for key, value in both.items() if value is not None}

    def _motors(self) -> None:
        """Motors of the file of loops, else those of transmissions; a chain without loops has them everywhere."""
        robot = self.robot
        single = {table["name"] for table in robot.frame if table.get("joint") in ("revolute", "prismatic")}
        follows = {joint.name for joint in self.urdf.joints if joint.mimic is not None}
        if self.loops.motors is not None:
            motors = list(self.loops.motors)
        elif self.urdf.driven:
            motors = [name for name in dict.fromkeys(self.urdf.driven) if name in self.named and name not in follows]
        elif self.loops.pairs:
            motors = []
            text = "no motors are named: give name_mot beside the loops, or mark joints actuated = true"
            robot.report(text)
        else:
            motors = [joint.name for joint in self.urdf.joints if self.named[joint.name] in single - follows]
            text = "no motors are named: each joint with one axis that mimics no other is a motor"
            robot.report(text)
        for name in motors:
            frame = self.named.get(name, allowed(name))
            if frame not in single:
                robot.drop("motor", name, "it is not on a joint with one axis")
                continue
            table = robot.of(frame)
            rest = {key: table.pop(key) for key in list(table) if key not in ("name", "parent", "joint", "place")}
            table |= {"actuated": True} | rest

    def _mimic(self, joint: UrdfJoint) -> None:
        if joint.mimic is None:
            return
        other, ratio, offset = joint.mimic
        frame, others = self.named[joint.name], self.named[other]
        single = [table["name"] for table in self.robot.frame if table.get("joint") in ("revolute", "prismatic")]
        if frame not in single or others not in single:
            self.robot.drop("mimic", joint.name, "one of the two joints does not have one axis")
        elif ratio == 0:
            self.robot.of(frame).update(locked=True, start=offset)
        else:
            name = self.robot.names.give(f"{frame}.mimic", say=False)
            table: dict[str, Any] = {"name": name, "joint": frame, "terms": {others: ratio}}
            self.robot.coupling.append(table | ({"offset": offset} if offset else {}))

    def _loop(self, first: str, second: str, kind: str) -> None:
        ends = [self._place(name, self.loops.file, "closed_loop") for name in (first, second)]
        if ends[0] == ends[1]:
            raise file_error(
                f"'{short_text(first)}' and '{short_text(second)}' are the same frame", self.loops.file, "closed_loop",
                first, "name two frames",
            )  # fmt: skip
        self.robot.closure.append({"between": ends, "joint": kind})

    def end_effector(self, name: str | None) -> str | None:
        """Return the frame of the link or joint `name`, by default of the only leaf: a moving link that carries none.

        The ends of loops are no leaves.
        """
        if name is None:
            inner = {joint.parent for joint in self.urdf.joints} | {
                end for *ends, _ in self.loops.pairs for end in ends
            }
            inner |= {joint.child for joint in self.urdf.joints if joint.name in inner}
            moving = [link for link in self.urdf.links if self._moves(link)]
            leaves = [link for link in moving if link not in inner]
            if not moving:
                return None
            if len(leaves) != 1:
                named = ", ".join(map(short_text, leaves or moving))
                raise file_error(
                    f"has {len(leaves)} leaf links, so its end effector must be named", self.urdf.file, "end_effector",
                    None, f"give end_effector, one of {named}",
                )  # fmt: skip
            name = leaves[0]
        return self._place(name, self.urdf.file, "end_effector")

    def _place(self, name: str, file: str, key: str) -> str:
        """The frame or point at a link, or at the link that a joint carries."""
        link = name
        if link not in self.at:
            carried = {joint.name: joint.child for joint in self.urdf.joints}
            if name not in carried:
                raise file_error(
                    f"there is no frame '{short_text(name)}' in {Path(self.urdf.file).name}", file, key, name,
                    did_you_mean(name, [*self.at, *carried]),
                )  # fmt: skip
            link = carried[name]
        frame, R, p = self.at[link]
        if np.array_equal(R, E3) and not p.any():
            return frame
        if link not in self.points:
            self.points[link] = self.robot.add_point(self.robot.names.give(link), frame, R, p)
        return self.points[link]

    def _left_out(self) -> None:
        robot = self.robot
        for joint in self.urdf.joints:
            table = next((table for table in robot.frame if table["name"] == self.named[joint.name]), {})
            for key, value in self._largest(joint).items():
                if joint.type_name != "fixed" and key not in table:
                    why = "only joints with one axis have it here" if value > 0 else "it is not positive"
                    robot.drop(key, joint.name, why)
            for tag in joint.other:
                robot.drop(tag, joint.name, "robot files do not have it")
            if self.loops.changed.get(joint.name, "FIXED") != "FIXED" and (joint.damping or joint.friction):
                robot.drop("friction", joint.name, "the joint has more than one axis here")
        for link in self.urdf.links.values():
            for mesh in link.meshes:
                self._mesh(link.name, mesh)
            if link.collisions:
                robot.drop("collision mesh", link.name, SHAPES)
            if link.shapes:
                robot.drop("shape", link.name, SHAPES)
        for tag, name in self.urdf.other:
            robot.drop(tag, name or tag, "robot files do not have it")
        for key in self.loops.unknown:
            robot.drop("key", key, f"it is not known in {Path(self.loops.file).name}")

    def _mesh(self, link: str, mesh: UrdfMesh) -> None:
        """A mesh that is there and of a known format is shown from where it is."""
        path = mesh_path(Path(self.urdf.file), mesh.name)
        if path is None or path.suffix.lower() not in MESH_FORMATS:
            self.robot.drop("mesh", mesh.name or link, NO_MESH if path is None else OTHER_MESH)
            return
        frame, R, p = self.at[link]
        self.robot.add_visual(frame, path, *compose(R, p, mesh.rotation, mesh.position), mesh.scale)


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
        raise file_error(
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
        return file_error(f"{message} (line {line_of(element)})", self.file, key, value, hint)

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
                driven += [self.name(child, "transmission") for child in element.iter("joint")]
            elif element.tag != "material":
                other.append((element.tag, element.get("name") or element.get("reference") or ""))
        if not links:
            raise file_error("has no link", self.file, "link", None, "give a URDF file with links and joints")
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
            tuple(child.tag for child in element if child.tag in ("calibration", "safety_controller")),
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
                    raise file_error(f"there is no link '{short_text(link)}'", self.file, key, link, hint)
            if joint.child in above:
                raise file_error(
                    f"link '{short_text(joint.child)}' hangs on two joints, '{short_text(above[joint.child])}' and "
                    f"'{short_text(joint.name)}'", self.file, key, joint.child,
                    "URDF is a tree: cut the loop there and name both frames in the file of loops",
                )  # fmt: skip
            above[joint.child] = joint.name
            if joint.mimic is not None and joint.mimic[0] not in joints:
                hint = did_you_mean(joint.mimic[0], joints)
                message = f"there is no joint '{short_text(joint.mimic[0])}' to follow"
                raise file_error(message, self.file, f"{key}: mimic", joint.mimic[0], hint)
        roots = [name for name in links if name not in above]
        if len(roots) != 1:
            what = (
                f"{len(roots)} links hang on nothing: {', '.join(map(short_text, roots[:4]))}" if roots else "no root"
            )
            hint = "join them to one root by fixed or floating joints"
            raise file_error(f"is not one tree ({what})", self.file, "link", None, hint)
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
            raise file_error(message, self.file, "joint", lost[0], "hang one of them on the root")
        return roots[0], order
