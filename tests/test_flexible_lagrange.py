"""Flexible robots against Lagrange's equations, differentiated from energies that share no code with the package."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import CATALOGUE
from support.comparison import largest, order_of, positions
from support.flexible_states import batch, error_of, reduced
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.reader import read_robot
from support.traced import VERIFY, long

import parflex
from parflex import Configuration, Robot, natural_frequencies
from parflex.models.dynamics.forces import tree_forces
from parflex.models.dynamics.reduced import reduced_equations
from parflex.models.elastic.linear_model import tree_stiffness
from parflex.recursion import mass_matrix

MEAN = "dualemps, mean strain"
ROBOTS = ["dualemps", "navaro", "gough-stewart-beams", MEAN, "rolled-beams"]  # the last: chains, shear, rolled sections
STATES = 20 if VERIFY else 3
GRAVITY = [1.0, -2.0, -9.81]  # along no axis of any of the robots
REAL, SOFT = 1.0, 1e-7  # of soft beams, elastic forces do not hide the others however much they bend
SIZES = {REAL: 1e-4, SOFT: 0.1}  # m and rad at the ends of beams: what real ones bear, and far more
# accelerations under given efforts come out of systems whose condition is up to 1e6 (a blade's tip beside a slide of
# 95 kg): rounding leaves 1e-11
TOLERANCE = 1e-10


@cache
def pair(name: str, stiffness: float) -> tuple[Robot, FlexibleEnergyModel]:
    """A robot and its Lagrangian, its materials made that much stiffer."""
    mean, name = name == MEAN, name.partition(",")[0]
    own = Path(__file__).parent / "robots" / f"{name}.toml"
    robot, file = (str(own), own) if own.exists() else (name, CATALOGUE / f"{name}.toml")
    materials = parflex.load(robot).description.materials
    settings: dict = {"gravity": GRAVITY} | ({"axial": "mean"} if mean else {})
    for key, material in materials.items():
        settings[f"materials.{key}.elastic_modulus"] = stiffness * material.elastic_modulus
        if material.shear_modulus is not None:
            settings[f"materials.{key}.shear_modulus"] = stiffness * material.shear_modulus
    data = read_robot(file)
    bars = {frame.name: frame.bar for frame in data.frames if frame.bar is not None}
    stiffer = {
        key: replace(bar, E=stiffness * bar.E, G=stiffness * bar.G, mean=mean or bar.mean) for key, bar in bars.items()
    }
    frames = [replace(frame, bar=stiffer.get(frame.name)) for frame in data.frames]
    return parflex.load(robot, settings=settings), FlexibleEnergyModel(
        replace(data, frames=frames, gravity=np.array(GRAVITY))
    )


@cache
def states(name: str, stiffness: float, count: int = STATES) -> list[dict]:
    """Bent, closed positions in motion, with efforts, and all that follows by Lagrange's equations."""
    robot, oracle = pair(name, stiffness)
    rng = np.random.default_rng(11)
    return [_state(robot, oracle, rng, SIZES[stiffness]) for _ in range(count)]


def _state(robot: Robot, oracle: FlexibleEnergyModel, rng: np.random.Generator, size: float) -> dict:
    tree = robot.tree
    step = rng.uniform(-1, 1, tree.n) * np.where(np.isin(np.arange(tree.n), tree.elastic), size, 0.1)
    q, error = robot.assembler.newton(tree.moved(robot.home, step), robot.free, list(robot.closures.loops))
    assert error < 1e-12
    at = Configuration(robot, q)
    bent = largest(q[np.isin(tree.position_names, [tree.rate_names[k] for k in tree.elastic])])
    assert bent > size / 3
    order, named = order_of(robot, oracle), positions(at)
    chosen = dict(zip(at.independent_names, rng.uniform(-3, 3, len(at.independent_names)), strict=True))
    qd, _ = oracle.motion(named, chosen, dict.fromkeys(chosen, 0.0))
    efforts = dict(zip(robot.actuated_names, rng.uniform(-100, 100, len(robot.actuated)), strict=True))
    M, c = oracle.mass_matrix_and_bias(named, qd)
    _, still = oracle.mass_matrix_and_bias(named, 0 * qd)
    qdd = oracle.accelerations(named, qd, efforts)
    inertia = np.abs(M[order][list(robot.actuated)]) @ np.abs(qdd)
    return {
        "at": at,
        "q": q,
        "rates": qd[order],
        "M": M[np.ix_(order, order)],
        "at rest": still[order],
        "moving": (c - still)[order],
        "effort": np.array(list(efforts.values())),
        "accelerations": qdd[order],
        "sizes": {"effort": float(max(inertia.max(), 100)), "qdd": largest(qdd)},
    }


def motors(state: dict, values: str) -> dict[str, float]:
    of = state["at"].robot
    return {name: float(state[values][k]) for name, k in zip(of.actuated_names, of.actuated, strict=True)}


