"""Commands about vibration."""

from __future__ import annotations

from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.options import condition_options, read_load_options, robot_options
from parflex.cli.output import check_convergence

STEP = ("elements", "coordinates", "change", "remaining")  # of a refinement, as people see it


@cli.command(
    epilog="\b\nExamples:\n  parflex frequencies navaro --pose pose-3 --modes 5\n"
    "  parflex frequencies dualemps --converge 1e-3"
)
@robot_options
@condition_options
@click.option("--modes", type=int, metavar="N", help="Number of modes; default: six, or all if there are fewer.")
@click.option(
    "--converge", type=float, metavar="R", help="Divide the elements of beams until no frequency asked for "
    "changes by more than this share; exit 1 if the limit is reached before.",
)  # fmt: skip
@click.option(
    "--convergence", metavar="FILE", help="Draw the change with the elements of --converge: .svg, .pdf or .png."
)
@click.option("--shapes", is_flag=True, help="Also print the mode shapes over all coordinates.")
def frequencies(
    robot: str,
    as_json: bool,
    modes: int | None,
    shapes: bool,
    converge: float | None,
    convergence: str | None,
    **options: Any,
) -> int:
    """Natural frequencies and modes of a robot with elastic bodies or springs."""
    from parflex import natural_frequencies
    from parflex.statics.modes import energy_shares, participation

    drawn = check_convergence(converge, convergence)
    loaded, pose, case = read_load_options(robot, options, loads_matter=False)
    result = natural_frequencies(loaded, pose, modes, converge=converge, load_case=case)
    written = drawn(result)
    about = result.about
    locked_robot = result.model.robot
    shares = participation(result.model.configuration, result.shapes)
    energy = energy_shares(result)
    answer: dict[str, Any] = {
        "frequencies_hz": result.frequencies.tolist(),
        "free_motions": result.free_motions,
        "unstable_motions": result.unstable_motions,
        "damping": result.damping.tolist(),
        "kind": [mode_energy["kind"] for mode_energy in energy],
        "participation": shares,
        "energy": energy,
        "independent_coordinates": result.independent_coordinates,
        "about": about,
        "excess": result.excess.tolist(),
        "diagnostics": result.diagnostics,
    } | ({"files": written} if written else {})
    steps: list[Any] = []
    if result.refinement is not None:
        took = result.refinement
        answer |= {"elements": took.elements, "change": took.change, "remaining": took.remaining}
        answer |= {"converged": took.converged, "refinement": took.steps}
        steps = [tuple(_known(step[key]) for key in STEP) for step in took.steps]
    if result.model.loading.internal is not None:
        answer["internal"] = result.model.loading.internal
    if shapes:
        rates = locked_robot.tree.rate_names
        answer["shapes"] = [dict(zip(rates, shape.tolist(), strict=True)) for shape in result.shapes.T]
    rows = [
        (
            k + 1,
            float(f),
            float(d),
            mode_energy["kind"] or "",
            ", ".join(f"{name} {share:.0%}" for name, share in _largest_shares(part)),
        )
        for k, (f, d, mode_energy, part) in enumerate(
            zip(result.frequencies, result.damping, energy, shares, strict=True)
        )
    ]
    title = "natural frequencies" + (" about the equilibrium" if about == "equilibrium" else "")
    tables: list[Any] = [(title, ["mode", "Hz", "damping ratio", "kind", "strain energy"], rows)]
    if result.free_motions:
        tables.append(("motions without stiffness", ["moves most"], [(name,) for name in result.free_motions]))
    if steps:
        head = ["elements in each of the file", "coordinates", "change", "error left, about"]
        tables.append(("refinement", head, steps))
    output.print_result(
        answer, as_json, *tables, *([("", ["written"], [(file,) for file in written])] if written else [])
    )
    return 0 if result.refinement is None or result.refinement.converged else 1


def _known(value: Any) -> Any:
    return "" if value == float("inf") else value


def _largest_shares(part: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(part.items(), key=lambda entry: -entry[1])[:3]
