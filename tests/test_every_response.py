"""Every response of the registry on five robots by every kind of key, against differences of fresh robots.

Values are those of robots loaded with other numbers; four central differences are extrapolated, so that none of the
slopes takes part. Single values have their own oracles in test_sensitivities.py and test_motion_responses.py.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np
import pytest
from support.differences import LIMIT, extrapolated

import parflex
from parflex import ParflexError
from parflex.design.answers import slope_of, value_of
from parflex.design.design_state import Circumstances
from parflex.design.questions import Tolerances, read_question
from parflex.design.registry import OWN_NAMES
from parflex.designs.design_numbers import number_at

LONG = [pytest.mark.verify, pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="long: make verify")]
# rounding drowns short steps where an equilibrium is found to 1e-10, long ones leave higher orders; motions take long,
# and have the second alone
FAR = (4, 0.008), (3, 0.032)
ZERO = 1e-12  # elasticities below are rounding
WITHOUT_SLOPES = {"area": "counts cells"}  # what it answers instead
PLANE = {"velocity": {"x": 0.1, "y": 0.05, "wz": 0.3}, "acceleration": {"x": 1.0, "y": 2.0, "wz": 3.0}}
SPACE = {"velocity": {"x": 0.1, "y": 0.05, "z": -0.2, "wx": 0.3, "wy": -0.1, "wz": 0.2},
         "acceleration": {"x": 1.0, "y": 2.0, "z": -1.5, "wx": 3.0, "wy": 1.0, "wz": -2.0}}  # fmt: skip
TILTED = {"x": 0.27, "y": 0.41, "z": 1.02, "rx": 0.03, "ry": -0.05, "rz": 0.04}
LIFTED = {"x": 0.2, "y": 0.45, "z": 1.08, "rx": -0.05, "ry": 0.02, "rz": 0.1}


@dataclass(frozen=True)
class Asked:
    """A robot at a pose with keys of every kind, and what responses are of."""

    pose: dict
    keys: list[str]
    motor: str
    moving: dict
    force: list[float]
    beam: str = "leg1.1"
    tip: str = "platform"
    held: dict = field(default_factory=dict)
    motion: str = "go"
    settings: dict = field(default_factory=dict)


def between(*poses: dict) -> dict:
    """A motion of the end effector through poses."""
    return {"motions": {"go": {"poses": list(poses), "duration": 0.4}}}


ROBOTS = {
    "navaro": Asked(
        {"x": 0.01, "y": 0.02, "rz": -0.5},
        ["constants.bar", "legs.gamma.0", "sections.link.Iz", "materials.dural.elastic_modulus",
         "materials.dural.density"],
        "leg1.1", {"velocity": {"x": 0.1, "y": 0.05, "wz": 0.3}}, [30.0, 20.0, 10.0, 0.0, 0.0, 0.0],
        settings=between({"x": 0.01, "y": 0.02, "rz": -0.5}, {"x": 0.04, "y": -0.03, "rz": -0.6}),
    ),
    "dualemps": Asked(
        {"11": 0.02, "21": -0.01},
        ["constants.offset", "constants.blade", "sections.blade.y", "materials.dural.elastic_modulus",
         "frame.14.inertia.M", "frame.11.friction.viscous"],
        "11", {"velocity": {"11": 0.1, "21": 0.2}, "acceleration": {"11": 3.0, "21": 1.0}}, [1.0, 3.0, 0.2],
        beam="13", tip="P", motion="circle", settings={"motions.circle.circle.turns": 1.0},
    ),
    "3rrr": Asked(
        {"x": 0.02, "y": 0.03, "theta": 0.1},
        ["constants.proximal", "constants.distal", "constants.arm", "platform.inertia.mass", "legs.base_x.0"],
        "leg1.1", PLANE, [3.0, 4.0, 1.0], held={"servo": 1e4},
        settings={"legs.frame.2.limits": [-3.1, 3.1],
                  **between({"x": 0.02, "y": 0.03, "theta": 0.1}, {"x": -0.05, "y": 0.0, "theta": -0.1})},
    ),
    "gough-stewart-beams": Asked(
        TILTED,
        ["constants.radius", "constants.plate_mass", "constants.cylinder", "legs.vertex.1", "legs.base_x.1",
         "sections.rod.diameter", "materials.steel.elastic_modulus"],
        "leg1.3", SPACE, [100.0, 200.0, -300.0, 0.0, 0.0, 0.0], beam="leg1.rod",
        settings={"legs.frame.3.limits": [0.8, 1.5], **between(TILTED, LIFTED)},
    ),
    "gough-stewart-flexible": Asked(
        TILTED,
        ["legs.base_x.1", "platform.modal.stiffness.0", "legs.frame.2.inertia.M", "legs.frame.3.inertia.MZ"],
        "leg1.3", SPACE, [10.0, 20.0, -30.0, 0.0, 0.0, 0.0],
        # with locked motors it has an equilibrium under little of its weight alone
        settings={"gravity": [0, 0, -0.5], "legs.frame.3.limits": [0.8, 1.5], **between(TILTED, LIFTED)},
    ),
}  # fmt: skip


def asked_of(name: str) -> dict[str, tuple[str, list, dict, Tolerances | None]]:
    """Responses of a robot by a label: text, poses, circumstances, tolerances."""
    case = ROBOTS[name]
    pose, keys, motor, tip, spring, moving = case.pose, case.keys, case.motor, case.tip, case.held, case.moving
    load, near = {"wrench": {tip: case.force}}, [pose, {key: 0.9 * value for key, value in pose.items()}]
    still = {key: value for key, value in moving.items() if key == "velocity"}
    spread = Tolerances({keys[0]: 1e-4 * number_at(parflex.load(name), keys[0])}, samples=3)
    free = {"without": ("friction",)}
    return {
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
        "dynamic-error": (f"dynamic-error:{tip}", [pose], {**moving, **free}, None),
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
        "stress": (f"stress:{case.beam}", [pose], load, None),
        "effort on the way": (f"effort:{motor}@{case.motion}", [None], {}, None),
        "speed on the way": (f"speed:{motor}@{case.motion}", [None], {}, None),
        "power on the way": (f"power:@{case.motion}", [None], {}, None),
        "dynamic-error on the way": (f"dynamic-error:{tip}@{case.motion}", [None], free, None),
        "energy": (f"energy:{case.motion}", [None], {}, None),
    }


RIGID = "nothing vibrates or deflects"
NOT_THERE = {  # robots that do not have what a response is of, and the words that say so
    "navaro": {"stress": "no beam", "limits": "no joint has limits"},
    "dualemps": {"limits": "no joint has limits", "transmission": "no passive revolute joint"},
    "3rrr": {"stress": RIGID, "dynamic-error": RIGID, "dynamic-error on the way": RIGID},
    "gough-stewart-beams": {"transmission": "no passive revolute joint"},
    "gough-stewart-flexible": {"stress": "no beam", "transmission": "no passive revolute joint"},
}


def test_every_response_of_the_registry_is_among_those_that_are_differentiated():
    names = {text.partition(":")[0] for robot in ROBOTS for text, *_ in asked_of(robot).values()}
    assert names | WITHOUT_SLOPES.keys() == OWN_NAMES


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG) for name in ROBOTS])
def test_every_response_has_the_slopes_of_extrapolated_differences(name, figure):
    keys, base = ROBOTS[name].keys, ROBOTS[name].settings
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
            tries = [
                extrapolated(lambda h, q=question: value_of(q.asked(changed(h)).answer), *steps) / value
                for steps in (FAR[-1:] if poses == [None] else FAR)
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
