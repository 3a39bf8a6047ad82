"""FMUs for tests: made once, and called by the functions of their version."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import ClassVar

import fmpy
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException

import parflex
from parflex.exchange.fmu import compile
from support.cases import VERIFY

if not VERIFY:  # the same numbers, compiled in a third of the time
    compile.FLAGS = tuple("-O0" if flag == "-O2" else flag for flag in compile.FLAGS)
STEP = 1e-3
EFFORTS = {"5r": 0.3, "3rrr": 0.5, "dualemps": 60.0, "gough-stewart": 100.0, "gough-stewart-flexible": 100.0}


class Unit:
    """An instance of an FMU by the functions of its version."""

    made: ClassVar[list[Unit]] = []

    def __init__(self, file: Path, kind: str = "CoSimulation") -> None:
        self.made.append(self)
        self.said: list[str] = []
        self.folder = str(file) if Path(file).is_dir() else fmpy.extract(str(file))
        self.about = fmpy.read_model_description(self.folder)
        self.number = {v.name: v.valueReference for v in self.about.modelVariables}
        self.two = self.about.fmiVersion == "2.0"
        log = lambda *words: self.said.append(words[-1].decode())  # noqa: E731
        self.unit = fmpy.instantiate_fmu(self.folder, self.about, kind, logger=log)
        unit, kind = self.unit, "Real" if self.two else "Float64"
        self.get_all, self.set_all = (getattr(unit, f"{word}{kind}") for word in ("get", "set"))

    def names(self, causality: str) -> list[str]:
        return [v.name for v in self.about.modelVariables if v.causality == causality]

    def get(self, names) -> np.ndarray:
        return np.array(self.get_all([self.number[name] for name in names]))

    def put(self, values: dict) -> None:
        self.set_all([self.number[name] for name in values], list(values.values()))

    def start(self, values: dict) -> None:
        if self.two:
            self.unit.setupExperiment(startTime=0.0)
            self.unit.enterInitializationMode()
        else:
            self.unit.enterInitializationMode(startTime=0.0)
        self.put(values)
        self.unit.exitInitializationMode()

    def again(self, values: dict) -> None:
        self.unit.terminate()
        self.unit.reset()
        self.start(values)

    def refused(self, call, *arguments) -> str:
        """Return the message of a call that is an error."""
        with pytest.raises(FMICallException):
            call(*arguments)
        return self.said[-1]

    def run(self, first: int, last: int, names, step: float = 1e-3) -> np.ndarray:
        rows = []
        for k in range(first, last):
            self.unit.doStep(k * step, step)
            rows.append(self.get(names))
        return np.array(rows)

    def state(self):
        return self.unit.getFMUstate() if self.two else self.unit.getFMUState()

    def restore(self, state) -> None:
        (self.unit.setFMUstate if self.two else self.unit.setFMUState)(state)

    def along(self, unknown, known, direction) -> np.ndarray:
        """Directional derivatives by name."""
        refs = [self.number[name] for name in unknown], [self.number[name] for name in known]
        found = self.unit.getDirectionalDerivative(*refs, list(direction))
        return np.array(found)

    @classmethod
    def close_all(cls) -> None:
        for unit in list(cls.made):
            unit.close()

    def close(self) -> None:
        self.made.remove(self)
        self.unit.freeInstance()
        shutil.rmtree(self.folder, ignore_errors=True)


def exported(name: str, fmi: int = 2, kind: str = "cs", drive: str = "efforts", independent: tuple = ()) -> Path:
    """The file; model exchange without friction, whose change at rest no step of ours resolves."""
    return _exported(name, fmi, kind, drive, independent)


@cache
def _exported(name: str, fmi: int, kind: str, drive: str, independent: tuple) -> Path:
    left_out = ["friction"] if kind == "me" else []
    file = Path(tempfile.mkdtemp()) / f"{name}.fmu"
    frames = ["tip"] if name == "5r" and drive == "efforts" else []
    parflex.export_fmu(
        parflex.load(name), file, fmi=fmi, kind=kind, drive=drive, step=STEP, without=left_out, wrench_frames=frames,
        independent=list(independent) or None,
    )  # fmt: skip
    return file


def given(name: str) -> dict[str, float]:
    efforts = {f"effort.{motor}": EFFORTS[name] * (k + 1) for k, motor in enumerate(parflex.load(name).actuated_names)}
    return efforts | ({"wrench.tip.fx": 0.4, "wrench.tip.fy": -0.7, "wrench.tip.mz": 0.05} if name == "5r" else {})


def as_run(name: str) -> dict[str, dict]:
    values = given(name)
    effort = {word.removeprefix("effort."): value for word, value in values.items() if word.startswith("effort.")}
    return {"effort": effort} | ({"wrench": {"tip": [0.4, -0.7, 0.05]}} if name == "5r" else {})
