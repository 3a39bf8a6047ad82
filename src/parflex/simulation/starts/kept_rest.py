"""Where flexible bodies of a robot are at rest, kept on disk: to find it takes longer than a short run.

The key holds the robot, the pose and the loads, and the code of this package, as that of programs does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.codegen import cache
from parflex.records import Record
from parflex.robot.configuration import Pose
from parflex.robot.robot import Robot

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Relaxed(Record):
    """Where bodies are at rest, and the rates whose brakes carry something there."""

    q: Array
    held: tuple[str, ...] = ()
    steady: bool = True  # whether bodies would stay there


def kept_rest(robot: Robot, choices: tuple[Any, ...], find: Callable[[], Relaxed]) -> Relaxed:
    """What `find` finds for a robot and all that it depends on beside it, from the disk if it was found before."""
    key = cache.key_of(robot, "rest", *choices) if robot.deformations else None
    if key is None:
        return find()
    key = key.removesuffix(".program") + ".rest"
    data = cache.read_bytes(key)
    if data is not None:
        kept = json.loads(data)
        return Relaxed(np.array(kept["q"]), tuple(kept["held"]), kept["steady"])
    found = find()
    content = {"q": found.q.tolist(), "held": found.held, "steady": bool(found.steady)}
    cache.write_bytes(key, json.dumps(content).encode())
    return found


def named_rates(robot: Robot, pose: Pose | None) -> set[int]:
    """Rates of the joints that a pose speaks of; of all where it is given in full."""
    if isinstance(pose, str):
        pose = robot.description.poses.get(pose, {})
    if pose is None or not isinstance(pose, Mapping):
        return set(range(robot.tree.n)) if pose is not None else set()
    links = robot.tree.links
    named = [link for link in links if {link.name, link.name[:-2]} & set(pose)]
    return {k for link in named for k in range(link.v.start, link.v.stop)} | {
        k for k, name in enumerate(robot.tree.rate_names) if name in pose
    }
