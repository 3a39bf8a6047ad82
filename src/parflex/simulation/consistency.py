"""Consistency of the accelerations of a run with the changes of its rates.

Steps that are too long for the fastest vibrations, or for stiff damping, still give right positions; accelerations at
their ends, and forces that follow from them, may be wrong. A run therefore compares the accelerations of its
coordinates, frames and outputs with the changes of its rates, and names the columns that differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.integrators.driver import rounded_down
from parflex.simulation.outputs import Output, RunState, acceleration_columns, add_outputs, motion_columns
from parflex.simulation.problem import Problem, metres_per_unit
from parflex.simulation.quantities import BY_ACCELERATION, quantity

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
    problem, tree = state.problem, state.robot.tree
    known = [k for k, name in enumerate(tree.rate_names) if name in tree.position_names]
    if not _moves(state, known):
        return {}
    other, good = by_rate_differences(state)
    again: dict[str, Array] = {}
    affected = [output for output in outputs if output.by_acceleration or output.inner]
    if affected:
        weights = metres_per_unit(tree)[known]
        accelerations = state["accelerations"][:, known] * weights
        missed = other["accelerations"][:, known] * weights - accelerations
        if _mean(missed[good]) > ROUGH * max(_mean(accelerations), 1e-300):
            add_outputs(replace(other, by_loose=True), affected, again)
    if every > SEEN or not any(link.e_v.stop > link.e_v.start for link in tree.links):
        return _shares(columns, again, good, {})
    for name in [name.removesuffix(".motion") for name in other.signals if name.endswith(".motion")]:
        _, rotation, motion = other.frame(name)
        moving = motion_columns(name, rotation, motion, tree.planar)
        moving = {word: values for word, values in moving.items() if quantity(word).name in BY_ACCELERATION}
        again |= {word: values for word, values in moving.items() if word in columns}
    return _shares(columns, again | acceleration_columns(other), good, _kinds(problem))


@dataclass(frozen=True)
class AccelerationFilter:
    """How a run follows accelerations: its method, its mean step (s), and how many steps there are in a row."""

    method: str
    step: float
    every: float

    @property
    def cure(self) -> str:
        """Why outputs are rough, and what to do."""
        if self.every > SEEN:
            return f"the rows are {self.every:.0f} steps apart; give an out_step of {rounded_down(SEEN * self.step)}"
        others = OTHERS.get(self.method, "")
        follow = f"{others} stiff damping, shorter steps vibrations" if others else "shorter steps follow both"
        return f"the steps do not follow vibrations, or damping that is stiff; {follow}"


def inconsistency_warnings(
    problem: Problem, shares: Mapping[str, float], requested: Collection[str], follows: AccelerationFilter
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """A diagnostic of columns that differ and were asked for; else a short one on those that every run has.

    Accelerations inside flexible bodies are in the summary alone: axial vibrations, which nothing but these shows,
    would give a warning in most runs.
    """
    kinds = _kinds(problem)
    rough = [name for name in shares if kinds.get(name, ("", 1.0))[0] != BODIES]
    rough_requested = [name for name in rough if name in requested]
    if not rough:
        return [], []
    worst = max(rough_requested or rough, key=lambda name: shares[name])
    by = f"{100 * shares[worst]:.2g} % (root mean square)"
    if not rough_requested:
        text = f"accelerations in the rows, '{worst}' most, differ by {by} from how rates change: {follows.cure}"
        return [], [Diagnostic("inconsistent-accelerations", text, worst, shares[worst])]
    more = f" (and {len(rough_requested) - 1} more outputs)" if len(rough_requested) > 1 else ""
    text = f"'{worst}'{more} differs by {by} from what the rates of the rows say: {follows.cure}"
    return [Diagnostic("inconsistent-accelerations", text, worst, shares[worst])], []


def _kinds(problem: Problem) -> dict[str, tuple[str, float]]:
    """Of accelerations of coordinates: those of joints are compared, and those of bodies; metres that one moves by."""
    tree = problem.robot.tree
    bent = {k for link in tree.links for k in range(link.e_v.start, link.e_v.stop)}
    sizes = metres_per_unit(tree)
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


def _moves(state: RunState, known: Sequence[int]) -> bool:
    """Whether a run moves at all, in rows of which differences can be taken."""
    tree, t = state.robot.tree, state.t
    if not known or len(t) < 3:
        return False
    places = [tree.position_names.index(tree.rate_names[k]) for k in known]
    rates = state["change"][:, places] * metres_per_unit(tree)[list(known)]
    return float(np.abs(rates[np.isfinite(rates)]).max(initial=0.0)) * float(np.ptp(t)) > AT_REST * tree.length


def by_rate_differences(state: RunState) -> tuple[RunState, Array]:
    """The state with accelerations by differences of rates over two rows, and the rows in which these are known."""
    tree, t = state.robot.tree, state.t
    between = t[2:] - t[:-2]
    good = np.zeros(len(t), dtype=bool)
    good[1:-1] = between > 0

    def changed(values: Array) -> Array:
        differences = np.full_like(values, np.nan)
        with np.errstate(all="ignore"):
            differences[1:-1] = (values[2:] - values[:-2]) / between[:, None]
        return differences

    accelerations = state["accelerations"].copy()
    pairs = [(k, name) for k, name in enumerate(tree.rate_names) if name in tree.position_names]
    places = [tree.position_names.index(name) for _, name in pairs]
    accelerations[:, [k for k, _ in pairs]] = changed(state["change"][:, places])
    result = {**state.signals, "accelerations": accelerations}
    for name in [name for name in state.signals if name.endswith(".motion")]:
        result[name] = np.concatenate([state[name][:, :6], changed(state[name][:, :6])], axis=1)
    return replace(state, signals=result), good & np.isfinite(accelerations).all(axis=1)
