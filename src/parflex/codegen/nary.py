"""Sums and products of many terms: the form in which passes save operators.

Nodes are leaves (inputs, constants, results of functions), products (sorted factors) and sums (children with integer
coefficients). Equal nodes are one node, and a sum and its negative are one node with a sign. Passes rewrite sums and
products; `lower` converts the result to binary operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import copy
from itertools import chain
from typing import Any

from parflex.symbolic.expression import ADD, CONST, DIV, MUL, SOLVE, Graph

Signed = tuple[int, int]  # node, sign
RECIPROCAL = -1  # content of the function 1 / x


class Nary:
    """A program as sums and products. Node numbers are stable; passes replace the content of a node."""

    def __init__(self, graph: Graph, outputs: Iterable[int]) -> None:
        self.source = graph
        self.kind: list[str] = []  # leaf | function | sum | product
        # of a leaf or function: node of the graph; of a sum: child -> coefficient; of a product: factors
        self.content: list = []
        self.arguments: dict[int, list[Signed]] = {}  # of functions
        self._sums: dict[tuple, int] = {}
        self._products: dict[tuple[int, ...], int] = {}
        self._leaves: dict[int, int] = {}
        self._memo: dict[int, Signed] = {}
        self._inverse: dict[int, int] = {}  # node -> its reciprocal, and back
        self._numbers: dict[int, float] = {}  # of constant leaves
        self._known: dict[str, Any] = {}  # order, uses and cost, until the next rebuild
        self.outputs: list[Signed] = [self.imported(edge) for edge in outputs]

    # -- construction ----------------------------------------------------------------------------------

    def imported(self, edge: int) -> Signed:
        """The node of an edge of the graph; arguments first, without recursion."""
        stack = [edge >> 1]
        while stack:
            node = stack[-1]
            if node in self._memo:
                stack.pop()
                continue
            missing = [e >> 1 for e in self.source.arguments(node) if e >> 1 not in self._memo]
            if missing:
                stack += missing
                continue
            self._memo[node] = self._import_node(node)
            stack.pop()
        result, sign = self._memo[edge >> 1]
        return result, -sign if edge & 1 else sign

    def _import_node(self, node: int) -> Signed:
        op = self.source.op[node]
        parts = [self._signed(edge) for edge in self.source.arguments(node)]
        if op == ADD:
            terms: dict[int, int] = {}
            for child, sign in parts:
                terms[child] = terms.get(child, 0) + sign
            return self.sum(terms)
        if op == MUL:
            return self.product([child for child, _ in parts]), parts[0][1] * parts[1][1]
        if op == DIV:
            (above, sign), (below, other) = parts
            return self.product([above, self.reciprocal(below)]), sign * other
        leaf = self._leaf(node)
        if parts:
            self.kind[leaf] = "function"
            self.arguments[leaf] = parts
        return leaf, 1

    def _signed(self, edge: int) -> Signed:
        node, sign = self._memo[edge >> 1]
        return node, -sign if edge & 1 else sign

    def _leaf(self, node: int) -> int:
        if node not in self._leaves:
            leaf = self._leaves[node] = self._new("leaf", node)
            if self.source.op[node] == CONST:
                self._numbers[leaf] = self.source.constants[self.source.a[node]]
        return self._leaves[node]

    def _new(self, kind: str, content: object) -> int:
        self.kind.append(kind)
        self.content.append(content)
        return len(self.kind) - 1

    def constant(self, value: float) -> int:
        """The leaf of a positive constant."""
        return self._leaf(self.source.edge(value) >> 1)

    def reciprocal(self, node: int) -> int:
        """1 / node, as a factor; that of a product is the product of those of its factors."""
        number = self.value(node)
        if number is not None:
            return self.constant(1.0 / number)
        if self.kind[node] == "product":
            return self.product([self.reciprocal(factor) for factor in self.content[node]])
        if node not in self._inverse:
            inverse = self._new("function", RECIPROCAL)
            self.arguments[inverse] = [(node, 1)]
            self._inverse[node] = inverse
            self._inverse[inverse] = node
        return self._inverse[node]

    def product(self, factors: Iterable[int]) -> int:
        """The product of the factors; constants in it are one, a factor and its reciprocal cancel."""
        numbers, inverse = self._numbers, self._inverse
        value = 1.0
        remaining: list[int] = []
        for factor in sorted(factors):
            if factor in numbers:
                value *= numbers[factor]
            elif factor in inverse and inverse[factor] in remaining:
                remaining.remove(inverse[factor])
            else:
                remaining.append(factor)
        if value != 1.0:
            remaining = sorted([*remaining, self.constant(value)])
        if not remaining:
            return self.constant(1.0)
        if len(remaining) == 1:
            return remaining[0]
        key = tuple(remaining)
        if key not in self._products:
            self._products[key] = self._new("product", key)
        return self._products[key]

    def sum(self, terms: dict[int, int]) -> Signed:
        """The sum of the terms, and a sign: the first child of a stored sum has a positive coefficient."""
        if 0 in terms.values():
            terms = {child: count for child, count in terms.items() if count}
        if not terms:
            return self.constant(0.0), 1
        if len(terms) == 1:
            ((child, count),) = terms.items()
            node = child if abs(count) == 1 else self.product([child, self.constant(float(abs(count)))])
            return node, 1 if count > 0 else -1
        sign = 1 if terms[min(terms)] > 0 else -1
        if sign < 0:
            terms = {child: -count for child, count in terms.items()}
        key = tuple(sorted(terms.items()))
        if key not in self._sums:
            self._sums[key] = self._new("sum", terms)
        return self._sums[key], sign

    def value(self, node: int) -> float | None:
        """The number of a constant leaf."""
        return self._numbers.get(node)

    def copy(self) -> Nary:
        """A program that changes on its own. Contents are replaced, never changed, and the graph only grows: shared."""
        other = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, (list, dict)):
                setattr(other, name, value.copy())
        return other

    # -- looking ---------------------------------------------------------------------------------------

    def children(self, node: int) -> Iterable[int]:
        """Nodes that this one uses, each as often as it does."""
        kind = self.kind[node]
        if kind in ("sum", "product"):
            return self.content[node]
        if kind == "function":
            return [child for child, _ in self.arguments[node]]
        return []

    def order(self, change: dict[int, Signed] | None = None) -> list[int]:
        """Live nodes, arguments first; nodes in `change` have their replacement as their only argument."""
        if change is None:
            if "order" not in self._known:
                self._known["order"] = self._ordered({})
            return self._known["order"]
        return self._ordered(change)

    def _ordered(self, replaced: dict[int, Signed]) -> list[int]:
        kinds, content = self.kind, self.content
        done = bytearray(len(kinds))
        result: list[int] = []
        for root, _ in self.outputs:
            stack = [root]
            while stack:
                node = stack.pop()
                if node < 0:  # all that it uses is there
                    result.append(~node)
                elif not done[node]:
                    done[node] = 1
                    kind = kinds[node]
                    if node in replaced:
                        stack += (~node, replaced[node][0])
                    elif kind == "leaf":
                        result.append(node)
                    elif kind == "function":
                        stack.append(~node)
                        stack += [child for child, _ in self.arguments[node]]
                    else:
                        stack.append(~node)
                        stack += content[node]
        return result

    def uses(self) -> Counter:
        """How often each live node is used."""
        if "uses" not in self._known:
            used = chain.from_iterable(map(self.children, self.order()))
            self._known["uses"] = Counter(chain((node for node, _ in self.outputs), used))
        return self._known["uses"]

    def divisors(self) -> set[int]:
        """Reciprocals that are used once, in a product: there they are divisions and cost nothing of their own."""
        uses = self.uses()
        factors = (f for node in self.order() if self.kind[node] == "product" for f in self.content[node])
        return {f for f in factors if f in self._inverse and uses[f] == 1 and self.is_reciprocal(f)}

    def is_reciprocal(self, node: int) -> bool:
        """Whether a node is 1 / x."""
        return self.kind[node] == "function" and self.content[node] == RECIPROCAL

    def cost(self) -> int:
        """Additions, multiplications and divisions of the live nodes, systems that are solved left out."""
        if "cost" not in self._known:
            self._known["cost"] = self._operation_count()
        return self._known["cost"]

    def _operation_count(self) -> int:
        total = -len(self.divisors())
        kinds, contents, inverse = self.kind, self.content, self._inverse
        for node in self.order():
            kind = kinds[node]
            if kind == "sum":
                total += len(contents[node]) - 1
                for count in contents[node].values():
                    total += abs(count) != 1
            elif kind == "product":
                total += len(contents[node]) - 1
                if contents[node][0] in inverse:  # else not all of them are reciprocals
                    total += all(self.is_reciprocal(factor) for factor in contents[node])
            elif node in inverse:
                total += self.is_reciprocal(node)
        return total

    # -- rewriting -------------------------------------------------------------------------------------

    def rebuild(self, change: dict[int, Signed]) -> None:
        """Replace nodes by others everywhere; what is built on them is built anew."""
        memo: dict[int, Signed] = {}  # of nodes that are others now
        kinds = self.kind
        for node in self._ordered(change):
            if node in change:
                replacement, sign = change[node]
                new, new_sign = memo.get(replacement, (replacement, 1))
                memo[node] = new, sign * new_sign
            elif kinds[node] != "leaf" and not memo.keys().isdisjoint(self.children(node)):
                rebuilt = self._rebuilt(node, memo)
                if rebuilt != (node, 1):
                    memo[node] = rebuilt
        self._known.clear()
        self.outputs = _replaced(self.outputs, memo)

    def _rebuilt(self, node: int, memo: dict[int, Signed]) -> Signed:
        kind = self.kind[node]
        if kind == "sum":
            terms: dict[int, int] = {}
            for child, count in self.content[node].items():
                new, sign = memo.get(child, (child, 1))
                terms[new] = terms.get(new, 0) + sign * count
            return self.sum(terms)
        if kind == "product":
            sign = 1
            factors = []
            for child in self.content[node]:
                new, child_sign = memo.get(child, (child, 1))
                sign *= child_sign
                factors.append(new)
            return self.product(factors), sign
        if self.content[node] == RECIPROCAL:
            child, sign = memo[self.arguments[node][0][0]]
            return self.reciprocal(child), sign
        return self._rebuilt_function(node, memo), 1

    def _rebuilt_function(self, node: int, memo: dict[int, Signed]) -> int:
        arguments = _replaced(self.arguments[node], memo)
        if arguments == self.arguments[node]:
            return node
        if self.source.op[self.content[node]] == SOLVE:
            self.arguments[node] = arguments  # a system is used by its picks: it keeps its number
            return node
        copy = self._new("function", self.content[node])
        self.arguments[copy] = arguments
        return copy


def _replaced(signed: list[Signed], memo: dict[int, Signed]) -> list[Signed]:
    """Nodes with signs, those that are others now replaced."""
    return [(new, sign * new_sign) for node, sign in signed for new, new_sign in [memo.get(node, (node, 1))]]
