"""The leg formulation: platform state, legs in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from parflex.closure.leg_geometry import TwoRevoluteLeg
from parflex.forces.base_parameters import cleaned_body, grouped_tree, moments_scale
from parflex.formulations import leg_equations
from parflex.formulations.base import FAR, Answer, Formulation, Given, Groups, ModelRequest, System, residual_norm
from parflex.formulations.coordinates import inertia_along, to_plane, to_space, vectors_to_space
from parflex.formulations.leg_equations import (
    PlatformPose,
    legs_at,
    motor_accelerations,
    motor_columns,
    motor_motion,
    motor_residual,
    platform_newton,
)
from parflex.records import Record
from parflex.recursion.kinematics import Pose, pose
from parflex.robot.legs import (
    Legs,
    PlatformMotion,
    end_masses_on_platform,
    find_legs,
    leg_motion,
    leg_values,
    to_leg_axes,
)
from parflex.robot.robot import Robot
from parflex.spatial.linear import scalar_type, solve, solve_positive
from parflex.spatial.rotations import quaternion_near

Array = np.ndarray

LOADED = ("inverse", "direct", "jacobian-of-inverse", "step")  # models with forces, of the platform's motion

GEOMETRY_MODELS = ("geometry", "geometry-direct")

FOLLOWING = ("kinematics", "mass-matrix")  # where motors or the platform are prescribed

TIME_MODELS = ("state-rates", "state-rates-following")


@dataclass(frozen=True)
class LegFormulation(Formulation):
    """A robot on legs; models speak of the platform in world axes, in the plane only of what moves there."""

    name: ClassVar[str] = "leg form"
    legs: Legs

    @property
    def equations(self) -> tuple[int, ...]:  # type: ignore[override]
        """Of a flexible platform some more."""
        return (19, 20, 21, 22, *((33, 34) if self.legs.elastic is not None else ()))

    @property
    def because(self) -> list[str]:
        """What a leg is reduced to, and how its joints follow."""
        solved = {
            "two bars" if isinstance(leg.geometry, TwoRevoluteLeg) else "a slide on crossed hinges"
            for leg in self.legs.legs
        }
        motors = len(self.robot.actuated)
        text = [
            f"Each of {len(self.legs.legs)} legs is reduced to its effect on the platform at its end; one "
            f"{motors} x {motors} solve is left. "
            + (
                "Joint values are given."
                if self.question.positions_are_inputs
                else f"Joint values follow from the platform in closed form ({', '.join(sorted(solved))})."
            )
        ]
        if self.legs.elastic is not None:
            text.append(
                "The platform is flexible: attachments move with its modes, and instead of their accelerations the "
                "unknowns are what they give along the directions in which they move the attachments."
            )
        return text

    @property
    def independent(self) -> Array:
        """Numbers of the rates of the platform and of its modes."""
        link = self.robot.tree.links[self.legs.platform]
        return np.array([*range(link.v.start, link.v.stop), *range(link.e_v.start, link.e_v.stop)], dtype=int)

    def ways(self) -> Sequence[Formulation]:
        """By columns of the platform's rotation or not, the legs' end masses on the platform or not."""
        if self.question.symbolic or self.question.model in TIME_MODELS:
            return [self]
        return [self._written(columns, ends) for columns in (True, False) for ends in (True, False)]

    def _written(self, by_columns: bool, end_masses: bool) -> LegFormulation:
        legs = self.legs
        if end_masses:
            legs = end_masses_on_platform(legs)
            body = cleaned_body(legs.body, moments_scale(legs.body, self.robot.tree.length))
            legs = replace(legs, body=body)
        return replace(self, legs=replace(legs, by_columns=by_columns))

    # -- inverse and direct model ----------------------------------------------------------------------

    @property
    def _modes(self) -> int:
        return self.legs.elastic.body.size if self.legs.elastic is not None else 0

    @property
    def _pose_groups(self) -> Groups:
        return {"position": (2,), "rotation": (2, 2)} if self.legs.planar else {"position": (3,), "rotation": (3, 3)}

    @property
    def state_groups(self) -> Groups:
        """Pose and twist of the platform, and its modes with their rates."""
        modes: Groups = {"elastic": (self._modes,), "elastic_rate": (self._modes,)} if self._modes else {}
        return self._pose_groups | modes | self._vectors("velocity", "angular_velocity")

    @property
    def motion_groups(self) -> Groups:
        """Accelerations of the platform; its modes are free."""
        return self._vectors("acceleration", "angular_acceleration")

    @property
    def labels(self) -> dict[str, list[str]]:
        """Motors by their names, and the modes of a flexible platform."""
        tree = self.robot.tree
        names = [tree.rate_names[k] for k in tree.elastic]
        modes = dict.fromkeys(("elastic", "elastic_rate", "elastic_acceleration"), names) if names else {}
        return {"effort": self.robot.actuated_names} | modes

    def state(self, inputs: Given) -> LegState:
        """The platform as given, and the joint values of its legs."""
        p, R = to_space(self.legs.planar, inputs["position"], inputs["rotation"])
        v, w = vectors_to_space(self.legs.planar, inputs["velocity"], inputs["angular_velocity"])
        elastic_state = [inputs[name] for name in ("elastic", "elastic_rate")] if self._modes else []
        zero = np.zeros(3)
        platform = PlatformMotion(R, p, v, w, zero - self.robot.tree.gravity, zero, *elastic_state)
        return LegState(self, platform, self._values(platform))

    def _values(self, platform: PlatformMotion) -> list[Array]:
        angle = self.question.angle or _plain_angle
        return [np.array(leg_values(self.legs, leg, platform, angle), dtype=object) for leg in self.legs.legs]

    def inverse(self, state: LegState, motion: Given) -> Answer:
        """Efforts of the motors, and accelerations of the modes of a flexible platform."""
        a, al = vectors_to_space(self.legs.planar, motion["acceleration"], motion["angular_acceleration"])
        effort, modes = self._efforts(state, a, al)
        return {"effort": effort} | ({"elastic_acceleration": modes} if self._modes else {})

    def _efforts(self, state: LegState, a: Array, al: Array) -> tuple[Array, Array]:
        driven = replace(state.platform, a=a - self.robot.tree.gravity, al=al)
        return leg_equations.inverse(self.legs, state.values, driven)

    def direct(self, state: LegState, tau: Array) -> Answer:
        """Accelerations of the platform in world axes, and of its modes."""
        freedom, modes = self._accelerations(state, tau)
        split, rigid = (2, 3) if self.legs.planar else (3, 6)
        accelerations = {"acceleration": freedom[:split], "angular_acceleration": freedom[split:rigid]}
        return accelerations | ({"elastic_acceleration": modes} if self._modes else {})

    def _accelerations(self, state: LegState, tau: Array) -> tuple[Array, Array]:
        A, h, B, s = leg_equations.equations(self.legs, state.values, state.platform)
        freedom = solve_positive(A, B @ tau - h)
        if not self._modes:
            return freedom, np.zeros(0)
        return freedom, leg_equations.mode_accelerations(self.legs, state.platform, freedom, s)

    # -- of all coordinates ----------------------------------------------------------------------------

    def motion_inputs(self, state: LegState, qdd: Array) -> Given:
        """Accelerations of the platform in world axes."""
        link = self.robot.tree.links[self.legs.platform]
        a, al = (state.platform.R @ (S @ qdd[link.v]) for S in (link.joint.S_v, link.joint.S_w))
        a, al = to_plane(self.legs.planar, a, al)
        return {"acceleration": a, "angular_acceleration": al}

    def all_accelerations(self, state: LegState, independent: Array) -> Array:
        """The legs follow the platform and its modes."""
        return all_accelerations(self, state, independent)

    def systems(self, state: LegState, motors: bool) -> list[System]:
        """What each leg's joints do at its end; and the rates of the motors in those of the platform."""
        return closure_systems(self.legs, state, motors)

    def inertia(self, state: LegState) -> tuple[Array, Array, bool]:
        """That of the platform and what the legs add to it."""
        A = leg_equations.equations(self.legs, state.values, state.platform)[0]
        units = np.ones(len(A))
        units[: 2 if self.legs.planar else 3] = self.robot.tree.length
        return A, units, False

    # -- motion in time --------------------------------------------------------------------------------

    def moving(self, q: Array, rates: Array, wrenches: Given | None = None) -> LegState:
        """The platform from its own coordinates; of the legs' positions only their turns are taken."""
        link = self.robot.tree.links[self.legs.platform]
        platform_rates, ed = rates[: link.v.stop - link.v.start], rates[link.v.stop - link.v.start :]
        R, p = link.joint.transform(q[link.q])
        v, w, zero = R @ (link.joint.S_v @ platform_rates), R @ (link.joint.S_w @ platform_rates), np.zeros(3)
        platform = PlatformMotion(R, p, v, w, zero - self.robot.tree.gravity, zero, q[link.e], ed)
        if not self.question.positions_are_inputs:
            return LegState(self, platform, self._values(platform), q, rates)
        links = self.robot.tree.links
        joint_values = [np.array([q[links[j].q.start] for j in leg.links]) for leg in self.legs.legs]
        return LegState(self, platform, joint_values, q, rates)

    def accelerations_under(self, state: LegState, tau: Array) -> Array:
        """Accelerations of the platform in its own axes, and of its modes, under the efforts of the motors."""
        freedom, modes = self._accelerations(state, tau)
        return self._own(state, *self._split(freedom), modes)

    @property
    def prescribed(self) -> tuple[str, int]:
        """The platform is prescribed, by its accelerations in world axes."""
        return "platform_acceleration", 3 if self.legs.planar else 6

    def efforts_for(self, state: LegState, accelerations: Array) -> tuple[Array, Array]:
        """Efforts that drive the platform, [Long2014, eq. (46)], and its accelerations in its own axes."""
        a, al = self._split(accelerations)
        effort, modes = self._efforts(state, a, al)
        return effort, self._own(state, a, al, modes)

    def _split(self, components: Array) -> tuple[Array, Array]:
        """Acceleration and angular acceleration from the components of the platform's freedoms."""
        if self.legs.planar:
            return np.array([components[0], components[1], 0.0]), np.array([0.0, 0.0, components[2]])
        return components[:3], components[3:6]

    def _own(self, state: LegState, a: Array, al: Array, modes: Array) -> Array:
        joint, R = self.robot.tree.links[self.legs.platform].joint, state.platform.R
        return np.concatenate([joint.S_v.T @ (R.T @ a) + joint.S_w.T @ (R.T @ al), modes])

    # -- geometry --------------------------------------------------------------------------------------

    @property
    def geometry_groups(self) -> Groups:
        """The pose of the platform and its modes; or the motors, and the pose before."""
        if self.question.model == "geometry-direct":
            return {"motor_position": (len(self.robot.actuated),)} | self.previous_pose_groups
        return self._pose_groups | ({"elastic": (self._modes,)} if self._modes else {})

    def geometry(self, inputs: Given) -> tuple[Answer, dict[str, list[str]]]:
        """Joint values of the legs in closed form; or the pose of the platform by Newton."""
        if self.question.model == "geometry-direct":
            sensed = inputs["motor_position"]
            platform_pose = self._found(sensed, inputs)
            joint_values = [
                leg_joints for _, leg_joints in legs_at(self.legs, platform_pose, self.question.angle or _plain_angle)
            ]
            answer = {"position": platform_pose.position, "turn": platform_pose.turn}
            answer["residual"] = residual_norm(motor_residual(self.legs, joint_values, sensed))
            return answer, {"motor_position": self.robot.actuated_names}
        p, R = to_space(self.legs.planar, inputs["position"], inputs["rotation"])
        zero, e = np.zeros(3), inputs["elastic"] if self._modes else np.zeros(0)
        values = plain_values(self.legs, self._values(PlatformMotion(R, p, zero, zero, zero, zero, e)))
        links = self.robot.tree.links
        joints = [values[links[j].q.start] for leg in self.legs.legs for j in leg.links]
        names = [link.name for leg in self.legs.legs for link in leg.tree.links]
        return {"joints": np.array(joints, dtype=object)}, {"joints": names} | self.labels

    @property
    def previous_pose_groups(self) -> Groups:
        """The pose of the platform."""
        return (
            {"last_position": (2,), "last_turn": (1,)}
            if self.legs.planar
            else {"last_position": (3,), "last_turn": (4,)}
        )

    def _found(self, sensed: Array, last: Given) -> PlatformPose:
        """The pose of the platform at which the motors stand so, from the one before."""
        start = PlatformPose(last["last_position"], last["last_turn"])
        return platform_newton(self.legs, start, sensed, self.question.angle or _plain_angle, FAR)

    # -- driven by motors or the platform --------------------------------------------------------------

    def by_motors(self, sensed: Array, rates: Array, last: Given) -> LegState:
        """Newton for the platform alone, then its twist; `last` is its pose, or all positions."""
        guess = last.get("last")
        if guess is not None:
            platform_q, position_size = guess[self.robot.tree.links[self.legs.platform].q], 2 if self.legs.planar else 3
            last = {"last_position": platform_q[:position_size], "last_turn": platform_q[position_size:]}
        platform_pose = self._found(sensed, last)
        platform, values = motor_motion(self.legs, platform_pose, rates, self.question.angle or _plain_angle)
        if guess is not None:
            guess = with_pose(self.legs, guess, np.concatenate([platform_pose.position, platform_pose.turn]))
        return LegState(self, platform, [np.array(q, dtype=object) for q in values], guess, found=platform_pose)

    def for_motors(self, state: LegState, desired: Array) -> Given:
        """Accelerations of the platform."""
        a, al = to_plane(self.legs.planar, *motor_accelerations(self.legs, state.platform, state.values, desired))
        return {"acceleration": a, "angular_acceleration": al}

    def motor_inertia(self, state: LegState) -> Array:
        """The mass matrix in the rates of the motors."""
        A, _, B, _ = leg_equations.equations(self.legs, state.values, state.platform)
        return inertia_along(A, B.T)

    def remembered(self, state: LegState) -> Answer:
        """The pose of the platform."""
        assert state.found is not None
        return {"position": state.found.position, "turn": state.found.turn}

    def missed(self, state: LegState, sensed: Array) -> Answer:
        """Return how far the motors are from their positions."""
        return {"residual": residual_norm(motor_residual(self.legs, state.values, sensed))}

    @property
    def position_groups(self) -> Groups:
        """The pose of the platform and its modes; where positions are asked for, those before."""
        last: Groups = {"last": (self.robot.tree.nq,)} if self.question.model == "kinematics" else {}
        return self._pose_groups | ({"elastic": (self._modes,)} if self._modes else {}) | last

    @property
    def twist_groups(self) -> Groups:
        """The twist of the platform, and the rates of its modes."""
        return ({"elastic_rate": (self._modes,)} if self._modes else {}) | super().twist_groups

    def by_platform(self, inputs: Given) -> LegState:
        """The platform as given."""
        state = self.state(inputs)
        if "last" not in inputs:
            return state
        q = platform_position(self.legs, state.platform, inputs["last"])
        return replace(state, guess=with_pose(self.legs, inputs["last"], q))

    def for_platform(self, state: LegState, inputs: Given) -> Given:
        """As given."""
        return inputs

    @property
    def twist_components(self) -> list[str]:
        """All components of the platform's twist."""
        return twist_names(self.legs)

    def platform_inertia(self, state: LegState) -> Array:
        """The mass matrix in these components."""
        A, _, _, _ = leg_equations.equations(self.legs, state.values, state.platform)
        return A


