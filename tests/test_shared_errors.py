"""An error of the model that all poses of a mode share, beside its closed form."""

from types import SimpleNamespace

import numpy as np
import pytest

from parflex.updating.shared_errors import shared_errors

MODES, NUMBERS = 6, 2


def fitted(poses, error=0.02, prior=np.inf):
    """Modes that depend on the numbers alike at every pose, and deviations that are all of the model."""
    slopes = np.random.default_rng(4).standard_normal((MODES, NUMBERS))
    S, y = np.tile(slopes, (poses, 1)), np.full(MODES * poses, 50.0)
    spread = 0.02 * y
    plain = np.linalg.inv((S / spread[:, None]).T @ (S / spread[:, None]))
    fitting = SimpleNamespace(
        y=y, kind=np.zeros(len(y), dtype=int), row_of=np.arange(len(y)), error=np.array([error, 0.0]),
        prior=np.full(NUMBERS, prior), used=lambda fit: np.ones(len(y), dtype=bool), covariance=lambda fit: plain,
        spread=lambda fit: spread, information=lambda fit: S / spread[:, None],
        freedoms=lambda fit, kind: float(len(y) - NUMBERS),
    )  # fmt: skip
    return fitting, SimpleNamespace(modes=list(range(MODES)) * poses), slopes, spread[0]


@pytest.mark.parametrize("poses", [1, 4, 25])
def test_a_shared_error_does_not_cancel_over_poses(poses):
    fitting, fit, slopes, spread = fitted(poses)
    found, freedoms = shared_errors(fitting, fit)
    # n modes, k numbers, p poses: n - k errors show; residuals of p (n - k) are taken for those of n p - k
    larger = (MODES * poses - NUMBERS) / (poses * (MODES - NUMBERS))
    assert found == pytest.approx(larger * spread**2 * np.linalg.inv(slopes.T @ slopes), rel=1e-9)  # rounding
    assert freedoms == pytest.approx(MODES - NUMBERS)


def test_without_an_error_of_the_model_rows_stand_for_themselves():
    fitting, fit, _, _ = fitted(4, error=0.0)
    found, freedoms = shared_errors(fitting, fit)
    assert found == pytest.approx(fitting.covariance(fit)) and freedoms == 4 * MODES - NUMBERS


def test_deviations_are_not_above_those_of_the_prior():
    fitting, fit, _, _ = fitted(25, prior=0.3)
    assert np.sqrt(np.diag(shared_errors(fitting, fit)[0])) == pytest.approx(0.3)
