"""Search for a motion of the motors that tells base parameters: a determinant, its exact gradient, limits."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from parflex.errors import InputError, ParflexError, SingularError
from parflex.identification.base_columns import BaseColumns, base_columns
from parflex.identification.exciting.guarded_descent import SETTLED, descended
from parflex.identification.exciting.motion_limits import MotionLimits, in_units
from parflex.identification.exciting.series import FourierSeries
from parflex.identification.exciting.sloped_rows import Seeds, SlopedRows
from parflex.identification.regressors import ClosedMotion, Regressor, refuse_unsuited
from parflex.identification.unknowns import unknowns
from parflex.robot.robot import Robot

Array = np.ndarray
RIDGE = 1e-6  # beside the square of a usual column: parameters that a motion does not tell stay finite
INSTANTS = 32  # of a period of the highest harmonic
FINE = 3  # times as many, on which limits are kept in the end
NEARER, SPLIT, HIGHEST = 3, 17, 3  # times that instants about the largest values are split, into how many, of how many
MARGIN = 1e-4  # of a limit, which values keep from it at those instants
LESS = 1e-3  # of a motion, by which it is made smaller first where it passes a limit between instants
SOFT = 0.1  # of a usual speed: over so much Coulomb friction changes its sign while a motion is looked for
WEIGHTS = (10.0, 1.0, 0.1, 0.01)  # of the barrier before the limits, one round after the other
FARTHER = (1e3, 100.0)  # before these: the descent begins far from all limits
NEARLY = 1e-5  # of the value, by which a step may still lower it, but with the last of them
ROUNDS = 400  # of descent with each weight, at most
INSIDE = 0.7  # of a motion that reaches the limits: the descent begins there
JUMP = 0.05  # rad, or typical lengths, between two instants, that rates do not explain
LONGEST = 0.1  # rad, or typical lengths, of a step of the descent
LEAST = 1e-3  # rad, or typical lengths, of a motion that is as good as at rest
HALVINGS = 8  # of what a random motion may be larger
CLOSED = 8  # instants of a period of the highest harmonic, at which a random motion is closed


class Search:
    """Series of a robot's motors, and how well they tell its base parameters."""

    def __init__(self, robot: Robot, time: float, harmonics: int, friction: str = "file", reach: float = 0.5) -> None:
        refuse_unsuited(robot)
        every = unknowns(robot, friction)
        self.regressor = self.soft = Regressor(robot, every, friction)
        if any(one.symbol in ("FS", "FS_back") for one in every):
            # friction that changes its sign at once makes the determinant jump where a reversal passes an instant
            speed = SOFT * reach * np.pi * harmonics / time
            self.soft = Regressor(robot, every, friction, float(2.0 ** np.round(np.log2(speed))))
        if self.regressor.spare:
            raise InputError(
                "motors that are more than freedoms cannot move each for itself", key="robot", value=robot.name,
                hint="use an actuation with as many motors as freedoms",
            )  # fmt: skip
        self.base: BaseColumns = base_columns(self.regressor)
        self.sloped = SlopedRows(self.soft, self.base.kept)
        self.series = FourierSeries(time, harmonics, len(robot.actuated))
        self.usual = self.base.usual[self.base.kept]
        self.theta = self.base.groups @ np.array([one.value for one in self.regressor.unknowns])

    def instants(self, fine: int = 1) -> Array:
        """Equal times over a period."""
        count = fine * INSTANTS * self.series.harmonics
        return np.arange(count) * self.series.time / count

    def moving(self, x: Array, t: Array) -> tuple[ClosedMotion, Array, Array]:
        """All joints along a series, and rates and accelerations of the motors."""
        position, rate, acceleration = self.series.moved(x, t)
        found = self.regressor.moving(position, rate, acceleration)
        self._refuse_jumps(found, t[1] - t[0])
        return found, rate, acceleration

    def _refuse_jumps(self, moving: ClosedMotion, step: float) -> None:
        """Refuse a motion that passes singular poses between instants: joints are then not where rates bring them."""
        tree = self.regressor.robot.tree
        links = [link for link in tree.links if link.joint.one_axis]
        q, qd = moving.q[:, [link.q.start for link in links]], moving.qd[:, [link.v.start for link in links]]
        units = self.regressor.robot.gearing.units[[link.v.start for link in links]]
        way = np.roll(q, -1, axis=0) - q
        turning = np.array([link.periodic for link in links])
        way = np.where(turning, way - 2 * np.pi * np.round(way / (2 * np.pi)), way)
        if (np.abs(way - step * (qd + np.roll(qd, -1, axis=0)) / 2) > JUMP * units).any():
            raise SingularError("the motion passes a singular pose", key="motion", hint="choose a smaller one")

    def information(self, W: Array) -> Array:
        """Of one instant, in usual units, with the ridge."""
        scaled = (W / self.usual).reshape(-1, len(self.usual))
        return scaled.T @ scaled / len(W) + RIDGE * np.eye(len(self.usual))

    def log_det(self, x: Array) -> float:
        """The logarithm of the determinant of the information; of a motion that the robot cannot do, the lowest."""
        try:
            moving = self.moving(x, self.instants(FINE))[0].part(slice(None, None, FINE))  # as where limits are judged
        except ParflexError:
            return -np.inf
        return float(np.linalg.slogdet(self.information(self.regressor.of(moving, self.base.kept)[0]))[1])

    def valued(self, x: Array, limits: MotionLimits, weight: float) -> tuple[float, Array]:
        """What is made small, and its exact gradient: minus the logarithm, and a barrier before the limits."""
        t = self.instants()
        try:
            moving, rate, acceleration = self.moving(x, t)
        except ParflexError:
            return np.inf, np.zeros_like(x)
        W, known = self.soft.of(moving, self.base.kept)
        A = self.information(W)
        efforts, place = W @ self.theta + known, self.sloped.places(moving.q)
        total, slopes = limits.slack(self.regressor, moving, efforts, place)
        if not np.isfinite(total):
            return np.inf, np.zeros_like(x)
        value = -float(np.linalg.slogdet(A)[1]) + weight * total / len(t)
        rows = -2 * np.linalg.solve(A, (W / self.usual).reshape(-1, len(self.usual)).T).T.reshape(W.shape)
        rows = rows / self.usual / len(t)
        share = weight / len(t)
        by_efforts = share * slopes["efforts"]
        seeds = Seeds(
            rows + by_efforts[:, :, None] * self.theta, by_efforts, share * slopes["place"], share * slopes["q"],
            share * slopes["qd"], share * slopes["J"],
        )  # fmt: skip
        back = self.sloped.back(moving, rate, acceleration, seeds)
        return value, self.series.back(t, *back)

    @cached_property
    def alike(self) -> Array:
        """Motors per number, in their units, such that numbers of one size move all joints alike about home.

        Beside singular poses small ways of the motors are long ones of other joints. In units of the motors, descents
        and random motions would be held up there, and tiny in all other directions.
        """
        home = self.regressor.moved(self.regressor.robot.home[None], *np.zeros((2, 1, self.series.motors)))
        _, size, ways = np.linalg.svd(in_units(self.regressor, home.J)[0], full_matrices=False)
        return ways.T @ ((size[-1] / size)[:, None] * ways)

    def random(self, rng: np.random.Generator, reach: float, limits: MotionLimits) -> Array:
        """A random series within limits, in which all joints move alike about home."""
        robot, series = self.regressor.robot, self.series
        slow = FourierSeries(series.time, max(2, -(-series.harmonics // 2)), series.motors)  # loops add harmonics
        t = np.arange(CLOSED * series.harmonics) * series.time / (CLOSED * series.harmonics)
        ways = slow.moved(rng.standard_normal(slow.motors * slow.free), t)[0]
        ways = ways - ways.mean(axis=0)
        ways = ways / np.sqrt((ways**2).sum(axis=1).mean())
        found = self._closed_series(t, LEAST * ways)
        if found is None or not self._within(found, limits, self.instants(FINE)):
            raise InputError(
                "limits leave no motion about home", key="limits", value=robot.name,
                hint="widen them, or choose another home",
            )  # fmt: skip
        low, high = LEAST, reach * np.sqrt(series.motors)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            x = self._closed_series(t, middle * ways)
            if x is not None and self._within(x, limits, self.instants(FINE)):
                low, found = middle, x
            else:
                high = middle
        inner = self._closed_series(t, INSIDE * low * ways)
        return found if inner is None or not self._within(inner, limits, self.instants(FINE)) else inner

    def _closed_series(self, t: Array, ways: Array) -> Array | None:
        """The series of the motors nearest to a motion along ways (instants x freedoms) of all joints about home.

        None where the loops do not close.
        """
        robot, tree = self.regressor.robot, self.regressor.robot.tree
        home = self.regressor.moved(robot.home[None], *np.zeros((2, 1, self.series.motors)))
        allowed, per = np.linalg.qr(in_units(self.regressor, home.J)[0])
        allowed = allowed * tree.rate_units[:, None]
        if robot.gearing.any:  # rotors as their gears turn them
            allowed = home.J[0] * robot.gearing.units[list(self.regressor.partition.independent)] @ np.linalg.inv(per)
        q, before, places = np.asarray(robot.home), np.zeros(ways.shape[1]), []
        try:
            for way in ways:
                near = tree.moved(q, allowed @ (way - before))
                q, before = np.asarray(robot.close(near)) if robot.closures.size else near, way
                places.append(q[self.regressor.motor_q])
        except ParflexError:
            return None
        return np.linalg.lstsq(self.series.rows(t)[0], np.array(places), rcond=None)[0].T.ravel()

    def best(self, x: Array, limits: MotionLimits, farther: bool = True) -> Array:
        """The best series from a start, within limits.

        `farther`: away from all limits first. Many parameters and narrow limits need it; fewer reach more without.
        """
        inside = x
        for weight in (*(FARTHER if farther else ()), *WEIGHTS):
            x = self._lower(x, limits, weight)
            inside = x if self._within(x, limits, self.instants(FINE)) else inside
        smaller = self.between(inside, x, limits), self.between(self.series.shrunk(x, 1e-3), x, limits)
        return max(smaller, key=self.log_det)

    def _lower(self, x: Array, limits: MotionLimits, weight: float) -> Array:
        """A descent in numbers that move all joints alike."""
        robot = self.regressor.robot
        per_number = self.alike * robot.gearing.units[list(robot.actuated)][:, None]
        shape = (self.series.motors, self.series.free)

        def valued(numbers: Array) -> tuple[float, Array]:
            value, slope = self.valued((per_number @ numbers.reshape(shape)).ravel(), limits, weight)
            return value, (per_number.T @ slope.reshape(shape)).ravel()

        start = np.linalg.solve(per_number, x.reshape(shape)).ravel()
        settled = SETTLED if weight == WEIGHTS[-1] else NEARLY
        return np.asarray(per_number @ descended(valued, start, ROUNDS, LONGEST, settled).reshape(shape)).ravel()

    def between(self, inside: Array, x: Array, limits: MotionLimits) -> Array:
        """The series, as much nearer to one within limits as these need at all instants."""
        low = 1.0 if self._within(x, limits, self.instants(FINE)) else 0.0
        high = 1.0
        for _ in range(12 if low < high else 0):
            middle = (low + high) / 2
            if self._within(inside + middle * (x - inside), limits, self.instants(FINE)):
                low = middle
            else:
                high = middle
        less = LESS
        while low > 0:  # limits that are passed between instants
            trial = inside + low * (x - inside)
            if self._within(trial, limits, self.peaks(trial, limits)):
                return trial
            low, less = max(low - less, 0.0), 2 * less
        return inside

    def peaks(self, x: Array, limits: MotionLimits) -> Array:
        """Instants of a period, and more about those at which values are largest."""
        t = self.instants(FINE)
        for _ in range(NEARER):
            try:
                moving, _, efforts, place = self.watched(x, t)
            except ParflexError:
                return t
            values, _ = limits.watched(self.regressor, moving, efforts, place)
            inner = values[1:-1]
            top = np.where((inner >= values[:-2]) & (inner >= values[2:]), inner, -np.inf)
            chosen = {1 + int(k) for column in top.T for k in np.argsort(column)[-HIGHEST:] if np.isfinite(column[k])}
            t = np.unique(np.concatenate([t, *(np.linspace(t[k - 1], t[k + 1], SPLIT)[1:-1] for k in chosen)]))
        return t

    def watched(self, x: Array, t: Array) -> tuple[ClosedMotion, Array, Array, Array]:
        """All joints at instants of a series, rows, efforts by the numbers of the file, and places."""
        moving = self.regressor.moving(*self.series.moved(x, t))
        W, known = self.regressor.of(moving, self.base.kept)
        return moving, W, W @ self.theta + known, self.sloped.places(moving.q)

    def _within(self, x: Array, limits: MotionLimits, t: Array) -> bool:
        try:
            self.moving(x, self.instants(FINE))
            moving, _, efforts, place = self.watched(x, t)
        except ParflexError:
            return False
        values, bounds = limits.watched(self.regressor, moving, efforts, place)
        return bool((values <= bounds * np.where(bounds > 0, 1 - MARGIN, 1 + MARGIN)).all())

    def deviations(self, W: Array) -> dict[str, float]:
        """Of parameters in usual units, for noise of 1 in one instant."""
        spread = np.sqrt(np.diag(np.linalg.inv(self.information(W))))
        return {"geometric_mean": float(np.exp(np.log(spread).mean())), "largest": float(spread.max())}
