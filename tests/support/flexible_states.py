"""Random states of flexible robots, and errors of programs there."""

from functools import cache

import numpy as np

import parflex
from parflex.dynamics.dynamics import state_at
from parflex.recursion.dynamics import mass_matrix
from parflex.robot.load import JOINT_TERMS, acting_configuration, acting_robot


def reduced_equations(at: parflex.Configuration, rates: np.ndarray, without: tuple[str, ...] = ()) -> tuple:
    """M, c of M qdd + c = J_a^T tau in the independent rates, and the bias b of all accelerations."""
    state = state_at(acting_configuration(at.robot, at, without), rates)
    return state.mass_matrix, state.c, state.bias


def reduced(at: parflex.Configuration, rates: np.ndarray, efforts: np.ndarray) -> np.ndarray:
    """All accelerations by the general reduction."""
    M, c, b = reduced_equations(at, rates)
    units = 1 / np.sqrt(np.diag(M))  # of the rates: metres beside radians cost digits
    return at.J @ (units * np.linalg.solve(M * np.outer(units, units), units * (at.J_a.T @ efforts - c))) + b


BENT = 1e-4  # elastic coordinates in m and rad: beams of these robots carry no more


@cache
def robot(name: str) -> parflex.Robot:
    return parflex.load(name)


@cache
def bent_states(name: str, count: int) -> list[dict]:
    """Closed, bent positions with rates, efforts and what they cause, by the general reduction."""
    rng = np.random.default_rng(3)
    return [bent_state(robot(name), rng) for _ in range(count)]


def bent_state(of: parflex.Robot, rng: np.random.Generator, bent: float = BENT) -> dict:
    tree = of.tree
    step = rng.uniform(-1, 1, tree.n) * np.where(np.isin(np.arange(tree.n), tree.elastic), bent, 0.05)
    q, error = of.assembler.newton(tree.moved(of.home, step), of.free, list(of.closures.rows))
    assert error < 1e-12
    at = parflex.Configuration(of, q)
    rates = at.J @ rng.uniform(-1, 1, at.J.shape[1])
    M, c, b = reduced_equations(at, rates, without=JOINT_TERMS)
    efforts = rng.uniform(-100, 100, len(of.actuated))
    accelerations = at.J @ np.linalg.solve(M, at.J_a.T @ efforts - c) + b
    inertia = np.abs(mass_matrix(acting_robot(of, JOINT_TERMS).tree, at.at)[list(of.actuated)]) @ np.abs(accelerations)
    sizes = {"effort": float(max(inertia.max(), np.abs(efforts).max())), "qdd": float(np.abs(accelerations).max())}
    return {"at": at, "q": q, "rates": rates, "effort": efforts, "accelerations": accelerations, "sizes": sizes}


def batch(states: list[dict], program, of: parflex.Robot) -> tuple[dict, dict]:
    """Inputs of a program and what it must give."""
    numbers = {name: k for k, name in enumerate(of.tree.rate_names)}
    independent = [numbers[name] for name in program.labels["qd"]]
    motors = list(of.actuated)
    groups = {
        "q": [state["q"] for state in states],
        "qd": [state["rates"][independent] for state in states],
        "effort": [state["effort"] for state in states],
        "motor_acceleration": [state["accelerations"][motors] for state in states],
        "qdd": [state["accelerations"][independent] for state in states],
        "free_acceleration": [
            state["accelerations"][[k for k in independent if k not in set(motors)]] for state in states
        ],
    }
    arrays = {name: np.array(value) for name, value in groups.items()}
    return {name: arrays[name] for name in program.inputs}, {name: arrays[name] for name in program.outputs}


def error_of(found: dict, wanted: dict, states: list[dict]) -> float:
    """Largest difference, relative to the numbers that it is the rounding of."""
    worst = 0.0
    for group, value in wanted.items():
        sizes = [state["sizes"]["effort" if group == "effort" else "qdd"] for state in states[: len(value)]]
        worst = max(worst, float((np.abs(found[group] - value).max(axis=1) / sizes).max()))
    return worst
