"""The HTML report in one file: tables, figures and moving modes; it opens offline and prints.

A content security policy in the page allows its own script and style, by their hashes, figures inside the page, and no
address outside it.
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
from parflex.reproduction import report_figures
from parflex.reproduction.checks import DIFFERS, FITTED, NOT_REPRODUCIBLE, OK, Check, ProgressCallback, totals
from parflex.reproduction.peers import operator_groups, speed_groups
from parflex.reproduction.quantities import Quantities
from parflex.reproduction.tables import Group, Paper, Show, read_paper
from parflex.statics.modes import energy_shares
from parflex.view.html import svg_address
from parflex.view.robot_figure import TILT, TURN, drawable_mode, mode_picture
from parflex.view.skeleton import skeleton

NAME = "index.html"
FEW = 12  # rows of a table that is shown open
DIGITS = 4  # of a metre: a tenth of a millimetre is less than a pixel
VERDICTS = {OK: "✓ agrees", DIFFERS: "≠ differs", FITTED: "~ fitted", NOT_REPRODUCIBLE: "· not reproducible"}
TILES = {
    OK: "agree with their papers",
    DIFFERS: "differ",
    FITTED: "were fitted, so they prove little",
    NOT_REPRODUCIBLE: "cannot be reproduced; each says why",
}


def check_folder(folder: str | Path) -> None:
    """Refuse a folder that cannot take the page, before anything is computed."""
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InputError("is not a folder", file=str(folder), key="report", hint="name a folder for the page")
    check_generated(folder, [NAME], "report")


def write_report(
    folder: str | Path, checks: list[Check], quick: bool = False, progress: ProgressCallback | None = None
) -> Path:
    """Write the page atomically and return its path; files of others are not replaced."""
    check_folder(folder)
    return write_generated(folder, {NAME: page(checks, quick, progress)}, "report")[0]


def page(checks: list[Check], quick: bool = False, progress: ProgressCallback | None = None) -> str:
    """Return the text of the page; a quick one has no simulated motions and no times."""
    papers = [read_paper(name) for name in dict.fromkeys(check.paper for check in checks)]
    quantities, steps = Quantities(), len(papers) + 2

    def report_step(done: int, what: str) -> None:
        if progress:
            progress(done, steps, f"report: {what}")

    report_step(0, "modes")
    players = [player(show, quantities) for paper in reversed(papers) for show in paper.shapes]
    sections = [_section("overview", "All numbers at a glance", _overview(checks))]
    for k, paper in enumerate(papers):
        report_step(k + 1, paper.paper)
        groups = [_group(group, own) for group, own in _groups(checks, paper.paper) if group.verdict != FITTED]
        motions = [motion(show, quantities) for show in paper.motions if not quick]
        about = f"<p><em>{escape(paper.title)}.</em> {_text(paper.about)}</p>"
        sections.append(_section(paper.paper, paper.paper, about, *groups, *motions, _errata(paper)))
    report_step(steps - 1, "operators and speed")
    fitted = [(group, own) for group, own in _groups(checks) if group.verdict == FITTED]
    if fitted:
        why = "<p>Parameters of these robots were chosen to match these numbers, so agreement proves little.</p>"
        tables = (_group(group, own, f"{own[0].paper}: ") for group, own in fitted)
        sections.append(_section("fitted", "Fitted robots", why, *tables))
    sections.append(peer_figure(quick))
    return _whole(_head(checks, papers, players), "".join(sections), players)


def _section(key: str, title: str, *parts: str) -> str:
    return f'<h2 id="{key}">{escape(title)}</h2>{"".join(parts)}'


def _groups(checks: list[Check], paper: str | None = None) -> list[tuple[Group, list[Check]]]:
    """Return the groups of a paper, or of all, with their checks, in order."""
    groups: list[tuple[Group, list[Check]]] = []
    for check in checks:
        if paper in (None, check.paper):
            if not groups or groups[-1][1][0].group != check.group or groups[-1][1][0].paper != check.paper:
                groups.append((check.group, []))
            groups[-1][1].append(check)
    return groups


def _whole(head: str, body: str, players: list[dict[str, Any]]) -> str:
    style, script = (
        resources.files("parflex.reproduction").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js")
    )
    hashes = f"style-src '{digest(style)}'; script-src '{digest(script)}'; img-src data:"
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


def digest(text: str) -> str:
    """Return the hash by which a content policy allows a script or a style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()


