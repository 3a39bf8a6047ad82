"""Page of a design before and after its optimisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from parflex.design.grid import frequency_map
from parflex.design.optimise import Optimised
from parflex.errors import ParflexError
from parflex.io import write_text
from parflex.robot.robot import Robot
from parflex.statics.modes import natural_frequencies
from parflex.view.html import card, page, side_by_side, table
from parflex.view.map_figure import draw_map
from parflex.view.robot_figure import draw, draw_modes
from parflex.view.style import COLUMN, LINES, drawing

CELLS = 15  # of a map along each axis

MODES = 3


def write_design_page(optimised: Optimised, folder: str | Path) -> str:
    """The page of an optimisation, with its pictures beside it; gives its path."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    pictures = write_pictures(optimised, target)
    write_text(target / "index.html", _page(optimised, pictures))
    return str(target / "index.html")


def _page(optimised: Optimised, pictures: list[tuple[str, list[tuple[str, str]]]]) -> str:
    name = optimised.before.name
    cards = [card(title or "Robot", _shown(name, files)) for title, files in pictures]
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
    parts = [
        f"<p>{escape(optimised.message)}; {optimised.evaluations} designs computed.</p>",
        *cards[:1],
        card("Responses", table(responses, ["response", "", "before", "after", "unit", "change"])),
        card("Variables", table(variables, ["key", "before", "after", "lower", "upper"])),
    ]
    if limits:
        head = ["limit of", "value", "limit", "active", "objective per unit of the limit"]
        parts.append(card("Active limits", table(limits, head)))
    parts += cards[1:]
    modes = _modes(optimised.before), _modes(optimised.robot)
    if all(modes):
        rows = [(k + 1, a, b, _change(a, b)) for k, (a, b) in enumerate(zip(*modes, strict=False))]
        parts.append(card("Natural frequencies at home (Hz)", table(rows, ["mode", "before", "after", "change"])))
    return page(f"{name}: {optimised.status}", *parts)


def _shown(name: str, files: list[tuple[str, str]]) -> str:
    """Return pictures side by side with their captions."""
    return side_by_side(
        *(
            f'<img src="{file}" alt="{escape(f"{name}: {caption}")}" style="width:430px"><br>{escape(caption)}'
            for file, caption in files
        )
    )


def _modes(robot: Robot) -> list[float]:
    """Frequencies at home; none where nothing vibrates."""
    try:
        return [float(f) for f in natural_frequencies(robot).frequencies]
    except ParflexError:
        return []


def _change(before: float, after: float) -> str:
    return f"{100 * (after / before - 1):+.2f} %" if before else ""


def write_pictures(optimised: Optimised, folder: Path) -> list[tuple[str, list[tuple[str, str]]]]:
    """Pictures beside a page: titles, and under each the files with their captions."""
    name, poses = _vibrating(optimised)
    pose = optimised.responses[name]["pose"] if name else None
    shown: dict[str, list[tuple[str, str]]] = {"robot": [], "modes": [], "map": []}
    for robot, word in ((optimised.before, "before"), (optimised.robot, "after")):
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
    if optimised.front:
        _front(optimised.front, folder / "front.svg")
        result.append(("Pareto front", [("front.svg", "each point is a design")]))
    return result


def _vibrating(optimised: Optimised) -> tuple[str, Sequence[Any]]:
    """The first response that is a frequency, and its poses."""
    for name, response in optimised.responses.items():
        if str(response["response"]).partition(":")[0] == "frequency":
            return name, optimised.poses.get(name, [])
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
    result = frequency_map(robot, [(key, *ranges[key], CELLS) for key in along], fixed, modes=1)
    draw_map(result, path)
    return True


def _front(front: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Both objectives of all designs of a front."""
    names = list(front[0]["objectives"])
    points = np.array([[design["objectives"][name] for name in names] for design in front])
    with drawing(path, 2.6, COLUMN) as figure:
        axes = figure.add_subplot()
        axes.plot(points[:, 1], points[:, 0], "o-", color=LINES[0], markersize=3.5, linewidth=1.0)
        axes.set_xlabel(names[1])
        axes.set_ylabel(names[0])
