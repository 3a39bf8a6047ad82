"""What the file names must be there: the end effector, frames of motions and visuals, both ends of closures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parflex.errors import InputError, RobotFileError, did_you_mean
from parflex.robotfile import schema
from parflex.robotfile.values import short_text
from parflex.tree.element_building import refuse_inner
from parflex.tree.inner_places import NamedPlaces, Place
from parflex.tree.link_tree import GROUND, Link


def place_named(name: str, key: str, places: Mapping[str, Place], links: Sequence[Link]) -> Place | None:
    """A place by name, inside bodies too."""
    try:
        return NamedPlaces(places, links).get(name)
    except InputError as error:
        raise RobotFileError(error.message, key=key, value=name, hint=error.hint) from None


def check_ends(robot: schema.RobotFile, places: Mapping[str, Place], links: Sequence[Link]) -> None:
    """All that the file names is there, and nothing that needs a link of its own lies inside a body."""
    for name in (robot.end_effector, *(motion.frame for motion in robot.motions.values())):
        if name is not None and place_named(name, "end_effector", places, links) is None:
            hint = did_you_mean(name, places)
            raise RobotFileError(f"there is no node '{name}'", key="end_effector", value=name, hint=hint)
    end = robot.end_effector
    if end is not None and places[end].inner is not None:
        raise refuse_inner("end_effector", end)
    for visual in robot.visual:
        if visual.frame not in places:
            hint = did_you_mean(visual.frame, places)
            message = f"there is no frame or node '{visual.frame}'"
            raise RobotFileError(message, key="visual.frame", value=visual.frame, hint=hint)
    for closure in robot.closure:
        _check_closure(closure, places, links)


def _check_closure(closure: schema.Closure, places: Mapping[str, Place], links: Sequence[Link]) -> None:
    """Both ends exist, on two bodies, and those on nodes without rotations are balls."""
    key = f"closure '{closure.name or '~'.join(closure.between)}'"
    for end in closure.between:
        if end not in places:
            hint = did_you_mean(end, places)
            raise RobotFileError(f"there is no node '{end}'", key=f"{key}: between", value=end, hint=hint)
        if places[end].inner is not None:
            raise refuse_inner(f"{key}: between", end)
        link = places[end].link
        node = links[link].node if link != GROUND else None
        if node is not None and not node.turns and closure.joint != "spherical":
            raise RobotFileError(
                f"the rotations of the node at '{end}' are not known",
                key=f"{key}: joint",
                value=closure.joint,
                hint='give them in the modal data, or use joint = "spherical"',
            )
    one, other = (places[end].link for end in closure.between)
    if one == other:  # its rows are zero but for rounding, which would count as constraints
        raise RobotFileError(
            "both ends of the closure are on the same body",
            key=f"{key}: between",
            value=short_text(closure.between),
            hint="name places on two bodies, or remove the closure",
        )
