"""Robot files: invalid files are refused with key, value and fix; no file breaks the reader."""

import inspect
import json
import random
import re
import runpy
import shutil
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import get_args

import fuzz
import numpy as np
import pytest
from support.catalogue import CATALOGUE
from support.changed_files import FIVE_BAR, PAGE, changed
from support.command_line import answered, refused, run
from support.oracles.beam_robots import HEXAGON
from support.oracles.modal_data import invented
from support.paths import DATA, ROOT
from support.robots import load_robot, robot_file, write_robot

import parflex
from parflex.bodies.sections import SHAPES
from parflex.robotfile.schema import SECTION_KEYS, SectionTable

ARM = 'format = 1\nname = "arm"\n[[frame]]\nname = "a"\njoint = "revolute"\n'


def invalid_files() -> list[dict]:
    """Return changes of robot files with the key and the words of the error."""
    lines = (DATA / "refused_robot_files.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("case", invalid_files(), ids=lambda case: case["case"])
def test_an_invalid_file_is_refused_in_one_sentence_with_key_value_and_fix(capsys, tmp_path, case):
    text = FIVE_BAR if case["robot"] == "five-bar" else robot_file(case["robot"]).read_text()
    if case["robot"] == "modal-platform":
        invented(HEXAGON, 4, seed=1).write(tmp_path / "platform.npz")
    assert case.get("old", "") in text
    text = case["text"] if "text" in case else text.replace(case.get("old", ""), case.get("new", ""), 1)
    file = write_robot(tmp_path, text + "\n" + case.get("added", ""))
    error = refused(capsys, "check", file)
    assert str(tmp_path) in error["file"] and error["key"] and case["key"] in error["key"]
    assert case["words"] in f"{error['key']}: {error['message']}; {error['hint']}"
    assert len(json.dumps(error)) < 1500


BROKEN_FILES = {
    "empty": (b"", "empty"),
    "blank": (b" \n\n", "empty"),
    "binary": (b"\x00\x01" * 500, "binary"),
    "UTF-16": (FIVE_BAR.encode("utf-16"), "binary"),
    "Latin-1": ('format = 1\nname = "é"'.encode("latin-1"), "UTF-8"),
    "no TOML": (b"robot: yes", "TOML"),
    "a key twice": (b"format = 1\nformat = 1", "TOML"),
    "a number with 5000 digits": (b"format = " + b"9" * 5000, "digits"),
    "a thousand arrays": (b"a = " + b"[" * 1000 + b"]" * 1000, "nested"),
    "a thousand inline tables": (b"a = " + b"{a=" * 1000 + b"1" + b"}" * 1000, "nested"),
    "unclosed arrays": (b"a = " + b"[" * 100_000, "nested"),
    "a hundred arrays": (FIVE_BAR.encode() + b"\n[constants.a]\na = " + b"[" * 100 + b"]" * 100, "nested"),
    "a key of 100000 parts": (b"a" + b".a" * 100_000 + b" = 1", "nested"),
    "a table of 100000 parts": (b"[a" + b' . "a"' * 100_000 + b"]", "nested"),
    "2 MB of one line": (b'name = "' + b"x" * 1_900_000 + b'"', "is not a valid name"),
}


@pytest.mark.parametrize(("content", "words"), BROKEN_FILES.values(), ids=BROKEN_FILES.keys())
def test_files_that_are_no_robot_files_are_refused_at_once(capsys, tmp_path, content, words):
    file = tmp_path / "robot.toml"
    file.write_bytes(content)
    start = time.process_time()
    error = refused(capsys, "check", file)
    assert time.process_time() - start < 5
    assert error["file"] == str(file)
    assert words in f"{error['message']}; {error['hint']}"


def test_files_that_cannot_be_read_are_named(capsys, tmp_path, monkeypatch):
    huge = tmp_path / "huge.toml"
    with huge.open("wb") as file:
        file.truncate(100_000_000)
    tracemalloc.start()
    assert "MB" in refused(capsys, "check", huge)["message"]
    assert tracemalloc.get_traced_memory()[1] < 20e6, "a file of any size is read whole"
    tracemalloc.stop()
    assert "folder" in refused(capsys, "check", tmp_path)["message"]
    assert "no such" in refused(capsys, "check", tmp_path / "none.toml")["message"]
    assert "cannot be read" in refused(capsys, "check", tmp_path / ("x" * 300))["message"]
    secret = tmp_path / "secret.toml"
    secret.write_text(FIVE_BAR)

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("parflex.robotfile.read.read_bytes", denied)
    error = refused(capsys, "check", secret)
    assert (error["file"], "Permission denied" in error["message"]) == (str(secret), True)


def test_check_reports_constants_that_nothing_refers_to(capsys, tmp_path):
    constants = '[constants]\nlong = 0.5\nhalf = "long/2"\nspare = 3\n'
    frames = '[[frame]]\nname = "a"\njoint = "revolute"\nplace = { position = ["half", 0, 0] }\n'
    file = write_robot(tmp_path, f'format = 1\nname = "arm"\n{constants}{frames}')
    said = "the constant 'spare' is not used: delete it, or refer to it"
    assert said in answered(capsys, "check", file)["warnings"]
    child = write_robot(tmp_path, 'format = 1\nname = "child"\nextends = "robot.toml"\n', "child")
    assert said not in answered(capsys, "check", child)["warnings"]  # of another file


@pytest.mark.few("5r", "puma560")
@pytest.mark.parametrize("name", parflex.catalogue_names())
def test_robots_of_the_catalogue_use_their_constants(name, capsys):
    assert not any("the constant" in text for text in answered(capsys, "check", name)["warnings"])


@pytest.mark.parametrize("change", [lambda text: text, lambda text: text.replace("mass = 0.5", "mass = 0"),
                                    lambda text: "\ufeff" + text.replace("\n", "\r\n")])  # fmt: skip
def test_the_robot_of_the_documentation_passes_check_without_a_warning(capsys, tmp_path, change):
    file = tmp_path / "robot.toml"
    file.write_bytes(change(FIVE_BAR).encode())  # massless bodies, a byte order mark and lines of Windows are valid
    clean = {"ok": True, "file": str(file), "warnings": [], "diagnostics": []}
    assert answered(capsys, "check", file, "--strict") == clean


def test_the_template_passes_check_and_carries_the_name(capsys, tmp_path):
    printed = run(capsys, "new", "my-robot")
    assert printed.code == 0
    file = tmp_path / "robot.toml"
    assert run(capsys, "new", "my-robot", "-o", file).code == 0
    assert file.read_text() == printed.out == answered(capsys, "new", "my-robot")["text"]
    assert answered(capsys, "check", file, "--strict")["warnings"] == []
    assert answered(capsys, "info", file)["name"] == "my-robot"


def test_the_schema_is_json_and_knows_every_key_of_the_documentation(capsys):
    answer = run(capsys, "schema")
    assert answer.code == 0
    schema = json.loads(answer.out)
    tables = {"robot": schema["properties"]} | {name: table["properties"] for name, table in schema["$defs"].items()}
    known = {key for table in tables.values() for key in table}

    hook = runpy.run_path(str(ROOT / "docs" / "hooks" / "robot_file.py"))
    keys = hook["PAGE"].read_text(encoding="utf-8")
    assert "| `length` | m | required |" in keys
    assert "| `elements` | number of elements; inner nodes are `NAME.1`, `NAME.2`, ... | `1` |" in keys
    for heading, name in hook["TABLES"].items():
        section = keys.split(f"\n## {heading}\n")[1].split("\n## ")[0]
        table = tables.get(name, tables["robot"])
        rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section, re.MULTILINE)
        assert {key for row in rows for key in re.findall(r"\w+", row)} == set(table), heading
        assert all(key.get("description") for key in table.values()), name
    others = "gamma b alpha d theta r position rotation mass centre about_centre M MX MY MZ XX XY XZ YY YZ ZZ IA FV FS"
    others += " viscous coulomb stiffness rest points names start signs source inferred fitted errata notes"
    assert set(others.split()) <= known
    assert all(re.search(rf"\b{word}\b", PAGE + keys) for word in known)
    assert "leg_of" not in known


