"""Designs at the edge of what can be assembled: its distance has exact slopes, steps slide along it, ends are told."""

import numpy as np
import pytest
from support.robots import load_robot, robot_file

from parflex import InputError
from parflex.design.assembly_edge import AssemblyEdge, EdgeReader
from parflex.design.descent import Descent, Designs, Term, descend, with_remaining_slope
from parflex.design.evaluation import ProblemDesigns, ResponsePiece
from parflex.design.optimise import OptimisationProblem
from parflex.design.problem import read_problem
from parflex.design.sliding import MARGIN
from parflex.robot.load import with_settings

KEYS = ["constants.A", "constants.B"]
FAR = {"x": 0.05, "y": 0.45}  # 0.4743 m from the left motor


@pytest.fixture
def five():
    return load_robot("five-bar-in-designs")


def test_the_squared_distance_from_the_edge_has_the_slopes_of_differences(five):
    reader = EdgeReader(five, KEYS, np.ones(2))

    def values(a, b):
        robot = with_settings(five, {"constants.A": a, "constants.B": b})
        return np.array([edge.value for edge in reader.edges(robot, [FAR], slopes=False)])

    for a, b in ((0.25, 0.2245), (0.3, 0.25)):  # 0.2 mm from the edge, and far from it
        found = reader.edges(with_settings(five, {"constants.A": a, "constants.B": b}), [FAR])
        h = 2e-6
        differences = [
            (8 * (values(a + h * x, b + h * y) - values(a - h * x, b - h * y))
             - values(a + 2 * h * x, b + 2 * h * y) + values(a - 2 * h * x, b - 2 * h * y)) / (12 * h)
            for x, y in ((1, 0), (0, 1))
        ]  # fmt: skip
        # rounding of poses that are closed to 1e-10 of a length, over 2e-6
        assert np.array([edge.slope for edge in found]) == pytest.approx(np.array(differences).T, abs=2e-5)
        if b < 0.23:
            last = min(found, key=lambda edge: edge.value)
            # both lengthen the leg: alike at the edge itself, and apart by about its square root, where the leg is
            # bent by 0.1 rad at most (value below 1e-2)
            assert last.value < 1e-2 and last.slope[0] == pytest.approx(last.slope[1], rel=0.1)
            assert last.joints == ("l1", "l2") and "the chain of 'l1' and 'l2'" in last.words


class Disc:
    """Designs that can be within a circle; near its edge values change as the root of the distance."""

    def __init__(self):
        self.known = False

    def inside(self, z):
        return 0.16 - (z[0] - 0.5) ** 2 - (z[1] - 0.5) ** 2

    def checked(self, z):
        if self.inside(z) < 0:
            raise InputError("cannot be", key="z")
        return self.inside(z)

    def watch(self, z):
        new, self.known = not self.known, True
        return new

    def at(self, z, slopes=True):
        if not self.known:
            return []
        return [AssemblyEdge(self.checked(z), -2 * (z - 0.5), None, np.ones(1), ("leg",))]

    def designs(self, edges):
        def value(z):
            return z[0] + 0.3 * z[1] - 0.5 * np.sqrt(self.checked(z))

        def pieces(z):
            slope = np.array([1.0, 0.3]) + 0.5 * (z - 0.5) / np.sqrt(self.checked(z))
            return [[ResponsePiece(value(z), slope.reshape(2, 1, 1))]]

        return Designs([Term("f", 1.0, None, 1.0)], lambda z: np.array([value(z)]), pieces, edges)


def test_steps_slide_along_the_edge_to_the_best_design():
    # on the circle of radius 0.4 the best of z0 + 0.3 z1 is along (1, 0.3)
    best = 0.65 + 0.4 * np.hypot(1, 0.3)
    free, disc = np.ones(2, dtype=bool), Disc()
    designs = disc.designs(disc)
    found = with_remaining_slope(designs, descend(designs, np.array([0.6, 0.8]), free, 200, 1e-8), free)
    assert found.values[0] == pytest.approx(best, abs=2 * np.sqrt(MARGIN))  # the margin costs half its root, and more
    assert found.slope < 1e-2 and found.held == ("at the pose (home) the chain of 'leg'",)
    # without the edge as a limit of its own, steps end where they first meet it, and the slope tells
    blind = disc.designs(None)
    short = with_remaining_slope(blind, descend(blind, np.array([0.6, 0.8]), free, 200, 1e-8), free)
    assert short.values[0] < best - 1e-3 and short.slope > 0.1


def test_ends_of_searches_are_told():
    problem = object.__new__(OptimisationProblem)
    problem.designs = Disc().designs(None)
    problem.problem = type("Problem", (), {"steps": 60})()
    z, none = np.zeros(2), np.zeros(1)

    def ended(value, **more):
        return Descent(z, np.array([value]), none, none, 1, 1, **more)

    tried = [ended(1.0), InputError("too short", key="z"), ended(1.00001), ended(0.7), ended(0.9, slope=0.5)]
    told, sentence = problem._searches(tried)
    assert [one["status"] for one in told] == ["optimal", "impossible", "optimal", "optimal", "stalled"]
    assert told[1] == {"status": "impossible", "objective": None, "reason": "too short"}
    assert sentence == (
        "of 5 starts 2 came to the best optimum, 1 to others, 1 ended before an optimum, 1 cannot be assembled"
    )
    stuck = ended(1.0, slope=0.5, stopped="B misses it by 2 mm")
    assert "may not be an optimum: B misses it by 2 mm" in problem._message(stuck, problem._status(stuck))


def test_legs_of_designs_stay_on_their_sides_and_their_file_says_so(tmp_path, five):
    (tmp_path / "problem.toml").write_text(
        f'robot = "{robot_file("five-bar-in-designs")}"\n[variables.constants.A]\nlower = 0.1\nupper = 0.4\n'
        '[responses.f]\nresponse = "frequency:1"\npose = { x = 0.05, y = 0.45 }\n[objective]\nmaximise = "f"\n'
    )
    knee = five.tree.links[five.tree.number("l2")].q.start
    robots = ProblemDesigns(read_problem(tmp_path / "problem.toml"), five)
    for length in np.linspace(0.2244, 0.4, 12):
        design = robots.design(np.array([(length - 0.1) / 0.3]))
        bend = np.sin(design.home[knee]) * np.sin(five.home[knee])
        assert bend > 0, length
    # a robot that its file would assemble on the other side
    other = five.home.copy()
    robots.design = lambda z: type("Design", (), {"home": other + 0.1})()
    made, more = robots.lasting(robots.start)
    assert more["working_modes"]["default"]["start"]["l2"] == pytest.approx(other[knee] + 0.1)
    assert made.home == pytest.approx(five.home, abs=1e-9)
