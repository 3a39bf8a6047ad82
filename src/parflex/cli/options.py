"""Options and their values: poses, efforts, wrenches, conditions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from parflex.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from parflex.robot.robot import Robot
    from parflex.statics.load_case import LoadCase

Command = TypeVar("Command", bound=Callable[..., Any])

STATE_WORDS = ("pose", "velocity", "acceleration", "effort", "wrench")


def complete_robot(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Robots of the catalogue; files where none begins so."""
    from parflex.robotfile.read import catalogue_names

    names = [name for name in catalogue_names() if name.startswith(incomplete)]
    return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]


def robot_options(command: Command) -> Command:
    """ROBOT and the options that every verb about a robot has."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print a single JSON object."),
        click.option("--working-mode", metavar="NAME", help="Working (assembly) mode, as named in the robot file."),
        click.option("--actuation", metavar="NAME", help="Actuation, as named in the robot file."),
        click.option("--payload", metavar="MASS,X,Y,Z", help="Point mass on the end effector, position in its axes."),
        click.option(
            "--rigid", is_flag=True, help="Replace flexible bodies by rigid ones of the same mass and inertia."
        ),
        click.option(
            "--set",
            "settings",
            metavar="KEY=VALUE",
            multiple=True,
            help="Override a value of the robot file, e.g. constants.arm=0.3.",
        ),
        click.argument("robot", metavar="ROBOT", shell_complete=complete_robot),
    ):
        command = option(command)
    return command


def coordinates_option(command: Command) -> Command:
    """In which coordinates a program takes the motion."""
    return click.option(
        "--coordinates",
        metavar="platform|motors|independent|all",
        help="Inputs of the program; default: those of its form.",
    )(command)


def without_option(command: Command) -> Command:
    """What of the robot file does not act."""
    text = "Terms to leave out: friction, damping, gravity, springs, motor-inertia, axial."
    return click.option("--without", metavar="LIST", default="", help=text)(command)


def limits_option(command: Command) -> Command:
    """Whether limits of the robot file are checked."""
    text = "Do not check the limits of the robot file."
    return click.option("--ignore-limits", is_flag=True, help=text)(command)


def wrench_option(command: Command) -> Command:
    """Add the option of wrenches on frames, `--wrench` or `--load`."""
    text = "Wrench on a frame, N and N m, world axes; the moment may be left out. Planar robots: FX,FY,MZ."
    return click.option("--wrench", "--load", metavar="FRAME=FX,FY,FZ[,MX,MY,MZ]", multiple=True, help=text)(command)


def split_names(text: str) -> list[str]:
    """`a, b` as words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def state_options(command: Command) -> Command:
    """Pose and motion, and whether reactions are requested."""
    for option in (
        click.option("--reactions", is_flag=True, help="Also print the wrench in every joint and closure."),
        click.option(
            "--state", "state_file", metavar="FILE.json", help="Pose and motion from a file with the same keys."
        ),
        wrench_option,
        without_option,
        click.option(
            "--velocity", metavar="KEY=VALUE,...", help="Velocities with the same keys; frames in world axes."
        ),
        click.option(
            "--pose",
            "pose",
            metavar="NAME|KEY=VALUE,...",
            help="A pose of the robot file, or coordinates: x=0.1,z=0.9,rz=0.2.",
        ),
    ):
        command = option(command)
    return command


def open_robot(
    robot: str,
    settings: tuple[str, ...],
    payload: str | None,
    actuation: str | None,
    working_mode: str | None,
    elements: int | None = None,
    rigid: bool = False,
) -> Robot:
    """Load the robot of a command line."""
    from parflex import load
    from parflex.robotfile.read import parse_setting

    return load(
        robot,
        settings=dict(parse_setting(setting) for setting in settings),
        payload=None if payload is None else numbers(payload, "payload"),
        actuation=actuation,
        working_mode=working_mode,
        elements=elements,
        rigid=rigid,
    )


def numbers(text: str, key: str) -> list[float]:
    """`1,2,3` as numbers; each may be an expression."""
    return [_number(part, text, key) for part in text.split(",")]


