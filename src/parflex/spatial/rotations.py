"""Convert between rotation matrices, quaternions (scalar first), rotation vectors and Khalil-Kleinfinger transforms.

Sines and cosines of angles in input files are exact at multiples of 15 degrees, also for angles within rounding of
them. The cosine of the float nearest to pi/2 is 6e-17, which would cost operators in a program, and entries that are
equal by symmetry must be equal to the last digit. All four quadrants share one table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import factorial, sqrt
from typing import Any

import numpy as np

from parflex.spatial.batched import apply_rowwise, is_batched, is_varied

Array = np.ndarray
E3 = np.eye(3)  # identity, whose copy takes a fifth of the time of np.eye

ORIENTATION = tuple(f"orientation_{part}" for part in "wxyz")  # columns of the unit quaternion of a frame in the world
# (1 - (x/2) cot(x/2)) / x^2 in powers of x^2: Bernoulli numbers over factorials
INVERSE_SERIES = (1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600)
SERIES = 9  # terms of the series below: exact to rounding up to half a turn
INVERSE_FACTORIALS = [1 / factorial(k) for k in range(2 * SERIES + 2)]
STEP = math.pi / 12
# sines of 0, 15, ... 90 degrees
SINE_TABLE = (0.0, (sqrt(6) - sqrt(2)) / 4, 0.5, sqrt(0.5), sqrt(0.75), (sqrt(6) + sqrt(2)) / 4, 1.0)
ROUNDING = 4 * 2.0**-52  # of an angle computed by a few operations, such as 150*(pi/180)
LARGEST = 1000.0  # rad: larger angles have too much rounding to be a multiple of 15 degrees


def hat(p: Any) -> Array:
    """Return the matrix of the cross product with p."""
    x, y, z = _components(p)
    zero = x * 0
    return np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]])


def cross(a: Any, b: Any) -> Array:
    """Return the cross product, ten times as fast as NumPy's; `b` may be a matrix of columns."""
    ax, ay, az = _components(a)
    bx, by, bz = _components(b)
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def _components(vector: Any) -> Any:
    """Return three numbers, or rows of a matrix, as Python objects, which compute faster than NumPy scalars."""
    return vector.tolist() if isinstance(vector, np.ndarray) and vector.ndim == 1 else vector


def vector_length(vector: Any) -> Any:
    """Return the length of a vector over any scalar; a zero vector has length zero without slopes."""
    vector = np.asarray(vector)
    if vector.dtype != object:
        return np.linalg.norm(vector)
    square = vector @ vector
    return np.sqrt(square) if square > 0 else 0.0


def rotation_about(axis: int, angle: Any) -> Array:
    """Return the rotation by `angle` about axis 0, 1 or 2."""
    return _about(axis, np.cos(angle), np.sin(angle))


def exact_rotation(axis: int, angle: float) -> Array:
    """Return the rotation by an angle of an input file about axis 0, 1 or 2, exact at multiples of 15 degrees."""
    return _about(axis, cosine(angle), sine(angle))


def _about(axis: int, c: Any, s: Any) -> Array:
    if isinstance(c, float):  # NumPy makes arrays faster of numbers of Python alone
        c, s, one, zero = float(c), float(s), 1.0, 0.0
    else:
        one, zero = 1, 0
    if axis == 0:
        return np.array([[one, zero, zero], [zero, c, -s], [zero, s, c]])
    if axis == 1:
        return np.array([[c, zero, s], [zero, one, zero], [-s, zero, c]])
    return np.array([[c, -s, zero], [s, c, zero], [zero, zero, one]])


def mdh_transform(gamma: float, b: float, alpha: float, d: float, theta: float, r: float) -> tuple[Array, Array]:
    """Return Rot(z,gamma) Trans(z,b) Rot(x,alpha) Trans(x,d) Rot(z,theta) Trans(z,r), theory (1)."""
    first = exact_rotation(2, gamma) @ exact_rotation(0, alpha)
    rotation = first @ exact_rotation(2, theta)
    position = np.array([0.0, 0.0, b]) + first @ np.array([d, 0.0, 0.0]) + rotation @ np.array([0.0, 0.0, r])
    return exact_entries(rotation), exact_entries(position)


def exact_entries(values: Array) -> Array:
    """Round entries that are 0, 1 or -1 to rounding of cos(pi/2)."""
    if values.dtype == object:
        return values
    nearest = np.round(values)
    return np.where(np.abs(values - nearest) < 1e-15, nearest, values)


