"""The data of one robot in C: what the loop knows of it, its memory, its start, and how columns are put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.exchange.fmu.run_columns import RunColumns
from parflex.exchange.loops_in_c.c_types import REAL, WHOLE, View, bundle_type
from parflex.exchange.loops_in_c.loop_c import Translator
from parflex.simulation.integrators.crossings import settle
from parflex.simulation.integrators.integrate import Method
from parflex.simulation.integrators.loop import record
from parflex.simulation.integrators.system import COUNTS, System, Work
from parflex.simulation.problem import Problem

Array = np.ndarray
ADDRESSES = ("address", "power", "gaps", "factor", "solve", "real_factor", "real_solve")
OWN = ("breaks", "coefficients")  # arrays of the system that change with the inputs


def loop_text(method: Method, system: System, work: Work) -> str:
    """The loop of the method, and what begins a run, as C."""
    types = [
        bundle_type(title, one) for title, one in (("System", system), ("Work", work), ("Tableau", method.tableau))
    ]
    row, rows, translator = View("d", 1), View("d", 2), Translator()
    loop = translator.function(method.steps, (*types, REAL, REAL, WHOLE, row, row, REAL, rows, rows))
    translator.function(record, (*types[:2], REAL, row, row, row, row))
    translator.function(settle, (*types[:2], REAL, row, row))
    names = f"#define LOOP {loop.name}\n#define LOOP_RESULT {loop.returns.c}\n"
    return "#include <math.h>\n#include <stdint.h>\n" + translator.text() + names


def data_text(
    problem: Problem, method: Method, system: System, work: Work, columns: RunColumns,
    start: tuple[Array, Array, Array], programs: Sequence[str], step: float, tolerance: float,
) -> str:  # fmt: skip
    """Sizes, tables, memory and start."""
    gates, motors = len(system.slack), len(problem.robot.actuated)
    given, powers = system.coefficients.shape[2], system.coefficients.shape[1]
    positions = [int(p) for p in (*system.simple[:, 0], *system.turning)]
    turns = sum(1 if place.startswith("theta") else 4 for place in columns.places.values() if _begins(place))
    sizes = {
        "POSITIONS": system.positions, "RATES": system.rates, "MOTORS": motors, "GIVEN": given, "POWERS": powers,
        "INPUTS": powers * motors + given - motors, "COLUMNS": len(columns.places), "STATE_POSITIONS": len(positions),
        "STATES": len(positions) + len(system.free), "WIDTH_X": work.x.shape[1], "WIDTH_Y": system.outputs + 2,
        "LOOKED": sum(columns.groups.values()), "SEEN": len(columns.program.outputs), "COUNTS": len(COUNTS),
        "STARTED": COUNTS.index("started"), "PIECE": COUNTS.index("piece"), "EVENTS": COUNTS.index("events"),
    }  # fmt: skip
    lines = [f"#define {word} {value}" for word, value in sizes.items()]
    lines += [f"#define STEP {float(step)!r}", f"#define TOLERANCE {float(tolerance)!r}"]
    closing = [int(p in set(system.closing)) for p in range(system.positions)]
    for name, values in (("state_positions", positions), ("free_rates", system.free), ("closes", closing)):
        lines.append(f"static const int {name}[] = {{{', '.join(str(int(v)) for v in [*values, 0])}}};")
    lines += [
        f"static void {name}_one(const double *x, double *y, int64_t n) {{ (void)n; {name}(x, y); }}"
        for name in programs
    ]
    lines += _state(system, work, turns)
    lines += _start(work, start)
    lines += _wire(system, work, method.tableau, programs)
    lines += _assemble(problem, system, columns, gates)
    lines += _finish(columns)
    return "\n".join(lines) + "\n"


def _begins(place: str) -> bool:
    return place.startswith("theta") or (place.startswith("quaternion") and place.endswith(" 0"))


def _numbers(values: Array) -> str:
    return ", ".join("INFINITY" if value == np.inf else repr(value) for value in np.asarray(values).ravel().tolist())


def _memory(work: Work) -> dict[str, tuple[int, Array]]:
    """Where each real array of the work lies."""
    found, first = {}, 0
    for name in work._names:
        array = getattr(work, name)
        if array.dtype.kind == "f":
            found[name] = (first, array)
            first += array.size
    return found


def _state(system: System, work: Work, turns: int) -> list[str]:
    size = sum(array.size for _, array in _memory(work).values())
    fields = {"q": system.positions, "qd": system.rates, "turns": turns, "breaks": system.breaks.size}
    fields |= {"coefficients": system.coefficients.size, "memory": size}
    arrays = [f"  double {name}[{max(count, 1)}];" for name, count in fields.items()]
    return ["typedef struct {", "  double now, since, last_h;", "  double inputs[INPUTS + 1];", *arrays,
            f"  int64_t whole[{work.counts.size}];", "} State;"]  # fmt: skip


def _start(work: Work, start: tuple[Array, Array, Array]) -> list[str]:
    lines = ["static void start_of(State *s) {", "  memset(s, 0, sizeof *s);"]
    for name, values in zip(("q", "qd", "inputs"), start, strict=True):
        if len(values):
            lines.append(f"  static const double {name}[] = {{{_numbers(values)}}};")
            lines.append(f"  memcpy(s->{name}, {name}, sizeof {name});")
    for first, array in _memory(work).values():
        flat = array.ravel()
        lines += [f"  s->memory[{first + k}] = {flat[k]!r};" for k in np.flatnonzero(flat).tolist()]
    return [*(line.replace("np.float64(", "(") for line in lines), "}"]


def _view(array: Array, at: str) -> str:
    steps = [stride // 8 for stride in array.strides] if array.size else [1] * array.ndim
    sizes = ", ".join(map(str, array.shape))
    return f"{{{at}, {{{sizes}}}, {{{', '.join(map(str, steps))}}}}}"


def _wire(system: System, work: Work, tableau: Any, programs: Sequence[str]) -> list[str]:
    """Records that point to tables and into the memory of an instance."""
    tables: list[str] = []
    body: list[str] = []
    for word, bundle in (("system", system), ("tableau", tableau)):
        for name in bundle._names:
            value = getattr(bundle, name)
            if word == "system" and name in ADDRESSES:
                known = f"program_{name}" in programs
                address = (
                    f"(int64_t)(intptr_t)program_{name}_one"
                    if known
                    else str(int(bool(value)) if name == "gaps" else 0)
                )
                body.append(f"  {word}->{name} = {address};")
            elif isinstance(value, np.ndarray):
                kind = "d" if value.dtype.kind == "f" else "i"
                own = word == "system" and name in OWN
                if not own:
                    c = "double" if kind == "d" else "int64_t"
                    tables.append(f"static {c} {word}_{name}[] = {{{_numbers(value) or '0'}}};")
                at = f"s->{name}" if own else f"{word}_{name}"
                body.append(f"  {{ {kind}{value.ndim} v = {_view(value, at)}; {word}->{name} = v; }}")
            else:
                body.append(f"  {word}->{name} = {value!r};")
    for name, (first, array) in _memory(work).items():
        body.append(f"  {{ d{array.ndim} v = {_view(array, f's->memory + {first}')}; work->{name} = v; }}")
    body.append(f"  {{ i1 v = {_view(work.counts, 's->whole')}; work->counts = v; }}")
    last = system.breaks.size - 1
    return [*tables, "static void wire(State *s, System *system, Work *work, Tableau *tableau) {", *body,
            f"  s->breaks[{last}] = INFINITY;", "}"]  # fmt: skip


def _assemble(problem: Problem, system: System, columns: RunColumns, gates: int) -> list[str]:
    """Inputs of the columns from inputs and outputs of the model."""
    nq, n, m = system.positions, system.rates, len(problem.robot.actuated)
    given = nq + n
    where = {
        "q": "y", "position_rates": f"y + {nq}", "acceleration": f"y + {2 * nq + n}", "gates": f"x + {system.gate_x}",
        "effort": f"x + {given}" if problem.prescribed == "efforts" else f"y + {2 * nq + 2 * n}",
        "work": f"y + {system.outputs}",
    }  # fmt: skip
    where |= {f"wrench_{name}": f"x + {given + m + 6 * k}" for k, name in enumerate(problem.wrenches)}
    lines, first = ["static void assemble(const double *x, const double *y, double *z) {", "  (void)x;"], 0
    for name, size in columns.groups.items():
        if size:
            lines.append(f"  memcpy(z + {first}, {where[name]}, sizeof(double) * {size});")
        if name == "gates":  # efforts say all of what holds joints
            lines += [f"  z[{first + place}] = 0;" for place in problem.holding]
        first += size
    return [*lines, "}"]


FINISH = """static double followed(double angle, double before) {
  const double turn = 6.283185307179586;
  return angle + turn * floor((before - angle) / turn + 0.5);
}
static void quaternion(const double *R, double *before, double *out) {
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


def _finish(columns: RunColumns) -> list[str]:
    """Columns from the outputs of their program: angles and quaternions go on from where they were."""
    lines, turn = [], 0
    for k, place in enumerate(columns.places.values()):
        word, *numbers = place.split()
        if word == "theta":
            first = int(numbers[0])
            lines.append(f"  c[{k}] = turns[{turn}] = followed(atan2(y[{first + 1}], y[{first}]), turns[{turn}]);")
            turn += 1
        elif word == "quaternion":
            if numbers[1] == "0":
                lines.append(f"  quaternion(y + {numbers[0]}, turns + {turn}, c + {k});")
                turn += 4
        elif word == "opening":
            first, count = int(numbers[0]), int(numbers[1])
            lines.append(f"  c[{k}] = 0;")
            lines.append(f"  for (int k = {first}; k < {first + count}; ++k) c[{k}] = fmax(c[{k}], fabs(y[k]));")
        else:
            lines.append(f"  c[{k}] = y[{word}];")
    return [FINISH, "static void finish(const double *y, double *c, double *turns) {", "  (void)turns;", *lines, "}"]
