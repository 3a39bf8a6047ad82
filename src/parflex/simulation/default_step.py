"""The default fixed step of a run, from the excited frequencies and the speeds.

The model is linearised at the start. Jumps (the start itself, accelerations and velocities of the motion, efforts,
wrenches) excite its modes, as do smooth inputs that are fast enough. The step resolves modes that then vibrate
significantly, so that their phase holds over the run. Speeds at the start or during the run count as frequencies too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.integrators.driver import Grid, Method, System, grid_of, rounded_down
from parflex.records import Record
from parflex.simulation.driven_modes import driven_amplitudes
from parflex.simulation.linear_start import LinearStart
from parflex.simulation.lost_phase import Vibrations, decays, drift, followed_step
from parflex.simulation.problem import Problem
from parflex.simulation.run_way import (
    SlidingModes,
    carried,
    instants_of,
    kinds_of_rates,
    motor_way,
    slide_span,
)
from parflex.simulation.slow_motion import SlowMotion
from parflex.simulation.step_requests import LEAST, StepChoice, acting_inputs
from parflex.trajectories.polynomials import Polynomials

Array = np.ndarray
PER_PERIOD = {"gauss4": 20, "gauss6": 12, "rk4": 40, "generalized-alpha": 60}  # steps
STABLE = {"rk4": 2.0}  # of an explicit method: steps times the highest frequency of all
# amplitudes that count: of the way of the run, of a typical length at most, and of the largest one
VISIBLE, BESIDE = 1e-6, 1e-2
# of the largest acceleration, and of the same way over the time squared: so much is said if steps miss it
FELT, LEAST_FELT = 1e-3, 1e-3
MOST_SHORTER = 100  # times: no shorter steps are advised for vibrations of forces
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
) -> tuple[Grid, StepChoice]:
    """Steps for a run from a state, and why they are so long.

    The way of a robot that is `steered` by a controller is not known. Where `deflections` are asked for, vibrations are
    judged beside each other, not beside how far the robot goes.
    """
    system = problem.system(given)
    if not len(system.free):
        return grid, StepChoice(f"{grid.step:g} s, that of all runs")
    if len(system.free) > MOST_COORDINATES:
        return grid, _unknown(f"{grid.step:g} s, that of all runs", f"{grid.step:g} s", system)
    diagnostics: list[Diagnostic] = []
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
        grid = grid_of(time, max(step, time / MOST_STEPS), grid.out_step)
        chosen = f"{grid.step:.3g} s"
        words = f"{chosen}: {why}"
        if step < time / MOST_STEPS:
            floor = f"a run has no more than {MOST_STEPS} steps, and it asks for {step:.2g} s ({why})"
            words = f"{chosen}; {floor}"
            text = f"the steps of {chosen} are too long: {floor}"
            diagnostics.append(Diagnostic("too-many-steps", text, "step", step))
    else:
        chosen = f"{grid.step:g} s"
        words = f"{chosen}, that of all runs: no frequency that is excited asks for less"
    if found.unknown:
        return grid, _unknown(words, chosen, system, diagnostics)
    lost = drift(found.free, time, method.tableau, grid.step)
    choice = StepChoice(words, (*diagnostics, *lost), _not_followed(found.felt, grid.step, method))
    texts = [diagnostic.text for diagnostic in (*lost, *choice.of_forces)]
    return grid, replace(choice, why="; ".join([words, *texts]))


def _unknown(words: str, chosen: str, system: System, diagnostics: Sequence[Diagnostic] = ()) -> StepChoice:
    """Steps that follow no vibration, as frequencies are not known."""
    frequencies = f"the frequencies of {len(system.free)} coordinates"
    text = (
        f"the steps of {chosen} follow no vibration, as {frequencies} are not known: give a step of a twentieth of the "
        "shortest period that matters, or a tolerance"
    )
    unknown = Diagnostic("unknown-frequencies", text, value=len(system.free))
    return StepChoice(f"{words}; not known are {frequencies}", (*diagnostics, unknown))


def told_of_given(
    problem: Problem,
    given: Polynomials,
    method: Method,
    grid: Grid,
    q: Array,
    qd: Array,
    steered: bool = False,
    deflections: bool = False,
) -> StepChoice:
    """What fixed steps that were given lose of phases and amplitudes over a run from a state, and of forces."""
    system = problem.system(given)
    if grid.begin or method.name not in PER_PERIOD or not 0 < len(system.free) <= MOST_COORDINATES:
        return StepChoice()
    time = grid.rows * grid.out_step
    found = excited(problem, system, given, q, qd, time, steered, deflections)
    lost = drift(found.free, time, method.tableau, grid.step)
    return StepChoice("", tuple(lost), _not_followed(found.felt, grid.step, method))


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
    return f"at {_hertz(felt)}, with {each:.2g} steps in a period: {cure}"


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
    loose = _excited(problem, LinearStart(system, q, qd), given, qd, time, steered, deflections)
    if not len(system.friction):
        return loose
    stuck = _excited(problem, LinearStart(system, q, qd, stuck=True), given, qd, time, steered, deflections)
    felt, highest = max(loose.felt, stuck.felt), max(loose.highest, stuck.highest)
    loose = replace(loose, free=loose.free + stuck.free, unknown=loose.unknown or stuck.unknown)
    return replace(loose, vibration=max(loose.vibration, stuck.vibration), highest=highest, felt=felt)


def _excited(
    problem: Problem,
    linear: LinearStart,
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
    causes = [*linear.pushes(effects, given, motors, time), qd[system.free][None], effects]
    try:  # shapes of modes that are one and the same have no inverse
        parts = [np.linalg.solve(shapes, rates.T.astype(complex)).T for rates in causes]
    except np.linalg.LinAlgError:
        return Excited(0.0, 0.0, float(omega.max()), unknown=True)
    lasting = np.minimum(time, 1 / np.maximum(omega, 1e-9))  # what a constant push acts for
    fast, push = omega * time > np.pi, acting_inputs(given, motors)
    pushes, throws, jerks, begins, gained_by = (part[:, ~fast] for part in parts)
    still = SlowMotion(shapes[:, ~fast], pushes, throws, jerks, begins[0], lasting[~fast], gained_by.T)
    vibrating = np.flatnonzero(fast)
    omegas, shaped, slow, gains = omega[fast], np.abs(shapes[:, fast]), lasting[fast], parts[4][:, fast].T
    pushed_by, thrown_by, jerked_by, begun = (np.abs(part[:, fast]).sum(axis=0) for part in parts[:4])
    gained = pushed_by * slow + thrown_by
    speeds = gained + begun
    places, tree = np.asarray(problem.places), problem.robot.tree
    length, metres, units = tree.length, system.metres, tree.rate_units
    if not tree.has_length:  # it is that of the run
        kinds = kinds_of_rates(tree)
        slid = (kinds[places][system.free] == "m").astype(float)
        modes = SlidingModes(omegas, speeds, gains, (shaped * slid[:, None]).max(axis=0, initial=0.0))
        at_start = np.abs([linear.q[link.q.start] for link in tree.links if link.joint.unit == "m"])
        length = max(slide_span(problem, given, push, modes, still, slid, time), float(at_start.max(initial=0.0)))
        length = length or tree.length
        metres = np.where(kinds[places][system.free] == "rad", length, metres)
        units = np.where(kinds == "m", length, 1.0)
    sizes = shaped * metres[:, None]
    size = np.maximum(sizes.max(axis=0, initial=0.0), 1e-300)
    amplitude = speeds * slow * size
    thrown = max(float(amplitude.max(initial=0.0)), float((still.ways * metres).max()))
    way = max(thrown, float((still.kept_speeds * time * metres).max()), motor_way(problem, given, time, units) * length)
    way = length if steered else max(way, carried(push, still.coordinate_gains, metres, time))
    least = max(VISIBLE * min(length, way), LEAST * length)
    driven, moved = driven_amplitudes(push, gains, omegas, time, size, least, BESIDE)
    largest = max(part.max(initial=0.0) for part in (driven, moved, amplitude))
    way = min(length, max(way, float(largest)))
    least = max(VISIBLE * way, LEAST * length)
    forces = (speeds / slow + jerked_by * slow) * size  # as accelerations
    most_felt = max(float(forces.max(initial=0.0)), float((still.accelerations * metres).max()))
    least_felt = max(LEAST_FELT * way, LEAST * length) / time**2
    felt = forces > max(FELT * most_felt, least_felt)
    if deflections:
        thrown = float(amplitude.max(initial=0.0))
    unseen, missed = max(least, BESIDE * thrown), max(least, BESIDE * float(largest))
    free = ((amplitude, unseen, False, thrown), (driven, missed, True, largest))
    seen = np.flatnonzero(np.any([part > allowed for part, allowed, *_ in free], axis=0))
    decay = np.zeros(len(omegas))
    decay[seen] = decays(omegas[seen], linear.damping(shapes, vibrating[seen]), size[seen])
    pushed = np.maximum((gained * sizes).max(axis=1, initial=0.0), still.speeds * metres) / length
    speeds_of_motors = _motor_speeds(problem, given, time, units)
    turns = [(places[system.free], pushed), (places, np.abs(qd / units[places])), speeds_of_motors]
    fastest, rate = max((float(speed), int(k)) for rates, found in turns for k, speed in zip(rates, found, strict=True))
    link = tree.links[tree.link_of_rate[rate]]
    own = rate - link.v.start
    slides = own < len(link.joint.rate_units) and link.joint.rate_units[own] == "m"
    vibration, shaken = (float(omegas[which].max(initial=0.0)) for which in (amplitude > unseen, felt))
    shown = tuple(Vibrations(omegas, part, decay, *about) for part, *about in free)
    return Excited(vibration, fastest, float(omega.max()), slides, shaken, shown, length=length)


def _motor_speeds(problem: Problem, given: Polynomials, time: float, units: Array) -> tuple[list[int], Array]:
    """Motors of a prescribed motion, and how fast they get, in units of their rates."""
    if not problem.driven:
        return [], np.zeros(0)
    motors = list(problem.robot.actuated)
    speeds = np.abs(given.at(instants_of(given, time, 101), 1)[:, : len(motors)])
    return motors, (speeds / units[motors]).max(axis=0, initial=0.0)
