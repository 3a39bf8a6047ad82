"""Checks of names, topology, joints, couplings and elements of a description."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple, cast

from parflex.errors import RobotFileError, did_you_mean
from parflex.robotfile import schema
from parflex.robotfile.values import INSIDE, LIMIT_KEYS, position_along_beam, short_text, split_place


class JointRules(NamedTuple):
    """Number of axes of a joint, counts of start values that it may have, and units of its axes by their suffixes."""

    axes: int
    starts: tuple[int, ...]
    units: dict[str, str] = {}


JOINT_RULES = {
    "fixed": JointRules(0, (0,)),
    "revolute": JointRules(1, (0, 1), {"": "rad"}),
    "prismatic": JointRules(1, (0, 1), {"": "m"}),
    "helical": JointRules(1, (0, 1), {"": "rad"}),
    "universal": JointRules(2, (0, 2), {".1": "rad", ".2": "rad"}),
    "cylindrical": JointRules(2, (0, 2), {".1": "rad", ".2": "m"}),
    "spherical": JointRules(3, (0, 3, 4)),
    "free": JointRules(6, (0, 3, 6, 7)),
}

PLANAR_START_COUNTS = (0, 3)

PLANAR_JOINTS = ("fixed", "revolute", "prismatic", "free")

PLANAR_CLOSURES = ("revolute", "prismatic", "welded", "point-on-plane", "point-on-line")

POSE_COORDINATES = ("x", "y", "z", "qw", "qx", "qy", "qz", "rx", "ry", "rz", "theta", "zx", "zy", "zz")


def refuse_unknown(name: str, names: Container[str], what: str, key: str) -> None:
    """Raise where nothing has this name; what is named as a rule is a frame, a joint, a material."""
    if name not in names:
        hint = names.hint(name) if isinstance(names, _Known) else did_you_mean(name, cast(Iterable[str], names))
        raise RobotFileError(f"there is no {what} '{name}'", key=key, value=name, hint=hint)


def _refuse_twice(names: Iterable[str], what: str, hint: str = "rename one of them") -> None:
    """Raise at the first name that is there twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise RobotFileError(f"the {what} '{name}' appears twice", key=f"{what} '{name}'", value=name, hint=hint)
        seen.add(name)


class _Known:
    """Names of places; what begins like a node of a modal body is looked up when its data are read."""

    def __init__(self, robot: schema.RobotFile) -> None:
        bodies: list[Any] = [*robot.frame, *([robot.platform] if robot.platform is not None else [])]
        self.places = _place_owners(robot)
        self.beams = {frame.name for frame in robot.frame if frame.beam is not None}
        modal = [body.name for body in bodies if body.modal is not None or body.superelement is not None]
        self.starts = tuple(name + mark for name in modal for mark in (".", INSIDE))

    def __contains__(self, name: object) -> bool:
        if name in self.places or str(name).startswith(self.starts):
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
    places = _Known(robot)
    parents = {frame.name: frame.parent for frame in robot.frame} | {point.name: point.frame for point in robot.point}
    keys = {point.name: f"point '{point.name}': frame" for point in robot.point}
    for name, parent in parents.items():
        refuse_unknown(parent, places, "frame", keys.get(name, f"frame '{name}': parent"))
    _check_no_cycle(parents)
    if robot.platform is not None:
        _check_start(robot.platform.start, "free", robot.motion, "platform: start")
    for frame in robot.frame:
        _check_frame(frame, robot.motion)
        if frame.beam is not None:
            _check_beam(robot, frame.name, frame.beam)
    if robot.end_effector is not None:
        refuse_unknown(robot.end_effector, places, "frame", "end_effector")
    _check_closures(robot, places)
    _check_couplings(robot)
    _check_elements(robot, places)
    _check_modes(robot)
    for name, motion in robot.motions.items():
        if motion.frame is not None:
            refuse_unknown(motion.frame, places, "frame", f"motions.{name}.frame")
        for index, joint in ((index, joint) for index, move in enumerate(motion.moves) for joint in move):
            refuse_unknown(joint, _single_axes(robot), "joint with one axis", f"motions.{name}.moves.{index}")
    if not robot.frame and robot.platform is None:
        raise RobotFileError("the robot has no frame", key="frame", hint="add [[frame]] tables")


def _check_beam(robot: schema.RobotFile, name: str, beam: schema.Beam) -> None:
    refuse_unknown(beam.material, robot.materials, "material", f"frame '{name}': beam.material")
    refuse_unknown(beam.section, robot.sections, "section", f"frame '{name}': beam.section")
    section, key = robot.sections[beam.section], f"frame '{name}': beam.shear"
    if beam.shear and beam.shear_coefficient is None and section.shape == "numbers" and not (section.ky and section.kz):
        hint = "give its ky and kz, or shear_coefficient beside shear"
        raise RobotFileError(f"the section '{beam.section}' has no shear coefficients", key=key, value=True, hint=hint)


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
    axes = JOINT_RULES[frame.joint].axes
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
    allowed = PLANAR_START_COUNTS if joint == "free" and motion == "planar" else JOINT_RULES[joint].starts
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


