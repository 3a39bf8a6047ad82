"""Compiled regressors of closed rigid robots: rows of efforts per unit of each unknown.

Positions of all joints follow from those of the motors by the compiled geometry, rates and accelerations by the
closures. Without redundant motors a row is that of a motor; with them, that of an independent rate, along which
measured efforts act as J_a^T tau.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.closure.mobility import scaled_jacobian
from parflex.closure.partition import Partition, choose_partition
from parflex.codegen.model import Model, cached_program, model
from parflex.codegen.options import Options
from parflex.codegen.tracer import Tracer
from parflex.errors import InputError, SingularError
from parflex.forces.base_parameters import PARAMETERS
from parflex.identification.unknowns import ElementColumns, Unknown, joint_column, without_elements
from parflex.records import Record
from parflex.recursion.dynamics import body_regressor, joint_forces, newton_euler
from parflex.recursion.kinematics import jacobians, motion, pose
from parflex.robot.configuration import Configuration
from parflex.robot.load import FRICTION
from parflex.robot.robot import Robot
from parflex.tree.tree import Link, Tree

Array = np.ndarray
CHUNK = 500  # states at a time: their regressors stay small
CLOSED = 1e-9  # of the typical length: how far loops may be open
MOST_STEPS = 20  # calls of the geometry until the loops are closed
STRIDE = 16  # instants, of which one is closed from the one before and the others between them
BLOCK = 64 * STRIDE  # instants that are tried together
STRAIGHT = 0.2  # of the first step of Newton's method, what further ones add where it stays in its working mode
LONGEST = 1.5  # rad, about a quarter of a turn, or typical lengths: what a joint may go in a straight step
SHORTEST = 1e-4  # of the way from home, a step of it


@dataclass(frozen=True, eq=False, repr=False)
class ClosedMotion(Record):
    """Positions, rates and accelerations of all coordinates at some instants, and J, all rates per row."""

    q: Array
    qd: Array
    qdd: Array
    J: Array

    def part(self, instants: slice) -> ClosedMotion:
        """The same at some of the instants."""
        return ClosedMotion(self.q[instants], self.qd[instants], self.qdd[instants], self.J[instants])


class Regressor:
    """Rows of a robot's efforts per unit of its unknowns."""

    def __init__(self, robot: Robot, every: Sequence[Unknown], friction: str = "file", smooth: float = 0.0) -> None:
        refuse_unsuited(robot)
        self.robot, self.unknowns = robot, list(every)
        self.smooth = smooth  # rad/s, or typical lengths, over which Coulomb friction changes its sign
        self.friction = friction  # which terms of motors are looked for; others of theirs are none where it says so
        self.motor_q = [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]
        self.spare = len(robot.actuated) > robot.mobility.freedoms(len(robot.free))
        self.partition = _partition(robot, self.spare)

    @property
    def rows(self) -> list[str]:
        """What the rows are called: motors, or the independent rates of a robot with spare motors."""
        names = self.robot.tree.rate_names
        return [names[k] for k in self.partition.independent] if self.spare else list(self.robot.actuated_names)

    @property
    def softness(self) -> tuple[float, ...]:
        """What names programs in which Coulomb friction is smooth."""
        return (self.smooth,) if self.smooth else ()

    # -- motion of all joints ---------------------------------------------------------------------------

    @cached_property
    def _geometry(self) -> Model | None:
        return model(self.robot, "geometry-motors") if self.robot.closures.size else None

    @cached_property
    def _loops(self) -> Model:
        robot, rows = self.robot, self.partition.rows

        def outputs(tracer: Tracer) -> dict[str, Array]:
            tree = robot.tree
            at = pose(tree, tracer.group("q", tree.nq))
            qd = tracer.group("qd", tree.n)
            return {
                "rows": robot.closures.jacobian(at, jacobians(tree, at))[rows],
                "bias": robot.closures.bias(at, motion(tree, at, qd, np.zeros(tree.n)))[rows],
            }

        return cached_program(robot, "closing-motion", Options(rows=tuple(map(int, rows))), outputs)

    def loop_rows(self, q: Array) -> Array:
        """Rows of the closures at closed positions, per rate."""
        return self._loops(q=q, qd=np.zeros((len(q), self.robot.tree.n)))["rows"]

    def closed(self, position: Array, near: Array | None = None) -> Array:
        """All positions where the motors stand so, one instant after the other."""
        tree = self.robot.tree
        result = np.zeros((len(position), tree.nq))
        if self._geometry is None:
            result[:, self.motor_q] = position
            return result
        last, done = self.first(position[0]) if near is None else near, 0
        while done < len(position):
            done += self._together(last, position[done : done + BLOCK], result[done:])
            last = result[done - 1] if done else last
            for k in range(done, min(done + STRIDE, len(position))):  # to where it may be tried together again
                last, reached = self._walked(last, position[k])
                if reached < 1:
                    raise SingularError(
                        f"the loops do not close at row {k} of the positions", key="position", value=k,
                        hint="check units, signs and offsets of the columns, and the working mode",
                    )  # fmt: skip
                result[k], done = last, k + 1
        return result

    def _together(self, near: Array, position: Array, out: Array) -> int:
        """Closed positions into `out`, in a few calls for all instants; how many of them.

        Every `STRIDE`th is closed from the one before, where the loops are as good as linear on the way; those between
        begin on the straight line. Instants from the first one on where that does not lead to them are left.
        """
        assert self._geometry is not None
        q, missed = self._closing(near, position[0])
        knots = [q] if q is not None and missed < STRAIGHT else []
        while knots and len(knots) * STRIDE < len(position):
            q, missed = self._closing(knots[-1], position[len(knots) * STRIDE])
            if q is None or missed >= STRAIGHT:
                break
            knots.append(q)
        if len(knots) < 2:
            return 0
        count = (len(knots) - 1) * STRIDE + 1
        ends, part = np.stack(knots), np.arange(STRIDE)[:, None] / STRIDE
        guess = (ends[:-1, None] + part * (ends[1:] - ends[:-1])[:, None]).reshape(-1, ends.shape[1])
        x = np.concatenate([np.concatenate([guess, ends[-1:]]), position[:count]], axis=1)
        size = ends.shape[1]
        before = x[:, :size].copy()
        y = first = self._geometry.call(x)[:, :size]
        for _ in range(MOST_STEPS):
            if np.abs(y - before).max() < CLOSED:
                break
            before, x[:, :size] = y, y
            y = self._geometry.call(x)[:, :size]
        travel = np.abs(np.concatenate([ends[1:] - ends[:-1], ends[-1:] - ends[-2:-1]]) * self._felt).max(axis=1)
        open_still = ~(np.abs(y - before).max(axis=1) < CLOSED)
        bent = np.abs((y - first) * self._felt).max(axis=1) > STRAIGHT * np.maximum(
            np.repeat(travel, STRIDE)[:count], CLOSED
        )
        wrong = np.flatnonzero(open_still | bent)
        good = int(wrong[0]) if len(wrong) else count
        out[:good] = y[:good]
        return good

    def _closing(self, near: Array, measured: Array) -> tuple[Array | None, float]:
        """Closed positions by Newton's method, None where it does not converge.

        Beside them, how much of the way the first step misses: little where the loops are as good as linear. Beside a
        singular pose steps are many turns, of which all that follows is little: no such way is short enough.
        """
        assert self._geometry is not None
        size = len(near)
        x = np.concatenate([near, measured])
        y = first = self._geometry.call(x)[:size]
        before = near
        for _ in range(MOST_STEPS):
            if np.abs(y - before).max() < CLOSED:
                missed, travel = np.abs((y - first) * self._felt).max(), np.abs((first - near) * self._felt).max()
                far = np.abs((y - near) * self._felt / self._longest).max() > 1
                return y, np.inf if far else float(missed / max(travel, CLOSED))
            x[:size] = before = y
            y = self._geometry.call(x)[:size]
        return None, np.inf

    @cached_property
    def _felt(self) -> Array:
        """1, and 0 for rotors: however far they turn, their gears are linear, and links move as they move them."""
        weights = np.ones(self.robot.tree.nq)
        for link in self.robot.tree.links:
            if link.joint.one_axis and self.robot.gearing.rotors[link.v.start]:
                weights[link.q.start] = 0.0
        return weights

    @cached_property
    def _longest(self) -> Array:
        """How far coordinates go in a step at most."""
        longest = np.full(self.robot.tree.nq, LONGEST)
        for link in self.robot.tree.links:
            if link.joint.one_axis and not link.periodic:
                longest[link.q.start] = LONGEST * float(self.robot.tree.rate_units[link.v.start])
        return longest

    def first(self, position: Array) -> Array:
        """A closed pose at which the motors stand so, reached from home in steps that do not leave the working mode."""
        q = self.robot.home
        if self._geometry is None or not np.abs(position - q[self.motor_q]).max():
            return self.closed(position[None], q)[0]
        there, done = self._walked(q, position)
        if done < 1:
            raise SingularError(
                "the loops do not close all the way from home to the first positions: the motors pass a singular "
                f"pose at {100 * done:.3g} % of it", key="position", value=position.tolist(),
                hint="check units, signs and offsets of the columns, and the working mode",
            )  # fmt: skip
        return there

    def _walked(self, q: Array, end: Array) -> tuple[Array, float]:
        """Closed positions on the straight way of the motors to an end, and which part of the way is walked.

        Steps are short enough that the loops are as good as linear in each.
        """
        start, done, step = q[self.motor_q], 0.0, 1.0
        while done < 1:
            step = min(step, 1 - done)
            there, missed = self._closing(q, start + (done + step) * (end - start))
            if there is not None and missed < STRAIGHT:
                q, done, step = there, done + step, 2 * step
            elif step < SHORTEST:
                break
            else:
                step /= 2
        return q, done

    def moving(self, position: Array, rate: Array, acceleration: Array, near: Array | None = None) -> ClosedMotion:
        """The motion of all joints in which the motors move so."""
        return self.moved(self.closed(position, near), rate, acceleration)

    def moved(self, q: Array, rate: Array, acceleration: Array) -> ClosedMotion:
        """The same at closed positions."""
        tree, part, motors = self.robot.tree, self.partition, list(self.robot.actuated)
        count = len(q)
        J = np.zeros((count, tree.n, len(part.independent)))
        J[:, part.independent, range(len(part.independent))] = 1.0
        if len(part.dependent):
            rows = self.loop_rows(q)
            J[:, part.dependent] = -np.linalg.solve(rows[:, :, part.dependent], rows[:, :, part.independent])
        independent, bias = (rate, np.zeros((count, tree.n)))
        J_a = J[:, motors]
        if self.spare:
            independent = np.einsum("nij,nj->ni", np.linalg.pinv(J_a), rate)
        qd = np.einsum("nij,nj->ni", J, independent)
        if len(part.dependent):
            loops = self._loops(q=q, qd=qd)
            bias[:, part.dependent] = -np.linalg.solve(loops["rows"][:, :, part.dependent], loops["bias"][..., None])[
                ..., 0
            ]
        independent = acceleration
        if self.spare:
            independent = np.einsum("nij,nj->ni", np.linalg.pinv(J_a), acceleration - bias[:, motors])
        return ClosedMotion(q, qd, np.einsum("nij,nj->ni", J, independent) + bias, J)

    # -- rows -------------------------------------------------------------------------------------------

    @cached_property
    def program(self) -> Model:
        """Positions, rates and accelerations of all joints and J in; rows per unknown, and what is known, out."""
        robot, every = self.robot, self.unknowns

        def outputs(tracer: Tracer) -> dict[str, Array]:
            tree = robot.tree
            q, qd, qdd = tracer.group("q", tree.nq), tracer.group("qd", tree.n), tracer.group("qdd", tree.n)
            independent = len(self.partition.independent)
            J: Any = tracer.group("J", tree.n, independent) if len(self.partition.dependent) else None
            at = pose(tree, q)
            moving = motion(tree, at, qd, qdd, -tree.gravity)
            rows = rows_of(tree, every, at, moving, J, self.smooth)
            return {"rows": rows, "known": known_forces(self, at, moving, J)}

        names = tuple(unknown.name for unknown in every)
        more = (names, tuple(map(int, self.partition.independent)), self.friction, *self.softness)
        return cached_program(robot, "effort-rows", Options(), outputs, *more)

    def of(self, moving: ClosedMotion, columns: Sequence[int] | None = None) -> tuple[Array, Array]:
        """Rows (instants x rows x columns) and the efforts that are known, of a motion."""
        chosen = list(range(len(self.unknowns))) if columns is None else list(columns)
        count, independent = len(moving.q), len(self.partition.independent)
        W, known = np.empty((count, independent, len(chosen))), np.empty((count, independent))
        for start in range(0, count, CHUNK):
            part = slice(start, start + CHUNK)
            inputs = {"q": moving.q[part], "qd": moving.qd[part], "qdd": moving.qdd[part]}
            inputs |= {"J": moving.J[part]} if "J" in self.program.inputs else {}
            outputs = self.program(**inputs)
            W[part], known[part] = outputs["rows"][:, :, chosen], outputs["known"]
        return W, known

    def measured(self, moving: ClosedMotion, effort: Array) -> Array:
        """Measured efforts along the rows."""
        if not self.spare:
            return effort
        return np.einsum("nij,ni->nj", moving.J[:, list(self.robot.actuated)], effort)


