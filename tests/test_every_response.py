"""Every response of the registry at poses of three robots by every kind of key, against differences of fresh robots.

Values are those of robots loaded with other numbers; four central differences are extrapolated, so that none of the
slopes takes part. Single values have their own oracles in test_sensitivities.py and test_motion_responses.py.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from test_sensitivities import LIMIT, extrapolated

import parflex
from parflex.design.answers import slope_of, value_of
from parflex.design.design_state import Circumstances
from parflex.design.questions import Tolerances, read_question
from parflex.design.registry import OWN_NAMES
from parflex.designs.design_numbers import number_at
from parflex.errors import ParflexError

LONG = [pytest.mark.verify, pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify")]
ZERO = 1e-12  # elasticities below are rounding
MOTIONS = {"energy"}  # test_motion_responses.py
WITHOUT_SLOPES = {"area": "counts cells"}  # what it answers instead
PLANE = {"velocity": {"x": 0.1, "y": 0.05, "wz": 0.3}, "acceleration": {"x": 1.0, "y": 2.0, "wz": 3.0}}
ROBOTS = {  # pose, keys of every kind, a motor, a beam with a known shape, a motion, how it moves, a wrench, settings
    "navaro": (
        {"x": 0.01, "y": 0.02, "rz": -0.5},
        ["constants.bar", "legs.gamma.0", "sections.link.Iz", "materials.dural.elastic_modulus",
         "materials.dural.density"],
        "leg1.1", "", "", {"velocity": {"x": 0.1, "y": 0.05, "wz": 0.3}}, [30.0, 20.0, 10.0, 0.0, 0.0, 0.0], {},
    ),
    "dualemps": (
        {"11": 0.02, "21": -0.01},
        ["constants.offset", "constants.blade", "sections.blade.y", "materials.dural.elastic_modulus",
         "frame.14.inertia.M"],
        "11", "13", "circle", {"velocity": {"11": 0.1, "21": 0.2}, "acceleration": {"11": 3.0, "21": 1.0}},
        [1.0, 3.0, 0.2], {},
    ),
    "3rrr": (
        {"x": 0.02, "y": 0.03, "theta": 0.1},
        ["constants.proximal", "constants.distal", "constants.arm"],
        "leg1.1", "", "", PLANE, [3.0, 4.0, 1.0], {"legs.frame.2.limits": [-3.1, 3.1]},
    ),
}  # fmt: skip


def asked_of(name: str) -> dict[str, tuple[str, list, dict, Tolerances | None]]:
    """Responses of a robot by a label: text, poses, circumstances, tolerances."""
    pose, keys, motor, beam, _, moving, force, _ = ROBOTS[name]
    tip = "P" if name == "dualemps" else "platform"
    spring = {"servo": 1e4} if name == "3rrr" else {}
    load, near = {"wrench": {tip: force}}, [pose, {key: 0.9 * value for key, value in pose.items()}]
    still = {key: value for key, value in moving.items() if key == "velocity"}
    spread = Tolerances({keys[0]: 1e-4 * number_at(parflex.load(name), keys[0])}, samples=3)
    found = {
        "frequency": (f"frequency:{1}", [pose], spring, None),
        "frequency in a band": ("frequency:0.001-1e6", [pose], spring, None),
        "frequency about an equilibrium": ("frequency:1", [pose], {**spring, **load, "about": "equilibrium"}, None),
        "frequency over poses": ("frequency:1", near, spring, None),
        "frequency, mean": ("frequency:1", [pose], spring, spread),
        "frequency, quantile": ("frequency:1", [pose], spring, Tolerances(spread.deviations, "0.3", 3)),
        "stiffness": (f"stiffness:{tip}.x", [pose], spring, None),
        "compliance": (f"compliance:{tip}.y", [pose], spring, None),
        "deflection": (f"deflection:{tip}.x", [pose], {**spring, **load}, None),
        "error": (f"error:{tip}", [pose], {**spring, **load}, None),
        "error, undeformed": (f"error:{tip}", [pose], {**spring, **load, "about": "undeformed"}, None),
        "dynamic-error": (f"dynamic-error:{tip}", [pose], {**moving, "without": ("friction",)}, None),
        "mass": ("mass", [pose], {}, None),
        "inertia": (f"inertia:{motor}", [pose], {}, None),
        "effort": (f"effort:{motor}", [pose], load, None),
        "effort in a motion": (f"effort:{motor}", [pose], moving, None),
        "speed": (f"speed:{motor}", [pose], still, None),
        "power": ("power", [pose], moving, None),
        "conditioning": ("conditioning", [pose], {}, None),
        "conditioning over poses": ("conditioning", near, {}, None),
        "singularity": ("singularity", [pose], {}, None),
        "transmission": ("transmission", [pose], {}, None),
        "limits": ("limits", [pose], {}, None),
        "stress": (f"stress:{beam}", [pose], load, None),
    }
    return found


NOT_THERE = {  # robots that do not have what a response is of, and the words that say so
    "navaro": {"stress": "no beam", "limits": "no joint has limits"},
    "dualemps": {"limits": "no joint has limits", "transmission": "no passive revolute joint"},
    "3rrr": {"stress": "nothing vibrates or deflects", "dynamic-error": "nothing vibrates or deflects"},
}  # fmt: skip


def test_every_response_of_the_registry_is_among_those_that_are_differentiated():
    names = {text.partition(":")[0] for robot in ROBOTS for text, *_ in asked_of(robot).values()}
    assert names | WITHOUT_SLOPES.keys() | MOTIONS == OWN_NAMES


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG) for name in ROBOTS])
def test_every_response_has_the_slopes_of_extrapolated_differences(name, figure):
    _, keys, *_, base = ROBOTS[name]
    robot = parflex.load(name, settings=base)
    nominal = np.array([number_at(robot, key) for key in keys])
    direction = np.random.default_rng(7).uniform(-1, 1, len(keys))
    loaded: dict[float, object] = {}

    def changed(h: float):
        if h not in loaded:
            settings = dict(zip(keys, (nominal * (1 + h * direction)).tolist(), strict=True))
            loaded[h] = parflex.load(name, settings={**base, **settings})
        return loaded[h]

    wrong, worst = {}, 0.0
    for label, (text, poses, given, spread) in asked_of(name).items():
        question = read_question(text, poses, Circumstances(**given), spread)
        said = NOT_THERE[name].get(label)
        if said is not None:
            try:
                wrong[label] = question.asked(robot).answer
            except ParflexError as error:
                if said not in str(error):
                    wrong[label] = str(error)
            continue
        try:
            answer = question.asked(robot, keys).answer
            value = value_of(answer)
            mine = slope_of(answer, len(keys)) * nominal / value
            # rounding drowns short steps where an equilibrium is found to 1e-10, long ones leave higher orders
            tries = [
                extrapolated(lambda h, q=question: value_of(q.asked(changed(h)).answer), *steps) / value
                for steps in ((4, 0.008), (3, 0.032))
            ]
        except ParflexError as error:
            wrong[label] = str(error)
            continue
        scale = float(np.abs(mine).max())
        if scale < ZERO:  # no key matters, as where the speed of a motor is given: differences say the same
            scale = 1.0
        error = min(abs(mine @ direction - its) for its in tries) / scale
        worst = max(worst, error)
        if error > LIMIT:
            wrong[label] = (error, mine, tries)
    figure(f"{name}: slopes of every response against differences", worst, LIMIT)
    assert not wrong
