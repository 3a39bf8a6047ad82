"""Benchmarks of parflex beside its peers, both sides in one run: tables on stdout, every figure in a JSON file.

python benchmarks/run.py --output out/bench.json
python benchmarks/run.py --only puma
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before anything that starts threads is imported

import argparse  # noqa: E402
import json  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402

import array_calls  # noqa: E402
import control  # noqa: E402
import control_law  # noqa: E402
import counts  # noqa: E402
import design_maps  # noqa: E402
import dualemps_motion  # noqa: E402
import excitation  # noqa: E402
import flexible_platform  # noqa: E402
import fmu_steps  # noqa: E402
import frequency_map  # noqa: E402
import gough_stewart  # noqa: E402
import gradient  # noqa: E402
import growth  # noqa: E402
import growth_elements  # noqa: E402
import puma  # noqa: E402
import regressors  # noqa: E402
import studio  # noqa: E402
import sweeps  # noqa: E402
from report import Report  # noqa: E402
from timing import Harness, machine  # noqa: E402

BENCHMARKS = {
    "puma": puma.run,
    "gough-stewart-direct": gough_stewart.run_direct,
    "gough-stewart-inverse": gough_stewart.run_inverse,
    "array-calls": array_calls.run,
    "operators": counts.run,
    "files": growth.run_files,
    "growth": growth.run_growth,
    "elements": growth_elements.run,
    "starts": growth.run_starts,
    "dualemps": dualemps_motion.run,
    "frequency-map": frequency_map.run,
    "gradient": gradient.run,
    "design-maps": design_maps.run,
    "flexible-platform": flexible_platform.run,
    "control": control.run,
    "control-law": control_law.run,
    "sweep": sweeps.run,
    "fmu": fmu_steps.run,
    "studio": studio.run,
    "regressors": regressors.run,
    "excitation": excitation.run,
}


def main() -> None:
    """Run all benchmarks, or one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="JSON file to write")
    parser.add_argument("--only", choices=BENCHMARKS, help="run this benchmark alone")
    choice = parser.parse_args()
    report, harness = Report(), Harness()
    with tempfile.TemporaryDirectory() as folder:
        for name, run in BENCHMARKS.items():
            if choice.only in (None, name):
                run(report, harness, Path(folder))
    if choice.output:
        choice.output.parent.mkdir(parents=True, exist_ok=True)
        choice.output.write_text(
            json.dumps(report.as_json(machine()), indent=2, allow_nan=False) + "\n", encoding="utf-8"
        )
    report.show(machine())


if __name__ == "__main__":
    main()
