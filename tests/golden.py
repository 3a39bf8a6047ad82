"""The regression net: questions to every public function and every robot of the catalogue, with stored answers.

python tests/golden.py --compare        answer every question in a new process and compare with data/answers.json.gz
python tests/golden.py --compare TEXT   compare the questions whose keys contain the text
python tests/golden.py --store KEY ...  store new answers to these questions
python tests/golden.py --store-new      store answers to new questions, and forget those that are gone
python tests/golden.py KEY ...          print the answers to these questions

An answer that changes on purpose is stored in a commit of its own that lists key, old answer, new answer and reason.
Answers have twelve digits; of long arrays a few weighted sums are stored. Operator counts may fall.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from support.forks import answers
from support.paths import DATA, ROBOTS

import parflex
from parflex import ParflexError
from parflex.codegen.program import COUNTED

ANSWERS = DATA / "answers.json.gz"
LONG = 20  # arrays with more numbers are kept as sums
# Other machines add up in another order, and Newton ends elsewhere within its tolerance of 1e-12: both stay below 1e-9
# of the largest number of an answer wherever condition numbers are below 1e3, as they are in these questions.
# A pose of another assembly, another lock or another setting differs by 1e-3 at least.
CLOSE = 1e-7
CLOSE_EQUILIBRIUM = 1e-6  # equilibria end where steps of Newton are below 1e-9 of the typical length
CLOSE_RUN = 1e-5  # runs accumulate the difference of every step

Bench = Callable[..., Any]  # (name, options of load) -> robot; it may give the same robot to all who ask


@dataclass(frozen=True)
class Question:
    """Something to ask, and the function of the package that answers."""

    function: str
    ask: Callable[[Bench], Any]
    loop: bool = False  # the answer needs the compiled time loop
    tolerance: float = CLOSE  # relative to the largest number of a part of the answer


QUESTIONS: dict[str, Question] = {}


def add(function: str, key: str, ask: Callable[[Bench], Any], **marks: Any) -> None:
    """Add a question."""
    name = f"{function} {key}"
    assert name not in QUESTIONS, name
    QUESTIONS[name] = Question(function, ask, **marks)


# -- where robots are asked to be ----------------------------------------------------------------------------------

# full poses, parts of poses, motors, other frames, names of the file, and some that cannot be
POSES: dict[str, list[Any]] = json.loads((DATA / "poses.json").read_text(encoding="utf-8"))
RIGID = "puma560 rx90 four-bar 5r bricard 3rrr 3-prrr c5 delta gough-stewart space 3-prs flat-loop nested planar-rpr"
RIGID += " rccc scara slider-crank-spatial spatial-four-bar tripod-wrist two-bodies upu wrist hexaglide"
BENDING = "dualemps 3rrr-flexible gough-stewart-flexible navaro slider-crank-flexible three-beam-legs"


def named(pose: Any) -> str:
    """A pose on one line."""
    if isinstance(pose, str):
        return pose
    return ",".join(f"{key}={value}" for key, value in (pose or {"home": ""}).items())


def motion_of(robot: Any, seed: int) -> dict[str, float]:
    """Rates of the motors, so that every robot can have them."""
    values = np.random.default_rng(seed).uniform(-1, 1, len(robot.actuated))
    return {name: round(float(value), 3) for name, value in zip(robot.actuated_names, values, strict=True)}


# -- questions about poses -----------------------------------------------------------------------------------------


def positions(name: str, pose: Any, **options: Any) -> Callable[[Bench], Any]:
    return lambda bench: bench(name, **options).assemble(pose)


def configured(name: str, pose: Any) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        here = parflex.configure(bench(name), pose)
        numbers = [here.condition.platform, here.condition.closures]
        return {"closed": here.closure_error < 1e-9, "condition": [x for x in numbers if x < 1e3]}

    return ask


def framed(name: str, pose: Any) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        return [part for place in parflex.frames(bench(name), pose).values() for part in place]

    return ask


for _robot, _poses in POSES.items():
    for _pose in _poses:
        add("frames", f"{_robot} {named(_pose)}", framed(_robot, _pose))
    for _pose in _poses[:2]:
        add("configure", f"{_robot} {named(_pose)}", configured(_robot, _pose))
for _robot, _mode in (("3rrr", "+-+"), ("3rrr", "---"), ("5r", "in"), ("5r", "out"), ("four-bar", "crossed")):
    for _pose in POSES[_robot][:4]:
        add("load", f"{_robot} as {_mode} at {named(_pose)}", positions(_robot, _pose, working_mode=_mode))
for _number in ("111", "122", "212"):
    add("load", f"navaro moved by {_number}", positions("navaro", "pose-2", actuation=_number))
for _settings in ({"constants.proximal": 0.55}, {"gravity": [0, 0, 0]}, {"constants.nothing": 1}, {"name": 3}):
    add("load", f"3rrr with {_settings}", positions("3rrr", {"x": 0.02}, settings=_settings))
add("load", "none", positions("no-such-robot", None))
add("load", "no such mode", positions("5r", None, working_mode="sideways"))
add("load", "no such actuation", positions("5r", None, actuation="left"))
add("load", "too many elements", positions("dualemps", None, elements=1000))
for _robot in ("3-prs", "planar-rpr", "tripod-wrist", "3rrr"):
    _ways = lambda bench, name=_robot: parflex.geometric_solutions(bench(name))  # noqa: E731
    add("geometric_solutions", _robot, _ways)
_NAMES = lambda bench: [name for name in parflex.catalogue_names() if name in ("3rrr", "delta")]  # noqa: E731
add("catalogue_names", "of some", _NAMES)
for _gains in ((0.1, 0.1), (0.3, 0.02), (2, 0.1)):
    add("gains_from", "{} {}".format(*_gains), lambda bench, gains=_gains: vars(parflex.gains_from(*gains)))


# -- forces and accelerations --------------------------------------------------------------------------------------


def inverse(name: str, pose: Any, seed: int, load: dict[str, Any], **words: Any) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        robot = bench(name, **load)
        found = parflex.inverse_dynamics(robot, pose, motion_of(robot, seed), motion_of(robot, seed + 1), **words)
        return [found.efforts, found.warnings, found.reactions, found.elastic_accelerations]

    return ask


def direct(name: str, pose: Any, seed: int, **words: Any) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        robot = bench(name)
        found = parflex.forward_dynamics(robot, pose, motion_of(robot, seed), motion_of(robot, seed + 1), **words)
        return [found.accelerations, found.acceleration_of(), found.warnings]

    return ask


def matrix(name: str, pose: Any, kind: str) -> Callable[[Bench], Any]:
    return lambda bench: list(parflex.mass_matrix(bench(name), pose, kind))


def jacobian(name: str, pose: Any, frame: str | None = None) -> Callable[[Bench], Any]:
    return lambda bench: np.asarray(parflex.jacobian(bench(name), pose, frame))


def energy(name: str, pose: Any) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        here = parflex.configure(bench(name), pose)
        return list(parflex.energies(here, here.rates(motion_of(here.robot, 5))))

    return ask


for _count, _robot in enumerate(RIGID.split()):
    _poses = POSES[_robot]
    _first, _other = _poses[1 % len(_poses)], _poses[2 % len(_poses)]
    add("inverse_dynamics", f"{_robot} {named(_first)}", inverse(_robot, _first, _count, {}))
    _words: dict[str, Any] = {"without": ["gravity", "friction"], "reactions": True}
    add("inverse_dynamics", f"{_robot} {named(_other)} light", inverse(_robot, _other, _count, {}, **_words))
    add("forward_dynamics", f"{_robot} {named(_other)}", direct(_robot, _other, _count))
    add("mass_matrix", f"{_robot} {named(_first)}", matrix(_robot, _first, "motors"))
    add("jacobian", f"{_robot} {named(_first)}", jacobian(_robot, _first))
    add("energies", f"{_robot} {named(_first)}", energy(_robot, _first))
for _count, _robot in enumerate(BENDING.split()):
    add("inverse_dynamics", f"{_robot} bends", inverse(_robot, POSES[_robot][1], _count, {}))
    add("forward_dynamics", f"{_robot} bends", direct(_robot, POSES[_robot][1], _count))
    add("mass_matrix", f"{_robot} bends", matrix(_robot, None, "independent"))
    add("energies", f"{_robot} bends", energy(_robot, POSES[_robot][1]))
add("inverse_dynamics", "3rrr loaded", inverse("3rrr", None, 3, {"payload": (0.5, 0, 0.1, 0)}))
add("inverse_dynamics", "3rrr pushed", inverse("3rrr", {"x": 0.04}, 3, {}, wrench={"platform": [1, 2, 0]}))
add("inverse_dynamics", "3rrr by (20)", inverse("3rrr", {"x": 0.04}, 3, {}, form="projected"))
add("inverse_dynamics", "delta as 3rrr", inverse("delta", {"theta": 0.1}, 3, {}))
add("inverse_dynamics", "satellite cannot", inverse("satellite", None, 3, {}))
add("inverse_dynamics", "unknown word", inverse("5r", None, 3, {}, without=["wind"]))
add("jacobian", "3rrr no such frame", jacobian("3rrr", None, "nobody"))
add("jacobian", "gough-stewart foot", jacobian("gough-stewart", None, "leg2.2"))
for _robot in ("rx90", "scara", "3rrr", "5r", "four-bar", "delta", "dualemps"):
    _base = lambda bench, name=_robot: vars_of(parflex.base_parameters(bench(name)), "names values after_rules")  # noqa: E731
    add("base_parameters", _robot, _base)


def identified(bench: Bench) -> dict[str, float]:
    """Parameters of an axis from a record that is written down."""
    t = np.arange(2000) * 1e-3
    x, v, a = (0.1 * np.array([1, 3, -9])[:, None] * np.stack([np.sin(3 * t), np.cos(3 * t), np.sin(3 * t)])).tolist()
    force = [90 * a_ + 200 * v_ + 20 * np.sign(v_) - 3 for v_, a_ in zip(v, a, strict=True)]
    found = parflex.identify(bench("emps"), {"t": t, "q.axis": np.array(x), "effort.axis": np.array(force)}, cutoff=50)
    return {name: one.value for name, one in found.parameters.items()} | {"error": found.relative_error}


add("identify", "emps", identified)


def excited(bench: Bench) -> dict[str, float]:
    """A motion of an axis that tells its parameters."""
    found = parflex.excite(bench("emps"), 4.0, 2, velocity_limit=0.5, starts=1)
    return {"log_det": round(found.log_det, 2), "limit": found.limits["speed"]["axis"]["limit"]}


add("excite", "emps", excited)


def updated(bench: Bench) -> dict[str, float]:
    """A length of a robot that fits measured frequencies."""
    rows = [{"pose": "home", "mode": k, "frequency_hz": f, "deviation_hz": 0.5} for k, f in ((1, 14), (2, 25))]
    found = parflex.update(bench("dualemps"), rows, "constants.blade")
    return {key: one["value"] for key, one in found.parameters.items()}


add("update", "dualemps blade", updated)


def calibrated(bench: Bench) -> dict[str, Any]:
    """Two lengths of a five-bar from three places of its tip, of which the scale needs a third."""
    data = {
        "left.1": [2.2, 2.0, 1.9],
        "right.1": [0.94, 0.8, 1.1],
        "tip.x": [0.0, -0.02, 0.06],
        "tip.y": [0.55, 0.6, 0.58],
    }
    found = parflex.calibrate(bench("5r"), data, ["constants.proximal", "constants.distal"])
    return {key: one["value"] for key, one in found.parameters.items()} | {"rms": found.rms_after}


add("calibrate", "5r", calibrated)
_LENGTHS = {"constants.proximal": 1e-4, "constants.distal": 2e-4}
_BUDGET = lambda bench: parflex.tolerance(bench("5r"), _LENGTHS, samples=50).as_dict()  # noqa: E731
add("tolerance", "5r", _BUDGET)


def poses_to_measure(bench: Bench) -> list[Any]:
    """Poses of a five-bar that determine two lengths best."""
    columns = {"motors": {"left.1": "a", "right.1": "b"}, "pose": [{"x": "x", "y": "y", "deviation": 1e-4}]}
    grid = [("tip.x", -0.1, 0.1, 5), ("tip.y", 0.45, 0.6, 4)]
    found = parflex.plan_calibration(bench("5r"), list(_LENGTHS), 4, columns=columns, over=grid)
    return [found.log_det, found.deviations, found.tool]


add("plan_calibration", "5r", poses_to_measure)


def vars_of(record: Any, names: str) -> dict[str, Any]:
    """Some entries of a record."""
    return {name: getattr(record, name) for name in names.split()}


# -- how robots give way -------------------------------------------------------------------------------------------


def record(function: str, fields: str) -> Callable[..., Callable[[Bench], Any]]:
    """Questions (robot, pose, options of load, options) to a function, whose answers are fields of its result."""

    def question(name: str, pose: Any, load: dict[str, Any] | None = None, **words: Any) -> Callable[[Bench], Any]:
        return lambda bench: vars_of(getattr(parflex, function)(bench(name, **load or {}), pose, **words), fields)

    return question


_FIELDS = "frequencies damping free_motions unstable_motions independent_coordinates"
frequencies = record("natural_frequencies", _FIELDS)
HELD: dict[str, dict[str, Any]] = {
    "": {},
    " none locked": {"lock": "none"},
    " two modes": {"modes": 2},
    " on servos": {"servo": 1e5, "lock": "none"},
    " sunk": {"about": "equilibrium"},
    " light": {"about": "equilibrium", "without": ["gravity"]},
    " -3 modes": {"modes": -3},
    " about nothing": {"about": "nothing"},
}
for _robot in ("dualemps", "3rrr-flexible", "gough-stewart-flexible", "slider-crank-flexible", "three-beam-legs"):
    for _word, _words in HELD.items():
        if _robot == "gough-stewart-flexible" and "about" in _words:
            continue  # a quarter of a minute each
        for _pose in POSES[_robot][: 2 if _robot in ("dualemps", "3rrr-flexible") else 1]:
            add("natural_frequencies", f"{_robot} {named(_pose)}{_word}", frequencies(_robot, _pose, {}, **_words))
for _pose in POSES["navaro"]:
    add("natural_frequencies", f"navaro {named(_pose)}", frequencies("navaro", _pose, {}))
add("natural_frequencies", "dualemps fine", frequencies("dualemps", None, {"elements": 3}))
add("natural_frequencies", "dualemps loaded", frequencies("dualemps", None, {"payload": (0.3, 0, 0, 0)}))
add("natural_frequencies", "dualemps softer", frequencies("dualemps", None, {"settings": {"constants.offset": 0.07}}))
add("natural_frequencies", "3rrr is rigid", frequencies("3rrr", None, {}))
add("natural_frequencies", "one motor locked", frequencies("dualemps", None, {}, lock=["11"]))


linear = record("linear_model", "M K D names warnings")
stiffness = record("cartesian_stiffness", "compliance rigid directions")
sag = record("deflection", "frames efforts sections warnings")


def rest(name: str, pose: Any, **words: Any) -> Callable[[Bench], Any]:
    return lambda bench: parflex.equilibrium(bench(name), pose, **words).configuration.q


def response(name: str, **words: Any) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        robot = bench(name)
        system = parflex.state_space(robot, [robot.actuated_names[0]], [f"{robot.tree.end_effector}.x"], **words)
        values = system.response([1.0, 7.0])
        return [values.real, values.imag, len(system.states)]

    return ask


for _robot in ("dualemps", "3rrr-flexible", "slider-crank-flexible"):
    for _pose in POSES[_robot][:2]:
        add("linear_model", f"{_robot} {named(_pose)}", linear(_robot, _pose))
        add("cartesian_stiffness", f"{_robot} {named(_pose)}", stiffness(_robot, _pose))
        add("deflection", f"{_robot} {named(_pose)}", sag(_robot, _pose))
        add("equilibrium", f"{_robot} {named(_pose)}", rest(_robot, _pose))
    add("cartesian_stiffness", f"{_robot} sunk", stiffness(_robot, None, about="equilibrium"))
    add("deflection", f"{_robot} on servos", sag(_robot, None, lock="none", servo=1e6))
    add("state_space", _robot, response(_robot, servo=1e6, lock="none"))
    add("state_space", f"{_robot} sunk", response(_robot, servo=1e6, lock="none", about="equilibrium"))
add("equilibrium", "dualemps pulled", rest("dualemps", None, wrench={"17": [5, 0, 0, 0, 0, 0]}))
add("equilibrium", "dualemps no such frame", rest("dualemps", None, wrench={"nobody": [5, 0, 0]}))
add("cartesian_stiffness", "dualemps free", stiffness("dualemps", None, lock="none"))


def many(name: str, coordinates: list[str], rows: list[list[float]], **words: Any) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        found = parflex.many_frequencies(bench(name), coordinates, np.array(rows), **words)
        return [np.nan_to_num(found.frequencies), found.status]

    return ask


def mapped(name: str, over: list[Any], **words: Any) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        found = parflex.frequency_map(bench(name), over, **words)
        return [np.nan_to_num(found.frequencies), found.status, found.method]

    return ask


followed = record("track_modes", "frequencies doubtful")
_SQUARE = [[0.0, 0.0], [0.05, -0.03], [0.1, 0.1], [9.0, 9.0]]
add("many_frequencies", "dualemps", many("dualemps", ["11", "21"], _SQUARE, modes=3))
add("many_frequencies", "dualemps unlocked", many("dualemps", ["11", "21"], _SQUARE[:2], modes=2, lock="none"))
add("many_frequencies", "3rrr-flexible", many("3rrr-flexible", ["x", "y", "theta"], [[0, 0, 0], [0.05, 0.02, 0.1]]))
add("many_frequencies", "too many modes", many("dualemps", ["11", "21"], _SQUARE, modes=99))
add("many_frequencies", "no such coordinate", many("dualemps", ["11", "22x"], _SQUARE))
add("frequency_map", "dualemps", mapped("dualemps", [("11", -0.1, 0.1, 2), ("21", -0.1, 0.1, 2)], modes=2))
add("frequency_map", "none", mapped("dualemps", [("11", -0.1, 0.1, 0)], modes=2))
add("track_modes", "dualemps", followed("dualemps", ["home", {"11": 0.02, "21": 0.0}], modes=3))
add("track_modes", "dualemps alone", followed("dualemps", ["home"], modes=3))


def answered(name: str, coordinates: list[str], rows: list[list[float]], *responses: str) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        found = parflex.many_responses(bench(name), coordinates, np.array(rows), list(responses))
        return [{word: np.nan_to_num(found[word]) for word in responses}, found.status]

    return ask


def sensitive(name: str, response: str, keys: list[str], pose: Any = None, **words: Any) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        found = parflex.sensitivities(bench(name), response, keys, pose, **words)
        return [found.value, found.multiplicity, found.sensitivities]

    return ask


add("many_responses", "dualemps", answered("dualemps", ["11", "21"], _SQUARE, "stiffness:17.x", "frequency:2", "mass"))
add("many_responses", "no such response", answered("dualemps", ["11", "21"], _SQUARE, "beauty"))
add("sensitivities", "navaro", sensitive("navaro", "frequency:1", ["constants.bar", "sections.link.Iz"], "pose-3"))
add("sensitivities", "navaro double", sensitive("navaro", "frequency:1", ["constants.bar"], "pose-1"))
add("sensitivities", "no such key", sensitive("navaro", "frequency:1", ["constants.beauty"]))
add("add_response", "taken", lambda bench: parflex.add_response("mass", len, "m", "Nothing."))
add("sweep", "none", lambda bench: parflex.sweep("no-such-sweep.toml", "out.npz"))
add("optimise", "none", lambda bench: parflex.optimise("no-such-problem.toml", "out"))


# -- programs, words, figures, runs --------------------------------------------------------------------------------


def program(name: str, kind: str, load: dict[str, Any], **words: Any) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        made = parflex.model(bench(name, **load), kind, **words)
        return [made.counts, made.inputs, made.outputs, made.evaluate("numpy", **made.sample)]

    return ask


def compiled(name: str, kind: str) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        made = parflex.model(bench(name), kind)
        return made(**made.sample)

    return ask


for _robot in ("four-bar", "5r", "rx90", "scara", "3rrr", "dualemps"):
    for _kind in ("inverse", "direct", "kinematics"):
        add("model", f"{_robot} {_kind}", program(_robot, _kind, {}))
add("model", "5r base", program("5r", "inverse", {}, parameters="base"))
add("model", "5r pushed", program("5r", "inverse", {}, wrench_frames=["tip"]))
add("model", "5r loaded", program("5r", "inverse", {"payload": (1, 0, 0, 0)}))
add("model", "5r geometry", program("5r", "geometry", {}))
add("model", "5r nothing", program("5r", "nothing", {}))
add("model", "four-bar compiled", compiled("four-bar", "inverse"))
add("model", "5r compiled", compiled("5r", "mass-matrix"))


def told(name: str) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        found = parflex.explain(bench(name))
        return [found.form, found.sizes, found.warnings, found.forms]

    return ask


redundant = record("redundant_model", "names motors D C G F_ext")


def sensed(name: str, pose: Any, joints: list[str]) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        robot = bench(name).sensing(joints)
        here = parflex.configure(robot, pose)
        names = [*robot.actuated_names, *robot.sensed_names]
        places = [robot.tree.position_names.index(word) for word in names]
        return parflex.geometry_from_sensors(robot, here.q[places])

    return ask


for _robot in ("four-bar", "5r", "3rrr", "delta", "dualemps", "rx90", "gough-stewart-flexible", "navaro", "bricard"):
    add("explain", _robot, told(_robot))
add("redundant_model", "5r", redundant("5r", None, velocity={"left.1": 1.0}, sensed=["right.2"]))
add("redundant_model", "3rrr", redundant("3rrr", {"x": 0.03}, sensed=["leg1.2", "leg2.2", "leg3.2"]))
add("redundant_model", "5r light", redundant("5r", None, without=["gravity"]))
add("redundant_model", "rx90", redundant("rx90", None))
add("geometry_from_sensors", "5r", sensed("5r", {"x": 0.05, "y": 0.5}, ["right.2"]))
add("geometry_from_sensors", "3rrr", sensed("3rrr", {"x": 0.05, "y": 0.02, "theta": 0.1}, ["leg1.2", "leg3.2"]))


def ran(name: str, *arguments: Any, **words: Any) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        run = parflex.simulate(bench(name), *arguments, **words)
        return [run.status, {key: run[key][-1] for key in run if key[:2] in ("q.", "t") or key.startswith("energy")}]

    return ask


def planned(name: str, motion: Any, **words: Any) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        plan = parflex.plan_motion(bench(name), motion, **words)
        return [plan.end, *(part.tolist() for part in plan.at(0.1))]

    return ask


def controlled(name: str, reference: str, law: str, **words: Any) -> Callable[[Bench], Any]:
    def ask(bench: Bench) -> Any:
        run = parflex.run_control(bench(name), reference, law, **words)
        return [run.errors, run.failure]

    return ask


_SWING = {"moves": [{"left.1": 0.2}], "law": "time-optimal"}
add("plan_motion", "5r septic", planned("5r", _SWING | {"law": "septic", "duration": 0.5}))
add("plan_motion", "5r time-optimal", planned("5r", _SWING, acceleration_limit=5.0))
add("plan_motion", "5r nowhere", planned("5r", "nowhere"))
add("simulate", "four-bar falls", ran("four-bar", None, 0.02), loop=True)
_PUSHED = ran("5r", None, 0.02, effort={"left.1": 0.3}, start={"pose": {"x": 0.05, "y": 0.5}})
add("simulate", "5r pushed", _PUSHED, loop=True)
add("simulate", "5r by rk4", ran("5r", None, 0.02, method="rk4", step=5e-4, without=["gravity"]), loop=True)
add("simulate", "dualemps square", ran("dualemps", "square", 0.02, without=["friction"]), loop=True)
add("simulate", "dualemps nowhere", ran("dualemps", "nowhere", 0.02), loop=True)
add("simulate", "no time", ran("5r", None, -1.0), loop=True)
_HELD = lambda bench: ran("5r", None, 0.01, controller=parflex.PD(10.0, 1.0))(bench)  # noqa: E731
add("PD", "5r", _HELD, loop=True)
for _law in ("pd", "ctc"):
    _round = controlled("5r", "circle:radius=0.02,time=1", _law, time=0.05)
    add("run_control", f"5r {_law}", _round, loop=True)
add("run_control", "5r wind", controlled("5r", "circle:radius=0.02,time=1", "wind"), loop=True)


def studied(bench: Bench) -> Any:
    """The smallest study there is; a bench of its own, since it loads its robots itself."""
    from parflex import StudyFile

    circle = {"kind": "circle", "radius": 0.02, "time": 0.02}
    words: dict[str, Any] = {"robot": "5r", "laws": ["pd"], "reference": circle, "percentages": [5]}
    found = parflex.run_study(StudyFile(**words, templates=1), jobs=1)
    return [row["errors"] for row in found.summary()]


add("run_study", "one case", studied, loop=True)
_COLUMNS: dict[str, Any] = {"t": np.linspace(0, 1, 101)}
_COLUMNS["tip.x"] = np.sin(20 * _COLUMNS["t"])
for _word in ("kinetic", "elastic", "gravity", "total"):
    _COLUMNS[f"energy.{_word}"] = np.cos(_COLUMNS["t"])


def figure(make: Callable[[Bench, Path], Any]) -> Callable[[Bench], Any]:
    """What a figure says, and that it is written."""

    def ask(bench: Bench) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "figure.svg"
            make(bench, path)
            return path.stat().st_size > 1000

    return ask


_OTHER = {"t": _COLUMNS["t"], "tip.x": 1.01 * _COLUMNS["tip.x"]}
add("draw", "5r", figure(lambda bench, path: parflex.draw(bench("5r"), {"x": 0.1, "y": 0.5}, path)))
add("draw_run", "columns", figure(lambda bench, path: parflex.draw_run(_COLUMNS, path, ["tip.x"])))
add("draw_energies", "columns", figure(lambda bench, path: parflex.draw_energies(_COLUMNS, path)))
_ALONG = {"t": _COLUMNS["t"], "arm.Mz@0": _COLUMNS["tip.x"], "arm.Mz@1": 0.5 * _COLUMNS["tip.x"]}
add("draw_sections", "columns", figure(lambda bench, path: parflex.draw_sections(_ALONG, path)))
_REFINED = lambda bench: parflex.natural_frequencies(bench("dualemps"), modes=2, converge=2e-2)  # noqa: E731
add("draw_convergence", "dualemps", figure(lambda bench, path: parflex.draw_convergence(_REFINED(bench), path)))
add("draw_spectrum", "columns", figure(lambda bench, path: parflex.draw_spectrum(_COLUMNS, path, ["tip.x"])))
_BOTH = figure(lambda bench, path: parflex.draw_comparison(_COLUMNS, _OTHER, path, ["tip.x"]))
add("draw_comparison", "columns", _BOTH)
_MODES = figure(lambda bench, path: parflex.draw_modes(parflex.natural_frequencies(bench("dualemps"), None, 2), path))
add("draw_modes", "dualemps", _MODES)
_FEW = [("11", -0.05, 0.05, 3), ("21", -0.05, 0.05, 2)]
_MAP = figure(lambda bench, path: parflex.draw_map(parflex.frequency_map(bench("dualemps"), _FEW, modes=1), path))
add("draw_map", "dualemps", _MAP)
_BARS = lambda bench: parflex.sensitivities(bench("navaro"), "frequency:1", ["constants.bar"], "pose-3")  # noqa: E731
add("draw_sensitivities", "navaro", figure(lambda bench, path: parflex.draw_sensitivities(_BARS(bench), path)))
add("export_mjcf", "delta", figure(lambda bench, path: parflex.export_mjcf(bench("delta"), path)))
add("export_urdf", "delta", figure(lambda bench, path: parflex.export_urdf(bench("delta"), path)))
add("export_fmu", "no such kind", lambda bench: parflex.export_fmu(bench("5r"), "robot.fmu", kind="xx"))
add("import_robot", "none", lambda bench: parflex.import_robot("no-such-robot.urdf", "robot.toml"))
_TIMING = lambda bench: parflex.plan_motion(bench("5r"), _SWING, acceleration_limit=5.0)  # noqa: E731
add("draw_timing", "5r", figure(lambda bench, path: parflex.draw_timing(_TIMING(bench), path)))
add("draw_study", "none", lambda bench: parflex.draw_study(_COLUMNS))
add("spectrum_peaks", "columns", lambda bench: parflex.spectrum_peaks(_COLUMNS, ["tip.x"]))
_APART = lambda bench: {n: one.as_dict() for n, one in parflex.run_differences(_COLUMNS, _OTHER).items()}  # noqa: E731
add("run_differences", "columns", _APART)
add("load_run", "none", lambda bench: parflex.load_run("no-such-run.csv"))
_PAPER = lambda bench: [[one.quantity, one.computed] for one in parflex.reproduce("Zubizarreta2010", quick=True)][:4]  # noqa: E731
add("reproduce", "Zubizarreta2010", _PAPER)
add("reproduce", "nobody", lambda bench: parflex.reproduce("Nobody1999"))


# -- every robot of the catalogue ----------------------------------------------------------------------------------


def near_home(robot: Any) -> dict[str, float]:
    """Return a pose whose motors differ from home by up to 0.01."""
    home = dict(zip(robot.coordinates, np.asarray(parflex.configure(robot, "home").q), strict=True))
    shifts = 0.01 * np.random.default_rng(7).uniform(-1, 1, len(robot.motors))
    return {motor: float(home[motor] + shift) for motor, shift in zip(robot.motors, shifts, strict=True)}


def short_run(robot: Any, **words: Any) -> Any:
    return parflex.simulate(robot, None, 0.02, step=1e-3, out_step=0.01, **words)


def last(robot: Any, run: Any, quantity: str) -> list[float]:
    return [run[f"{quantity}.{motor}"][-1] for motor in robot.motors]


def joint_reactions(robot: Any) -> dict[str, Any]:
    reactions = parflex.inverse_dynamics(robot, "home", reactions=True).reactions["joints"]
    return {joint: part["force"] for joint, part in reactions.items()}


def moving(robot: Any) -> Any:
    return parflex.inverse_dynamics(robot, "home", motion_of(robot, 1), motion_of(robot, 2))


def still(robot: Any) -> Any:
    return parflex.forward_dynamics(robot, "home", effort=motion_of(robot, 3))


def compliances(robot: Any) -> Any:
    return np.linalg.eigvalsh(np.asarray(parflex.cartesian_stiffness(robot, "home").compliance))


def rows_near_home(robot: Any) -> Any:
    rows = np.array([list(near_home(robot).values())] * 2)
    return np.nan_to_num(parflex.many_frequencies(robot, list(robot.motors), rows, modes=3).frequencies)


def modes_of(robot: Any, pose: Any = "home", **words: Any) -> Any:
    return parflex.natural_frequencies(robot, pose, **words).frequencies


def total(kind: str) -> Callable[[Any], Any]:
    return lambda robot: {"total": parflex.model(robot, kind).counts["total"]}


# function, word, answer of a robot, tolerance
WHOLE_CATALOGUE: list[tuple[str, str, Callable[[Any], Any], float]] = [
    ("configure", "q", lambda r: parflex.configure(r, "home").q, 1e-9),
    ("configure", "q near home", lambda r: parflex.configure(r, near_home(r)).q, 1e-8),
    ("frames", "home", lambda r: [list(place) for place in parflex.frames(r, "home").values()], 1e-9),
    ("inverse_dynamics", "zero velocity", lambda r: parflex.inverse_dynamics(r, "home").efforts, 1e-8),
    ("inverse_dynamics", "motors", lambda r: moving(r).efforts, CLOSE),
    ("inverse_dynamics", "reactions", joint_reactions, CLOSE),
    ("forward_dynamics", "zero velocity", lambda r: still(r).accelerations, CLOSE),
    ("mass_matrix", "eigenvalues", lambda r: np.linalg.eigvalsh(np.asarray(parflex.mass_matrix(r, "home")[0])), 1e-8),
    ("energies", "home", lambda r: vars_of(parflex.energies(r, "home"), "kinetic potential"), 1e-8),
    ("natural_frequencies", "home", modes_of, CLOSE),
    ("natural_frequencies", "near home", lambda r: modes_of(r, near_home(r)), CLOSE_EQUILIBRIUM),
    ("natural_frequencies", "unlocked", lambda r: modes_of(r, lock="none"), CLOSE_EQUILIBRIUM),
    ("natural_frequencies", "equilibrium", lambda r: modes_of(r, modes=4, about="equilibrium"), CLOSE_EQUILIBRIUM),
    ("natural_frequencies", "servo", lambda r: modes_of(r, modes=4, servo=1e5), CLOSE_EQUILIBRIUM),
    ("many_frequencies", "near home", rows_near_home, CLOSE_EQUILIBRIUM),
    ("equilibrium", "q", lambda r: parflex.equilibrium(r, "home").configuration.q, CLOSE_EQUILIBRIUM),
    ("cartesian_stiffness", "eigenvalues", compliances, CLOSE_EQUILIBRIUM),
    ("model", "inverse total", total("inverse"), 0.0),
    ("model", "direct total", total("direct"), 0.0),
    ("simulate", "positions", lambda r: last(r, short_run(r), "q"), CLOSE_RUN),
    ("simulate", "energy", lambda r: short_run(r)["energy.total"], CLOSE_RUN),
    ("simulate", "efforts", lambda r: last(r, short_run(r, effort=motion_of(r, 4)), "qd"), CLOSE_RUN),
]


def of_robot(name: str, answer: Callable[[Any], Any]) -> Callable[[Bench], Any]:
    return lambda bench: answer(bench(name))


for _robot in parflex.catalogue_names():
    for _function, _word, _answer, _tolerance in WHOLE_CATALOGUE:
        _marks = {"tolerance": _tolerance, "loop": _function == "simulate"}
        add(_function, f"{_robot} catalogue {_word}", of_robot(_robot, _answer), **_marks)


# -- answers -------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """What JSON has, with twelve digits; long arrays as their size and three weighted sums."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        if value.size <= LONG:
            return [plain(float(entry)) for entry in value.ravel()]
        flat, numbers = value.ravel().astype(float), np.arange(value.size)
        sums = [np.sum(flat), np.sum(np.abs(flat)), np.sum(flat * np.cos(numbers)), np.sum(flat * np.sin(7 * numbers))]
        return {"size": value.size, "sums": [plain(float(entry)) for entry in sums]}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(entry) for entry in value]
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    return float(f"{value:.12g}") if isinstance(value, float | np.floating) else value


