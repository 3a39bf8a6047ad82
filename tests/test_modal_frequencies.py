"""Frequencies of robots with bodies given by modes, against direct stiffness with the modes as unknowns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import CATALOGUE
from support.comparison import largest
from support.modal_robots import MODES, POSES, PRINTED_STIFFNESS, bodies, place, steadily_bent, with_platform
from support.oracles.modal_data import read_modes
from support.oracles.plate_on_beams import gough_stewart_on_beams

import parflex
from parflex import natural_frequencies
from parflex.models.elastic.driven_frame import held_frame


def pose(name: str) -> dict[str, float]:
    return dict(zip(("x", "y", "z", "rx", "ry", "rz"), POSES[name], strict=True))


@pytest.mark.parametrize("body", bodies())
def test_a_flexible_platform_on_flexible_legs_equals_direct_stiffness(body, tmp_path, figure):
    modes = bodies()[body]
    plate = body == "plate"
    robot = parflex.load("gough-stewart-elastic") if plate else with_platform(tmp_path, "gough-stewart-beams", modes)
    worst = 0.0
    for name in POSES:
        result = natural_frequencies(robot, pose(name), modes=MODES)
        expected = gough_stewart_on_beams(modes, *place(name)).frequencies(MODES)
        assert not result.free_motions
        worst = max(worst, largest(result.frequencies / expected - 1))
    figure(f"{body} on beam legs: frequencies against direct stiffness over {len(POSES)} poses", worst, 1e-6)
    assert worst < 1e-8  # asked for: 1e-6; eigenvalues up to 1e9 times the lowest leave 1e-9
    rigid = gough_stewart_on_beams(replace(modes, stiffnesses=1e6 * modes.stiffnesses), *place("home")).frequencies(6)
    assert largest(expected[:6] / rigid - 1) > 0.3  # the platform matters


DOWN = (0.0, 0.0, -9.81)
PLATE = read_modes(CATALOGUE / "hexagon-plate.npz")
ORIGIN = PLATE.names.index("origin")


@pytest.mark.parametrize("pose", ["home", "table-4"])
def test_the_platform_of_long2014_sags_as_the_errata_say(pose, tmp_path, figure):
    """z of Phi_d(origin) q_e in platform axes, with the frame of the platform held at the pose of Table 4."""
    robot = with_platform(tmp_path, "gough-stewart", PLATE, DOWN, stiffness=PRINTED_STIFFNESS)
    _, e = steadily_bent(robot, pose)
    catalogue = parflex.load("gough-stewart-flexible")
    held = dict(zip(catalogue.tree.position_names, held_frame(catalogue, pose).configuration.q, strict=True))
    assert [held[f"platform.mode{k + 1}"] for k in range(10)] == pytest.approx(e, abs=1e-9 * largest(e))
    down = 1e3 * np.tensordot(e, PLATE.shapes, axes=1)[:, 2]
    figure("sag at the origin of the platform of Long2014, mm", float(down[ORIGIN]), -0.386)
    figure("deflection of its attachments, mm", str(np.round(down[:6], 2)))
    assert down[ORIGIN] == pytest.approx(-0.386, rel=0.01)  # asked for; the errata give three digits
    assert largest(down[:6]) == pytest.approx(13, abs=0.5)  # the errata give two digits
    # only a mode with the symmetry of the plate moves its centre, and the legs carry its weight whatever they weigh
    even = PLATE.masses.sum() * 9.81 / 6
    alone = 1e3 * PLATE.shapes[:, ORIGIN, 2] @ (PLATE.shapes[:, :6, 2].sum(axis=1) * even / PRINTED_STIFFNESS)
    assert down[ORIGIN] == pytest.approx(alone, rel=1e-4)  # the attachments give way: leg forces turn a little
