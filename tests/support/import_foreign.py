"""Pinocchio's model of an imported URDF whose loops name other kinds of joints."""

from __future__ import annotations

import pinocchio as pin

AXES = {"X": pin.JointModelRX, "Y": pin.JointModelRY, "Z": pin.JointModelRZ}


def changed(urdf: str, loops: dict):
    """Pinocchio's model with joints of other kinds, as the file of loops says."""
    model = pin.buildModelFromUrdf(urdf)
    kinds = dict(zip(loops.get("joint_name", []), loops.get("joint_type", []), strict=True))
    if not kinds:
        return model
    new, held, numbers = pin.Model(), [], {0: 0}
    for k in range(1, model.njoints):
        name, place, parent = model.names[k], model.jointPlacements[k], numbers[model.parents[k]]
        kind, joint, own = kinds.get(name, ""), model.joints[k], model.names[k]
        if kind == "SPHERICAL":
            joint = pin.JointModelSpherical()
        elif kind.startswith("UJOINT"):
            parent = new.addJoint(parent, AXES[kind[-2]](), place, f"{name}_{kind[-2]}")
            joint, place, own = AXES[kind[-1]](), pin.SE3.Identity(), f"{name}_{kind[-1]}"
        numbers[k] = new.addJoint(parent, joint, place, own)
        new.appendBodyToJoint(numbers[k], model.inertias[k], pin.SE3.Identity())
        held += [numbers[k]] if kind == "FIXED" else []
    for frame in list(model.frames)[1:]:
        new.addFrame(pin.Frame(frame.name, numbers[frame.parentJoint], frame.placement, frame.type), False)
    return pin.buildReducedModel(new, held, pin.neutral(new)) if held else new
