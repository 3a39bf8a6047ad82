"""Static equilibria at many poses.

Newton's method of single poses runs on all rows at once. Steps, loop closure, halving and termination are those of
`equilibrium`, so a row takes the same path to the same equilibrium. Rows that do not converge, or that nothing holds,
go to the functions of single poses.

Couplings with backlash rest on the flank that `equilibrium` finds for one pose: without backlash the loads determine in
which direction each coupling is stretched; with that flank alone, which pushes and pulls, the equilibrium is computed.
A row is valid if all its couplings then press their flanks.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from parflex.closure.mobility import SINGULAR
from parflex.errors import ParflexError
from parflex.forces.forces import checked_wrenches
from parflex.maps.batch import BatchResult
from parflex.maps.equilibrium_programs import EquilibriumPrograms, RowProgram, SparseRows
from parflex.maps.responses import (
    PLANAR,
    ResponseName,
    SinglePoseResponses,
    selected_entry,
    signed_twists,
)
from parflex.parameters.design_numbers import DesignNumbers, with_design_axis
from parflex.records import Record
from parflex.robot.beam_nodes import is_between
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.equilibrium import (
    CLOSING,
    FEW_STEPS,
    FINE,
    HALVINGS,
    SAME,
    STEPS,
    STRIDE,
    Equilibrium,
    agrees_with_tangent,
    is_positive,
)
from parflex.statics.linear_system import REGULAR, loads_rigid_modes, lowest_modes, sorted_modes, split_stiffness
from parflex.statics.load_case import LoadCase
from parflex.statics.loads import NEAR_REST, AppliedLoads, locked_robot
from parflex.statics.stiffness import RIGID
from parflex.tree.tree import Tree

Array = np.ndarray

WORTH = 6  # rows from which compiling takes less time than they would one by one

LARGEST = 1_000_000  # entries of the whole matrices that are made at a time

PART, FINEST = 1 / 8, 1 / 64  # of the loads: the longest step, and the shortest that is tried for many rows at once

UNASKED = ("conditioning", "singularity")  # of the pose itself, whatever acts on it

BATCHED = ("frequency", "damping", "shape", "motion", "stiffness", "compliance", "deflection", "effort", "mass")

PLANE = [0, 1, 5]

CLOSED = 1e-12  # opening in typical lengths at which loops are closed: rounding of lengths is below

OPEN = 1e-10  # opening from which a row is left to single poses, as where one is assembled

SHORT = 1e-9  # a step, without units, below which a tangent that does not help is rounding


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
        self.solver = EquilibriumSolver(self.programs)
        self.some = max(1, min(64, LARGEST // max(1, len(self.solver.independent)) ** 2))

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
        self, start: Array, found: BatchResult, rows: list[int], asked: Sequence[ResponseName], designs: Array | None
    ) -> Array:
        wrenches = np.concatenate([*self.wrench.values(), np.ones(1)])  # and all of gravity
        w = np.repeat(wrenches[None], len(start), axis=0)
        flanks = BacklashSides(self.solver, start, w, self._plays(designs, len(start))) if self.programs.plays else None
        rest = self.solver(start if flanks is None else flanks.begun, w)
        here = EquilibriumResponses(self.robot, self.solver, self.frames, rest, start, self.modes)
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
        wide = np.asarray(with_design_axis(own, len(self.designs.values)), dtype=float)
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

    def _led(self, here: EquilibriumResponses, rest: RowEquilibria, start: Array, w: Array) -> Array:
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
            held = EquilibriumResponses(self.robot, self.solver, self.frames, step, begun[going], 1)
            good = step.ok & held.stable & agrees_with_tangent(q[going], step.told, step.q)
            q[going[good]], shares[going[good]] = step.q[good], ahead[good]
            part[going] = np.where(good, np.minimum(PART, 2 * part[going]), part[going] / 2)
            going = going[(shares[going] < 1.0) & (part[going] >= FINEST)]
        led[doubtful] = (shares >= 1.0) & (np.abs(q - rest.q[doubtful]).max(axis=1) < SAME)
        return led


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


class EquilibriumResponses:
    """Some rows at rest, and what follows from them; what several responses need is computed once.

    `failed` are rows that are left to the functions of single poses.
    """

    def __init__(
        self,
        robot: Robot,
        solver: EquilibriumSolver,
        frames: FramePrograms,
        rest: RowEquilibria,
        start: Array,
        modes: int,
    ) -> None:
        self.robot, self.solver, self.frames, self.rest, self.start = robot, solver, frames, rest, start
        self.modes_requested = modes
        self.failed = ~rest.ok
        self.rows = np.arange(len(rest.q))
        self.units = solver.units

    def answer(self, one: ResponseName) -> Array:
        """Numbers of a response at all rows."""
        own: Callable[[ResponseName], Array] = getattr(self, f"_of_{one.kind}")
        return np.asarray(own(one), dtype=float)

    # -- modes -----------------------------------------------------------------------------------------

    @cached_property
    def matrices(self) -> tuple[Array, Array]:
        """Symmetric part of K, and M, without units."""
        scale = np.outer(self.units, self.units)
        K = (self.rest.K + np.swapaxes(self.rest.K, 1, 2)) / 2 * scale
        return K, self.solver.mass(self.rest.q, self.rest.J) * scale

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
        """Squared circular frequencies (rows x modes), and mass-normalised modes over the independent rates."""
        K, M = self.matrices
        count, size = len(K), K.shape[1]
        values, vectors = (
            np.full((count, self.modes_requested), np.nan),
            np.full((count, size, self.modes_requested), np.nan),
        )
        for k in self.rows[self.rest.ok]:
            try:
                values[k], vectors[k] = self._modes_of(K[k], M[k], k in self.rest.free or not self.stable[k])
            except (np.linalg.LinAlgError, ValueError):
                self.failed[k] = True
        return values, self.units[:, None] * vectors

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
        D, J = self.solver.programs.damping(self.rest.q), self.rest.J
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
        self.failed |= self.solver.driven(self.rest, self.rows, np.swapaxes(P, 1, 2))
        return P @ self.rest.inverse @ np.swapaxes(P, 1, 2)

    def _of_compliance(self, one: ResponseName) -> Array:
        return selected_entry(self.compliance(one.of, one.parts == PLANAR), one)

    def _of_stiffness(self, one: ResponseName) -> Array:
        return selected_entry(
            stiffnesses(self.compliance(one.of, one.parts == PLANAR), one, self.robot.tree.length), one
        )

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
        rest, free = self.rest, self.solver.robot.free
        if not rest.G.shape[1]:
            return rest.F
        if self.solver.spare:
            rows = np.swapaxes(rest.G[:, :, free], 1, 2)
            lam = np.linalg.pinv(rows, rcond=1e-12) @ rest.F[:, free, None]
        else:
            lam = self.solver.multipliers(rest.G, rest.F)[:, :, None]
        return rest.F - (np.swapaxes(rest.G, 1, 2) @ lam)[:, :, 0]

    def _of_effort(self, one: ResponseName) -> Array:
        k = next(k for k in self.robot.actuated if self.robot.tree.rate_names[k] == one.of)
        return self.needed[:, k] if k in self.solver.robot.locked else np.zeros(len(self.rows))

    def _of_mass(self, one: ResponseName) -> Array:
        return self.solver.programs.mass(self.rest.q)[:, 0]


def stiffnesses(C: Array, one: ResponseName, length: float) -> Array:
    """Inverses of compliances (rows x n x n); not a number where a direction is rigid."""
    turning = np.array([part in ("rx", "ry", "rz", "theta") for part in one.parts])
    lengths = np.where(turning, length, 1.0)
    scaled = C * np.outer(lengths, lengths)
    good = np.isfinite(scaled).all(axis=(1, 2))
    scaled[~good] = np.eye(len(one.parts))
    values = np.linalg.svd(scaled, compute_uv=False)
    rigid = ~good | (values[:, -1] < RIGID * np.maximum(values[:, 0], 1e-300))
    scaled[rigid] = np.eye(len(one.parts))
    found = np.linalg.inv(scaled) * np.outer(lengths, lengths)
    found[rigid] = np.nan
    return found


@dataclass(eq=False, repr=False)
class RowEquilibria(Record):
    """Rows at rest: positions, motions of the closures, forces, multipliers, tangent stiffness and its inverse.

    `ok` says which rows are; of the others nothing is known. `inverse` leaves motions without stiffness out, and `free`
    are these by row, mass-normalised and without units, with what gives the force along each.
    """

    q: Array
    J: Array
    F: Array
    G: Array
    K: Array
    inverse: Array
    free: dict[int, Array]
    ok: Array
    steps: Array  # of Newton's method
    told: Array  # positions after its first step, however long
    steady: Array  # whether its tangents were all positive, in few steps

    def _told(self) -> str:
        return f"{int(self.ok.sum())} of {len(self.ok)} rows at rest"


class EquilibriumSolver:
    """Newton's method on rows of positions of the whole tree, for a robot as it is held."""

    def __init__(self, programs: EquilibriumPrograms) -> None:
        self.programs, robot = programs, programs.robot
        self.robot: Robot = robot
        part = Configuration(robot, robot.home).reduction.partition
        self.rows, self.dependent, self.independent = part.rows, part.dependent, part.independent
        self.units = robot.tree.rate_units[self.independent]
        self.row_units = robot.closures.row_units()
        self.spare = robot.closures.size > len(self.rows)
        self.tau: Array | None = None

    # -- closures --------------------------------------------------------------------------------------

    def motions(self, q: Array) -> tuple[Array, Array, Array]:
        """J_tot, all rates per independent rate, and which rows have a regular block of dependent rates."""
        G = self.programs.closures(q)
        count, n = len(q), self.robot.tree.n
        J = np.zeros((count, n, len(self.independent)))
        J[:, self.independent, np.arange(len(self.independent))] = 1.0
        good = np.ones(count, dtype=bool)
        if len(self.dependent):
            block = G[:, self.rows][:, :, self.dependent]
            scaled = block * self.row_units[self.rows, None] * self.robot.tree.rate_units[self.dependent]
            good = np.isfinite(scaled).all(axis=(1, 2))
            good[good] = np.linalg.cond(scaled[good]) < SINGULAR
            block[~good] = np.eye(len(self.dependent))
            J[:, self.dependent] = np.linalg.solve(block, -G[:, self.rows][:, :, self.independent])
        return G, J, good

    def _closed(self, q: Array) -> tuple[Array, Array]:
        """Positions with loops closed by the dependent rates, and which rows are."""
        good = np.isfinite(q).all(axis=1)
        if not len(self.dependent):
            return q, good
        q, todo = q.copy(), np.flatnonzero(good)
        opening = np.full(len(q), np.inf)
        for _ in range(CLOSING):
            if not len(todo):
                break
            gap = self.programs.openings(q[todo])
            opening[todo] = np.abs(gap).max(axis=1)
            going = (opening[todo] > CLOSED) & np.isfinite(opening[todo])
            todo, gap = todo[going], gap[going]
            if not len(todo):
                break
            G, _, regular = self.motions(q[todo])
            block = G[:, self.rows][:, :, self.dependent]
            block[~regular] = np.eye(len(self.dependent))
            miss = gap * self.robot.tree.length / self.row_units
            step = np.zeros((len(todo), self.robot.tree.n))
            step[:, self.dependent] = np.linalg.solve(block, -miss[:, self.rows, None])[:, :, 0]
            step[~regular] = np.nan
            q[todo] = self.programs.moved(q[todo], step)
        return q, good & (opening < OPEN)

    # -- stiffness -------------------------------------------------------------------------------------

    def multipliers(self, G: Array, F: Array) -> Array:
        """Of the chosen rows, which make the dependent rows of F - J_tot^T lam vanish."""
        lam = np.zeros((len(F), self.robot.closures.size))
        if len(self.dependent):
            block = np.swapaxes(G[:, self.rows][:, :, self.dependent], 1, 2)
            lam[:, self.rows] = np.linalg.solve(block, F[:, self.dependent, None])[:, :, 0]
        return lam

    def slopes(self, q: Array, J: Array, lam: Array, w: Array) -> Array:
        """How F - J_tot^T lam changes along each column of J (rows x rates x columns)."""
        count, _, m = J.shape
        along = np.swapaxes(self.programs.turning(q) @ J, 1, 2).reshape(count * m, -1)
        state = np.repeat(np.concatenate([q, lam, w], axis=1), m, axis=0)
        still = np.zeros((count * m, lam.shape[1] + w.shape[1]))
        found = self.programs.slopes(state, along, still)
        return np.swapaxes(found.reshape(count, m, -1), 1, 2)

    def stiffness(self, q: Array, G: Array, J: Array, F: Array, w: Array) -> Array:
        """K = J^T d(F - J_tot^T lam) along J."""
        return self._along(J, self.slopes(q, J, self.multipliers(G, F), w))

    def mass(self, q: Array, J: Array) -> Array:
        """J^T M_tot J."""
        count, n, m = J.shape
        state = np.repeat(np.concatenate([q, np.zeros((count, n))], axis=1), m, axis=0)
        along = np.swapaxes(J, 1, 2).reshape(count * m, n)
        found = self.programs.inertia(state, np.zeros((count * m, q.shape[1])), along)
        M = self._along(J, np.swapaxes(found.reshape(count, m, -1), 1, 2))
        return (M + np.swapaxes(M, 1, 2)) / 2

    def _along(self, J: Array, columns: Array) -> Array:
        """J^T times columns over all rates: those of independent rates are as they are."""
        found = columns[:, self.independent]
        if len(self.dependent):
            found = found + np.swapaxes(J[:, self.dependent], 1, 2) @ columns[:, self.dependent]
        return found

    def inverse(self, q: Array, J: Array, K: Array) -> tuple[Array, dict[int, Array], Array]:
        """K^-1 without what has no stiffness, these motions by row, and which rows have an inverse."""
        scaled = K * np.outer(self.units, self.units)
        good = np.isfinite(scaled).all(axis=(1, 2))
        found, free = np.zeros_like(K), dict[int, Array]()
        try:
            found[good] = np.linalg.inv(scaled[good])
        except np.linalg.LinAlgError:  # one of them is singular to the last digit
            for k in np.flatnonzero(good).tolist():
                try:
                    found[k] = np.linalg.inv(scaled[k])
                except np.linalg.LinAlgError:
                    found[k] = np.inf
        size = np.abs(scaled).sum(axis=1).max(axis=1, initial=0.0) * np.abs(found).sum(axis=1).max(axis=1, initial=0.0)
        odd = np.flatnonzero(good & ~(size < REGULAR))
        if len(odd):
            M = self.mass(q[odd], J[odd]) * np.outer(self.units, self.units)
            for k, own in zip(odd.tolist(), M, strict=True):
                try:
                    split = split_stiffness((scaled[k] + scaled[k].T) / 2, own)
                except (np.linalg.LinAlgError, ValueError):
                    good[k] = False
                    continue
                found[k], along = split.solve(np.eye(len(own)))
                free[k] = np.stack([split.free.T, along])
        return found * np.outer(self.units, self.units), free, good

    def driven(self, rest: RowEquilibria, rows: Array, columns: Array) -> Array:
        """Rows at which one of the loads (rows x rates x loads) drives a motion that nothing holds."""
        found = np.zeros(len(rows), dtype=bool)
        for i, k in enumerate(rows.tolist()):
            if k in rest.free:
                loads = columns[i] * self.units[:, None]
                motions, along = rest.free[k]
                found[i] = loads_rigid_modes(motions.T, loads, along @ loads)
        return found

    # -- Newton ----------------------------------------------------------------------------------------

    def __call__(self, start: Array, w: Array, tau: Array | None = None) -> RowEquilibria:
        """Equilibria from rows of positions under rows of wrenches and shares of gravity, and of constant efforts."""
        made = copy.copy(self)
        made.tau = tau
        return made._newton(start, w)

    def _forces(self, q: Array, w: Array, rows: Array) -> Array:
        F = self.programs.forces(q, w[rows])
        return F if self.tau is None else F - self.tau[rows]

    def _newton(self, start: Array, w: Array) -> RowEquilibria:
        count, n, m = len(start), self.robot.tree.n, len(self.independent)
        rows, zeros = self.robot.closures.size, np.zeros
        motions, forces, closures = zeros((count, n, m)), zeros((count, n)), zeros((count, rows, n))
        squares, none = (zeros((count, m, m)), zeros((count, m, m))), zeros(count, dtype=int)
        rest = RowEquilibria(
            start.copy(), motions, forces, closures, *squares, {}, none > 0, none, start.copy(), none == 0
        )
        going, travel = np.arange(count), np.zeros(count)
        for number in range(STEPS):
            going = self._linearise(rest, going, w)
            if not len(going):
                break
            for k in going[rest.steady[going]].tolist():
                rest.steady[k] = number < FEW_STEPS and is_positive(rest.K[k] * np.outer(self.units, self.units))
            c = self._along(rest.J[going], rest.F[going, :, None])
            x = -(rest.inverse[going] @ c)[:, :, 0]
            held = ~self.driven(rest, going, c)
            going, x = going[held], x[held]
            size = np.linalg.norm(x / self.units, axis=1)
            rest.steps[going] = number + 1
            if not number and len(going):
                whole = (rest.J[going] @ x[:, :, None])[:, :, 0]
                rest.told[going] = self.programs.moved(rest.q[going], whole)
            last = size <= np.maximum(1e-7 * travel[going], FINE)
            self._finish(rest, going[last], x[last], w)
            going, x, size = going[~last], x[~last], size[~last]
            if not len(going):
                break
            going = self._step(rest, going, x, size, travel, w)
        return rest

    def _linearise(self, rest: RowEquilibria, rows: Array, w: Array) -> Array:
        """Motions, forces, stiffness and its inverse at the positions of rows; those that have them."""
        q = rest.q[rows]
        G, J, good = self.motions(q)
        F = self._forces(q, w, rows)
        good &= np.isfinite(F).all(axis=1)
        rows, q, G, J, F = rows[good], q[good], G[good], J[good], F[good]
        if not len(rows):
            return rows
        K = self.stiffness(q, G, J, F, w[rows])
        inverse, free, good = self.inverse(q, J, K)
        rest.G[rows], rest.J[rows], rest.F[rows], rest.K[rows], rest.inverse[rows] = G, J, F, K, inverse
        for i, k in enumerate(rows.tolist()):
            rest.free.pop(k, None)
            if i in free:
                rest.free[k] = free[i]
        return rows[good]

    def _step(self, rest: RowEquilibria, going: Array, x: Array, size: Array, travel: Array, w: Array) -> Array:
        """The longest of ever shorter steps after which the same tangent asks for a shorter one; rows that go on."""
        share = np.minimum(1.0, STRIDE / np.abs(x / self.units).max(axis=1))
        pending, moved = np.arange(len(going)), np.zeros(len(going), dtype=bool)
        for _ in range(HALVINGS):
            rows = going[pending]
            step = (rest.J[rows] @ (share[pending, None] * x[pending])[:, :, None])[:, :, 0]
            q, closed = self._closed(self.programs.moved(rest.q[rows], step))
            helps = np.zeros(len(rows), dtype=bool)
            if closed.any():
                _, J, good = self.motions(q[closed])
                F = self._forces(q[closed], w, rows[closed])
                ahead = rest.inverse[rows[closed]] @ self._along(J, F[:, :, None])
                length = np.linalg.norm(ahead[:, :, 0] / self.units, axis=1)
                with np.errstate(invalid="ignore"):
                    helps[closed] = good & (length < size[pending[closed]])
            rest.q[rows[helps]] = q[helps]
            travel[rows[helps]] += share[pending[helps]] * size[pending[helps]]
            moved[pending[helps]] = True
            pending = pending[~helps]
            share[pending] /= 2
            if not len(pending):
                break
        settled = going[pending[size[pending] < SHORT]]  # rounding: steps do not become shorter any more
        rest.ok[settled] = self._usual(rest, settled)
        return going[moved]

    def _finish(self, rest: RowEquilibria, rows: Array, x: Array, w: Array) -> None:
        """The last step, and the tangent where it ends."""
        if not len(rows):
            return
        step = (rest.J[rows] @ x[:, :, None])[:, :, 0]
        q, closed = self._closed(self.programs.moved(rest.q[rows], step))
        rest.q[rows[closed]] = q[closed]
        done = self._linearise(rest, rows, w)
        rest.ok[done] = self._usual(rest, done)

    def _usual(self, rest: RowEquilibria, rows: Array) -> Array:
        """Rows at which loops hold as at home: rows of closures that repeat others there repeat them here."""
        if not self.spare or not len(rows):
            return np.ones(len(rows), dtype=bool)
        tree, free = self.robot.tree, self.robot.free
        scaled = rest.G[rows][:, :, free] * self.row_units[:, None] * (tree.rate_units[free] / tree.length)
        values = np.linalg.svd(scaled, compute_uv=False)
        rank = len(self.rows)
        if values.shape[1] <= rank:
            return np.ones(len(rows), dtype=bool)
        return values[:, rank] <= 1e-6 * values[:, 0]


