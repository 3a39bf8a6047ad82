"""Gravity of the file along another axis than that of the record: reversed, or turned with the robot.

Efforts are linear in the gravity: with the masses of the file three columns say which one explains them best. It is
named where it has about the size of the file's and is along another axis: rough masses turn it by less.
"""

from __future__ import annotations

import numpy as np

from parflex.errors import ParflexError
from parflex.identification.doubts.by_file.file_trial import FileTrial
from parflex.identification.doubts.by_file.hypotheses import Hypothesis, as_given
from parflex.identification.regressors import ClosedMotion, rows_of
from parflex.recursion import motion, pose

Array = np.ndarray
INSTANTS = 40  # of a record, at which it is asked
USUAL = 9.81  # m/s^2, where the file has none
ALIKE = 0.3  # of its size: masses of the file may be off by as much
TURNED = np.cos(np.radians(30))  # of the angle between two gravities: a smaller one is levelling, or rough masses
AXIS = np.cos(np.radians(15))  # of that to an axis
EXPLAINED = 0.12  # of the efforts, what it may leave: rough masses with any gravity leave more
FELT = 1e-6  # of the gravity that efforts feel most: directions that they feel less are not told


def another_gravity(trial: FileTrial) -> list[tuple[float, Hypothesis]]:
    """The gravity that explains a record best with the numbers of the file, if it is another one, and what is left."""
    tree, instants = trial.regressor.robot.tree, len(trial.position)
    some = np.unique(np.linspace(0, instants - 1, INSTANTS).astype(int))
    given = as_given(trial.regressor)
    try:
        found = trial.rows(given, 1)
        moving = trial.regressor.moving(trial.position[some], trial.rate[some], trial.acceleration[some])
    except ParflexError:
        return []
    if found is None:
        return []
    columns = _columns(trial, moving)
    size = np.maximum(np.linalg.norm(found[1][some], axis=0), 1e-300)
    own = (columns / size[:, None]).reshape(-1, 3)
    missed = ((found[1] - found[2])[some] / size).ravel()
    own_gravity = np.asarray(tree.gravity, dtype=float)
    gravity = own_gravity + np.linalg.lstsq(own, missed, rcond=FELT)[0]
    gravity[~(np.linalg.norm(own, axis=0) > FELT * np.linalg.norm(own))] = 0.0  # nothing tells these
    usual, length = float(np.linalg.norm(own_gravity)) or USUAL, max(float(np.linalg.norm(gravity)), 1e-300)
    axis = int(np.argmax(np.abs(gravity)))
    named = np.where(np.arange(3) == axis, np.sign(gravity[axis]) * usual, 0.0)
    turned = own_gravity @ named <= TURNED * usual**2
    if not (turned and abs(gravity[axis]) > AXIS * length and abs(length / usual - 1) < ALIKE):
        return []
    left = missed - own @ (named - own_gravity)
    there = float(np.linalg.norm(left)) / np.sqrt(len(size))
    if not there < EXPLAINED:
        return []
    text = ", ".join(f"{value:.3g}" for value in named)
    cure = f"check gravity of the file, and how the robot stands; give gravity = [{text}]"
    ones = np.ones(len(trial.regressor.motor_q))
    return [(there, Hypothesis(f"with gravity along [{text}]", cure, ones, ones, 0 * ones))]


def _columns(trial: FileTrial, moving: ClosedMotion) -> Array:
    """Efforts of all rows per unit of the gravity along each axis, with the masses of the file and its payload."""
    tree, every = trial.regressor.robot.tree, trial.regressor.unknowns
    bodies = [k for k, one in enumerate(every) if one.of_body]
    own, theta = [every[k] for k in bodies], trial.theta[bodies]
    found, still = np.zeros((len(moving.q), moving.J.shape[2], 3)), np.zeros(tree.n)
    for k, (q, J) in enumerate(zip(moving.q, moving.J, strict=True)):
        at = pose(tree, q)
        for axis, along in enumerate(np.eye(3)):
            found[k, :, axis] = rows_of(tree, own, at, motion(tree, at, still, still, -along), J) @ theta
    return found
