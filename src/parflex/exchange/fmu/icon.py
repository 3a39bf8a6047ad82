"""A picture of a robot for tools that show FMUs: its bars from joint to joint, as a small PNG written here."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from parflex.models.robot import Robot
from parflex.recursion import pose

Array = np.ndarray
SIZE, EDGE, THICK = 96, 10, 2.2  # pixels
BAR, JOINT = (38, 84, 124), (214, 90, 49)


def icon(robot: Robot) -> bytes:
    """The robot at home, seen along z if it is planar, else from the side, a little from above."""
    lines, points = bars_of(robot)
    view = np.eye(3)[:2] if robot.tree.planar else np.array([[0.83, 0.56, 0.0], [-0.22, 0.33, 0.92]])
    ends = np.array([[view @ end for end in line] for line in lines]).reshape(-1, 2, 2)
    dots = np.array([view @ point for point in points]).reshape(-1, 2)
    every = np.concatenate([ends.reshape(-1, 2), dots])
    low, high = every.min(axis=0), every.max(axis=0)
    scale = (SIZE - 2 * EDGE) / max(float((high - low).max()), 1e-9)

    def pixels(at: Array) -> Array:
        shifted = (at - (low + high) / 2) * scale
        return np.array([SIZE / 2 + shifted[0], SIZE / 2 - shifted[1]])

    image = np.zeros((SIZE, SIZE, 4), dtype=np.uint8)
    rows, columns = np.mgrid[0:SIZE, 0:SIZE]
    here = np.stack([columns, rows], axis=-1) + 0.5
    for first, last in ends:
        _paint(image, _distance(here, pixels(first), pixels(last)), THICK, BAR)
    for dot in dots:
        _paint(image, _distance(here, pixels(dot), pixels(dot)), 1.6 * THICK, JOINT)
    return png(image)


def bars_of(robot: Robot) -> tuple[list[tuple[Array, Array]], list[Array]]:
    """Bars between the origins of links, and from links to places where loops are closed; joints as points."""
    tree, at = robot.tree, pose(robot.tree, robot.home)
    origins = [np.asarray(at.position[j], dtype=float) for j in range(len(tree.links))]
    lines = [(origins[link.parent], origins[j]) for j, link in enumerate(tree.links) if link.parent >= 0]
    ends = [place for loop in robot.closures.loops for place in (loop.first, loop.second) if place.link >= 0]
    lines += [(origins[place.link], np.asarray(at.of(place)[1], dtype=float)) for place in ends]
    return lines, origins


def _distance(here: Array, first: Array, last: Array) -> Array:
    """Of pixels from a bar."""
    along = last - first
    share = np.clip(((here - first) @ along) / max(float(along @ along), 1e-12), 0.0, 1.0)
    return np.linalg.norm(here - first - share[..., None] * along, axis=-1)


def _paint(image: Array, distance: Array, thick: float, colour: tuple[int, int, int]) -> None:
    covered = np.clip(thick - distance + 0.5, 0.0, 1.0)
    image[..., :3] = np.where((covered > 0)[..., None], colour, image[..., :3])
    image[..., 3] = np.maximum(image[..., 3], (255 * covered).astype(np.uint8))


def png(image: Array) -> bytes:
    """A PNG of pixels with red, green, blue and opacity."""
    height, width, _ = image.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.tobytes() for row in image)
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts
