"""Responses of the geometry of robots: transmission angles, distance to singularities, the area that is reached."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.design.design_state import DesignState
from parflex.design.rigid_responses import conditioning
from parflex.errors import InputError, did_you_mean
from parflex.spatial import cross
from parflex.tree.link_tree import GROUND

Array = np.ndarray
SHORT = 1e-9  # of the typical length: points that are nearer to each other have no direction
MOST_CELLS = 1_000_000


def transmission(state: DesignState, argument: str) -> Any:
    """Angle between the links that meet in a passive revolute joint, folded to at most a right angle; smallest of all.

    A link points from its joint to the next joint or closure on it. Near zero the two push along one line, and small
    errors of one become large motions of the other.
    """
    tree = state.robot.tree
    names = [link.name for j, link in enumerate(tree.links) if _passive(state, j)]
    if argument and argument not in names:
        raise InputError(
            f"'{argument}' is not a passive revolute joint between two links",
            key="response",
            value=f"transmission:{argument}",
            hint=did_you_mean(argument, names),
        )
    found = [_angle(state, tree.number(name)) for name in ([argument] if argument else names)]
    if not found:
        raise InputError(
            "no passive revolute joint joins two links",
            key="response",
            value="transmission",
            hint="ask for conditioning",
        )
    return min(found, key=lambda x: getattr(x, "value", x))


def _passive(state: DesignState, j: int) -> bool:
    """Whether two links of some length meet in this joint, and no motor turns it."""
    tree = state.robot.tree
    link = tree.links[j]
    turning = link.joint.one_axis and link.joint.unit == "rad" and link.v.start not in state.robot.actuated
    if not turning or link.v.start in state.robot.locked or link.parent == GROUND:
        return False
    return _points(state, j, state.here.at) is not None


def _points(state: DesignState, j: int, at: Any) -> tuple[Array, Array, Array] | None:
    """Origin of the joint before, of this one, and the first other joint or closure on its link."""
    robot = state.robot
    tree, twin = robot.tree, state.twin
    before = tree.links[j].parent
    while before != GROUND and not tree.links[before].joint.one_axis:
        before = tree.links[before].parent  # nodes of beams and fixed frames
    if before == GROUND:
        return None
    plain, here = state.here.at.position, at.position[j]
    far = SHORT * tree.length
    if np.linalg.norm(plain[j] - plain[before]) <= far:
        return None
    ahead: list[Any] = [
        (at.position[k], plain[k])
        for k in range(j + 1, len(tree.links))
        if tree.links[k].joint.one_axis and j in tree.path(tree.links[k].parent)
    ]
    for loop, own in zip(robot.closures.loops, twin.closures.loops, strict=True):
        for place, moved in ((loop.first, own.first), (loop.second, own.second)):
            if place.link != GROUND and j in tree.path(place.link):
                ahead.append((at.of(moved)[1], state.here.at.of(place)[1]))
    for point, known in ahead:
        if np.linalg.norm(known - plain[j]) > far:
            return at.position[before], here, point
    return None


def _angle(state: DesignState, j: int) -> Any:
    at = state.there.at if state.count else state.here.at
    found = _points(state, j, at)
    assert found is not None
    one, two = found[1] - found[0], found[2] - found[1]
    normal = cross(one, two)
    return np.arctan2(np.sqrt(normal @ normal), abs(one @ two))


def singularity(state: DesignState, argument: str) -> Any:
    """Distance to singularities: 1 over the largest condition number of legs, platform and closures, as in maps."""
    found = state.here.condition
    platform = found.platform if found.enough_motors else 1.0
    largest = max(1.0, found.closures, platform, *found.legs.values())
    if not state.count:
        return 1.0 / largest
    if largest > platform:
        raise InputError(
            "a leg or the set of closures is nearer to its singularity than the platform, and has no slopes",
            key="response",
            value="singularity",
            hint="ask for 'conditioning' or 'transmission'",
        )
    return 1.0 / conditioning(state, "")


def area(state: DesignState, argument: str) -> Any:
    """Area, or length or volume, that the end effector reaches within ranges: x,FROM,TO,COUNT;y,FROM,TO,COUNT;rz,VALUE.

    It counts cells, so that it has no slopes.
    """
    from parflex.maps.batches import Geometry  # which brings the compiler, and is not needed elsewhere
    from parflex.maps.positions import OK, PositionSolver
    from parflex.maps.reached_cells import reached_cells

    axes = [_axis(part, argument) for part in argument.split(";")]
    if state.count:
        raise InputError(
            "the area that is reached counts cells, so that it has no slopes",
            key="response",
            value=f"area:{argument}",
            hint="ask for its value, or limit 'transmission' or 'singularity' over a region",
        )
    cells = int(np.prod([len(values) for _, values, _ in axes]))
    if cells > MOST_CELLS:
        raise InputError(f"the area has {cells} cells", key="response", value=argument, hint=f"up to {MOST_CELLS}")
    grid = np.stack([x.ravel() for x in np.meshgrid(*(values for _, values, _ in axes), indexing="ij")], axis=1)
    geometry = Geometry(state.robot)
    geometry.settle(len(grid))
    solver = PositionSolver(geometry, [name for name, _, _ in axes], grid[len(grid) // 2].tolist())
    if solver.fast:
        reached = int((solver(grid).status == OK).sum())
    else:
        reached = int(reached_cells(state.robot, [(name, values) for name, values, _ in axes]).sum())
    return float(reached * np.prod([step for _, _, step in axes]))


def _axis(text: str, argument: str) -> tuple[str, Array, float]:
    """A coordinate, the middles of its cells, and their width."""
    name, *numbers = [word.strip() for word in text.split(",")]
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        values = []
    if len(values) == 1:
        return name, np.array(values), 1.0
    if len(values) != 3 or values[2] != int(values[2]) or not 1 <= values[2] <= MOST_CELLS or values[0] >= values[1]:
        raise InputError(
            f"'{text}' is not a range", key="response", value=f"area:{argument}", hint="write area:x,-0.1,0.1,20;y,..."
        )
    count, width = int(values[2]), (values[1] - values[0]) / values[2]
    return name, values[0] + width * (np.arange(count) + 0.5), width
