"""Pages that keep what was seen: one file with the viewer in it, which opens without a server and without a network."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from parflex.view.page.stage import Stage

Array = np.ndarray


class Picture(NamedTuple):
    """Vertices of all meshes, positions, and triangles of beams by colour of their stress, where that is shown."""

    vertices: Array
    q: Array
    levels: list[Array] | None = None


def recorded_page(server: Any, stage: Stage, pictures: list[Picture], wait: float) -> str:
    """A page with the scene as it stands; with several pictures it plays them for ever."""
    serializer = server.get_scene_serializer()
    for picture in pictures:
        stage.move(picture.vertices)
        stage.place_tool(picture.q)
        if picture.levels is not None:
            stage.colour_beams(picture.levels)
        serializer.insert_sleep(wait)
    return serializer.as_html()
