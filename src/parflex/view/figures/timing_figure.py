"""A picture of a time-optimal motion: speeds in the phase plane under their limit, and efforts with their bounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.errors import InputError
from parflex.trajectories.motor_motion import MotorMotion
from parflex.view.figures.style import LINES, REST, drawing, finished, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HIGHEST = 2.0  # times the highest speed: the limit is drawn so far up


def draw_timing(plan: MotorMotion, path: str | Path | None = None) -> Figure:
    """Phase plane (path speed over place, with the highest speed that limits allow) and efforts over time.

    Parameters
    ----------
    plan : MotorMotion
        Time-optimal motion, from `plan_motion`.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    if plan.timing is None:
        raise InputError(
            "this motion is not time-optimal", key="plan", value=plan.name, hint='plan "time-optimal" first'
        )
    with drawing(), styled():
        figure = new_figure(6.2)
        phases, efforts = figure.subplots(2, 1)
        _phase_plane(phases, plan.timing)
        _efforts(efforts, plan.timing)
        return finished(figure, path)


def _phase_plane(plot: Any, timing: Any) -> None:
    """All parts side by side, with their switching points."""
    begin, top = 0.0, max(part.speed.max() for part in timing.parts)
    unit = timing.parts[0].unit
    for index, part in enumerate(timing.parts):
        names = ("limit", "motion", "switch") if index == 0 else (None, None, None)
        plot.plot(begin + part.s, np.minimum(part.most, HIGHEST * top), color=REST, lw=2, label=names[0])
        plot.plot(begin + part.s, part.speed, color=LINES[0], label=names[1])
        places = [row["s"] + begin for row in part.switching]
        plot.plot(places, [row["speed"] for row in part.switching], "o", color=LINES[1], ms=4, label=names[2])
        begin += part.s[-1]
    plot.set_ylim(0, 1.25 * top)
    plot.set_xlim(0, begin)
    plot.set_xlabel(f"s ({unit})" if unit else "s (share of the move)")
    plot.set_ylabel(f"path speed ({unit}/s)" if unit else "path speed (1/s)")
    plot.set_title("Phase plane")
    plot.legend()


def _efforts(plot: Any, timing: Any) -> None:
    """Efforts as shares of their limits, so that motors of all sizes are seen; without limits as they are."""
    low, high = timing.effort_low, timing.effort_high
    bounded = np.isfinite([low, high]).all()
    centre, half = ((high + low) / 2, (high - low) / 2) if bounded else (0.0, 1.0)
    for k, motor in enumerate(timing.motors):
        for index, part in enumerate(timing.parts):
            shares = (part.efforts - centre) / half
            plot.plot(part.t, shares[:, k], color=LINES[k % len(LINES)], label=motor if index == 0 else None)
    if bounded:
        for bound in (-1, 1):
            plot.axhline(bound, color=REST, lw=2, zorder=0)
    plot.set_xlim(0, timing.time)
    plot.set_xlabel("time (s)")
    plot.set_ylabel("effort / limit" if bounded else "effort (N, N m)")
    plot.set_title("Efforts")
    plot.legend(ncols=2 if len(timing.motors) > 3 else 1, loc="center left", bbox_to_anchor=(1.0, 0.5))
