"""A line before a time loop is compiled for the first time on a machine, which takes some seconds."""

from __future__ import annotations

import logging
from typing import Any

LOG = logging.getLogger("parflex")


def say_first_compilation(loop: Any) -> bool:
    """Say in the log `parflex` that a loop is compiled; nothing where it is compiled, or kept on disk."""
    if loop.is_kept():
        return False
    LOG.warning("parflex compiles the time loop '%s': some seconds, once on a machine", loop.__name__)
    return True
