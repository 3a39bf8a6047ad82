"""Arithmetic in robot files: it computes, does nothing else, never takes long, and knows the angles of a set square."""

import math
import time
import warnings

import numpy as np
import pytest
from mpmath import mp, mpf
from support.robots import load_robot
from support.traced import ROBOTS, made

import parflex
from parflex.robotfile.values import evaluate

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
    "__import__('os')", "eval('1')", "open('x')", "print(1)", "(1).real", "pi.real", "().__class__", "lambda: 1",
    "[x for x in (1, 2)]", "(x for x in (1,))", "{1: 2}", "{1}", "[1]", "(1, 2)", "'a'", "'a'*3", "b'a'", "f'{1}'",
    "1 < 2", "1 == 1", "1 and 2", "not 1", "~1", "1 if 1 else 2", "(a := 3)", "a[0]", "sqrt[0]", "await x", "yield 1",
    "True", "None", "...", "1j", "sqrt(x=1)", "sqrt(*[4])", "sqrt(**{})", "pi()", "sin(1)(2)", "1 // 2", "7 % 2",
    "1 @ 2", "1 << 9999999", "1 | 2",
]  # fmt: skip
NO_EXPRESSION = [
    "", "  ", "1 +", "1 2", "x = 1", "1; 2", "import os", "pass", "1\n+ 1", "\0", "√2", "(1", "1)", "\\", "007",
]  # fmt: skip
NO_VALUE = ["1/0", "0**-1", "sqrt(-1)", "(-1)**0.5", "abs((-1)**0.5)", "acos(2)", "1e400", "1e308*10", "1e999*0"]
FOREVER = [
    "9**9**9**9", "9**99999999", "-9**9**9**9", "(" * 10_000 + "1" + ")" * 10_000, "1+" * 5_000 + "1",
    "-" * 5_000 + "1", "9" * 5_000, "sqrt(" * 1_000 + "1" + ")" * 1_000, "2**" * 99 + "2",
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), GOOD.items())
def test_arithmetic_has_its_value(text, value):
    assert evaluate(text, {"arm": 0.3, "offset": 0.1}) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("text", CODE)
def test_anything_but_arithmetic_is_refused(text):
    with pytest.raises(parflex.RobotFileError) as refusal:
        evaluate(text, {})
    assert text in refusal.value.message
    assert refusal.value.value == text
    assert refusal.value.hint


def test_no_code_in_an_expression_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text in ("__import__('pathlib').Path('ran').touch()", "open('ran', 'w')", "[open('ran', 'w') for _ in '1']"):
        with pytest.raises(parflex.RobotFileError):
            evaluate(text, {})
    assert list(tmp_path.iterdir()) == []


REFUSED = {
    "not an arithmetic expression": NO_EXPRESSION,
    "no finite real value": [*NO_VALUE, "tan(pi/2)"],
    "number of arguments": ["sqrt()", "sqrt(1, 2)", "atan2(1)"],
}


@pytest.mark.parametrize(("words", "text"), [(words, text) for words, texts in REFUSED.items() for text in texts])
def test_an_expression_without_a_value_is_refused_with_the_reason(words, text):
    with pytest.raises(parflex.RobotFileError, match=words):
        evaluate(text, {})


@pytest.mark.parametrize("text", FOREVER, ids=[text[:12] for text in FOREVER])
def test_no_expression_takes_long(text):
    start = time.process_time()
    with pytest.raises(parflex.RobotFileError) as refusal:
        evaluate(text, {})
    assert time.process_time() - start < 0.5
    assert len(str(refusal.value)) < 500


def test_long_chains_within_the_limit_have_a_value():
    assert evaluate("1+" * 140 + "1", {}) == 141
    assert evaluate("-" * 290 + "1", {}) == 1
    assert evaluate("(" * 90 + "1" + ")" * 90, {}) == 1


def test_an_unknown_name_comes_with_the_nearest_one():
    with pytest.raises(parflex.RobotFileError, match="did you mean 'offset'"):
        evaluate("2*ofset", {"offset": 1.0})
    with pytest.raises(parflex.RobotFileError, match="'deg', 'pi'"):
        evaluate("nan", {})


