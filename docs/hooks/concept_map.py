"""The concepts that a newcomer learns: classes, the functions that lead from one to the next, and their modules.

`python docs/hooks/concept_map.py` writes docs/pictures/concepts.svg; a test keeps the picture and the source the same.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src" / "parflex"
PICTURE = ROOT / "docs" / "pictures" / "concepts.svg"
LEFT, TOP, BOX, ACROSS, HEIGHT, DOWN = 104, 66, 172, 224, 66, 92

ROWS = {  # group: class and what it is, by column
    "robot file": (
        ("RobotFile", "a checked robot file"),
        ("Tree", "numbered links"),
        ("Joint", "motion of a link"),
        ("Body", "mass and stiffness"),
    ),
    "robot": (
        ("Robot", "a loaded robot"),
        ("Constraint", "rows of a closed loop"),
        ("Partition", "independent rates"),
    ),
    "pose": (
        ("Configuration", "a robot at a pose"),
        ("Assembler", "closes the loops"),
        ("Target", "what a pose specifies"),
    ),
    "statics": (
        ("LoadCase", "how held and loaded"),
        ("Equilibrium", "at rest under loads"),
        ("LinearModel", "M, D and K at a pose"),
        ("Response", "a number of a design"),
    ),
    "models": (
        ("ModelRequest", "what to compute"),
        ("Formulation", "equations of a model"),
        ("Expression", "a symbolic scalar"),
        ("Program", "a list of instructions"),
    ),
    "motion": (
        ("FrameTrajectory", "a frame in time"),
        ("Trajectory", "channels in time"),
    ),
    "time": (
        ("Recording", "measured time series"),
        ("Run", "simulated time series"),
        ("LoopFunction", "a compiled time loop"),
        ("Model", "a program with its inputs"),
    ),
}
ARROWS = (
    ("RobotFile", "Tree", "build"),
    ("Tree", "Joint", "has"),
    ("Joint", "Body", "moves"),
    ("RobotFile", "Robot", "load"),
    ("Robot", "Constraint", "has"),
    ("Constraint", "Partition", "rank"),
    ("Robot", "Configuration", "configure"),
    ("Target", "Assembler", "rows"),
    ("Assembler", "Configuration", "solve"),
    ("Configuration", "LoadCase", "hold, load"),
    ("LoadCase", "Equilibrium", "solve"),
    ("Equilibrium", "LinearModel", "linearise"),
    ("LinearModel", "Response", "modes"),
    ("ModelRequest", "Formulation", "choose"),
    ("Formulation", "Expression", "trace"),
    ("Expression", "Program", "optimise"),
    ("Program", "Model", "emit"),
    ("FrameTrajectory", "Trajectory", "follow"),
    ("Trajectory", "Run", "prescribe"),
    ("Model", "LoopFunction", "step"),
    ("LoopFunction", "Run", "simulate"),
    ("Run", "Recording", "compare"),
)


def module_of(name: str) -> str:
    """The module that defines a class."""
    pattern = re.compile(rf"^class {name}\b", re.M)
    found = [path for path in SOURCE.rglob("*.py") if pattern.search(path.read_text(encoding="utf-8"))]
    if len(found) != 1:
        raise LookupError(f"ROWS: {len(found)} modules define the class {name!r}; give the name of one class")
    return ".".join(found[0].relative_to(SOURCE).with_suffix("").parts)


def places() -> dict[str, tuple[int, int]]:
    """The upper left corner of each box."""
    return {
        name: (LEFT + ACROSS * column, TOP + DOWN * row)
        for row, items in enumerate(ROWS.values())
        for column, (name, _) in enumerate(items)
    }


def arrow(start: tuple[int, int], end: tuple[int, int], label: str) -> list[str]:
    """An arrow between neighbours in a row or a column, with its label."""
    (x, y), (x2, y2) = start, end
    if y == y2:
        right = x2 > x
        ends = (x + BOX if right else x, y + HEIGHT / 2, x2 if right else x2 + BOX, y + HEIGHT / 2)
        middle, line, anchor = (ends[0] + ends[2]) / 2, y + HEIGHT / 2 - 7, "middle"
    else:
        ends = (x + 24, y + HEIGHT, x + 24, y2)
        middle, line, anchor = x + 32, y + HEIGHT + 17, "start"
    x, y, x2, y2 = (f"{value:g}" for value in ends)
    return [
        f'<line x1="{x}" y1="{y}" x2="{x2}" y2="{y2}" stroke="#2a5d9f" marker-end="url(#tip)"/>',
        f'<text x="{middle:g}" y="{line:g}" font-size="11" fill="#2a5d9f" text-anchor="{anchor}">{label}</text>',
    ]


def svg() -> str:
    """The picture: a row for each group, boxes for classes, arrows for what makes one from the other."""
    at, lines = places(), []
    width, height = LEFT + 3 * ACROSS + BOX + 16, TOP + DOWN * len(ROWS) - (DOWN - HEIGHT) + 16
    for row, (group, items) in enumerate(ROWS.items()):
        lines.append(f'<text x="16" y="{TOP + DOWN * row + 20}" fill="#2a5d9f" font-weight="bold">{group}</text>')
        for name, text in items:
            x, y = at[name]
            lines += [
                f'<rect x="{x}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="4" fill="white" stroke="#9db3d0"/>',
                f'<text x="{x + 10}" y="{y + 20}" font-weight="bold">{name}</text>',
                f'<text x="{x + 10}" y="{y + 38}" font-size="12">{escape(text)}</text>',
                f'<text x="{x + 10}" y="{y + 55}" font-size="11" fill="#777">{module_of(name)}</text>',
            ]
    for start, end, label in ARROWS:
        lines += arrow(at[start], at[end], label)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="13">',
        "<title>Concepts of parflex and how one leads to the next</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#2a5d9f"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        '<text x="16" y="26" font-size="17" font-weight="bold">Concepts of parflex</text>',
        '<text x="16" y="46" fill="#555">Classes with their modules. Arrows: what a class has or yields.</text>',
        *lines,
        "</svg>\n",
    ])  # fmt: skip


def pictures() -> dict[Path, str]:
    """Return the picture and its text."""
    return {PICTURE: svg()}


if __name__ == "__main__":
    for path, text in pictures().items():
        path.write_text(text, encoding="utf-8")
