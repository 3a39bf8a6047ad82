"""Records of closed robots of the catalogue whose motors are led: Lagrange's equations say what efforts that takes.

Motors follow Fourier series; loops are closed by Newton's method on the gaps of the closures. The reference is the
one by which a PD controller would give these efforts. Noise of encoders and currents is added later. Shares no code
with the package.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from . import chart
from .energy import EnergyModel
from .reader import Frame, RobotData, read_robot

Array = np.ndarray
Series = dict[str, tuple[Array, Array, Array]]  # positions, rates and accelerations by motor
CLOSED = 1e-11  # m, rad
MOST_STEPS = 30


class LedRobot:
    """A closed robot whose motors move as they are told."""

    def __init__(self, path: str | Path, payload: tuple[float, float, float, float] | None = None) -> None:
        self.data = read_robot(path)
        if payload is not None:
            self.data = _carrying(self.data, payload)
        self.model = EnergyModel(self.data)
        self.motors = list(self.data.actuated)
        self.start = chart.start(self.data)

    def closed(self, q: dict[str, float], held: dict[str, float], rates: tuple[str, ...] = ()) -> dict[str, float]:
        """All positions with the motors, or a frame with these rates, at their places, near to those given."""
        names = self.model.coordinates
        free = [k for k, name in enumerate(names) if name not in (rates or held)]
        q = q | held
        for _ in range(MOST_STEPS):
            gap = self.model.closure_residual(q)
            if np.abs(gap).max() < CLOSED:
                return q
            way = np.zeros(len(names))
            way[free] = -np.linalg.lstsq(self.model.closure_jacobian(q)[0][:, free], gap, rcond=None)[0]
            q = chart.retract(self.data, q, way)
        raise ValueError("the loops do not close")

    def home(self) -> dict[str, float]:
        """The start of the file, closed where its motors stand."""
        return self.closed(self.start, {motor: self.start[motor] for motor in self.motors})

    def led(self, t: Array, series: Series) -> dict[str, Array]:
        """Time, positions and efforts of motors with these positions, rates and accelerations at all times."""
        q, efforts = self.home(), np.zeros((len(t), len(self.motors)))
        for k in range(len(t)):
            q = self.closed(q, {motor: float(series[motor][0][k]) for motor in self.motors})
            rates, accelerations = ({m: float(series[m][n][k]) for m in self.motors} for n in (1, 2))
            found = self.model.inverse(q, rates, accelerations, self.motors)
            efforts[k] = [found[motor] for motor in self.motors]
        columns = {"t": t}
        columns |= {f"q.{motor}": series[motor][0] for motor in self.motors}
        return columns | {f"effort.{motor}": efforts[:, k] for k, motor in enumerate(self.motors)}

    def held(self, t: Array, series: Series, middle: Series, stiffness: float, damping: float) -> dict[str, Array]:
        """The same under a controller that holds stiffness (reference - position) - damping rate for a sample.

        Over a sample the effort is that of its `middle`, which moves the robot alike to the square of a sample over a
        period, divided by 24: 4e-5 at 5 Hz and 1 kHz. The reference is the one with which that is so.
        """
        found = self.led(t, middle)
        for motor in self.motors:
            q, rate, _ = series[motor]
            found |= {f"q.{motor}": q, f"ref.{motor}": q + (found[f"effort.{motor}"] + damping * rate) / stiffness}
        return found

    def about_home(self, t: Array, seed: int, reach: float, harmonics: int = 5) -> Series:
        """Random series of the motors about home, by so much in each harmonic."""
        rng, home = np.random.default_rng(seed), self.home()
        found = {}
        for motor in self.motors:
            x, xd, xdd = np.full(len(t), home[motor]), np.zeros(len(t)), np.zeros(len(t))
            for k in range(1, harmonics + 1):
                w = 2 * np.pi * k / (t[-1] + t[1] - 2 * t[0])
                a, b = rng.uniform(-1, 1, 2) * reach / np.sqrt(k)
                x = x + a * np.sin(w * t) + b * (np.cos(w * t) - 1)
                xd = xd + w * (a * np.cos(w * t) - b * np.sin(w * t))
                xdd = xdd - w * w * (a * np.sin(w * t) + b * np.cos(w * t))
            found[motor] = (x, xd, xdd)
        return found

    def posed(self, t: Array, seed: int, reach: float, turn: float, harmonics: int = 5) -> Series:
        """Return motor motions that move and turn a free platform about home by periodic random series."""
        rng, q = np.random.default_rng(seed), self.home()
        frame = next(frame for frame in self.data.frames if frame.name == self.data.end_effector)
        w = 2 * np.pi * np.arange(1, harmonics + 1) / (t[-1] + t[1] - 2 * t[0])
        a, b = rng.uniform(-1, 1, (2, harmonics, 6)) / np.sqrt(np.arange(1, harmonics + 1))[:, None]
        ways = np.sin(np.outer(t, w)) @ a + (np.cos(np.outer(t, w)) - 1) @ b
        ways = ways * np.array([reach] * 3 + [turn] * 3)
        rotation, position = chart.pose(frame, q)
        assert np.allclose(rotation, np.eye(3), atol=1e-2)
        places = [f"{frame.name}.{key}" for key in ("x", "y", "z", "rx", "ry", "rz")]
        found = np.zeros((len(t), len(self.motors)))
        for k in range(len(t)):
            held = dict(zip(places, np.concatenate([position, np.zeros(3)]) + ways[k], strict=True))
            q = self.closed({name: value for name, value in q.items() if name not in frame.coordinates}, held,
                            frame.rates)  # fmt: skip
            found[k] = [q[motor] for motor in self.motors]
        spectrum = np.fft.rfft(found, axis=0)
        s = 2j * np.pi * np.fft.rfftfreq(len(t), t[1] - t[0])[:, None]
        spectrum[np.abs(spectrum) < 1e-10 * np.abs(spectrum).max()] = 0.0  # rounding, which would grow by s^2
        parts = [np.fft.irfft(spectrum * s**n, len(t), axis=0) for n in range(3)]
        return {motor: tuple(part[:, k] for part in parts) for k, motor in enumerate(self.motors)}  # type: ignore[misc]


def with_reference(columns: dict[str, Array], stiffness: float, damping: float) -> dict[str, Array]:
    """The columns with the reference by which effort = stiffness (reference - position) - damping rate."""
    found = dict(columns)
    for name, q in columns.items():
        if name.startswith("q."):
            motor = name.removeprefix("q.")
            rate = np.gradient(q, columns["t"])
            found[f"ref.{motor}"] = q + (columns[f"effort.{motor}"] + damping * rate) / stiffness
    return found


def as_measured(
    clean: dict[str, Array], seed: int, noise: float, line: float, effort: float, full: float
) -> dict[str, Array]:
    """Noise on positions and efforts, encoders with this distance of lines, currents of 12 bits up to full efforts."""
    rng, found = np.random.default_rng(seed), dict(clean)
    for name, column in clean.items():
        if name.startswith("q."):
            found[name] = np.round((column + noise * rng.standard_normal(len(column))) / line) * line
        elif name.startswith("effort."):
            bit = 2 * full / 2**12
            found[name] = np.round((column + effort * rng.standard_normal(len(column))) / bit) * bit
    return found


def changed(data: RobotData, frame: str, **numbers: object) -> RobotData:
    return replace(data, frames=[replace(one, **numbers) if one.name == frame else one for one in data.frames])


def _carrying(data: RobotData, payload: tuple[float, float, float, float]) -> RobotData:
    """The robot with a point mass in the axes of its end effector, which is a body."""
    mass, *at = payload
    place = np.array(at)
    own: Frame = next(frame for frame in data.frames if frame.name == data.end_effector)
    spread = place @ place * np.eye(3) - np.outer(place, place)
    return changed(
        data, own.name, mass=own.mass + mass, first_moment=own.first_moment + mass * place,
        inertia=own.inertia + mass * spread,
    )  # fmt: skip
