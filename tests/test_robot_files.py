"""The robot file: what is refused and how, what the documentation promises, and that no file can break the reader."""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
import time
import tracemalloc

import pytest
from conftest import CATALOGUE
from support.changed_files import FIVE_BAR, PAGE, changed
from support.command_line import answered, refused, run
from support.robots import robot_file, write_robot

import parflex
from parflex import ParflexError

ARM = 'format = 1\nname = "arm"\n[[frame]]\nname = "a"\njoint = "revolute"\n'


def added(text: str) -> str:
    return f"{FIVE_BAR}\n{text}\n"


SHOULDER = "actuated = true"
CLOSURE = 'between = ["left.end", "right.end"]'
INERTIA = 'about_centre = [0, 0, "0.5*proximal**2/12"]'

# what is written, the key that the error names, and what its sentence says: the value found and the hint
UNKNOWN_KEYS = {
    "top": (changed("motion =", "moton ="), "moton", "'motion'"),
    "constants": (changed("[constants]", "[constant]"), "constant", "'constants'"),
    "legs": (changed("[[legs.frame]]", "[[legs.fram]]"), "legs: fram", "'frame'"),
    "leg names": (changed("names =", "name ="), "legs: names", "'name'"),
    "frame": (changed(SHOULDER, "actuatd = true"), "legs: left: frame 'shoulder': actuatd", "'actuated'"),
    "mdh": (changed("mdh = { d", "mdh = { gama"), "frame 'elbow': mdh.gama", "'gamma'"),
    "place": (changed("place = { position", "place = { positon"), "place.positon", "'position'"),
    "inertia": (changed("centre =", "center ="), "inertia.center", "'centre'"),
    "point mass": (changed(SHOULDER, "point_masses = [{ mas = 1 }]"), "point_masses.0.mas", "'mass'"),
    "friction": (changed(SHOULDER, "friction = { viscos = 1 }"), "friction.viscos", "'viscous'"),
    "spring": (changed(SHOULDER, "spring = { stifness = 1 }"), "spring.stifness", "'stiffness'"),
    "point": (changed('frame = "left.elbow"', 'fram = "left.elbow"'), "point 'tip': fram", "'frame'"),
    "closure": (changed("between", "betwen"), "closure number 1: betwen", "'between'"),
    "platform": (added("[platform]\ninertai = {}"), "platform.inertai", "'inertia'"),
    "poses": (changed("[poses.home]", "[pose.home]"), "pose", "'poses'"),
    "pose": (changed('"tip.x"', '"tipp.x"'), "poses.home", "'tip.x'"),
    "working mode": (added("[working_modes.a]\nstrt = {}"), "working_modes.a.strt", "'start'"),
    "sign": (added('[working_modes.a]\nsigns = { "left.elbo" = "+" }'), "working_modes.a.signs", "'left.elbow'"),
    "actuation": (added("[actuation.a]\nactuatd = []"), "actuation.a.actuatd", "'actuated'"),
    "actuated joint": (added('[actuation.a]\nactuated = ["left.elbo"]'), "actuation.a", "'left.elbow'"),
    "reference": (added('[reference]\nsorce = "a"'), "reference.sorce", "'source'"),
    "joint": (changed('"revolute"', '"revolut"'), "frame 'shoulder': joint", "'revolute'"),
    "motion": (changed('"planar"', '"plane"'), "motion", "'planar'"),
    "frame of a point": (changed('frame = "left.elbow"', 'frame = "left.elbo"'), "point 'tip': frame", "'left.elbow'"),
    "parent": (changed('parent = "shoulder"', 'parent = "sholder"'), "frame 'left.elbow': parent", "'left.shoulder'"),
    "frame of a closure": (changed('"right.end"]', '"right.edn"]'), "between", "'right.end'"),
    "end effector": (changed('end_effector = "tip"', 'end_effector = "tpi"'), "end_effector", "'tip'"),
    "name in an expression": (changed("1.2*proximal", "1.2*proxmal"), "constants.distal", "'proximal'"),
}  # fmt: skip
WRONG_VALUES = {
    "format of tomorrow": (changed("format = 1", "format = 2"), "format", "format 2"),
    "format as text": (changed("format = 1", 'format = "1"'), "format", "format '1'"),
    "no format": (changed("format = 1", ""), "format", "add format"),
    "no name": (changed('name = "my-five-bar"', ""), "name", "add name"),
    "number for a name": (changed('name = "my-five-bar"', "name = 3"), "name", "not 3"),
    "number for text": (changed("format = 1", "format = 1\ntitle = 3"), "title", "not 3"),
    "number for a list": (changed("[0, -9.81, 0]", "-9.81"), "gravity", "three numbers are expected here, not -9.81"),
    "text for a list": (changed("[0, -9.81, 0]", '"down"'), "gravity", "not 'down'"),
    "table for a list": (changed("[0, -9.81, 0]", "{ x = 1 }"), "gravity", "not a table"),
    "list too short": (changed("[0, -9.81, 0]", "[0, -9.81]"), "gravity", "not [0, -9.81]"),
    "list too long": (changed("[0, -9.81, 0]", "[0, 0, 0, 1]"), "gravity", "not [0, 0, 0, 1]"),
    "true for a number": (changed("-9.81", "true"), "gravity.1", "not true"),
    "list for a number": (changed("-9.81", "[1]"), "gravity.1", "not [1]"),
    "not a number": (changed("-9.81", "nan"), "gravity.1", "nan is not a finite number"),
    "infinite": (changed("-9.81", "-inf"), "gravity.1", "-inf is not a finite number"),
    "too large for a float": (changed("-9.81", "1e999"), "gravity.1", "finite"),
    "very many digits": (changed("-9.81", "9" * 400), "gravity.1", "too large"),
    "very many binary digits": (changed("-9.81", "0x" + "F" * 9000), "gravity.1", "too large"),
    "format of many digits": (changed("format = 1", "format = 0x" + "F" * 9000), "format", "very many digits"),
    "beyond all units": (changed("-9.81", "1e200"), "gravity.1", "1e+20"),
    "text for a number": (changed("mass = 0.5", 'mass = "heavy"'), "inertia.mass", "'heavy'"),
    "number for true": (changed(SHOULDER, "actuated = 1"), "actuated", "not 1"),
    "text for true": (changed(SHOULDER, 'locked = "yes"'), "locked", "not 'yes'"),
    "marks for two axes": (changed(SHOULDER, "actuated = [true, false]"), "actuated", "2 values for 1 axes"),
    "actuated and locked": (changed(SHOULDER, "actuated = true\nlocked = true"), "locked", "keep one"),
    "fixed and actuated": (changed(ARM, f'{ARM}[[frame]]\nname="b"\nactuated=true', ARM),
        "actuated", "give it a joint"),
    "one limit": (changed(SHOULDER, "limits = [1]"), "limits", "two numbers are expected here, not [1]"),
    "limits in the wrong order": (changed(SHOULDER, "limits = [2, 1]"), "limits", "[low, high]"),
    "limits of no joint": (changed('joint = "revolute"', "limits = [0, 1]", ARM), "limits", "fixed"),
    "negative damper": (changed(SHOULDER, "damper = -1"), "damper", "-1"),
    "negative friction": (changed(SHOULDER, "friction = { coulomb = -2 }"), "friction.coulomb", "-2"),
    "negative motor inertia": (changed(SHOULDER, "motor_inertia = -2"), "motor_inertia", "-2"),
    "spring without stiffness": (changed(SHOULDER, "spring = { rest = 1 }"), "spring.stiffness", "add stiffness"),
    "number for a table": (changed(SHOULDER, "friction = 3"), "friction", "not 3"),
    "table for a list of tables": (changed(SHOULDER, "point_masses = { mass = 1 }"), "point_masses", "not a table"),
    "negative mass": (changed("mass = 0.5", "mass = -0.5"), "inertia.mass", "-0.5 is negative"),
    "negative M": (changed("M = 0.4", "M = -0.4"), "inertia.M", "-0.4 is negative"),
    "negative IA": (changed("M = 0.4", "M = 0.4, IA = -1"), "inertia.IA", "-1"),
    "negative point mass": (changed(SHOULDER, "point_masses = [{ mass = -1 }]"), "point_masses.0.mass", "-1"),
    "mass missing": (changed("mass = 0.5, ", ""), "inertia.mass", "give the mass"),
    "a body in two ways": (changed("mass = 0.5", "mass = 0.5, M = 0.5"), "inertia.M", "same body twice"),
    "motor inertia twice": (changed("M = 0.4", "M = 1, IA = 1}\nmotor_inertia = 1 #"),
        "inertia", "'IA' is given twice"),
    "two moments of inertia": (changed(INERTIA, "about_centre = [0, 1]"), "about_centre", "not [0, 1]"),
    "two rows of a tensor": (changed(INERTIA, "about_centre = [[1, 0, 0], [0, 1, 0]]"), "about_centre", "three rows"),
    "tensor not symmetric": (changed(INERTIA, "about_centre = [[1, 1, 0], [0, 1, 0], [0, 0, 1]]"),
        "about_centre", "symmet"),
    "mdh and place": (changed(SHOULDER, "mdh = {}"), "place", "keep one"),
    "universal start of one": (changed('"revolute"', '"universal"\nstart = 1', ARM), "start", "give 2"),
    "start quaternion not unit": (changed('"revolute"', '"spherical"\nstart = [1, 1, 0, 0]', ARM),
        "start", "length 1.414"),
    "spring of a spherical joint": (changed('"revolute"', '"spherical"\ndamper = 1', ARM), "frame 'a'", "spherical"),
    "platform start of two": (added("[platform]\nstart = [1, 2]"), "platform: start", "give 3"),
    "platform point of two": (added("[platform]\npoints = { b = [1, 2] }"), "platform.points.b", "not [1, 2]"),
    "platform point without a name": (added('[platform]\npoints = { "{}" = [1, 2, 3] }'),
        "platform: points", "platform.{}"),
    "one end of a closure": (changed(CLOSURE, 'between = ["left.end"]'), "between", "not ['left.end']"),
    "text for two ends": (changed(CLOSURE, 'between = "left.end"'), "between", "two names"),
    "closed onto itself": (changed('"right.end"]', '"left.end"]'), "between", "two frames"),
    "closure twice": (added(f'[[closure]]\n{CLOSURE}\njoint = "revolute"'), "left.end~right.end", "twice"),
    "axis of no name": (changed(CLOSURE, f'{CLOSURE}\naxis = "w"'), "axis", "'w'"),
    "axis of no length": (changed(CLOSURE, f"{CLOSURE}\naxis_2 = [0, 0, 0]"), "axis_2", "no length"),
    "closure out of the plane": (changed('joint = "revolute"\n\n[poses', 'joint = "spherical"\n\n[poses'),
        "joint", "plane"),
    "joint out of the plane": (changed('joint = "revolute"', 'joint = "universal"'), "joint", "plane"),
    "universal without cross": (f'{ARM}[[closure]]\nbetween = ["base", "a"]\njoint = "universal"\naxis = "x"',
        "axis_2", "give axis and axis_2"),
    "sign of a joint": (added('[working_modes.a]\nsigns = { "left.elbow" = "x" }'), "signs.left.elbow", "'+', '-'"),
    "joint named twice": (added('[actuation.a]\nactuated = ["left.elbow", "left.elbow"]'), "actuation.a", "twice"),
    "text for names": (added('[actuation.a]\nactuated = "left.elbow"'), "actuation.a.actuated", "not 'left.elbow'"),
    "text for notes": (added('[reference]\nnotes = "a"'), "reference.notes", "not 'a'"),
    "pose with a table": (changed('"tip.x" = 0.0', "tip.x = 0.0"), "poses.home.tip", '"tip.x"'),
    "pose without a name": (changed("[poses.home]", "[poses]"), "poses.tip.x", "a table is expected here, not 0.0"),
    "pose with a wrong name": (changed("[poses.home]", '[poses."a=b"]'), "poses", "'a=b'"),
    "pose with z in the plane": (changed('"tip.x"', '"tip.z"'), "poses.home", "x, y and theta"),
}  # fmt: skip
STRUCTURE = {
    "one bracket for a frame": (added('[frame]\nname = "a"'), "frame", "[[frame]]"),
    "one bracket for frames of legs": ('format = 1\nname = "a"\n[legs]\nnames = ["l"]\n[legs.frame]\nname = "1"',
        "legs.frame", "[[legs.frame]]"),
    "number for constants": ('format = 1\nname = "a"\nconstants = 3', "constants", "not 3"),
    "number for legs": ('format = 1\nname = "a"\nlegs = 3', "legs", "not 3"),
    "no names": (changed('names = ["left", "right"]', ""), "legs: names", "names = "),
    "names of nothing": (changed('["left", "right"]', "[]"), "legs: names", "not []"),
    "names as numbers": (changed('["left", "right"]', "[1, 2]"), "legs: names", "not 1"),
    "names with bad letters": (changed('["left", "right"]', '["le/ft", "right"]'), "legs: names", "'le/ft'"),
    "names twice": (changed('["left", "right"]', '["left", "left"]'), "legs: names", "'left'"),
    "leg of two families": (added('[[frame]]\nname = "left.elbow"'), "left.elbow", "used twice"),
    "too few values": (changed("[-0.1, 0.1]", "[-0.1]"), "legs: base_x", "1 values for 2 legs"),
    "one value for all legs": (changed("[-0.1, 0.1]", "0.1"), "legs: base_x", "list of values per leg"),
    "bad value of one leg": (changed("[-0.1, 0.1]", '[-0.1, "a"]'), "legs: base_x: right", "'a'"),
    "value called like a constant": (changed("base_x = [", "proximal = ["), "legs: proximal", "rename"),
    "value called like a function": (changed("base_x = [", "sqrt = ["), "legs.sqrt", "'sqrt'"),
    "constant called pi": (changed("proximal = 0.30", "pi = 3"), "constants.pi", "'pi'"),
    "constant called lambda": (changed("proximal = 0.30", "lambda = 3"), "constants.lambda", "'lambda'"),
    "constant before its time": (changed("proximal = 0.30", 'proximal = "distal"'), "constants.proximal", "'distal'"),
    "frame of a leg twice": (changed('name = "elbow"', 'name = "shoulder"'), "left.shoulder", "used twice"),
    "frame of a leg without name": (changed('name = "elbow"', 'name = ""'), "name", "'' is not a valid name"),
    "frame called base": (f'{ARM}[[frame]]\nname = "base"', "frame 'base'", "ground"),
    "frame called like an axis": (changed('"revolute"', '"universal"', ARM) + '[[frame]]\nname = "a.1"',
        "a.1", "used twice"),
    "frame on itself": (changed('parent = "shoulder"', 'parent = "elbow"'), "left.elbow", "cycle"),
    "frames in a circle": (f'{ARM}[[frame]]\nname = "b"\nparent = "c"\n[[frame]]\nname = "c"\nparent = "b"',
        "frame 'b': parent", "b -> c -> b"),
    "no frames": ('format = 1\nname = "a"', "frame", "[[frame]]"),
    "nothing can move": ('format = 1\nname = "a"\n[[frame]]\nname = "b"', "frame", "joint"),
    "key of our own": (f"leg_of = {{}}\n{ARM}", "leg_of", "'legs'"),
}  # fmt: skip
BAD_FILES = {**UNKNOWN_KEYS, **WRONG_VALUES, **STRUCTURE}


