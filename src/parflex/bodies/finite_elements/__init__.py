"""Modal data from finite elements: plates (with scikit-fem, the extra `fe`), and any body given by M and K."""

from __future__ import annotations

from parflex.bodies.finite_elements.modes import discretise, free_modes, plate_modes
from parflex.bodies.finite_elements.plate import Plate
from parflex.bodies.finite_elements.reduction import Reduced, craig_bampton, free_reduction
from parflex.bodies.finite_elements.statics import Deflection, static_deflection

__all__ = [
    "Deflection",
    "Plate",
    "Reduced",
    "craig_bampton",
    "discretise",
    "free_modes",
    "free_reduction",
    "plate_modes",
    "static_deflection",
]
