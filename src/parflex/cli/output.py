"""What the command line prints: tables for people, one JSON object for programs, one sentence for errors."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click

from parflex.cli.tables import print_table

MAX_LINE = 2000
ROUNDING = 1e-13  # of the largest number of a table of one kind: what is smaller is left over from differences
FLAGS = {  # how the library names an argument, and how the command line does
    "force=True": "--force",
    "target='c'": "--target c",
    "about='equilibrium'": "--about equilibrium",
    "out_step": "--out-step",
    "end_effector": "--end-effector",
    "float32": "--float32",
    "rigid=True": "--rigid",
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
}


def plain(value: Any) -> Any:
    """The value with only what JSON has: no NaN, no arrays."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def show(answer: dict[str, Any], as_json: bool, *tables: tuple[str, list[str], Iterable[Iterable[Any]]]) -> None:
    """The answer as JSON, or as tables; warnings go to stderr, and those that came on the way stand in JSON as well."""
    warn(answer.get("warnings", []))
    answer["warnings"] = list(dict.fromkeys([*answer.get("warnings", []), *_said()]))
    if as_json:
        click.echo(json.dumps(plain(answer), allow_nan=False))
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
    shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text[:MAX_LINE])
    return shown + ("..." if len(text) > MAX_LINE else "")


def warn(warnings: Iterable[str]) -> None:
    """Warnings, once each in a command, on stderr: some come on the way and stand in the answer as well."""
    said = _said()
    for warning in warnings:
        if warning not in said:
            said[warning] = None
            click.echo(f"warning: {one_line(warning)}", err=True)


def _said() -> dict[str, None]:
    """Warnings of this command so far, in their order."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.find_root().meta.setdefault("parflex.said", {})


def in_flags(hint: str) -> str:
    """A hint of the library in the options of the command line."""
    known = "|".join(re.escape(word) for word in FLAGS)
    return re.sub(rf"(?<![\w-])(?:{known})(?![\w-])", lambda found: FLAGS[found[0]], hint)


def fail(error: dict[str, Any], text: str, as_json: bool) -> None:
    """One sentence on stderr, and the error object on stdout for programs."""
    hint = error.get("hint")
    if hint and text.endswith(hint):
        error = {**error, "hint": in_flags(hint)}
        text = text.removesuffix(hint) + in_flags(hint)
    click.echo(f"error: {one_line(text)}", err=True)
    if as_json:
        click.echo(json.dumps({"error": plain(error)}, allow_nan=False))
    sys.stdout.flush()
