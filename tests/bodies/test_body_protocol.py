"""A kind of body that nothing has heard of: what asks a body asks it by the answers of `Body`, not by its class."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import parflex
from parflex.bodies.elastic import Body

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


@pytest.mark.few("5r", "dualemps")
@pytest.mark.parametrize("name", ["5r", "puma560", "dualemps", "gough-stewart-elastic"])
def test_a_robot_of_unknown_kinds_of_bodies_moves_bends_and_is_described_alike(name):
    robot = parflex.load(name)
    other = estranged(robot)
    assert np.array_equal(other.home, robot.home) and np.array_equal(other.tree.rate_units, robot.tree.rate_units)
    qd = parflex.configure(robot).J[:, 0]
    assert parflex.energies(other, "home", qd) == parflex.energies(robot, "home", qd)
    assert parflex.inverse_dynamics(other).efforts == parflex.inverse_dynamics(robot).efforts
    assert parflex.explain(other).as_text() == parflex.explain(robot).as_text()
    if robot.tree.elastic:
        one, two = (parflex.natural_frequencies(r, modes=4) for r in (robot, other))
        assert np.array_equal(one.frequencies, two.frequencies)


def test_unknown_kinds_of_bodies_make_the_same_programs():
    robot = parflex.load("5r")
    for model in ("inverse", "energy"):
        one, two = (parflex.model(r, model) for r in (robot, estranged(robot)))
        assert one.program.instructions == two.program.instructions and one.signals == two.signals
