"""Numbers of elements: converged frequencies and runs against solutions without elements, and warnings of too few."""

import json

import numpy as np
import pytest
from support.cases import VERIFY
from support.command_line import answered, run
from support.oracles.stepped_beams import Step, frequencies
from support.robots import write_robot

import parflex
from parflex import Configuration, InputError, Run
from parflex.simulation import mesh_convergence as runs
from parflex.simulation.mesh_convergence import StrainContent, content_warnings, strain_content

E, NU, RHO = 7e10, 0.3, 2700.0
G = E / (2 * (1 + NU))
HEAD = f"""
format = 1
name = "steps"
motion = "planar"
gravity = [{{gravity}}, 0, 0]
end_effector = "end"
[materials.metal]
elastic_modulus = {E}
poisson_ratio = {NU}
density = {RHO}
"""
SUPPORTS = {
    "clamped-free": ("fixed", None),
    "pinned": ("revolute", 'joint = "point-on-line"\naxis = "x"\n'),
    "clamped-pinned": ("fixed", 'joint = "point-on-line"\naxis = "x"\n'),
    "clamped-clamped": ("fixed", 'joint = "welded"\n'),
}


def stepped(path, parts, ends, tip=0.0, gravity=0.0, rotary=False, shear=False, reduce=""):
    """A robot of beams one behind the other, (length, height, elements) each, and the same for the oracle."""
    joint, closure = SUPPORTS[ends]
    rows, steps, parent = [HEAD.format(gravity=gravity)], [], "base"
    flags = f"rotary_inertia = {str(rotary).lower()}, shear = {str(shear).lower()}"
    for k, (length, height, elements) in enumerate(parts):
        rows.append(f'[sections.s{k}]\nshape = "rectangle"\ny = {height}\nz = 0.03\n')
        beam = f'length = {length}, material = "metal", section = "s{k}", elements = {elements}, {flags}'
        place = f'name = "b{k}"\nparent = "{parent}"\njoint = "{joint if not k else "fixed"}"\n'
        rows.append(f"[[frame]]\n{place}beam = {{ {beam}{reduce if elements == 4 else ''} }}\n")
        parent, area, I = f"b{k}.tip", 0.03 * height, 0.03 * height**3 / 12
        kGA = 5 / 6 * G * area if shear else np.inf
        steps.append(Step(length, E * area, E * I, RHO * area, RHO * I if rotary else 0.0, kGA))
    rows.append(f'[[frame]]\nname = "end"\nparent = "{parent}"\ninertia = {{ mass = {tip} }}\n')
    if closure:
        whole = sum(length for length, *_ in parts)
        wall = f'[[point]]\nname = "wall"\nframe = "base"\nposition = [{whole}, 0, 0]\n'
        rows.append(f'{wall}[[closure]]\nbetween = ["wall", "{parent}"]\n{closure}')
    return parflex.load(write_robot(path, "".join(rows))), steps


def random_case(seed):
    """Parts, ends, tip mass, rotary inertia, shear, modes and tolerance of a random robot."""
    rng = np.random.default_rng(seed)
    ends = list(SUPPORTS)[seed % 4]
    parts, height = [], rng.uniform(0.004, 0.03)
    for _ in range(rng.integers(1, 4)):
        parts.append((rng.uniform(0.1, 0.6), height, int(rng.integers(1, 3))))
        height *= rng.uniform(0.6, 1.2)  # tapered in steps
    shear = bool(rng.integers(2))
    words = {"tip": float(rng.choice([0.0, 0.2])), "rotary": shear or bool(rng.integers(2)), "shear": shear}
    return parts, ends, words, int(rng.integers(1, 7)), float(rng.choice([1e-3, 1e-5]))