def _number(text: str, full_text: str, key: str, file: str | None = None) -> float:
    from parflex.errors import RobotFileError
    from parflex.robotfile.values import LARGEST, evaluate

    try:
        number = evaluate(text, {})
    except RobotFileError as error:
        raise InputError(
            f"'{text}' in '{full_text}' is not a number", key=key, value=full_text, file=file, hint=error.hint
        ) from None
    if abs(number) > LARGEST:
        raise InputError(
            f"'{text}' in '{full_text}' is too large", key=key, value=full_text, file=file, hint="check the unit"
        )
    return number


def assignments(text: str, key: str) -> dict[str, float]:
    """`x=0.1,theta_deg=30` as a table."""
    table: dict[str, float] = {}
    for part in text.split(","):
        word, equals, value = part.partition("=")
        if not equals or not word.strip():
            raise InputError(f"'{part}' is not KEY=VALUE", key=key, value=text, hint="write e.g. x=0.1,z=0.9")
        if word.strip() in table:
            raise InputError(f"'{word.strip()}' is given twice", key=key, value=text, hint="keep one of them")
        table[word.strip()] = _number(value.strip(), text, key)
    return table


def read_pose_option(text: str | None) -> str | dict[str, float] | None:
    """A pose by name or by coordinates."""
    return assignments(text, "pose") if text is not None and "=" in text else text


def read_wrenches(texts: tuple[str, ...]) -> dict[str, list[float]]:
    """`FRAME=FX,FY,FZ` as a table; `FRAME:...` means the same."""
    table: dict[str, list[float]] = {}
    for text in texts:
        mark = "=" if "=" in text else ":"
        name, separator, values = text.partition(mark)
        frame = name.strip()
        if not separator or not frame:
            raise InputError(
                f"'{text}' is not FRAME=FX,FY,FZ", key="wrench", value=text, hint="write platform=0,0,-100"
            )
        if frame in table:
            raise InputError(
                f"the wrench on '{frame}' is given twice", key="wrench", value=text, hint="give their sum once"
            )
        table[frame] = _checked_wrench(numbers(values, "wrench"), text)
    return table


def _checked_wrench(values: list[float], text: str, file: str | None = None) -> list[float]:
    if len(values) not in (3, 6):
        raise InputError(
            f"'{text}' does not have three or six numbers",
            key="wrench",
            value=text,
            file=file,
            hint="give fx,fy,fz or fx,fy,fz,mx,my,mz; for a planar robot fx,fy,mz",
        )
    return values


def read_state(state_file: str | None, wrench: tuple[str, ...], without: str, **texts: str | None) -> dict[str, Any]:
    """Pose, motion, efforts and wrenches from the options, on top of those of the state file."""
    state = {} if state_file is None else _state_file(state_file)
    for word, text in texts.items():
        if text is not None:
            state[word] = read_pose_option(text) if word == "pose" else assignments(text, word)
    state["wrench"] = {**state.get("wrench", {}), **read_wrenches(wrench)}
    state["without"] = split_names(without)
    return state


@contextmanager
def state_file_in_errors(state_file: str | None, **options: Any) -> Iterator[None]:
    """Errors about a word that only the state file gave name that file."""
    try:
        yield
    except InputError as error:
        if error.file is None and error.key in STATE_WORDS and not options.get(error.key):
            error.file = state_file
        raise


def _state_file(path: str) -> dict[str, Any]:
    from parflex.io import read_bytes

    form = 'write {"pose": {"x": 0.1}, ...}'
    try:
        state = json.loads(read_bytes(path, "state").decode("utf-8-sig"), object_pairs_hook=_refuse_duplicate_keys)
    except _DuplicateKeyError as error:
        raise InputError(
            f"'{error}' appears twice", file=path, key="state", value=str(error), hint="keep one of them"
        ) from None
    except (ValueError, RecursionError):
        raise InputError("is not JSON", file=path, key="state", value=path, hint=form) from None
    if not isinstance(state, dict):
        raise InputError("is not a JSON object", file=path, key="state", value=path, hint=form)
    return {word: _state_entry(word, value, path) for word, value in state.items()}


class _DuplicateKeyError(Exception):
    """A key that a JSON object has twice."""


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise _DuplicateKeyError(key[:80])
        table[key] = value
    return table


