"""Whether accelerations in the rows of a run, and the outputs that follow from them, are how its rates change.

Steps that are too long for the fastest vibrations, or for damping that is stiff, still give right positions, but the
accelerations at their ends, and forces that follow from them, may be anything. A run tells it of all columns that it
has: of coordinates, of its frames, and of what it was asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parflex.forces.sections import SectionOutput
from parflex.integrators.driver import Grid, rounded_down
from parflex.simulation.columns import motion_columns
from parflex.simulation.outputs.place_columns import PlaceWord, add_places
from parflex.simulation.outputs.reactions_in_time import add_reactions
from parflex.simulation.problem import Problem, metres
from parflex.simulation.refining.run_changes import quantity_of
from parflex.simulation.run_checks import by_acceleration
from parflex.trajectories.follow import RedundantDrive

Array = np.ndarray
ROUGH = 0.15  # root mean square, of what is largest: the rule over two rows errs by 7 % at 100 Hz and rows of 1 ms
SEEN = 2  # steps from row to row, at most, for rows to show what steps follow
# methods that follow stiff damping, beside the one that is used
OTHERS = {"gauss4": "gauss6 or generalized-alpha follow", "gauss6": "generalized-alpha follows"}
BODIES, JOINTS = "accelerations inside bodies", "accelerations of joints"
AT_REST = 1e-10  # typical lengths: what moves by less in a run is at rest, and its accelerations are rounding


def rough_shares(
    problem: Problem, seen: Mapping[str, Array], columns: Mapping[str, Array], reactions: Sequence[str],
    places: Sequence[PlaceWord], words: Sequence[SectionOutput], spare: RedundantDrive | None = None, every: int = 1,
) -> dict[str, float]:  # fmt: skip
    """Columns that differ from what the rates of the rows say, and by how much, of the largest of their kind.

    Where there are many steps from row to row (`every`), steps may follow what rows do not show, and what rigid robots
    do follows from their inputs at once: then only outputs that are asked for are judged.
    """
    if not _moves(problem, seen, columns["t"]):
        return {}
    other, good = as_rates_change(problem, seen, columns["t"])
    again = {"t": columns["t"]}
    felt = [word for word in places if word.inner is not None or by_acceleration([word.column])]
    if (reactions or felt or words) and rough_share(problem, seen, columns) > ROUGH:
        add_places(problem.robot.tree, felt, other, again)
        add_reactions(problem, other, again, reactions, words, spare, by_loose=True)
    if every > SEEN or not any(link.e_v.stop > link.e_v.start for link in problem.robot.tree.links):
        return rough_columns(columns, again, good)
    for name in [name.removesuffix(".motion") for name in other if name.endswith(".motion")]:
        moving = motion_columns(name, other[f"{name}.rotation"], other[f"{name}.motion"], problem.robot.tree.planar)
        again |= {word: values for word, values in moving.items() if word in columns and by_acceleration([word])}
    return rough_columns(columns, again | _of_coordinates(problem, other), good, _of_one_kind(problem))


@dataclass(frozen=True)
class Follows:
    """How a run follows accelerations: its method, its steps and rows, and vibrations that are known to be too fast."""

    method: str
    grid: Grid
    beside: str

    @property
    def cure(self) -> str:
        """Why outputs are rough, and what to do."""
        if self.beside:
            return f"vibrations {self.beside}"
        if not self.grid.begin and self.grid.every > SEEN:
            return (
                f"the rows are {self.grid.every} steps apart; give an out_step of {rounded_down(SEEN * self.grid.step)}"
            )
        others = OTHERS.get(self.method, "")
        follow = f"{others} stiff damping, shorter steps vibrations" if others else "shorter steps follow both"
        return f"the steps do not follow vibrations, or damping that is stiff; {follow}"


def rough_warnings(
    problem: Problem, shares: Mapping[str, float], asked: Collection[str], follows: Follows
) -> tuple[list[str], list[str]]:
    """A sentence on columns that differ and were asked for; else a short one on those that every run has.

    Accelerations inside flexible bodies are told in the summary alone: axial vibrations, which nothing but
    these shows, would be told of in most runs.
    """
    inside = {name for name, (kind, _) in _of_one_kind(problem).items() if kind == BODIES}
    rough = [name for name in shares if name not in inside]
    wanted = [name for name in rough if name in asked]
    if not rough:
        return [], []
    worst = max(wanted or rough, key=lambda name: shares[name])
    by = f"{100 * shares[worst]:.2g} % (root mean square)"
    if not wanted:
        return [], [f"accelerations in the rows, '{worst}' most, differ by {by} from how rates change: {follows.cure}"]
    more = f" (and {len(wanted) - 1} more outputs)" if len(wanted) > 1 else ""
    return [f"'{worst}'{more} differs by {by} from what the rates of the rows say: {follows.cure}"], []


def _of_coordinates(problem: Problem, seen: Mapping[str, Array]) -> dict[str, Array]:
    """Accelerations of the coordinates of a run, as its columns."""
    number = {name: k for k, name in enumerate(problem.robot.tree.rate_names)}
    return {f"qdd.{name}": seen["accelerations"][:, number[name]] for name in problem.independent}


def _of_one_kind(problem: Problem) -> dict[str, tuple[str, float]]:
    """Of accelerations of coordinates: those of joints are compared, and those of bodies; metres that one moves by."""
    tree = problem.robot.tree
    bent = {k for link in tree.links for k in range(link.e_v.start, link.e_v.stop)}
    sizes = metres(tree)
    return {f"qdd.{name}": (BODIES if k in bent else JOINTS, float(sizes[k])) for k, name in enumerate(tree.rate_names)}


def rough_columns(
    columns: Mapping[str, Array], again: Mapping[str, Array], good: Array,
    kinds: Mapping[str, tuple[str, float]] | None = None,
) -> dict[str, float]:  # fmt: skip
    """Columns that differ from those that follow from the rates by more than a rule over two rows errs.

    Each is measured against the largest of its kind, as the smoother of both has it; `kinds` have factors beside them
    by which units of one kind become one.
    """
    with np.errstate(invalid="ignore"):
        # noise may be larger than all that it hides
        sizes = {n: min(_mean(columns[n][good]), _mean(values[good])) for n, values in again.items() if n != "t"}
        missed = {name: _mean((again[name] - columns[name])[good]) for name in sizes}
    of = {name: (kinds or {}).get(name) or (quantity_of(name), 1.0) for name in sizes}
    largest: dict[str, float] = {}
    for name, (kind, factor) in of.items():
        largest[kind] = max(largest.get(kind, 0.0), factor * sizes[name])
    shares = {n: f * missed[n] / largest[kind] if largest[kind] > 0 else 0.0 for n, (kind, f) in of.items()}
    return {name: share for name, share in shares.items() if share > ROUGH}


def _mean(values: Array) -> float:
    """Root mean square of what is finite."""
    values = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0


def rough_share(problem: Problem, seen: Mapping[str, Array], columns: Mapping[str, Array]) -> float:
    """How far accelerations of all rates are off, root mean square, of these; none where nothing moves."""
    known = _known(problem)
    if not _moves(problem, seen, columns["t"]):
        return 0.0
    weights = metres(problem.robot.tree)[known]
    other, good = as_rates_change(problem, seen, columns["t"])
    own = seen["accelerations"][:, known] * weights
    missed = other["accelerations"][:, known] * weights - own
    return _mean(missed[good]) / max(_mean(own), 1e-300)


def _known(problem: Problem) -> list[int]:
    """Rates that are those of a coordinate."""
    tree = problem.robot.tree
    return [k for k, name in enumerate(tree.rate_names) if name in tree.position_names]


def _moves(problem: Problem, seen: Mapping[str, Array], t: Array) -> bool:
    """Whether a run moves at all, in rows of which differences can be taken."""
    known, tree = _known(problem), problem.robot.tree
    if not known or len(t) < 3:
        return False
    rates = seen["change"][:, [tree.position_names.index(tree.rate_names[k]) for k in known]] * metres(tree)[known]
    return float(np.abs(rates[np.isfinite(rates)]).max(initial=0.0)) * float(np.ptp(t)) > AT_REST * tree.length


def as_rates_change(problem: Problem, seen: Mapping[str, Array], t: Array) -> tuple[dict[str, Array], Array]:
    """Signals with accelerations by differences of rates over two rows, and the rows in which these are known."""
    tree = problem.robot.tree
    between = t[2:] - t[:-2]
    good = np.zeros(len(t), dtype=bool)
    good[1:-1] = between > 0

    def changed(values: Array) -> Array:
        found = np.full_like(values, np.nan)
        with np.errstate(all="ignore"):
            found[1:-1] = (values[2:] - values[:-2]) / between[:, None]
        return found

    accelerations = seen["accelerations"].copy()
    for k, name in enumerate(tree.rate_names):
        if name in tree.position_names:
            place = tree.position_names.index(name)
            accelerations[:, k] = changed(seen["change"][:, place : place + 1])[:, 0]
    found = dict(seen) | {"accelerations": accelerations}
    for name in [name for name in seen if name.endswith(".motion")]:
        found[name] = np.concatenate([seen[name][:, :6], changed(seen[name][:, :6])], axis=1)
    good &= np.isfinite(accelerations).all(axis=1)
    return found, good
