"""Rows of robots with springs, cables and forces between points, and rows at which springs are under tension.

As for one pose: what is under tension is linearised about its equilibrium, the rest about the undeformed pose, and
elements between points turn as a robot deforms, so that deflections and efforts are those of the equilibrium.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from parflex.errors import ParflexError
from parflex.maps.responses.at_one_pose import Held
from parflex.maps.responses.response_names import STATIC, ResponseName, read_responses
from parflex.maps.rest.rest_programs import RestPrograms
from parflex.maps.rest.rest_rows import RestRows, why_alone
from parflex.maps.rest.rest_solver import AtRest, RestSolver
from parflex.maps.rest.resting_poses import BATCHED, FramePrograms, RestingPoses
from parflex.maps.rows.row_answers import RowAnswers
from parflex.maps.tense_rows import tense_rows
from parflex.models.configuration import Configuration
from parflex.models.dynamics.taut_cables import driven_cables
from parflex.models.elastic.tension import NEAR_REST, has_force_elements, has_springs, why_balanced
from parflex.models.robot import Robot

Array = np.ndarray


def why_springs_alone(robot: Robot, held: Held) -> str:
    """Why rows with springs go one by one; empty where they do not."""
    if held.about == "undeformed":
        return "springs about the undeformed pose"
    if driven_cables(robot):
        return "cables that motors keep taut"
    return why_alone(robot.tree)


class SpringRows:
    """Such rows; `balanced` of the answers counts those about an equilibrium that was not asked for."""

    def __init__(self, robot: Robot, held: Held, responses: Sequence[ResponseName], modes: int) -> None:
        self.robot, self.held, self.modes = robot, held, modes
        self.rest = RestRows(robot, held, responses, modes)
        self.responses = self.rest.responses
        self.still = RestSolver(RestPrograms(self.rest.locked, (), ("gravity",)))
        self.all_statics = has_force_elements(robot.tree)

    def prepare(self) -> None:
        """Programs are traced and compiled before threads share them."""
        self.rest.prepare()
        self.frames = FramePrograms(self.still.programs, self.responses)
        self._undeformed(self.robot.home[None])

    def __call__(self, found: RowAnswers, rows: Array, whole: Array) -> Array:
        """Put what is found at rows with these positions; which of them have all their answers."""
        tense, taut = self._tense(whole), self.rest.just_taut(whole)
        done = np.zeros(len(rows), dtype=bool)
        if tense.any():
            own = np.flatnonzero(tense & ~taut)
            done[own] = self.rest(found, rows[own], whole[own])
            found.balanced += int(done.sum())
        for start in range(0, len(rows), self.rest.some):
            own = np.flatnonzero(~tense & ~taut)[start : start + self.rest.some]
            if len(own):
                done[own] = self._slack(found, rows[own], whole[own])
        return done

    def _tense(self, whole: Array) -> Array:
        """Rows with something under tension that a motion feels."""
        tree = self.robot.tree
        kept = np.array([i for link in tree.links for i in range(link.q.start, link.q.stop)], dtype=int)
        found = tense_rows(self.rest.locked, tree, whole[:, kept], kept)
        if tree.elements:
            lengths = self.rest.programs.lengths(whole)
            for k, one in enumerate(tree.elements):
                if one.acts:
                    size = max(map(abs, one.curve.y)) if one.curve else float(one.stiffness) * tree.length
                    found |= np.abs(one.stored(lengths[:, k])) > NEAR_REST * size
        rows = np.flatnonzero(found)
        if len(rows) and not self._felt(whole[rows[0]]):  # some have springs that no motion feels
            found[rows] = [self._felt(whole[k]) for k in rows]
        return found

    def _felt(self, q: Array) -> bool:
        return bool(why_balanced(Configuration(self.rest.locked, q)))

    def _undeformed(self, whole: Array) -> AtRest:
        """Motions and stiffness about the poses themselves, at which nothing is under tension."""
        solver, count = self.still, len(whole)
        G, J, good = solver.motions(whole)
        w, F = np.zeros((count, 1)), np.zeros((count, self.robot.tree.n))
        K = solver.stiffness(whole, G, J, F, w)
        inverse, free, own = solver.inverse(whole, J, K)
        return AtRest(whole, J, F, G, K, inverse, free, good & own, np.zeros(count, dtype=int), whole, good)

    def _slack(self, found: RowAnswers, rows: Array, whole: Array) -> Array:
        """Rows without tension: modes and stiffness of the pose, statics of the equilibrium where elements turn."""
        linear = [one for one in self.responses if one.kind in BATCHED and one.kind not in STATIC]
        here = RestingPoses(self.robot, self.still, self.frames, self._undeformed(whole), whole, self.modes)
        answers = {one.name: here.answer(one) for one in linear}
        done = ~here.failed
        if len(linear) < len(self.responses):
            if not self.all_statics:
                return np.zeros(len(rows), dtype=bool)
            others = [one for one in self.responses if one not in linear]
            if any(one.kind not in STATIC for one in others):
                return np.zeros(len(rows), dtype=bool)  # shares of strain energy, about the pose itself
            done &= self.rest(found, rows, whole, others)
        for name, values in answers.items():
            found.values[name][rows[done]] = values[done]
        return done


class SpringsWhenNeeded:
    """Modes of such rows, by programs that are made when a row first asks for them."""

    def __init__(self, robot: Robot, held: Held, modes: int, shapes: bool) -> None:
        self.robot, self.held, self.modes = robot, held, modes
        kinds = ("frequency", "shape") if shapes else ("frequency",)
        self.words = [f"{kind}:{k + 1}" for kind in kinds for k in range(modes)]
        self.covered = has_springs(robot.tree) and not why_springs_alone(robot, held)
        self._lock = threading.Lock()  # threads that ask at once wait for one
        self._found: SpringRows | None = None

    def made(self) -> SpringRows | None:
        """What solves them; None where they go one by one."""
        with self._lock:
            if self.covered and self._found is None:
                try:
                    made = SpringRows(self.robot, self.held, read_responses(self.robot, self.words), self.modes)
                    made.prepare()
                    self._found = made
                except ParflexError:  # home is singular, or something is not traced
                    self.covered = False
        return self._found
