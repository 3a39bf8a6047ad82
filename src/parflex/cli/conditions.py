"""Options of the verbs that linearise or load a robot: pose, elements, how the motors are held, what acts."""

from __future__ import annotations

from typing import Any

import click

from parflex.cli.input import (
    Command,
    assignments,
    numbers,
    open_robot,
    read_pose_option,
    read_wrenches,
    without_option,
    words_of,
    wrench_option,
)
from parflex.cli.spare_options import preload_options, read_spare
from parflex.errors import InputError


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


def linear_model_of(robot: str, options: dict[str, Any]) -> tuple[Any, str]:
    """The linear model that the options ask for, and what it is about."""
    from parflex.statics.linear_model import linear_model

    loaded, given = read_conditions(robot, options, felt=False)
    model = linear_model(loaded, **given)
    return model, model.about


def read_conditions(robot: str, options: dict[str, Any], felt: bool = True) -> tuple[Any, dict[str, Any]]:
    """The robot and the arguments of the equivalent Python calls.

    `felt` is false where loads about the undeformed pose would change nothing.
    """
    from parflex.statics.linear_model import state_about

    words = dict(options)
    lock = words.pop("lock")
    given: dict[str, Any] = {
        "pose": read_pose_option(words.pop("pose")),
        "lock": lock if lock in ("actuators", "none") else [name.strip() for name in lock.split(",")],
        "about": words.pop("about"),
        "servo": number_or_table(words.pop("servo"), "servo"),
        "servo_damping": number_or_table(words.pop("servo_damping"), "servo-damping"),
        "wrench": read_wrenches(words.pop("wrench")),
        "without": words_of(words.pop("without")),
    }
    given |= read_spare(words)
    effort = words.pop("effort")
    given["effort"] = None if effort is None else assignments(effort, "effort")
    preload = given.get("preload") or given.get("weights")
    state_about(given["about"], given["wrench"], given["effort"], felt, preload)  # refused before a robot is read
    return open_robot(robot, **words), given


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
