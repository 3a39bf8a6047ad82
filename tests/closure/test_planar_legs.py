"""Planar legs and dyads, against circles and against all assemblies that Newton finds from random starts."""

from pathlib import Path

import numpy as np
import pytest
from support.maps import OK, UNREACHABLE, indices, pose_solver, sides_of, start_of
from support.robots import any_robot, load_robot, write_robot

import parflex
from parflex.closure.targets import Target

SAME = 1e-6  # rad: assemblies that are nearer are one; found to rounding
Pivot = tuple[int, int, complex, complex]  # two bodies, and where it lies on each: 0 is the ground, 1 the crank


def random_linkage(seed: int, pairs: int) -> tuple[list[Pivot], float, np.ndarray]:
    """Pivots of a linkage of dyads behind a crank, its angle, and a first assembly: angle and place of each body."""
    rng = np.random.default_rng(seed)
    place = [0j, 0j, *(complex(*rng.uniform(-1, 1, 2)) for _ in range(2 * pairs))]
    angle = np.array([0.0, *rng.uniform(-3, 3, 2 * pairs + 1)])
    pivots: list[Pivot] = []

    def hinge(a: int, b: int) -> None:
        at = complex(*rng.uniform(-1.5, 1.5, 2))
        own = [(at - place[k]) * np.exp(-1j * angle[k]) for k in (a, b)]
        pivots.append((a, b, *own))

    for a in range(2, 2 + 2 * pairs, 2):
        hinge(int(rng.integers(0, a)), a)
        hinge(int(rng.integers(0, a)), a + 1)
        hinge(a, a + 1)
    first = np.array([[turn, p.real, p.imag] for turn, p in zip(angle[2:], place[2:], strict=True)])
    return pivots, float(angle[1]), first.ravel()


def all_assemblies(pivots: list[Pivot], first: np.ndarray, crank: float, seed: int, starts: int) -> list[np.ndarray]:
    """Angles of all bodies behind the crank, by Newton on pivots from random starts."""
    rng, count = np.random.default_rng(seed), len(first) // 3
    x = np.concatenate([first[None], rng.uniform(-3, 3, (starts, len(first)))])
    for _ in range(60):
        r = np.zeros((len(x), 2 * len(pivots)))
        J = np.zeros((len(x), 2 * len(pivots), len(first)))
        for k, (a, b, *own) in enumerate(pivots):
            for body, point, sign in ((a, own[0], -1.0), (b, own[1], 1.0)):
                if body < 2:
                    known = sign * point * np.exp(1j * crank * body)
                    r[:, 2 * k], r[:, 2 * k + 1] = r[:, 2 * k] + known.real, r[:, 2 * k + 1] + known.imag
                    continue
                c = 3 * (body - 2)
                arm = point * np.exp(1j * x[:, c])
                r[:, 2 * k] += sign * (arm.real + x[:, c + 1])
                r[:, 2 * k + 1] += sign * (arm.imag + x[:, c + 2])
                J[:, 2 * k, c], J[:, 2 * k + 1, c] = -sign * arm.imag, sign * arm.real
                J[:, 2 * k, c + 1] = J[:, 2 * k + 1, c + 2] = sign
        step = np.linalg.solve(J, r[:, :, None])[:, :, 0]
        x = x - step / np.maximum(1.0, np.abs(step).max(axis=1, keepdims=True))
    found: list[np.ndarray] = []
    for row in x[np.abs(r).max(axis=1) < 1e-10]:
        angles = row[: 3 * count : 3]
        if not any(np.abs(np.exp(1j * angles) - np.exp(1j * other)).max() < SAME for other in found):
            found.append(angles)
    return found


def robot_text(pivots: list[Pivot], angles: np.ndarray, crank: float, seed: int, motion: str) -> tuple[str, list[int]]:
    """A robot file of the linkage: a random tree of its pivots, the others as closures; and parents of bodies."""
    rng, bodies = np.random.default_rng(seed), len(angles) + 2
    turned = [0.0, crank, *angles]
    parent, origin, left = {0: 0, 1: 0}, {0: 0j, 1: 0j}, list(range(len(pivots)))
    frames = [
        f'[[frame]]\nname = "b1"\njoint = "revolute"\nactuated = true\nstart = {crank}\ninertia = {{ mass = 1 }}\n'
    ]

    def at(point: complex) -> str:
        return f"position = [{float(point.real)!r}, {float(point.imag)!r}, 0]"

    while len(parent) < bodies:
        k = int(rng.choice([k for k in left if (pivots[k][0] in parent) != (pivots[k][1] in parent)]))
        left.remove(k)
        a, b, p, r = pivots[k] if pivots[k][0] in parent else (*pivots[k][1::-1], *pivots[k][:1:-1])
        parent[b], origin[b] = a, r
        on = f'parent = "b{a}"\n' if a else ""
        start = float(np.angle(np.exp(1j * (turned[b] - turned[a]))))
        frames.append(
            f'[[frame]]\nname = "b{b}"\n{on}place = {{ {at(p - origin[a])} }}\njoint = "revolute"\n'
            f"start = {start!r}\ninertia = {{ mass = 1 }}\n"
        )
    for k in left:
        a, b, p, r = pivots[k]
        for name, body, point in ((f"p{k}", a, p), (f"r{k}", b, r)):
            on = f"b{body}" if body else "base"
            frames.append(f'[[point]]\nname = "{name}"\nframe = "{on}"\n{at(point - origin[body])}\n')
        frames.append(f'[[closure]]\nbetween = ["p{k}", "r{k}"]\njoint = "revolute"\n')
    head = f'format = 1\nname = "linkage"\nmotion = "{motion}"\ngravity = [0, 0, 0]\n'
    return head + "".join(frames) + f"[poses.home]\nb1 = {crank}\n", [parent[k] for k in range(bodies)]


