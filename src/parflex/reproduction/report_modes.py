"""Modes of robots for the report: points at rest, how they move, and small pictures of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.models.elastic.participation import energy_shares
from parflex.reproduction import svg
from parflex.reproduction.published_tables import Show
from parflex.reproduction.quantities import Workshop
from parflex.view.scene.robot_scene import mode_shape_points

Array = np.ndarray
DIGITS = 4  # of a metre: a tenth of a millimetre is less than a pixel
BENT = 0.09  # largest displacement in a small picture, of the size of the robot
TURN, TILT = -28.0, 55.0  # degrees: how a robot in space is seen at first; a planar one is seen as a plan


def mode_shapes(show: Show, workshop: Workshop) -> dict[str, Any]:
    """What the page's script plays: plain numbers, and a small picture of each mode."""
    found = workshop.modes(show.robot, show.pose, show.modes)
    here = found.model.configuration
    kinds = [one["kind"] for one in energy_shares(found)]
    modes, stills, first = [], [], None
    turn, tilt = (0.0, 90.0) if here.robot.tree.planar else (TURN, TILT)
    view = _view(np.radians(turn), np.radians(tilt))
    for k, (frequency, mode) in enumerate(zip(found.frequencies, found.shapes.T, strict=True)):
        shape = mode_shape_points(here.robot, here, mode)
        first = first or shape
        label = f"{frequency:.2f} Hz"
        told = f"{show.title}: mode {k + 1}, {label}" + (f", {kinds[k]}" if kinds[k] else "")
        modes.append({"hz": round(float(frequency), 4), "kind": kinds[k], "shape": _flat(shape.shape)})
        fine = [kind == "plate" for kind in shape.kinds]
        picture = svg.still(shape.points, shape.shape, shape.edges, fine, BENT * shape.size, view, told)
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


def _view(turn: float, tilt: float) -> Array:
    """Two rows that make a picture of points: turned about z, then seen from above by the tilt (90 degrees: a plan)."""
    c, s = np.cos(turn), np.sin(turn)
    return np.array([[c, -s, 0.0], [s * np.sin(tilt), c * np.sin(tilt), np.cos(tilt)]])
