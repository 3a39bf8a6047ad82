"""Commands `export` and `import`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from parflex.checks import one_of
from parflex.cli.group import verb
from parflex.cli.output import Answer
from parflex.diagnostics import read_diagnostics
from parflex.errors import InputError

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Robot

FORMATS = ("fmu", "mjcf", "urdf")
EXPORT_NOTE = (
    "FORMAT is fmu, mjcf (MuJoCo) or urdf (with the loops in a YAML file beside it). Flexible bodies are rigid in the "
    "last two. The other options are those of fmu."
)
IMPORT_NOTE = (
    "FILE is a URDF (.urdf), a file of MuJoCo (.xml; needs the package mujoco) or of SYMORO (.par). What is not "
    "carried over stands in the answer and, as comments, in the robot file. Exit code 1: the file is written, but the "
    "robot cannot be assembled as it stands."
)


@verb(
    "files",
    "export fmu 5r --fmi 2 --kind cs --drive efforts --step 0.0005 -o 5r.fmu",
    "export fmu 5r --law ctc -o controller.fmu",
    "export mjcf delta -o delta.xml",
    "export urdf gough-stewart -o hexapod.urdf",
    note=EXPORT_NOTE,
    of="export_fmu",
)
def export(format_name: str, robot: Robot, *, out: str, **options: Any) -> Answer:
    """Write a robot as a file for other programs."""
    from parflex import export_fmu, export_mjcf, export_urdf

    one_of(format_name, FORMATS, "format")
    answer: dict[str, Any]
    if format_name == "fmu":
        fmu = export_fmu(robot, out, **options)
        answer = {"file": fmu.file, "platforms": list(fmu.platforms), "variables": list(fmu.variables)}
        kinds = [variable["causality"] for variable in fmu.variables]
        rows: list[Any] = [("file", fmu.file), ("platforms", ", ".join(fmu.platforms))]
        rows += [(f"{word}s", kinds.count(word)) for word in ("input", "output", "parameter", "local") if word in kinds]
        notes = fmu.notes
    else:
        default = inspect.signature(export_fmu).parameters
        for word, value in options.items():
            if value == default[word].default:
                continue
            key = word.replace("_", "-")
            text = f"a file of the format '{format_name}' has no {key}"
            raise InputError(text, key=key, value=str(value), hint=f"leave out --{key}")
        exported = (export_mjcf if format_name == "mjcf" else export_urdf)(robot, out)
        answer = {"file": exported.file, "files": list(exported.files)}
        rows, notes = [("file", name) for name in exported.files], exported.notes
    answer |= {"notes": list(notes), "diagnostics": robot.diagnostics}
    return Answer(answer, ("", ["", "written"], [*rows, *(("note", note) for note in notes)]))


@verb(
    "files",
    "import delta.urdf --loops delta.loops.yaml -o delta.toml",
    "import cassie.xml -o cassie.toml",
    "import SR400.par -o sr400.toml",
    name="import",
    note=IMPORT_NOTE,
)
def import_command(
    source: str, *, loops: str | None = None, floating: bool = False, end_effector: str | None = None, out: str
) -> Answer:
    """Read a robot of another program: URDF with loops, MuJoCo, SYMORO."""
    from parflex import import_robot

    imported = import_robot(source, out, loops=loops, floating=floating, end_effector=end_effector)
    ok = imported.check["ok"]
    answer: dict[str, Any] = {
        "file": imported.file,
        "joints": list(imported.joints),
        "closures": list(imported.closures),
        "dropped": [{"kind": entry.kind, "name": entry.name, "why": entry.why} for entry in imported.dropped],
        "check": imported.check,
        "diagnostics": [*imported.diagnostics, *read_diagnostics(imported.check["diagnostics"])],
    }
    rows = [("file", imported.file), ("joints", ", ".join(imported.joints)), ("closures", ", ".join(imported.closures))]
    rows.append(("check", "ok" if ok else imported.check["error"]["message"]))
    dropped = ("not carried over", ["kind", "name", "why"], [entry.values() for entry in answer["dropped"]])
    return Answer(answer, ("", ["", ""], rows), dropped, code=0 if ok else 1)
