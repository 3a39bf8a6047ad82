"""Pages that keep what was seen: one file with the viewer in it, which opens without a server and without a network."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.view.stage import Stage

Array = np.ndarray


def recorded_page(server: Any, stage: Stage, pictures: list[Array], wait: float) -> str:
    """A page with the scene as it stands; with several pictures it plays them again and again."""
    serializer = server.get_scene_serializer()
    for vertices in pictures:
        stage.move(vertices)
        serializer.insert_sleep(wait)
    return serializer.as_html()
