"""The program of one step of a robot: factor D(s), solve for w, and what the loop needs of it.

One trace holds everything: what depends on pose and design alone is split off and run once for each pose.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.codegen.passes.optimise import make_program
from parflex.codegen.program import Program
from parflex.designs.design_numbers import DesignNumbers
from parflex.graph.expression import Expression, Graph
from parflex.maps.batches import rigid_tree
from parflex.maps.engine.frames import FrameBuilder, FrameTree, Row, product
from parflex.maps.engine.sparse_system import StepSystem
from parflex.maps.nodes import NotCoveredError
from parflex.models.cutting import CutRobot, cut_at_beams
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.recursion import pose
from parflex.spatial.elimination import is_zero
from parflex.tree import Tree
from parflex.tree.link_tree import GROUND

Array = np.ndarray
NOTHING = 1e-12  # of the diagonal entries: what is smaller in the matrix of a body is rounding


@dataclass(frozen=True, eq=False, repr=False)
class StepPrograms(Record):
    """The program of a pose, whose outputs are the last inputs of that of a step."""

    pose: Program
    step: Program
    size: int  # of b
    unknowns: int  # whose signs are counted
    twisted: int  # components of the twist
    condensed: int  # unknowns that b does not reach


class StepTrace:
    """Traces the step of a robot with its locked joints."""

    def __init__(self, locked: Robot, designs: DesignNumbers | None = None) -> None:
        self.locked, self.designs = locked, designs
        if locked.closures.constraints or locked.tree.springs:
            raise NotCoveredError("coupled joints")
        if locked.tree.elements:
            raise NotCoveredError("an element between two points")
        self.cut = cut_at_beams(locked, _towards(locked))
        if self.cut.left_over:
            raise NotCoveredError("a loop without a beam")
        self.graph = Graph()
        self.s = self.graph.symbol("s")
        self.tree, loops = self._traced()
        q = np.array([self.graph.symbol(f"q[{k}]") for k in range(rigid_tree(locked.tree).nq)], dtype=object)
        at = pose(rigid_tree(self.tree), q)
        self.builder = FrameBuilder(self.cut, self.tree, loops, at)
        self.frames: FrameTree = self.builder.build()
        self.system = StepSystem()
        self.known = _trivial(self.frames)
        self.elements: dict[int, set[int]] = {}  # variables of each beam, by its link
        self._made: dict[tuple, tuple[Array, Array]] = {}
        self._equal: dict[tuple[str, ...], Any] = {}

    def _traced(self) -> tuple[Tree, Any]:
        """Tree and loops, with symbols where designs differ."""
        if self.designs is None:
            return self.locked.tree, self.locked.closures.loops
        symbols = {k: self.graph.symbol(f"design[{k}]") for k in range(len(self.designs.places))}
        made = self.designs.with_numbers(symbols)
        return made.tree, made.closures.loops

    def programs(self) -> StepPrograms:
        """Trace everything."""
        self._assemble()
        self._condense()
        condensed = len(self.system.pivots)
        b = {k: self.graph.symbol(f"b[{n}]") for n, k in enumerate(self._felt())}
        felt = {k: {j: x for j, x in row.items() if not is_zero(x)} for k, row in self.system.N.rows.items()}
        self._eliminate()
        w = self.system.solved(b)
        force = {}
        for k in b:
            total: Any = 0.0
            for j, x in felt[k].items():
                total = total + x * w.get(j, 0.0)
            force[k] = total
        mass = sum(((w[k] * force[k]) for k in b), 0.0)
        along = sum(((w[k] * b[k]) for k in b), 0.0)
        scale = 1.0 / np.sqrt(mass)
        hub = self.locked.tree.places[self.locked.tree.end_effector].link
        twist = [self._value(w, k) for k in self.frames.frames[hub]] if hub != GROUND else []
        signs: Any = 0.0
        for edge, count in Counter(d.edge for d in self.system.pivots).items():
            signs = signs + count * Expression(self.graph, edge).sign()
        outputs = {
            "signs": signs,
            "along": along,
            "mass": mass,
            "b": np.array([force[k] * scale for k in b], dtype=object),
            "twist": np.array([x * scale for x in twist], dtype=object),
        }
        parameters = [name for name in self.graph.names if name.startswith(("q[", "design["))]
        whole = make_program(self.graph, "step", outputs, parameters=parameters, quick=True)
        first, second = whole.split()
        return StepPrograms(first, second, len(b), len(self.system.pivots), len(twist), condensed)

    def _value(self, w: Row, k: int) -> Any:
        form = resolved(self.known, {k: 1.0})
        total: Any = 0.0
        for j, x in form.items():
            total = total + x * w.get(j, 0.0)
        return total

    def _felt(self) -> list[int]:
        """Unknowns with mass, on which b lives."""
        return sorted(k for k, row in self.system.N.rows.items() if row)

    # -- matrices of bodies ------------------------------------------------------------------------------

    def _assemble(self) -> None:
        beams = {beam.link: beam for beam in self.cut.beams}
        self.held: list[int] = []
        for j, link in enumerate(self.tree.links):
            frame = self.frames.frames[j]
            if j in beams:
                held = self.frames.new(beams[j].body.held)
                self.held += held
                K, M = self._beam(j, beams[j].tip)
                variables = [*frame, *self.frames.frames[beams[j].tip], *held]
                self.elements[j] = self._add(variables, K, M)
            elif j in self.builder.modal:
                free = list(next(m.free for m in self.cut.modal if m.link == j))
                K, M = self._body(j, free)
                self._add([*frame, *self.builder.modal[j]], K, M)
            else:
                K, M = self._body(j, [])
                self._add(frame, K, M)
        for j, form in self.frames.rates.items():
            terms = self.tree.links[j].terms
            form = resolved(self.known, form)
            self._add_form(form, terms.stiffness, terms.motor_inertia)

    def _add_form(self, form: Row, stiffness: Any, inertia: Any) -> None:
        names = list(form)
        for a, i in enumerate(names):
            for j in names[a:]:
                x = form[i] * form[j]
                if not is_zero(inertia):
                    self.system.N.add(i, j, x * inertia)
                    self.system.D.add(i, j, -(x * inertia) * self.s)
                if not is_zero(stiffness):
                    self.system.D.add(i, j, x * stiffness)

    def _add(self, variables: list[int], K: Array, M: Array) -> set[int]:
        """Add matrices of a body; returns the unknowns that it touches."""
        forms = [resolved(self.known, {k: 1.0}) for k in variables]
        used: set[int] = set()
        for a, form in enumerate(forms):
            for c in range(a, len(forms)):
                if is_zero(K[a, c]) and is_zero(M[a, c]):
                    continue
                D = K[a, c] - self.s * M[a, c] if not is_zero(M[a, c]) else K[a, c]
                for i, x in form.items():
                    for j, y in forms[c].items():
                        double = 2.0 if i == j and a != c else 1.0
                        self.system.D.add(i, j, D * (x * y * double))
                        self.system.N.add(i, j, M[a, c] * (x * y * double))
                        used |= {i, j}
        return used

    def _body(self, j: int, free: list[int]) -> tuple[Array, Array]:
        body = self.tree.links[j].body
        rows = [*range(6), *(6 + k for k in free)]
        M = np.asarray(body.inertia_matrix(np.zeros(body.size)))[np.ix_(rows, rows)]
        K = np.zeros(M.shape, dtype=object)
        if free:
            K[6:, 6:] = np.asarray(body.material_stiffness(np.zeros(body.size)))[np.ix_(free, free)]
        return self._in_own_axes(K, M, [self.builder.axes(j)])

    def _beam(self, j: int, tip: int) -> tuple[Array, Array]:
        """Over the twists of both ends in own axes, and modes with both ends held."""
        body, node = self.tree.links[j].body, self.tree.links[tip].node
        assert node is not None
        inertia, stiffness = np.asarray(body.inertia_matrix(np.zeros(body.size))), body.material_stiffness(np.zeros(body.size))
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
        found = [program.evaluate({name: row.get(name, 0.0) for name in program.inputs}) for row in values]
        return np.array([list(row.values()) for row in found]).reshape(len(values), *matrix.shape)

    def _sample_values(self) -> list[dict[str, float]]:
        assert self.designs is not None
        numbers = self.designs
        size = np.maximum(np.abs(numbers.values).max(axis=0), np.abs(numbers.nominal))
        turns = np.random.default_rng(0).uniform(-0.05, 0.05, (2, len(size)))
        return [{f"design[{k}]": float(x) for k, x in enumerate(numbers.nominal + turn * size)} for turn in turns]

    # -- elimination -------------------------------------------------------------------------------------

    def _condense(self) -> None:
        """Inner unknowns of beams, then nodes inside chains: every second one first, so that equal halves are one."""
        for k in self.held:
            self.system.condense(k)
        hub = self.locked.tree.places[self.locked.tree.end_effector].link
        kept = {k for form in self._open_rows().values() for k in form} | set(self._open_rows())
        if hub != GROUND:
            kept |= {k for v in self.frames.frames[hub] for k in resolved(self.known, {v: 1.0})}
        owners: dict[int, list[int]] = {}
        for j, used in self.elements.items():
            for k in used:
                owners.setdefault(k, []).append(j)
        inner: dict[tuple[int, ...], list[int]] = {}
        for piece in self.cut.pieces:
            if piece.reference == GROUND:
                continue
            own = self.frames.frames[piece.reference]
            if kept & set(own) or any(k in self.known for k in own):
                continue
            beams = {j for k in own for j in owners.get(k, [])}
            if len(beams) == 2:
                inner.setdefault(tuple(sorted(beams)), []).extend(own)
        for chain in _chains(inner):
            while chain:
                for component in zip(*chain[::2], strict=True):  # what both neighbours of a node add cancels at once
                    for k in component:
                        self.system.condense(k)
                chain = chain[1::2]

    def _open_rows(self) -> dict[int, Row]:
        """Components that follow by more than a sign."""
        return {
            k: resolved(self.known, row) for hop in self.frames.hops for k, row in hop.rows.items() if k not in self.known
        }

    def _eliminate(self) -> None:
        """Everything else: what costs least comes next, and a frame hops when its free components are gone."""
        system, waiting = self.system, self._open_rows()
        hops = [[k for k in hop.rows if k in waiting] for hop in self.frames.hops]
        frames = [set(hop.frame) for hop in self.frames.hops]
        hops_left = {n: rows for n, rows in enumerate(hops) if rows}
        while True:
            blocked = {k for form in waiting.values() for k in form} | set(waiting)
            ready = [(_cost(system.D.rows[k]), 0, k) for k in system.D.rows if k not in blocked]
            for n, rows in hops_left.items():
                free = [k for k in frames[n] if k not in waiting and k not in self.known and k in system.D.rows]
                behind = {k for form in waiting.values() for k in form}
                if free and not all(k in blocked for k in free):
                    continue
                if any(k in behind for k in rows):
                    continue
                ready.append((_hop_cost(system.D.rows, rows, waiting), 1, n))
            if not ready:
                break
            _, kind, n = min(ready)
            if kind == 0:
                system.eliminate(n)
                continue
            for k in hops_left.pop(n):
                system.substitute(k, waiting.pop(k))
        if system.D.rows:
            raise NotCoveredError("an order of elimination was not found")


def _hop_cost(rows: dict[int, Row], hopping: list[int], forms: dict[int, Row]) -> float:
    others = {j for k in hopping for j in rows.get(k, {})} - set(hopping)
    width = sum(len(forms[k]) for k in hopping)
    return width * (len(others) + len(hopping))


def _cost(row: Row) -> float:
    return (len(row) - 1) * len(row)


def resolved(known: dict[int, Row], form: Row) -> Row:
    """A form with components that follow by a sign replaced."""
    result: Row = {}
    for k, x in form.items():
        for j, y in (resolved(known, known[k]) if k in known else {k: 1.0}).items():
            value = x * y
            result[j] = result[j] + value if j in result else value
    return {j: x for j, x in result.items() if not is_zero(x)}


def _trivial(frames: FrameTree) -> dict[int, Row]:
    """Components that are zero or follow from one other by a sign."""
    known: dict[int, Row] = {}
    changed = True
    while changed:
        changed = False
        for hop in frames.hops:
            for k, row in hop.rows.items():
                if k in known:
                    continue
                form = resolved(known, row)
                plain = all(isinstance(x, (int, float)) for x in form.values())
                if not form or (len(form) == 1 and plain and all(abs(abs(x) - 1) < 1e-14 for x in form.values())):
                    known[k] = {j: float(np.sign(x)) for j, x in form.items()}
                    changed = True
    return known


def _chains(inner: dict[tuple[int, ...], list[int]]) -> list[list[list[int]]]:
    """Nodes between two beams each, in the order along their chains."""
    by_beam: dict[int, list[tuple[int, ...]]] = {}
    for pair in inner:
        for j in pair:
            by_beam.setdefault(j, []).append(pair)
    chains, seen = [], set()
    for pair in inner:
        ends = [j for j in pair if len(by_beam[j]) == 1]
        if pair in seen or not ends:
            continue
        chain, current, came = [], pair, ends[0]
        while True:
            seen.add(current)
            chain.append(inner[current])
            onward = next(j for j in current if j != came)
            following = [other for other in by_beam[onward] if other not in seen]
            if not following:
                break
            came, current = onward, following[0]
        chains.append(chain)
    return chains


def _key(graph: Graph, *arrays: Any) -> tuple:
    return tuple(graph.edge(x) if isinstance(x, Expression) else float(x) for array in arrays for x in np.asarray(array).flat)


def _towards(robot: Robot) -> list[int]:
    """Links by their distance to the end effector: pieces are counted from what is nearest to it."""
    tree = robot.tree
    near: dict[int, set[int]] = {j: set() for j in (GROUND, *range(len(tree.links)))}
    edges = [(j, link.parent) for j, link in enumerate(tree.links) if not link.joint.moves_freely]
    edges += [loop.ends for loop in robot.closures.loops]
    for a, b in edges:
        if GROUND not in (a, b):
            near[a].add(b)
            near[b].add(a)
    hub = tree.places[tree.end_effector].link
    order, waiting = [], [hub] if hub != GROUND else []
    while waiting:
        j = waiting.pop(0)
        if j not in order:
            order.append(j)
            waiting += sorted(near[j] - set(order))
    return order


def cut_towards_platform(robot: Robot) -> CutRobot:
    """The pieces of a robot, each counted from its link that is nearest to the end effector."""
    return cut_at_beams(robot, _towards(robot))
