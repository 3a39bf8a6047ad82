"""Studies: seeded templates, parallel and resumable, failures apart, and what the paper claims for the means."""

import json
import re
from functools import cache

import numpy as np
import pytest
from support.command_line import answered, refused
from support.command_line import run as command
from support.paths import ROOT

from parflex import InputError, ParflexError, StudyFile, run_study
from parflex.control.control import INDEXES, error_indexes
from parflex.control.study import StudySetup, summary
from parflex.control.study_file import GainTable, LoopTable, read_study

PAPER = {"robot": "3rrr", "working_mode": "+-+", "reference": {"kind": "circle", "radius": 0.1, "time": 2.0}}


def small(**words):
    """Two percentages of two templates on a short circle."""
    short = {"kind": "circle", "radius": 0.03, "time": 0.2}
    return StudyFile(**{**PAPER, "reference": short, "percentages": (1.0, 3.0), "templates": 2, "seed": 4, **words})


@cache
def bench():
    return StudySetup(small())


@cache
def done():
    return run_study(small(), jobs=1, bench=bench())


def test_indexes_are_the_integrals_of_the_table():
    t = np.linspace(0, 2, 20001)
    found = error_indexes(t, 0.1 * np.exp(-t))
    wanted = (0.005 * (1 - np.exp(-4)), 0.1 * (1 - np.exp(-2)), 0.1 * (1 - 3 * np.exp(-2)), 0.1)
    assert np.abs(np.array(list(found.values())) - wanted).max() < 1e-9  # the trapezoidal rule: h^2 / 12
    assert tuple(found) == INDEXES


def test_templates_depend_on_the_seed_alone_and_have_all_three_signs():
    empty, drawn = StudySetup.__new__(StudySetup), []
    empty.parameters = [None] * 37
    for seed, count in ((1, 10), (1, 10), (2, 10), (1, 3)):
        empty.file = small(seed=seed, templates=count)
        drawn.append(empty.templates())
    assert np.array_equal(drawn[0], drawn[1]) and not np.array_equal(drawn[0], drawn[2])
    assert np.array_equal(drawn[0][:3], drawn[3])
    assert set(np.unique(drawn[0])) == {-1, 0, 1}
    assert all(0.25 < np.mean(drawn[0] == sign) < 0.42 for sign in (-1, 0, 1))  # a third of 370, five deviations


@pytest.mark.verify
def test_parallel_processes_give_the_same_results_and_errors_grow_with_the_percentage():
    assert run_study(small(), jobs=2, bench=bench()).cases == done().cases
    assert len(done().cases) == done().total == 4
    rows = done().summary()
    for law in ("ctc", "extended"):
        assert 2 < rows[1]["errors"][law]["iae"] / rows[0]["errors"][law]["iae"] < 4.5  # three times as wrong


@pytest.mark.verify
def test_a_cluster_finds_the_same():
    distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    words = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=False, protocol="tcp", **words) as cluster:  # in this process
        found = run_study(small(), cluster=cluster.scheduler_address, bench=bench())
    assert found.computed == 4 and found.cases == done().cases


def test_a_study_is_taken_up_where_it_was_interrupted(tmp_path):
    out = tmp_path / "study.json"

    def stop(count, total):
        if count == 3:
            raise KeyboardInterrupt

    first = run_study(small(), out, jobs=1, progress=stop, bench=bench())
    assert first.interrupted and len(first.cases) == 3
    kept = json.loads(out.read_text())
    assert len(kept["cases"]) == 3
    signs = bench().templates().tolist()
    assert [case["signs"] for case in kept["cases"]] == [signs[case["template"]] for case in kept["cases"]]
    assert len(kept["parameters"]) == len(signs[0])
    second = run_study(small(), out, jobs=1, bench=bench())
    assert (second.computed, second.interrupted) == (1, False) and second.cases == done().cases
    third = run_study(small(), out, jobs=1, bench=bench())
    assert third.computed == 0 and third.summary() == done().summary()
    assert [path.name for path in tmp_path.iterdir()] == ["study.json"]  # nothing half-written is left


def test_a_study_that_grew_keeps_its_results_by_percentage_and_no_other_study_replaces_them(tmp_path):
    out = tmp_path / "study.json"
    run_study(small(), out, jobs=1, bench=bench())
    grown, again = small(percentages=(2.0, 3.0)), StudySetup.__new__(StudySetup)
    again.__dict__.update(bench().__dict__, file=grown)
    result = run_study(grown, out, jobs=1, bench=again)
    assert result.computed == 2  # 2 % is new, 3 % is there
    assert result.cases[1, 0] == done().cases[1, 0] and result.cases[0, 0] != done().cases[0, 0]
    assert run_study(small(), out, jobs=1, bench=bench()).computed == 0  # 1 % was kept though nobody asked
    kept = out.read_bytes()
    with pytest.raises(InputError, match="does not hold this study"):
        run_study(small(seed=5), out, jobs=1)
    assert out.read_bytes() == kept
    out.write_text("not json")
    with pytest.raises(InputError, match="does not hold this study"):
        run_study(small(), out, jobs=1, bench=bench())


