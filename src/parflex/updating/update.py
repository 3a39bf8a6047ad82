"""`update`: from a robot and measured modes to the numbers of its file that fit them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.design.design_state import ResponseCase
from parflex.design.sensitivity import checked_keys
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.parameters.design_numbers import number_at
from parflex.robot.robot import Robot
from parflex.statics.load_case import LoadCase, read_load_case
from parflex.updating.diagnostics import gravity_warnings, unit_warnings
from parflex.updating.fit import FitProblem, FitProgress, Progress, solutions
from parflex.updating.frequency_response import is_responses, modes_of_responses
from parflex.updating.measured import MeasuredMode, read_held_out, read_rows, read_table
from parflex.updating.result import FitReport, Updated

Array = np.ndarray
PRIOR = 0.3  # of a number, its deviation before anything was measured
SEEING = "check directions: FRAME.x is along an axis of the world, FRAME.local_x along one of the frame"
RESPONSES = "responses"  # key of a table that names a file of frequency responses
UNSETTLED = Diagnostic("unsure-pair", "pairs of measured modes and those of the model kept changing: number the modes")


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
            raise InputError(f"'{key}' is zero, and shares of it say nothing", key="vary", value=key,
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
    candidates, plain = solutions(fitting, start, steps)
    diagnostics += [] if candidates[0].settled else [UNSETTLED]
    return FitReport(fitting, fitting.before(candidates[0].fit, start), candidates, plain).updated(diagnostics)


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
