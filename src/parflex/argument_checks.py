"""The arguments of public functions are checked once, here, before any of them is used.

A word of the same name means the same in every function, so one table says what it has to be. What a function alone
can judge (whether a frame is there, whether a mode exists) it judges itself.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from parflex import checking
from parflex.errors import InputError, did_you_mean

CONDITIONS = ("servo", "servo_damping", "loads", "effort", "without")  # of functions that hold and load a robot
Check = Callable[[Any, str], Any]


def _robot(value: Any, key: str) -> Any:
    from parflex.models.robot import Robot

    return checking.instance(value, Robot, key, "load it first: parflex.load(NAME)")


def _robot_or_state(value: Any, key: str) -> Any:
    from parflex.models.configuration import Configuration
    from parflex.models.forms.by_sensors.redundant_sets import RedundantSets

    return value if isinstance(value, (Configuration, RedundantSets)) else _robot(value, key)


def _pose(value: Any, key: str) -> Any:
    from parflex.models.configuration import Configuration

    if isinstance(value, (str, Configuration)):
        return value
    return _numbers_by_name(value, key)


def _pose_or_rates(value: Any, key: str) -> Any:
    """Of `energies`: a pose, or all rates of a configuration, which looks at them itself."""
    return value if isinstance(value, (np.ndarray, list, tuple)) else _pose(value, key)


def _numbers_by_name(value: Any, key: str) -> Any:
    for word, entry in checking.table(value, key).items():
        try:
            checking.number(entry, key)
        except InputError:
            raise InputError(
                f"'{word}' needs a finite number", key=key, value=checking.shown(entry), hint="give e.g. 0.1"
            ) from None
    return value


def _row(value: Any, key: str) -> Any:
    """A row of numbers; how many, and that they are finite, is said better where it is known what they are."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.zeros(())
    return value if array.ndim == 1 else checking.numbers(value, (None,), key)


def _word(value: Any, key: str) -> Any:
    if not isinstance(value, str):
        raise InputError(f"'{key}' is to be a name", key=key, value=checking.shown(value), hint="put it in quotes")
    return value


def _lock(value: Any, key: str) -> Any:
    return value if isinstance(value, str) else checking.names(value, key, "'actuators', 'none' or ['leg1.1']")


def _file(value: Any, key: str) -> Any:
    if not isinstance(value, (str, Path)):
        raise InputError(
            f"'{key}' is to be a path", key=key, value=checking.shown(value), hint="give the name of a file as text"
        )
    return value


def _servo(value: Any, key: str) -> Any:
    return _numbers_by_name(value, key) if isinstance(value, Mapping) else checking.number(value, key, example=1e4)


def _call(value: Any, key: str) -> Any:
    if not callable(value):
        raise InputError(f"'{key}' is to be a function", key=key, value=checking.shown(value), hint="or leave it out")
    return value


def _axes(value: Any, key: str) -> Any:
    """Axes of a grid."""
    try:
        rows = [tuple(row) for row in value]
    except TypeError:
        rows = [()]
    if isinstance(value, (str, Mapping)) or not rows or any(len(row) != 4 for row in rows):
        raise InputError(
            f"'{key}' is to be a list of axes",
            key=key,
            value=checking.shown(value),
            hint="write [('x', -0.1, 0.1, 20)]",
        )
    for name, first, last, count in rows:
        _word(name, key), checking.number(first, key), checking.number(last, key), checking.whole(count, key, 1)
    return value


def _poses(value: Any, key: str) -> Any:
    """Poses one after the other."""
    if isinstance(value, (str, Mapping)) or not hasattr(value, "__len__") or not len(value):
        raise InputError(
            f"'{key}' is to be a list of poses", key=key, value=checking.shown(value), hint="write ['home', {'x': 0.1}]"
        )
    for pose in value:
        _pose(pose, key)
    return value


def _count(value: Any, key: str) -> Any:
    return checking.whole(value, key, 1)


def _positive(value: Any, key: str) -> Any:
    return checking.number(value, key, above=0.0, example=1e-3)


def _share(value: Any, key: str) -> Any:
    if checking.number(value, key, least=0.0, example=0.8) > 1:
        raise InputError(f"'{key}' is not between 0 and 1", key=key, value=value, hint="give e.g. 0.8")
    return value


def _terms(value: Any, key: str) -> Any:
    from parflex.models.terms import checked_terms

    return checked_terms(value, key)


def _motion(value: Any, key: str) -> Any:
    if isinstance(value, (list, set, bytes, int, float)):
        raise InputError(
            f"'{key}' is no motion", key=key, value=checking.shown(value),
            hint="give the name of one, a file of knots, or a function of time",
        )  # fmt: skip
    return value


