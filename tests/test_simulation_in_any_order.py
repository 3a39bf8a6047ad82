"""Runs and laws among other questions, in any order: what they compile and keep changes no answer."""

from __future__ import annotations

import random

import pytest
from golden import QUESTIONS, SharedRobots, answer_to, same, stored
from support.drawn_questions import SEED, quick


@pytest.mark.verify
def test_runs_do_not_depend_on_what_was_asked_before():
    kept, bench, chance = stored(), SharedRobots(), random.Random(SEED + 3)
    runs = [key for key, question in QUESTIONS.items() if question.loop and " catalogue " not in key]
    asked = [*chance.choices(runs, k=12), *chance.choices(quick(0.1), k=24)]
    chance.shuffle(asked)
    print(f"PARFLEX_SEED={SEED}")
    assert [
        key for key in asked if not same(kept[key]["answer"], answer_to(key, bench), QUESTIONS[key].tolerance)
    ] == [], f"PARFLEX_SEED={SEED}"
