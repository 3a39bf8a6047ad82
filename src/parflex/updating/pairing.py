"""Frequencies of a model at measured poses, with slopes; which mode of the model a measured one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.optimize

from parflex.design.answers import slope_of
from parflex.design.design_state import Circumstances, DesignState, SensitiveDesign
from parflex.design.vibrating import HeldState
from parflex.design.vibration_responses import frequency_of, lowest_modes
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.updating.measured_modes import MeasuredMode

Array = np.ndarray
BEYOND = 4  # modes that are computed beyond the highest one that is measured


@dataclass(frozen=True, eq=False, repr=False)
class PoseModes(Record):
    """Modes of the model at one pose: frequencies (Hz), shapes over independent rates, and the mass there."""

    frequencies: Array
    shapes: Array
    mass: Array
    slopes: dict[int, Array]  # of some modes by the keys

    def likeness(self, other: PoseModes) -> Array:
        """MAC of the modes of the other one (rows) with these, by the mass of the other one."""
        product = other.shapes.T @ other.mass @ self.shapes
        own, others = (np.einsum("ij,ik,kj->j", one, other.mass, one) for one in (self.shapes, other.shapes))
        return product**2 / np.maximum(np.outer(others, own), 1e-300)


def pose_modes(robot: Robot, pose: str, circumstances: Circumstances, count: int) -> PoseModes:
    """So many modes, without slopes."""
    return _found(robot, pose, (), circumstances, count, ())[0]


def _found(
    robot: Robot, pose: str, keys: Sequence[str], circumstances: Circumstances, count: int, sloped: Sequence[int]
) -> tuple[PoseModes, HeldState]:
    state = DesignState(robot, pose, keys, circumstances, SensitiveDesign(robot, keys))
    held = HeldState(state)
    modes = lowest_modes(held, count)
    shapes = held.independent(modes.shapes)
    slopes = {
        k: slope_of(frequency_of(held, modes, k), len(keys)) for k in sloped if keys and k < len(modes.frequencies)
    }
    return PoseModes(np.asarray(modes.frequencies, dtype=float), shapes, np.asarray(held.model.M), slopes), held


def sloped_modes(
    robot: Robot, pose: str, keys: Sequence[str], circumstances: Circumstances, count: int, sloped: Sequence[int]
) -> PoseModes:
    """The same with slopes of some modes by the keys."""
    return _found(robot, pose, keys, circumstances, count, sloped)[0]


def modes_needed(measured: Sequence[MeasuredMode]) -> int:
    """Modes of the model that are computed."""
    return max(max((one.mode or 0 for one in measured), default=0), len(measured)) + BEYOND


def first_pairs(measured: Sequence[MeasuredMode], model: PoseModes) -> list[int]:
    """Modes of the model, from 0: by their number, others so that frequencies fit best."""
    pairs = [one.mode - 1 if one.mode is not None else -1 for one in measured]
    open_rows = [k for k, mode in enumerate(pairs) if mode < 0]
    left = [k for k in range(len(model.frequencies)) if k not in pairs]
    if open_rows and left:
        cost = np.abs(np.log(np.array([measured[k].frequency for k in open_rows])[:, None]
                             / model.frequencies[left][None, :]))  # fmt: skip
        for row, column in zip(*scipy.optimize.linear_sum_assignment(cost), strict=True):
            pairs[open_rows[row]] = left[column]
    return pairs


def followed_pairs(pairs: Sequence[int], before: PoseModes, now: PoseModes) -> tuple[list[int], list[float]]:
    """The same modes of a changed model, by the likeness of their shapes, with it."""
    alike = now.likeness(before)
    rows = list(pairs)
    chosen, columns = scipy.optimize.linear_sum_assignment(-alike[rows])
    places = dict(zip(chosen, columns, strict=True))
    found = [int(places[k]) for k in range(len(rows))]
    return found, [float(alike[row, column]) for row, column in zip(rows, found, strict=True)]
