"""How far two runs of a robot with different elements are apart, relative to what its beams do.

Positions and turns of the recorded frames are measured against the largest deflection and turn of a beam's tip: against
the path of the robot, which its motors prescribe, any number of elements would do. Efforts, and what `outputs` asks
for, are measured against the largest value of their kind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import numpy as np

from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.simulation.run_checks import turned_apart
from parflex.spatial.rotations import ORIENTATION
from parflex.statics.mesh_error import beam_links

Array = np.ndarray
ROWS = 200  # of a run in which deflections are looked for
ROUNDING = 1e-10  # of the size of the robot, or of a turn by 1: less is no deflection
QUANTITY = re.compile(r"\.(\w+)(@[0-9.eE+-]+)?$")  # of a column, with the place that it may have behind it
KINDS = {
    "force": r"N|V[yz]|f[xyz]",
    "moment": r"T|M[yz]|m[xyz]",
    "deflection": r"(chord|tangent)_[yz]",
    "position": r"[xyz]",
    "turn": r"theta|orientation_[wxyz]",
    "velocity": r"(local_)?v[xyz]",
    "angular velocity": r"(local_|sensor_)?w[xyz]",
    "acceleration": r"(local_)?a[xyz]",
    "angular acceleration": r"(local_)?al[xyz]",
    "acceleration of sensors": r"sensor_a[xyz]",  # with gravity, beside which others are small
}


def largest_deflection(robot: Robot, columns: Mapping[str, Array]) -> tuple[float, float]:
    """How far (m, rad) the tip of a beam goes from where its root, undeformed, would have it; the largest of a run."""
    q = np.stack([columns[f"q.{name}"] for name in robot.tree.position_names], axis=1)
    chosen = np.unique(np.linspace(0, len(q) - 1, min(ROWS, len(q))).astype(int))
    tree, moved, turned = robot.tree, 0.0, 0.0
    ends = {link.parent: j for j, link in enumerate(tree.links) if link.node is not None}
    beams = [
        (links[0], ends[links[-1]], sum(tree.links[j].body.nodes["tip"].r0 for j in links))
        for links in beam_links(robot).values()
    ]
    for row in q[chosen]:
        at = pose(tree, row)
        for root, tip, rest in beams:
            R = at.rotation[root]
            moved = max(moved, float(np.linalg.norm(R.T @ (at.position[tip] - at.position[root]) - rest)))
            turn = np.clip((np.trace(R.T @ at.rotation[tip]) - 1) / 2, -1.0, 1.0)
            turned = max(turned, float(np.arccos(turn)))
    length = tree.length
    return max(moved, ROUNDING * length), max(turned, moved / length, ROUNDING)


def changes(
    robot: Robot, columns: Mapping[str, Array], before: Mapping[str, Array], outputs: Collection[str] = ()
) -> dict[str, float]:
    """Relative changes by kind, a quantity with its unit: position, turn, effort, and those of what `outputs` names."""
    rows = min(len(columns["t"]), len(before["t"]))
    moved, turned = largest_deflection(robot, columns)
    found: dict[str, float] = {}
    for frame in _frames(columns):
        way = [np.abs(columns[name][:rows] - before[name][:rows]).max() for name in _places(columns, frame)]
        found["position"] = max(found.get("position", 0.0), float(max(way)) / moved)
        turn = turned_apart(columns, before, frame, rows) / turned
        found["turn"] = max(found.get("turn", 0.0), turn)
    kinds: dict[str, list[str]] = {}
    for name in columns:
        kind = _kind(robot, name, outputs)
        if kind and name in before:
            kinds.setdefault(kind, []).append(name)
    for kind, names in kinds.items():
        size = max(float(np.nanmax(np.abs(columns[name]), initial=0.0)) for name in names)
        apart = max(float(np.nanmax(np.abs(columns[n][:rows] - before[n][:rows]), initial=0.0)) for n in names)
        size = {"deflection": max(size, moved), "position": moved, "turn": turned}.get(kind, size)
        found[kind] = max(found.get(kind, 0.0), apart / size if size > 0 else 0.0)
    return found


def _frames(columns: Mapping[str, Array]) -> list[str]:
    """Frames whose pose a run has."""
    names = [name.removesuffix(".x") for name in columns if name.endswith(".x")]
    return [name for name in names if f"{name}.theta" in columns or f"{name}.{ORIENTATION[0]}" in columns]


def _places(columns: Mapping[str, Array], frame: str) -> list[str]:
    return [f"{frame}.{axis}" for axis in "xyz" if f"{frame}.{axis}" in columns]


def _kind(robot: Robot, name: str, outputs: Collection[str]) -> str | None:
    """What a column is compared with; None where it is no part of the answer."""
    if name.startswith("effort."):
        link = robot.tree.links[robot.tree.link_of_rate[robot.tree.rate_names.index(name.removeprefix("effort."))]]
        return "force of motors" if link.joint.unit == "m" else "moment of motors"
    if not any(name == word or name.startswith((f"{word}.", f"{word}@")) for word in outputs):
        return None
    return quantity_of(name)


def quantity_of(name: str) -> str:
    """What a column is, with others that are measured against the largest of them."""
    found = QUANTITY.search(name)
    label = found[1] if found else name
    return next((kind for kind, words in KINDS.items() if re.fullmatch(words, label)), label)