def leg_formulation(robot: Robot, question: ModelRequest) -> LegFormulation | str:
    """The leg form of a robot, or why it has none or why this model of it is not written so."""
    legs = find_legs(robot)
    if isinstance(legs, str):
        return legs
    if not legs.closed_form and not question.positions_are_inputs:
        return "the joint values of its legs have no closed form that is recognised"
    reason = _reason_against_leg_form(robot, question, legs)
    if reason:
        return reason
    if legs.elastic is not None:
        legs = replace(legs, legs=tuple(replace(leg, tree=grouped_tree(leg.tree)) for leg in legs.legs))
    return LegFormulation(robot, legs, question=question)


def _reason_against_leg_form(robot: Robot, question: ModelRequest, legs: Legs) -> str | None:
    """What is asked, or acts, that legs do not know."""
    model = question.model
    driven = question.coordinates in ("motors", "platform") and model in FOLLOWING and legs.elastic is None
    if model not in (*LOADED, *GEOMETRY_MODELS, *TIME_MODELS) and not driven:
        return f"'{model}' is asked in the independent rates"
    if question.family:
        return "lengths of its legs are symbols"
    if question.independent:
        return "the independent rates were named"
    if question.wrenches:
        return "a wrench acts on a frame"
    if model == "geometry-direct" and legs.elastic is not None:
        return "its platform is flexible"
    if question.positions_are_inputs:
        return None
    springs = {link.joint.kind for link in robot.tree.links if link.terms.stiffness or link.terms.stop is not None}
    if (model in (*LOADED, *FOLLOWING) and "revolute" in springs) or (model in TIME_MODELS and springs):
        return "a spring acts on a joint of its legs, of which sine and cosine alone are known"
    return None


