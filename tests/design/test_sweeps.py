"""Sweeps: samples, tables that survive interruptions, and the processes, threads and clusters that compute them."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.command_line import answered
from support.paths import DATA
from support.robots import write_robot

import parflex
from parflex import InputError, jobs
from parflex.design.registry import RESPONSES
from parflex.jobs import completed_chunks

HEAD, QUICK, SWEEP = ((DATA / f"sweep-{name}.toml").read_text() for name in ("3rrr-flexible", "5r", "conditioning"))
SLOW = HEAD + '[responses.skew]\nresponse = "conditioning"\npose = { x = 0.0, y = 0.0 }\n'
SOBOL = '[samples]\nkind = "sobol"\ncount = 14\nseed = 3\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sweeps")


@pytest.fixture(scope="module")
def slow(folder):
    path = folder / "slow.toml"
    path.write_text(SLOW + SOBOL)
    return path, parflex.sweep(path, folder / "slow.npz", jobs=1)


@pytest.fixture(scope="module")
def quick(folder):
    path = folder / "quick.toml"
    path.write_text(QUICK + SOBOL)
    return path, parflex.sweep(path, folder / "serial.npz", jobs=1)


def table(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def same_tables(one: Path, other: Path) -> bool:
    first, second = table(one), table(other)
    equal = (np.array_equal(first[name], second[name], equal_nan=first[name].dtype.kind == "f") for name in first)
    return list(first) == list(second) and all(equal)


@pytest.mark.verify
def test_answers_are_those_of_robots_loaded_one_by_one(slow):
    _, result = slow
    assert (result.designs, result.done, result.computed, result.failed) == (14, 14, 14, 0)
    poses = [{"x": x, "y": y} for x in (-0.02, 0.02) for y in (0.0, 0.02)]
    for row in (0, 13):
        settings = {key: float(values[row]) for key, values in result.variables.items()}
        robot = parflex.load("3rrr-flexible", settings=settings)
        lowest = min(parflex.natural_frequencies(robot, pose, 1).frequencies[0] for pose in poses)
        assert abs(result.responses["lowest"][row] - lowest) < 1e-7 * lowest  # rounding of two ways to solve
        skew = parflex.sensitivities(robot, "conditioning", "constants.proximal", {"x": 0.0, "y": 0.0}).value
        assert result.responses["skew"][row] == pytest.approx(skew, rel=1e-9)
    assert result.units == {"lowest": "Hz", "mass": "kg", "skew": "dimensionless"}


def test_designs_that_cannot_be_are_lines_with_their_reasons(tmp_path):
    designs = "constants.proximal,constants.distal\n0.5,0.4\n0.1,0.05\n0.35,0.3\n0.5,\n0.5,0.41\n"
    (tmp_path / "designs.csv").write_text(designs)
    path = write_robot(tmp_path, HEAD.partition("[variables")[0] + "[responses" + HEAD.partition("[responses")[2]
                   + '[samples]\nkind = "list"\nfile = "designs.csv"\n')  # fmt: skip
    result = parflex.sweep(path, jobs=1)
    assert result.status.tolist()[0] == 0 and result.status.tolist()[4] == 0 and result.failed == 3
    assert result.status.tolist()[1:4] == [1, 1, 3] and "constants.distal" in result.reasons[3]
    assert result.reasons[1].startswith("the pose cannot be reached with 'theta' as at home (x=")
    assert all(bool(text) == bool(state) for text, state in zip(result.reasons, result.status, strict=True))
    assert np.isnan(result.responses["mass"][1]) and np.isfinite(result.responses["mass"][[0, 4]]).all()
    good = parflex.sensitivities(parflex.load("3rrr-flexible"), "mass", "constants.arm").value
    assert result.responses["mass"][0] == pytest.approx(good, rel=1e-12)


def test_poses_out_of_reach_are_named_and_leave_the_other_answers(tmp_path):
    path = write_robot(
        tmp_path, HEAD.replace("[-0.02, 0.02, 2]", "[0, 3, 2]") + '[samples]\nkind = "sobol"\ncount = 2\n'
    )
    result = parflex.sweep(path, jobs=1)
    assert result.status.tolist() == [1, 1] and "x=3" in result.reasons[0]
    assert np.isnan(result.responses["lowest"]).all() and np.isfinite(result.responses["mass"]).all()


def test_a_design_without_the_requested_mode_has_a_reason_in_the_table(tmp_path):
    (tmp_path / "slides.toml").write_text(
        'format = 1\nname = "slides"\ngravity = [0, 0, 0]\n[constants]\nk1 = 1000\nk2 = 2000\n'
        '[[frame]]\nname = "a"\njoint = "prismatic"\nspring = { stiffness = "k1" }\ninertia = { mass = 2 }\n'
        '[[frame]]\nname = "b"\nparent = "a"\njoint = "prismatic"\nspring = { stiffness = "k2" }\n'
        "inertia = { mass = 1 }\n[poses.home]\na = 0\nb = 0\n"
    )
    (tmp_path / "designs.csv").write_text("constants.k1,constants.k2\n1000,2000\n0,2000\n")
    keys = "".join(f"[variables.constants.k{n}]\nlower = 1\nupper = 3000\n" for n in (1, 2))
    text = f'robot = "slides.toml"\n{keys}[responses.second]\nresponse = "frequency:2"\n'
    result = parflex.sweep(write_robot(tmp_path, text + '[samples]\nkind = "list"\nfile = "designs.csv"\n'), jobs=1)
    squares = np.linalg.eigvals(np.array([[1500.0, -1000.0], [-2000.0, 2000.0]]))  # M^-1 K
    assert result.responses["second"][0] == pytest.approx(np.sqrt(squares.max()) / (2 * np.pi), rel=1e-9)
    assert result.status[0] == 0 and result.status[1] != 0 and "the robot has 1" in result.reasons[1]


def test_listed_designs_beyond_bounds_are_computed_with_a_warning(tmp_path):
    (tmp_path / "designs.csv").write_text("constants.proximal,constants.distal\n0.5,0.4\n0.56,0.39\n0.57,0.42\n")
    path = write_robot(tmp_path, HEAD + '[samples]\nkind = "list"\nfile = "designs.csv"\n')
    result = parflex.sweep(path, jobs=1)
    assert result.failed == 0 and len(result.warnings) == 2
    assert "2 of 3 listed designs have a 'constants.proximal' beyond its bounds 0.45 and 0.55" in result.warnings[0]
    assert "1 of 3 listed designs have a 'constants.distal' beyond its choices, the first 0.39" in result.warnings[1]
    assert result.as_dict()["warnings"] == result.warnings


def samples(folder: Path, text: str) -> dict[str, np.ndarray]:
    path = write_robot(folder, QUICK.partition("[responses.skew]")[0] + text, "samples")
    return parflex.sweep(path, jobs=1).variables


def test_a_grid_has_all_combinations(tmp_path):
    result = samples(tmp_path, '[samples]\nkind = "grid"\ncount = 3\n')
    pairs = list(zip(*result.values(), strict=True))
    assert len(set(pairs)) == len(pairs) == 9 and {round(x, 12) for x, _ in pairs} == {0.27, 0.3, 0.33}
    assert len(samples(tmp_path, "[samples]\n[samples.count.constants]\nproximal = 5\n")["constants.distal"]) == 15


@pytest.mark.parametrize("kind", ["sobol", "latin-hypercube"])
def test_samples_fill_the_space_and_hang_on_the_seed(kind, tmp_path):
    text = f'[samples]\nkind = "{kind}"\ncount = 64\nseed = '
    first, again, other = (samples(tmp_path, f"{text}{seed}\n") for seed in (1, 1, 2))
    x = first["constants.proximal"]
    assert np.array_equal(x, again["constants.proximal"]) and not np.array_equal(x, other["constants.proximal"])
    assert (np.histogram(x, 8, (0.27, 0.33))[0] == 8).all()  # each eighth has its share
    assert set(np.unique(first["constants.distal"])) == {0.38, 0.4, 0.42}


@pytest.mark.verify
def test_processes_find_the_same_bits_as_one(quick, folder):
    path, _ = quick
    seen = []
    result = parflex.sweep(path, folder / "two.npz", jobs=2, progress=lambda done, total: seen.append((done, total)))
    assert result.computed == 14 and same_tables(folder / "two.npz", folder / "serial.npz")
    assert seen[-1] == (14, 14) and len(seen) == 4


def test_any_executor_computes(quick, folder):
    path, _ = quick
    with ThreadPoolExecutor(2) as pool:
        parflex.sweep(path, folder / "threads.npz", executor=pool)
        assert pool.submit(int, "3").result() == 3  # it is the caller's to end
    assert same_tables(folder / "threads.npz", folder / "serial.npz")


def test_an_interrupted_sweep_goes_on_and_has_the_same_bits(quick, tmp_path, folder):
    path, _ = quick
    out = tmp_path / "out.npz"

    def stop(done: int, total: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    first = parflex.sweep(path, out, jobs=1, progress=stop)
    assert first.interrupted and (first.done, first.computed) == (8, 8) and len(table(out)["status"]) == 8
    second = parflex.sweep(path, out, jobs=1)
    assert (second.done, second.computed, second.interrupted) == (14, 6, False)
    assert same_tables(out, folder / "serial.npz") and parflex.sweep(path, out, jobs=1).computed == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.npz"]  # no lock, nothing half-written


KILLED = """
import os, signal, sys
import parflex
from parflex import jobs

