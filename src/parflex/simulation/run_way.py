"""How far a run moves the robot, by its start and its inputs: the scale of significant vibrations.

A linear problem with a load ten thousand times smaller has vibrations ten thousand times smaller, and the same steps. A
robot that moves far, or by an unknown distance, takes its characteristic length. A robot whose file has no length takes
that of the run, so that the steps are the same in other units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.records import Record
from parflex.simulation.problem import Problem
from parflex.simulation.slow_motion import SlowMotion
from parflex.trajectories.polynomials import Polynomials
from parflex.tree.tree import Tree

Array = np.ndarray
INSTANTS = 401  # of the inputs, beside their breaks


@dataclass(frozen=True, eq=False, repr=False)
class SlidingModes(Record):
    """Modes that vibrate: circular frequencies, speeds that they get, accelerations by inputs, and what slides (m)."""

    omega: Array
    speeds: Array
    gains: Array  # (mode, channel)
    sizes: Array


def instants_of(given: Polynomials, time: float, count: int = INSTANTS) -> Array:
    """Times of a run at which inputs are evaluated."""
    inside = given.breaks[(given.breaks > 0) & (given.breaks < time)]
    return np.unique(np.concatenate([np.linspace(0, time, count), inside]))


def carried(push: Polynomials, gains: Array, sizes: Array, time: float) -> float:
    """How far (m) inputs carry what does not vibrate, of `gains` (coordinate, channel), from what acts at 0 on."""
    if not gains.size:
        return 0.0
    t = instants_of(push, time)
    acceleration = push.at(t)
    acceleration = acceleration - acceleration[0]
    for _ in range(2):
        parts = (acceleration[1:] + acceleration[:-1]) / 2 * np.diff(t)[:, None]
        acceleration = np.concatenate([np.zeros((1, parts.shape[1])), np.cumsum(parts, axis=0)])
    return float((np.abs(gains @ acceleration.T) * sizes[:, None]).max(initial=0.0))


def motor_way(problem: Problem, given: Polynomials, time: float, units: Array) -> float:
    """How far a prescribed motion moves motors, in units of their rates."""
    if not problem.driven:
        return 0.0
    motors = list(problem.robot.actuated)
    moved = np.ptp(given.at(instants_of(given, time))[:, : len(motors)], axis=0)
    return float((moved / units[motors]).max(initial=0.0))


def kinds_of_rates(tree: Tree) -> Array:
    """Units of the positions of all rates: m, rad, or 1 of a mode."""
    return np.array([unit for link in tree.links for unit in (*link.joint.rate_units, *link.body.units)])


def slide_span(
    problem: Problem,
    given: Polynomials,
    push: Polynomials,
    modes: SlidingModes,
    still: SlowMotion,
    slides: Array,
    time: float,
) -> float:
    """From where to where (m) slides go in a run, as far as its start and its inputs tell.

    `modes` vibrate, `still` is what does not; `slides` are 1 for coordinates that slide, else 0.
    """
    slow = 1 / np.maximum(modes.omega, 1e-9)
    t = instants_of(push, time)
    acting = np.abs(modes.gains @ (push.at(t) - push.at(t[:1])).T).max(axis=1, initial=0.0)
    ways = [
        modes.speeds * slow * modes.sizes,
        acting * slow**2 * modes.sizes,  # what inputs deflect that are slow
        (still.ways + still.kept_speeds * time) * slides,
        [carried(push, still.coordinate_gains, slides, time)],
    ]
    span = 2 * max(float(np.max(way, initial=0.0)) for way in ways)
    along = np.where(kinds_of_rates(problem.robot.tree) == "m", 1.0, np.inf)
    return max(span, motor_way(problem, given, time, along))
