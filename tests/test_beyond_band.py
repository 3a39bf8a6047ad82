"""Frequencies of reduced beams: how much too high they are is estimated, and told beyond the band of the reduction."""

import numpy as np
import pytest
from support import bars

import parflex
from parflex.models.vibration.beyond_band import band_warnings
from parflex.simulation.refining.strain_content import content_warnings

ROOTS = (1.8751040687119611, 4.694091132974175, 7.854757438237613, 10.995540734875467, 14.13716839104647)
TIP = '[[frame]]\nname = "tip"\nparent = "bar.tip"\ninertia = { mass = 1e-9 }\n'
HINGED = bars.CANTILEVER.replace('name = "bar"', 'name = "bar"\njoint = "revolute"\nactuated = true')


def reduced(folder, elements=8, error=5, band=50, text=bars.CANTILEVER, **words):
    own = f'"bar", elements = {elements}, reduce = {{ error = {error}, band = {band} }} }}'
    return bars.robot(folder, text.replace('"bar" }', own) + TIP, **words)


@pytest.mark.parametrize("motion", ["planar", "spatial"])
def test_the_excess_of_a_reduced_beam_is_how_much_too_high_it_is(tmp_path, motion, figure):
    """Beside the cantilever itself. An estimate of first order: within a tenth below 5 %, and no less beyond."""
    robot = reduced(tmp_path, band=50, motion=motion)
    modes = parflex.natural_frequencies(robot, modes=4 if motion == "planar" else 6)
    across = [bars.bending(root) for root in ROOTS]
    stiff = np.sqrt(bars.IY / bars.IZ)  # along the other side of the section
    exact = np.sort([*across, *(f * stiff for f in across * (motion == "spatial"))])[: len(modes.frequencies)]
    off = modes.frequencies / exact - 1
    small = off < 0.05
    figure("largest error that is estimated", float(off[small].max()))
    assert small.sum() >= 2 and off[small] == pytest.approx(modes.excess[small], rel=0.1)
    assert (~small).any() and (modes.excess[~small] > 0.9 * off[~small]).all()


def test_beyond_the_band_frequencies_have_their_bound_and_a_warning(tmp_path):
    robot, full = reduced(tmp_path), bars.cantilever(tmp_path, elements=8)
    found, whole = (parflex.natural_frequencies(one, modes=4) for one in (robot, full))
    left_out = robot.tree.links[0].body.reduced.left_out
    assert (whole.frequencies >= found.frequencies / np.sqrt(1 + (found.frequencies / left_out) ** 2)).all()
    (told,) = [word for word in found.model.warnings if "beyond the band of 50 Hz" in word]
    most = 100 * (np.sqrt(1 + (found.frequencies[-1] / left_out) ** 2) - 1)
    assert told.startswith("modes 2 to 4") and f"up to {most:.3g} % higher" in told and "'bar'" in told
    assert not parflex.natural_frequencies(robot, modes=1).model.warnings
    assert "a band of 130 Hz" in band_warnings(robot, np.array([20.0, 121.0]))[0]


def test_maps_and_sensitivities_tell_of_frequencies_beyond_the_band(tmp_path):
    robot = reduced(tmp_path, text=HINGED)
    poses = np.array([[0.1], [0.3]])
    with pytest.warns(parflex.ParflexWarning, match="frequencies of the map .* beyond the band of 50 Hz"):
        parflex.many_frequencies(robot, ["bar"], poses, modes=2)
    with pytest.warns(parflex.ParflexWarning, match="frequencies of the map .* beyond the band of 50 Hz"):
        parflex.many_responses(robot, ["bar"], poses, ["frequency:2", "stiffness:y"])
    with pytest.warns(parflex.ParflexWarning, match="frequencies of the map"):
        parflex.frequency_map(robot, [("bar", 0.1, 0.3, 2)], modes=2)
    with pytest.warns(parflex.ParflexWarning, match="frequency:2 .* beyond the band of 50 Hz"):
        parflex.sensitivities(robot, "frequency:2", ["frame.tip.inertia.mass"])


def test_a_run_tells_what_its_reduction_does_not_follow(tmp_path):
    """A run in one mode: the third is near the lowest that is left out, the first far below."""
    robot = reduced(tmp_path, error=20, band=50)
    modes = parflex.natural_frequencies(robot, modes=3)

    def told(mode):
        omega, shape = 2 * np.pi * modes.frequencies[mode], 1e-4 * modes.shapes[:, mode]
        t = np.linspace(0, 4 * np.pi / omega, 81)
        q, qd = robot.home + np.outer(np.cos(omega * t), shape), -omega * np.outer(np.sin(omega * t), shape)
        columns = {f"q.{name}": q[:, k] for k, name in enumerate(robot.tree.position_names)}
        columns |= {f"qd.{name}": qd[:, k] for k, name in enumerate(robot.tree.position_names)}
        return content_warnings(robot, columns)

    (fast,) = told(2)
    assert "its reduction leaves out" in fast and "give 'reduce' a higher band" in fast
    assert not told(0)
