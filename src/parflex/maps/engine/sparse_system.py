"""D(s) = K - s M over any scalar as a sparse symmetric matrix: condensed with N = -dD/ds, substituted, eliminated.

Condensing an unknown keeps D exact at every s: with x_j = D_kj / D_kk,

    D_ij <- D_ij - x_i D_kj,    N_ij <- N_ij - x_i N_kj - x_j N_ki + x_i x_j N_kk.

The signs of all pivots, those of condensed unknowns included, count the eigenvalues below s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.maps.engine.frames import Row
from parflex.spatial.linear import is_zero
from parflex.symbolic.expression import Expression

Array = np.ndarray


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
            own = b.pop(k, 0.0) if kind == "substitute" else 0.0
            if is_zero(own):
                continue
            for j, x in form.items():
                part = x * own
                b[j] = b[j] + part if j in b else part
        return b

    def solved(self, b: Row) -> Row:
        """The unknowns w with D w = b."""
        b = dict(b)

        def push(j: int, x: Any) -> None:
            if not is_zero(x):
                b[j] = b[j] + x if j in b else x

        for kind, k, _, row in self.done:
            own = b.get(k, 0.0)
            for j, x in row.items():
                push(j, x * own if kind == "substitute" else -(x * own))
        w: Row = {}
        for kind, k, inverse, row in reversed(self.done):
            total: Any = 0.0 if kind == "substitute" else b.get(k, 0.0) * inverse
            for j, x in row.items():
                if j in w and not is_zero(w[j]):
                    total = total + x * w[j] if kind == "substitute" else total - x * w[j]
            w[k] = total
        return w
