"""Modes of the hexagonal plate of [Long2014], beside the printed ones; the modal data of the catalogue.

    python examples/make_hexagon_plate.py --output out
    python examples/make_hexagon_plate.py --catalogue    # also renews the file that comes with the package

The plate is free, of constant thickness, with shear and rotary inertia (Mindlin); its attachments are its corners, in
the order of the legs, and the origin of its frame. Poisson's ratio is not printed; 0.30 fits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from parflex.bodies.modal import ModalData, save_modal
from parflex.bodies.plates import Plate, plate_modes, triangulate
from parflex.view.style import drawing

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
CATALOGUE = Path(__file__).resolve().parents[1] / "src" / "parflex" / "robotfile" / "catalogue"


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


def show(data: ModalData) -> None:
    """Print published and computed frequencies."""
    print(f"{'mode':>5}{'published':>12}{'computed':>12}{'difference %':>14}  (rad/s)")
    for number, (printed, stiffness) in enumerate(zip(PRINTED, data.modal_stiffnesses, strict=False), start=7):
        computed = np.sqrt(stiffness)
        print(f"{number:5}{printed:12.4f}{computed:12.4f}{100 * (computed / printed - 1):+14.2f}")


def draw(data: ModalData, path: Path) -> None:
    """Draw the shapes from above: deflection by colour, nodal lines in black."""
    from matplotlib.tri import Triangulation
    from scipy.interpolate import RBFInterpolator

    grid = triangulate(hexagon().polygon).refined(5)
    triangles = Triangulation(*grid.p, grid.t.T)
    with drawing(path, 3.5) as figure:
        panels = figure.subplots(2, 5)
        for number, (panel, shape) in enumerate(zip(panels.flat, data.shapes, strict=True), start=7):
            w = RBFInterpolator(data.nodes[:, :2], shape[:, 2])(grid.p.T)  # thin-plate splines through the nodes
            w /= np.abs(w).max()
            drawn = panel.tricontourf(triangles, w, levels=np.linspace(-1, 1, 17), cmap="RdBu_r")
            panel.tricontour(triangles, w, levels=[0.0], colors="black", linewidths=0.8)
            computed, printed = np.sqrt(data.modal_stiffnesses[number - 7]), PRINTED[number - 7]
            panel.set_title(f"mode {number}\n{computed:.1f} rad/s\npublished {printed:.1f}", fontsize=8, loc="center")
            panel.set_aspect("equal")
            panel.set_axis_off()
        label = "deflection over its largest value"
        figure.colorbar(drawn, ax=panels, label=label, ticks=[-1, 0, 1], fraction=0.03, pad=0.01)


def main() -> None:
    """Read the options, compute, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("out"), help="folder for modal data and figure")
    parser.add_argument("--catalogue", action="store_true", help="renew the file of the catalogue as well")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    data = make()
    show(data)
    written = [save_modal(data, arguments.output / "hexagon-plate.npz")]
    if arguments.catalogue:
        written.append(save_modal(data, CATALOGUE / "hexagon-plate.npz"))
    picture = arguments.output / "hexagon-plate.png"
    draw(data, picture)
    written.append(picture)
    print("written: " + ", ".join(str(path) for path in written))


if __name__ == "__main__":
    main()
