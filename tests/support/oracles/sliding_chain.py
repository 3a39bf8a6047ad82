"""Four masses on slides, each on the one before by a spring, two of them with a damper: poles by full matrices."""

import numpy as np

Array = np.ndarray
MASSES = (2.0, 1.5, 1.0, 0.8)
FIRST = {"k1": 40e3, "k2": 30e3, "k3": 20e3, "k4": 15e3, "c1": 6.0, "c3": 4.0}


def file() -> str:
    """The robot file with the first numbers."""
    text = 'format = 1\nname = "sliders"\ngravity = [0, 0, 0]\nend_effector = "m4"\n[constants]\n'
    text += "".join(f"{key} = {value}\n" for key, value in FIRST.items())
    for k, mass in enumerate(MASSES, start=1):
        text += f'[[frame]]\nname = "m{k}"\njoint = "prismatic"\ninertia = {{ mass = {mass} }}\n'
        text += f'spring = {{ stiffness = "k{k}" }}\n' + (f'damper = "c{k}"\n' if f"c{k}" in FIRST else "")
        text += f'parent = "m{k - 1}"\n' if k > 1 else ""
    return text + "[poses.home]\n"


def modes(**numbers: float) -> tuple[Array, Array]:
    """Hz, lowest first, and damping ratios."""
    given = {**FIRST, **numbers}
    apart = np.eye(4) - np.eye(4, k=-1)
    stiffness, damping = (apart.T @ np.diag([given.get(f"{letter}{k}", 0.0) for k in (1, 2, 3, 4)]) @ apart
                          for letter in "kc")  # fmt: skip
    rates = -np.hstack([stiffness, damping]) / np.array(MASSES)[:, None]
    poles = np.linalg.eigvals(np.vstack([np.hstack([np.zeros((4, 4)), np.eye(4)]), rates]))
    poles = sorted(poles[poles.imag > 0], key=abs)
    return np.abs(poles) / (2 * np.pi), -np.real(poles) / np.abs(poles)
