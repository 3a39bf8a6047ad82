"""The command line: answers in JSON, refusals in one sentence, help with examples, completion, one thread."""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from support.catalogue import CATALOGUE
from support.command_line import answered, refused, run
from support.paths import DATA, TESTS
from support.robots import robot_file

import parflex
from parflex.cli import output
from parflex.cli.app import BLAS_THREADS, main
from parflex.cli.group import cli

VERBS = sorted(cli.commands)
ROBOTS = sorted(path.stem for path in CATALOGUE.glob("*.toml"))
COUNTS = "bodies joints active passive elastic total_coordinates closure_rows redundant_closures"
COUNTS += " independent_coordinates degrees_of_freedom"
HEAVY = ("numpy", "scipy", "llvmlite", "matplotlib", "pydantic", "viser", "jax", "casadi")


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, **environment}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)


def shell(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return python("-m", "parflex", *arguments, **environment)


def test_list_names_every_robot_with_title_and_source(capsys):
    robots = answered(capsys, "list")["robots"]
    assert [robot["name"] for robot in robots] == ROBOTS
    assert all(set(robot) == {"name", "title", "source"} and robot["source"] for robot in robots)


@pytest.mark.few("3rrr-flexible", "four-bar")
@pytest.mark.parametrize("robot", ROBOTS)
def test_verbs_answer_for_every_robot_with_the_documented_keys(capsys, robot):
    info = answered(capsys, "info", robot)
    assert all(isinstance(info[key], int) for key in COUNTS.split())
    assert isinstance(info["locked"]["independent_coordinates"], int)
    names = info["names"]
    assert set(names) >= {"actuated", "joints", "coordinates", "frames", "closures", "poses", "working_modes"}
    check = answered(capsys, "check", robot)
    assert check["ok"] is True
    inverse = answered(capsys, "inverse", robot, "--reactions")
    assert list(inverse["efforts"]) == names["actuated"]
    assert set(inverse) >= {"elastic_accelerations", "redundant_actuation", "reactions"}
    assert all(isinstance(value, float) for value in inverse["efforts"].values())
    direct = answered(capsys, "direct", robot, "--reactions")
    assert "reactions" in direct and names["end_effector"] in direct["accelerations"]
    assert all("warnings" in answer for answer in (info, check, inverse, direct))
    pose = answered(capsys, "pose", robot)
    assert list(pose["q"]) == names["coordinates"] and set(pose["frames"]) == set(names["frames"])
    assert all(len(place["position"]) == 3 and len(place["rotation"]) == 3 for place in pose["frames"].values())
    assert 0 <= pose["closure_error"] < 1e-9 and isinstance(pose["solutions"], dict)
    assert set(pose["condition"]) == {"legs", "platform", "closures"}


def test_an_infinite_condition_number_is_null_in_json_without_a_warning(capsys, tmp_path):
    file = tmp_path / "arm.toml"
    file.write_text('format = 1\nname = "arm"\n[[frame]]\nname = "a"\njoint = "revolute"\n')
    pose = answered(capsys, "pose", file)
    assert (pose["condition"]["platform"], pose["warnings"]) == (None, [])


def test_check_reports_fewer_motors_than_degrees_of_freedom(capsys, tmp_path):
    frames = '[[frame]]\nname = "a"\njoint = "revolute"\nactuated = true\n'
    frames += '[[frame]]\nname = "b"\nparent = "a"\njoint = "revolute"\nplace = { position = [1, 0, 0] }\n'
    (tmp_path / "arm.toml").write_text(f'format = 1\nname = "arm"\n{frames}')
    notes = {note["code"]: note["text"] for note in answered(capsys, "check", tmp_path / "arm.toml")["diagnostics"]}
    assert "1 motor for 2 degrees of freedom; the motion of 'b' is free" in notes["underactuated"]


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_draw_writes_a_picture(capsys, tmp_path, ending):
    path = tmp_path / f"robot.{ending}"
    assert answered(capsys, "draw", "3rrr", "--pose", "theta_deg=10", "-o", path)["file"] == str(path)
    assert path.stat().st_size > 1000


def test_a_state_file_has_the_effect_of_the_options(capsys, tmp_path):
    file = tmp_path / "state.json"
    state = {"pose": {"x": 0.3, "z": "11/10", "rz": 0.1}, "velocity": {"x": 0.5}, "acceleration": {"z": 2}}
    file.write_text(json.dumps({**state, "wrench": {"platform": [1, 2, 3]}}))
    options = ["--pose", "x=0.3,z=1.1,rz=0.1", "--velocity", "x=0.5", "--acceleration", "z=2"]
    by_options = answered(capsys, "inverse", "gough-stewart", *options, "--wrench", "platform=1,2,3")
    by_file = ("inverse", "gough-stewart", "--state", file)
    assert answered(capsys, *by_file) == by_options != answered(capsys, *by_file, "--velocity", "x=0")
    file.write_text('{"pose": "home", "effort": {"leg1.3": 500}}')
    direct = [answered(capsys, "direct", "gough-stewart", *words)
              for words in (("--state", file), ("--effort", "leg1.3=500"))]  # fmt: skip
    assert direct[0] == direct[1]


def test_tables_show_no_rounding_and_break_no_number(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(capsys, "inverse", "orthoglide", "--reactions").out
    efforts = answered(capsys, "inverse", "orthoglide")["efforts"]
    assert re.search(r"^x\.slide +0$", shown, flags=re.M) and 0 < abs(efforts["x.slide"]) < 1e-12  # JSON keeps it
    assert not re.search(r"e-1\d|^-\d\d$", shown, flags=re.M)
    assert re.search(r"^z\.slide \* +0 +0 +28\.6\d+ +0 +0\.76\d+ +0$", shown, flags=re.M)
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("as_json", [False, True])
def test_each_warning_is_reported_once_in_text_and_json(capsys, monkeypatch, as_json):
    @cli.command("warns")
    def warns() -> None:
        slow, far = parflex.Diagnostic("slow-sweep", "slow"), parflex.Diagnostic("far-start", "far")
        warnings.warn(parflex.ParflexWarning(slow), stacklevel=1)
        output.print_result({"diagnostics": [slow, far]}, as_json)

    monkeypatch.setitem(cli.commands, "warns", cli.commands.pop("warns"))
    for _ in range(2):
        shown = run(capsys, "warns")
        assert shown.err == "warning: slow\nwarning: far\n"
        assert not as_json or json.loads(shown.out)["warnings"] == ["slow", "far"]


@pytest.mark.parametrize("verb", [None, *VERBS])
def test_every_help_text_shows_valid_examples(capsys, verb):
    shown = run(capsys, *([verb, "--help"] if verb else []))
    assert shown.code == 0 and all(word in shown.out for word in ([verb] if verb else VERBS))
    commands = re.findall(r"^ *parflex (.*)$", (cli.commands[verb] if verb else cli).epilog or "", flags=re.M)
    assert commands
    for words in (shlex.split(re.split(r" >>? ", line)[0]) for line in commands):
        assert verb is None or words[0] == verb
        context = cli.commands[words[0]].make_context(words[0], words[1:])  # raises on unknown options
        robot = context.params.get("robot")
        assert robot is None or robot.endswith(".toml") or robot in ROBOTS, robot


def test_help_starts_without_the_libraries_that_compute():
    code = f"import sys, parflex.cli.app; print([name for name in {HEAVY} if name in sys.modules])"
    answer = python("-c", code)
    assert answer.stdout.strip() == "[]", answer.stdout + answer.stderr


def completed(*words: str) -> list[str]:
    position = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    answer = shell(_PARFLEX_COMPLETE="bash_complete", **position)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


def test_verbs_options_robots_and_files_are_completed():
    assert {"plain,inverse", "plain,info"} <= set(completed("parflex", "in"))
    assert completed("parflex", "info", "gough-stewart-b") == ["plain,gough-stewart-beams"]
    assert completed("parflex", "info", "./my") == ["file,./my"]
    assert "plain,--elements" in completed("parflex", "frequencies", "navaro", "--el")


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_the_completion_script_is_valid_in_its_shell(kind, capsys, tmp_path):
    script = answered(capsys, "completion", kind)["script"]
    assert "_PARFLEX_COMPLETE" in script and f"{kind}_complete" in script
    if shutil.which(kind):
        (tmp_path / "script").write_text(script)
        assert subprocess.run([kind, "-n", str(tmp_path / "script")], check=False).returncode == 0


COMMAND = """import os, sys
from parflex.cli.app import main
try:
    main(["frequencies", "dualemps", "--json"])
except SystemExit:
    pass
"""


@pytest.mark.verify
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="no list of threads on this system")
@pytest.mark.parametrize("first", ["import conftest, numpy.linalg\n", COMMAND], ids=["tests", "command line"])
def test_tests_and_the_command_line_compute_in_one_thread(first):
    free = {name: value for name, value in os.environ.items() if name not in BLAS_THREADS}
    path = os.pathsep.join([str(TESTS), *sys.path])
    code = first + "import os; print(len(os.listdir('/proc/self/task')))"  # OpenBLAS starts its threads when loaded
    words = {"capture_output": True, "text": True, "env": {**free, "PYTHONPATH": path}}
    answer = subprocess.run([sys.executable, "-c", code], **words, check=False)
    assert answer.stdout.split()[-1] == "1", answer.stdout + answer.stderr


@pytest.mark.verify
def test_no_colour_and_no_warnings_of_libraries_reach_the_terminal():
    answer = shell("pose", "gough-stewart", "--pose", "x=1e9", NO_COLOR="1", FORCE_COLOR="1")
    assert "RuntimeWarning" not in answer.stderr
    assert not re.search(r"\x1b\[(\d+;)*([349][0-8]|10[0-7])[;m]", answer.stdout + answer.stderr)


def test_a_reader_that_stops_early_sees_no_traceback():
    command = [sys.executable, "-m", "parflex", "info", "3rrr", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        written = process.stderr.read()
    assert (process.returncode, written) == (1, "")


def test_an_internal_failure_is_reported_in_one_line(capsys, monkeypatch):
    monkeypatch.delenv("PARFLEX_DEBUG", raising=False)
    monkeypatch.setattr("parflex.robot.frames.counts", lambda robot: 1 / 0)
    answer = run(capsys, "info", "3rrr", "--json")
    assert (answer.code, answer.err.count("\n")) == (1, 1)
    assert json.loads(answer.out)["error"]["kind"] == "internal"


def lines(name: str) -> list[str]:
    return [line for line in (DATA / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


REFUSED = [(shlex.split(line.partition("  => ")[0]), line.partition("  => ")[2])
           for line in lines("refused_commands.txt")]  # fmt: skip
REFUSED += [
    (["info", "3rrr", "--set", "constants.arm=1\nb=2"], "expression"),
    (["info", "3rrr", "--set", "constants.arm=" + "[" * 2000], "characters"),
    (["pose", "3rrr", "--pose", "x=\x1b[31m\n1"], "not a number"),
]
ANSWERED = """info 'tests \u00e4\u03b2\u4e2d.toml'
check taken.toml
pose 5r --pose ' x = 0.05 , y = 0.5 '
pose 5r --pose home
inverse 5r --set gravity=[0,0,0]
inverse 5r --without ' friction , gravity '
inverse 5r --without ,,
direct 5r --payload 0,0,0,0
frequencies dualemps --modes 1
schema
list
explain 5r"""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """Change to a folder with files of all kinds."""
    from parflex.robotfile.read import template_text

    folder = tmp_path_factory.mktemp("hostile")
    for name in ("folder", "folder.npz"):
        (folder / name).mkdir()
    ring = 'format = 1\nname = "ring"\n[[frame]]\nname = "a"\nparent = "b"\n[[frame]]\nname = "b"\nparent = "a"\n'
    texts = {
        "empty.toml": "", "broken.toml": 'format = 1\nname = "x\n', "taken.toml": template_text("taken"),
        "tests \u00e4\u03b2\u4e2d.toml": template_text("taken"), "cycle.toml": ring, "list.json": "[1, 2",
        "words.json": '{"pose": {"x": NaN}, "velocity": [1, 2]}', "knots.csv": "t,left.1\n0,0\nnan,1\n",
        "study.toml": 'robot = "3rrr"\nlaws = ["wind"]\n',
        "double-four-bar.toml": robot_file("double-four-bar").read_text(),
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "binary.toml").write_bytes(bytes(range(256)))
    (folder / "broken.npz").write_bytes(b"PK\3\4 no zip")
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def quiet(words: list[str]) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words) or 0
        except SystemExit as stop:
            code = stop.code or 0
    return code, out.getvalue(), err.getvalue()


def complaint(words: list[str], word: str, folder: Path) -> str:
    """Return what is wrong with the answer to an invalid command line; nothing if all is right."""
    before = contents(folder)
    code, out, err = quiet([*words, "--json"])
    about = f"parflex {shlex.join(words)[:200]} -> {code} {err[:300]}"
    sentences = [line for line in err.splitlines() if not line.startswith("warning: ")]
    if code != 2 or len(sentences) != 1 or not sentences[0].startswith("error: ") or len(sentences[0]) < 16:
        return f"no sentence with exit code 2: {about}"
    if "Traceback" in err or "failed unexpectedly" in err or "None" in err or "\x1b" in err:
        return f"no sentence for people: {about}"
    error = json.loads(out, parse_constant=lambda constant: pytest.fail(f"JSON has {constant}: {about}"))["error"]
    if set(error) != {"kind", "message", "file", "key", "value", "hint"} or not error["message"]:
        return f"no error object: {about}"
    if word and (word not in f"{error['message']}; {error['hint']}" or not (error["hint"] and error["kind"])):
        return f"no {word!r}: {about}"
    return "" if contents(folder) == before else f"files changed: {about}"


@pytest.mark.few("excite", "direct", "pose")
@pytest.mark.parametrize("verb", [*VERBS, "frobnicate", "lst"])
def test_invalid_command_lines_are_refused_in_one_sentence_that_names_the_fix(verb, workplace):
    commands = [entry for entry in REFUSED if entry[0][0] == verb]
    assert commands or verb in ("schema", "list")
    complaints = [complaint(*entry, workplace) for entry in commands]
    assert not any(complaints), "\n".join(filter(None, complaints))


@pytest.mark.parametrize("line", ANSWERED.splitlines())
def test_unusual_but_valid_command_lines_are_answered(line, workplace, capsys):
    before = contents(workplace)
    answered(capsys, *shlex.split(line))
    assert contents(workplace) == before


@pytest.mark.few
@pytest.mark.parametrize("line", ["info 3rr --json", "pose 5r --pose x=0,y=100", "map dualemps --over 11", "info 3rrr"])
def test_a_process_answers_as_the_function_main(line, workplace):
    words = shlex.split(line)
    answer = shell(*words)
    assert (answer.returncode, answer.stdout, answer.stderr) == quiet(words)


STATES = [tuple(line.split("\t")) for line in lines("refused_states.txt")]
STATES += [("state", "[" * 100_000), ("pose", '{"pose": {"x": ' + "9" * 400 + "}}")]


@pytest.mark.parametrize(("key", "content"), STATES, ids=[f"{key} {text[:40]}" for key, text in STATES])
def test_an_invalid_state_file_is_named_with_its_key(capsys, tmp_path, content, key):
    file = tmp_path / "state.json"
    file.write_text(content)
    error = refused(capsys, "inverse", "3rrr", "--state", file)
    assert (error["file"], error["key"]) == (str(file), key)


def test_a_state_file_that_is_binary_is_named(capsys, tmp_path):
    (tmp_path / "state.json").write_bytes(b"\xff\xfe")
    assert refused(capsys, "inverse", "3rrr", "--state", tmp_path / "state.json")["file"] == str(
        tmp_path / "state.json"
    )


def test_hints_of_functions_name_options_and_keys_of_files_stay():
    hints = {"choose kind='cs', or rigid=True": "choose --kind cs, or --rigid", "write x=0.1": "write x=0.1"}
    hints |= {
        "give end_effector, one of a": "give --end-effector, one of a",
        "add out_step = ...": "add out_step = ...",
    }
    assert {hint: output.as_options(hint) for hint in hints} == hints
    assert output.as_options("give velocity_limit", of_file=True) == "give velocity_limit"


def test_progress_is_a_line_now_and_then_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(output, "PROGRESS_LINE_INTERVAL", 0.0)
    with output.progress_line("map") as show:
        show(1, 4)
        show(3, 4)
    assert capsys.readouterr().err == "map: 1 of 4\nmap: 3 of 4, 0:00:00 left\n"
