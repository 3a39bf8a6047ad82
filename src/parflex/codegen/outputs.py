"""Traces of the outputs of a run: frames, energies, powers, reactions, elements and couplings.

Reactions over time need the forces of the closures along the rates and the wrenches in all joints. The system for the
multipliers between the two, theory (18), is solved in floats for all rows at once. Both are the physics over batched
numbers: nothing is traced, so robots of many elements need no preparation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.closure.constraints import Coupling, Distance
from parflex.closure.mobility import pivoted_columns, rank, scale, scaled_jacobian
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.model import Model, cached_program
from parflex.codegen.options import OPERATOR_LIMIT, Options, prepared_robot
from parflex.codegen.tracer import Tracer, add_gates
from parflex.forces.forces import forces_along_rates, on_links
from parflex.forces.reactions import closure_loads, has_reaction
from parflex.forces.section_forces import BeamChain, element_signals_of
from parflex.formulations.base import best_rows
from parflex.recursion.dynamics import (
    joint_forces,
    link_wrenches,
    mass_matrix,
    newton_euler,
    propagate_inwards,
    subtract_external,
)
from parflex.recursion.energy import elements_damping_power, energies, gate_values, line_between
from parflex.recursion.kinematics import jacobians, motion, pose
from parflex.robot.robot import Robot
from parflex.spatial.batched import apply_rowwise, evaluate_rows
from parflex.spatial.linear import scalar_type, solve, solve_positive
from parflex.tree.tree import Tree

Array = np.ndarray
NUMBERS = 300  # about how many a pass over the tree keeps of each link
OPEN_SHARE = 1e-9  # of a row in a combination of multipliers that acts on nothing, above rounding
Inputs = dict[str, Any]
MANY = 100  # free rates from which some of them are taken where these determine what is asked
INSIDE = "@element "  # before the number of a link: no joint or closure has such a name
PUSHED = "wrench_"  # before the name of a frame: what acts on it
MANY_RATES = 100  # free ones: numbers take milliseconds a pose, a program seconds to make and to compile


def signals(
    robot: Robot,
    frames: Sequence[str],
    independent: Sequence[str],
    friction_width: float = 0.0,
    rows: Sequence[int] = (),
    limit: int = OPERATOR_LIMIT,
    quick: bool = False,
    wrenches: Sequence[str] = (),
) -> Model:
    """Outputs of a run: closed positions, their rates of change and independent accelerations in.

    Out come of each frame pose, twist and acceleration in world axes, energies, the power lost, how far the loops are
    open, of elements length and force, and of couplings the effort; these need efforts and wrenches too. `rows` of the
    closures give the dependent accelerations (none: those that do it best at home). Programs are kept on disk;
    `quick` makes it without passes, to be run a few times.
    """
    options = Options(friction_width=friction_width, rows=tuple(int(row) for row in rows))

    def outputs(tracer: Tracer) -> Any:
        return signal_outputs(tracer, prepared_robot(robot, "signals", options), frames, independent, options, wrenches)

    more = (tuple(frames), tuple(independent), tuple(wrenches))
    return cached_program(robot, "signals", options, outputs, *more, limit=limit, quick=quick)


class _ExistingGroups:
    """Groups of inputs that are there already, where a tracer would make symbols."""

    def __init__(self, groups: Mapping[str, Array]) -> None:
        self.given = groups

    def group(self, name: str, *shape: int) -> Array:
        """The group of this name."""
        return self.given[name]


def batched_signals(
    robot: Robot,
    frames: Sequence[str],
    independent: Sequence[str],
    friction_width: float,
    rows: Sequence[int],
    wrenches: Sequence[str],
    states: Mapping[str, Array],
) -> dict[str, Array]:
    """The same signals in all rows of states at once, without a program: for robots whose program would be long."""
    rows = rows or _closing_rows(robot, independent)
    options = Options(friction_width=friction_width, rows=tuple(int(row) for row in rows))
    changed = prepared_robot(robot, "signals", options)

    def outputs(inputs: dict[str, Array]) -> Mapping[str, Any]:
        return signal_outputs(_ExistingGroups(inputs), changed, frames, independent, options, wrenches)

    return evaluate_rows(outputs, states, NUMBERS * len(robot.tree.links))


def _closing_rows(robot: Robot, independent: Sequence[str]) -> list[int]:
    """Rows of the closures that determine the other rates at home."""
    independent_rates = {robot.tree.rate_names.index(name) for name in independent}
    dependent = [k for k in robot.free if k not in independent_rates]
    if not dependent:
        return []
    J = scaled_jacobian(robot.closures, robot.home)[:, dependent]
    return sorted(pivoted_columns(J.T, len(dependent))[0].tolist())


def signal_outputs(
    tracer: Any,
    robot: Robot,
    frames: Sequence[str],
    independent: Sequence[str],
    options: Options,
    wrenches: Sequence[str] = (),
) -> Any:
    """The signals of a run over symbols, which are groups of inputs of the tracer."""
    tree = robot.tree
    q, position_rates = tracer.group("q", tree.nq), tracer.group("position_rates", tree.nq)
    independent_accelerations = tracer.group("acceleration", len(independent))
    add_gates(tracer, tree)
    qd, at = tree.rates(q, position_rates), pose(tree, q)
    number = {name: k for k, name in enumerate(tree.rate_names)}
    rate_indices = [number[name] for name in independent]
    qdd = _all_accelerations(robot, at, qd, independent_accelerations, rate_indices, options.rows)
    moving = motion(tree, at, qd, qdd)
    outputs: dict[str, Array] = {"accelerations": qdd}
    for name in frames:
        place = tree.places[name]
        R, p = at.of(place)
        v, w, a, al = moving.of(place)
        twist = np.concatenate([R @ v, R @ w, R @ a, R @ al])
        outputs |= {f"{name}.position": p, f"{name}.rotation": R, f"{name}.motion": twist}
    energy = energies(tree, at, qd, moving)
    outputs["energy"] = np.array([energy.kinetic, energy.elastic, energy.gravity], dtype=object)
    wrench_values: dict[str, Array] = {}
    effort: Array = np.zeros(0)
    if robot.description.element or robot.description.coupling:
        wrench_values = {name: tracer.group(f"wrench_{name}", 6) for name in wrenches}
        effort = tracer.group("effort", len(robot.actuated))
    losses = loss_forces(robot, rate_indices, options.rows, q, qd, effort, wrench_values)
    outputs["loss"] = _entry(dissipated_power(tree, q, qd) - (losses @ qd if loses_power(robot) else 0.0))
    for link in tree.links:
        if link.terms.stop is not None:
            outputs[f"stop.{link.name}.effort"] = _entry(link.terms.stop.effort(q[link.q.start], qd[link.v.start]))
        if link.terms.rubbing is not None:
            outputs[f"friction.{link.name}.effort"] = _entry(-link.terms.friction(qd[link.v.start]))
    if robot.closures.size:
        outputs["opening"] = robot.closures.linear_residual(at)
    independent_set = set(rate_indices)
    dependent = [k for k in robot.free if k not in independent_set]
    if robot.description.element:
        outputs |= element_signals(robot, at, qd, qdd, dependent, options.rows, wrench_values, effort, losses)
    if robot.description.coupling:
        outputs |= coupling_signals(robot, at, qd, qdd, (dependent, options.rows), effort, wrench_values, losses)
    return outputs


def _all_accelerations(
    robot: Robot,
    at: Any,
    qd: Array,
    independent_accelerations: Array,
    independent: list[int],
    rows: tuple[int, ...] = (),
) -> Array:
    """The dependent accelerations close the loops."""
    tree = robot.tree
    # rows of plain numbers stay so: LAPACK solves
    qdd: Array = np.zeros(tree.n, dtype=scalar_type(at.q, qd, independent_accelerations))
    qdd[independent] = independent_accelerations
    independent_set = set(independent)
    dependent = [k for k in robot.free if k not in independent_set]
    if dependent:
        chosen = list(rows) or best_rows(robot.closures, robot.home, np.array(dependent, dtype=int))
        block = robot.closures.jacobian(at, jacobians(tree, at, dependent))[np.ix_(chosen, dependent)]
        opening = robot.closures.bias(at, motion(tree, at, qd, qdd))
        qdd[dependent] = solve(block, -opening[chosen])
    return qdd


def powers(
    robot: Robot,
    wrenches: Sequence[str] = (),
    friction_width: float = 0.0,
    independent: Sequence[str] = (),
    rows: Sequence[int] = (),
) -> Model:
    """Closed positions, their rates of change, efforts and wrenches on frames (world axes) in; the two powers out.

    The time loop integrates them along with the motion. Losses of rigid couplings follow from accelerations, by
    `independent` rates and `rows` of the closures as in the motion. Programs are kept on disk.
    """
    options = Options(friction_width=friction_width)
    if loses_power(robot):
        options = replace(options, independent=tuple(independent), rows=tuple(int(row) for row in rows))

    def outputs(tracer: Tracer) -> dict[str, Array]:
        return _outputs(tracer, prepared_robot(robot, "powers", options), wrenches, options)

    return cached_program(robot, "powers", options, outputs, tuple(wrenches))


def _outputs(tracer: Any, robot: Robot, wrenches: Sequence[str], options: Options) -> dict[str, Array]:
    tree = robot.tree
    q, position_rates = tracer.group("q", tree.nq), tracer.group("position_rates", tree.nq)
    effort = tracer.group("effort", len(robot.actuated))
    qd = tree.rates(q, position_rates)
    wrench_values = {name: tracer.group(f"wrench_{name}", 6) for name in wrenches}
    add_gates(tracer, tree)
    input_power: Any = effort @ qd[list(robot.actuated)] if robot.actuated else 0.0
    if wrenches:
        at = pose(tree, q)
        moving = motion(tree, at, qd, np.zeros(tree.n))
        for name in wrenches:
            R, _ = at.of(tree.places[name])
            v, w, _, _ = moving.of(tree.places[name])
            input_power = input_power + wrench_values[name] @ np.concatenate([R @ v, R @ w])
    lost_power = dissipated_power(tree, q, qd)
    if loses_power(robot):
        places = [tree.rate_names.index(name) for name in options.independent]
        lost_power = lost_power - loss_forces(robot, places, options.rows, q, qd, effort, wrench_values) @ qd
    return {"power": np.array([input_power, lost_power], dtype=object)}


def dissipated_power(tree: Tree, q: Array, qd: Array) -> Any:
    """Power that friction, dampers and the damping of bodies take."""
    lost = {"stiffness": 0.0, "motor_inertia": 0.0, "stop": None}
    links = tuple(replace(link, terms=replace(link.terms, **lost)) for link in tree.links)  # type: ignore[arg-type]
    total = joint_forces(replace(tree, links=links, springs=(), elements=()), q, qd, np.zeros(tree.n)) @ qd
    for spring in tree.springs:
        total = total + spring.lost_power(q, qd)
    for link in tree.links:
        if link.terms.stop is not None:
            total = total + link.terms.stop.lost_power(q[link.q.start], qd[link.v.start])
    if tree.elements:
        at = pose(tree, q)
        total = total + elements_damping_power(tree, at, motion(tree, at, qd, np.zeros(tree.n)))
    for link in tree.links:
        total = total + link.body.damping_power(q[link.e], qd[link.e_v])
    return total


def element_signals(
    robot: Robot,
    at: Any,
    qd: Array,
    qdd: Array,
    dependent: Sequence[int],
    rows: Sequence[int],
    wrenches: Mapping[str, Array],
    effort: Array,
    losses: Any = 0.0,
) -> dict[str, Array]:
    """Length and tension of each element; of rods and struts the tension where no row repeats others."""
    tree = robot.tree
    moving = motion(tree, at, qd, np.zeros(tree.n))
    outputs: dict[str, Array] = {}
    for element in tree.elements:
        _, length, rate = line_between(at, (element.first, element.second), element.name, moving)
        outputs[f"element.{element.name}.length"] = _entry(length)
        outputs[f"element.{element.name}.force"] = _entry(element.tension(length, rate))
    rods = [row for row in robot.closures.constraints if isinstance(row, Distance)]
    for row in rods:
        outputs[f"element.{row.name}.length"] = _entry(line_between(at, row.places, row.name).length)
    if rods and not robot.mobility.redundant:
        lam = row_multipliers(robot, at, qd, qdd, (dependent, rows), effort, wrenches, losses)
        for part, constraint in zip(robot.closures.slices(), robot.closures.rows, strict=True):
            if isinstance(constraint, Distance):
                outputs[f"element.{constraint.name}.force"] = _entry(-lam[part.start])
    return outputs


def _entry(value: Any) -> Array:
    return np.array([value], dtype=object)


def row_multipliers(
    robot: Robot, at: Any, qd: Array, qdd: Array, chosen: tuple[Sequence[int], Sequence[int]], effort: Array,
    wrenches: Mapping[str, Array], losses: Any,
) -> dict[int, Any]:  # fmt: skip
    """Multipliers, by row of the closures, that give the dependent coordinates what they lack, theory (18).

    `chosen` are dependent rates and the rows that give them (none: those that do it best at home), `losses` the forces
    of losses. On the way through a singular pose no coordinate depends on others: there all of them together say it.
    """
    tree, (dependent, rows) = robot.tree, (list(chosen[0]), [int(k) for k in chosen[1]])
    missing = forces_along_rates(tree, at, qd, qdd, on_links(tree, at, wrenches)) - losses
    for k, motor in enumerate(robot.actuated):
        missing[motor] = missing[motor] - effort[k]
    J = robot.closures.jacobian(at, jacobians(tree, at))
    if dependent:
        rows = rows or [int(k) for k in best_rows(robot.closures, robot.home, np.array(dependent, dtype=int))]
        return dict(zip(rows, solve(J[np.ix_(rows, dependent)].T, missing[dependent]), strict=True))
    rows = [k for k in range(robot.closures.size) if k not in robot.mobility.redundant]
    units = tree.rate_units[robot.free]
    scaled = J[rows][:, robot.free] * units
    return dict(zip(rows, solve_positive(scaled @ scaled.T, scaled @ (missing[robot.free] * units)), strict=True))


def loses_power(robot: Robot) -> bool:
    """Whether a rigid coupling loses power."""
    return any(isinstance(row, Coupling) and row.lossy for row in robot.closures.constraints)


def loss_forces(
    robot: Robot, independent: Sequence[int], rows: Sequence[int], q: Any, qd: Array, effort: Array,
    wrenches: dict[str, Array],
) -> Any:  # fmt: skip
    """Forces of the losses of rigid couplings along all rates, under efforts and wrenches; zero where there are none.

    `rows` of the closures give the rates that are not `independent`; none: those that do it best at home.
    """
    if not loses_power(robot):
        return 0.0
    from parflex.formulations.base import ModelRequest
    from parflex.formulations.choice import choose  # which few runs need

    names = tuple(robot.tree.rate_names[k] for k in sorted(independent))
    form: Any = choose(robot, ModelRequest("losses", independent=names, rows=tuple(int(row) for row in rows)))
    return form.moving(q, qd[form.independent], wrenches).pushed(effort)[1]


def coupling_signals(
    robot: Robot, at: Any, qd: Array, qdd: Array, chosen: tuple[Sequence[int], Sequence[int]], effort: Array,
    wrenches: dict[str, Array], losses: Any,
) -> dict[str, Array]:  # fmt: skip
    """The effort of each coupling on its joint, where it is determined.

    `chosen` are dependent rates and the rows of the closures that give them; `losses` are forces of losses.
    """
    efforts = {spring.name: -spring.effort(at.q, qd) for spring in robot.tree.springs}
    determined_rows = _determined_couplings(robot)
    if determined_rows:
        multipliers = row_multipliers(robot, at, qd, qdd, chosen, effort, wrenches, losses)
        efforts |= {name: multipliers[row] for name, row in determined_rows.items() if row in multipliers}
    names = [coupling.name for coupling in robot.description.coupling if coupling.name in efforts]
    return {f"coupling.{name}.effort": _entry(efforts[name]) for name in names}


def _determined_couplings(robot: Robot) -> dict[str, int]:
    """Rows of rigid couplings whose effort the motion says: nothing else holds the same."""
    parts = zip(robot.closures.slices(), robot.closures.rows, strict=True)
    coupling_rows = {row.name: part.start for part, row in parts if isinstance(row, Coupling)}
    if not coupling_rows or not robot.mobility.redundant:
        return coupling_rows
    rows = scaled_jacobian(robot.closures, robot.home)[:, robot.free]
    U = np.linalg.svd(rows)[0][:, rank(rows) :]
    return {name: row for name, row in coupling_rows.items() if np.abs(U[row]).max(initial=0.0) <= OPEN_SHARE}


def joint_wrenches(
    robot: Robot,
    independent: Sequence[str],
    width: float,
    rows: Mapping[str, Array],
    multipliers: Callable[[Array, Array], Array],
    chains: Sequence[BeamChain] = (),
    from_free_joints: bool = False,
) -> tuple[dict[str, Array], dict[int, Array]]:
    """Of each joint and closure its name with force and moment in all rows, in a motion under efforts and wrenches.

    The motion has all positions, their rates of change and all accelerations. `multipliers` are those of closures, by
    their rows over free rates and by what these have to give there, rows of the run first. Then the signals of the
    elements of some beams, by their links. `from_free_joints`: multipliers follow from freely moving
    joints alone, whatever holds elastic bodies and motors.
    """
    changed = prepared_robot(robot, "joint_wrenches", Options(friction_width=width))
    number = {name: k for k, name in enumerate(changed.tree.rate_names)}
    rate_indices = [number[name] for name in independent]
    along = _loose(changed) if from_free_joints else _multiplier_rates(changed, rate_indices)

    def outputs(inputs: Inputs) -> dict[str, Array]:
        tree, q, qd, at, frame_wrenches = _state(changed, inputs)
        external = on_links(tree, at, frame_wrenches)
        moving = motion(tree, at, qd, inputs["accelerations"], -tree.gravity)
        closure_wrenches: dict[str, tuple[Array, Array]] = {}
        needed = link_wrenches(tree, at, moving, external)
        if changed.closures.size:
            forces = propagate_inwards(tree, at, *subtract_external(needed, {})).forces
            missing = forces + joint_forces(tree, q, qd, inputs["accelerations"])
            missing = missing - loss_forces(changed, rate_indices, (), q, qd, inputs["effort"], frame_wrenches)
            for k, motor in enumerate(changed.actuated):
                missing[motor] = missing[motor] - inputs["effort"][k]
            closure_jacobian = changed.closures.jacobian(at, jacobians(tree, at, along))[:, along]
            carried = apply_rowwise(multipliers, closure_jacobian, missing[along])
            closure_wrenches, acting = closure_loads(changed, at, carried)
            needed = subtract_external(needed, acting)
        joint_loads = propagate_inwards(tree, at, *needed)
        bearing = [(j, link.name) for j, link in enumerate(tree.links) if has_reaction(link)]
        joints = {name: (joint_loads.f[j], joint_loads.m[j]) for j, name in bearing}
        beam_signals = element_signals_of(tree, at, moving, joint_loads, chains, frame_wrenches)
        loads = {name: np.concatenate(parts) for name, parts in {**joints, **closure_wrenches}.items()}
        return loads | {f"{INSIDE}{j}": signals for j, signals in beam_signals.items()}

    loads = evaluate_rows(outputs, rows, _numbers(changed) + changed.closures.size * len(along))
    elements = {int(name.removeprefix(INSIDE)): loads.pop(name) for name in list(loads) if name.startswith(INSIDE)}
    return loads, elements


def _multiplier_rates(robot: Robot, independent: Sequence[int]) -> Array:
    """Free rates that determine the multipliers: all, or of robots of many elements joints and dependent rates."""
    elastic, independent_rates = set(robot.deformations), set(independent)
    if robot.mobility.redundant or len(robot.free) <= MANY:
        return robot.free
    return np.array([k for k in robot.free if k not in elastic or k not in independent_rates], dtype=int)


def _loose(robot: Robot) -> Array:
    """Free rates without a motor or a spring; all, where these are too few to determine what closures carry."""
    constrained = {*robot.deformations, *robot.actuated}
    links = robot.tree.links
    stiff = [bool(links[robot.tree.link_of_rate[k]].terms.stiffness) for k in robot.free]
    free_rates = [k for k, spring in zip(robot.free, stiff, strict=True) if k not in constrained and not spring]
    return robot.free if len(free_rates) < robot.closures.size else np.array(free_rates, dtype=int)


def _state(robot: Robot, inputs: Inputs) -> tuple[Any, Any, Any, Any, Inputs]:
    """Tree, positions, rates, pose, and wrenches by frame; contacts are as their gates say."""
    tree, q = robot.tree, inputs["q"]
    if tree.gates is not None:
        tree.gates.values = inputs["gates"]
    wrenches = {word.removeprefix(PUSHED): wrench for word, wrench in inputs.items() if word.startswith(PUSHED)}
    return tree, q, tree.rates(q, inputs["position_rates"]), pose(tree, q), wrenches


def _numbers(robot: Robot) -> int:
    """About how many numbers a pass over the tree keeps: those of each link, and its Jacobian along its path."""
    tree = robot.tree
    widths = [tree.links[j].own_v.stop - tree.links[j].own_v.start for j in range(len(tree.links))]
    return sum(120 + 6 * sum(widths[k] for k in tree.path(j)) for j in range(len(tree.links)))


def closure_rows(robot: Robot) -> Callable[[Array], Array]:
    """The rows of the closures over the free rates, without units, as a function of closed positions, row by row.

    It is a program, but for robots of so many rates that a program would take longer than the few poses it is for.
    """
    if len(robot.free) > MANY_RATES:
        return lambda q: np.array([scaled_jacobian(robot.closures, positions)[:, robot.free] for positions in q])
    program = closure_rows_program(robot, quick=True)
    kernel = Kernel(program.program, opt=0)  # runs as fast as with all passes of LLVM
    return lambda q: kernel.many(q).reshape(len(q), *program.outputs["rows"])


def closure_rows_program(robot: Robot, quick: bool = False) -> Model:
    """Closed positions in; the rows of the closures over the free rates, without units, out.

    `quick` where a run asks for them at some of its poses: passes would take longer than all these calls.
    """

    def outputs(tracer: Tracer) -> dict[str, Array]:
        at = pose(robot.tree, tracer.group("q", robot.tree.nq))
        J = robot.closures.jacobian(at, jacobians(robot.tree, at))
        return {"rows": np.array(scale(robot.closures, J)[:, robot.free])}

    return cached_program(robot, "closure-rows", Options(), outputs, quick=quick)


def open_tree(robot: Robot, wrenches: Sequence[str], friction_width: float) -> Model:
    """All positions and rates in; mass matrix, forces and energies of the tree, rows, bias and opening of its loops."""
    options = Options(friction_width=friction_width)

    def outputs(tracer: Tracer) -> dict[str, Array]:
        changed = prepared_robot(robot, "open-tree", options)
        tree, closures = changed.tree, changed.closures
        q, qd = tracer.group("q", tree.nq), tracer.group("qd", tree.n)
        external = {frame: tracer.group(f"wrench_{frame}", 6) for frame in wrenches}
        at, zero_rates = pose(tree, q), np.zeros(tree.n)
        moving, energy = motion(tree, at, qd, zero_rates, -tree.gravity), energies(tree, at, qd)
        forces = newton_euler(tree, at, moving, on_links(tree, at, external)).forces
        return {
            "mass_matrix": mass_matrix(tree, at),
            "forces": forces + joint_forces(tree, q, qd, zero_rates),
            "rows": closures.jacobian(at, jacobians(tree, at)),
            "bias": closures.bias(at, motion(tree, at, qd, zero_rates)),
            "opening": closures.linear_residual(at),
            "energy": np.array([energy.kinetic, energy.elastic + energy.gravity], dtype=object),
        }

    return cached_program(robot, "open-tree", options, outputs, tuple(wrenches))


def contact_gaps(robot: Robot) -> Model:
    """Closed positions, their rates of change and the gates of contacts in; of each gate what it follows, and its rate.

    A gate is 1 while its number is positive: the time loop ends a step where that changes.
    """

    def outputs(tracer: Tracer) -> dict[str, Array]:
        tree = prepared_robot(robot, "contact-gaps", Options()).tree
        q, change = tracer.group("q", tree.nq), tracer.group("position_rates", tree.nq)
        add_gates(tracer, tree)
        return {"gaps": np.array(gate_values(tree, pose(tree, q), tree.rates(q, change)), dtype=object)}

    return cached_program(robot, "contact-gaps", Options(), outputs)
