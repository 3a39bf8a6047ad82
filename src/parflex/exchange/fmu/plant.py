"""A robot as the plant of an FMU: its problem, columns, programs and C source.

For the start of a flexible robot, the unit must know which joints follow when others are specified. In a run the
dependent rates may be those of deformations; at the start joints are specified, the remaining joints follow from the
loops, and bodies keep their deformation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

import numpy as np

from parflex.closure.mobility import SMALL, scale
from parflex.codegen.emit_c import emit_c
from parflex.codegen.loop_c import c_text, c_type
from parflex.codegen.loop_compiler import TypedLoop
from parflex.codegen.loop_types import REAL, WHOLE, ArrayKind, RecordKind, kind_of
from parflex.codegen.model import Model, cached_program
from parflex.codegen.options import Options
from parflex.codegen.outputs import closure_rows_program
from parflex.codegen.program import Program
from parflex.codegen.tangent import tangent_program
from parflex.codegen.tracer import Tracer
from parflex.errors import InputError
from parflex.exchange.fmu.columns import (
    RunColumns,
    finish_lines,
    read_plant_parameters,
    run_columns,
    with_plant_parameters,
)
from parflex.exchange.fmu.description import Variable
from parflex.integrators.common import Count, Number, record
from parflex.integrators.driver import Grid, Method, System, Work, method_named, new_work
from parflex.integrators.events import settle
from parflex.records import Record
from parflex.recursion.kinematics import jacobians, pose
from parflex.robot.robot import Robot
from parflex.simulation.problem import (
    JUMP,
    LOOK,
    PartitionWatch,
    Problem,
    prepare_problem,
    read_independent,
    with_independent_rates,
)
from parflex.simulation.quantities import unit_of
from parflex.simulation.segments import OFTEN
from parflex.simulation.simulate import FRICTION_WIDTH
from parflex.simulation.start import AWAY, start_state
from parflex.simulation.step_control import DEFAULT_SHARES, ITERATION_TOLERANCE, LEAST
from parflex.trajectories.trajectory import Trajectory

Array = np.ndarray
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")
NOT_INTEGRATED = ("work.input", "work.loss")  # by a solver outside: powers are there
INCLUDED = ("core.c", "watch.c", "walk.c", "starts.c", "motions.c", "slopes.c")
ADDRESSES = ("address", "power", "gaps", "factor", "solve", "real_factor", "real_solve", "pair")
LOOP_PROGRAMS = tuple(f"program_{word}" for word in ADDRESSES)
USED_COUNTS = ("OPEN", "STARTED", "PIECE", "EVENTS", "STEPS", "REJECTED", "EVALUATIONS")
LABOUR = 40  # evaluations a step, from which on steps a quarter as long take fewer
MANY_REJECTED = 0.02  # of the steps: so many made in parts are told of
GAP = 1e-3  # rad or typical lengths: positions of motors that jump by more do not follow from their rates
OWN = ("breaks", "coefficients")  # arrays of the system that change with the inputs
LEAST_QUALITY = 0.05  # of s_f / s_r: one twentieth of a radian or so before a dead centre of the rates


@dataclass(frozen=True, eq=False, repr=False)
class FmuPlant(Record):
    """All that an FMU of a robot is made of."""

    problem: Problem
    method: Method
    system: System
    work: Work
    columns: RunColumns
    start: tuple[Array, Array, Array]
    kind: str
    step: float
    parameters: dict[str, float] = field(default_factory=dict)

    @property
    def follows(self) -> bool:
        """Whether joints that are not set follow at the start, so that no body deforms."""
        return self.kind == "cs" and watch_of(self.problem) is not None and deforms_in_loops(self.problem, self.system)

    def programs(self) -> dict[str, Program]:
        """Programs by the names that they have in C: those of the loop, of columns, of the watch, of derivatives."""
        models: dict[str, Model | None] = {"address": self.problem.model, "power": self.problem.power}
        models |= {"gaps": self.problem.gaps}
        for word, names in (("pairs", ("factor", "solve")), ("real", ("real_factor", "real_solve"))):
            pair = self.problem.stepping.get(word)
            models |= dict(zip(names, (pair.factor, pair.solve) if pair else (None, None), strict=True))
        programs = {f"program_{word}": model.program for word, model in models.items() if model is not None}
        programs["program_columns"] = self.columns.program
        watch = watch_of(self.problem)
        if watch is not None:
            programs["program_rows"] = watched_program(watch)
        if self.follows:
            programs["program_starting"] = starting_program(self.problem.robot)
        if self.kind == "me":
            programs |= {
                f"slope_{word}": tangent_program(programs[f"program_{word}"]) for word in ("address", "columns")
            }
        return programs

    def sources(self, fmi: int, token: str) -> dict[str, str]:
        """Files of C."""
        programs = self.programs()
        files: dict[str, str] = {}
        for name, program in programs.items():
            files |= emit_c(replace(program, name=name))
        heads = "".join(f'#include "{name}.h"\n' for name in programs)
        text = "#include <string.h>\n" + heads + loop_text(self.method, self.system, self.work)
        text += data_text(self, programs) + watch_text(watch_of(self.problem)) + starting_text(self)
        return files | unit_files(text, INCLUDED, self.kind, fmi, token)

    def variables(self) -> list[Variable]:
        """Time, inputs, columns; states of model exchange, or the start of co-simulation; parameters."""
        robot, tree = self.problem.robot, self.problem.robot.tree
        fmu_variables = [Variable("time", "independent", "s")]
        fmu_variables += [
            Variable(name, "input", column_unit(name, robot), float(value))
            for name, value in zip(inputs_of(self.problem), self.start[2], strict=True)
        ]
        fmu_variables += [Variable(name, "output", column_unit(name, robot)) for name in self.columns.names]
        places = [int(p) for p in self.system.simple[:, 0]] + [int(p) for p in self.system.turning]
        states = [("q", tree.position_names[p], self.start[0][p]) for p in places]
        states += [("qd", self.problem.independent[k], self.start[1][k]) for k in self.system.free]
        units = [column_unit(f"{word}.{name}", robot) for word, name, _ in states]
        first, last = len(fmu_variables), len(fmu_variables) + 2 * len(states)
        for k, ((word, name, value), unit) in enumerate(zip(states, units, strict=True)):
            if self.kind == "cs":
                fmu_variables.append(
                    Variable(f"start.{word}.{name}", "parameter", unit, float(value), reference=first + k)
                )
            else:
                title = f"state.{name}" if word == "q" else f"state.rate.{name}"
                fmu_variables.append(Variable(title, "local", unit, float(value)))
        if self.kind == "me":
            fmu_variables += [
                Variable(f"der({fmu_variables[first + k].name})", "local", _per_second(unit), None, first + k)
                for k, unit in enumerate(units)
            ]
        fmu_variables += [
            Variable(name, "parameter", _parameter_unit(name), value, reference=last + k)
            for k, (name, value) in enumerate(self.parameters.items())
        ]
        return fmu_variables


def unit_files(text: str, included: Sequence[str], kind: str, fmi: int, token: str) -> dict[str, str]:
    """The file that is compiled, and those that it includes."""
    folder = resources.files("parflex.exchange.fmu")
    names = (*included, f"fmi{fmi}.c")
    text += f'#define TOKEN "{token}"\n#define KIND_ME {int(kind == "me")}\n'
    text += "".join(f'#include "{name}"\n' for name in names)
    return {name: folder.joinpath(name).read_text("utf-8") for name in names} | {"unit.c": text}


def inputs_of(problem: Problem) -> list[str]:
    """Names of the inputs in their order: of motors, then of wrenches."""
    words = ("q", "qd", "qdd") if problem.driven else ("effort",)
    names = [f"{word}.{motor}" for word in words for motor in problem.robot.actuated_names]
    return names + [f"wrench.{problem.wrenches[k // 6]}.{WRENCH[k % 6]}" for k in wrench_channels(problem)]


def make_plant(
    robot: Robot, kind: str, drive: str, method: str, step: float, wrenches: Sequence[str], frames: Sequence[str],
    pose: Any, without: Collection[str], independent: Sequence[str] | None, parameters: Sequence[str] = (),
) -> FmuPlant:  # fmt: skip
    """The plant at its start, with rates that determine the others there."""
    chosen = method_named(method if kind == "cs" else "rk4")
    prescribed = "motors" if drive == "motions" else "efforts"
    problem = prepare_problem(
        robot, prescribed, tuple(wrenches), without, FRICTION_WIDTH, read_independent(robot, independent, prescribed),
        sticking=kind == "cs", numbers=chosen.numbers,
    )  # fmt: skip
    started = start_state(problem, robot, None, pose, None, {})
    values = read_plant_parameters(problem.robot, parameters)
    problem = with_plant_parameters(_well_chosen(problem, started.q, independent), values)
    motors = len(robot.actuated)
    powers = 3 if problem.driven else 1
    polynomials = Trajectory(np.array([0.0, np.inf]), np.zeros((1, powers, motors + 6 * len(wrenches))))
    system = problem.system(polynomials)
    work = new_work(system, chosen.stages, chosen.unknowns)
    if chosen.name == "dopri5":
        length = robot.tree.length
        Grid(step, 1, 1, LEAST * length, step, share=DEFAULT_SHARES["dopri5"], farthest=length).control(work)
    if len(work.events):
        work = work._replace(events=np.zeros((1, 4)))
    qd = started.qd[problem.places]
    inputs = np.zeros(powers * motors + len(wrench_channels(problem)))
    if problem.driven:
        places = [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]
        inputs[:motors] = started.q[places]
    left_out = [*inputs_of(problem), *(NOT_INTEGRATED if kind == "me" else ())]
    columns = run_columns(problem, frames, left_out, list(values))
    return FmuPlant(problem, chosen, system, work, columns, (started.q, qd, inputs), kind, step, values)


def _well_chosen(problem: Problem, q: Array, independent: Sequence[str] | None) -> Problem:
    """The problem with other rates where the start asks for such, as a run has them; refused near singular poses."""
    watch = watch_of(problem)
    event = None if watch is None else watch.at_start(q, problem.independent)
    if watch is None or event is None:
        return problem
    if event.kind == "cross":
        raise InputError(
            "the start is near a singular pose of the closures", key="pose", hint="start from another pose"
        )
    return problem if independent else with_independent_rates(problem, watch.best(q)[0], q)


def column_unit(name: str, robot: Robot) -> str:
    """Of a column, an input or a state, as FMI writes it."""
    if name.startswith("wrench."):
        return "N" if name[-2] == "f" else "N.m"
    unit, _ = unit_of(name, robot)
    return unit.replace("²", "2").replace("N m", "N.m") if " or " not in unit else ""


def _per_second(unit: str) -> str:
    return {"m": "m/s", "rad": "rad/s", "m/s": "m/s2", "rad/s": "rad/s2"}.get(unit, "")


def _parameter_unit(name: str) -> str:
    """Of gravity, a payload or an inertial parameter."""
    word, _, axis = name.partition(".")
    if axis:
        return "m/s2" if word == "gravity" else "kg" if axis == "mass" else "m"
    return {"M": "kg", "MX": "kg.m", "MY": "kg.m", "MZ": "kg.m"}.get(name.partition("[")[0], "kg.m2")


# -- C text ------------------------------------------------------------------------------------------------------------


def wrench_channels(problem: Problem) -> list[int]:
    """Components of wrenches that are inputs, among all six of each frame: in planar robots those in the plane."""
    inside = (0, 1, 5) if problem.robot.tree.planar else range(6)
    return [6 * frame + k for frame in range(len(problem.wrenches)) for k in inside]


def loop_text(method: Method, system: System, work: Work) -> str:
    """The loop of the method, and what begins a run, as C."""
    records = kind_of(system), kind_of(work)
    tableau = RecordKind("Tableau", kind_of(method.tableau).held)
    row, rows, typed = ArrayKind(REAL, 1), ArrayKind(REAL, 2), TypedLoop()
    loop = typed.function(method.steps, (*records, tableau, REAL, REAL, WHOLE, row, row, REAL, rows, rows))
    typed.function(record, (*records, REAL, row, row, row, row))
    typed.function(settle, (*records, REAL, row, row))
    names = f"#define LOOP {loop.name}\n#define LOOP_RESULT {c_type(loop.returned)}\n"
    return "#include <math.h>\n#include <stdint.h>\n" + c_text(typed) + names


def data_text(plant: FmuPlant, programs: Mapping[str, Program]) -> str:
    """Sizes, tables, memory and start."""
    problem, system, work, columns = plant.problem, plant.system, plant.work, plant.columns
    parameters, motors = plant.parameters, len(problem.robot.actuated)
    channels, powers = system.coefficients.shape[2], system.coefficients.shape[1]
    positions = [int(p) for p in (*system.simple[:, 0], *system.turning)]
    wrenches = [motors + k for k in wrench_channels(problem)]
    masses = [name.partition("[")[0] in ("M", "payload.mass") for name in parameters]
    sizes = {
        "POSITIONS": system.positions, "RATES": system.rates, "MOTORS": motors, "GIVEN": channels, "POWERS": powers,
        "INPUTS": powers * motors + len(wrenches), "WRENCHES": len(wrenches), "INPUT_WORK": int(Number.INPUT),
        "GAP": GAP, "COLUMNS": len(columns.places), "STATE_POSITIONS": len(positions),
        "STATES": len(positions) + len(system.free), "WIDTH_X": work.x.shape[1], "WIDTH_Y": system.outputs + 2,
        "LOOKED": sum(columns.groups.values()), "SEEN": len(columns.program.outputs), "COUNTS": len(Count),
        **{word: int(Count[word]) for word in USED_COUNTS}, "IMPLICIT": int(bool(plant.method.numbers)),
        "MANY_REJECTED": MANY_REJECTED, "LABOUR": LABOUR, "CHECKED_OFTEN": OFTEN,
        "PARAMETERS": len(parameters), "CONSTANTS": len(system.constants),
        "VARIABLES": work.x.shape[1] - len(system.constants), "SLOPES": int("slope_address" in programs),
    }  # fmt: skip
    lines = [f"#define {word} {value}" for word, value in sizes.items()]
    lines += [f"#define STEP {float(plant.step)!r}", f"#define TOLERANCE {float(ITERATION_TOLERANCE)!r}"]
    closing = [int(p in set(system.closing)) for p in range(system.positions)]
    for link in problem.robot.tree.links:  # of a turning joint some rates may be given and the others not
        turning = link.q.start in set(system.turning.tolist())
        if turning and not set(range(link.v.start, link.v.stop)) <= {problem.places[k] for k in system.free}:
            closing[link.q] = [2] * len(closing[link.q])
    tables: dict[str, Any] = {"state_positions": positions, "free_rates": system.free}
    tables |= {"closes": closing, "wrench_places": wrenches}
    periodic = [link.q.start for link in problem.robot.tree.links if link.periodic and not link.wound]
    angles = [at for at in periodic if closing[at] == 1]  # a whole turn more is the same state
    lines += ["enum { GIVEN_WHOLLY, CLOSED, PARTLY }; /* of positions */"]
    lines.append(f"#define WHOLE_TURNS {len(angles)}")
    lines.append(c_table("double", "turn_of_export", plant.start[0][angles], 0.0))
    tables |= {"masses": masses, "whole_turns": angles}
    lines += [c_table("int", name, values, 0) for name, values in tables.items()]
    lines.append(c_table("double", "motor_units", problem.robot.tree.rate_units[list(problem.robot.actuated)], 1.0))
    lines += [_called(name, programs[name]) for name in LOOP_PROGRAMS if name in programs]
    lines += _state(system, work, columns.turns, len(parameters), _constants(programs["program_columns"]))
    lines += _start(work, plant.start, list(parameters.values()))
    lines += _wire(system, work, plant.method.tableau, programs)
    lines += _with_parameters(programs)
    lines += _assemble(problem, system, columns)
    lines += finish_lines(columns, "slope_address" in programs)
    return "\n".join(lines) + "\n"


def _constants(program: Program) -> int:
    """Numbers that its setup makes of the parameters."""
    return len(program.split()[0].outputs) if program.parameters else 0


def _called(name: str, program: Program) -> str:
    """The program as the loop calls it; constants stand behind its variables."""
    arguments = f"x, x + {len(program.variables)}, y" if program.parameters else "x, y"
    return f"static void {name}_one(const double *x, double *y, int64_t n) {{ (void)n; {name}({arguments}); }}"


def _with_parameters(programs: Mapping[str, Program]) -> list[str]:
    """Setups of programs, and calls of those that the loop does not call."""
    program_names = {"address": "program_address", "columns": "program_columns"}
    constants = {"address": "constants", "columns": "column_constants"}
    changing = {word: name for word, name in program_names.items() if programs[name].parameters}
    setups = [f"{name}_setup((s)->parameters, (s)->{constants[word]});" for word, name in changing.items()]
    lines = [f"#define SET_UP(s) do {{ (void)(s); {' '.join(setups)} }} while (0)"]
    calls = {"SEE_COLUMNS": "program_columns", "SLOPE_ADDRESS": "slope_address", "SLOPE_COLUMNS": "slope_columns"}
    for macro, name in calls.items():
        word = name.partition("_")[2]
        if name in programs:
            middle = f"(s)->{constants[word]}, " if programs[name].parameters else ""
            lines.append(f"#define {macro}(s, x, y) {name}(x, {middle}y)")
    return lines


def c_table(kind: str, name: str, values: Sequence[Any] | Array, last: float | None = None) -> str:
    """A constant array of C; `last` is an entry more, because C has no empty arrays."""
    return f"static const {kind} {name}[] = {{{_numbers([*values, *([] if last is None else [last])], kind)}}};"


def _numbers(values: Sequence[Any] | Array, kind: str = "double") -> str:
    listed = np.asarray(values, dtype=int if kind == "int" else float).ravel().tolist()
    return ", ".join(map(repr, listed)).replace("inf", "INFINITY")


def _memory(work: Work) -> dict[str, tuple[int, Array]]:
    """Where each real array of the work lies."""
    places, first = {}, 0
    for name in work._names:
        array = getattr(work, name)
        if isinstance(array, np.ndarray) and array.dtype.kind == "f":
            places[name] = (first, array)
            first += array.size
    return places


def _state(system: System, work: Work, turns: int, parameters: int, of_columns: int) -> list[str]:
    """All that an instance remembers: it is saved and restored as a whole."""
    size = sum(array.size for _, array in _memory(work).values())
    sizes = {"q": system.positions, "qd": system.rates, "turns": turns, "breaks": system.breaks.size}
    sizes |= {"coefficients": system.coefficients.size, "memory": size, "closed": system.positions}
    sizes |= {"ended": 2 * system.motors, "checked": system.positions, "came": system.positions}
    sizes |= {"came_rates": system.rates, "parameters": parameters, "constants": len(system.constants)}
    sizes |= {"column_constants": of_columns}
    arrays = [f"  double {name}[{max(count, 1)}];" for name, count in sizes.items()]
    return ["typedef struct {", "  double now, since, last_h;", "  double inputs[INPUTS + 1];", *arrays,
            "  double columns[COLUMNS], out_x[WIDTH_X], out_y[WIDTH_Y]; /* as they were seen last */",
            f"  int64_t whole[{work.counts.size}];",
            "  int64_t fresh, was_checked, said, said_gap, said_bent, said_rates, begun, anew;",
            "} State;"]  # fmt: skip


def _start(work: Work, start: tuple[Array, Array, Array], parameters: Sequence[float]) -> list[str]:
    lines = ["static void start_of(State *s) {", "  memset(s, 0, sizeof *s);"]
    for name, values in zip(("q", "qd", "inputs", "parameters"), (*start, np.array(parameters)), strict=True):
        if len(values):
            lines.append(f"  {c_table('double', name, values)}")
            lines.append(f"  memcpy(s->{name}, {name}, sizeof {name});")
    lines += [f"  memcpy(s->{word}, s->q, sizeof s->{word});" for word in ("closed", "came")]
    lines.append("  memcpy(s->came_rates, s->qd, sizeof s->came_rates);")
    for first, array in _memory(work).values():
        flat = array.ravel()
        lines += [f"  s->memory[{first + k}] = {_numbers([flat[k]])};" for k in np.flatnonzero(flat).tolist()]
    return [*lines, "}"]


def _view(array: Array, at: str) -> str:
    steps = [stride // 8 for stride in array.strides] if array.size else [1] * array.ndim
    sizes = ", ".join(map(str, array.shape))
    return f"{{{at}, {{{sizes}}}, {{{', '.join(map(str, steps))}}}}}"


def _wire(system: System, work: Work, tableau: Any, programs: Collection[str]) -> list[str]:
    """Records that point to tables and into the memory of an instance."""
    tables: list[str] = []
    body: list[str] = []
    for word, bundle in (("system", system), ("tableau", tableau)):
        for name in bundle._names:
            value = getattr(bundle, name)
            if word == "system" and name in ADDRESSES:
                address = str(int(name == "gaps" and bool(value)))
                if f"program_{name}" in programs:
                    address = f"(int64_t)(intptr_t)program_{name}_one"
                body.append(f"  {word}->{name} = {address};")
            elif isinstance(value, np.ndarray):
                kind = kind_of(value)
                in_instance = word == "system" and name in OWN
                if not in_instance:
                    tables.append(f"static {c_type(kind.element)} {word}_{name}[] = {{{_numbers(value) or '0'}}};")
                at = f"s->{name}" if in_instance else f"{word}_{name}"
                body.append(f"  {{ {c_type(kind)} v = {_view(value, at)}; {word}->{name} = v; }}")
            else:
                body.append(f"  {word}->{name} = {value!r};")
    for name, (first, array) in _memory(work).items():
        body.append(f"  {{ d{array.ndim} v = {_view(array, f's->memory + {first}')}; work->{name} = v; }}")
    body.append(f"  {{ i1 v = {_view(work.counts, 's->whole')}; work->counts = v; }}")
    whole = {name: getattr(work, name) for name in work._names}
    body += [f"  work->{name} = {value};" for name, value in whole.items() if isinstance(value, int)]
    last = system.breaks.size - 1
    return [*tables, "static void wire(State *s, System *system, Work *work, Tableau *tableau) {", *body,
            f"  s->breaks[{last}] = INFINITY;", "}"]  # fmt: skip


def _assemble(problem: Problem, system: System, columns: RunColumns) -> list[str]:
    """Inputs of the columns from inputs and outputs of the model."""
    nq, n, m = system.positions, system.rates, len(problem.robot.actuated)
    input_offset = nq + n
    where = {
        "q": "y", "position_rates": f"y + {nq}", "acceleration": f"y + {2 * nq + n}", "gates": f"x + {system.gate_x}",
        "effort": f"x + {input_offset}" if problem.prescribed == "efforts" else f"y + {2 * nq + 2 * n}",
        "work": f"y + {system.outputs}",
    }  # fmt: skip
    where |= {f"wrench_{name}": f"x + {input_offset + m + 6 * k}" for k, name in enumerate(problem.wrenches)}
    lines, first = ["static void assemble(const double *x, const double *y, double *z) {", "  (void)x;"], 0
    for name, size in columns.groups.items():
        if size:
            lines.append(f"  memcpy(z + {first}, {where[name]}, sizeof(double) * {size});")
        if name == "gates":  # efforts say all of what holds joints
            lines += [f"  z[{first + place}] = 0;" for place in problem.holding]
        first += size
    return [*lines, "}"]


def deforms_in_loops(problem: Problem, system: System) -> bool:
    """Whether deformations depend on other rates in the steps of a robot."""
    return bool(set(_elastic_positions(problem.robot)) & set(system.closing.tolist()))


def starting_program(robot: Robot) -> Program:
    """Positions and rates in; opening of the loops, their rows over free rates, without units, and changes out."""

    def outputs(tracer: Tracer) -> dict[str, Array]:
        tree, closures = robot.tree, robot.closures
        q, qd = tracer.group("q", tree.nq), tracer.group("qd", tree.n)
        at = pose(tree, q)
        return {
            "opening": closures.row_units() * closures.linear_residual(at),
            "rows": np.array(scale(closures, closures.jacobian(at, jacobians(tree, at)))[:, robot.free]),
            "change": tree.position_rates(q, qd),
        }

    return cached_program(robot, "starting", Options(), outputs).program


def starting_text(plant: FmuPlant) -> str:
    """Sizes and tables; of each free rate its joint, whether it is a motor or a deformation, and where it is stored."""
    problem, robot, tree, follows = plant.problem, plant.problem.robot, plant.problem.robot.tree, plant.follows
    bent = [*_elastic_positions(robot)]
    lines = [f"#define FOLLOWING {int(follows)}", f"#define BENT {len(bent)}", f"#define BENT_FAR {AWAY!r}"]
    lines.append(c_table("int", "bent_positions", bent, 0))
    if not follows:
        return "\n".join(lines) + "\n"
    free = [int(k) for k in robot.free]
    deformed, motors, places = set(robot.deformations), list(robot.actuated), problem.places
    joints = [tree.links[tree.link_of_rate[k]].q if k not in set(tree.elastic) else slice(0, 0) for k in free]
    tables = {
        "free_rate": free,
        "joint_first": [joint.start for joint in joints],
        "joint_last": [joint.stop for joint in joints],
        "rate_role": [2 if k in deformed else 1 if k in motors else 0 for k in free],
        "rate_motor": [motors.index(k) if k in motors else -1 for k in free],
        "rate_stored": [places.index(k) if k in places else -1 for k in free],
    }
    lines += [f"#define FREE_RATES {len(free)}", f"#define ALL_RATES {tree.n}"]
    lines += [f"#define LOOP_ROWS {len(robot.closures.row_units())}", f"#define DRIVEN {int(problem.driven)}"]
    lines += ["enum { PASSIVE, MOTOR, DEFORMATION }; /* of rates */"]
    lines += [c_table("int", name, values, 0) for name, values in tables.items()]
    lines.append(c_table("double", "rate_unit", (tree.rate_units / tree.length)[free], 1.0))
    lines.append(c_table("double", "q_of_export", plant.start[0], 1.0))
    return "\n".join(lines) + "\n"


def _elastic_positions(robot: Robot) -> list[int]:
    tree = robot.tree
    positions = [p for link in tree.links for p in range(link.e.start, link.e.stop)]
    return positions + [tree.links[number].q.start for number in robot.drive_springs]


def watch_of(problem: Problem) -> PartitionWatch | None:
    """The watch of a robot with loops."""
    robot = problem.robot
    return PartitionWatch(problem) if robot.closures.size and robot.mobility.rank > 0 else None


def watched_program(watch: PartitionWatch) -> Program:
    """Closed positions in, scaled rows of the closures over all free rates out."""
    return closure_rows_program(watch.problem.robot).program


def watch_text(watch: PartitionWatch | None) -> str:
    """Sizes and tables."""
    if watch is None:
        return "#define WATCHED 0\n"
    problem, robot = watch.problem, watch.problem.robot
    place = {int(k): column for column, k in enumerate(robot.free)}
    may = [place[int(k)] for k in watch.free]
    dependent = [may[k] for k in watch.dependent(problem.independent)]
    lengths = [link.q.start for link in robot.tree.links if link.strut]
    can_jump = not robot.tree.elastic and problem.gaps is None and not problem.sticking
    rows = len(watched_program(watch).outputs) // len(robot.free)
    names = ", ".join(problem.independent)
    sizes = {
        "WATCHED": 1, "ROWS_WATCHED": rows, "COLUMNS_WATCHED": len(robot.free), "MAY_DEPEND": len(may),
        "DEPENDENT": len(dependent), "RANK": robot.mobility.rank, "LENGTHS": len(lengths), "CAN_JUMP": int(can_jump),
        "NEAR_SINGULAR": float(watch.near), "LEAST_QUALITY": LEAST_QUALITY, "FAR_FROM_CHECKED": LOOK,
        "UNEXPLAINED": JUMP, "SMALL_ROWS": SMALL, "USUAL_ROWS": float(robot.regular_closure_norm()),
    }  # fmt: skip
    lines = [f"#define {word} {value!r}" for word, value in sizes.items()]
    shown = names if len(names) < 300 else f"{names[:300]} ..."
    lines.append(f"#define INDEPENDENT {c_string(shown)}")
    tables = {"may_depend": may, "dependent": dependent, "lengths": lengths}
    lines += [c_table("int", name, values, 0) for name, values in tables.items()]
    lines.append(c_table("double", "position_units", watch.position_units))
    return "\n".join(lines) + "\n"


def c_string(text: str) -> str:
    """Words between quotation marks, for C."""
    printable = "".join(letter if " " <= letter <= "~" and letter not in '"\\' else "?" for letter in text)
    return f'"{printable}"'
