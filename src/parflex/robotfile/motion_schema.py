"""Define the schema of motions in robot files and motion files: the moved frame or joints, and the time law."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BeforeValidator

from parflex.errors import did_you_mean
from parflex.robotfile.values import (
    Axis,
    Coordinates,
    FrameName,
    Name,
    NotNegative,
    Number,
    Numbers,
    Pair,
    Positive,
    Table,
    Vector,
    list_of,
    refuse,
    value_error,
)

Points = Annotated[tuple[Vector, ...], BeforeValidator(list_of("a list of points is", "[[x, y, z], [x, y, z]]"))]
Moves = Annotated[tuple[Coordinates, ...], BeforeValidator(list_of("a list of tables is", '[{ "joint" = 0.1 }]'))]
Poses = Annotated[
    tuple[Name | Coordinates, ...], BeforeValidator(list_of("a list of poses is", '["home", { x = 0.1 }]'))
]
Frequencies = Annotated[tuple[Positive, ...], BeforeValidator(list_of("a list of numbers is", "[1.0, 2.0]"))]
Limit = Number | dict[str, Number | Pair]  # of all motors, or by name; a pair is lowest and highest
KINDS = ("circle", "points", "moves", "poses", "joints", "sines", "chirp")
AT_REST = ("quintic", "septic", "trapezoid", "constant-speed")  # laws of one move that starts and ends at zero velocity
# the first law of a kind is the one that it has where none is given; waves have none
LAWS: dict[str, tuple[str, ...]] = {
    "circle": ("constant-speed", "quintic", "septic", "time-optimal"),
    "points": ("constant-speed", "quintic", "septic", "spline", "blend", "time-optimal"),
    "moves": ("trapezoid", "constant-speed", "quintic", "septic", "time-optimal"),
    "poses": ("quintic", "septic", "constant-speed", "time-optimal"),
    "joints": ("quintic", "septic", "trapezoid", "constant-speed", "spline", "blend", "time-optimal"),
    "sines": ("sines",),
    "chirp": ("chirp",),
}
LIMIT_KEYS = ("effort_limit", "velocity_limit", "acceleration_limit")
# what a law knows beside its kind; times of poses and points, or one duration of each move
LAW_KEYS: dict[str, frozenset[str]] = {
    "quintic": frozenset({"duration", "times", "rest"}),
    "septic": frozenset({"duration", "times", "rest"}),
    "trapezoid": frozenset({"duration", "times", "rest", "ramp"}),
    "constant-speed": frozenset({"duration", "times", "rest", "ramp"}),
    "spline": frozenset({"times"}),
    "blend": frozenset({"times", "blend"}),
    "time-optimal": frozenset({*LIMIT_KEYS, "rest", "smoothing", "end_speeds"}),
    "sines": frozenset({"frequency", "frequencies", "sines", "cosines", "duration", "ramp", "frame"}),
    "chirp": frozenset({"frequencies", "sweep", "duration", "ramp", "frame"}),
}
JOINT_KINDS = ("moves", "joints", "sines", "chirp")  # `start` says where joints begin
WAYPOINTS = ("points", "poses", "joints")
NEEDS = dict.fromkeys(AT_REST, ("duration",)) | {  # what laws cannot do without; laws of one move may have times
    "chirp": ("frequencies", "duration"),
    "spline": ("times",),
    "blend": ("times", "blend"),
}


def _as_list(value: object) -> object:
    """Return one vector as a list of it; leave text unchanged."""
    flat = isinstance(value, list | tuple) and value and not isinstance(value[0], list | tuple)
    return [value] if flat else value


Vectors = Annotated[tuple[Vector, ...], BeforeValidator(_as_list)]
ORIENTATION_KEYS = ("direction", "cone", "orientation")  # of a frame along a path


class Circle(Table):
    """A circle about an axis through its centre, from a point of it, counter-clockwise; endless without `turns`."""

    centre: Vector
    start: Vector
    axis: Axis = (0.0, 0.0, 1.0)
    turns: Number | None = None


class MotionTable(Table):
    """What moves, and how: a path of a frame, `moves` or positions of joints, `poses`, or waves.

    - `circle`: `{ centre, start, axis, turns }`, counter-clockwise about `axis` (default `"z"`) from the point `start`;
      endless without `turns`.
    - `points`: `[[x, y, z], ...]`, straight lines with a stop at every point.
    - `direction`: of the z axis of the frame along a path: `[x, y, z]` for all of it, or one for each of `points`,
      along great circles between them.
    - `cone`: angle of the z axis of the frame to the axis of a circle, leaning outwards, going round with it; not
      together with `direction` or `orientation`.
    - `orientation`: of the whole frame: a rotation vector for all of a path or for each of `points`, with turns about
      one axis between them (slerp); or `"tangent"`, x axis along the path.
    - `poses`: `["home", { x = 0.1, ... }, ...]` of the end effector, reached at rest. It goes straight and turns about
      one axis from pose to pose; a tool with five axes keeps its z axis to that turn, or, where all poses give places
      alone, is left to the [rule for free parts](theory.md#poses-and-paths-that-are-not-fully-specified).
    - `moves`: `[{ "joint" = distance, ... }, ...]`, relative motor moves.
    - `joints`: `[{ "joint" = position, ... }, ...]`, motor positions one after the other; motors not named stay.
    - `sines`, `cosines`: `{ "joint" = [amplitudes], ... }` at the multiples of `frequency`, or at `frequencies` (Hz):
      `start + sum a sin(2 pi f t) + b (cos(2 pi f t) - 1)`. Endless without `duration`.
    - `frequency`, `frequencies`: of sines and cosines, Hz; of a chirp `[first, last]`.
    - `chirp`: `{ "joint" = amplitude, ... }` over `duration`, with `frequencies`.
    - `sweep`: of the frequency of a chirp.
    - `frame`: frame or point on the path, default the end effector; sines and chirps with `frame` move its `x y z`.
    - `law`: [law of time](#motionsname-motions).
    - `speed`: along the path, m/s.
    - `ramp`: s. Waves with a `ramp` are faded in and out by a quintic.
    - `duration`: of each line, move or circle, s.
    - `times`: `[0, 0.5, ...]`, one for each point, pose or position, instead of `duration`.
    - `rest`: pause after each line or move, or at each pose including the first, s.
    - `blend`: time before and after each corner that is cut, s.
    - `start`: initial joint values, as in a pose; default home.
    - `period`: repeat with this period for ever; the motion must end where it began.
    - `effort_limit`, `velocity_limit`, `acceleration_limit`: of `time-optimal`: one number for all motors, or
      `{ "joint" = value, ... }`; efforts also `[lowest, highest]`.
    - `end_speeds`: `[first, last]`, path speeds at both ends, m/s on lines and circles, shares of the path per second
      for moves of joints and poses.
    - `smoothing`: time in which accelerations change, s.
    """

    frame: FrameName | None = None
    circle: Circle | None = None
    points: Points = ()
    speed: Positive | None = None
    direction: Vectors = ()
    cone: Number | None = None
    orientation: Literal["tangent"] | Vectors = ()
    start: Coordinates = {}
    moves: Moves = ()
    joints: Moves = ()
    poses: Poses = ()
    law: Name | None = None
    duration: Positive | None = None
    times: Numbers = ()
    smoothing: NotNegative = 0.0
    ramp: NotNegative = 0.0
    rest: NotNegative = 0.0
    blend: NotNegative = 0.0
    period: Positive | None = None
    sines: dict[str, Numbers] = {}
    cosines: dict[str, Numbers] = {}
    frequency: Positive | None = None
    chirp: Coordinates = {}
    frequencies: Frequencies = ()
    sweep: Literal["linear", "exponential"] = "linear"
    effort_limit: Limit | None = None
    velocity_limit: Limit | None = None
    acceleration_limit: Limit | None = None
    end_speeds: Pair = (0.0, 0.0)

    @property
    def along_path(self) -> bool:
        """Whether a frame follows a path."""
        return self.circle is not None or bool(self.points)

    @property
    def kind(self) -> str:
        """Kind of the motion, by its key."""
        return next(key for key in KINDS if getattr(self, key) or (key == "sines" and self.cosines))

    @property
    def law_name(self) -> str:
        """The time law: the specified one, or the default of the kind."""
        return self.law or LAWS[self.kind][0]

    def check_values(self) -> None:
        """Refuse several kinds of motion, keys without effect, and inconsistent numbers."""
        present_kinds = [key for key in KINDS if getattr(self, key) or (key == "sines" and self.cosines)]
        listed = " and ".join(f"'{kind}'" for kind in present_kinds) or "none"
        kinds = ", ".join(f"'{key}'" for key in KINDS[:-1]) + f" and '{KINDS[-1]}'"
        refuse(len(present_kinds) != 1, f"a motion has one of {kinds}, not {listed}", "keep one", "moves")
        (kind,) = present_kinds
        if self.law is not None:
            hint = did_you_mean(self.law, LAWS[kind])
            refuse(self.law not in LAWS[kind], f"a motion with '{kind}' has no law '{self.law}'", hint, "law", self.law)
        motion = f"a motion with '{kind}'" + (f" and law '{self.law}'" if self.law else "")
        for key in sorted(self.model_fields_set - self._known_keys(kind)):
            raise value_error(f"'{key}' has no effect in {motion}", "remove it", key, getattr(self, key))
        self._check_numbers()
        self._check_needs(kind)
        for first, second in pairwise(sorted(self.model_fields_set & set(ORIENTATION_KEYS))):
            raise value_error(f"'{first}' and '{second}' both set the orientation of the frame", "keep one", second)
        flat = self.cone is not None and self.circle is None
        refuse(flat, "'cone' needs a circle", "use 'direction'", "cone", self.cone)

    def _known_keys(self, kind: str) -> set[str]:
        law = self.law_name
        keys = {kind, "law", "period", *LAW_KEYS[law]}
        keys |= {"start"} if kind in JOINT_KINDS else set()
        if self.along_path:
            keys |= {"frame", *(() if law in ("spline", "blend") else ORIENTATION_KEYS)}
            if law == "constant-speed":
                keys = {*keys, "speed"} - {"duration", "times"}
        if kind in ("circle", "moves"):
            keys -= {"times"}
        if kind == "moves" and law == "trapezoid":
            keys |= {"smoothing"}
        return keys

    @property
    def _steps(self) -> list[float]:
        """Durations between specified times."""
        return [later - earlier for earlier, later in pairwise(self.times)]

    def _check_numbers(self) -> None:
        times, ramp, duration = self.times, self.ramp, self.duration
        long = duration is not None and 2 * ramp > duration
        refuse(long, "the two ramps are longer than the move", "make 'duration' longer", "ramp", ramp)
        falling = any(step <= 0 for step in self._steps)
        refuse(falling, "the times do not increase", "write e.g. [0, 1, 2.5]", "times", list(times))
        first = min(times, default=0)
        refuse(first < 0, "the first time is negative", "begin at 0 or later", "times", first)

    def _check_needs(self, kind: str) -> None:
        """Raise if a key that the kind and time law require is missing."""
        law, times, waypoints = self.law_name, self.times, getattr(self, kind) if kind in WAYPOINTS else ()
        few = kind in WAYPOINTS and len(waypoints) < 2 and kind != "points"  # points say it with their path
        refuse(few, f"a motion needs at least two {kind}", f"add {kind}", kind)
        unequal = times and waypoints and len(times) != len(waypoints)
        refuse(unequal, f"there are {len(times)} times for {len(waypoints)} {kind}", "give one each", "times")
        twice = times and self.duration is not None
        refuse(twice, "'times' and 'duration' both set the durations", "keep one", "duration", self.duration)
        at_speed = self.along_path and law == "constant-speed"
        needs = ("speed",) if at_speed else () if law in AT_REST and times else NEEDS.get(law, ())
        for key in needs:
            refuse(not getattr(self, key), f"'{key}' is missing", f"add {key} = ...", key)
        ramp = self.ramp == 0
        refuse(ramp and at_speed, "'ramp' is missing: a path starts at zero velocity", "add ramp = 0.5", "ramp")
        ramp = ramp and kind != "moves" and law in ("trapezoid", "constant-speed")
        refuse(ramp, f"'ramp' is missing: the law '{law}' has ramps", "add ramp = 0.1", "ramp")
        key, shortest = "blend" if self.blend else "ramp", min(self._steps, default=math.inf)
        long = 2 * self.ramp > shortest or 2 * self.blend > shortest
        refuse(long, f"'{key}' is longer than half of a move", "make it shorter", key, getattr(self, key))
        speeds = list(self.end_speeds)
        backwards = law == "time-optimal" and min(speeds) < 0
        refuse(backwards, "a speed at an end is negative", "give zero or more", "end_speeds", speeds)
        self._check_waves(kind)

    def _check_waves(self, kind: str) -> None:
        """Raise for inconsistent numbers of frequencies and amplitudes, or unknown directions of a frame."""
        both = kind == "sines" and (self.frequency is None) == (not self.frequencies)
        message = "sines need either 'frequency', for its multiples, or 'frequencies'"
        refuse(both, message, "add frequency = 0.5", "frequency")
        count = len(self.frequencies)
        for name, values in (*self.sines.items(), *self.cosines.items()) if kind == "sines" else ():
            refuse(not values, f"'{name}' has no amplitudes", "write e.g. [0.1, 0.05]", "sines")
            message = f"'{name}' has {len(values)} amplitudes for {count} frequencies"
            refuse(count and len(values) != count, message, "give one each", "sines")
        wrong = kind == "chirp" and count != 2
        refuse(wrong, "a chirp needs two frequencies", "write [1, 20]", "frequencies")
        in_frame = kind in ("sines", "chirp") and self.frame is not None
        for name in sorted({*self.sines, *self.cosines, *self.chirp} - {"x", "y", "z"}):
            hint = "write x, y or z, or remove 'frame'"
            refuse(in_frame, f"'{name}' is not a direction of a frame", hint, kind)
