"""How efforts under a controller depend on parameters: linear equations along a simulated motion, for all at once.

A parameter acts as an effort does, by its column w of the regressor: M a + D v + K x + w = u, where x, v and a are what
the motors' motion changes by, M, D and K how efforts depend on accelerations, rates and positions, and u is the answer
of the controller, held for a sample. Another start has no w, but x or v at first. One pass over the samples has all
parameters and starts; simulations need one for each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.errors import ParflexError
from parflex.identification.regressors import ClosedMotion, Regressor
from parflex.identification.simulated.replay import Replay, Replayed
from parflex.records import Record

Array = np.ndarray
KNOTS = 1e-2  # s, about: between them M, D and K are straight lines, as positions of robots nearly are
BESIDE = 1e-6  # rad, or typical lengths, and per second: of differences, which leave as much of M, D and K out


@dataclass(frozen=True, eq=False, repr=False)
class _Along(Record):
    """M, D and K at some samples of a record."""

    at: Array
    M: Array
    D: Array
    K: Array


def linear_response(
    regressor: Regressor, replay: Replay, found: Replayed, theta: Array, columns: list[int]
) -> Array | None:
    """Efforts (instants x motors x columns) per unit of some unknowns; None where the controller is not linear.

    Columns of the start come last: of positions of all motors, and of their rates.
    """
    feedback = replay.feedback(found.effort)
    if feedback is None or regressor.spare:
        return None
    try:
        along = _along(regressor, replay, found, theta)
    except ParflexError:  # beside a singular pose
        return None
    W = regressor.of(replay.moving(found), columns)[0]
    return _answers(along, W, replay, *feedback)


def _along(regressor: Regressor, replay: Replay, found: Replayed, theta: Array) -> _Along:
    robot, step = regressor.robot, replay.record.step
    count, motors = len(found.q), list(robot.actuated)
    at = np.unique(np.append(np.arange(0, count, max(1, round(KNOTS / step))), count - 1))
    moving = replay.moving(found)
    position, rate = found.q[at][:, regressor.motor_q], found.rate[at]
    acceleration = np.gradient(found.rate, step, axis=0)[at]
    here = ClosedMotion(moving.q[at], moving.qd[at], moving.qdd[at], moving.J[at])

    # where a joint turns back Coulomb friction changes by a step, which is not a slope
    sliding = np.where([one.symbol in ("FS", "FS_back") for one in regressor.unknowns], 0.0, theta)

    def efforts(motion: ClosedMotion) -> Array:
        W, known = regressor.of(motion)
        return W @ sliding + known

    now = efforts(here)
    parts = np.zeros((3, len(at), len(motors), len(motors)))
    for k, motor in enumerate(motors):
        beside = BESIDE * float(robot.tree.rate_units[motor])
        way = beside * (np.arange(len(motors)) == k)
        faster = ClosedMotion(here.q, here.qd, here.qdd + here.J[:, :, k], here.J)
        parts[0, :, :, k] = efforts(faster) - now
        parts[1, :, :, k] = (efforts(regressor.moved(here.q, rate + way, acceleration)) - now) / beside
        there = regressor.moving(position + way, rate, acceleration, here.q[0])
        parts[2, :, :, k] = (efforts(there) - now) / beside
    return _Along(at, *parts)


def _answers(along: _Along, W: Array, replay: Replay, stiffness: Array, damping: Array) -> Array:
    """Efforts of the controller at the samples of the record, by a midpoint rule over each of its own samples."""
    h, every, delay = replay.sample, replay.every, replay.settings.delay
    by_differences = replay.settings.rates == "differences"
    inverse = np.linalg.inv(along.M)
    stiff, damp = stiffness[:, None], damping[:, None]
    motors = W.shape[1]
    W = np.concatenate([W, np.zeros((len(W), motors, 2 * motors))], axis=2)
    x, v = np.zeros(W.shape[1:]), np.zeros(W.shape[1:])
    x[:, -2 * motors : -motors] = v[:, -motors:] = np.eye(motors)
    before, answers = x, np.zeros_like(W)
    waiting = [np.zeros_like(x) for _ in range(delay)]
    for k in range((len(W) - 1) * every + 1):
        sensed = (x - before) / h if by_differences and k else v
        waiting.append(-(stiff * x + damp * sensed))
        u, before = waiting.pop(0), x
        if k % every == 0:
            answers[k // every] = u
        middle = min((k + 0.5) / every, len(W) - 1)
        first = int(middle)
        w = W[first] + (middle - first) * (W[min(first + 1, len(W) - 1)] - W[first])
        knot = min(int(np.searchsorted(along.at, middle, "right")) - 1, len(along.at) - 2)
        part = (middle - along.at[knot]) / (along.at[knot + 1] - along.at[knot])
        Mi, D, K = (A[knot] + part * (A[knot + 1] - A[knot]) for A in (inverse, along.D, along.K))
        acted = u - w
        half = v + h / 2 * (Mi @ (acted - D @ v - K @ x))
        v = v + h * (Mi @ (acted - D @ half - K @ (x + h / 2 * v)))
        x = x + h * half
    return answers