@pytest.mark.parametrize(("text", "key", "words"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file_is_one_sentence_with_key_value_and_fix(capsys, tmp_path, text, key, words):
    file = tmp_path / "robot.toml"
    file.write_text(text, encoding="utf-8")
    error = refused(capsys, "check", file)
    assert error["file"] == str(file)
    assert key in error["key"]
    assert words in f"{error['message']}; {error['hint']}"
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
def test_what_is_no_robot_file_is_said_at_once(capsys, tmp_path, content, words):
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

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("parflex.description.source.read_bounded", denied)
    error = refused(capsys, "check", secret)
    assert (error["file"], "Permission denied" in error["message"]) == (str(secret), True)


def test_a_byte_order_mark_and_windows_lines_are_no_matter(capsys, tmp_path):
    file = tmp_path / "robot.toml"
    file.write_bytes(b"\xef\xbb\xbf" + FIVE_BAR.replace("\n", "\r\n").encode())
    assert answered(capsys, "check", file)["ok"] is True


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


def test_the_robot_of_the_documentation_passes_check_without_a_warning(capsys, tmp_path):
    file = tmp_path / "robot.toml"
    file.write_text(FIVE_BAR)
    assert answered(capsys, "check", file, "--strict") == {"ok": True, "file": str(file), "warnings": []}


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

    def documented(heading: str) -> set[str]:
        section = PAGE.split(f"\n## {heading}")[1].split("\n## ")[0].split("**")[0]
        rows = re.findall(r"^(?:- |\| )`([^|:]*)`(?::| \|)", section, re.MULTILINE)  # of lists and tables
        return {re.sub(r"[`,\[\]]|\.NAME", "", word) for row in rows for word in re.split(r" or | ", row)} - {"or"}

    assert documented("Top level") == set(tables["robot"])
    assert documented("`[[frame]]`") == set(tables["Frame"])
    assert documented("`[[closure]]`") >= set(tables["Closure"])
    others = "gamma b alpha d theta r position rotation mass centre about_centre M MX MY MZ XX XY XZ YY YZ ZZ IA FV FS"
    others += " viscous coulomb stiffness rest points names start signs source inferred fitted errata notes"
    assert set(others.split()) <= known
    assert all(f"`{word}`" in PAGE or re.search(rf"\b{word}\b", PAGE) for word in known)
    assert "leg_of" not in known


def test_an_impossible_inertia_warns_with_the_reason_and_strict_refuses_it(capsys, tmp_path):
    file = tmp_path / "robot.toml"
    file.write_text(changed(INERTIA, "about_centre = [0, 0, -1]"))
    warnings = answered(capsys, "check", file)["warnings"]
    assert len(warnings) == 1
    assert "'left.shoulder', 'right.shoulder'" in warnings[0]
    assert "-1 kg m2" in warnings[0]
    assert "warning: " + warnings[0] in run(capsys, "check", file).err
    error = refused(capsys, "check", file, "--strict")
    assert "-1 kg m2" in error["message"]
    assert (error["file"], error["key"]) == (str(file), "inertia")


def test_a_massless_body_is_fine(capsys, tmp_path):
    file = tmp_path / "robot.toml"
    file.write_text(changed("mass = 0.5", "mass = 0"))
    assert answered(capsys, "check", file)["ok"] is True


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
        except ParflexError as error:
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
        with pytest.raises(ParflexError) as refusal:
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
