"""Bodies by matrices of finite-element programs: what is found in them, how they move, what others write."""

import os
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.linalg
from scipy.spatial.transform import Rotation
from support.cases import VERIFY
from support.command_line import answered, refused
from support.damaged import damaged
from support.foreign_matrices import NUMBERS, abaqus_entries, abaqus_substructure, market, nastran_punch
from support.oracles import super_elements as oracle
from support.oracles.chains import craig_bampton
from support.paths import DATA
from support.robots import load_robot, robot_file, write_robot

import parflex
from parflex.bodies import matrix_files
from parflex.bodies.matrix_files import load_matrices
from parflex.bodies.rigid import RigidBody
from parflex.bodies.superelement import super_element, superelement_body

FLEXURE = DATA / "flexor_025.mat"
ROUNDED = DATA / "flexor_ID16.mat"
BAR = oracle.round_bar(0.004)
LENGTH = 0.3
ON_GROUND = 'format = 1\nname = "flexure"\nend_effector = "part.b"\n[[frame]]\nname = "part"\n'
ON_GROUND += 'superelement = {{ file = "{file}", nodes = {{ a = 1, b = 2 }} {more} }}\n'


def hat(x) -> np.ndarray:
    return np.cross(np.eye(3), x)


def loaded(folder: Path, file: Path | str, more: str = "", extra: str = "") -> parflex.Robot:
    return parflex.load(write_robot(folder, ON_GROUND.format(file=file, more=more) + extra))


def beam_matrices(modes: int, count: int = 4) -> tuple[np.ndarray, np.ndarray]:
    return oracle.reduced_beam(LENGTH, count, BAR, modes)


def as_npz(path: Path, M: np.ndarray, K: np.ndarray, **more: np.ndarray) -> str:
    np.savez(path, M=M, K=K, positions=[[0, 0, 0], [LENGTH, 0, 0]], **more)
    return str(path)


def test_a_flexure_has_the_mass_the_stiffnesses_and_the_frequencies_of_its_matrices(tmp_path, capsys):
    file = write_robot(tmp_path, ON_GROUND.format(file=FLEXURE, more=""))
    said = answered(capsys, "check", file)["superelements"]["part"]
    assert said["mass"] == pytest.approx(0.02922356, rel=1e-6)
    assert said["rigid_residual"] < 1e-9
    assert np.abs(said["centre"]).max() < 1e-5
    stiffness = np.diag(parflex.cartesian_stiffness(parflex.load(file), frame="part.b").stiffness)
    assert stiffness[[2, 3, 5]] == pytest.approx([9.3955e7, 4.8321, 260.18], rel=1e-4)
    result = parflex.natural_frequencies(parflex.load(file, settings={"frame.part.joint": "free"}), modes=4)
    assert len(result.free_motions) == 6
    assert result.frequencies == pytest.approx([992.92, 992.92, 8440.8, 9938.1], rel=1e-4)
    held = '[[closure]]\nbetween = ["part.b", "base"]\njoint = "welded"\n'
    modes = parflex.natural_frequencies(loaded(tmp_path, FLEXURE, extra=held), modes=1)
    assert modes.frequencies[0] == pytest.approx(4913.66, rel=1e-6)


def test_matrices_of_few_digits_are_refused_with_their_residuals(tmp_path, capsys):
    error = refused(capsys, "check", write_robot(tmp_path, ON_GROUND.format(file=ROUNDED, more="")))
    assert all(number in error["message"] for number in ("-(114 Hz)^2", "657 Hz", "1248 Hz", "7.0e-06"))
    assert (error["file"], error["key"]) == (str(ROUNDED), "frame 'part': superelement.file")


def test_a_hexapod_on_flexures_vibrates_as_the_assembly_of_its_matrices():
    robot = load_robot("flexure-hexapod")
    result = parflex.natural_frequencies(robot, modes=12).frequencies
    # the residual of K on rigid motions is 1e-10 of stiffnesses that differ by 1e7
    assert result == pytest.approx(oracle.flexure_hexapod(str(FLEXURE)), rel=1e-6)


def test_bodies_of_several_nodes_in_other_units_vibrate_as_the_assembly_of_their_matrices(tmp_path):
    M, K = oracle.reduced(*oracle.chain(LENGTH, 4, BAR), [*range(6), *range(12, 18), *range(24, 30)], 3)
    t = np.array(([1e-3] * 3 + [1.0] * 3) * 3 + [1.0] * 3)
    places = np.array([[0, 0, 0], [LENGTH / 2, 0, 0], [LENGTH, 0, 0]])
    whole = 1e3 * np.outer(t, t)  # t, mm, N
    np.savez(tmp_path / "bar.npz", M=M * whole, K=K * whole, positions=1e3 * places, numbers=[7, 9, 4])
    turns, off = np.random.default_rng(8).normal(size=(3, 3)), np.array([0.02, -0.05, 0.03])
    settings = {f"frame.{name}.superelement.file": str(tmp_path / "bar.npz") for name in ("one", "two")}
    names = ("one", "two", "hand")
    settings |= {f"frame.{name}.place.rotation": list(turn) for name, turn in zip(names, turns, strict=True)}
    robot = load_robot("two-bodies-by-matrices", settings=settings)
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