def test_an_impossible_inertia_warns_with_the_reason_and_strict_refuses_it(capsys, tmp_path):
    file = tmp_path / "robot.toml"
    file.write_text(changed('about_centre = [0, 0, "0.5*proximal**2/12"]', "about_centre = [0, 0, -1]"))
    warnings = answered(capsys, "check", file)["warnings"]
    assert len(warnings) == 1
    assert "'left.shoulder', 'right.shoulder'" in warnings[0]
    assert "-1 kg m2" in warnings[0]
    assert "warning: " + warnings[0] in run(capsys, "check", file).err
    error = refused(capsys, "check", file, "--strict")
    assert "-1 kg m2" in error["message"]
    assert (error["file"], error["key"]) == (str(file), "inertia")


def mutated(text: str, rng: random.Random) -> str:
    """A file with one to three accidents."""
    lines = text.split("\n")
    values = ["0", "-1", "1e19", "nan", "true", '"x"', '""', "[]", "{}", "[0, 0, 0]", '"base"', '"free"', '"universal"']
    values += ['"fixed"', '"welded"', '"planar"', '"platform"', "[[1, 0, 0], [0, 1, 0], [0, 0, 1]]", '"1/0"', '"pi"']
    for _ in range(rng.choice((1, 1, 2, 3))):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        key, equals, value = lines[i].partition("=")
        match rng.randrange(7):
            case 0:
                lines[i] = ""
            case 1:
                lines.insert(j, lines[i])
            case 2:
                lines[i], lines[j] = lines[j], lines[i]
            case 3:
                place = rng.randrange(len(lines[i]) + 1)
                lines[i] = lines[i][:place] + rng.choice("[]{}\"'=.,#-+*/019 exπ\\\t\x07é") + lines[i][place + 1 :]
            case 4 if equals and "=" in lines[j]:
                other, _, theirs = lines[j].partition("=")
                lines[i], lines[j] = f"{key}={theirs}", f"{other}={value}"
            case 5 if equals:
                lines[i] = f"{key}= {rng.choice(values)}"
            case _:
                numbers = re.findall(r"\d+\.?\d*", lines[i])
                if numbers:
                    number = rng.choice(numbers)
                    lines[i] = lines[i].replace(number, rng.choice(["0", "-" + number, number + "e9", '"pi"']), 1)
    return "\n".join(lines)


