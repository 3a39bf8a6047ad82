"""A robot as rigid parts on joints, as other programs want it: flexible bodies undeformed, locked joints fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.closure.constraints import Coupling, Loop
from parflex.errors import InputError
from parflex.io import atomic_files
from parflex.records import Answer, Record
from parflex.robot.robot import Robot
from parflex.spatial.rotations import compose, cross
from parflex.tree import joints
from parflex.tree.joints import Joint
from parflex.tree.tree import GROUND, JointTerms

Array = np.ndarray
E3 = np.eye(3)
ENDS = ("A", "B", "axis.A", "axis.B", *(f"A{k}" for k in range(6)))  # of a loop, as places of other formats


@dataclass(frozen=True, eq=False, repr=False)
class RigidPart(Record):
    """A body on a joint: where the joint is mounted on the parent, and what acts in it."""

    name: str
    parent: int
    rotation: Array
    position: Array
    joint: Joint
    body: RigidBody
    terms: JointTerms
    limits: tuple[float, float] | None
    home: Array  # coordinates of the joint
    motor: bool
    velocity_limit: float | None = None
    effort_limit: float | None = None

    @property
    def heavy(self) -> bool:
        """Whether it has mass."""
        return bool(np.any(self.body.inertia_matrix()))


@dataclass(frozen=True, eq=False, repr=False)
class ExportedRobot(Answer):
    """The `files` that were written, the one asked for first; `notes` on what differs from the robot file."""

    files: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The file that was asked for."""
        return self.files[0]


def parts_of(robot: Robot) -> list[RigidPart]:
    """Links of the tree; lengths of elements between two points are none."""
    found = []
    for link in robot.tree.links:
        rotation, position, joint = link.rotation, link.position, link.joint
        if link.v.start in robot.locked and link.v.stop > link.v.start:
            rotation, position = compose(rotation, position, *joint.transform(robot.home[link.q]))
            joint = joints.fixed()
        motor = link.joint.one_axis and link.v.start in robot.actuated
        body = undeformed(link.body)
        found.append(
            RigidPart(
                link.name, link.parent, rotation, position, joint, body, link.terms, link.limits, robot.home[link.q],
                motor, link.velocity_limit, link.effort_limit,
            )
        )  # fmt: skip
    return found


def undeformed(body: Any) -> RigidBody:
    """The rigid body that an elastic one is where nothing deforms it."""
    M = np.asarray(body.inertia_matrix(np.zeros(body.size)), dtype=float)[:6, :6]
    I = M[3:, 3:]
    return RigidBody(float(M[0, 0]), np.array([M[5, 1], M[3, 2], M[4, 0]]), np.trace(I) / 2 * E3 - I)


def centred(body: RigidBody) -> tuple[Array, Array]:
    """Centre of mass, and the inertia about it."""
    centre = body.S / body.m
    return centre, body.I - body.m * (centre @ centre * E3 - np.outer(centre, centre))


def couplings_of(robot: Robot) -> list[Coupling]:
    """Rigid couplings between joints."""
    return [row for row in robot.closures.constraints if isinstance(row, Coupling)]


def loops_of(robot: Robot) -> tuple[Loop, ...]:
    """Loops between two places; their ends are written as places of their own, and none has the name of another."""
    taken = {*robot.tree.places, *(link.name for link in robot.tree.links)}
    return tuple(replace(loop, name=_free_name(loop.name, taken)) for loop in robot.closures.loops)


def _free_name(name: str, taken: set[str]) -> str:
    while any(f"{name}.{end}" in taken for end in ENDS):
        name += "_loop"
    return name


def shown_places(robot: Robot) -> dict[str, Any]:
    """Named places that are no links: points, and frames that are fixed to links."""
    own = {link.name for link in robot.tree.links} | {"base"}
    return {name: place for name, place in robot.tree.places.items() if name not in own and place.inner is None}


def along(u: Array) -> Array:
    """A rotation whose z axis is this one."""
    first = E3[int(np.argmin(np.abs(u)))]
    x = first - u * (u @ first)
    x = x / np.linalg.norm(x)
    return np.stack([x, cross(u, x), u], axis=1)


def notes_of(robot: Robot) -> list[str]:
    """What is said otherwise than in the robot file, in every format."""
    tree, notes = robot.tree, []
    bending = [link.name for link in tree.links if link.body.size]
    if bending:
        notes.append(f"flexible bodies are rigid here, undeformed: {', '.join(bending)}")
    locked = [link.name for link in tree.links if link.v.start in robot.locked and link.v.stop > link.v.start]
    if locked:
        notes.append(f"locked joints are fixed where they are at home: {', '.join(locked)}")
    lossy = [row.name for row in couplings_of(robot) if row.lossy]
    if lossy:
        notes.append(f"couplings lose no power here: {', '.join(lossy)}")
    for link in tree.links:
        if link.terms.more_viscous or link.terms.more_coulomb:
            notes.append(f"friction of joint '{link.name}' differs by direction: the mean of both is written")
        if link.terms.offset:
            notes.append(f"friction of joint '{link.name}' has an offset: it is left out")
    return notes


def refuse(robot: Robot, format_name: str, what: str, hint: str) -> InputError:
    """What a format cannot say of a robot."""
    return InputError(
        f"{format_name} cannot express {what}", file=robot.file, key="format", value=robot.name, hint=hint
    )


def refuse_elements(robot: Robot, format_name: str, kinds: Sequence[str] = ()) -> None:
    """Raise where the robot has forces or lengths between two points, or elastic couplings, that the format has not."""
    for element in robot.description.element:
        if element.kind not in kinds or element.table is not None or element.actuated:
            raise refuse(
                robot,
                format_name,
                f"the {element.kind} '{element.name}' between two points",
                "leave it out of the file",
            )
    for spring in robot.tree.springs:
        raise refuse(robot, format_name, f"the elastic coupling '{spring.name}'", "make it rigid: omit its stiffness")


def write_texts(texts: dict[Path, str], key: str = "out") -> tuple[str, ...]:
    """Write files, all or none."""
    with atomic_files(list(texts), key) as files:
        for file, text in zip(files, texts.values(), strict=True):
            file.write(text.encode("utf-8"))
    return tuple(str(path) for path in texts)


def children_of(parts: Sequence[RigidPart], number: int) -> list[int]:
    """Parts on this one, or on the ground."""
    return [j for j, part in enumerate(parts) if part.parent == number]


__all__ = ["GROUND", "ExportedRobot", "RigidPart", "parts_of"]
