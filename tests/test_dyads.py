"""Dyads tell all assemblies of a planar part apart: against all that Newton finds from hundreds of random starts.

Random linkages are bodies of random points in a plane, each two hinged to bodies before them and to each other. Their
assemblies are found from positions and angles of the bodies, which know neither a tree nor what a dyad is.
"""

import itertools
from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex.closure.assembly.newton import CLOSED
from parflex.closure.dyads import Dyad, dyads
from parflex.closure.targets import Target
from parflex.closure.working_modes import Judged, sides
from parflex.maps.batches import Geometry
from parflex.maps.positions import OK, UNREACHABLE, PositionSolver
from parflex.recursion import jacobians, pose

ROBOTS = Path(__file__).parent / "robots"
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


def written(pivots: list[Pivot], angles: np.ndarray, crank: float, seed: int, motion: str) -> tuple[str, list[int]]:
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


def positions(robot: parflex.Robot, angles: np.ndarray, crank: float, parents: list[int]) -> np.ndarray:
    """Joints of the linkage from angles of its bodies."""
    turned, q = [0.0, crank, *angles], robot.home.copy()
    for body in range(1, len(turned)):
        q[robot.tree.links[robot.tree.number(f"b{body}")].q.start] = turned[body] - turned[parents[body]]
    return q


def patterns(robot: parflex.Robot, target: Target, found: list[np.ndarray], direct: bool) -> np.ndarray:
    """Which assemblies fit the sides of which."""
    tree, locked = robot.tree, robot.locked | frozenset(robot.deformations)
    parts = [part for part in robot.assembler.parts(target, locked) if len(part.columns)]
    fits = np.ones((len(found), len(found)), dtype=bool)
    for (i, reference), part in itertools.product(enumerate(found), parts):
        if direct:
            found_dyads = dyads(tree, part.rows, part.columns, reference)
            assert found_dyads is not None
            told: list[Dyad | Judged] = list(found_dyads)
        else:
            judged = sides(tree, part.rows, part.columns, part.held, robot.preference, reference)
            assert judged.apart
            told = [*judged.blocks, *judged.dyads]
        for j, q in enumerate(found):
            at = pose(tree, q)
            fits[i, j] &= all(one.fits(tree, at, jacobians(tree, at)) for one in told)
    return fits


def check(seed: int, pairs: int, motion: str, folder: Path, starts: int) -> int:
    """Signs of a random linkage: by dyads alone, and by blocks and dyads as they are used. How many assemblies."""
    pivots, crank, first = random_linkage(seed, pairs)
    found = all_assemblies(pivots, first, crank, seed, starts)
    assert len(found) <= 2**pairs
    text, parents = written(pivots, found[0], crank, seed, motion)
    (folder / "linkage.toml").write_text(text)
    robot = parflex.load(folder / "linkage.toml")
    at = [positions(robot, angles, crank, parents) for angles in found]
    for direct in (True, False):
        told = patterns(robot, Target(fixed=frozenset(robot.actuated)), at, direct)
        assert np.array_equal(told, np.eye(len(at), dtype=bool))
    solver = PositionSolver(Geometry(robot), ["b1"], [crank])  # as maps judge them
    assert solver.fast and not len(solver.unsettled)
    assert solver._newton(np.array(at))[1].tolist() == [OK] + [UNREACHABLE] * (len(at) - 1)
    return len(found)


@pytest.mark.parametrize(("seed", "motion"), [(2, "planar"), (3, "planar"), (3, "spatial")])
def test_each_assembly_of_a_random_linkage_has_signs_of_its_own(seed: int, motion: str, tmp_path: Path) -> None:
    """Whatever pivots the tree takes; each linkage has four."""
    assert check(seed, 2, motion, tmp_path, 60) == 4


@pytest.mark.verify
@pytest.mark.parametrize("seed", range(100, 130))
@pytest.mark.parametrize("pairs", [2, 3])
def test_signs_of_many_random_linkages(seed: int, pairs: int, tmp_path: Path) -> None:
    """Two and three dyads, in the plane and in space."""
    check(seed, pairs, "planar" if seed % 2 else "spatial", tmp_path, 300)


LEGS = {
    "navaro": [5, 5, 5],
    "dualemps": [3],
    "nested": [4],
    "squeezer": [8],
    "flat-loop": [2],
    "navaro-free": [5, 5, 5],
}


@pytest.mark.verify
@pytest.mark.parametrize("name", LEGS)
def test_each_assembly_of_a_settled_part_has_signs_of_its_own(name: str) -> None:
    """All that Newton finds from random starts of the joints of one part."""
    path = ROBOTS / f"{name}.toml"
    robot = parflex.load(path if path.exists() else name)
    tree, assembler = robot.tree, robot.assembler
    given = assembler.free_bodies or frozenset(robot.actuated)
    parts = assembler.parts(Target(fixed=given), robot.locked | frozenset(robot.deformations))
    parts = [part for part in parts if len(part.columns)]
    assert [len(part.columns) for part in parts] == LEGS[name]
    rng = np.random.default_rng(1)
    for part in parts[:1]:
        assert assembler.settled(part, robot.home)
        own = [tree.links[tree.link_of_rate[k]].q.start for k in part.columns]
        found = [robot.home]
        for _ in range(100):
            start = robot.home.copy()
            start[own] += rng.uniform(-3, 3, len(own)) * tree.rate_units[part.columns]
            q, error = assembler.newton(start, part.columns, part.rows, 60)
            known = any(assembler._distance(q, other, own) < SAME for other in found)
            found += [q] if error < CLOSED and not known else []
        at = [(pose(tree, q), jacobians(tree, pose(tree, q))) for q in found]
        for i, reference in enumerate(found):
            judged = sides(tree, part.rows, part.columns, part.held, robot.preference, reference)
            fits = [judged.fit(tree, *there) for there in at]
            assert not judged.apart or fits == [k == i for k in range(len(found))]
        assert len(found) > 1
