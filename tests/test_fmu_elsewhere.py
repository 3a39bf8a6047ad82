"""FMUs for other processors and systems, run by emulators where they are installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import fmpy
import numpy as np
import pytest
from support.fmu_units import STEP

import parflex

DRIVER = Path(__file__).parent / "fmu_driver.c"
STEPS = 40
# folder in the FMU, target of the compiler, what runs a program for it
ELSEWHERE = {
    "aarch64-linux": ("aarch64-linux-gnu.2.31", ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")),
    "x86_64-windows": ("x86_64-windows-gnu", ("wine",)),
}


@pytest.mark.verify
@pytest.mark.parametrize("platform", ELSEWHERE)
def test_a_library_for_another_machine_makes_the_steps_of_simulate(platform, tmp_path, figure):
    pytest.importorskip("ziglang")
    target, emulator = ELSEWHERE[platform]
    if shutil.which(emulator[0]) is None:
        pytest.skip(f"no {emulator[0]}: install Debian's qemu-user and libc6-arm64-cross, or wine")
    robot = parflex.load("5r")
    file = parflex.export_fmu(robot, tmp_path / "5r.fmu", fmi=3, step=STEP, method="gauss4", platforms="all").file
    about = fmpy.read_model_description(file)
    with zipfile.ZipFile(file) as archive:
        (inside,) = [name for name in archive.namelist() if name.startswith(f"binaries/{platform}/")]
        library = Path(archive.extract(inside, tmp_path))
    program = tmp_path / "driver.exe"
    compile_ = [sys.executable, "-m", "ziglang", "cc", "-target", target, str(DRIVER), "-o", str(program)]
    subprocess.run(compile_, check=True, capture_output=True)
    outputs = [v for v in about.modelVariables if v.causality == "output" and v.name.startswith(("q.", "qd."))]
    words = [about.guid or about.instantiationToken, str(STEPS), str(STEP), *(str(v.valueReference) for v in outputs)]
    done = subprocess.run([*emulator, str(program), str(library), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = np.array([float(line) for line in done.stdout.split()])
    run = parflex.simulate(robot, effort={}, time=STEPS * STEP, step=STEP, out_step=STEP, method="gauss4")
    error = float(np.abs(found - [run[v.name][-1] for v in outputs]).max())
    figure(f"5r on {platform} beside a run here", error, 1e-9)
    assert len(found) > 4 and error < 1e-9  # the same steps; sines of another library of mathematics
