"""Loop equations between two places: residual, rows of velocity and bias of acceleration; all rows of a robot.

All vectors are in the axes of the first place. A translation row holds `n . rho`, a rotation row `n . (w2 - w1)`,
`n` fixed in the first place; the universal row has n = u2 x u1, fixed in neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.closure.constraints import Constraint, build_constraints
from parflex.closure.targets import small_turn
from parflex.errors import RobotFileError
from parflex.records import Record, count_of, name_list
from parflex.recursion.kinematics import Motion, Pose, place_jacobian
from parflex.robotfile import schema
from parflex.spatial.batched import nominal
from parflex.spatial.rotations import cross, hat, vector_from_rotation, vector_length
from parflex.tree.tree import Branch, Place, Tree

Array = np.ndarray
E3 = np.eye(3)


@dataclass(frozen=True, eq=False, repr=False)
class Loop(Record):
    """One closure: the places it ties, directions of its translation and rotation rows, and how it turns."""

    name: str
    kind: str
    first: Place
    second: Place
    translations: Array = field(repr=False)  # rows n
    rotations: Array = field(repr=False)  # rows n; the universal row is not in here
    turning: str = "free"  # free | about-axis | none | universal
    u1: Array = field(default_factory=lambda: E3[2], repr=False)
    u2: Array = field(default_factory=lambda: E3[2], repr=False)
    closed: bool = False  # known to be: what its rows hold fixed is not computed again

    @property
    def row_names(self) -> list[str]:
        """What each row constrains, in readable form."""
        names = [f"translation {_direction(n)}" for n in self.translations]
        names += [f"rotation {_direction(n)}" for n in self.rotations]
        return names + (["rotation normal to the cross"] if self.turning == "universal" else [])

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.translations) + len(self.rotations) + (self.turning == "universal")

    def scale(self, length: float) -> Array:
        """Makes rows of the Jacobian those of the residual: metres, angles times the length."""
        count = len(self.translations)
        return np.r_[np.ones(count), np.full(self.size - count, length)]

    @property
    def ends(self) -> tuple[int, ...]:
        """The two links that it ties."""
        return (self.first.link, self.second.link)

    def on(self, small: Branch) -> Loop:
        """The same loop on a part of the tree."""
        return replace(self, first=small.place(self.first), second=small.place(self.second))

    def reversed(self, tree: Tree) -> Loop | None:
        """The same closure seen from the second place; None where only the first one carries its directions.

        At closed poses its rows are combinations of those of this loop.
        """
        if self.kind in ("point-on-plane", "point-on-line"):
            return None
        other = replace(self, first=self.second, second=self.first, u1=self.u2, u2=self.u1)
        if self.turning == "none":  # both places have the same axes
            return replace(other, u1=self.u1)
        if tree.planar:
            turn = neutral_rotation(tree, self.second).T @ neutral_rotation(tree, self.first)
            return replace(other, translations=self.translations @ turn.T)
        along = {0: np.zeros((0, 3)), 1: self.u2[None, :], 2: _normals(self.u2), 3: E3}
        return replace(other, translations=along[len(self.translations)], rotations=along[len(self.rotations)])

    def links(self, tree: Tree) -> list[int]:
        """Links whose joints move one end against the other."""
        return sorted(set(tree.path(self.first.link)) ^ set(tree.path(self.second.link)))

    def residual(self, at: Pose, length: float) -> Array:
        """How far the loop is from closed, in metres; angles are multiplied by `length`."""
        (R1, P1), (R2, P2) = at.of(self.first), at.of(self.second)
        parts = [self.translations @ (R1.T @ (P2 - P1))]
        turn = R1.T @ R2
        if self.turning == "about-axis":
            parts.append(length * self.rotations @ _tilt(self.u1, turn @ self.u2))
        elif self.turning == "none":
            parts.append(length * self.rotations @ vector_from_rotation(turn))
        elif self.turning == "universal":
            parts.append(np.array([length * self.u1 @ (turn @ self.u2)]))
        return np.concatenate(parts)

    def linear_residual(self, at: Pose) -> Array:
        """The opening of a loop that is nearly closed, over any scalar: angles by their sines."""
        (R1, P1), (R2, P2) = at.of(self.first), at.of(self.second)
        turn = R1.T @ R2
        parts = [self.translations @ (R1.T @ (P2 - P1))]
        if self.turning == "about-axis":
            parts.append(self.rotations @ cross(self.u1, turn @ self.u2))
        elif self.turning == "none":
            parts.append(self.rotations @ small_turn(turn))
        elif self.turning == "universal":
            parts.append(np.array([self.u1 @ (turn @ self.u2)]))
        return np.concatenate(parts)

    def gaps(self, at: Pose, length: float) -> Array:
        """Return lengths in metres that vanish at a closed loop alone, over any scalar; angles as chords."""
        (R1, P1), (R2, P2) = at.of(self.first), at.of(self.second)
        turn = R1.T @ R2
        parts = [self.translations @ (R1.T @ (P2 - P1))]
        if self.turning == "about-axis":
            parts.append(length * (turn @ self.u2 - self.u1))
        elif self.turning == "none":
            parts.append(length / np.sqrt(2.0) * (turn - E3).ravel())  # of a turn by a: 2 sin(a / 2) in all
        elif self.turning == "universal":
            parts.append(np.array([length * self.u1 @ (turn @ self.u2)]))
        return np.concatenate(parts)

    def turned_away(self, at: Pose) -> Any:
        """1 less the cosine of an angle that must vanish, over any scalar: sines do not tell opposite directions."""
        (R1, _), (R2, _) = at.of(self.first), at.of(self.second)
        if self.turning == "about-axis":
            return 1.0 - self.u1 @ (R1.T @ R2 @ self.u2)
        return (3.0 - np.trace(R1.T @ R2)) / 2 if self.turning == "none" else 0.0

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Rows J with J qd = 0, theory (9), (10)."""
        turn, rho = self._offset(tree, at)
        v1, w1 = place_jacobian(tree, at, links, self.first)
        v2, w2 = place_jacobian(tree, at, links, self.second)
        relative_w = turn @ w2 - w1
        rows = [self.translations @ (turn @ v2 - v1 + hat(rho) @ w1), self.rotations @ relative_w]
        if self.turning == "universal":
            rows.append((cross(turn @ self.u2, self.u1) @ relative_w)[None, :])
        return np.concatenate(rows)

    def _offset(self, tree: Tree, at: Pose) -> tuple[Array, Array]:
        """Rotation and position of the second place in the first."""
        (R1, P1), (R2, P2) = at.of(self.first), at.of(self.second)
        fixed = self.closed and self.turning == "none"
        together = self.closed and len(self.translations) == (2 if tree.planar else 3)
        return E3 if fixed else R1.T @ R2, np.zeros(3) if together else R1.T @ (P2 - P1)

    def rate(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """J qd: how fast the rows open in a motion, theory (9), (10)."""
        turn, rho = self._offset(tree, at)
        v1, w1, _, _ = moving.of(self.first)
        v2, w2 = (turn @ part for part in moving.of(self.second)[:2])
        parts: list[Any] = [self.translations @ (v2 - v1 - cross(w1, rho)), self.rotations @ (w2 - w1)]
        if self.turning == "universal":
            parts.append(np.array([cross(turn @ self.u2, self.u1) @ (w2 - w1)]))
        return np.concatenate(parts)

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """What J qdd must cancel: the accelerations of the rows in a motion, theory (9), (10)."""
        turn, rho = self._offset(tree, at)
        v1, w1, a1, al1 = moving.of(self.first)
        v2, w2, a2, al2 = (turn @ part for part in moving.of(self.second))
        rel = v2 - v1 - cross(w1, rho)
        point = a2 - a1 - cross(al1, rho) - cross(w1, cross(w1, rho)) - 2 * cross(w1, rel)
        parts: list[Any] = [self.translations @ point, self.rotations @ (al2 - al1 - cross(w1, w2 - w1))]
        if self.turning == "universal":
            u1, u2 = self.u1, turn @ self.u2
            slope = cross(cross(w2, u2), u1) + cross(u2, cross(w1, u1))
            parts.append(np.array([cross(u2, u1) @ (al2 - al1) + slope @ (w2 - w1)]))
        return np.concatenate(parts)

    def wrench(self, at: Pose, multipliers: Array) -> tuple[Array, Array]:
        """Force and moment of the first place on the second, at the origin of the second, in axes of the first."""
        count = len(self.translations)
        force = self.translations.T @ multipliers[:count]
        moment = self.rotations.T @ multipliers[count : count + len(self.rotations)]
        if self.turning == "universal":
            (R1, _), (R2, _) = at.of(self.first), at.of(self.second)
            moment = moment + cross(R1.T @ R2 @ self.u2, self.u1) * multipliers[-1]
        return force, moment


def _direction(n: Array) -> str:
    n = np.array(list(map(nominal, n)))
    for letter, unit in zip("xyz", E3, strict=True):
        if np.allclose(np.abs(n), unit, atol=1e-9):
            return letter
    return "(" + ", ".join(f"{value:.3g}" for value in n) + ")"


def _tilt(u1: Array, u2: Array) -> Array:
    """The rotation vector that takes u1 to u2 the short way."""
    normal = cross(u1, u2)
    sine, cosine = float(np.linalg.norm(normal)), float(u1 @ u2)
    if sine < 1e-12:
        return normal if cosine > 0 else np.pi * _normals(u1)[0]
    return normal * (np.arctan2(sine, cosine) / sine)


def _normals(u: Array) -> Array:
    """Two unit vectors at right angles to u and to each other; axes of the frame where possible."""
    first = E3[int(np.argmin(np.abs(u)))]
    first = first - u * (u @ first)
    first = first / vector_length(first)
    return np.array([first, cross(u, first)])


def build_loop(closure: schema.Closure, tree: Tree) -> Loop:
    """The loop equations of one closure of the file."""
    first, second = (tree.places[name] for name in closure.between)
    u1 = np.array(closure.axis) / vector_length(closure.axis)
    u2 = np.array(closure.axis_2 or closure.axis)
    u2 = u2 / vector_length(u2)
    name = closure.name or "~".join(closure.between)
    none = np.zeros((0, 3))
    if tree.planar:
        translations, rotations, turning = _planar_rows(closure, tree, first, u1, name)
        return Loop(name, closure.joint, first, second, translations, rotations, turning, u1, u2)
    translations, rotations, turning = {
        "spherical": (E3, none, "free"),
        "revolute": (E3, _normals(u1), "about-axis"),
        "universal": (E3, none, "universal"),
        "cylindrical": (_normals(u1), _normals(u1), "about-axis"),
        "prismatic": (_normals(u1), E3, "none"),
        "planar": (u1[None, :], _normals(u1), "about-axis"),
        "point-on-plane": (u1[None, :], none, "free"),
        "point-on-line": (_normals(u1), none, "free"),
        "welded": (E3, E3, "none"),
    }[closure.joint]
    return Loop(name, closure.joint, first, second, translations, rotations, turning, u1, u2)


def _planar_rows(closure: schema.Closure, tree: Tree, first: Place, u1: Array, name: str) -> tuple[Array, Array, str]:
    """Rows of a closure in the plane: two directions in it and its normal, as the first place sees them."""
    at = neutral_rotation(tree, first)
    normal = at.T @ E3[2]
    in_plane = np.array([at.T @ E3[0], at.T @ E3[1]])
    none = np.zeros((0, 3))
    if closure.joint == "revolute":
        return in_plane, none, "free"
    if closure.joint == "welded":
        return in_plane, normal[None, :], "none"
    if abs(normal @ u1) > 1e-9:
        raise RobotFileError(
            "the axis leaves the plane",
            key=f"closure '{name}': axis",
            value=list(closure.axis),
            hint='give an axis that lies in the plane, like "x"',
        )
    across = cross(normal, u1)[None, :]
    if closure.joint == "prismatic":
        return across, normal[None, :], "none"
    return (u1[None, :] if closure.joint == "point-on-plane" else across), none, "free"


def neutral_rotation(tree: Tree, place: Place) -> Array:
    """World rotation of a place with all joints at zero."""
    rotation = place.rotation
    for link in tree.path(place.link):
        rotation = tree.links[link].rotation @ rotation
    return rotation


@dataclass(frozen=True, eq=False, repr=False)
class Closures(Record):
    """All loops of a robot, their rows one below the other, and below them those of other constraints."""

    tree: Tree
    loops: tuple[Loop, ...]
    constraints: tuple[Constraint, ...] = ()

    @property
    def rows(self) -> tuple[Loop | Constraint, ...]:
        """Loops, then couplings."""
        return (*self.loops, *self.constraints)

    def _told(self) -> str:
        kinds = count_of(len(self.loops), "loop")
        rods = sum(row.kind != "coupling" for row in self.constraints)
        for count, word in ((len(self.constraints) - rods, "coupling"), (rods, "distance")):
            kinds += f", {count_of(count, word)}" if count else ""
        return f"{kinds}, {count_of(self.size, 'row')}: {name_list([row.name for row in self.rows])}"

    @property
    def size(self) -> int:
        """Number of rows."""
        return sum(row.size for row in self.rows)

    @property
    def row_names(self) -> list[str]:
        """Name of each row: closure and direction."""
        return [f"{row.name}: {held}" for row in self.rows for held in row.row_names]

    def slices(self) -> list[slice]:
        """Where each loop and each constraint has its rows."""
        ends = np.cumsum([0, *(row.size for row in self.rows)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def residual(self, at: Pose) -> Array:
        """How far the loops are from closed, in metres."""
        parts = [row.residual(at, self.tree.length) for row in self.rows]
        return np.concatenate(parts) if parts else np.zeros(0)

    def linear_residual(self, at: Pose) -> Array:
        """How far nearly closed loops are from closed, over any scalar."""
        parts = [row.linear_residual(at) for row in self.rows]
        return np.concatenate(parts) if parts else np.zeros(0)

    def gaps(self, at: Pose) -> Array:
        """Return lengths in metres that vanish at closed poses alone, over any scalar."""
        length = self.tree.length
        parts = [loop.gaps(at, length) for loop in self.loops]
        parts += [row.scale(length) * row.linear_residual(at) for row in self.constraints]
        return np.concatenate(parts) if parts else np.zeros(0)

    def jacobian(self, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """J_tot: all rows, theory (11)."""
        parts = [row.jacobian(self.tree, at, links) for row in self.rows]
        return np.concatenate(parts) if parts else np.zeros((0, self.tree.n))

    def row_units(self) -> Array:
        """1 for a translation row, the typical length for a rotation row: rows times it are in metres."""
        units = [row.scale(self.tree.length) for row in self.rows]
        return np.concatenate(units) if units else np.zeros(0)

    def rate(self, at: Pose, moving: Motion) -> Array:
        """J_tot qd: how fast the loops open in a motion."""
        parts = [row.rate(self.tree, at, moving) for row in self.rows]
        return np.concatenate(parts) if parts else np.zeros(0)

    def bias(self, at: Pose, moving: Motion) -> Array:
        """b_star: what J_tot qdd must cancel, theory (11)."""
        parts = [row.bias(self.tree, at, moving) for row in self.rows]
        return np.concatenate(parts) if parts else np.zeros(0)


def build_closures(robot: schema.RobotFile, tree: Tree) -> Closures:
    """The loop equations of a robot, and the rows of its couplings."""
    loops = tuple(build_loop(closure, tree) for closure in robot.closure)
    return Closures(tree, loops, build_constraints(robot, tree))