def _state_entry(word: str, value: Any, path: str) -> Any:
    """One word of a state file: a table of numbers, the name of a pose, or wrenches by frame."""
    from parflex.robotfile.values import error_value, short_text

    if word not in STATE_WORDS:
        raise InputError(
            f"unknown key '{word[:80]}'",
            file=path,
            key=word[:80],
            value=error_value(value),
            hint=did_you_mean(word, STATE_WORDS),
        )
    if word == "pose" and isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise InputError(
            f"'{word}' must be a table, not {short_text(value)}",
            file=path,
            key=word,
            value=error_value(value),
            hint="write names and values",
        )
    if word != "wrench":
        return {name: _state_number(entry, word, name, path) for name, entry in value.items()}
    for frame, entries in value.items():
        if not isinstance(entries, list):
            raise InputError(
                f"the wrench on '{frame}' must be a list, not {short_text(entries)}",
                file=path,
                key=word,
                value=error_value(entries),
                hint="write [fx, fy, fz] or [fx, fy, fz, mx, my, mz]",
            )
    return {
        frame: _checked_wrench(
            [_state_number(entry, word, frame, path) for entry in entries], f"{frame}: {short_text(entries)}", path
        )
        for frame, entries in value.items()
    }


def _state_number(value: Any, word: str, name: str, path: str) -> float:
    """A number of a state file; as on the command line, it may be an expression."""
    from parflex.robotfile.values import LARGEST, error_value, short_text

    if isinstance(value, str):
        return _number(value, f"{name}: {value}", word, path)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise InputError(
            f"'{name}' needs a finite number, not {short_text(value)}",
            file=path,
            key=word,
            value=error_value(value),
            hint="write e.g. 0.1",
        )
    return float(value)


def condition_options(command: Command) -> Command:
    """Pose, elements, locked joints, servos, loads and efforts."""
    for option in (
        without_option,
        preload_options,
        click.option(
            "--effort", metavar="JOINT=VALUE,...", help="Efforts of motors that are neither locked nor servo-held."
        ),
        wrench_option,
        click.option(
            "--about",
            metavar="undeformed|equilibrium",
            help="The pose as given, or the equilibrium under gravity and loads; default the equilibrium where a load "
            "or an effort is given or springs are under tension, else the pose.",
        ),
        click.option("--servo-damping", metavar="VALUE|JOINT=VALUE,...", help="Damping of the servos, N s/m or N m s."),
        click.option(
            "--servo", metavar="VALUE|JOINT=VALUE,...", help="Stiffness of servos that hold the motors, N/m or N m."
        ),
        click.option(
            "--lock",
            default="actuators",
            show_default=True,
            metavar="actuators|none|NAMES",
            help="Joints to lock.",
        ),
        click.option("--elements", type=int, metavar="N", help="Split every beam element into N."),
        click.option("--pose", "pose", metavar="NAME|KEY=VALUE,...", help="A pose of the robot file, or coordinates."),
    ):
        command = option(command)
    return command


def linear_model_of(robot: str, options: dict[str, Any], frames: Sequence[str] = ()) -> tuple[Any, str]:
    """The linear model that the options ask for, with nodes at frames, and what it is about."""
    from parflex.statics.linear_model import linear_model_of

    loaded, pose, case = read_load_options(robot, options, loads_matter=False)
    model = linear_model_of(loaded, pose, case, frames)
    return model, model.about


def read_load_options(robot: str, options: dict[str, Any], loads_matter: bool = True) -> tuple[Any, Any, LoadCase]:
    """Return the robot, its pose and the load case; `loads_matter` as in `LoadCase.state`."""
    from parflex.statics.load_case import LoadCase

    words = dict(options)
    pose, lock, effort = read_pose_option(words.pop("pose")), words.pop("lock"), words.pop("effort")
    case = LoadCase(
        lock=lock if lock in ("actuators", "none") else [name.strip() for name in lock.split(",")],
        about=words.pop("about"),
        servo=number_or_table(words.pop("servo"), "servo"),
        servo_damping=number_or_table(words.pop("servo_damping"), "servo-damping"),
        wrench=read_wrenches(words.pop("wrench")),
        effort=None if effort is None else assignments(effort, "effort"),
        without=split_names(words.pop("without")),
        **read_allocation(words),
    )
    case.state(loads_matter)  # refuse contradictions before the robot is read
    return open_robot(robot, **words), pose, case


