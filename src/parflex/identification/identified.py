"""What identification answers: parameters with their deviations, how well they fit and predict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.identification.filtering import FilterChoice
from parflex.identification.measured_files import Measurement
from parflex.records import Record, brief, count_of

Array = np.ndarray


def share(part: Array, whole: Array) -> float:
    """The norm of one over that of the other, without what is left out (NaN)."""
    part, whole = (np.where(np.isfinite(values), values, 0.0) for values in (part, whole))
    return float(np.linalg.norm(part)) / max(float(np.linalg.norm(whole)), 1e-300)


@dataclass(frozen=True, eq=False, repr=False)
class IdentifiedParameter(Record):
    """A base parameter.

    Attributes
    ----------
    value : float
        Its value (SI).
    unit : str
        Its unit.
    deviation : float
        Standard deviation, robust to correlation of the residuals.
    deviation_white : float
        Standard deviation by the published convention: residuals independent of each other.
    relative : float
        Deviation over the size of the value.
    essential : bool
        Whether the record tells it from zero.
    file_value : float
        What the robot file says.
    made_of : str
        The combination of parameters of the file that it stands for.
    """

    value: float
    unit: str
    deviation: float
    deviation_white: float
    relative: float
    essential: bool
    file_value: float
    made_of: str


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Record):
    """Measured and predicted efforts along the rows, after filtering.

    Attributes
    ----------
    record : str
        Its file.
    t : Array
        Instants (s).
    measured : Array
        (instants x rows), NaN where samples are left out (N, N m).
    predicted : Array
        The same by the identified parameters.
    by_file : Array
        The same by the parameters of the robot file.
    """

    record: str
    t: Array
    measured: Array
    predicted: Array
    by_file: Array

    @property
    def relative_error(self) -> float:
        """Norm of the difference over that of the efforts."""
        return share(self.measured - self.predicted, self.measured)


@dataclass(frozen=True, eq=False, repr=False)
class Identified(Record):
    """Parameters of a robot from records.

    Attributes
    ----------
    robot : str
        Its name.
    estimator : str
        How they were found.
    parameters : dict[str, IdentifiedParameter]
        Base parameters by name.
    gains : dict[str, dict[str, float]]
        Of drives, where they were looked for: value, deviation, deviation_white, relative.
    condition : float
        Condition number of the rows.
    relative_error : float
        Norm of the residuals over that of the efforts.
    per_motor : dict[str, dict[str, float]]
        Of each motor: noise (N, N m), relative_error, largest (N, N m).
    validation : dict[str, Any] | None
        On records that were not used: relative_error, per_motor, records; None: there are none.
    undetermined : list[dict[str, str]]
        Parameters that the record or the motors do not excite: name, why.
    filter : FilterChoice
        What was done to the records.
    predictions : list[Prediction]
        Efforts of all records.
    covariance : Array
        Of the parameters, robust.
    theta : dict[str, float]
        All parameters by name, nearest to those of the file among those that fit.
    rows : list[str]
        What rows of efforts are called: motors, or independent rates where motors are spare.
    measurements : list[Measurement]
        The records as they were read.
    steps : list[str]
        What was done, in words.
    warnings : list[str]
        Warnings.
    friction : str
        Friction of motors that was looked for.
    physical : dict[str, float] | None
        Where parameters of bodies that can be were asked for: relative_error by them, that of the best parameters
        (best), deviations by which base parameters moved (moved), smallest eigenvalue of the pseudo-inertias over
        the usual mass (smallest).
    """

    robot: str
    estimator: str
    parameters: dict[str, IdentifiedParameter]
    gains: dict[str, dict[str, float]]
    condition: float
    relative_error: float
    per_motor: dict[str, dict[str, float]]
    validation: dict[str, Any] | None
    undetermined: list[dict[str, str]]
    filter: FilterChoice
    predictions: list[Prediction] = field(repr=False, default_factory=list)
    covariance: Array = field(repr=False, default_factory=lambda: np.zeros((0, 0)))
    theta: dict[str, float] = field(repr=False, default_factory=dict)
    rows: list[str] = field(default_factory=list)
    measurements: list[Measurement] = field(repr=False, default_factory=list)
    steps: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    friction: str = "file"
    physical: dict[str, float] | None = None

    @property
    def used(self) -> int:
        """Number of records that the parameters were found from; those of the validation stand behind them."""
        later = 0 if self.validation is None else len(self.validation["records"])
        return len(self.measurements) - later

    @property
    def values(self) -> Array:
        """Values of the parameters in their order."""
        return np.array([one.value for one in self.parameters.values()])

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "robot": self.robot,
            "estimator": self.estimator,
            "parameters": {
                name: {
                    "value": one.value, "unit": one.unit, "deviation": one.deviation,
                    "deviation_white": one.deviation_white, "relative": one.relative, "essential": one.essential,
                    "file_value": one.file_value, "made_of": one.made_of,
                }
                for name, one in self.parameters.items()
            },
            "gains": self.gains,
            "condition": self.condition,
            "relative_error": self.relative_error,
            "per_motor": self.per_motor,
            "validation": self.validation,
            "undetermined": self.undetermined,
            "physical": self.physical,
            "filter": self.filter.as_dict(),
            "steps": self.steps,
            "warnings": self.warnings,
        }  # fmt: skip

    def _told(self) -> str:
        return (
            f"{brief(self.robot)}: {count_of(len(self.parameters), 'base parameter')} by {self.estimator}, relative "
            f"error {self.relative_error:.3g}"
        )