def own_sides(robot: parflex.Robot, target: Target, assemblies: list[np.ndarray]) -> np.ndarray:
    """Return which assemblies are on the sides of which."""
    at = [parflex.Configuration(robot, q) for q in assemblies]
    fits = np.ones((len(at), len(at)), dtype=bool)
    for i, reference in enumerate(assemblies):
        for judged in sides_of(robot, target, reference):
            assert judged.apart
            fits[i] &= [judged.fit(robot.tree, here.at, here.link_jacobians) for here in at]
    return fits


def check(seed: int, pairs: int, motion: str, folder: Path, starts: int) -> int:
    """Check that sides tell the assemblies of a random linkage apart; return how many there are."""
    pivots, crank, first = random_linkage(seed, pairs)
    found = all_assemblies(pivots, first, crank, seed, starts)
    assert len(found) <= 2**pairs
    text, parents = robot_text(pivots, found[0], crank, seed, motion)
    robot = parflex.load(write_robot(folder, text))
    columns = indices(robot, [f"b{body}" for body in range(1, len(parents))])
    at = [robot.home.copy() for _ in found]
    for q, angles in zip(at, found, strict=True):
        turned = np.array([0.0, crank, *angles])
        q[columns] = turned[1:] - turned[parents[1:]]
    assert np.array_equal(own_sides(robot, Target(fixed=frozenset(robot.actuated)), at), np.eye(len(at), dtype=bool))
    solver = pose_solver(robot, ["b1"], [crank])  # as maps judge them
    assert solver.fast and not len(solver.unsettled)
    assert solver._newton(np.array(at))[1].tolist() == [OK] + [UNREACHABLE] * (len(at) - 1)
    return len(found)


@pytest.mark.parametrize(("seed", "motion"), [(2, "planar"), (3, "planar"), (3, "spatial")])
def test_each_assembly_of_a_random_linkage_has_signs_of_its_own(seed: int, motion: str, tmp_path: Path) -> None:
    """Whatever pivots the tree takes; each linkage has four."""
    assert check(seed, 2, motion, tmp_path, 60) == 4


def test_the_signs_of_all_dyads_of_a_block_are_needed(tmp_path: Path) -> None:
    """Four dyads in blocks of several: one determinant per block does not tell them apart."""
    assert check(146, 4, "spatial", tmp_path, 400) == 16


@pytest.mark.verify
@pytest.mark.parametrize("seed", range(100, 130))
@pytest.mark.parametrize("pairs", [2, 3])
def test_signs_of_many_random_linkages(seed: int, pairs: int, tmp_path: Path) -> None:
    """Two and three dyads, in the plane and in space."""
    check(seed, pairs, "planar" if seed % 2 else "spatial", tmp_path, 300)


LEGS = {"navaro": 5, "dualemps": 3, "nested": 4, "squeezer": 8, "flat-loop": 2, "navaro-free": 5}


@pytest.mark.verify
@pytest.mark.parametrize("name", LEGS)
def test_each_assembly_of_a_settled_part_has_signs_of_its_own(name: str) -> None:
    """All that Newton finds from random starts of the joints of one part."""
    robot = any_robot(name)
    tree, assembler, rng = robot.tree, robot.assembler, np.random.default_rng(1)
    target = Target(fixed=assembler.free_bodies or frozenset(robot.actuated))
    parts = assembler.parts(target, robot.locked | frozenset(robot.deformations))
    parts = [part for part in parts if len(part.columns)]
    part = parts[0]
    assert {len(part.columns) for part in parts} == {LEGS[name]} and assembler.settled(part, robot.home)
    own = indices(robot, [tree.rate_names[k] for k in part.columns])
    found = [robot.home]
    for _ in range(100):
        start = robot.home.copy()
        start[own] += rng.uniform(-3, 3, len(own)) * tree.rate_units[part.columns]
        q, error = assembler.newton(start, part.columns, part.rows, 60)
        known = any(assembler._distance(q, other, own) < SAME for other in found)
        found += [q] if error < 1e-10 and not known else []  # closed, of the typical length
    at = [parflex.Configuration(robot, q) for q in found]
    for i, reference in enumerate(found):
        judged = sides_of(robot, target, reference)[0]
        fits = [judged.fit(tree, here.at, here.link_jacobians) for here in at]
        assert not judged.apart or fits == [k == i for k in range(len(found))]
    assert len(found) > 1


