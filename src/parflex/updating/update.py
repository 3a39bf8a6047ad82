"""`update`: from a robot and measured modes to the numbers of its file that fit them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.design.design_state import ResponseCase
from parflex.design.sensitivity import checked_keys
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError
from parflex.parameters.design_numbers import number_at
from parflex.robot.robot import Robot
from parflex.statics.load_case import LoadCase, read_load_case
from parflex.updating.fit import FitProblem, FitProgress, Progress, solutions
from parflex.updating.frequency_response import is_responses, modes_of_responses
from parflex.updating.measured import MeasuredMode, read_held_out, read_rows, read_table
from parflex.updating.modes import PoseModes, modes_at
from parflex.updating.pairing import modes_needed
from parflex.updating.result import FitReport, Updated

Array = np.ndarray
PRIOR = 0.3  # of a number, its deviation before anything was measured
SEEING = "check directions: FRAME.x is along an axis of the world, FRAME.local_x along one of the frame"
RESPONSES = "responses"  # key of a table that names a file of frequency responses
UNSETTLED = Diagnostic("unsure-pair", "pairs of measured modes and those of the model kept changing: number the modes")
FAR = 3.0  # times: numbers that are not known well seldom change frequencies by more; units do it by 6 or more
COUNTS = 0.5  # deviations of a measured frequency, by which gravity may change it


def update(
    robot: Robot,
    measured: Any,
    vary: Sequence[str] | str,
    hold_out: Sequence[str] | str = (),
    *,
    prior: float | Mapping[str, float] = PRIOR,
    lock: Any = "actuators",
    about: Any = None,
    servo: Any = None,
    without: Sequence[str] = (),
    progress: Progress | None = None,
    load_case: LoadCase | None = None,
) -> Updated:
    """Numbers of the robot file that fit measured modes best, by weighted least squares.

    Exact sensitivities of frequencies and damping ratios, pairs by frequency and MAC, priors; what is held out is
    predicted.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    measured : str, Path or Sequence
        CSV file with the columns pose, mode, frequency_hz, deviation_hz, damping, damping_deviation and those of
        shapes (FRAME.x, ...), or its rows; modes that are not numbered are found by frequency and shape (Hz). Also
        tables {'responses': FILE.uff or FILE.csv, 'pose': NAME, ...} of measured frequency responses.
    vary : Sequence[str]
        Keys of the robot file by dotted path, each of one number that is not zero.
    hold_out : Sequence[str], default ()
        What is predicted and not used: 'POSE', 'POSE:MODE' or ':MODE'.
    prior : float or Mapping[str, float], default 0.3
        Deviation of the numbers before anything is measured, as share of each; infinite: none (dimensionless).
    lock : Lock, default "actuators"
        Locked joints: 'actuators', 'none' or names.
    about : {'undeformed', 'equilibrium'}, default None
        State of linearisation; None is the equilibrium where springs are under tension, else the undeformed pose. A
        warning says where gravity makes frequencies about the equilibrium others.
    servo : float or Mapping[str, float], default None
        Stiffness of motors held by springs (N/m, N m/rad).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.
    progress : callable, default None
        Called with the steps that are done, and how many are known: files of responses, and fits from all starts.
    load_case : LoadCase, default None
        The same values in one object.

    Returns
    -------
    Updated
        Numbers with deviations, covariance, cosines between them, and all pairs of measured and computed modes.
    """
    keys = checked_keys(robot, vary)
    steps = FitProgress(progress)
    rows, diagnostics = read_measured(measured, steps)
    first = np.array([number_at(robot, key, "keys") for key in keys])
    for key, value in zip(keys, first, strict=True):
        if value == 0:
            raise InputError(f"'{key}' is zero, so shares of it are undefined", key="vary", value=key,
                             hint="give it a first value in the file")  # fmt: skip
    circumstances = ResponseCase(
        **vars(read_load_case(load_case, lock=lock, about=about, servo=servo, without=without))
    )
    fitting = FitProblem(robot, keys, first, rows, checked_priors(prior, keys), circumstances)
    fitting.apart = np.array(read_held_out(hold_out, [row.pose for row in rows], fitting.numbers()))
    units = unit_warnings(rows, fitting.start, fitting.of_pose)
    diagnostics += units + gravity_warnings(fitting)
    start = fitting.at(np.ones(len(keys)))
    if not fitting.used(start).any():
        few = any(mode >= 0 and not apart for mode, apart in zip(start.modes, fitting.apart, strict=True))
        why = "all measured modes have too few elements" if few else "no measured mode has a partner in the model"
        blind = fitting.unresponsive_sensors()
        if blind:
            why += f": {', '.join(blind)} see nothing of its modes"
        raise InputError(why, key="measured", value=robot.name,
                         hint="divide the elements of beams (elements=4)" if few
                         else "".join(map(str, units)) or (
                             SEEING if blind else "number the modes, or start from a model that is nearer"
                         ))  # fmt: skip
    candidates = solutions(fitting, start, steps)
    diagnostics += [] if candidates[0].settled else [UNSETTLED]
    return FitReport(fitting, fitting.before(candidates[0].fit, start), candidates).updated(diagnostics)


def read_measured(source: Any, steps: FitProgress | None = None) -> tuple[list[MeasuredMode], list[Diagnostic]]:
    """Modes of a CSV file, of files of frequency responses, or of rows; with diagnostics."""
    sources = [source] if isinstance(source, str | Path | Mapping) else source
    if not isinstance(sources, Sequence):
        raise InputError("measured modes are a file, or rows", key="measured", value=short_text(source),
                         hint="give a CSV file, or e.g. [{'pose': 'home', 'mode': 1, 'frequency_hz': 14}]")  # fmt: skip
    rows: list[Any] = []
    diagnostics: list[Diagnostic] = []
    files = [item for item in sources if isinstance(item, str | Path)]
    tables = [({RESPONSES: item} if is_responses(item) else read_table(item)) if isinstance(item, str | Path) else item
              for item in sources]  # fmt: skip
    steps = steps or FitProgress()
    steps.expect(sum(isinstance(item, Mapping) and RESPONSES in item for item in tables))
    for item in tables:
        if isinstance(item, Mapping) and RESPONSES in item:
            modes, messages = modes_of_responses(item)
            steps.step()
            rows += modes
            diagnostics += messages
        else:
            rows += item if isinstance(item, list) else [item]
    try:
        modes, messages = read_rows(rows)
    except InputError as error:
        error.file = error.file or (str(files[0]) if len(files) == 1 else None)
        raise
    return modes, diagnostics + messages


def checked_priors(prior: Any, keys: Sequence[str]) -> Array:
    """Deviations before anything is measured, as shares; infinite: none."""
    table = prior if isinstance(prior, Mapping) else dict.fromkeys(keys, prior)
    for key, value in table.items():
        if key not in keys:
            raise InputError(f"'{key}' has a prior and does not vary", key="prior", value=str(key),
                             hint=f"name keys that vary: {', '.join(keys)[:80]}")  # fmt: skip
        if not isinstance(value, Real) or isinstance(value, bool) or not float(value) > 0:
            raise InputError(f"the prior of '{key}' is not a positive number", key="prior", value=str(value),
                             hint=f"give a share of the number, e.g. {PRIOR}")  # fmt: skip
    return np.array([float(table.get(key, PRIOR)) for key in keys])


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
                    f"{far:.2g} deviations; use about='equilibrium'"
                )
                worst, message = far, [Diagnostic("neglected-gravity", text, pose, far)]
    return message
