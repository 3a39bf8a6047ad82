"""Phase error of the vibrations of a run, and the step that makes it insignificant.

A step of a method of order p advances the phase of a vibration by `omega h - C (omega h)^(p+1)`: the error grows over
the run. For steps of any length, where amplitudes also change, the exact response of the method to a vibration is used.
The error of a decaying vibration is largest after one time constant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.integrators.driver import rounded_down
from parflex.integrators.tableaux import Alpha, Explicit, Gauss, amplification_factor, phase_error
from parflex.records import Record

Array = np.ndarray
TAKES_PART = 0.1  # of the largest motion of a damped vibration: modes that do so last as long as it
# steps, times those that a run takes without it, and in all: with more of them a drift is told instead of followed
MOST_TIMES, FEW_STEPS = 4, 20_000
TOLD = 1.5  # times what is allowed: steps that follow a drift leave no more
INSTANTS = 200  # of a run at which vibrations are compared, in a geometric row
SHORT = 1e-2  # rad in a step: below it the first power of what is lost is right to 1e-4
MOST_GROWTH = 1e6  # of vibrations for which steps are not stable: beyond it nothing is told apart


@dataclass(frozen=True, eq=False, repr=False)
class Vibrations(Record):
    """Free vibrations of a run: circular frequencies, amplitudes (m), decays (1/s), and by what they may be off (m)."""

    omega: Array
    amplitude: Array
    decay: Array
    allowed: float
    by_inputs: bool = False
    largest: float = 0.0  # deflection, m

    def seen(self) -> Vibrations:
        """Those that are larger than what may be missed."""
        kept = self.amplitude > self.allowed
        return replace(self, omega=self.omega[kept], amplitude=self.amplitude[kept], decay=self.decay[kept])


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
    factor, power = phase_error(tableau)
    lost = found.amplitude * factor * found.omega * lasting(found.decay, time)
    return (found.allowed / np.maximum(lost, 1e-300)) ** (1 / power) / found.omega


@dataclass(frozen=True)
class Drift:
    """What steps lose of the vibration that they move most: by how much it is then off, and when."""

    off: float  # m
    share: float  # of the largest one
    phase: float  # rad
    kept: float  # of the amplitude
    omega: float
    wanted: float  # s: the step that follows all vibrations
    beside: str = "amplitude"  # what the share is of, or the "deflection" under inputs


def drift_of(
    all_found: tuple[Vibrations, ...], time: float, tableau: Gauss | Explicit | Alpha, step: float
) -> Drift | None:
    """What steps lose of the vibrations over a run, where that is more than is allowed."""
    worst: Drift | None = None
    wanted = np.inf
    for found in all_found:
        seen = found.seen()
        told = [_lost(seen, k, time, tableau, step) for k in range(len(seen.omega))]
        if any(one.off > TOLD * seen.allowed for one in told):
            most = max(told, key=lambda one: one.off)
            worst = most if worst is None or most.off > worst.off else worst
            wanted = min(wanted, float(phase_steps(seen, time, tableau).min()))
    return None if worst is None else replace(worst, wanted=wanted)


def lost_in_a_step(tableau: Gauss | Explicit | Alpha, angle: float) -> tuple[float, float]:
    """The phase (rad) that a step loses of a vibration which it should turn by an angle, and what amplitudes keep."""
    if angle < SHORT:  # roots of short steps differ by rounding
        factor, power = phase_error(tableau)
        return factor * angle ** (power + 1), 1.0
    turn = amplification_factor(tableau, angle)
    return abs(angle - float(np.angle(turn))), max(abs(turn), 1e-300)


def _lost(seen: Vibrations, k: int, time: float, tableau: Gauss | Explicit | Alpha, step: float) -> Drift:
    """Of one vibration, when it is off most: phases and amplitudes that steps lose beside those that damping leaves."""
    angle = float(seen.omega[k]) * step
    lost, left = lost_in_a_step(tableau, angle)
    t = np.append(np.geomspace(min(step, time), time, INSTANTS), min(time, 1 / max(seen.decay[k], 1e-300)))
    phase = t / step * lost
    kept = np.exp(np.minimum(t / step * np.log(left), np.log(MOST_GROWTH)))
    apart = np.abs(kept * np.exp(1j * np.minimum(phase, np.pi)) - 1)
    off = float(seen.amplitude[k]) * np.exp(-seen.decay[k] * t) * apart
    worst = int(np.argmax(off))
    share = float(off[worst] / max(seen.largest, seen.allowed))
    beside, omega = "deflection" if seen.by_inputs else "amplitude", float(seen.omega[k])
    return Drift(float(off[worst]), share, float(phase[worst]), float(kept[worst]), omega, np.inf, beside)


def drift(
    all_found: tuple[Vibrations, ...], time: float, tableau: Gauss | Explicit | Alpha, step: float
) -> list[Diagnostic]:
    """A diagnostic of what steps lose, with the step that would follow the vibrations."""
    lost = drift_of(all_found, time, tableau, step)
    if lost is None:
        return []
    each = 2 * np.pi / lost.omega / step
    moved = f"{lost.off:.2g} m ({lost.share:.2g} times the largest {lost.beside})"
    if lost.share < 1:
        moved = f"{lost.off:.2g} m ({100 * lost.share:.2g} % of the largest {lost.beside})"
    if lost.kept > 1 + lost.phase:
        how = f"grow {lost.kept:.2g} times in the run"
    elif 1 - lost.kept > min(lost.phase, 1.0):
        how = f"lose up to {100 * (1 - lost.kept):.2g} % of their amplitude in the run"
    else:
        how = f"drift by up to {lost.phase:.2g} rad in the run"
    text = (
        f"vibrations at {lost.omega / (2 * np.pi):.3g} Hz {how}, positions by {moved}, with {each:.3g} steps in a "
        f"period: to follow them give a step of {rounded_down(lost.wanted)}"
    )
    return [Diagnostic("lost-phase", text, "position", lost.off)]
