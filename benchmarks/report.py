"""What was measured: figures with their conditions, ratios to peers, peers that were left out."""

from __future__ import annotations

import importlib
import sys
from dataclasses import asdict, dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

AGREE = 1e-6  # largest relative error of a model that may be called right


@dataclass(frozen=True)
class Figure:
    """One number; `error` is the largest relative error of the model that it belongs to."""

    benchmark: str
    name: str
    value: float
    unit: str
    error: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Ratio:
    """How many times more the peer needs; where `right` is false our own error is too large."""

    benchmark: str
    name: str
    ours: float
    peer: float
    unit: str
    ratio: float
    right: bool
    low: float | None = None  # of timings: a tenth of the rounds had a smaller ratio, a tenth a larger one
    high: float | None = None


@dataclass
class Report:
    """Everything of one run."""

    figures: list[Figure] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    rounds: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)

    def progress(self, text: str) -> None:
        """A line on stderr."""
        print(text, file=sys.stderr, flush=True)

    def figure(
        self, benchmark: str, name: str, value: float, unit: str, *, error: float | None = None, note: str = ""
    ) -> None:
        """Keep a number, and say it at once: a run that is cut short is not lost."""
        self.figures.append(Figure(benchmark, name, value, unit, error, note))
        self.progress(f"{benchmark}: {name} {value:.4g} {unit}" + ("" if error is None else f", error {error:.2g}"))

    def timing(self, benchmark: str, name: str, rounds: np.ndarray, *, error: float | None, note: str) -> None:
        """Keep the best of several rounds, and the rounds for the spread of ratios."""
        self.rounds[benchmark, name] = rounds
        self.figure(benchmark, name, float(rounds.min()), "ns", error=error, note=note)

    def compare(self, benchmark: str, ours: str, peer: str, *, allowed: float | None = AGREE) -> None:
        """Keep the ratio of two figures, if both were measured; `allowed` None: our error is at most the peer's."""
        found = {figure.name: figure for figure in self.figures if figure.benchmark == benchmark}
        if ours not in found or peer not in found:
            return
        own, other = found[ours], found[peer]
        ratio = other.value / own.value
        limit = other.error if allowed is None else allowed
        right = own.error is None or limit is None or own.error <= limit
        low = high = None
        if (benchmark, ours) in self.rounds and (benchmark, peer) in self.rounds:
            spread = self.rounds[benchmark, peer] / self.rounds[benchmark, ours]
            low, high = (float(value) for value in np.percentile(spread, [10, 90]))
        name = f"{ours} against {peer}"
        self.ratios.append(Ratio(benchmark, name, own.value, other.value, own.unit, ratio, right, low, high))

    def optional(self, module: str, peer: str) -> ModuleType | None:
        """The module of a peer, or None if the peer is not installed, which is said."""
        try:
            return importlib.import_module(module)
        except ImportError as error:
            self.skip(peer, f"not installed ({error})")
            return None

    def skip(self, peer: str, reason: str) -> None:
        """Name a peer that is left out."""
        entry = {"peer": peer, "reason": reason}
        if entry not in self.skipped:
            self.skipped.append(entry)
            self.progress(f"left out: {peer}: {reason}")

    def fail(self, what: str, error: Exception) -> None:
        """Name something of our own that did not work."""
        self.failed.append({"what": what, "error": f"{type(error).__name__}: {error}"})
        self.progress(f"failed: {what}: {error}")

    def as_json(self, machine: dict[str, Any]) -> dict[str, Any]:
        """Everything as one object."""
        return {
            "machine": machine,
            "figures": [asdict(figure) for figure in self.figures],
            "ratios": [asdict(ratio) for ratio in self.ratios],
            "skipped": self.skipped,
            "failed": self.failed,
        }

    def show(self, machine: dict[str, Any]) -> None:
        """Tables on stdout."""
        console = Console(width=None if sys.stdout.isatty() else 150)
        console.print(", ".join(f"{key} {value}" for key, value in machine.items()))
        figures = Table("benchmark", "what", "value", "unit", "error", "conditions", title="figures")
        for figure in self.figures:
            error = "" if figure.error is None else f"{figure.error:.1e}"
            figures.add_row(figure.benchmark, figure.name, _fast_call(figure.value), figure.unit, error, figure.note)
        console.print(figures)
        ratios = Table("benchmark", "what", "measured", "peer", "unit", "ratio", "10 to 90 %", "remark", title="ratios")
        for ratio in self.ratios:
            spread = "" if ratio.low is None or ratio.high is None else f"{ratio.low:.2f} to {ratio.high:.2f}"
            remark = "" if ratio.right else "our error exceeds the peer's"
            cells = (
                _fast_call(ratio.ours),
                _fast_call(ratio.peer),
                ratio.unit,
                _fast_call(ratio.ratio),
                spread,
                remark,
            )
            ratios.add_row(ratio.benchmark, ratio.name, *cells)
        if self.ratios:
            console.print(ratios)
        for entry in self.skipped:
            console.print(f"left out: {entry['peer']}: {entry['reason']}")
        for entry in self.failed:
            console.print(f"failed: {entry['what']}: {entry['error']}")


def _fast_call(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}"
