"""Maps of robots with motors behind soft gears with play: motors follow the pose, gears rest, flanks are loaded."""

from functools import partial

import numpy as np
import pytest
from support.posing import OK, pose_solver
from support.robots import load_robot
from support.traced import VERIFY

import parflex

PROXIMAL, DISTAL, ARM, SOFT = 0.5, 0.4, 0.1732, 4000.0
BASES = np.array([-0.15 - 0.84j, 0.69 - 0.17j, -0.66 + 0.21j])
PHI, ELBOW = np.pi * np.array([1 / 6, 5 / 6, 9 / 6]), np.array([1, -1, 1])
STEP = 1e-5  # m, rad: central differences of the angles, good to 1e-10


def angles(x, y, theta):
    """First and second angles of the legs in the world, by the law of cosines."""
    way = x + 1j * y - ARM * np.exp(1j * (theta + PHI)) - BASES
    d = np.abs(way)
    first = np.angle(way) - ELBOW * np.arccos((PROXIMAL**2 + d**2 - DISTAL**2) / (2 * PROXIMAL * d))
    elbow = BASES + PROXIMAL * np.exp(1j * first)
    return first, np.angle(way + BASES - elbow)


def moving(x, y, theta):
    """Mass and, per unit of stiffness at the first joints, stiffness over the coordinates of the platform."""
    here, steps = np.array([x, y, theta]), STEP * np.eye(3)
    rates = [(np.array(angles(*(here + s))) - np.array(angles(*(here - s)))) / (2 * STEP) for s in steps]
    first, second = np.array([r[0] for r in rates]).T, np.array([r[1] for r in rates]).T  # legs x coordinates
    a, b = angles(x, y, theta)
    M, K = np.diag([1.3576 + 0.5, 1.3576 + 0.5, 0.0085 + 8.3333e-4]), np.zeros((3, 3))
    for k in range(3):
        K += np.outer(first[k], first[k])
        elbow = PROXIMAL * np.outer([-np.sin(a[k]), np.cos(a[k])], first[k])
        middle = elbow + DISTAL / 2 * np.outer([-np.sin(b[k]), np.cos(b[k])], second[k])
        M += (0.0088 + 0.4239 * (PROXIMAL / 2) ** 2 + 3.687e-6) * np.outer(first[k], first[k])
        M += 0.0656 * elbow.T @ elbow + 0.3391 * middle.T @ middle + 0.0045 * np.outer(second[k], second[k])
    return M, K


def frequencies(x, y, soft=SOFT):
    """Of three links and a platform on springs at the first joints, from energies alone (Hz)."""
    M, K = moving(x, y, 0.0)
    return np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(M, soft * K)).real)) / (2 * np.pi)


@pytest.fixture(scope="module")
def geared():
    return load_robot("geared-3rrr")


def test_motors_follow_and_gears_rest(geared):
    """They stood as at home, and maps were about equilibria that gears wound up against each other."""
    values = np.random.default_rng(0).uniform(-0.05, 0.05, (20, 2))
    found = pose_solver(geared, ["x", "y"], [0.0, 0.0])(values)
    assert (found.status == OK).all()
    for row, q in zip(values[:3], found.q, strict=False):
        assert np.abs(q - parflex.configure(geared, {"x": row[0], "y": row[1]}).q).max() < 1e-9
    for leg in (1, 2, 3):
        motor, joint = (geared.coordinates.index(f"leg{leg}.{word}") for word in ("motor", "1"))
        assert np.abs(found.q[:, joint] - 0.02 * found.q[:, motor]).max() < 1e-12


def test_frequencies_of_soft_gears_with_play_are_those_of_springs(geared):
    values = np.random.default_rng(1).uniform(-0.05, 0.05, (220, 2))
    found = parflex.many_frequencies(geared, ["x", "y"], values, modes=3)
    assert found.method == "steps" and found.fallbacks == 0
    for row, own in zip(values[::20], found.frequencies[::20], strict=True):
        assert own == pytest.approx(frequencies(*row), rel=1e-7)  # of the differences of angles
    single = parflex.natural_frequencies(geared, {"x": values[0, 0], "y": values[0, 1]}, 3).frequencies
    assert found.frequencies[0] == pytest.approx(single, rel=1e-9)


