"""Efforts in couplings and what they lose in a motion, for the columns and balances of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.closure.constraints import Coupling
from parflex.closure.mobility import rank, scaled_jacobian
from parflex.codegen.traces.element_signals import row_multipliers
from parflex.robot.robot import Robot

Array = np.ndarray
OPEN_SHARE = 1e-9  # of a row in a combination of multipliers that acts on nothing, above rounding


def lossy(robot: Robot) -> bool:
    """Whether a rigid coupling loses power."""
    return any(isinstance(row, Coupling) and row.lossy for row in robot.closures.constraints)


def lost_forces(
    robot: Robot, independent: Sequence[int], rows: Sequence[int], q: Any, qd: Array, effort: Array,
    wrenches: dict[str, Array],
) -> Any:  # fmt: skip
    """Forces of the losses of rigid couplings along all rates, under efforts and wrenches; zero where there are none.

    `rows` of the closures give the rates that are not `independent`; none: those that do it best at home.
    """
    if not lossy(robot):
        return 0.0
    from parflex.formulations.base import ModelRequest
    from parflex.formulations.choice import choose  # which few runs need

    names = tuple(robot.tree.rate_names[k] for k in sorted(independent))
    form: Any = choose(robot, ModelRequest("losses", independent=names, rows=tuple(int(row) for row in rows)))
    return form.moving(q, qd[form.independent], wrenches).pushed(effort)[1]


def coupling_signals(
    robot: Robot, at: Any, qd: Array, qdd: Array, chosen: tuple[Sequence[int], Sequence[int]], effort: Array,
    wrenches: dict[str, Array], lost: Any,
) -> dict[str, Array]:  # fmt: skip
    """The effort of each coupling on its joint, where it is determined.

    `chosen` are dependent rates and the rows of the closures that give them; `lost` are forces of losses.
    """
    found = {spring.name: -spring.effort(at.q, qd) for spring in robot.tree.springs}
    held = _determined(robot)
    if held:
        multipliers = row_multipliers(robot, at, qd, qdd, chosen, effort, wrenches, lost)
        found |= {name: multipliers[row] for name, row in held.items() if row in multipliers}
    words = [coupling.name for coupling in robot.description.coupling if coupling.name in found]
    return {f"coupling.{name}.effort": np.array([found[name]], dtype=object) for name in words}


def _determined(robot: Robot) -> dict[str, int]:
    """Rows of rigid couplings whose effort the motion says: nothing else holds the same."""
    parts = zip(robot.closures.slices(), robot.closures.rows, strict=True)
    found = {row.name: part.start for part, row in parts if isinstance(row, Coupling)}
    if not found or not robot.mobility.redundant:
        return found
    rows = scaled_jacobian(robot.closures, robot.home)[:, robot.free]
    U = np.linalg.svd(rows)[0][:, rank(rows) :]
    return {name: row for name, row in found.items() if np.abs(U[row]).max(initial=0.0) <= OPEN_SHARE}
