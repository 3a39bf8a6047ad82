"""The fixed step of a run for which none is given: from the frequencies that are excited and from the speeds.

The model is linearised at the start. What jumps (the start itself, accelerations and velocities of the motion, efforts,
wrenches) excites its modes, as do smooth inputs that are fast enough; those that then vibrate visibly are resolved, so
that their phase holds over the run. Speeds that the robot has or gets count as frequencies too: in one turn everything
changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from parflex.records import Record
from parflex.simulation.inputs.polynomials import Polynomials
from parflex.simulation.integrators.integrate import Grid, Method, grid_of, rounded_down
from parflex.simulation.integrators.system import System, new_work
from parflex.simulation.problem import Problem
from parflex.simulation.step_lengths.driven_modes import driven_amplitudes
from parflex.simulation.step_lengths.instants import pushing
from parflex.simulation.step_lengths.lost_phase import Vibrations, decays, drift, followed_step
from parflex.simulation.step_lengths.run_way import (
    SlidingModes,
    carried,
    instants_of,
    kinds_of_rates,
    motor_way,
    slide_span,
)
from parflex.simulation.step_lengths.step_choice import FLOORED, FORCES_BESIDE, LABOUR, LEAST, UNSEEN

Array = np.ndarray
PER_PERIOD = {"gauss4": 20, "gauss6": 12, "rk4": 40, "generalized-alpha": 60}  # steps
STABLE = {"rk4": 2.0}  # of an explicit method: steps times the highest frequency of all
# amplitudes that count: of the way of the run, of a typical length at most, and of the largest one
VISIBLE, BESIDE = 1e-6, 1e-2
# of the largest acceleration, and of the same way over the time squared: so much is said if steps miss it
FELT, LEAST_FELT = 1e-3, 1e-3
WAY = 1e-6  # of differences, in units of the rates
FAST = 1e3  # rates of differences, in their units: friction that is the same at any speed damps nothing beside it
MOST_SHORTER = 100  # times: no shorter steps are advised for vibrations of forces
ALL_HOLD = 1e30  # times what joints bear at rest
MOST_STEPS = 10_000_000  # of a run whose steps are not given, half an hour or so
MOST_COORDINATES = 600  # whose frequencies are asked for: they take the third power of it, seconds with so many


@dataclass(frozen=True, eq=False, repr=False)
class Excited(Record):
    """Circular frequencies (rad/s): the highest one that is excited visibly, that of the fastest turn, the highest."""

    vibration: float
    turning: float
    highest: float
    slides: bool = False  # whether the fastest turn is a slide, whose typical lengths count as radians
    felt: float = 0.0  # the highest one that accelerations, and forces with them, have visibly
    free: tuple[Vibrations, ...] = ()  # by the start and jumps, by inputs in all
    length: float = 1.0  # m: that a slide counts as a radian
    unknown: bool = False  # whether modes cannot be told apart: nothing is known of what vibrates


def default_step(
    problem: Problem,
    given: Polynomials,
    method: Method,
    grid: Grid,
    q: Array,
    qd: Array,
    steered: bool = False,
    deflections: bool = False,
) -> tuple[Grid, str]:
    """Steps for a run from a state, and why they are so long.

    The way of a robot that is `steered` by a controller is not known. Where `deflections` are asked for, vibrations are
    judged beside each other, not beside how far the robot goes.
    """
    grid = replace(grid, labour=LABOUR)
    system = problem.system(given)
    if not len(system.free):
        return grid, f"{grid.step:g} s, that of all runs"
    if len(system.free) > MOST_COORDINATES:
        return grid, f"{grid.step:g} s, that of all runs{UNSEEN} {len(system.free)} coordinates"
    time = grid.rows * grid.out_step
    found = excited(problem, system, given, q, qd, time, steered, deflections)
    count = PER_PERIOD[method.name]
    ways = [
        *(_follows(one, grid, method, count) for one in found.free),
        (np.pi / count / max(found.turning, 1e-9), _turns(found, 2 * count)),
        (STABLE.get(method.name, np.inf) / max(found.highest, 1e-9), f"stable up to {_hertz(found.highest)}"),
    ]
    step, why = min(ways, key=lambda way: float(f"{way[0]:.6g}"))  # of equal ones the first: vibrations
    if step < grid.step:
        grid = replace(grid_of(time, max(step, time / MOST_STEPS), grid.out_step), labour=LABOUR)
        said = f"{grid.step:.3g} s: {why}"
        if step < time / MOST_STEPS:
            said = f"{grid.step:.3g} s{FLOORED} {MOST_STEPS} steps, and it asks for {step:.2g} s ({why})"
    else:
        said = f"{grid.step:g} s, that of all runs: no frequency that is excited asks for less"
    if found.unknown:
        return grid, f"{said}{UNSEEN} {len(system.free)} coordinates"
    lost = drift(found.free, time, method.tableau, grid.step)
    return grid, said + lost + _not_followed(found.felt, grid.step, method)


def told_of_given(
    problem: Problem,
    given: Polynomials,
    method: Method,
    grid: Grid,
    q: Array,
    qd: Array,
    steered: bool = False,
    deflections: bool = False,
) -> str:
    """What fixed steps that were given lose of phases and amplitudes over a run from a state, and of forces."""
    system = problem.system(given)
    if grid.begin or method.name not in PER_PERIOD or not 0 < len(system.free) <= MOST_COORDINATES:
        return ""
    time = grid.rows * grid.out_step
    found = excited(problem, system, given, q, qd, time, steered, deflections)
    lost = drift(found.free, time, method.tableau, grid.step)
    return lost + _not_followed(found.felt, grid.step, method)


def _follows(found: Vibrations, grid: Grid, method: Method, count: int) -> tuple[float, str]:
    """The step that follows vibrations, and why: those by inputs have half of `count` in a period at least."""
    least, time = (count / 2 if found.by_inputs else count), grid.rows * grid.out_step
    step, omega = followed_step(found, time, method.tableau, least, grid.step)
    each = f"{2 * np.pi / max(step * omega, 1e-9):.0f} in a period of"
    if found.by_inputs:
        return step, f"{each} {_hertz(omega)}, which the inputs excite"
    drifts = step * omega * count < 2 * np.pi * (1 - 1e-6)
    return step, f"{each} the excited {_hertz(omega)}" + (", whose phase is to hold over the run" if drifts else "")


def _not_followed(felt: float, step: float, method: Method) -> str:
    """What steps leave out that are short enough for positions: vibrations of forces."""
    each, count = 2 * np.pi / max(felt, 1e-9) / step, PER_PERIOD[method.name]
    if each >= count:
        return ""
    cure = f"for these give a step of {rounded_down(2 * np.pi / felt / count)}"
    if each * MOST_SHORTER < count:
        takes = "a smaller radius" if method.name == "generalized-alpha" else "generalized-alpha"
        cure = f"steps do not resolve these; more damping or {takes} takes them out"
    return f"{FORCES_BESIDE} at {_hertz(felt)}, with {each:.2g} steps in a period: {cure}"


def shorter_grid(grid: Grid, why: str) -> tuple[Grid, str]:
    """Steps a quarter as long, since most of those that were chosen did not converge."""
    short = Grid(grid.step / 4, grid.every * 4, grid.rows)
    said = why if "did not converge" in why else f"longer ones ({grid.step:.3g} s) did not converge"
    labour = LABOUR if short.rows * short.every < MOST_STEPS / 4 else 0.0
    return replace(short, labour=labour), f"{short.step:.3g} s: {said.partition(': ')[2] or said}"


def _turns(found: Excited, count: int) -> str:
    """Why a speed asks for short steps."""
    if not found.slides:
        return f"{count} in a turn at {found.turning:.3g} rad/s"
    way = f"{2 * np.pi * found.length:.3g} m at {found.turning * found.length:.3g} m/s"
    return f"{count} in a slide of {way}, the circle about the typical length"


def _hertz(frequency: float) -> str:
    return f"{frequency / (2 * np.pi):.3g} Hz"


def excited(
    problem: Problem,
    system: System,
    given: Polynomials,
    q: Array,
    qd: Array,
    time: float,
    steered: bool = True,
    deflections: bool = False,
) -> Excited:
    """What vibrates and turns from a state on, joints with friction sliding, and all of them sticking.

    Vibrations are judged beside the way of the run; of a robot that is `steered` from outside that is not known.
    """
    steered = steered or problem.prescribed == "platform"
    loose = _excited(problem, _Linear(system, q, qd), given, qd, time, steered, deflections)
    if not len(system.friction):
        return loose
    stuck = _excited(problem, _Linear(system, q, qd, stuck=True), given, qd, time, steered, deflections)
    felt, highest = max(loose.felt, stuck.felt), max(loose.highest, stuck.highest)
    loose = replace(loose, free=loose.free + stuck.free, unknown=loose.unknown or stuck.unknown)
    return replace(loose, vibration=max(loose.vibration, stuck.vibration), highest=highest, felt=felt)


def _excited(
    problem: Problem,
    linear: _Linear,
    given: Polynomials,
    qd: Array,
    time: float,
    steered: bool,
    deflections: bool,
) -> Excited:
    system = linear.system
    values, shapes = np.linalg.eig(-linear.stiffness())
    omega = np.sqrt(np.maximum(values.real, 0.0))
    motors = len(problem.robot.actuated) if problem.driven else 0
    effects = linear.effects(given.channels, motors)
    pushes, jumps, jerks = linear.pushes(effects, given, motors, time)
    rates = np.concatenate([pushes, jumps, jerks, qd[system.free][None]])
    try:  # shapes of modes that are one and the same have no inverse
        parts = np.abs(np.linalg.solve(shapes, rates.T.astype(complex))).T
    except np.linalg.LinAlgError:
        return Excited(0.0, 0.0, float(omega.max()), unknown=True)
    slow = np.minimum(time, 1 / np.maximum(omega, 1e-9))  # what a constant push acts for
    pushed_by, thrown_by, jerked_by = (part.sum(axis=0) for part in np.split(parts[:-1], 3))
    gained = pushed_by * slow + thrown_by
    fast = omega * time > np.pi
    speeds = gained + np.where(fast, parts[-1], 0.0)  # what does not vibrate goes on as it did
    gains, push = np.linalg.solve(shapes, effects.T.astype(complex)), pushing(given, motors)
    places, tree = np.asarray(problem.places), problem.robot.tree
    length, metres, units = tree.length, system.metres, tree.rate_units
    if not tree.has_length:  # it is that of the run
        kinds = kinds_of_rates(tree)
        slid = (np.abs(shapes) * (kinds[places][system.free] == "m")[:, None]).max(axis=0)
        modes = SlidingModes(omega, gained + parts[-1], gains, slid)
        begun = np.abs([linear.q[link.q.start] for link in tree.links if link.joint.unit == "m"])
        length = max(slide_span(problem, given, push, modes, time), float(begun.max(initial=0.0))) or length
        metres = np.where(kinds[places][system.free] == "rad", length, metres)
        units = np.where(kinds == "m", length, 1.0)
    sizes = np.abs(shapes) * metres[:, None]
    amplitude = speeds * slow * sizes.max(axis=0)
    size = np.maximum(sizes.max(axis=0), 1e-300)
    vibrating, thrown = np.flatnonzero(fast), float(amplitude.max())
    way = max(thrown, float((np.where(fast, 0.0, parts[-1] * time) * size).max()))
    way = max(way, motor_way(problem, given, time, units) * length)
    way = length if steered else max(way, carried(push, gains[~fast], size[~fast], time))
    omegas, gains, size = omega[vibrating], gains[vibrating], size[vibrating]
    least = max(VISIBLE * min(length, way), LEAST * length)
    driven, moved = driven_amplitudes(push, gains, omegas, time, size, least, BESIDE)
    largest = max(part.max(initial=0.0) for part in (driven, moved, amplitude[vibrating]))
    way = min(length, max(way, float(largest)))
    least = max(VISIBLE * way, LEAST * length)
    forces = (speeds / slow + jerked_by * slow) * sizes.max(axis=0)  # as accelerations
    least_felt = max(LEAST_FELT * way, LEAST * length) / time**2
    felt = fast & (forces > max(FELT * float(forces.max()), least_felt))
    if deflections:
        thrown = float(amplitude[vibrating].max(initial=0.0))
    unseen, missed = max(least, BESIDE * thrown), max(least, BESIDE * float(largest))
    vibrates = fast & (amplitude > unseen)
    free = ((amplitude[vibrating], unseen, False, thrown), (driven, missed, True, largest))
    seen = np.flatnonzero(np.any([part > allowed for part, allowed, *_ in free], axis=0))
    decay = np.zeros(len(omegas))
    decay[seen] = decays(omegas[seen], linear.damping(shapes, vibrating[seen]), size[seen])
    pushed = (gained * sizes).max(axis=1) / length
    speeds_of_motors = _motor_speeds(problem, given, time, units)
    turns = [(places[system.free], pushed), (places, np.abs(qd / units[places])), speeds_of_motors]
    fastest, rate = max((float(speed), int(k)) for rates, found in turns for k, speed in zip(rates, found, strict=True))
    link = tree.links[tree.link_of_rate[rate]]
    own = rate - link.v.start
    slides = own < len(link.joint.rate_units) and link.joint.rate_units[own] == "m"
    vibration, shaken = (float(omega[which].max(initial=0.0)) for which in (vibrates, felt))
    shown = tuple(Vibrations(omegas, part, decay, *about) for part, *about in free)
    return Excited(vibration, fastest, float(omega.max()), slides, shaken, shown, length=length)


def _motor_speeds(problem: Problem, given: Polynomials, time: float, units: Array) -> tuple[list[int], Array]:
    """Motors of a prescribed motion, and how fast they get, in units of their rates."""
    if not problem.driven:
        return [], np.zeros(0)
    motors = list(problem.robot.actuated)
    speeds = np.abs(given.at(instants_of(given, time, 101), 1)[:, : len(motors)])
    return motors, (speeds / units[motors]).max(axis=0, initial=0.0)


class _Linear:
    """The model about a state, at rest and with the inputs of the start, by differences.

    Joints with friction slide without it, or are `stuck`.
    """

    def __init__(self, system: System, q: Array, qd: Array, stuck: bool = False) -> None:
        self.system, self.q, self.qd = system, q, qd
        self.work = new_work(system, 1, 1)
        if stuck:
            self._stick()
        self.first = np.zeros((1, 6, system.coefficients.shape[2]))
        self.first[0, 0] = Polynomials(system.breaks, system.coefficients).at(0.0, behind=True)
        self.held = self._with(self.first)
        self.rest = self._evaluated(q, np.zeros_like(qd), self.held)

    def _stick(self) -> None:
        """Let all joints with friction stick, whatever they bear."""
        from parflex.simulation.integrators.crossings import settle

        self.system = self.system._replace(friction=self.system.friction * ALL_HOLD)
        settle(self.system, self.work, 0.0, self.q.copy(), np.zeros_like(self.qd))

    def _with(self, inputs: Array) -> System:
        """The system with constant inputs."""
        return self.system._replace(breaks=np.zeros(1), coefficients=inputs)

    def _evaluated(self, q: Array, qd: Array, system: System) -> Array:
        """Closed positions, their rates of change, and free accelerations behind them, at t = 0."""
        from parflex.simulation.integrators.loop import record

        x = np.empty(self.work.x.shape[1] - len(system.constants))
        y = np.empty(system.outputs + 2)
        record(system, self.work, 0.0, q.copy(), qd.copy(), x, y)
        nq = system.positions
        return np.concatenate([y[: 2 * nq], y[2 * nq + system.free]])

    def stiffness(self) -> Array:
        """d(acceleration)/d(position), each position along all that its rate moves."""
        system, nq, still = self.system, self.system.positions, np.zeros_like(self.qd)
        columns = []
        for k, place in enumerate(system.free):
            rate = still.copy()
            rate[place] = 1.0
            way = system.units[k] * WAY * self._evaluated(self.q, rate, self.held)[nq : 2 * nq]
            there, back = (self._evaluated(self.rest[:nq] + side * way, still, self.held) for side in (1, -1))
            columns.append((there - back)[2 * nq :] / (2 * WAY * system.units[k]))
        found = np.array(columns).T
        return np.where(np.isfinite(found), found, 0.0)

    def damping(self, shapes: Array, which: Array) -> Array:
        """d(acceleration)/d(rate) between some of the modes, at rates beside which a constant friction is nothing.

        What grows with the square of the rates is the same in both directions and drops out.
        """
        if not len(which):
            return np.zeros((0, 0))
        system, nq, columns = self.system, self.system.positions, []
        for k, place in enumerate(system.free):
            rate = np.zeros_like(self.qd)
            rate[place] = FAST * system.units[k]
            there, back = (self._evaluated(self.q, side * rate, self.held) for side in (1, -1))
            columns.append((there - back)[2 * nq :] / (2 * FAST * system.units[k]))
        found = np.array(columns).T
        return np.linalg.solve(shapes, np.where(np.isfinite(found), found, 0.0) @ shapes[:, which])[which]

    def effects(self, channels: int, motors: int) -> Array:
        """Free accelerations by one unit of each input: by accelerations of so many motors that follow a motion."""
        nq, still, found = self.system.positions, np.zeros_like(self.qd), []
        for j in range(channels):
            unit = self.first.copy()
            unit[0, 2 if j < motors else 0, j] += 0.5 if j < motors else 1.0
            found.append((self._evaluated(self.q, still, self._with(unit)) - self.rest)[2 * nq :])
        effects = np.array(found).reshape(channels, len(self.system.free))
        return np.where(np.isfinite(effects), effects, 0.0)

    def pushes(self, effects: Array, given: Polynomials, motors: int, time: float) -> tuple[Array, Array, Array]:
        """Accelerations that jump, jumps of velocity, and accelerations whose slope jumps, one row for each cause."""
        start = self._evaluated(self.q, self.qd, self.system)[2 * self.system.positions :]
        accelerations = [np.where(np.isfinite(start), start, 0.0)]
        velocities, slopes = [np.zeros(len(start))], [np.zeros(len(start))]
        for j, effect in enumerate(effects):
            moved = j < motors
            accelerations.append(effect * _largest(given, 2 if moved else 0, j, time))
            velocities.append(effect * (_largest(given, 1, j, time) if moved else 0.0))
            slopes.append(effect * _largest(given, 3 if moved else 1, j, time))
        return np.array(accelerations), np.array(velocities), np.array(slopes)


def _largest(given: Polynomials, order: int, channel: int, time: float) -> float:
    """The largest jump of a derivative on the way."""
    one = Polynomials(given.breaks, given.coefficients[:, :, channel : channel + 1])
    times, sizes = one.jumps(order)
    inside = sizes[(times > 0) & (times < time)]
    return float(np.abs(inside).max(initial=0.0))
