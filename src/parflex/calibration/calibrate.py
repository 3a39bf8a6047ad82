"""`calibrate`: from a robot and measured poses to the numbers of its file that fit them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

from parflex.calibration.measurements import POSITION, TURN, MapReader, Measurements
from parflex.calibration.problem import SHOWN, CalibrationProblem, State, combinations, determined, least_squares
from parflex.checks import one_of
from parflex.design.sensitivity import checked_keys
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError, did_you_mean
from parflex.fit import Estimate, Fit, extended_name
from parflex.io import refuse_overwrite
from parflex.parameters.robot_file import redesigned, write_design
from parflex.records import brief, count_of, name_list
from parflex.robot.robot import Robot

Array = np.ndarray
ROUNDS = 4  # fits from the solution before, in which the determined combinations are found again
HUBER = 1.345  # deviations from which residuals count linearly: 95 % of the efficiency of least squares (Huber 1981)
MEDIAN = 1.4826  # deviation of a normal distribution over the median of its absolute values
CHANCE = 0.05  # of sums of squares of residuals that are as large as their deviations say are larger
INDEX, SHARE = 30.0, 0.5  # condition index and share of a variance of strong dependencies (Belsley, Kuh, Welsch 1980)
ELSEWHERE = 0.1  # of the typical length, residuals that are not those of this robot in these units
UNITS = (1e3, 1e-3)  # factors between units of length that are mixed up
LOSSES = ("linear", "huber")
NUMBERS = ["number", "before", "value", "deviation", "95 % from", "to", "unit", "inflation"]
GAUGES, COMBINATIONS = ["measurement", "before", "after", "unit"], ["combination", "number", "weight"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CalibratedParameter(Estimate):
    """A calibrated number; one that is not determined has neither deviation nor interval.

    Attributes
    ----------
    before : float
        Value at the start.
    determined : bool
        Whether the measurements, with the priors, determine it.
    inflation : float | None
        Its deviation over the one that it would have with all other numbers known.
    """

    before: float
    determined: bool
    inflation: float | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        words = ("value", "before", "deviation", "interval", "unit", "determined", "inflation")
        return {word: self[word] for word in words}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Calibrated(Fit):
    """Numbers of a robot file that fit measured poses.

    `robot`, `parameters`, `covariance`, `diagnostics` and `source` are as in every fit.

    Attributes
    ----------
    undetermined : list[dict[str, float]]
        Combinations of numbers that the measurements do not determine: weights by name. They stay at their start.
    residuals : dict[str, Array]
        Measured less fitted values by gauge, one for each row (m, rad); NaN where a row has none.
    residuals_before : dict[str, Array]
        The same with the start values.
    rows : list[str]
        Names of the rows.
    held_out : list[str]
        Rows that are predicted and not fitted.
    gauges : dict[str, dict[str, Any]]
        By gauge: unit, root mean squares before and after.
    rms_before : float
        Root mean square of the residuals with the start values, of lengths if any are measured (m), else of angles.
    rms_after : float
        The same with the fitted values (m, rad).
    rms_held_out : float | None
        The same of the rows that are held out.
    condition : float
        Condition number of the weighted Jacobian with columns of unit length.
    noise : float
        Root mean square of residuals over deviations; where none are given, the estimated deviation of a measurement.
    noise_unit : str
        Unit of this deviation, empty where deviations are given.
    places : Array
        Position of the measured frame in each row (m), for figures.
    keys : list[str]
        Parameters that are keys of the robot file.
    """

    parameters: dict[str, CalibratedParameter]
    residuals_before: dict[str, Array] = field(repr=False)
    rows: list[str] = field(repr=False)
    held_out: list[str] = field(repr=False)
    gauges: dict[str, dict[str, Any]]
    rms_before: float
    rms_after: float
    rms_held_out: float | None
    condition: float
    noise: float
    noise_unit: str
    places: Array = field(repr=False)
    keys: list[str] = field(repr=False)

    def to_file(self, path: str | Path) -> Sequence[Diagnostic]:
        """Write a robot file that extends that of the robot by the numbers, with readings of joints, to `path`."""
        robot = self.source
        settings = {key: self.parameters[key].value for key in self.keys}
        readings: dict[str, dict[str, float]] = {
            name: reading.model_dump() for name, reading in robot.description.readings.items()
        }
        for name, item in self.parameters.items():
            joint, _, word = name.rpartition(".")
            if joint in robot.tree.position_names and word in ("offset", "gain"):
                readings.setdefault(joint, {})[word] = item.value
        refuse_overwrite([path], robot.files)
        design = redesigned(robot, settings) if settings else robot
        more = {"readings": readings} if readings else {}
        write_design(extended_name(robot), robot, design, settings, Path(path), "calibrated", more)
        return ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        words = ("robot", "rows", "held_out", "gauges", "rms_before", "rms_after", "rms_held_out", "condition", "noise",
                 "noise_unit")  # fmt: skip
        return {
            **{word: getattr(self, word) for word in (*words, "undetermined")},
            "parameters": {name: item.as_dict() for name, item in self.parameters.items()},
            "covariance": self.covariance.tolist(),
            "residuals": {name: _listed(values) for name, values in self.residuals.items()},
            "residuals_before": {name: _listed(values) for name, values in self.residuals_before.items()},
        }

    @property
    def tables(self) -> list[tuple[str, list[str], list[list[Any]]]]:
        """Tables for people: title, columns and rows."""
        numbers = [
            [name, item.before, item.value, *_known(item), item.unit, item.inflation]
            for name, item in self.parameters.items()
        ]
        unit = "m" if any(gauge["unit"] == "m" for gauge in self.gauges.values()) else "rad"
        noise = f"estimated deviation of a measurement ({self.noise_unit})"
        fit: list[list[Any]] = [["rows", len(self.rows)], ["rows held out", len(self.held_out)]]
        fit += [[f"rms before ({unit})", self.rms_before], [f"rms after ({unit})", self.rms_after]]
        fit += [[f"rms of rows held out ({unit})", self.rms_held_out]] if self.held_out else []
        fit += [["condition number", self.condition]]
        fit += [[noise if self.noise_unit else "residuals over deviations", self.noise]]
        gauges = [[name, item["before"], item["after"], item["unit"]] for name, item in self.gauges.items()]
        lost = [[k, name, w] for k, item in enumerate(self.undetermined, 1) for name, w in item.items()]
        tables = [
            ("numbers", NUMBERS, numbers),
            ("fit", ["", ""], fit),
            ("root mean squares by measurement", GAUGES, gauges),
        ]
        return [*tables, *([("combinations that are not determined", COMBINATIONS, lost)] if lost else [])]

    def _told(self) -> str:
        change = f"rms {self.rms_before:.3g} to {self.rms_after:.3g}"
        return f"{brief(self.robot)}: {count_of(len(self.parameters), 'number')}, {change}"


def _known(item: CalibratedParameter) -> list[Any]:
    return [item.deviation, *item.interval] if item.interval else ["not determined", "", ""]


def _listed(values: Array) -> list[float | None]:
    return [float(x) if np.isfinite(x) else None for x in values]


def calibrate(
    robot: Robot,
    data: Any,
    vary: Sequence[str] | str,
    hold_out: Sequence[str] | str = (),
    *,
    columns: Any = None,
    tolerances: Mapping[str, float] | None = None,
    loss: str = "linear",
    about: str | None = None,
) -> Calibrated:
    """Numbers of the robot file that fit measured poses best, by weighted least squares with exact derivatives.

    Readings of the motors place the robot; poses of frames, distances, contacts and passive sensors measure it.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    data : str, Path, Mapping[str, Array] or Sequence
        Tables of measurements, one row for each pose: CSV files, or columns by name.
    vary : Sequence[str]
        Keys of the robot file by dotted path, and numbers of the map: JOINT.offset, JOINT.gain, BASE.x, PLANE.height.
    hold_out : Sequence[str], default ()
        Rows that are predicted and not fitted, by name or as FIRST-LAST.
    columns : str, Path or Mapping, default None
        Map of the columns; None: columns are named as joints, or FRAME.x.
    tolerances : Mapping[str, float], default None
        Prior of numbers: standard deviations about their start values, in their units; others have no prior.
    loss : {'linear', 'huber'}, default 'linear'
        Huber's loss limits the weight of outliers.
    about : {'undeformed', 'equilibrium'}, default None
        With 'equilibrium' gravity deflects flexible bodies in each pose; None: undeformed.

    Returns
    -------
    Calibrated
        Numbers with deviations and intervals, undetermined combinations, residuals before and after.
    """
    one_of(loss, LOSSES, "loss")
    one_of(about or "undeformed", ("undeformed", "equilibrium"), "about")
    measurements = MapReader(robot, data, columns).measurements()
    names = chosen_names(robot, measurements, vary, dict(tolerances or {}))
    apart = held_rows(measurements.rows, hold_out)
    problem = CalibrationProblem(robot, measurements, names, about == "equilibrium", tolerances, apart)
    return fitted(problem, loss, apart)


def chosen_names(robot: Robot, measurements: Measurements, vary: Any, prior: Mapping[str, float]) -> list[str]:
    """Names of the numbers that are fitted, each checked."""
    words = [word.strip() for word in vary.split(",") if word.strip()] if isinstance(vary, str) else list(vary)
    extras = measurements.extras
    keys = [word for word in words if word not in extras]
    try:
        names = checked_keys(robot, keys) if keys else []
    except ParflexError as error:
        error.key = "vary"
        word = next((key for key in keys if f"'{key}'" in error.message), "")
        near = did_you_mean(word, extras)
        known = [*(f"constants.{name}" for name in robot.description.constants), *extras]
        whole = [name for name in known if name.endswith(f".{word}")]
        error.hint = f"{error.hint}; of the map: {near}" if near.startswith("did") else error.hint
        error.hint = f"did you mean '{whole[0]}'?" if whole else error.hint
        raise
    names += [name for name in extras if name in words or extras[name].fitted]
    if not names:
        raise InputError("no number is varied", key="vary", hint="name keys of the robot file, e.g. constants.radius")
    for name, deviation in prior.items():
        if name not in names:
            hint = did_you_mean(name, names)
            raise InputError(
                f"the tolerance of '{name}' is of no varied number", key="tolerances", value=name, hint=hint
            )
        if not deviation > 0:
            raise InputError(
                f"the tolerance of '{name}' is not positive", key="tolerances", value=deviation, hint="give e.g. 1e-3"
            )
    return names


def held_rows(rows: Sequence[str], hold_out: Sequence[str] | str) -> list[int]:
    """Numbers of the rows that are held out."""
    words = [word.strip() for word in hold_out.split(",") if word.strip()] if isinstance(hold_out, str) else hold_out
    held: set[int] = set()
    for word in map(str, words):
        pairs = [(word[:k], word[k + 1 :]) for k, letter in enumerate(word) if letter == "-"]
        ends = next((pair for pair in pairs if pair[0] in rows and pair[1] in rows), None)
        if word in rows:
            held.update(k for k, name in enumerate(rows) if name == word)
        elif ends is not None:
            held.update(range(rows.index(ends[0]), rows.index(ends[1]) + 1))
        else:
            raise InputError(f"there is no row '{word}'", key="hold_out", value=word, hint=did_you_mean(word, rows))
    if held and len(held) == len(rows):
        raise InputError("all rows are held out", key="hold_out", value=str(hold_out)[:60], hint="hold out fewer")
    return sorted(held)


def fitted(problem: CalibrationProblem, loss: str, apart: Sequence[int]) -> Calibrated:
    """The fit of a problem: the determined combinations move, the others stay as they start."""
    refuse_mixed_deviations(problem)
    first = x = align_bases(problem)
    before = problem.at(x)
    values, J = problem.weighted(x)
    refuse_units(problem, before)
    refuse_few(problem, before)
    found, again, scale = None, determined(J), HUBER
    for _ in range(ROUNDS):
        lost = again.undetermined
        if found is not None and lost.shape == found.undetermined.shape:
            turned = lost - found.undetermined @ (found.undetermined.T @ lost)
            if np.abs(turned).max(initial=0.0) < SHOWN:
                break
        found = again
        x = least_squares(problem, x - lost @ (lost.T @ (x - first)), found.directions, "linear", 1.0)
        values, J = problem.weighted(x)
        again = determined(J)
    assert found is not None
    if loss == "huber":
        known = np.isfinite(problem.deviations[problem.used]).all()
        for _ in range(ROUNDS):
            scale = HUBER * (1.0 if known else MEDIAN * float(np.median(np.abs(values))) or 1.0)
            x = least_squares(problem, x, found.directions, "huber", scale)
            values, J = problem.weighted(x)
    return report(problem, before, problem.at(x), replace(found, condition=determined(J).condition), values, J,
                  scale if loss == "huber" else np.inf, apart)  # fmt: skip


# -- before the fit --------------------------------------------------------------------------------------------------


def refuse_mixed_deviations(problem: CalibrationProblem) -> None:
    """Refuse quantities of several units, or priors, without deviations: nothing weighs them against each other."""
    given, priors = np.isfinite(problem.deviations), bool((problem.prior > 0).any())
    known = given | ~problem.used
    units = {unit for unit, used in zip(problem.units, problem.used.T, strict=True) if used.any()}
    if known.all() or (len(units) == 1 and not (given & problem.used).any() and not priors):
        return
    name = problem.labels[int(np.flatnonzero(~known.all(axis=0))[0])]
    others = (
        "nothing weighs it against priors (tolerances)" if priors else "other measurements have one or another unit"
    )
    hint = "give a deviation to all measurements (deviation, rotation_deviation), or to none of one unit without priors"
    raise InputError(f"'{name}' has no deviation, and {others}", key="columns", value=name, hint=hint)


def align_bases(problem: CalibrationProblem) -> Array:
    """Start values: measuring frames that are fitted and start at zero are put where the positions fit best."""
    x, names = np.array(problem.first), problem.names
    for base in {gauge.base for gauge in problem.measurements.gauges if gauge.kind == "position" and gauge.base}:
        words = [f"{base}.{word}" for word in (*POSITION, *TURN)]
        if not all(word in names and x[names.index(word)] == 0 for word in words):
            continue
        state, measured, robot = problem.at(x), list[Array](), list[Array]()
        for j in range(0, len(problem.measurements.gauges)):
            gauge = problem.measurements.gauges[j]
            if gauge.kind == "position" and gauge.base == base and gauge.part == 0:
                M = np.array([problem.measurements.gauges[j + k].columns[0].values for k in range(3)]).T
                rows = problem.used[:, j : j + 3].all(axis=1)
                measured.append(M[rows])
                robot.append((state.residuals[:, j : j + 3] + M)[rows])
        A, B = np.concatenate(measured), np.concatenate(robot)
        U, _, V = np.linalg.svd((A - A.mean(axis=0)).T @ (B - B.mean(axis=0)))
        R = V.T @ np.diag([1.0, 1.0, np.sign(np.linalg.det(V.T @ U.T))]) @ U.T
        turns = [np.arctan2(R[2, 1], R[2, 2]), -np.arcsin(np.clip(R[2, 0], -1, 1)), np.arctan2(R[1, 0], R[0, 0])]
        x[[names.index(word) for word in words]] = [*(B.mean(axis=0) - R @ A.mean(axis=0)), *turns]
    problem.first = x
    return x


def refuse_units(problem: CalibrationProblem, state: State) -> None:
    """Refuse measurements whose spread is a thousand times that of the robot, and residuals as large as the robot."""
    measurements, length = problem.measurements, problem.robot.tree.length
    for j, gauge in enumerate(measurements.gauges):
        if gauge.kind not in ("position", "distance"):
            continue
        used = problem.used[:, j]
        measured = gauge.columns[0].values[used]
        robot = state.residuals[used, j] + measured
        spread = (np.mean, np.std)[gauge.kind == "position"]
        ratio = float(spread(measured)) / max(abs(float(spread(robot))), 1e-300) if used.any() else 1.0
        for factor in UNITS:
            if 1 / 3 < ratio / factor < 3:
                text = f"'{gauge.name}' is measured {ratio:.3g} times as large as the robot has it"
                hint = f"give its column a gain of {1 / factor:g}: lengths are in m; or check the gains of the motors"
                raise InputError(text, file=measurements.file or None, key="columns", value=gauge.name, hint=hint)
    lengths = np.array([unit == "m" for unit in problem.units])
    free = any(name in measurements.extras for name in problem.names)
    left = state.residuals[problem.used & lengths]
    rms = float(np.sqrt(np.mean(left**2))) if left.size else 0.0
    if rms > ELSEWHERE * length and not free:
        text = f"measurements and robot are {rms:.3g} m apart with the start values, and its size is {length:.3g} m"
        hint = "check units (m, rad: gain = 0.001 for mm) and signs of all columns, or fit offsets (JOINT.offset)"
        raise InputError(text, file=measurements.file or None, key="data", value=rms, hint=hint)


def refuse_few(problem: CalibrationProblem, state: State) -> None:
    """Refuse fewer equations than numbers."""
    used = int(problem.used.sum())
    lost = int(state.open_ranks[problem.used.any(axis=1)].sum())
    priors = problem.equations - used
    if used - lost + priors < len(problem.names):
        text = f"{count_of(used - lost + priors, 'equation')} cannot determine {len(problem.names)} numbers"
        text += f" ({used} measured values, of which {lost} place the poses)" if lost else ""
        raise InputError(text, file=problem.measurements.file or None, key="vary", value=len(problem.names),
                         hint="vary fewer numbers, measure more poses, or give priors")  # fmt: skip


# -- the report ------------------------------------------------------------------------------------------------------


def report(
    problem: CalibrationProblem, before: State, after: State, found: Any, values: Array, J: Array, limit: float,
    apart: Sequence[int],
) -> Calibrated:  # fmt: skip
    """The answer of a fit; `limit` is the residual from which Huber's loss is linear."""
    names, directions = problem.names, found.directions
    lost = int(after.open_ranks[problem.used.any(axis=1)].sum())
    freedom = len(values) - lost - directions.shape[1]
    clipped, within = np.clip(values, -limit, limit), float(np.mean(np.abs(values) <= limit))
    square = float(clipped @ clipped) / max(freedom, 1) / within**2
    known = np.isfinite(problem.deviations[problem.used]).all() and bool(problem.used.any())
    large = known and freedom > 0 and square * freedom > scipy.special.chdtri(freedom, CHANCE)
    estimated = (large or not known) and freedom > 0
    scale = np.sqrt(square) if estimated else 1.0
    J[int(problem.used.sum()) :] *= scale  # residuals that are larger than expected say nothing of the priors
    inner = np.linalg.pinv(J @ directions)
    covariance = directions @ (inner @ inner.T) @ directions.T * scale**2
    width = float(scipy.special.stdtrit(freedom, 0.975) if estimated else scipy.special.ndtri(0.975))
    certain = freedom > 0 or known
    loose = found.loose
    sizes = np.linalg.norm(J, axis=0)
    parameters = {}
    extras = problem.measurements.extras
    for k, name in enumerate(names):
        value, deviation = float(after.x[k]), float(np.sqrt(covariance[k, k]))
        sure = not loose[k] and certain
        parameters[name] = CalibratedParameter(
            value=value, before=float(problem.first[k]), unit=extras[name].unit if name in extras else "",
            deviation=deviation if sure else None, determined=not loose[k],
            interval=(value - width * deviation, value + width * deviation) if sure else None,
            inflation=float(deviation * sizes[k] / scale) if sure else None,
        )  # fmt: skip
    undetermined = combinations(names, found.undetermined)
    gauges = {
        name: {"unit": unit, "before": _rms(before.residuals[used, j]), "after": _rms(after.residuals[used, j])}
        for j, (name, unit, used) in enumerate(zip(problem.labels, problem.units, problem.used.T, strict=True))
    }
    lengths = np.array([unit == "m" for unit in problem.units])
    main = lengths if lengths.any() else ~lengths
    held = problem.present & ~problem.used
    measured = problem.measurements
    notes = [*_undetermined_note(undetermined), *_dependencies(names, J, loose, parameters)]
    if large:
        text = f"residuals are {np.sqrt(square):.3g} times as large as their deviations: intervals are widened by that"
        notes.append(Diagnostic("model-error", text, value=float(np.sqrt(square))))
    if not certain:
        text = "there are as many numbers as equations: deviations are unknown"
        notes.append(Diagnostic("model-error", text))
    return Calibrated(
        robot=problem.robot.name, source=problem.robot, parameters=parameters, covariance=covariance,
        undetermined=undetermined, diagnostics=tuple(notes), rows=measured.rows,
        residuals=_by_gauge(problem, after), residuals_before=_by_gauge(problem, before),
        held_out=[measured.rows[k] for k in apart], gauges=gauges,
        rms_before=_rms(before.residuals[problem.used & main]) or 0.0,
        rms_after=_rms(after.residuals[problem.used & main]) or 0.0, rms_held_out=_rms(after.residuals[held & main]),
        condition=found.condition, noise=float(np.sqrt(square)),
        noise_unit="" if known else problem.units[int(np.argmax(problem.used.any(axis=0)))],
        places=_places(problem, after), keys=problem.keys,
    )  # fmt: skip


