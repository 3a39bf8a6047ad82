"""The compiled problem of a run and its independent coordinates.

Of the scaled rows of the closures, s_1 is the largest singular value, s_r the last one that is not generically zero,
and s_f that of the columns of the dependent rates alone. `s_f / s_r`, at most 1, measures the choice of the independent
rates, which changes if it falls. `s_r / s_1` falls near a singular pose.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from parflex.closure import mobility
from parflex.closure.continuation import position_units
from parflex.closure.mobility import scaled_jacobian
from parflex.closure.partition import refuse_other_branch
from parflex.codegen.llvm_jit import compile_in_background
from parflex.codegen.model import Model, model_with
from parflex.codegen.options import Options
from parflex.codegen.outputs import closure_rows, contact_gaps, loses_power, open_tree, powers
from parflex.codegen.step_programs import SPARSE_FORM, StepPrograms, step_programs
from parflex.dynamics.contact_state import with_gates_for_run, with_stiction, with_stops
from parflex.errors import InputError, did_you_mean
from parflex.formulations.base import best_rows, cheapest_closures
from parflex.integrators.driver import Method, System, compile_loop
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.trajectories.trajectory import Trajectory
from parflex.tree.force_elements import GatedContact, gated_contacts, has_contacts
from parflex.tree.tree import Link, Tree

Array = np.ndarray
DENSE = 2.5  # instructions of a solving program that an entry of a whole complex inverse takes as long as
FAR = 3e-5  # typical lengths or rad: two steps of Newton leave at most the fourth power of it open
SLACK = 1e-13  # rad or typical lengths: depths of contacts that are rounding
SLACK_RATE = 1e-11  # of them in a second, or in a run that is shorter: rates of joints that are rounding
RUN_LIMIT = 2_000_000  # operators of a run's model: it is not read, and minutes are better than a refusal
MANY_ELEMENTS = 6  # of flexible links, from which shared functions run as fast as code written out, and are made faster
LONG = 40_000  # instructions of a model that take seconds to compile
PAIRED = 200_000  # instructions: between the calls of longer models a second lane takes seconds more to compile
PASSING_WIDTH = 1e-3  # rad/s or m/s over which friction changes its sign on the way through singular poses
MODEL_NAMES = {"motors": "state-rates-driven", "platform": "state-rates-following", "efforts": "state-rates"}
POOR = 0.4  # of s_f / s_r: the rates of the catalogue have 0.3 to 1 at home, those of a dead centre 0
BETTER = 2.0  # other rates must be better by so much, or two choices would take turns
NEAR = 0.05  # of s_r / s_1: a tenth of a radian or so before a singular pose,
NEAR_SHARE = 0.15  # and this of what it is at home
LOOK = 0.02  # rad of a typical length: rows that are nearer to each other are not checked one by one
AHEAD = 0.1  # likewise, between two checks of rows: from POOR on angles of a loop, which add some of its joints, go 0.4
MOST_AHEAD = 1e9  # rows: that of a robot at rest
JUMP = 0.5  # of the way between two rows that their rates do not explain: another assembly


@dataclass(frozen=True)
class Problem:
    """A model of a state under wrenches on frames.

    `prescribed` is "motors" if these follow a motion (`driven`), "platform" if it does by the efforts of the inverse
    model, else "efforts".
    """

    robot: Robot  # without what is left out
    model: Model
    prescribed: str
    wrenches: tuple[str, ...]
    width: float
    rows: tuple[int, ...] = ()  # of the robot's closures, that give dependent accelerations; none: chosen at home
    power: Model | None = None  # of inputs and losses, which the loop integrates where it is there
    gaps: Model | None = None  # what the gates of its contacts follow, where there are any
    names: tuple[str, ...] = ()  # of rates, where these are not those of the model: all free ones
    numbers: tuple[str, ...] = ()  # of which the coefficients of an implicit step are: "pairs", "real"
    time: float = 1.0  # s: a second, or that of a run that is shorter, in which robots do what others do in a second

    @cached_property
    def tree_model(self) -> Model:
        """Return forces, inertia and conditions of the open tree, with smooth friction."""
        return open_tree(self.robot, self.wrenches, self.width or (PASSING_WIDTH if self.sticking else 0.0))

    @cached_property
    def sticking(self) -> tuple[Link, ...]:
        """Return the joints that may stick."""
        return tuple(link for link in self.robot.tree.links if link.terms.rubbing is not None)

    @property
    def gate_inputs(self) -> int:
        """Return the number of model inputs for the states of contacts and friction."""
        return len(self.slack)

    @property
    def _is_sparse(self) -> bool:
        return self.model.about.get("form") == SPARSE_FORM and not self.names

    @cached_property
    def stepping(self) -> dict[str, StepPrograms]:
        """Return the programs of an implicit step, if the form of the model has some."""
        if not self._is_sparse:
            return {}
        name = self.model.about["model"]
        calls = calls_element_functions(self.robot)
        made = {word: step_programs(self.robot, name, self.width, word == "pairs", calls) for word in self.numbers}
        return {word: programs for word, programs in made.items() if programs is not None}

    @property
    def driven(self) -> bool:
        """Return whether the motors follow a motion."""
        return self.prescribed == "motors"

    @property
    def independent(self) -> list[str]:
        """Return the names of the independent rates."""
        return list(self.names) or self.model.labels["qd"]

    @property
    def places(self) -> list[int]:
        """Return the numbers of the independent rates among all rates."""
        number = {name: k for k, name in enumerate(self.robot.tree.rate_names)}
        return [number[name] for name in self.independent]

    @property
    def holding(self) -> list[int]:
        """Return the gate inputs that are inertias of held joints."""
        return [link.terms.rubbing.gate + 1 for link in self.sticking if link.terms.rubbing is not None]

    def system(self, inputs: Trajectory) -> System:
        """Return the model for the loop, with inputs."""
        kernel, paired = self.model.machine_code()[0], self._paired
        system = self._uncompiled(inputs)._replace(
            address=kernel.address("single" if paired else "one"), pair=kernel.address("pair") if paired else 0,
            power=_address(self.power), gaps=_address(self.gaps) or int(bool(self.sticking)),
        )  # fmt: skip
        return self._with_steps(system)

    def _uncompiled(self, inputs: Trajectory) -> System:
        """Return the same without addresses and programs of a step."""
        tree, robot, rates = self.robot.tree, self.robot, self.places
        motors = [rates.index(k) for k in robot.actuated] if self.driven else []
        led = set(motors)
        free = [i for i in range(len(rates)) if i not in led]
        place = {rates[i]: where for where, i in enumerate(free)}
        simple: list[tuple[int, int]] = []
        turning: list[int] = []
        closing: list[int] = []
        quaternions: list[int] = []
        driven = set(robot.actuated) if self.driven else set()
        for link in tree.links:
            pairs = list(zip(range(link.e.start, link.e.stop), range(link.e_v.start, link.e_v.stop), strict=True))
            if link.joint.one_axis:
                pairs.append((link.q.start, link.v.start))
            else:
                positions = list(range(link.q.start, link.q.stop))
                moves = any(k in place for k in range(link.v.start, link.v.stop))
                (turning if moves else closing).extend(positions)
                quaternions += [link.q_quaternion.start] if link.joint.quaternion else []
            simple += [(p, place[k]) for p, k in pairs if k in place]
            closing += [p for p, k in pairs if k not in place and k not in driven]
        motor_q = [tree.links[tree.link_of_rate[k]].q.start for k in robot.actuated] if self.driven else []
        return System(
            0, tree.nq, len(rates), _whole(free), _whole(simple).reshape(-1, 2), _whole(turning),
            _whole(closing), _whole([*turning, *closing]), _whole(motor_q), _whole(motors), _whole(quaternions),
            tree.rate_units[rates][free], self.model.machine_code()[1],
            sum(int(np.prod(s)) for s in self.model.outputs.values()), self.model.program.length,
            np.ascontiguousarray(inputs.breaks), np.ascontiguousarray(inputs.coefficients), len(robot.actuated),
            int(self.prescribed == "efforts"), 0, int(self.gaps is not None or bool(self.sticking)),
            tree.nq + len(rates) + inputs.coefficients.shape[2],
            2 * tree.nq + len(robot.actuated) + 6 * len(self.wrenches), self.slack,
            _whole([link.q.start for link in self.sticking]),
            np.array([[link.terms.coulomb, link.terms.bears] for link in self.sticking]).reshape(-1, 2),
            metres=metres_per_unit(tree)[rates][free], far=FAR * position_units(tree),
            extents=metres_per_position(tree),
        )  # fmt: skip

    @property
    def _paired(self) -> bool:
        """Return whether two stages are evaluated side by side."""
        program = self.model.machine_code()[0].program
        return "pairs" in self.numbers and program.length <= PAIRED

    @property
    def is_long(self) -> bool:
        """Return whether the model takes seconds to compile."""
        return self.model.program.length > LONG

    def begin_compilation(self, inputs: Trajectory, method: Method, judging: bool) -> None:
        """Compile long programs and the loop in the background."""
        if not self.is_long:
            return
        kernel, word = self.model.machine_code()[0], "single" if self._paired else "one"
        like = self._uncompiled(inputs)
        if self.numbers and self._is_sparse:  # a guess: what programs of a step take is known when they are traced
            like = like._replace(dense=_is_dense(like, self.model.program.length // 2), factors=1)
        compile_in_background(
            kernel.program.name, lambda: kernel.address(word), lambda: compile_loop(like, method, judging)
        )
        for programs in self.stepping.values():
            for step_kernel in reversed(programs.kernels):  # what is solved with takes longer
                compile_in_background(step_kernel.program.name, partial(step_kernel.address, "one"))

    def _with_steps(self, system: System) -> System:
        """Return the same with the programs of an implicit step."""
        if not self.stepping:
            return system
        pairs, real = self.stepping.get("pairs"), self.stepping.get("real")
        programs = [step_program for step_program in (pairs, real) if step_program is not None]
        solving = max(step_program.solve.program.length for step_program in programs)
        return system._replace(
            **_addresses(pairs, ("factor", "solve")), **_addresses(real, ("real_factor", "real_solve")),
            factors=max(step_program.factor.outputs["factors"][0] for step_program in programs),
            factoring=max(step_program.factor.program.length for step_program in programs), solving=solving,
            dense=_is_dense(system, solving),
        )  # fmt: skip

    @cached_property
    def slack(self) -> Array:
        """Return the rounding of the gap of each gate."""
        tree = self.robot.tree
        depths = [[SLACK * _unit_of(tree, on)] * on.contact.count for on in gated_contacts(tree)] if self.gaps else []
        rates = [
            [SLACK_RATE / self.time * tree.rate_units[link.v.start], np.inf] for link in self.sticking
        ]  # what holds follows none
        return np.array([value for part in [*depths, *rates] for value in part])


def characteristic_energy(tree: Tree, time: float) -> float:
    """Return the energy (J) of a robot that moves by its typical length in a time."""
    return sum(float(link.body.m) for link in tree.links) * (tree.length / time) ** 2


def metres_per_unit(tree: Tree) -> Array:
    """Return metres of motion per unit of each rate's position: typical lengths for rotations, shapes for modes."""
    metres = tree.length / tree.rate_units
    for link in tree.links:
        if "1" not in link.body.units:
            continue
        M = link.body.inertia_matrix(np.zeros(link.body.size))
        for k, unit in enumerate(link.body.units):
            if unit == "1":  # in the mean over its mass
                metres[link.e_v.start + k] = np.sqrt(M[6 + k, 6 + k] / link.body.m)
    return metres


