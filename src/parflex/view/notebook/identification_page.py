"""A page of identification: parameters with their intervals, what was done, measured and predicted efforts."""

from __future__ import annotations

from html import escape
from pathlib import Path

from parflex.codegen.source_files import MARK, write_files
from parflex.identification.result import Identified
from parflex.view.figures.identification_figures import draw_filtering, draw_identified
from parflex.view.notebook.html_parts import card, drawn, notes, table

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:24px auto;max-width:940px;padding:0 16px;color-scheme:light dark}"
)
HEAD = ["parameter", "value", "± 95 %", "± 95 %, white", "relative", "file", "unit", "stands for"]
MOST_FIGURES = 4


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
            table(rows, HEAD),
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
        parts.append(card(told.capitalize(), drawn(draw_identified(found, record=k), told)))
    told = "spectra before and behind the filter"
    parts.append(card(told.capitalize(), drawn(draw_filtering(found), told)))
    body = "\n".join(f'<div style="margin:14px 0">{part}</div>' for part in parts if part)
    return (
        f"<!DOCTYPE html><!-- {MARK} -->\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(found.robot)}: identification</title>'
        f"<style>{STYLE}</style></head><body><h1>{escape(found.robot)}: identification</h1>\n{body}</body></html>\n"
    )


def write_identification(folder: str | Path, found: Identified) -> Path:
    """Write the page into a folder; files of others are not replaced."""
    return write_files(folder, {"index.html": identification_page(found)})[0]
