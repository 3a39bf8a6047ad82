"""Simulation of a recording under its controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.codegen.family import family_model, member_model
from parflex.codegen.model import Model, cached_program
from parflex.codegen.options import Options
from parflex.codegen.outputs import contact_gaps
from parflex.codegen.tracer import Tracer
from parflex.control.control import LoopSettings, SampledRun
from parflex.control.laws import Gains, make_law
from parflex.control.plant import Plant
from parflex.dynamics.contact_state import with_gates_for_run, with_stiction
from parflex.errors import InputError
from parflex.forces.base_parameters import PARAMETERS, body_from_parameters, body_parameters
from parflex.identification.recordings import ColumnMap, FeedbackLaw, Recording
from parflex.identification.regressor import Regressor
from parflex.identification.regressor_columns import BaseColumns
from parflex.identification.unknowns import SPRINGS, by_direction, fields_of, with_element_numbers
from parflex.integrators.driver import grid_of
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.simulation.problem import Problem
from parflex.tree.force_elements import JointTerms, has_contacts
from parflex.tree.tree import Link

Array = np.ndarray

START = 20  # samples from which the state at the start follows

MOST_POWERS = 5  # of time, by which they are described; higher ones are taken in while they stand out of noise

SURE = 4.0  # standard deviations: a slower start is at rest

UNEVEN = 1e-3  # of a sample time: what it may miss a whole number of them in a step of the record by

NEAR = 0.5  # of the longest way of a motor: by so much positions may differ from those measured

LONGEST = 1e-3  # s, of an integration step

OFF = 0.37  # kg, N m, ...: by so much numbers of another member differ, so that all of them are inputs

TINY = 1e-12  # N, N s/m: of an element in place of zero, which would leave it out of the program

LEAST = 1e-9  # of the Coulomb friction of the file: less would let the joint slide in another program


@dataclass(frozen=True, eq=False, repr=False)
class RecordedLaw(Record):
    """The controller of a measured robot for the loop: two programs, and rows of its reference."""

    robot: Robot
    sensed: list[str]
    geometry: Model
    program: Model
    rows: Array

    def reference_rows(self, track: Any, t: Array) -> Array:
        """What the controller is given of the reference."""
        return self.rows


@dataclass(frozen=True, eq=False, repr=False)
class RecordedStart(Record):
    """All positions and rates where a record begins, as the first rows of a track."""

    q: Array
    qd: Array


@dataclass(frozen=True, eq=False, repr=False)
class Replayed(Record):
    """What a simulated record has at the instants of the measured one: positions, rates of the motors and efforts."""

    q: Array
    rate: Array
    effort: Array


class Replay:
    """A record and its controller, ready to be simulated with any plant."""

    def __init__(self, regressor: Regressor, mapped: ColumnMap, record: Recording) -> None:
        self.regressor, self.record = regressor, record
        robot, law = regressor.robot, mapped.controller
        if law is None:
            raise InputError("simulation needs the controller of the robot", key="controller",
                             hint="describe it in [controller] of the map, or use iv")  # fmt: skip
        if record.reference is None:
            raise InputError("simulation needs the reference of the motors", file=record.name, key="reference",
                             hint="name its columns in [reference] of the map")  # fmt: skip
        sample = law.sample_time or record.step
        self.every = round(record.step / sample)
        if self.every < 1 or abs(self.every * sample / record.step - 1) > UNEVEN:
            raise InputError(
                f"a step of the record ({record.step:.4g} s) is not a whole number of sample times ({sample:.4g} s)",
                key="controller.sample_time", value=sample, hint="record at multiples of the sample time",
            )  # fmt: skip
        self.sample = record.step / self.every
        motors = list(robot.actuated_names)
        gains = np.array([mapped.effort[motor].gain for motor in motors])
        offset = np.array([mapped.effort[motor].offset for motor in motors])
        self.law = _law(robot, law, gains, offset, self._reference(law))
        limits = None
        if law.limit < np.inf:
            bound = np.abs(gains) * law.limit
            limits = {m: (o - b, o + b) for m, o, b in zip(motors, offset, bound, strict=True)}
        self.settings = LoopSettings(
            sample_time=self.sample, effort_limit=limits, step=min(LONGEST, self.sample), rates=law.rates,
            delay=law.delay,
        )  # fmt: skip
        self.first, self.unsure = self._start()
        self.posed = self.regressor.first(self.first[: len(motors)])

    def _reference(self, law: FeedbackLaw) -> Array:
        """Rows of the reference at the samples of the controller: positions, and rates and accelerations if it asks."""
        assert self.record.reference is not None
        t = np.arange((len(self.record.t) - 1) * self.every + 1) * self.sample
        known = self.record.t - self.record.t[0]
        rows = np.stack([np.interp(t, known, column) for column in self.record.reference.T], axis=1)
        if law.law == "cascade":
            return rows
        rate = np.gradient(rows, self.sample, axis=0)
        parts = [rows, rate] if law.law == "pd" else [rows, rate, np.gradient(rate, self.sample, axis=0)]
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def _start(self) -> tuple[Array, Array]:
        """Where the motors stand at first, and how fast they are unless that is noise; and deviations of both."""
        count = min(START, len(self.record.t))
        u = np.arange(count) / count
        for degree in range(2, MOST_POWERS + 1):
            powers = u[:, None] ** np.arange(degree + 1)
            coefficients = np.linalg.lstsq(powers, self.record.position[:count], rcond=None)[0]
            left = ((self.record.position[:count] - powers @ coefficients) ** 2).sum(axis=0)
            noise = np.sqrt(left / max(count - degree - 1, 1))
            spread = noise * np.sqrt(np.diag(np.linalg.pinv(powers.T @ powers)))[:, None]
            if degree > 2 and not (np.abs(coefficients[-1]) > SURE * spread[-1]).any():
                break
            accepted = coefficients[:2], spread[:2]
        time = np.array([[1.0], [count * self.record.step]])
        first, spread = (part / time for part in accepted)
        first[1] = np.where(np.abs(first[1]) > SURE * spread[1], first[1], 0.0)
        return first.ravel(), spread.ravel()

    def begun(self, off: Array) -> RecordedStart:
        """The start, or another one that is so far off: in positions of the motors, then in their rates."""
        position, rate = np.split(self.first + off, 2)
        q = self.regressor.closed(position[None], self.posed)
        return RecordedStart(q, self.regressor.moved(q, rate[None], np.zeros((1, len(rate)))).qd)

    def run(self, plant: Plant, off: Array) -> Replayed | None:
        """The record moved by this plant, from a start that is so far off; None where it cannot be."""
        count = len(self.record.t)
        grid = grid_of((count - 1) * self.record.step, self.settings.step or LONGEST, self.sample)
        t = np.arange(grid.rows + 1) * self.sample
        law: Any = self.law
        begin: Any = self.begun(off)
        run = SampledRun(law, plant, begin, self.settings, grid, t)
        solution = run.go(begin.q[0], begin.qd[0, plant.problem.places], None)
        if solution.status != "ok" or not np.isfinite(solution.y).all():
            return None
        tree = plant.robot.tree
        q = solution.y[:: self.every, : tree.nq]
        if not self._follows(q[:, self.regressor.motor_q]):
            return None
        rates = solution.y[:: self.every, tree.nq : 2 * tree.nq][:, self.regressor.motor_q]
        return Replayed(q, rates, run.efforts[:: self.every][:count])

    def _follows(self, position: Array) -> bool:
        """Whether the motors stay near to where they were measured."""
        robot, off = self.regressor.robot, position - self.record.position
        links = [robot.tree.links[robot.tree.link_of_rate[k]] for k in robot.actuated]
        turning = np.array([link.periodic for link in links])
        off = np.where(turning, off - 2 * np.pi * np.round(off / (2 * np.pi)), off)
        travel = np.ptp(self.record.position, axis=0)
        return bool((np.abs(off) <= NEAR * travel.max(initial=0.0, where=travel > 0)).all())


def _law(robot: Robot, law: FeedbackLaw, gains: Array, offset: Array, rows: Array) -> RecordedLaw:
    motors = list(robot.actuated_names)
    tree = robot.tree
    places = [tree.links[tree.link_of_rate[k]].q.start for k in robot.actuated]
    first, second = (np.broadcast_to(np.asarray(gain, dtype=float), len(motors)) for gain in law.gains)
    if law.law == "ctc":
        made = make_law(robot, "ctc", Gains(float(first[0]), float(second[0])))
        return RecordedLaw(robot, motors, made.geometry, made.program, rows)

    def found(tracer: Tracer) -> dict[str, Array]:
        guess, measured = tracer.group("guess", tree.nq), tracer.group("measured", len(motors))
        q = guess.copy()
        q[places] = measured
        return {"q": q, "status": np.zeros(1)}

    def efforts(tracer: Tracer) -> dict[str, Array]:
        q, qd = tracer.group("q", tree.nq)[places], tracer.group("qd", len(motors))
        reference = tracer.group("reference", rows.shape[1])
        if law.law == "cascade":
            signal = second * (first * (reference - q) - qd)
        else:
            signal = first * (reference[: len(motors)] - q) + second * (reference[len(motors) :] - qd)
        return {"effort": gains * signal + offset}

    numbers = (law.law, *(tuple(map(float, row)) for row in (first, second, gains, offset)))
    geometry = cached_program(robot, "measured-motors", Options(), found)
    return RecordedLaw(
        robot, motors, geometry, cached_program(robot, "recorded-law", Options(), efforts, numbers), rows
    )


class PlantMembers:
    """Plants of one program, by values of the base parameters."""

    def __init__(self, regressor: Regressor, base: BaseColumns) -> None:
        self.regressor, self.base = regressor, base
        self.by_file = np.array([unknown.value for unknown in regressor.unknowns])
        if not base.kept:
            raise InputError("no motion of the motors tells a parameter", key="robot", value=regressor.robot.name,
                             hint="give a robot with bodies that move")  # fmt: skip
        first, other = self._robot(self.by_file), self._robot(self.by_file + self._off())
        self.rates = family_model(first, other, "state-rates")
        self.watch: Model = family_model(first, first, "watch")
        # cables and play, whose numbers stay those of the file: when they pull, and when they are slack
        self.gaps = contact_gaps(first) if has_contacts(first.tree) else None

    def _off(self) -> Array:
        """Changes of all numbers that base columns and payloads change, in no simple ratio: these are inputs."""
        regressor = self.regressor
        tree, every = regressor.robot.tree, regressor.unknowns
        links = {every[k].link for k in self.base.kept} | {tree.places[tree.end_effector].link}
        changes = np.array([not unknown.of_body or unknown.link in links for unknown in every])
        return np.where(changes, OFF * np.sqrt(1 + np.arange(len(every))), 0.0)

    def plant(self, values: Array, carried: Mapping[int, float] = {}) -> Plant:
        """The plant with these base parameters: all are those of the file, but for base columns; and a payload."""
        theta = self.by_file.copy()
        theta[self.base.kept] += values - self.base.groups @ self.by_file
        for column, more in carried.items():
            theta[column] += more
        robot = self._robot(theta)
        problem = Problem(robot, member_model(self.rates, robot), "efforts", (), 0.0, gaps=self.gaps)
        return Plant(robot, problem, self.watch)

    def _robot(self, theta: Array) -> Robot:
        """The robot with these parameters, whose joints stick."""
        tree, every = self.regressor.robot.tree, self.regressor.unknowns
        by_link: dict[int, dict[str, float]] = {}
        elements: dict[str, dict[str, float]] = {}
        for unknown, value in zip(every, theta, strict=True):
            if unknown.element:
                elements.setdefault(unknown.element, {})[unknown.symbol] = float(value) or TINY
            else:
                by_link.setdefault(unknown.link, {})[unknown.symbol] = float(value)
        smooth = self.regressor.friction != "file"
        motors = {tree.link_of_rate[k] for k in self.regressor.robot.actuated} if smooth else set()
        links = []
        for j, link in enumerate(tree.links):
            numbers = by_link.get(j, {})
            terms = _terms(link, numbers, by_direction(every, j), j in motors)
            links.append(replace(link, body=_body(link, numbers), terms=terms))
        changed = replace(with_element_numbers(tree, elements), links=tuple(links))
        return with_gates_for_run(with_stiction(self.regressor.robot.on_tree(changed), False))


def _body(link: Link, numbers: Mapping[str, float]) -> Any:
    if not any(symbol in numbers for symbol in PARAMETERS):
        return link.body
    before = body_parameters(link.body.as_rigid())
    values: Sequence[float] = [numbers.get(symbol, value) for symbol, value in zip(PARAMETERS, before, strict=True)]
    return body_from_parameters(np.array(values))


def _terms(link: Link, numbers: Mapping[str, float], both: bool, smooth: bool) -> JointTerms:
    """Terms of a joint with these numbers; a joint that rubs in the file, or among the unknowns, still rubs."""
    terms = link.terms
    words: dict[str, Any] = {}
    if smooth:
        words |= dict.fromkeys(("viscous", "coulomb", "static", "more_viscous", "more_coulomb", "offset"), 0.0)
    if "IA" in numbers:
        words["motor_inertia"] = numbers["IA"]
    words |= fields_of({symbol: numbers[symbol] for symbol in SPRINGS if symbol in numbers}, damping="damper")
    if "offset" in numbers:
        words["offset"] = numbers["offset"]
    for forth, back, plain, more in (
        ("FV", "FV_back", "viscous", "more_viscous"), ("FS", "FS_back", "coulomb", "more_coulomb"),
    ):  # fmt: skip
        if forth not in numbers:
            continue
        forward, backward = numbers[forth], numbers.get(back, numbers[forth]) if both else numbers[forth]
        if plain == "coulomb":
            least = LEAST * max(abs(terms.coulomb), 1e-3)
            forward, backward = max(forward, least), max(backward, least)
        words |= {plain: (forward + backward) / 2, more: (forward - backward) / 2}
    return replace(terms, **words)
