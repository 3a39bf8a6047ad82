"""Mass, stiffness and closures over any scalar in local axes.

Every link has a frame with a twist in its own axes. The frame of a link in a piece follows over one or more hops from
the link that the piece moves with. A hop has free components; the others follow from the frame behind it. Rotations
occur in hops alone, since bodies have their matrices in their own axes.

Loops without a beam, couplings and rods are linear forms of the unknowns that are zero. They depend on pose and
parameters alone, so the dependent components are eliminated before any shift. D stays definite and the signs of the
pivots count the modes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.closure.constraints import Constraint, Coupling, Distance, Loop, neutral_rotation
from parflex.closure.partition import choose_partition
from parflex.codegen.optimise import make_program
from parflex.parameters.design_numbers import DesignNumbers
from parflex.recursion.kinematics import Pose
from parflex.robot.substructures import CutConnection, CutRobot, CutStep
from parflex.spatial.linear import is_zero
from parflex.symbolic.expression import Expression, Graph
from parflex.tree.tree import GROUND, Place, Tree

Array = np.ndarray

Row = dict[int, Any]  # a linear form: coefficients by the numbers of variables

NOTHING = 1e-12  # of the diagonal entries: what is smaller in the matrix of a body is rounding

KEPT = 0.1  # of a joint: how willingly free twists of pieces and coordinates of bodies become dependent

SAFE = 0.1  # of the largest entry at home: what may be divided by

E3 = np.eye(3)

TINY = 1e-14  # entries of rotations and axes below this are rounding


class NotCoveredError(Exception):
    """The robot has something that steps of modes do not cover; linear models do."""


@dataclass(eq=False)
class FrameDependence:
    """How components of a frame follow: rows by the number of the variable; what is not in them is free."""

    rows: dict[int, Row]
    frame: list[int]  # all components of the frame that hops


@dataclass(eq=False)
class FrameTree:
    """Variables of all frames and other unknowns, and the hops between them."""

    width: int
    count: int = 0
    frames: dict[int, list[int]] = field(default_factory=dict)  # variables of the frames of links
    hops: list[FrameDependence] = field(default_factory=list)
    rates: dict[int, Row] = field(default_factory=dict)  # of joints with one axis: their rate as a form, by link

    def new(self, count: int) -> list[int]:
        """Numbers of further variables."""
        self.count += count
        return list(range(self.count - count, self.count))


class FrameBuilder:
    """Walks the pieces of a cut robot; rotations and positions of links come from a pose over any scalar."""

    def __init__(self, cut: CutRobot, tree: Tree, loops: Sequence[Any], at: Pose) -> None:
        self.cut, self.tree, self.loops, self.at = cut, tree, loops, at
        self.planar = tree.planar
        self.used = tree.components
        self.made = FrameTree(len(self.used))
        self.modal: dict[int, list[int]] = {}
        self.plain = cut.robot.tree

    def build(self) -> FrameTree:
        """All frames and hops."""
        made = self.made
        for j in range(len(self.tree.links)):
            made.frames[j] = made.new(made.width)
        for entry in self.cut.modal:
            self.modal[entry.link] = made.new(len(entry.free))
        for piece in self.cut.pieces:
            for step in piece.steps:
                self._step(step)
        return made

    def axes(self, j: int) -> Array:
        """Own axes of the frame of a link, in those of the link."""
        return link_frame_axes(self.plain, j)

    def world(self, j: int) -> tuple[Array, Array]:
        """Own axes and origin of a link in the world."""
        if j == GROUND:
            return E3, np.zeros(3)
        return dot(self.at.rotation[j], self.axes(j)), self.at.position[j]

    def variables(self, j: int) -> list[int] | None:
        """Of the frame of a link; None for the ground."""
        return None if j == GROUND else self.made.frames[j]

    # -- hops --------------------------------------------------------------------------------------------

    def _hop(
        self,
        frame: list[int],
        behind: list[int] | None,
        R: Array,
        p: Array,
        S: Array,
        more: dict[int, Array] | None = None,
    ) -> list[Row]:
        """From a frame to the one behind it: `R` turns axes of that one into own axes, `p` is the own origin there.

        `S` are the free motions in own axes; `more` are twists by further variables. Returns what the frame would be
        without its free motions.
        """
        X = shift(R, p)[np.ix_(self.used, self.used)]
        rigid: list[Row] = []
        for i in range(len(frame)):
            row: Row = {}
            for k, x in enumerate(X[i]):
                if behind is not None and not is_zero(x):
                    row[behind[k]] = x
            for variable, twist in (more or {}).items():
                if not is_zero(twist[self.used[i]]):
                    row[variable] = twist[self.used[i]]
            rigid.append(row)
        free = S[list(self.used)]
        units = [k for k in map(unit, free.T) if k is not None]
        rows = dict(zip(frame, rigid, strict=True))
        if len(set(units)) == free.shape[1]:
            for k in units:
                del rows[frame[k]]
        else:  # motions along several components at once have variables of their own
            for variable, column in zip(self.made.new(free.shape[1]), free.T, strict=True):
                for i, x in enumerate(column):
                    if not is_zero(x):
                        rows[frame[i]] = rows[frame[i]] | {variable: x}
        self.made.hops.append(FrameDependence(rows, frame))
        return rigid

    def _between(self, behind: list[int] | None, offset: Array) -> list[int] | None:
        """A frame in the axes of the one behind it, its origin moved."""
        if behind is None or not any(not is_zero(x) for x in offset):
            return behind
        frame = self.made.new(self.made.width)
        self._hop(frame, behind, E3, offset, np.zeros((6, 0)))
        return frame

    def _step(self, step: CutStep) -> None:
        tie = step.tie
        if tie.joint is not None:
            self._joint(step, tie.joint)
        elif tie.closure is not None:
            self._closure(step, tie)
        else:
            self._node(step)

    def _joint(self, step: CutStep, j: int) -> None:
        """A joint of the tree, outwards or inwards."""
        link, plain = self.tree.links[j], self.plain.links[j]
        A, turn = self.axes(j), self.at.turned[j]
        d = self.at.local_position[j]  # of the moved frame, in axes of the parent
        S = np.concatenate([link.joint.S_v, link.joint.S_w])[:, list(step.tie.free)]
        if step.forward:
            Ap = E3 if step.source == GROUND else self.axes(step.source)
            frame, behind = self.made.frames[j], self._between(self.variables(step.source), dot(Ap.T, d))
            R = dot(dot(A.T, turn.T), dot(link.rotation.T, Ap))
            rigid = self._hop(frame, behind, R, np.zeros(3), rotated_twists(A.T, S))
        else:
            c = step.link
            Ac, side = self.axes(c), dot(link.rotation, A)
            child_frame = self.made.frames[c]
            frame = self.made.new(self.made.width)
            self._hop(child_frame, frame, dot(Ac.T, side), -dot(side.T, d), np.zeros((6, 0)))
            moved = S if plain.joint.one_axis or S.shape[1] == 6 or all_rotations(S) else rotated_twists(turn, S)
            R = dot(A.T, dot(turn, A))
            rigid = self._hop(frame, self.variables(step.source), R, np.zeros(3), rotated_twists(A.T, moved))
        if plain.joint.one_axis and step.tie.size:
            k = unit(rotated_twists(A.T, S)[list(self.used)][:, 0])
            if k is None:  # a screw: its rate has a variable of its own, made last
                self.made.rates[j] = {self.made.count - 1: 1.0 if step.forward else -1.0}
            else:
                sign = float(rotated_twists(A.T, S)[list(self.used)][k, 0]) * (1.0 if step.forward else -1.0)
                form = {variable: -sign * x for variable, x in rigid[k].items()} | {frame[k]: sign}
                self.made.rates[j] = form

    def _node(self, step: CutStep) -> None:
        """A node of a body that is not cut: its motion has parts of the body's own coordinates."""
        tie = step.tie
        node = self.tree.links[tie.second].node
        assert node is not None
        free = next(m.free for m in self.cut.modal if m.link == tie.first)
        Phi = np.concatenate([node.Phi_d, node.Phi_r])[:, list(free)]
        A, An = self.axes(tie.first), dot(self.tree.links[tie.second].rotation, self.axes(tie.second))
        if step.forward:
            R, p, moved = dot(An.T, A), dot(A.T, node.r0), rotated_twists(An.T, Phi)
        else:
            R, p = dot(A.T, An), -dot(An.T, node.r0)
            moved = -product(shift(dot(A.T, An), p), rotated_twists(An.T, Phi))
        more = dict(zip(self.modal[tie.first], moved.T, strict=True))
        self._hop(self.made.frames[step.link], self.variables(step.source), R, p, np.zeros((6, 0)), more)

    # -- closures ----------------------------------------------------------------------------------------

    def _closure(self, step: CutStep, tie: CutConnection) -> None:
        """A closure, from its first place to the second or back."""
        assert tie.closure is not None
        loop, hinge = self.loops[tie.closure], self.cut.hinges[tie.closure]
        link_place, source_place = (loop.second, loop.first) if step.forward else (loop.first, loop.second)
        A, B = self.place_axes(link_place), self.place_axes(source_place)  # places in own axes of their links
        S, led = np.concatenate([hinge.S_v, hinge.S_w]), np.concatenate([hinge.guided_v, hinge.guided_w])
        if has_symbols(loop.u1) or has_symbols(loop.u2) or has_symbols(loop.translations):
            raise NotCoveredError("a closure whose direction depends on the design")
        frame = self._moved_out(self.made.frames[step.link], dot(self.own(link_place).T, link_place.position))
        behind, at = self.variables(step.source), dot(self.own(source_place).T, source_place.position)
        motions = [(S, True), (led, False)] if step.forward else [(led, True), (S, False)]
        motions = [(columns, near) for columns, near in motions if columns.shape[1]]
        if not motions:
            self._hop(frame, self._between(behind, at), dot(A, B.T), np.zeros(3), np.zeros((6, 0)))
            return
        self._turning(step, frame, motions, A, B, (behind, at))

    def _turning(
        self, step: CutStep, frame: list[int], motions: list[tuple[Array, bool]], A: Array, B: Array, back: Any
    ) -> None:
        """The hops of a closure that leaves motions free: in axes of the own place, then in those of the other."""
        behind, at = back
        mine = next((columns for columns, near in motions if near), np.zeros((6, 0)))
        theirs = next((columns for columns, near in motions if not near), np.zeros((6, 0)))
        R_own, p_own = self.world(step.link)
        R_other, p_other = self.world(step.source)
        relative = dot(R_own.T, R_other)  # of own axes, from axes of the other link
        place_own, place_other = self._places(step)
        gap = dot(R_other.T, (p_own + dot(R_own, place_own)) - (p_other + dot(R_other, place_other)))
        slides = np.concatenate([columns[:3] for columns, _ in motions], axis=1)
        where = at + gap if slides.any() else at  # of the own place, in axes of the other link
        S_own, S_other = rotated_twists(A, mine), rotated_twists(B, theirs)
        if not theirs.shape[1]:
            E, S_own = along_single_axes(S_own, self.planar)
            front = self._rotated(frame, E)
            self._hop(front, self._between(behind, where), dot(E.T, relative), np.zeros(3), S_own)
            return
        if not mine.shape[1]:  # all motions along axes of the other place
            E, S_other = along_single_axes(S_other, self.planar)
            front = self.made.new(self.made.width)
            self._hop(frame, front, dot(relative, E), np.zeros(3), np.zeros((6, 0)))
            self._hop(front, self._between(behind, where), E.T, np.zeros(3), S_other)
            return
        E, S_other = along_single_axes(S_other, self.planar)  # a frame in axes of the other place between the two
        middle = self.made.new(self.made.width)
        if self._universal(motions):
            u_own, u_other = dot(R_own, S_own[3:, 0]), dot(R_other, _axis_before(S_other, E))
            third = np.cross(u_own, u_other)
            M = np.stack([u_other, u_own, third], axis=1)  # the cross of the joint
            F, S_first = along_single_axes(S_own, self.planar)
            front = self._rotated(frame, F)
            self._hop(front, middle, dot(dot(F.T, R_own.T), M), np.zeros(3), S_first)
            self._hop(middle, self._between(behind, where), dot(M.T, R_other), np.zeros(3), np.eye(6)[:, [3]])
            return
        self._hop(frame, middle, dot(relative, E), np.zeros(3), S_own)
        self._hop(middle, self._between(behind, where), E.T, np.zeros(3), S_other)

    def _universal(self, motions: list[tuple[Array, bool]]) -> bool:
        return all(columns.shape[1] == 1 and not columns[:3].any() for columns, _ in motions)

    def _places(self, step: CutStep) -> tuple[Array, Array]:
        loop = self.loops[step.tie.closure or 0]
        link_place, source_place = (loop.second, loop.first) if step.forward else (loop.first, loop.second)
        return dot(self.own(link_place).T, link_place.position), dot(self.own(source_place).T, source_place.position)

    def own(self, place: Place) -> Array:
        """Own axes of the link of a place, in those of the link."""
        return E3 if place.link == GROUND else self.axes(place.link)

    def place_axes(self, place: Place) -> Array:
        """Axes of a place in own axes of its link."""
        return dot(self.own(place).T, place.rotation)

    def _moved_out(self, link_frame: list[int], offset: Array) -> list[int]:
        """A frame at a place of a link, in its axes, that the frame of the link follows."""
        if not any(not is_zero(x) for x in offset):
            return link_frame
        frame = self.made.new(self.made.width)
        self._hop(link_frame, frame, E3, -offset, np.zeros((6, 0)))
        return frame

    def _rotated(self, base_frame: list[int], E: Array) -> list[int]:
        """A frame in axes E of another one, that the other follows."""
        if np.array_equal(E, E3):
            return base_frame
        frame = self.made.new(self.made.width)
        self._hop(base_frame, frame, E, np.zeros(3), np.zeros((6, 0)))
        return frame


