"""`identify`: from a robot and records of its motion to parameters with their deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.checks import one_of
from parflex.errors import InputError, SingularError
from parflex.identification.diagnostics import (
    closing_hint,
    contradicting_sensors,
    dead_channels,
    failed_validations,
    impossible_parameters,
    open_loops,
    passive_joints,
    position_noise_bias,
    repeated_recordings,
    residuals_above_noise,
    units_and_signs,
)
from parflex.identification.estimators import EffortRows, LeastSquaresFit, WeightedRows, fit_rows, total_least_squares
from parflex.identification.payloads import (
    gain_warnings,
    payload_warnings,
    scale_steps,
    scale_warnings,
    unused_payloads,
)
from parflex.identification.physical import PhysicalParameters, physical_parameters
from parflex.identification.preprocess import (
    FilterChoice,
    choose_filter,
    differences_hold,
    join_rows,
    motors_with_friction,
    refuse_rest,
    rows_of_record,
    visited_states,
    without_reversals,
    without_sticking,
)
from parflex.identification.recordings import ColumnMap, Recording, read_column_map, read_recording
from parflex.identification.regressor import Regressor, refuse_unsuited
from parflex.identification.regressor_columns import (
    BaseColumns,
    base_columns,
    grouped_by,
    independent_columns,
    nearest_parameters,
    stacked,
)
from parflex.identification.residual_noise import misfits_of_rows
from parflex.identification.result import (
    SIGNIFICANT,
    Identified,
    identified_parameters,
    insignificant_parameters,
    misfit_warnings,
    per_motor,
    prediction_of,
    processing_steps,
    rest_warnings,
    share,
    undetermined_parameters,
    validation_of,
)
from parflex.identification.unknowns import unknowns
from parflex.robot.robot import Robot

if TYPE_CHECKING:
    from parflex.identification.didim import SimulatedRecords

Array = np.ndarray
ESTIMATORS = ("ols", "wls", "irls", "tls", "iv", "didim")
FLAT = 1e-6  # of a column: what a record leaves of it beside others where it cannot tell it


def identify(
    robot: Robot,
    record: Any,
    columns: Any = None,
    estimator: str = "wls",
    *,
    cutoff: float | None = None,
    decimate: int | None = None,
    least_speed: float | None = None,
    friction: str = "file",
    validate: Any = None,
    physical: bool = False,
    keep_spikes: bool = False,
    keep: Sequence[str] | str = (),
) -> Identified:
    """Parameters of a rigid robot, open or closed, from records of its motors.

    Efforts are linear in base inertial parameters, motor inertias, friction, springs and dampers of the file. Positions
    of the motors give the motion of all joints through the loops.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    record : str, Path, Mapping[str, Array] or Sequence
        A record, or several: CSV, npz or MATLAB files, or columns by name.
    columns : str, Path or Mapping[str, Any], default None
        Map of the columns: a TOML file, or its table; None: `t`, `q.JOINT`, `effort.JOINT`.
    estimator : {'ols', 'wls', 'irls', 'tls', 'iv', 'didim'}, default "wls"
        Ordinary, weighted by the noise of each motor, or reweighted least squares; total least squares with drive
        gains; instrumental variables; simulation under the controller of the map.
    cutoff : float, default None
        Cutoff frequency of the low-pass of positions; None: from the spectrum of the record (Hz).
    decimate : int, default None
        Every so many samples one is kept; None: as many as the cutoff needs.
    least_speed : float, default None
        Samples in which a motor with Coulomb friction is slower are left out; None: none, but of `iv` those below a
        tenth of the largest speed (m/s, rad/s).
    friction : {'file', 'none', 'symmetric', 'offset', 'direction'}, default "file"
        Friction of motors that is looked for.
    validate : str, Path, Mapping[str, Array] or Sequence, default None
        Records on which efforts are predicted.
    physical : bool, default False
        Let all parameters be those of bodies that can be, with positive definite pseudo-inertias, nearest to the file's
        among those that predict best; needs clarabel.
    keep_spikes : bool, default False
        Leave single samples of positions and efforts that are far from their neighbours as they are.
    keep : Sequence[str] or 'all', default ()
        Joints, elements and elastic couplings whose springs and dampers stay as the file has them; 'all': all.

    Returns
    -------
    Identified
        Base parameters with robust and white deviations, errors, what is undetermined, predictions.

    Examples
    --------
    >>> parflex.identify(parflex.load("emps"), "DATA_EMPS.mat", "columns.toml", cutoff=100).parameters
    """
    one_of(estimator, ESTIMATORS, "estimator")
    motors = list(robot.actuated_names)
    mapped = read_column_map(columns, motors, passive_joints(robot))
    refuse_unsuited(robot)
    every = unknowns(robot, friction, [keep] if isinstance(keep, str) else keep)
    regressor = Regressor(robot, every, friction)
    used = [read_recording(item, mapped, robot, keep_spikes, name) for item, name in _named(record, "record")]
    if not used:
        raise InputError("no record is given", key="record", hint="give at least one file")
    held_out = [read_recording(item, mapped, robot, keep_spikes, name) for item, name in _named(validate, "validation")]
    repeated = repeated_recordings(used, held_out)
    choice = choose_filter(used, cutoff, decimate, least_speed, None)
    refuse_rest(used, choice)
    if estimator == "iv" and least_speed is None and motors_with_friction(regressor):
        choice = without_sticking(used, choice)
    base = base_columns(regressor, visited_states(regressor, [*used, *held_out], choice))
    prepared = [_rows(regressor, base, item, choice, estimator == "iv") for item in used]
    rows = join_rows([item[1] for item in prepared])
    if estimator != "iv":  # instruments undo what noise does, but not what differences do
        choice, rows, prepared = _with_central_differences(regressor, base, used, choice, rows, prepared)
    suspected = [units_and_signs(regressor, base, item, choice) for item in used] if estimator != "tls" else []
    solvable, missed, record_base = _identifiable_columns(rows, base)
    rows, prepared, omitted_rows = without_reversals(rows.columns(solvable), prepared, solvable, choice)
    gains: dict[str, dict[str, float]] = {}
    parts = [item[1].columns(solvable) for item in prepared]
    simulated: SimulatedRecords | None = None
    first = np.zeros(0)  # parameters by rows, with which simulations begin
    if estimator == "tls":
        fitted, rows, prepared, gains = _with_gains(regressor, mapped, rows, prepared)
        parts = [item[1].columns(solvable) for item in prepared]  # in N, N m
    elif estimator == "didim":
        from parflex.identification.didim import SimulatedRecords  # brings the control of runs with it

        simulated = SimulatedRecords(regressor, base, mapped, choice, used[0].step)
        first = fit_rows(rows, "wls").values
        try:
            fitted, rows = simulated.fitted(used, solvable, first, record_base)
        except InputError as error:
            error.hint = next((each.text for each in suspected if each), error.hint)
            raise
    else:
        fitted = fit_rows(rows, "wls" if estimator == "iv" else estimator)
    essential = _essential(rows, fitted)
    values = np.zeros(len(base.kept))
    values[solvable] = fitted.values
    theta, consistent = nearest_parameters(record_base, values, every, solvable), None
    names = [item.name for item in every]
    if simulated is not None:
        predictions, later = (simulated.predictions(several) for several in (used, held_out))
    else:
        predictions = [
            prediction_of(item, prepared_record, values) for item, prepared_record in zip(used, prepared, strict=True)
        ]
        checked = [rows_of_record(regressor, base, item, choice) for item in held_out]
        whole = base.groups @ np.array(list(theta.values()))  # other motions feel what these records do not tell
        later = [
            prediction_of(item, prepared_record, whole) for item, prepared_record in zip(held_out, checked, strict=True)
        ]
    diagnostics = [
        each.prefixed(f"{Path(item.name).name}: ") for item in [*used, *held_out] for each in item.diagnostics
    ]
    diagnostics += gain_warnings(gains) + dead_channels(regressor, used, parts, choice)
    diagnostics += [each for each in suspected if each]
    diagnostics += repeated + unused_payloads(mapped, [*used, *held_out])
    payloads = payload_warnings(regressor, used, parts)
    diagnostics += payloads or (scale_warnings(regressor, record_base, solvable, fitted, used) if gains else [])
    diagnostics += contradicting_sensors(regressor, [*used, *held_out], choice)
    loops = open_loops(regressor, [*used, *held_out], choice)
    diagnostics += loops
    kept_columns = [base.kept[k] for k in solvable]
    if not (payloads or loops):  # these say why residuals are large
        factors = np.array([item["value"] / item["given"] for item in gains.values()]) if gains else 1.0
        scaled = [replace(item, effort=item.effort * factors) for item in used]
        best = fitted.values if simulated is None else first
        of_rows = [
            item for record, part in zip(scaled, parts, strict=True)
            for item in misfits_of_rows(regressor, kept_columns, record, part, best, choice, estimator == "irls")
        ]  # fmt: skip
        diagnostics += residuals_above_noise(simulated.misfits() if simulated else of_rows, of_rows)
    parameters = identified_parameters(regressor, record_base, solvable, fitted, essential)
    efforts = np.concatenate([item.measured for item in predictions])
    left = np.concatenate([item.measured - item.predicted for item in predictions])
    errors = per_motor(regressor.rows, efforts, left)
    unsure = insignificant_parameters(parameters, rows, fitted)
    if estimator in ("ols", "wls", "irls"):  # instruments and simulated positions have no noise
        diagnostics += position_noise_bias(regressor, kept_columns, used, parts, choice, fitted)
    diagnostics += impossible_parameters(regressor, record_base, solvable, fitted, parameters, rows)
    diagnostics += misfit_warnings(errors) + rest_warnings(used, choice, regressor)
    diagnostics += simulated.diagnostics if simulated else []
    diagnostics += failed_validations(regressor.rows, errors, later)
    if physical:
        real = physical_parameters(robot, every, record_base, solvable, fitted)
        theta, consistent = real.theta, _predicting(real, prepared, solvable, left, efforts)
    steps = processing_steps(used, choice, estimator, fitted, regressor, omitted_rows)
    steps += scale_steps(regressor, used) if gains else []
    steps += simulated.steps if simulated else []
    return Identified(
        robot.name, estimator, parameters, gains, fitted.condition, share(left, efforts), errors,
        validation_of(regressor.rows, later),
        undetermined_parameters(base, names, missed, regressor) + unsure, choice, [*predictions, *later],
        fitted.robust, theta, regressor.rows, [*used, *held_out],
        steps, tuple(diagnostics),
        friction, consistent,
    )  # fmt: skip


def _rows(
    regressor: Regressor, base: BaseColumns, record: Recording, choice: FilterChoice, by_reference: bool
) -> tuple[Array, EffortRows, Array]:
    """Rows of a record; where its loops do not close, the error says with which unit or sign they would."""
    try:
        return rows_of_record(regressor, base, record, choice, by_reference)
    except SingularError as error:
        error.hint = closing_hint(regressor, base, record, choice) or error.hint
        raise


def _with_central_differences(
    regressor: Regressor, base: BaseColumns, used: list[Recording], choice: FilterChoice, rows: EffortRows,
    prepared: list[tuple[Array, EffortRows, Array]],
) -> tuple[FilterChoice, EffortRows, list[tuple[Array, EffortRows, Array]]]:  # fmt: skip
    """The filter, rows and what is prepared of each record, with central differences where these move nothing."""
    printed = replace(choice, whole=False)
    others = [_rows(regressor, base, item, printed, False) for item in used]
    joint, identifiable = join_rows([item[1] for item in others]), _identifiable_columns(rows, base)[0]
    if differences_hold(rows.columns(identifiable), joint.columns(identifiable)):
        return printed, joint, others
    return choice, rows, prepared


def _predicting(
    consistent: PhysicalParameters, prepared: list[Any], identifiable: list[int], left: Array, efforts: Array
) -> dict[str, float]:
    """How efforts are predicted by parameters that can be, beside the best ones."""
    predicted = np.concatenate(
        [rows.mask * (rows.W[:, :, identifiable] @ consistent.values) for _, rows, _ in prepared]
    )
    measured = np.concatenate([rows.mask * rows.y for _, rows, _ in prepared])
    return {
        "relative_error": share(measured - predicted, measured),
        "best": share(left, efforts),
        "moved": consistent.moved,
        "smallest": consistent.smallest,
    }


def _with_gains(regressor: Regressor, mapped: ColumnMap, rows: EffortRows, prepared: list[Any]) -> Any:
    """The fit with drive gains, rows whose efforts have them, and the gains by motor."""
    if regressor.spare:
        raise InputError(
            "gains of drives are not told apart where motors are spare", key="estimator", value="tls",
            hint="use an actuation with as many motors as freedoms",
        )  # fmt: skip
    fitted, factors, robust, white = total_least_squares(rows)

    def scaled(unscaled: EffortRows) -> EffortRows:
        assert unscaled.known is not None
        return replace(unscaled, y=(unscaled.y + unscaled.known) * factors - unscaled.known)

    gains = {}
    for k, motor in enumerate(regressor.rows):
        before = mapped.effort[motor].gain
        gains[motor] = {
            "value": float(before * factors[k]), "deviation": float(abs(before) * robust[k]),
            "deviation_white": float(abs(before) * white[k]), "relative": float(robust[k] / abs(factors[k])),
            "given": before,
        }  # fmt: skip
    return fitted, scaled(rows), [(t, scaled(record_rows), by_file) for t, record_rows, by_file in prepared], gains


def _named(records: Any, word: str) -> list[tuple[Any, str]]:
    """Records, and how each is called that is no file: by its number where there are several."""
    every = [] if records is None else [records] if isinstance(records, (str, Path, Mapping)) else list(records)
    return [(record, f"{word} {k}" if len(every) > 1 else word) for k, record in enumerate(every, start=1)]


def _identifiable_columns(rows: EffortRows, base: BaseColumns) -> tuple[list[int], list[int], BaseColumns]:
    """Base parameters that the record tells, those that it cannot, and how it groups them."""
    independent = independent_columns(stacked(rows.W * rows.mask[:, :, None]), FLAT, base.usual[base.kept])
    return (
        independent.kept,
        [k for k in range(len(base.kept)) if k not in independent.kept],
        grouped_by(base, independent),
    )


def _essential(rows: EffortRows, fitted: LeastSquaresFit) -> list[bool]:
    """Parameters that are left when the least certain is taken out until all are told from zero."""
    left = list(range(len(fitted.values)))
    values, robust = fitted.values, fitted.robust
    # weights of the fit serve all: parameters without effect hardly change them
    weighted = WeightedRows(rows, fitted.weights if fitted.weights.shape == rows.y.shape else rows.mask)
    while len(left) > 1:
        deviation = np.sqrt(np.maximum(np.diag(robust), 0.0))
        sure = np.abs(values) / np.maximum(deviation, 1e-300)
        worst = int(np.argmin(sure))
        if sure[worst] >= SIGNIFICANT:
            break
        left.pop(worst)
        values = weighted.solved(left)
        robust = weighted.covariances(values, left)[1]
    return [k in left for k in range(len(fitted.values))]
