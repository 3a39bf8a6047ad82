"""HTML reports of identification and updating."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parflex.identification.result import Identified
from parflex.io import write_generated
from parflex.updating.result import Updated
from parflex.view.fit_figure import (
    draw_correlations,
    draw_cosines,
    draw_filtering,
    draw_identified,
    draw_macs,
    draw_parameters,
    draw_residuals,
    draw_updated,
)
from parflex.view.html import card, embedded_figure, notes, page, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IDENTIFICATION_HEAD = ["parameter", "value", "± 95 %", "± 95 %, white", "relative", "file", "unit", "stands for"]

MOST_FIGURES = 4

UPDATING_HEAD = ["key", "before", "value", "deviation", "95 % from", "to", "prior", "prior removed"]

PAIRS = ["pose", "mode", "measured (Hz)", "before (Hz)", "after (Hz)", "95 % from", "to", "MAC", "held out"]


def identification_page(identified: Identified) -> str:
    """The text of the page; everything is in it."""
    rows = [
        [name if item.essential else f"({name})", item.value, item.interval[1] - item.value,
         1.96 * item.deviation_white, f"{100 * item.relative:.3g} %", item.file_value, item.unit, item.made_of]
        for name, item in identified.parameters.items()
    ]  # fmt: skip
    motors = [
        [name, item["noise"], f"{100 * item['relative_error']:.3g} %", item["largest"]]
        for name, item in identified.per_motor.items()
    ]
    significant = sum(item.essential for item in identified.parameters.values())
    summary: list[list[Any]] = [
        ["base parameters determined", len(identified.parameters)],
        ["of these significantly different from zero", significant],
        ["parameters undetermined", len(identified.undetermined)],
        ["relative error of the efforts", f"{100 * identified.relative_error:.3g} %"],
        ["condition number", f"{identified.condition:.4g}"],
        ["diagnostics", len(identified.diagnostics)],
    ]
    if identified.validation is not None:
        summary.insert(
            4, ["relative error of the validation", f"{100 * identified.validation['relative_error']:.3g} %"]
        )
    parts = [
        card("Result", table(summary)),
        notes(identified.warnings),
        _drawn("Parameters and their intervals", draw_parameters(identified)),
    ]
    for k, item in enumerate(identified.predictions[:MOST_FIGURES]):
        parts.append(_drawn(f"Efforts of {Path(item.record).name}, measured and predicted",
                            draw_identified(identified, record=k)))  # fmt: skip
    parts += [
        _drawn("Residuals over position and velocity", draw_residuals(identified)),
        card(
            "Residuals by motor", table(motors, ["row", "noise (N, N m)", "relative error of the row", "largest"]),
            "<p>A relative error is the norm of the residuals over that of the efforts, less what is known.</p>",
        ),
        card(
            f"Parameters by {identified.estimator}",
            table(rows, IDENTIFICATION_HEAD),
            "<p>In brackets: not significant, the first interval contains zero. The first interval is robust to "
            "correlation of the residuals, which filtering causes; the second is the published convention for "
            "white residuals.</p>",
        ),
    ]  # fmt: skip
    if identified.gains:
        gains = [[name, item["value"], 1.96 * item["deviation"]] for name, item in identified.gains.items()]
        parts.append(card("Drive gains", table(gains, ["motor", "gain", "± 95 %"])))
    if identified.undetermined:
        lost = [[item["name"], item["why"]] for item in identified.undetermined]
        parts.append(card("What is not determined", table(lost, ["parameter", "why"])))
    if len(identified.parameters) > 1:
        parts.append(_drawn("Correlation of the parameters", draw_correlations(identified)))
    parts.append(_drawn("Spectra before and after the filter", draw_filtering(identified)))
    steps = "".join(f"<li>{escape(step)}</li>" for step in identified.steps)
    parts.append(card("Processing", f"<ol>{steps}</ol>"))
    return page(f"{identified.robot}: identification", *parts)


def _drawn(title: str, figure: Figure) -> str:
    return card(title, embedded_figure(figure, title[:1].lower() + title[1:]))


def write_identification(folder: str | Path, identified: Identified) -> Path:
    """Write the page into a folder; files of others are not replaced."""
    return write_generated(folder, {"index.html": identification_page(identified)})[0]


def updating_page(updated: Updated) -> str:
    """The text of the page; everything is in it."""
    numbers = [
        [key, item["before"], item["value"],
         *(["undetermined", "", ""] if item["interval"] is None else [item["deviation"], *item["interval"]]),
         _shown(item["prior"]), "" if item["told"] is None else f"{item['told']:.0%}"]
        for key, item in updated.parameters.items()
    ]  # fmt: skip
    pairs = [
        [item["pose"], item["mode"], item["measured"], item["before"], item["after"], *map(_shown, item["interval"]),
         item["mac"], "yes" if item["held_out"] else ""]
        for item in updated.pairs
    ]  # fmt: skip
    ratios = [
        [item["pose"], item["mode"], *(item["damping"][word] for word in ("measured", "before", "after")),
         *item["damping"]["interval"]]
        for item in updated.pairs if "damping" in item
    ]  # fmt: skip
    fit = [[word.replace("_", " "), f"{100 * value:.3g} %"] for word, value in updated.errors.items()]
    fit += [[f"error of the model, {word}", f"{100 * value:.3g} %"] for word, value in updated.model_share.items()]
    fit.append(["residuals over deviations", f"{updated.model_error:.3g}"])
    caption = "measured frequencies beside the model"
    parts = [
        card(f"{updated.robot}: numbers of the file", table(numbers, UPDATING_HEAD)),
        notes(updated.warnings),
        card(caption.capitalize(), embedded_figure(draw_updated(updated), caption), table(pairs, PAIRS)),
    ]
    if ratios:
        head = ["pose", "mode", "measured", "before", "after", "95 % from", "to"]
        parts.append(card("Damping ratios", table(ratios, head)))
    parts.append(card("Errors", table(fit)))
    if updated.macs:
        parts.append(card("MAC", embedded_figure(draw_macs(updated), "MAC of measured shapes")))
    if len(updated.keys) > 1:
        parts.append(card("Cosines", embedded_figure(draw_cosines(updated), "cosines between the numbers")))
    return page(f"{updated.robot}: update", *parts)


def _shown(value: float | None) -> Any:
    return "" if value is None else value


def write_update(folder: str | Path, updated: Updated) -> Path:
    """Write the page into a folder; files of others are not replaced."""
    return write_generated(folder, {"index.html": updating_page(updated)})[0]
