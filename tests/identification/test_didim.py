"""Identification by simulation under the controller of a record: parameters, starts of records, refusals."""

from functools import cache

import numpy as np
import pytest
from support.oracles import led_records, measured
from support.recordings import (
    HAND,
    UNDER_CONTROL,
    columns_of,
    errors,
    noisy,
    regressor_of,
    slide,
    three_rrr,
    true_values,
)
from support.robots import load_robot, robot_file

import parflex
from parflex.identification import didim
from parflex.identification.didim import SimulatedRecords
from parflex.identification.preprocess import choose_filter
from parflex.identification.recordings import read_column_map, read_recording
from parflex.identification.regressor_columns import base_columns


def simulated(controller, noise: float = 0.0) -> SimulatedRecords:
    """Simulations of a record of a sliding mass under a controller."""
    robot, mapped = slide(), read_column_map(UNDER_CONTROL | {"controller": controller}, ["axis"])
    regressor = regressor_of(robot)
    record = read_recording(measured.sliding_mass(1.0, noise=noise), mapped, robot)
    choice = choose_filter([record], 40.0, 4, None, None)
    base = base_columns(regressor)
    assert [regressor.unknowns[k].symbol for k in base.kept] == ["M", "FV", "FS"]
    return SimulatedRecords(regressor, base, mapped, choice, record.step).of([record])


# without Coulomb friction: where the axis turns back, that changes by a step, and simulations decide
VALUES, SMOOTH = np.array([8.0, 12.0, 0.0]), [0, 1]


@pytest.mark.parametrize(
    "law",
    [
        {"kp": 60, "kv": 40},
        {"kp": 40, "kv": 20, "delay": 3},
        {"kp": 40, "kv": 20, "rates": "differences", "sample_time": 5e-4},
        {"law": "pd", "stiffness": 2400, "damping": 40},
    ],
)
def test_efforts_depend_on_parameters_as_differences_of_simulations_do(law):
    simulations = simulated(law)
    now, spread = simulations.at(VALUES), 1e-3 * VALUES[SMOOTH]
    rows, G = now.rows.columns(SMOOTH), simulations.linear(VALUES, SMOOTH)
    wanted = didim.by_simulations(simulations, VALUES, rows, SMOOTH, spread)
    # differences of accelerations, straight lines between samples
    assert np.linalg.norm(G - wanted) < 0.01 * np.linalg.norm(wanted)
    assert didim._confirmed(simulations, VALUES, rows, SMOOTH, G, spread)
    assert not didim._confirmed(simulations, VALUES, rows, SMOOTH, 1.1 * G, spread)


def test_efforts_depend_on_starts_as_differences_of_simulations_do():
    simulations = simulated({"kp": 60, "kv": 40}, 1e-5)
    now = simulations.at(VALUES)
    by_equations, by_simulations = simulations._linear(VALUES, [0])[0][1], simulations._by_starts(VALUES, now)[0]
    assert by_equations.shape == by_simulations.shape == (*now.rows.y.shape, 2)
    # a midpoint rule over samples of 1 ms, and time constants of 40 ms
    assert np.linalg.norm(by_equations - by_simulations) < 0.01 * np.linalg.norm(by_simulations)


def test_unobservable_directions_of_a_start_are_left_out():
    response = np.zeros((10, 1, 2))
    response[0, 0] = 3.0, 4.0
    response[1, 0] = 0.8 * didim.UNSEEN * np.array([-0.8, 0.6])
    (ways,) = didim.observable_starts([response], [np.ones(2)], [np.ones((10, 1))])
    assert np.abs(ways[:, 0]) == pytest.approx([0.6, 0.8]) and ways.shape == (2, 1)
    (ways,) = didim.observable_starts([response], [2 * np.ones(2)], [np.ones((10, 1))])
    assert ways.shape == (2, 2)
    # rows without the starts give the parameters of rows with them
    rng = np.random.default_rng(1)
    W, y, weights = rng.standard_normal((40, 2, 5)), rng.standard_normal((40, 2)), rng.uniform(0.5, 2, (40, 2))
    both = np.linalg.lstsq((W * weights[:, :, None]).reshape(80, 5), (y * weights).ravel(), rcond=None)[0]
    left = didim.projected_out(W[:, :, 3:], np.concatenate([W[:, :, :3], y[:, :, None]], axis=2), weights)
    scaled = (left * weights[:, :, None]).reshape(80, 4)
    assert np.linalg.lstsq(scaled[:, :3], scaled[:, 3], rcond=None)[0] == pytest.approx(both[:3], rel=1e-10)


