"""Completion of verbs, options and robots in shells."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from parflex.cli import output
from parflex.cli.group import cli

SHELLS = ("bash", "zsh", "fish")
PROGRAM, VARIABLE = "parflex", "_PARFLEX_COMPLETE"


@cli.command(
    epilog="\b\nExamples:\n  parflex completion bash >> ~/.bashrc\n  parflex completion zsh >> ~/.zshrc\n"
    "  parflex completion fish > ~/.config/fish/completions/parflex.fish"
)
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(SHELLS))
@click.option("--json", "as_json", is_flag=True, help="Print a single JSON object.")
def completion(shell: str, as_json: bool) -> None:
    """A script that completes verbs, options and robots in your shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    # the script alone: Click's own source() first asks for the version of the shell, which need not be installed
    maker = kind(cli, {}, PROGRAM, VARIABLE)
    script = maker.source_template % maker.source_vars()
    if as_json:
        output.show({"shell": shell, "script": script}, as_json)
    else:
        click.echo(script)
