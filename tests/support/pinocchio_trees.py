"""Robots that Pinocchio reads as trees, for intervals of identified parameters."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import parflex
from support import recordings
from support.catalogue import CATALOGUE
from support.oracles import led_records, measured

Array = np.ndarray


@dataclass
class Repeated:
    """A robot, its record without noise, and what noise makes of it."""

    robot: parflex.Robot
    clean: dict[str, Array]
    noisy: Callable[[int], dict[str, Array]]
    true: dict[str, float]  # of numbers by symbol that are not those of the file
    controller: dict[str, float] | None = None

    def columns(self) -> dict[str, object]:
        motors = self.robot.actuated_names
        words = {"position": "q", "effort": "effort", "reference": "ref"}
        found = {key: {m: f"{word}.{m}" for m in motors} for key, word in words.items()}
        return found | ({"controller": self.controller} if self.controller else {})

    def found(self, estimator: str, seed: int) -> tuple[Array, Array, Array, list[str]]:
        """Errors of all base parameters, half their intervals, white deviations, and names."""
        one = parflex.identify(self.robot, self.noisy(seed), self.columns(), estimator)
        wanted = [self.true.get(name.partition("[")[0], p.file_value) for name, p in one.parameters.items()]
        half = np.array([p.interval[1] - p.value for p in one.parameters.values()])
        white = np.array([p.deviation_white for p in one.parameters.values()])
        return one.values - wanted, half, white, list(one.parameters)


def three_rrr(simulated: bool = False, led: bool = False) -> Repeated:
    """The planar robot by hand, under its controller; `led`: along its path exactly."""
    loop = measured.Loop(sample=2e-3 if led else 1e-3)
    clean = (measured.followed if led else measured.closed_loop)(4.0, 1, loop)
    if led:
        clean = led_records.with_reference(clean, loop.stiffness, loop.damping)
    elif not simulated:
        clean = measured.sensed(clean)
    gains = {"kp": loop.stiffness / loop.damping, "kv": loop.damping}
    return Repeated(
        recordings.three_rrr(), clean, lambda seed: measured.as_measured(clean, seed), {"FV": 0.4, "FS": 0.25}, gains
    )


def catalogue(
    name: str, reach: tuple[float, ...], loop: tuple[float, float], noise: tuple[float, ...], seed: int = 1,
    simulated: bool = False,
) -> Repeated:  # fmt: skip
    """Return a record of a catalogue robot, led or posed about home; `simulated`: efforts held for a sample."""
    oracle, t = led_records.LedRobot(CATALOGUE / f"{name}.toml"), np.arange(4000) * 1e-3

    def led(at: Array) -> led_records.Series:
        return (
            oracle.about_home(at, seed, *reach)
            if len(reach) == 1
            else oracle.posed(at, seed, *reach[:2], int(reach[2]))
        )

    if simulated:
        clean = oracle.held(t, led(t), led(t + 5e-4), *loop)
    else:
        clean = led_records.with_reference(oracle.led(t, led(t)), *loop)
    gains = {"kp": loop[0] / loop[1], "kv": loop[1]}
    return Repeated(parflex.load(name), clean, lambda seed: led_records.as_measured(clean, seed, *noise), {}, gains)


DELTA = ((0.12,), (300.0, 8.0), (2e-5, 2 * np.pi / 2**17, 0.02, 10.0))
HEXAPOD = ((0.1, 0.2, 10), (1e-6, 5e-7, 20.0, 3e4), 3)  # without its controller
ROBOTS = {
    ("3rrr", "iv"): three_rrr,
    ("3rrr", "didim"): lambda: three_rrr(simulated=True),
    ("delta", "iv"): lambda: catalogue("delta", *DELTA),
    ("delta", "didim"): lambda: catalogue("delta", *DELTA, simulated=True),
    # a soft controller (2e6 N/m) is 1 cm behind its reference: poor instruments, intervals that are too wide
    ("gough-stewart", "iv"): lambda: catalogue("gough-stewart", HEXAPOD[0], (2e8, 2e6), *HEXAPOD[1:]),
    ("gough-stewart", "didim"): lambda: catalogue(
        "gough-stewart", HEXAPOD[0], (2e7, 6e4), *HEXAPOD[1:], simulated=True
    ),
}