def link_frame_axes(tree: Tree, j: int) -> Array:
    """Axes of the frame of a link, in those of the link: its own; of a planar robot those of its plane."""
    return without_rounding(neutral_rotation(tree, Place(j, E3, np.zeros(3))).T) if tree.planar else E3


def _axis_before(S: Array, E: Array) -> Array:
    """The axis of the one motion, in the axes before they were turned by E."""
    return dot(E, S[3:, 0])


class BodyMatrices:
    """K and M of the bodies of a tree whose numbers may be symbols."""

    def __init__(self, graph: Graph, tree: Tree, builder: FrameBuilder, designs: DesignNumbers | None) -> None:
        self.graph, self.tree, self.builder, self.designs = graph, tree, builder, designs
        self._made: dict[tuple, tuple[Array, Array]] = {}
        self._equal: dict[tuple[str, ...], Any] = {}

    def body(self, j: int, free: list[int]) -> tuple[Array, Array]:
        """Over the twist of a link, and the coordinates of its body that are unknowns."""
        body = self.tree.links[j].body
        rows = [*range(6), *(6 + k for k in free)]
        M = np.asarray(body.inertia_matrix(np.zeros(body.size)))[np.ix_(rows, rows)]
        K = np.zeros(M.shape, dtype=object)
        if free:
            K[6:, 6:] = np.asarray(body.material_stiffness(np.zeros(body.size)))[np.ix_(free, free)]
        return self._in_own_axes(K, M, [self.builder.axes(j)])

    def beam(self, j: int, tip: int) -> tuple[Array, Array]:
        """Over the twists of both ends in own axes, and modes with both ends held."""
        body, node = self.tree.links[j].body, self.tree.links[tip].node
        assert node is not None
        inertia, stiffness = (
            np.asarray(body.inertia_matrix(np.zeros(body.size))),
            body.material_stiffness(np.zeros(body.size)),
        )
        key = _key(self.graph, inertia, stiffness, node.r0, self.builder.axes(j), self.builder.axes(tip))
        if key not in self._made:
            held, size = body.held, body.size
            Phi = np.concatenate([node.Phi_d, node.Phi_r])
            X = np.zeros((6, 6), dtype=object)
            X[:3, :3] = X[3:, 3:] = np.eye(3)
            p = node.r0
            X[0, 4], X[0, 5], X[1, 3], X[1, 5], X[2, 3], X[2, 4] = p[2], -p[1], -p[2], p[0], p[1], -p[0]
            G = np.zeros((6 + size, 12 + held), dtype=object)
            G[:6, :6] = np.eye(6)
            G[6:, :6], G[6:, 6:12] = -product(Phi.T, X), Phi.T
            for k in range(held):
                G[6 + size - held + k, :] = 0.0
                G[6 + size - held + k, 12 + k] = 1.0
            M = product(G.T, product(inertia.astype(object), G))
            K = product(G[6:].T, product(np.asarray(stiffness).astype(object), G[6:]))
            self._made[key] = self._in_own_axes(K, M, [self.builder.axes(j), self.builder.axes(tip)])
        return self._made[key]

    def _in_own_axes(self, K: Array, M: Array, axes: list[Array]) -> tuple[Array, Array]:
        """Matrices over used components in own axes, with what is rounding left out."""
        rest = len(K) - 6 * len(axes)
        T = np.zeros((len(K), len(K)))
        for n, A in enumerate(axes):
            T[6 * n : 6 * n + 3, 6 * n : 6 * n + 3] = T[6 * n + 3 : 6 * n + 6, 6 * n + 3 : 6 * n + 6] = A
        T[6 * len(axes) :, 6 * len(axes) :] = np.eye(rest)
        used = [6 * n + k for n in range(len(axes)) for k in self.builder.used]
        used += range(6 * len(axes), len(K))
        if not np.array_equal(T, np.eye(len(T))):
            K, M = product(T.T, product(K, T)), product(T.T, product(M, T))
        K, M = K[np.ix_(used, used)].astype(object), M[np.ix_(used, used)].astype(object)
        return self._cleaned(K), self._cleaned(M)

    def _cleaned(self, matrix: Array) -> Array:
        """Zeros for what is rounding alone, whatever the design."""
        numbers = self._samples(matrix)
        sizes = np.sqrt(np.abs(np.einsum("sii->si", numbers)))
        small = np.abs(numbers) <= NOTHING * sizes[:, :, None] * sizes[:, None, :]
        result = matrix.copy()
        for i, j in np.ndindex(result.shape):
            if i > j:
                continue
            if small[:, i, j].all():
                result[i, j] = result[j, i] = 0.0
                continue
            # entries that are equal in every design are one, so that what cancels on paper cancels here
            sign = -1.0 if numbers[0, i, j] < 0 else 1.0
            name = tuple(f"{sign * x:.11e}" for x in numbers[:, i, j])
            result[i, j] = result[j, i] = sign * self._equal.setdefault(name, sign * result[i, j])
        return result

    def _samples(self, matrix: Array) -> Array:
        """Values of entries in some designs near the given ones."""
        if self.designs is None:
            return matrix.astype(float)[None]
        values = self._sample_values()
        program = make_program(self.graph, "sample", {"m": matrix}, quick=True)
        evaluated = [program.evaluate({name: row.get(name, 0.0) for name in program.inputs}) for row in values]
        return np.array([list(row.values()) for row in evaluated]).reshape(len(values), *matrix.shape)

    def _sample_values(self) -> list[dict[str, float]]:
        assert self.designs is not None
        numbers = self.designs
        if numbers.samples is not None:  # what is equal by the formulas of the file is equal there: mirrored halves
            return [{f"design[{k}]": float(x) for k, x in enumerate(row)} for row in numbers.samples]
        size = np.maximum(np.abs(numbers.values).max(axis=0), np.abs(numbers.nominal))
        turns = np.random.default_rng(0).uniform(-0.05, 0.05, (2, len(size)))
        return [{f"design[{k}]": float(x) for k, x in enumerate(numbers.nominal + turn * size)} for turn in turns]


