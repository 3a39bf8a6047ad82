"""Terms that `without` leaves out are the same in functions and in programs, for every robot and model."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from support.cases import VERIFY
from support.catalogue import CATALOGUE
from support.command_line import answered, refused
from support.traced import Sample

import parflex
from parflex.codegen.options import Options
from parflex.codegen.trace import MODELS, formulation_of, trace
from parflex.codegen.tracer import Tracer
from parflex.forces.effort_allocation import driven_cables
from parflex.robot.load import JOINT_TERMS, TERMS

ROBOTS = sorted(path.stem for path in CATALOGUE.glob("*.toml"))
SUBSETS = [subset for size in range(len(TERMS) + 1) for subset in combinations(TERMS, size)]
# each term alone, all others without it, none and all: terms add up, so pairs show nothing else
EVERY_SUBSET = ("four-bar", "3rrr-flexible", "5r", "rx90", "space")  # robots that try pairs too: each term is in one
FEW_SUBSETS = [subset for subset in SUBSETS if len(subset) in (0, 1, len(TERMS) - 1, len(TERMS))]
SHARP = 1e-9  # of the largest number: systems of condition up to 1e4 in double precision, solved in two orders
FORCES = ("inverse", "direct", "mass-matrix", "energy", "step", "pd-law", "task-law", "state-rates")
FORCES = (*FORCES, "state-rates-driven", "state-rates-following", "redundant", "extended-law", "classical-law")


class Numbers:
    def __init__(self, values: dict[str, np.ndarray]) -> None:
        self.values = values

    def group(self, name: str, *shape: int) -> np.ndarray:
        return np.asarray(self.values[name], dtype=float).reshape(shape).copy()

    def parameter(self, name: str, value: float) -> float:
        return value

    groups = Tracer.groups


@cache
def robot(name: str) -> parflex.Robot:
    return parflex.load(name)


@cache
def state(name: str) -> tuple[Sample, np.ndarray]:
    """A bent, closed pose near home with rates, and efforts."""
    of, rng = robot(name), np.random.default_rng(8)
    tree = of.tree
    size = np.where(np.isin(np.arange(tree.n), tree.elastic), 1e-4, 0.05) * tree.rate_units
    start = tree.moved(of.home, rng.uniform(-1, 1, tree.n) * size)
    q, error = of.assembler.newton(start, of.free, list(of.closures.rows))
    assert error < 1e-11
    at = parflex.Configuration(of, q)
    rates = at.J @ rng.uniform(0.5, 1, at.J.shape[1])
    efforts = rng.uniform(-20, 20, len(of.actuated))
    return Sample(at, rates, np.zeros(tree.n), efforts), efforts


@cache
def words(name: str) -> dict[str, float]:
    of, (sample, _) = robot(name), state(name)
    return {of.tree.rate_names[k]: float(sample.rates[k]) for k in (*of.actuated, *of.tree.elastic)}


@cache
def labels(name: str, model: str) -> dict[str, list[str]] | None:
    try:
        return trace(robot(name), model).labels
    except parflex.errors.ParflexError:
        return None


def inputs_of(name: str, model: str, accelerations: np.ndarray, efforts: np.ndarray) -> dict[str, np.ndarray]:
    of, (sample, _) = robot(name), state(name)
    tree, known = of.tree, labels(name, model) or {}
    moving = Sample(sample.configuration, sample.rates, accelerations, efforts)
    q, number = sample.configuration.q, {label: k for k, label in enumerate(tree.rate_names)}
    place = {label: tree.links[tree.link_of_rate[k]].q.start for label, k in number.items()}
    values: dict[str, np.ndarray] = {"q": q, "guess": q, "last": q, "effort": efforts, "rates": sample.rates}
    motors = list(of.actuated)
    values |= {"motor_rate": sample.rates[motors], "motor_acceleration": accelerations[motors]}
    values["motor_position"] = q[[place[label] for label in of.actuated_names]]
    for group, source in (("qd", sample.rates), ("qdd", accelerations)):
        values[group] = source[[number[label] for label in known.get(group, [])]]
    names = known.get("reference", [])
    values["reference"] = q[[place[label] for label in names]]
    values["reference_rate"] = sample.rates[[number[label] for label in names]]
    values["reference_acceleration"] = accelerations[[number[label] for label in names]]
    if any(link.joint.kind in ("free", "planar") for link in tree.links):
        values |= moving.platform()
        values["last_position"], values["last_turn"] = values["position"], values["turn"]
        values["platform_acceleration"] = np.concatenate([values["acceleration"], values["angular_acceleration"]])
        bending = list(tree.elastic)
        values["elastic"] = q[[tree.position_names.index(tree.rate_names[k]) for k in bending]]
        values["elastic_rate"] = sample.rates[bending]
    if model == "task-law":
        at, end = sample.configuration, tree.end_effector
        R, p = at.at.of(tree.places[end])
        twist = at.frame_rows(end) @ sample.rates
        from parflex.recursion.kinematics import motion

        push = at.frame_acceleration(end, motion(tree, at.at, sample.rates, accelerations))
        values |= {"position": p, "rotation": R, "velocity": twist[:3], "angular_velocity": twist[3:]}
        values |= {"acceleration": push[:3], "angular_acceleration": push[3:]}
    return values


def run(name: str, model: str, without: tuple[str, ...], values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    options = Options(without=without)
    form, _, _ = formulation_of(robot(name), model, options)
    found, _ = MODELS[model](Numbers(values), form, options)
    return {group: np.asarray(value, dtype=float) for group, value in found.items()}


def miss(name: str, model: str, without: tuple[str, ...]) -> float:
    of, (sample, efforts) = robot(name), state(name)
    at, velocity = sample.configuration, words(name)
    number = {label: k for k, label in enumerate(of.tree.rate_names)}
    known, size = labels(name, model), 1e-3
    assert known is not None
    if model == "mass-matrix":
        M, rows = parflex.mass_matrix(of, at, without=without)
        found = run(name, model, without, inputs_of(name, model, sample.rates, efforts))["mass_matrix"]
        T = np.linalg.inv(at.J[[number[label] for label in known["mass_matrix"]]])
        assert len(rows) == len(M)
        wanted = T.T @ M @ T
    elif model == "energy":
        kinetic, potential = parflex.energies(of, at, velocity, without=without)
        values = run(name, model, without, inputs_of(name, model, sample.rates, efforts))
        found = np.array([values["kinetic"][0], values["elastic"][0] + values["gravity"][0]])
        wanted = np.array([kinetic, potential])
    elif model in ("direct", "state-rates"):
        given = dict(zip(of.actuated_names, efforts.tolist(), strict=True))
        result = parflex.forward_dynamics(of, at, velocity, given, without=without)
        values = run(name, model, without, inputs_of(name, model, result.accelerations, efforts))
        group = "acceleration" if model == "state-rates" else "qdd"
        if "angular_acceleration" in values:
            sides = Sample(at, sample.rates, result.accelerations, efforts).platform()
            found = np.concatenate([values[key] for key in ("acceleration", "angular_acceleration")])
            wanted = np.concatenate([sides[key] for key in ("acceleration", "angular_acceleration")])
        else:
            found, wanted = values[group], result.accelerations[[number[label] for label in known[group]]]
    else:
        rng = np.random.default_rng(4)
        freedoms = of.mobility.freedoms(len(of.free)) if not of.tree.elastic else len(of.actuated)
        push = {label: float(rng.uniform(-5, 5)) for label in of.actuated_names[:freedoms]}  # spare motors follow
        still = model == "pd-law"
        result = parflex.inverse_dynamics(of, at, {} if still else velocity, {} if still else push, without=without)
        given = inputs_of(name, model, result.accelerations, np.array(list(result.efforts.values())))
        found, wanted = run(name, model, without, given)["effort"], np.array(list(result.efforts.values()))
        if of.tree.elastic:  # beams push against each other with much more than what remains for a motor
            whole = parflex.inverse_dynamics(of, at, velocity, push).efforts
            size = max(size, *(abs(value) for value in whole.values()))
    return float(np.abs(found - wanted).max(initial=0.0) / max(np.abs(wanted).max(initial=0.0), size))


def tried(name: str) -> list[str]:
    """Models that the robot has and functions speak of; a singular mass matrix is no model."""
    own = [model for model in FORCES if labels(name, model) is not None]
    if driven_cables(robot(name)):  # functions keep them taut by spare motors, programs have efforts of least norm
        return [model for model in own if model in ("direct", "state-rates", "mass-matrix", "energy")]
    return own


def check(name: str, models: list[str], subsets: list[tuple[str, ...]]) -> None:
    for model in models:
        for without in subsets:
            if name == "navaro-refined" and "motor-inertia" in without and model in ("direct", "state-rates"):
                continue  # its motors carry nothing else
            assert miss(name, model, without) < SHARP, (model, without)


@pytest.mark.few("3rrr]", "3rrr-flexible]", "rx90]")
@pytest.mark.parametrize("name", ROBOTS)
def test_functions_and_programs_agree_for_every_set_of_terms(name):
    every = SUBSETS if name in EVERY_SUBSET else FEW_SUBSETS
    some = [(), SUBSETS[np.random.default_rng(len(name)).integers(1, len(SUBSETS))]]
    check(name, tried(name), every if VERIFY else some)


def test_a_program_of_the_rx90_gives_what_the_function_gives():
    of = robot("rx90")
    program = parflex.model(of, "inverse")
    given = program.sample
    named = [dict(zip(of.actuated_names, given[group].tolist(), strict=True)) for group in ("q", "qd", "qdd")]
    wanted = np.array(list(parflex.inverse_dynamics(of, *named).efforts.values()))
    assert program(**given)["effort"] == pytest.approx(wanted, rel=1e-12)  # rounding
    assert wanted[0] == pytest.approx(8.807, abs=5e-4)
    bare = parflex.model(of, "inverse", without=JOINT_TERMS)
    assert bare(**given)["effort"][0] == pytest.approx(0.257, abs=5e-4)
    assert bare.program == parflex.model(of, "inverse", include=()).program  # the older way to say the same


def change(name: str, term: str) -> float:
    of, (sample, _) = robot(name), state(name)
    push = dict.fromkeys(of.actuated_names, 5.0)
    both = [parflex.inverse_dynamics(of, sample.configuration, words(name), push, without=w) for w in ((), (term,))]
    first, second = (np.array(list(one.efforts.values())) for one in both)
    return float(np.abs(first - second).max())


def test_every_term_acts_in_some_robot_of_the_catalogue():
    felt = {term: change("rx90", term) for term in ("friction", "gravity")}
    felt |= {term: change("four-bar", term) for term in ("springs", "damping", "motor-inertia")}
    felt["axial"] = change("3rrr-flexible", "axial")
    assert set(felt) == set(TERMS)
    assert min(felt.values()) > 1e-4, felt


REFUSED = {
    "unknown": (
        lambda of: parflex.model(of, "inverse", without=["wind"]),
        "without",
        "is not a term that can be left out",
    ),
    "a text": (lambda of: parflex.inverse_dynamics(of, without="friction"), "without", "list of terms"),
    "both": (lambda of: parflex.model(of, "inverse", without=["friction"], include=["friction"]), "without", "left"),
    "negative width": (lambda of: parflex.model(of, "inverse", friction_width=-1.0), "friction_width", "0 or more"),
    "servo": (
        lambda of: parflex.natural_frequencies(of, servo=1e4, servo_damping=1.0, without=["damping"]),
        "without",
        "servo",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_contradicting_terms_are_refused(case):
    call, key, text = REFUSED[case]
    with pytest.raises(parflex.InputError, match=text) as stop:
        call(robot("rx90"))
    assert stop.value.key == key
    assert stop.value.hint


def test_generated_programs_have_what_the_file_has(capsys, tmp_path):
    words = ("codegen", "rx90", "inverse", "--target", "numpy", "-o", str(tmp_path))
    whole, bare = (answered(capsys, *words, *more) for more in ((), ("--without", "friction,motor-inertia")))
    assert (whole["without"], bare["without"]) == ([], ["friction", "motor-inertia"])
    assert whole["counts"]["total"] > bare["counts"]["total"]
    assert "is not a term that can be left out" in refused(capsys, *words, "--without", "wind")["message"]
