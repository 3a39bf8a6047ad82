"""The result of an identification: base parameters, predictions, errors, and the robot file with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

from parflex.diagnostics import Diagnostic, reported
from parflex.fit import Estimate, Fit
from parflex.identification.estimators import EffortRows, LeastSquaresFit
from parflex.identification.preprocess import FilterChoice
from parflex.identification.recordings import Recording
from parflex.identification.regressor import Regressor
from parflex.identification.regressor_columns import BaseColumns, grouped_text
from parflex.records import Record, brief, count_of

Array = np.ndarray
ROUNDING = 1e-12  # of the terms of a sum that is zero


def share(part: Array, whole: Array) -> float:
    """The norm of one over that of the other, without what is left out (NaN)."""
    return float(np.linalg.norm(np.nan_to_num(part))) / max(float(np.linalg.norm(np.nan_to_num(whole))), 1e-300)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class IdentifiedParameter(Estimate):
    """A base parameter.

    Attributes
    ----------
    deviation : float
        Standard deviation, robust to correlation of the residuals; the interval is that of Student's distribution.
    deviation_white : float
        Standard deviation by the published convention: residuals independent of each other.
    relative : float
        Deviation over the size of the value.
    essential : bool
        Whether its interval does not contain zero.
    file_value : float
        What the robot file says.
    made_of : str
        The combination of parameters of the file that it stands for.
    """

    deviation: float
    interval: tuple[float, float]
    deviation_white: float
    relative: float
    essential: bool
    file_value: float
    made_of: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        words = ("value", "unit", "deviation", "interval", "deviation_white", "relative", "essential", "file_value")
        return {word: self[word] for word in (*words, "made_of")}


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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Identified(Fit):
    """Base parameters of a robot from recordings.

    `robot`, `source` and `diagnostics` are as in every fit; `residuals` are of efforts, by recording.

    Attributes
    ----------
    parameters : dict[str, IdentifiedParameter]
        Base parameters by name.
    covariance : Array
        Covariance of the parameters, robust to correlation of the residuals.
    undetermined : list[dict[str, str]]
        Parameters that the record or the motors do not excite: name, why.
    estimator : str
        How they were found.
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
    filter : FilterChoice
        What was done to the records.
    predictions : list[Prediction]
        Efforts of all records.
    theta : dict[str, float]
        All parameters by name, nearest to those of the file among those that fit.
    rows : list[str]
        What rows of efforts are called: motors, or independent rates where motors are spare.
    measurements : list[Recording]
        The records as they were read.
    steps : list[str]
        What was done, step by step: its name, and how.
    friction : str
        Friction of motors that was looked for.
    physical : dict[str, float] | None
        Where physically consistent parameters were asked for: relative_error by them, that of the best parameters
        (best), deviations by which base parameters moved (moved), smallest eigenvalue of the pseudo-inertias over
        the usual mass (smallest).
    """

    parameters: dict[str, IdentifiedParameter]
    estimator: str
    gains: dict[str, dict[str, float]]
    condition: float
    relative_error: float
    per_motor: dict[str, dict[str, float]]
    validation: dict[str, Any] | None
    filter: FilterChoice
    predictions: list[Prediction] = field(repr=False)
    theta: dict[str, float] = field(repr=False)
    rows: list[str]
    measurements: list[Recording] = field(repr=False)
    steps: list[str]
    friction: str
    physical: dict[str, float] | None

    def to_file(self, path: str | Path) -> Sequence[Diagnostic]:
        """Write a robot file to `path` that extends that of the robot by all parameters; return its diagnostics."""
        from parflex.identification.robot_update import write_robot  # reads the result

        used = self.measurements[: len(self.measurements) - len((self.validation or {"records": []})["records"])]
        names = [Path(recording.name).name for recording in used]
        return write_robot(self.source, self.theta, self.friction, f"{self.estimator} from {', '.join(names)}", path)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        words = ("gains", "condition", "relative_error", "per_motor", "validation", "undetermined", "physical")
        return {
            "robot": self.robot,
            "estimator": self.estimator,
            "parameters": {name: parameter.as_dict() for name, parameter in self.parameters.items()},
            **{word: getattr(self, word) for word in words},
            "filter": self.filter.as_dict(),
            "steps": self.steps,
            **reported(self.diagnostics),
        }

    def _told(self) -> str:
        return (
            f"{brief(self.robot)}: {count_of(len(self.parameters), 'base parameter')} by {self.estimator}, relative "
            f"error {self.relative_error:.3g}"
        )


def identified_parameters(
    regressor: Regressor, base: BaseColumns, identifiable: list[int], fitted: LeastSquaresFit
) -> dict[str, IdentifiedParameter]:
    """Return the parameters that a record determines, by name."""
    names = [unknown.name for unknown in regressor.unknowns]
    by_file = base.groups @ np.array([unknown.value for unknown in regressor.unknowns])
    terms = np.abs(base.groups) @ np.abs([unknown.value for unknown in regressor.unknowns])
    by_file = np.where(np.abs(by_file) > ROUNDING * terms, by_file, 0.0)
    white, robust = (np.sqrt(np.maximum(np.diag(C), 0.0)).tolist() for C in (fitted.white, fitted.robust))
    widths = scipy.special.stdtrit(fitted.freedoms, 0.975).tolist()
    parameters = {}
    for place, k in enumerate(identifiable):
        unknown, value, deviation = regressor.unknowns[base.kept[k]], float(fitted.values[place]), robust[place]
        half = widths[place] * deviation
        parameters[unknown.name] = IdentifiedParameter(
            value=value, deviation=deviation, unit=unknown.unit,
            interval=(value - half, value + half), deviation_white=white[place],
            relative=deviation / abs(value) if value else float("inf"), essential=abs(value) > half,
            file_value=float(by_file[k]), made_of=grouped_text(base, names, k),
        )  # fmt: skip
    return parameters


def prediction_of(record: Recording, rows: EffortRows, values: Array) -> Prediction:
    """Return efforts of a record, measured and predicted."""
    assert rows.t is not None and rows.by_file is not None
    measured = np.where(rows.mask > 0, rows.y, np.nan)
    return Prediction(record.name, rows.t, measured, rows.W @ values, rows.by_file)


def per_motor(names: list[str], efforts: Array, residuals: Array) -> dict[str, dict[str, float]]:
    """Noise and errors of each row of efforts."""
    return {
        name: {
            "noise": float(left.std()) if len(left) else 0.0,
            "relative_error": share(residuals[:, j], efforts[:, j] if efforts[:, j].any() else efforts),
            "largest": float(np.abs(left).max(initial=0.0)),
        }
        for j, name in enumerate(names)
        for left in [residuals[np.isfinite(residuals[:, j]), j]]
    }


def validation_of(names: list[str], later: list[Prediction]) -> dict[str, Any] | None:
    """How well efforts of records that were not used are predicted."""
    if not later:
        return None
    measured, predicted = (
        np.concatenate([getattr(prediction, word) for prediction in later]) for word in ("measured", "predicted")
    )
    return {
        "records": [
            {"record": Path(prediction.record).name, "relative_error": prediction.relative_error}
            for prediction in later
        ],
        "relative_error": share(measured - predicted, measured),
        "per_motor": per_motor(names, measured, measured - predicted),
    }


def undetermined_parameters(base: BaseColumns, missed: list[int], regressor: Regressor) -> list[dict[str, str]]:
    """Return parameters that no motion of the motors excites, and those that this record does not."""
    names = [unknown.name for unknown in regressor.unknowns]
    grouped = {int(k) for row in base.groups for k in np.flatnonzero(row)}
    why = "the motion of the record does not excite it: record an exciting motion, such as that of parflex excite"
    result = [{"name": names[base.kept[k]], "why": why} for k in missed]
    planar = regressor.robot.tree.planar  # where nothing tells what turns out of the plane
    for k in base.unobservable:
        unknown = regressor.unknowns[k]
        if unknown.value and k not in grouped and not (planar and len(unknown.symbol) > 1):
            result.append({"name": unknown.name, "why": "no motion of the motors excites it"})
    return result


def processing_steps(
    used: list[Recording], choice: FilterChoice, estimator: str, fitted: LeastSquaresFit, regressor: Regressor,
    omitted_rows: int, taken: Sequence[str],
) -> list[str]:  # fmt: skip
    """Return the steps, each with its name; `omitted_rows` were left out at reversals, `taken` is from the file."""
    samples = sum(len(record.t) for record in used)
    steps = [f"recordings: {count_of(samples, 'sample')} of {len(used)}, {1 / used[0].step:.6g} per second"]
    steps += [f"{Path(record.name).name}: {text}" for record in used for text in record.steps]
    steps += [
        f"low-pass of positions: Butterworth of order 4 at {choice.cutoff:.4g} Hz, forwards and backwards "
        f"({choice.why}); rates and accelerations from the same spectrum",
        f"decimation: {choice.cut} samples cut at both ends; efforts and regressor low-passed alike, one of "
        f"{choice.decimate} kept",
    ]
    if choice.least_speed:
        steps.append(f"slow samples: those slower than {choice.least_speed:.3g} left out")
    if omitted_rows:
        steps.append(
            f"reversals: {omitted_rows} of {fitted.residuals.size} rows left out, where the low-pass of positions "
            "moves the instant at which dry friction changes its sign"
        )
    steps += [f"taken from the file as they are: {', '.join(taken)}"] if taken else []
    return [
        *steps,
        f"{estimator}: {len(fitted.residuals)} instants of {', '.join(regressor.rows)}; deviations robust "
        "to correlated residuals",
    ]
