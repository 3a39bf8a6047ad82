"""Modes of a model at a measured pose: frequencies, shapes at sensors, poles with damping, and their exact slopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from parflex.design.answers import slope_of
from parflex.design.design_state import Circumstances, DesignState, SensitiveDesign
from parflex.design.vibrating import HeldState
from parflex.design.vibration_responses import frequency_of, lowest_modes
from parflex.errors import InputError
from parflex.models.configuration import Configuration, Pose
from parflex.models.elastic.linear_model import tree_stiffness
from parflex.models.robot import Robot
from parflex.models.vibration.natural_modes import Modes
from parflex.records import Record
from parflex.spatial.dual import Sensitive, slopes_last
from parflex.updating.sensor_rows import mac_of_span, sensor_rows

Array = np.ndarray
EQUAL = 1e-5  # of a frequency: modes nearer to each other are equal, and any mixture of them is a mode
MOST_STEPS = 40
SETTLED = 1e-12  # of a pole


@dataclass(frozen=True, eq=False, repr=False)
class PoseModes(Record):
    """Modes at one pose: frequencies (Hz), shapes over independent rates, the mass there, and shapes at sensors.

    `excess` are estimated shares by which frequencies are too high because elements are too few.
    """

    frequencies: Array
    shapes: Array
    mass: Array
    excess: Array
    sensors: tuple[str, ...]
    seen: Array  # sensors x modes

    def equal(self, mode: int) -> Array:
        """Numbers of the modes that are equal to this one, from 0; with it."""
        value = self.frequencies[mode]
        return np.flatnonzero(np.abs(self.frequencies - value) <= EQUAL * value)

    def likeness(self, other: PoseModes) -> Array:
        """MAC of the modes of the other one (rows) with these, by the mass of the other one."""
        product = other.shapes.T @ other.mass @ self.shapes
        own, others = (np.einsum("ij,ik,kj->j", one, other.mass, one) for one in (self.shapes, other.shapes))
        return product**2 / np.maximum(np.outer(others, own), 1e-300)

    def mac(self, shape: dict[str, complex], mode: int) -> float:
        """MAC of a measured shape with a mode, or with the nearest mixture of equal ones."""
        rows = [self.sensors.index(name) for name in shape]
        return mac_of_span(np.array(list(shape.values())), self.seen[rows][:, self.equal(mode)])


class Slopes(Protocol):
    """How the forms of motions of a robot change with keys of its file."""

    count: int

    def frequency(self, modes: Modes, number: int) -> Any:
        """The frequency of a mode, from 0, with its slopes."""

    def forms(self, independent: Array) -> Sequence[Array]:
        """Slopes of mass, damping and stiffness along columns of independent rates, keys last."""


class MovingSlopes:
    """Slopes of a robot whose positions may follow the keys, by numbers with slopes."""

    def __init__(self, held: HeldState) -> None:
        self.held, self.count = held, held.state.count

    def frequency(self, modes: Modes, number: int) -> Any:
        """The frequency of a mode, from 0, with its slopes."""
        return frequency_of(self.held, modes, number)

    def forms(self, independent: Array) -> Sequence[Array]:
        """Slopes of mass, damping and stiffness along columns of independent rates, keys last."""
        motions = self.held.there.along(independent)
        D_tot = tree_stiffness(self.held.there, self.held.loading.without)[1]
        parts = [self.held.mass_of(motions), motions.T @ D_tot @ motions, self.held.stiffness_of(motions)]
        return [slopes_last(part, Sensitive, self.count) for part in parts]


def modes_at(
    robot: Robot, pose: str, circumstances: Circumstances, count: int, design: SensitiveDesign | None = None,
    known: Configuration | None = None,
) -> SlopedModes:  # fmt: skip
    """The modes of a robot at a pose, or at its positions where they are known, with slopes by the keys of a design."""
    keys = design.keys if design else ()
    there: Pose = pose_of(pose) if known is None else known
    held = HeldState(DesignState(robot, there, keys, circumstances, design or SensitiveDesign(robot, ())))
    return SlopedModes(pose, lowest_modes(held, count), MovingSlopes(held))


class SlopedModes:
    """The modes of a robot at a pose, and slopes of those that are asked for by keys of its file."""

    def __init__(self, pose: str, modes: Modes, slopes: Slopes) -> None:
        self.pose, self.modes, self.slopes = pose, modes, slopes
        self.model = modes.model

    def at_sensors(self, sensors: Sequence[str]) -> PoseModes:
        """The modes as sensors see them."""
        model, modes = self.model, self.modes
        rows = sensor_rows(model.configuration, sensors)
        frequencies = np.asarray(modes.frequencies, dtype=float)
        excess = np.asarray(modes.excess, dtype=float) if len(modes.excess) else np.zeros(len(frequencies))
        return PoseModes(frequencies, self._independent(modes.shapes), np.asarray(model.M), excess, tuple(sensors),
                         rows @ modes.shapes)  # fmt: skip

    def _independent(self, shapes: Array) -> Array:
        """Independent rates of motions of all coordinates."""
        return shapes[self.model.configuration.reduction.partition.independent]

    def frequency(self, mode: int) -> tuple[float, Array]:
        """Hz of a mode, from 0, and its slopes."""
        answer = self.slopes.frequency(self.modes, mode)
        return float(self.modes.frequencies[mode]), slope_of(answer, self.slopes.count)

    def damped(self, mode: int) -> tuple[float, float, Array, Array]:
        """Frequency (Hz) and damping ratio of the pole of a mode, from 0, and their slopes.

        With (lambda^2 M + lambda D + K) psi = 0, the slopes of lambda are those of psi^T (lambda^2 M + lambda D + K)
        psi over -psi^T (2 lambda M + D) psi, for a fixed lambda and psi: no slopes of psi are needed.
        """
        value, psi = self._pole(mode)
        size = abs(value)
        if not self.slopes.count:
            return size / (2 * np.pi), -value.real / size, np.zeros(0), np.zeros(0)
        slopes = [_of_square(part) for part in self.slopes.forms(np.stack([psi.real, psi.imag], axis=1))]
        M, D = self.model.M, self.model.D
        step = -(value**2 * slopes[0] + value * slopes[1] + slopes[2]) / (psi @ (2 * value * M + D) @ psi)
        larger = (np.conj(value) * step).real / size
        return (
            size / (2 * np.pi), -value.real / size, larger / (2 * np.pi),
            -step.real / size + value.real * larger / size**2,
        )  # fmt: skip

    def coupled(self, mode: int) -> tuple[float, float]:
        """How the frequency (Hz) of the pole of a mode, from 0, feels an error of the damping: per share, per square.

        Damping that couples modes i and j by d_ij (mass-normalised) moves the frequency of i by the second order,
        d_ij^2 w_i / (2 (w_i^2 - w_j^2)); ratios say what d_ii and d_jj are, and of d_ij only that it is below their
        mean. So a share of the damping that is wrong is one of the mean there.
        """
        omega = 2 * np.pi * np.asarray(self.modes.frequencies, dtype=float)
        shapes = self._independent(self.modes.shapes)
        D = shapes.T @ self.model.D @ shapes
        mean = np.sqrt(np.maximum(np.diag(D) * D[mode, mode], 0.0))
        others = np.abs(omega - omega[mode]) > EQUAL * omega[mode]
        per = np.where(others, omega[mode] / (2 * np.abs(omega**2 - omega[mode] ** 2 + ~others)), 0.0) / (2 * np.pi)
        return float(2 * (per * mean) @ np.abs(D[mode])), float(per @ mean**2)

    def _pole(self, mode: int) -> tuple[complex, Array]:
        """The pole into which damping turns a mode, and its shape, by Newton's method from light damping."""
        M, D, K = self.model.M, self.model.D, self.model.K
        omega, ratio = 2 * np.pi * float(self.modes.frequencies[mode]), float(self.modes.damping[mode])
        start = self._independent(self.modes.shapes)[:, mode]
        psi, row = start.astype(complex), start @ M
        psi = psi / (row @ psi)
        value = omega * complex(-ratio, np.sqrt(max(1 - ratio**2, 0.0)))
        for _ in range(MOST_STEPS if ratio < 1 else 0):
            try:
                found = np.linalg.solve(value**2 * M + value * D + K, (2 * value * M + D) @ psi)
            except np.linalg.LinAlgError:  # the pole itself
                return value, psi
            step = 1 / (row @ found)
            value, psi = value - step, found / (row @ found)
            if abs(step) < SETTLED * abs(value):
                if value.imag > 0:
                    return complex(value), psi
                break
        raise InputError(
            f"mode {mode + 1} at '{self.pose}' does not vibrate with the damping of the file (ratio {ratio:.3g})",
            key="damping", value=ratio, hint="give the file less damping to start from, or leave its damping out",
        )  # fmt: skip


def pose_of(text: str) -> str | dict[str, float]:
    """A pose by its name, or by coordinates as `x=0.1,theta_deg=30`."""
    if "=" not in text:
        return text
    found: dict[str, float] = {}
    for part in text.split(","):
        word, _, value = part.partition("=")
        try:
            found[word.strip()] = float(value)
        except ValueError:
            raise InputError(f"'{part.strip()}' of a pose is not KEY=VALUE", key="pose", value=text,
                             hint="write e.g. x=0.1,y=0.2, or name a pose of the file") from None  # fmt: skip
    return found


def _of_square(form: Array) -> Array:
    """(a + i b)^T X (a + i b) of a symmetric form by a and b: keys last."""
    return form[0, 0] - form[1, 1] + 1j * (form[0, 1] + form[1, 0])
