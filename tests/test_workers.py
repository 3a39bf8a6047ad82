"""Workers end with the process that they work for, also where it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PARENT = """
import multiprocessing, sys, time
from concurrent.futures import ProcessPoolExecutor
from parflex.campaigns.workers import end_with_parent

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(3, context, initializer=end_with_parent, initargs=(sys.argv[1] == "signal",))
    for _ in range(3):
        pool.submit(time.sleep, 60)
    while len(pool._processes) < 3 or not all(worker.is_alive() for worker in pool._processes.values()):
        time.sleep(0.05)
    print(*pool._processes, flush=True)
    time.sleep(60)
"""


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended and is not yet buried does not."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        return text.rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("way", ["signal", "pipe"])
def test_workers_end_when_their_parent_is_killed(way):
    with subprocess.Popen([sys.executable, "-c", PARENT, way], stdout=subprocess.PIPE, text=True) as parent:
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


def test_workers_of_a_campaign_are_told_to_end_with_it(monkeypatch):
    from parflex.campaigns import crews

    told = []
    monkeypatch.setattr(crews, "end_with_parent", lambda: told.append(True))
    monkeypatch.setattr(crews.signal, "signal", lambda *_: None)
    crews.begin_worker()
    assert told
