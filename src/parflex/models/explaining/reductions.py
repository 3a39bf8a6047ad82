"""What reductions of beams did to a robot: modes kept, bounds, and the same robot without them."""

from __future__ import annotations

from typing import Any

from parflex.errors import InputError
from parflex.robot.load import with_numbers
from parflex.robot.robot import Robot
from parflex.tree.tree import Link

REDUCED = (55, 56)  # numbers of the equations


def reduced_links(robot: Robot) -> list[Link]:
    """Links whose body stands for a beam of many elements."""
    return [link for link in robot.tree.links if link.body.reduced is not None]


def reduction_of(robot: Robot) -> list[dict[str, Any]]:
    """Of each reduced body: modes kept of how many, elements, lowest frequency left out, bound at the band's edge."""
    found = []
    for link in reduced_links(robot):
        said = link.body.reduced
        assert said is not None
        inner = (link.body.size - link.body.held) * (said.elements - 1)
        cut = said.left_out if said.kept < inner else None
        found.append(
            {
                "body": link.name,
                "kept": said.kept,
                "of": inner,
                "elements": said.elements,
                "left_out_hz": cut,
                "band_hz": said.band,
                "bound_hz": said.bound,
            }
        )
    return found


def without_reduction(robot: Robot) -> Robot:
    """The same robot with all elements of its beams."""
    if not reduced_links(robot):
        hint = "write reduce = { error, band } in a beam"
        raise InputError("no beam of this robot is reduced", key="reduce", hint=hint)
    frames = tuple(
        frame
        if frame.beam is None
        else frame.model_copy(update={"beam": frame.beam.model_copy(update={"reduce": None})})
        for frame in robot.description.frame
    )
    description = robot.description.model_copy(update={"frame": frames})
    return with_numbers(robot, description)
