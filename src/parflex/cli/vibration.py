"""Commands `frequencies`, `stiffness` and `statespace`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parflex.cli import output
from parflex.cli.group import verb
from parflex.cli.output import Answer, Table
from parflex.errors import InputError, ParflexWarning
from parflex.io import atomic_file

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Divided, LoadCase

STEP = ("elements", "coordinates", "change", "remaining")  # of a refinement, as people see it


@verb("vibration", "frequencies navaro --pose pose-3 --modes 5", "frequencies dualemps --converge 1e-3")
def frequencies(
    robot: Divided,
    case: LoadCase,
    *,
    pose: Any = None,
    modes: int | None = None,
    converge: float | None = None,
    convergence: str | None = None,
    shapes: bool = False,
) -> Answer:
    """Natural frequencies and modes of a robot with elastic bodies or springs."""
    from parflex import natural_frequencies
    from parflex.statics.modes import energy_shares, participation

    check_convergence(converge, convergence)
    result = natural_frequencies(robot, pose, modes, converge=converge, load_case=case)
    written = draw_convergence(result, convergence)
    shares, energy = participation(result.model.configuration, result.shapes), energy_shares(result)
    answer: dict[str, Any] = {
        "frequencies_hz": result.frequencies.tolist(),
        "free_motions": result.free_motions,
        "unstable_motions": result.unstable_motions,
        "damping": result.damping.tolist(),
        "kind": [mode["kind"] for mode in energy],
        "participation": shares,
        "energy": energy,
        "independent_coordinates": result.independent_coordinates,
        "about": result.about,
        "excess": result.excess.tolist(),
        "diagnostics": result.diagnostics,
    }
    if written:
        answer["files"] = written
    if result.model.loading.internal is not None:
        answer["internal"] = result.model.loading.internal
    if shapes:
        rates = result.model.robot.tree.rate_names
        answer["shapes"] = [dict(zip(rates, shape.tolist(), strict=True)) for shape in result.shapes.T]
    rows = [
        (k, float(f), float(d), mode["kind"] or "", _largest_shares(part))
        for k, (f, d, mode, part) in enumerate(zip(result.frequencies, result.damping, energy, shares, strict=True), 1)
    ]
    title = "natural frequencies" + (" about the equilibrium" if result.about == "equilibrium" else "")
    tables: list[Table] = [
        (title, ["mode", "Hz", "damping ratio", "kind", "strain energy"], rows),
        ("motions without stiffness", ["moves most"], [(name,) for name in result.free_motions]),
    ]
    took = result.refinement
    if took is not None:
        answer |= {"elements": took.elements, "change": took.change, "remaining": took.remaining}
        answer |= {"converged": took.converged, "refinement": took.steps}
        steps = [["" if step[key] == float("inf") else step[key] for key in STEP] for step in took.steps]
        head = ["elements in each of the file", "coordinates", "change", "error left, about"]
        tables.append(("refinement", head, steps))
    code = 0 if took is None or took.converged else 1
    return Answer(answer, *tables, output.written(*written), code=code)


def _largest_shares(part: dict[str, float]) -> str:
    largest = sorted(part.items(), key=lambda entry: -entry[1])[:3]
    return ", ".join(f"{name} {share:.0%}" for name, share in largest)


def check_convergence(converge: float | None, figure: str | None) -> None:
    """Refuse the figure of a refinement where nothing is refined."""
    if figure is not None and converge is None:
        hint = "give --converge R, or leave out --convergence"
        raise InputError("nothing is refined", key="convergence", value=figure, hint=hint)


def draw_convergence(refined: Any, figure: str | None) -> list[str]:
    """Draw the change with the elements, if a figure is named; return the files."""
    if figure is None:
        return []
    from parflex import draw_convergence as draw

    draw(refined, figure)
    return [figure]


@verb("vibration", "stiffness navaro --pose pose-3 --wrench platform=0,0,-50")
def stiffness(robot: Divided, case: LoadCase, *, pose: Any = None, frame: str | None = None) -> Answer:
    """Holding efforts, deflection and section forces under gravity and loads; stiffness and compliance of a frame.

    Without loads the efforts hold a flexible robot at rest; those of a rigid one are the answer of `inverse`.
    """
    from parflex import deflection, equilibrium, linear_model
    from parflex.robot.beam_nodes import at_nodes
    from parflex.statics.linear_model import about_equilibrium
    from parflex.statics.stiffness import deflection_at, stiffness_of

    frames = list(dict.fromkeys([frame or robot.tree.end_effector, *case.forced_frames]))
    robot, pose = at_nodes(robot, pose, frames)
    if case.at_equilibrium:
        rest = equilibrium(robot, pose, load_case=case)
        deflected, result = deflection_at(rest, frames), stiffness_of(about_equilibrium(rest), frame)
    else:
        result = stiffness_of(linear_model(robot, pose, load_case=case), frame)
        deflected = deflection(robot, pose, frames, load_case=case)
    pick = robot.tree.components
    deflections = {name: values[pick].tolist() for name, values in deflected.frames.items()}
    answer = {
        "frame": result.frame,
        "directions": list(result.directions),
        "stiffness": result.stiffness,
        "compliance": result.compliance,
        "rigid": result.rigid,
        "deflection": deflections,
        "efforts": deflected.efforts,
        "section_forces": deflected.sections,
        "about": result.model.about,
        "diagnostics": deflected.diagnostics,
    }
    most = deflected.largest_stress
    if deflected.beams:
        answer |= {"beams": {name: beam.table() for name, beam in deflected.beams.items()}, "largest_stress": most}
    if deflected.elements:
        answer["elements"] = deflected.elements
    if result.model.loading.internal is not None:
        answer["internal"] = result.model.loading.internal
    ends = [(section, end) for section in deflected.sections for end in ("root", "tip") if end in section]
    sections = [(section["element"], end, *section[end].values()) for section, end in ends]
    columns = [*deflected.sections[0]["root"]] if deflected.sections else []
    largest = [(most["beam"], most["s"], most["value"] / 1e6)] if most is not None else []
    rows = [(name, *values) for name, values in deflections.items()]
    tables: list[Table] = [
        ("efforts", ["joint", "N or N m"], output.rounded(deflected.efforts.items())),
        ("deflection", ["", *result.directions], output.rounded(rows)),
        ("section forces", ["element", "end", *columns], output.rounded(sections)),
        ("largest stress", ["beam", "s", "MPa"], largest),
    ]
    matrices = {"stiffness": result.stiffness, "compliance": result.compliance}
    shown = [_matrix(name, result.directions, matrix) for name, matrix in matrices.items() if matrix is not None]
    return Answer(answer, *shown, *tables)


def _matrix(title: str, names: tuple[str, ...], values: Any) -> Table:
    rows = [(name, *map(float, row)) for name, row in zip(names, values, strict=True)]
    return title, ["", *names], output.rounded(rows)


@verb("vibration", "statespace dualemps --servo 1e6 --input 11 --output 17.y --frequencies 1:100:200 --out plant.npz")
def statespace(
    robot: Divided,
    case: LoadCase,
    *,
    pose: Any = None,
    inputs: Any = (),
    outputs: Any = (),
    span: Any = (),
    out: str | None = None,
) -> Answer:
    """State space A B C D and frequency response between any input and any output."""
    import numpy as np

    from parflex.statics.linear_model import linear_model_of
    from parflex.statics.statespace import forced_frames, mode_warnings, state_space_of

    if out is not None:
        check_suffix(out)
    model = linear_model_of(robot, pose, case, forced_frames(inputs))
    system = state_space_of(model, inputs, outputs)
    diagnostics = system.doubts(span) if span else mode_warnings(system.model)
    with warnings.catch_warnings(action="ignore", category=ParflexWarning):  # they are in the answer
        response = system.response(span)
    names = ("A", "B", "C", "D", "states", "inputs", "outputs")
    answer: dict[str, Any] = {name: getattr(system, name) for name in names}
    if out is not None:
        write_arrays(out, {**answer, "frequencies_hz": np.array(span), "response": response})
    answer |= {"about": model.about, "file": out, "diagnostics": [*system.diagnostics, *diagnostics]}
    sizes = [(name, len(answer[name])) for name in ("states", "inputs", "outputs")]
    columns, gains = [f"{name} / {source}" for name in system.outputs for source in system.inputs], []
    if span:
        answer |= {"frequencies_hz": span, "response": {"real": response.real, "imaginary": response.imag}}
        gains = [(f, *map(float, np.abs(H).ravel())) for f, H in zip(span, response, strict=True)]
    return Answer(answer, ("state space", ["", "count"], sizes), ("gain", ["Hz", *columns], gains), output.written(out))


def check_suffix(path: str) -> None:
    """Refuse files that are neither .npz nor .mat before anything is computed."""
    if Path(path).suffix not in (".npz", ".mat"):
        text, hint = f"'{path}' has an unknown file type", "use a name that ends in .npz or .mat"
        raise InputError(text, key="out", value=path, hint=hint)


def write_arrays(path: str, arrays: dict[str, Any]) -> None:
    """Write arrays and lists of names to a .npz or .mat file, whole or not at all."""
    import numpy as np
    import scipy.io

    with atomic_file(path) as file:
        if Path(path).suffix == ".npz":
            plain: dict[str, Any] = {key: np.asarray(value) for key, value in arrays.items()}
            np.savez(file, **plain)
        else:
            lists = {key: np.array(value, dtype=object) for key, value in arrays.items() if isinstance(value, list)}
            scipy.io.savemat(file, arrays | lists)
