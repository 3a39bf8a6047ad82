"""`excite`: a motion of the motors that tells the base parameters of a robot best, within limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.checks import integer, number
from parflex.errors import InputError
from parflex.identification.exciting.motion_limits import AMPLITUDE, MotionLimits, read_motion_limits
from parflex.identification.exciting.motion_search import FINE, Search
from parflex.records import Answer, brief
from parflex.robot.robot import Robot

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Excitation(Answer):
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
    amplitude: float | None = None,
    velocity_limit: float | Mapping[str, float] | None = None,
    effort_limit: Any = None,
    workspace: Mapping[str, Any] | None = None,
    distance: float = 0.3,
    friction: str = "file",
    starts: int = 4,
    progress: Callable[[int, int], None] | None = None,
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

    Examples
    --------
    >>> parflex.excite(parflex.load("3rrr"), time=5, harmonics=5).log_det
    """
    given = float(number(time, "time", above=0.0, example=10.0))
    count = integer(harmonics, "harmonics", 2, 50)
    asked = None if amplitude is None else float(number(amplitude, "amplitude", above=0.0, example=0.5))
    reach = AMPLITUDE if asked is None else asked
    search = Search(robot, given, count, friction, reach)
    least = float(number(distance, "distance", least=0.0, example=0.3))
    if least >= 1:
        raise InputError("a distance of 1 is home itself", key="distance", value=least, hint="give e.g. 0.3")
    limits = read_motion_limits(search.regressor, asked, velocity_limit, effort_limit, workspace, least)
    rng = np.random.default_rng(integer(seed, "seed", 0))
    count = integer(starts, "starts", 1, 1000)
    found: list[Array] = []
    for k in range(count):
        if progress is not None:
            progress(k, count)
        found.append(search.best(search.random(rng, reach, limits), limits, farther=k % 2 == 0))
    if progress is not None:
        progress(count, count)
    best = max(found, key=search.log_det)
    return _told(search, best, limits, [search.log_det(one) for one in found])


def _told(search: Search, x: Array, limits: MotionLimits, reached: list[float]) -> Excitation:
    """The answer for a series; largest values are those between instants, too."""
    robot, series, base = search.regressor.robot, search.series, search.base
    moving, W, efforts, place = search.watched(x, search.peaks(x, limits))
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
