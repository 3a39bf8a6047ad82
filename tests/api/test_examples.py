"""The example of each public function runs as it is printed by `help`."""

import shutil

import numpy as np
import pytest
from support.cases import PUBLIC
from support.paths import ROOT

import parflex
from parflex.api import examples

FILES = {
    "probes.csv": "left.1,right.1,tip.x,tip.y\n2.581751,1.100611,-0.1,0.45\n2.040981,0.559841,0.1,0.45\n"
    "2.224738,0.916855,0,0.5\n1.852782,0.817703,0.1,0.55\n",
    "study.toml": 'robot = "3rrr"\nworking_mode = "+-+"\nlaws = ["ctc"]\npercentages = [2]\ntemplates = 1\nseed = 1\n'
    'vary = ["lengths"]\n[reference]\nkind = "circle"\nradius = 0.05\ntime = 0.1\n',
    "stiffer.toml": 'robot = "navaro"\nsteps = 1\n[variables.constants.bar]\nlower = 0.19\nupper = 0.24\n'
    '[responses.lowest]\nresponse = "frequency:1"\npose = "pose-3"\n[objective]\nmaximise = "lowest"\n',
    "sweep.toml": 'robot = "5r"\n[variables.constants.proximal]\nlower = 0.27\nupper = 0.33\n'
    '[responses.mass]\nresponse = "mass"\n[samples]\nkind = "sobol"\ncount = 2\n',
}
LONG = "draw_convergence draw_map draw_modes draw_sections draw_sensitivities draw_spectrum draw_study excite"
LONG += " export_fmu identify optimise reproduce run_control run_study track_modes update"


def test_every_public_function_has_an_example():
    assert {*examples(), "PD"} == set(PUBLIC)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.verify) if name in LONG.split() else name for name in examples()]
)
def test_the_example_of_a_function_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    shutil.copy(ROOT / "examples" / "navaro-measured.csv", "measured.csv")
    code = examples()[name]
    assert len(code.splitlines()) == 2 and f"parflex.{name}(" in code
    assert f">>> {code.splitlines()[0]}" in getattr(parflex, name).__doc__
    exec(compile(code, name, "exec"), {"parflex": parflex, "np": np})