@pytest.fixture(scope="module", params=["flexure", "beam, free", "beam, clamped"])
def body(request, tmp_path_factory):
    if request.param == "flexure":
        data = load_matrices(str(FLEXURE), [1, 2])
    else:
        data = load_matrices(as_npz(tmp_path_factory.mktemp("m") / "beam.npz", *beam_matrices(4)), [1, 2])
    element = super_element(data, {"a": 1, "b": 2}, None if "free" in request.param else "a", None)
    return element, superelement_body(element)


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
    node, at = body[1].nodes["b"], (U, a, w, e, ed, edd)
    wanted = body[1].forces(*at)[0] + 0.1 * _acceleration(node, *at)
    assert with_mass.forces(*at)[0] == pytest.approx(wanted, rel=1e-9)


def _acceleration(node, U, a, w, e, ed, edd):
    return a + U @ (node.r0 + node.Phi_d @ e) + 2 * np.cross(w, node.Phi_d @ ed) + node.Phi_d @ edd


def turned_modes(M: np.ndarray, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    T = np.eye(len(M))
    if len(M) > 12:
        T[12:14, 12:14] = [[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]]
    return T.T @ M @ T, T.T @ K @ T


def arms(folder: Path, elements: int, **settings) -> tuple[parflex.Robot, parflex.Robot]:
    file = as_npz(folder / "beam.npz", *turned_modes(*beam_matrices(6 * (elements - 1), elements)))
    beam = load_robot("arm-with-rod", settings=settings | {"frame.link.beam.elements": elements})
    return beam, load_robot("arm-with-rod-by-matrices", settings=settings | {"frame.link.superelement.file": file})


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


@pytest.mark.verify
@pytest.mark.parametrize("file", ["beam", "flexure"])
def test_a_super_element_that_floats_keeps_energy_and_momentum_in_a_run(tmp_path, file):
    path = FLEXURE if file == "flexure" else as_npz(tmp_path / "beam.npz", *beam_matrices(2))
    settings = {"frame.part.joint": "free", "gravity": [0, 0, 0]}
    robot = parflex.load(write_robot(tmp_path, ON_GROUND.format(file=path, more="")), settings=settings)
    body, rng = robot.tree.links[0].body, np.random.default_rng(6)
    fast = np.sqrt(np.diag(body.K) / np.diag(body.inertia_matrix(np.zeros(body.size)))[6:])
    e, ed = rng.normal(size=(2, body.size)) * 3e-5 * np.sqrt(body.m)
    ed = ed * fast[0]
    turns = np.array([12.0, -20.0, 30.0])
    period = 2 * np.pi / fast[0]
    start = {"q": np.concatenate([[0.1, 0.2, 0.3, 1, 0, 0, 0], e]), "qd": np.concatenate([[0.3, -0.2, 0.1], turns, ed])}
    words = {"start": start, "step": period / 150, "out_step": period / 10, "method": "gauss6"}
    run = parflex.simulate(robot, None, 5 * period, **words)
    q = np.column_stack([run[f"q.{name}"] for name in robot.coordinates])
    qd = np.column_stack([run[f"qd.{name}"] for name in robot.coordinates])
    kept = []
    for x, xd in zip(q, qd, strict=True):
        R, e, (a, b) = Rotation.from_quat(x[[4, 5, 6, 3]]).as_matrix(), x[7:], (x[3:7], xd[3:7])
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


def test_programs_and_maps_know_super_elements(tmp_path):
    _, robot = arms(tmp_path, 1)
    rng = np.random.default_rng(4)
    q, qd = np.concatenate([[0.3], 1e-3 * rng.normal(size=6)]), 0.1 * rng.normal(size=7)
    made = parflex.model(robot, "direct")
    result = np.concatenate([np.ravel(part) for part in made(q=q, qd=qd, effort=[0.3]).values()])
    expected = parflex.forward_dynamics(robot, q, qd, [0.3])
    assert result == pytest.approx(expected, rel=1e-9)
    again = parflex.inverse_dynamics(robot, q, qd, expected)
    assert again == pytest.approx([0.3], rel=1e-6)
    answer = parflex.many_frequencies(robot, ["motor"], np.array([[0.0], [0.5]]), modes=3)
    single = parflex.natural_frequencies(robot, {"motor": 0.5}, modes=3)
    assert answer.frequencies[1] == pytest.approx(single.frequencies)


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
    T = craig_bampton(M, K, [*range(6), *range(6 * count, 6 * count + 6)], 6)
    return T.T @ M @ T, T.T @ K @ T, T.T @ KG @ T


def test_tension_stiffens_by_the_geometric_matrix_of_the_file(tmp_path):
    M, K, KG = stressed_strip()
    file = as_npz(tmp_path / "strip.npz", M, K, geometric=KG)
    robot = loaded(tmp_path, file, ", geometric = { b = [1, 0, 0, 0, 0, 0] }", "")
    N = 20.0
    result = parflex.natural_frequencies(robot, modes=4, about="equilibrium", wrench={"part.b": [N, 0, 0, 0, 0, 0]},
                                        without=["gravity"])  # fmt: skip
    A = (K + N * KG)[6:, 6:]
    expected = np.sqrt(scipy.linalg.eigvalsh(A, M[6:, 6:])[:4]) / (2 * np.pi)
    assert result.frequencies == pytest.approx(expected, rel=1e-6)
    slack = parflex.natural_frequencies(loaded(tmp_path, file, ", geometric = false"), modes=4).frequencies
    assert result.frequencies[0] > 1.05 * slack[0]


@pytest.mark.parametrize("share", [-0.6, 2.0])
@pytest.mark.parametrize("units", ["m", "mm"])
def test_a_column_with_a_geometric_matrix_per_freedom_bends_as_one_under_axial_load(tmp_path, share, units):
    """Closed form of a cantilever under an axial and a small lateral load; -1 is Euler's buckling load."""
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
    result = parflex.equilibrium(robot, wrench={"part.b": [N, F, 0, 0, 0, 0]}, without=["gravity"])
    kappa = np.sqrt(abs(N) / EI)
    wave = np.tan if N < 0 else np.tanh
    expected = F / (abs(N) * kappa) * abs(wave(kappa * LENGTH) - kappa * LENGTH)
    deflected = result.configuration.q[robot.coordinates.index("part.uy")]
    assert deflected == pytest.approx(expected, rel=2e-3)  # six shapes of four elements


def test_damping_is_a_ratio_of_all_modes_factors_or_the_matrix_of_the_file(tmp_path):
    M, K = beam_matrices(2)
    file = as_npz(tmp_path / "damped.npz", M, K, D=1e-4 * K)
    ratio = parflex.natural_frequencies(loaded(tmp_path, file, ", damping = 0.02"), modes=3)
    assert ratio.damping == pytest.approx([0.02] * 3, rel=1e-6)
    robots = (loaded(tmp_path, file, more) for more in ("", ", damping = { stiffness = 1e-4 }"))
    own, factors = (parflex.natural_frequencies(robot, modes=3).damping for robot in robots)
    assert own == pytest.approx(factors, rel=1e-6)
    assert own[0] == pytest.approx(np.pi * 1e-4 * ratio.frequencies[0], rel=1e-6)


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


KINDS = ["npz", "mat", "market", "market, dense", "abaqus", "abaqus, entries"]
KINDS += ["nastran", "nastran, grid", "nastran, free"]


def element_of(kind: str, file):
    named = (1, 2) if "market" in kind else NUMBERS
    return super_element(load_matrices(file, named), {"a": named[0], "b": named[1]}, "a", None)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_body_is_read_from_every_format(kind, tmp_path):
    M, K = beam_matrices(3)
    element = element_of(kind, files_of(kind, tmp_path, M, K))
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
    text = (
        "DMIG    KAAX           0       6       1       0                      66\n"
        "DMIG*   KAAX                           1               5\n"
        "*                      1               4-7.745293971E-01\n"
        "*                      1               5 5.162902027E+00\n"
    )
    head, column = matrix_files.cards(text)
    assert head[1:5] == ["KAAX", "0", "6", "1"]
    assert column[2:4] == ["1", "5"]
    assert [matrix_files.read_number(column[k]) for k in (7, 11)] == [-0.7745293971, 5.162902027]
    written = {"3.1416-6": 3.1416e-6, "1.-3": 1e-3, "-2.5D+04": -2.5e4, ".5": 0.5, "7850.": 7850}
    assert {text: matrix_files.read_number(text) for text in written} == written


def test_a_substructure_whose_freedoms_are_listed_one_by_one_is_read(tmp_path):
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
    with pytest.raises(parflex.RobotFileError, match="mass matrix M is missing"):
        load_matrices(str(tmp_path / "STIFFNESS.mtx"), NUMBERS)


def changed(array: np.ndarray, index: object, value: float, factor: float = 0.0) -> np.ndarray:
    result = array.copy()
    result[index] = factor * result[index] + value
    return result


BODY_M, BODY_K = beam_matrices(2)
BY_KIND = np.ix_(*2 * [[0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11, 12, 13]])
GOOD = {"M": BODY_M, "K": BODY_K, "int_xyz": np.array([[0, 0, 0], [LENGTH, 0, 0]]), "numbers": np.array(NUMBERS, float)}
BAD = {  # arrays that differ from those of a beam, and words of the sentence
    "unsymmetric": ({"K": changed(BODY_K, (3, 7), 1e-3 * BODY_K.max(), 1)}, "K is not symmetric: rows"),
    "indefinite mass": ({"M": changed(BODY_M, (1, 1), 0, 0.3)}, "mass matrix is indefinite"),
    "mass beside the diagonal": (
        {"M": changed(BODY_M, (10, 10), 0)},
        "degree of freedom 11 has no mass, but is coupled to others",
    ),
    "indefinite stiffness": ({"K": changed(BODY_K, (13, 13), 0, -1)}, "is indefinite, lowest eigenvalue"),
    "by kind": ({"M": BODY_M[BY_KIND], "K": BODY_K[BY_KIND]}, "x y z rx ry rz of each interface node"),
    "other size": ({"M": BODY_M[:-1, :-1]}, "is 13 x 13, with 14 degrees of freedom"),
    "held": ({"K": BODY_K + np.diag([1e6] * 6 + [0] * 8)}, "is not that of a free body"),
    "nan": ({"K": changed(BODY_K, (0, 0), np.nan)}, "not a finite number"),
    "millimetres": ({"int_xyz": 1000 * GOOD["int_xyz"]}, "positions are in the unit of the matrices"),
    "complex": ({"K": BODY_K + 0j}, "'K' holds complex numbers"),
    "words": ({"M": np.array(["a"])}, "'M' holds no numbers"),
    "half a node": ({"numbers": np.array([1.5, 2.0])}, "numbers of nodes are not whole numbers"),
    "flat positions": ({"int_xyz": np.zeros((2, 2))}, "positions of nodes are not n x 3 numbers"),
    "more positions": ({"int_xyz": np.zeros((3, 3))}, "3 positions for 2 nodes"),
    "more nodes": (
        {"numbers": np.arange(1.0, 4), "int_xyz": np.zeros((3, 3))},
        "has 14 degrees of freedom for 3 nodes of six",
    ),
    "one node twice": ({"numbers": np.array([4.0, 4.0])}, "degree of freedom 1 of node 4 appears twice"),
    "a mode without mass": ({"M": changed(BODY_M, (12, 12), 0)}, "modal coordinate 1 has no mass"),
    "a negative mass": ({"M": changed(BODY_M, (1, 1), -1.0)}, "it has a negative mass on its diagonal"),
    "a mass along x": ({"M": BODY_M + np.diag([1.0] + 13 * [0.0])}, "the mass differs by direction"),
    "damping that feeds": ({"D": -BODY_K}, "the damping matrix D is indefinite"),
    "no load": ({"KG": np.eye(14)}, "geometric stiffness belongs to a load that is not known"),
}


@pytest.mark.parametrize("case", BAD)
def test_inconsistent_matrices_are_refused(case, tmp_path):
    arrays, words = BAD[case]
    np.savez(tmp_path / "bad.npz", **(GOOD | arrays))
    with pytest.raises(parflex.RobotFileError) as caught:
        loaded(tmp_path, "bad.npz")
    assert words in str(caught.value)
    assert caught.value.hint
    assert caught.value.key.startswith("frame 'part': superelement.")


@pytest.mark.few("0.5")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_truncated_files_are_refused(kind, share, tmp_path):
    file = files_of(kind, tmp_path, *beam_matrices(3))
    paths = [file] if isinstance(file, str) else list(file.values())
    content = Path(paths[-1]).read_bytes()
    Path(paths[-1]).write_bytes(content[: int(share * len(content))])
    with pytest.raises(parflex.RobotFileError):
        superelement_body(element_of(kind, file))


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_read_or_refused_in_a_sentence(kind, tmp_path):
    file = files_of(kind, tmp_path, *beam_matrices(3))
    paths = [file] if isinstance(file, str) else list(file.values())
    contents, rng = [Path(path).read_bytes() for path in paths], random.Random(7)
    named = (1, 2) if "market" in kind else NUMBERS
    each = {} if isinstance(file, str) else file
    text = "{ " + ", ".join(f'{key} = "{path}"' for key, path in each.items()) + " }" if each else f'"{file}"'
    robot = ON_GROUND.format(file="FILE", more="").replace('"FILE"', text)
    robot = robot.replace("a = 1, b = 2", f"a = {named[0]}, b = {named[1]}")
    for _ in range(300 if VERIFY else 8):
        which = rng.randrange(len(paths))
        Path(paths[which]).write_bytes(damaged(contents[which], rng))
        try:
            parflex.load(write_robot(tmp_path, robot))
        except parflex.RobotFileError as error:
            assert "\n" not in str(error)
            assert len(str(error)) < 900
        Path(paths[which]).write_bytes(contents[which])


ONE_NODE = b"*USER ELEMENT,NODES=1,LINEAR\n** ELEMENT NODES\n** 1\n1, 2, 3, 4, 5, 6\n"
KAAX = b"DMIG,KAAX,0,6,1,0\nDMIG,KAAX,1,1,,1,1,1.0\n"
MAAX = KAAX.replace(b"KAAX", b"MAAX")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\0\1\2" * 50, "is binary"),
        (b"hello there", "not a known file of reduced matrices"),
        (b"*USER ELEMENT, NODES= 2, LINEAR\n** ELEMENT NODES\n** 1, 2\n1, nan, 3\n", "in a list of degrees of freedom"),
        (b"$ EXTERNAL SUPERELEMENT       75\nBEGIN SUPER       75\nEXTRN        373  123456\n", "has no matrices"),
        (b"%%MatrixMarket matrix array real general\n6 6\n", "is one matrix in the Matrix Market format"),
        (b"MATLAB 7.3 MAT-file", "MATLAB 7.3"),
        (b"*MATRIX,TYPE=MASS\n *INCLUDE, INPUT=other\n", "includes another file"),
        (b"$ a model\ninclude 'other.pch'\nDMIG,KAAX,0,6,1,0\n", "includes another file"),
        (b"*MATRIX,TYPE=MASS\n1.0,\n", "has no list of nodes and their degrees of freedom"),
        (ONE_NODE + b"*MATRIX,TYPE=PRESSURE\n", "has a matrix of the type 'PRESSURE'"),
        (ONE_NODE + b"*MATRIX,TYPE=MASS\n1.0x\n", "'1.0X' is not a number"),
        (ONE_NODE + b"*MATRIX,TYPE=MASS\n1.0, 2.0\n", "the matrix M has 2 of the 21 numbers"),
        (KAAX, "has no pair of matrices K... and M..., but KAAX"),
        (b"GRID,7,3,0.,0.,0.\n" + KAAX, "the position of GRID 7 are in the coordinate system 3"),
        (KAAX.replace(b"1.0", b""), "an entry of KAAX has no value"),
        (KAAX.replace(b"KAAX", b"K1") + KAAX.replace(b"KAAX", b"K2"), "has the matrices K1, K2"),
        (KAAX.split(b"\n")[1] + b"\n" + MAAX, "the matrix KAAX has no header"),
        (KAAX.replace(b"6,1,0", b"6,3,0") + MAAX, "the matrix KAAX is complex"),
        (KAAX.replace(b"6,1,0", b"9,1,0") + MAAX, "the matrix KAAX is not square"),
        (KAAX + MAAX, "has only 1 degrees of freedom"),
    ],
)
def test_files_that_are_something_else_are_refused(content, words, tmp_path):
    (tmp_path / "m.mtx").write_bytes(content)
    with pytest.raises(parflex.RobotFileError, match=re.escape(words)) as caught:
        loaded(tmp_path, "m.mtx")
    assert Path(caught.value.file).name == "m.mtx" and caught.value.key.endswith("superelement.file")


