"""The picture of working modes, folds and singularities on a five-bar linkage.

`python docs/hooks/working_modes.py` writes docs/pictures/working-modes.svg; a test keeps picture and source the same.
"""

from __future__ import annotations

import math
from pathlib import Path

PICTURE = Path(__file__).resolve().parent.parent / "pictures" / "working-modes.svg"
BASE, CRANK, ROD = 2.0, 1.5, 2.0  # distance of the motors, lengths of the links
SCALE, WIDTH, HEIGHT, GROUND = 50, 220, 262, 205  # pixels per unit, size of a panel, height of the motors
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#bbbbbb"

Point = tuple[float, float]

MOTORS: tuple[Point, Point] = ((0.0, 0.0), (BASE, 0.0))


def elbow(motor: Point, tool: Point, sign: int) -> Point:
    """Return the elbow of a leg on one side of the line from its motor to the tool."""
    dx, dy = tool[0] - motor[0], tool[1] - motor[1]
    distance = math.hypot(dx, dy)
    along = (distance**2 + CRANK**2 - ROD**2) / (2 * distance)
    across = sign * math.sqrt(max(CRANK**2 - along**2, 0.0))
    return (motor[0] + (along * dx - across * dy) / distance, motor[1] + (along * dy + across * dx) / distance)


def elbows_of(tool: Point, signs: tuple[int, int]) -> list[Point]:
    """Return both elbows in a working mode."""
    return [elbow(motor, tool, sign) for motor, sign in zip(MOTORS, signs, strict=True)]


def linkage(tool: Point, elbows: list[Point], colour: str, x: float) -> list[str]:
    """Return the four links, their joints and the tool."""

    def pixel(point: Point) -> Point:
        return x + WIDTH / 2 + SCALE * (point[0] - BASE / 2), GROUND - SCALE * point[1]

    path = " ".join(f"{u:.1f},{v:.1f}" for u, v in map(pixel, (MOTORS[0], elbows[0], tool, elbows[1], MOTORS[1])))
    lines = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="4" stroke-linejoin="round"/>']
    for point in (*elbows, tool):
        u, v = pixel(point)
        lines.append(f'<circle cx="{u:.1f}" cy="{v:.1f}" r="4.5" fill="white" stroke="{colour}" stroke-width="2"/>')
    for point in MOTORS:
        u, v = pixel(point)
        lines.append(f'<circle cx="{u:.1f}" cy="{v:.1f}" r="7" fill="{ORANGE}"/>')
    return lines


def panel(x: float, words: tuple[str, str, str], linkages: list[tuple[Point, list[Point], str]]) -> list[str]:
    """Return a panel with a title and two lines of text."""
    title, first, second = words
    middle = x + WIDTH / 2
    return [
        f'<text x="{middle:g}" y="20" text-anchor="middle" font-weight="bold">{title}</text>',
        *(line for tool, elbows, colour in linkages for line in linkage(tool, elbows, colour, x)),
        f'<text x="{middle:g}" y="{HEIGHT - 18}" text-anchor="middle">{first}</text>',
        f'<text x="{middle:g}" y="{HEIGHT - 3}" text-anchor="middle">{second}</text>',
    ]


def svg() -> str:
    """Return the picture: two working modes, two assembly modes, a stretched leg, a singularity of the motors."""
    tool = (1.25, 2.3)
    out = elbows_of(tool, (1, -1))
    stretched = (math.sqrt((CRANK + ROD) ** 2 - 3.0**2), 3.0)
    in_line = (BASE / 2, math.sqrt(CRANK**2 - (ROD - BASE / 2) ** 2))
    panels = (
        (("working modes", "one tool position,", "right elbow out or in"),
         [(tool, elbows_of(tool, (1, 1)), GREY), (tool, out, BLUE)]),
        (("assembly modes", "the same motor angles,", "tool above or below the elbows"),
         [(mirrored(tool, out), out, GREY), (tool, out, BLUE)]),
        (("fold: stretched leg", "the motor reverses there,", "two working modes meet"),
         [(stretched, elbows_of(stretched, (1, -1)), BLUE)]),
        (("singularity: rods in line", "locked motors do not", "hold the tool"),
         [(in_line, elbows_of(in_line, (1, -1)), BLUE)]),
    )  # fmt: skip
    width = WIDTH * len(panels)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT + 4}" font-family="sans-serif"'
        ' font-size="12">',
        "<title>Working modes, assembly modes and singularities of a five-bar linkage</title>",
        f'<rect width="{width}" height="{HEIGHT + 4}" fill="white"/>',
        *(line for k, (words, drawn) in enumerate(panels) for line in panel(k * WIDTH, words, drawn)),
        "</svg>\n",
    ])  # fmt: skip


def mirrored(tool: Point, elbows: list[Point]) -> Point:
    """Return the tool mirrored at the line of the elbows."""
    (ax, ay), (bx, by) = elbows
    dx, dy = bx - ax, by - ay
    share = ((tool[0] - ax) * dx + (tool[1] - ay) * dy) / (dx * dx + dy * dy)
    return 2 * (ax + share * dx) - tool[0], 2 * (ay + share * dy) - tool[1]


def pictures() -> dict[Path, str]:
    """Return the picture and its text."""
    return {PICTURE: svg()}


if __name__ == "__main__":
    for path, text in pictures().items():
        path.write_text(text, encoding="utf-8")
