"""Checks of the arguments of public functions: unknown names, missing arguments and wrong values.

Check the arguments of public functions: unknown names, missing ones, and wrong values.

All functions are checked here, once, before they run.

The words of the public functions: what each has to be.

A word means the same in every function, so one table has all of them. What a function alone can judge (whether a frame
is there, whether a mode exists) it judges itself.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parflex import checks
from parflex.errors import InputError, ParflexWarning, did_you_mean
from parflex.io import refuse_overwrite

ARRAYS = (np.ndarray, list, tuple)

Check = Callable[[Any, str], Any]


@dataclass(frozen=True)
class _Argument:
    """An argument of a function: its check and its default."""

    name: str
    check: Check | None
    default: Any

    def checked(self, value: Any) -> Any:
        """Return the value after its check."""
        if value is not self.default and self.check is not None:
            self.check(value, self.name)
        return value


class _Call:
    """The arguments of a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        checks = {**CHECKS, **OTHERS.get(self.name, {})}
        parameters = inspect.signature(function).parameters
        self.arguments = {name: _Argument(name, checks[name], one.default) for name, one in parameters.items()}
        self.in_order = [self.arguments[n] for n, one in parameters.items() if one.kind is not one.KEYWORD_ONLY]
        self.needed = [name for name, one in parameters.items() if one.default is one.empty]
        self.writes = "out" in parameters and checks["out"] is CHECKS["out"]

    def check_names(self, given: Iterable[str], places: int) -> None:
        """Refuse keywords that the function lacks, or that repeat one of the first `places` arguments."""
        taken = {argument.name for argument in self.in_order[:places]}
        for word in given:
            if word not in self.arguments:
                hint = did_you_mean(word, self.arguments)
                raise InputError(f"{self.name} has no argument '{word}'", key=word, value=word, hint=hint)
            if word in taken:
                raise InputError(f"{self.name} is given '{word}' twice", key=word, hint="keep one of them")

    def refuse(self) -> InputError:
        """Return the error for too few or too many arguments."""
        return InputError(
            f"{self.name} is called with too few or too many arguments",
            key=self.name,
            hint=f"required: {', '.join(self.needed) or 'none'}; accepted: {', '.join(self.arguments)}",
        )

    def check_output(self, given: tuple[Any, ...], words: Mapping[str, Any]) -> None:
        """Refuse an output file that is one of the input files."""
        values = {argument.name: value for argument, value in zip(self.in_order, given, strict=False)} | {**words}
        out = values.pop("out", None)
        if out is not None:
            refuse_overwrite([out], (file for value in values.values() for file in _files(value)))


def _files(value: Any) -> Iterable[str | Path]:
    """Return the files that an argument may name: a path, the files of a robot, a list of those."""
    if isinstance(value, str | Path):
        return [value]
    if isinstance(value, list | tuple):
        return [file for one in value for file in _files(one)]
    return getattr(value, "files", ())


