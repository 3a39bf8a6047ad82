"""Controllers as FMUs: a model of the robot, or a control law with its geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.checks import one_of
from parflex.closure.continuation import position_units
from parflex.codegen.emit_c import emit_c
from parflex.codegen.model import Model, model
from parflex.codegen.optimise import make_program
from parflex.codegen.options import OPERATOR_LIMIT
from parflex.codegen.program import Program
from parflex.codegen.signals_table import POSITIONS
from parflex.codegen.trace import MODELS
from parflex.codegen.tracer import Tracer
from parflex.control.laws import LAWS, Law, gains_from, make_law
from parflex.errors import InputError
from parflex.exchange.fmu.columns import FOLLOWED
from parflex.exchange.fmu.description import Variable
from parflex.exchange.fmu.plant import c_table, column_unit, unit_files
from parflex.records import Record
from parflex.recursion.kinematics import pose as pose_of
from parflex.robot.configuration import Pose, configure
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.simulation.problem import LOOK
from parflex.tree.tree import Tree

Array = np.ndarray
OF_TIME = ("state-rates", "state-rates-driven", "state-rates-following")  # of the loop: plants have them
REMEMBERED = {"last": "q", "guess": "q"}  # groups of inputs that are outputs of the step before
OF_POSITION = (*POSITIONS, "position", "rotation", "turn")  # groups that start at home, the others at rest
GIVING = ("motor_position", "measured", "position", "rotation")  # groups that say where the robot is
OPEN_LOOP = 1e-6  # typical lengths: positions of closed poses that are given with seven digits
NOT_OPEN = "static double opening(const State *s) { return (void)s, 0; }\n"
HEAD = f"#include <math.h>\n#include <stdint.h>\n#include <string.h>\n{FOLLOWED}"


@dataclass(frozen=True, eq=False, repr=False)
class FmuController(Record):
    """A function of inputs, with its programs by their names in C, and the positions that it starts from."""

    inputs: list[tuple[str, str, float]]  # name, unit, start
    outputs: list[tuple[str, str]]
    memory: list[tuple[str, str, float]]
    parameters: dict[str, tuple[str, float]]  # unit and value
    programs: dict[str, Program]
    text: str  # of `compute`
    title: str
    kind: str
    given: int = 0  # first inputs, which say where the robot is: they are remembered beside its positions

    def sources(self, fmi: int, token: str) -> dict[str, str]:
        """Files of C."""
        files: dict[str, str] = {}
        for name, program in self.programs.items():
            files |= emit_c(replace(program, name=name))
        main = self.programs["program_main"]
        starts = {"inputs": [value for *_, value in self.inputs], "memory": [value for *_, value in self.memory]}
        starts["memory"] += starts["inputs"][: self.given]
        starts["parameters"] = [value for _, value in self.parameters.values()]
        state = {"columns": len(self.outputs), **{word: len(values) for word, values in starts.items()}}
        sizes = {word.upper(): state[word] for word in ("inputs", "columns", "parameters")}
        sizes |= {"MEMORY": len(self.memory), "STATES": 0}
        state |= {"found": state["memory"], "constants": len(main.split()[0].outputs) if main.parameters else 0}
        lines = [f'#include "{name}.h"' for name in self.programs] + [f"#define {w} {n}" for w, n in sizes.items()]
        lines += ["typedef struct {", "  double now;", *(f"  double {w}[{max(n, 1)}];" for w, n in state.items())]
        lines += [
            "  int64_t fresh, begun;",
            "} State;",
            "static void start_of(State *s) {",
            "  memset(s, 0, sizeof *s);",
        ]
        for word, values in starts.items():
            if values:
                lines += [f"  {c_table('double', word, values)}", f"  memcpy(s->{word}, {word}, sizeof {word});"]
        setup = "program_main_setup((s)->parameters, (s)->constants)" if main.parameters else "(void)(s)"
        lines += ["}", f"#define SET_UP(s) {setup}"]
        call = f"program_main(x, {'(s)->constants, ' if main.parameters else ''}y)"
        lines.append(f"#define MAIN(s, x, y) {call if main.status is not None else f'({call}, 0)'}")
        return files | unit_files(HEAD + "\n".join(lines) + "\n" + self.text, ("function.c",), self.kind, fmi, token)

    def variables(self) -> list[Variable]:
        """Time, inputs, outputs, the positions at the start, parameters."""
        fmu_variables = [Variable("time", "independent", "s")]
        fmu_variables += [Variable(name, "input", unit, value) for name, unit, value in self.inputs]
        fmu_variables += [Variable(name, "output", unit) for name, unit in self.outputs]
        fmu_variables += [Variable(f"start.{name}", "parameter", unit, value) for name, unit, value in self.memory]
        return fmu_variables + [Variable(name, "parameter", *entry) for name, entry in self.parameters.items()]


def make_controller(
    robot: Robot,
    law: str | None,
    name: str | None,
    coordinates: str | None,
    pose: Pose | None,
    parameters: Sequence[str] | str,
    without: Sequence[str],
    kind: str,
) -> FmuController:
    """The law, or the model."""
    q = configure(robot, pose).q
    if law is not None and name is not None:
        raise InputError("a controller is a law or a model", key="law", value=law, hint="give one of them")
    if law is not None:
        made = make_law(acting_robot(robot, without), one_of(law, LAWS, "law"), gains_from())
        return _law_controller(made, q, kind)
    one_of(name, [word for word in MODELS if word not in OF_TIME], "model")
    words: Any = {"parameters": parameters or "numbers", "coordinates": coordinates}
    made_model = model(robot, str(name), without=without, **words)
    return _model_controller(robot, made_model, str(name), q, kind)


def _unit(unit: str) -> str:
    return unit.replace(" ", ".").replace("²", "2")


def _signals(made: Model, direction: str, group: str | None = None) -> list[dict[str, Any]]:
    """Signals of a direction, or of one of its groups."""
    signals = [signal for signal in made.signals if signal["direction"] == direction]
    return signals if group is None else [signal for signal in signals if signal["group"] == group]


def _parameters(made: Model) -> dict[str, tuple[str, float]]:
    """Unit and value of each parameter."""
    units = {signal["index"]: _unit(signal["unit"]) for signal in _signals(made, "parameter")}
    return {name: (units.get(k, ""), made.parameters[name]) for k, name in enumerate(made.program.parameters)}


def _law_controller(law: Law, q: Array, kind: str) -> FmuController:
    """Measured positions and rates of the sensed joints and the reference in, efforts out."""
    robot, m = law.robot, len(law.sensed)
    tree = robot.tree
    links = [tree.links[tree.number(name)] for name in law.sensed]
    places = [link.q.start for link in links]
    starts = [float(q[place]) for place in places]
    inputs = [
        (f"q.{name}", column_unit(f"q.{name}", robot), value) for name, value in zip(law.sensed, starts, strict=True)
    ]
    inputs += [(f"qd.{name}", column_unit(f"qd.{name}", robot), 0.0) for name in law.sensed]
    if law.name == "ctc-task":
        here = configure(robot, {name: float(q[tree.position_names.index(name)]) for name in robot.actuated_names}).q
        inputs += _task_reference(law.program, robot, here)
    else:
        words = {"reference": "q", "reference_rate": "qd", "reference_acceleration": "qdd"}
        references = [signal for signal in _signals(law.program, "input") if signal["group"] in words]
        for k, signal in enumerate(references):
            value = starts[k % m] if signal["group"] == "reference" else 0.0
            inputs.append((f"reference.{words[signal['group']]}.{signal['name']}", _unit(signal["unit"]), value))
    outputs = [(f"effort.{name}", column_unit(f"effort.{name}", robot)) for name in robot.actuated_names]
    memory = [
        (f"q.{name}", column_unit(f"q.{name}", robot), float(v)) for name, v in zip(tree.position_names, q, strict=True)
    ]
    anywhere = not any(link.wound for link in tree.links)  # springs tell a turn from the next
    turning = [link.periodic and anywhere for link in links]
    lengths = [float(tree.rate_units[link.v.start]) for link in links]
    located = _Located(tree, places, turning, lengths)
    locate = _LAW_LOCATE.format(outputs=len(law.geometry.program.outputs))
    text = located.text(locate) + _LAW.format(reference=len(inputs) - 2 * m)
    programs = {"program_geometry": law.geometry.program, "program_main": law.program.program}
    parameters = _parameters(law.program)
    return FmuController(inputs, outputs, memory, parameters, programs, text, f"the law {law.name}", kind, m)


def _task_reference(program: Model, robot: Robot, q: Array) -> list[tuple[str, str, float]]:
    """Pose, twist and acceleration that the end effector should have; at the start those of the robot at rest."""
    R, p = pose_of(robot.tree, q).of(robot.tree.places[robot.tree.end_effector])
    starts = {"position": list(p), "rotation": list(np.ravel(R))}
    result = []
    for group, shape in program.inputs.items():
        if group not in ("q", "qd"):
            values = starts.get(group, [0.0] * int(np.prod(shape)))
            signals = zip(_signals(program, "input", group), values, strict=True)
            result += [(f"reference.{signal['name']}", _unit(signal["unit"]), float(v)) for signal, v in signals]
    return result


def _model_controller(robot: Robot, made: Model, name: str, q: Array, kind: str) -> FmuController:
    """Inputs and outputs of the program; a guess is what was found in the step before."""
    sizes = {group: int(np.prod(shape)) for group, shape in made.inputs.items()}
    located = set(sizes) & set(GIVING)
    guess = next((g for g in sizes if located and REMEMBERED.get(g) in made.outputs and sizes[g] == len(q)), None)
    starts, places = _where(robot, made, q), dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    inputs: list[tuple[str, str, float]] = []
    memory: list[tuple[str, str, float]] = []
    lines: list[str] = []
    given = 0
    rotations: list[tuple[int, int]] = []
    for group in sorted(sizes, key=lambda group: group not in GIVING):  # first those that say where the robot is
        size, locates, into = sizes[group], guess is not None and group in GIVING, memory if group == guess else inputs
        source = "guess" if group == guess else "given" if locates else "s->inputs"
        lines.append(f"  memcpy(x + {places[group]}, {source} + {len(into)}, sizeof(double) * {size});")
        rotations += [(len(inputs), made.inputs[group][0])] if locates and group == "rotation" else []
        given += size if locates else 0
        prefix, values = ("q", q) if group == guess else (group, starts.get(group, np.zeros(size)))
        signals = zip(_signals(made, "input", group), values, strict=True)
        into += [(f"{prefix}.{signal['name']}", _unit(signal["unit"]), float(v)) for signal, v in signals]
    inside, outputs = {word for word, _, _ in inputs}, []
    for signal in _signals(made, "output"):
        group, own = signal["group"], signal["name"]
        word = group if own == group else f"{group}.{own}"
        outputs.append((f"{word} out" if word in inside else word, _unit(signal["unit"])))
    ends = dict(zip(made.outputs, np.cumsum([0, *(int(np.prod(s)) for s in made.outputs.values())]), strict=False))
    at = 0 if guess is None else int(ends[REMEMBERED[guess]])
    sums = {"inputs": sum(sizes.values()), "lines": "\n".join(lines), "at": at, "outputs": len(outputs)}
    known, words = list(robot.tree.position_names), [word.partition(".")[2] for word, _, _ in inputs[:given]]
    lengths = [robot.tree.length if unit == "m" else 1.0 for _, unit, _ in inputs[:given]]
    joints = [known.index(word) if word in known and not rotations else -1 for word in words]
    place = _Located(robot.tree, joints, [False] * given, lengths, tuple(rotations))
    programs, opened = {"program_main": made.program}, NOT_OPEN
    if "q" in sizes and sizes["q"] == len(q) and robot.closures.size:
        programs["program_opening"] = _opening(robot)
        first = [word for word, _, _ in inputs].index(f"q.{_signals(made, 'input', 'q')[0]['name']}")
        opened = _OPENING.format(count=len(programs["program_opening"].outputs), q=f"s->inputs + {first}")
    text = place.text("" if guess is None else _MODEL_LOCATE.format(**sums), opened)
    guesses = "" if guess is None else "  const double *guess = s->found, *given = s->found + LOCATED;\n"
    text += _MODEL.format(guesses=guesses, **sums)
    title = f"the model {name}"
    return FmuController(inputs, outputs, memory, _parameters(made), programs, text, title, kind, given)


def _where(robot: Robot, made: Model, q: Array) -> dict[str, Array]:
    """Groups of positions at a pose; others that start at home."""
    tree = robot.tree
    starts = {group: np.ravel(values) for group, values in made.sample.items() if group in OF_POSITION}

    def there(at: Array) -> dict[str, Array]:
        R, p = pose_of(tree, at).of(tree.places[tree.end_effector])
        width = made.inputs.get("position", (3,))[0]
        joints = [tree.links[tree.link_of_rate[k]].q.start for k in robot.actuated]
        return {"position": p[:width], "rotation": np.ravel(R[:width, :width]), "motor_position": at[joints], "q": at}

    home = there(robot.home)
    same = [g for g, v in home.items() if g in starts and len(v) == len(starts[g]) and np.allclose(v, starts[g])]
    return starts | {group: there(q)[group] for group in same}


def _opening(robot: Robot) -> Program:
    """All positions in, how far each row of the closures is open out."""
    tracer = Tracer()
    rows = robot.closures.linear_residual(pose_of(robot.tree, tracer.group("q", robot.tree.nq)))
    return make_program(tracer.graph, "program_opening", {"opening": rows}, [], OPERATOR_LIMIT)


@dataclass(frozen=True)
class _Located:
    """Where the first inputs say that the robot is: their places among all positions, or -1, and which are angles."""

    tree: Tree
    places: Sequence[int]
    turning: Sequence[bool]
    units: Sequence[float]
    rotations: tuple[tuple[int, int], ...] = ()  # first entry and size of matrices among them

    def text(self, locate: str, opening: str = NOT_OPEN) -> str:
        """Tables, and the function that finds positions from a guess, if there is one."""
        lines = [f"#define LOCATED {self.tree.nq if locate else 0}", f"#define GIVEN {len(self.places)}"]
        lines += [f"#define NEAR_BY {LOOK!r}", f"#define OPEN_LOOP {OPEN_LOOP * self.tree.length!r}"]
        if locate:
            lines += [c_table("int", "turning", self.turning, 0), c_table("int", "given_places", self.places, 0)]
            lines.append(c_table("double", "position_units", position_units(self.tree), 1))
            lines.append(c_table("double", "given_units", self.units, 1))
            calls = "".join(f" make_rotation(given + {first}, {size});" for first, size in self.rotations)
            lines += [_ROTATIONS, f"static void make_rotations(double *given) {{ (void)given;{calls} }}"]
        return "\n".join(lines) + "\n" + locate + opening


_ROTATIONS = """static void make_rotation(double *R, int n) { /* rows of length one at right angles */
  for (int i = 0; i < n; ++i) {
    double size = 0;
    for (int j = 0; j < i; ++j) {
      double along = 0;
      for (int k = 0; k < n; ++k) along += R[i * n + k] * R[j * n + k];
      for (int k = 0; k < n; ++k) R[i * n + k] -= along * R[j * n + k];
    }
    for (int k = 0; k < n; ++k) size += R[i * n + k] * R[i * n + k];
    for (int k = 0; k < n; ++k) R[i * n + k] /= sqrt(size);
  }
}"""
_OPENING = """static double opening(const State *s) {{
  double rows[{count}], most = 0;
  program_opening({q}, rows);
  for (int k = 0; k < {count}; ++k)
    if (!(fabs(rows[k]) <= most)) most = fabs(rows[k]);
  return most;
}}
"""
_MODEL_LOCATE = """static int locate(const State *s, const double *given, const double *guess, double *found) {{
  double x[{inputs}], y[{outputs}];
{lines}
  int status = MAIN(s, x, y);
  memcpy(found, y + {at}, sizeof(double) * LOCATED);
  return status;
}}
"""
_MODEL = """static int compute(State *s) {{
  double x[{inputs}];
{guesses}{lines}
  return MAIN(s, x, s->columns);
}}
"""
_LAW_LOCATE = """static int locate(const State *s, const double *given, const double *guess, double *found) {{
  double g[LOCATED + GIVEN], y[{outputs}];
  (void)s;
  memcpy(g, guess, sizeof(double) * LOCATED);
  memcpy(g + LOCATED, given, sizeof(double) * GIVEN);
  int status = program_geometry(g, y);
  memcpy(found, y, sizeof(double) * LOCATED);
  return status;
}}
"""
_LAW = """static int compute(State *s) {{
  enum {{ M = GIVEN, NQ = LOCATED, REFERENCE = {reference} }};
  double x[NQ + M + REFERENCE];
  memcpy(x, s->found, sizeof(double) * NQ);
  memcpy(x + NQ, s->inputs + M, sizeof(double) * (M + REFERENCE));
  return MAIN(s, x, s->columns);
}}
"""
