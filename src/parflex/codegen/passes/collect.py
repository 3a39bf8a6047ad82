"""Numbers in sums: a shared sum or multiple of one is written out where its terms meet terms of the same kind.

c1 x + c2 (c3 x + c4) is (c1 + c2 c3) x + c2 c4: one product instead of two. Beams are full of such sums.
"""

from __future__ import annotations

from collections import Counter

from parflex.codegen.passes.nary import Nary, Signed

ONE = -1  # what a plain number is a multiple of
Terms = dict[int, float]  # node without a number in front -> coefficient
SMALL = 1e-12  # of the largest of the numbers that were added: what is smaller is their rounding


def collect(program: Nary) -> None:
    """Write sums with the fewest products of numbers and additions, one step deep at a time."""
    order = program.order()
    uses = program.uses()
    change: dict[int, Signed] = {}
    found: dict[tuple, tuple[int, float]] = {}
    for node in order:
        if program.kind[node] == "sum":
            terms = _terms(program, node)
            best = _shortest(program, terms, uses)
            twin, ratio = _twin(found, node, best)
            if twin is not None and change.get(twin, (twin, 1))[0] == node:
                continue  # the twin becomes this very sum: one of the two stays
            if twin is not None:
                change[node] = (program.product([program.constant(abs(ratio)), twin]), 1 if ratio > 0 else -1)
            elif best is not terms or len(terms) < len(program.content[node]):
                change[node] = _built(program, best)
    if change:
        program.rebuild(change)


def _twin(found: dict[tuple, tuple[int, float]], node: int, terms: Terms) -> tuple[int | None, float]:
    """An earlier sum of which these terms are a multiple, and the ratio."""
    if len(terms) < 2:
        return None, 1.0
    size = terms[min(terms)]
    key = tuple((base, float(f"{factor / size:.12e}")) for base, factor in sorted(terms.items()))
    numbers = sum(abs(factor) != 1.0 for base, factor in terms.items() if base != ONE)
    if key in found and numbers > 0:
        twin, other = found[key]
        return twin, size / other
    found.setdefault(key, (node, size))
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
