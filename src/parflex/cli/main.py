"""Verbs of the command line."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import click

from parflex import __version__
from parflex.cli import output
from parflex.cli.input import blaming, open_robot, read_pose_option, read_state, robot_options, state_options
from parflex.errors import InputError, ParflexError, RobotFileError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
EXAMPLES = """
\b
Examples:
  parflex list
  parflex info gough-stewart
  parflex inverse gough-stewart --pose z=1.1,rz=0.1 --acceleration z=2 --json
  parflex direct 3rrr --pose home --effort leg1.1=2,leg2.1=-1
  parflex draw delta -o delta.svg
"""


@click.group(context_settings=CONTEXT, epilog=EXAMPLES)
@click.version_option(__version__, prog_name="parflex")
def cli() -> None:
    """Dynamic models of parallel robots from one robot file.

    ROBOT is a name from the catalogue or the path of a TOML file. Units are SI and radians.
    """


@cli.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def list_robots(as_json: bool) -> None:
    """Robots of the catalogue."""
    from parflex.description.loader import load_description
    from parflex.description.source import catalogue_names

    robots = []
    for name in catalogue_names():
        robot, _ = load_description(name)
        robots.append({"name": name, "title": robot.title or name, "source": robot.reference.source})
    rows = [(robot["name"], robot["title"]) for robot in robots]
    output.show({"robots": robots}, as_json, ("", ["name", "title"], rows))


@cli.command(epilog="\b\nExample:\n  parflex info 3-prrr --json")
@robot_options
def info(robot: str, as_json: bool, **choice: Any) -> None:
    """Counts and names: bodies, joints, coordinates, closures, freedoms."""
    from parflex.models.kinematics import counts

    loaded = open_robot(robot, **choice)
    answer: dict[str, Any] = {"name": loaded.name, "title": loaded.description.title, **counts(loaded)}
    answer["warnings"] = list(loaded.warnings)
    numbers = [(key.replace("_", " "), value) for key, value in answer.items() if isinstance(value, int)]
    numbers += [(f"{key.replace('_', ' ')}, motors locked", value) for key, value in answer["locked"].items()]
    names = [(key.replace("_", " "), value) for key, value in answer["names"].items() if value]
    output.show(answer, as_json, (loaded.name, ["", "count"], numbers), ("names", ["", ""], names))


@cli.command(epilog="\b\nExample:\n  parflex check my-robot.toml --strict")
@robot_options
@click.option("--strict", is_flag=True, help="Refuse inertias that no real body can have.")
def check(robot: str, as_json: bool, strict: bool, **choice: Any) -> None:
    """Read a robot file, assemble its poses and say what is odd."""
    from parflex.models.configuration import configure
    from parflex.models.kinematics import counts

    loaded = open_robot(robot, **choice)
    if strict and loaded.warnings:
        raise RobotFileError(
            loaded.warnings[0], file=loaded.file, key="inertia", hint="mend the inertia, or check without --strict"
        )
    notes = list(loaded.warnings)
    for name in ["home", *loaded.description.poses]:
        configuration = configure(loaded, name)
        notes += [
            f"pose {name}: {text}"
            for text in (*loaded.limit_warnings(configuration.q), *configuration.condition.warnings())
        ]
    if loaded.mobility.home_rank < loaded.mobility.rank:
        notes.append("home is a singular pose of the closures: the robot has more freedoms there than elsewhere")
    numbers = counts(loaded)
    if numbers["redundant_closures"]:
        names = ", ".join(numbers["names"]["redundant_closures"])
        notes.append(f"over-constrained: {numbers['redundant_closures']} closure rows repeat others ({names})")
    answer = {"ok": True, "file": loaded.file, "warnings": list(dict.fromkeys(notes))}
    freedoms = numbers["degrees_of_freedom"]
    rows = [("file", loaded.file), ("degrees of freedom", freedoms), ("motors", len(loaded.actuated)), ("ok", "yes")]
    output.show(answer, as_json, ("", ["", ""], rows))


@cli.command(epilog="\b\nExample:\n  parflex draw 3rrr --pose x=0.05,y=0.1,theta_deg=10 -o robot.svg")
@robot_options
@click.option("--pose", "pose", metavar="NAME|KEY=VALUE,...", help="Pose to draw; default home.")
@click.option("-o", "--output", "path", required=True, metavar="FILE", help="Picture to write: .svg, .pdf or .png.")
def draw(robot: str, as_json: bool, pose: str | None, path: str, **choice: Any) -> None:
    """A still picture of the robot at a pose."""
    from parflex.view.draw import draw as draw_robot

    loaded = open_robot(robot, **choice)
    notes = draw_robot(loaded, read_pose_option(pose), path)
    output.show({"file": path, "warnings": notes}, as_json, ("", ["written", ""], [(path, "")]))


@cli.command(epilog="\b\nExample:\n  parflex new my-robot > my-robot.toml")
@click.argument("name")
@click.option("-o", "--output", "path", metavar="FILE", help="File to write; default: print it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def new(name: str, path: str | None, as_json: bool) -> None:
    """A commented template of a robot file: a five-bar robot that works as it stands."""
    from parflex.description.template import template

    text = template(name)
    if path is not None:
        try:
            with Path(path).open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise InputError(
                "the file is there already", file=path, key="output", value=path, hint="choose another name"
            ) from None
        except OSError as error:
            raise InputError(
                f"cannot be written ({error.strerror})", file=path, key="output", value=path, hint="check the path"
            ) from None
        click.echo(f"written: {path}", err=True)
    if as_json:
        output.show({"name": name, "file": path, "text": text}, as_json)
    elif path is None:
        click.echo(text, nl=False)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="The same: a schema is JSON.")
def schema(as_json: bool) -> None:
    """JSON schema of the robot file, for editors."""
    import json

    from parflex.description.schema import json_schema

    click.echo(json.dumps(json_schema(), indent=None if as_json else 2))


@cli.command(epilog="\b\nExample:\n  parflex pose gough-stewart --pose x=0.3,y=0.4,z=1.1,rx=0.1 --json")
@robot_options
@click.option("--pose", "pose", metavar="NAME|KEY=VALUE,...", help="Pose of the file, or coordinates.")
def pose(robot: str, as_json: bool, pose: str | None, **choice: Any) -> None:
    """All joint values and frames at a pose, and how near it is to a singularity."""
    from parflex.models.configuration import configure
    from parflex.models.kinematics import frames, geometric_solutions

    loaded = open_robot(robot, **choice)
    configuration = configure(loaded, read_pose_option(pose))
    values = dict(zip(loaded.tree.position_names, configuration.q.tolist(), strict=True))
    places = {
        name: {"position": p.tolist(), "rotation": R.tolist()} for name, (p, R) in frames(loaded, configuration).items()
    }
    answer = {
        "q": values,
        "frames": places,
        "closure_error": configuration.closure_error,
        "condition": configuration.condition.as_dict(),
        "solutions": geometric_solutions(loaded, configuration),
        "warnings": [*loaded.warnings, *loaded.limit_warnings(configuration.q), *configuration.condition.warnings()],
    }
    condition = configuration.condition
    conditions = [
        *condition.legs.items(),
        ("platform, motors locked", condition.platform),
        ("closures", condition.closures),
    ]
    output.show(
        answer,
        as_json,
        ("joints", ["coordinate", "value"], values.items()),
        ("frames", ["frame", "x", "y", "z"], [(name, *place["position"]) for name, place in places.items()]),
        ("condition numbers", ["", "value"], conditions),
    )


@cli.command(
    epilog="\b\nExample:\n  parflex inverse delta --pose z=-0.45 --velocity x=1 --acceleration z=5 --payload 0.2,0,0,0"
)
@robot_options
@state_options
@click.option("--acceleration", metavar="KEY=VALUE,...", help="Accelerations in the same words; frames in world axes.")
@click.option("--reactions", is_flag=True, help="Also the wrench in every joint and closure.")
def inverse(
    robot: str,
    as_json: bool,
    state_file: str | None,
    wrench: tuple[str, ...],
    without: str,
    reactions: bool,
    **rest: Any,
) -> None:
    """Efforts of the motors in a motion of the end effector or of joints."""
    from parflex.models.dynamics import inverse_dynamics

    texts = {word: rest.pop(word) for word in ("pose", "velocity", "acceleration")}
    state = read_state(state_file, wrench, without, **texts)
    loaded = open_robot(robot, **rest)
    with blaming(state_file, wrench=wrench, **texts):
        result = inverse_dynamics(
            loaded,
            state.get("pose"),
            state.get("velocity"),
            state.get("acceleration"),
            wrenches=state["wrench"],
            without=state["without"],
            reactions=reactions,
        )
    answer: dict[str, Any] = {
        "efforts": result.efforts,
        "elastic_accelerations": {},
        "redundant_actuation": result.redundant_actuation,
        "warnings": result.warnings,
    }
    tables: list[Any] = [("efforts", ["joint", "N or N m"], result.efforts.items())]
    if reactions:
        answer["reactions"] = result.reactions
        tables += _reaction_tables(result.reactions)
    output.show(answer, as_json, *tables)


@cli.command(
    epilog="\b\nExample:\n  parflex direct gough-stewart --effort leg1.3=800,leg2.3=700 --wrench platform=0,0,-100"
)
@robot_options
@state_options
@click.option("--effort", metavar="KEY=VALUE,...", help="Efforts of the motors; those not named are zero.")
@click.option("--reactions", is_flag=True, help="Also the wrench in every joint and closure.")
def direct(
    robot: str,
    as_json: bool,
    state_file: str | None,
    wrench: tuple[str, ...],
    without: str,
    reactions: bool,
    **rest: Any,
) -> None:
    """Accelerations under efforts of the motors."""
    from parflex.models.dynamics import forward_dynamics

    texts = {word: rest.pop(word) for word in ("pose", "velocity", "effort")}
    state = read_state(state_file, wrench, without, **texts)
    loaded = open_robot(robot, **rest)
    with blaming(state_file, wrench=wrench, **texts):
        result = forward_dynamics(
            loaded,
            state.get("pose"),
            state.get("velocity"),
            state.get("effort"),
            wrenches=state["wrench"],
            without=state["without"],
            reactions=reactions,
        )
    answer: dict[str, Any] = {"accelerations": _accelerations(result), "warnings": result.warnings}
    tables: list[Any] = [("accelerations", ["", "m/s2 or rad/s2"], answer["accelerations"].items())]
    if reactions:
        answer["reactions"] = result.reactions
        tables += _reaction_tables(result.reactions)
    output.show(answer, as_json, *tables)


def _model_options(command: Any) -> Any:
    for option in (
        click.option(
            "--parameters",
            metavar="base|numbers|NAMES",
            help="Inertial parameters kept as symbols; default: see below.",
        ),
        click.option(
            "--with", "included", metavar="LIST", default="", help="Joint terms: friction, motor-inertia, springs."
        ),
        click.option("--operator-limit", type=int, default=200_000, show_default=True, help="Refuse longer programs."),
        click.argument("model", metavar="MODEL"),
    ):
        command = option(command)
    return command


def _make_model(loaded: Any, name: str, parameters: str | None, included: str, limit: int, default: str) -> Any:
    from parflex.codegen.model import model as make

    chosen: Any = parameters or default
    if chosen not in ("base", "numbers"):
        chosen = [word.strip() for word in chosen.split(",") if word.strip()]
    terms = [word.strip() for word in included.split(",") if word.strip()]
    return make(loaded, name, parameters=chosen, include=terms, limit=limit)


@cli.command(
    epilog="\b\nExample:\n  parflex count rx90 inverse\n\n"
    "Open robots are counted with base parameters as symbols, closed ones with numbers."
)
@robot_options
@_model_options
def count(
    robot: str, model: str, as_json: bool, parameters: str | None, included: str, operator_limit: int, **choice: Any
) -> None:
    """Operators of a model: inverse direct mass-matrix kinematics jacobian-of-inverse geometry geometry-direct step."""
    loaded = open_robot(robot, **choice)
    default = "numbers" if loaded.closures.loops else "base"
    made = _make_model(loaded, model, parameters, included, operator_limit, default)
    output.show(
        {**made.counts, "warnings": []}, as_json, (f"{loaded.name} {model}", ["", "operators"], made.counts.items())
    )


@cli.command(
    epilog="\b\nExample:\n  parflex codegen gough-stewart inverse --target c -o generated\n\n"
    "Parameters are numbers unless --parameters says otherwise."
)
@robot_options
@_model_options
@click.option("--target", required=True, metavar="c|llvm|numpy|jax|casadi|sympy", help="Language of the files.")
@click.option("-o", "--output", "folder", required=True, metavar="DIR", help="Folder to write to.")
@click.option("--float32", is_flag=True, help="Single precision (C).")
def codegen(
    robot: str,
    model: str,
    as_json: bool,
    parameters: str | None,
    included: str,
    operator_limit: int,
    target: str,
    folder: str,
    float32: bool,
    **choice: Any,
) -> None:
    """Write a model as source code."""
    from parflex.codegen.model import write_files

    loaded = open_robot(robot, **choice)
    made = _make_model(loaded, model, parameters, included, operator_limit, "numbers")
    written = write_files(folder, made.files(target, float32))
    answer = {"files": [str(path) for path in written], "counts": made.counts, "inputs": list(made.program.inputs)}
    answer["outputs"] = [label for label, _ in made.program.outputs]
    output.show(
        answer,
        as_json,
        ("", ["written"], [(str(path),) for path in written]),
        ("", ["", "operators"], made.counts.items()),
    )


def _accelerations(result: Any) -> dict[str, Any]:
    """World accelerations of the end effector and of free bodies, and those of all joints."""
    tree = result.robot.tree
    pick = [0, 1, 5] if tree.planar else list(range(6))
    answer: dict[str, Any] = {}
    for link in tree.links:
        if link.joint.kind in ("free", "planar"):
            answer[link.name] = result.acceleration_of(link.name)[pick].tolist()
        else:
            own = result.accelerations[link.v].tolist()
            answer[link.name] = own[0] if len(own) == 1 else own
    if tree.end_effector not in answer:
        answer[tree.end_effector] = result.acceleration_of()[pick].tolist()
    return answer


def _reaction_tables(reactions: Any) -> list[Any]:
    columns = ["", "fx", "fy", "fz", "mx", "my", "mz", "undetermined"]
    tables = []
    for kind in ("joints", "closures"):
        rows = [
            (name, *one["force"], *one["moment"], "yes" if one["undetermined"] else "")
            for name, one in reactions[kind].items()
        ]
        if rows:
            tables.append((f"reactions in {kind}", columns, rows))
    return tables


def main(arguments: list[str] | None = None) -> None:
    """Run a command; every error is one sentence and an exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in arguments
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # people get our own warnings, not those of the arithmetic
            sys.exit(cli.main(arguments or ["--help"], prog_name="parflex", standalone_mode=False) or 0)
    except ParflexError as error:
        output.fail(error.as_dict(), str(error), as_json)
        sys.exit(2)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        usage = {"kind": "usage", "message": error.format_message(), "file": None, "key": None, "value": None}
        output.fail(
            {**usage, "hint": "see 'parflex --help'"}, f"{error.format_message()} See 'parflex --help'.", as_json
        )
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)
    except Exception as error:
        if os.environ.get("PARFLEX_DEBUG"):
            raise
        text = f"parflex failed in a way it should not ({type(error).__name__}: {error}); please report it"
        output.fail(
            {"kind": "internal", "message": text, "file": None, "key": None, "value": None, "hint": None}, text, as_json
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
