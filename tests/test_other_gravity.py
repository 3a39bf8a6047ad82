"""Gravity of a file that is not that of the record is named; zeros that no effort tells are said."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from test_identification import ARM

import parflex

DOWN = "gravity = [0, -9.81, 0]"
PENDULUMS = ARM.replace('parent = "s"\n', "")  # both hang on the base


@cache
def recorded(together=True):
    """An arm of two links by hand, or two pendulums, with noise of 0.3 % of the efforts."""
    t, rng = np.arange(0, 6, 4e-3), np.random.default_rng(0)
    w, size, start = np.array([[2.1], [3.3]]), np.array([[0.6], [0.7]]), np.array([[0.3], [0.8]])
    (q1, q2), (v1, v2) = size * np.sin(w * t) + start, size * w * np.cos(w * t)
    a1, a2 = -size * w**2 * np.sin(w * t)
    rubs = 0.5 * v2 + 0.5 * np.sign(v2)
    if together:
        second = 0.1 * (a1 + a2) + 0.2 * (np.cos(q2) * a1 + np.sin(q2) * v1**2) + 9.81 * 0.4 * np.cos(q1 + q2)
        first = 0.6 * a1 + 0.1 * (a1 + a2) + 9.81 * (1.6 * np.cos(q1) + 0.4 * np.cos(q1 + q2))
        first = first + 0.2 * (np.cos(q2) * (2 * a1 + a2) - np.sin(q2) * (2 * v1 * v2 + v2**2))
    else:
        first, second = 0.1 * a1 + 9.81 * 0.6 * np.cos(q1), 0.1 * a2 + 9.81 * 0.4 * np.cos(q2)
    efforts = [part + 3e-3 * part.std() * rng.standard_normal(len(t)) for part in (first, second + rubs)]
    return {"t": t, "q.s": q1, "q.e": q2, "effort.s": efforts[0], "effort.e": efforts[1]}


def answer(folder, text, record):
    (folder / "arm.toml").write_text(text)
    return parflex.identify(parflex.load(folder / "arm.toml"), record)


@pytest.mark.parametrize("gravity", ["[0, -9.81, 0]", "[0, 9.81, 0]", "[9.81, 0, 0]", "[0, 0, -9.81]", "[0, -8, 0]"])
def test_gravity_along_another_direction_is_named(tmp_path, gravity):
    rough = ARM.replace("M = 2", "M = 2.2").replace("MX = 0.6", "MX = 0.7").replace(DOWN, f"gravity = {gravity}")
    told = [text for text in answer(tmp_path, rough, recorded()).warnings if "gravity" in text]
    assert len(told) == (gravity not in ("[0, -9.81, 0]", "[0, -8, 0]"))
    length = np.linalg.norm([float(word) for word in gravity[1:-1].split(",")])
    # reversed gravity and mirrored motors are alike for this arm, and both are told
    assert all(f"with gravity along [0, -{length:.3g}, 0]: " in text for text in told)
    assert all("check gravity of the file" in text for text in told)


@pytest.mark.parametrize("together", [True, False])
def test_zeros_that_no_effort_tells_are_said(tmp_path, together):
    found = answer(tmp_path, ARM if together else PENDULUMS, recorded(together))
    words = "zeros of 's' and 'e' are not told by efforts: parameters follow them"
    assert any(words in text for text in found.steps) == (not together)
