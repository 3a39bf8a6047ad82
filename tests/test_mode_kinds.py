"""In the plane or across it: the modes of a symmetric boom, whatever its body is given by."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from support.oracles import super_elements as oracle

import parflex
from parflex.bodies.finite_elements import craig_bampton
from parflex.bodies.modal_file import save_modal
from parflex.models.elastic.participation import energy_shares

LENGTH, BAR = 0.3, oracle.round_bar(0.004)
# what turns with the hand differs in and across the plane: modes of a round boom would be of any plane otherwise
ROBOT = """
format = 1
name = "boom"
end_effector = "hand"
[materials.steel]
elastic_modulus = 210e9
density = 7850
[sections.round]
shape = "circle"
diameter = 0.004
[[frame]]
name = "link"
joint = "revolute"
actuated = true
{body}
[[frame]]
name = "hand"
parent = "link.tip"
inertia = {{ mass = 0.05, about_centre = [1e-5, 4e-5, 1e-4] }}
"""


def modes(folder, body: str, count: int = 10):
    (folder / "boom.toml").write_text(ROBOT.format(body=body))
    found = parflex.natural_frequencies(parflex.load(folder / "boom.toml"), modes=count)
    return found.frequencies, np.array([part["in_plane"] for part in energy_shares(found)])


def mixed(M: np.ndarray, K: np.ndarray, interface: int) -> tuple[np.ndarray, np.ndarray]:
    """The same body with other modal coordinates: those of one frequency are turned into each other."""
    T = np.eye(len(M))
    T[interface : interface + 2, interface : interface + 2] = [[0.8, -0.6], [0.6, 0.8]]
    return T.T @ M @ T, T.T @ K @ T


def test_modes_of_a_round_boom_are_in_the_plane_or_across_it_whatever_gives_its_body(tmp_path):
    """By symmetry. All modes of the elements are in the super-element, so that its frequencies are those of beams."""
    beam, kinds = modes(tmp_path, 'beam = { length = 0.3, material = "steel", section = "round", elements = 4 }')
    assert np.minimum(kinds, 1 - kinds).max() < 1e-12  # rounding, squared
    assert 0 < np.round(kinds).sum() < len(kinds)
    M, K = mixed(*oracle.reduced_beam(LENGTH, 4, BAR, 18), 12)
    np.savez(tmp_path / "super.npz", M=M, K=K, positions=[[0, 0, 0], [LENGTH, 0, 0]])
    frequencies, found = modes(tmp_path, 'superelement = { file = "super.npz", nodes = { root = 1, tip = 2 } }')
    assert frequencies == pytest.approx(beam, rel=1e-6)
    assert found == pytest.approx(np.round(kinds), abs=1e-9)  # modes of one frequency are parted to rounding


def test_modes_of_a_boom_by_modal_data_are_in_the_plane_or_across_it(tmp_path):
    count = 20
    nodes = np.outer(np.linspace(0, LENGTH, count + 1), [1, 0, 0])
    M, K = oracle.chain(LENGTH, count, BAR)
    save_modal(craig_bampton(M, K, nodes, {"root": 0, "tip": count}, 4, root="root").data, tmp_path / "boom.npz")
    beam, kinds = modes(tmp_path, 'beam = { length = 0.3, material = "steel", section = "round", elements = 6 }')
    frequencies, found = modes(tmp_path, 'modal = { file = "boom.npz" }')
    assert frequencies[:6] == pytest.approx(beam[:6], rel=0.01)  # masses at nodes
    assert np.minimum(found, 1 - found).max() < 1e-9
    assert list(np.round(found[:6])) == list(np.round(kinds[:6]))


def test_nodes_above_and_below_the_plane_mirror_each_other(tmp_path):
    """A boom that ends in a bar along its hinge: turns about the boom move the ends of that in the plane."""
    high, count = 0.05, 6
    along, size = oracle.chain(LENGTH, count, BAR), 6 * (count + 3)
    M, K = np.zeros((2, size, size))
    M[: len(along[0]), : len(along[0])], K[: len(along[0]), : len(along[0])] = along
    for node, sign in ((count + 1, 1.0), (count + 2, -1.0)):
        stub = oracle.chain(high, 1, BAR)
        up = np.array([[0.0, 0.0, sign], [0.0, 1.0, 0.0], [-sign, 0.0, 0.0]])  # x of the stub along +-z
        rows = [*range(6 * count, 6 * count + 6), *range(6 * node, 6 * node + 6)]
        T = scipy.linalg.block_diag(up, up, up, up)
        for whole, own in zip((M, K), stub, strict=True):
            whole[np.ix_(rows, rows)] += T.T @ own @ T
    kept = [*range(6), *range(6 * count + 6, size)]
    M, K = oracle.reduced(M, K, kept, 6)
    np.savez(tmp_path / "t.npz", M=M, K=K, positions=[[0, 0, 0], [LENGTH, 0, high], [LENGTH, 0, -high]])
    body = 'superelement = { file = "t.npz", nodes = { root = 1, top = 2, low = 3 } }'
    text = ROBOT.split('[[frame]]\nname = "hand"')[0].format(body=body).replace('"hand"', '"link.top"')
    (tmp_path / "t.toml").write_text(text)
    found = parflex.natural_frequencies(parflex.load(tmp_path / "t.toml"), modes=8)
    kinds = np.array([part["in_plane"] for part in energy_shares(found)])
    assert np.minimum(kinds, 1 - kinds).max() < 1e-9
    assert 0 < np.round(kinds).sum() < len(kinds)