@pytest.mark.few
@pytest.mark.parametrize("stiffness", SIZES)
@pytest.mark.parametrize("name", ROBOTS)
def test_mass_matrix_and_all_forces_are_those_of_the_energies(name, stiffness, figure):
    robot, _ = pair(name, stiffness)
    errors = {"mass matrix": 0.0, "at rest": 0.0, "moving": 0.0}
    for state in states(name, stiffness):
        at, still = state["at"], np.zeros(robot.tree.n)
        rest = tree_forces(at, still, still)
        moving = tree_forces(at, state["rates"], still) - rest
        for what, found, wanted in (
            ("mass matrix", mass_matrix(robot.tree, at.at), state["M"]),
            ("at rest", rest, state["at rest"]),
            ("moving", moving, state["moving"]),
        ):
            errors[what] = max(errors[what], largest(found - wanted) / largest(wanted))
    for what, error in errors.items():
        figure(f"{name}, stiffness times {stiffness:g}: {what} against Lagrange", error)
    assert errors["mass matrix"] < 1e-12 and errors["at rest"] < 1e-12  # sums of products
    # of real beams the elastic forces, up to 1e7 N, are subtracted to see those of motion, up to 100 N
    assert errors["moving"] < (1e-8 if stiffness == REAL else 1e-12)


@pytest.mark.parametrize("stiffness", SIZES)
@pytest.mark.parametrize("name", ROBOTS)
def test_closed_robots_accelerate_as_by_lagrange(name, stiffness, figure):
    _, oracle = pair(name, stiffness)
    worst = loops = 0.0
    for state in states(name, stiffness):
        found = reduced(state["at"], state["rates"], state["effort"])
        worst = max(worst, largest(found - state["accelerations"]) / state["sizes"]["qdd"])
        loops = max(loops, largest(oracle.closure_residual(positions(state["at"]))))
    figure(f"{name}, stiffness times {stiffness:g}: accelerations against Lagrange", worst, TOLERANCE)
    assert worst < TOLERANCE
    assert loops < 1e-12  # both say that the loops are closed


@pytest.mark.few
@pytest.mark.parametrize("stiffness", SIZES)
@pytest.mark.parametrize("name", ROBOTS)
def test_inverse_and_direct_model_are_those_of_lagrange_when_motors_move(name, stiffness, figure):
    robot, oracle = pair(name, stiffness)
    order, worst = order_of(robot, oracle), {"direct": 0.0, "inverse": 0.0}
    for state in states(name, stiffness):
        at, q = state["at"], positions(state["at"])
        rates, wanted = motors(state, "rates"), motors(state, "accelerations")
        efforts = dict(zip(robot.actuated_names, map(float, state["effort"]), strict=True))
        direct = parflex.forward_dynamics(robot, at, rates, efforts)
        qd = np.empty(robot.tree.n)
        qd[order] = direct.rates
        expected = oracle.accelerations(q, qd, efforts)[order]
        worst["direct"] = max(worst["direct"], largest(direct.accelerations - expected) / largest(expected))
        inverse = parflex.inverse_dynamics(robot, at, rates, wanted)
        expected, needed = oracle.driven(q, qd, wanted)
        missed = np.array([inverse.efforts[word] - needed[word] for word in needed])
        miss = largest(inverse.accelerations - expected[order]) / largest(expected)
        worst["inverse"] = max(
            worst["inverse"], miss, largest(missed) / max(state["sizes"]["effort"], *map(abs, needed.values()))
        )
    for what, error in worst.items():
        figure(f"{name}, stiffness times {stiffness:g}: {what} model against Lagrange", error, TOLERANCE)
    assert max(worst.values()) < TOLERANCE


@pytest.mark.few
@pytest.mark.parametrize("model", ["direct", "inverse"])
@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if "dualemps" in name else long) for name in ROBOTS])
def test_compiled_programs_give_the_numbers_of_lagrange(name, model, figure):
    for stiffness in SIZES:
        robot, _ = pair(name, stiffness)
        program = parflex.model(robot, model, include=("motor-inertia", "friction"))
        some = states(name, stiffness)
        given, wanted = batch(some, program, robot)
        error = error_of(program(**given), wanted, some)
        figure(f"{name} {model}, stiffness times {stiffness:g}: program against Lagrange", error, TOLERANCE)
        assert error < TOLERANCE


@pytest.mark.parametrize(
    ("name", "poses"), [("dualemps", [None]), ("navaro", ["pose-2", "pose-4"]), ("gough-stewart-beams", [None])]
)
def test_linearised_the_energies_have_the_natural_frequencies(name, poses, figure):
    robot, oracle = pair(name, REAL)
    for pose in poses:
        for lock in ("actuators", "none"):
            modes = natural_frequencies(robot, pose, lock=lock)
            held = robot.actuated_names if lock == "actuators" else []
            expected = oracle.frequencies(positions(modes.model.start), held)[len(modes.free_motions) :]
            error = largest(modes.frequencies / expected[: len(modes.frequencies)] - 1)
            figure(f"{name} {pose or 'home'}, locked {lock}: frequencies against Lagrange", error, 1e-9)
            assert error < 1e-9  # rounding of the highest of the squares, 1e12 times the lowest, leaves 1e-10


