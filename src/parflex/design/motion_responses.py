"""Responses of robots in a motion: efforts, speeds, powers, work, and deflection by inertia forces.

Of a motion of the file the largest value counts. Efforts and signed powers are smooth between breaks of the motion and
instants at which joints with dry friction reverse: there pieces end, which are halved until polynomials in time are
accurate to rounding. The instant of a largest value moves as numbers change, but the value has no derivative in time
there: theory (64), with time for the poses. Where friction jumps, the largest value may be the limit at that instant,
which moves with the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import legendre

from parflex.design.design_state import DesignState, combined, value_of
from parflex.design.motion_instants import MotionInstants
from parflex.design.rigid_responses import RigidState, motor_number
from parflex.design.statics_responses import HeldState, holding_effort
from parflex.errors import InputError
from parflex.forces.forces import tree_forces
from parflex.records import Record
from parflex.spatial.dual import Sensitive, slopes, with_slopes, without_slopes

Array = np.ndarray
CLOSE = 1e-6  # of the largest value: maxima of polynomials that are made exact
FLAT = 1e-11  # of the largest value: what changes less has no maximum of its own
JUMP = 1e-7  # relative: polynomials are closer than that to the functions
EQUAL = 1e-9  # relative: values at other instants that come as near are active too; of the motion, equal instants
JUMPS = 1e-9  # of the largest power: smaller ones are rounding
NODES = 16  # of a polynomial
FIRST = 2  # pieces at least
UNEVEN = 0.2236  # how far their ends are from even ones, in no simple ratio to the motion
FINE = 1e-10  # of the largest value, over the whole motion: bound of the highest coefficients of polynomials
STRAIGHT = 1e-9  # of a joint's largest rate: the same for instants at which the joint reverses
RESTS = 1e-9  # of the fastest joint: rates that are rounding
MOST = 4000  # instants
ALIKE = 1e-6  # relative: instants that move as far


def effort(state: DesignState, argument: str) -> Any:
    """Effort of a motor in the motion, bodies undeformed; of a flexible robot without a motion, the holding effort."""
    motor, motion = _motor_and_motion(argument)
    number = motor_number(state, motor, "effort")
    if motion:
        return _largest(state, f"effort:{argument}", lambda rigid: rigid.efforts[[number]])
    if state.robot.tree.elastic and not state.case.velocity and not state.case.acceleration:
        return holding_effort(state, number)
    return RigidState(state).efforts[number]


def speed(state: DesignState, argument: str) -> Any:
    """Absolute rate of a motor in the motion."""
    motor, motion = _motor_and_motion(argument)
    rate = state.robot.actuated[motor_number(state, motor, "speed")]
    if motion:
        return _largest(state, f"speed:{argument}", lambda rigid: rigid.rates[[rate]], rubs=False)
    return abs(RigidState(state).rates[rate])


def power(state: DesignState, argument: str) -> Any:
    """Absolute mechanical power of a motor in the motion; the sum of all where none is named."""
    motor, motion = _motor_and_motion(argument)
    chosen = [motor_number(state, motor, "power")] if motor or len(state.robot.actuated) == 1 else slice(None)
    if motion:
        return _largest(state, f"power:{argument}", lambda rigid: _powers(rigid)[chosen])
    return _sum_of_sizes(_powers(RigidState(state))[chosen])


def energy(state: DesignState, argument: str) -> Any:
    """Work of all motors in a motion of the file, driving or braking: integral of the sum of absolute powers.

    A path of the end effector stays, and the motors follow; prescribed motors keep their motion.
    """
    response = f"energy:{argument}"
    return _integral(SmoothPieces(MotionInstants(state, argument, response), response, _powers))


def dynamic_error(state: DesignState, argument: str) -> Any:
    """How far a frame is from its place in the motion: bodies deform under gravity, inertia forces and the wrench."""
    frame, motion = _motor_and_motion(argument)
    frame = frame or state.robot.tree.end_effector
    state.robot.tree.place(frame)
    if motion:
        return _largest(state, f"dynamic-error:{argument}", lambda rigid: _displacement(rigid, frame), norm=True)
    if not state.case.velocity and not state.case.acceleration:
        text, hint = "there is no dynamic error without a motion", "give velocity and acceleration, or request 'error'"
        raise InputError(text, key="velocity", value=f"dynamic-error:{argument}", hint=hint)
    return _norm(_displacement(RigidState(state), frame))


def _motor_and_motion(argument: str) -> tuple[str, bool]:
    """The name before '@', and whether a motion of the file is named behind it."""
    name, at, _ = argument.rpartition("@")
    return (name, True) if at else (argument, False)


def _powers(rigid: RigidState) -> Array:
    """Powers of all motors, with their signs."""
    return rigid.efforts * rigid.rates[list(rigid.state.robot.actuated)]


def _displacement(rigid: RigidState, frame: str) -> Array:
    """Displacement of a frame in world axes."""
    state, wrench = rigid.state, rigid.state.case.wrench
    plain = replace(state.case, velocity=None, acceleration=None, about="undeformed")
    held = HeldState(DesignState(state.robot, state.pose, state.keys, plain, state.design))
    configuration = held.model.configuration
    qd, qdd = (without_slopes(part).astype(float) for part in (rigid.rates, rigid.accelerations))
    x = held.solver.solve(-configuration.reduction.forces(tree_forces(configuration, qd, qdd, wrench)))
    if not state.count:
        return (configuration.frame_rows(frame) @ (configuration.J @ x))[:3]
    there = held.there
    forces = tree_forces(there, rigid.rates, rigid.accelerations, wrench)
    left = there.pulled(forces + held.stiffness_times(there.along(x[:, None]))[:, 0])
    dx = held.solver.solve(-slopes(left, state.count, Sensitive), refuse=False)
    bent = there.along(with_slopes(x, dx, Sensitive)[:, None])[:, 0]
    return (there.frame_rows(frame) @ bent)[:3]


def _norm(values: Any) -> Any:
    return np.sqrt(np.asarray(values) @ np.asarray(values))


def _sum_of_sizes(values: Any) -> Any:
    return sum((abs(value) for value in values), 0.0)


# -- the largest value in a motion ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Peak(Record):
    """A value at an instant, `behind` or before a jump of the motion; a `limit` is at an end of a piece."""

    value: float
    t: float
    behind: bool = False
    limit: tuple[TimePiece, int] | None = None


def _largest(
    state: DesignState, response: str, functions: Callable[[RigidState], Any], norm: bool = False, rubs: bool = True
) -> Any:
    """The largest norm, or sum of absolute values, of functions in the motion that a response names behind its '@'."""
    instants, size = MotionInstants(state, response.rpartition("@")[2], response), _norm if norm else _sum_of_sizes
    smooth = SmoothPieces(instants, response, functions, rubs)

    def at(t: float, behind: bool, plain: bool = True) -> Any:
        return size(functions(RigidState(instants.state_at(t, behind, plain))))

    def exact(piece: TimePiece, x: float, rough: float) -> Peak:
        """The maximum of the functions themselves: near it the value changes by the square of the time."""
        t, behind = piece.time(x), x == -1
        value = value_of(at(t, behind))
        # where a joint with dry friction has no rate, friction has no sign: only the limits from both sides have one
        if abs(x) == 1 and (t in smooth.reversals or abs(value - rough) > JUMP * rough):
            return Peak(rough, t, behind, (piece, int(x)))
        return Peak(value, t, behind)

    def with_slopes_of(peak: Peak) -> Any:
        if peak.limit is None:
            return at(peak.t, peak.behind, plain=False)
        piece, x = peak.limit
        moved = legendre.legval(x, smooth.slopes(piece))  # functions x keys
        if peak.t in smooth.reversals:
            moved = moved + np.outer(piece.at(x, 1), smooth.moved(peak.t))
        return size([Sensitive(float(value), row) for value, row in zip(piece.at(x), moved, strict=True)])

    rough = [(piece, x, float(size(piece.at(x)))) for piece in smooth.pieces for x in _maxima(piece, norm)]
    largest = max(value for _, _, value in rough)
    peaks = [exact(piece, x, value) for piece, x, value in rough if value >= (1 - CLOSE) * largest]
    peaks.sort(key=lambda peak: -peak.value)
    if not state.keys:
        return peaks[0].value
    return combined([with_slopes_of(peak) for peak in _active(peaks, instants)], state.count, False)


def _maxima(piece: TimePiece, norm: bool) -> list[float]:
    """Both ends (-1, 1), and local maxima of the norm, or the sum of absolute values, of polynomials between them."""
    if norm:
        parts = [((-1.0, 1.0), sum((legendre.legmul(one, one) for one in piece.values.T), np.zeros(1)))]
    else:
        ends = sorted({-1.0, 1.0, *(x for one in piece.values.T for x in _roots(one))})
        parts = [((a, b), piece.values @ np.sign(piece.at((a + b) / 2))) for a, b in pairwise(ends)]
    places = {-1.0, 1.0}
    for (a, b), polynomial in parts:
        if np.abs(polynomial[1:]).max(initial=0.0) > FLAT * np.abs(polynomial).max():
            places |= {x for x in _roots(legendre.legder(polynomial)) if a <= x <= b}
    return sorted(places)


def _active(peaks: list[Peak], instants: MotionInstants) -> list[Peak]:
    """Instants that reach the largest value, each once."""
    active: list[Peak] = []
    for peak in peaks:
        if peak.value < peaks[0].value * (1 - EQUAL):
            break
        near = [one for one in active if abs(one.t - peak.t) <= 1e-6 * instants.length and one.limit is peak.limit]
        pushes = [instants.motors_at(one.t, one.behind)[2] for one in (peak, *near)]
        if not any(np.allclose(push, pushes[0]) for push in pushes[1:]):
            active.append(peak)
    return active


# -- the work of motors --------------------------------------------------------------------------------------------


def _integral(smooth: SmoothPieces) -> Any:
    """The integral of the sum of absolute values, between roots of the polynomials, with slopes if there are keys.

    A power vanishes at its roots, so that their motion has no effect. The jump at a reversal moves with the numbers of
    the robot and contributes (Leibniz).
    """
    count = smooth.instants.state.count
    value, change = 0.0, np.zeros(count)
    for piece in smooth.pieces:
        half, columns = (piece.end - piece.begin) / 2, piece.values.shape[1]
        moved = smooth.slopes(piece) if count else np.zeros((len(piece.values), columns, 0))
        for k in range(columns):
            ends = np.array([-1.0, *_roots(piece.values[:, k]), 1.0])
            parts = np.diff(legendre.legval(ends, legendre.legint(piece.values[:, k])))
            value += half * float(np.abs(parts).sum())
            change += half * np.diff(legendre.legval(ends, legendre.legint(moved[:, k])), axis=-1) @ np.sign(parts)
    if not count:
        return value
    for before, behind in pairwise(smooth.pieces):
        jump = float(np.abs(before.at(1)).sum() - np.abs(behind.at(-1)).sum())
        if before.end in smooth.reversals and abs(jump) > JUMPS * smooth.largest:
            change += jump * smooth.moved(before.end)
    return Sensitive(value, change)


# -- functions of time as polynomials ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class TimePiece(Record):
    """A time in which functions are smooth: their polynomials, a column of Legendre coefficients for each."""

    begin: float
    end: float
    values: Array

    def times(self, x: Array) -> Array:
        """Times at places from -1 to 1."""
        return (self.begin + self.end) / 2 + (self.end - self.begin) / 2 * x

    def time(self, x: float) -> float:
        """The time at a place; that of an end to its last digit, since others ask whether joints reverse there."""
        return {-1.0: self.begin, 1.0: self.end}.get(x, float(self.times(np.array(x))))

    def at(self, x: float, order: int = 0) -> Array:
        """All functions at a place from -1 to 1, or their derivatives by time."""
        scale = (2 / (self.end - self.begin)) ** order
        return np.asarray(scale * legendre.legval(x, legendre.legder(self.values, order) if order else self.values))


class SmoothPieces:
    """Functions of a robot that moves as rigid bodies, signed so that they are smooth, over a whole motion.

    `rubs` says whether they jump where joints with dry friction reverse.
    """

    def __init__(
        self, instants: MotionInstants, response: str, functions: Callable[[RigidState], Array], rubs: bool = True
    ) -> None:
        self.instants, self.response, self.functions, self.robot = instants, response, functions, instants.robot
        self.nodes, weights = legendre.leggauss(NODES)
        orders = np.arange(NODES)
        self.transform = ((2 * orders + 1) / 2)[:, None] * legendre.legvander(self.nodes, NODES - 1).T * weights
        self.largest, self.fastest = 0.0, np.zeros(self.robot.tree.n)
        self.reversals: dict[float, list[int]] = {}  # joints that reverse at instants
        self._sampled = 0
        rubs = rubs and "friction" not in instants.state.case.without
        links = [link for link in self.robot.tree.links if link.joint.one_axis] if rubs else []
        self.watched = [link.v.start for link in links if link.terms.rubs or link.terms.more_viscous]

    @cached_property
    def pieces(self) -> list[TimePiece]:
        """Pieces of the motion in their order, each fine enough."""
        todo: list[tuple[float, float, tuple[Array, Array], bool]] = []
        for begin, end in pairwise(self.instants.breaks.tolist()):
            count = int(np.ceil(FIRST * (end - begin) / self.instants.length * (1 - 1e-9)))
            shares = np.linspace(0, 1, count + 1)
            # uneven: the middle of a motion is where joints of a symmetric robot reverse
            ends = (begin + (end - begin) * (shares - UNEVEN * shares * (1 - shares))).tolist()
            ends[-1] = end
            todo += [(a, b, self._samples(a, b), not self.watched) for a, b in pairwise(ends)]
        todo.reverse()
        kept: list[TimePiece] = []
        while todo:
            begin, end, (values, rates), turned = todo.pop()
            inner: list[float] = []
            if not turned and self._straight(rates):
                inner, turned = self._turning(begin, end, rates), True
            share = (end - begin) / self.instants.length
            if turned and not inner:
                coefficients = self.transform @ values
                if np.abs(coefficients[-2:]).max(initial=0.0) * share <= FINE * self.largest:
                    kept.append(TimePiece(begin, end, coefficients))
                    continue
            ends = [begin, *(inner or [(begin + end) / 2]), end]
            todo += [(a, b, self._samples(a, b), turned) for a, b in reversed(list(pairwise(ends)))]
        return kept

    def slopes(self, piece: TimePiece) -> Array:
        """Polynomials of the slopes of the functions: coefficients x functions x keys."""
        states = [RigidState(self.instants.state_at(t)) for t in piece.times(self.nodes).tolist()]
        rows = [slopes(np.asarray(self.functions(one)), self.instants.state.count, Sensitive) for one in states]
        return np.tensordot(self.transform, np.array(rows), 1)

    def moved(self, t: float) -> Array:
        """How an instant at which joints reverse moves with the keys."""
        rigid, joints = RigidState(self.instants.state_at(t)), self.reversals[t]
        rates = slopes(rigid.rates[joints], self.instants.state.count, Sensitive)
        found = -rates / without_slopes(rigid.accelerations[joints]).astype(float)[:, None]
        if np.abs(found - found[0]).max(initial=0.0) > ALIKE * max(float(np.abs(found).max(initial=0.0)), 1e-12):
            raise InputError(
                f"at t = {t:.6g} s several joints with dry friction reverse together, and part as the keys change, "
                f"so that '{self.response}' has no slopes",
                key="keys", value=self.response, hint="leave friction out (without), or change the motion a little",
            )  # fmt: skip
        return found[0]

    def _samples(self, begin: float, end: float) -> tuple[Array, Array]:
        """Functions, and rates of watched joints, at the nodes of a piece."""
        values, rates = [], []
        self._sampled += NODES
        if self._sampled > MOST:
            raise InputError(
                f"'{self.response}' does not converge with {MOST} instants",
                key="response",
                value=self.response,
                hint="name a shorter motion, or one with fewer periods",
            )
        for t in ((begin + end) / 2 + (end - begin) / 2 * self.nodes).tolist():
            rigid = RigidState(self.instants.state_at(t, plain=True))
            values.append(self.functions(rigid))
            rates.append(rigid.rates[self.watched])
            self.fastest = np.maximum(self.fastest, np.abs(rigid.rates))
        found = np.array(values, dtype=float)
        self.largest = max(self.largest, float(np.abs(found).max(initial=0.0)))
        return found, np.array(rates, dtype=float)

    @property
    def _moving(self) -> Array:
        """Largest rates of the watched joints; zero of those that rest."""
        relative = self.fastest / self.robot.tree.rate_units
        return np.where(relative > RESTS * relative.max(initial=0.0), self.fastest, 0.0)[self.watched]

    def _straight(self, rates: Array) -> bool:
        """Whether polynomials tell where watched joints reverse."""
        tail, moving = np.abs((self.transform @ rates)[-2:]).max(axis=0), self._moving
        return bool(np.all((tail <= STRAIGHT * moving) | (moving == 0)))

    def _turning(self, begin: float, end: float, rates: Array) -> list[float]:
        """Instants within a piece at which watched joints reverse."""
        found: list[float] = []
        for joint, size, row in zip(self.watched, self._moving, (self.transform @ rates).T, strict=True):
            for x in _crossings(row, STRAIGHT * size) if size else []:
                t = self._polished((begin + end) / 2 + (end - begin) / 2 * x, joint, begin, end)
                same = next((one for one in self.reversals if abs(one - t) <= EQUAL * self.instants.length), t)
                self.reversals.setdefault(same, []).append(joint)
                found.append(same)
        return sorted({t for t in found if begin < t < end})

    def _polished(self, t: float, joint: int, begin: float, end: float) -> float:
        """The instant at which a rate vanishes, by Newton's method from one nearby."""
        for _ in range(3):
            rigid = RigidState(self.instants.state_at(t, plain=True))
            rate, push = float(rigid.rates[joint]), float(rigid.accelerations[joint])
            step = rate / push if push else 0.0
            if not begin < t - step < end:
                break
            t -= step
            if abs(step) <= 1e-14 * self.instants.length:
                break
        return t


def _roots(coefficients: Array) -> list[float]:
    """Real roots of a polynomial between -1 and 1, in their order."""
    size = float(np.abs(coefficients).max(initial=0.0))
    kept = legendre.legtrim(coefficients, 1e-15 * size)
    if len(kept) < 2:
        return []
    found = legendre.legroots(kept)
    real = np.real(found[np.abs(np.imag(found)) < 1e-9])
    return sorted(real[(real > -1) & (real < 1)].tolist())


def _crossings(coefficients: Array, least: float) -> list[float]:
    """Where a polynomial changes its sign between -1 and 1, as far as it is larger than `least` on both sides."""
    ends = [-1.0, *_roots(coefficients), 1.0]
    between = legendre.legval((np.array(ends[1:]) + ends[:-1]) / 2, coefficients)
    found, side = [], 0.0
    for k, value in enumerate(between):
        if abs(value) > least:
            if side * value < 0:
                found.append(ends[k])
            side = value
    return found
