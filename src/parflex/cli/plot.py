"""Command `plot`: runs over time and frequency, measurements, mode shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parflex.cli.group import verb
from parflex.cli.output import Answer
from parflex.cli.vocabulary import open_robot
from parflex.errors import InputError, ParflexError

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Robot

RUNS = (".csv", ".npz")


@verb(
    "time",
    "plot run.csv -o run.svg",
    "plot run.csv --columns 'effort.*' --spectrum -o spectrum.pdf",
    "plot run.csv --measured bench.csv -o comparison.svg",
    "plot navaro --modes 6 -o modes.svg",
)
def plot(
    what: str,
    *,
    columns: Any = None,
    measured: str | None = None,
    spectrum: bool = False,
    highest: float | None = None,
    energies: bool = False,
    sections: bool = False,
    instant: float | None = None,
    modes: int | None = None,
    pose: Any = None,
    servo: Any = None,
    amplitude: float = 8.0,
    of_robot: str | None = None,
    title: str = "",
    out: str,
) -> Answer:
    """Figures of a run (.csv or .npz), or of the mode shapes of a robot."""
    options = {**locals(), "robot": of_robot}
    if what.endswith(RUNS):
        _refuse(options, ("modes", "pose", "servo"), "a run has no mode shapes", what)
        drawn = _plot_run(what, out, options)
    else:
        words = ("columns", "measured", "spectrum", "energies", "sections", "instant", "highest", "robot")
        _refuse(options, words, "a robot has no columns", what)
        drawn = _plot_modes(what, out, options)
    rows = [(key, value) for key, value in drawn.items() if value]
    return Answer({"file": out, **drawn}, ("", ["", ""], [("written", out), *_lines(rows)]))


def _lines(rows: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return tables of tables, one line each."""
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

    amplitude = options["amplitude"]
    if not 0 < amplitude <= 50:
        text = "the amplitude is a percentage of the robot's size"
        raise InputError(text, key="amplitude", value=amplitude, hint="give up to 50 percent")
    modes = natural_frequencies(open_robot(what), options["pose"], options["modes"], servo=options["servo"])
    draw_modes(modes, path, amplitude / 100, options["title"])
    return {"frequencies_hz": modes.frequencies.tolist()}


def _plot_run(what: str, path: str, options: dict[str, Any]) -> dict[str, Any]:
    from parflex import load_run
    from parflex.trajectories.files import read_table
    from parflex.view import run_figure

    kinds = [word for word in ("measured", "spectrum", "energies", "sections") if options[word]]
    if len(kinds) > 1:
        text = f"'--{kinds[0]}' and '--{kinds[1]}' are different figures"
        raise InputError(text, key=kinds[1], hint="draw one after the other")
    run, columns, title = load_run(what), options["columns"], options["title"]
    robot = _robot_of_run(run, options["robot"])
    if options["energies"]:
        run_figure.draw_energies(run, path, title)
        return {"columns": run_figure.energy_columns(run)}
    if options["sections"]:
        from parflex import draw_sections

        draw_sections(run, path, columns, options["instant"], title)
        return {"columns": [entry.name for entry in run_figure.along_beams(run, columns)]}
    if options["measured"]:
        measured = read_table(options["measured"], "measured")
        run_figure.draw_comparison(run, measured, path, columns, robot, title)
        differences = {
            name: entry.as_dict() for name, entry in run_figure.run_differences(run, measured, columns).items()
        }
        return {"columns": list(differences), "differences": differences}
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


def _robot_of_run(run: Any, name: str | None) -> Robot | None:
    """Return the robot that is named, or that of the run if it is at hand: it tells the units of joints."""
    if name is not None:
        return open_robot(name)
    robot_name = run.settings.get("robot")
    try:
        return open_robot(robot_name) if isinstance(robot_name, str) else None
    except ParflexError:
        return None


def _natural_frequencies(robot: Any) -> Any:
    from parflex import natural_frequencies

    try:
        return natural_frequencies(robot).frequencies
    except ParflexError:
        return None
