"""Rows with their own geometry against robots loaded afresh with the same numbers: state, reason and frequencies."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from support.robots import load_robot, robot_file

import parflex
from parflex import ParflexError, SingularError, UnreachableError
from parflex.designs.design_numbers import number_at
from parflex.maps.batches import COMPILE_FROM, Geometry
from parflex.maps.kept_numbers import numbers_of_designs
from parflex.maps.placing.home_rows import home_rows
from parflex.maps.placing.own_homes import as_the_file, followed
from parflex.maps.positions import PositionSolver


def robot_of(name):
    if name != "five-bar":
        return name, parflex.load(name)
    return robot_file("designed-five-bar"), load_robot("designed-five-bar")


CASES = {  # coordinates, middle of poses, how far they go, keys of the geometry
    "five-bar": (["x", "y"], [0.0, 0.42], [0.15, 0.15], ["base", "near", "far", "other_near", "other_far"]),
    "3rrr-flexible": (["x", "y", "theta"], [0.0, 0.0, 0.0], [0.04, 0.04, 0.2], None),
    "gough-stewart-beams": (["x", "y", "z", "rx", "ry", "rz"], None, [0.05, 0.05, 0.05, 0.1, 0.1, 0.1], None),
}


def check_rows(name, count, seed, spread=0.5, at_once=None):
    """Rows of random designs are what fresh robots answer; gives how many answers of each state there are.

    `at_once` is how often the rows are repeated: many rows are solved by compiled programs.
    """
    source, robot = robot_of(name)
    coordinates, middle, far, keys = CASES[name]
    rng = np.random.default_rng(seed)
    home = robot.description.poses["home"]
    poses = np.array([home[word] for word in coordinates] if middle is None else middle)
    poses = poses + rng.uniform(-1, 1, (count, len(far))) * far
    keys = [f"constants.{key}" for key in keys or robot.description.constants]
    keys = [key for key in keys if number_at(robot, key) != 0]
    designs = {key: number_at(robot, key) * rng.uniform(1 - spread, 1 + spread, count) for key in keys}
    times = at_once or 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        many = parflex.many_frequencies(
            robot,
            coordinates,
            np.tile(poses, (times, 1)),
            modes=2,
            designs={key: np.tile(values, times) for key, values in designs.items()},
        )
        states = np.zeros(4, dtype=int)
        for row in range(count):
            settings = {key: float(values[row]) for key, values in designs.items()}
            state, expected = alone(source, settings, dict(zip(coordinates, poses[row].tolist(), strict=True)))
            states[state] += 1
            for k in range(row, len(many.status), count):
                assert many.status[k] == state, (row, settings, many.reasons[k], expected)
                if state == 0:
                    # matrices by another way; rounding of LAPACK is 1e-16 of the largest eigenvalue, 1e6 times these
                    assert many.frequencies[k] == pytest.approx(expected, rel=1e-8)
                elif state == 3:
                    assert "home" in many.reasons[k] or expected in many.reasons[k]
    return states, many


def alone(source, settings, pose):
    """State of a row that is loaded by itself, with its frequencies or what is said."""
    try:
        robot = parflex.load(source, settings=settings)
        robot.assemble()
    except SingularError as error:
        return 2, error.message
    except ParflexError as error:
        return 3, error.message
    try:
        return 0, parflex.natural_frequencies(robot, pose, modes=2).frequencies
    except UnreachableError as error:
        return 1, error.message
    except ParflexError as error:
        return 2, error.message


@pytest.mark.few
@pytest.mark.parametrize(("name", "count"), [("five-bar", 24), ("3rrr-flexible", 6), ("gough-stewart-beams", 4)])
def test_rows_with_other_lengths_answer_what_a_robot_loaded_so_answers(name, count):
    states, many = check_rows(name, count, seed=3)
    assert states[0]
    if name == "five-bar":  # some have no home, and some stand at home on another side than the file itself
        assert states[3] > 1
        assert 0 < many.fallbacks < count


def test_homes_that_designs_place_elsewhere_are_those_of_robots_loaded_so():
    """The end effector of a Par4 stands on joints, and its home is at a length of the design."""
    robot, count, rng = parflex.load("par4"), 6, np.random.default_rng(2)
    keys = [f"constants.{key}" for key in ("base_radius", "arm", "rod", "half_distance", "ratio")]
    designs = {key: number_at(robot, key) * rng.uniform(0.8, 1.2, count) for key in keys}
    geometry = Geometry(robot, numbers_of_designs(robot, designs))
    homes = home_rows(geometry)
    assert homes is not None
    q, sure = homes(np.arange(count))
    assert sure.all()
    for row in range(count):
        own = parflex.load("par4", settings={key: float(values[row]) for key, values in designs.items()})
        # both end below 1e-10 of the length, and the next step of Newton's method goes to rounding
        assert q[row, : len(geometry.kept)] == pytest.approx(own.home[geometry.kept], abs=1e-12)


@pytest.mark.parametrize("times", [1, 4000])  # few rows are solved by arrays, many by machine code
def test_designs_whose_rods_are_just_too_short_have_no_home(times):
    """The distance of the elbows at home is known; rods that miss it by a tenth of a micrometre have no home."""
    robot = robot_of("five-bar")[1]
    elbows = np.array([-0.15, 0.15]) + np.array([0.31, 0.28]) * np.exp(1j * np.array([2.1, 1.0]))
    gaps = np.array([1e-3, 3e-4, 1e-5, 1e-7, *[-1e-3] * times])  # in metres, of 0.6; the last ones meet
    designs = {
        "constants.far": np.full(len(gaps), 0.3),
        "constants.other_far": abs(elbows[0] - elbows[1]) - 0.3 - gaps,
    }
    found = parflex.many_frequencies(robot, ["x", "y"], np.tile([0.0, 0.3], (len(gaps), 1)), 2, designs=designs)
    assert (found.status == np.where(gaps > 0, 3, 0)).all(), found.status[:6]


@pytest.mark.few
@pytest.mark.parametrize(
    ("name", "mode", "spread", "least"),  # at least such a share is proved; what motors leave open is followed in rows
    [
        ("five-bar", None, 0.4, 0.8),
        ("5r", "out", 0.4, 0.8),
        ("four-bar", "crossed", 0.4, 0.6),
        ("navaro", None, 0.4, 0.3),
    ],
)
def test_homes_that_are_proved_by_machine_code_are_those_of_robots_loaded_so(name, mode, spread, least):
    """Every design that is proved is so by its row too, and a robot that is loaded with its numbers stands there."""
    source = robot_of(name)[0]
    robot = parflex.load(source, working_mode=mode)
    rng, count = np.random.default_rng(6), 1200
    keys = [key for key in (f"constants.{word}" for word in robot.description.constants) if number_at(robot, key) != 0]
    designs = {key: number_at(robot, key) * rng.uniform(1 - spread, 1 + spread, count) for key in keys}
    geometry = Geometry(robot, numbers_of_designs(robot, designs))
    geometry.settle(COMPILE_FROM)
    words = ["x", "y", "theta"] if robot.tree.planar else ["x", "y", "z", "rx", "ry", "rz"]
    solver, homes = PositionSolver(geometry, words, [0.01] * len(words)), home_rows(geometry)
    assert solver.fast and homes is not None
    proved, by_rows = as_the_file(solver, homes), followed(solver, homes, np.arange(count))
    assert not (proved & ~by_rows).any()
    assert least < proved.mean() < 1.0
    assert not by_rows.all()
    for row in np.flatnonzero(proved)[:5]:
        own = parflex.load(
            source, working_mode=mode, settings={key: float(values[row]) for key, values in designs.items()}
        )
        q = geometry.rows(own.home[geometry.kept][None], np.array([row]))
        assert solver.on_sides(solver.given.start(solver.given.at_home[None], q) if solver.given.asked else q).all()
        assert all((np.sin(own.home[k]) >= 0) == (sign == "+") for k, sign in own.assembler.signs.items())


@pytest.mark.parametrize("signed", [False, True])
def test_designs_that_start_an_elbow_on_the_other_side_are_not_proved(signed, tmp_path):
    """Where circles about the elbows meet is known; a design that starts its rods beside the other point stands there.

    There the right leg is on its other side. Signs that are asked for tell it too.
    """
    motors = np.array([1.4, 1.8])
    elbows = np.array([-0.15, 0.15]) + np.array([0.31, 0.28]) * np.exp(1j * motors)
    across = elbows[1] - elbows[0]
    along = (abs(across) ** 2 + 0.42**2 - 0.39**2) / (2 * abs(across))
    tips = elbows[0] + across / abs(across) * (along + 1j * np.array([1, -1]) * np.sqrt(0.42**2 - along**2))
    rods = np.angle((tips[:, None] - elbows) * np.exp(-1j * motors))  # of both legs, at either point
    assert rods[0, 1] < 0 < rods[1, 1]
    text = (
        robot_file("designed-five-bar")
        .read_text()
        .replace("left = 2.1", "left = 1.4")
        .replace("right = 1.0", "right = 1.8")
    )
    text = text.replace("[constants]", f"[constants]\nbend = {rods[0, 0]}\nother_bend = {rods[0, 1]}")
    text = text.replace("start = -1.3", 'start = "bend"').replace("start = 1.3", 'start = "other_bend"')
    if signed:
        text += '[working_modes.out]\nsigns = { "left.rod" = "-", "right.rod" = "-" }\n'
    file = tmp_path / "five-bar.toml"
    file.write_text(text)
    robot = parflex.load(file, working_mode="out" if signed else None)
    which, off = np.tile([0, 1], 20), np.linspace(-0.05, 0.05, 40)
    bends = rods[which] + off[:, None]
    designs = {"constants.bend": bends[:, 0], "constants.other_bend": bends[:, 1], "constants.near": 0.31 + 0.1 * off}
    geometry = Geometry(robot, numbers_of_designs(robot, designs))
    geometry.settle(COMPILE_FROM)
    solver, homes = PositionSolver(geometry, ["x", "y"], [0.0, 0.42]), home_rows(geometry)
    assert solver.fast and homes is not None
    assert (as_the_file(solver, homes) == (which == 0)).all()


@pytest.mark.verify
@pytest.mark.parametrize(("name", "count"), [("five-bar", 400), ("3rrr-flexible", 120), ("gough-stewart-beams", 60)])
@pytest.mark.parametrize("seed", [11, 12])
def test_many_rows_with_other_lengths_answer_what_robots_loaded_so_answer(name, count, seed):
    check_rows(name, count, seed)
    check_rows(name, count, seed + 100, spread=0.08, at_once=-(-2500 // count))
