"""Where the bodies of a robot of many elements are at rest, kept on disk: to find it takes longer than a short run.

The key holds the robot, the pose and the loads, and the code of this package, as that of programs does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from parflex.codegen import disk_cache, program_store
from parflex.codegen.traces.open_tree import MANY_RATES
from parflex.models.robot import Robot
from parflex.simulation.starts.relaxed import Relaxed


def kept_rest(robot: Robot, choices: tuple[Any, ...], find: Callable[[], Relaxed]) -> Relaxed:
    """What `find` finds for a robot and all that it depends on beside it, from the disk if it was found before."""
    key = program_store.key_of(robot, "rest", *choices) if len(robot.free) > MANY_RATES else None
    if key is None:
        return find()
    key = key.removesuffix(".program") + ".rest"
    data = disk_cache.read(key)
    if data is not None:
        kept = json.loads(data)
        return Relaxed(np.array(kept["q"]), tuple(kept["held"]), kept["steady"])
    found = find()
    content = {"q": found.q.tolist(), "held": found.held, "steady": bool(found.steady)}
    disk_cache.write(key, json.dumps(content).encode())
    return found
