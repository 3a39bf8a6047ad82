"""Playback of a simulated run: positions at any time, and those of the rigid robot."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from parflex.errors import InputError, ParflexError
from parflex.robot.robot import Robot
from parflex.simulation.runs import Run
from parflex.view.figures.section_figure import along_beams

Array = np.ndarray


class Playback:
    """A run of a robot; between two rows the nearer one is shown."""

    def __init__(self, robot: Robot, run: Run) -> None:
        if not len(run.t):
            raise InputError("the run has no rows", key="run", hint="simulate for a longer time")
        self.robot = robot
        self.t = run.t
        self._q = np.column_stack([run[f"q.{name}"] for name in robot.tree.position_names])
        self._straight: dict[int, Array] = {}
        stressed = [name for name in run if ".stress@" in name]
        self._stresses = (
            {one.name.removesuffix(".stress"): one for one in along_beams(run, stressed)} if stressed else {}
        )

    @property
    def duration(self) -> float:
        """Seconds from the first row to the last."""
        return float(self.t[-1] - self.t[0])

    @cached_property
    def bends(self) -> bool:
        """Whether anything deforms."""
        return bool(self.robot.deformations)

    def row(self, time: float) -> int:
        """The row nearest to a time after the start."""
        desired = self.t[0] + time
        after = int(np.clip(np.searchsorted(self.t, desired), 1, max(len(self.t) - 1, 1)))
        if len(self.t) == 1:
            return 0
        return after - 1 if desired - self.t[after - 1] < self.t[after] - desired else after

    def positions(self, time: float) -> Array:
        """Positions of all coordinates at a time after the start."""
        return self._q[self.row(time)]

    @cached_property
    def largest_stress(self) -> float:
        """Of all columns of stresses; 0 where the run has none."""
        return max((float(np.nanmax(one.values)) for one in self._stresses.values()), default=0.0)

    def stresses(self, time: float) -> dict[str, tuple[Array, Array]]:
        """Of each beam with columns of stresses, their places and values at a time after the start."""
        return {name: (one.s, one.values[self.row(time)]) for name, one in self._stresses.items()}

    def undeformed(self, time: float) -> Array:
        """Positions with the motors where they are and nothing deformed; as they are where that cannot be."""
        row = self.row(time)
        if row not in self._straight:
            q, tree = self._q[row], self.robot.tree
            plain = q.copy()
            for link in tree.links:
                plain[link.e] = 0.0
            motors = {
                tree.links[j].name: float(q[tree.links[j].q.start])
                for j in (tree.link_of_rate[k] for k in self.robot.actuated)
                if tree.links[j].joint.one_axis
            }
            try:
                rigid = self.robot.locking(self.robot.deformations)
                self._straight[row] = rigid.assemble(motors, near=plain)
            except ParflexError:
                self._straight[row] = q
        return self._straight[row]
