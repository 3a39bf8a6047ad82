"""Commands about a robot: the catalogue, its parts, its poses, its figure."""

from __future__ import annotations

import shutil
from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.options import (
    coordinates_option,
    limits_option,
    open_robot,
    read_pose_option,
    robot_options,
    split_names,
)
from parflex.errors import ParflexError, RobotFileError
from parflex.io import write_new_text

WIDEST = 100  # characters of a line of an explanation
SAVING_QUANTITIES = ("operators", "microseconds")


@cli.command("list", epilog="\b\nExamples:\n  parflex list\n  parflex list --json")
@click.option("--json", "as_json", is_flag=True, help="Print a single JSON object.")
def list_robots(as_json: bool) -> None:
    """Robots of the catalogue."""
    from parflex.robotfile.read import catalogue_names, load_description

    robots = []
    for name in catalogue_names():
        robot, _ = load_description(name)
        robots.append({"name": name, "title": robot.title or name, "source": robot.reference.source})
    rows = [(robot["name"], robot["title"]) for robot in robots]
    output.print_result({"robots": robots}, as_json, ("", ["name", "title"], rows))


@cli.command(epilog="\b\nExample:\n  parflex info 3-prrr --json")
@robot_options
@click.option("--elements", type=int, metavar="N", help="Split every beam element into N.")
@click.option("--saving", is_flag=True, help="What reduced beams save in the direct model; may take a minute.")
def info(robot: str, as_json: bool, saving: bool, **choice: Any) -> None:
    """Counts and names: bodies, joints, coordinates, closures, freedoms, reduced beams."""
    from parflex.robot.frames import counts
    from parflex.robot.gearing import coupling_texts

    loaded = open_robot(robot, **choice)
    answer: dict[str, Any] = {"name": loaded.name, "title": loaded.description.title or loaded.name, **counts(loaded)}
    answer["couplings"] = coupling_texts(loaded)
    answer["diagnostics"] = [*loaded.diagnostics, *loaded.start_warnings()]
    reduced = _reduced(loaded, answer, saving)
    numbers = [(key.replace("_", " "), value) for key, value in answer.items() if isinstance(value, int)]
    numbers += [(f"{key.replace('_', ' ')}, motors locked", value) for key, value in answer["locked"].items()]
    names = [(key.replace("_", " "), value) for key, value in answer["names"].items() if value]
    tables: list[tuple] = [(loaded.name, ["", "count"], numbers), ("names", ["", ""], names)]
    tables += [("couplings", ["", ""], list(answer["couplings"].items()))] * bool(answer["couplings"])
    output.print_result(answer, as_json, *tables, *reduced)


def _reduced(loaded: Any, answer: dict[str, Any], saving: bool) -> list[tuple]:
    """Tables of reduced beams and of what that saves, which go into the answer too."""
    answer["reduction"] = _reductions(loaded)
    head = ["body", "modes kept", "of", "elements", "bound (Hz)", "up to (Hz)"]
    keys = ("body", "kept", "of", "elements", "bound_hz", "band_hz")
    tables: list[tuple] = [("reduced beams", head, [[beam[key] for key in keys] for beam in answer["reduction"]])]
    if saving:
        from parflex.codegen.reduction_saving import reduction_saving as saving_of

        answer["saving"] = saving_of(loaded)
        rows = [(key, *(answer["saving"][word][key] for word in ("reduced", "full"))) for key in SAVING_QUANTITIES]
        tables.append(("direct model", ["", "reduced", "all elements"], rows))
    return tables if answer["reduction"] else []


def _reductions(loaded: Any) -> list[dict[str, Any]]:
    """Return modes, elements, lowest omitted frequency (Hz) and error bound (Hz) of each reduced beam."""
    reductions = []
    for link in loaded.tree.links:
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


