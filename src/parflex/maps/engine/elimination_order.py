"""In which order unknowns go: chains from every second node, then what costs least; all towards the platform."""

from __future__ import annotations

import numpy as np

from parflex.maps.engine.frames import FrameTree, Row
from parflex.robot.robot import Robot
from parflex.spatial.linear import is_zero
from parflex.tree.tree import GROUND


def hop_cost(rows: dict[int, Row], hopping: list[int], forms: dict[int, Row]) -> float:
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
    chains, seen = [], set()
    for pair in inner:
        ends = [j for j in pair if len(by_beam[j]) == 1]
        if pair in seen or not ends:
            continue
        chain, current, came = [], pair, ends[0]
        while True:
            seen.add(current)
            chain.append(inner[current])
            onward = next(j for j in current if j != came)
            following = [other for other in by_beam[onward] if other not in seen]
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


def towards_platform(robot: Robot) -> list[int]:
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
