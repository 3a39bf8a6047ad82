"""A model of a robot as a program: `model(...)`, counts, samples and files."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from parflex.checks import names, number, require, short_text
from parflex.codegen import cache
from parflex.codegen.options import OPERATOR_LIMIT, Options
from parflex.codegen.program import Program, run
from parflex.errors import InputError, did_you_mean
from parflex.forces.effort_allocation import EffortLimit, Preload, Weights
from parflex.records import Answer, count_of, name_list
from parflex.recursion.kinematics import pose
from parflex.robot.load import omitted_terms
from parflex.robot.robot import Robot
from parflex.robot.states import as_numbers

if TYPE_CHECKING:
    from parflex.codegen.signals_table import Signal
    from parflex.codegen.tracer import Trace, Tracer

Array = np.ndarray
FLOAT = np.dtype(float)
TARGETS = ("c", "llvm", "numpy", "jax", "casadi", "sympy")
BLOCK = 4_000_000  # values that a batch is worked on with at once, in NumPy
SCRIPT_LIMIT = 20_000  # operators beyond which JAX, CasADi and SymPy take minutes


def model(
    robot: Robot,
    name: str,
    *,
    parameters: str | Sequence[str] = "numbers",
    without: Sequence[str] = (),
    include: Sequence[str] | None = None,
    wrench_frames: Sequence[str] = (),
    friction_width: float = 0.0,
    independent: Sequence[str] = (),
    rows: Sequence[int] = (),
    coordinates: Literal["platform", "motors", "independent", "all"] | None = None,
    checks: bool = False,
    weights: Weights | None = None,
    preload: Preload | None = None,
    effort_limit: EffortLimit | None = None,
    operator_limit: int = OPERATOR_LIMIT,
) -> Model:
    """Compiled model of a robot, with the fewest operators of the known ways to write it.

    What is in the robot file acts, except what `without` names. Programs are kept on disk.

    Parameters
    ----------
    robot, name, parameters, without, include, wrench_frames, friction_width, independent, rows, weights, operator_limit
        See `parflex.api.WORDS`.
    coordinates : str, default None
        Inputs of inverse, direct, mass-matrix, kinematics and jacobian-of-inverse: 'platform' (its pose, twist and
        acceleration, or those of the end effector), 'motors', 'independent' (rates) or 'all'; None: those of the form.
    checks : bool, default False
        With coordinates 'all', inverse and direct model: also output relative closure errors of positions, rates and
        accelerations, bounds of the condition number of what is solved and of the ratio of pivots of the mass matrix,
        the number of limits that are exceeded, and a `verdict`, at most 1 where all of these are small.
    preload : Mapping[str, float], default None
        Internal efforts by motor, one for each redundant motor, at home; elsewhere the internal efforts nearest to
        those of all motors there, parameters `preload[JOINT]` (N, N m).
    effort_limit : float or Mapping[str, float], default None
        Largest efforts (N, N m), which change no effort: the status is 2 where one is exceeded; parameters
        `lowest[JOINT]`, `highest[JOINT]`.

    Returns
    -------
    Model
        Program with named inputs and outputs (SI), counts of operators, and source code for all targets.
    """
    from parflex.codegen.tracer import with_allocation_options

    options = replace(
        _options(parameters, omitted_terms(without, include), wrench_frames, friction_width),
        independent=names(independent, "independent"), rows=tuple(int(row) for row in rows),
        coordinates=coordinates, checks=bool(checks),
    )  # fmt: skip
    options = with_allocation_options(robot, name, options, weights, preload, effort_limit)
    return model_with(robot, name, options, operator_limit)


def model_with(
    robot: Robot, name: str, options: Options, operator_limit: int = OPERATOR_LIMIT,
    making: Callable[[], None] | None = None,
) -> Model:  # fmt: skip
    """The model with these options, from the disk where it is kept; `making` is called before it is made."""

    def build() -> Model:
        if making is not None:
            making()
        from parflex.codegen.trace import traces  # and all that makes programs: what is kept starts without it

        with garbage_collection_paused():
            candidates = (_made(robot, traced, options, operator_limit) for traced in traces(robot, name, options))
            return min(candidates, key=lambda candidate: candidate.counts["total"])

    return cache.stored(cache.key_of(robot, name, options, operator_limit), build)


def cached_program(
    robot: Robot,
    name: str,
    options: Options,
    outputs: Callable[[Tracer], Mapping[str, Any]],
    *more: Any,
    limit: int = OPERATOR_LIMIT,
    quick: bool = False,
) -> Model:
    """The program of these outputs, from the disk where it is there; `more` is all else that it depends on."""

    def build() -> Model:
        from parflex.codegen.optimise import make_program
        from parflex.codegen.tracer import Tracer

        tracer = Tracer()
        expressions = {group: np.array(values, dtype=object) for group, values in outputs(tracer).items()}
        program = make_program(tracer.graph, f"{robot.name}_{name}", expressions, [], limit, quick)
        inputs = {group: symbols.shape for group, symbols in tracer.inputs.items()}
        return Model(program.name, program, inputs, {group: values.shape for group, values in expressions.items()})

    return cache.stored(cache.key_of(robot, name, options, *more, limit, quick), build)


def _options(parameters: Any, without: tuple[str, ...], wrenches: Any, friction_width: float) -> Options:
    if not isinstance(parameters, str):
        parameters = names(parameters, "parameters", "['M[platform]']")
    width = number(friction_width, "friction_width", least=0.0, example=1e-3)
    acts, hint = not width or "friction" not in without, "omit the width, or include friction"
    require(acts, "friction is left out, so its width has no effect", "friction_width", hint, width)
    return Options(parameters, without, wrenches=names(wrenches, "wrench_frames", "['platform']"), friction_width=width)


def _made(robot: Robot, traced: Trace, options: Options, limit: int) -> Model:
    """One way of writing a model."""
    from parflex.codegen.optimise import make_program
    from parflex.codegen.signals_table import program_signals
    from parflex.codegen.source_files import provenance
    from parflex.formulations.coordinates import input_frame

    name = traced.model
    title = "_".join(word for word in (robot.name, name, options.coordinates) if word)  # of files and functions
    program = make_program(traced.graph, title, traced.outputs, list(traced.parameters), limit)
    inputs = {group: symbols.shape for group, symbols in traced.inputs.items()}
    outputs = {group: values.shape for group, values in traced.outputs.items()}
    sample = sample_inputs(robot, traced.inputs, input_frame(robot, options.coordinates))
    rows = program_signals(robot, name, inputs, outputs, program.parameters, traced.labels, options.coordinates)
    about, numbers = provenance(robot, traced, options), traced.parameters
    return Model(program.name, program, inputs, outputs, numbers, traced.labels, sample, rows, about)


class _Compiled:
    """The setup of a program and the compiled kernel of its main part, made when they are asked for."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @cached_property
    def parts(self) -> tuple[Program, Any]:
        """Both of them."""
        from parflex.codegen.llvm_jit import Kernel

        if not self.program.parameters:  # nothing to prepare, and no instruction need be read where all is kept
            return Program(f"{self.program.name}_setup", (), (), (), 0, ()), Kernel(self.program)
        setup, main = self.program.split()
        return setup, Kernel(main)


