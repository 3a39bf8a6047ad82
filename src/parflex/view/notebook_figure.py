"""Figures in notebooks. Drawing functions import this module when called, because matplotlib imports slowly."""

from __future__ import annotations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from parflex.view.style import svg_of


class NotebookFigure(Figure):
    """A figure of matplotlib without a window, and unknown to pyplot: it is freed with its last reference.

    Notebooks show figures of pyplot only, and others once pyplot is imported; this one shows itself.
    """

    def __init__(self, width: float, height: float) -> None:
        super().__init__(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(self)

    def _repr_svg_(self) -> str:
        return svg_of(self)
