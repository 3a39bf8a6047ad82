"""Modes of robots for the report: points at rest, how they move, and small pictures of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.reproduction import svg
from parflex.reproduction.published_tables import Show
from parflex.reproduction.quantities import Workshop
from parflex.statics.modes import energy_shares
from parflex.view.robot_figure import angles_of_view, view
from parflex.view.skeleton import mode_shape_points

Array = np.ndarray
DIGITS = 4  # of a metre: a tenth of a millimetre is less than a pixel
BENT = 0.09  # largest displacement in a small picture, of the size of the robot


def mode_shapes(show: Show, workshop: Workshop) -> dict[str, Any]:
    """What the page's script plays: plain numbers, and a small picture of each mode."""
    found = workshop.modes(show.robot, show.pose, show.modes)
    here = found.model.configuration
    kinds = [one["kind"] for one in energy_shares(found)]
    modes, stills, first = [], [], None
    turn, tilt = angles_of_view(here.robot)
    rows = view(turn, tilt)
    for k, (frequency, mode) in enumerate(zip(found.frequencies, found.shapes.T, strict=True)):
        shape = mode_shape_points(here.robot, here, mode)
        first = first or shape
        label = f"{frequency:.2f} Hz"
        told = f"{show.title}: mode {k + 1}, {label}" + (f", {kinds[k]}" if kinds[k] else "")
        modes.append({"hz": round(float(frequency), 4), "kind": kinds[k], "shape": _flat(shape.shape)})
        fine = [kind == "plate" for kind in shape.kinds]
        picture = svg.still(shape.points, shape.shape, shape.edges, fine, BENT * shape.size, rows, told)
        stills.append((label, kinds[k] or "", picture))
    assert first is not None
    return {
        "title": show.title,
        "view": [turn, tilt],
        "size": round(first.size, DIGITS),
        "points": _flat(first.points),
        "edges": [int(k) for k in np.asarray(first.edges).ravel()],
        "kinds": first.kinds,
        "modes": modes,
        "stills": stills,
    }


def _flat(values: Array) -> list[float]:
    return [float(value) + 0.0 for value in np.round(values, DIGITS).ravel()]
