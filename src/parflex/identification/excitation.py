"""Exciting trajectories: D-optimal Fourier series."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from parflex.errors import InputError, ParflexError, SingularError
from parflex.identification.excitation_limits import (
    AMPLITUDE,
    DifferentiatedRows,
    MotionLimits,
    Seeds,
    in_units,
    read_motion_limits,
)
from parflex.identification.regressor import ClosedMotion, Regressor, refuse_unsuited
from parflex.identification.regressor_columns import BaseColumns, base_columns
from parflex.identification.unknowns import unknowns
from parflex.io import check_writable, refuse_overwrite, write_text
from parflex.records import Answer, Record, brief
from parflex.robot.robot import Robot
from parflex.trajectories.files import check_target, write_table
from parflex.trajectories.motions import plan_motion

Array = np.ndarray
RIDGE = 1e-6  # beside the square of a usual column: parameters that a motion does not tell stay finite
INSTANTS, FINE = 32, 3  # of a period of the highest harmonic, and times as many on which motions are judged
DENSE = 12  # times as many on which limits are kept in the end
MARGIN = 1e-3  # of a limit: half the square of 5 pi over 32 DENSE, what five times the highest harmonic hides there
SOFT = 0.1  # of a usual speed: over so much Coulomb friction changes its sign while a motion is looked for
WEIGHTS = (10.0, 1.0, 0.1, 0.01)  # of the barrier before the limits, one round after the other
FARTHER = (1e3, 100.0)  # before these: the descent begins far from all limits
ROUNDS, NEARLY, SETTLED = 400, 1e-5, 1e-7  # of descent with each weight, and the value's share where it ends
INSIDE = 0.7  # of a motion that reaches the limits: the descent begins there
JUMP = 0.05  # rad, or typical lengths, between two instants, that rates do not explain
LONGEST, CAREFUL = 0.1, 0.1  # rad, or typical lengths, of a step, and of that where no curvature is known
LEAST = 1e-3  # rad, or typical lengths, of a motion that is as good as at rest
BISECTIONS = 12  # of a size: limits are met to a thousandth


@dataclass(frozen=True, eq=False, repr=False)
class Excitation(Answer):
    """A motion of the motors that determines base parameters.

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
        Base parameters that it is to determine.
    deviations : dict[str, float]
        Of parameters for effort noise of 1 N or N m in one instant: geometric_mean, largest. Each as the effort (root
        mean square, N or N m) that it causes in random motions near home.
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
    amplitude: float | None = None,
    velocity_limit: float | Mapping[str, float] | None = None,
    effort_limit: Any = None,
    workspace: Mapping[str, Any] | None = None,
    distance: float = 0.3,
    friction: str = "file",
    starts: int = 4,
    progress: Callable[[int, int], None] | None = None,
) -> Excitation:
    """A motion of the motors that determines the base parameters of a rigid robot best, within limits.

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
    amplitude : float, default None
        Reach about home of all motors, in rad or typical lengths of the robot, within the limits of the file; None:
        0.5 for motors without limits in the file (dimensionless).
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
    progress : callable, default None
        Called with the starts that are done and all of them.

    Returns
    -------
    Excitation
        The motion, its log det, condition number and largest values beside their limits.
    """
    reach = AMPLITUDE if amplitude is None else amplitude
    search = ExcitationSearch(robot, time, harmonics, friction, reach)
    if distance >= 1:
        raise InputError("a distance of 1 is home itself", key="distance", value=distance, hint="give e.g. 0.3")
    limits = read_motion_limits(search.regressor, amplitude, velocity_limit, effort_limit, workspace, distance)
    rng, candidates = np.random.default_rng(seed), list[Array]()
    for k in range(starts):
        if progress is not None:
            progress(k, starts)
        candidates.append(search.best(search.random(rng, reach, limits), limits, farther=k % 2 == 0))
    if progress is not None:
        progress(starts, starts)
    reached = [search.log_det(candidate) for candidate in candidates]
    return _excitation(search, candidates[int(np.argmax(reached))], limits, reached)


