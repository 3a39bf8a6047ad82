"""Commands `inverse` and `direct`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.options import (
    allocation_options,
    limits_option,
    open_robot,
    read_allocation,
    read_state,
    robot_options,
    state_file_in_errors,
    state_options,
)


def _solved(
    model: Callable[..., Any],
    third: str,
    robot: str,
    state_file: str | None,
    wrench: tuple[str, ...],
    without: str,
    reactions: bool,
    options: dict[str, Any],
    **more: Any,
) -> Any:
    """The result of a dynamic model; `third` is what it takes beside pose and velocity."""
    texts = {word: options.pop(word) for word in ("pose", "velocity", third)}
    state = read_state(state_file, wrench, without, **texts)
    loaded = open_robot(robot, **options)
    with state_file_in_errors(state_file, wrench=wrench, **texts):
        return model(
            loaded,
            state.get("pose"),
            state.get("velocity"),
            state.get(third),
            wrench=state["wrench"],
            without=state["without"],
            reactions=reactions,
            **more,
        )


def _show(answer: dict[str, Any], table: Any, result: Any, as_json: bool) -> None:
    title, columns, values = table
    tables = [(title, columns, output.rounded(values))]
    if result.free:
        answer["free"] = result.free
        rows = output.rounded([*result.free.items()])
        tables.append(("accelerations of what moves freely", ["", "m/s2 or rad/s2"], rows))
    if result.elements:
        answer["elements"] = result.elements
        rows = [
            (name, element["length"], element["rate"], element["force"]) for name, element in result.elements.items()
        ]
        tables.append(("elements", ["", "length", "rate", "force"], rows))
    answer["diagnostics"] = result.diagnostics
    if result.reactions is not None:
        answer["reactions"] = result.reactions
        tables += _reaction_tables(result.reactions)
    output.print_result(answer, as_json, *tables)


@cli.command(
    epilog="\b\nExample:\n  parflex inverse delta --pose z=-0.45 --velocity x=1 --acceleration z=5 --payload 0.2,0,0,0"
)
@robot_options
@state_options
@allocation_options
@limits_option
@click.option("--acceleration", metavar="KEY=VALUE,...", help="Accelerations with the same keys; frames in world axes.")
def inverse(
    robot: str,
    as_json: bool,
    state_file: str | None,
    wrench: tuple[str, ...],
    without: str,
    reactions: bool,
    ignore_limits: bool,
    **rest: Any,
) -> None:
    """Efforts of the motors in a motion of the end effector or of joints."""
    from parflex.dynamics.dynamics import inverse_dynamics

    more = read_allocation(rest) | {"ignore_limits": ignore_limits}
    result = _solved(inverse_dynamics, "acceleration", robot, state_file, wrench, without, reactions, rest, **more)
    answer = {
        "efforts": result.efforts,
        "elastic_accelerations": result.elastic_accelerations,
        "redundant_actuation": result.redundant_actuation,
    }
    columns, rows = ["joint", "N or N m"], [*result.efforts.items()]
    if result.internal is not None:
        answer["internal"] = result.internal
        columns, rows = [*columns, "internal"], [(*row, result.internal["efforts"][row[0]]) for row in rows]
    _show(answer, ("efforts", columns, rows), result, as_json)


@cli.command(
    epilog="\b\nExample:\n  parflex direct gough-stewart --effort leg1.3=800,leg2.3=700 --wrench platform=0,0,-100"
)
@robot_options
@state_options
@click.option("--effort", metavar="JOINT=VALUE,...", help="Motor efforts; those not named are zero.")
def direct(
    robot: str,
    as_json: bool,
    state_file: str | None,
    wrench: tuple[str, ...],
    without: str,
    reactions: bool,
    **rest: Any,
) -> None:
    """Accelerations under efforts of the motors."""
    from parflex.dynamics.dynamics import forward_dynamics

    result = _solved(forward_dynamics, "effort", robot, state_file, wrench, without, reactions, rest)
    accelerations = _accelerations(result)
    answer = {"accelerations": accelerations} | (
        {"elastic_accelerations": result.elastic_accelerations} if result.elastic_accelerations else {}
    )
    _show(answer, ("accelerations", ["", "m/s2 or rad/s2"], accelerations.items()), result, as_json)


def _accelerations(result: Any) -> dict[str, Any]:
    """World accelerations of the end effector and of free bodies, and those of all joints."""
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


def _reaction_tables(reactions: Any) -> list[Any]:
    tables = []
    for kind in ("joints", "closures"):
        rows = [
            (_mark_undetermined(name, reaction), *reaction["force"], *reaction["moment"])  # six numbers fill a line
            for name, reaction in reactions[kind].items()
        ]
        if rows:
            legend = (
                ", *: undetermined" if any(reaction["undetermined"] for reaction in reactions[kind].values()) else ""
            )
            columns = ["", "fx", "fy", "fz", "mx", "my", "mz"]
            tables.append((f"reactions in {kind}{legend}", columns, output.rounded(rows)))
    gears = [
        (name, reaction["effort"], "yes" if reaction["undetermined"] else "")
        for name, reaction in reactions.get("couplings", {}).items()
    ]
    if gears:
        tables.append(("efforts of couplings", ["", "N or N m", "undetermined"], gears))
    return tables


def _mark_undetermined(name: str, reaction: Any) -> str:
    return f"{name} *" if reaction["undetermined"] else name