MARKET = "%%MatrixMarket matrix "
EACH = "\n".join(f"{{node}},{k},{{node}},{k},1.0" for k in range(1, 7))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (f"{MARKET}coordinate real\n", "has no valid Matrix Market header"),
        (f"{MARKET}array complex general\n6 6\n", "holds a complex general matrix"),
        (f"{MARKET}array real general\n6 7\n", "is 6 x 7, not a square matrix"),
        (f"{MARKET}coordinate real general\n6 6 2\n1 1 1.0\n", "has 3 of 6 numbers"),
        (f"{MARKET}coordinate real general\n6 6 1\n1 1 1.0 2\n", "has more than 3 of 3 numbers"),
        (f"{MARKET}coordinate real general\n6 6 1\n9 1 1.0\n", "an entry outside of its 6 rows and columns"),
        (f"{MARKET}array real general\nsix 6\n", "'six' is not a size"),
        (
            f"{MARKET}coordinate real general\n12 12 1\n1 1 1.0\n",
            "has no node 3: 12 degrees of freedom are at most 2 nodes",
        ),
        ("1, 1, 1, 1\n", "line 1 is not an entry of a matrix"),
        ("** nothing\n", "has no entry of a matrix"),
        (EACH.format(node=1).replace("1,1,1,1,", "1,7,1,7,"), "node 1 has a degree of freedom 7"),
        (EACH.format(node=1) + "\n2,3,2,3,1.0", "node 2 has only the degrees of freedom 3"),
        ("\n".join(EACH.format(node=-k) for k in range(1, 7)), "there is no interface node"),
    ],
)
def test_files_that_hold_no_single_matrix_are_refused(content, words, tmp_path):
    path = tmp_path / "m.mtx"
    path.write_text(content)
    with pytest.raises(parflex.RobotFileError, match=re.escape(words)) as caught:
        load_matrices({"M": str(path), "K": str(path)}, [3])
    assert caught.value.file == str(path) and caught.value.hint


