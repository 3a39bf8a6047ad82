"""Rates and accelerations of all joints from those that are asked for; the others rest as far as the loops allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parflex.errors import InputError
from parflex.models.given_states.coupled_values import asked_words, contradiction
from parflex.models.pose_input import read_motion
from parflex.models.priorities import solve_in_order
from parflex.recursion import motion

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
        joints, frames = read_motion(self.here.robot.tree, given or {}, "velocity")
        self._refuse_contradicted(joints, "velocity", "/s")
        rows, values, rest = self._rows(joints, frames, {})
        return self._solve(rows, values, rest, "velocity", asked_words(self.here.robot.tree, joints, frames))

    def accelerations(
        self, given: Mapping[str, float] | None, qd_tot: Array, like: Mapping[str, float] | None
    ) -> Array:
        """All accelerations (m/s^2, rad/s^2) from `given` ones, at all rates `qd_tot` (m/s, rad/s).

        Where none is given, what `like` names does not accelerate.
        """
        tree = self.here.robot.tree
        joints, frames = read_motion(tree, given or {}, "acceleration")
        if not joints and not frames and like:
            like_joints, like_frames = read_motion(tree, like, "velocity")
            joints = dict.fromkeys(like_joints, 0.0)
            frames = {name: dict.fromkeys(parts, 0.0) for name, parts in like_frames.items()}
        self._refuse_contradicted(joints, "acceleration", "/s2")
        b = self.here.acceleration_bias(qd_tot)
        moving = motion(tree, self.here.at, qd_tot, b)
        names = {*frames, tree.end_effector}
        biases = {name: self.here.frame_acceleration(name, moving) for name in names}
        rows, values, rest = self._rows(joints, frames, biases, b)
        rest_bias = self._rest_bias(joints, frames, biases, b)
        words = asked_words(tree, joints, frames)
        return self._solve(rows, values, rest, "acceleration", words, rest_bias) + b

    def _refuse_contradicted(self, joints: Mapping[int, float], key: str, per: str) -> None:
        """Raise where rates or accelerations of joints do not fit couplings; locked joints rest."""
        given = {**dict.fromkeys(self.here.robot.locked, 0.0), **joints}
        said = contradiction(self.here.robot.closures.constraints, self.here.robot.tree, given, offsets=False)
        if said is not None:
            raise InputError(said.message(key, per), key=key, value=said.joint, hint=said.hint)

    def asked(self, given: Mapping[str, float]) -> tuple[Array, Array]:
        """Rows and values of `given` velocities (m/s, rad/s), over all rates."""
        return self._rows(*read_motion(self.here.robot.tree, given, "velocity"), {})[:2]

    def _rows(
        self,
        joints: dict[int, float],
        frames: dict[str, dict[int, float]],
        biases: Mapping[str, Array],
        b: Array | None = None,
    ) -> tuple[Array, Array, list[Array]]:
        """Rows and values that are asked for, and blocks of rows that are to rest, in falling priority."""
        n = self.here.robot.tree.n
        rows, values = [], []
        for k, value in joints.items():
            rows.append(np.eye(n)[k])
            values.append(value - (b[k] if b is not None else 0.0))
        for frame, parts in frames.items():
            all_rows = self.here.frame_rows(frame)
            for component, value in parts.items():
                rows.append(all_rows[component])
                values.append(value - (biases[frame][component] if biases else 0.0))
        return np.array(rows).reshape(-1, n), np.array(values), self._rest(joints, frames)

    def _rest(self, joints: dict[int, float], frames: dict[str, dict[int, float]]) -> list[Array]:
        every = np.eye(self.here.robot.tree.n) / self.here.robot.tree.rate_units
        motors = every[list(self.here.robot.actuated)]
        if joints and not frames:
            return [*self.here.resting, motors, every]
        frame = next(iter(frames), self.here.robot.tree.end_effector)
        rows = self.here.frame_rows(frame)
        return [*self.here.resting, rows[:3], rows[3:] * self.here.robot.tree.length, motors, every]

    def _rest_bias(
        self, joints: dict[int, float], frames: dict[str, dict[int, float]], biases: Mapping[str, Array], b: Array
    ) -> list[Array]:
        every = b / self.here.robot.tree.rate_units
        own, motors = [block @ b for block in self.here.resting], every[list(self.here.robot.actuated)]
        if joints and not frames:
            return [*own, motors, every]
        bias = biases[next(iter(frames), self.here.robot.tree.end_effector)]
        return [*own, bias[:3], bias[3:] * self.here.robot.tree.length, motors, every]

    def _solve(
        self,
        rows: Array,
        values: Array,
        rest: list[Array],
        key: str,
        words: list[tuple[str, str]],
        bias: list[Array] | None = None,
    ) -> Array:
        """Exact in what is given, then as little as possible in each block of `rest` in turn."""
        still = [-part for part in bias] if bias is not None else [np.zeros(len(block)) for block in rest]
        found, missed = solve_in_order(self.here.motions, [(rows, values), *zip(rest, still, strict=True)])
        self._check_possible(missed[0], values, key, words)
        return found

    def _check_possible(self, missed: Array, value: Array, key: str, words: list[tuple[str, str]]) -> None:
        """Raise where what is given misses the closures; `words` are its names and units."""
        largest = float(np.abs(missed).max(initial=0.0))
        if largest <= 1e-8 * max(1.0, float(np.abs(value).max(initial=0.0))):
            return
        self.here.refuse_singular_legs()
        name, unit = words[int(np.abs(missed).argmax())]
        raise InputError(
            f"the closures do not allow this motion: the {key} of '{name}' is violated by {largest:.3g} "
            f"{unit}/s{'' if key == 'velocity' else '2'}",
            key=key,
            value=largest,
            hint="give at most as many components as the robot has degrees of freedom",
        )
