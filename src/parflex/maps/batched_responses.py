"""Responses at rows of poses: of linear models, and the conditions of poses."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy

from parflex.closure import mobility
from parflex.closure.working_modes import block
from parflex.maps.responses import PLANAR, TURNS, ResponseName, selected_entry, signed_twists
from parflex.maps.row_statics import RowModels, RowStatics
from parflex.maps.tree_programs import SparseRows
from parflex.recursion.kinematics import jacobians, pose
from parflex.robot.beam_nodes import is_between
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot, file_frame
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.equilibrium_solver import is_positive
from parflex.statics.linear_system import lowest_modes, sorted_modes
from parflex.statics.loads import has_force_elements
from parflex.statics.stiffness import RIGID
from parflex.symbolic.expression import Graph

Array = np.ndarray
CONDITIONS = ("conditioning", "singularity")
BATCHED = ("frequency", "damping", "shape", "motion", "stiffness", "compliance", "deflection", "effort")
PLANE = [0, 1, 5]


def is_batched(robot: Robot, one: ResponseName, at_equilibrium: bool) -> bool:
    """Whether linear models of rows answer a response; forces between the nodes of a beam are left to single poses."""
    if one.kind == "strain":  # energies of couplings and elements are not those of one link
        return not (at_equilibrium or robot.tree.springs or has_force_elements(robot.tree))
    forced = one.kind in ("stiffness", "compliance", "deflection") and one.of
    return one.kind in BATCHED and not (forced and is_between(robot, one.of))


class ModelResponses:
    """Responses of linear models of rows; what several responses need is computed once.

    `failed` are rows that are left to the functions of single poses, and `start` the positions before loads act.
    """

    def __init__(self, robot: Robot, statics: RowStatics, models: RowModels, start: Array, modes: int) -> None:
        self.robot, self.statics, self.models, self.start = robot, statics, models, start
        self.programs = statics.programs
        self.modes_requested = modes
        self.failed = ~models.ok

    def answer(self, response: ResponseName) -> Array:
        """Numbers of a response at all rows."""
        return np.asarray(getattr(self, f"_of_{response.kind}")(response), dtype=float)

    # -- modes -----------------------------------------------------------------------------------------

    @cached_property
    def matrices(self) -> tuple[Array, Array]:
        """Symmetric part of K, and M, without units."""
        K = self.models.states.K
        return (K + np.swapaxes(K, 1, 2)) / 2, self.statics.mass_matrices(self.models.q, self.models.J)

    @cached_property
    def stable(self) -> Array:
        """Rows from which no motion sets energy free."""
        stable = np.ones(len(self.failed), dtype=bool)
        for k in np.flatnonzero(self.models.ok):
            stable[k] = is_positive(self.models.states.K[k])
        return stable

    @cached_property
    def modes(self) -> tuple[Array, Array]:
        """Squared circular frequencies (rows x modes), and mass-normalised modes along the independent rates."""
        K, M = self.matrices
        values = np.full((len(K), self.modes_requested), np.nan)
        vectors = np.full((*K.shape[:2], self.modes_requested), np.nan)
        for k in np.flatnonzero(self.models.ok):
            try:
                values[k], vectors[k] = self._modes_of(K[k], M[k], k in self.models.inverse.free or not self.stable[k])
            except (np.linalg.LinAlgError, ValueError):
                self.failed[k] = True
        if self.models.K_tot is None:
            return values, vectors
        # as at single poses: energies of bodies are positive, so that slow modes keep the digits that the solver loses
        rates = self.models.J @ vectors
        values = np.einsum("rim,rim->rm", rates, self.models.K_tot @ rates)
        order = np.argsort(values, axis=1, kind="stable")
        return np.take_along_axis(values, order, axis=1), np.take_along_axis(vectors, order[:, None], axis=2)

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

    @cached_property
    def shapes(self) -> Array:
        """All rates in the modes (rows x rates x modes)."""
        return self.models.J @ self.modes[1]

    def _of_frequency(self, one: ResponseName) -> Array:
        return np.sqrt(self.modes[0][:, one.mode - 1]) / (2 * np.pi)

    @cached_property
    def damping(self) -> Array:
        """Damping ratios (rows x modes)."""
        dissipation = np.einsum("rim,rim->rm", self.shapes, self.programs.damping(self.models.q) @ self.shapes)
        return dissipation / (2 * np.sqrt(self.modes[0]))

    def _of_damping(self, one: ResponseName) -> Array:
        return self.damping[:, one.mode - 1]

    def _of_shape(self, one: ResponseName) -> Array:
        P = self.programs.frame_rows(self.robot.tree.end_effector)(self.models.q)
        twist = P @ self.shapes[:, :, one.mode - 1 : one.mode]
        return signed_twists(twist[:, :, 0], self.robot.tree.length)

    def _of_motion(self, one: ResponseName) -> Array:
        shape = self.shapes[:, :, one.mode - 1]
        return shape * np.sign(np.take_along_axis(shape, np.abs(shape).argmax(axis=1)[:, None], axis=1))

    def _of_strain(self, one: ResponseName) -> Array:
        assert self.models.K_tot is not None
        shape = self.shapes[:, :, one.mode - 1]
        energies, shares = shape * (self.models.K_tot @ shape[:, :, None])[:, :, 0], []
        for part in one.parts:
            links = [link for link in self.robot.tree.links if file_frame(self.robot, link.name) == part]
            rates = [k for link in links for span in (link.v, link.e_v) for k in range(span.start, span.stop)]
            shares.append(energies[:, rates].sum(axis=1))
        return np.stack(shares, axis=1) / energies.sum(axis=1, keepdims=True)

    # -- statics ---------------------------------------------------------------------------------------

    def _compliance(self, one: ResponseName) -> Array:
        """Of a frame in world axes."""
        P = self.programs.frame_rows(one.of)(self.models.q)
        P = (P[:, PLANE] if one.parts == PLANAR else P) @ self.models.J
        self.failed |= self.models.inverse.driven(np.swapaxes(P, 1, 2))
        return P @ self.models.inverse.matrices @ np.swapaxes(P, 1, 2)

    def _of_compliance(self, one: ResponseName) -> Array:
        return selected_entry(self._compliance(one), one)

    def _of_stiffness(self, one: ResponseName) -> Array:
        """Inverses of compliances (rows x n x n); not a number where a direction is rigid."""
        turning = np.array([part in TURNS for part in one.parts])
        lengths = np.where(turning, self.robot.tree.length, 1.0)
        scaled = self._compliance(one) * np.outer(lengths, lengths)
        rigid = ~np.isfinite(scaled).all(axis=(1, 2))
        scaled[rigid] = 0.0
        values = np.linalg.svd(scaled, compute_uv=False)
        rigid |= values[:, -1] < RIGID * np.maximum(values[:, 0], 1e-300)
        scaled[rigid] = np.eye(len(one.parts))
        stiffness = np.linalg.inv(scaled) * np.outer(lengths, lengths)
        stiffness[rigid] = np.nan
        return selected_entry(stiffness, one)

    @cached_property
    def forces(self) -> Array:
        """F of the open tree at the positions of the models."""
        return self.programs.forces(self.models.q, self.models.loads)

    @cached_property
    def step(self) -> Array:
        """Motions along all rates from an undeformed pose under the loads, to first order."""
        force = np.swapaxes(self.models.J, 1, 2) @ self.forces[:, :, None]
        self.failed |= self.models.inverse.driven(force)
        return -(self.models.J @ (self.models.inverse.matrices @ force))[:, :, 0]

    def _of_deflection(self, one: ResponseName) -> Array:
        if self.models.K_tot is not None:
            moved = (self.programs.frame_rows(one.of)(self.models.q) @ self.step[:, :, None])[:, :, 0]
        else:
            place = self.programs.places(one.of)
            before, now = place(self.start), place(self.models.q)
            moved = np.full((len(now), 6), np.nan)
            moved[:, :3] = now[:, 9:] - before[:, 9:]
            for k in np.flatnonzero(self.models.ok):
                moved[k, 3:] = vector_from_rotation(now[k, :9].reshape(3, 3) @ before[k, :9].reshape(3, 3).T)
        return moved if one.direction is None else moved[:, one.direction]

    @cached_property
    def needed(self) -> Array:
        """F - J_tot^T lam along all rates, with multipliers of least norm."""
        F, G, free = self.forces, self.models.G, self.statics.robot.free
        if self.models.K_tot is not None:
            F = F + (self.models.K_tot @ self.step[:, :, None])[:, :, 0]
        if not G.shape[1]:
            return F
        if self.statics.spare:
            lam = np.linalg.pinv(np.swapaxes(G[:, :, free], 1, 2), rcond=1e-12) @ F[:, free, None]
        else:
            lam = self.statics.multipliers(G, F)[:, :, None]
        return F - (np.swapaxes(G, 1, 2) @ lam)[:, :, 0]

    def _of_effort(self, one: ResponseName) -> Array:
        k = next(k for k in self.robot.actuated if self.robot.tree.rate_names[k] == one.of)
        return self.needed[:, k] if k in self.statics.robot.locked else np.zeros(len(self.failed))


class ConditionRows:
    """The condition of a robot with rigid bodies at rows of its positions, as `Configuration.condition` has it."""

    def __init__(self, robot: Robot) -> None:
        rigid = robot.locking(robot.deformations) if robot.deformations else robot
        self.robot, tree = rigid, rigid.tree
        self.kept = np.array([i for link in tree.links for i in range(link.q.start, link.q.stop)], dtype=int)
        graph = Graph()
        q = np.zeros(tree.nq, dtype=object)
        q[self.kept] = [graph.symbol(f"q[{k}]") for k in range(len(self.kept))]
        at = pose(tree, q)
        links = jacobians(tree, at)
        self.legs: dict[str, tuple[SparseRows, Array, int]] = {}
        for part in Configuration(rigid, rigid.home).leg_parts.values():
            blocks = [rigid.assembler.block(reference, part) for reference in rigid.reference_poses]
            ranks = [mobility.rank(self._without_rotor_rows(leg_block, part.columns)) for leg_block in blocks]
            leg_rows = SparseRows(graph, "condition_leg", block(tree, part.rows, part.columns, at, links))
            self.legs[part.name] = leg_rows, part.columns, max(ranks)
        J = mobility.scale(rigid.closures, rigid.closures.jacobian(at, links))[:, rigid.free]
        self.closures = SparseRows(graph, "condition_closures", J) if J.size else None
        position = {int(k): i for i, k in enumerate(rigid.free)}
        self.motors = [position[k] for k in rigid.actuated if k in position]

    def prepare(self) -> None:
        """Programs are compiled before threads share them."""
        self(self.robot.home[None])

    def __call__(self, whole: Array) -> dict[str, Array]:
        """Condition number of the platform, and 1 over the largest of all, at rows of positions of the tree."""
        q, robot = whole[:, self.kept], self.robot
        count, rank = len(q), robot.mobility.rank
        worst = np.ones(count)
        for program, columns, size in self.legs.values():
            worst = np.maximum(worst, _conditions(self._without_rotor_rows(program(q), columns), size))
        free = len(robot.free)
        motions = np.broadcast_to(np.eye(free), (count, free, free))
        if self.closures is not None:
            J, rank, _, motions = robot.gearing.judged(self.closures(q), robot.free, rank, robot.tree.rate_units)
            if rank:
                worst = np.maximum(worst, _conditions(J, rank, robot.regular_closure_norm))
        freedoms = motions.shape[2]
        A, enough = motions[:, self.motors], len(self.motors) >= freedoms
        platform = np.ones(count)
        if freedoms:
            platform = _conditions(A, freedoms, robot.regular_actuation_norm) if enough else np.full(count, np.inf)
        if enough:
            worst = np.maximum(worst, platform)
        return {"conditioning": platform, "singularity": 1.0 / worst}

    def _without_rotor_rows(self, block: Array, columns: Array) -> Array:
        """Rows of a leg on what they hold beside rotors of gears."""
        return self.robot.gearing.project_out_rotors(block, columns, self.robot.tree.rate_units)


def _conditions(matrices: Array, size: int, usual: Callable[[], float] | None = None) -> Array:
    """Of each matrix the ratio of the largest to the `size`-th singular value, as `mobility.condition` has it."""
    if 0 in matrices.shape[1:]:
        return np.ones(len(matrices))
    values = np.linalg.svd(matrices, compute_uv=False)
    last = values[:, (size or min(matrices.shape[1:])) - 1]
    top = np.maximum(values[:, 0], mobility.TINY)
    if usual is not None and (top <= mobility.SMALL).any():
        top = np.where(top > mobility.SMALL, top, np.maximum(top, usual()))
    with np.errstate(divide="ignore"):
        return np.where(last > 0, top / last, np.inf)