def _key(graph: Graph, *arrays: Any) -> tuple:
    return tuple(
        graph.edge(x) if isinstance(x, Expression) else float(x) for array in arrays for x in np.asarray(array).flat
    )


class ClosingForms:
    """The forms of all that closes a loop inside a piece, with their units: metres, or radians times the length."""

    def __init__(self, builder: FrameBuilder, constraints: Sequence[Constraint]) -> None:
        self.builder = builder
        self.length = float(builder.plain.length)
        self.forms: list[Row] = []
        self.units: list[float] = []
        for tie in builder.cut.left_over:
            assert tie.closure is not None  # joints and nodes are a forest: closures alone are left over
            self._loop(builder.loops[tie.closure])
        for row in constraints:
            if isinstance(row, Coupling):
                self._coupling(row)
            elif isinstance(row, Distance):
                self._distance(row)
            else:
                raise NotCoveredError(f"'{row.name}', a {row.kind}")

    def _put(self, form: Row, unit: float) -> None:
        self.forms.append({k: x for k, x in form.items() if not is_zero(x)})
        self.units.append(unit)

    def _twist(self, place: Place) -> list[Row]:
        """Twist of a place, in its axes."""
        if place.inner is not None:
            raise NotCoveredError("a closure inside a body")
        if place.link == GROUND:
            return [{} for _ in range(6)]
        builder = self.builder
        X = shift(builder.place_axes(place).T, dot(builder.own(place).T, place.position))[:, list(builder.used)]
        frame = builder.made.frames[place.link]
        return [{k: x for k, x in zip(frame, row, strict=True) if not is_zero(x)} for row in X]

    def _world(self, place: Place) -> tuple[Array, Array]:
        R, p = self.builder.world(place.link)
        return dot(R, self.builder.place_axes(place)), p + dot(R, dot(self.builder.own(place).T, place.position))

    def _loop(self, loop: Loop) -> None:
        """Rows of theory (9), (10) at a closed pose."""
        (R1, P1), (R2, P2) = self._world(loop.first), self._world(loop.second)
        turn = E3 if loop.turning == "none" else dot(R1.T, R2)
        all_translations = len(loop.translations) == (2 if self.builder.planar else 3)
        first_twist, second_twist = self._twist(loop.first), self._twist(loop.second)
        v1, w1 = first_twist[:3], first_twist[3:]
        v2, w2 = _combined(turn, second_twist[:3]), _combined(turn, second_twist[3:])
        opening = [_sum(a, b, -1.0) for a, b in zip(v2, v1, strict=True)]
        if not all_translations:  # the second place has left the first
            rho = dot(R1.T, P2 - P1)
            hat = np.zeros((3, 3), dtype=object)
            hat[0, 1], hat[0, 2], hat[1, 2] = -rho[2], rho[1], -rho[0]
            hat[1, 0], hat[2, 0], hat[2, 1] = rho[2], -rho[1], rho[0]
            opening = [_sum(a, b) for a, b in zip(opening, _combined(hat, w1), strict=True)]
        turning = [_sum(a, b, -1.0) for a, b in zip(w2, w1, strict=True)]
        for form in _combined(loop.translations, opening):
            self._put(form, 1.0)
        for form in _combined(loop.rotations, turning):
            self._put(form, self.length)
        if loop.turning == "universal":
            normal = np.cross(dot(turn, loop.u2), loop.u1)
            self._put(_combined(normal[None], turning)[0], self.length)

    def _coupling(self, row: Coupling) -> None:
        """Rates of joints; those that are locked do not move."""
        form: Row = {}
        for number, c in zip(row.numbers, row.coefficients, strict=True):
            form = _sum(form, self.builder.made.rates.get(number, {}), c)
        scale = float(row.scale(self.length)[0]) if all(isinstance(c, float | int) for c in row.coefficients) else 1.0
        self._put(form, scale)

    def _distance(self, row: Distance) -> None:
        """Along the line between the places, less the rate of a strut."""
        (R1, P1), (R2, P2) = self._world(row.first), self._world(row.second)
        across = P2 - P1
        across = across / np.sqrt(sum(x * x for x in across))
        form: Row = {}
        for R, place, sign in ((R2, row.second, 1.0), (R1, row.first, -1.0)):
            form = _sum(form, _combined(dot(R.T, across)[None], self._twist(place)[:3])[0], sign)
        if row.number is not None:
            form = _sum(form, self.builder.made.rates.get(row.number, {}), -1.0)
        self._put(form, 1.0)


