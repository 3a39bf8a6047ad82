"""Commands `export` and `import`."""

from __future__ import annotations

from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.options import open_robot, robot_options, split_names, without_option
from parflex.diagnostics import read_diagnostics
from parflex.errors import InputError, did_you_mean

FORMATS = ("fmu", "mjcf", "urdf")
OPTIONS = (
    "fmi",
    "kind",
    "drive",
    "method",
    "step",
    "platforms",
    "frames",
    "wrench_frames",
    "pose",
    "without",
    "independent",
    "parameters",
    "law",
    "model",
    "coordinates",
)  # of FMUs


@cli.command(
    epilog="\b\nExamples:\n  parflex export fmu 5r --fmi 2 --kind cs --drive efforts --step 0.0005 -o 5r.fmu\n"
    "  parflex export fmu 5r --law ctc -o controller.fmu\n"
    "  parflex export mjcf delta -o delta.xml\n"
    "  parflex export urdf gough-stewart -o hexapod.urdf\n\n"
    "FORMAT is fmu, mjcf (MuJoCo) or urdf (with the loops in a YAML file beside it). Flexible bodies are rigid in the "
    "last two. The other options are those of fmu."
)
@click.argument("format_name", metavar="FORMAT")
@robot_options
@click.option("-o", "--out", "out", required=True, metavar="FILE", help="File to write.")
@click.option("--fmi", type=int, metavar="2|3", help="Version of FMI; default: 2.")
@click.option("--kind", metavar="cs|me", help="Co-simulation or model exchange; default: cs.")
@click.option("--drive", metavar="efforts|motions", help="Inputs of the motors; default: efforts.")
@click.option("--method", metavar="NAME", help="Method of co-simulation; default: gauss4.")
@click.option("--step", type=float, metavar="H", help="Longest step of co-simulation (s); default: 0.0005.")
@click.option("--platforms", metavar="own|all", help="This machine by its C compiler, or all by zig; default: own.")
@click.option("--frames", metavar="LIST", help="Frames to report; default: the end effector.")
@click.option("--wrench-frames", metavar="LIST", help="Frames with a wrench as an input.")
@click.option("--pose", metavar="NAME|KEY=VALUE,...", help="Pose at the start; default: home.")
@click.option("--independent", metavar="LIST", help="Rates that are integrated and stay so; default: chosen.")
@click.option("--parameters", metavar="LIST", help="Numbers that can be changed: gravity, payload, M[leg1.2], ...")
@click.option("--law", metavar="NAME", help="A controller in place of the robot: pd, ctc, ctc-task or extended.")
@click.option("--model", metavar="MODEL", help="A model in place of the robot, as of codegen: inverse, step, ...")
@click.option("--coordinates", metavar="platform|motors|independent|all", help="Inputs of such a model.")
@without_option
def export(format_name: str, robot: str, as_json: bool, out: str, **choice: Any) -> None:
    """Write a robot as a file for other programs."""
    fmu_options = {word: choice.pop(word) for word in OPTIONS}
    fmu_options = {word: value for word, value in fmu_options.items() if value not in (None, "")}
    if format_name not in FORMATS:
        hint = did_you_mean(format_name, FORMATS)
        raise InputError(f"there is no format '{format_name}'", key="format", value=format_name, hint=hint)
    if format_name != "fmu" and fmu_options:
        word = next(iter(fmu_options)).replace("_", "-")
        text = f"a file of the format '{format_name}' has no {word}"
        raise InputError(text, key=word, value=str(next(iter(fmu_options.values()))), hint=f"leave out --{word}")
    loaded = open_robot(robot, **choice)
    if format_name == "fmu":
        _write_fmu(loaded, out, fmu_options, as_json)
        return
    from parflex import export_mjcf, export_urdf

    exported = (export_mjcf if format_name == "mjcf" else export_urdf)(loaded, out)
    answer = {"file": exported.file, "files": list(exported.files), "notes": list(exported.notes)}
    rows = [("file", name) for name in exported.files] + [("note", note) for note in exported.notes]
    output.print_result(answer | {"diagnostics": loaded.diagnostics}, as_json, ("", ["", "written"], rows))


