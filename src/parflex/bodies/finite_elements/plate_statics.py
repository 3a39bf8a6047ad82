"""A plate at rest under loads, solved by its finite elements: what modes must tend to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from parflex.bodies.finite_elements.plate import Discrete
from parflex.errors import InputError, did_you_mean
from parflex.records import Record

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class PlateDeflection(Record):
    """What loads do to a plate: deflections along z and rotations about x and y, at each attachment by name.

    `elastic` is `total` less the rigid motion in it: the part that free modes describe. `reactions` are the forces
    along z at the attachments that were held.
    """

    total: dict[str, Array]
    elastic: dict[str, Array]
    reactions: dict[str, float]


def static_deflection(
    discrete: Discrete,
    pressure: float = 0.0,
    forces: Mapping[str, float] | None = None,
    held: Iterable[str] = (),
) -> PlateDeflection:
    """Deflection of a plate under a pressure (N/m^2, along z) and forces (N, along z) at attachments.

    With nothing held the plate is free and accelerates; its inertia balances the loads (inertia relief). Otherwise the
    attachments in `held` do not move along z; three that are not on a line are needed at least.
    """
    plate, held = discrete.plate, list(held)
    names = list(plate.attachments)
    for name in [*(forces or {}), *held]:
        if name not in names:
            raise InputError(f"the plate has no attachment '{name}'", key=name, hint=did_you_mean(name, names))
    w, s_x, s_y = discrete.at_corners(plate.points)
    R, inertia = discrete.rigid, discrete.M @ discrete.rigid
    load = w.T @ np.array([(forces or {}).get(name, 0.0) for name in names])
    corners = discrete.at_corners(plate.polygon)[0]
    if pressure:
        along = R @ np.linalg.lstsq(corners @ R, np.ones(len(plate.polygon)), rcond=None)[0]  # rigid motion along z
        load = load + pressure / (plate.density * plate.thickness) * (discrete.M @ along)
    if held:
        rows = sparse.csr_matrix(w)[[names.index(name) for name in held]]
        if np.linalg.matrix_rank(rows @ R) < 3:
            raise InputError("the supports do not constrain the plate", key="held", hint="support three corners")
    else:
        load = load - inertia @ (R.T @ load)  # balanced: any three supports carry nothing
        rows = sparse.csr_matrix(corners)[linalg.qr((corners @ R).T, pivoting=True)[2][:3]]
    scale = np.abs(discrete.K.diagonal()).mean()
    system = sparse.bmat([[discrete.K, scale * rows.T], [scale * rows, None]], format="csc")
    solution = splu(system).solve(np.concatenate([load, np.zeros(rows.shape[0])]))
    u, pulls = solution[: len(load)], scale * solution[len(load) :]
    elastic = u - R @ (inertia.T @ u)

    def at_attachments(vector: Array) -> dict[str, Array]:
        rows = np.column_stack([w @ vector, s_y @ vector, -(s_x @ vector)])
        return dict(zip(names, rows, strict=True))

    reactions = dict(zip(held, -pulls, strict=True)) if held else {}
    return PlateDeflection(at_attachments(u), at_attachments(elastic), {k: float(v) for k, v in reactions.items()})
