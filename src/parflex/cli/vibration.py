"""Command `frequencies`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parflex.cli import output
from parflex.cli.group import verb
from parflex.cli.output import Answer, Table
from parflex.errors import InputError

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Divided, LoadCase

STEP = ("elements", "coordinates", "change", "remaining")  # of a refinement, as people see it


@verb("vibration", "frequencies navaro --pose pose-3 --modes 5", "frequencies dualemps --converge 1e-3")
def frequencies(
    robot: Divided,
    case: LoadCase,
    *,
    pose: Any = None,
    modes: int | None = None,
    converge: float | None = None,
    convergence: str | None = None,
    shapes: bool = False,
) -> Answer:
    """Natural frequencies and modes of a robot with elastic bodies or springs."""
    from parflex import natural_frequencies
    from parflex.statics.modes import energy_shares, participation

    check_convergence(converge, convergence)
    result = natural_frequencies(robot, pose, modes, converge=converge, load_case=case)
    written = draw_convergence(result, convergence)
    shares, energy = participation(result.model.configuration, result.shapes), energy_shares(result)
    answer: dict[str, Any] = {
        "frequencies_hz": result.frequencies.tolist(),
        "free_motions": result.free_motions,
        "unstable_motions": result.unstable_motions,
        "damping": result.damping.tolist(),
        "kind": [mode["kind"] for mode in energy],
        "participation": shares,
        "energy": energy,
        "independent_coordinates": result.independent_coordinates,
        "about": result.about,
        "excess": result.excess.tolist(),
        "diagnostics": result.diagnostics,
    }
    if written:
        answer["files"] = written
    if result.model.loading.internal is not None:
        answer["internal"] = result.model.loading.internal
    if shapes:
        rates = result.model.robot.tree.rate_names
        answer["shapes"] = [dict(zip(rates, shape.tolist(), strict=True)) for shape in result.shapes.T]
    rows = [
        (k, float(f), float(d), mode["kind"] or "", _largest_shares(part))
        for k, (f, d, mode, part) in enumerate(zip(result.frequencies, result.damping, energy, shares, strict=True), 1)
    ]
    title = "natural frequencies" + (" about the equilibrium" if result.about == "equilibrium" else "")
    tables: list[Table] = [(title, ["mode", "Hz", "damping ratio", "kind", "strain energy"], rows)]
    if result.free_motions:
        tables.append(("motions without stiffness", ["moves most"], [(name,) for name in result.free_motions]))
    took = result.refinement
    if took is not None:
        answer |= {"elements": took.elements, "change": took.change, "remaining": took.remaining}
        answer |= {"converged": took.converged, "refinement": took.steps}
        steps = [["" if step[key] == float("inf") else step[key] for key in STEP] for step in took.steps]
        tables.append(
            ("refinement", ["elements in each of the file", "coordinates", "change", "error left, about"], steps)
        )
    code = 0 if took is None or took.converged else 1
    return Answer(answer, *tables, *output.written(*written), code=code)


def _largest_shares(part: dict[str, float]) -> str:
    largest = sorted(part.items(), key=lambda entry: -entry[1])[:3]
    return ", ".join(f"{name} {share:.0%}" for name, share in largest)


def check_convergence(converge: float | None, figure: str | None) -> None:
    """Refuse the figure of a refinement where nothing is refined."""
    if figure is not None and converge is None:
        hint = "give --converge R, or leave out --convergence"
        raise InputError("nothing is refined", key="convergence", value=figure, hint=hint)


def draw_convergence(refined: Any, figure: str | None) -> list[str]:
    """Draw the change with the elements, if a figure is named; return the files."""
    if figure is None:
        return []
    from parflex import draw_convergence as draw

    draw(refined, figure)
    return [figure]
