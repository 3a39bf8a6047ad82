"""Output columns and changeable parameters of a plant in an FMU."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.codegen.model import Model
from parflex.codegen.optimise import make_program
from parflex.codegen.options import OPERATOR_LIMIT, Options, prepared_robot
from parflex.codegen.outputs import signal_outputs
from parflex.codegen.program import Program
from parflex.codegen.trace import MODELS
from parflex.codegen.tracer import Tracer
from parflex.errors import InputError, did_you_mean
from parflex.forces.base_parameters import PARAMETERS, body_from_parameters, body_parameters
from parflex.formulations.choice import choose
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.simulation.outputs import AXES, RunState, axis_in_plane, base_columns, is_tilted, motion_columns
from parflex.simulation.problem import MODEL_NAMES, RUN_LIMIT, Problem, has_losses
from parflex.spatial.rotations import ORIENTATION
from parflex.tree.tree import Link

Array = np.ndarray

FOLLOWED = """static double followed(double angle, double before) {
  const double turn = 6.283185307179586;
  return angle + turn * floor((before - angle) / turn + 0.5);
}
"""
FINISH = """static void quaternion(const double *R, double *before, double *out) {
  double t[4] = {R[0] + R[4] + R[8], R[0] - R[4] - R[8], R[4] - R[0] - R[8], R[8] - R[0] - R[4]};
  int k = 0, largest = 0;
  for (int j = 1; j < 4; ++j)
    if (t[j] > t[k]) k = j;
  double s = sqrt(1 + t[k]) / 2, f = 0.25 / s, o[4], along = 0;
  double a = (R[7] - R[5]) * f, b = (R[2] - R[6]) * f, c = (R[3] - R[1]) * f;
  double d = (R[3] + R[1]) * f, e = (R[2] + R[6]) * f, g = (R[7] + R[5]) * f;
  if (k == 0) { o[0] = s; o[1] = a; o[2] = b; o[3] = c; }
  else if (k == 1) { o[0] = a; o[1] = s; o[2] = d; o[3] = e; }
  else if (k == 2) { o[0] = b; o[1] = d; o[2] = s; o[3] = g; }
  else { o[0] = c; o[1] = e; o[2] = g; o[3] = s; }
  for (int j = 0; j < 4; ++j) along += o[j] * before[j];
  for (int j = 1; j < 4; ++j)
    if (fabs(o[j]) > fabs(o[largest])) largest = j;
  if (along == 0) along = o[largest]; /* the first one */
  for (int j = 0; j < 4; ++j) out[j] = before[j] = along < 0 ? -o[j] : o[j];
}"""

SLOPES = """static void quaternion_slope(const double *R, const double *dR, const double *q, double *out) {
  double w[3]; /* dR = [w] R */
  w[0] = dR[6] * R[3] + dR[7] * R[4] + dR[8] * R[5];
  w[1] = dR[0] * R[6] + dR[1] * R[7] + dR[2] * R[8];
  w[2] = dR[3] * R[0] + dR[4] * R[1] + dR[5] * R[2];
  out[0] = -0.5 * (w[0] * q[1] + w[1] * q[2] + w[2] * q[3]);
  out[1] = 0.5 * (w[0] * q[0] + w[1] * q[3] - w[2] * q[2]);
  out[2] = 0.5 * (w[1] * q[0] + w[2] * q[1] - w[0] * q[3]);
  out[3] = 0.5 * (w[2] * q[0] + w[0] * q[2] - w[1] * q[1]);
}"""

AXIS_NAMES = "xyz"


@dataclass(frozen=True)
class RunColumns:
    """The program, its groups of inputs with their sizes, and where each column is among its outputs.

    A place has a kind, the first output, and a number: `theta` is an angle with cosine and sine from there on,
    `quaternion` that part of the one of a rotation matrix, `largest` the largest size of so many outputs.
    """

    program: Program
    groups: dict[str, int]
    places: dict[str, tuple[str, int, int]]

    @property
    def names(self) -> list[str]:
        """Columns in the order of `simulate`, without the time."""
        return list(self.places)

    @property
    def turns(self) -> int:
        """Numbers by which rotations are followed: one of an angle, and those of quaternions."""
        return sum(kind in ("theta", "quaternion") for kind, _, _ in self.places.values())


def run_columns(
    problem: Problem, frames: Sequence[str], excluded_names: Collection[str] = (), parameters: Sequence[str] = ()
) -> RunColumns:
    """Positions, rates, accelerations, gates, efforts, wrenches and work in, all columns but given ones out."""
    robot = problem.robot
    tracer, options = Tracer(), Options(friction_width=problem.width, rows=problem.rows)
    looked_at = list(dict.fromkeys([*frames, *problem.wrenches]))
    symbolic = with_symbols(
        prepared_robot(robot, "signals", options), {name: tracer.graph.symbol(name) for name in parameters}
    )
    made = signal_outputs(tracer, symbolic, looked_at, problem.independent, options, problem.wrenches)
    groups = tracer.inputs
    if "effort" not in groups:
        tracer.group("effort", len(robot.actuated))
        for name in problem.wrenches:
            tracer.group(f"wrench_{name}", 6)
    tracer.group("work", 2)
    opening = made.pop("opening", np.zeros(0, dtype=object))
    signals = {name: np.asarray(values, dtype=object)[None] for name, values in made.items()}
    signals |= {f"{name}.wrench": groups[f"wrench_{name}"][None] for name in problem.wrenches}
    signals |= {name: groups[name][None] for name in ("q", "effort", "work")}
    signals |= {"change": groups["position_rates"][None]}
    plain = base_columns(RunState(problem, robot, np.zeros(1), signals), ())
    outputs: dict[str, Any] = {}
    places: dict[str, tuple[str, int, int]] = {}
    home = pose(robot.tree, robot.home)
    for name in frames:
        _add_frame(name, signals, robot.tree.planar, home.of(robot.tree.places[name])[0], outputs, places)
    for name, values in plain.items():
        if name not in ("t", "closure_error", *excluded_names):
            _add(outputs, places, name, values[0])
    places["closure_error"] = ("largest", len(outputs), len(opening))
    outputs |= {f"opening {k}": value for k, value in enumerate(opening)}
    program = make_program(tracer.graph, "program_columns", outputs, list(parameters), OPERATOR_LIMIT)
    return RunColumns(program, {name: symbols.size for name, symbols in groups.items()}, places)


def _add(outputs: dict[str, Any], places: dict[str, tuple[str, int, int]], name: str, value: Any) -> None:
    places[name] = ("output", len(outputs), 1)
    outputs[name] = value


def _add_frame(
    name: str,
    signals: dict[str, Array],
    planar: bool,
    at_home: Array,
    outputs: dict[str, Any],
    places: dict[str, tuple[str, int, int]],
) -> None:
    """Columns of a frame: its turn is made of its rotation matrix outside of the program, without jumps."""
    position, R = signals[f"{name}.position"], signals[f"{name}.rotation"]
    for k, axis in enumerate(AXES[: 2 if planar else 3]):
        _add(outputs, places, f"{name}.{axis}", position[0, k])
    first = len(outputs)
    if planar:
        places[f"{name}.theta"] = ("theta", first, 1)
        along = axis_in_plane(at_home)
        outputs |= {f"{name} cosine": R[0, 0, along], f"{name} sine": R[0, 1, along]}
    else:
        places.update({f"{name}.{word}": ("quaternion", first, k) for k, word in enumerate(ORIENTATION)})
        outputs |= {f"{name} rotation {k} {m}": R[0, k, m] for k in range(3) for m in range(3)}
    for word, values in motion_columns(name, R, signals[f"{name}.motion"], planar, is_tilted(at_home)).items():
        _add(outputs, places, word, values[0])


def finish_lines(columns: RunColumns, slopes: bool) -> list[str]:
    """Columns from the outputs of their program, and with `slopes` their changes from those of the outputs.

    Angles and quaternions go on from where they were.
    """
    values, changes, turn = [], [], 0
    for k, (kind, first, number) in enumerate(columns.places.values()):
        if kind == "output":
            values.append(f"  c[{k}] = y[{first}];")
            changes.append(f"  o[{k}] = d[{first}];")
        elif kind == "theta":
            c, s = first, first + 1
            values.append(f"  c[{k}] = turns[{turn}] = followed(atan2(y[{s}], y[{c}]), turns[{turn}]);")
            square = f"(y[{c}] * y[{c}] + y[{s}] * y[{s}])"
            changes.append(f"  o[{k}] = (y[{c}] * d[{s}] - y[{s}] * d[{c}]) / {square};")
            turn += 1
        elif kind == "largest":
            each = f"  for (int k = {first}; k < {first + number}; ++k)"
            values += [f"  c[{k}] = 0;", f"{each} c[{k}] = fmax(c[{k}], fabs(y[k]));"]
            changes += [f"  o[{k}] = 0;", f"{each} if (fabs(y[k]) == c[{k}]) o[{k}] = y[k] < 0 ? -d[k] : d[k];"]
        elif number == 0:
            values.append(f"  quaternion(y + {first}, turns + {turn}, c + {k});")
            changes.append(f"  quaternion_slope(y + {first}, d + {first}, c + {k}, o + {k});")
            turn += 4
    head = "static void finish(const double *y, double *c, double *turns) {"
    lines = [FOLLOWED + FINISH, head, "  (void)turns;", *values, "}"]
    if not slopes:
        return lines
    head = "static void finish_slopes(const double *y, const double *d, const double *c, double *o) {"
    return [*lines, SLOPES, head, "  (void)y, (void)c;", *changes, "}"]


def read_plant_parameters(robot: Robot, names: Sequence[str]) -> dict[str, float]:
    """Values by name of what is asked for: "gravity", "payload", or inertial parameters such as "M[leg1.2]"."""
    tree, values = robot.tree, dict[str, float]()
    known = [f"{word}[{link.name}]" for link in tree.links for word in PARAMETERS]
    axes = AXIS_NAMES[:2] if tree.planar else AXIS_NAMES
    for name in names:
        if name == "gravity":
            values |= {f"gravity.{axis}": float(tree.gravity[k]) for k, axis in enumerate(axes)}
        elif name == "payload":
            _refuse_flexible(tree.links[tree.places[tree.end_effector].link], name)
            values |= {"payload.mass": 0.0} | {f"payload.{axis}": 0.0 for axis in axes}
        elif name in known:
            place = known.index(name)
            _refuse_flexible(tree.links[place // len(PARAMETERS)], name)
            body = tree.links[place // len(PARAMETERS)].body.as_rigid()
            values[name] = float(body_parameters(body)[place % len(PARAMETERS)])
        else:
            hint = did_you_mean(name, ["gravity", "payload", *known])
            raise InputError(f"there is no parameter '{name}'", key="parameters", value=name, hint=hint)
    if values and has_losses(robot):
        message = "parameters of robots whose couplings lose power cannot be symbols"
        raise InputError(message, key="parameters", value=names[0], hint="leave out friction, or the parameters")
    return values


def _refuse_flexible(link: Link, name: str) -> None:
    if link.body.size:
        message = f"'{link.name}' is flexible: its inertia is that of its beams or modes, and is not a symbol"
        raise InputError(message, key="parameters", value=name, hint="choose gravity, or parameters of rigid bodies")


def with_symbols(robot: Robot, symbols: Mapping[str, Any]) -> Robot:
    """The robot with symbols in place of numbers."""
    if not symbols:
        return robot
    tree = robot.tree
    links = list(tree.links)
    for j, link in enumerate(links):
        parameter_names = [f"{word}[{link.name}]" for word in PARAMETERS]
        if any(name in symbols for name in parameter_names):
            numbers = body_parameters(link.body.as_rigid())
            values = [symbols.get(name, float(value)) for name, value in zip(parameter_names, numbers, strict=True)]
            links[j] = replace(link, body=body_from_parameters(np.array(values, dtype=object)))
    if "payload.mass" in symbols:
        place = tree.places[tree.end_effector]
        at = np.array([symbols.get(f"payload.{axis}", 0.0) for axis in AXIS_NAMES], dtype=object)
        mass, centre = symbols["payload.mass"], place.position + place.rotation @ at
        body = links[place.link].body.as_rigid()
        point = (body.m + mass, body.S + mass * centre, body.Sigma + mass * np.outer(centre, centre))
        links[place.link] = replace(links[place.link], body=RigidBody(*point))
    gravity = np.array(
        [symbols.get(f"gravity.{axis}", float(tree.gravity[k])) for k, axis in enumerate(AXIS_NAMES)], object
    )
    has_gravity = any(f"gravity.{axis}" in symbols for axis in AXIS_NAMES)
    changed = replace(tree, links=tuple(links), gravity=gravity if has_gravity else tree.gravity)
    return replace(robot, tree=changed, closures=replace(robot.closures, tree=changed), known_home=robot.home)


def with_plant_parameters(problem: Problem, values: Mapping[str, float]) -> Problem:
    """The same problem with a model in which these numbers are parameters."""
    if not values:
        return problem
    name = MODEL_NAMES[problem.prescribed]
    options = Options(wrenches=problem.wrenches, friction_width=problem.width, independent=tuple(problem.independent))
    tracer = Tracer()
    form: Any = choose(prepared_robot(problem.robot, name, options), options.question(name, family=True))
    symbols = {word: tracer.graph.symbol(word) for word in values}
    form = replace(form, robot=with_symbols(form.robot, symbols))
    outputs, labels = MODELS[name](tracer, form, options)
    program = make_program(tracer.graph, f"{problem.robot.name}_{name}", outputs, list(values), RUN_LIMIT)
    inputs = {group: entries.shape for group, entries in tracer.inputs.items()}
    shapes = {group: np.shape(entries) for group, entries in outputs.items()}
    return replace(problem, model=Model(program.name, program, inputs, shapes, dict(values), labels))
