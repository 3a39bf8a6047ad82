"""What people type: options that every verb has, poses, motions, efforts, wrenches and state files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from parflex.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from parflex.models.robot import Robot

Command = TypeVar("Command", bound=Callable[..., Any])
STATE_WORDS = ("pose", "velocity", "acceleration", "effort", "wrench")


def robot_options(command: Command) -> Command:
    """ROBOT and the options that every verb about a robot has."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."),
        click.option("--working-mode", metavar="NAME", help="Working (assembly) mode of the file."),
        click.option("--actuation", metavar="NAME", help="Actuation of the file."),
        click.option("--payload", metavar="MASS,X,Y,Z", help="Point mass on the end effector, in its axes."),
        click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set a value of the file, e.g. constants.arm=0.3."),
        click.argument("robot", metavar="ROBOT"),
    ):
        command = option(command)
    return command


def state_options(command: Command) -> Command:
    """Pose and motion."""
    for option in (
        click.option("--state", "state_file", metavar="FILE.json", help="Pose and motion from a file with the same words."),
        click.option("--wrench", metavar="FRAME=FX,FY,FZ,MX,MY,MZ", multiple=True, help="External wrench on a frame, world axes."),
        click.option("--without", metavar="LIST", default="", help="Leave out: friction, motor-inertia, springs, gravity."),
        click.option("--velocity", metavar="KEY=VALUE,...", help="Velocities in the same words; frames in world axes."),
        click.option("--pose", "pose", metavar="NAME|KEY=VALUE,...", help="Pose of the file, or coordinates: x=0.1,z=0.9,rz=0.2."),
    ):
        command = option(command)
    return command


def open_robot(
    robot: str, settings: tuple[str, ...], payload: str | None, actuation: str | None, working_mode: str | None
) -> Robot:
    """Load the robot of a command line."""
    from parflex.description.source import parse_setting
    from parflex.models.robot import load

    return load(
        robot,
        settings=dict(parse_setting(setting) for setting in settings),
        payload=None if payload is None else numbers(payload, "payload"),
        actuation=actuation,
        working_mode=working_mode,
    )


def numbers(text: str, key: str) -> list[float]:
    """`1,2,3` as numbers; each may be an expression."""
    return [_number(part, text, key) for part in text.split(",")]


def _number(text: str, whole: str, key: str) -> float:
    from parflex.description.expressions import evaluate
    from parflex.errors import RobotFileError

    try:
        return evaluate(text, {})
    except RobotFileError as error:
        raise InputError(f"'{text}' in '{whole}' is not a number", key=key, value=whole, hint=error.hint) from None


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
    """`FRAME=FX,FY,FZ` as a table."""
    table: dict[str, list[float]] = {}
    for text in texts:
        frame, equals, values = text.partition("=")
        if not equals:
            raise InputError(f"'{text}' is not FRAME=FX,FY,FZ", key="wrench", value=text, hint="write platform=0,0,-100")
        table[frame.strip()] = numbers(values, "wrench")
        if len(table[frame.strip()]) not in (3, 6):
            raise InputError(f"'{text}' has not three or six numbers", key="wrench", value=text, hint="give fx,fy,fz,mx,my,mz")
    return table


def read_state(
    state_file: str | None, wrench: tuple[str, ...], without: str, **texts: str | None
) -> dict[str, Any]:
    """Pose, motion, efforts and wrenches from the options, on top of those of the state file."""
    state = _state_file(state_file) if state_file else {}
    for word, text in texts.items():
        if text is not None:
            state[word] = read_pose_option(text) if word == "pose" else assignments(text, word)
    state["wrench"] = {**state.get("wrench", {}), **read_wrenches(wrench)}
    state["without"] = [part.strip() for part in without.split(",") if part.strip()]
    return state


def _state_file(path: str) -> dict[str, Any]:
    try:
        state = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", file=path, key="state", hint="check the path") from None
    except (ValueError, RecursionError):
        raise InputError("is not JSON", file=path, key="state", hint='write {"pose": {"x": 0.1}, ...}') from None
    if not isinstance(state, dict):
        raise InputError("is not a JSON object", file=path, key="state", hint='write {"pose": {"x": 0.1}, ...}')
    for word, value in state.items():
        if word not in STATE_WORDS:
            raise InputError(f"unknown key '{word}'", file=path, key=word, hint=did_you_mean(word, STATE_WORDS))
        if not isinstance(value, dict) and not (word == "pose" and isinstance(value, str)):
            raise InputError(f"'{word}' is to be a table", file=path, key=word, value=value, hint="write names and values")
    return state
