"""Diagnostics of a run: end, energy balance, cables, limits, and accelerations in the rows.

Positions may be accurate although steps are too long for accelerations at their ends and for forces that follow from
them. Accelerations of coordinates, frames and outputs are therefore compared with the differences of the rates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.codegen.outputs import loses_power
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, SingularError
from parflex.forces.effort_allocation import driven_cables, read_limits
from parflex.integrators.driver import Grid, rounded_down
from parflex.robot.configuration import Configuration
from parflex.robot.limits import check_limits, efforts_of_file
from parflex.robot.robot import Robot
from parflex.simulation.outputs import Output, RunState, acceleration_columns, add_outputs, motion_columns
from parflex.simulation.problem import Problem, metres_per_unit
from parflex.simulation.quantities import BY_ACCELERATION, coordinate_rows, frame_difference, quantity
from parflex.trajectories.trajectory import Trajectory
from parflex.tree.tree import Tree

Array = np.ndarray
UNBALANCED = 0.01  # of the exchanged energy: an energy balance that is off by less is not reported
# of the largest energy, and of that of a robot that moves by its typical length in the time of a run: rounding
ROUNDED_ENERGY, LEAST_ENERGY = 1e-12, 1e-9
SAME_LENGTH = 1e-9  # of the time: rounding
MOST_NAMED = 3  # jumps in the diagnostics of a run

ROUGH = 0.15  # root mean square, of the largest: the rule over two rows errs by 7 % at 100 Hz and rows of 1 ms
SEEN = 2  # steps between rows, at most, for rows to resolve what steps resolve
AT_REST = 1e-10  # typical lengths: a robot that moves by less in a run is at rest, and its accelerations are rounding
OTHERS = {"gauss4": "gauss6 or generalized-alpha follow", "gauss6": "generalized-alpha follows"}  # stiff damping
BODIES, JOINTS = "accelerations inside bodies", "accelerations of joints"


# -- length and end ----------------------------------------------------------------------------------------


def refuse_longer(time: float, step: float | None, out_step: float | None, sample_time: float | None) -> None:
    """Raise if steps, rows or samples do not fit into the time of a run."""
    for key, value in (("step", step), ("out_step", out_step), ("sample_time", sample_time)):
        if value is not None and value > time * (1 + SAME_LENGTH):
            text = f"'{key}' ({value:g} s) is longer than the run ({time:g} s)"
            raise InputError(text, key=key, value=value, hint=f"give at most {time:g}, or a longer time")


def length_warnings(time: float, grid: Grid) -> list[Diagnostic]:
    """Return a diagnostic if a run ends after its time, at the next whole row."""
    end = grid.rows * grid.out_step
    if abs(end - time) <= SAME_LENGTH * time:
        return []
    text = f"the time {time:g} s is not a multiple of the rows' {grid.out_step:g} s: the run goes on to t = {end:.6g} s"
    return [Diagnostic("longer-run", text, "time", end)]


def jam_reason(robot: Robot, columns: Mapping[str, Array]) -> str | None:
    """Return why a robot with lossy rigid couplings has no acceleration after its last row; None if it has one."""
    if not loses_power(robot):
        return None
    q, qd = (coordinate_rows(robot, columns, word)[-1] for word in ("q", "qd"))
    tau = np.array([columns[f"effort.{name}"][-1] for name in robot.actuated_names])
    from parflex.dynamics.dynamics import accelerations_under  # not needed by successful runs

    try:
        accelerations_under(Configuration(robot, q), robot.tree.rates(q, qd), np.nan_to_num(tau))
    except SingularError as error:
        return error.message
    return None


def stop_warnings(summary: Mapping[str, Any]) -> list[Diagnostic]:
    """Return a diagnostic if a run did not reach its end."""
    if summary["status"] == "interrupted":
        text = f"the run was interrupted at t = {summary['time']:.6g} s"
        return [Diagnostic("interrupted", text, "time", summary["time"])]
    if "why" not in summary:
        return []
    text = f"the run stopped at t = {summary['stopped_at']:.6g} s: {summary['why']}"
    return [Diagnostic("stopped", text, "time", summary["stopped_at"])]


def partition_changed(changes: list[dict[str, Any]]) -> list[Diagnostic]:
    """Return a diagnostic if a run left the independent rates that were requested."""
    others = [change for change in changes if "independent" in change]
    if not others:
        return []
    names, time = ", ".join(f"'{name}'" for name in others[0]["independent"]), others[0]["time"]
    text = f"from t = {time:.4g} s on the specified independent rates determine the others poorly: the run goes on with"
    return [Diagnostic("changed-coordinates", f"{text} {names}", "time", time)]


def jump_warnings(jumps: list[dict[str, Any]]) -> list[Diagnostic]:
    """Return a diagnostic that names the first velocity jumps."""
    if not jumps:
        return []
    texts = [f"'{jump['joint']}' by {jump['jump']:.4g} at t = {jump['time']:.6g} s" for jump in jumps[:MOST_NAMED]]
    more = f" and {len(jumps) - MOST_NAMED} more" if len(jumps) > MOST_NAMED else ""
    text = f"the motion has velocity jumps: {', '.join(texts)}{more}; the motors apply an impulse there: add ramps"
    return [Diagnostic("velocity-jump", f"{text} if this is not intended", jumps[0]["joint"], jumps[0]["jump"])]


# -- energy ------------------------------------------------------------------------------------------------


def _unbalanced(columns: Mapping[str, Array]) -> Array:
    """Return the energy less the work of inputs plus losses, which the loop integrates with the motion."""
    total = columns["energy.total"]
    return total - total[0] - columns["work.input"] + columns["work.loss"]


def balance_error(columns: Mapping[str, Array]) -> float:
    """Return the largest error of the energy balance (J)."""
    return float(np.abs(_unbalanced(columns)).max())


def balance_warnings(columns: Mapping[str, Array], method: str, usual: float) -> list[Diagnostic]:
    """Return a diagnostic if the energy balance is off by more than a hundredth of the exchanged energy.

    `usual` is the energy (J) of a robot that moves by its own size in the run.
    """
    off, most = balance_error(columns), float(_unbalanced(columns).max())
    stored = [columns["energy.kinetic"], columns["energy.elastic"] + columns["energy.gravity"]]
    exchanged = max(float(np.ptp(values)) for values in (*stored, columns["work.input"], columns["work.loss"]))
    largest = max(float(np.abs(values).max()) for values in stored)
    allowed = max(UNBALANCED * exchanged, LEAST_ENERGY * usual, ROUNDED_ENERGY * largest)
    if not off > allowed:
        return []
    text = f"the energy balance is off by {off:.2g} J of {exchanged:.2g} J: the steps are too long for this motion"
    if method == "generalized-alpha" and not most > allowed:  # its numerical damping never adds energy
        text = f"the method generalized-alpha took {off:.2g} J of {exchanged:.2g} J out of the motion: use shorter "
        text += "steps, or a radius nearer to 1"
    return [Diagnostic("energy-balance", text, "energy", off)]


# -- cables, limits ----------------------------------------------------------------------------------------


def cable_warnings(robot: Robot, columns: Mapping[str, Array]) -> list[Diagnostic]:
    """Return a diagnostic for each driven cable that would have to push during a run."""
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


def limit_warnings(
    robot: Robot, columns: Mapping[str, Array], motors: Sequence[str], effort_limit: Any, motion: Any = None
) -> list[Diagnostic]:
    """Return a diagnostic for each limit that a run exceeds in its rows or, of motors that follow `motion`, in between.

    Limits of efforts that the call states (`effort_limit`) override those of the file.
    """
    if not len(columns["t"]):  # the run has not begun
        return []
    q, qd, effort = (
        {name.removeprefix(word): values for name, values in columns.items() if name.startswith(word)}
        for word in ("q.", "qd.", "effort.")
    )
    efforts = efforts_of_file({name: effort[name] for name in motors}, *read_limits(motors, effort_limit))
    violations = check_limits(robot, q, qd, efforts, columns["t"])
    limited = any(link.limits is not None or link.velocity_limit is not None for link in robot.tree.links)
    if isinstance(motion, Trajectory) and limited:
        violations += motion.violations(robot, float(columns["t"][-1]))
    return [each.diagnostic for each in {(each.joint, each.key): each for each in violations}.values()]


def friction_width_effect(
    columns: Mapping[str, Array], other: Mapping[str, Array], frame: str, width: float
) -> dict[str, Any]:
    """Return how far a frame and all coordinates differ in another run, with friction of half the width."""
    metres, radians, most = frame_difference(columns, other, frame)
    rows = min(len(other["t"]), len(columns["t"]))
    efforts = [np.abs(other[n][:rows] - columns[n][:rows]).max(initial=0.0) for n in columns if n.startswith("effort.")]
    return {
        "width": width,
        "half_width_moves": {"frame": frame, "metres": metres, "radians": radians},
        "half_width_changes_coordinate": most,
        "half_width_changes_efforts": float(max(efforts, default=0.0)),
    }


# -- accelerations in the rows -----------------------------------------------------------------------------


def inconsistent_shares(
    state: RunState, columns: Mapping[str, Array], outputs: Sequence[Output], every: float = 1
) -> dict[str, float]:
    """Return the columns that differ from the changes of the rates, and by which share of the largest of their kind.

    With many steps between rows (`every`), and for rigid robots, only requested outputs are compared.
    """
    tree, t = state.robot.tree, state.t
    known = [k for k, name in enumerate(tree.rate_names) if name in tree.position_names]
    rates = state["change"][:, [tree.position_names.index(tree.rate_names[k]) for k in known]]
    weights = metres_per_unit(tree)[known]
    fastest = float(np.max(np.abs(rates * weights), initial=0.0, where=np.isfinite(rates)))
    if len(t) < 3 or not fastest * float(np.ptp(t)) > AT_REST * tree.length:
        return {}
    other, again = _with_differences(state, known, rates), dict[str, Array]()
    good = np.isfinite(other["accelerations"]).all(axis=1)
    affected = [output for output in outputs if output.inner or quantity(output.column).name in BY_ACCELERATION]
    accelerations = state["accelerations"][:, known] * weights
    missed = other["accelerations"][:, known] * weights - accelerations
    if affected and _mean(missed[good]) > ROUGH * max(_mean(accelerations), 1e-300):
        add_outputs(replace(other, by_loose=True), affected, again)
    if every > SEEN or not tree.elastic:
        return _shares(columns, again, good, {})
    for name in [name.removesuffix(".motion") for name in other.signals if name.endswith(".motion")]:
        moving = motion_columns(name, *other.frame(name)[1:], tree.planar)
        names = [word for word in moving if word in columns and quantity(word).name in BY_ACCELERATION]
        again |= {word: moving[word] for word in names}
    return _shares(columns, again | acceleration_columns(other), good, _kinds(tree))


def inconsistency_warnings(
    problem: Problem, shares: Mapping[str, float], requested: Collection[str], method: str, step: float, every: float
) -> list[Diagnostic]:
    """Return a diagnostic of requested columns that differ, else a short one of those that every run has.

    `step` is the mean step (s), `every` the number of steps in a row. Accelerations inside flexible bodies are in the
    summary only, since axial vibrations have no other effect.
    """
    kinds = _kinds(problem.robot.tree)
    rough = [name for name in shares if kinds.get(name, ("", 1.0))[0] != BODIES]
    asked = [name for name in rough if name in requested]
    if not rough:
        return []
    others = OTHERS.get(method, "")
    cure = f"the rows are {every:.0f} steps apart; give an out_step of {rounded_down(SEEN * step)}"
    if every <= SEEN:
        follow = f"{others} stiff damping, shorter steps vibrations" if others else "shorter steps follow both"
        cure = f"the steps do not follow vibrations, or damping that is stiff; {follow}"
    worst = max(asked or rough, key=lambda name: shares[name])
    by = f"by {100 * shares[worst]:.2g} % (root mean square) from"
    more = f" (and {len(asked) - 1} more outputs)" if len(asked) > 1 else ""
    text = f"accelerations in the rows, '{worst}' most, differ {by} the changes of the rates: {cure}"
    if asked:
        text = f"'{worst}'{more} differs {by} the value by the rates of the rows: {cure}"
    return [Diagnostic("inconsistent-accelerations", text, worst, shares[worst])]


def _kinds(tree: Tree) -> dict[str, tuple[str, float]]:
    """Return the kind of each acceleration of a coordinate, of a joint or of a body, and metres per unit."""
    bent, sizes = {k for link in tree.links for k in range(link.e_v.start, link.e_v.stop)}, metres_per_unit(tree)
    return {f"qdd.{name}": (BODIES if k in bent else JOINTS, float(sizes[k])) for k, name in enumerate(tree.rate_names)}


def _shares(
    columns: Mapping[str, Array], again: Mapping[str, Array], good: Array, kinds: Mapping[str, tuple[str, float]]
) -> dict[str, float]:
    """Return the columns that differ by more than the error of a rule over two rows, by the largest of their kind.

    The largest is that of the smoother of both, since noise may exceed what it hides.
    """
    largest: dict[str, float] = {}
    shares = {}
    with np.errstate(invalid="ignore"):
        for name, values in again.items():
            kind, factor = kinds.get(name) or (quantity(name).name, 1.0)
            size = factor * min(_mean(columns[name][good]), _mean(values[good]))
            largest[kind] = max(largest.get(kind, 0.0), size)
            shares[name] = kind, factor * _mean((values - columns[name])[good])
    relative = {name: off / largest[kind] if largest[kind] > 0 else 0.0 for name, (kind, off) in shares.items()}
    return {name: share for name, share in relative.items() if share > ROUGH}


def _mean(values: Array) -> float:
    """Return the root mean square of finite values."""
    values = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0


def _with_differences(state: RunState, known: list[int], rates: Array) -> RunState:
    """Return the state with accelerations by differences of the known rates over two rows; none at the ends."""

    def changed(values: Array) -> Array:
        differences = np.full_like(values, np.nan)
        with np.errstate(all="ignore"):
            differences[1:-1] = (values[2:] - values[:-2]) / (state.t[2:] - state.t[:-2])[:, None]
        return differences

    accelerations = state["accelerations"].copy()
    accelerations[:, known] = changed(rates)
    result = {**state.signals, "accelerations": accelerations}
    for name in [name for name in state.signals if name.endswith(".motion")]:
        result[name] = np.concatenate([state[name][:, :6], changed(state[name][:, :6])], axis=1)
    return replace(state, signals=result)
