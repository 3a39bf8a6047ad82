"""Forces and stresses inside beams: closed forms, quadrature, both ends, and what a run says of them."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support import bars
from support.command_line import answered, run
from support.oracles.beam_sections import ShakenCantilever, wrench_beyond
from support.robots import load_robot, robot_file

import parflex
from parflex import InputError
from parflex.forces.forces import tree_newton_euler
from parflex.forces.section_forces import ElementRows, loads_of_beams, sections_of_element
from parflex.simulation import outputs
from parflex.spatial.batched import evaluate_rows

FORCES = ("N", "Vy", "Vz", "T", "My", "Mz")
REDUCE = {"error": 1.0, "band": 400}


NO_GRAVITY = {"gravity": [0, 0, 0]}


def arm(settings: dict | None = None, name: str = "turntable-arm", **beam) -> parflex.Robot:
    """The arm on a turntable, with more keys of its beam."""
    return load_robot(name, settings=(settings or {}) | {f"frame.arm.beam.{key}": value for key, value in beam.items()})


def element_state(rng, planar=False):
    """A random state of one element as rows of one, and as numbers."""
    e, ed, edd = rng.normal(size=(3, 6)) * [[2e-2], [0.5], [20.0]]
    if planar:
        e, ed, edd = (np.where(np.isin(range(6), (0, 1, 5)), part, 0.0) for part in (e, ed, edd))
    a, w, al = rng.normal(size=(3, 3)) * [[10.0], [3.0], [30.0]]
    if planar:
        a[2] = w[0] = w[1] = al[0] = al[1] = 0.0
    end = rng.normal(size=6) * 40
    return (a, w, al), (e, ed, edd), end


@pytest.mark.parametrize(
    "keys",
    [{}, {"rotary_inertia": True}, {"elements": 2}, {"model": "planar"}],
    ids=["plain", "rotary", "two", "planar"],
)
def test_every_section_carries_what_moves_the_points_beyond_it(keys):
    robot = arm(**keys)
    here, still = parflex.configure(robot), np.zeros(robot.tree.n)
    parts = loads_of_beams(here, still, still, tree_newton_euler(here, still, still), {})["arm"].chain.parts
    rng, L = np.random.default_rng(7), parts.length
    for _ in range(4):
        motion, (e, ed, edd), end = element_state(rng, "model" in keys)
        own = [0, 1, 5] if "model" in keys else list(range(6))
        rows = ElementRows(*(part[None] for part in (*motion, e[own], ed[own], edd[own], end)))
        xi = [0.0, 0.21, 0.5, 0.93, 1.0]
        result = sections_of_element(parts, rows, xi)[0]
        for k, s in enumerate(xi):
            rotary = "rotary_inertia" in keys
            force, moment = wrench_beyond(s, L, (0.02, 0.03), 7800, rotary, motion, (e, ed, edd), end)
            slope_y = 6 * (s - s**2) / L * e[1] + (3 * s**2 - 2 * s) * e[5]
            slope_z = 6 * (s - s**2) / L * e[2] - (3 * s**2 - 2 * s) * e[4]
            R = Rotation.from_rotvec([s * e[3], -slope_z, slope_y]).as_matrix()
            exact = -np.concatenate([R.T @ force, R.T @ moment])
            assert np.abs(result[k] - exact).max() < 1e-11 * np.abs(result).max()  # rounding of a few thousand terms


def test_numbers_of_rows_are_those_of_each_row():
    """All operators and functions that the physics calls, against NumPy row by row; zeros stay plain."""
    rng = np.random.default_rng(3)
    table = rng.normal(size=(700, 3)) + 3.0

    def some(given):
        a, b, c = given["x"]
        A = np.array([[a, b * 0, 2.0], [1.0, c, a], [b, a - b, -c]], dtype=object)
        solved = a.solve_system(A, np.array([a, 1.0, b], dtype=object))
        angle = np.arctan2(b, c)
        values = [a + 2, 2 - a, 3 / b, a / 4, -c, a**2, np.sqrt(a * a), np.sin(a) * np.cos(b), np.sign(c - 3), angle]
        assert a * 0.0 == 0.0 and (0.0 / a) == 0.0 and isinstance(a * 0, float)
        return {"values": np.array(values, dtype=object), "solved": solved}

    result = evaluate_rows(some, {"x": table}, size=10)
    a, b, c = table.T
    exact = [a + 2, 2 - a, 3 / b, a / 4, -c, a**2, abs(a), np.sin(a) * np.cos(b), np.sign(c - 3), np.arctan2(b, c)]
    assert np.abs(result["values"] - np.array(exact).T).max() < 1e-14
    one, zero = np.ones_like(a), np.zeros_like(a)
    A = np.array([[a, zero, 2 * one], [one, c, a], [b, a - b, -c]]).transpose(2, 0, 1)
    exact = np.linalg.solve(A, np.array([a, one, b]).T[..., None])[..., 0]
    assert np.abs(result["solved"] - exact).max() < 1e-10 * np.abs(exact).max()


@pytest.mark.parametrize(
    ("keys", "limit"),
    [
        ({"rotary_inertia": True}, 1e-12),
        ({"elements": 4, "roll": 0.3}, 1e-12),
        ({"elements": 6, "rotary_inertia": True, "roll": 0.4, "reduce": REDUCE}, 1e-10),
        ({"elements": 6, "model": "planar", "reduce": REDUCE}, 1e-10),
    ],
    ids=["rotary", "rolled", "reduced", "reduced-planar"],
)
def test_both_ends_of_a_beam_give_the_same(keys, limit):
    """What joints carry in a random state, with loads behind the arm and inside it; without a step between elements."""
    robot = arm({f"frame.{name}.inertia": {"mass": 0} for name in ("arm", "fore")}, "turntable-two-links", **keys)
    rng, tree = np.random.default_rng(1), robot.tree
    q = rng.normal(size=tree.nq) * 0.5
    for link in tree.links:
        q[link.e] *= 0.02
    here = parflex.configure(robot, dict(zip(tree.position_names, q, strict=True)))
    qd, qdd = rng.normal(size=(2, tree.n)) * [[1.0], [10.0]]
    loads = {"hand": [30, -20, 10, 1, 2, -3], "fore@0.4": [-9, 2, 4, 1, -2, 1], "arm@0.4": [30, -20, 10, 1, 2, -3]}
    loads = {frame: np.array(load, dtype=float) for frame, load in loads.items()}
    result = tree_newton_euler(here, qd, qdd, loads)
    for name, beam in loads_of_beams(here, qd, qdd, result, loads).items():
        first, last = beam.chain.links[0], beam.chain.tip
        root, tip = (-np.concatenate([result.f[k], result.m[k]]) for k in (first, last))
        size = np.abs(root).max()
        assert np.abs(forces(beam, 0.0) - root).max() < limit * size, name
        assert np.abs(forces(beam, 1.0) - tip).max() < limit * size, name
        for number in range(1, len(beam.chain.links)):
            s = number / len(beam.chain.links)
            assert np.abs(forces(beam, s) - forces(beam, s + 1e-9)).max() < 1e-6 * size, (name, s)
        turn = here.at.of(tree.places[f"{name}@0.4"])[0]
        step = turn @ (forces(beam, 0.4) - forces(beam, 0.4 + 1e-9))[:3]
        assert np.abs(step - loads[f"{name}@0.4"][:3]).max() < 1e-6 * size  # the load, and 1e-9 of inertia


def forces(beam, s: float) -> np.ndarray:
    return np.array([beam.at(s)[word] for word in FORCES])


@pytest.mark.parametrize("elements", [1, 3])
def test_loads_inside_a_beam_make_steps_in_what_it_carries(elements):
    """Forces between the ends: the sections before them carry them, and those at their places, but not those behind."""
    robot = arm(NO_GRAVITY, elements=elements)
    R = parflex.frames(robot)["arm"].rotation
    loads = {0.5: R @ [40.0, 7.0, -3.0], 0.75: R @ [-25.0, 4.0, 12.0]}
    words = {"about": "equilibrium", "wrench": {f"arm@{s}": [*load, 0, 0, 0] for s, load in loads.items()}}
    bent = parflex.deflection(robot, **words)
    at, places = bent.configuration.at, bent.configuration.robot.tree.places
    for s in (0.0, 0.3, 0.5, 0.500001, 0.7, 0.75, 0.76, 1.0):
        own, here = at.of(places[f"arm@{s}"])
        force, moment = np.zeros(3), np.zeros(3)
        for where, load in loads.items():
            if s <= where:
                place = at.of(places[f"arm@{where}"])[1]
                force, moment = force + load, moment + np.cross(place - here, load)
        result = np.array([bent.beams["arm"].at(s)[word] for word in FORCES])
        assert np.abs(result - [*(own.T @ force), *(own.T @ moment)]).max() < 1e-11 * 50, s  # of 50 N
    stations = [bent.beams["arm"].at(s)["stress"] for s in np.linspace(0, 1, 301)]
    assert max(stations) <= bent.largest_stress["value"] <= max(stations) * (1 + 1e-9)


@pytest.mark.parametrize("elements", [1, 3])
def test_loads_at_the_ends_are_in_the_section_at_the_tip_and_not_in_that_at_the_root(tmp_path, elements):
    """What acts on the frame of a beam goes into its joint: the reaction is the section at 0 and that load."""
    made = bars.beam(tmp_path, f"elements = {elements}", joint=bars.HINGE)
    push = {"bar@0": [3.0, -40.0, 0.7], "bar@1": [5.0, 20.0, -0.3], "bar@0.5": [0.0, 7.0, 0.0]}
    asked = ["bar.N@0", "bar.Vy@0", "bar.Mz@0", "bar.N@1", "bar.Vy@1", "bar.Mz@1", "reaction.bar"]
    still = {"t": [0.0, 0.01], "bar": [0.0, 0.0]}
    run = parflex.simulate(made, still, 0.002, wrench=push, outputs=asked, frames=["bar@1", "bar@0.5"])
    first = {word.rpartition(".")[2]: float(run[word][0]) for word in run if word.startswith(("bar.", "reaction."))}
    turn = float(run["bar@1.theta"][0])  # sections turn with the bar
    own = [5 * np.cos(turn) + 20 * np.sin(turn), 20 * np.cos(turn) - 5 * np.sin(turn), -0.3]
    assert [first["N@1"], first["Vy@1"], first["Mz@1"]] == pytest.approx(own, abs=1e-9)
    assert [first["N@0"], first["Vy@0"]] == pytest.approx([5.0, 27.0], abs=1e-9)
    moment = 20 * run["bar@1.x"][0] - 5 * run["bar@1.y"][0] + 7 * run["bar@0.5.x"][0] - 0.3
    assert first["Mz@0"] == pytest.approx(moment, abs=1e-9)
    # the joint holds what the section and the load pull with
    assert [-first["fx"], -first["fy"]] == pytest.approx([first["N@0"] + 3.0, first["Vy@0"] - 40.0], abs=1e-9)
    assert -first["mz"] == pytest.approx(first["Mz@0"] + 0.7, abs=1e-9)


def test_a_turning_beam_is_pulled_by_what_lies_beyond():
    robot = arm(NO_GRAVITY, elements=3)
    here, speed = parflex.configure(robot), 12.0
    qd, qdd = np.zeros((2, robot.tree.n))
    qd[0] = speed
    beam = loads_of_beams(here, qd, qdd, tree_newton_euler(here, qd, qdd), {})["arm"]
    for s in (0.0, 0.2, 1 / 3, 0.71, 1.0):
        exact = 7800 * 0.02 * 0.03 * speed**2 * 0.8**2 * (1 - s**2) / 2
        result = beam.at(s)
        assert math.isclose(result["N"], exact, abs_tol=1e-11) and abs(result["Mz"]) + abs(result["My"]) < 1e-11
        assert math.isclose(result["stress"], exact / (0.02 * 0.03), abs_tol=1e-6)


@pytest.mark.parametrize("elements", [1, 3])
def test_a_clamped_beam_carries_its_load_as_by_hand(elements):
    """Tension, two bending planes and torsion at once; both signs; any number of elements says the same."""
    robot = arm(NO_GRAVITY, elements=elements)
    R = parflex.frames(robot)["arm"].rotation
    F, M, L = np.array([900.0, 3.0, -2.0]), np.array([1.5, 0.4, -0.3]), 0.8
    for sign in (1, -1):
        wrench = {"arm.tip": [*(R @ F * sign), *(R @ M * sign)]}
        bent = parflex.deflection(robot, about="undeformed", wrench=wrench)
        for s in (0.0, 0.35, 1.0):
            arm_left = (1 - s) * L
            exact = np.array([*F, M[0], M[1] - arm_left * F[2], M[2] + arm_left * F[1]]) * sign
            result = bent.beams["arm"].at(s)
            assert np.abs([result[word] for word in FORCES] - exact).max() < 1e-9, s
            y, z = 0.01, 0.015
            N, My, Mz = exact[0], exact[4], exact[5]
            corners = [N / 6e-4 + My * k * z / (0.02 * 0.03**3 / 12) - Mz * j * y / (0.03 * 0.02**3 / 12)
                       for j in (-1, 1) for k in (-1, 1)]  # fmt: skip
            assert math.isclose(result["stress"], max(map(abs, corners)), rel_tol=1e-11)
        most = bent.largest_stress
        root = bent.beams["arm"].at(0.0)["stress"]
        assert most == {"beam": "arm", "s": 0.0, "value": pytest.approx(root, rel=1e-12)}


@pytest.mark.parametrize("wall", [{"shape": "tube", "thickness": 0.004}, {"shape": "circle"}], ids=["tube", "circle"])
def test_round_sections_bend_alike_in_all_directions(wall):
    robot = arm(NO_GRAVITY | {"sections.bar": {"diameter": 0.03} | wall}, roll=0.9)
    R, L = parflex.frames(robot)["arm"].rotation, 0.8
    inner = 0.015 - wall.get("thickness", 0.015)
    I, A = math.pi / 4 * (0.015**4 - inner**4), math.pi * (0.015**2 - inner**2)
    bent = parflex.deflection(robot, about="undeformed", wrench={"arm.tip": [*(R @ [-50.0, 30.0, 40.0]), 0, 0, 0]})
    assert math.isclose(bent.largest_stress["value"], 50 / A + 50 * L * 0.015 / I, rel_tol=1e-10)


def test_the_largest_stress_may_be_inside_an_element():
    """A moment at the tip against the weight of the beam: its largest bending is where the shear force vanishes."""
    robot = arm(NO_GRAVITY, elements=2)
    g, L, mu = 9.81, 0.8, 7800 * 6e-4
    R = parflex.frames(robot)["arm"].rotation
    robot = arm({"gravity": list(R @ [0, -g, 0])}, elements=2)
    V, M = 18.0, 0.2  # M(x) = M + V (L - x) - mu g (L - x)^2/2 is largest at L - x = V/(mu g)
    bent = parflex.deflection(robot, about="undeformed", wrench={"arm.tip": [*(R @ [0, V, 0]), *(R @ [0, 0, M])]})
    x = V / (mu * g)
    exact = (M + V**2 / (2 * mu * g)) * 0.01 / (0.03 * 0.02**3 / 12)
    most = bent.largest_stress
    assert math.isclose(most["value"], exact, rel_tol=1e-12) and math.isclose(most["s"], 1 - x / L, abs_tol=1e-6)


def test_a_shaken_beam_carries_what_its_series_says():
    """Moment and stress at all times; the base begins to accelerate by A sin(W t)."""
    robot = load_robot("shaken-cantilever")
    L, EI, mu, c = 0.6, 2.1e11 * 0.03 * 0.01**3 / 12, 7800 * 3e-4, 0.005
    exact = ShakenCantilever(L, EI, mu, A=30.0, W=90.0)
    assert exact.omega[0] / (2 * math.pi) == pytest.approx(23.3, rel=0.01)
    A, W = 30.0, 90.0

    def base(t):
        return A / W**2 * (W * t - math.sin(W * t)), A / W * (1 - math.cos(W * t)), A * math.sin(W * t)

    places = (0.0, 0.3, 0.75)
    asked = [f"beam.{word}@{s}" for s in places for word in ("Mz", "stress", "N")]
    run = parflex.simulate(robot, base, 0.1, step=2.5e-4, outputs=asked, start="rest")
    M = exact.moment(np.array(places), run.t)
    for k, s in enumerate(places):
        # six elements: higher modes are off by a few parts in a thousand, and so are their shares of the moment
        assert np.abs(run[f"beam.Mz@{s}"] - M[k]).max() < 3e-3 * np.abs(M[k]).max(), s
        stress = np.abs(run[f"beam.N@{s}"]) / 3e-4 + np.abs(run[f"beam.Mz@{s}"]) * c / (0.03 * 0.01**3 / 12)
        assert np.abs(run[f"beam.stress@{s}"] - stress).max() < 1e-12 * stress.max()
    most = run.summary["largest_stress"]
    row = int(np.abs(M[0]).argmax())
    # six elements: the moment errs by 3e-3 of its largest, so that its peak may lie a row aside
    assert most["beam"] == "beam" and most["s"] == 0.0 and most["time"] == pytest.approx(run.t[row], abs=2e-3)
    assert most["value"] == pytest.approx(np.abs(M[0]).max() * c / (0.03 * 0.01**3 / 12), rel=3e-3)


@pytest.fixture(scope="module")
def five_bar():
    return load_robot("five-bar-of-beams")


def test_a_closed_robot_at_rest_has_the_largest_stress_that_statics_say(five_bar):
    """Upper bars are two-force members, 3-4-5: N = F/2 / (4/5)... lower ones carry N and bend by its sideways part."""
    F = 80.0
    bent = parflex.deflection(five_bar, about="undeformed", wrench={"left2.tip": [0, -F, 0]})
    along = -F / 2 / math.sin(math.acos(0.6))  # compression of an upper bar
    side = along * 0.6  # its sideways part, which bends the lower bar
    for name, sign in (("left", -1), ("right", 1)):
        upper, lower = bent.beams[f"{name}2"].at(0.4), bent.beams[name].at(0.25)
        assert math.isclose(upper["N"], along, rel_tol=1e-9) and abs(upper["Mz"]) < 1e-9
        assert math.isclose(lower["N"], -F / 2, rel_tol=1e-9)
        assert math.isclose(lower["Mz"], sign * side * 0.75 * 0.4, rel_tol=1e-9)
    most = bent.largest_stress
    exact = F / 2 / 6e-4 + abs(side) * 0.4 * 0.01 / (0.03 * 0.02**3 / 12)
    assert most["beam"] in ("left", "right") and most["s"] == 0.0 and math.isclose(most["value"], exact, rel_tol=1e-9)


@pytest.mark.verify
def test_the_largest_stress_of_a_run_is_computed_when_it_is_read(five_bar, monkeypatch, tmp_path):
    calls, compute = [], outputs.largest_stress_of
    monkeypatch.setattr(outputs, "largest_stress_of", lambda *state: calls.append(1) or compute(*state))
    first, second, third = (parflex.simulate(five_bar, None, 0.002, step=5e-4) for _ in range(3))
    assert "largest_stress" in first.summary and first.summary["status"] == "ok" and not first.warnings
    assert calls == []
    most = first.summary["largest_stress"]
    assert first.summary.get("largest_stress") is most and calls == [1]
    assert json.loads(json.dumps(second.summary))["largest_stress"] == most and {**second.summary}["rows"] == 3
    second.save(tmp_path / "run.npz")
    assert parflex.load_run(tmp_path / "run.npz").summary["largest_stress"] == most
    assert pickle.loads(pickle.dumps(third)) == third and (third.summary | {})["largest_stress"] == most
    assert calls == [1] * 3


@pytest.mark.parametrize(
    ("word", "says", "hint"),
    [
        ("left.Mz@1.2", r"the place '1.2' is not on the beam 'left'", "from 0"),
        ("left.Mz@-0.1", r"the place '-0.1' is not on the beam 'left'", "from 0"),
        ("left.Mz@middle", r"the place 'middle' is not on the beam 'left'", "from 0"),
        ("left.My@0.5", r"a planar robot does not determine My of 'left'", "Mz"),
        ("lift.Mz@0.5", r"there is no beam 'lift'", "left"),
        ("left.tip.Mz@0.5", r"'left.tip' is not a beam", "left"),
        ("left.Mz@0:2:5", r"'0:2:5' is not a range of places", "0:1:21"),
        ("left.Mq@0.5", r"there is no output 'left.Mq@0.5'", "left.M"),
        ("left.Mz", r"there is no output 'left.Mz'", "left.M"),
    ],
)
def test_sections_that_are_not_there_are_refused(five_bar, word, says, hint):
    with pytest.raises(InputError, match=says) as caught:
        parflex.simulate(five_bar, None, 0.01, outputs=[word])
    assert hint in caught.value.hint


NUMBERS = {"sections.bar": {"shape": "numbers", "A": 6e-4, "Iy": 4.5e-8, "Iz": 2e-8, "J": 5e-8}}


def test_stress_needs_fibres_and_beams_need_no_modes():
    robot = arm(NUMBERS)
    with pytest.raises(InputError, match="stress in 'arm' is unknown") as caught:
        parflex.simulate(robot, None, 0.01, outputs=["arm.stress@0"])
    assert "rectangle" in caught.value.hint
    bent = parflex.deflection(robot, about="undeformed")
    assert bent.largest_stress is None and "stress" not in bent.beams["arm"].at(0.5)
    with pytest.raises(InputError, match="not on the beam 'arm'"):
        bent.beams["arm"].at(1.5)
    bent = parflex.deflection(arm(NUMBERS, "turntable-two-links"), about="undeformed")
    assert bent.largest_stress["beam"] == "fore"  # that of the others, and the warning says so
    assert any("leaves out 'arm'" in sentence for sentence in bent.warnings)


def test_the_command_line_names_the_largest_stress(tmp_path, capsys):
    settings = ["--set", "frame.beam.beam.elements=1", "--set", "gravity=[0, -9.81, 0]"]
    command = ["simulate", robot_file("shaken-cantilever"), *settings, "--time", "0.002", "--step", "5e-4"]
    command += ["--out", tmp_path / "run.csv"]
    answer = answered(capsys, *command, "--outputs", "beam.Mz@0:1:3,beam.stress@0")
    assert {"beam.Mz@0", "beam.Mz@0.5", "beam.Mz@1", "beam.stress@0"} <= set(answer["columns"])
    drawn = answered(capsys, "plot", tmp_path / "run.csv", "--sections", "-o", tmp_path / "a.svg")
    assert drawn["columns"] == ["beam.Mz"]
    assert set(answer["largest_stress"]) == {"beam", "s", "time", "value"}
    caught = run(capsys, *command)
    assert caught.code == 0 and "largest stress" in caught.out and "MPa" in caught.out
    answer = answered(capsys, "stiffness", robot_file("five-bar-of-beams"), "--wrench", "left2.tip=0,-80,0")
    assert set(answer["largest_stress"]) == {"beam", "s", "value"} and set(answer["beams"]["left"]) >= {"s", "N", "Mz"}
