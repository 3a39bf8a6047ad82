"""Commands about a robot: the catalogue, its parts, its poses, its figure."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import click

from parflex.cli import output
from parflex.cli.group import verb
from parflex.cli.output import Answer, Table
from parflex.errors import ParflexError, RobotFileError
from parflex.io import write_new_text

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Divided, Robot

WIDEST = 100  # characters of a line of an explanation
SAVING_QUANTITIES = ("operators", "microseconds")


@verb("model", "list", "list --json", name="list")
def list_robots() -> Answer:
    """Robots of the catalogue."""
    from parflex.robotfile.read import catalogue_names, load_description

    descriptions = {name: load_description(name)[0] for name in catalogue_names()}
    robots = [
        {"name": name, "title": robot.title or name, "source": robot.reference.source}
        for name, robot in descriptions.items()
    ]
    rows = [(robot["name"], robot["title"]) for robot in robots]
    return Answer({"robots": robots}, ("", ["name", "title"], rows))


@verb("model", "info 3-prrr --json")
def info(robot: Divided, *, saving: bool = False) -> Answer:
    """Counts and names: bodies, joints, coordinates, closures, degrees of freedom, reduced beams."""
    from parflex.robot.frames import counts
    from parflex.robot.gearing import coupling_texts

    answer: dict[str, Any] = {"name": robot.name, "title": robot.description.title or robot.name, **counts(robot)}
    answer["couplings"] = coupling_texts(robot)
    answer["diagnostics"] = [*robot.diagnostics, *robot.start_warnings()]
    reduced = _reduced(robot, answer, saving)
    numbers = [(key.replace("_", " "), value) for key, value in answer.items() if isinstance(value, int)]
    numbers += [(f"{key.replace('_', ' ')}, motors locked", value) for key, value in answer["locked"].items()]
    names = [(key.replace("_", " "), value) for key, value in answer["names"].items() if value]
    couplings = ("couplings", ["", ""], answer["couplings"].items())
    return Answer(answer, (robot.name, ["", "count"], numbers), ("names", ["", ""], names), couplings, *reduced)


def _reduced(robot: Robot, answer: dict[str, Any], saving: bool) -> list[Table]:
    """Return the tables of reduced beams and of what that saves, which go into the answer too."""
    answer["reduction"] = _reductions(robot)
    head = ["body", "modes kept", "of", "elements", "bound (Hz)", "up to (Hz)"]
    keys = ("body", "kept", "of", "elements", "bound_hz", "band_hz")
    tables: list[Table] = [("reduced beams", head, [[beam[key] for key in keys] for beam in answer["reduction"]])]
    if saving:
        from parflex.codegen.reduction_saving import reduction_saving as saving_of

        answer["saving"] = saving_of(robot)
        rows = [(key, *(answer["saving"][word][key] for word in ("reduced", "full"))) for key in SAVING_QUANTITIES]
        tables.append(("direct model", ["", "reduced", "all elements"], rows))
    return tables


def _reductions(robot: Robot) -> list[dict[str, Any]]:
    """Return modes, elements, lowest omitted frequency (Hz) and error bound (Hz) of each reduced beam."""
    reductions = []
    for link in robot.tree.links:
        reduction = link.body.reduced
        if reduction is None:
            continue
        modes = (link.body.size - link.body.held) * (reduction.elements - 1)
        reductions.append(
            {
                "body": link.name,
                "kept": reduction.kept,
                "of": modes,
                "elements": reduction.elements,
                "left_out_hz": reduction.left_out if reduction.kept < modes else None,
                "band_hz": reduction.band,
                "bound_hz": reduction.bound,
            }
        )
    return reductions


@verb("model", "check my-robot.toml --strict")
def check(robot: Robot, *, strict: bool = False) -> Answer:
    """Read a robot file, assemble its poses and report what is unusual."""
    from parflex.robot.frames import counts
    from parflex.robot.whole_check import unusual

    if strict and robot.diagnostics:
        what = "superelement" if robot.diagnostics[0].code == "superelement-matrices" else "inertia"
        hint = f"correct the {'matrices' if what == 'superelement' else what}, or check without --strict"
        raise RobotFileError(robot.warnings[0], file=robot.file, key=what, hint=hint)
    answer: dict[str, Any] = {"ok": True, "file": robot.file, "diagnostics": unusual(robot)}
    freedoms = counts(robot)["degrees_of_freedom"]
    rows = [("file", robot.file), ("degrees of freedom", freedoms), ("motors", len(robot.actuated)), ("ok", "yes")]
    superelements = {link.name: link.body.found.as_dict() for link in robot.tree.links if link.body.found is not None}
    answer |= {"superelements": superelements} if superelements else {}
    head = ["", "mass (kg)", "rigid residual", "rigid (Hz)", "lowest elastic (Hz)"]
    keys = ("mass", "rigid_residual", "rigid_hz", "lowest_hz")
    found = [[name, *(entry[key] for key in keys)] for name, entry in superelements.items()]
    return Answer(answer, ("", ["", ""], rows), ("super-elements", head, found))


@verb("model", "draw 3rrr --pose x=0.05,y=0.1,theta_deg=10 -o robot.svg")
def draw(robot: Robot, *, pose: Any = None, frames: Any = (), out: str) -> Answer:
    """A still picture of the robot at a pose."""
    from parflex import draw as draw_robot
    from parflex.robot.configuration import configure

    configuration = configure(robot, pose)
    draw_robot(robot, configuration, out, frames=frames)
    return Answer({"file": out, "diagnostics": configuration.diagnostics}, output.written(out))


@verb("model", "new my-robot > my-robot.toml")
def new(name: str, *, out: str | None = None, as_json: bool = False) -> Answer | None:
    """A commented template of a robot file: a five-bar robot that works as it stands."""
    from parflex.robotfile.read import template_text

    text = template_text(name)
    if out is not None:
        write_new_text(out, text, "output")
        click.echo(f"written: {out}", err=True)
    elif not as_json:
        click.echo(text, nl=False)
    return Answer({"name": name, "file": out, "text": text})


@verb("model", "schema > robot-file.schema.json")
def schema(*, as_json: bool = False) -> None:
    """JSON schema of the robot file, for editors."""
    from parflex.robotfile.schema import json_schema

    click.echo(json.dumps(json_schema(), indent=None if as_json else 2))


@verb("model", "pose gough-stewart --pose x=0.3,y=0.4,z=1.1,rx=0.1 --json")
def pose(robot: Robot, *, pose: Any = None, frames: Any = (), ignore_limits: bool = False) -> Answer:
    """All joint values and frames at a pose, and how near it is to a singularity."""
    from parflex import frames as frames_of
    from parflex import geometric_solutions
    from parflex.forces.forces import element_values
    from parflex.robot.configuration import configure

    configuration = configure(robot, pose, ignore_limits=ignore_limits)
    values = dict(zip(robot.tree.position_names, configuration.q.tolist(), strict=True))
    frame_poses = frames_of(robot, configuration)
    frame_poses |= {name: frame_poses[name] for name in frames}
    places = {name: {"position": p.tolist(), "rotation": R.tolist()} for name, (p, R) in frame_poses.items()}
    condition = configuration.condition
    answer = {
        "q": values,
        "frames": places,
        "closure_error": configuration.closure_error,
        "condition": condition.as_dict(),
        "solutions": geometric_solutions(robot, configuration),
        "diagnostics": configuration.diagnostics,
    }
    conditions = [*condition.legs.items(), ("platform, motors locked", condition.platform)]
    elements = element_values(configuration)
    answer |= {"elements": elements} if elements else {}
    tables: list[Table] = [
        ("joints", ["coordinate", "value"], values.items()),
        ("frames", ["frame", "x", "y", "z"], [(name, *place["position"]) for name, place in places.items()]),
        ("condition numbers", ["", "value"], [*conditions, ("closures", condition.closures)]),
        ("elements", ["", "length"], [(name, entry["length"]) for name, entry in (elements or {}).items()]),
    ]
    return Answer(answer, *tables)


@verb("model", "explain gough-stewart", "explain dualemps --counts --json", "explain 3rrr --markdown > 3rrr.md")
def explain(
    robot: Divided,
    *,
    markdown: bool = False,
    counts: bool = False,
    coordinates: str | None = None,
    as_json: bool = False,
) -> Answer | None:
    """Describe the model: bodies, coordinates, loops, motors, sizes, formulation and sources of the data.

    Numbers of equations are those of the page Theory of the documentation.
    """
    from parflex import explain as explain_robot
    from parflex.maps.explain import with_maps

    explanation = with_maps(explain_robot(robot, coordinates), robot)
    width = min(WIDEST, shutil.get_terminal_size().columns)
    text = explanation.as_markdown() if markdown else explanation.as_text(width)
    answer = explanation.as_dict()
    if counts:
        answer["operators"] = _operators(robot, coordinates)
        text += "\nOperators: " + ", ".join(f"{name} {count}" for name, count in answer["operators"].items()) + "\n"
    if as_json:
        return Answer(answer)
    output.warn(explanation.diagnostics)
    click.echo(text, nl=False)
    return None


def _operators(robot: Robot, coordinates: Any) -> dict[str, Any]:
    """Return the operators of the inverse and direct models, as `count` counts; None where there is no such model."""
    from parflex import model
    from parflex.robot.load import JOINT_TERMS

    operators: dict[str, Any] = {}
    for name in ("inverse", "direct"):
        try:
            operators[name] = model(robot, name, without=JOINT_TERMS, coordinates=coordinates).counts["total"]
        except ParflexError:
            operators[name] = None
    return operators
