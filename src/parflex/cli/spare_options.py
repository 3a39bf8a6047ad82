"""Options about more motors than freedoms: weights, preload and limits of the efforts."""

from __future__ import annotations

from typing import Any

import click

from parflex.cli.input import Command, assignments, numbers
from parflex.errors import InputError


def spare_options(command: Command) -> Command:
    """Weights, preload and limits of the efforts."""
    return preload_options(
        click.option(
            "--effort-limit",
            metavar="E|JOINT=E,...",
            help="Effort limit of all motors, or of each; JOINT=LOW:HIGH for cables, either may be left out.",
        )(command)
    )


def preload_options(command: Command) -> Command:
    """Weights and preload."""
    for option in (
        click.option(
            "--preload",
            metavar="JOINT=E,...",
            help="Internal efforts, N or N m, of one motor for each that is spare.",
        ),
        click.option(
            "--weights",
            metavar="JOINT=W,...",
            help="Weights of the squared efforts where motors are more than freedoms; default 1.",
        ),
    ):
        command = option(command)
    return command


def read_spare(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the equivalent Python call, taken out of the options; none where none is given."""
    found: dict[str, Any] = {}
    for key in ("weights", "preload"):
        text = options.pop(key, None)
        if text is not None:
            found[key] = assignments(text, key)
    text = options.pop("effort_limit", None)
    if text is not None:
        found["effort_limit"] = read_effort_limit(text)
    return found


def read_effort_limit(text: str) -> Any:
    """`E` for all motors, or `JOINT=E,...` with `LOW:HIGH` for a pair of limits."""
    if not text.strip():
        raise InputError(
            "the effort limit is empty", key="effort-limit", value=text, hint="give one for all motors, or JOINT=E,..."
        )
    if "=" not in text:
        return _limit(text, text)
    table: dict[str, Any] = {}
    for part in text.split(","):
        word, equals, value = part.partition("=")
        if not equals or not word.strip():
            raise InputError(f"'{part}' is not JOINT=E", key="effort-limit", value=text, hint="write e.g. leg1.1=20")
        if word.strip() in table:
            raise InputError(
                f"'{word.strip()}' is given twice", key="effort-limit", value=text, hint="keep one of them"
            )
        table[word.strip()] = _limit(value, text)
    return table


def _limit(value: str, text: str) -> Any:
    ends = value.split(":")
    if len(ends) > 2:
        raise InputError(
            f"'{value}' is not one limit, nor LOW:HIGH", key="effort-limit", value=text, hint="write e.g. leg1.1=5:300"
        )
    found = [numbers(end, "effort-limit") if end.strip() else [None] for end in ends]
    if any(len(entry) != 1 for entry in found):
        raise InputError(
            f"'{text}' is not one number",
            key="effort-limit",
            value=text,
            hint="give one for all motors, or JOINT=E,...",
        )
    return found[0][0] if len(ends) == 1 else [entry[0] for entry in found]