def _check_closures(robot: schema.RobotFile, places: _Known) -> None:
    names = [closure.name or "~".join(closure.between) for closure in robot.closure]
    _refuse_twice(names, "closure", "give it another name")
    for name, closure in zip(names, robot.closure, strict=True):
        key, (first, second) = f"closure '{name}'", closure.between
        for end in closure.between:
            refuse_unknown(end, places, "frame", f"{key}: between")
        if first == second:
            message = "a frame cannot be closed onto itself"
            raise RobotFileError(message, key=f"{key}: between", value=first, hint="name two frames")
        if robot.motion == "planar" and closure.joint not in PLANAR_CLOSURES:
            message, hint = f"a {closure.joint} closure leaves the plane", "use " + ", ".join(PLANAR_CLOSURES)
            raise RobotFileError(message, key=f"{key}: joint", value=closure.joint, hint=hint)


def _check_modes(robot: schema.RobotFile) -> None:
    axes = {frame.name: JOINT_RULES[frame.joint].axes for frame in robot.frame} | dict.fromkeys(strut_names(robot), 1)
    joints = [name for name, count in axes.items() if count]
    single = [name for name, count in axes.items() if count == 1]
    for mode, table in robot.working_modes.items():
        for part, names in (("start", table.start), ("signs", table.signs)):
            for name in names:
                refuse_unknown(name, single, "joint with one axis", f"working_modes.{mode}.{part}")
    for choice, actuation in robot.actuation.items():
        key, named = f"actuation.{choice}", [*actuation.actuated, *actuation.locked]
        for k, name in enumerate(named):
            refuse_unknown(name, joints, "joint", key)
            if name in named[:k]:
                hint = "name it once, in 'actuated' or in 'locked'"
                raise RobotFileError(f"the joint '{name}' is named twice", key=key, value=name, hint=hint)


def strut_names(robot: schema.RobotFile) -> list[str]:
    """Struts and driven cables, whose lengths are coordinates like those of joints."""
    return [element.name for element in robot.element if element.measured]


def _single_axes(robot: schema.RobotFile) -> dict[str, str]:
    """Joints and axes of joints that a coupling may name, and their units."""
    units: dict[str, str] = {}
    for frame in robot.frame:
        units |= {frame.name + suffix: unit for suffix, unit in JOINT_RULES[frame.joint].units.items()}
    return units | dict.fromkeys(strut_names(robot), "m")


def _check_couplings(robot: schema.RobotFile) -> None:
    """Raise at the first coupling that does not fit the rest of the file."""
    units, joints = _single_axes(robot), {frame.name: frame.joint for frame in robot.frame}
    _refuse_twice((coupling.name for coupling in robot.coupling), "coupling")
    for coupling in robot.coupling:
        key, first, others = f"coupling '{coupling.name}'", coupling.joint, coupling.others
        for field, name in (("joint", first), *(("terms" if coupling.terms else "other", other) for other in others)):
            if name not in units:
                raise _axis_error(name, joints, units, f"{key}: {field}")
        _check_cable(robot, coupling, key)
        if coupling.lead is not None and units[first] == units[others[0]]:
            motion = "turn" if units[first] == "rad" else "slide"
            message = f"'{first}' and '{others[0]}' both {motion}; a screw couples a turn and a slide"
            hint = 'name a prismatic and a revolute joint, or write terms = { "other" = ratio }'
            raise RobotFileError(message, key=f"{key}: lead", value=coupling.lead, hint=hint)


def _check_cable(robot: schema.RobotFile, coupling: schema.CouplingTable, key: str) -> None:
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


def _check_coordinate(name: str, places: Container[str], key: str) -> None:
    """The name of a strut is that of a coordinate: it must not mean another one, or a choice of joints."""
    frame, dot, coordinate = name.rpartition(".")
    if coordinate in POSE_COORDINATES and (not dot or frame in places):
        meaning = f"a coordinate of the frame '{frame}'" if dot else "a coordinate of the end effector"
    elif name in ("actuators", "none"):
        meaning = "a choice of joints to lock"
    else:
        return
    raise RobotFileError(
        f"'{name}' is {meaning}, and cannot be the name of a strut, whose length is a coordinate of that name",
        key=key,
        value=name,
        hint="rename the strut",
    )


def _check_elements(robot: schema.RobotFile, places: _Known) -> None:
    """Raise at the first element that does not fit the rest of the file."""
    owners = {name: owner.split()[0].rstrip(":") for name, owner in places.places.items()}
    owners |= {closure.name: "closure" for closure in robot.closure if closure.name}
    owners |= {coupling.name: "coupling" for coupling in robot.coupling}
    driven = {name for coupling in robot.coupling for name in (coupling.joint, *coupling.others)}
    driven |= {name for actuation in robot.actuation.values() for name in actuation.actuated}
    for element in robot.element:
        name, key = element.name, f"element '{element.name}'"
        if element.kind == "cable" and element.measured and not (element.actuated or name in driven):
            hint = "give it stiffness and rest, or actuated = true, or couple it to a drum"
            raise RobotFileError(f"the cable '{name}' is neither elastic nor driven", key=key, value=name, hint=hint)
        if name in owners:
            message = (
                f"the element '{name}' is there twice"
                if owners[name] == "element"
                else f"a {owners[name]} is called '{name}' too"
            )
            raise RobotFileError(message, key=key, value=name, hint="rename one of them")
        owners[name] = "element"
        if element.measured:
            _check_coordinate(name, places.places, key)
        for end in element.between:
            refuse_unknown(end, places, "frame or point", f"{key}: between")
        if element.between[0] == element.between[1]:
            raise RobotFileError("both ends are the same", key=f"{key}: between", value=end, hint="name two frames")


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