@pytest.mark.parametrize("name", ["dualemps", pytest.param("gough-stewart-beams", marks=long)])
def test_stiffer_beams_come_nearer_to_the_rigid_robot_as_one_over_their_stiffness(name, figure):
    rng = np.random.default_rng(5)
    given = [dict(zip(pair(name, REAL)[0].actuated_names, rng.uniform(-1, 1, 6), strict=False)) for _ in range(2)]
    efforts, passive = zip(*(_steadily_bent(name, 10.0**k, *given) for k in range(4)), strict=True)
    rigid_efforts, rigid_passive = _rigid(name, *given)
    for what, found, rigid in (("efforts", efforts, rigid_efforts), ("accelerations", passive, rigid_passive)):
        errors = np.array([largest(one - rigid) / largest(rigid) for one in found])
        figure(f"{name}: {what} nearer to the rigid robot per decade", str(np.round(errors[:-1] / errors[1:], 4)))
        assert errors[0] > 1e-7  # beams matter
        # the next term of the series is a hundredth at the real stiffness, and falls as well
        assert errors[:-1] / errors[1:] == pytest.approx([10] * 3, rel=0.05)


def _steadily_bent(name: str, stiffness: float, rates: dict, accelerations: dict) -> tuple[np.ndarray, np.ndarray]:
    """Efforts, and accelerations of joints, where beams are bent so that they do not vibrate: e_dot = e_ddot = 0."""
    robot = _elastic_independent(pair(name, stiffness)[0])
    tree = robot.tree
    elastic = [tree.rate_names[k] for k in tree.elastic]
    places = [tree.position_names.index(word) for word in elastic]
    q = robot.home
    for _ in range(7):  # each divides the rest by twenty or more
        q, _ = robot.assembler.newton(q, np.setdiff1d(robot.free, tree.elastic), list(robot.closures.loops))
        at = Configuration(robot, q)
        result = parflex.inverse_dynamics(robot, at, rates, accelerations)
        M, _, _ = reduced_equations(at, result.rates)
        K = at.J.T @ tree_stiffness(at)[0] @ at.J
        own = [at.independent_names.index(word) for word in elastic]
        block = np.ix_(own, own)
        q = q.copy()
        q[places] += np.linalg.solve(K[block], M[block] @ [result.elastic_accelerations[word] for word in elastic])
    vibration = max(map(abs, result.elastic_accelerations.values()))
    assert vibration < 1e-6  # m/s2, where the motors accelerate by 1
    return np.array(list(result.efforts.values())), np.delete(result.accelerations, tree.elastic)


def _elastic_independent(robot: Robot) -> Robot:
    """The robot with joints and platform as its dependent coordinates."""
    chosen = replace(robot)
    held = np.isin(np.arange(robot.tree.n), [*robot.tree.elastic, *robot.actuated])
    chosen.__dict__["preference"] = np.where(held, 1e-4, 1.0)
    return chosen


def _rigid(name: str, rates: dict, accelerations: dict) -> tuple[np.ndarray, np.ndarray]:
    """The same of the Lagrangian with its elastic coordinates held as if by motors."""
    robot, oracle = pair(name, REAL)
    q, elastic = positions(Configuration(robot, robot.home)), [robot.tree.rate_names[k] for k in robot.tree.elastic]
    none = dict.fromkeys(elastic, 0.0)
    qd, _ = oracle.motion(q, rates | none, accelerations | none)
    qdd, efforts = oracle.driven(q, qd, accelerations | none)
    ours = np.delete(qdd[order_of(robot, oracle)], robot.tree.elastic)
    return np.array([efforts[word] for word in robot.actuated_names]), ours


@pytest.mark.parametrize("name", ROBOTS)
def test_another_choice_of_dependent_coordinates_changes_nothing(name, figure):
    robot, _ = pair(name, SOFT)
    rng, worst, partitions = np.random.default_rng(6), 0.0, set()
    for state in states(name, SOFT):
        found = 0
        while found < 2:
            chosen = replace(robot)
            chosen.__dict__["preference"] = 10 ** rng.uniform(-1.5, 1.5, robot.tree.n)
            at = Configuration(chosen, state["q"])
            M, _, _ = reduced_equations(at, state["rates"])
            sizes = np.sqrt(np.diag(M))
            if np.linalg.cond(M / np.outer(sizes, sizes)) > 1e6:
                continue
            found += 1
            partitions.add(tuple(at.reduction.partition.independent))
            accelerations = reduced(at, state["rates"], state["effort"])
            worst = max(worst, largest(accelerations - state["accelerations"]) / state["sizes"]["qdd"])
    figure(f"{name}: {len(partitions)} choices of coordinates against Lagrange", worst, TOLERANCE)
    assert len(partitions) > 1
    assert worst < TOLERANCE  # rounding times the condition of the mass matrix
