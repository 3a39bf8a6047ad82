"""Passes that save operators. Each takes a program of sums and products and changes it in place; each stands alone.

`flatten`          a sum in a sum, or a product in a product, that is used once becomes part of it
`cancel`           a shared sum is written out in a sum where enough of its terms cancel
`cancel_products`  the same for products, where factors meet their reciprocals
`factor`           a b + a c = a (b + c), the factor that saves most first
`share`            the pair of terms (or factors) that stands in most places is computed once
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import combinations

from parflex.codegen.passes.nary import Nary, Signed

FACTOR_ROUNDS = 12  # one factor makes room for the next along a chain; later rounds save next to nothing


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
                rest = list(factors)
                rest.remove(child)
                shorter = program.product([*rest, *program.content[child]])
                left = program.content[shorter] if program.kind[shorter] == "product" else (shorter,)
                # a reciprocal that both keep is no longer a division in one of them
                kept = [f for f in left if f in program.content[child] and program.is_reciprocal(f)]
                if len(left) + len(kept) <= len(factors):
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
    best = max(
        (
            (gain, -_spread(program, item), item)
            for item, members in groups.items()
            if len(members) > 1 and (gain := len(members) - 1 - _divisions(program, members, uses)) > 0
        ),
        default=None,
    )
    if best is None:
        return None
    item = best[2]
    members = groups[item]
    inner: dict[int, int] = {}
    for child in members:
        rest = list(program.content[child])
        rest.remove(item)
        new = program.product(rest)
        inner[new] = inner.get(new, 0) + terms[child]
    inner_node, sign = program.sum(inner)
    outer = {child: count for child, count in terms.items() if child not in set(members)}
    term = program.product([item, inner_node])
    outer[term] = outer.get(term, 0) + sign
    return program.sum(outer)


def _spread(program: Nary, item: int) -> int:
    """Constants are better taken out last."""
    return 1 if program.value(item) is not None else 0


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
    members = {
        node: dict(program.content[node]) if kind == "sum" else _counts(program.content[node])
        for node in order
        if program.kind[node] == kind
    }
    places: dict[tuple, set[int]] = defaultdict(set)
    altered: set[int] = set()

    def pairs(content: dict[int, int], own: Iterable[int]) -> set[tuple]:
        """Pairs of terms in which one of `own` is."""
        found = set()
        for x in own:
            cx = content.get(x, 0)
            if kind == "product" and cx:
                found |= {(x, y, 1) if x < y else (y, x, 1) for y in content if y != x or cx >= 2}
            elif kind == "sum" and abs(cx) == 1:
                found |= {
                    (x, y, cx * cy) if x < y else (y, x, cx * cy)
                    for y, cy in content.items()
                    if y != x and abs(cy) == 1
                }
        return found

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
    found: dict[int, int] = {}
    for item in factors:
        found[item] = found.get(item, 0) + 1
    return found


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


PASSES: dict[str, Callable[[Nary], None]] = {
    "flatten": flatten,
    "cancel": cancel,
    "cancel_products": cancel_products,
    "factor": factor,
    "share": share,
}
