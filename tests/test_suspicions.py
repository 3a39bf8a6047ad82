"""Mistakes in records are named: units of time, positions and efforts, and signs of motors; good ones are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.oracles import led_records
from support.pinocchio_trees import ROBOTS, three_rrr
from support.recordings import ARM, arm_record
from support.unseen_robots import recorded, written

import parflex
from parflex.identification.base_columns import base_columns
from parflex.identification.column_map import read_column_map
from parflex.identification.doubts.by_file.file_trial import FileTrial
from parflex.identification.doubts.by_file.hypotheses import as_given
from parflex.identification.doubts.by_file.usual_mistakes import suspicions
from parflex.identification.filtering import choose_filter
from parflex.identification.measured_files import read_measurement
from parflex.identification.regressors import Regressor
from parflex.identification.unknowns import unknowns


class Asked:
    """A robot, and what is suspected of its records."""

    def __init__(self, robot):
        self.robot, self.motors = robot, list(robot.actuated_names)
        self.regressor = Regressor(robot, unknowns(robot, "file"))
        self.base = base_columns(self.regressor)
        links = [robot.tree.links[robot.tree.link_of_rate[k]] for k in robot.actuated]
        self.turning = np.array([link.joint.unit == "rad" for link in links])

    def off(self, record):
        """Share of the efforts that the file does not explain."""
        own = read_measurement(record, read_column_map(None, self.motors), self.robot)
        choice = choose_filter([own], None, None, None, None)
        return FileTrial(self.regressor, self.base, own, choice).off(as_given(self.regressor))

    def of(self, record, factors=1.0):
        """What is said, where the file has other numbers by these factors."""
        own = read_measurement(record, read_column_map(None, self.motors), self.robot)
        before = self.regressor.unknowns
        factors = np.broadcast_to(factors, len(before))
        self.regressor.unknowns = [replace(one, value=one.value * f) for one, f in zip(before, factors, strict=True)]
        try:
            return suspicions(self.regressor, self.base, [own], choose_filter([own], None, None, None, None))[0]
        finally:
            self.regressor.unknowns = before


def times(record, word, factor, motors):
    return {f"{word}.{motor}": factor * record[f"{word}.{motor}"] for motor in motors}


def mistakes(record, asked):
    """Records with one mistake each, by what must be said of them."""
    motors, found = asked.motors, {}
    for those, unit, name in ((asked.turning, 180 / np.pi, "degrees"), (~asked.turning, 1e3, "millimetres")):
        if those.any():
            found[f"positions in {name}"] = times(record, "q", unit, np.array(motors)[those])
    found |= {
        "time in milliseconds": {"t": 1e3 * record["t"]},
        "efforts in mN": times(record, "effort", 1e3, motors),
        "efforts in kN": times(record, "effort", 1e-3, motors),
    }
    if len(motors) > 1:
        found["sign of efforts of all motors"] = times(record, "effort", -1, motors)
    for motor in motors:
        found[f"sign of efforts of '{motor}'"] = times(record, "effort", -1, [motor])
        found[f"signs of positions and efforts of '{motor}'"] = times(record, "effort", -1, [motor]) | times(
            record, "q", -1, [motor]
        )
    return {words: record | columns for words, columns in found.items()}


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    path = tmp_path_factory.mktemp("arm") / "arm.toml"
    path.write_text(ARM)
    robot = parflex.load(path)
    clean = arm_record(robot)
    return Asked(robot), led_records.as_measured(clean, 0, 1e-6, 1e-7, 0.05, 40.0)


def test_each_mistake_of_a_record_is_named_and_no_other(arm):
    asked, record = arm
    assert asked.of(record) is None
    for words, wrong in mistakes(record, asked).items():
        told = asked.of(wrong)
        assert told is not None and words in told, f"{words}: {told}"


def test_rough_files_do_not_make_records_suspected(arm):
    asked, record = arm
    rng = np.random.default_rng(3)
    for _ in range(10):
        assert asked.of(record, np.exp(0.7 * rng.standard_normal(len(asked.regressor.unknowns)))) is None
        assert asked.of(record, np.exp(0.7 * rng.standard_normal())) is None


def test_the_answer_says_what_is_suspected(arm):
    asked, record = arm
    told = parflex.identify(asked.robot, record | {"t": 1e3 * record["t"]}).warnings
    assert sum("with time in milliseconds: if it is, give time gain = 0.001" in text for text in told) == 1


def noisy(name):
    if name != "emps":
        case = three_rrr(led=True) if name == "3rrr" else ROBOTS[name, "iv"]()
        return case.robot, case.noisy
    robot = parflex.load("emps")
    run = parflex.simulate(robot, {"frequency": 0.5, "sines": {"axis": [0.05, 0.02, 0.01]}, "duration": 6}, 6.0)
    clean = {word: np.array(run[word]) for word in ("t", "q.axis", "effort.axis")}
    return robot, lambda seed: led_records.as_measured(clean, seed, 1e-6, 5e-7, 0.5, 100.0)


@pytest.mark.verify
@pytest.mark.parametrize("name", ["emps", "3rrr", "delta", "gough-stewart"])
def test_mistakes_of_many_records_are_named_and_good_ones_are_not(name, figure):
    robot, make = noisy(name)
    asked, rng = Asked(robot), np.random.default_rng(1)
    named = wrongly = asked_for = 0
    for seed in range(3):
        record = make(seed)
        assert asked.of(record) is None
        for words, wrong in mistakes(record, asked).items():
            if seed and rng.random() < 0.7:
                continue
            told = asked.of(wrong)
            symmetric = name == "emps" and "signs" in words  # this axis has nothing that tells one side from the other
            asked_for, named = asked_for + (not symmetric), named + (told is not None and words in told)
            wrongly += told is not None and words not in told
        for _ in range(4):
            assert asked.of(record, np.exp(0.7 * rng.standard_normal(len(asked.regressor.unknowns)))) is None
            assert asked.of(record, np.exp(0.7 * rng.standard_normal())) is None
    figure(f"{name}: mistakes named, of {asked_for}", named, str(asked_for))
    assert wrongly == 0 and named == asked_for


def asked_about(name, seed, folder):
    path = written(name, seed, folder)
    return Asked(parflex.load(path)), recorded(path, seed)


@pytest.mark.verify
@pytest.mark.parametrize("name", ["rail", "mixed"])
def test_mistakes_of_robots_that_were_not_seen_before_are_named(name, tmp_path, figure):
    """Over random robots: all that changes efforts by more than a tenth is named, and right records never."""
    named = asked_for = unfelt = 0
    wrongly = []
    for seed in range(10):
        asked, record = asked_about(name, seed, tmp_path)
        rng = np.random.default_rng(seed)
        rough = [np.exp(0.7 * rng.standard_normal(len(asked.regressor.unknowns))) for _ in range(3)]
        wrongly += [told for factors in (1.0, *rough) if (told := asked.of(record, factors)) is not None]
        for words, wrong in mistakes(record, asked).items():
            told = asked.of(wrong)
            if told is None and asked.off(wrong) < 0.1:
                unfelt += 1
                continue
            asked_for += 1
            named += told is not None and words in told
            wrongly += [(seed, words, told)] if told is None or words not in told else []
    figure(f"{name}: mistakes named, of {asked_for} ({unfelt} that change nothing)", named, str(asked_for))
    assert not wrongly and named == asked_for
