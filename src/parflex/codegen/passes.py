"""Passes that save operators.

Each pass changes a program of sums and products in place and is independent of the others.

`flatten`          merges a sum in a sum, or a product in a product, that is used once
`cancel`           expands a shared sum in a sum where enough of its terms cancel
`cancel_products`  does the same for products, where factors meet their reciprocals
`factor`           a b + a c = a (b + c), the factor that saves most first
`share`            computes the most frequent pair of terms (or factors) once
`collect`          expands a shared sum or multiple where its terms meet terms of the same kind
`parallel_axes`    cos x cos y - sin x sin y = cos(x + y), where one rotation follows another

In `collect`, c1 x + c2 (c3 x + c4) is (c1 + c2 c3) x + c2 c4: one product instead of two, frequent in beams.
`parallel_axes` tries a pair of angles on the whole program, repeats the other passes, and keeps the result only if it
has fewer operators. Pairs of identical legs are tried together.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import combinations

from parflex.codegen.nary import RECIPROCAL, Nary, Signed
from parflex.symbolic.expression import COS, SIN

FACTOR_ROUNDS = 12  # one factor makes room for the next along a chain; later rounds save next to nothing
ONE = -1  # what a plain number is a multiple of
Terms = dict[int, float]  # node without a number in front -> coefficient
SMALL = 1e-12  # of the largest of the numbers that were added: what is smaller is their rounding
Trig = dict[int, tuple[int, int]]  # node -> (COS or SIN, edge of the angle)
Pair = tuple[int, int]
Match = tuple[int, int, Counter, str]  # both terms, factors beside the angles, and which function of which angle
MAX_NODES = 4_000  # copies of longer programs take too long


def flatten(program: Nary) -> None:
    """Inline sums and products that are used once into their own kind."""
    order = program.order()
    uses = program.uses()
    change: dict[int, Signed] = {}
    content: dict[int, object] = {}
    kinds = program.kind
    for node in order:
        kind = kinds[node]
        if kind == "sum":
            if not any(kinds[child] == "sum" and uses[child] == 1 for child in program.content[node]):
                continue
            terms: dict[int, int] = {}
            for child, count in program.content[node].items():
                if kinds[child] == "sum" and uses[child] == 1 and abs(count) == 1:
                    for inner, inner_count in content.get(child, program.content[child]).items():  # type: ignore[attr-defined]
                        terms[inner] = terms.get(inner, 0) + count * inner_count
                else:
                    terms[child] = terms.get(child, 0) + count
            content[node] = terms
        elif kind == "product":
            if not any(kinds[child] == "product" and uses[child] == 1 for child in program.content[node]):
                continue
            factors: list[int] = []
            for child in program.content[node]:
                if kinds[child] == "product" and uses[child] == 1:
                    factors += content.get(child, program.content[child])  # type: ignore[arg-type]
                else:
                    factors.append(child)
            content[node] = tuple(factors)
    for node, new in content.items():
        if new != program.content[node]:
            replacement = program.sum(new) if program.kind[node] == "sum" else (program.product(new), 1)  # type: ignore[arg-type]
            if replacement[0] != node:
                change[node] = replacement
    if change:
        program.rebuild(change)


def cancel(program: Nary) -> None:
    """Write out shared sums where the sum that uses them gets no longer by it."""
    order = program.order()
    change: dict[int, Signed] = {}
    for node in order:
        if program.kind[node] != "sum" or not any(program.kind[child] == "sum" for child in program.content[node]):
            continue
        terms = dict(program.content[node])
        again = True
        while again:
            again = False
            for child, count in list(terms.items()):
                if program.kind[child] != "sum":
                    continue
                merged = dict(terms)
                del merged[child]
                for inner, inner_count in program.content[child].items():
                    merged[inner] = merged.get(inner, 0) + count * inner_count
                merged = {key: value for key, value in merged.items() if value}
                if len(merged) <= len(terms) and all(abs(value) == 1 for value in merged.values()):
                    terms, again = merged, True
                    break
        if terms != program.content[node]:
            change[node] = program.sum(terms)
    if change:
        program.rebuild(change)


def cancel_products(program: Nary) -> None:
    """Write out shared products in a product that gets no longer by it, because factors meet their reciprocals."""
    change: dict[int, Signed] = {}
    for node in program.order():
        if program.kind[node] != "product":
            continue
        factors = program.content[node]
        for child in factors:
            if program.kind[child] == "product":
                remaining = list(factors)
                remaining.remove(child)
                shorter = program.product([*remaining, *program.content[child]])
                left = program.content[shorter] if program.kind[shorter] == "product" else (shorter,)
                # a reciprocal that both keep is no longer a division in one of them
                shared_reciprocals = [f for f in left if f in program.content[child] and program.is_reciprocal(f)]
                if len(left) + len(shared_reciprocals) <= len(factors):
                    change[node] = (shorter, 1)
                    break
    if change:
        program.rebuild(change)


def factor(program: Nary) -> None:
    """Take common factors out of sums until none saves a product, or for a number of rounds."""
    for _ in range(FACTOR_ROUNDS):
        order = program.order()
        uses = program.uses()
        change: dict[int, Signed] = {}
        for node in order:
            if program.kind[node] == "sum":
                replacement = _factored_out(program, node, uses)
                if replacement[0] != node:
                    change[node] = replacement
        if not change:
            return
        program.rebuild(change)
        flatten(program)


def _factored_out(program: Nary, node: int, uses: Counter) -> Signed:
    """The sum with one common factor after the other taken out; sums that this makes inside wait for the next round."""
    sign = 1
    while program.kind[node] == "sum":
        replacement = _factored(program, node, uses)
        if replacement is None:
            break
        node, sign = replacement[0], sign * replacement[1]
    return node, sign


def _factored(program: Nary, node: int, uses: Counter) -> Signed | None:
    """The sum with its best common factor taken out, or None."""
    terms = program.content[node]
    groups: dict[int, list[int]] = defaultdict(list)
    for child, count in terms.items():
        if program.kind[child] == "product" and uses[child] <= 1 and abs(count) == 1:  # 0: made just now
            for item in set(program.content[child]):
                groups[item].append(child)
    # products that are saved, constants taken out last
    common = ((item, members) for item, members in groups.items() if len(members) > 1)
    gains = ((len(members) - 1 - _divisions(program, members, uses), item) for item, members in common)
    best = max(((gain, program.value(item) is None, item) for gain, item in gains if gain > 0), default=None)
    if best is None:
        return None
    item = best[2]
    members = groups[item]
    inner: dict[int, int] = {}
    for child in members:
        remaining = list(program.content[child])
        remaining.remove(item)
        new = program.product(remaining)
        inner[new] = inner.get(new, 0) + terms[child]
    inner_node, sign = program.sum(inner)
    outer = {child: count for child, count in terms.items() if child not in set(members)}
    term = program.product([item, inner_node])
    outer[term] = outer.get(term, 0) + sign
    return program.sum(outer)


def _divisions(program: Nary, members: list[int], uses: Counter) -> int:
    """Members that are one factor over something: with the factor taken out, the division has nothing to divide."""
    pairs = (program.content[child] for child in members if len(program.content[child]) == 2)
    return sum(any(uses[f] == 1 and program.is_reciprocal(f) for f in pair) for pair in pairs)


def share(program: Nary) -> None:
    """Compute the most frequent pair of terms once, then the next, until every pair is alone."""
    for kind in ("product", "sum"):
        _share_pairs(program, kind)


def _share_pairs(program: Nary, kind: str) -> None:
    order = program.order()
    counted: Callable[..., dict[int, int]] = dict if kind == "sum" else _counts
    members: dict[int, dict[int, int]] = {
        node: counted(program.content[node]) for node in order if program.kind[node] == kind
    }
    places: dict[tuple, set[int]] = defaultdict(set)
    altered: set[int] = set()

    def pairs(content: dict[int, int], terms: Iterable[int]) -> set[tuple]:
        """Pairs of terms in which one of `terms` is."""
        result = set()
        for x in terms:
            cx = content.get(x, 0)
            if kind == "product" and cx:
                result |= {(x, y, 1) if x < y else (y, x, 1) for y in content if y != x or cx >= 2}
            elif kind == "sum" and abs(cx) == 1:
                others = ((y, cx * cy) for y, cy in content.items() if y != x and abs(cy) == 1)
                result |= {(x, y, relative) if x < y else (y, x, relative) for y, relative in others}
        return result

    for node, content in members.items():
        for x, y in combinations(sorted(content), 2):
            if kind == "product":
                places[x, y, 1].add(node)
            elif abs(content[x]) == 1 and abs(content[y]) == 1:
                places[x, y, content[x] * content[y]].add(node)
        if kind == "product":
            for x in (x for x, count in content.items() if count > 1):
                places[x, x, 1].add(node)
    heap = [(-len(where), pair) for pair, where in places.items() if len(where) > 1]
    heapq.heapify(heap)
    while heap:
        count, pair = heapq.heappop(heap)
        where = places[pair]
        if len(where) != -count:
            if len(where) > 1:
                heapq.heappush(heap, (-len(where), pair))
            continue
        x, y, relative = pair
        new, sign = (program.product([x, y]), 1) if kind == "product" else program.sum({x: 1, y: relative})
        touched: set[tuple] = set()
        for node in sorted(where):
            if node == new:
                continue
            altered.add(node)
            before = pairs(members[node], (x, y, new))
            _replace_pair(members[node], x, y, new, sign, kind)
            after = pairs(members[node], (x, y, new))
            for old in before - after:
                places[old].discard(node)
            for fresh in after - before:
                places[fresh].add(node)
                touched.add(fresh)
        if new not in members:
            members[new] = {x: 1, y: relative} if kind == "sum" else _counts((x, y))
            where.add(new)
        for fresh in touched:
            if len(places[fresh]) > 1:
                heapq.heappush(heap, (-len(places[fresh]), fresh))
        where &= {new}
    change: dict[int, Signed] = {}
    for node in (node for node in members if node in altered):
        content = members[node]
        if kind == "sum" and content != program.content[node]:
            change[node] = program.sum(dict(content))
        elif kind == "product" and _counts(program.content[node]) != content:
            change[node] = program.product([item for item, count in content.items() for _ in range(count)]), 1
    change = {node: new for node, new in change.items() if new[0] != node}
    if change:
        program.rebuild(change)


def _counts(factors: Iterable[int]) -> dict[int, int]:
    """How often each is there: a few of them, for which a `Counter` takes ten times as long."""
    counts: dict[int, int] = {}
    for item in factors:
        counts[item] = counts.get(item, 0) + 1
    return counts


def _replace_pair(content: dict[int, int], x: int, y: int, new: int, sign: int, kind: str) -> None:
    if kind == "product":
        for item in (x, y):
            content[item] -= 1
            if not content[item]:
                del content[item]
        content[new] = content.get(new, 0) + 1
        return
    direction = content.pop(x) * sign
    content.pop(y)
    content[new] = content.get(new, 0) + direction


def collect(program: Nary) -> None:
    """Write sums with the fewest products of numbers and additions, one step deep at a time."""
    order = program.order()
    uses = program.uses()
    change: dict[int, Signed] = {}
    known_sums: dict[tuple, tuple[int, float]] = {}
    for node in order:
        if program.kind[node] == "sum":
            terms = _terms(program, node)
            best = _shortest(program, terms, uses)
            twin, ratio = _earlier_multiple(known_sums, node, best)
            if twin is not None and change.get(twin, (twin, 1))[0] == node:
                continue  # the twin becomes this very sum: one of the two stays
            if twin is not None:
                change[node] = (program.product([program.constant(abs(ratio)), twin]), 1 if ratio > 0 else -1)
            elif best is not terms or len(terms) < len(program.content[node]):
                change[node] = _built(program, best)
    if change:
        program.rebuild(change)


def _earlier_multiple(known_sums: dict[tuple, tuple[int, float]], node: int, terms: Terms) -> tuple[int | None, float]:
    """An earlier sum of which these terms are a multiple, and the ratio."""
    if len(terms) < 2:
        return None, 1.0
    size = terms[min(terms)]
    key = tuple((base, float(f"{factor / size:.12e}")) for base, factor in sorted(terms.items()))
    numbers = sum(abs(factor) != 1.0 for base, factor in terms.items() if base != ONE)
    if key in known_sums and numbers > 0:
        twin, twin_size = known_sums[key]
        return twin, size / twin_size
    known_sums.setdefault(key, (node, size))
    return None, 1.0


def _terms(program: Nary, node: int) -> Terms:
    terms: Terms = {}
    for child, count in program.content[node].items():
        base, factor = _split(program, child)
        _put(terms, base, count * factor)
    return {base: factor for base, factor in terms.items() if factor}


def _put(terms: Terms, base: int, added: float) -> None:
    total = terms.get(base, 0.0) + added
    terms[base] = 0.0 if abs(total) < SMALL * abs(added) else total


def _split(program: Nary, node: int) -> tuple[int, float]:
    """A node as a number times the rest."""
    number = program.value(node)
    if number is not None:
        return ONE, number
    factor = 1.0
    while program.kind[node] == "product":
        numbers = [number for number in map(program.value, program.content[node]) if number is not None]
        if not numbers:
            break
        for number in numbers:
            factor *= number
        node = program.product([child for child in program.content[node] if program.value(child) is None])
    return node, factor


def _shortest(program: Nary, terms: Terms, uses: Counter) -> Terms:
    """The terms with sums among them written out as long as that makes them fewer."""
    while True:
        cost = _cost(program, terms, uses)
        for base, factor in terms.items():
            if base == ONE or program.kind[base] != "sum":
                continue
            merged = _merged(terms, base, factor, _terms(program, base))
            if _cost(program, merged, uses) < cost:
                terms = merged
                break
        else:
            return terms


def _merged(terms: Terms, base: int, factor: float, inner: Terms) -> Terms:
    merged = {key: value for key, value in terms.items() if key != base}
    for key, value in inner.items():
        _put(merged, key, factor * value)
    return {key: value for key, value in merged.items() if value}


def _cost(program: Nary, terms: Terms, uses: Counter) -> int:
    """Additions, and products of numbers that no other node needs anyway."""
    total = len(terms) - 1
    for base, factor in terms.items():
        if base != ONE and abs(factor) != 1.0:
            node = program.product([program.constant(abs(factor)), base])
            total += uses[node] <= 1
    return total


def _built(program: Nary, terms: Terms) -> Signed:
    content: dict[int, int] = {}
    for base, factor in terms.items():
        sign = 1 if factor > 0 else -1
        number = program.constant(abs(factor))
        node = number if base == ONE else program.product([number, base])
        content[node] = content.get(node, 0) + sign
    return program.sum(content)


def parallel_axes(program: Nary, tidy: Callable[[Nary], None]) -> Nary:
    """The program with sums of angles where they save operators; `tidy` runs the other passes."""
    if len(program.order()) > MAX_NODES:
        return program
    tried: set[Pair] = set()
    node_cache = _Known()
    while True:
        candidates = {pair: places for pair, places in _pairs(program, node_cache).items() if pair not in tried}
        if not candidates:
            return program
        chosen = _one_pair_per_leg(candidates)
        tried.update(chosen)
        trial, new = program.copy(), node_cache.copy()
        _apply_angle_sums(trial, set(chosen), new)
        tidy(trial)
        if trial.cost() < program.cost():
            program, node_cache = trial, new


def _one_pair_per_leg(candidates: dict[Pair, int]) -> list[Pair]:
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
        factors = self._factors.get(node)
        if factors is None:
            factors = self._factors[node] = Counter()
            if program.kind[node] != "product":
                factors[node] = 1
            else:
                for child in program.content[node]:
                    for factor, times in self.factors(program, child).items():
                        factors[factor] = factors.get(factor, 0) + times
        return factors

    def turning(self, program: Nary, node: int) -> list[int]:
        """Sines and cosines among the factors of a term."""
        trig_nodes = self._turning.get(node)
        if trig_nodes is None:
            if program.kind[node] == "product":
                child_nodes = (f for child in program.content[node] for f in self.turning(program, child))
                trig_nodes = list(dict.fromkeys(child_nodes))
            else:
                trig_nodes = [node] if self._turns(program, node) else []
            self._turning[node] = trig_nodes
        return trig_nodes

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
        matches = self._matches.get(node)
        if matches is None:
            matches = self._matches[node] = self._matched(program, node)
        return matches

    def _matched(self, program: Nary, node: int) -> list[tuple[Pair, Match]]:
        signs = ((child, count) for child, count in program.content[node].items() if abs(count) == 1)
        terms = [(child, count) for child, count in signs if len(self.turning(program, child)) > 1]
        matches = []
        for i, (first, sign_1) in enumerate(terms):
            nodes_1, factors_1 = self.turning(program, first), self.factors(program, first)
            for second, sign_2 in terms[i + 1 :]:
                nodes_2, factors_2 = self.turning(program, second), self.factors(program, second)
                match = _match(nodes_1, nodes_2, factors_1, factors_2, self.trig, sign_1 * sign_2)
                if match is not None:
                    angles, common, kind = match
                    matches.append((angles, (first, second, common, kind)))
        return matches


def _match(
    nodes_1: list[int], nodes_2: list[int], factors_1: Counter, factors_2: Counter, trig: Trig, relative: int
) -> tuple[Pair, Counter, str] | None:
    for a in nodes_1:
        for b in nodes_1:
            x, y = trig[a][1], trig[b][1]
            if a == b or x == y or (x, a) > (y, b):
                continue
            swapped = [
                [f for f in nodes_2 if trig[f] == (SIN if trig[k][0] == COS else COS, trig[k][1])] for k in (a, b)
            ]
            if not all(swapped):
                continue
            common = factors_1 - Counter([a, b])
            if common == factors_2 - Counter([swapped[0][0], swapped[1][0]]):
                return (x, y), common, _kind(trig[a][0], trig[b][0], relative)
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


def _pairs(program: Nary, node_cache: _Known) -> dict[Pair, int]:
    """Pairs of angles and the number of their places."""
    count: Counter = Counter()
    for node in program.order():
        if program.kind[node] == "sum":
            count.update(pair for pair, _ in node_cache.matches(program, node))
    return dict(count)


def _apply_angle_sums(program: Nary, pairs: set[Pair], node_cache: _Known) -> None:
    """Write every match of the pairs with the sum or difference of their angles."""
    while True:
        change: dict[int, Signed] = {}
        for node in program.order():
            if program.kind[node] != "sum":
                continue
            first_match = next((match for match in node_cache.matches(program, node) if match[0] in pairs), None)
            if first_match is not None:
                pair, (first, second, common, kind) = first_match
                terms = dict(program.content[node])
                sign = terms.pop(first)
                terms.pop(second)
                new, new_sign = _function(program, pair, kind)
                term = program.product([new, *common.elements()])
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
