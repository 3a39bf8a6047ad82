"""Rows of efforts along a motion of the motors, and exact slopes of what is made of them, through the loops.

Slopes go backwards: from rows, efforts, joints and places to positions, rates and accelerations of the motors. The
programs know what rows and closures feel of all joints; between them stand the two linear systems of the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from parflex.codegen.model import Model, cached_program
from parflex.codegen.options import Options
from parflex.codegen.tracer import Tracer
from parflex.identification.regressors import ClosedMotion, Regressor, known_forces, rows_of
from parflex.records import Record
from parflex.recursion.kinematics import jacobians, motion, pose
from parflex.symbolic.derivative import gradient
from parflex.tree.tree import Tree

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Seeds(Record):
    """Slopes of a number by what a motion has: rows, known efforts, the end effector's place, joints, J."""

    rows: Array  # instants x rows x columns
    known: Array  # instants x rows
    place: Array  # instants x 3
    q: Array  # instants x rates: by positions, along rates
    qd: Array
    J: Array


class SlopedRows:
    """Rows of some unknowns of a robot whose motors are moved, and slopes back to these."""

    def __init__(self, regressor: Regressor, columns: Sequence[int]) -> None:
        self.regressor, self.columns = regressor, list(columns)

    @cached_property
    def _place(self) -> Model:
        robot = self.regressor.robot

        def outputs(tracer: Tracer) -> dict[str, Array]:
            at = pose(robot.tree, tracer.group("q", robot.tree.nq))
            return {"place": at.of(robot.tree.places[robot.tree.end_effector])[1]}

        return cached_program(robot, "place", Options(), outputs)

    def places(self, q: Array) -> Array:
        """Where the end effector is."""
        return self._place(q=q)["place"]

    @cached_property
    def _felt_rows(self) -> Model:
        """What the weighted sum of rows, known efforts and places feels of all joints and of J."""
        regressor = self.regressor
        robot, every = regressor.robot, [regressor.unknowns[k] for k in self.columns]
        count, loops = len(regressor.partition.independent), len(regressor.partition.dependent) > 0

        def outputs(tracer: Tracer) -> dict[str, Array]:
            tree = robot.tree
            q, qd, qdd = tracer.group("q", tree.nq), tracer.group("qd", tree.n), tracer.group("qdd", tree.n)
            J: Any = tracer.group("J", tree.n, count) if loops else None
            at = pose(tree, q)
            moving = motion(tree, at, qd, qdd, -tree.gravity)
            W = rows_of(tree, regressor.unknowns, at, moving, J, regressor.smooth)[:, self.columns]
            known = known_forces(regressor, at, moving, J)
            place = at.of(tree.places[tree.end_effector])[1]
            values = [*W.ravel(), *known, *place]
            weights = [
                *tracer.group("weights", *W.shape).ravel(), *tracer.group("known", len(known)),
                *tracer.group("place", 3),
            ]  # fmt: skip
            inputs = [*q, *qd, *qdd, *(J.ravel() if loops else ())]
            felt = np.array(gradient(values, weights, inputs), dtype=object)
            cuts = np.cumsum([tree.nq, tree.n, tree.n])
            by_q, by_qd, by_qdd, by_J = np.split(felt, cuts)
            found = {"q": _along_rates(tree, q, by_q), "qd": by_qd, "qdd": by_qdd}
            return found | ({"J": by_J.reshape(tree.n, count)} if loops else {})

        names = tuple(one.name for one in every)
        more = (names, tuple(map(int, regressor.partition.independent)), regressor.friction, *regressor.softness)
        return cached_program(robot, "effort-rows-felt", Options(), outputs, *more)

    @cached_property
    def _felt_loops(self) -> Model:
        """What weighted rows of the closures and their bias feel of all joints."""
        robot, rows = self.regressor.robot, self.regressor.partition.rows

        def outputs(tracer: Tracer) -> dict[str, Array]:
            tree = robot.tree
            q, qd = tracer.group("q", tree.nq), tracer.group("qd", tree.n)
            at = pose(tree, q)
            C = robot.closures.jacobian(at, jacobians(tree, at))[rows]
            bias = robot.closures.bias(at, motion(tree, at, qd, np.zeros(tree.n)))[rows]
            weights = [*tracer.group("rows", *C.shape).ravel(), *tracer.group("bias", len(bias))]
            felt = np.array(gradient([*C.ravel(), *bias], weights, [*q, *qd]), dtype=object)
            by_q, by_qd = np.split(felt, [tree.nq])
            return {"q": _along_rates(tree, q, by_q), "qd": by_qd}

        return cached_program(robot, "closing-felt", Options(rows=tuple(map(int, rows))), outputs)

    def back(self, moving: ClosedMotion, rate: Array, acceleration: Array, seeds: Seeds) -> tuple[Array, Array, Array]:
        """Slopes by positions, rates and accelerations of the motors (each instants x motors)."""
        part, J = self.regressor.partition, moving.J
        given = {"q": moving.q, "qd": moving.qd, "qdd": moving.qdd, "weights": seeds.rows, "known": seeds.known,
                 "place": seeds.place}  # fmt: skip
        if not len(part.dependent):
            felt = self._felt_rows(**given)
            by_q, by_qd = felt["q"] + seeds.q, felt["qd"] + seeds.qd
            chosen = part.independent
            return by_q[:, chosen], by_qd[:, chosen], felt["qdd"][:, chosen]
        felt = self._felt_rows(**given, J=J)
        by_q, by_qd, by_qdd = felt["q"] + seeds.q, felt["qd"] + seeds.qd, felt["qdd"]
        by_J = felt["J"] + seeds.J + by_qdd[:, :, None] * acceleration[:, None, :]
        C = self.regressor.loop_rows(moving.q)
        turned = np.swapaxes(C[:, :, part.dependent], 1, 2)
        bias = moving.qdd - np.einsum("nij,nj->ni", J, acceleration)
        pulls = -np.linalg.solve(turned, by_qdd[:, part.dependent, None])[..., 0]  # by the bias of the closures
        weights = np.zeros_like(C)
        weights[:, :, part.dependent] = pulls[:, :, None] * bias[:, None, part.dependent]
        # rates feel the bias, J feels rates: their parts before those of the rows of the closures
        first = self._felt_loops(q=moving.q, qd=moving.qd, rows=weights, bias=pulls)
        by_qd = by_qd + first["qd"]
        by_J = by_J + by_qd[:, :, None] * rate[:, None, :]
        of_J = -np.linalg.solve(turned, by_J[:, part.dependent])
        weights[:, :, part.independent] = of_J
        weights[:, :, part.dependent] += of_J @ np.swapaxes(J[:, part.dependent], 1, 2)
        last = self._felt_loops(q=moving.q, qd=moving.qd, rows=weights, bias=pulls)
        by_q = by_q + last["q"]
        position, rates, accelerations = (np.einsum("nij,ni->nj", J, felt_of) for felt_of in (by_q, by_qd, by_qdd))
        return position, rates, accelerations


def _along_rates(tree: Tree, q: Array, by_q: Array) -> Array:
    """Slopes along the rates, from those by coordinates, of which a joint may have more."""
    found = np.zeros(tree.n, dtype=object)
    for link in tree.links:
        for k in range(link.v.start, link.v.stop):
            unit = np.zeros(link.v.stop - link.v.start)
            unit[k - link.v.start] = 1.0
            changes = link.joint.position_rates(q[link.q], unit)
            found[k] = sum((change * slope for change, slope in zip(changes, by_q[link.q], strict=True)), 0.0)
    return found
