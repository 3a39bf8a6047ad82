"""Figures of the report, each with its caption."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np

from parflex.reproduction import svg
from parflex.reproduction.checks import NOT_REPRODUCIBLE, Check
from parflex.reproduction.peers import operator_groups, speed_groups
from parflex.reproduction.published_tables import Show
from parflex.reproduction.quantities import Workshop
from parflex.reproduction.report_modes import mode_shapes


def _figure(drawn: str, caption: str) -> str:
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def all_checks(checks: list[Check]) -> str:
    """Every number that has a tolerance, as one figure."""
    rows: dict[str, list[tuple[str, float, str]]] = {}
    for check in checks:
        if check.status == NOT_REPRODUCIBLE or check.difference is None:
            continue
        rows.setdefault(check.paper, []).append((_told(check), _share(check), check.status))
    if not rows:
        return ""
    return _figure(
        svg.overview(list(rows.items())),
        "Every number that can be compared: how much of its tolerance the difference takes. Green agrees, amber was "
        "fitted, red differs; point at a dot to read it.",
    )


def _share(check: Check) -> float:
    difference = check.difference or 0.0
    if check.group.compare == "at most":
        return 0.0 if difference <= (check.tolerance or 0.0) else math.inf
    if not check.tolerance:
        return 0.0 if not difference else math.inf
    return abs(difference) / check.tolerance


def _told(check: Check) -> str:
    return f"{check.quantity}: published {check.published}, computed {check.computed:.6g}"


def group_figure(checks: list[Check]) -> str:
    """Published and computed numbers of a group."""
    rows: dict[str, list[tuple[float, float, float, str]]] = {}
    for check in checks:
        if check.published is not None and check.computed is not None:
            entry = (float(check.published), float(check.computed), float(check.tolerance or 0), check.status)
            rows.setdefault(check.row or check.group.title, []).append(entry)
    if not rows:
        return ""
    group = checks[0].group
    if group.compare == "at most":
        curves = [(name, np.array([computed for _, computed, *_ in row])) for name, row in rows.items()]
        limit = next(iter(rows.values()))[0][0]
        drawn = svg.below(group.title, "computed, beside the limit", list(group.names), limit, curves)
        return _figure(drawn, f"{group.title}. The dashed line is the limit.")
    named = [(name if len(rows) > 1 else "", row) for name, row in rows.items()]
    return _figure(
        svg.comparison(group.title, group.unit, named),
        f"{group.title}: a dot in its ring is a computed value where the paper has one; on the right the same "
        "differences, enlarged until the tolerance fills the band.",
    )


def moving_modes(shows: list[Show], workshop: Workshop) -> tuple[str, list[dict[str, Any]]]:
    """Robots whose modes can be played, beside small pictures of them; and the numbers that the script plays."""
    players = [mode_shapes(show, workshop) for show in shows]
    if not players:
        return "", []
    choices, pictures = [], []
    for number, player in enumerate(players):
        title = escape(player["title"])
        choices.append(f'<button type="button" class="robot" aria-pressed="{_truth(number == 0)}">{title}</button>')
        stills = "".join(
            f'<button type="button" class="still" aria-pressed="{_truth(k == 0)}">{picture}'
            f"<b>{escape(label)}</b><small>{escape(kind)}</small></button>"
            for k, (label, kind, picture) in enumerate(player.pop("stills"))
        )
        pictures.append(
            f'<div class="robot-modes"><h3>{title}</h3><div class="stills" role="group" aria-label="Modes of {title}">'
            f"{stills}</div></div>"
        )
    return (
        '<h2 id="modes">Modes that move</h2><figure>'
        f'<div class="robots" role="group" aria-label="Robots">{"".join(choices)}</div><div class="modes"><div>'
        '<div class="stage"><canvas tabindex="0" role="img" aria-label="A mode of a robot"></canvas><output></output>'
        '</div><div class="tools"><button type="button" class="pause">Pause</button>'
        '<label>amplitude <input type="range" class="reach" min="1" max="25" value="9"></label></div>'
        "<noscript><p>The modes move by a small script in this page; the pictures do without.</p></noscript></div>"
        f"<div>{''.join(pictures)}</div></div>"
        "<figcaption>Drag to turn, choose a mode by its picture, or take the arrow keys, + and -, and the space bar. "
        "Motors are locked; grey is the robot at rest, undeformed, held at the squares; orange is what moves most. "
        "Amplitudes are far larger than real ones, and all modes are slowed to the same pace.</figcaption></figure>",
        players,
    )


def _truth(value: bool) -> str:
    return "true" if value else "false"


def motion(show: Show, workshop: Workshop) -> str:
    """Time series of a simulated motion."""
    if show.motion is None:
        return ""
    run = workshop.run(show.robot, show.motion, float(show.time), float(show.step), **show.options)
    drawn = "".join(
        svg.series(f"{show.title}: {label}", label, run.t, [(name, np.asarray(run[name])) for name in columns])
        for label, columns in show.series.items()
    )
    return _figure(
        drawn,
        f"{show.title}: {show.time:g} s, computed in {run.seconds:.2f} s of the time loop, with all of its robot "
        "file. The paper shows these quantities as curves without digits, of motions that it does not give in full.",
    )


def beside_others(quick: bool = False) -> str:
    """Operators of models, and times unless it is quick, beside those of others."""
    operators = svg.bars("Operators", "operators + - * / of one call", operator_groups())
    counted = '<h2 id="others">Beside others</h2>' + _figure(operators, "Operators of models beside published ones.")
    if quick:
        return counted
    speed = svg.bars("Time of a state", "microseconds a state, this machine", speed_groups())
    return (
        counted + "<p>Times are those of this machine while it made this page, "
        "with whatever else it was doing: best of five rounds, one thread, 512 states a call. Pinocchio is called "
        "state by state from Python, and what such a call costs on an empty model is taken off; CasADi and NumPy run "
        "the same program that parflex compiles. A library that is not installed is left out.</p>"
        + _figure(speed, "Time of one state. The benchmarks of the repository compare more carefully.")
    )
