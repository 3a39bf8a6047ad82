"""Load a robot with payload, actuation, working mode and omitted terms.

Omitted terms have one set of names for all functions and programs. A term is removed from the numbers of the robot
itself, so forces, energies, losses, frequencies and programs agree about it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.closure import mobility
from parflex.closure.constraints import Coupling, build_closures, neutral_rotation
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError, did_you_mean
from parflex.records import name_list
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.home import mobility_with, slack_cables
from parflex.robot.pose_input import read_pose
from parflex.robot.robot import Robot, WrittenRobot, axis_names, file_frame, marked_rates
from parflex.robotfile import schema
from parflex.robotfile.checks import JOINT_RULES
from parflex.robotfile.read import apply_settings, catalogue_names, data_files, describe, describe_sections, load_table
from parflex.tree.build import SAME_PLACE, build_tree, read_body
from parflex.tree.force_elements import CoupledSpring, PointElement
from parflex.tree.rigid_version import read_version, rigid_version
from parflex.tree.tree import Link, Place, Tree

Without = Sequence[str]
FRICTION = ("viscous", "coulomb", "static", "more_viscous", "more_coulomb", "offset")
JOINT_TERMS = ("friction", "motor-inertia", "springs")  # terms that operator counts omit unless requested


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
    source, settings, payload, actuation, working_mode, elements, rigid
        See `parflex.api.WORDS`.

    Returns
    -------
    Robot
        The robot: `coordinates`, `independent`, `motors`, `diagnostics`; accepted by all functions.
    """
    table, (file, *parents) = load_table(source, settings)
    read = [] if source in catalogue_names() else [str(Path(file).absolute())]
    # parents of the catalogue are names
    read += [name for name in (*parents, *data_files(table)) if Path(name).is_absolute()]
    description = describe(copy.deepcopy(table), file)
    refine = 1 if elements is None else elements
    if not 1 <= refine <= 100:
        message = "the number of elements must be from 1 to 100"
        raise InputError(message, key="elements", value=elements, hint="give e.g. 4")
    try:
        robot = _build(description, file, payload, actuation, working_mode, refine)
        if rigid and robot.tree.elastic:
            refuse_needed_flexibility(robot)
            notes = superelement_warnings(robot.tree)
            version = rigid_version(description, build_tree(description, refine))
            robot = _build(version, file, payload, actuation, working_mode, refine)
            robot = replace(robot, diagnostics=(*robot.diagnostics, *notes))
        mounted = None if payload is None else tuple(float(value) for value in payload)
        robot = replace(robot, written=WrittenRobot(table, mounted, refine, tuple(read), rigid, tree=robot.tree))
        slack = slack_cables(robot)
        return replace(robot, diagnostics=(*robot.diagnostics, *slack), known_home=robot.home) if slack else robot
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
    nodes: Collection[str] = (),
) -> Robot:
    tree = build_tree(description, refine, nodes)
    diagnostics = (*inertia_warnings(description, tree), *superelement_warnings(tree))
    if payload is not None:
        tree = with_payload(tree, payload)
    closures = build_closures(description, tree)
    actuated, locked = actuation_rates(description, tree, actuation)
    modes = description.working_modes
    chosen = "default" if working_mode is None else working_mode
    if chosen not in modes and chosen != "default":
        raise _unknown("working mode", chosen, modes)
    mode, sensed = modes.get(chosen, schema.WorkingMode()), marked_rates(description, tree, locked.union(actuated))
    parts = (description, file, tree, closures, actuated, locked)
    robot = Robot(*parts, actuation or "default", chosen, diagnostics, mode, sensed)
    for name, coordinates in description.poses.items():
        read_pose(tree, coordinates, f"poses.{name}", file)
    return robot


def _unknown(what: str, name: str, known: Iterable[str]) -> InputError:
    hint = did_you_mean(name, {*known, "default"})
    return InputError(f"there is no {what} '{name}'", key=what.replace(" ", "-"), value=name, hint=hint)


def with_numbers(robot: Robot, description: schema.RobotFile, payload: Sequence[float] | None = None) -> Robot:
    """Return a robot of the same file and choices with other numbers, and its own or another `payload`."""
    mode = robot.working_mode if robot.working_mode in description.working_modes else None
    actuation = robot.actuation if robot.actuation in description.actuation else None
    return _build(description, robot.file, payload or robot.payload, actuation, mode, robot.refine, robot.nodes)