def metres_per_position(tree: Tree) -> Array:
    """Return metres that one unit of each position moves the robot by."""
    metres, rates = tree.length / position_units(tree), metres_per_unit(tree)
    for link in tree.links:
        metres[link.e] = rates[link.e_v]
    return metres


def _is_dense(system: System, solving: int) -> int:
    """Return 1 if a product with a whole inverse takes less time than a number of instructions."""
    count = len(system.free)
    return int(DENSE * count * (count + len(system.turning)) < solving)


def _address(program: Model | None) -> int:
    return 0 if program is None else program.machine_code()[0].address("one")


def _addresses(programs: StepPrograms | None, names: tuple[str, str]) -> dict[str, int]:
    """Return fields of a system with the addresses of both programs."""
    kernels = () if programs is None else programs.kernels
    if kernels and kernels[0].program.length > LONG:
        compile_in_background(kernels[0].program.name, partial(kernels[0].address, "one"))
        kernels[1].address("one")
    return {name: kernel.address("one") for name, kernel in zip(names, kernels, strict=False)}


def _unit_of(tree: Tree, on: GatedContact) -> float:
    """Return a typical depth of a contact."""
    if on.kind == "flank":
        return float(tree.rate_units[next(spring.rates[0] for spring in tree.springs if spring.name == on.name)])
    return tree.length if on.kind == "cable" else float(tree.rate_units[tree.links[tree.number(on.name)].v.start])


