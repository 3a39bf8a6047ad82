"""The HTML report in one file: tables, figures and moving modes; it opens offline and prints.

A content security policy in the page allows its own style, by its hash, figures inside the page, and no script.
"""

from __future__ import annotations

import base64
import hashlib
import math
import platform
import re
from html import escape
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

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
from parflex.view.robot_figure import moving_mode

NAME = "index.html"
FEW = 12  # rows of a table that is shown open
INCHES = 2.6  # width of a moving mode
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
    quantities, steps = Quantities(), ["modes", *(paper.paper for paper in papers), "operators and speed"]

    def report_step(what: str) -> None:
        if progress:
            progress(steps.index(what), len(steps), f"report: {what}")

    report_step(steps[0])
    moving = {show.title: moving_modes(show, quantities) for paper in reversed(papers) for show in paper.shapes}
    sections = [_section("overview", "All numbers at a glance", _overview(checks))]
    for paper in papers:
        report_step(paper.paper)
        about = f"<p><em>{escape(paper.title)}.</em> {_text(paper.about)}</p>"
        groups = [_group(own) for own in _groups(checks, paper.paper) if own[0].group.verdict != FITTED]
        motions = [motion(show, quantities) for show in paper.motions if not quick]
        sections.append(_section(paper.paper, paper.paper, about, *groups, *motions, _errata(paper)))
    report_step(steps[-1])
    fitted = [_group(own, f"{own[0].paper}: ") for own in _groups(checks) if own[0].group.verdict == FITTED]
    if fitted:
        why = "<p>Parameters of these robots were chosen to match these numbers, so agreement proves little.</p>"
        sections.append(_section("fitted", "Fitted robots", why, *fitted))
    sections.append(peer_figure(quick))
    return _whole(_head(checks, papers, moving), "".join(sections))


def _section(key: str, title: str, *parts: str) -> str:
    return f'<h2 id="{key}">{escape(title)}</h2>{"".join(parts)}'


def _groups(checks: list[Check], paper: str | None = None) -> list[list[Check]]:
    """Return the checks of each group of a paper, or of all, in order."""
    chosen = [check for check in checks if paper in (None, check.paper)]
    return [list(own) for _, own in groupby(chosen, lambda check: (check.paper, check.group))]


