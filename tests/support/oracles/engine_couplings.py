"""Coupled joints by constraints of other engines: joints and tendons of MuJoCo, mimic joints of Pinocchio."""

import numpy as np
from scipy.spatial.transform import Rotation

from . import chart
from .reader import Frame, RobotData

HARD = 'solref="0.02 1" solimp="0.9999 0.9999 0.001 0.5 2"'  # as hard as MuJoCo allows


def _numbers(values) -> str:
    return " ".join(repr(float(value)) for value in np.ravel(values))


def _central(frame: Frame, planar: bool) -> tuple[np.ndarray, np.ndarray]:
    """Centre and inertia about it; of a planar robot only the turn about z is felt."""
    centre = frame.first_moment / frame.mass
    about = frame.inertia - frame.mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    return centre, np.eye(3) * about[2, 2] if planar else about


def mjcf(data: RobotData) -> str:
    """A robot of turning and sliding joints without loops; each coupling is an equality, or a tendon with a spring."""
    children: dict[str, list[Frame]] = {}
    for frame in data.frames:
        children.setdefault(frame.parent, []).append(frame)

    def body(frame: Frame) -> str:
        placed = chart.placement(frame)
        quaternion = Rotation.from_matrix(placed[:3, :3]).as_quat(scalar_first=True)
        text = f'<body name="{frame.name}" pos="{_numbers(placed[:3, 3])}" quat="{_numbers(quaternion)}">'
        if frame.kind != "fixed":
            kind = {"rz": "hinge", "pz": "slide"}[frame.kind]
            text += (
                f'<joint name="{frame.rates[0]}" type="{kind}" axis="0 0 1" armature="{frame.motor_inertia!r}" '
                f'damping="{frame.damper!r}"/>'
            )
        if frame.mass:
            centre, about = _central(frame, data.planar)
            entries = [about[0, 0], about[1, 1], about[2, 2], about[0, 1], about[0, 2], about[1, 2]]
            text += f'<inertial pos="{_numbers(centre)}" mass="{frame.mass!r}" fullinertia="{_numbers(entries)}"/>'
        return text + "".join(body(child) for child in children.get(frame.name, [])) + "</body>"

    tendons, equalities = "", ""
    for coupled in data.couplings:
        joint, *others = coupled.weights
        if len(others) == 1 and coupled.stiffness is None:
            law = _numbers([coupled.offset, -coupled.weights[others[0]], 0, 0, 0])
            equalities += f'<joint joint1="{joint}" joint2="{others[0]}" polycoef="{law}" {HARD}/>'
            continue
        parts = "".join(f'<joint joint="{name}" coef="{weight!r}"/>' for name, weight in coupled.weights.items())
        spring = f'stiffness="{coupled.stiffness or 0.0!r}" damping="{coupled.damping!r}"'
        tendons += f'<fixed name="{coupled.name}" {spring} springlength="{coupled.offset!r}">{parts}</fixed>'
        if coupled.stiffness is None:
            law = _numbers([coupled.offset, 0, 0, 0, 0])
            equalities += f'<tendon tendon1="{coupled.name}" polycoef="{law}" {HARD}/>'
    return (
        '<mujoco><compiler angle="radian" inertiafromgeom="false" autolimits="false"/>'
        f'<option gravity="{_numbers(data.gravity)}" jacobian="dense" tolerance="1e-15"/><worldbody>'
        + "".join(body(frame) for frame in children["base"])
        + f"</worldbody><tendon>{tendons}</tendon><equality>{equalities}</equality></mujoco>"
    )


def mujoco_accelerations(data: RobotData, q, qd, efforts) -> tuple[dict[str, float], dict[str, float]]:
    """Accelerations of all joints by name, with positions, rates and efforts by name: as MuJoCo has them, and rigid.

    MuJoCo's constraints give way by 1e-4 of what joints would do without them, which gears amplify. The rigid answer
    has its inertia, its smooth accelerations and its rows of the constraints, and no softness.
    """
    import mujoco

    model = mujoco.MjModel.from_xml_string(mjcf(data))
    state = mujoco.MjData(model)
    for name, value in q.items():
        state.joint(name).qpos[0], state.joint(name).qvel[0] = value, qd[name]
    for name, value in efforts.items():
        state.joint(name).qfrc_applied[0] = value
    mujoco.mj_forward(model, state)
    M = np.zeros((model.nv, model.nv))
    for k, unit in enumerate(np.eye(model.nv)):
        mujoco.mj_mulM(model, state, M[k], unit)
    J, smooth = np.array(state.efc_J).reshape(state.nefc, model.nv), np.array(state.qacc_smooth)
    held = np.linalg.solve(M, J.T)
    rigid = smooth - held @ np.linalg.solve(J @ held, J @ smooth) if len(J) else smooth
    order = [int(model.joint(name).dofadr[0]) for name in q]
    soft = (dict(zip(q, map(float, values[order]), strict=True)) for values in (np.array(state.qacc), rigid))
    return tuple(soft)


def mimic_equations(data: RobotData, leader: str, q, rate: float) -> tuple[float, float]:
    """Inertia and bias along one joint that all others mimic, by Pinocchio; without friction and dampers."""
    import pinocchio as pin

    joints = {"rz": pin.JointModelRZ, "pz": pin.JointModelPZ}
    model, carriers = pin.Model(), {"base": (0, pin.SE3.Identity())}
    model.gravity.linear = data.gravity
    for frame in data.frames:
        joint, offset = carriers[frame.parent]
        placement = offset * pin.SE3(chart.placement(frame))
        if frame.kind != "fixed":
            joint = model.addJoint(joint, joints[frame.kind](), placement, frame.rates[0])
            placement = pin.SE3.Identity()
        if frame.mass:
            centre, about = _central(frame, False)
            model.appendBodyToJoint(joint, pin.Inertia(frame.mass, centre, about), placement)
        carriers[frame.name] = (joint, placement)
    ratios, offsets = followed(data, leader)
    for name, ratio in ratios.items():
        if name != leader:
            ids = model.getJointId(leader), model.getJointId(name)
            model = pin.transformJointIntoMimic(model, *ids, ratio, offsets[name])
    work = model.createData()
    position, speed = np.array([q[leader]]), np.array([rate])
    rotors = sum(f.motor_inertia * ratios[f.rates[0]] ** 2 for f in data.frames if f.kind != "fixed")
    mass = float(pin.crba(model, work, position)[0, 0]) + rotors
    return mass, float(pin.rnea(model, work, position, speed, np.zeros(1))[0])


def followed(data: RobotData, leader: str) -> tuple[dict[str, float], dict[str, float]]:
    """Ratio and offset of every joint to the leader, along couplings of two joints."""
    ratios, offsets = {leader: 1.0}, {leader: 0.0}
    for _ in data.couplings:
        for coupled in data.couplings:
            known = [name for name in coupled.weights if name in ratios]
            new = [name for name in coupled.weights if name not in ratios]
            if known and len(new) == 1:
                weight = coupled.weights[new[0]]
                ratios[new[0]] = -sum(coupled.weights[name] * ratios[name] for name in known) / weight
                carried = sum(coupled.weights[name] * offsets[name] for name in known)
                offsets[new[0]] = (coupled.offset - carried) / weight
    return ratios, offsets