def known_forces(regressor: Regressor, at: Any, moving: Any, J: Array | None = None) -> Array:
    """Efforts of all that is not looked for, along all rates or along independent ones, over any scalar."""
    tree, smooth = regressor.robot.tree, regressor.friction != "file"
    motors = {tree.link_of_rate[k] for k in regressor.robot.actuated} if smooth else set()
    known = _known_tree(tree, regressor.unknowns, motors)
    forces = newton_euler(known, at, moving).forces + joint_forces(known, at.q, moving.qd, moving.qdd)
    return forces if J is None else J.T @ forces


def rows_of(
    tree: Tree, every: Sequence[Unknown], at: Any, moving: Any, J: Array | None = None, smooth: float = 0.0
) -> Array:
    """Forces along all rates, or along independent ones, per unit of each unknown, over any scalar."""
    bodies = body_regressor(tree, at, moving, J)
    columns = []
    elements = ElementColumns(tree, at, moving, J)
    for unknown in every:
        if unknown.of_body:
            columns.append(bodies[:, 10 * unknown.link + PARAMETERS.index(unknown.symbol)])
            continue
        if unknown.element:
            columns.append(elements.of(unknown.element, unknown.symbol))
            continue
        link = tree.links[unknown.link]
        k = link.v.start
        width = smooth * float(tree.rate_units[k])
        value = joint_column(unknown, list(every), link, at.q[link.q.start], moving.qd[k], moving.qdd[k], width)
        if J is not None:
            columns.append(J[k] * value)
        else:
            column = np.zeros(tree.n, dtype=bodies.dtype)
            column[k] = value
            columns.append(column)
    return np.stack(columns, axis=1)


