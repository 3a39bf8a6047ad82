"""From a description to a robot: tree, payload, closures, actuation, working mode, and what is unusual about it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from parflex.closure.constraints import build_closures, neutral_rotation
from parflex.errors import InputError, ParflexError, did_you_mean
from parflex.models.needed_bodies import refuse_needed_bodies
from parflex.models.payload import with_payload
from parflex.models.pose_input import read_pose
from parflex.models.robot import Robot, WrittenRobot
from parflex.models.sensors import marked_rates
from parflex.robotfile import schema
from parflex.robotfile.checks import AXES
from parflex.robotfile.read import apply_settings, catalogue_names, data_files, describe, describe_sections, load_table
from parflex.tree.build import build_tree, read_body
from parflex.tree.rigid_version import read_version, rigid_version
from parflex.tree.tree import Tree


def load(
    source: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    payload: Sequence[float] | None = None,
    actuation: str | None = None,
    working_mode: str | None = None,
    elements: int | None = None,
    rigid: bool = False,
) -> Robot:
    """Load a robot of the catalogue by name, or of a file by path.

    Parameters
    ----------
    source : str or Path
        Name of a robot of the catalogue, or path of a robot file.
    settings : Mapping[str, Any], default None
        Values of the file by dotted path, e.g. {'constants.arm': 0.3}.
    payload : Sequence[float], default None
        Point mass on the end effector: mass, x, y, z in its axes (kg, m).
    actuation : str, default None
        Actuation of the file; None: its default.
    working_mode : str, default None
        Working (assembly) mode of the file; None: its default.
    elements : int, default None
        Elements that every element of every beam is divided into; None: 1.
    rigid : bool, default False
        Replace flexible bodies by rigid ones of the same mass, centre of mass and inertia. Springs of joints and
        couplings stay. Raises `InputError` where a motor can move only because bodies deform.

    Returns
    -------
    Robot
        The robot: `coordinates`, `independent`, `motors`, `warnings`; accepted by all functions.

    Examples
    --------
    >>> robot = parflex.load("3rrr", working_mode="+-+", payload=[0.2, 0, 0, 0])
    """
    table, (file, *parents) = load_table(source, settings)
    read = [] if source in catalogue_names() else [str(Path(file).absolute())]
    read += [
        name for name in (*parents, *data_files(table)) if Path(name).is_absolute()
    ]  # parents of the catalogue are names
    description = describe(copy.deepcopy(table), file)
    if elements is not None and not 1 <= elements <= 100:
        raise InputError(
            "the number of elements must be from 1 to 100", key="elements", value=elements, hint="give e.g. 4"
        )
    try:
        refine = 1 if elements is None else elements
        robot = _build(description, file, payload, actuation, working_mode, refine)
        if rigid and robot.tree.elastic:
            refuse_needed_bodies(robot)
            notes = superelement_warnings(robot.tree)
            version = rigid_version(description, build_tree(description, refine))
            robot = _build(version, file, payload, actuation, working_mode, refine)
            robot = replace(robot, warnings=(*robot.warnings, *notes))
        mounted = None if payload is None else tuple(float(value) for value in payload)
        robot = replace(robot, written=WrittenRobot(table, mounted, refine, tuple(read), rigid))
        slack = robot.home_pose.slack_cables()
        return replace(robot, warnings=(*robot.warnings, *slack), known_home=robot.home) if slack else robot
    except ParflexError as error:
        error.file = error.file or file
        raise


def _build(
    description: schema.RobotFile,
    file: str,
    payload: Sequence[float] | None,
    actuation: str | None,
    working_mode: str | None,
    refine: int,
) -> Robot:
    tree = build_tree(description, refine)
    warnings = [*inertia_warnings(description, tree), *superelement_warnings(tree)]
    if payload is not None:
        tree = with_payload(tree, payload)
    closures = build_closures(description, tree)
    actuated, locked = _actuation(description, tree, actuation)
    modes = description.working_modes
    if working_mode is not None and working_mode not in modes and working_mode != "default":
        raise InputError(
            f"there is no working mode '{working_mode}'",
            key="working-mode",
            value=working_mode,
            hint=did_you_mean(working_mode, {*modes, "default"}),
        )
    chosen = working_mode or "default"
    robot = Robot(
        description,
        file,
        tree,
        closures,
        actuated,
        locked,
        actuation or "default",
        chosen,
        tuple(warnings),
        modes.get(chosen, schema.WorkingMode()),
        marked_rates(description, tree, locked.union(actuated)),
    )
    for name, given in description.poses.items():
        read_pose(tree, given, f"poses.{name}", file)
    return robot


def rebuilt(robot: Robot, description: schema.RobotFile, payload: Sequence[float] | None = None) -> Robot:
    """A robot of the same file with other numbers in it, with the same actuation, working mode and elements.

    Without a `payload` it carries that of the robot.
    """
    mode = robot.working_mode if robot.working_mode in description.working_modes else None
    actuation = robot.actuation if robot.actuation in description.actuation else None
    return _build(description, robot.file, payload or robot.payload, actuation, mode, robot.refine)


def refined(robot: Robot, times: int) -> Robot:
    """The same robot, held and sensed alike, with every element of its beams divided into as many."""
    return _divided(robot, robot.refine * times)


def undivided(robot: Robot) -> Robot | None:
    """The same robot with the elements of its file alone; None where it has no others, or some are held."""
    if robot.refine == 1 or robot.locked.intersection(robot.tree.elastic):
        return None
    return _divided(robot, 1)


def _divided(robot: Robot, elements: int) -> Robot:
    written = robot.written
    if written is None:
        raise InputError("the robot was not loaded from a file", key="converge", hint="use 'load'")
    written = replace(written, elements=elements)
    made = replace(rebuilt(replace(robot, written=written), robot.description), written=written)
    names = {name: k for k, name in enumerate(made.tree.rate_names)}

    def same(rates: Iterable[int]) -> tuple[int, ...]:
        return tuple(names[robot.tree.rate_names[k]] for k in rates)

    actuated, locked = same(robot.actuated), frozenset(same(robot.locked))
    return replace(made, actuated=actuated, locked=locked, sensed=same(robot.sensed), warnings=robot.warnings)


def redesigned(robot: Robot, settings: Mapping[str, Any]) -> Robot:
    """The robot as it was loaded, with other values in its file, by dotted path."""
    written = robot.written
    if written is None:
        raise InputError("the robot was not loaded from a file", key="designs", hint="use 'load'")
    table = apply_settings(copy.deepcopy(written.table), settings, robot.file)
    description = read_version(copy.deepcopy(table), robot.file, written.elements, written.rigid)
    actuation = None if robot.actuation == "default" else robot.actuation
    made = _build(description, robot.file, written.payload, actuation, robot.working_mode, written.elements)
    made = replace(made, written=replace(written, table=table))
    return made if made.locked == robot.locked else made.locking(robot.locked)


def with_file_of(made: Robot, settings: Mapping[str, Any], sections_alone: bool = False) -> Robot:
    """A robot that has the numbers of these settings already, with the file that has them; quick: its sections."""
    assert made.written is not None
    table = apply_settings(copy.deepcopy(made.written.table), settings, made.file)
    if sections_alone:
        sections = describe_sections(table)
        description, written = made.description.model_copy(update={"sections": sections}), made.written
    else:
        description = read_version(copy.deepcopy(table), made.file, made.written.elements, made.written.rigid)
        written = replace(made.written, table=table)
    return replace(made, description=description, written=written, known_home=made.home, known_mobility=made.mobility)


def inertia_warnings(description: schema.RobotFile, tree: Tree) -> list[str]:
    """A sentence for each body that cannot exist."""
    entries: list[schema.Frame | schema.PlatformTable] = [*description.frame]
    if description.platform is not None:
        entries.append(description.platform)
    reasons: dict[str, list[str]] = {}
    for entry in entries:
        normal = neutral_rotation(tree, tree.places[entry.name])[2] if tree.planar else None
        reason = read_body(entry.inertia, entry.point_masses).impossible(normal)
        if reason:
            reasons.setdefault(reason, []).append(f"'{entry.name}'")
    return [
        f"no real body has the inertia of {', '.join(names)}: {reason}; "
        "fine for base parameters, which group several bodies"
        for reason, names in reasons.items()
    ]


def superelement_warnings(tree: Tree) -> list[str]:
    """A sentence for each doubt about matrices; super-elements that are alike share it."""
    doubts: dict[str, list[str]] = {}
    for link in tree.links:
        for note in link.body.found.notes if link.body.found is not None else ():
            doubts.setdefault(note, []).append(f"'{link.name}'")
    return [f"super-element {', '.join(names)}: {note}" for note, names in doubts.items()]


def _actuation(description: schema.RobotFile, tree: Tree, name: str | None) -> tuple[tuple[int, ...], frozenset[int]]:
    """Rates that are actuated and locked in the named actuation."""
    rates: dict[str, list[int]] = {}
    for frame in description.frame:
        parts = (
            [frame.name] if frame.joint not in ("universal", "cylindrical") else [f"{frame.name}.1", f"{frame.name}.2"]
        )
        if AXES[frame.joint]:
            rates[frame.name] = [k for part in parts for k in _rates(tree, part)]
    struts = [element for element in description.element if element.measured]
    rates |= {strut.name: list(_rates(tree, strut.name)) for strut in struts}
    if name is None or (name == "default" and name not in description.actuation):
        actuated, locked = [], []
        for frame in description.frame:
            if frame.joint == "fixed":
                continue
            own = rates[frame.name]
            flags = frame.actuated if isinstance(frame.actuated, tuple) else (frame.actuated,) * len(own)
            actuated += [k for k, flag in zip(own, flags, strict=True) if flag]
            locked += own if frame.locked else []
        actuated += [k for strut in struts if strut.actuated for k in rates[strut.name]]
        return tuple(actuated), frozenset(locked)
    if name not in description.actuation:
        raise InputError(
            f"there is no actuation '{name}'",
            key="actuation",
            value=name,
            hint=did_you_mean(name, {*description.actuation, "default"}),
        )
    choice = description.actuation[name]
    chosen = [k for joint in choice.actuated for k in rates[joint]]
    return tuple(chosen), frozenset(k for joint in choice.locked for k in rates[joint])


def default_motors(description: schema.RobotFile, tree: Tree) -> tuple[int, ...]:
    """Rates that are actuated where no actuation is named."""
    return _actuation(description, tree, None)[0]


def _rates(tree: Tree, name: str) -> range:
    link = tree.links[tree.number(name)]
    return range(link.v.start, link.v.stop)
