"""Bias of parameters by noise of positions, which least squares takes for motion.

With columns W = W0 + V, V by noise, estimates theta have the mean error -(W^T W)^-1 E[V^T V] theta, which no confidence
interval includes. V is the change of the columns when as much noise is added to the record once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.identification.estimators import EffortRows, LeastSquaresFit
from parflex.identification.lack_of_fit import position_noise
from parflex.identification.preprocess import FilterChoice, decimate_rows, join_rows, motion_of, quantisation_noise
from parflex.identification.recordings import Recording
from parflex.identification.regressor import Regressor

Array = np.ndarray
SEEN = 1.0  # deviations, by which noise of positions may move a parameter: its interval of 95 % holds 83 % then


def noise_doubts(
    regressor: Regressor, kept: list[int], used: Sequence[Recording], parts: Sequence[EffortRows],
    choice: FilterChoice, fitted: LeastSquaresFit,
) -> list[Diagnostic]:  # fmt: skip
    """Return a diagnostic where noise of positions moves a parameter by more than its interval says.

    `kept` are the columns of the fitted parameters, `parts` the rows of each record.
    """
    deviation = np.sqrt(np.maximum(np.diag(fitted.robust), 0.0))
    moved = moved_by_noise(regressor, kept, used, parts, choice, fitted) / np.maximum(deviation, 1e-300)
    far = np.flatnonzero(np.abs(moved) > SEEN)
    if not len(far):
        return []
    worst = int(far[np.argmax(np.abs(moved[far]))])
    name = regressor.unknowns[kept[worst]].name
    others = f" and {len(far) - 1} more by less" if len(far) > 1 else ""
    coarse = any(quantisation_noise(record.position).any() for record in used)
    moves = "may move" if coarse else "moves"
    size = f"by {'up to ' if coarse else ''}about {abs(moved[worst]):.2g}"
    text = (
        f"{Path(used[0].name).name}: noise of positions {moves} {name} {size} "
        f"deviations{others}, and intervals do not hold it: use iv or didim, a cutoff below {choice.cutoff:.3g} "
        f"Hz, {'a finer encoder ' if coarse else ''}or a motion that tells them"
    )
    return [Diagnostic("moved-by-noise", text, name, float(moved[worst]))]


def moved_by_noise(
    regressor: Regressor, kept: list[int], used: Sequence[Recording], parts: Sequence[EffortRows],
    choice: FilterChoice, fitted: LeastSquaresFit,
) -> Array:  # fmt: skip
    """Return by how much noise of positions moves parameters in the mean."""
    columns = (join_rows(parts).W * fitted.weights[:, :, None]).reshape(-1, len(kept))
    rng, by_noise = np.random.default_rng(0), []
    for record, part in zip(used, parts, strict=True):
        noisy = record.position + position_noise(record) * rng.standard_normal(record.position.shape)
        _, moving = motion_of(regressor, record, choice, noisy)
        by_noise.append(decimate_rows(regressor.of(moving, kept)[0], choice) - part.W)
    noise = (np.concatenate(by_noise) * fitted.weights[:, :, None]).reshape(columns.shape)
    length = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    R = np.asarray(np.linalg.qr(columns / length, mode="r"))
    along = np.linalg.lstsq(R.T, noise.T @ (noise @ fitted.values) / length, rcond=None)[0]
    return -np.asarray(np.linalg.lstsq(R, along, rcond=None)[0] / length)
