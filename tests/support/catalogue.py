"""Robots of the catalogue that tests run over."""

from importlib import resources
from pathlib import Path

import parflex
from parflex.robotfile.read import load_description


def _bends(name: str) -> bool:
    """Return whether a robot has a flexible body; reads the file only, since loading 20 robots takes seconds."""
    robot, _ = load_description(name)
    bodies = (robot.platform, *robot.frame)
    return any(b is not None and b.modal is not None for b in bodies) or any(f.beam is not None for f in robot.frame)


CATALOGUE = Path(str(resources.files("parflex.robotfile"))) / "catalogue"
# test_known_machines has these; others of their kind stand for them in lists of all rigid robots
MACHINES = ["3-prs-2r", "4rrr", "emps", "hexaglide", "orthoglide", "par4", "planar-cable"]
RIGID = [name for name in parflex.catalogue_names() if name not in MACHINES and not _bends(name)]