def _study(value: Any, key: str) -> Any:
    from parflex.control.study_file import StudyFile

    return checking.instance(value, StudyFile, key, "read it first: parflex.control.study_file.read_study(path)")


def _modes(value: Any, key: str) -> Any:
    from parflex.models.elastic.linear_model import Modes

    return checking.instance(value, Modes, key, "find them first: parflex.natural_frequencies(robot)")


def _columns(value: Any, key: str) -> Any:
    listed = checking.table(value, key, "what parflex.simulate gives")
    checking.numbers(listed.get("t"), (None,), f"{key}: t")
    return value


def _payload(value: Any, key: str) -> Any:
    return checking.numbers(value, (4,), key)


CHECKS: dict[str, Check] = {
    "robot": _robot,
    "at": _pose,
    **dict.fromkeys(("velocity", "acceleration", "fixed"), _numbers_by_name),
    **dict.fromkeys(("wrenches", "loads"), checking.table),
    **dict.fromkeys(("reactions", "shapes"), checking.flag),
    **dict.fromkeys(("frame", "name", "title"), _word),
    **dict.fromkeys(("frames", "columns", "coordinates", "inputs", "outputs", "sensed"), checking.names),
    **dict.fromkeys(("servo", "servo_damping"), _servo),
    **dict.fromkeys(("modes", "samples", "steps", "limit"), _count),
    **dict.fromkeys(("shown", "progress"), _call),
    **dict.fromkeys(("agreement", "finest", "amplitude", "highest"), lambda v, k: checking.number(v, k, above=0.0)),
    "lock": _lock,
    "over": _axes,
    "measured": _row,
    "near": lambda value, key: checking.numbers(value, (None,), key),
    "poses": lambda value, key: checking.numbers(value, (None, None), key),
    "include": checking.names,
    "without": _terms,
    **dict.fromkeys(("time", "step", "out_step", "tolerance", "friction_width", "sample_time"), _positive),
    **dict.fromkeys(("drive", "method", "law", "actuation", "working_mode", "paper"), _word),
    **dict.fromkeys(("compensate", "independent"), checking.names),
    **dict.fromkeys(("check_width", "quick"), checking.flag),
    "radius": _share,
    "motion": _motion,
    "pose": _pose,
    "plant": _robot,
    "wrench": checking.table,
    "settings": checking.table,
    "payload": _payload,
    "elements": lambda value, key: checking.whole(value, key, 1, 100),
    "file": _study,
    "run": _columns,
    "path": _file,
    "out": _file,
}
# the same word, but not the same meaning
OTHERS: dict[str, dict[str, Check | None]] = {
    "energies": {"robot": _robot_or_state, "at": _pose_or_rates},
    "geometry_from_sensors": {"robot": _robot_or_state},
    "mass_matrix": {"coordinates": None},
    "load": {"robot": _file},
    "model": {
        "wrenches": checking.names,
        "friction_width": None,
        "rows": None,
        "coordinates": None,
        "checks": checking.flag,
    },
    "run_control": {"Kp": None},
    "draw_comparison": {"measured": _columns},
    "track_modes": {"path": _poses},
    "draw_modes": {"modes": _modes},
}


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its arguments looked at first."""
    if inspect.isclass(function):
        return function  # a class looks at its fields itself
    signature = inspect.signature(function)
    checks = {**CHECKS, **OTHERS.get(function.__name__, {})}

    @functools.wraps(function)
    def checked_call(*arguments: Any, **words: Any) -> Any:
        try:
            given = signature.bind(*arguments, **words).arguments
        except TypeError:
            raise _strange(function, signature, words) from None
        rest = given.pop("conditions", {})
        for word in rest:
            if word not in CONDITIONS:
                raise _strange(function, signature, rest)
        rest = rest | given.pop("loop", {})
        for word, value in {**given, **rest}.items():
            default = signature.parameters[word].default if word in signature.parameters else None
            check = checks.get(word)
            if check is not None and value is not default:
                check(value, word)
        return function(*arguments, **words)

    return checked_call


def _strange(function: Callable[..., Any], signature: inspect.Signature, words: Mapping[str, Any]) -> InputError:
    """What is said where arguments do not fit the function."""
    known = [name for name in signature.parameters if name not in ("conditions", "loop")]
    if "conditions" in signature.parameters:
        known += CONDITIONS
    strange = next((word for word in words if word not in known), None)
    if strange is not None:
        return InputError(
            f"{function.__name__} has no '{strange}'", key=strange, value=strange, hint=did_you_mean(strange, known)
        )
    needed = [n for n, p in signature.parameters.items() if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    return InputError(
        f"{function.__name__} is called with too few or too many arguments",
        key=function.__name__,
        hint=f"it needs {', '.join(needed) or 'nothing'}; known are {', '.join(known)}",
    )
