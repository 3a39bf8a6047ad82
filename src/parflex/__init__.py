"""parflex: dynamic models of parallel robots from one robot file.

robot = parflex.load("gough-stewart")
result = parflex.inverse_dynamics(robot, "home", acceleration={"z": 1.0})
result.efforts

All names of the package are listed once, in `__init__.pyi`: editors and type checkers read it, and so does this module.
"""

import importlib
import re
import sys
from pathlib import Path
from typing import Any

__version__ = "0.1.0"
_ENTRY = re.compile(r"^from (\S+) import (\w+) as \2$", flags=re.M)
_MODULES = {name: module for module, name in _ENTRY.findall(Path(__file__).with_suffix(".pyi").read_text("utf-8"))}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `parflex --help` starts at once.

    `parflex.api` checks the arguments of functions.
    """
    if name not in _MODULES:
        raise AttributeError(f"module 'parflex' has no attribute '{name}'")
    import types

    value = getattr(importlib.import_module(_MODULES[name]), name)
    if isinstance(value, types.FunctionType):
        from parflex.api import with_checked_arguments

        value = with_checked_arguments(value)
    records = sys.modules.get("parflex.records")
    if records is not None:
        records.html_page = _html_page
    globals()[name] = value
    return value


def _html_page(record: Any) -> str | None:
    """Return what a notebook shows of a record."""
    from parflex.view.notebook import page_of

    return page_of(record)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
