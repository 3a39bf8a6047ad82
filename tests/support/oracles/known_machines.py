"""Closed forms of machines that people know, as their papers have them; numbers of the files are arguments."""

import numpy as np

Array = np.ndarray


def orthoglide_design(edge: float, least: float, most: float) -> tuple[float, float, float]:
    """Length of the legs and both corners of a cube on x = y = z, from the velocity factors there: [Chablat2003].

    At (p, p, p) they are 1 / (1 - 2 r) along the line, 1 / (1 + r) across, with r = p / sqrt(L^2 - 2 p^2).
    """
    r_near = min((1 - 1 / most) / 2, 1 / least - 1)
    r_far = max((1 - 1 / least) / 2, 1 / most - 1)
    near, far = (r / np.sqrt(1 + 2 * r**2) for r in (r_near, r_far))
    length = edge / (near - far)
    return length, near * length, far * length


def orthoglide_slides(p: Array, length: float) -> Array:
    """(p_i - rho_i)^2 + p_j^2 + p_k^2 = L^2, the slides beyond the tool."""
    return p + np.sqrt(length**2 - p @ p + p**2)


def orthoglide_inverse_jacobian(p: Array, length: float) -> Array:
    """Rates of the slides by velocity of the tool: the legs push along themselves."""
    along = np.diag(orthoglide_slides(p, length)) - p
    return along / np.diag(along)[:, None]


def rail_slides(position: Array, rotation: Array, balls: Array, rails: Array, sides: Array, rod: float) -> Array:
    """Sliders along x on rails at y, in the plane z = 0, with rods of one length to balls on the platform."""
    place = position + balls @ rotation.T
    across = (place[:, 1] - rails) ** 2 + place[:, 2] ** 2
    return place[:, 0] + sides * np.sqrt(rod**2 - across)


def two_bar_angles(feet: Array, ends: Array, proximal: float, distal: float, signs: Array) -> tuple[Array, Array]:
    """Angles at feet and elbows of legs with two bars in the plane, by the law of cosines."""
    way = ends - feet
    square = (way**2).sum(1)
    elbow = signs * np.arccos((square - proximal**2 - distal**2) / (2 * proximal * distal))
    inner = np.arctan2(distal * np.sin(elbow), proximal + distal * np.cos(elbow))
    return np.arctan2(way[:, 1], way[:, 0]) - inner, elbow
