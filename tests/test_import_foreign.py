"""Robots of public collections read in: PARFLEX_FOREIGN names a folder with checkouts of them; nothing is copied here.

`example-parallel-robots` (Gepetto), `mujoco_menagerie` (Google DeepMind) and `symoro`, each in a folder of this name.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from support.import_foreign import changed
from support.imported import MujocoPeer, PinocchioPeer, anywhere, import_some, tree_misses

import parflex
from parflex.exchange.importing.small_yaml import read_yaml

HERE = Path(os.environ.get("PARFLEX_FOREIGN", "nowhere"))
pytestmark = [
    pytest.mark.verify,
    pytest.mark.skipif(not HERE.exists(), reason="PARFLEX_FOREIGN names no folder"),
]
GEPETTO = sorted((HERE / "example-parallel-robots" / "robots").glob("**/*.urdf"))
MENAGERIE = [
    file
    for file in sorted((HERE / "mujoco_menagerie").glob("*/*.xml"))
    if "<equality" in file.read_text(errors="replace")
]
SYMORO = sorted((HERE / "symoro").glob("**/*.par"))
# a joint of the file of loops is misspelt in the URDF; no closed pose is near that of the file
NOT_READ = {"disney_robot": "there is no joint 'left_spherical_free_foot'"}
NOT_CLOSED = ("kangaroo_like", "kangaroo_like_2legs")


def check_rows(robot, peer) -> None:
    """Motions that our loops leave free are those that its loops leave free."""
    rng, at = np.random.default_rng(0), parflex.configure(robot)
    for column in at.null_space.T:
        moving = anywhere(robot, rng, at.q)
        moving.qd = np.zeros(robot.tree.n)
        moving.qd[robot.free] = column * robot.tree.rate_units[robot.free]
        q, v, _ = peer.state(moving)
        J = peer.rows(q)
        assert np.abs(J @ v).max(initial=0) < 1e-8 * np.abs(J).max(initial=1) * np.abs(v).max()
        assert peer.opening(q) < 1e-8
    rank = np.linalg.matrix_rank(peer.rows(q), tol=1e-7)
    assert at.null_space.shape[1] == peer.n - rank or robot.mobility.home_rank < robot.mobility.rank


@pytest.mark.parametrize("file", GEPETTO, ids=lambda file: file.parent.name)
def test_parallel_robots_of_gepetto(file, tmp_path):
    beside, name = file.parent / "robot.yaml", file.parent.name
    loops = read_yaml(beside.read_text(), str(beside)) if beside.exists() else {}
    if name in NOT_READ:
        with pytest.raises(parflex.InputError, match=NOT_READ[name]):
            parflex.import_robot(file, tmp_path / "robot.toml", loops=beside)
        return
    found = import_some(file, tmp_path / "robot.toml", loops=beside if beside.exists() else None)
    assert found.check["ok"] == (name not in NOT_CLOSED), found.check
    peer, rng = PinocchioPeer(str(file), loops, changed(str(file), loops)), np.random.default_rng(1)
    renamed = {one.replace("/", "_"): one for one in peer.model.names}
    peer.number = lambda word: peer.model.getJointId(renamed.get(word, word))
    robot = parflex.load(found.file) if found.check["ok"] else None
    if robot is not None:
        for _ in range(2):
            assert tree_misses(peer, anywhere(robot, rng)) < 1e-10
        check_rows(robot, peer)


@pytest.mark.parametrize("file", MENAGERIE, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_loops_of_the_menagerie(file, tmp_path):
    mujoco = pytest.importorskip("mujoco", minversion="3.2.3")
    found = parflex.import_robot(file, tmp_path / "robot.toml")
    if "toddlerbot" in file.parent.name:  # axes of over-constrained loops are rounded
        assert "e-08 m" in found.check["error"]["message"]
        return
    assert found.check["ok"], found.check
    robot, peer, rng = parflex.load(found.file), MujocoPeer(mujoco, file), np.random.default_rng(1)
    peer.renamed = {one.replace("/", "_"): one for one in (peer.model.joint(k).name for k in range(peer.model.njnt))}
    if any(one.kind == "gravity compensation" for one in found.dropped):  # of some bodies: left out, and said
        peer.model.body_gravcomp[:] = 0
    peer.model.opt.density = peer.model.opt.viscosity = 0
    dropped = {one.name for one in found.dropped if one.kind == "tendon"}
    for k in range(peer.model.ntendon):
        if peer.model.tendon(k).name in dropped:
            peer.model.tendon_stiffness[k] = peer.model.tendon_damping[k] = 0
    for _ in range(2):
        assert tree_misses(peer, anywhere(robot, rng)) < 1e-10
    check_rows(robot, peer)


@pytest.mark.parametrize("file", SYMORO, ids=lambda file: file.stem)
def test_robots_of_symoro(file, tmp_path):
    found = parflex.import_robot(file, tmp_path / "robot.toml")
    assert found.check["ok"] and found.joints
