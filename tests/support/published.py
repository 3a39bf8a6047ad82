"""Published tables, read from the data files that `parflex reproduce` reads."""

import tomllib
from importlib import resources
from pathlib import Path

FOLDER = Path(str(resources.files("parflex.reproduction"))) / "published"


def published(paper: str, title: str) -> dict[str, list[float]]:
    """Numbers of the group with this title, by the name of the row."""
    table = tomllib.loads((FOLDER / f"{paper}.toml").read_text(encoding="utf-8"))
    (group,) = (group for group in table["group"] if group["title"] == title)
    return {row.get("name", ""): row["published"] for row in group["rows"]}
