"""parflex: dynamic models of parallel robots from one robot file.

robot = parflex.load("gough-stewart")
result = parflex.inverse_dynamics(robot, "home", acceleration={"z": 1.0})
result.efforts
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parflex.codegen.model import model
    from parflex.control.doors import run_control
    from parflex.control.gains import gains_from
    from parflex.control.study import run_study
    from parflex.description.names import catalogue_names
    from parflex.design.frequencies import many_frequencies
    from parflex.design.grid import frequency_map
    from parflex.models.base_parameters import base_parameters
    from parflex.models.configuration import configure
    from parflex.models.dynamics import energies, forward_dynamics, inverse_dynamics, mass_matrix
    from parflex.models.equilibrium import equilibrium
    from parflex.models.explain import explain
    from parflex.models.kinematics import frames, geometric_solutions, jacobian
    from parflex.models.linear import linear_model, natural_frequencies
    from parflex.models.loading import load
    from parflex.models.redundant_matrices import redundant_model
    from parflex.models.sensor_geometry import geometry_from_sensors
    from parflex.models.statespace import state_space
    from parflex.models.stiffness import cartesian_stiffness, deflection
    from parflex.models.tracking import track_modes
    from parflex.reproduction.checks import reproduce
    from parflex.simulation.controller import PD
    from parflex.simulation.result import load_run
    from parflex.simulation.simulate import simulate
    from parflex.view.draw import draw
    from parflex.view.modes import draw_modes
    from parflex.view.series import draw_comparison, draw_energies, draw_run, draw_spectrum

__version__ = "0.1.0"

_DOORS = {
    "PD": "parflex.simulation.controller",
    "base_parameters": "parflex.models.base_parameters",
    "cartesian_stiffness": "parflex.models.stiffness",
    "catalogue_names": "parflex.description.names",
    "configure": "parflex.models.configuration",
    "deflection": "parflex.models.stiffness",
    "draw": "parflex.view.draw",
    "draw_comparison": "parflex.view.series",
    "draw_energies": "parflex.view.series",
    "draw_modes": "parflex.view.modes",
    "draw_run": "parflex.view.series",
    "draw_spectrum": "parflex.view.series",
    "energies": "parflex.models.dynamics",
    "equilibrium": "parflex.models.equilibrium",
    "explain": "parflex.models.explain",
    "forward_dynamics": "parflex.models.dynamics",
    "frames": "parflex.models.kinematics",
    "frequency_map": "parflex.design.grid",
    "gains_from": "parflex.control.gains",
    "geometric_solutions": "parflex.models.kinematics",
    "geometry_from_sensors": "parflex.models.sensor_geometry",
    "inverse_dynamics": "parflex.models.dynamics",
    "jacobian": "parflex.models.kinematics",
    "linear_model": "parflex.models.linear",
    "load": "parflex.models.loading",
    "load_run": "parflex.simulation.result",
    "many_frequencies": "parflex.design.frequencies",
    "mass_matrix": "parflex.models.dynamics",
    "model": "parflex.codegen.model",
    "natural_frequencies": "parflex.models.linear",
    "redundant_model": "parflex.models.redundant_matrices",
    "reproduce": "parflex.reproduction.checks",
    "run_control": "parflex.control.doors",
    "run_study": "parflex.control.study",
    "simulate": "parflex.simulation.simulate",
    "state_space": "parflex.models.statespace",
    "track_modes": "parflex.models.tracking",
}
__all__ = [
    "PD",
    "base_parameters",
    "cartesian_stiffness",
    "catalogue_names",
    "configure",
    "deflection",
    "draw",
    "draw_comparison",
    "draw_energies",
    "draw_modes",
    "draw_run",
    "draw_spectrum",
    "energies",
    "equilibrium",
    "explain",
    "forward_dynamics",
    "frames",
    "frequency_map",
    "gains_from",
    "geometric_solutions",
    "geometry_from_sensors",
    "inverse_dynamics",
    "jacobian",
    "linear_model",
    "load",
    "load_run",
    "many_frequencies",
    "mass_matrix",
    "model",
    "natural_frequencies",
    "redundant_model",
    "reproduce",
    "run_control",
    "run_study",
    "simulate",
    "state_space",
    "track_modes",
]


def __getattr__(name: str) -> Any:
    """Doors are imported when they are first used, so that `parflex --help` starts at once.

    What is handed to them is looked at first, see `parflex.doors`.
    """
    if name in _DOORS:
        from parflex.doors import checked

        globals()[name] = checked(getattr(importlib.import_module(_DOORS[name]), name))
        return globals()[name]
    raise AttributeError(f"module 'parflex' has no attribute '{name}'")
