"""What acts on a robot: everything that its file says, but for the terms that are left out.

One set of words for all functions and programs. A term is taken out of the numbers of the robot itself, so that forces,
energies, losses, frequencies and programs cannot disagree about it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.closure.constraints import Constraint, Coupling
from parflex.errors import InputError, did_you_mean
from parflex.models.configuration import Configuration, Pose, configure
from parflex.models.robot import Robot
from parflex.recursion.dynamics import JOINT_TERMS
from parflex.tree.force_elements import CoupledSpring, PointElement
from parflex.tree.tree import Link, Tree

Without = Sequence[str]
FRICTION = ("viscous", "coulomb", "static", "more_viscous", "more_coulomb", "offset")
COUNTED_WITHOUT = ("friction", "motor-inertia", "springs")  # what counts of operators leave out unless asked


def checked_terms(without: Iterable[str], key: str = "without") -> tuple[str, ...]:
    """Words of terms that can be left out, each once and in one order."""
    if isinstance(without, str):
        raise InputError(
            f"'{key}' is a list of terms", key=key, value=without, hint=f"write ['{without}'] in place of '{without}'"
        )
    try:
        words = list(without)
    except TypeError:
        raise InputError(f"'{key}' is a list of terms", key=key, value=repr(without), hint="['friction']") from None
    for word in words:
        if not isinstance(word, str) or word not in TERMS:
            raise InputError(
                f"'{word}' is not a term that can be left out", key=key,
                value=repr(word) if not isinstance(word, str) else word,
                hint=did_you_mean(str(word), TERMS),
            )  # fmt: skip
    return tuple(term for term in TERMS if term in words)


def left_out(without: Iterable[str], include: Iterable[str] | None) -> tuple[str, ...]:
    """Terms that are left out; `include`, if it is given, names the only joint terms that act."""
    found = checked_terms(without)
    if include is None:
        return found
    words = [include] if isinstance(include, str) else list(include)
    for word in words:
        if word not in JOINT_TERMS:
            raise InputError(
                f"'{word}' is not a term that can be included",
                key="with",
                value=str(word),
                hint=did_you_mean(str(word), JOINT_TERMS),
            )
        if word in found:
            raise InputError(
                f"'{word}' is left out and included", key="without", value=word, hint="keep one of the two"
            )
    return tuple(term for term in TERMS if term in found or (term in JOINT_TERMS and term not in words))


def acting(robot: Robot, without: Collection[str] = ()) -> Robot:
    """The robot with only what acts in it, at the same home. Made once for each choice."""
    chosen = checked_terms(without)
    if not chosen:
        return robot
    made = robot.robots_without
    if chosen not in made:
        tree = robot.tree
        for term in chosen:
            tree = TERMS[term](tree)
        closures = replace(robot.closures, tree=tree)
        if "friction" in chosen:
            closures = replace(closures, constraints=tuple(map(_lossless, closures.constraints)))
        made[chosen] = replace(
            robot, tree=tree, closures=closures, known_home=robot.home, known_mobility=robot.known[1]
        )
    return made[chosen]


def acting_at(robot: Robot, pose: Pose | None = None, without: Collection[str] = ()) -> Configuration:
    """The robot at a pose with only what acts in it."""
    chosen = checked_terms(without)  # a wrong term is reported before a pose is solved
    here = configure(robot, pose)
    return Configuration(acting(here.robot, chosen), here.q) if chosen else here


def _lossless(row: Constraint) -> Constraint:
    return replace(row, efficiency=1.0, back=1.0) if isinstance(row, Coupling) else row


def _links(change: Callable[[Link], Link]) -> Callable[[Tree], Tree]:
    return lambda tree: replace(tree, links=tuple(change(link) for link in tree.links))


def _smooth(link: Link) -> Link:
    nothing: dict[str, Any] = dict.fromkeys(FRICTION, 0.0)
    return replace(link, terms=replace(link.terms, **nothing))


def _light(link: Link) -> Link:
    return replace(link, terms=replace(link.terms, motor_inertia=0.0))


def _unsprung(link: Link) -> Link:
    idle = link.terms.idle or bool(link.terms.stiffness)
    return replace(link, terms=replace(link.terms, stiffness=0.0, damper=0.0, idle=idle))


def _undamped(link: Link) -> Link:
    return replace(link, body=link.body.without_damping(), terms=replace(link.terms, damper=0.0))


def _linear(link: Link) -> Link:
    return replace(link, body=link.body.with_linear_strain())


def _springs(change: Callable[[CoupledSpring], CoupledSpring], rest: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
    return lambda tree: replace(rest(tree), springs=tuple(change(spring) for spring in tree.springs))


def _elements(change: Callable[[PointElement], PointElement], rest: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
    return lambda tree: replace(rest(tree), elements=tuple(change(element) for element in tree.elements))


TERMS: dict[str, Callable[[Tree], Tree]] = {
    # viscous and Coulomb friction of joints with its offset, losses of couplings
    "friction": _springs(lambda spring: replace(spring, efficiency=1.0, back=1.0), _links(_smooth)),
    # dampers of joints, couplings and elements, and the damping of bodies
    "damping": _elements(
        PointElement.undamped, _springs(lambda spring: replace(spring, damping=0.0), _links(_undamped))
    ),
    "gravity": lambda tree: replace(tree, gravity=np.zeros(3)),
    # springs and dampers of joints and couplings, elements that are not rigid
    "springs": _elements(
        PointElement.idle,
        _springs(lambda spring: replace(spring, stiffness=0.0, damping=0.0), _links(_unsprung)),
    ),
    "motor-inertia": _links(_light),
    "axial": _links(_linear),  # what bending does to the axial strain of bodies, and axial load to their stiffness
}
