"""The verbs `control` and `study`: their answers, their exit codes, and how each says no."""

from __future__ import annotations

import json

import pytest

import parflex
from parflex.cli.main import main

RUN = ["control", "3rrr", "--working-mode", "+-+", "--law", "ctc", "--reference", "circle:radius=0.02,time=0.3"]
STUDY = 'robot = "3rrr"\nworking_mode = "+-+"\nreference = { kind = "circle", radius = 0.02, time = 0.3 }\n'


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--json"])
    captured = capsys.readouterr()
    return stop.value.code, json.loads(captured.out), captured.err


def test_control_answers_with_errors_and_no_failure(capsys, tmp_path):
    code, answer, _ = call(capsys, *RUN, "-o", str(tmp_path / "run.csv"))
    assert code == 0 and answer["failure"] is None  # a fast circle: 0.3 mm at 1 ms
    assert set(answer["errors"]) == {"ise", "iae", "itae", "max"} and answer["errors"]["max"] < 5e-4
    assert answer["settings"]["Kp"] == pytest.approx(1517.15, abs=5e-3)  # as published, to two decimals
    back = parflex.load_run(tmp_path / "run.csv")
    assert len(back.t) == 301 and abs(back["error"].max() - answer["errors"]["max"]) < 1e-15


def test_what_is_left_out_acts_neither_in_the_law_nor_on_the_plant(monkeypatch):
    class SeenError(Exception):
        """Ends the call where the plant would be compiled."""

    def look(plant, *more):
        raise SeenError(max(link.terms.coulomb + link.terms.viscous for link in plant.tree.links))

    monkeypatch.setattr("parflex.control.control_run.make_plant", look)
    robot = parflex.load("3rrr")
    rough = parflex.load("3rrr", settings={"legs.frame.1.friction": {"viscous": 0.3}})
    for without, expected in (((), 0.3), (("friction",), 0.0)):
        with pytest.raises(SeenError) as seen:
            parflex.run_control(robot, "circle:radius=0.02,time=0.1", plant=rough, without=without)
        assert seen.value.args[0] == expected


@pytest.mark.verify
def test_a_motion_may_be_called_as_a_kind_of_reference(capsys, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'format = 1\nname = "mine"\nextends = "3rrr"\n[motions.circle]\n'
        "circle = { centre = [0, 0, 0], start = [0.02, 0, 0] }\nspeed = 0.3\nramp = 0.1\n"
    )
    code, answer, _ = call(capsys, "control", str(path), "--law", "ctc", "--reference", "circle", "--time", "0.2")
    assert code == 0 and answer["failure"] is None


def test_a_plant_with_other_numbers_is_followed_less_well(capsys):
    _, right, _ = call(capsys, *RUN)
    off = ["--plant-set", "constants.distal=0.404", "--plant-payload", "1,0,0,0"]
    code, answer, _ = call(capsys, *RUN, *off)
    assert code == 0 and answer["errors"]["iae"] > 5 * right["errors"]["iae"]


def test_a_run_that_fails_says_why_and_exits_with_one(capsys):
    code, answer, err = call(capsys, *RUN, "--noise", "1")
    assert code == 1 and answer["failure"]["kind"] == "geometry" and answer["errors"]["iae"] is None
    assert "the run failed" in err


def test_people_get_a_table(capsys):
    with pytest.raises(SystemExit) as stop:
        main(RUN)
    shown = capsys.readouterr().out
    assert stop.value.code == 0 and "iae" in shown and "under ctc" in shown