def test_matrices_may_be_in_arrays_of_two_files(tmp_path):
    M, K = beam_matrices(0)
    files = {key: str(tmp_path / f"{key}.npz") for key in "MK"}
    for key, A in (("M", M), ("K", K)):
        np.savez(files[key], **{{"M": "mass", "K": "KAAX"}[key]: A})
    data = load_matrices(files, [1, 2])
    assert np.array_equal(data.M, (M + M.T) / 2) and np.array_equal(data.K, (K + K.T) / 2)
    with pytest.raises(parflex.RobotFileError, match="has no array M") as caught:
        load_matrices({"M": files["K"], "K": files["K"]}, [1, 2])
    assert caught.value.file == files["K"]


def test_hostile_files_are_refused_before_anything_of_their_size_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr("parflex.bodies.matrix_files.MAX_BYTES", 100_000)
    np.savez_compressed(tmp_path / "bomb.npz", M=np.zeros((200, 200)), K=np.zeros((200, 200)))
    scipy.io.savemat(tmp_path / "bomb.mat", {"K": np.zeros((200, 200)), "M": np.eye(6)}, do_compression=True)
    for name in ("bomb.npz", "bomb.mat"):
        with pytest.raises(parflex.RobotFileError, match="unpacks to more than"):
            loaded(tmp_path, name)
    np.savez(tmp_path / "pickle.npz", M=np.array([{}], dtype=object), K=np.eye(6))
    with pytest.raises(parflex.RobotFileError):
        loaded(tmp_path, "pickle.npz")
    (tmp_path / "m.mtx").write_text("%%MatrixMarket matrix array real general\n99999999 99999999\n1\n")
    with pytest.raises(parflex.RobotFileError, match="99999999 degrees of freedom, more than"):
        load_matrices({"M": str(tmp_path / "m.mtx"), "K": str(tmp_path / "m.mtx")}, [1])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (", modes = 5", "5 modes are requested"),
        (", root = 'c'", "'c' is not a node"),
        (", units = 'inch'", "units"),
        (", damping = { ratio = 0.1 }", "a damping ratio must be a number, not a table"),
        (", positions = { a = [0, 0, 0] }", "node 2 has no position"),
        (", positions = { a = [0, 0, 0], b = [0.5, 0, 0] }", "the positions of its nodes do not fit its stiffness"),
        (", nodes = { a = 1, b = 1 }", "two names are of one node"),
        (", nodes = { a = 1, b = 9 }", "has no node 9"),
    ],
)
def test_invalid_keys_are_refused(more, words, tmp_path):
    as_npz(tmp_path / "m.npz", *beam_matrices(2))
    text = ON_GROUND.format(file="m.npz", more=more)
    text = text.replace("nodes = { a = 1, b = 2 }", "", 1) if "nodes" in more else text
    with pytest.raises(parflex.RobotFileError, match=words):
        parflex.load(write_robot(tmp_path, text.replace('",  ,', '",')))


