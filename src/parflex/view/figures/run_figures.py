"""Figures of runs: time series, energies, spectra, and computed beside measured. Units stand on every axis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from parflex.errors import InputError
from parflex.robot.robot import Robot
from parflex.view.figures.run_numbers import Columns, chosen_columns, run_differences, spectrum
from parflex.view.figures.style import LINES, MEASURED, finished, legend_above, new_figure, styled, time_axis, titled
from parflex.view.figures.units import unit_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
MOST_PANELS = 8
ENERGIES = ("energy.kinetic", "energy.elastic", "energy.gravity", "energy.total")


def draw_run(run: Columns, path: str | Path | None = None, columns: Sequence[str] | None = None,
             robot: Robot | None = None, title: str = "") -> Figure:  # fmt: skip
    """Columns of a run over time, one panel for each unit.

    Parameters
    ----------
    run : Run or Mapping[str, Array]
        Columns by name, with time 't' in s.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    columns : Sequence[str], default None
        Columns to show; None: end effector, efforts and energies.
    robot : Robot, default None
        Robot, from `load`.
    title : str, default ""
        Title of the figure.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    groups = grouped(chosen_columns(run, columns), robot)
    with styled():
        figure = new_figure(0.6 + 1.75 * len(groups))
        panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
        for panel, ((unit, kind), names) in zip(panels, groups.items(), strict=True):
            for name in names:
                panel.plot(run["t"], run[name], label=name)
            panel.set_ylabel(axis_label(kind, unit))
            legend_above(panel, len(names))
        time_axis(panels[-1], run["t"])
        titled(figure, title)
        return finished(figure, path)


def draw_energies(run: Columns, path: str | Path | None = None, title: str = "") -> Figure:
    """Kinetic, elastic, gravitational and total energy over time, and the change of the total.

    Parameters
    ----------
    run : Run or Mapping[str, Array]
        Columns by name, with time 't' in s.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    title : str, default ""
        Title of the figure.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    names = energy_columns(run)
    with styled():
        figure = new_figure(4.4)
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
        for name, colour in zip(ENERGIES, LINES, strict=False):
            if name in names:
                line = "--" if name.endswith("total") else "-"  # it often lies upon another
                above.plot(run["t"], run[name], line, label=name.partition(".")[2], color=colour)
        above.set_ylabel(axis_label("energy", "J"))
        legend_above(above, len(names))
        below.plot(run["t"], run["energy.total"] - run["energy.total"][0], color=LINES[3])
        below.set_ylabel("change of total (J)")
        time_axis(below, run["t"])
        titled(figure, title)
        return finished(figure, path)


def energy_columns(run: Columns) -> list[str]:
    """The energies that a run has, but for those that are zero throughout."""
    if "energy.total" not in run:
        raise InputError(
            "the run has no energy columns", key="column", value="energy.total", hint="use one of 'simulate'"
        )
    return [name for name in ENERGIES if name in run and np.ptp(run[name]) + np.abs(run[name]).max(initial=0.0) > 0]


def draw_spectrum(run: Columns, path: str | Path | None = None, columns: Sequence[str] | None = None,
                  robot: Robot | None = None, natural: Array | None = None, highest: float | None = None,
                  title: str = "") -> Figure:  # fmt: skip
    """Amplitude spectrum of columns of a run, one panel for each unit.

    Parameters
    ----------
    run : Run or Mapping[str, Array]
        Columns by name, with time 't' in s.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    columns : Sequence[str], default None
        Columns to show; None: end effector, efforts and energies.
    robot : Robot, default None
        Robot, from `load`.
    natural : Array, default None
        Natural frequencies, drawn as thin lines (Hz).
    highest : float, default None
        Highest frequency drawn (Hz).
    title : str, default ""
        Title of the figure.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    groups = grouped(chosen_columns(run, columns), robot)
    top = 0.0
    with styled():
        figure = new_figure(0.6 + 2.0 * len(groups))
        panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
        for panel, ((unit, kind), names) in zip(panels, groups.items(), strict=True):
            for name in names:
                f, amplitude = spectrum(run["t"], run[name])
                top = float(f[-1])
                floor = max(float(amplitude[1:].max(initial=0.0)) * 1e-6, 1e-300)
                panel.semilogy(f[1:], np.maximum(amplitude[1:], floor), label=name)
            for k, value in enumerate([] if natural is None else natural):
                panel.axvline(value, color=MEASURED, linewidth=0.7, linestyle=":", zorder=0)
                if panel is panels[0] and value <= (highest or top):
                    panel.annotate(
                        f"{k + 1}", (value, 1.0), xycoords=("data", "axes fraction"), xytext=(2, -8),
                        textcoords="offset points", fontsize=7.5, color=MEASURED,
                    )  # fmt: skip
            panel.set_ylabel(f"amplitude ({unit})" if unit else "amplitude")
            panel.set_title(kind, fontsize=9, fontweight="normal", pad=4)
            legend_above(panel, len(names))
        panels[-1].set_xlabel("frequency (Hz)")
        panels[-1].set_xlim(0, highest or top)
        titled(figure, title)
        return finished(figure, path)