def case(classical, extended, failure=""):
    errors = [dict.fromkeys(INDEXES, value) for value in (classical, extended)]
    good = {"failure": "", "why": "", "stopped_at": None}
    bad = {"errors": None, "failure": failure, "why": "it is", "stopped_at": 0.5}
    return {"ctc": bad if failure else {**good, "errors": errors[0]}, "extended": {**good, "errors": errors[1]}}


def test_means_are_over_templates_that_all_laws_finish_and_the_others_are_counted():
    cases = {(0, 0): case(2.0, 1.0), (0, 1): case(0.0, 9.0, "singularity"), (0, 2): case(4.0, 5.0)}
    (row,) = summary(small(percentages=(5.0,), templates=4), cases)
    assert (row["done"], row["compared"]) == (3, 2)
    assert row["errors"]["ctc"]["iae"] == 3.0 and row["errors"]["extended"]["iae"] == 3.0  # 9.0 is in no mean
    assert row["ratio"]["extended"]["iae"] == 1.0 and row["losing"]["extended"]["iae"] == 0.5
    assert row["failures"] == {"ctc": {"singularity": 1}, "extended": {}}
    (row,) = summary(small(percentages=(5.0,), templates=1), {(0, 0): case(1.0, 1.0, "geometry")})
    assert row["compared"] == 0 and row["errors"]["extended"]["max"] is None and row["ratio"]["extended"]["iae"] is None


@pytest.mark.verify
def test_a_failed_run_is_kept_in_the_study_with_its_reason():
    # the classical law drives this plant through a singularity, and the extended one does not
    lost = StudySetup(StudyFile(**PAPER, seed=3, percentages=(5.0,))).run((0, 4))
    assert lost["ctc"]["failure"] == "singularity" and lost["ctc"]["errors"] is None
    assert "singularity" in lost["ctc"]["why"] and 0 < lost["ctc"]["stopped_at"] < 2
    assert lost["extended"]["failure"] == "" and lost["extended"]["errors"]["max"] < 0.1


CLAIMS = [(1, (5.0,)), *((seed, (1.0, 2.0, 3.0, 4.0, 5.0)) for seed in range(1, 21))]


@pytest.mark.verify
@pytest.mark.parametrize(("seed", "percentages"), CLAIMS)
def test_extended_control_is_better_in_the_mean_of_every_index(seed, percentages, figure):
    rows = run_study(StudyFile(**PAPER, seed=seed, percentages=percentages), jobs=1).summary()
    for row in rows:
        ratios = {index: row["ratio"]["extended"][index] for index in ("ise", "iae", "itae")}
        figure(f"seed {seed}, {row['percentage']:g} %: ratio of IAE", ratios["iae"], 1)
        assert max(ratios.values()) < 1 and row["compared"] >= 7
        assert row["failures"]["extended"] == {}


@pytest.mark.verify
@pytest.mark.parametrize("vary", ["lengths", "masses"])
def test_the_gain_comes_from_lengths_not_from_masses(vary, figure):
    (row,) = run_study(StudyFile(**PAPER, seed=1, percentages=(5.0,), vary=(vary,)), jobs=1).summary()
    figure(f"ratio of IAE with {vary} wrong", row["ratio"]["extended"]["iae"])
    ratio = row["ratio"]["extended"]["iae"]
    assert ratio < 0.9 if vary == "lengths" else 0.98 < ratio < 1.02  # 0.99 to 1.01 over many seeds


def test_every_key_of_a_study_file_is_on_the_page_of_control():
    page = (ROOT / "docs" / "control.md").read_text(encoding="utf-8")
    table = page.partition("| key | what |")[2].partition("\n\n")[0]
    words = {word for text in re.findall(r"`([^`]*)`", table) for word in text.split()}
    assert {*StudyFile.keys(), *LoopTable.keys(), *GainTable.keys()} <= words


