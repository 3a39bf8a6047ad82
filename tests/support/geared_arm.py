"""An arm behind a gear, and its recording."""

import numpy as np

GEAR, LENGTH = 0.02, 0.4


def recorded(seed=0, noise=2e-3):
    """An arm of two links by its equations of motion, the first behind a gear."""
    rng = np.random.default_rng(seed)
    t = np.arange(0, 6, 2e-3)
    w, size, phase = 2 * np.pi * np.array([0.4, 0.9, 1.5]), np.array([0.5, 0.3, 0.2]), rng.uniform(0, 6, (2, 3))
    q1, q2 = (np.sin(np.outer(t, w) + one) @ size for one in phase)
    v1, v2 = (np.cos(np.outer(t, w) + one) @ (size * w) for one in phase)
    a1, a2 = (-np.sin(np.outer(t, w) + one) @ (size * w**2) for one in phase)
    ZZ1, MX1, ZZ2, MX2, M2, g = 0.12, 0.55, 0.14, 0.42, 2.1, 9.81
    c, s = LENGTH * MX2 * np.cos(q2), LENGTH * MX2 * np.sin(q2)
    first = (ZZ1 + ZZ2 + M2 * LENGTH**2 + 2 * c) * a1 + (ZZ2 + c) * a2 - s * (2 * v1 + v2) * v2
    first += g * ((MX1 + M2 * LENGTH) * np.cos(q1) + MX2 * np.cos(q1 + q2))
    second = (ZZ2 + c) * a1 + ZZ2 * a2 + s * v1**2 + g * MX2 * np.cos(q1 + q2)
    efforts = np.stack([GEAR * first + 2.5e-4 * a1 / GEAR, second])
    efforts += noise * efforts.std(axis=1, keepdims=True) * rng.standard_normal(efforts.shape)
    return {"t": t, "q.motor": q1 / GEAR, "q.elbow": q2, "effort.motor": efforts[0], "effort.elbow": efforts[1]}
