"""The page of modes: frequencies, damping ratios, and pictures that move."""

from __future__ import annotations

import numpy as np

from parflex.errors import ParflexError
from parflex.statics.modes import Modes, energy_shares
from parflex.view.notebook.html_parts import beside, card, notes, table
from parflex.view.notebook.line_pictures import moving_picture
from parflex.view.scene.skeleton import mode_shape_points

PICTURES = 6  # modes that are shown moving
MOST_LETTERS = 150_000  # of all pictures together: a notebook is a file that is read whole


def modes_page(modes: Modes) -> str:
    """Frequencies with damping ratios and where the energy is, and the lowest modes moving side by side."""
    here, robot = modes.model.configuration, modes.model.robot
    try:
        shares = energy_shares(modes)
    except (ParflexError, np.linalg.LinAlgError):
        shares = [{"kind": None, "strain": {"bodies": {}}} for _ in modes.frequencies]
    rows = [
        (k + 1, round(float(f), 4), round(100 * float(d), 4), one["kind"] or "", _largest(one["strain"]["bodies"]))
        for k, (f, d, one) in enumerate(zip(modes.frequencies, modes.damping, shares, strict=True))
    ]
    pictures: list[str] = []
    for k, shape in enumerate(modes.shapes.T[:PICTURES]):
        told = f"mode {k + 1}: {modes.frequencies[k]:.4g} Hz"
        picture = moving_picture(mode_shape_points(robot, here, shape), here, told)
        if len(picture) + sum(map(len, pictures)) > MOST_LETTERS:
            break
        pictures.append(f'{picture}<div style="text-align:center">{told}</div>')
    apart = [f"without stiffness: {name}" for name in modes.free_motions]
    apart += [f"unstable: {name}" for name in modes.unstable_motions]
    head = ["mode", "Hz", "damping %", "", "most strain in"]
    return card(
        f"{robot.name}: natural frequencies",
        beside(table(rows, head)),
        beside(*pictures),
        notes([*apart, *modes.model.warnings]),
    )


def _largest(bodies: dict[str, float]) -> str:
    if not bodies:
        return ""
    name = max(bodies, key=lambda body: bodies[body])
    return f"{name} ({100 * bodies[name]:.0f} %)"