jobs.SAVE_EVERY, jobs.SAVING = 0.0, 1e9

def kill(done, total):
    if done >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

parflex.sweep(sys.argv[1], sys.argv[2], jobs=int(sys.argv[4]), progress=kill)
"""


@pytest.mark.verify
@pytest.mark.skipif(os.name != "posix", reason="kills")
def test_a_killed_sweep_loses_and_doubles_nothing(quick, tmp_path, folder):
    path, _ = quick
    out = tmp_path / "out.npz"
    code = subprocess.run([sys.executable, "-c", KILLED, str(path), str(out), "8", "2"]).returncode
    assert code == -signal.SIGKILL
    result = parflex.sweep(path, out, jobs=1)
    assert result.done == 14 and 4 <= result.computed <= 10  # what was written before is not done again
    assert same_tables(out, folder / "serial.npz")
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.npz"]


def test_two_processes_do_not_write_one_table(quick, tmp_path):
    path, _ = quick
    out, entered, go = tmp_path / "out.npz", threading.Event(), threading.Event()

    def wait(done: int, total: int) -> None:
        entered.set()
        go.wait(60)

    beside = threading.Thread(target=lambda: parflex.sweep(path, out, jobs=1, progress=wait))
    beside.start()
    try:
        assert entered.wait(60)
        with pytest.raises(InputError, match="another process"):
            parflex.sweep(path, out, jobs=1)
    finally:
        go.set()
        beside.join()
    assert len(table(out)["status"]) == 14


def test_parquet_holds_the_same_table_and_is_taken_up(quick, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path, serial = quick
    out = tmp_path / "out.parquet"

    def stop(done: int, total: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    assert parflex.sweep(path, out, jobs=1, progress=stop).interrupted and parquet.read_table(out).num_rows == 8
    assert parflex.sweep(path, out, jobs=1).computed == 6
    result = parquet.read_table(out).to_pydict()
    assert list(result) == [*serial.variables, *serial.responses, "status", "reason"]
    assert result["skew"] == serial.responses["skew"].tolist() and result["reason"] == serial.reasons


def test_a_table_of_another_sweep_is_not_replaced(quick, tmp_path, folder):
    out = tmp_path / "out.npz"
    out.write_bytes((folder / "serial.npz").read_bytes())
    other = write_robot(tmp_path, QUICK + SOBOL.replace("seed = 3", "seed = 4"))
    with pytest.raises(InputError, match="belongs to another sweep"):
        parflex.sweep(other, out, jobs=1)
    assert same_tables(out, folder / "serial.npz")
    out.write_bytes(b"no table")
    with pytest.raises(InputError, match="not the table of a sweep"):
        parflex.sweep(other, out, jobs=1)


BAD = {
    "unknown key": ("[samples]\nkind='sobol'\ncount=2\nsize=3\n", "samples.size", "unknown"),
    "no count": ("[samples]\nkind = 'sobol'\n", "samples.count", "missing"),
    "counts": ("[samples]\ncount = { 'constants.no' = 3 }\n", "samples", "not a variable"),
    "file": ("[samples]\nkind = 'sobol'\ncount = 3\nfile = 'a.csv'\n", "samples.file", "belongs to the kind"),
    "name": ("[responses.status]\nresponse = 'mass'\n[samples]\ncount = 3\n", "responses", "cannot name"),
    "response": ("[responses.other]\nresponse = 'masses'\n[samples]\ncount = 3\n", "response", "no response"),
    "variable": ("[variables.constants.no]\nlower = 1\nupper = 2\n[samples]\ncount = 3\n", "variables", "no"),
}


@pytest.mark.parametrize(("text", "key", "words"), BAD.values(), ids=BAD.keys())
def test_a_bad_sweep_is_refused_with_its_key(text, key, words, tmp_path):
    with pytest.raises(parflex.ParflexError, match=words) as refusal:
        parflex.sweep(write_robot(tmp_path, HEAD + text), tmp_path / "out.npz", jobs=1)
    assert refusal.value.key == key and refusal.value.hint
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize(
    ("words", "key"),
    [({"out": "table.csv"}, "out"), ({"jobs": 0}, "jobs"), ({"jobs": 2, "cluster": "tcp://127.0.0.1:1"}, "cluster")],
)
def test_a_sweep_that_nobody_can_compute_is_refused(words, key, quick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refusal:
        parflex.sweep(quick[0], **words)
    assert refusal.value.key == key and refusal.value.hint


def test_the_verb_reports_numbers_of_designs_and_the_table(tmp_path, capsys):
    path = write_robot(tmp_path, HEAD + '[samples]\nkind = "sobol"\ncount = 4\n')
    out = tmp_path / "out.npz"
    for computed in (4, 0):
        answer = answered(capsys, "sweep", path, "--out", out, "--jobs", "1")
        wanted = {"designs": 4, "done": 4, "computed": computed, "failed": 0, "interrupted": False, "out": str(out)}
        assert answer | wanted == answer


CHUNKS = [(k, k + 1) for k in range(9)]


def square(chunk):
    return chunk[0] ** 2


def dies_at_five(chunk):
    if chunk[0] == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return square(chunk)


@pytest.mark.skipif(sys.platform != "linux", reason="kills forks")
def test_a_worker_that_is_killed_is_an_error_after_which_a_call_continues():
    answers = dict[tuple[int, int], int]()
    with pytest.raises(InputError, match="a worker was killed") as refusal:
        answers.update(completed_chunks(dies_at_five, CHUNKS, jobs.process_workers(2, 9)))
    assert refusal.value.key == "jobs" and "continues" in refusal.value.hint


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
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


def wait_for_workers(address, count):
    from distributed import Client

    end = time.monotonic() + 120
    with Client(address, set_as_default=False) as client:
        while len(client.run(os.getpid)) != count:
            assert time.monotonic() < end, "the wait_for_workers are not there"
            time.sleep(0.1)


@pytest.mark.verify
def test_a_cluster_whose_worker_is_killed_finds_the_same_table(cluster, tmp_path):
    address, start = cluster
    path, pair = tmp_path / "sweep.toml", []
    path.write_text(SWEEP)
    serial = parflex.sweep(path, jobs=1)
    pair += [start(), start()]
    wait_for_workers(address, 2)

    def kill(done, total):
        if done >= 8:
            pair[0].kill()

    result = parflex.sweep(path, tmp_path / "out.npz", cluster=address, progress=kill)
    assert result.computed == 40 and pair[0].wait(60) == -signal.SIGKILL
    assert np.array_equal(result.responses["skew"], serial.responses["skew"])
    assert np.array_equal(result.variables["constants.proximal"], serial.variables["constants.proximal"])
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
            result = parflex.sweep(path, executor=pool)
    finally:
        del RESPONSES["twice"]
    assert result.responses["skew"] == pytest.approx(2 * own.responses["skew"], rel=1e-12)


@pytest.mark.parametrize("kind", ["lambda", "main"])
def test_responses_that_workers_cannot_import_are_refused(kind, tmp_path, monkeypatch):
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
    distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    words = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=False, protocol="tcp", **words) as own:
        yield own.scheduler_address


def test_maps_on_a_cluster_are_those_of_one_process(inside):
    robot = parflex.load("3rrr-flexible")
    axes = [("x", -0.02, 0.02, 3), ("y", 0.0, 0.02, 2)]
    result = [parflex.frequency_map(robot, axes, modes=2, cluster=address) for address in (None, inside)]
    assert np.array_equal(result[0].frequencies, result[1].frequencies) and (result[1].status == 0).all()


@pytest.mark.verify
def test_a_cluster_with_another_parflex_is_refused(cluster, tmp_path):
    address, start = cluster
    (tmp_path / "parflex").mkdir()
    (tmp_path / "parflex" / "__init__.py").write_text('__version__ = "9.9"\n')
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    wait_for_workers(address, 0)
    old = start(first=str(tmp_path))
    wait_for_workers(address, 1)
    with pytest.raises(InputError, match="has another version or state of parflex") as refusal:
        parflex.sweep(path, tmp_path / "out.npz", cluster=address)
    assert refusal.value.key == "cluster" and "same version" in refusal.value.hint
    old.kill()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "http://"])
def test_an_unreachable_cluster_is_refused(address, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    with pytest.raises(InputError, match="no Dask scheduler answers") as refusal:
        parflex.sweep(path, tmp_path / "out.npz", cluster=address)
    assert refusal.value.key == "cluster" and "dask scheduler" in refusal.value.hint
    assert not list(tmp_path.glob("out*"))


PARENT = """
import multiprocessing, sys, time
from concurrent.futures import ProcessPoolExecutor
from parflex.jobs import initialise_worker

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(3, context, initializer=initialise_worker)
    for _ in range(3):
        pool.submit(time.sleep, 60)
    while len(pool._processes) < 3 or not all(worker.is_alive() for worker in pool._processes.values()):
        time.sleep(0.05)
    print(*pool._processes, flush=True)
    time.sleep(60)
"""


def alive(process: int) -> bool:
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        return text.rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_workers_end_when_their_parent_is_killed():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(word) for word in parent.stdout.readline().split()]
        assert len(workers) == 3 and all(alive(worker) for worker in workers)
        time.sleep(0.5)  # initializers run in the workers
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        for _ in range(200):
            if not any(alive(worker) for worker in workers):
                break
            time.sleep(0.1)
        left = [worker for worker in workers if alive(worker)]
        for worker in left:
            os.kill(worker, signal.SIGKILL)
        assert not left