@cli.command(epilog="\b\nExample:\n  parflex check my-robot.toml --strict")
@robot_options
@click.option("--strict", is_flag=True, help="Reject physically impossible inertias.")
def check(robot: str, as_json: bool, strict: bool, **choice: Any) -> None:
    """Read a robot file, assemble its poses and report what is unusual."""
    from parflex.robot.frames import counts
    from parflex.robot.whole_check import unusual

    loaded = open_robot(robot, **choice)
    if strict and loaded.diagnostics:
        what = "superelement" if loaded.diagnostics[0].code == "superelement-matrices" else "inertia"
        hint = f"correct the {'matrices' if what == 'superelement' else what}, or check without --strict"
        raise RobotFileError(loaded.warnings[0], file=loaded.file, key=what, hint=hint)
    notes = unusual(loaded)
    numbers = counts(loaded)
    answer: dict[str, Any] = {"ok": True, "file": loaded.file, "diagnostics": notes}
    superelements = {link.name: link.body.found.as_dict() for link in loaded.tree.links if link.body.found is not None}
    answer |= {"superelements": superelements} if superelements else {}
    freedoms = numbers["degrees_of_freedom"]
    rows = [("file", loaded.file), ("degrees of freedom", freedoms), ("motors", len(loaded.actuated)), ("ok", "yes")]
    head = ["", "mass (kg)", "rigid residual", "rigid (Hz)", "lowest elastic (Hz)"]
    keys = ("mass", "rigid_residual", "rigid_hz", "lowest_hz")
    tables: list[tuple] = [("", ["", ""], rows)]
    if superelements:
        tables.append(
            (
                "super-elements",
                head,
                [[name, *(superelement[key] for key in keys)] for name, superelement in superelements.items()],
            )
        )
    output.print_result(answer, as_json, *tables)


@cli.command(epilog="\b\nExample:\n  parflex draw 3rrr --pose x=0.05,y=0.1,theta_deg=10 -o robot.svg")
@robot_options
@click.option("--pose", "pose", metavar="NAME|KEY=VALUE,...", help="Pose to draw; default home.")
@click.option("--frames", metavar="LIST", help="Frames to mark, such as arm@0.5.")
@click.option(
    "-o",
    "--out",
    "path",
    required=True,
    metavar="FILE",
    help="Output file: .svg, .pdf or .png.",
)
def draw(robot: str, as_json: bool, pose: str | None, frames: str | None, path: str, **choice: Any) -> None:
    """A still picture of the robot at a pose."""
    from parflex import draw as draw_robot
    from parflex.robot.configuration import configure

    loaded = open_robot(robot, **choice)
    configuration = configure(loaded, read_pose_option(pose))
    draw_robot(loaded, configuration, path, frames=split_names(frames or ""))
    output.print_result(
        {"file": path, "diagnostics": configuration.diagnostics}, as_json, ("", ["written", ""], [(path, "")])
    )


@cli.command(epilog="\b\nExample:\n  parflex new my-robot > my-robot.toml")
@click.argument("name")
@click.option("-o", "--out", "path", metavar="FILE", help="Output file; default: standard output.")
@click.option("--json", "as_json", is_flag=True, help="Print a single JSON object.")
def new(name: str, path: str | None, as_json: bool) -> None:
    """A commented template of a robot file: a five-bar robot that works as it stands."""
    from parflex.robotfile.read import template_text

    text = template_text(name)
    if path is not None:
        write_new_text(path, text, "output")
        click.echo(f"written: {path}", err=True)
    if as_json:
        output.print_result({"name": name, "file": path, "text": text}, as_json)
    elif path is None:
        click.echo(text, nl=False)


@cli.command(epilog="\b\nExample:\n  parflex schema > robot-file.schema.json")
@click.option("--json", "as_json", is_flag=True, help="No effect: a schema is always JSON.")
def schema(as_json: bool) -> None:
    """JSON schema of the robot file, for editors."""
    import json

    from parflex.robotfile.schema import json_schema

    click.echo(json.dumps(json_schema(), indent=None if as_json else 2))


