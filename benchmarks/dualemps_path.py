"""Motions of the DualEMPS in closed form: positions of its two slides in time, from the geometry of the rigid robot.

x runs across the slides, which stand at 0 and 0.4 m, and y along them. Over any scalar: `m` has the functions `sin`,
`cos`, `sqrt` and `abs` (NumPy, or a library of symbols). Nothing here branches: a part that begins or ends is made of
(x + |x|)/2.
"""

from __future__ import annotations

from typing import Any

BETWEEN = 0.4  # from slide to slide
ARM = 0.805  # from slide 1 to the point P
KNEE = 0.6  # from each slide to the hinge between the legs
CENTRE, RADIUS, SPEED = (0.28, 0.90), 0.1, 0.2
START = 0.02  # of both slides on the square
EDGE, RAMP, TRAPEZE, BOX, PERIOD = 0.2, 0.3, 1.77, 0.03, 12.5
CORNERS = ((0, 1), (1, 1), (0, -1), (1, -1))  # which slide moves along an edge, and where to


def positions(motion: str, t: Any, m: Any, turns: int = 2) -> tuple[Any, Any]:
    """Both slides at a time: of `circle`, `circle-harsh`, or `square` (as many turns as are asked for)."""
    if motion == "square":
        return _square(t, m, turns)
    angle = _arc(t, {"circle": 0.5, "circle-harsh": 0.02}[motion], m) / RADIUS
    return slides(CENTRE[0] + RADIUS * m.cos(angle), CENTRE[1] + RADIUS * m.sin(angle), m)


def slides(x: Any, y: Any, m: Any) -> tuple[Any, Any]:
    """Positions of the slides that put P of the rigid robot at a point, the legs on the +y side of the slides."""
    first = y - m.sqrt(ARM**2 - x * x)
    knee_x, knee_y = KNEE / ARM * x, first + KNEE / ARM * (y - first)
    return first, knee_y - m.sqrt(KNEE**2 - (knee_x - BETWEEN) * (knee_x - BETWEEN))


def point(first: Any, second: Any, m: Any) -> tuple[Any, Any]:
    """P of the rigid robot where the slides stand so: the knee is the apex of two equal bars."""
    rise = (second - first) / 2
    half = (BETWEEN * BETWEEN / 4 + rise * rise) ** 0.5
    height = m.sqrt(KNEE**2 - half * half)
    knee_x, knee_y = BETWEEN / 2 - height * rise / half, (first + second) / 2 + height * BETWEEN / 2 / half
    return ARM / KNEE * knee_x, first + ARM / KNEE * (knee_y - first)


def _arc(t: Any, ramp: float, m: Any) -> Any:
    """Length of arc whose speed rises along 10 u^3 - 15 u^4 + 6 u^5 to a constant."""
    late = _positive(t - ramp, m)
    u = (t - late) / ramp
    return SPEED * (ramp * u * u * u * u * (2.5 - 3 * u + u * u) + late)


def _square(t: Any, m: Any, turns: int) -> tuple[Any, Any]:
    """Edges with a trapeze of velocity, smoothed by a box, and a rest after each."""
    places: list[Any] = [START, START]
    for turn in range(turns):
        for number, (slide, sign) in enumerate(CORNERS):
            begin = (turn + number / len(CORNERS)) * PERIOD
            places[slide] = places[slide] + sign * _edge(t - begin, m)
    return places[0], places[1]


def _edge(t: Any, m: Any) -> Any:
    """Way along an edge: the third integral of the changes of acceleration of the smoothed trapeze."""
    total: Any = 0.0
    for sign, change in ((1, 0.0), (-1, RAMP), (-1, TRAPEZE - RAMP), (1, TRAPEZE)):
        for begin, end in ((change, 1), (change + BOX, -1)):
            late = _positive(t - begin, m)
            total = total + sign * end * late * late * late
    return EDGE / (TRAPEZE - RAMP) / RAMP / BOX / 6 * total


def _positive(x: Any, m: Any) -> Any:
    return (x + m.abs(x)) / 2
