"""The leg formulation: dynamics of a platform on legs after Khalil, legs in closed form.

Each leg is reduced to its wrench on the platform, [Khalil2007, eqs. (20)-(30)]. A flexible platform adds the elastic
unknowns of its attachments to its degrees of freedom, [Long2014, eqs. (41)-(49)].

Newton steps lead from the motors to the pose of the platform; the legs follow in closed form at every step. Their
number is fixed, so that a program can be generated, and they keep the quaternion of the platform normalised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.closure.leg_geometry import Angle, TwoRevoluteLeg
from parflex.forces.base_parameters import cleaned_body, grouped_tree, moments_scale
from parflex.formulations.base import (
    FAR,
    Answer,
    Formulation,
    Given,
    Groups,
    ModelRequest,
    System,
    pose_groups,
    residual_norm,
    vectors,
)
from parflex.formulations.coordinates import (
    COORDINATES,
    TWIST,
    MotorCoordinates,
    RequestedCoordinates,
    inertia_along,
    to_plane,
    to_space,
    vectors_to_space,
)
from parflex.records import Record
from parflex.recursion.dynamics import joint_forces, mass_matrix, newton_euler
from parflex.recursion.kinematics import Pose, pose
from parflex.robot.legs import (
    Leg,
    LegMotion,
    Legs,
    PlatformMotion,
    end_masses_on_platform,
    find_legs,
    from_leg_axes,
    leg_motion,
    leg_values,
    platform_wrench,
    to_leg_axes,
    world_second_moments,
)
from parflex.robot.robot import Robot
from parflex.spatial.linear import scalar_type, solve, solve_positive
from parflex.spatial.rotations import cross, hat, quaternion_matrix, quaternion_near, quaternion_product, rotation_about

Array = np.ndarray
LOADED = ("inverse", "direct", "jacobian-of-inverse", "step")  # models with forces, of the platform's motion
GEOMETRY_MODELS = ("geometry", "geometry-direct")
FOLLOWING = ("kinematics", "mass-matrix")  # where motors or the platform are prescribed
TIME_MODELS = ("state-rates", "state-rates-following")
PLATFORM_POSE = ("step", "geometry-direct")  # models that start from the last pose of the platform alone


class LegMotorCoordinates(MotorCoordinates):
    """The pose of the platform follows from the motors by Newton's method, from its last pose or all last positions."""

    def __init__(self, form: Any) -> None:
        super().__init__(form)
        self.legs: Legs = form.legs
        if form.question.model in PLATFORM_POSE:
            sizes = (2, 1) if form.legs.planar else (3, 4)
            last: Groups = {"last_position": sizes[:1], "last_turn": sizes[1:]}
            self.position_groups = {"motor_position": (len(self.motors),)} | last

    def platform_pose(self, inputs: Given) -> PlatformPose:
        """The pose of the platform at which the motors have their positions."""
        if "last" in inputs:
            last, size = inputs["last"][self.tree.links[self.legs.platform].q], 2 if self.legs.planar else 3
            found = PlatformPose(last[:size], last[size:])
        else:
            found = PlatformPose(inputs["last_position"], inputs["last_turn"])
        for _ in range(FAR):
            legs, missing = found.at_rest(self.form).equations, np.zeros(len(self.motors), dtype=object)
            for state, joint, motor in legs.motors():
                current, desired = state.at.q[joint], inputs["motor_position"][motor]
                if state.leg.tree.links[joint].periodic:  # the sine of a small angle: no angle has to be found from it
                    missing[motor] = np.sin(desired) * np.cos(current) - np.cos(desired) * np.sin(current)
                else:
                    missing[motor] = desired - current
            found = found.moved(solve(legs.columns.T, missing), self.legs.planar)
        return found

    def state(self, inputs: Given) -> LegState:
        """Newton for the platform alone, then its twist."""
        found, guess = self.platform_pose(inputs), inputs.get("last")
        still = found.at_rest(self.form)
        v, w = _split(solve(still.equations.columns.T, inputs["motor_rate"]), self.legs.planar)
        if guess is not None:
            guess = with_pose(self.legs, guess, np.concatenate([found.position, found.turn]))
        return replace(still, platform=replace(still.platform, v=v, w=w), guess=guess)

    def motion(self, state: LegState, inputs: Given) -> Given:
        """Accelerations of the platform."""
        legs, missing = state.equations, inputs["motor_acceleration"]
        drift = np.zeros(len(missing), dtype=object)
        for leg, joint, motor in legs.motors():
            drift[motor] = leg.qdd[joint]
        return self.form.of_platform(*_split(solve(legs.columns.T, missing - drift), self.legs.planar))

    def mass_matrix(self, state: LegState) -> tuple[Array, list[str]]:
        """In the rates of the motors."""
        return inertia_along(state.equations.inertia(), state.equations.columns.T, self.units), self.read

    def missed(self, state: LegState, inputs: Given) -> Answer:
        """Return how far the motors are from their positions."""
        return {"residual": residual_norm(motor_residual(self.legs, state.values, inputs["motor_position"]))}

    def found(self, state: LegState) -> Answer:
        """All positions, or the pose of the platform."""
        if state.found is None or state.guess is not None:
            return super().found(state)
        return {"position": state.found.position, "turn": state.found.turn}


