"""Flow charts of the pages: boxes on a grid with arrows between them.

`python docs/hooks/flow_charts.py` writes them into docs/pictures; a test keeps pictures and descriptions the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap

PICTURES = Path(__file__).resolve().parent.parent / "pictures"
BOX, HEIGHT, ACROSS, DOWN, MARGIN = 168, 58, 216, 100, 14  # pixels: size of a box, grid, margin
LETTERS = 25  # in a line of a box
BLUE, GREY = "#2a5d9f", "#9db3d0"


@dataclass(frozen=True)
class Chart:
    """A flow chart: boxes with column, row and text, and arrows with the names of two boxes and a label."""

    title: str
    boxes: dict[str, tuple[float, float, str]]
    arrows: tuple[tuple[str, str, str], ...]


CHARTS = {
    "pipeline": Chart(
        "From a robot file to numbers and programs",
        {
            "file": (0, 0.5, "robot file: TOML, checked"),
            "robot": (1, 0.5, "Robot: tree, bodies, loop closures"),
            "floats": (2, 0, "floats: answer at one pose"),
            "form": (2, 1, "formulation with the fewest operators"),
            "graph": (3, 1, "symbols: graph of operators"),
            "program": (4, 1, "program: straight-line instructions"),
            "machine": (4, 0, "machine code: arrays, runs, maps"),
            "source": (4, 2, "C, NumPy, JAX, CasADi, FMU"),
        },
        (
            ("file", "robot", "load"),
            ("robot", "floats", ""),
            ("robot", "form", ""),
            ("form", "graph", "trace"),
            ("graph", "program", "optimise"),
            ("program", "machine", "compile"),
            ("program", "source", "emit"),
        ),
    ),
    "formulations": Chart(
        "Choice of the formulation of a model",
        {
            "start": (0, 0, "robot and requested model"),
            "sensors": (1, 0, "sensors in passive joints requested?"),
            "legs": (2, 0, "platform on legs with closed forms?"),
            "tree": (3, 0, "no loops?"),
            "pieces": (4, 0, "rigid pieces joined by beams?"),
            "A": (1, 1, "redundant form: sensed joints, (15)-(58)"),
            "B": (2, 1, "leg form: platform and one leg at a time"),
            "C": (3, 1, "open tree: recursion alone"),
            "D": (4, 1, "two-node form: twists of the pieces"),
            "E": (5, 0, "general form: tree, closures, one elimination"),
        },
        (
            ("start", "sensors", ""),
            ("sensors", "legs", "no"),
            ("legs", "tree", "no"),
            ("tree", "pieces", "no"),
            ("pieces", "E", "no"),
            ("sensors", "A", "yes"),
            ("legs", "B", "yes"),
            ("tree", "C", "yes"),
            ("pieces", "D", "yes"),
        ),
    ),
    "pose-of-a-map": Chart(
        "How a map answers a pose",
        {
            "pose": (0, 0, "pose, parameters"),
            "closed": (1, 0, "closed forms of the legs"),
            "newton": (1, 1, "continuation from home"),
            "mode": (2, 0, "in the working mode of the robot?"),
            "limits": (3, 0, "within joint limits?"),
            "step": (4, 0, "inverse iteration, compiled"),
            "count": (5, 0, "residuals and one Sturm count"),
            "ok": (5, 1, "status 0: verified modes"),
            "one": (4, 1, "single pose in floats"),
            "refused": (2, 1, "status 1 or 2, with reason"),
            "outside": (3, 1, "status 4, with the joint"),
        },
        (
            ("pose", "closed", ""),
            ("closed", "newton", "none"),
            ("closed", "mode", ""),
            ("newton", "mode", ""),
            ("mode", "limits", "yes"),
            ("mode", "refused", "no"),
            ("limits", "step", "yes"),
            ("limits", "outside", "no"),
            ("step", "count", ""),
            ("count", "ok", "proved"),
            ("step", "one", "fails"),
        ),
    ),
    "starts-of-a-run": Chart(
        "State at the start of a run",
        {
            "pose": (0, 1, "pose, or start of the motion"),
            "joints": (1, 1, "joints at the pose, loops closed"),
            "rest": (2, 0, '"rest": bodies undeformed'),
            "relaxed": (2, 1, '"relaxed": bodies in equilibrium, joints held'),
            "equilibrium": (2, 2, '"equilibrium": all in equilibrium, motors locked'),
            "rates": (3, 1, "rates of the motion; elastic rates of least kinetic energy"),
            "run": (4, 1, "first step"),
        },
        (
            ("pose", "joints", "solve"),
            ("joints", "rest", ""),
            ("joints", "relaxed", "default"),
            ("joints", "equilibrium", ""),
            ("rest", "rates", ""),
            ("relaxed", "rates", ""),
            ("equilibrium", "rates", ""),
            ("rates", "run", ""),
        ),
    ),
    "identification": Chart(
        "From recordings to identified parameters",
        {
            "recordings": (0, 0, "recordings: positions, efforts"),
            "checks": (1, 0, "units, signs, gaps, dead channels"),
            "filter": (2, 0, "low-pass, rates, accelerations, decimation"),
            "regressor": (3, 0, "regressor of the closed robot"),
            "base": (3, 1, "base parameters by pivoted QR"),
            "fit": (2, 1, "estimator: ols, wls, irls, tls, iv, didim"),
            "judge": (1, 1, "covariance, residuals, validation"),
            "result": (0, 1, "Fit: values, intervals, robot file, report"),
        },
        (
            ("recordings", "checks", ""),
            ("checks", "filter", ""),
            ("filter", "regressor", ""),
            ("regressor", "base", "rank"),
            ("base", "fit", ""),
            ("fit", "judge", ""),
            ("judge", "result", ""),
        ),
    ),
}


def corner(chart: Chart, name: str) -> tuple[float, float]:
    """Return the upper left corner of a box."""
    column, row, _ = chart.boxes[name]
    return MARGIN + ACROSS * column, MARGIN + DOWN * row


def box(chart: Chart, name: str) -> list[str]:
    """Return a box with its text, centred in lines."""
    x, y = corner(chart, name)
    lines = wrap(chart.boxes[name][2], LETTERS)
    first = y + HEIGHT / 2 + 4.5 - 8 * (len(lines) - 1)
    fill = "#eef3fa" if chart.boxes[name][2].endswith("?") else "white"
    return [
        f'<rect x="{x:g}" y="{y:g}" width="{BOX}" height="{HEIGHT}" rx="4" fill="{fill}" stroke="{GREY}"/>',
        *(
            f'<text x="{x + BOX / 2:g}" y="{first + 16 * k:g}" text-anchor="middle">{escape(line)}</text>'
            for k, line in enumerate(lines)
        ),
    ]


def arrow(chart: Chart, start: str, end: str, label: str) -> list[str]:
    """Return an arrow: straight to a neighbour in the row or column, else from side to side."""
    (x, y), (x2, y2) = corner(chart, start), corner(chart, end)
    if x == x2:
        down = y2 > y
        ends = (x + BOX / 2, y + HEIGHT if down else y, x2 + BOX / 2, y2 if down else y2 + HEIGHT)
        place, anchor = (ends[0] + 7, (ends[1] + ends[3]) / 2 + 4), "start"
    else:
        right = x2 > x
        ends = (x + BOX if right else x, y + HEIGHT / 2, x2 if right else x2 + BOX, y2 + HEIGHT / 2)
        place, anchor = ((ends[0] + ends[2]) / 2, (ends[1] + ends[3]) / 2 - 7), "middle"
    parts = [
        '<line x1="{:g}" y1="{:g}" x2="{:g}" y2="{:g}"'.format(*ends) + f' stroke="{BLUE}" marker-end="url(#tip)"/>'
    ]
    if label:
        x, y = place
        parts.append(f'<text x="{x:g}" y="{y:g}" fill="{BLUE}" font-size="11" text-anchor="{anchor}">{label}</text>')
    return parts


def svg(chart: Chart) -> str:
    """Return the picture of a chart."""
    width = max(corner(chart, name)[0] for name in chart.boxes) + BOX + MARGIN
    height = max(corner(chart, name)[1] for name in chart.boxes) + HEIGHT + MARGIN
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif"'
        ' font-size="12">',
        f"<title>{chart.title}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0 8 4 0 8z" fill="{BLUE}"/></marker></defs>',
        f'<rect width="{width:g}" height="{height:g}" fill="white"/>',
        *(line for name in chart.boxes for line in box(chart, name)),
        *(line for start, end, label in chart.arrows for line in arrow(chart, start, end, label)),
        "</svg>\n",
    ])  # fmt: skip


def pictures() -> dict[Path, str]:
    """Return the text of each picture."""
    return {PICTURES / f"{name}.svg": svg(chart) for name, chart in CHARTS.items()}


if __name__ == "__main__":
    for path, text in pictures().items():
        path.write_text(text, encoding="utf-8")