def _whole(head: str, body: str) -> str:
    style = resources.files("parflex.reproduction").joinpath("page.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode()
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src "
    return (
        f"<!DOCTYPE html><!-- {MARK} {__version__} -->\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}\'sha256-{digest}\'">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>parflex: published and computed numbers</title><style>{style}</style></head>\n"
        f"<body>{head}<main>{body}</main>"
        f"<footer>Made by parflex {__version__} on Python {platform.python_version()}, {escape(platform.machine())}. "
        "The page is self-contained and loads nothing.</footer></body></html>\n"
    )


def _head(checks: list[Check], papers: list[Paper], moving: dict[str, str]) -> str:
    """Return the first screen: what is compared, how it came out, and the moving modes of a robot, others folded."""
    count = totals(checks)
    tiles = "".join(f'<li class="{status}"><b>{count[status]}</b>{escape(text)}</li>' for status, text in TILES.items())
    keys = ({"modes": "Moving modes"} if moving else {}) | {"overview": "All numbers"}
    keys |= {paper.paper: paper.paper for paper in papers}
    keys |= ({"fitted": "Fitted robots"} if count[FITTED] else {}) | {"others": "Other programs"}
    links = "".join(f'<li><a href="#{key}">{word}</a></li>' for key, word in keys.items())
    shown = [f"<h3>{escape(title)}</h3>{modes}" for title, modes in list(moving.items())[:1]]
    shown += [_folded(escape(title), modes) for title, modes in list(moving.items())[1:]]
    caption = "Vibration modes, motors locked (red), magnified and slowed; grey is the undeformed robot."
    figure = f'<figure id="modes">{"".join(shown)}<figcaption>{caption}</figcaption></figure>' if moving else ""
    return (
        f'<header class="top"><h1>{count[OK]} of {count[OK] + count[DIFFERS]} comparable published numbers agree</h1>'
        f'<p class="lead">parflex recomputes what {len(papers)} papers on parallel robots print: frequencies, joint '
        "values, operator counts, deflections. Each number is compared with its paper, with a tolerance and a reason."
        f'</p><ul class="tiles">{tiles}</ul>{figure}<nav aria-label="Parts"><ul>{links}</ul></nav></header>'
    )


def moving_modes(show: Show, quantities: Quantities) -> str:
    """Return the modes of a robot side by side, moving without a script; still if the reader prefers that."""
    modes, cells = quantities.modes_of(show.robot, show.pose, show.modes), []
    for k, (frequency, shares) in enumerate(zip(modes.frequencies, energy_shares(modes), strict=True)):
        label = f"{float(frequency):.2f} Hz"
        moving, still = map(svg_address, moving_mode(modes, k, INCHES))
        calm = f'<source media="(prefers-reduced-motion: reduce)" srcset="{still.replace(" ", "%20")}">'
        picture = f'<picture>{calm}<img alt="{escape(show.title)}: {label}" src="{moving}"></picture>'
        cells.append(f"<li>{picture}<b>{label}</b><small>{escape(shares['kind'] or '')}</small></li>")
    return f'<ul class="modes">{"".join(cells)}</ul>'


def _errata(paper: Paper) -> str:
    rows = "".join(
        f"<tr><td>{_text(e.where)}</td><td>{_text(e.meant)}</td><td>{escape(e.how)}</td></tr>" for e in paper.erratum
    )
    head = "<thead><tr><th>where</th><th>what is meant</th><th>how it is known</th></tr></thead>"
    table = f'<div class="scroll"><table>{head}<tbody>{rows}</tbody></table></div>'
    summary = f"{len(paper.erratum)} print errors and gaps of {paper.paper}, and what is meant"
    return _folded(summary, table) if rows else ""


def _folded(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>{content}</details>"


def _group(checks: list[Check], before: str = "") -> str:
    """Return a group of numbers: heading, reason, figure and table."""
    group = checks[0].group
    why = f"{_text(group.source)}. {_text(group.reason[:1].upper() + group.reason[1:])}."
    heading = f'<h3>{escape(before + group.title)}</h3><p class="why">{why}</p>'
    if checks[0].published is None:
        return f'{heading}<p class="verdict {checks[0].status}">{VERDICTS[checks[0].status]}</p>'
    figure, table = "", _table(checks)
    if group.figure and any(check.computed is not None for check in checks):
        if group.compare == "at most":
            figure = _figure(report_figures.limits(checks), "The dashed line is the limit of the paper.")
        else:
            figure = _figure(
                report_figures.comparison(checks),
                "Dots in rings are computed values at published ones. On the right, the difference relative to the "
                "tolerance: the band is the tolerance.",
            )
    return heading + figure + (table if len(checks) <= FEW else _folded(_summary(group, checks), table))


def _summary(group: Group, checks: list[Check]) -> str:
    passed = sum(check.status in (OK, FITTED) for check in checks)
    if group.verdict == NOT_REPRODUCIBLE:
        return f"all {len(checks)} numbers"
    if group.compare == "at most":
        return f"all {len(checks)} numbers: {passed} keep to the limit"
    largest = max(abs(check.difference) for check in checks if check.difference is not None)
    return f"all {len(checks)} numbers: {passed} within the tolerance, largest difference {largest:.2g}"


def _table(checks: list[Check]) -> str:
    unit = f" ({escape(checks[0].group.unit)})" if checks[0].group.unit else ""
    heads = "".join(
        f'<th class="n">{word}</th>' for word in (f"published{unit}", "computed", "difference", "tolerance")
    )
    rows = []
    for check in checks:
        at_most = "≤ " if check.group.compare == "at most" and check.status != NOT_REPRODUCIBLE else ""
        tolerance = "at most" if at_most and not check.tolerance else _number(check.tolerance, ".2g")
        values = at_most + _number(check.published), _number(check.computed), _number(check.difference, "+.2g")
        cells = "".join(f'<td class="n">{cell}</td>' for cell in (*values, tolerance))
        name = escape(", ".join(word for word in (check.row, check.name) if word) or "value")
        rows.append(f'<tr><td>{name}</td>{cells}<td class="verdict {check.status}">{VERDICTS[check.status]}</td></tr>')
    return (
        f'<div class="scroll"><table class="numbers"><thead><tr><th>quantity</th>{heads}<th>verdict</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _number(value: float | None, form: str = ".6g") -> str:
    if value is None:
        return ""
    text = f"{value:{'+d' if '+' in form else 'd'}}" if isinstance(value, int) else f"{value:{form}}"
    return ("0" if value == 0 else text).replace("-", "−")  # noqa: RUF001 - the minus sign, as wide as a digit


def _text(text: str) -> str:
    """Return words of the data files; text between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _figure(svg: str, caption: str) -> str:
    alt = escape(caption)
    return f'<figure><img alt="{alt}" src="{svg_address(svg)}"><figcaption>{alt}</figcaption></figure>'


def _overview(checks: list[Check]) -> str:
    known = [check for check in checks if check.difference is not None and check.status != NOT_REPRODUCIBLE]
    shares = [(check.paper, _share(check), check.status) for check in known]
    caption = "Each dot is a published number: the difference of the computed one relative to its tolerance."
    return _figure(report_figures.overview(shares), caption) if shares else ""


def _share(check: Check) -> float:
    """Return the difference relative to its tolerance."""
    difference, tolerance = check.difference or 0.0, check.tolerance or 0.0
    if check.group.compare == "at most":
        return 0.0 if difference <= tolerance else math.inf
    return abs(difference) / tolerance if tolerance else math.inf if difference else 0.0


def motion(show: Show, quantities: Quantities) -> str:
    """Return time series of a simulated motion."""
    run: Any = quantities.run(show.robot, show.motion or "", float(show.time), float(show.step), **show.options)
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