def answer_to(key: str, bench: Bench) -> Any:
    """The answer, or the kind and words of the error."""
    try:
        with np.errstate(all="ignore"):
            return plain(QUESTIONS[key].ask(bench))
    except ParflexError as error:
        return {"error": error.kind, "message": str(error).replace(str(ROBOTS), "robots")}


def same(one: Any, other: Any, tolerance: float = CLOSE, scale: float = 0.0) -> bool:
    """Return whether two answers agree; numbers of one part are compared with the largest of that part."""
    if isinstance(one, dict) and isinstance(other, dict):
        if isinstance(one.get("error"), str):  # the text of an error may change, its kind may not
            return bool(one["error"] == other.get("error"))
        if one.keys() == other.keys() and {"total"} <= one.keys() <= {*COUNTED}:  # stored, new: operators may fall
            return bool(other["total"] <= one["total"])
        values = [other.get(key) for key in one]
        return one.keys() == other.keys() and same(list(one.values()), values, tolerance, scale)
    if isinstance(one, list) and isinstance(other, list):
        largest = max(scale, _largest([entry for entry in one if not isinstance(entry, dict | list)]))
        scales = [max(scale, _largest(entry)) if isinstance(entry, dict | list) else largest for entry in one]
        return len(one) == len(other) and all(
            same(a, b, tolerance, size) for a, b, size in zip(one, other, scales, strict=True)
        )
    if isinstance(one, float | int) and isinstance(other, float | int) and not isinstance(one, bool):
        return abs(one - other) <= tolerance * max(abs(one), scale, 1e-3)
    return bool(one == other)


