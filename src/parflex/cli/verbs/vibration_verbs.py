"""Verbs about vibration."""

from __future__ import annotations

from typing import Any

import click

from parflex.cli import output
from parflex.cli.conditions import condition_options, linear_model_of
from parflex.cli.group import cli
from parflex.cli.input import robot_options


@cli.command(epilog="\b\nExample:\n  parflex frequencies navaro --pose pose-3 --modes 5")
@robot_options
@condition_options
@click.option("--modes", type=int, metavar="N", help="Number of modes; default: six, or all if there are fewer.")
@click.option("--shapes", is_flag=True, help="Also print the mode shapes over all coordinates.")
def frequencies(robot: str, as_json: bool, modes: int | None, shapes: bool, **options: Any) -> None:
    """Natural frequencies and modes of a robot with elastic bodies or springs."""
    from parflex.models.elastic.linear_model import modes_of
    from parflex.models.elastic.participation import energy_shares, participation

    model, about = linear_model_of(robot, options)
    found = modes_of(model, modes)
    held = found.model.robot
    shares = participation(found.model.configuration, found.shapes)
    energy = energy_shares(found)
    answer: dict[str, Any] = {
        "frequencies_hz": found.frequencies.tolist(),
        "free_motions": found.free_motions,
        "unstable_motions": found.unstable_motions,
        "damping": found.damping.tolist(),
        "kind": [one["kind"] for one in energy],
        "participation": shares,
        "energy": energy,
        "independent_coordinates": found.independent_coordinates,
        "about": about,
        "warnings": [*held.warnings, *found.model.warnings],
    }
    if found.model.loading.internal is not None:
        answer["internal"] = found.model.loading.internal
    if shapes:
        rates = held.tree.rate_names
        answer["shapes"] = [dict(zip(rates, shape.tolist(), strict=True)) for shape in found.shapes.T]
    rows = [
        (k + 1, float(f), float(d), one["kind"] or "", ", ".join(f"{name} {share:.0%}" for name, share in _top(part)))
        for k, (f, d, one, part) in enumerate(zip(found.frequencies, found.damping, energy, shares, strict=True))
    ]
    title = "natural frequencies" + (" about the equilibrium" if about == "equilibrium" else "")
    tables: list[Any] = [(title, ["mode", "Hz", "damping ratio", "kind", "strain energy"], rows)]
    if found.free_motions:
        tables.append(("motions without stiffness", ["moves most"], [(name,) for name in found.free_motions]))
    output.show(answer, as_json, *tables)


def _top(part: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(part.items(), key=lambda entry: -entry[1])[:3]
