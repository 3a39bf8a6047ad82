"""Command `reproduce`."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Any

import click

from parflex.cli import output
from parflex.cli.group import verb
from parflex.cli.output import Answer, print_table

if TYPE_CHECKING:
    from parflex.reproduction.checks import Check

STYLES: dict[str, dict[str, Any]] = {
    "ok": {"fg": "green"},
    "differs": {"fg": "red", "bold": True},
    "fitted": {"fg": "yellow"},
}
STYLES["not reproducible"] = {"dim": True}
COLUMNS = ("", "published", "computed", "difference", "tolerance", "verdict")


@verb(
    "files",
    "reproduce",
    "reproduce Briot2014 --json",
    "reproduce --report out",
    note="Exit code 1 if a number differs by more than its tolerance.",
)
def reproduce(
    paper: str | None = None, *, report: str | None = None, quick: bool = False, as_json: bool = False
) -> Answer:
    """Published numbers of the papers beside computed ones, with a verdict each."""
    from parflex import reproduce
    from parflex.reproduction.checks import DIFFERS, totals
    from parflex.reproduction.report import check_folder, write_report

    if report:
        check_folder(report)
    with output.progress_line("reproducing") as progress:
        checks = reproduce(paper, quick, progress)
        written = write_report(report, checks, quick, progress) if report else None
    answer: dict[str, Any] = {"checks": [check.as_dict() for check in checks], "totals": totals(checks)}
    if written:
        answer["report"] = str(written)
    if not as_json:
        _print_tables(checks)
    rows = [(verdict.replace("-", " "), str(count)) for verdict, count in answer["totals"].items()]
    differs = any(check.status == DIFFERS for check in checks)
    return Answer(answer, ("all", ["verdict", "numbers"], rows), output.written(written), code=int(differs))


def _print_tables(checks: list[Check]) -> None:
    """A table for each paper, its groups with their reasons, and one for what was fitted."""
    from parflex.reproduction.checks import FITTED

    for paper in dict.fromkeys(check.paper for check in checks):
        _print_table(paper, [check for check in checks if check.paper == paper and check.group.verdict != FITTED])
    fitted = [check for check in checks if check.group.verdict == FITTED]
    if fitted:
        _print_table("fitted robots: their parameters were chosen to match these numbers", fitted)


def _print_table(title: str, checks: list[Check]) -> None:
    click.secho(title, bold=True)
    groups = [check.group for check in checks]
    for k, group in enumerate(groups):
        if group in groups[:k]:
            continue
        heading = f"{group.title} ({group.unit})" if group.unit else group.title
        click.secho(f"\n{heading}", underline=True)
        width = shutil.get_terminal_size().columns
        reason = textwrap.fill(f"{group.source}: {group.reason}", width, initial_indent="  ", subsequent_indent="  ")
        click.secho(reason, dim=True)
        print_table("", COLUMNS, [_row(check) for check in checks if check.group == group], STYLES)
    click.echo()


def _row(check: Check) -> tuple[Any, ...]:
    name = ", ".join(word for word in (check.row, check.name) if word) or "value"
    errors = [None if value is None else float(f"{value:.2g}") for value in (check.difference, check.tolerance)]
    return name, check.published, check.computed, *errors, check.status.replace("-", " ")
