"""Steps of runs that give none under smooth inputs: vibrations by pulses, ramps and motions against Duhamel's integral.

Inputs without jumps excite modes too. With the step of all runs (0.5 ms) and 500 Hz the runs here are off by more than
the whole vibration.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.driven_beam import BEAM
from support.oracles.vibrations import clamped_free, duhamel
from support.slider import SLIDER

import parflex
from parflex.simulation.inputs.polynomials import Polynomials, linear
from parflex.simulation.step_lengths import step_choice
from parflex.simulation.step_lengths.driven_modes import driven_amplitudes

FINE = 1e-6  # s: of Duhamel's sums
TIME = 0.1


def amplitude(push, omega, time=TIME):
    free, moved = driven_amplitudes(push, np.ones((1, 1)), np.array([omega]), time, np.ones(1))
    return float(free[0]), float(moved[0])


@pytest.mark.parametrize("rise", [1e-7, 1e-4, 9e-4, 2.3e-3, 0.02])
def test_a_ramp_leaves_the_vibration_of_the_closed_form(rise):
    omega = 3000.0
    ramp = linear(np.array([0.0, 0.01, 0.01 + rise]), np.array([[0.0], [0.0], [5.0]]))
    half = omega * rise / 2
    # what is left behind it; on the way up it is that of the kink, 5/(omega^3 rise)
    left = 5 / omega**2 * max(abs(np.sin(half) / half), 0.5 / half if omega * rise > 2 else 0.0)
    assert amplitude(ramp, omega)[0] == pytest.approx(left, rel=1e-6)


def test_the_vibration_under_random_polynomials_is_that_of_duhamel():
    draw = np.random.default_rng(3)
    for pieces in (1, 4, 30, 300):
        breaks = np.concatenate([[0.0], np.sort(draw.uniform(0, 0.05, pieces - 1))])
        lengths = np.diff(np.append(breaks, 0.05))
        powers = np.arange(6)
        parts = draw.normal(size=(pieces, 6)) / lengths[:, None] ** powers
        held = np.zeros((1, 6, 1))  # behind 0.05 s nothing acts: all that moves is free
        push = Polynomials(np.append(breaks, 0.05), np.concatenate([parts[:, :, None], held]))
        times = np.arange(0, 0.05 + FINE / 8, FINE / 4)
        which = np.clip(np.searchsorted(breaks, times, side="right") - 1, 0, pieces - 1)
        force = ((times - breaks[which])[:, None] ** powers * parts[which]).sum(axis=1) - parts[0, 0]
        for omega in draw.uniform(300, 30_000, 4):
            x, rate = duhamel(omega, force, FINE / 4)
            left = np.hypot(x[-1] + parts[0, 0] / omega**2, rate[-1] / omega)  # about what held it at first
            free, moved = amplitude(push, omega, 0.06)
            assert free >= left * (1 - 1e-2)  # jumps are up to a quarter of a microsecond late in the sums
            whole = np.hypot(x, rate / omega).max()
            assert whole / 3 < moved < 1.01 * whole + 1e-12 or pieces < 4  # at ends of pieces


def test_slow_inputs_leave_nothing_however_they_are_given():
    """Tables in rows much shorter than a period too: the vibration is far below the deflection."""
    for rows in (1e-2, 1e-3, 1e-4, 1e-5):
        t = np.arange(0, TIME + rows / 2, rows)
        u = t / TIME
        slow = linear(t, (35 * u**4 - 84 * u**5 + 70 * u**6 - 20 * u**7)[:, None])
        free, moved = amplitude(slow, 3000.0)
        # the static deflection at the end of the push, and up to 1 % of vibration by the kinks of the coarsest rows
        assert moved == pytest.approx(1 / 3000.0**2, rel=1e-2)
        assert free < (2e-2 if rows > 1e-3 else 1e-3) * moved  # kinks of rows of 10 ms are there


def slid(tmp_path, **given):
    path = tmp_path / "stiff.toml"
    path.write_text(
        SLIDER.replace("5e5", repr(2 * (2 * np.pi * 500) ** 2)).replace('"s"\njoint', '"s"\nactuated = true\njoint')
    )
    return parflex.simulate(parflex.load(path), None, TIME, out_step=1e-3, **given)


PULSES = {
    "gauss": lambda t: 2000 * np.exp(-(((t - 0.01) / 0.0006) ** 2)),
    "sine squared": lambda t: 2000 * np.sin(np.pi * np.clip((t - 0.01) / 0.0015, 0, 1)) ** 2,
    "triangle": ([0, 0.01, 0.011, 0.012, 0.1], [0, 0, 2000, 0, 0]),
    "step in 1 us": ([0, 0.01, 0.010001, 0.1], [0, 0, 2000, 2000]),
    "swelling sine": lambda t: 2000 * t * np.sin(2 * np.pi * 430 * t),
}


def against_duhamel(run, effort):
    """The error and the largest motion of the slider."""
    times = np.arange(0, TIME + FINE / 2, FINE)
    force = effort(times) if callable(effort) else np.interp(times, *effort)
    x, _ = duhamel(2 * np.pi * 500, force / 2, FINE)
    return np.abs(run["q.s"] - x[np.round(run.t / FINE).astype(int)]).max(), np.abs(x).max()


@pytest.mark.parametrize("kind", list(PULSES))
def test_smooth_efforts_get_steps_that_follow_what_they_excite(kind, tmp_path):
    run = slid(tmp_path, effort={"s": PULSES[kind]})
    off, largest = against_duhamel(run, PULSES[kind])
    assert off < 0.01 * largest  # as the steps are chosen for
    assert "500 Hz, which the inputs excite" in run.summary["step_choice"] and run.summary["step"] > 5e-5


def test_two_rows_at_one_time_are_a_jump_and_rows_that_go_back_are_named(tmp_path):
    run = slid(tmp_path, effort={"s": ([0, 0.01, 0.01, 0.1], [0, 0, 2000, 2000])})
    since = np.maximum(run.t - 0.01, 0)
    rest = 2000 / (2 * (2 * np.pi * 500) ** 2)
    assert np.abs(run["q.s"] - rest * (1 - np.cos(2 * np.pi * 500 * since))).max() < 0.01 * rest  # as steps are chosen
    with pytest.raises(parflex.InputError, match=r"row 3 is at 0\.01 s, behind 0\.02 s"):
        slid(tmp_path, effort={"s": ([0, 0.02, 0.01], [0, 0, 1])})


def test_a_slow_effort_keeps_the_step_of_all_runs(tmp_path):
    def slow(t):
        return 2000 * np.sin(np.pi * np.clip((t - 0.01) / 0.08, 0, 1)) ** 2

    run = slid(tmp_path, effort={"s": slow})
    off, largest = against_duhamel(run, slow)
    assert run.summary["step"] == step_choice.STEP and off < 0.01 * largest


def test_a_robot_too_large_for_its_frequencies_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("parflex.simulation.step_lengths.default_step.MOST_COORDINATES", 0)
    run = slid(tmp_path, effort={"s": PULSES["gauss"]})
    told = [words for words in run.summary["warnings"] if "are not known: give a step" in words]
    assert len(told) == 1 and "the frequencies of 1 coordinates" in told[0] and "0.0005 s" in told[0]


def test_modes_that_cannot_be_told_apart_are_said(tmp_path, monkeypatch):
    def all_alike(matrix):
        return np.ones(len(matrix)), np.zeros(matrix.shape)

    monkeypatch.setattr(np.linalg, "eig", all_alike)
    run = slid(tmp_path, effort={"s": PULSES["gauss"]})
    told = [words for words in run.summary["warnings"] if "are not known: give a step" in words]
    assert len(told) == 1 and told[0].startswith("the steps of 0.0005 s follow no vibration")


def shaken(tmp_path, thickness, motion, base, force, **given):
    """Error of the tip, its largest vibration, and the run; `base` and `force` are accelerations of the carriage, N."""
    path = tmp_path / "stub.toml"
    path.write_text(BEAM.format(thickness=thickness))
    run = parflex.simulate(parflex.load(path), motion, TIME, out_step=1e-3, **given)
    times = np.arange(0, TIME + FINE / 2, FINE)
    area = thickness * 0.02
    modes = clamped_free(0.1, 210e9 * area * thickness**2 / 12, 7850 * area, 5)
    tip = sum(
        duhamel(omega, by_base * base(times) + by_tip * force(times), FINE)[0] for omega, by_base, by_tip in modes
    )
    bent = run["arm.tip.x"] - run["q.car"] - run["arm.tip.x"][0]
    return np.abs(bent - tip[np.round(run.t / FINE).astype(int)]).max(), np.abs(tip).max(), run


def septic(duration, way):
    """The acceleration of a smooth motion."""

    def acceleration(t):
        u = np.clip(t / duration, 0, 1)
        return way * (420 * u**2 - 1680 * u**3 + 2100 * u**4 - 840 * u**5) / duration**2

    return acceleration


def nothing(t):
    return 0 * t


def test_a_fast_smooth_motion_shakes_what_it_carries(tmp_path):
    path = tmp_path / "carried.toml"
    stiff = SLIDER.replace("5e5", repr(2 * (2 * np.pi * 500) ** 2))
    carriage = stiff[: stiff.index("spring")].replace('"s"', '"car"\nactuated = true')
    mass = stiff[stiff.index("[[frame]]") :].replace('place = { rotation = [0, "pi/2", 0] }', 'parent = "car"')
    path.write_text(carriage + mass)
    motion = {"joints": [{"car": 0}, {"car": 0.002}], "law": "septic", "duration": 0.003}
    run = parflex.simulate(parflex.load(path), motion, TIME, out_step=1e-3)
    times = np.arange(0, TIME + FINE / 2, FINE)
    x, _ = duhamel(2 * np.pi * 500, -septic(0.003, 0.002)(times), FINE)
    assert np.abs(run["q.s"] - x[np.round(run.t / FINE).astype(int)]).max() < 0.01 * np.abs(x).max()
    assert "which the inputs excite" in run.summary["step_choice"] and run.summary["warnings"] == []


@pytest.mark.verify
@pytest.mark.parametrize("kind", ["motion", "function", "table", "sines"])
def test_beams_shaken_at_random_follow_their_modes(kind, tmp_path, figure):
    draw = np.random.default_rng(["motion", "function", "table", "sines"].index(kind))
    still = {"joints": [{"car": 0}, {"car": 0}], "duration": TIME}
    worst = 0.0
    for _ in range(4):
        thickness = draw.uniform(0.003, 0.012)  # 250 to 1000 Hz
        length = draw.uniform(0.3, 1.5) * 0.1 / (thickness / 0.006) / 50  # of the pulse: 0.3 to 1.5 periods
        motion, base, force, given = still, nothing, nothing, {}
        if kind == "motion":
            motion = {"joints": [{"car": 0}, {"car": 0.001}], "law": "septic", "duration": 2 * length}
            base = septic(2 * length, 0.001)
        elif kind == "sines":
            frequency = 501 * thickness / 0.006 * draw.uniform(0.3, 0.9)
            motion = {"sines": {"car": [1e-5]}, "frequency": frequency, "duration": TIME}

            def base(t, w=2 * np.pi * frequency):
                return -1e-5 * w**2 * np.sin(w * t)
        elif kind == "function":

            def force(t, length=length):
                return 5 * np.exp(-(((t - 0.02) / length) ** 2))

            given = {"wrench": {"arm.tip": lambda t, force=force: [float(force(t)), 0, 0]}}
        else:
            rows = [0, 0.02, 0.02 + length, 0.02 + 1.3 * length, TIME], [0, 0, 5, -2, -2]

            def force(t, rows=rows):
                return np.interp(t, *rows)

            given = {"wrench": {"arm.tip": (rows[0], [[value, 0, 0] for value in rows[1]])}}
        off, largest, _ = shaken(tmp_path, thickness, motion, base, force, **given)
        worst = max(worst, float(off / largest))
    figure(f"beam shaken by a {kind}, error in parts of the vibration", worst, 0.04)
    assert worst < 0.04  # 1 % by the steps, and shear and turning of the thickest sections in the modes