def _sum(a: Row, b: Row, factor: Any = 1.0) -> Row:
    """A + factor b."""
    result = dict(a)
    for k, x in b.items():
        term = factor * x
        result[k] = result[k] + term if k in result else term
    return result


def _combined(A: Array, forms: Sequence[Row]) -> list[Row]:
    """Rows of A times forms."""
    combined: list[Row] = []
    for row in A:
        total: Row = {}
        for x, form in zip(row, forms, strict=True):
            if not is_zero(x):
                total = _sum(total, form, x)
        combined.append(total)
    return combined


def typical_sizes(builder: FrameBuilder) -> dict[int, float]:
    """Of variables that are not turns."""
    length = float(builder.plain.length)
    sizes: dict[int, float] = {}
    for frame in (*builder.made.frames.values(), *(hop.frame for hop in builder.made.hops)):
        sizes |= {k: length for k, component in zip(frame, builder.used, strict=True) if component < 3}
    units = builder.plain.rate_units
    for entry in builder.cut.modal:
        modal_units = units[builder.plain.links[entry.link].e_v][list(entry.free)]
        sizes |= dict(zip(builder.modal[entry.link], modal_units.tolist(), strict=True))
    return sizes


def close_loops(
    builder: FrameBuilder, constraints: Sequence[Constraint], at_home: Callable[[list[Any]], Array]
) -> list[tuple[Any, float]]:
    """Let frames hop to what loops leave free; gives what is divided by, with its value at home."""
    closing_forms = ClosingForms(builder, constraints)
    if not closing_forms.forms:
        return []
    cut, frames = builder.cut, builder.made
    moving = {k for piece in cut.pieces if piece.reference != GROUND for k in frames.frames[piece.reference]}
    retained = moving | {k for modal_variables in builder.modal.values() for k in modal_variables}
    forms, sizes = free_forms(frames, closing_forms.forms), typical_sizes(builder)
    rows, divisors = dependent_rows(forms, closing_forms.units, sizes, retained, closing_rank(cut), at_home)
    frames.hops += [FrameDependence({k: form}, [k]) for k, form in rows.items()]
    return divisors


