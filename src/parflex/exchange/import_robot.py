"""Import a robot from URDF, MJCF or SYMORO."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.diagnostics import Diagnostic, reported
from parflex.errors import InputError, ParflexError, did_you_mean
from parflex.exchange.imported_tables import Dropped, ImportedTables, robot_text
from parflex.exchange.loops_yaml import read_loops
from parflex.exchange.mjcf import mjcf_robot
from parflex.exchange.symoro import symoro_robot
from parflex.exchange.untrusted_files import file_error
from parflex.exchange.urdf import urdf_robot
from parflex.io import TEXT_BYTES, check_writable, refuse_overwrite, write_text
from parflex.records import Answer, name_list

FORMATS = (".urdf", ".xml", ".mjcf", ".par")
FEW = 4  # diagnostics on names
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
    loops, floating, end_effector
        See parflex.api.WORDS.

    Returns
    -------
    ImportedRobot
        The file, its joints and closures, what was not carried over, and what a check of the file says.
    """
    if Path(out).suffix != ".toml":
        raise InputError("a robot file ends in .toml", key="out", value=str(out), hint=f"name it {Path(out).stem}.toml")
    refuse_overwrite([out], [source for source in (path, loops) if source is not None])
    check_writable(out)
    robot = _read(str(path), loops, floating, end_effector)
    robot.drop_idle_closures()
    robot.name_meshes_from(Path(out).resolve().parent)
    text = robot_text(robot)
    if not robot.joints:
        raise file_error("no joint of it moves", path, "joint", str(path), "give a robot with joints")
    if len(text.encode()) > TEXT_BYTES:
        message = f"makes a robot file of more than {TEXT_BYTES / 1e6:.0f} MB"
        raise file_error(message, path, "joint", str(path), "take a part of the robot")
    write_text(out, text)
    diagnostics = (*robot.diagnostics, *_renamed(robot), *_suspected_units(robot), *_missing_inertias(robot))
    joints, closures, dropped = tuple(robot.joints), tuple(robot.closures), tuple(robot.dropped)
    return ImportedRobot(str(out), joints, closures, dropped, check_result(out), diagnostics)


def _read(source: str, loops: str | Path | None, floating: bool, end_effector: str | None) -> ImportedTables:
    """The tables of a file of another program."""
    suffix = Path(source).suffix.lower()
    if suffix not in FORMATS:
        message = f"'{short_text(Path(source).name)}' is of no format that is read"
        raise file_error(message, source, "file", source, did_you_mean(suffix, FORMATS))
    if suffix == ".urdf":
        return urdf_robot(source, None if loops is None else read_loops(loops), floating, end_effector)
    for word, value in (("loops", loops), ("floating", floating or None), ("end_effector", end_effector)):
        if value is not None:
            message = f"'{word}' is for URDF files: {suffix} files have their own"
            raise file_error(message, source, word, str(value), f"leave out {word}")
    return symoro_robot(source) if suffix == ".par" else mjcf_robot(source)


def check_result(file: str | Path) -> dict[str, Any]:
    """What a check of a robot file says: `ok` and diagnostics, or the error."""
    from parflex.robot.load import load
    from parflex.robot.whole_check import unusual

    try:
        return {"ok": True, **reported(unusual(load(str(file))))}
    except ParflexError as error:
        return {"ok": False, **reported(()), "error": error.as_dict()}


# -- what to check -------------------------------------------------------------------------------------------------


def _renamed(robot: ImportedTables) -> list[Diagnostic]:
    """The first names that are others than in the source."""
    sentences = robot.names.sentences()
    more = len(sentences) - FEW + 1
    if more > 1:
        sentences[FEW - 1 :] = [f"{more} more names are others here; the file lists them"]
    return [Diagnostic("changed-by-import", text) for text in sentences]


def _missing_inertias(robot: ImportedTables) -> Iterator[Diagnostic]:
    """Joints that move no inertia, so that the robot has no direct model."""
    heavy = [table["name"] for table in robot.frame if _heavy(table)]
    if not heavy:
        text = "no body has an inertia: poses can be found, dynamics not; add inertia = { mass, centre, about_centre }"
        yield Diagnostic("missing-inertia", text)
        return
    owner = {table["name"]: table.get("parent", table.get("frame", "base")) for table in (*robot.frame, *robot.point)}
    ends = [end for table in (*robot.closure, *robot.element) for end in table["between"]]
    ends += [name for table in robot.coupling for name in (table["joint"], *table["terms"])]
    ends += [*heavy, *(table["name"] for table in robot.frame if table.get("motor_inertia"))]
    loaded: set[str] = set()
    for name in ends:
        while name in owner and name not in loaded:
            loaded.add(name)
            name = owner[name]
    light = [name for name in robot.joints if name not in loaded]
    if light:
        text = f"nothing with an inertia moves with {name_list(light)}: direct dynamics needs one"
        yield Diagnostic("missing-inertia", text)


def _suspected_units(robot: ImportedTables) -> Iterator[Diagnostic]:
    """Sizes that robots have only in other units than those of SI."""
    places = [table.get("place", table) for table in (*robot.frame, *robot.point)]
    inertias = {table["name"]: table["inertia"] for table in robot.frame if "inertia" in table}
    positions = [place.get("position") for place in places] + [entry.get("centre") for entry in inertias.values()]
    longest = max((float(np.linalg.norm(_plain(position))) for position in positions if position), default=0.0)
    if longest > LONG:
        yield _units(f"lengths of {longest:.4g} m: are they millimetres? The file is in metres")
    radii = {name: _gyration(entry) for name, entry in inertias.items()} if longest <= LONG else {}
    spread = next((name for name, radius in radii.items() if radius > SPREAD * max(longest, 1e-3)), None)
    if spread is not None:
        yield _units(
            f"the inertia of '{spread}' has a radius of gyration of {radii[spread]:.3g} m, but no length of the robot "
            f"is above {longest:.3g} m: is it in kg mm2 or g mm2?"
        )
    revolute = [table for table in robot.frame if table.get("joint") == "revolute" and "limits" in table]
    wide = [table["name"] for table in revolute if max(_plain(table["limits"])) > WIDE_LIMITS]
    if wide:
        yield _units(f"limits of more than {WIDE_LIMITS:g} rad: are they degrees? Joints {name_list(wide)}")


def _units(text: str) -> Diagnostic:
    return Diagnostic("suspected-units", text)


def _heavy(table: dict[str, Any]) -> bool:
    return any(value not in (0, 0.0) for value in table.get("inertia", {}).values())


def _plain(values: list[Any]) -> list[float]:
    """Sizes of numbers; what is an expression has none yet."""
    return [abs(value) if isinstance(value, int | float) else 0.0 for value in values]


def _gyration(inertia: dict[str, Any]) -> float:
    mass, entries = inertia.get("mass", 0.0), inertia.get("about_centre")
    if entries is None or not mass > 0:
        return 0.0
    return float(np.sqrt(np.abs(np.array(entries, dtype=float)).max() / mass))
