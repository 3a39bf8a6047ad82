"""Commands `count` and `codegen`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from parflex.cli import output
from parflex.cli.group import verb
from parflex.cli.output import Answer, Table
from parflex.cli.vocabulary import split_names
from parflex.errors import InputError

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Robot

COUNT_NOTE = (
    "Open rigid robots are counted with base parameters as symbols, others with numbers. By convention, friction, "
    "motor inertia and springs are counted only if --with names them; all programs contain them."
)
CODEGEN_NOTE = (
    "Parameters are numbers unless --parameters says otherwise. The program has all terms of the robot file except "
    "those named by --without."
)
NOT_OFFERED = ("name", "include", "rows", "checks", "independent", "wrench_frames")


def _make_model(robot: Robot, name: str, parameters: str, terms: Any, **options: Any) -> tuple[Any, list[Any]]:
    """Return the model and its diagnostics."""
    from parflex import model as make

    chosen: Any = parameters if parameters in ("base", "numbers") else split_names(parameters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        generated = make(robot, name, parameters=chosen, without=terms, **options)
    return generated, [output.diagnostic_of(warning.message) for warning in caught]


@verb("model", "count rx90 inverse", note=COUNT_NOTE, of="model", omit=NOT_OFFERED)
def count(
    robot: Robot, model: str, *, parameters: str | None = None, without: Any = (), included: Any = (), **options: Any
) -> Answer:
    """Operators of a model: inverse direct mass-matrix kinematics jacobian-of-inverse geometry geometry-direct step."""
    from parflex.robot.load import omitted_terms

    default = "numbers" if robot.closures.size or robot.tree.elastic else "base"
    terms = list(omitted_terms(without, included))
    generated, diagnostics = _make_model(robot, model, parameters or default, terms, **options)
    rows = [*generated.counts.items(), ("not counted", ", ".join(terms) or "-")]
    answer = {**generated.counts, "coordinates": options["coordinates"], "without": terms, "diagnostics": diagnostics}
    return Answer(answer, (f"{robot.name} {model}", ["", "operators"], rows))


@verb(
    "model",
    "codegen gough-stewart inverse --target c -o generated",
    note=CODEGEN_NOTE,
    of="model",
    omit=NOT_OFFERED,
)
def codegen(
    robot: Robot,
    model: str,
    *,
    parameters: str | None = None,
    without: Any = (),
    target: str,
    out: str,
    float32: bool = False,
    force: bool = False,
    **options: Any,
) -> Answer:
    """Write a model as source code; for llvm also compile it for this machine."""
    from parflex.io import write_generated
    from parflex.robot.load import omitted_terms

    if model == "motion":
        hint = "write it with 'parflex motion ROBOT MOTION --out FILE.csv'"
        raise InputError("a motion is a table, not a program", key="model", value=model, hint=hint)
    terms = list(omitted_terms(without, None))
    generated, diagnostics = _make_model(robot, model, parameters or "numbers", terms, **options)
    files = generated.files(target, float32)
    compiled = generated.compiled() if target == "llvm" else None  # where a cache fails, that was said already
    written = [str(path) for path in write_generated(out, files, force=force)]
    answer = {
        "files": written,
        "counts": generated.counts,
        "inputs": list(generated.program.inputs),
        "outputs": [label for label, _ in generated.program.outputs],
        "signals": generated.signals,
        "coordinates": options["coordinates"],
        "about": generated.about,
        "without": terms,
        "diagnostics": diagnostics,
    }
    tables: list[Table] = [output.written(*written)]
    if target == "llvm":
        answer["compiled"] = str(compiled) if compiled else None
        tables.append(("", ["compiled for this machine, kept in"], [(answer["compiled"] or "nothing: no cache",)]))
    return Answer(answer, *tables, ("", ["", "operators"], generated.counts.items()))
