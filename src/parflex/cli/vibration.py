"""Verbs about vibration."""

from __future__ import annotations

from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.input import open_robot, read_pose_option, robot_options


@cli.command(epilog="\b\nExample:\n  parflex frequencies navaro --pose pose-3 --modes 5")
@robot_options
@click.option("--pose", "pose", metavar="NAME|KEY=VALUE,...", help="Pose of the file, or coordinates.")
@click.option("--modes", type=int, default=6, show_default=True, help="How many modes.")
@click.option("--elements", type=int, metavar="N", help="Cut every element of every beam into N.")
@click.option(
    "--lock", default="actuators", show_default=True, metavar="actuators|none|NAMES", help="Joints that stand still."
)
@click.option("--shapes", is_flag=True, help="Also the mode shapes over all coordinates.")
def frequencies(
    robot: str,
    as_json: bool,
    pose: str | None,
    modes: int,
    elements: int | None,
    lock: str,
    shapes: bool,
    **choice: Any,
) -> None:
    """Natural frequencies and modes of a robot with elastic bodies or springs."""
    from parflex.models.linear import natural_frequencies, participation

    loaded = open_robot(robot, elements=elements, **choice)
    names: Any = lock if lock in ("actuators", "none") else [word.strip() for word in lock.split(",")]
    found = natural_frequencies(loaded, read_pose_option(pose), modes, names)
    shares = participation(loaded, found.shapes)
    answer: dict[str, Any] = {
        "frequencies_hz": found.frequencies.tolist(),
        "free_motions": found.free_motions,
        "damping": found.damping.tolist(),
        "participation": shares,
        "independent_coordinates": found.independent_coordinates,
        "warnings": list(loaded.warnings),
    }
    if shapes:
        rates = loaded.tree.rate_names
        answer["shapes"] = [dict(zip(rates, shape.tolist(), strict=True)) for shape in found.shapes.T]
    rows = [
        (k + 1, float(f), float(d), ", ".join(f"{name} {share:.0%}" for name, share in _largest(part)))
        for k, (f, d, part) in enumerate(zip(found.frequencies, found.damping, shares, strict=True))
    ]
    tables: list[Any] = [("natural frequencies", ["mode", "Hz", "damping ratio", "strain energy"], rows)]
    if found.free_motions:
        tables.append(("motions without stiffness", ["moves most"], [(name,) for name in found.free_motions]))
    output.show(answer, as_json, *tables)


def _largest(part: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(part.items(), key=lambda entry: -entry[1])[:3]
