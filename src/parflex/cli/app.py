"""Entry point of the command line and shell completion."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import click
from click.shell_completion import get_completion_class

from parflex.checks import one_of
from parflex.cli import (  # noqa: F401 - importing modules adds their commands
    calibrate,
    codegen,
    control,
    design,
    dynamics,
    exchange,
    identification,
    output,
    plot,
    reproduction,
    robot,
    simulate,
    vibration,
    view,
)
from parflex.cli.group import cli, verb
from parflex.errors import ParflexError

BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

SHELLS = ("bash", "zsh", "fish")

PROGRAM, VARIABLE = "parflex", "_PARFLEX_COMPLETE"


def main(arguments: list[str] | None = None) -> None:
    """Run a command; every error is one sentence and an exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in arguments
    if "numpy" not in sys.modules and not any(name in os.environ for name in BLAS_THREADS):
        # matrices of robots are small: threads would wait for each other, and each process of a study has its core
        os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # users get our own warnings, not those of the arithmetic
            warnings.showwarning = _told
            colour = False if os.environ.get("NO_COLOR") else None
            words: dict[str, Any] = {"prog_name": "parflex", "standalone_mode": False, "color": colour}
            sys.exit(cli.main(arguments or ["--help"], **words) or 0)
    except ParflexError as error:
        output.print_error(error.as_dict(), str(error), as_json)
        sys.exit(2)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f"see '{'parflex' if context is None else context.command_path} --help'"
        message = error.format_message().rstrip(".")
        output.print_error(_error("usage", message, hint), f"{message}; {hint}", as_json)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)
    except Exception as error:
        if os.environ.get("PARFLEX_DEBUG"):
            raise
        text = f"parflex failed unexpectedly ({type(error).__name__}: {error}); please report it"
        output.print_error(_error("internal", text, None), text, as_json)
        sys.exit(1)


def _error(kind: str, message: str, hint: str | None) -> dict[str, Any]:
    """Return an error that is not about a file or value, in the form of all errors."""
    return {"kind": kind, "message": message, "file": None, "key": None, "value": None, "hint": hint}


def _told(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning on the way, in the words of those of an answer."""
    output.warn([output.diagnostic_of(message)])


@verb(
    "files",
    "completion bash >> ~/.bashrc",
    "completion zsh >> ~/.zshrc",
    "completion fish > ~/.config/fish/completions/parflex.fish",
)
def completion(shell: str, *, as_json: bool = False) -> output.Answer | None:
    """A script that completes verbs, options and robots in your shell."""
    kind = get_completion_class(one_of(shell, SHELLS, "shell"))
    assert kind is not None
    # the script alone: Click's own source() first asks for the version of the shell, which need not be installed
    maker = kind(cli, {}, PROGRAM, VARIABLE)
    script = maker.source_template % maker.source_vars()
    if as_json:
        return output.Answer({"shell": shell, "script": script})
    click.echo(script)
    return None