def test_designs_of_gears_are_solved_together(geared):
    """Stiffness and play of couplings move nothing at home, so that coordinates which are not named stay."""
    rng = np.random.default_rng(2)
    values, soft, slop = rng.uniform(-0.05, 0.05, (12, 2)), rng.uniform(2e3, 6e3, 12), rng.uniform(0, 0.004, 12)
    designs = {"constants.soft": soft, "constants.slop": slop}
    found = parflex.many_frequencies(geared, ["x", "y"], values, modes=3, designs=designs)
    assert found.fallbacks == 0 and (found.status == 0).all()
    for row, own, k in zip(values, found.frequencies, soft, strict=True):
        assert own == pytest.approx(frequencies(*row, k), rel=1e-7)
    one = load_robot("geared-3rrr", settings={key: float(column[3]) for key, column in designs.items()})
    single = parflex.natural_frequencies(one, {"x": values[3, 0], "y": values[3, 1]}, 3).frequencies
    assert found.frequencies[3] == pytest.approx(single, rel=1e-9)


# -- about equilibria ------------------------------------------------------------------------------------------


def energy(place, motors, flanks, soft):
    """Of gravity and of springs at the first joints, each beyond the flank that is loaded."""
    first, second = angles(*place)
    elbow = BASES + PROXIMAL * np.exp(1j * first)
    middle = elbow + DISTAL / 2 * np.exp(1j * second)
    height = (0.4239 * (BASES + elbow) / 2 + 0.0656 * elbow + 0.3391 * middle).imag.sum() + 1.8576 * place[1]
    stretch = (first - motors + np.pi) % (2 * np.pi) - np.pi
    return 9.81 * height + soft / 2 * ((stretch - flanks) ** 2).sum()


def slopes(f, at, h=2e-4):
    """By differences of fourth order."""
    steps = h * np.eye(3)
    return np.array([(8 * (f(at + s) - f(at - s)) - (f(at + 2 * s) - f(at - 2 * s))) / (12 * h) for s in steps])


def at_rest(x, y, soft, slop):
    """Frequencies about the equilibrium under gravity, by energies alone."""
    place, motors = np.array([x, y, 0.0]), angles(x, y, 0.0)[0]
    flanks = np.zeros(3)
    for sides in range(2):
        stored = partial(energy, motors=motors, flanks=flanks, soft=soft)
        for _ in range(6):
            K = slopes(partial(slopes, stored), place)
            place = place - np.linalg.solve(K, slopes(stored, place))
        stretch = (angles(*place)[0] - motors + np.pi) % (2 * np.pi) - np.pi
        if not sides:
            flanks = np.sign(stretch) * slop / 2
    assert (np.sign(flanks) * stretch > slop / 2).all()
    return np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(moving(*place)[0], K)).real)) / (2 * np.pi)


def test_equilibria_on_loaded_flanks_are_those_of_energies(geared):
    """Rows together, each on the flanks that its weight presses; designs have their own play."""
    rng = np.random.default_rng(3)
    values, soft, slop = rng.uniform(-0.05, 0.05, (8, 2)), rng.uniform(2e3, 6e3, 8), rng.uniform(1e-3, 4e-3, 8)
    designs = {"constants.soft": soft, "constants.slop": slop}
    found = parflex.many_frequencies(geared, ["x", "y"], values, modes=3, about="equilibrium", designs=designs)
    assert found.fallbacks == 0 and (found.status == 0).all()
    for k in range(3 if VERIFY else 1):
        own = at_rest(*values[k], soft[k], slop[k])
        assert found.frequencies[k] == pytest.approx(own, rel=1e-6)  # of the differences
    plain = parflex.many_frequencies(geared, ["x", "y"], values, modes=3, about="equilibrium")
    assert plain.fallbacks == 0
    single = parflex.natural_frequencies(geared, {"x": values[5, 0], "y": values[5, 1]}, 3, about="equilibrium")
    assert plain.frequencies[5] == pytest.approx(single.frequencies, rel=1e-9)
    halves = [
        parflex.many_frequencies(geared, ["x", "y"], values, modes=3, about="equilibrium", threads=n).frequencies
        for n in (1, 2)
    ]
    assert np.array_equal(*halves)


def test_gears_that_nothing_presses_are_refused_as_single_poses_are(geared):
    """Without weight they stay inside their play, which holds nothing."""
    calm = load_robot("geared-3rrr", settings={"gravity.1": 0.0})
    for ask in (
        lambda: parflex.many_frequencies(calm, ["x", "y"], np.zeros((6, 2)), modes=1, about="equilibrium"),
        lambda: parflex.natural_frequencies(calm, None, 1, about="equilibrium"),
    ):
        with pytest.raises(parflex.InputError, match="motions have no frequency"):
            ask()
