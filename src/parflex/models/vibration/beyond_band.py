"""Frequencies beyond those for which beams of a robot are reduced: how much too high they may be."""

from __future__ import annotations

import warnings

import numpy as np

from parflex.errors import ParflexWarning
from parflex.robot.robot import Robot

Array = np.ndarray


def band_warnings(robot: Robot, frequencies: Array, what: str = "") -> list[str]:
    """One sentence about frequencies (Hz) beyond those for which a beam is reduced: modes, lowest first, or `what`.

    Their errors have a bound in the frequencies found, too: lambda >= lambda_k mu/(mu + lambda_k), theory (56).
    """
    said = {link.name: link.body.reduced for link in robot.tree.links if link.body.reduced is not None}
    lowest = min(said, key=lambda name: said[name].band, default="")
    beyond = np.flatnonzero(np.asarray(frequencies) > said[lowest].band) if lowest else np.zeros(0, dtype=int)
    if not beyond.size:
        return []
    highest, left_out = float(np.max(np.asarray(frequencies)[beyond])), min(one.left_out for one in said.values())
    if np.isinf(left_out):  # all modes are kept: nothing is higher
        return []
    modes = f"mode {beyond[0] + 1}" if len(beyond) == 1 else f"modes {beyond[0] + 1} to {beyond[-1] + 1}"
    much = f"{100 * (np.sqrt(1 + (highest / left_out) ** 2) - 1):.3g} %"
    digit = 10.0 ** (np.floor(np.log10(highest)) - 1)
    return [
        f"{what or modes} (up to {highest:.4g} Hz): beyond the band of {said[lowest].band:g} Hz for which '{lowest}' "
        f"is reduced, frequencies may be up to {much} higher than with all elements; "
        f"give 'reduce' a band of {np.ceil(highest / digit) * digit:g} Hz"
    ]


def warn_beyond_band(robot: Robot, frequencies: Array, level: int, what: str = "frequencies of the map") -> None:
    """Warn once of the highest of all frequencies (Hz), in any order."""
    found = np.asarray(frequencies, dtype=float).ravel()
    for told in band_warnings(robot, found[np.isfinite(found)], what):
        warnings.warn(told, ParflexWarning, stacklevel=level + 1)