def _plain_angle(cos: Any, sin: Any) -> Any:
    """An angle of floats."""
    return np.arctan2(sin, cos)


@dataclass(frozen=True, eq=False, repr=False)
class LegState(Record):
    """The platform in motion, without acceleration but for gravity, and the joint values of its legs."""

    form: Any
    platform: PlatformMotion
    values: list[Array]
    guess: Array | None = None  # of all positions, where these were given
    rates: Array | None = None  # of the platform and its modes, in its own axes
    found: PlatformPose | None = None  # where motors say it

    @cached_property
    def at(self) -> Pose:
        """Poses of all links."""
        return pose(self.form.robot.tree, self.q)

    @cached_property
    def q(self) -> Array:
        """All positions, those of the legs from the platform, in the turn of the guess."""
        assert self.guess is not None
        closed = self.guess.copy()
        for place, value in plain_values(self.form.legs, self.values, self.guess).items():
            closed[place] = value
        return closed

    @cached_property
    def qd(self) -> Array:
        """All rates."""
        form, tree = self.form, self.form.robot.tree
        rates: Array = np.zeros(tree.n, dtype=object)
        rates[form.independent] = self._platform_joint_rates() if self.rates is None else self.rates
        for leg, joints in zip(form.legs.legs, self.values, strict=True):
            leg_rates = leg_motion(form.legs, leg, joints, self.platform).qd
            rates[[tree.links[j].v.start for j in leg.links]] = leg_rates
        return rates

    def _platform_joint_rates(self) -> Array:
        joint, platform = self.form.robot.tree.links[self.form.legs.platform].joint, self.platform
        v, w = platform.R.T @ platform.v, platform.R.T @ platform.w
        return np.concatenate([joint.S_v.T @ v + joint.S_w.T @ w, platform.ed])


