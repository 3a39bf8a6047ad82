"""Arithmetic in robot files: it computes, it does nothing else, and it never takes long."""

from __future__ import annotations

import math
import time
import warnings

import pytest

import parflex
from parflex import RobotFileError
from parflex.description.expressions import evaluate

GOOD = {
    "1": 1.0,
    " -2.5e-1 ": -0.25,
    "-5*pi/6": -5 * math.pi / 6,
    "0.7/sqrt(3)": 0.7 / math.sqrt(3),
    "30*deg": math.radians(30),
    "2**3**2": 512.0,
    "-2**2": -4.0,
    "2**-1": 0.5,
    "(1 + 2)*(3 - 4)/2": -1.5,
    "+1 - -1": 2.0,
    "atan2(1, -1)": 3 * math.pi / 4,
    "asin(1) + acos(0) + atan(0)": math.pi,
    "sin(0.3)**2 + cos(0.3)**2": 1.0,
    "tan(0.5)": math.tan(0.5),
    "abs(-3)": 3.0,
    "arm*2 + offset": 0.7,
    "1_000": 1000.0,
}
CODE = [
    "__import__('os')",
    "eval('1')",
    "open('x')",
    "print(1)",
    "(1).real",
    "pi.real",
    "().__class__",
    "lambda: 1",
    "[x for x in (1, 2)]",
    "(x for x in (1,))",
    "{1: 2}",
    "{1}",
    "[1]",
    "(1, 2)",
    "'a'",
    "'a'*3",
    "b'a'",
    "f'{1}'",
    "1 < 2",
    "1 == 1",
    "1 and 2",
    "not 1",
    "~1",
    "1 if 1 else 2",
    "(a := 3)",
    "a[0]",
    "sqrt[0]",
    "await x",
    "yield 1",
    "True",
    "None",
    "...",
    "1j",
    "sqrt(x=1)",
    "sqrt(*[4])",
    "sqrt(**{})",
    "pi()",
    "sin(1)(2)",
    "1 // 2",
    "7 % 2",
    "1 @ 2",
    "1 << 9999999",
    "1 | 2",
]
NO_EXPRESSION = [
    "",
    "  ",
    "1 +",
    "1 2",
    "x = 1",
    "1; 2",
    "import os",
    "pass",
    "1\n+ 1",
    "\0",
    "√2",
    "(1",
    "1)",
    "\\",
    "007",
]
NO_VALUE = ["1/0", "0**-1", "sqrt(-1)", "(-1)**0.5", "abs((-1)**0.5)", "acos(2)", "1e400", "1e308*10", "1e999*0"]
FOREVER = [
    "9**9**9**9",
    "9**99999999",
    "-9**9**9**9",
    "(" * 10_000 + "1" + ")" * 10_000,
    "1+" * 5_000 + "1",
    "-" * 5_000 + "1",
    "9" * 5_000,
    "sqrt(" * 1_000 + "1" + ")" * 1_000,
    "2**" * 99 + "2",
]


@pytest.mark.parametrize(("text", "value"), GOOD.items())
def test_arithmetic_has_its_value(text, value):
    assert evaluate(text, {"arm": 0.3, "offset": 0.1}) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("text", CODE)
def test_anything_but_arithmetic_is_refused(text):
    with pytest.raises(RobotFileError) as refusal:
        evaluate(text, {})
    assert text in refusal.value.message
    assert refusal.value.value == text
    assert refusal.value.hint


def test_no_code_in_an_expression_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text in ("__import__('pathlib').Path('ran').touch()", "open('ran', 'w')", "[open('ran', 'w') for _ in '1']"):
        with pytest.raises(RobotFileError):
            evaluate(text, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", NO_EXPRESSION)
def test_what_is_no_expression_is_said_so(text):
    with pytest.raises(RobotFileError, match="not an arithmetic expression"):
        evaluate(text, {})


@pytest.mark.parametrize("text", NO_VALUE)
def test_an_expression_without_a_finite_real_value_is_refused(text):
    with pytest.raises(RobotFileError, match="no finite real value"):
        evaluate(text, {})


@pytest.mark.parametrize("text", FOREVER, ids=[text[:12] for text in FOREVER])
def test_no_expression_takes_long(text):
    start = time.process_time()
    with pytest.raises(RobotFileError) as refusal:
        evaluate(text, {})
    assert time.process_time() - start < 0.5
    assert len(str(refusal.value)) < 500


def test_long_chains_within_the_limit_have_a_value():
    assert evaluate("1+" * 140 + "1", {}) == 141
    assert evaluate("-" * 290 + "1", {}) == 1
    assert evaluate("(" * 90 + "1" + ")" * 90, {}) == 1


@pytest.mark.parametrize("text", ["sqrt()", "sqrt(1, 2)", "atan2(1)"])
def test_a_wrong_number_of_arguments_is_said_so(text):
    with pytest.raises(RobotFileError, match="number of arguments"):
        evaluate(text, {})


def test_an_unknown_name_comes_with_the_nearest_one():
    with pytest.raises(RobotFileError, match="did you mean 'offset'"):
        evaluate("2*ofset", {"offset": 1.0})
    with pytest.raises(RobotFileError, match="'deg', 'pi'"):
        evaluate("nan", {})


def test_letters_that_look_alike_are_the_same_constant():
    micro, mu = "\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}"
    assert evaluate(f"2*{micro}", {mu: 0.5}) == evaluate(f"2*{micro}", {micro: 0.5}) == 1.0


def test_reading_an_expression_never_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in ("'\\d'", "1if 1else 2", "0x1for x in y", "1()"):
            with pytest.raises(RobotFileError):
                evaluate(text, {})


def test_every_number_of_a_file_may_be_an_expression():
    numbers = parflex.load("3rrr", settings={"constants.arm": 0.1732, "gravity": [0, -9.81, 0]})
    words = parflex.load("3rrr", settings={"constants.arm": "0.1*sqrt(2.999824)", "gravity": ["0", "-981/100", "0*pi"]})
    efforts = [list(parflex.inverse_dynamics(robot, "home").efforts.values()) for robot in (numbers, words)]
    assert efforts[0] == pytest.approx(efforts[1], rel=1e-12)
