"""Rows of poses about their equilibria: solved together, with a word where an equilibrium is not the usual one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parflex.errors import ParflexError
from parflex.forces.forces import checked_wrenches
from parflex.maps.responses.at_one_pose import AtOnePose, Held
from parflex.maps.responses.response_names import ResponseName
from parflex.maps.rest.flank_rows import Flanks
from parflex.maps.rest.rest_programs import RestPrograms
from parflex.maps.rest.rest_solver import AtRest, RestSolver
from parflex.maps.rest.resting_poses import FramePrograms, RestingPoses, batched
from parflex.maps.rows.row_answers import RowAnswers
from parflex.parameters.design_numbers import DesignNumbers, of_designs
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.statics.equilibrium import SAME, Equilibrium, agrees_with_tangent
from parflex.statics.loads import NEAR_REST, AppliedLoads, locked_robot
from parflex.tree.tree import Tree

Array = np.ndarray
WORTH = 6  # rows from which compiling takes less time than they would one by one
LARGEST = 1_000_000  # entries of the whole matrices that are made at a time
PART, FINEST = 1 / 8, 1 / 64  # of the loads: the longest step, and the shortest that is tried for many rows at once
UNASKED = ("conditioning", "singularity")  # of the pose itself, whatever acts on it


def why_alone(tree: Tree, designed: Sequence[ResponseName] = ()) -> str:
    """What only the functions of single poses follow to an equilibrium; empty where there is nothing of it.

    `designed` are the responses that are asked of rows with their own designs.
    """
    if any(spring.pulls_only for spring in tree.springs):
        return "an elastic cable on a drum"
    if any(one.kind == "stress" for one in designed):  # of sections, which stand in the file of each design
        return "stresses of rows with their own designs"
    if any(one.kind in UNASKED for one in designed):  # measured with the length of a robot, which designs change
        return "conditions of rows with their own designs"
    return ""


class RestRows:
    """Equilibria of a robot under wrenches at rows of positions, and the responses that are asked there."""

    def __init__(
        self,
        robot: Robot,
        held: Held,
        responses: Sequence[ResponseName],
        modes: int,
        designs: DesignNumbers | None = None,
    ) -> None:
        self.robot, self.held, self.modes, self.designs = robot, held, modes, designs
        self.responses = [one for one in responses if one.kind not in UNASKED]
        self.locked = locked_robot(robot, held.lock)
        self.wrench = checked_wrenches(robot.tree, held.wrench)
        self.programs = RestPrograms(self.locked, tuple(self.wrench), (), designs)
        self.solver = RestSolver(self.programs)
        self.some = max(1, min(64, LARGEST // max(1, len(self.solver.independent)) ** 2))

    def prepare(self) -> None:
        """Programs are traced and compiled before threads share them."""
        self.frames = FramePrograms(self.programs, self.responses)
        empty = RowAnswers.empty({one.name: one.shape for one in self.responses}, 1)
        self._solve(self.programs.of_rows(self.robot.home[None], None), empty, [0], self.responses, None)

    def __call__(
        self,
        found: RowAnswers,
        rows: Array,
        whole: Array,
        responses: Sequence[ResponseName] | None = None,
        designs: Array | None = None,
    ) -> Array:
        """Put what is found at rows with these positions; which of them have all their answers.

        `responses` are some of those that were asked for; None: all of them. `designs` are the numbers of the design of
        each row.
        """
        done, asked = np.zeros(len(rows), dtype=bool), self.responses if responses is None else responses
        wide = self.programs.of_rows(whole, designs)
        for start in range(0, len(rows), self.some):
            part = slice(start, start + self.some)
            own = None if designs is None else designs[part]
            done[part] = self._solve(wide[part], found, rows[part].tolist(), asked, own)
        return done

    def _solve(
        self, start: Array, found: RowAnswers, rows: list[int], asked: Sequence[ResponseName], designs: Array | None
    ) -> Array:
        wrenches = np.concatenate([*self.wrench.values(), np.ones(1)])  # and all of gravity
        w = np.repeat(wrenches[None], len(start), axis=0)
        flanks = Flanks(self.solver, start, w, self._plays(designs, len(start))) if self.programs.plays else None
        rest = self.solver(start if flanks is None else flanks.begun, w)
        here = RestingPoses(self.robot, self.solver, self.frames, rest, start, self.modes)
        led = self._led(here, rest, start, w) if flanks is None else here.stable & flanks.hold(rest)
        here.failed |= self.just_taut(rest.q) | ~led
        answers = {one.name: here.answer(one) for one in asked if batched(self.robot, one)}
        done = ~here.failed
        for one in asked:
            if batched(self.robot, one):
                for row, good, values in zip(rows, done, answers[one.name], strict=True):
                    if good:
                        found.values[one.name][row] = values
        others, nq = [one for one in asked if not batched(self.robot, one)], self.robot.tree.nq
        for k in np.flatnonzero(done).tolist() if others else ():
            own = None if designs is None else int(designs[k])
            done[k] = self._by_objects(found, rows[k], others, rest.q[k, :nq], start[k, :nq], own)
        return done

    def _plays(self, designs: Array | None, count: int) -> Array:
        """The play of couplings that have some (rows x couplings), as the designs of rows have it."""
        if self.designs is None or designs is None:
            plain = [float(self.robot.tree.springs[k].play) for k in self.programs.plays]
            return np.repeat(np.array(plain)[None], count, axis=0)
        own = np.array([self.designs.tree.springs[k].play for k in self.programs.plays], dtype=object)
        wide = np.asarray(of_designs(own, len(self.designs.values)), dtype=float)
        return wide[designs] if wide.ndim == 2 else np.repeat(wide[None], count, axis=0)

    def just_taut(self, q: Array) -> Array:
        """Rows at which a cable is at its rest length, which has no linear model."""
        found, tree = np.zeros(len(q), dtype=bool), self.robot.tree
        cables = [k for k, one in enumerate(tree.elements) if one.pulls_only and one.acts]
        if cables:
            beyond = self.programs.elements(q)[:, 0, cables]
            found |= (np.abs(beyond) < NEAR_REST * tree.length).any(axis=1)
        return found

    def _by_objects(
        self, found: RowAnswers, row: int, others: Sequence[ResponseName], q: Array, start: Array, design: int | None
    ) -> bool:
        """What only the objects of single poses tell, at an equilibrium that is known."""
        robot, locked = self.robot, self.locked
        if self.designs is not None and design is not None:
            robot = self.designs.robot_of(design, start)
            locked = locked_robot(robot, self.held.lock)
        loading = AppliedLoads(self.wrench, np.zeros(self.robot.tree.n))
        at, begun = Configuration(locked, q), Configuration(locked, start)
        here = AtOnePose(robot, start, self.held, self.modes, Equilibrium(robot, at, begun, loading, 0))
        try:
            for one in others:
                found.values[one.name][row] = here.answer(one)
        except ParflexError:
            return False
        return True

    def _led(self, here: RestingPoses, rest: AtRest, start: Array, w: Array) -> Array:
        """Rows to whose equilibrium loads that grow lead from the pose in stable states; others go one by one.

        Few steps through states that would all be stable need no proof, as for one pose.
        """
        led = rest.ok & here.stable & rest.steady & agrees_with_tangent(start, rest.told, rest.q)
        doubtful = np.flatnonzero(rest.ok & here.stable & ~led)
        if not len(doubtful):
            return led
        begun, own = start[doubtful], w[doubtful]
        first = self.programs.forces(begun, np.zeros_like(own))  # without loads: springs under tension at the pose
        q, shares, part = begun.copy(), np.zeros(len(doubtful)), np.full(len(doubtful), PART)
        going = np.arange(len(doubtful))
        while len(going):
            ahead = np.minimum(1.0, shares[going] + part[going])
            step = self.solver(q[going], ahead[:, None] * own[going], (1.0 - ahead)[:, None] * first[going])
            held = RestingPoses(self.robot, self.solver, self.frames, step, begun[going], 1)
            good = step.ok & held.stable & agrees_with_tangent(q[going], step.told, step.q)
            q[going[good]], shares[going[good]] = step.q[good], ahead[good]
            part[going] = np.where(good, np.minimum(PART, 2 * part[going]), part[going] / 2)
            going = going[(shares[going] < 1.0) & (part[going] >= FINEST)]
        led[doubtful] = (shares >= 1.0) & (np.abs(q - rest.q[doubtful]).max(axis=1) < SAME)
        return led
