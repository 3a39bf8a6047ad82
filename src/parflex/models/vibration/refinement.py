"""Robots with more and more elements until an answer is converged: what all such answers have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.errors import InputError
from parflex.models.vibration.element_errors import beam_links
from parflex.records import Record, count_of
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.robot import Robot

Array = np.ndarray
LEAST = 1e-9  # answers of finely divided robots have rounding of about 1e-10: smaller changes are chance
MOST = 64  # elements that each element of the file is divided into
DEFORMED = 1e-9  # m or rad: a configuration with larger elastic coordinates belongs to its number of elements


@dataclass(frozen=True, eq=False, repr=False)
class Refinement(Record):
    """How many elements an answer took.

    Attributes
    ----------
    elements : int
        Elements that every element of the file is divided into, as `elements` of `load` says.
    change : float
        Largest relative change by the last doubling of the elements; infinite before there are two answers.
    remaining : float
        Estimate of the largest relative error that is left.
    converged : bool
        Whether both are within what `converge` asks for.
    steps : list[dict[str, Any]]
        Of each number of elements: `elements`, `coordinates`, `change`, `seconds`, and more where it is known.
    why : str
        Why the refinement ended before.
    """

    elements: int
    change: float
    remaining: float
    converged: bool
    steps: list[dict[str, Any]] = field(default_factory=list)
    why: str = ""

    def _told(self) -> str:
        answer = "converged" if self.converged else "not converged"
        return f"{answer} with {count_of(self.elements, 'element')} in each of the file, last change {self.change:.2g}"


def check_share(converge: Any) -> float:
    """Refuse what is no relative change, or one that rounding forbids."""
    number = not isinstance(converge, bool) and isinstance(converge, int | float | np.number)
    if not number or not 0 < converge < 1:
        hint = "give e.g. 1e-3"
        raise InputError("'converge' is not a share between 0 and 1", key="converge", value=converge, hint=hint)
    if converge < LEAST:
        raise InputError(
            f"answers have rounding of about {LEAST / 10:.0e}: a change of {converge:g} is chance",
            key="converge",
            value=converge,
            hint=f"give {LEAST:g} or more, e.g. 1e-3",
        )
    return float(converge)


def refinable(robot: Robot, names: Collection[str] = ()) -> list[str]:
    """Sentences about what stays as it is while beams are refined; a robot without beams is refused.

    `names` are frames that the answer is about: nodes between elements that the robot was loaded with are elsewhere
    after a refinement.
    """
    modal = [repr(name) for name in modal_bodies(robot)]
    reduced = [repr(frame.name) for frame in robot.description.frame if frame.beam is not None and frame.beam.reduce]
    if not beam_links(robot):
        what, hint = "it has no beams", ""
        if modal:
            what, hint = f"{', '.join(modal)} given by modes cannot be refined", ", or give the body more modes"
        if reduced:
            what, hint = f"{', '.join(reduced)} are reduced, with an error that the file states", ", or reduce"
        raise InputError(
            f"the number of elements of '{robot.name}' cannot be refined: {what}",
            key="converge",
            value=robot.name,
            hint=f"leave out converge{hint}",
        )
    if {*robot.locked} & {*robot.tree.elastic}:
        raise InputError(
            "a robot with locked elastic coordinates cannot be refined: they belong to its number of elements",
            key="converge",
            value=robot.name,
            hint="lock joints alone",
        )
    inner = _inner_nodes(robot)
    for name in names:
        if name in inner:
            raise InputError(
                f"'{name}' is a node between elements that the robot was loaded with: refined, it is elsewhere",
                key="converge",
                value=name,
                hint="load the robot without elements, and give the beam elements in its file",
            )
    told = [f"{', '.join(modal)} given by modes stays as it is: only beams are refined"] if modal else []
    if reduced:
        told.append(f"the error of the reduction of {', '.join(reduced)} is not in the change: the file states it")
    return told


def _inner_nodes(robot: Robot) -> set[str]:
    """Nodes inside the elements of the file, which are elsewhere when these are divided further."""
    tree, found = robot.tree, set()
    for name, links in beam_links(robot).items():
        found |= {tree.links[j].name for j in links[1:] if tree.links[j].name.removeprefix(f"{name}.").count(".")}
    return found


def modal_bodies(robot: Robot) -> list[str]:
    """Bodies given by modes."""
    return [link.name for link in robot.tree.links if link.body.size and not link.body.by_tip]


def at_same_pose(robot: Robot, finer: Robot, pose: Pose | None) -> Pose | None:
    """A pose of a robot as one of the same robot with other elements."""
    if pose is None or isinstance(pose, str | Mapping):
        return pose
    here = configure(robot, pose)
    elastic = {k for link in robot.tree.links for k in range(link.e.start, link.e.stop)}
    if np.abs(here.q[sorted(elastic)]).max(initial=0.0) > DEFORMED:
        raise InputError(
            "this configuration is deformed: its elastic coordinates belong to its number of elements",
            key="pose",
            hint="give the pose itself; about='equilibrium' finds the deformed one",
        )
    return Configuration(finer, same_positions(robot, finer, here.q))


def same_positions(robot: Robot, finer: Robot, q: Array) -> Array:
    """Positions of an undeformed robot as those of the same robot with other elements."""
    values = dict(zip(robot.tree.position_names, q, strict=True))
    found = np.array([values.get(name, 0.0) for name in finer.tree.position_names])
    for link in finer.tree.links:
        found[link.e] = 0.0
    return found


def numbers_of_elements(robot: Robot, most: int) -> Iterable[int]:
    """1, 2, 4, ... times the elements of a robot, as long as it has no more than `most` coordinates."""
    elastic = sum(link.body.size for link in robot.tree.links if link.body.by_tip)
    times = 1
    while times * robot.refine <= MOST and (times == 1 or robot.tree.n + (times - 1) * elastic <= most):
        yield times
        times *= 2
