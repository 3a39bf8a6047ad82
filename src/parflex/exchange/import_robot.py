"""Import a robot from URDF, MJCF or SYMORO."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.diagnostics import Diagnostic, reported
from parflex.errors import InputError, ParflexError, did_you_mean
from parflex.exchange.imported_tables import NOTE, Dropped, ImportedTables
from parflex.exchange.loops_yaml import read_loops
from parflex.exchange.mjcf_import import mjcf_robot
from parflex.exchange.symoro import symoro_robot
from parflex.exchange.urdf import urdf_robot
from parflex.io import TEXT_BYTES, check_writable, refuse_overwrite, write_text
from parflex.records import Answer

FORMATS = (".urdf", ".xml", ".mjcf", ".par")

TABLES = ("frame", "point", "closure", "coupling", "element", "visual")

ANGLES = {
    sign * k * math.pi / 12: f"{'-' if sign < 0 else ''}{word}"
    for k, word in ((1, "pi/12"), (2, "pi/6"), (3, "pi/4"), (4, "pi/3"), (6, "pi/2"), (8, "2*pi/3"), (9, "3*pi/4"),
                    (10, "5*pi/6"), (12, "pi"))
    for sign in (1, -1)
}  # fmt: skip

COMMENT_WIDTH = 110  # letters of a remark

MANY = 12  # names in a remark

LONG = 20.0  # m: no robot has such links

SPREAD = 3.0  # radius of gyration over the size of the robot; of a real body it is below one

WIDE_LIMITS = 25.0  # rad: limits of four turns are those of no robot, but 30 degrees are common


@dataclass(frozen=True, eq=False, repr=False)
class ImportedRobot(Answer):
    """The robot `file` that was written, names of its `joints` and `closures`, what was `dropped`, and its `check`.

    `check` has `ok`, `warnings`, `diagnostics` and, where the robot cannot be assembled, `error`. `diagnostics` of the
    record are about the source.
    """

    file: str
    joints: tuple[str, ...]
    closures: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    check: dict[str, Any]
    diagnostics: tuple[Diagnostic, ...] = ()


def import_robot(
    path: str | Path,
    out: str | Path,
    loops: str | Path | None = None,
    floating: bool = False,
    end_effector: str | None = None,
) -> ImportedRobot:
    """Read a robot of another program, write it as a robot file and check that.

    Parameters
    ----------
    path : str or Path
        File: URDF (`.urdf`), MuJoCo's XML (`.xml`, needs the package mujoco) or SYMORO's (`.par`).
    out : str or Path
        Robot file to write, `.toml`.
    loops : str or Path, default None
        YAML file beside a URDF, with its loops and motors.
    floating : bool, default False
        The root of a URDF is a free body, not fixed to the ground.
    end_effector : str, default None
        Link or joint of a URDF that is the end effector; None is the only moving link that carries no other.

    Returns
    -------
    ImportedRobot
        The file, its joints and closures, what was not carried over, and what a check of the file says.

    Examples
    --------
    >>> parflex.import_robot("arm.urdf", "arm.toml", loops="arm.loops.yaml").dropped
    """
    if Path(out).suffix != ".toml":
        raise InputError("a robot file ends in .toml", key="out", value=str(out), hint=f"{Path(out).stem}.toml")
    refuse_overwrite([out], [source for source in (path, loops) if source is not None])
    check_writable(out)
    robot = read_imported(path, loops, floating, end_effector)
    robot.drop_idle_closures()
    robot.name_meshes_from(Path(out).resolve().parent)
    text = robot_text(robot)
    if not robot.joints or len(text.encode()) > TEXT_BYTES:
        message = (
            f"makes a robot file of more than {TEXT_BYTES / 1e6:.0f} MB" if robot.joints else "no joint of it moves"
        )
        hint = "take a part of the robot" if robot.joints else "give a robot with joints"
        raise InputError(message, file=str(path), key="joint", value=str(path), hint=hint)
    write_text(out, text)
    renamed = (Diagnostic("changed-by-import", text) for text in robot.names.brief())
    diagnostics = (*robot.diagnostics, *renamed, *import_warnings(robot))
    return ImportedRobot(
        str(out), tuple(robot.joints), tuple(robot.closures), tuple(robot.dropped), check_result(out), diagnostics
    )


def read_imported(
    source: str | Path, loops: str | Path | None, floating: bool = False, end_effector: str | None = None
) -> ImportedTables:
    """The tables of a file of another program."""
    suffix = Path(source).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"'{short_text(Path(source).name)}' is of no format that is read", file=str(source), key="file",
            value=str(source), hint=did_you_mean(suffix, FORMATS),
        )  # fmt: skip
    if suffix == ".urdf":
        return urdf_robot(str(source), None if loops is None else read_loops(loops), floating, end_effector)
    for word, value in (("loops", loops), ("floating", floating or None), ("end_effector", end_effector)):
        if value is not None:
            raise InputError(
                f"'{word}' is for URDF files: {suffix} files have their own", file=str(source), key=word,
                value=str(value), hint=f"leave out {word}",
            )  # fmt: skip
    return symoro_robot(str(source)) if suffix == ".par" else mjcf_robot(str(source))


def check_result(file: str | Path) -> dict[str, Any]:
    """What a check of a robot file says: `ok` and diagnostics, or the error."""
    from parflex.robot.load import load
    from parflex.robot.whole_check import unusual

    try:
        robot = load(str(file))
        return {"ok": True, **reported(unusual(robot))}
    except ParflexError as error:
        return {"ok": False, **reported(()), "error": error.as_dict()}


def robot_text(robot: ImportedTables) -> str:
    """The whole file."""
    lines = ["format = 1", f"name = {quoted(robot.name)}", f"gravity = {toml_value(robot.gravity)}"]
    if robot.end_effector is not None:
        lines.append(f"end_effector = {quoted(robot.end_effector)}")
    lines += remarks(robot)
    lines += ["", "[reference]", f"source = {quoted(f'imported from {robot.source}')}"]
    if robot.constants:
        lines += ["", "[constants]", *(f"{name} = {toml_value(value)}" for name, value in robot.constants.items())]
    for kind in TABLES:
        for table in getattr(robot, kind):
            lines += ["", f"[[{kind}]]" + (f"  # {plain(table[NOTE])}" if NOTE in table else "")]
            lines += [f"{key} = {entry(key, value)}" for key, value in table.items() if key != NOTE]
    return "\n".join(lines) + "\n"


def remarks(robot: ImportedTables) -> list[str]:
    """Comments on what the source has and this file has not, and on what is called otherwise."""
    groups: dict[tuple[str, str], list[str]] = {}
    for dropped in robot.dropped:
        groups.setdefault((dropped.kind, dropped.why), []).append(dropped.name)
    lines = ["", "# Not carried over:"] if groups else []
    for (kind, why), names in groups.items():
        shown = ", ".join(names[:MANY]) + (f" and {len(names) - MANY} more" if len(names) > MANY else "")
        lines += wrapped_comment(f"{kind} {shown}: {why}")
    if robot.names.renamed:
        lines += ["", "# Called otherwise than in the source:"]
        lines += [line for text in robot.names.sentences() for line in wrapped_comment(text)]
    return lines


def wrapped_comment(text: str) -> list[str]:
    """A remark over several lines."""
    lines, line = [], "# -"
    for word in plain(text).split():
        if len(line) + 1 + len(word) > COMMENT_WIDTH and line not in ("# -", "#  "):
            lines.append(line)
            line = "#  "
        line += f" {word}"
    return [*lines, line]


def plain(text: str) -> str:
    """Text that cannot end a comment."""
    return re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]", " ", text)


def entry(key: str, value: Any) -> str:
    """The value of a key; turns by common angles are written as such."""
    if key == "rotation":
        return "[" + ", ".join(_angle(angle) for angle in value) + "]"
    return toml_value(value)


def _angle(value: Any) -> str:
    if isinstance(value, float):
        for angle, word in ANGLES.items():
            if abs(value - angle) <= 4e-16 * abs(angle):
                return f'"{word}"'
    return toml_value(value)


def toml_value(value: Any) -> str:
    """A value of TOML; a string among numbers is an expression."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {entry(key, item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    number = float(value) + 0.0
    return str(int(number)) if number.is_integer() and abs(number) < 1e6 else repr(number)


