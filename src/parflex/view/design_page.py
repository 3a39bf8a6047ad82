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
from parflex.view.map_figure import draw_map
from parflex.view.robot_figure import draw, draw_modes
from parflex.view.style import COLUMN, LINES, drawing

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1f2430; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .25rem .9rem .25rem 0; text-align: left; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.active td { font-weight: 600; } th { border-bottom: 1px solid #b4bac4; font-weight: 600; }
.both { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; } .both img { width: 100%; }
figure { margin: 0; } figcaption { color: #5a6270; }
"""

CELLS = 15  # of a map along each axis

MODES = 3


def write_design_page(optimised: Optimised, folder: str | Path) -> str:
    """The page of an optimisation, with its pictures beside it; gives its path."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    pictures = write_pictures(optimised, target)
    page = target / "index.html"
    write_text(page, _page(optimised, pictures))
    return str(page)


def _page(optimised: Optimised, pictures: list[tuple[str, list[tuple[str, str]]]]) -> str:
    name = escape(optimised.before.name)
    parts = [
        f"<h1>{name}: {escape(optimised.status)}</h1>",
        f"<p>{escape(optimised.message)}; {optimised.evaluations} designs computed.</p>",
        *_shown(name, pictures[:1]),
        "<h2>Responses</h2>",
        _table(
            ["response", "", "before", "after", "unit", "change"],
            [
                (
                    key,
                    entry["response"],
                    entry["before"],
                    entry["after"],
                    entry["unit"],
                    _change(entry["before"], entry["after"]),
                )
                for key, entry in optimised.responses.items()
            ],
        ),
        "<h2>Variables</h2>",
        _table(
            ["key", "before", "after", "lower", "upper"],
            [
                (key, entry["start"], entry["value"], entry["lower"], entry["upper"])
                for key, entry in optimised.variables.items()
            ],
        ),
    ]
    bounds = [(key, entry) for key, entry in optimised.variables.items() if entry["at"]]
    if optimised.constraints or bounds:
        words = ["limit of", "value", "limit", "active", "objective per unit of the limit"]
        rows = [
            (entry["name"], entry["value"], entry["limit"], "yes" if entry["active"] else "", entry["multiplier"])
            for entry in optimised.constraints
        ]
        rows += [
            (f"{key} ({entry['at']})", entry["value"], entry[entry["at"]], "yes", entry["multiplier"])
            for key, entry in bounds
        ]
        parts += ["<h2>What holds it back</h2>", _table(words, rows, [row[3] == "yes" for row in rows])]
    parts += _shown(name, pictures[1:])
    modes = _modes(optimised.before), _modes(optimised.robot)
    if all(modes):
        lines: list[tuple[Any, ...]] = [
            (k + 1, a, b, _change(a, b)) for k, (a, b) in enumerate(zip(*modes, strict=False))
        ]
        parts += ["<h2>Natural frequencies at home (Hz)</h2>", _table(["mode", "before", "after", "change"], lines)]
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _shown(name: str, pictures: list[tuple[str, list[tuple[str, str]]]]) -> list[str]:
    """Pictures side by side under their titles."""
    parts: list[str] = []
    for title, files in pictures:
        parts += [f"<h2>{escape(title)}</h2>"] if title else []
        parts += ['<div class="both">']
        parts += [
            f'<figure><img src="{file}" alt="{name}: {word}"><figcaption>{word}</figcaption></figure>'
            for file, word in ((file, escape(caption)) for file, caption in files)
        ]
        parts += ["</div>"]
    return parts


def _modes(robot: Robot) -> list[float]:
    """Frequencies at home; none where nothing vibrates."""
    try:
        return [float(f) for f in natural_frequencies(robot).frequencies]
    except ParflexError:
        return []


def _change(before: float, after: float) -> str:
    return f"{100 * (after / before - 1):+.2f} %" if before else ""


def _table(head: list[str], rows: list[tuple[Any, ...]], strong: list[bool] | None = None) -> str:
    numeric = [bool(rows) and all(isinstance(row[k], int | float) for row in rows) for k in range(len(head))]
    kinds = [' class="number"' if is_number else "" for is_number in numeric]
    top = "".join(f"<th{kind}>{escape(word)}</th>" for word, kind in zip(head, kinds, strict=True))
    lines = []
    for number, row in enumerate(rows):
        cells = "".join(f"<td{kind}>{_cell(value)}</td>" for value, kind in zip(row, kinds, strict=True))
        lines.append(f"<tr{' class=active' if strong and strong[number] else ''}>{cells}</tr>")
    return f"<table><tr>{top}</tr>{''.join(lines)}</table>"


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))


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