def test_lumped_masses_without_rotary_inertia_are_read_and_refused_where_they_do_not_suffice(tmp_path):
    _, K = beam_matrices(0)
    file = as_npz(tmp_path / "lumped.npz", np.diag([0.01] * 3 + [0.0] * 3 + [0.01] * 3 + [0.0] * 3), K)
    hand = '[[frame]]\nname = "hand"\nparent = "part.b"\ninertia = { mass = 0.1, about_centre = [1e-4, 1e-4, 1e-4] }\n'
    robot = loaded(tmp_path, file, extra=hand)
    M = np.diag([0.11] * 3 + [1e-4] * 3)
    expected = np.sqrt(scipy.linalg.eigvalsh(K[6:, 6:], M)) / (2 * np.pi)
    assert parflex.natural_frequencies(robot, modes=6).frequencies == pytest.approx(expected, rel=1e-9)
    with pytest.raises(parflex.SingularError, match=r"the motion of 'part\.r[xyz]' has no positive inertia"):
        parflex.natural_frequencies(loaded(tmp_path, file), modes=1)
    with pytest.raises(parflex.RobotFileError, match="has no free modes"):
        parflex.load(loaded(tmp_path, file).file, settings={"frame.part.joint": "free"})


def in_units(folder: Path, name: str, M: np.ndarray, K: np.ndarray, places: np.ndarray, **more: np.ndarray) -> str:
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
    result = parflex.natural_frequencies(robot, modes=3)
    expected = np.sqrt(scipy.linalg.eigvalsh(K[6:, 6:], M[6:, 6:])[:3])
    assert result.frequencies == pytest.approx(expected / (2 * np.pi), rel=1e-9)
    assert result.damping == pytest.approx(expected * 1e-4 / 2, rel=1e-6)


