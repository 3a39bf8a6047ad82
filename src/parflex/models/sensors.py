"""Sensors in passive joints: which rates they measure beside those of the motors."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from parflex.errors import InputError, did_you_mean
from parflex.robotfile import schema
from parflex.tree.tree import Tree

TWO_AXES = ("universal", "cylindrical")


def marked_rates(description: schema.RobotFile, tree: Tree, moved: Collection[int]) -> tuple[int, ...]:
    """Rates that the file marks as sensed, without those that the actuation moves or locks."""
    names: list[str] = []
    for frame in description.frame:
        marks = frame.sensed if isinstance(frame.sensed, tuple) else (frame.sensed,) * 2
        axes = (f"{frame.name}.1", f"{frame.name}.2") if frame.joint in TWO_AXES else (frame.name,)
        names += [axis for axis, mark in zip(axes, marks, strict=False) if mark]
    rates = [tree.links[tree.number(name)].v.start for name in names]
    return tuple(k for k in rates if k not in moved)


def sensed_rates(
    tree: Tree, joints: Sequence[str], actuated: Collection[int], locked: Collection[int]
) -> tuple[int, ...]:
    """Rates of passive joints by name; an actuated or locked joint needs no further sensor."""
    known = {link.name: link.v.start for link in tree.links if link.joint.one_axis}
    chosen: list[int] = []
    for name in [joints] if isinstance(joints, str) else joints:
        if name not in known:
            raise InputError(
                f"there is no joint '{name}' with one axis", key="sensors", value=name, hint=did_you_mean(name, known)
            )
        if known[name] in actuated or known[name] in locked or known[name] in chosen:
            why = (
                "has a motor"
                if known[name] in actuated
                else "is locked"
                if known[name] in locked
                else "is listed twice"
            )
            raise InputError(
                f"the joint '{name}' {why}", key="sensors", value=name, hint="list passive joints, each once"
            )
        chosen.append(known[name])
    return tuple(chosen)
