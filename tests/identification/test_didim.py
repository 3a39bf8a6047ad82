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
    slide,
    three_rrr,
    true_values,
    unlikely,
)
from support.robots import load_robot, robot_file

import parflex
from parflex.identification import didim
from parflex.identification.estimators import EffortRows


def test_starts_of_records_are_random_numbers_in_the_weights_of_rows():
    """Rows with starts of deviation one give what generalised least squares give with noise and starts together."""
    rng = np.random.default_rng(1)
    W, y, C = rng.standard_normal((40, 2, 3)), rng.standard_normal((40, 2)), rng.standard_normal((40, 2, 4))
    C[:, :, 3] = 0.0  # efforts show nothing of this direction
    weights, start = rng.uniform(0.5, 2, (40, 2)), rng.standard_normal(4)
    rows = didim.whitened(EffortRows(W, y), [C], [start], weights)
    both = [(part * weights[:, :, None]).reshape(80, -1) for part in (rows.W, rows.y[:, :, None])]
    found = np.linalg.lstsq(both[0], both[1][:, 0], rcond=None)[0]
    covariance = np.diag(1 / weights.ravel() ** 2) + C.reshape(80, 4) @ C.reshape(80, 4).T
    flat, measured_efforts = np.linalg.solve(covariance, W.reshape(80, 3)), (y + C @ start).ravel()
    assert found == pytest.approx(np.linalg.solve(flat.T @ W.reshape(80, 3), flat.T @ measured_efforts), rel=1e-9)
    # and the best start with these parameters has the least sum of squares of residuals and of itself
    left = (y + C @ start) - W @ found
    best = didim.best_start(C, left, weights)
    gradient = (C * weights[:, :, None] ** 2).reshape(80, 4).T @ (left - C @ best).ravel() - best
    assert gradient == pytest.approx(np.zeros(4), abs=1e-9)


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
        assert (
            error < 0.03 and np.abs(found.values - wanted).max() < 0.05 and not unlikely(found.values - wanted, found)
        )


@pytest.mark.verify
def test_the_3rrr_under_computed_torque_is_identified_by_simulation(figure):
    # the law has the parameters of the file: friction of 0.1 N m s/rad and 0.1 N m, the load of 0.5 kg
    record = noisy(measured.computed_loop(2.0, 1, 2500.0, 100.0, measured.Loop(), (0.5, 0.1, 0.1)))

    def identified(Kp):
        columns = columns_of("position", "effort", "reference", controller={"law": "ctc", "Kp": Kp, "Kv": 100.0})
        return parflex.identify(three_rrr(), record, columns, "didim", cutoff=40)

    found = identified(2500.0)
    figure("3rrr under computed torque, didim: largest error in deviations", float(np.abs(errors(found)).max()))
    assert not unlikely(found.values - true_values(found), found)
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
    assert {each.code for each in found.diagnostics} <= {"hardly-determined"}
