"""Static equilibria at many poses, springs under tension among them, and responses there.

Rows of poses go through the solver of single poses, with compiled forces, so a row has the equilibrium of the single
pose. Rows without one go to the functions of single poses, which say why. As for one pose, elements under tension are
linearised about their equilibrium, the others about the undeformed pose. Elements between points rotate as a robot
deforms, so deflections and efforts are those of the equilibrium.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy

from parflex.errors import ParflexError
from parflex.forces.effort_allocation import driven_cables
from parflex.forces.forces import checked_wrenches
from parflex.maps.batch_result import BatchResult
from parflex.maps.equilibrium_programs import EquilibriumPrograms, RowEquilibria, RowProgram, RowStatics, SparseRows
from parflex.maps.responses import STATIC, ResponseName, RowResponses, SinglePoseResponses, signed_twists
from parflex.parameters.design_numbers import DesignNumbers, with_design_axis
from parflex.robot.beam_nodes import is_between
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.equilibrium import Equilibrium
from parflex.statics.equilibrium_solver import find_equilibria, find_on_flanks, is_positive
from parflex.statics.linear_system import lowest_modes, sorted_modes
from parflex.statics.load_case import LoadCase
from parflex.statics.loads import (
    REST_LENGTH_TOLERANCE,
    AppliedLoads,
    equilibrium_reason,
    has_force_elements,
    locked_robot,
)
from parflex.tree.tree import Tree

Array = np.ndarray
LARGEST = 1_000_000  # entries of the whole matrices that are made at a time
UNASKED = ("conditioning", "singularity")  # of the pose itself, whatever acts on it
BATCHED = ("frequency", "damping", "shape", "motion", "stiffness", "compliance", "deflection", "effort", "mass")
PLANE = [0, 1, 5]


def single_equilibrium_reason(tree: Tree, designed: Sequence[ResponseName] = ()) -> str:
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


class EquilibriumRows:
    """Equilibria of a robot under wrenches at rows of positions, and the responses that are asked there."""

    def __init__(
        self,
        robot: Robot,
        held: LoadCase,
        responses: Sequence[ResponseName],
        modes: int,
        designs: DesignNumbers | None = None,
    ) -> None:
        self.robot, self.held, self.modes, self.designs = robot, held, modes, designs
        self.responses = [one for one in responses if one.kind not in UNASKED]
        self.locked = locked_robot(robot, held.lock)
        self.wrench = checked_wrenches(robot.tree, held.wrench)
        self.programs = EquilibriumPrograms(self.locked, tuple(self.wrench), (), designs)
        self.statics = RowStatics(self.programs)
        self.some = max(1, min(64, LARGEST // max(1, len(self.statics.independent)) ** 2))

    def prepare(self) -> None:
        """Programs are traced and compiled before threads share them."""
        self.frames = FramePrograms(self.programs, self.responses)
        empty = BatchResult.empty({one.name: one.shape for one in self.responses}, 1)
        self._solve(self.programs.of_rows(self.robot.home[None], None), empty, [0], self.responses, None)

    def __call__(
        self,
        found: BatchResult,
        rows: Array,
        whole: Array,
        designs: Array | None = None,
        responses: Sequence[ResponseName] | None = None,
    ) -> Array:
        """Put the answers at rows with these positions; return which rows have all of them.

        `designs` are the numbers of the design of each row; `responses` some of the requested ones, None: all.
        """
        done, asked = np.zeros(len(rows), dtype=bool), self.responses if responses is None else responses
        wide = self.programs.of_rows(whole, designs)
        for start in range(0, len(rows), self.some):
            part = slice(start, start + self.some)
            own = None if designs is None else designs[part]
            done[part] = self._solve(wide[part], found, rows[part].tolist(), asked, own)
        return done

    def _solve(
        self, start: Array, found: BatchResult, rows: list[int], asked: Sequence[ResponseName], designs: Array | None
    ) -> Array:
        wrenches = np.concatenate([*self.wrench.values(), np.ones(1)])  # and all of gravity
        w = np.repeat(wrenches[None], len(start), axis=0)
        model = self.statics.under(w, self._plays(designs, len(start)))
        equilibria = find_on_flanks(model, start) if self.programs.plays else find_equilibria(model, start)
        rest = model.linearised(equilibria.q, w, equilibria.ok)
        rest.ok &= model.usual(rest.G)
        here = EquilibriumResponses(self.robot, model, self.frames, rest, start, self.modes)
        here.failed |= self.just_taut(rest.q) | ~here.stable
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
        if not self.programs.plays:
            return np.zeros((count, 0))
        if self.designs is None or designs is None:
            plain = [float(self.robot.tree.springs[k].play) for k in self.programs.plays]
            return np.repeat(np.array(plain)[None], count, axis=0)
        own = np.array([self.designs.tree.springs[k].play for k in self.programs.plays], dtype=object)
        wide = np.asarray(with_design_axis(own, len(self.designs.values)), dtype=float)
        return wide[designs] if wide.ndim == 2 else np.repeat(wide[None], count, axis=0)

    def just_taut(self, q: Array) -> Array:
        """Rows at which a cable is at its rest length, which has no linear model."""
        found, tree = np.zeros(len(q), dtype=bool), self.robot.tree
        cables = [k for k, one in enumerate(tree.elements) if one.pulls_only and one.acts]
        if cables:
            beyond = self.programs.elements(q)[:, 0, cables]
            found |= (np.abs(beyond) < REST_LENGTH_TOLERANCE * tree.length).any(axis=1)
        return found

    def _by_objects(
        self, found: BatchResult, row: int, others: Sequence[ResponseName], q: Array, start: Array, design: int | None
    ) -> bool:
        """What only the objects of single poses tell, at an equilibrium that is known."""
        robot, locked = self.robot, self.locked
        if self.designs is not None and design is not None:
            robot = self.designs.robot_of(design, start)
            locked = locked_robot(robot, self.held.lock)
        loading = AppliedLoads(self.wrench, np.zeros(self.robot.tree.n))
        at, begun = Configuration(locked, q), Configuration(locked, start)
        here = SinglePoseResponses(robot, start, self.held, self.modes, Equilibrium(robot, at, begun, loading, 0))
        try:
            for one in others:
                found.values[one.name][row] = here.answer(one)
        except ParflexError:
            return False
        return True


def batched(robot: Robot, one: ResponseName) -> bool:
    """Whether a response is had for many rows at once: forces between the nodes of a beam are left to single poses."""
    forced = one.kind in ("stiffness", "compliance", "deflection") and one.of
    return one.kind in BATCHED and not (forced and is_between(robot, one.of))


class FramePrograms:
    """Places and Jacobians of the frames that responses ask for, traced once."""

    def __init__(self, programs: EquilibriumPrograms, responses: Sequence[ResponseName]) -> None:
        tip = programs.robot.tree.end_effector
        self.places: dict[str, RowProgram] = {}
        self.rows: dict[str, SparseRows] = {}
        for one in responses:
            if one.kind == "deflection" and one.of not in self.places:
                self.places[one.of] = programs.places([one.of])
            if one.kind in ("stiffness", "compliance") and one.of not in self.rows:
                self.rows[one.of] = programs.frame_rows(one.of)
            if one.kind == "shape" and tip not in self.rows:
                self.rows[tip] = programs.frame_rows(tip)


class EquilibriumResponses(RowResponses):
    """Some rows at rest, and what follows from them; what several responses need is computed once.

    `failed` are rows that are left to the functions of single poses.
    """

    def __init__(
        self,
        robot: Robot,
        statics: RowStatics,
        frames: FramePrograms,
        rest: RowEquilibria,
        start: Array,
        modes: int,
    ) -> None:
        self.robot, self.statics, self.frames, self.rest, self.start = robot, statics, frames, rest, start
        self.modes_requested = modes
        self.failed = ~rest.ok
        self.rows = np.arange(len(rest.q))

    # -- modes -----------------------------------------------------------------------------------------

    @cached_property
    def matrices(self) -> tuple[Array, Array]:
        """Symmetric part of K, and M, without units."""
        K = self.rest.states.K
        return (K + np.swapaxes(K, 1, 2)) / 2, self.statics.mass_matrices(self.rest.q, self.rest.J)

    @cached_property
    def stable(self) -> Array:
        """Rows from which no motion sets energy free."""
        K = self.matrices[0]
        found = np.ones(len(K), dtype=bool)
        for k in self.rows[self.rest.ok]:
            found[k] = is_positive(K[k])
        return found

    @cached_property
    def modes(self) -> tuple[Array, Array]:
        """Squared circular frequencies (rows x modes), and mass-normalised modes along the independent rates."""
        K, M = self.matrices
        count, size = len(K), K.shape[1]
        values, vectors = (
            np.full((count, self.modes_requested), np.nan),
            np.full((count, size, self.modes_requested), np.nan),
        )
        for k in self.rows[self.rest.ok]:
            try:
                values[k], vectors[k] = self._modes_of(K[k], M[k], k in self.rest.inverse.free or not self.stable[k])
            except (np.linalg.LinAlgError, ValueError):
                self.failed[k] = True
        return values, vectors

    def _modes_of(self, K: Array, M: Array, all_of_them: bool) -> tuple[Array, Array]:
        """The lowest modes; beside motions that are free or grow, as for single poses, from all modes."""
        wanted = self.modes_requested
        if not all_of_them:
            values, vectors = lowest_modes(K, M, 0, wanted)
            if len(values) < wanted or not values[0] > 0.0:
                raise np.linalg.LinAlgError("fewer modes")
            return values[:wanted], vectors[:, :wanted]
        values, vectors = scipy.linalg.eigh(K, M)
        values, vectors, unstable, free = sorted_modes(values, vectors, K, M)
        first = unstable + free
        if wanted > len(K) - first:
            raise np.linalg.LinAlgError("fewer modes")  # which the functions of single poses say in words
        return values[first : first + wanted], vectors[:, first : first + wanted]

    def _of_frequency(self, one: ResponseName) -> Array:
        return np.sqrt(self.modes[0][:, one.mode - 1]) / (2 * np.pi)

    @cached_property
    def damping(self) -> Array:
        """Damping ratios (rows x modes)."""
        D, J = self.statics.programs.damping(self.rest.q), self.rest.J
        values, vectors = self.modes
        moved = J @ vectors
        lost = np.einsum("rim,rij,rjm->rm", moved, D, moved)
        return lost / (2 * np.sqrt(values))

    def _of_damping(self, one: ResponseName) -> Array:
        return self.damping[:, one.mode - 1]

    def _of_shape(self, one: ResponseName) -> Array:
        tip = self.robot.tree.end_effector
        P = self.frames.rows[tip](self.rest.q) @ self.rest.J
        twists = np.swapaxes(P @ self.modes[1], 1, 2)
        return signed_twists(twists, self.robot.tree.length)[:, one.mode - 1]

    def _of_motion(self, one: ResponseName) -> Array:
        shape = (self.rest.J @ self.modes[1][:, :, one.mode - 1 : one.mode])[:, :, 0]
        largest = np.take_along_axis(shape, np.abs(shape).argmax(axis=1)[:, None], axis=1)
        return shape * np.sign(largest)

    # -- statics ---------------------------------------------------------------------------------------

    def compliance(self, frame: str, planar: bool) -> Array:
        """Of a frame in world axes."""
        P = self.frames.rows[frame](self.rest.q)
        P = (P[:, PLANE] if planar else P) @ self.rest.J
        self.failed |= self.rest.inverse.driven(np.swapaxes(P, 1, 2))
        return P @ self.rest.inverse.matrices @ np.swapaxes(P, 1, 2)

    def _of_deflection(self, one: ResponseName) -> Array:
        program, found = self.frames.places[one.of], np.full((len(self.rows), 6), np.nan)
        before, now = program(self.start), program(self.rest.q)
        found[:, :3] = now[:, 9:] - before[:, 9:]
        for k in self.rows[self.rest.ok]:
            found[k, 3:] = vector_from_rotation(now[k, :9].reshape(3, 3) @ before[k, :9].reshape(3, 3).T)
        return found if one.direction is None else found[:, one.direction]

    @cached_property
    def needed(self) -> Array:
        """F - J_tot^T lam along all rates, with multipliers of least norm."""
        rest, free = self.rest, self.statics.robot.free
        if not rest.G.shape[1]:
            return rest.F
        if self.statics.spare:
            rows = np.swapaxes(rest.G[:, :, free], 1, 2)
            lam = np.linalg.pinv(rows, rcond=1e-12) @ rest.F[:, free, None]
        else:
            lam = self.statics.multipliers(rest.G, rest.F)[:, :, None]
        return rest.F - (np.swapaxes(rest.G, 1, 2) @ lam)[:, :, 0]

    def _of_effort(self, one: ResponseName) -> Array:
        k = next(k for k in self.robot.actuated if self.robot.tree.rate_names[k] == one.of)
        return self.needed[:, k] if k in self.statics.robot.locked else np.zeros(len(self.rows))

    def _of_mass(self, one: ResponseName) -> Array:
        return self.statics.programs.mass(self.rest.q)[:, 0]


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

    def __call__(self, found: BatchResult, rows: Array, whole: Array, designs: Array | None = None) -> Array:
        """Put the answers at rows with these positions and designs; return which rows have all of them."""
        wide = self.still.programs.of_rows(whole, designs)
        tense, taut = self._tense(whole, wide, designs), self.rest.just_taut(wide)
        done = np.zeros(len(rows), dtype=bool)

        def chosen(own: Array) -> Array | None:
            return None if designs is None else designs[own]

        if tense.any():
            own = np.flatnonzero(tense & ~taut)
            done[own] = self.rest(found, rows[own], whole[own], chosen(own))
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
            done &= self.rest(found, rows, whole, designs, others)
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
