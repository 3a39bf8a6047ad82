"""Modes of a model at a measured pose: frequencies, shapes at sensors, damped poles, exact derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from parflex.design.design_state import DesignState, ResponseCase, SensitiveDesign, slope_of
from parflex.design.statics_responses import HeldState
from parflex.design.vibration_responses import frequency_of, lowest_modes
from parflex.errors import InputError
from parflex.records import Record
from parflex.robot.configuration import Configuration, Pose
from parflex.robot.robot import Robot
from parflex.spatial.dual import Sensitive, slopes_last
from parflex.statics.linear_model import tree_stiffness
from parflex.statics.modes import Modes
from parflex.updating.measured import mac_of_span, sensor_rows

Array = np.ndarray
EQUAL = 1e-5  # of a frequency: modes nearer to each other are equal, and any mixture of them is a mode
MOST_STEPS = 40
SETTLED = 1e-12  # of a pole
SAME = 0.8  # MAC of shapes between two steps of damping: those of another mode are far below
LEAST_SHARE = 1e-3  # of the damping that a step adds
UNCHANGED = 1e-9  # of a frequency: what differs less is rounding


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
        return _equal(self.frequencies, mode)

    def likeness(self, other: PoseModes) -> Array:
        """MAC of the modes of the other one (rows) with these, by the mass of the other one."""
        product = other.shapes.T @ other.mass @ self.shapes
        norms, other_norms = (
            np.einsum("ij,ik,kj->j", shapes, other.mass, shapes) for shapes in (self.shapes, other.shapes)
        )
        return product**2 / np.maximum(np.outer(other_norms, norms), 1e-300)

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
        D_tot = tree_stiffness(self.held.there)[1]
        parts = [self.held.mass_of(motions), motions.T @ D_tot @ motions, self.held.stiffness_of(motions)]
        return [slopes_last(part, Sensitive, self.count) for part in parts]


def modes_at(
    robot: Robot, pose: str, case: ResponseCase, count: int, design: SensitiveDesign | None = None,
    known: Configuration | None = None,
) -> SlopedModes:  # fmt: skip
    """The modes of a robot at a pose, or at its positions where they are known, with slopes by the keys of a design."""
    keys = design.keys if design else ()
    there: Pose = pose_of(pose) if known is None else known
    held = HeldState(DesignState(robot, there, keys, case, design or SensitiveDesign(robot, ())))
    return SlopedModes(pose, lowest_modes(held, count), MovingSlopes(held))


class SlopedModes:
    """The modes of a robot at a pose, and slopes of those that are asked for by keys of its file."""

    def __init__(self, pose: str, modes: Modes, slopes: Slopes) -> None:
        self.pose, self.modes, self.slopes = pose, modes, slopes
        self.model = modes.model
        self._poles: dict[int, tuple[complex, Array]] = {}

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
        """|pole|/(2 pi) of a mode, from 0, as modal analysis gives it (Hz), and its slopes.

        Damping that is proportional, or that single modes have, leaves it that of the mode without damping, and so to
        first order whatever changes damping: then those slopes are exact, also where modes are equal.
        """
        plain = float(self.modes.frequencies[mode])
        size = abs(self._pole(mode)[0]) / (2 * np.pi) if np.any(self.model.D) else plain
        if abs(size / plain - 1) > UNCHANGED and len(_equal(self.modes.frequencies, mode)) == 1:
            frequency, _, slopes, _ = self.damped(mode)
            return frequency, slopes
        return size, size / plain * slope_of(self.slopes.frequency(self.modes, mode), self.slopes.count)

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

    def _pole(self, mode: int) -> tuple[complex, Array]:
        """The pole into which damping turns a mode, and its shape."""
        if mode not in self._poles:
            equal = _equal(self.modes.frequencies, mode)
            self._poles |= dict(zip(equal.tolist(), self._poles_of(equal), strict=True))
        return self._poles[mode]

    def _poles_of(self, equal: Array) -> list[tuple[complex, Array]]:
        """Poles of equal modes by their size; damping chooses the mixtures of them from which each is followed."""
        shapes = self._independent(self.modes.shapes)[:, equal]
        mixtures = np.linalg.eigh(shapes.T @ self.model.D @ shapes)[1] if len(equal) > 1 else np.eye(1)
        poles = [self._followed(int(mode), shape) for mode, shape in zip(equal, (shapes @ mixtures).T, strict=True)]
        return sorted(poles, key=lambda pole: abs(pole[0]))

    def _followed(self, mode: int, shape: Array) -> tuple[complex, Array]:
        """The pole of a mode as its damping grows from none, in as few steps as keep its shape."""
        D, row = self.model.D, shape @ self.model.M
        value, psi = complex(0, 2 * np.pi * float(self.modes.frequencies[mode])), shape / (row @ shape) + 0j
        done, step = 0.0, 1.0
        while done < 1 and step > LEAST_SHARE:
            trial = self._settled(min(done + step, 1.0) * D, value, psi, row)
            if trial is None:
                step /= 2
                continue
            done, (value, psi) = min(done + step, 1.0), trial
        if done >= 1:
            return value, psi
        ratio = float(self.modes.damping[mode])
        raise InputError(
            f"mode {mode + 1} at '{self.pose}' does not vibrate with the damping of the file (ratio {ratio:.3g})",
            key="damping", value=ratio, hint="give the file less damping to start from, or leave its damping out",
        )  # fmt: skip

    def _settled(self, D: Array, value: complex, psi: Array, row: Array) -> tuple[complex, Array] | None:
        """The pole near another one, by Newton's method; None where there is none, or one of another shape."""
        M, K, before = self.model.M, self.model.K, psi
        rate = complex(psi.conj() @ D @ psi / (psi.conj() @ M @ psi))  # of this mode alone
        size, half = abs(value), rate.real / 2
        value = complex(-half, np.sqrt(size**2 - half**2)) if half < size else value
        for _ in range(MOST_STEPS):
            try:
                update = np.linalg.solve(value**2 * M + value * D + K, (2 * value * M + D) @ psi)
            except np.linalg.LinAlgError:  # the pole itself
                break
            step = complex(1 / (row @ update))
            value, psi = value - step, update / (row @ update)
            if abs(step) < SETTLED * abs(value):
                break
        else:
            return None
        mac = abs(before.conj() @ M @ psi) ** 2 / ((before.conj() @ M @ before) * (psi.conj() @ M @ psi)).real
        return (complex(value), psi) if value.imag > 0 and mac > SAME else None


def _equal(frequencies: Array, mode: int) -> Array:
    """Numbers of modes with the frequency of this one, it among them."""
    return np.flatnonzero(np.abs(frequencies - frequencies[mode]) <= EQUAL * frequencies[mode])


def pose_of(text: str) -> str | dict[str, float]:
    """A pose by its name, or by coordinates as `x=0.1,theta_deg=30`."""
    if "=" not in text:
        return text
    coordinates: dict[str, float] = {}
    for part in text.split(","):
        word, _, value = part.partition("=")
        try:
            coordinates[word.strip()] = float(value)
        except ValueError:
            raise InputError(f"'{part.strip()}' of a pose is not KEY=VALUE", key="pose", value=text,
                             hint="write e.g. x=0.1,y=0.2, or name a pose of the file") from None  # fmt: skip
    return coordinates


def _of_square(form: Array) -> Array:
    """(a + i b)^T X (a + i b) of a symmetric form by a and b: keys last."""
    return form[0, 0] - form[1, 1] + 1j * (form[0, 1] + form[1, 0])
