"""Parts of a robot that close by themselves at many poses, and what judges on which side of a singularity they are."""

from __future__ import annotations

from dataclasses import replace

from parflex.closure.constraints import Coupling
from parflex.closure.leg_geometry import Dyad, LegSign
from parflex.closure.newton import ClosurePart
from parflex.closure.targets import FrameTarget, Target
from parflex.closure.working_modes import determined_rates, select_rows
from parflex.maps.batches import Geometry
from parflex.maps.placing.given_coordinates import GivenCoordinates, NotGivenError
from parflex.maps.placing.leg_bodies import tilted
from parflex.maps.placing.steppers import ClosingRows, Stepper, dyad_judge, stepper

Closable = tuple[ClosurePart, list[int], list[ClosingRows]]


def closable_parts(geometry: Geometry, given: GivenCoordinates, target: Target) -> list[Closable]:
    """Parts of the robot with their rates and rows, where poses are closed together; an error says why not."""
    robot = geometry.robot
    place = robot.tree.places[robot.tree.end_effector]
    placed = [row for row in target.frames if isinstance(row, FrameTarget) and row.place is place]
    if len(placed) < len(target.frames) or bool(placed) != bool(given.asked):
        raise NotGivenError("some coordinates of the platform are given without the others")
    if geometry.designs is not None and any(set(row.position) != given.asked for row in placed):
        # a coordinate that is not named stays as it is at the home of each design
        raise NotGivenError("a coordinate of the end effector is not named, and each design has its own home")
    parts = robot.assembler.parts(target, robot.locked | frozenset(robot.deformations))
    if any(not all(isinstance(row, ClosingRows) for row in part.rows) for part in parts):
        raise NotGivenError("rods or other conditions are among the closures")
    if not given.asked and any(isinstance(row, Coupling) for part in parts for row in part.rows):
        # motors may turn many times what they drive: short steps would end on the way
        raise NotGivenError("gears are among the closures")
    found: list[Closable] = []
    for part in parts:
        rates = [int(k) for k in part.columns]
        loops = [row for row in part.rows if isinstance(row, ClosingRows)]
        if not rates:
            continue
        if any(robot.tree.links[robot.tree.link_of_rate[k]].joint.pitch for k in rates):
            raise NotGivenError("screws are among the closures")  # they turn many times: short steps end on the way
        if len(determined_rates(robot.tree, rates, loops, robot.home, robot.preference)) < len(rates):
            raise NotGivenError("the coordinates leave motions free, and the nearest pose to home is found")
        found.append((part, rates, loops))
    return found


def closing_parts(geometry: Geometry, given: GivenCoordinates, target: Target) -> tuple[list[Stepper], list[Stepper]]:
    """Steps of the parts of the robot, and those that judge on which side of a singularity they are."""
    robot = geometry.robot
    steppers: list[Stepper] = []
    judges: list[Stepper] = []
    for part, rates, loops in closable_parts(geometry, given, target):
        sides = robot.assembler.judges(part, robot.home)
        judged, around = sides.own, sides.legs
        moved = tilted(geometry, loops, rates, judged.dyads)
        settled = robot.assembler.settled(part, robot.home) and not moved
        # where designs move axes that cross at home, numbers of a leg tell nothing: its determinant does
        told = [one for one in judged.dyads if isinstance(one, Dyad) or not moved]
        by_numbers = sides.by_legs or any(isinstance(one, LegSign) for one in told)
        picked = select_rows(robot.tree, loops, part.held, robot.assembler.block(robot.home, part))
        chosen = None if picked is None or by_numbers else picked.tolist()
        own_steps = stepper(geometry, loops, rates, chosen, judged=not by_numbers)
        steppers.append(replace(own_steps, settled=settled, folds=sides.folds))
        # as where one pose is assembled: the whole part is judged where it is solved, legs as if the platform stood
        found = [(one, sides.folds) for one in judged.blocks if len(one.columns) < len(rates)]
        found += [(one, False) for leg in around for one in leg.blocks if {*one.columns.tolist()} != {*rates}]
        for one, folds in found:
            own = [row for row in one.rows if isinstance(row, ClosingRows)]
            made = stepper(geometry, own, [int(k) for k in one.columns], one.picked.tolist())
            judges.append(replace(made, folds=folds))
        judges += [replace(dyad_judge(geometry, dyad), folds=sides.folds) for dyad in told]
        judges += [dyad_judge(geometry, dyad) for leg in around for dyad in leg.dyads]
    return steppers, judges
