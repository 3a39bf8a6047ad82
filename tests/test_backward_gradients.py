"""Derivatives of frequencies by backward programs: against numbers with slopes, and what they cost in operators."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex.design.answers import Cluster, slope_of
from parflex.design.backward.mode_forms import form_program
from parflex.design.design_state import Circumstances, DesignState, SensitiveDesign, read_with_slopes
from parflex.design.number_slopes import numbers_by_program
from parflex.design.questions import read_question
from parflex.design.vibrating import HeldState
from parflex.design.vibration_responses import frequency_of, lowest_modes
from parflex.designs.design_numbers import number_at
from parflex.maps.engine.mode_programs import StepTrace
from parflex.models.elastic.holding import locked_robot
from parflex.models.loading import redesigned

ROLLED, GEARED = (str(Path(__file__).parent / "robots" / f"{name}.toml") for name in ("rolled-beams", "geared-beams"))


def every_key(robot) -> list[str]:
    """All plain numbers of a robot file, but for counts and for feet at the origin, whose polar angle is undefined."""

    def numbers(part, path=()):
        if isinstance(part, int | float) and not isinstance(part, bool):
            yield ".".join(path)
        named = isinstance(part, list) and all(isinstance(entry, dict) and "name" in entry for entry in part)
        entries = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for step, inner in entries:
            yield from numbers(inner, (*path, inner["name"] if named else str(step)))

    left_out = ("format", "legs.base_x.0", "legs.base_y.0")
    return [key for key in numbers(robot.written.table) if key not in left_out and not key.endswith("elements")]


def both_ways(robot, keys, pose, modes, **given):
    """Slopes of the lowest modes by numbers with slopes and by the backward program."""
    found = []
    for often in (False, True):
        state = DesignState(robot, pose, keys, Circumstances(**given), SensitiveDesign(robot, keys, often))
        held = HeldState(state)
        found.append([frequency_of(held, lowest_modes(held, modes + 3), k) for k in range(modes)])
    words = [Circumstances(**given).lock, Circumstances(**given).servo, tuple(given.get("without", ()))]
    assert form_program(robot, keys, *words) is not None
    return found


LONG = [pytest.mark.verify, pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify")]
CASES = [
    ("navaro", ["constants.bar", "legs.gamma.0"], "pose-3", {}),
    ("dualemps", ["constants.blade", "sections.blade.y", "frame.14.inertia.M"], "home", {}),
    ("dualemps", ["constants.blade", "sections.blade.y"], "home", {"servo": 1e6, "without": ("motor-inertia",)}),
    pytest.param("gough-stewart-flexible", ["platform.modal.stiffness.0", "legs.base_x.1"], "home", {}, marks=LONG),
    pytest.param("gough-stewart-beams", ["constants.radius", "constants.rod", "legs.vertex.2"], "home", {}, marks=LONG),
    ("3rrr", ["constants.distal", "constants.arm"], {"x": 0.02, "y": 0.03, "theta": 0.1}, {"servo": 1e4}),
    (GEARED, ["coupling.reducer.terms.motor", "coupling.belt.terms.shoulder"], {"shoulder": 0.5}, {}),
    pytest.param(ROLLED, ["frame.left.beam.roll", "frame.wrist.place.rotation.0"], None, {}, marks=LONG),
]


@pytest.mark.few
@pytest.mark.parametrize(("name", "keys", "pose", "given"), CASES)
def test_backward_derivatives_of_modes_are_those_of_numbers_with_slopes(name, keys, pose, given):
    robot = parflex.load(name)
    forward, backward = both_ways(robot, keys, pose, 3, **given)
    scale = np.array([number_at(robot, key) or 1.0 for key in keys])
    for one, two in zip(forward, backward, strict=True):
        its = slope_of(one, len(keys)) * scale
        # both exact: rounding of some thousand operations
        assert slope_of(two, len(keys)) * scale == pytest.approx(its, abs=1e-10 * np.abs(its).max())


def test_backward_derivatives_of_equal_modes_are_the_same_matrices():
    robot, keys = parflex.load("navaro"), ["constants.bar", "legs.gamma.0"]
    one, two = both_ways(robot, keys, "pose-1", 2)
    assert isinstance(one[0], Cluster) and isinstance(two[0], Cluster)
    assert two[0].matrices == pytest.approx(one[0].matrices, abs=1e-9 * np.abs(one[0].matrices).max())
    assert np.abs(one[0].matrices[1, 0, 1]) > 0


def test_one_program_serves_designs_and_one_that_is_read_otherwise_is_told():
    robot = parflex.load("dualemps")
    keys = ["constants.blade", "sections.blade.y"]
    made = form_program(robot, keys, "actuators", None, ())
    other = redesigned(robot, {"constants.blade": 1.1 * number_at(robot, "constants.blade")})
    assert form_program(other, keys, "actuators", None, ()) is made
    forward, backward = both_ways(other, keys, "home", 1)
    assert slope_of(backward[0], 2) == pytest.approx(slope_of(forward[0], 2), rel=1e-10)


@pytest.mark.parametrize(("name", "most"), [("navaro", 5761), ("gough-stewart-beams", 8663)])
def test_a_gradient_by_all_numbers_of_a_file_costs_a_few_times_its_form(name, most):
    """A value takes several steps of inverse iteration at each pose; the gradient by all keys less than three."""
    robot = parflex.load(name)
    keys = every_key(robot)
    assert len(keys) > 60
    made = form_program(robot, keys, "actuators", None, ())
    gradient, form = made.kernel.program.counts()["total"], made.form.counts()["total"]
    step = StepTrace(locked_robot(robot, "actuators")).programs().step.counts()["total"]
    assert gradient <= most  # it does not rise
    assert gradient < 3 * form and gradient < 3 * step
    some = form_program(robot, keys[:3], "actuators", None, ())
    assert gradient < 5 * some.kernel.program.counts()["total"]  # whatever the number of keys
