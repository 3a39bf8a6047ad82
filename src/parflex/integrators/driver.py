"""Run a compiled integrator and watch it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import LoopFunction, compile_together
from parflex.codegen.loop_types import CompiledRecord, kind_of
from parflex.errors import InputError, did_you_mean
from parflex.integrators import tableaux
from parflex.integrators.common import Count, Number, Status, record
from parflex.integrators.events import settle
from parflex.records import Record

Array = np.ndarray
MOST_EVENTS = 20_000  # that are noted in one call of the loop
METHODS = ("gauss4", "gauss6", "rk4", "dopri5", "generalized-alpha")

CITATIONS = {
    "gauss4": "Gauss collocation of order 4, Hairer, Lubich and Wanner, Geometric Numerical Integration, II.1.3",
    "gauss6": "Gauss collocation of order 6, Hairer, Lubich and Wanner, Geometric Numerical Integration, II.1.3",
    "rk4": "the classical Runge-Kutta method of order 4, Kutta 1901",
    "dopri5": "the pair of orders 5 and 4 of Dormand and Prince, J. Comput. Appl. Math. 6, 1980",
    "generalized-alpha": "generalized-alpha, Chung and Hulbert, J. Appl. Mech. 60, 1993",
}

NEAR = 1e-9  # of the time between two rows: a corner as near to a row is at it
MAX_SEGMENT_SHARE = 1 / 4  # between two corners: the longest step, where errors choose them
REASONS = {
    Status.NOT_CONVERGED: "the stages of a step do not converge",
    Status.STEP_TOO_SMALL: "the step becomes too small",
}

# Operators of a call of the loop, a tenth of a second or so: how often the clock is shown and an interrupt is heard.
# They are counted, not timed: steps and times are rounded at the ends of calls, and a run must not depend on a clock.
PORTION = 1e8
STEP_OVERHEAD = 500  # operators of a step beside its programs


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
    extents: Array = np.zeros(0)  # metres that one unit of each position moves the robot by


class Work(CompiledRecord):
    """Memory of a run between two calls of the loop, with the fields of `new_work`."""

    _switches = ("judging",)

    def __init__(self, **fields: Any) -> None:
        self._names = tuple(fields)  # type: ignore[misc]
        super().__init__(**fields)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def new_work(system: System, stages: int, unknowns: int, judging: bool = True) -> Work:
    """Return empty memory for a method with a number of stages, of which `unknowns` are solved together.

    Without `judging` errors of steps are not estimated.
    """
    count, inputs, positions = len(system.free), system.coefficients.shape[2], system.positions
    gates, sticking, rows = len(system.slack), len(system.rubbing), stages + 2
    state, width = positions + system.rates, positions + system.rates + inputs + gates + len(system.constants)
    turning, other, modes = len(system.turning), len(system.other), (unknowns + 1) // 2
    dense, tangent = count if system.dense else 0, 0 if system.factors else count
    shapes: dict[str, Any] = {
        "x": (rows, width),  # inputs of the model at each stage
        "y": (rows, system.outputs),  # outputs
        "acceleration": (max(stages, 4), count),  # of the free rates at each stage, of the last step
        "rate": (max(stages, 2), positions),  # rates of change of all positions at each stage
        "miss": (unknowns, count),  # of the accelerations of each stage
        "change": (unknowns, count),  # of one iteration
        "turned": (unknowns, turning),  # what it changes rates of turning positions by
        "coefficients": (modes, 4),  # of each mode: real and imaginary part of c1, of c2
        "matrix": (2, tangent, tangent),  # of a mode, while its inverse is made: real part, imaginary part
        "inverses": (modes, 2, dense, dense + turning),  # transposed, and behind each column the turning by it
        "stepping": state + gates + 4,  # inputs of the program that factors: positions, rates, gates, coefficients
        "solving": (modes, 2 * count + system.factors),  # of each mode: miss, factors
        "solved": 2 * (count + turning),  # change and turning of a mode
        "before": state + 2,  # state and work before a step that may fail
        "kept": state + 2,  # the same at the start of a step
        "ways": (tangent, positions),  # rates of change of all positions for each free rate, where the matrix was made
        "jacobian": (2, tangent, tangent),  # d(acceleration)/d(position), d(acceleration)/d(rate)
        "flow": 2 * positions + system.motors + inputs + gates,  # inputs of the powers: positions, their rates, efforts
        "powers": 2,  # of inputs, of losses
        "gates": gates,  # of contacts, 1 or 0; what joints that may stick do, see `stiction`
        "gaps": 2 * gates,  # what they follow and the rates of that, at the end of a step
        "gaps_at_start": 2 * gates,  # at its start
        "events": (MOST_EVENTS if gates else 0, 4),  # gate, what it became, time, rate of what it follows or position
        "stuck": (3, sticking),  # of joints that may stick, see `stiction`
        "split": (8, sticking),  # of the same: what friction at rest has to bear, and bears
        "holds": (sticking, sticking),  # what the effort of one takes from the acceleration of another
        "solves": (sticking, sticking + 1),  # the same while it is solved
        "keeping": (sticking + 1, sticking),  # what is kept of their efforts, see `common.hold`, and behind that these
        "probe_x": width,  # inputs and outputs of a call that changes nothing
        "probe_y": system.outputs,
        "course": (2 * stages, count + positions + 2),  # accelerations, rates, powers: stages of the last step, of this
        "points": (2, 2 * stages),  # when these are, in steps; weights of them
        "reach": (2 * stages, count + other),  # of two steps: free positions at the stages, from the state, then others
        "weights": (3 * stages + 2, 2 * stages),  # of these at the next stages; when they were; for which lengths
        "past": (stages, count),  # accelerations at the stages of the last step
        "starts": (2, stages, count),  # of the accelerations of this one: by positions, by those
        "ends": count,  # where what is free is at the end of a step, seen from its start
        "ranges": (2, positions),  # of all positions: the lowest and the highest so far
        "numbers": len(Number),  # places in `common`
    }
    work = Work(
        **{name: np.zeros(shape) for name, shape in shapes.items()},
        counts=np.zeros(len(Count), dtype=np.int64),
        judging=int(judging),
    )
    work.x[:, width - len(system.constants) :] = system.constants
    work.numbers[Number.CONTRACTION] = 1e-3
    return work


@dataclass(frozen=True)
class Method:
    """An integrator: the compiled loop, its coefficients, and the sizes of its memory."""

    name: str
    steps: Any
    tableau: Any
    stages: int
    unknowns: int = 1
    numbers: tuple[str, ...] = ()  # of an implicit one: of which its coefficients of a step are


def method_named(name: str, radius: float = 0.8) -> Method:
    """Return the integrator of a name; `radius` is the spectral radius at infinity of generalized-alpha."""
    if name not in METHODS:
        raise InputError(f"there is no method '{name}'", key="method", value=name, hint=did_you_mean(name, METHODS))
    if not 0 <= radius <= 1:
        raise InputError(
            "the spectral radius must lie between 0 and 1", key="radius", value=radius, hint="give e.g. 0.8"
        )
    if name.startswith("gauss"):
        from parflex.integrators.gauss import gauss_steps

        stages = int(name[-1]) // 2
        numbers = ("pairs",) if stages % 2 == 0 else ("pairs", "real")
        return Method(name, gauss_steps, tableaux.gauss(stages), stages, stages, numbers)
    if name == "generalized-alpha":
        from parflex.integrators.alpha import alpha_steps

        return Method(name, alpha_steps, tableaux.generalized_alpha(radius), 1, numbers=("real",))
    from parflex.integrators.explicit import explicit_steps

    tableau = tableaux.rk4() if name == "rk4" else tableaux.dopri5()
    return Method(name, explicit_steps, tableau, len(tableau.c))


def compile_loop(system: System, method: Method, judging: bool) -> None:
    """Compile the loop for systems like this one, unless it is."""
    _compile(system, method, new_work(system, method.stages, method.unknowns, judging))


def _compile(system: System, method: Method, work: Work) -> None:
    """Compile the loop and what begins a run."""
    rows = np.zeros((0, 1))
    row = rows[:, 0]
    state: tuple[Any, ...] = (system, work, 0.0, row, row)
    loops: list[tuple[Any, tuple[Any, ...]]] = [(record, (*state, row, row))]
    if isinstance(method.steps, LoopFunction):  # steps under a controller call their loop from Python
        loops.append((method.steps, (system, work, method.tableau, 0.0, 0.0, 1, row, row, 0.0, rows, rows)))
    loops += [(settle, state)] if len(system.rubbing) else []
    compile_together(*((loop, tuple(kind_of(value) for value in values)) for loop, values in loops))


@dataclass(eq=False, repr=False)
class IntegratedRows(Record):
    """Rows of inputs and outputs of the model in time, and how the run went."""

    t: Array
    x: Array
    y: Array
    work: Array  # of inputs and of losses since the start
    seconds: float  # in the loop
    counts: dict[str, int]
    status: str = "ok"  # or "interrupted", "diverged"
    stopped: float | None = None  # when it diverged
    coordinate: str = ""
    why: str = ""
    events: Array = field(default_factory=lambda: np.zeros((0, 4)))  # of gates: which, what it became, time, rate
    judged: tuple[float, ...] | None = None  # largest error of a step (m), shortest and longest step (s), sum (m)


@dataclass(frozen=True)
class Grid:
    """Steps of length `step`, `every` of them between two rows of output, and the number of the last row.

    With an `aim` (m) errors of steps are estimated; with a `begin` they choose the steps. With a `share` they may be
    this share of the motion so far, of `farthest` at most, if that is more.
    """

    step: float
    every: int
    rows: int
    aim: float = 0.0  # m: what positions may err by in a step
    begin: float = 0.0  # s: the first step; `step` is then the time between two rows
    most: float = np.inf  # s: the longest step
    share: float = 0.0
    farthest: float = np.inf  # m

    @property
    def out_step(self) -> float:
        """Return the time between two rows."""
        return self.step * self.every

    def control(self, work: Work) -> None:
        """Write into the memory of a run how its steps are chosen."""
        for place, value in ((Number.AIM, self.aim), (Number.STEP, self.begin), (Number.MOST, self.most)):
            work.numbers[place] = value
        work.numbers[Number.SHARE], work.numbers[Number.FARTHEST] = self.share, self.farthest


def grid_of(time: float, step: float, out_step: float) -> Grid:
    """Return steps of at most a length, a whole number of them in each interval of output."""
    every = max(1, math.ceil(out_step / step * (1 - 1e-12)))
    rows = max(1, math.ceil(time / out_step * (1 - 1e-12)))
    return Grid(out_step / every, every, rows)


def run_loop(
    system: System,
    method: Method,
    grid: Grid,
    q: Array,
    qd: Array,
    names: list[str],
    tolerance: float,
    control: Callable[[int, Array, Array], None] | None = None,
    progress: Callable[[float], None] | None = None,
    corners: Sequence[Any] = (),
    first: int = 0,
    initial_work: Array | None = None,
    watch: Callable[[Array], tuple[int | None, int]] | None = None,
    ranges: Array | None = None,
) -> IntegratedRows:
    """Integrate from a state, that of the row `first`, with the `initial_work` of inputs and losses until then.

    `control` is called before each interval of output and may change the inputs. Steps end at the `corners`, behind
    which other inputs act, and rates may jump. `watch` gets new rows, with the last known one before them; it returns
    the row at which the run is left (status "left"), if any, and the number of rows until its next call.
    """
    q, qd = np.array(q, dtype=float), np.array(qd, dtype=float)
    loop = _Loop(system, method, grid, q, qd, tolerance, list(corners), first)
    work, x, y = loop.work, loop.x, loop.y
    if initial_work is not None:
        work.numbers[Number.INPUT], work.numbers[Number.LOSS] = initial_work
    if ranges is not None:
        work.ranges[:] = ranges
    _compile(system, method, work)
    loop.record_start()
    interrupted, stop, events = False, None, [np.zeros((0, 4))]
    try:
        while loop.done < loop.rows and loop.status == Status.OK and stop is None:
            if control is not None:
                control(first + loop.done, x[loop.done], y[loop.done])
                loop.portion, work.numbers[Number.LAST] = 1, 0.0  # efforts jump: the last step says nothing
                if not first + loop.done:  # the first row has the efforts that act from then on
                    loop.record_start()
            before = loop.done
            loop.advance_to_next()
            _raise_step_error(loop.status, work.numbers, grid, loop.now)
            events.append(work.events[: work.counts[Count.EVENTS]].copy())
            work.counts[Count.EVENTS] = 0
            if watch is not None and loop.done > before:
                stop, ahead = watch(y[before : loop.done + 1])
                loop.done = loop.done if stop is None else before + stop
                loop.portion = min(loop.portion, ahead)
            if progress is not None:
                progress(loop.row_time)
    except KeyboardInterrupt:
        interrupted = True
    rows = slice(0, loop.done + 1)
    t = np.arange(first, first + loop.done + 1) * grid.out_step
    words = ("evaluations", "steps", "iterations", "jacobians", "rejected")  # the first of the counts
    counts = dict(zip(words, work.counts[: len(words)].tolist(), strict=True))
    counts["alike_rests"] = int(work.counts[Count.ALIKE])
    track = IntegratedRows(t, x[rows], y[rows, : system.outputs], y[rows, system.outputs :], loop.seconds, counts)
    if grid.aim:
        track.judged = tuple(
            float(work.numbers[k]) for k in (Number.LARGEST_ERROR, Number.SHORTEST, Number.LONGEST, Number.ERROR_SUM)
        )
    all_events = np.concatenate(events)
    track.events = all_events[all_events[:, 2] <= t[-1] + loop.near]
    if interrupted:
        track.status = "interrupted"
    elif stop is not None or loop.status != Status.OK:
        track.status, track.stopped = "diverged" if stop is None else "left", float(loop.row_time)
        if loop.status != Status.OK:
            why = REASONS.get(loop.status, "values are no longer finite")
            track.why = "the loops cannot be closed" if work.counts[Count.OPEN] else why
        size = np.abs(qd[system.free]) / system.units
        if len(size):
            track.coordinate = names[int(system.free[int(np.argmax(np.where(np.isfinite(size), size, np.inf)))])]
    return track


class _Loop:
    """Where a run is: rows done behind the first, the state and its time, and the corners ahead."""

    def __init__(
        self, system: System, method: Method, grid: Grid, q: Array, qd: Array, tolerance: float, corners: list[Any],
        first: int,
    ) -> None:  # fmt: skip
        self.system, self.method, self.grid, self.tolerance = system, method, grid, tolerance
        self.q, self.qd, self.corners, self.first, self.rows = q, qd, corners, first, grid.rows - first
        self.work = new_work(system, method.stages, method.unknowns, grid.aim > 0)
        self.work.ranges[:] = q
        width = self.work.x.shape[1] - len(system.constants)
        self.x, self.y = np.empty((self.rows + 1, width)), np.empty((self.rows + 1, system.outputs + 2))
        self.near = NEAR * grid.out_step
        self.done, self.portion, self.seconds, self.status = 0, 1, 0.0, Status.OK
        self.now, self.known = self.row_time, self.y[0]  # what is recorded of the state
        grid.control(self.work)
        self._limit()

    @property
    def row_time(self) -> float:
        """Return the time of the last row."""
        return (self.first + self.done) * self.grid.out_step

    def record_start(self) -> None:
        """Settle joints in stiction and record the first row."""
        if len(self.system.rubbing):
            settle(self.system, self.work, self.now, self.q, self.qd)
        finite = record(self.system, self.work, self.now, self.q, self.qd, self.x[0], self.y[0])
        self.status = Status.OK if finite else Status.NOT_FINITE

    def advance_to_next(self) -> None:
        """Advance to the next corner if it comes before the next row, else by some rows at most to a corner."""
        grid, following = self.grid, (self.first + self.done + 1) * self.grid.out_step
        while self.corners and self.corners[0].time <= self.now + self.near:
            self._cross()
        ahead = self.corners[0].time if self.corners else np.inf
        if ahead < following - self.near:
            self._part(ahead)  # recorded in the next row, until that is reached
            self.known = self.y[self.done + 1]
            return
        if abs(self.now - self.row_time) > self.near:  # from a corner between two rows
            filled = self._part(following)
        else:
            limit = int((ahead + self.near) / grid.out_step) - self.first if self.corners else self.rows
            filled = self._rows(min(self.rows, self.done + self.portion, limit))
        self.done += filled
        self.now, self.known = self.row_time, self.y[self.done]

    def _steps(self, t: float, step: float, every: int, last: int) -> int:
        """Fill rows of output from a time on until the last one; gives how many are filled."""
        start, rows = perf_counter(), slice(self.done + 1, last + 1)
        filled, self.status = self.method.steps(
            self.system, self.work, self.method.tableau, t, step, every, self.q, self.qd, self.tolerance, self.x[rows],
            self.y[rows],
        )  # fmt: skip
        self.seconds += perf_counter() - start
        return filled

    def _rows(self, last: int) -> int:
        """Fill whole intervals between rows."""
        before = self._operators
        filled = self._steps(self.row_time, self.grid.step, self.grid.every, last)
        longer = int((last - self.done) * PORTION / max(self._operators - before, 1))
        self.portion = max(1, min(4 * self.portion, longer, self.rows))  # corners may keep calls short for long
        return filled

    @property
    def _operators(self) -> int:
        """Return the approximate number of operators since the start."""
        system, (evaluations, steps, iterations, jacobians, rejected) = self.system, self.work.counts[:5].tolist()
        solved = iterations * system.solving + jacobians * system.factoring
        return int(evaluations * system.operators + solved + (steps + rejected) * STEP_OVERHEAD)

    def _part(self, end: float) -> int:
        """Integrate a part of an interval, in steps of its own."""
        count = 1 if self.grid.begin else max(1, math.ceil((end - self.now) / self.grid.step * (1 - 1e-9)))
        self.work.counts[Count.STARTED] = 0  # the matrix is that of another step
        filled = self._steps(self.now, (end - self.now) / count, count, self.done + 1)
        self.work.counts[Count.STARTED] = 0
        self.now = end
        return filled

    def _cross(self) -> None:
        """Continue behind a corner, from the state recorded at it."""
        corner, nq = self.corners.pop(0), self.system.positions
        if corner.cross is not None:
            rates, work = corner.cross(self.known[:nq].copy(), self.known[nq : 2 * nq].copy())
            self.qd[:] = rates
            self.work.numbers[Number.INPUT] += work
        self.system = corner.behind
        self.work.counts[Count.STARTED] = self.work.counts[Count.PIECE] = 0
        self._limit()

    def _limit(self) -> None:
        """Limit steps under error control to a share of the time to the next corner: inputs may begin after a rest."""
        if self.grid.begin:
            ahead = self.corners[0].time if self.corners else self.grid.rows * self.grid.out_step
            most = min(self.grid.most, max(MAX_SEGMENT_SHARE * (ahead - self.now), self.near))
            numbers = self.work.numbers
            numbers[Number.MOST], numbers[Number.STEP] = most, min(numbers[Number.STEP], most)


def _raise_step_error(status: int, numbers: Array, grid: Grid, t: float) -> None:
    """Raise if the error of steps stays above the tolerance."""
    found = numbers[Number.FIRST_ERROR]
    if status == Status.STEP_TOO_LONG:
        raise InputError(
            f"the step {grid.step:g} s is too long for the tolerance {grid.aim:g} m: about t = {t:.4g} s one errs by "
            f"{found:.2g} m",
            key="step",
            value=grid.step,
            hint=f"give at most {rounded_down(numbers[Number.STEP])}, or no step: it is then chosen",
        )
    if status == Status.ROUNDING_FORBIDS:
        raise InputError(
            f"rounding forbids the tolerance {grid.aim:g} m: about t = {t:.4g} s short steps err by {found:.2g} m too",
            key="tolerance",
            value=grid.aim,
            hint=f"give at least {3 * found:.1g}",
        )


def rounded_down(value: float) -> str:
    """Return a value rounded down to one digit."""
    digit = 10.0 ** np.floor(np.log10(max(value, 1e-300)))
    return f"{np.floor(value / digit) * digit:.1g}"
