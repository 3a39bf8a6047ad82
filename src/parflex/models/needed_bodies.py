"""Flexible bodies that a mechanism needs to move, such as flexures: it has no rigid version."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from parflex.closure import mobility
from parflex.errors import InputError
from parflex.models.robot import Robot, file_frame
from parflex.records import name_list


def refuse_needed_bodies(robot: Robot) -> None:
    """Raise where bodies of the flexible `robot` must deform at home, or where a motor moves because they do.

    Without motors the whole robot counts as one.
    """
    tree, bodies = robot.tree, dict[str, list[int]]()
    for number, link in enumerate(tree.links):
        if link.body.size:
            bodies.setdefault(file_frame(robot, link.name), []).append(number)
    bent = [name for name, links in bodies.items() if any(robot.home[tree.links[j].e].any() for j in links)]
    if bent:
        raise _refused("the loops close at home", bent)
    rates = {name: [k for j in links for k in range(tree.n)[tree.links[j].e_v]] for name, links in bodies.items()}
    free = _moving(robot, ())
    lost = free - _moving(robot, tree.elastic)
    if lost:
        alone = [name for name, own in rates.items() if lost & (free - _moving(robot, own))]
        raise _refused(f"{name_list(sorted(lost))} can move", alone or list(bodies))


def _refused(what: str, bodies: list[str]) -> InputError:
    return InputError(
        f"{what} only by the deformation of {name_list([repr(name) for name in bodies])}",
        key="rigid",
        value=bodies[0],
        hint="load the robot without rigid=True",
    )


def _moving(robot: Robot, locked: Iterable[int]) -> set[str]:
    """Motors that move while other rates are locked; without motors the robot itself, if anything moves."""
    held = robot.locked | frozenset(locked)
    free = np.array([k for k in range(robot.tree.n) if k not in held], dtype=int)
    found = robot.motions.mobility_with(held)
    if not robot.actuated:
        return {f"'{robot.name}'"} if found.freedoms(len(free)) else set()
    moving: set[str] = set()
    for q in (robot.home, *found.beside):
        motions = mobility.null_space(mobility.scaled_jacobian(robot.closures, q)[:, free], found.rank)
        sizes = dict(zip(free.tolist(), np.linalg.norm(motions, axis=1), strict=True))
        moving |= {
            f"'{robot.tree.rate_names[k]}'" for k in robot.actuated if sizes.get(k, 0.0) > mobility.RANK_TOLERANCE
        }
    return moving
