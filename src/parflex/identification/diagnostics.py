"""Checks of recordings and of the fit to them.

Each check answers one question by one rule: are channels dead, do units and signs explain the efforts, do loops close
with all sensors, are residuals above the noise of the recording, does noise of positions bias parameters, can bodies
have them, does a validation confirm the fit. Undetermined parameters are listed in the result.

White noise of positions and efforts is visible above the motion: in positions at the highest frequencies, in efforts
there and just above the low-pass. As much noise is added to the recording once more; the change of the residuals is the
effect of noise behind all filters. Larger residuals are model errors, which confidence intervals do not include.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError
from parflex.identification.estimators import MEDIAN, EffortRows, LeastSquaresFit
from parflex.identification.physical import nearest_consistent, never_negative
from parflex.identification.preprocess import (
    UPPER,
    VISITED,
    FilterChoice,
    butterworth,
    dead_efforts,
    decimate_rows,
    filtered_motion,
    join_rows,
    kept_instants,
    mean_spectrum,
    motion_of,
    only_noise,
    payload_parameters,
    quantisation_noise,
    segment_size,
    spread_instants,
)
from parflex.identification.recordings import ColumnMap, Recording
from parflex.identification.regressor import Regressor
from parflex.identification.regressor_columns import BaseColumns
from parflex.identification.result import IdentifiedParameter, Prediction, per_motor
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot

Array = np.ndarray
INSTANTS = 300  # of a recording, by which units and signs are judged
EXPLAINED = 0.9  # of the power of the efforts: numbers of a robot file are rough, wrong units leave far more
QUARTER = 0.25  # of the power unexplained as recorded, what another unit or sign may leave
NO_WORSE = 1.1  # times what parameters leave as recorded: right units fit at least as well, up to rounding of filters
FAINT = 0.05  # of the largest efforts: those of a motor count as so large at least
CALIBRATION = 2e-3  # rad, or typical lengths: deviations of the geometry that calibration removes, not mistakes
SURE = 6.0  # standard deviations that none of the 1e8 samples of a long recording exceeds by chance
BIASED = 1.0  # deviations, by which noise of positions may move a parameter: its 95 % interval holds 83 % then
BELOW = 3.0  # deviations: one in 700 parameters that are zero is as far below it
FAR_WORSE = 3.0  # times the fit: the second EMPS record, which force pulses disturb, has 1.5 times its error
STILL_GOOD = 0.1  # of the efforts: predictions that miss no more serve
ABOVE = 2.0  # times noise: of right records 100 instants leave 1.2, and 1.5 where dry friction jerks the robot
LEAST = 2e-3  # of the efforts: filters leave 1.3e-3 of a record without noise in which dry friction jerks the robot
SAMPLES = 2000  # of the middle of a record, to which noise is added


# -- channels --------------------------------------------------------------------------------------------------------


def dead_channels(
    regressor: Regressor, used: Sequence[Recording], parts: Sequence[EffortRows], choice: FilterChoice
) -> list[Diagnostic]:
    """Return a diagnostic for each moving motor whose recorded effort is constant or noise."""
    result = []
    for recording, rows in zip(used, parts, strict=True):
        assert rows.rate is not None
        constant = dead_efforts(recording.effort, rows.rate)
        band = 2 * choice.cutoff * recording.step
        noise = only_noise(recording.effort, butterworth(recording.effort, band), band) & rows.rate.any(axis=0)
        dropped = "its rows are left out, " if not constant.all() and not regressor.spare else ""
        for k, motor in enumerate(regressor.robot.actuated_names):
            if not (constant[k] or noise[k]):
                continue
            what = f"is {recording.effort[0, k]:.4g} all the time" if constant[k] else "has nothing but noise"
            text = f"the effort of '{motor}' {what} though it moves: {dropped if constant[k] else ''}check its column"
            result.append(Diagnostic("dead-effort", f"{Path(recording.name).name}: {text}", motor))
    return result


# -- units and signs -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Rescaling(Record):
    """Factors of a recording: of the positions and efforts of each motor, and of time."""

    words: str
    cure: str
    position: Array
    effort: Array
    time: float = 1.0


def rescalings(robot: Robot) -> list[Rescaling]:
    """Return usual mistakes: degrees, millimetres, milliseconds, and signs of all motors or of one."""
    tree, motors = robot.tree, list(robot.actuated_names)
    turns = np.array([tree.links[tree.link_of_rate[k]].joint.unit == "rad" for k in robot.actuated])
    ones, groups = np.ones(len(motors)), [(f"'{motor}'", np.array(motors) == motor) for motor in motors]
    result = []
    for unit, factor, some in (("degrees", np.pi / 180, turns), ("millimetres", 1e-3, ~turns)):
        if some.any():
            words, cure = f"with positions in {unit}", f"if they are, give gain = {factor:.9g}"
            result.append(Rescaling(words, cure, np.where(some, factor, 1.0), ones))
    result.append(Rescaling("with time in milliseconds", "if it is, give time gain = 0.001", ones, ones, 1e-3))
    if len(motors) > 1:
        groups.insert(0, ("all motors", np.ones(len(motors), dtype=bool)))
    for name, some in groups:
        sign = np.where(some, -1.0, 1.0)
        for what, position, effort in (
            ("sign of efforts", ones, sign), ("sign of positions", sign, ones),
            ("signs of positions and efforts", sign, sign),
        ):  # fmt: skip
            cure = "give -1 times the gain"
            result.append(Rescaling(f"with the {what} of {name} changed", cure, position, effort))
    return result


class RescaledRecording:
    """Instants of a recording in other units: the share of the efforts that the file or any parameters leave."""

    def __init__(self, regressor: Regressor, base: BaseColumns, recording: Recording, choice: FilterChoice) -> None:
        self.regressor, self.base, self.recording = regressor, base, recording
        smooth = filtered_motion(recording, choice)
        some = spread_instants(len(smooth.t), INSTANTS)
        effort = choice.inside(butterworth(recording.effort, 2 * choice.cutoff * recording.step))
        self.position, self.rate, self.acceleration, self.effort = (
            part[some] for part in (smooth.position, smooth.rate, smooth.acceleration, effort)
        )
        self.theta = np.array([unknown.value for unknown in regressor.unknowns])
        for column, more in (payload_parameters(regressor, recording.payload) if recording.payload else {}).items():
            self.theta[column] += more

    def rows(self, given: Rescaling | None = None) -> tuple[Array, Array, Array] | None:
        """Return rows of base parameters, measured efforts and those by the file; None where loops do not close."""
        ones = np.ones(self.position.shape[1])
        given = given or Rescaling("as recorded", "", ones, ones)
        offset, factor = self.recording.offset, given.position / given.time
        try:
            q = (self.position - offset) * given.position + offset
            moving = self.regressor.moving(q, self.rate * factor, self.acceleration * factor / given.time)
        except (ParflexError, np.linalg.LinAlgError):
            return None
        W, known = self.regressor.of(moving)
        if not np.isfinite(W).all():
            return None
        measured = self.regressor.measured(moving, self.effort * given.effort) - known
        return W[:, :, self.base.kept], measured, W @ self.theta

    def by_file(self, given: Rescaling | None = None) -> float:
        """Return the share of the power of the efforts that the numbers of the file leave, the mean over motors."""
        rows = self.rows(given)
        return np.inf if rows is None else float((((rows[1] - rows[2]) / _sizes(rows[1])) ** 2).sum())

    def by_any(self, given: Rescaling | None = None) -> float:
        """Return the share that the best parameters leave."""
        rows = self.rows(given)
        if rows is None:
            return np.inf
        W, y, _ = rows
        sizes = _sizes(y)
        flat, column = (W / sizes[:, None]).reshape(-1, W.shape[2]), (y / sizes).ravel()
        flat = flat / np.maximum(np.linalg.norm(flat, axis=0), 1e-300)
        best = flat @ np.linalg.lstsq(flat, column, rcond=1e-10)[0]
        return float(((column - best) ** 2).sum())


def _sizes(effort: Array) -> Array:
    """Norm of each motor's efforts, times the root of their number: shares of motors count alike."""
    sizes = np.linalg.norm(effort, axis=0)
    return np.maximum(sizes, max(FAINT * float(sizes.max()), 1e-300)) * np.sqrt(effort.shape[1])


