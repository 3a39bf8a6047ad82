"""Robots cut at their beams, as maps solve them: all frequencies against oracles and against the general reduction."""

import numpy as np
import pytest
from support.comparison import accelerated, largest, positions
from support.forms_lagrange import BEHIND, CUT, pair_in_pieces
from support.modal_robots import MODES, POSES, bodies, place
from support.oracles.plate_on_beams import gough_stewart_on_beams
from support.robots import any_robot

import parflex
from parflex.formulations.substructure_equations import accelerations_under, substructure_state
from parflex.maps.frequencies import FrequencySolver
from parflex.maps.kinematics import Geometry
from parflex.robot.substructures import substructures_or_reason

TOLERANCE = 1e-10  # accelerations come out of systems whose condition is up to 1e6


def all_frequencies(robot: parflex.Robot) -> np.ndarray:
    """All frequencies at home with the motors locked, also those that are zero, as maps compute them."""
    solver = FrequencySolver(Geometry(robot), 1, "actuators")
    assert solver.assembly is not None, solver.why_not
    K, M = solver.assembly(*solver.places(solver.geometry.home[None]))
    factor = np.linalg.inv(np.linalg.cholesky(M[0]))
    return np.sqrt(np.maximum(np.linalg.eigvalsh(factor @ K[0] @ factor.T), 0)) / (2 * np.pi)


@pytest.mark.parametrize("case", [*CUT, *BEHIND])
def test_maps_have_the_frequencies_of_lagrange(case, figure):
    """Of every kind of closure; motions are proven in `dynamics/test_flexible_robots.py`."""
    robot, oracle = pair_in_pieces(case)
    if case in BEHIND:  # forms leave closures to the general form whose equations cost less than their rates
        assert isinstance(substructures_or_reason(robot), str) == ("led" in case or "table" in case)
    found = all_frequencies(robot)
    expected = oracle.frequencies(positions(parflex.Configuration(robot, robot.home)), robot.motors)
    assert len(found) == len(expected)
    # rounding of eigenvalues is that of the largest: 1e-16 of its square, 1e-8 of itself, for those that are zero
    error = largest(found - expected) / largest(expected)
    figure.below(f"{case}: all frequencies in node coordinates, of the largest", error, 1e-7)
    moving = expected > 1e-4 * expected[-1]
    assert largest(found[moving] / expected[moving] - 1) < 1e-6  # of their squares 1e-16 / (1e-4)^2, and some more


def test_a_map_of_a_platform_given_by_modes_equals_direct_stiffness(figure):
    poses, modes = np.array(list(POSES.values())), bodies()["plate"]
    robot = parflex.load("gough-stewart-elastic")
    found = parflex.many_frequencies(robot, ["x", "y", "z", "rx", "ry", "rz"], poses, MODES, shapes=True)
    assert found.solver.assembly is not None, found.solver.why_not
    expected = [gough_stewart_on_beams(modes, *place(name)).frequencies(MODES) for name in POSES]
    worst = largest(found.frequencies / np.array(expected) - 1)
    figure.below("map of a plate on beams: frequencies against direct stiffness", worst, 1e-8)


HELD = {"one coordinate": slice(0, 1), "every second": slice(1, None, 2), "all": slice(None)}


@pytest.mark.few("three-beam-legs-one", "spin-up-every", "satellite-all")
@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("name", ["three-beam-legs", "spin-up", "bending-satellite"])
def test_locked_coordinates_of_beams_stand_still(name, held, figure):
    """Against the general reduction and its frequencies: the bodies are no longer cut, so nothing else is shared."""
    whole = any_robot(name)
    elastic = list(whole.tree.elastic)
    locked = elastic[HELD[held]]
    robot, rng = whole.locking(locked), np.random.default_rng(8)
    form = substructures_or_reason(robot)
    assert not isinstance(form, str), form
    own = form.partition.independent
    assert set(own) <= set(robot.free)
    step = rng.uniform(-1, 1, robot.nv) * np.where(np.isin(np.arange(robot.nv), elastic), 1e-3, 0.1)
    step[locked] = 0.0
    at = parflex.Configuration(robot, robot.tree.moved(robot.home, step))
    rates, effort = at.J @ rng.uniform(-3, 3, at.J.shape[1]), rng.uniform(-5, 5, robot.nu)
    wanted = accelerated(at, rates, effort).accelerations[own]
    found = accelerations_under(substructure_state(form, at.q, rates[own]), effort)
    figure(f"{name}, locked {held}: direct model", largest(found - wanted) / largest(wanted), TOLERANCE)
    assert largest(found - wanted) < TOLERANCE * largest(wanted)
    if held != "all":
        solver = FrequencySolver(Geometry(robot), 2, "none")
        modes = solver.full(solver.geometry.home[None])[0]
        assert modes == pytest.approx(parflex.natural_frequencies(robot, modes=2, lock="none").frequencies, rel=1e-7)


def test_a_loop_without_a_beam_leaves_the_general_form():
    assert substructures_or_reason(parflex.load("gough-stewart-flexible")) == "a loop has no beam in it"
