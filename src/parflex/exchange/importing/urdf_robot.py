"""URDF and the file of loops beside it as tables of a robot file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.errors import did_you_mean
from parflex.exchange.importing.foreign_files import MESH_FORMATS, NO_MESH, OTHER_MESH, foreign_error, mesh_path
from parflex.exchange.importing.foreign_names import allowed
from parflex.exchange.importing.foreign_robot import E3, NONE, NOTE, Array, ForeignRobot, Mass, numbers, turn_to
from parflex.exchange.importing.loops_file import LoopsFile
from parflex.exchange.importing.urdf_file import UrdfFile, UrdfJoint, UrdfMesh, read_urdf
from parflex.spatial.rotations import compose

AXES = {"X": E3[0], "Y": E3[1], "Z": E3[2]}
SHAPES = "robot files have no shapes"


def urdf_robot(file: str, loops: LoopsFile | None, floating: bool, end_effector: str | None = None) -> ForeignRobot:
    """The tables of a URDF."""
    tables = _UrdfTables(read_urdf(file), loops or LoopsFile(), loops is not None, floating)
    robot = tables.whole()
    robot.end_effector = tables.end_effector(end_effector)
    return robot


class _UrdfTables:
    """Makes a frame of each joint: its z axis is the axis of the joint, so the link on it may be turned in it."""

    def __init__(self, urdf: UrdfFile, loops: LoopsFile, given: bool, floating: bool) -> None:
        self.urdf, self.loops, self.given, self.floating = urdf, loops, given, floating
        self.robot = ForeignRobot(allowed(urdf.name) or "robot", Path(urdf.file).name)
        if urdf.name != self.robot.name:
            self.robot.names.renamed[short_text(urdf.name)] = self.robot.name
        self.kinds = {joint.name: self._kind(joint) for joint in urdf.joints}
        self.named: dict[str, str] = {}  # frames of joints, and of links that hang on fixed ones
        self.at: dict[str, tuple[str, Array, Array]] = {}  # where links stand in them
        self.points: dict[str, str] = {}

    def whole(self) -> ForeignRobot:
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
        for one, other, kind in self.loops.pairs:
            self._loop(one, other, kind)
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
                    raise foreign_error(
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
            x, y = turn_to(joint.axis).T[:2]
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
        for number, (wanted, word, axis) in enumerate(made):
            name, turn = wanted, turn_to(axis)
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
            table["limits"] = numbers(joint.limits)
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
            wanted = list(self.loops.motors)
        elif self.urdf.driven:
            wanted = [name for name in dict.fromkeys(self.urdf.driven) if name in self.named and name not in follows]
        elif self.loops.pairs:
            wanted = []
            robot.warnings.append("no motors are named: give name_mot beside the loops, or mark joints actuated = true")
        else:
            wanted = [joint.name for joint in self.urdf.joints if self.named[joint.name] in single - follows]
            robot.warnings.append("no motors are named: each joint with one axis that mimics no other is a motor")
        for name in wanted:
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

    def _loop(self, one: str, other: str, kind: str) -> None:
        ends = [self._place(name, self.loops.file, "closed_loop") for name in (one, other)]
        if ends[0] == ends[1]:
            raise foreign_error(
                f"'{short_text(one)}' and '{short_text(other)}' are the same frame", self.loops.file, "closed_loop", one,
                "name two frames",
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
                raise foreign_error(
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
                raise foreign_error(
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
