"""All columns of a run as one program: what `simulate` reports is what an FMU puts out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from parflex.codegen.optimise import make_program
from parflex.codegen.options import OPERATOR_LIMIT, Options, prepared_robot
from parflex.codegen.outputs import signal_outputs
from parflex.codegen.program import Program
from parflex.codegen.tracer import Tracer
from parflex.exchange.fmu.plant_parameters import with_symbols
from parflex.recursion.kinematics import pose
from parflex.simulation.outputs import AXES, axis_in_plane, is_tilted, motion_columns, signal_columns
from parflex.simulation.problem import Problem
from parflex.spatial.rotations import ORIENTATION

Array = np.ndarray


@dataclass(frozen=True)
class RunColumns:
    """The program, its groups of inputs with their sizes, and where each column is among its outputs.

    A place is a number; "theta k" is an angle with cosine and sine from the output k on, "quaternion k part" one of the
    rotation matrix from k on, "opening k count" the largest of these.
    """

    program: Program
    groups: dict[str, int]
    places: dict[str, str]

    @property
    def names(self) -> list[str]:
        """Columns in the order of `simulate`, without the time."""
        return list(self.places)


def run_columns(
    problem: Problem, frames: Sequence[str], given_names: Collection[str] = (), parameters: Sequence[str] = ()
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
    found = {name: np.asarray(values, dtype=object)[None] for name, values in made.items()}
    given = [groups["effort"], *(groups[f"wrench_{name}"] for name in problem.wrenches)]
    found |= {"q": groups["q"][None], "change": groups["position_rates"][None], "effort": groups["effort"][None]}
    found |= {"given": np.concatenate(given)[None], "work": groups["work"][None]}
    run: Any = SimpleNamespace(t=np.zeros(1))
    plain = signal_columns(problem, run, found, ())
    outputs: dict[str, Any] = {}
    places: dict[str, str] = {}
    home = pose(robot.tree, robot.home)
    for name in frames:
        _add_frame(name, found, robot.tree.planar, home.of(robot.tree.places[name])[0], outputs, places)
    for name, values in plain.items():
        if name not in ("t", "closure_error", *given_names):
            _add(outputs, places, name, values[0])
    places["closure_error"] = f"opening {len(outputs)} {len(opening)}"
    outputs |= {f"opening {k}": value for k, value in enumerate(opening)}
    program = make_program(tracer.graph, "program_columns", outputs, list(parameters), OPERATOR_LIMIT)
    return RunColumns(program, {name: symbols.size for name, symbols in groups.items()}, places)


def _add(outputs: dict[str, Any], places: dict[str, str], name: str, value: Any) -> None:
    places[name] = str(len(outputs))
    outputs[name] = value


def _add_frame(
    name: str, found: dict[str, Array], planar: bool, at_home: Array, outputs: dict[str, Any], places: dict[str, str]
) -> None:
    """Columns of a frame: its turn is made of its rotation matrix outside of the program, without jumps."""
    position, R = found[f"{name}.position"], found[f"{name}.rotation"]
    for k, axis in enumerate(AXES[: 2 if planar else 3]):
        _add(outputs, places, f"{name}.{axis}", position[0, k])
    first = len(outputs)
    if planar:
        places[f"{name}.theta"] = f"theta {first}"
        along = axis_in_plane(at_home)
        outputs |= {f"{name} cosine": R[0, 0, along], f"{name} sine": R[0, 1, along]}
    else:
        places.update({f"{name}.{word}": f"quaternion {first} {k}" for k, word in enumerate(ORIENTATION)})
        outputs |= {f"{name} rotation {k} {m}": R[0, k, m] for k in range(3) for m in range(3)}
    for word, values in motion_columns(name, R, found[f"{name}.motion"], planar, is_tilted(at_home)).items():
        _add(outputs, places, word, values[0])
