"""Names of other programs as names of robot files: the same wherever that can be."""

from __future__ import annotations

import re
import unicodedata

from parflex.checks import short_text

LONGEST = 80
FEW = 4  # sentences on names
KEPT = "base"  # the ground


class ForeignNames:
    """Names that are taken, and what was called otherwise in the source.

    Two things of different kinds may share a name in the source, as a link and its joint do; here they may not.
    """

    def __init__(self) -> None:
        self.taken: set[str] = {KEPT}
        self.renamed: dict[str, str] = {}

    def give(self, name: str, otherwise: str = "part", say: bool = True) -> str:
        """A name of a robot file for one of the source; `otherwise` for one that has none."""
        plain = allowed(name) or allowed(otherwise) or "part"
        given, number = plain, 2
        while given in self.taken or f"{given}.1" in self.taken:
            given = f"{plain[: LONGEST - 5]}_{number}"
            number += 1
        self.taken.add(given)
        if name and say and given != name:
            self.renamed[short_text(name)] = given
        return given

    def sentences(self) -> list[str]:
        """What is called otherwise here."""
        return [f"'{name}' is called '{given}' here" for name, given in self.renamed.items()]

    def brief(self) -> list[str]:
        """The same, without going on for long."""
        all_of_them = self.sentences()
        if len(all_of_them) <= FEW:
            return all_of_them
        return [
            *all_of_them[: FEW - 1],
            f"{len(all_of_them) - FEW + 1} more names are others here; the file lists them",
        ]


def allowed(name: str) -> str:
    """The name with every letter that a robot file does not allow made an underscore."""
    plain = unicodedata.normalize("NFKC", name).strip()
    return re.sub(r"[^\w+\-.~ ]", "_", plain)[:LONGEST].strip()
