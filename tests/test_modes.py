"""Natural modes: their energies, in the plane or across it, followed along a path, soft ones with stiff springs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from support import bars
from support.oracles import super_elements as oracle
from support.robots import load_robot

import parflex
from parflex import InputError, natural_frequencies, track_modes
from parflex.bodies.finite_elements import craig_bampton
from parflex.bodies.modal_file import save_modal
from parflex.models.elastic.participation import energy_shares

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
    """Frequencies, and the share of the energy of each mode that is in the plane."""
    result = natural_frequencies(robot, modes=count)
    return result.frequencies, np.array([part["in_plane"] for part in energy_shares(result)])


def mixed(M: np.ndarray, K: np.ndarray, interface: int) -> tuple[np.ndarray, np.ndarray]:
    """The same body with other modal coordinates: those of one frequency are turned into each other."""
    T = np.eye(len(M))
    T[interface : interface + 2, interface : interface + 2] = [[0.8, -0.6], [0.6, 0.8]]
    return T.T @ M @ T, T.T @ K @ T


def test_modes_of_a_round_boom_are_in_the_plane_or_across_it_whatever_gives_its_body(tmp_path):
    """By symmetry. All modes of the elements are in the super-element, so that its frequencies are those of beams."""
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
    """A boom that ends in a bar along its hinge: turns about the boom move the ends of that in the plane."""
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
    """One frequency stands still, the other falls as the mass slides out; sorted by size they would swap."""
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


def test_a_path_that_is_none_is_refused(pendulums):
    with pytest.raises(InputError, match="at least two"):
        track_modes(pendulums, [{"slider": 0.1}])
    with pytest.raises(InputError, match="different coordinates"):
        track_modes(pendulums, [{"slider": 0.1}, {"arm": 0.1}])
    with pytest.raises(InputError, match="no pose 'nowhere'"):
        track_modes(pendulums, ["nowhere", {"slider": 0.1}])


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
    """LAPACK's errors are shares of the highest mode, and 64 elements make that 1e6 times the lowest."""
    fine, coarse = (load_robot("ball-arm", elements=count) for count in (64, 16))
    poses = [[0.0], [0.3], [0.6]]
    many = parflex.many_frequencies(fine, ["arm"], poses, modes=3).frequencies
    # sixteen elements are converged to 1e-8 in the lowest mode, and few enough for single calls to be exact
    single = [parflex.natural_frequencies(coarse, {"arm": arm}, modes=1).frequencies[0] for (arm,) in poses]
    assert many[:, 0] == pytest.approx(single, rel=5e-8)
