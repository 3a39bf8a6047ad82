"""The HTML report in one file: tables, figures and moving modes; it opens offline and prints.

A content security policy in the page allows its own script and style, by their hashes, and no address outside the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import platform
import re
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from parflex import __version__
from parflex.errors import InputError
from parflex.io import MARK, check_generated, write_generated
from parflex.reproduction import svg
from parflex.reproduction.checks import DIFFERS, FITTED, NOT_REPRODUCIBLE, OK, Check, ProgressCallback, totals
from parflex.reproduction.peers import operator_groups, speed_groups
from parflex.reproduction.quantities import ReproductionCache
from parflex.reproduction.tables import Paper, Show, read_paper
from parflex.statics.modes import energy_shares
from parflex.view.robot_figure import angles_of_view, view
from parflex.view.skeleton import mode_shape_points

NAME = "index.html"

FEW = 12  # rows of a table that is shown open

VERDICTS = {OK: "✓ ok", DIFFERS: "≠ differs", FITTED: "~ fitted", NOT_REPRODUCIBLE: "· not reproducible"}

TILES = {
    OK: "agree within their tolerances",
    DIFFERS: "differ",
    FITTED: "agree because parameters were fitted to them",
    NOT_REPRODUCIBLE: "cannot be reproduced; each says why",
}

Array = np.ndarray

DIGITS = 4  # of a metre: a tenth of a millimetre is less than a pixel

BENT = 0.09  # largest displacement in a small picture, of the size of the robot


def check_folder(folder: str | Path) -> None:
    """Refuse a folder that cannot take the page, before anything is computed."""
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InputError("is not a folder", file=str(folder), key="report", hint="name a folder for the page")
    check_generated(folder, [NAME], "report")


def write_report(
    folder: str | Path, checks: list[Check], quick: bool = False, progress: ProgressCallback | None = None
) -> Path:
    """Write the page whole or not at all; foreign files are not replaced. Returns the path of the page."""
    check_folder(folder)
    return write_generated(folder, {NAME: page(checks, quick, progress)}, "report")[0]


def page(checks: list[Check], quick: bool = False, progress: ProgressCallback | None = None) -> str:
    """The text of the page; a quick one has no simulated motions and no times."""
    papers = [read_paper(name) for name in dict.fromkeys(check.paper for check in checks)]
    store, steps = ReproductionCache(), len(papers) + 2

    def say(done: int, what: str) -> None:
        if progress:
            progress(done, steps, f"report: {what}")

    say(0, "modes")
    modes, players = mode_animations([show for paper in reversed(papers) for show in paper.shapes], store)
    sections = [modes]
    for k, paper in enumerate(papers):
        say(k + 1, paper.paper)
        sections.append(_paper(paper, [check for check in checks if check.paper == paper.paper]))
        sections += [motion(show, store) for show in paper.motions if not quick]
        sections.append(_errata(paper))
    say(steps - 1, "operators and speed")
    sections += [_fitted(checks), peer_figure(quick)]
    return _whole(_head(checks, papers), "".join(sections), players)


def _whole(head: str, body: str, players: list[dict[str, Any]]) -> str:
    style, script = (_own(name) for name in ("page.css", "page.js"))
    hashes = f"style-src '{digest(style)}'; script-src '{digest(script)}'"
    policy = f"default-src 'none'; {hashes}; base-uri 'none'; form-action 'none'"
    data = json.dumps(players, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    return (
        f"<!DOCTYPE html><!-- {MARK} {__version__} -->\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>parflex: published and computed numbers</title><style>{style}</style></head>\n"
        f"<body>{head}<main>{body}</main>"
        f"<footer>Made by parflex {__version__} on Python {platform.python_version()}, {escape(platform.machine())}. "
        "The page is self-contained and loads nothing.</footer>"
        f'<script type="application/json" id="mode-data">{data}</script>\n<script>{script}</script></body></html>\n'
    )


def _own(name: str) -> str:
    return resources.files("parflex.reproduction").joinpath(name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """The hash by which a content policy allows a script or a style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()