@pytest.mark.verify
def test_the_command_line_answers_by_percentage_and_law(capsys, tmp_path):
    file, out, figure = tmp_path / "study.toml", tmp_path / "study.json", tmp_path / "study.svg"
    text = 'robot = "3rrr"\nworking_mode = "+-+"\nreference = { kind = "circle", radius = 0.02, time = 0.1 }\n'
    file.write_text(text + "percentages = [2, 4]\ntemplates = 1\n")
    words = ("study", str(file), "--out", str(out), "--jobs", "1")
    answer = answered(capsys, *words, "--figure", str(figure))
    rows = answer["percentages"]
    assert [row["percentage"] for row in rows] == [2, 4]
    assert set(rows[0]["errors"]["extended"]) == {"ise", "iae", "itae", "max"}
    assert rows[0]["failures"] == {"ctc": {}, "extended": {}}
    assert (answer["done"], answer["computed"], answer["interrupted"]) == (2, 2, False)
    assert figure.read_text().startswith("<?xml") and "IAE" in command(capsys, *words).out
    assert "cannot be read" in refused(capsys, "study", str(tmp_path / "none.toml"))["message"]
    for option, key in (("--jobs", "jobs"), ("--out", "out")):
        assert refused(capsys, "study", str(file), option, "0")["key"] == key


BAD = {
    "unknown key": ('robot = "3rrr"\nreferenc = 1', "referenc", "did you mean 'reference'"),
    "no reference": ('robot = "3rrr"', "reference", "missing"),
    "unknown law": ('laws = ["cct"]', "laws.0", "did you mean 'ctc'"),
    "law twice": ('laws = ["ctc", "ctc"]', "laws", "duplicates"),
    "no percentages": ("percentages = []", "percentages", "empty"),
    "percentage": ("percentages = [120]", "percentages", "not a valid percentage"),
    "word": ('percentages = ["much"]', "percentages.0", "much"),
    "templates": ("templates = 0", "templates", "no runs"),
    "seed": ("seed = -1", "seed", "negative"),
    "kind": ('vary = ["colours"]', "vary.0", "not known"),
    "gains": ("gains = { Kp = 100 }", "gains.Kv", "must be given together"),
    "loop": ("loop = { sampling = 1 }", "loop.sampling", "unknown key"),
    "a list": ('laws = "ctc"', "laws", "list"),
}


@pytest.mark.parametrize(("text", "key", "words"), BAD.values(), ids=BAD.keys())
def test_a_bad_study_file_is_refused_with_its_key(text, key, words, tmp_path):
    file = tmp_path / "study.toml"
    head = "" if "robot" in text else 'robot = "3rrr"\nreference = { kind = "circle", radius = 0.1 }\n'
    file.write_text(head + text)
    with pytest.raises(ParflexError, match=words) as refusal:
        read_study(file)
    assert (refusal.value.key, refusal.value.file) == (key, str(file))
    assert refusal.value.hint


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ({"robot": "9rrr"}, None),
        ({"reference": {"kind": "square"}}, "reference"),
        ({"reference": {"kind": "circle"}}, "reference"),
        ({"reference": {"kind": "circle", "radius": 0.1, "speed": 1}}, "reference"),
        ({"reference": {"kind": "circle", "radius": -0.1}}, "radius"),
        ({"reference": {"kind": "circle", "radius": "wide"}}, "radius"),
        ({"reference": {"kind": "circle", "radius": 0.1, "time": "long"}}, "time"),
        ({"reference": {"kind": "circle", "radius": 0.1, "turns": [1]}}, "turns"),
        ({"reference": {"kind": "circle", "radius": 0.1, "axis": ["x", 1, 2]}}, "axis"),
        ({"reference": {"kind": "circle", "radius": 0.1, "axis": 3}}, "axis"),
        ({"reference": {"kind": "line", "x": "there"}}, "pose"),
        ({"reference": {"kind": "line"}}, "reference"),
        ({"reference": {"kind": "spline"}}, "reference"),
        ({"reference": {"kind": "motion", "name": 3}}, "reference"),
        ({"reference": {"kind": ["circle"]}}, "reference"),
        ({"settings": {"constants.nothing": 1}}, "constants.nothing"),
        ({"working_mode": "+++++"}, "working-mode"),
        ({"robot": "delta", "working_mode": None, "laws": ("extended",)}, "law"),
        ({"loop": {"sample_time": -1.0}}, "sample_time"),
        ({"loop": {"effort_limit": -1.0}}, "effort_limit"),
        ({"gains": {"overshoot": 2.0}}, "overshoot"),
    ],
)
def test_impossible_studies_are_refused_before_anything_runs(words, key):
    with pytest.raises(ParflexError) as refusal:
        run_study(StudyFile(**{**PAPER, **words}), jobs=1)
    assert refusal.value.key == key and refusal.value.hint
