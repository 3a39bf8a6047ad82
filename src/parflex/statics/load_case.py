"""Define the load case: locks and loads of a robot, and the state of linearisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

import numpy as np

from parflex.checks import instance, names, one_of
from parflex.errors import InputError
from parflex.forces.effort_allocation import Preload, Weights
from parflex.forces.forces import Without, Wrench
from parflex.robot.motor_values import Effort

Lock = str | Sequence[str]
Servo = float | Mapping[str, float]
About = Literal["undeformed", "equilibrium"]


@dataclass(frozen=True, eq=False)
class LoadCase:
    """Locks and loads of a robot, and the state of linearisation.

    Functions of statics and vibration take `lock`, `about`, `servo`, `servo_damping`, `wrench`, `effort`,
    `without`, `weights` and `preload` as keywords (see `parflex.api.WORDS`), or all of them in one load case as
    `load_case`.
    """

    lock: Lock = "actuators"
    about: About | None = None
    servo: Servo | None = None
    servo_damping: Servo | None = None
    wrench: Wrench | None = None
    effort: Effort | None = None
    without: Without = ()
    weights: Weights | None = None
    preload: Preload | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.lock, str):
            names(self.lock, "lock", "'actuators', 'none' or ['leg1.1']")
        if self.about is not None:
            one_of(self.about, ("undeformed", "equilibrium"), "about")

    @property
    def loaded(self) -> bool:
        """Whether a wrench, efforts or a preload act."""
        return any(map(_is_specified, (self.wrench, self.effort, self.preload, self.weights)))

    def state(self, loads_matter: bool = True) -> About:
        """Return the state of linearisation: under loads the equilibrium by default, else the undeformed pose.

        `loads_matter` is false for answers that loads about the undeformed pose do not change.
        """
        if self.about is None:
            return "equilibrium" if self.loaded else "undeformed"
        text, omitted = "", "the load"
        if self.about == "undeformed" and (_is_specified(self.preload) or _is_specified(self.weights)):
            text, omitted = "a preload acts about the equilibrium", "it"
        elif self.about == "undeformed" and self.loaded and not loads_matter:
            text = "about the undeformed pose, loads and efforts have no effect"
        if text:
            hint = f"use about='equilibrium', or omit {omitted}"
            raise InputError(text, key="about", value=self.about, hint=hint)
        return self.about

    @property
    def forced_frames(self) -> list[str]:
        """Frames on which wrenches act."""
        return list(self.wrench) if isinstance(self.wrench, Mapping) else []

    @property
    def deforming_frames(self) -> list[str]:
        """Frames of wrenches that deform the robot before it is linearised."""
        return self.forced_frames if self.at_equilibrium else []

    @property
    def at_equilibrium(self) -> bool:
        """Whether the state of linearisation is the equilibrium."""
        return self.state() == "equilibrium"


class LoadKeywords(TypedDict, total=False):
    """The keywords of a load case besides `lock` and `about`, or the load case itself."""

    servo: Servo | None
    servo_damping: Servo | None
    wrench: Wrench | None
    effort: Effort | None
    without: Without
    weights: Weights | None
    preload: Preload | None
    load_case: LoadCase | None


def read_load_case(load_case: LoadCase | None = None, /, **keywords: Any) -> LoadCase:
    """Return the load case of keywords, or the specified load case.

    Raise for values that are specified twice, and for fields for which the calling function has no keyword.
    """
    if load_case is None:
        return LoadCase(**keywords)
    instance(load_case, LoadCase, "load_case", "give e.g. parflex.LoadCase(wrench={'platform': [0, 0, -50]})")
    for entry in fields(LoadCase):
        name, default = entry.name, entry.default
        if name in keywords and _differs(keywords[name], default):
            text, value, hint = f"'{name}' and a load case are both given", keywords[name], "keep one of them"
        elif name not in keywords and _differs(getattr(load_case, name), default):
            text, value = f"this function has no '{name}', which the load case specifies", getattr(load_case, name)
            hint = "leave it out of the load case"
        else:
            continue
        raise InputError(text, key=name, value=str(value), hint=hint)
    return load_case


def full_load_case(
    lock: Lock, about: About | None, load: Mapping[str, Any], loads_matter: bool | None = None
) -> LoadCase:
    """Return the load case of a function that supports all keywords, checked by `LoadCase.state`."""
    keywords: dict[str, Any] = {entry.name: entry.default for entry in fields(LoadCase)}
    keywords |= {"lock": lock, "about": about, **load}
    case = read_load_case(keywords.pop("load_case", None), **keywords)
    if loads_matter is not None:
        case.state(loads_matter)
    return case


def _is_specified(value: Any) -> bool:
    return bool(value.size if isinstance(value, np.ndarray) else value)


def _differs(value: Any, default: Any) -> bool:
    """Return whether a value is specified; zero counts as a value."""
    return value != default if isinstance(value, str) else isinstance(value, float | int) or _is_specified(value)
