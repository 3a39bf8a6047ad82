"""Orthoglide, Hexaglide and 4-RRR: geometry and velocity factors of their papers, dynamics by two other engines."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from conftest import CATALOGUE
from support.comparison import chosen, largest, order_of, positions, written
from support.oracles import closing, known_machines
from support.oracles.energy import EnergyModel
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.states import State, random_motion
from support.traced import long
from support.variants import read_table, toml_text

import parflex
from parflex import UnreachableError
from parflex.models.limits import limit_warnings

# both sides solve systems of condition up to 1e2 in double precision (1e-16): 1e-13 is left, 1e-10 is asked
TOLERANCE = 1e-10
RANGES = {  # about which poses are drawn, and how far
    "4rrr": ({"x": 0.0, "y": 0.0, "theta": 0.0}, (0.07, 0.07, 0.5)),
    "hexaglide": (
        {"x": 0.0, "y": 0.0, "z": -0.44, "rx": 0.0, "ry": 0.0, "rz": 0.0},
        (0.3, 0.06, 0.05, 0.25, 0.25, 0.25),
    ),
    "orthoglide": ({"x": -0.027, "y": -0.027, "z": -0.027}, (0.1, 0.1, 0.1)),
}
COUNTS = {  # operators of the programs; `4rrr` with its fourth motor free
    "4rrr": {"inverse": 505, "direct": 827, "mass-matrix": 330},
    "hexaglide": {"inverse": 1959, "direct": 3152, "mass-matrix": 2350},
    "orthoglide": {"inverse": 2240, "direct": 2865, "mass-matrix": 1588},
}


def drawn(robot: parflex.Robot, kind: str, count: int, seed: int = 1) -> list[State]:
    rng, (middle, spread) = np.random.default_rng(seed), RANGES[kind]
    result = []
    for _ in range(count):
        steps = rng.uniform(-1, 1, len(middle)) * spread
        pose = {word: value + step for (word, value), step in zip(middle.items(), steps, strict=True)}
        configuration = parflex.configure(robot, pose)
        result.append(State(configuration, *random_motion(configuration, rng)))
    return result


@cache
def machine(name: str) -> parflex.Robot:
    return parflex.load(name)


# -- geometry ---------------------------------------------------------------------------------------------------------


def test_the_slides_of_the_orthoglide_are_those_of_its_equations():
    robot = machine("orthoglide")
    length = known_machines.orthoglide_design(0.2, 0.5, 2.0)[0]
    for state in drawn(robot, "orthoglide", 6):
        p, R = parflex.frames(robot, state.configuration)["platform"]
        slides = [positions(state.configuration)[f"{axis}.slide"] for axis in "xyz"]
        wanted = known_machines.orthoglide_slides(p, length) - length  # zero at the isotropic point
        assert largest(slides - wanted) < 1e-12  # Newton ends at rounding
        assert largest(R - np.eye(3)) < 1e-12


def test_the_design_of_the_orthoglide_follows_from_the_conditions_of_its_paper(figure):
    length, near, far = known_machines.orthoglide_design(0.2, 0.5, 2.0)
    # [Chablat2003]: factors from 1/2 to 2 in a cube of 200 mm; strokes are those that the cube asks for
    assert [round(1e3 * value, 2) for value in (length, near, far)] == [310.58, 73.21, -126.79]
    robot = machine("orthoglide")
    link = next(link for link in robot.tree.links if link.name == "x.slide")
    assert link.limits == pytest.approx((-far - length, near), abs=1e-15)
    assert round(1e3 * (link.limits[1] - link.limits[0])) == 257
    for name, place in (("near", near), ("far", far)):
        assert parflex.frames(robot, name)["platform"][0] == pytest.approx([place] * 3, abs=1e-12)


def test_velocity_factors_of_the_orthoglide_lie_between_a_half_and_two_in_its_cube(figure):
    robot = machine("orthoglide")
    length, near, far = known_machines.orthoglide_design(0.2, 0.5, 2.0)
    corners = {name: np.linalg.svd(parflex.jacobian(robot, name).matrix[:3])[1] for name in ("home", "near", "far")}
    assert corners["home"] == pytest.approx([1, 1, 1], abs=1e-12)
    assert corners["near"] == pytest.approx([2, 0.8, 0.8], abs=1e-12)
    assert corners["far"] == pytest.approx([2, 2, 0.5], abs=1e-12)
    grid = np.linspace(far, near, 5)
    factors = []
    for p in np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3):
        inverse = known_machines.orthoglide_inverse_jacobian(p, length)
        if p[0] >= p[1] >= p[2]:  # the rest of the cube by symmetry
            ours = parflex.jacobian(robot, dict(zip("xyz", map(float, p), strict=True))).matrix[:3]
            assert largest(ours @ inverse - np.eye(3)) < 1e-11  # condition below 4
        factors += list(1 / np.linalg.svd(inverse, compute_uv=False))
    figure("orthoglide: smallest velocity factor in the cube of 200 mm, published 1/2", min(factors))
    figure("orthoglide: largest velocity factor in the cube of 200 mm, published 2", max(factors))
    assert min(factors) > 0.5 - 1e-12 and max(factors) < 2 + 1e-12


@pytest.mark.verify
@pytest.mark.parametrize("name", ["orthoglide", "3-prrr"])
def test_a_platform_that_cannot_turn_is_not_asked_to(name):
    with pytest.raises(UnreachableError, match="'platform' cannot turn: the loops keep its orientation; leave the rot"):
        parflex.configure(parflex.load(name), {"rx": 0.1})


def test_the_sliders_of_the_hexaglide_are_those_of_its_equations():
    robot = machine("hexaglide")
    legs = read_table(CATALOGUE / "hexaglide.toml")["legs"]
    balls = np.stack([legs["ball_x"], legs["ball_y"], np.zeros(6)], axis=1)
    for state in drawn(robot, "hexaglide", 6):
        p, R = parflex.frames(robot, state.configuration)["platform"]
        slides = [parflex.frames(robot, state.configuration)[f"leg{k}.slide"][0][0] for k in range(1, 7)]
        wanted = known_machines.rail_slides(p, R, balls, np.array(legs["rail"]), np.array(legs["side"]), 0.60)
        assert largest(slides - wanted) < 1e-12


def test_the_hexaglide_is_the_same_all_along_its_rails():
    robot = machine("hexaglide")
    here, ahead = (parflex.inverse_dynamics(robot, pose, {"y": 0.3}, {"z": 2.0}).efforts for pose in ("home", "ahead"))
    assert list(here.values()) == pytest.approx(list(ahead.values()), rel=1e-10, abs=1e-10)


def test_the_angles_of_the_4rrr_are_those_of_its_equations():
    robot = machine("4rrr")
    corners = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    for state in drawn(robot, "4rrr", 6):
        p, R = parflex.frames(robot, state.configuration)["platform"]
        ends = p[:2] + 0.05 * corners @ R[:2, :2].T
        wanted = known_machines.two_bar_angles(0.25 * corners, ends, 0.2, 0.2, np.ones(4))
        q = positions(state.configuration)
        found = [[q[f"leg{k}.{joint}"] for k in range(1, 5)] for joint in (1, 2)]
        assert largest((np.array(found) - wanted + np.pi) % (2 * np.pi) - np.pi) < 1e-12


WORKSPACES = {  # as the files say; condition numbers of the platform with locked motors there
    "4rrr": ({"x": (-0.06, 0.0, 0.06), "y": (-0.06, 0.0, 0.06), "theta": (-0.349, 0.349)}, 4.0),
    "hexaglide": (
        {"x": (-0.1, 0.1), "y": (-0.05, 0.05), "z": (-0.45, -0.36)}
        | dict.fromkeys(("rx", "ry", "rz"), (-0.1745, 0.1745)),
        30.0,
    ),
}


@pytest.mark.parametrize("name", WORKSPACES)
def test_machines_reach_the_corners_of_their_workspaces_within_limits(name, figure):
    robot, (spans, limit) = machine(name), WORKSPACES[name]
    worst = 0.0
    for corner in itertools.product(*spans.values()):
        configuration = parflex.configure(robot, dict(zip(spans, corner, strict=True)))
        assert limit_warnings(robot, configuration.q) == []
        worst = max(worst, configuration.condition.platform)
    figure(f"{name}: largest condition number of the platform in its workspace", worst, limit)
    assert worst < limit


# -- dynamics ---------------------------------------------------------------------------------------------------------


def errors(robot: parflex.Robot, path, kind: str, count: int) -> dict[str, float]:
    """Largest relative errors against Lagrange's equations and Pinocchio at random states."""
    data = read_robot(path)
    lagrange, pinocchio = EnergyModel(data), PinocchioTree(data)
    worst = dict.fromkeys(("motion", "inverse", "balance", "direct", "energy"), 0.0)
    rng = np.random.default_rng(7)

    def note(word: str, found, wanted) -> None:
        worst[word] = max(worst[word], largest(np.asarray(found) - wanted) / largest(np.asarray(wanted)))

    order, names = order_of(robot, lagrange), robot.actuated_names
    back, scale = np.argsort(order), robot.tree.rate_units
    for state in drawn(robot, kind, count, 3):
        here, q = state.configuration, positions(state.configuration)
        load = rng.uniform(-50, 50, 6) * ([1, 1, 0, 0, 0, 1] if robot.tree.planar else 1)
        wrench = {"platform": load}
        result = parflex.inverse_dynamics(robot, here, state.velocity, state.acceleration, wrench=wrench)
        ours = np.array(list(result.efforts.values()))
        given = chosen(here, result.rates), chosen(here, result.accelerations)
        for oracle in (lagrange, pinocchio):
            qd, qdd = oracle.motion(q, *given)
            note("motion", result.rates / scale, qd[order] / scale)
            note("motion", result.accelerations / scale, qdd[order] / scale)
        mass, bias = lagrange.mass_matrix_and_bias(q, qd)
        pulled = lagrange.frame_jacobian(q, "platform").T @ load
        jacobian, drift = lagrange.closure_jacobian(q, qd)
        efforts, balance, right = closing.least_efforts(
            jacobian, mass @ qdd + bias - pulled, lagrange.coordinates, names
        )
        note("balance", balance @ ours, right)
        note("inverse", ours, efforts)
        if len(names) == balance.shape[0]:
            found = pinocchio.inverse(q, *given, names, wrenches=wrench)
            note("inverse", ours, [found[name] for name in names])
        push = rng.uniform(-1, 1, len(names)) * largest(ours)
        force = pulled - bias
        force[[lagrange.coordinates.index(name) for name in names]] += push
        wanted = closing.accelerations(mass, force, jacobian, drift)[order]
        direct = parflex.forward_dynamics(
            robot, here, state.velocity, dict(zip(names, map(float, push), strict=True)), wrench=wrench
        )
        note("direct", direct.accelerations / scale, wanted / scale)
        note("energy", list(parflex.energies(here, result.rates)), lagrange.energy(q, result.rates[back]))
    return worst