def _head(checks: list[Check], papers: list[Paper], players: list[dict[str, Any]]) -> str:
    """Return the first screen: what is compared, how it came out, and a moving mode."""
    count = totals(checks)
    compared = count[OK] + count[DIFFERS]
    tiles = "".join(f'<li class="{status}"><b>{count[status]}</b>{escape(text)}</li>' for status, text in TILES.items())
    keys = {"modes": "Moving modes"} if players else {}
    keys |= {"overview": "All numbers"} | {paper.paper: paper.paper for paper in papers}
    keys |= ({"fitted": "Fitted robots"} if count[FITTED] else {}) | {"others": "Other programs"}
    links = "".join(f'<li><a href="#{key}">{word}</a></li>' for key, word in keys.items())
    return (
        f'<header class="top"><h1>{count[OK]} of {compared} comparable published numbers agree</h1>'
        f'<p class="lead">parflex recomputes what {len(papers)} papers on parallel robots print: frequencies, joint '
        "values, operator counts, deflections. Each number is compared with its paper, with a tolerance and a reason."
        f'</p><ul class="tiles">{tiles}</ul>{_animations(players)}'
        f'<nav aria-label="Parts"><ul>{links}</ul></nav></header>'
    )


def _errata(paper: Paper) -> str:
    rows = "".join(
        f"<tr><td>{_text(e.where)}</td><td>{_text(e.meant)}</td><td>{escape(e.how)}</td></tr>" for e in paper.erratum
    )
    table = f"<thead><tr><th>where</th><th>what is meant</th><th>how it is known</th></tr></thead><tbody>{rows}</tbody>"
    summary = f"{len(paper.erratum)} print errors and gaps of {paper.paper}, and what is meant"
    return _folded(summary, f'<div class="scroll"><table>{table}</table></div>') if rows else ""


