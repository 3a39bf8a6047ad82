"""Command `reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from parflex.cli import output
from parflex.cli.group import verb
from parflex.cli.output import Answer, print_table

if TYPE_CHECKING:
    from parflex.reproduction.checks import Check

STYLES = {"ok": "green", "differs": "bold red", "fitted": "yellow", "not reproducible": "dim"}
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
    with _progress() as progress:
        checks = reproduce(paper, quick, progress)
        written = write_report(report, checks, quick, progress) if report else None
    answer: dict[str, Any] = {"checks": [check.as_dict() for check in checks], "totals": totals(checks)}
    if written:
        answer["report"] = str(written)
    if not as_json:
        _print_tables(checks)
    rows = [(verdict.replace("-", " "), str(count)) for verdict, count in answer["totals"].items()]
    differs = any(check.status == DIFFERS for check in checks)
    return Answer(answer, ("all", ["verdict", "numbers"], rows), *output.written(written), code=int(differs))


def _print_tables(checks: list[Check]) -> None:
    """A table for each paper, its groups with their reasons, and one for what was fitted."""
    from parflex.reproduction.checks import FITTED

    for paper in dict.fromkeys(check.paper for check in checks):
        _print_table(paper, [check for check in checks if check.paper == paper and check.group.verdict != FITTED])
    fitted = [check for check in checks if check.group.verdict == FITTED]
    if fitted:
        _print_table("fitted robots: their parameters were chosen to match these numbers", fitted)


def _print_table(title: str, checks: list[Check]) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(title, style="bold"))
    groups = [check.group for check in checks]
    for k, group in enumerate(groups):
        if group in groups[:k]:
            continue
        heading = f"{group.title} ({group.unit})" if group.unit else group.title
        console.print()
        console.print(Text(heading, style="underline"))
        console.print(Padding(Text(f"{group.source}: {group.reason}", style="dim"), (0, 0, 0, 2)))
        print_table("", COLUMNS, [_row(check) for check in checks if check.group == group], STYLES)
    console.print()


def _row(check: Check) -> tuple[Any, ...]:
    name = ", ".join(word for word in (check.row, check.name) if word) or "value"
    errors = [None if value is None else float(f"{value:.2g}") for value in (check.difference, check.tolerance)]
    return name, check.published, check.computed, *errors, check.status.replace("-", " ")


@contextmanager
def _progress() -> Iterator[Callable[[int, int, str], None] | None]:
    """A bar on stderr, if it is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of, what: bar.update(task, completed=done, total=of, description=what)