class LegPlatformCoordinates(RequestedCoordinates):
    """Pose and twist of the platform, and its modes; joints follow in closed form."""

    def __init__(self, form: Any) -> None:
        super().__init__(form)
        self.twist = [f"{self.tree.links[form.legs.platform].name}.{TWIST[k]}" for k in self.tree.components]
        last: Groups = {"last": (self.tree.nq,)} if form.question.model == "kinematics" else {}
        self.position_groups = pose_groups(form.legs.planar) | form.modal_groups("elastic") | last
        self.rate_groups = form.modal_groups("elastic_rate") | vectors(form.legs.planar, "velocity", "angular_velocity")
        self.motion_groups, self.names = form.motion_groups, {}
        self.read = [*self.twist, *form.labels.get("elastic_rate", [])]

    def state(self, inputs: Given) -> LegState:
        """The platform as given."""
        state = self.form.state(inputs)
        if "last" not in inputs:
            return state
        legs, last, p, R = self.form.legs, inputs["last"], state.platform.p, state.platform.R
        before = last[self.tree.links[legs.platform].q]  # in its turn, or with the sign of its quaternion
        turn = [_near(R[0, 0], R[1, 0], before[2])] if legs.planar else quaternion_near(R, before[3:])
        q = np.array([*p[: 2 if legs.planar else 3], *turn])
        return replace(state, guess=with_pose(legs, last, q))

    def motion(self, state: LegState, inputs: Given) -> Given:
        """As given."""
        return inputs

    def direct(self, state: LegState, tau: Array) -> Answer:
        """Accelerations of the platform in world axes, and of its modes."""
        return self.form.direct(state, tau) | self.found(state)

    def kinematics(self, state: LegState) -> Answer:
        """All positions and rates."""
        return {"q": state.q, "rates": state.qd}

    def mass_matrix(self, state: LegState) -> tuple[Array, list[str]]:
        """In all components of the platform's twist."""
        return state.equations.inertia(), self.twist


