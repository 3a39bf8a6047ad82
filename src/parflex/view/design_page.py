"""Page of a design before and after its optimisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.design.grid import frequency_map
from parflex.design.optimise import Optimised
from parflex.errors import ParflexError
from parflex.io import write_generated
from parflex.robot.robot import Robot
from parflex.statics.modes import natural_frequencies
from parflex.view.html import card, embedded_figure, figure_card, page, side_by_side, table
from parflex.view.map_figure import draw_map
from parflex.view.robot_figure import draw, draw_modes
from parflex.view.style import COLUMN, LINES, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELLS = 15  # of a map along each axis
MODES = 3


def write_design_page(optimised: Optimised, folder: str | Path) -> str:
    """Write the page of an optimisation into a folder and return its path."""
    return str(write_generated(folder, {"index.html": design_page(optimised)})[0])


def design_page(optimised: Optimised) -> str:
    """Return the text of the page; everything is in it."""
    before, after = optimised.before, optimised.robot
    name, poses = _vibrating(optimised)
    pose = optimised.responses[name]["pose"] if name else None
    responses = [
        (key, row["response"], row["before"], row["after"], row["unit"], _change(row["before"], row["after"]))
        for key, row in optimised.responses.items()
    ]
    variables = [
        (key, row["start"], row["value"], row["lower"], row["upper"]) for key, row in optimised.variables.items()
    ]
    limits = [
        (row["name"], row["value"], row["limit"], "yes" if row["active"] else "", row["multiplier"])
        for row in optimised.constraints
    ]
    limits += [
        (f"{key} ({row['at']})", row["value"], row[row["at"]], "yes", row["multiplier"])
        for key, row in optimised.variables.items()
        if row["at"]
    ]
    limit_head = ["limit of", "value", "limit", "active", "objective per unit of the limit"]
    frequencies = _answers(lambda robot: natural_frequencies(robot).frequencies.tolist(), before, after)
    rows = [(k + 1, a, b, _change(a, b)) for k, (a, b) in enumerate(zip(*frequencies, strict=False))]
    shapes = _answers(lambda robot: draw_modes(natural_frequencies(robot, pose, MODES), width=COLUMN), before, after)
    maps = _answers(lambda robot: _map(robot, poses), before, after)
    parts = [
        f"<p>{escape(optimised.message)}; {optimised.evaluations} designs computed.</p>",
        _pair("Robot", [draw(robot, width=COLUMN) for robot in (before, after)]),
        card("Responses", table(responses, ["response", "", "before", "after", "unit", "change"])),
        card("Variables", table(variables, ["key", "before", "after", "lower", "upper"])),
        card("Active limits", table(limits, limit_head)),
        _pair(f"Modes at {_pose_text(pose)}", shapes),
        _pair("Lowest frequency over the region", maps),
        figure_card("Pareto front: each point is a design", _front(optimised.front)) if optimised.front else "",
        card("Natural frequencies at home (Hz)", table(rows, ["mode", "before", "after", "change"])),
    ]
    return page(f"{before.name}: {optimised.status}", *parts)


def _answers(make: Callable[[Robot], Any], *robots: Robot) -> list[Any]:
    """Return an answer for each robot, or none if one has no answer, as where nothing vibrates."""
    try:
        answers = [make(robot) for robot in robots]
    except ParflexError:
        return []
    return [] if any(answer is None for answer in answers) else answers


def _pair(title: str, figures: list[Any]) -> str:
    words = ("before", "after")[: len(figures)]
    shown = [f"{word}<br>{embedded_figure(figure, word)}" for word, figure in zip(words, figures, strict=True)]
    return card(title, side_by_side(*shown))


def _change(before: float, after: float) -> str:
    return f"{100 * (after / before - 1):+.2f} %" if before else ""


def _vibrating(optimised: Optimised) -> tuple[str, Sequence[Any]]:
    """Return the first response that is a frequency, and its poses."""
    for name, response in optimised.responses.items():
        if str(response["response"]).partition(":")[0] == "frequency":
            return name, optimised.poses.get(name, [])
    return "", []


def _pose_text(pose: Any) -> str:
    if isinstance(pose, Mapping):
        return ", ".join(f"{key} = {value:.4g}" for key, value in pose.items())
    return pose if isinstance(pose, str) else "home"


def _map(robot: Robot, poses: Sequence[Any]) -> Figure | None:
    """Draw the map over the box of poses that lie in a plane of one or two coordinates; None without such a plane."""
    tables = [pose for pose in poses if isinstance(pose, Mapping)]
    if len(tables) < 2 or len(tables) < len(poses) or any(set(pose) != set(tables[0]) for pose in tables):
        return None
    ranges = {key: (min(pose[key] for pose in tables), max(pose[key] for pose in tables)) for key in tables[0]}
    along = [key for key, (low, high) in ranges.items() if high > low]
    if len(along) not in (1, 2):
        return None
    fixed = {key: low for key, (low, _) in ranges.items() if key not in along}
    return draw_map(frequency_map(robot, [(key, *ranges[key], CELLS) for key in along], fixed, modes=1), width=COLUMN)


def _front(front: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw both objectives of all designs of a front."""
    names = list(front[0]["objectives"])
    points = np.array([[design["objectives"][name] for name in names] for design in front])
    with drawing(None, 2.6, COLUMN) as figure:
        panel = figure.add_subplot()
        panel.plot(points[:, 1], points[:, 0], "o-", color=LINES[0], markersize=3.5, linewidth=1.0)
        panel.set_xlabel(names[1])
        panel.set_ylabel(names[0])
    return figure
