"""Pages that notebooks show: `page_of` finds the one of a record by its class, and imports it then."""

from __future__ import annotations

import importlib
from typing import Any

PAGES = {
    "Configuration": "robot_pages",
    "Controlled": "run_pages",
    "Deflection": "answer_pages",
    "Equilibrium": "answer_pages",
    "Explanation": "answer_pages",
    "FrequencyMap": "run_pages",
    "Model": "answer_pages",
    "Modes": "mode_pages",
    "Result": "answer_pages",
    "Robot": "robot_pages",
    "Run": "run_pages",
    "Stiffness": "answer_pages",
    "Study": "run_pages",
}


def page_of(record: Any) -> str | None:
    """HTML of a record: one file, no script, nothing from elsewhere; a record without a page is a table of its parts.

    A notebook that cannot show it still prints the record, so nothing is raised here.
    """
    name = type(record).__name__
    module = importlib.import_module(f"parflex.view.notebook.{PAGES.get(name, 'html_parts')}")
    page = getattr(module, f"{name.lower()}_page", None) or module.any_page
    return page(record)