def plain_values(legs: Legs, values: list[Array], near: Array | None = None) -> dict[int, Any]:
    """Joint values by position coordinate of the robot, angles as numbers; `near` says in which turn they are."""
    tree, positions = legs.robot.tree, {}
    for leg, joint_values in zip(legs.legs, values, strict=True):
        for link, value in zip((tree.links[j] for j in leg.links), joint_values, strict=True):
            positions[link.q.start] = value
            if not link.periodic:
                continue
            cos, sin = np.cos(value), np.sin(value)
            if near is None:
                positions[link.q.start] = np.arctan2(sin, cos)
                continue
            guess = near[link.q.start]
            c, s = np.cos(guess), np.sin(guess)
            positions[link.q.start] = guess + np.arctan2(sin * c - cos * s, cos * c + sin * s)
    return positions


def all_accelerations(form: Any, state: LegState, independent: Array) -> Array:
    """Accelerations of all coordinates for those of the platform and its modes, in its own axes."""
    legs, tree = form.legs, form.robot.tree
    accelerations: Array = np.zeros(tree.n, dtype=scalar_type(independent, state.platform.R))
    accelerations[form.independent] = independent
    joint, platform_qdd = tree.links[legs.platform].joint, accelerations[tree.links[legs.platform].v]
    a, al = (state.platform.R @ (S @ platform_qdd) for S in (joint.S_v, joint.S_w))
    driven = replace(state.platform, a=a - tree.gravity, al=al)
    for leg, joints in zip(legs.legs, state.values, strict=True):
        moving = leg_motion(legs, leg, joints, driven)
        qdd = moving.qdd
        if legs.elastic is not None:
            modes = independent[len(platform_qdd) :]
            bending = driven.R @ legs.elastic.rate(leg.number, modes)
            qdd = qdd + solve(moving.J, to_leg_axes(leg, moving.at, bending))
        accelerations[[tree.links[j].v.start for j in leg.links]] = qdd
    return accelerations


