"""Natural modes: energies, in the plane or across it, along a path, stiff beside soft, bodies given by modes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
from support import bars
from support.catalogue import CATALOGUE
from support.comparison import largest
from support.modal_robots import MODES, POSES, PRINTED_STIFFNESS, bodies, place, steadily_bent, with_platform
from support.oracles import super_elements as oracle
from support.oracles.modal_data import read_modes
from support.oracles.plate_on_beams import gough_stewart_on_beams
from support.robots import load_robot

import parflex
from parflex import natural_frequencies, track_modes
from parflex.bodies.craig_bampton import craig_bampton
from parflex.bodies.modal import save_modal
from parflex.statics.modes import energy_shares
from parflex.statics.zero_dynamics import held_frame

# -- energies ---------------------------------------------------------------------------------------------


def test_energies_of_two_masses_on_springs_are_where_the_closed_form_has_them():
    robot = load_robot("two-masses-on-springs")
    result = natural_frequencies(robot)
    M, K = np.array([[3.0, 1.0], [1.0, 1.0]]), np.diag([300.0, 100.0])  # by the stretch of each spring
    D = np.diag([0.4, 0.1])
    squares, shapes = np.linalg.eig(np.linalg.solve(M, K))
    order = np.argsort(squares)
    assert result.frequencies == pytest.approx(np.sqrt(squares[order]) / (2 * np.pi), rel=1e-12)
    for k, part in zip(order, energy_shares(result), strict=True):
        v = shapes[:, k]
        strain = np.diag(K) * v**2 / (v @ K @ v)
        speed = np.array([2.0, 1.0]) * np.array([v[0], v[0] + v[1]]) ** 2 / (v @ M @ v)
        assert part["strain"]["joints"] == pytest.approx(dict(zip(("first", "second"), strain, strict=True)), rel=1e-9)
        assert part["kinetic"]["bodies"] == pytest.approx(dict(zip(("first", "second"), speed, strict=True)), rel=1e-9)
        assert part["strain"]["bodies"] == {}
        ratio = v @ D @ v / (2 * np.sqrt(squares[k]) * (v @ M @ v))
        assert result.damping[list(order).index(k)] == pytest.approx(ratio, rel=1e-9)


def test_a_hinged_bar_in_space_bends_in_the_plane_and_across_it(tmp_path):
    bar = bars.beam(tmp_path, joint=bars.HINGE, motion="spatial", elements=6)
    result = natural_frequencies(bar, modes=4)
    kinds = [part["kind"] for part in energy_shares(result)]
    # the bar is twice as stiff across the plane as in it: roots of a cantilever times one and two
    roots = {"in-plane": (1.8751040687, 4.6940911330), "out-of-plane": (1.8751040687, 4.6940911330)}
    expected = sorted(
        (bars.bending(root) * (1 if kind == "in-plane" else 2), kind) for kind, both in roots.items() for root in both
    )
    assert kinds == [kind for _, kind in expected]
    assert result.frequencies == pytest.approx([hertz for hertz, _ in expected], rel=1e-3)  # six cubic elements


def test_every_mode_of_the_navaro_has_a_kind_and_shares_that_add_up():
    result = natural_frequencies(parflex.load("navaro"), "pose-3", modes=12)
    for part in energy_shares(result):
        assert part["kind"] in ("in-plane", "out-of-plane")  # its plane is a plane of symmetry
        assert min(part["in_plane"], 1 - part["in_plane"]) < 1e-9  # rounding
        for table in (part["strain"]["legs"], part["kinetic"]["legs"]):
            assert set(table) <= {"leg1", "leg2", "leg3"}
            assert sum(table.values()) == pytest.approx(1, abs=1e-3)  # small shares are left out
    skew = natural_frequencies(parflex.load("gough-stewart"), servo=1e6)  # hinges that are not parallel
    assert [part["kind"] for part in energy_shares(skew)] == [None] * 6


def test_free_motions_are_named_by_coordinates_that_differ(tmp_path):
    result = natural_frequencies(bars.beam(tmp_path, joint='joint = "free"'))
    assert sorted(result.free_motions) == ["bar.vx", "bar.vy", "bar.wz"]


def test_a_moment_that_keeps_its_axis_has_no_potential_and_a_force_has(tmp_path):
    bar = bars.cantilever(tmp_path, motion="spatial", elements=2)
    for load, caught in (([300, 20, 30], False), ([0, 0, 0, 8, 0, 0], True)):
        result = natural_frequencies(bar, about="equilibrium", wrench={"bar.tip": load})
        K, D = result.model.K, np.sqrt(np.diag(result.model.K))
        assert bool(np.abs((K - K.T) / np.outer(D, D)).max() > 1e-12) is caught  # rounding leaves 1e-15
        assert any("not conservative" in text for text in result.model.warnings) is caught


# -- in the plane or across it: modes of a symmetric boom, whatever its body is given by ------------------

LENGTH, BAR = 0.3, oracle.round_bar(0.004)


def kinds_of(robot: parflex.Robot, count: int = 10) -> tuple[np.ndarray, np.ndarray]:
    result = natural_frequencies(robot, modes=count)
    return result.frequencies, np.array([part["in_plane"] for part in energy_shares(result)])


def mixed(M: np.ndarray, K: np.ndarray, interface: int) -> tuple[np.ndarray, np.ndarray]:
    T = np.eye(len(M))
    T[interface : interface + 2, interface : interface + 2] = [[0.8, -0.6], [0.6, 0.8]]
    return T.T @ M @ T, T.T @ K @ T


def test_modes_of_a_round_boom_are_in_the_plane_or_across_it_whatever_gives_its_body(tmp_path):
    beam, kinds = kinds_of(load_robot("round-boom"))
    assert np.minimum(kinds, 1 - kinds).max() < 1e-12  # rounding, squared
    assert 0 < np.round(kinds).sum() < len(kinds)
    M, K = mixed(*oracle.reduced_beam(LENGTH, 4, BAR, 18), 12)
    np.savez(tmp_path / "super.npz", M=M, K=K, positions=[[0, 0, 0], [LENGTH, 0, 0]])
    frequencies, result = kinds_of(
        load_robot("round-boom-by-matrices", settings={"frame.link.superelement.file": str(tmp_path / "super.npz")})
    )
    assert frequencies == pytest.approx(beam, rel=1e-6)
    assert result == pytest.approx(np.round(kinds), abs=1e-9)  # modes of one frequency are parted to rounding


def test_modes_of_a_boom_by_modal_data_are_in_the_plane_or_across_it(tmp_path):
    count = 20
    nodes = np.outer(np.linspace(0, LENGTH, count + 1), [1, 0, 0])
    M, K = oracle.chain(LENGTH, count, BAR)
    save_modal(craig_bampton(M, K, nodes, {"root": 0, "tip": count}, 4, root="root").data, tmp_path / "boom.npz")
    beam, kinds = kinds_of(load_robot("round-boom", settings={"frame.link.beam.elements": 6}))
    frequencies, result = kinds_of(
        load_robot("round-boom-by-modes", settings={"frame.link.modal.file": str(tmp_path / "boom.npz")})
    )
    assert frequencies[:6] == pytest.approx(beam[:6], rel=0.01)  # masses at nodes
    assert np.minimum(result, 1 - result).max() < 1e-9
    assert list(np.round(result[:6])) == list(np.round(kinds[:6]))


def test_nodes_above_and_below_the_plane_mirror_each_other(tmp_path):
    high, count = 0.05, 6
    along, size = oracle.chain(LENGTH, count, BAR), 6 * (count + 3)
    M, K = np.zeros((2, size, size))
    M[: len(along[0]), : len(along[0])], K[: len(along[0]), : len(along[0])] = along
    for node, sign in ((count + 1, 1.0), (count + 2, -1.0)):
        stub = oracle.chain(high, 1, BAR)
        up = np.array([[0.0, 0.0, sign], [0.0, 1.0, 0.0], [-sign, 0.0, 0.0]])  # x of the stub along +-z
        rows = [*range(6 * count, 6 * count + 6), *range(6 * node, 6 * node + 6)]
        T = scipy.linalg.block_diag(up, up, up, up)
        for whole, own in zip((M, K), stub, strict=True):
            whole[np.ix_(rows, rows)] += T.T @ own @ T
    kept = [*range(6), *range(6 * count + 6, size)]
    M, K = oracle.reduced(M, K, kept, 6)
    np.savez(tmp_path / "t.npz", M=M, K=K, positions=[[0, 0, 0], [LENGTH, 0, high], [LENGTH, 0, -high]])
    robot = load_robot("boom-with-bar", settings={"frame.link.superelement.file": str(tmp_path / "t.npz")})
    _, kinds = kinds_of(robot, 8)
    assert np.minimum(kinds, 1 - kinds).max() < 1e-9
    assert 0 < np.round(kinds).sum() < len(kinds)


# -- along a path -----------------------------------------------------------------------------------------


@pytest.fixture
def pendulums():
    return load_robot("pendulums")


def test_branches_go_straight_through_a_crossing(pendulums):
    path = [{"slider": r} for r in (0.1, 0.8)]
    result = track_modes(pendulums, path, modes=2)
    r = 0.1 + 0.7 * result.places
    moving = np.sqrt(90 / (0.01 + 2 * r**2)) / (2 * np.pi)
    still = np.full(len(r), np.sqrt(40 / 0.1) / (2 * np.pi))
    assert moving[0] > still[0]
    assert moving[-1] < still[-1]
    # closed forms; the eigenvalue solver is exact to rounding for two by two
    assert np.abs(result.frequencies - np.stack([still, moving], axis=1)).max() < 1e-10
    assert result.agreement.min() > 0.8
    assert not result.doubtful


def test_the_crossing_itself_is_one_subspace(pendulums):
    crossing = np.sqrt((90 / 400 - 0.01) / 2)
    result = track_modes(pendulums, [{"slider": r} for r in (0.9 * crossing, crossing, 1.1 * crossing)], modes=2)
    assert result.frequencies[1, 0] == pytest.approx(result.frequencies[1, 1], rel=1e-9)
    slope = np.diff(result.frequencies[:, 1])
    assert (slope < 0).all()  # the branch that falls keeps falling beyond the double mode
    assert np.abs(np.diff(result.frequencies[:, 0])).max() < 1e-10
    start = track_modes(pendulums, [{"slider": r} for r in (crossing, 1.1 * crossing)], modes=2)
    assert start.agreement.min() > 0.95  # at the start the basis of the double mode is that of the next pose


def test_branches_of_a_symmetric_robot_stay_whole_along_a_path():
    robot = parflex.load("navaro")
    result = track_modes(robot, ["pose-1", {**robot.description.poses["pose-1"], "rz": -0.25}], modes=5)
    assert result.agreement.min() > 0.8
    # the three-fold symmetry of the centred robot makes modes come in pairs; inside a pair any basis is right
    assert (np.diff(np.sort(result.frequencies[0])) < 1e-6 * result.frequencies[0, 0]).any()


# -- stiff springs and light bodies with soft ones --------------------------------------------------------


@pytest.mark.parametrize(
    ("inertia", "stiffness"), [(1e-3, 1e10), (1e-3, 1e12), (1e-3, 1e14), (1e-9, 1e6), (1e-12, 1e6)]
)
@pytest.mark.parametrize("poses", [4, 210])  # whole matrices, and steps
def test_soft_modes_beside_stiff_springs_are_neither_lost_nor_blurred(inertia, stiffness, poses):
    inertias = [inertia] * 3
    robot = load_robot(
        "stiff-and-soft", settings={"frame.s0.spring.stiffness": stiffness, "frame.s0.inertia.about_centre": inertias}
    )
    (k1, J1), (k2, J2) = (1000.0, 1.0), (500.0, 2.0)  # springs and inertias behind the stiff one
    K = np.array([[stiffness + k1, -k1, 0], [-k1, k1 + k2, -k2], [0, -k2, k2]])
    shares = scipy.linalg.eigh(np.diag([inertia, J1, J2]), K, eigvals_only=True)  # the lowest modes are the largest
    exact = 1 / np.sqrt(shares[:0:-1]) / (2 * np.pi)
    result = parflex.many_frequencies(robot, ["m"], np.linspace(-1, 1, poses)[:, None], modes=2)
    assert not result.status.any()
    # K by hand adds k1 to the stiff one: 1e3 of 1e14 keeps five digits, which count for 1e-11 of the soft modes
    assert np.abs(result.frequencies / exact - 1).max() < 1e-9
    if poses == 4:
        single = parflex.natural_frequencies(robot, {"m": 0.5})
        assert not single.free_motions and np.abs(single.frequencies[:2] / exact - 1).max() < 1e-9


def test_modes_beside_a_free_motion_keep_their_digits_with_many_elements():
    fine, coarse = (load_robot("ball-arm", elements=count) for count in (64, 16))
    poses = [[0.0], [0.3], [0.6]]
    many = parflex.many_frequencies(fine, ["arm"], poses, modes=3).frequencies
    # sixteen elements are converged to 1e-8 in the lowest mode, and few enough for single calls to be exact
    single = [parflex.natural_frequencies(coarse, {"arm": arm}, modes=1).frequencies[0] for (arm,) in poses]
    assert many[:, 0] == pytest.approx(single, rel=5e-8)


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
def test_the_platform_of_long2014_sags_as_published_in_the_errata(pose, tmp_path, figure):
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
