"""From the cases of a study to its table: means where all laws finish, failures counted apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from parflex.control.control_result import INDEXES
from parflex.control.study_file import StudyFile


def summary(file: StudyFile, cases: Mapping[tuple[int, int], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A table for each percentage: errors by law, how each compares with the first, and what failed."""
    rows = []
    for number, percentage in enumerate(file.percentages):
        own = [cases[number, template] for template in range(file.templates) if (number, template) in cases]
        both = [case for case in own if all(not case[law]["failure"] for law in file.laws)]
        rows.append(
            {
                "percentage": percentage,
                "done": len(own),
                "compared": len(both),
                "errors": {law: _means(both, law) for law in file.laws},
                "ratio": {law: _ratios(both, file.laws[0], law) for law in file.laws[1:]},
                "losing": {law: _losing(both, file.laws[0], law) for law in file.laws[1:]},
                "failures": {
                    law: dict(Counter(case[law]["failure"] for case in own if case[law]["failure"]))
                    for law in file.laws
                },
            }
        )
    return rows


def _means(cases: list[Mapping[str, Any]], law: str) -> dict[str, float | None]:
    return {k: float(np.mean([c[law]["errors"][k] for c in cases])) if cases else None for k in INDEXES}


def _ratios(cases: list[Mapping[str, Any]], first: str, law: str) -> dict[str, float | None]:
    """Means of a law over those of the first; None where the first has no error."""
    one, two = _means(cases, first), _means(cases, law)
    return {k: two[k] / one[k] if one[k] and two[k] is not None else None for k in INDEXES}  # type: ignore[operator]


def _losing(cases: list[Mapping[str, Any]], first: str, law: str) -> dict[str, float | None]:
    """Share of the single templates in which the law errs more than the first."""
    return {
        k: float(np.mean([c[law]["errors"][k] > c[first]["errors"][k] for c in cases])) if cases else None
        for k in INDEXES
    }
