"""The options of a model and their effect on a robot: all that the key of a cached program needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from parflex.checks import require
from parflex.closure.constraints import Coupling
from parflex.errors import InputError, did_you_mean
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.tree.force_elements import with_gates

if TYPE_CHECKING:
    from parflex.formulations.base import ModelRequest
    from parflex.symbolic.expression import Graph

OPERATOR_LIMIT = 200_000  # nodes of a trace beyond which a program is refused


@dataclass(frozen=True)
class Options:
    """What a model keeps: symbolic parameters, what is left out, what acts, and which rates must be independent."""

    parameters: str | Sequence[str] = "numbers"
    without: tuple[str, ...] = ()  # what of the robot does not act, of models.terms
    wrenches: tuple[str, ...] = ()  # frames on which a wrench acts
    friction_width: float = 0.0  # rate over which Coulomb friction changes its sign
    independent: tuple[str, ...] = ()  # rates that must be so, of models of a state; none: the model chooses
    rows: tuple[int, ...] = ()  # of the closures, that give the others; none: chosen at home
    coordinates: str | None = None  # in which motions are given; None: in those of the form
    checks: bool = False  # whether outputs tell how well the inputs fit the loops
    weights: tuple[tuple[str, float], ...] = ()  # of spare motors: parameters of the program, with their values
    preload: tuple[tuple[str, float], ...] = ()
    limits: tuple[tuple[str, float, float], ...] = ()
    calls: bool = False  # whether functions of alike elements are called, and not written out for each

    def new_graph(self) -> Graph:
        """An empty graph for a trace."""
        from parflex.symbolic.expression import (
            Calls,  # programs that are kept need none
            Graph,
        )

        graph = Graph()
        graph.calls = Calls() if self.calls else None
        graph.inverses = {} if self.checks else None  # which the checks of condition need
        return graph

    def question(self, model: str, family: bool = False) -> ModelRequest:
        """What a model with these options asks of a form."""
        from parflex.formulations.base import ModelRequest
        from parflex.symbolic.expression import known_angle

        return ModelRequest(
            model, self.wrenches, self.independent, self.rows, self.parameters != "numbers", family, known_angle,
            coordinates=self.coordinates,
        )  # fmt: skip


def prepared_robot(robot: Robot, model: str, options: Options) -> Robot:
    """The robot with what the options change in it."""
    loaded = options.coordinates == "all" and model in ("inverse", "direct")
    takes = not options.wrenches or loaded or model in ("state-rates", "state-rates-driven")
    hint = "use 'state-rates', or 'inverse' or 'direct' with coordinates \"all\"; or leave them out"
    require(takes, f"'{model}' takes no wrenches", "wrench_frames", hint, model)
    for frame in options.wrenches:
        if not robot.tree.has(frame, "wrench_frames"):
            hint = did_you_mean(frame, robot.tree.places)
            raise InputError(f"there is no frame '{frame}'", key="wrench_frames", value=frame, hint=hint)
    robot = acting_robot(robot, options.without)
    if robot.tree.gates is not None:  # each trace puts its symbols into gates of its own
        robot = robot.on_tree(with_gates(robot.tree))
    if not options.friction_width:
        return robot
    width = options.friction_width
    links = [replace(link, terms=replace(link.terms, width=link.terms.width or width)) for link in robot.tree.links]
    constraints = robot.closures.constraints
    springs = [replace(spring, width=options.friction_width) for spring in robot.tree.springs]
    tree = replace(robot.tree, links=tuple(links), springs=tuple(springs))
    rows = (replace(row, width=options.friction_width) if isinstance(row, Coupling) else row for row in constraints)
    return replace(robot, tree=tree, closures=replace(robot.closures, tree=tree, constraints=tuple(rows)))
