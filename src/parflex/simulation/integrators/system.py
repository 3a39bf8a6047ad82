"""What the time loop knows of a model: where its inputs and outputs stand, what is integrated, what is given."""

from __future__ import annotations

import numpy as np

from parflex.codegen.loop_types import CompiledRecord

Array = np.ndarray


class System(CompiledRecord):
    """A compiled model for the loop: q, qd, given inputs, constants in; q, its rates of change, those of qd, ... out.

    The integrated rates are `free`. Positions are of four kinds: `simple` ones are integrals of a free rate; those of
    `motor_q` follow the given motion; `turning` ones, of a quaternion or of a body free in its own axes, are integrated
    by their rates of change; `closing` ones come from the closures inside the model, from a guess.
    """

    _switches = ("gaps", "dense")

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
    gaps: int = 0  # address of what the gates of contacts follow; 0: there are no gates; 1: of joints that stick alone
    gate_x: int = 0  # the first gate among the inputs of the model,
    gate_flow: int = 0  # and among those of the powers
    slack: Array = np.zeros(0)  # of each gate: what it follows may be beyond zero by so much, which is rounding
    rubbing: Array = np.zeros(
        0, dtype=np.int64
    )  # positions of joints that may stick: theirs are the last gates, two each
    friction: Array = np.zeros((0, 2))  # with efforts while they slide, and at most while they stick
    factor: int = 0  # addresses of the programs of a step for complex coefficients, and for real ones; 0: none
    solve: int = 0
    real_factor: int = 0
    real_solve: int = 0
    factors: int = 0  # most numbers that are handed from one to the other
    factoring: int = 0  # operators of a call
    solving: int = 0
    dense: int = 1  # 1: inverses are made as a whole, 0: each iteration calls the programs
    pair: int = 0  # address of the model for two rows of the work at once; 0: it is called for one after the other
    metres: Array = np.zeros(0)  # that one unit of each free rate's position moves the robot by: of errors of steps
    far: Array = np.zeros(0)  # of each position: closures that move it farther are closed once more


class Work(CompiledRecord):
    """Memory of a run between two calls of the loop."""

    _switches = ("judging",)

    x: Array  # inputs of the model at each stage
    y: Array  # outputs
    acceleration: Array  # of the free rates at each stage, of the last step
    rate: Array  # rates of change of all positions at each stage
    miss: Array  # of the accelerations of each stage
    change: Array  # of one iteration
    turned: Array  # what it changes rates of turning positions by
    coefficients: Array  # of each mode: real and imaginary part of c1, of c2
    matrix: Array  # of a mode, while its inverse is made: real part, imaginary part
    inverses: Array  # of modes, transposed, and behind each column the turning by it
    stepping: Array  # inputs of the program that factors: positions, rates, gates, coefficients
    solving: Array  # of each mode: miss, factors
    solved: Array  # change and turning of a mode
    before: Array  # state before a step that may fail
    ways: Array  # rates of change of all positions for each free rate, where the matrix was made
    jacobian: Array  # d(acceleration)/d(position), d(acceleration)/d(rate)
    flow: Array  # inputs of the powers: positions, their rates of change, efforts, wrenches
    powers: Array  # of inputs, of losses
    gates: Array  # of contacts, 1 or 0; what joints that may stick do, see `sticking`
    gaps: Array  # what they follow and the rates of that, at the end of a step
    first_gaps: Array  # at its start
    kept: Array  # state and work at its start
    crossing: Array  # the search for the end of a step; places in `crossings`
    events: Array  # (gate, what it became, time, rate of what it follows, or position of a joint) in rows
    stuck: Array  # of joints that may stick, see `sticking`
    split: Array  # of the same: what friction at rest has to bear, and bears, see `resting_joints`
    holds: Array  # what the effort of one takes from the acceleration of another
    solves: Array  # the same while it is solved
    keeping: Array  # what is kept of their efforts, see `loop.hold`, and behind that these
    aside_x: Array  # inputs and outputs of a call that changes nothing
    aside_y: Array
    course: Array  # accelerations, rates of change and powers at the stages of the last step, then of this one
    points: Array  # when these are, in steps; weights of them
    reach: Array  # of the last two steps: where stages were, of free rates seen from the state, then of other positions
    weights: Array  # of these at the next stages, see `loop_newton`; when they were; for which lengths
    past: Array  # accelerations at the stages of the last step, and rates of other positions
    starts: Array  # of the accelerations of this one: by positions, by those
    ends: Array  # where what is free is at the end of a step, seen from its start
    numbers: Array  # see NUMBERS
    counts: Array  # see COUNTS
    judging: int = 1  # 0: errors of steps are not estimated