class BacklashSides:
    """Rows of positions with the flanks that loads press; `begun` are these at rest on them."""

    def __init__(self, solver: EquilibriumSolver, start: Array, w: Array, plays: Array) -> None:
        self.solver, self.half, self.count = solver, plays / 2, plays.shape[1]
        stretch = self._stretch(start)
        side = np.sign(stretch) * self.half
        inside = np.abs(stretch) <= self.half
        self.flank = np.where(inside, 0.0, side)
        self.begun, self.sure = start.copy(), np.ones(len(start), dtype=bool)
        self._put()
        some = inside.any(axis=1)
        for last in (False, True):  # which flanks are pressed, then where they come to rest
            rows = np.flatnonzero(some & self.sure)
            if not len(rows):
                return
            rest = solver(self.begun[rows], w[rows])
            self.sure[rows] = rest.ok
            self.begun[rows[rest.ok]] = rest.q[rest.ok]
            if not last:
                stretch = self._stretch(self.begun)
                self.sure &= ~some | (np.abs(stretch) > FINE).any(axis=1)  # else gears may rest in their play
                self.flank = np.where(inside, np.sign(stretch) * self.half, self.flank)
                self._put()

    def _put(self) -> None:
        self.begun[:, -self.count :] = self.flank

    def _stretch(self, wide: Array) -> Array:
        """From the middle of the play."""
        return np.asarray(self.solver.programs.stretches(wide)[:, 0] + wide[:, -self.count :])

    def hold(self, rest: RowEquilibria) -> Array:
        """Rows that rest where their couplings press the flanks that were taken, by few steps through stable states."""
        pressed = np.sign(self.flank) * self._stretch(rest.q) - self.half
        near = rest.ok & rest.steady & agrees_with_tangent(self.begun, rest.told, rest.q)
        return np.asarray(self.sure & near & (pressed > FINE).all(axis=1))
