"""Robot files that nobody meant get an answer or one sentence: no traceback, no hang, no NaN with a good exit code."""

from __future__ import annotations

import os
from pathlib import Path

import fuzz
import pytest

ORDINARY, LONG = 60, 20_000
STEP = 17  # another part of the cases than the first ones of the long proof


def test_robot_files_changed_by_chance_get_an_answer_or_one_sentence(tmp_path: Path):
    """Some of the cases; `python tests/fuzz.py NUMBER` shows one of them."""
    found = {number: fuzz.try_case(number, tmp_path) for number in range(0, STEP * ORDINARY, STEP)}
    bad = {number: answer for number, answer in found.items() if fuzz.is_bad(answer[0])}
    assert not bad
    kinds = {answer for answer, _ in found.values()}
    assert "ok" in kinds and "robot-file" in kinds and len(kinds) > 5  # it reaches more than the reader of files


def test_a_case_depends_on_its_number_alone(tmp_path: Path):
    first = fuzz.write_case(12, tmp_path)[0].read_bytes()
    for number in (13, 12):
        again = fuzz.write_case(number, tmp_path)[0].read_bytes()
    assert again == first


@pytest.mark.verify
@pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify")
def test_twenty_thousand_robot_files_get_an_answer_or_one_sentence(figure):
    bad, count = [], [0]

    def shown(line: str) -> None:
        count[0] += 1
        if fuzz.is_bad(line.split("\t")[1]):
            bad.append(line)

    fuzz.many(0, LONG, shown)
    figure("robot files changed by chance", float(count[0]), LONG)
    assert not bad and count[0] == LONG