def test_letters_that_look_alike_are_the_same_constant():
    micro, mu = "\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}"
    assert evaluate(f"2*{micro}", {mu: 0.5}) == evaluate(f"2*{micro}", {micro: 0.5}) == 1.0


def test_reading_an_expression_never_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in ("'\\d'", "1if 1else 2", "0x1for x in y", "1()"):
            with pytest.raises(parflex.RobotFileError):
                evaluate(text, {})


def test_every_number_of_a_file_may_be_an_expression():
    numbers = parflex.load("3rrr", settings={"constants.arm": 0.1732, "gravity": [0, -9.81, 0]})
    words = parflex.load("3rrr", settings={"constants.arm": "0.1*sqrt(2.999824)", "gravity": ["0", "-981/100", "0*pi"]})
    efforts = [list(parflex.inverse_dynamics(robot, "home").efforts.values()) for robot in (numbers, words)]
    assert efforts[0] == pytest.approx(efforts[1], rel=1e-12)


EXACT = {
    "cos(pi/2)": 0.0, "sin(pi)": 0.0, "sin(-3*pi)": 0.0, "cos(-90*deg)": 0.0, "cos(pi/3)": 0.5, "sin(-5*pi/6)": -0.5,
    "cos(2*pi/3)": -0.5, "sin(150*deg)": 0.5, "tan(pi/4)": 1.0, "tan(3*pi/4)": -1.0, "cos(180*deg)": -1.0,
}  # fmt: skip


@pytest.mark.parametrize("text", EXACT)
def test_expressions_are_exact_at_the_angles_of_a_set_square(text):
    assert evaluate(text, {}) == EXACT[text]


def test_multiples_of_15_degrees_are_right_to_the_last_digit_however_they_are_written():
    with mp.workdps(40):
        for k in range(-50, 51):
            exact = mp.sin(k * mp.pi / 12), mp.cos(k * mp.pi / 12)
            for angle in (f"{k}*pi/12", f"{15 * k}*(pi/180)", f"{15 * k}*deg", f"{k}/12*pi"):
                found = evaluate(f"sin({angle})", {}), evaluate(f"cos({angle})", {})
                # one rounding in each step of (sqrt(6) - sqrt(2)) / 4
                assert all(abs(mpf(a) - b) < 3e-16 for a, b in zip(found, exact, strict=True)), angle
                assert evaluate(f"sin(-({angle}))", {}) == -found[0]


@pytest.mark.parametrize("angle", [1e-17, 1e-3, 1.5708, math.pi / 2 + 1e-14, 0.3, math.pi - 1e-12, 1e9, -2.0])
def test_other_angles_are_left_alone(angle):
    found = [evaluate(f"{word}({angle!r})", {}) for word in ("sin", "cos")]
    assert found == [math.sin(angle), math.cos(angle)]
    assert evaluate(f"tan({angle!r})", {}) == pytest.approx(math.tan(angle), rel=1e-15)


def test_placements_by_right_angles_have_zeros_and_ones_alone():
    places = load_robot("right-angles").tree.places
    for name in ("square", "turned"):
        assert set(np.unique(np.abs(places[name].rotation))) <= {0.0, 1.0}
        assert all(x == 0 or abs(x) > 0.1 for x in places[name].position)
    assert not places["back"].position.any()


@pytest.mark.few("3rrr", "gough-stewart")
@pytest.mark.parametrize("name", ROBOTS)
def test_no_program_carries_what_rounding_leaves_of_a_zero(name):
    numbers = [abs(i[1]) for i in made(name, "inverse").program.instructions if i[0] == "const"]
    assert all(x == 0 or x > 1e-12 for x in numbers), sorted(numbers)[:3]


def test_a_robot_in_degrees_is_the_robot_in_radians_digit_by_digit():
    degrees = {"constants.gamma": "120*deg", "constants.alpha": "-90*deg"}
    one, other = (load_robot("tilted-joint", settings=settings).tree.links[0] for settings in ({}, degrees))
    assert np.array_equal(one.rotation, other.rotation) and np.array_equal(one.position, other.position)
