"""How long it takes from the file to the compiled function, and how that grows with the robot."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from report import Report
from timing import Harness

import parflex
from parflex.codegen import cache
from parflex.codegen.llvm_jit import Kernel
from parflex.robot.load import JOINT_TERMS

JOINTS = (5, 10, 20, 40, 80)
STARTS = (("dualemps", "circle", (1, 16)), ("gough-stewart-beams", None, (1, 4, 16)))  # motion, elements per link
REPEATS = 3
STATUS = Path("/proc/self/status")
LONG = 5.0  # seconds
LINK = """
[[frame]]
name = "{name}"
{parent}joint = "revolute"
actuated = true
mdh = {{ alpha = "{alpha}", d = 0.3, r = 0.1 }}
[frame.inertia]
mass = 2.0
centre = [0.1, 0.02, 0.03]
about_centre = [[0.02, 0.001, 0.002], [0.001, 0.03, 0.003], [0.002, 0.003, 0.04]]
"""


@contextmanager
def cache_in(folder: Path) -> Iterator[None]:
    """Programs and their compiled code are kept in this folder; "off": nowhere."""
    before = os.environ.get(cache.VARIABLE)
    os.environ[cache.VARIABLE] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[cache.VARIABLE]
        else:
            os.environ[cache.VARIABLE] = before


def chain_file(folder: Path, joints: int) -> Path:
    """A serial chain of revolute joints whose axes turn by right angles in turn."""
    rows = [
        LINK.format(name=k + 1, parent=f'parent = "{k}"\n' if k else "", alpha=("0", "pi/2", "-pi/2")[k % 3])
        for k in range(joints)
    ]
    path = folder / f"chain{joints}.toml"
    path.write_text(
        f'format = 1\nname = "chain{joints}"\ngravity = [0, 0, -9.81]\nend_effector = "{joints}"\n{"".join(rows)}'
    )
    return path


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def _best(work: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest of a few times; what takes long is done once."""
    best, result = _timed(work)
    for _ in range(REPEATS - 1):
        if best < LONG:
            best = min(best, _timed(work)[0])
    return best, result


def run_files(report: Report, harness: Harness, folder: Path) -> None:
    """Every robot of the catalogue: load, trace, compile and call the inverse model."""
    benchmark = "file to compiled inverse"
    for name in parflex.catalogue_names():
        report.progress(f"{benchmark}: {name}")
        try:
            cold, warm = _cold_and_warm(name, folder)
        except Exception as error:
            report.fail(f"{benchmark}, {name}", error)
            continue
        report.figure(benchmark, f"{name}, cold", 1e3 * cold, "ms")
        report.figure(
            benchmark, f"{name}, warm", 1e3 * warm, "ms", note="program and compiled code read from the cache"
        )


def _cold_and_warm(name: str, folder: Path) -> tuple[float, float]:
    def whole() -> None:
        made = parflex.model(parflex.load(name), "inverse", without=JOINT_TERMS)
        made(**made.sample)

    cold, warm = [], []
    for _ in range(REPEATS):
        with cache_in(Path(tempfile.mkdtemp(dir=folder))):
            cold.append(_timed(whole)[0])
            warm.append(_timed(whole)[0])
    return min(cold), min(warm)


def run_starts(report: Report, harness: Harness, folder: Path) -> None:
    """A short run of a flexible robot in a new process: with an empty cache, and once more."""
    benchmark = "start of a simulation"
    for name, motion, counts in STARTS:
        for elements in counts:
            report.progress(f"{benchmark}: {name}, {elements} elements per link")
            with cache_in(Path(tempfile.mkdtemp(dir=folder))):
                for word in ("first", "second"):
                    stepped, ended = _start_of_run(name, motion, elements, folder)
                    how = "made and compiled" if word == "first" else "read from the cache"
                    for what, seconds in (("to the first step", stepped), ("to the table of 20 steps", ended)):
                        note = f"processor time from the launch of Python {what}; programs, path and loop {how}"
                        report.figure(
                            benchmark, f"{name}, {elements} elements, {word}, {what}", seconds, "s", note=note
                        )


START = """
import sys, time
import parflex
from parflex.simulation import segments
name, motion, elements = sys.argv[1:]
loop, begun = segments.run_loop, []
def noted(*given):
    begun.append(time.process_time())
    return loop(*given)
segments.run_loop = noted
robot = parflex.load(name, elements=int(elements))
parflex.simulate(robot, motion or None, 0.02, step=1e-3, out_step=1e-2, check_width=False)
print(begun[0], time.process_time())
"""


def _start_of_run(name: str, motion: str | None, elements: int, folder: Path) -> tuple[float, float]:
    """Seconds of a new process of Python at its first step and at its end: nothing but parflex is imported there.

    The first of all compiles the modules of Python too; later ones find them compiled, as of an installed package.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "modules")
    command = [sys.executable, "-c", START, name, motion or "", str(elements)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    stepped, ended = (float(word) for word in done.stdout.split())
    return stepped, ended


def _chain(path: Path, model: str) -> tuple[float, float, int]:
    """Seconds of tracing with all passes and of compiling, and operators."""
    robot = parflex.load(path)
    with cache_in(Path("off")):
        trace, made = _best(lambda: parflex.model(robot, model, without=JOINT_TERMS))
        compiling, _ = _best(lambda: Kernel(made.program).half("one"))
    return trace, compiling, made.counts["total"]


def run_growth(report: Report, harness: Harness, folder: Path) -> None:
    """Serial chains: operators, tracing with all passes, compiling; and how straight the line is."""
    for model in ("inverse", "direct"):
        benchmark = f"growth, chain {model}"
        rows: dict[str, list[float]] = {"operators": [], "trace": [], "compile": []}
        for joints in JOINTS:
            report.progress(f"{benchmark}: {joints} joints")
            trace, compiling, operators = _chain(chain_file(folder, joints), model)
            for key, value, unit in (
                ("operators", operators, "operators"),
                ("trace", 1e3 * trace, "ms"),
                ("compile", 1e3 * compiling, "ms"),
            ):
                rows[key].append(value)
                report.figure(benchmark, f"{key}, {joints} joints", value, unit)
        for key, values in rows.items():
            residual, power = _straightness(values)
            note = f"largest distance from the line, of the largest value; last doubling grows by 2^{power:.2f}"
            report.figure(benchmark, f"{key}, linear fit", residual, "relative residual", note=note)
    if not STATUS.exists():
        report.skip("memory of tracing", "it is read from /proc, which this system does not have")
        return
    for model in ("inverse", "direct"):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            before, after = pool.submit(peak_memory, str(folder / f"chain{JOINTS[-1]}.toml"), model).result()
        note = f"peak of the process {after:.0f} MB, {before:.0f} MB of it before"
        name = f"memory of tracing {JOINTS[-1]} joints"
        report.figure(f"growth, chain {model}", name, after - before, "MB", note=note)


def _straightness(values: list[float]) -> tuple[float, float]:
    line = np.polyfit(JOINTS, values, 1)
    residual = np.abs(np.polyval(line, JOINTS) - values).max() / max(values)
    return float(residual), float(np.log2(values[-1] / values[-2]))


def peak_memory(path: str, model: str) -> tuple[float, float]:
    """Peak memory of this process before and after tracing, in MB."""
    robot = parflex.load(path)
    before = _peak()
    with cache_in(Path("off")):
        parflex.model(robot, model, without=JOINT_TERMS)
    return before, _peak()


def _peak() -> float:
    """Largest resident memory so far; `getrusage` would begin with that of the process that started this one."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return float(line.split()[1]) / 1e3
