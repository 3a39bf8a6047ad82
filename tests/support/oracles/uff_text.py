"""Frequency responses as text of universal files, dataset 58, from its format alone; complex, double, even or not."""

from collections.abc import Sequence

import numpy as np

Array = np.ndarray
DIRECTIONS = {"x": 1, "y": 2, "z": 3, "rx": 4, "ry": 5, "rz": 6}


def dataset(
    f: Array, values: Array, response: tuple[str, int, int], reference: tuple[str, int, int], even: bool
) -> str:
    """One response: (entity, node, direction) of its two ends."""
    lines = ["    -1", "    58", "hammer test", "NONE", "16-NOV-26 12:00:00", "NONE", "NONE"]
    ends = [f" {entity:<10.10s}{node:10d}{direction:4d}" for entity, node, direction in (response, reference)]
    lines.append(f"{4:5d}{1:10d}{1:5d}{0:10d}" + "".join(ends))
    start, step = (f[0], f[1] - f[0]) if even else (0.0, 0.0)
    lines.append(f"{6:10d}{len(f):10d}{int(even):10d}{start:13.5E}{step:13.5E}{0.0:13.5E}")
    lines.append(f"{18:10d}{0:5d}{0:5d}{0:5d} {'Frequency':<20s} {'Hz':<20s}")
    lines.append(f"{12:10d}{0:5d}{0:5d}{0:5d} {'Acceleration':<20s} {'m/s^2':<20s}")
    lines.append(f"{13:10d}{0:5d}{0:5d}{0:5d} {'Force':<20s} {'N':<20s}")
    lines.append(f"{0:10d}{0:5d}{0:5d}{0:5d} {'NONE':<20s} {'NONE':<20s}")
    if even:
        numbers = [f"{part:20.11E}" for value in values for part in (value.real, value.imag)]
        lines += ["".join(numbers[k : k + 4]) for k in range(0, len(numbers), 4)]
    else:
        lines += [f"{x:13.5E}{value.real:20.11E}{value.imag:20.11E}" for x, value in zip(f, values, strict=True)]
    return "\n".join([*lines, "    -1"]) + "\n"


def universal_file(
    f: Array, values: Array, outputs: Sequence[str], force: str, nodes: dict[str, int], even: bool = True,
    flipped: str = "", named: bool = False,
) -> str:  # fmt: skip
    """All responses to one force; sensors are FRAME.x, one of them may be mounted the other way round."""
    text = "    -1\n   151\nmodel\nNONE\nNONE\nNONE\nNONE\nNONE\nNONE\n    -1\n"  # a header, which readers skip
    for row, output in zip(values, outputs, strict=True):
        sign = -1 if output == flipped else 1
        ends = []
        for name, turned in ((output, sign), (force, 1)):
            frame, _, part = name.rpartition(".")
            ends.append((frame if named else "NONE", nodes.get(frame, 1), turned * DIRECTIONS[part]))
        text += dataset(f, sign * row, ends[0], ends[1], even)
    return text
