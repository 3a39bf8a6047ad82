"""A finished run: named time series with their origin, in memory and in files."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.io import refuse_overwrite
from parflex.records import TimedRecord, brief, count_of
from parflex.robot.robot import Robot
from parflex.robotfile.read import files_of
from parflex.trajectories.files import read_settings, read_table, write_table

Array = np.ndarray


class Deferred(NamedTuple):
    """An entry of a summary that is computed when it is read."""

    compute: Callable[[], Any]


class Summary(dict[str, Any]):
    """A dictionary whose deferred entries are computed when they are read, copied, compared, pickled or saved."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if isinstance(value, Deferred):
            value = self[name] = value.compute()
        return value

    def get(self, name: str, default: Any = None) -> Any:
        """Return the entry of a name."""
        value = super().get(name, default)
        return self[name] if isinstance(value, Deferred) else value

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        """Return names and entries."""
        return self.copy().items()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        """Return entries."""
        return self.copy().values()

    def copy(self) -> dict[str, Any]:
        """Return a plain dictionary with all entries."""
        return {name: self[name] for name in self}

    def __iter__(self) -> Iterator[str]:  # `dict(summary)` and `|` read the entries one by one where this is defined
        return super().__iter__()

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:  # type: ignore[override]
        return self.copy() | dict(other)

    def __eq__(self, other: object) -> bool:
        return self.copy() == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return repr(self.copy())

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.copy(),)


@dataclass(frozen=True, eq=False, repr=False)
class Run(TimedRecord, Mapping[str, Array]):
    """Columns by name, all as long as `t`; `settings` says how the run was made, `summary` how it went.

    Attributes
    ----------
    columns : dict[str, Array]
        Time series by name, all as long as `t` in s (m, rad, N, N m, J).
    settings : dict[str, Any]
        How the run was made.
    summary : dict[str, Any]
        How it went.
    """

    columns: dict[str, Array]
    settings: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def t(self) -> Array:
        """Return the times of the rows."""
        return self.columns["t"]

    @property
    def seconds(self) -> float:
        """Return the time of the loop (s), without making and compiling the model."""
        return float(self.summary["seconds"])

    @property
    def status(self) -> str:
        """Return `ok`, `interrupted` or `diverged`."""
        return str(self.summary.get("status", "ok"))

    def __getitem__(self, name: str) -> Array:
        if name not in self.columns:
            raise InputError(
                f"the run has no column '{name}'", key="column", value=name, hint=did_you_mean(name, self.columns)
            )
        return self.columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def low_passed(self, name: str, cutoff: float) -> Array:
        """Return the column `name` after a Butterworth filter of cut-off `cutoff` (Hz), forward and backward."""
        from scipy.signal import butter, sosfiltfilt

        rate = 1.0 / float(self.t[1] - self.t[0]) if len(self.t) > 1 else 0.0
        if cutoff <= 0:
            raise InputError("the cut-off is not positive", key="low-pass", value=cutoff, hint="give a positive one")
        if not cutoff < rate / 2 or len(self.t) < 16:
            text = f"a cut-off of {cutoff:g} Hz needs at least 16 rows and more than two rows in a period"
            hint = "give a lower frequency, or a smaller out_step"
            raise InputError(text, key="low-pass", value=cutoff, hint=hint)
        return sosfiltfilt(butter(2, cutoff, fs=rate, output="sos"), self[name])

    def save(self, path: str | Path) -> list[Path]:
        """Write the npz or CSV file `path`, a CSV file with its settings beside it; whole or not at all."""
        made_of = [origin for word in ("file", "motion") if isinstance(origin := self.settings.get(word), str)]
        robot = self.settings.get("file")
        refuse_overwrite([path], [*made_of, *(files_of(robot) if isinstance(robot, str) else [])])
        return write_table(path, self.columns, {"settings": self.settings, "summary": self.summary})

    def _told(self) -> str:
        rows = f"{count_of(len(self.t), 'row')} to t = {self.t[-1] if len(self.t) else 0.0:.4g} s"
        of = self.settings.get("robot", "")
        why = f"{self.status}: {self.summary['why']}" if self.summary.get("why") else self.status
        parts = [rows, count_of(len(self.columns), "column"), why]
        parts += [count_of(len(self.warnings), "warning")] * bool(self.warnings)
        return (f"{brief(of)}: " if of else "") + ", ".join(parts)


def load_run(path: str | Path) -> Run:
    """Load a run that was saved.

    Parameters
    ----------
    path : str or Path
        CSV or npz file that `Run.save` or `parflex simulate` wrote.

    Returns
    -------
    Run
        Columns by name, settings and summary.
    """
    columns = read_table(str(path), "run")
    if "t" not in columns:
        raise InputError("the column 't' is missing", file=str(path), key="t", hint="this is not a saved run")
    t = columns["t"]
    if t.ndim != 1 or t.dtype.kind not in "fiu" or not np.isfinite(t).all() or (np.diff(t) < 0).any():
        raise InputError("the times are not increasing numbers", file=str(path), key="t", hint="correct that column")
    about = read_settings(str(path))
    return Run(columns, about.get("settings", {}), about.get("summary", {}))


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute."""
    packages = ("parflex", "numpy", "scipy", "llvmlite")
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}


def file_hash(robot: Robot) -> str | None:
    """Return the SHA-256 of the robot file as it is now; None if it is gone."""
    inside = resources.files("parflex.robotfile").joinpath("catalogue", robot.file)
    try:
        data = Path(robot.file).read_bytes() if Path(robot.file).is_file() else inside.read_bytes()
    except OSError:
        return None
    return hashlib.sha256(data).hexdigest()