@pytest.mark.parametrize("seed", range(100) if VERIFY else (8, 12, 13, 21, 23))
def test_converged_frequencies_of_random_stepped_beams_are_within_the_tolerance(seed, tmp_path):
    parts, ends, words, modes, share = random_case(seed)
    robot, steps = stepped(tmp_path, parts, ends, **words)
    exact = frequencies(steps, ends, modes, tip=words["tip"])
    result = parflex.natural_frequencies(robot, modes=modes, converge=share)
    took, error = result.refinement, np.abs(result.frequencies / exact - 1).max()
    # motions inside elements are cut into eight: of stretch and shear their estimate is 1/64 too small, and terms of
    # second order are left out
    assert error <= max(1.2 * took.remaining, 1e-8)
    assert took.converged or (took.elements == 64 and "not the requested" in result.model.warnings[-1])
    assert not took.converged or (error <= share and took.change <= share)


@pytest.mark.parametrize(
    ("ends", "load"),
    [("clamped-free", -0.2), ("clamped-free", 0.25), ("pinned", -0.5), ("pinned", 4.0), ("clamped-pinned", 10.0)],
)
def test_converged_frequencies_under_axial_load_are_those_of_the_loaded_beam(ends, load, tmp_path):
    robot, steps = stepped(tmp_path, [(0.5, 0.004, 1)], ends, tip=0.1)
    N = load * np.pi**2 * steps[0].EI / 0.5**2
    exact = frequencies(steps, ends, 2, lambda x: N, tip=0.1)
    result = parflex.natural_frequencies(robot, modes=2, wrench={"end": [N, 0, 0]}, converge=1e-4)
    assert result.refinement.converged
    # the stretch N/EA of the loaded beam is not in the theory of second order
    assert np.abs(result.frequencies / exact - 1).max() < 1e-4 + 2 * abs(N) / steps[0].EA


def test_a_hanging_beam_whose_load_varies_along_it_converges(tmp_path):
    robot, steps = stepped(tmp_path, [(1.5, 0.004, 1), (1.5, 0.003, 1)], "clamped-free", gravity=9.81)
    below = [np.cumsum([step.mass * step.length for step in steps][::-1])[::-1], 0.0]

    def tension(x):
        return 9.81 * (below[0][1] + steps[0].mass * (1.5 - x) if x < 1.5 else steps[1].mass * (3.0 - x))

    exact = frequencies(steps, "clamped-free", 3, tension)
    result = parflex.natural_frequencies(robot, modes=3, about="equilibrium", converge=1e-3)
    assert result.refinement.converged and len(result.refinement.steps) > 2
    assert np.abs(result.frequencies / exact - 1).max() < 1e-3


def test_the_estimate_of_one_element_is_what_refinement_takes_away():
    for name, elements in (("dualemps", 2), ("gough-stewart-beams", 1), ("3rrr-flexible", 2)):
        rough = parflex.natural_frequencies(parflex.load(name, elements=elements))
        fine = parflex.natural_frequencies(parflex.load(name, elements=4 * elements))
        true = rough.frequencies / fine.frequencies - 1
        np.testing.assert_allclose(rough.excess, true, rtol=0.1, atol=1e-6)  # terms of second order are left out


def test_robots_carry_payload_sensors_and_locks_through_a_refinement():
    robot = parflex.load("dualemps", payload=[1.5, 0.1, 0, 0], elements=2)
    result = parflex.natural_frequencies(robot, "home", 2, lock=["11"], converge=1e-3)
    n = result.refinement.elements
    same = parflex.load("dualemps", payload=[1.5, 0.1, 0, 0], elements=n)
    expected = parflex.natural_frequencies(same, "home", 2, lock=["11"]).frequencies
    np.testing.assert_array_equal(result.frequencies, expected)
    assert n % 2 == 0 and result.refinement.steps[0]["elements"] == 2
    at = parflex.configure(robot, "home")
    by_configuration = parflex.natural_frequencies(robot, at, 2, lock=["11"], converge=1e-3).frequencies
    np.testing.assert_allclose(by_configuration, expected, rtol=1e-12)  # rounding of the closed pose
    bent = Configuration(robot, robot.tree.moved(at.q, 1e-3 * np.eye(robot.tree.n)[robot.tree.elastic[0]]))
    with pytest.raises(InputError, match="this configuration is deformed"):
        parflex.natural_frequencies(robot, bent, 2, converge=1e-2)
    # nodes of elements that a robot was loaded with would move
    with pytest.raises(InputError, match=r"'13\.0\.1' is an inner node"):
        parflex.natural_frequencies(robot, wrench={"13.0.1": [1, 0, 0]}, converge=1e-3)
    with pytest.raises(InputError, match=r"'13\.0\.1' is an inner node"):
        parflex.simulate(robot, "square", 0.1, frames=["13.0.1"], converge=1e-3)


