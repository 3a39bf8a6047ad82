"""Programs of robots with modal bodies: inputs, states, cases."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import parflex
from parflex.statics.zero_dynamics import system_jacobian
from support.cases import VERIFY
from support.catalogue import CATALOGUE
from support.comparison import largest, order_of, positions
from support.modal_robots import PRINTED_STIFFNESS, TRIANGLE, lagrange, with_platform
from support.oracles.beam_robots import HEXAGON
from support.oracles.modal_data import Modes, invented, read_modes
from support.oracles.modal_lagrange import ModalEnergyModel

# a plate pushes its attachments in one direction each, lumps in three: more modes than directions or fewer are two
# ways to write the same equations
CASES = {
    "the catalogue": ("plate", 10),
    "few modes of a plate": ("plate", 4),
    "lumps": ("free", 5),
    "many lumps": ("free", 21),
    "lumps with momentum": ("other", 8),
    "in the plane": ("planar", 3),
}
STATES = 20 if VERIFY else 2


@dataclass(frozen=True)
class State:
    """A bent robot in motion under efforts, and all that follows by Lagrange's equations."""

    at: parflex.Configuration
    rates: np.ndarray
    efforts: dict[str, float]
    accelerations: np.ndarray
    rotation: np.ndarray
    size: float  # of efforts: they are what is left of the inertia of everything

    @property
    def planar(self) -> bool:
        return self.at.robot.tree.planar

    def platform(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Translation and rotation in world axes of rates or accelerations."""
        if self.planar:
            return self.rotation @ [*values[:2], 0], np.array([0, 0, values[2]])
        return self.rotation @ values[:3], self.rotation @ values[3:6]

    def flat(self, values: np.ndarray, turns: bool = False) -> np.ndarray:
        """What is left of vectors and matrices in the plane."""
        if not self.planar:
            return values
        return values[2:] if turns else values[:2, :2] if values.ndim == 2 else values[:2]

    def modes(self, values: np.ndarray) -> np.ndarray:
        return values[list(self.at.robot.tree.elastic)]


def printed(modes: Modes) -> Modes:
    """The plate with the stiffness and the damping of [Long2014, Table 2]."""
    return replace(modes, stiffnesses=np.array(PRINTED_STIFFNESS), damping_ratios=np.full(10, 0.4))


@cache
def pair(case: str) -> tuple[parflex.Robot, ModalEnergyModel]:
    kind, count = CASES[case]
    if case == "the catalogue":
        modes = printed(read_modes(CATALOGUE / "hexagon-plate.npz"))
        robot = parflex.load("gough-stewart-flexible")
        return robot, lagrange("gough-stewart", {"platform": modes}, (0.0, 0.0, -9.81))
    if kind == "planar":
        modes, down = invented(TRIANGLE, count, 5, mass=2.0, planar=True), [1.0, -9.81, 0.0]
        return with_platform(Path(mkdtemp()), "3rrr", modes, down), lagrange("3rrr", {"platform": modes}, down)
    plate = kind == "plate"
    modes = read_modes(CATALOGUE / "hexagon-plate.npz", count) if plate else invented(HEXAGON, count, 5, kind == "free")
    robot = with_platform(Path(mkdtemp()), "gough-stewart", modes)
    return robot, lagrange("gough-stewart", {"platform": modes})


@cache
def states(case: str) -> list[State]:
    robot, oracle = pair(case)
    tree, rng, found = robot.tree, np.random.default_rng(9), []
    order, back = order_of(robot, oracle), np.argsort(order_of(robot, oracle))
    joints = np.array([k for k in robot.free if tree.rate_names[k].startswith("leg")])
    while len(found) < STATES:
        step = rng.uniform(-0.1, 0.1, tree.n)
        step[list(tree.elastic)] *= 0.2 if tree.planar else 1.0  # a light platform moves more for the same coordinate
        q, error = robot.assembler.newton(tree.moved(robot.home, step), joints, list(robot.closures.loops))
        assert error < 1e-12
        at = parflex.Configuration(robot, q)
        if np.linalg.cond(system_jacobian(at, "platform")) > 1e3:  # three digits go where motors cannot drive it
            continue
        qd = at.J @ rng.uniform(-3, 3, at.J.shape[1])
        strength = 5 if tree.planar else 500
        pushes = rng.uniform(-strength, strength, len(robot.actuated))
        efforts = dict(zip(robot.actuated_names, pushes, strict=True))
        qdd = oracle.accelerations(positions(at), qd[back], efforts)[order]
        M, _ = oracle.mass_matrix_and_bias(positions(at), qd[back])
        inertia = np.abs(M[np.ix_(order, order)][list(robot.actuated)]) @ np.abs(qdd)
        size = max(largest(pushes), largest(inertia))
        found.append(State(at, qd, efforts, qdd, at.at.rotation[tree.number("platform")], size))
    return found


def inputs(state: State) -> dict[str, np.ndarray]:
    """What a program may be given at a state."""
    tree = state.at.robot.tree
    velocity, acceleration = state.platform(state.rates), state.platform(state.accelerations)
    return {
        "position": state.at.at.position[tree.number("platform")],
        "rotation": state.rotation,
        "velocity": velocity[0],
        "angular_velocity": velocity[1],
        "acceleration": acceleration[0],
        "angular_acceleration": acceleration[1],
        "elastic": state.at.q[[tree.position_names.index(tree.rate_names[k]) for k in tree.elastic]],
        "elastic_rate": state.modes(state.rates),
        "effort": np.array(list(state.efforts.values())),
    }
