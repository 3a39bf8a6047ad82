"""The equilibrium that loads reach from one pose, by the solver of static equilibria.

Slack cables and couplings inside their backlash have no stiffness. The equilibrium is then found with springs in their
place, which push and pull, and accepted if it is one of the robot itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parflex.closure.newton import CLOSED
from parflex.errors import SingularError
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.recursion.energy import distance
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.statics.equilibrium_solver import Equilibria, States, find_equilibria, find_on_flanks, is_positive
from parflex.statics.linear_system import StiffnessSolver, moving_names, rate_units
from parflex.statics.loads import AppliedLoads, tangent_stiffness
from parflex.statics.small_deformation import element_advice

Array = np.ndarray

CLOSING = 12  # Newton steps that close the loops after a step: more are needed only where the step was far too long


class PoseStatics:
    """A robot at one pose under its loads, as the solver of static equilibria takes it."""

    def __init__(self, robot: Robot, loading: AppliedLoads, bare: AppliedLoads | None = None, held: Any = 0.0) -> None:
        self.robot, self.loading, self.bare, self.held = robot, loading, bare, held
        self.rate_units = robot.tree.rate_units

    def states(self, q: Array, share: Array, rows: Array) -> States:
        """Return the state at a position under a share of the loads; the independent rates are chosen there."""
        here, part = Configuration(self.robot, q[0]), float(share[0])
        units, loading, load = rate_units(here), self.loading, np.zeros(self.robot.tree.n)
        acting = loading.forces(here)
        if self.bare is not None:
            least = self.bare.forces(here) - self.held
            acting, load = part * acting + (1 - part) * least, acting - least
            if self.bare is not loading:
                wrench = {frame: part * np.asarray(values) for frame, values in loading.wrench.items()}
                loading = replace(loading, wrench=wrench, weight=part)
        K = tangent_stiffness(here, loading, acting=acting) * np.outer(units, units)
        force, load = (here.reduction.forces(forces) * units for forces in (acting, load))
        good = np.array([np.isfinite(K).all() and np.isfinite(force).all()])
        motions = here.J * units
        return States(here.reduction.partition, q, motions[None], K[None], force[None], load[None], good)

    def mass(self, states: States, row: int) -> Array:
        """Return the mass matrix in independent rates without units."""
        tree, motions = self.robot.tree, states.motions[row]
        return motions.T @ tree_mass_matrix(tree, Configuration(self.robot, states.q[row]).at) @ motions

    def moved(self, states: States, x: Array) -> tuple[Array, Array]:
        """Return the position after a motion, and whether its loops close."""
        q, error = closed_motion(self.robot, states.q[0], states.motions[0] @ x[0], states.partition.dependent)
        return q[None], np.array([error <= CLOSED])

    def released(self, q: Array, loads_hold: bool) -> PoseStatics:
        """Return the model whose tension at the pose is released while the loads grow."""
        loading = self.loading
        bare = loading if loads_hold else replace(loading, wrench={}, tau=np.zeros_like(loading.tau), weight=0.0)
        return PoseStatics(self.robot, loading, bare, bare.forces(Configuration(self.robot, q[0])))

    def stretch(self, q: Array) -> tuple[Array, Array]:
        """Return the stretch of the couplings from the middle of their backlash, and half of the backlash."""
        springs = [spring for spring in self.robot.tree.springs if spring.play]
        return np.array([[float(s.stretch(q[0])) for s in springs]]), np.array([[s.play / 2 for s in springs]])

    def on_flanks(self, q: Array, flanks: Array) -> tuple[PoseStatics, Array]:
        """Return the model whose couplings push and pull on these flanks, and its positions."""
        springs, side = list(self.robot.tree.springs), iter(flanks[0].tolist())
        for k, spring in enumerate(springs):
            if spring.play:
                springs[k] = replace(spring, offset=spring.offset + next(side), play=0.0)
        return PoseStatics(_with(self.robot, springs=tuple(springs)), self.loading), q


def closed_motion(robot: Robot, q: Array, motion: Array, dependent: Array) -> tuple[Array, float]:
    """Return positions after a motion with loops closed by dependent rates, and the opening in typical lengths."""
    q = robot.tree.moved(q, motion)
    return robot.assembler.newton(q, dependent, list(robot.closures.rows), CLOSING) if robot.closures.size else (q, 0.0)


def closed_step(here: Configuration, x: Array) -> Configuration | None:
    """Return the pose after a step of the independent coordinates; None if the loops do not close."""
    q, error = closed_motion(here.robot, here.q, here.J @ x, here.reduction.partition.dependent)
    return Configuration(here.robot, q) if error <= CLOSED else None


def is_stable(at: Configuration, loading: AppliedLoads) -> bool:
    """Return whether the tangent stiffness of an equilibrium is positive definite."""
    return is_positive(tangent_stiffness(at, loading) * np.outer(rate_units(at), rate_units(at)))


def find_equilibrium(start: Configuration, loading: AppliedLoads) -> tuple[Configuration, int]:
    """Return the equilibrium that loads reach from a pose, and the number of linearised states."""
    model, q = PoseStatics(start.robot, loading), start.q[None]
    stretch, half = model.stretch(q)
    if (np.abs(stretch) <= half).any():
        equilibria = find_on_flanks(model, q)
        if equilibria.ok[0]:
            return Configuration(start.robot, equilibria.q[0]), int(equilibria.steps[0])
    equilibria = find_equilibria(model, q)
    if not equilibria.ok[0]:
        equilibria = _taut(start, loading) or equilibria
    if not equilibria.ok[0]:
        raise _refusal(start, loading, equilibria)
    return Configuration(start.robot, equilibria.q[0]), int(equilibria.steps[0])


def _taut(start: Configuration, loading: AppliedLoads) -> Equilibria | None:
    """Return the equilibrium at which loads pull slack cables taut; None if no cable is slack.

    A slack cable has no stiffness. Springs in place of these cables push too, and bring the robot near to the
    equilibrium.
    """
    robot, elements = start.robot, start.robot.tree.elements
    slack = {e.name for e in elements if e.slack(float(distance(start.at, (e.first, e.second))))}
    if not slack:
        return None
    springs = tuple(e.as_spring() if e.name in slack else e for e in elements)
    near = find_equilibria(PoseStatics(_with(robot, elements=springs), loading), start.q[None])
    return find_equilibria(PoseStatics(robot, loading), near.q) if near.ok[0] else None


def _with(robot: Robot, **parts: Any) -> Robot:
    """Return the robot with other springs or elements, which change neither its home nor its closures."""
    tree = replace(robot.tree, **parts)
    return replace(robot, tree=tree, closures=replace(robot.closures, tree=tree), known_home=robot.home)


def _refusal(start: Configuration, loading: AppliedLoads, found: Equilibria) -> SingularError:
    """Return the error for loads that reach no equilibrium in stable states."""
    if 0 not in found.last:
        K = tangent_stiffness(start, loading)
        try:
            StiffnessSolver(start, K).solve(-start.reduction.forces(loading.forces(start)))
        except SingularError as error:
            error.hint = f"{error.hint}, or start from a pose near the equilibrium"
            return error
        name = _softest(start, K * np.outer(rate_units(start), rate_units(start)))
        return SingularError(
            f"'{name}' is not stable at this pose, so loads lead to no equilibrium from here",
            key="pose",
            value=name,
            hint="start from a stable pose near the equilibrium, or lock or servo-hold more joints",
        )
    share, here = float(found.share[0]), Configuration(start.robot, found.q[0], found.last[0].partition)
    name = _softest(here, found.last[0].K[0])
    end = f"at {100 * share:.3g} % of them '{name}' becomes unstable"
    lost = f"growing loads could not be followed beyond {100 * share:.3g} % of them, where '{name}' has least stiffness"
    return SingularError(
        f"no equilibrium under these loads: {end if 0 in found.critical else lost}",
        key="wrench",
        value=name,
        hint=f"{element_advice(start.robot.tree, here.q, share) if share > 0 else ''}reduce the loads, servo-hold more "
        "joints, or start from a pose nearer to the equilibrium",
    )


def _softest(here: Configuration, K: Array) -> str:
    """Return the coordinate that moves most in the motion of least stiffness, for a stiffness without units."""
    _, vectors = np.linalg.eigh((K + K.T) / 2)
    return moving_names(here, here.J * rate_units(here) @ vectors[:, :1])[0]
