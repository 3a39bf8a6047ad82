"""Where a command line starts: verbs are read in, errors become one sentence and an exit code."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import click

from parflex.cli import completion, output  # noqa: F401 - importing them adds their verbs
from parflex.cli.group import cli
from parflex.cli.verbs import (  # noqa: F401
    control_verbs,
    design_verbs,
    dynamics_verbs,
    export_verb,
    identification_verbs,
    map_verb,
    motion_verb,
    plot_verb,
    program_verbs,
    reproduce_verb,
    robot_verbs,
    simulate_verb,
    statics_verbs,
    vibration_verbs,
    view_verb,
)
from parflex.errors import ParflexError

BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


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
            sys.exit(cli.main(arguments or ["--help"], prog_name="parflex", standalone_mode=False) or 0)
    except ParflexError as error:
        output.fail(error.as_dict(), str(error), as_json)
        sys.exit(2)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        usage = {"kind": "usage", "message": error.format_message(), "file": None, "key": None, "value": None}
        output.fail(
            {**usage, "hint": "see 'parflex --help'"}, f"{error.format_message()} See 'parflex --help'.", as_json
        )
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
        output.fail(
            {"kind": "internal", "message": text, "file": None, "key": None, "value": None, "hint": None}, text, as_json
        )
        sys.exit(1)


def _told(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning on the way, in the words of those of an answer."""
    output.warn([str(message)])


if __name__ == "__main__":
    main()
