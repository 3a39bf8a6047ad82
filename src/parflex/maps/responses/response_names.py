"""Names of responses: what is asked at a pose, of what, in which direction, and in which units it is answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.forces.sections import beam_chains
from parflex.records import Record
from parflex.robot.robot import Robot, file_frame

PLANAR, SPATIAL = ("x", "y", "theta"), ("x", "y", "z", "rx", "ry", "rz")
TURNS = ("rx", "ry", "rz", "theta")
OF_MODES = {
    "frequency": "Hz",
    "damping": "dimensionless",
    "shape": "m, rad",
    "motion": "m, rad",
    "strain": "dimensionless",
}
OF_FRAMES = {
    "stiffness": ("N/m", "N m/rad", "N/m, N, N m/rad"),
    "compliance": ("m/N", "rad/(N m)", "m/N, 1/N, rad/(N m)"),
    "deflection": ("m", "rad", "m, rad"),
}
PLAIN = {"conditioning": "dimensionless", "singularity": "dimensionless", "mass": "kg"}
OF_NAMES = {"effort": "N m", "stress": "Pa"}  # efforts of sliding joints are in N
KINDS = (*OF_MODES, *OF_FRAMES, *PLAIN, *OF_NAMES)
STATIC = ("deflection", "effort", "stress")  # these feel a wrench about the undeformed pose


@dataclass(frozen=True, eq=False, repr=False)
class ResponseName(Record):
    """What is asked: `kind`, then a mode, a frame with or without a direction, a joint or a beam; unit and size."""

    name: str
    kind: str
    mode: int = 0  # from 1
    of: str = ""  # frame, joint or beam
    direction: int | None = None  # of `parts`; None: all of them
    unit: str = ""
    parts: tuple[str, ...] = ()  # names along each axis of an answer

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the answer at one pose."""
        if self.direction is not None or not self.parts:
            return ()
        return (len(self.parts),) * (2 if self.kind in ("stiffness", "compliance") else 1)

    @property
    def columns(self) -> list[str]:
        """Names of the numbers of an answer, as columns of a table."""
        if not self.shape:
            return [self.name]
        if len(self.shape) == 1:
            return [f"{self.name}.{part}" for part in self.parts]
        return [f"{self.name}.{row}.{column}" for row in self.parts for column in self.parts]


def read_responses(robot: Robot, asked: str | Sequence[str], modes: int | None = None) -> tuple[ResponseName, ...]:
    """What is asked in words like 'frequency:1' or 'stiffness:platform.x'; the same twice is refused."""
    words = [asked] if isinstance(asked, str) else list(asked)
    if not words:
        raise InputError("no response is asked for", key="responses", hint="give e.g. 'stiffness:x'")
    found = tuple(read_response(robot, word) for word in words)
    for k, one in enumerate(found):
        if one.name in {other.name for other in found[:k]}:
            raise InputError(f"'{one.name}' is asked for twice", key="responses", value=one.name, hint="keep one")
        if modes is not None and one.mode > modes:
            raise InputError(
                f"'{one.name}' asks for more than {modes} modes", key="responses", value=one.name, hint="raise 'modes'"
            )
    return found


def read_response(robot: Robot, word: object) -> ResponseName:
    """One of them."""
    kind, _, of = word.partition(":") if isinstance(word, str) else ("", "", "")
    if not isinstance(word, str) or kind not in KINDS:
        raise InputError(
            f"'{word}' is not a response",
            key="responses",
            value=str(word),
            hint=f"{did_you_mean(kind, KINDS)}; write e.g. frequency:1 or stiffness:FRAME.x",
        )
    if kind in OF_MODES:
        return _of_mode(robot, word, kind, of)
    if kind in OF_FRAMES:
        return _of_frame(robot, word, kind, of)
    if kind in PLAIN:
        if of:
            raise InputError(f"'{kind}' is of the whole robot", key="responses", value=word, hint=f"write '{kind}'")
        return ResponseName(word, kind, unit=PLAIN[kind])
    return _of_name(robot, word, kind, of)


def _of_mode(robot: Robot, word: str, kind: str, of: str) -> ResponseName:
    if of and (not of.isascii() or not of.isdigit() or int(of) < 1):
        raise InputError(f"'{of}' is not a mode", key="responses", value=word, hint=f"write e.g. '{kind}:1'")
    parts: Sequence[str] = ()
    if kind == "shape":
        parts = SPATIAL
    elif kind == "motion":
        parts = robot.tree.rate_names
    elif kind == "strain":
        parts = straining(robot)
    return ResponseName(word, kind, mode=int(of or 1), unit=OF_MODES[kind], parts=tuple(parts))


def _of_frame(robot: Robot, word: str, kind: str, of: str) -> ResponseName:
    tree = robot.tree
    parts = PLANAR if tree.planar and kind != "deflection" else SPATIAL
    frame, direction = of or tree.end_effector, None
    if not tree.has(frame, "responses"):
        before, _, last = of.rpartition(".")
        last = "rz" if last == "theta" and parts == SPATIAL and tree.planar else last
        if last not in parts:
            tree.place(of)  # says which frames there are
        frame, direction = before or tree.end_effector, parts.index(last)
    tree.place(frame)
    straight, turning, both = OF_FRAMES[kind]
    unit = both if direction is None else turning if parts[direction] in TURNS else straight
    return ResponseName(word, kind, of=frame, direction=direction, unit=unit, parts=parts)


def _of_name(robot: Robot, word: str, kind: str, of: str) -> ResponseName:
    shaped = [name for name, chain in beam_chains(robot).items() if chain.parts.fibres is not None]
    known = robot.actuated_names if kind == "effort" else shaped
    if of not in known:
        what = f"motor '{of}'" if kind == "effort" else f"beam '{of}' with a known shape"
        hint = did_you_mean(of, [str(name) for name in known]) if known else "give the shape of its sections"
        raise InputError(f"there is no {what}", key="responses", value=word, hint=hint)
    sliding = kind == "effort" and robot.tree.links[robot.tree.number(of)].joint.unit == "m"
    return ResponseName(word, kind, of=of, unit="N" if sliding else OF_NAMES[kind])


def straining(robot: Robot) -> list[str]:
    """Frames with a flexible body or a spring, and elements between two points, in the order of the file."""
    tree = robot.tree
    frames = [file_frame(robot, link.name) for link in tree.links if link.elastic_labels or link.terms.stiffness]
    frames += [file_frame(robot, tree.links[spring.numbers[0]].name) for spring in tree.springs]
    return list(dict.fromkeys([*frames, *(one.name for one in tree.elements if one.acts)]))


def spread(values: dict[str, float], parts: Sequence[str]) -> np.ndarray:
    """Numbers by name in the order of `parts`; what is not named is zero."""
    return np.array([values.get(part, 0.0) for part in parts])