def draw_comparison(run: Columns, measured: Columns, path: str | Path | None = None,
                    columns: Sequence[str] | None = None, robot: Robot | None = None,
                    title: str = "") -> Figure:  # fmt: skip
    """Computed and measured columns, and below each pair their difference.

    Parameters
    ----------
    run : Run or Mapping[str, Array]
        Columns by name, with time 't' in s.
    measured : Run or Mapping[str, Array]
        Measured columns by name, with time 't' in s.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    columns : Sequence[str], default None
        Columns to show; None: end effector, efforts and energies.
    robot : Robot, default None
        Robot, from `load`.
    title : str, default ""
        Title of the figure.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    found = run_differences(run, measured, columns)
    chosen = list(found)
    with styled():
        figure = new_figure(0.6 + 2.5 * len(chosen))
        panels = figure.subplots(2 * len(chosen), 1, sharex=True, height_ratios=[2.4, 1] * len(chosen))
        for k, name in enumerate(chosen):
            unit, kind = unit_of(name, robot)
            above, below = panels[2 * k], panels[2 * k + 1]
            above.plot(measured["t"], measured[name], color=MEASURED, linewidth=0.9, label=f"{name}, measured")
            above.plot(run["t"], run[name], color=LINES[0], label=f"{name}, computed")
            above.set_ylabel(axis_label(kind, unit))
            legend_above(above, 2)
            below.plot(found[name].times, found[name].values, color=LINES[1], linewidth=0.9)
            below.set_ylabel(f"difference ({unit})" if unit else "difference")
            note = f"rms {found[name].rms:.3g} {unit}, largest {found[name].largest:.3g} {unit}"
            below.set_title(note, fontsize=8, fontweight="normal", pad=2)
        time_axis(panels[-1], run["t"])
        titled(figure, title)
        return finished(figure, path)


def grouped(columns: Sequence[str], robot: Robot | None) -> dict[tuple[str, str], list[str]]:
    """Columns by unit and kind; a group with too many lines is told to be one."""
    groups: dict[tuple[str, str], list[str]] = {}
    if not columns:
        raise InputError("there is nothing to draw", key="columns", hint="name columns of the run")
    for name in columns:
        groups.setdefault(unit_of(name, robot), []).append(name)
    if len(groups) > MOST_PANELS:
        raise InputError(
            f"{len(columns)} columns of {len(groups)} kinds do not fit into one figure",
            key="columns",
            value=len(groups),
            hint="name fewer columns, e.g. 'effort.*'",
        )
    return groups


def axis_label(kind: str, unit: str) -> str:
    """What an axis shows, and its unit."""
    return f"{kind} ({unit})" if unit else kind
