"""Compiled time loops against the same source run by Python, which also shows a coverage report what runs."""

import ctypes

import numpy as np
import pytest
from support.robots import any_robot

import parflex
from parflex.codegen import loop_functions

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
CASES = {
    "loop, gauss4": ("four-bar", {"effort": {"crank": 0.4}, "method": "gauss4", "step": 2e-3}),
    "loop, gauss6, chosen steps": ("four-bar", {"effort": {"crank": 0.4}, "method": "gauss6"}),
    "loop, rk4": ("four-bar", {"effort": {"crank": 0.4}, "method": "rk4", "step": 2e-3}),
    "loop, dopri5": ("four-bar", {"effort": {"crank": 0.4}, "method": "dopri5"}),
    "beams, generalized-alpha": ("dualemps", {"method": "generalized-alpha", "step": 1e-3, "time": 1e-3}),
    "quaternion, gauss4": ("satellite", {"start": {"velocity": {"hull.rz": 2.0}}, "method": "gauss4"}),
    "stops": (
        "ball-between-stops",
        {"pose": {"ball": 0.09}, "start": {"velocity": {"ball": 20.0}}, "stops": True, "time": 2e-3},
    ),
    "stiction, gauss6": ("rubbing-arm", {"method": "gauss6", "step": 1e-3, "effort": {"1": 5.0, "2": 0.1}}),
    "controller": (
        "four-bar",
        {"controller": parflex.PD(100.0, 10.0), "motion": lambda t: (np.pi / 3 + 0.1 * t**2, 0.2 * t, 0.2)},
    ),
}


@pytest.fixture
def plain(monkeypatch):
    """Return a function after which loops run as Python."""

    def start():
        monkeypatch.setattr(loop_functions.LoopFunction, "__call__", lambda self, *values: self.function(*values))
        call = type(loop_functions.call_model)
        monkeypatch.setattr(call, "__call__", lambda self, address, x, y: KERNEL(address)(x, y, 1), raising=False)

    return start


@pytest.mark.parametrize("case", CASES)
def test_a_compiled_loop_gives_the_rows_of_its_python(case, plain):
    name, options = CASES[case]
    options = {"motion": None, "time": 4e-3} | options
    robot = any_robot(name)
    compiled = parflex.simulate(robot, **options)
    plain()
    run = parflex.simulate(robot, **options)
    assert run.status == compiled.status == "ok" and np.array_equal(run.t, compiled.t)
    for column in compiled:
        size = np.abs(compiled[column]).max(initial=1e-9)
        assert run[column] == pytest.approx(compiled[column], rel=1e-9, abs=1e-9 * size), column
