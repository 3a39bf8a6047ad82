"""Check names, topology, joints, couplings and elements of a description."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from typing import Any, NamedTuple, cast

from parflex.errors import RobotFileError, did_you_mean
from parflex.robotfile import schema
from parflex.robotfile.values import INSIDE, LIMIT_KEYS, position_along_beam, short_text, split_place


class JointRules(NamedTuple):
    """Number of axes of a joint, allowed counts of start values, and units of its axes by suffix."""

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


def refuse(wrong: Any, message: str, key: str, value: Any, hint: str) -> None:
    """Raise the error of a key of a robot file if a condition holds."""
    if wrong:
        plain = short_text(value) if isinstance(value, tuple) else value
        raise RobotFileError(message, key=key, value=plain, hint=hint)


def refuse_unknown(name: str, names: Container[str], what: str, key: str) -> None:
    """Raise if nothing has this name; `kind` is frame, joint, material, ..."""
    if name not in names:
        hint = names.hint(name) if isinstance(names, _Known) else did_you_mean(name, cast(Iterable[str], names))
        raise RobotFileError(f"there is no {what} '{name}'", key=key, value=name, hint=hint)


def _refuse_twice(names: Sequence[str], what: str, hint: str = "rename one of them") -> None:
    """Raise at the first repeated name."""
    for k, name in enumerate(names):
        refuse(name in names[:k], f"the {what} '{name}' appears twice", f"{what} '{name}'", name, hint)


class _Known:
    """Names of places; nodes of modal bodies are looked up when their data are read."""

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
        """Return advice for an unknown name."""
        owner, _ = split_place(name) or ("", "")
        if owner in self.beams:
            return "give a number from 0 (root) to 1 (tip) after '@'"
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
    nothing = not robot.frame and robot.platform is None
    refuse(nothing, "the robot has no frame", "frame", None, "add [[frame]] tables")


def _check_beam(robot: schema.RobotFile, name: str, beam: schema.Beam) -> None:
    refuse_unknown(beam.material, robot.materials, "material", f"frame '{name}': beam.material")
    refuse_unknown(beam.section, robot.sections, "section", f"frame '{name}': beam.section")
    section, key = robot.sections[beam.section], f"frame '{name}': beam.shear"
    unknown = beam.shear_coefficient is None and section.shape == "numbers" and not (section.ky and section.kz)
    hint = "give ky and kz of the section, or shear_coefficient of the beam"
    refuse(beam.shear and unknown, f"the section '{beam.section}' has no shear coefficients", key, True, hint)


def _place_owners(robot: schema.RobotFile) -> dict[str, str]:
    """Return the owner of each place by name; joints with two axes also own the names of their axes."""
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
        fix = "'base' is the ground; choose another name" if name == "base" else "rename one of them"
        refuse(name in owners, f"the name '{name}' is used twice", owner, name, fix)
        owners[name] = owner
    return owners


def _check_no_cycle(parents: dict[str, str]) -> None:
    acyclic: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        name = start
        while name in parents and name not in acyclic:
            parent = parents[name]
            if name in path:
                cycle = " -> ".join([*list(path)[list(path).index(name) :], name])
                message, key = f"the parents of the frames form a cycle: {cycle}", f"frame '{name}': parent"
                hint = "mount one of them on 'base' and close the loop with [[closure]]"
                raise RobotFileError(message, key=key, value=parent, hint=hint)
            path[name] = None
            name = parent if parent in parents else (split_place(parent) or (parent,))[0]
        acyclic.update(path)


def _axis_flags(frame: schema.Frame, attribute: str, axes: int, key: str) -> tuple[bool, ...]:
    """Return the flags of the axes of a joint, from one flag for all axes or one per axis."""
    setting, key = getattr(frame, attribute), f"{key}: {attribute}"
    flags: tuple[bool, ...] = setting if isinstance(setting, tuple) else (setting,)
    refuse(any(flags) and axes == 0, f"a fixed joint cannot be {attribute}", key, True, "give it a joint")
    unequal = isinstance(setting, tuple) and len(flags) != axes
    refuse(unequal, f"{len(flags)} values for {axes} axes", key, setting, "give one for each axis")
    return flags


def _check_frame(frame: schema.Frame, motion: str) -> None:
    key, joint = f"frame '{frame.name}'", frame.joint
    axes, planar = JOINT_RULES[joint].axes, motion == "planar"
    hint = "use " + ", ".join(PLANAR_JOINTS) + ' or motion = "spatial"'
    refuse(planar and joint not in PLANAR_JOINTS, f"a {joint} joint leaves the plane", f"{key}: joint", joint, hint)
    axes = 3 if planar and joint == "free" else axes
    flags = _axis_flags(frame, "actuated", axes, key)
    sensed = any(_axis_flags(frame, "sensed", axes, key)) and axes > 2
    message = f"a sensor measures one axis, but a {joint} joint has no axes of its own"
    refuse(sensed, message, f"{key}: sensed", True, "model the joint as a chain of revolute frames")
    both = frame.locked and any(flags)
    refuse(both, "the joint is both actuated and locked", f"{key}: locked", True, "keep one of them")
    _check_start(frame.start, joint, motion, f"{key}: start")
    terms = frame.motor_inertia or frame.damper or frame.spring or frame.friction != schema.Friction()
    terms = terms or frame.inertia.IA or frame.inertia.FV or frame.inertia.FS
    message = f"motor, friction, spring and damper need a joint with one axis, not a {joint} joint"
    hint = "model the joint as a chain of revolute or prismatic frames"
    refuse(terms and axes != 1, message, key, joint, hint)
    for name in LIMIT_KEYS if axes != 1 else ():
        value, message = getattr(frame, name), f"limits need a joint with one axis, not a {joint} joint"
        refuse(value is not None, message, f"{key}: {name}", short_text(value), "remove them")


def _check_start(start: tuple[float, ...], joint: str, motion: str, key: str) -> None:
    allowed = PLANAR_START_COUNTS if joint == "free" and motion == "planar" else JOINT_RULES[joint].starts
    counts = " or ".join(str(count) for count in allowed[1:]) or "none"
    body = "body in the plane" if allowed is PLANAR_START_COUNTS else "joint"
    message = f"{len(start)} start values for a {joint} {body}"
    refuse(len(start) not in allowed, message, key, start, f"give {counts}")
    if len(start) in (4, 7):
        size = math.hypot(*start[-4:])
        refuse(abs(size - 1) > 1e-3, f"the quaternion has length {size:.4g}", key, start, "divide it by its length")


def _check_closures(robot: schema.RobotFile, places: _Known) -> None:
    names = [closure.name or "~".join(closure.between) for closure in robot.closure]
    _refuse_twice(names, "closure", "give it another name")
    for name, closure in zip(names, robot.closure, strict=True):
        key, (first, second) = f"closure '{name}'", closure.between
        for end in closure.between:
            refuse_unknown(end, places, "frame", f"{key}: between")
        message = "a frame cannot be closed onto itself"
        refuse(first == second, message, f"{key}: between", first, "name two frames")
        wrong = robot.motion == "planar" and closure.joint not in PLANAR_CLOSURES
        message, hint = f"a {closure.joint} closure leaves the plane", "use " + ", ".join(PLANAR_CLOSURES)
        refuse(wrong, message, f"{key}: joint", closure.joint, hint)


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
            hint = "name it once, in 'actuated' or in 'locked'"
            refuse(name in named[:k], f"the joint '{name}' is named twice", key, name, hint)


def strut_names(robot: schema.RobotFile) -> list[str]:
    """Return the names of struts and driven cables, whose lengths are coordinates."""
    return [element.name for element in robot.element if element.measured]


def _single_axes(robot: schema.RobotFile) -> dict[str, str]:
    """Return the units of joints and axes that a coupling may name."""
    units: dict[str, str] = {}
    for frame in robot.frame:
        units |= {frame.name + suffix: unit for suffix, unit in JOINT_RULES[frame.joint].units.items()}
    return units | dict.fromkeys(strut_names(robot), "m")


def _check_couplings(robot: schema.RobotFile) -> None:
    """Raise at the first coupling that does not fit the rest of the file."""
    units, joints = _single_axes(robot), {frame.name: frame.joint for frame in robot.frame}
    _refuse_twice([coupling.name for coupling in robot.coupling], "coupling")
    for coupling in robot.coupling:
        key, first, others = f"coupling '{coupling.name}'", coupling.joint, coupling.others
        for field, name in (("joint", first), *(("terms" if coupling.terms else "other", other) for other in others)):
            if name not in units:
                kind, message = joints.get(name), f"there is no joint '{name}' with one axis"
                hint = did_you_mean(name, units)
                if kind in ("universal", "cylindrical"):
                    message, hint = f"the {kind} joint '{name}' has two axes", f"name '{name}.1' or '{name}.2'"
                elif kind is not None:
                    message = f"the {kind} joint '{name}' has no axis to couple"
                    hint = "couple joints with one axis"
                refuse(True, message, f"{key}: {field}", name, hint)
        _check_cable(robot, coupling, key)
        same, motion = units[first] == units[others[0]], "rotate" if units[first] == "rad" else "translate"
        message = f"'{first}' and '{others[0]}' both {motion}; a screw couples a rotation and a translation"
        hint = 'name a prismatic and a revolute joint, or write terms = { "other" = ratio }'
        refuse(same and coupling.lead is not None, message, f"{key}: lead", coupling.lead, hint)


def _check_cable(robot: schema.RobotFile, coupling: schema.CouplingTable, key: str) -> None:
    """Raise if a coupling makes a cable push or gives it backlash."""
    cables = [element.name for element in robot.element if element.kind == "cable"]
    for name in coupling.others:
        pushes, message = coupling.stiffness is not None, f"the cable '{name}' would push in an elastic coupling"
        hint = f'write the coupling with joint = "{name}", and the drum in terms'
        refuse(pushes and name in cables, message, f"{key}: terms", name, hint)
    wrong, hint = coupling.joint in cables and coupling.backlash, "remove backlash: a slack cable has none"
    message = f"the cable '{coupling.joint}' pulls only, and has no backlash"
    refuse(wrong, message, f"{key}: backlash", coupling.backlash, hint)


def _check_coordinate(name: str, places: Container[str], key: str) -> None:
    """Raise if the name of a strut has another meaning as a coordinate or as a choice of joints."""
    frame, dot, coordinate = name.rpartition(".")
    meaning = "a choice of joints to lock" if name in ("actuators", "none") else ""
    if coordinate in POSE_COORDINATES and (not dot or frame in places):
        meaning = f"a coordinate of the frame '{frame}'" if dot else "a coordinate of the end effector"
    message = f"'{name}' is {meaning}, and cannot be the name of a strut, whose length is a coordinate of that name"
    refuse(meaning, message, key, name, "rename the strut")


def _check_elements(robot: schema.RobotFile, places: _Known) -> None:
    """Raise at the first element that does not fit the rest of the file."""
    owners = {name: owner.split()[0].rstrip(":") for name, owner in places.places.items()}
    owners |= {closure.name: "closure" for closure in robot.closure if closure.name}
    owners |= {coupling.name: "coupling" for coupling in robot.coupling}
    driven = {name for coupling in robot.coupling for name in (coupling.joint, *coupling.others)}
    driven |= {name for actuation in robot.actuation.values() for name in actuation.actuated}
    for element in robot.element:
        name, key = element.name, f"element '{element.name}'"
        loose = element.kind == "cable" and element.measured and not (element.actuated or name in driven)
        hint = "give it stiffness and rest, or actuated = true, or couple it to a drum"
        refuse(loose, f"the cable '{name}' is neither elastic nor driven", key, name, hint)
        twice, other = f"the element '{name}' appears twice", f"a {owners.get(name)} has the name '{name}' too"
        refuse(name in owners, twice if owners.get(name) == "element" else other, key, name, "rename one of them")
        owners[name] = "element"
        if element.measured:
            _check_coordinate(name, places.places, key)
        for end in element.between:
            refuse_unknown(end, places, "frame or point", f"{key}: between")
        same = element.between[0] == element.between[1]
        refuse(same, "both ends are the same", f"{key}: between", end, "name two frames")
