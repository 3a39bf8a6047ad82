"""Modes of a model at a measured pose: frequencies, shapes at sensors, poles with damping, and their exact slopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parflex.design.answers import slope_of
from parflex.design.design_state import Circumstances, DesignState, SensitiveDesign
from parflex.design.vibrating import HeldState
from parflex.design.vibration_responses import frequency_of, lowest_modes
from parflex.errors import InputError
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


class SlopedModes:
    """The modes of a robot at a pose, and slopes of those that are asked for by keys of its file."""

    def __init__(
        self, robot: Robot, pose: str, circumstances: Circumstances, count: int, design: SensitiveDesign | None = None
    ) -> None:  # fmt: skip
        keys = design.keys if design else ()
        self.pose = pose
        there = pose_of(pose)
        self.held = HeldState(DesignState(robot, there, keys, circumstances, design or SensitiveDesign(robot, ())))
        self.modes: Modes = lowest_modes(self.held, count)

    def at_sensors(self, sensors: Sequence[str]) -> PoseModes:
        """The modes as sensors see them."""
        model, modes = self.held.model, self.modes
        rows = sensor_rows(model.configuration, sensors)
        frequencies = np.asarray(modes.frequencies, dtype=float)
        excess = np.asarray(modes.excess, dtype=float) if len(modes.excess) else np.zeros(len(frequencies))
        return PoseModes(frequencies, self.held.independent(modes.shapes), np.asarray(model.M), excess, tuple(sensors),
                         rows @ modes.shapes)  # fmt: skip

    def frequency(self, mode: int) -> tuple[float, Array]:
        """Hz of a mode, from 0, and its slopes."""
        count = self.held.state.count
        return float(self.modes.frequencies[mode]), slope_of(frequency_of(self.held, self.modes, mode), count)

    def damped(self, mode: int) -> tuple[float, float, Array, Array]:
        """Frequency (Hz) and damping ratio of the pole of a mode, from 0, and their slopes.

        With (lambda^2 M + lambda D + K) psi = 0, the slopes of lambda are those of psi^T (lambda^2 M + lambda D + K)
        psi over -psi^T (2 lambda M + D) psi, for a fixed lambda and psi: no slopes of psi are needed.
        """
        value, psi = self._pole(mode)
        size = abs(value)
        count = self.held.state.count
        if not count:
            return size / (2 * np.pi), -value.real / size, np.zeros(0), np.zeros(0)
        motions = self.held.there.along(np.stack([psi.real, psi.imag], axis=1))
        D_tot = tree_stiffness(self.held.there, self.held.loading.without)[1]
        parts = [self.held.mass_of(motions), motions.T @ D_tot @ motions, self.held.stiffness_of(motions)]
        slopes = [_of_square(slopes_last(part, Sensitive, count)) for part in parts]
        M, D = self.held.model.M, self.held.model.D
        step = -(value**2 * slopes[0] + value * slopes[1] + slopes[2]) / (psi @ (2 * value * M + D) @ psi)
        larger = (np.conj(value) * step).real / size
        return (
            size / (2 * np.pi), -value.real / size, larger / (2 * np.pi),
            -step.real / size + value.real * larger / size**2,
        )  # fmt: skip

    def _pole(self, mode: int) -> tuple[complex, Array]:
        """The pole into which damping turns a mode, and its shape, by Newton's method from light damping."""
        M, D, K = self.held.model.M, self.held.model.D, self.held.model.K
        omega, ratio = 2 * np.pi * float(self.modes.frequencies[mode]), float(self.modes.damping[mode])
        start = self.held.independent(self.modes.shapes)[:, mode]
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
