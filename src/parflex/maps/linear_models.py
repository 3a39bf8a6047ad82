"""Linear models at rows of poses, and their responses: about the undeformed pose, or about the static equilibrium.

Rows of poses go through the solver of single poses, with compiled forces, so a row has the equilibrium of the single
pose. Rows without one go to the functions of single poses, which say why. As for one pose, rows with springs under
tension are linearised about their equilibrium, the others about the undeformed pose. Elements between points rotate as
a robot deforms, so deflections and efforts are those of the equilibrium.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parflex.errors import InputError, ParflexError
from parflex.forces.effort_allocation import driven_cables
from parflex.forces.forces import checked_wrenches
from parflex.maps.batch_result import BatchResult
from parflex.maps.batched_responses import ModelResponses, is_batched
from parflex.maps.responses import STATIC, ResponseName, SinglePoseResponses
from parflex.maps.row_statics import RowStatics
from parflex.maps.tree_programs import tree_programs
from parflex.parameters.design_numbers import DesignNumbers
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.statics.equilibrium import Equilibrium
from parflex.statics.equilibrium_solver import find_equilibria, find_on_flanks
from parflex.statics.load_case import LoadCase
from parflex.statics.loads import REST_LENGTH_TOLERANCE, AppliedLoads, equilibrium_reason, has_springs, locked_robot

Array = np.ndarray
LARGEST = 1_000_000  # entries of the matrices that are made at a time
MOST_ROWS = 64  # that are solved at a time


def single_model_reason(robot: Robot, case: LoadCase, responses: Sequence[ResponseName], designed: bool) -> str:
    """Why rows need the functions of single poses; empty where they do not. `designed` rows have their own designs."""
    if any(spring.pulls_only for spring in robot.tree.springs):
        return "an elastic cable on a drum"
    if not case.at_equilibrium and driven_cables(robot):
        return "cables that motors keep taut"
    if case.about == "undeformed" and robot.tree.elements:
        return "elements between points about the undeformed pose"
    if case.at_equilibrium and designed and any(one.kind == "stress" for one in responses):
        return "stresses of rows with their own designs"  # of sections, which stand in the file of each design
    return ""


class LinearModels:
    """Linear models of a robot in a load case at rows of positions, and the responses requested there."""

    def __init__(
        self,
        robot: Robot,
        locked: Robot,
        case: LoadCase,
        responses: Sequence[ResponseName],
        modes: int,
        designs: DesignNumbers | None,
        compiled: bool,
    ) -> None:
        self.robot, self.locked, self.case = robot, locked, case
        self.responses, self.modes, self.designs = responses, modes, designs
        self.wrench = checked_wrenches(robot.tree, case.wrench)
        self.programs = tree_programs(locked, tuple(self.wrench), designs, compiled)
        self.statics = RowStatics(self.programs)
        independent = len(self.statics.independent)
        if not independent:
            hint = "lock fewer joints"
            raise InputError("nothing can move: all joints are locked and no body is flexible", key="lock", hint=hint)
        self.some = max(1, min(MOST_ROWS, LARGEST // independent**2))

    def prepare(self) -> None:
        """Trace and compile programs before threads share them."""
        home, empty = self.robot.home[None], BatchResult.empty({one.name: one.shape for one in self.responses}, 1)
        rows, whole = np.zeros(1, dtype=int), self.programs.of_rows(home, None)
        self._solve(empty, rows, whole, self.responses, None, self.case.at_equilibrium)

    def __call__(
        self, found: BatchResult, rows: Array, whole: Array, designs: Array | None, responses: Sequence[ResponseName]
    ) -> Array:
        """Put the responses at rows with these positions; return which rows have all of them.

        `designs` are the numbers of the design of each row.
        """
        wide = self.wide(whole, designs)
        if self.case.at_equilibrium:
            tense, taut = np.ones(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
        else:
            tense, taut = self._tense(whole, wide, designs), self.just_taut(wide)
        done = np.zeros(len(rows), dtype=bool)
        for is_tense in (True, False):
            own = np.flatnonzero((tense == is_tense) & ~taut)
            for start in range(0, len(own), self.some):
                part = own[start : start + self.some]
                chosen = None if designs is None else designs[part]
                done[part] = self._solve(found, rows[part], wide[part], responses, chosen, is_tense)
        if not self.case.at_equilibrium:
            found.balanced += int((done & tense).sum())
            found.rests[rows[done & tense]] = True
        return done

    def wide(self, whole: Array, designs: Array | None) -> Array:
        """Positions with the numbers of the design of each row behind them."""
        own = None if self.designs is None or designs is None else self.designs.of_rows(designs).values
        return self.programs.of_rows(whole, own)

    def _solve(
        self,
        found: BatchResult,
        rows: Array,
        start: Array,
        responses: Sequence[ResponseName],
        designs: Array | None,
        tense: bool,
    ) -> Array:
        """Responses of a few rows, about the equilibrium if `tense`."""
        wrenches = np.concatenate([*self.wrench.values(), np.ones(1)])  # and all of gravity
        statics = self.statics.under(np.repeat(wrenches[None], len(start), axis=0), self._plays(designs, len(start)))
        if tense:
            find = find_on_flanks if self.programs.plays else find_equilibria
            equilibria = find(statics, start)
            models = statics.about_equilibrium(equilibria.q, equilibria.ok)
        else:
            stretch, half = statics.stretch(start)  # within their backlash couplings push nothing
            start = statics.on_flanks(start, np.clip(stretch, -half, half))[1]
            models = statics.about_pose(start)
        here = ModelResponses(self.robot, statics, models, start, self.modes)
        if tense:
            here.failed |= self.just_taut(models.q) | ~here.stable
        batched = [one for one in responses if is_batched(self.robot, one, tense)]
        resting = [one for one in batched if not tense and self.statics.turning and one.kind in STATIC]
        answers = {one.name: here.answer(one) for one in batched if one not in resting}
        done = ~here.failed
        if resting:
            done &= self._solve(found, rows, start, resting, designs, True)
        for name, values in answers.items():
            found.values[name][rows[done]] = values[done]
        others, nq = [one for one in responses if one not in batched], self.robot.tree.nq
        for k in np.flatnonzero(done).tolist() if others else ():
            own = None if designs is None else int(designs[k])
            done[k] = self._by_objects(found, int(rows[k]), others, models.q[k, :nq], start[k, :nq], own)
        return done

    def _plays(self, designs: Array | None, count: int) -> Array:
        """The play of couplings that have some (rows x couplings), as the designs of rows have it."""
        plays = [(k, np.asarray(self.robot.tree.springs[k].play, dtype=float)) for k in self.programs.plays]
        if self.designs is not None and designs is not None:
            plays = [(k, self.designs.values_at(("springs", k, "play"), play)) for k, play in plays]
        columns = [np.full(count, play) if not play.ndim else play[designs] for _, play in plays]
        return np.stack(columns, axis=1) if columns else np.zeros((count, 0))

    def just_taut(self, wide: Array) -> Array:
        """Rows at which a cable is at its rest length, which has no linear model."""
        tree = self.robot.tree
        cables = [k for k, one in enumerate(tree.elements) if one.pulls_only and one.acts]
        if not cables:
            return np.zeros(len(wide), dtype=bool)
        beyond = self.programs.elements(wide)[:, 0, cables]
        return np.asarray((np.abs(beyond) < REST_LENGTH_TOLERANCE * tree.length).any(axis=1))

    def _by_objects(
        self, found: BatchResult, row: int, others: Sequence[ResponseName], q: Array, start: Array, design: int | None
    ) -> bool:
        """What only the objects of single poses tell, at an equilibrium that is known."""
        robot, locked = self.robot, self.locked
        if self.designs is not None and design is not None:
            robot = self.designs.robot_of(design, start)
            locked = locked_robot(robot, self.case.lock)
        loading = AppliedLoads(self.wrench, np.zeros(self.robot.tree.n))
        at, begun = Configuration(locked, q), Configuration(locked, start)
        here = SinglePoseResponses(robot, start, self.case, self.modes, Equilibrium(robot, at, begun, loading, 0))
        try:
            for one in others:
                found.values[one.name][row] = here.answer(one)
        except ParflexError:
            return False
        return True

    # -- tension -----------------------------------------------------------------------------------------

    def _tense(self, whole: Array, wide: Array, designs: Array | None) -> Array:
        """Rows with something under tension that a motion feels; none about the undeformed pose."""
        tree = self.robot.tree
        tense = np.zeros(len(whole), dtype=bool)
        if self.case.about == "undeformed" or not has_springs(tree):
            return tense
        tense |= prestressed_rows(self.locked, self.designs, whole, designs)
        if tree.elements:
            _, stored, stiffness = np.moveaxis(self.programs.elements(wide), 1, 0)
            for k, one in enumerate(tree.elements):
                if one.acts:
                    size = max(map(abs, one.curve.y)) if one.curve else stiffness[:, k] * tree.length
                    tense |= np.abs(stored[:, k]) > REST_LENGTH_TOLERANCE * size
        rows = np.flatnonzero(tense).tolist()
        if len(rows) and not self._felt(whole, designs, rows[0]):  # some have springs that no motion feels
            tense[rows] = [self._felt(whole, designs, k) for k in rows]
        return tense

    def _felt(self, whole: Array, designs: Array | None, row: int) -> bool:
        locked = self.locked
        if self.designs is not None and designs is not None:
            made = self.designs.robot_of(int(designs[row]), whole[row])
            locked = locked_robot(made, self.case.lock)
        return bool(equilibrium_reason(Configuration(locked, whole[row])))


def prestressed_rows(locked: Robot, designs: DesignNumbers | None, whole: Array, rows: Array | None = None) -> Array:
    """Which rows of positions have springs under tension; `rows` are the numbers of their designs."""
    found, tree, units = np.zeros(len(whole), dtype=bool), locked.tree, locked.tree.rate_units

    def number(value: float, *place: str | int) -> Array:
        wide = np.asarray(value) if designs is None else designs.values_at(place, value)
        return wide[rows] if wide.ndim else wide

    for j, link in enumerate(tree.links):
        terms = ("links", j, "terms")
        if not link.joint.one_axis or link.v.start in locked.locked:
            continue
        if np.any(number(link.terms.stiffness, *terms, "stiffness")):
            off = whole[:, link.q.start] - number(link.terms.rest, *terms, "rest")
            found |= np.abs(off) > REST_LENGTH_TOLERANCE * units[link.v.start]
    for j, spring in enumerate(tree.springs):
        off = -number(spring.offset, "springs", j, "offset")
        for k, (position, c) in enumerate(zip(spring.positions, spring.coefficients, strict=True)):
            off = off + number(c, "springs", j, "coefficients", k) * whole[:, position]
        play = number(spring.play, "springs", j, "play")
        found |= np.abs(off) - play / 2 > REST_LENGTH_TOLERANCE * units[spring.rates[0]]
    return found
