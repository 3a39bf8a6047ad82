"""Elements from the wall to a hand against spatial tendons of MuJoCo: exact for forces, else at its softness."""

import numpy as np
import pytest
from scipy.integrate import cumulative_simpson
from support.machine_matrix import arm
from support.robots import write_robot

import parflex

mujoco = pytest.importorskip("mujoco")

ARM = """
<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <option gravity="0 -9.81 0" timestep="STEP" integrator="RK4">
    <flag contact="disable"/>
  </option>
  <worldbody>
    <site name="wall" pos="0.1 0.9 0"/>
    <body>
      <joint name="shoulder" axis="0 0 1"/>
      <inertial pos="0.2 0.01 0" mass="2" diaginertia="0.02 0.02 0.02"/>
      <body pos="0.4 0 0">
        <joint name="elbow" axis="0 0 1"/>
        <inertial pos="0.15 0.02 0" mass="1" diaginertia="0.01 0.01 0.01"/>
        <site name="hand" pos="0.3 0.05 0"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="part" TENDON><site site="wall"/><site site="hand"/></spatial>
  </tendon>
  MORE
</mujoco>
"""
MOTOR = '<actuator><motor name="part" tendon="part" gear="1"/></actuator>'
EXACT = 1e-9  # both compute the same forces in double precision
SOFT = 'solref="-1e7 -6e3" solimp="0.9999 0.9999 0.001"'  # nearest to rigid: a ten thousandth of a force is given up
STATES = [((0.4, 0.7), (0.0, 0.0)), ((0.9, -0.5), (1.5, -2.0)), ((1.4, 0.3), (-1.0, 3.0))]


def model(tendon: str, more: str = "", step: float = 1e-3, damping: str = ""):
    text = ARM.replace("TENDON", tendon).replace("MORE", more).replace("STEP", str(step))
    made = mujoco.MjModel.from_xml_string(text.replace('axis="0 0 1"', f'axis="0 0 1" {damping}'))
    return made, mujoco.MjData(made)


FORCES = {
    "spring": (
        "kind = 'spring'; stiffness = 250; rest = 0.2; damping = 3",
        'stiffness="250" springlength="0.2" damping="3"',
    ),
    "damper": ("kind = 'damper'; damping = 20", 'damping="20"'),
    "cable": ("kind = 'cable'; stiffness = 300; rest = 0.45", 'stiffness="300" springlength="0 0.45"'),
    "strut": (
        "kind = 'strut'; actuated = true; stiffness = 100; rest = 0.3; damping = 4",
        'stiffness="100" springlength="0.3" damping="4"',
    ),
}


@pytest.mark.parametrize("kind", FORCES)
def test_forces_along_lines_accelerate_as_tendons(kind, tmp_path):
    keys, tendon = FORCES[kind]
    robot = parflex.load(write_robot(tmp_path, arm(keys, shoulder=kind != "strut")))
    made, data = model(tendon, MOTOR if kind == "strut" else "")
    for q, qd in STATES:
        data.qpos[:], data.qvel[:] = q, qd
        efforts = {"elbow": -0.4} | ({"part": 12.0} if kind == "strut" else {"shoulder": 0.7})
        data.qfrc_applied[:] = [efforts.get("shoulder", 0.0), -0.4]
        if kind == "strut":
            data.ctrl[:] = efforts["part"]
        mujoco.mj_forward(made, data)
        names = ("shoulder", "elbow")
        pose, rates = (dict(zip(names, values, strict=True)) for values in (q, qd))
        found = parflex.forward_dynamics(robot, pose, rates, efforts)
        own = [robot.rates.index(name) for name in names]
        assert found.accelerations[own] == pytest.approx(data.qacc, rel=EXACT)
        assert found.elements["part"]["length"] == pytest.approx(data.ten_length[0], rel=EXACT)
        assert found.elements["part"]["rate"] == pytest.approx(data.ten_velocity[0], abs=EXACT)


