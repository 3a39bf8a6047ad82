"""The look of figures and scenes, in one place: colours, sizes, units and what is drawn in vectors."""

from __future__ import annotations

# Colours of the parts of a robot in the viewer, red green blue
SOLIDS: dict[str, tuple[int, int, int]] = {
    "ground": (96, 100, 108),
    "links": (148, 158, 174),
    "slides": (176, 183, 194),
    "beams": (36, 148, 156),
    "platform": (52, 104, 168),
    "joints": (58, 63, 73),
    "motors": (221, 82, 60),
}
GHOST, REACTION, UNREACHABLE = (120, 130, 145), (230, 150, 20), (220, 38, 38)
BRAND = (52, 104, 168)
