"""Compare limits of joints and struts with the positions, velocities and efforts that functions return.

Angles are compared as they are: a whole turn more is another value. Callers warn or raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.records import Record, count_of
from parflex.robot.robot import Robot
from parflex.tree.tree import Link

Array = np.ndarray
AT_LIMIT = 1e-9  # rad or characteristic lengths: poses close to 1e-12, and a joint within this of its limit is inside
SHARE = 1e-6  # relative tolerance of velocity and effort limits, the accuracy of planned motions
POSITION, VELOCITY, EFFORT = "limits", "velocity_limit", "effort_limit"  # keys of the file
CODES_OF_LIMITS = {POSITION: "position-limit", VELOCITY: "velocity-limit", EFFORT: "effort-limit"}
Values = Mapping[str, Any]  # of joints by name: a number each, or an array over times


@dataclass(frozen=True, eq=False, repr=False)
class Violation(Record):
    """The largest excess over one limit (`key` of the file) of a joint: `value` at `time` (s, None: no motion)."""

    joint: str
    key: str
    value: float
    limit: tuple[float, float]
    time: float | None = None
    kind: str = "joint"  # or strut

    @property
    def diagnostic(self) -> Diagnostic:
        """Diagnostic of the violation."""
        return Diagnostic(CODES_OF_LIMITS[self.key], self.sentence, self.joint, self.value)

    @property
    def sentence(self) -> str:
        """Sentence with limit, value and time."""
        (low, high), value = self.limit, self.value
        digits = next((n for n in (4, 6, 9) if f"{value:.{n}g}" not in (f"{low:.{n}g}", f"{high:.{n}g}")), 12)
        value_word, low_word, high_word = (f"{number:.{digits}g}" for number in (value, low, high))
        when = "" if self.time is None else f", at t = {self.time:.4g} s"
        name = f"{self.kind} '{self.joint}'"
        if self.key == POSITION:
            return f"{name} is at {value_word}, outside its limits [{low_word}, {high_word}]{when}"
        if self.key == VELOCITY:
            return f"{name} moves at {value_word}, faster than its velocity_limit {high_word}{when}"
        return f"{name} has the effort {value_word}, beyond its effort_limit {high_word}{when}"


def check_limits(
    robot: Robot, positions: Values | None = None, velocities: Values | None = None, efforts: Values | None = None,
    times: Any = None,
) -> list[Violation]:  # fmt: skip
    """Return the largest excess over each limit of the robot.

    Values (m, rad, m/s, rad/s, N, N m) are numbers by joint, or arrays over `times` (s). Joints without values are
    not checked, nor is the range of a joint with an active stop. Non-finite values are ignored.
    """
    violations = []
    for link in robot.tree.links:
        for key, values, limit in (
            (POSITION, positions, None if link.terms.stop is not None else link.limits),
            (VELOCITY, velocities, _magnitude(link.velocity_limit)),
            (EFFORT, efforts, _magnitude(link.effort_limit)),
        ):
            if limit is not None and values is not None and link.name in values:
                tolerance = AT_LIMIT * robot.tree.rate_units[link.v.start] if key == POSITION else SHARE * limit[1]
                violations += _largest(link, key, values[link.name], limit, tolerance, times)
    return violations


def limit_margin(links: Iterable[Link], q: Array, joint: str = "") -> Any:
    """Return the distance of the joint nearest to its limits as share of its range, negative outside."""
    margins = []
    for link in links:
        if link.limits is not None and joint in ("", link.name):
            (low, high), value = link.limits, q[link.q.start]
            margins += [(value - low) / (high - low), (high - value) / (high - low)]
    if not margins:
        what = f"the joint '{joint}' has no limits" if joint else "no joint has limits"
        hint = "give 'limits' to joints in the file"
        raise InputError(what, key="response", value="limit_margin", hint=hint)
    return min(margins, key=lambda margin: getattr(margin, "value", margin))


def _magnitude(limit: float | None) -> tuple[float, float] | None:
    return None if limit is None else (-limit, limit)


def _largest(
    link: Link, key: str, samples: Any, limit: tuple[float, float], tolerance: float, times: Any
) -> list[Violation]:
    values = np.atleast_1d(np.asarray(samples, dtype=float))
    excess = np.maximum(limit[0] - values, values - limit[1])
    excess[~np.isfinite(excess)] = -np.inf
    if not len(values) or not excess.max() > tolerance:
        return []
    row = int(np.argmax(excess))
    time = None if times is None else float(times[row])
    return [Violation(link.name, key, float(values[row]), limit, time, "strut" if link.strut else "joint")]


def limit_warnings(robot: Robot, q: Array, qd: Array | None = None, efforts: Values | None = None) -> list[Diagnostic]:
    """Return a diagnostic for each limit that a state exceeds: all positions `q`, all rates `qd`, efforts by motor."""
    velocities = None if qd is None else dict(zip(robot.tree.rate_names, qd, strict=True))
    violations = check_limits(robot, dict(zip(robot.tree.position_names, q, strict=True)), velocities, efforts)
    return [violation.diagnostic for violation in violations]


def refuse_violations(violations: Iterable[Violation]) -> None:
    """Raise for the first limit that a motion exceeds."""
    exceeded = list(violations)
    if not exceeded:
        return
    more = f" (and {count_of(len(exceeded) - 1, 'more limit')})" if len(exceeded) > 1 else ""
    text = exceeded[0].sentence + more
    hint = "change the motion or the limit, or ignore the limits (ignore_limits)"
    raise InputError(text, key=exceeded[0].key, value=exceeded[0].value, hint=hint)


def efforts_of_file(efforts: Values, lower: Array | None, upper: Array | None) -> Values:
    """Return the efforts of motors without `lower` and `upper` limits of a call, which override those of the file."""
    if lower is None or upper is None:
        return efforts
    stated = np.isfinite(lower) | np.isfinite(upper)
    return {name: efforts[name] for name, overridden in zip(efforts, stated, strict=True) if not overridden}