@dataclass(frozen=True)
class LegFormulation(Formulation):
    """A robot on legs; models speak of the platform in world axes, in the plane only of what moves there."""

    name: ClassVar[str] = "leg form"
    coordinates: ClassVar[Mapping[str, Any]] = COORDINATES | {
        "motors": LegMotorCoordinates,
        "platform": LegPlatformCoordinates,
    }
    legs: Legs

    @property
    def equations(self) -> tuple[int, ...]:  # type: ignore[override]
        """Of a flexible platform some more."""
        return (19, 20, 21, 22, *((33, 34) if self.legs.elastic is not None else ()))

    @property
    def because(self) -> list[str]:
        """What a leg is reduced to, and how its joints follow."""
        two_bars = {isinstance(leg.geometry, TwoRevoluteLeg) for leg in self.legs.legs}
        kinds = ", ".join(sorted("two bars" if kind else "a slide on crossed hinges" for kind in two_bars))
        closed_form = f"Joint values follow from the platform in closed form ({kinds})."
        values = "Joint values are given." if self.question.positions_are_inputs else closed_form
        reduced = f"Each of {len(self.legs.legs)} legs is reduced to its effect on the platform at its end"
        text = [f"{reduced}; one {len(self.robot.actuated)} x {len(self.robot.actuated)} solve is left. {values}"]
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

    @property
    def angle(self) -> Angle:
        """How an angle is made of its cosine and sine."""
        return self.question.angle or (lambda cos, sin: np.arctan2(sin, cos))

    def ways(self) -> Sequence[Formulation]:
        """With the end masses of the legs on the platform or not."""
        if self.question.symbolic or self.question.model in TIME_MODELS:
            return [self]
        moved = end_masses_on_platform(self.legs)
        moved = replace(moved, body=cleaned_body(moved.body, moments_scale(moved.body, self.robot.tree.length)))
        return [replace(self, legs=legs) for legs in (moved, self.legs)]

    def modal_groups(self, *names: str) -> Groups:
        """Groups of the modes of a flexible platform."""
        elastic = self.legs.elastic
        return {} if elastic is None else dict.fromkeys(names, (elastic.body.size,))

    @property
    def state_groups(self) -> Groups:
        """Pose and twist of the platform, and its modes with their rates."""
        twist = vectors(self.legs.planar, "velocity", "angular_velocity")
        return pose_groups(self.legs.planar) | self.modal_groups("elastic", "elastic_rate") | twist

    @property
    def motion_groups(self) -> Groups:
        """Accelerations of the platform; its modes are free."""
        return vectors(self.legs.planar, "acceleration", "angular_acceleration")

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
        modes = [inputs[name] for name in self.modal_groups("elastic", "elastic_rate")]
        zero = np.zeros(3)
        platform = PlatformMotion(R, p, v, w, zero - self.robot.tree.gravity, zero, *modes)
        return LegState(self, platform, joint_values(self.legs, platform, self.angle))

    def of_platform(self, a: Array, al: Array) -> Answer:
        """Accelerations of the platform by their groups."""
        return dict(zip(self.motion_groups, to_plane(self.legs.planar, a, al), strict=True))

    def inverse(self, state: LegState, motion: Given) -> Answer:
        """Efforts of the motors, and accelerations of the modes of a flexible platform."""
        a, al = vectors_to_space(self.legs.planar, motion["acceleration"], motion["angular_acceleration"])
        effort, modes = state.driven(a, al).efforts()
        return {"effort": effort} | dict.fromkeys(self.modal_groups("elastic_acceleration"), modes)

    def direct(self, state: LegState, tau: Array) -> Answer:
        """Accelerations of the platform in world axes, and of its modes."""
        freedom, modes = state.equations.accelerations(tau)
        platform = self.of_platform(*_split(freedom, self.legs.planar))
        return platform | dict.fromkeys(self.modal_groups("elastic_acceleration"), modes)

    def motion_inputs(self, state: LegState, qdd: Array) -> Given:
        """Accelerations of the platform in world axes."""
        link = self.robot.tree.links[self.legs.platform]
        return self.of_platform(*(state.platform.R @ (S @ qdd[link.v]) for S in (link.joint.S_v, link.joint.S_w)))

    def all_accelerations(self, state: LegState, independent: Array) -> Array:
        """The legs follow the platform and its modes, whose accelerations are given in the platform's axes."""
        legs, tree = self.legs, self.robot.tree
        accelerations: Array = np.zeros(tree.n, dtype=scalar_type(independent, state.platform.R))
        accelerations[self.independent] = independent
        joint, platform_qdd = tree.links[legs.platform].joint, accelerations[tree.links[legs.platform].v]
        driven = state.driven(*(state.platform.R @ (S @ platform_qdd) for S in (joint.S_v, joint.S_w)))
        for moving in driven.states:
            leg, qdd = moving.leg, moving.qdd
            if legs.elastic is not None:
                bending = driven.R @ legs.elastic.rate(leg.number, independent[len(platform_qdd) :])
                qdd = qdd + solve(moving.J, to_leg_axes(leg, moving.at, bending))
            accelerations[[tree.links[j].v.start for j in leg.links]] = qdd
        return accelerations

    def systems(self, state: LegState, motors: bool) -> list[System]:
        """What each leg's joints do at its end; and the rates of the motors in those of the platform."""
        legs, tree = state.equations, self.robot.tree
        systems = []
        for leg in legs.states:
            rates = [tree.links[j].v.start for j in leg.leg.links]
            systems.append((leg.J, np.full(len(leg.J), 1 / tree.length), tree.rate_units[rates]))
        if motors and self.legs.elastic is None:
            rows = legs.columns.T
            systems.append((rows, 1 / tree.rate_units[list(self.robot.actuated)], self._units(rows.shape[1])))
        return systems

    def _units(self, count: int) -> Array:
        """Units of the freedoms of the platform and of its elastic unknowns."""
        units = np.ones(count)
        units[: 2 if self.legs.planar else 3] = self.robot.tree.length
        return units

    def inertia(self, state: LegState) -> tuple[Array, Array, bool]:
        """That of the platform and what the legs add to it."""
        A = state.equations.inertia()
        return A, self._units(len(A)), False

    def moving(self, q: Array, rates: Array, wrenches: Given | None = None) -> LegState:
        """The platform from its own coordinates; of the legs' positions only their turns are taken."""
        links = self.robot.tree.links
        link = links[self.legs.platform]
        platform_rates, ed = np.split(rates, [link.v.stop - link.v.start])
        R, p = link.joint.transform(q[link.q])
        v, w, zero = R @ (link.joint.S_v @ platform_rates), R @ (link.joint.S_w @ platform_rates), np.zeros(3)
        platform = PlatformMotion(R, p, v, w, zero - self.robot.tree.gravity, zero, q[link.e], ed)
        if self.question.positions_are_inputs:
            values = [np.array([q[links[j].q.start] for j in leg.links]) for leg in self.legs.legs]
        else:
            values = joint_values(self.legs, platform, self.angle)
        return LegState(self, platform, values, q, rates)

    def accelerations_under(self, state: LegState, tau: Array) -> Array:
        """Accelerations of the platform in its own axes, and of its modes, under the efforts of the motors."""
        freedom, modes = state.equations.accelerations(tau)
        return np.concatenate([state.in_joint(*_split(freedom, self.legs.planar)), modes])

    @property
    def prescribed(self) -> tuple[str, int]:
        """The platform is prescribed, by its accelerations in world axes."""
        return "platform_acceleration", 3 if self.legs.planar else 6

    def efforts_for(self, state: LegState, accelerations: Array) -> tuple[Array, Array]:
        """Efforts that drive the platform, [Long2014, eq. (46)], and its accelerations in its own axes."""
        a, al = _split(accelerations, self.legs.planar)
        effort, modes = state.driven(a, al).efforts()
        return effort, np.concatenate([state.in_joint(a, al), modes])

    @property
    def geometry_groups(self) -> Groups:
        """The pose of the platform and its modes; or the motors, and the pose before."""
        if self.question.model == "geometry-direct":
            return LegMotorCoordinates(self).position_groups
        return pose_groups(self.legs.planar) | self.modal_groups("elastic")

    def geometry(self, inputs: Given) -> tuple[Answer, dict[str, list[str]]]:
        """Joint values of the legs in closed form; or the pose of the platform by Newton."""
        if self.question.model == "geometry-direct":
            found, sensed = LegMotorCoordinates(self).platform_pose(inputs), inputs["motor_position"]
            values = found.at_rest(self).values
            residual = residual_norm(motor_residual(self.legs, values, sensed))
            answer = {"position": found.position, "turn": found.turn, "residual": residual}
            return answer, {"motor_position": self.robot.actuated_names}
        p, R = to_space(self.legs.planar, inputs["position"], inputs["rotation"])
        still, modes = [np.zeros(3)] * 4, [inputs[name] for name in self.modal_groups("elastic")]
        platform = PlatformMotion(R, p, *still, *modes)
        positions = plain_values(self.legs, joint_values(self.legs, platform, self.angle), np.zeros(self.robot.tree.nq))
        names = [link.name for leg in self.legs.legs for link in leg.tree.links]
        return {"joints": np.array(list(positions.values()), dtype=object)}, {"joints": names} | self.labels


