"""Columns of frames and of places inside beams: motions, what an accelerometer shows, deflections of beams.

`FRAME.vx` and the other words of a frame, `FRAME.sensor_ax`, `BEAM.chord_y@0.5`, `BEAM.tangent_y@0.5`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.forces.sections import beam_chains
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.simulation.columns import AXES, frame_columns, is_tilted
from parflex.simulation.outputs.inner_bending import InnerLoads, inner_bending, inner_loads_of
from parflex.simulation.refining.inner_response import largest_deflection
from parflex.spatial.rotations import ORIENTATION
from parflex.statics.inner_compliance import MISSING, forced_place
from parflex.tree.tree import Tree

Array = np.ndarray
SENSOR = tuple(f"sensor_{kind}{axis}" for kind in "aw" for axis in AXES)
OF_FRAME = (
    *("x", "y", "z", "theta", *ORIENTATION),
    *(f"{local}{kind}{axis}" for kind in ("v", "w", "a", "al") for local in ("", "local_") for axis in AXES),
)
BENT = ("chord_y", "chord_z", "tangent_y", "tangent_z")
BENT_WORD = re.compile(rf"(.+)\.({'|'.join(BENT)}|deflection)@([^@]+)")
HINT = "write e.g. FRAME.sensor_ax, FRAME.vx, BEAM.chord_y@0.5 or BEAM.tangent_y@0.5"


@dataclass(frozen=True, eq=False, repr=False)
class PlaceWord(Record):
    """A column that is asked for: of a frame, or how far a beam is bent at a place, from its chord or its tangent."""

    column: str
    quantity: str
    frames: tuple[str, ...]  # the frame; or root, tip and place of the beam, and where its loads are
    inner: InnerLoads | None = None  # what deflects the element there beside its shapes
    forced: tuple[tuple[str, Array], ...] = ()  # frames with wrenches that do so, too: displacement by each, 3 x 6


def is_place_word(word: str) -> bool:
    """Whether an output is one of a frame or of a place along a beam."""
    last = word.rpartition(".")[2]
    return last in (*OF_FRAME, *SENSOR, "sensor") or BENT_WORD.fullmatch(word) is not None


def read_place_words(robot: Robot, outputs: Sequence[str], wrenches: Sequence[str] = ()) -> list[PlaceWord]:
    """The columns that outputs name, where wrenches act on frames.

    `FRAME.sensor` and `BEAM.deflection@s` stand for all of their kind.
    """
    found: list[PlaceWord] = []
    for word in dict.fromkeys(outputs):
        if is_place_word(word):
            try:
                found += _bent(robot, word, wrenches) if BENT_WORD.fullmatch(word) else _of_frame(robot, word)
            except InputError as error:
                error.key = "outputs"
                raise
    return found


def place_examples(robot: Robot) -> list[str]:
    """Outputs as a robot may have them, for hints."""
    end = robot.tree.end_effector
    beams = [frame.name for frame in robot.description.frame if frame.beam is not None]
    own = [f"{end}.{word}" for word in (*SENSOR, "sensor", *OF_FRAME)]
    return own + [f"{beam}.{word}@0.5" for beam in beams for word in (*BENT, "deflection")]


def _of_frame(robot: Robot, word: str) -> list[PlaceWord]:
    frame, _, quantity = word.rpartition(".")
    frame = frame or robot.tree.end_effector
    planar, turned = robot.tree.planar, pose(robot.tree, robot.home).of(robot.tree.place(frame))[0]
    felt = SENSOR if is_tilted(turned) else _felt_in_plane(robot)
    if quantity == "sensor":
        flat = ("sensor_ax", "sensor_ay", "sensor_wz")
        used = SENSOR if not planar or felt == SENSOR else flat
        return [PlaceWord(f"{frame}.{one}", one, (frame,)) for one in used]
    if planar and quantity in SENSOR and quantity not in felt:
        raise InputError(
            f"'{quantity}' of a planar robot is zero", value=word,
            hint="sensors show sensor_ax, sensor_ay and sensor_wz; sensor_az where gravity acts across the plane",
        )  # fmt: skip
    still = np.zeros((1, 12))
    known = [*frame_columns("", np.zeros((1, 3)), turned[None], still, planar), *(f".{one}" for one in SENSOR)]
    if f".{quantity}" not in known:
        raise InputError(
            f"a frame of a {'planar' if planar else 'spatial'} robot has no '{quantity}'",
            value=word,
            hint=did_you_mean(quantity, [one[1:] for one in known]),
        )
    return [PlaceWord(word, quantity, (frame,))]


def _felt_in_plane(robot: Robot) -> tuple[str, ...]:
    """What sensors on a planar robot show."""
    return ("sensor_ax", "sensor_ay", "sensor_wz", *(["sensor_az"] if robot.tree.gravity[2] else []))


def _bent(robot: Robot, word: str, wrenches: Sequence[str]) -> list[PlaceWord]:
    match = BENT_WORD.fullmatch(word)
    assert match is not None
    beam, quantity, s = match.groups()
    beams = [frame.name for frame in robot.description.frame if frame.beam is not None]
    if beam not in beams:
        raise InputError(f"there is no beam '{beam}'", value=word, hint=did_you_mean(beam, beams))
    if robot.tree.planar and quantity.endswith("_z"):
        raise InputError("a planar robot deflects in its plane alone", value=word, hint=f"use {quantity[:-1]}y")
    frames = (beam, f"{beam}@1", f"{beam}@{s}")
    robot.tree.place(frames[2])
    asked = (
        (quantity,) if quantity in BENT else tuple(one for one in BENT if not (robot.tree.planar and one[-1] == "z"))
    )
    chain = beam_chains(robot).get(beam)
    inner = inner_loads_of(chain, float(s)) if chain is not None else None
    loads = tuple(f"{beam}@{at!r}" for at in inner.shares) if inner else ()
    moved = {frame: forced_place(robot, frame, frames[2]) for frame in wrenches}
    forced = tuple((frame, own) for frame, own in moved.items() if own is not None)
    return [PlaceWord(f"{beam}.{one}@{s}", one, (*frames, *loads), inner, forced) for one in asked]


def frames_of(words: Sequence[PlaceWord]) -> list[str]:
    """Frames whose signals the columns need."""
    return list(dict.fromkeys(frame for word in words for frame in word.frames))


def frames_shown(words: Sequence[PlaceWord]) -> list[str]:
    """Frames of which columns are asked for, not those of deflections."""
    return [word.frames[0] for word in words if word.quantity not in BENT]


def add_places(tree: Tree, words: Sequence[PlaceWord], seen: Mapping[str, Array], columns: dict[str, Array]) -> None:
    """Put the columns into those of a run; gravity is that of the tree."""
    for word in words:
        columns[word.column] = _bending(tree, word, seen) if word.quantity in BENT else _frame_column(tree, word, seen)


def _frame_column(tree: Tree, word: PlaceWord, seen: Mapping[str, Array]) -> Array:
    frame = word.frames[0]
    position, rotation, motion = (seen[f"{frame}.{part}"] for part in ("position", "rotation", "motion"))
    if word.quantity not in SENSOR:
        return frame_columns("", position, rotation, motion, tree.planar)[f".{word.quantity}"]
    turning = word.quantity[-2] == "w"
    felt = motion[:, 3:6] if turning else motion[:, 6:9] - tree.gravity  # an accelerometer at rest shows -g
    return np.einsum("tj,tj->t", rotation[:, :, AXES.index(word.quantity[-1])], felt)


def _bending(tree: Tree, word: PlaceWord, seen: Mapping[str, Array]) -> Array:
    """From the x axis of the root, or from the line between both ends: along y and z of the root, turned to that line.

    The axes turn with that line by the smallest turn.
    """
    root, tip, place = (seen[f"{frame}.position"] for frame in word.frames[:3])
    if word.inner is not None:
        felt = np.stack([seen[f"{frame}.motion"][:, 6:9] for frame in word.frames[3:]]) - tree.gravity
        turns = np.stack([seen[f"{frame}.rotation"] for frame in word.frames[3:]])
        place = place + np.einsum(
            "tij,tj->ti", seen[f"{word.frames[2]}.rotation"], inner_bending(word.inner, turns, felt)
        )
    for frame, moved in word.forced:
        R = seen[f"{word.frames[2]}.rotation"]
        push = np.concatenate([np.einsum("tji,tj->ti", R, seen[f"{frame}.wrench"][:, k : k + 3]) for k in (0, 3)], 1)
        place = place + np.einsum("tij,tj->ti", R, push @ moved.T)
    into = seen[f"{word.frames[0]}.rotation"]
    axis = AXES.index(word.quantity[-1])
    away = np.einsum("tji,tj->ti", into, place - root)
    if word.quantity.startswith("tangent"):
        return away[:, axis]
    chord = np.einsum("tji,tj->ti", into, tip - root)
    chord = chord / np.linalg.norm(chord, axis=1, keepdims=True)
    # the image of the axis e under the turn of x to the chord u is e - (u . e) (x + u) / (1 + u . x)
    share = chord[:, axis] / (1 + chord[:, 0])
    return away[:, axis] - share * (away[:, 0] + np.einsum("ti,ti->t", chord, away))


def pushed_between(
    robot: Robot, seen: Mapping[str, Array], wrenches: Sequence[str], frames: Sequence[str]
) -> list[str]:
    """A sentence where frames that a run shows lack what wrenches between two nodes deflect their element by.

    Nothing is said where that is little beside the largest deflection of the beam.
    """
    lacks: dict[str, float] = {}
    reduced = {j for j, link in enumerate(robot.tree.links) if link.body.reduced is not None}  # told of by itself
    for frame in dict.fromkeys(frames):
        moved = [(loaded, forced_place(robot, loaded, frame)) for loaded in wrenches]
        for loaded, own in moved if robot.tree.places[frame].link not in reduced else ():
            R = seen[f"{loaded}.rotation"] if own is not None else np.zeros(0)
            if own is not None and len(R):
                pushed = seen[f"{loaded}.wrench"].reshape(-1, 2, 3)
                away = np.linalg.norm(np.einsum("tji,tkj->tki", R, pushed).reshape(-1, 6) @ own.T, axis=1)
                lacks[frame] = max(lacks.get(frame, 0.0), float(away.max()))
    for frame in list(lacks):
        if not lacks[frame] > MISSING * largest_deflection(robot, robot.tree.places[frame].link, seen["q"]):
            del lacks[frame]
    worst = max(lacks, key=lambda name: lacks[name], default="")
    if not worst or not lacks[worst] > 0:
        return []
    return [
        f"a load acts between two nodes of a beam: as a frame '{worst}' lacks up to {lacks[worst]:.3g} m of its "
        "deflection there, which BEAM.chord_y@s and BEAM.tangent_y@s have; use elements with a node at the load"
    ]
