"""Modes at many poses where very stiff springs and light bodies stand beside soft ones: against matrices by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from support.ball_arm import BALL_ARM

import parflex

SOFT = ((1000.0, 1.0), (500.0, 2.0))  # springs and inertias behind the stiff one


def chain(folder, inertia: float, stiffness: float) -> parflex.Robot:
    text, parent = 'format = 1\nname = "chain"\n', "m"
    text += (
        '[[frame]]\nname = "m"\njoint = "revolute"\nactuated = true\ninertia = { mass = 1, about_centre = [1, 1, 1] }\n'
    )
    for number, (k, J) in enumerate(((stiffness, inertia), *SOFT)):
        text += f'[[frame]]\nname = "s{number}"\nparent = "{parent}"\njoint = "revolute"\n'
        text += f"spring = {{ stiffness = {k}, rest = 0 }}\n"
        text += f"inertia = {{ mass = {J}, about_centre = [{J}, {J}, {J}] }}\n"
        parent = f"s{number}"
    file = folder / "chain.toml"
    file.write_text(text)
    return parflex.load(file)


@pytest.mark.parametrize(
    ("inertia", "stiffness"), [(1e-3, 1e10), (1e-3, 1e12), (1e-3, 1e14), (1e-9, 1e6), (1e-12, 1e6)]
)
@pytest.mark.parametrize("poses", [4, 210])  # whole matrices, and steps
def test_soft_modes_beside_stiff_springs_are_neither_lost_nor_blurred(inertia, stiffness, poses, tmp_path):
    robot = chain(tmp_path, inertia, stiffness)
    (k1, J1), (k2, J2) = SOFT
    K = np.array([[stiffness + k1, -k1, 0], [-k1, k1 + k2, -k2], [0, -k2, k2]])
    shares = scipy.linalg.eigh(np.diag([inertia, J1, J2]), K, eigvals_only=True)  # the lowest modes are the largest
    exact = 1 / np.sqrt(shares[:0:-1]) / (2 * np.pi)
    found = parflex.many_frequencies(robot, ["m"], np.linspace(-1, 1, poses)[:, None], modes=2)
    assert not found.status.any()
    # K by hand adds k1 to the stiff one: 1e3 of 1e14 keeps five digits, which count for 1e-11 of the soft modes
    assert np.abs(found.frequencies / exact - 1).max() < 1e-9
    if poses == 4:
        single = parflex.natural_frequencies(robot, {"m": 0.5})
        assert not single.free_motions and np.abs(single.frequencies[:2] / exact - 1).max() < 1e-9


def test_modes_beside_a_free_motion_keep_their_digits_with_many_elements(tmp_path):
    """LAPACK's errors are shares of the highest mode, and 64 elements make that 1e6 times the lowest."""
    (tmp_path / "ball-arm.toml").write_text(BALL_ARM)
    fine, coarse = (parflex.load(tmp_path / "ball-arm.toml", elements=count) for count in (64, 16))
    poses = [[0.0], [0.3], [0.6]]
    many = parflex.many_frequencies(fine, ["arm"], poses, modes=3).frequencies
    # sixteen elements are converged to 1e-8 in the lowest mode, and few enough for single calls to be exact
    single = [parflex.natural_frequencies(coarse, {"arm": arm}, modes=1).frequencies[0] for (arm,) in poses]
    assert many[:, 0] == pytest.approx(single, rel=5e-8)