@pytest.mark.parametrize("body", ["rod", "stub", "flexure"])
@pytest.mark.parametrize(
    ("real", "said"), [("mm", "m"), ("kg-mm-N", "m"), ("kg-mm-N", "mm"), ("m", "mm"), ("in", "mm"), ("m", "kg-mm-N")]
)
def test_units_in_which_no_body_can_be_are_reported(tmp_path, capsys, body, real, said):
    file = in_units(tmp_path, real, *small_bodies()[body])
    suspect = [text for text in loaded(tmp_path, file, f', units = "{said}"').warnings if "check 'units'" in text]
    assert len(suspect) == 1 and real in suspect[0]
    assert refused(capsys, "check", tmp_path / "robot.toml", "--strict")["key"] == "superelement"


def test_all_nodes_count_where_only_the_first_are_named(tmp_path):
    M, K = oracle.chain(LENGTH, 2, BAR)
    np.savez(tmp_path / "three.npz", M=M, K=K)
    first = loaded(tmp_path, "three.npz")
    assert [name for name in first.coordinates if "node3" in name]
    (tmp_path / "all.toml").write_text((tmp_path / "robot.toml").read_text().replace("b = 2", "b = 2, c = 3"))
    every = parflex.load(tmp_path / "all.toml")
    result = [parflex.natural_frequencies(robot, modes=4).frequencies for robot in (first, every)]
    assert result[0] == pytest.approx(result[1], rel=1e-9)


