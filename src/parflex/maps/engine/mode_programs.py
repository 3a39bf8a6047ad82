"""The program of one step of a robot: factor D(s), solve for w, and what the loop needs of it.

One trace holds everything: what depends on pose and design alone is split off and run once for each pose.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.closure.constraints import Closures
from parflex.codegen.lower import depth_first
from parflex.codegen.optimise import make_program
from parflex.codegen.program import Program
from parflex.maps.batches import rigid_tree
from parflex.maps.engine.body_matrices import BodyMatrices
from parflex.maps.engine.closing_forms import close_loops
from parflex.maps.engine.elimination_order import (
    chains_of,
    elimination_cost,
    hop_cost,
    resolved,
    towards_platform,
    trivial_rows,
)
from parflex.maps.engine.frames import FrameBuilder, FrameTree, Row
from parflex.maps.engine.small_matrices import product, shift, turned
from parflex.maps.engine.sparse_system import StepSystem
from parflex.maps.node_unknowns import NotCoveredError, refuse_elements
from parflex.parameters.design_numbers import DesignNumbers
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.robot.substructures import cut_at_beams
from parflex.spatial.linear import is_zero
from parflex.symbolic.expression import Expression, Graph
from parflex.tree.tree import GROUND, Tree

Array = np.ndarray


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
        self.cut = cut_at_beams(locked, towards_platform(locked))
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
        felt = {k: {j: x for j, x in row.items() if not is_zero(x)} for k, row in self.system.N.rows.items() if row}
        self._eliminate()
        reached = sorted(self.system.pulled(dict.fromkeys(felt, 1.0)))
        b = {k: self.graph.symbol(f"b[{n}]") for n, k in enumerate(reached)}
        w = self.system.solved(b)
        pulled: Row = {}
        for k, row in sorted(felt.items()):
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
        whole = make_program(self.graph, "step", outputs, parameters=parameters, quick=True)
        first, second = whole.split()
        shares = np.array([x * (1.0 / home) for x, home in self.divisors], dtype=object)
        closing = make_program(self.graph, "closing", {"share": shares}, quick=True) if len(shares) else None
        sizes = len(b), len(self.system.pivots), len(twist), condensed
        return ModePrograms(first, depth_first(second), *sizes, closing)

    def _twist(self, hub: int, w: Row) -> list[Any]:
        """Velocity and angular velocity of the end effector in world axes, from the frame of its link."""
        own = np.zeros((6, 1), dtype=object)
        for k, variable in zip(self.builder.used, self.frames.frames[hub], strict=True):
            own[k, 0] = self._value(w, variable)
        p = self.tree.places[self.tree.end_effector].position
        X = shift(np.eye(3), p)
        moved = turned(self.at.rotation[hub], product(X, turned(self.builder.axes(hub), own)))
        return list(moved[:, 0])

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
                ready.append((hop_cost(system.D.rows, rows, waiting), 1, n))
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