def leg_formulation(robot: Robot, question: ModelRequest) -> LegFormulation | str:
    """The leg form of a robot, or why it has none or why this model of it is not written so."""
    legs = find_legs(robot)
    if isinstance(legs, str):
        return legs
    if not legs.closed_form and not question.positions_are_inputs:
        return "the joint values of its legs have no closed form that is recognised"
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
    springs = {link.joint.kind for link in robot.tree.links if link.terms.stiffness or link.terms.stop is not None}
    angles = (model in (*LOADED, *FOLLOWING) and "revolute" in springs) or (model in TIME_MODELS and springs)
    if angles and not question.positions_are_inputs:
        return "a spring acts on a joint of its legs, of which sine and cosine alone are known"
    if legs.elastic is not None:
        legs = replace(legs, legs=tuple(replace(leg, tree=grouped_tree(leg.tree)) for leg in legs.legs))
    return LegFormulation(robot, legs, question=question)


@dataclass(frozen=True, eq=False, repr=False)
class LegState(Record):
    """The platform in motion, without acceleration but for gravity, and the joint values of its legs."""

    form: LegFormulation
    platform: PlatformMotion
    values: Sequence[Array]
    guess: Array | None = None  # of all positions, where these were given
    rates: Array | None = None  # of the platform and its modes, in its own axes
    found: PlatformPose | None = None  # where motors say it

    @cached_property
    def equations(self) -> PlatformEquations:
        """Those of the platform without acceleration but for gravity."""
        return PlatformEquations(self.form.legs, self.values, self.platform)

    def driven(self, a: Array, al: Array) -> PlatformEquations:
        """Those of the platform with these accelerations in world axes.

        About the end of the first leg, whose forces have no moment there, unless the motors already need the others.
        """
        legs, platform = self.form.legs, replace(self.platform, a=a - self.form.robot.tree.gravity, al=al)
        about_origin = legs.elastic is not None or self.found is not None
        return PlatformEquations(legs, self.values, platform, None if about_origin else legs.legs[0].attachment)

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
        form, tree, platform = self.form, self.form.robot.tree, self.platform
        rates: Array = np.zeros(tree.n, dtype=object)
        own = np.concatenate([self.in_joint(platform.v, platform.w), platform.ed]) if self.rates is None else self.rates
        rates[form.independent] = own
        for leg in self.equations.states:
            rates[[tree.links[j].v.start for j in leg.leg.links]] = leg.qd
        return rates

    def in_joint(self, linear: Array, angular: Array) -> Array:
        """World vectors of the platform along the rates of its joint."""
        joint, R = self.form.robot.tree.links[self.form.legs.platform].joint, self.platform.R
        return joint.S_v.T @ (R.T @ linear) + joint.S_w.T @ (R.T @ angular)


