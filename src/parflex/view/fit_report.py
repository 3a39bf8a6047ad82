"""HTML reports of identification, updating and calibration."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from parflex.calibration.calibrate import Calibrated
from parflex.identification.result import Identified
from parflex.io import write_generated
from parflex.updating.result import Updated
from parflex.view import fit_figure
from parflex.view.html import card, figure_card, notes, page, table

MOST_FIGURES = 4
FROM_TO = ["95 % from", "to"]


def write_identification(folder: str | Path, identified: Identified) -> Path:
    """Write the page into a folder and return its path; files of others are not replaced."""
    return _write(folder, identification_page(identified))


def write_update(folder: str | Path, updated: Updated) -> Path:
    """Write the page into a folder and return its path; files of others are not replaced."""
    return _write(folder, updating_page(updated))


def write_calibration(folder: str | Path, calibrated: Calibrated) -> Path:
    """Write the page into a folder and return its path; files of others are not replaced."""
    return _write(folder, calibration_page(calibrated))


def _write(folder: str | Path, text: str) -> Path:
    return write_generated(folder, {"index.html": text})[0]


def identification_page(identified: Identified) -> str:
    """Return the text of the page; everything is in it."""
    items, validation = identified.parameters, identified.validation
    summary: list[list[Any]] = [
        ["base parameters determined", len(items)],
        ["of these significantly different from zero", sum(item.essential for item in items.values())],
        ["parameters undetermined", len(identified.undetermined)],
        ["relative error of the efforts", _percent(identified.relative_error)],
        ["condition number", f"{identified.condition:.4g}"],
        ["diagnostics", len(identified.diagnostics)],
    ]
    if validation is not None:
        summary.insert(4, ["relative error of the validation", _percent(validation["relative_error"])])
    motors = [
        [name, item["noise"], _percent(item["relative_error"]), item["largest"]]
        for name, item in identified.per_motor.items()
    ]
    rows = [
        [name if item.essential else f"({name})", item.value, item.interval[1] - item.value,
         1.96 * item.deviation_white, _percent(item.relative), item.file_value, item.unit, item.made_of]
        for name, item in items.items()
    ]  # fmt: skip
    gains = [[name, item["value"], 1.96 * item["deviation"]] for name, item in identified.gains.items()]
    lost = [[item["name"], item["why"]] for item in identified.undetermined]
    head = ["parameter", "value", "± 95 %", "± 95 %, white", "relative", "file", "unit", "stands for"]
    efforts = [
        figure_card(
            f"Efforts of {Path(item.record).name}, measured and predicted",
            fit_figure.draw_identified(identified, record=k),
        )
        for k, item in enumerate(identified.predictions[:MOST_FIGURES])
    ]
    parts = [
        card("Result", table(summary)),
        notes(identified.warnings),
        figure_card("Parameters and their intervals", fit_figure.draw_parameters(identified)),
        *efforts,
        figure_card("Residuals over position and velocity", fit_figure.draw_residuals(identified)),
        card(
            "Residuals by motor",
            table(motors, ["row", "noise (N, N m)", "relative error of the row", "largest"]),
            "<p>A relative error is the norm of the residuals over that of the efforts, less what is known.</p>",
        ),
        card(
            f"Parameters by {identified.estimator}",
            table(rows, head),
            "<p>In brackets: not significant, the first interval contains zero. The first interval is robust to "
            "correlation of the residuals, which filtering causes; the second is the published convention for "
            "white residuals.</p>",
        ),
        card("Drive gains", table(gains, ["motor", "gain", "± 95 %"])),
        card("What is not determined", table(lost, ["parameter", "why"])),
        _correlations(identified),
        figure_card("Spectra before and after the filter", fit_figure.draw_filtering(identified)),
        card("Processing", f"<ol>{''.join(f'<li>{escape(step)}</li>' for step in identified.steps)}</ol>"),
    ]
    return page(f"{identified.robot}: identification", *parts)


def updating_page(updated: Updated) -> str:
    """Return the text of the page; everything is in it."""
    numbers = [
        [key, item["before"], item["value"], *_interval(item, "undetermined"), item["prior"],
         "" if item["told"] is None else f"{item['told']:.0%}"]
        for key, item in updated.parameters.items()
    ]  # fmt: skip
    words = ("pose", "mode", "measured", "before", "after")
    pairs = [
        [*(item[word] for word in words), *item["interval"], item["mac"], "yes" if item["held_out"] else ""]
        for item in updated.pairs
    ]
    ratios = [
        [item["pose"], item["mode"], *(item["damping"][word] for word in words[2:]), *item["damping"]["interval"]]
        for item in updated.pairs if "damping" in item
    ]  # fmt: skip
    errors = {word.replace("_", " "): _percent(value) for word, value in updated.errors.items()}
    errors |= {f"error of the model, {word}": _percent(value) for word, value in updated.model_share.items()}
    errors["residuals over deviations"] = f"{updated.model_error:.3g}"
    pair_head = ["pose", "mode", "measured (Hz)", "before (Hz)", "after (Hz)", *FROM_TO, "MAC", "held out"]
    number_head = ["key", "before", "value", "deviation", *FROM_TO, "prior", "prior removed"]
    parts = [
        card(f"{updated.robot}: numbers of the file", table(numbers, number_head)),
        notes(updated.warnings),
        figure_card("Measured frequencies and the model", fit_figure.draw_updated(updated), table(pairs, pair_head)),
        card("Damping ratios", table(ratios, [*words, *FROM_TO])),
        card("Errors", table(errors.items())),
        figure_card("MAC of measured shapes", fit_figure.draw_macs(updated)) if updated.macs else "",
        figure_card("Cosines between the numbers", fit_figure.draw_cosines(updated)) if len(updated.keys) > 1 else "",
    ]
    return page(f"{updated.robot}: update", *parts)


def calibration_page(found: Calibrated) -> str:
    """Return the text of the page; everything is in it."""
    tables = {title: table(rows, head if any(head) else ()) for title, head, rows in found.tables}
    numbers, fit = tables.pop("numbers"), tables.pop("fit")
    parts = [
        card("Result", fit),
        notes(found.warnings),
        figure_card("Residuals before and after the fit", fit_figure.draw_calibration(found)),
        figure_card("Numbers", fit_figure.draw_calibrated(found), numbers),
        *(card(title.capitalize(), text) for title, text in tables.items()),
        _correlations(found),
    ]
    return page(f"{found.robot}: calibration", *parts)


def _correlations(found: Any) -> str:
    several = len(found.parameters) > 1
    return figure_card("Correlation of the parameters", fit_figure.draw_correlations(found)) if several else ""


def _interval(item: Any, word: str) -> list[Any]:
    return [word, "", ""] if item["interval"] is None else [item["deviation"], *item["interval"]]


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"