CIRCLE = ["--reference", "circle:radius=0.02,time=0.3"]
BAD = {
    "law": (["3rrr", "--law", "cct", *CIRCLE], "law", "did you mean 'ctc'"),
    "sensors": (["delta", "--law", "extended", *CIRCLE], "law", "sensors in passive joints"),
    "reach": (["3rrr", "--law", "ctc", "--reference", "circle:radius=0.9"], "reference", "t = "),
    "sample time": (["3rrr", "--law", "ctc", *CIRCLE, "--sample-time", "-1"], "sample_time", "positive"),
    "limit": (["3rrr", "--law", "ctc", *CIRCLE, "--effort-limit", "-4"], "effort_limit", "positive"),
    "limit of no motor": (["3rrr", "--law", "ctc", *CIRCLE, "--effort-limit", "leg1.2=4"], "effort_limit", "actuated"),
    "limit is a word": (["3rrr", "--law", "ctc", *CIRCLE, "--effort-limit", "much"], "effort-limit", "not a number"),
    "two limits": (["3rrr", "--law", "ctc", *CIRCLE, "--effort-limit", "5,6"], "effort-limit", "not one number"),
    "delay": (["3rrr", "--law", "ctc", *CIRCLE, "--delay", "-2"], "delay", "whole number"),
    "kind": (["3rrr", "--law", "ctc", "--reference", "square:side=1"], "reference", "kind"),
    "motion": (["3rrr", "--law", "ctc", "--reference", "waltz"], "reference", "no reference 'waltz'"),
    "word": (["3rrr", "--law", "ctc", "--reference", "circle:radius"], "reference", "KEY=VALUE"),
    "number": (["3rrr", "--law", "ctc", "--reference", "circle:radius=big"], "reference", "not a number"),
    "no such coordinate": (["3rrr", "--law", "ctc", "--reference", "circle:radius=0.1,w=1"], "reference", "no 'w'"),
    "file": (["3rrr", "--law", "ctc", "--reference", "spline:none.csv"], "reference", "cannot be read"),
    "other motors": (["3rrr", "--law", "ctc", *CIRCLE, "--plant", "5r"], "plant", "different motors"),
    "start": (["3rrr", "--law", "ctc", *CIRCLE, "--start", "home"], "start", "no start"),
    "term": (["3rrr", "--law", "ctc", *CIRCLE, "--compensate", "wind"], "with", "is not a term that can be included"),
    "open robot": (["rx90", "--law", "ctc", *CIRCLE], "robot", "has no loops"),
    "bends": (["3rrr-flexible", "--law", "ctc", *CIRCLE], "robot", "rigid"),
    "output": (["3rrr", "--law", "ctc", *CIRCLE, "-o", "run.txt"], "out", "unknown file type"),
}


@pytest.mark.few
@pytest.mark.parametrize(("arguments", "key", "words"), BAD.values(), ids=BAD.keys())
def test_a_bad_option_is_one_sentence_with_a_hint(capsys, arguments, key, words):
    code, answer, err = call(capsys, "control", *arguments)
    error = answer["error"]
    assert code == 2 and error["key"] == key and words in error["message"] + (error["hint"] or "")
    assert error["hint"] and "Traceback" not in err and len(err.strip().splitlines()) == 1


def test_a_study_answers_by_percentage_and_law(capsys, tmp_path):
    file, out, figure = tmp_path / "study.toml", tmp_path / "study.json", tmp_path / "study.svg"
    file.write_text(STUDY + "percentages = [2, 4]\ntemplates = 1\n")
    code, answer, _ = call(capsys, "study", str(file), "--out", str(out), "--jobs", "1", "--figure", str(figure))
    assert code == 0 and [row["percentage"] for row in answer["percentages"]] == [2, 4]
    assert set(answer["percentages"][0]["errors"]["extended"]) == {"ise", "iae", "itae", "max"}
    assert answer["percentages"][0]["failures"] == {"ctc": {}, "extended": {}}
    assert (answer["done"], answer["computed"], answer["interrupted"]) == (2, 2, False)
    assert figure.read_text().startswith("<?xml")
    with pytest.raises(SystemExit):
        main(["study", str(file), "--out", str(out), "--jobs", "1"])
    assert "IAE" in capsys.readouterr().out


def test_a_study_file_that_is_not_there_or_wrong_is_named(capsys, tmp_path):
    code, answer, _ = call(capsys, "study", str(tmp_path / "none.toml"))
    assert code == 2 and "cannot be read" in answer["error"]["message"]
    file = tmp_path / "study.toml"
    file.write_text(STUDY + "template = 3\n")
    code, answer, _ = call(capsys, "study", str(file))
    assert code == 2 and answer["error"]["key"] == "template" and "templates" in answer["error"]["hint"]
    file.write_text(STUDY)
    for option, key in (("--jobs", "jobs"), ("--out", "out")):
        code, answer, _ = call(capsys, "study", str(file), option, "0")
        assert code == 2 and answer["error"]["key"] == key