def test_refinement_gives_more_modes_than_an_element_has(tmp_path):
    robot, steps = stepped(tmp_path, [(0.5, 0.01, 1)], "clamped-clamped")  # nothing moves with one element
    result = parflex.natural_frequencies(robot, modes=3, converge=1e-3)
    assert np.abs(result.frequencies / frequencies(steps, "clamped-clamped", 3) - 1).max() < 1e-3


@pytest.mark.parametrize(
    ("name", "share", "message"),
    [
        *(("dualemps", share, "") for share in (0, -1e-3, 1.0, True, "fine", float("nan"), [1e-3])),
        ("dualemps", 1e-14, "rounding"),
        ("5r", 1e-3, "it has no beams"),
        ("gough-stewart-flexible", 1e-3, "'platform', a modal body"),
    ],
)
def test_impossible_tolerances_and_robots_are_refused(name, share, message):
    for call in (parflex.natural_frequencies, parflex.simulate):
        with pytest.raises(InputError, match=message or None) as refusal:
            call(parflex.load(name), converge=share)
        assert message or (refusal.value.key == "converge" and refusal.value.hint)


def test_reduced_beams_are_not_refined(tmp_path):
    reduce = ", reduce = { error = 0.1, band = 30 }"
    robot, _ = stepped(tmp_path, [(0.3, 0.01, 4), (0.2, 0.008, 1)], "clamped-free", tip=0.3, reduce=reduce)
    result = parflex.natural_frequencies(robot, modes=1, converge=1e-2)
    assert "excludes the reduction error of 'b0'" in result.model.warnings[-1]
    robot, _ = stepped(tmp_path, [(0.3, 0.01, 4)], "clamped-free", tip=0.3, reduce=reduce)
    with pytest.raises(InputError, match="'b0' is reduced"):
        parflex.natural_frequencies(robot, converge=1e-2)


def test_the_limit_of_elements_ends_with_the_status_1(capsys, tmp_path):
    robot, _ = stepped(tmp_path, [(0.5, 0.01, 1)], "clamped-free")
    stopped = run(capsys, "frequencies", robot.file, "--converge", "1e-9", "--modes", "2", "--json")
    answer = json.loads(stopped.out)
    assert stopped.code == 1 and answer["elements"] == 64 and not answer["converged"] and answer["change"] > 1e-9
    assert "the limit" in answer["warnings"][-1]
    answer = answered(capsys, "frequencies", "dualemps", "--converge", "1e-2", "--modes", "3")
    assert answer["converged"] and answer["change"] <= 1e-2 and answer["elements"] == 4
    assert answer["refinement"][0]["change"] is None


@pytest.mark.parametrize(
    ("name", "modes", "caught"),
    [
        ("dualemps", 2, ""),  # 2 %
        ("dualemps", 3, "mode 3 (48.16 Hz) is about 5% too high, by '13' most"),  # 4.9 %
        ("dualemps", 6, "mode 6 (436.2 Hz) reaches"),  # the sixth is 189 Hz, not 436
        ("3rrr-flexible", 4, ""),
        ("3rrr-flexible", 6, "too high, by 'leg"),  # 11 %
        ("gough-stewart-beams", None, ""),
        ("navaro", None, ""),
        ("three-beam-legs", None, ""),
    ],
)
def test_robots_of_the_catalogue_warn_of_too_few_elements_where_it_is_true(name, modes, caught):
    result = parflex.natural_frequencies(parflex.load(name), modes=modes)
    said = [sentence for sentence in result.model.warnings if "elements, or converge" in sentence]
    assert bool(said) == bool(caught) and caught in "".join(said)
    assert (result.excess.max() > 0.05) == bool(caught)


