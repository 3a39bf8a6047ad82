"""Checks of names, topology, joints and couplings of a description."""

from __future__ import annotations

import math
from collections.abc import Mapping

from parflex.errors import RobotFileError, did_you_mean
from parflex.robotfile import schema
from parflex.robotfile.element_schema import CouplingTable, check_elements, strut_names
from parflex.robotfile.values import INSIDE, LIMIT_KEYS, position_along_beam, short_text, split_place

AXES = {
    "fixed": 0,
    "revolute": 1,
    "prismatic": 1,
    "helical": 1,
    "universal": 2,
    "cylindrical": 2,
    "spherical": 3,
    "free": 6,
}

# how many start values a joint may have
STARTS = {
    "fixed": (0,),
    "revolute": (0, 1),
    "prismatic": (0, 1),
    "helical": (0, 1),
    "universal": (0, 2),
    "cylindrical": (0, 2),
    "spherical": (0, 3, 4),
    "free": (0, 3, 6, 7),
}

PLANAR_START_COUNTS = (0, 3)

PLANAR_JOINTS = ("fixed", "revolute", "prismatic", "free")

PLANAR_CLOSURES = ("revolute", "prismatic", "welded", "point-on-plane", "point-on-line")

AXIS_UNITS = {  # unit of each axis of a joint, by what stands behind its name
    "revolute": {"": "rad"},
    "helical": {"": "rad"},
    "prismatic": {"": "m"},
    "universal": {".1": "rad", ".2": "rad"},
    "cylindrical": {".1": "rad", ".2": "m"},
}


def _modal_bodies(robot: schema.RobotFile) -> tuple[str, ...]:
    """Frames whose nodes only their modal data or matrices name."""
    bodies: list[schema.Frame | schema.PlatformTable] = [
        *robot.frame,
        *([robot.platform] if robot.platform is not None else []),
    ]
    return tuple(body.name for body in bodies if body.modal is not None or body.superelement is not None)


class _Known:
    """Names of places; what begins like a node of a modal body is looked up when its data are read."""

    def __init__(self, places: dict[str, str], owners: tuple[str, ...], beams: tuple[str, ...]) -> None:
        self.places = places
        self.owners = owners
        self.beams = beams

    def __contains__(self, name: object) -> bool:
        if name in self.places or any(str(name).startswith((owner + ".", owner + INSIDE)) for owner in self.owners):
            return True
        owner, where = split_place(str(name)) or ("", "")
        return owner in self.beams and position_along_beam(where) is not None

    def hint(self, name: str) -> str:
        """What may be meant by a name that is not there."""
        owner, _ = split_place(name) or ("", "")
        if owner in self.beams:
            return "give a number from 0 (its root) to 1 (its tip) behind '@'"
        rigid = owner in self.places
        return "only beams and modal bodies have places inside" if rigid else did_you_mean(name, self.places)


def check_references(robot: schema.RobotFile) -> None:
    """Raise at the first name or joint that does not fit the rest of the file."""
    places = _place_owners(robot)
    place_names = _Known(
        places, _modal_bodies(robot), tuple(frame.name for frame in robot.frame if frame.beam is not None)
    )
    parents = {frame.name: frame.parent for frame in robot.frame} | {point.name: point.frame for point in robot.point}
    for name, parent in parents.items():
        if parent not in place_names:
            key = f"frame '{name}': parent" if any(f.name == name for f in robot.frame) else f"point '{name}': frame"
            raise RobotFileError(f"there is no frame '{parent}'", key=key, value=parent, hint=place_names.hint(parent))
    _check_no_cycle(parents)
    if robot.platform is not None:
        _check_start(robot.platform.start, "free", robot.motion, "platform: start")
    for frame in robot.frame:
        _check_frame(frame, robot.motion)
        if frame.beam is not None:
            _check_beam(robot, frame.name, frame.beam)
    if robot.end_effector is not None and robot.end_effector not in place_names:
        raise RobotFileError(
            f"there is no frame '{robot.end_effector}'",
            key="end_effector",
            value=robot.end_effector,
            hint=place_names.hint(robot.end_effector),
        )
    _check_closures(robot, place_names)
    check_couplings(robot)
    check_elements(robot, place_names, places, place_names.hint)
    _check_modes(robot)
    _check_motions(robot, place_names)
    if not robot.frame and robot.platform is None:
        raise RobotFileError("the robot has no frame", key="frame", hint="add [[frame]] tables")


