"""A robot as a whole: whether its poses assemble, and what is unusual about it."""

from __future__ import annotations

from parflex.models.configuration import configure
from parflex.models.frames_and_jacobians import counts
from parflex.models.limits import limit_warnings
from parflex.models.robot import Robot
from parflex.records import counted


def unusual(robot: Robot) -> list[str]:
    """Sentences on what a user should check; raises where a pose of the file cannot be assembled."""
    notes = [*robot.warnings, *robot.start_warnings()]
    for name in ["home", *robot.description.poses]:
        configuration = configure(robot, name)
        notes += [
            f"pose {name}: {text}"
            for text in (*limit_warnings(robot, configuration.q), *configuration.condition.warnings())
        ]
    if robot.mobility.home_rank < robot.mobility.rank:
        notes.append(
            "home is a singular pose of the closures: the robot has more degrees of freedom there than elsewhere"
        )
    numbers = counts(robot)
    if numbers["redundant_closures"]:
        names = ", ".join(numbers["names"]["redundant_closures"])
        redundant = counted(numbers["redundant_closures"], "closure row is", "closure rows are")
        notes.append(f"over-constrained: {redundant} redundant ({names})")
    return list(dict.fromkeys(notes))
