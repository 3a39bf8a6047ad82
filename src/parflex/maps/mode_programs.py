"""The program of one step of the mode search: sparse factorisation of K - s M.

One trace factors D(s) = K - s M, solves for w and gives all numbers that the loop needs. The part that depends on pose
and parameters alone is split off and evaluated once per pose.

D(s) is a sparse symmetric matrix over any scalar. Unknowns are condensed with N = -dD/ds, the others eliminated.
Condensing an unknown keeps D exact at every s: with x_j = D_kj / D_kk,

    D_ij <- D_ij - x_i D_kj,    N_ij <- N_ij - x_i N_kj - x_j N_ki + x_i x_j N_kk.

The signs of all pivots, those of condensed unknowns included, count the eigenvalues below s.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.cache import cached
from parflex.closure.constraints import Closures
from parflex.codegen import cache
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.lower import Emission, depth_first
from parflex.codegen.optimise import make_program
from parflex.codegen.program import Program
from parflex.maps.kinematics import rigid_tree
from parflex.maps.symbolic_matrices import (
    BodyMatrices,
    FrameBuilder,
    FrameTree,
    NotCoveredError,
    Row,
    close_loops,
    product,
    rotated_twists,
    shift,
)
from parflex.parameters.design_numbers import DesignNumbers
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.robot.substructures import cut_at_beams
from parflex.spatial.linear import is_zero
from parflex.symbolic.expression import Expression, Graph
from parflex.tree.tree import GROUND, Tree

Array = np.ndarray

DESIGN = "design["  # begins the name of a number of the design


@dataclass(frozen=True, eq=False, repr=False)
class ModePrograms(Record):
    """The program of a pose, whose outputs are the last inputs of that of a step."""

    pose: Program
    step: Program
    size: int  # of b
    unknowns: int  # whose signs are counted
    twisted: int  # components of the twist
    condensed: int  # unknowns that b does not reach
    closing: Program | None = None  # what loops without beams are divided by, over its value at home


class StepTrace:
    """Traces the step of a robot with its locked joints."""

    def __init__(self, locked: Robot, designs: DesignNumbers | None = None) -> None:
        self.locked, self.designs = locked, designs
        refuse_elements(locked.tree)
        self.cut = cut_at_beams(locked, distance_to_platform(locked))
        self.graph = Graph()
        self.s = self.graph.symbol("s")
        self.tree, closures = self._traced()
        q = np.array([self.graph.symbol(f"q[{k}]") for k in range(rigid_tree(locked.tree).nq)], dtype=object)
        self.at = pose(rigid_tree(self.tree), q)
        self.builder = FrameBuilder(self.cut, self.tree, closures.loops, self.at)
        self.frames: FrameTree = self.builder.build()
        self.divisors = close_loops(self.builder, closures.constraints, self._at_home)
        self.system = StepSystem()
        self.early = not self.cut.beams  # few unknowns are left by what depends on the pose alone: it goes first
        self.known = trivial_rows(self.frames)
        self.elements: dict[int, set[int]] = {}  # variables of each beam, by its link
        self.bodies = BodyMatrices(self.graph, self.tree, self.builder, designs)

    def _traced(self) -> tuple[Tree, Closures]:
        """Tree and closures, with symbols where designs differ."""
        if self.designs is None:
            return self.locked.tree, self.locked.closures
        symbols = {k: self.graph.symbol(f"design[{k}]") for k in range(len(self.designs.places))}
        made = self.designs.with_numbers(symbols)
        return made.tree, made.closures

    def _at_home(self, values: list[Any]) -> Array:
        """Numbers of expressions at home, in the nominal design."""
        home = np.concatenate([self.locked.home[link.q] for link in self.locked.tree.links])
        known = {f"q[{k}]": float(x) for k, x in enumerate(home)}
        if self.designs is not None:
            known |= {f"design[{k}]": float(x) for k, x in enumerate(self.designs.nominal)}
        program = make_program(self.graph, "home", {"x": np.array(values, dtype=object)}, quick=True)
        return np.array(list(program.evaluate({name: known.get(name, 0.0) for name in program.inputs}).values()))

    def programs(self) -> ModePrograms:
        """Trace everything."""
        self._assemble()
        if self.early:
            self._substitute_early()
        self._condense()
        condensed = len(self.system.pivots)
        mass_rows = {
            k: {j: x for j, x in row.items() if not is_zero(x)} for k, row in self.system.N.rows.items() if row
        }
        self._eliminate()
        reached = sorted(self.system.pulled(dict.fromkeys(mass_rows, 1.0)))
        b = {k: self.graph.symbol(f"b[{n}]") for n, k in enumerate(reached)}
        w = self.system.solved(b)
        pulled: Row = {}
        for k, row in sorted(mass_rows.items()):
            total: Any = 0.0
            for j, x in row.items():
                total = total + x * w.get(j, 0.0)
            pulled[k] = total
        force = self.system.pulled(pulled)
        mass = sum(((w[k] * force[k]) for k in b), 0.0)
        along = sum(((w[k] * b[k]) for k in b), 0.0)
        weight = 1.0 / mass
        scale, off = np.sqrt(weight), along * weight
        hub = self.locked.tree.places[self.locked.tree.end_effector].link
        twist = self._twist(hub, w) if hub != GROUND else []
        fixed = [d for d in self.system.pivots if not isinstance(d, Expression)]  # of what has stiffness but no mass
        signs: Any = float(sum(np.sign(d) for d in fixed))
        for edge, count in Counter(d.edge for d in self.system.pivots if isinstance(d, Expression)).items():
            signs = signs + count * Expression(self.graph, edge).sign()
        inner: Any = 0.0
        for edge in sorted({d.edge for d in self.system.pivots[:condensed] if isinstance(d, Expression)}):
            inner = inner + (1.0 - Expression(self.graph, edge).sign())
        outputs = {
            "signs": signs,
            "off": off,  # of the Rayleigh quotient from the shift
            "weight": weight,  # 1 / w.N w: the square of the residual is this less the square of `off`
            "inner": inner,  # of condensed unknowns, how many kinds of pivots are not positive, twice
            "twist": np.array([x * scale for x in twist], dtype=object),
            "b": np.array([force[k] * scale for k in b], dtype=object),  # last: it takes the place of that of the input
        }
        parameters = [name for name in self.graph.names if name.startswith(("q[", "design["))]
        step_program = make_program(self.graph, "step", outputs, parameters=parameters, quick=True)
        first, second = step_program.split()
        shares = np.array([x * (1.0 / home) for x, home in self.divisors], dtype=object)
        closing = make_program(self.graph, "closing", {"share": shares}, quick=True) if len(shares) else None
        sizes = len(b), len(self.system.pivots), len(twist), condensed
        return ModePrograms(first, depth_first(second), *sizes, closing)

    def _twist(self, hub: int, w: Row) -> list[Any]:
        """Velocity and angular velocity of the end effector in world axes, from the frame of its link."""
        local_twist = np.zeros((6, 1), dtype=object)
        for k, variable in zip(self.builder.used, self.frames.frames[hub], strict=True):
            local_twist[k, 0] = self._value(w, variable)
        p = self.tree.places[self.tree.end_effector].position
        X = shift(np.eye(3), p)
        world_twist = rotated_twists(
            self.at.rotation[hub], product(X, rotated_twists(self.builder.axes(hub), local_twist))
        )
        return list(world_twist[:, 0])

    def _value(self, w: Row, k: int) -> Any:
        form = resolved(self.known, {k: 1.0})
        total: Any = 0.0
        for j, x in form.items():
            total = total + x * w.get(j, 0.0)
        return total

    # -- matrices of bodies ------------------------------------------------------------------------------

    def _assemble(self) -> None:
        beams = {beam.link: beam for beam in self.cut.beams}
        self.held: list[int] = []
        for j in range(len(self.tree.links)):
            frame = self.frames.frames[j]
            if j in beams:
                held = self.frames.new(beams[j].body.held)
                self.held += held
                K, M = self.bodies.beam(j, beams[j].tip)
                variables = [*frame, *self.frames.frames[beams[j].tip], *held]
                self.elements[j] = self._add(variables, K, M)
            elif j in self.builder.modal:
                free = list(next(m.free for m in self.cut.modal if m.link == j))
                K, M = self.bodies.body(j, free)
                self._add([*frame, *self.builder.modal[j]], K, M)
            else:
                K, M = self.bodies.body(j, [])
                self._add(frame, K, M)
        for j, form in self.frames.rates.items():
            terms = self.tree.links[j].terms
            form = resolved(self.known, form)
            self._add_form(form, terms.stiffness, terms.motor_inertia)
        for spring in self.tree.springs:
            stretch: Row = {}
            for number, c in zip(spring.numbers, spring.coefficients, strict=True):
                for k, x in self.frames.rates.get(number, {}).items():
                    stretch[k] = stretch[k] + c * x if k in stretch else c * x
            self._add_form(resolved(self.known, stretch), spring.stiffness, 0.0)

    def _add_form(self, form: Row, stiffness: Any, inertia: Any) -> None:
        names = list(form)
        for a, i in enumerate(names):
            for j in names[a:]:
                x = form[i] * form[j]
                if not is_zero(inertia):
                    self.system.N.add(i, j, x * inertia)
                    if not self.early:
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
                D = K[a, c] - self.s * M[a, c] if not (is_zero(M[a, c]) or self.early) else K[a, c]
                for i, x in form.items():
                    for j, y in forms[c].items():
                        double = 2.0 if i == j and a != c else 1.0
                        self.system.D.add(i, j, D * (x * y * double))
                        self.system.N.add(i, j, M[a, c] * (x * y * double))
                        used |= {i, j}
        return used

    def _substitute_early(self) -> None:
        """What follows from other unknowns, in K and M; only then D(s) is made."""
        waiting, system = self._open_rows(), self.system
        while waiting:
            behind = {k for form in waiting.values() for k in form}
            ready = [k for k in waiting if k not in behind]
            if not ready:
                raise NotCoveredError("an order of elimination was not found")
            for k in ready:
                form = waiting.pop(k)
                system.N.substitute(k, form)
                system.substitute(k, form)
        for i, row in system.N.rows.items():
            for j, x in row.items():
                if i <= j:
                    system.D.add(i, j, -(x * self.s))

    # -- elimination -------------------------------------------------------------------------------------

    def _condense(self) -> None:
        """Inner unknowns of beams, then nodes inside chains: every second one first, so that equal halves are one."""
        for k in self.held:
            self.system.condense(k)
        hub = self.locked.tree.places[self.locked.tree.end_effector].link
        retained = {k for form in self._open_rows().values() for k in form} | set(self._open_rows())
        if hub != GROUND:
            retained |= {k for v in self.frames.frames[hub] for k in resolved(self.known, {v: 1.0})}
        owners: dict[int, list[int]] = {}
        for j, used in self.elements.items():
            for k in used:
                owners.setdefault(k, []).append(j)
        inner: dict[tuple[int, ...], list[int]] = {}
        for piece in self.cut.pieces:
            if piece.reference == GROUND:
                continue
            unknowns = self.frames.frames[piece.reference]
            if retained & set(unknowns) or any(k in self.known for k in unknowns):
                continue
            beams = {j for k in unknowns for j in owners.get(k, [])}
            if len(beams) == 2:
                inner.setdefault(tuple(sorted(beams)), []).extend(unknowns)
        for chain in chains_of(inner):
            while chain:
                for component in zip(*chain[::2], strict=True):  # what both neighbours of a node add cancels at once
                    for k in component:
                        self.system.condense(k)
                chain = chain[1::2]

    def _open_rows(self) -> dict[int, Row]:
        """Components that follow by more than a sign."""
        return {
            k: resolved(self.known, row)
            for hop in self.frames.hops
            for k, row in hop.rows.items()
            if k not in self.known
        }

    def _eliminate(self) -> None:
        """Everything else: what costs least comes next, and a frame hops when its free components are gone."""
        system, waiting = self.system, {} if self.early else self._open_rows()
        hops = [[k for k in hop.rows if k in waiting] for hop in self.frames.hops]
        frames = [set(hop.frame) for hop in self.frames.hops]
        hops_left = {n: rows for n, rows in enumerate(hops) if rows}
        while True:
            blocked = {k for form in waiting.values() for k in form} | set(waiting)
            ready = [(elimination_cost(system.D.rows[k]), 0, k) for k in system.D.rows if k not in blocked]
            for n, rows in hops_left.items():
                free = [k for k in frames[n] if k not in waiting and k not in self.known and k in system.D.rows]
                behind = {k for form in waiting.values() for k in form}
                if free and not all(k in blocked for k in free):
                    continue
                if any(k in behind for k in rows):
                    continue
                ready.append((substitution_cost(system.D.rows, rows, waiting), 1, n))
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


def refuse_elements(tree: Tree) -> None:
    """Refuse what has no one stiffness at undeformed poses: elements with forces, elastic cables of drums.

    Couplings with play have that of their loaded flank, as at single poses.
    """
    if any(item.acts and (item.stiffness or item.curve is not None) for item in tree.elements):
        raise NotCoveredError("an element with a spring between two points")
    if any(item.pulls_only for item in tree.springs):
        raise NotCoveredError("an elastic cable on a drum")


class SparseSymmetric:
    """Entries by rows; both halves are kept."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}

    def add(self, i: int, j: int, x: Any) -> None:
        """Add to an entry and its mirror image."""
        if is_zero(x):
            return
        row, mirrored = self.rows.setdefault(i, {}), self.rows.setdefault(j, {})
        total = row[j] + x if j in row else x
        if is_zero(total):  # it cancelled
            del row[j]
            mirrored.pop(i, None)
        else:
            row[j] = mirrored[i] = total

    def entry(self, i: int, j: int) -> Any:
        """An entry, zero if there is none."""
        return self.rows.get(i, {}).get(j, 0.0)

    def taken(self, k: int) -> tuple[Any, Row]:
        """Diagonal and rest of a row, which is taken out."""
        row = self.rows.pop(k, {})
        diagonal = row.pop(k, 0.0)
        for j in row:
            del self.rows[j][k]
        return diagonal, row

    def substitute(self, i: int, form: Row) -> None:
        """Replace the unknown i by a combination of others."""
        diagonal, row = self.taken(i)
        half = diagonal * 0.5
        with_own = dict(row)
        for k, x in form.items():
            if not is_zero(half):
                with_own[k] = with_own[k] + half * x if k in with_own else half * x
        names = list(form)
        for a, j in enumerate(names):
            for k, t in with_own.items():
                if k in form:
                    continue
                self.add(j, k, form[j] * t)
            for k in names[a:]:
                x = form[j] * with_own[k] if k in with_own else 0.0
                y = form[k] * with_own[j] if j in with_own else 0.0
                self.add(j, k, x + y)