def _known_tree(tree: Tree, every: Sequence[Unknown], smooth: set[int]) -> Tree:
    """The tree with only what is not looked for: elements, couplings and terms that are no unknowns.

    Joints of `smooth` links have no friction but that which is looked for.
    """
    looked_for = {(unknown.link, unknown.symbol) for unknown in every}

    def left(j: int, link: Link) -> Link:
        terms = link.terms
        gone: dict[str, Any] = dict.fromkeys(FRICTION, 0.0) if j in smooth else {}
        if (j, "IA") in looked_for:
            gone["motor_inertia"] = 0.0
        if (j, "k") in looked_for:
            gone["stiffness"] = 0.0
        if (j, "d") in looked_for:
            gone["damper"] = 0.0
        gone |= dict.fromkeys(("viscous", "more_viscous"), 0.0) if (j, "FV") in looked_for else {}
        gone |= dict.fromkeys(("coulomb", "more_coulomb", "static"), 0.0) if (j, "FS") in looked_for else {}
        gone |= {"offset": 0.0} if (j, "offset") in looked_for else {}
        return replace(link, body=RigidBody(), terms=replace(terms, **gone))

    known = without_elements(tree, [unknown.element for unknown in every])
    return replace(known, links=tuple(left(j, link) for j, link in enumerate(tree.links)))


