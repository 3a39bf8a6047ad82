"""Changes of home with a parameter set: start values, targets, and coordinates that poses leave as at home."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from parflex.cache import cached
from parflex.closure.targets import FrameTarget, Target
from parflex.maps.kinematics import GEARING, Geometry
from parflex.parameters.design_numbers import DesignNumbers
from parflex.robot.pose_input import read_pose
from parflex.robot.robot import Robot
from parflex.tree.tree import GROUND

ENDS = {"x", "y", "z", "theta", "rx", "ry", "rz"}
AT_START = 1e-12  # rad or m: a platform stands at home where the file starts it
CHANGED = 0.01  # of a value of home, to see what it moves


def moved_at_home(geometry: Geometry, known: Collection[int]) -> list[str]:
    """Links that home alone places, and otherwise for some designs; `known` are positions that are given or solved for.

    What the pose 'home' of the file says stands as it says. A platform stands else where the file starts it, and legs
    close on it; a joint that no loop holds stands where its own start or the rest of its spring says. Others follow
    from how the loops close at home, with the lengths of a design.
    """
    designs, robot = geometry.designs, geometry.robot
    if designs is None:
        return []
    kept: dict[int, list[int]] = {}
    for number, link in enumerate(geometry.tree.links):
        left = sorted(set(range(link.q.start, link.q.stop)) - set(known))
        alone = link.joint.moves_freely and link.parent == GROUND  # one of its coordinates may be given, another not
        if left and (alone or len(left) == link.q.stop - link.q.start):
            kept[number] = left
    if not kept:
        return []
    table = {} if robot.written is None else robot.written.table
    stated = table.get("poses", {}).get("home", {})
    begun = table.get("working_modes", {}).get(robot.working_mode, {}).get("start", {})
    constants = set(table.get("constants", {}))
    if any(key.startswith(("poses.home", "working_modes.")) for key in designs.keys) or any(
        _follows(part, constants) for part in (stated, begun)
    ):
        return [robot.tree.links[number].name for number in kept]
    starting = _started(designs)
    parts = robot.assembler.parts(Target(), robot.locked | frozenset(robot.deformations))
    looped = {robot.tree.link_of_rate[int(k)] for part in parts for k in part.columns if part.rows}
    coupled = {number for spring in robot.tree.springs for number in spring.numbers}
    coupled |= {number for row in robot.closures.constraints for number in row.links(robot.tree)}
    any_moves = -1 in starting or bool(starting & (looped | coupled))  # where one starts, others follow
    found = []
    for number in kept:
        link, own = robot.tree.links[number], geometry.kept[kept[number]]
        if link.joint.moves_freely and link.parent == GROUND:
            stays = bool(np.abs(robot.home[own] - robot.start[own]).max(initial=0.0) <= AT_START)
            stays = stays or bool(ENDS & set(stated))
        else:
            stays = number not in looped or link.name in stated
        if number in starting or any_moves or (geometry.varied and not stays):
            found.append(link.name)
    return found


def _started(designs: DesignNumbers) -> frozenset[int]:
    """The same as `_starting` of all its places, which are many where elements are."""
    return cached("joints that designs start", designs.name or None, lambda: frozenset(_starting(designs.places)))


def _starting(places: Iterable[Iterable[tuple[str | int, ...]]]) -> Iterable[int]:
    """Links at which a number of a design says where a joint starts; -1 where it is one of all of them."""
    for own in places:
        for place in own:
            if place[0] == "constraints" or (place[:2] == ("tree", "springs") and place[3] in GEARING):
                yield -1  # couplings start joints by each other
            elif (
                place[0] == "tree" and place[1] == "links" and (place[3] == "start" or place[3:5] == ("terms", "rest"))
            ):
                yield int(place[2])


def _follows(part: Any, constants: set[str]) -> bool:
    """Whether a formula in a part of the file names a constant, which may follow from a key of designs."""
    if isinstance(part, dict | list | tuple):
        return any(_follows(inner, constants) for inner in (part.values() if isinstance(part, dict) else part))
    return isinstance(part, str) and bool(constants & set(re.findall(r"[A-Za-z_]\w*", part)))


def begun_elsewhere(
    robot: Robot, designs: DesignNumbers, target: Target
) -> tuple[list[tuple[int, int]] | None, tuple[tuple[int, int], ...]]:
    """Positions that designs begin elsewhere, with the numbers that say where; None where that is not one number.

    Also axes along which the end effector is placed on its joints by such numbers.
    """
    found: dict[int, int] = {}
    asked: dict[int, int] = {}
    coupled = {j for row in robot.closures.constraints for j in row.links(robot.tree)}
    for k, places in enumerate(designs.places):
        for place in places:
            if place[0] == "home":
                part, word = str(place[1]), str(place[2])
                at, axis = _position(robot, target, part, word), _axis(robot, target, part, word)
                if at is not None:
                    found[at] = k
                elif axis is not None:
                    asked[axis] = k
                else:
                    return None, ()
    for k, places in enumerate(designs.places):
        for place in places:
            starts = place[0] == "tree" and place[1] == "links" and place[3] == "start"
            rests = (
                place[0] == "tree" and tuple(place[3:5]) == ("terms", "rest") and int(place[2]) in robot.drive_springs
            )
            if rests or (starts and int(place[2]) in coupled):
                return None, ()  # others start by it
            if starts:
                found.setdefault(robot.tree.links[int(place[2])].q.start + int(place[4]), k)
    return list(found.items()), tuple(asked.items())


def _position(robot: Robot, target: Target, part: str, word: str) -> int | None:
    """Position that a value of home, or of the start of a working mode, is."""
    if part == "mode":
        return None if robot.closures.constraints else robot.tree.links[robot.tree.number(word)].q.start
    other = _changed(robot, word)
    off = [k for k, value in other.values.items() if value != target.values.get(k)]
    alone = len(off) == 1 and abs(other.values[off[0]] - target.values[off[0]] - CHANGED) < 1e-12
    same = all(
        isinstance(one, FrameTarget) and isinstance(two, FrameTarget) and one.position == two.position
        for one, two in zip(target.frames, other.frames, strict=True)
    )
    return off[0] if alone and same else None


def _axis(robot: Robot, target: Target, part: str, word: str) -> int | None:
    """Axis along which a value of home places the end effector on its joints, alone."""
    if part == "mode" or len(target.frames) != 1:
        return None
    one, other = target.frames[0], _changed(robot, word)
    two = other.frames[0]
    if not isinstance(one, FrameTarget) or not isinstance(two, FrameTarget) or other.values != target.values:
        return None
    off = [axis for axis in one.position if two.position[axis] != one.position[axis]]
    turned = one.rotation is not None and not np.array_equal(one.rotation, np.asarray(two.rotation))
    shifted = len(off) == 1 and abs(two.position[off[0]] - one.position[off[0]] - CHANGED) < 1e-12
    return off[0] if shifted and not turned else None


def _changed(robot: Robot, word: str) -> Target:
    """What home asks for with one of its values changed."""
    given = dict(robot.description.poses["home"])
    given[word] = given[word] + CHANGED
    return read_pose(robot.tree, given, "poses.home", robot.file, robot.start)
