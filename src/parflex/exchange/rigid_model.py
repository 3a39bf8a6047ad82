"""A robot as rigid bodies on joints, with physically consistent inertias.

Identified parameters often belong to no real bodies. Part of the mass on the two sides of a joint does not affect its
motion: mass on the axis of a revolute joint, the inertia of a body on a prismatic joint. That part may belong to either
side. An open tree therefore has many sets of bodies with the same dynamics, often one with positive second moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy.optimize import minimize

from parflex.bodies.rigid import RigidBody
from parflex.closure.constraints import Coupling
from parflex.errors import InputError
from parflex.records import Answer, Record
from parflex.robot.robot import Robot
from parflex.spatial.rotations import compose
from parflex.tree import joints
from parflex.tree.force_elements import JointTerms
from parflex.tree.joints import Joint
from parflex.tree.tree import GROUND, Link

Array = np.ndarray
Element = ElementTree.Element
E3 = np.eye(3)
ENDS = ("A", "B", "axis.A", "axis.B", *(f"A{k}" for k in range(6)))  # of a loop, as places of other formats
STEEP = (30.0, 300.0, 3000.0, 30000.0)  # of the smooth maximum over eigenvalues, one after the other
RIDGE = 1e-6  # of moved mass, beside a negative eigenvalue: little is moved


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


def rigid_parts(robot: Robot) -> list[RigidPart]:
    """Links of the tree; lengths of elements between two points are none."""
    parts = []
    for link in robot.tree.links:
        rotation, position, joint = link.rotation, link.position, link.joint
        if _locked(robot, link):
            rotation, position = compose(rotation, position, *joint.transform(robot.home[link.q]))
            joint = joints.fixed()
        place = (link.name, link.parent, rotation, position, joint)
        limits = (link.velocity_limit, link.effort_limit)
        parts.append(RigidPart(*place, undeformed(link.body), link.terms, link.limits, robot.home[link.q], *limits))
    return parts


def undeformed(body: Any) -> RigidBody:
    """The rigid body that an elastic one is where nothing deforms it."""
    M = np.asarray(body.inertia_matrix(np.zeros(body.size)), dtype=float)[:6, :6]
    I = M[3:, 3:]
    return RigidBody(float(M[0, 0]), np.array([M[5, 1], M[3, 2], M[4, 0]]), np.trace(I) / 2 * E3 - I)


def centred(body: RigidBody) -> tuple[Array, Array]:
    """Centre of mass, and the inertia about it."""
    centre = body.S / body.m
    return centre, body.I - body.m * (centre @ centre * E3 - np.outer(centre, centre))


class RigidModel:
    """A robot as rigid bodies on joints for one format: `parts`, `loops`, `couplings`, `places`, `notes`.

    Loops have names of their own, under which their ends are written. Places are points, and frames that are fixed to
    links. Notes say what is written otherwise than in the robot file. A robot whose forces between two points, or
    elastic couplings, the format lacks is refused; `kinds` are those that it has.
    """

    def __init__(self, robot: Robot, format_name: str, kinds: Sequence[str] = ()) -> None:
        self.robot, self.format_name, tree = robot, format_name, robot.tree
        for element in robot.description.element:
            if element.kind not in kinds or element.table is not None or element.actuated:
                what = f"the {element.kind} '{element.name}' between two points"
                raise self.refuse(what, "leave it out of the file")
        for spring in tree.springs:
            raise self.refuse(f"the elastic coupling '{spring.name}'", "make it rigid: omit its stiffness")
        self.parts = rigid_parts(robot)
        links = {link.name for link in tree.links} | {"base"}
        taken = links | {*tree.places}
        self.loops = [replace(loop, name=_free_name(loop.name, taken)) for loop in robot.closures.loops]
        self.couplings = [row for row in robot.closures.constraints if isinstance(row, Coupling)]
        self.places = {name: at for name, at in tree.places.items() if name not in links and at.inner is None}
        self.notes = self._notes()

    def refuse(self, what: str, hint: str) -> InputError:
        """What a format cannot say of a robot."""
        text, robot = f"{self.format_name} cannot express {what}", self.robot
        return InputError(text, file=robot.file, key="format", value=robot.name, hint=hint)

    def _notes(self) -> list[str]:
        """What is said otherwise than in the robot file, in every format."""
        robot, links = self.robot, self.robot.tree.links
        lists = {
            "flexible bodies are rigid here, undeformed": [link.name for link in links if link.body.size],
            "locked joints are fixed where they are at home": [link.name for link in links if _locked(robot, link)],
            "couplings lose no power here": [row.name for row in self.couplings if row.lossy],
        }
        notes = [f"{text}: {', '.join(names)}" for text, names in lists.items() if names]
        for link in links:
            if link.terms.more_viscous or link.terms.more_coulomb:
                notes.append(f"friction of joint '{link.name}' differs by direction: the mean of both is written")
            if link.terms.offset:
                notes.append(f"friction of joint '{link.name}' has an offset: it is left out")
        return notes

    def children(self, number: int) -> list[int]:
        """Parts on this one, or on the ground."""
        return [j for j, part in enumerate(self.parts) if part.parent == number]

    def use_consistent_bodies(self, unreal: Sequence[str]) -> None:
        """Replace bodies that cannot be real, if there are any, by real ones that move alike, with a note."""
        if not unreal:
            return
        real = consistent_bodies(self.parts)
        if real is None:
            what = f"the inertia of '{unreal[0]}', which no body has"
            raise self.refuse(what, "give it the inertia of a real body")
        self.parts = real
        self.notes.append(
            f"no real bodies have the inertia of {', '.join(unreal)}: mass that joints do not feel was moved between "
            "the bodies of the tree, which moves as before"
        )


def _locked(robot: Robot, link: Link) -> bool:
    return link.v.start in robot.locked and link.v.stop > link.v.start


def _free_name(name: str, taken: set[str]) -> str:
    while any(f"{name}.{end}" in taken for end in ENDS):
        name += "_loop"
    return name


def xml_row(values: object) -> str:
    """Numbers of an attribute, which are read back without loss."""
    return " ".join(repr(float(value)) for value in np.asarray(values, dtype=float).ravel())


def xml_text(root: Element, notes: Sequence[str]) -> str:
    """A document with notes as comments before it."""
    ElementTree.indent(root)
    remarks = "".join(f"<!-- {note.replace('--', '- -')} -->\n" for note in notes)
    return f"{remarks}{ElementTree.tostring(root, encoding='unicode')}\n"


def pseudo_inertia(body: RigidBody) -> Array:
    """Second moments, first moments and mass in one matrix: positive for real bodies."""
    return np.block([[np.asarray(body.Sigma, float), np.asarray(body.S, float)[:, None]], [body.S, body.m]])


def body_of(P: Array) -> RigidBody:
    """The body of such a matrix."""
    return RigidBody(float(P[3, 3]), P[:3, 3].copy(), P[:3, :3].copy())


def is_consistent(body: RigidBody, slack: float = 1e-9) -> bool:
    """Whether a body could have this inertia."""
    P = _scaled(pseudo_inertia(body), _radius([body]))
    return bool(np.linalg.eigvalsh(P)[0] >= -slack * max(np.abs(P).max(), 1e-300))


def consistent_bodies(parts: Sequence[RigidPart]) -> list[RigidPart] | None:
    """Parts that move alike with bodies that are real; None where none were found."""
    moved = [j for j, part in enumerate(parts) if part.heavy and part.joint.one_axis]
    if not moved:
        return None
    radius = _radius([parts[j].body for j in moved])
    P0 = np.array([_scaled(pseudo_inertia(part.body), radius) for part in parts])
    size = np.trace(P0[moved], axis1=1, axis2=2).mean()
    P0, moves, back = P0 / size, _moves(parts, radius), np.diag([radius, radius, radius, 1.0])
    t = np.zeros(len(moves))
    for steep in STEEP:
        t = minimize(_open, t, (P0[moved], moves[:, moved], steep), jac=True, method="BFGS").x
        P = (P0 + np.einsum("k,kjab->jab", t, moves)) * size
        candidates = [
            replace(part, body=body_of(back @ P[j] @ back)) if j in moved else part for j, part in enumerate(parts)
        ]
        if all(is_consistent(part.body) for part in candidates if part.heavy):
            return candidates
    return None


def _open(t: Array, P0: Array, moves: Array, steep: float) -> tuple[float, Array]:
    """How negative eigenvalues are at most, smoothly, and its slope."""
    w, V = np.linalg.eigh(P0 + np.einsum("k,kjab->jab", t, moves))
    top = -w.min()
    weights = np.exp(steep * (-w - top))
    slope = -np.einsum("jae,je,jbe->jab", V, weights / weights.sum(), V)
    value = top + np.log(weights.sum()) / steep + RIDGE * t @ t
    return value, np.einsum("kjab,jab->k", moves, slope) + 2 * RIDGE * t


def _radius(bodies: Sequence[RigidBody]) -> float:
    """A typical distance of mass from origins."""
    mass = sum(abs(float(body.m)) for body in bodies)
    spread = sum(float(np.trace(np.abs(body.Sigma))) for body in bodies)
    return float(np.sqrt(spread / mass)) if mass > 0 and spread > 0 else 1.0


def _scaled(P: Array, radius: float) -> Array:
    down = np.diag([1 / radius, 1 / radius, 1 / radius, 1.0])
    return down @ P @ down


def _moves(parts: Sequence[RigidPart], radius: float) -> Array:
    """What may be added to the bodies without a change of how they move, in scaled matrices: (move, part, 4, 4)."""
    moves = []
    heavy = {j for j, part in enumerate(parts) if part.heavy}
    for j, part in enumerate(parts):
        if j not in heavy or not part.joint.one_axis or part.joint.pitch or part.parent not in heavy | {GROUND}:
            continue
        for entry in _unobservable_inertias(part):
            move = np.zeros((len(parts), 4, 4))
            move[j] = entry
            if part.parent != GROUND:
                R, p = compose(part.rotation, part.position, np.eye(3), np.zeros(3))
                T = np.block([[R, p[:, None] / radius], [np.zeros(3), 1.0]])
                move[part.parent] -= T @ entry @ T.T
            moves.append(move)
    return np.array(moves).reshape(len(moves), len(parts), 4, 4)


def _unobservable_inertias(part: RigidPart) -> list[Array]:
    """Moments of a body that its joint does not feel beside those of the parent; on the ground there are more."""
    a = part.joint.axis
    b, c = (k for k in range(3) if k != a)
    second = [(k, m) for k in range(3) for m in range(k, 3)]
    if part.joint.unit == "m":
        entries = [[pair] for pair in second] + ([[(k, 3)] for k in range(3)] if part.parent == GROUND else [])
        return [_symmetric(dict.fromkeys(entry, 1.0)) for entry in entries]
    entries_on_axis = [{(a, a): 1.0}, {(a, 3): 1.0}, {(3, 3): 1.0}]
    if part.parent == GROUND:
        entries_on_axis += [{(b, b): 1.0, (c, c): -1.0}, {(b, c): 1.0}, {(a, b): 1.0}, {(a, c): 1.0}]
    return [_symmetric(entry) for entry in entries_on_axis]


def _symmetric(entries: dict[tuple[int, int], float]) -> Array:
    P = np.zeros((4, 4))
    for (k, m), value in entries.items():
        P[k, m] = P[m, k] = value
    return P
