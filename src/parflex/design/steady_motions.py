"""Motions that stay fixed while numbers of the robot change; derivatives of other motions are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.closure.targets import Target
from parflex.design.design_state import DesignState, pose_conditions, pose_slopes
from parflex.errors import InputError
from parflex.robot.configuration import Configuration
from parflex.robot.motor_values import by_motor
from parflex.robot.robot import Robot

Array = np.ndarray
STAYS = 1e-7  # of the robot's length per relative change of a key: rounding of slopes of positions
INDEPENDENT = 1e-8  # of the largest singular value


def start_pose(robot: Robot, table: Any) -> dict[str, float]:
    """What a motion of motors asks of its start; home where that is nothing."""
    given = dict(table.start)
    if table.joints:
        names = robot.actuated_names
        given |= {names[k]: value for k, value in by_motor(names, table.joints[0], "motion", "position").items()}
    return given


def refuse_without_slopes(state: DesignState, name: str, response: str) -> None:
    """Refuse a motion that changes with the keys in a way that is not followed."""
    table = state.robot.description.motions[name]
    key = _key_in_motion(state.robot, name, state.keys)
    if key is not None:
        raise _refusal(f"the motion '{name}' itself follows from '{key}'", response, "name another key")
    if table.law_name == "time-optimal":
        raise _refusal(
            f"the time-optimal motion '{name}' takes another time in each design",
            response,
            "name a motion in given time",
        )
    if table.kind not in ("moves", "joints") and table.frame and not _is_end_effector(state.twin, table.frame):
        raise _refusal(
            f"the motion '{name}' is that of '{table.frame}', to which the end effector may move", response,
            "let the end effector go along it",
        )  # fmt: skip
    if table.kind == "joints":
        _check_joints(state, name, response)
    elif table.kind == "poses":
        for pose in table.poses:
            _check_place(state, pose, name, response)
    elif table.kind in ("sines", "chirp") and table.frame:
        _check_place(state, dict(table.start) or None, name, response)
    elif table.along_path:
        _check_place(state, None, name, response, path=True)


def _is_end_effector(twin: Robot, frame: str) -> bool:
    """Whether a frame is where the end effector is, and stays there as keys change: slopes of places are compared."""
    one, two = (twin.tree.places[name] for name in (frame, twin.tree.end_effector))
    if one.link != two.link or one.inner is not two.inner:
        return False
    differences = np.concatenate([np.ravel(one.position - two.position), np.ravel(one.rotation - two.rotation)])
    return not any(map(bool, differences))  # a number with slopes is false where they vanish too


def _check_joints(state: DesignState, name: str, response: str) -> None:
    """Motors that the first position leaves open start where home puts them: those that go on must not."""
    robot = state.robot
    table = robot.description.motions[name]
    given = start_pose(robot, table)
    q = robot.locking(robot.deformations).assemble(given or None)
    moved = pose_slopes(robot, state.twin, q, pose_conditions(robot, given or None), state.keys)[list(robot.actuated)]
    later = {motor for one in table.joints[1:] for motor in by_motor(robot.actuated_names, one, "motion", "position")}
    if any(np.abs(moved[motor]).max(initial=0.0) > STAYS for motor in later):
        raise _refusal(
            f"the motion '{name}' starts where home puts motors, which changes with the keys",
            response, "name all motors in the first of its positions",
        )  # fmt: skip


def _check_place(state: DesignState, given: Any, name: str, response: str, path: bool = False) -> None:
    """Refuse a motion through a pose whose end effector moves with the keys; paths take its turn alone."""
    robot = state.robot
    rigid = robot.locking(robot.deformations)
    here = Configuration(rigid, rigid.assemble(given))
    rows = here.frame_rows(robot.tree.end_effector)
    if path:
        block = rows[:3] @ here.J
        sizes = np.linalg.svd(block, compute_uv=False)
        if (sizes > INDEPENDENT * max(float(sizes[0]), 1e-300)).sum() >= here.J.shape[1]:
            return  # places decide over turns
    asked, stays = (
        pose_slopes(robot, state.twin, here.q, target, state.keys)
        for target in (pose_conditions(robot, given), Target())
    )
    moved = rows @ (asked - stays) / np.repeat([robot.tree.length, 1.0], 3)[:, None]
    if np.abs(moved[3:] if path else moved).max(initial=0.0) > STAYS:
        raise _refusal(
            f"the motion '{name}' goes through a pose that is given by joints, so that it changes with the keys",
            response, "give the pose by the end effector, and turns of a path by 'orientation'",
        )  # fmt: skip


def _key_in_motion(robot: Robot, name: str, keys: Sequence[str]) -> str | None:
    """A key that the table of a motion is computed from, through constants."""
    assert robot.written is not None
    table = robot.written.table
    constants: dict[str, Any] = table.get("constants", {})
    own = [key for key in keys if key == f"motions.{name}" or key.startswith(f"motions.{name}.")]
    if own:
        return own[0]
    left: list[Any] = [table.get("motions", {}).get(name, {})]
    seen: set[str] = set()
    while left:
        part = left.pop()
        if isinstance(part, dict | list):
            left += part.values() if isinstance(part, dict) else part
        elif isinstance(part, str):
            for word in set(re.findall(r"[A-Za-z_]\w*", part)) & set(constants) - seen:
                if f"constants.{word}" in keys:
                    return f"constants.{word}"
                seen.add(word)
                left.append(constants[word])
    return None


def _refusal(what: str, response: str, hint: str) -> InputError:
    return InputError(f"{what}, so that '{response}' has no slopes", key="keys", value=response, hint=hint)