# -- equations of the platform and its legs --------------------------------------------------------------
class PlatformEquations:
    """Wrenches and inertia of platform and legs along freedoms in world axes and elastic unknowns."""

    def __init__(
        self, form: Legs, values: Sequence[Array], platform: PlatformMotion, about: Array | None = None
    ) -> None:
        self.form, self.platform, self.elastic, self.R = form, platform, form.elastic, platform.R
        self.about = np.zeros(3) if about is None else self.R @ about  # moments are taken about this point
        self.states = [leg_motion(form, leg, q, platform) for leg, q in zip(form.legs, values, strict=True)]
        self.rigid = form.robot.tree.components

    def motors(self) -> Iterator[tuple[LegMotion, int, int]]:
        """Legs, their actuated joints and the numbers of their motors."""
        for state in self.states:
            for joint, motor in zip(state.leg.actuated, state.leg.motors, strict=True):
                yield state, joint, motor

    def _along(self, force: Array, moment: Array, elastic: Array) -> Array:
        """A world wrench and forces along the elastic unknowns, along the freedoms and these."""
        return np.concatenate([np.concatenate([force, moment])[self.rigid], elastic])

    def _at_attachment(self, leg: Leg, force: Array) -> Array:
        """A force at an attachment along the elastic unknowns."""
        return np.zeros(0) if self.elastic is None else self.elastic.slots[leg.number].T @ (self.R.T @ force)

    @cached_property
    def columns(self) -> Array:
        """Wrench on the platform per effort, J_r^-T of [Khalil2007, eq. (80)], over J_e^-T of [Long2014, eq. (33)]."""
        columns: list[Any] = [None] * len(self.form.robot.actuated)
        for state, joint, motor in self.motors():
            force = from_leg_axes(state.leg, state.at, solve(state.J.T, np.eye(state.leg.tree.n)[joint]))
            columns[motor] = self._along(
                force, cross(state.arm - self.about, force), self._at_attachment(state.leg, force)
            )
        return np.array(columns).T

    def loads(self, tau: Array | None = None) -> tuple[Array, Array, Array]:
        """What moves platform and legs under efforts, elastic rows, forces of motors; None: these hold their loads."""
        motors: Array = np.zeros(len(self.form.robot.actuated), dtype=object)
        force, moment, s = platform_wrench(self.form, self.platform)
        elastic = s if self.elastic is None else self.elastic.lift.T @ s
        for state in self.states:
            leg = state.leg
            H = newton_euler(leg.tree, state.at, state.moving).forces
            H = H + joint_forces(leg.tree, state.at.q, state.qd, state.qdd)
            actuated, numbers = list(leg.actuated), list(leg.motors)
            motors[numbers] = H[actuated]
            H[actuated] = 0.0 if tau is None else H[actuated] - tau[numbers]
            end_force = from_leg_axes(leg, state.at, solve(state.J.T, H))
            force, moment = force + end_force, moment + cross(state.arm, end_force)
            elastic = elastic + self._at_attachment(leg, end_force)
        rows = self._along(force, moment - cross(self.about, force), elastic)
        if self.elastic is not None:
            count = len(self.rigid)
            rows[:count] = rows[:count] - self.coupling @ (self.elastic.rest @ s)
        return rows, s, motors

    def inertia(self) -> Array:
        """Of the platform and its legs."""
        R, elastic, body = self.R, self.elastic, self.form.body
        S, Sigma = (body.S, body.Sigma) if elastic is None else elastic.body.deformed(self.platform.e)
        m = body.m if elastic is None else elastic.body.m
        platform = RigidBody(m, R @ S, world_second_moments(self.form, R, Sigma))
        A = platform.inertia_matrix()[np.ix_(self.rigid, self.rigid)]
        if elastic is not None:
            A_re = self.coupling
            corner = A_re @ elastic.lift
            A = np.block([[A - A_re @ elastic.rest @ A_re.T, corner], [corner.T, elastic.M_y]])
        A = A.astype(scalar_type(R))
        for state in self.states:
            ends, forces, picked = self._end_forces(state)
            A[np.ix_(picked, picked)] += ends.T @ forces
        return A

    def _end_forces(self, state: LegMotion) -> tuple[Array, Array, list[int]]:
        """Accelerations of the end of a leg per unit of the freedoms that move it, forces there, the freedoms."""
        leg, count = state.leg, len(self.rigid)
        M = mass_matrix(leg.tree, state.at)
        follow = solve(state.J, np.array([to_leg_axes(leg, state.at, axis) for axis in np.eye(3)]).T)
        inertia = follow.T @ M @ follow  # of the end, in world axes
        inertia = np.tril(inertia) + np.tril(inertia, -1).T  # symmetric, also in symbols
        ends = np.concatenate([np.eye(3), hat(state.arm).T], axis=1)[:, self.rigid]
        if self.elastic is None:
            return ends, inertia @ ends, list(range(count))
        slots = self.elastic.slots[leg.number]
        active = [k for k in range(slots.shape[1]) if slots[:, k].any()]
        moved = self.R @ slots[:, active]
        forces = np.concatenate([inertia @ ends, follow.T @ (M @ (follow @ moved))], axis=1)
        return np.concatenate([ends, moved], axis=1), forces, [*range(count), *(count + k for k in active)]

    @property
    def coupling(self) -> Array:
        """A_re in world axes, along the platform's freedoms."""
        assert self.elastic is not None
        A_re = self.elastic.body.coupling(self.platform.e)
        return np.concatenate([self.R @ A_re[:3], self.R @ A_re[3:]])[self.rigid]

    def efforts(self) -> tuple[Array, Array]:
        """Efforts of the motors, and accelerations of the modes of the platform."""
        (h, s, motors), B = self.loads(), self.columns
        if self.elastic is None:
            return solve(B, h) + motors, s
        rigid = len(self.rigid)
        A = self.inertia()[:, rigid:]
        # [Long2014, eqs. (44)-(49)]: elastic rows first, what they leave of the others
        G = solve_positive(A[rigid:], A[:rigid].T).T
        shared = solve(B[:rigid] - G @ B[rigid:], h[:rigid] - G @ h[rigid:])
        y = solve_positive(A[rigid:], B[rigid:] @ shared - h[rigid:])
        return shared + motors, self.elastic.accelerations(y, s)

    def accelerations(self, tau: Array) -> tuple[Array, Array]:
        """Accelerations of the platform's freedoms and elastic unknowns, and of its modes, that efforts add to these.

        A Vd + h = B tau, theory (20) to (22), [Khalil2007, eqs. (28)-(30)].
        """
        h, s, _ = self.loads(tau)
        freedom = solve_positive(self.inertia(), -h)
        if self.elastic is None:
            return freedom, np.zeros(0)
        rigid = len(self.rigid)
        return freedom, self.elastic.accelerations(freedom[rigid:], s + self.coupling.T @ freedom[:rigid])