def with_checked_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its arguments checked first."""
    call, doubts = _Call(function), getattr(function, "doubts", None)  # sentences on an answer that all must see
    arguments, in_order, needed = call.arguments, call.in_order, call.needed

    @functools.wraps(function)
    def checked_call(*given: Any, **words: Any) -> Any:
        places = len(given)
        if places > len(in_order):
            raise call.refuse()
        if words:
            call.check_names(words, places)
        if any(name not in words for name in needed[places:]):
            raise call.refuse()
        values = [argument.checked(value) for argument, value in zip(in_order, given, strict=False)]
        words = {name: arguments[name].checked(value) for name, value in words.items()}
        if call.writes:
            call.check_output(given, words)
        found = function(*values, **words)
        for sentence in () if doubts is None or words.get("ignore_limits") else doubts(found):
            warnings.warn(sentence, ParflexWarning, stacklevel=2)
        return found

    short_way = getattr(function, "short_way", None)
    if short_way is None:
        return checked_call

    @functools.wraps(function)
    def quick_call(*given: Any, **words: Any) -> Any:
        """Input known to be valid is answered at once: checking all arguments would take longer than the answer."""
        found = short_way(given, words)
        return checked_call(*given, **words) if found is None else found

    return quick_call


def _robot(value: Any, key: str) -> Any:
    from parflex.robot.robot import Robot

    checks.instance(value, Robot, key, "load it first: parflex.load(NAME)")
    return value


def _robot_or_state(value: Any, key: str) -> Any:
    from parflex.formulations.sensor_geometry import RedundantSets
    from parflex.robot.configuration import Configuration

    return value if isinstance(value, (Configuration, RedundantSets)) else _robot(value, key)


def _pose(value: Any, key: str) -> Any:
    from parflex.robot.configuration import Configuration

    if isinstance(value, (str, Configuration, *ARRAYS)):
        return value  # of arrays the robot knows the shape
    return _numbers_by_name(value, key)


def _moving(value: Any, key: str) -> Any:
    """Rates or accelerations, by name or as an array, of which the robot knows the shape."""
    return value if isinstance(value, ARRAYS) else _numbers_by_name(value, key)


def _numbers_by_name(value: Any, key: str) -> Any:
    for word, entry in checks.table(value, key).items():
        try:
            checks.number(entry, key)
        except InputError:
            raise InputError(
                f"'{word}' needs a finite number", key=key, value=checks.short_text(entry), hint="give e.g. 0.1"
            ) from None
    return value


def _row(value: Any, key: str) -> Any:
    """A row of numbers; how many, and that they are finite, is said better where it is known what they are."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.zeros(())
    return value if array.ndim == 1 else checks.numbers(value, (None,), key)


def _word(value: Any, key: str) -> Any:
    if not isinstance(value, str):
        raise InputError(f"'{key}' must be a name", key=key, value=checks.short_text(value), hint="write it in quotes")
    return value


def _lock(value: Any, key: str) -> Any:
    return value if isinstance(value, str) else checks.names(value, key, "'actuators', 'none' or ['leg1.1']")


def _file(value: Any, key: str) -> Any:
    if not isinstance(value, (str, Path)):
        raise InputError(
            f"'{key}' must be a path", key=key, value=checks.short_text(value), hint="give a file name as a string"
        )
    return value


def _servo(value: Any, key: str) -> Any:
    return _numbers_by_name(value, key) if isinstance(value, Mapping) else checks.number(value, key, example=1e4)


def _call(value: Any, key: str) -> Any:
    if not callable(value):
        raise InputError(
            f"'{key}' must be a function", key=key, value=checks.short_text(value), hint="give a function, or omit it"
        )
    return value


def _axes(value: Any, key: str) -> Any:
    """Axes of a grid."""
    try:
        rows = [tuple(row) for row in value]
    except TypeError:
        rows = [()]
    if isinstance(value, (str, Mapping)) or not rows or any(len(row) != 4 for row in rows):
        raise InputError(
            f"'{key}' must be a list of axes",
            key=key,
            value=checks.short_text(value),
            hint="write [('x', -0.1, 0.1, 20)]",
        )
    for name, first, last, count in rows:
        _word(name, key), checks.number(first, key), checks.number(last, key), checks.integer(count, key, 1)
    return value


def _poses(value: Any, key: str) -> Any:
    """Poses one after the other, or rows of numbers where the coordinates are named beside them."""
    if isinstance(value, (str, Mapping)) or not hasattr(value, "__len__") or not len(value):
        raise InputError(
            f"'{key}' must be a list of poses",
            key=key,
            value=checks.short_text(value),
            hint="give at least one: ['home', {'x': 0.1}], or rows of numbers where the coordinates are named",
        )
    if not any(isinstance(pose, (str, Mapping)) for pose in value):
        return checks.numbers(value, (None, None), key)
    for pose in value:
        (_numbers_by_name if isinstance(pose, ARRAYS) else _pose)(pose, key)  # between poses words are interpolated
    return value


