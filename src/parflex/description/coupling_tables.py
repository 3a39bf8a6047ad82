"""Couplings between joint coordinates as they stand in a robot file: gears, belts, differentials, screws."""

from __future__ import annotations

from pydantic import model_validator

from parflex.description.table import Table
from parflex.description.values import Coordinates, Name, Number, complain


class CouplingTable(Table):
    """joint = sum of ratio times other + offset; or a screw: `lead` metres along per turn about the axis.

    A positive lead gives a positive travel for a positive turn: right-handed where one body turns and slides,
    left-handed where a spindle turns in place and its nut slides.
    """

    name: Name
    joint: Name
    terms: Coordinates = {}
    other: Name | None = None
    lead: Number | None = None
    offset: Number = 0.0
    stiffness: Number | None = None
    damping: Number = 0.0
    backlash: Number = 0.0
    efficiency: Number = 1.0
    efficiency_back: Number | None = None

    @model_validator(mode="after")
    def _whole(self) -> CouplingTable:
        form = 'write terms = { NAME = ratio }, or other = "NAME" and lead = 0.005'
        if self.terms and (self.other is not None or self.lead is not None):
            raise complain("'terms' and 'lead' are both given", "keep one of them", "terms")
        if not self.terms and self.other is None and self.lead is None:
            raise complain("the coupling has neither 'terms' nor 'other' and 'lead'", form, "terms")
        if not self.terms and (self.other is None or self.lead is None):
            missing = "other" if self.other is None else "lead"
            raise complain("a screw needs both 'other' and 'lead'", f"add {missing} = ...", missing)
        if self.lead == 0:
            raise complain("a lead of zero couples nothing", "give the travel per turn in m", "lead", 0.0)
        for name, ratio in self.terms.items():
            if ratio == 0:
                raise complain(f"the ratio of '{name}' is zero", "remove the term", f"terms.{name}", 0.0)
        if self.joint in (*self.terms, self.other):
            raise complain("a joint cannot be coupled to itself", "name another joint", "joint", self.joint)
        self._check_spring()
        return self

    def _check_spring(self) -> None:
        """A spring that pushes back, and what only a spring can have."""
        if self.stiffness is not None and self.stiffness <= 0:
            raise complain(
                "the stiffness is not positive", "leave it out for a rigid coupling", "stiffness", self.stiffness
            )
        for key, value in (("damping", self.damping), ("backlash", self.backlash)):
            if value < 0:
                raise complain(f"the {key} is negative", "give zero or more", key, value)
        if not 0 < self.efficiency <= 1:
            raise complain(
                "the efficiency is not between 0 and 1", "1 is without losses", "efficiency", self.efficiency
            )
        if self.back > 1:
            raise complain(
                "the efficiency of driving back is above 1",
                "1 is without losses, zero or less is self-locking",
                "efficiency_back",
                self.efficiency_back,
            )
        for key, given in (("damping", self.damping), ("backlash", self.backlash)):
            if given and self.stiffness is None:
                raise complain(
                    f"'{key}' needs 'stiffness', and this coupling is rigid",
                    "give the stiffness of the teeth, belt or thread in N m/rad or N/m at the joint",
                    key,
                    given,
                )

    @property
    def back(self) -> float:
        """Efficiency where `joint` drives the others."""
        return self.efficiency if self.efficiency_back is None else self.efficiency_back

    @property
    def others(self) -> tuple[str, ...]:
        """Joints that `joint` follows."""
        return tuple(self.terms) or (str(self.other),)
