"""The group that all verbs belong to."""

from __future__ import annotations

import click

from parflex import __version__
from parflex.errors import nearest

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
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


class Verbs(click.Group):
    """The verbs; a misspelt one is answered with the nearest, which click does by itself only since 8.4."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names."""
        verb = args[0]
        if verb not in self.commands and not verb.startswith("-") and not ctx.resilient_parsing:
            meant = nearest(verb, self.list_commands(ctx))
            ctx.fail(f"No such command {verb!r}." + (f" Did you mean {meant!r}?" if meant else ""))
        return super().resolve_command(ctx, args)


@click.group(cls=Verbs, context_settings=CONTEXT, epilog=EXAMPLES)
@click.version_option(__version__, prog_name="parflex")
def cli() -> None:
    """Dynamic models of parallel robots from one robot file.

    ROBOT is a name from the catalogue or the path of a TOML file. Units are SI and radians.
    """