@pytest.mark.verify
def test_parameters_under_a_soft_controller_do_not_follow_the_first_samples():
    """Records that begin in motion, under a controller that remembers its start for half a second."""
    soft = {"kp": 6.0, "kv": 5.0}
    records = [measured.sliding_mass(2.5, seed, noise=1e-3, **soft) for seed in (0, 1)]
    first, second = ({name: column[500:] for name, column in record.items()} for record in records)
    columns = UNDER_CONTROL | {"controller": soft}
    found = parflex.identify(slide(), first, columns, "didim", cutoff=20, decimate=10, validate=second)
    for name, one in found.parameters.items():
        # deviations are 0.1, 0.4 and 0.25 %; a start by the first samples moves the last two by 16 and 10 %
        assert one.value == pytest.approx(HAND[name], rel=0.015), name
    # noise of 1 mm makes 0.4 % of the efforts; a start by the first samples 2.8 % of those that were not used
    assert found.relative_error < 0.006 and found.validation["relative_error"] < 0.006


@pytest.mark.verify
def test_a_simulated_axis_has_the_parameters_of_its_record():
    record = measured.sliding_mass(3.0, noise=2e-5)
    found = parflex.identify(slide(), record, UNDER_CONTROL, "didim", validate=measured.sliding_mass(1.0, noise=2e-5))
    for name, value in HAND.items():
        one = found.parameters[name]
        assert abs(one.value - value) < 4 * one.deviation and one.deviation < 0.02 * value, name
    assert found.relative_error < 0.05 and found.validation["relative_error"] < 0.05
    assert any("simulated under the controller" in text for text in found.steps)
    assert not any("following error" in text for text in found.warnings)


@pytest.mark.few("0.5-30")
@pytest.mark.parametrize("gain", [30, 60])
@pytest.mark.parametrize("time", [0.5, 1.0])
def test_a_controller_that_differs_from_the_record_is_reported(time, gain):
    record, columns = measured.sliding_mass(time, noise=2e-5), {"controller": {"kp": gain, "kv": 40, "limit": 30}}
    warnings = parflex.identify(slide(), record, UNDER_CONTROL | columns, "didim").warnings
    shares = [text.split(" % of its")[0].split()[-1] for text in warnings if "of its following error: check" in text]
    assert [float(share) for share in shares] == ([] if gain == 60 else [pytest.approx(100, rel=0.2)])  # half the gain


def test_efforts_at_their_limit_do_not_respond_to_positions():
    replays = {"kp": 60, "kv": 40, "limit": 9}
    simulations = simulated(replays)
    (replay,) = simulations.replays
    assert replay.feedback(np.array([[2.5 * 9.0]])) is None
    assert [list(part) for part in replay.feedback(np.array([[2.4 * 9.0]]))] == [[2.5 * 60 * 40], [2.5 * 40]]


