"""`identify`: from a robot and records of its motion to parameters with their deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.checks import one_of
from parflex.errors import InputError, SingularError
from parflex.identification.diagnostics import (
    Misfit,
    contradicting_sensors,
    dead_channels,
    failed_validations,
    hardly_determined,
    impossible_parameters,
    misfits_of,
    noise_left,
    open_loops,
    passive_joints,
    position_noise_bias,
    repeated_recordings,
    residuals_above_noise,
    units_and_signs,
    unused_payloads,
)
from parflex.identification.estimators import EffortRows, LeastSquaresFit, fit_rows, total_least_squares
from parflex.identification.physical import physical_parameters
from parflex.identification.preprocess import (
    FilterChoice,
    choose_filter,
    join_rows,
    motors_with_friction,
    refuse_rest,
    rows_in_use,
    rows_of_record,
    visited_states,
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
from parflex.identification.result import (
    Identified,
    identified_parameters,
    per_motor,
    prediction_of,
    processing_steps,
    share,
    undetermined_parameters,
    validation_of,
)
from parflex.identification.unknowns import taken_from_file, unknowns
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
    """
    one_of(estimator, ESTIMATORS, "estimator")
    mapped = read_column_map(columns, list(robot.actuated_names), passive_joints(robot))
    refuse_unsuited(robot)
    every = unknowns(robot, friction, [keep] if isinstance(keep, str) else keep)
    regressor = Regressor(robot, every, friction)
    used, held_out = (
        [read_recording(item, mapped, robot, keep_spikes, name) for item, name in _named(several, word)]
        for several, word in ((record, "record"), (validate, "validation"))
    )
    if not used:
        raise InputError("no record is given", key="record", hint="give at least one file")
    diagnostics = [
        each.prefixed(f"{Path(item.name).name}: ") for item in [*used, *held_out] for each in item.diagnostics
    ]
    diagnostics += repeated_recordings(used, held_out) + unused_payloads(mapped, [*used, *held_out])
    choice = choose_filter(used, cutoff, decimate, least_speed)
    refuse_rest(used, choice)
    if estimator == "iv" and least_speed is None and motors_with_friction(regressor):
        choice = without_sticking(used, choice)
    base = base_columns(regressor, visited_states(regressor, [*used, *held_out], choice))
    prepared = [_rows(regressor, base, item, choice, estimator == "iv") for item in used]
    rows = join_rows(prepared)
    suspected = [units_and_signs(regressor, base, item, choice) for item in used] if estimator != "tls" else []
    independent = independent_columns(stacked(rows.W * rows.mask[:, :, None]), FLAT, base.usual[base.kept])
    solvable, record_base = independent.kept, grouped_by(base, independent)
    rows, prepared, omitted_rows = _without_reversals(rows.columns(solvable), prepared, solvable, choice)
    gains: dict[str, dict[str, float]] = {}
    simulated: SimulatedRecords | None = None
    if estimator == "tls":
        fitted, rows, prepared, gains = _with_gains(regressor, mapped, rows, prepared)
    elif estimator == "didim":
        from parflex.identification.didim import SimulatedRecords  # brings the control of runs with it

        simulated = SimulatedRecords(regressor, base, mapped, choice, used[0].step)
        by_rows = fit_rows(rows, "wls")
        try:
            fitted, rows = simulated.fitted(used, solvable, by_rows, record_base)
        except InputError as error:
            error.hint = next((each.text for each in suspected if each), error.hint)
            raise
    else:
        fitted = fit_rows(rows, "wls" if estimator == "iv" else estimator)
    parts = [part.columns(solvable) for part in prepared]
    values = np.zeros(len(base.kept))
    values[solvable] = fitted.values
    theta = nearest_parameters(record_base, values, every, solvable)
    if simulated is not None:
        predictions, later = (simulated.predictions(several) for several in (used, held_out))
    else:
        predictions = [prediction_of(item, ready, values) for item, ready in zip(used, prepared, strict=True)]
        whole = base.groups @ np.array(list(theta.values()))  # other motions feel what these records do not tell
        later = [prediction_of(item, _rows(regressor, base, item, choice, False), whole) for item in held_out]
    efforts = np.concatenate([item.measured for item in predictions])
    residuals = np.concatenate([item.measured - item.predicted for item in predictions])
    errors = per_motor(regressor.rows, efforts, residuals)
    parameters = identified_parameters(regressor, record_base, solvable, fitted)

    kept_columns = [base.kept[k] for k in solvable]
    diagnostics += dead_channels(regressor, used, parts, choice)
    diagnostics += [each for each in suspected if each]
    diagnostics += contradicting_sensors(regressor, [*used, *held_out], choice)
    loops = open_loops(regressor, [*used, *held_out], choice)
    diagnostics += loops
    if not loops:  # these say why residuals are large
        factors = np.array([item["value"] / item["given"] for item in gains.values()]) if gains else 1.0
        best = fitted.values if simulated is None else by_rows.values
        of_rows: list[Misfit] = []
        for item, part in zip(used, parts, strict=True):
            assert part.known is not None
            scaled = replace(item, effort=item.effort * factors)
            noise = partial(noise_left, regressor, kept_columns, scaled, best, choice)
            left, effort = part.y - part.W @ best, part.y + part.known
            of_rows += misfits_of(item.name, regressor.rows, part.mask > 0, left, effort, noise, estimator == "irls")
        diagnostics += residuals_above_noise(simulated.misfits() if simulated else of_rows, of_rows)
    if estimator in ("ols", "wls", "irls"):  # instruments and simulated positions have no noise
        diagnostics += position_noise_bias(regressor, kept_columns, used, parts, choice, fitted)
    diagnostics += hardly_determined(parameters)
    diagnostics += impossible_parameters(regressor, record_base, solvable, fitted, parameters, rows)
    diagnostics += failed_validations(regressor.rows, errors, later)
    consistent = None
    if physical:
        real = physical_parameters(robot, every, record_base, solvable, fitted)
        theta = real.theta
        measured, predicted = (
            np.concatenate([part.mask * each for part, each in zip(parts, several, strict=True)])
            for several in ([part.y for part in parts], [part.W @ real.values for part in parts])
        )
        consistent = {
            "relative_error": share(measured - predicted, measured), "best": share(residuals, efforts),
            "moved": real.moved, "smallest": real.smallest,
        }  # fmt: skip
    taken = taken_from_file(robot, every)
    steps = processing_steps(used, choice, estimator, fitted, regressor, omitted_rows, taken)
    if gains:
        known = [f"{item.payload[0]:.4g} kg in {Path(item.name).name}" for item in used if item.payload]
        steps.append(
            f"gains: they and the parameters are in proportion to what is known ({', '.join(known + taken)}): 1 % of "
            "that is 1 % of every gain, mass and friction, and no record tells it"
        )
    missed = [k for k in range(len(base.kept)) if k not in solvable]
    return Identified(
        robot=robot.name, source=robot, parameters=parameters, covariance=fitted.robust,
        undetermined=undetermined_parameters(base, missed, regressor),
        residuals={item.record: item.measured - item.predicted for item in [*predictions, *later]},
        diagnostics=tuple(diagnostics), estimator=estimator, gains=gains, condition=fitted.condition,
        relative_error=share(residuals, efforts), per_motor=errors, validation=validation_of(regressor.rows, later),
        filter=choice, predictions=[*predictions, *later], theta=theta, rows=regressor.rows,
        measurements=[*used, *held_out], steps=steps + (simulated.steps if simulated else []), friction=friction,
        physical=consistent,
    )  # fmt: skip


