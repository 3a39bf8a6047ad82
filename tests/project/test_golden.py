"""Stored answers do not depend on the order of questions; the report of `make verify` and its mutations."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from golden import QUESTIONS, SharedRobots, answer_to, differing, fresh_answers, same, stored
from support.cases import PUBLIC
from support.drawn_questions import SEED, quick
from support.mutation import mutate, source_file
from verify import Report

THREADS = 4
ALWAYS = ["puma560", "rx90", "four-bar"]  # whose poses once depended on what was asked before
QUICK = 0.35  # seconds of a new process


def drawn(chance: random.Random, count: int, limit: float) -> list[str]:
    """Questions in random order, many to each of some robots: state is kept by robots, and few questions show it."""
    groups: dict[str, list[str]] = {}
    for key in quick(limit):
        groups.setdefault(key.split()[1], []).append(key)
    others = sorted(set(groups) - set(ALWAYS))
    names = [*ALWAYS, *chance.sample(others, 9)]
    asked = [key for name in names for key in chance.choices(groups[name], k=count // len(names) + 1)]
    chance.shuffle(asked)
    return asked


def wrong(asked: list[str], bench: SharedRobots) -> list[str]:
    """Those of the questions, in their order, whose answers are not those of a new process."""
    kept = stored()
    return [key for key in asked if not same(kept[key]["answer"], answer_to(key, bench), QUESTIONS[key].tolerance)]


def test_there_are_questions_to_every_function_and_all_have_answers():
    assert len(QUESTIONS) >= 300
    assert {question.function for question in QUESTIONS.values()} == set(PUBLIC)
    assert stored().keys() == QUESTIONS.keys(), "python tests/golden.py --store-new"


@pytest.mark.verify
def test_questions_in_random_order_and_from_several_threads_give_the_answers_of_new_processes():
    print(f"PARFLEX_SEED={SEED}")
    chance, bench = random.Random(SEED), SharedRobots()
    # ten take longer, a third of the time of all: the order matters to what robots store
    several = [key for key, entry in stored().items() if entry["seconds"] < 10]
    chance.shuffle(several)
    assert not wrong(several, bench), f"PARFLEX_SEED={SEED}"
    # the same robots, which now know much, asked by several at a time
    several = drawn(chance, 150, QUICK)
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda part: wrong(part, bench), [several[k::THREADS] for k in range(THREADS)]))
    assert not any(found), f"PARFLEX_SEED={SEED}"


@pytest.mark.verify
def test_threads_that_meet_a_new_robot_at_once_get_the_right_answers():
    chance = random.Random(SEED + 1)
    asked = drawn(chance, 40, 0.1)
    bench = SharedRobots()
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: wrong(asked, bench), range(THREADS)))
    assert not any(found), f"PARFLEX_SEED={SEED}"


@pytest.mark.verify
def test_new_processes_give_the_answers_that_are_kept(figure):
    found = fresh_answers(list(QUESTIONS))
    figure("questions that new processes answered", float(len(found)))
    assert not [entry["crash"] for entry in found.values() if "crash" in entry]
    assert not differing(found), "python tests/golden.py --compare shows them, --store keeps them if they are meant"


def test_a_mutation_changes_one_function_only(tmp_path):
    source = "def f(x):\n    return 2 * x\n\n\nclass A:\n    def f(self, x):\n        return 2 * x\n"
    assert mutate(source, "A.f", "2 * x", "3 * x") == source[:-6] + "3 * x\n"
    for name, old, message in (("A.f", "4 * x", "0 times"), ("A.g", "2 * x", "no function"), ("A", "x", "2 times")):
        with pytest.raises(ValueError, match=message):
            mutate(source, name, old, "")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "module.py").write_text(source)
    assert source_file("package.module.A.f", tmp_path) == (tmp_path / "package" / "module.py", "A.f")
    with pytest.raises(ValueError, match="no module"):
        source_file("package.other.f", tmp_path)


def test_the_report_of_verify_is_not_ok_after_a_failure_or_an_interrupt():
    assert "# Verification: ok" in Report(rows=[("tests", "passed", "3 cases", 1.0)]).text()
    assert "NOT OK" in Report(failures=["a mutation survived"]).text()
    assert "Interrupted" in Report(interrupted=True).text()


@pytest.mark.parametrize("tolerance", [{}, {"rel": 1e-3}, {"abs": 1e-3}, {"rel": 1e-4, "abs": 1e-3}, {"nan_ok": True}])
def test_arrays_compared_at_once_are_equal_where_they_are_number_by_number(tolerance):
    rng = np.random.default_rng(3)
    equal = 0
    for k in range(60):
        expected = rng.normal(size=(2, 2)) * 10.0 ** rng.integers(-3, 4)
        actual = expected * (1 + 10.0 ** rng.uniform(-8, -2) * rng.normal(size=(2, 2)))
        if k % 3 == 0:
            expected[0, 0] = actual[0, 0] = (np.nan, np.inf, 0.0)[k % 9 // 3]
        wanted = pytest.approx(expected, **tolerance)
        assert (actual == wanted) == wanted.one_by_one(actual)
        equal += actual == wanted
    assert 0 < equal < 60
    assert np.zeros(2) != pytest.approx(np.zeros(3)) and np.ones(2) != pytest.approx(np.array([1.0, np.nan]))
