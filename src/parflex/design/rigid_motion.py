"""A robot with rigid bodies in a motion, with derivatives of rates and accelerations by its numbers.

The specified motion stays fixed, and coordinates at rest stay at rest; theory (60) for velocities and accelerations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from parflex.design.design_state import DesignState, FollowingConfiguration
from parflex.design.linear_model import minimum_norm_solution
from parflex.errors import InputError
from parflex.forces.forces import tree_forces
from parflex.recursion.energy import kinetic_energy
from parflex.recursion.kinematics import motion
from parflex.robot.configuration import Configuration
from parflex.robot.load import acting_robot
from parflex.robot.pose_input import read_motion
from parflex.spatial.dual import Sensitive, slopes, with_slopes

Array = np.ndarray
EXACT = 1e-9  # of the largest rate: rows that are missed by less are kept as the robot changes
FULL = 1e-10  # of the largest singular value of the kept rows


class RigidState:
    """The robot at its pose with undeformed bodies, in the motion of the load case."""

    def __init__(self, state: DesignState) -> None:
        self.state = state
        robot, twin = (acting_robot(original, state.case.without) for original in (state.robot, state.twin))
        lossy = [row.name for row in robot.closures.constraints if getattr(row, "lossy", False)]
        if lossy:
            raise InputError(
                f"the coupling '{lossy[0]}' loses power by a share that jumps where its direction changes",
                key="response",
                value=lossy[0],
                hint="leave friction out (without)",
            )
        self.robot = robot.locking(robot.deformations)
        self.here = Configuration(self.robot, state.here.q)
        self.twin = twin.locking(robot.deformations)

    @cached_property
    def there(self) -> FollowingConfiguration:
        """The robot with slopes; without keys the robot itself."""
        return FollowingConfiguration(self.twin, self.state.q, self.here.reduction.partition)

    @cached_property
    def rates(self) -> Array:
        """All rates in the motion."""
        velocity, known = self.state.case.velocity, self.state.moving
        rates = self.here.rates(velocity) if known is None else known[0]
        if not velocity or not self.state.count:
            return rates
        return self._followed(rates, velocity, lambda here: _Rates(here, rates))

    @cached_property
    def accelerations(self) -> Array:
        """All accelerations in the motion."""
        acceleration, velocity = self.state.case.acceleration, self.state.case.velocity
        plain, accelerations = self.state.moving or (None, None)
        if plain is None or accelerations is None:
            plain = self.here.rates(velocity)
            accelerations = self.here.accelerations(acceleration, plain, velocity)
        if not (acceleration or velocity) or not self.state.count:
            return accelerations
        requested = dict(acceleration) if acceleration else dict.fromkeys(velocity or {}, 0.0)

        def rows(here: Configuration) -> _Rows:
            return _Accelerations(here, self.rates if here is self.there else plain, accelerations)

        return self._followed(accelerations, requested, rows)

    def _followed(
        self, nominal: Array, requested: Mapping[str, float], rows: Callable[[Configuration], _Rows]
    ) -> Array:
        """Rates or accelerations with slopes: rows that are met exactly stay so, and determine them together."""
        targets, count = read_motion(self.robot.tree, requested, "velocity"), self.state.count
        size = max(1.0, float(np.abs(nominal).max(initial=0.0)))
        free, units = self.robot.free, self.robot.tree.rate_units[self.robot.free]
        used_rows, used_drift = [], []
        here, there = rows(self.here), rows(self.there)
        for (A, values, desired), (_, moved, _) in zip(here.blocks(*targets), there.blocks(*targets), strict=True):
            if np.abs(values - desired).max(initial=0.0) > EXACT * size:
                break
            used_rows.append(A[:, free] * units)
            used_drift.append(slopes(moved, count, Sensitive))
        J, drift = np.concatenate(used_rows), np.concatenate(used_drift)
        sizes = np.linalg.svd(J, compute_uv=False) if J.size else np.zeros(0)
        if len(sizes) < len(free) or sizes[len(free) - 1] < FULL * sizes[0]:
            raise InputError(
                "the motion that is given does not determine how all joints move",
                key="velocity",
                value=", ".join(requested),
                hint="give all components of the end effector, or of all motors",
            )
        changes = np.zeros((len(nominal), count))
        changes[free] = -units[:, None] * np.linalg.lstsq(J, drift, rcond=None)[0]
        return with_slopes(nominal, changes, Sensitive)

    @cached_property
    def forces(self) -> Array:
        """Forces along all rates that the motion needs."""
        here = self.there if self.state.count else self.here
        return tree_forces(here, self.rates, self.accelerations, self.state.case.wrench)

    @cached_property
    def efforts(self) -> Array:
        """Efforts of all motors; of least norm where they are more than the freedoms."""
        self.here.refuse_undefined_actuation()
        J_a = self._motions[list(self.state.robot.actuated)]
        return minimum_norm_solution(J_a.T, self.there.pulled(self.forces))

    @cached_property
    def _motions(self) -> Array:
        """Columns of motions of all independent rates."""
        if not self.state.count:
            return self.here.J
        return self.there.along(np.eye(len(self.here.reduction.partition.independent)))

    def inertia(self, number: int) -> Any:
        """Twice the kinetic energy as one motor turns at unit rate and the others rest."""
        self.here.refuse_undefined_actuation()
        J_a = self._motions[list(self.state.robot.actuated)]
        unit = np.zeros(len(J_a))
        unit[number] = 1.0
        right = J_a.T @ unit
        gram = J_a.T @ J_a
        turned = self._motions @ minimum_norm_solution(gram, right)
        here = self.there if self.state.count else self.here
        return 2 * kinetic_energy(here.robot.tree, here.at, turned)


class _Rows:
    """Rows of a motion in falling priority: their Jacobian, what they are and what they should be."""

    def __init__(self, here: Configuration) -> None:
        self.here, self.tree = here, here.robot.tree

    def blocks(self, joints: dict[int, float], frames: dict[str, dict[int, float]]) -> list[tuple[Array, Array, Array]]:
        """Closures, what is given, the end effector, motors, all coordinates."""
        n = self.tree.n
        every = np.eye(n)
        motors = [k for k in self.here.robot.actuated if k not in self.here.robot.locked]
        blocks = [(self.here.closure_jacobian, self.closed(), np.zeros(self.here.robot.closures.size))]
        blocks.append((every[list(joints)], self.along()[list(joints)], np.array(list(joints.values()))))
        for frame, parts in frames.items():
            blocks.append(
                (self.here.frame_rows(frame)[list(parts)], self.frame(frame)[list(parts)], np.array([*parts.values()]))
            )
        if frames or not joints:
            name = next(iter(frames), self.tree.end_effector)
            components = list(frames.get(name, {}))
            rest = [k for k in range(6) if k not in components]
            blocks += [(self.here.frame_rows(name)[[k]], self.frame(name)[[k]], np.zeros(1)) for k in rest]
        blocks += [(every[motors], self.along()[motors], np.zeros(len(motors))), (every, self.along(), np.zeros(n))]
        return [block for block in blocks if len(block[1])]

    def closed(self) -> Array:
        """What the closures do."""
        raise NotImplementedError

    def along(self) -> Array:
        """What all coordinates do."""
        raise NotImplementedError

    def frame(self, name: str) -> Array:
        """What a frame does, in world axes."""
        raise NotImplementedError


class _Rates(_Rows):
    def __init__(self, here: Configuration, qd: Array) -> None:
        super().__init__(here)
        self.qd = qd

    def closed(self) -> Array:
        return self.here.closure_jacobian @ self.qd

    def along(self) -> Array:
        return self.qd

    def frame(self, name: str) -> Array:
        return self.here.frame_rows(name) @ self.qd


class _Accelerations(_Rows):
    def __init__(self, here: Configuration, qd: Array, qdd: Array) -> None:
        super().__init__(here)
        self.qdd, self.moving = qdd, motion(here.robot.tree, here.at, qd, qdd)

    def closed(self) -> Array:
        return self.here.robot.closures.bias(self.here.at, self.moving)

    def along(self) -> Array:
        return self.qdd

    def frame(self, name: str) -> Array:
        return self.here.frame_acceleration(name, self.moving)