def compose(rotation: Array, position: Array, R: Array, p: Array) -> tuple[Array, Array]:
    """Return rotation and position of a frame at (R, p) in a frame at (rotation, position).

    Coordinates that cancel to rounding are zero.
    """
    new_rotation, new_position = rotation @ R, position + rotation @ p
    if new_rotation.dtype == object or new_position.dtype == object:
        return new_rotation, new_position
    rounding = 4 * np.finfo(float).eps * (np.abs(position) + np.abs(rotation) @ np.abs(p))
    return exact_entries(new_rotation), np.where(np.abs(new_position) <= rounding, 0.0, new_position)


def quaternion_matrix(quaternion: Any) -> Array:
    """Return the rotation matrix of a unit quaternion."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def unit_quaternion(quaternion: Any) -> Array:
    """Return the quaternion divided by its length."""
    return quaternion / np.linalg.norm(quaternion)


def quaternion_product(a: Any, b: Any) -> Array:
    """Return the quaternion of the rotation a b."""
    vector = a[0] * np.asarray(b[1:]) + b[0] * np.asarray(a[1:]) + cross(a[1:], b[1:])
    return np.array([a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], *vector])


def quaternion_near(R: Any, reference: Any) -> Array:
    """Return the unit quaternion of a rotation matrix nearer to another quaternion, without branches.

    4 Q Q^T is linear in R, and Q Q^T times any quaternion is a multiple of Q, zero only half a turn away.
    """
    quaternion = _square(R) @ np.asarray(reference)
    return quaternion / np.sqrt(quaternion @ quaternion)


def _square(R: Any) -> Array:
    """Return 4 Q Q^T of the quaternion Q of a rotation matrix, or of many along leading axes."""
    (a, d, e), (f, b, g), (h, i, c) = R
    return np.array(
        [
            [1 + a + b + c, i - g, e - h, f - d],
            [i - g, 1 + a - b - c, d + f, e + h],
            [e - h, d + f, 1 - a + b - c, g + i],
            [f - d, e + h, g + i, 1 - a - b + c],
        ]
    )


def quaternions(rotations: Array) -> Array:
    """Return a unit quaternion for each of many rotation matrices.

    4 Q Q^T is linear in R; its longest row belongs to the largest component and is a multiple of Q.
    """
    table = _square(rotations.transpose(1, 2, 0)).transpose(2, 0, 1)
    largest = np.argmax(np.einsum("tii->ti", table), axis=1)
    rows = table[np.arange(len(table)), largest]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def vector_quaternion(vector: Any) -> Array:
    """Return the unit quaternion of a rotation vector, or of each row."""
    vector = np.asarray(vector)
    if vector.dtype == object and any(map(is_varied, vector.ravel())):
        if not (square := vector @ vector) > 0:
            return np.array([1.0, *(0.5 * vector)], dtype=object)  # to first order; designs that turn are marked
        half = 0.5 * np.sqrt(square)
        return np.array([np.cos(half), *(0.5 * np.sin(half) / half * vector)], dtype=object)
    vector = vector.astype(float)
    half = 0.5 * np.linalg.norm(vector, axis=-1, keepdims=True)
    return np.concatenate([np.cos(half), 0.5 * np.sinc(half / np.pi) * vector], axis=-1)


def rotation_from_vector(vector: Any) -> Array:
    """Return exp(hat(vector)), exact at multiples of 15 degrees about one axis."""
    nonzero_axes = [k for k in range(3) if vector[k] != 0]
    if len(nonzero_axes) == 1:
        return exact_entries(exact_rotation(nonzero_axes[0], vector[nonzero_axes[0]]))
    return exact_entries(quaternion_matrix(vector_quaternion(vector)))


def exponential(th: Array) -> Array:
    """Return exp(hat(th)) without division, so that th = 0 can be traced.

    A rotation about one axis of the frame is a sine and a cosine, any other a series.
    """
    if _is_zero_rotation(th):
        return E3.copy()
    nonzero_axes = [k for k in range(3) if not (isinstance(th[k], float) and th[k] == 0)]
    if len(nonzero_axes) == 1:
        return rotation_about(nonzero_axes[0], th[nonzero_axes[0]])
    a, b, _ = _series(th @ th)
    H = hat(th)
    return E3 + a * H + b * (H @ H)


def left_jacobian(th: Array) -> Array:
    """Return L(th), with L(th) th_dot the angular velocity of exp(hat(th)) in the axes before the rotation."""
    if _is_zero_rotation(th):
        return E3.copy()
    _, b, c = _series(th @ th)
    H = hat(th)
    return E3 + b * H + c * (H @ H)


def _is_zero_rotation(th: Array) -> bool:
    """Return whether a rotation vector is zero, as in undeformed bodies."""
    return th.dtype == float and th.tolist() == [0.0, 0.0, 0.0]  # `any` takes ten times as long


def inverse_left_jacobian(th: Array) -> Array:
    """Return L(th)^-1, to rounding for the small rotations of elastic bodies."""
    s = th @ th
    d: Any = 0.0
    for term in reversed(INVERSE_SERIES):
        d = d * s + term
    H = hat(th)
    return np.eye(3) - H / 2 + d * (H @ H)


def left_jacobian_rate(th: Array, th_dot: Array) -> Array:
    """Return L_dot th_dot, the angular acceleration at th_ddot = 0."""
    if _is_zero_rotation(th):
        return np.zeros(3)
    s, sd = th @ th, 2 * (th @ th_dot)
    _, _, c = _series(s)
    b_prime, c_prime = _series_slopes(s)
    x = cross(th, th_dot)
    return b_prime * sd * x + c_prime * sd * cross(th, x) + c * cross(th_dot, x)


def _series(s: Any) -> tuple[Any, Any, Any]:
    """Return a, b, c of exp and L: sums of (-s)^i over (2i+1)!, (2i+2)! and (2i+3)!."""
    a = b = c = 0.0
    negated = -s
    for k in range(2 * SERIES - 1, 0, -2):
        a = a * negated + INVERSE_FACTORIALS[k]
        b = b * negated + INVERSE_FACTORIALS[k + 1]
        c = c * negated + INVERSE_FACTORIALS[k + 2]
    return a, b, c


def _series_slopes(s: Any) -> tuple[Any, Any]:
    """Return the derivatives of b and c by s."""
    b = c = 0.0
    for i in reversed(range(1, SERIES)):
        b, c = (term * -s - i / factorial(2 * i + k) for term, k in ((b, 2), (c, 3)))
    return b, c


def matrix_quaternion(rotation: Array) -> Array:
    """Return the unit quaternion of a rotation matrix with positive scalar part."""
    square = _square(rotation)
    k = int(np.argmax(np.diag(square)))  # the largest of the four squares is safe to divide by
    quaternion = 0.5 * square[k] / np.sqrt(square[k, k])
    return -quaternion if quaternion[0] < 0 else quaternion


def vector_from_rotation(rotation: Array) -> Array:
    """Return the rotation vector of a rotation matrix, of length at most pi, also over batched numbers."""
    if is_batched(rotation):
        return apply_rowwise(_rotation_vectors, rotation)
    quaternion = matrix_quaternion(rotation)
    square = quaternion[1:] @ quaternion[1:]
    if square < 1e-24:
        return 2.0 * quaternion[1:]
    sine = np.sqrt(square)
    return (2.0 * np.arctan2(sine, quaternion[0]) / sine) * quaternion[1:]


def _rotation_vectors(rotations: Array) -> Array:
    """Return the rotation vectors of many rotation matrices."""
    unit = quaternions(rotations)
    sines = np.linalg.norm(unit[:, 1:], axis=1)
    angles = 2.0 * np.arctan2(sines, np.abs(unit[:, 0]))
    return (np.copysign(angles, unit[:, 0]) / np.maximum(sines, 1e-12))[:, None] * unit[:, 1:]


def sine(angle: Any) -> Any:
    """Return the sine, exact at multiples of 15 degrees."""
    return angle.sin() if is_varied(angle) else _exact(math.sin, angle, 0)


def cosine(angle: Any) -> Any:
    """Return the cosine, exact at multiples of 15 degrees."""
    return angle.cos() if is_varied(angle) else _exact(math.cos, angle, 6)


def tangent(angle: Any) -> Any:
    """Return the tangent; raise ZeroDivisionError at a right angle."""
    return sine(angle) / cosine(angle)


def _exact(function: Callable[[float], float], angle: float, ahead: int) -> float:
    """Return the function, exact at multiples of the step by the sine shifted by `ahead` steps."""
    steps = round(angle / STEP) if abs(angle) < LARGEST else math.inf
    if not abs(angle - steps * STEP) <= ROUNDING * abs(angle):
        return function(angle)
    half, place = divmod((int(steps) + ahead) % 24, 12)
    value = SINE_TABLE[min(place, 12 - place)]
    return -value if half and value else value
