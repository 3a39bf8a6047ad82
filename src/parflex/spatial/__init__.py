"""Rotations and transforms over any scalar: floats compute, symbols trace."""

from parflex.spatial.rotations import (
    cross,
    exponential,
    hat,
    inverse_left_jacobian,
    left_jacobian,
    left_jacobian_rate,
    mdh_transform,
    placed,
    quaternion_matrix,
    quaternion_near,
    quaternion_product,
    rotation_about,
    rotation_from_vector,
    vector_from_rotation,
    vector_length,
    vector_quaternion,
)

__all__ = [
    "cross",
    "exponential",
    "hat",
    "inverse_left_jacobian",
    "left_jacobian",
    "left_jacobian_rate",
    "mdh_transform",
    "placed",
    "quaternion_matrix",
    "quaternion_near",
    "quaternion_product",
    "rotation_about",
    "rotation_from_vector",
    "vector_from_rotation",
    "vector_length",
    "vector_quaternion",
]