def _check_beam(robot: schema.RobotFile, name: str, beam: schema.Beam) -> None:
    for key, required, defined in (
        ("material", beam.material, robot.materials),
        ("section", beam.section, robot.sections),
    ):
        if required not in defined:
            raise RobotFileError(
                f"there is no {key} '{required}'",
                key=f"frame '{name}': beam.{key}",
                value=required,
                hint=did_you_mean(required, defined),
            )
    section = robot.sections[beam.section]
    if (
        beam.shear
        and beam.shear_coefficient is None
        and section.shape == "numbers"
        and None in (section.ky, section.kz)
    ):
        raise RobotFileError(
            f"the section '{beam.section}' has no shear coefficients",
            key=f"frame '{name}': beam.shear",
            value=True,
            hint="give its ky and kz, or shear_coefficient beside shear",
        )


def _place_owners(robot: schema.RobotFile) -> dict[str, str]:
    """Names of all places, and whose they are; a joint of two axes takes the names of its axes too."""
    places = [("base", "frame 'base'")]
    if robot.platform is not None:
        places.append((robot.platform.name, "platform: name"))
    for frame in robot.frame:
        axes: tuple[str, ...] = ("", ".1", ".2") if frame.joint in ("universal", "cylindrical") else ("",)
        if frame.beam is not None:  # with one axis or none, as is checked later
            axes = ("", *(f".{number}" for number in range(1, frame.beam.elements)), ".tip")
        places += [(frame.name + axis, f"frame '{frame.name}'") for axis in axes]
    places += [(point.name, f"point '{point.name}'") for point in robot.point]
    owners: dict[str, str] = {}
    for name, owner in places:
        if name in owners:
            fix = "'base' is the ground; choose another name" if name == "base" else "rename one of them"
            raise RobotFileError(f"the name '{name}' is used twice", key=owner, value=name, hint=fix)
        owners[name] = owner
    return owners


def _check_no_cycle(parents: dict[str, str]) -> None:
    acyclic: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        name = start
        while name in parents and name not in acyclic:
            if name in path:
                loop = " -> ".join([*list(path)[list(path).index(name) :], name])
                raise RobotFileError(
                    f"the parents of the frames form a cycle: {loop}",
                    key=f"frame '{name}': parent",
                    value=parents[name],
                    hint="mount one of them on 'base' and close the loop with [[closure]]",
                )
            path[name] = None
            parent = parents[name]
            name = parent if parent in parents else (split_place(parent) or (parent,))[0]
        acyclic.update(path)


def _axis_flags(frame: schema.Frame, attribute: str, axes: int, key: str) -> tuple[bool, ...]:
    """Marks of the axes of a joint: one for all of them, or one for each."""
    setting = getattr(frame, attribute)
    flags: tuple[bool, ...] = setting if isinstance(setting, tuple) else (setting,)
    if any(flags) and axes == 0:
        raise RobotFileError(
            f"a fixed joint cannot be {attribute}", key=f"{key}: {attribute}", value=True, hint="give it a joint"
        )
    if isinstance(setting, tuple) and len(setting) != axes:
        raise RobotFileError(
            f"{len(setting)} values for {axes} axes",
            key=f"{key}: {attribute}",
            value=short_text(setting),
            hint="give one for each axis",
        )
    return flags