PROXIMAL, DISTAL, ARM = 0.7, 0.3, 0.1732  # of 3rrr with other links, so that poses may be too near as well
BASES = np.array([-0.15 - 0.84j, 0.69 - 0.17j, -0.66 + 0.21j])
PHI = np.pi * np.array([1 / 6, 5 / 6, 9 / 6])


def test_reach_of_3rrr_is_that_of_its_lengths() -> None:
    """A pose is reached where each attachment is between the difference and the sum of the lengths of its links."""
    robot = parflex.load("3rrr", settings={"constants.proximal": PROXIMAL, "constants.distal": DISTAL})
    found_by = pose_solver(robot, ["x", "y", "theta"], [0.0] * 3)
    values = np.random.default_rng(2).uniform([-0.7, -0.7, -3.0], [0.7, 0.7, 3.0], (3000, 3))
    attached = values[:, :1] + 1j * values[:, 1:2] - ARM * np.exp(1j * (values[:, 2:] + PHI))
    far = np.abs(attached - BASES)
    reached = ((far < PROXIMAL + DISTAL) & (far > PROXIMAL - DISTAL)).all(axis=1)
    assert 300 < reached.sum() < 2700 and ((far < PROXIMAL + DISTAL).all(axis=1) & ~reached).any()
    found = found_by(values)
    assert np.array_equal(found.status, np.where(reached, OK, UNREACHABLE))
    beyond, q = found_by.places(start_of(found_by, values))
    assert np.array_equal(beyond, ~reached)
    assert np.abs(q - found.q)[reached].max() < 1e-9  # near the edge of reach rounding is a square root


@pytest.mark.parametrize("compiled", [False, True])
def test_positions_at_the_edge_of_reach_are_those_of_circles(compiled: bool) -> None:
    """Newton's method converges slowly there."""
    found_by = pose_solver(parflex.load("navaro"), ["x", "y"], [0.0] * 2, compiled=compiled)
    edge = [[-0.06636636636636636, -0.04054054054054054], [0.05355355355355357, 0.0987987987987988]]
    line = np.array(edge)[:, None] * np.linspace(0.95, 1.0, 150)[:, None]
    values = line.reshape(-1, 2)
    beyond, q = found_by.places(start_of(found_by, values))
    found, status = found_by._searched(values, np.arange(300))
    assert not beyond.any() and (status == OK).all()
    assert np.abs(np.sin(found - q)).max() < 1e-9


def test_circles_of_designs_are_those_of_their_lengths() -> None:
    """Elbows of `3rrr` with other links in each row, at the lengths that these have."""
    robot, rng = parflex.load("3rrr"), np.random.default_rng(4)
    keys = ["constants.proximal", "constants.distal", "constants.arm", "legs.base_x.0"]
    rows = np.array([PROXIMAL, DISTAL, ARM, -0.15]) * rng.uniform(0.9, 1.1, (50, 4))
    designs = {key: rows[:, k] for k, key in enumerate(keys)}
    found_by = pose_solver(robot, ["x", "y", "theta"], [0.0] * 3, designs)
    values = rng.uniform([-0.1, -0.1, -0.3], [0.1, 0.1, 0.3], (50, 3))
    beyond, q = found_by.places(start_of(found_by, values))
    bases = np.repeat(BASES[None], 50, axis=0)
    bases[:, 0] = rows[:, 3] - 0.84j
    arms = rows[:, 2:3] * np.exp(1j * (values[:, 2:] + PHI))
    attached = values[:, :1] + 1j * values[:, 1:2] - arms
    far = np.abs(attached - bases)
    reached = (far < rows[:, :1] + rows[:, 1:2]).all(axis=1) & (far > np.abs(rows[:, :1] - rows[:, 1:2])).all(axis=1)
    assert np.array_equal(beyond, ~reached) and reached.sum() > 10
    turn = q[:, indices(robot, [f"leg{k}.{n}" for k in (1, 2, 3) for n in (1, 2)])].T
    for leg in range(3):
        elbow = bases[:, leg] + rows[:, 0] * np.exp(1j * turn[2 * leg])
        end = elbow + rows[:, 1] * np.exp(1j * (turn[2 * leg] + turn[2 * leg + 1]))
        assert np.abs(end - attached[:, leg])[reached].max() < 1e-9


def test_axes_that_designs_tilt_do_not_count_as_parallel() -> None:
    """A wedge that a design turns back otherwise: nothing proves any more that sides tell assemblies apart."""
    robot = load_robot("wedged-four-bar")
    for key, count in (("constants.bar", 0), ("constants.tilt", 2)):
        solver = pose_solver(robot, ["crank"], [1.2], {key: np.array([0.1, 0.11, 0.12])})
        assert solver.fast and solver.unsettled.size == count
