"""Newton steps on loops for many poses at once, and what tells on which side of a singularity these are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.closure import mobility
from parflex.closure.constraints import Coupling, Loop
from parflex.closure.leg_geometry import Dyad, LegSign
from parflex.closure.targets import FrameTarget
from parflex.codegen.optimise import make_program
from parflex.maps.batches import BatchProgram, CarriedLinks, Geometry, rigid_tree
from parflex.maps.placing.closing_loop import SHARP, LoopPart, close_rows
from parflex.records import Record
from parflex.recursion.kinematics import jacobians, pose
from parflex.spatial.linear import solve
from parflex.spatial.rotations import quaternion_matrix, rotation_about
from parflex.symbolic.expression import Graph
from parflex.tree.tree import Tree

Array = np.ndarray
ClosingRows = Loop | FrameTarget | Coupling
STRIDE = 0.5  # Newton steps are kept below this angle (sliding: this share of the typical length)
POLISH = 1e-7  # opening from which one more Newton step goes to rounding
EXPANDED = 7  # rows up to which determinants are expanded: the terms of larger ones are too many
ASKED = ["x", "y", "z", "theta", "qw", "qx", "qy", "qz"]  # of a place on joints: columns behind all others


@dataclass(frozen=True, eq=False, repr=False)
class Stepper(Record):
    """Newton steps on some loops by some joints, for many poses at once."""

    inputs: Array  # positions of the rigid tree that the program takes
    moving: Array  # which of the inputs move
    program: BatchProgram
    side: float  # sign of the determinant at home: the working mode
    size: float  # of the determinant at home
    rows: int = 0  # of the matrix that the program gives in the place of its determinant
    settled: bool = True  # whether the side tells its assemblies apart
    folds: bool = False  # whether the side may be that of a coordinate that folds, and tells no working mode

    @property
    def columns(self) -> Array:
        """Positions that move."""
        return self.inputs[self.moving]

    @property
    def part(self) -> LoopPart:
        """What joins it with others."""
        return LoopPart(self.program.program, self.inputs, self.moving)

    def judge(self, q: Array, todo: Array) -> tuple[Array, Array]:
        """Opening and determinant at positions as they are; rows that are not in `todo` have none."""
        kernel = self.program.kernel(len(q))
        if kernel is not None:
            return self.judged(close_rows(kernel, q, todo, self.inputs, self.moving, 0, POLISH))
        opening, side = np.full(len(q), np.nan), np.full(len(q), np.nan)
        found = self.program(q[todo[:, None], self.inputs])
        opening[todo], side[todo] = self.judged(found[:, len(self.moving) :])
        return opening, side

    def judged(self, found: Array) -> tuple[Array, Array]:
        """Opening, and determinant times its home sign, from what the program gives behind new positions."""
        return np.sqrt(found[:, 0]), self.sided(found)

    def sided(self, found: Array) -> Array:
        """The determinant alone."""
        if not self.rows:
            return found[:, -1] * self.side
        matrix = found[:, 1:].reshape(len(found), self.rows, self.rows)
        with np.errstate(invalid="ignore"):
            return np.linalg.det(matrix) * self.side

    def solve(self, q: Array, todo: Array, steps: int = 40) -> tuple[Array, Array]:
        """Newton in place on the rows `todo`; gives the remaining opening in typical lengths, and the determinant.

        The determinant is positive on the side of home. Rows that are not asked for have neither.
        """
        kernel = self.program.kernel(len(q))
        if kernel is not None:
            return self.judged(close_rows(kernel, q, todo, self.inputs, self.moving, steps, POLISH))
        rows, moved = q[:, self.inputs], len(self.moving)
        opening, side = np.full(len(q), np.nan), np.full(len(q), np.nan)
        active, polished = todo, np.zeros(len(q), dtype=bool)
        for _ in range(steps):
            given = self.program(rows[active])
            found, (opening[active], side[active]) = given[:, :moved], self.judged(given[:, moved:])
            whole = np.isfinite(found).all(axis=1) & np.isfinite(opening[active]) & np.isfinite(side[active])
            going = (~polished[active] | (opening[active] > SHARP)) & whole
            polished[active] = opening[active] < POLISH
            active = active[going]
            if not len(active):
                break
            rows[active[:, None], self.moving] = found[going]
        q[:, self.inputs] = rows
        return opening, side


def stepper(
    geometry: Geometry,
    rows: Sequence[ClosingRows],
    rates: Sequence[int],
    picked: Sequence[int] | None = None,
    judged: bool = True,
) -> Stepper:
    """Steps of the joints with the given rates (numbers of the robot) on rows, by `picked` ones; made once.

    Where it is not `judged` by its determinant, it has none, and steps are those of least squares on all rows.
    """
    used = None if picked is None else tuple(int(k) for k in picked)
    key = (tuple(map(id, rows)), tuple(int(k) for k in rates), used, judged)  # loops live as long as the robot
    if key not in geometry._steppers:
        geometry._steppers[key] = _stepper(geometry, rows, rates, used, judged)
        geometry._asked += [row for row in rows if isinstance(row, FrameTarget)]  # which live as long as the steps
    return geometry._steppers[key]


def _stepper(
    geometry: Geometry,
    closing: Sequence[ClosingRows],
    rates: Sequence[int],
    rows_used: tuple[int, ...] | None,
    judged: bool,
) -> Stepper:
    whole, L = geometry.tree, geometry.tree.length
    ends = [link for row in closing for link in row.ends]
    branch, (graph, robot) = CarriedLinks(whole, ends), geometry.traced()
    traced = CarriedLinks(rigid_tree(robot.tree), ends)
    own_rows, traced_rows = geometry.robot.closures.rows, robot.closures.rows
    named: dict[int, Any] = {id(plain): row for plain, row in zip(own_rows, traced_rows, strict=True)}
    tree, q = branch.tree, branch.symbols(graph)
    plain: list[ClosingRows] = []
    loops: list[ClosingRows] = []
    asked: list[str] = []
    for row in closing:
        if isinstance(row, Loop):
            plain.append(branch.moved(row))
            loops.append(branch.moved(named.get(id(row), row)))
        elif isinstance(row, Coupling):
            plain.append(branch.coupled(row))
            loops.append(branch.coupled(named.get(id(row), row)))
        else:  # what it asks for are further numbers of every row
            asked = ASKED
            plain.append(branch.placed(row, row.place))
            loops.append(
                traced.placed(asked_by_symbols(graph, row, whole.planar), robot.tree.places[whole.end_effector])
            )
    own = np.searchsorted(branch.rates, [geometry.rate(k) for k in rates])
    units = geometry.rate_units[branch.rates][own]
    links = sorted({tree.link_of_rate[k] for k in own})
    moving = np.array([i for j in links for i in range(tree.links[j].q.start, tree.links[j].q.stop)], dtype=int)
    residual, J = rows_of(traced.tree, loops, q, own)
    _, home = rows_of(tree, plain, geometry.home[branch.positions], own)
    metres = np.concatenate([row.scale(L) for row in plain])
    best = mobility.choose_partition(
        metres[:, None] * home * (units / L), np.arange(len(own)), len(own), np.ones(len(own))
    ).rows
    picked = best if rows_used is None else np.array(rows_used)
    step = solve(J[picked], -residual[picked]) if judged or len(J) == len(own) else least_squares(J, residual, metres)
    length = sum((value / unit) ** 2 for value, unit in zip(step, units, strict=True))
    increment = np.zeros(tree.n, dtype=object)
    increment[own] = step / np.sqrt(1 + length / STRIDE**2)  # short steps stay as they are to second order
    opening = sum((value * unit / L) ** 2 for value, unit in zip(residual, metres, strict=True))
    opening = opening + sum(
        row.turned_away(pose(traced.tree, q)) ** 2 for row in loops if not isinstance(row, Coupling)
    )
    size = len(picked) if len(picked) > EXPANDED else 0
    outputs = {
        "q": tree.moved(q, increment)[moving],
        "opening": np.array([opening], dtype=object),
        "determinant": J[picked].ravel() if size else np.array([determinant(J[picked])], dtype=object),
    }
    here = float(np.linalg.det(home[picked]))
    if not judged:
        outputs["determinant"], here, size = np.ones(1), 1.0, 0
    program = BatchProgram(make_program(graph, "closing", outputs, quick=True), geometry.compiled)
    behind = len(geometry.kept) + len(geometry.varied)
    inputs = np.concatenate([geometry.inputs(branch.positions), behind + np.arange(len(asked))])
    return Stepper(inputs, moving + len(geometry.varied), program, float(np.sign(here)), abs(here), size)


def least_squares(J: Array, residual: Array, metres: Array) -> Array:
    """The step that closes all rows, of which some repeat others: any choice of them is singular somewhere."""
    rows = metres[:, None] * J
    return solve(rows.T @ rows, -(rows.T @ (metres * residual)))


def dyad_judge(geometry: Geometry, dyad: Dyad | LegSign) -> Stepper:
    """What tells the side of a dyad, or of a leg in space: it moves nothing."""
    whole, (graph, robot) = geometry.tree, geometry.traced()
    ends = list(dyad.ends)
    if isinstance(dyad, Dyad):
        ends += [link for pivot in dyad.pivots if pivot.loop is not None for link in pivot.loop.ends]
    plain, traced = CarriedLinks(whole, ends), CarriedLinks(rigid_tree(robot.tree), ends)
    named = {id(loop): own for loop, own in zip(geometry.robot.closures.loops, robot.closures.loops, strict=True)}
    own, at = traced.carried(dyad, lambda loop: named[id(loop)]), pose(traced.tree, traced.symbols(graph))
    sine = np.array([own.sine(traced.tree, at)], dtype=object)
    here = plain.carried(dyad, lambda loop: loop).sine(plain.tree, pose(plain.tree, geometry.home[plain.positions]))
    outputs = {"opening": np.zeros(1), "determinant": sine}
    program = BatchProgram(make_program(graph, "closing", outputs, quick=True), geometry.compiled)
    return Stepper(geometry.inputs(plain.positions), np.zeros(0, dtype=int), program, dyad.side, abs(float(here)))


def asked_by_symbols(graph: Graph, target: FrameTarget, planar: bool) -> FrameTarget:
    """The target with symbols in the place of what it asks for."""
    symbols = {word: graph.symbol(f"asked[{word}]") for word in ASKED}
    position: dict[int, Any] = {axis: symbols[ASKED[axis]] for axis in target.position}
    rotation = None
    if target.rotation is not None:
        turned = np.array([symbols[word] for word in ASKED[4:]], dtype=object)
        rotation = rotation_about(2, symbols["theta"]) if planar else quaternion_matrix(turned)
    return replace(target, position=position, rotation=rotation)


def rows_of(tree: Tree, loops: Sequence[ClosingRows], q: Array, columns: Array) -> tuple[Array, Array]:
    """Openings of loops and their rows for some rates."""
    at = pose(tree, q)
    links = jacobians(tree, at)
    residual = np.concatenate([loop.linear_residual(at) for loop in loops])
    return residual, np.concatenate([loop.jacobian(tree, at, links) for loop in loops])[:, columns]


def determinant(matrix: Array) -> object:
    """By expansion along the row with the fewest entries: short for the sparse blocks of legs, over any scalar."""
    if len(matrix) == 1:
        return matrix[0, 0]
    full = [
        [k for k, entry in enumerate(row) if not (isinstance(entry, (int, float)) and entry == 0)] for row in matrix
    ]
    i = min(range(len(matrix)), key=lambda row: len(full[row]))
    total: object = 0.0
    rest = np.delete(matrix, i, axis=0)
    for k in full[i]:
        total = total + (-1) ** (i + k) * matrix[i, k] * determinant(np.delete(rest, k, axis=1))
    return total
