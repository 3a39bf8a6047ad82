"""Reactions, section forces and stresses over a run, and the consistency of its accelerations.

Steps that are too long for the fastest vibrations, or for stiff damping, still give right positions; accelerations at
their ends, and forces that follow from them, may be wrong. A run therefore compares the accelerations of its
coordinates, frames and outputs with the changes of its rates, and names the columns that differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.codegen.outputs import joint_wrenches
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, did_you_mean
from parflex.forces.reactions import has_reaction, undetermined_reactions
from parflex.forces.section_forces import (
    FORCES,
    STRESS,
    BeamChain,
    ElementRows,
    SectionOutput,
    beam_chains,
    element_rows,
    is_section_output,
    largest_stress,
    missing_stress_warning,
    read_section_output,
    section_examples,
    sections_at,
    stresses,
)
from parflex.integrators.driver import Grid, rounded_down
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.simulation.diagnostics import by_acceleration
from parflex.simulation.mesh_convergence import quantity_of
from parflex.simulation.outputs import (
    PlaceOutput,
    add_places,
    is_place_output,
    motion_columns,
    place_examples,
    with_all_motors,
)
from parflex.simulation.problem import Problem, metres_per_unit
from parflex.trajectories.follow import RedundantDrive

Array = np.ndarray

COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")

NUMBERS = 2e7  # of rows of closures over rates, that are held at a time

RANK = 1e-9  # of the largest singular value, as in reactions of one state

ROUGH = 0.15  # root mean square, of what is largest: the rule over two rows errs by 7 % at 100 Hz and rows of 1 ms

SEEN = 2  # steps from row to row, at most, for rows to show what steps follow

# methods that follow stiff damping, beside the one that is used
OTHERS = {"gauss4": "gauss6 or generalized-alpha follow", "gauss6": "generalized-alpha follows"}

BODIES, JOINTS = "accelerations inside bodies", "accelerations of joints"

AT_REST = 1e-10  # typical lengths: what moves by less in a run is at rest, and its accelerations are rounding


def reaction_names(robot: Robot) -> list[str]:
    """Joints, then closures."""
    joints = [link.name for link in robot.tree.links if has_reaction(link)]
    return [*joints, *(loop.name for loop in robot.closures.loops)]


def read_outputs(robot: Robot, outputs: Sequence[str], everything: bool) -> list[str]:
    """Columns of reactions that are asked for, in words as reaction.JOINT.fx, reaction.JOINT, or all of them.

    Words of sections are read elsewhere.
    """
    if isinstance(outputs, str):
        raise InputError("the outputs are a list of names", key="outputs", value=outputs, hint=f"write ['{outputs}']")
    names, requested = reaction_names(robot), []
    known = {f"reaction.{name}": [f"reaction.{name}.{word}" for word in COMPONENTS] for name in names}
    single = {column for columns in known.values() for column in columns}
    other_outputs = {f"coupling.{coupling.name}.effort" for coupling in robot.description.coupling}
    other_outputs |= {
        f"element.{element.name}.{word}" for element in robot.description.element for word in ("length", "force")
    }
    for word in outputs:
        if word in known:
            requested += known[word]
        elif word in single:
            requested.append(word)
        elif word not in other_outputs and not is_place_output(str(word)) and not is_section_output(word):
            examples = [*sorted(other_outputs), *place_examples(robot), *section_examples(robot)]
            raise InputError(
                f"there is no output '{word}'", key="outputs", value=str(word),
                hint=did_you_mean(str(word), [*known, *sorted(single), *examples]),
            )  # fmt: skip
    requested += [column for columns in known.values() for column in columns] if everything else []
    return list(dict.fromkeys(requested))


def reactions_of_rows(
    problem: Problem,
    run_signals: Mapping[str, Array],
    robot: Robot,
    chains: Sequence[BeamChain] = (),
    by_loose: bool = False,
) -> tuple[dict[str, Array], dict[int, Array]]:
    """Force and moment of each joint and closure of the robot in all rows of a run, (rows, 6).

    Then the signals of the elements of some beams. `by_loose`: see `joint_wrenches`.
    """
    motors, gates = len(problem.robot.actuated), run_signals["gates"]
    state = {
        "q": run_signals["q"],
        "position_rates": run_signals["change"],
        "accelerations": run_signals["accelerations"],
    }
    state |= {"effort": run_signals["effort"]} | ({"gates": gates} if gates.shape[1] else {})
    for k, frame in enumerate(problem.wrenches):
        state[f"wrench_{frame}"] = run_signals["given"][:, motors + 6 * k : motors + 6 * k + 6]
    count, size = len(run_signals["q"]), max(1, robot.closures.size * len(robot.free))
    length = max(1000, int(NUMBERS / size))  # rows at a time
    parts = [
        _wrenches(
            problem, {word: values[first : first + length] for word, values in state.items()}, robot, chains, by_loose
        )
        for first in range(0, max(count, 1), length)
    ]
    joints = {name: np.concatenate([part[0][name] for part in parts]) for name in parts[0][0]}
    return joints, {j: np.concatenate([part[1][j] for part in parts]) for j in parts[0][1]}


def _wrenches(
    problem: Problem, state: dict[str, Array], robot: Robot, chains: Sequence[BeamChain], by_loose: bool
) -> tuple[dict[str, Array], dict[int, Array]]:
    """The same of some rows."""
    redundant = by_loose or bool(robot.closures.size and robot.mobility.redundant)

    def multipliers(rows: Array, missing: Array) -> Array:
        return _multipliers(rows, missing, redundant)

    with np.errstate(all="ignore"):  # a row that is not finite stays so
        return joint_wrenches(robot, problem.independent, problem.width, state, multipliers, chains, by_loose)


def _multipliers(rows: Array, missing: Array, redundant: bool) -> Array:
    """Multipliers of least norm in all rows of a run, theory (18)."""
    good = np.isfinite(rows).all(axis=(1, 2)) & np.isfinite(missing).all(axis=1)
    multipliers = np.full(rows.shape[:2], np.nan)
    J_t = rows[good].transpose(0, 2, 1)
    if redundant:
        multipliers[good] = np.einsum("tij,tj->ti", np.linalg.pinv(J_t, rcond=RANK), missing[good])
        return multipliers
    Q, R = np.linalg.qr(J_t)
    right = np.einsum("tij,ti->tj", Q, missing[good])
    try:
        multipliers[good] = np.linalg.solve(R, right[..., None])[..., 0]
    except np.linalg.LinAlgError:  # a row at a singular pose
        multipliers[good] = np.einsum("tij,tj->ti", np.linalg.pinv(J_t, rcond=RANK), missing[good])
    return multipliers


def reaction_columns(wrenches: Mapping[str, Array], requested: Sequence[str]) -> dict[str, Array]:
    """The columns that are asked for."""
    words = {f"reaction.{name}.{word}": (name, k) for name in wrenches for k, word in enumerate(COMPONENTS)}
    return {column: wrenches[words[column][0]][:, words[column][1]] for column in requested}


def largest_reactions(t: Array, wrenches: Mapping[str, Array], requested: Sequence[str]) -> dict[str, Any]:
    """The largest force and moment of each joint and closure that is asked for, with their times."""
    largest: dict[str, Any] = {}
    for name in [name for name in wrenches if any(column.startswith(f"reaction.{name}.") for column in requested)]:
        entry: dict[str, Any] = {}
        for word, part in (("force", slice(0, 3)), ("moment", slice(3, 6))):
            size = np.linalg.norm(wrenches[name][:, part], axis=1)
            row = int(np.nanargmax(size)) if np.isfinite(size).any() else 0
            entry |= {word: float(size[row]), f"{word}_time": float(t[row])}
        largest[name] = entry
    return largest


def undetermined_in_run(problem: Problem, q: Array, names: Sequence[str]) -> list[str]:
    """Of some joints and closures those whose reactions are not unique, since the robot is over-constrained."""
    if not problem.robot.mobility.redundant:
        return []
    loose = undetermined_reactions(Configuration(problem.robot, q))
    return [name for name in names if name in loose]


def add_reactions(
    problem: Problem, run_signals: Mapping[str, Array], columns: dict[str, Array], requested: Sequence[str],
    words: Sequence[SectionOutput] = (), spare: RedundantDrive | None = None, by_loose: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Put the reactions and section forces that are asked for into the columns; what is largest, for the summary."""
    chains = chains_to_follow(problem.robot, words)
    if not requested and not chains:
        return {}
    robot = with_all_motors(problem, spare)
    wrenches, elements = reactions_of_rows(problem, run_signals, robot, list(chains.values()), by_loose)
    summary = add_sections(robot, chains, run_signals, elements, words, columns, problem.wrenches) if chains else {}
    inside = {
        *(word.beam for word in words),
        *([summary["largest_stress"]["beam"]] if "largest_stress" in summary else []),
    }
    tips = {robot.tree.links[chains[beam].tip].name: beam for beam in inside}
    loose = undetermined_in_run(problem, run_signals["q"][0], list(tips))
    summary |= {"undetermined_sections": sorted(tips[tip] for tip in loose)} if loose else {}
    if not requested:
        return summary
    columns |= reaction_columns(wrenches, requested)
    largest = largest_reactions(columns["t"], wrenches, requested)
    loose = undetermined_in_run(problem, run_signals["q"][0], list(largest))
    return summary | {"largest_reactions": largest, "undetermined_reactions": loose}


