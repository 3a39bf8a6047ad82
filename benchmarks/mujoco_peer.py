"""MuJoCo as a peer: the same bodies, balls as stiff `connect` constraints, which are compliant; its error is shown."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
from robots import PlatformState

from parflex.bodies.rigid import RigidBody
from parflex.robot.robot import Robot
from parflex.spatial.rotations import hat, matrix_quaternion

HEAD = """<mujoco>
<compiler angle="radian"/>
<option gravity="{gravity}" timestep="1e-4" solver="Newton" iterations="50" tolerance="1e-12">
<flag contact="disable" limit="disable"/></option>
<worldbody>"""
STIFF = 'solref="2e-4 1" solimp="0.9999 0.9999 0.001 0.5 2"'
JOINTS = {
    "revolute": '<joint type="hinge" axis="0 0 1"/>',
    "prismatic": '<joint type="slide" axis="0 0 1"/>',
    "free": "<freejoint/>",
}


def _numbers(values: np.ndarray) -> str:
    return " ".join(f"{float(value):.17g}" for value in np.ravel(values))


def _inertial(body: RigidBody) -> str:
    centre = body.S / body.m
    central = body.I - body.m * hat(centre).T @ hat(centre)
    full = [central[0, 0], central[1, 1], central[2, 2], central[0, 1], central[0, 2], central[1, 2]]
    return f'<inertial pos="{_numbers(centre)}" mass="{body.m:.17g}" fullinertia="{_numbers(np.array(full))}"/>'


class GoughStewart:
    """Legs and platform as MuJoCo's bodies."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.model = mujoco.MjModel.from_xml_string(self._text())
        self.data = mujoco.MjData(self.model)

    def _text(self) -> str:
        tree = self.robot.tree
        sites: dict[int, list[str]] = {}
        connects = []
        for number, loop in enumerate(self.robot.closures.loops):
            for side, place in (("a", loop.first), ("b", loop.second)):
                site = f'<site name="{side}{number}" pos="{_numbers(place.position)}"/>'
                sites.setdefault(place.link, []).append(site)
            connects.append(f'<connect site1="a{number}" site2="b{number}" {STIFF}/>')

        def body(j: int) -> str:
            link = tree.links[j]
            place = f'pos="{_numbers(link.position)}" quat="{_numbers(matrix_quaternion(link.rotation))}"'
            children = "".join(body(k) for k, other in enumerate(tree.links) if other.parent == j)
            inner = JOINTS[link.joint.kind] + _inertial(link.body) + "".join(sites.get(j, []))
            return f'<body name="{link.name}" {place}>{inner}{children}</body>'

        roots = "".join(body(j) for j, link in enumerate(tree.links) if link.parent < 0)
        head = HEAD.format(gravity=_numbers(tree.gravity))
        return f"{head}{roots}</worldbody><equality>{''.join(connects)}</equality></mujoco>"

    def set_state(self, state: PlatformState) -> None:
        """Positions, rates and forces of all bodies; MuJoCo gets the joints for nothing."""
        joint = 0
        for link in self.robot.tree.links:
            found = self.model.joint(self.model.body(link.name).jntadr[0])
            if link.joint.kind == "free":
                self.data.qpos[found.qposadr[0] : found.qposadr[0] + 7] = np.concatenate([state.p, state.quaternion])
                self.data.qvel[found.dofadr[0] : found.dofadr[0] + 6] = np.concatenate([state.v, state.R.T @ state.w])
            else:
                self.data.qpos[found.qposadr[0]], self.data.qvel[found.dofadr[0]] = state.q[joint], state.qd[joint]
                joint += 1
        self.data.qfrc_applied[:] = 0
        for rate, effort in zip(self.robot.actuated, state.effort, strict=True):
            name = self.robot.tree.links[self.robot.tree.link_of_rate[rate]].name
            self.data.qfrc_applied[self.model.body(name).dofadr[0]] = effort

    def direct(self, state: PlatformState) -> np.ndarray:
        """Acceleration and angular acceleration of the platform in world axes."""
        self.set_state(state)
        mujoco.mj_forward(self.model, self.data)
        name = next(link.name for link in self.robot.tree.links if link.joint.kind == "free")
        start = self.model.body(name).dofadr[0]
        return np.concatenate([self.data.qacc[start : start + 3], state.R @ self.data.qacc[start + 3 : start + 6]])

    def calls(self, state: PlatformState) -> tuple[Callable[[], object], Callable[[], object]]:
        """The call, and the same call on an empty world."""
        self.set_state(state)
        model = mujoco.MjModel.from_xml_string("<mujoco/>")
        data = mujoco.MjData(model)
        forward = mujoco.mj_forward
        return lambda: forward(self.model, self.data), lambda: forward(model, data)
