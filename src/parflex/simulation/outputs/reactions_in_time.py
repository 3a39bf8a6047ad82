"""Reactions of all joints and closures in the rows of a run: columns, and the largest values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.codegen.outputs import joint_wrenches
from parflex.errors import InputError, did_you_mean
from parflex.forces.reactions import has_reaction, undetermined_reactions
from parflex.forces.sections import BeamChain, SectionOutput, is_section_output, section_examples
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.simulation.columns import with_all_motors
from parflex.simulation.outputs.place_columns import is_place_word, place_examples
from parflex.simulation.outputs.sections_in_time import add_sections, chains_to_follow
from parflex.simulation.problem import Problem
from parflex.trajectories.follow import RedundantDrive

Array = np.ndarray
COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")
NUMBERS = 2e7  # of rows of closures over rates, that are held at a time
RANK = 1e-9  # of the largest singular value, as in reactions of one state


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
        elif word not in said and not is_place_word(str(word)) and not is_section_output(word):
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
