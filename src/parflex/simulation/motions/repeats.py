"""Motions that go on: repeated after a period, or known until a time alone."""

from __future__ import annotations

import numpy as np

from parflex.errors import InputError
from parflex.robotfile.motion_schema import MotionTable
from parflex.simulation.inputs.polynomials import Polynomials


def repeated(pieces: Polynomials, period: float, time: float, name: str) -> Polynomials:
    """The motion again and again; it must end where it began, within the period."""
    moved = np.abs(pieces.coefficients[-1, 0] - pieces.coefficients[0, 0]).max(initial=0.0)
    if moved > 1e-9 or pieces.breaks[-1] > period * (1 + 1e-9):
        raise InputError(
            "a motion with a period ends where it began, within the period",
            key=f"motions.{name}.period",
            value=period,
            hint="use a longer period, or moves that return to the start",
        )
    return laps(pieces, period, time)


def laps(pieces: Polynomials, period: float, time: float) -> Polynomials:
    """The pieces of the first period again and again until a time, then its last positions."""
    once = pieces.breaks < period * (1 - 1e-12)
    count = max(1, int(np.ceil(time / period)))
    breaks = [pieces.breaks[once] + lap * period for lap in range(count)]
    held = np.zeros((1, pieces.powers, pieces.channels))
    held[0, 0] = pieces.coefficients[-1, 0]
    coefficients = np.concatenate([np.tile(pieces.coefficients[once], (count, 1, 1)), held])
    return Polynomials(np.append(np.concatenate(breaks), count * period), coefficients)


def goes_on(motion: MotionTable, pieces: Polynomials) -> bool:
    """Whether the motion of a frame goes on behind what was planned of it."""
    if motion.kind in ("sines", "chirp"):
        return motion.duration is None or bool(pieces.breaks[-1] < motion.duration * (1 - 1e-9))
    return motion.law_word == "constant-speed" and motion.circle is not None and motion.circle.turns is None
