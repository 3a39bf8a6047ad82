"""How a motor under its controller answers parameters, beside the exponential of a matrix."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg

from parflex.identification.simulated import linear_response

M, D, K = 2.0, 7.0, 90.0  # kg, N s/m, N/m: a mass whose damper and spring are felt within a sample
STIFFNESS, DAMPING = np.array([300.0]), np.array([25.0])
SECONDS = 0.4


def answered(step, rates, delay=0):
    """Efforts of the controller while a force of 1 N per unit acts, by the module."""
    samples = round(SECONDS / step) + 1
    constant = [np.full((2, 1, 1), value) for value in (M, D, K)]
    along = linear_response._Along(np.array([0, samples - 1]), *constant)
    settings = SimpleNamespace(delay=delay, rates=rates)
    replay = SimpleNamespace(sample=step, every=1, settings=settings)
    return linear_response._answers(along, np.ones((samples, 1, 1)), replay, STIFFNESS, DAMPING)[:, 0, 0]


def exactly(step, rates, delay=0):
    """The same in closed form: between samples the effort is held, and the motion is that of a linear equation."""
    A = np.array([[0.0, 1.0, 0.0], [-K / M, -D / M, 1 / M], [0.0, 0.0, 0.0]])
    once = scipy.linalg.expm(A * step)
    x = v = before = 0.0
    result, waiting = [], [0.0] * delay
    for k in range(round(SECONDS / step) + 1):
        sensed = (x - before) / step if rates == "differences" and k else v
        waiting.append(-(STIFFNESS[0] * x + DAMPING[0] * sensed))
        result.append(waiting.pop(0))
        before = x
        x, v, _ = once @ [x, v, result[-1] - 1.0]
    return np.array(result)


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("rates", ["joint", "differences"])
def test_answers_of_the_controller_are_those_of_the_closed_form(rates, delay):
    """Of second order: half a sample takes a quarter of the error; what a half step forgets leaves half of it."""
    off = []
    both = [exactly(2e-3, kind) for kind in ("joint", "differences")]
    assert np.abs(both[0] - both[1]).max() > 0.01 * np.abs(both[0]).max()  # so the closed form tells them apart
    for step in (2e-3, 1e-3):
        wanted = exactly(step, rates, delay)
        off.append(np.abs(answered(step, rates, delay) - wanted).max() / np.abs(wanted).max())
    assert off[1] < 1e-4  # (h D/M)^2 / 12 = 1e-6, times ten for oscillations of the loop
    assert off[0] / off[1] == pytest.approx(4, rel=0.1)  # the next order has h D/M = 0.7 % of it, times ten
