"""What the options of a file of MuJoCo switch off, taken out of the compiled model; gravity that bodies do not feel."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.exchange.importing.foreign_robot import ForeignRobot, numbers

SWITCHED = {  # by flag what is left out, and its arrays in a compiled model
    "equality": ("equalities", ("eq_active0",)),
    "frictionloss": ("friction of joints and tendons", ("dof_frictionloss", "tendon_frictionloss")),
    "limit": ("limits of joints and tendons", ("jnt_limited", "tendon_limited")),
    "spring": ("springs", ("jnt_stiffness", "jnt_stiffnesspoly", "jnt_springyield", "tendon_stiffness")),
    "damper": ("dampers", ("dof_damping", "dof_dampingpoly", "tendon_damping")),
}  # fmt: skip
TOGETHER = {"constraint": ("equality", "frictionloss", "limit"), "passive": ("spring", "damper")}
SAME = 1e-12  # of a share of gravity


def flags_off(mujoco: Any, model: Any) -> set[str]:
    """Words of `<flag>` that are disabled, with those that others take along."""
    bits = {name[7:].lower(): int(bit) for name, bit in vars(mujoco.mjtDisableBit).items() if name.startswith("mjDSBL")}
    off = {name for name, bit in bits.items() if int(model.opt.disableflags) & bit}
    return off.union(*(TOGETHER[name] for name in off if name in TOGETHER))


def switch_off(mujoco: Any, model: Any, robot: ForeignRobot) -> None:
    """Set to zero what flags disable, and tell what that was."""
    off = flags_off(mujoco, model)
    for flag, (what, arrays) in SWITCHED.items():
        if flag not in off:
            continue
        found = [array for name in arrays if (array := getattr(model, name, None)) is not None and np.any(array)]
        for array in found:
            array[:] = 0
        if found:
            robot.drop("flag", flag, f"the source switches its {what} off")
            robot.warnings.append(f"{what} are left out: the option {flag} is disabled in the source")
    if "actuation" in off and model.nu:
        robot.warnings.append("actuators are motors here, although the option actuation is disabled in the source")
    if {"spring", "damper"} <= off:  # then MuJoCo computes no passive forces
        model.body_gravcomp[:] = 0
    robot.gravity = [0.0, 0.0, 0.0] if "gravity" in off else numbers(model.opt.gravity)
    if any(robot.gravity):
        _felt(mujoco, model, robot)


def _felt(mujoco: Any, model: Any, robot: ForeignRobot) -> None:
    """Gravity less the share that all bodies are relieved of; where shares differ, they are not carried over."""
    moving = [body for body in range(1, model.nbody) if model.body_weldid[body] and model.body_subtreemass[body]]
    shares = {body: float(model.body_gravcomp[body]) for body in moving if model.body_mass[body]}
    if not any(shares.values()):
        return
    by_motors = np.any(getattr(model, "jnt_actgravcomp", 0))
    share = next(iter(shares.values()))
    if not by_motors and max(abs(other - share) for other in shares.values()) < SAME:
        robot.gravity = [(1 - share) * value + 0.0 for value in robot.gravity]
        robot.warnings.append(f"all bodies are relieved of {share:.4g} of gravity: it is left out of the gravity here")
        return
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, body) or f"body{body}" for body in shares]
    relieved = [name for name, value in zip(names, shares.values(), strict=True) if value]
    for name in relieved:
        robot.drop("gravity compensation", name, "all bodies feel gravity here")
    robot.warnings.append(
        f"gravity compensation of {', '.join(relieved[:4])}{' and others' if len(relieved) > 4 else ''} is left out: "
        "efforts here hold the whole weight" + (" (in the source motors do)" if by_motors else "")
    )
