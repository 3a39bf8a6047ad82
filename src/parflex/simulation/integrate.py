"""Running the compiled loop: methods by name, portions short enough to be watched and interrupted, what went wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.simulation import tableaux
from parflex.simulation.system import COUNTS, NOT_CONVERGED, OK, STEP_TOO_SMALL, System, new_work

Array = np.ndarray
METHODS = ("gauss4", "gauss6", "rk4", "dopri5", "generalized-alpha")
CITATIONS = {
    "gauss4": "Gauss collocation of order 4, Hairer, Lubich and Wanner, Geometric Numerical Integration, II.1.3",
    "gauss6": "Gauss collocation of order 6, Hairer, Lubich and Wanner, Geometric Numerical Integration, II.1.3",
    "rk4": "the classical Runge-Kutta method of order 4, Kutta 1901",
    "dopri5": "the pair of orders 5 and 4 of Dormand and Prince, J. Comput. Appl. Math. 6, 1980",
    "generalized-alpha": "generalized-alpha, Chung and Hulbert, J. Appl. Mech. 60, 1993",
}
PORTION = 0.1  # seconds of a call of the loop: how often the clock is shown and an interrupt is heard


@dataclass(frozen=True)
class Method:
    """An integrator: the compiled loop, its coefficients, and the sizes of its memory."""

    name: str
    steps: Any
    tableau: Any
    stages: int
    unknowns: int = 1


def method_named(name: str, radius: float = 0.8) -> Method:
    """The integrator of a name; `radius` is the spectral radius at infinity of generalized-alpha."""
    if name not in METHODS:
        raise InputError(f"there is no method '{name}'", key="method", value=name, hint=did_you_mean(name, METHODS))
    if not 0 <= radius <= 1:
        raise InputError("the spectral radius is from 0 to 1", key="radius", value=radius, hint="give e.g. 0.8")
    if name.startswith("gauss"):
        from parflex.simulation.loop_gauss import gauss_steps

        stages = int(name[-1]) // 2
        return Method(name, gauss_steps, tableaux.gauss(stages), stages, stages)
    if name == "generalized-alpha":
        from parflex.simulation.loop_alpha import alpha_steps

        return Method(name, alpha_steps, tableaux.generalized_alpha(radius), 1)
    from parflex.simulation.loop_explicit import adaptive_steps, explicit_steps

    if name == "rk4":
        return Method(name, explicit_steps, tableaux.rk4(), 4)
    return Method(name, adaptive_steps, tableaux.dopri5(), 7)


@dataclass
class Track:
    """Rows of inputs and outputs of the model in time, and how the run went."""

    t: Array
    x: Array
    y: Array
    seconds: float  # in the loop
    counts: dict[str, int]
    status: str = "ok"  # or "interrupted", "diverged"
    stopped: float | None = None  # when it diverged
    coordinate: str = ""
    why: str = ""


@dataclass(frozen=True)
class Grid:
    """Steps of length `step`, `every` of them between two rows of output, `rows` rows behind that of the start."""

    step: float
    every: int
    rows: int

    @property
    def out_step(self) -> float:
        """Time between two rows."""
        return self.step * self.every


def grid_of(time: float, step: float, out_step: float) -> Grid:
    """Steps no longer than asked, a whole number of them in each interval of output."""
    every = max(1, math.ceil(out_step / step * (1 - 1e-12)))
    rows = max(1, math.ceil(time / out_step * (1 - 1e-12)))
    return Grid(out_step / every, every, rows)


def run_loop(
    system: System,
    method: Method,
    grid: Grid,
    q: Array,
    qd: Array,
    names: list[str],
    tolerance: float,
    control: Callable[[int, Array, Array], None] | None = None,
    shown: Callable[[float], None] | None = None,
) -> Track:
    """Integrate from a state. `control` is called before each interval of output and may change the given inputs."""
    from parflex.simulation.loop import record

    q, qd = np.array(q, dtype=float), np.array(qd, dtype=float)
    work = new_work(system, method.stages, method.unknowns)
    width = work.x.shape[1] - len(system.constants)
    x, y = np.empty((grid.rows + 1, width)), np.empty((grid.rows + 1, system.outputs))
    seconds, done, portion = 0.0, 0, 1
    method.steps(  # no row is asked for: this compiles the loop, or reads it from the cache
        system, new_work(system, method.stages, method.unknowns), method.tableau, 0.0, grid.step, grid.every,
        q.copy(), qd.copy(), tolerance, x[:0], y[:0],
    )  # fmt: skip
    status = OK if record(system, work, 0.0, q, qd, x[0], y[0]) else 2
    interrupted = False
    try:
        while done < grid.rows and status == OK:
            if control is not None:
                control(done, x[done], y[done])
                portion = 1
                if not done:  # the first row has the efforts that act from then on
                    record(system, work, 0.0, q, qd, x[0], y[0])
            last = min(grid.rows, done + portion)
            begin = perf_counter()
            filled, status = method.steps(
                system, work, method.tableau, done * grid.out_step, grid.step, grid.every, q, qd, tolerance,
                x[done + 1 : last + 1], y[done + 1 : last + 1],
            )  # fmt: skip
            spent = perf_counter() - begin
            seconds += spent
            done += filled
            portion = max(1, min(4 * portion, int(portion * PORTION / max(spent, 1e-6))))
            if shown is not None:
                shown(done * grid.out_step)
    except KeyboardInterrupt:
        interrupted = True
    t = np.arange(done + 1) * grid.out_step
    counts = dict(zip(COUNTS[:5], (int(count) for count in work.counts[:5]), strict=True))
    track = Track(t, x[: done + 1], y[: done + 1], seconds, counts)
    if interrupted:
        track.status = "interrupted"
    elif status != OK:
        track.status, track.stopped = "diverged", float(done * grid.out_step)
        track.why = "the loops cannot be closed" if work.counts[-1] else _reason(status)
        size = np.abs(qd[system.free]) / system.units
        if len(size):
            track.coordinate = names[int(system.free[int(np.argmax(np.where(np.isfinite(size), size, np.inf)))])]
    return track


def _reason(status: int) -> str:
    if status == NOT_CONVERGED:
        return "the stages of a step are not found"
    return "the step becomes too small" if status == STEP_TOO_SMALL else "numbers are no longer finite"
