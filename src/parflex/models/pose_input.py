"""Reading poses and motions that people write: names of joints, `x y z`, quaternions, rotation vectors, degrees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parflex.closure.targets import FrameTarget, Target
from parflex.errors import InputError, did_you_mean
from parflex.recursion import pose
from parflex.spatial import quaternion_matrix, rotation_about, rotation_from_vector, vector_from_rotation, vector_quaternion
from parflex.tree import Link, Tree

Array = np.ndarray
POSITION = ("x", "y", "z")
QUATERNION = ("qw", "qx", "qy", "qz")
VECTOR = ("rx", "ry", "rz")
COMPONENTS = (*POSITION, *QUATERNION, *VECTOR, "theta")
ANGLES = (*VECTOR, "theta")


def read_pose(tree: Tree, given: Mapping[str, float], key: str, file: str | None) -> Target:
    """The target that a table of coordinates asks for."""
    values: dict[int, float] = {}
    fixed: set[int] = set()
    frames: dict[str, dict[str, float]] = {}
    for word, value in given.items():
        name, number = _degrees(word, value, key, file)
        joint = joint_named(tree, name)
        if joint is not None:
            values[joint.q.start] = number
            fixed.add(joint.v.start)
            continue
        frame, component = split_frame(tree, name)
        if frame is None:
            raise InputError(
                f"'{word}' is neither a joint nor a coordinate of a frame",
                key=key,
                file=file,
                value=word,
                hint=did_you_mean(name, pose_words(tree)),
            )
        frames.setdefault(frame, {})[component] = number
    targets = []
    for frame, parts in frames.items():
        targets += _place_frame(tree, frame, parts, key, file, values, fixed)
    return Target(values, frozenset(fixed), tuple(targets))


def pose_words(tree: Tree) -> list[str]:
    """Words that a pose may use."""
    ends = ["x", "y", "theta"] if tree.planar else [*POSITION, *QUATERNION, *VECTOR]
    return [link.name for link in tree.links if link.joint.kind in ("revolute", "prismatic")] + ends


def joint_named(tree: Tree, name: str) -> Link | None:
    """The joint with one axis of this name; `q` may stand in front of it."""
    for candidate in (name, name[1:] if name.startswith("q") else name):
        for link in tree.links:
            if link.name == candidate and link.joint.kind in ("revolute", "prismatic"):
                return link
    return None


def split_frame(tree: Tree, name: str) -> tuple[str | None, str]:
    """Frame and component of `x` (the end effector's) or `tip.x`."""
    if name in COMPONENTS:
        return tree.end_effector, name
    frame, _, component = name.rpartition(".")
    if component in COMPONENTS and frame in tree.places:
        return frame, component
    return None, ""


def _degrees(word: str, value: Any, key: str, file: str | None) -> tuple[str, float]:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
        raise InputError(f"'{word}' needs a finite number", key=key, file=file, value=value, hint="write e.g. x=0.1")
    if word.endswith("_deg"):
        return word.removesuffix("_deg"), float(np.radians(value))
    return word, float(value)


def _place_frame(
    tree: Tree,
    frame: str,
    parts: dict[str, float],
    key: str,
    file: str | None,
    values: dict[int, float],
    fixed: set[int],
) -> list[FrameTarget]:
    """Give the coordinates outright if the frame is a free body on the ground, else place it by rows."""
    place = tree.places[frame]
    rotation = _rotation(tree, frame, parts, key, file)
    position = {axis: parts[word] for axis, word in enumerate(POSITION) if word in parts}
    if tree.planar and 2 in position:
        raise InputError("a planar robot has no z", key=key, file=file, value="z", hint="give x, y and theta")
    link = tree.links[place.link] if place.link >= 0 else None
    if link is None:
        raise InputError(f"'{frame}' is fixed to the base", key=key, file=file, value=frame, hint="place a moving frame")
    own = link.name == frame
    if own and link.joint.kind == "spherical" and rotation is not None and not position:
        values.update(zip(range(link.q.start, link.q.stop), _quaternion(parts), strict=True))
        fixed.update(range(link.v.start, link.v.stop))
        return []
    outright = own and link.parent < 0 and np.array_equal(link.rotation, np.eye(3)) and not link.position.any()
    if outright and link.joint.kind in ("free", "planar"):
        axes = 2 if tree.planar else 3
        if len(position) == axes:
            values.update({link.q.start + axis: value for axis, value in position.items()})
            fixed.update(range(link.v.start, link.v.start + axes))
            position = {}
        if rotation is not None:
            turn = [parts["theta"]] if tree.planar else _quaternion(parts)
            values.update({link.q.start + axes + i: value for i, value in enumerate(turn)})
            fixed.update(range(link.v.start + axes, link.v.stop))
            rotation = None
    if not position and rotation is None:
        return []
    return [FrameTarget(frame, place, position, rotation)]


def _quaternion(parts: dict[str, float]) -> Array:
    if any(word in parts for word in QUATERNION):
        quaternion = np.array([parts.get(word, 0.0) for word in QUATERNION])
        return quaternion / np.linalg.norm(quaternion)
    return vector_quaternion([parts.get(word, 0.0) for word in VECTOR])


def _rotation(tree: Tree, frame: str, parts: dict[str, float], key: str, file: str | None) -> Array | None:
    """The rotation matrix that is asked for, or None. A part of a rotation vector means the whole of it."""
    forms = [form for form in (QUATERNION, VECTOR, ("theta",)) if any(word in parts for word in form)]
    if not forms:
        return None
    if len(forms) > 1:
        raise InputError(
            f"the rotation of '{frame}' is given twice", key=key, file=file, value=frame, hint="use one form of it"
        )
    if (forms[0] == ("theta",)) != tree.planar:
        mend = "give theta" if tree.planar else "give qw, qx, qy, qz or rx, ry, rz"
        raise InputError("this rotation does not fit the robot", key=key, file=file, value=frame, hint=mend)
    if tree.planar:
        return rotation_about(2, parts["theta"])
    if forms[0] == QUATERNION:
        length = np.linalg.norm([parts.get(word, 0.0) for word in QUATERNION])
        if abs(length - 1) > 1e-3:
            raise InputError(
                f"the quaternion of '{frame}' has length {length:.4g}", key=key, file=file, value=frame, hint="make it 1"
            )
    return quaternion_matrix(_quaternion(parts))


def whole_end_effector(tree: Tree, actuated: tuple[int, ...], target: Target, q: Array) -> Target | None:
    """The target with what it leaves open about the same body, or about the motors, kept as it is at `q`.

    None if nothing is open. A pose `x=0.1` of a robot with six freedoms means: only x changes.
    """
    values, fixed, frames = dict(target.values), set(target.fixed), []
    given_links = {tree.link_of_rate[k] for k in target.fixed} | {frame.place.link for frame in target.frames}
    for link in given_links:
        joint = tree.links[link].joint
        if joint.kind in ("free", "planar"):
            start, stop = tree.links[link].v.start, tree.links[link].v.stop
            fixed.update(range(start, stop))
    at = pose(tree, q)
    for frame in target.frames:
        rotation, position = at.of(frame.place)
        axes = (0, 1) if tree.planar else (0, 1, 2)
        whole = {axis: frame.position.get(axis, float(position[axis])) for axis in axes}
        link = tree.links[frame.place.link]
        if link.name == frame.name and link.joint.kind in ("free", "planar") and link.parent < 0:
            # positions of a free body in the world are its coordinates if it is mounted without offset
            values.update({link.q.start + axis: value for axis, value in whole.items()})
        elif link.joint.kind in ("free", "planar"):
            fixed -= set(range(link.v.start, link.v.stop))
            frames.append(FrameTarget(frame.name, frame.place, whole, frame.rotation if frame.rotation is not None else rotation))
        else:
            frames.append(FrameTarget(frame.name, frame.place, whole, frame.rotation))
    if not target.frames and not any(tree.links[j].joint.kind in ("free", "planar") for j in given_links):
        fixed.update(actuated)
    if fixed == set(target.fixed) and [f.size for f in frames] == [f.size for f in target.frames]:
        return None
    return Target(values, frozenset(fixed), tuple(frames))


def read_motion(tree: Tree, given: Mapping[str, float], key: str) -> tuple[dict[int, float], dict[str, dict[int, float]]]:
    """Rates of joints by number, and of frames: world components 0..2 of velocity and 3..5 of angular velocity."""
    joints: dict[int, float] = {}
    frames: dict[str, dict[int, float]] = {}
    twist = {"x": 0, "y": 1, "z": 2, "rx": 3, "ry": 4, "rz": 5, "theta": 5}
    twist |= {"vx": 0, "vy": 1, "vz": 2, "wx": 3, "wy": 4, "wz": 5, "ax": 0, "ay": 1, "az": 2}
    for word, value in given.items():
        name, number = _degrees(word, value, key, None)
        joint = joint_named(tree, name)
        if joint is not None:
            joints[joint.v.start] = number
            continue
        frame, _, component = name.rpartition(".")
        frame = frame or tree.end_effector
        if component not in twist or frame not in tree.places:
            raise InputError(
                f"'{word}' is neither a joint nor a component of a frame's motion",
                key=key,
                value=word,
                hint=did_you_mean(name, [*pose_words(tree)]),
            )
        if tree.planar and twist[component] in (2, 3, 4):
            raise InputError(f"a planar robot cannot move along '{word}'", key=key, value=word, hint="use x, y, theta")
        frames.setdefault(frame, {})[twist[component]] = number
    return joints, frames


def pose_components(tree: Tree, rotation: Array, position: Array) -> dict[str, float]:
    """A frame's pose in the words of the file."""
    if tree.planar:
        theta = float(np.arctan2(rotation[1, 0], rotation[0, 0]))
        return {"x": float(position[0]), "y": float(position[1]), "theta": theta}
    vector = vector_from_rotation(rotation)
    return dict(zip((*POSITION, *VECTOR), (float(v) for v in (*position, *vector)), strict=True))


__all__ = ["pose_components", "read_motion", "read_pose", "rotation_from_vector", "whole_end_effector"]
