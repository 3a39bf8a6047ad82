"""Plants in a controlled run: friction, stops, reactions and stresses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.codegen.family import family_model, member_model
from parflex.codegen.model import Model
from parflex.errors import InputError
from parflex.forces.effort_allocation import driven_cables
from parflex.forces.section_forces import beam_chains
from parflex.integrators.common import evaluate
from parflex.integrators.driver import IntegratedRows, System, new_work
from parflex.integrators.stiction import settle_friction
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.simulation.contacts import contact_summary
from parflex.simulation.outputs import add_outputs, base_columns, load_summary, read_outputs, run_state
from parflex.simulation.problem import SLACK_RATE, Problem, has_coulomb, prepare_problem
from parflex.simulation.segments import Segment, Segments
from parflex.simulation.start import relaxed_bodies
from parflex.trajectories.follow import Track, as_words, pose_coordinates, twist_coordinates
from parflex.trajectories.trajectory import constant

Array = np.ndarray
FRICTION_WIDTH = 1e-3  # rad/s or m/s over which losses of couplings, and friction in studies, change their sign
STARTS = ("motors", "platform")


@dataclass(frozen=True, eq=False, repr=False)
class Plant(Record):
    """A robot with its program of motion; `watch` tells where it is and how near to a singularity (rigid ones)."""

    robot: Robot
    problem: Problem
    watch: Model
    reactions: bool = False  # whether those of all joints are asked for

    def system(self) -> System:
        """Return the model for the loop, with efforts that the loop writes."""
        return self.problem.system(constant(np.zeros(len(self.robot.actuated))))

    def places(self, names: Sequence[str]) -> Array:
        """Return the positions of named joints among all positions."""
        tree = self.robot.tree
        return np.array([tree.links[tree.number(name)].q.start for name in names], dtype=np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class PlantFamily(Record):
    """Compiled programs for rigid plants that differ in numbers alone."""

    rates: Model
    watch: Model
    width: float

    def plant(self, robot: Robot) -> Plant:
        """Return the plant with the numbers of this robot."""
        problem = Problem(robot, member_model(self.rates, robot), "efforts", (), self.width)
        return Plant(robot, problem, member_model(self.watch, robot))


def plant_family(robot: Robot, other: Robot) -> PlantFamily:
    """Return programs for all robots that differ from this one in the numbers in which the other one does."""
    width = FRICTION_WIDTH if has_coulomb(robot) else 0.0
    rates = family_model(robot, other, "state-rates", width)
    watch = family_model(robot, other, "watch")
    for made in (rates, watch):
        made.compiled()  # once: members take it over
    return PlantFamily(rates, watch, width)


def make_plant(robot: Robot, stops: bool = False, reactions: bool = False) -> Plant:
    """Return a single plant with its own programs, whose joints stick; limits act if it has stops."""
    problem = prepare_problem(robot, "efforts", (), (), FRICTION_WIDTH, stops=stops, sticking=True, numbers=("pairs",))
    plain = replace(problem, power=None)  # the work is not needed
    return Plant(robot, plain, family_model(robot, robot, "watch"), reactions)


def check_plant(nominal: Robot, plant: Robot, sensed: Sequence[str]) -> None:
    """Raise if the plant lacks motors or sensed joints of the nominal robot."""
    if plant.actuated_names != nominal.actuated_names:
        text, hint = "the plant and the robot of the law have different motors", ", ".join(nominal.actuated_names)
        raise InputError(text, key="plant", value=", ".join(plant.actuated_names), hint=f"the motors must be {hint}")
    known = {link.name for link in plant.tree.links if link.joint.one_axis}
    missing = [name for name in sensed if name not in known]
    if missing:
        hint = "give its sensed joints the names they have in the robot of the law"
        raise InputError(f"the plant has no joint '{missing[0]}' to measure", key="plant", value=plant.name, hint=hint)


def start_state(plant: Plant, nominal: Robot, track: Track, start: str) -> tuple[Array, Array]:
    """Return positions and rates of the plant with its motors, or its end effector, at the start of the reference.

    A flexible plant starts in equilibrium, with motors and unactuated joints locked, and with the rate of the
    reference.
    """
    robot = plant.robot
    rigid = robot.locking(robot.tree.elastic)
    known = dict(zip(nominal.tree.position_names, track.q[0], strict=True))  # by name, as a guess for the plant
    named_homes = zip(rigid.tree.position_names, rigid.home, strict=True)
    near = np.array([known.get(name, value) for name, value in named_homes])
    if start == "motors":
        coordinates = as_words(robot.actuated_names, near[plant.places(robot.actuated_names)])
        speeds = track.qd[0][[nominal.tree.rate_names.index(name) for name in robot.actuated_names]]
        velocity = as_words(robot.actuated_names, speeds)
    else:
        begin, frame, driven = track.reference.at(0.0), rigid.tree.end_effector, track.reference.driven
        coordinates = pose_coordinates(rigid, frame, begin, driven)
        velocity = twist_coordinates(rigid, frame, begin.twist, driven)
    q = rigid.assemble(coordinates, near)
    if robot.tree.elastic:
        q = relaxed_bodies(robot, Configuration(robot, q), {}, None).q
    qd = Configuration(robot, q).rates(velocity) if any(velocity.values()) else np.zeros(robot.tree.n)
    # a reference at rest has rates of rounding, at which joints with friction would slide
    still = np.abs(qd / robot.tree.rate_units).max(initial=0.0) <= SLACK_RATE
    return q, np.zeros(robot.tree.n) if still else qd


def end_effector_rows(plant: Plant, q: Array) -> tuple[Array, Array, tuple[int, str] | None]:
    """Return positions and rotations of the end effector in rows, and the first row behind a singularity and its kind.

    A singularity is crossed if a determinant changes its sign: of the motors' rates per independent rate (of the
    platform), or of the block of the dependent rates (of a leg). Flexible plants have neither.
    """
    outputs = plant.watch(q=q)
    firsts: list[tuple[int, str]] = []
    for kind, name in (("of the platform", "motors"), ("of a leg", "closing")):
        blocks = outputs.get(name, np.zeros((len(q), 0, 0)))
        if blocks.shape[1] and blocks.shape[1] == blocks.shape[2]:
            sign = np.sign(np.linalg.det(blocks))
            rows = np.flatnonzero(sign != sign[0])
            firsts += [(int(rows[0]), kind)] if len(rows) else []
    return outputs["position"], outputs["rotation"], min(firsts, default=None)


def loads_on_plant(
    plant: Plant, rows: IntegratedRows, first_effort: Array, out_step: float, columns: dict[str, Array]
) -> dict[str, Any]:
    """Add efforts of stops, friction, couplings and cables, and reactions, to the columns; return their summary.

    A row shows the state and the efforts just before its sample, the first row those behind it.
    """
    problem = plant.problem
    stopped = any(link.terms.stop is not None for link in problem.robot.tree.links)
    coupled = bool(problem.robot.description.coupling or driven_cables(problem.robot))
    if not (stopped or coupled or plant.reactions or problem.sticking or beam_chains(problem.robot)):
        return {}
    nq, n, motors = problem.robot.tree.nq, len(problem.independent), len(problem.robot.actuated)
    x, y = rows.x.copy(), rows.y.copy()
    x[0, nq + n : nq + n + motors] = first_effort
    if problem.sticking:  # found before the first sample, without the motors
        x[0] = _settled(problem, first_effort, x[0])
    y[0] = problem.model.call(x[:1])[0]
    run = Segments(1, out_step, [Segment(problem, replace(rows, x=x, y=y))])
    frames, outputs = [problem.robot.tree.end_effector], read_outputs(problem.robot, (), (), plant.reactions)
    state = run_state(problem, run, frames, outputs=outputs)
    run_columns = base_columns(state, frames)
    loads = re.compile(r"(stop|friction|coupling)\..*|element\..*\.force")
    columns |= {name: values for name, values in run_columns.items() if loads.fullmatch(name)}
    add_outputs(state, outputs, columns)
    return contact_summary(problem, rows.events, run_columns, stopped) | load_summary(state, outputs)


def _settled(problem: Problem, effort: Array, row: Array) -> Array:
    """Return inputs of the model with the friction in equilibrium with the efforts of the motors."""
    system = problem.system(constant(effort))
    work = new_work(system, 2, 1)
    work.x[0, : len(row)] = row
    evaluate(system, work, work.x[0], work.y[0])
    settle_friction(system, work, 0, False, 0.0)
    return np.array(work.x[0, : len(row)])
