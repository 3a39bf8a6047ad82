"""Command `plot`: runs over time and frequency, measurements, mode shapes."""

from __future__ import annotations

from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.options import number_or_table, open_robot, read_pose_option
from parflex.errors import InputError, ParflexError

RUNS = (".csv", ".npz")


@cli.command(
    epilog="\b\nExamples:\n  parflex plot run.csv -o run.svg\n"
    "  parflex plot run.csv --columns 'effort.*' --spectrum -o spectrum.pdf\n"
    "  parflex plot run.csv --measured bench.csv -o comparison.svg\n  parflex plot navaro --modes 6 -o modes.svg"
)
@click.argument("what", metavar="RUN|ROBOT")
@click.option(
    "--columns", metavar="LIST", help="Columns of a run, e.g. 'P.x,effort.*'; default pose, efforts, energies."
)
@click.option("--measured", metavar="FILE", help="Measured columns to compare with: .csv or .npz with 't'.")
@click.option("--spectrum", is_flag=True, help="Amplitudes over frequency instead of values over time.")
@click.option("--highest", type=float, metavar="HZ", help="Upper frequency of a spectrum, Hz.")
@click.option("--energies", is_flag=True, help="Plot the energies of a run, and how their sum changes.")
@click.option("--sections", is_flag=True, help="Section forces and stresses along beams, and where they are largest.")
@click.option("--instant", type=float, metavar="T", help="Time of --sections, s; default: that of the largest value.")
@click.option("--modes", type=int, metavar="N", help="Number of mode shapes of a robot; default: six, or all.")
@click.option(
    "--pose", metavar="NAME|KEY=VALUE,...", help="Pose at which the modes of a robot are drawn; default: home."
)
@click.option(
    "--servo", metavar="VALUE|JOINT=VALUE,...", help="Stiffness of servos that hold the motors of a robot, N/m or N m."
)
@click.option(
    "--amplitude", type=float, default=8.0, show_default=True, help="Amplitude of a mode shape, % of the robot's size."
)
@click.option("--robot", metavar="ROBOT", help="Robot of a run; adds units, and its natural frequencies to a spectrum.")
@click.option("--title", metavar="TEXT", default="", help="Title of the figure.")
@click.option(
    "-o",
    "--out",
    "path",
    required=True,
    metavar="FILE",
    help="Output file: .svg, .pdf or .png.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a single JSON object.")
def plot(what: str, as_json: bool, path: str, **options: Any) -> None:
    """Figures of a run (.csv or .npz), or of the mode shapes of a robot."""
    from parflex.view.style import picture_path

    picture_path(path)
    drawn = _plot_run(what, path, options) if what.endswith(RUNS) else _plot_modes(what, path, options)
    rows = [(key, value) for key, value in drawn.items() if value]
    output.print_result({"file": path, **drawn}, as_json, ("", ["", ""], [("written", path), *_lines(rows)]))


def _lines(rows: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Tables of tables, one line each."""
    lines: list[tuple[str, Any]] = []
    for key, value in rows:
        if not isinstance(value, dict):
            lines.append((key, value))
            continue
        for name, entry in value.items():
            text = entry if not isinstance(entry, dict) else [f"{word} {number:.4g}" for word, number in entry.items()]
            lines.append((f"{key.replace('_', ' ')} of {name}", text))
    return lines


def _plot_modes(what: str, path: str, options: dict[str, Any]) -> dict[str, Any]:
    from parflex import draw_modes, natural_frequencies

    words = ("columns", "measured", "spectrum", "energies", "sections", "instant", "highest", "robot")
    _refuse(options, words, "a robot has no columns", what)
    if not 0 < options["amplitude"] <= 50:
        raise InputError(
            "the amplitude is a percentage of the robot's size",
            key="amplitude",
            value=options["amplitude"],
            hint="give up to 50 percent",
        )
    robot = open_robot(what, (), None, None, None)
    servo = number_or_table(options["servo"], "servo")
    modes = natural_frequencies(robot, read_pose_option(options["pose"]), options["modes"], servo=servo)
    draw_modes(modes, path, options["amplitude"] / 100, options["title"])
    return {"frequencies_hz": modes.frequencies.tolist()}


def _plot_run(what: str, path: str, options: dict[str, Any]) -> dict[str, Any]:
    from parflex import load_run
    from parflex.trajectories.files import read_table
    from parflex.view import run_figure

    _refuse(options, ("modes", "pose", "servo"), "a run has no mode shapes", what)
    kinds = [word for word in ("measured", "spectrum", "energies", "sections") if options[word]]
    if len(kinds) > 1:
        raise InputError(
            f"'--{kinds[0]}' and '--{kinds[1]}' are different figures", key=kinds[1], hint="draw one after the other"
        )
    run, title = load_run(what), options["title"]
    robot = _robot_of_run(run, options["robot"])
    listed = options["columns"]
    columns = None if listed is None else [word.strip() for word in listed.split(",") if word.strip()]
    if options["energies"]:
        run_figure.draw_energies(run, path, title)
        return {"columns": run_figure.energy_columns(run)}
    if options["sections"]:
        from parflex import draw_sections
        from parflex.view.run_figure import along_beams

        draw_sections(run, path, columns, options["instant"], title)
        return {"columns": [entry.name for entry in along_beams(run, columns)]}
    if options["measured"]:
        measured = read_table(options["measured"], "measured")
        run_figure.draw_comparison(run, measured, path, columns, robot, title)
        differences = run_figure.run_differences(run, measured, columns)
        return {
            "columns": list(differences),
            "differences": {name: entry.as_dict() for name, entry in differences.items()},
        }
    if options["spectrum"]:
        natural = _natural_frequencies(robot) if options["robot"] else None
        run_figure.draw_spectrum(run, path, columns, robot, natural, options["highest"], title)
        peaks = run_figure.spectrum_peaks(run, columns)
        return {"columns": list(peaks), "peaks_hz": peaks}
    run_figure.draw_run(run, path, columns, robot, title)
    return {"columns": run_figure.chosen_columns(run, columns)}


def _refuse(options: dict[str, Any], words: tuple[str, ...], why: str, what: str) -> None:
    for word in words:
        if options[word]:
            raise InputError(f"{why}: '--{word}' does not apply to '{what}'", key=word, value=what, hint="leave it out")


def _robot_of_run(run: Any, name: str | None) -> Any:
    """The robot that is named, or that of the run if it is at hand: it tells the units of joints."""
    if name is not None:
        return open_robot(name, (), None, None, None)
    robot_name = run.settings.get("robot")
    if not isinstance(robot_name, str):
        return None
    try:
        return open_robot(robot_name, (), None, None, None)
    except ParflexError:
        return None


def _natural_frequencies(robot: Any) -> Any:
    from parflex import natural_frequencies

    try:
        return natural_frequencies(robot).frequencies
    except ParflexError:
        return None
