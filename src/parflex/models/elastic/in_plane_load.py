"""Loads in the plane of a body given by modes, beside the stiffness that its data have."""

from __future__ import annotations

import numpy as np
import scipy

from parflex.recursion.dynamics import NewtonEuler
from parflex.robot.configuration import Configuration

Array = np.ndarray
NEGLECTED = 0.1  # of the stiffness of a mode, or a twentieth of its frequency: what is left out is told beyond this


def stress_warnings(here: Configuration, wrenches: NewtonEuler) -> list[str]:
    """Sentences about bodies given by modes at rest whose stress would change their stiffness, but is not in the data.

    The integral of the stress over a body is that of what acts on it times where it acts; taken as the same everywhere
    it changes the stiffness by its product with the slopes of the modes. An estimate, for a warning.
    """
    tree, said = here.robot.tree, []
    for j, link in enumerate(tree.links):
        body = link.body
        if body.acting or body.slopes is None:
            continue
        weight = here.at.rotation[j].T @ tree.gravity
        still = np.zeros(body.size)
        stress = np.outer(weight, body.deformed(still)[0])
        for k, other in enumerate(tree.links):
            if other.parent == j and other.node is not None:
                stress = stress - np.outer(here.at.to_parent(tree, k, wrenches.f[k]), here.at.local_position[k])
        added = np.einsum("ij,abij->ab", (stress + stress.T) / 2, body.slopes)
        shares = scipy.linalg.eigh(added, body.material_stiffness(still), eigvals_only=True)
        worst = float(shares[np.abs(shares).argmax()])
        if abs(worst) > NEGLECTED:
            has = "linear strain neglects that" if body.strains else "its data have no 'geometric' stiffness"
            said.append(
                f"loads in the plane of '{link.name}' would make it about {abs(worst):.0%} "
                f"{'stiffer' if worst > 0 else 'softer'} in some mode: {has}"
            )
    return said
