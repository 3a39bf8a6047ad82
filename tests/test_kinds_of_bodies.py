"""A kind of body that nothing has heard of: what asks a body asks it by the answers of `Body`, not by its class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import parflex
from parflex.bodies import Body
from parflex.models.elastic.participation import energy_shares
from parflex.models.terms import TERMS
from parflex.recursion import pose
from parflex.recursion.energy import energies
from parflex.view.scene.skeleton import skeleton

QUESTIONS = {name for name in vars(Body) if not name.startswith("_")}


@dataclass(frozen=True)
class Stranger:
    """Answers what `Body` asks, and nothing else, as another body would; it is of no known class."""

    known: Any

    def __getattr__(self, name: str) -> Any:
        if name not in QUESTIONS:
            raise AttributeError(f"no body is asked for '{name}'")
        answer = getattr(self.known, name)
        return (lambda *given: Stranger(answer(*given))) if name.startswith("with") else answer


def estranged(robot: parflex.Robot) -> parflex.Robot:
    tree = replace(robot.tree, links=tuple(replace(link, body=Stranger(link.body)) for link in robot.tree.links))
    return replace(robot, tree=tree, closures=replace(robot.closures, tree=tree))


ROBOTS = ("5r", "puma560", "dualemps", "gough-stewart-elastic")


@pytest.mark.parametrize("name", ROBOTS)
def test_a_robot_of_unknown_kinds_of_bodies_moves_and_bends_alike(name):
    robot = parflex.load(name)
    other = estranged(robot)
    assert np.array_equal(other.home, robot.home) and np.array_equal(other.tree.rate_units, robot.tree.rate_units)
    qd = np.random.default_rng(3).standard_normal(robot.tree.n)
    assert energies(other.tree, pose(other.tree, robot.home), qd) == energies(
        robot.tree, pose(robot.tree, robot.home), qd
    )
    assert parflex.inverse_dynamics(other).efforts == parflex.inverse_dynamics(robot).efforts
    for without in ((), tuple(TERMS)) if robot.tree.elastic else ():
        one, two = (parflex.natural_frequencies(r, modes=4, without=without) for r in (robot, other))
        assert np.array_equal(one.frequencies, two.frequencies)
        assert energy_shares(one) == energy_shares(two)


@pytest.mark.parametrize("name", ROBOTS)
def test_unknown_kinds_of_bodies_are_drawn_and_described_alike(name):
    robot = parflex.load(name)
    other = estranged(robot)
    one, two = (skeleton(r) for r in (robot, other))
    assert [edge.kind for edge in one.edges] == [edge.kind for edge in two.edges]
    assert np.array_equal(one.points(robot.home), two.points(robot.home))
    assert parflex.explain(other).as_text() == parflex.explain(robot).as_text()


@pytest.mark.parametrize("name", ["5r", "dualemps"])
def test_unknown_kinds_of_bodies_make_the_same_programs(name):
    robot = parflex.load(name)
    for model in ("inverse", "energy"):
        one, two = (parflex.model(r, model) for r in (robot, estranged(robot)))
        assert one.program.instructions == two.program.instructions
        assert one.signals == two.signals
