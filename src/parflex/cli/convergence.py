"""The picture that `--converge` may draw, for the verbs that refine elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parflex.errors import InputError


def check_convergence(converge: float | None, file: str | None) -> Callable[[Any], list[str]]:
    """What draws an answer into the file, if one is named; wrong names are refused before anything is computed."""
    if file is None:
        return lambda refined: []
    from parflex.view.style import picture_path

    picture_path(file)
    if converge is None:
        raise InputError(
            "nothing is refined", key="convergence", value=file, hint="give --converge R, or leave out --convergence"
        )

    def draw(refined: Any) -> list[str]:
        from parflex.view.study_figure import draw_convergence

        draw_convergence(refined, file)
        return [file]

    return draw