def _by_gauge(problem: CalibrationProblem, state: State) -> dict[str, Array]:
    values = np.where(problem.present, -state.residuals, np.nan)
    return dict(zip(problem.labels, values.T, strict=True))


def _rms(values: Array) -> float | None:
    return float(np.sqrt(np.mean(values**2))) if values.size else None


def _places(problem: CalibrationProblem, state: State) -> Array:
    """Position of the frame of the first gauge in each row."""
    robot = problem.robot
    frames = [name for gauge in problem.measurements.gauges for name in gauge.frames if name in robot.tree.places]
    scene = problem.batch.scene(problem.batch.twin(state.x[: len(problem.keys)]), state.poses)
    position = scene.at.of(scene.robot.tree.places[frames[0] if frames else robot.tree.end_effector])[1]
    return problem.batch.with_slopes(position, problem.count, 0)[0]


def _undetermined_note(undetermined: Sequence[Mapping[str, float]]) -> list[Diagnostic]:
    if not undetermined:
        return []
    shown = [" ".join(f"{w:+.3g} {name}" for name, w in item.items()) for item in undetermined[:3]]
    text = "the data do not determine these combinations, which stay at their start: "
    text += f"{'; '.join(shown)}{'; ...' if len(undetermined) > 3 else ''}: hold one number of each, or give a prior"
    return [Diagnostic("undetermined-parameters", text, value=len(undetermined))]


def _dependencies(
    names: Sequence[str], J: Array, loose: Array, parameters: Mapping[str, CalibratedParameter]
) -> list[Diagnostic]:
    """A diagnostic of numbers that the measurements hardly separate, by condition indices and shares of variances."""
    some = np.flatnonzero(~loose)
    sizes = np.linalg.norm(J[:, some], axis=0)
    _, values, V = np.linalg.svd(J[:, some] / sizes, full_matrices=False)
    weak = values * INDEX < values.max(initial=0.0)
    parts = V**2 / np.maximum(values, 1e-300)[:, None] ** 2
    shares = parts[weak].sum(axis=0) / parts.sum(axis=0) if len(some) else np.zeros(0)
    found = [names[int(some[k])] for k in np.flatnonzero(shares > SHARE)]
    if len(found) < 2:
        return []
    most = max(parameters[name].inflation or 0.0 for name in found)
    text = f"the measurements hardly determine {name_list([f'{name}' for name in found])}: their deviations are up to "
    text += f"{most:.3g} times those with all other numbers known, and small errors of the model move them far: hold "
    text += "them, give priors, or measure other directions"
    return [Diagnostic("hardly-determined", text, found[0], most)]
