"""The interface of simulation: motions in robot files, results in files, the command, and the errors of each."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import CATALOGUE

import parflex
from parflex import InputError, ParflexError, RobotFileError, Run
from parflex.cli.main import main
from parflex.simulation.columns import frame_columns
from parflex.simulation.inputs.function_samples import Span
from parflex.simulation.inputs.given import given_efforts
from parflex.simulation.inputs.motor_motions import motion_of
from parflex.spatial.rotations import ORIENTATION

DUALEMPS = (CATALOGUE / "dualemps.toml").read_text(encoding="utf-8")
HOME = [0.0, 0.0]


def with_motion(text: str) -> str:
    return f"{DUALEMPS}\n[motions.mine]\n{text}\n"


PATH = 'frame = "P"\nspeed = 0.2\nramp = 0.5\n'
CIRCLE = "circle = { centre = [0.28, 0.9, 0], start = [0.38, 0.9, 0] }\n"
# what is written, the key that the error names, and words of its sentence
BAD_MOTIONS = {
    "unknown key": (PATH + CIRCLE + "sped = 1", "motions.mine.sped", "did you mean 'speed'"),
    "unknown key of a circle": (PATH + "circle = { center = [0, 0, 0] }", "motions.mine.circle.center", "centre"),
    "two ways": (PATH + CIRCLE + "points = [[0, 0, 0]]", "motions.mine.moves", "'circle' and 'points'"),
    "no way": (PATH, "motions.mine.moves", "not none"),
    "no speed": (CIRCLE + "ramp = 1", "motions.mine.speed", "missing"),
    "no ramp": (CIRCLE + "speed = 1", "motions.mine.ramp", "missing"),
    "speed of moves": ("moves = [{ 11 = 1 }]\nduration = 1\nspeed = 1", "motions.mine.speed", "remove it"),
    "negative rest": (PATH + CIRCLE + "rest = -1", "motions.mine.rest", "negative"),
    "no duration": ("moves = [{ 11 = 1 }]", "motions.mine.duration", "missing"),
    "long ramps": ("moves = [{ 11 = 1 }]\nduration = 1\nramp = 0.6", "motions.mine.ramp", "longer"),
    "no such frame": (PATH.replace('"P"', '"Q"') + CIRCLE, "motions.mine.frame", "no frame 'Q'"),
    "no such joint": ("moves = [{ 31 = 1 }]\nduration = 1", "motions.mine.moves.0", "no joint '31'"),
    "moves are no list": ("moves = { 11 = 1 }\nduration = 1", "motions.mine.moves", "list of tables"),
    "period": ("moves = [{ 11 = 1 }]\nduration = 0", "motions.mine.duration", "not positive"),
}
# such as only the robot can tell
BAD_FOR_THE_ROBOT = {
    "passive joint": ("moves = [{ 12 = 1 }]\nduration = 1", "motions.mine.moves.0", "not an actuated joint"),
    "does not come back": ("moves = [{ 11 = 0.1 }]\nduration = 1\nperiod = 2", "motions.mine.period", "where it began"),
    "short period": (
        "moves = [{ 11 = 0.1 }, { 11 = -0.1 }]\nduration = 1\nperiod = 1.5",
        "motions.mine.period",
        "within the period",
    ),
    "unreachable": (PATH + "points = [[0.38, 0.9, 0], [3, 0.9, 0]]", "motions.mine", "the path stops"),
    "no circle": (
        PATH + "circle = { centre = [0.2, 0.9, 0], start = [0.2, 0.9, 0] }",
        "motions.mine.circle",
        "not on a circle",
    ),
    "one point": (PATH + "points = [[0.38, 0.9, 0]]", "motions.mine.points", "two points"),
    "a point twice": (PATH + "points = [[0.38, 0.9, 0], [0.38, 0.9, 0]]", "motions.mine.points", "the same"),
}


@pytest.mark.parametrize(("text", "key", "words"), BAD_MOTIONS.values(), ids=BAD_MOTIONS.keys())
def test_a_bad_motion_is_refused_with_its_key(text, key, words, tmp_path):
    file = tmp_path / "robot.toml"
    file.write_text(with_motion(text))
    with pytest.raises(RobotFileError, match=words) as refusal:
        parflex.load(file)
    assert (refusal.value.key, refusal.value.file) == (key, str(file))
    assert refusal.value.hint


@pytest.mark.few
@pytest.mark.parametrize(("text", "key", "words"), BAD_FOR_THE_ROBOT.values(), ids=BAD_FOR_THE_ROBOT.keys())
def test_a_motion_that_the_robot_cannot_do_is_refused(text, key, words, tmp_path):
    file = tmp_path / "robot.toml"
    file.write_text(with_motion(text))
    with pytest.raises(ParflexError, match=words) as refusal:
        motion_of(parflex.load(file), "mine", Span(1.0))
    assert refusal.value.key == key and refusal.value.hint


@pytest.mark.verify
def test_lines_stop_at_their_points_and_may_be_repeated(tmp_path):
    file = tmp_path / "robot.toml"
    corners = [[0.38, 0.9, 0], [0.3, 0.9, 0], [0.3, 0.85, 0], [0.38, 0.9, 0]]
    file.write_text(with_motion(f"{PATH}points = {corners}\nrest = 0.1\nperiod = 4.0"))
    robot = parflex.load(file)
    rigid = robot.locking(robot.tree.elastic)
    motion = motion_of(robot, "mine", Span(8.0))
    lengths = [0.08, 0.05, np.hypot(0.08, 0.05)]
    q, t = motion.start, 0.0
    for length, corner in zip(lengths, corners[1:], strict=True):
        top = min(0.2, length / 0.5)  # shorter than two ramps at full speed: slower
        t += length / top + 0.5
        for later in (0.0, 4.0):
            position, velocity, _ = motion.at(t + later)
            assert np.abs(velocity).max() < 1e-9
            q = rigid.assemble(dict(zip(robot.actuated_names, map(float, position), strict=True)), q)
            place = parflex.frames(rigid, parflex.configure(rigid).__class__(rigid, q))["P"][0]
            assert np.abs(place - corner).max() < 1e-9
        t += 0.1


# -- Python --------------------------------------------------------------------------------------------

BAD_CALLS = {
    "no such motion": ({"motion": "squar"}, "motion", "did you mean 'square'"),
    "no time": ({"time": 0}, "time", "positive"),
    "step": ({"step": -1e-3}, "step", "positive"),
    "too long": ({"time": 1e9}, "step", "steps"),
    "method": ({"method": "euler"}, "method", "no method"),
    "two inputs": ({"effort": {"11": 1}}, "effort", "give one of them"),
    "without": ({"without": ["frictio"]}, "without", "did you mean 'friction'"),
    "start": ({"start": "runing"}, "start", "no start"),
    "start word": ({"motion": None, "start": {"speed": 1}}, "start", "unknown key"),
    "start size": ({"motion": None, "start": {"q": [1, 2]}}, "start", "one number per coordinate"),
    "pose": ({"pose": "home"}, "pose", "the motion defines"),
    "frame": ({"frames": ["hand"]}, "frames", "no frame 'hand'"),
    "wrench frame": ({"wrench": {"hand": [0, 0, 1]}}, "wrench", "no frame 'hand'"),
    "wrench size": ({"wrench": {"P": [0, 1]}}, "wrench", "not a force and a moment"),
    "effort": ({"motion": None, "effort": {"12": 1}}, "effort", "not an actuated joint"),
    "effort table": ({"motion": None, "effort": {"11": ([0.01, 0], [1, 2])}}, "effort.11", "increase"),
    "width": ({"friction_width": 0}, "friction_width", "positive"),
    "function": ({"motion": lambda t: [1, 2]}, "motion", "position, velocity and acceleration"),
    "sample time": ({"controller": lambda sensed, memory: ([0, 0], None)}, "controller", "sample time"),
}


@pytest.mark.parametrize(("changes", "key", "words"), BAD_CALLS.values(), ids=BAD_CALLS.keys())
def test_what_makes_no_sense_is_refused(changes, key, words):
    arguments = {"motion": "square", "time": 0.01, **changes}
    with pytest.raises(InputError, match=words) as refusal:
        parflex.simulate(parflex.load("dualemps"), **arguments)
    assert refusal.value.key == key and refusal.value.hint


def test_a_controller_that_fails_is_named():
    robot = parflex.load("5r")

    class Bad:
        sample_time = 0.01

        def __call__(self, sensed, memory):
            return [np.nan, 0.0], None

    with pytest.raises(InputError, match="finite effort"):
        parflex.simulate(robot, None, 0.1, controller=Bad())


def test_a_controller_may_see_all_coordinates_and_its_first_efforts_stand_in_the_first_row():
    robot = parflex.load("5r")
    seen = []

    class Watching:
        sample_time = 0.01

        def __call__(self, sensed, memory):
            seen.append(np.concatenate([sensed.coordinates, sensed.coordinate_rates]))
            return [0.5, -0.25], None

    run = parflex.simulate(robot, None, 0.05, controller=Watching(), without=["friction"])
    names = [f"{kind}.{name}" for kind in ("q", "qd") for name in robot.tree.position_names]
    assert np.array_equal(np.array(seen), np.stack([run[name][:-1] for name in names], axis=1))
    assert np.ptp(seen, axis=0).max() > 0.01  # it moves
    assert [run[f"effort.{name}"][0] for name in robot.actuated_names] == [0.5, -0.25]
    known = parflex.forward_dynamics(robot, None, None, {"left.1": 0.5, "right.1": -0.25}, without=["friction"])
    assert run["qdd.left.1"][0] == pytest.approx(known.accelerations[robot.actuated[0]], rel=1e-12)  # rounding


@pytest.fixture(scope="module")
def short() -> parflex.simulation.runs.Run:
    return parflex.simulate(parflex.load("dualemps"), "square", 0.1, without=["friction"])


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_a_saved_run_comes_back_with_where_it_came_from(suffix, short, tmp_path):
    files = short.save(tmp_path / f"run{suffix}")
    assert sorted(tmp_path.iterdir()) == sorted(files)  # nothing else is left behind
    back = parflex.load_run(tmp_path / f"run{suffix}")
    assert list(back) == list(short)
    assert all(np.array_equal(back[name], short[name]) for name in short)
    assert back.settings == short.settings and back.seconds == short.seconds
    assert {"parflex", "numpy", "llvmlite", "python"} <= set(back.settings["versions"])
    assert len(back.settings["file_sha256"]) == 64 and back.settings["step"] == 5e-4
    wanted = {"t", "P.x", "P.y", "P.local_ax", "P.local_ay", "effort.11", "effort.21", "energy.total", "closure_error"}
    assert wanted <= set(back)
    with pytest.raises(InputError, match="did you mean"):
        back["P.xx"]


def test_files_that_are_no_runs_are_refused(short, tmp_path):
    with pytest.raises(InputError, match=r"\.csv or \.npz"):
        short.save(tmp_path / "run.txt")
    with pytest.raises(InputError, match="cannot be written"):
        short.save(tmp_path / "nowhere" / "run.csv")
    (tmp_path / "noise.npz").write_bytes(b"PK\x03\x04 no archive")
    for name in ("noise.npz", "missing.csv"):
        with pytest.raises(ParflexError):
            parflex.load_run(tmp_path / name)


def test_a_low_pass_keeps_what_is_slow_in_place():
    t = np.arange(0, 2, 1e-3)
    run = Run({"t": t, "a": np.sin(2 * np.pi * 2 * t), "b": np.sin(2 * np.pi * 200 * t)})
    assert np.abs(run.low_passed("a", 40.0) - run["a"])[100:-100].max() < 1e-3  # (2/40)^4, forth and back
    assert np.abs(run.low_passed("b", 40.0))[100:-100].max() < 5e-3
    with pytest.raises(InputError, match="cut-off"):
        run.low_passed("a", 600.0)


def test_efforts_in_time_go_to_the_motors_of_their_names():
    robot = parflex.load("5r")
    assert robot.actuated_names == ["left.1", "right.1"]
    table = (np.array([0.0, 0.5, 1.0]), np.array([0.0, 2.0, 1.0]))
    for given, expected in (
        ({"right.1": 2.0, "left.1": lambda t: 3 * t}, [[0.75, 2.0], [2.25, 2.0]]),
        ({"right.1": table}, [[0.0, 1.0], [0.0, 1.5]]),
        ([4.0, 5.0], [[4.0, 5.0], [4.0, 5.0]]),
        ((np.array([0.0, 1.0]), np.array([[0.0, 1.0], [4.0, 1.0]])), [[1.0, 1.0], [3.0, 1.0]]),
    ):
        assert given_efforts(robot, given, Span(1.0)).at(np.array([0.25, 0.75])) == pytest.approx(np.array(expected))


def test_a_summary_counts_steps_and_shows_no_internal_counters():
    summary = parflex.simulate(parflex.load("5r"), None, 0.01, check_width=False).summary
    assert {"evaluations", "steps", "rejected"} <= set(summary)
    assert not [name for name in summary if name.startswith("left_") or name == "alike_rests"]


def test_a_frame_in_motion_is_told_in_world_axes_and_in_its_own():
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # its x is the world's y
    motion = np.arange(1.0, 13.0)[None]
    found = frame_columns("hand", np.zeros((1, 3)), turn[None], motion, planar=False)
    assert [found[f"hand.v{axis}"][0] for axis in "xyz"] == [1, 2, 3]
    assert [found[f"hand.local_v{axis}"][0] for axis in "xyz"] == [2, -1, 3]
    assert [found[f"hand.local_al{axis}"][0] for axis in "xyz"] == [11, -10, 12]
    assert [found[f"hand.{word}"][0] for word in ORIENTATION] == pytest.approx([0.5**0.5, 0, 0, 0.5**0.5])
    assert not any(f"hand.q{part}" in found for part in "wxyz")  # keys of a spherical joint's own rotation


def test_columns_of_rates_are_derivatives_of_columns():
    fine = parflex.simulate(parflex.load("dualemps"), "circle", 0.1, step=5e-5, out_step=5e-5, without=["friction"])
    robot = parflex.load("gough-stewart")
    spatial = parflex.simulate(robot, None, 0.05, out_step=5e-4, start={"velocity": {"x": 0.3, "wz": 0.8}})
    for run, frame, axes in ((fine, "P", "xy"), (spatial, "platform", "xyz")):
        h = run.t[1]
        for axis in axes:
            for value, rate in ((f"{frame}.{axis}", f"{frame}.v{axis}"), (f"{frame}.v{axis}", f"{frame}.a{axis}")):
                slope = (run[value][2:] - run[value][:-2]) / (2 * h)
                size = np.abs(run[rate]).max()
                assert np.abs(slope - run[rate][1:-1]).max() < 0.02 * size + 1e-9, rate  # central differences
    turn = np.stack([spatial[f"platform.{word}"] for word in ORIENTATION])
    assert np.allclose((turn**2).sum(axis=0), 1.0, atol=1e-12)
    speed = np.stack([spatial[f"platform.w{axis}"] for axis in "xyz"])
    rate = 2 * np.linalg.norm(turn[:, 2:] - turn[:, :-2], axis=0) / (2 * spatial.t[1])
    assert np.allclose(rate, np.linalg.norm(speed, axis=0)[1:-1], rtol=1e-4)


# -- command line --------------------------------------------------------------------------------------


def answer(capsys, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    return int(stop.value.code or 0), shown.out, shown.err


def test_the_verb_writes_what_the_function_gives(capsys, tmp_path, short):
    file = tmp_path / "run.csv"
    options = ["--motion", "square", "--time", "0.1", "--without", "friction", "--out", file]
    code, out, _ = answer(capsys, "simulate", "dualemps", *options, "--low-pass", "60", "--json")
    found = json.loads(out)
    assert code == 0 and found["status"] == "ok" and found["files"][0] == str(file)
    run = parflex.load_run(file)
    assert np.array_equal(run["P.x"], short["P.x"])
    assert list(run) == found["columns"] and "P.local_ax.low" in run
    assert file.read_text().splitlines()[0].startswith("t,P.x,P.y,P.theta,")


def test_a_run_that_diverges_says_when_what_and_what_to_try(capsys, tmp_path):
    file = tmp_path / "run.npz"
    options = ["--motion", "square", "--time", "0.1", "--without", "friction", "--method", "rk4", "--step", "1e-3"]
    code, out, err = answer(capsys, "simulate", "dualemps", *options, "--out", file, "--json")
    found = json.loads(out)
    assert code == 1 and found["status"] == "diverged"
    assert 0 <= found["stopped_at"] < 0.1 and found["coordinate"] in parflex.load("dualemps").tree.rate_names
    assert "try a smaller --step" in err and found["coordinate"] in err
    kept = parflex.load_run(file)
    assert len(kept.t) == found["rows"] and np.isfinite(kept["P.x"]).all()


@pytest.mark.verify
@pytest.mark.parametrize("method", ["gauss4", pytest.param("generalized-alpha", marks=pytest.mark.verify), "rk4"])
def test_motors_led_out_of_reach_stop_the_run(method):
    robot = parflex.load("5r")
    home = np.array([robot.home[robot.tree.position_names.index(name)] for name in robot.actuated_names])
    away = np.array([1.0, -1.0])  # both arms turn outwards until the outer bars cannot meet

    def apart(t):
        return home + away * t**3, 3 * away * t**2, 6 * away * t

    run = parflex.simulate(robot, apart, 2.0, method=method, step=1e-3, out_step=0.01, without=["friction"])
    assert run.status == "diverged" and run.summary["why"].startswith("the loops cannot be closed")
    assert 0.3 < run.summary["stopped_at"] < 2.0
    assert run.summary["why"] in run.summary["warnings"][0] and "the loops cannot be closed" in repr(run)
    assert run["closure_error"].max() < 1e-12


def test_bad_options_exit_with_two_and_write_nothing(capsys, tmp_path):
    base = ["simulate", "dualemps", "--time", "0.1"]
    for options in (
        ["--motion", "nothing", "--out", tmp_path / "run.csv"],
        ["--motion", "square", "--out", tmp_path / "run.txt"],
        ["--motion", "square", "--out", tmp_path / "nowhere" / "run.csv"],
        ["--motion", tmp_path / "missing.csv", "--out", tmp_path / "run.csv"],
        ["--effort", "11=x", "--out", tmp_path / "run.csv"],
        ["--motion", "square", "--step", "nan", "--out", tmp_path / "run.csv"],
    ):
        code, _, err = answer(capsys, *base, *options)
        assert code == 2 and err.startswith("error: ") and err.count("\n") == 1, err
    assert not list(tmp_path.iterdir())


@pytest.mark.verify
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_an_interrupt_keeps_what_was_computed(tmp_path):
    file = tmp_path / "run.npz"
    options = ["rx90", "--time", "4000", "--step", "1e-4", "--out-step", "0.01", "--without", "friction,gravity"]
    options += ["--out", str(file)]
    # the loop is compiled before: an interrupt of the compiler finds nothing to keep
    parflex.simulate(parflex.load("rx90"), time=0.02, step=1e-4, out_step=0.01, without=["friction", "gravity"])
    code = "import sys, parflex.simulation.integrators.integrate as i\nold = i.run_loop\n"
    code += "def run(*a, **k):\n    print('running', flush=True)\n    return old(*a, **k)\n"
    code += "import parflex.simulation.segments as s\ns.run_loop = run\n"
    code += "from parflex.cli.main import main\nmain(sys.argv[1:])"
    command = [sys.executable, "-c", code, "simulate", *options]
    # where these tests run in the background, interrupts are switched off and children inherit that
    listening = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = subprocess.Popen(command, preexec_fn=listening, **pipes)
    assert running.stdout is not None and "running" in running.stdout.readline()
    time.sleep(3)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=240)
    assert running.returncode == 1, err
    assert "interrupted" in err and "Traceback" not in err
    kept = parflex.load_run(file)
    assert kept.status == "interrupted" and kept.t[-1] < 4000
