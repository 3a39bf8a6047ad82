"""Random states of flexible robots with all that follows by Lagrange's equations, and robots held from behind."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import parflex
from parflex import Configuration, Robot
from support.comparison import largest, order_of, positions
from support.modal_robots import ARM, GRAVITY, lagrange
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.modal_data import invented
from support.oracles.reader import read_robot
from support.robots import robot_file, write_robot

STATES = 2


def lagrange_state(robot: Robot, oracle, q: np.ndarray, rng: np.random.Generator, speed: float, push: float) -> dict:
    """A closed position in motion under efforts, and what follows by the oracle; sizes of what numbers are made of."""
    at = Configuration(robot, q)
    order, named, names = order_of(robot, oracle), positions(at), at.independent_names
    chosen = dict(zip(names, rng.uniform(-speed, speed, len(names)), strict=True))
    qd, _ = oracle.motion(named, chosen, dict.fromkeys(chosen, 0.0))
    effort = rng.uniform(-push, push, robot.nu)
    M, _ = oracle.mass_matrix_and_bias(named, qd)
    qdd = oracle.accelerations(named, qd, dict(zip(robot.motors, effort, strict=True)))
    M, qdd = M[np.ix_(order, order)], qdd[order]
    inertia = np.abs(M[list(robot.actuated)]) @ np.abs(qdd)
    sizes = {"effort": max(push, largest(inertia)), "qdd": largest(qdd)}
    return {"at": at, "q": q, "rates": qd[order], "M": M, "effort": effort, "accelerations": qdd, "sizes": sizes}


def bent_lagrange_state(robot: Robot, oracle, rng: np.random.Generator, size: float) -> dict:
    """A state near home with beams that are bent by a size (m, rad)."""
    tree = robot.tree
    elastic = np.isin(np.arange(tree.n), tree.elastic)
    step = rng.uniform(-1, 1, tree.n) * np.where(elastic, size, 0.1)
    q, error = robot.assembler.newton(tree.moved(robot.home, step), robot.free, list(robot.closures.loops))
    assert error < 1e-12
    assert largest(q[np.isin(tree.position_names, [tree.rate_names[k] for k in tree.elastic])]) > size / 3
    return lagrange_state(robot, oracle, q, rng, 3.0, 100.0)


BEHIND = {  # closures of a robot whose twists spread back over a joint to the tip of a beam
    "held from behind, welded": 'joint = "welded"',
    "held from behind, hinged": 'joint = "revolute"\naxis = [0.6, 0.0, 0.8]',
    "held from behind, sliding": 'joint = "cylindrical"\naxis = "x"',
    "held from behind, sliding the other way": 'joint = "cylindrical"\naxis = "x"',
    "held from behind, on a ball": 'joint = "spherical"',
    # axes in both places, or in the first alone
    "held from behind, on a cross": 'joint = "universal"\naxis = [0.6, 0.0, 0.8]\naxis_2 = [0.8, 0.0, -0.6]',
    "held from behind, on a cross the other way": 'joint = "universal"\naxis = [0.6, 0.8, 0.0]\naxis_2 = "z"',
    "held from behind, on a table": 'joint = "planar"\naxis = [0.0, 0.6, 0.8]',
    "held from behind, led on a line": 'joint = "point-on-line"\naxis = [0.0, 0.6, 0.8]',
    "held from behind, led on a line the other way": 'joint = "point-on-line"\naxis = [0.0, 0.6, 0.8]',
    "held from behind, led on a plane": 'joint = "point-on-plane"\naxis = [0.6, 0.0, 0.8]',
    "held from behind, led on a plane the other way": 'joint = "point-on-plane"\naxis = [0.6, 0.0, 0.8]',
}
CUT = {  # robots that are cut at their beams, and what is special about them
    "beams on both sides of modes": "modes-between-beams",
    "modes and a beam in a loop in the plane": "planar-loop-of-modes",
    "a link that is free against another": "stage-between-beams",
    "a loop that leaves its beam to another loop": "two-loops-of-beams",
}


@cache
def pair_in_pieces(case: str) -> tuple[Robot, FlexibleEnergyModel]:
    """A robot of `CUT` or `BEHIND` and its Lagrangian."""
    folder = Path(mkdtemp())
    if case in BEHIND:
        text = robot_file("held-from-behind").read_text(encoding="utf-8").replace('joint = "welded"', BEHIND[case])
        if "other way" in case:
            text = text.replace('["hand", "grip"]', '["grip", "hand"]')
    else:
        text = robot_file(CUT[case]).read_text(encoding="utf-8")
    path = write_robot(folder, text)
    if "modal = " not in text:
        return parflex.load(path), FlexibleEnergyModel(read_robot(path))
    flat = "planar" in text
    arm = invented(ARM, 5, seed=2, free=False, mass=5.0, held="root", planar=flat)
    arm = replace(arm, stiffnesses=1e-2 * arm.stiffnesses)
    arm.write(folder / "arm.npz")
    return parflex.load(path), lagrange(str(path), {"arm": arm}, [1.0, -9.81, 0] if flat else GRAVITY)


@cache
def in_pieces(case: str) -> tuple[Robot, list[dict]]:
    """A robot of `CUT` or `BEHIND` and random states."""
    robot, oracle = pair_in_pieces(case)
    rng, size = np.random.default_rng(4), 0.1 if case in BEHIND else 0.05
    return robot, [bent_lagrange_state(robot, oracle, rng, size) for _ in range(STATES)]