def _partition(robot: Robot, spare: bool) -> Partition:
    """Rates of the motors as independent ones; of a robot with spare motors those of home."""
    if spare:
        return Configuration(robot, robot.home).reduction.partition
    motors = np.array(robot.actuated, dtype=int)
    free = np.array([k for k in robot.free if k not in set(robot.actuated)], dtype=int)
    if not len(free):
        return Partition(np.zeros(0, int), np.zeros(0, int), motors)
    J = scaled_jacobian(robot.closures, robot.home)
    chosen = choose_partition(J, free, len(free), np.ones(robot.tree.n))
    return Partition(chosen.rows, chosen.dependent, motors)


def refuse_unsuited(robot: Robot) -> None:
    """Efforts of flexible robots, of too few motors and of lossy gears are not linear in unknowns that motors tell."""
    bent = next((link.name for link in robot.tree.links if link.body.size), None)
    if bent is not None:
        raise InputError(
            f"'{bent}' is flexible, and identification needs rigid bodies", key="robot", value=bent,
            hint="give the rigid robot; stiffnesses follow from measured frequencies",
        )  # fmt: skip
    here = Configuration(robot, robot.home)
    if robot.is_underactuated:
        raise InputError(
            "the robot is underactuated, so motor positions do not determine its motion",
            key="robot", value=robot.name, hint="choose an actuation that drives every degree of freedom",
        )  # fmt: skip
    here.refuse_undefined_actuation()
    rows = [row for row in robot.closures.constraints if getattr(row, "lossy", False)]
    if rows or any(spring.lossy for spring in robot.tree.springs):
        raise InputError(
            "losses of couplings are not linear in the unknowns", key="efficiency", value=robot.name,
            hint="leave efficiency out of the file, and let friction of the joints take its place",
        )  # fmt: skip