def _pose_rows(value: Any, key: str) -> Any:
    """Rows of numbers, some of which may be not a number."""
    from parflex.maps.batch import pose_rows

    return pose_rows(value, key)


def _shapes(value: Any, key: str) -> Any:
    return value if isinstance(value, str) and value == "all" else checks.boolean(value, key)


def _any_poses(value: Any, key: str) -> Any:
    """Poses of any kind, one after the other."""
    if isinstance(value, (str, Mapping)) or not hasattr(value, "__len__") or not len(value):
        _poses(value, key)
    return value


def _coordinates(value: Any, key: str) -> Any:
    """A set of coordinates by its name, or coordinates by their names."""
    return value if isinstance(value, str) else checks.names(value, key)


def _count(value: Any, key: str) -> Any:
    return checks.integer(value, key, 1)


def _positive(value: Any, key: str) -> Any:
    return checks.number(value, key, above=0.0, example=1.0 if key == "time" else 1e-3)


def _share(value: Any, key: str) -> Any:
    if checks.number(value, key, least=0.0, example=0.8) > 1:
        raise InputError(f"'{key}' is not between 0 and 1", key=key, value=value, hint="give e.g. 0.8")
    return value


def _terms(value: Any, key: str) -> Any:
    from parflex.robot.load import checked_terms

    return checked_terms(value, key)


def _motion(value: Any, key: str) -> Any:
    if isinstance(value, (list, set, bytes, int, float)):
        raise InputError(
            f"'{key}' is not a motion", key=key, value=checks.short_text(value),
            hint="give the name of one, a file of knots, or a function of time",
        )  # fmt: skip
    return value


def _plan(value: Any, key: str) -> Any:
    from parflex.trajectories.motor_motion import MotorMotion

    return checks.instance(value, MotorMotion, key, "make one first: parflex.plan_motion(robot, motion)")


def _study(value: Any, key: str) -> Any:
    from parflex.control.study_file import StudyFile

    if isinstance(value, (str, Path)):
        return value
    return checks.instance(value, StudyFile, key, "give the path of its file")


def _map(value: Any, key: str) -> Any:
    from parflex.maps.grid import FrequencyMap

    return checks.instance(value, FrequencyMap, key, "make one first: parflex.frequency_map(robot, over)")


def _finished_study(value: Any, key: str) -> Any:
    from parflex.control.study import Study

    return checks.instance(value, Study, key, "run it first: parflex.run_study(file)")


def _modes(value: Any, key: str) -> Any:
    from parflex.statics.modes import Modes

    return checks.instance(value, Modes, key, "compute them first: parflex.natural_frequencies(robot)")


def _sensitivities(value: Any, key: str) -> Any:
    from parflex.design.sensitivity import Sensitivities

    return checks.instance(value, Sensitivities, key, "compute them first: parflex.sensitivities(robot, ...)")


def _columns(value: Any, key: str) -> Any:
    listed = checks.table(value, key, "what parflex.simulate gives")
    checks.numbers(listed.get("t"), (None,), f"{key}: t")
    return value


def _payload(value: Any, key: str) -> Any:
    return checks.numbers(value, (4,), key)


