"""Diagnostics before the fit, by frequencies of the file: other units than Hz, omitted gravity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import ParflexError
from parflex.updating.fit import FitProblem
from parflex.updating.measured import MeasuredMode
from parflex.updating.modes import PoseModes, modes_at
from parflex.updating.pairing import ALONE, FREQUENCY_WIDTH, first_pairs, modes_needed

UNITS = {"rad/s": 2 * np.pi, "rpm": 60.0, "kHz": 1e-3}  # numbers of each in one Hz
FAR = 2 * FREQUENCY_WIDTH  # numbers that are not known well seldom change frequencies by more; units do it by 6 or more
COUNTS = 0.5  # deviations of a measured frequency, by which gravity may change it
FEWEST = 2  # measured frequencies: one may be off by any factor


def unit_warnings(
    rows: Sequence[MeasuredMode], models: Mapping[str, PoseModes], of_pose: Mapping[str, Sequence[int]]
) -> list[Diagnostic]:
    """A diagnostic that names the unit in which frequencies are near those of the file, where they are not in Hz."""
    if len(rows) < FEWEST or _off(rows, models, of_pose, 1.0) <= FAR:
        return []
    for name, factor in UNITS.items():
        if _off(rows, models, of_pose, factor) <= FAR:
            text = (
                f"measured frequencies are about {factor:.4g} times those of the file: if they are in {name}, divide "
                f"frequency_hz and deviation_hz by {factor:.6g}"
            )
            return [Diagnostic("suspected-units", text, name, factor)]
    return []


def _off(
    rows: Sequence[MeasuredMode], models: Mapping[str, PoseModes], of_pose: Mapping[str, Sequence[int]], factor: float
) -> float:
    """Median of the distances between measured and computed frequencies, as logarithms of their ratios."""
    distances = []
    for pose, indices in of_pose.items():
        several = [replace(rows[k], frequency=rows[k].frequency / factor) for k in indices]
        for row, mode in zip(several, first_pairs(several, models[pose]).modes, strict=True):
            lost = FREQUENCY_WIDTH * np.sqrt(ALONE)
            distances.append(lost if mode < 0 else abs(np.log(row.frequency / models[pose].frequencies[mode])))
    return float(np.median(distances))


def gravity_warnings(fitting: FitProblem) -> list[Diagnostic]:
    """What to say where frequencies about the equilibrium are others; nothing where a state was asked for.

    Modes are compared by their number: where two of them change places on the way their frequencies are alike.
    """
    circumstances = fitting.case
    if circumstances.about is not None or "gravity" in circumstances.without or not fitting.robot.tree.gravity.any():
        return []
    worst, message = COUNTS, list[Diagnostic]()
    at_equilibrium = replace(circumstances, about="equilibrium")
    for pose, indices in fitting.of_pose.items():
        if fitting.states[pose] != "undeformed":
            continue
        rows, start = [fitting.rows[k] for k in indices], fitting.start[pose].frequencies
        try:
            rest = modes_at(fitting.robot, pose, at_equilibrium, modes_needed(rows)).modes.frequencies
        except ParflexError as error:
            text = (
                f"whether gravity changes the frequencies is not known: there is no equilibrium at '{pose}' "
                f"({error.message})"
            )
            return [Diagnostic("neglected-gravity", text, pose)]
        for row, mode in zip(rows, fitting.pairs[pose], strict=True):
            if not 0 <= mode < len(rest):
                continue
            far = abs(float(rest[mode] - start[mode])) / row.deviation
            if far > worst:
                text = (
                    f"gravity changes the frequencies: mode {mode + 1} at '{pose}' of the file has {rest[mode]:.5g} Hz "
                    f"about the equilibrium, and {start[mode]:.5g} Hz about the undeformed pose, which is taken: "
                    f"{far:.2g} deviations; ask about='equilibrium'"
                )
                worst, message = far, [Diagnostic("neglected-gravity", text, pose, far)]
    return message
