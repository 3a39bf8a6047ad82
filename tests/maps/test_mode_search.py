"""Compiled steps that find modes, against whole matrices: all kinds of robots, shapes, Sturm counts, chains."""

import numpy as np
import pytest
import scipy.linalg
from support.maps import ModeFinder, home_matrices, locked_robot, lowest, number_at
from support.posing import pose_solver
from support.robots import any_robot

import parflex
from parflex.maps.mode_verification import error_bound

SPACE = ["x", "y", "z", "rx", "ry", "rz"]
HOME = [0.25, 0.433, 1.0, 0, 0, 0]  # of the Gough-Stewart robots
AUDITED = {  # coordinates, the middle of their range, how far it goes, modes, keys of designs
    "navaro": (["x", "y", "rz"], [0, 0, -0.7], 0.05, 6, ["constants.bar", "constants.arm"]),
    "navaro-refined": (["x", "y", "rz"], [0, 0, 0], 0.05, 4, []),
    "dualemps": (["11", "21"], [0, 0], 0.2, 4, []),
    "gough-stewart-beams": (
        SPACE, HOME, 0.1, 6, ["constants.rod", "sections.rod.diameter", "materials.steel.density"]
    ),
    "gough-stewart-elastic": (SPACE, HOME, 0.1, 10, ["sections.rod.diameter"]),  # mode 7 is the same at all poses
    "gough-stewart-flexible": (SPACE, HOME, 0.1, 6, []),
    "3rrr-flexible": (["x", "y", "theta"], [0, 0, 0], 0.05, 4, []),
    "three-beam-legs": (["leg1.upper", "leg1.lower", "leg2.upper", "leg3.lower"], None, 0.3, 6, []),
    "slider-crank-beam": (["crank"], [0.8], 0.5, 3, ["constants.l2"]),
    "rolled-beams": ([], [], 0.0, 4, ["sections.flat.y"]),
    "pendulum-beam": ([], [], 0.0, 3, []),
}  # fmt: skip
SHAPED = {"navaro": 6, "3rrr-flexible": 3, "gough-stewart-beams": 6, "rolled-beams": 2, "dualemps": 3}
FULL = 100  # rows of a call that are solved by whole matrices


def audit(name: str, count: int, modes: int | None = None) -> tuple[parflex.ManyFrequencies, np.ndarray, np.ndarray]:
    """Modes at random poses with random designs by steps, and frequencies and shapes by whole matrices."""
    names, middle, spread, usual, keys = AUDITED[name]
    robot, rng = any_robot(name), np.random.default_rng(5)
    designs = {key: number_at(robot, key) * rng.uniform(0.9, 1.1, count) for key in keys}
    if middle is None:
        middle = robot.home[[robot.coordinates.index(word) for word in names]]
    poses = np.array(middle, dtype=float) + spread * rng.uniform(-1, 1, (count, len(names)))

    def solved(part: slice):
        own = {key: values[part] for key, values in designs.items()}
        words = {"shapes": modes is not None, "designs": own or None, "about": "undeformed"}
        return parflex.many_frequencies(robot, names, poses[part], modes or usual, **words)

    steps, parts = solved(slice(None)), [solved(slice(k, k + FULL)) for k in range(0, count, FULL)]
    assert steps.method == "steps" and {part.method for part in parts} == {"full"}
    shapes = [part.shapes for part in parts if part.shapes is not None]
    return steps, np.concatenate([part.frequencies for part in parts]), np.concatenate(shapes) if shapes else None


@pytest.mark.verify
@pytest.mark.parametrize("name", list(AUDITED))
def test_every_kind_of_robot_is_answered_as_by_whole_matrices(name, figure):
    steps, frequencies, _ = audit(name, 200)
    reached = steps.status == 0
    assert reached.sum() > 100 and steps.fallbacks < 0.01 * len(reached)
    error = float(np.abs(steps.frequencies - frequencies)[reached].max())
    figure(f"{name}: largest error of frequencies in Hz", error, 1e-6)
    assert error < 1e-6  # steps end at 1e-10, whole matrices have a condition of 1e8


@pytest.mark.verify
@pytest.mark.parametrize("name", list(AUDITED))
def test_ten_thousand_poses_of_every_kind_of_robot_are_answered_as_by_whole_matrices(name, figure):
    steps, frequencies, _ = audit(name, 10_000)
    error = float(np.nanmax(np.abs(steps.frequencies - frequencies)))
    figure(f"{name}: largest error of frequencies in Hz, 10 000 poses", error, 1e-6)
    assert error < 1e-6 and steps.fallbacks < 100  # as above