def units_and_signs(
    regressor: Regressor, base: BaseColumns, recording: Recording, choice: FilterChoice
) -> Diagnostic | None:
    """Return the unit or sign with which the robot file explains a recording that it does not explain as it is.

    The numbers of the file must then explain nine tenths of the power of the efforts, leave a quarter of what they
    leave as recorded, and the best parameters must fit no worse.
    """
    trial = RescaledRecording(regressor, base, recording, choice)
    now, fitted = trial.by_file(), trial.by_any()
    left = [(trial.by_file(one), one) for one in rescalings(regressor.robot)]
    named = [(share, one) for share, one in left if share < min(1 - EXPLAINED, QUARTER * now)]
    named = [(share, one) for share, one in named if fitted == np.inf or trial.by_any(one) <= NO_WORSE**2 * fitted]
    if not named:
        return None
    best = min(share for share, _ in named)
    words = ", or ".join(f"{one.words}: {one.cure}" for share, one in named if share <= NO_WORSE**2 * best)
    as_recorded = "loops do not close" if now == np.inf else f"efforts by the file are off by {_percent(now)}"
    text = f"{Path(recording.name).name}: {as_recorded}, and efforts are off by {_percent(best)} {words}"
    return Diagnostic("suspected-mistake", text, recording.name, best)


