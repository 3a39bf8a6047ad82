"""Energy and power of elements between two points over ten seconds: work of motors, losses, and what is stored."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import cumulative_simpson
from support.comparison import written
from support.machine_matrix import arm

import parflex

PARTS = {  # keys, whether the shoulder has a motor, and whether the power is smooth enough for a quadrature of rows
    "spring": ("kind = 'spring'; stiffness = 250; rest = 0.2; damping = 0.3", True, True),
    "damper": ("kind = 'damper'; damping = 2", True, True),
    "cable": ("kind = 'cable'; stiffness = 3000; rest = 0.6", True, False),
    "damped cable": ("kind = 'cable'; stiffness = 3000; rest = 0.6; damping = 5", True, False),
    "strut": ("kind = 'strut'; actuated = true; stiffness = 100; rest = 0.3; damping = 4", False, True),
}


@pytest.mark.parametrize("part", PARTS)
def test_energy_and_power_balance_over_ten_seconds(part, tmp_path, figure):
    """The energy changes by the work of the motors less that of dampers; a cable goes slack and taut on the way."""
    keys, shoulder, smooth = PARTS[part]
    robot = parflex.load(written(arm(keys, shoulder=shoulder), tmp_path))
    effort = dict(zip(robot.actuated_names, (1.0, -0.5), strict=True))
    run = parflex.simulate(robot, None, 10.0, effort=effort, step=1e-3, out_step=1e-3)
    E, size = run["energy.total"], np.ptp(run["energy.kinetic"])
    opened = np.abs(E - E[0] - run["work.input"] + run["work.loss"]).max() / size
    figure(f"{part}: balance of energy over 10 s", opened, 1e-6)
    assert run.status == "ok" and opened < 1e-6  # fourth order at this step; kinks are found, not stepped over
    motors = sum(run[f"effort.{name}"] * run[f"qd.{name}"] for name in robot.actuated_names)
    assert run["power.input"] == pytest.approx(motors, abs=1e-12 * np.abs(motors).max())
    assert np.all(run["power.loss"] >= -1e-12 * np.abs(run["power.loss"]).max() - 1e-300)
    for kind in ("input", "loss") if smooth else ("input",):
        work = cumulative_simpson(run[f"power.{kind}"], x=run.t, initial=0)
        assert run[f"work.{kind}"] == pytest.approx(work, abs=1e-5 * size)  # of the rule over a millisecond
    if "cable" in part:
        length, force = run["element.part.length"], run["element.part.force"]
        assert (
            np.sum(np.diff(np.sign(length - 0.6)) != 0) > 10 and np.all(force[length < 0.6] == 0) and force.min() >= 0
        )