@pytest.mark.few
@pytest.mark.parametrize("name", RANGES)
def test_models_equal_those_of_lagrange_and_pinocchio(name, figure):
    worst = errors(machine(name), CATALOGUE / f"{name}.toml", name, 8)
    for word, value in worst.items():
        figure(f"{name}: {word} against Lagrange and Pinocchio, largest relative error", value, TOLERANCE)
    assert max(worst.values()) < TOLERANCE


def inclined_rails(table: dict) -> None:
    table["legs"]["frame"][0]["place"]["rotation"] = [0, "pi/2 - 0.1*side", 0]


def heavy_tool(table: dict) -> None:
    table["constants"]["spindle"] = 6.0
    table["gravity"] = [3.0, -4.0, -8.0]


def uneven_bars(table: dict) -> None:
    table["legs"]["length"] = [0.2, 0.21, 0.19, 0.2]
    table["legs"]["frame"][1]["mdh"]["d"] = "length"
    table["legs"]["point"][0]["position"][0] = 0.21
    table["gravity"] = [0, -9.81, 0]


CHANGES = {"hexaglide": inclined_rails, "orthoglide": heavy_tool, "4rrr": uneven_bars}


@pytest.mark.parametrize("name", CHANGES)
def test_machines_that_a_user_changes_equal_lagrange_and_pinocchio_too(name, tmp_path):
    table = read_table(CATALOGUE / f"{name}.toml")
    CHANGES[name](table)
    path = written(toml_text(table), tmp_path)
    actuation = "three-motors" if name == "4rrr" else None
    worst = errors(parflex.load(path, actuation=actuation), path, name, 3)
    assert max(worst.values()) < TOLERANCE, worst


