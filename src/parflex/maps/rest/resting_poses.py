"""Responses of rows at rest: what `natural_frequencies`, `cartesian_stiffness` and `deflection` say of single poses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import scipy

from parflex.maps.responses.at_one_pose import picked, signed_twists
from parflex.maps.responses.response_names import PLANAR, ResponseName
from parflex.maps.rest.rest_programs import RestPrograms, RowProgram, SparseRows
from parflex.maps.rest.rest_solver import AtRest, RestSolver
from parflex.robot.robot import Robot
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.equilibrium import is_positive
from parflex.statics.inner_compliance import is_between
from parflex.statics.linear_system import lowest_modes, sorted_modes
from parflex.statics.stiffness import RIGID

Array = np.ndarray
BATCHED = ("frequency", "damping", "shape", "motion", "stiffness", "compliance", "deflection", "effort", "mass")
PLANE = [0, 1, 5]


def batched(robot: Robot, one: ResponseName) -> bool:
    """Whether a response is had for many rows at once: forces between the nodes of a beam are left to single poses."""
    forced = one.kind in ("stiffness", "compliance", "deflection") and one.of
    return one.kind in BATCHED and not (forced and is_between(robot, one.of))


class FramePrograms:
    """Places and Jacobians of the frames that responses ask for, traced once."""

    def __init__(self, programs: RestPrograms, responses: Sequence[ResponseName]) -> None:
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


class RestingPoses:
    """Some rows at rest, and what follows from them; what several responses need is computed once.

    `failed` are rows that are left to the functions of single poses.
    """

    def __init__(
        self, robot: Robot, solver: RestSolver, frames: FramePrograms, rest: AtRest, start: Array, modes: int
    ) -> None:
        self.robot, self.solver, self.frames, self.rest, self.start = robot, solver, frames, rest, start
        self.modes_asked = modes
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
        values, vectors = np.full((count, self.modes_asked), np.nan), np.full((count, size, self.modes_asked), np.nan)
        for k in self.rows[self.rest.ok]:
            try:
                values[k], vectors[k] = self._modes_of(K[k], M[k], k in self.rest.free or not self.stable[k])
            except (np.linalg.LinAlgError, ValueError):
                self.failed[k] = True
        return values, self.units[:, None] * vectors

    def _modes_of(self, K: Array, M: Array, all_of_them: bool) -> tuple[Array, Array]:
        """The lowest modes; beside motions that are free or grow, as for single poses, from all modes."""
        wanted = self.modes_asked
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
        return picked(self.compliance(one.of, one.parts == PLANAR), one)

    def _of_stiffness(self, one: ResponseName) -> Array:
        return picked(stiffnesses(self.compliance(one.of, one.parts == PLANAR), one, self.robot.tree.length), one)

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
