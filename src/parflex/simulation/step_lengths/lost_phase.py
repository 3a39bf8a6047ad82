"""The phase that steps lose of vibrations over a run, and the step with which that moves nothing visibly.

A step of a method of order p turns a vibration by `omega h - C (omega h)^(p+1)`: over a run what is lost adds up. A
vibration that decays needs its phase for as long as it is there: its error is largest after one time constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.records import Record
from parflex.simulation.integrators.integrate import rounded_down
from parflex.simulation.integrators.tableaux import Alpha, Explicit, Gauss, phase_loss
from parflex.simulation.step_lengths.step_choice import DRIFTS

Array = np.ndarray
TAKES_PART = 0.1  # of the largest motion of a damped vibration: modes that do so last as long as it
# steps, times those that a run takes without it, and in all: with more of them a drift is told instead of followed
MOST_TIMES, FEW_STEPS = 4, 20_000
TOLD = 1.5  # times what is allowed: steps that follow a drift leave no more


@dataclass(frozen=True, eq=False, repr=False)
class Vibrations(Record):
    """Free vibrations of a run: circular frequencies, amplitudes (m), decays (1/s), and by what they may be off (m)."""

    omega: Array
    amplitude: Array
    decay: Array
    allowed: float
    by_inputs: bool = False

    def seen(self) -> Vibrations:
        """Those that are larger than what may be missed."""
        kept = self.amplitude > self.allowed
        return Vibrations(self.omega[kept], self.amplitude[kept], self.decay[kept], self.allowed, self.by_inputs)


def decays(omega: Array, damping: Array, sizes: Array) -> Array:
    """How fast each mode decays at least, under the damping d(acceleration)/d(rate) between modes of some sizes (m).

    Modes that damping couples become other vibrations; each lasts as long as the longest one that it takes part in.
    """
    count = len(omega)
    if not damping.any():
        return np.zeros(count)
    still, one = np.zeros((count, count)), np.eye(count)
    values, vectors = np.linalg.eig(np.block([[still, one], [-np.diag(omega**2), damping]]))
    moves = sizes[:, None] * np.hypot(omega[:, None] * np.abs(vectors[:count]), np.abs(vectors[count:]))
    part = moves > TAKES_PART * moves.max(axis=0)
    return np.where(part, np.maximum(-values.real, 0.0), np.inf).min(axis=1)


def lasting(decay: Array, time: float) -> Array:
    """The largest of t exp(-decay t) up to a time: what a drift of the phase in proportion to t moves."""
    longest = np.minimum(time, 1 / np.maximum(decay, 1e-300))
    return longest * np.exp(-decay * longest)


def followed_step(
    found: Vibrations, time: float, tableau: Gauss | Explicit | Alpha, count: float, longest: float
) -> tuple[float, float]:
    """The step that follows vibrations over a run, with `count` in a period at least; the frequency that asks for it.

    Where the drift of the phase asks for many more steps than periods and the longest step do, it does not count.
    """
    found = found.seen()
    if not len(found.omega):
        return np.inf, 0.0
    period = 2 * np.pi / count / found.omega
    phase = phase_steps(found, time, tableau)
    affordable = (phase * MOST_TIMES >= np.minimum(period, longest)) | (time <= FEW_STEPS * phase)
    steps = np.where(affordable, np.minimum(phase, period), period)
    k = int(np.argmin(steps))
    return float(steps[k]), float(found.omega[k])


def phase_steps(found: Vibrations, time: float, tableau: Gauss | Explicit | Alpha) -> Array:
    """The step of each vibration with which its lost phase moves nothing by more than is allowed."""
    factor, power = phase_loss(tableau)
    lost = found.amplitude * factor * found.omega * lasting(found.decay, time)
    return (found.allowed / np.maximum(lost, 1e-300)) ** (1 / power) / found.omega


def drift(all_found: tuple[Vibrations, ...], time: float, tableau: Gauss | Explicit | Alpha, step: float) -> str:
    """What steps lose of the vibrations over a run, where it is more than is allowed, and the step that would not."""
    factor, power = phase_loss(tableau)
    worst: tuple[float, float, float] = (0.0, 0.0, 0.0)
    wanted = np.inf
    for found in all_found:
        seen = found.seen()
        phases = factor * seen.omega * lasting(seen.decay, time) * (seen.omega * step) ** power
        off = seen.amplitude * np.minimum(phases, 2.0)
        if (off > TOLD * seen.allowed).any():
            k = int(np.argmax(off))
            worst = max(worst, (float(off[k]), float(phases[k]), float(seen.omega[k])))
            wanted = min(wanted, float(phase_steps(seen, time, tableau).min()))
    if not worst[0]:
        return ""
    off, phase, omega = worst
    return (
        f"{DRIFTS} at {omega / (2 * np.pi):.3g} Hz drift by up to {phase:.2g} rad in the run, {off:.2g} m, with "
        f"{2 * np.pi / omega / step:.0f} steps in a period: to follow them give a step of {rounded_down(wanted)}"
    )
