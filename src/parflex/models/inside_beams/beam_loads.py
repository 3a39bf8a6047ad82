"""What the beams of a robot carry in one state, at rest or in motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.models.inside_beams.beam_chains import FORCES, IN_PLANE, STRESS, BeamChain, beam_chains, read_share
from parflex.models.inside_beams.section_forces import (
    ElementRows,
    element_rows,
    element_signals_of,
    sections_at,
    sections_of_element,
)
from parflex.models.inside_beams.stresses import largest_stress, stresses
from parflex.records import Record, brief
from parflex.recursion.dynamics import NewtonEuler
from parflex.recursion.kinematics import motion
from parflex.robot.configuration import Configuration
from parflex.tree.tree import Tree

Array = np.ndarray
SHOWN = 11  # places along a beam in a table


@dataclass(frozen=True, eq=False, repr=False)
class BeamLoads(Record):
    """Forces, moments and stress in the sections of a beam in one state.

    Attributes
    ----------
    chain : BeamChain
        The beam and its elements.
    elements : dict[int, ElementRows]
        How each element moves and what acts on it, by the number of its link.
    planar : bool
        Whether the robot is planar: then only N, Vy and Mz are known.
    """

    chain: BeamChain
    elements: dict[int, ElementRows]
    planar: bool

    def at(self, s: float) -> dict[str, float]:
        """N, Vy, Vz (N), T, My, Mz (N m) and stress (Pa) at the share `s` of the length; planar N, Vy, Mz, stress."""
        return {word: values[0] for word, values in self.table([s]).items() if word != "s"}

    def table(self, s: Sequence[float] | None = None) -> dict[str, Any]:
        """The same at places `s`, as lists; None: at eleven places from root to tip."""
        places = np.linspace(0, 1, SHOWN).tolist() if s is None else list(s)
        for where in places:
            read_share(str(where), self.chain.name, "s", str(where))
        forces = sections_at(self.chain, self.elements, places)[0]
        found: dict[str, Any] = {"s": places} | {FORCES[k]: forces[:, k].tolist() for k in self._known}
        if self.chain.parts.fibres is not None:
            found[STRESS] = stresses(self.chain, forces, self.planar).tolist()
        return found

    def at_ends(self, tree: Tree) -> list[dict[str, Any]]:
        """The same, but for stress, at both ends of each element, with the names of the nodes there."""
        found, nodes = [], (*self.chain.links, self.chain.tip)
        for number, (j, k) in enumerate(pairwise(nodes)):
            forces = sections_of_element(self.chain.parts_of(number), self.elements[j], [0.0, 1.0])[0]
            ends = [{FORCES[n]: float(values[n]) for n in self._known} for values in forces]
            names = [tree.links[node].name for node in (j, k)]
            found.append({"element": names[0], "nodes": names, "root": ends[0], "tip": ends[1]})
        return found

    @property
    def _known(self) -> tuple[int, ...]:
        """Of the six; what a plane carries across it, and how legs share that, a planar model does not say."""
        return IN_PLANE if self.planar else tuple(range(6))

    def _told(self) -> str:
        most = {word: max(values, key=abs) for word, values in self.table().items() if word != "s"}
        return f"'{self.chain.name}': largest {', '.join(f'{word} {brief(value)}' for word, value in most.items())}"


def loads_of_beams(
    here: Configuration, qd: Array, qdd: Array, found: NewtonEuler, wrenches: Mapping[str, Array],
    without: Sequence[str] = (),
) -> dict[str, BeamLoads]:  # fmt: skip
    """Of each beam what it carries in a state, whose wrenches in joints were found with those on frames."""
    tree = here.robot.tree
    chains = beam_chains(here.robot)
    if not chains:
        return {}
    moving = motion(tree, here.at, qd, qdd, np.zeros(3) if "gravity" in without else -tree.gravity)
    result = {}
    for name, chain in chains.items():
        signals = element_signals_of(tree, here.at, moving, found, chain, wrenches)
        state = (here.q[None], tree.position_rates(here.q, qd)[None], qdd[None])
        rows = {j: element_rows(tree, j, *state, own[None], list(wrenches)) for j, own in signals.items()}
        result[name] = BeamLoads(chain, rows, tree.planar)
    return result


def largest_of(beams: Mapping[str, BeamLoads]) -> dict[str, Any] | None:
    """The largest stress of a state: beam, s, value; None where no fibres are known."""
    if not beams:
        return None
    elements = {j: rows for one in beams.values() for j, rows in one.elements.items()}
    planar = next(iter(beams.values())).planar
    most = largest_stress({name: one.chain for name, one in beams.items()}, elements, planar)
    return None if most is None else {"beam": most.beam, "s": most.s, "value": most.value}


def beam_tables(beams: Mapping[str, BeamLoads]) -> dict[str, Any]:
    """Tables of all beams by name."""
    return {name: one.table() for name, one in beams.items()}