def _whole(values: list) -> Array:
    return np.array(values, dtype=np.int64)


def prepare_problem(
    robot: Robot,
    prescribed: str,
    wrenches: Collection[str] = (),
    without: Collection[str] = (),
    width: float = 0.0,
    independent: Collection[str] = (),
    stops: bool = False,
    sticking: bool = False,
    numbers: tuple[str, ...] = (),
) -> Problem:
    """Return the model of a state; the robot file acts without the terms `without`, and limits if `stops` act.

    With stiction, only losses of couplings have a width, unless the platform is driven. `numbers` are the kinds of
    coefficients of an implicit method.
    """
    if prescribed == "motors" and not robot.actuated:
        raise InputError("the robot has no motors to drive", key="motion", hint="omit the motion")
    changed = acting_robot(robot, without)
    changed = with_stops(changed, "damping" not in without) if stops else changed
    sticking = sticking and prescribed != "platform"
    if sticking:
        changed = with_stiction(changed, prescribed == "motors")
    changed = with_gates_for_run(changed)
    used = width if has_losses(changed) or (has_coulomb(changed) and not sticking) else 0.0
    made = _run_model(changed, prescribed, wrenches, used, independent)
    power = powers(changed, tuple(wrenches), used, made.labels["qd"])
    gaps = contact_gaps(changed) if has_contacts(changed.tree) else None
    return Problem(changed, made, prescribed, tuple(wrenches), used, power=power, gaps=gaps, numbers=numbers)


