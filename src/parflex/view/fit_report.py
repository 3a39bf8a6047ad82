"""HTML reports of identification and updating."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from parflex.identification.result import Identified
from parflex.io import MARK, write_generated
from parflex.updating.result import Updated
from parflex.view.fit_figure import draw_cosines, draw_filtering, draw_identified, draw_macs, draw_updated
from parflex.view.html import card, embedded_figure, notes, table

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:24px auto;max-width:940px;padding:0 16px;color-scheme:light dark}"
)

IDENTIFICATION_HEAD = ["parameter", "value", "± 95 %", "± 95 %, white", "relative", "file", "unit", "stands for"]

MOST_FIGURES = 4

UPDATING_HEAD = ["key", "before", "value", "deviation", "95 % from", "to", "prior", "told"]

PAIRS = ["pose", "mode", "measured (Hz)", "before (Hz)", "after (Hz)", "95 % from", "to", "MAC", "held out"]


def identification_page(found: Identified) -> str:
    """The text of the page; everything is in it."""
    rows = [
        [name if one.essential else f"({name})", one.value, 1.96 * one.deviation, 1.96 * one.deviation_white,
         f"{100 * one.relative:.3g} %", one.file_value, one.unit, one.made_of]
        for name, one in found.parameters.items()
    ]  # fmt: skip
    motors = [
        [name, one["noise"], f"{100 * one['relative_error']:.3g} %", one["largest"]]
        for name, one in found.per_motor.items()
    ]
    parts = [
        card(
            f"{found.robot}: parameters by {found.estimator}",
            table(rows, IDENTIFICATION_HEAD),
            "<p>In brackets: not told from zero. The first interval is robust to correlation of the residuals, which "
            "filtering causes; the second is the published convention for white residuals.</p>",
        ),
        notes(found.warnings),
        card("What was done", "<ol>" + "".join(f"<li>{escape(step)}</li>" for step in found.steps) + "</ol>"),
        card(
            f"Residuals: relative error of all motors {100 * found.relative_error:.3g} %, condition number "
            f"{found.condition:.4g}",
            table(motors, ["row", "noise (N, N m)", "relative error of the row", "largest (N, N m)"]),
            "<p>A relative error is the norm of the residuals over that of the efforts, less what is known.</p>",
        ),
    ]
    if found.gains:
        gains = [[name, one["value"], 1.96 * one["deviation"]] for name, one in found.gains.items()]
        parts.append(card("Drive gains", table(gains, ["motor", "gain", "± 95 %"])))
    if found.undetermined:
        lost = [[one["name"], one["why"]] for one in found.undetermined]
        parts.append(card("What is not determined", table(lost, ["parameter", "why"])))
    for k, one in enumerate(found.predictions[:MOST_FIGURES]):
        told = f"efforts of {Path(one.record).name}, measured and predicted"
        parts.append(card(told.capitalize(), embedded_figure(draw_identified(found, record=k), told)))
    told = "spectra before and behind the filter"
    parts.append(card(told.capitalize(), embedded_figure(draw_filtering(found), told)))
    body = "\n".join(f'<div style="margin:14px 0">{part}</div>' for part in parts if part)
    return (
        f"<!DOCTYPE html><!-- {MARK} -->\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(found.robot)}: identification</title>'
        f"<style>{STYLE}</style></head><body><h1>{escape(found.robot)}: identification</h1>\n{body}</body></html>\n"
    )


def write_identification(folder: str | Path, found: Identified) -> Path:
    """Write the page into a folder; files of others are not replaced."""
    return write_generated(folder, {"index.html": identification_page(found)})[0]


def updating_page(found: Updated) -> str:
    """The text of the page; everything is in it."""
    numbers = [
        [key, one["before"], one["value"],
         *(["undetermined", "", ""] if one["interval"] is None else [one["deviation"], *one["interval"]]),
         _shown(one["prior"]), "" if one["told"] is None else f"{one['told']:.0%}"]
        for key, one in found.parameters.items()
    ]  # fmt: skip
    pairs = [
        [one["pose"], one["mode"], one["measured"], one["before"], one["after"], *map(_shown, one["interval"]),
         one["mac"], "yes" if one["held_out"] else ""]
        for one in found.pairs
    ]  # fmt: skip
    ratios = [
        [one["pose"], one["mode"], *(one["damping"][word] for word in ("measured", "before", "after")),
         *one["damping"]["interval"]]
        for one in found.pairs if "damping" in one
    ]  # fmt: skip
    fit = [[word.replace("_", " "), f"{100 * value:.3g} %"] for word, value in found.errors.items()]
    fit += [[f"error of the model, {word}", f"{100 * value:.3g} %"] for word, value in found.model_share.items()]
    fit.append(["residuals over deviations", f"{found.model_error:.3g}"])
    told = "measured frequencies beside the model"
    parts = [
        card(f"{found.robot}: numbers that fit", table(numbers, UPDATING_HEAD)),
        notes(found.warnings),
        card(told.capitalize(), embedded_figure(draw_updated(found), told), table(pairs, PAIRS)),
    ]
    if ratios:
        head = ["pose", "mode", "measured", "before", "after", "95 % from", "to"]
        parts.append(card("Damping ratios", table(ratios, head)))
    parts.append(card("Errors", table(fit)))
    if found.macs:
        parts.append(card("MAC", embedded_figure(draw_macs(found), "MAC of measured shapes")))
    if len(found.keys) > 1:
        parts.append(card("Cosines", embedded_figure(draw_cosines(found), "cosines between the numbers")))
    body = "\n".join(f'<div style="margin:14px 0">{part}</div>' for part in parts if part)
    return (
        f"<!DOCTYPE html><!-- {MARK} -->\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(found.robot)}: update</title>'
        f"<style>{STYLE}</style></head><body><h1>{escape(found.robot)}: update</h1>\n{body}</body></html>\n"
    )


def _shown(value: float | None) -> Any:
    return "" if value is None else value


def write_update(folder: str | Path, found: Updated) -> Path:
    """Write the page into a folder; files of others are not replaced."""
    return write_generated(folder, {"index.html": updating_page(found)})[0]