def _crossed(row: Row, x: Row, i: int, j: int) -> Any:
    """row_i row_j / pivot, written in the same way whichever of the two comes first: mirrored halves are one."""
    a, b = row[i], row[j]
    if isinstance(a, Expression) and isinstance(b, Expression) and a.edge >> 1 > b.edge >> 1:
        return row[j] * x[i]
    return row[i] * x[j]


class StepSystem:
    """D and N with what was done to them, so that right sides can follow."""

    def __init__(self) -> None:
        self.D, self.N = SparseSymmetric(), SparseSymmetric()
        self.pivots: list[Any] = []
        self.done: list[tuple[str, int, Any, Row]] = []

    def condense(self, k: int) -> None:
        """Eliminate an unknown that nothing acts on, in D and N."""
        _, x = self._reduced(k)
        n, mass = self.N.taken(k)
        # N: x_i (n x_j / 2 - N_kj) + the same mirrored
        half = {j: (n * 0.5) * x[j] - mass.get(j, 0.0) if j in x else -mass[j] for j in {*x, *mass}}
        every = sorted({*x, *mass})
        for a, i in enumerate(every):
            for j in every[a:]:
                first = x[i] * half[j] if i in x else 0.0
                second = x[j] * half[i] if j in x else 0.0
                self.N.add(i, j, first + second)

    def eliminate(self, k: int) -> None:
        """Eliminate an unknown in D; a right side can follow."""
        inverse, x = self._reduced(k)
        self.done.append(("eliminate", k, inverse, x))

    def _reduced(self, k: int) -> tuple[Any, Row]:
        """Take an unknown out of D; gives 1 / pivot and its row over the pivot."""
        d, row = self.D.taken(k)
        if is_zero(d):
            raise np.linalg.LinAlgError(f"the unknown with number {k} has neither mass nor stiffness")
        self.pivots.append(d)
        inverse = 1.0 / d
        names = sorted(row)
        x = {j: row[j] * inverse for j in names}
        for a, i in enumerate(names):
            for j in names[a:]:
                self.D.add(i, j, -_crossed(row, x, i, j))
        return inverse, x

    def substitute(self, i: int, form: Row) -> None:
        """Replace an unknown in D; N stays as it is, unless whoever calls replaces it there too."""
        self.D.substitute(i, form)
        self.done.append(("substitute", i, None, form))

    def pulled(self, b: Row) -> Row:
        """A right side without parts on unknowns that were replaced: what acts on them acts on what they follow."""
        b = dict(b)
        for kind, k, _, form in self.done:
            load = b.pop(k, 0.0) if kind == "substitute" else 0.0
            if is_zero(load):
                continue
            for j, x in form.items():
                part = x * load
                b[j] = b[j] + part if j in b else part
        return b

    def solved(self, b: Row) -> Row:
        """The unknowns w with D w = b."""
        b = dict(b)

        def push(j: int, x: Any) -> None:
            if not is_zero(x):
                b[j] = b[j] + x if j in b else x

        for kind, k, _, row in self.done:
            value = b.get(k, 0.0)
            for j, x in row.items():
                push(j, x * value if kind == "substitute" else -(x * value))
        w: Row = {}
        for kind, k, inverse, row in reversed(self.done):
            total: Any = 0.0 if kind == "substitute" else b.get(k, 0.0) * inverse
            for j, x in row.items():
                if j in w and not is_zero(w[j]):
                    total = total + x * w[j] if kind == "substitute" else total - x * w[j]
            w[k] = total
        return w