MOST_EVENTS = 20_000  # that are noted in one call of the loop
NUMBERS = (
    "contraction",
    "step",  # that is asked for where errors choose steps; 0: they are alike
    "input",
    "loss",
    "last input power",
    "last loss power",
    "aim",  # m: the error that a step may have; 0: it is not estimated
    "last length",  # of the step before; 0: none is known; negative: the start of this one is
    "matrix length",  # of the step for which the matrix was made
    "last error",  # m
    "largest error",
    "shortest",  # steps that were made
    "longest",
    "first error",  # of steps that were refused one after the other
    "most",  # s: the longest step that may be chosen
    "latest",  # s: of the two steps whose stages are known
    "before",
)
COUNTS = (
    "evaluations",
    "steps",
    "iterations",
    "jacobians",
    "rejected",
    "piece",
    "best",
    "wasted",
    "started",
    "open",
    "events",
    "refusals",
    "carried",  # whether stages start with the accelerations of the last step, 1, or where they were
    "unseen",  # steps since the contraction of iterations was seen
    "alike",  # times that rates of joints at rest were neither one nor told apart
)
OK, NOT_CONVERGED, NOT_FINITE, STEP_TOO_SMALL, _, STEP_TOO_LONG, ROUNDING_FORBIDS = range(7)  # 4: see loop_sampled


def new_work(system: System, stages: int, unknowns: int, judging: bool = True) -> Work:
    """Empty memory for a method with so many stages, of which so many are found together."""
    count, given = len(system.free), system.coefficients.shape[2]
    gates = len(system.slack)
    width = system.positions + system.rates + given + gates + len(system.constants)
    x = np.zeros((stages + 2, width))
    x[:, width - len(system.constants) :] = system.constants
    turns, modes = len(system.turning), (unknowns + 1) // 2
    whole = count if system.dense else 0
    tangent = 0 if system.factors else count
    return Work(
        x,
        np.zeros((stages + 2, system.outputs)),
        np.zeros((max(stages, 4), count)),
        np.zeros((max(stages, 2), system.positions)),
        np.zeros((unknowns, count)),
        np.zeros((unknowns, count)),
        np.zeros((unknowns, turns)),
        np.zeros((modes, 4)),
        np.zeros((2, tangent, tangent)),
        np.zeros((modes, 2, whole, whole + turns)),
        np.zeros(system.positions + system.rates + gates + 4),
        np.zeros((modes, 2 * count + system.factors)),
        np.zeros(2 * (count + turns)),
        np.zeros(system.positions + system.rates),
        np.zeros((tangent, system.positions)),
        np.zeros((2, tangent, tangent)),
        np.zeros(2 * system.positions + system.motors + given + gates),
        np.zeros(2),
        np.zeros(gates),
        np.zeros(2 * gates),
        np.zeros(2 * gates),
        np.zeros(system.positions + system.rates + 2),
        np.zeros(9),
        np.zeros((MOST_EVENTS if gates else 0, 4)),
        np.zeros((4, len(system.rubbing))),
        np.zeros((8, len(system.rubbing))),
        np.zeros((len(system.rubbing), len(system.rubbing))),
        np.zeros((len(system.rubbing), len(system.rubbing) + 1)),
        np.zeros((len(system.rubbing) + 1, len(system.rubbing))),
        np.zeros(width),
        np.zeros(system.outputs),
        np.zeros((2 * stages, count + system.positions + 2)),
        np.zeros((2, 2 * stages)),
        np.zeros((2 * stages, count + len(system.other))),
        np.zeros((3 * stages + 2, 2 * stages)),
        np.zeros((stages, count + len(system.other))),
        np.zeros((2, stages, count)),
        np.zeros(count),
        np.array([1e-3, *[0.0] * (len(NUMBERS) - 1)]),
        np.zeros(len(COUNTS), dtype=np.int64),
        int(judging),
    )
