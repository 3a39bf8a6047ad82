"""Fits: estimates of numbers of a robot from measurements, of identification and of updating."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.records import Answer, Record
from parflex.robot.robot import Robot

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Record):
    """An estimated number; what the measurements leave undetermined has no deviation and no interval.

    Attributes
    ----------
    value : float
        Estimate (SI).
    deviation : float | None
        Standard deviation.
    unit : str
        Unit; empty for keys of a robot file.
    interval : tuple[float, float] | None
        Confidence interval of 95 %.
    """

    value: float
    deviation: float | None
    unit: str = ""
    interval: tuple[float, float] | None = None

    def __getitem__(self, word: str) -> Any:
        return getattr(self, word)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Fit(Answer):
    """Estimates of numbers of a robot.

    Attributes
    ----------
    robot : str
        Name of the robot.
    parameters : dict[str, Estimate]
        Estimates by name.
    covariance : Array
        Covariance of the estimates, in their order.
    undetermined : list[dict[str, Any]]
        Parameters, or combinations of parameters, that the measurements do not determine.
    residuals : dict[str, Array]
        Measured less fitted values by recording or pose.
    diagnostics : tuple[Diagnostic, ...]
        Diagnostics.
    source : Robot
        Robot of the measurements, with the numbers of its file.
    """

    robot: str
    parameters: dict[str, Any]
    covariance: Array = field(repr=False)
    undetermined: list[dict[str, Any]]
    residuals: dict[str, Array] = field(repr=False)
    diagnostics: tuple[Diagnostic, ...] = ()
    source: Robot = field(repr=False, compare=False)

    @property
    def values(self) -> Array:
        """Values of the parameters in their order."""
        return np.array([item.value for item in self.parameters.values()])

    @property
    def units(self) -> dict[str, str]:
        """Units of the parameters."""
        return {name: item.unit for name, item in self.parameters.items()}

    @property
    def intervals(self) -> dict[str, tuple[float, float] | None]:
        """Confidence intervals of 95 % of the parameters."""
        return {name: item.interval for name, item in self.parameters.items()}

    def to_file(self, path: str | Path) -> Sequence[Diagnostic]:
        """Write a robot file to `path` that extends that of the robot by the estimates; return its diagnostics."""
        raise NotImplementedError


def extended_name(robot: Robot) -> str:
    """Return what a file extends that has other numbers of a robot: its file, or its name in the catalogue."""
    return robot.file if Path(robot.file).exists() else Path(robot.file).stem
