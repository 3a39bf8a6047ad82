"""`update`: a robot and measured natural frequencies in, numbers of its file that fit them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.checking import number
from parflex.design.design_state import Circumstances, checked_number
from parflex.design.sensitivity import checked_keys
from parflex.errors import InputError, ParflexError
from parflex.models.loading import redesigned
from parflex.models.robot import Robot
from parflex.records import Record, brief
from parflex.updating.measured_modes import MeasuredMode, read_held_out, read_measured
from parflex.updating.pairing import PoseModes, first_pairs, followed_pairs, modes_needed, pose_modes, sloped_modes

Array = np.ndarray
PRIOR = 0.3  # of a number, its deviation before anything was measured
MOST_ROUNDS = 20
SETTLED = 1e-6  # of the numbers, by which a round may still change them
HALVINGS = 8
WIDENINGS = 4  # rounds in which deviations are widened by the error of the model
ALIKE = 0.95  # cosine from which two numbers are not told apart
SAID = 0.1  # of the prior, that measurements must take away
UNLIKE = 0.8  # MAC below which a mode is another one


@dataclass(frozen=True, eq=False, repr=False)
class Updated(Record):
    """Numbers of a robot file that fit measured frequencies.

    Attributes
    ----------
    robot : str
        Its name.
    parameters : dict[str, dict[str, float]]
        By key: value, before, deviation, relative, prior (deviation before), told (share of the prior that is gone).
    covariance : Array
        Of the parameters, behind the measurements; larger by the model error where there is one.
    cosines : Array
        Between the columns of the weighted sensitivities: near 1 or -1 two parameters are not told apart.
    pairs : list[dict[str, Any]]
        Of each measured frequency: pose, mode, measured, deviation, before, after (Hz), predicted_deviation of what the
        parameters leave open, mac of the shape before and after, held_out.
    model_error : float
        Root mean square of residuals over deviations: above 1 the model does not fit within them.
    errors : dict[str, float]
        Root mean square of relative errors: before, after; held_out_before, held_out_after where some are.
    keys : list[str]
        In the order of covariance and cosines.
    warnings : list[str]
        Warnings.
    """

    robot: str
    parameters: dict[str, dict[str, float]]
    covariance: Array
    cosines: Array
    pairs: list[dict[str, Any]]
    model_error: float
    errors: dict[str, float]
    keys: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "robot": self.robot, "parameters": self.parameters, "keys": self.keys,
            "covariance": self.covariance.tolist(), "cosines": self.cosines.tolist(), "pairs": self.pairs,
            "model_error": self.model_error, "errors": self.errors,
        }  # fmt: skip

    def _told(self) -> str:
        return f"{brief(self.robot)}: {len(self.parameters)} numbers, relative error {self.errors['after']:.3g}"


def update(
    robot: Robot,
    measured: Any,
    vary: Sequence[str] | str,
    hold_out: Sequence[str] | str = (),
    *,
    prior: float | Mapping[str, float] = PRIOR,
    lock: Any = "actuators",
    about: Any = None,
    servo: Any = None,
    without: Sequence[str] = (),
) -> Updated:
    """Numbers of the robot file that fit measured natural frequencies best, by weighted least squares.

    Exact sensitivities of the frequencies, modes followed by their shapes, priors; what is held out is predicted.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    measured : str, Path or Sequence
        CSV file with the columns pose, mode, frequency_hz, deviation_hz, or its rows; modes that are not numbered are
        found by their frequencies (Hz).
    vary : Sequence[str]
        Keys of the robot file by dotted path, each of one number that is not zero.
    hold_out : Sequence[str], default ()
        What is predicted and not used: 'POSE', 'POSE:MODE' or ':MODE'.
    prior : float or Mapping[str, float], default 0.3
        Deviation of the numbers before anything is measured, as share of each; infinite: none (dimensionless).
    lock : Lock, default "actuators"
        Locked joints: 'actuators', 'none' or names.
    about : {'undeformed', 'equilibrium'}, default None
        State of linearisation; None is the equilibrium where springs are under tension, else the undeformed pose.
    servo : float or Mapping[str, float], default None
        Stiffness of motors held by springs (N/m, N m/rad).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs (and dampers of joints), motor-inertia, axial.

    Returns
    -------
    Updated
        Numbers with deviations, covariance, cosines between them, and all pairs of measured and computed frequencies.

    Examples
    --------
    >>> parflex.update(robot, "measured.csv", ["constants.clutch"], hold_out=["pose-4"]).parameters
    """
    keys = checked_keys(robot, vary)
    rows, warnings = read_measured(measured)
    apart = read_held_out(hold_out, rows)
    first = np.array([checked_number(robot, key) for key in keys])
    for key, value in zip(keys, first, strict=True):
        if value == 0:
            raise InputError(f"'{key}' is zero, and shares of it say nothing", key="vary", value=key,
                             hint="give it a first value in the file")  # fmt: skip
    given = Circumstances(lock, about, servo, None, tuple(without))
    return _Fitting(robot, keys, rows, apart, _priors(prior, keys), given).answer(warnings)


def _priors(given: Any, keys: Sequence[str]) -> Array:
    if not isinstance(given, Mapping):
        given = dict.fromkeys(keys, given)
    values = [given.get(key, PRIOR) for key in keys]
    return np.array(
        [value if value == np.inf else number(value, "prior", above=0.0, example=PRIOR) for value in values]
    )


class _Fitting:
    """Rounds of weighted least squares over shares of the numbers."""

    def __init__(
        self, robot: Robot, keys: list[str], rows: list[MeasuredMode], apart: list[bool], prior: Array,
        circumstances: Circumstances,
    ) -> None:  # fmt: skip
        self.robot, self.keys, self.rows, self.prior, self.circumstances = robot, keys, rows, prior, circumstances
        self.used = ~np.array(apart)
        self.first = np.array([checked_number(robot, key) for key in keys])
        self.poses = list(dict.fromkeys(one.pose for one in rows))
        self.of_pose = {pose: [k for k, one in enumerate(rows) if one.pose == pose] for pose in self.poses}
        self.count = {pose: modes_needed([rows[k] for k in own]) for pose, own in self.of_pose.items()}
        self.start: dict[str, PoseModes] = {}
        self.pairs: dict[str, list[int]] = {}
        for pose, own in self.of_pose.items():
            model = pose_modes(robot, pose, circumstances, self.count[pose])
            several = [rows[k] for k in own]
            for one in several:
                if (one.mode or 0) > len(model.frequencies):
                    raise InputError(f"mode {one.mode} is measured at '{pose}', and the robot has "
                                     f"{len(model.frequencies)}", key="mode", value=one.mode,
                                     hint="leave it out")  # fmt: skip
            if len(several) > len(model.frequencies):
                raise InputError(
                    f"{len(several)} modes are measured at '{pose}', and the robot has {len(model.frequencies)}",
                    key="measured", value=pose, hint="leave some out",
                )  # fmt: skip
            self.start[pose], self.pairs[pose] = model, first_pairs(several, model)
        self.y = np.array([one.frequency for one in rows])
        self.sigma = np.array([one.deviation for one in rows])

    def at(self, shares: Array) -> tuple[Array, Array, list[float]]:
        """Frequencies of all rows with these shares of the first numbers, slopes by shares, and MACs."""
        settings = dict(zip(self.keys, map(float, self.first * shares), strict=True))
        robot = redesigned(self.robot, settings)
        values, slopes = np.zeros(len(self.rows)), np.zeros((len(self.rows), len(self.keys)))
        alike = [1.0] * len(self.rows)
        for pose, own in self.of_pose.items():
            plain = pose_modes(robot, pose, self.circumstances, self.count[pose])
            pairs, macs = followed_pairs(self.pairs[pose], self.start[pose], plain)
            found = sloped_modes(robot, pose, self.keys, self.circumstances, self.count[pose], sorted(set(pairs)))
            for k, mode, mac in zip(own, pairs, macs, strict=True):
                values[k], slopes[k], alike[k] = found.frequencies[mode], found.slopes[mode] * self.first, mac
        return values, slopes, alike

    def cost(self, values: Array, shares: Array) -> float:
        """Half the sum of squares of residuals over deviations, with the prior."""
        left = ((self.y - values) / self.sigma)[self.used]
        return 0.5 * float(left @ left + (((shares - 1) / self.prior) ** 2).sum())

    def rounds(self, shares: Array) -> tuple[Array, Array, Array, list[float]]:
        """The best shares, frequencies, slopes and MACs there."""
        values, slopes, alike = self.at(shares)
        cost = self.cost(values, shares)
        for _ in range(MOST_ROUNDS):
            S = (slopes / self.sigma[:, None])[self.used]
            left = ((self.y - values) / self.sigma)[self.used]
            A = S.T @ S + np.diag(1 / self.prior**2)
            step = np.linalg.lstsq(A, S.T @ left - (shares - 1) / self.prior**2, rcond=None)[0]
            step *= min(1.0, 0.5 / max(float(np.abs(step / shares).max()), 1e-300))  # numbers keep their signs
            if np.abs(step).max() < SETTLED:
                break
            for halved in range(HALVINGS):
                trial = shares + step / 2**halved
                try:
                    found = self.at(trial)
                except ParflexError:
                    continue
                after = self.cost(found[0], trial)
                if after < cost:
                    break
            else:
                break
            done = cost - after < SETTLED * max(cost, 1e-12)
            shares, (values, slopes, alike), cost = trial, found, after
            if done:
                break
        return shares, values, slopes, alike

    def weighed(self) -> tuple[Array, Array, Array, list[float], float]:
        """The same, with deviations widened by what the model cannot fit; and by how much that is."""
        given = self.sigma
        shares, values, slopes, alike = self.rounds(np.ones(len(self.keys)))
        error = 1.0
        for _ in range(WIDENINGS):
            left = ((self.y - values) / given)[self.used]
            freedoms = max(len(left) - int(np.linalg.matrix_rank(slopes[self.used])), 1)
            last, error = error, float(np.sqrt(left @ left / freedoms))
            if max(error, last) <= 1 or abs(error - last) < 0.05 * error:
                break
            self.sigma = given * max(error, 1.0)
            shares, values, slopes, alike = self.rounds(shares)
        return shares, values, slopes, alike, error

    def answer(self, warnings: list[str]) -> Updated:
        """What is told of the fit."""
        before = self.at(np.ones(len(self.keys)))[0]
        shares, values, slopes, alike, error = self.weighed()
        S = (slopes / self.sigma[:, None])[self.used]
        covariance = np.linalg.pinv(S.T @ S + np.diag(1 / self.prior**2))
        deviation = np.sqrt(np.diag(covariance))
        sizes = np.linalg.norm(S, axis=0)
        cosines = (S.T @ S) / np.maximum(np.outer(sizes, sizes), 1e-300)
        open_part = np.sqrt(np.einsum("ij,jk,ik->i", slopes, covariance, slopes))
        parameters = {
            key: {
                "value": float(self.first[k] * shares[k]), "before": float(self.first[k]),
                "deviation": float(abs(self.first[k]) * deviation[k]), "relative": float(deviation[k] / abs(shares[k])),
                "prior": float(abs(self.first[k]) * self.prior[k]),
                "told": float(1 - min(deviation[k] / self.prior[k], 1.0)) if np.isfinite(self.prior[k]) else 1.0,
            }
            for k, key in enumerate(self.keys)
        }  # fmt: skip
        pairs = [
            {
                "pose": one.pose, "mode": self._mode(k), "measured": one.frequency, "deviation": one.deviation,
                "before": float(before[k]), "after": float(values[k]), "predicted_deviation": float(open_part[k]),
                "mac": alike[k], "held_out": bool(not self.used[k]),
            }
            for k, one in enumerate(self.rows)
        ]  # fmt: skip
        unit = np.outer(self.first, self.first)
        return Updated(
            self.robot.name, parameters, covariance * unit, cosines, pairs, error, self._errors(before, values),
            self.keys, [*warnings, *self._doubts(cosines, pairs, parameters, error)],
        )  # fmt: skip

    def _mode(self, k: int) -> int:
        pose = self.rows[k].pose
        return self.pairs[pose][self.of_pose[pose].index(k)] + 1

    def _errors(self, before: Array, after: Array) -> dict[str, float]:
        def size(values: Array, rows: Array) -> float:
            return float(np.sqrt(np.mean((values[rows] / self.y[rows] - 1) ** 2)))

        found = {"before": size(before, self.used), "after": size(after, self.used)}
        if not self.used.all():
            found |= {"held_out_before": size(before, ~self.used), "held_out_after": size(after, ~self.used)}
        return found

    def _doubts(
        self, cosines: Array, pairs: list[dict[str, Any]], parameters: Mapping[str, Mapping[str, float]], error: float
    ) -> list[str]:
        """What the measurements do not tell, and what the model does not fit."""
        found = [
            f"'{self.keys[j]}' and '{one}' are not told apart (cosine {cosines[i, j]:.3f})"
            for i, one in enumerate(self.keys) for j in range(i) if abs(cosines[i, j]) > ALIKE
        ]  # fmt: skip
        found += [
            f"the measurements say nothing of '{key}': its deviation is that before them"
            for key, one in parameters.items() if one["told"] < SAID
        ]  # fmt: skip
        if error > 2:
            found.append(
                f"residuals are {error:.3g} times their deviations: the model has an error that these numbers do not "
                "take away; deviations are widened by it"
            )
        found += [
            f"mode {one['mode']} at '{one['pose']}' changed its shape (MAC {one['mac']:.2f}): its pair is not sure"
            for one in pairs if one["mac"] < UNLIKE
        ]  # fmt: skip
        return found