def _write_fmu(loaded: Any, out: str, fmu_options: dict[str, Any], as_json: bool) -> None:
    """An FMU; lists are words between commas."""
    from parflex import export_fmu
    from parflex.cli.options import read_pose_option

    for word in ("frames", "wrench_frames", "without", "independent", "parameters"):
        if word in fmu_options:
            fmu_options[word] = split_names(fmu_options[word])
    if "pose" in fmu_options:
        fmu_options["pose"] = read_pose_option(fmu_options["pose"])
    exported = export_fmu(loaded, out, **fmu_options)
    answer = {"file": exported.file, "platforms": list(exported.platforms), "variables": list(exported.variables)}
    kinds = [variable["causality"] for variable in exported.variables]
    counts = [(f"{kind}s", kinds.count(kind)) for kind in ("input", "output", "parameter", "local") if kind in kinds]
    rows = [("file", exported.file), ("platforms", ", ".join(exported.platforms)), *counts]
    rows += [("note", note) for note in exported.notes]
    answer |= {"notes": list(exported.notes), "diagnostics": loaded.diagnostics}
    output.print_result(answer, as_json, ("", ["", "written"], rows))


@cli.command(
    "import",
    epilog="\b\nExamples:\n  parflex import delta.urdf --loops delta.loops.yaml -o delta.toml\n"
    "  parflex import cassie.xml -o cassie.toml\n"
    "  parflex import SR400.par -o sr400.toml\n\n"
    "FILE is a URDF (.urdf), a file of MuJoCo (.xml; needs the package mujoco) or of SYMORO (.par). What is not "
    "carried over stands in the answer and, as comments, in the robot file. Exit code 1: the file is written, but the "
    "robot cannot be assembled as it stands.",
)
@click.argument("source", metavar="FILE")
@click.option("--loops", metavar="FILE.yaml", help="Loops and motors of a URDF: closed_loop, type, name_mot.")
@click.option("--floating", is_flag=True, help="The root of the URDF is a free body.")
@click.option(
    "--end-effector",
    metavar="NAME",
    help="Link or joint of a URDF; default: the only moving link that carries no other.",
)
@click.option("-o", "--out", "out", required=True, metavar="ROBOT.toml", help="Robot file to write.")
@click.option("--json", "as_json", is_flag=True, help="Print a single JSON object.")
def import_command(
    source: str, loops: str | None, floating: bool, end_effector: str | None, out: str, as_json: bool
) -> int:
    """Read a robot of another program: URDF with loops, MuJoCo, SYMORO."""
    from parflex import import_robot

    imported = import_robot(source, out, loops=loops, floating=floating, end_effector=end_effector)
    dropped = [{"kind": entry.kind, "name": entry.name, "why": entry.why} for entry in imported.dropped]
    answer: dict[str, Any] = {
        "file": imported.file,
        "joints": list(imported.joints),
        "closures": list(imported.closures),
    }
    answer |= {
        "dropped": dropped,
        "check": imported.check,
        "diagnostics": [*imported.diagnostics, *read_diagnostics(imported.check["diagnostics"])],
    }
    rows = [("file", imported.file), ("joints", ", ".join(imported.joints)), ("closures", ", ".join(imported.closures))]
    rows.append(("check", "ok" if imported.check["ok"] else imported.check["error"]["message"]))
    dropped_rows = [(entry["kind"], entry["name"], entry["why"]) for entry in dropped]
    tables: list[tuple] = [("", ["", ""], rows)] + [("not carried over", ["kind", "name", "why"], dropped_rows)] * bool(
        dropped_rows
    )
    output.print_result(answer, as_json, *tables)
    return 0 if imported.check["ok"] else 1