def _percent(power: float) -> str:
    return f"{100 * np.sqrt(power):.3g} %"


# -- closure ---------------------------------------------------------------------------------------------------------


def open_loops(regressor: Regressor, recordings: Sequence[Recording], choice: FilterChoice) -> list[Diagnostic]:
    """Return a diagnostic where redundant motors stand so that a loop does not close, with the loop."""
    robot = regressor.robot
    if not regressor.spare or not robot.closures.size:
        return []
    result, names = [], robot.closures.row_names
    for recording in recordings:
        position = kept_instants(filtered_motion(recording, choice).position, choice)
        some = position[spread_instants(len(position), VISITED)]
        gaps = np.abs([robot.closures.residual(pose(robot.tree, q)) for q in regressor.closed(some)]).max(axis=0)
        noise = position_noise(recording) / robot.tree.rate_units[list(robot.actuated)] * robot.tree.length
        worst, by_noise = int(np.argmax(gaps)), float(noise.max())
        if gaps[worst] > max(CALIBRATION * robot.tree.length, SURE * by_noise):
            text = (
                f"{Path(recording.name).name}: positions of the motors contradict each other: '{names[worst]}' stays "
                f"open by up to {1e3 * gaps[worst]:.3g} mm, and their noise leaves {1e3 * by_noise:.2g} mm; check "
                "zeros, signs and gains of the encoders, and lengths of the file"
            )
            result.append(Diagnostic("contradicting-encoders", text, recording.name, float(gaps[worst])))
    return result


def passive_joints(robot: Robot) -> list[str]:
    """Return joints of one axis in loops that are no motors and may have a sensor."""
    if not robot.closures.size:
        return []
    tree, motors = robot.tree, set(robot.actuated)
    return [link.name for link in tree.links if link.joint.one_axis and link.v.start not in motors]