def _head(checks: list[Check], papers: list[Paper]) -> str:
    count = totals(checks)
    tiles = "".join(f'<li class="{status}"><b>{count[status]}</b>{escape(text)}</li>' for status, text in TILES.items())
    parts = {"modes": "Modes that move"} if any(paper.shapes for paper in papers) else {}
    parts |= {paper.paper: paper.paper for paper in papers} | ({"fitted": "Fitted robots"} if count[FITTED] else {})
    links = "".join(
        f'<li><a href="#{key}">{word}</a></li>' for key, word in {**parts, "others": "Beside others"}.items()
    )
    return (
        '<header class="top"><h1>Published and computed, side by side</h1>'
        '<p class="lead">Every number that the papers print, computed anew by parflex from its robot files, with the '
        "difference, the tolerance and its reason. What cannot be reproduced is listed as well.</p>"
        f'<ul class="tiles">{tiles}</ul>{overview_figure(checks)}'
        f'<nav aria-label="Parts"><ul>{links}</ul></nav></header>'
    )


def _paper(paper: Paper, checks: list[Check]) -> str:
    about = f"<p><em>{escape(paper.title)}.</em> {_text(paper.about)}</p>"
    groups = [group for group in paper.group if group.verdict != FITTED]
    checks_by_group = [[check for check in checks if check.group == group] for group in groups]
    return f'<h2 id="{paper.paper}">{paper.paper}</h2>{about}' + "".join(
        _group(group_checks) for group_checks in checks_by_group if group_checks
    )


def _errata(paper: Paper) -> str:
    if not paper.erratum:
        return ""
    rows = "".join(
        f"<tr><td>{_text(e.where)}</td><td>{_text(e.meant)}</td><td>{escape(e.how)}</td></tr>" for e in paper.erratum
    )
    return (
        f"<details><summary>{len(paper.erratum)} print errors and gaps of {paper.paper}, and what is meant</summary>"
        '<div class="scroll"><table><thead><tr><th>where</th><th>what is meant</th><th>how it is known</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div></details>"
    )


def _fitted(checks: list[Check]) -> str:
    groups = [c.group for c in checks if c.group.verdict == FITTED]
    if not groups:
        return ""
    unique = [group for k, group in enumerate(groups) if group not in groups[:k]]
    tables = "".join(
        _group([c for c in checks if c.group == group], f"{_paper_of(checks, group)}: ") for group in unique
    )
    return (
        '<h2 id="fitted">Fitted robots</h2><p>Parameters of these robots were chosen to give these numbers, '
        f"so agreement proves little; they stand apart for that reason.</p>{tables}"
    )


def _paper_of(checks: list[Check], group: Any) -> str:
    return next(check.paper for check in checks if check.group == group)


def _group(checks: list[Check], before: str = "") -> str:
    """A group of numbers: heading, reason, figure and table."""
    group = checks[0].group
    why = f"{_text(group.source)}. {_text(_sentence(group.reason))}"
    heading = f'<h3>{escape(before + group.title)}</h3><p class="why">{why}</p>'
    if checks[0].published is None:
        return f'{heading}<p class="verdict {checks[0].status}">{VERDICTS[checks[0].status]}</p>'
    drawn = group_figure(checks) if group.figure else ""
    table = _table(checks)
    if len(checks) > FEW:
        table = f"<details><summary>{_said(checks)}</summary>{table}</details>"
    return heading + drawn + table


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _said(checks: list[Check]) -> str:
    passed = sum(check.status in (OK, FITTED) for check in checks)
    if checks[0].group.verdict == NOT_REPRODUCIBLE:
        return f"all {len(checks)} numbers"
    if checks[0].group.compare == "at most":
        return f"all {len(checks)} numbers: {passed} keep to the limit"
    largest = max(abs(check.difference) for check in checks if check.difference is not None)
    return f"all {len(checks)} numbers: {passed} within the tolerance, largest difference {largest:.2g}"