@pytest.mark.few("3rrr-flexible", "four-bar")
@pytest.mark.parametrize("robot", sorted(path.stem for path in CATALOGUE.glob("*.toml")))
def test_no_accident_in_a_file_breaks_the_reader(robot, tmp_path):
    rng = random.Random(robot)
    text = (CATALOGUE / f"{robot}.toml").read_text(encoding="utf-8")
    file = tmp_path / "robot.toml"
    for data in CATALOGUE.glob("*.npz"):
        shutil.copy(data, tmp_path)
    read, refusals = 0, []
    for _ in range(30):
        file.write_bytes(mutated(text, rng).encode())
        start = time.process_time()
        try:
            parflex.load(file)
            read += 1
        except parflex.ParflexError as error:
            assert error.file is not None and error.file.startswith(str(tmp_path))  # of modal data: that file
            assert error.hint
            refusals.append(str(error))
        assert time.process_time() - start < 5
    assert read
    assert refusals


def test_noise_in_a_file_is_always_a_sentence(tmp_path):
    rng, file = random.Random(5), tmp_path / "noise.toml"
    for _ in range(300):
        noise = bytes(rng.choice(b"[]{}\"'=.,#ab01 \n\\\xc3\xa9") for _ in range(rng.randrange(1, 60)))
        file.write_bytes(noise)
        with pytest.raises(parflex.ParflexError) as refusal:
            parflex.load(file)
        assert refusal.value.file == str(file)


def lines_of_check(capsys, tmp_path, legs: int) -> int:
    """Return how many lines of Python the check of a robot with so many legs executes: unlike time, always the same."""
    names = ", ".join(f'"l{k}"' for k in range(legs))
    file = write_robot(tmp_path, robot_file("one-leg").read_text().replace('"l0"', names))
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += 1
        return trace

    sys.settrace(trace)
    try:
        answered(capsys, "check", file)
    finally:
        sys.settrace(None)
    return count