def contradicting_sensors(
    regressor: Regressor, recordings: Sequence[Recording], choice: FilterChoice
) -> list[Diagnostic]:
    """Return a diagnostic for each passive joint whose recorded position contradicts motors, loops and lengths."""
    tree, result = regressor.robot.tree, []
    for recording in (recording for recording in recordings if recording.passive):
        closed = regressor.closed(kept_instants(filtered_motion(recording, choice).position, choice))
        for joint, column in recording.passive.items():
            link = tree.links[tree.number(joint)]
            off = kept_instants(choice.inside(column), choice) - closed[:, link.q.start]
            if link.periodic:
                off = off - 2 * np.pi * np.round(np.median(off) / (2 * np.pi))
            zero, unit = float(np.median(off)), link.joint.unit
            moving = float(np.abs(off - zero).max())
            noise = float(np.abs(np.diff(column, 2)).mean()) / 2  # of white noise 0.98 deviations
            if max(abs(zero), moving) <= max(CALIBRATION * float(tree.rate_units[link.v.start]), SURE * noise):
                continue
            text = (
                f"{Path(recording.name).name}: '{joint}' is recorded {zero:.3g} {unit} off what loops and motors give, "
                f"and up to {moving:.3g} {unit} more with the motion; the noise of its sensor is {noise:.2g} {unit}: "
                "check its zero, sign and unit, zeros of the motors, lengths and working mode of the file"
            )
            result.append(Diagnostic("contradicting-sensor", text, joint, max(abs(zero), moving)))
    return result


# -- residuals and noise ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Misfit(Record):
    """Residuals of a motor in a record, and what noise leaves of them, as shares of its efforts."""

    record: str
    motor: str
    share: float
    noise: float

    @property
    def over_noise(self) -> float:
        """Residuals as a multiple of the noise level."""
        return self.share / max(self.noise, 1e-300)

    @property
    def significant(self) -> bool:
        """Whether noise does not explain the residuals."""
        return self.share > LEAST and self.over_noise > ABOVE

    @property
    def text(self) -> str:
        """Residuals in words."""
        times = f"{self.over_noise:.2g}" if self.over_noise < 10 else f"{min(self.over_noise, 1e6):.0f}"
        return f"'{self.motor}': {100 * self.share:.3g} % of its efforts, {times} times the noise"


def misfits_of(
    record: str, names: list[str], used: Array, left: Array, effort: Array, noise: Callable[[], Array],
    outliers: bool = False,
) -> list[Misfit]:  # fmt: skip
    """Return residuals of the rows of a record that are used, compared with their noise; none below the least share.

    `outliers`: they are expected, and sizes are those of most residuals.
    """
    rows = np.flatnonzero(used.any(axis=0))
    left, effort = (np.where(used, part, np.nan)[:, rows] for part in (left, effort))
    whole = np.sqrt(np.nanmean(effort**2, axis=0))
    whole = np.maximum(whole, max(FAINT * float(whole.max()), 1e-300))
    size = MEDIAN * np.nanmedian(np.abs(left), axis=0) if outliers else np.sqrt(np.nanmean(left**2, axis=0))
    if not (size > LEAST * whole).any():
        return []
    return [
        Misfit(record, names[k], float(one), float(by_noise))
        for k, one, by_noise in zip(rows, size / whole, noise()[rows] / whole, strict=True)
    ]


def noise_of_simulation(left: Array, step: float, choice: FilterChoice) -> Array:
    """Return what noise of efforts leaves of residuals at all samples: simulated positions have no noise."""
    noise = effort_noise(left, step, choice) * np.random.default_rng(0).standard_normal(left.shape)
    return np.asarray(decimate_rows(noise, choice).std(axis=0))


