"""Vibration responses: natural frequencies, simple or repeated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parflex.design.design_state import DesignState, MultipleValue
from parflex.design.reverse_gradients import form_program
from parflex.design.statics_responses import HeldState
from parflex.errors import InputError
from parflex.spatial.dual import Sensitive, slopes_last
from parflex.statics.mesh_error import warn_beyond_band
from parflex.statics.modes import USUAL, Modes, modes_of

Array = np.ndarray
BEYOND = 3  # modes that are found beyond the one that is asked for: they may be equal to it
EQUAL = 1e-6  # of a frequency: modes nearer to each other than this are taken as equal


def frequency(state: DesignState, argument: str) -> Any:
    """The natural frequency of mode k (1: the lowest), or the lowest in a band LOW-HIGH (Hz)."""
    held = HeldState(state)
    number, modes = _mode(held, argument)
    warn_beyond_band(state.robot, modes.frequencies[number], f"frequency:{argument or 1}")
    return frequency_of(held, modes, number)


def _mode(held: HeldState, argument: str) -> tuple[int, Modes]:
    """The number of the mode that is meant, from 0, and modes beyond it."""
    if "-" in argument:
        low, high = (_positive(word, argument) for word in argument.split("-", 1))
        modes = lowest_modes(held)
        inside = np.flatnonzero((modes.frequencies >= low) & (modes.frequencies <= high))
        if not len(inside):
            raise InputError(
                f"no natural frequency lies between {low:g} and {high:g} Hz",
                key="response",
                value=f"frequency:{argument}",
                hint="widen the band",
            )
        return int(inside[0]), modes
    if argument and not (argument.isdigit() and int(argument)):
        raise InputError(
            f"'{argument}' is not a mode", key="response", value=f"frequency:{argument}", hint="give frequency:1"
        )
    number = int(argument or 1) - 1
    modes = lowest_modes(held, number + BEYOND)
    if number >= len(modes.frequencies):
        raise InputError(
            f"mode {number + 1} is requested, but the robot has {len(modes.frequencies)}",
            key="response",
            value=f"frequency:{argument}",
            hint="request a lower mode",
        )
    return number, modes


def _positive(word: str, argument: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not (np.isfinite(value) and value >= 0):
        raise InputError(
            f"'{argument}' is not a band of frequencies", key="response", value=argument, hint="give frequency:20-80"
        )
    return value


def lowest_modes(held: HeldState, count: int | None = None) -> Modes:
    """So many modes, or all that have a frequency if they are fewer or no number is given."""
    return modes_of(held.model, max(len(held.model.names) if count is None else count, USUAL), or_fewer=True)


def frequency_of(held: HeldState, modes: Modes, number: int) -> Any:
    """The frequency of a mode with its slopes, theory (61): those of phi^T (K - lambda M) phi for a fixed lambda."""
    count = held.state.count
    if not count:
        return float(modes.frequencies[number])

    def changes(shapes: Array, omega2: float) -> Array:
        matrices = _backward(held, shapes, omega2)
        if matrices is not None:
            return matrices
        motions = held.there.along(held.independent(shapes))
        form = held.stiffness_of(motions) - omega2 * held.mass_of(motions)
        return np.moveaxis(slopes_last(form, Sensitive, count), 2, 0)

    return frequency_with_slopes(modes, number, changes)


def frequency_with_slopes(
    modes: Modes, number: int, changes: Callable[[Array, float], Array]
) -> Sensitive | MultipleValue:
    """The same where `changes` says how phi^T (K - lambda M) phi of columns phi changes: keys x columns x columns."""
    value = float(modes.frequencies[number])
    equal = np.flatnonzero(np.abs(modes.frequencies - value) <= EQUAL * value)
    omega2 = (2 * np.pi * float(np.mean(modes.frequencies[equal]))) ** 2
    matrices = changes(modes.shapes[:, equal], omega2) / (8 * np.pi**2 * value)  # d omega^2 = 8 pi^2 f df
    if len(equal) == 1:
        return Sensitive(value, matrices[:, 0, 0])
    return MultipleValue(value, (matrices + matrices.transpose(0, 2, 1)) / 2, int(np.searchsorted(equal, number)))


def _backward(held: HeldState, motions: Array, square: float) -> Array | None:
    """Derivatives of the form of equal modes by a program, where it is asked often; None where none covers it."""
    state, circumstances = held.state, held.state.case
    if not state.design.often or held.model.about != "undeformed":
        return None
    program = form_program(
        state.robot, state.keys, circumstances.lock, circumstances.servo, tuple(circumstances.without)
    )
    return None if program is None else program.changes(state.robot, held.model, motions, square, state.steps)
