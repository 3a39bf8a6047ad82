"""What a run under a law gives: time series, errors of the end effector, and why it failed if it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import trapezoid

from parflex.records import TimedRecord, brief

Array = np.ndarray
INDEXES = ("ise", "iae", "itae", "max")


def error_indexes(t: Array, error: Array) -> dict[str, float]:
    """ISE, IAE and ITAE [Zubizarreta2010, Table II] by the trapezoidal rule, and the largest error."""
    return {
        "ise": float(trapezoid(error**2, t)),
        "iae": float(trapezoid(error, t)),
        "itae": float(trapezoid(t * error, t)),
        "max": float(error.max(initial=0.0)),
    }


@dataclass(frozen=True, eq=False, repr=False)
class Controlled(TimedRecord, Mapping[str, Array]):
    """Named time series of a run; `failure` is empty where it ended well.

    Attributes
    ----------
    columns : dict[str, Array]
        Time series by name, with `t` in s (m, rad, N, N m).
    errors : dict[str, float | None]
        ise (m^2 s), iae (m s), itae (m s^2) and max (m) of the end effector; None where the run failed.
    settings : dict[str, Any]
        How the run was made.
    failure : str
        singularity, geometry, plant, start, unstable or interrupted; empty where it ended well.
    why : str
        The failure in words.
    stopped_at : float | None
        Time of the failure (s), or None.
    summary : dict[str, Any]
        Numbers of the run.
    """

    columns: dict[str, Array]
    errors: dict[str, float | None]  # of the end effector's position: INDEXES; None where the run failed
    settings: dict[str, Any]
    failure: str = ""  # "singularity", "geometry", "plant", "start", "unstable" or "interrupted"
    why: str = ""
    stopped_at: float | None = None
    summary: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        """A column."""
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        """Names of the columns."""
        return iter(self.columns)

    def __len__(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def ok(self) -> bool:
        """Whether the run ended well."""
        return not self.failure

    def save(self, path: str) -> list[str]:
        """Write the file `path`, .csv or .npz, with settings beside a table and inside an archive."""
        from parflex.simulation.runs import Run

        status = "ok" if self.ok else "interrupted" if self.failure == "interrupted" else "diverged"
        summary = {**self.summary, "status": status, "errors": self.errors, "failure": self.failure or None}
        return [str(file) for file in Run(self.columns, self.settings, summary).save(path)]

    def _told(self) -> str:
        t = self.columns.get("t", np.zeros(1))
        found = ", ".join(f"{word} {value:.4g}" for word, value in self.errors.items() if value is not None)
        rows = f"{len(t)} rows to t = {t[-1] if len(t) else 0.0:.4g} s"
        return f"{brief(self.settings.get('law', ''))}: {rows}, {found or self.failure}"