def number_or_table(text: str | None, key: str) -> Any:
    """`VALUE` for all motors, or `JOINT=VALUE,...`."""
    if text is None:
        return None
    if "=" in text:
        return assignments(text, key)
    values = numbers(text, key)
    if len(values) != 1:
        raise InputError(
            f"'{text}' is not one number", key=key, value=text, hint="give one for all motors, or JOINT=VALUE,..."
        )
    return values[0]


def read_range(text: str) -> list[float]:
    """`a:b:n` as n numbers from a to b; `a:b:n:log` with equal ratios."""
    import numpy as np

    parts = text.split(":")
    log = len(parts) == 4 and parts[3] == "log"
    form = "write a:b:n or a:b:n:log, e.g. 1:100:200"
    if len(parts) != 3 and not log:
        raise InputError(f"'{text}' is not a range", key="frequencies", value=text, hint=form)
    low, high, count = numbers(",".join(parts[:3]), "frequencies")
    if count != int(count) or not 1 <= count <= 100_000 or low < 0 or high < low or (log and low == 0):
        raise InputError(f"'{text}' is not a range of frequencies", key="frequencies", value=text, hint=form)
    spaced = np.geomspace(low, high, int(count)) if log else np.linspace(low, high, int(count))
    return [float(value) for value in spaced]


def allocation_options(command: Command) -> Command:
    """Weights, preload and limits of the efforts."""
    return preload_options(
        click.option(
            "--effort-limit",
            metavar="E|JOINT=E,...",
            help="Effort limit of all motors, or of each; JOINT=LOW:HIGH for cables, either may be left out.",
        )(command)
    )


def preload_options(command: Command) -> Command:
    """Weights and preload."""
    for option in (
        click.option(
            "--preload",
            metavar="JOINT=E,...",
            help="Internal efforts, N or N m, of one motor for each that is spare.",
        ),
        click.option(
            "--weights",
            metavar="JOINT=W,...",
            help="Weights of the squared efforts where motors are more than freedoms; default 1.",
        ),
    ):
        command = option(command)
    return command


def read_allocation(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the equivalent Python call, taken out of the options; none where none is given."""
    allocation: dict[str, Any] = {}
    for key in ("weights", "preload"):
        text = options.pop(key, None)
        if text is not None:
            allocation[key] = assignments(text, key)
    text = options.pop("effort_limit", None)
    if text is not None:
        allocation["effort_limit"] = read_effort_limit(text)
    return allocation


def read_effort_limit(text: str) -> Any:
    """`E` for all motors, or `JOINT=E,...` with `LOW:HIGH` for a pair of limits."""
    if not text.strip():
        raise InputError(
            "the effort limit is empty", key="effort-limit", value=text, hint="give one for all motors, or JOINT=E,..."
        )
    if "=" not in text:
        return _limit(text, text)
    table: dict[str, Any] = {}
    for part in text.split(","):
        word, equals, value = part.partition("=")
        if not equals or not word.strip():
            raise InputError(f"'{part}' is not JOINT=E", key="effort-limit", value=text, hint="write e.g. leg1.1=20")
        if word.strip() in table:
            raise InputError(
                f"'{word.strip()}' is given twice", key="effort-limit", value=text, hint="keep one of them"
            )
        table[word.strip()] = _limit(value, text)
    return table


def _limit(value: str, text: str) -> Any:
    ends = value.split(":")
    if len(ends) > 2:
        raise InputError(
            f"'{value}' is not one limit, nor LOW:HIGH", key="effort-limit", value=text, hint="write e.g. leg1.1=5:300"
        )
    bounds = [numbers(end, "effort-limit") if end.strip() else [None] for end in ends]
    if any(len(entry) != 1 for entry in bounds):
        raise InputError(
            f"'{text}' is not one number",
            key="effort-limit",
            value=text,
            hint="give one for all motors, or JOINT=E,...",
        )
    return bounds[0][0] if len(ends) == 1 else [entry[0] for entry in bounds]