def substitution_cost(rows: dict[int, Row], hopping: list[int], forms: dict[int, Row]) -> float:
    """Products that hopping takes, about."""
    others = {j for k in hopping for j in rows.get(k, {})} - set(hopping)
    width = sum(len(forms[k]) for k in hopping)
    return width * (len(others) + len(hopping))


def elimination_cost(row: Row) -> float:
    """Products that eliminating an unknown takes."""
    return (len(row) - 1) * len(row)


def chains_of(inner: dict[tuple[int, ...], list[int]]) -> list[list[list[int]]]:
    """Nodes between two beams each, in the order along their chains."""
    by_beam: dict[int, list[tuple[int, ...]]] = {}
    for pair in inner:
        for j in pair:
            by_beam.setdefault(j, []).append(pair)
    chains, visited = [], set()
    for pair in inner:
        ends = [j for j in pair if len(by_beam[j]) == 1]
        if pair in visited or not ends:
            continue
        chain, current, came = [], pair, ends[0]
        while True:
            visited.add(current)
            chain.append(inner[current])
            onward = next(j for j in current if j != came)
            following = [other for other in by_beam[onward] if other not in visited]
            if not following:
                break
            came, current = onward, following[0]
        chains.append(chain)
    return chains


def resolved(known: dict[int, Row], form: Row) -> Row:
    """A form with components that follow by a sign replaced."""
    result: Row = {}
    for k, x in form.items():
        for j, y in (resolved(known, known[k]) if k in known else {k: 1.0}).items():
            value = x * y
            result[j] = result[j] + value if j in result else value
    return {j: x for j, x in result.items() if not is_zero(x)}


