"""Forces and moments in the sections of beams, from the equilibrium of what lies beyond them, theory (52), (53).

What lies beyond a section is taken, not what lies before it: bodies, loads and joints at the root of a beam are then no
part of any section, and a load at the tip is in all of them. Both give the same, to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from parflex.bodies.reduced_beam import ReducedSections
from parflex.bodies.sections import ElementSections
from parflex.models.inside_beams.beam_chains import BeamChain
from parflex.records import Record
from parflex.recursion.dynamics import NewtonEuler
from parflex.recursion.energy import line_wrench, wrench_on_link
from parflex.recursion.kinematics import Motion, Pose
from parflex.spatial.dual import without_slopes
from parflex.spatial.linear import scalar_type
from parflex.spatial.rotations import cross, exponential
from parflex.tree.force_elements import PointElement
from parflex.tree.tree import Place, Tree

Array = np.ndarray
NUMBERS = 4e6  # that are held at a time: rows are done in parts
JUST_BEHIND = 1e-12  # of an element: nearer to a load a section may be on either side of it


@dataclass(frozen=True, eq=False, repr=False)
class ElementRows(Record):
    """An element of a beam in many rows, in the axes of its root: its motion, and the wrenches on it at its origin."""

    a: Array  # rows x 3, less gravity
    w: Array
    al: Array
    e: Array  # rows x N
    ed: Array
    edd: Array
    tip: Array  # rows x 6: what its tip puts on whatever comes behind
    loads: list[tuple[float, Array]] = field(default_factory=list)  # xi, and what acts there on the element

    def part(self, own: Any) -> ElementRows:
        """Some of the rows."""
        parts = (self.a, self.w, self.al, self.e, self.ed, self.edd, self.tip)
        a, w, al, e, ed, edd, tip = (rows[own] for rows in parts)
        return ElementRows(a, w, al, e, ed, edd, tip, [(xi, load[own]) for xi, load in self.loads])


def joined(elements: Sequence[ElementRows]) -> ElementRows:
    """Rows of alike elements without loads on them, one element behind the other."""
    names = ("a", "w", "al", "e", "ed", "edd", "tip")
    a, w, al, e, ed, edd, tip = (np.concatenate([getattr(one, name) for one in elements]) for name in names)
    return ElementRows(a, w, al, e, ed, edd, tip)


class InnerLoad(NamedTuple):
    """Something that acts on an element between its ends: a wrench on a frame, or an end of an element between points.

    `part` is a share of an element of the beam, `sign` that of the force of an element between points.
    """

    part: float
    place: Place
    frame: str | None = None
    element: PointElement | None = None
    sign: float = 1.0


def inner_loads(tree: Tree, j: int, frames: Sequence[str]) -> list[InnerLoad]:
    """What may act on an element of a beam between its ends, where wrenches act on these frames."""
    length = float(without_slopes(tree.links[j].body.nodes["tip"].r0)[0])  # where loads act is no matter of slopes
    found = [InnerLoad(0.0, tree.places[frame], frame=frame) for frame in frames]
    for one in tree.elements:
        if one.acts:
            found += [InnerLoad(0.0, one.first, element=one), InnerLoad(0.0, one.second, element=one, sign=-1.0)]
    own = [load for load in found if load.place.link == j and load.place.inner is not None]
    return [
        load._replace(part=float(without_slopes(load.place.inner.node.r0)[0]) / length)
        for load in own
        if load.place.inner
    ]


def element_signals_of(
    tree: Tree, at: Pose, moving: Motion, found: NewtonEuler, chain: BeamChain, pushed: Mapping[str, Array]
) -> dict[int, Array]:
    """Of each element of a beam a, w, al of its root, the wrench at its tip and its inner loads; over any scalar.

    Wrenches are about its root and in its axes; `pushed` are wrenches on frames, in world axes.
    """
    result = {}
    for j, k in zip(chain.links, (*chain.links[1:], chain.tip), strict=True):
        force, moment = at.to_parent(tree, k, found.f[k]), at.to_parent(tree, k, found.m[k])
        parts = [moving.a[j], moving.w[j], moving.al[j], force, moment + cross(at.local_position[k], force)]
        for load in inner_loads(tree, j, list(pushed)):
            if load.element is not None:
                push = wrench_on_link(at, load.place, load.sign * line_wrench(at, load.element, moving))
            else:
                wrench = pushed[load.frame or ""]
                push = wrench_on_link(at, load.place, wrench[:3], wrench[3:])
            parts += [*push[:2]]
        result[j] = np.concatenate(parts)
    return result


def element_rows(
    tree: Tree, j: int, q: Array, change: Array, qdd: Array, signals: Array, frames: Sequence[str]
) -> ElementRows:
    """The element of a link in rows of positions, their rates of change, accelerations and of the signals above."""
    link = tree.links[j]
    a, w, al, tip = (signals[:, part] for part in (slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 15)))
    loads = [(load.part, signals[:, 15 + 6 * k : 21 + 6 * k]) for k, load in enumerate(inner_loads(tree, j, frames))]
    return ElementRows(a, w, al, q[:, link.e], change[:, link.e], qdd[:, link.e_v], tip, loads)


def sections_of_element(
    parts: ElementSections | ReducedSections, rows: ElementRows, xi: Sequence[float] | Array, behind: bool = False
) -> Array:
    """N, Vy, Vz, T, My, Mz at each xi in all rows: rows x n x 6.

    They are what the part beyond a section puts on the part before it, in the axes of the section, which turn with it;
    so N is positive in tension. A load at a section itself is beyond it, or with `behind` before it.
    """
    xi = np.asarray(xi, dtype=float)
    shapes, beyond = parts.shapes(xi), parts.beyond(xi)
    count, fields = len(rows.a), beyond[1].shape[1]
    length = max(1, int(NUMBERS / (len(xi) * fields * 9)))
    found: Array = np.empty((count, len(xi), 6), dtype=scalar_type(rows.tip, beyond[1]))
    for first in range(0, count, length):
        own = slice(first, first + length)
        found[own] = _sections(rows.part(own), xi, shapes, beyond, behind)
    return found


def _sections(rows: ElementRows, xi: Array, shapes: Any, beyond: Any, behind: bool) -> Array:
    force, moment = _inertia(rows, *beyond)
    force, moment = force + rows.tip[:, None, :3], moment + rows.tip[:, None, 3:]
    for where, load in rows.loads:
        on = (where > xi + JUST_BEHIND if behind else where >= xi - JUST_BEHIND)[:, None]
        force, moment = force - on * load[:, None, :3], moment - on * load[:, None, 3:]
    r0, Phi_d, Phi_r = shapes
    place, turns = r0 + _along(Phi_d, rows.e), _along(Phi_r, rows.e)
    moment = moment - np.cross(place, force)
    R = many_exponentials(turns)
    return -np.concatenate([np.einsum("rnij,rni->rnj", R, part) for part in (force, moment)], axis=2)


def _inertia(rows: ElementRows, m: Array, S: Array, G: Array) -> tuple[Array, Array]:
    """Force and moment at the origin that move what lies beyond, rows x n x 3: theory (24), (25) with its integrals."""
    count, unit = len(rows.a), np.eye(3)
    one, none = np.ones((count, 1)), np.zeros((count, 1))
    c, cd, cdd = np.hstack([one, rows.e]), np.hstack([none, rows.ed]), np.hstack([none, rows.edd])
    W = _hats(rows.w)
    U = _hats(rows.al) + W @ W
    # a point of the field f accelerates with a + sum B_a f_a
    B = c[:, :, None, None] * U[:, None] + 2 * cd[:, :, None, None] * W[:, None] + cdd[:, :, None, None] * unit
    fields, n = c.shape[1], len(m)
    side_by_side = B.transpose(0, 2, 1, 3).reshape(count, 3, 3 * fields)
    force = m[:, None] * rows.a[:, None] + np.matmul(side_by_side, S.reshape(n, -1).T).transpose(0, 2, 1)
    r = np.matmul(c, G.transpose(2, 1, 3, 0, 4).reshape(fields, -1)).reshape(count, 3 * fields, 3 * n)
    T = np.matmul(side_by_side, r).reshape(count, 3, n, 3)  # int b r^T
    turned = np.stack([T[:, 2, :, 1] - T[:, 1, :, 2], T[:, 0, :, 2] - T[:, 2, :, 0], T[:, 1, :, 0] - T[:, 0, :, 1]], 2)
    return force, np.cross(_along(S.transpose(0, 2, 1), c), rows.a[:, None]) + turned


def _along(shapes: Array, e: Array) -> Array:
    """N x 3 x N times rows x N: rows x n x 3."""
    return np.matmul(e, shapes.reshape(-1, shapes.shape[2]).T).reshape(len(e), *shapes.shape[:2])


def _hats(vectors: Array) -> Array:
    """Matrices of cross products."""
    return np.cross(np.eye(3), vectors[..., None, :])


def many_exponentials(turns: Array) -> Array:
    """Rotation matrices of rotation vectors, which stand along the last axis."""
    if turns.dtype == object:
        return np.array([exponential(turn) for turn in turns.reshape(-1, 3)]).reshape(*turns.shape, 3)
    angle = np.linalg.norm(turns, axis=-1)[..., None, None]
    H = _hats(turns)
    return np.eye(3) + np.sinc(angle / np.pi) * H + 0.5 * np.sinc(angle / (2 * np.pi)) ** 2 * (H @ H)


def sections_at(chain: BeamChain, elements: Mapping[int, ElementRows], s: Sequence[float]) -> Array:
    """The same at places along a whole beam: rows x n x 6."""
    located = [chain.located(where) for where in s]
    count = len(next(iter(elements.values())).a)
    found = np.empty((count, len(located), 6))
    for number, link in enumerate(chain.links):
        own = [k for k, (element, _) in enumerate(located) if element == number]
        if own:
            found[:, own] = sections_of_element(chain.parts_of(number), elements[link], [located[k][1] for k in own])
    return found