@pytest.mark.few("3rrr-flexible")
@pytest.mark.parametrize("name", list(SHAPED))
def test_shapes_differ_from_those_of_whole_matrices_by_rounding_over_gaps(name):
    steps, frequencies, shapes = audit(name, 200, SHAPED[name])
    compared = 0
    for values, mine, exact in zip(frequencies**2, steps.shapes, shapes, strict=True):
        for mode in np.flatnonzero(np.isfinite(values)):
            gap = np.abs(np.delete(values, mode) / values[mode] - 1).min()
            # rounding of LAPACK is 1e-16 of the highest eigenvalue, 1e6 times these; the next mode may be near, too
            off = np.abs(mine[mode] - exact[mode]).max() / np.abs(exact).max()
            if mode < len(values) - 1 and gap > 1e-3:
                assert off < 1e-6 + 1e-9 / gap
                compared += 1
    assert compared > 100


def test_shapes_from_whole_matrices_have_a_reason():
    """Its fourth mode lies above the lowest one of its links held at both ends: counts alone find it."""
    robot, poses = parflex.load("3rrr-flexible"), np.random.default_rng(3).uniform(-0.05, 0.05, (200, 3))
    mass = {"platform.inertia.mass": np.full(200, number_at(robot, "platform.inertia.mass"))}
    for designs in (None, mass):
        result = parflex.many_frequencies(robot, ["x", "y", "theta"], poses, 4, shapes=True, designs=designs)
        assert result.method == "steps" and result.fallbacks == 200 and "shapes of some poses" in result.reason
        few = parflex.many_frequencies(robot, ["x", "y", "theta"], poses, 3, shapes=True, designs=designs)
        assert few.fallbacks == 0 and few.reason == ""


def test_modes_of_condensed_matrices_are_within_the_bound():
    """Theory (72) on matrices without a robot: the pencil at a shift has its mode beside that of the whole matrices."""
    rng, share = np.random.default_rng(11), []
    for _ in range(20):
        K, M = (x @ x.T + 2.0 * np.eye(8) for x in rng.uniform(-1, 1, (2, 8, 8)))
        mode, pole = (scipy.linalg.eigh(k, m, eigvals_only=True)[0] for k, m in ((K, M), (K[5:, 5:], M[5:, 5:])))
        for off in (-3e-2, -1e-3, 1e-3, 3e-2):
            shift = mode - off * (pole - mode)
            D = K - shift * M
            X = np.concatenate([np.eye(5), -np.linalg.solve(D[5:, 5:], D[5:, :5])])
            beside = scipy.linalg.eigh(X.T @ D @ X, X.T @ M @ X, eigvals_only=True)
            rho = shift + beside[np.argmin(np.abs(beside))]
            bound = error_bound(rho, shift, 0.0, pole)
            assert abs(mode - rho) <= bound + 1e-12 * mode  # rounding
            share.append(abs(mode - rho) / bound)
    assert max(share) > 0.05  # it is not far too large either


@pytest.mark.parametrize("elements", [1, 3, 4])
def test_counts_and_modes_of_condensed_chains_are_those_of_the_whole_matrices(elements):
    robot = parflex.load("3rrr-flexible", elements=elements)
    locked = locked_robot(robot, "actuators")
    K, M = home_matrices(robot)
    finder, home = ModeFinder(locked, 5 if elements > 1 else 3), pose_solver(robot, ["x", "y"], [0, 0]).geometry.home
    result = finder(home[None])
    assert result.ok.all() and finder.programs.condensed
    assert result.x[0] == pytest.approx(lowest(K, M, 0, len(result.x[0])), rel=1e-9)  # condition of the matrices 1e7
    if elements == 1:
        values = scipy.linalg.eigh(K, M, eigvals_only=True)
        shifts = np.sqrt(values[1:] * values[:-1])[np.diff(values) > 1e-6 * values[1:]]
        entries = np.repeat(finder._entries(home[None], None), len(shifts), axis=0)
        assert finder.programs.unknowns == len(values)
        assert finder._count(entries, shifts).tolist() == [int((values < s).sum()) for s in shifts]


def test_positions_by_the_compiled_loop_are_those_of_single_poses():
    robot, names = parflex.load("3rrr"), ["x", "y", "theta"]
    poses = np.random.default_rng(8).uniform(-0.12, 0.12, (100, 3))
    plain, fast = (pose_solver(robot, names, poses[0], compiled=compiled)(poses) for compiled in (False, True))
    good = np.flatnonzero(fast.status == 0)
    assert fast.status.tolist() == plain.status.tolist() and len(good) > 50
    assert fast.q[good] == pytest.approx(plain.q[good], abs=1e-12)  # both end at rounding
    for row in good[:3]:
        single = robot.assemble(dict(zip(names, poses[row].tolist(), strict=True)))
        assert np.abs(np.exp(1j * fast.q[row]) - np.exp(1j * single)).max() < 1e-8  # whole turns aside
