"""The group of all commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from parflex import __version__
from parflex.api import WORDS
from parflex.errors import nearest
from parflex.io import refuse_overwrite

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
OUTPUTS = {"--out", "--record", "--page", "--report", "--figure", "--convergence"}  # options that name what is written
EXAMPLES = """
\b
Examples:
  parflex list
  parflex info gough-stewart
  parflex inverse gough-stewart --pose z=1.1,rz=0.1 --acceleration z=2 --json
  parflex direct 3rrr --pose home --effort leg1.1=2,leg2.1=-1
  parflex explain dualemps
  parflex frequencies navaro --pose pose-3
  parflex simulate dualemps --motion square --time 2 --out run.csv
  parflex draw delta -o delta.svg

\b
Exit codes: 0 done; 1 diverged, interrupted or a check not passed; 2 bad input, or an unreachable or singular pose.
NO_COLOR switches colours off, PARFLEX_CACHE names the directory of compiled models,
'parflex completion bash' prints a script that completes commands and robots.
"""


def _with_unit(option: click.Parameter) -> None:
    """Add the unit of the word to the help of an option, where the help does not say it."""
    word = WORDS.get(option.name or "")
    if not isinstance(option, click.Option) or word is None or not option.help or word.unit in ("", "dimensionless"):
        return
    if not any(re.search(rf"(?<![\w/]){re.escape(unit)}(?![\w/^])", option.help) for unit in word.unit.split(", ")):
        text, mark, default = option.help.rstrip(".").partition("; default")
        option.help = f"{text} ({word.unit}){mark}{default}."


class Command(click.Command):
    """A command that refuses to write over a file that it reads."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        option_values = {parameter.name: _words(ctx.params.get(parameter.name or "")) for parameter in self.params}
        outputs = {
            parameter.name: (OUTPUTS & {*parameter.opts}).pop()[2:]
            for parameter in self.params
            if OUTPUTS & {*parameter.opts}
        }
        if any(option_values[name] for name in outputs):
            from parflex.robotfile.read import files_of  # help starts without it

            words = [
                word for name in option_values if name not in outputs for word in option_values[name] if _is_file(word)
            ]
            inputs = [*words, *(file for word in words if word.endswith(".toml") for file in files_of(word))]
            for name, key in outputs.items():
                refuse_overwrite(option_values[name], inputs, key)
        return super().invoke(ctx)


def _words(value: Any) -> list[str]:
    """Return the values of an option or argument, which may be repeated."""
    return [word for word in (value if isinstance(value, tuple) else (value,)) if isinstance(word, str)]


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):  # not a file name
        return False


class CommandGroup(click.Group):
    """The verbs; a misspelt one is answered with the nearest, which click does by itself only since 8.4."""

    command_class = Command

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """One more verb, whose options say their units."""
        for option in cmd.params:
            _with_unit(option)
        super().add_command(cmd, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names."""
        verb = args[0]
        if verb not in self.commands and not verb.startswith("-") and not ctx.resilient_parsing:
            suggestion = nearest(verb, self.list_commands(ctx))
            ctx.fail(f"No such command {verb!r}." + (f" Did you mean {suggestion!r}?" if suggestion else ""))
        return super().resolve_command(ctx, args)


@click.group(cls=CommandGroup, context_settings=CONTEXT, epilog=EXAMPLES)
@click.version_option(__version__, prog_name="parflex")
def cli() -> None:
    """Dynamic models of parallel robots from one robot file.

    ROBOT is a name from the catalogue or the path of a TOML file. Units are SI and radians.
    """