CHECKS: dict[str, Check | None] = {
    "robot": _robot,
    "plant": _robot,
    "source": _file,
    "pose": _pose,
    "poses": _poses,
    **dict.fromkeys(("velocity", "acceleration", "fixed"), _numbers_by_name),
    **dict.fromkeys(("wrench", "settings", "designs"), checks.table),
    **dict.fromkeys(("response", "statistic", "unit", "help"), _word),
    "tolerances": _numbers_by_name,
    "function": _call,
    "found": _sensitivities,
    "refined": None,  # modes or a run: the function says what they lack
    **dict.fromkeys(("keys", "worst"), None),  # names of the file, a choice: the functions say more
    **dict.fromkeys(
        ("reactions", "shapes", "check_width", "check_steps", "quick", "checks", "stops", "ignore_limits", "rigid"),
        checks.boolean,
    ),
    **dict.fromkeys(("closed", "csv", "floating", "keep_spikes", "physical"), checks.boolean),
    **dict.fromkeys(("frame", "name", "title", "drive", "method", "law", "actuation", "working_mode", "paper"), _word),
    "end_effector": _word,
    "model": _word,
    **dict.fromkeys(("frames", "wrench_frames", "columns", "inputs", "outputs", "sensed"), checks.names),
    **dict.fromkeys(("compensate", "independent", "include"), checks.names),
    "keep": checks.names_or_all,
    "coordinates": _coordinates,
    **dict.fromkeys(("servo", "servo_damping"), _servo),
    **dict.fromkeys(("q", "qd", "qdd"), None),  # arrays, of which the robot knows the shape
    "effort": None,  # numbers, names with numbers, or functions of time: read in one place, motor_values
    **dict.fromkeys(("modes", "mode", "samples", "steps", "operator_limit"), _count),
    "progress": _call,
    **dict.fromkeys(("agreement", "finest", "amplitude", "highest"), lambda v, k: checks.number(v, k, above=0.0)),
    "lock": _lock,
    "over": _axes,
    "values": _row,
    "near": lambda value, key: checks.numbers(value, (None,), key),
    "without": _terms,
    **dict.fromkeys(("time", "step", "out_step", "tolerance", "sample_time"), _positive),
    "friction_width": lambda value, key: checks.number(value, key, least=0.0, example=1e-3),
    "instant": lambda value, key: checks.number(value, key, example=0.5),
    "radius": _share,
    "motion": _motion,
    "plan": _plan,
    "payload": _payload,
    "elements": lambda value, key: checks.integer(value, key, 1, 100),
    "study": _study,
    "frequency_map": _map,
    **dict.fromkeys(("run", "measured"), _columns),
    **dict.fromkeys(("path", "out", "loops"), _file),
    # the functions check these themselves: choices, or numbers that belong together
    **dict.fromkeys(("about", "form", "parameters", "rows", "reference", "controller", "start", "natural"), None),
    **dict.fromkeys(("fmi", "kind", "platforms"), None),
    **dict.fromkeys(("overshoot", "peak_time", "Kp", "Kv", "jobs", "bench", "cluster", "executor"), None),
    **dict.fromkeys(("delay", "noise", "rate_noise", "resolution", "rates", "effort_limit", "seed"), None),
    "converge": None,
    "responses": None,
    "threads": _count,
    **dict.fromkeys(("weights", "preload"), checks.table),  # values of motors: read in one place, spare_motors
    **dict.fromkeys(("velocity_limit", "acceleration_limit"), None),
    **dict.fromkeys(("estimator", "friction"), _word),
    **dict.fromkeys(("harmonics", "distance", "starts"), None),  # read by `excite`
    **dict.fromkeys(("vary", "hold_out", "prior"), None),  # read by `update`
    "workspace": checks.table,
    **dict.fromkeys(("record", "validate", "cutoff", "decimate", "least_speed"), None),  # read by `identify`
}

# the same word, but with more than it means elsewhere
OTHERS: dict[str, dict[str, Check | None]] = {
    "energies": {
        "robot": _robot_or_state,
        "velocity": _moving,
    },  # of a configuration: all its rates in the second place
    "inverse_dynamics": {"velocity": _moving, "acceleration": _moving, "out": None},
    "update": {"measured": None},  # a file or rows, read there
    "forward_dynamics": {"velocity": _moving, "out": None},
    "geometry_from_sensors": {"robot": _robot_or_state},  # sets of sensors that were made before
    "many_frequencies": {"poses": _pose_rows, "shapes": _shapes},  # rows that are not numbers are marked
    "many_responses": {"poses": _pose_rows},
    "identify": {"columns": None},  # a map of columns
    "draw_study": {"study": _finished_study},
    "draw_modes": {"modes": _modes},
    "sensitivities": {"poses": _any_poses},
}
