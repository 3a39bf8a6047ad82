"""Reactions of all joints and closures in the rows of a run: columns, and the largest values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.codegen.traces.reaction_signals import balance, joint_wrenches
from parflex.errors import InputError, did_you_mean
from parflex.models.configuration import Configuration
from parflex.models.dynamics.reactions import has_reaction, undetermined_reactions
from parflex.models.robot import Robot
from parflex.simulation.columns import with_all_motors
from parflex.simulation.inputs.spare_motions import SpareMotors
from parflex.simulation.outputs.place_columns import is_place_word, place_examples
from parflex.simulation.problem import Problem

Array = np.ndarray
COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")
RANK = 1e-9  # of the largest singular value, as in reactions of one state
FEW = 20_000  # rows up to which NumPy is done before a program would be compiled


def reaction_names(robot: Robot) -> list[str]:
    """Joints, then closures."""
    joints = [link.name for link in robot.tree.links if has_reaction(link)]
    return [*joints, *(loop.name for loop in robot.closures.loops)]


def read_outputs(robot: Robot, outputs: Sequence[str], everything: bool) -> list[str]:
    """Columns of reactions that are asked for, in words as reaction.JOINT.fx, reaction.JOINT, or all of them."""
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
        elif word not in said and not is_place_word(str(word)):  # which every run has, or which are read elsewhere
            raise InputError(
                f"there is no output '{word}'", key="outputs", value=str(word),
                hint=did_you_mean(str(word), [*known, *sorted(single), *sorted(said), *place_examples(robot)]),
            )  # fmt: skip
    found += [column for columns in known.values() for column in columns] if everything else []
    return list(dict.fromkeys(found))


def reactions_of_rows(problem: Problem, found: Mapping[str, Array], robot: Robot) -> dict[str, Array]:
    """Force and moment of each joint and closure of the robot in all rows of a run, (rows, 6)."""
    motors, gates = len(problem.robot.actuated), found["gates"]
    few = len(found["q"]) <= FEW
    state = {"q": found["q"], "position_rates": found["change"], "accelerations": found["accelerations"]}
    state |= {"effort": found["effort"]} | ({"gates": gates} if gates.shape[1] else {})
    for k, frame in enumerate(problem.wrenches):
        state[f"wrench_{frame}"] = found["given"][:, motors + 6 * k : motors + 6 * k + 6]
    state["multipliers"] = np.zeros((len(found["q"]), robot.closures.size))
    choice = (problem.wrenches, problem.width, few)
    with np.errstate(all="ignore"):  # a row that is not finite stays so
        if robot.closures.size:
            first = balance(robot, problem.independent, *choice)
            held = first.evaluate("numpy", **state) if few else first(**state)
            state["multipliers"] = _multipliers(held["rows"], held["missing"], bool(robot.mobility.redundant))
        second = joint_wrenches(robot, *choice)
        return second.evaluate("numpy", **state) if few else second(**state)


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
    spare: SpareMotors | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Put the reactions that are asked for into the columns; gives their largest values for the summary."""
    if not asked:
        return {}
    wrenches = reactions_of_rows(problem, seen, with_all_motors(problem, spare))
    columns |= reaction_columns(wrenches, asked)
    largest = largest_reactions(columns["t"], wrenches, asked)
    loose = undetermined_in_run(problem, seen["q"][0], list(largest))
    return {"largest_reactions": largest, "undetermined_reactions": loose}


def reaction_warnings(told: Mapping[str, Any]) -> list[str]:
    """A sentence where reactions are not unique."""
    names = told.get("undetermined_reactions", [])
    if not names:
        return []
    shown = ", ".join(f"'{name}'" for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return [f"the robot is over-constrained: the reactions of {shown} are those of least norm"]
