"""Damping of beams, and the papers' approximation of how their ends turn."""

from __future__ import annotations

import numpy as np
import pytest
from support.flexible_states import bent_state

import parflex
from parflex import RobotFileError
from parflex.models.forms.in_pieces.node_equations import accelerations_under, node_state
from parflex.models.forms.in_pieces.pieces import pieces
from parflex.recursion.newton_euler import JOINT_TERMS

CANTILEVER = """
format = 1
name = "cantilever"
[materials.steel]
elastic_modulus = 2.1e11
density = 7850
[sections.bar]
shape = "rectangle"
y = 0.02
z = 0.05
[[frame]]
name = "bar"
beam = { length = 1.0, material = "steel", section = "bar", DAMPING }
"""
# cos x cosh x = -1, and bending of 20 mm steel about its weak axis
FIRST = 1.8751040687**2 * np.sqrt(2.1e11 * 0.02**2 / 12 / 7850)


def cantilever(tmp_path, damping: str, elements: int = 8) -> parflex.Robot:
    file = tmp_path / "cantilever.toml"
    file.write_text(CANTILEVER.replace("DAMPING", damping), encoding="utf-8")
    return parflex.load(file, elements=elements)


def test_rayleigh_damping_gives_each_mode_its_ratio(tmp_path):
    robot = cantilever(tmp_path, "damping = { mass = 3.0, stiffness = 2e-5 }", elements=1)
    found = parflex.natural_frequencies(robot, modes=5)
    omega = 2 * np.pi * found.frequencies
    assert found.damping == pytest.approx((3.0 / omega + 2e-5 * omega) / 2, rel=1e-9)


def test_damping_by_stiffness_is_the_same_for_many_elements(tmp_path):
    found = parflex.natural_frequencies(cantilever(tmp_path, "damping = { stiffness = 2e-5 }"), modes=5)
    assert found.damping == pytest.approx(2e-5 * np.pi * found.frequencies, rel=1e-9)


@pytest.mark.parametrize("elements", [1, 4, 8])
def test_a_ratio_is_that_of_the_first_mode_whatever_the_number_of_elements(tmp_path, elements):
    found = parflex.natural_frequencies(cantilever(tmp_path, "damping = { ratio = 0.02 }", elements), modes=1)
    assert 2 * np.pi * found.frequencies[0] == pytest.approx(FIRST, rel=0.006)  # one element is 0.5 % too stiff
    assert found.damping[0] == pytest.approx(0.02, rel=0.006)


@pytest.mark.parametrize(
    ("damping", "said"),
    [
        ("damping = { mass = -1.0 }", "mass = -1"),
        ("damping = { ratio = 0.1, stiffness = 1e-5 }", "both given"),
        ("damping = { ratios = 0.1 }", "ratios"),
    ],
)
def test_damping_that_cannot_be_is_refused(tmp_path, damping, said):
    with pytest.raises(RobotFileError, match=said):
        cantilever(tmp_path, damping)


def difference_of_turns(name: str, bend: float) -> float:
    """Relative difference of the accelerations with both kinds of turns, in the same state."""
    exact = parflex.load(name)
    state = bent_state(exact, np.random.default_rng(2), bend)
    found = []
    for robot in (exact, parflex.load(name, settings={"rotations": "papers"})):
        form = pieces(robot)
        rates = state["rates"][form.partition.independent]
        found.append(accelerations_under(node_state(form, state["q"], rates, JOINT_TERMS), state["effort"]))
    return float(np.abs(found[0] - found[1]).max() / np.abs(found[0]).max())


def test_the_turns_of_the_papers_are_exact_in_the_plane():
    assert difference_of_turns("dualemps", 0.1) < 1e-12


def test_in_space_they_are_off_by_the_first_order_of_the_bending(figure):
    small, large = difference_of_turns("three-beam-legs", 1e-4), difference_of_turns("three-beam-legs", 1e-3)
    figure("turns of the papers in space, bent by 0.001 rad: relative difference", large)
    assert 1e-6 < small < 1e-3
    assert 5 < large / small < 20
