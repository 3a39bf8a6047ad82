"""Figures in notebooks. The functions that draw import this module, because matplotlib imports in half a second."""

from __future__ import annotations

from io import BytesIO

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from parflex.view.style import figure_style

DOTS = 144  # an inch, twice what a screen has: sharp on fine screens
INCH = 96  # pixels of a page


class NotebookFigure(Figure):
    """A figure of matplotlib without a window, and unknown to pyplot: it is freed with its last reference.

    Notebooks show figures of pyplot only, and others once pyplot is imported; this one shows itself.
    """

    def __init__(self, width: float, height: float) -> None:
        super().__init__(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(self)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        picture = BytesIO()
        with figure_style():
            self.savefig(picture, format="png", dpi=DOTS)
        width, height = self.get_size_inches()
        return picture.getvalue(), {"width": round(INCH * width), "height": round(INCH * height)}