def _rows(
    regressor: Regressor, base: BaseColumns, record: Recording, choice: FilterChoice, by_reference: bool
) -> EffortRows:
    """Rows of a record; where its loops do not close, the hint names a unit or sign with which the file explains it."""
    try:
        return rows_of_record(regressor, base, record, choice, by_reference)
    except SingularError as error:
        mistake = units_and_signs(regressor, base, record, choice)
        error.hint = mistake.text if mistake else error.hint
        raise


def _without_reversals(
    rows: EffortRows, prepared: Sequence[EffortRows], identifiable: list[int], choice: FilterChoice
) -> tuple[EffortRows, list[EffortRows], int]:
    """Return rows of all records and those of each without rows beside reversals; and how many these are."""
    used = rows_in_use(rows, [part.columns(identifiable) for part in prepared], choice)
    parts = [replace(part, used=used[instants]) for part, instants in zip(prepared, rows.parts, strict=True)]
    return replace(rows, used=used), parts, int((rows.mask > 0).sum() - used.sum())


def _with_gains(
    regressor: Regressor, mapped: ColumnMap, rows: EffortRows, prepared: Sequence[EffortRows]
) -> tuple[LeastSquaresFit, EffortRows, list[EffortRows], dict[str, dict[str, float]]]:
    """The fit with drive gains, rows whose efforts have them, and the gains by motor."""
    if regressor.spare:
        raise InputError(
            "gains of drives are not told apart where motors are spare", key="estimator", value="tls",
            hint="use an actuation with as many motors as degrees of freedom",
        )  # fmt: skip
    fitted, factors, robust, white = total_least_squares(rows)

    def scaled(unscaled: EffortRows) -> EffortRows:
        assert unscaled.known is not None
        return replace(unscaled, y=(unscaled.y + unscaled.known) * factors - unscaled.known)

    gains = {}
    for motor, factor, deviation, other in zip(regressor.rows, factors, robust, white, strict=True):
        before = mapped.effort[motor].gain
        gains[motor] = {
            "value": float(before * factor), "deviation": float(abs(before) * deviation),
            "deviation_white": float(abs(before) * other), "relative": float(deviation / abs(factor)), "given": before,
        }  # fmt: skip
    return fitted, scaled(rows), list(map(scaled, prepared)), gains


def _named(records: Any, word: str) -> list[tuple[Any, str]]:
    """Records, and how each is called that is no file: by its number where there are several."""
    every = [] if records is None else [records] if isinstance(records, (str, Path, Mapping)) else list(records)
    return [(record, f"{word} {k}" if len(every) > 1 else word) for k, record in enumerate(every, start=1)]