def with_refined_beams(robot: Robot, times: int) -> Robot:
    """Return the same robot with each beam element divided into `times` elements."""
    return divided(robot, robot.refine * times, robot.nodes)


def with_file_elements(robot: Robot) -> Robot | None:
    """Return the robot with the elements of its file, or None if it has no others or some are locked."""
    if robot.refine == 1 or robot.locked.intersection(robot.tree.elastic):
        return None
    return divided(robot, 1, robot.nodes)


def divided(robot: Robot, elements: int, nodes: tuple[str, ...]) -> Robot:
    """Return the same robot with other elements and nodes of its beams."""
    written = replace(_written(robot, "converge"), elements=elements, nodes=nodes)
    result = with_numbers(replace(robot, written=written), robot.description)
    names = {name: k for k, name in enumerate(result.tree.rate_names)}

    def same(rates: Iterable[int]) -> tuple[int, ...]:
        return tuple(names[robot.tree.rate_names[k]] for k in rates)

    actuated, locked = same(robot.actuated), frozenset(same(robot.locked))
    written, sensed = replace(written, tree=result.tree), same(robot.sensed)
    result = replace(result, actuated=actuated, locked=locked, sensed=sensed, written=written)
    return replace(result, diagnostics=robot.diagnostics)


def _written(robot: Robot, key: str) -> WrittenRobot:
    if robot.written is None:
        raise InputError("the robot was not loaded from a file", key=key, hint="use 'load'")
    return robot.written


def with_settings(robot: Robot, settings: Mapping[str, Any]) -> Robot:
    """Return the robot with other values in its file, by dotted path."""
    written = _written(robot, "designs")
    table = apply_settings(copy.deepcopy(written.table), settings, robot.file)
    description = read_version(copy.deepcopy(table), robot.file, written.elements, written.rigid)
    actuation = None if robot.actuation == "default" else robot.actuation
    mesh = written.elements, written.nodes
    result = _build(description, robot.file, written.payload, actuation, robot.working_mode, *mesh)
    result = replace(result, written=replace(written, table=table, tree=result.tree))
    return result if result.locked == robot.locked else result.locking(robot.locked)


def with_file_of(robot: Robot, settings: Mapping[str, Any], sections_alone: bool = False) -> Robot:
    """Return a robot that already has the numbers of settings, with the updated file; `sections_alone` is fast."""
    assert robot.written is not None
    table = apply_settings(copy.deepcopy(robot.written.table), settings, robot.file)
    if sections_alone:
        sections = describe_sections(table)
        description, written = robot.description.model_copy(update={"sections": sections}), robot.written
    else:
        description = read_version(copy.deepcopy(table), robot.file, robot.written.elements, robot.written.rigid)
        written = replace(robot.written, table=table, tree=robot.tree)
    return replace(
        robot, description=description, written=written, known_home=robot.home, known_mobility=robot.mobility
    )


def inertia_warnings(description: schema.RobotFile, tree: Tree) -> list[Diagnostic]:
    """Return a diagnostic for each reason why bodies are not physically consistent."""
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
        Diagnostic(
            "impossible-inertia",
            f"no real body has the inertia of {', '.join(names)}: {reason}; "
            "fine for base parameters, which group several bodies",
        )
        for reason, names in reasons.items()
    ]


def superelement_warnings(tree: Tree) -> list[Diagnostic]:
    """Return diagnostics of matrices; identical super-elements share them."""
    doubts: dict[Diagnostic, list[str]] = {}
    for link in tree.links:
        for note in link.body.found.notes if link.body.found is not None else ():
            doubts.setdefault(note, []).append(f"'{link.name}'")
    return [note.prefixed(f"super-element {', '.join(names)}: ") for note, names in doubts.items()]


def actuation_rates(
    description: schema.RobotFile, tree: Tree, name: str | None
) -> tuple[tuple[int, ...], frozenset[int]]:
    """Return the actuated and locked rates of the named actuation."""
    rates: dict[str, list[int]] = {}
    for frame in description.frame:
        if JOINT_RULES[frame.joint].axes:
            rates[frame.name] = [k for name in axis_names(frame) for k in _rates(tree, name)]
    struts = [element for element in description.element if element.measured]
    rates |= {strut.name: list(_rates(tree, strut.name)) for strut in struts}
    if name is None or (name == "default" and name not in description.actuation):
        actuated, locked = [], []
        for frame in description.frame:
            if frame.joint == "fixed":
                continue
            joint_rates = rates[frame.name]
            flags = frame.actuated if isinstance(frame.actuated, tuple) else (frame.actuated,) * len(joint_rates)
            actuated += [k for k, flag in zip(joint_rates, flags, strict=True) if flag]
            locked += joint_rates if frame.locked else []
        actuated += [k for strut in struts if strut.actuated for k in rates[strut.name]]
        return tuple(actuated), frozenset(locked)
    if name not in description.actuation:
        raise _unknown("actuation", name, description.actuation)
    choice = description.actuation[name]
    chosen = [k for joint in choice.actuated for k in rates[joint]]
    return tuple(chosen), frozenset(k for joint in choice.locked for k in rates[joint])


