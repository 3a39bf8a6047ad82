"""Elements too few for what a run shows: shaken cantilevers of cubic elements beside their series."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from support.oracles.beam_sections import ShakenCantilever
from support.robots import load_robot

import parflex
from parflex import SingularError
from parflex.simulation.refining.inner_response import OFF, inner_error

E, DENSITY, WIDTH = 2.1e11, 7800.0, 0.03


def shaken(length, height, elements):
    settings = {"frame.beam.beam.length": length, "frame.beam.beam.elements": elements, "sections.bar.y": height}
    return load_robot("shaken-cantilever", settings=settings)


def cubic_elements(count, length, EI, mu):
    """Mass, stiffness and what a unit of the base's acceleration does, of a clamped beam; own assembly."""
    h, M, K = length / count, np.zeros((2 * count + 2,) * 2), np.zeros((2 * count + 2,) * 2)
    k = np.array([[12, 6 * h, -12, 6 * h], [6 * h, 4 * h * h, -6 * h, 2 * h * h],
                  [-12, -6 * h, 12, -6 * h], [6 * h, 2 * h * h, -6 * h, 4 * h * h]]) * EI / h**3  # fmt: skip
    m = np.array([[156, 22 * h, 54, -13 * h], [22 * h, 4 * h * h, 13 * h, -3 * h * h],
                  [54, 13 * h, 156, -22 * h], [-13 * h, -3 * h * h, -22 * h, 4 * h * h]]) * mu * h / 420  # fmt: skip
    for i in range(count):
        own = slice(2 * i, 2 * i + 4)
        M[own, own] += m
        K[own, own] += k
    return M[2:, 2:], K[2:, 2:], (M @ np.tile([1.0, 0.0], count + 1))[2:]


def rows_of(robot, beam, count, t):
    M, K, pushed = cubic_elements(count, beam.L, beam.EI, beam.rho_A)
    root = np.linalg.inv(np.linalg.cholesky(M))
    squares, V = np.linalg.eigh(root @ K @ root.T)
    V, w = root.T @ V, np.sqrt(squares)[:, None]
    share = -(V.T @ pushed)[:, None] * beam.A / (w**2 - beam.W**2)
    z = V @ (share * (np.sin(beam.W * t) - beam.W / w * np.sin(w * t)))
    zdd = V @ (share * (beam.W * w * np.sin(w * t) - beam.W**2 * np.sin(beam.W * t)))
    found = []
    for base, nodes in ((0.0, z), (beam.A * np.sin(beam.W * t), zdd)):
        rows, whole = np.zeros((len(t), robot.tree.n)), np.vstack([np.zeros((2, len(t))), nodes])
        rows[:, 0] = base
        for i in range(count):  # of a tip from the tangent of its root: stretch, deflection, turn
            v, turn, v_tip, turn_tip = whole[2 * i : 2 * i + 4]
            rows[:, 3 * i + 2], rows[:, 3 * i + 3] = v_tip - v - beam.L / count * turn, turn_tip - turn
        found.append(rows)
    return *found, z[-2]


def tip_of(beam, t):
    w = beam.omega[:, None]
    answered = (np.sin(beam.W * t) - beam.W / w * np.sin(w * t)) / (w**2 - beam.W**2)
    return -beam.A * beam.shape([1.0])[0][:, 0] @ (beam.share[:, None] * answered)


def true_and_estimated(rng, counts=(1, 2, 4)):
    length, height = rng.uniform(0.3, 1.0), rng.uniform(0.004, 0.02)
    EI, mu = E * WIDTH * height**3 / 12, DENSITY * WIDTH * height
    lowest = 1.8751041**2 * math.sqrt(EI / (mu * length**4))
    beam = ShakenCantilever(length, EI, mu, A=1.0, W=lowest * 10 ** rng.uniform(-1.0, 0.5))
    end = 2 * math.pi / lowest * rng.uniform(0.5, 6)
    t = np.linspace(0, end, 50 + int(4 * end * max(beam.W, 6 * lowest)))
    tip = tip_of(beam, t)
    found = []
    for count in counts:
        robot = shaken(length, height, count)
        q, accelerations, way = rows_of(robot, beam, count, t)
        off = np.abs(way - tip).max() / np.abs(tip).max()
        found.append((count, off, inner_error(robot, True, t, q, accelerations).share))
    return found


def judged(found):
    """What is off by a third more than the limit is warned of, and nothing below half of it.

    Of forty beams estimates were 0.87 to 1.11 of errors above the limit, and 0.78 to 1.9 of smaller ones: one element
    has a second mode that is 58 % too high, and its answer is one of first order.
    """
    for count, off, said in found:
        assert (said > OFF) if off > 4 / 3 * OFF else (said < OFF) if off < OFF / 2 else True, (count, off, said)
        assert off < OFF or 3 / 4 < said / off < 4 / 3, (count, off, said)


def test_shaken_cantilevers_are_off_as_estimated():
    rng = np.random.default_rng(5)
    found = [one for _ in range(4) for one in true_and_estimated(rng)]
    judged(found)
    assert sum(off > OFF for _, off, _ in found) >= 2 and sum(off < OFF / 2 for _, off, _ in found) >= 4


@pytest.mark.verify
@pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="a hundred beams: make verify")
def test_a_hundred_shaken_cantilevers_are_off_as_estimated():
    rng = np.random.default_rng(6)
    for _ in range(100):
        judged(true_and_estimated(rng))


def refuse(*given, **words):
    raise SingularError("no modes here")


def test_a_run_with_too_few_elements_says_so(monkeypatch):
    length, height = 0.6, 0.01
    w = 0.9 * 1.8751041**2 * math.sqrt(E * height**2 / 12 / (DENSITY * length**4))

    def base(t):
        return (w * t - math.sin(w * t)) / w**2, (1 - math.cos(w * t)) / w, math.sin(w * t)

    robot = shaken(length, height, 1)
    run = parflex.simulate(robot, base, 0.1, step=5e-4, start="rest")
    beam = ShakenCantilever(length, E * WIDTH * height**3 / 12, DENSITY * WIDTH * height, A=1.0, W=w)
    tip = tip_of(beam, run.t)
    off = np.abs(run["q.beam.uy"] - tip).max() / np.abs(tip).max()
    (told,) = run.summary["warnings"]
    assert 0.02 < off < 0.05 and told.startswith(
        f"'beam' is off by about {off:.0%} of its largest deflection, from t = "
    )
    assert told.endswith("its element is too long for how it is shaken or vibrates; use 2 elements, or converge=1e-2")
    short = parflex.simulate(robot, base, 0.012, step=5e-4, start="rest")
    assert not short.summary["warnings"]  # not yet off
    monkeypatch.setattr("parflex.models.elastic.linear_model.linear_model", refuse)
    assert not parflex.simulate(robot, base, 0.1, step=5e-4, start="rest").summary["warnings"]  # but it ran
