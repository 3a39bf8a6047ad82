"""Values of joints that couplings relate: which couplings they contradict, and which joints couplings hold still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from parflex.closure.constraints import Constraint, Coupling
from parflex.errors import InputError
from parflex.records import Record, name_list
from parflex.tree.tree import Link, Tree

Array = np.ndarray
SAME = 1e-8  # of values and of entries of rows without units: rounding


@dataclass(frozen=True, eq=False, repr=False)
class Contradiction(Record):
    """Couplings that put a joint elsewhere than where it is given, with all other given joints."""

    couplings: tuple[Coupling, ...]
    joints: tuple[str, ...]  # given ones that they relate
    joint: str
    said: float  # by the couplings
    given: float
    unit: str

    def message(self, what: str, per: str = "") -> str:
        """One sentence about `what` is given."""
        names = quoted([coupling.name for coupling in self.couplings])
        one = len(self.couplings) == 1
        unit = f"{self.unit}{per}"
        return (
            f"the {what} contradicts the coupling{'' if one else 's'} {names}: {'it gives' if one else 'they give'} "
            f"'{self.joint}' {self.said:.6g} {unit}, and the {what} {self.given:.6g} {unit}"
        )

    @property
    def hint(self) -> str:
        """What to do."""
        said = "; ".join(coupling.relation for coupling in self.couplings)
        return f"leave out one of {quoted(self.joints)}: {said}"


def contradiction(
    constraints: Sequence[Constraint], tree: Tree, given: Mapping[int, float], offsets: bool
) -> Contradiction | None:
    """What couplings say against values `given` by rate: positions, with their offsets, or rates, without."""
    rows = [row for row in constraints if isinstance(row, Coupling)]
    if not rows:
        return None
    C = _matrix(rows, tree)
    scale = np.array([row.scale(tree.length)[0] / tree.length for row in rows])
    right = np.array([row.offset if offsets else 0.0 for row in rows]) * scale
    known = sorted(given)
    others = [k for k in range(tree.n) if k not in given]
    values = np.array([given[k] for k in known]) / tree.rate_units[known]
    for y in scipy.linalg.null_space(C[:, others].T, rcond=SAME).T:  # combinations that hold given joints alone
        weights = y @ C[:, known]
        off = float(weights @ values - y @ right)
        if np.abs(weights).max(initial=0.0) < SAME:
            continue
        size = float(np.abs(weights * values).max()) + float(np.abs(y * right).max())
        if abs(off) > SAME * max(1.0, size):
            return _told(rows, tree, known, values, (y, weights, off))
    return None


def _told(
    rows: list[Coupling], tree: Tree, known: list[int], values: Array, found: tuple[Array, Array, float]
) -> Contradiction:
    y, weights, off = found
    own = tuple(row for row, share in zip(rows, y, strict=True) if abs(share) > SAME)
    related = [n for n, weight in enumerate(weights) if abs(weight) > SAME]
    follows = [row.rates[0] for row in own]
    n = next((n for n in reversed(related) if known[n] in follows), related[-1])
    k = known[n]
    link = tree.links[tree.link_of_rate[k]]
    unit = float(np.max(tree.rate_units[k]))
    said = float(values[n] - off / weights[n]) * unit
    joints = tuple(tree.rate_names[known[m]] for m in related)
    return Contradiction(
        own, joints, link.name, said, float(values[n]) * unit, "m" if link.joint.unit == "m" else "rad"
    )


def refuse_contradicted_positions(robot: Any, q: Array, key: str) -> None:
    """Raise where all positions `q` do not fit a coupling."""
    given = {link.v.start: float(q[link.q.start]) for link in robot.tree.links if link.joint.one_axis}
    for row in robot.closures.constraints:
        said = contradiction([row], robot.tree, given, offsets=True)
        if said is not None:
            raise InputError(said.message("start"), key=key, value=said.joint, hint=said.hint)


def held_still(constraints: Sequence[Constraint], tree: Tree) -> tuple[list[str], list[str]]:
    """Joints that couplings alone leave no motion, and the couplings that hold them."""
    rows = [row for row in constraints if isinstance(row, Coupling)]
    if len(rows) < 2:
        return [], []
    coupled = sorted({k for row in rows for k in row.rates})
    motions = scipy.linalg.null_space(_matrix(rows, tree)[:, coupled], rcond=SAME)
    still = [k for n, k in enumerate(coupled) if np.abs(motions[n]).max(initial=0.0) < SAME]
    names = [row.name for row in rows if set(row.rates) & set(still)]
    return [tree.rate_names[k] for k in still], names


def coupling_warnings(constraints: Sequence[Constraint], tree: Tree, stated: Sequence[Link]) -> list[str]:
    """A sentence for couplings that leave joints no motion, and for those that do not keep `stated` starts."""
    still, names = held_still(constraints, tree)
    found = [f"the couplings {quoted(names)} together leave {quoted(still)} no motion"] if still else []
    starts = {link.v.start: float(tree.start[link.q.start]) for link in stated if link.joint.one_axis}
    said = contradiction(constraints, tree, starts, offsets=True)
    return [*found, f"{said.message('start')}: the coupling holds"] if said is not None else found


def quoted(names: Sequence[str]) -> str:
    """Names in quotes, for a sentence."""
    return name_list([f"'{name}'" for name in names])


def _matrix(rows: Sequence[Coupling], tree: Tree) -> Array:
    """Coefficients of the rows over all rates, without units, the largest of each row being 1."""
    C = np.zeros((len(rows), tree.n))
    for i, row in enumerate(rows):
        unit = row.scale(tree.length)[0] / tree.length
        C[i, list(row.rates)] = unit * np.array(row.coefficients, dtype=float) * tree.rate_units[list(row.rates)]
    return C
