"""Pictures of a design before and after its optimisation: robot, modes, map of the lowest frequency, Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from parflex.design.optimise import Optimised
from parflex.errors import ParflexError
from parflex.maps.grid import frequency_map
from parflex.robot.robot import Robot
from parflex.statics.modes import natural_frequencies
from parflex.view.figures.map_figure import draw_map
from parflex.view.figures.mode_figures import draw_modes
from parflex.view.figures.robot_figure import draw
from parflex.view.figures.style import LINES, finished, new_figure, styled

CELLS = 15  # of a map along each axis
MODES = 3


def write_pictures(found: Optimised, folder: Path) -> list[tuple[str, list[tuple[str, str]]]]:
    """Pictures beside a page: titles, and under each the files with their captions."""
    name, poses = _vibrating(found)
    pose = found.responses[name]["pose"] if name else None
    shown: dict[str, list[tuple[str, str]]] = {"robot": [], "modes": [], "map": []}
    for robot, word in ((found.before, "before"), (found.robot, "after")):
        draw(robot, path=folder / f"{word}.svg")
        shown["robot"].append((f"{word}.svg", word))
        with suppress(ParflexError):  # nothing vibrates, or nothing that can be drawn
            modes = natural_frequencies(robot, pose, MODES)
            draw_modes(modes, folder / f"modes-{word}.svg")
            shown["modes"].append((f"modes-{word}.svg", f"{word}, at {_told(pose)}"))
        with suppress(ParflexError):
            if _map(robot, poses, folder / f"map-{word}.svg"):
                shown["map"].append((f"map-{word}.svg", f"{word} (Hz)"))
    titles = {"robot": "", "modes": "Modes", "map": "Lowest frequency over the region"}
    result = [(titles[kind], files) for kind, files in shown.items() if len(files) == 2]
    if found.front:
        _front(found.front, folder / "front.svg")
        result.append(("Pareto front", [("front.svg", "each point is a design")]))
    return result


def _vibrating(found: Optimised) -> tuple[str, Sequence[Any]]:
    """The first response that is a frequency, and its poses."""
    for name, one in found.responses.items():
        if str(one["response"]).partition(":")[0] == "frequency":
            return name, found.poses.get(name, [])
    return "", []


def _told(pose: Any) -> str:
    if isinstance(pose, Mapping):
        return ", ".join(f"{key} = {value:.4g}" for key, value in pose.items())
    return pose if isinstance(pose, str) else "home"


def _map(robot: Robot, poses: Sequence[Any], path: Path) -> bool:
    """The map over the box of poses that lie in a plane of two coordinates; whether there is one."""
    tables = [pose for pose in poses if isinstance(pose, Mapping)]
    if len(tables) < 2 or len(tables) < len(poses) or any(set(pose) != set(tables[0]) for pose in tables):
        return False
    ranges = {key: (min(pose[key] for pose in tables), max(pose[key] for pose in tables)) for key in tables[0]}
    along = [key for key, (low, high) in ranges.items() if high > low]
    if len(along) not in (1, 2):
        return False
    fixed = {key: low for key, (low, _) in ranges.items() if key not in along}
    found = frequency_map(robot, [(key, *ranges[key], CELLS) for key in along], fixed, modes=1)
    draw_map(found, path)
    return True


def _front(front: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Both objectives of all designs of a front."""
    names = list(front[0]["objectives"])
    points = np.array([[one["objectives"][name] for name in names] for one in front])
    with styled():
        figure = new_figure(3.2, 5.0)
        axes = figure.add_subplot()
        axes.plot(points[:, 1], points[:, 0], "o-", color=LINES[0], markersize=3.5, linewidth=1.0)
        axes.set_xlabel(names[1])
        axes.set_ylabel(names[0])
        finished(figure, path)
