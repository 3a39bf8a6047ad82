"""Robots of other programs as robot files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parflex.checks import boolean, short_text
from parflex.errors import InputError, ParflexError, did_you_mean
from parflex.exchange.importing.foreign_robot import Dropped, ForeignRobot
from parflex.exchange.importing.from_mujoco.mjcf_robot import mjcf_robot
from parflex.exchange.importing.loops_file import read_loops
from parflex.exchange.importing.robot_text import robot_text
from parflex.exchange.importing.suspicions import suspicions
from parflex.exchange.importing.symoro_robot import symoro_robot
from parflex.exchange.importing.urdf_robot import urdf_robot
from parflex.io import atomic_file, check_writable, refuse_overwrite
from parflex.records import Record
from parflex.robotfile.read import MAX_BYTES

FORMATS = (".urdf", ".xml", ".mjcf", ".par")


@dataclass(frozen=True, eq=False, repr=False)
class ImportedRobot(Record):
    """The robot `file` that was written, names of its `joints` and `closures`, what was `dropped`, and its `check`.

    `check` has `ok`, `warnings` and, where the robot cannot be assembled, `error`. `warnings` are about the source.
    """

    file: str
    joints: tuple[str, ...]
    closures: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    check: dict[str, Any]
    warnings: tuple[str, ...] = ()


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
    robot = read_foreign(path, loops, boolean(floating, "floating"), end_effector)
    robot.drop_idle_closures()
    robot.name_meshes_from(Path(out).resolve().parent)
    text = robot_text(robot).encode()
    if not robot.joints or len(text) > MAX_BYTES:
        message = (
            f"makes a robot file of more than {MAX_BYTES / 1e6:.0f} MB" if robot.joints else "no joint of it moves"
        )
        hint = "take a part of the robot" if robot.joints else "give a robot with joints"
        raise InputError(message, file=str(path), key="joint", value=str(path), hint=hint)
    with atomic_file(out) as file:
        file.write(text)
    warnings = (*robot.warnings, *robot.names.brief(), *suspicions(robot))
    return ImportedRobot(
        str(out), tuple(robot.joints), tuple(robot.closures), tuple(robot.dropped), checked(out), warnings
    )


def read_foreign(
    source: str | Path, loops: str | Path | None, floating: bool = False, end_effector: str | None = None
) -> ForeignRobot:
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


def checked(file: str | Path) -> dict[str, Any]:
    """What a check of a robot file says: `ok` and warnings, or the error."""
    from parflex.robot.load import load
    from parflex.robot.whole_check import unusual

    try:
        robot = load(str(file))
        return {"ok": True, "warnings": unusual(robot)}
    except ParflexError as error:
        return {"ok": False, "warnings": [], "error": error.as_dict()}