def closing_rank(cut: CutRobot) -> int:
    """How many unknowns loops without beams, couplings and rods hold."""
    robot = cut.robot
    return cut.size - (len(robot.free) - robot.mobility.rank)


def free_forms(frames: FrameTree, forms: Sequence[Row]) -> list[Row]:
    """Forms in free components alone."""
    rows = {k: row for hop in frames.hops for k, row in hop.rows.items()}
    known: dict[int, Row] = {}

    def of(k: int) -> Row:
        if k not in rows:
            return {k: 1.0}
        if k not in known:
            known[k] = expanded(rows[k])
        return known[k]

    def expanded(form: Row) -> Row:
        total: Row = {}
        for k, x in form.items():
            total = _sum(total, of(k), x)
        return {k: x for k, x in total.items() if not is_zero(x)}

    return [expanded(form) for form in forms]


def dependent_rows(
    forms: Sequence[Row],
    row_units: Sequence[float],
    sizes: dict[int, float],
    retained: set[int],
    rank: int,
    at_home: Callable[[list[Any]], Array],
) -> tuple[dict[int, Row], list[tuple[Any, float]]]:
    """Components that follow, over those that are left, and what was divided by, with its value at home.

    As many as `rank`; which ones is decided by their numbers at home.
    """
    columns = sorted({k for form in forms for k in form})
    entries = [(i, k) for i, form in enumerate(forms) for k in form]
    values = at_home([forms[i][k] for i, k in entries])
    C = np.zeros((len(forms), len(columns)))
    for (i, k), x in zip(entries, values, strict=True):
        C[i, columns.index(k)] = x
    units = np.array([sizes.get(k, 1.0) for k in columns])
    scaled = np.array(row_units)[:, None] * C * units
    scaled = scaled / max(float(np.abs(scaled).max(initial=0.0)), 1e-300)
    weights = np.array([KEPT if k in retained else 1.0 for k in columns])
    if min(scaled.shape) < rank:
        raise NotCoveredError("loops that hold in another way than at home")
    chosen = choose_partition(scaled, np.arange(len(columns)), rank, weights)
    work = {int(i): dict(forms[i]) for i in chosen.rows}
    home = {i: {k: C[i, columns.index(k)] * units[columns.index(k)] for k in form} for i, form in work.items()}
    left = {columns[k] for k in chosen.dependent}
    dependencies: dict[int, Row] = {}
    divisors: list[tuple[Any, float]] = []
    waiting = set(work)
    owner: dict[int, int] = {}
    while waiting:
        i, k = _pivot(work, home, waiting, left)
        pivot, number = work[i][k], home[i][k] / sizes.get(k, 1.0)
        divisors.append((pivot, number))
        inverse = 1.0 / pivot
        work[i] = {j: x * inverse for j, x in work[i].items() if j != k}
        home[i] = {j: x / home[i][k] for j, x in home[i].items() if j != k}
        for other in work:
            if other != i and k in work[other]:
                factor, size = work[other].pop(k), home[other].pop(k)
                work[other] = _sum(work[other], {j: -x for j, x in work[i].items()}, factor)
                work[other] = {j: x for j, x in work[other].items() if not is_zero(x)}
                home[other] = {j: home[other].get(j, 0.0) - size * home[i].get(j, 0.0) for j in work[other]}
        owner[k] = i
        waiting.discard(i)
        left.discard(k)
    for k, i in owner.items():
        dependencies[k] = {j: -x for j, x in work[i].items()}
    return dependencies, divisors


