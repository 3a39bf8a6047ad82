"""Campaigns: chunks handed out, lost and found again, kept in a journal, and workers that may not help."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex import InputError
from parflex.campaigns import crews
from parflex.campaigns.chunk_tasks import ChunkTask, own_source, solve_chunk
from parflex.campaigns.handing_out import answers
from parflex.campaigns.journal import Journal
from parflex.design.registry import RESPONSES

CHUNKS = [(k, k + 1) for k in range(9)]


def square(chunk):
    return chunk[0] ** 2


def refuse(chunk):
    raise InputError("no", key="pose", value=3, hint="ask less")


def dies_at_five(folder, times, chunk):
    """Its process is killed the first few times that it is asked for the fifth chunk."""
    marks = list(Path(folder).iterdir())
    if chunk[0] == 5 and len(marks) < times:
        (Path(folder) / f"{len(marks)}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(chunk)


@pytest.mark.parametrize("crew", [crews.here(), crews.threads(3), crews.processes(2, 9)], ids=lambda crew: crew.name)
def test_every_chunk_is_answered_once_and_in_order_if_asked(crew):
    assert sorted(answers(square, CHUNKS, crew)) == [(chunk, square(chunk)) for chunk in CHUNKS]
    assert list(answers(square, CHUNKS, crew, ordered=True)) == [(chunk, square(chunk)) for chunk in CHUNKS]


@pytest.mark.skipif(sys.platform != "linux", reason="kills forks")
def test_what_a_dead_worker_had_is_given_to_another(tmp_path):
    found = answers(partial(dies_at_five, tmp_path, 2), CHUNKS, crews.processes(2, 9))
    assert dict(found) == {chunk: square(chunk) for chunk in CHUNKS}
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="kills forks")
def test_a_chunk_that_kills_all_workers_is_named(tmp_path):
    with pytest.raises(InputError, match="again and again") as refusal:
        list(answers(partial(dies_at_five, tmp_path, 99), CHUNKS, crews.processes(2, 9)))
    assert refusal.value.key == "jobs" and "kept" in refusal.value.hint


def _first_alone(chunk):
    if chunk:
        time.sleep(60)
    return chunk


def test_who_stops_does_not_wait_for_work_that_runs():
    found = answers(_first_alone, [0, 1, 2, 3], crews.processes(2, 4))
    assert next(found) == (0, 0)
    begin = time.monotonic()
    found.close()
    assert time.monotonic() - begin < 30  # of the 60 s that each of the others takes


def test_errors_of_workers_come_through_whole():
    with pytest.raises(InputError) as refusal:
        list(answers(refuse, CHUNKS, crews.processes(2, 9)))
    assert (refusal.value.key, refusal.value.value, refusal.value.hint) == ("pose", 3, "ask less")


def test_a_journal_gives_back_whole_entries_alone(tmp_path):
    results = tmp_path / "table.npz"
    with Journal(results, "one") as journal:
        journal.entries()
        for text in (b"first", b"second" * 100):
            journal.add(text)
    content = journal.path.read_bytes()
    journal.path.write_bytes(content[:-7])
    with Journal(results, "one") as journal:
        assert journal.entries() == [b"first"]
        journal.add(b"third")
    with Journal(results, "one") as journal:
        assert journal.entries() == [b"first", b"third"]
    with pytest.raises(InputError, match="another campaign"), Journal(results, "two") as journal:
        journal.entries()
    with Journal(results, "one") as journal:
        journal.entries()
        journal.clear()
    assert not journal.path.exists()


def test_workers_with_another_parflex_are_refused():
    version, digest = own_source()
    for source, words in (((version, "other"), "another state"), (("9.9", digest), f"parflex {version}, but")):
        with pytest.raises(InputError, match=words):
            solve_chunk(ChunkTask(lambda _: square, None, "refused", source), (0, 1))
    assert solve_chunk(ChunkTask(lambda _: square, None, "taken", own_source()), (3, 4)) == 9


# -- a real cluster ------------------------------------------------------------------------------------

SWEEP = """
robot = "3rrr-flexible"
[variables.constants.proximal]
lower = 0.45
upper = 0.55
[responses.skew]
response = "conditioning"
pose = { x = 0.0, y = 0.0 }
[samples]
kind = "sobol"
count = 40
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler, and a function that starts a worker of it."""
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    folder, source = tmp_path_factory.mktemp("cluster"), str(Path(parflex.__file__).parents[1])
    with ExitStack() as stack:

        def start(*words, first=source):
            environment = {**os.environ, "PYTHONPATH": first, "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
            command = [sys.executable, "-m", *words, "--no-dashboard"]
            with (folder / f"{len(list(folder.iterdir()))}.log").open("wb") as log:
                process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        about = folder / "scheduler.json"
        start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(about))
        end = time.monotonic() + 120
        while not about.exists() or '"address"' not in about.read_text():
            assert time.monotonic() < end, "no scheduler"
            time.sleep(0.1)
        import json

        address = json.loads(about.read_text())["address"]
        worker = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny")
        yield address, partial(start, *worker)


def workers(address, count):
    """Wait until a scheduler has so many workers."""
    from distributed import Client

    end = time.monotonic() + 120
    with Client(address, set_as_default=False) as client:
        while len(client.run(os.getpid)) != count:
            assert time.monotonic() < end, "the workers are not there"
            time.sleep(0.1)


@pytest.mark.verify
def test_a_cluster_whose_worker_is_killed_finds_the_same_table(cluster, tmp_path):
    address, start = cluster
    path, pair = tmp_path / "sweep.toml", []
    path.write_text(SWEEP)
    serial = parflex.sweep(path, jobs=1)
    pair += [start(), start()]
    workers(address, 2)

    def kill(done, total):
        if done >= 8:
            pair[0].kill()

    found = parflex.sweep(path, tmp_path / "out.npz", cluster=address, progress=kill)
    assert found.computed == 40 and pair[0].wait(60) == -signal.SIGKILL
    assert np.array_equal(found.responses["skew"], serial.responses["skew"])
    assert np.array_equal(found.variables["constants.proximal"], serial.variables["constants.proximal"])
    parflex.add_response("twice", doubled, "dimensionless", "Twice the condition number.")
    path.write_text(SWEEP.replace("conditioning", "twice").replace("40", "3"))
    try:
        with pytest.raises(InputError, match="a worker cannot import the response 'twice'"):
            parflex.sweep(path, cluster=address)
    finally:
        del RESPONSES["twice"]
    pair[1].kill()


def doubled(state, argument):
    return 2 * state.here.condition.platform


@pytest.mark.verify
def test_workers_import_responses_of_users(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP.replace("40", "3"))
    own = parflex.sweep(path, jobs=1)
    path.write_text(SWEEP.replace("conditioning", "twice").replace("40", "3"))
    parflex.add_response("twice", doubled, "dimensionless", "Twice the condition number.")
    spawn = multiprocessing.get_context("spawn")  # new interpreters: they know nothing of this process
    try:
        with ProcessPoolExecutor(1, spawn) as pool:
            found = parflex.sweep(path, executor=pool)
    finally:
        del RESPONSES["twice"]
    assert found.responses["skew"] == pytest.approx(2 * own.responses["skew"], rel=1e-12)


@pytest.mark.parametrize("kind", ["lambda", "closure", "main", "object"])
def test_a_response_that_workers_cannot_import_is_refused_in_one_sentence(kind, tmp_path, monkeypatch):
    def inner(state, _):
        return 1.0

    made = {"lambda": lambda state, _: 1.0, "closure": inner, "main": doubled, "object": partial(doubled)}
    if kind == "main":
        monkeypatch.setattr(doubled, "__module__", "__main__")
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP.replace("conditioning", "held"))
    parflex.add_response("held", made[kind], "dimensionless", "One.")
    try:
        with ProcessPoolExecutor(1) as pool, pytest.raises(InputError, match="cannot import the response 'held'") as no:
            parflex.sweep(path, executor=pool)
    finally:
        del RESPONSES["held"]
    assert no.value.key == "responses" and "top level of a module" in no.value.hint


@pytest.fixture(scope="module")
def inside():
    """A cluster in this process."""
    distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    with distributed.LocalCluster(
        processes=False, protocol="tcp", n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as own:
        yield own.scheduler_address


def test_maps_on_a_cluster_are_those_of_one_process(inside):
    robot = parflex.load("3rrr-flexible")
    axes = [("x", -0.02, 0.02, 3), ("y", 0.0, 0.02, 2)]
    found = [parflex.frequency_map(robot, axes, modes=2, cluster=address) for address in (None, inside)]
    assert np.array_equal(found[0].frequencies, found[1].frequencies) and (found[1].status == 0).all()


def test_a_cluster_with_another_parflex_is_refused(cluster, tmp_path):
    address, start = cluster
    (tmp_path / "parflex").mkdir()
    (tmp_path / "parflex" / "__init__.py").write_text('__version__ = "9.9"\n')
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    workers(address, 0)
    old = start(first=str(tmp_path))
    workers(address, 1)
    with pytest.raises(InputError, match=r"has parflex 9\.9, but this is") as refusal:
        parflex.sweep(path, tmp_path / "out.npz", cluster=address)
    assert refusal.value.key == "cluster" and "same version" in refusal.value.hint
    old.kill()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "http://", 3])
def test_a_cluster_that_is_not_there_is_said_in_one_sentence(address, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    with pytest.raises(InputError, match="no Dask scheduler answers") as refusal:
        parflex.sweep(path, tmp_path / "out.npz", cluster=address)
    assert refusal.value.key == "cluster" and "dask scheduler" in refusal.value.hint
    assert not list(tmp_path.glob("out*"))