def test_an_estimate_far_beyond_the_first_order_is_no_figure(tmp_path):
    """One element buckles 0.75 % above Euler's load: at that load its frequency should vanish."""
    robot, steps = stepped(tmp_path, [(0.5, 0.004, 1)], "clamped-free", tip=0.1)
    load = {"end": [-(np.pi**2) * steps[0].EI / (4 * 0.5**2), 0, 0]}
    texts = parflex.natural_frequencies(robot, modes=1, wrench=load).model.warnings
    (said,) = [text for text in texts if "mode 1" in text]
    assert "more than twice too high, by 'b0' most, which is near a critical load" in said
    assert "use " in said and "%" not in said


@pytest.mark.parametrize(
    ("axial", "message"), [("mean", "use more elements"), ("linear", "the model has no stiffening")]
)
def test_a_beam_that_bends_far_needs_more_elements_if_its_axial_strain_stiffens_it(axial, message, tmp_path):
    robot, steps = stepped(tmp_path, [(0.5, 0.01, 1)], "clamped-free")
    load = {"end": [0, 0.1 * 3 * steps[0].EI / 0.5**3, 0]}  # a deflection of a fifth of its length
    robot = parflex.load(robot.file, settings={"frame.b0.beam.axial": axial})
    result = parflex.deflection(robot, wrench=load, about="equilibrium")
    assert any(message in text for text in result.warnings)


def vibrating(robot, frequency, rows=400):
    """Columns of a cantilever whose tip goes to and fro by 1 mm about a deflection of 3 mm."""
    t = np.linspace(0, 1, rows)
    omega = 2 * np.pi * frequency
    way, rate = 3e-3 + 1e-3 * np.sin(omega * t), 1e-3 * omega * np.cos(omega * t)
    columns = {"t": t} | {f"{word}.{name}": 0 * t for name in robot.tree.position_names for word in ("q", "qd")}
    return columns | {"q.b0.uy": way, "qd.b0.uy": rate, "end.x": 0.5 + 0 * t, "end.y": way, "end.theta": 0 * t}


def test_the_frequency_of_strain_is_that_of_a_vibration(tmp_path):
    robot, steps = stepped(tmp_path, [(0.5, 0.01, 1)], "clamped-free")
    alone = frequencies(steps, "clamped-clamped", 1)
    result = strain_content(robot, vibrating(robot, 20.0))
    assert abs(np.sqrt(result.squared) / (2 * np.pi) - 20) < 0.2  # rows that do not fill whole periods
    assert abs(np.sqrt(result.alone) / (2 * np.pi) / alone[0] - 1) < 4e-3
    assert content_warnings(robot, vibrating(robot, 0.2 * alone[0])) == []
    (caught,) = content_warnings(robot, vibrating(robot, 0.45 * alone[0]))
    assert "'b0' vibrates at" in caught.text and "may be 13% too high" in caught.text
    (caught,) = content_warnings(robot, vibrating(robot, 20 * alone[0]))
    assert "does not know such vibrations" in caught.text and "%" not in caught.text  # it said 10964% too high
    resting = vibrating(robot, 20 * alone[0])
    resting |= {f"{word}.b0.uy": rest + 1e-12 * resting[f"{word}.b0.uy"] for word, rest in (("q", 3e-3), ("qd", 0.0))}
    assert content_warnings(robot, resting) == []  # rounding about an equilibrium


def test_a_step_of_force_on_a_cantilever_moves_it_as_the_series_says(tmp_path):
    """Tip of a clamped beam under a sudden force: sum of 4 F/(m omega^2) (1 - cos omega t) over its modes."""
    length, height, F = 0.5, 0.01, 0.1
    robot, steps = stepped(tmp_path, [(length, height, 1)], "clamped-free")
    words = {"wrench": {"end": [0, F, 0]}, "start": "rest", "step": 6.25e-5, "out_step": 5e-4}
    run = parflex.simulate(robot, None, 0.06, **words, converge=2e-2)
    lines = np.array([1.8751041, 4.6940911, 7.8547574, 10.9955407, 14.1371684, 17.2787595]) ** 2
    omega = lines * np.sqrt(steps[0].EI / (steps[0].mass * length**4))
    series = sum(4 * F / (steps[0].mass * length * w**2) * (1 - np.cos(w * run.t)) for w in omega)
    assert run.summary["converged"] and run.summary["elements"] == 4 and run.summary["change"] <= 2e-2
    run.save(tmp_path / "run.csv")  # of the first run no change is known, and JSON has no infinity
    kept = parflex.load_run(tmp_path / "run.csv").summary["refinement"]
    assert [step["elements"] for step in kept] == [1, 2, 4] and kept[0]["change"] is None
    assert np.abs(run["end.y"] - series).max() < 2e-2 * np.abs(series).max()
    # steps do not resolve the stiff modes, in which their estimated errors add up far above their effect
    assert {each["code"] for each in run.summary["diagnostics"]} <= {"step-error"}


