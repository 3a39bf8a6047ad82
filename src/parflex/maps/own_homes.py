"""Parameter sets whose home is that of the loaded robot: their poses are those reached from their own home."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parflex.cache import cached
from parflex.closure.assembler import LEFT
from parflex.closure.continuation import position_units
from parflex.closure.newton import STRIDE
from parflex.codegen.llvm_jit import Kernel
from parflex.maps.home_loop import HomeProof, proved_homes
from parflex.maps.home_rows import ALIKE, NEARER, HomeRows, home_rows
from parflex.maps.newton import ASKED, JoinedSteps, LoopPart, joined_outputs
from parflex.records import Record

if TYPE_CHECKING:
    from parflex.maps.positions import PositionSolver

Array = np.ndarray
UNKNOWN = -1.0  # below any distance
WELL_NEAR = 0.5  # of how far motors may be: where those of the file are farther, some of designs will be too far


@dataclass(frozen=True, eq=False, repr=False)
class JudgedHomes(Record):
    """What tells of homes of designs whether they stand as that of the file."""

    judge: Kernel
    proof: HomeProof
    start: Array  # what is alike in the rows of all designs


def homes_elsewhere(solver: PositionSolver) -> Array:
    """Which designs stand at home on other sides of their singularities than the robot as it was loaded, or may.

    Each is followed from its start: designs that are few, or near to each other, are no other case.
    """
    geometry = solver.geometry
    assert geometry.designs is not None
    count = len(geometry.designs.alone)
    if not geometry.varied or not solver.robot.closures.size:
        return np.zeros(count, dtype=bool)
    homes = home_rows(geometry)
    if homes is None:
        return np.ones(count, dtype=bool)
    sure = as_the_file(solver, homes)
    left = np.flatnonzero(~sure)
    if len(left):
        sure[left] = followed(solver, homes, left)
    return ~sure


def followed(solver: PositionSolver, homes: HomeRows, designs: Array) -> Array:
    """Which of some designs stand at home as the file, row by row."""
    geometry = solver.geometry
    q, sure = homes(designs)
    if solver.given.asked:
        first = len(geometry.kept) + len(geometry.varied)
        q[:, first : first + len(ASKED)] = solver.given.place_at_home
    sure &= solver.on_sides(q)
    if solver.unsettled.size:  # one side has several assemblies
        sure &= ~solver.jumped(q[-1:].repeat(len(q), axis=0), q)
    return sure[:-1]


def as_the_file(solver: PositionSolver, homes: HomeRows) -> Array:
    """Which designs surely stand at home as the file, by machine code; what that cannot tell is left."""
    geometry, designs = solver.geometry, solver.geometry.designs
    assert designs is not None
    count, joined, parts = len(designs.alone), solver.joined, (*solver.steppers, *solver.judges)
    step, *kernels = (one.program.kernel(count) for one in (homes.steps, *solver.steppers))
    if step is None or joined is None or None in kernels or any(one.rows for one in parts):
        return np.zeros(count, dtype=bool)
    owners = homes.steps.program.program, joined
    judged = cached("homes of designs", "judge", lambda: _judged_homes(solver, homes, joined), owners)
    if judged is None:
        return np.zeros(count, dtype=bool)
    begin, numbers = homes.begin, geometry.all_numbers
    more = [k for _, k in (*begin.moved, *begin.asked)]
    if more:
        numbers = np.concatenate([numbers, designs.columns(more)], axis=1)
    return proved_homes(step, judged.judge, judged.proof, judged.start, np.ascontiguousarray(numbers))


def _judged_homes(solver: PositionSolver, homes: HomeRows, joined: JoinedSteps) -> JudgedHomes | None:
    """What tells of homes of designs; None where the file's own home is found otherwise."""
    geometry, begin, steps, robot = solver.geometry, homes.begin, homes.steps, homes.begin.robot
    (nominal,), (found,) = homes(np.zeros(0, dtype=int))
    if not found:
        return None
    judge, taken = _judge_of(homes, joined)
    behind, near = len(geometry.kept) + len(geometry.varied), solver.unsettled
    start = np.zeros((1, behind + 2 * len(ASKED)))
    start[:, : len(geometry.kept)] = begin.q[geometry.kept]
    homes.put_place(start[:, : behind + len(ASKED)], None)
    if solver.given.asked:
        start[:, behind + len(ASKED) :] = solver.given.place_at_home
    more = [column for column, _ in begin.moved] + [behind + axis for axis, _ in begin.asked]
    numbers, places = [*range(len(geometry.kept), behind), *more], {int(k): n for n, k in enumerate(geometry.kept)}
    asked = robot.assembler.signs
    proof = HomeProof(
        *(start[0, steps.columns], steps.columns, _whole(numbers), steps.inputs, steps.moving),
        *(taken, np.array([one.side for one in (*solver.steppers, *solver.judges)], dtype=float)),
        *(near, nominal[near], STRIDE * position_units(geometry.tree)[near]),
        *(_whole([places[k] for k in asked]), np.array([1.0 if sign == "+" else -1.0 for sign in asked.values()])),
        _whole([k in robot.assembler.turning for k in asked]),
        *_motors(homes, nominal),
    )
    return JudgedHomes(judge, proof, start[0])


def _motors(homes: HomeRows, nominal: Array) -> tuple[Array | float, ...]:
    """Motors that the file starts, what moves beside them where these end far from there, and other assemblies."""
    kept = homes.geometry.kept
    start, own = homes.begin.q[kept][None], nominal[None, : len(kept)]
    motors, movers, away = [], [], []
    for number, columns in enumerate(homes.motors):
        motors += [(column, number) for column in columns]
        away.append(UNKNOWN)
        if homes.away_from(own, start, columns)[0] >= WELL_NEAR * LEFT:
            others = homes.other_assemblies(number)
            away[-1] = min((float(homes.away_from(one[None], start, columns)[0]) for one in others), default=np.inf)
            movers += [(column, number) for column in homes.moved_in(number)]
    (first, of_first), (second, of_second) = (_whole(some).reshape(-1, 2).T.copy() for some in (motors, movers))
    units = [1.0 / homes.units(columns.tolist()) for columns in (first, second)]
    found = (first, units[0], of_first, second, units[1], of_second, homes.geometry.home[second])
    return *found, LEFT, np.array(away), ALIKE, NEARER


def _whole(numbers: list) -> Array:
    """An array of whole numbers."""
    return np.array(numbers, dtype=np.int64)


def _judge_of(homes: HomeRows, joined: JoinedSteps) -> tuple[Kernel, Array]:
    """A program that tells the opening of all loops at home and the sides of all parts; columns that it takes.

    What judges ask for of a place on joints is in columns of its own, behind those by which homes are closed.
    """
    behind = len(homes.geometry.kept) + len(homes.geometry.varied)
    shifted = np.where(joined.inputs < behind, joined.inputs, joined.inputs + len(ASKED))
    sides = LoopPart(joined.kernel.program, shifted, joined.moving)
    return joined_outputs([(homes.steps.part, [0]), (sides, [own.stop - 1 for own in joined.told])])
