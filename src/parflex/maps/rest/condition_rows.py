"""Condition numbers of many poses at once: of legs, of closures and of the platform with locked motors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parflex.closure import mobility
from parflex.closure.working_modes import block
from parflex.maps.rest.rest_programs import SparseRows
from parflex.recursion.kinematics import jacobians, pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.symbolic.expression import Graph

Array = np.ndarray
KINDS = ("conditioning", "singularity")


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
            blocks = [rigid.assembler.block(here, part) for here in rigid.reference_poses]
            ranks = [mobility.rank(self._beside_rotors(one, part.columns)) for one in blocks]
            own = SparseRows(graph, "condition_leg", block(tree, part.rows, part.columns, at, links))
            self.legs[part.name] = own, part.columns, max(ranks)
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
            worst = np.maximum(worst, _conditions(self._beside_rotors(program(q), columns), size))
        free = len(robot.free)
        motions = np.broadcast_to(np.eye(free), (count, free, free))
        if self.closures is not None:
            J, rank, _, motions = robot.gearing.judged(self.closures(q), robot.free, rank, robot.tree.rate_units)
            if rank:
                worst = np.maximum(worst, _conditions(J, rank, robot.usual_closures))
        freedoms = motions.shape[2]
        A, enough = motions[:, self.motors], len(self.motors) >= freedoms
        platform = np.ones(count)
        if freedoms:
            platform = _conditions(A, freedoms, robot.usual_actuation) if enough else np.full(count, np.inf)
        if enough:
            worst = np.maximum(worst, platform)
        return {"conditioning": platform, "singularity": 1.0 / worst}

    def _beside_rotors(self, block: Array, columns: Array) -> Array:
        """Rows of a leg on what they hold beside rotors of gears."""
        return self.robot.gearing.beside_rotors(block, columns, self.robot.tree.rate_units)


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