# -- the platform by its motors --------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, repr=False)
class PlatformPose(Record):
    """Position and, in space, quaternion; in the plane x, y and the angle."""

    position: Array
    turn: Array

    def at_rest(self, form: LegFormulation) -> LegState:
        """The platform and its legs here, without motion, under gravity."""
        planar, zero = form.legs.planar, np.zeros(3)
        R = rotation_about(2, self.turn[0]) if planar else quaternion_matrix(self.turn)
        p = np.array([*self.position, 0.0]) if planar else self.position
        platform = PlatformMotion(R, p, zero, zero, -form.robot.tree.gravity, zero)
        return LegState(form, platform, joint_values(form.legs, platform, form.angle), found=self)

    def moved(self, step: Array, planar: bool) -> PlatformPose:
        """The pose after a small step in world axes."""
        if planar:
            return PlatformPose(self.position + step[:2], self.turn + step[2:])
        turn = quaternion_product(np.array([1.0, *(step[3:] / 2)]), self.turn)
        return PlatformPose(self.position + step[:3], turn / np.sqrt(turn @ turn))


def joint_values(form: Legs, platform: PlatformMotion, angle: Angle) -> list[Array]:
    """Joint values of the legs in closed form."""
    return [np.array(leg_values(form, leg, platform, angle), dtype=object) for leg in form.legs]


