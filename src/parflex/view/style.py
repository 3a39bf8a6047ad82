"""Style of figures and scenes: colours, sizes, and how a figure is made and written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parflex.errors import InputError
from parflex.io import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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

# Colours of lines in figures: told apart by people who see red and green alike, and on paper without colour
LINES = ("#3468a8", "#dd523c", "#24949c", "#8a5fa8", "#c98a1b", "#5a6270")
REST, MEASURED = "#b4bac4", "#1f2430"
FORMATS = (".svg", ".pdf", ".png")
WIDTH = 7.2  # inches
SETTINGS: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#5a6270",
    "axes.grid": True,
    "axes.labelsize": 9.5,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "figure.dpi": 100,
    "font.size": 9.5,
    "grid.color": "#e2e5ea",
    "grid.linewidth": 0.8,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "savefig.dpi": 150,
    "svg.fonttype": "none",
    "svg.hashsalt": "parflex",  # the same figure is the same file
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
}


_one_at_a_time = threading.RLock()  # settings of matplotlib are those of all threads


@contextmanager
def drawing_lock() -> Iterator[None]:
    """While this lasts, no other thread draws."""
    with _one_at_a_time:
        yield


@contextmanager
def figure_style() -> Iterator[None]:
    """While this lasts, figures look like ours, and no other thread draws."""
    import matplotlib
    from cycler import cycler

    settings: Any = {**SETTINGS, "axes.prop_cycle": cycler(color=LINES)}
    with drawing_lock(), matplotlib.rc_context(settings):
        yield


def new_figure(height: float, width: float = WIDTH) -> Any:
    """An empty figure that needs no window."""
    from parflex.view.notebook_figure import NotebookFigure

    return NotebookFigure(width, height)


def titled(figure: Figure, title: str) -> None:
    """Put a title above all panels, if there is one."""
    if title:
        figure.suptitle(title, fontsize=10.5, fontweight="bold")


def time_axis(panel: Any, t: Any) -> None:
    """Time along the axis, from the first row to the last."""
    panel.set_xlabel("time (s)")
    if t[-1] > t[0]:
        panel.set_xlim(t[0], t[-1])


def legend_above(panel: Any, count: int) -> None:
    """Above the panel where it fits, else beside it: nothing hides a line."""
    if count <= 4:
        panel.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=count, borderaxespad=0.0, handlelength=1.4)
    else:
        panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7.5)


def finished(figure: Figure, path: str | Path | None) -> Figure:
    """The figure, written where a path is given."""
    if path is not None:
        write_picture(figure, picture_path(path))
    return figure


def picture_path(path: str | Path) -> Path:
    """The path of a picture; kinds of pictures that cannot be written are refused."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise InputError(
            f"'{path.suffix}' is not a supported picture format",
            key="output",
            value=str(path),
            hint="use " + ", ".join(FORMATS),
        )
    return path


def write_picture(figure: Any, path: Path) -> None:
    """Write a figure whole or not at all; nothing in it tells when it was written."""
    kind = path.suffix[1:].lower()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with atomic_file(path, "output") as file, figure_style():
        figure.savefig(file, format=kind, metadata=undated)
