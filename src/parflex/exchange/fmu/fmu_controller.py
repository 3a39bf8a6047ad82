"""Controllers as FMUs of their own: a model of the robot, or a control law with the geometry that it measures by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from parflex.codegen.emit.emit_c import emit_c
from parflex.codegen.model import Model, model
from parflex.codegen.ports import POSITIONS
from parflex.codegen.program import Program
from parflex.codegen.traces.trace import MODELS
from parflex.control.gains import gains_from
from parflex.control.laws import LAWS, Law, make_law
from parflex.control.run import OPEN
from parflex.errors import InputError, did_you_mean
from parflex.exchange.fmu.description_xml import Variable
from parflex.exchange.fmu.fmu_plant import column_unit, unit_files
from parflex.models.configuration import Pose, configure
from parflex.models.robot import Robot
from parflex.models.terms import acting
from parflex.records import Record

Array = np.ndarray
OF_TIME = ("state-rates", "state-rates-driven", "state-rates-following")  # of the loop: plants have them
REMEMBERED = {"last": "q", "guess": "q"}  # groups of inputs that are outputs of the step before
OF_POSITION = (*POSITIONS, "position", "rotation", "turn")  # groups that start at home, the others at rest
HEAD = "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n"


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
    seen: int = 0  # more numbers that are remembered

    def sources(self, fmi: int, token: str) -> dict[str, str]:
        """Files of C."""
        files: dict[str, str] = {}
        for name, program in self.programs.items():
            files |= emit_c(replace(program, name=name))
        main = self.programs["program_main"]
        constants = len(main.split()[0].outputs) if main.parameters else 0
        sizes = {"INPUTS": len(self.inputs), "COLUMNS": len(self.outputs), "MEMORY": len(self.memory), "STATES": 0}
        sizes |= {"PARAMETERS": len(self.parameters)}
        state = {"inputs": len(self.inputs), "columns": len(self.outputs), "parameters": len(self.parameters)}
        state |= {"memory": len(self.memory) + self.seen, "found": len(self.memory) + self.seen, "constants": constants}
        lines = [f'#include "{name}.h"' for name in self.programs] + [f"#define {w} {n}" for w, n in sizes.items()]
        lines += ["typedef struct {", "  double now;", *(f"  double {w}[{max(n, 1)}];" for w, n in state.items())]
        lines += ["  int64_t fresh;", "} State;", "static void start_of(State *s) {", "  memset(s, 0, sizeof *s);"]
        begins = {"inputs": [v for *_, v in self.inputs], "memory": [v for *_, v in self.memory]}
        begins["memory"] += [value for _, _, value in self.inputs[: self.seen]]
        begins["parameters"] = [value for _, value in self.parameters.values()]
        for word, values in begins.items():
            if values:
                numbers = ", ".join(repr(float(value)) for value in values)
                lines += [f"  static const double {word}[] = {{{numbers}}};"]
                lines += [f"  memcpy(s->{word}, {word}, sizeof {word});"]
        setup = "program_main_setup((s)->parameters, (s)->constants)" if main.parameters else "(void)(s)"
        lines += ["}", f"#define SET_UP(s) {setup}"]
        given = "x, s->constants, y" if main.parameters else "x, y"
        lines.append(f"#define MAIN(s, x, y) program_main({given})".replace("s->", "(s)->"))
        return files | unit_files(HEAD + "\n".join(lines) + "\n" + self.text, ("function.c",), self.kind, fmi, token)

    def variables(self) -> list[Variable]:
        """Time, inputs, outputs, the positions at the start, parameters."""
        found = [Variable("time", "independent", "s")]
        found += [Variable(name, "input", unit, value) for name, unit, value in self.inputs]
        found += [Variable(name, "output", unit) for name, unit in self.outputs]
        found += [Variable(f"start.{name}", "parameter", unit, value) for name, unit, value in self.memory]
        return found + [Variable(name, "parameter", *own) for name, own in self.parameters.items()]


def make_controller(
    robot: Robot, law: str | None, name: str | None, coordinates: str | None, pose: Pose | None,
    parameters: Sequence[str] | str, without: Sequence[str], kind: str,
) -> FmuController:  # fmt: skip
    """The law, or the model."""
    q = configure(robot, pose).q
    if law is not None and name is not None:
        raise InputError("a controller is a law or a model", key="law", value=law, hint="give one of them")
    if law is not None:
        if law not in LAWS:
            raise InputError(f"there is no law '{law}'", key="law", value=law, hint=did_you_mean(law, LAWS))
        return _of_law(make_law(acting(robot, without), law, gains_from()), q, kind)
    known = [one for one in MODELS if one not in OF_TIME]
    if name not in known:
        raise InputError(f"there is no model '{name}'", key="model", value=name, hint=did_you_mean(str(name), known))
    made = model(robot, str(name), parameters=parameters or "numbers", without=without, coordinates=coordinates)  # type: ignore[arg-type]
    return _of_model(made, str(name), q, kind)


def _unit(unit: str) -> str:
    return unit.replace(" ", ".").replace("²", "2")


def _of_law(law: Law, q: Array, kind: str) -> FmuController:
    """Measured positions and rates of the sensed joints and the reference in, efforts out."""
    robot, m = law.robot, len(law.sensed)
    tree = robot.tree
    links = [tree.links[tree.number(name)] for name in law.sensed]
    places = [link.q.start for link in links]
    units = [column_unit(f"q.{name}", robot) for name in law.sensed]
    rates = [column_unit(f"qd.{name}", robot) for name in law.sensed]
    inputs = [(f"q.{name}", units[k], float(q[places[k]])) for k, name in enumerate(law.sensed)]
    inputs += [(f"qd.{name}", rates[k], 0.0) for k, name in enumerate(law.sensed)]
    signals = [one for one in law.program.signals if one["direction"] == "input" and one["group"] not in ("q", "qd")]
    if law.name == "ctc-task":
        here = configure(robot, {name: float(q[tree.position_names.index(name)]) for name in robot.actuated_names}).q
        inputs += _task_reference(law.program, robot, here)
    else:
        words = {"reference": "q", "reference_rate": "qd", "reference_acceleration": "qdd"}
        starts = {"reference": [float(q[p]) for p in places]}
        for k, one in enumerate(signals):
            value = starts.get(one["group"], [0.0] * m)[k % m]
            inputs.append((f"reference.{words[one['group']]}.{one['name']}", _unit(one["unit"]), value))
    outputs = [(f"effort.{name}", column_unit(f"effort.{name}", robot)) for name in robot.actuated_names]
    memory = [
        (f"q.{name}", column_unit(f"q.{name}", robot), float(v)) for name, v in zip(tree.position_names, q, strict=True)
    ]
    owned = {one["index"]: _unit(one["unit"]) for one in law.program.signals if one["direction"] == "parameter"}
    parameters = {
        name: (owned.get(k, ""), law.program.parameters[name]) for k, name in enumerate(law.program.program.parameters)
    }
    turning = ", ".join(str(int(link.periodic)) for link in links)
    text = _LAW.format(m=m, nq=tree.nq, reference=len(inputs) - 2 * m, turning=turning, open=OPEN)
    programs = {"program_geometry": law.geometry.program, "program_main": law.program.program}
    return FmuController(inputs, outputs, memory, parameters, programs, text, f"the law {law.name}", kind, m)


def _task_reference(program: Model, robot: Robot, q: Array) -> list[tuple[str, str, float]]:
    """Pose, twist and acceleration that the end effector should have; at the start those of the robot at rest."""
    from parflex.recursion import pose as pose_of

    R, p = pose_of(robot.tree, q).of(robot.tree.places[robot.tree.end_effector])
    starts = {"position": list(p), "rotation": list(np.ravel(R))}
    found = []
    for group, shape in program.inputs.items():
        if group in ("q", "qd"):
            continue
        own = [one for one in program.signals if one["direction"] == "input" and one["group"] == group]
        values = starts.get(group, [0.0] * int(np.prod(shape)))
        found += [
            (f"reference.{one['name']}", _unit(one["unit"]), float(v)) for one, v in zip(own, values, strict=True)
        ]
    return found


def _of_model(made: Model, name: str, q: Array, kind: str) -> FmuController:
    """Inputs and outputs of the program; a guess is what was found in the step before."""
    sizes = {group: int(np.prod(shape)) for group, shape in made.inputs.items()}
    kept = [g for g in sizes if REMEMBERED.get(g) in made.outputs and sizes[g] == len(q)][:1]
    inputs: list[tuple[str, str, float]] = []
    memory: list[tuple[str, str, float]] = []
    lines, first = [], 0
    sample = {group: np.ravel(values) for group, values in made.sample.items() if group in OF_POSITION}
    for group, size in sizes.items():
        own = [one for one in made.signals if one["direction"] == "input" and one["group"] == group]
        values = q if group in kept else sample.get(group, np.zeros(size))
        into, source = (memory, "memory") if group in kept else (inputs, "inputs")
        lines.append(f"  memcpy(x + {first}, s->{source} + {len(into)}, sizeof(double) * {size});")
        prefix = "q" if group in kept else group
        into += [(f"{prefix}.{one['name']}", _unit(one["unit"]), float(v)) for one, v in zip(own, values, strict=True)]
        first += size
    outputs = [
        (f"{one['group']}.{one['name']}", _unit(one["unit"])) for one in made.signals if one["direction"] == "output"
    ]
    inside = {entry for entry, _, _ in inputs}
    outputs = [(f"{word} out" if word in inside else word, unit) for word, unit in outputs]
    found = 0
    for group, shape in made.outputs.items():
        if kept and group == REMEMBERED[kept[0]]:
            lines.append(f"  memcpy(s->found, s->columns + {found}, sizeof(double) * {len(memory)});")
        found += int(np.prod(shape))
    calls = [line for line in lines if "s->found" not in line]
    after = [line for line in lines if "s->found" in line]
    body = ["static int compute(State *s) {", f"  double x[{max(first, 1)}];", *calls, "  MAIN(s, x, s->columns);"]
    text = "\n".join([*body, *after, "  return 1;", "}", ""])
    owned = {one["index"]: _unit(one["unit"]) for one in made.signals if one["direction"] == "parameter"}
    parameters: Mapping[str, tuple[str, float]] = {
        word: (owned.get(k, ""), made.parameters[word]) for k, word in enumerate(made.program.parameters)
    }
    programs = {"program_main": made.program}
    return FmuController(inputs, outputs, memory, dict(parameters), programs, text, f"the model {name}", kind)


_LAW = """static int compute(State *s) {{
  enum {{ M = {m}, NQ = {nq}, REFERENCE = {reference} }};
  static const int turning[] = {{{turning}}};
  double g[NQ + M], x[NQ + M + REFERENCE], moved = 0;
  const double turn = 6.283185307179586;
  memcpy(g, s->memory, sizeof(double) * NQ);
  for (int k = 0; k < M; ++k) {{ /* turns go on from the last ones */
    double value = s->inputs[k];
    if (turning[k]) value += turn * floor((s->memory[NQ + k] - value) / turn + 0.5);
    s->found[NQ + k] = g[NQ + k] = value;
  }}
  for (int once = 0; once < 2; ++once) {{ /* the second time from where the first ended: it must stay there */
    program_geometry(g, x);
    moved = 0;
    for (int k = 0; k < NQ; ++k) {{
      if (!(fabs(x[k] - g[k]) <= moved)) moved = fabs(x[k] - g[k]);
      g[k] = x[k];
    }}
  }}
  if (!(moved <= {open!r})) return 0;
  memcpy(s->found, x, sizeof(double) * NQ);
  memcpy(x + NQ, s->inputs + M, sizeof(double) * (M + REFERENCE));
  MAIN(s, x, s->columns);
  return 1;
}}
"""
