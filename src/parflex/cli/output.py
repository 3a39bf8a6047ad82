"""Tables, JSON, errors and progress bars."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import zip_longest
from typing import Any

import click

from parflex.diagnostics import Diagnostic, reported
from parflex.errors import ParflexWarning

MAX_LINE = 2000
ROUNDING = 1e-13  # of the largest number of a table of one kind: what is smaller is left over from differences
Table = tuple[str, Sequence[str], Iterable[Iterable[Any]]]  # title, columns, rows
FLAGS = {  # how hints of the library name arguments by other words, and how the command line does
    "(servo)": "(--servo)",
    "(motor-inertia)": "(--with motor-inertia)",
    "'parameters'": "--parameters",
    "another actuation": "another --actuation",
    "an actuation": "an --actuation",
    "number of elements": "--elements",
    "another port": "another --port",
    "that working mode": "that --working-mode",
    "fewer jobs": "fewer --jobs",
    "fewer columns": "fewer --columns",
    "float32": "--float32",
}
GAP = 2  # spaces between columns
MAX_UNWRAPPED_LABEL = 24  # characters: longer labels of rows wrap at spaces, so that two numbers fit next to them
PROGRESS_LINE_INTERVAL = 30.0  # s


class Answer:
    """What a command answers: values for JSON, tables for people but for those without rows, and the exit code."""

    def __init__(self, values: Mapping[str, Any], *tables: Table, code: int = 0) -> None:
        listed = [(title, columns, list(rows)) for title, columns, rows in tables]
        self.values, self.tables, self.code = {**values}, [table for table in listed if table[2]], code


def written(*files: Any) -> Table:
    """Return the table of the files that were written."""
    return "", ["written"], [(str(file),) for file in files if file]


def interrupted(result: Any, resumable: Any = True) -> int:
    """Say whether a study was interrupted; return the exit code."""
    if result.interrupted:
        click.echo("interrupted: run the same command again to resume" if resumable else "interrupted", err=True)
    return int(result.interrupted)


def json_value(value: Any) -> Any:
    """The value with only what JSON has: no NaN, no arrays."""
    if isinstance(value, Mapping):
        return {str(key): json_value(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return json_value(value.tolist())
    if isinstance(value, (list, tuple)):
        return [json_value(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_result(answer: dict[str, Any], as_json: bool, *tables: Table) -> None:
    """The answer as JSON, or as tables; warnings go to stderr, and those that came on the way stand in JSON as well."""
    entries = answer.pop("diagnostics", ())
    diagnostics = [each if isinstance(each, Diagnostic) else Diagnostic(**each) for each in entries]
    warn(diagnostics)
    answer |= reported({each.text: each for each in (*diagnostics, *_reported().values())}.values())
    if as_json:
        click.echo(json.dumps(json_value(answer), allow_nan=False))
        return
    for title, columns, rows in tables:
        print_table(title, columns, rows)
        click.echo()


def rounded(rows: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    """Rows for people, in which numbers that are rounding beside the largest one are zero; JSON keeps them."""
    cells = [tuple(row) for row in rows]
    least = ROUNDING * max((abs(number) for row in cells for number in _numbers(row)), default=0.0)
    return [tuple(_without(cell, least) for cell in row) for row in cells]


def _numbers(value: Any) -> list[float]:
    if isinstance(value, (list, tuple)):
        return [number for entry in value for number in _numbers(entry)]
    return [value] if isinstance(value, float) and math.isfinite(value) else []


def _without(value: Any, least: float) -> Any:
    if isinstance(value, (list, tuple)):
        return [_without(entry, least) for entry in value]
    return 0.0 if isinstance(value, float) and abs(value) < least else value


def one_line(text: str) -> str:
    """The text on one line of bounded length; what a terminal would obey is written out."""
    printable = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text[:MAX_LINE])
    return printable + ("..." if len(text) > MAX_LINE else "")


def warn(diagnostics: Iterable[Diagnostic]) -> None:
    """Print each warning once in a command, on stderr: some come on the way and stand in the answer as well."""
    known = _reported()
    for diagnostic in diagnostics:
        if diagnostic.text not in known:
            known[diagnostic.text] = diagnostic
            click.echo(f"warning: {one_line(diagnostic.text)}", err=True)


def diagnostic_of(message: Warning | str) -> Diagnostic:
    """Return the diagnostic of a warning; libraries have others than parflex."""
    if isinstance(message, ParflexWarning):
        return message.diagnostic
    return Diagnostic("library-warning", str(message))


def _reported() -> dict[str, Diagnostic]:
    """Return the diagnostics of this command so far by text, in their order."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.find_root().meta.setdefault("parflex.diagnostics", {})


def as_options(hint: str, of_file: bool = False) -> str:
    """Return a hint of the library in the options of the command line: `rigid=True`, `kind='cs'`, `end_effector`.

    In a hint about a robot file (`of_file`) words are keys of that file.
    """
    from parflex.cli.vocabulary import flags_by_word

    flags = flags_by_word()

    def option(match: re.Match[str]) -> str:
        word, value = match["word"], match["value"]
        if word not in flags or (value is None and (of_file or "_" not in word)):
            return match[0]
        return flags[word] if value in (None, "True") else f"{flags[word]} {value}"

    known = "|".join(map(re.escape, FLAGS))
    hint = re.sub(rf"(?<![\w-])(?:{known})(?![\w-])", lambda match: FLAGS[match[0]], hint)
    named = r"(?<![\w.=-])(?P<word>[a-z_]+)(?:=(?P<quote>'?)(?P<value>[\w.]+)(?P=quote))?(?!\w| =|[\w.,-]*=)"
    return re.sub(named, option, hint)