ASKED = 'robot = "robot.toml"\n[variables."{key}"]\nlower = {lower}\nupper = {upper}\n'
ASKED += '[responses.lowest]\nresponse = "frequency:4"\n'


def designed(folder: Path, **constants) -> parflex.Robot:
    file = as_npz(folder / "m.npz", *beam_matrices(2))
    settings = {f"constants.{name}": value for name, value in constants.items()}
    return load_robot("arm-in-designs", settings=settings | {"frame.link.superelement.file": file})


def question(folder: Path, key: str, lower: float, upper: float, text: str) -> str:
    as_npz(folder / "m.npz", *beam_matrices(2))
    write_robot(folder, robot_file("arm-in-designs").read_text())
    return write_robot(folder, ASKED.format(key=key, lower=lower, upper=upper) + text, "question")


GRID = '[samples]\nkind = "grid"\ncount = 2\n'
BEST = '[objective]\nmaximise = "lowest"\n'


def test_numbers_beside_a_super_element_are_followed_in_designs(tmp_path):
    def frequency(long: float) -> float:
        return float(parflex.natural_frequencies(designed(tmp_path, long=long), modes=4).frequencies[3])

    expected = (frequency(0.1 + 1e-4) - frequency(0.1 - 1e-4)) / 2e-4  # differences are good for 1e-7
    robot, key, values = designed(tmp_path), "constants.long", np.array([0.05, 0.2])
    found = parflex.sensitivities(robot, "frequency:4", [key]).sensitivities[key]
    assert found["derivative"] == pytest.approx(expected, rel=1e-6)
    exact = [frequency(value) for value in values]
    many = parflex.many_frequencies(robot, [], np.zeros((2, 0)), modes=4, designs={key: values})
    assert np.array(many.frequencies)[:, 3] == pytest.approx(exact, rel=1e-9)
    swept = parflex.sweep(question(tmp_path, key, 0.05, 0.2, GRID), jobs=1)
    assert swept.responses["lowest"] == pytest.approx(exact, rel=1e-9)
    best = parflex.optimise(question(tmp_path, key, 0.05, 0.2, BEST))
    assert best.variables[key]["value"] == pytest.approx(0.05)


@pytest.mark.parametrize(
    "key", ["frame.link.superelement.positions.tip.0", "constants.far", "frame.link.superelement.nodes.tip"]
)
def test_numbers_that_change_the_matrices_have_no_derivatives(key, tmp_path):
    robot = designed(tmp_path)
    with pytest.raises(parflex.InputError, match=re.escape(key)):
        parflex.sensitivities(robot, "frequency:1", [key])
    with pytest.raises(parflex.InputError, match=re.escape(key)):
        parflex.optimise(question(tmp_path, key, LENGTH, 0.9, BEST))
    grid = question(tmp_path, key, LENGTH, 0.9, GRID)
    if "nodes" in key:
        with pytest.raises(parflex.RobotFileError, match="valid integer"):
            parflex.sweep(grid, jobs=1)
        return
    swept = parflex.sweep(grid, jobs=1)
    assert np.isfinite(swept.responses["lowest"]).tolist() == [True, False]
    assert "positions of its nodes do not fit its stiffness" in swept.reasons[1]
    many = parflex.many_frequencies(robot, [], np.zeros((2, 0)), modes=2, designs={key: np.array([LENGTH, 0.9])})
    assert np.isfinite(many.frequencies).all(axis=1).tolist() == [True, False]
    assert "positions of its nodes do not fit its stiffness" in str(many.reasons)


@pytest.mark.verify
def test_a_planar_robot_takes_the_motions_of_a_super_element_in_its_plane(tmp_path):
    settings = {"motion": "planar", "gravity": [0, -9.81, 0], "frame.link.place.rotation": [0, 0, 0.3]}
    beam, other = arms(tmp_path, 4, **settings)
    assert len(other.coordinates) == len(beam.coordinates) == 13
    assert [name.split(".")[-1] for name in other.coordinates[1:4]] == ["ux", "uy", "rz"]
    result = [parflex.natural_frequencies(robot, modes=10).frequencies for robot in (beam, other)]
    assert result[1] == pytest.approx(result[0], rel=1e-7)
    turn = np.eye(13)[0]
    moved = [parflex.forward_dynamics(robot, 0.4 * turn, 3 * turn, [0.2]) for robot in (beam, other)]
    assert moved[1][0] == pytest.approx(moved[0][0], rel=2e-5)  # as in space


