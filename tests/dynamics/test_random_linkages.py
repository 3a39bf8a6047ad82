"""Random linkages move as those of the oracle: any motors, any independent rates, started with speed."""

from __future__ import annotations

import numpy as np
import pytest
from support.linkages import CHAINS, draw
from support.oracles.constrained import StoppedError, integrate, moving
from support.oracles.planar_bodies import Led
from support.random_linkages import FREEDOMS
from support.robots import write_robot

import parflex

TIME, ROWS = 1.0, 11


def cases(many: int) -> list:
    return [pytest.param(kind, seed, id=f"{kind}-{seed}") for kind in CHAINS for seed in range(many)]


def halved(of, step: float, **how):
    """A run, and how far it is from one with twice the step."""
    runs = [parflex.simulate(of, step=h, out_step=TIME / (ROWS - 1), method="gauss6", **how) for h in (2 * step, step)]
    assert [run.status for run in runs] == ["ok", "ok"], [run.summary.get("why") for run in runs]
    return runs[1], lambda column: float(np.abs(runs[0][column] - runs[1][column]).max())


@pytest.mark.few("five-bar-18")
@pytest.mark.parametrize(("kind", "seed"), cases(40))
def test_pushed_linkages_move_as_the_oracle(kind, seed, tmp_path, figure):
    rng = np.random.default_rng([seed, *kind.encode()])
    drawn, motors = draw(rng, kind)
    stated, independent = drawn.determining(rng), drawn.determining(rng)
    efforts = {name: float(rng.uniform(-5, 5)) for name in motors}
    for name, effort in efforts.items():
        drawn.push(name, effort)
    made = integrate(drawn.linkage, np.linspace(0, TIME, ROWS), drawn.q, drawn.v, 1e-11)
    of = parflex.load(write_robot(tmp_path, drawn.text), actuation="drawn")
    start = {"pose": "home", "velocity": {name: float(drawn.value(name, drawn.v)) for name in stated}}
    run, change = halved(of, 1e-3, time=TIME, effort=efforts, start=start, independent=independent)
    assert run.summary["energy_balance_error"] < 1e-5  # J of some 10 J: the work is integrated in the loop
    for name in drawn.joints:
        off = float(np.abs(run[f"q.{name}"] - drawn.value(name, made.q)).max())
        figure(f"{kind} {seed}, {name}", off, "thrice what halving the step changes, or 1e-6")
        # sixth order: halving the step takes off all but a sixtieth; near a dead centre, where other rates become
        # independent at a row that depends on the step, both runs may be off by some 1e-8 to 1e-7
        assert off < max(1e-6, 3 * change(f"q.{name}"))


@pytest.mark.few("four-bar-0]", "five-bar-1]")
@pytest.mark.parametrize(("kind", "seed"), cases(20))
def test_led_linkages_need_the_efforts_of_the_oracle(kind, seed, tmp_path, figure):
    rng = np.random.default_rng([1000 + seed, *kind.encode()])
    while True:  # motors in hinges; a slider is pushed above
        drawn, motors = draw(rng, kind, FREEDOMS[kind])
        if "slider" not in motors:
            break
    ways = {name: (float(drawn.value(name, drawn.q)), *map(float, rng.uniform(-0.1, 0.1, 2))) for name in motors}

    def at(name: str, t: float) -> tuple[float, float, float]:
        begin, a, b = ways[name]
        s, c = np.sin(5 * t), np.cos(5 * t)
        return begin + a * s + b * (1 - c), 5 * (a * c + b * s), 25 * (b * c - a * s)

    for name in motors:
        body, parent = drawn.joints[name]
        drawn.linkage.joints.append(Led(body, parent, lambda t, name=name: at(name, t)))
    v = moving(drawn.linkage, 0.0, drawn.q, np.zeros(len(drawn.q)))
    stopped = None
    try:
        made = integrate(drawn.linkage, np.linspace(0, TIME, ROWS), drawn.q, v, 1e-11)
    except StoppedError as error:  # led out of reach
        stopped = error.time
    of = parflex.load(write_robot(tmp_path, drawn.text), actuation="drawn")
    order = of.actuated_names
    run = parflex.simulate(
        of, lambda t: np.array([at(name, t) for name in order]).T, TIME, step=1e-3, out_step=TIME / (ROWS - 1)
    )
    if stopped is not None:
        assert run.status == "diverged"
        assert run.summary["stopped_at"] == pytest.approx(stopped, abs=0.01)  # some steps
        return
    assert run.status == "ok"
    for k, name in enumerate(motors):
        lam = made.multipliers[:, len(made.multipliers[0]) - len(motors) + k]
        off = float(np.abs(run[f"effort.{name}"] - lam).max() / max(1.0, np.abs(lam).max()))
        figure(f"{kind} {seed}, effort of {name}", off, 1e-10)
        assert off < 1e-10  # rows are knots of the motion: nothing but rounding, and the last row still moves
