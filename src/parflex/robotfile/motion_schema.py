"""Schema of motions in robot files and motion files: the moved frame or joints, and the time law."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, model_validator

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
AT_REST = ("quintic", "septic", "trapezoid", "constant-speed")  # laws of one move, from rest to rest
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


def _as_list(value: object) -> object:
    """One vector as a list of it; words as they are."""
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
    - `law`: law of time, see below.
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
        """What moves, by its key."""
        return next(key for key in KINDS if getattr(self, key) or (key == "sines" and self.cosines))

    @property
    def law_name(self) -> str:
        """The law of time: the one that is given, or that of the kind."""
        return self.law or LAWS[self.kind][0]

    @model_validator(mode="after")
    def _check_kind(self) -> MotionTable:
        present_kinds = [key for key in KINDS if getattr(self, key) or (key == "sines" and self.cosines)]
        if len(present_kinds) != 1:
            listed = " and ".join(f"'{kind}'" for kind in present_kinds) or "none"
            kinds = ", ".join(f"'{key}'" for key in KINDS[:-1]) + f" and '{KINDS[-1]}'"
            raise value_error(f"a motion has one of {kinds}, not {listed}", "keep one", "moves")
        self._check_keys(present_kinds[0])
        self._check_numbers()
        self._check_needs(present_kinds[0])
        self._check_orientation()
        return self

    def _check_orientation(self) -> None:
        """One of direction, cone and orientation; a cone stands about a circle."""
        keys = sorted(self.model_fields_set & set(ORIENTATION_KEYS))
        if len(keys) > 1:
            raise value_error(f"'{keys[0]}' and '{keys[1]}' both turn the frame", "keep one", keys[1])
        if self.cone is not None and self.circle is None:
            raise value_error("a 'cone' stands about the axis of a circle", "give directions", "cone", self.cone)

    def _check_keys(self, kind: str) -> None:
        """Refuse a law that the kind does not have, and keys that have no effect."""
        if self.law is not None and self.law not in LAWS[kind]:
            raise value_error(
                f"a motion with '{kind}' has no law '{self.law}'", did_you_mean(self.law, LAWS[kind]), "law", self.law
            )
        unused_keys = self.model_fields_set - self._known_keys(kind)
        if unused_keys:
            key = min(unused_keys)
            raise value_error(f"'{key}' has no effect in {self._named(kind)}", "remove it", key, getattr(self, key))

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

    def _named(self, kind: str) -> str:
        return f"a motion with '{kind}'" + (f" and law '{self.law}'" if self.law else "")

    def _check_numbers(self) -> None:
        if self.duration is not None and 2 * self.ramp > self.duration:
            raise value_error("the two ramps are longer than the move", "make 'duration' longer", "ramp", self.ramp)
        if any(later <= earlier for earlier, later in zip(self.times, self.times[1:], strict=False)):
            raise value_error("the times do not increase", "write e.g. [0, 1, 2.5]", "times", list(self.times))
        if self.times and self.times[0] < 0:
            raise value_error("the first time is negative", "begin at 0 or later", "times", self.times[0])

    def _check_needs(self, kind: str) -> None:
        """What a kind and its law cannot do without."""
        law, has_waypoints = self.law_name, kind in ("points", "poses", "joints")
        if has_waypoints and len(getattr(self, kind)) < 2 and kind != "points":  # points say it with their path
            raise value_error(f"a motion needs at least two {kind}", f"add {kind}", kind)
        if self.times and has_waypoints and len(self.times) != len(getattr(self, kind)):
            count = len(getattr(self, kind))
            raise value_error(f"there are {len(self.times)} times for {count} {kind}", "give one each", "times")
        if self.times and self.duration is not None:
            raise value_error("'times' and 'duration' say the same", "keep one", "duration", self.duration)
        missing = [key for key in self._required(kind, law) if not getattr(self, key)]
        if missing:
            raise value_error(f"'{missing[0]}' is missing", f"add {missing[0]} = ...", missing[0])
        if self.along_path and law == "constant-speed" and self.ramp == 0:
            raise value_error("'ramp' is missing: a path starts from rest", "add ramp = 0.5", "ramp")
        if kind != "moves" and law in ("trapezoid", "constant-speed") and self.ramp == 0:
            raise value_error(f"'ramp' is missing: the law '{law}' has ramps", "add ramp = 0.1", "ramp")
        gaps = [b - a for a, b in zip(self.times, self.times[1:], strict=False)]
        if gaps and (2 * self.ramp > min(gaps) or 2 * self.blend > min(gaps)):
            key = "blend" if self.blend else "ramp"
            raise value_error(f"'{key}' is longer than half of a move", "make it shorter", key, getattr(self, key))
        if law == "time-optimal" and min(self.end_speeds) < 0:
            raise value_error("a speed at an end is negative", "give zero or more", "end_speeds", list(self.end_speeds))
        self._check_waves(kind)

    def _required(self, kind: str, law: str) -> list[str]:
        if self.along_path and law == "constant-speed":
            return ["speed"]
        if law == "time-optimal":
            return []
        if law in AT_REST:
            return [] if self.times else ["duration"]
        if law == "chirp":
            return ["frequencies", "duration"]
        return {"spline": ["times"], "blend": ["times", "blend"]}.get(law, [])

    def _check_waves(self, kind: str) -> None:
        """Numbers of frequencies and of amplitudes."""
        if kind == "sines":
            if (self.frequency is None) == (not self.frequencies):
                raise value_error(
                    "sines have either 'frequency', of which they are multiples, or 'frequencies'",
                    "add frequency = 0.5", "frequency",
                )  # fmt: skip
            for name, values in (*self.sines.items(), *self.cosines.items()):
                if not values:
                    raise value_error(f"'{name}' has no amplitudes", "write e.g. [0.1, 0.05]", "sines")
                if self.frequencies and len(values) != len(self.frequencies):
                    raise value_error(
                        f"'{name}' has {len(values)} amplitudes for {len(self.frequencies)} frequencies",
                        "give one each", "sines",
                    )  # fmt: skip
        if kind == "chirp" and len(self.frequencies) != 2:
            raise value_error("a chirp goes from one frequency to another", "write [1, 20]", "frequencies")
        if kind in ("sines", "chirp") and self.frame is not None:
            unknown_names = {*self.sines, *self.cosines, *self.chirp} - {"x", "y", "z"}
            if unknown_names:
                raise value_error(
                    f"'{min(unknown_names)}' is not a direction of a frame", "write x, y or z, or remove 'frame'", kind
                )