def trivial_rows(frames: FrameTree) -> dict[int, Row]:
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


def distance_to_platform(robot: Robot) -> list[int]:
    """Links by their distance to the end effector: pieces are counted from what is nearest to it."""
    tree = robot.tree
    near: dict[int, set[int]] = {j: set() for j in (GROUND, *range(len(tree.links)))}
    edges = [(j, link.parent) for j, link in enumerate(tree.links) if not link.joint.moves_freely]
    edges += [(loop.first.link, loop.second.link) for loop in robot.closures.loops]
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


def step_kernels(locked: Robot, designs: DesignNumbers | None = None) -> tuple[ModePrograms, Kernel, Kernel]:
    """The programs of a robot with its locked joints, and the machine code of pose and step."""
    key = cache.key_of(locked, "step", None if designs is None else designs.name or repr(designs.places))

    def build() -> tuple[ModePrograms, Kernel, Kernel]:
        programs = cache.stored(key, lambda: StepTrace(locked, designs).programs())
        return programs, Kernel(programs.pose), Kernel(programs.step)

    return cached("mode search", key, build)


def pose_program_of_keys(pose: Kernel, numbers: Kernel) -> Kernel:
    """The program of a pose from keys of its design, in the place of the numbers that another program makes of these.

    One program for both stores no numbers, of which there may be hundreds, and works out no others.
    """
    owners = pose, numbers
    return cached("poses by keys", "kernel", lambda: Kernel(_composed(pose.program, numbers.program)), owners)


def _composed(pose: Program, numbers: Program) -> Program:
    """The program of a pose behind that of its numbers."""
    placed = [name for name in pose.inputs if not name.startswith(DESIGN)]
    names = (*placed, *numbers.inputs)
    emission = Emission(names, deep=False)
    place = {name: k for k, name in enumerate(names)}

    def emitted(program: Program, values: list[int]) -> list[int]:
        for word, *arguments in program.instructions:
            values.append(emission.emit(word, *(arguments if word == "const" else [values[k] for k in arguments])))
        return [values[k] for _, k in program.outputs]

    number_values = emitted(numbers, [place[name] for name in numbers.inputs])
    pose_inputs = [place[name] if name in place else number_values[int(name[len(DESIGN) : -1])] for name in pose.inputs]
    pose_values = emitted(pose, pose_inputs)
    outputs = tuple((name, value) for (name, _), value in zip(pose.outputs, pose_values, strict=True))
    return depth_first(Program(pose.name, names, (), tuple(emission.instructions), 0, outputs))