def _pivot(
    work: dict[int, Row], home: dict[int, dict[int, float]], waiting: set[int], left: set[int]
) -> tuple[int, int]:
    """A row and its component to divide by: large beside the others at home, and cheap."""
    best: tuple[float, float, int, int] | None = None
    for i in sorted(waiting):
        here = {k: abs(home[i].get(k, 0.0)) for k in work[i] if k in left}
        top = max(here.values(), default=0.0)
        if not top:
            continue
        for k, size in here.items():
            if size < SAFE * top:
                continue
            cost = (len(work[i]) - 1) * (sum(k in form for form in work.values()) - 1)
            if best is None or (cost, -size) < best[:2]:
                best = cost, -size, i, k
    if best is None:
        raise NotCoveredError("loops that hold in another way than at home")
    return best[2], best[3]


def dot(A: Array, B: Array) -> Array:
    """A B without products with zero."""
    A, B = np.asarray(A), np.asarray(B)
    if A.dtype != object and B.dtype != object:
        return without_rounding(A @ B)
    return product(A, B)


def product(A: Array, B: Array) -> Array:
    """A B over any scalar, zeros kept."""
    wide = B if B.ndim == 2 else B[:, None]
    result = np.zeros((A.shape[0], wide.shape[1]), dtype=object)
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            if is_zero(A[i, k]):
                continue
            for j in range(wide.shape[1]):
                if not is_zero(wide[k, j]):
                    result[i, j] = result[i, j] + A[i, k] * wide[k, j]
    return result if B.ndim == 2 else result[:, 0]


