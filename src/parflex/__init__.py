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
    from parflex.control.control_run import run_control
    from parflex.control.gains import gains_from
    from parflex.control.study import run_study
    from parflex.description.names import catalogue_names
    from parflex.design.frequencies import many_frequencies
    from parflex.design.grid import frequency_map
    from parflex.models.configuration import configure
    from parflex.models.dynamics.base_parameters import base_parameters
    from parflex.models.dynamics.dynamic_models import energies, forward_dynamics, inverse_dynamics, mass_matrix
    from parflex.models.elastic.equilibrium import equilibrium
    from parflex.models.elastic.linear_model import linear_model, natural_frequencies
    from parflex.models.elastic.statespace import state_space
    from parflex.models.elastic.stiffness import cartesian_stiffness, deflection
    from parflex.models.elastic.tracking import track_modes
    from parflex.models.explaining.explain import explain
    from parflex.models.forms.by_sensors.redundant_matrices import redundant_model
    from parflex.models.forms.by_sensors.sensor_geometry import geometry_from_sensors
    from parflex.models.frames_and_jacobians import frames, geometric_solutions, jacobian
    from parflex.models.loading import load
    from parflex.reproduction.checks import reproduce
    from parflex.simulation.controller import PD
    from parflex.simulation.runs import load_run
    from parflex.simulation.simulate import simulate
    from parflex.view.figures.mode_figures import draw_modes
    from parflex.view.figures.robot_figure import draw
    from parflex.view.figures.run_figures import draw_comparison, draw_energies, draw_run, draw_spectrum

__version__ = "0.1.0"

_PUBLIC = {
    "PD": "parflex.simulation.controller",
    "base_parameters": "parflex.models.dynamics.base_parameters",
    "cartesian_stiffness": "parflex.models.elastic.stiffness",
    "catalogue_names": "parflex.description.names",
    "configure": "parflex.models.configuration",
    "deflection": "parflex.models.elastic.stiffness",
    "draw": "parflex.view.figures.robot_figure",
    "draw_comparison": "parflex.view.figures.run_figures",
    "draw_energies": "parflex.view.figures.run_figures",
    "draw_modes": "parflex.view.figures.mode_figures",
    "draw_run": "parflex.view.figures.run_figures",
    "draw_spectrum": "parflex.view.figures.run_figures",
    "energies": "parflex.models.dynamics.dynamic_models",
    "equilibrium": "parflex.models.elastic.equilibrium",
    "explain": "parflex.models.explaining.explain",
    "forward_dynamics": "parflex.models.dynamics.dynamic_models",
    "frames": "parflex.models.frames_and_jacobians",
    "frequency_map": "parflex.design.grid",
    "gains_from": "parflex.control.gains",
    "geometric_solutions": "parflex.models.frames_and_jacobians",
    "geometry_from_sensors": "parflex.models.forms.by_sensors.sensor_geometry",
    "inverse_dynamics": "parflex.models.dynamics.dynamic_models",
    "jacobian": "parflex.models.frames_and_jacobians",
    "linear_model": "parflex.models.elastic.linear_model",
    "load": "parflex.models.loading",
    "load_run": "parflex.simulation.runs",
    "many_frequencies": "parflex.design.frequencies",
    "mass_matrix": "parflex.models.dynamics.dynamic_models",
    "model": "parflex.codegen.model",
    "natural_frequencies": "parflex.models.elastic.linear_model",
    "redundant_model": "parflex.models.forms.by_sensors.redundant_matrices",
    "reproduce": "parflex.reproduction.checks",
    "run_control": "parflex.control.control_run",
    "run_study": "parflex.control.study",
    "simulate": "parflex.simulation.simulate",
    "state_space": "parflex.models.elastic.statespace",
    "track_modes": "parflex.models.elastic.tracking",
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
    """Public functions are imported on first use, so that `parflex --help` starts at once.

    Their arguments are checked first, see `parflex.argument_checks`.
    """
    if name in _PUBLIC:
        from parflex.argument_checks import checked

        globals()[name] = checked(getattr(importlib.import_module(_PUBLIC[name]), name))
        return globals()[name]
    raise AttributeError(f"module 'parflex' has no attribute '{name}'")
