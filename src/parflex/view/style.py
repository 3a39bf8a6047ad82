"""Style of figures and scenes: colours, sizes, and how a figure is created and written."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

from parflex.errors import InputError
from parflex.io import atomic_file

# Colours of the parts of a robot in the viewer, red green blue
SOLIDS: dict[str, tuple[int, int, int]] = {
    "ground": (96, 100, 108),
    "links": (148, 158, 174),
    "slides": (176, 183, 194),
    "beams": (36, 148, 156),
    "platform": (52, 104, 168),
    "joints": (58, 63, 73),
    "motors": (221, 82, 60),
    "couplings": (196, 148, 40),
    "meshes": (205, 208, 214),
}
# Colours of stresses, from none to the largest: lighter is more, in colour and without
STRESSES: tuple[tuple[int, int, int], ...] = (
    (68, 1, 84), (70, 50, 127), (54, 92, 141), (39, 127, 142), (31, 161, 135), (74, 194, 109), (159, 218, 58),
    (253, 231, 37),
)  # fmt: skip
GHOST, REACTION, UNREACHABLE = (120, 130, 145), (230, 150, 20), (220, 38, 38)
BRAND = (52, 104, 168)

# Colours of lines in figures: distinct for colour-blind readers, and in print without colour
LINES = ("#3468a8", "#d55e00", "#14777f", "#8a5fa8", "#c98a1b", "#5a6270")
REST, INK = "#b4bac4", "#2b3240"
FORMATS = (".svg", ".pdf", ".png")
COLUMN, TEXT = "column", "text"
WIDTHS = {COLUMN: 3.5, TEXT: 7.2}  # inches of one column and of both of a page
SETTINGS: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#5a6270",
    "axes.grid": True,
    "axes.labelsize": 8.5,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "figure.dpi": 100,
    "figure.titlesize": 9.5,
    "figure.titleweight": "bold",
    "font.size": 8.5,
    "grid.color": "#e2e5ea",
    "grid.linewidth": 0.8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "savefig.dpi": 150,
    "svg.fonttype": "none",
    "svg.hashsalt": "parflex",  # the same figure is the same file
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}


_drawing = threading.RLock()  # settings of matplotlib are those of all threads


@contextmanager
def figure_style() -> Iterator[None]:
    """Apply the settings of this module, and let no other thread draw."""
    import matplotlib
    from cycler import cycler

    settings: Any = {**SETTINGS, "axes.prop_cycle": cycler(color=LINES)}
    with _drawing, matplotlib.rc_context(settings):
        yield


@contextmanager
def drawing(path: str | Path | None, height: float, width: str = TEXT, title: str = "") -> Iterator[Any]:
    """Yield an empty figure to draw in; set its title, and write it if there is a path."""
    if width not in WIDTHS:
        raise InputError(f"there is no width '{width}'", key="width", value=width, hint="give 'column' or 'text'")
    target = None if path is None else picture_path(path)
    with figure_style():
        figure = new_figure(height, WIDTHS[width])
        yield figure
        if title:
            figure.suptitle(title)
        if target is not None:
            write_picture(figure, target)


def new_figure(height: float, width: float = WIDTHS[TEXT]) -> Any:
    """Return an empty figure that needs no window (inches)."""
    from parflex.view.notebook_figure import NotebookFigure

    return NotebookFigure(width, height)


def time_axis(panel: Any, t: Any) -> None:
    """Show time along the axis, from the first row to the last."""
    panel.set_xlabel("time (s)")
    if t[-1] > t[0]:
        panel.set_xlim(t[0], t[-1])


def legend_above(panel: Any, count: int) -> None:
    """Put the legend above the panel, or beside it if it has many entries: it hides no line."""
    if count > 4:
        panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7.5)
        return
    columns = count if panel.figure.get_figwidth() > WIDTHS[COLUMN] else -(-count // 2)
    panel.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=columns, borderaxespad=0.0, handlelength=1.4)


def name_rows(panel: Any, names: Sequence[str]) -> range:
    """Label rows by names, the first at the top, and return their heights."""
    rows = range(len(names) - 1, -1, -1)
    panel.set_yticks(rows, names)
    panel.set_ylim(-0.7, len(names) - 0.3)
    panel.grid(axis="y", visible=False)
    panel.tick_params(axis="y", length=0)
    return rows


def picture_path(path: str | Path) -> Path:
    """Return the path of a picture; formats that cannot be written are refused."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        message, hint = f"'{path.suffix}' is not a supported picture format", "use " + ", ".join(FORMATS)
        raise InputError(message, key="output", value=str(path), hint=hint)
    return path


def write_picture(figure: Any, path: Path) -> None:
    """Write a figure atomically and without a date."""
    kind = path.suffix[1:].lower()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with atomic_file(path, "output") as file, figure_style():
        figure.savefig(file, format=kind, metadata=undated)


def svg_of(figure: Any) -> str:
    """Return a figure as SVG in hundredths of a point, without its header and the numbers of its elements."""
    text = StringIO()
    with figure_style():
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = re.sub(r' id="[a-z]+(2d)?_\d+"|<metadata>.*?</metadata>', "", text.getvalue(), flags=re.DOTALL)
    return rounded_places(svg[svg.index("<svg") :], 2)


def rounded_places(svg: str, digits: int) -> str:
    """Round the numbers in the tags of an SVG text, and none of its words."""

    def tag(match: re.Match[str]) -> str:
        return re.sub(rf"\d+\.\d{{{digits + 1},}}", lambda number: f"{float(number[0]):.{digits}f}", match[0])

    return re.sub(r"<[^>]*>", tag, svg)