def _largest(entry: Any) -> float:
    """The largest number anywhere in a part of an answer."""
    if isinstance(entry, dict):
        entry = list(entry.values())
    if isinstance(entry, list):
        return max(map(_largest, entry), default=0.0)
    return abs(entry) if isinstance(entry, float | int) and not isinstance(entry, bool) else 0.0


def place_of(name: str) -> str:
    """A robot of the catalogue, or of the tests."""
    path = ROBOTS / f"{name}.toml"
    return str(path) if path.exists() else name


def new_robots(name: str, **options: Any) -> Any:
    """A bench that knows nothing from before."""
    return parflex.load(place_of(name), **options)


class SharedRobots:
    """A bench where all who ask for a robot get the same one."""

    def __init__(self) -> None:
        self.robots: dict[str, Any] = {}

    def __call__(self, name: str, **options: Any) -> Any:
        key = f"{name} {json.dumps(options, sort_keys=True)}"
        if key not in self.robots:
            self.robots[key] = parflex.load(place_of(name), **options)
        return self.robots[key]


def import_everything() -> None:
    """What all questions import, so that a new process need not do it each time: modules hold no answers."""
    for name in parflex.__all__:
        getattr(parflex, name)


def fresh(key: str) -> Any:
    """The answer of a process that has done nothing but import the package."""
    return answer_to(key, new_robots)


