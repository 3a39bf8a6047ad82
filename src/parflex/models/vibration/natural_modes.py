"""Natural frequencies, mode shapes and damping ratios of the linear model of a robot at rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from parflex.errors import InputError, SingularError
from parflex.forces.forces import Without, Wrench
from parflex.forces.spare_motors import Preload, Weights
from parflex.models.elastic.equilibrium import NOT_STABLE, doubtful
from parflex.models.elastic.holding import Lock, Servo
from parflex.models.elastic.linear_model import About, LinearModel, linear_model, state_about
from parflex.models.elastic.loads_at_rest import Conditions
from parflex.models.elastic.stiff_system import eigen, moving_names, rate_units, sorted_modes
from parflex.models.vibration.beyond_band import band_warnings
from parflex.models.vibration.element_errors import element_errors, element_warnings
from parflex.records import Answer, brief, count_of
from parflex.robot.configuration import Pose
from parflex.robot.motor_values import Effort
from parflex.robot.robot import Robot, hertz_line

if TYPE_CHECKING:
    from parflex.models.vibration.refinement import Refinement

__all__ = ["Modes", "check_modes", "modes_of", "natural_frequencies"]
Array = np.ndarray
USUAL = 6  # modes, where it is not said how many


@dataclass(frozen=True, eq=False, repr=False)
class Modes(Answer):
    """Frequencies in Hz, shapes, damping ratios, and motions without stiffness by the name of what moves most.

    Shapes are over all coordinates, one column a mode, mass-normalised, the largest entry positive. Damping ratios are
    v^T D v / (2 omega): those of light damping. Unstable motions grow instead of vibrating.

    Attributes
    ----------
    frequencies : Array
        Hz, lowest first.
    shapes : Array
        All coordinates x modes, mass-normalised, the largest entry positive (m, rad).
    damping : Array
        Damping ratios v^T D v / (2 omega), for light damping (dimensionless).
    free_motions : list[str]
        Motions without stiffness, by what moves most.
    independent_coordinates : int
        Number of independent coordinates.
    unstable_motions : list[str]
        Motions that grow instead of vibrating.
    model : LinearModel
        The linear model.
    excess : Array
        Estimated shares by which frequencies are too high because elements are too few, or reduced beams leave modes
        out (from the lowest of these on it is the bound); infinite where elements of beams, held at both ends, vibrate
        by themselves at such a frequency (dimensionless).
    refinement : Refinement | None
        Number of elements that `converge` took, and how frequencies changed; None without it.
    by_elements : Array | None
        `excess` without what reduced beams leave out; None where it is not known (dimensionless).
    too_few : list[str]
        What is said where elements are too few; it is among the warnings of the model, too.
    """

    frequencies: Array
    shapes: Array
    damping: Array
    free_motions: list[str]
    independent_coordinates: int
    unstable_motions: list[str]
    model: LinearModel
    excess: Array = field(default_factory=lambda: np.zeros(0))
    refinement: Refinement | None = None
    by_elements: Array | None = None
    too_few: list[str] = field(default_factory=list)

    @property
    def about(self) -> About:
        """State of linearisation: `undeformed` or `equilibrium`."""
        return self.model.about

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings of the robot and of its linear model."""
        return (*self.model.robot.warnings, *self.model.warnings)

    def _told(self) -> str:
        apart = ((self.free_motions, "motion", " without stiffness"), (self.unstable_motions, "unstable motion", ""))
        modes = f"{count_of(len(self.frequencies), 'mode')}, {hertz_line(self.frequencies)}"
        parts = [f"{brief(self.model.robot.name)}: {modes}"]
        return "; ".join([*parts, *(f"{count_of(len(names), word)}{rest}" for names, word, rest in apart if names)])


def natural_frequencies(
    robot: Robot,
    pose: Pose | None = None,
    modes: int | None = None,
    lock: Lock = "actuators",
    about: About | None = None,
    *,
    servo: Servo | None = None,
    servo_damping: Servo | None = None,
    wrench: Wrench | None = None,
    effort: Effort | None = None,
    without: Without = (),
    weights: Weights | None = None,
    preload: Preload | None = None,
    converge: float | None = None,
) -> Modes:
    """Lowest natural frequencies, mode shapes and damping ratios at a pose.

    About the undeformed pose; under a wrench or efforts, or with springs under tension at the pose, about the
    equilibrium. Motions without stiffness are listed in `free_motions`.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, or a configuration; None is home (m, rad).
    modes : int, default None
        Number of modes; None: six, or all if there are fewer.
    lock : Lock, default "actuators"
        Locked joints: 'actuators', 'none' or names.
    about : {'undeformed', 'equilibrium'}, default None
        State of linearisation; None is the equilibrium under a wrench or efforts or where springs are under tension,
        else the undeformed pose.
    servo : float or Mapping[str, float], default None
        Stiffness of motors held by springs (N/m, N m/rad).
    servo_damping : float or Mapping[str, float], default None
        Damping of the servos (N s/m, N m s/rad).
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz] (N, N m).
    effort : Effort, default None
        Efforts of the motors, by name or in their order; a motor not named has none (N, N m).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.
    weights : Mapping[str, float], default None
        Weights of the squared efforts by motor, where motors are more than freedoms; those not named have 1.
    preload : Mapping[str, float], default None
        Internal efforts by motor, of one motor for each that is spare (N, N m).
    converge : float, default None
        Divide the elements of beams until the answer changes by no more than this share of it; None: as they are
        (dimensionless).

    Returns
    -------
    Modes
        `frequencies` in Hz, `shapes` over all coordinates (mass-normalised), `damping` ratios, `free_motions`; with
        `converge` also `refinement`.

    Examples
    --------
    >>> parflex.natural_frequencies(parflex.load("navaro"), "pose-3", modes=3).frequencies
    """
    state_about(about, wrench, effort, felt=False, preload=preload or weights)
    words = Conditions(servo, servo_damping, wrench, effort, without, weights, preload)._asdict()
    if converge is None:
        return modes_of(linear_model(robot, pose, lock, about, **words), modes)
    from parflex.models.vibration.converged_modes import converged_modes  # which stands on this module

    return converged_modes(robot, pose, modes, converge, lock=lock, about=about, **words)