def _run_model(
    robot: Robot, prescribed: str, wrenches: Collection[str], width: float, independent: Collection[str],
    rows: tuple[int, ...] = (),
) -> Model:  # fmt: skip
    calls = calls_element_functions(robot)
    options = Options(
        wrenches=tuple(wrenches), friction_width=width, independent=tuple(independent), rows=rows, calls=calls
    )
    return model_with(robot, MODEL_NAMES[prescribed], options, RUN_LIMIT)


def calls_element_functions(robot: Robot) -> bool:
    """Return whether a robot has so many elements that programs call one function for identical ones."""
    return sum(link.body.by_tip for link in robot.tree.links) >= MANY_ELEMENTS


def has_coulomb(robot: Robot) -> bool:
    """Return whether a joint has Coulomb friction, or a coupling loses power."""
    return has_losses(robot) or any(link.terms.coulomb for link in robot.tree.links)


def has_losses(robot: Robot) -> bool:
    """Return whether a coupling loses power."""
    return loses_power(robot) or any(spring.lossy for spring in robot.tree.springs)


def read_independent(robot: Robot, names: Sequence[str] | None, prescribed: str) -> tuple[str, ...]:
    """Return the names of requested independent rates, in the order of the tree; none if the model chooses."""
    if names is None:
        return ()
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InputError("the independent rates are not a list of names", key="independent", hint="give e.g. ['crank']")
    known = [robot.tree.rate_names[k] for k in robot.free]
    for name in names:
        if name not in known:
            raise InputError(
                f"there is no free rate '{name}'", key="independent", value=name, hint=did_you_mean(name, known)
            )
    required = robot.mobility.freedoms(len(robot.free))
    if len(set(names)) != required or len(names) != required:
        text = f"{len(set(names))} rates are named, but {required} are independent"
        hint = f"give {required} names of {', '.join(known[:12])}"
        raise InputError(text, key="independent", value=", ".join(names), hint=hint)
    if prescribed == "platform":
        text = "the rates of a driven platform are the independent ones"
        raise InputError(text, key="independent", hint="leave it out, or drive the motors")
    missing = [name for name in robot.actuated_names if name not in names] if prescribed == "motors" else []
    if missing:
        text = f"the motor '{missing[0]}' is driven, so its rate is independent"
        raise InputError(text, key="independent", value=missing[0], hint="list all driven motors")
    refuse_undetermined(robot, names, robot.reference_poses)
    return tuple(known[k] for k in range(len(known)) if known[k] in names)


