"""Solved poses: the class of poses that are found, their way back, and what a refusal costs and says."""

import numpy as np
import pytest

import parflex
from parflex.closure import assembler
from parflex.closure.continuation import position_units
from parflex.closure.newton import CLOSED
from parflex.errors import UnreachableError


@pytest.mark.parametrize("name", ["four-bar", "5r", "3rrr", "orthoglide", "puma560"])
def test_a_pose_of_the_motors_is_closed_meets_them_and_leads_back_home(name):
    robot, rng = parflex.load(name), np.random.default_rng(7)
    columns = [robot.coordinates.index(motor) for motor in robot.motors]
    units = position_units(robot.tree)[columns]
    home = dict(zip(robot.motors, robot.home[columns], strict=True))
    for _ in range(8):
        values = dict(
            zip(robot.motors, robot.home[columns] + 0.15 * units * rng.uniform(-1, 1, len(columns)), strict=True)
        )
        here = parflex.configure(robot, values)
        assert np.allclose(here.q[columns], list(values.values()), rtol=0, atol=1e-12)
        assert here.closure_error < 1e-9 * robot.tree.length
        assert np.allclose(robot.assemble(home, near=here.q), robot.home, rtol=0, atol=1e-9)


def test_units_of_positions_are_lengths_of_lengths_alone():
    robot = parflex.load("gough-stewart")
    units = dict(zip(robot.coordinates, position_units(robot.tree), strict=True))
    L = robot.tree.length
    platform = [unit for name, unit in units.items() if name.startswith("platform.")]
    assert L != 1 and platform == [L, L, L, 1, 1, 1, 1]
    assert {name.split(".")[-1]: unit for name, unit in units.items() if name.startswith("leg1")} == {
        "1": 1, "2": 1, "3": L
    }  # fmt: skip


def test_a_pose_that_no_start_closes_is_refused_without_detours(monkeypatch):
    robot, tried = parflex.load("delta"), []

    class Counted(assembler.TargetPaths):
        def ways(self, detours):
            tried.append(detours)
            return super().ways(detours)

    monkeypatch.setattr(assembler, "TargetPaths", Counted)
    with pytest.raises(UnreachableError, match=r"misses it by 0\.\d+ m") as refused:
        robot.assemble({"leg3.wrist": -0.587, "leg2.arm": -0.22})
    assert refused.value.hint and refused.value.value and refused.value.file == "delta.toml"
    assert tried and not any(tried)


@pytest.mark.parametrize("name", ["3-prrr", "gough-stewart", "four-bar"])
def test_many_starts_end_where_each_ends_alone(name):
    robot = parflex.load(name)
    here = {motor: robot.home[robot.coordinates.index(motor)] + 0.01 for motor in robot.motors}
    target, solver = robot.pose_finder.read(here), robot.assembler
    part = max(solver.parts(target, robot.locked), key=lambda part: len(part.columns))
    start = target.applied(robot.home)
    starts = [robot.tree.moved(start, 0.3 * rate) for rate in np.eye(robot.tree.n)[part.columns]]
    starts += [*solver.starts(start, part)][:9]
    together = solver.newton_from(starts, part.columns, part.rows, 40)
    alone = [solver.newton(q, part.columns, part.rows, 40) for q in starts]
    closed = [error <= CLOSED for _, error in alone]
    assert any(closed) and [error <= CLOSED for _, error in together] == closed
    assert all(solver.opening(q, part.rows) <= CLOSED for (q, _), shut in zip(together, closed, strict=True) if shut)
    for (q, _), (expected, _), shut in zip(together, alone, closed, strict=True):
        assert not shut or np.allclose(q, expected, rtol=0, atol=1e-9)  # Newton ends at rounding times the condition
