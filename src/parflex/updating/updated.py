"""What an update tells: numbers of the file with deviations, every measured mode beside the model; and its file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from parflex.io import atomic_file, refuse_overwrite
from parflex.parameters.robot_file import extending_text
from parflex.records import Record, brief
from parflex.robot.robot import Robot

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Updated(Record):
    """Numbers of a robot file that fit measured modes.

    Attributes
    ----------
    robot : str
        Its name.
    parameters : dict[str, dict[str, Any]]
        By key: value, before, deviation, interval (95 %, not beyond zero: numbers keep their signs), relative, prior
        (deviation before; None: no prior), told (share of the prior that is gone). Deviation, interval,
        relative and told are None where a number is undetermined.
    covariance : Array
        Of the parameters, behind the measurements and the prior; with the error of the model where there is one.
    cosines : Array
        Between the columns of the weighted sensitivities: near 1 or -1 frequencies hardly separate two parameters.
    pairs : list[dict[str, Any]]
        Of each measured mode: pose, mode, measured, deviation, before, after (Hz), predicted_deviation (Hz: of the
        parameters, of elements that are too few and of the model), interval (95 % of what will be measured), mac (of
        the measured shape, else of the shapes before and after), mac_of, held_out; damping where it was measured; also
        are frequencies (Hz) of modes after the update that fit nearly as well.
    macs : dict[str, Array]
        By pose, where shapes were measured: MAC of the measured modes (rows) with those of the updated model.
    model_error : float
        Root mean square of residuals over deviations: above 1 the model does not fit within them.
    model_share : dict[str, float]
        Error of the model that residuals show: shares of the frequencies and of the damping ratios.
    errors : dict[str, float]
        Root mean square of relative errors of frequencies: before, after; held_out_before, held_out_after and
        held_out_within, the share within its interval, where some are.
    keys : list[str]
        In the order of covariance and cosines.
    unpaired : list[dict[str, Any]]
        Measured modes without a partner: pose, measured.
    warnings : list[str]
        Warnings.
    alternatives : list[dict[str, Any]]
        Other solutions that fit within 95 % of the region of the best one: parameters (by key: value, deviation) and
        more, by how much their sum of squares of residuals and priors, and of shapes, is larger (deviations that are
        wider than given cost twice the logarithm of that); held_out_after, as in errors.
    undetermined : list[dict[str, float]]
        Combinations of the parameters, in shares of their priors, that the measurements determine less than the prior
        does. A parameter is undetermined if they make up more than half of its variance.
    """

    robot: str
    parameters: dict[str, dict[str, Any]]
    covariance: Array
    cosines: Array
    pairs: list[dict[str, Any]]
    macs: dict[str, Array]
    model_error: float
    model_share: dict[str, float]
    errors: dict[str, float]
    keys: list[str] = field(default_factory=list)
    unpaired: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    alternatives: list[dict[str, Any]] = field(default_factory=list)
    undetermined: list[dict[str, float]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "robot": self.robot, "parameters": self.parameters, "keys": self.keys,
            "covariance": self.covariance.tolist(), "cosines": self.cosines.tolist(), "pairs": self.pairs,
            "macs": {pose: one.tolist() for pose, one in self.macs.items()}, "unpaired": self.unpaired,
            "model_error": self.model_error, "model_share": self.model_share, "errors": self.errors,
            "alternatives": self.alternatives, "undetermined": self.undetermined,
        }  # fmt: skip

    def _told(self) -> str:
        return f"{brief(self.robot)}: {len(self.parameters)} numbers, relative error {self.errors['after']:.3g}"


def write_updated(source: str, robot: Robot, found: Updated, path: str) -> str:
    """Write a robot file that extends the first one by the numbers that differ; gives its path."""
    refuse_overwrite([path], robot.files)
    settings = {key: one["value"] for key, one in found.parameters.items()}
    text = extending_text(source, robot, settings, Path(path), "updated")
    with atomic_file(path) as file:
        file.write(text.encode())
    return path
