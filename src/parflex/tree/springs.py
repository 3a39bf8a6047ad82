"""Springs and dampers that act on a combination of joint coordinates: elastic couplings, with play and losses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.robotfile.element_schema import CouplingTable
from parflex.tree.contacts import Contact
from parflex.tree.gear_loss import direction, lost_share

if TYPE_CHECKING:
    from parflex.tree.link_tree import Link

Array = np.ndarray
SLACK = 1e-9  # m: a cable that is shorter by more is slack


@dataclass(frozen=True)
class CoupledSpring:
    """A spring on the stretch of a coupling, theory (43): what its joint is ahead of where the others put it.

    `play` is the way from flank to flank: in between nothing acts, and a flank pushes but does not pull. Power that
    passes loses the share 1 - efficiency on its way.
    """

    name: str
    joints: tuple[str, ...]  # the one that follows first
    numbers: tuple[int, ...]  # of their links
    positions: tuple[int, ...]
    rates: tuple[int, ...]
    coefficients: tuple[float, ...]  # 1, and minus the ratios
    offset: float
    stiffness: float
    damping: float = 0.0
    play: float = 0.0
    efficiency: float = 1.0
    back: float = 1.0  # efficiency where the joint drives the others
    pulls_only: bool = False  # the joint is the length of a cable: it is slack while it is shorter
    width: float = 0.0  # rate of the others at which a loss has 0.7 of its value; 0: it changes at once
    flanks: tuple[Contact, Contact] | None = None  # below and above, in a run, which finds when they meet

    def stretch(self, q: Any) -> Any:
        """How far the joint is ahead, in its unit."""
        return sum(c * q[k] for c, k in zip(self.coefficients, self.positions, strict=True)) - self.offset

    def rate(self, qd: Any) -> Any:
        """How fast it runs ahead."""
        return sum(c * qd[k] for c, k in zip(self.coefficients, self.rates, strict=True))

    def pressed(self, q: Any) -> Any:
        """The part of the stretch that is beyond the play."""
        stretch = self.stretch(q)
        if self.pulls_only:
            return _positive(stretch)
        if not self.play:
            return stretch
        beyond = stretch * np.sign(stretch) - self.play / 2
        return np.sign(stretch) * _positive(beyond)

    def slack(self, q: Array) -> bool:
        """Whether it is a cable that hangs loose."""
        return self.pulls_only and float(self.stretch(q)) < -SLACK

    def effort(self, q: Any, qd: Any) -> Any:
        """What pulls the joint back."""
        if self.flanks is not None and self.flanks[0].gated_now:
            below, above = (contact.force(depth, rate) for contact, depth, rate in self.contacts(q, qd))
            return above - below
        pressed, rate = self.pressed(q), self.rate(qd)
        if self.pulls_only and self.damping != 0:  # a taut cable may not push while it shortens
            taut = (1 + np.sign(self.stretch(q))) / 2
            return taut * _positive(self.stiffness * pressed + self.damping * rate)
        if not self.play:
            return self.stiffness * pressed + self.damping * rate
        side = np.sign(pressed)
        return side * _positive(side * (self.stiffness * pressed + self.damping * rate))

    @property
    def has_flanks(self) -> bool:
        """Whether it pushes on one side alone, at each end of its play."""
        return bool(self.play and self.stiffness)

    def contacts(self, q: Any, qd: Any) -> list[tuple[Contact, Any, Any]]:
        """Both flanks, with how deep and how fast they are pressed."""
        assert self.flanks is not None
        stretch, rate, half = self.stretch(q), self.rate(qd), self.play / 2
        return [(self.flanks[0], -stretch - half, -rate), (self.flanks[1], stretch - half, rate)]

    def add_to(self, forces: Array, q: Any, qd: Any) -> None:
        """Add what it takes along all rates to drive the joints against it."""
        effort = self.effort(q, qd)
        others = effort + self._lost(effort, qd) if self.lossy else effort
        for n, (c, k) in enumerate(zip(self.coefficients, self.rates, strict=True)):
            forces[k] = forces[k] + c * (others if n else effort)

    @property
    def lossy(self) -> bool:
        """Whether power is lost on its way."""
        return self.efficiency < 1 or self.back < 1

    def _lost(self, effort: Any, qd: Any) -> Any:
        """What the effort on the others has more than without losses."""
        speed = -sum(c * qd[k] for c, k in list(zip(self.coefficients, self.rates, strict=True))[1:])
        turns = direction(speed, self.width * max(abs(c) for c in self.coefficients[1:]) if self.width else 0.0)
        return effort * lost_share(turns, -np.sign(effort), self.efficiency, self.back)

    def numbers_in(self) -> dict[str, float]:
        """Numbers in which robots of a family may differ; not play and losses, which shape the program."""
        word = f"spring[{self.name},{float(self.play)},{float(self.efficiency)},{float(self.back)},{self.pulls_only}"
        own = {f"{word},{joint}]": c for joint, c in zip(self.joints, self.coefficients, strict=True)}
        return own | {f"{word},.{key}]": float(getattr(self, key)) for key in ("offset", "stiffness", "damping")}

    def with_numbers(self, symbols: Mapping[str, Any]) -> CoupledSpring:
        """The same with symbols in the place of some of these numbers."""
        words = list(self.numbers_in())
        parts = (*self.coefficients, self.offset, self.stiffness, self.damping)
        values = [symbols.get(word, part) for word, part in zip(words, parts, strict=True)]
        c, (offset, stiffness, damping) = tuple(values[:-3]), values[-3:]
        return replace(self, coefficients=c, offset=offset, stiffness=stiffness, damping=damping)

    def energy(self, q: Any) -> Any:
        """Stored in the flank that is pressed."""
        pressed = self.pressed(q)
        return 0.5 * self.stiffness * (pressed * pressed)

    def lost_power(self, q: Any, qd: Any) -> Any:
        """Power that damper and losses take."""
        effort = self.effort(q, qd)
        found = (effort - self.stiffness * self.pressed(q)) * self.rate(qd)
        if self.lossy:
            others = list(zip(self.coefficients, self.rates, strict=True))[1:]
            found = found + self._lost(effort, qd) * sum(c * qd[k] for c, k in others)
        return found


def coupled_spring(coupling: CouplingTable, links: Sequence[Link]) -> CoupledSpring:
    """The spring of one coupling of the file; that of a rigid one has no stiffness, and only says what it couples."""
    names = (coupling.joint, *coupling.others)
    numbers = tuple(next(j for j, link in enumerate(links) if link.name == name) for name in names)
    own = [links[j] for j in numbers]
    ratios = ratios_of(coupling, own[0].joint.unit == "m")
    return CoupledSpring(
        coupling.name,
        names,
        numbers,
        tuple(link.q.start for link in own),
        tuple(link.v.start for link in own),
        (1.0, *(-ratios[name] for name in coupling.others)),
        coupling.offset,
        coupling.stiffness or 0.0,
        coupling.damping,
        coupling.backlash,
        coupling.efficiency,
        coupling.back,
        own[0].pulls_only,
    )


def ratios_of(coupling: CouplingTable, joint_slides: bool) -> dict[str, float]:
    """Ratios of the others; a screw has the way of one radian, or the angle of one metre where the joint turns."""
    if coupling.lead is None:
        return dict(coupling.terms)
    way = coupling.lead / (2 * math.pi)
    return {coupling.others[0]: way if joint_slides else 1 / way}


def _positive(value: Any) -> Any:
    """The value where it is positive, else zero."""
    return (value + value * np.sign(value)) / 2
