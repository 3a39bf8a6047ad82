"""The arguments of the public functions: meaning, type, unit and check of every word, in one table.

A word means the same in every function, and `WORDS` has each once. `with_checked_arguments` checks a call by the table
before the function runs, and completes the help of the function: a docstring describes an argument itself only if the
function has more to say, and examples stand in `examples.md`. The command line calls the same functions. A function
alone checks what depends on the robot, such as whether a frame exists. NumPy is imported when a value is checked:
`parflex --help` starts without it.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from parflex import checks
from parflex.errors import InputError, ParflexWarning, did_you_mean
from parflex.io import refuse_overwrite

Check = Callable[[Any, str], Any]


class Word(NamedTuple):
    """Type and meaning of an argument, its check (None: the function itself checks all of it) and its unit."""

    kind: str
    text: str
    check: Check | None = None
    unit: str = ""  # none of names, counts and flags
    in_functions: Mapping[str, Check | None] | None = None  # functions where the word accepts something else

    def entry(self, name: str, default: Any) -> str:
        """Return the entry of an argument in a docstring."""
        kind = self.kind if default is inspect.Parameter.empty else f"{self.kind}, default {default!r}"
        text = f"{self.text.removesuffix('.')} ({self.unit})." if self.unit else self.text
        lines = textwrap.wrap(text, 110, break_on_hyphens=False)
        return "\n    ".join([f"{name} : {kind}", *lines]) + "\n"

    def check_in(self, function: str) -> Check | None:
        """Return the check of the word in a function."""
        return (self.in_functions or {}).get(function, self.check)


# -- calls ---------------------------------------------------------------------------------------------------------


def with_checked_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its arguments checked first."""
    call, doubts = _Call(function), getattr(function, "doubts", None)  # warnings about an answer without `warnings`
    arguments, in_order, needed = call.arguments, call.in_order, call.needed

    @functools.wraps(function)
    def checked_call(*args: Any, **kwargs: Any) -> Any:
        places = len(args)
        if places > len(in_order):
            raise call.refuse()
        if kwargs:
            call.check_names(kwargs, places)
        if any(name not in kwargs for name in needed[places:]):
            raise call.refuse()
        for argument, value in zip(in_order, args, strict=False):
            argument.check_value(value)
        for name, value in kwargs.items():
            arguments[name].check_value(value)
        if call.writes:
            call.check_output(args, kwargs)
        answer = function(*args, **kwargs)
        for diagnostic in () if doubts is None or kwargs.get("ignore_limits") else doubts(answer):
            warnings.warn(ParflexWarning(diagnostic), stacklevel=2)
        return answer

    _complete_help(checked_call, call)
    shortcut = getattr(function, "short_way", None)
    if shortcut is None:
        return checked_call

    @functools.wraps(checked_call)
    def quick_call(*args: Any, **kwargs: Any) -> Any:
        """Answer input known to be valid at once: checking all arguments would take longer than the answer."""
        answer = shortcut(args, kwargs)
        return checked_call(*args, **kwargs) if answer is None else answer

    return quick_call


def signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature with the keywords of a load case one by one."""
    found = inspect.signature(function)
    arguments = list(found.parameters.values())
    if arguments and arguments[-1].kind is inspect.Parameter.VAR_KEYWORD:
        from parflex.statics.load_case import LoadCase, LoadKeywords

        arguments.pop()
        for name, entry in LoadKeywords.__annotations__.items():
            kind, default = entry.__forward_arg__, getattr(LoadCase, name, None)
            arguments.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind))
    return found.replace(parameters=arguments)


def _complete_help(function: Any, call: _Call) -> None:
    """Describe all arguments in the docstring: those that it only names are described as in `WORDS`."""
    head, title, tail = inspect.cleandoc(function.__doc__ or "").partition("Parameters\n----------\n")
    described, blank, rest = tail.partition("\n\n")
    own = {entry[1]: entry[0] for entry in re.finditer(r"^(\w+) : .+\n(?:    .+\n)+", described + "\n", flags=re.M)}
    entries = [own.get(name) or WORDS[name].entry(name, argument.default) for name, argument in call.arguments.items()]
    function.__signature__ = call.signature
    text = f"{head}{title}{''.join(entries)}{blank[1:]}{rest}" if title else head
    example = textwrap.indent(examples()[call.name], ">>> ") if call.name in examples() else ""
    function.__doc__ = f"{text.rstrip()}\n\nExamples\n--------\n{example}\n" if example else text


@functools.cache
def examples() -> dict[str, str]:
    """Return the example of each public function, two lines."""
    _, *parts = re.split(r"^## (\w+)\n", Path(__file__).with_name("examples.md").read_text("utf-8"), flags=re.M)
    return {name: code.strip() for name, code in zip(parts[::2], parts[1::2], strict=True)}


class _Argument(NamedTuple):
    """An argument of a function: its check and its default."""

    name: str
    check: Check | None
    default: Any

    def check_value(self, value: Any) -> None:
        """Check a value that is not the default."""
        if value is not self.default and self.check is not None:
            self.check(value, self.name)


class _Call:
    """The arguments of a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        self.signature = signature(function)
        parameters = self.signature.parameters
        self.arguments = {
            name: _Argument(name, WORDS[name].check_in(self.name), parameter.default)
            for name, parameter in parameters.items()
        }
        self.in_order = [
            self.arguments[n] for n, parameter in parameters.items() if parameter.kind is not parameter.KEYWORD_ONLY
        ]
        self.needed = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
        self.writes = "out" in self.arguments and self.arguments["out"].check is _path

    def check_names(self, keywords: Iterable[str], places: int) -> None:
        """Refuse keywords that the function lacks, or that repeat one of the first `places` arguments."""
        taken = {argument.name for argument in self.in_order[:places]}
        for keyword in keywords:
            if keyword not in self.arguments:
                hint = did_you_mean(keyword, self.arguments)
                raise InputError(f"{self.name} has no argument '{keyword}'", key=keyword, value=keyword, hint=hint)
            if keyword in taken:
                raise InputError(f"{self.name} is given '{keyword}' twice", key=keyword, hint="keep one of them")

    def refuse(self) -> InputError:
        """Return the error for too few or too many arguments."""
        return InputError(
            f"{self.name} is called with too few or too many arguments",
            key=self.name,
            hint=f"required: {', '.join(self.needed) or 'none'}; accepted: {', '.join(self.arguments)}",
        )

    def check_output(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Refuse an output file that is one of the input files."""
        values = {argument.name: value for argument, value in zip(self.in_order, args, strict=False)} | {**kwargs}
        out = values.pop("out", None)
        if out is not None:
            refuse_overwrite([out], (file for value in values.values() for file in _files(value)))


def _files(value: Any) -> Iterable[str | Path]:
    """Return the files that an argument may name: a path, the files of a robot, a list of those."""
    if isinstance(value, str | Path):
        return [value]
    if isinstance(value, list | tuple):
        return [file for item in value for file in _files(item)]
    return getattr(value, "files", ())


# -- checks --------------------------------------------------------------------------------------------------------


def _error(value: Any, key: str, text: str, hint: str) -> InputError:
    return InputError(f"'{key}' {text}", key=key, value=checks.short_text(value), hint=hint)


def _number(**limits: float) -> Check:
    return lambda value, key: checks.number(value, key, **limits)


def _integer(least: int, most: int | None = None) -> Check:
    return lambda value, key: checks.integer(value, key, least, most)


def _one_of(*words: str) -> Check:
    return lambda value, key: checks.one_of(value, words, key)


def _array(*shape: int | None) -> Check:
    return lambda value, key: checks.numbers(value, shape, key)


def _instance(name: str, hint: str) -> Check:
    """Accept objects of a public class."""

    def check(value: Any, key: str) -> Any:
        import parflex

        return checks.instance(value, getattr(parflex, name), key, hint)

    return check


def _is_array(value: Any) -> bool:
    import numpy as np

    return isinstance(value, (np.ndarray, list, tuple))


def _is_configuration(value: Any) -> bool:
    from parflex.robot.configuration import Configuration

    return isinstance(value, Configuration)


_robot = _instance("Robot", "load it first: parflex.load(NAME)")


def _robot_or_state(value: Any, key: str) -> Any:
    from parflex.formulations.redundant_sensors import RedundantSets

    return value if _is_configuration(value) or isinstance(value, RedundantSets) else _robot(value, key)


def _pose(value: Any, key: str) -> Any:
    """Accept arrays too: the robot knows their shape."""
    named = isinstance(value, str) or _is_configuration(value) or _is_array(value)
    return value if named else _numbers_by_name(value, key)


def _array_or_numbers_by_name(value: Any, key: str) -> Any:
    return value if _is_array(value) else _numbers_by_name(value, key)


def _numbers_by_name(value: Any, key: str) -> Any:
    for word, entry in checks.table(value, key).items():
        try:
            checks.number(entry, key)
        except InputError:
            raise InputError(
                f"'{word}' needs a finite number", key=key, value=checks.short_text(entry), hint="give e.g. 0.1"
            ) from None
    return value


def _number_or_table(value: Any, key: str) -> Any:
    return _numbers_by_name(value, key) if isinstance(value, Mapping) else checks.number(value, key, example=1e4)


def _payload(value: Any, key: str) -> Any:
    hint = "write mass,x,y,z, e.g. 2,0,0,0.1"
    try:
        mass = checks.numbers(value, (4,), key)[0]
    except InputError:
        raise _error(value, key, "is not a mass and a position", hint) from None
    if mass < 0:
        raise _error(value, key, "has a negative mass", hint)
    return value


def _row(value: Any, key: str) -> Any:
    """Accept any row of numbers: the function knows what they are, how many, and whether they are finite."""
    import numpy as np

    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.zeros(())
    return value if array.ndim == 1 else checks.numbers(value, (None,), key)


def _share(value: Any, key: str) -> Any:
    if checks.number(value, key, least=0.0, example=0.8) > 1:
        raise _error(value, key, "is not between 0 and 1", "give e.g. 0.8")
    return value


def _relative_change(value: Any, key: str) -> Any:
    from parflex.statics.mesh_error import check_convergence_share

    return check_convergence_share(value)


def _name(value: Any, key: str) -> Any:
    if not isinstance(value, str):
        raise _error(value, key, "must be a name", "write it in quotes")
    return value


def _name_or_names(value: Any, key: str) -> Any:
    return value if isinstance(value, str) else checks.names(value, key)


def _lock(value: Any, key: str) -> Any:
    return value if isinstance(value, str) else checks.names(value, key, "'actuators', 'none' or ['leg1.1']")


def _terms(value: Any, key: str) -> Any:
    from parflex.robot.load import checked_terms

    return checked_terms(value, key)


def _all_or_boolean(value: Any, key: str) -> Any:
    return value if isinstance(value, str) and value == "all" else checks.boolean(value, key)


def _path(value: Any, key: str) -> Any:
    if not isinstance(value, (str, Path)):
        raise _error(value, key, "must be a path", "give a file name as a string")
    return value


def _study(value: Any, key: str) -> Any:
    return value if isinstance(value, (str, Path)) else _instance("StudyFile", "give the path of its file")(value, key)


def _callable(value: Any, key: str) -> Any:
    if not callable(value):
        raise _error(value, key, "must be a function", "give a function, or omit it")
    return value


def _times(value: Any, key: str) -> Any:
    try:
        times = [] if isinstance(value, (str, bytes)) else [float(t) for t in value]
        if isinstance(value, (str, bytes)) or not all(map(math.isfinite, times)):
            raise ValueError
    except (TypeError, ValueError):
        raise _error(value, key, "is not a list of times", "give seconds, e.g. [0.1, 0.25]") from None
    return value


def _motion(value: Any, key: str) -> Any:
    if isinstance(value, (list, set, bytes, int, float)):
        raise _error(value, key, "is not a motion", "give the name of one, a file of knots, or a function of time")
    return value


def _axes(value: Any, key: str) -> Any:
    try:
        rows = [tuple(row) for row in value]
    except TypeError:
        rows = [()]
    if isinstance(value, (str, Mapping)) or not rows or any(len(row) != 4 for row in rows):
        raise _error(value, key, "must be a list of axes", "write [('x', -0.1, 0.1, 20)]")
    for name, first, last, count in rows:
        _name(name, key), checks.number(first, key), checks.number(last, key)
        if checks.number(count, key) < 1:
            raise InputError(f"'{name}' has {count} values", key=key, value=count, hint="give at least one")
        checks.integer(count, key, 1)
    return value


def _list_of_poses(value: Any, key: str) -> Any:
    if isinstance(value, (str, Mapping)) or not hasattr(value, "__len__") or not len(value):
        hint = "give at least one: ['home', {'x': 0.1}], or rows of numbers where the coordinates are named"
        raise _error(value, key, "must be a list of poses", hint)
    return value


def _path_of_poses(value: Any, key: str) -> Any:
    """Accept poses by name or coordinates, which are interpolated by name, or rows of numbers."""
    _list_of_poses(value, key)
    if not any(isinstance(pose, (str, Mapping)) for pose in value):
        return checks.numbers(value, (None, None), key)
    for pose in value:
        (_numbers_by_name if _is_array(pose) else _pose)(pose, key)
    return value


def _pose_rows(value: Any, key: str) -> Any:
    """Accept rows of numbers, some of which may be NaN."""
    from parflex.maps.batch_result import pose_rows

    return pose_rows(value, key)


def _columns(value: Any, key: str) -> Any:
    listed = checks.table(value, key, "what parflex.simulate gives")
    checks.numbers(listed.get("t"), (None,), f"{key}: t")
    return value


# -- words ---------------------------------------------------------------------------------------------------------

SI = "m, rad"
WORDS: dict[str, Word] = {
    "robot": Word(
        "Robot",
        "Robot, from `load`.",
        _robot,
        in_functions={"energies": _robot_or_state, "geometry_from_sensors": _robot_or_state},
    ),
    "source": Word("str or Path", "Name of a robot of the catalogue, or path of a robot file.", _path),
    "settings": Word(
        "Mapping[str, Any]", "Values of the file by dotted path, e.g. {'constants.arm': 0.3}.", checks.table
    ),
    "payload": Word(
        "Sequence[float]", "Point mass on the end effector: mass, x, y, z in its axes.", _payload, unit="kg, m"
    ),
    "actuation": Word("str", "Actuation of the file; None: its default.", _name),
    "working_mode": Word("str", "Working (assembly) mode of the file; None: its default.", _name),
    "elements": Word("int", "Elements that every element of every beam is divided into; None: 1.", _integer(1, 100)),
    "rigid": Word(
        "bool",
        "Replace flexible bodies by rigid ones of the same mass, centre of mass and inertia. Springs of joints and "
        "couplings stay. Raises `InputError` where a motor can move only because bodies deform.",
        checks.boolean,
    ),
    "converge": Word(
        "float",
        "Divide the elements of beams until the answer changes by no more than this share of it; None: as they are.",
        _relative_change,
        unit="dimensionless",
    ),
    "pose": Word(
        "Pose", "Name of a pose of the file, coordinates by name, or a configuration; None is home.", _pose, unit=SI
    ),
    "poses": Word(
        "Sequence",
        "Poses one after the other.",
        _path_of_poses,
        unit=SI,
        in_functions={"many_frequencies": _pose_rows, "many_responses": _pose_rows, "sensitivities": _list_of_poses},
    ),
    "coordinates": Word("str or Sequence[str]", "A set of coordinates, or coordinates by name.", _name_or_names),
    "velocity": Word(
        "Mapping[str, float]",
        "Velocities by name; frames in world axes.",
        _numbers_by_name,
        unit="m/s, rad/s",
        in_functions={
            "energies": _array_or_numbers_by_name,
            "inverse_dynamics": _array_or_numbers_by_name,
            "forward_dynamics": _array_or_numbers_by_name,
        },
    ),
    "acceleration": Word(
        "Mapping[str, float]",
        "Accelerations by name; frames in world axes.",
        _numbers_by_name,
        unit="m/s^2, rad/s^2",
        in_functions={"inverse_dynamics": _array_or_numbers_by_name},
    ),
    "q": Word("Array", "All positions, in the order of `robot.coordinates`; with a leading axis a batch.", unit=SI),
    "qd": Word("Array", "Rates, in the order of `robot.rates` or of `robot.independent`.", unit="m/s, rad/s"),
    "qdd": Word("Array", "Accelerations, in the same order.", unit="m/s^2, rad/s^2"),
    "effort": Word(
        "Effort", "Efforts of the motors, by name or in their order; a motor not named has none.", unit="N, N m"
    ),
    "wrench": Word(
        "Wrench",
        "Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz].",
        checks.table,
        unit="N, N m",
    ),
    "wrench_frames": Word("Sequence[str]", "Frames with a wrench as an input of the model.", checks.names),
    "without": Word(
        "Sequence[str]",
        "Terms left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.",
        _terms,
    ),
    "include": Word("Sequence[str]", "The only joint terms that act: friction, motor-inertia, springs.", checks.names),
    "reactions": Word("bool", "Also compute the wrench in every joint and closure.", checks.boolean),
    "form": Word(
        "{'split', 'projected'}", "Theory (16), or theory (15) with all rows projected.", _one_of("split", "projected")
    ),
    "frame": Word("str", "Name of the frame; None is the end effector.", _name),
    "frames": Word("Sequence[str]", "Frames to report; by default the end effector.", checks.names),
    "lock": Word("Lock", "Locked joints: 'actuators', 'none' or names.", _lock),
    "about": Word(
        "{'undeformed', 'equilibrium'}",
        "State of linearisation; None: the equilibrium under loads or prestressed springs, else the undeformed pose.",
    ),
    "load_case": Word(
        "LoadCase",
        "Lock, servos, loads and state of linearisation in one object.",
        _instance("LoadCase", "give e.g. parflex.LoadCase(wrench={'platform': [0, 0, -50]})"),
    ),
    "servo": Word(
        "float or Mapping[str, float]",
        "Stiffness of the servos that hold the motors.",
        _number_or_table,
        unit="N/m, N m/rad",
    ),
    "servo_damping": Word(
        "float or Mapping[str, float]", "Damping of the servos.", _number_or_table, unit="N s/m, N m s/rad"
    ),
    "modes": Word(
        "int",
        "Number of modes; None: six, or all if there are fewer.",
        _integer(1),
        in_functions={"draw_modes": _instance("Modes", "compute them first: parflex.natural_frequencies(robot)")},
    ),
    "mode": Word("int", "Mode, counted from 1, the lowest.", _integer(1)),
    "shapes": Word(
        "bool", "Also compute mode shapes.", checks.boolean, in_functions={"many_frequencies": _all_or_boolean}
    ),
    "designs": Word(
        "Mapping[str, Sequence[float]]", "Numbers of the robot file by dotted path, one for each pose.", checks.table
    ),
    "responses": Word("Sequence[str]", "Responses: 'frequency:K', 'stiffness:FRAME.x', 'deflection:FRAME', ..."),
    "threads": Word("int", "Number of threads; None: one for each core.", _integer(1)),
    "csv": Word("bool", "Write a CSV file too.", checks.boolean),
    "response": Word("str", "Name of a response, a colon, and what it is of.", _name),
    "keys": Word("Sequence[str]", "Keys of the robot file by dotted path, each of one number."),
    "tolerances": Word("Mapping[str, float]", "Standard deviations of keys, in their units.", _numbers_by_name),
    "statistic": Word("str", "'mean', or a quantile from 0 to 1 as text.", _name),
    "function": Word("Callable", "Function of a state and of the text behind the colon.", _callable),
    "unit": Word("str", "Unit of the number.", _name),
    "help": Word("str", "Description, one sentence.", _name),
    "worst": Word("{'smallest', 'largest'}", "Which of many poses counts."),
    "found": Word(
        "Sensitivities",
        "Sensitivities, from `sensitivities`.",
        _instance("Sensitivities", "compute them first: parflex.sensitivities(robot, ...)"),
    ),
    "inputs": Word(
        "Sequence[str]", "JOINT (its effort) or FRAME.fx ... FRAME.mz (force or moment, world axes).", checks.names
    ),
    "outputs": Word(
        "Sequence[str]",
        "Coordinates or FRAME.x ... FRAME.rz; prefix velocity: or acceleration:; in runs reaction.JOINT.fx.",
        checks.names,
    ),
    "over": Word("Sequence[tuple]", "Axes of the grid: (coordinate, first, last, count).", _axes, unit=SI),
    "fixed": Word("Mapping[str, float]", "Coordinates that are the same everywhere.", _numbers_by_name, unit=SI),
    "frequency_map": Word(
        "FrequencyMap",
        "Map, from `frequency_map`.",
        _instance("FrequencyMap", "make one first: parflex.frequency_map(robot, over)"),
    ),
    "out": Word(
        "str or Path",
        "File that keeps results; a later call with it continues there.",
        _path,
        in_functions={"inverse_dynamics": None, "forward_dynamics": None},
    ),
    "path": Word("str or Path", "File; a figure is SVG, PDF or PNG.", _path),
    "loops": Word(
        "str or Path", "YAML file beside a URDF, with its loops and motors: closed_loop, type, name_mot.", _path
    ),
    "end_effector": Word(
        "str",
        "Link or joint of a URDF that is the end effector; None is the only moving link that carries no other.",
        _name,
    ),
    "closed": Word("bool", "Of the closed robot, not of its open tree of legs and platform.", checks.boolean),
    "floating": Word("bool", "The root of a URDF is a free body, not fixed to the ground.", checks.boolean),
    "agreement": Word("float", "MAC from which two shapes are one mode.", _number(above=0.0), unit="dimensionless"),
    "finest": Word("float", "Smallest share of the way between two poses.", _number(above=0.0), unit="dimensionless"),
    "samples": Word("int", "Random states from which ranks are found.", _integer(1)),
    "steps": Word("int", "Largest number of Newton steps.", _integer(1)),
    "sensed": Word("Sequence[str]", "Passive joints with sensors; None: those of the file.", checks.names),
    "values": Word("Sequence[float]", "Measured positions of motors and sensed joints, in this order.", _row, unit=SI),
    "near": Word("Array", "All positions of a pose nearby; None is home.", _array(None), unit=SI),
    "name": Word("str", "Model: inverse, direct, mass-matrix, kinematics, geometry, step, ...", _name),
    "parameters": Word("str or Sequence[str]", "'numbers', 'base' (base parameters as symbols) or names."),
    "independent": Word(
        "Sequence[str]", "Rates that are integrated; by default those that the model chooses.", checks.names
    ),
    "rows": Word("Sequence[int]", "Closure rows that determine the dependent rates; () leaves the choice."),
    "checks": Word("bool", "Also output how far the inputs are from closed, and a condition number.", checks.boolean),
    "operator_limit": Word("int", "Longest program, in operators.", _integer(1)),
    "friction_width": Word(
        "float",
        "Rate over which Coulomb friction changes its sign.",
        _number(least=0.0, example=1e-3),
        unit="rad/s, m/s",
    ),
    "ignore_limits": Word("bool", "Do not check the limits of the robot file.", checks.boolean),
    "stops": Word("bool", "Let the limits of joints act, by the `stop` of the robot file.", checks.boolean),
    "check_width": Word(
        "bool", "Run again with half the friction width, where there is one, and report the difference.", checks.boolean
    ),
    "check_steps": Word("bool", "Run again with half the steps and report the error that follows.", checks.boolean),
    "motion": Word(
        "str, Path, Mapping or callable",
        "Motion: name in the file, motion file, table, table of knots, or function of time.",
        _motion,
        unit=SI,
    ),
    "plan": Word(
        "Trajectory",
        "Time-optimal motion, from `plan_motion`.",
        _instance("Trajectory", "make one first: parflex.plan_motion(robot, motion)"),
    ),
    "time": Word("float", "Duration.", _number(above=0.0, example=1.0), unit="s"),
    "step": Word("float", "Integration step.", _number(above=0.0, example=1e-3), unit="s"),
    "breaks": Word("Sequence[float]", "Times at which functions of time jump or bend.", _times, unit="s"),
    "out_step": Word("float", "Time between rows of the result.", _number(above=0.0, example=1e-3), unit="s"),
    "sample_time": Word("float", "Sample time of the control law.", _number(above=0.0, example=1e-3), unit="s"),
    "controller": Word("Controller", "Controller called at its sample time, e.g. `PD`.", unit="N, N m"),
    "drive": Word(
        "{'motors', 'platform'}",
        "Part that follows the motion.",
        _name,
        in_functions={"export_fmu": _one_of("efforts", "motions")},
    ),
    "start": Word("str or Mapping", "State at the start."),
    "fmi": Word("int", "Version of FMI, 2 or 3.", _integer(2, 3)),
    "kind": Word("str", "Co-simulation (cs) or model exchange (me).", _one_of("cs", "me")),
    "platforms": Word(
        "str",
        "Libraries for this machine (own), or for all platforms by zig (all).",
        _one_of("own", "all"),
    ),
    "method": Word("str", "Integrator: gauss4, gauss6, rk4, dopri5 or generalized-alpha.", _name),
    "tolerance": Word(
        "float",
        "Largest error of positions in a step; angles times the characteristic length.",
        _number(above=0.0, example=1e-3),
        unit="m",
    ),
    "radius": Word(
        "float", "Spectral radius of generalized-alpha: 1 damps nothing, 0 most.", _share, unit="dimensionless"
    ),
    "progress": Word("callable", "Called with the progress at intervals.", _callable),
    "reference": Word("str, Mapping, Reference, Trajectory or callable", "Reference of the end effector.", unit=SI),
    "law": Word("{'pd', 'ctc', 'ctc-task', 'extended'}", "Control law.", _name),
    "model": Word("str", "Name of a model, as in `model`.", _name),
    "plant": Word("Robot", "Robot that moves; None: the robot itself.", _robot),
    "overshoot": Word("float", "Overshoot of a step of the error; 0.1 is 10 %.", unit="dimensionless"),
    "peak_time": Word("float", "Time of the peak of such a step.", unit="s"),
    "Kp": Word("float", "Gain on errors, in place of overshoot and peak time.", unit="1/s^2"),
    "Kv": Word("float", "Gain on error rates; goes with `Kp`.", unit="1/s"),
    "compensate": Word("Sequence[str]", "Joint terms the law knows: motor-inertia, springs, friction.", checks.names),
    "delay": Word("int", "Samples from sensing to effort."),
    "noise": Word("float", "Standard deviation of measured positions.", unit=SI),
    "rate_noise": Word("float", "Standard deviation of measured rates.", unit="m/s, rad/s"),
    "resolution": Word("float", "Resolution of position sensors.", unit=SI),
    "rates": Word("{'measured', 'differences'}", "Source of the rates: sensors, or differences of positions."),
    "effort_limit": Word(
        "float or Mapping[str, float]",
        "Largest effort of all motors, or of each; a pair is a lowest and a highest effort.",
        unit="N, N m",
    ),
    "weights": Word(
        "Mapping[str, float]",
        "Weights of the squared efforts by motor, for robots with more motors than degrees of freedom; default 1.",
        checks.table,
    ),
    "preload": Word(
        "Mapping[str, float]", "Internal efforts by motor, one for each redundant motor.", checks.table, unit="N, N m"
    ),
    "velocity_limit": Word(
        "float or Mapping[str, float]", "Largest velocity of all motors, or of each.", unit="m/s, rad/s"
    ),
    "acceleration_limit": Word(
        "float or Mapping[str, float]", "Largest acceleration of all motors, or of each.", unit="m/s^2, rad/s^2"
    ),
    "seed": Word("int", "Seed of the random numbers.", _integer(0)),
    "study": Word(
        "StudyFile, str or Path",
        "Study, or path of its file.",
        _study,
        in_functions={"draw_study": _instance("Study", "run it first: parflex.run_study(file)")},
    ),
    "jobs": Word("int", "Processes side by side; None: one per core."),
    "cluster": Word(
        "str", "Address of a Dask scheduler whose workers compute, as tcp://HOST:8786; None: this machine."
    ),
    "executor": Word("Executor", "Executor of `concurrent.futures` that computes."),
    "bench": Word("StudySetup", "Compiled laws and plants from an earlier call."),
    "paper": Word("str", "Key of a paper; None: all.", _name),
    "quick": Word("bool", "Leave out simulations, studies and times.", checks.boolean),
    "refined": Word("Modes or Run", "Answer of `natural_frequencies` or `simulate` with `converge`."),
    "run": Word("Run or Mapping[str, Array]", "Columns by name, with time 't' in s.", _columns),
    "measured": Word(
        "Run or Mapping[str, Array]",
        "Measured columns by name, with time 't' in s.",
        _columns,
        in_functions={"update": None},
    ),
    "columns": Word(
        "Sequence[str]",
        "Columns to show; None: end effector, efforts and energies.",
        checks.names,
        in_functions={"identify": None, "calibrate": None, "plan_calibration": None},
    ),
    "data": Word("str, Path, Mapping[str, Array] or Sequence", "Tables of measurements: files, or columns by name."),
    "count": Word("int", "Number of poses.", _integer(1)),
    "loss": Word("{'linear', 'huber'}", "Loss of residuals.", _one_of("linear", "huber")),
    "record": Word("str, Path, Mapping[str, Array] or Sequence", "A record, or several: files, or columns by name."),
    "validate": Word("str, Path, Mapping[str, Array] or Sequence", "Records on which efforts are predicted."),
    "estimator": Word("str", "Method of estimation.", _name),
    "cutoff": Word(
        "float",
        "Cutoff frequency of the low-pass of positions; None: from their spectrum.",
        _number(above=0.0, example=100),
        unit="Hz",
    ),
    "decimate": Word("int", "Samples from one retained sample to the next; None: as the cutoff needs.", _integer(1)),
    "least_speed": Word(
        "float",
        "Speed below which samples of motors with Coulomb friction are left out.",
        _number(least=0.0),
        unit="m/s, rad/s",
    ),
    "friction": Word("str", "Friction model of the motors.", _name),
    "vary": Word("Sequence[str]", "Keys of the robot file by dotted path, each of one number."),
    "hold_out": Word("Sequence[str]", "Measurements predicted but not fitted: 'POSE', 'POSE:MODE' or ':MODE'."),
    "prior": Word(
        "float or Mapping[str, float]",
        "Relative standard deviation before the measurement.",
        unit="dimensionless",
    ),
    "harmonics": Word("int", "Harmonics of a Fourier series.", _integer(2, 50)),
    "workspace": Word(
        "Mapping[str, Sequence[float]]",
        "Lowest and highest place of the end effector by direction.",
        checks.table,
        unit="m",
    ),
    "distance": Word(
        "float",
        "Smallest distance to singular poses: 1 at home, 0 at a singular pose.",
        _number(least=0.0, example=0.3),
        unit="dimensionless",
    ),
    "starts": Word("int", "Number of random starts.", _integer(1, 1000)),
    "keep_spikes": Word("bool", "Do not repair isolated outliers.", checks.boolean),
    "keep": Word(
        "Sequence[str] | str",
        "Joints, elements and couplings whose springs and dampers keep the values of the file.",
        checks.names_or_all,
    ),
    "physical": Word(
        "bool", "Restrict the parameters to physically consistent bodies; needs clarabel.", checks.boolean
    ),
    "instant": Word(
        "float", "Time at which the beam is drawn; None: that of the largest value.", _number(example=0.5), unit="s"
    ),
    "title": Word("str", "Title of the figure.", _name),
    "width": Word("str", "Width of the figure: 'column' or 'text' of a page of two columns.", _name),
    "natural": Word("Array", "Natural frequencies, drawn as thin lines.", unit="Hz"),
    "highest": Word("float", "Highest frequency drawn.", _number(above=0.0), unit="Hz"),
    "amplitude": Word(
        "float", "Largest displacement as a share of the robot's size.", _number(above=0.0), unit="dimensionless"
    ),
}
