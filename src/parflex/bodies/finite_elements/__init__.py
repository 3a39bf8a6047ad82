"""Modal data from finite elements: plates (with scikit-fem, the extra `fe`), and any body given by M and K."""

from __future__ import annotations

from parflex.bodies.finite_elements.interface_modes import Reduced, craig_bampton, free_reduction
from parflex.bodies.finite_elements.plate import Plate
from parflex.bodies.finite_elements.plate_modal_data import discretise, free_modes, plate_modes
from parflex.bodies.finite_elements.plate_statics import PlateDeflection, static_deflection

__all__ = [
    "Plate",
    "PlateDeflection",
    "Reduced",
    "craig_bampton",
    "discretise",
    "free_modes",
    "free_reduction",
    "plate_modes",
    "static_deflection",
]