def refuse_undetermined(robot: Robot, names: Sequence[str], poses: Sequence[Array], where: str = "") -> None:
    """Raise if rates determine the others at none of some poses: no model can be made with them."""
    dependent = dependent_rates(robot, names)
    blocks = [scaled_jacobian(robot.closures, q)[:, dependent] for q in poses]
    sizes = [mobility.condition(J, len(dependent), robot.regular_closure_norm) for J in blocks if len(dependent)]
    if min(sizes, default=0.0) > mobility.SINGULAR:
        text = f"the rates {', '.join(names)} do not determine the others{where} (condition number {min(sizes):.1e})"
        raise InputError(text, key="independent", value=", ".join(names), hint="choose others")


def dependent_rates(robot: Robot, independent: Sequence[str]) -> Array:
    """Return the numbers of the free rates that are not named."""
    names = robot.tree.rate_names
    return np.array([k for k in robot.free if names[k] not in set(independent)], dtype=int)


def with_independent_rates(problem: Problem, independent: Sequence[str], q: Array) -> Problem:
    """Return the same problem with other independent rates, and the rows of the closures for them at a pose."""
    robot = problem.robot
    dependent = dependent_rates(robot, independent)
    rows, robot_rows = (
        tuple(map(int, best_rows(of, q, dependent))) for of in (cheapest_closures(robot), robot.closures)
    )
    made, power = (
        _run_model(robot, problem.prescribed, problem.wrenches, problem.width, independent, rows),
        problem.power,
    )
    if power is not None and loses_power(robot):
        power = powers(robot, problem.wrenches, problem.width, independent, robot_rows)
    return replace(problem, model=made, rows=robot_rows, power=power)


class PartitionEvent(NamedTuple):
    """A row at which something must be done: "choose" other rates, or "cross" a singular pose."""

    row: int
    kind: str


