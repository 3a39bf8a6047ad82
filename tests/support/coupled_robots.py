"""Robots whose joints are coupled by gears and screws."""

import numpy as np

import parflex
from support.comparison import order_of, positions, written
from support.robots import robot_file

RIGID = {"differential": None, "planetary": "two", "screw-jack": "both", "geared-five-bar": None, "nut-in-loop": None}


def saddle(oracle, at, qd, efforts):
    """Accelerations and multipliers by one system of all rates and all rows, in our order of rates."""
    robot, named = at.robot, positions(at)
    back = np.argsort(order_of(robot, oracle))
    M, c = oracle.mass_matrix_and_bias(named, qd[back])
    A, bias = oracle.closure_jacobian(named, qd[back])
    force = np.zeros(len(M))
    for name, value in efforts.items():
        force[oracle.coordinates.index(name)] = value
    zero = np.zeros((len(A), len(A)))
    found = np.linalg.solve(np.block([[M, -A.T], [A, zero]]), np.concatenate([force - c, -bias]))
    return found[: len(M)][order_of(robot, oracle)], found[len(M) :]


PAIR = robot_file("wheel-and-pinion").read_text(encoding="utf-8")


def pair(folder, coupling, more="", name="pair"):
    head = '[[coupling]]\nname = "mesh"\njoint = "wheel"\n'
    return parflex.load(written(PAIR + head + coupling + "\n" + more, folder, name))
