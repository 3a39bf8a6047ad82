"""Records of the robot of `three_rrr` with friction, noise, encoders and currents of 12 bits, under its controller."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from support.oracles import three_rrr

Array = np.ndarray
SIGNS = np.array([1.0, -1.0, 1.0])
MOTORS = ("leg1.1", "leg2.1", "leg3.1")


@dataclass(frozen=True)
class Loop:
    """A PD controller at a sample time, and the friction of the motors."""

    stiffness: float = 2000.0
    damping: float = 60.0
    sample: float = 1e-3
    viscous: float = 0.4
    coulomb: float = 0.25
    smooth: float = 0.0  # rad/s: over which Coulomb friction changes its sign

    def friction(self, rate: Array) -> Array:
        """What friction of the motors takes."""
        smooth = rate / np.sqrt(rate**2 + self.smooth**2) if self.smooth else np.sign(rate)
        return self.viscous * rate + self.coulomb * smooth


def path(t: float, seed: int) -> tuple[Array, Array, Array]:
    """Pose of the platform, its rate and acceleration: a few harmonics that begin at rest."""
    rng = np.random.default_rng(seed)
    x, xd, xdd = np.zeros(3), np.zeros(3), np.zeros(3)
    for k in range(1, 5):
        w = 2 * np.pi * k / 4.0
        a, b = rng.uniform(-1, 1, (2, 3)) * np.array([0.03, 0.03, 0.15]) / np.sqrt(k)
        x += a * np.sin(w * t) + b * np.cos(w * t)
        xd += w * (a * np.cos(w * t) - b * np.sin(w * t))
        xdd += -w * w * (a * np.sin(w * t) + b * np.cos(w * t))
    return x, xd, xdd


def joints(p: three_rrr.Parameters, x: Array, xd: Array) -> tuple[Array, Array]:
    """Angles of all joints and their rates."""
    q = three_rrr.inverse_geometry(p, x, SIGNS)
    J_x, J_q = three_rrr.jacobians(p, x, q)
    return q, -np.linalg.solve(J_q, J_x @ xd)


def followed(time: float, seed: int, loop: Loop = Loop(), p: three_rrr.Parameters | None = None) -> dict[str, Array]:
    """Clean columns of a robot that follows its path exactly: the efforts that this takes."""
    p = three_rrr.Parameters() if p is None else p
    rows = []
    for k in range(round(time / loop.sample)):
        x, xd, xdd = path(k * loop.sample, seed)
        q = three_rrr.inverse_geometry(p, x, SIGNS)
        qd, qdd = three_rrr.moving(p, x, q, xd, xdd)
        D, C, G = three_rrr.model(p, x[2], q, qd)
        tau = D @ qdd + C + G + loop.friction(qd[:3])
        rows.append(np.concatenate([[k * loop.sample], q[:3], tau, q[:3]]))
    return _columns(np.array(rows))


Law = Callable[[Array, Array, Array, Array, Array, float], Array]  # x, xd, q, qd, wanted angles, time: efforts


def _under(law: Law, time: float, seed: int, loop: Loop, p: three_rrr.Parameters) -> dict[str, Array]:
    """Clean columns of a robot under a law: time, positions and efforts of the motors, their reference."""
    h, rows = loop.sample, []
    x, xd, _ = path(0.0, seed)
    for k in range(round(time / h)):
        q, qd = joints(p, x, xd)
        wanted, _ = joints(p, *path(k * h, seed)[:2])
        tau = law(x, xd, q, qd, wanted, k * h)
        rows.append(np.concatenate([[k * h], q[:3], tau, wanted[:3]]))
        x, xd = _step(p, loop, x, xd, tau, h)
    return _columns(np.array(rows))


def closed_loop(time: float, seed: int, loop: Loop = Loop(), p: three_rrr.Parameters | None = None) -> dict[str, Array]:
    """Clean columns under the controller of the loop."""

    def law(x: Array, xd: Array, q: Array, qd: Array, wanted: Array, t: float) -> Array:
        return loop.stiffness * three_rrr.wrap(wanted[:3] - q[:3]) - loop.damping * qd[:3]

    return _under(law, time, seed, loop, three_rrr.Parameters() if p is None else p)


def computed_loop(
    time: float, seed: int, Kp: float, Kv: float, loop: Loop, nominal: tuple[float, float, float]
) -> dict[str, Array]:
    """The same under computed torque by a model with another load (kg), viscous and Coulomb friction."""
    p, own = three_rrr.Parameters(), three_rrr.Parameters(m_c=nominal[0])
    known = Loop(viscous=nominal[1], coulomb=nominal[2])

    def law(x: Array, xd: Array, q: Array, qd: Array, wanted: Array, t: float) -> Array:
        goal, goal_rate, goal_acceleration = path(t, seed)
        _, wanted_rate = joints(p, goal, goal_rate)
        there = _motor_accelerations(p, goal, goal_rate, wanted, wanted_rate)
        asked = there[0] @ goal_acceleration + there[1]
        asked = asked + Kv * (wanted_rate - qd)[:3] + Kp * three_rrr.wrap((wanted - q)[:3])
        here = _motor_accelerations(p, x, xd, q, qd)
        _, qdd = three_rrr.moving(p, x, q, xd, np.linalg.solve(here[0], asked - here[1]))
        D, C, G = three_rrr.model(own, x[2], q, qd)
        return D @ qdd + C + G + known.friction(qd[:3])

    return _under(law, time, seed, loop, p)


def _motor_accelerations(p: three_rrr.Parameters, x: Array, xd: Array, q: Array, qd: Array) -> tuple[Array, Array]:
    """Those of the motors are a matrix times those of the platform, and a rest."""
    J_x, J_q = three_rrr.jacobians(p, x, q)
    turned = -np.linalg.solve(J_q, np.column_stack([J_x, three_rrr.drift(p, x, xd, q, qd)]))
    return turned[:3, :3], turned[:3, 3]


def _columns(table: Array) -> dict[str, Array]:
    for column in (1, 2, 3, 7, 8, 9):
        table[:, column] = np.unwrap(table[:, column])
    names = ["t", *(f"q.{m}" for m in MOTORS), *(f"effort.{m}" for m in MOTORS), *(f"ref.{m}" for m in MOTORS)]
    return dict(zip(names, table.T, strict=True))


def sensed(clean: dict[str, Array]) -> dict[str, Array]:
    """The columns with efforts of a current sensor: the mean of what is held before and after an instant."""
    means = {f"effort.{m}": clean[f"effort.{m}"] for m in MOTORS}
    return clean | {name: np.concatenate([e[:1], (e[1:] + e[:-1]) / 2]) for name, e in means.items()}


def _step(p: three_rrr.Parameters, loop: Loop, x: Array, xd: Array, tau: Array, h: float) -> tuple[Array, Array]:
    def acceleration(x: Array, xd: Array) -> Array:
        return three_rrr.accelerations(p, x, xd, tau - loop.friction(joints(p, x, xd)[1][:3]), SIGNS)[0]

    return three_rrr.rk4(acceleration, x, xd, h)


def sliding_mass(
    time: float, seed: int = 0, noise: float = 0.0, kp: float = 60.0, kv: float = 40.0
) -> dict[str, Array]:  # fmt: skip
    """8 kg, friction 12 N s/m and 3 N; signal kv (kp (reference - x) - v), at most 30; force 2.5 times that, 1 ms."""
    rng, h, parts = np.random.default_rng(seed), 1e-3, 20
    x, v, rows = 0.0, 0.0, []
    decay = np.exp(-12 / 8.0 * h / parts)
    for k in range(round(time / h)):
        t = k * h
        wanted = 0.1 * (1 - np.cos(2 * t)) + 0.04 * np.sin(7 * t) - 0.04 * np.sin(9 * t) * 7 / 9
        seen = x + noise * rng.standard_normal()
        signal = min(max(kv * (kp * (wanted - seen) - v), -30.0), 30.0)
        rows.append([t, seen, signal, wanted])
        for _ in range(parts):
            force = 2.5 * signal
            side = np.sign(v) if v else (np.sign(force) if abs(force) > 3 else 0.0)
            rest = (force - 3 * side) / 12 if side else 0.0
            after = rest + (v - rest) * decay
            if v * after < 0:
                after = 0.0
            x, v = x + h / parts * (v + after) / 2, after
    return dict(zip(("t", "x", "i", "ref"), np.array(rows).T, strict=True))


def pushed_mass(time: float, seed: int, dry: float = 10.0) -> dict[str, Array]:
    """8 kg, friction 12 N s/m and `dry` N, pushed by more than that at reversals; noise 2 um and 0.3 % of the force."""
    h, parts = 1e-3, 20
    t = np.arange(round(time / h * parts)) * h / parts
    force = (60 + 20 * np.sin(2 * t)) * np.sin(9 * t) + 25 * np.sin(27 * t)
    decay, v = np.exp(-12 / 8 * h / parts), -0.9
    rates = np.empty(len(t))
    for k, push in enumerate(force + np.gradient(force) / 2):
        rates[k] = v
        rest = (push - dry * np.sign(v)) / 12
        v = rest + (v - rest) * decay
    x = np.concatenate([[0.0], np.cumsum((rates[1:] + rates[:-1]) / 2)]) * h / parts
    rng, own = np.random.default_rng(seed), slice(None, None, parts)
    count = len(t[own])
    noise = (2e-6 * rng.standard_normal(count), 3e-3 * force.std() * rng.standard_normal(count))
    return {"t": t[own], "x": x[own] + noise[0], "i": force[own] + noise[1]}


def as_measured(
    clean: dict[str, Array], seed: int, noise: float = 2e-5, effort: float = 0.05, lines: int = 2**17
) -> dict[str, Array]:
    """The columns with noise on positions (rad) and efforts (N m), encoders of so many lines, currents of 12 bits."""
    rng, found = np.random.default_rng(seed), dict(clean)
    line = 2 * np.pi / lines
    for motor in MOTORS:
        q, tau = clean[f"q.{motor}"], clean[f"effort.{motor}"]
        found[f"q.{motor}"] = np.round((q + noise * rng.standard_normal(len(q))) / line) * line
        bit = 2 * 40.0 / 2**12
        found[f"effort.{motor}"] = np.round((tau + effort * rng.standard_normal(len(tau))) / bit) * bit
    return found
