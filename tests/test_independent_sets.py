"""A run does not depend on which rates are independent: its start to rounding, its rows to the error of its steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.mechanisms import invented
from support.modal_robots import with_platform
from support.oracles.beam_robots import HEXAGON
from support.oracles.modal_data import invented as invented_modes
from support.traced import VERIFY, long

import parflex
from parflex.closure import mobility
from parflex.simulation import partitions
from parflex.simulation import problem as problem_of_runs

ROBOTS = Path(__file__).parent / "robots"
SETS = 12 if VERIFY else 2
LARGE = ("modal", "gough-stewart")  # of whose programs each set takes seconds to make
WELL = 300.0  # condition number of the block that gives the dependent rates


def sets_of(of, q, driven: bool, seed: int, count: int) -> list[list[str]]:
    """Random choices of independent rates, with the motors where they are led, that say all others well."""
    names, J = of.tree.rate_names, mobility.scaled_jacobian(of.closures, q)
    size, kept = of.mobility.freedoms(len(of.free)), list(of.actuated) if driven else []
    others = [int(k) for k in of.free if k not in kept]
    rng, found = np.random.default_rng(seed), []
    for _ in range(3000):
        chosen = {*kept, *(int(k) for k in rng.choice(others, size - len(kept), replace=False))}
        dependent = [k for k in of.free if k not in chosen]
        if mobility.condition(J[:, dependent], len(dependent)) < WELL and chosen not in found:
            found.append(chosen)
        if len(found) == count:
            break
    return [[names[k] for k in sorted(chosen)] for chosen in found]


def turning(of, speed: float):
    """Motors that begin with speed and go on with it."""
    begin = [float(of.home[of.tree.position_names.index(name)]) for name in of.actuated_names]
    rates = [speed * (-1) ** k for k in range(len(begin))]
    return lambda t: [[p + v * t for p, v in zip(begin, rates, strict=True)], rates, [0.0] * len(begin)]


def cases(name: str, folder: Path):
    """A robot, what moves it, and steps that resolve it."""
    if name == "slider-crank":  # planar, closed, bends
        of = parflex.load(ROBOTS / "slider-crank-beam.toml", settings={"frame.rod.beam.elements": 1})
        return of, {"motion": turning(of, 150.0), "time": 4e-3, "step": 4e-5}, True
    if name == "modal":  # spatial, closed, a platform given by modes
        of = with_platform(folder, "gough-stewart", invented_modes(HEXAGON, 2, seed=1), [0, 0, -9.81])
        return of, {"motion": turning(of, 0.1), "time": 4e-3, "step": 2e-4}, True
    of = parflex.load(invented(name) if name != "gough-stewart" else name)
    here = parflex.configure(of)
    qd = here.motions @ np.random.default_rng(1).uniform(-0.5, 0.5, here.motions.shape[1])
    return of, {"start": {"q": here.q, "qd": qd}, "time": 0.08, "step": 4e-3}, False


@pytest.mark.few
@pytest.mark.parametrize(
    "name",
    [
        "slider-crank",
        "spatial-four-bar",
        "nested",
        *(pytest.param(one, marks=long) for one in ("gough-stewart", "modal")),
    ],
)
def test_starts_are_equal_and_runs_within_the_error_of_halving_the_step(name, tmp_path, figure):
    of, given, driven = cases(name, tmp_path)
    given |= {"without": ["friction"], "check_width": False, "tolerance": 1e-14, "out_step": given["time"] / 4}
    usual = parflex.simulate(of, **given)
    halved = parflex.simulate(of, **(given | {"step": given["step"] / 2}))
    columns = [key for key in usual if key.startswith(("q.", "qd."))]
    size = {key: max(float(np.abs(usual[key]).max()), 1e-9) for key in columns}
    step_error = max(float(np.abs(usual[key] - halved[key]).max()) / size[key] for key in columns)
    scale = max(size[key] for key in columns if key.startswith("qd."))
    q = np.array([usual[f"q.{key}"][0] for key in of.tree.position_names])
    chosen = sets_of(of, q, driven, 5, 1 if name in LARGE and not VERIFY else SETS)
    assert chosen
    for independent in chosen:
        run = parflex.simulate(of, independent=independent, **given)
        assert run.summary["start_energy"]["kinetic"] == pytest.approx(
            usual.summary["start_energy"]["kinetic"], rel=1e-12
        )
        first = max(abs(run[key][0] - usual[key][0]) for key in columns)
        # dependent rates come out of a block whose condition is WELL at most
        assert first <= 1e-12 * max(1.0, scale), (independent, first)
        finer = parflex.simulate(of, independent=independent, **(given | {"step": given["step"] / 2}))
        own = max(float(np.abs(run[key] - finer[key]).max()) / size[key] for key in columns)
        apart = max(float(np.abs(run[key] - usual[key]).max()) / size[key] for key in columns)
        # a method of fourth order errs by 16/15 of what halving the step changes; rounding of conditions up to WELL
        assert apart <= 1.2 * (step_error + own) + 1e-9, (independent, apart, step_error, own)
    figure(f"{name}: {len(chosen)} independent sets, first rows apart", float(first), 1e-12)


@pytest.mark.parametrize("many", [False, True])
def test_other_independent_rates_have_the_limit_and_the_calls_of_a_run(monkeypatch, many):
    """The model of a change is made as that of the start: a run that began is not refused for its length."""
    robot = parflex.load("3rrr")
    monkeypatch.setattr(problem_of_runs, "calls_elements", lambda _: many)
    monkeypatch.setattr(partitions, "calls_elements", lambda _: many)
    problem, asked = problem_of_runs.prepare(robot, "efforts"), []

    def noted(_robot, _name, options, limit):
        asked.append((options.calls, limit))
        return problem.model

    monkeypatch.setattr(partitions, "model_with", noted)
    partitions.with_independent(problem, problem.independent, robot.home)
    assert asked == [(many, problem_of_runs.RUN_LIMIT)]
