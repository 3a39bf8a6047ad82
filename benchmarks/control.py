"""A study of wrong parameters on two cores, and one of its runs beside the same loop in plain NumPy."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from report import Report
from timing import Harness

from parflex.control.control import run_law
from parflex.control.study import StudySetup, run_study
from parflex.control.study_file import StudyFile

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.oracles import three_rrr

NAME = "control"
ROUNDS, PEER_ROUNDS = 10, 2
CORES = 2
SIGNS = np.array([1.0, -1.0, 1.0])


def run(report: Report, harness: Harness, folder: Path) -> None:
    """100 runs of 2 s at 1 ms under both laws; samples per second of both sides; agreement of the motions."""
    file = StudyFile(robot="3rrr", working_mode="+-+", reference={"kind": "circle", "radius": 0.1, "time": 2.0})
    bench = StudySetup(file)  # compiled programs are kept on disk from here on
    plant = bench.family.plant(bench.nominal)
    for law in bench.laws:
        run_law(law, plant, bench.track, bench.loop)
        peer, ours = [], []
        for number in range(ROUNDS):
            start = time.process_time()
            found = run_law(law, plant, bench.track, bench.loop)
            ours.append((time.process_time() - start) / 2000)
            if number < PEER_ROUNDS:
                report.progress(f"control: {law.name}, round {number + 1} of {PEER_ROUNDS} in NumPy")
                start = time.process_time()
                rows, _, _ = three_rrr.run(
                    law.name, three_rrr.Parameters(), three_rrr.Parameters(), SIGNS, 2.0, radius=0.1
                )
                peer.append((time.process_time() - start) / 2000)
        pose = np.stack([found[f"platform.{word}"] for word in ("x", "y", "theta")], axis=1)
        error = float(np.abs(pose - rows).max())
        ours_name, peer_name = f"{law.name}: parflex, a sample", f"{law.name}: NumPy, a sample"
        report.figure(NAME, ours_name, 1e9 * min(ours), "ns", error=error / 0.1, note="law, geometry, plant, columns")
        report.figure(NAME, peer_name, 1e9 * min(peer), "ns", note="the same loop by hand")
        report.compare(NAME, ours_name, peer_name)
        report.figure(NAME, f"{law.name}: largest difference of pose", error, "m or rad")
    report.progress("control: the study")
    start = time.perf_counter()
    study = run_study(file, jobs=CORES)
    wall = time.perf_counter() - start
    failed = sum(bool(law["failure"]) for case in study.cases.values() for law in case.values())
    note = f"{CORES} processes, everything but imports; {failed} runs failed"
    report.figure(NAME, "study of 100 runs", wall, "s", note=note)
