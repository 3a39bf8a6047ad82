"""Functions of a design along a motion as piecewise polynomials, halved until they fit.

Efforts and signed powers are smooth between breaks of the motion and instants at which joints with dry friction
reverse. Pieces end there, so polynomials in time are accurate to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.polynomial import legendre

from parflex.design.motion_instants import MotionInstants
from parflex.design.rigid_motion import RigidState
from parflex.errors import InputError
from parflex.records import Record
from parflex.spatial.dual import Sensitive, slopes, without_slopes

Array = np.ndarray
NODES = 16  # of a polynomial
FIRST = 2  # pieces at least
UNEVEN = 0.2236  # how far their ends are from even ones, in no simple ratio to the motion
FINE = 1e-10  # of the largest value, over the whole motion: what the highest powers of polynomials may have
STRAIGHT = 1e-9  # of a joint's largest rate: the same for instants at which it turns back
RESTS = 1e-9  # of the fastest joint: rates that are rounding
MOST = 4000  # instants
TOGETHER = 1e-9  # of the motion: joints that turn back at one instant
ALIKE = 1e-6  # relative: instants that move as far


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
        """The time at a place; that of an end to its last digit, since others ask whether joints turn back there."""
        return {-1.0: self.begin, 1.0: self.end}.get(x, float(self.times(np.array(x))))

    def at(self, x: float, order: int = 0) -> Array:
        """All functions at a place from -1 to 1, or their derivatives by time."""
        scale = (2 / (self.end - self.begin)) ** order
        return np.asarray(scale * legendre.legval(x, legendre.legder(self.values, order) if order else self.values))


class SmoothPieces:
    """Functions of a robot that moves as rigid bodies, signed so that they are smooth, over a whole motion.

    `rubs` says whether they jump where joints with dry friction turn back.
    """

    def __init__(
        self, instants: MotionInstants, response: str, functions: Callable[[RigidState], Array], rubs: bool = True
    ) -> None:
        self.instants, self.response, self.functions, self.robot = instants, response, functions, instants.robot
        self.nodes, weights = legendre.leggauss(NODES)
        orders = np.arange(NODES)
        self.transform = ((2 * orders + 1) / 2)[:, None] * legendre.legvander(self.nodes, NODES - 1).T * weights
        self.largest, self.fastest = 0.0, np.zeros(self.robot.tree.n)
        self.turns: dict[float, list[int]] = {}  # joints that turn back at instants
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
            # uneven: the middle of a motion is where joints of a symmetric robot turn back
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
        """How an instant at which joints turn back moves with the keys."""
        rigid, joints = RigidState(self.instants.state_at(t)), self.turns[t]
        rates = slopes(rigid.rates[joints], self.instants.state.count, Sensitive)
        found = -rates / without_slopes(rigid.accelerations[joints]).astype(float)[:, None]
        if np.abs(found - found[0]).max(initial=0.0) > ALIKE * max(float(np.abs(found).max(initial=0.0)), 1e-12):
            raise InputError(
                f"at t = {t:.6g} s several joints with dry friction turn back together, and part as the keys change, "
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
        """Whether polynomials tell where watched joints turn back."""
        tail, moving = np.abs((self.transform @ rates)[-2:]).max(axis=0), self._moving
        return bool(np.all((tail <= STRAIGHT * moving) | (moving == 0)))

    def _turning(self, begin: float, end: float, rates: Array) -> list[float]:
        """Instants within a piece at which watched joints turn back."""
        found: list[float] = []
        for joint, size, row in zip(self.watched, self._moving, (self.transform @ rates).T, strict=True):
            for x in _crossings(row, STRAIGHT * size) if size else []:
                t = self._polished((begin + end) / 2 + (end - begin) / 2 * x, joint, begin, end)
                same = next((one for one in self.turns if abs(one - t) <= TOGETHER * self.instants.length), t)
                self.turns.setdefault(same, []).append(joint)
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


def roots(coefficients: Array) -> list[float]:
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
    ends = [-1.0, *roots(coefficients), 1.0]
    between = legendre.legval((np.array(ends[1:]) + ends[:-1]) / 2, coefficients)
    found, side = [], 0.0
    for k, value in enumerate(between):
        if abs(value) > least:
            if side * value < 0:
                found.append(ends[k])
            side = value
    return found