def test_the_work_of_a_check_is_proportional_to_the_number_of_legs(capsys, tmp_path):
    lines_of_check(capsys, tmp_path, 2)  # imports
    few, more, many = (lines_of_check(capsys, tmp_path, legs) for legs in (30, 60, 120))
    assert (many - more) / (more - few) < 2.05  # 2 in proportion; where every leg looks at all others it nears 4


def test_every_shape_of_a_section_is_made_of_its_keys_and_on_the_page():
    words = get_args(SectionTable.model_fields["shape"].annotation)
    assert set(words) == set(SECTION_KEYS) == set(SHAPES)
    page = (ROOT / "docs" / "robot-file.md").read_text(encoding="utf-8")
    for word in words:
        assert tuple(inspect.signature(SHAPES[word]).parameters) == SECTION_KEYS[word]
        assert re.search(rf'`(shape = )?"{word}"`', page), word


def test_motions_that_nothing_holds_are_named_by_what_moves(capsys):
    words = ("frequencies", robot_file("clamped-bar"), "--set", "frame.bar.joint=revolute", "--modes", "2")
    answer = answered(capsys, *words)
    assert answer["free_motions"] == ["bar"]
    assert len(answer["frequencies_hz"]) == 2 and min(answer["frequencies_hz"]) > 1


def test_more_modes_than_there_are_and_a_rolled_beam_in_the_plane_are_refused(capsys):
    with pytest.raises(parflex.ParflexError, match="a planar beam cannot be rolled"):
        load_robot("clamped-bar", settings={"motion": "planar", "frame.bar.beam.roll": 1})
    assert len(parflex.natural_frequencies(load_robot("clamped-bar"), modes=6).frequencies) == 6
    error = refused(capsys, "frequencies", robot_file("clamped-bar"), "--modes", "7")
    assert error["message"] == "7 modes are requested, but the robot has 6"
    assert error["key"] == "modes" and error["value"] == 7


def test_a_spring_in_a_joint_that_no_motor_moves_is_an_elastic_clamp():
    """A stiff spring is a clamp, a soft one a swing of the rigid bar: omega^2 = 3 k / (m L^2)."""

    def lowest(**joint) -> float:
        settings = {f"frame.bar.{key}": value for key, value in joint.items()}
        return parflex.natural_frequencies(load_robot("clamped-bar", settings=settings), modes=1).frequencies[0]

    stiff, soft = (lowest(joint="revolute", spring={"stiffness": k}) for k in (1e9, 1e-3))
    assert stiff == pytest.approx(lowest(), rel=1e-5)  # the spring gives 1e-6 of what the bar does
    swing = np.sqrt(3 * 1e-3 / (7800 * 2e-4 * 0.8**3)) / (2 * np.pi)
    assert soft == pytest.approx(swing, rel=1e-5)  # the bar bends by 1e-6 of what the spring gives


def test_a_section_by_numbers_has_the_polar_moment_of_both_planes():
    plain = {"frame.bar.beam.section": "plain", "materials.steel.shear_modulus": 8e10}
    robot = load_robot("clamped-bar", settings=plain)
    torsion = np.sqrt(3 * 8e10 * 5e-9 / (7800 * 8e-9 * 0.8**2)) / (2 * np.pi)  # linear twist of one element
    result = parflex.natural_frequencies(robot, modes=6).frequencies
    assert np.abs(result / torsion - 1).min() < 1e-9


LONG = 2_000  # about three minutes of CPU time


def test_a_case_depends_on_its_number_alone(tmp_path: Path):
    first = fuzz.write_case(12, tmp_path)[0].read_bytes()
    for number in (13, 12):
        again = fuzz.write_case(number, tmp_path)[0].read_bytes()
    assert again == first


@pytest.mark.verify
def test_thousands_of_robot_files_get_an_answer_or_one_sentence(figure):
    kinds = Counter(answer for _, answer, _ in fuzz.many(range(LONG)))
    figure("robot files changed by chance", float(kinds.total()), LONG)
    assert kinds.total() == LONG and not [kind for kind in kinds if kind.startswith("BAD")]
    assert {"ok", "robot-file"} <= set(kinds) and len(kinds) > 5  # they reach more than the reader of files
