"""Commands `inverse` and `direct`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parflex.cli import output
from parflex.cli.group import verb
from parflex.cli.output import Answer, Table
from parflex.cli.vocabulary import state_of

if TYPE_CHECKING:
    from parflex.cli.vocabulary import Robot

ACCELERATION_UNITS = "m/s2 or rad/s2"


@verb(
    "dynamics",
    "inverse delta --pose z=-0.45 --velocity x=1 --acceleration z=5 --payload 0.2,0,0,0",
    of="parflex.dynamics.dynamics:inverse_dynamics",
    omit=("form",),
)
def inverse(robot: Robot, *, state_file: str | None = None, **options: Any) -> Answer:
    """Efforts of the motors in a motion of the end effector or of joints."""
    from parflex.dynamics.dynamics import inverse_dynamics

    with state_of(state_file, options) as given:
        result = inverse_dynamics(robot, **given)
    answer = {
        "efforts": result.efforts,
        "elastic_accelerations": result.elastic_accelerations,
        "redundant_actuation": result.redundant_actuation,
    }
    columns = ["joint", "N or N m"]
    rows: list[Any] = [*result.efforts.items()]
    if result.internal is not None:
        answer["internal"] = result.internal
        columns, rows = [*columns, "internal"], [(*row, result.internal["efforts"][row[0]]) for row in rows]
    return _answer(answer, ("efforts", columns, rows), result)


@verb(
    "dynamics",
    "direct gough-stewart --effort leg1.3=800,leg2.3=700 --wrench platform=0,0,-100",
    of="parflex.dynamics.dynamics:forward_dynamics",
)
def direct(robot: Robot, *, state_file: str | None = None, **options: Any) -> Answer:
    """Accelerations under efforts of the motors."""
    from parflex.dynamics.dynamics import forward_dynamics

    with state_of(state_file, options) as given:
        result = forward_dynamics(robot, **given)
    answer = {"accelerations": _accelerations(result)}
    if result.elastic_accelerations:
        answer["elastic_accelerations"] = result.elastic_accelerations
    return _answer(answer, ("accelerations", ["", ACCELERATION_UNITS], answer["accelerations"].items()), result)


def _answer(answer: dict[str, Any], table: Table, result: Any) -> Answer:
    """Add what both models report: free motions, elements, diagnostics, reactions."""
    title, columns, values = table
    words = ("length", "rate", "force")
    elements = [(name, *(element[word] for word in words)) for name, element in (result.elements or {}).items()]
    tables: list[Table] = [
        (title, columns, output.rounded(values)),
        ("accelerations of what moves freely", ["", ACCELERATION_UNITS], output.rounded((result.free or {}).items())),
        ("elements", ["", *words], elements),
    ]
    answer |= {word: value for word, value in (("free", result.free), ("elements", result.elements)) if value}
    answer["diagnostics"] = result.diagnostics
    if result.reactions is not None:
        answer["reactions"] = result.reactions
        tables += _reaction_tables(result.reactions)
    return Answer(answer, *tables)


def _accelerations(result: Any) -> dict[str, Any]:
    """Return world accelerations of the end effector and of free bodies, and those of all joints."""
    tree = result.robot.tree
    pick = [0, 1, 5] if tree.planar else list(range(6))
    answer: dict[str, Any] = {}
    for link in tree.links:
        if link.joint.moves_freely:
            answer[link.name] = result.acceleration_of(link.name)[pick].tolist()
        elif link.joint.rate_labels:
            components = result.accelerations[link.v].tolist()
            answer[link.name] = components[0] if len(components) == 1 else components
    if tree.end_effector not in answer:
        answer[tree.end_effector] = result.acceleration_of()[pick].tolist()
    return answer


def _reaction_tables(reactions: Any) -> list[Table]:
    tables: list[Table] = []
    columns = ["", "fx", "fy", "fz", "mx", "my", "mz"]
    for kind in ("joints", "closures"):
        rows = [
            (f"{name} *" if reaction["undetermined"] else name, *reaction["force"], *reaction["moment"])
            for name, reaction in reactions[kind].items()
        ]
        legend = ", *: undetermined" if any(entry["undetermined"] for entry in reactions[kind].values()) else ""
        tables.append((f"reactions in {kind}{legend}", columns, output.rounded(rows)))
    gears = [
        (name, reaction["effort"], "yes" if reaction["undetermined"] else "")
        for name, reaction in reactions.get("couplings", {}).items()
    ]
    return [*tables, ("efforts of couplings", ["", "N or N m", "undetermined"], gears)]
