"""Figures: what they show is computed rightly, units stand on every axis, and they need no window."""

import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from support.command_line import answered, refused, run
from support.robots import load_robot

import parflex
from parflex.simulation.quantities import unit_of
from parflex.view import run_figure

T = np.arange(0, 4, 0.005)


def run_of(**columns: np.ndarray) -> parflex.Run:
    return parflex.Run({"t": T, **{name.replace("__", "."): values for name, values in columns.items()}})


def texts(path: Path) -> list[str]:
    """All words of an SVG file: letters are letters in it, not outlines."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("even", [True, False])
def test_a_spectrum_shows_sines_at_their_frequencies_with_their_amplitudes(even):
    t = T if even else T + 0.002 * (np.arange(len(T)) % 2)
    values = 5.0 + 0.3 * np.sin(2 * np.pi * 12.5 * t) + 0.04 * np.cos(2 * np.pi * 40.13 * t)
    f, amplitude = run_figure.spectrum(t, values)
    assert f[-1] == pytest.approx(100.0, rel=2e-3)  # half the rate of the rows; an odd number of them ends a line short
    assert amplitude.max() == pytest.approx(0.3, rel=1e-2 if even else 5e-2)  # uneven rows are brought to even ones
    found = run_figure.peaks_of(f, amplitude)
    # the window is the square of a cosine: between two lines the parabola through logarithms errs by 1 % of a line
    assert found[0] == pytest.approx(12.5, abs=0.02)
    assert found[1] == pytest.approx(40.13, abs=0.05)
    assert amplitude[0] < 1e-3  # the mean is taken off


def test_the_difference_is_taken_at_the_measured_times_that_the_run_has():
    run = run_of(P__x=2.0 * T)
    measured = {"t": np.array([-1.0, 0.5, 1.25, 3.0, 9.0]), "P.x": np.array([7.0, 0.9, 2.6, 6.1, 7.0])}
    found = run_figure.difference(run, measured, "P.x")
    assert found.times == pytest.approx([0.5, 1.25, 3.0])
    assert found.values == pytest.approx([0.1, -0.1, -0.1])
    assert found.rms == pytest.approx(0.1) and found.largest == pytest.approx(0.1)
    assert found.relative == pytest.approx(0.1 / np.std([0.9, 2.6, 6.1]))
    with pytest.raises(parflex.InputError, match="do not overlap in time"):
        run_figure.difference(run, {"t": np.array([50.0, 51.0]), "P.x": np.zeros(2)}, "P.x")


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        ("t", "s"), ("P.x", "m"), ("P.theta", "rad"), ("platform.orientation_w", "1"), ("P.local_ay", "m/s²"),
        ("P.ay.low", "m/s²"), ("P.alz", "rad/s²"), ("P.wz", "rad/s"), ("P.vx", "m/s"), ("energy.total", "J"),
        ("power.loss", "W"), ("work.loss", "J"), ("closure_error", "m"),
        ("effort.11", "N"), ("effort.left.1", "N or N m"), ("q.11", "m"),
        ("qd.13.uy", "m/s"), ("q.13.rz", "rad"), ("qdd.12", "rad/s²"), ("qd.nothing", "rad/s or m/s"), ("what", ""),
        ("13.Mz@0.25", "N m"), ("13.chord_y@0.5", "m"), ("reaction.11.fx", "N"), ("element.rod.length", "m"),
    ],
)  # fmt: skip
def test_columns_have_their_units(column, unit):
    assert unit_of(column, parflex.load("dualemps"))[0] == unit


def test_mode_shapes_are_drawn_from_above_where_they_stay_in_the_plane(tmp_path):
    flat, space = tmp_path / "flat.svg", tmp_path / "space.svg"
    parflex.draw_modes(parflex.natural_frequencies(parflex.load("dualemps"), modes=2), flat)
    parflex.draw_modes(parflex.natural_frequencies(parflex.load("gough-stewart-beams"), modes=1), space, 0.1, "title")
    assert {"1: 14.21 Hz", "2: 25.04 Hz", "0.1 m", "x", "y"} <= set(texts(flat)) and "z" not in texts(flat)
    assert {"1: 23.07 Hz", "0.2 m", "x", "y", "z", "title"} <= set(texts(space))


def test_figures_are_as_wide_as_a_column_or_the_text():
    run = run_of(P__x=T)
    widths = [parflex.draw_run(run, width=width).get_figwidth() for width in ("column", "text")]
    assert widths == [3.5, 7.2]
    with pytest.raises(parflex.InputError, match="there is no width 'page'; give 'column' or 'text'"):
        parflex.draw_run(run, width="page")


def test_figures_of_pages_round_places_and_no_numbers_of_labels():
    figure = parflex.draw_run(run_of(P__x=0.0123456 * T), title="rms 0.0214 mm")
    figure.axes[0].set_yticks([0.0125, 0.0375])
    svg = figure._repr_svg_()
    assert {"rms 0.0214 mm", "0.0125", "0.0375"} <= set(re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    assert not re.search(r'="[^"]*\d\.\d{3}', svg)


def test_a_map_names_grey_cells_and_fixed_coordinates_and_bounds_its_colours():
    values = np.linspace(10.0, 12.0, 36).reshape(6, 6, 1)
    values[0, 0], values[5, 5] = 1e6, np.nan  # near a singularity, and beyond the reach
    status = np.where(np.isfinite(values[..., 0]), 0, 1)
    axes = {"x": np.linspace(0, 1, 6), "y": np.linspace(0, 1, 6)}
    found = parflex.design.grid.FrequencyMap(axes, values, status, False, 36, "full", "", 0, 0.0, fixed={"theta": 0.1})
    panel = parflex.draw_map(found).axes[0]
    assert panel.get_title(loc="left") == "theta = 0.1 rad"
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["unreachable"]
    (mesh,) = panel.collections
    assert mesh.norm.vmin == values[0, 1, 0]
    assert 12.0 < mesh.norm.vmax < 20.0 and mesh.colorbar.extend == "max"


@pytest.mark.verify
def test_the_verb_draws_and_tells_the_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    wave = np.sin(2 * np.pi * 5 * T)
    run = parflex.Run({"t": T, "P.x": wave, "effort.11": 3 * wave}, {"robot": "dualemps"})
    run.save("run.csv")
    parflex.Run({"t": T, "P.x": wave + 0.5}).save("bench.npz")
    assert answered(capsys, "plot", "run.csv", "-o", "a.svg")["columns"] == ["P.x", "effort.11"]
    assert "effort (N)" in texts(Path("a.svg"))  # the robot of the run tells that its motors slide
    found = answered(capsys, "plot", "run.csv", "--measured", "bench.npz", "-o", "b.svg")
    assert found["differences"]["P.x"]["rms"] == pytest.approx(0.5)
    found = answered(capsys, "plot", "run.csv", "--spectrum", "--columns", "eff*", "--robot", "dualemps", "-o", "c.svg")
    assert found["peaks_hz"]["effort.11"][0] == pytest.approx(5.0, abs=1e-3)  # 1 % of a line, as above
    found = answered(capsys, "plot", "dualemps", "--modes", "2", "-o", "d.svg")
    assert found["frequencies_hz"] == pytest.approx([14.2068, 25.0421], abs=1e-3)  # written to four decimals
    assert found["file"] == "d.svg" and found["warnings"] == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run.csv", "-o", "x.txt"], "not a supported picture format"),
        (["missing.csv", "-o", "x.svg"], "cannot be read"),
        (["run.csv", "--columns", "P.z", "-o", "x.svg"], "did you mean 'P.x'"),
        (["run.csv", "--modes", "2", "-o", "x.svg"], "a run has no mode shapes"),
        (["run.csv", "-o", "missing/x.svg"], "cannot be written"),
        (["5r", "-o", "x.svg"], "nothing can move"),
    ],
)
def test_invalid_figures_are_refused_and_nothing_written(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    parflex.Run({"t": T, "P.x": T}).save("run.csv")
    parflex.Run({"t": T, "Q": T}).save("other.csv")
    before = sorted(path.name for path in tmp_path.iterdir())
    refused(capsys, "plot", *words)
    assert sentence in run(capsys, "plot", *words).err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.verify
def test_figures_need_no_window():
    code = (
        "import sys, numpy as np; from parflex.view.run_figure import draw_run; import tempfile; "
        "t = np.arange(20.0); draw_run({'t': t, 'P.x': t}, tempfile.mkdtemp() + '/a.svg'); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.verify
def test_figures_come_back_without_a_path_and_are_shown_by_notebooks(tmp_path):
    wave = np.sin(2 * np.pi * T)
    run = run_of(P__x=wave, energy__kinetic=wave**2, energy__total=wave**2)
    robot = parflex.load("5r")
    modes = parflex.natural_frequencies(parflex.load("dualemps"), modes=2)
    beam = load_robot("pendulum-beam")
    refined = parflex.natural_frequencies(beam, modes=2, converge=2e-2)
    found = parflex.frequency_map(parflex.load("dualemps"), [("11", -0.05, 0.05, 3), ("21", -0.05, 0.05, 2)], modes=2)
    swing = {"moves": [{"left.1": 0.2}], "law": "time-optimal"}
    plan = parflex.plan_motion(robot, swing, velocity_limit=1.0, acceleration_limit=5.0)
    bars = parflex.sensitivities(robot, "mass", ["constants.line_mass", "constants.distal"])
    bent = {"t": T, "a.Mz@0": wave, "a.Mz@0.5": wave / 2, "a.Mz@1": 0 * wave, "a.stress@0": wave, "a.stress@1": T}
    drawn = {
        "draw": lambda path=None: parflex.draw(robot, path=path),
        "draw_run": lambda path=None: parflex.draw_run(run, path),
        "draw_energies": lambda path=None: parflex.draw_energies(run, path),
        "draw_spectrum": lambda path=None: parflex.draw_spectrum(run, path, ["P.x"]),
        "draw_comparison": lambda path=None: parflex.draw_comparison(run, {"t": T, "P.x": wave}, path),
        "draw_sections": lambda path=None: parflex.draw_sections(bent, path),
        "draw_convergence": lambda path=None: parflex.draw_convergence(refined, path),
        "draw_modes": lambda path=None: parflex.draw_modes(modes, path),
        "draw_map": lambda path=None: parflex.draw_map(found, path, mode=2),
        "draw_timing": lambda path=None: parflex.draw_timing(plan, path),
        "draw_sensitivities": lambda path=None: parflex.draw_sensitivities(bars, path),
    }
    labels = {  # units stand on every axis
        "draw_run": {"position (m)", "energy (J)", "time (s)"},
        "draw_energies": {"energy (J)", "change of total (J)", "time (s)"},
        "draw_spectrum": {"position amplitude (m)", "frequency (Hz)"},
        "draw_comparison": {"position (m)", "difference (m)", "time (s)", "P.x, measured"},
        "draw_sections": {"section moment (N m)", "stress (Pa)", "place s along the beam", "a.Mz", "s = 0"},
    }
    assert set(drawn) == {name for name in parflex.__all__ if name.startswith("draw")} - {"draw_study"}
    for name, draw in drawn.items():
        figure = draw()
        assert isinstance(figure, Figure), name
        assert figure._repr_svg_().startswith("<svg") and len(figure._repr_svg_()) < 200_000
        draw(tmp_path / f"{name}.svg")
        figure.savefig(tmp_path / "again.svg")
        first = (tmp_path / f"{name}.svg").read_bytes()
        draw(tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").read_bytes() == first  # the same file again
        assert labels.get(name, set()) <= set(texts(tmp_path / f"{name}.svg")), name
        assert len(texts(tmp_path / f"{name}.svg")) > 4
        assert pickle.loads(pickle.dumps(figure)).axes
    with pytest.raises(parflex.InputError, match="the map has no mode 3"):
        parflex.draw_map(found, mode=3)
    with pytest.raises(parflex.InputError, match="frequency_map"):
        parflex.draw_map(run)


@pytest.mark.verify
def test_threads_that_draw_at_once_leave_the_settings_of_matplotlib_alone(tmp_path):
    import matplotlib

    wave = np.sin(2 * np.pi * T[:200])
    run = parflex.Run({"t": T[:200], "P.x": wave, "effort.11": wave})
    alone = tmp_path / "alone.svg"
    parflex.draw_run(run, alone, title="one")
    before = dict(matplotlib.rcParams)

    def draw(number: int) -> bytes:
        path = tmp_path / f"{number}.svg"
        if number % 2:
            parflex.draw(parflex.load("5r"), path=path)
        else:
            parflex.draw_run(run, path, title="one")
        return path.read_bytes()

    with ThreadPoolExecutor(4) as pool:
        pictures = list(pool.map(draw, range(8)))
    assert dict(matplotlib.rcParams) == before
    assert set(pictures[::2]) == {alone.read_bytes()} and len(set(pictures[1::2])) == 1


@pytest.mark.verify
def test_a_figure_of_convergence_shows_the_changes_that_the_answer_has(tmp_path):
    of = parflex.load("dualemps")
    modes = parflex.natural_frequencies(of, modes=2, converge=2e-2)
    run = parflex.simulate(of, "square", 0.005, converge=0.5)
    for found, steps, word in (
        (modes, modes.refinement.steps, "estimate of the error left"),
        (run, run.summary["refinement"], "error of the mean frequency"),
    ):
        (panel,) = parflex.draw_convergence(found, tmp_path / "change.svg", "a title").axes
        lines = {line.get_label(): line.get_data() for line in panel.get_lines()}
        elements, change = lines["largest change"]
        assert list(elements) == [step["elements"] for step in steps] and len(steps) > 1
        assert np.isnan(change[0]) and list(change[1:]) == [max(step["change"], 1e-16) for step in steps[1:]]
        shown = set(texts(tmp_path / "change.svg"))
        assert {"largest change", word, "elements in each of the file", "a title", "each alone"} <= shown
    for bad in (parflex.natural_frequencies(of, modes=2), parflex.simulate(of, "square", 0.002), 3, None):
        with pytest.raises(parflex.InputError, match="was not refined"):
            parflex.draw_convergence(bad)


def test_the_command_line_draws_convergence_and_refuses_to_without(tmp_path, capsys):
    file = tmp_path / "change.svg"
    words = ("--modes", "2", "--converge", "2e-2", "--convergence", str(file))
    answer = answered(capsys, "frequencies", "dualemps", *words)
    assert answer["files"] == [str(file)] and "largest change" in texts(file)
