"""Beams of many elements, reduced to their ends and a few modes: matrices, statics, the bound, programs."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.command_line import answered, refused
from support.flexible_states import bent_state
from support.oracles.beam_element import Bar
from support.oracles.beam_robots import tube
from support.oracles.chains import assembly, chain, clamped, moving_energy, shortening

import parflex
from parflex import Configuration, InputError, Robot, RobotFileError
from parflex.bodies import sections
from parflex.bodies.beam import Material, Section
from parflex.bodies.elastic_body import ElasticBody
from parflex.bodies.reduced_link import frequency_bound, lowest_left_out, reduced_link
from parflex.models.dynamics.forces import tree_newton_euler
from parflex.models.explaining.reductions import reduction_of, without_reduction
from parflex.models.forms.in_pieces.node_equations import accelerations_under, efforts_for, node_state
from parflex.models.forms.in_pieces.pieces import PREFERENCES, pieces
from parflex.models.inside_beams.beam_chains import FORCES
from parflex.models.inside_beams.beam_loads import loads_of_beams
from parflex.models.loading import redesigned
from parflex.recursion import pose as pose_of
from parflex.recursion.newton_euler import JOINT_TERMS
from parflex.view.scene.elastic_points import points_of_body

ROOT = Path(__file__).parents[1]
LENGTH = 0.6
STEEL = Material(210e9, 210e9 / 2.6, 7850)
FLAT = Section(4e-4, 3.333e-9, 5.333e-8, 1.123e-8, 7e-8, 0.8, 0.7)  # its polar moment is none of a flat section
PIPE = sections.SHAPES["tube"](diameter=0.05, thickness=0.008)


def flat(**more: object) -> Bar:
    section = FLAT
    values = (section.A, section.Iy, section.Iz, section.J, section.Ip)
    return Bar(STEEL.E, STEEL.G, STEEL.density, *values, **more)  # type: ignore[arg-type]


SHEARED = {"shear_y": FLAT.ky * FLAT.A, "shear_z": FLAT.kz * FLAT.A}
CASES = {
    "tube": (PIPE, {"rotary_inertia": True}, tube(0.05, 0.008)),
    "flat": (FLAT, {}, flat()),
    "thick": (FLAT, {"rotary_inertia": True, "shear": True}, flat(rotary=True, **SHEARED)),
    "rolled": (FLAT, {"roll": 0.4, "shear": True}, flat(**SHEARED)),
}


def body_of(case: str, elements: int, error: float, band: float) -> ElasticBody:
    section, choices, _ = CASES[case]
    return reduced_link(LENGTH, STEEL, section, elements, error, band, **choices)


# -- the body ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("elements", [2, 5, 16])
def test_a_reduced_beam_vibrates_as_the_matrices_of_craig_and_bampton(case, elements, figure):
    """Clamped at its root, and held at both ends, against a chain of elements that shares no code."""
    body = body_of(case, elements, 1.0, 150.0)
    own = chain(LENGTH, CASES[case][2], elements)
    held = np.sqrt(own.held()[0]) / (2 * np.pi)
    kept = body.held
    assert np.all(held[:kept] < lowest_left_out(1.0, 150.0))
    assert body.reduced.left_out == pytest.approx(held[kept] if kept < len(held) else np.inf, rel=1e-9)
    M = body.inertia_matrix(np.zeros(body.size))
    inner = np.sqrt(np.diag(body.K)[6:] / np.diag(M)[12:]) / (2 * np.pi)
    found = clamped(np.pad(body.K, ((6, 0), (6, 0))), M)
    wanted = clamped(*own.reduced(kept))
    worst = max(np.abs(inner / held[:kept] - 1).max(initial=0), np.abs(found / wanted - 1).max())
    figure(f"reduced beam, {case}, {elements} elements: frequencies", worst, 1e-9)
    assert worst < 1e-9  # the matrices have condition numbers of 1e6
    assert np.linalg.eigvalsh(M).min() > 0


def test_without_modes_a_reduced_beam_is_one_element():
    body, one = body_of("thick", 16, 1e6, 1.0), body_of("thick", 1, 0.1, 50.0)
    assert body.held == 0
    for name in ("S", "G", "K", "D", "spin"):
        assert np.array_equal(getattr(body, name), getattr(one, name))


@pytest.mark.parametrize("case", ["flat", "tube"])
def test_energies_of_a_bent_reduced_beam_are_those_of_its_points(case, figure):
    """Far from small deflections, where every integral counts; sections are slices without rotary inertia."""
    section, _, bar = CASES[case]
    body = reduced_link(LENGTH, STEEL, section, 8, 0.1, 150.0)
    rng = np.random.default_rng(5)
    e, ed, v, w = rng.uniform(-0.3, 0.3, body.size), rng.uniform(-2, 2, body.size), *rng.uniform(-3, 3, (2, 3))
    shapes, places = body.inner.shapes, np.linspace(0, LENGTH, 9)
    wanted = moving_energy(bar, places, shapes @ e, shapes @ ed, v, w)
    worst = abs(body.kinetic_energy(v, w, e, ed) / wanted - 1)
    figure(f"kinetic energy of a reduced beam by quadrature, {case}", worst, 1e-11)
    assert body.held >= 3 and worst < 1e-11
    strain = body.strains[0]
    assert e @ strain.H @ e == pytest.approx(shortening(places, shapes @ e), rel=1e-7)  # by differences
    assert strain.k == pytest.approx(STEEL.E * section.A / LENGTH)


def test_modes_are_as_few_as_the_error_allows():
    for error, band in ((0.1, 200.0), (0.02, 80.0), (5.0, 300.0)):
        body = body_of("tube", 16, error, band)
        held = np.sqrt(chain(LENGTH, CASES["tube"][2], 16).held()[0]) / (2 * np.pi)
        assert body.reduced.bound <= error * (1 + 1e-12)
        assert body.reduced.bound == pytest.approx(frequency_bound(band, held[body.held]), rel=1e-8)
        assert frequency_bound(band, held[body.held - 1]) > error  # with one mode less


def test_a_reduced_beam_is_damped_as_its_elements():
    damped = reduced_link(LENGTH, STEEL, FLAT, 4, 1.0, 50.0, damping=(2.0, 1e-4))
    K, inner = damped.K, slice(6, None)
    stiff = reduced_link(LENGTH, STEEL, FLAT, 4, 1.0, 50.0, damping=(0.0, 1e-4))
    assert np.allclose(stiff.D, 1e-4 * K, rtol=1e-14)
    assert stiff.strains[0].c == 1e-4 * stiff.strains[0].k
    assert np.linalg.eigvalsh(damped.D - stiff.D)[0] > 0 and damped.D[inner, inner].any()


# -- the bound -----------------------------------------------------------------------------------------------------


def test_the_bound_holds_for_random_assemblies(figure):
    """Beams whose ends sit on random springs, masses and ties; all modes below those left out."""
    rng = np.random.default_rng(11)
    sharpest = 0.0
    for _ in range(40):
        chains = [chain(length, tube(0.05, 0.008), 6) for length in rng.uniform(0.3, 1.0, rng.integers(1, 3))]
        full, reduced, mu = assembly(rng, chains, [int(k) for k in rng.integers(0, 9, len(chains))])
        for exact, found in zip(full, reduced, strict=False):
            if exact < 0.9 * mu:
                f, cut = np.sqrt(max(exact, 0.0)), np.sqrt(mu)
                bound, error = frequency_bound(f, cut), np.sqrt(found) - f
                assert -1e-6 * f < error <= bound + 1e-6 * f  # seven digits of an eigenvalue
                sharpest = max(sharpest, error / bound) if error > 1e-4 * f else sharpest
    figure("largest error of random assemblies, share of the bound", sharpest, 1.0)
    assert 0.3 < sharpest <= 1.0  # and the bound is not idle


def reduced_robot(name: str, error: float, band: float, elements: int) -> Robot:
    """A robot of the catalogue with all its beams reduced."""
    plain = parflex.load(name)
    legs = plain.description.leg_of
    frames = [frame.name for frame in plain.description.frame if frame.beam is not None]
    keys = {f"legs.frame.{one.removeprefix(legs[one] + '.')}" if one in legs else f"frame.{one}" for one in frames}
    settings = {f"{key}.beam.reduce": {"error": error, "band": band} for key in sorted(keys)}
    return parflex.load(name, elements=elements, settings=settings)


WAYS = {
    "navaro": (["x", "y", "z", "rx", "ry", "rz"], np.array([0, 0, 0, 0, 0, -1.0]), np.array([0.1, 0.1, 0, 0, 0, 0.3])),
    "gough-stewart-beams": (
        ["x", "y", "z", "rx", "ry", "rz"], np.array([0.25, 0.433, 1, 0, 0, 0]), np.array([0.2, 0.2, 0.1, 0.3, 0.3, 0.3])
    ),
}  # fmt: skip


MODES = 18  # more than lie in the band
ROUNDED = 1e-6  # Hz: rounding of modes up to 200 Hz; that of a mode near a singular pose has a bound of 5e-9 Hz


def audit(name: str, elements: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors of modes in the band and their bounds, poses x modes; NaN beyond the band.

    Many poses are solved by compiled steps, which prove that no mode is missing; one of them also by whole matrices.
    """
    reduced = reduced_robot(name, 0.1, 200.0, elements)
    full = parflex.load(name, elements=elements)
    keys, middle, way = WAYS[name]
    poses = middle + way * np.random.default_rng(seed).uniform(-1, 1, (count + count // 20, 6))  # some out of reach
    exact, found = (parflex.many_frequencies(one, keys, poses, modes=MODES, threads=1) for one in (full, reduced))
    reached = np.flatnonzero((exact.status == 0) & (found.status == 0))[:count]
    assert len(reached) == count and exact.frequencies[reached, -1].min() > 200
    one = parflex.natural_frequencies(full, dict(zip(keys, poses[reached[0]], strict=True)), modes=MODES)
    assert np.allclose(one.frequencies, exact.frequencies[reached[0]], rtol=1e-7)  # half the digits of whole matrices
    cut = min(one["left_out_hz"] for one in reduction_of(reduced))
    inside = exact.frequencies[reached] <= 200.0
    errors = np.where(inside, (found.frequencies - exact.frequencies)[reached], np.nan)
    bounds = [[frequency_bound(f, cut) if f < cut else np.nan for f in row] for row in exact.frequencies[reached]]
    return errors, np.where(inside, bounds, np.nan)


def judge(name: str, errors: np.ndarray, bounds: np.ndarray, figure) -> None:
    inside = np.isfinite(errors)
    assert inside[:, 0].all()
    edge = np.array([(bounds[i, k] / errors[i, k]) for i, k in enumerate(inside.sum(axis=1) - 1)])
    figure(
        f"{name}: largest error of a frequency, share of its bound", float(np.nanmax((errors - ROUNDED) / bounds)), 1.0
    )
    figure(f"{name}: bound at the band's edge over the error, median", float(np.median(edge)), 200.0)
    assert np.all(errors[inside] <= bounds[inside] + ROUNDED)
    assert np.all(errors[inside] > -ROUNDED)  # reduction is never softer
    assert np.median(edge) <= 200


@pytest.mark.parametrize("name", WAYS)
def test_frequencies_of_reduced_robots_are_within_the_bound_at_random_poses(name, figure):
    judge(name, *audit(name, 4, 3, 1), figure)


@pytest.mark.verify
@pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify")
@pytest.mark.parametrize("name", WAYS)
def test_frequencies_are_within_the_bound_at_200_poses(name, figure):
    judge(name, *audit(name, 16, 200, 2), figure)


# -- robots --------------------------------------------------------------------------------------------------------

CANTILEVER = """
format = 1
name = "cantilever"
gravity = [0, 0, -9.81]
end_effector = "arm.tip"
[materials.steel]
elastic_modulus = 210e9
shear_modulus = 80e9
density = 7850
[sections.bar]
shape = "rectangle"
y = 0.012
z = 0.02
[[frame]]
name = "hub"
joint = "revolute"
actuated = true
[[frame]]
name = "arm"
parent = "hub"
beam = { length = 0.8, material = "steel", section = "bar", elements = 8, roll = 0.3, rotary_inertia = true }
[[frame]]
name = "load"
parent = "arm.tip"
inertia = { mass = 2, about_centre = [0.001, 0.002, 0.003] }
"""
REDUCED = CANTILEVER.replace("elements = 8,", "elements = 8, reduce = { error = 0.1, band = 100 },")


@pytest.fixture
def cantilevers(tmp_path) -> tuple[Robot, Robot]:
    """Reduced, and with all its elements."""
    for name, text in (("reduced", REDUCED), ("full", CANTILEVER)):
        (tmp_path / f"{name}.toml").write_text(text)
    return parflex.load(tmp_path / "reduced.toml"), parflex.load(tmp_path / "full.toml")


def test_loads_at_its_ends_deflect_a_reduced_beam_as_all_its_elements(cantilevers, figure):
    reduced, full = cantilevers
    load = {"arm.tip": [3.0, -5.0, 4.0, 0.5, -0.2, 0.7]}
    ends = [
        parflex.deflection(one, "home", wrench=load, about="undeformed", without=["gravity"]).frames["arm.tip"]
        for one in (reduced, full)
    ]
    worst = np.abs(ends[0] - ends[1]).max() / np.abs(ends[1]).max()
    figure("static deflection of a reduced beam under loads at its end", worst, 1e-10)
    assert worst < 1e-10  # static shapes of the elements: rounding of their matrices


def test_weight_along_a_reduced_beam_is_carried_by_its_modes(cantilevers, figure):
    reduced, full = cantilevers
    sag = [parflex.deflection(one, "home", about="undeformed").frames["arm.tip"] for one in (reduced, full)]
    worst = np.abs(sag[0] - sag[1]).max() / np.abs(sag[1]).max()
    figure("sag of the end of a reduced beam under its own weight", worst, 1e-10)
    assert worst < 1e-10  # the work of the weight at the end is that of the static shapes: no mode is needed for it
    inside = [parflex.equilibrium(one, "home").configuration for one in (reduced, full)]
    number = reduced.tree.number("arm")
    link = reduced.tree.links[number]
    middle = link.body.inner.shapes[4, :3] @ inside[0].q[link.e]
    at = inside[1].at
    R, root = at.of(full.tree.places["arm"])
    wanted = R.T @ (at.of(full.tree.places["arm.4"])[1] - root) - [0.4, 0, 0]
    share = np.abs(middle - wanted)[1:].max() / np.abs(wanted).max()
    figure("sag of the middle of a reduced beam under its own weight", share, 1e-4)
    assert share < 1e-4  # modes left out, and terms of second order


def test_a_reduced_beam_under_tension_is_stiffened_as_its_elements(cantilevers):
    """About the equilibrium under a pull along it: frequencies with the projected shortening."""
    reduced, full = cantilevers
    for pull in (0.0, 2000.0, -1000.0):
        load = {"arm.tip": [pull, 0, 0]}
        found, wanted = (
            parflex.natural_frequencies(one, "home", modes=3, about="equilibrium", wrench=load, without=["gravity"])
            for one in (reduced, full)
        )
        assert found.frequencies == pytest.approx(wanted.frequencies, rel=2e-4)
    linear = parflex.natural_frequencies(
        reduced, "home", modes=1, about="equilibrium", wrench=load, without=["gravity", "axial"]
    )
    assert abs(linear.frequencies[0] / found.frequencies[0] - 1) > 0.01  # and that is felt


SPATIAL = "tests/robots/rolled-beams.toml"


@cache
def bent(name: str, error: float, band: float, elements: int) -> tuple[Robot, dict]:
    robot = reduced_robot(name, error, band, elements)
    return robot, bent_state(robot, np.random.default_rng(3))


@pytest.mark.parametrize("name", ["dualemps", SPATIAL, "navaro"])
@pytest.mark.parametrize("preferred", PREFERENCES)
def test_pieces_of_a_reduced_robot_move_as_the_tree_does(name, preferred, figure):
    """Modes with both ends held are unknowns beside the motion of the pieces; loops are closed by ends of beams."""
    robot, state = bent(str(ROOT / name) if name == SPATIAL else name, 0.3, 200.0 if name == "navaro" else 60.0, 4)
    assert any(link.body.held for link in robot.tree.links)
    form = pieces(robot, preferred)
    independent = form.partition.independent
    moving = node_state(form, state["q"], state["rates"][independent], JOINT_TERMS)
    wanted = state["accelerations"][independent]
    found = accelerations_under(moving, state["effort"])
    worst = np.abs(found - wanted).max() / state["sizes"]["qdd"]
    motors = state["accelerations"][list(robot.actuated)]
    efforts, _ = efforts_for(moving, motors)
    worst = max(worst, np.abs(efforts - state["effort"]).max() / state["sizes"]["effort"])
    figure(f"pieces of the reduced {name}, {preferred}", worst, 1e-10)
    assert worst < 1e-10  # as of beams that are rolled or sheared
    assert form.size == len(independent)


def test_a_program_of_a_reduced_robot_gives_the_numbers_of_the_general_reduction():
    robot, state = bent("dualemps", 0.3, 60.0, 4)
    made = parflex.model(robot, "direct", without=JOINT_TERMS)
    names = {name: k for k, name in enumerate(robot.tree.rate_names)}
    independent = [names[name] for name in made.labels["qd"]]
    given = {"q": state["q"], "qd": state["rates"][independent], "effort": state["effort"]}
    found = made.evaluate("numpy", **given)["qdd"]
    assert np.abs(found - state["accelerations"][independent]).max() < 1e-11 * state["sizes"]["qdd"]


def test_maps_of_a_reduced_robot_are_its_frequencies():
    robot = reduced_robot("3rrr-flexible", 1.0, 200.0, 4)
    poses = np.array([[0.01, 0.02, 0.1], [-0.02, 0.0, 0.0], [0.0, -0.02, -0.2]])
    found = parflex.many_frequencies(robot, ["x", "y", "theta"], poses, modes=3)
    for row, pose in zip(found.frequencies, poses, strict=True):
        at = dict(zip(("x", "y", "theta"), pose, strict=True))
        assert row == pytest.approx(parflex.natural_frequencies(robot, at, modes=3).frequencies, rel=1e-7)


def test_designs_of_a_reduced_robot_are_made_one_by_one_where_its_beams_change():
    """Another length may keep other modes; what leaves the beams as they are is solved together."""
    robot = reduced_robot("3rrr-flexible", 1.0, 200.0, 4)
    for key, values, alone in (("constants.distal", [0.4, 0.42], 2), ("platform.inertia.mass", [1.0, 2.0], 0)):
        found = parflex.many_frequencies(robot, ["x", "y", "theta"], np.zeros((2, 3)), modes=2, designs={key: values})
        assert found.fallbacks == alone
        for row, value in zip(found.frequencies, values, strict=True):
            own = redesigned(robot, {key: value})
            wanted = parflex.natural_frequencies(own, {"x": 0.0, "y": 0.0, "theta": 0.0}, modes=2).frequencies
            assert row == pytest.approx(wanted, rel=1e-7)


def test_a_robot_without_its_reduction_is_the_robot_with_all_elements():
    robot = reduced_robot("3rrr-flexible", 1.0, 200.0, 4)
    whole, plain = without_reduction(robot), parflex.load("3rrr-flexible", elements=4)
    assert whole.tree.rate_names == plain.tree.rate_names
    assert np.array_equal(whole.home, plain.home)
    with pytest.raises(InputError, match="no beam of this robot is reduced"):
        without_reduction(plain)


def test_points_along_a_reduced_beam_are_those_of_its_elements(cantilevers):
    """As the viewer draws it: bent by its second mode, the places of the nodes."""
    link = cantilevers[0].tree.links[cantilevers[0].tree.number("arm")]
    points = points_of_body(cantilevers[0], link, 33)
    body = link.body
    e = np.random.default_rng(2).uniform(-0.01, 0.01, body.size)
    nodes = body.inner.shapes @ e
    step = (len(points.r0) - 1) // 8
    assert np.allclose(points.displaced(e)[::step], points.r0[::step] + nodes[:, :3], atol=1e-15)
    assert np.allclose(points.Phi_r[::step] @ e, nodes[:, 3:], atol=1e-14)
    assert np.allclose(points.displaced(e)[-1], body.nodes["tip"].r0 + body.nodes["tip"].Phi_d @ e)


def test_inner_nodes_in_use_are_ends_of_reduced_parts():
    """The knee of the NaVARo sits in the middle of a link, whose two halves are reduced each."""
    robot = reduced_robot("navaro", 0.1, 200.0, 4)
    parts = {one["body"]: one["elements"] for one in reduction_of(robot)}
    assert parts["leg1.4"] == parts["leg1.4.1"] == parts["leg1.1"] == 4
    assert robot.tree.places["leg1.4.1"].inner is None


# -- inside --------------------------------------------------------------------------------------------------------


def test_sections_of_a_moving_reduced_beam_balance_what_its_root_carries(cantilevers, figure):
    """At the root, the inertia of what lies beyond is that of the body itself, in any state; inner loads are in it."""
    robot = cantilevers[0]
    tree, rng = robot.tree, np.random.default_rng(6)
    q, qd, qdd = (rng.uniform(-size, size, tree.n) for size in (0.02, 2.0, 50.0))
    here = Configuration(robot, q)
    loads = {"arm@0.4": np.array([30.0, -20.0, 10.0, 1.0, 2.0, -3.0])}
    found = tree_newton_euler(here, qd, qdd, loads)
    beam = loads_of_beams(here, qd, qdd, found, loads)["arm"]
    j = tree.number("arm")
    wanted = -np.concatenate([found.f[j], found.m[j]])
    root = np.array([beam.at(0.0)[word] for word in FORCES])
    worst = np.abs(root - wanted).max() / np.abs(wanted).max()
    figure("section forces at the root of a reduced beam against its reaction", worst, 1e-12)
    assert worst < 1e-12
    step = [np.array([beam.at(s)[word] for word in FORCES[:3]]) for s in (0.4, 0.4 + 1e-9)]
    turn = here.at.of(tree.places["arm@0.4"])[0]
    assert np.abs(turn @ (step[0] - step[1]) - loads["arm@0.4"][:3]).max() < 1e-5  # the load, and 1e-9 of inertia


def test_sections_at_rest_are_those_of_all_elements(cantilevers):
    load = {"arm.tip": [3.0, -5.0, 4.0, 0.5, -0.2, 0.7]}
    found, wanted = (parflex.deflection(one, "home", wrench=load, about="equilibrium") for one in cantilevers)
    reduced, full = (one.beams["arm"].table(np.linspace(0, 1, 9).tolist()) for one in (found, wanted))
    for word in (*FORCES, "stress"):
        largest = np.abs(full[word]).max()
        assert np.abs(np.array(reduced[word]) - full[word]).max() < 1e-3 * largest + 1e-3  # second order of deflections
    assert [row["nodes"] for row in found.sections] == [["arm", "arm.tip"]]


# -- doors ---------------------------------------------------------------------------------------------------------

ARM = "frame.13.beam.reduce"


def test_info_reports_the_reduction(capsys):
    answer = answered(capsys, "info", "dualemps", "--elements", "4", "--set", f"{ARM}={{error=0.1,band=60}}")
    (one,) = answer["reduction"]
    assert (one["body"], one["elements"], one["of"]) == ("13", 4, 9)
    assert 0 < one["kept"] < 9 and 0 < one["bound_hz"] <= 0.1
    assert answered(capsys, "info", "dualemps")["reduction"] == []
    assert "to its ends and" in json.dumps(
        answered(capsys, "explain", "dualemps", "--set", f"{ARM}={{error=1,band=60}}")
    )


@pytest.mark.parametrize(
    ("given", "key", "said"),
    [
        ("{error=0.1,band=200}", "band", "begin at 104.2 Hz; use 3 elements or more, or a lower band"),
        ("{error=-1,band=20}", "error", "error = -1.0 is not positive; give it in Hz"),
        ("{error=0.1,band=0}", "band", "band = 0.0 is not positive"),
        ("{error=1e-9,band=20}", "error", "below the rounding of frequencies; give 2e-07 Hz or more"),
        ("{error=0.1}", "band", "key 'band' is missing"),
        ("{error=0.1,band=20,modes=3}", "modes", "unknown key 'modes'"),
    ],
)
def test_impossible_reductions_are_refused(capsys, given, key, said):
    error = refused(capsys, "info", "dualemps", "--set", f"{ARM}={given}")
    assert error["key"] == f"frame '13': beam.reduce.{key}"
    assert said in f"{error['message']}; {error['hint']}"


def test_nodes_of_a_reduced_beam_keep_their_names_and_ties_cut_it(tmp_path):
    """A node on which nothing is mounted is a place inside the body, as BEAM@s is; one with a tie ends a body."""
    file = tmp_path / "arm.toml"
    file.write_text(REDUCED)
    robot = parflex.load(file)
    assert len(reduction_of(robot)) == 1
    state = robot.home + np.random.default_rng(4).uniform(-0.01, 0.01, robot.tree.nq)
    at = pose_of(robot.tree, state)
    for name, same in (("arm.3", "arm@0.375"), ("arm.6", "arm@0.75")):
        for one, other in zip(at.of(robot.tree.places[name]), at.of(robot.tree.places[same]), strict=True):
            assert np.array_equal(one, other)
    link = robot.tree.links[robot.tree.number("arm")]
    R, p = at.of(robot.tree.places["arm"])
    moved = np.array([0.3, 0, 0]) + (link.body.inner.shapes @ state[link.e])[3, :3]
    assert np.allclose(at.of(robot.tree.places["arm.3"])[1], p + R @ moved, atol=1e-15)
    file.write_text(REDUCED.replace('end_effector = "arm.tip"', 'end_effector = "arm.3"'))
    assert [one["elements"] for one in reduction_of(parflex.load(file))] == [3, 5]
    file.write_text(REDUCED.replace('parent = "arm.tip"', 'parent = "arm@0.25"'))
    assert [one["elements"] for one in reduction_of(parflex.load(file))] == [2, 6]
    file.write_text(REDUCED.replace("band = 100", "band = 1e5"))
    with pytest.raises(RobotFileError, match="reaches the frequencies of the elements"):
        parflex.load(file)
