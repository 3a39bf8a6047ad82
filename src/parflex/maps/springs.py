"""Springs, cables and elements between points at many poses.

As for one pose, elements under tension are linearised about their equilibrium, the others about the undeformed pose.
Elements between points rotate as a robot deforms, so deflections and efforts are those of the equilibrium.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parflex.forces.effort_allocation import driven_cables
from parflex.maps.batch_result import BatchResult
from parflex.maps.equilibria import (
    EquilibriumResponses,
    EquilibriumRows,
    FramePrograms,
    batched,
    single_equilibrium_reason,
)
from parflex.maps.equilibrium_programs import EquilibriumPrograms
from parflex.maps.responses import STATIC, ResponseName
from parflex.maps.row_statics import RowEquilibria, RowStatics
from parflex.parameters.design_numbers import DesignNumbers
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.statics.load_case import LoadCase
from parflex.statics.loads import (
    REST_LENGTH_TOLERANCE,
    equilibrium_reason,
    has_force_elements,
    locked_robot,
)

Array = np.ndarray


def single_spring_reason(robot: Robot, held: LoadCase, designed: Sequence[ResponseName] = ()) -> str:
    """Why rows with springs go one by one; empty where they do not."""
    if held.about == "undeformed":
        return "springs about the undeformed pose"
    if driven_cables(robot):
        return "cables that motors keep taut"
    return single_equilibrium_reason(robot.tree, designed)


class SpringRows:
    """Such rows; `balanced` of the answers counts those about an equilibrium that was not asked for."""

    def __init__(
        self,
        robot: Robot,
        held: LoadCase,
        responses: Sequence[ResponseName],
        modes: int,
        designs: DesignNumbers | None = None,
    ) -> None:
        self.robot, self.held, self.modes, self.designs = robot, held, modes, designs
        self.rest = EquilibriumRows(robot, held, responses, modes, designs)
        self.responses = self.rest.responses
        self.still = RowStatics(EquilibriumPrograms(self.rest.locked, (), ("gravity",), designs))
        self.all_statics = has_force_elements(robot.tree)

    def prepare(self) -> None:
        """Programs are traced and compiled before threads share them."""
        self.rest.prepare()
        self.frames = FramePrograms(self.still.programs, self.responses)
        self._undeformed(self.still.programs.of_rows(self.robot.home[None], None))

    def __call__(
        self,
        found: BatchResult,
        rows: Array,
        whole: Array,
        responses: Sequence[ResponseName] | None = None,
        designs: Array | None = None,
    ) -> Array:
        """Put what is found at rows with these positions and designs; which of them have all their answers."""
        wide = self.still.programs.of_rows(whole, designs)
        tense, taut = self._tense(whole, wide, designs), self.rest.just_taut(wide)
        done = np.zeros(len(rows), dtype=bool)

        def chosen(own: Array) -> Array | None:
            return None if designs is None else designs[own]

        if tense.any():
            own = np.flatnonzero(tense & ~taut)
            done[own] = self.rest(found, rows[own], whole[own], None, chosen(own))
            found.balanced += int(done.sum())
            found.rests[rows[done]] = True
        for start in range(0, len(rows), self.rest.some):
            own = np.flatnonzero(~tense & ~taut)[start : start + self.rest.some]
            if len(own):
                done[own] = self._slack(found, rows[own], whole[own], chosen(own))
        return done

    def _tense(self, whole: Array, wide: Array, designs: Array | None) -> Array:
        """Rows with something under tension that a motion feels."""
        tree = self.robot.tree
        kept = np.array([i for link in tree.links for i in range(link.q.start, link.q.stop)], dtype=int)
        found = prestressed_rows(self.rest.locked, self.designs, whole[:, kept], kept, designs)
        if tree.elements:
            _, stored, stiffness = np.moveaxis(self.rest.programs.elements(wide), 1, 0)
            for k, one in enumerate(tree.elements):
                if one.acts:
                    size = max(map(abs, one.curve.y)) if one.curve else stiffness[:, k] * tree.length
                    found |= np.abs(stored[:, k]) > REST_LENGTH_TOLERANCE * size
        rows = np.flatnonzero(found).tolist()
        if len(rows) and not self._felt(whole, designs, rows[0]):  # some have springs that no motion feels
            found[rows] = [self._felt(whole, designs, k) for k in rows]
        return found

    def _felt(self, whole: Array, designs: Array | None, row: int) -> bool:
        locked = self.rest.locked
        if self.designs is not None and designs is not None:
            made = self.designs.robot_of(int(designs[row]), whole[row])
            locked = locked_robot(made, self.held.lock)
        return bool(equilibrium_reason(Configuration(locked, whole[row])))

    def _undeformed(self, whole: Array) -> RowEquilibria:
        """Motions and stiffness about the poses themselves, at which nothing is under tension."""
        return self.still.linearised(whole, np.zeros((len(whole), 1)), np.ones(len(whole), dtype=bool), forces=False)

    def _slack(self, found: BatchResult, rows: Array, whole: Array, designs: Array | None) -> Array:
        """Rows without tension: modes and stiffness of the pose, statics of the equilibrium where elements turn."""
        linear = [one for one in self.responses if batched(self.robot, one) and one.kind not in STATIC]
        wide = self.still.programs.of_rows(whole, designs)
        here = EquilibriumResponses(self.robot, self.still, self.frames, self._undeformed(wide), wide, self.modes)
        answers = {one.name: here.answer(one) for one in linear}
        done = ~here.failed
        if len(linear) < len(self.responses):
            if not self.all_statics:
                return np.zeros(len(rows), dtype=bool)
            others = [one for one in self.responses if one not in linear]
            if any(one.kind not in STATIC for one in others):
                return np.zeros(len(rows), dtype=bool)  # shares of strain energy, about the pose itself
            done &= self.rest(found, rows, whole, others, designs)
        for name, values in answers.items():
            found.values[name][rows[done]] = values[done]
        return done


def prestressed_rows(
    locked: Robot, designs: DesignNumbers | None, q: Array, kept: Array, rows: Array | None = None
) -> Array:
    """Which rows of positions of the rigid tree have springs under tension; `rows` are the numbers of their designs.

    `kept` are the positions of the robot that the rigid tree has.
    """
    found, tree, units = np.zeros(len(q), dtype=bool), locked.tree, locked.tree.rate_units

    def number(value: float, *place: str | int) -> Array:
        wide = np.asarray(value) if designs is None else designs.values_at(place, value)
        return wide[rows] if wide.ndim else wide

    def column(k: int) -> Array:
        return q[:, int(np.searchsorted(kept, k))]

    for j, link in enumerate(tree.links):
        terms = ("links", j, "terms")
        if not link.joint.one_axis or link.v.start in locked.locked:
            continue
        if np.any(number(link.terms.stiffness, *terms, "stiffness")):
            off = column(link.q.start) - number(link.terms.rest, *terms, "rest")
            found |= np.abs(off) > REST_LENGTH_TOLERANCE * units[link.v.start]
    for j, spring in enumerate(tree.springs):
        off = -number(spring.offset, "springs", j, "offset")
        for k, (position, c) in enumerate(zip(spring.positions, spring.coefficients, strict=True)):
            off = off + number(c, "springs", j, "coefficients", k) * column(position)
        play = number(spring.play, "springs", j, "play")
        found |= np.abs(off) - play / 2 > REST_LENGTH_TOLERANCE * units[spring.rates[0]]
    return found
