"""Joints that lead the end effector of the nominal robot along a reference, found once, before any run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.codegen.traces.feedback import led_components
from parflex.control.references import Path, Reference
from parflex.errors import ParflexError, SingularError
from parflex.models.configuration import Configuration
from parflex.models.robot import Robot
from parflex.simulation.inputs.polynomials import Polynomials, hermite, slopes_of

Array = np.ndarray
KNOT_STEP = 1e-2  # s between knots; quintics between them err by 1e-9 rad on a circle of 0.1 m in two seconds
TWIST_WORDS = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True)
class Track:
    """Joint values along a reference, with their rates, and all positions of the robot at knots."""

    reference: Reference
    names: list[str]
    pieces: Polynomials
    start: Array  # all positions where it begins
    start_rates: Array  # all rates there
    led: tuple[int, ...]  # components of the end effector's twist that the robot can lead
    _kept: list[Any] = field(default_factory=list, repr=False, compare=False)  # at most one: times, what is there

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Positions, rates and accelerations of the joints at times, a row for each."""
        return self._sampled(t)[0]

    def path(self, t: Array) -> Path:
        """Place and motion of the end effector at times."""
        return self._sampled(t)[1]

    def _sampled(self, t: Array) -> tuple[tuple[Array, Array, Array], Path]:
        """Both, kept: all runs of a study ask for the same times."""
        times = np.clip(np.asarray(t, dtype=float), 0.0, self.reference.time)
        for known, answer in self._kept[:]:  # a copy: another thread may change it
            if np.array_equal(known, times):
                return answer
        value, rate, change = (self.pieces.at(times, order) for order in range(3))
        answer = ((value, rate, change), self.reference.at(times))
        self._kept[:] = [(times, answer)]
        return answer


def track(robot: Robot, reference: Reference, names: list[str], step: float = KNOT_STEP) -> Track:
    """Joints of these names along a reference; a pose that cannot be, or a singularity on the way, is refused."""
    rigid = robot.locking(robot.tree.elastic)
    led = led_components(rigid)
    count = max(8, int(np.ceil(reference.time / step)))
    t = np.linspace(0.0, reference.time, count + 1)
    path = reference.at(t)
    places = [rigid.tree.links[rigid.tree.number(name)] for name in names]
    rows = np.zeros((3, len(t), len(names)))
    q, start, start_rates, side = rigid.home, rigid.home, np.zeros(rigid.tree.n), 0.0
    for k, moment in enumerate(t):
        try:
            here, qd, qdd = _motion(rigid, path, k, q, led)
        except ParflexError as error:
            error.message = f"the reference cannot be followed at t = {moment:.4g} s: {error.message}"
            error.key = "reference"
            raise
        q = here.q
        start, start_rates = (q, qd) if k == 0 else (start, start_rates)
        turned = _orientation(here, led)
        if side * turned < 0:
            raise SingularError(
                f"the reference crosses a singularity of the platform at t = {moment:.4g} s",
                key="reference",
                value=reference.name,
                hint="choose another working mode or another path",
            )
        side = turned
        for j, link in enumerate(places):
            rows[:, k, j] = q[link.q.start], qd[link.v.start], qdd[link.v.start]
    if np.isnan(rows[2]).any():
        rows[2] = slopes_of(t, rows[1], False)
    rows[0] = _unwrapped(rows[0], [link.joint.kind == "revolute" for link in places])
    return Track(reference, names, hermite(t, *rows), start, start_rates, led)


def _motion(robot: Robot, path: Path, k: int, near: Array, led: tuple[int, ...]) -> tuple[Configuration, Array, Array]:
    """The robot at a knot of the path, with all rates and accelerations, which are nan where motions are left free."""
    axes = "xy" if robot.tree.planar else "xyz"
    place = {f"{robot.tree.end_effector}.{axis}": float(path.position[k, c]) for c, axis in enumerate(axes)}
    if robot.loose(place):  # the turn is that of the nearest pose
        here = Configuration(robot, robot.assemble(place, near))
        qd = robot.path_rates(place, here.q, {word: float(path.velocity[k, "xyz".index(word[-1])]) for word in place})
        return here, qd, np.full(len(qd), np.nan)
    here = Configuration(robot, robot.assemble(pose_words(robot, path, k, led), near))
    push = np.concatenate([path.acceleration[k], path.angular_acceleration[k]])
    wanted = velocity_words(robot, path, k, led)
    qd = here.rates(wanted)
    return here, qd, here.accelerations({w: float(push[c]) for w, c in zip(wanted, led, strict=True)}, qd, wanted)


def velocity_words(robot: Robot, path: Path, k: int, led: tuple[int, ...]) -> dict[str, float]:
    """The velocity at a knot, in the components that the robot can lead."""
    velocity = np.concatenate([path.velocity[k], path.angular_velocity[k]])
    return {_twist_word(robot, component): float(velocity[component]) for component in led}


def pose_words(robot: Robot, path: Path, k: int, led: tuple[int, ...]) -> dict[str, float]:
    """The pose at a knot; the rotation is asked for where the robot can lead it."""
    name = robot.tree.end_effector
    words = {f"{name}.{'xyz'[c]}": float(path.position[k, c]) for c in led if c < 3}
    if not any(c > 2 for c in led):
        return words
    R = path.rotation[k]
    if robot.tree.planar:
        return words | {f"{name}.theta": float(np.arctan2(R[1, 0], R[0, 0]))}
    from parflex.spatial.rotations import matrix_quaternion

    return words | {f"{name}.q{a}": float(v) for a, v in zip("wxyz", matrix_quaternion(R), strict=True)}


def _twist_word(robot: Robot, component: int) -> str:
    word = "theta" if robot.tree.planar and component == 5 else TWIST_WORDS[component]
    return f"{robot.tree.end_effector}.{word}"


def _orientation(here: Configuration, led: tuple[int, ...]) -> float:
    """A number that changes its sign where the motors lose the platform; the choice of coordinates drops out."""
    led_rows = (here.frame_rows(here.robot.tree.end_effector) @ here.J)[list(led)]
    motors = here.J_a
    if motors.shape[0] != motors.shape[1]:
        return 0.0  # more motors than freedoms: no sign tells
    return float(np.sign(np.linalg.det(motors)) * np.sign(np.linalg.det(led_rows)))


def _unwrapped(values: Array, turning: list[bool]) -> Array:
    """Angles without jumps of whole turns."""
    return np.stack([np.unwrap(v) if turns else v for v, turns in zip(values.T, turning, strict=True)], axis=1)
