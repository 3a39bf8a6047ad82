"""The 3-PRS tripod with a 2R wrist by its lengths and angles alone: joints for a place and a direction of its tool."""

import numpy as np
from scipy.spatial.transform import Rotation

LEG = 0.5
ANGLES = np.radians([0.0, 125.0, 235.0])
RADII = np.array([0.5, 0.52, 0.48])
BALLS = np.array(
    [
        [0.25, 0.0, 0.0],
        [0.25 * np.cos(ANGLES[1]), 0.25 * np.sin(ANGLES[1]), 0.0],
        [0.24 * np.cos(ANGLES[2]), 0.24 * np.sin(ANGLES[2]), 0.01],
    ]
)
HOME = {"a.P": 0.1, "b.P": 0.12, "c.P": 0.08, "w1": 0.4, "w2": 0.5}


def joints_at(place: np.ndarray, direction: np.ndarray) -> dict[str, float]:
    """Strokes of the slides and angles of the wrist, from home on."""
    strokes, x = np.array([HOME["a.P"], HOME["b.P"], HOME["c.P"]]), _home()
    x, _ = _newton(lambda u: _gaps(np.concatenate([strokes, u])), x)
    x = np.concatenate([strokes, x, [HOME["w1"], HOME["w2"]]])
    begin_p, begin_z = _tool(x)
    for share in np.linspace(0.1, 1.0, 10):  # in small steps: the same branch
        z = begin_z + share * (direction - begin_z)
        goal_p, goal_z = begin_p + share * (place - begin_p), z / np.linalg.norm(z)

        def missed(u: np.ndarray, p: np.ndarray = goal_p, d: np.ndarray = goal_z) -> np.ndarray:
            found_p, found_z = _tool(u)
            return np.concatenate([_gaps(u[:12]), found_p - p, np.cross(d, found_z)])

        x, error = _newton(missed, x)
        assert error < 1e-12
    return dict(zip(("a.P", "b.P", "c.P", "w1", "w2"), (*x[:3], *x[12:]), strict=True))


def _home() -> np.ndarray:
    """Angles of the rods, position and rotation vector of the platform, near home."""
    return np.array([1.047, 1.047, 1.047, 0.0, 0.0, 0.53, 0.0, 0.0, 0.0])


def turned(vector: np.ndarray) -> np.ndarray:
    return Rotation.from_rotvec(vector).as_matrix()


def _gaps(x: np.ndarray) -> np.ndarray:
    """How far the ends of the rods are from the balls of the platform."""
    strokes, rods, p, R = x[:3], x[3:6], x[6:9], turned(x[9:12])
    gaps = []
    for k in range(3):
        out = np.array([np.cos(ANGLES[k]), np.sin(ANGLES[k]), 0.0])
        foot = RADII[k] * out + np.array([0.0, 0.0, strokes[k]])
        end = foot - LEG * (np.cos(rods[k]) * out - np.sin(rods[k]) * np.array([0.0, 0.0, 1.0]))
        gaps.append(end - p - R @ BALLS[k])
    return np.concatenate(gaps)


def _tool(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Place of the tool and the direction along it."""
    p, R, first, second = x[6:9], turned(x[9:12]), x[12], x[13]
    wrist = R @ turned(np.array([0.0, 0.0, first]))
    centre = p + R @ np.array([0.02, 0.01, 0.05]) + wrist @ np.array([0.0, 0.0, 0.08])
    hand = wrist @ turned(np.array([np.pi / 2, 0.0, 0.0])) @ turned(np.array([0.0, 0.0, second]))
    return centre + hand @ np.array([0.0, 0.15, 0.0]), hand[:, 1]


def _newton(function, x: np.ndarray) -> tuple[np.ndarray, float]:
    """Newton with a Jacobian of central differences; more rows than unknowns are solved by least squares."""
    error = np.inf
    for _ in range(25):
        value = function(x)
        error = float(np.abs(value).max())
        if error < 1e-15:
            break
        steps = 1e-6 * np.eye(len(x))
        J = np.stack([(function(x + h) - function(x - h)) / 2e-6 for h in steps], axis=1)
        x = x - np.linalg.lstsq(J, value, rcond=None)[0]
    return x, error
