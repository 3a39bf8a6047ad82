"""Couplings in words: what holds them elastically, and what they lose."""

from __future__ import annotations

from parflex.closure.constraints import Coupling, coupling_row
from parflex.robot.robot import Robot
from parflex.tree.force_elements import CoupledSpring
from parflex.tree.tree import Tree

LOSSES = 49  # number of the equation of the losses


def loss_words(coupling: Coupling | CoupledSpring) -> str:
    """What a coupling loses."""
    if not coupling.lossy:
        return ""
    locked = " (self-locking)" if coupling.back <= 0 else ""
    return f"; efficiency {coupling.efficiency:.4g}, driven back {coupling.back:.4g}{locked}"


def spring_line(spring: CoupledSpring, tree: Tree) -> str:
    """An elastic coupling for people."""
    unit = "N/m" if tree.links[spring.numbers[0]].joint.unit == "m" else "N m/rad"
    parts = [f"stiffness {spring.stiffness:.4g} {unit}"]
    parts += [f"damping {spring.damping:.4g} {unit.replace('/', ' s/')}"] if spring.damping else []
    parts += [f"backlash {spring.play:.4g} {unit[-1:] if unit == 'N/m' else 'rad'}"] if spring.play else []
    parts += ["pulls only"] if spring.pulls_only else []
    return f"{coupling_row(spring, tree).equation}: {', '.join(parts)}{loss_words(spring)}"


def coupling_lines(robot: Robot) -> dict[str, str]:
    """What each coupling of a robot relates, and how it holds, by name."""
    rows = {row.name: row for row in robot.closures.constraints if isinstance(row, Coupling)}
    springs = {spring.name: spring_line(spring, robot.tree) for spring in robot.tree.springs}
    found = {}
    for name in (coupling.name for coupling in robot.description.coupling):
        line = f"{rows[name].equation}{loss_words(rows[name])}" if name in rows else springs[name]
        found[name] = line.removeprefix(f"{name}: ")
    return found
