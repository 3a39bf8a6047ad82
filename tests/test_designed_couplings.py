"""Designs of what decides where a robot stands at rest: elastic couplings, springs, starts, against fresh robots."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy.optimize import brentq
from support.designed_machines import MACHINES, keys_of
from support.robots import load_robot

import parflex
from parflex import ParflexError
from parflex.designs.design_numbers import number_at
from parflex.maps.batches import Geometry
from parflex.maps.kept_numbers import numbers_of_designs
from parflex.maps.positions import OK, PositionSolver
from parflex.maps.responses.at_one_pose import AtOnePose, Held
from parflex.maps.responses.response_names import read_responses

LONG = [pytest.mark.verify, pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify")]
MASS, REACH, ABOUT, SOFT = 1.2, 0.2, 0.01, 50.0


@pytest.fixture(scope="module")
def geared():
    return load_robot("soft-gear")


@pytest.mark.parametrize("name", ["motor", "arm"])
@pytest.mark.parametrize("about", ["undeformed", "equilibrium"])
def test_an_arm_behind_a_soft_gear_sags_from_where_the_gear_of_its_design_holds_it(geared, name, about):
    """By one line of statics: the joints followed the ratio and the offset of the file, not those of each row."""
    rng, count = np.random.default_rng(0), 8
    ratio, offset, motor = rng.uniform(0.3, 0.8, count), rng.uniform(0, 0.3, count), rng.uniform(-1, 1, count)
    held = ratio * motor + offset
    poses = (motor if name == "motor" else held)[:, None]
    designs = {"coupling.gear.terms.motor": ratio, "coupling.gear.offset": offset}
    asked = ["deflection:rz", "frequency:1"]
    found = parflex.many_responses(geared, [name], poses, asked, designs=designs, about=about)
    assert found.method == "together" and found.fallbacks == 0
    weight, inertia = MASS * 9.81 * REACH, ABOUT + MASS * REACH**2
    for row, at in enumerate(held):
        sag, stiff = -weight * np.cos(at) / SOFT, SOFT
        if about == "equilibrium":
            sag = brentq(lambda x, at: SOFT * x + weight * np.cos(at + x), -1, 1, at, 1e-14)
            stiff = SOFT - weight * np.sin(at + sag)
        assert found["deflection:rz"][row] == pytest.approx(sag, rel=1e-9)
        assert found["frequency:1"][row] == pytest.approx(np.sqrt(stiff / inertia) / (2 * np.pi), rel=1e-9)


@pytest.mark.parametrize("rigid", [False, True])
def test_joints_follow_the_gear_of_their_design_whether_it_is_rigid_or_not(rigid):
    robot = load_robot("soft-gear", settings={"coupling.gear.stiffness": None if rigid else SOFT})
    designs = {"coupling.gear.terms.motor": np.array([0.5, 0.7])}
    solver = PositionSolver(Geometry(robot, numbers_of_designs(robot, designs)), ["motor"], [0.4])
    assert not solver.fast or solver(np.full((2, 1), 0.4)).q[:, :2] == pytest.approx(
        np.array([[0.4, 0.3], [0.4, 0.38]])
    )


def test_a_gear_that_a_pose_winds_up_pushes_in_first_order_too(geared):
    """About the undeformed pose: weight and what is wound up, over the stiffness; the latter was left out."""
    poses = np.array([[0.4, 0.1], [0.4, 0.4], [0.0, 0.3]])
    wound = poses[:, 1] - 0.5 * poses[:, 0] - 0.1
    expected = -wound - MASS * 9.81 * REACH * np.cos(poses[:, 1]) / SOFT
    found = parflex.many_responses(geared, ["motor", "arm"], poses, ["deflection:rz"], about="undeformed")
    assert found["deflection:rz"] == pytest.approx(expected, rel=1e-9)


def test_conditions_of_designs_about_equilibria_have_answers(geared):
    asked, designs = ["singularity", "deflection:rz"], {"frame.arm.inertia.mass": np.linspace(1, 2, 6)}
    found = parflex.many_responses(geared, ["motor"], np.zeros((6, 1)), asked, designs=designs, about="equilibrium")
    assert found["singularity"] == pytest.approx(1.0) and np.isfinite(found["deflection:rz"]).all()


def test_rows_whose_designs_are_all_read_otherwise_are_answered(geared):
    """A place that turns is read otherwise than one that does not: nothing was left to place together."""
    designs = {"point.tip.position.0": 0.4, "gravity.2": 0.0, "point.tip.position.1": [0.1] * 6}
    turned = {"frame.arm.place.rotation.2": np.linspace(0.1, 0.6, 6)}
    file = geared.file
    robot = parflex.load(file, settings={"frame.arm.place": {"rotation": [0, 0, 0]}})
    found = parflex.many_responses(robot, ["motor"], np.zeros((6, 1)), ["deflection:rz"], designs={**designs, **turned})
    expected = -MASS * 9.81 * REACH * np.cos(0.1 + turned["frame.arm.place.rotation.2"]) / SOFT
    assert found.fallbacks == 6 and found["deflection:rz"] == pytest.approx(expected, rel=1e-9)


def test_without_a_word_there_are_six_modes_or_as_many_as_the_robot_has(geared):
    over = [("motor", -0.5, 0.5, 3)]
    assert parflex.frequency_map(geared, over).frequencies.shape == (3, 1)
    assert parflex.many_frequencies(geared, ["motor"], [[0.1]]).frequencies.shape == (1, 1)
    assert parflex.track_modes(geared, [{"motor": 0.0}, {"motor": 0.5}]).frequencies.shape[1] == 1
    with pytest.raises(parflex.InputError, match="3 modes are requested, but the robot has 1"):
        parflex.frequency_map(geared, over, modes=3)


def drawn(rng, kind, folder):
    """A robot, choices of its coordinates, and its home by all names that a pose may have."""
    text, choices = MACHINES[kind](rng)
    file = folder / f"{kind}.toml"
    file.write_text(text)
    robot = parflex.load(file)
    at = {link.name: float(robot.home[link.q.start]) for link in robot.tree.links if link.joint.one_axis}
    x, y, _ = parflex.configure(robot).at.of(robot.tree.places["tip"])[1]
    return robot, choices, at | {"x": x, "y": y}


def numbers_near(rng, robot, keys, count):
    """Values of keys in designs near that of the file."""
    found = {}
    for key in keys:
        value = number_at(robot, key)
        found[key] = value * rng.uniform(0.93, 1.07, count) if value else rng.uniform(-0.02, 0.02, count)
    return found


def redesigned(robot, designs, row):
    return parflex.load(robot.file, settings={key: float(values[row]) for key, values in designs.items()})


@pytest.mark.few
@pytest.mark.parametrize(
    ("kind", "seed", "word"),
    [
        ("arm", 0, "coupling."),
        ("arm", 1, "coupling."),
        ("arm", 2, "coupling."),
        ("five-bar", 0, "coupling."),
        ("five-bar", 1, "coupling."),
        ("five-bar", 4, "frame.ar.start"),
    ],
)
def test_joints_stand_where_the_couplings_of_their_design_put_them(kind, seed, word, tmp_path):
    """Positions of rows by any coordinates, beside those of robots that are loaded with the numbers of the row."""
    rng = np.random.default_rng(seed)
    robot, choices, at = drawn(rng, kind, tmp_path)
    keys = [key for key in keys_of(robot.written.table) if key.startswith(word)]
    designs = numbers_near(rng, robot, keys, 2)
    fast, others = 0, [redesigned(robot, designs, row) for row in range(2)]
    for names in choices:
        near = np.array([at[name] for name in names]) + rng.uniform(-0.03, 0.03, (2, len(names)))
        solver = PositionSolver(Geometry(robot, numbers_of_designs(robot, designs)), names, near[0].tolist())
        fast += solver.fast
        found = solver(near) if solver.fast else None  # others are loaded one by one
        for row, other in enumerate(others if found is not None else []):
            assert found.status[row] == OK
            # loops are closed to 1e-11, and ratios of 0.1 make ten times that of a motor
            assert found.q[row, : robot.nq] == pytest.approx(
                other.assemble(dict(zip(names, near[row], strict=True))), abs=1e-8
            )
    assert fast > 1


WORDS = ["frequency:1", "damping:1", "shape:1", "strain:1", "compliance", "deflection", "mass"]
MORE = ["motion:1", "stiffness", "conditioning", "singularity"]  # pose by pose, as a rule


def compare(rng, kind, folder, chosen):
    """All responses of a drawn machine with drawn coordinates, state and designs by the keys that `chosen` picks."""
    robot, choices, at = drawn(rng, kind, folder)
    names, about = choices[int(rng.integers(len(choices)))], (None, "undeformed", "equilibrium")[int(rng.integers(3))]
    count = int(rng.choice([3, 12]))
    designs = numbers_near(rng, robot, chosen(list(keys_of(robot.written.table))), count)
    words = WORDS + MORE * bool(rng.random() < 0.2)
    if about == "equilibrium":
        words = [*words, f"effort:{robot.motors[0]}"]
    poses = np.array([at[name] for name in names]) + rng.uniform(-0.03, 0.03, (count, len(names)))
    asked, held = read_responses(robot, words), Held("actuators", about, None)
    try:
        found = parflex.many_responses(robot, names, poses, words, designs=designs, about=about)
    except ParflexError:
        found = None
    for row in (0, count // 2, count - 1):
        try:
            other = redesigned(robot, designs, row)
            here = AtOnePose(other, other.assemble(dict(zip(names, poses[row], strict=True))), held, 1)
            own = {one.name: here.answer(one) for one in asked}
        except ParflexError:
            assert found is None or found.status[row] or found.reasons[row]
            continue
        assert found is not None and found.status[row] == 0
        for name, values in own.items():
            size = max(float(np.abs(values).max()), 1e-9)
            mine = found[name][row]
            if name.startswith("motion") and np.sum(mine * values) < 0:
                mine = -mine
            # equilibria are found to 1e-10, and couplings are up to a hundred times as stiff as a spring
            assert mine == pytest.approx(values, abs=1e-6 * size, nan_ok=True), name


def placing(keys):
    """Whether a key says where joints stand at rest."""
    return [key for key in keys if key.startswith(("coupling.", "poses.")) or key.endswith((".start", ".rest"))]


@pytest.mark.filterwarnings("ignore::parflex.ParflexWarning")
@pytest.mark.parametrize(
    ("kind", "seed"),
    [("arm", 0), ("arm", 1), *(pytest.param(k, n, marks=LONG) for n in range(2, 60) for k in MACHINES)],
)
def test_every_response_of_designs_is_that_of_fresh_robots(kind, seed, tmp_path):
    rng = np.random.default_rng([seed, len(kind)])
    compare(rng, kind, tmp_path, lambda keys: [str(key) for key in rng.permutation(placing(keys))[:3]])
    if seed > 1:  # any other key, alone and all at once
        compare(rng, kind, tmp_path, lambda keys: [str(rng.choice(keys))])
        compare(rng, kind, tmp_path, lambda keys: keys if rng.random() < 0.2 else placing(keys))
