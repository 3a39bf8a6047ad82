"""`excite`: a motion of the motors that tells the base parameters of a robot best, within limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.checking import number, whole
from parflex.errors import InputError, ParflexError, SingularError
from parflex.identification.base_columns import BaseColumns, base_columns
from parflex.identification.exciting.guarded_descent import descended
from parflex.identification.exciting.motion_limits import MotionLimits, read_motion_limits
from parflex.identification.exciting.series import FourierSeries
from parflex.identification.exciting.sloped_rows import Seeds, SlopedRows
from parflex.identification.regressors import ClosedMotion, Regressor, refuse_unsuited
from parflex.identification.unknowns import unknowns
from parflex.models.robot import Robot
from parflex.records import Record, brief

Array = np.ndarray
RIDGE = 1e-6  # beside the square of a usual column: parameters that a motion does not tell stay finite
INSTANTS = 32  # of a period of the highest harmonic
FINE = 3  # times as many, on which limits are kept in the end
WEIGHTS = (10.0, 1.0, 0.1, 0.01)  # of the barrier before the limits, one round after the other
ROUNDS = 60  # of descent with each weight
INSIDE = 0.7  # of a motion that reaches the limits: the descent begins there
JUMP = 0.05  # rad, or typical lengths, between two instants, that rates do not explain
LONGEST = 0.1  # rad, or typical lengths, of a step of the descent
FIRST = 0.3  # of the amplitudes, with which a start begins


@dataclass(frozen=True, eq=False, repr=False)
class Excitation(Record):
    """A motion of the motors that tells base parameters.

    Attributes
    ----------
    robot : str
        Its name.
    motion : dict[str, Any]
        Fourier series, as `simulate` takes it.
    log_det : float
        Logarithm of the determinant of the information of one instant, columns in usual units, with a small ridge.
    condition : float
        Condition number of the rows.
    limits : dict[str, Any]
        Largest values by kind with their limits: position, speed, effort, workspace, distance (1 at home, 0 at singular
        poses).
    parameters : list[str]
        Base parameters that it is to tell.
    deviations : dict[str, float]
        Of parameters in usual units, for noise of 1 N or N m in one instant: geometric_mean, largest.
    starts : list[float]
        Logarithms that all starts reached.
    """

    robot: str
    motion: dict[str, Any]
    log_det: float
    condition: float
    limits: dict[str, Any]
    parameters: list[str] = field(default_factory=list)
    deviations: dict[str, float] = field(default_factory=dict)
    starts: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "robot": self.robot, "log_det": self.log_det, "condition": self.condition, "limits": self.limits,
            "motion": self.motion, "parameters": self.parameters, "deviations": self.deviations, "starts": self.starts,
        }  # fmt: skip

    def _told(self) -> str:
        return f"{brief(self.robot)}: {len(self.parameters)} base parameters, log det {self.log_det:.4g}"


def excite(
    robot: Robot,
    time: float = 10.0,
    harmonics: int = 5,
    seed: int = 0,
    *,
    amplitude: float = 0.5,
    velocity_limit: float | Mapping[str, float] | None = None,
    effort_limit: Any = None,
    workspace: Mapping[str, Any] | None = None,
    distance: float = 0.3,
    friction: str = "file",
    starts: int = 4,
) -> Excitation:
    """A motion of the motors that tells the base parameters of a rigid robot best, within limits.

    Fourier series, at rest at both ends, that make the determinant of the information largest (D-optimal), by its exact
    gradient through the loops; the best of several starts.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    time : float, default 10.0
        Duration, one period (s).
    harmonics : int, default 5
        Harmonics of the series, two or more.
    seed : int, default 0
        Start of the random numbers.
    amplitude : float, default 0.5
        Reach about home of motors without limits in the file, in rad or typical lengths of the robot (dimensionless).
    velocity_limit : float or Mapping[str, float], default None
        Largest velocity of all motors, or of each; None: no limit (m/s, rad/s).
    effort_limit : float or Mapping[str, float], default None
        Largest effort of all motors, or of each, by the numbers of the file; a pair is a lowest and a highest effort;
        None: no limit (N, N m).
    workspace : Mapping[str, Sequence[float]], default None
        Lowest and highest place of the end effector by direction, {'x': [-0.1, 0.1]}; None: no limit (m).
    distance : float, default 0.3
        Least distance to singular poses: the spread of joint rates per motor rate at home over that on the way, 1 at
        home and 0 at singular poses (dimensionless).
    friction : {'file', 'none', 'symmetric', 'offset', 'direction'}, default "file"
        Friction of motors that is looked for.
    starts : int, default 4
        Number of random starts.

    Returns
    -------
    Excitation
        The motion, its log det, condition number and largest values beside their limits.

    Examples
    --------
    >>> parflex.excite(parflex.load("3rrr"), time=5, harmonics=5).log_det
    """
    given = float(number(time, "time", above=0.0, example=10.0))
    count = whole(harmonics, "harmonics", 2, 50)
    search = Search(robot, given, count, friction)
    reach = float(number(amplitude, "amplitude", above=0.0, example=0.5))
    least = float(number(distance, "distance", least=0.0, example=0.3))
    if least >= 1:
        raise InputError("a distance of 1 is home itself", key="distance", value=least, hint="give e.g. 0.3")
    limits = read_motion_limits(search.regressor, reach, velocity_limit, effort_limit, workspace, least)
    rng = np.random.default_rng(whole(seed, "seed", 0))
    found = [search.best(search.random(rng, reach, limits), limits) for _ in range(whole(starts, "starts", 1, 1000))]
    best = max(found, key=search.log_det)
    return search.told(best, limits, [search.log_det(one) for one in found])


class Search:
    """Series of a robot's motors, and how well they tell its base parameters."""

    def __init__(self, robot: Robot, time: float, harmonics: int, friction: str = "file") -> None:
        refuse_unsuited(robot)
        self.regressor = Regressor(robot, unknowns(robot, friction), friction)
        if self.regressor.spare:
            raise InputError(
                "motors that are more than freedoms cannot move each for itself", key="robot", value=robot.name,
                hint="use an actuation with as many motors as freedoms",
            )  # fmt: skip
        self.base: BaseColumns = base_columns(self.regressor)
        self.sloped = SlopedRows(self.regressor, self.base.kept)
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
        units = tree.rate_units[[link.v.start for link in links]]
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
        """The logarithm of the determinant of the information."""
        return float(np.linalg.slogdet(self.information(self.regressor.of(self.moving(x, self.instants())[0],
                                                                          self.base.kept)[0]))[1])  # fmt: skip

    def valued(self, x: Array, limits: MotionLimits, weight: float) -> tuple[float, Array]:
        """What is made small, and its exact gradient: minus the logarithm, and a barrier before the limits."""
        t = self.instants()
        try:
            moving, rate, acceleration = self.moving(x, t)
        except ParflexError:
            return np.inf, np.zeros_like(x)
        W, known = self.regressor.of(moving, self.base.kept)
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

    def random(self, rng: np.random.Generator, reach: float, limits: MotionLimits) -> Array:
        """A random series within limits."""
        robot = self.regressor.robot
        units = robot.tree.rate_units[list(robot.actuated)]
        series = self.series
        x = rng.standard_normal((series.motors, series.free)) * units[:, None] * FIRST * reach
        x[:, 0] = robot.home[self.regressor.motor_q]
        wide = self._about_home(x.ravel())
        still = self.series.shrunk(wide, 1e-3)
        if not self._within(still, limits):
            raise InputError(
                "limits leave no motion about home", key="limits", value=robot.name,
                hint="widen them, or choose another home",
            )  # fmt: skip
        return still + INSIDE * (self.between(still, wide, limits) - still)

    def _about_home(self, x: Array) -> Array:
        """The same series with home in its middle."""
        values = x.reshape(self.series.motors, self.series.free).copy()
        _, _, cosines = self.series.amplitudes(x)
        values[:, 0] = self.regressor.robot.home[self.regressor.motor_q] + cosines.sum(axis=1)
        return values.ravel()

    def best(self, x: Array, limits: MotionLimits) -> Array:
        """The best series from a start, within limits."""
        start = x
        for weight in WEIGHTS:
            x = self._lower(x, limits, weight)
        smaller = self.between(start, x, limits), self.between(self.series.shrunk(x, 1e-3), x, limits)
        return max(smaller, key=self.log_det)

    def _lower(self, x: Array, limits: MotionLimits, weight: float) -> Array:
        """A descent in units of the motors."""
        robot = self.regressor.robot
        unit = np.repeat(robot.tree.rate_units[list(robot.actuated)], self.series.free)

        def valued(scaled: Array) -> tuple[float, Array]:
            value, slope = self.valued(scaled * unit, limits, weight)
            return value, slope * unit

        return descended(valued, x / unit, ROUNDS, LONGEST) * unit

    def between(self, inside: Array, x: Array, limits: MotionLimits) -> Array:
        """The series, as much nearer to one within limits as these need."""
        if self._within(x, limits):
            return x
        low, high = 0.0, 1.0
        for _ in range(12):
            middle = (low + high) / 2
            if self._within(inside + middle * (x - inside), limits):
                low = middle
            else:
                high = middle
        return inside + low * (x - inside)

    def _within(self, x: Array, limits: MotionLimits) -> bool:
        try:
            moving, _, _ = self.moving(x, self.instants(FINE))
        except ParflexError:
            return False
        W, known = self.regressor.of(moving, self.base.kept)
        place = self.sloped.places(moving.q)
        return bool(np.isfinite(limits.slack(self.regressor, moving, W @ self.theta + known, place)[0]))

    def told(self, x: Array, limits: MotionLimits, reached: list[float]) -> Excitation:
        """The answer for a series."""
        robot, series = self.regressor.robot, self.series
        moving, _, _ = self.moving(x, self.instants(FINE))
        W, known = self.regressor.of(moving, self.base.kept)
        start, sines, cosines = series.amplitudes(x)
        motors = robot.actuated_names
        motion = {
            "frequency": 1 / series.time, "duration": series.time,
            "start": dict(zip(motors, map(float, start), strict=True)),
            "sines": {name: row.tolist() for name, row in zip(motors, sines, strict=True)},
            "cosines": {name: row.tolist() for name, row in zip(motors, cosines, strict=True)},
        }  # fmt: skip
        efforts, place = W @ self.theta + known, self.sloped.places(moving.q)
        flat = W.reshape(-1, W.shape[2])
        return Excitation(
            robot.name, motion, self.log_det(x), float(np.linalg.cond(flat)),
            limits.judged(self.regressor, moving, efforts, place),
            [self.regressor.unknowns[k].name for k in self.base.kept], self.deviations(W), reached,
        )  # fmt: skip

    def deviations(self, W: Array) -> dict[str, float]:
        """Of parameters in usual units, for noise of 1 in one instant."""
        spread = np.sqrt(np.diag(np.linalg.inv(self.information(W))))
        return {"geometric_mean": float(np.exp(np.log(spread).mean())), "largest": float(spread.max())}
