"""A line before a time loop is compiled for the first time on a machine, which takes up to half a minute."""

from __future__ import annotations

import logging
from typing import Any

from parflex.simulation.integrators.jit import _cache_folder as loops_folder

LOG = logging.getLogger("parflex")


def say_first_compilation(loop: Any) -> bool:
    """Say in the log `parflex` that a loop is compiled; nothing where it is compiled, or kept on disk."""
    place = loops_folder()
    if loop.signatures or (place is not None and any(place.rglob(f"*.{loop.__name__}-*.nbi"))):
        return False
    LOG.warning("parflex compiles the time loop '%s': up to half a minute, once on a machine", loop.__name__)
    return True
