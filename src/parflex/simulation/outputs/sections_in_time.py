"""Section forces and stresses of beams in the rows of a run: columns, and the largest stress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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
    sections_at,
    stresses,
)
from parflex.robot.robot import Robot

Array = np.ndarray


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
