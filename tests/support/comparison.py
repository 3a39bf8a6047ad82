"""Robots written as text, states near home, and the comparison of one state with an oracle."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

import parflex
from support.states import CONDITION_LIMIT, MAX_RATE, State


def written(text: str, folder: Path, name: str = "robot") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def positions(configuration: parflex.Configuration) -> dict[str, float]:
    """All positions by name, as the oracles take them."""
    return dict(zip(configuration.robot.tree.position_names, configuration.q, strict=True))


def order_of(robot: parflex.Robot, oracle) -> list[int]:
    """Where each of our rates stands among those of the oracle."""
    return [oracle.coordinates.index(name) for name in robot.tree.rate_names]


def chosen(configuration: parflex.Configuration, values: np.ndarray) -> dict[str, float]:
    """The entries of the independent rates by name."""
    names = configuration.robot.tree.rate_names
    return {name: float(values[names.index(name)]) for name in configuration.independent_names}


def accelerated(configuration: parflex.Configuration, qd: np.ndarray, efforts: np.ndarray, **words):
    """Accelerations under efforts of the motors at rates of all joints."""
    robot = configuration.robot
    tau = dict(zip(robot.actuated_names, map(float, efforts), strict=True))
    return parflex.forward_dynamics(robot, configuration, chosen(configuration, qd), tau, **words)


def driven(configuration: parflex.Configuration, qd: np.ndarray, motors: np.ndarray, **words):
    """Efforts for accelerations of the motors at rates of all joints."""
    robot = configuration.robot
    acceleration = dict(zip(robot.actuated_names, map(float, motors), strict=True))
    return parflex.inverse_dynamics(robot, configuration, chosen(configuration, qd), acceleration, **words)


def largest(values) -> float:
    return float(np.abs(values).max(initial=0.0))


def error_against(oracle, state: State, load: dict | None = None) -> float:
    """Largest relative error of efforts, rates and accelerations of one state against an oracle."""
    configuration, robot = state.configuration, state.configuration.robot
    result = parflex.inverse_dynamics(robot, configuration, state.velocity, state.acceleration, wrench=load)
    assert largest(result.rates / robot.tree.rate_units) < 10 * MAX_RATE  # a motion that was asked for
    q, order = positions(configuration), order_of(robot, oracle)
    rates, accelerations = chosen(configuration, result.rates), chosen(configuration, result.accelerations)
    qd, qdd = oracle.motion(q, rates, accelerations)
    expected = oracle.inverse(q, rates, accelerations, robot.actuated_names, wrenches=load)
    tau = np.array([expected[name] for name in robot.actuated_names])
    ours = np.array([result.efforts[name] for name in robot.actuated_names])
    return max(
        largest(tau - ours) / largest(tau),
        largest(qd[order] - result.rates) / largest(result.rates),
        largest(qdd[order] - result.accelerations) / largest(result.accelerations),
    )


def stiffness_error(
    model: parflex.LinearModel,
    oracle,
    efforts: Mapping[str, float] = MappingProxyType({}),
    pulls: Mapping[str, Sequence[float]] = MappingProxyType({}),
    servos: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> float:
    """Largest relative error of the stiffness about an equilibrium against the second derivatives of energies."""
    at, robot = model.configuration, model.configuration.robot
    locked = [robot.tree.rate_names[k] for k in robot.locked]
    left, K = oracle.tangent(positions(at), efforts, pulls, servos, locked)
    order = order_of(robot, oracle)
    assert largest(model.J.T @ left[order]) < 1e-7 * max(1.0, largest(K))  # an equilibrium indeed
    K = model.J.T @ K[np.ix_(order, order)] @ model.J
    return largest(model.K - K) / largest(K)


def nearby_states(robot: parflex.Robot, count: int, seed: int, size: float = 0.3) -> Iterator[State]:
    """States about home along motions that the closures allow: for any mechanism, whatever drives it."""
    rng = np.random.default_rng(seed)
    home, tree, found = parflex.Configuration(robot, robot.home), robot.tree, 0
    for _ in range(60 * count):
        direction = home.null_space @ rng.standard_normal(home.null_space.shape[1])
        step = np.zeros(tree.n)
        step[robot.free] = size * rng.uniform(0.2, 1) * direction / largest(direction) * tree.rate_units[robot.free]
        q, error = robot.assembler.newton(tree.moved(home.q, step), robot.free, robot.closures.rows)
        configuration = parflex.Configuration(robot, q)
        condition = configuration.condition
        motors = condition.platform if condition.enough_motors else 1.0
        if error > 1e-12 or max(motors, condition.closures, *condition.legs.values(), 1) > CONDITION_LIMIT:
            continue
        yield State(configuration, *_motor_motion(configuration, rng))
        found += 1
        if found == count:
            return
    raise AssertionError(f"too few states of {robot.name}")


def _motor_motion(configuration: parflex.Configuration, rng: np.random.Generator) -> tuple[dict, dict]:
    """Velocities and accelerations of the motors, at most 10 rad/s and 100 rad/s2 in the fastest joint."""
    robot, motions = configuration.robot, []
    for size in (MAX_RATE, 10 * MAX_RATE):
        rates = configuration.null_space @ rng.standard_normal(configuration.null_space.shape[1])
        full = np.zeros(robot.tree.n)
        full[robot.free] = rates * rng.uniform(0.2, 1) * size / largest(rates) * robot.tree.rate_units[robot.free]
        motions.append({name: full[k] for name, k in zip(robot.actuated_names, robot.actuated, strict=True)})
    return motions[0], motions[1]


def body_rate_derivatives(configuration: parflex.Configuration, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Derivatives of the components of the rates: v_dot = a - w x v where a frame is free."""
    result = np.array(qdd, dtype=float)
    for link in configuration.robot.tree.links:
        if link.joint.kind in ("free", "planar"):
            v, w = link.joint.S_v @ qd[link.v], link.joint.S_w @ qd[link.v]
            result[link.v] -= link.joint.S_v.T @ np.cross(w, v)
    return result


def after(configuration: parflex.Configuration, qd: np.ndarray, qdd: np.ndarray, time: float):
    """Configuration and rates a short time later, exact to second order in positions and to first in rates."""
    tree = configuration.robot.tree
    q = tree.moved(configuration.q, time * qd + time**2 / 2 * qdd)
    return parflex.Configuration(configuration.robot, q), qd + time * body_rate_derivatives(configuration, qd, qdd)
