"""Models of a robot made from its traces, or read from the disk where they are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from parflex.checks import names, number
from parflex.codegen import program_store
from parflex.codegen.memory_pause import no_search_for_cycles
from parflex.codegen.model import Model
from parflex.codegen.model_options import OPERATOR_LIMIT, Options
from parflex.errors import InputError
from parflex.forces.spare_motors import EffortLimit, Preload, Weights
from parflex.robot.load import omitted_terms
from parflex.robot.robot import Robot

if TYPE_CHECKING:
    from parflex.codegen.traces.tracing import Trace, Tracer


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
    robot : Robot
        Robot, from `load`.
    name : str
        Model: inverse, direct, mass-matrix, kinematics, geometry, step, ...
    parameters : str or Sequence[str], default "numbers"
        'numbers', 'base' (base parameters as symbols) or names.
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.
    include : Sequence[str], default None
        The only joint terms that act: friction, motor-inertia, springs; None: all.
    wrench_frames : Sequence[str], default ()
        Frames with a wrench as an input of the model.
    friction_width : float, default 0.0
        Rate over which Coulomb friction changes its sign; 0: at once (rad/s, m/s).
    independent : Sequence[str], default ()
        Rates that a model of a state integrates; () leaves the choice.
    rows : Sequence[int], default ()
        Closure rows that determine the dependent rates; () leaves the choice.
    coordinates : str, default None
        Inputs of inverse, direct, mass-matrix, kinematics and jacobian-of-inverse: 'platform' (its pose, twist and
        acceleration, or those of the end effector), 'motors', 'independent' (rates) or 'all'; None: those of the form.
    checks : bool, default False
        With coordinates 'all', inverse and direct model: also output relative closure errors of positions, rates and
        accelerations, and a bound of the condition number of what is solved.
    weights : Mapping[str, float], default None
        Weights of the squared efforts by motor, where motors are more than freedoms; those not named have 1. Parameters
        `weight[JOINT]`.
    preload : Mapping[str, float], default None
        Internal efforts by motor, of one motor for each that is spare, at home; elsewhere the internal efforts nearest
        to those of all motors there, parameters `preload[JOINT]` (N, N m).
    effort_limit : float or Mapping[str, float], default None
        Largest effort of all motors, or of each; a pair is a lowest and a highest effort. With up to two spare motors.
        Parameters `lowest[JOINT]`, `highest[JOINT]` (N, N m).
    operator_limit : int, default 200000
        Longest program, in operators.

    Returns
    -------
    Model
        Program with named inputs and outputs (SI), counts of operators, and source code for all targets.

    Examples
    --------
    >>> inverse = parflex.model(parflex.load("rx90"), "inverse")
    """
    from parflex.codegen.traces.spare_parameters import with_spare_words

    options = replace(
        _options(parameters, omitted_terms(without, include), wrench_frames, friction_width),
        independent=names(independent, "independent"), rows=tuple(int(row) for row in rows),
        coordinates=coordinates, checks=bool(checks),
    )  # fmt: skip
    options = with_spare_words(robot, name, options, weights, preload, effort_limit)
    return model_with(robot, name, options, operator_limit)


def model_with(robot: Robot, name: str, options: Options, operator_limit: int) -> Model:
    """The model with these options, from the disk where it is kept."""
    key = program_store.key_of(robot, name, options, operator_limit)
    kept = program_store.read(key) if key is not None else None
    if kept is not None:
        return Model(**kept)
    from parflex.codegen.traces.trace import traces  # and all that makes programs: what is kept starts without it

    with no_search_for_cycles():
        ways = (_made(robot, traced, options, operator_limit) for traced in traces(robot, name, options))
        made = min(ways, key=_total)
    if key is not None:
        program_store.write(key, made)
    return made


def kept_program(
    robot: Robot,
    name: str,
    options: Options,
    outputs: Callable[[Tracer], Mapping[str, Any]],
    *more: Any,
    limit: int = OPERATOR_LIMIT,
    quick: bool = False,
) -> Model:
    """The program of these outputs, from the disk where it is there; `more` is all else that it depends on."""
    key = program_store.key_of(robot, name, options, *more, limit, quick)
    kept = program_store.read(key) if key is not None else None
    if kept is not None:
        return Model(**kept)
    from parflex.codegen.passes.optimise import make_program
    from parflex.codegen.traces.tracing import Tracer

    tracer = Tracer()
    found = {group: np.array(values, dtype=object) for group, values in outputs(tracer).items()}
    program = make_program(tracer.graph, f"{robot.name}_{name}", found, [], limit, quick)
    inputs = {group: symbols.shape for group, symbols in tracer.inputs.items()}
    made = Model(program.name, program, inputs, {group: values.shape for group, values in found.items()})
    if key is not None:
        program_store.write(key, made)
    return made


def _options(parameters: Any, without: tuple[str, ...], wrenches: Any, friction_width: float) -> Options:
    if not isinstance(parameters, str):
        parameters = names(parameters, "parameters", "['M[platform]']")
    width = number(friction_width, "friction_width", least=0.0, example=1e-3)
    if width and "friction" in without:
        raise InputError(
            "friction is left out, so its width has no effect",
            key="friction_width",
            value=width,
            hint="omit the width, or include friction",
        )
    return Options(parameters, without, wrenches=names(wrenches, "wrench_frames", "['platform']"), friction_width=width)


def _made(robot: Robot, traced: Trace, options: Options, limit: int) -> Model:
    """One way of writing a model."""
    from parflex.codegen.emit.heading import origin
    from parflex.codegen.passes.optimise import make_program
    from parflex.codegen.ports import signals_of
    from parflex.codegen.samples import sample_inputs
    from parflex.formulations.coordinates import input_frame

    name = traced.model
    title = "_".join(word for word in (robot.name, name, options.coordinates) if word)  # of files and functions
    program = make_program(traced.graph, title, traced.outputs, list(traced.parameters), limit)
    inputs = {group: symbols.shape for group, symbols in traced.inputs.items()}
    outputs = {group: values.shape for group, values in traced.outputs.items()}
    return Model(
        program.name,
        program,
        inputs,
        outputs,
        traced.parameters,
        traced.labels,
        sample_inputs(robot, traced.inputs, input_frame(robot, options.coordinates)),
        signals_of(robot, name, inputs, outputs, program.parameters, traced.labels, options.coordinates),
        origin(robot, traced, options),
    )


def _total(made: Model) -> int:
    return made.counts["total"]


__all__ = ["kept_program", "model", "model_with"]