@dataclass(frozen=True, eq=False, repr=False)
class Model(Answer):
    """A `program` with a `name`, the shapes of its `inputs` and `outputs` (SI) and values of symbolic `parameters`.

    `labels` names the entries of groups, `signals` has the unit of each, `sample` inputs at home, `about` the options.
    """

    name: str
    program: Program
    inputs: dict[str, tuple[int, ...]]
    outputs: dict[str, tuple[int, ...]]
    parameters: dict[str, float] = field(default_factory=dict)
    labels: dict[str, list[str]] = field(default_factory=dict)
    sample: dict[str, Array] = field(default_factory=dict, repr=False)  # inputs at home, for examples
    signals: list[Signal] = field(default_factory=list, repr=False)  # name and unit of every input and output
    about: dict[str, Any] = field(default_factory=dict, repr=False)  # version, robot, options that it was made from
    shared: InitVar[_Compiled | None] = None  # of a model of the same program; `replace` drops it
    _compiled: _Compiled = field(init=False, repr=False, compare=False)

    def __post_init__(self, shared: _Compiled | None) -> None:
        object.__setattr__(self, "_compiled", _Compiled(self.program) if shared is None else shared)

    @property
    def counts(self) -> dict[str, int]:
        """Operators of one call."""
        return self.program.counts()

    @property
    def input_names(self) -> list[str]:
        """Names of all inputs, one behind the other: the group, and the coordinate or motor of the robot file."""
        return self._names("input")

    @property
    def output_names(self) -> list[str]:
        """Names of all outputs, one behind the other."""
        return self._names("output")

    def _names(self, direction: str) -> list[str]:
        return [f"{signal['group']} {signal['name']}" for signal in self.signals if signal["direction"] == direction]

    @property
    def _parts(self) -> tuple[Program, Any]:
        """The setup, and the compiled kernel of the main part."""
        return self._compiled.parts

    @cached_property
    def _constants(self) -> Array:
        """What the setup makes from the parameters."""
        numbers = self._parts[0].evaluate({name: self.parameters[name] for name in self.program.parameters})
        return np.array(list(numbers.values()))

    def machine_code(self) -> tuple[Any, Array]:
        """The compiled kernel, for other compiled code, and the constants that stand behind its inputs."""
        return self._parts[1], self._constants

    def with_parameters(self, values: Mapping[str, float]) -> Model:
        """The same model with `values` (SI) of symbolic parameters by name; what is compiled stays compiled."""
        for name, value in values.items():
            if name not in self.parameters:
                hint = did_you_mean(name, self.parameters)
                raise InputError(f"the model has no parameter '{name}'", key="parameters", value=name, hint=hint)
            valid = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(value)
            message = f"the value of '{name}' is not a finite number"
            require(valid, message, "parameters", "give finite numbers", value)
        numbers = self.parameters | {name: float(value) for name, value in values.items()}
        return replace(self, parameters=numbers, shared=self._compiled)

    def __call__(self, *unnamed: Any, **arrays: Any) -> dict[str, Array]:
        """Outputs by name for inputs by name, compiled by LLVM; arrays may have one more axis in front, the batch."""
        if unnamed:
            listed_inputs = ", ".join(f"{name}=..." for name in self.inputs)
            hint = f"call it with {listed_inputs}, or its `call(x)` with all numbers one after the other"
            raise InputError(f"a model takes its inputs by name: {', '.join(self.inputs)}", key="inputs", hint=hint)
        (_, kernel), constants = self._parts, self._constants
        flat, batch = self._flat(arrays)
        x = flat[0] if batch is None else flat
        out = np.empty((*x.shape[:-1], len(self.program.outputs)))
        return self._shaped(kernel.write(x, constants, out), batch)

    def call(self, x: Array, out: Array | None = None) -> Array:
        """Flat outputs for flat inputs: `x` has the numbers of all groups of `inputs` one after the other.

        `x` (n,) or (batch, n) holds floats, `out` takes the numbers of all groups of `outputs` likewise and is given
        back; where it is given, nothing is allocated once the first call has compiled the program.
        """
        (_, kernel), constants = self._parts, self._constants
        width, size = len(self.program.variables), len(self.program.outputs)
        if type(x) is not np.ndarray or x.dtype is not FLOAT:
            x = as_numbers(x, "x")
        if x.ndim not in (1, 2) or x.shape[-1] != width:
            hint = f"give {width} numbers, {', '.join(self.inputs)} one after the other, or (batch, {width})"
            message = f"'x' has the shape {x.shape}, not ({width},)"
            raise InputError(message, key="x", value=str(x.shape), hint=hint)
        shape = (*x.shape[:-1], size)
        result: Array = kernel.write(x, constants, output_array(out, shape))
        return result

    def compiled(self) -> Path | None:
        """Compile for this machine; the file that keeps the machine code, None where nothing is kept."""
        return self._parts[1].kept

    def evaluate(self, target: str = "numpy", **arrays: Any) -> dict[str, Array]:
        """Outputs for inputs by name (`arrays`, SI) by the library `target`: "numpy", or "jax", also transformed."""
        from parflex.codegen.emit_python import functions_of

        flat, batch = self._flat(arrays)
        numbers = [float(self.parameters[name]) for name in self.program.parameters]
        functions = functions_of(target)
        if batch is None or target in ("casadi", "sympy"):  # whose numbers are single ones
            size = sum(int(np.prod(shape)) for shape in self.outputs.values())
            values = np.array([[float(v) for v in run(self.program, [*row, *numbers], functions)] for row in flat])
            return self._shaped(values[0] if batch is None else values.reshape(len(flat), size), batch)
        # blocks keep what a long program works on small; other libraries may trace the batch and see it whole
        rows = max(BLOCK // max(len(self.program.instructions), 1), 1) if target == "numpy" else max(batch, 1)
        blocks = []
        for start in range(0, max(batch, 1), rows):
            block = flat[start : start + rows]
            results = run(self.program, [*block.T, *numbers], functions)
            blocks.append(np.array([np.broadcast_to(np.asarray(value), (len(block),)) for value in results]).T)
        return self._shaped(np.concatenate(blocks), batch)

    def function(self, target: str) -> Callable[[Sequence[Any]], list[Any]]:
        """A function of the flat list of inputs, on the scalars of the library `target`: numpy, jax, casadi, sympy."""
        from parflex.codegen.emit_python import functions_of

        numbers = [float(self.parameters[name]) for name in self.program.parameters]
        functions = functions_of(target)
        return lambda flat: run(self.program, [*flat, *numbers], functions)

    def casadi_function(self) -> Any:
        """The model as a CasADi Function, one argument and one result for each group (matrices by rows)."""
        from parflex.codegen.emit_python import library_of
        from parflex.codegen.source_files import identifier

        ca = library_of("casadi")
        _refuse_long("casadi", self.program)
        groups = {name: ca.SX.sym(name, int(np.prod(shape))) for name, shape in self.inputs.items()}
        flat = [group[k] for group in groups.values() for k in range(group.numel())]
        results = iter(self.function("casadi")(flat))
        outputs = [ca.vertcat(*(next(results) for _ in range(int(np.prod(shape))))) for shape in self.outputs.values()]
        names = list(groups), list(self.outputs)
        both = {"allow_duplicate_io_names": True}  # positions go in as a guess and come out closed
        return ca.Function(identifier(self.name), list(groups.values()), outputs, *names, both)

    def _flat(self, arrays: Mapping[str, Any]) -> tuple[Array, int | None]:
        """Rows of inputs, and the size of the batch or None; wrong names and shapes are refused by name."""
        for name in arrays:
            if name not in self.inputs:
                raise InputError(f"the model has no input '{name}'", key=name, hint=did_you_mean(name, self.inputs))
        batch: int | None = None
        parts = []
        for position, (name, shape) in enumerate(self.inputs.items()):
            if name not in arrays:
                raise InputError(f"the input '{name}' is missing", key=name, hint=f"give an array of shape {shape}")
            try:
                value = np.asarray(arrays[name], dtype=float)
            except (TypeError, ValueError):
                message = f"the input '{name}' is not an array of numbers"
                raise InputError(message, key=name, hint=f"shape {shape}") from None
            single = value.shape == shape
            size = None if single else value.shape[0] if value.ndim else -1
            if not single and value.shape[1:] != shape:
                message = f"the input '{name}' has the shape {value.shape}, not {shape}"
                hint = f"give {shape}, or (batch, ...) before it for all inputs"
                raise InputError(message, key=name, value=str(value.shape), hint=hint)
            if position and size != batch:
                message = f"the input '{name}' has another batch size than the inputs before it"
                raise InputError(message, key=name, hint="give all inputs the same batch size")
            batch = size
            parts.append(value.reshape(1 if single else value.shape[0], int(np.prod(shape))))
        return np.concatenate(parts, axis=1) if parts else np.zeros((1, 0)), batch

    def _shaped(self, values: Array, batch: int | None) -> dict[str, Array]:
        result, start = {}, 0
        for name, shape in self.outputs.items():
            size = int(np.prod(shape))
            part = values[..., start : start + size]
            result[name] = part.reshape(shape if batch is None else (batch, *shape))
            start += size
        return result

    def files(self, target: str, float32: bool = False) -> dict[str, str]:
        """File name -> text for the `target` c, llvm, numpy, jax, casadi or sympy; `float32`: single precision (C)."""
        from parflex.codegen.emit_python import emit_python
        from parflex.codegen.source_files import array_entries, heading, identifier

        hint = did_you_mean(target, TARGETS)
        require(target in TARGETS, f"there is no target '{target}'", "target", hint, target)
        if target == "c":
            from parflex.codegen.emit_c import emit_c, emit_c_example

            flat, _ = self._flat(self.sample)
            parameters = [self.parameters[name] for name in self.program.parameters]
            sources = emit_c(self.program, float32, self.signals, self.about)
            return sources | emit_c_example(self.program, flat[0].tolist(), parameters, float32)
        hint = "use target='c', or leave out float32"
        require(not float32, "single precision is available in C only", "float32", hint)
        if target == "llvm":
            from parflex.codegen.emit_llvm import build_module

            program = self.program.split()[1] if self.program.parameters else self.program
            lines = heading(self.program, self.about)
            for word, direction in (("x", "input"), ("p", "parameter"), ("y", "output")):
                lines += [f"{word} {entry}" for entry in array_entries(self.program, self.signals, direction)]
            head = "".join(f"; {line}\n" for line in lines)
            text, _ = build_module(program, ("one", 1), ("many", 2))
            return {f"{identifier(self.name)}.ll": f"{head}{text}"}
        if target != "numpy":
            _refuse_long(target, self.program)
        return emit_python(self.program, target, self.signals, self.about)

    def _told(self) -> str:
        groups = [[f"{n}{list(shape)}" for n, shape in side.items()] for side in (self.inputs, self.outputs)]
        parts = [*map(name_list, groups), f"{self.counts['total']} operators"]
        parts += [count_of(len(self.parameters), "parameter")] * bool(self.parameters)
        return f"{self.name}: inputs " + ", ".join([f"{parts[0]}, outputs {parts[1]}", *parts[2:]])


def output_array(out: Array | None, shape: tuple[int, ...]) -> Array:
    """Return an array of this shape that takes outputs; refuse one that cannot."""
    if out is None:
        return np.empty(shape)
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != FLOAT or not out.flags.writeable:
        text = f"'out' is not an array of floats of the shape {shape} that can be written"
        raise InputError(text, key="out", value=short_text(out), hint=f"give np.empty({shape})")
    return out


def _refuse_long(target: str, program: Program) -> None:
    count, hint = len(program.instructions), f"{target} accepts up to {SCRIPT_LIMIT}; use c, llvm or numpy"
    message = f"the program has {count} instructions, too many for {target}"
    require(count <= SCRIPT_LIMIT, message, "target", hint, target)


def sample_inputs(robot: Robot, inputs: dict[str, Array], frame: str) -> dict[str, Array]:
    """Numbers for the inputs of a trace: home, with small rates and accelerations; `frame`: whose pose goes in."""
    home, tree = robot.home, robot.tree
    at = pose(tree, home)
    body = next((j for j, link in enumerate(tree.links) if link.joint.moves_freely), None)
    platform = tree.places[frame]
    positions = {"q": home, "guess": home, "last": home}
    sensors = np.array([home[tree.links[tree.link_of_rate[k]].q.start] for k in (*robot.actuated, *robot.sensed)])
    positions["motor_position"] = sensors[: len(robot.actuated)]
    sample = {}
    for name, symbols in inputs.items():
        if name in positions:
            value = positions[name]
        elif name in ("measured", "reference"):
            value = sensors[: len(symbols)]
        elif name in ("last_position", "last_turn") and body is not None:
            body_pose = home[tree.links[body].q]
            split = 2 if tree.planar else 3
            value = body_pose[:split] if name == "last_position" else body_pose[split:]
        elif name == "position":
            value = at.of(platform)[1][: symbols.shape[0]]
        elif name == "rotation":
            value = at.of(platform)[0][: symbols.shape[0], : symbols.shape[1]]
        elif name in ("elastic", "elastic_rate"):
            value = 1e-3 * np.ones(symbols.shape)  # a flexible body deforms a little
        else:
            value = 0.1 * (1 + np.arange(symbols.size)).reshape(symbols.shape)
        sample[name] = np.asarray(value, dtype=float)
    return sample


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause the search; memory whose last reference is gone is still given back at once."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
