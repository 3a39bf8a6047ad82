"""Matrices that other programs wrote, read from checkouts of public repositories: PARFLEX_FOREIGN names their folder.

`MatlabAbaqus` (DICLab), `PchConverter` (Qinterfly), `ExportNastranKM` (zhaowei0566), `pyyeti` (twmacro),
`SuiteSparse` (DrTimothyAldenDavis); nothing of them is copied here. Facts beside them: what their own programs printed.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

from parflex import RobotFileError
from parflex.bodies.super_elements import market_matrices, nastran_matrices
from parflex.bodies.super_elements.market_matrices import read_matrix_market
from parflex.bodies.super_elements.matrix_files import load_matrices
from parflex.bodies.super_elements.super_body import super_element

HERE = Path(os.environ.get("PARFLEX_FOREIGN", "nowhere"))
pytestmark = [
    pytest.mark.verify,
    pytest.mark.skipif(not HERE.exists(), reason="PARFLEX_FOREIGN names no folder"),
]


def sample(name: str) -> str:
    if not (HERE / name).exists():
        pytest.skip(f"{name} is not there")
    return str(HERE / name)


def punched(file: str, monkeypatch) -> np.ndarray:
    """Frequencies (Hz) of a punch file, whatever freedoms its nodes have."""
    monkeypatch.setattr(nastran_matrices, "from_freedoms", lambda file, freedoms, matrices, places: matrices)
    A = nastran_matrices.read_punch(Path(file).read_text(), file)
    K = A["K"] + A["M"] + 1e-10 * np.diag(np.diag(A["K"]))  # some freedoms have no mass, some motions no stiffness
    inverse = scipy.linalg.eigvalsh(A["M"], K)
    squares = 1 / inverse[inverse > 1e-12][::-1] - 1
    return np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi)


@pytest.mark.parametrize(
    ("name", "free", "hertz"),
    [
        ("ExportNastranKM/test_1/test_case.pch1", 2, [21.14057, 21.35569, 128.7332, 129.7476, 437.1801]),
        ("ExportNastranKM/test_2/sol103_swept_plane.pch1", 3, [1.339207, 3.406026, 5.610046, 10.88232, 11.05762]),
    ],
)
def test_punch_files_of_nastran_have_the_frequencies_that_it_printed(name, free, hertz, monkeypatch):
    found = punched(sample(name), monkeypatch)
    assert found[free : free + len(hertz)] == pytest.approx(hertz, rel=2e-5)


def test_a_pinned_bar_of_nastran_vibrates_as_it_printed(monkeypatch):
    """Without the freedoms that have neither mass nor stiffness; by theory 4.5307 Hz."""
    file = sample("PchConverter/examples/beam.pch")
    monkeypatch.setattr(nastran_matrices, "from_freedoms", lambda file, freedoms, matrices, places: matrices)
    A = nastran_matrices.read_punch(Path(file).read_text(), file)
    compliance, modes = np.linalg.eigh(A["K"])
    used = compliance > 1e-9 * compliance[-1]
    inverse = modes[:, used].T @ A["M"] @ modes[:, used] / np.sqrt(np.outer(compliance[used], compliance[used]))
    assert 1 / np.sqrt(np.linalg.eigvalsh(inverse)[-1]) / (2 * np.pi) == pytest.approx(4.5305, rel=2e-5)


def test_a_whole_model_of_nastran_of_few_digits_is_refused_with_its_numbers():
    """71 nodes with masses at some of them; Nastran has 7.949976 Hz, ten digits of K spread the rigid motions."""
    file = sample("ExportNastranKM/test_mAEWing1_FEMv5p1/sol103_maewing1_femv5p1.pch1")
    data = load_matrices(file, [101])
    assert (data.size, len(data.nodes)) == (426, 71)
    with pytest.raises(RobotFileError, match=r"0\.32 of the lowest elastic frequency, 7\.894 Hz"):
        super_element(data, {"a": 101}, None, None)


def test_a_substructure_of_abaqus_has_its_mass():
    """Four nodes of three freedoms and forty modes; its file names no positions."""
    data = load_matrices(sample("MatlabAbaqus/Datos/substructure.mtx"), [1])
    assert (data.size, data.interface) == (52, 12)
    X = np.zeros((52, 3))
    X[:12] = np.tile(np.eye(3), (4, 1))
    assert np.diag(X.T @ data.M @ X) == pytest.approx([0.0790] * 3, rel=1e-3)
    assert np.abs(data.K @ X).max() < 1e-12 * np.abs(data.K).max()


def test_a_punch_file_without_matrices_says_how_to_write_them():
    with pytest.raises(RobotFileError, match="has no matrices") as caught:
        load_matrices(sample("pyyeti/pyyeti/tests/nas2cam_extseout/outboard.pch"), [1])
    assert "DMIGPCH" in caught.value.hint


def test_matrix_market_files_of_suitesparse_are_read_as_they_are_meant(monkeypatch):
    """Empty lines and comments between entries; a header that is none."""
    monkeypatch.setattr(market_matrices, "refuse_order", lambda order, file: None)  # of two freedoms alone
    file = sample("SuiteSparse/CHOLMOD/Tcov/Matrix/fullrsa.mtx")
    assert read_matrix_market(Path(file).read_text(), file).tolist() == [[1.3, 3.4], [3.4, 7.7]]
    bad = sample("SuiteSparse/CHOLMOD/Demo/Matrix/mangle1.mtx")
    with pytest.raises(RobotFileError, match="no valid Matrix Market header"):
        read_matrix_market(Path(bad).read_text(), bad)