def _table(checks: list[Check]) -> str:
    rows = "".join(
        f"<tr><td>{escape(_name(check))}</td>"
        + "".join(f'<td class="n">{cell}</td>' for cell in _cells(check))
        + f'<td class="verdict {check.status}">{VERDICTS[check.status]}</td></tr>'
        for check in checks
    )
    unit = f" ({escape(checks[0].group.unit)})" if checks[0].group.unit else ""
    heads = "".join(
        f'<th class="n">{word}</th>' for word in (f"published{unit}", "computed", "difference", "tolerance")
    )
    return (
        f'<div class="scroll"><table class="numbers"><thead><tr><th>quantity</th>{heads}<th>verdict</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _name(check: Check) -> str:
    return ", ".join(word for word in (check.row, check.name) if word) or "value"


def _cells(check: Check) -> list[str]:
    at_most = "≤ " if check.group.compare == "at most" and check.status != NOT_REPRODUCIBLE else ""
    tolerance = "at most" if at_most and not check.tolerance else _number(check.tolerance, 2)
    return [
        at_most + _number(check.published),
        _number(check.computed),
        _number(check.difference, 2, sign=True),
        tolerance,
    ]


def _number(value: float | None, digits: int = 6, sign: bool = False) -> str:
    if value is None:
        return ""
    before = "+" if sign and value > 0 else ""
    text = before + (str(value) if isinstance(value, int) else f"{value:.{digits}g}")
    return text.replace("-", "−")  # noqa: RUF001 - the minus sign, as wide as a digit


def _text(text: str) -> str:
    """Words of the data files: what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _figure(drawn: str, caption: str) -> str:
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def overview_figure(checks: list[Check]) -> str:
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


def mode_animations(shows: list[Show], store: ReproductionCache) -> tuple[str, list[dict[str, Any]]]:
    """Robots whose modes can be played, beside small pictures of them; and the numbers that the script plays."""
    players = [mode_shapes(show, store) for show in shows]
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


def motion(show: Show, store: ReproductionCache) -> str:
    """Time series of a simulated motion."""
    if show.motion is None:
        return ""
    run = store.run(show.robot, show.motion, float(show.time), float(show.step), **show.options)
    drawn = "".join(
        svg.series(f"{show.title}: {label}", label, run.t, [(name, np.asarray(run[name])) for name in columns])
        for label, columns in show.series.items()
    )
    return _figure(
        drawn,
        f"{show.title}: {show.time:g} s, computed in {run.seconds:.2f} s of the time loop, with all of its robot "
        "file. The paper shows these quantities as curves without digits, of motions that it does not give in full.",
    )


def peer_figure(quick: bool = False) -> str:
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


def mode_shapes(show: Show, store: ReproductionCache) -> dict[str, Any]:
    """What the page's script plays: plain numbers, and a small picture of each mode."""
    computed_modes = store.modes(show.robot, show.pose, show.modes)
    configuration = computed_modes.model.configuration
    kinds = [shares["kind"] for shares in energy_shares(computed_modes)]
    modes, stills, first = [], [], None
    turn, tilt = angles_of_view(configuration.robot)
    rows = view(turn, tilt)
    for k, (frequency, mode) in enumerate(zip(computed_modes.frequencies, computed_modes.shapes.T, strict=True)):
        shape = mode_shape_points(configuration.robot, configuration, mode)
        first = first or shape
        label = f"{frequency:.2f} Hz"
        tooltip = f"{show.title}: mode {k + 1}, {label}" + (f", {kinds[k]}" if kinds[k] else "")
        modes.append({"hz": round(float(frequency), 4), "kind": kinds[k], "shape": _flat(shape.shape)})
        fine = [kind == "plate" for kind in shape.kinds]
        picture = svg.still(shape.points, shape.shape, shape.edges, fine, BENT * shape.size, rows, tooltip)
        stills.append((label, kinds[k] or "", picture))
    assert first is not None
    return {
        "title": show.title,
        "view": [turn, tilt],
        "size": round(first.size, DIGITS),
        "points": _flat(first.points),
        "edges": [int(k) for k in np.asarray(first.edges).ravel()],
        "kinds": first.kinds,
        "modes": modes,
        "stills": stills,
    }


def _flat(values: Array) -> list[float]:
    return [float(value) + 0.0 for value in np.round(values, DIGITS).ravel()]