def _folded(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>{content}</details>"


def _group(group: Group, checks: list[Check], before: str = "") -> str:
    """Return a group of numbers: heading, reason, figure and table."""
    why = f"{_text(group.source)}. {_text(group.reason[:1].upper() + group.reason[1:])}."
    heading = f'<h3>{escape(before + group.title)}</h3><p class="why">{why}</p>'
    if checks[0].published is None:
        return f'{heading}<p class="verdict {checks[0].status}">{VERDICTS[checks[0].status]}</p>'
    table = _table(checks)
    figure = ""
    if group.figure and any(check.computed is not None for check in checks):
        limit = group.compare == "at most"
        caption = "The dashed line is the limit of the paper." if limit else (
            "Dots in rings are computed values at published ones. On the right, the difference relative to the "
            "tolerance: the band is the tolerance."
        )  # fmt: skip
        figure = _figure((report_figures.limits if limit else report_figures.comparison)(checks), caption)
    return heading + figure + (table if len(checks) <= FEW else _folded(_summary(checks), table))


def _summary(checks: list[Check]) -> str:
    passed = sum(check.status in (OK, FITTED) for check in checks)
    if checks[0].group.verdict == NOT_REPRODUCIBLE:
        return f"all {len(checks)} numbers"
    if checks[0].group.compare == "at most":
        return f"all {len(checks)} numbers: {passed} keep to the limit"
    largest = max(abs(check.difference) for check in checks if check.difference is not None)
    return f"all {len(checks)} numbers: {passed} within the tolerance, largest difference {largest:.2g}"


def _table(checks: list[Check]) -> str:
    rows = "".join(
        f"<tr><td>{escape(', '.join(word for word in (check.row, check.name) if word) or 'value')}</td>"
        + "".join(f'<td class="n">{cell}</td>' for cell in _cells(check))
        + f'<td class="verdict {check.status}">{VERDICTS[check.status]}</td></tr>'
        for check in checks
    )
    unit = f" ({escape(checks[0].group.unit)})" if checks[0].group.unit else ""
    words = (f"published{unit}", "computed", "difference", "tolerance")
    heads = "".join(f'<th class="n">{word}</th>' for word in words)
    return (
        f'<div class="scroll"><table class="numbers"><thead><tr><th>quantity</th>{heads}<th>verdict</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cells(check: Check) -> list[str]:
    at_most = "≤ " if check.group.compare == "at most" and check.status != NOT_REPRODUCIBLE else ""
    tolerance = "at most" if at_most and not check.tolerance else _number(check.tolerance, 2)
    difference = _number(check.difference, 2, sign=True)
    return [at_most + _number(check.published), _number(check.computed), difference, tolerance]


def _number(value: float | None, digits: int = 6, sign: bool = False) -> str:
    if value is None:
        return ""
    before = "+" if sign and value > 0 else ""
    text = before + (str(value) if isinstance(value, int) else f"{value:.{digits}g}")
    return text.replace("-", "−")  # noqa: RUF001 - the minus sign, as wide as a digit


def _text(text: str) -> str:
    """Return words of the data files: what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{_image(svg, caption)}<figcaption>{escape(caption)}</figcaption></figure>"


def _image(svg: str, caption: str) -> str:
    return f'<img alt="{escape(caption)}" src="{svg_address(svg)}">'


def _overview(checks: list[Check]) -> str:
    shares = [(check.paper, _share(check), check.status) for check in checks if check.difference is not None]
    shares = [entry for entry in shares if entry[2] != NOT_REPRODUCIBLE]
    caption = "Each dot is a published number: the difference of the computed one relative to its tolerance."
    return _figure(report_figures.overview(shares), caption) if shares else ""


def _share(check: Check) -> float:
    """Return how much of its tolerance a difference takes."""
    difference = check.difference or 0.0
    if check.group.compare == "at most":
        return 0.0 if difference <= (check.tolerance or 0.0) else math.inf
    return abs(difference) / check.tolerance if check.tolerance else math.inf if difference else 0.0


def _animations(players: list[dict[str, Any]]) -> str:
    """Return robots whose modes can be played, beside small pictures of the modes."""
    if not players:
        return ""
    choices, pictures = [], []
    for number, item in enumerate(players):
        title = escape(item["title"])
        choices.append(f'<button type="button" class="robot" aria-pressed="{_truth(number == 0)}">{title}</button>')
        stills = "".join(
            f'<button type="button" class="still" aria-pressed="{_truth(k == 0)}">'
            f"{_image(picture, f'{title}: {label}')}<b>{label}</b><small>{escape(kind)}</small></button>"
            for k, (label, kind, picture) in enumerate(item.pop("stills"))
        )
        group = f'<div class="stills" role="group" aria-label="Modes of {title}">{stills}</div>'
        pictures.append(f'<div class="robot-modes"><h3>{title}</h3>{group}</div>')
    return (
        '<figure id="modes">'
        f'<div class="robots" role="group" aria-label="Robots">{"".join(choices)}</div><div class="modes"><div>'
        '<div class="stage"><canvas tabindex="0" role="img" aria-label="A mode of a robot"></canvas><output></output>'
        '</div><div class="tools"><button type="button" class="pause">Pause</button>'
        '<label>amplitude <input type="range" class="reach" min="1" max="25" value="9"></label></div>'
        "<noscript><p>The modes move by a small script in this page; the pictures do without.</p></noscript></div>"
        f"<div>{''.join(pictures)}</div></div>"
        "<figcaption>Vibration modes, motors locked (red), magnified and slowed. Drag to turn, choose a mode by its "
        "picture, or use the arrow keys, + and -, and the space bar.</figcaption></figure>"
    )


def _truth(value: bool) -> str:
    return "true" if value else "false"


def motion(show: Show, quantities: Quantities) -> str:
    """Return time series of a simulated motion."""
    assert show.motion is not None
    run = quantities.run(show.robot, show.motion, float(show.time), float(show.step), **show.options)
    return _figure(
        report_figures.series(show, run),
        f"{show.title}: {show.time:g} s, computed in {run.seconds:.2f} s of the time loop. The paper shows these "
        "quantities as curves without digits, of motions that it does not give in full.",
    )


def peer_figure(quick: bool = False) -> str:
    """Return operator counts, and times unless it is quick, of parflex and of other programs."""
    words = "<p>How much arithmetic does one call of a robot model take? Fewer operators mean faster control.</p>"
    counted = report_figures.bars("operators + - * / of one call", operator_groups())
    parts = [words, _figure(counted, "Operators of models that parflex generates, and of published ones.")]
    if not quick:
        parts += [
            "<p>How long does one call take? CasADi and NumPy run the program that parflex compiles, Pinocchio its own "
            "recursion. Measured while this page was made: best of five rounds, one thread, 512 states; the overhead "
            "of calling Pinocchio from Python is subtracted. Programs that are not installed are left out.</p>",
            _figure(report_figures.bars("microseconds for one state", speed_groups()), "Time of one state."),
        ]
    return _section("others", "Other programs", *parts)


def player(show: Show, quantities: Quantities) -> dict[str, Any]:
    """Return what the script of the page plays: plain numbers, and a small picture of each mode."""
    found = quantities.modes_of(show.robot, show.pose, show.modes)
    robot = found.model.robot
    bones, kinds = skeleton(robot), [shares["kind"] or "" for shares in energy_shares(found)]
    shapes = [drawable_mode(found, k) for k in range(len(kinds))]
    labels = [f"{float(frequency):.2f} Hz" for frequency in found.frequencies]
    joints = [mark for mark in bones.marks if mark.kind != "end"]
    return {
        "title": show.title,
        "view": [0.0, 90.0] if robot.tree.planar or not np.ptp(shapes[0].points[bones.body, 2]) else [TURN, TILT],
        "size": round(shapes[0].size, DIGITS),
        "points": _flat(shapes[0].points),
        "edges": [int(k) for k in shapes[0].edges.ravel()],
        "kinds": shapes[0].kinds,
        "faces": [[*map(int, face.corners)] for face in bones.faces],
        "joints": [[int(mark.point), "gmj"[1 if mark.motor else 2 * (mark.kind != "ground")]] for mark in joints],
        "modes": [
            {"hz": round(float(frequency), 4), "kind": kind, "shape": _flat(shape.shape)}
            for frequency, kind, shape in zip(found.frequencies, kinds, shapes, strict=True)
        ],
        "stills": [(labels[k], kinds[k], mode_picture(found, k, 1.7)[0]) for k in range(len(labels))],
    }


def _flat(values: np.ndarray) -> list[float]:
    return [float(value) + 0.0 for value in np.round(values, DIGITS).ravel()]
