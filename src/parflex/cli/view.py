"""The verb that shows a robot in a browser page of this machine."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from parflex.cli import output
from parflex.cli.group import verb
from parflex.cli.output import Answer
from parflex.cli.vocabulary import open_robot
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.io import write_text

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Divided, Robot


@verb(
    "files",
    "view gough-stewart",
    "view my-robot.toml --port 9000",
    "view dualemps --run run.csv",
    "view navaro --mode 2 --record mode-2.html",
    "view navaro --design design.toml",
)
def view(
    robot: Divided,
    choice: dict[str, Any],
    *,
    pose: Any = None,
    run: str | None = None,
    mode: int | None = None,
    amplitude: float = 6.0,
    frames: Any = (),
    stress: bool = False,
    map_file: str | None = None,
    design_file: str | None = None,
    port: int | None = None,
    no_browser: bool = False,
    seconds: float | None = None,
    record: str | None = None,
    as_json: bool = False,
) -> Answer | None:
    """Show a robot in the browser: move it, see its modes, play a run.

    The page is for this machine only (127.0.0.1). A robot file that changes is loaded again.
    """
    from parflex.view.server import require_viser

    _check(mode, amplitude, seconds, record)
    require_viser()
    from parflex.view.colours import map_points
    from parflex.view.session import require_run
    from parflex.view.viewer import Viewer

    source = choice["robot"]
    played = None if run is None else require_run(robot, run)
    points = None if map_file is None else map_points(robot, map_file)
    watched = Path(source) if source.endswith(".toml") and Path(source).is_file() else None
    requested_port = 0 if record is not None else port
    if design_file is not None:
        viewer = _design_viewer(robot, source, design_file, pose, requested_port, {"run": run, "frames": frames})
    else:
        viewer = Viewer(robot, pose, played, requested_port, partial(open_robot, **choice), watched, frames)
    try:
        viewer.begin(mode, amplitude, stress)
        viewer.stage.show_map(points)
        if record is not None:
            write_text(record, viewer.page(), "record")
            return Answer({"file": record, "diagnostics": robot.diagnostics}, output.written(record))
        _tell(viewer, port, watched, as_json, list(robot.diagnostics))
        if not no_browser:
            _open_browser(viewer.address)
        viewer.watch(seconds)
    except KeyboardInterrupt:
        click.echo("closed", err=True)
    finally:
        viewer.close()
    return None


def _design_viewer(
    loaded: Robot, source: str, design_file: str, pose: Any, port: int | None, incompatible_options: dict[str, Any]
) -> Any:
    """A page with sliders for the variables of a design; robot files go beside the design."""
    from parflex.design.sweep import read_design
    from parflex.view.studio import DesignSession, StudioViewer, check_robot

    for word, value in incompatible_options.items():
        if value:
            raise InputError(f"a design takes no '{word}'", key=word, value=value, hint="leave one of them out")
    file = read_design(design_file)
    check_robot(file, loaded, design_file)
    source = str(Path(source).resolve()) if Path(source).is_file() else source
    return StudioViewer(DesignSession(loaded, file, source), pose, port, Path(design_file).resolve().parent)


def _check(mode: int | None, amplitude: float, seconds: float | None, record: str | None) -> None:
    """Refuse what cannot be before anything is loaded."""
    if mode is not None and mode < 1:
        raise InputError("modes are counted from 1", key="mode", value=mode, hint="give --mode 1")
    if not 0 <= amplitude <= 20:
        raise InputError(
            "the amplitude is a percentage of the robot's size",
            key="amplitude",
            value=amplitude,
            hint="give 0 to 20 percent",
        )
    if seconds is not None and not seconds >= 0:
        raise InputError("the time is negative", key="seconds", value=seconds, hint="give e.g. 10")
    if record is not None and Path(record).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"'{record}' is not a page", key="record", value=record, hint="use a name that ends in .html")


def _tell(
    viewer: Any, requested_port: int | None, watched: Path | None, as_json: bool, diagnostics: list[Diagnostic]
) -> None:
    """Where the page is; stdout is flushed, since a program may wait for it."""
    actual_port = viewer.server.get_port()
    if requested_port and actual_port != requested_port:
        text = f"port {requested_port} is in use: the page is on port {actual_port}"
        diagnostics.append(Diagnostic("other-port", text, "port", actual_port))
    answer = {
        "address": viewer.address,
        "port": actual_port,
        "watching": watched and str(watched),
        "diagnostics": diagnostics,
    }
    rows = [("page", viewer.address), ("stop it with", "Ctrl-C")]
    if watched is not None:
        rows.insert(1, ("reloaded when it changes", str(watched)))
    output.print_result(answer, as_json, ("", ["", ""], rows))
    sys.stdout.flush()


def _open_browser(address: str) -> None:
    """Open the page where there is a screen; a browser in the terminal would be in the way."""
    import webbrowser

    screen = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if not screen or not webbrowser.open(address):
        click.echo("no browser was opened: open the page yourself", err=True)