def _check_frame(frame: schema.Frame, motion: str) -> None:
    key = f"frame '{frame.name}'"
    axes = AXES[frame.joint]
    if motion == "planar":
        if frame.joint not in PLANAR_JOINTS:
            raise RobotFileError(
                f"a {frame.joint} joint leaves the plane",
                key=f"{key}: joint",
                value=frame.joint,
                hint="use " + ", ".join(PLANAR_JOINTS) + ' or motion = "spatial"',
            )
        axes = 3 if frame.joint == "free" else axes
    flags = _axis_flags(frame, "actuated", axes, key)
    if any(_axis_flags(frame, "sensed", axes, key)) and axes > 2:
        raise RobotFileError(
            f"a sensor measures one axis, but a {frame.joint} joint has no axes of its own",
            key=f"{key}: sensed",
            value=True,
            hint="model the joint as a chain of revolute frames",
        )
    if frame.locked and any(flags):
        raise RobotFileError(
            "the joint is both actuated and locked", key=f"{key}: locked", value=True, hint="keep one of them"
        )
    _check_start(frame.start, frame.joint, motion, f"{key}: start")
    terms = frame.motor_inertia or frame.damper or frame.spring or frame.friction != schema.Friction()
    terms = terms or frame.inertia.IA or frame.inertia.FV or frame.inertia.FS
    if terms and axes != 1:
        raise RobotFileError(
            f"motor, friction, spring and damper need a joint with one axis, not a {frame.joint} one",
            key=key,
            value=frame.joint,
            hint="model the joint as a chain of revolute or prismatic frames",
        )
    for limit_key in LIMIT_KEYS:
        if getattr(frame, limit_key) is not None and axes != 1:
            raise RobotFileError(
                f"limits need a joint with one axis, not a {frame.joint} one",
                key=f"{key}: {limit_key}",
                value=short_text(getattr(frame, limit_key)),
                hint="remove them",
            )


def _check_start(start: tuple[float, ...], joint: str, motion: str, key: str) -> None:
    allowed = PLANAR_START_COUNTS if joint == "free" and motion == "planar" else STARTS[joint]
    if len(start) not in allowed:
        counts = " or ".join(str(count) for count in allowed[1:]) or "none"
        body = "body in the plane" if allowed is PLANAR_START_COUNTS else "joint"
        raise RobotFileError(
            f"{len(start)} start values for a {joint} {body}", key=key, value=short_text(start), hint=f"give {counts}"
        )
    quaternion = start[-4:] if len(start) in (4, 7) else ()
    if quaternion and abs(math.hypot(*quaternion) - 1) > 1e-3:
        raise RobotFileError(
            f"the quaternion has length {math.hypot(*quaternion):.4g}",
            key=key,
            value=short_text(start),
            hint="make it 1",
        )


def _check_closures(robot: schema.RobotFile, place_names: _Known) -> None:
    names: set[str] = set()
    for closure in robot.closure:
        name = closure.name or "~".join(closure.between)
        key = f"closure '{name}'"
        if name in names:
            raise RobotFileError(
                f"the closure '{name}' appears twice", key=key, value=name, hint="give it another name"
            )
        names.add(name)
        for end in closure.between:
            if end not in place_names:
                raise RobotFileError(
                    f"there is no frame '{end}'", key=f"{key}: between", value=end, hint=place_names.hint(end)
                )
        if closure.between[0] == closure.between[1]:
            raise RobotFileError(
                "a frame cannot be closed onto itself",
                key=f"{key}: between",
                value=closure.between[0],
                hint="name two frames",
            )
        if robot.motion == "planar" and closure.joint not in PLANAR_CLOSURES:
            raise RobotFileError(
                f"a {closure.joint} closure leaves the plane",
                key=f"{key}: joint",
                value=closure.joint,
                hint="use " + ", ".join(PLANAR_CLOSURES),
            )


def _check_modes(robot: schema.RobotFile) -> None:
    axes = {frame.name: AXES[frame.joint] for frame in robot.frame} | dict.fromkeys(strut_names(robot), 1)
    joints = [name for name, count in axes.items() if count]
    single_axis_joints = [name for name, count in axes.items() if count == 1]
    for mode, table in robot.working_modes.items():
        for part, names in (("start", table.start), ("signs", table.signs)):
            for name in names:
                if name not in single_axis_joints:
                    raise RobotFileError(
                        f"there is no joint '{name}' with one axis",
                        key=f"working_modes.{mode}.{part}",
                        value=name,
                        hint=did_you_mean(name, single_axis_joints),
                    )
    for choice, actuation in robot.actuation.items():
        used_names: set[str] = set()
        for name in (*actuation.actuated, *actuation.locked):
            if name not in joints:
                raise RobotFileError(
                    f"there is no joint '{name}'",
                    key=f"actuation.{choice}",
                    value=name,
                    hint=did_you_mean(name, joints),
                )
            if name in used_names:
                raise RobotFileError(
                    f"the joint '{name}' is named twice",
                    key=f"actuation.{choice}",
                    value=name,
                    hint="name it once, in 'actuated' or in 'locked'",
                )
            used_names.add(name)


