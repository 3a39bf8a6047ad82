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
from parflex.errors import InputError, did_you_mean
from parflex.forces.reactions import has_reaction, undetermined_reactions
from parflex.forces.sections import (
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
    names, found = reaction_names(robot), []
    known = {f"reaction.{name}": [f"reaction.{name}.{word}" for word in COMPONENTS] for name in names}
    single = {column for columns in known.values() for column in columns}
    said = {f"coupling.{coupling.name}.effort" for coupling in robot.description.coupling}
    said |= {f"element.{one.name}.{word}" for one in robot.description.element for word in ("length", "force")}
    for word in outputs:
        if word in known:
            found += known[word]
        elif word in single:
            found.append(word)
        elif word not in said and not is_place_output(str(word)) and not is_section_output(word):
            examples = [*sorted(said), *place_examples(robot), *section_examples(robot)]
            raise InputError(
                f"there is no output '{word}'", key="outputs", value=str(word),
                hint=did_you_mean(str(word), [*known, *sorted(single), *examples]),
            )  # fmt: skip
    found += [column for columns in known.values() for column in columns] if everything else []
    return list(dict.fromkeys(found))


def reactions_of_rows(
    problem: Problem, found: Mapping[str, Array], robot: Robot, chains: Sequence[BeamChain] = (), by_loose: bool = False
) -> tuple[dict[str, Array], dict[int, Array]]:
    """Force and moment of each joint and closure of the robot in all rows of a run, (rows, 6).

    Then the signals of the elements of some beams. `by_loose`: see `joint_wrenches`.
    """
    motors, gates = len(problem.robot.actuated), found["gates"]
    state = {"q": found["q"], "position_rates": found["change"], "accelerations": found["accelerations"]}
    state |= {"effort": found["effort"]} | ({"gates": gates} if gates.shape[1] else {})
    for k, frame in enumerate(problem.wrenches):
        state[f"wrench_{frame}"] = found["given"][:, motors + 6 * k : motors + 6 * k + 6]
    count, size = len(found["q"]), max(1, robot.closures.size * len(robot.free))
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
    found = np.full(rows.shape[:2], np.nan)
    J_t = rows[good].transpose(0, 2, 1)
    if redundant:
        found[good] = np.einsum("tij,tj->ti", np.linalg.pinv(J_t, rcond=RANK), missing[good])
        return found
    Q, R = np.linalg.qr(J_t)
    right = np.einsum("tij,ti->tj", Q, missing[good])
    try:
        found[good] = np.linalg.solve(R, right[..., None])[..., 0]
    except np.linalg.LinAlgError:  # a row at a singular pose
        found[good] = np.einsum("tij,tj->ti", np.linalg.pinv(J_t, rcond=RANK), missing[good])
    return found


def reaction_columns(wrenches: Mapping[str, Array], asked: Sequence[str]) -> dict[str, Array]:
    """The columns that are asked for."""
    words = {f"reaction.{name}.{word}": (name, k) for name in wrenches for k, word in enumerate(COMPONENTS)}
    return {column: wrenches[words[column][0]][:, words[column][1]] for column in asked}


def largest_reactions(t: Array, wrenches: Mapping[str, Array], asked: Sequence[str]) -> dict[str, Any]:
    """The largest force and moment of each joint and closure that is asked for, with their times."""
    found: dict[str, Any] = {}
    for name in [name for name in wrenches if any(column.startswith(f"reaction.{name}.") for column in asked)]:
        entry: dict[str, Any] = {}
        for word, part in (("force", slice(0, 3)), ("moment", slice(3, 6))):
            size = np.linalg.norm(wrenches[name][:, part], axis=1)
            row = int(np.nanargmax(size)) if np.isfinite(size).any() else 0
            entry |= {word: float(size[row]), f"{word}_time": float(t[row])}
        found[name] = entry
    return found


def undetermined_in_run(problem: Problem, q: Array, names: Sequence[str]) -> list[str]:
    """Of some joints and closures those whose reactions are not unique, since the robot is over-constrained."""
    if not problem.robot.mobility.redundant:
        return []
    loose = undetermined_reactions(Configuration(problem.robot, q))
    return [name for name in names if name in loose]


def add_reactions(
    problem: Problem, seen: Mapping[str, Array], columns: dict[str, Array], asked: Sequence[str],
    words: Sequence[SectionOutput] = (), spare: RedundantDrive | None = None, by_loose: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Put the reactions and section forces that are asked for into the columns; what is largest, for the summary."""
    chains = chains_to_follow(problem.robot, words)
    if not asked and not chains:
        return {}
    robot = with_all_motors(problem, spare)
    wrenches, elements = reactions_of_rows(problem, seen, robot, list(chains.values()), by_loose)
    told = add_sections(robot, chains, seen, elements, words, columns, problem.wrenches) if chains else {}
    inside = {*(word.beam for word in words), *([told["largest_stress"]["beam"]] if "largest_stress" in told else [])}
    tips = {robot.tree.links[chains[beam].tip].name: beam for beam in inside}
    loose = undetermined_in_run(problem, seen["q"][0], list(tips))
    told |= {"undetermined_sections": sorted(tips[tip] for tip in loose)} if loose else {}
    if not asked:
        return told
    columns |= reaction_columns(wrenches, asked)
    largest = largest_reactions(columns["t"], wrenches, asked)
    loose = undetermined_in_run(problem, seen["q"][0], list(largest))
    return told | {"largest_reactions": largest, "undetermined_reactions": loose}


def reaction_warnings(told: Mapping[str, Any]) -> list[str]:
    """Sentences where reactions or section forces are not unique."""
    found = list(told.get("stress_left_out", []))
    for key, what in (
        ("undetermined_reactions", "reactions"),
        ("undetermined_sections", "section forces and stresses"),
    ):
        names = told.get(key, [])
        shown = ", ".join(f"'{name}'" for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        if names:
            found.append(f"the robot is over-constrained: the {what} of {shown} are those of least norm")
    return found


def read_section_words(robot: Robot, outputs: Sequence[str]) -> list[SectionOutput]:
    """Columns of sections that are asked for, in words as BEAM.Mz@0.5 or BEAM.Mz@0:1:21."""
    words = [word for word in outputs if is_section_output(word)]
    chains = beam_chains(robot) if words else {}
    return [read_section_output(robot, chains, word) for word in dict.fromkeys(words)]


def chains_to_follow(robot: Robot, words: Sequence[SectionOutput]) -> dict[str, BeamChain]:
    """Beams that are asked for, and those whose stresses are known."""
    asked = {word.beam for word in words}
    return {name: one for name, one in beam_chains(robot).items() if name in asked or one.parts.fibres is not None}


def add_sections(
    robot: Robot, chains: Mapping[str, BeamChain], seen: Mapping[str, Array], signals: Mapping[int, Array],
    words: Sequence[SectionOutput], columns: dict[str, Array], frames: Sequence[str],
) -> dict[str, Any]:  # fmt: skip
    """Put what sections carry into the columns; gives the largest stress for the summary.

    Wrenches act on `frames`.
    """
    tree = robot.tree
    elements = {
        j: element_rows(tree, j, seen["q"], seen["change"], seen["accelerations"], own, frames)
        for j, own in signals.items()
    }
    for name, chain in chains.items():
        asked = [word for word in words if word.beam == name]
        forces = sections_at(chain, elements, [word.s for word in asked])
        for k, word in enumerate(asked):
            if word.quantity == STRESS:
                columns[word.word] = stresses(chain, forces[:, k], tree.planar)
            else:
                columns[word.word] = forces[:, k, FORCES.index(word.quantity)]
    left_out = missing_stress_warning(robot, chains)
    told = _largest(chains, elements, columns["t"], tree.planar)
    return told | ({"stress_left_out": left_out} if left_out else {})


def _largest(
    chains: Mapping[str, BeamChain], elements: Mapping[int, ElementRows], t: Array, planar: bool
) -> dict[str, Any]:
    most = largest_stress(chains, elements, planar)
    if most is None:
        return {}
    told: dict[str, Any] = {"beam": most.beam, "s": most.s, "time": float(t[most.row]), "value": most.value}
    return {"largest_stress": told}


def inconsistent_shares(
    problem: Problem, seen: Mapping[str, Array], columns: Mapping[str, Array], reactions: Sequence[str],
    places: Sequence[PlaceOutput], words: Sequence[SectionOutput], spare: RedundantDrive | None = None, every: int = 1,
) -> dict[str, float]:  # fmt: skip
    """Columns that differ from what the rates of the rows say, and by how much, of the largest of their kind.

    Where there are many steps from row to row (`every`), steps may follow what rows do not show, and what rigid robots
    do follows from their inputs at once: then only outputs that are asked for are judged.
    """
    if not _moves(problem, seen, columns["t"]):
        return {}
    other, good = by_rate_differences(problem, seen, columns["t"])
    again = {"t": columns["t"]}
    felt = [word for word in places if word.inner is not None or by_acceleration([word.column])]
    if (reactions or felt or words) and inconsistent_share(problem, seen, columns) > ROUGH:
        add_places(problem.robot.tree, felt, other, again)
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
    problem: Problem, shares: Mapping[str, float], asked: Collection[str], follows: AccelerationFilter
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


def inconsistent_share(problem: Problem, seen: Mapping[str, Array], columns: Mapping[str, Array]) -> float:
    """How far accelerations of all rates are off, root mean square, of these; none where nothing moves."""
    known = _known(problem)
    if not _moves(problem, seen, columns["t"]):
        return 0.0
    weights = metres_per_unit(problem.robot.tree)[known]
    other, good = by_rate_differences(problem, seen, columns["t"])
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
    rates = (
        seen["change"][:, [tree.position_names.index(tree.rate_names[k]) for k in known]] * metres_per_unit(tree)[known]
    )
    return float(np.abs(rates[np.isfinite(rates)]).max(initial=0.0)) * float(np.ptp(t)) > AT_REST * tree.length


def by_rate_differences(problem: Problem, seen: Mapping[str, Array], t: Array) -> tuple[dict[str, Array], Array]:
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
