"""Where small deformations end: how far bodies bend, beside what their theory bears."""

from __future__ import annotations

import numpy as np

from parflex.bodies import ElasticBody
from parflex.tree import Link, Tree

Array = np.ndarray


def deflections(tree: Tree, q: Array) -> dict[str, float]:
    """Of each body that bends and says what it bears: its largest deflection at a node, as a share of that.

    `q` may have rows of positions; the largest of all rows is given.
    """
    rows = np.atleast_2d(q)
    found = {}
    for link in tree.links:
        if isinstance(link.body, ElasticBody) and link.body.small:
            found[link.name] = _largest(link, rows) / link.body.small
    return found


def _largest(link: Link, rows: Array) -> float:
    moved = [np.linalg.norm(rows[:, link.e] @ node.Phi_d.T, axis=1).max() for node in link.body.nodes.values()]
    return float(max(moved, default=0.0))


def deflection_warnings(tree: Tree, q: Array) -> list[str]:
    """One sentence about the body that bends farthest beyond what its theory bears."""
    shares = deflections(tree, q)
    worst = max(shares, key=lambda name: shares[name], default=None)
    if worst is None or shares[worst] <= 1.0:
        return []
    link = tree.links[tree.number(worst)]
    way = shares[worst] * link.body.small
    size = "half its thickness" if not link.body.by_tip else "a tenth of its length"
    others = sum(share > 1.0 for share in shares.values()) - 1
    more = f" (and {others} more)" if others else ""
    return [
        f"'{worst}'{more} bends by {1e3 * way:.3g} mm, {shares[worst]:.2g} times {size}: small deformations end "
        "there, stiffening is not in the model"
    ]
