"""Parallel axes: cos x cos y - sin x sin y is cos(x + y), which saves operators where one rotation follows another.

A pair of angles is tried on the whole program: every place that can use it does, the other passes run again, and the
result is kept only if it has fewer operators. Pairs of identical legs are tried together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from parflex.codegen.passes.nary import RECIPROCAL, Nary, Signed
from parflex.symbolic.expression import COS, SIN

Trig = dict[int, tuple[int, int]]  # node -> (COS or SIN, edge of the angle)
Pair = tuple[int, int]
Match = tuple[int, int, Counter, str]  # both terms, factors beside the angles, and which function of which angle
MAX_NODES = 4_000  # copies of longer programs take too long


def parallel_axes(program: Nary, tidy: Callable[[Nary], None]) -> Nary:
    """The program with sums of angles where they save operators; `tidy` runs the other passes."""
    if len(program.order()) > MAX_NODES:
        return program
    tried: set[Pair] = set()
    known = _Known()
    while True:
        candidates = {pair: places for pair, places in _pairs(program, known).items() if pair not in tried}
        if not candidates:
            return program
        chosen = _one_for_each_leg(candidates)
        tried.update(chosen)
        trial, new = program.copy(), known.copy()
        _use(trial, set(chosen), new)
        tidy(trial)
        if trial.cost() < program.cost():
            program, known = trial, new


def _one_for_each_leg(candidates: dict[Pair, int]) -> list[Pair]:
    """Of all pairs whose angles hang together, which are those of one leg, the one with most places."""
    leg: dict[int, int] = {}  # angle -> one that stands for all angles it is paired with
    for x, y in candidates:
        old, new = leg.setdefault(x, x), leg.setdefault(y, y)
        leg.update({angle: new for angle, name in leg.items() if name == old})
    chosen: dict[int, Pair] = {}
    for pair in sorted(candidates, key=lambda pair: -candidates[pair]):
        chosen.setdefault(leg[pair[0]], pair)
    return list(chosen.values())


class _Known:
    """What is found of nodes, each once: contents of a node do not change, so it holds as long as its program grows.

    Passes write few nodes anew, and most of a trial is what its program was.
    """

    def __init__(self) -> None:
        self.trig: Trig = {}
        self._factors: dict[int, Counter] = {}
        self._turning: dict[int, list[int]] = {}
        self._matches: dict[int, list[tuple[Pair, Match]]] = {}

    def copy(self) -> _Known:
        """The same for a copy of the program, whose next nodes are others."""
        other = _Known()
        for name, value in vars(self).items():
            setattr(other, name, value.copy())
        return other

    def factors(self, program: Nary, node: int) -> Counter:
        """All factors of a term, those of shared products too, and how often each is one."""
        found = self._factors.get(node)
        if found is None:
            found = self._factors[node] = Counter()
            if program.kind[node] != "product":
                found[node] = 1
            else:
                for child in program.content[node]:
                    for factor, times in self.factors(program, child).items():
                        found[factor] = found.get(factor, 0) + times
        return found

    def turning(self, program: Nary, node: int) -> list[int]:
        """Sines and cosines among the factors of a term."""
        found = self._turning.get(node)
        if found is None:
            if program.kind[node] == "product":
                own = (f for child in program.content[node] for f in self.turning(program, child))
                found = list(dict.fromkeys(own))
            else:
                found = [node] if self._turns(program, node) else []
            self._turning[node] = found
        return found

    def _turns(self, program: Nary, node: int) -> bool:
        """Whether a node is a sine or cosine, whose angle is then kept."""
        if program.kind[node] != "function" or program.content[node] == RECIPROCAL:
            return False
        op = program.source.op[program.content[node]]
        if op in (COS, SIN):
            self.trig[node] = (op, program.source.a[program.content[node]])
        return op in (COS, SIN)

    def matches(self, program: Nary, node: int) -> list[tuple[Pair, Match]]:
        """Pairs of terms of a sum that are one term with the sine or cosine of two angles added or subtracted."""
        found = self._matches.get(node)
        if found is None:
            found = self._matches[node] = self._matched(program, node)
        return found

    def _matched(self, program: Nary, node: int) -> list[tuple[Pair, Match]]:
        terms = [
            (child, count)
            for child, count in program.content[node].items()
            if abs(count) == 1 and len(self.turning(program, child)) > 1
        ]
        found = []
        for i, (first, sign_1) in enumerate(terms):
            own, factors_1 = self.turning(program, first), self.factors(program, first)
            for second, sign_2 in terms[i + 1 :]:
                others, factors_2 = self.turning(program, second), self.factors(program, second)
                match = _match(own, others, factors_1, factors_2, self.trig, sign_1 * sign_2)
                if match is not None:
                    angles, rest, kind = match
                    found.append((angles, (first, second, rest, kind)))
        return found


def _match(
    own: list[int], others: list[int], factors_1: Counter, factors_2: Counter, trig: Trig, relative: int
) -> tuple[Pair, Counter, str] | None:
    for a in own:
        for b in own:
            x, y = trig[a][1], trig[b][1]
            if a == b or x == y or (x, a) > (y, b):
                continue
            swapped = [
                [f for f in others if trig[f] == (SIN if trig[k][0] == COS else COS, trig[k][1])] for k in (a, b)
            ]
            if not all(swapped):
                continue
            rest = factors_1 - Counter([a, b])
            if rest == factors_2 - Counter([swapped[0][0], swapped[1][0]]):
                return (x, y), rest, _kind(trig[a][0], trig[b][0], relative)
    return None


def _kind(op_x: int, op_y: int, relative: int) -> str:
    """Which function of which angle the two terms are; the first term has positive sign."""
    if op_x == op_y == COS:  # cos x cos y -+ sin x sin y
        return "cos+" if relative < 0 else "cos-"
    if op_x == op_y:  # sin x sin y -+ cos x cos y
        return "-cos+" if relative < 0 else "cos-"
    if op_x == SIN:  # sin x cos y +- cos x sin y
        return "sin+" if relative > 0 else "sin-"
    return "sin+" if relative > 0 else "-sin-"  # cos x sin y +- sin x cos y


def _pairs(program: Nary, known: _Known) -> dict[Pair, int]:
    """Pairs of angles and the number of their places."""
    count: Counter = Counter()
    for node in program.order():
        if program.kind[node] == "sum":
            count.update(pair for pair, _ in known.matches(program, node))
    return dict(count)


def _use(program: Nary, pairs: set[Pair], known: _Known) -> None:
    """Write every match of the pairs with the sum or difference of their angles."""
    while True:
        change: dict[int, Signed] = {}
        for node in program.order():
            if program.kind[node] != "sum":
                continue
            found = next(((pair, match) for pair, match in known.matches(program, node) if pair in pairs), None)
            if found is not None:
                pair, (first, second, rest, kind) = found
                terms = dict(program.content[node])
                sign = terms.pop(first)
                terms.pop(second)
                new, new_sign = _function(program, pair, kind)
                term = program.product([new, *rest.elements()])
                terms[term] = terms.get(term, 0) + sign * new_sign
                change[node] = program.sum(terms)
        if not change:
            return
        program.rebuild(change)


def _function(program: Nary, pair: Pair, kind: str) -> Signed:
    graph = program.source
    x, y = (graph.wrap(edge) for edge in pair)
    angle = x + y if kind.endswith("+") else x - y
    value = angle.cos() if "cos" in kind else angle.sin()
    node, sign = program.imported(value.edge)
    return node, -sign if kind.startswith("-") else sign
