"""Couplings must name joints with one axis, each name once; a screw couples a turn and a slide."""

from __future__ import annotations

from collections.abc import Mapping

from parflex.description import schema
from parflex.description.element_tables import strut_names
from parflex.errors import RobotFileError, did_you_mean

AXIS_UNITS = {  # unit of each axis of a joint, by what stands behind its name
    "revolute": {"": "rad"},
    "helical": {"": "rad"},
    "prismatic": {"": "m"},
    "universal": {".1": "rad", ".2": "rad"},
    "cylindrical": {".1": "rad", ".2": "m"},
}


def single_axes(robot: schema.RobotFile) -> dict[str, str]:
    """Joints and axes of joints that a coupling may name, and their units."""
    found: dict[str, str] = {}
    for frame in robot.frame:
        found |= {frame.name + behind: unit for behind, unit in AXIS_UNITS.get(frame.joint, {}).items()}
    return found | dict.fromkeys(strut_names(robot), "m")


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
        words = "terms" if coupling.terms else "other"
        for word, name in (("joint", coupling.joint), *((words, other) for other in coupling.others)):
            if name not in units:
                raise _no_axis(name, joints, units, f"{key}: {word}")
        _check_cable(robot, coupling, key)
        if coupling.lead is not None:
            found = [units[coupling.joint], units[coupling.others[0]]]
            if sorted(found) != ["m", "rad"]:
                both = "turn" if found[0] == "rad" else "slide"
                raise RobotFileError(
                    f"'{coupling.joint}' and '{coupling.others[0]}' both {both}; a screw couples a turn and a slide",
                    key=f"{key}: lead",
                    value=coupling.lead,
                    hint='name a prismatic and a revolute joint, or write terms = { "other" = ratio }',
                )


def _check_cable(robot: schema.RobotFile, coupling: schema.CouplingTable, key: str) -> None:
    """An elastic cable pulls where it is the joint of its coupling, and has no play: slack it has none to take up."""
    cables = [element.name for element in robot.element if element.kind == "cable"]
    behind = [name for name in coupling.others if name in cables]
    if coupling.stiffness is not None and behind:
        raise RobotFileError(
            f"the cable '{behind[0]}' would push where the coupling is elastic",
            key=f"{key}: terms",
            value=behind[0],
            hint=f'write the coupling with joint = "{behind[0]}", and the drum in terms',
        )
    if coupling.joint in cables and coupling.backlash:
        raise RobotFileError(
            f"the cable '{coupling.joint}' pulls only, and has no backlash",
            key=f"{key}: backlash",
            value=coupling.backlash,
            hint="leave backlash out: a slack cable has none",
        )


def _no_axis(name: str, joints: Mapping[str, str], units: Mapping[str, str], key: str) -> RobotFileError:
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