def _excitation(search: ExcitationSearch, x: Array, limits: MotionLimits, reached: list[float]) -> Excitation:
    """The answer for a series."""
    robot, series, base = search.regressor.robot, search.series, search.base
    moving, W, efforts, place = search.watched(x, search.instants(DENSE))
    start, sines, cosines = series.amplitudes(x)
    motors = robot.actuated_names
    motion = {
        "frequency": 1 / series.time, "duration": series.time,
        "start": dict(zip(motors, map(float, start), strict=True)),
        "sines": {name: row.tolist() for name, row in zip(motors, sines, strict=True)},
        "cosines": {name: row.tolist() for name, row in zip(motors, cosines, strict=True)},
    }  # fmt: skip
    judged = limits.judged(search.regressor, moving, efforts, place)
    _, W, _, _ = search.watched(x, search.instants(FINE))
    return Excitation(
        robot.name, motion, search.log_det(x), float(np.linalg.cond(W.reshape(-1, W.shape[2]))), judged,
        [search.regressor.unknowns[k].name for k in base.kept], search.deviations(W), reached,
    )  # fmt: skip


class ExcitationSearch:
    """Series of a robot's motors, and how well they tell its base parameters."""

    def __init__(self, robot: Robot, time: float, harmonics: int, friction: str = "file", reach: float = 0.5) -> None:
        refuse_unsuited(robot)
        every = unknowns(robot, friction)
        self.regressor = self.soft = Regressor(robot, every, friction)
        if any(unknown.symbol in ("FS", "FS_back") for unknown in every):
            # friction that changes its sign at once makes the determinant jump where a reversal passes an instant
            speed = SOFT * reach * np.pi * harmonics / time
            self.soft = Regressor(robot, every, friction, float(2.0 ** np.round(np.log2(speed))))
        if self.regressor.spare:
            raise InputError(
                "redundant motors cannot move independently", key="robot", value=robot.name,
                hint="use an actuation with as many motors as degrees of freedom",
            )  # fmt: skip
        self.base: BaseColumns = base_columns(self.regressor)
        self.sloped = DifferentiatedRows(self.soft, self.base.kept)
        self.series = FourierSeries(time, harmonics, len(robot.actuated))
        self.usual = self.base.usual[self.base.kept]
        self.theta = self.base.groups @ np.array([unknown.value for unknown in self.regressor.unknowns])

    def instants(self, fine: int = 1) -> Array:
        """Equal times over a period."""
        count = fine * INSTANTS * self.series.harmonics
        return np.arange(count) * self.series.time / count

    def moving(self, x: Array, t: Array) -> tuple[ClosedMotion, Array, Array]:
        """All joints along a series, and rates and accelerations of the motors."""
        position, rate, acceleration = self.series.moved(x, t)
        motion = self.regressor.moving(position, rate, acceleration)
        self._refuse_jumps(motion, t[1] - t[0])
        return motion, rate, acceleration

    def _refuse_jumps(self, moving: ClosedMotion, step: float) -> None:
        """Refuse a motion that passes singular poses between instants: joints are then not where rates bring them."""
        tree = self.regressor.robot.tree
        links = [link for link in tree.links if link.joint.one_axis]
        q, qd = moving.q[:, [link.q.start for link in links]], moving.qd[:, [link.v.start for link in links]]
        units = self.regressor.robot.gearing.units[[link.v.start for link in links]]
        change = np.roll(q, -1, axis=0) - q
        turning = np.array([link.periodic for link in links])
        change = np.where(turning, change - 2 * np.pi * np.round(change / (2 * np.pi)), change)
        if (np.abs(change - step * (qd + np.roll(qd, -1, axis=0)) / 2) > JUMP * units).any():
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
        total, slopes = limits.barrier(self.regressor, moving, efforts, place)
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
    def per_number(self) -> Array:
        """Motors per number such that numbers of one size move all joints alike about home.

        Beside singular poses small ways of the motors are long ones of other joints. In units of the motors, descents
        and random motions would be held up there, and tiny in all other directions.
        """
        robot = self.regressor.robot
        home = self.regressor.moved(robot.home[None], *np.zeros((2, 1, self.series.motors)))
        _, size, directions = np.linalg.svd(in_units(self.regressor, home.J)[0], full_matrices=False)
        alike = directions.T @ ((size[-1] / size)[:, None] * directions)
        return np.asarray(alike * robot.gearing.units[list(robot.actuated)][:, None])

    def random(self, rng: np.random.Generator, reach: float, limits: MotionLimits) -> Array:
        """A random series within limits, in which all joints move alike about home."""
        regressor, series = self.regressor, self.series
        slow = FourierSeries(series.time, max(2, -(-series.harmonics // 2)), series.motors)  # loops add harmonics
        t, home = self.instants(), np.zeros((series.motors, series.free))
        home[:, 0] = regressor.robot.home[regressor.motor_q]
        ways = slow.moved(rng.standard_normal(slow.motors * slow.free), t)[0]
        ways = ways - ways.mean(axis=0)
        ways = ways / np.sqrt((ways**2).sum(axis=1).mean()) @ self.per_number.T
        shape = np.linalg.lstsq(series.rows(t)[0], ways, rcond=None)[0].T.ravel()
        fine = self.instants(FINE)
        low, high = LEAST, reach * np.sqrt(series.motors)
        if not self._within(home.ravel() + low * shape, limits, fine):
            raise InputError(
                "limits leave no motion about home", key="limits", value=regressor.robot.name,
                hint="widen them, or choose another home",
            )  # fmt: skip
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._within(home.ravel() + middle * shape, limits, fine) else (low, middle)
        inner = home.ravel() + INSIDE * low * shape
        return inner if self._within(inner, limits, fine) else home.ravel() + low * shape

    def best(self, x: Array, limits: MotionLimits, farther: bool = True) -> Array:
        """The best series from a start, within limits.

        `farther`: away from all limits first. Many parameters and narrow limits need it; fewer reach more without.
        """
        inside = x
        for weight in (*(FARTHER if farther else ()), *WEIGHTS):
            x = self._lower(x, limits, weight)
            inside = x if self._within(x, limits, self.instants(DENSE)) else inside
        smaller = self.between(inside, x, limits), self.between(self.series.shrunk(x, 1e-3), x, limits)
        return max(smaller, key=self.log_det)

    def _lower(self, x: Array, limits: MotionLimits, weight: float) -> Array:
        """A descent in numbers that move all joints alike."""
        shape = (self.series.motors, self.series.free)

        def valued(numbers: Array) -> tuple[float, Array]:
            value, slope = self.valued((self.per_number @ numbers.reshape(shape)).ravel(), limits, weight)
            return value, (self.per_number.T @ slope.reshape(shape)).ravel()

        start = np.linalg.solve(self.per_number, x.reshape(shape)).ravel()
        best = minimise(valued, start, SETTLED if weight == WEIGHTS[-1] else NEARLY)
        return np.asarray(self.per_number @ best.reshape(shape)).ravel()

    def between(self, inside: Array, x: Array, limits: MotionLimits) -> Array:
        """The series, as much nearer to one within limits as these need."""
        low, high = (1.0, 1.0) if self._within(x, limits, self.instants(DENSE)) else (0.0, 1.0)
        for _ in range(BISECTIONS if low < high else 0):
            middle = (low + high) / 2
            inner = self._within(inside + middle * (x - inside), limits, self.instants(DENSE))
            low, high = (middle, high) if inner else (low, middle)
        return np.asarray(inside + low * (x - inside))

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
        return all(left.min() >= MARGIN for left in limits.margins(self.regressor, moving, efforts, place))

    def deviations(self, W: Array) -> dict[str, float]:
        """Of parameters in usual units, for noise of 1 in one instant."""
        spread = np.sqrt(np.diag(np.linalg.inv(self.information(W))))
        return {"geometric_mean": float(np.exp(np.log(spread).mean())), "largest": float(spread.max())}


@dataclass(frozen=True, eq=False, repr=False)
class FourierSeries(Record):
    """q = start + sum a sin(2 pi k t/T) + b (cos(2 pi k t/T) - 1), of `motors`, with rates and accelerations zero at 0.

    Free numbers are (motors x (1 + 2 harmonics - 2)): the start, and coordinates of a and b in the plane of both
    conditions, in which a unit has the same acceleration whatever its harmonic.
    """

    time: float
    harmonics: int
    motors: int

    @property
    def free(self) -> int:
        """Free numbers of a motor."""
        return 2 * self.harmonics - 1

    @property
    def plane(self) -> Array:
        """Harmonics a and b (2N) per free number but the start."""
        k = np.arange(1, self.harmonics + 1)
        zero = np.zeros(self.harmonics)
        # in units of accelerations: sum k a = sum (k^2 a)/k, sum k^2 b
        conditions = np.array([np.concatenate([1 / k, zero]), np.concatenate([zero, np.ones(self.harmonics)])])
        return scipy.linalg.null_space(conditions) / np.tile(k**2, 2)[:, None]

    def rows(self, t: Array) -> tuple[Array, Array, Array]:
        """Positions, rates and accelerations of a motor at instants per free number."""
        w = 2 * np.pi * np.arange(1, self.harmonics + 1) / self.time
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        plane = self.plane

        def with_start(part: Array, start: float) -> Array:
            return np.concatenate([np.full((len(t), 1), start), part @ plane], axis=1)

        return (
            with_start(np.concatenate([s, c - 1], axis=1), 1.0),
            with_start(np.concatenate([w * c, -w * s], axis=1), 0.0),
            with_start(np.concatenate([-(w**2) * s, -(w**2) * c], axis=1), 0.0),
        )

    def moved(self, x: Array, t: Array) -> tuple[Array, Array, Array]:
        """Positions, rates and accelerations of all motors (instants x motors)."""
        values = x.reshape(self.motors, self.free).T
        position, rate, acceleration = self.rows(t)
        return position @ values, rate @ values, acceleration @ values

    def back(self, t: Array, position: Array, rate: Array, acceleration: Array) -> Array:
        """Slopes by the free numbers, from those by positions, rates and accelerations."""
        p, v, a = self.rows(t)
        return (p.T @ position + v.T @ rate + a.T @ acceleration).T.ravel()

    def amplitudes(self, x: Array) -> tuple[Array, Array, Array]:
        """Start, sines and cosines of all motors."""
        values = x.reshape(self.motors, self.free)
        both = values[:, 1:] @ self.plane.T
        return values[:, 0], both[:, : self.harmonics], both[:, self.harmonics :]

    def shrunk(self, x: Array, factor: float) -> Array:
        """The same about the mean of the motion, so much smaller."""
        values = x.reshape(self.motors, self.free).copy()
        middle = values[:, 0] - (values[:, 1:] @ self.plane.T)[:, self.harmonics :].sum(axis=1)
        values[:, 1:] *= factor
        values[:, 0] = middle + (values[:, 1:] @ self.plane.T)[:, self.harmonics :].sum(axis=1)
        return values.ravel()


def minimise(valued: Callable[[Array], tuple[float, Array]], x: Array, settled: float) -> Array:
    """The lowest point found by BFGS with backtracking, as the barrier is infinite beyond the limits."""
    value, slope = valued(x)
    H, fresh = np.eye(len(x)), True
    for _ in range(ROUNDS):
        direction = -H @ slope
        if not direction @ slope < 0:
            H, direction, fresh = np.eye(len(x)), -slope, True
        size = np.abs(direction).max(initial=0.0)
        if size == 0:
            break
        length = min(1.0, LONGEST / size) if not fresh else CAREFUL * LONGEST / size
        for _ in range(25):
            after, turned = valued(x + length * direction)
            if after <= value + 1e-4 * length * float(direction @ slope):
                break
            length /= 2
        else:
            if fresh:
                break
            H, fresh = np.eye(len(x)), True
            continue
        step, change = length * direction, turned - slope
        done = value - after <= settled * max(1.0, abs(value))
        x, value, slope = x + step, after, turned
        product = float(step @ change)
        if product > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
            if fresh:
                H *= product / float(change @ change)
            moved = H @ change
            H += (product + change @ moved) / product**2 * np.outer(step, step)
            H -= (np.outer(moved, step) + np.outer(step, moved)) / product
            fresh = False
        if done:
            break
    return x


def check_motion_target(robot: Robot, path: str) -> None:
    """Refuse files that cannot be written, or that belong to the robot, before anything is computed."""
    series = Path(path).with_suffix(".toml")
    refuse_overwrite([path, series], robot.files)
    check_target(path)
    check_writable(series)


def write_motion(robot: Robot, excitation: Excitation, path: str, step: float) -> list[str]:
    """Positions, velocities and accelerations of the motors at equal times; and the series."""
    columns = plan_motion(robot, excitation.motion, ignore_limits=True).table(step, excitation.motion["duration"])
    series = Path(path).with_suffix(".toml")
    files = [str(file) for file in write_table(path, columns, {"motion": excitation.motion})]
    lines = [f"{key} = {excitation.motion[key]!r}" for key in ("frequency", "duration")]
    for key in ("start", "sines", "cosines"):
        lines += [f"{key} = {_written(excitation.motion[key])}"]
    write_text(series, "\n".join(lines) + "\n")
    return [*files, str(series)]


def _written(table: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f'"{name}" = {value!r}' for name, value in table.items()) + " }"


def read_region(text: str | None) -> dict[str, list[float]] | None:
    """Limits of places from e.g. "x=-0.1:0.1,y=0:0.2"."""
    if text is None:
        return None
    limits: dict[str, list[float]] = {}
    for part in text.split(","):
        axis, _, pair = part.partition("=")
        try:
            low, high = (float(word) for word in pair.split(":"))
        except ValueError:
            raise InputError(f"'{part}' is not a direction with two limits", key="workspace", value=part,
                             hint="give e.g. x=-0.1:0.1,y=0:0.2") from None  # fmt: skip
        limits[axis.strip()] = [low, high]
    return limits
