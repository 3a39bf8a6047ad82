"""Tables of the command line at three widths: every number parses back, every name is whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import parflex
from parflex.cli import output, reproduction
from parflex.cli.app import main
from parflex.cli.group import cli

# a command for each verb that prints tables; files are those of `folder`
COMMANDS = {
    "calibrate": "calibrate 5r probes.csv --vary constants.proximal",
    "check": "check 3rrr",
    "codegen": "codegen 5r inverse --target numpy -o generated",
    "control": "control 5r --law pd --reference circle:radius=0.02,time=0.02 --time 0.02",
    "count": "count puma560 inverse",
    "direct": "direct gough-stewart --effort leg1.3=800 --reactions",
    "draw": "draw 5r -o robot.svg",
    "excite": "excite emps --time 2 --harmonics 2 --velocity-limit 0.5 --starts 1",
    "export": "export urdf 5r -o 5r.urdf",
    "frequencies": "frequencies navaro --modes 3",
    "identify": "identify emps lab.csv",
    "import": "import arm.urdf -o arm.toml",
    "info": "info 3-prrr",
    "inverse": "inverse gough-stewart --reactions",
    "list": "list",
    "map": "map dualemps --over 11=-0.1:0.1:2 --modes 1 --out map.npz",
    "motion": "motion emps table.toml",
    "optimise": "optimise design.toml --out better",
    "plot": "plot lab.csv --columns q.* --spectrum -o run.svg",
    "pose": "pose gough-stewart --pose x=0.3,y=0.4,z=1.1,rx=0.1",
    "reproduce": "reproduce Khalil2007 --quick",
    "response": "response 5r mass",
    "responses": "responses",
    "sensitivities": "sensitivities dualemps --response frequency:1 --to constants.blade,materials.dural.density",
    "simulate": "simulate emps --motion table.toml --time 0.1 --out run.csv",
    "statespace": "statespace dualemps --servo 1e6 --input 11,21 --output 17.y,17.x --frequencies 1:14:2",
    "stiffness": "stiffness gough-stewart-beams",
    "study": "study laws.toml --out study.json --jobs 1",
    "sweep": "sweep sweep.toml --out table.npz --jobs 1",
    "tolerance": "tolerance 5r --keys constants.proximal=1e-4",
    "update": "update dualemps measured.csv --vary materials.dural.elastic_modulus --hold-out :2",
    "view": "view 5r --no-browser --seconds 0",
}
NO_TABLE = {"completion", "explain", "new", "schema"}  # text, and JSON
WIDTHS = (60, 80, 120)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with the files of `COMMANDS`."""
    folder = tmp_path_factory.mktemp("tables")
    t = np.arange(0.0, 2.0, 2e-3)
    q, qdd = 0.1 * np.sin(6 * t), -3.6 * np.sin(6 * t)
    effort = 95.1 * qdd + 200 * 0.6 * np.cos(6 * t) + 20 * np.sign(np.cos(6 * t))
    table = np.stack([t, q, effort + 0.3 * np.random.default_rng(1).standard_normal(len(t))], axis=1)
    np.savetxt(folder / "lab.csv", table, delimiter=",", header="t,q.axis,effort.axis", comments="")
    probes = "left.1,right.1,tip.x,tip.y\n2.581751,1.100611,-0.1,0.45\n2.040981,0.559841,0.1,0.45\n"
    (folder / "probes.csv").write_text(probes + "2.224738,0.916855,0,0.5\n1.852782,0.817703,0.1,0.55\n")
    (folder / "table.toml").write_text("frequency = 0.5\nduration = 1\n[sines]\naxis = [0.05, 0.02]\n")
    design = 'robot = "5r"\n[variables."constants.proximal"]\nlower = 0.3\nupper = 0.5\n'
    design += '[responses.mass]\nresponse = "mass"\n'
    (folder / "sweep.toml").write_text(design + '[samples]\nkind = "grid"\ncount = 2\n')
    (folder / "design.toml").write_text(design + '[objective]\nminimise = "mass"\n')
    laws = 'robot = "3rrr"\nworking_mode = "+-+"\nlaws = ["ctc"]\npercentages = [2]\ntemplates = 1\n'
    laws += 'vary = ["lengths"]\n'
    (folder / "laws.toml").write_text(laws + '[reference]\nkind = "circle"\nradius = 0.01\ntime = 0.02\n')
    (folder / "measured.csv").write_text("pose,mode,frequency_hz,deviation_hz\nhome,1,14,0.58\nhome,2,25,0.58\n")
    parflex.export_urdf(parflex.load("emps"), folder / "arm.urdf")
    return folder


