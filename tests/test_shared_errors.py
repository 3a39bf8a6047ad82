"""An error of the model that all poses of a mode share, beside its closed form."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.special
from support.oracles import spring_chain

from parflex.updating.shared_errors import shared_errors

MODES, NUMBERS = 6, 2


def fitted(poses, error=0.02, prior=np.inf, modes=MODES):
    """Modes that depend on the numbers alike at every pose, and deviations that are all of the model."""
    slopes = np.random.default_rng(4).standard_normal((modes, NUMBERS))
    fitting, fit, spread = of_slopes(np.tile(slopes, (poses, 1)), list(range(modes)) * poses, error, prior)
    return fitting, fit, slopes, spread


def of_slopes(S, modes, error, prior=np.inf):
    """A fit with these slopes of frequencies of 50 Hz, of modes with these numbers."""
    y = np.full(len(S), 50.0)
    spread = 0.02 * y if not error else error * y
    plain = np.linalg.inv((S / spread[:, None]).T @ (S / spread[:, None]))
    fitting = SimpleNamespace(
        y=y, kind=np.zeros(len(y), dtype=int), row_of=np.arange(len(y)), error=np.array([error, 0.0]),
        prior=np.full(S.shape[1], prior), used=lambda fit: np.ones(len(y), dtype=bool), covariance=lambda fit: plain,
        by_model=lambda fit: error * y, spread=lambda fit: spread, information=lambda fit: S / spread[:, None],
        freedoms=lambda fit, kind: float(len(y) - S.shape[1]),
    )  # fmt: skip
    return fitting, SimpleNamespace(modes=modes), spread[0]


@pytest.mark.parametrize("poses", [1, 4, 25])
def test_a_shared_error_does_not_cancel_over_poses(poses):
    fitting, fit, slopes, spread = fitted(poses)
    found, freedoms = shared_errors(fitting, fit)
    # n modes, k numbers, p poses: n - k errors show; residuals of p (n - k) are taken for those of n p - k
    shows = poses * (MODES - NUMBERS) / (MODES * poses - NUMBERS)
    larger = shows / shows + (1 - shows)
    assert found == pytest.approx(larger * spread**2 * np.linalg.inv(slopes.T @ slopes), rel=1e-9)  # rounding
    assert freedoms == pytest.approx(MODES - NUMBERS + 1 - shows)


def test_a_shared_error_that_the_numbers_take_up_is_as_large_as_that_of_the_rows():
    """As many modes as numbers: residuals show nothing of an error of each mode, and say nothing of its size."""
    fitting, fit, slopes, spread = fitted(3, modes=NUMBERS)
    found, freedoms = shared_errors(fitting, fit)
    assert found == pytest.approx(2 * spread**2 * np.linalg.inv(slopes.T @ slopes), rel=1e-9)  # rounding
    assert 1 <= freedoms <= NUMBERS + 1


@pytest.mark.parametrize("poses", [2, 3, 6])
@pytest.mark.parametrize("numbers", [1, 2, 3])
def test_intervals_hold_stiffnesses_of_chains_whose_masses_are_wrong(monkeypatch, poses, numbers):
    """Linear fits beside frequencies by hand: nine of ten are held, and intervals are not far wider than that needs."""
    angles = [(0.0, 0.0), (1.0, -0.5), (2.0, 1.0), (-0.7, 1.2), (0.3, 0.4), (-1.5, -0.4)][:poses]
    monkeypatch.setattr(spring_chain, "POSES", dict(enumerate(angles)))
    stiffness, masses = np.array([900.0, 400.0, 150.0]), np.array(spring_chain.MASSES)

    def logs(k=stiffness, m=masses):
        monkeypatch.setattr(spring_chain, "MASSES", m)
        return np.log(np.concatenate([spring_chain.frequencies(pose, k) for pose in spring_chain.POSES]))

    base, step = logs(), 1e-5
    S = np.stack([(logs(stiffness * (1 + step * one)) - base) / step for one in np.eye(3)[:numbers]], axis=1)
    rng, held, width, off = np.random.default_rng(5), [], [], []
    for _ in range(60):
        e = logs(m=masses * (1 + 0.05 * rng.standard_normal(3))) - base + 0.002 * rng.standard_normal(len(base))
        shift = np.linalg.lstsq(S, e, rcond=None)[0]
        left = e - S @ shift
        error = float(np.sqrt(left @ left / (len(e) - numbers)))
        fitting, fit, _ = of_slopes(50.0 * S, [0, 1, 2] * poses, error)
        covariance, freedoms = shared_errors(fitting, fit)
        reach = scipy.special.stdtrit(freedoms, 0.975) * np.sqrt(np.diag(covariance))
        held.extend(np.abs(shift) <= reach)
        width.append(reach)
        off.append(shift)
    needed = 1.96 * np.sqrt(np.mean(np.square(off), axis=0))
    # 60 to 180 intervals: 0.9 of 0.95 is two deviations of 60 below
    assert np.mean(held) >= 0.9 and (np.median(width, axis=0) < 3 * needed).all()


def test_without_an_error_of_the_model_rows_stand_for_themselves():
    fitting, fit, _, _ = fitted(4, error=0.0)
    found, freedoms = shared_errors(fitting, fit)
    assert found == pytest.approx(fitting.covariance(fit)) and freedoms == 4 * MODES - NUMBERS


def test_deviations_are_not_above_those_of_the_prior():
    fitting, fit, _, _ = fitted(25, prior=0.3)
    assert np.sqrt(np.diag(shared_errors(fitting, fit)[0])) == pytest.approx(0.3)
