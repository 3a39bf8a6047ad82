"""How a flexible robot stands and moves at home, kept on disk: to find it takes half of a second start.

The key holds the robot and the code of this package, as that of programs does.
"""

from __future__ import annotations

import json
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from parflex.codegen import cache
from parflex.robot.motions_at_home import Mobility
from parflex.robot.robot import Robot

_known: WeakKeyDictionary[Robot, Robot] = WeakKeyDictionary()  # robots do not change


def with_kept_home(robot: Robot) -> Robot:
    """A flexible robot that knows its home and its mobility: from the disk if it was there before."""
    if not robot.deformations or any(part is not None for part in robot.known):
        return robot
    if robot not in _known:
        _known[robot] = _read(robot)
    return _known[robot]


def _read(robot: Robot) -> Robot:
    key = cache.key_before_home(robot)
    if key is None:
        return robot
    data = cache.read_bytes(key)
    if data is None:
        home, moves = robot.home, robot.mobility
        content = {
            "home": home.tolist(),
            "rank": moves.rank,
            "redundant": [int(row) for row in moves.redundant],
            "home_rank": moves.home_rank,
            "beside": [q.tolist() for q in moves.beside],
        }
        cache.write_bytes(key, json.dumps(content).encode())
        return replace(robot, known_home=home, known_mobility=moves)
    kept = json.loads(data)
    beside = tuple(np.array(q) for q in kept["beside"])
    moves = Mobility(kept["rank"], tuple(kept["redundant"]), kept["home_rank"], beside)
    return replace(robot, known_home=np.array(kept["home"]), known_mobility=moves)