@pytest.mark.verify
def test_simulation_tolerates_a_badly_chosen_filter():
    record, off = measured.sliding_mass(7.0, noise=2e-5), {}
    for estimator in ("wls", "didim"):
        found = parflex.identify(slide(), record, UNDER_CONTROL, estimator, cutoff=2, decimate=10)
        off[estimator] = max(abs(found.parameters[name].value / value - 1) for name, value in HAND.items())
    assert off["didim"] < 0.03 < 0.2 < off["wls"]  # 2 Hz take most of the motion at 9 rad/s


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"controller": None}, "needs the controller"),
        ({"reference": {}}, "needs the reference"),
        ({"controller": {"kp": 60, "kv": 40, "sample_time": 7e-4}}, "not a whole number of sample times"),
        ({"controller": {"kp": 60, "kv": -40}}, "does not follow its reference"),
        ({"controller": {"kp": {"axle": 60}, "kv": 40}}, "'axle' is not a motor"),
        ({"controller": {"kp": 60, "kv": 40, "rates": "guessed"}}, "not a known value of 'controller.rates'"),
    ],
)
def test_invalid_controllers_are_refused(change, message):
    columns = {key: value for key, value in (UNDER_CONTROL | change).items() if value is not None}
    with pytest.raises(parflex.InputError, match=message):
        parflex.identify(slide(), measured.sliding_mass(0.5), columns, "didim", cutoff=50, decimate=1)


@cache
def under_its_controller():
    return noisy(measured.closed_loop(4.0, 1, measured.Loop()))


@pytest.mark.verify
@pytest.mark.parametrize(("estimator", "cutoff"), [("didim", 40), ("didim", 200), ("wls", 200)])
def test_the_3rrr_is_identified_by_simulation_with_any_filter(estimator, cutoff):
    loop = measured.Loop()
    controller = {"kp": loop.stiffness / loop.damping, "kv": loop.damping}
    columns = columns_of("position", "effort", "reference", controller=controller)
    found = parflex.identify(three_rrr(), under_its_controller(), columns, estimator, cutoff=cutoff, decimate=4)
    wanted = true_values(found)
    error = np.linalg.norm(found.values - wanted) / np.linalg.norm(wanted)
    if estimator == "wls":
        assert error > 0.3
    else:
        assert error < 0.03 and np.abs(found.values - wanted).max() < 0.05 and np.abs(errors(found)).max() < 4


@pytest.mark.verify
def test_the_3rrr_under_computed_torque_is_identified_by_simulation(figure):
    # the law has the parameters of the file: friction of 0.1 N m s/rad and 0.1 N m, the load of 0.5 kg
    record = noisy(measured.computed_loop(2.0, 1, 2500.0, 100.0, measured.Loop(), (0.5, 0.1, 0.1)))

    def identified(Kp):
        columns = columns_of("position", "effort", "reference", controller={"law": "ctc", "Kp": Kp, "Kv": 100.0})
        return parflex.identify(three_rrr(), record, columns, "didim", cutoff=40)

    found = identified(2500.0)
    figure("3rrr under computed torque, didim: largest error in deviations", float(np.abs(errors(found)).max()), "4")
    assert np.abs(errors(found)).max() < 4
    assert identified(1250.0).relative_error > 1.1 * found.relative_error  # any stiffness follows the path


@pytest.mark.verify
def test_springs_are_identified_by_simulation_together_with_a_cable():
    path, true = robot_file("sprung-five-bar"), {"k[across]": 400, "k_rest[across]": 100, "d[across]": 4, "d[dash]": 15}
    wrong = {"element.across.stiffness": 460, "element.across.rest": 0.2, "element.dash.damping": 18}
    oracle, t = led_records.LedRobot(path), np.arange(1000) * 1e-3
    series, middle = (oracle.about_home(at, 3, 0.12) for at in (t, t + 5e-4))
    record = oracle.held(t, series, middle, 2000.0, 40.0)
    record = led_records.as_measured(record, 1, 2e-5, 2 * np.pi / 2**17, 0.05, 60.0)
    words = {"position": "q", "effort": "effort", "reference": "ref"}
    columns = {key: {m: f"{word}.{m}" for m in ("left", "right")} for key, word in words.items()}
    columns |= {"controller": {"kp": 50.0, "kv": 40.0}}
    found = parflex.identify(load_robot("sprung-five-bar", settings=wrong), record, columns, "didim")
    for name, value in true.items():
        one = found.parameters[name]
        assert abs(one.value - value) < 3 * one.deviation < 0.1 * value, name
    assert not found.warnings