def stored() -> dict[str, Any]:
    """The answers that are kept."""
    return json.loads(gzip.decompress(ANSWERS.read_bytes()))


def fresh_answers(keys: list[str]) -> dict[str, Any]:
    """Return the answers of new processes."""
    import_everything()
    found = {}
    for key, content in answers(fresh, keys):
        print(f"{content['seconds']:6.2f} s  {key}", content.get("crash", ""), file=sys.stderr, flush=True)
        found[key] = content
    return found


def store(found: dict[str, Any]) -> None:
    """Keep answers, the same bytes for the same answers."""
    ANSWERS.parent.mkdir(exist_ok=True)
    text = "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items()) + "\n}\n"
    ANSWERS.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def differing(found: dict[str, Any]) -> list[str]:
    """Return the questions whose answers differ from the stored ones."""
    old = stored()
    return [
        key
        for key, entry in found.items()
        if not same(old.get(key, {}).get("answer"), entry.get("answer"), QUESTIONS[key].tolerance)
    ]


def main(words: list[str]) -> int:
    if words[:1] == ["--compare"]:
        found = fresh_answers([key for key in QUESTIONS if all(word in key for word in words[1:])])
        keys = differing(found)
        old = stored()
        for key in keys:
            print(key, "\n  now   ", found[key], "\n  stored", old.get(key))
        print(f"{len(found)} answers, {len(keys)} differ")
        return 1 if keys else 0
    if words[:1] in (["--store"], ["--store-new"]):
        old = stored()
        found = fresh_answers([key for key in QUESTIONS if key not in old or key in words])
        crashed = [key for key, entry in found.items() if "crash" in entry]
        if not crashed:
            store({key: found.get(key) or old[key] for key in QUESTIONS})
        print(f"{len(found)} answers, {len(crashed)} crashed {crashed}, {ANSWERS.stat().st_size} bytes")
        return 1 if crashed else 0
    for key, content in answers(fresh, words):
        print(key, json.dumps(content))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
