"""Sensitivities against differences of freshly loaded robots, by the functions that answer for single poses.

Differences share none of the slopes: every value is that of a robot loaded with another number in its file. Four
central differences with halved steps are extrapolated (error of order eight); rounding of 1e-13 of a value over the
shortest step leaves about 1e-10.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest
import scipy.linalg
from support.differences import INSIDE, LENGTHS, LIMIT, conditions, extrapolated, value_of_response
from support.robots import robot_file

import parflex
from parflex.design.registry import BUILTIN_RESPONSE_NAMES
from parflex.parameters.design_numbers import number_at


def given_pose(robot, pose):
    """A pose by its numbers: it stays where it is, whatever the file computes it from."""
    return dict(robot.description.poses[pose]) if isinstance(pose, str) else pose


def lowest(robot, pose, number=1, **given):
    """Natural frequencies from the largest eigenvalues of K^-1 M, which have all digits where K has them."""
    model = parflex.linear_model(robot, pose, **given)
    units = robot.tree.rate_units[model.configuration.reduction.partition.independent]
    scale = np.outer(units, units)
    values = scipy.linalg.eigh(model.M * scale, (model.K + model.K.T) / 2 * scale, eigvals_only=True)
    return 1 / np.sqrt(values[-number]) / (2 * np.pi)


def stiff(robot, pose, frame, k, **given):
    return parflex.cartesian_stiffness(robot, pose, frame, **given).stiffness[k, k]


def deflected(robot, pose, frame, k, **given):
    return parflex.deflection(robot, pose, [frame], **given).frames[frame][k]


def stressed(robot, pose, beam, **given):
    bent = parflex.deflection(robot, pose, **given)
    from parflex.forces.section_forces import largest_stress_of

    return largest_stress_of({beam: bent.beams[beam]})["value"]


def efforts(robot, pose, name, **given):
    if robot.tree.elastic:
        return parflex.deflection(robot, pose, **given).efforts[name]
    return parflex.inverse_dynamics(robot, pose, **given).efforts[name]


def rubbed(robot, pose, name, **given):
    rigid = robot.locking(robot.deformations)
    return parflex.inverse_dynamics(rigid, pose, **given).efforts[name]


def masses(robot, pose, **given):
    return float(sum(link.body.m for link in robot.tree.links))


def inertias(robot, pose, name, **given):
    M, names = parflex.mass_matrix(robot, pose, coordinates="motors")
    return M[names.index(name), names.index(name)]


def speeds(robot, pose, name, velocity, **given):
    found = parflex.inverse_dynamics(robot, pose, velocity)
    return abs(found.rates[robot.tree.rate_names.index(name)])


def powers(robot, pose, **given):
    found = parflex.inverse_dynamics(robot, pose, **given)
    rates = [found.rates[robot.tree.rate_names.index(name)] for name in robot.actuated_names]
    return sum(abs(rate * found.efforts[name]) for rate, name in zip(rates, robot.actuated_names, strict=True))


def distances(robot, pose, **given):
    """As maps have it: 1 over the largest of all condition numbers."""
    found = parflex.configure(robot, pose).condition
    return 1 / max(1.0, found.closures, found.platform if found.enough_motors else 1.0, *found.legs.values())


def transmissions(robot, pose, **given):
    one, two = (number_at(robot, f"constants.{word}") for word in ("proximal", "distal"))
    found = []
    for leg in ("left", "right"):
        base = robot.tree.links[robot.tree.number(f"{leg}.1")].position
        square = (pose["x"] - base[0]) ** 2 + (pose["y"] - base[1]) ** 2
        found.append(np.arccos(abs(one**2 + two**2 - square) / (2 * one * two)))
    return min(found)


def shaken(robot, pose, frame, **given):
    return value_of_response(robot, f"dynamic-error:{frame}", [pose], **given)


MOVING = {"velocity": {"x": 0.3, "y": 0.2, "wz": 1.0}, "acceleration": {"x": 2.0, "y": 1.0, "wz": 3.0}}
LOAD = {"wrench": {"P": [1.0, 3.0, 0.2]}}
BLADE = ["constants.offset", "constants.blade", "sections.blade.y", "frame.14.inertia.M"]

SHAKEN = {"velocity": {"11": 0.1, "21": 0.2}, "acceleration": {"11": 3.0, "21": 1.0}, "without": ("friction",)}
TIP = {"x": 0.05, "y": 0.5}
FOLDED = {"x": 0.05, "y": 0.4}  # its rods turn back by more than a right angle
BARS = ["constants.distal", "constants.proximal", "legs.base_x.1"]
ACROSS = {"velocity": {"x": 0.3, "y": 0.2}, "acceleration": {"x": 2.0, "y": 1.0}}
HINGE = {"leg1.attachment.x": -0.13, "leg1.attachment.y": -0.05, "theta": 0.1}
GAP = {"distance.leg1.attachment~leg2.1": 0.86, "leg1.attachment.y": -0.05, "theta": 0.1}
HINGED = {"velocity": {"leg1.attachment.x": 0.3, "leg1.attachment.y": 0.2, "wz": 1.0}}

POINTS = [  # poses by points that move on their bodies with the keys
    ("5r", TIP, "effort:left.1", BARS, efforts, ("left.1",), {}),
    ("5r", TIP, "effort:left.1", BARS, efforts, ("left.1",), ACROSS),
    ("5r", TIP, "inertia:left.1", BARS, inertias, ("left.1",), {}),
    ("5r", TIP, "conditioning", BARS, conditions, (), {}),
    ("5r", TIP, "speed:right.1", BARS, speeds, ("right.1",), {"velocity": ACROSS["velocity"]}),
    ("5r", FOLDED, "transmission", BARS, transmissions, (), {}),
    ("5r", TIP, "singularity", BARS, distances, (), {}),
    ("5r", "home", "power", BARS, powers, (), ACROSS),
    ("3rrr", HINGE, "effort:leg2.1", LENGTHS, efforts, ("leg2.1",), {}),
    ("3rrr", HINGE, "conditioning", LENGTHS, conditions, (), {}),
    ("3rrr", HINGE, "speed:leg3.1", LENGTHS, speeds, ("leg3.1",), HINGED),
    ("3rrr", GAP, "effort:leg2.1", LENGTHS, efforts, ("leg2.1",), {}),
]

DRIVE, ROLLED, SPRUNG, DIFFERENTIAL, GEARED, TIED = (
    str(robot_file(name))
    for name in ("elastic-drive", "rolled-beams", "sprung-beams", "differential", "geared-beams", "geared-five-bar")
)
SOFTER = ["frame.soft.spring.rest", "frame.soft.spring.stiffness", "point.tip.position.0"]
RUBBED = [f"frame.motor.friction.{word}" for word in ("viscous_back", "coulomb_back", "viscous", "coulomb")]
TURNED = ["frame.left.beam.roll", "frame.wrist.place.rotation.0", "frame.right.place.rotation.1"]
TUBES = ["constants.radius", "constants.plate_mass", "constants.cylinder", "legs.vertex.2", "legs.base_x.1"]
LINKS = ["constants.bar", "constants.arm", "sections.link.Iz", "sections.link.A", "sections.link.Ip"]
MODAL = ["platform.modal.stiffness.0", "legs.base_x.1", "legs.frame.2.inertia.M"]
DOWN = {"wrench": {"platform": [100.0, 200.0, -300.0]}}
ROPES = ["point.roof.position.0", "element.hang.rest", "element.stay.rest", "element.brace.table.2.1",
         "frame.mast.beam.length", "frame.arm.inertia.mass"]  # fmt: skip
HELD = None  # its loop leaves no freedom
RATIOS = ["constants.side", "coupling.mean.offset", "frame.tool.mdh.d"]
GEARS = ["coupling.gears.terms.left.shoulder", "legs.frame.elbow.mdh.d", "coupling.reducer.terms.motor"]
BELTS = ["coupling.reducer.terms.motor", "coupling.belt.terms.shoulder", "coupling.belt.offset"]
KINDS = [  # kinds of keys: springs of drives, friction by direction, turned places and sections, ropes, gears
    (DRIVE, "both", "deflection:tip.y", SOFTER, deflected, ("tip", 1), {"about": "equilibrium"}),
    (DRIVE, "home", "deflection:tip.y", SOFTER, deflected, ("tip", 1), {"about": "equilibrium"}),
    (DRIVE, {"motor": 0.3}, "effort:motor", RUBBED, rubbed, ("motor",), {"velocity": {"motor": -2.0}}),
    (ROLLED, HELD, "deflection:left@0.3.z", TURNED, deflected, ("left@0.3", 2), {}),
    (DIFFERENTIAL, {"carrier": 0.3, "tool": 0.2}, "effort:left", RATIOS, efforts, ("left",), {}),
    (GEARED, {"shoulder": 0.5}, "frequency:1", BELTS, lowest, (1,), {}),
    (TIED, {"motor": 1.0}, "singularity", GEARS, distances, (), {}),
    (ROLLED, HELD, "frequency:1", TURNED, lowest, (1,), {}),
    (ROLLED, HELD, "stress:left", [*TURNED, "frame.left.beam.length"], stressed, ("left",), {}),
    (SPRUNG, {"arm": 0.3}, "deflection:arm.tip.x", ROPES, deflected, ("arm.tip", 0), {}),
    ("par4", "home", "conditioning", ["constants.ratio", "constants.rod"], conditions, (), {}),
    ("navaro", "pose-3", "frequency:5", LINKS, lowest, (5,), {}),
    ("gough-stewart-beams", "home", "stress:leg1.rod", TUBES, stressed, ("leg1.rod",), DOWN),
    ("gough-stewart-flexible", "home", "effort:leg1.3", MODAL, efforts, ("leg1.3",), {"about": "undeformed", **DOWN}),
]

CASES = [
    *POINTS,
    *KINDS,
    ("dualemps", "home", "frequency:2", BLADE, lowest, (2,), {}),
    ("dualemps", "home", "frequency:1", BLADE[:3], lowest, (1,), {"about": "equilibrium", **LOAD}),
    ("dualemps", "home", "frequency:1", BLADE[:2], lowest, (1,), {"servo": 1e6}),
    ("dualemps", "home", "stiffness:P.y", BLADE, stiff, ("P", 1), {}),
    ("dualemps", "home", "stiffness:P.theta", BLADE[:2], stiff, ("P", 2), LOAD),
    ("dualemps", "home", "deflection:P.x", BLADE[:3], deflected, ("P", 0), LOAD),
    ("dualemps", "home", "deflection:P.rz", BLADE[:3], deflected, ("P", 5), LOAD),
    ("dualemps", "home", "deflection:P.y", BLADE[:3], deflected, ("P", 1), {"about": "undeformed", **LOAD}),
    ("dualemps", "home", "stress:13", BLADE[:3], stressed, ("13",), LOAD),
    ("dualemps", "home", "stress:16", BLADE[:3], stressed, ("16",), {"about": "undeformed", **LOAD}),
    ("dualemps", "home", "effort:11", BLADE[:3], efforts, ("11",), LOAD),
    ("dualemps", "home", "mass", BLADE, masses, (), {}),
    ("dualemps", "home", "dynamic-error:P", BLADE[:3], shaken, ("P",), SHAKEN),
    ("3rrr", INSIDE, "frequency:1", LENGTHS, lowest, (1,), {"servo": 1e4}),
    ("3rrr", INSIDE, "effort:leg2.1", LENGTHS, efforts, ("leg2.1",), MOVING),
    ("3rrr", INSIDE, "effort:leg2.1", LENGTHS, efforts, ("leg2.1",), {"wrench": {"platform": [3.0, 4.0, 1.0]}}),
    ("3rrr", INSIDE, "inertia:leg1.1", LENGTHS, inertias, ("leg1.1",), {}),
    ("3rrr", INSIDE, "speed:leg3.1", LENGTHS, speeds, ("leg3.1",), {"velocity": MOVING["velocity"]}),
    ("3rrr", INSIDE, "power", LENGTHS, powers, (), MOVING),
    ("3rrr", INSIDE, "conditioning", LENGTHS, conditions, (), {}),
    ("3rrr", INSIDE, "singularity", LENGTHS, distances, (), {}),
    ("dualemps", "home", "singularity", BLADE[:2], distances, (), {}),
]


def compare(name, pose, response, keys, function, arguments, given, directions, limit=LIMIT):
    robot = parflex.load(name)
    found = parflex.sensitivities(robot, response, keys, pose, **given)
    at, value = given_pose(robot, pose), function(robot, pose, *arguments, **given)
    assert found.value == pytest.approx(value, rel=1e-9)
    nominal = np.array([number_at(robot, key) for key in keys])
    mine = np.array([found.sensitivities[key]["elasticity"] for key in keys])
    assert np.abs(mine).max() > 0
    for direction in directions:

        def changed(h, direction=direction):
            settings = dict(zip(keys, (nominal * (1 + h * direction)).tolist(), strict=True))
            return function(parflex.load(name, settings=settings), at, *arguments, **given)

        its = extrapolated(changed) / value
        assert abs(mine @ direction - its) <= limit * np.abs(mine).max(), (keys, mine, direction, its)


@pytest.mark.few
@pytest.mark.parametrize(("name", "pose", "response", "keys", "function", "arguments", "given"), CASES)
def test_sensitivities_are_those_of_extrapolated_differences(name, pose, response, keys, function, arguments, given):
    direction = np.random.default_rng(3).uniform(-1, 1, len(keys))
    compare(name, pose, response, keys, function, arguments, given, [direction])


def test_a_slow_motion_displaces_as_the_loads_at_rest():
    robot = parflex.load("dualemps")
    still = {"velocity": {"11": 0.0, "21": 0.0}, "acceleration": {"11": 0.0, "21": 0.0}}
    moving = parflex.sensitivities(robot, "dynamic-error:P", BLADE[1], "home", **still, **LOAD)
    resting = parflex.sensitivities(robot, "error:P", BLADE[1], "home", about="undeformed", **LOAD)
    assert moving.value == pytest.approx(resting.value, rel=1e-9)
    its = resting.sensitivities[BLADE[1]]["elasticity"]
    assert moving.sensitivities[BLADE[1]]["elasticity"] == pytest.approx(its, rel=1e-7)


def test_legs_that_are_equally_near_their_singularities_part_as_a_base_moves():
    robot, pose, keys = parflex.load("5r"), {"x": 0.0, "y": 0.5}, ["constants.proximal", "legs.base_x.1"]
    found = parflex.sensitivities(robot, "singularity", keys, pose)
    assert found.multiplicity == 2 and found.value == pytest.approx(distances(robot, pose), rel=1e-12)
    for key in keys:
        number = number_at(robot, key)
        for sign in (1, -1):  # a kink: one-sided, twice the shorter less the longer
            robots = ((parflex.load("5r", settings={key: number + sign * h}), h) for h in (2e-5, 1e-5))
            ways = [(distances(robot, pose) - found.value) / h for robot, h in robots]
            change = (np.array(keys) == key) * float(sign)
            ahead = np.linalg.eigvalsh(np.tensordot(change, found.matrices, 1))[0]
            assert 2 * ways[1] - ways[0] == pytest.approx(ahead, abs=1e-7 * abs(found.value / number))
    parting = found.directional["legs.base_x.1"]
    assert parting[0] < -0.1 and parting[1] == pytest.approx(0.0, abs=1e-12)  # the other leg does not feel it


@pytest.mark.verify
def test_the_area_of_a_five_bar_is_that_within_both_reaches():
    robot = parflex.load("5r")
    one, two = (number_at(robot, f"constants.{word}") for word in ("proximal", "distal"))
    bases = [robot.tree.links[robot.tree.number(f"{leg}.1")].position for leg in ("left", "right")]
    x, y = np.linspace(-0.5, 0.5, 12, endpoint=False), np.linspace(0.2, 1.2, 9, endpoint=False)
    cells = np.stack(np.meshgrid(x + 1 / 24, y + 1 / 18), axis=-1).reshape(-1, 2)
    reaches = [np.linalg.norm(cells - base[:2], axis=1) for base in bases]
    inside = np.all([(abs(one - two) < reach) & (reach < one + two) for reach in reaches], axis=0)
    assert value_of_response(robot, "area:x,-0.5,0.5,12;y,0.2,1.2,9") == pytest.approx(inside.sum() / 12 / 9)
    assert 0 < inside.sum() < len(cells)


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ("energy:round", "no motion 'round'"),
        ("transmission:left.1", "not a passive revolute joint"),
        ("area:x,0.3,0.1,10", "is not a range"),
    ],
)
def test_invalid_arguments_of_responses_are_refused(response, words):
    with pytest.raises(parflex.ParflexError, match=words):
        parflex.sensitivities(parflex.load("5r"), response, "constants.distal", TIP)


# rounding drowns short steps where an equilibrium is found to 1e-10, long ones leave higher orders; motions take long,
# and have the second alone
FAR = (4, 0.008), (3, 0.032)
ZERO = 1e-12  # elasticities below are rounding
WITHOUT_SLOPES = {"area": "counts cells", "volume": "counts cells", "reachable": "is 0 or 1"}  # what it answers instead
WITHOUT_SLOPES |= dict.fromkeys(("damping", "shape", "motion", "strain"), "has no slopes")
PLANE = {"velocity": {"x": 0.1, "y": 0.05, "wz": 0.3}, "acceleration": {"x": 1.0, "y": 2.0, "wz": 3.0}}
SPACE = {"velocity": {"x": 0.1, "y": 0.05, "z": -0.2, "wx": 0.3, "wy": -0.1, "wz": 0.2},
         "acceleration": {"x": 1.0, "y": 2.0, "z": -1.5, "wx": 3.0, "wy": 1.0, "wz": -2.0}}  # fmt: skip
TILTED = {"x": 0.27, "y": 0.41, "z": 1.02, "rx": 0.03, "ry": -0.05, "rz": 0.04}
LIFTED = {"x": 0.2, "y": 0.45, "z": 1.08, "rx": -0.05, "ry": 0.02, "rz": 0.1}


@dataclass(frozen=True)
class Asked:
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


def asked_of(name: str) -> dict[str, tuple[str, list, dict, dict | None]]:
    case = ROBOTS[name]
    pose, keys, motor, tip, spring, moving = case.pose, case.keys, case.motor, case.tip, case.held, case.moving
    load, near = {"wrench": {tip: case.force}}, [pose, {key: 0.9 * value for key, value in pose.items()}]
    still = {key: value for key, value in moving.items() if key == "velocity"}
    spread = {"deviations": {keys[0]: 1e-4 * number_at(parflex.load(name), keys[0])}, "samples": 3}
    free = {"without": ("friction",)}
    return {
        "frequency": (f"frequency:{1}", [pose], spring, None),
        "frequency in a band": ("frequency:0.001-1e6", [pose], spring, None),
        "frequency about an equilibrium": ("frequency:1", [pose], {**spring, **load, "about": "equilibrium"}, None),
        "frequency over poses": ("frequency:1", near, spring, None),
        "frequency, mean": ("frequency:1", [pose], spring, spread),
        "frequency, quantile": ("frequency:1", [pose], spring, spread | {"statistic": "0.3"}),
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
        "limit_margin": ("limit_margin", [pose], {}, None),
        "stress": (f"stress:{case.beam}", [pose], load, None),
        "effort on the way": (f"effort:{motor}@{case.motion}", [None], {}, None),
        "speed on the way": (f"speed:{motor}@{case.motion}", [None], {}, None),
        "power on the way": (f"power:@{case.motion}", [None], {}, None),
        "dynamic-error on the way": (f"dynamic-error:{tip}@{case.motion}", [None], free, None),
        "energy": (f"energy:{case.motion}", [None], {}, None),
    }


RIGID = "nothing vibrates or deflects"
NOT_THERE = {  # robots that do not have what a response is of, and the words that say so
    "navaro": {"stress": "no beam", "limit_margin": "no joint has limits"},
    "dualemps": {"limit_margin": "no joint has limits", "transmission": "no passive revolute joint"},
    "3rrr": {"stress": RIGID, "dynamic-error": RIGID, "dynamic-error on the way": RIGID},
    "gough-stewart-beams": {"transmission": "no passive revolute joint"},
    "gough-stewart-flexible": {"stress": "no beam", "transmission": "no passive revolute joint"},
}


def test_every_response_of_the_registry_is_among_those_that_are_differentiated():
    names = {text.partition(":")[0] for robot in ROBOTS for text, *_ in asked_of(robot).values()}
    assert names | WITHOUT_SLOPES.keys() == BUILTIN_RESPONSE_NAMES


@pytest.mark.verify
@pytest.mark.parametrize("name", ROBOTS)
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
        words = given | ({} if poses == [None] else {"poses": poses})
        if spread:
            words |= {"tolerances": spread["deviations"], "samples": spread["samples"]}
            words |= {"statistic": spread.get("statistic", "mean")}
        try:
            result = parflex.sensitivities(robot, text, keys, **words)
            mine = np.array([result.sensitivities[key]["elasticity"] for key in keys])
            scale = float(np.abs(mine).max())
            scale = scale if scale >= ZERO else 1.0  # no key matters, as to a speed that is given: differences agree
            tries = []
            for far in FAR[-1:] if poses == [None] else FAR:

                def value(h, text=text, poses=poses, spread=spread, given=given):
                    return value_of_response(changed(h), text, poses, spread, **given)

                tries.append(extrapolated(value, *far) / result.value)
                if abs(mine @ direction - tries[-1]) <= LIMIT * scale:
                    break
        except parflex.ParflexError as error:
            if NOT_THERE[name].get(label, "?") not in str(error):
                wrong[label] = str(error)
            continue
        error = min(abs(mine @ direction - its) for its in tries) / scale
        worst = max(worst, error)
        if error > LIMIT:
            wrong[label] = (error, mine, tries)
    figure(f"{name}: slopes of every response against differences", worst, LIMIT)
    assert not wrong


FORMS = [
    ("navaro", ["constants.bar", "legs.gamma.0"], {"x": 0.01, "y": 0.02, "rz": -0.5}, {}),
    ("dualemps", ["constants.blade", "sections.blade.y", "frame.14.inertia.M"], {"11": 0.0, "21": 0.0}, {}),
    (
        "dualemps",
        ["constants.blade", "sections.blade.y"],
        {"11": 0.0, "21": 0.0},
        {"servo": 1e6, "without": ["motor-inertia"]},
    ),
    ("gough-stewart-flexible", ["platform.modal.stiffness.0", "legs.base_x.1"], {"z": 1.0, "rx": 0.0}, {}),
    ("gough-stewart-beams", ["constants.radius", "constants.rod", "legs.vertex.2"], {"z": 1.0, "rx": 0.0}, {}),
    ("3rrr", ["constants.distal", "constants.arm"], {"x": 0.02, "y": 0.03, "theta": 0.1}, {"servo": 1e4}),
    (str(robot_file("geared-beams")), ["coupling.reducer.terms.motor"], {"shoulder": 0.5}, {}),
]


@pytest.mark.few("dualemps-keys1-pose1-given1")
@pytest.mark.parametrize(("name", "keys", "pose", "given"), FORMS)
def test_backward_derivatives_over_many_poses_are_those_of_single_poses(name, keys, pose, given):
    robot, first = parflex.load(name), next(iter(pose))
    poses = [pose | {first: pose[first] + 0.004 * k} for k in range(6)]
    for response in ("frequency:1", "frequency:2", "frequency:3"):
        many = parflex.sensitivities(robot, response, keys, poses=poses, **given)
        alone = parflex.sensitivities(robot, response, keys, many.pose, **given)
        assert many.value == pytest.approx(alone.value, rel=1e-10)
        mine, its = ([part.sensitivities[key]["elasticity"] for key in keys] for part in (many, alone))
        assert mine == pytest.approx(its, abs=1e-9 * np.abs(its).max())  # rounding of some thousand operations