def noise_left(regressor: Regressor, kept: list[int], record: Recording, values: Array, choice: FilterChoice) -> Array:
    """What noise of a record leaves of residuals, of each row: how they move by as much noise again."""
    count = min(len(record.t), SAMPLES + 2 * choice.edge)
    some = slice((len(record.t) - count) // 2, (len(record.t) - count) // 2 + count)
    part = replace(record, t=record.t[some], position=record.position[some], effort=record.effort[some])

    def residuals(position: Array) -> Array:
        smooth = filtered_motion(part, choice, position)
        moving = regressor.moving(smooth.position, smooth.rate, smooth.acceleration)
        return regressor.measured(moving, choice.inside(part.effort)) - regressor.of(moving, kept)[0] @ values

    before = residuals(part.position)
    rng = np.random.default_rng(0)
    q = part.position + position_noise(record) * rng.standard_normal(part.position.shape)
    moved = residuals(q) - before + effort_noise(before, record.step, choice) * rng.standard_normal(before.shape)
    return np.asarray(decimate_rows(moved, choice).std(axis=0))


def effort_noise(left: Array, step: float, choice: FilterChoice) -> Array:
    """Standard deviation of white noise that is as strong as that of residuals at all samples.

    That of the highest frequencies, or that of the octave above the cutoff, where currents are filtered by drives.
    """
    band = 2 * choice.cutoff * step
    upper = min(2 * band, 0.9)
    if not upper > band:
        return white_noise(left, step)
    octave = butterworth(left, upper) - butterworth(left, band)
    near = MEDIAN * np.median(np.abs(octave), axis=0) / np.sqrt(upper - band)
    return np.maximum(near, white_noise(left, step))


def position_noise(record: Recording) -> Array:
    """Standard deviation of white noise of positions that is as strong as theirs where motions are, of each motor."""
    white = white_noise(np.diff(record.position, axis=0), record.step, differences=True)
    return np.asarray(np.maximum(white, quantisation_noise(record.position)))


def white_noise(values: Array, step: float, differences: bool = False) -> Array:
    """Standard deviation of white noise by the highest frequencies of columns, or of sums of them."""
    f, power = mean_spectrum(values, step, segment_size(len(values)))
    upper = f > UPPER * f[-1]
    shape = 4 * np.sin(np.pi * f[upper] * step)[:, None] ** 2 if differences else 1.0
    return np.sqrt(np.median(power[upper] / shape, axis=0) / (2 * step))


MODEL_ERROR = (
    "confidence intervals do not include this model error; check units, gains, signs, zeros and delays of the record, "
    "its payload, and friction and springs of the robot"
)
CONTROLLER = (
    "those of recorded positions are noise, so the simulated controller is not that of the record; check gains, delay "
    "and sample_time of [controller], whose default is the step of the record"
)


def residuals_above_noise(misfits: Sequence[Misfit], of_rows: Sequence[Misfit]) -> list[Diagnostic]:
    """Return a diagnostic for each record with residuals above its noise, with the motors.

    `of_rows` are the misfits of recorded positions, which differ from `misfits` where a controller is simulated.
    """
    high = [misfit for misfit in misfits if misfit.significant]
    of_model = misfits is of_rows or any(misfit.significant for misfit in of_rows)
    code, cause = ("above-noise", MODEL_ERROR) if of_model else ("other-controller", CONTROLLER)
    result = []
    for record in dict.fromkeys(misfit.record for misfit in high):
        motors = ", ".join(misfit.text for misfit in high if misfit.record == record)
        text = f"{Path(record).name}: residuals are above the noise level ({motors}): {cause}"
        result.append(Diagnostic(code, text, record))
    return result


def position_noise_bias(
    regressor: Regressor, kept: list[int], used: Sequence[Recording], parts: Sequence[EffortRows],
    choice: FilterChoice, fitted: LeastSquaresFit,
) -> list[Diagnostic]:  # fmt: skip
    """Return a diagnostic where noise of positions moves a parameter by more than its interval says.

    `kept` are the columns of the fitted parameters, `parts` the rows of each recording.
    """
    deviation = np.sqrt(np.maximum(np.diag(fitted.robust), 0.0))
    moved = moved_by_noise(regressor, kept, used, parts, choice, fitted) / np.maximum(deviation, 1e-300)
    worst = int(np.argmax(np.abs(moved)))
    if not abs(moved[worst]) > BIASED:
        return []
    name = regressor.unknowns[kept[worst]].name
    coarse = any(quantisation_noise(recording.position).any() for recording in used)
    text = (
        f"{Path(used[0].name).name}: noise of positions {'may move' if coarse else 'moves'} {name} by about "
        f"{abs(moved[worst]):.2g} deviations, which intervals do not include: use iv or didim, a cutoff below "
        f"{choice.cutoff:.3g} Hz, {'a finer encoder ' if coarse else ''}or a motion that excites it more"
    )
    return [Diagnostic("moved-by-noise", text, name, float(moved[worst]))]


def moved_by_noise(
    regressor: Regressor, kept: list[int], used: Sequence[Recording], parts: Sequence[EffortRows],
    choice: FilterChoice, fitted: LeastSquaresFit,
) -> Array:  # fmt: skip
    """Return the mean error of parameters by noise of positions, which least squares takes for motion.

    With columns W = W0 + V, V by noise, it is -(W^T W)^-1 E[V^T V] theta. V is the change of the columns when as much
    noise is added to the positions once more.
    """
    columns = (join_rows(parts).W * fitted.weights[:, :, None]).reshape(-1, len(kept))
    rng, by_noise = np.random.default_rng(0), []
    for recording, part in zip(used, parts, strict=True):
        noisy = recording.position + position_noise(recording) * rng.standard_normal(recording.position.shape)
        _, moving = motion_of(regressor, recording, choice, noisy)
        by_noise.append(decimate_rows(regressor.of(moving, kept)[0], choice) - part.W)
    noise = (np.concatenate(by_noise) * fitted.weights[:, :, None]).reshape(columns.shape)
    length = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    R = np.asarray(np.linalg.qr(columns / length, mode="r"))
    along = np.linalg.lstsq(R.T, noise.T @ (noise @ fitted.values) / length, rcond=None)[0]
    return -np.asarray(np.linalg.lstsq(R, along, rcond=None)[0] / length)


# -- physical consistency and validation -----------------------------------------------------------------------------


def hardly_determined(parameters: Mapping[str, IdentifiedParameter]) -> list[Diagnostic]:
    """Return how many parameters have an interval that contains zero, and another value in the robot file."""
    unsure = {name: one for name, one in parameters.items() if one.file_value and not one.essential}
    if not unsure:
        return []
    worst = max(unsure, key=lambda name: unsure[name].relative)
    text = (
        f"the recording hardly determines {len(unsure)} of {len(parameters)} parameters: their intervals contain zero, "
        f"and the file has another value; the least certain is {worst}: record a more exciting motion, such as that "
        "of parflex excite"
    )
    return [Diagnostic("hardly-determined", text, worst, unsure[worst].relative)]


def impossible_parameters(
    regressor: Regressor, base: BaseColumns, identifiable: list[int], fitted: LeastSquaresFit,
    parameters: Mapping[str, IdentifiedParameter], rows: EffortRows,
) -> list[Diagnostic]:  # fmt: skip
    """Return diagnostics of parameters that no robot has.

    A group of parameters is never negative if its weights lie in the dual cone of the physically consistent bodies. For
    the others, a semidefinite program looks for a robot with non-negative pseudo-inertias that has the estimates.
    """
    robot, every = regressor.robot, regressor.unknowns
    result = []
    for k, (name, one) in zip(identifiable, parameters.items(), strict=True):
        if one.value < -BELOW * one.deviation and never_negative(robot, every, base.groups[k]):
            text = (
                f"{name} = {one.value:.4g} {one.unit} is negative by {_times(-one.value, one.deviation)}, which no "
                "bodies and no friction give: check the signs of efforts and positions, or the columns"
            )
            result.append(Diagnostic("impossible-parameter", text, name, one.value))
    if result or not parameters or find_spec("clarabel") is None:
        return result
    # all parameters together: white residuals, wider as any interval, and never less than filters leave
    wider = max(1.0, float((np.diag(fitted.robust) / np.maximum(np.diag(fitted.white), 1e-300)).max()))
    left, effort = (float(np.linalg.norm(part * rows.mask)) for part in (fitted.residuals, rows.y))
    covariance = wider * max(1.0, LEAST * effort / max(left, 1e-300)) ** 2 * fitted.white
    try:
        nearest, distance = nearest_consistent(robot, every, base, identifiable, fitted.values, np.asarray(covariance))
    except InputError:  # the solver gives up: nothing is known
        return result
    if not distance > SURE:
        return result
    off = nearest - fitted.values
    k = int(np.argmax(np.abs(off) / np.sqrt(np.diag(fitted.robust))))
    name, one = list(parameters.items())[k]
    text = (
        f"no bodies have these parameters: the nearest that bodies have differ by {distance:.2g} deviations, with "
        f"{name} = {nearest[k]:.4g} {one.unit} in place of {one.value:.4g}: the model lacks something, or signs, "
        "zeros, gains or payloads are not those of the record (physical takes the nearest)"
    )
    return [Diagnostic("impossible-parameter", text, name, one.value)]


def _times(value: float, deviation: float) -> str:
    return f"{min(value / max(deviation, 1e-300), 1e6):.2g} deviations"


def failed_validations(
    names: list[str], errors: Mapping[str, Mapping[str, float]], later: Sequence[Prediction]
) -> list[Diagnostic]:
    """Return diagnostics of records whose efforts are predicted far worse than those of the fit.

    By size, as noise is alike in small motions, and as a share, as errors of the model grow with the motion.
    """
    result = []
    for prediction in later:
        left = np.nan_to_num(prediction.measured - prediction.predicted)
        size = dict(zip(names, np.sqrt((left**2).mean(axis=0)), strict=True))
        shares = per_motor(names, prediction.measured, prediction.measured - prediction.predicted)
        far = {
            name: error["relative_error"] for name, error in shares.items()
            if error["relative_error"] > max(STILL_GOOD, FAR_WORSE * errors[name]["relative_error"])
            and size[name] > FAR_WORSE * errors[name]["noise"]
        }  # fmt: skip
        if far:
            name = max(far, key=lambda word: far[word])
            text = (
                f"{Path(prediction.record).name}: the relative error of '{name}' is {100 * far[name]:.3g} %, and "
                f"{100 * errors[name]['relative_error']:.3g} % in the fit: parameters do not hold beyond the motion of "
                "the fit, or zeros, payloads or signs of the two differ"
            )
            result.append(Diagnostic("failed-validation", text, name, far[name]))
    return result


def repeated_recordings(used: Sequence[Recording], held_out: Sequence[Recording]) -> list[Diagnostic]:
    """Refuse a recording given twice, whose noise would count as independent; report those that validate themselves."""
    for k, recording in enumerate(used):
        for other in used[:k]:
            if recording.same_as(other):
                raise InputError(
                    f"record {k + 1} has the samples of another one, {Path(other.name).name}", file=recording.name,
                    key="record", value=recording.name, hint="give each record once",
                )  # fmt: skip
    text = "its samples are those of a record of the fit, and validate nothing"
    return [
        Diagnostic("repeated-record", f"{Path(recording.name).name}: {text}", recording.name)
        for recording in held_out
        if any(recording.same_as(other) for other in used)
    ]


def unused_payloads(mapped: ColumnMap, records: Sequence[Recording]) -> list[Diagnostic]:
    """Return diagnostics of payloads of the map that no recording has."""
    names = {name for record in records for name in (record.name, Path(record.name).name)}
    called = ", ".join(dict.fromkeys(Path(record.name).name for record in records))
    text = "the payload of '{}' is not used: no record has this name, they are {}"
    return [
        Diagnostic("unused-payload", text.format(name, called), name) for name in mapped.payload if name not in names
    ]
