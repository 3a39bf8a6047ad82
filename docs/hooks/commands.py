"""The page of commands, from their help: `python docs/hooks/commands.py` writes it."""

from __future__ import annotations

import re
from pathlib import Path

import click

from parflex.cli.app import cli
from parflex.cli.group import TASKS

PAGE = Path(__file__).resolve().parent.parent / "generated" / "commands.md"
INTRODUCTION = """# Options of all commands

What `parflex VERB --help` prints, by task. [Command line](../command-line.md) explains the answers. All commands have
`--json` and `--help`; commands that load a robot have `--set`, `--rigid`, `--payload`, `--actuation`, `--working-mode`.
"""
LOADING = ("settings", "rigid", "payload", "actuation", "working_mode", "as_json")


def section(name: str, command: click.Command) -> list[str]:
    """Return the usage, options and examples of a command."""
    context = click.Context(command, info_name=f"parflex {name}")
    words = [f"`{word}`" for word in command.collect_usage_pieces(context)[1:]]
    help_text = re.sub(r"\s*\n\s*", " ", command.help or "").strip()
    lines = [f"## {name}", "", f"`parflex {name}` {' '.join(words)}".rstrip(), "", help_text, ""]
    rows = []
    for parameter in command.params:
        own = isinstance(parameter, click.Option) and parameter.name not in LOADING
        record = parameter.get_help_record(context) if own else None
        if record is not None:
            rows.append("| `{}` | {} |".format(*(re.sub(r"\s+", " ", cell).replace("|", "\\|") for cell in record)))
    lines += ["| option | meaning |", "| --- | --- |", *rows, ""] if rows else []
    examples, _, note = (command.epilog or "").partition("\n\n")
    lines += ["```sh", *re.findall(r"^  (parflex .*)", examples, flags=re.M), "```", ""]
    return [*lines, note, ""] if note else lines


def page() -> str:
    """Return the text of the page."""
    lines = [INTRODUCTION]
    for task in TASKS:
        names = [name for name in cli.commands if getattr(cli.commands[name], "task", "") == task]
        lines.append(f"{task.capitalize()}: " + ", ".join(f"[{name}](#{name})" for name in sorted(names)) + "\n")
    for name in sorted(cli.commands):
        lines += section(name, cli.commands[name])
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
