"""Pages that keep what was seen: one file with the viewer in it, which opens without a server and without a network."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.view.page.stage import Stage

Array = np.ndarray


def recorded_page(server: Any, stage: Stage, pictures: list[tuple[Array, Array]], wait: float) -> str:
    """A page with the scene as it stands; with several pictures, vertices and positions, it plays them for ever."""
    serializer = server.get_scene_serializer()
    for vertices, q in pictures:
        stage.move(vertices)
        stage.place_tool(q)
        serializer.insert_sleep(wait)
    return serializer.as_html()