@cli.command(epilog="\b\nExample:\n  parflex pose gough-stewart --pose x=0.3,y=0.4,z=1.1,rx=0.1 --json")
@robot_options
@click.option("--pose", "pose", metavar="NAME|KEY=VALUE,...", help="A pose of the robot file, or coordinates.")
@click.option("--frames", metavar="LIST", help="More frames: places inside beams, e.g. arm@0.5, nodes of modal bodies.")
@limits_option
def pose(robot: str, as_json: bool, pose: str | None, frames: str | None, ignore_limits: bool, **choice: Any) -> None:
    """All joint values and frames at a pose, and how near it is to a singularity."""
    from parflex import frames as frames_of
    from parflex import geometric_solutions
    from parflex.forces.forces import element_values
    from parflex.robot.configuration import configure

    loaded = open_robot(robot, **choice)
    configuration = configure(loaded, read_pose_option(pose), ignore_limits=ignore_limits)
    values = dict(zip(loaded.tree.position_names, configuration.q.tolist(), strict=True))
    frame_poses = frames_of(loaded, configuration)
    frame_poses |= {name: frame_poses[name] for name in split_names(frames or "")}
    places = {name: {"position": p.tolist(), "rotation": R.tolist()} for name, (p, R) in frame_poses.items()}
    answer = {
        "q": values,
        "frames": places,
        "closure_error": configuration.closure_error,
        "condition": configuration.condition.as_dict(),
        "solutions": geometric_solutions(loaded, configuration),
        "diagnostics": configuration.diagnostics,
    }
    stretched = element_values(configuration)
    answer |= {"elements": stretched} if stretched else {}
    lengths = [(name, element["length"]) for name, element in stretched.items()]
    tables = [("elements", ["", "length"], lengths)] if lengths else []
    condition = configuration.condition
    conditions = [
        *condition.legs.items(),
        ("platform, motors locked", condition.platform),
        ("closures", condition.closures),
    ]
    output.print_result(
        answer,
        as_json,
        ("joints", ["coordinate", "value"], values.items()),
        ("frames", ["frame", "x", "y", "z"], [(name, *place["position"]) for name, place in places.items()]),
        ("condition numbers", ["", "value"], conditions),
        *tables,
    )


@cli.command(
    epilog="\b\nExamples:\n  parflex explain gough-stewart\n  parflex explain dualemps --counts --json\n"
    "  parflex explain 3rrr --markdown > 3rrr.md"
)
@robot_options
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@click.option("--counts", is_flag=True, help="Also count the operators of the programs; tracing them may take seconds.")
@coordinates_option
@click.option("--elements", type=int, metavar="N", help="Split every beam element into N.")
def explain(robot: str, as_json: bool, markdown: bool, counts: bool, coordinates: str | None, **choice: Any) -> None:
    """Describe the model: bodies, coordinates, loops, motors, sizes, formulation and sources of the data.

    Numbers of equations are those of the page Theory of the documentation.
    """
    from parflex import explain as explain_robot
    from parflex.maps.explain import with_maps

    loaded = open_robot(robot, **choice)
    explanation = with_maps(explain_robot(loaded, coordinates), loaded)
    answer = explanation.as_dict()
    text = (
        explanation.as_markdown() if markdown else explanation.as_text(min(WIDEST, shutil.get_terminal_size().columns))
    )
    if counts:
        answer["operators"] = _operators(loaded, coordinates)
        rows = [f"{name} {count}" for name, count in answer["operators"].items()]
        text += "\nOperators: " + ", ".join(rows) + "\n"
    if as_json:
        output.print_result(answer, as_json)
        return
    output.warn(explanation.diagnostics)
    click.echo(text, nl=False)


def _operators(loaded: Any, coordinates: Any) -> dict[str, Any]:
    """Operators of the inverse and direct models, as `count` counts; None where the actuation does not define one."""
    from parflex import model
    from parflex.robot.load import JOINT_TERMS

    operators: dict[str, Any] = {}
    for name in ("inverse", "direct"):
        try:
            operators[name] = model(loaded, name, without=JOINT_TERMS, coordinates=coordinates).counts["total"]
        except ParflexError:
            operators[name] = None
    return operators