def shift(R: Array, p: Array) -> Array:
    """From a twist to that of a frame at p: its axes are those of R (columns: axes of the first one)."""
    hat = np.zeros((3, 3), dtype=object)
    hat[0, 1], hat[0, 2], hat[1, 2] = -p[2], p[1], -p[0]
    hat[1, 0], hat[2, 0], hat[2, 1] = p[2], -p[1], p[0]
    X = np.zeros((6, 6), dtype=object)
    X[:3, :3] = X[3:, 3:] = R
    X[:3, 3:] = -product(np.asarray(R, dtype=object), hat)
    return X


def rotated_twists(R: Array, S: Array) -> Array:
    """Twists in other axes."""
    return np.concatenate([dot(R, S[:3]), dot(R, S[3:])]) if S.shape[1] else np.zeros((6, 0))


def along_single_axes(S: Array, planar: bool) -> tuple[Array, Array]:
    """Axes in which motions are along single axes, and the motions there."""
    S = S.astype(float)
    if all(unit(column) is not None for column in S.T):
        return E3, S
    turns, slides = S[3:][:, np.abs(S[3:]).max(axis=0) > 0], S[:3][:, np.abs(S[:3]).max(axis=0) > 0]
    if turns.shape[1] == 3 and np.linalg.matrix_rank(turns) == 3 and not slides.size:
        return E3, np.eye(6)[:, 3:]
    axis = (turns if turns.size else slides)[:, 0]
    if planar:
        E = np.stack([axis, np.cross([0.0, 0.0, 1.0], axis), [0.0, 0.0, 1.0]], axis=1) if abs(axis[2]) < 0.5 else E3
    else:
        near = E3[np.argmin(np.abs(axis))]
        second = np.cross(axis, near) / np.linalg.norm(np.cross(axis, near))
        E = np.stack([axis, second, np.cross(axis, second)], axis=1)
    E = without_rounding(E)
    return E, without_rounding(rotated_twists(E.T, S).astype(float))


def unit(column: Array) -> int | None:
    """The one component of a motion; None if there are several."""
    full = [k for k, x in enumerate(column) if not is_zero(x)]
    if len(full) != 1 or isinstance(column[full[0]], Expression) or abs(abs(column[full[0]]) - 1) > TINY:
        return None
    return full[0]


def all_rotations(S: Array) -> bool:
    """Whether motions are turns about all axes."""
    return (
        S.shape[1] == 3
        and not has_symbols(S)
        and not S[:3].any()
        and bool(np.linalg.matrix_rank(S[3:].astype(float)) == 3)
    )


def has_symbols(values: Array) -> bool:
    """Whether some entry is a symbol."""
    return any(isinstance(x, Expression) for x in np.asarray(values).flat)


def without_rounding(matrix: Array) -> Array:
    """Zeros for what is rounding."""
    return np.where(np.abs(matrix) < TINY, 0.0, matrix)
