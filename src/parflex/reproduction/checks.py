"""Published and computed numbers with verdicts: `reproduce(...)`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from parflex.errors import ParflexError
from parflex.records import Record
from parflex.reproduction.quantities import Quantities
from parflex.reproduction.tables import Group, Row, paper_names, read_paper

Number = float | int
ProgressCallback = Callable[[int, int, str], None]
OK, DIFFERS, FITTED, NOT_REPRODUCIBLE = "ok", "differs", "fitted", "not-reproducible"


@dataclass(frozen=True, eq=False, repr=False)
class Check(Record):
    """A `quantity` of a `paper`: `published` and `computed` value, their `difference` and the `tolerance` (its unit).

    `status` is ok, differs, fitted or not-reproducible, `ok` None where nothing can be said, `note` says why; `group`,
    `row` and `name` serve printed tables.
    """

    paper: str
    quantity: str
    published: Number | None
    computed: Number | None
    difference: Number | None
    tolerance: Number | None
    status: str
    ok: bool | None
    note: str
    group: Group
    row: str
    name: str

    def as_dict(self) -> dict[str, Any]:
        """Return the entry of the command line's JSON."""
        keys = ("paper", "quantity", "published", "computed", "difference", "tolerance", "status", "ok", "note")
        return {key: getattr(self, key) for key in keys}


def reproduce(paper: str | None = None, quick: bool = False, progress: ProgressCallback | None = None) -> list[Check]:
    """Compute every published number of one paper, or of all, anew.

    Parameters
    ----------
    paper : str, default None
        Key of a paper; None: all.
    quick : bool, default False
        Leave out simulations, studies and times.
    progress : callable, default None
        Called with (done, all, what) at intervals.

    Returns
    -------
    list[Check]
        Published and computed values with their difference, tolerance and status.
    """
    papers = [read_paper(name) for name in ([paper] if paper else paper_names())]
    groups = [(paper, group) for paper in papers for group in paper.group if not (quick and group.slow)]
    rows = [(paper, group, row) for paper, group in groups for row in group.rows or [Row()]]
    quantities = Quantities()
    checks: list[Check] = []
    for done, (of, group, row) in enumerate(rows):
        if progress:
            progress(done, len(rows), f"{of.paper}: {group.title}")
        shared = of.cases[row.case] if row.case else {}
        checks += _row(of.paper, group, row, {**group.options, **shared, **row.options}, quantities)
    if progress:
        progress(len(rows), len(rows), "")
    return checks


def _row(paper: str, group: Group, row: Row, options: dict[str, Any], quantities: Quantities) -> Iterator[Check]:
    published: list[Any] = list(row.published) or [None]
    names = [*(row.names or group.names), *[""] * len(published)]
    note = f"{group.source}: {group.reason}"
    computed: list[Any] = [None] * len(published)
    if group.kind is not None:
        try:
            computed = quantities.compute(group.kind, published, options)
        except ParflexError as error:
            note = f"{note}; it could not be computed: {error}"
    tolerances = group.tolerance if row.tolerance is None else row.tolerance
    for k, (there, here) in enumerate(zip(published, computed, strict=True)):
        difference = None if there is None or here is None else here - there
        tolerance = tolerances[k] if isinstance(tolerances, list) else tolerances
        status = _status(group, difference, tolerance)
        ok = None if status == NOT_REPRODUCIBLE else status != DIFFERS
        label = ", ".join(word for word in (row.name, names[k]) if word)
        quantity = (f"{group.title}: {label}" if label else group.title) + (f" ({group.unit})" if group.unit else "")
        shown = None if ok is None else tolerance
        yield Check(paper, quantity, there, here, difference, shown, status, ok, note, group, row.name, names[k])


def _status(group: Group, difference: Number | None, tolerance: Number) -> str:
    if group.verdict == NOT_REPRODUCIBLE:
        return NOT_REPRODUCIBLE
    if difference is None or not math.isfinite(difference):
        return DIFFERS
    within_tolerance = difference <= tolerance if group.compare == "at most" else abs(difference) <= tolerance
    if not within_tolerance:
        return DIFFERS
    return FITTED if group.verdict == "fitted" else OK


def totals(checks: list[Check]) -> dict[str, int]:
    """Return how many checks have each status."""
    words = (OK, DIFFERS, FITTED, NOT_REPRODUCIBLE)
    return {status: sum(check.status == status for check in checks) for status in words}
