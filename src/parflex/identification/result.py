"""The result of an identification: parameters, deviations, errors, warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from parflex.diagnostics import Diagnostic, reported
from parflex.identification.estimators import EffortRows, LeastSquaresFit
from parflex.identification.preprocess import FilterChoice, cutoff_of, rest_thresholds
from parflex.identification.recordings import Recording
from parflex.identification.regressor import Regressor
from parflex.identification.regressor_columns import BaseColumns, grouped_text
from parflex.identification.unknowns import taken_from_file
from parflex.records import Answer, Record, brief, count_of

Array = np.ndarray

SIGNIFICANT = 1.96  # standard deviations: a parameter that is nearer to zero is not told from it

INERT = ("M", "ZZ", "IA")  # what every robot has

UNSURE = 0.3  # of a parameter, a deviation with which nothing is said about it

WIDER = 3.0  # times its deviation alone: others beside it are why a parameter is not sure

ALIKE = 0.9  # cosine of two columns, from which one stands for the other

RESTS = 0.1  # of the samples

UNEXPLAINED = 0.3  # of the efforts


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
class Identified(Answer):
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
    diagnostics : tuple[Diagnostic, ...]
        Diagnostics.
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
    measurements: list[Recording] = field(repr=False, default_factory=list)
    steps: list[str] = field(default_factory=list)
    diagnostics: tuple[Diagnostic, ...] = ()
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
        return np.array([parameter.value for parameter in self.parameters.values()])

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "robot": self.robot,
            "estimator": self.estimator,
            "parameters": {
                name: {
                    "value": parameter.value, "unit": parameter.unit, "deviation": parameter.deviation,
                    "deviation_white": parameter.deviation_white, "relative": parameter.relative,
                    "essential": parameter.essential, "file_value": parameter.file_value, "made_of": parameter.made_of,
                }
                for name, parameter in self.parameters.items()
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
            **reported(self.diagnostics),
        }  # fmt: skip

    def _told(self) -> str:
        return (
            f"{brief(self.robot)}: {count_of(len(self.parameters), 'base parameter')} by {self.estimator}, relative "
            f"error {self.relative_error:.3g}"
        )


def identified_parameters(
    regressor: Regressor, base: BaseColumns, identifiable: list[int], fitted: LeastSquaresFit, essential: list[bool]
) -> dict[str, IdentifiedParameter]:
    """Parameters that a record tells, by name."""
    names = [unknown.name for unknown in regressor.unknowns]
    by_file = base.groups @ np.array([unknown.value for unknown in regressor.unknowns])
    white, robust = (np.sqrt(np.maximum(np.diag(C), 0.0)) for C in (fitted.white, fitted.robust))
    parameters = {}
    for place, k in enumerate(identifiable):
        unknown = regressor.unknowns[base.kept[k]]
        value = float(fitted.values[place])
        parameters[unknown.name] = IdentifiedParameter(
            value, unknown.unit, float(robust[place]), float(white[place]),
            float(robust[place] / abs(value)) if value else float("inf"), essential[place], float(by_file[k]),
            grouped_text(base, names, k),
        )  # fmt: skip
    return parameters


def prediction_of(record: Recording, prepared: tuple[Array, EffortRows, Array], values: Array) -> Prediction:
    """Efforts of a record, measured and predicted."""
    t, rows, by_file = prepared
    return Prediction(record.name, t, np.where(rows.mask > 0, rows.y, np.nan), rows.W @ values, by_file)


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


def undetermined_parameters(
    base: BaseColumns, names: list[str], missed: list[int], regressor: Regressor
) -> list[dict[str, str]]:
    """Parameters that no motion of the motors excites, and those that this record does not."""
    grouped = {int(k) for row in base.groups for k in np.flatnonzero(row)}
    why = "the motion of the record does not excite it: record an exciting motion, such as that of parflex excite"
    result = [{"name": names[base.kept[k]], "why": why} for k in missed]
    planar = regressor.robot.tree.planar  # where nothing tells what turns out of the plane
    for k in base.unobservable:
        unknown = regressor.unknowns[k]
        if unknown.value and k not in grouped and not (planar and len(unknown.symbol) > 1):
            result.append({"name": unknown.name, "why": "no motion of the motors tells it"})
    return result


def insignificant_parameters(
    parameters: Mapping[str, IdentifiedParameter], rows: EffortRows, fitted: LeastSquaresFit
) -> list[dict[str, str]]:
    """Masses and inertias where none of them is sure: others do nearly the same, or motions are hardly above noise."""
    inert = {name: parameter for name, parameter in parameters.items() if name.partition("[")[0] in INERT}
    if any(parameter.relative <= UNSURE for parameter in inert.values()):
        return []  # others are small beside them
    names = list(parameters)
    together = _alike(rows, fitted)
    return [
        {"name": name, "why": f"its deviation is {100 * parameter.relative:.3g} % of it: "
         f"{_uncertainty_reason(parameter, names, *together[names.index(name)])}"} for name, parameter in inert.items()
    ]  # fmt: skip


def _uncertainty_reason(
    parameter: IdentifiedParameter, names: list[str], wider: float, nearest: int, cosine: float
) -> str:
    if not wider > WIDER:
        return "the motion of the record is hardly above the noise"
    whose = f"{names[nearest]} has nearly the same effect (cosine {cosine:.4g})" if cosine > ALIKE else (
        "others have nearly the same effect together"
    )  # fmt: skip
    noise = "" if parameter.relative <= UNSURE * wider else ", and the motion is hardly above the noise"
    return f"in the motion of the record {whose}, which makes it {wider:.2g} times as large{noise}"


def _alike(rows: EffortRows, fitted: LeastSquaresFit) -> list[tuple[float, int, float]]:
    """Of each column: how much larger its deviation is beside the others than alone, the nearest one, its cosine."""
    weights = fitted.weights if fitted.weights.shape == rows.y.shape else rows.mask
    flat = (rows.W * weights[:, :, None]).reshape(-1, rows.W.shape[2])
    flat = flat / np.maximum(np.linalg.norm(flat, axis=0), 1e-300)
    cosines = np.abs(flat.T @ flat) - np.eye(flat.shape[1])
    R = np.linalg.qr(flat, mode="r")
    wider = np.linalg.norm(np.linalg.pinv(R), axis=1)  # roots of the variance inflation factors
    return [(float(w), int(row.argmax()), float(row.max())) for w, row in zip(wider, cosines, strict=True)]


def misfit_warnings(motors: Mapping[str, Mapping[str, float]]) -> list[Diagnostic]:
    """Diagnostics of efforts that the model does not explain."""
    text = (
        "the model leaves {:.3g} % of the efforts of '{}' unexplained, its relative error: check time unit, columns, "
        "gaps and outliers"
    )
    return [
        Diagnostic(
            "unexplained-effort", text.format(100 * errors["relative_error"], name), name, errors["relative_error"]
        )
        for name, errors in motors.items() if errors["relative_error"] > UNEXPLAINED
    ]  # fmt: skip


def rest_warnings(used: list[Recording], choice: FilterChoice, regressor: Regressor) -> list[Diagnostic]:
    """Diagnostics of motors with Coulomb friction that rest long, or seem to by noise, where nothing is left out."""
    if choice.least_speed:
        return []
    tree = regressor.robot.tree
    rubbing = {unknown.link for unknown in regressor.unknowns if unknown.symbol in ("FS", "FS_back")}
    messages = []
    for record in used:
        for j, (k, least, part) in enumerate(
            zip(regressor.robot.actuated, *rest_thresholds(record, choice), strict=True)
        ):
            if not (tree.link_of_rate[k] in rubbing and RESTS < part < 1):
                continue
            name = f"{Path(record.name).name}: '{tree.rate_names[k]}'"
            lower = cutoff_of(used)
            if lower < choice.cutoff and rest_thresholds(record, replace(choice, cutoff=lower))[1][j] <= RESTS:
                text = (
                    f"{name} has a rate below its noise in {100 * part:.3g} % of the samples, where its Coulomb "
                    f"friction has no sign, but not behind a lower cutoff: use {lower:.2g} Hz"
                )
            else:
                text = (
                    f"{name} rests in {100 * part:.3g} % of the samples, where its Coulomb friction has no sign: leave "
                    f"them out by a least speed of {least:.2g}"
                )
            messages.append(Diagnostic("long-rest", text, tree.rate_names[k], float(part)))
    return messages


def processing_steps(
    used: list[Recording], choice: Any, estimator: str, fitted: LeastSquaresFit, regressor: Regressor, omitted_rows: int
) -> list[str]:
    """Return the processing steps in words; `omitted_rows` is the number of rows left out at reversals."""
    taken = taken_from_file(regressor.robot, regressor.unknowns)
    left_out = [f"samples slower than {choice.least_speed:.3g} left out"] if choice.least_speed else []
    if omitted_rows:
        left_out.append(
            f"{omitted_rows} of {fitted.residuals.size} rows left out beside reversals, where the low-pass of "
            "positions moves the instant at which dry friction changes its sign"
        )
    samples = sum(len(record.t) for record in used)
    return [
        f"{samples} samples of {len(used)} record{'s' if len(used) > 1 else ''}, {1 / used[0].step:.6g} per second",
        *(f"{Path(record.name).name}: {text}" for record in used for text in record.steps),
        f"positions: Butterworth low-pass of order 4 at {choice.cutoff:.4g} Hz, forwards and backwards ({choice.why}); "
        f"rates and accelerations {'from the same spectrum' if choice.whole else 'by central differences'}",
        f"{choice.cut} samples cut at both ends; efforts and regressor low-passed alike, one of {choice.decimate} "
        "kept",
        "; ".join(left_out) or "no sample left out",
        *([f"taken from the file as they are: {', '.join(taken)}"] if taken else []),
        f"{estimator}: {len(fitted.residuals)} instants of {', '.join(regressor.rows)}; residuals correlated over "
        f"{fitted.lag} instants",
    ]  # fmt: skip
