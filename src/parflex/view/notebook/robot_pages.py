"""Pages of robots and of robots at a pose: a picture, freedoms, motors, what is flexible."""

from __future__ import annotations

from parflex.robot.configuration import Configuration
from parflex.robot.limits import limit_warnings
from parflex.robot.robot import Robot, effort_units, freedoms_of
from parflex.view.notebook.html_parts import beside, card, names, notes, table, tidy
from parflex.view.notebook.line_pictures import robot_picture


def robot_page(robot: Robot) -> str:
    """A robot: picture at home, freedoms, motors with units, flexible bodies, what can be chosen."""
    here = Configuration(robot, robot.home)
    units, file = effort_units(robot), robot.description
    motors = [(name, *_at_home(robot, name), units[name]) for name in robot.actuated_names]
    said = [
        ("freedoms", freedoms_of(robot).replace(" freedoms", "").replace(" freedom", "")),
        ("motion", "planar" if robot.tree.planar else "spatial"),
        ("end effector", robot.tree.end_effector),
        ("flexible bodies", names(flexible_bodies(robot)) or "none: rigid"),
        ("elastic coordinates", str(len(robot.tree.elastic)) if robot.tree.elastic else ""),
        ("couplings", names([coupling.name for coupling in file.coupling])),
        ("sensors in passive joints", names(robot.sensed_names)),
        ("actuation", names([robot.actuation, *(n for n in file.actuation if n != robot.actuation)])),
        ("working mode", names([robot.working_mode, *(n for n in file.working_modes if n != robot.working_mode)])),
        ("poses", names(sorted({"home", *file.poses}))),
        ("motions", names(sorted(file.motions))),
    ]
    words = table([row for row in said if row[1]])
    motor_rows = table(motors, ["motor", "at home", "", "effort in"]) or "<div>no motors</div>"
    title = f"{robot.name}: {file.title}" if file.title else robot.name
    return card(title, beside(robot_picture(here), words, motor_rows), notes(robot.warnings))


def configuration_page(configuration: Configuration) -> str:
    """A robot at a pose: picture, coordinates, how near it is to a singularity."""
    robot, tree = configuration.robot, configuration.robot.tree
    rows = [(name, tidy(value)) for name, value in zip(tree.position_names, configuration.q, strict=True)]
    condition = configuration.condition
    numbers = [("platform, motors locked", condition.platform), ("closures", condition.closures)]
    numbers += [(f"leg {name}", value) for name, value in condition.legs.items()]
    told = table(rows, ["coordinate", "rad or m"])
    judged = table([(name, float(value)) for name, value in numbers], ["condition number of", ""])
    limits = [] if configuration.ignore_limits else limit_warnings(robot, configuration.q)
    return card(
        f"{robot.name} at a pose",
        beside(robot_picture(configuration), told, judged),
        notes([*limits, *condition.warnings()]),
    )


def flexible_bodies(robot: Robot) -> list[str]:
    """Names of the beams and of the bodies given by modes."""
    file = robot.description
    own = [frame.name for frame in file.frame if frame.beam or frame.modal or frame.superelement]
    return own + (
        ["platform"] if file.platform is not None and (file.platform.modal or file.platform.superelement) else []
    )


def _at_home(robot: Robot, motor: str) -> tuple[float, str]:
    """Position of a motor at home, and its unit."""
    rate = list(robot.tree.rate_names).index(motor)
    link = robot.tree.links[robot.tree.link_of_rate[rate]]
    return float(robot.home[link.q.start]), link.joint.unit
