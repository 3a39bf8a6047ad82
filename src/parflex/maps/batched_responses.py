"""Responses at many poses at once: stiffness, deflection, condition numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from parflex.closure import mobility
from parflex.closure.working_modes import block
from parflex.forces.forces import Wrench
from parflex.maps.assembly import Assembly, NodeModel
from parflex.maps.equilibrium_programs import SparseRows
from parflex.maps.responses import ResponseName, RowResponses, signed_twists
from parflex.recursion.kinematics import jacobians, pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot, file_frame
from parflex.statics.linear_system import REGULAR, ZERO, loads_rigid_modes, lowest_modes, split_stiffness
from parflex.symbolic.expression import Graph
from parflex.tree.tree import GROUND

Array = np.ndarray

COVERED = ("frequency", "damping", "shape", "strain", "stiffness", "compliance", "deflection", "mass")

PLANE = [0, 1, 5]

KINDS = ("conditioning", "singularity")


def uncovered_reason(robot: Robot, responses: Sequence[ResponseName], wrench: Wrench | None) -> str:
    """Why these responses cannot be had together; empty where they can."""
    apart = sorted({item.kind for item in responses if item.kind not in COVERED})
    if apart:
        return f"{', '.join(apart)}: computed pose by pose"
    lossy = any(item.acts and (item.damping or item.speed_curve is not None) for item in robot.tree.elements)
    if lossy and any(item.kind == "damping" for item in responses):
        return "a damper between two points"
    frames = [item.of for item in responses if item.of] + list(wrench or {})
    frames += [robot.tree.end_effector] * any(item.kind == "shape" for item in responses)
    for frame in frames:
        place = robot.tree.place(frame)
        if place.inner is not None or place.link == GROUND:
            return f"'{frame}' is inside a body or on the ground"
    return ""


class BatchedResponses(RowResponses):
    """Matrices of some poses, and what follows from them; what several responses need is computed once."""

    def __init__(
        self,
        model: NodeModel,
        assembly: Assembly,
        places: tuple[Array, Array],
        free: int,
        modes: int,
        wrench: Wrench | None = None,
        designs: Array | None = None,
    ) -> None:
        self.robot, self.model, self.places = model.robot, model, places
        self.assembly = assembly if designs is None else assembly.of_rows(designs)
        self.free, self.modes, self.wrench = free, modes, wrench or {}
        self.open_motions = {j: self.assembly.motion(j, *places) for j in self.assembly.bodies}
        loop_rows = self.assembly.held
        self.left: Array | None = None
        usual = np.ones(len(places[0]), dtype=bool)
        if loop_rows is not None:
            self.left, usual = loop_rows.motions(*places)
        self.motions = {j: self._left(*motion) for j, motion in self.open_motions.items()}
        # poses that are left to the functions of single poses; at once those where loops hold otherwise than at home
        self.K = self._closed(self.assembly.open_stiffness(self.open_motions, len(places[0])))
        self.odd = ~(usual & np.isfinite(self.K).all(axis=(1, 2)))
        self.K[self.odd] = np.eye(self.K.shape[1])
        self.failed = self.odd.copy()
        self.loose: dict[
            int, tuple[Array, Array]
        ] = {}  # motions that nothing holds, and what gives the force along them

    @cached_property
    def M(self) -> Array:
        """The mass beside K: statics do without it."""
        mass = self._closed(self.assembly.open_mass(self.open_motions, len(self.K)))
        mass[self.odd] = np.eye(self.K.shape[1])
        return mass

    def _closed(self, matrix: Array) -> Array:
        """A matrix over what loops leave free of the unknowns."""
        return matrix if self.left is None else np.swapaxes(self.left, 1, 2) @ matrix @ self.left

    def _left(self, columns: Array, W: Array) -> tuple[Array, Array]:
        """A motion over what loops leave free of the unknowns."""
        if self.left is None:
            return columns, W
        return np.arange(self.left.shape[2]), W @ self.left[:, columns]

    def _stretches(self) -> list[tuple[str, Array, Any, Any]]:
        """Springs of joints and couplings: frame, stretch per unit of the unknowns, stiffness and damping."""
        size, tree = self.assembly.model.columns, self.assembly.tree
        springs = []
        for j, k in self.assembly.joint_rows():
            terms = tree.links[j].terms
            damping = self.assembly.chosen_number(terms.damper) + self.assembly.chosen_number(terms.viscous)
            springs.append(
                (tree.links[j].name, np.eye(size)[k][None], self.assembly.chosen_number(terms.stiffness), damping)
            )
        for spring in tree.springs:
            numbers = self.assembly.chosen_number(spring.stiffness), self.assembly.chosen_number(spring.damping)
            springs.append((tree.links[spring.numbers[0]].name, self.assembly.stretch(spring), *numbers))
        return [
            (file_frame(self.robot, name), row if self.left is None else (row[:, None] @ self.left)[:, 0], *numbers)
            for name, row, *numbers in springs
        ]

    # -- modes -----------------------------------------------------------------------------------------

    @cached_property
    def vectors(self) -> Array:
        """Mass-normalised modes (poses x unknowns x modes) in the order of their strain energies."""
        count, size, _ = self.K.shape
        shapes = np.zeros((count, size, self.modes))
        for k in range(count):
            try:
                w, v = lowest_modes(self.K[k], self.M[k], self.free, self.modes)
            except np.linalg.LinAlgError:
                self.failed[k] = True
                continue
            scale = np.abs(self.K[k]).max() / np.abs(self.M[k]).max()
            if (np.abs(w[: self.free]) > ZERO * scale).any() or w[self.free] <= 1e-9 * w[-1]:
                self.failed[k] = True  # not the motions without stiffness that the robot has at home
            shapes[k] = v[:, self.free :]
        return shapes

    @cached_property
    def energies(self) -> dict[str, Array]:
        """Twice the strain energy of each mode (poses x modes) by frame, body by body: none is a difference."""
        tree = self.robot.tree
        energies: dict[str, Array] = {}
        for j, (columns, W) in self.motions.items():
            name = file_frame(self.robot, tree.links[j].name)
            if W.shape[1] > 6:
                bent = W[:, 6:] @ self.vectors[:, columns]
                energy = np.einsum("pim,pim->pm", bent, self.assembly.stiffness[j] @ bent)
                energies[name] = energies.get(name, 0.0) + energy
        for name, row, stiffness, _ in self._stretches():
            stretch = (row[:, None] @ self.vectors)[:, 0]
            energies[name] = energies.get(name, 0.0) + np.reshape(stiffness, (-1, 1)) * stretch**2
        return energies

    @cached_property
    def squares(self) -> Array:
        """Squared circular frequencies (poses x modes), as sums of energies."""
        return sum(self.energies.values(), np.zeros((len(self.K), self.modes)))

    @cached_property
    def frequencies(self) -> Array:
        """In Hz (poses x modes)."""
        return np.sort(np.sqrt(self.squares) / (2 * np.pi), axis=1)

    @cached_property
    def order(self) -> Array:
        """Columns of the modes from the lowest frequency up."""
        return np.argsort(self.squares, axis=1, kind="stable")

    def _mode(self, values: Array, response: ResponseName) -> Array:
        """Of numbers of modes (poses x ... x modes) those of one."""
        number = self.order[:, response.mode - 1]
        index = number.reshape(-1, *[1] * (values.ndim - 1))
        return np.take_along_axis(values, index, axis=-1)[..., 0]

    def _of_frequency(self, response: ResponseName) -> Array:
        return self.frequencies[:, response.mode - 1]

    def _of_damping(self, response: ResponseName) -> Array:
        dissipation = np.einsum("pim,pij,pjm->pm", self.vectors, self.damping, self.vectors)
        return self._mode(dissipation / (2 * np.sqrt(self.squares)), response)

    def _of_shape(self, response: ResponseName) -> Array:
        return self.twists[:, response.mode - 1]

    def _of_strain(self, response: ResponseName) -> Array:
        shares = np.stack(
            [np.broadcast_to(self.energies.get(p, 0.0), self.squares.shape) for p in response.parts], axis=1
        )
        return self._mode(shares / self.squares[:, None], response)

    @cached_property
    def twists(self) -> Array:
        """Twists of the end effector (poses x modes x 6)."""
        twists = self.frame_rows(self.robot.tree.end_effector) @ self.vectors
        ordered = np.take_along_axis(twists, self.order[:, None, :], axis=2)
        return signed_twists(np.swapaxes(ordered, 1, 2), self.robot.tree.length)

    @cached_property
    def damping(self) -> Array:
        """D (poses x n x n): bodies, dampers and viscous friction of joints."""
        D, tree = np.zeros_like(self.K), self.assembly.tree
        for j, (columns, W) in self.motions.items():
            if W.shape[1] > 6:
                body = tree.links[j].body
                body_damping = self.assembly.chosen_number(body.damping_at(np.zeros(body.size)))
                D[:, columns[:, None], columns] += np.swapaxes(W[:, 6:], 1, 2) @ (body_damping @ W[:, 6:])
        for _, row, _, coefficient in self._stretches():
            D += np.reshape(coefficient, (-1, 1, 1)) * (row[:, :, None] * row[:, None, :])
        return D

    # -- statics ---------------------------------------------------------------------------------------

    @cached_property
    def inverse(self) -> Array:
        """K^-1 (poses x n x n); what is free is left out, and where loads drive it, the pose is left to single ones."""
        size = np.sqrt(np.maximum(np.einsum("pii->pi", self.K), 1e-300))
        scaled = self.K / (size[:, :, None] * size[:, None, :])
        try:
            inverse = np.linalg.inv(scaled)
            condition = np.abs(scaled).sum(axis=1).max(axis=1) * np.abs(inverse).sum(axis=1).max(axis=1)
        except np.linalg.LinAlgError:
            inverse, condition = np.zeros_like(scaled), np.full(len(scaled), np.inf)
        inverse = inverse / (size[:, :, None] * size[:, None, :])
        for k in np.flatnonzero(~(condition < REGULAR) & ~self.failed).tolist():
            try:
                split = split_stiffness(self.K[k], self.M[k])
                inverse[k], along = split.solve(np.eye(len(self.K[k])))
                self.loose[k] = split.free, along
            except (np.linalg.LinAlgError, ValueError):
                self.failed[k] = True
        return inverse

    def _leave_driven(self, loads: Array) -> None:
        """Poses at which loads (poses x n x loads) drive what is free are left to those who name it."""
        for k, (free, along) in self.loose.items():
            self.failed[k] |= loads_rigid_modes(free, loads[k], along @ loads[k])

    def frame_rows(self, frame: str) -> Array:
        """World twist of a frame per unit of the unknowns (poses x 6 x n)."""
        place = self.assembly.tree.place(frame)
        columns, W = self.motions[place.link]
        R = self.places[0][:, self.assembly.index[place.link]]
        position = np.atleast_2d(self.assembly.chosen_number(place.position))
        v = W[:, :3] + np.cross(W[:, 3:6], position[:, :, None], axis=1)
        J = np.zeros((len(W), 6, self.K.shape[1]))
        J[:, :, columns] = np.concatenate([R @ v, R @ W[:, 3:6]], axis=1)
        return J

    def compliance(self, frame: str, planar: bool) -> Array:
        """Of a frame in world axes."""
        P = self.frame_rows(frame)
        P = P[:, PLANE] if planar else P
        compliance = P @ self.inverse @ np.swapaxes(P, 1, 2)
        self._leave_driven(np.swapaxes(P, 1, 2))
        return compliance

    @cached_property
    def step(self) -> Array:
        """How the unknowns move under gravity and the wrenches (poses x n), to first order."""
        force = np.zeros(self.K.shape[:2])
        tree = self.assembly.tree
        g = np.atleast_2d(self.assembly.chosen_number(tree.gravity))
        for j, (columns, W) in self.motions.items():
            R = self.places[0][:, self.assembly.index[j]]
            pull = self.assembly.inertia[j][..., :3] @ (np.swapaxes(R, 1, 2) @ g[:, :, None])
            force[:, columns] += np.einsum("pic,pi->pc", W, np.broadcast_to(pull[..., 0], W.shape[:2]))
        for frame, wrench in self.wrench.items():
            force += np.einsum("pic,i->pc", self.frame_rows(frame), np.asarray(wrench, dtype=float))
        moved = np.einsum("pij,pj->pi", self.inverse, force)
        self._leave_driven(force[:, :, None])
        return moved

    def _of_deflection(self, response: ResponseName) -> Array:
        displacement = np.einsum("pij,pj->pi", self.frame_rows(response.of), self.step)
        return displacement if response.direction is None else displacement[:, response.direction]

    def _of_mass(self, response: ResponseName) -> Array:
        masses = [self.assembly.chosen_number(link.body.m) for link in self.assembly.tree.links]
        return np.broadcast_to(sum(masses), len(self.K))


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
