"""Columns of places in runs: accelerometers, gyroscopes, motions, deflections from the chord and the tangent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex import InputError
from parflex.simulation import run_checks

ROBOTS = Path(__file__).parent / "robots"

FLAT = """
[materials.aluminium]
elastic_modulus = 7e10
density = 2700
[sections.flat]
shape = "rectangle"
y = 0.004
z = 0.012
"""
ARM = f"""
format = 1
name = "swinging-arm"
gravity = [1.0, -9.6, 0.5]
end_effector = "arm.tip"
{FLAT}
[[frame]]
name = "arm"
joint = "revolute"
actuated = true
start = 0.3
place = {{ position = [0.1, 0.2, -0.1], rotation = [0.4, -0.2, 0.3] }}
beam = {{ length = 0.5, material = "aluminium", section = "flat", elements = 2, damping = {{ stiffness = 2e-4 }} }}
[motions.swing]
moves = [{{ arm = 0.9 }}]
duration = 0.2
"""
OUTPUTS = ("arm@0.3.sensor", "arm.deflection@0.3", "arm.deflection@0.5", "arm@0.3.x", "arm@0.3.y", "arm@0.3.z")
OUTPUTS += (*(f"arm@0.3.orientation_{part}" for part in "wxyz"), "arm@0.3.vx", "arm@0.3.local_ay")


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    file = tmp_path_factory.mktemp("arm") / "arm.toml"
    file.write_text(ARM)
    return parflex.load(file)


@pytest.fixture(scope="module")
def run(arm):
    return parflex.simulate(
        arm,
        "swing",
        0.1,
        step=1e-4,
        out_step=1e-4,
        frames=["arm", "arm.tip", "arm@0.5"],
        outputs=OUTPUTS,
        wrench={"arm@0.6": [0.1, -0.2, 0.3, 0.01, 0, 0.02]},
    )


def rotations(run, frame: str) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(np.stack([run[f"{frame}.orientation_{axis}"] for axis in "xyzw"], axis=1)).as_matrix()


def places(run, frame: str) -> np.ndarray:
    return np.stack([run[f"{frame}.{axis}"] for axis in "xyz"], axis=1)


def test_a_sensor_at_rest_shows_gravity_upwards_in_its_own_axes(run):
    """The run begins in equilibrium, with a motion that begins without acceleration."""
    shown = np.array([run[f"arm@0.3.sensor_a{axis}"][0] for axis in "xyz"])
    rest = -rotations(run, "arm@0.3")[0].T @ [1.0, -9.6, 0.5]
    assert np.allclose(shown, rest, atol=1e-3)  # to which the equilibrium holds the arm still, in m/s^2


def test_a_moving_sensor_shows_second_differences_of_its_place_less_gravity(run):
    """Central differences of rows 0.1 ms apart: (2 pi f h)^2 / 12 of vibrations at up to a hundred Hz."""
    h = run.t[1] - run.t[0]
    p, R = places(run, "arm@0.3"), rotations(run, "arm@0.3")
    second = (p[2:] - 2 * p[1:-1] + p[:-2]) / h**2
    felt = np.einsum("tji,tj->ti", R[1:-1], second - np.array([1.0, -9.6, 0.5]))
    shown = np.stack([run[f"arm@0.3.sensor_a{axis}"] for axis in "xyz"], axis=1)[1:-1]
    assert np.abs(shown - felt)[50:].max() < 2e-4  # after 5 ms the stretch of the start, at some kHz, is damped
    spin = np.einsum("tji,tjk->tik", R[1:-1], R[2:] - R[:-2]) / (2 * h)
    turned = np.stack([run[f"arm@0.3.sensor_w{axis}"] for axis in "xyz"], axis=1)[1:-1]
    assert np.abs(turned - np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)).max() < 1e-3
    assert np.abs((p[2:, 0] - p[:-2, 0]) / (2 * h) - run["arm@0.3.vx"][1:-1]).max() < 1e-4


def test_deflections_are_those_from_the_line_between_the_ends_and_from_the_root(run):
    from scipy.spatial.transform import Rotation

    root, tip, into = places(run, "arm"), places(run, "arm.tip"), rotations(run, "arm")
    for s, frame in ((0.5, "arm@0.5"),):  # a node: elsewhere elements bend by their own inertia, too
        away = np.einsum("tji,tj->ti", into, places(run, frame) - root)
        for k, axis in ((1, "y"), (2, "z")):
            assert np.allclose(run[f"arm.tangent_{axis}@{s}"], away[:, k], atol=1e-15)
        for row in (0, 400, 900):
            chord = into[row].T @ (tip[row] - root[row])
            turn, _ = Rotation.align_vectors([chord / np.linalg.norm(chord)], [[1.0, 0.0, 0.0]])
            along = turn.as_matrix().T @ away[row]
            found = [run[f"arm.chord_{axis}@{s}"][row] for axis in "yz"]
            assert np.allclose(found, along[1:], atol=1e-12)  # rounding of lengths below a metre
    assert np.abs(run["arm.chord_y@0.3"]).max() > 1e-5  # there is something to see
    assert not np.allclose(run["arm.chord_y@0.3"], run["arm.tangent_y@0.3"])


def test_a_run_with_a_wrench_inside_a_beam_balances_its_energy_and_knows_its_stress(run):
    exchanged = np.ptp(run["work.input"])
    assert run.summary["energy_balance_error"] < 1e-6 * exchanged  # of fourth-order steps of 0.1 ms
    assert run.summary["largest_stress"]["beam"] == "arm" and run.summary["largest_stress"]["value"] > 0


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("arm.chord_y@1.5", "'1.5' is not a place of the beam 'arm'"),
        ("arm.tangent_z@-0.1", "'-0.1' is not a place of the beam 'arm'"),
        ("leg.chord_y@0.5", "there is no beam 'leg'"),
        ("arm.tip@0.5.vx", "'arm.tip' is not a beam or modal body"),
        ("arm@half.vx", "'half' is not a place of the beam 'arm'"),
        ("arm@0.5.theta", "a frame of a spatial robot has no 'theta'"),
        ("hand.sensor_ax", "there is no frame 'hand'"),
        ("arm@0.5.sensor_aq", "there is no output 'arm@0.5.sensor_aq'"),
    ],
)
def test_outputs_that_are_not_there_are_refused_before_the_run(arm, word, said):
    with pytest.raises(parflex.InputError, match=said) as caught:
        parflex.simulate(arm, "swing", 0.1, outputs=[word])
    assert caught.value.key == "outputs" and caught.value.hint


def test_ranges_of_places_are_taken_in_all_outputs_and_frames(arm):
    """And give the columns of each place."""
    words = {"start": "rest", "step": 1e-3}
    asked = ("arm@0:1:3.vx", "arm.chord_y@0.25:0.75:3", "arm.Mz@0:1:2")
    run = parflex.simulate(arm, "swing", 0.005, outputs=asked, frames=["arm.tip", "arm@0.2:0.4:2"], **words)
    each = ("arm@0.vx", "arm@0.5.vx", "arm@1.vx", "arm.chord_y@0.25", "arm.chord_y@0.5", "arm.chord_y@0.75", "arm.Mz@1")
    one = parflex.simulate(arm, "swing", 0.005, outputs=each, frames=["arm@0.2", "arm@0.4"], **words)
    for column in (*each, "arm@0.2.x", "arm@0.4.y"):
        assert np.array_equal(run[column], one[column])
    for bad in ("arm@0:2:3.vx", "arm.chord_y@0:1:5000", "arm@0.5:1.vx", "arm@0:1:-2"):
        with pytest.raises(InputError, match="is not a range of places"):
            parflex.simulate(arm, "swing", 0.005, outputs=[bad])
    with pytest.raises(InputError, match=r"'0\.5:1' is not a range of places"):
        parflex.simulate(arm, "swing", 0.005, frames=["arm@0.5:1"])
    with pytest.raises(InputError, match="is not a range of places") as caught:
        parflex.simulate(arm, "swing", 0.005, frames=["arm@1:0:3"])
    assert caught.value.key == "frames"


def test_sensors_of_planar_robots_show_gravity_across_the_plane_and_no_other_zeros():
    level = parflex.load(ROBOTS / "pendulum-beam.toml", settings={"gravity": [0, 0, -9.81]})
    run = parflex.simulate(level, None, 0.002, outputs=["arm@0.5.sensor_az"])
    assert run["arm@0.5.sensor_az"] == pytest.approx(np.full(3, 9.81))
    upright = parflex.load(ROBOTS / "pendulum-beam.toml")
    for word in ("sensor_az", "sensor_wx", "sensor_wy"):
        with pytest.raises(InputError, match=f"'{word}' of a planar robot is zero"):
            parflex.simulate(upright, None, 0.002, outputs=[f"arm.{word}"])


def test_outputs_by_accelerations_are_known_by_their_words():
    assert run_checks.by_acceleration(["arm.N@0.5"]) and run_checks.by_acceleration(["tip.sensor"])
    assert not run_checks.by_acceleration(["tip.vx", "arm.chord_y@0.5"])