def print_error(error: dict[str, Any], text: str, as_json: bool) -> None:
    """One sentence on stderr, and the error object on stdout for programs."""
    hint = error.get("hint")
    if hint and text.endswith(hint):
        error = {**error, "hint": as_options(hint, error["kind"] == "robot-file")}
        text = text.removesuffix(hint) + error["hint"]
    click.echo(f"error: {one_line(text)}", err=True)
    if as_json:
        click.echo(json.dumps({"error": json_value(error)}, allow_nan=False))
    sys.stdout.flush()


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Iterable[Any]],
    styles: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Print a table in blocks of columns, or one value per line if the width cannot hold a block.

    `styles` are styles of click by the text of a cell.
    """
    values = [tuple(row) for row in rows]
    cells = [[_cell(value) for value in row] for row in values]
    width = shutil.get_terminal_size().columns
    if title:
        click.secho(title, italic=True)
    labels = _label_count(cells, len(columns))
    natural, least = zip(*(_widths(k, labels, columns, cells) for k in range(len(columns))), strict=True)
    blocks = _blocks(least, labels, width)
    if any(_total(least, block) > width for block in blocks):
        _print_lines(labels, columns, cells)
        return
    numeric = [all(row[k] is None or isinstance(row[k], int | float) for row in values) for k in range(len(columns))]
    for number, block in enumerate(blocks):
        if number:
            click.echo()
        spare, sizes = width - _total(least, block), list(least)
        for k in block:
            sizes[k] = least[k] + min(spare, natural[k] - least[k])
            spare -= sizes[k] - least[k]
        _print_row(columns, block, sizes, numeric, {name: {"bold": True} for name in columns})
        for row in cells:
            _print_row(row, block, sizes, numeric, styles or {})


def _print_row(
    row: Sequence[str],
    block: list[int],
    sizes: Sequence[int],
    numeric: Sequence[bool],
    styles: Mapping[str, Mapping[str, Any]],
) -> None:
    """Print cells next to each other, each over several lines if it is wider than its column."""
    wrapped = [textwrap.wrap(row[k], sizes[k], break_long_words=False, break_on_hyphens=False) for k in block]
    for parts in zip_longest(*wrapped, fillvalue=""):
        line = []
        for k, part in zip(block, parts, strict=True):
            text = part.rjust(sizes[k]) if numeric[k] else part if k == block[-1] else part.ljust(sizes[k])
            line.append(click.style(text, **styles[row[k]]) if row[k] in styles else text)
        click.echo((" " * GAP).join(line).rstrip())


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(entry) for entry in value)
    return str(value)


def _label_count(cells: list[list[str]], columns: int) -> int:
    """Return how many leading columns distinguish the rows; every block repeats them."""
    for count in range(1, columns):
        if len({tuple(row[:count]) for row in cells}) == len(cells):
            return count
    return 1


def _widths(index: int, labels: int, columns: Sequence[str], cells: list[list[str]]) -> tuple[int, int]:
    """Return the width of a column on one line per cell, and the least width that breaks no word."""
    texts = [columns[index], *(row[index] for row in cells)]
    natural = max(map(len, texts))
    if index < labels and natural <= MAX_UNWRAPPED_LABEL:
        return natural, natural
    return natural, max((len(word) for text in texts for word in text.split()), default=0)


def _blocks(least: Sequence[int], labels: int, width: int) -> list[list[int]]:
    """Return the columns of each block: the labels, then as many others as fit."""
    blocks = [list(range(labels))]
    for index in range(labels, len(least)):
        if len(blocks[-1]) > labels and _total(least, [*blocks[-1], index]) > width:
            blocks.append(list(range(labels)))
        blocks[-1].append(index)
    return blocks


def _total(widths: Sequence[int], block: list[int]) -> int:
    return sum(widths[index] + GAP for index in block) - GAP


def _print_lines(labels: int, columns: Sequence[str], cells: list[list[str]]) -> None:
    """Print a line of labels, name of the column and value for each value."""
    if len(columns) == 1:
        lines = [[columns[0]], *cells]
    else:
        lines = [[*row[:labels], columns[index], row[index]] for row in cells for index in range(labels, len(columns))]
    for line in lines:
        click.echo(" ".join(text for text in line if text))


@contextmanager
def progress_line(title: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """Give a function that shows on stderr how much is done, of how much, and the time left at this pace.

    A terminal has one line that changes; elsewhere, as in the log of a batch system, a line comes now and then. The
    pace is that since the first call: what was there before took no time.
    """
    terminal, last, first = sys.stderr.isatty(), time.monotonic(), list[float]()

    def show(done: float, of: float | None = total, what: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        first.extend([] if first else [now, done])
        if now - last < (0.1 if terminal else PROGRESS_LINE_INTERVAL):
            return
        last = now
        text = f"{title}: {done:g}" + (f" of {of:g}" if of else "") + (f", {what}" if what else "")
        if of and done > first[1]:
            left = (of - done) * (now - first[0]) / (done - first[1])
            text += f", {timedelta(seconds=round(left))} left"
        print(
            f"\r{one_line(text)}\x1b[K" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True
        )

    try:
        yield show
    finally:
        if terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
