"""Rates and accelerations of all joints from those that are asked for; the others rest as far as the loops allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parflex.models.given_states.requested_rates import Bias, RequestedRates, requested_rates
from parflex.models.priorities import KEPT, Block

if TYPE_CHECKING:
    from parflex.models.configuration import Configuration

Array = np.ndarray


@dataclass(frozen=True)
class AskedMotion:
    """Motions of the robot at the configuration `here`, in words of its joints and frames."""

    here: Configuration

    def rates(self, given: Mapping[str, float] | None) -> Array:
        """All rates from `given` ones of joints or frames (m/s, rad/s); the others rest as far as the loops allow."""
        if not given:  # all rest, without the mass matrix that weighs what is left open
            return np.zeros(self.here.robot.tree.n)
        requested = requested_rates(self.here, given)
        requested.refuse_contradicted()
        return requested.solve(self._rest(requested))

    def rates_near(self, given: Mapping[str, float], qd: Array) -> Array:
        """All rates from `given` ones (m/s, rad/s); the others as near to those of `qd` as the loops allow."""
        units = self.here.robot.tree.rate_units
        requested = requested_rates(self.here, given)
        return requested.solve([Block(np.eye(len(qd)) / units, qd / units)])

    def accelerations(
        self, given: Mapping[str, float] | None, qd_tot: Array, like: Mapping[str, float] | None
    ) -> Array:
        """All accelerations (m/s^2, rad/s^2) from `given` ones, at all rates `qd_tot` (m/s, rad/s).

        Without them, the components that `like` names accelerate as little as the mechanism allows.
        """
        bias = Bias(qd_tot, self.here.acceleration_bias(qd_tot))
        requested = requested_rates(self.here, given or {}, bias)
        requested.refuse_contradicted()
        if given:
            return requested.solve(self._rest(requested)) + bias.b
        still = requested_rates(self.here, dict.fromkeys(like or {}, 0.0), bias)
        return requested.solve([still.block, *self._rest(still)]) + bias.b

    def _rest(self, requested: RequestedRates) -> list[Block]:
        """What is to rest, in falling priority: deformations, the first frame, motors, all coordinates."""
        here, bias = self.here, requested.bias
        tree = here.robot.tree
        every = np.eye(tree.n) / tree.rate_units
        b = np.zeros(tree.n) if bias is None else bias.b
        blocks = [Block(rows, -rows @ b) for rows in here.resting]
        if requested.frames or not requested.joints:
            frame = next(iter(requested.frames), tree.end_effector)
            rows, drift = here.frame_rows(frame), requested.frame_bias(frame)
            zero = KEPT * tree.length  # a frame that cannot move, or cannot turn, has rows of rounding
            blocks += [Block(rows[:3], -drift[:3], zero)]
            blocks += [Block(rows[3:] * tree.length, -drift[3:] * tree.length, zero)]
        motors = every[list(here.robot.actuated)]
        return [*blocks, Block(motors, -motors @ b), Block(every, -every @ b)]
