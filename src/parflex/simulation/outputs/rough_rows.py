"""Whether accelerations in the rows of a run, and the outputs that follow from them, are how its rates change.

Steps that are too long for the fastest vibrations still give right positions, but the accelerations at their ends, and
forces that follow from them, may be anything. Of these a run tells what it was asked for: accelerations of coordinates
that move none of it do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from parflex.models.inside_beams.beam_chains import SectionWord
from parflex.simulation.inputs.spare_motions import SpareMotors
from parflex.simulation.outputs.place_columns import PlaceWord, add_places
from parflex.simulation.problem import Problem, metres
from parflex.simulation.reactions_in_time import add_reactions
from parflex.simulation.refining.run_changes import quantity_of
from parflex.simulation.run_checks import by_acceleration

Array = np.ndarray
ROUGH = 0.15  # root mean square, of what is largest: the rule over two rows errs by 7 % at 100 Hz and rows of 1 ms
AT_REST = 1e-10  # m: what moves by less in a run is at rest, and its accelerations are rounding


def rough_warnings(
    problem: Problem, seen: Mapping[str, Array], columns: Mapping[str, Array], reactions: Sequence[str],
    places: Sequence[PlaceWord], words: Sequence[SectionWord], spare: SpareMotors | None = None,
) -> list[str]:  # fmt: skip
    """A sentence where outputs that are asked for differ from what the rates of the rows say."""
    felt = [word for word in places if word.inner is not None or by_acceleration([word.column])]
    if not (reactions or felt or words) or not rough_share(problem, seen, columns) > ROUGH:
        return []
    other, good = as_rates_change(problem, seen, columns["t"])
    again = {"t": columns["t"]}
    add_places(problem.robot.tree, felt, other, again)
    add_reactions(problem, other, again, reactions, words, spare, by_loose=True)
    return rough_columns(columns, again, good)


def rough_columns(columns: Mapping[str, Array], again: Mapping[str, Array], good: Array) -> list[str]:
    """A sentence where columns differ in some rows from those that follow from the rates, and the one that does most.

    Each is measured against the largest of its kind, as the smoother of both has it.
    """
    with np.errstate(invalid="ignore"):
        # noise may be larger than all that it hides
        sizes = {n: min(_mean(columns[n][good]), _mean(values[good])) for n, values in again.items() if n != "t"}
        missed = {name: _mean((again[name] - columns[name])[good]) for name in sizes}
    shares = {}
    for name in sizes:
        largest = max(size for other, size in sizes.items() if quantity_of(other) == quantity_of(name))
        shares[name] = missed[name] / largest if largest > 0 else 0.0
    rough = [name for name, share in shares.items() if share > ROUGH]
    if not rough:
        return []
    worst = max(rough, key=lambda name: shares[name])
    more = f" (and {len(rough) - 1} more outputs)" if len(rough) > 1 else ""
    return [
        f"'{worst}'{more} differs by {100 * shares[worst]:.2g} % (root mean square) from what the rates of the rows "
        "say: it holds vibrations that the steps or the rows do not follow; give a shorter step and rows, damping, or "
        "the method generalized-alpha"
    ]


def _mean(values: Array) -> float:
    """Root mean square of what is finite."""
    values = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0


def rough_share(problem: Problem, seen: Mapping[str, Array], columns: Mapping[str, Array]) -> float:
    """How far accelerations of all rates are off, root mean square, of these; none where nothing moves."""
    tree = problem.robot.tree
    known = [k for k, name in enumerate(tree.rate_names) if name in tree.position_names]
    if not known or len(columns["t"]) < 3:
        return 0.0
    weights = metres(tree)[known]
    rates = seen["change"][:, [tree.position_names.index(tree.rate_names[k]) for k in known]] * weights
    if not float(np.abs(rates[np.isfinite(rates)]).max(initial=0.0)) * float(np.ptp(columns["t"])) > AT_REST:
        return 0.0
    other, good = as_rates_change(problem, seen, columns["t"])
    own = seen["accelerations"][:, known] * weights
    missed = other["accelerations"][:, known] * weights - own
    return _mean(missed[good]) / max(_mean(own), 1e-300)


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