def quoted(text: str) -> str:
    """A string of TOML."""
    safe = plain(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{safe}"'


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else quoted(key)


def import_warnings(robot: ImportedTables) -> list[Diagnostic]:
    """Diagnostics of what to check."""
    return [Diagnostic("suspected-units", text) for text in (*_units(robot), *_masses(robot))]


def _units(robot: ImportedTables) -> Iterator[str]:
    places = [table.get("place", table) for table in [*robot.frame, *robot.point]]
    sizes = [size for place in places if (size := _size(place.get("position"))) is not None]
    centres = [size for table in robot.frame if (size := _size(table.get("inertia", {}).get("centre"))) is not None]
    longest = max([*sizes, *centres], default=0.0)
    if longest > LONG:
        yield f"lengths of {longest:.4g} m: are they millimetres? The file is in metres"
    scale = max(longest, 1e-3)
    for table in robot.frame:
        radius = _gyration(table.get("inertia", {}))
        if radius > SPREAD * scale and longest <= LONG:
            yield (
                f"the inertia of '{table['name']}' has a radius of gyration of {radius:.3g} m, but no length of the "
                f"robot is above {longest:.3g} m: is it in kg mm2 or g mm2?"
            )
            break
    wide = [
        table["name"]
        for table in robot.frame
        if table.get("joint") == "revolute" and max(map(_plain, table.get("limits", [0.0]))) > WIDE_LIMITS
    ]
    if wide:
        yield f"limits of more than {WIDE_LIMITS:g} rad: are they degrees? Joints {_few(wide)}"


def _masses(robot: ImportedTables) -> Iterator[str]:
    if not any(_heavy(table) for table in robot.frame):
        yield "no body has an inertia: poses can be found, dynamics not; add inertia = { mass, centre, about_centre }"
        return
    owner = {table["name"]: table.get("parent", table.get("frame", "base")) for table in [*robot.frame, *robot.point]}
    loaded: set[str] = set()
    ends = [end for kind in (robot.closure, robot.element) for table in kind for end in table["between"]]
    ends += [name for table in robot.coupling for name in (table["joint"], *table["terms"])]
    ends += [table["name"] for table in robot.frame if _heavy(table) or table.get("motor_inertia")]
    for name in ends:
        while name in owner and name not in loaded:
            loaded.add(name)
            name = owner[name]
    light = [name for name in robot.joints if name not in loaded]
    if light:
        yield f"nothing with an inertia moves with {_few(light)}: direct dynamics needs one"


def _heavy(table: dict[str, Any]) -> bool:
    return any(
        value not in (0, 0.0) for key, value in table.get("inertia", {}).items() if key not in ("IA", "FV", "FS")
    )


def _size(values: Any) -> float | None:
    return float(np.linalg.norm([_plain(value) for value in values])) if isinstance(values, list) else None


def _plain(value: Any) -> float:
    """A number; what is an expression has no size yet."""
    return abs(value) if isinstance(value, int | float) else 0.0


def _gyration(inertia: dict[str, Any]) -> float:
    mass, entries = inertia.get("mass"), inertia.get("about_centre")
    if not isinstance(mass, int | float) or not mass > 0 or entries is None:
        return 0.0
    I = np.array(entries, dtype=float)
    return float(np.sqrt(max(np.abs(I).max(), 0.0) / mass))


def _few(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
