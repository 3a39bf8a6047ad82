"""How Exudyn integrates, for all robots that are built for it: its settings and the CPU seconds of its solver.

Exudyn is imported here alone, since its build must be chosen before.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

sys.exudynFast = True  # type: ignore[attr-defined]  # its build without range checks, if the processor can run it
import exudyn as exu  # noqa: E402
import exudyn.itemInterface as eii  # noqa: E402, N813
from exudyn.utilities import CreateSymbolicUserFunction  # noqa: E402

INSIDE = {"writeToFile": False, "storeInternal": True}  # of sensors


@dataclass(frozen=True)
class Settings:
    """How Exudyn integrates: the fastest settings that were found to be stable are the defaults."""

    spectral_radius: float = 0.9
    relative: float = 1e-3
    absolute: float = 1e-6
    modified_newton: bool = True
    sparse: bool = True


def seconds_of(mbs: Any, end: float, step: float, output: float, how: Settings) -> float:
    """Move a system from rest, recorded at every `output` seconds; CPU seconds of the solver."""
    settings = exu.SimulationSettings()
    integration = settings.timeIntegration
    integration.endTime, integration.numberOfSteps = end, round(end / step)
    integration.generalizedAlpha.spectralRadius = how.spectral_radius
    integration.newton.useModifiedNewton = how.modified_newton
    integration.newton.relativeTolerance, integration.newton.absoluteTolerance = how.relative, how.absolute
    integration.verboseMode = 0
    if how.sparse:
        settings.linearSolver.solverType = exu.LinearSolverType.EigenSparse
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = output
    begin = time.process_time()
    mbs.SolveDynamic(settings)
    return time.process_time() - begin


__all__ = ["INSIDE", "CreateSymbolicUserFunction", "Settings", "eii", "exu", "seconds_of"]
