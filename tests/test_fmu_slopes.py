"""Directional derivatives of FMUs, and what they remember: against differences, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from support.fmu_units import Unit, exported, given

import parflex

LONG = pytest.mark.verify
STEP_OF_DIFFERENCES = 1e-5  # in SI: the third derivative leaves 1e-10 of the size, rounding 1e-11 of it
CASES = [("5r", 2, "efforts"), pytest.param("5r", 3, "motions", marks=LONG)]
CASES += [
    pytest.param(name, 3, "efforts", marks=LONG)
    for name in ("5r", "3rrr", "dualemps", "gough-stewart", "gough-stewart-flexible")
]


def moved(unit: Unit, seed: int) -> tuple[list[str], list[str]]:
    """Away from rest; names of what is known, and of what follows from it."""
    unit.start({name: value for name, value in given(unit.about.modelName).items() if name in unit.names("input")})
    unit.unit.enterContinuousTimeMode()
    states = [v.name for v in unit.about.modelVariables if v.name.startswith("state.")]
    random = np.random.default_rng(seed)
    now = unit.get(states)
    size = np.array([0.3 if name.startswith("state.rate.") else 0.02 for name in states])
    unit.put(dict(zip(states, now + size * random.uniform(-1, 1, len(states)), strict=True)))
    unit.get(["closure_error"])
    unknown = [*unit.names("output"), *(f"der({name})" for name in states)]
    return [*states, *unit.names("input")], unknown


@pytest.mark.parametrize(("name", "fmi", "drive"), CASES)
def test_directional_derivatives_are_those_of_differences(name, fmi, drive):
    unit = Unit(exported(name, fmi, "me", drive), "ModelExchange")
    known, unknown = moved(unit, 5)
    here, random = unit.get(known), np.random.default_rng(7)
    for _ in range(3):
        way = random.uniform(-1, 1, len(known))
        found = unit.along(unknown, known, way)
        ends = []
        for side in (1, -1):
            unit.put(dict(zip(known, here + side * STEP_OF_DIFFERENCES * way, strict=True)))
            ends.append(unit.get(unknown))
        unit.put(dict(zip(known, here, strict=True)))
        differences = (ends[0] - ends[1]) / (2 * STEP_OF_DIFFERENCES)
        size = np.maximum(np.abs(differences), np.abs(unit.get(unknown)) + 1e-2 * np.abs(differences).max())
        for k, column in enumerate(unknown):
            if column != "closure_error":  # rounding
                assert abs(found[k] - differences[k]) < 1e-6 * size[k], column
    unit.close()


def test_frames_whose_x_axis_is_normal_to_the_plane_turn_and_move_along_their_own_axes(tmp_path):
    """A crank with a frame on it whose x axis points out of the plane, y along the crank, z across it."""
    text = (
        'format = 1\nname = "crank"\nmotion = "planar"\nend_effector = "side"\n[[frame]]\nname = "crank"\n'
        'joint = "revolute"\nactuated = true\nstart = 0.4\ninertia = { mass = 1, about_centre = [0, 0, 0.1] }\n'
        '[[point]]\nname = "side"\nframe = "crank"\nposition = [0.5, 0, 0]\nrotation = [{0}, {0}, {0}]\n'
    ).replace("{0}", '"-2*pi/3/sqrt(3)"')  # x, y, z become z, x, y
    (tmp_path / "crank.toml").write_text(text)
    robot = parflex.load(tmp_path / "crank.toml")
    run = parflex.simulate(robot, pose={"crank": 0.4}, start={"velocity": {"crank": 2.0}}, effort={}, time=0.1)
    axes = parflex.configure(robot, {"crank": 0.4}).at.of(robot.tree.places["side"])[0]
    parflex.export_fmu(robot, tmp_path / "crank.fmu", kind="me")
    unit = Unit(tmp_path / "crank.fmu", "ModelExchange")
    unit.start({"state.rate.crank": 2.0})
    world = np.array([-np.sin(0.4), np.cos(0.4), 0.0])  # 0.5 m at 2 rad/s
    for k, word in enumerate("xyz"):
        expected = axes[:, k] @ world
        assert abs(unit.get([f"side.local_v{word}"])[0] - expected) < 1e-12
        assert abs(run[f"side.local_v{word}"][0] - expected) < 1e-12
    assert abs(unit.along(["side.theta"], ["state.crank"], [1.0])[0] - 1.0) < 1e-12
    assert abs(run["side.theta"][-1] - run["side.theta"][0] - 0.2) < 1e-9
    assert np.abs(np.abs(axes[2]) - [1, 0, 0]).max() < 1e-12  # the frame is as it is said to be
    unit.close()


def test_model_exchange_remembers_where_its_loops_were_closed():
    """The guess of the closures is part of the state: the same calls give the same bits."""
    unit = Unit(exported("5r", 2, "me"), "ModelExchange")
    known, unknown = moved(unit, 3)
    states = [name for name in known if name.startswith("state.")]
    slopes = [f"der({name})" for name in states]

    def run() -> np.ndarray:
        rows = []
        for _ in range(20):
            x = unit.get(states) + 1e-3 * unit.get(slopes)
            unit.put(dict(zip(states, x, strict=True)))
            rows.append(unit.get(unknown))
        return np.array(rows)

    kept = unit.state()
    once = run()
    unit.restore(kept)
    assert np.array_equal(run(), once)
    unit.close()
