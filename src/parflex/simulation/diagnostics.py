"""Diagnostics of a run: energy balance, length, reason of its end, effect of the friction width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parflex.codegen.outputs import loses_power
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, SingularError
from parflex.forces.effort_allocation import driven_cables
from parflex.integrators.driver import Grid
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.simulation.quantities import coordinate_rows
from parflex.spatial.rotations import ORIENTATION

Array = np.ndarray
UNBALANCED = 0.01  # of the energy turned over: what an energy balance may be off without a word
# of the largest energy, and of that of a robot that goes its typical length in the time of a run: rounding
ROUNDED_ENERGY, LEAST_ENERGY = 1e-12, 1e-9
SAME_LENGTH = 1e-9  # of the time: rounding


def refuse_longer(time: float, step: float | None, out_step: float | None, sample_time: float | None) -> None:
    """Steps, rows and samples that do not fit into the time of a run."""
    for key, value in (("step", step), ("out_step", out_step), ("sample_time", sample_time)):
        if value is not None and value > time * (1 + SAME_LENGTH):
            text = f"'{key}' ({value:g} s) is longer than the run ({time:g} s)"
            raise InputError(text, key=key, value=value, hint=f"give at most {time:g}, or a longer time")


def length_warnings(time: float, grid: Grid) -> list[Diagnostic]:
    """A diagnostic where a run goes on behind its time, up to a whole row."""
    end = grid.rows * grid.out_step
    if abs(end - time) <= SAME_LENGTH * time:
        return []
    text = f"the time {time:g} s is not a multiple of the rows' {grid.out_step:g} s: the run goes on to t = {end:.6g} s"
    return [Diagnostic("longer-run", text, "time", end)]


def coupling_summary(robot: Robot, columns: Mapping[str, Array]) -> dict[str, Any]:
    """The largest effort in each coupling (N, N m), and when; none where no effort is known."""
    largest: dict[str, Any] = {}
    for coupling in robot.description.coupling:
        values = columns.get(f"coupling.{coupling.name}.effort", np.zeros(0))
        if np.isfinite(values).any():
            k = int(np.argmax(np.where(np.isfinite(values), np.abs(values), -1.0)))
            largest[coupling.name] = {"effort": float(values[k]), "time": float(columns["t"][k])}
    return {"couplings": largest} if largest else {}


def jam_reason(robot: Robot, columns: Mapping[str, Array]) -> str | None:
    """Why a run of a robot with lossy rigid couplings has no acceleration behind its last row; None: it has one."""
    if not loses_power(robot):
        return None
    q, qd = (coordinate_rows(robot, columns, word)[-1] for word in ("q", "qd"))
    tau = np.array([columns[f"effort.{name}"][-1] for name in robot.actuated_names])
    from parflex.dynamics.dynamics import accelerations_under  # which runs that go well do without

    try:
        accelerations_under(Configuration(robot, q), robot.tree.rates(q, qd), np.nan_to_num(tau))
    except SingularError as error:
        return error.message
    return None


def stop_warnings(summary: Mapping[str, Any]) -> list[Diagnostic]:
    """Why a run did not reach its end."""
    if summary["status"] == "interrupted":
        text = f"the run was interrupted at t = {summary['time']:.6g} s"
        return [Diagnostic("interrupted", text, "time", summary["time"])]
    if "why" not in summary:
        return []
    text = f"the run stopped at t = {summary['stopped_at']:.6g} s: {summary['why']}"
    return [Diagnostic("stopped", text, "time", summary["stopped_at"])]


def partition_changed(changes: list[dict[str, Any]]) -> list[Diagnostic]:
    """Whether a run went on with other independent rates than those that were asked for."""
    others = [change for change in changes if "independent" in change]
    if not others:
        return []
    names = ", ".join(f"'{name}'" for name in others[0]["independent"])
    text = (
        f"from t = {others[0]['time']:.4g} s on the independent rates that were given determine the others poorly: the "
        f"run goes on with {names}"
    )
    return [Diagnostic("changed-coordinates", text, "time", others[0]["time"])]


def cable_warnings(robot: Robot, columns: Mapping[str, Array]) -> list[Diagnostic]:
    """A diagnostic for each driven cable that would have to push during a run."""
    known = {name: columns.get(f"element.{name}.force", np.zeros(0)) for name in driven_cables(robot)}
    forces = {name: np.where(np.isfinite(force), force, 0.0) for name, force in known.items()}
    largest, warnings = max((float(np.abs(force).max(initial=0.0)) for force in forces.values()), default=0.0), []
    for name, force in forces.items():
        if force.min(initial=0.0) < -1e-9 * largest:
            t = float(columns["t"][int(np.argmax(force < 0))])
            text = (
                f"the cable '{name}' pulls only, but would have to push from t = {t:.4g} s on, at most with "
                f"{-float(force.min()):.4g} N: the run holds it as a rod; let the motors keep it taut, or give its "
                "coupling a stiffness, with which it may become slack"
            )
            warnings.append(Diagnostic("pushing-cable", text, name, -float(force.min())))
    return warnings


def _unbalanced(columns: Mapping[str, Array]) -> Array:
    """Energy less what the inputs put in and losses took out; the loop integrates both with the motion."""
    total = columns["energy.total"]
    return total - total[0] - columns["work.input"] + columns["work.loss"]


def balance_error(columns: Mapping[str, Array]) -> float:
    """The energy balance, where it is off most."""
    return float(np.abs(_unbalanced(columns)).max())


def balance_warnings(columns: Mapping[str, Array], method: str, usual: float) -> list[Diagnostic]:
    """A diagnostic where the energy balance is off by more than a hundredth of what was turned over.

    `usual` is the energy (J) of a robot that moves by its own size in the run.
    """
    off, most = balance_error(columns), float(_unbalanced(columns).max())
    stored = [columns["energy.kinetic"], columns["energy.elastic"] + columns["energy.gravity"]]
    turned = max(float(np.ptp(values)) for values in (*stored, columns["work.input"], columns["work.loss"]))
    largest = max(float(np.abs(values).max()) for values in stored)
    allowed = max(UNBALANCED * turned, LEAST_ENERGY * usual, ROUNDED_ENERGY * largest)
    if not off > allowed:
        return []
    text = f"the energy balance is off by {off:.2g} J of {turned:.2g} J: the steps are too long for this motion"
    if method == "generalized-alpha" and not most > allowed:  # it takes energy on purpose, but gives none
        text = (
            f"the method generalized-alpha took {off:.2g} J of {turned:.2g} J out of the motion: shorter steps, or a "
            "radius nearer to 1, take less"
        )
    return [Diagnostic("energy-balance", text, "energy", off)]


def frame_difference(
    columns: Mapping[str, Array], other: Mapping[str, Array], frame: str
) -> tuple[float, float, dict[str, Any]]:
    """How far a frame goes elsewhere in another run (m, rad), and the coordinate that does most, by its range."""
    rows = min(len(other["t"]), len(columns["t"]))

    def apart(name: str) -> float:
        return float(np.abs(other[name][:rows] - columns[name][:rows]).max(initial=0.0))

    metres = max((apart(name) for name in (f"{frame}.{axis}" for axis in "xyz") if name in columns), default=0.0)
    if f"{frame}.theta" in columns:
        radians = apart(f"{frame}.theta")
    else:
        first, second = (
            np.stack([run[f"{frame}.{word}"][:rows] for word in ORIENTATION], axis=1) for run in (columns, other)
        )
        sizes = [np.linalg.norm(first + sign * second, axis=1) for sign in (-1, 1)]  # q and -q are one turn
        radians = float((4 * np.arcsin(np.clip(np.minimum(*sizes) / 2, 0.0, 1.0))).max(initial=0.0))
    most, share = "", 0.0
    for name in (name for name in columns if name.startswith("q.") and name in other):  # runs may differ in elements
        ranged = float(np.ptp(columns[name][:rows]))
        if not most or (ranged > 0 and apart(name) / ranged > share):
            most, share = name.removeprefix("q."), apart(name) / ranged if ranged > 0 else 0.0
    return metres, radians, {"coordinate": most, "share_of_range": share}


def friction_width_effect(
    columns: Mapping[str, Array], other: Mapping[str, Array], frame: str, width: float
) -> dict[str, Any]:
    """How far a frame and all coordinates go elsewhere in another run, that with friction of half the width."""
    metres, radians, most = frame_difference(columns, other, frame)
    rows = min(len(other["t"]), len(columns["t"]))
    efforts = [np.abs(other[n][:rows] - columns[n][:rows]).max(initial=0.0) for n in columns if n.startswith("effort.")]
    return {
        "width": width,
        "half_width_moves": {"frame": frame, "metres": metres, "radians": radians},
        "half_width_changes_coordinate": most,
        "half_width_changes_efforts": float(max(efforts, default=0.0)),
    }
