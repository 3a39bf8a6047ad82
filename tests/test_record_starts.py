"""Starts of simulated records are found with the parameters; deviations of many parameters beside few samples."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles import measured
from support.recordings import HAND, UNDER_CONTROL, slide

import parflex
from parflex.identification.base_columns import base_columns
from parflex.identification.column_map import read_column_map
from parflex.identification.estimates.least_squares import EffortRows, fit
from parflex.identification.filtering import choose_filter
from parflex.identification.measured_files import read_measurement
from parflex.identification.regressors import Regressor
from parflex.identification.simulated.record_starts import UNSEEN, seen_starts, without
from parflex.identification.simulated.simulated_records import SimulatedRecords
from parflex.identification.unknowns import unknowns

LOOP = {"kp": 60, "kv": 40}
SOFT = {"kp": 6.0, "kv": 5.0}


def test_starts_act_on_efforts_as_simulations_say(tmp_path):
    robot, mapped = slide(tmp_path), read_column_map(UNDER_CONTROL | {"controller": LOOP}, ["axis"])
    regressor = Regressor(robot, unknowns(robot, "file"))
    record = read_measurement(measured.sliding_mass(1.0, noise=1e-5), mapped, robot)
    base, choice = base_columns(regressor), choose_filter([record], 40.0, 4, None, None)
    simulations = SimulatedRecords(regressor, base, mapped, choice, record.step).of([record])
    symbols = [regressor.unknowns[k].symbol for k in base.kept]
    values = np.array([{"M": 8.0, "FV": 12.0, "FS": 0.0}[symbol] for symbol in symbols])
    now = simulations.at(values)
    by_equations = simulations._linear(values, [0])[0][1]
    by_simulations = simulations._by_starts(values, now)[0]
    assert by_equations.shape == by_simulations.shape == (*now.rows.y.shape, 2)
    # a midpoint rule over samples of 1 ms, and time constants of 40 ms
    assert np.linalg.norm(by_equations - by_simulations) < 0.01 * np.linalg.norm(by_simulations)


def soft(seed):
    """Begun on the way, under a controller that remembers for half a second where a record began."""
    columns = measured.sliding_mass(2.5, seed, noise=1e-3, **SOFT)
    return {name: column[500:] for name, column in columns.items()}


def test_parameters_under_a_soft_controller_do_not_follow_the_first_samples(tmp_path):
    columns = UNDER_CONTROL | {"controller": SOFT}
    found = parflex.identify(slide(tmp_path), soft(0), columns, "didim", cutoff=20, decimate=10, validate=soft(1))
    for name, one in found.parameters.items():
        # deviations are 0.1, 0.4 and 0.25 %; a start by the first samples moves the last two by 16 and 10 %
        assert one.value == pytest.approx(HAND[name], rel=0.015), name
    # noise of 1 mm makes 0.4 % of the efforts; a start by the first samples 2.8 % of those that were not used
    assert found.relative_error < 0.006 and found.validation["relative_error"] < 0.006


def test_directions_of_a_start_that_efforts_do_not_show_are_left_out():
    response = np.zeros((10, 1, 2))
    response[0, 0] = 3.0, 4.0
    response[1, 0] = 0.8 * UNSEEN * np.array([-0.8, 0.6])
    (ways,) = seen_starts([response], [np.ones(2)], [np.ones((10, 1))])
    assert np.abs(ways[:, 0]) == pytest.approx([0.6, 0.8])
    assert ways.shape == (2, 1)
    (ways,) = seen_starts([response], [2 * np.ones(2)], [np.ones((10, 1))])
    assert ways.shape == (2, 2)


def test_rows_without_the_starts_give_the_parameters_of_rows_with_them():
    rng = np.random.default_rng(1)
    W, y, weights = rng.standard_normal((40, 2, 5)), rng.standard_normal((40, 2)), rng.uniform(0.5, 2, (40, 2))
    both = np.linalg.lstsq((W * weights[:, :, None]).reshape(80, 5), (y * weights).ravel(), rcond=None)[0]
    left = without(W[:, :, 3:], np.concatenate([W[:, :, :3], y[:, :, None]], axis=2), weights)
    scaled = (left * weights[:, :, None]).reshape(80, 4)
    assert without(W[:, :, 5:], W, weights) is W  # no start that efforts show
    assert np.linalg.lstsq(scaled[:, :3], scaled[:, 3], rcond=None)[0] == pytest.approx(both[:3], rel=1e-10)


def test_deviations_are_right_where_parameters_take_most_of_the_slow_residuals():
    rng = np.random.default_rng(0)
    t = np.arange(200) / 200
    waves = np.concatenate([[f(2 * np.pi * k * t) for f in (np.sin, np.cos)] for k in range(1, 16)])
    W = np.einsum("cn,r->nrc", waves, [1.0, 1.0, -1.0])  # all motors together, at all slow frequencies
    true = np.sqrt(np.diag(np.linalg.inv(np.einsum("nrc,nrd->cd", W, W))))
    found = [fit(EffortRows(W, rng.standard_normal(W.shape[:2])), "wls") for _ in range(12)]
    shown = np.mean([np.sqrt(np.diag(one.robust)) for one in found], axis=0) / true
    # spectra of 12 noises, each averaged over 29 frequencies of three rows: 1 / sqrt(2 * 12 * 29) is 4 %
    assert shown.mean() == pytest.approx(1.0, abs=0.1)
