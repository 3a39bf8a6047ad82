"""What is told of a time-optimal motion: its times, speeds, efforts, the limits that act, and what checks found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.records import Record

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class PartTiming(Record):
    """One part of the path, from rest to rest.

    Attributes
    ----------
    begin : float
        When it begins (s).
    time : float
        Its duration (s).
    unit : str
        Unit of the path parameter, 'm' along a path of a frame; else it is a share.
    s : Array
        Places along it.
    t : Array
        Times at which they are passed, from `begin` on (s).
    speed : Array
        Path speed at the places.
    most : Array
        Highest path speed that the limits allow there.
    efforts : Array
        Motor efforts (N, N m), a row for each place.
    active : list[dict[str, Any]]
        Stretches `s`, `to` on which a limit acts, `limit` and `joint`.
    switching : list[dict[str, Any]]
        Places `s` and times `time` at which the path acceleration changes its sign.
    largest_violation : float
        By how much a limit is exceeded at most, between the knots too, as a share of it (dimensionless).
    """

    begin: float
    time: float
    unit: str
    s: Array
    t: Array
    speed: Array
    most: Array
    efforts: Array
    active: list[dict[str, Any]]
    switching: list[dict[str, Any]]
    largest_violation: float


@dataclass(frozen=True, eq=False, repr=False)
class TimeOptimal(Record):
    """How a time-optimal motion was found: parts of the path, limits, and warnings.

    Attributes
    ----------
    time : float
        Duration with rests (s).
    parts : list[PartTiming]
        Parts of the path.
    motors : tuple[str, ...]
        Names of the motors.
    effort_low : Array
        Lowest efforts (N, N m).
    effort_high : Array
        Highest efforts (N, N m).
    warnings : list[str]
        Warnings.
    """

    time: float
    parts: list[PartTiming]
    motors: tuple[str, ...]
    effort_low: Array
    effort_high: Array
    warnings: list[str] = field(default_factory=list)

    @property
    def largest_violation(self) -> float:
        """By how much a limit is exceeded at most, as a share of it."""
        return max(part.largest_violation for part in self.parts)

    def answer(self) -> dict[str, Any]:
        """What is said in JSON."""
        return {
            "time": self.time,
            "parts": [
                {
                    "begin": part.begin, "time": part.time, "length": float(part.s[-1]), "unit": part.unit,
                    "active": part.active, "switching": part.switching, "largest_violation": part.largest_violation,
                }
                for part in self.parts
            ],
            "largest_violation": self.largest_violation,
        }  # fmt: skip

    def tables(self) -> list[Any]:
        """What is said as tables."""
        rows = [
            (index + 1, row["s"], row["to"], row["limit"], row["joint"])
            for index, part in enumerate(self.parts)
            for row in part.active
        ]
        told = [("largest violation between knots", f"{self.largest_violation:.2g} of the limit")]
        return [("limits that act", ["part", "from s", "to s", "limit", "motor"], rows), ("", ["", "value"], told)]


def stretches(s: Array, acting: Array, names: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Runs of intervals on which the same limit acts."""
    found: list[dict[str, Any]] = []
    for k, index in enumerate(acting):
        limit, joint = names[index]
        if found and (found[-1]["limit"], found[-1]["joint"]) == (limit, joint):
            found[-1]["to"] = float(s[k + 1])
        else:
            found.append({"s": float(s[k]), "to": float(s[k + 1]), "limit": limit, "joint": joint})
    return found