def _rates(tree: Tree, name: str) -> range:
    link = tree.links[tree.number(name)]
    return range(link.v.start, link.v.stop)


def with_payload(tree: Tree, payload: Sequence[float]) -> Tree:
    """Return the tree with a point mass on its end effector."""
    values = [float(value) for value in payload]
    place = tree.places[tree.end_effector]
    if place.link < 0:
        raise InputError("the end effector does not move", key="payload", hint="name a moving end_effector in the file")
    links = list(tree.links)
    if links[place.link].body.size and not links[place.link].body.by_tip:
        place = _on_node(tree, place)
    body = RigidBody.from_centre(values[0], values[1:], np.zeros((3, 3))).in_parent(place.rotation, place.position)
    carrier = links[place.link]
    links[place.link] = replace(carrier, body=carrier.body.with_rigid(body))
    return replace(tree, links=tuple(links))


def _on_node(tree: Tree, place: Place) -> Place:
    """Return a place on a modal body as a place on its node, because a payload moves with the body."""
    for j, link in enumerate(tree.links):
        if link.node is None or link.parent != place.link or not link.node.turns:
            continue
        if np.linalg.norm(link.position - place.position) < SAME_PLACE * tree.length:
            return Place(j, place.rotation, np.zeros(3))
    hint = "choose a node as end_effector, or give the payload to a frame on a node"
    raise InputError(f"'{tree.end_effector}' has no node to attach the payload to", key="payload", hint=hint)


def checked_terms(without: Iterable[str], key: str = "without") -> tuple[str, ...]:
    """Return valid names of omitted terms, without repetition and in standard order."""
    single = isinstance(without, str)
    if single or not isinstance(without, Iterable):
        hint = f"write ['{without}'] in place of '{without}'" if single else "['friction']"
        raise InputError(f"'{key}' is a list of terms", key=key, value=without if single else repr(without), hint=hint)
    words = list(without)
    for word in words:
        if not isinstance(word, str) or word not in TERMS:
            value = word if isinstance(word, str) else repr(word)
            hint = did_you_mean(str(word), TERMS)
            raise InputError(f"'{word}' is not a term that can be left out", key=key, value=value, hint=hint)
    return tuple(term for term in TERMS if term in words)


def omitted_terms(without: Iterable[str], include: Iterable[str] | None) -> tuple[str, ...]:
    """Return the omitted terms; `include` names the only active joint terms."""
    omitted = checked_terms(without)
    if include is None:
        return omitted
    words = [include] if isinstance(include, str) else list(include)
    for word in words:
        if word not in JOINT_TERMS:
            hint = did_you_mean(str(word), JOINT_TERMS)
            raise InputError(f"'{word}' is not a term that can be included", key="with", value=str(word), hint=hint)
        if word in omitted:
            hint = "keep one of the two"
            raise InputError(f"'{word}' is left out and included", key="without", value=word, hint=hint)
    return tuple(term for term in TERMS if term in omitted or (term in JOINT_TERMS and term not in words))


def acting_robot(robot: Robot, without: Collection[str] = ()) -> Robot:
    """Return the robot with its active terms only, at the same home, cached for each choice."""
    chosen = checked_terms(without)
    if not chosen:
        return robot

    def make() -> Robot:
        tree = robot.tree
        for term in chosen:
            tree = TERMS[term](tree)
        closures = replace(robot.closures, tree=tree)
        if "friction" in chosen:
            rows = (
                replace(row, efficiency=1.0, back=1.0) if isinstance(row, Coupling) else row
                for row in closures.constraints
            )
            closures = replace(closures, constraints=tuple(rows))
        return replace(robot, tree=tree, closures=closures, known_home=robot.home, known_mobility=robot.known[1])

    return robot.derived(("without", chosen), make)


