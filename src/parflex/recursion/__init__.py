"""The recursion over the tree: motion from the base outwards, wrenches from the tips inwards."""

from parflex.recursion.composite import mass_matrix
from parflex.recursion.kinematics import Motion, Pose, jacobians, motion, pose
from parflex.recursion.newton_euler import NewtonEuler, joint_forces, newton_euler

__all__ = [
    "Motion",
    "NewtonEuler",
    "Pose",
    "jacobians",
    "joint_forces",
    "mass_matrix",
    "motion",
    "newton_euler",
    "pose",
]
