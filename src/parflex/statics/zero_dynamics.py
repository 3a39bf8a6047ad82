"""Compute the zero dynamics of a flexible robot whose motors move a frame along a prescribed motion.

The frame has as many components as there are motors. Holding it leaves the deformations free to move: in the
independent rates, with J_x Z = 0 and P J_a^T = 0,

    P M Z ydd + P D Z yd + P K Z y = 0

These elastic zero dynamics belong to no real structure because the motors act elsewhere than the held frame: P is not
Z^T, and the zero dynamics may be unstable.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import scipy

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, SingularError
from parflex.forces.forces import Wrench, checked_wrenches
from parflex.records import Answer
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.robot.configuration import NEAR_SINGULAR, SINGULAR, Configuration, Pose, configure
from parflex.robot.robot import Robot
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.equilibrium import closed_motion
from parflex.statics.equilibrium_solver import ROUNDING, TRUST
from parflex.statics.linear_model import tree_stiffness
from parflex.statics.linear_system import rate_units
from parflex.statics.loads import AppliedLoads, tangent_stiffness

Array = np.ndarray
STEPS = 40  # Newton steps: with the trust length they rotate bodies by twelve radians
STILL = 1e-9  # of the fastest eigenvalue: smaller growth is rounding


@dataclass(frozen=True)
class HeldFrame:
    """A robot in static equilibrium whose motors keep a frame at a pose against gravity and loads."""

    configuration: Configuration
    frame: str
    efforts: dict[str, float]
    loading: AppliedLoads

    @property
    def rows(self) -> Array:
        """J_x, the motion of the frame per independent rate, without units."""
        return driven_rows(self.configuration, self.frame)


@dataclass(frozen=True, eq=False, repr=False)
class ZeroDynamics(Answer):
    """Eigenvalues (1/s) of the remaining motion with a frame held by the motors, fastest growing first."""

    eigenvalues: Array
    held: HeldFrame

    @property
    def growth(self) -> float:
        """Largest real part, zero if none is positive beyond rounding."""
        largest = float(self.eigenvalues.real.max(initial=0.0))
        return largest if largest > STILL * float(np.abs(self.eigenvalues).max(initial=1e-300)) else 0.0

    @property
    def stable(self) -> bool:
        """Whether no deviation grows."""
        return self.growth == 0.0

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """A diagnostic if a deviation grows."""
        if self.stable:
            return []
        text = (
            f"with '{self.held.frame}' driven here the elastic zero dynamics are unstable: a deviation of the "
            f"deformation grows by e in {1 / self.growth:.3g} s (eigenvalue +{self.growth:.3g} 1/s); "
            "drive the motors, or use the efforts with feedback"
        )
        return [Diagnostic("unstable-zero-dynamics", text, self.held.frame, self.growth)]


def driven_rows(here: Configuration, frame: str, spare: bool = False) -> Array:
    """Return the world twist of a frame per independent rate in characteristic lengths, one row per motor or fewer."""
    robot, rows = here.robot, here.frame_rows(frame) @ here.J
    rows[:3] /= robot.tree.length
    rows = rows[robot.tree.components]
    motors = len(robot.actuated)
    if len(rows) > motors or (len(rows) < motors and not spare):
        text = f"'{frame}' moves in {len(rows)} directions, and {motors} motors cannot drive all: bodies deform"
        names = "=..., ".join(robot.actuated_names[:2])
        hint = f"give motor accelerations ({names}=...), or use rigid=True"
        raise InputError(text, key="motion", value=frame, hint=hint)
    return rows


def system_jacobian(here: Configuration, frame: str) -> Array:
    """Return J_sys^-T of [Long2014, eq. (48)], theory (35), without units: frame wrench per unit motor effort."""
    M = here.J.T @ tree_mass_matrix(here.robot.tree, here.at) @ here.J
    rows, units = driven_rows(here, frame, spare=True), here.robot.tree.rate_units[list(here.robot.actuated)]
    responses = np.linalg.solve(M, np.column_stack([rows.T, here.J_a.T / units]))
    return np.linalg.solve(rows @ responses[:, : len(rows)], rows @ responses[:, len(rows) :])


def check_system(here: Configuration, frame: str) -> list[Diagnostic]:
    """Raise if the motors cannot drive a frame; return a diagnostic if they are nearly singular."""
    J = system_jacobian(here, frame)
    condition = float(np.linalg.cond(J))
    if J.size == 1 and J[0, 0] != 0:  # a single number is compared with home
        home = system_jacobian(Configuration(here.robot, here.robot.home), frame)
        condition = max(1.0, float(abs(home[0, 0] / J[0, 0])))
    if not condition < SINGULAR:
        text = f"the motors cannot drive '{frame}' here: J_sys is singular (condition number {condition:.1e})"
        raise SingularError(text, key="pose", value=frame, hint="choose another pose, or use rigid=True")
    if condition > NEAR_SINGULAR:
        text = f"'{frame}' is near a singularity of J_sys (condition number {condition:.1e})"
        return [Diagnostic("near-singular", text, frame, condition)]
    return []


def held_frame(robot: Robot, pose: Pose | None = None, wrench: Wrench | None = None) -> HeldFrame:
    """Return the deformed robot in equilibrium with its end effector at the undeformed pose."""
    here, frame = configure(robot, pose), robot.tree.end_effector
    R, p = here.at.of(robot.tree.places[frame])
    acting, size = AppliedLoads(checked_wrenches(robot.tree, wrench), np.zeros(robot.tree.n)), np.inf
    for _ in range(STEPS):
        tau, missing = _efforts(here, acting)
        if size < ROUNDING:
            motors = dict(zip(robot.actuated_names, map(float, tau[list(robot.actuated)]), strict=True))
            return HeldFrame(here, frame, motors, replace(acting, tau=tau))
        units, P = rate_units(here), _motor_free_combinations(here)
        tangent = np.concatenate([P @ tangent_stiffness(here, replace(acting, tau=tau)), driven_rows(here, frame)])
        x = np.full(len(units), np.nan)
        with suppress(np.linalg.LinAlgError):
            R_here, p_here = here.at.of(robot.tree.places[frame])
            error = np.concatenate([(p_here - p) / robot.tree.length, vector_from_rotation(R_here @ R.T)])
            x = np.linalg.solve(tangent * units, -np.concatenate([P @ missing, error[robot.tree.components]]))
        if not np.isfinite(x).all():
            break
        size = float(np.abs(x).max(initial=0.0))
        motion = here.J @ (units * x) * min(1.0, TRUST / max(size, 1e-300))
        q, closed = closed_motion(robot, here.q, motion, here.reduction.partition.dependent)
        if not closed:
            break
        here = Configuration(robot, q)
    text = f"no static equilibrium was found in which the motors hold '{frame}'"
    raise SingularError(text, key="pose", value=frame, hint="choose another pose, or reduce the loads")


def _efforts(here: Configuration, loading: AppliedLoads) -> tuple[Array, Array]:
    """Return the motor efforts along all rates that balance the loads best, and the remaining reduced forces."""
    c, units = here.reduction.forces(loading.forces(here)), rate_units(here)
    tau, motors = np.zeros(here.robot.tree.n), list(here.robot.actuated)
    tau[motors] = np.linalg.lstsq((here.J_a * units).T, c * units, rcond=None)[0]
    return tau, c - here.J_a.T @ tau[motors]


def _motor_free_combinations(here: Configuration) -> Array:
    """Return P, combinations of the reduced forces without motor efforts."""
    units = rate_units(here)
    return scipy.linalg.null_space(here.J_a * units).T * units


def zero_dynamics(robot: Robot, pose: Pose | None = None, wrench: Wrench | None = None) -> ZeroDynamics:
    """Return the elastic zero dynamics about the equilibrium in which motors hold the end effector, theory (36)."""
    held = held_frame(robot, pose, wrench)
    here, J, units = held.configuration, held.configuration.J, rate_units(held.configuration)
    Z, P = units[:, None] * scipy.linalg.null_space(held.rows * units), _motor_free_combinations(here)
    M, D = (J.T @ part @ J for part in (tree_mass_matrix(here.robot.tree, here.at), tree_stiffness(here)[1]))
    M, D, K = (P @ part @ Z for part in (M, D, tangent_stiffness(here, held.loading)))
    n = len(M)
    if not n:
        return ZeroDynamics(np.zeros(0, dtype=complex), held)
    states = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
    values = np.linalg.eigvals(states)
    return ZeroDynamics(values[np.argsort(-values.real)], held)