def acting_configuration(robot: Robot, pose: Pose | None = None, without: Collection[str] = ()) -> Configuration:
    """Return the robot at a pose with its active terms only."""
    chosen = checked_terms(without)  # a wrong term is reported before a pose is solved
    configuration = configure(robot, pose)
    return Configuration(acting_robot(configuration.robot, chosen), configuration.q) if chosen else configuration


def _with_terms(link: Link, **values: Any) -> Link:
    return replace(link, terms=replace(link.terms, **values))


def _changing(
    link: Callable[[Link], Link] | None = None,
    spring: Callable[[CoupledSpring], CoupledSpring] | None = None,
    element: Callable[[PointElement], PointElement] | None = None,
) -> Callable[[Tree], Tree]:
    """Return a change of all links, springs on coordinates and elements of a tree."""

    def change(tree: Tree) -> Tree:
        links = tree.links if link is None else tuple(map(link, tree.links))
        springs = tree.springs if spring is None else tuple(map(spring, tree.springs))
        elements = tree.elements if element is None else tuple(map(element, tree.elements))
        return replace(tree, links=links, springs=springs, elements=elements)

    return change


TERMS: dict[str, Callable[[Tree], Tree]] = {
    # viscous and Coulomb friction of joints with its offset, losses of couplings
    "friction": _changing(
        lambda link: _with_terms(link, **dict.fromkeys(FRICTION, 0.0)),
        lambda spring: replace(spring, efficiency=1.0, back=1.0),
    ),
    # dampers of joints, couplings and elements, and the damping of bodies
    "damping": _changing(
        lambda link: replace(_with_terms(link, damper=0.0), body=link.body.without_damping()),
        lambda spring: replace(spring, damping=0.0),
        PointElement.undamped,
    ),
    "gravity": lambda tree: replace(tree, gravity=np.zeros(3)),
    # springs and dampers of joints and couplings, elements that are not rigid
    "springs": _changing(
        lambda link: _with_terms(link, stiffness=0.0, damper=0.0, idle=link.terms.idle or bool(link.terms.stiffness)),
        lambda spring: replace(spring, stiffness=0.0, damping=0.0),
        PointElement.idle,
    ),
    "motor-inertia": _changing(lambda link: _with_terms(link, motor_inertia=0.0)),
    # what bending does to the axial strain of bodies, and axial load to their stiffness
    "axial": _changing(lambda link: replace(link, body=link.body.with_linear_strain())),
}


def refuse_needed_flexibility(robot: Robot) -> None:
    """Raise if bodies must deform at home or in motions of a motor, or without motors of the robot."""
    tree, bodies = robot.tree, dict[str, list[int]]()
    for number, link in enumerate(tree.links):
        if link.body.size:
            bodies.setdefault(file_frame(robot, link.name), []).append(number)
    bent = [name for name, links in bodies.items() if any(robot.home[tree.links[j].e].any() for j in links)]
    if bent:
        raise _refused("the loops close at home", bent)
    rates = {name: [k for j in links for k in range(tree.n)[tree.links[j].e_v]] for name, links in bodies.items()}
    free = _moving(robot, ())
    immobile = free - _moving(robot, tree.elastic)
    if immobile:
        alone = [name for name, body_rates in rates.items() if immobile & (free - _moving(robot, body_rates))]
        raise _refused(f"{name_list(sorted(immobile))} can move", alone or list(bodies))


def _refused(what: str, bodies: list[str]) -> InputError:
    text = f"{what} only by the deformation of {name_list([repr(name) for name in bodies])}"
    return InputError(text, key="rigid", value=bodies[0], hint="load the robot without rigid=True")


def _moving(robot: Robot, locked: Iterable[int]) -> set[str]:
    """Return the motors that move with other rates locked, or the robot if it has no motors."""
    all_locked = robot.locked | frozenset(locked)
    free = np.array([k for k in range(robot.tree.n) if k not in all_locked], dtype=int)
    robot_mobility = mobility_with(robot, all_locked)
    if not robot.actuated:
        return {f"'{robot.name}'"} if robot_mobility.freedoms(len(free)) else set()
    moving: set[str] = set()
    for q in (robot.home, *robot_mobility.beside):
        motions = mobility.null_space(mobility.scaled_jacobian(robot.closures, q)[:, free], robot_mobility.rank)
        sizes = dict(zip(free.tolist(), np.linalg.norm(motions, axis=1), strict=True))
        moving |= {
            f"'{robot.tree.rate_names[k]}'" for k in robot.actuated if sizes.get(k, 0.0) > mobility.RANK_TOLERANCE
        }
    return moving