natural_frequencies.doubts = lambda found: doubtful(found.model.warnings)  # type: ignore[attr-defined]


def check_modes(modes: object) -> None:
    """Refuse what is no number of modes before anything is computed."""
    if isinstance(modes, bool) or not isinstance(modes, int | np.integer) or modes < 1:
        raise InputError("the number of modes must be 1 or more", key="modes", value=modes, hint="give e.g. 6")


def modes_of(model: LinearModel, modes: int | None = None, or_fewer: bool = False) -> Modes:
    """Lowest modes of a linear model: six, or all if there are fewer, unless it is said how many; `or_fewer`: at most.

    More than there are is refused without it.
    """
    if modes is not None:
        check_modes(modes)
    here, count = model.configuration, len(model.names)
    units = rate_units(here)
    scale = np.outer(units, units)
    warnings = list(model.warnings)
    weights = np.sqrt(np.maximum(np.abs(np.diag(model.K)), 1e-300))
    if np.any(np.abs(model.K - model.K.T) > 1e-4 * np.outer(weights, weights)):  # frequencies feel the square of it
        warnings.append(
            "moments with axes fixed in the world are not conservative: "
            "the modes are those of the symmetric part of the stiffness"
        )
    K, M = (model.K + model.K.T) / 2 * scale, model.M * scale
    values, vectors = eigen(here, K, M)
    if model.K_tot is not None:
        values, vectors = _sharpened(values, vectors, model.K_tot, model.J @ (units[:, None] * vectors))
    values, vectors, unstable, free = sorted_modes(values, vectors, K, M)
    first = unstable + free
    if modes is None or or_fewer:
        modes = min(modes or USUAL, count - first)
    elif modes > count - first:
        if unstable:
            raise SingularError(
                NOT_STABLE,
                key="pose",
                hint=f"{count - first} of its {count} motions vibrate, {unstable} would grow: request fewer",
            )
        raise InputError(
            f"{modes} modes are requested, but the robot has {count - first}",
            key="modes",
            value=modes,
            hint=_fewer(first),
        )
    reduced = units[:, None] * vectors
    shapes = model.J @ reduced
    picked = shapes[:, first : first + modes]
    signs = np.sign(picked[np.abs(picked).argmax(axis=0), range(modes)])
    omega = np.sqrt(values[first : first + modes])
    damping = np.array([float(v @ model.D @ v) for v in reduced[:, first : first + modes].T]) / (2 * omega)
    names = [moving_names(here, part) for part in (shapes[:, unstable:first], shapes[:, :unstable])]
    if unstable:
        warnings.append("the equilibrium is not stable: " + ", ".join(f"'{name}'" for name in names[1]) + " would grow")
    errors = element_errors(here, values[first:], shapes[:, first:], modes)
    too_few = element_warnings(omega / (2 * np.pi), errors)
    warnings += too_few
    warnings += band_warnings(here.robot, omega / (2 * np.pi))
    told = replace(model, warnings=warnings)
    return Modes(
        omega / (2 * np.pi),
        picked * signs,
        damping,
        names[0],
        count,
        names[1],
        told,
        errors.shares,
        by_elements=errors.by_elements,
        too_few=too_few,
    )


def _sharpened(values: Array, vectors: Array, K_tot: Array, shapes: Array) -> tuple[Array, Array]:
    """Eigenvalues again, as twice the strain energy of each shape, body by body, and all in their order.

    The solver's rounding is relative to the highest eigenvalue. A shape is better than that, and energies of bodies are
    positive: what does not strain has none, and the slowest modes gain the digits that they lost.
    """
    strained = np.einsum("ik,ik->k", shapes, K_tot @ shapes)
    order = np.argsort(strained, kind="stable")
    return strained[order], vectors[:, order]


def _fewer(left_out: int) -> str:
    return "request fewer" if not left_out else f"request fewer; {left_out} motions have no frequency"
