"""Least squares of geometry: residuals of all poses with exact derivatives, and what they determine.

At numbers x the unknown coordinates of each pose close its loops; by the implicit function theorem they change with x
by -E_u^+ E_x, with the derivatives E_u and E_x of the closed equations. Motions that readings leave open in a pose,
as without values of a motor, are fitted to the measurements of that pose alone and eliminated by projection.

A parameter is measured by the norm of its column of the weighted Jacobian. Directions whose singular values are then
rounding are not determined: the fit moves orthogonally to them, in the units of the file, so that the combinations of
numbers by their weights stay as they start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize

from parflex.calibration.batch import PoseBatch, Poses, Scene, row_number
from parflex.calibration.measurements import Measurements, Reading, residuals
from parflex.errors import ParflexError, UnreachableError
from parflex.parameters.design_numbers import number_at
from parflex.records import Record, name_list
from parflex.robot.robot import Robot

Array = np.ndarray
SETTLED = 1e-9  # relative change of numbers and cost at which the search ends: Newton steps follow
ROUNDING = 1e-8  # of the largest singular value: half of the digits are lost beyond
POLISH = 6  # Newton steps behind the search, where changes of the cost are rounding
STILL = 1e-12  # rad or typical lengths of such a step: rounding
INNER = 20  # steps in which open motions of a pose are fitted
SHOWN = 1e-6  # of the largest weight of a combination: smaller ones are rounding


@dataclass(frozen=True, eq=False, repr=False)
class State(Record):
    """All poses at numbers x: residuals (poses x gauges), their derivatives by x, and those of the unknowns by x."""

    x: Array
    poses: Poses
    residuals: Array
    slopes: Array
    steps: Array
    open_ranks: Array


class CalibrationProblem:
    """Residuals of a robot's measurements as a function of some numbers.

    `names` are keys of the robot file, then numbers of the map of measurements.
    """

    def __init__(
        self, robot: Robot, measurements: Measurements, names: Sequence[str], at_equilibrium: bool = False,
        prior: Mapping[str, float] | None = None, held_out: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.robot, self.measurements = robot, measurements
        extras = measurements.extras
        self.keys = [name for name in names if name not in extras]
        self.names = [*self.keys, *(name for name in names if name in extras)]
        exact = measurements.exact
        self.batch = PoseBatch(robot, self.keys, [reading.joint for reading in exact], at_equilibrium)
        self.count = len(measurements.rows)
        self.readings = np.array([reading.column.values for reading in exact]).reshape(len(exact), self.count).T
        gauges, noisy = measurements.gauges, measurements.noisy
        labels = [*(gauge.name for gauge in gauges), *(reading.joint for reading in noisy)]
        counts = [labels[:k].count(label) for k, label in enumerate(labels)]
        self.labels = [f"{label} ({k + 1})" if k else label for label, k in zip(labels, counts, strict=True)]
        self.units = [*(gauge.unit for gauge in gauges), *(reading.unit for reading in noisy)]
        present = [gauge.present for gauge in gauges] + [np.isfinite(item.column.values) for item in noisy]
        self.present = np.array(present).T
        deviations = [gauge.deviations for gauge in gauges] + [reading.column.deviations for reading in noisy]
        self.deviations = np.array(deviations).T
        self.weights = np.where(self.present, 1.0 / np.where(np.isfinite(self.deviations), self.deviations, 1.0), 0.0)
        self.used = self.present.copy()
        self.used[list(held_out)] = False
        self.columns = self._columns()
        self.state: State | None = None
        self.open = 1  # motions that readings leave open in a pose, once they are counted
        start = {name: extra.value for name, extra in measurements.extras.items()}
        self.first = np.array([*(number_at(robot, key, "vary") for key in self.keys),
                               *(start[name] for name in self.names[len(self.keys) :])])  # fmt: skip
        self.prior = np.array([1.0 / (prior or {}).get(name, np.inf) for name in self.names])
        self.equations = int(self.used.sum()) + int((self.prior > 0).sum())

    def weighted(self, x: Array) -> tuple[Array, Array]:
        """Residuals over their deviations, those of the priors behind, and their Jacobian."""
        state, held = self.at(x), self.prior > 0
        weights = self.weights[self.used]
        values = np.concatenate([weights * state.residuals[self.used], (self.prior * (x - self.first))[held]])
        return values, np.concatenate([weights[:, None] * state.slopes[self.used], np.diag(self.prior)[held]])

    def _columns(self) -> list[Any]:
        """Values of the columns of all gauges, a rotation matrix where one is measured; zero where there is none."""
        result: list[Any] = []
        for gauge in self.measurements.gauges:
            parts = [gauge.rotation] if gauge.rotation is not None else [column.values for column in gauge.columns]
            result += [np.nan_to_num(part) for part in parts]
        return result + [np.nan_to_num(reading.column.values) for reading in self.measurements.noisy]

    # -- evaluation --------------------------------------------------------------------------------------------------

    def _numbers(self, x: Array, directions: int) -> dict[str, Any]:
        """Numbers of the map, those that are fitted with their slopes along the first directions."""
        numbers: dict[str, Any] = {name: extra.value for name, extra in self.measurements.extras.items()}
        for k in range(len(self.keys), len(self.names)):
            slope = np.zeros((directions, 1))
            slope[k : k + 1] = directions > self.batch.unknowns
            numbers[self.names[k]] = row_number(np.array([x[k]]), slope if directions else None)
        return numbers

    def _fixed(self, x: Array, directions: int) -> tuple[Array, Array]:
        """Fixed coordinates (poses x fixed), and their slopes (directions x poses x fixed)."""
        values, slopes = np.array(self.readings), np.zeros((directions, *self.readings.shape))
        numbers = {name: extra.value for name, extra in self.measurements.extras.items()}
        numbers |= dict(zip(self.names, x, strict=True))
        for i, reading in enumerate(self.measurements.exact):
            for word, raw in (("gain", self.readings[:, i]), ("offset", np.ones(self.count))):
                name = f"{reading.joint}.{word}"
                if directions and name in self.names:
                    slopes[self.names.index(name), :, i] = raw
            values[:, i] = numbers[f"{reading.joint}.gain"] * values[:, i] + numbers[f"{reading.joint}.offset"]
        return values, slopes

    def _numbered(self, directions: int) -> list[Any]:
        """Columns as numbers of the rows."""
        flat = np.zeros((directions, 1)) if directions else None
        result: list[Any] = []
        for values in self.columns:
            if values.ndim == 1:
                result.append(row_number(values, flat))
                continue
            matrix = np.empty((3, 3), dtype=object)
            for index in np.ndindex(3, 3):
                matrix[index] = row_number(np.ascontiguousarray(values[(slice(None), *index)]), flat)
            result.append(matrix)
        return result

    def _measured(self, scene: Scene, x: Array, directions: int) -> tuple[Array, Array]:
        found = residuals(self.measurements, scene, self._numbers(x, directions), self._numbered(directions))
        return self.batch.with_slopes(found, self.count, directions)

    def linearised(self, x: Array, poses: Poses) -> State:
        """Residuals and derivatives at closed poses; motions that stay open are projected out."""
        batch, count = self.batch, len(x)
        directions = count + batch.unknowns
        _, slopes = self._fixed(x, directions)
        scene = batch.scene(batch.twin(x[: len(self.keys)], directions), poses, slopes, count)
        _, equations = batch.with_slopes(batch.equations(scene), self.count, directions)
        values, measured = self._measured(scene, x, directions)
        inverse, left = batch.inverse(equations[:, :, count:])
        steps = -inverse @ equations[:, :, :count]
        J = measured[:, :, :count] + measured[:, :, count:] @ steps
        ranks = np.zeros(self.count, dtype=int)
        if left.shape[2]:
            weights = self.weights[:, :, None]
            U, sizes, _ = np.linalg.svd(self._by_open_motions(measured[:, :, count:], left), full_matrices=False)
            U = U * (sizes > ROUNDING * np.maximum(sizes[:, :1], 1e-300))[:, None, :]
            ranks = (np.abs(U).max(axis=1) > 0).sum(axis=1)
            values = values * self.weights
            values = values - (U @ (np.swapaxes(U, 1, 2) @ values[:, :, None]))[:, :, 0]
            J = weights * J
            J = J - U @ (np.swapaxes(U, 1, 2) @ J)
            values, J = (np.where(a, b / np.where(a, c, 1), 0) for a, b, c in
                         ((self.present, values, self.weights), (self.present[:, :, None], J, weights)))  # fmt: skip
        return State(x, poses, values, J, steps, ranks)

    def _by_open_motions(self, measured: Array, left: Array) -> Array:
        """Weighted derivatives of the gauges by open motions; those that no gauge measures are zero."""
        changes = self.weights[:, :, None] * (measured @ left)
        whole = np.abs(self.weights[:, :, None] * (measured * self.batch.units)).max(initial=0.0)
        return np.where(np.abs(changes) > ROUNDING * whole, changes, 0.0)

    def _fitted_poses(self, twin: Any, x: Array, poses: Poses) -> Poses:
        """Poses whose open motions fit their measurements best."""
        batch = self.batch
        size = np.inf
        for _ in range(INNER if self.open else 0):
            scene = batch.scene(twin, poses, np.zeros((batch.unknowns, *self.readings.shape)))
            _, equations = batch.with_slopes(batch.equations(scene), self.count, batch.unknowns)
            left = batch.inverse(equations)[1]
            self.open = left.shape[2]
            if not self.open:
                return poses
            values, measured = self._measured(scene, x, batch.unknowns)
            B = self._by_open_motions(measured, left)
            z = -np.einsum("pij,pj->pi", np.linalg.pinv(B, rcond=ROUNDING), self.weights * values)
            step = np.einsum("pij,pj->pi", left, z)
            poses, closed = batch.closed(twin, batch.moved(poses, step))
            if not closed.all():
                raise self.unreached(np.flatnonzero(~closed))
            before, size = size, float(np.abs(step / batch.units).max(initial=0.0))
            if size < STILL or STILL**0.5 > size > 0.5 * before:  # rounding makes no step smaller
                break
        return poses

    def start(self, x: Array) -> State:
        """The poses at the start values; those that are not reached are named."""
        fixed, _ = self._fixed(x, 0)
        batch, values = self.batch, x[: len(self.keys)]
        chosen = self._start_motors()
        if chosen:  # readings with noise place the poses first
            names = [*(reading.joint for reading in self.measurements.exact), *(reading.joint for reading in chosen)]
            batch = PoseBatch(self.robot, self.keys, names)
            noisy = [reading.column.values for reading in chosen]
            noisy = [np.where(np.isfinite(column), column, np.nanmedian(column)) for column in noisy]
            fixed = np.column_stack([fixed, *noisy])
        poses, errors = batch.start(values, fixed)
        if chosen and not errors:
            poses, _ = self.batch.closed(
                self.batch.twin(values), Poses(poses.q, np.zeros((self.count, self.batch.forces)))
            )
        if errors:
            raise self.unreached(np.array(sorted(errors)), next(iter(errors.values())))
        return self._settle(x, poses)

    def _start_motors(self) -> list[Reading]:
        """Readings with noise that place the poses together with the exact ones: those that close open motions."""
        home = Poses(self.robot.home[None], np.zeros((1, self.batch.forces)))
        motions = self.batch.inverse(
            self.batch.slopes_by_unknowns(self.batch.twin(self.first[: len(self.keys)]), home)
        )[1]
        rates = [self.robot.tree.rate_names[k] for k in self.batch.columns]
        noisy = [reading for reading in self.measurements.noisy if reading.joint in rates]
        rows = motions[0, [rates.index(reading.joint) for reading in noisy]]
        count = int(np.linalg.matrix_rank(rows)) if rows.size else 0
        return [noisy[k] for k in scipy.linalg.qr(rows.T, mode="r", pivoting=True)[1][:count]] if count else []

    def _settle(self, x: Array, poses: Poses) -> State:
        twin = self.batch.twin(x[: len(self.keys)])
        poses, closed = self.batch.closed(twin, poses)
        if not closed.all():
            raise self.unreached(np.flatnonzero(~closed))
        self.state = self.linearised(x, self._fitted_poses(twin, x, poses))
        return self.state

    def at(self, x: Array) -> State:
        """The state at numbers x, from the last one; raises `UnreachableError` where poses do not close."""
        if self.state is None:
            return self.start(x)
        last = self.state
        if np.array_equal(x, last.x):
            return last
        poses = self.batch.moved(last.poses, last.steps @ (x - last.x))
        poses.q[:, self.batch.fixed] = self._fixed(x, 0)[0]
        return self._settle(x, poses)

    def unreached(self, rows: Array, reason: ParflexError | None = None) -> UnreachableError:
        """Return the error that names rows whose poses do not close."""
        names = [self.measurements.rows[int(row)] for row in rows]
        what = "row" if len(names) == 1 else "rows"
        text = f"{what} {name_list(names)}: the robot cannot be closed at these motor values with the start values"
        text += f" ({reason.message})" if reason is not None else ""
        hint = "check units (gain) and signs of the motors, leave out these rows, or give better start values (--set)"
        if len(self.measurements.exact) > len(self.robot.independent):
            hint = "give the redundant motors a deviation: without one their readings fix the pose exactly"
        return UnreachableError(text, file=self.measurements.file or None, key="data", value=names[0], hint=hint)


# -- what is determined ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Determined(Record):
    """Determined directions of the parameters (columns), undetermined ones, which parameters these hold, condition."""

    directions: Array
    undetermined: Array
    loose: Array
    condition: float


def determined(J: Array) -> Determined:
    """Split the parameters of a weighted Jacobian by its singular values, with columns of unit length.

    Determined directions are orthogonal to the undetermined ones, which are orthonormal, both in the units of the file.
    """
    sizes = np.linalg.norm(J, axis=0)
    units = 1.0 / np.where(sizes > 0, sizes, 1.0)
    _, values, V = np.linalg.svd(np.linalg.qr(J * units, mode="r"), full_matrices=True)
    values = np.concatenate([values, np.zeros(J.shape[1] - len(values))])
    good = values > ROUNDING * max(values.max(initial=0.0), 1e-300)
    condition = float(values[good].max() / values[good].min()) if good.any() else 1.0
    loose = np.abs(V[~good]).max(axis=0, initial=0.0) > SHOWN
    lost = np.linalg.qr(units[:, None] * V[~good].T)[0]
    directions = units[:, None] * V[good].T
    return Determined(directions - lost @ (lost.T @ directions), lost, loose, condition)


def combinations(names: Sequence[str], undetermined: Array) -> list[dict[str, float]]:
    """Undetermined combinations, each with one number of its own."""
    if not undetermined.shape[1]:
        return []
    _, _, order = scipy.linalg.qr(undetermined.T / np.abs(undetermined).max(axis=0)[:, None], pivoting=True)
    own = np.sort(order[: undetermined.shape[1]])
    reduced = undetermined @ np.linalg.inv(undetermined[own])
    result = []
    for column in reduced.T:
        column = column / np.abs(column).max()
        result.append({name: float(w) for name, w in zip(names, column, strict=True) if abs(w) > SHOWN})
    return result


def least_squares(problem: CalibrationProblem, x: Array, directions: Array, loss: str, scale: float) -> Array:
    """The numbers that fit best along some directions from x."""

    def at(y: Array) -> Any:
        return problem.weighted(x + directions @ y)

    def values(y: Array) -> Array:
        try:
            return np.asarray(at(y)[0])
        except ParflexError:  # no robot has these numbers: the step is shortened
            return np.full(problem.equations, np.inf)

    result = scipy.optimize.least_squares(
        values, np.zeros(directions.shape[1]), lambda y: at(y)[1] @ directions, x_scale=1.0, loss=loss,
        method="lm" if loss == "linear" else "trf",
        f_scale=scale, xtol=SETTLED, ftol=SETTLED, gtol=SETTLED, max_nfev=100,
    )  # fmt: skip
    y, last = result.x, np.inf
    for _ in range(POLISH if loss == "linear" else 0):
        step = np.linalg.lstsq(at(y)[1] @ directions, -at(y)[0], rcond=None)[0]
        if not np.linalg.norm(step) < 0.5 * last:
            break
        y, last = y + step, float(np.linalg.norm(step))
    return x + directions @ y
