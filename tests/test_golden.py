"""The order of questions changes no answer: hundreds of them, drawn by chance, against answers of new processes."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import PUBLIC
from golden import QUESTIONS, SharedRobots, answer_to, differing, fresh_answers, same, stored
from support.drawn_questions import SEED, quick

DRAWS = 300 if os.environ.get("PARFLEX_VERIFY") else 100
THREADS = 4
ALWAYS = ["puma560", "rx90", "four-bar"]  # whose poses once depended on what was asked before
SHORT = 0.35 if os.environ.get("PARFLEX_VERIFY") else 0.05  # seconds of a new process: each of these is asked
QUICK = 0.35  # longer ones are left to the long proof, and to some draws


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
def test_answers_do_not_depend_on_what_was_asked_before():
    print(f"PARFLEX_SEED={SEED}")
    chance = random.Random(SEED)
    # each short one, so that half of them are not left to chance, and some longer and some slow ones
    several = quick(SHORT) + chance.choices(quick(QUICK), k=40) + chance.choices(quick(3.0), k=3)
    chance.shuffle(several)
    bench = SharedRobots()
    assert not wrong(several, bench), f"PARFLEX_SEED={SEED}"
    # the same robots, which now know much, asked by several at a time
    several = drawn(chance, DRAWS // 2, QUICK)
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda part: wrong(part, bench), [several[k::THREADS] for k in range(THREADS)]))
    assert not any(found), f"PARFLEX_SEED={SEED}"


def test_threads_that_meet_a_new_robot_at_once_get_the_right_answers():
    chance = random.Random(SEED + 1)
    asked = drawn(chance, 40, 0.1)
    bench = SharedRobots()
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: wrong(asked, bench), range(THREADS)))
    assert not any(found), f"PARFLEX_SEED={SEED}"


@pytest.mark.verify
@pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify")
def test_new_processes_give_the_answers_that_are_kept(figure):
    found = fresh_answers(list(QUESTIONS))
    figure("questions that new processes answered", float(len(found)))
    assert not [entry["crash"] for entry in found.values() if "crash" in entry]
    assert not differing(found), "python tests/golden.py --compare shows them, --store keeps them if they are meant"


@pytest.mark.verify
@pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify")
def test_all_questions_in_random_order_give_the_answers_of_new_processes():
    chance = random.Random(SEED + 2)
    asked = list(QUESTIONS)
    chance.shuffle(asked)
    assert not wrong(asked, SharedRobots()), f"PARFLEX_SEED={SEED}"