def words_of(cell: Any) -> list[str]:
    """Return the words that stand for a cell, numbers to six digits."""
    if isinstance(cell, list | tuple):
        return ", ".join(" ".join(words_of(entry)) for entry in cell).split()
    if cell is None or cell != cell:
        return ["-"]
    return [f"{cell:.6g}"] if isinstance(cell, float) else str(cell).split()


def numbers_of(answer: Any) -> set[str]:
    """Return all numbers of an answer to six digits: in its unit, and stresses in MPa."""
    if isinstance(answer, dict | list):
        entries = answer.values() if isinstance(answer, dict) else answer
        return {number for entry in entries for number in numbers_of(entry)}
    return {f"{answer:.6g}", f"{answer / 1e6:.6g}"} if isinstance(answer, int | float) else set()


def test_every_verb_with_tables_has_a_command():
    assert set(COMMANDS) | NO_TABLE == set(cli.commands)
    assert all(line.split()[0] == verb for verb, line in COMMANDS.items())


@pytest.mark.few
@pytest.mark.parametrize("verb", sorted(COMMANDS))
def test_tables_show_every_number_and_name_whole_at_all_widths(verb, folder, monkeypatch, capsys):
    printed, answers = [], []
    show, print_table = output.print_result, output.print_table
    keep = lambda title, columns, rows, styles=None: printed.append((title, columns, [tuple(row) for row in rows]))  # noqa: E731
    monkeypatch.setattr(output, "print_result", lambda answer, *rest: (show(answer, *rest), answers.append(answer)))
    monkeypatch.setattr(output, "print_table", keep)
    monkeypatch.setattr(reproduction, "print_table", keep)
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as stop:
        main(COMMANDS[verb].split())
    assert stop.value.code in (None, 0), capsys.readouterr().err
    capsys.readouterr()
    assert printed
    answer = output.json_value(answers[0])
    known = numbers_of(answer) | {"0", "inf"}  # rounding is shown as zero; JSON has null for inf
    if verb == "statespace":  # gains are the magnitudes of the response
        known |= numbers_of(np.hypot(*map(np.array, answer["response"].values())).tolist())
    if verb == "identify":  # half the width of intervals, which are symmetric
        ends = [entry["interval"] for entry in answer["parameters"].values()]
        known |= numbers_of([(high - low) / 2 for low, high in ends])
    if verb == "reproduce":  # two digits of differences and tolerances
        pairs = [check[key] for check in answer["checks"] for key in ("difference", "tolerance")]
        known |= {f"{value:.2g}" for value in pairs if value is not None}
    for title, columns, rows in printed:
        expected = {word for row in rows for cell in row for word in words_of(cell)}
        expected |= {word for column in columns for word in column.split()}
        for width in WIDTHS:
            monkeypatch.setenv("COLUMNS", str(width))
            print_table(title, columns, rows)
            shown = capsys.readouterr().out.removeprefix(title)
            assert set(shown.split()) == expected, (title, width)
        floats = {word for row in rows for cell in row if isinstance(cell, float) for word in words_of(cell)} - {"-"}
        assert floats <= known, (title, floats - known)