def motor_residual(form: Legs, values: Sequence[Array], motors: Array) -> Array:
    """Return how far motors are from the given values, in metres; angles as chords, which vanish at no other angle."""
    length, gaps = form.robot.tree.length, []
    for leg, joints in zip(form.legs, values, strict=True):
        for joint, motor in zip(leg.actuated, leg.motors, strict=True):
            link, current, desired = leg.tree.links[joint], joints[joint], motors[motor]
            if link.periodic:
                gaps += [length * (np.sin(desired) - np.sin(current)), length * (np.cos(desired) - np.cos(current))]
            else:
                unit = length if link.joint.rate_units[0] == "rad" else 1.0
                gaps.append(unit * (desired - current))
    return np.array(gaps)


def _split(freedom: Array, planar: bool) -> tuple[Array, Array]:
    """A vector and an angular one from the components of the platform's freedoms."""
    return vectors_to_space(planar, freedom[:2], freedom[2:3]) if planar else (freedom[:3], freedom[3:6])


def plain_values(legs: Legs, values: Sequence[Array], near: Array) -> dict[int, Any]:
    """Joint values by position coordinate of the robot, angles as numbers in the turn of those near."""
    links, positions = legs.robot.tree.links, {}
    for leg, joints in zip(legs.legs, values, strict=True):
        for link, value in zip((links[j] for j in leg.links), joints, strict=True):
            place = link.q.start
            positions[place] = _near(np.cos(value), np.sin(value), near[place]) if link.periodic else value
    return positions


def _near(cos: Any, sin: Any, guess: Any) -> Any:
    """The angle with this cosine and sine in the turn of a guess."""
    c, s = np.cos(guess), np.sin(guess)
    return guess + np.arctan2(sin * c - cos * s, cos * c + sin * s)


def with_pose(legs: Legs, q: Any, platform_q: Array) -> Any:
    """All positions with other ones of the platform."""
    placed = q.copy()
    placed[legs.robot.tree.links[legs.platform].q] = platform_q
    return placed
