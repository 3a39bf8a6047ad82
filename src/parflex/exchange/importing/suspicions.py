"""What looks wrong in a file of others though it can be read: units, bodies without mass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from parflex.exchange.importing.foreign_robot import ForeignRobot

LONG = 20.0  # m: no robot has such links
SPREAD = 3.0  # radius of gyration over the size of the robot; of a real body it is below one
WIDE = 25.0  # rad: limits of four turns are those of no robot, but 30 degrees are common


def suspicions(robot: ForeignRobot) -> list[str]:
    """Sentences on what to check."""
    return [*_units(robot), *_masses(robot)]


def _units(robot: ForeignRobot) -> Iterator[str]:
    places = [table.get("place", table) for table in [*robot.frame, *robot.point]]
    sizes = [size for place in places if (size := _size(place.get("position"))) is not None]
    centres = [size for table in robot.frame if (size := _size(table.get("inertia", {}).get("centre"))) is not None]
    longest = max([*sizes, *centres], default=0.0)
    if longest > LONG:
        yield f"lengths of {longest:.4g} m: are they millimetres? The file is in metres"
    scale = max(longest, 1e-3)
    for table in robot.frame:
        radius = _gyration(table.get("inertia", {}))
        if radius > SPREAD * scale and longest <= LONG:
            yield (
                f"the inertia of '{table['name']}' has a radius of gyration of {radius:.3g} m, but no length of the "
                f"robot is above {longest:.3g} m: is it in kg mm2 or g mm2?"
            )
            break
    wide = [
        table["name"]
        for table in robot.frame
        if table.get("joint") == "revolute" and max(map(_plain, table.get("limits", [0.0]))) > WIDE
    ]
    if wide:
        yield f"limits of more than {WIDE:g} rad: are they degrees? Joints {_few(wide)}"


def _masses(robot: ForeignRobot) -> Iterator[str]:
    if not any(_heavy(table) for table in robot.frame):
        yield "no body has an inertia: poses can be found, dynamics not; add inertia = { mass, centre, about_centre }"
        return
    owner = {table["name"]: table.get("parent", table.get("frame", "base")) for table in [*robot.frame, *robot.point]}
    felt: set[str] = set()
    ends = [end for kind in (robot.closure, robot.element) for table in kind for end in table["between"]]
    ends += [name for table in robot.coupling for name in (table["joint"], *table["terms"])]
    ends += [table["name"] for table in robot.frame if _heavy(table) or table.get("motor_inertia")]
    for name in ends:
        while name in owner and name not in felt:
            felt.add(name)
            name = owner[name]
    light = [name for name in robot.joints if name not in felt]
    if light:
        yield f"nothing with an inertia moves with {_few(light)}: direct dynamics needs one"


def _heavy(table: dict[str, Any]) -> bool:
    return any(
        value not in (0, 0.0) for key, value in table.get("inertia", {}).items() if key not in ("IA", "FV", "FS")
    )


def _size(values: Any) -> float | None:
    return float(np.linalg.norm([_plain(value) for value in values])) if isinstance(values, list) else None


def _plain(value: Any) -> float:
    """A number; what is an expression has no size yet."""
    return abs(value) if isinstance(value, int | float) else 0.0


def _gyration(inertia: dict[str, Any]) -> float:
    mass, entries = inertia.get("mass"), inertia.get("about_centre")
    if not isinstance(mass, int | float) or not mass > 0 or entries is None:
        return 0.0
    I = np.array(entries, dtype=float)
    return float(np.sqrt(max(np.abs(I).max(), 0.0) / mass))


def _few(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