def test_the_spare_motor_of_the_4rrr_stretches_the_platform_without_moving_it():
    robot = machine("4rrr")
    inner = np.linalg.svd(parflex.configure(robot).J_a.T)[2][-1]  # efforts that do no work
    assert inner * np.sign(inner[0]) == pytest.approx([0.5, -0.5, 0.5, -0.5], abs=1e-12)  # by symmetry
    push = dict(zip(robot.actuated_names, map(float, 10 * inner), strict=True))
    assert largest(parflex.forward_dynamics(robot, effort=push).accelerations) < 1e-10  # of 10 N m on 0.001 kg m2


# -- programs ---------------------------------------------------------------------------------------------------------


def driven(name: str) -> parflex.Robot:
    return parflex.load(name, actuation="three-motors") if name == "4rrr" else machine(name)


@pytest.mark.few
@pytest.mark.parametrize("name", RANGES)
def test_the_operators_of_known_machines_are_pinned(name, figure):
    found = {model: parflex.model(driven(name), model, include=()).counts["total"] for model in COUNTS[name]}
    for model, total in found.items():
        figure(f"{name} {model}: operators", total, COUNTS[name][model])
    assert found == COUNTS[name]


@pytest.mark.parametrize("name", ["4rrr", *(pytest.param(name, marks=long) for name in ("hexaglide", "orthoglide"))])
def test_compiled_programs_of_known_machines_give_what_names_give(name):
    robot = driven(name)
    for state in drawn(robot, name, 2):
        wanted = parflex.inverse_dynamics(robot, state.configuration, state.velocity, state.acceleration)
        efforts = np.array(list(wanted.efforts.values()))
        motion = state.configuration.q, wanted.rates, wanted.accelerations
        assert largest(parflex.inverse_dynamics(robot, *motion) - efforts) < 1e-11 * largest(efforts)