def reaction_warnings(summary: Mapping[str, Any]) -> list[Diagnostic]:
    """Diagnostics where reactions or section forces are not unique."""
    warnings = [Diagnostic("unknown-stress", text) for text in summary.get("stress_left_out", [])]
    for key, what in (
        ("undetermined_reactions", "reactions"),
        ("undetermined_sections", "section forces and stresses"),
    ):
        names = summary.get(key, [])
        shown = ", ".join(f"'{name}'" for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        if names:
            text = f"the robot is over-constrained: the {what} of {shown} are those of least norm"
            warnings.append(Diagnostic("undetermined-forces", text, names[0]))
    return warnings


def read_section_words(robot: Robot, outputs: Sequence[str]) -> list[SectionOutput]:
    """Columns of sections that are asked for, in words as BEAM.Mz@0.5 or BEAM.Mz@0:1:21."""
    words = [word for word in outputs if is_section_output(word)]
    chains = beam_chains(robot) if words else {}
    return [read_section_output(robot, chains, word) for word in dict.fromkeys(words)]


def chains_to_follow(robot: Robot, words: Sequence[SectionOutput]) -> dict[str, BeamChain]:
    """Beams that are asked for, and those whose stresses are known."""
    requested = {word.beam for word in words}
    return {
        name: chain for name, chain in beam_chains(robot).items() if name in requested or chain.parts.fibres is not None
    }


def add_sections(
    robot: Robot, chains: Mapping[str, BeamChain], run_signals: Mapping[str, Array], signals: Mapping[int, Array],
    words: Sequence[SectionOutput], columns: dict[str, Array], frames: Sequence[str],
) -> dict[str, Any]:  # fmt: skip
    """Put what sections carry into the columns; gives the largest stress for the summary.

    Wrenches act on `frames`.
    """
    tree = robot.tree
    elements = {
        j: element_rows(
            tree, j, run_signals["q"], run_signals["change"], run_signals["accelerations"], element_signals, frames
        )
        for j, element_signals in signals.items()
    }
    for name, chain in chains.items():
        requested = [word for word in words if word.beam == name]
        forces = sections_at(chain, elements, [word.s for word in requested])
        for k, word in enumerate(requested):
            if word.quantity == STRESS:
                columns[word.word] = stresses(chain, forces[:, k], tree.planar)
            else:
                columns[word.word] = forces[:, k, FORCES.index(word.quantity)]
    left_out = missing_stress_warning(robot, chains)
    summary = _largest(chains, elements, columns["t"], tree.planar)
    return summary | ({"stress_left_out": [each.text for each in left_out]} if left_out else {})


def _largest(
    chains: Mapping[str, BeamChain], elements: Mapping[int, ElementRows], t: Array, planar: bool
) -> dict[str, Any]:
    most = largest_stress(chains, elements, planar)
    if most is None:
        return {}
    entry: dict[str, Any] = {"beam": most.beam, "s": most.s, "time": float(t[most.row]), "value": most.value}
    return {"largest_stress": entry}


def inconsistent_shares(
    problem: Problem, run_signals: Mapping[str, Array], columns: Mapping[str, Array], reactions: Sequence[str],
    places: Sequence[PlaceOutput], words: Sequence[SectionOutput], spare: RedundantDrive | None = None, every: int = 1,
) -> dict[str, float]:  # fmt: skip
    """Columns that differ from what the rates of the rows say, and by how much, of the largest of their kind.

    Where there are many steps from row to row (`every`), steps may follow what rows do not show, and what rigid robots
    do follows from their inputs at once: then only outputs that are asked for are judged.
    """
    if not _moves(problem, run_signals, columns["t"]):
        return {}
    other, good = by_rate_differences(problem, run_signals, columns["t"])
    again = {"t": columns["t"]}
    affected_places = [word for word in places if word.inner is not None or by_acceleration([word.column])]
    if (reactions or affected_places or words) and inconsistent_share(problem, run_signals, columns) > ROUGH:
        add_places(problem.robot.tree, affected_places, other, again)
        add_reactions(problem, other, again, reactions, words, spare, by_loose=True)
    if every > SEEN or not any(link.e_v.stop > link.e_v.start for link in problem.robot.tree.links):
        return inconsistent_columns(columns, again, good)
    for name in [name.removesuffix(".motion") for name in other if name.endswith(".motion")]:
        moving = motion_columns(name, other[f"{name}.rotation"], other[f"{name}.motion"], problem.robot.tree.planar)
        again |= {word: values for word, values in moving.items() if word in columns and by_acceleration([word])}
    return inconsistent_columns(columns, again | _of_coordinates(problem, other), good, _of_one_kind(problem))


@dataclass(frozen=True)
class AccelerationFilter:
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


def inconsistency_warnings(
    problem: Problem, shares: Mapping[str, float], requested: Collection[str], follows: AccelerationFilter
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """A diagnostic of columns that differ and were asked for; else a short one on those that every run has.

    Accelerations inside flexible bodies are told in the summary alone: axial vibrations, which nothing but
    these shows, would be told of in most runs.
    """
    inside = {name for name, (kind, _) in _of_one_kind(problem).items() if kind == BODIES}
    rough = [name for name in shares if name not in inside]
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


def _of_coordinates(problem: Problem, run_signals: Mapping[str, Array]) -> dict[str, Array]:
    """Accelerations of the coordinates of a run, as its columns."""
    number = {name: k for k, name in enumerate(problem.robot.tree.rate_names)}
    return {f"qdd.{name}": run_signals["accelerations"][:, number[name]] for name in problem.independent}


def _of_one_kind(problem: Problem) -> dict[str, tuple[str, float]]:
    """Of accelerations of coordinates: those of joints are compared, and those of bodies; metres that one moves by."""
    tree = problem.robot.tree
    bent = {k for link in tree.links for k in range(link.e_v.start, link.e_v.stop)}
    sizes = metres_per_unit(tree)
    return {f"qdd.{name}": (BODIES if k in bent else JOINTS, float(sizes[k])) for k, name in enumerate(tree.rate_names)}


def inconsistent_columns(
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


def inconsistent_share(problem: Problem, run_signals: Mapping[str, Array], columns: Mapping[str, Array]) -> float:
    """How far accelerations of all rates are off, root mean square, of these; none where nothing moves."""
    known = _known(problem)
    if not _moves(problem, run_signals, columns["t"]):
        return 0.0
    weights = metres_per_unit(problem.robot.tree)[known]
    other, good = by_rate_differences(problem, run_signals, columns["t"])
    accelerations = run_signals["accelerations"][:, known] * weights
    missed = other["accelerations"][:, known] * weights - accelerations
    return _mean(missed[good]) / max(_mean(accelerations), 1e-300)


def _known(problem: Problem) -> list[int]:
    """Rates that are those of a coordinate."""
    tree = problem.robot.tree
    return [k for k, name in enumerate(tree.rate_names) if name in tree.position_names]


def _moves(problem: Problem, run_signals: Mapping[str, Array], t: Array) -> bool:
    """Whether a run moves at all, in rows of which differences can be taken."""
    known, tree = _known(problem), problem.robot.tree
    if not known or len(t) < 3:
        return False
    rates = (
        run_signals["change"][:, [tree.position_names.index(tree.rate_names[k]) for k in known]]
        * metres_per_unit(tree)[known]
    )
    return float(np.abs(rates[np.isfinite(rates)]).max(initial=0.0)) * float(np.ptp(t)) > AT_REST * tree.length


def by_rate_differences(problem: Problem, run_signals: Mapping[str, Array], t: Array) -> tuple[dict[str, Array], Array]:
    """Signals with accelerations by differences of rates over two rows, and the rows in which these are known."""
    tree = problem.robot.tree
    between = t[2:] - t[:-2]
    good = np.zeros(len(t), dtype=bool)
    good[1:-1] = between > 0

    def changed(values: Array) -> Array:
        differences = np.full_like(values, np.nan)
        with np.errstate(all="ignore"):
            differences[1:-1] = (values[2:] - values[:-2]) / between[:, None]
        return differences

    accelerations = run_signals["accelerations"].copy()
    for k, name in enumerate(tree.rate_names):
        if name in tree.position_names:
            place = tree.position_names.index(name)
            accelerations[:, k] = changed(run_signals["change"][:, place : place + 1])[:, 0]
    result = dict(run_signals) | {"accelerations": accelerations}
    for name in [name for name in run_signals if name.endswith(".motion")]:
        result[name] = np.concatenate([run_signals[name][:, :6], changed(run_signals[name][:, :6])], axis=1)
    good &= np.isfinite(accelerations).all(axis=1)
    return result, good
