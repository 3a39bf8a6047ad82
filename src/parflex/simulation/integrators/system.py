"""What the time loop knows of a model: where its inputs and outputs stand, what is integrated, what is given."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class System(NamedTuple):
    """A compiled model for the loop: q, qd, given inputs, constants in; q, its rates of change, those of qd, ... out.

    The integrated rates are `free`. Positions are of four kinds: `simple` ones are integrals of a free rate; those of
    `motor_q` follow the given motion; `turning` ones, of a quaternion or of a body free in its own axes, are integrated
    by their rates of change; `closing` ones come from the closures inside the model, from a guess.
    """

    address: int
    positions: int
    rates: int
    free: Array  # among the rates
    simple: Array  # (position, place in free) in rows
    turning: Array  # among the positions
    closing: Array
    other: Array  # turning and closing ones
    motor_q: Array  # positions and rates of the first given inputs, if these are a motion of motors
    motor_v: Array
    quaternions: Array  # first of four positions
    units: Array  # of the free rates
    constants: Array  # behind the inputs
    outputs: int
    operators: int  # of one evaluation
    breaks: Array  # of the given inputs, piecewise polynomials
    coefficients: Array  # (piece, power, input)
    motors: int = 0
    efforts_given: int = 0  # 1: the first given inputs are efforts of the motors, which are outputs else
    power: int = 0  # address of what gives the powers of inputs and losses; 0: work is not needed


class Work(NamedTuple):
    """Memory of a run between two calls of the loop."""

    x: Array  # inputs of the model at each stage
    y: Array  # outputs
    acceleration: Array  # of the free rates at each stage, of the last step
    rate: Array  # rates of change of all positions at each stage
    matrix: Array  # of the simplified Newton iteration, while it is made
    inverse: Array  # of that matrix, transposed
    change: Array  # of one iteration
    before: Array  # state before a step that may fail
    ways: Array  # rates of change of all positions for each free rate, where the matrix was made
    jacobian: Array  # d(acceleration)/d(position), d(acceleration)/d(rate)
    flow: Array  # inputs of the powers: positions, their rates of change, efforts, wrenches
    powers: Array  # of inputs, of losses
    numbers: Array  # see NUMBERS
    counts: Array  # see COUNTS


NUMBERS = ("contraction", "step", "input", "loss", "last input power", "last loss power")
COUNTS = ("evaluations", "steps", "iterations", "jacobians", "rejected", "piece", "best", "wasted", "started", "open")
OK, NOT_CONVERGED, NOT_FINITE, STEP_TOO_SMALL = range(4)


def new_work(system: System, stages: int, unknowns: int) -> Work:
    """Empty memory for a method with so many stages, of which so many are found together."""
    count, given = len(system.free), system.coefficients.shape[2]
    width = system.positions + system.rates + given + len(system.constants)
    x = np.zeros((stages + 2, width))
    x[:, width - len(system.constants) :] = system.constants
    return Work(
        x,
        np.zeros((stages + 2, system.outputs)),
        np.zeros((max(stages, 4), count)),
        np.zeros((max(stages, 2), system.positions)),
        np.zeros((unknowns * count, unknowns * count)),
        np.zeros((unknowns * count, unknowns * count)),
        np.zeros(unknowns * count),
        np.zeros(system.positions + system.rates),
        np.zeros((count, system.positions)),
        np.zeros((2, count, count)),
        np.zeros(2 * system.positions + system.motors + given),
        np.zeros(2),
        np.array([1e-3, 0.0, 0.0, 0.0, 0.0, 0.0]),
        np.zeros(len(COUNTS), dtype=np.int64),
    )
