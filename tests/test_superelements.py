"""Bodies by matrices of finite-element programs: what is found in them, how they move, what others write."""

from __future__ import annotations

import json
import os
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.linalg
from support.damaged import damaged
from support.foreign_matrices import NUMBERS, abaqus_entries, abaqus_substructure, market, nastran_punch
from support.oracles import super_elements as oracle

import parflex
from parflex import RobotFileError
from parflex.bodies import RigidBody
from parflex.bodies.super_elements.matrix_files import load_matrices
from parflex.bodies.super_elements.super_body import super_body, super_element
from parflex.cli.main import main
from parflex.spatial import hat
from parflex.spatial.rotations import quaternion_matrix

HERE = Path(__file__).parent
FLEXURE = HERE / "data" / "flexor_025.mat"
ROUNDED = HERE / "data" / "flexor_ID16.mat"
LONG = pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="compiles a time loop: make verify")
BAR = oracle.round_bar(0.004)
LENGTH = 0.3
ON_GROUND = """
format = 1
name = "flexure"
end_effector = "part.b"
[[frame]]
name = "part"
superelement = {{ file = "{file}", nodes = {{ a = 1, b = 2 }} {more} }}
"""


def written(folder: Path, text: str, name: str = "robot.toml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def loaded(folder: Path, file: Path | str, more: str = "", extra: str = "") -> parflex.Robot:
    return parflex.load(written(folder, ON_GROUND.format(file=file, more=more) + extra))


def checked_by_command(capsys, path: str, *options: str) -> dict:
    with pytest.raises(SystemExit):
        main(["check", path, "--json", *options])
    return json.loads(capsys.readouterr().out)


def beam_matrices(modes: int, count: int = 4) -> tuple[np.ndarray, np.ndarray]:
    return oracle.reduced_beam(LENGTH, count, BAR, modes)


def as_npz(path: Path, M: np.ndarray, K: np.ndarray, **more: np.ndarray) -> str:
    np.savez(path, M=M, K=K, positions=[[0, 0, 0], [LENGTH, 0, 0]], **more)
    return str(path)


# -- a real flexure ------------------------------------------------------------------------------------------


def test_a_flexure_has_the_mass_the_stiffnesses_and_the_frequencies_of_its_matrices(tmp_path, capsys):
    """Facts of the file: two coincident nodes, six modes. Digits as they are printed there."""
    file = written(tmp_path, ON_GROUND.format(file=FLEXURE, more=""))
    said = checked_by_command(capsys, file)["superelements"]["part"]
    assert said["mass"] == pytest.approx(0.02922356, rel=1e-6)
    assert said["rigid_residual"] < 1e-9
    assert np.abs(said["centre"]).max() < 1e-5
    stiffness = np.diag(parflex.cartesian_stiffness(parflex.load(file), frame="part.b").stiffness)
    assert stiffness[[2, 3, 5]] == pytest.approx([9.3955e7, 4.8321, 260.18], rel=1e-4)
    free = ON_GROUND.replace('name = "part"', 'name = "part"\njoint = "free"').format(file=FLEXURE, more="")
    found = parflex.natural_frequencies(parflex.load(written(tmp_path, free)), modes=4)
    assert len(found.free_motions) == 6
    assert found.frequencies == pytest.approx([992.92, 992.92, 8440.8, 9938.1], rel=1e-4)
    held = '[[closure]]\nbetween = ["part.b", "base"]\njoint = "welded"\n'
    assert parflex.natural_frequencies(loaded(tmp_path, FLEXURE, extra=held), modes=1).frequencies[0] == pytest.approx(
        4913.66, rel=1e-6
    )


def test_matrices_of_few_digits_are_refused_with_the_numbers_that_say_why(tmp_path, capsys):
    answer = checked_by_command(capsys, written(tmp_path, ON_GROUND.format(file=ROUNDED, more="")))
    said = answer["error"]["message"]
    for number in ("-(114 Hz)^2", "657 Hz", "1248 Hz", "7.0e-06"):
        assert number in said
    assert answer["error"]["file"] == str(ROUNDED)
    assert answer["error"]["key"] == "frame 'part': superelement.file"


def test_a_hexapod_on_flexures_vibrates_as_the_assembly_of_its_matrices():
    """Flexure, rod, flexure in each leg; the rods are beams."""
    robot = parflex.load(HERE / "robots" / "flexure-hexapod.toml")
    found = parflex.natural_frequencies(robot, modes=12).frequencies
    # the residual of K on rigid motions is 1e-10 of stiffnesses that differ by 1e7
    assert found == pytest.approx(oracle.flexure_hexapod(str(FLEXURE)), rel=1e-6)


def test_bodies_of_several_nodes_in_other_units_vibrate_as_the_assembly_of_their_matrices(tmp_path):
    """Two bars of three nodes, the second turned and held at its middle one; a hand in other axes at its end."""
    M, K = oracle.reduced(*oracle.chain(LENGTH, 4, BAR), [*range(6), *range(12, 18), *range(24, 30)], 3)
    t = np.array(([1e-3] * 3 + [1.0] * 3) * 3 + [1.0] * 3)
    places = np.array([[0, 0, 0], [LENGTH / 2, 0, 0], [LENGTH, 0, 0]])
    whole = 1e3 * np.outer(t, t)  # t, mm, N
    np.savez(tmp_path / "bar.npz", M=M * whole, K=K * whole, positions=1e3 * places, numbers=[7, 9, 4])
    turns, off = np.random.default_rng(8).normal(size=(3, 3)), np.array([0.02, -0.05, 0.03])
    nodes = "nodes = { a = 7, b = 9, c = 4 }, units = 'mm'"
    text = f"""
format = 1
name = "two"
gravity = [0, 0, 0]
[[frame]]
name = "one"
place = {{ rotation = {turns[0].tolist()} }}
superelement = {{ file = "bar.npz", {nodes} }}
[[frame]]
name = "two"
parent = "one.c"
place = {{ position = {off.tolist()}, rotation = {turns[1].tolist()} }}
superelement = {{ file = "bar.npz", root = "b", {nodes} }}
[[frame]]
name = "hand"
parent = "two.a"
place = {{ rotation = {turns[2].tolist()} }}
inertia = {{ mass = 0.1, about_centre = [1e-4, 2e-4, 3e-4] }}
"""
    robot = parflex.load(written(tmp_path, text))
    R1, R2, R3 = (scipy.linalg.expm(hat(turn)) for turn in turns)
    R2, R3 = R1 @ R2, R1 @ R2 @ R3
    both = [np.kron(np.eye(2), R.T) for R in (R1, R2, R3)]
    size = 4 * 6 + 2 * 3  # one.b, one.c, two.a, two.c in world axes, and modes
    first, second, hand = np.zeros((21, size)), np.zeros((21, size)), np.zeros((6, size))
    first[6:12, :6] = first[12:18, 6:12] = both[0]
    first[18:, 24:27] = second[18:, 27:] = np.eye(3)
    carried = np.block([[np.eye(3), -hat(R1 @ off)], [np.zeros((3, 3)), np.eye(3)]])
    second[6:12, 6:12], second[:6, 12:18], second[12:18, 18:24] = both[1] @ carried, both[1], both[1]
    hand[:, 12:18] = both[2]
    stiff = first.T @ K @ first + second.T @ K @ second
    mass = first.T @ M @ first + second.T @ M @ second
    mass += hand.T @ np.diag([0.1, 0.1, 0.1, 1e-4, 2e-4, 3e-4]) @ hand
    expected = np.sqrt(scipy.linalg.eigvalsh(stiff, mass)[:12]) / (2 * np.pi)
    assert parflex.natural_frequencies(robot, modes=12).frequencies == pytest.approx(expected, rel=1e-8)


# -- its motion ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["flexure", "beam, free", "beam, clamped"])
def body(request, tmp_path_factory):
    """Elements, what the root is, and bodies."""
    if request.param == "flexure":
        data = load_matrices(str(FLEXURE), [1, 2])
    else:
        data = load_matrices(as_npz(tmp_path_factory.mktemp("m") / "beam.npz", *beam_matrices(4)), [1, 2])
    element = super_element(data, {"a": 1, "b": 2}, None if "free" in request.param else "a", None)
    return element, super_body(element)


def test_the_kinetic_energy_at_rest_is_that_of_the_mass_matrix(body):
    """T = 1/2 V^T M V with V the velocities of interfaces in moving axes and the modal rates."""
    element, elastic = body
    rng = np.random.default_rng(1)
    for _ in range(5):
        v, w, ed = rng.normal(size=3), rng.normal(size=3), rng.normal(size=elastic.size)
        V = element.X @ np.concatenate([v, w]) + element.shapes()[0] @ ed
        nodes = [elastic.inner.node(name) for name in ("a", "b")]
        felt = [np.concatenate([v + np.cross(w, n.r0) + n.Phi_d @ ed, w + n.Phi_r @ ed]) for n in nodes]
        assert np.concatenate(felt) == pytest.approx(V[:12], rel=1e-9, abs=1e-9)
        T = elastic.kinetic_energy(v, w, np.zeros(elastic.size), ed)
        assert pytest.approx(0.5 * V @ element.data.M @ V, rel=1e-7) == T  # masses along x and y differ by 2e-8


def test_energy_and_momentum_of_a_free_super_element_are_kept(body):
    """Rates along the motion that no force acts on, by central differences; deflections far from small."""
    _, elastic = body
    rng = np.random.default_rng(2)
    N, zero = elastic.size, np.zeros(elastic.size)
    size = np.sqrt(np.diag(elastic.inertia_matrix(zero))[6:])
    e, ed = (rng.normal(size=N) * s / size * np.sqrt(elastic.m) for s in (0.002, 0.02))
    v, w = rng.normal(size=3), rng.normal(size=3)

    def momenta(v, w, e, ed):
        return elastic.inertia_matrix(e) @ np.concatenate([v, w, ed])

    U = hat(w) @ hat(w)
    bias = np.concatenate(elastic.forces(U, np.zeros(3), w, e, ed, zero))
    a, al, edd = np.split(-np.linalg.solve(elastic.inertia_matrix(e), bias), [3, 6])
    h = 1e-6 / np.sqrt(np.abs(edd).max() / np.abs(ed).max() + 1)
    ends = [
        (v + s * h * (a - np.cross(w, v)), w + s * h * al, e + s * h * ed + h * h / 2 * edd, ed + s * h * edd)
        for s in (1, -1)
    ]
    energy = [elastic.kinetic_energy(*end) + elastic.strain_energy(end[2]) for end in ends]
    power = np.abs(ed) @ np.abs(elastic.K @ e)
    assert abs(energy[0] - energy[1]) / (2 * h) < 1e-6 * power
    p, after, before = (momenta(*end) for end in ((v, w, e, ed), *ends))
    rate = (after - before)[:6] / (2 * h)
    total = [rate[:3] + np.cross(w, p[:3]), rate[3:] + np.cross(w, p[3:6]) + np.cross(v, p[:3])]
    felt = np.abs(elastic.inertia_matrix(e)[:6]) @ np.abs(np.concatenate([a, al, edd]))
    assert np.abs(total[0]).max() < 1e-6 * (felt[:3].max() + np.abs(p[:3]).max())
    assert np.abs(total[1]).max() < 1e-6 * (felt[3:].max() + np.abs(p[3:6]).max())


def test_the_short_form_of_the_inertia_is_that_of_all_integrals(body):
    """Mean motions of the coordinates against sums over all pairs of shapes, S and G, far from small deflections."""
    fixed = RigidBody.from_centre(0.3, [0.1, -0.2, 0.05], np.diag([1e-3, 2e-3, 2.5e-3]))
    rng, N = np.random.default_rng(3), body[1].size
    size = np.sqrt(np.diag(body[1].inertia_matrix(np.zeros(N)))[6:])
    for short in (body[1], body[1].with_rigid(fixed)):
        long = replace(short, affine=None)
        e, ed, edd = rng.normal(size=(3, N)) / size * np.sqrt(short.m)
        a, al, w = rng.normal(size=(3, 3))
        U = hat(al) + hat(w) @ hat(w)
        for ours, theirs in zip(short.forces(U, a, w, e, ed, edd), long.forces(U, a, w, e, ed, edd), strict=True):
            assert np.abs(ours - theirs).max() < 1e-10 * np.abs(theirs).max()  # rounding, left out of G or of its parts
        scale = np.sqrt(np.diag(long.inertia_matrix(e)))
        for word in ("inertia_matrix", "coupling"):
            ours, theirs = (getattr(one, word)(e) for one in (short, long))
            part = scale if word == "inertia_matrix" else scale[6:]
            assert np.abs((ours - theirs) / np.outer(scale[: len(ours)], part)).max() < 1e-10
        for ours, theirs in zip(short.deformed(e), long.deformed(e), strict=True):
            assert np.abs(ours - theirs).max() < 1e-10 * np.abs(theirs).max()
    with_mass = body[1].with_point_mass(body[1].nodes["b"], 0.1)
    assert with_mass.inertia_matrix(e)[0, 0] == pytest.approx(body[1].m + 0.1)
    assert with_mass.forces(U, a, w, e, ed, edd)[0] == pytest.approx(
        body[1].forces(U, a, w, e, ed, edd)[0] + 0.1 * _acceleration(body[1].nodes["b"], U, a, w, e, ed, edd), rel=1e-9
    )


def _acceleration(node, U, a, w, e, ed, edd):
    """Of a place on an elastic body."""
    return a + U @ (node.r0 + node.Phi_d @ e) + 2 * np.cross(w, node.Phi_d @ ed) + node.Phi_d @ edd


def test_operators_of_a_flexure_do_not_rise(tmp_path):
    """12 coordinates; sums over all pairs of shapes took 2707 operators and 2555."""
    turning = ON_GROUND.replace('name = "part"', 'name = "part"\njoint = "revolute"\nactuated = true')
    hand = '[[frame]]\nname = "hand"\nparent = "part.b"\ninertia = { mass = 0.2, about_centre = [1e-4, 1e-4, 1e-4] }\n'
    robot = parflex.load(written(tmp_path, turning.format(file=FLEXURE, more="") + hand))
    assert {name: parflex.model(robot, name).counts["total"] for name in ("direct", "inverse")} == {
        "direct": 1899,
        "inverse": 1838,
    }


ARM = """
format = 1
name = "arm"
gravity = [0, 0, -9.81]
axial = "linear"
end_effector = "hand"
[materials.steel]
elastic_modulus = 210e9
density = 7850
[sections.round]
shape = "circle"
diameter = 0.004
[[frame]]
name = "motor"
joint = "revolute"
actuated = true
inertia = {{ mass = 0.2, about_centre = [1e-3, 1e-3, 1e-3] }}
[[frame]]
name = "link"
parent = "motor"
place = {{ position = [0.05, 0, 0], rotation = [0.1, 0.2, 0.3] }}
{body}
[[frame]]
name = "hand"
parent = "link.tip"
inertia = {{ mass = 0.05, about_centre = [2e-5, 2e-5, 2e-5], centre = [0.01, 0, 0] }}
"""
BEAM = 'beam = {{ length = 0.3, material = "steel", section = "round", elements = {} }}'
SUPER = 'superelement = {{ file = "{}", nodes = {{ root = 1, tip = 2 }} }}'


def arms(folder: Path, elements: int) -> tuple[parflex.Robot, parflex.Robot]:
    """The same arm with a beam, and with the super-element of all the modes of its elements."""
    file = as_npz(folder / "beam.npz", *beam_matrices(6 * (elements - 1), elements))
    texts = (BEAM.format(elements), SUPER.format(file))
    return tuple(parflex.load(written(folder, ARM.format(body=text), f"{k}.toml")) for k, text in enumerate(texts))  # type: ignore[return-value]


def test_a_beam_and_the_super_element_made_of_it_have_the_same_frequencies(tmp_path):
    beam, other = (parflex.natural_frequencies(robot, modes=10).frequencies for robot in arms(tmp_path, 4))
    assert other == pytest.approx(beam, rel=1e-7)


def test_a_beam_and_the_super_element_made_of_it_move_alike_at_small_deflections(tmp_path):
    """Centrifugal loads of bent and stretched shapes are estimated: differences fall with the deflection."""
    beam, other = arms(tmp_path, 1)
    rng = np.random.default_rng(3)
    shape, rates = rng.normal(size=(2, 6)) * [1, 1, 1, 5, 5, 5]
    worst = []
    for size in (1e-4, 1e-5):
        q, qd = np.concatenate([[0.7], size * shape]), np.concatenate([[3.0], 30 * size * rates])
        accelerations = [parflex.forward_dynamics(robot, q, qd, [0.2]) for robot in (beam, other)]
        off = np.abs(accelerations[1] - accelerations[0])
        worst.append(float((off / np.abs(accelerations[0]).max()).max()))
    # products of two shapes are known but for their directions: terms with squares of the deflection and its rate
    assert worst[0] < 1e-5
    assert worst[1] < 2e-6
    still = [parflex.forward_dynamics(robot, np.eye(7)[0], 4 * np.eye(7)[0], [0.0]) for robot in (beam, other)]
    # loads of a turn; sections of the beam have inertia about x alone, the super-element has an extent of that inertia
    assert still[1] == pytest.approx(still[0], abs=2e-5 * np.abs(still[0]).max())


@pytest.mark.parametrize("file", ["beam", "flexure"])
def test_a_super_element_that_floats_keeps_energy_and_momentum_in_a_run(tmp_path, file):
    """It turns by a radian and vibrates; rows of the run, against the integrals of the body."""
    path = FLEXURE if file == "flexure" else as_npz(tmp_path / "beam.npz", *beam_matrices(2))
    text = ON_GROUND.replace('name = "part"', 'name = "part"\njoint = "free"').format(file=path, more="")
    robot = parflex.load(written(tmp_path, text.replace("format = 1", "format = 1\ngravity = [0, 0, 0]")))
    body, rng = robot.tree.links[0].body, np.random.default_rng(6)
    fast = np.sqrt(np.diag(body.K) / np.diag(body.inertia_matrix(np.zeros(body.size)))[6:])
    e, ed = rng.normal(size=(2, body.size)) * 3e-5 * np.sqrt(body.m)
    ed = ed * fast[0]
    turns = np.array([12.0, -20.0, 30.0])
    period = 2 * np.pi / fast[0]
    start = {"q": np.concatenate([[0.1, 0.2, 0.3, 1, 0, 0, 0], e]), "qd": np.concatenate([[0.3, -0.2, 0.1], turns, ed])}
    run = parflex.simulate(
        robot, None, 5 * period, start=start, step=period / 150, out_step=period / 10, method="gauss6"
    )
    q = np.column_stack([run[f"q.{name}"] for name in robot.coordinates])
    qd = np.column_stack([run[f"qd.{name}"] for name in robot.coordinates])
    kept = []
    for x, xd in zip(q, qd, strict=True):
        R, e, (a, b) = quaternion_matrix(x[3:7]), x[7:], (x[3:7], xd[3:7])
        w = 2 * (a[0] * b[1:] - b[0] * a[1:] - np.cross(a[1:], b[1:]))
        rates = np.concatenate([R.T @ xd[:3], w, xd[7:]])
        I = body.inertia_matrix(e)
        p = I @ rates
        linear = R @ p[:3]
        angular = R @ p[3:6] + np.cross(x[:3], linear)
        kept.append([rates @ p / 2 + body.strain_energy(e), *linear, *angular])
    kept = np.array(kept)
    assert body.strain_energy(q[0, 7:]) > 0.01 * kept[0, 0]
    # Gauss' method keeps both to its sixth order: 150 steps in a period of the lowest mode
    for part in (slice(1, 4), slice(4, 7)):
        assert np.abs(kept[:, part] - kept[0, part]).max() < 1e-7 * np.linalg.norm(kept[0, part])
    assert np.abs(kept[:, 0] - kept[0, 0]).max() < 1e-7 * kept[0, 0]


def test_a_beam_and_the_super_element_made_of_it_agree_in_time(tmp_path):
    motion = {"moves": [{"motor": 0.04}], "law": "septic", "duration": 0.1}
    runs = [parflex.simulate(robot, motion, time=0.15, step=1e-3) for robot in arms(tmp_path, 1)]
    tips = [np.column_stack([run[f"hand.{axis}"] for axis in "xyz"]) for run in runs]
    bent = np.abs(runs[0]["q.link.uy"]).max()
    assert 0.005 < bent < 0.01  # m
    assert np.abs(tips[1] - tips[0]).max() < 2e-5 * bent  # it falls with the square of the deflection


@pytest.mark.verify
@LONG
def test_a_beam_of_two_elements_and_its_super_element_agree_in_time(tmp_path):
    motion = {"moves": [{"motor": 0.4}], "law": "septic", "duration": 0.3}
    runs = [parflex.simulate(robot, motion, time=0.5, step=5e-4) for robot in arms(tmp_path, 2)]
    tips = [np.column_stack([run[f"hand.{axis}"] for axis in "xyz"]) for run in runs]
    rigid = tips[0][0]
    assert np.abs(tips[1] - tips[0]).max() < 1e-4 * np.linalg.norm(rigid)


def test_programs_and_maps_know_super_elements(tmp_path):
    _, robot = arms(tmp_path, 1)
    rng = np.random.default_rng(4)
    q, qd = np.concatenate([[0.3], 1e-3 * rng.normal(size=6)]), 0.1 * rng.normal(size=7)
    made = parflex.model(robot, "direct")
    found = np.concatenate([np.ravel(part) for part in made(q=q, qd=qd, effort=[0.3]).values()])
    expected = parflex.forward_dynamics(robot, q, qd, [0.3])
    assert found == pytest.approx(expected, rel=1e-9)
    again = parflex.inverse_dynamics(robot, q, qd, expected)
    assert again == pytest.approx([0.3], rel=1e-6)
    answer = parflex.many_frequencies(robot, ["motor"], np.array([[0.0], [0.5]]), modes=3)
    assert answer.frequencies[1] == pytest.approx(
        parflex.natural_frequencies(robot, {"motor": 0.5}, modes=3).frequencies
    )


def stressed_strip(count: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A strip in a few elements reduced to its ends and six modes: M, K, and KG of a unit of tension."""
    M, K = oracle.chain(LENGTH, count, BAR)
    h, KG = LENGTH / count, np.zeros_like(K)
    bent = np.array([[36, 3 * h, -36, 3 * h], [3 * h, 4 * h * h, -3 * h, -h * h],
                     [-36, -3 * h, 36, -3 * h], [3 * h, -h * h, -3 * h, 4 * h * h]]) / (30 * h)  # fmt: skip
    sign = np.outer([1, -1, 1, -1], [1, -1, 1, -1])
    for k in range(count):
        for where, A in (([1, 5, 7, 11], bent), ([2, 4, 8, 10], sign * bent)):
            KG[np.ix_([6 * k + i for i in where], [6 * k + i for i in where])] += A
    kept = [*range(6), *range(6 * count, 6 * count + 6)]
    inner = [k for k in range(len(M)) if k not in kept]
    inverse, held = scipy.linalg.eigh(M[np.ix_(inner, inner)], K[np.ix_(inner, inner)])
    T = np.zeros((len(M), 18))
    T[kept, :12] = np.eye(12)
    T[inner, :12] = -np.linalg.solve(K[np.ix_(inner, inner)], K[np.ix_(inner, kept)])
    T[inner, 12:] = held[:, ::-1][:, :6] / np.sqrt(inverse[::-1][:6])
    return T.T @ M @ T, T.T @ K @ T, T.T @ KG @ T


def test_tension_stiffens_by_the_geometric_matrix_of_the_file(tmp_path):
    """A clamped strip under a dead pull: K + N KG of its elements, reduced with the same shapes."""
    M, K, KG = stressed_strip()
    file = as_npz(tmp_path / "strip.npz", M, K, geometric=KG)
    robot = loaded(tmp_path, file, ", geometric = { b = [1, 0, 0, 0, 0, 0] }", "")
    N = 20.0
    found = parflex.natural_frequencies(robot, modes=4, about="equilibrium", wrench={"part.b": [N, 0, 0, 0, 0, 0]},
                                        without=["gravity"])  # fmt: skip
    A = (K + N * KG)[6:, 6:]
    expected = np.sqrt(scipy.linalg.eigvalsh(A, M[6:, 6:])[:4]) / (2 * np.pi)
    assert found.frequencies == pytest.approx(expected, rel=1e-6)
    slack = parflex.natural_frequencies(loaded(tmp_path, file, ", geometric = false"), modes=4).frequencies
    assert found.frequencies[0] > 1.05 * slack[0]


@pytest.mark.parametrize("share", [-0.6, 2.0])
@pytest.mark.parametrize("units", ["m", "mm"])
def test_a_column_with_a_geometric_matrix_per_freedom_bends_as_one_under_axial_load(tmp_path, share, units):
    """Closed form of a cantilever under an axial and a small lateral load; -1 is Euler's buckling load.

    The matrix of the axial freedom of each end is that of the tension that its motion makes.
    """
    M, K, KG = stressed_strip(4)
    cube = np.zeros((18, 18, 18))
    cube[6], cube[0] = K[6, 6] * KG, -K[6, 6] * KG
    scale, length = np.ones(18), 1.0
    if units == "mm":
        scale[[0, 1, 2, 6, 7, 8]], length = 1e-3, 1e-3
        M, K, cube = (A * 1e3 * np.multiply.outer(scale, scale) for A in (M, K, cube))  # t, mm, N: mJ
        cube = cube * scale[:, None, None]
    np.savez(tmp_path / "strip.npz", M=M, K=K, geometric=cube, positions=[[0, 0, 0], [LENGTH / length, 0, 0]])
    robot = loaded(tmp_path, "strip.npz", f", units = '{units}'")
    EI = 210e9 * BAR.Iy
    N, F = share * np.pi**2 * EI / (4 * LENGTH**2), 1e-4
    found = parflex.equilibrium(robot, wrench={"part.b": [N, F, 0, 0, 0, 0]}, without=["gravity"])
    kappa = np.sqrt(abs(N) / EI)
    wave = np.tan if N < 0 else np.tanh
    expected = F / (abs(N) * kappa) * abs(wave(kappa * LENGTH) - kappa * LENGTH)
    deflected = found.configuration.q[robot.coordinates.index("part.uy")]
    assert deflected == pytest.approx(expected, rel=2e-3)  # six shapes of four elements


def test_damping_is_a_ratio_of_all_modes_factors_or_the_matrix_of_the_file(tmp_path):
    M, K = beam_matrices(2)
    file = as_npz(tmp_path / "damped.npz", M, K, D=1e-4 * K)
    ratio = parflex.natural_frequencies(loaded(tmp_path, file, ", damping = 0.02"), modes=3)
    assert ratio.damping == pytest.approx([0.02] * 3, rel=1e-6)
    own, factors = (
        parflex.natural_frequencies(loaded(tmp_path, file, more), modes=3).damping
        for more in ("", ", damping = { stiffness = 1e-4 }")
    )
    assert own == pytest.approx(factors, rel=1e-6)
    assert own[0] == pytest.approx(np.pi * 1e-4 * ratio.frequencies[0], rel=1e-6)


# -- files of others -----------------------------------------------------------------------------------------


def files_of(kind: str, folder: Path, M: np.ndarray, K: np.ndarray) -> str | dict[str, str]:
    places = np.array([[0, 0, 0], [LENGTH, 0, 0]])
    if kind == "npz":
        return as_npz(folder / "m.npz", M, K, numbers=np.array(NUMBERS))
    if kind == "mat":
        scipy.io.savemat(folder / "m.mat", {"M": M, "K": K, "int_xyz": places, "int_i": np.array(NUMBERS)})
        return str(folder / "m.mat")
    if kind == "market":
        return {"M": market(folder / "M.mtx", M), "K": market(folder / "K.mtx", K)}
    if kind == "market, dense":
        return {"M": market(folder / "M.mtx", M, True), "K": market(folder / "K.mtx", K, True)}
    if kind == "abaqus":
        return abaqus_substructure(folder / "sub.mtx", M, K)
    if kind == "abaqus, entries":
        return {"M": abaqus_entries(folder / "J_MASS1.mtx", M), "K": abaqus_entries(folder / "J_STIF1.mtx", K)}
    return nastran_punch(folder / "se.pch", M, K, places if "grid" in kind else None, wide="free" not in kind)


KINDS = [
    "npz",
    "mat",
    "market",
    "market, dense",
    "abaqus",
    "abaqus, entries",
    "nastran",
    "nastran, grid",
    "nastran, free",
]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_body_is_read_from_every_format(kind, tmp_path):
    """Numbers of nodes are those of the file or 1 and 2; positions come from the file or from K."""
    M, K = beam_matrices(3)
    file = files_of(kind, tmp_path, M, K)
    named = (1, 2) if "market" in kind else NUMBERS
    element = super_element(load_matrices(file, named), {"a": named[0], "b": named[1]}, "a", None)
    for given, read in ((K, element.data.K), (M, element.data.M)):
        size = np.sqrt(np.diag(given))
        assert np.abs(read - given).max() > 0 or "nastran" not in kind
        assert (np.abs(read - given) / np.outer(size, size)).max() < 2e-9  # a punch file has ten digits
    assert element.report.mass == pytest.approx(7850 * BAR.A * LENGTH, rel=1e-8)
    assert element.report.centre == pytest.approx([LENGTH / 2, 0, 0], abs=1e-7)
    assert element.report.positions == pytest.approx(np.array([[0, 0, 0], [LENGTH, 0, 0]]), abs=1e-6)
    assert element.report.placed == ("file" if kind in ("npz", "mat", "nastran, grid") else "matrices")


def test_lines_of_a_foreign_punch_file_and_of_an_abaqus_element_are_read_as_they_stand():
    """The first lines of a punch file of Simcenter Nastran, and the element matrix of a page on Abaqus."""
    from parflex.bodies.super_elements.nastran_matrices import cards, number

    text = (
        "DMIG    KAAX           0       6       1       0                      66\n"
        "DMIG*   KAAX                           1               5\n"
        "*                      1               4-7.745293971E-01\n"
        "*                      1               5 5.162902027E+00\n"
    )
    head, column = cards(text, "")
    assert head[1:5] == ["KAAX", "0", "6", "1"]
    assert column[2:4] == ["1", "5"]
    assert [number(column[k], "") for k in (7, 11)] == [-0.7745293971, 5.162902027]
    assert [number(x, "") for x in ("3.1416-6", "1.-3", "-2.5D+04", ".5", "7850.")] == [
        3.1416e-6,
        1e-3,
        -2.5e4,
        0.5,
        7850,
    ]


def test_a_substructure_whose_freedoms_are_listed_one_by_one_is_read(tmp_path):
    """As CalculiX writes it: a node for every freedom. It writes no masses, which is said."""
    M, K = beam_matrices(0)
    lines = ["**", "** GENERATION OF SUBSTRUCTURE", "*USER ELEMENT,NODES=         12,LINEAR", "** ELEMENT NODES"]
    listed = [node for node in NUMBERS for _ in range(6)]
    lines += ["**" + "".join(f"{node:10d}," for node in listed[k : k + 10]) for k in (0, 10)]
    lines += [f"{1:10d}", *(f"{k:10d},{(k - 1) % 6 + 1:10d}" for k in range(2, 13))]
    for word, A in (("STIFFNESS", K), ("MASS", M)):
        lines += [f"*MATRIX,TYPE={word}"]
        for row in range(12):
            values = [f"{x:20.13e}" for x in A[row, : row + 1]]
            lines += [",".join(values[k : k + 4]) + "," for k in range(0, len(values), 4)]
        (tmp_path / f"{word}.mtx").write_text("\n".join(lines) + "\n")
    data = load_matrices(str(tmp_path / "MASS.mtx"), NUMBERS)
    assert [node.number for node in data.nodes] == list(NUMBERS)
    assert np.abs(data.K - K).max() < 1e-9 * np.abs(K).max()
    with pytest.raises(RobotFileError, match="mass matrix M is missing"):
        load_matrices(str(tmp_path / "STIFFNESS.mtx"), NUMBERS)


# -- bad input -----------------------------------------------------------------------------------------------


def bad_matrices(what: str) -> dict[str, np.ndarray]:
    M, K = beam_matrices(2)
    places = np.array([[0, 0, 0], [LENGTH, 0, 0]])
    if what == "unsymmetric":
        K[3, 7] += 1e-3 * K.max()
    elif what == "indefinite mass":
        M[1, 1] *= 0.3
    elif what == "negative mass":
        M[1, 1] *= -1
    elif what == "mass beside the diagonal":
        M[10, 10] = 0.0
    elif what == "indefinite stiffness":
        K[13, 13] *= -1
    elif what in ("by kind", "modes first"):
        order = [0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11, 12, 13] if what == "by kind" else [12, 13, *range(12)]
        M, K = (A[np.ix_(order, order)] for A in (M, K))
    elif what == "other size":
        M = M[:-1, :-1]
    elif what == "held":
        K = K + np.diag([1e6] * 6 + [0] * 8)
    elif what == "nan":
        K[0, 0] = np.nan
    elif what == "positions in millimetres":
        places = places * 1000
    elif what == "one position":
        places = places[:1]
    elif what == "complex":
        K = K.astype(complex)
    numbers = np.array(NUMBERS, dtype=float)
    if what == "number of a node":
        numbers[1] = np.nan
    return {"M": M, "K": K, "int_xyz": places, "numbers": numbers}


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("unsymmetric", "K is not symmetric: rows"),
        ("indefinite mass", "mass matrix is indefinite"),
        ("negative mass", "negative mass on its diagonal"),
        ("mass beside the diagonal", "freedom 11 has no mass, but is tied to others by mass"),
        ("indefinite stiffness", "is indefinite, lowest eigenvalue"),
        ("by kind", "x y z rx ry rz of each interface node"),
        ("modes first", "x y z rx ry rz of each interface node"),
        ("other size", "is 13 x 13, with 14 freedoms"),
        ("held", "is not that of a free body"),
        ("nan", "not a finite number"),
        ("positions in millimetres", "positions are in the unit of the matrices"),
        ("number of a node", "numbers of nodes are not whole numbers"),
        ("one position", "1 positions for 2 nodes"),
        ("complex", "complex numbers"),
    ],
)
def test_matrices_that_cannot_be_are_refused_in_one_sentence(what, words, tmp_path):
    np.savez(tmp_path / "bad.npz", **bad_matrices(what))
    with pytest.raises(RobotFileError) as caught:
        loaded(tmp_path, "bad.npz")
    assert words in str(caught.value)
    assert caught.value.hint
    assert caught.value.key.startswith("frame 'part': superelement.")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_truncated_files_are_refused(kind, share, tmp_path):
    file = files_of(kind, tmp_path, *beam_matrices(3))
    paths = [file] if isinstance(file, str) else list(file.values())
    content = Path(paths[-1]).read_bytes()
    Path(paths[-1]).write_bytes(content[: int(share * len(content))])
    with pytest.raises(RobotFileError):
        named = (1, 2) if "market" in kind else NUMBERS
        super_body(super_element(load_matrices(file, named), {"a": named[0], "b": named[1]}, "a", None))


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_read_or_refused_in_a_sentence(kind, tmp_path):
    """No traceback, whatever stands in a file; `make verify` tries more of them."""
    file = files_of(kind, tmp_path, *beam_matrices(3))
    paths = [file] if isinstance(file, str) else list(file.values())
    contents, rng = [Path(path).read_bytes() for path in paths], random.Random(7)
    named = (1, 2) if "market" in kind else NUMBERS
    each = {} if isinstance(file, str) else file
    text = "{ " + ", ".join(f'{key} = "{path}"' for key, path in each.items()) + " }" if each else f'"{file}"'
    robot = ON_GROUND.format(file="FILE", more="").replace('"FILE"', text)
    robot = robot.replace("a = 1, b = 2", f"a = {named[0]}, b = {named[1]}")
    for _ in range(300 if os.environ.get("PARFLEX_VERIFY") else 8):
        which = rng.randrange(len(paths))
        Path(paths[which]).write_bytes(damaged(contents[which], rng))
        try:
            parflex.load(written(tmp_path, robot))
        except RobotFileError as error:
            assert "\n" not in str(error)
            assert len(str(error)) < 900
        Path(paths[which]).write_bytes(contents[which])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\0\1\2" * 50, "is binary"),
        (b"hello there", "not a known file of reduced matrices"),
        (b"%%MatrixMarket matrix coordinate real symmetric\n99999999 99999999 1\n", "name a file for each"),
        (b"*USER ELEMENT, NODES= 2, LINEAR\n*INCLUDE, INPUT=/etc/passwd\n", "includes another file"),
        (b"*USER ELEMENT, NODES= 2, LINEAR\n** ELEMENT NODES\n** 1, 2\n1, nan, 3\n", "not a list of freedoms"),
        (b"INCLUDE '/etc/passwd'\nDMIG    KAAX           0       6       1       0\n", "includes another file"),
        (b"MATLAB 7.3 MAT-file, Platform: GLNXA64" + b" " * 200, "save it with save"),
        (b"$ EXTERNAL SUPERELEMENT       75\nBEGIN SUPER       75\nEXTRN        373  123456\n", "has no matrices"),
        (b"PK\x03\x04" + b"x" * 200, "damaged or truncated npz"),
    ],
)
def test_files_that_are_something_else_are_refused(content, words, tmp_path):
    (tmp_path / "m.mtx").write_bytes(content)
    with pytest.raises(RobotFileError, match=words):
        loaded(tmp_path, "m.mtx")


def test_hostile_files_are_refused_before_anything_of_their_size_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr("parflex.bodies.super_elements.matrix_files.MAX_BYTES", 100_000)
    np.savez_compressed(tmp_path / "bomb.npz", M=np.zeros((200, 200)), K=np.zeros((200, 200)))
    scipy.io.savemat(tmp_path / "bomb.mat", {"K": np.zeros((200, 200)), "M": np.eye(6)}, do_compression=True)
    for name in ("bomb.npz", "bomb.mat"):
        with pytest.raises(RobotFileError, match="unpacks to more than"):
            loaded(tmp_path, name)
    np.savez(tmp_path / "pickle.npz", M=np.array([{}], dtype=object), K=np.eye(6))
    with pytest.raises(RobotFileError):
        loaded(tmp_path, "pickle.npz")
    (tmp_path / "m.mtx").write_text("%%MatrixMarket matrix array real general\n99999999 99999999\n1\n")
    with pytest.raises(RobotFileError, match="99999999 freedoms, more than"):
        load_matrices({"M": str(tmp_path / "m.mtx"), "K": str(tmp_path / "m.mtx")}, [1])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (", modes = 5", "5 modes are requested"),
        (", damping = -1", "is negative"),
        (", root = 'c'", "'c' is not a node"),
        (", geometric = { b = [1, 2] }", "six components"),
        (", units = 'inch'", "units"),
        (", size = 3", "size"),
        (", positions = { a = [0, 0, 0] }", "has no position"),
    ],
)
def test_keys_that_make_no_sense_are_refused(more, words, tmp_path):
    as_npz(tmp_path / "m.npz", *beam_matrices(2))
    with pytest.raises(RobotFileError) as caught:
        loaded(tmp_path, "m.npz", more)
    assert words in str(caught.value)


def test_lumped_masses_without_rotary_inertia_are_read_and_told_where_they_do_not_suffice(tmp_path):
    """As bars of Nastran by default: turning about the own axis has no inertia, which ended in a traceback."""
    _, K = beam_matrices(0)
    file = as_npz(tmp_path / "lumped.npz", np.diag([0.01] * 3 + [0.0] * 3 + [0.01] * 3 + [0.0] * 3), K)
    hand = '[[frame]]\nname = "hand"\nparent = "part.b"\ninertia = { mass = 0.1, about_centre = [1e-4, 1e-4, 1e-4] }\n'
    robot = loaded(tmp_path, file, extra=hand)
    M = np.diag([0.11] * 3 + [1e-4] * 3)
    expected = np.sqrt(scipy.linalg.eigvalsh(K[6:, 6:], M)) / (2 * np.pi)
    assert parflex.natural_frequencies(robot, modes=6).frequencies == pytest.approx(expected, rel=1e-9)
    with pytest.raises(parflex.SingularError, match=r"the motion of 'part\.r[xyz]' has no positive inertia"):
        parflex.natural_frequencies(loaded(tmp_path, file), modes=1)
    free = ON_GROUND.replace('name = "part"', 'name = "part"\njoint = "free"').format(file=file, more="")
    with pytest.raises(RobotFileError, match="has no free modes"):
        parflex.load(written(tmp_path, free))


def test_nodes_are_those_of_the_file_or_counted_and_missing_ones_are_named(tmp_path):
    np.savez(tmp_path / "m.npz", **bad_matrices("nothing"))
    text = ON_GROUND.format(file="m.npz", more="")
    by_number = written(tmp_path, text.replace("a = 1, b = 2", "a = 3, b = 11"))
    assert parflex.load(by_number).tree.places["part.b"] is not None
    for nodes, words in (
        ("a = 3, b = 12", "has no node 12"),
        ("a = 3, b = 2", "has no node 2"),
        ("a = 3, b = 3", "one node"),
    ):
        with pytest.raises(RobotFileError, match=words):
            parflex.load(written(tmp_path, text.replace("a = 1, b = 2", nodes)))


def hub_with_masses(away: float, stiffness: float) -> dict[str, np.ndarray]:
    """A hub and the end of its stub, which are nodes, and two masses on springs beside it, which are modes."""
    places = np.array([[0.1, 0, 0], [0, away, 0], [0, -away, 0]])

    def carried(place):  # what moves rigidly with the hub
        return np.block([[np.eye(3), -hat(place)], [np.zeros((3, 3)), np.eye(3)]])

    K, M = np.zeros((18, 18)), np.zeros((18, 18))
    stub = np.hstack([-carried(places[0]), np.eye(6)])
    K[:12, :12] = stub.T @ np.diag([1e7, 1e6, 1e6, 1e3, 1e4, 1e4]) @ stub
    M[:12, :12] = np.diag([0.2] * 3 + [1e-6] * 3 + [0.1] * 3 + [1e-6] * 3)
    K[12:, 12:] = stiffness * np.eye(6)
    for k, place in enumerate(places[1:]):
        moved = np.zeros((3, 18))
        moved[:, :6], moved[:, 12 + 3 * k : 15 + 3 * k] = carried(place)[:3], np.eye(3)
        M += 0.5 * moved.T @ moved
    return {"M": M, "K": K, "positions": np.array([[0, 0, 0], places[0]])}


@pytest.mark.parametrize(("away", "stiffness", "said"), [(0.2, 1e4, True), (0.2, 1e8, False), (0.002, 1e4, False)])
def test_mass_aside_of_all_nodes_is_told_where_turning_would_move_it(tmp_path, away, stiffness, said):
    np.savez(tmp_path / "hub.npz", **hub_with_masses(away, stiffness))
    robot = loaded(tmp_path, "hub.npz")
    assert any("aside of its interface nodes" in text for text in robot.warnings) == said
    if said:  # sqrt(k/m) / 10
        assert any("at 14 rad/s or faster" in text for text in robot.warnings)


def in_units(folder: Path, name: str, M: np.ndarray, K: np.ndarray, places: np.ndarray, **more: np.ndarray) -> str:
    """A body of two nodes written in a system of units: (mass, length, force) in kg, m, N."""
    mass, length, force = SYSTEMS[name]
    t = np.ones(len(M))
    t[[0, 1, 2, 6, 7, 8]] = length
    whole = np.outer(t, t)
    file = folder / f"{name}.npz"
    arrays = {"M": M * whole / (mass * length**2), "K": K * whole / (force * length)}
    np.savez(file, **arrays, positions=np.asarray(places) / length, **{k: A * whole for k, A in more.items()})
    return file.name


POUND = 0.45359237 * 9.80665
SYSTEMS = {
    "m": (1, 1, 1),
    "mm": (1e3, 1e-3, 1),
    "kg-mm-N": (1, 1e-3, 1),
    "kg-mm-ms": (1, 1e-3, 1e3),
    "kg-mm-s": (1, 1e-3, 1e-3),
    "in": (POUND / 0.0254, 0.0254, POUND),
}


def small_bodies() -> dict[str, tuple]:
    """A slender rod, a stub, and a flexure whose nodes coincide."""
    real = scipy.io.loadmat(FLEXURE)
    ends = np.array([[0, 0, 0], [1, 0, 0]])
    return {
        "rod": (*beam_matrices(2), LENGTH * ends),
        "stub": (*oracle.reduced_beam(0.05, 4, oracle.round_bar(0.03), 2), 0.05 * ends),
        "flexure": (real["M"], real["K"], real["int_xyz"]),
    }


@pytest.mark.parametrize("units", SYSTEMS)
def test_matrices_are_converted_from_every_system_of_units(tmp_path, units):
    M, K, places = small_bodies()["rod"]
    D = 1e-4 * K / (SYSTEMS[units][2] * SYSTEMS[units][1]) * (1e3 if units == "kg-mm-ms" else 1)
    robot = loaded(tmp_path, in_units(tmp_path, units, M, K, places, D=D), f', units = "{units}"')
    assert not robot.warnings
    said = robot.tree.links[0].body.found
    assert said.mass == pytest.approx(7850 * BAR.A * LENGTH, rel=1e-9)
    assert said.centre == pytest.approx([LENGTH / 2, 0, 0], abs=1e-9)
    found = parflex.natural_frequencies(robot, modes=3)
    expected = np.sqrt(scipy.linalg.eigvalsh(K[6:, 6:], M[6:, 6:])[:3])
    assert found.frequencies == pytest.approx(expected / (2 * np.pi), rel=1e-9)
    assert found.damping == pytest.approx(expected * 1e-4 / 2, rel=1e-6)


@pytest.mark.parametrize("body", ["rod", "stub", "flexure"])
@pytest.mark.parametrize(
    ("real", "said"), [("mm", "m"), ("kg-mm-N", "m"), ("kg-mm-N", "mm"), ("m", "mm"), ("in", "mm"), ("m", "kg-mm-N")]
)
def test_units_in_which_no_body_can_be_are_reported(tmp_path, capsys, body, real, said):
    """Kilograms with millimetres and newtons, read as tonnes, would be denser than any material."""
    file = in_units(tmp_path, real, *small_bodies()[body])
    suspect = [text for text in loaded(tmp_path, file, f', units = "{said}"').warnings if "check 'units'" in text]
    assert len(suspect) == 1 and real in suspect[0]
    answer = checked_by_command(capsys, str(tmp_path / "robot.toml"), "--strict")
    assert answer["error"]["key"] == "superelement"


def test_all_nodes_count_where_only_the_first_are_named(tmp_path):
    """Matrices alone do not say how many of their freedoms are modal: those that K ties to the named nodes are not."""
    M, K = oracle.chain(LENGTH, 2, BAR)
    np.savez(tmp_path / "three.npz", M=M, K=K)
    first = loaded(tmp_path, "three.npz")
    assert [name for name in first.coordinates if "node3" in name]
    (tmp_path / "all.toml").write_text((tmp_path / "robot.toml").read_text().replace("b = 2", "b = 2, c = 3"))
    every = parflex.load(tmp_path / "all.toml")
    found = [parflex.natural_frequencies(robot, modes=4).frequencies for robot in (first, every)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


@pytest.mark.parametrize(("more", "key"), [("0.02", "damping"), ("{ mass = 3.0, stiffness = 1e-5 }", "damping.mass")])
def test_damping_may_differ_from_design_to_design(tmp_path, more, key):
    robot = loaded(tmp_path, as_npz(tmp_path / "m.npz", *beam_matrices(2)), f", damping = {more}")
    key = f"frame.part.superelement.{key}"
    assert parflex.sensitivities(robot, "frequency:1", [key]).sensitivities[key]["derivative"] == 0
    designs = {key: np.array([0.01, 0.5, 2.0])}
    answer = parflex.many_frequencies(robot, [], np.zeros((3, 0)), modes=2, designs=designs)
    assert not answer.status.any()
    assert not answer.fallbacks


DESIGN = """
format = 1
name = "arm"
end_effector = "hand"
[constants]
long = {long}
far = {far}
[[frame]]
name = "motor"
joint = "revolute"
actuated = true
inertia = {{ mass = 0.5, about_centre = [1e-3, 1e-3, 1e-3] }}
[[frame]]
name = "link"
parent = "motor"
place = {{ position = ["long", 0, 0] }}
[frame.superelement]
file = "m.npz"
nodes = {{ root = 1, tip = 2 }}
damping = 0.01
positions = {{ root = [0, 0, 0], tip = ["far", 0, 0] }}
[[frame]]
name = "hand"
parent = "link.tip"
inertia = {{ mass = 0.05, about_centre = [2e-5, 2e-5, 2e-5], centre = ["long/10", 0, 0] }}
"""
ASKED = """
robot = "robot.toml"
[variables."{key}"]
lower = {lower}
upper = {upper}
[responses.lowest]
response = "frequency:4"
"""


@pytest.fixture
def designed(tmp_path):
    as_npz(tmp_path / "m.npz", *beam_matrices(2))

    def made(long: float = 0.1, far: float = LENGTH) -> parflex.Robot:
        return parflex.load(written(tmp_path, DESIGN.format(long=long, far=far)))

    return made


def test_numbers_beside_a_super_element_are_followed_in_designs(designed, tmp_path):
    """Against files with other numbers: slopes of differences, and frequencies of designs."""

    def frequency(long: float) -> float:
        return float(parflex.natural_frequencies(designed(long), modes=4).frequencies[3])

    expected = (frequency(0.1 + 1e-4) - frequency(0.1 - 1e-4)) / 2e-4  # differences are good for 1e-7
    found = parflex.sensitivities(designed(), "frequency:4", ["constants.long"]).sensitivities["constants.long"]
    assert found["derivative"] == pytest.approx(expected, rel=1e-6)
    values = np.array([0.05, 0.2])
    exact = [frequency(value) for value in values]
    many = parflex.many_frequencies(designed(), [], np.zeros((2, 0)), modes=4, designs={"constants.long": values})
    assert np.array(many.frequencies)[:, 3] == pytest.approx(exact, rel=1e-9)
    text = ASKED.format(key="constants.long", lower=0.05, upper=0.2)
    swept = parflex.sweep(written(tmp_path, text + '[samples]\nkind = "grid"\ncount = 2\n', "sweep.toml"), jobs=1)
    assert swept.responses["lowest"] == pytest.approx(exact, rel=1e-9)
    best = parflex.optimise(written(tmp_path, text + '[objective]\nmaximise = "lowest"\n', "best.toml"))
    assert best.variables["constants.long"]["value"] == pytest.approx(0.05)


@pytest.mark.parametrize(
    "key", ["frame.link.superelement.positions.tip.0", "constants.far", "frame.link.superelement.nodes.tip"]
)
def test_numbers_that_change_the_matrices_have_no_slopes_and_that_is_said(designed, key, tmp_path):
    """In sweeps and maps each design is a file of its own; what cannot be has its reason."""
    with pytest.raises(parflex.InputError, match=re.escape(key)):
        parflex.sensitivities(designed(), "frequency:1", [key])
    ask = ASKED.format(key=key, lower=LENGTH, upper=0.9)
    with pytest.raises(parflex.InputError, match=re.escape(key)):
        parflex.optimise(written(tmp_path, ask + '[objective]\nmaximise = "lowest"\n', "best.toml"))
    if "nodes" in key:
        with pytest.raises(RobotFileError, match="valid integer"):
            parflex.sweep(written(tmp_path, ask + '[samples]\nkind = "grid"\ncount = 2\n', "sweep.toml"), jobs=1)
        return
    swept = parflex.sweep(written(tmp_path, ask + '[samples]\nkind = "grid"\ncount = 2\n', "sweep.toml"), jobs=1)
    assert np.isfinite(swept.responses["lowest"]).tolist() == [True, False]
    assert "positions of its nodes do not fit its stiffness" in swept.reasons[1]
    many = parflex.many_frequencies(designed(), [], np.zeros((2, 0)), modes=2, designs={key: np.array([LENGTH, 0.9])})
    assert np.isfinite(many.frequencies).all(axis=1).tolist() == [True, False]
    assert "positions of its nodes do not fit its stiffness" in str(many.reasons)


def test_a_super_element_brings_its_own_mass(tmp_path):
    as_npz(tmp_path / "m.npz", *beam_matrices(2))
    text = ON_GROUND.format(file="m.npz", more="")
    for change, words in (
        ('name = "part"\ninertia = { mass = 1 }', "takes its mass from its file"),
        ('name = "part"\nmodal = { file = "x.npz" }', "both describe the body"),
    ):
        with pytest.raises(RobotFileError, match=words):
            parflex.load(written(tmp_path, text.replace('name = "part"', change)))


# -- planar robots -------------------------------------------------------------------------------------------


def turned_modes(M: np.ndarray, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same body with other modal coordinates: bending in two planes has one frequency, and shapes mix at will."""
    T = np.eye(len(M))
    c, s = np.cos(0.7), np.sin(0.7)
    T[np.ix_([12, 13], [12, 13])] = [[c, -s], [s, c]]
    return T.T @ M @ T, T.T @ K @ T


@pytest.mark.verify
def test_a_planar_robot_takes_the_motions_of_a_super_element_in_its_plane(tmp_path):
    """As many coordinates as the planar beam that the matrices are of: bending out of the plane is left out."""
    M, K = turned_modes(*beam_matrices(18, 4))
    text = ARM.replace('name = "arm"', 'name = "arm"\nmotion = "planar"').replace("[0, 0, -9.81]", "[0, -9.81, 0]")
    text = text.replace("rotation = [0.1, 0.2, 0.3]", "rotation = [0, 0, 0.3]")
    bodies = (BEAM.format(4), SUPER.format(as_npz(tmp_path / "beam.npz", M, K)))
    beam, other = (
        parflex.load(written(tmp_path, text.format(body=body), f"{k}.toml")) for k, body in enumerate(bodies)
    )
    assert len(other.coordinates) == len(beam.coordinates) == 13
    assert [name.split(".")[-1] for name in other.coordinates[1:4]] == ["ux", "uy", "rz"]
    found = [parflex.natural_frequencies(robot, modes=10).frequencies for robot in (beam, other)]
    assert found[1] == pytest.approx(found[0], rel=1e-7)
    turn = np.eye(13)[0]
    moved = [parflex.forward_dynamics(robot, 0.4 * turn, 3 * turn, [0.2]) for robot in (beam, other)]
    assert moved[1][0] == pytest.approx(moved[0][0], rel=2e-5)  # as in space


def test_a_free_super_element_of_a_planar_robot_vibrates_in_the_plane(tmp_path):
    M, K = turned_modes(*beam_matrices(4))
    text = ON_GROUND.replace("format = 1", 'format = 1\nmotion = "planar"')
    text = text.replace('name = "part"', 'name = "part"\njoint = "free"')
    file = as_npz(tmp_path / "beam.npz", M, K)
    found = parflex.natural_frequencies(parflex.load(written(tmp_path, text.format(file=file, more=""))), modes=3)
    assert len(found.free_motions) == 3
    plane = [0, 1, 5, 6, 7, 11, *range(12, 16)]
    squares = scipy.linalg.eigvalsh(K[np.ix_(plane, plane)], M[np.ix_(plane, plane)])
    in_plane = np.sqrt(squares[3:]) / (2 * np.pi)
    held = np.sqrt(np.diag(K)[12:]) / (2 * np.pi)  # those of modes out of the plane
    expected = [f for f in in_plane if np.abs(f / held - 1).min() > 1e-6][:3]
    assert found.frequencies == pytest.approx(expected, rel=1e-7)
