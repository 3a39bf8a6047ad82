"""One page of HTML with everything in it: tables, figures and modes that move. It opens offline and prints well.

A content policy in the page allows its own script and its own style, by their hashes, and nothing else: no address
outside the page can be reached from it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import re
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from parflex import __version__
from parflex.codegen.source_files import MARK, write_files
from parflex.errors import InputError
from parflex.reproduction import report_figures
from parflex.reproduction.checks import DIFFERS, FITTED, NOT_REPRODUCIBLE, OK, Check, Shown, totals
from parflex.reproduction.published_tables import Paper, read_paper
from parflex.reproduction.quantities import Workshop

NAME = "index.html"
FEW = 12  # rows of a table that is shown open
VERDICTS = {OK: "✓ ok", DIFFERS: "≠ differs", FITTED: "~ fitted", NOT_REPRODUCIBLE: "· not reproducible"}
TILES = {
    OK: "agree within their tolerances",
    DIFFERS: "differ",
    FITTED: "agree because parameters were fitted to them",
    NOT_REPRODUCIBLE: "cannot be reproduced; each says why",
}


def check_folder(folder: str | Path) -> None:
    """Refuse a folder that cannot take the page, before anything is computed."""
    path = Path(folder) / NAME
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InputError("is not a folder", file=str(folder), key="report", hint="name a folder for the page")
    if path.is_file() and MARK.encode() not in path.open("rb").readline(1000):
        raise InputError(
            f"'{NAME}' exists and was not written by parflex",
            file=str(folder),
            key="report",
            value=str(path),
            hint="choose another folder, or move that file away",
        )


def write_report(folder: str | Path, checks: list[Check], quick: bool = False, shown: Shown | None = None) -> Path:
    """Write the page whole or not at all; foreign files are not replaced. Returns the path of the page."""
    check_folder(folder)
    return write_files(folder, {NAME: page(checks, quick, shown)})[0]


def page(checks: list[Check], quick: bool = False, shown: Shown | None = None) -> str:
    """The text of the page; a quick one has no simulated motions and no times."""
    papers = [read_paper(name) for name in dict.fromkeys(check.paper for check in checks)]
    workshop, steps = Workshop(), len(papers) + 2

    def say(done: int, what: str) -> None:
        if shown:
            shown(done, steps, f"report: {what}")

    say(0, "modes")
    modes, players = report_figures.moving_modes(
        [show for paper in reversed(papers) for show in paper.shapes], workshop
    )
    sections = [modes]
    for k, paper in enumerate(papers):
        say(k + 1, paper.paper)
        sections.append(_paper(paper, [check for check in checks if check.paper == paper.paper]))
        sections += [report_figures.motion(show, workshop) for show in paper.motions if not quick]
        sections.append(_errata(paper))
    say(steps - 1, "operators and speed")
    sections += [_fitted(checks), report_figures.beside_others(quick)]
    return _whole(_head(checks, papers), "".join(sections), players)


def _whole(head: str, body: str, players: list[dict[str, Any]]) -> str:
    style, script = (_own(name) for name in ("page.css", "page.js"))
    own = f"style-src '{digest(style)}'; script-src '{digest(script)}'"
    policy = f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"
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
        f'<ul class="tiles">{tiles}</ul>{report_figures.all_checks(checks)}'
        f'<nav aria-label="Parts"><ul>{links}</ul></nav></header>'
    )


def _paper(paper: Paper, checks: list[Check]) -> str:
    about = f"<p><em>{escape(paper.title)}.</em> {_text(paper.about)}</p>"
    groups = [group for group in paper.group if group.verdict != FITTED]
    found = [[check for check in checks if check.group == group] for group in groups]
    return f'<h2 id="{paper.paper}">{paper.paper}</h2>{about}' + "".join(_group(own) for own in found if own)


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
    drawn = report_figures.group_figure(checks) if group.figure else ""
    table = _table(checks)
    if len(checks) > FEW:
        table = f"<details><summary>{_said(checks)}</summary>{table}</details>"
    return heading + drawn + table


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _said(checks: list[Check]) -> str:
    good = sum(check.status in (OK, FITTED) for check in checks)
    if checks[0].group.verdict == NOT_REPRODUCIBLE:
        return f"all {len(checks)} numbers"
    if checks[0].group.compare == "at most":
        return f"all {len(checks)} numbers: {good} keep to the limit"
    largest = max(abs(check.difference) for check in checks if check.difference is not None)
    return f"all {len(checks)} numbers: {good} within the tolerance, largest difference {largest:.2g}"


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