def test_a_planar_super_element_has_one_of_each_pair_of_bending_modes(tmp_path):
    """A round bar: four held modes are two pairs, which the matrices may mix at will."""
    M, K = beam_matrices(4)
    turn = scipy.linalg.block_diag(np.eye(12), np.linalg.qr(np.random.default_rng(2).normal(size=(4, 4)))[0])
    matrices = as_npz(tmp_path / "m.npz", turn.T @ M @ turn, turn.T @ K @ turn)
    file = write_robot(tmp_path, ON_GROUND.format(file=matrices, more=""))
    robot = parflex.load(file, settings={"motion": "planar", "gravity": [0, -9.81, 0]})
    assert list(robot.coordinates) == [f"part.{word}" for word in ("ux", "uy", "rz", "mode1", "mode2")]
    clamped = np.sqrt(scipy.linalg.eigvalsh(K[6:, 6:], M[6:, 6:])) / (2 * np.pi)
    same = np.isclose(parflex.natural_frequencies(robot, modes=5).frequencies[:, None], clamped, rtol=1e-7)
    assert sorted(same.sum(axis=1)) == [1, 2, 2, 2, 2]  # the stretch, and bending in two planes


# Checkouts of `MatlabAbaqus` (DICLab), `PchConverter` (Qinterfly), `ExportNastranKM` (zhaowei0566), `pyyeti` (twmacro),
# `SuiteSparse` (DrTimothyAldenDavis): PARFLEX_FOREIGN names their folder. Values are those that their programs printed.
FOREIGN = Path(os.environ.get("PARFLEX_FOREIGN", "nowhere"))


def foreign(test):
    return pytest.mark.verify(pytest.mark.skipif(not FOREIGN.exists(), reason="PARFLEX_FOREIGN names no folder")(test))


def sample(name: str) -> str:
    if not (FOREIGN / name).exists():
        pytest.skip(f"{name} is not there")
    return str(FOREIGN / name)


def punched(file: str, monkeypatch) -> np.ndarray:
    monkeypatch.setattr(matrix_files, "from_freedoms", lambda freedoms, matrices, places: matrices)
    A = matrix_files.read_punch(Path(file).read_text())
    K = A["K"] + A["M"] + 1e-10 * np.diag(np.diag(A["K"]))  # some freedoms have no mass, some motions no stiffness
    inverse = scipy.linalg.eigvalsh(A["M"], K)
    squares = 1 / inverse[inverse > 1e-12][::-1] - 1
    return np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi)


@foreign
@pytest.mark.parametrize(
    ("name", "free", "hertz"),
    [
        ("ExportNastranKM/test_1/test_case.pch1", 2, [21.14057, 21.35569, 128.7332, 129.7476, 437.1801]),
        ("ExportNastranKM/test_2/sol103_swept_plane.pch1", 3, [1.339207, 3.406026, 5.610046, 10.88232, 11.05762]),
    ],
)
def test_punch_files_of_nastran_have_the_frequencies_that_it_printed(name, free, hertz, monkeypatch):
    result = punched(sample(name), monkeypatch)
    assert result[free : free + len(hertz)] == pytest.approx(hertz, rel=2e-5)


@foreign
def test_a_pinned_bar_of_nastran_vibrates_as_it_printed(monkeypatch):
    """Without the freedoms that have neither mass nor stiffness; by theory 4.5307 Hz."""
    file = sample("PchConverter/examples/beam.pch")
    monkeypatch.setattr(matrix_files, "from_freedoms", lambda freedoms, matrices, places: matrices)
    A = matrix_files.read_punch(Path(file).read_text())
    compliance, modes = np.linalg.eigh(A["K"])
    used = compliance > 1e-9 * compliance[-1]
    inverse = modes[:, used].T @ A["M"] @ modes[:, used] / np.sqrt(np.outer(compliance[used], compliance[used]))
    assert 1 / np.sqrt(np.linalg.eigvalsh(inverse)[-1]) / (2 * np.pi) == pytest.approx(4.5305, rel=2e-5)


@foreign
def test_a_whole_model_of_nastran_of_few_digits_is_refused_with_its_numbers():
    """71 nodes with masses at some of them; Nastran has 7.949976 Hz, ten digits of K spread the rigid motions."""
    file = sample("ExportNastranKM/test_mAEWing1_FEMv5p1/sol103_maewing1_femv5p1.pch1")
    data = load_matrices(file, [101])
    assert (data.size, len(data.nodes)) == (426, 71)
    with pytest.raises(parflex.RobotFileError, match=r"0\.32 of the lowest elastic frequency, 7\.894 Hz"):
        super_element(data, {"a": 101}, None, None)


@foreign
def test_a_substructure_of_abaqus_has_its_mass():
    data = load_matrices(sample("MatlabAbaqus/Datos/substructure.mtx"), [1])
    assert (data.size, data.interface) == (52, 12)
    X = np.zeros((52, 3))
    X[:12] = np.tile(np.eye(3), (4, 1))
    assert np.diag(X.T @ data.M @ X) == pytest.approx([0.0790] * 3, rel=1e-3)
    assert np.abs(data.K @ X).max() < 1e-12 * np.abs(data.K).max()