def test_a_cable_goes_slack_and_taut_in_a_run_as_a_tendon_does(tmp_path):
    """MuJoCo takes steps of a fixed length over the kinks, of fourth order in between."""
    robot = parflex.load(write_robot(tmp_path, arm(FORCES["cable"][0])))
    made, data = model(FORCES["cable"][1], step=1e-4)
    data.qpos[:] = 0.4, 0.7
    run = parflex.simulate(robot, None, 1.0, start={"pose": {"shoulder": 0.4, "elbow": 0.7}}, step=1e-3, out_step=0.1)
    lengths = run["element.part.length"]
    assert lengths.min() < 0.45 < lengths.max()
    for k in range(1, len(run.t)):
        for _ in range(1000):
            mujoco.mj_step(made, data)
        assert [run["q.shoulder"][k], run["q.elbow"][k]] == pytest.approx(data.qpos, abs=1e-5)


def test_a_rod_holds_as_an_equality_of_a_tendon_at_its_softness(tmp_path):
    robot = parflex.load(write_robot(tmp_path, arm("kind = 'rod'", elbow=False)))
    made, data = model("", f'<equality><tendon tendon1="part" {SOFT}/></equality>')
    data.qpos[:] = robot.home
    mujoco.mj_forward(made, data)
    made.tendon_length0[0] = data.ten_length[0]  # its length at the start, as that of a rod without one
    data.qfrc_applied[0] = 3.0
    mujoco.mj_forward(made, data)
    found = parflex.forward_dynamics(robot, None, None, {"shoulder": 3.0})
    # equalities of MuJoCo give: its impedance is below one by some ten-thousandths
    assert found.accelerations == pytest.approx(data.qacc, rel=1e-3)
    assert found.elements["part"]["force"] == pytest.approx(-data.efc_force[0], rel=1e-3)


def test_a_rope_that_hangs_comes_to_rest_as_on_the_limit_of_a_tendon(tmp_path):
    """Without elasticity in MuJoCo, with a stiff cable here: the same place and force, found by settling there."""
    robot = parflex.load(write_robot(tmp_path, arm("kind = 'cable'; stiffness = 1e5; rest = 0.5", False, False)))
    made, data = model('range="0 0.5" solreflimit="0.004 1"', damping='damping="2"')
    data.qpos[:] = 0.4, 0.7
    for _ in range(10_000):
        mujoco.mj_step(made, data)
    start = dict(zip(("shoulder", "elbow"), data.qpos.tolist(), strict=True))
    rest = parflex.equilibrium(robot, start)
    assert rest.configuration.q == pytest.approx(data.qpos, abs=1e-3)  # the limit gives by some tenths of a millimetre
    # a force on a rope turns with its place, which is known to that
    assert rest.elements["part"]["force"] == pytest.approx(data.efc_force[0], rel=1e-3)


@pytest.mark.parametrize("damping", [0, 5])
def test_energy_and_power_balance_while_a_cable_goes_slack_and_taut_for_ten_seconds(damping, tmp_path, figure):
    """The energy changes by the work of the motors less that of the damper."""
    keys = f"kind = 'cable'; stiffness = 3000; rest = 0.6; damping = {damping}"
    robot = parflex.load(write_robot(tmp_path, arm(keys)))
    effort = dict(zip(robot.actuated_names, (1.0, -0.5), strict=True))
    run = parflex.simulate(robot, None, 10.0, effort=effort, step=1e-3, out_step=1e-3)
    E, size = run["energy.total"], np.ptp(run["energy.kinetic"])
    opened = np.abs(E - E[0] - run["work.input"] + run["work.loss"]).max() / size
    figure(f"cable with damping {damping}: balance of energy over 10 s", opened, 1e-6)
    assert run.status == "ok" and opened < 1e-6  # fourth order at this step; kinks are found, not stepped over
    motors = sum(run[f"effort.{name}"] * run[f"qd.{name}"] for name in robot.actuated_names)
    assert run["power.input"] == pytest.approx(motors, abs=1e-12 * np.abs(motors).max())
    assert np.all(run["power.loss"] >= -1e-12 * np.abs(run["power.loss"]).max() - 1e-300)
    work = cumulative_simpson(run["power.input"], x=run.t, initial=0)
    assert run["work.input"] == pytest.approx(work, abs=1e-5 * size)  # of the rule over a millisecond
    length, force = run["element.part.length"], run["element.part.force"]
    assert np.sum(np.diff(np.sign(length - 0.6)) != 0) > 10
    assert np.all(force[length < 0.6] == 0) and force.min() >= 0
