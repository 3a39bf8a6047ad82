"""A page of an update: numbers with their intervals, measured modes beside the model, MAC, cosines."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from parflex.codegen.source_files import MARK, write_files
from parflex.updating.result import Updated
from parflex.view.figures.updating_figures import draw_cosines, draw_macs, draw_updated
from parflex.view.notebook.html_parts import card, drawn, notes, table
from parflex.view.notebook.identification_page import STYLE

HEAD = ["key", "before", "value", "deviation", "95 % from", "to", "prior", "told"]
PAIRS = ["pose", "mode", "measured (Hz)", "before (Hz)", "after (Hz)", "95 % from", "to", "MAC", "held out"]


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
        card(f"{found.robot}: numbers that fit", table(numbers, HEAD)),
        notes(found.warnings),
        card(told.capitalize(), drawn(draw_updated(found), told), table(pairs, PAIRS)),
    ]
    if ratios:
        head = ["pose", "mode", "measured", "before", "after", "95 % from", "to"]
        parts.append(card("Damping ratios", table(ratios, head)))
    parts.append(card("Errors", table(fit)))
    if found.macs:
        parts.append(card("MAC", drawn(draw_macs(found), "MAC of measured shapes")))
    if len(found.keys) > 1:
        parts.append(card("Cosines", drawn(draw_cosines(found), "cosines between the numbers")))
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
    return write_files(folder, {"index.html": updating_page(found)})[0]