@dataclass
class PartitionWatch:
    """Checks rows of a run of a robot with loops."""

    problem: Problem
    gone: float = 0.0  # since a row was checked, in radians of a typical length
    spread: float = 0.0  # s_r / s_1 at the last row that was checked
    closely: bool = False  # whether few rows are computed between two checks: a check costs as much as a hundred steps

    @cached_property
    def free(self) -> Array:
        """Return the rates that may depend on others: free ones without driven motors."""
        robot = self.problem.robot
        return np.array([k for k in robot.free if not (self.problem.driven and k in robot.actuated)], dtype=int)

    @cached_property
    def near(self) -> float:
        """Return s_r / s_1 below which a pose is nearly singular."""
        return min(NEAR, NEAR_SHARE * max(self.spread_at(self.at(q)) for q in self.problem.robot.reference_poses))

    @cached_property
    def rows(self) -> Callable[[Array], Array]:
        """Return a function for scaled rows of the closures over the rates that may depend, at many poses."""
        robot, rows_at = self.problem.robot, closure_rows(self.problem.robot)
        columns = [list(robot.free).index(k) for k in self.free]
        return lambda q: rows_at(q)[:, :, columns]

    @cached_property
    def position_units(self) -> Array:
        """Return the units of all positions."""
        return position_units(self.problem.robot.tree)

    def at(self, q: Array) -> Array:
        """Return the same rows at one pose."""
        return self.rows(q[None])[0]

    def spread_at(self, J: Array) -> float:
        """Return s_r / s_1; if all are small, s_1 is that of regular poses."""
        robot, values = self.problem.robot, np.linalg.svd(J, compute_uv=False)
        return float(values[robot.mobility.rank - 1] / mobility.largest(values, robot.regular_closure_norm))

    def dependent(self, independent: Sequence[str]) -> list[int]:
        """Return the columns of the rates that depend on the named ones."""
        names, independent_names = self.problem.robot.tree.rate_names, set(independent)
        return [i for i, k in enumerate(self.free) if names[k] not in independent_names]

    def quality(self, J: Array, independent: Sequence[str]) -> float:
        """Return s_f / s_r."""
        blocks, last = (J[:, self.dependent(independent)], J), self.problem.robot.mobility.rank - 1
        s_f, s_r = (np.linalg.svd(block, compute_uv=False)[last] for block in blocks)
        return float(s_f / max(s_r, 1e-300))

    def best(self, J: Array) -> tuple[tuple[str, ...], float]:
        """Return the best independent rates by rows of the closures, and their quality."""
        robot = self.problem.robot
        refuse_other_branch(J, robot.mobility.rank)
        candidates = []
        for weights in (np.ones(robot.tree.n), robot.preference):
            columns, _ = mobility.pivoted_columns(J * weights[self.free], robot.mobility.rank)
            dependent = set(self.free[columns])
            names = tuple(robot.tree.rate_names[k] for k in robot.free if k not in dependent)
            candidates.append((self.quality(J, names), names))
        quality, names = max(candidates)
        return names, quality

    def _is_poor(self, J: Array, quality: float) -> bool:
        """Return whether independent rates of a quality are poor, and others are better."""
        return quality < POOR and self.best(J)[1] > BETTER * quality

    def at_start(self, q: Array, independent: Sequence[str]) -> PartitionEvent | None:
        """Return the event before the first step, if any."""
        J = self.at(q)
        self.gone, self.spread = 0.0, self.spread_at(J)
        if self.spread < self.near:
            return PartitionEvent(0, "cross")
        return PartitionEvent(0, "choose") if self._is_poor(J, self.quality(J, independent)) else None

    def rows_ahead(self, q: Array) -> int:
        """Return how many rows may be computed until the next check."""
        fastest = float((np.abs(np.diff(q, axis=0)) / self.position_units).max(initial=0.0)) if self.closely else 0.0
        return max(1, int(min(AHEAD / max(fastest, 1e-300), MOST_AHEAD)))

    def first_event(
        self, q: Array, change: Array, out_step: float, independent: Sequence[str]
    ) -> PartitionEvent | None:
        """Return the first row, of closed positions and their rates of change, with an event.

        Row 0 was checked before. If s_r / s_1 falls by more than half between two rows, it may pass zero before the
        next.
        """
        units, moved = self.position_units, np.diff(q, axis=0)
        distances = (np.abs(moved) / units).max(axis=1, initial=0.0)
        explained = np.abs(moved - out_step / 2 * (change[1:] + change[:-1])) / units
        if self.problem.gaps is not None:  # a stop turns rates between two rows
            explained = explained - out_step / 2 * np.abs(np.diff(change, axis=0)) / units
        rigid = not self.problem.robot.tree.elastic  # deformations may oscillate between two rows
        lengths = [link.q.start for link in self.problem.robot.tree.links if link.strut]
        jumped = rigid & (explained.max(axis=1, initial=0.0) > JUMP * np.maximum(distances, LOOK))
        jumps = np.flatnonzero(jumped | (q[1:, lengths] <= 0).any(axis=1))  # a length has no other side
        until = int(jumps[0]) + 1 if len(jumps) else len(q)
        on = self.gone + np.concatenate([[0.0], np.cumsum(distances)])
        marks, self.gone = np.floor(on / LOOK), float(on[-1] % LOOK)
        looked = [k for k in range(1, until) if marks[k] > marks[k - 1] or (len(jumps) and k == until - 1)]
        if looked:
            J, robot = self.rows(q[looked]), self.problem.robot
            passed = not (self.problem.sticking or robot.tree.elastic or loses_power(robot))  # singular poses are
            whole = np.linalg.svd(J, compute_uv=False)
            block = np.linalg.svd(J[:, :, self.dependent(independent)], compute_uv=False)
            for k, held, values, block_values in zip(looked, J, whole, block, strict=True):
                before, s_r = self.spread, values[robot.mobility.rank - 1]
                self.spread = float(s_r / mobility.largest(values, robot.regular_closure_norm))
                if self.spread < max(self.near, before / 2 if passed else 0.0):
                    return PartitionEvent(k, "cross")
                if self._is_poor(held, block_values[robot.mobility.rank - 1] / s_r):
                    return PartitionEvent(k, "choose")
        return PartitionEvent(until - 1, "jump") if len(jumps) else None