class Pretended:
    """Runs whose tip is off by `errors` of a deflection of 1 mm."""

    def __init__(self, monkeypatch, errors, status=lambda number: "ok", content=0.0):
        self.errors, self.status, self.seen = errors, status, []
        monkeypatch.setattr(runs, "changes", self.changes)
        vibrating = lambda robot, run: StrainContent("", 1, content / 4 ** len(self.seen))  # noqa: E731
        monkeypatch.setattr(runs, "strain_content", vibrating)

    def changes(self, robot, columns, before, outputs):
        return {"position": float(np.abs(columns["end.y"] - before["end.y"]).max() / 1e-3)}

    def __call__(self, robot, **given):
        self.seen.append((robot, given))
        status, t = self.status(len(self.seen)), np.linspace(0, 1, 50)
        columns = {"t": t, "end.y": 1e-3 * (1 + self.errors[len(self.seen) - 1]) * np.sin(3 * t)}
        return Run(columns, {}, {"status": status, "seconds": 0.1, "warnings": ["as before"], "time": 1.0})

    def converged(self, share, **given):
        return runs.converged_run(self, parflex.load("dualemps"), share, {"time": 1.0} | given).summary


def test_a_change_that_is_small_by_chance_is_not_taken_for_convergence(monkeypatch):
    summary = Pretended(monkeypatch, [0.3, 0.301, 0.1, 0.03, 0.02, 0.0199], content=2.0).converged(0.015)
    assert summary["elements"] == 16  # the second run changes little, but its beams vibrate too fast
    summary = Pretended(monkeypatch, [0.3, 0.29, 0.28, 0.268, 0.267, 0.267]).converged(0.011)
    assert summary["elements"] == 2  # nothing speaks against it


def interrupted(number):
    if number == 3:
        raise KeyboardInterrupt
    return "ok"


@pytest.mark.parametrize(
    ("status", "most", "elements", "message"),
    [
        (interrupted, None, 2, "interrupted before the run with 4 elements"),
        (lambda k: ("ok", "interrupted")[k > 1], None, 1, "is interrupted at t = 1 s"),
        (lambda k: ("ok", "diverged")[k > 2], None, 2, "with 4 elements in each of the file is diverged"),
        (lambda k: "ok", 30, 2, "not by the 0.001 asked for"),
    ],
    ids=["interrupted", "interrupted later", "diverged", "limit"],
)
def test_refinements_that_end_early_keep_the_last_complete_run(status, most, elements, message, monkeypatch):
    if most:
        monkeypatch.setattr(runs, "MOST_RUN_COORDINATES", most)
    summary = Pretended(monkeypatch, [0.3, 0.03, 0.01], status).converged(1e-3)
    assert summary["elements"] == elements and not summary["converged"]
    assert any(message in text for text in summary["warnings"])


def test_planned_motions_and_poses_go_to_the_finer_robots(monkeypatch):
    robot, simulate = parflex.load("dualemps"), Pretended(monkeypatch, [0.1, 0.1])
    start = {"pose": parflex.configure(robot, "home"), "velocity": {}}
    simulate.converged(1e-2, motion=parflex.plan_motion(robot, "square"), start=start)
    finer, given = simulate.seen[1]
    assert len(given["motion"].start) == finer.tree.nq and given["start"]["pose"].robot is finer
    with pytest.raises(InputError, match="a start by all coordinates"):
        simulate.converged(1e-2, start={"q": robot.home})
