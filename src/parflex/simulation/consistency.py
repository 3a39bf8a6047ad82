"""Consistency of the accelerations of a run with the changes of its rates.

Steps that are too long for the fastest vibrations, or for stiff damping, still give right positions; accelerations at
their ends, and forces that follow from them, may be wrong. A run therefore compares the accelerations of its
coordinates, frames and outputs with the changes of its rates, and names the columns that differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.integrators.driver import rounded_down
from parflex.simulation.outputs import Output, RunState, acceleration_columns, add_outputs, motion_columns
from parflex.simulation.problem import Problem, metres_per_unit
from parflex.simulation.quantities import BY_ACCELERATION, quantity
from parflex.tree.tree import Tree

Array = np.ndarray
ROUGH = 0.15  # root mean square, of what is largest: the rule over two rows errs by 7 % at 100 Hz and rows of 1 ms
SEEN = 2  # steps from row to row, at most, for rows to show what steps follow

# methods that follow stiff damping, beside the one that is used
OTHERS = {"gauss4": "gauss6 or generalized-alpha follow", "gauss6": "generalized-alpha follows"}
BODIES, JOINTS = "accelerations inside bodies", "accelerations of joints"
AT_REST = 1e-10  # typical lengths: what moves by less in a run is at rest, and its accelerations are rounding


def inconsistent_shares(
    state: RunState, columns: Mapping[str, Array], outputs: Sequence[Output], every: float = 1
) -> dict[str, float]:
    """Columns that differ from what the rates of the rows say, and by how much, of the largest of their kind.

    Where there are many steps from row to row (`every`), steps may follow what rows do not show, and what rigid robots
    do follows from their inputs at once: then only outputs that are asked for are judged.
    """
    tree, t = state.robot.tree, state.t
    known = [k for k, name in enumerate(tree.rate_names) if name in tree.position_names]
    rates = state["change"][:, [tree.position_names.index(tree.rate_names[k]) for k in known]]
    weights = metres_per_unit(tree)[known]
    fastest = float(np.max(np.abs(rates * weights), initial=0.0, where=np.isfinite(rates)))
    if len(t) < 3 or not fastest * float(np.ptp(t)) > AT_REST * tree.length:
        return {}
    other = _with_differences(state, known, rates)
    good = np.isfinite(other["accelerations"]).all(axis=1)
    again: dict[str, Array] = {}
    affected = [output for output in outputs if output.inner or quantity(output.column).name in BY_ACCELERATION]
    accelerations = state["accelerations"][:, known] * weights
    missed = other["accelerations"][:, known] * weights - accelerations
    if affected and _mean(missed[good]) > ROUGH * max(_mean(accelerations), 1e-300):
        add_outputs(replace(other, by_loose=True), affected, again)
    if every > SEEN or not tree.elastic:
        return _shares(columns, again, good, {})
    for name in [name.removesuffix(".motion") for name in other.signals if name.endswith(".motion")]:
        _, rotation, motion = other.frame(name)
        moving = motion_columns(name, rotation, motion, tree.planar)
        again |= {
            word: values
            for word, values in moving.items()
            if word in columns and quantity(word).name in BY_ACCELERATION
        }
    return _shares(columns, again | acceleration_columns(other), good, _kinds(tree))


def consistent_steps(method: str, step: float, every: float) -> str:
    """Why outputs of a run with a mean step, so many of them in a row, are rough, and what to do."""
    if every > SEEN:
        return f"the rows are {every:.0f} steps apart; give an out_step of {rounded_down(SEEN * step)}"
    others = OTHERS.get(method, "")
    follow = f"{others} stiff damping, shorter steps vibrations" if others else "shorter steps follow both"
    return f"the steps do not follow vibrations, or damping that is stiff; {follow}"


def inconsistency_warnings(
    problem: Problem, shares: Mapping[str, float], requested: Collection[str], cure: str
) -> list[Diagnostic]:
    """A diagnostic of columns that differ and were asked for; else a short one on those that every run has.

    Accelerations inside flexible bodies are in the summary alone: axial vibrations, which nothing but these shows,
    would give a warning in most runs.
    """
    kinds = _kinds(problem.robot.tree)
    rough = [name for name in shares if kinds.get(name, ("", 1.0))[0] != BODIES]
    asked = [name for name in rough if name in requested]
    if not rough:
        return []
    worst = max(asked or rough, key=lambda name: shares[name])
    by = f"by {100 * shares[worst]:.2g} % (root mean square) from"
    more = f" (and {len(asked) - 1} more outputs)" if len(asked) > 1 else ""
    text = f"accelerations in the rows, '{worst}' most, differ {by} how rates change: {cure}"
    if asked:
        text = f"'{worst}'{more} differs {by} what the rates of the rows say: {cure}"
    return [Diagnostic("inconsistent-accelerations", text, worst, shares[worst])]


def _kinds(tree: Tree) -> dict[str, tuple[str, float]]:
    """Of accelerations of coordinates: those of joints are compared, and those of bodies; metres that one moves by."""
    bent, sizes = {k for link in tree.links for k in range(link.e_v.start, link.e_v.stop)}, metres_per_unit(tree)
    return {f"qdd.{name}": (BODIES if k in bent else JOINTS, float(sizes[k])) for k, name in enumerate(tree.rate_names)}


def _shares(
    columns: Mapping[str, Array], again: Mapping[str, Array], good: Array, kinds: Mapping[str, tuple[str, float]]
) -> dict[str, float]:
    """Columns that differ from those that follow from the rates by more than a rule over two rows errs.

    Each is measured against the largest of its kind, as the smoother of both has it; `kinds` have factors beside them
    by which units of one kind become one.
    """
    of = {name: kinds.get(name) or (quantity(name).name, 1.0) for name in again}
    largest: dict[str, float] = {}
    shares = {}
    with np.errstate(invalid="ignore"):
        for name, (kind, factor) in of.items():  # noise may be larger than all that it hides
            size = factor * min(_mean(columns[name][good]), _mean(again[name][good]))
            largest[kind] = max(largest.get(kind, 0.0), size)
        for name, (kind, factor) in of.items():
            missed = factor * _mean((again[name] - columns[name])[good])
            shares[name] = missed / largest[kind] if largest[kind] > 0 else 0.0
    return {name: share for name, share in shares.items() if share > ROUGH}


def _mean(values: Array) -> float:
    """Root mean square of what is finite."""
    values = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0


def _with_differences(state: RunState, known: list[int], rates: Array) -> RunState:
    """The state with accelerations by differences over two rows of the rates that are known; at the ends none are."""

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