def _check_motions(robot: schema.RobotFile, place_names: _Known) -> None:
    single_axis_joints = [*single_axes(robot), *strut_names(robot)]
    for name, motion in robot.motions.items():
        if motion.frame is not None and motion.frame not in place_names:
            raise RobotFileError(
                f"there is no frame '{motion.frame}'",
                key=f"motions.{name}.frame",
                value=motion.frame,
                hint=place_names.hint(motion.frame),
            )
        for index, move in enumerate(motion.moves):
            for joint in move:
                if joint not in single_axis_joints:
                    raise RobotFileError(
                        f"there is no joint '{joint}' with one axis",
                        key=f"motions.{name}.moves.{index}",
                        value=joint,
                        hint=did_you_mean(joint, single_axis_joints),
                    )


def single_axes(robot: schema.RobotFile) -> dict[str, str]:
    """Joints and axes of joints that a coupling may name, and their units."""
    units: dict[str, str] = {}
    for frame in robot.frame:
        units |= {frame.name + suffix: unit for suffix, unit in AXIS_UNITS.get(frame.joint, {}).items()}
    return units | dict.fromkeys(strut_names(robot), "m")


def check_couplings(robot: schema.RobotFile) -> None:
    """Raise at the first coupling that does not fit the rest of the file."""
    units, joints, names = single_axes(robot), {frame.name: frame.joint for frame in robot.frame}, set()
    for coupling in robot.coupling:
        key = f"coupling '{coupling.name}'"
        if coupling.name in names:
            raise RobotFileError(
                f"the coupling '{coupling.name}' appears twice",
                key=key,
                value=coupling.name,
                hint="rename one of them",
            )
        names.add(coupling.name)
        others_field = "terms" if coupling.terms else "other"
        for field, name in (("joint", coupling.joint), *((others_field, other) for other in coupling.others)):
            if name not in units:
                raise _axis_error(name, joints, units, f"{key}: {field}")
        _check_cable(robot, coupling, key)
        if coupling.lead is not None:
            coupled_units = [units[coupling.joint], units[coupling.others[0]]]
            if sorted(coupled_units) != ["m", "rad"]:
                motion = "turn" if coupled_units[0] == "rad" else "slide"
                raise RobotFileError(
                    f"'{coupling.joint}' and '{coupling.others[0]}' both {motion}; a screw couples a turn and a slide",
                    key=f"{key}: lead",
                    value=coupling.lead,
                    hint='name a prismatic and a revolute joint, or write terms = { "other" = ratio }',
                )


def _check_cable(robot: schema.RobotFile, coupling: CouplingTable, key: str) -> None:
    """An elastic cable pulls where it is the joint of its coupling, and has no play: slack it has none to take up."""
    cables = [element.name for element in robot.element if element.kind == "cable"]
    followed_cables = [name for name in coupling.others if name in cables]
    if coupling.stiffness is not None and followed_cables:
        raise RobotFileError(
            f"the cable '{followed_cables[0]}' would push where the coupling is elastic",
            key=f"{key}: terms",
            value=followed_cables[0],
            hint=f'write the coupling with joint = "{followed_cables[0]}", and the drum in terms',
        )
    if coupling.joint in cables and coupling.backlash:
        raise RobotFileError(
            f"the cable '{coupling.joint}' pulls only, and has no backlash",
            key=f"{key}: backlash",
            value=coupling.backlash,
            hint="leave backlash out: a slack cable has none",
        )


def _axis_error(name: str, joints: Mapping[str, str], units: Mapping[str, str], key: str) -> RobotFileError:
    """The error for a name that is not a joint, or a joint with several axes."""
    kind = joints.get(name)
    if kind in ("universal", "cylindrical"):
        return RobotFileError(
            f"the {kind} joint '{name}' has two axes", key=key, value=name, hint=f"name '{name}.1' or '{name}.2'"
        )
    if kind is not None:
        hint = "couple joints that turn about or slide along one axis"
        return RobotFileError(f"the {kind} joint '{name}' has no axis to couple", key=key, value=name, hint=hint)
    return RobotFileError(
        f"there is no joint '{name}' with one axis", key=key, value=name, hint=did_you_mean(name, units)
    )
