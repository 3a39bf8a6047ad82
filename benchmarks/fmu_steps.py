"""One communication step of an FMU beside the compiled loop of `simulate`: the same step, the same row of output."""

from __future__ import annotations

import ctypes
import os
import re
import zipfile
from pathlib import Path

import numpy as np
from report import Report
from timing import Harness, Loop, measure

import parflex
from parflex.exchange.fmu.plant import FmuPlant, make_plant
from parflex.integrators.common import record
from parflex.integrators.driver import new_work
from parflex.integrators.events import settle

NAME, STEP, SPAN = "fmu", 1e-3, 40  # s; steps from the start, which is restored then
ROBOTS = ("5r", "dualemps", "gough-stewart")


def run(report: Report, harness: Harness, folder: Path) -> None:
    """Microseconds of a step on both sides, and their ratio."""
    for name in ROBOTS:
        robot = parflex.load(name)
        report.progress(f"fmu: {name}")
        file = parflex.export_fmu(robot, folder / f"{name}.fmu", step=STEP).file
        plant = make_plant(robot, "cs", "efforts", "gauss4", STEP, [], [robot.tree.end_effector], None, (), None)
        unit = _Unit(Path(file), folder / name)
        found = measure({"fmu": unit.steps(), "loop": _pure(plant), "call": unit.empty()})
        fmu, loop = (np.median(found[side] - np.median(found["call"]) * (side == "fmu")) for side in ("fmu", "loop"))
        ratio = np.percentile((found["fmu"] - np.median(found["call"])) / found["loop"], [10, 90])
        note = (
            f"load {os.getloadavg()[0]:.1f}; a call from Python, {np.median(found['call']) / 1e3:.1f} us, is taken off"
        )
        report.figure(NAME, f"{name}: step of the FMU", fmu / 1e3, "us", note=note)
        report.figure(NAME, f"{name}: step of the loop", loop / 1e3, "us")
        between = f"10 to 90 %: {ratio[0]:.2f} to {ratio[1]:.2f}"
        report.figure(NAME, f"{name}: FMU to loop", fmu / loop, "times", note=between)


class _Unit:
    """An FMU by its functions."""

    def __init__(self, file: Path, folder: Path) -> None:
        with zipfile.ZipFile(file) as archive:
            archive.extractall(folder)
            token = re.findall(r'guid="([^"]+)"', archive.read("modelDescription.xml").decode())[0]
        (library,) = (folder / "binaries").rglob("*.so")
        self.library = ctypes.CDLL(str(library))
        self.library.fmi2Instantiate.restype = ctypes.c_void_p
        self.unit = ctypes.c_void_p(self.library.fmi2Instantiate(b"one", 1, token.encode(), b"", None, 0, 0))
        self.library.fmi2ExitInitializationMode(self.unit)
        self.start = ctypes.c_void_p()
        self.library.fmi2GetFMUstate(self.unit, ctypes.byref(self.start))

    def steps(self) -> Loop:
        """Steps, of which some start again."""
        step, unit = self.library.fmi2DoStep, self.unit
        step.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.c_double, ctypes.c_int]

        def loop(calls: int) -> None:
            for k in range(calls):
                if k % SPAN == 0:
                    self.library.fmi2SetFMUstate(unit, self.start)
                if step(unit, (k % SPAN) * STEP, STEP, 1):
                    raise RuntimeError(f"step {k} failed")

        return loop

    def empty(self) -> Loop:
        """Calls that do nothing."""
        call, unit = self.library.fmi2CancelStep, self.unit
        call.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.c_double, ctypes.c_int]  # as those of a step

        def loop(calls: int) -> None:
            for k in range(calls):
                call(unit, (k % SPAN) * STEP, STEP, 1)

        return loop


def _pure(plant: FmuPlant) -> Loop:
    """The same steps by the loop of `simulate`, a row of output behind each."""
    system, method = plant.system, plant.method
    width = plant.work.x.shape[1] - len(system.constants)
    x, y = np.empty((SPAN, width)), np.empty((SPAN, system.outputs + 2))

    work, q, qd = new_work(system, method.stages, method.unknowns), plant.start[0].copy(), plant.start[1].copy()
    if len(system.rubbing):
        settle(system, work, 0.0, q, qd)
    record(system, work, 0.0, q, qd, x[0], y[0])
    memory = [q, qd, *(getattr(work, name) for name in work._names)]
    kept = [array.copy() for array in memory]

    def loop(calls: int) -> None:
        for first in range(0, calls, SPAN):
            count = min(SPAN, calls - first)
            for array, before in zip(memory, kept, strict=True):
                array[...] = before
            done, status = method.steps(system, work, method.tableau, 0.0, STEP, 1, q, qd, 1e-12, x[:count], y[:count])
            if status:
                raise RuntimeError(f"step {done} failed")

    return loop
