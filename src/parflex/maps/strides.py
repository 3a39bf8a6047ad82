"""Paths to poses of robots with several assemblies, in steps that are too short to leave one of them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from parflex.closure.newton import STRIDE
from parflex.maps.closed_rows import OK, UNREACHABLE, ClosedRows
from parflex.maps.coordinates import PoseCoordinates
from parflex.maps.newton import jumping_rows
from parflex.robot.coordinate_names import joint_named

Array = np.ndarray
MANY_STRIDES = 24  # to poses of several assemblies, at most
TURN = 1.0  # rad of a given joint in a stride that winds springs: longer ones could lose a turn
TURNED = 6  # strides for each of these, at most
LONGEST, SHORTEST = 1 / 3, 1 / 60  # of their way, of one stride
SHORT = 8  # steps of Newton's method after a stride: what needs more has lost its way


class StridingRows(ClosedRows):
    """Rows of positions that follow given coordinates from where they were closed."""

    given: PoseCoordinates

    @cached_property
    def unsettled(self) -> Array:
        """Positions of parts that close in several assemblies on the side of home."""
        return np.concatenate([np.zeros(0, dtype=int), *(one.columns for one in self.steppers if not one.settled)])

    def _turned(self, begun: Array, values: Array) -> Array:
        """By how much given joints turn on a way, where this winds springs: a whole turn winds them too."""
        if not self._winding:
            return np.zeros(len(values))
        return np.abs(values[:, self._winding] - begun[:, self._winding]).max(axis=1, initial=0.0)

    @cached_property
    def _winding(self) -> list[int]:
        """Coordinates that turn joints, where this winds springs."""
        links = {link.q.start: link for link in self.geometry.tree.links if link.joint.one_axis}
        if not self.counts_turns:
            return []
        own = [k for k, name in enumerate(self.names) if joint_named(self.geometry.tree, name) is not None]
        return [k for k in own if links[self.given.where[self.names[k]]].joint.periodic]

    @cached_property
    def counts_turns(self) -> bool:
        """Whether ways wind springs of joints."""
        wound = {link.q.start for link in self.geometry.tree.links if link.joint.one_axis and link.wound}
        return bool(wound & set(self.unsettled.tolist()))

    @cached_property
    def _units(self) -> Array:
        return self.geometry.position_units[self.unsettled]

    @cached_property
    def _turning(self) -> Array:
        periodic = {link.q.start for link in self.geometry.tree.links if link.periodic and not link.wound}
        return np.array([k in periodic for k in self.unsettled], dtype=bool)

    def jumped(self, before: Array, after: Array) -> Array:
        """Which rows moved so far that Newton may have left their assembly."""
        far = jumping_rows(before, after, self.unsettled, STRIDE * self._units)
        if far.any():  # few: whole turns are no way
            own = after[far][:, self.unsettled] - before[far][:, self.unsettled]
            own[:, self._turning] = np.arctan2(np.sin(own[:, self._turning]), np.cos(own[:, self._turning]))
            far[far] = (np.abs(own) > STRIDE * self._units).any(axis=1)
        return np.asarray(far)

    def strided(
        self, values: Array, own: Array, begun: Array, begin: Array, shortest: float = SHORTEST
    ) -> tuple[Array, Array]:
        """Poses by strides along straight ways, shorter where one is lost or jumps; the shortest ends what is lost."""
        status, going, q = np.full(len(values), UNREACHABLE), np.arange(len(values)), begin.copy()
        longest = np.minimum(1.0, TURN / np.maximum(self._turned(begun, values), TURN))
        share, stride = np.zeros(len(values)), np.minimum(LONGEST, longest)
        turns = TURNED * int(1.0 / longest.min(initial=1.0))
        for _ in range(MANY_STRIDES + turns + int(np.log2(SHORTEST / shortest))):
            if not len(going):
                break
            ahead = np.minimum(share[going] + stride[going], 1.0)
            now = begun[going] + ahead[:, None] * (values[going] - begun[going])
            start = self.given.start(now, self.geometry.rows(q[going, : self.geometry.kept.size], own[going]))
            before = start.copy()
            here, state = self._together(start, SHORT)
            gained = (state == OK) & ~self.jumped(before, here)
            q[going[gained]], share[going[gained]] = here[gained], ahead[gained]
            stride[going] = np.minimum(stride[going] * np.where(gained, 2.0, 1.0 / 3.0), longest[going])
            status[going[gained & (ahead == 1.0)]] = OK
            going = going[(share[going] < 1.0) & (stride[going] >= shortest * longest[going])]
        return q, status