def closure_systems(legs: Legs, state: LegState, motors: bool) -> list[System]:
    """What each leg's joints do at its end; and the rates of the motors in those of the platform."""
    tree = legs.robot.tree
    units, length = tree.rate_units, tree.length
    states = [
        leg_motion(legs, leg, joint_values, state.platform)
        for leg, joint_values in zip(legs.legs, state.values, strict=True)
    ]
    systems = [
        (
            leg_state.J,
            np.full(len(leg_state.J), 1 / length),
            units[[tree.links[j].v.start for j in leg_state.leg.links]],
        )
        for leg_state in states
    ]
    if motors and legs.elastic is None:
        translations = 2 if legs.planar else 3
        rates = motor_columns(legs, states, state.platform.R).T
        freedoms = np.r_[np.full(translations, length), np.ones(rates.shape[1] - translations)]
        systems.append((rates, 1 / units[list(legs.robot.actuated)], freedoms))
    return systems


def with_pose(legs: Legs, q: Any, platform_q: Array) -> Any:
    """All positions with other ones of the platform."""
    placed = q.copy()
    placed[legs.robot.tree.links[legs.platform].q] = platform_q
    return placed


def platform_position(legs: Legs, platform: PlatformMotion, q: Any) -> Array:
    """Coordinates of the platform at its pose, in the turn, or with the sign of the quaternion, of those in `q`."""
    before, R = q[legs.robot.tree.links[legs.platform].q], platform.R
    if not legs.planar:
        return np.concatenate([platform.p, quaternion_near(R, before[3:])])
    c, s = np.cos(before[2]), np.sin(before[2])
    return np.array([*platform.p[:2], before[2] + np.arctan2(R[1, 0] * c - R[0, 0] * s, R[0, 0] * c + R[1, 0] * s)])


def twist_names(legs: Legs) -> list[str]:
    """Components of the platform's twist, in the order of its freedoms."""
    words = ("vx", "vy", "wz") if legs.planar else ("vx", "vy", "vz", "wx", "wy", "wz")
    return [f"{legs.robot.tree.links[legs.platform].name}.{word}" for word in words]
