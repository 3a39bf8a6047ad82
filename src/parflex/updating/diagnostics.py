"""Diagnostics before the fit, by frequencies of the file: their unit, omitted gravity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import ParflexError
from parflex.updating.fit import FitProblem
from parflex.updating.measured import MeasuredMode
from parflex.updating.modes import PoseModes, modes_at
from parflex.updating.pairing import modes_needed

FAR = 3.0  # times: numbers that are not known well seldom change frequencies by more; units do it by 6 or more
COUNTS = 0.5  # deviations of a measured frequency, by which gravity may change it


def unit_warnings(
    rows: Sequence[MeasuredMode], models: Mapping[str, PoseModes], of_pose: Mapping[str, Sequence[int]]
) -> list[Diagnostic]:
    """A diagnostic where frequencies are far from those of the file: by their number, or else by their order."""
    ratios = []
    for pose, indices in of_pose.items():
        ranked = sorted(indices, key=lambda k: rows[k].frequency)
        for place, k in enumerate(ranked):
            mode = place if rows[k].mode is None else (rows[k].mode or 1) - 1
            model = models[pose].frequencies
            ratios += [rows[k].frequency / model[mode]] if mode < len(model) else []
    ratio = float(np.exp(np.median(np.log(ratios)))) if len(ratios) > 1 else 1.0  # one may be off by any factor
    if 1 / FAR < ratio < FAR:
        return []
    text = (
        f"measured frequencies are about {ratio:.4g} times those of the file: check that frequency_hz is in Hz (rad/s "
        "are 6.283 times as many, rpm 60 times, kHz 0.001 times), and the numbers of the file"
    )
    return [Diagnostic("suspected-units", text, value=ratio)]


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
        for row, mode in zip(rows, fitting.pairing.pairs[pose], strict=True):
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
