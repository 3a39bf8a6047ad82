"""Robots cut at their beams, for programs and for maps: one cut, held against oracles and against the general path."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
import test_flexible_lagrange as beams
import test_modal_frequencies as plates
from support.comparison import largest, positions, written
from support.flexible_states import reduced
from support.forms_lagrange import BEHIND, held_from_behind
from support.mechanisms import invented
from support.modal_robots import ARM, GRAVITY, lagrange
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.modal_data import invented as invented_modes
from support.oracles.plate_on_beams import gough_stewart_on_beams
from support.oracles.reader import read_robot

import parflex
from parflex import Configuration, Robot, many_frequencies, natural_frequencies
from parflex.maps.batches import Geometry
from parflex.maps.frequencies import FrequencySolver
from parflex.maps.node_unknowns import closing_rank
from parflex.models.cutting import cut_at_beams
from parflex.models.forms.in_pieces.node_equations import accelerations_under, efforts_for, node_state
from parflex.models.forms.in_pieces.pieces import PREFERENCES, pieces, pieces_or_reason

TOLERANCE = 1e-10  # accelerations come out of systems whose condition is up to 1e6
RUBBER = """
[materials.rubber]
elastic_modulus = 7e4
poisson_ratio = 0.3
density = 1500
[sections.bar]
shape = "rectangle"
y = 0.03
z = 0.02
"""
BEAM = 'beam = { length = 0.5, material = "rubber", section = "bar" }'
BODY = "inertia = { mass = 2, centre = [0.1, 0.05, -0.02], about_centre = [0.02, 0.03, 0.04] }"
FLAT = "inertia = { mass = 2, centre = [0.1, 0.05, 0], about_centre = [0.02, 0.03, 0.04] }"
# twists reach the middle link from its end: the piece moves with the root of the second beam
ON_BOTH_SIDES = f"""format = 1
name = "on-both-sides"
gravity = {GRAVITY}
{RUBBER}
[[frame]]
name = "first"
joint = "revolute"
actuated = true
{BEAM}
[[frame]]
name = "arm"
parent = "first.tip"
place = {{ rotation = [0.4, 0.3, -0.2] }}
joint = "revolute"
actuated = true
modal = {{ file = "arm.npz" }}
[[frame]]
name = "last"
parent = "arm"
place = {{ position = [0.5, 0.6, 0], rotation = [0, 1.1, 0.3] }}
joint = "revolute"
{BEAM}
[[frame]]
name = "second"
parent = "arm"
place = {{ position = [0.2, 0.1, 0.1], rotation = [0.1, -0.4, 0.3] }}
{BEAM}
[[frame]]
name = "hand"
parent = "last.tip"
{BODY}
"""
IN_THE_PLANE = f"""format = 1
name = "in-the-plane"
motion = "planar"
gravity = [1.0, -9.81, 0]
{RUBBER}
[[frame]]
name = "arm"
joint = "revolute"
actuated = true
modal = {{ file = "arm.npz" }}
[[frame]]
name = "fore"
parent = "arm"
place = {{ position = [0.5, 0.6, 0], rotation = [0, 0, -0.8] }}
joint = "revolute"
{BEAM}
[[frame]]
name = "hand"
parent = "fore.tip"
{FLAT}
[[point]]
name = "pin"
frame = "base"
position = [0.99, 0.5, 0]
[[closure]]
between = ["hand", "pin"]
joint = "point-on-line"
axis = [0.6, 0.8, 0]
"""
CARRIED_FREELY = f"""format = 1
name = "carried-freely"
gravity = {GRAVITY}
{RUBBER}
[[frame]]
name = "arm"
joint = "revolute"
actuated = true
{BEAM}
[[frame]]
name = "stage"
parent = "arm.tip"
place = {{ position = [0.02, 0.03, -0.01], rotation = [0.4, 0.3, -0.2] }}
joint = "free"
{BODY}
[[frame]]
name = "needle"
parent = "stage"
{BEAM}
"""
# the first loop may take either beam, the second one only the first beam
TWO_LOOPS = f"""format = 1
name = "two-loops"
gravity = {GRAVITY}
{RUBBER}
[[frame]]
name = "arm"
joint = "revolute"
actuated = true
{BEAM}
[[frame]]
name = "hand"
parent = "arm.tip"
{BODY}
[[frame]]
name = "other"
place = {{ position = [0.5, 0.5, 0], rotation = [0, 0, -1.5707963267948966] }}
joint = "revolute"
actuated = true
{BEAM}
[[point]]
name = "end"
frame = "other.tip"
rotation = [0, 0, 1.5707963267948966]
[[point]]
name = "pin"
frame = "base"
position = [0.5, 0, 0]
[[closure]]
between = ["hand", "end"]
joint = "revolute"
axis = [0.6, 0.0, 0.8]
[[closure]]
between = ["hand", "pin"]
joint = "spherical"
"""
ROBOTS = {  # file, and whether a link is given by modes
    "beams on both sides of modes": (ON_BOTH_SIDES, True),
    "modes and a beam in a loop in the plane": (IN_THE_PLANE, True),
    "a link that is free against another": (CARRIED_FREELY, False),
    "a loop that leaves its beam to another loop": (TWO_LOOPS, False),
}


@cache
def pair(case: str) -> tuple[Robot, FlexibleEnergyModel]:
    text, modal = ROBOTS[case]
    path = written(text, Path(mkdtemp()))
    if not modal:
        return parflex.load(path), FlexibleEnergyModel(read_robot(path))
    flat = "planar" in text
    arm = invented_modes(ARM, 5, seed=2, free=False, mass=5.0, held="root", planar=flat)
    arm = replace(arm, stiffnesses=1e-2 * arm.stiffnesses)
    arm.write(path.parent / "arm.npz")
    return parflex.load(path), lagrange(str(path), {"arm": arm}, [1.0, -9.81, 0] if flat else GRAVITY)


@cache
def states(case: str) -> list[dict]:
    rng = np.random.default_rng(6)
    return [beams._state(*pair(case), rng, 0.05) for _ in range(2)]


@pytest.mark.parametrize("preferred", PREFERENCES)
@pytest.mark.parametrize("case", ROBOTS)
def test_programs_in_pieces_move_as_by_lagrange(case, preferred, figure):
    robot, _ = pair(case)
    form = pieces_or_reason(robot, preferred, at_any_cost=True)
    assert not isinstance(form, str), form
    worst, independent = 0.0, form.partition.independent
    for state in states(case):
        wanted = state["accelerations"]
        moving = node_state(form, state["q"], state["rates"][independent])
        found = accelerations_under(moving, state["effort"])
        effort, qdd = efforts_for(moving, wanted[list(robot.actuated)])
        worst = max(worst, largest(found - wanted[independent]) / state["sizes"]["qdd"])
        worst = max(worst, largest(qdd - wanted[independent]) / state["sizes"]["qdd"])
        worst = max(worst, largest(effort - state["effort"]) / state["sizes"]["effort"])
    figure(f"{case}, pieces by {preferred}, against Lagrange", worst, TOLERANCE)
    assert worst < TOLERANCE


def solver_of(robot: Robot, modes: int = 1, lock: str = "actuators") -> FrequencySolver:
    solver = FrequencySolver(Geometry(robot), modes, lock)
    assert solver.assembly is not None, solver.why_not
    return solver


def all_frequencies(robot: Robot, lock: str = "actuators") -> np.ndarray:
    """All frequencies at home, also those that are zero, as maps find them."""
    solver = solver_of(robot, 1, lock)
    K, M = solver.assembly(*solver.places(solver.geometry.home[None]))
    factor = np.linalg.inv(np.linalg.cholesky(M[0]))
    return np.sqrt(np.maximum(np.linalg.eigvalsh(factor @ K[0] @ factor.T), 0)) / (2 * np.pi)


def assert_same(found: np.ndarray, expected: np.ndarray, what: str, figure) -> None:
    assert len(found) == len(expected)
    # rounding of eigenvalues is that of the largest: 1e-16 of its square, 1e-8 of itself, for those that are zero
    error = largest(found - expected) / largest(expected)
    figure(f"{what}: all frequencies in node coordinates, of the largest", error, 1e-7)
    assert error < 1e-7
    moving = expected > 1e-4 * expected[-1]
    assert largest(found[moving] / expected[moving] - 1) < 1e-6  # of their squares 1e-16 / (1e-4)^2, and some more


@pytest.mark.parametrize("case", ROBOTS)
def test_maps_have_the_frequencies_of_lagrange(case, figure):
    robot, oracle = pair(case)
    still = positions(Configuration(robot, robot.home))
    assert_same(all_frequencies(robot), oracle.frequencies(still, robot.actuated_names), case, figure)


@pytest.mark.parametrize("case", BEHIND)
def test_maps_and_programs_know_every_kind_of_closure(case, figure):
    """Frequencies against Lagrange here, motions in `test_flexible_lagrange.py`."""
    robot, _ = held_from_behind(case)
    assert (pieces(robot) is None) == ("led" in case or "table" in case)  # their equations cost less than their rates
    oracle = FlexibleEnergyModel(read_robot(robot.file))
    still = positions(Configuration(robot, robot.home))
    assert_same(all_frequencies(robot), oracle.frequencies(still, robot.actuated_names), case, figure)


def test_a_map_of_a_platform_given_by_modes_equals_direct_stiffness(figure):
    modes, robot = plates.bodies()["plate"], parflex.load("gough-stewart-elastic")
    poses = np.array(list(plates.POSES.values()))
    found = many_frequencies(robot, ["x", "y", "z", "rx", "ry", "rz"], poses, plates.MODES, shapes=True)
    assert found.solver.assembly is not None, found.solver.why_not
    expected = [gough_stewart_on_beams(modes, *plates.place(name)).frequencies(plates.MODES) for name in plates.POSES]
    worst = largest(found.frequencies / np.array(expected) - 1)
    figure("map of a plate on beams: frequencies against direct stiffness", worst, 1e-6)
    assert worst < 1e-8  # as in test_modal_frequencies.py
    general = np.zeros((1, plates.MODES, 6))
    solver = found.solver
    q = solver.geometry.home[None]
    twists = np.zeros((1, plates.MODES, 6))
    solver.full(q, twists)
    solver._general(q, general)
    assert largest(twists[:, :6] - general[:, :6]) < 1e-6 * largest(general)  # apart by 1e-3: 1e-9 / 1e-3


HELD = {"one coordinate": slice(0, 1), "every second": slice(1, None, 2), "all": slice(None)}


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("name", ["three-beam-legs", "spin-up", "bending-satellite"])
def test_locked_coordinates_of_beams_stand_still(name, held, figure):
    """Against the general reduction and its frequencies: the bodies are no longer cut, so nothing else is shared."""
    whole = parflex.load(name if name == "three-beam-legs" else invented(name))
    elastic = list(whole.tree.elastic)
    locked = elastic[HELD[held]]
    robot, rng = whole.locking(locked), np.random.default_rng(8)
    form = pieces_or_reason(robot)
    assert not isinstance(form, str), form
    assert len(form.cut.modal) >= 1 and set(form.partition.independent) <= set(robot.free)
    step = rng.uniform(-1, 1, robot.tree.n) * np.where(np.isin(np.arange(robot.tree.n), elastic), 1e-3, 0.1)
    step[locked] = 0.0
    at = Configuration(robot, robot.tree.moved(robot.home, step))
    rates = at.J @ rng.uniform(-3, 3, at.J.shape[1])
    effort = rng.uniform(-5, 5, len(robot.actuated))
    wanted = reduced(at, rates, effort)[form.partition.independent]
    found = accelerations_under(node_state(form, at.q, rates[form.partition.independent]), effort)
    figure(f"{name}, locked {held}: direct model", largest(found - wanted) / largest(wanted), TOLERANCE)
    assert largest(found - wanted) < TOLERANCE * largest(wanted)
    if held != "all":
        modes = solver_of(robot, 2, "none").full(Geometry(robot).home[None])[0]
        assert modes == pytest.approx(natural_frequencies(robot, modes=2, lock="none").frequencies, rel=1e-7)


def test_a_loop_without_a_beam_is_left_over_and_forms_say_so():
    robot = parflex.load("gough-stewart-flexible")
    cut = cut_at_beams(robot)
    assert not cut.beams and cut.modal and len(cut.left_over) == 5  # six legs, one of which carries the platform
    assert pieces_or_reason(robot) == "a loop has no beam in it" and pieces(robot) is None
    assert closing_rank(cut) == 15 and cut.size - 15 == 16  # three rows each; six motors and ten modes are left


@pytest.mark.parametrize("name", ["gough-stewart-elastic", "navaro", "dualemps"])
def test_every_link_is_in_one_piece_and_every_unknown_is_counted_once(name):
    robot = parflex.load(name)
    for references in ((), [len(robot.tree.links) - 1]):
        cut = cut_at_beams(robot, references)
        reached = [piece.reference for piece in cut.pieces[1:]] + [s.link for p in cut.pieces for s in p.steps]
        assert sorted(reached) == list(range(len(robot.tree.links)))
        slots = [piece.slots for piece in cut.pieces] + [modal.slots for modal in cut.modal]
        slots += [step.slots for piece in cut.pieces for step in piece.steps if not step.tie.node]
        assert sorted(k for own in slots for k in range(own.start, own.stop)) == list(range(cut.size))
