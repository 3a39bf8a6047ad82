"""Columns that nearly depend on others keep their deviations; what noise of positions makes of columns is told."""

import numpy as np
import pytest
from support.recordings import followed, noisy, three_rrr

import parflex
from parflex.identification import identify, noise_of_positions
from parflex.identification.estimators import EffortRows, _wider, fit_rows

TRUE = {"FV": 0.4, "FS": 0.25}  # of the record; all else is that of the file


@pytest.mark.parametrize("instruments", [False, True])
def test_parameters_that_are_hardly_told_keep_their_deviation_whatever_their_units(instruments):
    rng = np.random.default_rng(0)
    W = rng.standard_normal((200, 1, 5))
    W[:, :, 4] = W[:, :, 3] + 3e-6 * W[:, :, 4]  # a record that tells the two apart by 3e-6 of them
    W *= np.array([1e4, 1.0, 1e-4, 1e-3, 1e-3])
    rows = EffortRows(W, rng.standard_normal((200, 1)), instruments=W.copy() if instruments else None)
    found, flat = fit_rows(rows), W[:, 0] / np.linalg.norm(W[:, 0], axis=0)
    for k in range(5):  # one over what others leave of a column
        others = np.delete(flat, k, axis=1)
        left = flat[:, k] - others @ np.linalg.lstsq(others, flat[:, k], rcond=1e-15)[0]
        noise = np.sqrt((found.residuals**2).sum() / (200 - 5))
        wanted = noise / np.linalg.norm(left) / np.linalg.norm(W[:, 0, k])
        # products of columns have the square of 3e-6 in them, and rounding: 1e-16 over 1e-11, some times
        assert np.sqrt(found.white[k, k]) == pytest.approx(wanted, rel=1e-3 if instruments else 1e-4), k


def test_the_wider_of_two_covariances_needs_no_deviation_of_the_other():
    wide = _wider(np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, -1e-20]]), np.diag([1.0, 9.0, 2.0]))
    assert wide == pytest.approx(np.array([[4.0, 3.0, 0.0], [3.0, 9.0, 0.0], [0.0, 0.0, 2.0]]))


@pytest.mark.few("100.0")
@pytest.mark.parametrize(("cutoff", "moved"), [(None, False), (100.0, True)])
def test_noise_of_positions_that_moves_parameters_is_told(cutoff, moved):
    record = noisy(followed(1))
    found = parflex.identify(three_rrr(), record, cutoff=cutoff)
    told = [text for text in found.warnings if "noise of positions moves" in text]
    assert len(told) == moved and all("use iv or didim, a cutoff below 100 Hz" in text for text in told)
    assert not any("slow samples" in text for text in found.warnings)


@pytest.mark.verify
def test_noise_of_positions_moves_parameters_by_as_much_as_is_told(monkeypatch):
    """The mean of what parameters are off by, over noises, with a cutoff at which that is about a deviation."""
    said, original = [], noise_of_positions.noise_doubts

    def kept(*given):
        said.append(noise_of_positions.moved_by_noise(*given))
        return original(*given)

    monkeypatch.setattr(identify, "noise_doubts", kept)
    off, spread = [], []
    for seed in range(40):
        found = parflex.identify(three_rrr(), noisy(followed(1), seed), cutoff=40.0)
        every = found.parameters.items()
        off.append([one.value - TRUE.get(name.partition("[")[0], one.file_value) for name, one in every])
        spread.append([one.deviation for _, one in every])
    mean, told, one = np.mean(off, axis=0), np.mean(said, axis=0), np.mean(spread, axis=0)
    assert np.abs(told / one).max() > 1.0
    # means of 40 have a deviation of 0.16: 25 of them are within 0.5
    assert mean / one == pytest.approx(told / one, abs=0.5)
