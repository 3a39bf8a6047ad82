"""Newton's method on rows of positions, in place: closed rows, and their side of the singularities."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np

from parflex.maps.coordinates import RequestedPoses
from parflex.maps.neighbours import FEW
from parflex.maps.newton import POLISH, JoinedSteps, NewtonStepper, judged_rows

Array = np.ndarray
OK, UNREACHABLE, SINGULAR = 0, 1, 2
CLOSED = 1e-9  # opening, in typical lengths, from which a loop counts as open: Newton ends far below
FLAT = 1e-6  # determinant of a leg, beside that at home, below which the pose counts as singular
NEARBY = 12  # steps from a pose nearby, of all parts: what needs more is tried from home
LONG = 40  # steps of Newton's method from a pose that may be far
LENGTHY = 400  # instructions from which a step is compiled for ways: interpreted it takes milliseconds


class ClosedRows(RequestedPoses):
    """Rows of positions of a robot that close by the same programs."""

    steppers: list[NewtonStepper]  # of parts that close by themselves
    judges: list[NewtonStepper]  # which move nothing
    joined: JoinedSteps | None  # all of them as one program

    def _newton(self, q: Array, steps: int = LONG) -> tuple[Array, Array]:
        """Newton in place; a row that a part of the robot does not reach is left by the next parts."""
        if len(q) <= FEW and self._is_joined(q):  # calls take longer than steps
            return self._together(q, steps)
        status, todo = np.full(len(q), OK), np.arange(len(q))
        for one in self.steppers:
            opening, side = one.solve(q, todo, steps)
            todo = self._judge(status, todo, one, (opening < CLOSED) & (side > 0), side)
        for one in self.judges:
            _, side = one.judge(q, todo)
            todo = self._judge(status, todo, one, side > 0, side)
        return q, status

    @staticmethod
    def lost(status: Array) -> Array:
        """Which poses are not reached."""
        return np.asarray(status == UNREACHABLE)

    def for_ways(self) -> Self:
        """The same with compiled steps where these are long: ways take hundreds of them, however few the poses."""
        if self.geometry.compiled or sum(len(one.program.program.instructions) for one in self.steppers) < LENGTHY:
            return self
        made = copy.copy(self)
        made.steppers = [replace(one, program=one.program.with_choice(True)) for one in self.steppers]
        made.judges = [replace(one, program=one.program.with_choice(True)) for one in self.judges]
        return made

    def closed(self, q: Array) -> Array:
        """Which rows Newton closes, on whatever side of their singularities, in place."""
        found = [one.solve(q, np.arange(len(q)), LONG)[0] < CLOSED for one in self.steppers]
        return np.all(found, axis=0)

    def _together(self, q: Array, steps: int | None = None) -> tuple[Array, Array]:
        """Newton in place on all parts of the robot at once, from positions that are near as a rule."""
        if not self._is_joined(q):
            return self._newton(q, steps or LONG)
        assert self.joined is not None
        told = self.joined(q, steps or NEARBY, POLISH)
        columns, signs, sizes = self._signed
        self._put_determinants(told)
        closed, flat = judged_rows(told, self.joined.openings, CLOSED**2, columns, signs, FLAT * sizes)
        return q, np.where(closed, np.where(flat, SINGULAR, OK), UNREACHABLE)

    @cached_property
    def _signed(self) -> tuple[Array, Array, Array]:
        """Of what the joined program tells: columns with determinants of all parts, their signs and sizes at home."""
        assert self.joined is not None
        parts = [*self.steppers, *self.judges]
        columns = np.array([own.stop - 1 for own in self.joined.told], dtype=np.int64)
        signs = np.array([1.0 if one.rows else one.side for one in parts], dtype=float)
        return columns, signs, np.array([one.size for one in parts], dtype=float)

    def _put_determinants(self, told: Array) -> None:
        """Determinants in the place of the last entry of matrices, signed, in place."""
        assert self.joined is not None
        for one, own in zip((*self.steppers, *self.judges), self.joined.told, strict=True):
            if one.rows:
                told[:, own.stop - 1] = one.sided(told[:, own])

    def _is_joined(self, q: Array) -> bool:
        """Whether one compiled program moves all parts of the robot."""
        return self.joined is not None and all(one.program.kernel(len(q)) is not None for one in self.steppers)

    @staticmethod
    def _judge(status: Array, todo: Array, one: NewtonStepper, good: Array, side: Array) -> Array:
        """Mark rows by what a part of the robot says; gives those that go on."""
        reached = good[todo]
        status[todo[~reached]] = UNREACHABLE
        todo = todo[reached]
        flat = todo[side[todo] < FLAT * one.size]
        status[flat] = SINGULAR
        return todo
