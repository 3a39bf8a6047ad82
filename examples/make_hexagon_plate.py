"""Modes of the hexagonal plate of [Long2014], beside the printed ones; the modal data of the catalogue.

    python examples/make_hexagon_plate.py --output out
    python examples/make_hexagon_plate.py --catalogue    # also renews the file that comes with the package

The plate is free, of constant thickness, with shear and rotary inertia (Mindlin); its attachments are its corners, in
the order of the legs, and the origin of its frame. Poisson's ratio is not printed; 0.30 fits.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table

from parflex.bodies.modal import ModalData, save_modal
from parflex.bodies.plates import Plate, plate_modes, triangulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RADIUS, THICKNESS = 0.5, 0.015  # m
ELASTIC_MODULUS, DENSITY, POISSON = 2e10, 7.5e3, 0.30  # Pa, kg/m^3; page 8 of the paper
DAMPING = 0.4
PRINTED = (  # [Long2014, Table 2], rad/s
    188.7473,
    188.7475,
    315.7169,
    401.0187,
    474.7468,
    709.5586,
    709.5814,
    828.2868,
    828.3062,
    1310.581,
)
CATALOGUE = Path(__file__).resolve().parents[1] / "src" / "parflex" / "description" / "catalogue"


def hexagon() -> Plate:
    """The plate of the paper."""
    angles = np.deg2rad([-120, -60, 0, 60, 120, 180])
    corners = RADIUS * np.column_stack([np.cos(angles), np.sin(angles)])
    attachments = {f"a{leg}": corner for leg, corner in enumerate(corners, start=1)}
    return Plate(
        corners, THICKNESS, ELASTIC_MODULUS, DENSITY, POISSON, attachments={**attachments, "origin": (0.0, 0.0)}
    )


def make(modes: int = 10) -> ModalData:
    """Modal data of the plate with any number of modes."""
    return plate_modes(
        hexagon(),
        modes,
        damping=DAMPING,
        title="regular hexagonal plate, free, Mindlin",
        source="computed for the plate of Long2014 by examples/make_hexagon_plate.py",
    )


def table(data: ModalData) -> Table:
    """Printed and computed frequencies."""
    result = Table(title="Modes of the free hexagonal plate, rad/s")
    for heading in ("mode", "printed", "computed", "difference %"):
        result.add_column(heading, justify="right")
    for number, (printed, stiffness) in enumerate(zip(PRINTED, data.modal_stiffnesses, strict=False), start=7):
        own = np.sqrt(stiffness)
        result.add_row(str(number), f"{printed:.4f}", f"{own:.4f}", f"{100 * (own / printed - 1):+.2f}")
    return result


def figure(data: ModalData) -> Figure:
    """The shapes from above: deflection by colour, lines at rest in black."""
    from matplotlib.figure import Figure
    from matplotlib.tri import Triangulation
    from scipy.interpolate import RBFInterpolator

    grid = triangulate(hexagon().polygon).refined(5)
    triangles = Triangulation(*grid.p, grid.t.T)
    page = Figure(figsize=(12, 5.4), layout="constrained")
    axes = page.subplots(2, 5)
    for number, (axis, shape) in enumerate(zip(axes.flat, data.shapes, strict=True), start=7):
        w = RBFInterpolator(data.nodes[:, :2], shape[:, 2])(grid.p.T)  # thin-plate splines through the nodes
        top = np.abs(w).max()
        drawn = axis.tricontourf(triangles, w / top, levels=np.linspace(-1, 1, 17), cmap="RdBu_r")
        axis.tricontour(triangles, w / top, levels=[0.0], colors="black", linewidths=1.0)
        own, printed = np.sqrt(data.modal_stiffnesses[number - 7]), PRINTED[number - 7]
        axis.set_title(f"mode {number}\n{own:.1f} rad/s (printed {printed:.1f})", fontsize=9)
        axis.set_aspect("equal")
        axis.set_axis_off()
    page.colorbar(drawn, ax=axes, label="deflection, share of the largest", ticks=[-1, 0, 1], shrink=0.8)
    return page


def main() -> None:
    """Read the options, compute, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("out"), help="folder for modal data and figure")
    parser.add_argument("--catalogue", action="store_true", help="renew the file of the catalogue as well")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    data = make()
    Console().print(table(data))
    written = [save_modal(data, arguments.output / "hexagon-plate.npz")]
    if arguments.catalogue:
        written.append(save_modal(data, CATALOGUE / "hexagon-plate.npz"))
    picture = arguments.output / "hexagon-plate.png"
    figure(data).savefig(picture, dpi=110, metadata={"Software": None})
    written.append(picture)
    print("written: " + ", ".join(str(path) for path in written))


if __name__ == "__main__":
    main()
